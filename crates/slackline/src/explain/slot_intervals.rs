//! Rows of either form as slots that a phase holds for some time, and spans of time with their total length.

use slackline_model::id::TiVec;
use slackline_model::instance::Amount;
use slackline_model::schedule::{Outcome, Schedule};
use slackline_model::{Instance, PhaseId};

use crate::explain::TaskNow;

/// The fraction of a phase's work that may be missing because times were rounded.
const WORK_TOLERANCE: f64 = 1e-6;

/// `slots` slots that a phase holds from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotInterval {
    pub(super) phase: PhaseId,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) slots: u32,
    /// The outcome of the attempts; `None` in allocations.
    pub(super) outcome: Option<Outcome>,
}

/// All valid rows: task rows if there are any, otherwise allocations.
pub(super) fn of(instance: &Instance, schedule: &Schedule) -> Vec<SlotInterval> {
    let tasks = schedule.tasks.rows().iter().map(|row| SlotInterval {
        phase: row.phase,
        start: row.start.seconds(),
        end: row.end.seconds(),
        slots: row.count,
        outcome: Some(row.outcome),
    });
    let allocations = schedule.allocations.iter().map(|row| SlotInterval {
        phase: row.phase,
        start: row.start,
        end: row.end,
        slots: row.slots,
        outcome: None,
    });
    let sound = |row: &SlotInterval| {
        instance.phases().get(row.phase).is_some()
            && row.start <= row.end
            && row.start.is_finite()
            && row.end.is_finite()
    };
    if schedule.tasks.is_empty() {
        allocations.filter(sound).filter(|row| row.slots > 0 && row.start < row.end).collect()
    } else {
        tasks.filter(sound).collect()
    }
}

/// The slot of a running task until now. The task counts as killed: it is not finished, and could be started
/// again.
pub(super) fn until(task: &TaskNow, now: f64) -> SlotInterval {
    let (phase, start) = (task.phase, task.since.min(now));
    SlotInterval { phase, start, end: now, slots: 1, outcome: Some(Outcome::Killed) }
}

/// Rows in document order, with indexes by phase and by time.
#[derive(Debug)]
pub(super) struct Rows {
    list: Vec<SlotInterval>,
    /// The rows by phase, in order.
    by_phase: Vec<u32>,
    /// The rows by start, and the latest end among the first rows.
    by_start: Vec<u32>,
    last_ends: Vec<f64>,
}

impl Rows {
    /// O(rows log rows).
    pub(super) fn new(list: Vec<SlotInterval>) -> Self {
        let row = |k: u32| &list[k as usize];
        let mut by_phase: Vec<u32> = (0..list.len() as u32).collect();
        let mut by_start = by_phase.clone();
        by_phase.sort_by_key(|&k| row(k).phase);
        by_start.sort_by(|&a, &b| row(a).start.total_cmp(&row(b).start));
        let last_end = |last: &mut f64, &k: &u32| {
            *last = last.max(row(k).end);
            Some(*last)
        };
        let last_ends = by_start.iter().scan(f64::NEG_INFINITY, last_end).collect();
        Self { list, by_phase, by_start, last_ends }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SlotInterval> {
        self.list.iter()
    }

    /// The rows of a phase, in order. O(log rows + result).
    pub(super) fn of(&self, phase: PhaseId) -> impl Iterator<Item = &SlotInterval> {
        let phase_of = |&k: &u32| self.list[k as usize].phase;
        let first = self.by_phase.partition_point(|k| phase_of(k) < phase);
        let rows = self.by_phase[first..].iter().take_while(move |k| phase_of(k) == phase);
        rows.map(|&k| &self.list[k as usize])
    }

    /// The rows that overlap a span of time, in order. O(log rows + k), where k rows start from the first one
    /// that still runs at `from`.
    pub(super) fn during(&self, from: f64, to: f64) -> impl Iterator<Item = &SlotInterval> {
        let near = self.near(from, to).iter().copied();
        let mut rows: Vec<u32> = near.filter(|&k| self.list[k as usize].end > from).collect();
        rows.sort_unstable();
        rows.into_iter().map(|k| &self.list[k as usize])
    }

    /// By start: from the first row that ends after `from` to the last one that starts before `to`.
    fn near(&self, from: f64, to: f64) -> &[u32] {
        let end = self.by_start.partition_point(|&k| self.list[k as usize].start < to);
        let first = self.last_ends.partition_point(|&last| last <= from).min(end);
        &self.by_start[first..end]
    }
}

/// The times of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// The time at which all its predecessors finished; `None` if they never did.
    pub(super) ready: Option<f64>,
    /// The first time at which it held a slot, if any.
    pub(super) start: Option<f64>,
    /// The last time at which it held a slot, if any. A phase without work and slots ends when it is ready.
    pub(super) end: Option<f64>,
    /// The end of its counted time: its end, or the current time for an unfinished phase.
    pub(super) until: Option<f64>,
    /// Whether all of it is finished.
    pub(super) done: bool,
}

