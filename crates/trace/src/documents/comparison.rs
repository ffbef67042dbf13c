//! The comparison document (the results of several policies on one workload) and the document of lower
//! bounds.

use serde::{Serialize, Serializer};
use slackline_model::Objective;

pub use crate::documents::schedule::wire::Workload;
use crate::reading::diagnostic::Simplification;
use crate::reading::wire::Aim;
pub use crate::reading::wire::NamedValues;

/// The results of several policies on one workload. With one seed every figure is a number; with several seeds,
/// files or days it is mean and spread, with the paired difference to the first policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "Slackline comparison", deny_unknown_fields))]
pub struct Comparison {
    /// Version of the document.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub slackline: u32,
    /// Version of the program that made it.
    pub version: String,
    /// The workload, and every option that shaped it or the simulations.
    pub workload: Workload,
    /// The seeds of the simulations.
    pub seeds: Vec<u64>,
    /// The files or days, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
    /// What the simulations leave out of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_modelled: Vec<Simplification>,
    /// The objective.
    #[serde(serialize_with = "write_objective")]
    #[cfg_attr(test, schemars(with = "Aim"))]
    pub objective: Objective,
    /// Whether the objective weighs the costs of flows with weights other than 1.
    pub weighted: bool,
    /// A lower bound on the cost of any schedule; null where there is none.
    pub lower_bound: Figure,
    /// Which policies are best, and by how much the others are worse; null for a single policy.
    pub verdict: Option<String>,
    /// The policies, in the given order.
    pub policies: Vec<PolicyResult>,
}

/// A policy: with the reason in `refused`, or with the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Policy", deny_unknown_fields))]
pub struct PolicyResult {
    /// The policy with its parameters.
    pub policy: String,
    /// Why the policy does not take this workload; null if it does.
    pub refused: Option<String>,
    /// Whether it cannot be distinguished from the best policy in the metric of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<bool>,
    /// Its value of the objective.
    pub objective: Option<ObjectiveResult>,
    /// Metrics by name. Times are seconds, `utilisation` and gaps are fractions, counts are whole numbers
    /// with one seed; null where they are about flows that are done and none is.
    pub metrics: Option<NamedValues<Figure>>,
    /// The same metrics for the flows of each pool, each user and each size class, where the workload has
    /// several. `makespan` is that of the group; `utilisation` is its part in that of the whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
    /// Results of each flow over the seeds (`--flows`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowChance>,
}

/// A flow over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct FlowChance {
    /// The flow.
    pub flow: String,
    /// The number of seeds.
    pub seeds: u64,
    /// Its deadline, seconds.
    pub deadline: Option<f64>,
    /// The fraction of the seeds in which it meets its deadline; null without one.
    pub chance: Option<f64>,
    /// The lower end of the 95 % interval of this chance (Wilson).
    pub chance_low: Option<f64>,
    /// The upper end.
    pub chance_high: Option<f64>,
    /// A tenth of the completions are at most this, seconds; null where as many seeds fail.
    pub p10: Option<f64>,
    /// The median completion, seconds.
    pub p50: Option<f64>,
    /// Nine tenths of the completions are at most this, seconds.
    pub p90: Option<f64>,
}

/// A group of flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Group", deny_unknown_fields))]
pub struct GroupResult {
    /// The kind of group: pool, user, or size (total work).
    pub by: String,
    /// The pool, the user, or the size class: `100..1000` holds flows of at least 100 and less than 1000
    /// slot-seconds of work.
    pub name: String,
    /// Number of flows.
    pub flows: u64,
    /// Metrics by name.
    pub metrics: NamedValues<Figure>,
}

/// A number of a comparison. Measures are finite; times are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Figure {
    /// Not available: no flow finished, or unknown.
    #[default]
    Nothing,
    /// A count of one sample.
    Count(u64),
    /// A measure, of one sample.
    Number(f64),
    /// Mean and spread over several samples.
    Spread(Spread),
}

/// Mean and spread of a number over several seeds, files, or pieces of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean; null for fewer than five values, and if all are
    /// equal.
    pub ci95: Option<f64>,
    /// The least value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
    /// The paired difference, seed by seed or day by day, to the first policy that ran; null where there is
    /// none.
    pub difference: Option<Difference>,
    /// Whether the policy cannot be distinguished from the best one: the 95 % interval of their paired difference contains 0.
    /// Left out where no value is better than another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<bool>,
}

/// Mean and spread of paired differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean; null for fewer than five values, and if all are
    /// equal.
    pub ci95: Option<f64>,
    /// The least difference.
    pub least: f64,
    /// The largest difference.
    pub most: f64,
}

/// A policy's value of the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct ObjectiveResult {
    /// The cost; null if a flow failed.
    pub cost: Figure,
    /// A lower bound on the cost of any schedule.
    pub lower_bound: Figure,
    /// (cost - bound) / |bound|; null when the bound is not positive.
    pub gap: Figure,
    /// cost - bound, when the gap is null.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub gap_absolute: Figure,
}

