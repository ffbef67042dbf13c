//! Resolves a flow file into job plans: the inputs of each job, the numbers of maps and reduces, and
//! estimated durations.
//!
//! The number of tasks is known before the run: maps of files follow from their splits, and a job that reads
//! another's output has one map for each of its part files. A missing input becomes a map that cannot run:
//! [`preflight`](mod@crate::spec::preflight) reports it before the run, and only its own flow fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, RunDraft, RunWork};
use slackline_task::attempt::command;
use slackline_task::base::error::TaskError;
use slackline_task::base::source::Source;
use slackline_task::input::input_list::InputList;
use slackline_task::input::pattern::Pattern;
use slackline_task::input::{pattern, split};
use slackline_task::process::spec::{Job, Split};
use slackline_task::programs;
use slackline_task::shuffle::part::PARTS_MAX;

use crate::spec::definition::Surroundings;
use crate::spec::job_cost::JobHistory;
use crate::spec::job_index::{JobIndex, job_order};
use crate::spec::job_plan::{Inputs, JobPlan, JobRef, file_name, job_of};
use crate::spec::plans::Plans;
use crate::spec::real_names::{RealNames, plain};
use crate::spec::repeated;

/// The most flows of a workload, and maps of a job: longer lists are surely a mistake.
const MANY: usize = 100_000;

/// A workload whose tasks are known.
#[derive(Clone, Debug, Default)]
pub struct ResolvedWorkload {
    /// The workload with all phases; each phase lists its tasks one by one.
    pub draft: Draft,
    /// Its jobs, in the order of the draft's flows and jobs.
    pub jobs: Vec<JobPlan>,
    /// For each job, the place where the document says what it runs, such as `flows[0].jobs[2].run`.
    pub places: Vec<String>,
    /// For each job, the jobs whose output it reads.
    pub reads: Vec<Vec<usize>>,
    /// The directory in the state directory with placeholders for remote files, if there are any.
    pub mirror: Option<PathBuf>,
    /// Whether files are compared by content.
    pub hash: bool,
    /// Whether its tasks run on several machines, and what these share.
    pub spread: Option<Spread>,
    /// Warnings for the user, such as a file that a job reads twice.
    pub warnings: Vec<String>,
}

impl ResolvedWorkload {
    /// Sets the directory of placeholders. A placeholder is created again in every session, so its identity
    /// says nothing about the remote file.
    pub fn set_mirror(&mut self, mirror: PathBuf) {
        for job in &mut self.jobs {
            let stand_ins = job.inputs.sources.iter_mut().filter(|(path, _)| path.starts_with(&mirror));
            stand_ins.for_each(|(_, source)| source.forget_identity());
        }
        self.mirror = Some(mirror);
    }
}

/// A text in which names of placeholders are replaced by those of the remote files.
pub fn without_mirror(mirror: &Path, text: &str) -> String {
    let directory = std::env::current_dir().unwrap_or_default();
    let relative = mirror.strip_prefix(directory).ok().map(Path::to_owned);
    let roots = [Some(mirror.to_owned()), relative].into_iter().flatten();
    roots.fold(text.to_owned(), |text, root| {
        let root = format!("{}/", root.display());
        let mut pieces = text.split(root.as_str());
        let mut words = pieces.next().unwrap_or_default().to_owned();
        // The first directory of a mirror is the scheme of a URI.
        pieces.for_each(|piece| words.push_str(&piece.replacen('/', "://", 1)));
        words
    })
}

/// The shared storage of a run's machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// The directory of map output; `None` for the state directory, or for the directory in use.
    pub shared: Option<PathBuf>,
}

/// The settings by which jobs find their input.
#[derive(Clone, Copy, Debug)]
pub struct InputRules<'a> {
    /// About how many bytes of a file each map reads.
    pub split_bytes: u64,
    /// Whether inputs are compared by content, and not by size and time alone.
    pub hash: bool,
    /// The directory that relative paths start from: that of the process.
    pub directory: &'a Path,
    /// The directory of the outputs of commands that name none.
    pub outputs: &'a Path,
}

