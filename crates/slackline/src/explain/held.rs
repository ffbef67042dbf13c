//! Rows of either form as slots that a phase holds for a while; spans of time with their measure.

use slackline_model::id::TiVec;
use slackline_model::instance::Amount;
use slackline_model::schedule::{Outcome, Schedule};
use slackline_model::{Instance, PhaseId};

/// How much of a phase's work may be missing because times were rounded.
const WORK_TOLERANCE: f64 = 1e-6;

/// `slots` slots that a phase holds from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) phase: PhaseId,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) slots: u32,
    /// How the attempts ended; none in allocations.
    pub(super) outcome: Option<Outcome>,
}

/// All rows that mean something, task rows if there are any.
pub(super) fn of(instance: &Instance, schedule: &Schedule) -> Vec<Held> {
    let tasks = schedule.tasks.rows().iter().map(|row| Held {
        phase: row.phase,
        start: row.start.seconds(),
        end: row.end.seconds(),
        slots: row.count,
        outcome: Some(row.outcome),
    });
    let allocations = schedule.allocations.iter().map(|row| Held {
        phase: row.phase,
        start: row.start,
        end: row.end,
        slots: row.slots,
        outcome: None,
    });
    let sound = |row: &Held| {
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

/// From when to when a phase held slots, and when it could.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// When all it comes after was done; none if that never was.
    pub(super) ready: Option<f64>,
    /// When it first held a slot, if ever.
    pub(super) start: Option<f64>,
    /// When it last did, if ever; a phase without work that holds none ends when it is ready.
    pub(super) end: Option<f64>,
    /// Whether all of it is done.
    pub(super) done: bool,
}

/// The extents of all phases. O(rows + phases + edges).
pub(super) fn extents(instance: &Instance, held: &[Held]) -> TiVec<PhaseId, Extent> {
    let mut extents: TiVec<PhaseId, Extent> = vec![Extent::default(); instance.phases().len()].into();
    // Tasks done, or slot-seconds held.
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
    for &id in instance.topological() {
        let job = instance.job(id);
        let release = instance.flow(job.flow).release.seconds();
        let of_job = |&before: &_| instance.job(before).phases().map(|p| extents[p]).collect::<Vec<_>>();
        let mut ready = done_by(release, job.after.iter().flat_map(of_job));
        for phase in job.phases() {
            let extent = &mut extents[phase];
            extent.ready = ready;
            extent.done = match &instance.phase(phase).amount {
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
            ready = ready.zip(extent.end.filter(|_| extent.done)).map(|(ready, end)| ready.max(end));
        }
    }
    extents
}

/// Whether these are allocations.
pub(super) fn is_plan(held: &[Held]) -> bool {
    held.iter().all(|row| row.outcome.is_none())
}

/// When all of these are done, if they ever are; `from` if there are none.
fn done_by(from: f64, extents: impl IntoIterator<Item = Extent>) -> Option<f64> {
    let last = |last: f64, extent: Extent| Some(last.max(extent.end.filter(|_| extent.done)?));
    extents.into_iter().try_fold(from, last)
}

/// Disjoint spans of time in order, with the measure of all up to each.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    spans: Vec<(f64, f64)>,
    measures: Vec<f64>,
}

impl Spans {
    /// Adds a span that starts where the last ends, or later.
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

    /// Their length together.
    pub(super) fn measure(&self) -> f64 {
        self.measures.last().copied().unwrap_or(0.0)
    }

    /// How much of them lies between `start` and `end`. O(log spans).
    pub(super) fn within(&self, start: f64, end: f64) -> f64 {
        (self.until(end) - self.until(start)).max(0.0)
    }

    /// How much of them lies before `t`.
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
        assert_eq!(spans.measure(), 4.0);
        let found =
            [(0.0, 9.0), (0.0, 1.0), (3.0, 6.5), (4.5, 5.0), (6.5, 6.75)].map(|(a, b)| spans.within(a, b));
        assert_eq!(found, [4.0, 0.0, 1.5, 0.0, 0.25]);
        assert_eq!(Spans::default().within(0.0, 1.0), 0.0);
    }
}
