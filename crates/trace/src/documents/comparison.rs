//! The comparison document (the results of several policies on one workload) and the document of lower
//! bounds.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use slackline_model::Objective;

use crate::documents::schedule::wire::Workload;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::{VERSION, check_version, parse};
use crate::reading::text::text;
use crate::reading::wire::{Aim, NamedValues, Number};

/// What several policies gave on one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Version of the program that made it.
    pub version: String,
    /// SHA-256 of the workload file, lower-case hexadecimal.
    pub sha256: String,
    /// Every option that shaped the workload or the simulations, by name.
    pub options: BTreeMap<String, serde_json::Value>,
    /// The seeds of the simulations.
    pub seeds: Vec<u64>,
    /// What was compared, where that are several files or pieces of a workload, such as days; empty
    /// otherwise. Of several seeds or samples, every [`Figure`] that is there is a [`Spread`].
    pub samples: Vec<String>,
    /// What was to be small.
    pub objective: Objective,
    /// A lower bound on the cost of any schedule.
    pub lower_bound: Figure,
    /// An entry a policy.
    pub policies: Vec<ComparisonEntry>,
}

/// What one policy gave, or why it was refused.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are as many as policies, and most ran")]
pub enum ComparisonEntry {
    Ran {
        /// The policy with its parameters.
        policy: String,
        /// Its value of the objective.
        objective: ObjectiveResult,
        /// Metrics by name, in the order of the document; wall-clock figures only when they were
        /// asked for.
        metrics: Vec<(String, Figure)>,
        /// The same of parts of the flows.
        groups: Vec<GroupResult>,
    },
    /// It does not take this workload.
    Refused {
        /// The policy with its parameters.
        policy: String,
        reason: String,
    },
}

/// Flows that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Group"))]
#[serde(deny_unknown_fields)]
pub struct GroupResult {
    /// What the flows have in common: pool, user, or size (total work).
    pub by: String,
    /// The pool, the user, or the size class: `100..1000` holds flows of at least 100 and less than 1000
    /// slot-seconds of work.
    pub name: String,
    /// How many flows there are in it.
    pub flows: u64,
    /// Metrics by name.
    #[serde(serialize_with = "write_metrics", deserialize_with = "read_metrics")]
    #[cfg_attr(test, schemars(with = "NamedValues<Figure>"))]
    pub metrics: Vec<(String, Figure)>,
}

fn write_metrics<S: Serializer>(metrics: &[(String, Figure)], out: S) -> Result<S::Ok, S::Error> {
    NamedValues(metrics.to_vec()).serialize(out)
}

fn read_metrics<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<(String, Figure)>, D::Error> {
    NamedValues::deserialize(input).map(|metrics| metrics.0)
}

/// A number of a comparison. Measures are finite; times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Figure {
    /// There is none: of flows none of which was done, or where nothing is known.
    Nothing,
    /// A whole number, of one sample.
    Count(u64),
    /// A measure, of one sample.
    Number(f64),
    /// Either, over several samples: seeds, files, or pieces of a workload.
    Spread(Spread),
}

/// Mean and spread of a number over several seeds, files, or pieces of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    pub ci95: f64,
    /// The paired difference, seed by seed or day by day, to the first policy that ran; null where there is
    /// none.
    pub difference: Option<Difference>,
}

/// Mean and spread of paired differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    pub ci95: f64,
}

/// A policy's value of the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ObjectiveResult {
    /// The cost; null if a flow failed.
    pub cost: Figure,
    /// A lower bound on the cost of any schedule.
    pub lower_bound: Figure,
    /// (cost - bound) / |bound|; null when the bound is not positive.
    pub gap: Figure,
    /// cost - bound, when the gap is null.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub gap_absolute: Figure,
}

fn nothing() -> Figure {
    Figure::Nothing
}

fn is_nothing(figure: &Figure) -> bool {
    *figure == Figure::Nothing
}

impl Number for Figure {
    fn number(&self) -> Option<f64> {
        match *self {
            Self::Nothing => None,
            Self::Count(count) => Some(count as f64),
            Self::Number(number) => Some(number),
            Self::Spread(spread) => Some(spread.mean),
        }
    }
}

// Distinguished by hand: what serde derives for untagged enums says neither what was found nor where.
struct FigureVisitor;