/// The reason why a flow file cannot run.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ResolveError {
    /// The place in the document, such as `flows[0].jobs[2]`.
    pub path: String,
    /// The value found and the value expected.
    pub problem: String,
}

/// Finds the tasks of every job. A recurring flow becomes one flow per copy, each with separate outputs
/// (`out/words-0`, `out/words-1`, …). `past` has the durations of earlier runs of the jobs. O(files + tasks).
///
/// # Errors
/// The first job that can never run: no `run` section, an unknown program, an output that two jobs write,
/// flows that read from each other in a cycle.
pub fn resolve(
    draft: &Draft,
    rules: InputRules<'_>,
    past: &JobHistory,
) -> Result<ResolvedWorkload, ResolveError> {
    let (origins, mut flows): (Vec<usize>, Vec<FlowDraft>) = expanded(&draft.flows)?.into_iter().unzip();
    for flow in &mut flows {
        set_outputs(flow, rules.outputs);
    }
    let index = JobIndex::new(&flows);
    let mut outputs = Outputs::default();
    let mut reads: Vec<(String, String, PathBuf)> = Vec::new();
    let mut plans = Plans::new(&flows);
    let in_cycle = |[flow, other]: [usize; 2]| ResolveError {
        path: format!("flows[{}]", origins[flow]),
        problem: format!(
            "dependency cycle: flows {:?} and {:?} read from each other",
            flows[flow].id, flows[other].id
        ),
    };
    for f in index.flow_order(&flows).map_err(in_cycle)? {
        for at in job_order(&flows[f].jobs) {
            let (flow, path) = (&flows[f], format!("flows[{}].jobs[{at}]", origins[f]));
            let job = &flow.jobs[at];
            let error = |problem: String| ResolveError { path: format!("{path}.run"), problem };
            let Some(run) = &job.run else {
                return Err(error(format!(
                    "found no run section in job {:?}, expected run = {{ program = \"…\" }} or run = {{ mapper = \"…\" }}",
                    job.id
                )));
            };
            let name = JobRef { flow: &flow.id, job: &job.id };
            let earlier = PlanContext { index: &index, plans: &plans, flow: f, rules };
            let plan = earlier.plan(name, run).map_err(error)?;
            outputs.reserve(&plan).map_err(error)?;
            let files =
                plan.inputs.maps.iter().flatten().filter(|s| !run.inputs[s.input as usize].starts_with('@'));
            let mut files: Vec<PathBuf> = files.map(|split| split.path.clone()).collect();
            files.dedup();
            let own = run.inputs.iter().filter(|input| !input.starts_with('@')).map(PathBuf::from);
            let by = format!("{}/{}", flow.id, job.id);
            reads.extend(
                files.into_iter().chain(own).map(|file| (format!("{path}.run.inputs"), by.clone(), file)),
            );
            plans.add(f, at, plan);
        }
    }
    let reads_by_job = index.read_jobs(&flows);
    let jobs = plans.into_jobs(&mut flows, past);
    for (path, by, file) in reads {
        outputs.check_input(&file, &by).map_err(|problem| ResolveError { path, problem })?;
    }
    let of_flow = |(flow, origin): (&FlowDraft, usize)| {
        (0..flow.jobs.len()).map(move |at| format!("flows[{origin}].jobs[{at}].run"))
    };
    let places = flows.iter().zip(origins).flat_map(of_flow).collect();
    let (warnings, hash) = (repeated::warnings(&jobs), rules.hash);
    let draft = draft.with_flows(flows);
    let (mirror, spread) = (None, None);
    Ok(ResolvedWorkload { draft, jobs, places, reads: reads_by_job, mirror, hash, spread, warnings })
}

/// The outputs of all jobs, with one name for each directory.
#[derive(Default)]
struct Outputs {
    by_directory: BTreeMap<PathBuf, String>,
    names: RealNames,
}

