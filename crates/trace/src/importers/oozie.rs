//! Workflows of Apache Oozie: `workflow.xml` (schemas 0.1 to 1.0), with `job.properties` and a side file
//! with durations, which Oozie does not know.
//!
//! - Actions become jobs; start, end, fork and join become the order of jobs.
//! - `ok` transitions are followed; `error` transitions, which handle failures, are ignored.
//! - Forks and joins must be paired; cycles and transitions to unknown nodes are errors, wherever they are.
//! - A decision takes the case that `cases` names, else the default, else, if the default leads
//!   straight to a kill, the first case that does not. Expressions are never evaluated.
//! - `${name}` is replaced by the value in `job.properties`, or else in `<parameters>`; unknown names stay.
//! - Task counts come from the side file (`actions`), else from the action's configuration. Durations come
//!   only from the side file; without an entry a task takes [`SECONDS_ASSUMED`]. `fs` and e-mail actions run
//!   within Oozie: one task of no time.
//!
//! Children: `graph` (from nodes to jobs), `side` (the files beside the workflow).

mod graph;
pub(super) mod side;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use roxmltree::Node;
use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, JobDraft, PhaseDraft, TasksDraft};
use slackline_model::params::{Param, Settings, Values};

use crate::importers::hadoop::TASK_COUNTS;
use crate::importers::importer::{Importer, Input, Output};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::source::SourceMap;
use crate::reading::xml;
use crate::reading::xml::{Xml, elements};

/// Seconds of a task without data: our assumption, a minute, the length of a typical Hadoop task.
pub(super) const SECONDS_ASSUMED: f64 = 60.0;

/// Actions that the Oozie server does itself, without a slot to speak of.
const IN_SERVER: [&str; 2] = ["fs", "email"];

/// Task durations, which workflows do not have.
pub(super) const ACTIONS: Param = Param::new(
    "actions",
    "",
    Values::TextOfFile,
    "TOML or JSON with the task counts and seconds of actions, which a workflow does not have",
);

pub(super) const IMPORTER: Importer = Importer {
    params: &[
        Param::new("properties", "", Values::TextOfFile, "job.properties of the workflow"),
        ACTIONS,
        Param::new(
            "cases",
            "",
            Values::Text("decision=target after commas"),
            "the path to take at each decision",
        ),
    ],
    // An empty text is no side file.
    shaped: |settings, name| !settings.text(name).is_empty(),
    ..Importer::new(
        "oozie",
        "a workflow.xml of Oozie",
        |text| xml::root(text) == Some("workflow-app"),
        import,
    )
};

struct Item<'a, 'd> {
    name: String,
    node: Node<'a, 'd>,
    kind: Kind<'a, 'd>,
}

/// The kind of a node, with its transitions: the name of the target, and the element that names it.
enum Kind<'a, 'd> {
    Start(Transition<'a, 'd>),
    End,
    Kill,
    Action { ok: Transition<'a, 'd>, error: Transition<'a, 'd>, work: Option<Node<'a, 'd>> },
    Fork(Vec<Transition<'a, 'd>>),
    Join(Transition<'a, 'd>),
    Decision { cases: Vec<Transition<'a, 'd>>, default: Transition<'a, 'd> },
}

type Transition<'a, 'd> = (String, Node<'a, 'd>);

/// Reads a workflow into a draft without machines, of one flow released at 0.
///
/// # Errors
/// The first fault, with its line.
fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let xml = Xml::new(input.file, input.text);
    let document = xml.parse()?;
    let root = document.root_element();
    if root.tag_name().name() != "workflow-app" {
        return Err(xml.unknown(root, &["workflow-app"]));
    }
    let side = side::Side::read(settings.text("actions"))?;
    let cases = side::cases(settings.text("cases"))?;
    let mut reader = Reader {
        xml: &xml,
        properties: side::properties(settings.text("properties")),
        global: [None; 2],
        diagnostics: Diagnostics::default(),
    };
    let items = reader.items(root)?;
    let plan = graph::order(&items, &cases, &xml, &mut reader.diagnostics)?;
    let mut jobs = Vec::new();
    let mut marks = vec![("flows[0]".to_owned(), xml.place(root.range().start))];
    for (item, after) in plan {
        marks.push((format!("flows[0].jobs[{}]", jobs.len()), xml.place(items[item].node.range().start)));
        let after = after.into_iter().map(|before| items[before].name.clone()).collect();
        jobs.push(JobDraft { after, ..reader.job(&items[item], &side)? });
    }
    if jobs.is_empty() {
        return Err(xml.error(root, "found no action on the path from start to end, expected at least one"));
    }
    let actions = || items.iter().filter(|i| matches!(i.kind, Kind::Action { .. })).map(|i| i.name.as_str());
    side.refuse_unknown(actions)?;
    let name = root.attribute("name").map(|name| reader.expand(name.trim())).filter(|name| !name.is_empty());
    let mut flow = FlowDraft::new(name.unwrap_or_else(|| "workflow".to_owned()), jobs);
    flow.deadline = side.deadline();
    let draft = Draft { flows: vec![flow], ..Draft::default() };
    Ok(Output::new(draft, reader.diagnostics, SourceMap::marks(input.file, marks)))
}