impl<'de> Visitor<'de> for FigureVisitor {
    type Value = Figure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a table { mean, sd, ci95, difference }")
    }

    fn visit_unit<E: Error>(self) -> Result<Figure, E> {
        Ok(Figure::Nothing)
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Figure, E> {
        Ok(Figure::Count(count))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Figure, E> {
        Ok(Figure::Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Figure, E> {
        Ok(Figure::Number(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Figure, A::Error> {
        Spread::deserialize(MapAccessDeserializer::new(map)).map(Figure::Spread)
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FigureVisitor)
    }
}

/// What several policies gave on one workload. With one seed every figure is a number; with several, or on
/// several files or pieces of a workload, it is the mean and spread over them, with the paired difference to
/// the first policy that ran.
#[derive(Serialize, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(title = "Slackline comparison", rename = "Comparison")
)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// Version of the document.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    slackline: u32,
    /// Version of the program that made it.
    version: String,
    /// The workload, and every option that shaped it or the simulations.
    workload: Workload,
    /// The seeds of the simulations.
    seeds: Vec<u64>,
    /// What was compared, where that are several files or pieces of a workload, such as days.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    samples: Vec<String>,
    /// What was to be small.
    objective: Aim,
    /// A lower bound on the cost of any schedule; null where there is none.
    lower_bound: Figure,
    /// An entry a policy, in the order in which they were asked for.
    policies: Vec<Entry>,
}

/// A policy: with the reason in `refused`, or with the others.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Policy"))]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The policy with its parameters.
    policy: String,
    /// Why the policy does not take this workload; null if it does.
    refused: Option<String>,
    /// Its value of the objective.
    objective: Option<ObjectiveResult>,
    /// Metrics by name. Times are seconds, `utilisation` and gaps are fractions, counts are whole numbers
    /// with one seed; null where they are about flows that are done and none is.
    metrics: Option<NamedValues<Figure>>,
    /// The same metrics for the flows of each pool, each user and each size class, where the workload has
    /// several. `makespan` is that of the group; `utilisation` is its part in that of the whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupResult>,
}

impl From<&ComparisonEntry> for Entry {
    fn from(entry: &ComparisonEntry) -> Self {
        match entry {
            ComparisonEntry::Ran { policy, objective, metrics, groups } => Self {
                policy: policy.clone(),
                refused: None,
                objective: Some(*objective),
                metrics: Some(NamedValues(metrics.clone())),
                groups: groups.clone(),
            },
            ComparisonEntry::Refused { policy, reason } => Self {
                policy: policy.clone(),
                refused: Some(reason.clone()),
                objective: None,
                metrics: None,
                groups: Vec::new(),
            },
        }
    }
}

impl Entry {
    /// What it says; nothing if it says both or neither.
    fn read(self) -> Option<ComparisonEntry> {
        match self {
            Self { policy, refused: None, objective: Some(objective), metrics: Some(metrics), groups } => {
                Some(ComparisonEntry::Ran { policy, objective, metrics: metrics.0, groups })
            }
            Self { policy, refused: Some(reason), objective: None, metrics: None, groups }
                if groups.is_empty() =>
            {
                Some(ComparisonEntry::Refused { policy, reason })
            }
            _ => None,
        }
    }
}

/// A comparison as JSON.
pub fn write_comparison(comparison: &Comparison) -> String {
    to_pretty_json(&Document {
        slackline: VERSION,
        version: comparison.version.clone(),
        workload: Workload { sha256: comparison.sha256.clone(), options: comparison.options.clone() },
        seeds: comparison.seeds.clone(),
        samples: comparison.samples.clone(),
        objective: comparison.objective.into(),
        lower_bound: comparison.lower_bound,
        policies: comparison.policies.iter().map(Entry::from).collect(),
    })
}

/// Reads a comparison.
///
/// # Errors
/// A document that is no comparison, with the line of the first difference.
pub fn read_comparison(name: &str, bytes: &[u8]) -> Result<Comparison, TraceError> {
    let text = text(name, bytes)?;
    let format = Format::guess(name, &text).unwrap_or(Format::Json);
    let document: Document = parse(name, &text, format, "a comparison")?;
    check_version(name, &text, format, document.slackline)?;
    let entry = |(i, entry): (usize, Entry)| {
        let policy = entry.policy.clone();
        entry.read().ok_or_else(|| {
            let place = crate::reading::source::places(&text, format, &[&format!("policies[{i}]")])[0];
            let what = format!(
                "found a mixed entry for {policy:?}, expected `objective` and `metrics`, or `refused`"
            );
            TraceError::input(name, place, what)
        })
    };
    Ok(Comparison {
        version: document.version,
        sha256: document.workload.sha256,
        options: document.workload.options,
        seeds: document.seeds,
        samples: document.samples,
        objective: document.objective.into(),
        lower_bound: document.lower_bound,
        policies: document.policies.into_iter().enumerate().map(entry).collect::<Result<_, _>>()?,
    })
}

/// What `bound` prints: every bound by name and the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    pub objective: Objective,
    pub bounds: Vec<NamedBound>,
    /// The largest, if there is any.
    pub best: Option<f64>,
}

/// A lower bound on the objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedBound {
    pub name: String,
    /// In units of the objective.
    pub value: f64,
    /// Which schedules it holds for: `any`, or `tasks` that run in one piece, which allocations need not.
    pub holds_for: &'static str,
    /// How far it was searched for, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

pub fn write_bounds(bounds: &Bounds) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        objective: Aim,
        bounds: &'a [NamedBound],
        best: Option<f64>,
    }
    to_pretty_json(&Document {
        objective: bounds.objective.into(),
        bounds: &bounds.bounds,
        best: bounds.best,
    })
}