fn is_nothing(figure: &Figure) -> bool {
    *figure == Figure::Nothing
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn write_objective<S: Serializer>(objective: &Objective, out: S) -> Result<S::Ok, S::Error> {
    Aim::from(*objective).serialize(out)
}

/// What `bound` prints: every bound by name and the best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    #[serde(serialize_with = "write_objective")]
    pub objective: Objective,
    /// Whether the objective weighs the costs of flows with weights other than 1.
    pub weighted: bool,
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

/// A document as indented JSON.
pub fn to_json(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("invariant: keys are strings");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(figure: Figure) -> Comparison {
        let metrics =
            NamedValues(vec![("makespan".to_owned(), figure), ("missed".to_owned(), Figure::Count(3))]);
        let group =
            GroupResult { by: "pool".into(), name: "adhoc".into(), flows: 2, metrics: metrics.clone() };
        let objective = ObjectiveResult {
            cost: figure,
            lower_bound: figure,
            gap: Figure::Nothing,
            gap_absolute: Figure::Nothing,
        };
        let ran = PolicyResult {
            policy: "fifo".into(),
            refused: None,
            best: None,
            objective: Some(objective),
            metrics: Some(metrics),
            groups: vec![group],
            flows: Vec::new(),
        };
        let reason = Some("mixed speeds".to_owned());
        let refused = PolicyResult { policy: "flex".into(), refused: reason, ..PolicyResult::default() };
        Comparison {
            slackline: 1,
            version: "1.2.3".into(),
            workload: Workload { sha256: "ab".into(), options: [("grain".to_owned(), 5.into())].into() },
            seeds: vec![7],
            samples: vec!["2026-03-01".into(), "2026-03-02".into()],
            not_modelled: Vec::new(),
            objective: Objective::default(),
            weighted: false,
            lower_bound: figure,
            verdict: None,
            policies: vec![ran, refused],
        }
    }

    #[test]
    fn figures_of_every_kind_are_written_in_order() {
        let difference = Some(Difference { mean: 0.0, sd: 0.0, ci95: None, least: 0.0, most: 0.0 });
        let (ci95, best) = (Some(0.75), Some(true));
        let spread = Spread { mean: 1.5, sd: 0.5, ci95, least: 1.0, most: 2.0, difference, best };
        let difference =
            serde_json::json!({ "mean": 0.0, "sd": 0.0, "ci95": null, "least": 0.0, "most": 0.0 });
        for (figure, expected) in [
            (Figure::Nothing, serde_json::Value::Null),
            (Figure::Number(47.0), 47.0.into()),
            (
                Figure::Spread(spread),
                serde_json::json!({ "mean": 1.5, "sd": 0.5, "ci95": 0.75, "least": 1.0, "most": 2.0, "difference": difference, "best": true }),
            ),
        ] {
            let text = to_json(&comparison(figure));
            assert!(text.find("makespan") < text.find("missed"));
            let metrics = serde_json::json!({ "makespan": expected, "missed": 3 });
            let objective = serde_json::json!({ "cost": expected, "lower_bound": expected, "gap": serde_json::Value::Null });
            let group = serde_json::json!({ "by": "pool", "name": "adhoc", "flows": 2, "metrics": metrics });
            let document = serde_json::json!({
                "slackline": 1,
                "version": "1.2.3",
                "workload": { "sha256": "ab", "options": { "grain": 5 } },
                "seeds": [7],
                "samples": ["2026-03-01", "2026-03-02"],
                "objective": { "metric": "response", "combine": "sum" },
                "weighted": false,
                "lower_bound": expected,
                "verdict": serde_json::Value::Null,
                "policies": [
                    { "policy": "fifo", "refused": null, "objective": objective, "metrics": metrics, "groups": [group] },
                    { "policy": "flex", "refused": "mixed speeds", "objective": null, "metrics": null },
                ],
            });
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
        }
    }

    #[test]
    fn counts_are_whole_numbers_and_refusals_are_said_by_null() {
        let found: serde_json::Value =
            serde_json::from_str(&to_json(&comparison(Figure::Number(47.0)))).unwrap();
        assert_eq!(found["policies"][0]["metrics"], serde_json::json!({"makespan": 47.0, "missed": 3}));
        assert_eq!(found["policies"][0]["refused"], serde_json::Value::Null);
        assert_eq!(found["policies"][1]["objective"], serde_json::Value::Null);
        assert!(found["policies"][0]["objective"].get("gap_absolute").is_none());
    }

    #[test]
    fn bounds_have_the_form_of_the_contract() {
        let bounds = Bounds {
            objective: Objective::default(),
            weighted: false,
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
        let found: serde_json::Value = serde_json::from_str(&to_json(&bounds)).unwrap();
        let expected = serde_json::json!({
            "objective": {"metric": "response", "combine": "sum"},
            "weighted": false,
            "bounds": [
                {"name": "pb", "value": 1200.0, "holds_for": "any"},
                {"name": "prices", "value": 1100.0, "holds_for": "tasks", "search": "complete"},
            ],
            "best": 1200.0
        });
        assert_eq!(found, expected);
    }
}
