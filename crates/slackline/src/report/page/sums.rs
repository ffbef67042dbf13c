//! Sums of the slots that phases held, by spans of time. They suffice to explain which flows held the slots
//! that others wanted, in memory that does not grow with the rows.

use slackline_model::id::TiVec;
use slackline_model::schedule::TaskRows;
use slackline_model::{Instance, PhaseId};

use crate::explain::SummedRow;

/// The maximum number of spans.
const SPANS: u64 = 1024;

/// The sums of all phases.
#[derive(Debug)]
pub(super) struct Sums {
    /// The width of a span, microseconds. It doubles when time exceeds the last span.
    width: u64,
    phases: TiVec<PhaseId, PhaseSums>,
}

/// The sums of a phase.
#[derive(Clone, Debug, Default)]
struct PhaseSums {
    /// Its first start, its last end and its last start of a slot, microseconds.
    first: u64,
    last: u64,
    last_start: u64,
    /// The index of the span of `areas[0]`.
    from: u64,
    /// By span: the slot-microseconds.
    areas: Vec<f64>,
}

impl Sums {
    /// The sums of rows.
    pub(super) fn of(instance: &Instance, rows: &TaskRows) -> Self {
        let mut sums =
            Self { width: 1 << 10, phases: vec![PhaseSums::default(); instance.phases().len()].into() };
        for row in rows.rows() {
            sums.add(row.phase, row.start.0, row.end.0, row.count);
        }
        sums
    }

    /// Records that a phase held `slots` slots from `start` to `end`, microseconds.
    pub(super) fn add(&mut self, phase: PhaseId, start: u64, end: u64, slots: u32) {
        if start >= end || phase >= PhaseId(self.phases.len() as u32) {
            return;
        }
        while (end - 1) / self.width >= SPANS {
            self.width *= 2;
            self.phases.iter_mut().for_each(PhaseSums::double);
        }
        self.phases[phase].add(self.width, start, end, f64::from(slots));
    }

    /// The width of a span, seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.width as f64 / 1e6
    }

    /// Rows that hold the same slot-seconds in every span: one for the slots held throughout, and one for the
    /// rest. The start and the end of each phase are exact.
    pub(super) fn into_held(self) -> Vec<SummedRow> {
        let mut rows = Vec::new();
        for (phase, sums) in self.phases.iter_enumerated() {
            sums.rows(phase, self.width, &mut rows);
        }
        rows
    }
}

impl PhaseSums {
    fn add(&mut self, width: u64, start: u64, end: u64, slots: f64) {
        let (from, to) = (start / width, (end - 1) / width);
        if self.areas.is_empty() {
            (self.first, self.last, self.from) = (start, end, from);
        } else if from < self.from {
            self.areas.splice(0..0, std::iter::repeat_n(0.0, (self.from - from) as usize));
            self.from = from;
        }
        self.first = self.first.min(start);
        self.last = self.last.max(end);
        self.last_start = self.last_start.max(start);
        let needed = (to - self.from + 1) as usize;
        if self.areas.len() < needed {
            self.areas.resize(needed, 0.0);
        }
        for span in from..=to {
            let length = end.min((span + 1) * width) - start.max(span * width);
            self.areas[(span - self.from) as usize] += length as f64 * slots;
        }
    }

    /// Merges pairs of spans.
    fn double(&mut self) {
        if self.areas.is_empty() {
            return;
        }
        if !self.from.is_multiple_of(2) {
            self.areas.insert(0, 0.0);
        }
        self.areas = self.areas.chunks(2).map(|two| two.iter().sum()).collect();
        self.from /= 2;
    }

    fn rows(&self, phase: PhaseId, width: u64, rows: &mut Vec<SummedRow>) {
        let seconds = |micros: f64| micros / 1e6;
        for (area, span) in self.areas.iter().zip(self.from..) {
            let start = self.first.max(span * width) as f64;
            let end = self.last.min((span + 1) * width) as f64;
            if *area <= 0.0 || start >= end {
                continue;
            }
            let throughout = (area / (end - start) + 1e-9).floor();
            let rest = area - throughout * (end - start);
            let mut push = |start: f64, end: f64, slots: u32| {
                let last_start = seconds(self.last_start as f64);
                rows.push(SummedRow { phase, start: seconds(start), end: seconds(end), slots, last_start });
            };
            if throughout > 0.0 {
                push(start, end, throughout as u32);
            }
            if rest > 1.0 {
                // The last span ends with the phase.
                let is_last = end == self.last as f64;
                let (from, to) = if is_last { (end - rest, end) } else { (start, start + rest) };
                push(from, to, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_is_held_and_when_it_begins_and_ends() {
        let mut sums = PhaseSums::default();
        for (start, end, slots) in [(500, 3_500, 2.0), (100, 900, 1.0), (3_000, 3_700, 4.0)] {
            sums.add(1000, start, end, slots);
        }
        let area = |rows: &[SummedRow]| {
            rows.iter().map(|row| f64::from(row.slots) * (row.end - row.start) * 1e6).sum::<f64>()
        };
        for width in [1000, 2000, 4000] {
            let mut rows = Vec::new();
            sums.rows(PhaseId(0), width, &mut rows);
            assert!((area(&rows) - 9600.0).abs() < 2.0, "{width}: {rows:?}");
            let ends = rows.iter().map(|row| row.end).fold(0.0, f64::max);
            assert!((ends - 0.0037).abs() < 1e-9, "{width}");
            assert!((rows[0].start - 0.0001).abs() < 1e-9, "{width}");
            sums.double();
        }
    }
}
