//! The jobs of flow drafts by their ids, and the orders that follow from the inputs that name jobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use slackline_model::draft::{FlowDraft, JobDraft};
use slackline_model::job_positions::JobPositions;

/// The positions of flows and jobs by id; of equal ids, the first.
pub(crate) struct JobIndex<'a> {
    flows: BTreeMap<&'a str, usize>,
    /// The jobs of each flow.
    jobs: Vec<BTreeMap<&'a str, usize>>,
}

/// Positions by id. The last entry of a key wins, so the order is reversed.
fn positions<'a>(
    ids: impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator,
) -> BTreeMap<&'a str, usize> {
    ids.enumerate().rev().map(|(at, id)| (id, at)).collect()
}

impl<'a> JobIndex<'a> {
    /// O(jobs · log).
    pub(crate) fn new(flows: &'a [FlowDraft]) -> Self {
        let jobs_of = |flow: &'a FlowDraft| positions(flow.jobs.iter().map(|job| job.id.as_str()));
        Self {
            flows: positions(flows.iter().map(|flow| flow.id.as_str())),
            jobs: flows.iter().map(jobs_of).collect(),
        }
    }

    /// The positions of the flow and the job that an input such as `@job` or `@flow/job` of a flow names.
    pub(crate) fn upstream(&self, flow: usize, input: &str) -> Option<(usize, usize)> {
        let name = input.strip_prefix('@')?;
        let (flow, job) = match name.rsplit_once('/') {
            None => (flow, name),
            Some((id, job)) => (*self.flows.get(id)?, job),
        };
        Some((flow, *self.jobs[flow].get(job)?))
    }

    /// The flows, each after the flows whose output it reads. O(inputs · log jobs).
    ///
    /// # Errors
    /// Two flows that read from each other.
    pub(crate) fn flow_order(&self, flows: &[FlowDraft]) -> Result<Vec<usize>, [usize; 2]> {
        let before = |(f, flow): (usize, &FlowDraft)| {
            let inputs = flow.jobs.iter().filter_map(|job| job.run.as_ref()).flat_map(|run| &run.inputs);
            let named = inputs.filter_map(|input| self.upstream(f, input));
            let mut others: Vec<usize> = named.map(|(other, _)| other).filter(|&other| other != f).collect();
            others.dedup();
            others
        };
        let before: Vec<Vec<usize>> = flows.iter().enumerate().map(before).collect();
        let mut left: Vec<_> = before.iter().map(|others| others.iter().copied()).collect();
        let (mut ordered, mut seen) = (Vec::with_capacity(flows.len()), vec![false; flows.len()]);
        let mut is_open = vec![false; flows.len()];
        for first in 0..flows.len() {
            let mut open = vec![first];
            while let Some(&flow) = open.last() {
                is_open[flow] = true;
                match left[flow].find(|&other| !seen[other]) {
                    Some(other) if is_open[other] => return Err([flow, other]),
                    Some(other) => open.push(other),
                    None => {
                        open.pop();
                        is_open[flow] = false;
                        if !std::mem::replace(&mut seen[flow], true) {
                            ordered.push(flow);
                        }
                    }
                }
            }
        }
        Ok(ordered)
    }

    /// For each job of the flows, the jobs whose output it reads, counted over all flows.
    pub(crate) fn read_jobs(&self, flows: &[FlowDraft]) -> Vec<Vec<usize>> {
        let mut firsts = Vec::with_capacity(flows.len());
        let mut count = 0;
        for flow in flows {
            firsts.push(count);
            count += flow.jobs.len();
        }
        let mut reads = Vec::with_capacity(count);
        for (f, flow) in flows.iter().enumerate() {
            for job in &flow.jobs {
                let inputs = job.run.iter().flat_map(|run| &run.inputs);
                let named = inputs.filter_map(|input| self.upstream(f, input));
                reads.push(named.map(|(flow, job)| firsts[flow] + job).collect());
            }
        }
        reads
    }
}

/// The jobs of a flow, each after those that it names in `after`, and otherwise as listed. Jobs without
/// an order come last, and the instance reports the problem. O(names · log jobs).
pub(crate) fn job_order(jobs: &[JobDraft]) -> Vec<usize> {
    let (count, mut positions) = (jobs.len(), JobPositions::new(jobs));
    let (mut waits, mut dependents) = (vec![0usize; count], vec![Vec::new(); count]);
    for (at, job) in jobs.iter().enumerate() {
        waits[at] = job.after.len();
        for before in job.after.iter().filter_map(|name| positions.find(name)) {
            dependents[before].push(at);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..count).filter(|&at| waits[at] == 0).map(Reverse).collect();
    let (mut done, mut is_done) = (Vec::with_capacity(count), vec![false; count]);
    let mut rest = 0..count;
    while let Some(next) = ready.pop().map(|Reverse(at)| at).or_else(|| rest.find(|&at| !is_done[at])) {
        done.push(next);
        is_done[next] = true;
        let Some(named) = positions.find(&jobs[next].id) else { continue };
        for at in std::mem::take(&mut dependents[named]) {
            waits[at] -= 1;
            if waits[at] == 0 && !is_done[at] {
                ready.push(Reverse(at));
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first job in the list all of whose names are those of earlier jobs; the first of all if there is
    /// none.
    fn naive(flow: &FlowDraft) -> Vec<usize> {
        let mut left: Vec<usize> = (0..flow.jobs.len()).collect();
        let mut done: Vec<usize> = Vec::new();
        while !left.is_empty() {
            let known = |name: &String| done.iter().any(|&d| flow.jobs[d].id == *name);
            let ready = left.iter().position(|&at| flow.jobs[at].after.iter().all(known)).unwrap_or(0);
            done.push(left.remove(ready));
        }
        done
    }

    #[test]
    fn jobs_come_after_those_they_name_and_otherwise_as_listed() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..2_000 {
            let count = random(8) + 1;
            let jobs = (0..count).map(|_| {
                // Equal ids, ids that are not there and cycles are among them.
                let after = (0..random(3)).map(|_| random(count + 1).to_string()).collect();
                JobDraft { id: random(2 * count).to_string(), after, ..JobDraft::default() }
            });
            let flows = [FlowDraft::new("f", jobs.collect())];
            assert_eq!(job_order(&flows[0].jobs), naive(&flows[0]), "{flows:?}");
        }
    }
}
