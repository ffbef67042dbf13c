//! What happened: the workload with what its tasks really took, the schedule, and what later runs learn from it.

use std::collections::BTreeMap;

use slackline_model::draft::{PhaseDraft, TasksDraft};
use slackline_model::history::{PhaseName, Record};
use slackline_model::schedule::{Clock, FlowTimes, NewRow, Origin, Outcome, Rows, TaskRows};
use slackline_model::{Draft, FlowId, History, Instance, PhaseId, PhaseKind, Schedule, SlotRange, Time};

use crate::history::{GROUP, JobName, Jobs, Took};
use crate::journal::{Attempt, Ended, TaskId};
use crate::layout::is_final;
use crate::resolve::JobPlan;

/// The workload in which every finished task takes what it took; the others keep their estimates.
pub fn measured(draft: &Draft, attempts: &[Attempt]) -> Draft {
    let mut took: BTreeMap<TaskId, f64> = BTreeMap::new();
    for attempt in attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_))) {
        took.insert(attempt.id, attempt.micros() as f64 / 1e6);
    }
    let mut draft = draft.clone();
    let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
    for (job, index) in jobs.zip(0..) {
        for (phase, reduce) in [(&mut job.map, false), (&mut job.reduce, true)] {
            let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = phase else { continue };
            for (seconds, task) in seconds.iter_mut().zip(0..) {
                *seconds = took.get(&TaskId { job: index, reduce, task }).copied().unwrap_or(*seconds);
            }
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
            attempt: *next,
            outcome: match attempt.ended {
                Ended::Done(_) => Outcome::Done,
                Ended::Failed(_) => Outcome::Failed,
                Ended::Killed => Outcome::Killed,
            },
        };
        *next = next.saturating_add(1);
        tasks.push(row, &[SlotRange { first: attempt.slot, len: 1 }]);
        flows[instance.flow_of(phase).index()].note(&row);
    }
    let origin = Origin { policy: policy.to_owned(), minima: false, clock: Clock::Measured, slowstart };
    let times = |flow: FlowId| times(instance, flow, &flows[flow.index()]);
    Schedule::from_rows(instance, origin, Rows::Tasks(tasks), times)
}

/// What finished tasks took, by phase.
pub fn seen(jobs: &[JobPlan], attempts: &[Attempt]) -> History {
    let mut records: BTreeMap<PhaseName, Record> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| matches!(attempt.ended, Ended::Done(_))) {
        let JobName { flow, job } = JobName::of(&jobs[attempt.id.job as usize]);
        let kind = if attempt.id.reduce { PhaseKind::Reduce } else { PhaseKind::Map };
        let record = records.entry(PhaseName { flow, job, kind }).or_default();
        *record = record.and(1, attempt.micros() as f64 / 1e6);
    }
    let mut history = History::new();
    for (phase, record) in records {
        history.insert(phase, GROUP.to_owned(), record);
    }
    history
}

/// What the jobs took of which every task is done; recurrences of a flow together.
pub fn finished_jobs(jobs: &[JobPlan], attempts: &[Attempt]) -> Jobs {
    let mut took = vec![Took::default(); jobs.len()];
    for attempt in attempts {
        let Ended::Done(outcome) = &attempt.ended else { continue };
        let (plan, took) = (&jobs[attempt.id.job as usize], &mut took[attempt.id.job as usize]);
        let micros = attempt.micros();
        *took = took.and(if attempt.id.reduce {
            Took { reduces: 1, reduce_micros: micros, ..Took::default() }
        } else {
            Took { maps: 1, map_micros: micros, ..Took::default() }
        });
        took.bytes_out += if is_final(plan, attempt.id) { outcome.bytes_out } else { 0 };
    }
    let mut finished = Jobs::new();
    for (plan, took) in jobs.iter().zip(took) {
        if took.maps == plan.maps.len() as u64 && took.reduces == u64::from(plan.reducers) {
            let known = finished.entry(JobName::of(plan)).or_default();
            *known = known.and(Took { bytes_in: plan.bytes_in(), ..took });
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

/// The phase of a task of the run.
fn phase_of(instance: &Instance, id: TaskId) -> Option<PhaseId> {
    let job = instance.jobs().get(slackline_model::JobId(id.job))?;
    if id.reduce { job.reduce } else { job.map }
}
