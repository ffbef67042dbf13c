//! Minima in task rows: no slot goes to a phase at or above its minimum while a ready phase with
//! tasks to start is below its own.
//!
//! At each instant at which tasks start, after all starts of that instant: if a phase that started
//! one holds more than its minimum, no ready phase of the lane with tasks not yet started holds fewer
//! than its own. Where the rows leave room, the phase in want is the one that gets the benefit:
//! - only tasks without any attempt are waiting to start, because when a failed or lost one could be
//!   repeated the rows do not say;
//! - a reduce phase is ready once its maps are done, or enough of them for slow-start and no more
//!   waiting reduces than leave a slot to the maps; if map output was lost, only after the last re-run;
//! - a phase of a failed flow is guaranteed nothing, since when it was given up the rows do not say.

use std::collections::BTreeMap;

use slackline_model::schedule::{Outcome, TaskRow};
use slackline_model::{FlowId, Lane, PhaseId, PhaseKind, Time};

use crate::book::Book;
use crate::guarantee::{self, Ready};
use crate::order::{Progress, waits};
use crate::sweep::Hold;
use crate::tolerance;
use crate::violation::{First, Violation, Who};

/// A phase with a guarantee, and when it comes into force.
struct Guaranteed {
    phase: PhaseId,
    ready: Time,
    /// From when on the rule about waiting reduces does not bar it.
    free: Time,
}

/// Offers the first breach in each lane. O(starts · (guaranteed phases that are ready) + n log n).
pub(crate) fn check(
    book: &Book<'_>,
    progress: &Progress,
    failed: impl Fn(FlowId) -> bool,
    first: &mut First,
) {
    for &lane in book.instance.cluster().lanes() {
        let phases = book.instance.phases().keys().filter(|&phase| {
            book.instance.lane_of(phase) == lane
                && !failed(book.instance.flow_of(phase))
                && guarantee::at_most(book.instance, phase) > 0
        });
        let mut guaranteed: Vec<_> = phases.filter_map(|phase| guaranteed(book, progress, phase)).collect();
        if !guaranteed.is_empty() {
            guaranteed.sort_by_key(|g| (g.ready, g.phase));
            Sweep::new(book, lane, &waits(book, progress)).run(guaranteed, first);
        }
    }
}

fn guaranteed(book: &Book<'_>, progress: &Progress, id: PhaseId) -> Option<Guaranteed> {
    let phase = book.instance.phase(id);
    let ready = progress.job_ready(book.instance, phase.job)?;
    let barrier = progress.barriers[phase.job].as_ref().filter(|_| phase.kind == PhaseKind::Reduce);
    let Some(barrier) = barrier else { return Some(Guaranteed { phase: id, ready, free: ready }) };
    if barrier.has_reruns() {
        let last = ready.max(progress.done[book.instance.job(phase.job).map?]?);
        return Some(Guaranteed { phase: id, ready: last, free: last });
    }
    let free = ready.max(barrier.first()?);
    Some(Guaranteed { phase: id, ready: ready.max(barrier.enough()?), free })
}

/// Slots held and tasks left while time passes over the rows of one lane.
struct Sweep<'a, 'b> {
    book: &'b Book<'a>,
    lane: Lane,
    starts: Vec<&'a TaskRow>,
    /// The same rows by end.
    ends: Vec<&'a TaskRow>,
    n_ended: usize,
    waits: Waits,
    held: Vec<i64>,
    not_started: Vec<i64>,
    left: Vec<i64>,
}

impl<'a, 'b> Sweep<'a, 'b> {
    fn new(book: &'b Book<'a>, lane: Lane, waits: &[Hold]) -> Self {
        let rows = book.by_start().iter().map(|&i| book.row(i));
        let starts: Vec<_> = rows.filter(|row| book.instance.lane_of(row.phase) == lane).collect();
        let mut ends = starts.clone();
        ends.sort_by_key(|row| row.end);
        let tasks: Vec<i64> =
            book.instance.phases().iter().map(|p| p.tasks().map_or(0, |t| i64::from(t.count()))).collect();
        Self {
            book,
            lane,
            starts,
            ends,
            n_ended: 0,
            waits: Waits::new(waits),
            held: vec![0; tasks.len()],
            not_started: tasks.clone(),
            left: tasks,
        }
    }

