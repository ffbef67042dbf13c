//! Columns of whole numbers: times in ticks, names once each.

use std::collections::BTreeMap;

use serde::Serialize;

/// Where there is no time.
pub(super) const NONE: i64 = -1;

/// How long a tick is: what is drawn need not be more exact than can be seen, and digits are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale(u64);

impl Scale {
    /// Ticks of microseconds up to 1,000 s, else of milliseconds.
    pub(super) fn of(horizon: u64) -> Self {
        if horizon <= 1_000_000_000 { Self(1) } else { Self(1000) }
    }

    /// A tick in seconds.
    pub(super) fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Microseconds as ticks, to the nearest.
    pub(super) fn ticks(self, micros: u64) -> i64 {
        (micros.saturating_add(self.0 / 2) / self.0).cast_signed()
    }

    /// From one to another, both to the nearest tick, so that what meets in time meets on the page.
    pub(super) fn between(self, from: u64, to: u64) -> i64 {
        self.ticks(to) - self.ticks(from)
    }
}

/// Seconds as microseconds; times that no calendar has are as late as can be.
pub(super) fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

/// Words of which many are the same.
#[derive(Debug, Default, Serialize)]
pub(super) struct Names<'a> {
    /// Each once, in the order in which they came.
    #[serde(rename = "names")]
    words: Vec<&'a str>,
    /// Which one stands where; [`NONE`] for none.
    at: Vec<i64>,
    #[serde(skip)]
    known: BTreeMap<&'a str, i64>,
}

impl<'a> Names<'a> {
    pub(super) fn of(words: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut names = Self::default();
        for word in words {
            let at = word.map_or(NONE, |word| names.place(word));
            names.at.push(at);
        }
        names
    }

    fn place(&mut self, word: &'a str) -> i64 {
        let next = self.words.len().cast_signed() as i64;
        let at = *self.known.entry(word).or_insert(next);
        if at == next {
            self.words.push(word);
        }
        at
    }
}

/// Each number as the difference to the one before.
pub(super) fn deltas(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    let delta = |value: i64| value - std::mem::replace(&mut last, value);
    values.into_iter().map(delta).collect()
}