impl Outputs {
    /// Adds the output of a job, which must not overlap another output.
    fn reserve(&mut self, plan: &JobPlan) -> Result<(), String> {
        let output = self.names.of(&plan.output);
        // Every output below a directory follows it, and the directory that contains it comes before it.
        let below =
            self.by_directory.range(output.clone()..).next().filter(|(other, _)| other.starts_with(&output));
        let above = output.ancestors().find_map(|path| self.by_directory.get_key_value(path));
        if let Some((other, by)) = below.or(above) {
            return Err(format!(
                "found the output {}, which overlaps {} of job {by}; give each job its own directory",
                output.display(),
                other.display()
            ));
        }
        self.by_directory.insert(output, format!("{}/{}", plan.flow, plan.job));
        Ok(())
    }

    /// Refuses an input that a job is going to write, or that contains such an output: only `@job` makes a
    /// job wait for it.
    fn check_input(&self, file: &Path, reader: &str) -> Result<(), String> {
        let path = self.names.of(file);
        if let Some((_, by)) = path.ancestors().find_map(|path| self.by_directory.get_key_value(path)) {
            return Err(format!(
                "found the input {}, which job {by} writes; use \"@\" and the id of an earlier job instead, so that this job waits for it",
                file.display()
            ));
        }
        let below =
            self.by_directory.range(path.clone()..).next().filter(|(other, _)| other.starts_with(&path));
        let held = below.filter(|_| path.is_dir()).or_else(|| self.matched(&path));
        let Some((output, by)) = held else { return Ok(()) };
        let whose =
            if by == reader { "the job's own output".to_owned() } else { format!("the output of job {by}") };
        Err(format!(
            "found the input {}, which holds {whose}, {}; choose an output outside of the inputs",
            file.display(),
            output.display()
        ))
    }

    /// The first output that a pattern matches, or that contains it.
    fn matched(&self, path: &Path) -> Option<(&PathBuf, &String)> {
        let text = path.to_str().filter(|text| pattern::is_pattern(text))?;
        let pattern = Pattern::new(text).ok()?;
        let is_matched = |output: &Path| output.ancestors().any(|path| pattern.matches(path));
        self.by_directory.iter().find(|(output, _)| is_matched(output))
    }
}

/// Gives each command without an output one among the files of the run.
fn set_outputs(flow: &mut FlowDraft, outputs: &Path) {
    for job in &mut flow.jobs {
        let output = || outputs.join(file_name(&flow.id, &job.id)).display().to_string();
        if let Some(run) = &mut job.run
            && matches!(run.work, RunWork::Command { .. })
        {
            run.output.get_or_insert_with(output);
        }
    }
}

/// Refuses outputs among the run's own files, and a state directory in an output.
///
/// # Errors
/// The first of them.
pub(crate) fn refuse_state(
    resolved: &ResolvedWorkload,
    own: [&Path; 2],
    outputs: &Path,
) -> Result<(), ResolveError> {
    let names = RealNames::default();
    let (own, mirror) = (own.map(plain), resolved.mirror.as_deref().map(plain));
    let outputs = plain(outputs);
    for (plan, place) in resolved.jobs.iter().zip(&resolved.places) {
        let output = names.of(&plan.output);
        let is_elsewhere = mirror.iter().chain([&outputs]).any(|apart| output.starts_with(apart));
        let overlaps = |own: &&PathBuf| output.starts_with(own) || own.starts_with(&output);
        if let Some(own) = own.iter().find(overlaps).filter(|_| !is_elsewhere) {
            return Err(ResolveError {
                path: format!("{place}.output"),
                problem: format!(
                    "found the output {}, which overlaps {} with the run's own files; choose separate directories",
                    output.display(),
                    own.display()
                ),
            });
        }
    }
    Ok(())
}

/// The context for the plan of a job.
#[derive(Clone, Copy)]
struct PlanContext<'a> {
    index: &'a JobIndex<'a>,
    /// The plans of the jobs that may be read from.
    plans: &'a Plans,
    /// The flow of the job.
    flow: usize,
    rules: InputRules<'a>,
}

