//! Jobs that start no more tasks, because one of their flow has failed, and the end of their flow.

use slackline_model::{FlowId, Instance, JobId, PhaseId};

use super::State;
use crate::event::Event;

impl State {
    /// No further task of a job starts, nor of jobs that wait for it, nor, with `all`, of any job of its flow.
    /// Returns the jobs that this stops. O(their phases · log ready phases).
    pub(crate) fn drop_job(&mut self, instance: &Instance, job: JobId, all: bool) -> Vec<JobId> {
        let flow = instance.job(job).flow;
        let (mut left, mut dropped) = (vec![job], Vec::new());
        if all {
            left.extend(instance.flow(flow).jobs());
        }
        while let Some(job) = left.pop() {
            let state = &mut self.jobs[job];
            if state.done || std::mem::replace(&mut state.dropped, true) {
                continue;
            }
            self.flows[flow].jobs_left -= 1;
            for phase in instance.job(job).phases() {
                self.close(instance, phase);
            }
            left.extend(&instance.job(job).before);
            dropped.push(job);
        }
        self.failing.insert(flow);
        dropped
    }

    /// The flows that fail now: nothing of them runs, and all that could has.
    pub(crate) fn spent(&self, instance: &Instance) -> Vec<FlowId> {
        let runs = |flow| instance.flow(flow).phases().any(|phase| self.phases[phase].running > 0);
        let is_spent = |flow: &FlowId| self.flows[*flow].jobs_left == 0 && !runs(*flow);
        self.failing.iter().copied().filter(is_spent).collect()
    }

    /// A phase is not ready any more.
    fn close(&mut self, instance: &Instance, phase: PhaseId) {
        self.change(instance, phase, |state| state.ready = false);
        self.unlist(instance, phase);
        self.early.remove(&phase);
        self.stopped.remove(&phase);
        self.touched.push(phase);
    }

    /// A flow fails: none of its phases is ready any more. None of its tasks may be running.
    pub(crate) fn give_up(&mut self, instance: &Instance, flow: FlowId, events: &mut Vec<Event>) {
        let is_failing = self.failing.remove(&flow);
        if self.flows[flow].failed || (self.flows[flow].jobs_left == 0 && !is_failing) {
            return;
        }
        self.flows[flow].failed = true;
        self.flows_left -= 1;
        self.over.push(flow);
        for phase in instance.flow(flow).jobs().flat_map(|job| instance.job(job).phases()) {
            self.close(instance, phase);
        }
        events.push(Event::FlowFailed(flow));
    }
}
