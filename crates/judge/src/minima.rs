//! Checks minima in task rows: no slot goes to a phase at or above its minimum while a ready phase with tasks
//! to start is below its minimum.
//!
//! The rule holds at each instant at which tasks start, after all starts of that instant. If a phase that
//! started a task holds more than its minimum, no ready phase of the slot kind with unstarted tasks holds
//! fewer than its minimum. The judge accepts a schedule where the rows leave the following open:
//! - Only tasks without any attempt count as waiting to start: the rows do not show when a failed task can be
//!   repeated.
//! - A reduce phase is ready once its maps are done, or once enough of them are done for slow-start and
//!   waiting reduces would still leave a slot to the maps. The rows do not show which machines are up, so
//!   only slots in use count. The rows do not show when output was lost either: a reduce whose job lost
//!   output may wait again at any time.
//! - The rows do not show when output was lost, nor when a flow failed. While this leaves open whether a
//!   guaranteed phase is ready or how many tasks it has left, the judge skips its slot kind.
//! - The rows do not show when, within an instant, tasks without length ended. With tasks of a guaranteed
//!   phase its minimum shrinks and the minima of others grow. The judge skips such an instant.
//! - The rows do not show whether a waiting reduce got its slot before or after others within an instant. It
//!   may bar further reduces, whose minima then go to other phases. Only a breach under both orders is a
//!   breach.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use slackline_model::schedule::{Outcome, TaskRow};
use slackline_model::{FlowId, PhaseId, PhaseKind, SlotKind, Time};

use crate::excess::Hold;
use crate::guarantee::{self, Ready};
use crate::ledger::Ledger;
use crate::order::{Progress, computes_from, waits};
use crate::tolerance;
use crate::violation::{First, Subject, Violation};

/// A phase with a guarantee, and when the guarantee comes into force.
struct Guaranteed {
    phase: PhaseId,
    ready: Time,
    /// From when on the rule about waiting reduces does not bar the phase.
    free: Time,
    /// Until when the rows leave the needs of the phase open; its start if they never do.
    doubtful: Time,
}

/// Offers the first breach in each slot kind. O(starts · (guaranteed phases that are ready) + n log n).
pub(crate) fn check(
    ledger: &Ledger<'_>,
    progress: &Progress,
    failed: impl Fn(FlowId) -> bool,
    first: &mut First,
) {
    let of_no_length = || {
        let rows = ledger.rows.rows().iter();
        rows.filter(|row| computes_from(ledger.instance, progress, row).is_none_or(|from| from >= row.end))
    };
    let instants: BTreeSet<Time> = of_no_length().map(|row| row.end).collect();
    let is_guaranteed = |row: &&TaskRow| guarantee::at_most(ledger.instance, row.phase) > 0;
    let unclear: BTreeSet<Time> = of_no_length().filter(is_guaranteed).map(|row| row.end).collect();
    for &slot_kind in ledger.instance.cluster().slot_kinds() {
        let phases = ledger.instance.phases().keys().filter(|&phase| {
            let of_slot_kind = ledger.instance.slot_kind_of(phase) == slot_kind && !ledger.is_unseen(phase);
            of_slot_kind && guarantee::at_most(ledger.instance, phase) > 0
        });
        let guaranteed = phases.filter_map(|phase| {
            let mut g = guaranteed(ledger, progress, phase)?;
            if failed(ledger.instance.flow_of(phase)) {
                g.doubtful = Time(u64::MAX);
            }
            // Tasks without length follow each other within an instant. The rows do not show the order in
            // which other slots were assigned meanwhile.
            for at in [g.ready, g.free, g.doubtful] {
                if instants.contains(&at) {
                    g.doubtful = g.doubtful.max(Time(at.0 + 1));
                }
            }
            Some(g)
        });
        let mut guaranteed: Vec<_> = guaranteed.collect();
        if !guaranteed.is_empty() {
            guaranteed.sort_by_key(|g| (g.ready, g.phase));
            Sweep::new(ledger, slot_kind, &waits(ledger, progress)).run(guaranteed, &unclear, first);
        }
    }
}