/// The times of all phases. `known_done` says which phases that held slots are finished, regardless of the
/// rows. O(rows + phases + edges).
pub(super) fn extents(
    instance: &Instance,
    held: &[SlotInterval],
    known_done: &dyn Fn(PhaseId) -> bool,
) -> TiVec<PhaseId, Extent> {
    let mut extents: TiVec<PhaseId, Extent> = vec![Extent::default(); instance.phases().len()].into();
    // The number of finished tasks, or the slot-seconds held.
    let mut done: TiVec<PhaseId, f64> = vec![0.0; instance.phases().len()].into();
    for row in held {
        let extent = &mut extents[row.phase];
        extent.start = Some(extent.start.map_or(row.start, |start| start.min(row.start)));
        extent.end = Some(extent.end.map_or(row.end, |end| end.max(row.end)));
        done[row.phase] += match row.outcome {
            Some(Outcome::Done) => f64::from(row.slots),
            Some(_) => 0.0,
            None => f64::from(row.slots) * (row.end - row.start),
        };
    }
    let is_plan = is_plan(held);
    for id in instance.topological() {
        let job = instance.job(id);
        let release = instance.flow(job.flow).release.seconds();
        let of_job = |&before: &_| instance.job(before).phases().map(|p| extents[p]).collect::<Vec<_>>();
        let mut ready = done_by(release, job.after.iter().flat_map(of_job));
        for phase in job.phases() {
            let extent = &mut extents[phase];
            extent.ready = ready;
            // A phase without length holds no slot and has no rows.
            let is_unseen = extent.start.is_none() && instance.phase(phase).is_without_length();
            extent.done = match &instance.phase(phase).amount {
                _ if is_unseen => true,
                _ if extent.start.is_some() && known_done(phase) => true,
                Amount::Tasks(tasks) if !is_plan => done[phase] >= f64::from(tasks.count()),
                amount => {
                    let work = match amount {
                        Amount::Tasks(tasks) => tasks.work(),
                        Amount::Malleable(work) => *work,
                    };
                    let speed = instance.cluster().mean_speed();
                    done[phase] * speed >= work.slot_seconds() * (1.0 - WORK_TOLERANCE) - WORK_TOLERANCE
                }
            };
            if extent.done && extent.end.is_none() {
                extent.end = ready;
                extent.done = ready.is_some();
            }
            extent.until = extent.end;
            ready = ready.zip(extent.end.filter(|_| extent.done)).map(|(ready, end)| ready.max(end));
        }
    }
    extents
}

/// Extends the counted time of ready, unfinished phases of active flows to the current time.
pub(super) fn count_until(now: f64, extents: &mut TiVec<PhaseId, Extent>, is_open: impl Fn(PhaseId) -> bool) {
    for (phase, extent) in extents.iter_mut_enumerated() {
        if !extent.done && extent.ready.is_some_and(|ready| ready < now) && is_open(phase) {
            extent.until = Some(now);
        }
    }
}

/// Whether the rows are allocations.
pub(super) fn is_plan(held: &[SlotInterval]) -> bool {
    held.iter().all(|row| row.outcome.is_none())
}

/// The time at which all of these have finished, if they ever do; `from` if there are none.
fn done_by(from: f64, extents: impl IntoIterator<Item = Extent>) -> Option<f64> {
    let last = |last: f64, extent: Extent| Some(last.max(extent.end.filter(|_| extent.done)?));
    extents.into_iter().try_fold(from, last)
}

