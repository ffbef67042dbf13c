//! Measures over seeds, as rows of CSV.

use slackline::report::number::exact;
use slackline::report::spread::Spread;

use crate::spec::Figure;

/// A point of a figure: a measure and its conditions, with a value for each seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value of the varied parameter; empty if nothing varies.
    pub x: String,
    /// The line of the figure: an objective, a mix, a workload; empty if there is only one.
    pub series: String,
    /// The policy or method.
    pub policy: String,
    pub measure: String,
    /// One number per seed; `None` if there is no number (the policy was refused, a flow failed, the bound is
    /// 0).
    pub values: Vec<Option<f64>>,
}

/// The header of [`csv()`].
pub const HEADER: [&str; 13] = [
    "figure", "x", "series", "policy", "measure", "seeds", "missing", "mean", "ci95", "least", "most",
    "spec", "version",
];

/// Rows of a figure: mean, half the 95 % interval of the mean (Student's t), least and most over the seeds
/// with a number, and the number of seeds without one.
pub fn csv(figure: &Figure, points: &[Point]) -> String {
    let hash = figure.hash();
    let row = |point: &Point| -> Vec<String> {
        let found: Vec<f64> = point.values.iter().copied().flatten().collect();
        let spread = Spread::of(&found);
        let mut cells: Vec<String> =
            [&figure.id, &point.x, &point.series, &point.policy, &point.measure].map(String::clone).to_vec();
        cells.push(point.values.len().to_string());
        cells.push((point.values.len() - found.len()).to_string());
        cells.push(exact(spread.map(|s| s.mean)));
        cells.push(exact(spread.map(|s| s.ci95)));
        cells.push(exact(found.iter().copied().reduce(f64::min)));
        cells.push(exact(found.iter().copied().reduce(f64::max)));
        cells.push(hash.clone());
        cells.push(env!("CARGO_PKG_VERSION").to_owned());
        cells
    };
    slackline::report::csv(&HEADER, points.iter().map(row))
}
