//! The barrier between the maps and the reduces of a job, and when lost map output reopens it.
//!
//! The judge derives the barrier from the task rows alone:
//! - The barrier closes when every map has finished for the first time. An attempt that is `done` or `lost`
//!   has finished.
//! - The rows do not show when the output of a `lost` attempt was lost. It was lost before the next attempt
//!   of that task that started after the end of the lost one. From that start to the end of the next attempt
//!   that finished, its *re-run*, the barrier is certainly open. Before that start the barrier is uncertain,
//!   and the judge takes it as closed.
//! - A reduce that was running when a re-run started waits for the end of the re-run. A reduce that had ended
//!   by then had ended before the loss.

use slackline_model::schedule::{Outcome, TaskRow};
use slackline_model::{JobId, PhaseId, Time};

use crate::ledger::Ledger;
use crate::tolerance;

/// When the maps of a job are complete.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Barrier {
    /// When every map had finished once; `None` if some map never did.
    first: Option<Time>,
    /// By segment: the maps that let reduces take slots early.
    enough: Vec<SlowstartMaps>,
    /// Re-runs in the order of their starts, each with the latest end of the re-runs up to it.
    reruns: Vec<Rerun>,
    /// The same for losses, which start at the end of the lost attempt: the output may be missing from then
    /// on.
    losses: Vec<Rerun>,
}

/// The number of maps that lets reduces take slots early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlowstartMaps {
    pub(crate) maps: u32,
    /// When that number of maps had finished once; `None` if they never did.
    pub(crate) at: Option<Time>,
}

/// The start and the end of a re-run, or of the time in which output may have been missing.
type Rerun = (Time, Option<Time>);

/// The latest end of the re-runs that started before `t`.
#[expect(clippy::option_option, reason = "there may be none, and the latest may never end")]
fn latest_before(cumulative: &[Rerun], t: Time) -> Option<Option<Time>> {
    let begun = cumulative.partition_point(|&(start, _)| tolerance::earlier_micros(start, t));
    begun.checked_sub(1).map(|i| cumulative[i].1)
}

/// The later of two instants; `None` (never) if either is `None`.
fn later(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.zip(b).map(|(a, b)| a.max(b))
}

/// How many of `maps` tasks must be done before a reduce may take a slot. The product is lowered by a
/// billionth, so that a tenth of 30 is 3.
fn enough_of(maps: u32, slowstart: f64) -> u32 {
    if slowstart >= 1.0 {
        return maps;
    }
    (slowstart * f64::from(maps) * (1.0 - 1e-9)).ceil() as u32
}

impl Barrier {
    /// The barrier of `job`, if the job has both maps and reduces. A map phase without length and without
    /// rows is no barrier: it is done when the job may start. `slowstarts` has the slow-start fraction of
    /// each segment. O(attempts log attempts).
    pub(crate) fn new(ledger: &Ledger<'_>, job: JobId, slowstarts: &[f64]) -> Option<Self> {
        let job = ledger.instance.job(job);
        let (map, _) = job.map.zip(job.reduce).filter(|&(map, _)| !ledger.is_unseen(map))?;
        let maps = ledger.instance.phase(map).tasks().map_or(0, slackline_model::tasks::Tasks::count);
        let (mut ends, reruns, losses) = if ledger.has_retries(map) || ledger.has_losses(map) {
            retried(ledger, map)
        } else {
            (simple(ledger, map), Vec::new(), Vec::new())
        };
        ends.sort_unstable();
        let first = when(&ends, maps);
        let enough = |&slowstart: &f64| {
            let needed = enough_of(maps, slowstart);
            SlowstartMaps { maps: needed, at: if needed == maps { first } else { when(&ends, needed) } }
        };
        let enough = slowstarts.iter().map(enough).collect();
        Some(Self { first, enough, reruns: cumulative(reruns), losses: cumulative(losses) })
    }

    /// When every map had finished for the first time.
    pub(crate) fn first(&self) -> Option<Time> {
        self.first
    }

    /// The maps that let reduces take slots in a segment.
    pub(crate) fn enough(&self, segment: usize) -> SlowstartMaps {
        self.enough[segment]
    }

    /// When all maps are complete, counting the re-runs that started before `t`; `None` for never.
    ///
    /// A reduce that starts at `t` must not start before this instant, and a reduce that ends at `t` computed
    /// only after it.
    pub(crate) fn closed(&self, t: Time) -> Option<Time> {
        latest_before(&self.reruns, t).map_or(self.first, |end| later(self.first, end))
    }

    /// Whether the barrier may have been open at some time from `start` to `end`. Output counts as missing
    /// from the end of a lost attempt.
    pub(crate) fn was_open(&self, start: Time, end: Time) -> bool {
        let open = |until: Option<Time>| until.is_none_or(|until| until > start);
        open(self.first) || latest_before(&self.losses, end).is_some_and(open)
    }

