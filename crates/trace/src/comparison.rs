//! The comparison document, one entry per policy, and the document of bounds.

use serde::{Deserialize, Serialize};
use slackline_model::Objective;

use crate::error::TraceError;
use crate::format::Format;
use crate::parse::parse;
use crate::text::text;
use crate::wire::{Aim, Named};

/// What one policy gave, or why it was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparisonEntry {
    /// It ran.
    Ran {
        /// The policy with its parameters.
        policy: String,
        /// Its value of the objective.
        objective: ObjectiveResult,
        /// Metrics by name, in the order of the document; wall-clock figures only when they were
        /// asked for. Finite; `None` of flows none of which was done.
        metrics: Vec<(String, Option<f64>)>,
    },
    /// It does not take this workload.
    Refused {
        /// The policy with its parameters.
        policy: String,
        /// Why.
        reason: String,
    },
}

/// A policy's value of the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ObjectiveResult {
    /// The cost; null if a flow failed.
    pub cost: Option<f64>,
    /// A lower bound on the cost of any schedule.
    pub lower_bound: Option<f64>,
    /// (cost - bound) / |bound|; null when the bound is not positive.
    pub gap: Option<f64>,
    /// cost - bound, when the gap is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_absolute: Option<f64>,
}

impl ObjectiveResult {
    /// A cost against a bound.
    pub fn new(cost: Option<f64>, lower_bound: Option<f64>) -> Self {
        let both = cost.zip(lower_bound);
        let gap = both.and_then(|(cost, bound)| slackline_model::schedule::gap(cost, bound));
        let gap_absolute = both.filter(|_| gap.is_none()).map(|(cost, bound)| cost - bound);
        Self { cost, lower_bound, gap, gap_absolute }
    }
}

/// An entry as it is written: with `refused`, or with the other two.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "Slackline comparison", rename = "Entry"))]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The policy with its parameters.
    policy: String,
    /// Its value of the objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    objective: Option<ObjectiveResult>,
    /// Metrics by name; null where they are about flows that are done and none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metrics: Option<Named<Option<f64>>>,
    /// Why the policy does not take this workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// A comparison as JSON.
pub fn write_comparison(entries: &[ComparisonEntry]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| match entry.clone() {
            ComparisonEntry::Ran { policy, objective, metrics } => {
                Entry { policy, objective: Some(objective), metrics: Some(Named(metrics)), refused: None }
            }
            ComparisonEntry::Refused { policy, reason } => {
                Entry { policy, objective: None, metrics: None, refused: Some(reason) }
            }
        })
        .collect();
    pretty(&entries)
}

/// Reads a comparison, as JSON or YAML (TOML has no documents that are lists).
///
/// # Errors
/// A document that is no comparison, with the line of the first difference.
pub fn read_comparison(name: &str, bytes: &[u8]) -> Result<Vec<ComparisonEntry>, TraceError> {
    let text = text(name, bytes)?;
    let format = match Format::guess(name, &text) {
        Some(Format::Yaml) => Format::Yaml,
        _ => Format::Json,
    };
    let entries: Vec<Entry> = parse(name, &text, format)?;
    let entry = |(i, entry): (usize, Entry)| match entry {
        Entry { policy, objective: Some(objective), metrics: Some(Named(metrics)), refused: None } => {
            Ok(ComparisonEntry::Ran { policy, objective, metrics })
        }
        Entry { policy, objective: None, metrics: None, refused: Some(reason) } => {
            Ok(ComparisonEntry::Refused { policy, reason })
        }
        Entry { policy, .. } => {
            let place = crate::source::places(&text, format, &[&format!("[{i}]")])[0];
            let what = format!(
                "found a mixed entry for {policy:?}, expected `objective` and `metrics`, or `refused`"
            );
            Err(TraceError::input(name, place, what))
        }
    };
    entries.into_iter().enumerate().map(entry).collect()
}

/// What `bound` prints: every bound by name and the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// What they bound.
    pub objective: Objective,
    /// Bounds by name.
    pub bounds: Vec<(String, f64)>,
    /// The largest, if there is any.
    pub best: Option<f64>,
}

/// Bounds as JSON.
pub fn write_bounds(bounds: &Bounds) -> String {
    #[derive(Serialize)]
    struct Bound<'a> {
        name: &'a str,
        value: f64,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        objective: Aim,
        bounds: Vec<Bound<'a>>,
        best: Option<f64>,
    }
    pretty(&Document {
        objective: bounds.objective.into(),
        bounds: bounds.bounds.iter().map(|(name, value)| Bound { name, value: *value }).collect(),
        best: bounds.best,
    })
}

pub(crate) fn pretty(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("invariant: keys are strings");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_order() {
        let metrics = vec![("makespan".to_owned(), None), ("deadlines".to_owned(), Some(0.0))];
        let entries = [
            ComparisonEntry::Ran {
                policy: "fifo".into(),
                objective: ObjectiveResult::new(Some(47.5), Some(40.0)),
                metrics,
            },
            ComparisonEntry::Refused { policy: "flex".into(), reason: "mixed speeds".into() },
        ];
        let text = write_comparison(&entries);
        assert!(text.find("makespan") < text.find("deadlines"));
        assert!(text.contains("\"gap\": 0.1875") && !text.contains("absolute"));
        assert_eq!(read_comparison("c.json", text.as_bytes()).unwrap(), entries);
        let yaml = "- policy: x\n  refused: why\n- policy: y\n";
        let error = read_comparison("c.yaml", yaml.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("c.yaml:3:3: found a mixed entry for \"y\""), "{error}");
    }

    #[test]
    fn gaps_without_a_ratio_are_absolute() {
        let result = ObjectiveResult::new(Some(3.0), Some(-1.0));
        assert_eq!((result.gap, result.gap_absolute), (None, Some(4.0)));
        assert_eq!(ObjectiveResult::new(None, Some(1.0)).gap_absolute, None);
    }

    #[test]
    fn bounds_have_the_form_of_the_contract() {
        let bounds = Bounds {
            objective: Objective::default(),
            bounds: vec![("pb".into(), 1200.0)],
            best: Some(1200.0),
        };
        let found: serde_json::Value = serde_json::from_str(&write_bounds(&bounds)).unwrap();
        let expected = serde_json::json!({
            "objective": {"metric": "response", "combine": "sum"},
            "bounds": [{"name": "pb", "value": 1200.0}], "best": 1200.0
        });
        assert_eq!(found, expected);
    }
}
