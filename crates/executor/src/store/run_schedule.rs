//! The documents of a run: the workload with measured durations, the schedule, and the costs for later runs.

use std::collections::BTreeMap;

use slackline_model::draft::{PerPhase, PhaseDraft, TasksDraft};
use slackline_model::history::{PhaseName, Record};
use slackline_model::schedule::{
    Clock, FlowTimes, NewRow, Origin, Outcome, Rows, Segment as ScheduleSegment, TaskRows,
};
use slackline_model::{
    Draft, FlowId, History, Instance, PhaseId, PhaseKind, Schedule, SlotRange, Span, Time,
};
use slackline_task::base::task_id::TaskId;

use crate::spec::job_cost::{GROUP, JobName};
use crate::store::journal::{Attempt, AttemptOutcome, Segment};
use crate::store::machine_slots::{MachineSlots, WholeCluster};

/// The workload on the machines of all segments as one cluster, and the attempts on the slots of that
/// cluster. Without segments both are unchanged.
pub fn whole(workload: &Draft, segments: &[Segment], attempts: &[Attempt]) -> (Draft, Vec<Attempt>) {
    let mut attempts = attempts.to_vec();
    let jumps = Jumps::of(segments);
    for attempt in &mut attempts {
        let by = jumps.until(attempt.end);
        for at in [&mut attempt.start, &mut attempt.began, &mut attempt.end] {
            *at += by;
        }
    }
    let mut workload = as_it_was(workload, segments, &attempts);
    let whole = WholeCluster::of(segments);
    if !whole.machines().is_empty() {
        workload.machines = whole.machines().to_vec();
    }
    for attempt in &mut attempts {
        attempt.slot = whole.slot(segments, attempt).unwrap_or(attempt.slot);
        attempt.segment = 0;
    }
    (workload, attempts)
}

/// A time of an unfinished run, with the time for which the machine was suspended.
pub(crate) fn by_date(segments: &[Segment], at: u64) -> u64 {
    at + Jumps::of(segments).until(u64::MAX)
}

/// Jumps of the wall clock that the time of a run did not follow. Documents follow jumps that put it forward
/// for good, as their dates are those of the wall clock: such a run was suspended.
struct Jumps(Vec<(u64, u64)>);

impl Jumps {
    fn of(segments: &[Segment]) -> Self {
        let mut total = 0;
        let mut jumps: Vec<(u64, i64)> = Vec::new();
        for segment in segments.iter().filter(|segment| segment.jumped != 0) {
            total += segment.jumped;
            jumps.push((segment.start, total));
        }
        // A jump that is taken back later was a wrong date.
        let mut least = i64::MAX;
        for (_, total) in jumps.iter_mut().rev() {
            least = least.min(*total);
            *total = least;
        }
        Self(jumps.into_iter().map(|(at, total)| (at, u64::try_from(total).unwrap_or(0))).collect())
    }

