//! The documents that `tune` prints: splits of slots with their orders, and sizes of clusters.

use std::collections::BTreeMap;

use serde::Serialize;

/// A split of the slots, an order on it, and what they give.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct TunedSplit {
    /// Map slots of the cluster.
    pub map_slots: u32,
    /// Reduce slots of the cluster.
    pub reduce_slots: u32,
    /// The flows, first to last.
    pub order: Vec<String>,
    /// When the last is done, seconds.
    pub makespan: f64,
    /// Sum of the completions, seconds.
    pub total_completion: f64,
}

/// The best split and what it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields, title = "Slackline tuning"))]
pub struct Tuning {
    /// What the method chooses.
    pub best: TunedSplit,
    /// What nothing beats in both makespan and total completion time, least makespan first, if it was asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pareto: Option<Vec<TunedSplit>>,
    /// As many map as reduce slots, in the order of the method's rule.
    pub default: TunedSplit,
    /// Splits that were estimated; bounds ruled out the others.
    pub evaluated: u32,
    /// Splits there are.
    pub candidates: u32,
}

/// The smallest cluster, or the best setting, that meets conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields, title = "Slackline capacity"))]
pub struct Capacity {
    /// The conditions, all of which must hold.
    pub until: Vec<String>,
    /// The policy with its parameters.
    pub policy: String,
    /// What was varied: machines, slots, map-slots, reduce-slots, slowstart or heartbeat (seconds).
    pub over: String,
    /// The smallest size that meets all conditions; of settings the one that does at the least cost. Null if
    /// nothing that was tried does.
    pub found: Option<f64>,
    /// Whether sizes were tried by halves (bisect), or all of them, if need be up to the answer (every).
    pub search: String,
    /// Whether no size above the answer was tried that fails; null if none above was tried, and of settings.
    pub monotone: Option<bool>,
    /// Whether the search was stopped before its end: then a smaller size may do.
    pub interrupted: bool,
    /// Every value that was tried, smallest first.
    pub tried: Vec<TriedValue>,
}

/// A value of the varied dimension, and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct TriedValue {
    /// The value.
    pub value: f64,
    /// Whether all conditions hold.
    pub meets: bool,
    /// Simulated to its end (done), or flows failed (failed).
    pub outcome: String,
    /// The cost of the schedule by the objective of the workload; null unless done.
    pub cost: Option<f64>,
    /// All machines for as long as the workload took, hours; null unless done.
    pub machine_hours: Option<f64>,
    /// What these hours cost at the price that was given; null without one.
    pub price: Option<f64>,
    /// The metrics of the comparison document; null unless done.
    pub metrics: Option<BTreeMap<String, f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::to_json;

    #[test]
    fn documents_follow_their_schemas() {
        let split = TunedSplit {
            map_slots: 3,
            reduce_slots: 1,
            order: vec!["b".into(), "a".into()],
            makespan: 12.5,
            total_completion: 20.0,
        };
        let pareto = vec![split.clone()];
        let tuning =
            Tuning { best: split.clone(), pareto: Some(pareto), default: split, evaluated: 2, candidates: 3 };
        let value = |value: f64, outcome: &str| TriedValue {
            value,
            meets: outcome == "done",
            outcome: outcome.into(),
            cost: None,
            machine_hours: None,
            price: Some(3.5),
            metrics: (outcome == "done").then(|| BTreeMap::from([("missed".to_owned(), 0.0)])),
        };
        let capacity = Capacity {
            until: vec!["missed=0".into()],
            policy: "edf".into(),
            over: "machines".into(),
            found: Some(2.0),
            search: "bisect".into(),
            monotone: Some(true),
            interrupted: false,
            tried: vec![value(1.0, "failed"), value(2.0, "done")],
        };
        for (name, text) in [("tuning", to_json(&tuning)), ("capacity", to_json(&capacity))] {
            let schemas = crate::documents::schema::schemas();
            let (_, schema) = schemas.iter().find(|(document, _)| *document == name).unwrap();
            let schema = serde_json::from_str(schema).unwrap();
            let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
            jsonschema::validate(&schema, &document).unwrap();
            document["colour"] = "red".into();
            assert!(!jsonschema::is_valid(&schema, &document), "{name}");
        }
    }
}
