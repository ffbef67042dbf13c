//! Copies of flows in their state at arrival, for insertion into a snapshot: flows that will recur, and past
//! flows.

use slackline_model::{FlowId, PhaseId, Span, Time};
use slackline_policy::View;

use super::snapshot::{Arrival, FlowNow, Job, JobNow, Phase, PhaseNow, Snapshot};
use crate::rule::online::sort_by_tail;
use crate::rule::residual::Residual;

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

impl Template {
    /// A flow that has just arrived. O(its phases).
    pub(super) fn of(flow: FlowId, residual: &Residual, view: &View<'_>) -> Self {
        let mut alone = Snapshot::default();
        alone.take_flow(flow, view);
        let Snapshot { jobs, before, phases, runs, start, .. } = alone;
        let Some((first, _)) = alone.firsts.first() else { return Self::default() };
        let is_left = |phase: &PhaseId| start.phases[(phase.0 - first.0) as usize].left > 0;
        let mut by_tail: Vec<PhaseId> = view.instance.flow(flow).phases().filter(is_left).collect();
        sort_by_tail(&mut by_tail, residual);
        Self {
            jobs: jobs.into_iter().zip(start.jobs).collect(),
            before,
            by_tail: by_tail.iter().map(|phase| phase.0 - first.0).collect(),
            phases: phases.into_iter().zip(start.phases).collect(),
            runs,
            now: start.flows[0],
        }
    }
}

impl Snapshot {
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
