//! Flows that have not arrived yet. A flow arrives at its release time, and after the jobs of other flows
//! that it reads from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use slackline_model::{FlowId, Instance, Time};

use crate::spec::job_plan::JobPlan;

/// Flows that have not arrived.
pub(crate) struct PendingArrivals {
    /// By release, then id.
    by_release: VecDeque<FlowId>,
    /// Released, and waiting for jobs of other flows.
    waiting: Vec<FlowId>,
    /// By flow that reads from other flows: the jobs that it waits for.
    waits: BTreeMap<FlowId, BTreeSet<u32>>,
    /// Flows that have failed, and those that waited for them.
    failed: BTreeSet<String>,
}

impl PendingArrivals {
    /// All flows of an instance; some wait for jobs, by their names.
    pub(crate) fn new(instance: &Instance, waits: &BTreeMap<String, BTreeSet<u32>>) -> Self {
        let mut by_release: Vec<FlowId> = instance.flows().keys().collect();
        by_release.sort_by_key(|&flow| (instance.flow(flow).release, flow));
        let of = |&flow: &FlowId| Some((flow, waits.get(&instance.flow(flow).id)?.clone()));
        let waits = by_release.iter().filter_map(of).collect();
        Self { by_release: by_release.into(), waiting: Vec::new(), waits, failed: BTreeSet::new() }
    }

    /// When the next flow is released.
    pub(crate) fn next_release(&self, instance: &Instance) -> Option<Time> {
        self.by_release.front().map(|&flow| instance.flow(flow).release)
    }

    /// Whether a flow may still come.
    pub(crate) fn may_come(&self) -> bool {
        !self.by_release.is_empty() || !self.waiting.is_empty()
    }

    /// A flow has failed.
    pub(crate) fn fail(&mut self, flow: &str) {
        if !self.failed.contains(flow) {
            self.failed.insert(flow.to_owned());
        }
    }

    /// A flow is not to come any more. Nothing if it has come.
    pub(crate) fn cancel(&mut self, flow: &str, instance: &Instance) {
        let is_it = |&id: &FlowId| instance.flow(id).id == flow;
        self.by_release.retain(|id| !is_it(id));
        self.waiting.retain(|id| !is_it(id));
        self.fail(flow);
    }

    /// Whether a flow has failed.
    pub(crate) fn has_failed(&self, flow: &str) -> bool {
        self.failed.contains(flow)
    }

    /// The flows that arrive by `now`. A flow that waits for a failed flow never arrives. `is_done` tells
    /// whether a job is done, by its index in `jobs`. O(waiting flows · jobs that they wait for).
    pub(crate) fn take_arrivals(
        &mut self,
        now: Time,
        instance: &Instance,
        jobs: &[JobPlan],
        is_done: impl Fn(u32) -> bool,
    ) -> Arrivals {
        let mut flows = Vec::new();
        while self.next_release(instance).is_some_and(|at| at <= now) {
            let Some(flow) = self.by_release.pop_front() else { break };
            if self.waits.contains_key(&flow) {
                self.waiting.push(flow);
            } else {
                flows.push(flow);
            }
        }
        let mut never = Vec::new();
        for flow in std::mem::take(&mut self.waiting) {
            let waits = &self.waits[&flow];
            let has_failed = |job: &&u32| self.failed.contains(&jobs[**job as usize].flow);
            if waits.iter().all(|&job| is_done(job)) {
                flows.push(flow);
            } else if let Some(&job) = waits.iter().find(has_failed) {
                self.fail(&instance.flow(flow).id);
                never.push((flow, job));
            } else {
                self.waiting.push(flow);
            }
        }
        Arrivals { flows, never }
    }
}

/// The flows that arrive, and those that never will.
pub(crate) struct Arrivals {
    pub(crate) flows: Vec<FlowId>,
    /// They never will, each with a job that it waits for and that is never going to be done.
    pub(crate) never: Vec<(FlowId, u32)>,
}
