//! Checks ApplicationMasters: one for each job that ran, up while its tasks hold slots, and on a separate
//! slot.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::schedule::{AmRow, Outcome, Schedule};
use slackline_model::{FlowId, Instance, JobId, PhaseId, Profile, SlotKind, Time};

use crate::excess::{Hold, first_excess};
use crate::ledger::Ledger;
use crate::order::Progress;
use crate::tolerance;
use crate::violation::{AmProblem, First, Place, RowProblem, Subject, Table, Violation, flow_name, job_name};

/// A schedule of allocations has no ApplicationMasters.
pub(crate) fn check_none(schedule: &Schedule) -> Result<(), Violation> {
    let none = schedule.ams.is_empty();
    if none { Ok(()) } else { Err(unsound(0, RowProblem::NoAms)) }
}

fn unsound(row: usize, problem: RowProblem) -> Violation {
    Violation::Row { table: Table::Ams, row, problem }
}

/// The first invalid row of an ApplicationMaster.
pub(crate) fn check_rows(instance: &Instance, schedule: &Schedule) -> Result<(), Violation> {
    let wrong = |(i, row): (usize, &AmRow)| Some(unsound(i, fault(instance, schedule, row)?));
    schedule.ams.iter().enumerate().find_map(wrong).map_or(Ok(()), Err)
}

fn fault(instance: &Instance, schedule: &Schedule, row: &AmRow) -> Option<RowProblem> {
    let Some(profile) = &schedule.profile else { return Some(RowProblem::NoAms) };
    if instance.jobs().get(row.job).is_none() {
        return Some(RowProblem::UnknownJob(row.job.0));
    }
    if row.slot.is_some() != (profile.am_share() > 0.0) {
        return Some(RowProblem::AmSlot(row.slot.is_some()));
    }
    let slots = if instance.cluster().is_map_reduce() { 0 } else { instance.cluster().slots(SlotKind::Any) };
    if let Some(first) = row.slot.filter(|&slot| slot >= slots) {
        return Some(RowProblem::SlotNumber { first, len: 1, slots });
    }
    if row.end < row.start {
        return Some(RowProblem::Backwards { start: row.start.seconds(), end: row.end.seconds() });
    }
    if let Some(up) = row.up.filter(|&up| up < row.start || up > row.end) {
        return Some(RowProblem::AmUp(up.seconds()));
    }
    // The same limit as for task rows.
    (row.end.0 > u64::MAX / 2).then_some(RowProblem::NotFinite(row.end.seconds()))
}

fn wrong(instance: &Instance, job: JobId, at: f64, problem: AmProblem) -> Violation {
    let flow = flow_name(instance, instance.job(job).flow);
    Violation::Am { at, flow, job: job_name(instance, job), problem }
}

/// Under a profile, each job with tasks has one ApplicationMaster. It ends as `done` with its job unless its
/// flow failed.
pub(crate) fn check_jobs(
    ledger: &Ledger<'_>,
    schedule: &Schedule,
    failed: impl Fn(FlowId) -> bool,
) -> Result<(), Violation> {
    let instance = ledger.instance;
    let mut seen = BTreeSet::new();
    for row in &schedule.ams {
        let wrong = |problem| Err(wrong(instance, row.job, row.start.seconds(), problem));
        if !seen.insert(row.job) {
            return wrong(AmProblem::Twice);
        }
        let flow_failed = failed(instance.job(row.job).flow);
        match row.outcome {
            Outcome::Done => {}
            Outcome::Killed if flow_failed => {}
            other => {
                let expected = if flow_failed { "done or killed" } else { "done" };
                return wrong(AmProblem::Outcome { found: other.name(), expected });
            }
        }
    }
    if schedule.profile.is_none() {
        return Ok(());
    }
    for &i in ledger.by_start() {
        let row = ledger.row(i);
        let job = instance.phase(row.phase).job;
        if !seen.contains(&job) {
            return Err(wrong(instance, job, row.start.seconds(), AmProblem::Missing));
        }
    }
    Ok(())
}

/// Offers the actions of ApplicationMasters at a wrong time or on a wrong slot.
pub(crate) fn check_times(ledger: &Ledger<'_>, progress: &Progress, schedule: &Schedule, first: &mut First) {
    let Some(profile) = &schedule.profile else { return };
    let of_job: BTreeMap<JobId, &AmRow> = schedule.ams.iter().map(|row| (row.job, row)).collect();
    for row in &schedule.ams {
        check_life(ledger.instance, progress, profile, row, first);
    }
    for &i in ledger.by_start() {
        let row = ledger.row(i);
        let Some(am) = of_job.get(&ledger.instance.phase(row.phase).job) else { continue };
        let is_up = am.up.is_some_and(|up| !tolerance::earlier_micros(row.start, up))
            && !tolerance::earlier_micros(am.end, row.end);
        if !is_up {
            let task = Subject::task(ledger.instance, row.phase, row.first);
            offer(ledger.instance, first, am.job, row.start, AmProblem::Without { task });
        }
    }
    check_share(ledger.instance, profile, &schedule.ams, first);
    check_overlaps(ledger, &schedule.ams, first);
}

