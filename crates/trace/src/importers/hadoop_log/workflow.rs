//! Groups the jobs of a log into flows: jobs of a workflow with a known order are one flow.
//!
//! Hadoop's jobs may have the id of a workflow, their own node in it, and the successors of each node
//! (`mapreduce.workflow.id`, `.node.name`, `.adjacency.NODE`). Jobs of one id with such edges become one
//! flow. Nodes that are no MapReduce jobs are in no log: their successors follow their predecessors. Without
//! edges the order is unknown, and each job is a flow.

use std::collections::{BTreeMap, BTreeSet};

use super::{ImportedJob, printable};
use crate::reading::diagnostic::Diagnostics;

/// The place of a job in a workflow.
#[derive(Debug, Default)]
pub(in crate::importers) struct Workflow {
    pub(in crate::importers) id: Option<String>,
    /// Its own name there.
    pub(in crate::importers) node: Option<String>,
    /// Nodes, each with its successors.
    pub(in crate::importers) edges: Vec<(String, Vec<String>)>,
    /// Ids of jobs that come after it.
    pub(in crate::importers) dependants: Vec<String>,
}

impl Workflow {
    /// Whether it has any edges.
    pub(super) fn is_known(&self) -> bool {
        !self.dependants.is_empty() || (self.id.is_some() && !self.edges.is_empty())
    }

    /// The workflow in the properties of a job's configuration.
    pub(in crate::importers) fn of_properties<'a>(
        properties: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut workflow = Self::default();
        for (name, value) in properties.filter(|(_, value)| !value.trim().is_empty()) {
            match name.strip_prefix("mapreduce.workflow.") {
                Some("id") => workflow.id = Some(value.to_owned()),
                Some("node.name") => workflow.node = Some(value.to_owned()),
                Some(name) => {
                    let from = name.strip_prefix("adjacency.").map(str::to_owned);
                    workflow.edges.extend(from.map(|from| (from, targets(value))));
                }
                None => {}
            }
        }
        workflow
    }
}

/// Reads the edges of a workflow as Hadoop writes them: `"a"="b,c" "b"="d" `. Other text is ignored.
pub(in crate::importers) fn adjacencies(text: &str) -> Vec<(String, Vec<String>)> {
    let mut texts = text.split('"').skip(1).step_by(2);
    let mut edges = Vec::new();
    while let (Some(from), Some(to)) = (texts.next(), texts.next()) {
        edges.push((from.to_owned(), targets(to)));
    }
    edges
}

/// Nodes with commas between them.
fn targets(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|node| !node.is_empty()).map(str::to_owned).collect()
}

/// Jobs that are one flow.
pub(super) struct Jobs {
    pub(super) id: String,
    pub(super) of: Vec<ImportedJob>,
}

/// Jobs as flows, in the order of the first job of each.
pub(super) fn flows(jobs: Vec<ImportedJob>, diagnostics: &mut Diagnostics) -> Vec<Jobs> {
    let groups = groups(&jobs);
    let mut flows: Vec<(Option<String>, Vec<ImportedJob>)> = Vec::new();
    let mut at = BTreeMap::new();
    for (job, group) in jobs.into_iter().zip(groups) {
        let mut begin = |group| {
            flows.push((group, Vec::new()));
            flows.len() - 1
        };
        let flow = if let Some(group) = group {
            *at.entry(group.clone()).or_insert_with(|| begin(Some(group)))
        } else {
            begin(None)
        };
        flows[flow].1.push(job);
    }
    let mut ids = BTreeSet::new();
    let mut made = Vec::with_capacity(flows.len());
    for (group, of) in flows {
        let id =
            group.filter(|_| of.len() > 1).and_then(|id| printable(&id)).unwrap_or_else(|| of[0].id.clone());
        // A workflow may have the name of a job, and two may differ only in unprintable characters.
        let id = if ids.contains(&id) { format!("{id} ({})", of[0].id) } else { id };
        ids.insert(id.clone());
        let of = if of.len() > 1 { ordered(of, diagnostics) } else { of };
        made.push(Jobs { id, of });
    }
    made
}

