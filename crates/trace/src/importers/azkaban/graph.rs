//! Converts the nodes of a flow, embedded flows included, into jobs and their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use slackline_model::Problem;
use slackline_model::names::did_you_mean;

use crate::importers::dag::{bridge, never_ready};

/// Most jobs of a flow after the expansion of embedded flows.
const JOBS_MAX: usize = 100_000;

/// A node of a flow, in either version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    pub(super) name: String,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    pub(super) depends_on: Option<Vec<String>>,
    pub(super) condition: Option<IgnoredAny>,
    /// Of an embedded flow.
    pub(super) nodes: Option<Vec<Node>>,
}

impl Node {
    fn depends_on(&self) -> &[String] {
        self.depends_on.as_deref().unwrap_or_default()
    }
}

pub(super) struct FlatGraph {
    pub(super) jobs: Vec<Job>,
    /// The predecessors of each job.
    pub(super) after: Vec<Vec<usize>>,
}

pub(super) struct Job {
    /// With the names of the flows that it is in.
    pub(super) name: String,
    pub(super) is_noop: bool,
    pub(super) is_conditional: bool,
    /// The place in the document.
    pub(super) path: String,
}

/// Nodes in the order of the document: jobs, and the begin and end of embedded flows.
#[derive(Default)]
struct Graph {
    /// `None` for nodes that are no jobs.
    nodes: Vec<Option<Job>>,
    after: Vec<Vec<usize>>,
}

impl FlatGraph {
    /// The graph of a flow's nodes.
    ///
    /// # Errors
    /// Names of no node or of two; cycles; more jobs than the limit.
    pub(super) fn of(nodes: &[Node]) -> Result<Self, Problem> {
        let mut graph = Graph::default();
        graph.add(nodes, "", "nodes")?;
        let Graph { nodes, after } = graph;
        let after = bridge(&after, |node| nodes[node].is_some());
        // The index of each node's job.
        let mut places = Vec::new();
        let mut n = 0;
        for node in &nodes {
            places.push(n);
            n += usize::from(node.is_some());
        }
        let of_jobs = nodes.iter().zip(after).filter(|(node, _)| node.is_some());
        let after = of_jobs.map(|(_, after)| after.into_iter().map(|node| places[node]).collect()).collect();
        Ok(Self { jobs: nodes.into_iter().flatten().collect(), after })
    }
}

impl Graph {
    fn node(&mut self, job: Option<Job>) -> usize {
        self.nodes.push(job);
        self.after.push(Vec::new());
        self.nodes.len() - 1
    }

    /// Adds the nodes of one flow; gives the first and the last node of each, which are one of a job.
    fn add(&mut self, nodes: &[Node], within: &str, path: &str) -> Result<Vec<(usize, usize)>, Problem> {
        let at = |k: usize, field: &str| format!("{path}[{k}]{field}");
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for (k, node) in nodes.iter().enumerate() {
            if names.insert(&node.name, k).is_some() {
                return Err(Problem {
                    path: at(k, ".name"),
                    what: format!("found {:?} a second time", node.name),
                });
            }
        }
        let mut before: Vec<Vec<usize>> = Vec::new();
        for (k, node) in nodes.iter().enumerate() {
            let find = |(i, name): (usize, &String)| {
                names.get(name.as_str()).copied().ok_or_else(|| Problem {
                    path: at(k, &format!(".dependsOn[{i}]")),
                    what: format!(
                        "found {name:?}, expected a node of the same flow{}",
                        did_you_mean(name, names.keys().copied())
                    ),
                })
            };
            before.push(node.depends_on().iter().enumerate().map(find).collect::<Result<_, _>>()?);
        }
        if let Some(cycle) = cycle(&before) {
            let list: Vec<&str> = cycle.iter().map(|&k| nodes[k].name.as_str()).collect();
            let what = format!("found jobs that wait for each other: {}", list.join(" after "));
            return Err(Problem { path: at(cycle[0], ".dependsOn"), what });
        }
        let mut spans = Vec::new();
        for (k, node) in nodes.iter().enumerate() {
            let name = if within.is_empty() { node.name.clone() } else { format!("{within}:{}", node.name) };
            spans.push(self.span(node, name, at(k, ""))?);
        }
        for (k, before) in before.iter().enumerate() {
            self.after[spans[k].0].extend(before.iter().map(|&before| spans[before].1));
        }
        Ok(spans)
    }

    /// Adds a node, with its embedded nodes.
    fn span(&mut self, node: &Node, name: String, path: String) -> Result<(usize, usize), Problem> {
        if self.nodes.len() > JOBS_MAX {
            return Err(Problem { path, what: format!("found more than {JOBS_MAX} jobs in embedded flows") });
        }
        let is_conditional = node.condition.is_some();
        let Some(inner) = &node.nodes else {
            let is_noop = node.kind == "noop";
            let job = self.node(Some(Job { name, is_noop, is_conditional, path }));
            return Ok((job, job));
        };
        let (begin, end) = (self.node(None), self.node(None));
        let waited_for: BTreeSet<&String> = inner.iter().flat_map(Node::depends_on).collect();
        let spans = self.add(inner, &name, &format!("{path}.nodes"))?;
        if spans.is_empty() {
            self.after[end].push(begin);
        }
        for (node, (first, last)) in inner.iter().zip(spans) {
            if node.depends_on().is_empty() {
                self.after[first].push(begin);
            }
            if !waited_for.contains(&node.name) {
                self.after[end].push(last);
            }
        }
        Ok((begin, end))
    }
}

/// Nodes that wait for each other, each for the next and the last for the first.
fn cycle(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let waits = never_ready(before);
    // From a node that is never ready, along nodes that are not, until one comes again.
    let mut way = vec![(0..before.len()).find(|&k| waits[k])?];
    loop {
        let last = *way.last()?;
        let other = *before[last].iter().find(|&&other| waits[other])?;
        if let Some(at) = way.iter().position(|&k| k == other) {
            return Some(way.split_off(at));
        }
        way.push(other);
    }
}
