//! Copies of flows in their state at arrival, cut out of one snapshot for insertion into another: flows that
//! will recur, and past flows.

use std::ops::Range;

use slackline_model::{FlowId, PhaseId, Span, Time};

use super::snapshot::{Arrival, FlowNow, Job, JobNow, Phase, PhaseNow, Snapshot};

/// A flow in its state at arrival. Numbers count from its own first job, phase and run.
#[derive(Clone, Debug, Default)]
pub(super) struct Template {
    jobs: Vec<(Job, JobNow)>,
    before: Vec<u32>,
    phases: Vec<(Phase, PhaseNow)>,
    runs: Vec<(u32, Span)>,
    now: FlowNow,
    /// Its unfinished phases, the longest tail first.
    by_tail: Vec<u32>,
}

impl Template {
    /// The longest of its tasks.
    pub(super) fn longest(&self) -> Span {
        self.runs.iter().map(|&(_, span)| span).max().unwrap_or(Span::ZERO)
    }
}

impl Snapshot {
    /// A copy of a flow that has just arrived, whose phases have these numbers, the longest tail first.
    pub(super) fn template(&self, flow: usize, by_tail: &[u32]) -> Template {
        let phases = self.phases_of(flow);
        let jobs = self.jobs_of(flow);
        let before = self.jobs[jobs.start].before.start..self.jobs[jobs.end - 1].before.end;
        let run = |phase: usize| self.start.phases.get(phase).map_or(self.runs.len(), |now| now.run as usize);
        let runs = run(phases.start)..run(phases.end);
        let (job_0, phase_0) = (jobs.start as u32, phases.start as u32);
        let job = |at: usize| {
            let Job { map, reduce, before: range, .. } = &self.jobs[at];
            let range = range.start - before.start..range.end - before.start;
            let within = |phase: u32| phase - phase_0;
            let job = Job { flow: 0, map: map.map(within), reduce: reduce.map(within), before: range };
            (job, self.start.jobs[at])
        };
        let phase = |at: usize| {
            let (fixed, now) = (&self.phases[at], self.start.phases[at]);
            let maps = fixed.maps.map(|maps| maps - phase_0);
            let fixed = Phase { job: fixed.job - job_0, maps, is_long: false, ..fixed.clone() };
            (fixed, PhaseNow { run: now.run - runs.start as u32, ..now })
        };
        Template {
            jobs: jobs.clone().map(job).collect(),
            before: self.before[before.start as usize..before.end as usize]
                .iter()
                .map(|&job| job - job_0)
                .collect(),
            phases: phases.clone().map(phase).collect(),
            runs: self.runs[runs.clone()].to_vec(),
            now: self.start.flows[flow],
            by_tail: by_tail.iter().map(|&phase| phase - phase_0).collect(),
        }
    }

    fn jobs_of(&self, flow: usize) -> Range<usize> {
        let from = self.jobs.partition_point(|job| (job.flow as usize) < flow);
        from..self.jobs.partition_point(|job| job.flow as usize <= flow)
    }

    /// Adds a flow that arrives at `at`, after all others; its phases are appended to `by_tail`. Flows must
    /// be added in the order of their arrivals.
    pub(super) fn add(&mut self, template: &Template, at: Time, by_tail: &mut Vec<u32>) {
        let Template { jobs, before, phases, runs, now, by_tail: tails } = template;
        let flow = self.start.flows.len() as u32;
        let (job_0, phase_0) = (self.jobs.len() as u32, self.phases.len() as u32);
        let (before_0, run_0) = (self.before.len() as u32, self.runs.len() as u32);
        self.firsts.push((PhaseId(u32::MAX), phase_0));
        self.start.flows.push(*now);
        self.before.extend(before.iter().map(|job| job + job_0));
        self.runs.extend_from_slice(runs);
        for (Job { map, reduce, before, .. }, now) in jobs {
            let [map, reduce] = [map, reduce].map(|phase| phase.map(|phase| phase + phase_0));
            let before = before.start + before_0..before.end + before_0;
            self.jobs.push(Job { flow, map, reduce, before });
            self.start.jobs.push(*now);
        }
        let from = self.opening.len() as u32;
        for (number, (fixed, now)) in (phase_0..).zip(phases) {
            let maps = fixed.maps.map(|maps| maps + phase_0);
            self.phases.push(Phase { job: fixed.job + job_0, maps, ..fixed.clone() });
            self.start.phases.push(PhaseNow { is_ready: false, run: now.run + run_0, ..*now });
            if now.is_ready {
                self.opening.push(number);
            }
        }
        self.arrivals.push(Arrival { at, opening: from..self.opening.len() as u32 });
        by_tail.extend(tails.iter().map(|phase| phase + phase_0));
    }

    /// The number of flows, including future ones.
    pub(super) fn n_flows(&self) -> usize {
        self.start.flows.len()
    }

    pub(super) fn live(&self) -> &[FlowId] {
        &self.flows
    }
}