fn offer(instance: &Instance, first: &mut First, job: JobId, at: Time, problem: AmProblem) {
    let phase = instance.job(job).phases().next().unwrap_or(PhaseId(0));
    first.offer(at.seconds(), phase, || wrong(instance, job, at.seconds(), problem));
}

/// An ApplicationMaster starts when its job is submitted, is up some time later, and leaves some time after
/// its job.
fn check_life(instance: &Instance, progress: &Progress, profile: &Profile, row: &AmRow, first: &mut First) {
    let earliest = progress.job_ready(instance, row.job).map(|ready| ready + profile.submit().least);
    if earliest.is_none_or(|earliest| tolerance::earlier_micros(row.start, earliest)) {
        let earliest = earliest.map_or(f64::INFINITY, Time::seconds);
        offer(instance, first, row.job, row.start, AmProblem::Early { earliest });
    }
    let (least, most) = (profile.am_start().least.seconds(), profile.am_start().most.seconds());
    if let Some(up) = row.up {
        let found = up.since(row.start).seconds();
        let is_right = found >= least - tolerance::amount(least) && found <= most + tolerance::amount(most);
        if !is_right {
            offer(instance, first, row.job, row.start, AmProblem::Start { found, least, most });
        }
    }
    let ended = progress.job_done(instance, row.job).map(|done| done + profile.am_linger());
    let is_right = ended.is_some_and(|ended| tolerance::same_instant(row.end.seconds(), ended.seconds()));
    if row.outcome == Outcome::Done && !is_right {
        let expected = ended.map_or(f64::INFINITY, Time::seconds);
        offer(instance, first, row.job, row.end, AmProblem::End { expected });
    }
}

/// ApplicationMasters hold at most their share of the slots: one may always start, and one slot always
/// remains.
fn check_share(instance: &Instance, profile: &Profile, ams: &[AmRow], first: &mut First) {
    let cluster = instance.cluster();
    if profile.am_share() == 0.0 || cluster.is_map_reduce() {
        return;
    }
    let slots = cluster.slots(SlotKind::Any);
    let share = (profile.am_share() * f64::from(slots)).floor() as u32;
    let most = share.max(1).min(slots - 1);
    let hold = |(i, row): (usize, &AmRow)| Hold {
        start: row.start.seconds(),
        end: row.end.seconds(),
        slots: 1,
        row: i as u32,
    };
    if let Some(excess) = first_excess(ams.iter().enumerate().map(hold).collect(), u64::from(most)) {
        let row = &ams[excess.row as usize];
        offer(instance, first, row.job, row.start, AmProblem::TooMany { found: excess.held, most });
    }
}

/// A slot that a task or an ApplicationMaster holds for some time.
struct SlotUse {
    slot: u32,
    start: Time,
    end: Time,
    by: SlotHolder,
}

#[derive(Clone, Copy)]
enum SlotHolder {
    Am(JobId),
    Task(PhaseId, u32),
}

/// Offers slots that an ApplicationMaster and another holder hold at once. O(n log n) in the attempts on
/// slots of ApplicationMasters.
fn check_overlaps(ledger: &Ledger<'_>, ams: &[AmRow], first: &mut First) {
    let instance = ledger.instance;
    let of_ams: BTreeSet<u32> = ams.iter().filter_map(|row| row.slot).collect();
    let mut taken: Vec<SlotUse> = Vec::new();
    for row in ams {
        let by = SlotHolder::Am(row.job);
        taken.extend(row.slot.map(|slot| SlotUse { slot, start: row.start, end: row.end, by }));
    }
    for &i in ledger.by_start() {
        let row = ledger.row(i);
        let slots = ledger.rows.places(row).iter().flat_map(|place| place.first..place.end());
        for (task, slot) in (row.first..).zip(slots).filter(|(_, slot)| of_ams.contains(slot)) {
            taken.push(SlotUse {
                slot,
                start: row.start,
                end: row.end,
                by: SlotHolder::Task(row.phase, task),
            });
        }
    }
    taken.retain(|taken| tolerance::shrunk(taken.end) > taken.start);
    taken.sort_by_key(|taken| (taken.slot, taken.start));
    for (before, after) in latest_before(&taken) {
        if tolerance::shrunk(before.end) <= after.start {
            continue;
        }
        let (job, other) = match (before.by, after.by) {
            (SlotHolder::Am(job), SlotHolder::Task(phase, task))
            | (SlotHolder::Task(phase, task), SlotHolder::Am(job)) => {
                (job, Some(Box::new(Subject::task(instance, phase, task))))
            }
            (SlotHolder::Am(_), SlotHolder::Am(job)) => (job, None),
            // `slots` checks overlaps of tasks.
            (SlotHolder::Task(..), SlotHolder::Task(..)) => continue,
        };
        let place = Place::new(instance.cluster(), SlotKind::Any, after.slot);
        offer(instance, first, job, after.start, AmProblem::Overlap { place, other });
    }
}

/// Each use with the earlier use that held its slot longest.
fn latest_before(taken: &[SlotUse]) -> impl Iterator<Item = (&SlotUse, &SlotUse)> {
    let mut last: Option<&SlotUse> = None;
    taken.iter().filter_map(move |next| {
        let before = last.filter(|last| last.slot == next.slot);
        last = Some(before.filter(|before| before.end > next.end).unwrap_or(next));
        before.map(|before| (before, next))
    })
}
