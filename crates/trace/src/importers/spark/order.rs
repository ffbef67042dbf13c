//! Dependencies in an application: stages after their parents, jobs after those for which the program waited.

use std::collections::{BTreeMap, BTreeSet};

use crate::importers::dag::{Span, bridge, infer_dependencies};

/// A stage that a job listed.
pub(super) struct Stage<'a> {
    pub(super) id: i64,
    pub(super) parents: &'a [i64],
    pub(super) data_set: Option<i64>,
    pub(super) ran: bool,
}

/// A job: when it was submitted and when it ended, and its stages.
pub(super) struct JobSpan {
    pub(super) span: Span,
    pub(super) stages: Vec<i64>,
}

/// The stages that ran, by number, each with its predecessors that ran. `jobs` are in the order of their
/// submission.
pub(super) fn order(stages: &[Stage<'_>], jobs: &[JobSpan]) -> Vec<(i64, Vec<i64>)> {
    let at: BTreeMap<i64, usize> = stages.iter().enumerate().map(|(k, stage)| (stage.id, k)).collect();
    let parents = parents(stages, &at);
    // A node for each stage, then one for the beginning and one for the end of each job.
    let (begin, end) = (|job: usize| stages.len() + 2 * job, |job: usize| stages.len() + 2 * job + 1);
    let mut after = parents.clone();
    after.resize(stages.len() + 2 * jobs.len(), Vec::new());
    let spans: Vec<Span> = jobs.iter().map(|job| job.span).collect();
    let before = infer_dependencies(&spans);
    let mut placed = BTreeSet::new();
    for (job, span) in jobs.iter().enumerate() {
        after[begin(job)].extend(before[job].iter().map(|&other| end(other)));
        // A stage that several jobs list is of the first that ran it.
        let listed = span.stages.iter().filter_map(|id| at.get(id).copied());
        let own: BTreeSet<usize> =
            listed.filter(|&stage| stages[stage].ran && placed.insert(stage)).collect();
        if own.is_empty() {
            after[end(job)].push(begin(job));
        }
        let inner: BTreeSet<usize> = own.iter().flat_map(|&stage| &parents[stage]).copied().collect();
        for &stage in &own {
            if parents[stage].iter().all(|parent| !own.contains(parent)) {
                after[stage].push(begin(job));
            }
            if !inner.contains(&stage) {
                after[end(job)].push(stage);
            }
        }
    }
    let after = bridge(&after, |node| stages.get(node).is_some_and(|stage| stage.ran));
    let named = |nodes: &[usize]| nodes.iter().map(|&node| stages[node].id).collect();
    let ran = stages.iter().zip(&after).filter(|(stage, _)| stage.ran);
    ran.map(|(stage, after)| (stage.id, named(after))).collect()
}

/// The parents of each stage; one that did not run is replaced by the latest earlier stage that ran with the
/// same last data set, if there is one.
fn parents(stages: &[Stage<'_>], at: &BTreeMap<i64, usize>) -> Vec<Vec<usize>> {
    let mut wrote: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (k, stage) in stages.iter().enumerate().filter(|(_, stage)| stage.ran) {
        if let Some(set) = stage.data_set {
            wrote.entry(set).or_default().push(k);
        }
    }
    let stands_for = |k: usize| {
        let stage = &stages[k];
        let same = stage.data_set.filter(|_| !stage.ran).and_then(|set| wrote.get(&set));
        same.and_then(|same| same.iter().rev().find(|&&other| other < k).copied()).unwrap_or(k)
    };
    let of_stage = |(k, stage): (usize, &Stage<'_>)| {
        let parents = stage.parents.iter().filter_map(|id| at.get(id)).map(|&parent| stands_for(parent));
        parents.filter(|&parent| parent != k).collect()
    };
    stages.iter().enumerate().map(of_stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64, stages: &[i64]) -> JobSpan {
        JobSpan { span: Span { start: Some(start), end: Some(end) }, stages: stages.to_vec() }
    }

    fn stage(id: i64, parents: &[i64], data_set: i64, ran: bool) -> Stage<'_> {
        Stage { id, parents, data_set: Some(data_set), ran }
    }

    #[test]
    fn a_stage_that_was_not_run_stands_for_the_one_that_wrote_its_output() {
        // Job 0 runs stage 0; job 1 lists it again as stage 1, and reads it in stage 2.
        let stages = [stage(0, &[], 4, true), stage(1, &[], 4, false), stage(2, &[1], 9, true)];
        let jobs = [span(0, 10, &[0]), span(0, 10, &[1, 2])];
        assert_eq!(order(&stages, &jobs), [(0, vec![]), (2, vec![0])]);
    }

    #[test]
    fn a_stage_of_which_nothing_is_known_stands_for_its_parents() {
        let stages = [stage(0, &[], 4, true), stage(1, &[0], 5, false), stage(2, &[1], 9, true)];
        assert_eq!(order(&stages, &[span(0, 10, &[0, 1, 2])]), [(0, vec![]), (2, vec![0])]);
    }

    #[test]
    fn first_stages_of_a_job_come_after_the_last_ones_of_the_job_before() {
        let stages = [
            stage(0, &[], 1, true),
            stage(1, &[0], 2, true),
            stage(2, &[0], 3, true),
            stage(3, &[], 4, false),
            stage(4, &[], 5, true),
            stage(5, &[4], 6, true),
        ];
        // The job in the middle had no tasks.
        let jobs = [span(0, 10, &[0, 1, 2]), span(11, 12, &[3]), span(13, 20, &[4, 5])];
        let found = order(&stages, &jobs);
        assert_eq!(found[3..], [(4, vec![1, 2]), (5, vec![4])]);
    }
}
