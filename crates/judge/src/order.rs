//! Checks the order of the task rows: release, precedence among jobs, reduces after maps.

use slackline_model::id::TiVec;
use slackline_model::schedule::{Outcome, Schedule, TaskRow};
use slackline_model::{Instance, JobId, PhaseId, PhaseKind, SlotKind, Time};

use crate::barrier::{Barrier, SlowstartMaps};
use crate::excess::{Hold, first_excess};
use crate::ledger::Ledger;
use crate::segments::Timeline;
use crate::tolerance;
use crate::violation::{First, ReduceEvent, Subject, Violation, job_name};

/// When phases are done and barriers close, from the rows.
pub(crate) struct Progress {
    /// When each phase is done; `None` for never.
    pub(crate) done: TiVec<PhaseId, Option<Time>>,
    /// The barrier of each job that has one.
    pub(crate) barriers: TiVec<JobId, Option<Barrier>>,
}

impl Progress {
    pub(crate) fn new(ledger: &Ledger<'_>, timeline: &Timeline<'_>) -> Self {
        let (instance, slowstarts) = (ledger.instance, timeline.slowstarts());
        let barriers = instance.jobs().keys().map(|job| Barrier::new(ledger, job, &slowstarts));
        let done = vec![None; instance.phases().len()].into();
        let mut progress = Self { done, barriers: barriers.collect() };
        for job in instance.topological() {
            let mut ready = progress.job_ready(instance, job);
            for phase in instance.job(job).phases() {
                let done = if ledger.is_unseen(phase) { ready } else { last_end(ledger, phase) };
                progress.done[phase] = done;
                ready = ready.zip(done).map(|(ready, done)| ready.max(done));
            }
        }
        progress
    }

    /// The barrier at which an attempt of a reduce waits.
    fn barrier_of(&self, instance: &Instance, row: &TaskRow) -> Option<&Barrier> {
        let phase = instance.phase(row.phase);
        self.barriers[phase.job].as_ref().filter(|_| phase.kind == PhaseKind::Reduce)
    }

    /// Whether the rows allow that an attempt waited for maps.
    pub(crate) fn may_have_waited(&self, instance: &Instance, row: &TaskRow) -> bool {
        self.barrier_of(instance, row).is_some_and(|barrier| barrier.was_open(row.start, row.end))
    }

    /// Whether a re-run without length started and ended at the end of an attempt of a reduce.
    pub(crate) fn ends_with_barrier(&self, instance: &Instance, row: &TaskRow) -> bool {
        self.barrier_of(instance, row).is_some_and(|barrier| barrier.has_instant_rerun(row.end))
    }

    /// When `job` is done: all tasks of all its phases.
    pub(crate) fn job_done(&self, instance: &Instance, job: JobId) -> Option<Time> {
        let mut last = Time::ZERO;
        for phase in instance.job(job).phases() {
            last = last.max(self.done[phase]?);
        }
        Some(last)
    }

    /// When `job` may start: when its flow is released and all its predecessors are done; `None` for never.
    pub(crate) fn job_ready(&self, instance: &Instance, job: JobId) -> Option<Time> {
        let mut ready = instance.flow(instance.job(job).flow).release;
        for &after in &instance.job(job).after {
            ready = ready.max(self.job_done(instance, after)?);
        }
        Some(ready)
    }
}

/// When the last task of a phase was done, if all of them were.
fn last_end(ledger: &Ledger<'_>, phase: PhaseId) -> Option<Time> {
    let (mut count, mut end) = (0u64, Time::ZERO);
    for row in ledger.of(phase).filter(|row| row.outcome == Outcome::Done) {
        count += u64::from(row.count);
        end = end.max(row.end);
    }
    let tasks = u64::from(ledger.instance.phase(phase).tasks()?.count());
    (count >= tasks).then_some(end)
}

/// Offers the first attempt of each phase that starts before its release or before a predecessor of its job
/// is done.
pub(crate) fn check_precedence(ledger: &Ledger<'_>, progress: &Progress, first: &mut First) {
    let instance = ledger.instance;
    for (id, phase) in instance.phases().iter_enumerated() {
        let Some(row) = ledger.of(id).next() else { continue };
        let at = row.start.seconds();
        let who = || Subject::task(instance, id, row.first);
        let job = instance.job(phase.job);
        let release = instance.flow(job.flow).release;
        if tolerance::earlier_micros(row.start, release) {
            let release = release.seconds();
            first.offer(at, id, || Violation::Release { at, who: who(), release });
        }
        for &after in &job.after {
            let done = progress.job_done(instance, after);
            if done.is_none_or(|done| tolerance::earlier_micros(row.start, done)) {
                let (after, done) = (job_name(instance, after), done.map(Time::seconds));
                first.offer(at, id, || Violation::Precedence { at, who: who(), after, done });
                break;
            }
        }
    }
}

