//! Workflow files of WOHA (the paper's section III-B): jobs with input and output paths, which define their
//! order.
//!
//! The paper lists the content of such a file (input and output paths, jar files, main classes, a deadline)
//! but not its form; this one is ours:
//!
//! ```xml
//! <workflow name="nightly" deadline="4800" release="0" weight="3">   <!-- or several in <workflows> -->
//!   <dataset path="/logs/raw"/>                                      <!-- is there before it begins -->
//!   <job name="extract">
//!     <jar>/lib/etl.jar</jar>                                        <!-- or <command>, see below -->
//!     <main-class>com.example.Extract</main-class>                   <!-- of the jar -->
//!     <input>/logs/raw</input>
//!     <output>/data/extracted</output>
//!     <maps tasks="40" seconds="22" max="30"/>
//!     <reduces tasks="10" seconds="11"/>
//!     <configuration>
//!       <property><name>mapreduce.job.queuename</name><value>etl</value></property>
//!     </configuration>
//!   </job>
//! </workflow>
//! ```
//!
//! A job with a `<command>` instead of a jar can also run: the command is its mapper by the contract of
//! Hadoop Streaming, with optional `<reducer>` and `<combiner>`; `<maps>` and `<reduces>` are then optional.
//!
//! Times are seconds or durations such as 1h30m, the deadline counts from the release. `tasks` is optional if
//! the configuration has `mapreduce.job.maps` or `mapreduce.job.reduces` (or the older names).
//!
//! A job comes after the writers of its inputs. Paths are compared by segments: the reader of `/a/b` comes
//! after the writer of `/a`, and the other way round. Two writers of one path, a cycle, and an input that no
//! job writes and no `<dataset>` declares are errors (the last may be allowed).

use std::collections::BTreeMap;

use roxmltree::Node;
use slackline_model::draft::{FlowDraft, JobDraft, PerPhase, PhaseDraft, RunDraft, RunWork, TasksDraft};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Draft, duration};

use crate::importers::dag::never_ready;
use crate::importers::hadoop::TASK_COUNTS;
use crate::importers::importer::{Importer, Input, Output};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;
use crate::reading::xml;
use crate::reading::xml::{Xml, elements};

const JOB_PARTS: [&str; 10] = [
    "jar",
    "command",
    "reducer",
    "combiner",
    "main-class",
    "input",
    "output",
    "maps",
    "reduces",
    "configuration",
];

pub(super) const IMPORTER: Importer = Importer {
    params: &[Param::new(
        "missing-inputs",
        "refuse",
        Values::Choice(&["refuse", "assume"]),
        "inputs that no job writes and no dataset declares: an error, or assumed to exist",
    )],
    // A refusal has no effect on the workload.
    shaped: |settings, _| settings.choice("missing-inputs") == "assume",
    ..Importer::new(
        "woha",
        "a workflow file of WOHA, as XML",
        |text| matches!(xml::root(text), Some("workflow" | "workflows")),
        import,
    )
};

/// Reads a file into a draft without machines.
///
/// # Errors
/// The first fault, with its line.
fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let xml = Xml::new(input.file, input.text);
    let document = xml.parse()?;
    let root = document.root_element();
    let assume_missing = settings.choice("missing-inputs") == "assume";
    let mut reader =
        Reader { xml: &xml, assume_missing, diagnostics: Diagnostics::default(), marks: Vec::new() };
    let mut draft = Draft::default();
    match root.tag_name().name() {
        "workflow" => draft.flows.push(reader.workflow(root, 0)?),
        "workflows" => {
            let [] = xml.attributes(root, [])?;
            for (k, node) in elements(root).enumerate() {
                if node.tag_name().name() != "workflow" {
                    return Err(xml.unknown(node, &["workflow"]));
                }
                draft.flows.push(reader.workflow(node, k)?);
            }
        }
        _ => return Err(xml.unknown(root, &["workflow", "workflows"])),
    }
    if draft.flows.is_empty() {
        return Err(xml.error(root, "found no <workflow>, expected at least one"));
    }
    let Reader { diagnostics, marks, .. } = reader;
    Ok(Output::new(draft, diagnostics, SourceMap::marks(input.file, marks)))
}