    /// The time by which the wall clock was put forward until that time of the run, microseconds.
    fn until(&self, at: u64) -> u64 {
        let before = self.0.partition_point(|(start, _)| *start <= at);
        before.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

/// The workload without rules that a later segment added and that earlier attempts violate: a release after
/// they started, a predecessor that was not done then, a limit on slots. O(jobs · attempts of predecessors).
fn as_it_was(workload: &Draft, segments: &[Segment], attempts: &[Attempt]) -> Draft {
    let mut workload = workload.clone();
    let Some(edited) = segments.iter().rposition(|segment| segment.edited) else { return workload };
    let mut ran: BTreeMap<u32, JobTimes> = BTreeMap::new();
    for attempt in attempts {
        ran.entry(attempt.id.job).or_default().note(attempt, edited as u32);
    }
    let mut first = 0;
    for flow in &mut workload.flows {
        let jobs: Vec<(String, JobTimes)> = (first..)
            .zip(&flow.jobs)
            .map(|(index, job)| {
                let tasks = [&job.map, &job.reduce].into_iter().flatten().map(tasks).sum();
                (job.id.clone(), JobTimes { tasks, ..ran.get(&index).copied().unwrap_or_default() })
            })
            .collect();
        first += flow.jobs.len() as u32;
        let before = jobs.iter().filter_map(|(_, ran)| ran.before);
        if let Some(start) = before.min() {
            flow.release = flow.release.min(Time(start).seconds());
        }
        for (job, (_, ran)) in flow.jobs.iter_mut().zip(&jobs) {
            let Some(start) = ran.before else { continue };
            job.max_slots = PerPhase::default();
            let phases = [&mut job.map, &mut job.reduce].into_iter().flatten();
            phases.for_each(|phase| phase.max_slots = None);
            let was_done =
                |name: &String| jobs.iter().any(|(other, ran)| other == name && ran.was_done(start));
            job.after.retain(was_done);
        }
    }
    workload
}

/// The times of a job's attempts.
#[derive(Clone, Copy, Default)]
struct JobTimes {
    /// The first start in a segment before the last change of the workload.
    before: Option<u64>,
    /// The end of the last finished task.
    last: u64,
    /// Number of finished tasks.
    done: usize,
    /// Number of tasks of the job.
    tasks: usize,
}

/// Number of tasks of a phase that lists them.
pub(crate) fn tasks(phase: &PhaseDraft) -> usize {
    if let TasksDraft::Each(seconds) = &phase.tasks { seconds.len() } else { 0 }
}

impl JobTimes {
    fn note(&mut self, attempt: &Attempt, edited: u32) {
        if attempt.segment < edited {
            self.before = Some(self.before.map_or(attempt.start, |start| start.min(attempt.start)));
        }
        if matches!(attempt.ended, AttemptOutcome::Done(_)) {
            (self.last, self.done) = (self.last.max(attempt.end), self.done + 1);
        }
    }

    /// Whether the job was done at that time.
    fn was_done(&self, at: u64) -> bool {
        self.done == self.tasks && self.last <= at
    }
}

/// The segments of a schedule. `None` if the settings that a schedule shows did not change.
pub fn schedule_segments(segments: &[Segment]) -> Vec<ScheduleSegment> {
    let (whole, jumps) = (WholeCluster::of(segments), Jumps::of(segments));
    let mut all: Vec<ScheduleSegment> = Vec::new();
    for segment in segments {
        // Tasks on a cluster continue while the run stops and resumes, and the run does not know when its
        // machines come and go.
        let is_elsewhere = segment.options.contains_key("profile");
        let next = ScheduleSegment {
            start: Time(segment.start + jumps.until(segment.start)),
            policy: segment.policy().unwrap_or_default().to_owned(),
            slowstart: segment.slowstart(),
            slots: if is_elsewhere { None } else { whole.slots(segment) },
        };
        // If machines come and go at one instant, the last segment has all of them. Attempts of that instant
        // start after it.
        all.pop_if(|last| last.start == next.start);
        let is_same = |last: &ScheduleSegment| *last == ScheduleSegment { start: last.start, ..next.clone() };
        if !all.last().is_some_and(is_same) {
            all.push(next);
        }
    }
    if all.len() > 1 { all } else { Vec::new() }
}

/// Most policies of a run that a text names.
const NAMED: usize = 3;

/// The policies of a run in order, as a text: `edf, then fair`.
pub fn policies(segments: &[Segment]) -> String {
    let mut names: Vec<&str> = segments.iter().filter_map(Segment::policy).collect();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let text = names.join(", then ");
    if more > 0 { format!("{text}, then {more} more") } else { text }
}

/// The workload in which every finished task has its measured duration, on a machine of speed 1; other tasks
/// have their estimates.
pub fn measured(draft: &Draft, attempts: &[Attempt]) -> Draft {
    let (places, mut took) = (MachineSlots::of(&draft.machines), BTreeMap::new());
    for attempt in attempts.iter().filter(|a| matches!(a.ended, AttemptOutcome::Done(_))) {
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

/// The workload in which outputs of other flows are plain directories: the arrivals of flows are known now.
fn without_waits(draft: &Draft) -> Draft {
    let outputs: BTreeMap<(String, String), String> = (draft.flows.iter())
        .flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)))
        .filter_map(|(flow, job)| {
            Some(((flow.id.clone(), job.id.clone()), job.run.as_ref()?.output.clone()?))
        })
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

/// The measured schedule on `instance`, that of the measured workload, whose jobs are in the order of the
/// run's.
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
                AttemptOutcome::Done(_) => Outcome::Done,
                AttemptOutcome::Failed(_) => Outcome::Failed,
                AttemptOutcome::Killed => Outcome::Killed,
                AttemptOutcome::Lost(_) => Outcome::Lost,
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

/// The costs of finished tasks, by phase and group of machines.
pub fn seen(workload: &Draft, attempts: &[Attempt]) -> History {
    let jobs =
        workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(|job| JobName::new(&flow.id, &job.id)));
    let names: Vec<JobName> = jobs.collect();
    let places = MachineSlots::of(&workload.machines);
    let mut records: BTreeMap<(PhaseName, &str), Record> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| matches!(attempt.ended, AttemptOutcome::Done(_))) {
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

/// The progress of a flow.
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

/// The times of a flow; it is complete when all its tasks are.
fn times(instance: &Instance, flow: FlowId, progress: &Progress) -> FlowTimes {
    let tasks: u64 = (instance.flow(flow).jobs().flat_map(|job| instance.job(job).phases()))
        .map(|phase| instance.phase(phase).tasks().map_or(0, |tasks| u64::from(tasks.count())))
        .sum();
    let completion = (progress.done == tasks).then(|| progress.end.seconds());
    FlowTimes { start: progress.start.map(Time::seconds), completion }
}

/// The phase of a task of the run, in the instance of its measured workload.
pub fn phase_of(instance: &Instance, id: TaskId) -> Option<PhaseId> {
    let job = instance.jobs().get(slackline_model::JobId(id.job))?;
    match id.phase {
        PhaseKind::Map => job.map,
        PhaseKind::Reduce => job.reduce,
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;

    use slackline_model::draft::MachineDraft;

    use super::*;

    fn jumped(start: u64, jumped: i64) -> Segment {
        Segment { start, jumped, ..Segment::default() }
    }

    #[test]
    fn documents_follow_a_suspend_and_not_a_wrong_date() {
        let until = |segments: &[Segment], at| Jumps::of(segments).until(at);
        let suspended = [jumped(0, 0), jumped(100, 800)];
        assert_eq!([50, 99, 100, 200].map(|at| until(&suspended, at)), [0, 0, 800, 800]);
        let wrong = [jumped(100, 9_000), jumped(105, -9_000), jumped(300, 800)];
        assert_eq!([50, 102, 200, 300].map(|at| until(&wrong, at)), [0, 0, 0, 800]);
        let set_back = [jumped(100, -800), jumped(200, 700)];
        assert_eq!([50, 150, 250].map(|at| until(&set_back, at)), [0, 0, 0]);
        let partly = [jumped(100, 800), jumped(200, -300), jumped(300, 100)];
        assert_eq!([50, 150, 250, 350].map(|at| until(&partly, at)), [0, 500, 500, 600]);
        assert_eq!(by_date(&suspended, 7), 807);
    }

    #[test]
    fn machines_that_come_at_one_instant_are_one_segment() {
        let machine = |name: &str| MachineDraft {
            name: name.to_owned(),
            count: 1,
            speed: 1.0,
            slots: Slots::Generic(1),
            rack: None,
        };
        let segment = |start, names: &[&str]| Segment {
            start,
            machines: names.iter().map(|name| machine(name)).collect(),
            ..Segment::default()
        };
        let found = schedule_segments(&[
            segment(0, &["a"]),
            segment(7, &[]),
            segment(7, &["b"]),
            segment(7, &["b", "c"]),
        ]);
        assert_eq!(found.iter().map(|segment| segment.start.0).collect::<Vec<_>>(), [0, 7]);
        let slots = |segment: &ScheduleSegment| -> u32 {
            segment.slots.iter().flatten().flatten().map(|range| range.len).sum()
        };
        assert_eq!(found.iter().map(slots).collect::<Vec<_>>(), [1, 2]);
        assert!(schedule_segments(&[segment(0, &["a"]), segment(7, &[]), segment(7, &["a"])]).is_empty());
    }

    #[test]
    fn an_attempt_that_was_suspended_keeps_its_length_and_ends_by_the_clock() {
        let id = TaskId { job: 0, phase: PhaseKind::Map, task: 0 };
        let attempt = |number, start, end| Attempt {
            number,
            id,
            slot: 0,
            segment: 0,
            start,
            began: start,
            end,
            ended: AttemptOutcome::Killed,
        };
        let attempts = [attempt(0, 0, 50), attempt(1, 50, 150), attempt(2, 150, 160)];
        let (_, moved) = whole(&Draft::default(), &[jumped(0, 0), jumped(100, 800)], &attempts);
        let times: Vec<_> = moved.iter().map(|attempt| (attempt.start, attempt.end)).collect();
        assert_eq!(times, [(0, 50), (850, 950), (950, 960)]);
    }
}