pub(crate) fn to_pretty_json(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("invariant: keys are strings");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(figure: Figure) -> Comparison {
        let metrics = vec![("makespan".to_owned(), figure), ("missed".to_owned(), Figure::Count(3))];
        let group =
            GroupResult { by: "pool".into(), name: "adhoc".into(), flows: 2, metrics: metrics.clone() };
        let objective = ObjectiveResult {
            cost: figure,
            lower_bound: figure,
            gap: Figure::Nothing,
            gap_absolute: Figure::Nothing,
        };
        let ran = ComparisonEntry::Ran { policy: "fifo".into(), objective, metrics, groups: vec![group] };
        let refused = ComparisonEntry::Refused { policy: "flex".into(), reason: "mixed speeds".into() };
        Comparison {
            version: "1.2.3".into(),
            sha256: "ab".into(),
            options: BTreeMap::from([("grain".to_owned(), 5.into())]),
            seeds: vec![7],
            samples: vec!["2026-03-01".into(), "2026-03-02".into()],
            objective: Objective::default(),
            lower_bound: figure,
            policies: vec![ran, refused],
        }
    }

    #[test]
    fn comparisons_come_back_in_order() {
        let difference = Some(Difference { mean: 0.0, sd: 0.0, ci95: 0.0 });
        let spread = Spread { mean: 1.5, sd: 0.5, ci95: 0.75, difference };
        for figure in [Figure::Nothing, Figure::Number(47.0), Figure::Spread(spread)] {
            let comparison = comparison(figure);
            let text = write_comparison(&comparison);
            assert!(text.find("makespan") < text.find("missed"));
            assert_eq!(read_comparison("c.json", text.as_bytes()).unwrap(), comparison, "{text}");
        }
    }

    #[test]
    fn counts_are_whole_numbers_and_refusals_are_said_by_null() {
        let found: serde_json::Value =
            serde_json::from_str(&write_comparison(&comparison(Figure::Number(47.0)))).unwrap();
        assert_eq!(found["policies"][0]["metrics"], serde_json::json!({"makespan": 47.0, "missed": 3}));
        assert_eq!(found["policies"][0]["refused"], serde_json::Value::Null);
        assert_eq!(found["policies"][1]["objective"], serde_json::Value::Null);
        assert!(found["policies"][0]["objective"].get("gap_absolute").is_none());
    }

    #[test]
    fn comparisons_that_are_none_are_refused_with_their_place() {
        let refused =
            |name: &str, text: &str| read_comparison(name, text.as_bytes()).unwrap_err().to_string();
        let head = "slackline: 1\nversion: x\nworkload: {}\nseeds: [0]\nobjective: {metric: response, combine: sum}\nlower_bound: 1\npolicies:\n";
        let error = refused(
            "c.yaml",
            &format!("{head}- {{policy: y, refused: null, objective: null, metrics: null}}\n"),
        );
        assert!(error.starts_with("c.yaml:8:3: found a mixed entry for \"y\""), "{error}");
        let error =
            refused("c.yaml", &format!("{head}- {{policy: y, refused: no such thing, metrics: {{a: x}}}}\n"));
        assert!(error.contains("found text \"x\", expected a number or a table"), "{error}");
        // The documents of the first edition were lists.
        let error = refused("c.json", r#"[{"policy": "x", "refused": "why"}]"#);
        assert!(error.starts_with("c.json:1:1: found a list"), "{error}");
    }

    #[test]
    fn bounds_have_the_form_of_the_contract() {
        let bounds = Bounds {
            objective: Objective::default(),
            bounds: vec![
                NamedBound { name: "pb".into(), value: 1200.0, holds_for: "any", search: None },
                NamedBound {
                    name: "prices".into(),
                    value: 1100.0,
                    holds_for: "tasks",
                    search: Some("complete".into()),
                },
            ],
            best: Some(1200.0),
        };
        let found: serde_json::Value = serde_json::from_str(&write_bounds(&bounds)).unwrap();
        let expected = serde_json::json!({
            "objective": {"metric": "response", "combine": "sum"},
            "bounds": [
                {"name": "pb", "value": 1200.0, "holds_for": "any"},
                {"name": "prices", "value": 1100.0, "holds_for": "tasks", "search": "complete"},
            ],
            "best": 1200.0
        });
        assert_eq!(found, expected);
    }
}