/// A path, and the element that names it.
type NamedPath<'a, 'd> = (String, Node<'a, 'd>);

/// A job with its inputs and outputs, and their elements.
struct Job<'a, 'd> {
    node: Node<'a, 'd>,
    inputs: Vec<NamedPath<'a, 'd>>,
    outputs: Vec<NamedPath<'a, 'd>>,
    draft: JobDraft,
}

struct Reader<'x> {
    xml: &'x Xml<'x>,
    /// Whether inputs that no job writes and no dataset declares are assumed to exist.
    assume_missing: bool,
    diagnostics: Diagnostics,
    marks: Vec<(String, Place)>,
}

impl Reader<'_> {
    fn mark_path(&mut self, path: String, node: Node<'_, '_>) {
        self.marks.push((path, self.xml.place(node.range().start)));
    }

    fn workflow(&mut self, node: Node<'_, '_>, index: usize) -> Result<FlowDraft, TraceError> {
        let xml = self.xml;
        let [name, deadline, release, weight] =
            xml.attributes(node, ["name", "deadline", "release", "weight"])?;
        let name = self.required(node, "name", name)?;
        let deadline = self.seconds(node, "deadline", Some(self.required(node, "deadline", deadline)?))?;
        let release = self.seconds(node, "release", release)?.unwrap_or(0.0);
        let weight =
            self.not_negative(node, "weight", weight, |text| text.parse().ok(), "a number")?.unwrap_or(1.0);
        self.mark_path(format!("flows[{index}]"), node);
        let (mut datasets, mut jobs) = (BTreeMap::new(), Vec::new());
        for part in elements(node) {
            match part.tag_name().name() {
                "dataset" => {
                    let [path] = xml.attributes(part, ["path"])?;
                    let path = self.path(part, &self.required(part, "path", path)?)?;
                    if let Some(first) = datasets.insert(path.clone(), part) {
                        let line = xml.place(first.range().start).line;
                        let what = format!("found a second <dataset> {path:?}, the first is at line {line}");
                        return Err(xml.error(part, what));
                    }
                }
                "job" => {
                    self.mark_path(format!("flows[{index}].jobs[{}]", jobs.len()), part);
                    jobs.push(self.job(part)?);
                }
                _ => return Err(xml.unknown(part, &["dataset", "job"])),
            }
        }
        if jobs.is_empty() {
            return Err(xml.error(node, "found a <workflow> without <job>, expected at least one"));
        }
        self.order(&mut jobs, &datasets)?;
        let jobs = jobs.into_iter().map(|job| job.draft).collect();
        let deadline = deadline.map(|deadline| release + deadline);
        Ok(FlowDraft { release, weight, deadline, ..FlowDraft::new(name, jobs) })
    }

    fn job<'a, 'd>(&self, node: Node<'a, 'd>) -> Result<Job<'a, 'd>, TraceError> {
        let xml = self.xml;
        let [name] = xml.attributes(node, ["name"])?;
        let id = self.required(node, "name", name)?;
        let mut seen: BTreeMap<&str, Node<'_, '_>> = BTreeMap::new();
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for part in elements(node) {
            let name = part.tag_name().name();
            let Some(&name) = JOB_PARTS.iter().find(|known| **known == name) else {
                return Err(xml.unknown(part, &JOB_PARTS));
            };
            match name {
                "input" => inputs.push((self.path(part, &xml.text(part)?)?, part)),
                "output" => outputs.push((self.path(part, &xml.text(part)?)?, part)),
                "jar" | "command" | "reducer" | "combiner" | "main-class" => drop(xml.text(part)?),
                _ => {}
            }
            if name != "input" && name != "output" && seen.insert(name, part).is_some() {
                return Err(xml.error(part, format!("found a second <{name}> in job {id:?}, expected one")));
            }
        }
        match (seen.get("jar"), seen.get("command"), seen.get("main-class")) {
            (Some(_), None, Some(_)) | (None, Some(_), None) => {}
            (Some(jar), None, None) => return Err(xml.error(*jar, "found <jar> without <main-class>")),
            (None, None, _) => {
                return Err(
                    xml.error(node, format!("found job {id:?} without <jar>, expected <jar> or <command>"))
                );
            }
            (_, Some(command), _) => {
                return Err(xml.error(
                    *command,
                    "found <command> beside <jar> or <main-class>, expected one or the other",
                ));
            }
        }
        let counts = match seen.get("configuration") {
            Some(&configuration) => self.counts(configuration)?,
            None => [None; 2],
        };
        let (map, max_map) = self.phase(seen.get("maps").copied(), counts[0])?;
        let (reduce, max_reduce) = self.phase(seen.get("reduces").copied(), counts[1])?;
        if map.is_none() && reduce.is_none() && !seen.contains_key("command") {
            let what = format!(
                "found job {id:?} without tasks, expected <maps tasks=\"…\" seconds=\"…\"/> or <reduces …/>"
            );
            return Err(xml.error(node, what));
        }
        let run = self.run(&seen, &inputs, &outputs, reduce.as_ref())?;
        let max_slots = PerPhase { map: max_map, reduce: max_reduce };
        Ok(Job {
            node,
            inputs,
            outputs,
            draft: JobDraft { id, map, reduce, max_slots, run, ..JobDraft::default() },
        })
    }

    /// The `run` section of a job with a command: the command is its mapper. Without a <reducer>, reduces
    /// pass their input on, as in Hadoop. A job that cannot run (not exactly one output) is only planned.
    fn run(
        &self,
        seen: &BTreeMap<&str, Node<'_, '_>>,
        inputs: &[NamedPath<'_, '_>],
        outputs: &[NamedPath<'_, '_>],
        reduce: Option<&PhaseDraft>,
    ) -> Result<Option<RunDraft>, TraceError> {
        let text = |name: &str| seen.get(name).map(|&node| self.xml.text(node)).transpose();
        let (mapper, reducer, combiner) = (text("command")?, text("reducer")?, text("combiner")?);
        for name in ["reducer", "combiner"] {
            if let Some(&node) = seen.get(name).filter(|_| mapper.is_none()) {
                return Err(self.xml.error(node, format!("found <{name}> without <command>, expected both")));
            }
        }
        let (Some(mapper), [(output, _)]) = (mapper, outputs) else { return Ok(None) };
        let reducers = reduce.map(|phase| match phase.tasks {
            TasksDraft::Uniform { tasks, .. } => tasks,
            _ => 1,
        });
        let reducer = reducer.or_else(|| reducers.map(|_| "cat".to_owned()));
        Ok(Some(RunDraft {
            inputs: inputs.iter().map(|(path, _)| path.clone()).collect(),
            reducers,
            ..RunDraft::new(RunWork::Commands { mapper, reducer, combiner }, output.clone())
        }))
    }

    /// Task counts that the configuration gives.
    fn counts(&self, configuration: Node<'_, '_>) -> Result<[Option<u32>; 2], TraceError> {
        let properties = self.xml.properties(configuration)?;
        let mut counts = [None; 2];
        for (names, count) in TASK_COUNTS.iter().zip(&mut counts) {
            for (name, value) in properties.iter().filter(|(name, _)| names.contains(&name.as_str())) {
                let what = || format!("found {name} = {value:?}, expected a whole number");
                *count = Some(value.parse().map_err(|_| self.xml.error(configuration, what()))?);
            }
        }
        Ok(counts)
    }

    /// A phase and its most slots, from its element and the configuration's count.
    fn phase(
        &self,
        node: Option<Node<'_, '_>>,
        configured: Option<u32>,
    ) -> Result<(Option<PhaseDraft>, Option<u32>), TraceError> {
        let Some(node) = node else { return Ok((None, None)) };
        let name = node.tag_name().name();
        let [tasks, seconds, max] = self.xml.attributes(node, ["tasks", "seconds", "max"])?;
        let count = |attribute: &str, value: Option<String>| match value {
            None => Ok(None),
            Some(value) => value.parse().map(Some).map_err(|_| {
                self.xml
                    .error(node, format!("found {attribute}={value:?} of <{name}>, expected a whole number"))
            }),
        };
        let tasks: u32 = count("tasks", tasks)?.or(configured).ok_or_else(|| {
            let what =
                format!("found <{name}> without tasks, expected tasks=\"…\" or a count in <configuration>");
            self.xml.error(node, what)
        })?;
        let seconds = self.required(node, "seconds", seconds)?;
        let seconds = self.seconds(node, "seconds", Some(seconds))?.unwrap_or(0.0);
        let phase = (tasks > 0).then(|| PhaseDraft::from(TasksDraft::Uniform { tasks, seconds }));
        Ok((phase, count("max", max)?))
    }

    fn required(&self, node: Node<'_, '_>, name: &str, value: Option<String>) -> Result<String, TraceError> {
        value.filter(|value| !value.is_empty()).ok_or_else(|| {
            self.xml.error(
                node,
                format!("found <{}> without {name}, expected {name}=\"…\"", node.tag_name().name()),
            )
        })
    }

    /// A time of an attribute, in seconds.
    fn seconds(
        &self,
        node: Node<'_, '_>,
        name: &str,
        value: Option<String>,
    ) -> Result<Option<f64>, TraceError> {
        self.not_negative(node, name, value, |text| duration::parse_option(text).ok(), duration::EXPECTED)
    }

    /// A number from 0, of an attribute.
    fn not_negative(
        &self,
        node: Node<'_, '_>,
        name: &str,
        value: Option<String>,
        read: impl Fn(&str) -> Option<f64>,
        expected: &str,
    ) -> Result<Option<f64>, TraceError> {
        let Some(value) = value else { return Ok(None) };
        let number = read(&value).filter(|number| (0.0..=SECONDS_MAX).contains(number));
        number.map(Some).ok_or_else(|| {
            self.xml.error(node, format!("found {name}={value:?}, expected {expected}, from 0"))
        })
    }

    fn path(&self, node: Node<'_, '_>, path: &str) -> Result<String, TraceError> {
        let plain = path.trim_end_matches('/');
        if plain.is_empty() {
            return Err(self.xml.error(node, format!("found path {path:?}, expected one below the root")));
        }
        Ok(plain.to_owned())
    }

    /// Finds the predecessors of each job.
    fn order(
        &mut self,
        jobs: &mut [Job<'_, '_>],
        datasets: &BTreeMap<String, Node<'_, '_>>,
    ) -> Result<(), TraceError> {
        let xml = self.xml;
        let mut writers: BTreeMap<String, usize> = BTreeMap::new();
        for (k, job) in jobs.iter().enumerate() {
            for (path, node) in &job.outputs {
                if let Some((other, &writer)) = paths_above_and_below(&writers, path).next() {
                    let (other_job, id) = (&jobs[writer].draft.id, &job.draft.id);
                    let line = xml.place(jobs[writer].node.range().start).line;
                    let what = format!(
                        "found {path:?} written by job {id:?}, expected one writer; job {other_job:?} at line {line} writes {other:?}"
                    );
                    return Err(xml.error(*node, what));
                }
                if let Some(dataset) = datasets.get(path) {
                    let line = xml.place(dataset.range().start).line;
                    let what = format!(
                        "found {path:?} written by job {:?}, expected no job to write the <dataset> of line {line}",
                        job.draft.id
                    );
                    return Err(xml.error(*node, what));
                }
                writers.insert(path.clone(), k);
            }
        }
        let mut names: BTreeMap<&str, Node<'_, '_>> = BTreeMap::new();
        let mut after: Vec<Vec<(usize, Node<'_, '_>)>> = Vec::new();
        for job in jobs.iter() {
            if let Some(first) = names.insert(&job.draft.id, job.node) {
                let line = xml.place(first.range().start).line;
                return Err(xml.error(
                    job.node,
                    format!("found a second job {:?}, the first is at line {line}", job.draft.id),
                ));
            }
            let mut mine = Vec::new();
            for (path, node) in &job.inputs {
                let before = mine.len();
                mine.extend(paths_above_and_below(&writers, path).map(|(_, &writer)| (writer, *node)));
                if mine.len() == before && paths_above_and_below(datasets, path).next().is_none() {
                    self.missing(path, *node)?;
                }
            }
            mine.sort_by_key(|&(writer, _)| writer);
            mine.dedup_by_key(|&mut (writer, _)| writer);
            after.push(mine);
        }
        if let Some((k, node)) = cycle(&after) {
            let what = format!(
                "found a cycle: job {:?} reads data that is made from its own output",
                jobs[k].draft.id
            );
            return Err(xml.error(node, what));
        }
        let ids: Vec<String> = jobs.iter().map(|job| job.draft.id.clone()).collect();
        for (job, after) in jobs.iter_mut().zip(after) {
            job.draft.after = after.into_iter().map(|(writer, _)| ids[writer].clone()).collect();
            for input in job.draft.run.iter_mut().flat_map(|run| &mut run.inputs) {
                // The part before a slash is a flow if an input names a job.
                if let Some(&writer) = writers.get(input)
                    && !ids[writer].contains('/')
                {
                    *input = format!("@{}", ids[writer]);
                }
            }
        }
        Ok(())
    }

    /// An input that no job writes and no dataset declares.
    fn missing(&mut self, path: &str, node: Node<'_, '_>) -> Result<(), TraceError> {
        if self.assume_missing {
            let line = self.xml.place(node.range().start).line;
            self.diagnostics.add(line, "input that no job writes and no dataset declares, assumed to exist");
            return Ok(());
        }
        let what = format!(
            "found input {path:?} that no job writes, expected <dataset path={path:?}/> if it exists in advance (or import option missing-inputs = assume)"
        );
        Err(self.xml.error(node, what))
    }
}

