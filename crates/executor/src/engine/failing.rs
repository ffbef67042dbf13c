//! Flows in which a job has failed: which jobs start no more tasks, and when the flow has failed.

use std::collections::BTreeSet;
use std::ops::Range;

use slackline_model::draft::FailurePolicy;
use slackline_policy::engine::{Report, RowId};

use super::{ProcessEngine, Stage};
use crate::engine::event::RunEvent;

/// Flows in which a job has failed and others may run.
#[derive(Default)]
pub(super) struct FailingFlows {
    flows: BTreeSet<String>,
    /// Jobs that start no more tasks, because they failed, wait for one that did, or were to end with it.
    dropped: BTreeSet<u32>,
}

impl ProcessEngine {
    /// A job has failed with this row. Returns whether its flow has failed with it; otherwise the driver has the other
    /// jobs go on that may.
    pub(super) fn job_failed(&mut self, row: RowId, job: u32) -> bool {
        let plan = &self.work.session.jobs[job as usize];
        let (flow, policy) = (plan.flow.clone(), plan.limits.failure_policy);
        if policy == FailurePolicy::Stop || self.coming.has_failed(&flow) {
            self.flow_failed(&flow);
            return true;
        }
        let all = policy == FailurePolicy::Finish;
        let dropped = if all { self.jobs_of(&flow).map(|job| job as u32).collect() } else { self.after(job) };
        self.failing.dropped.extend(dropped);
        self.failing.flows.insert(flow);
        self.due.push(Report::JobFailed { row, all });
        false
    }

    /// A flow has failed: nothing of it is to start any more.
    pub(super) fn flow_failed(&mut self, flow: &str) {
        self.failing.flows.remove(flow);
        if !self.coming.has_failed(flow) {
            self.coming.fail(flow);
            (self.on_event)(self.now, &RunEvent::FlowFailed { flow: flow.to_owned() });
        }
    }

    /// A task that the driver starts fails if its job has failed meanwhile. Returns whether it does.
    pub(super) fn refuses(&mut self, row: RowId, job: u32) -> bool {
        let plan = &self.work.session.jobs[job as usize];
        let is_final = self.coming.has_failed(&plan.flow);
        let is_dropped = self.failing.dropped.contains(&job);
        if is_dropped && !is_final {
            let all = plan.limits.failure_policy == FailurePolicy::Finish;
            self.due.push(Report::JobFailed { row, all });
        }
        if is_final || is_dropped || self.fatal.is_some() {
            self.due.push(Report::Failed { row, at: self.now, is_final });
            return true;
        }
        false
    }

    /// Flows have failed of which nothing runs and nothing else can.
    pub(super) fn fail_spent(&mut self) {
        if self.failing.flows.is_empty() {
            return;
        }
        let is_open = |job: usize| self.open.parts[job] > 0 && !self.failing.dropped.contains(&(job as u32));
        let runs = |flow: &str| {
            let mut running =
                self.attempts.running.values().filter(|running| running.stage != Stage::Finished);
            running.any(|running| self.work.session.jobs[running.id.job as usize].flow == flow)
        };
        let is_spent = |flow: &&String| !self.jobs_of(flow).any(is_open) && !runs(flow);
        let spent: Vec<String> = self.failing.flows.iter().filter(is_spent).cloned().collect();
        for flow in spent {
            self.flow_failed(&flow);
        }
    }

    fn jobs_of(&self, flow: &str) -> Range<usize> {
        self.open.jobs_of.get(flow).cloned().unwrap_or_default()
    }

    /// A job and all that wait for it, directly or not, by their numbers in the run.
    fn after(&self, job: u32) -> BTreeSet<u32> {
        let jobs = &self.work.session.jobs;
        let (plan, instance) = (&jobs[job as usize], &self.work.instance);
        let mut after = BTreeSet::from([job]);
        let Some(flow) = instance.flows().iter().find(|flow| flow.id == plan.flow) else { return after };
        let mut left: Vec<_> = flow.jobs().filter(|&id| instance.job(id).id == plan.job).collect();
        while let Some(id) = left.pop() {
            for &next in &instance.job(id).before {
                let name = &instance.job(next).id;
                let number = self.jobs_of(&plan.flow).find(|&number| jobs[number].job == *name);
                if number.is_some_and(|number| after.insert(number as u32)) {
                    left.push(next);
                }
            }
        }
        after
    }
}
