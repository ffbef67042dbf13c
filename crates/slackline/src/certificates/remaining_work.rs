//! The remaining work of a workload at an instant of a schedule, as a separate workload.

use std::collections::BTreeSet;

use slackline_model::cluster::Group;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::schedule::{Outcome, TaskRow};
use slackline_model::{CostFn, FlowId, Instance, JobId, Metric, Objective, PhaseId, Schedule, Time};

/// Calculates the remaining work for schedules of one instance.
pub(super) struct RemainingWork<'a> {
    instance: &'a Instance,
    schedule: &'a Schedule,
    /// By phase: its rows.
    rows: Vec<Vec<&'a TaskRow>>,
}

impl<'a> RemainingWork<'a> {
    pub(super) fn new(instance: &'a Instance, schedule: &'a Schedule) -> Self {
        let mut rows = vec![Vec::new(); instance.phases().len()];
        for row in schedule.tasks.rows() {
            rows[row.phase.index()].push(row);
        }
        Self { instance, schedule, rows }
    }

    /// The flows that had arrived at `now` and were unfinished, all released then, with their remaining work
    /// and their costs. `None` if nothing was left or the rest is unknown.
    ///
    /// The rest of the schedule, without later flows, is a schedule of that workload with no completion
    /// before a bound. To guarantee this, a running task counts with its remaining time, at most its full
    /// duration. Minima and jobs without length are left out, which can only lower bounds. O(rows of these
    /// flows).
    pub(super) fn at(&self, now: Time) -> Option<Instance> {
        let is_there = |flow: &FlowId| {
            let row = &self.schedule.flows[flow.index()];
            self.instance.flow(*flow).release <= now && row.completion.is_none_or(|at| at > now.seconds())
        };
        let (flows, costs): (Vec<FlowDraft>, Vec<CostFn>) =
            self.instance.flows().keys().filter(is_there).filter_map(|flow| self.flow(flow, now)).unzip();
        if flows.is_empty() {
            return None;
        }
        let objective = self.instance.objective();
        // The costs of flows are set below. The objective only needs to distinguish the makespan.
        let metric = if objective.metric == Metric::Makespan { Metric::Makespan } else { Metric::Response };
        let draft = Draft {
            machines: self.machines(),
            objective: Objective::new(metric, objective.combine),
            flows,
            ..Draft::default()
        };
        // The rest of a task may be shorter than a microsecond. If so, the result is unknown.
        Some(Instance::new(&draft).ok()?.with_costs(costs))
    }

    fn machines(&self) -> Vec<MachineDraft> {
        let machine = |group: &Group| MachineDraft {
            name: group.name.clone(),
            count: group.count,
            speed: group.speed,
            slots: group.slots,
            rack: None,
        };
        self.instance.cluster().groups().iter().map(machine).collect()
    }

    fn flow(&self, id: FlowId, now: Time) -> Option<(FlowDraft, CostFn)> {
        let flow = self.instance.flow(id);
        let left: Vec<(JobId, JobDraft)> =
            flow.jobs().filter_map(|job| Some((job, self.job(job, now)?))).collect();
        let ids: BTreeSet<JobId> = left.iter().map(|&(id, _)| id).collect();
        let after = |id: JobId| {
            let before = self.instance.job(id).after.iter().filter(|before| ids.contains(before));
            before.map(|&before| self.instance.job(before).id.clone()).collect()
        };
        let jobs: Vec<JobDraft> =
            left.into_iter().map(|(id, job)| JobDraft { after: after(id), ..job }).collect();
        let draft =
            FlowDraft { release: now.seconds(), weight: flow.weight, ..FlowDraft::new(&flow.id, jobs) };
        (!draft.jobs.is_empty()).then(|| (draft, flow.cost.clone()))
    }

    fn job(&self, id: JobId, now: Time) -> Option<JobDraft> {
        let job = self.instance.job(id);
        let phase = |phase: Option<PhaseId>| phase.and_then(|phase| self.phase(phase, now));
        let (map, reduce) = (phase(job.map), phase(job.reduce));
        (map.is_some() || reduce.is_some()).then(|| JobDraft {
            map,
            reduce,
            id: job.id.clone(),
            ..JobDraft::default()
        })
    }

    fn phase(&self, id: PhaseId, now: Time) -> Option<PhaseDraft> {
        let phase = self.instance.phase(id);
        let tasks = phase.tasks()?;
        let mut left: Vec<f64> = tasks
            .runs()
            .iter()
            .flat_map(|run| std::iter::repeat_n(run.span.seconds(), run.count as usize))
            .collect();
        let slot_kind = self.instance.slot_kind_of(id);
        for row in self.rows[id.index()].iter().filter(|row| row.start <= now) {
            let slots =
                self.schedule.tasks.places(row).iter().flat_map(|place| place.first..place.first + place.len);
            for (task, slot) in (row.first..row.first + row.count).zip(slots) {
                let seconds = &mut left[task as usize];
                if row.end > now {
                    let speed = self.instance.cluster().speed_of(slot_kind, slot).0;
                    *seconds = seconds.min(row.end.since(now).seconds() * speed);
                } else if row.outcome == Outcome::Done {
                    *seconds = 0.0;
                }
            }
        }
        left.retain(|&seconds| seconds > 0.0);
        let max_slots = Some(phase.cap).filter(|&cap| cap < tasks.count());
        (!left.is_empty()).then_some(PhaseDraft {
            tasks: TasksDraft::Each(left),
            min_slots: None,
            max_slots,
            unknown: false,
        })
    }
}