/// Disjoint spans of time in order, with the cumulative length up to each.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    spans: Vec<(f64, f64)>,
    measures: Vec<f64>,
}

impl Spans {
    /// Adds a span that starts at the end of the last one, or later.
    pub(super) fn push(&mut self, start: f64, end: f64) {
        let before = self.measures.last().copied().unwrap_or(0.0);
        match self.spans.last_mut().zip(self.measures.last_mut()) {
            Some((last, measure)) if last.1 == start => {
                last.1 = end;
                *measure += end - start;
            }
            _ => {
                self.spans.push((start, end));
                self.measures.push(before + (end - start));
            }
        }
    }

    /// Their total length.
    pub(super) fn measure(&self) -> f64 {
        self.measures.last().copied().unwrap_or(0.0)
    }

    /// The start of the first span and the end of the last one, if there are any.
    pub(super) fn extent(&self) -> Option<(f64, f64)> {
        Some((self.spans.first()?.0, self.spans.last()?.1))
    }

    /// Their total length between `start` and `end`. O(log spans).
    pub(super) fn within(&self, start: f64, end: f64) -> f64 {
        (self.until(end) - self.until(start)).max(0.0)
    }

    /// Their total length before `t`.
    fn until(&self, t: f64) -> f64 {
        let begun = self.spans.partition_point(|span| span.0 < t);
        let Some(last) = begun.checked_sub(1) else { return 0.0 };
        self.measures[last] - (self.spans[last].1 - t).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_know_their_measure_between_any_two_times() {
        let mut spans = Spans::default();
        for (start, end) in [(1.0, 2.0), (2.0, 4.0), (6.0, 7.0)] {
            spans.push(start, end);
        }
        assert_eq!((spans.measure(), spans.extent()), (4.0, Some((1.0, 7.0))));
        let found =
            [(0.0, 9.0), (0.0, 1.0), (3.0, 6.5), (4.5, 5.0), (6.5, 6.75)].map(|(a, b)| spans.within(a, b));
        assert_eq!(found, [4.0, 0.0, 1.5, 0.0, 0.25]);
        assert_eq!(Spans::default().within(0.0, 1.0), 0.0);
    }

    fn held(phase: u32, start: f64, end: f64) -> SlotInterval {
        SlotInterval { phase: PhaseId(phase), start, end, slots: 1, outcome: None }
    }

    fn times<'a>(rows: impl Iterator<Item = &'a SlotInterval>) -> Vec<(f64, f64)> {
        rows.map(|row| (row.start, row.end)).collect()
    }

    #[test]
    fn rows_are_found_by_phase_and_by_time_in_the_order_of_the_document() {
        let rows = Rows::new(vec![
            held(2, 5.0, 6.0),
            held(1, 0.0, 9.0),
            held(2, 1.0, 2.0),
            held(0, 2.0, 3.0),
            held(2, 7.0, 8.0),
        ]);
        assert_eq!(times(rows.of(PhaseId(2))), [(5.0, 6.0), (1.0, 2.0), (7.0, 8.0)]);
        assert_eq!(times(rows.of(PhaseId(3))), []);
        assert_eq!(times(rows.during(2.0, 7.0)), [(5.0, 6.0), (0.0, 9.0), (2.0, 3.0)]);
        assert_eq!(times(rows.during(8.5, 9.5)), [(0.0, 9.0)]);
        assert_eq!(times(rows.during(9.0, 10.0)), []);
    }

    #[test]
    fn each_step_of_a_long_chain_reads_the_rows_at_its_time() {
        let n = 1000;
        let of_chain = (0..n).map(|k| held(k, f64::from(k), f64::from(k + 1)));
        let beside = (0..n).map(|k| held(n + k, f64::from(k) + 0.5, f64::from(k) + 1.5));
        let rows = Rows::new(of_chain.chain(beside).collect());
        let n_read: usize = (0..n).map(|k| rows.near(f64::from(k), f64::from(k + 1)).len()).sum();
        assert!(n_read <= 4 * n as usize, "{n_read} rows in {n} steps");
    }
}