impl PlanContext<'_> {
    fn plan(self, name: JobRef<'_>, run: &RunDraft) -> Result<JobPlan, String> {
        let work = job_of(&run.work);
        check_text(run)?;
        let shape = programs::describe(&work).map_err(|e| e.to_string())?;
        let maps = self.maps(&work, run)?;
        let has_reducer = match &run.work {
            RunWork::Program { .. } => !shape.is_map_only,
            RunWork::Commands { reducer, .. } => reducer.is_some(),
            RunWork::Command { .. } => false,
            RunWork::Jar { .. } => true,
        };
        let reducers = run.reducers.unwrap_or(u32::from(has_reducer));
        if reducers > PARTS_MAX {
            return Err(format!("found {reducers} reducers, expected at most {PARTS_MAX}"));
        }
        if maps.len() > MANY {
            let found = maps.len();
            return Err(format!("found {found} maps, expected at most {MANY}: use larger splits"));
        }
        if reducers > 0 && !has_reducer {
            return Err(format!("found {reducers} reducers for a map-only job, expected none"));
        }
        if reducers == 0 && shape.needs_reducers {
            return Err(
                "found no reducers, expected 1 or more: they write the output of the program".to_owned()
            );
        }
        let around = Surroundings {
            directory: self.rules.directory,
            reducers,
            split_bytes: reads_files(run).then_some(self.rules.split_bytes),
        };
        check_size(run, &maps).map_err(|e| e.to_string())?;
        let inputs = Inputs { sources: self.sources(run, &maps), maps };
        JobPlan::new(name, run, inputs, around).map_err(|e| e.to_string())
    }

    /// The files that maps read, except files that other jobs make.
    fn sources(self, run: &RunDraft, maps: &[Vec<Split>]) -> BTreeMap<PathBuf, Source> {
        let mut sources = BTreeMap::new();
        for split in maps.iter().flatten() {
            // Parts of other jobs are most inputs of large flows, and their paths need no search.
            let is_part = run.inputs[split.input as usize].starts_with('@');
            let is_made = || is_part || self.plans.write(&split.path);
            if sources.contains_key(&split.path) || is_made() {
                continue;
            }
            let found = if self.rules.hash { Source::hashed(&split.path) } else { Source::now(&split.path) };
            // A file that does not exist yet has no entry, and is an obstacle.
            sources.extend(found.ok().map(|source| (split.path.clone(), source)));
        }
        sources
    }

    /// The input of each map: splits of files, and parts of earlier jobs, in the order of the inputs.
    fn maps(self, work: &Job, run: &RunDraft) -> Result<Vec<Vec<Split>>, String> {
        let shape = programs::describe(work).map_err(|e| e.to_string())?;
        programs::check_count(&shape, run.inputs.len()).map_err(|e| e.to_string())?;
        if let Some(maps) = shape.maps {
            return Ok(vec![Vec::new(); maps as usize]);
        }
        let is_whole = work.has_one_map();
        // Hadoop would cut parts, whose sizes are unknown, and has one rule for all inputs of a job.
        let is_uncut = work.is_jar() && run.inputs.iter().any(|input| input.starts_with('@'));
        let split_bytes = if is_whole || is_uncut { u64::MAX } else { self.rules.split_bytes };
        let mut maps = Vec::new();
        for (k, input) in run.inputs.iter().enumerate() {
            if input.starts_with('@') {
                maps.extend(self.parts(input)?.into_iter().map(|path| vec![whole(path, k as u32)]));
                continue;
            }
            match split::of_inputs(std::slice::from_ref(input), split_bytes) {
                Ok(found) => maps.extend(found.into_iter().map(|splits| numbered(splits, k as u32))),
                Err(TaskError::Missing { .. } | TaskError::File { .. }) => {
                    maps.push(vec![whole(PathBuf::from(input), k as u32)]);
                }
                Err(other) => return Err(other.to_string()),
            }
        }
        // A plain command is one task with all files.
        if is_whole {
            return Ok(split::whole_files(maps));
        }
        if work.is_jar() {
            // Hadoop never puts two files into one map, and a job without input has its own maps.
            let maps: Vec<Vec<Split>> = maps.into_iter().flatten().map(|split| vec![split]).collect();
            return Ok(if maps.is_empty() { vec![Vec::new()] } else { maps });
        }
        Ok(maps)
    }

    /// The part files of the job that an input names.
    fn parts(self, input: &str) -> Result<Vec<PathBuf>, String> {
        let named = self.index.upstream(self.flow, input);
        let plan = named.and_then(|(flow, job)| self.plans.get(flow, job));
        let plan = plan.ok_or_else(|| {
            format!(
                "found the input {input:?}, expected @ and the id of an earlier job of the flow, or @flow/job"
            )
        })?;
        Ok((0..plan.parts()).map(|part| plan.output.join(plan.part(part))).collect())
    }
}