    fn run(mut self, guaranteed: Vec<Guaranteed>, first: &mut First) {
        let mut waiting = guaranteed.into_iter().peekable();
        let mut ready: BTreeMap<PhaseId, Guaranteed> = BTreeMap::new();
        let mut next = 0;
        while let Some(row) = self.starts.get(next) {
            let now = row.start;
            let group = self.starts[next..].partition_point(|row| row.start <= tolerance::latest_same(now));
            self.pass(now, next..next + group);
            while let Some(g) = waiting.next_if(|g| g.ready <= now) {
                ready.insert(g.phase, g);
            }
            ready.retain(|phase, _| self.left[phase.index()] > 0);
            if let Some((phase, violation)) = self.breach(now, next..next + group, &ready) {
                first.offer(now.seconds(), phase, || violation);
                return;
            }
            next += group;
        }
    }

    /// Lets everything happen that ends up to `now` or starts in `group`, the rows of that instant.
    fn pass(&mut self, now: Time, group: std::ops::Range<usize>) {
        while let Some(row) = self.ends.get(self.n_ended).filter(|row| row.end <= now) {
            self.held[row.phase.index()] -= i64::from(row.count);
            if row.outcome == Outcome::Done {
                self.left[row.phase.index()] -= i64::from(row.count);
            }
            self.n_ended += 1;
        }
        for row in &self.starts[group] {
            self.held[row.phase.index()] += i64::from(row.count);
            if row.attempt == 0 {
                self.not_started[row.phase.index()] -= i64::from(row.count);
            }
        }
        self.waits.pass(now);
    }

    /// The lowest phase in want while a phase that starts tasks in `group` holds more than its own.
    fn breach(
        &self,
        now: Time,
        group: std::ops::Range<usize>,
        ready: &BTreeMap<PhaseId, Guaranteed>,
    ) -> Option<(PhaseId, Violation)> {
        let instance = self.book.instance;
        let below = |phase: PhaseId, minimum: u32| {
            self.not_started[phase.index()] > 0 && self.held[phase.index()] < i64::from(minimum)
        };
        if !ready.keys().any(|&phase| below(phase, guarantee::at_most(instance, phase))) {
            return None;
        }
        let slots = i64::from(instance.cluster().slots(self.lane));
        let barred = |g: &Guaranteed| self.lane == Lane::Any && now < g.free && self.waits.held >= slots - 1;
        let left = |phase: PhaseId| u32::try_from(self.left[phase.index()]).unwrap_or(0);
        let ready: Vec<Ready> = ready
            .values()
            .filter(|g| !barred(g))
            .map(|g| Ready { phase: g.phase, left: left(g.phase) })
            .collect();
        let minima = guarantee::minima(instance, self.lane, &ready);
        let (want, minimum) =
            ready.iter().zip(&minima).map(|(r, &m)| (r.phase, m)).find(|&(phase, m)| below(phase, m))?;
        let minimum_of = |phase: PhaseId| {
            ready.binary_search_by_key(&phase, |r| r.phase).map_or(0, |at| i64::from(minima[at]))
        };
        let takers = self.starts[group].iter().map(|row| row.phase);
        let taker = takers.filter(|&p| self.held[p.index()] - self.leaving(p, now) > minimum_of(p)).min()?;
        let violation = Violation::Minimum {
            at: now.seconds(),
            phase: Who::phase(instance, want),
            found: self.held[want.index()] as u64,
            minimum,
            taker: Some(Box::new(Who::phase(instance, taker))),
        };
        Some((want, violation))
    }

    /// Slots that `phase` gives back at what is still the same instant.
    fn leaving(&self, phase: PhaseId, now: Time) -> i64 {
        let same = self.ends[self.n_ended..].iter().take_while(|row| row.end <= tolerance::latest_same(now));
        same.filter(|row| row.phase == phase).map(|row| i64::from(row.count)).sum()
    }
}

/// Slots held by early reduces that wait for maps.
struct Waits {
    starts: Vec<(f64, i64)>,
    ends: Vec<(f64, i64)>,
    passed: [usize; 2],
    held: i64,
}

impl Waits {
    fn new(waits: &[Hold]) -> Self {
        let sorted = |of: fn(&Hold) -> f64| {
            let mut list: Vec<_> = waits.iter().map(|hold| (of(hold), i64::from(hold.slots))).collect();
            list.sort_by(|a, b| a.0.total_cmp(&b.0));
            list
        };
        Self { starts: sorted(|h| h.start), ends: sorted(|h| h.end), passed: [0; 2], held: 0 }
    }

    fn pass(&mut self, now: Time) {
        let until = [tolerance::latest_same(now).seconds(), now.seconds()];
        for (list, sign, side) in [(&self.starts, 1, 0), (&self.ends, -1, 1)] {
            while let Some(&(_, slots)) = list.get(self.passed[side]).filter(|e| e.0 <= until[side]) {
                self.held += sign * slots;
                self.passed[side] += 1;
            }
        }
    }
}