fn guaranteed(ledger: &Ledger<'_>, progress: &Progress, id: PhaseId) -> Option<Guaranteed> {
    let phase = ledger.instance.phase(id);
    let ready = progress.job_ready(ledger.instance, phase.job)?;
    let map = ledger.instance.job(phase.job).map.filter(|_| phase.kind == PhaseKind::Reduce);
    // Losses of the phase itself, and losses of the maps that it waits for.
    let lossy = [Some(id), map].into_iter().flatten().filter(|&p| ledger.has_losses(p));
    let doubtful = lossy.map(|p| progress.done[p].unwrap_or(Time(u64::MAX))).max();
    let barrier = progress.barriers[phase.job].as_ref().filter(|_| map.is_some());
    let (ready, free) = match (barrier, doubtful) {
        (Some(barrier), None) => {
            // Maps that never finish are those of a failed flow, whose needs are all unknown. Runs promise no
            // minima, so there is one segment.
            let Some((enough, all)) = barrier.enough(0).at.zip(barrier.first()) else {
                return Some(Guaranteed { phase: id, ready, free: ready, doubtful: Time(u64::MAX) });
            };
            (ready.max(enough), ready.max(all))
        }
        _ => (ready, ready),
    };
    Some(Guaranteed { phase: id, ready, free, doubtful: doubtful.unwrap_or(Time::ZERO) })
}

/// Slots held and tasks left while time passes over the rows of one slot kind.
struct Sweep<'a, 'b> {
    ledger: &'b Ledger<'a>,
    slot_kind: SlotKind,
    starts: Vec<&'a TaskRow>,
    /// The same rows in the order of their ends.
    ends: Vec<&'a TaskRow>,
    n_ended: usize,
    waits: Waits,
    /// Reduce phases of jobs that lost map output.
    may_wait: Vec<PhaseId>,
    in_use: i64,
    held: Vec<i64>,
    not_started: Vec<i64>,
    left: Vec<i64>,
}

impl<'a, 'b> Sweep<'a, 'b> {
    fn new(ledger: &'b Ledger<'a>, slot_kind: SlotKind, waits: &[Hold]) -> Self {
        let rows = ledger.by_start().iter().map(|&i| ledger.row(i));
        let starts: Vec<_> =
            rows.filter(|row| ledger.instance.slot_kind_of(row.phase) == slot_kind).collect();
        let mut ends = starts.clone();
        ends.sort_by_key(|row| row.end);
        let tasks: Vec<i64> =
            ledger.instance.phases().iter().map(|p| p.tasks().map_or(0, |t| i64::from(t.count()))).collect();
        Self {
            ledger,
            slot_kind,
            starts,
            ends,
            n_ended: 0,
            waits: Waits::new(waits),
            may_wait: may_wait(ledger),
            in_use: 0,
            held: vec![0; tasks.len()],
            not_started: tasks.clone(),
            left: tasks,
        }
    }

    /// Does not judge the instants in `unclear`.
    fn run(mut self, guaranteed: Vec<Guaranteed>, unclear: &BTreeSet<Time>, first: &mut First) {
        let mut waiting = guaranteed.into_iter().peekable();
        let mut ready: BTreeMap<PhaseId, Guaranteed> = BTreeMap::new();
        let mut next = 0;
        while let Some(row) = self.starts.get(next) {
            let now = row.start;
            let group = self.starts[next..].partition_point(|row| row.start == now);
            self.pass(now, next..next + group);
            while let Some(g) = waiting.next_if(|g| g.ready <= now) {
                ready.insert(g.phase, g);
            }
            ready.retain(|phase, _| self.left[phase.index()] > 0);
            if !unclear.contains(&now)
                && let Some((phase, violation)) = self.breach(now, next..next + group, &ready)
            {
                first.offer(now.seconds(), phase, || violation);
                return;
            }
            next += group;
        }
    }

    /// Advances to `now`: applies the ends up to `now` and the starts in `group`, the rows of that instant.
    fn pass(&mut self, now: Time, group: Range<usize>) {
        while let Some(row) = self.ends.get(self.n_ended).filter(|row| row.end <= now) {
            self.in_use -= i64::from(row.count);
            self.held[row.phase.index()] -= i64::from(row.count);
            if row.outcome == Outcome::Done {
                self.left[row.phase.index()] -= i64::from(row.count);
            }
            self.n_ended += 1;
        }
        for row in &self.starts[group] {
            self.in_use += i64::from(row.count);
            self.held[row.phase.index()] += i64::from(row.count);
            if row.attempt == 0 {
                self.not_started[row.phase.index()] -= i64::from(row.count);
            }
        }
        self.waits.pass(now);
    }

