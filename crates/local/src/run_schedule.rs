//! What happened: the workload with what its tasks really took, the schedule, and what later runs learn from it.

use std::collections::BTreeMap;

use slackline_model::draft::{MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::history::{PhaseName, Record};
use slackline_model::schedule::{Clock, FlowTimes, NewRow, Origin, Outcome, Rows, TaskRows};
use slackline_model::{
    Draft, FlowId, History, Instance, PhaseId, PhaseKind, Schedule, SlotRange, Span, Time,
};

use crate::job_cost::{GROUP, JobCost, JobHistory, JobName, MachineCost};
use crate::job_plan::JobPlan;
use crate::journal::{Attempt, Ended};
use crate::places::Places;
use crate::task_id::TaskId;

/// The workload in which every finished task takes what it took, on a machine of speed 1; the others keep their estimates.
pub fn measured(draft: &Draft, attempts: &[Attempt]) -> Draft {
    let (places, mut took) = (Places::of(&draft.machines), BTreeMap::new());
    for attempt in attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_))) {
        let speed = places.speed(attempt.id.phase, attempt.slot);
        took.insert(attempt.id, attempt.micros() as f64 / 1e6 * speed);
    }
    let mut draft = without_waits(draft);
    let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
    for (job, index) in jobs.zip(0..) {
        for (draft, phase) in [(&mut job.map, PhaseKind::Map), (&mut job.reduce, PhaseKind::Reduce)] {
            let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = draft else { continue };
            for (seconds, task) in seconds.iter_mut().zip(0..) {
                *seconds = took.get(&TaskId { job: index, phase, task }).copied().unwrap_or(*seconds);
            }
        }
    }
    draft
}

/// The workload in which outputs of other flows are directories like any other: when flows came is known now.
fn without_waits(draft: &Draft) -> Draft {
    let outputs: BTreeMap<(String, String), String> = (draft.flows.iter())
        .flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)))
        .filter_map(|(flow, job)| Some(((flow.id.clone(), job.id.clone()), job.run.as_ref()?.output.clone())))
        .collect();
    let mut draft = draft.clone();
    let runs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs).filter_map(|job| job.run.as_mut());
    for input in runs.flat_map(|run| &mut run.inputs) {
        let named = input.strip_prefix('@').and_then(|name| name.rsplit_once('/'));
        let output = named.and_then(|(flow, job)| outputs.get(&(flow.to_owned(), job.to_owned())));
        if let Some(output) = output {
            *input = output.clone();
        }
    }
    draft
}

/// The schedule of what happened on `instance`, that of the measured workload, whose jobs are in the order of
/// the run's.
pub fn schedule(instance: &Instance, attempts: &[Attempt], policy: &str, slowstart: f64) -> Schedule {
    let mut tasks = TaskRows::new();
    let mut tries: BTreeMap<TaskId, u16> = BTreeMap::new();
    let mut flows: Vec<Progress> = vec![Progress::default(); instance.flows().len()];
    for attempt in attempts {
        let Some(phase) = phase_of(instance, attempt.id) else { continue };
        let next = tries.entry(attempt.id).or_default();
        let row = NewRow {
            phase,
            first: attempt.id.task,
            count: 1,
            start: Time(attempt.start),
            end: Time(attempt.end),
            startup: Span::ZERO,
            attempt: *next,
            outcome: match attempt.ended {
                Ended::Done(_) => Outcome::Done,
                Ended::Failed(_) => Outcome::Failed,
                Ended::Killed => Outcome::Killed,
                Ended::Lost => Outcome::Lost,
            },
        };
        *next = next.saturating_add(1);
        tasks.push(row, &[SlotRange { first: attempt.slot, len: 1 }]);
        flows[instance.flow_of(phase).index()].note(&row);
    }
    let origin =
        Origin { policy: policy.to_owned(), minima: false, clock: Clock::Measured, slowstart, profile: None };
    let times = |flow: FlowId| times(instance, flow, &flows[flow.index()]);
    Schedule::from_rows(instance, origin, Rows::Tasks(tasks), times)
}

/// What finished tasks took, by phase and group of machines.
pub fn seen(workload: &Draft, attempts: &[Attempt]) -> History {
    let jobs =
        workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(|job| JobName::new(&flow.id, &job.id)));
    let names: Vec<JobName> = jobs.collect();
    let places = Places::of(&workload.machines);
    let mut records: BTreeMap<(PhaseName, &str), Record> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| matches!(attempt.ended, Ended::Done(_))) {
        let JobName { flow, job } = names[attempt.id.job as usize].clone();
        let phase = PhaseName { flow, job, kind: attempt.id.phase };
        let group = places.at(attempt.id.phase, attempt.slot).map_or(GROUP, |place| place.group);
        let record = records.entry((phase, group)).or_default();
        *record = record.and(1, attempt.micros() as f64 / 1e6);
    }
    let mut history = History::new();
    for ((phase, group), record) in records {
        history.insert(phase, group.to_owned(), record);
    }
    history
}

/// What the jobs took of which every task is done, on these machines; recurrences of a flow together.
pub fn finished_jobs(jobs: &[JobPlan], machines: &[MachineDraft], attempts: &[Attempt]) -> JobHistory {
    let (places, mut costs) = (Places::of(machines), vec![JobCost::default(); jobs.len()]);
    for attempt in attempts {
        let Ended::Done(outcome) = &attempt.ended else { continue };
        let (plan, cost) = (&jobs[attempt.id.job as usize], &mut costs[attempt.id.job as usize]);
        let took = MachineCost::of(attempt.id.phase, attempt.micros());
        cost.add(took, places.at(attempt.id.phase, attempt.slot).map(|place| place.group));
        cost.bytes_out += if plan.is_final(attempt.id) { outcome.bytes_out } else { 0 };
    }
    let mut finished = JobHistory::new();
    for (plan, cost) in jobs.iter().zip(costs) {
        if cost.maps == u64::from(plan.maps()) && cost.reduces == u64::from(plan.reducers) {
            let known = finished.entry(JobName::of(plan)).or_default();
            *known = std::mem::take(known).and(&JobCost { bytes_in: plan.bytes_in(), ..cost });
        }
    }
    finished
}

/// How far a flow came.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    start: Option<Time>,
    end: Time,
    done: u64,
}

impl Progress {
    fn note(&mut self, row: &NewRow) {
        self.start = Some(self.start.map_or(row.start, |start| start.min(row.start)));
        if row.outcome == Outcome::Done {
            self.end = self.end.max(row.end);
            self.done += 1;
        }
    }
}

/// When a flow ran; it is complete once all its tasks are.
fn times(instance: &Instance, flow: FlowId, progress: &Progress) -> FlowTimes {
    let tasks: u64 = (instance.flow(flow).jobs().flat_map(|job| instance.job(job).phases()))
        .map(|phase| instance.phase(phase).tasks().map_or(0, |tasks| u64::from(tasks.count())))
        .sum();
    let completion = (progress.done == tasks).then(|| progress.end.seconds());
    FlowTimes { start: progress.start.map(Time::seconds), completion }
}

/// The phase of a task of the run, on the instance of its measured workload.
pub fn phase_of(instance: &Instance, id: TaskId) -> Option<PhaseId> {
    let job = instance.jobs().get(slackline_model::JobId(id.job))?;
    match id.phase {
        PhaseKind::Map => job.map,
        PhaseKind::Reduce => job.reduce,
    }
}
