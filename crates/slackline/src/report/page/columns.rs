//! Columns of a page: times in ticks, deduplicated names, and tables of numbers and texts.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::table::Column;

/// A missing time.
pub(super) const NONE: i64 = -1;

/// The length of a tick. More precision than is visible would only make the page larger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale(u64);

impl Scale {
    /// Ticks of 1 µs up to 1,000 s, otherwise of 1 ms.
    pub(super) fn of(horizon: u64) -> Self {
        if horizon <= 1_000_000_000 { Self(1) } else { Self(1000) }
    }

    /// The length of a tick, seconds.
    pub(super) fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Converts microseconds to ticks, rounded to nearest.
    pub(super) fn ticks(self, micros: u64) -> i64 {
        (micros.saturating_add(self.0 / 2) / self.0).cast_signed()
    }

    /// The difference of two times, each rounded to a tick, so that adjacent bars stay adjacent on the page.
    pub(super) fn between(self, from: u64, to: u64) -> i64 {
        self.ticks(to) - self.ticks(from)
    }
}

/// Converts seconds to microseconds. Times outside the calendar saturate.
pub(super) fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

/// A table as in the command-line output.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    columns: Vec<TableColumn>,
}

#[derive(Debug, Serialize)]
struct TableColumn {
    name: String,
    heading: String,
    /// Whether it is shown by default.
    shown: bool,
    texts: Vec<String>,
    values: Vec<Option<f64>>,
    best: Vec<bool>,
}

impl Table {
    pub(super) fn of(columns: Vec<Column>) -> Self {
        let column = |column: Column| {
            let entries = column.entries();
            TableColumn {
                name: column.name().to_owned(),
                heading: column.title().replace('\n', " "),
                shown: column.is_telling(),
                texts: entries.iter().map(|entry| entry.0.to_owned()).collect(),
                values: entries.iter().map(|entry| entry.1).collect(),
                best: entries.iter().map(|entry| entry.2).collect(),
            }
        };
        Self { columns: columns.into_iter().map(column).collect() }
    }
}

/// A list of words with many duplicates.
#[derive(Debug, Default, Serialize)]
pub(super) struct Names<'a> {
    /// Each word once, in the order of its first use.
    #[serde(rename = "names")]
    words: Vec<&'a str>,
    /// By position: the index of the word; [`NONE`] for none.
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

/// The differences between consecutive numbers.
pub(super) fn deltas(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    let delta = |value: i64| value - std::mem::replace(&mut last, value);
    values.into_iter().map(delta).collect()
}