/// The entries of a table of paths that are the path, lie above it or below it.
fn paths_above_and_below<'t, V>(
    table: &'t BTreeMap<String, V>,
    path: &str,
) -> impl Iterator<Item = (&'t String, &'t V)> {
    let above: Vec<&str> = path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]).collect();
    let below = format!("{path}/");
    let inside = table.range(below.clone()..).take_while(move |(key, _)| key.starts_with(&below));
    let above: Vec<_> = above.into_iter().filter_map(|path| table.get_key_value(path)).collect();
    above.into_iter().chain(inside)
}

/// A job of a cycle, and its input from another job of the cycle.
fn cycle<N: Copy>(after: &[Vec<(usize, N)>]) -> Option<(usize, N)> {
    let before: Vec<Vec<usize>> =
        after.iter().map(|list| list.iter().map(|&(before, _)| before).collect()).collect();
    let waits = never_ready(&before);
    // A walk backwards among the remaining jobs finds a cycle.
    let waiting = |k: usize| after[k].iter().find(|&&(before, _)| waits[before]);
    let mut at = (0..after.len()).find(|&k| waits[k])?;
    for _ in 0..after.len() {
        at = waiting(at)?.0;
    }
    waiting(at).map(|&(_, node)| (at, node))
}

#[cfg(test)]
mod tests;