    /// Whether a re-run started at `t` and all re-runs had ended by then.
    pub(crate) fn has_instant_rerun(&self, t: Time) -> bool {
        let upto = self.reruns.partition_point(|&(start, _)| start <= t);
        self.reruns[..upto].last() == Some(&(t, Some(t)))
    }

    /// Until when a reduce that takes a slot at `t` waits: `t` if the barrier is closed.
    pub(crate) fn waits_until(&self, t: Time) -> Option<Time> {
        let mut until = t;
        loop {
            let closed = self.closed(until)?;
            if closed <= until {
                return Some(until);
            }
            until = closed;
        }
    }
}

/// When the `n`-th task ends, from the `(end, tasks)` pairs of first successes.
fn when(ends: &[(Time, u32)], n: u32) -> Option<Time> {
    let mut done = 0u64;
    if n == 0 {
        return Some(Time::ZERO);
    }
    ends.iter().find_map(|&(end, count)| {
        done += u64::from(count);
        (done >= u64::from(n)).then_some(end)
    })
}

fn finished(row: &TaskRow) -> bool {
    matches!(row.outcome, Outcome::Done | Outcome::Lost)
}

fn simple(ledger: &Ledger<'_>, map: PhaseId) -> Vec<(Time, u32)> {
    ledger.of(map).filter(|row| finished(row)).map(|row| (row.end, row.count)).collect()
}

/// First successes, re-runs and losses of a map phase in which some tasks have several attempts.
fn retried(ledger: &Ledger<'_>, map: PhaseId) -> (Vec<(Time, u32)>, Vec<Rerun>, Vec<Rerun>) {
    let (mut ends, mut reruns, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    for attempts in ledger.pieces(map).chunk_by(|a, b| a.first == b.first) {
        let rows = || attempts.iter().map(|piece| ledger.row(piece.row));
        if let Some(end) = rows().filter(|row| finished(row)).map(|row| row.end).min() {
            ends.push((end, attempts[0].count));
        }
        for lost in rows().filter(|row| row.outcome == Outcome::Lost) {
            let later = |row: &&TaskRow| {
                row.attempt > lost.attempt && !tolerance::earlier_micros(row.start, lost.end)
            };
            let again = || rows().filter(later);
            let end = again().filter(|row| finished(row)).map(|row| row.end).min();
            losses.push((lost.end, end));
            if let Some(start) = again().map(|row| row.start).min() {
                reruns.push((start, end));
            }
        }
    }
    (ends, reruns, losses)
}

/// Sorts re-runs by start and replaces each end by the latest so far.
fn cumulative(mut reruns: Vec<Rerun>) -> Vec<Rerun> {
    reruns.sort_unstable();
    reruns.dedup();
    for i in 1..reruns.len() {
        reruns[i].1 = later(reruns[i - 1].1, reruns[i].1);
    }
    reruns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn barrier(first: u64, reruns: &[(u64, Option<u64>)]) -> Barrier {
        let second = |s: u64| Time(s * 1_000_000);
        let reruns = reruns.iter().map(|&(a, b)| (second(a), b.map(second))).collect();
        Barrier {
            first: Some(second(first)),
            enough: Vec::new(),
            reruns: cumulative(reruns),
            losses: Vec::new(),
        }
    }

    #[test]
    fn a_rerun_reopens_the_barrier_from_its_start() {
        let b = barrier(10, &[(16, Some(26))]);
        let at = |s: u64| b.closed(Time(s * 1_000_000)).map(Time::seconds);
        assert_eq!(
            [at(5), at(12), at(16), at(17), at(40)].map(Option::unwrap),
            [10.0, 10.0, 10.0, 26.0, 26.0]
        );
    }

    #[test]
    fn waiting_continues_during_reruns_that_start_meanwhile() {
        let b = barrier(10, &[(7, Some(30)), (29, Some(50)), (60, None)]);
        assert_eq!(b.waits_until(Time(5_000_000)), Some(Time(50_000_000)));
        assert_eq!(b.waits_until(Time(55_000_000)), Some(Time(55_000_000)));
        assert_eq!(b.waits_until(Time(61_000_000)), None);
    }

    #[test]
    fn a_fraction_of_maps_is_rounded_up_but_not_by_floating_point() {
        assert_eq!(
            [enough_of(30, 0.1), enough_of(31, 0.1), enough_of(7, 1.0), enough_of(7, 0.0)],
            [3, 4, 7, 0]
        );
        assert_eq!(enough_of(u32::MAX, 1.0), u32::MAX);
    }
}