/// For each job, the name of its group, if it shares one with other jobs.
fn groups(jobs: &[ImportedJob]) -> Vec<Option<String>> {
    let has_edges: BTreeSet<&str> = jobs
        .iter()
        .filter(|job| !job.workflow.edges.is_empty())
        .filter_map(|job| job.workflow.id.as_deref())
        .collect();
    let of_workflow =
        |job: &ImportedJob| job.workflow.id.clone().filter(|id| has_edges.contains(id.as_str()));
    let mut groups: Vec<Option<String>> = jobs.iter().map(of_workflow).collect();
    let index: BTreeMap<&str, usize> =
        jobs.iter().enumerate().rev().map(|(k, job)| (job.id.as_str(), k)).collect();
    // Jobs that name their successors: the successors belong to the flow of the first of them. They usually
    // follow it, so one pass finds chains; edges that would need a second pass are ignored.
    for (k, job) in jobs.iter().enumerate() {
        for dependant in job.workflow.dependants.iter().filter_map(|id| index.get(id.as_str())) {
            if groups[*dependant].is_none() && *dependant != k {
                let group = groups[k].clone().unwrap_or_else(|| job.id.clone());
                groups[k] = Some(group.clone());
                groups[*dependant] = Some(group);
            }
        }
    }
    groups
}

/// Jobs of a flow with their names in it and their predecessors.
fn ordered(mut jobs: Vec<ImportedJob>, diagnostics: &mut Diagnostics) -> Vec<ImportedJob> {
    let mut parents = BTreeMap::<&str, BTreeSet<&str>>::new();
    let edges: Vec<(String, Vec<String>)> =
        jobs.iter_mut().flat_map(|job| std::mem::take(&mut job.workflow.edges)).collect();
    for (from, targets) in &edges {
        for target in targets {
            parents.entry(target).or_default().insert(from);
        }
    }
    let node = |job: &ImportedJob| job.workflow.node.as_deref().and_then(printable);
    let mut names = BTreeSet::new();
    for job in &mut jobs {
        let name = node(job).unwrap_or_else(|| job.id.clone());
        // A node that was tried again is in the log twice.
        job.draft.id = if names.contains(&name) { format!("{name} ({})", job.id) } else { name };
        names.insert(job.draft.id.clone());
    }
    // By node, its first job; by the id of a job, its name here.
    let mut job_of = BTreeMap::<&str, &str>::new();
    for job in jobs.iter().rev() {
        job_of.extend(job.workflow.node.as_deref().map(|node| (node, job.draft.id.as_str())));
    }
    let ids: BTreeMap<&str, usize> = jobs.iter().enumerate().map(|(k, job)| (job.id.as_str(), k)).collect();
    let mut after: Vec<BTreeSet<String>> = Vec::with_capacity(jobs.len());
    for job in &jobs {
        let own = job.workflow.node.as_deref();
        let before = own.map_or_else(BTreeSet::new, |node| before(node, &parents, &job_of));
        after.push(before.into_iter().filter(|name| *name != job.draft.id).map(str::to_owned).collect());
    }
    for job in &jobs {
        for at in job.workflow.dependants.iter().filter_map(|id| ids.get(id.as_str())) {
            if jobs[*at].id != job.id {
                after[*at].insert(job.draft.id.clone());
            }
        }
    }
    for (job, after) in jobs.iter_mut().zip(after) {
        let line = job.line;
        diagnostics.add_of("job", 1, line, "part of a workflow with a known order, combined into one flow");
        job.draft.after = after.into_iter().collect();
    }
    jobs
}

/// The nearest nodes before one that are jobs.
fn before<'a>(
    node: &str,
    parents: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    job_of: &BTreeMap<&'a str, &'a str>,
) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut left: Vec<&str> = parents.get(node).into_iter().flatten().copied().collect();
    while let Some(parent) = left.pop() {
        if !seen.insert(parent) {
            continue;
        }
        match job_of.get(parent) {
            Some(job) => {
                found.insert(*job);
            }
            None => left.extend(parents.get(parent).into_iter().flatten().copied()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_read_as_hadoop_writes_them() {
        let read = adjacencies("\"a\"=\"b,c\" \"b\"=\"d\" ");
        let expected = [("a", vec!["b", "c"]), ("b", vec!["d"])];
        let expected: Vec<_> = expected
            .map(|(a, b)| (a.to_owned(), b.into_iter().map(str::to_owned).collect::<Vec<_>>()))
            .into();
        assert_eq!(read, expected);
        assert_eq!(adjacencies(""), []);
        assert_eq!(adjacencies("\"a\"=\"b"), [("a".to_owned(), vec!["b".to_owned()])]);
    }

    #[test]
    fn nodes_without_a_job_are_bridged_even_in_cycles() {
        let parents = BTreeMap::from([
            ("c", BTreeSet::from(["x", "y"])),
            ("x", BTreeSet::from(["a", "y"])),
            ("y", BTreeSet::from(["x", "b"])),
        ]);
        let jobs = BTreeMap::from([("a", "A"), ("b", "B"), ("c", "C")]);
        assert_eq!(before("c", &parents, &jobs), BTreeSet::from(["A", "B"]));
    }
}