/// Offers reduces that start before enough maps are done, reduces that are done before all maps are, and
/// early reduces that leave no slot to the maps.
pub(crate) fn check_reduces(
    ledger: &Ledger<'_>,
    progress: &Progress,
    timeline: &Timeline<'_>,
    first: &mut First,
) {
    let slowstarts = timeline.slowstarts();
    for (job, barrier) in progress.barriers.iter_enumerated() {
        let Some((barrier, reduce)) = barrier.as_ref().zip(ledger.instance.job(job).reduce) else { continue };
        for row in ledger.of(reduce) {
            let segment = timeline.at(row.start);
            check_start(
                ledger,
                (slowstarts[segment] < 1.0).then(|| barrier.enough(segment)),
                barrier,
                row,
                first,
            );
            check_end(ledger, barrier, row, first);
        }
    }
    let waits = waits(ledger, progress);
    // Reduces on reduce slots take no slot from the maps.
    if ledger.instance.cluster().is_map_reduce() || waits.is_empty() {
        return;
    }
    let of = |segment: usize| {
        let is_of = |hold: &&Hold| timeline.at(ledger.row(hold.row).start) == segment;
        waits.iter().filter(is_of).copied().collect::<Vec<Hold>>()
    };
    for segment in 0..slowstarts.len() {
        check_early(
            ledger,
            of(segment),
            timeline.slots(ledger.instance.cluster(), segment, SlotKind::Any),
            first,
        );
    }
}

/// Offers the first early reduce that leaves no slot to the maps. `waits` started while `slots` were
/// available.
fn check_early(ledger: &Ledger<'_>, waits: Vec<Hold>, slots: u32, first: &mut First) {
    if let Some(excess) = first_excess(waits, u64::from(slots).saturating_sub(1)) {
        let row = ledger.row(excess.row);
        first.offer(excess.at, row.phase, || Violation::EarlyReduce {
            at: excess.at,
            task: Subject::task(ledger.instance, row.phase, row.first),
            found: excess.held,
            slots,
        });
    }
}

/// A reduce starts when the maps are done; with slow-start, it may start once enough maps are done.
fn check_start(
    ledger: &Ledger<'_>,
    early: Option<SlowstartMaps>,
    barrier: &Barrier,
    row: &TaskRow,
    first: &mut First,
) {
    let in_time = |t: Option<Time>| t.is_some_and(|t| !tolerance::earlier_micros(row.start, t));
    let closed = barrier.closed(row.start);
    let enough = early.map(|early| early.at);
    if in_time(closed) || enough.is_some_and(in_time) {
        return;
    }
    let at = row.start.seconds();
    first.offer(at, row.phase, || Violation::MapBeforeReduce {
        at,
        who: Subject::task(ledger.instance, row.phase, row.first),
        event: ReduceEvent::Starts,
        needed: early.map(|early| early.maps),
        done: enough.unwrap_or(closed).map(Time::seconds),
    });
}

/// A finished reduce ends after the last map, under any clock.
fn check_end(ledger: &Ledger<'_>, barrier: &Barrier, row: &TaskRow, first: &mut First) {
    if matches!(row.outcome, Outcome::Failed | Outcome::Killed) {
        return;
    }
    let closed = barrier.closed(row.end);
    if closed.is_some_and(|closed| !tolerance::earlier_micros(row.end, closed)) {
        return;
    }
    let at = row.end.seconds();
    first.offer(at, row.phase, || Violation::MapBeforeReduce {
        at,
        who: Subject::task(ledger.instance, row.phase, row.first),
        event: ReduceEvent::Ends,
        needed: None,
        done: closed.map(Time::seconds),
    });
}

/// Slots held by reduces that took them early and wait for maps. A reduce that waits again because of a
/// re-run took no slot for it and is left out.
pub(crate) fn waits(ledger: &Ledger<'_>, progress: &Progress) -> Vec<Hold> {
    let mut waits = Vec::new();
    for (job, barrier) in progress.barriers.iter_enumerated() {
        let Some((barrier, reduce)) = barrier.as_ref().zip(ledger.instance.job(job).reduce) else { continue };
        for &i in ledger.indices(reduce) {
            let row = ledger.row(i);
            let until = barrier.waits_until(row.start).map_or(row.end, |until| until.min(row.end));
            if tolerance::earlier_micros(row.start, until) {
                let (start, end) = (row.start.seconds(), until.seconds());
                waits.push(Hold { start, end, slots: row.count, row: i });
            }
        }
    }
    waits
}

/// When an attempt started to compute, after its startup and its wait; `None` if it never did.
pub(crate) fn computes_from(instance: &Instance, progress: &Progress, row: &TaskRow) -> Option<Time> {
    let phase = instance.phase(row.phase);
    match (&progress.barriers[phase.job], phase.kind) {
        (Some(barrier), PhaseKind::Reduce) => Some(barrier.closed(row.end)?.max(row.start + row.startup)),
        _ => Some(row.start + row.startup),
    }
}

/// Whether the schedule's slow-start fraction is valid.
pub(crate) fn check_slowstart(schedule: &Schedule) -> Result<(), Violation> {
    let found = schedule.slowstart;
    if (0.0..=1.0).contains(&found) { Ok(()) } else { Err(Violation::Slowstart { found }) }
}
