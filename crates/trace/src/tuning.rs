//! The documents that `tune` prints: splits of slots with their orders, and sizes of clusters.

use serde::Serialize;

use crate::comparison::pretty;

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
    /// What nothing beats in both makespan and total completion time, least makespan first.
    pub pareto: Vec<TunedSplit>,
    /// As many map as reduce slots, in the order of the method's rule.
    pub default: TunedSplit,
    /// Splits that were estimated; bounds ruled out the others.
    pub evaluated: u32,
    /// Splits there are.
    pub candidates: u32,
}

/// The smallest cluster that meets a condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields, title = "Slackline capacity"))]
pub struct Capacity {
    /// The condition.
    pub until: String,
    /// The policy with its parameters.
    pub policy: String,
    /// The smallest number of machines that meets it; null if none does.
    pub machines: Option<u32>,
    /// Every size that was tried, smallest first.
    pub tried: Vec<TriedSize>,
}

/// A size of the cluster and what it gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct TriedSize {
    /// Machines.
    pub machines: u32,
    /// The condition's metric; null if flows failed.
    pub value: Option<f64>,
}

/// A tuning as JSON.
pub fn write_tuning(tuning: &Tuning) -> String {
    pretty(tuning)
}

/// A capacity as JSON.
pub fn write_capacity(capacity: &Capacity) -> String {
    pretty(capacity)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let tuning = Tuning { best: split.clone(), pareto, default: split, evaluated: 2, candidates: 3 };
        let tried = vec![TriedSize { machines: 1, value: None }, TriedSize { machines: 2, value: Some(0.0) }];
        let (until, policy) = ("missed=0".into(), "edf".into());
        let capacity = Capacity { until, policy, machines: Some(2), tried };
        for (name, text) in [("tuning", write_tuning(&tuning)), ("capacity", write_capacity(&capacity))] {
            let schemas = crate::schema::schemas();
            let (_, schema) = schemas.iter().find(|(document, _)| *document == name).unwrap();
            let schema = serde_json::from_str(schema).unwrap();
            let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
            jsonschema::validate(&schema, &document).unwrap();
            document["colour"] = "red".into();
            assert!(!jsonschema::is_valid(&schema, &document), "{name}");
        }
    }
}
