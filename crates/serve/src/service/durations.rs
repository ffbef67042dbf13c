//! Histograms of durations: of decisions, of predictions, of requests.

use std::sync::{Arc, Mutex};

use crate::lock;

/// Upper bounds of the histogram, seconds.
pub(crate) const BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Durations of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    pub(crate) buckets: [u64; BUCKETS.len()],
    pub(crate) count: u64,
    pub(crate) sum: f64,
}

impl Histogram {
    pub(crate) fn add(&mut self, seconds: f64) {
        for (bucket, bound) in self.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

/// A histogram that one thread fills and another reads.
#[derive(Clone, Debug, Default)]
pub struct SharedHistogram(Arc<Mutex<Histogram>>);

impl SharedHistogram {
    /// Adds a duration in seconds.
    pub fn add(&self, seconds: f64) {
        lock(&self.0).add(seconds);
    }

    pub(crate) fn now(&self) -> Histogram {
        lock(&self.0).clone()
    }
}
