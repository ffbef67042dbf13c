//! Reads the rows of a figure from its CSV.

use serde::Deserialize;

use crate::spec::Figure;

/// A row: a point of a figure, averaged over seeds.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Row {
    /// The value of the varied parameter.
    pub x: String,
    /// Which line of the figure.
    pub series: String,
    /// The policy or method.
    pub policy: String,
    pub measure: String,
    /// The number of seeds.
    pub seeds: u32,
    /// The number of seeds without a number.
    pub missing: u32,
    pub mean: Option<f64>,
    /// Half the 95 % interval of the mean.
    pub ci95: Option<f64>,
    pub least: Option<f64>,
    pub most: Option<f64>,
    /// Hash of the specification.
    pub spec: String,
    /// Version of the program.
    pub version: String,
}

/// The rows of a CSV of measures; empty for a CSV of another kind (the slots of a picture).
pub fn rows(text: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().unwrap_or_default()
}

/// Whether the CSV of a figure is of this specification and averaged over this number of seeds.
pub fn fits(text: &str, figure: &Figure, seeds: u32) -> bool {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let column = |headers: &csv::StringRecord, name: &str| headers.iter().position(|header| header == name);
    let Ok(headers) = reader.headers().cloned() else { return false };
    let Some(spec) = column(&headers, "spec") else { return false };
    let (hash, seeds) = (figure.hash(), seeds.to_string());
    let averaged = column(&headers, "seeds");
    let mut records = 0;
    let all = reader.records().all(|record| {
        records += 1;
        record.is_ok_and(|record| {
            record.get(spec) == Some(&hash) && averaged.is_none_or(|at| record.get(at) == Some(&seeds))
        })
    });
    all && records > 0
}

/// Values of a column in the order of their first occurrence.
pub(super) fn order<'a>(rows: &[&'a Row], of: fn(&'a Row) -> &'a str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for row in rows {
        let value = of(row);
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}
