//! Flows that are to come: each at its release, and those that read from other flows when what they read is there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use slackline_model::{FlowId, Instance, Time};

use super::{Happening, Local};

/// Flows that have not arrived.
pub(super) struct Coming {
    /// By release, then id.
    by_release: VecDeque<FlowId>,
    /// Released, and waiting for jobs of other flows.
    waiting: Vec<FlowId>,
    /// By flow that reads from other flows: the jobs that it waits for.
    waits: BTreeMap<FlowId, BTreeSet<u32>>,
    /// Flows that have failed, and those that waited for them.
    failed: BTreeSet<String>,
}

impl Coming {
    /// All flows of an instance; some wait for jobs, by their names.
    pub(super) fn new(instance: &Instance, waits: &BTreeMap<String, BTreeSet<u32>>) -> Self {
        let mut by_release: Vec<FlowId> = instance.flows().keys().collect();
        by_release.sort_by_key(|&flow| (instance.flow(flow).release, flow));
        let of = |&flow: &FlowId| Some((flow, waits.get(&instance.flow(flow).id)?.clone()));
        let waits = by_release.iter().filter_map(of).collect();
        Self { by_release: by_release.into(), waiting: Vec::new(), waits, failed: BTreeSet::new() }
    }

    /// When the next flow is released.
    pub(super) fn next_release(&self, instance: &Instance) -> Option<Time> {
        self.by_release.front().map(|&flow| instance.flow(flow).release)
    }

    /// Whether a flow comes by itself, with time.
    pub(super) fn is_due_some_day(&self) -> bool {
        !self.by_release.is_empty()
    }

    /// Whether a flow may still come.
    pub(super) fn may_come(&self) -> bool {
        !self.by_release.is_empty() || !self.waiting.is_empty()
    }

    /// A flow has failed.
    pub(super) fn fail(&mut self, flow: &str) {
        if !self.failed.contains(flow) {
            self.failed.insert(flow.to_owned());
        }
    }
}

impl Local<'_> {
    /// The flows that arrive now. Those that wait for a flow that has failed never do. O(waiting flows · what they wait
    /// for).
    pub(super) fn arriving(&mut self) -> Vec<FlowId> {
        let mut arriving = Vec::new();
        while self.coming.next_release(self.work.instance).is_some_and(|at| at <= self.now) {
            let Some(flow) = self.coming.by_release.pop_front() else { break };
            if self.coming.waits.contains_key(&flow) {
                self.coming.waiting.push(flow);
            } else {
                arriving.push(flow);
            }
        }
        for flow in std::mem::take(&mut self.coming.waiting) {
            let waits = &self.coming.waits[&flow];
            let has_failed = |job: &&u32| self.coming.failed.contains(&self.work.jobs[**job as usize].flow);
            if waits.iter().all(|&job| self.open[job as usize] == 0) {
                arriving.push(flow);
            } else if let Some(&job) = waits.iter().find(has_failed) {
                self.never_comes(flow, job);
            } else {
                self.coming.waiting.push(flow);
            }
        }
        arriving
    }

    /// A flow waited for a job that is never going to be done.
    fn never_comes(&mut self, flow: FlowId, job: u32) {
        let flow = self.work.instance.flow(flow).id.as_str();
        self.coming.fail(flow);
        self.observer.happened(self.now, Happening::NeverComes { flow, job });
    }
}