/// Whether the maps of a job follow from the size of files.
fn reads_files(run: &RunDraft) -> bool {
    let is_cut = !matches!(run.work, RunWork::Command { .. });
    is_cut && run.inputs.iter().any(|input| !input.starts_with('@'))
}

/// Refuses texts that no command or file name can have.
fn check_text(run: &RunDraft) -> Result<(), String> {
    let Some(output) = &run.output else {
        return Err("missing output, the directory for the results of the job".to_owned());
    };
    let mut texts = vec![("output", output.as_str())];
    texts.extend(run.inputs.iter().map(|input| ("inputs", input.as_str())));
    if let RunWork::Command { command } = &run.work {
        texts.push(("command", command));
    }
    if let RunWork::Commands { mapper, reducer, combiner } = &run.work {
        texts.push(("mapper", mapper));
        texts.extend(reducer.as_deref().map(|text| ("reducer", text)));
        texts.extend(combiner.as_deref().map(|text| ("combiner", text)));
    }
    match texts.into_iter().find(|(_, text)| text.trim().is_empty() || text.contains('\0')) {
        Some((name, text)) => Err(format!("{name}: found {text:?}, expected a text")),
        None => Ok(()),
    }
}

/// Refuses commands that cannot be started, or cannot be given the list of their inputs.
fn check_size(run: &RunDraft, maps: &[Vec<Split>]) -> Result<(), TaskError> {
    let setting = &run.setting;
    match &run.work {
        RunWork::Command { command } => {
            let files = maps.iter().flatten().map(|split| split.path.as_path());
            let list = InputList::new(command, files, setting.cwd.is_some())?;
            command::check_size(&[command], &setting.env, list.variable().len())
        }
        RunWork::Commands { mapper, reducer, combiner } => {
            let others = reducer.iter().chain(combiner).map(String::as_str);
            let commands: Vec<&str> = others.chain([mapper.as_str()]).collect();
            command::check_size(&commands, &setting.env, 0)
        }
        RunWork::Program { .. } | RunWork::Jar { .. } => Ok(()),
    }
}

fn whole(path: PathBuf, input: u32) -> Split {
    Split { path, offset: 0, length: None, input, source: None, copy: None }
}

fn numbered(splits: Vec<Split>, input: u32) -> Vec<Split> {
    splits.into_iter().map(|split| Split { input, ..split }).collect()
}

/// Recurring flows as one flow per copy, each with the index of its recurring flow.
fn expanded(flows: &[FlowDraft]) -> Result<Vec<(usize, FlowDraft)>, ResolveError> {
    let mut all = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        let Some(repeat) = flow.repeat else {
            all.push((index, flow.clone()));
            continue;
        };
        if all.len() + repeat.times as usize > MANY {
            return Err(ResolveError {
                path: format!("flows[{index}].repeat.times"),
                problem: format!("found {} more flows, expected at most {MANY} in all", repeat.times),
            });
        }
        for k in 0..repeat.times {
            let shift = f64::from(k) * repeat.every;
            let mut copy = FlowDraft {
                id: format!("{}#{k}", flow.id),
                release: flow.release + shift,
                deadline: flow.deadline.map(|d| d + shift),
                repeat: None,
                ..flow.clone()
            };
            for run in copy.jobs.iter_mut().filter_map(|job| job.run.as_mut()) {
                run.output = run.output.take().map(|output| format!("{}-{k}", output.trim_end_matches('/')));
            }
            all.push((index, copy));
        }
    }
    Ok(all)
}