struct Reader<'x> {
    xml: &'x Xml<'x>,
    /// The value of `${name}`.
    properties: BTreeMap<String, String>,
    /// Task counts of the `<global>` configuration.
    global: [Option<u32>; 2],
    diagnostics: Diagnostics,
}

impl Reader<'_> {
    /// The nodes, in the order of the file; the first is the start.
    fn items<'a, 'd>(&mut self, root: Node<'a, 'd>) -> Result<Vec<Item<'a, 'd>>, TraceError> {
        let mut items: Vec<Item<'a, 'd>> = Vec::new();
        let mut start = None;
        let mut names: BTreeMap<String, Node<'_, '_>> = BTreeMap::new();
        for node in elements(root) {
            let kind = match node.tag_name().name() {
                "parameters" => {
                    self.parameters(node)?;
                    continue;
                }
                "global" => {
                    if let Some(configuration) = child(node, "configuration") {
                        self.global = self.counts(configuration)?;
                    }
                    continue;
                }
                "start" if start.is_none() => Kind::Start(self.transition(node, "to")?),
                "start" => return Err(self.xml.error(node, "found a second <start>, expected one")),
                "end" => Kind::End,
                "kill" => Kind::Kill,
                "action" => self.action(node)?,
                "fork" => self.fork(node)?,
                "join" => Kind::Join(self.transition(node, "to")?),
                "decision" => self.decision(node)?,
                // Credentials and service level agreements have no effect on the order of jobs.
                "credentials" | "info" => continue,
                _ => {
                    let known = [
                        "parameters",
                        "global",
                        "credentials",
                        "start",
                        "action",
                        "fork",
                        "join",
                        "decision",
                        "kill",
                        "end",
                    ];
                    return Err(self.xml.unknown(node, &known));
                }
            };
            if let Kind::Start(_) = kind {
                start = Some(Item { name: String::new(), node, kind });
                continue;
            }
            let name = self.name(node, "name")?;
            if let Some(first) = names.insert(name.clone(), node) {
                let line = self.xml.place(first.range().start).line;
                return Err(self
                    .xml
                    .error(node, format!("found a second node {name:?}, the first is at line {line}")));
            }
            items.push(Item { name, node, kind });
        }
        let start = start.ok_or_else(|| self.xml.error(root, "found no <start>, expected one"))?;
        items.insert(0, start);
        Ok(items)
    }

    fn name(&self, node: Node<'_, '_>, attribute: &str) -> Result<String, TraceError> {
        let value = node.attribute(attribute).map(str::trim).filter(|value| !value.is_empty());
        let tag = node.tag_name().name();
        let missing = || format!("found <{tag}> without {attribute}, expected {attribute}=\"…\"");
        value.map(str::to_owned).ok_or_else(|| self.xml.error(node, missing()))
    }

    fn transition<'a, 'd>(
        &self,
        node: Node<'a, 'd>,
        attribute: &str,
    ) -> Result<Transition<'a, 'd>, TraceError> {
        Ok((self.name(node, attribute)?, node))
    }

    /// The only child of a name, and its transition.
    fn single_transition<'a, 'd>(
        &self,
        node: Node<'a, 'd>,
        name: &str,
    ) -> Result<Transition<'a, 'd>, TraceError> {
        let tag = node.tag_name().name();
        match child(node, name) {
            Some(found) => self.transition(found, "to"),
            None => Err(self.xml.error(node, format!("found <{tag}> without <{name}>, expected one"))),
        }
    }

    fn action<'a, 'd>(&self, node: Node<'a, 'd>) -> Result<Kind<'a, 'd>, TraceError> {
        let (ok, error) = (self.single_transition(node, "ok")?, self.single_transition(node, "error")?);
        let work = elements(node).find(|part| !matches!(part.tag_name().name(), "ok" | "error" | "info"));
        Ok(Kind::Action { ok, error, work })
    }

    fn fork<'a, 'd>(&self, node: Node<'a, 'd>) -> Result<Kind<'a, 'd>, TraceError> {
        let mut paths = Vec::new();
        for path in elements(node) {
            if path.tag_name().name() != "path" {
                return Err(self.xml.unknown(path, &["path"]));
            }
            paths.push(self.transition(path, "start")?);
        }
        if paths.len() < 2 {
            let what = format!("found a <fork> of {} paths, expected at least 2", paths.len());
            return Err(self.xml.error(node, what));
        }
        Ok(Kind::Fork(paths))
    }

    fn decision<'a, 'd>(&self, node: Node<'a, 'd>) -> Result<Kind<'a, 'd>, TraceError> {
        let switch = child(node, "switch")
            .ok_or_else(|| self.xml.error(node, "found a <decision> without <switch>, expected one"))?;
        let (mut cases, mut default) = (Vec::new(), None);
        for case in elements(switch) {
            match case.tag_name().name() {
                "case" => cases.push(self.transition(case, "to")?),
                "default" => default = Some(self.transition(case, "to")?),
                _ => return Err(self.xml.unknown(case, &["case", "default"])),
            }
        }
        let default = default
            .ok_or_else(|| self.xml.error(switch, "found a <switch> without <default>, expected one"))?;
        Ok(Kind::Decision { cases, default })
    }

    /// Defaults of properties; `job.properties` overrides them.
    fn parameters(&mut self, node: Node<'_, '_>) -> Result<(), TraceError> {
        for (name, value) in self.xml.properties(node)? {
            let value = self.expand(&value);
            self.properties.entry(name).or_insert(value);
        }
        Ok(())
    }

    fn expand(&self, text: &str) -> String {
        side::expand(text, &self.properties)
    }

    /// Task counts in a configuration; `None` for expressions.
    fn counts(&self, configuration: Node<'_, '_>) -> Result<[Option<u32>; 2], TraceError> {
        let properties = self.xml.properties(configuration)?;
        let count = |names: &[&str; 2]| {
            let mut of_name = properties.iter().filter(|(name, _)| names.contains(&name.as_str()));
            of_name.find_map(|(_, value)| self.expand(value).trim().parse().ok())
        };
        Ok([count(&TASK_COUNTS[0]), count(&TASK_COUNTS[1])])
    }

    /// The job of an action, without its predecessors.
    fn job(&mut self, item: &Item<'_, '_>, side: &side::Side) -> Result<JobDraft, TraceError> {
        let Kind::Action { work, .. } = &item.kind else { return Ok(JobDraft::default()) };
        let tag = work.map_or("", |work| work.tag_name().name());
        let in_server = IN_SERVER.contains(&tag);
        let configured = match work.and_then(|work| child(work, "configuration")) {
            Some(configuration) => self.counts(configuration)?,
            None => [None; 2],
        };
        let known = side.action(&item.name);
        // Only MapReduce has reduces by default: one.
        let usual = if tag == "map-reduce" { [1, 1] } else { [1, 0] };
        let mut draft = JobDraft { id: item.name.clone(), ..JobDraft::default() };
        for (k, phase) in [&mut draft.map, &mut draft.reduce].into_iter().enumerate() {
            let given = known.and_then(|known| known.tasks(k));
            // The global configuration is for jobs of the cluster.
            let global = self.global[k].filter(|_| !in_server);
            let tasks = given.or(configured[k]).or(global).unwrap_or(usual[k]);
            let seconds = known.and_then(|known| known.seconds(k)).unwrap_or(if in_server {
                0.0
            } else {
                SECONDS_ASSUMED
            });
            *phase = (tasks > 0).then(|| PhaseDraft::from(TasksDraft::Uniform { tasks, seconds }));
        }
        if known.is_none() && !in_server {
            let line = self.xml.place(item.node.range().start).line;
            let what =
                format!("action without durations in the side file, given {SECONDS_ASSUMED} s per task");
            self.diagnostics.add(line, &what);
        }
        if draft.map.is_none() && draft.reduce.is_none() {
            let what = format!("found action {:?} with neither maps nor reduces, expected a task", item.name);
            return Err(self.xml.error(item.node, what));
        }
        Ok(draft)
    }
}

fn child<'a, 'd>(node: Node<'a, 'd>, name: &str) -> Option<Node<'a, 'd>> {
    elements(node).find(|child| child.tag_name().name() == name)
}
