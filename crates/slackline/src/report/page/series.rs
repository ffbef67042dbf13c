//! The number of held slots over time, in a bounded number of spans whose width grows with time.

/// The maximum number of spans.
const SPANS: usize = 1024;

/// The initial width, microseconds.
const WIDTH: u64 = 1 << 10;

/// Held slots over time. All spans have the same width, which doubles when time exceeds the last span.
#[derive(Clone, Debug)]
pub(super) struct Series {
    width: u64,
    /// By span: the slot-microseconds that are held during a part of it.
    parts: Vec<f64>,
    /// By span: the change in the number of slots that are held during the whole span, relative to the
    /// previous span.
    steps: Vec<f64>,
}

impl Default for Series {
    fn default() -> Self {
        Self { width: WIDTH, parts: vec![0.0; SPANS], steps: vec![0.0; SPANS + 1] }
    }
}

impl Series {
    /// Adds `slots` slots from `start` to `end`, microseconds. O(1), except for the doublings.
    pub(super) fn add(&mut self, start: u64, end: u64, slots: f64) {
        if start >= end {
            return;
        }
        while (end - 1) / self.width >= SPANS as u64 {
            self.double();
        }
        let [first, last] = [start, end - 1].map(|at| (at / self.width) as usize);
        if first == last {
            self.parts[first] += (end - start) as f64 * slots;
            return;
        }
        self.parts[first] += (self.width - start % self.width) as f64 * slots;
        self.parts[last] += (end - last as u64 * self.width) as f64 * slots;
        self.steps[first + 1] += slots;
        self.steps[last] -= slots;
    }

    /// By span: its slot-microseconds.
    fn areas(&self) -> Vec<f64> {
        let mut held = 0.0;
        let area = |(part, step): (&f64, &f64)| {
            held += step;
            part + held * self.width as f64
        };
        self.parts.iter().zip(&self.steps).map(area).collect()
    }

    fn double(&mut self) {
        let mut parts: Vec<f64> = self.areas().chunks(2).map(|two| two.iter().sum()).collect();
        parts.resize(SPANS, 0.0);
        *self = Self { width: self.width * 2, parts, steps: vec![0.0; SPANS + 1] };
    }

    /// The width of a span, microseconds.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// By span: the mean number of held slots, up to the last span with any; rounded to a thousandth.
    pub(super) fn means(&self) -> Vec<f64> {
        let mean = |area: f64| (area / self.width as f64 * 1e3).round() / 1e3;
        let mut means: Vec<f64> = self.areas().into_iter().map(mean).collect();
        while means.last() == Some(&0.0) {
            means.pop();
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_unchanged_when_spans_are_doubled() {
        let mut series = Series::default();
        series.add(0, 3 * WIDTH, 2.0);
        series.add(WIDTH / 2, WIDTH, 1.0);
        assert_eq!((series.width(), series.means()), (WIDTH, vec![2.5, 2.0, 2.0]));
        series.add(4 * WIDTH, SPANS as u64 * 4 * WIDTH, 1.0);
        assert_eq!(series.width(), 4 * WIDTH);
        let means = series.means();
        assert_eq!(means[..3], [1.625, 1.0, 1.0]);
        assert_eq!(means.len(), SPANS);
    }

    #[test]
    fn nothing_is_held_in_no_time() {
        let mut series = Series::default();
        series.add(7, 7, 3.0);
        assert_eq!(series.means(), Vec::<f64>::new());
    }
}