    /// The lowest phase below its minimum while a phase that starts tasks in `group` holds more than its
    /// minimum.
    fn breach(
        &self,
        now: Time,
        group: Range<usize>,
        ready: &BTreeMap<PhaseId, Guaranteed>,
    ) -> Option<(PhaseId, Violation)> {
        let instance = self.ledger.instance;
        let held = |phase: PhaseId| self.held[phase.index()];
        let below = |phase: PhaseId, minimum: u32| {
            self.not_started[phase.index()] > 0 && held(phase) < i64::from(minimum)
        };
        // Tasks that start within the tolerance of this instant are in time.
        let arriving = |phase: PhaseId| {
            let soon = self.starts[group.end..].iter();
            let soon = soon.take_while(|row| row.start <= tolerance::latest_same(now));
            soon.filter(|row| row.phase == phase).map(|row| i64::from(row.count)).sum::<i64>()
        };
        let in_want =
            |phase: PhaseId, m: u32| below(phase, m) && held(phase) + arriving(phase) < i64::from(m);
        if !ready.keys().any(|&phase| below(phase, guarantee::at_most(instance, phase)))
            || ready.values().any(|g| now < g.doubtful)
        {
            return None;
        }
        let may_wait: i64 = self.may_wait.iter().map(|&phase| held(phase)).sum();
        let spare = self.in_use - self.waits.held - may_wait;
        let breach = |spare| self.breach_with(spare, now, &group, ready, &in_want);
        breach(spare + self.waits.started).and_then(|_| breach(spare))
    }

    /// The same with `spare` slots that no waiting reduce holds.
    fn breach_with(
        &self,
        spare: i64,
        now: Time,
        group: &Range<usize>,
        ready: &BTreeMap<PhaseId, Guaranteed>,
        below: &impl Fn(PhaseId, u32) -> bool,
    ) -> Option<(PhaseId, Violation)> {
        let instance = self.ledger.instance;
        let held = |phase: PhaseId| self.held[phase.index()];
        let barred = |g: &Guaranteed| self.slot_kind == SlotKind::Any && now < g.free && spare < 2;
        let left = |phase: PhaseId| u32::try_from(self.left[phase.index()]).unwrap_or(0);
        let ready: Vec<&Guaranteed> = ready.values().filter(|g| !barred(g) || held(g.phase) > 0).collect();
        let entries: Vec<Ready> =
            ready.iter().map(|g| Ready { phase: g.phase, left: left(g.phase) }).collect();
        let minima = guarantee::minima(instance, self.slot_kind, &entries);
        let mut wants = ready.iter().zip(&minima).filter(|(g, _)| !barred(g));
        let (want, minimum) = wants.find(|&(g, &m)| below(g.phase, m)).map(|(g, &m)| (g.phase, m))?;
        let minimum_of = |phase: PhaseId| {
            ready.binary_search_by_key(&phase, |g| g.phase).map_or(0, |at| i64::from(minima[at]))
        };
        let takers = self.starts[group.clone()].iter().map(|row| row.phase);
        let taker = takers.filter(|&p| held(p) - self.leaving(p, now) > minimum_of(p)).min()?;
        let violation = Violation::Minimum {
            at: now.seconds(),
            phase: Subject::phase(instance, want),
            found: u64::try_from(held(want)).unwrap_or(0),
            minimum,
            taker: Some(Box::new(Subject::phase(instance, taker))),
        };
        Some((want, violation))
    }

    /// Slots that `phase` frees within the tolerance of this instant.
    fn leaving(&self, phase: PhaseId, now: Time) -> i64 {
        let same = self.ends[self.n_ended..].iter().take_while(|row| row.end <= tolerance::latest_same(now));
        same.filter(|row| row.phase == phase).map(|row| i64::from(row.count)).sum()
    }
}

/// The reduce phases of jobs that lost map output.
fn may_wait(ledger: &Ledger<'_>) -> Vec<PhaseId> {
    let jobs = ledger.instance.jobs().iter();
    let lossy = jobs.filter(|job| job.map.is_some_and(|map| ledger.has_losses(map)));
    lossy.filter_map(|job| job.reduce).collect()
}

/// Slots held by early reduces that wait for maps.
struct Waits {
    starts: Vec<(f64, i64)>,
    ends: Vec<(f64, i64)>,
    passed: [usize; 2],
    held: i64,
    /// The part of `held` that started at the instant passed last.
    started: i64,
}

impl Waits {
    fn new(waits: &[Hold]) -> Self {
        let sorted = |of: fn(&Hold) -> f64| {
            let mut list: Vec<_> = waits.iter().map(|hold| (of(hold), i64::from(hold.slots))).collect();
            list.sort_by(|a, b| a.0.total_cmp(&b.0));
            list
        };
        Self { starts: sorted(|h| h.start), ends: sorted(|h| h.end), passed: [0; 2], held: 0, started: 0 }
    }

    fn pass(&mut self, now: Time) {
        let now = now.seconds();
        self.started = 0;
        for (list, sign, side) in [(&self.starts, 1, 0), (&self.ends, -1, 1)] {
            while let Some(&(_, slots)) = list.get(self.passed[side]).filter(|e| e.0 <= now) {
                self.held += sign * slots;
                self.started += if side == 0 && list[self.passed[side]].0 == now { slots } else { 0 };
                self.passed[side] += 1;
            }
        }
    }
}
