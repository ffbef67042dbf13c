//! Fields that several documents share.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{self, MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use slackline_model::schedule::Outcome;
use slackline_model::{Combine, Metric, Objective, PhaseKind, duration};

use crate::reading::times::Duration;

/// A name: borrowed from the text where it stands there as it is.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// `$schema` of a document: what editors write there, read and forgotten.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SchemaName;

impl<'de> Deserialize<'de> for SchemaName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let _: Cow<'de, str> = Deserialize::deserialize(deserializer)?;
        Ok(Self)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for SchemaName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SchemaName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// The metric of a cost.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub(crate) enum MetricName {
    Completion,
    Response,
    Makespan,
    Stretch,
    Slowdown,
    Tardy,
    Tardiness,
    Lateness,
    Sla,
    /// Another name of `sla`.
    Steps,
    Piecewise,
}

impl From<MetricName> for Metric {
    fn from(name: MetricName) -> Self {
        match name {
            MetricName::Completion => Self::Completion,
            MetricName::Response => Self::Response,
            MetricName::Makespan => Self::Makespan,
            MetricName::Stretch => Self::Stretch,
            MetricName::Slowdown => Self::Slowdown,
            MetricName::Tardy => Self::Tardy,
            MetricName::Tardiness => Self::Tardiness,
            MetricName::Lateness => Self::Lateness,
            MetricName::Sla | MetricName::Steps => Self::Sla,
            MetricName::Piecewise => Self::Piecewise,
        }
    }
}

impl From<Metric> for MetricName {
    fn from(metric: Metric) -> Self {
        let name: StrDeserializer<'_, value::Error> = metric.name().into_deserializer();
        Self::deserialize(name).expect("invariant: every metric has a name in documents")
    }
}

// Enums of the model as documents write them; fields have them as `with`.

/// How the costs of the flows become one number.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(remote = "Combine", rename_all = "lowercase")]
pub(crate) enum CombineName {
    Sum,
    Max,
}

/// Map or reduce.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(remote = "PhaseKind", rename_all = "lowercase")]
pub(crate) enum PhaseName {
    Map,
    Reduce,
}

/// How an attempt ended: `lost` had finished, but its output was lost with its machine.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(remote = "Outcome", rename_all = "lowercase")]
pub(crate) enum OutcomeName {
    Done,
    Failed,
    Killed,
    Lost,
}

/// The objective.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Aim {
    /// The metric of flows without a cost.
    pub(crate) metric: MetricName,
    /// Sum or maximum.
    #[serde(with = "CombineName")]
    pub(crate) combine: Combine,
}

impl From<Objective> for Aim {
    fn from(objective: Objective) -> Self {
        Self { metric: objective.metric.into(), combine: objective.combine }
    }
}

impl From<Aim> for Objective {
    fn from(aim: Aim) -> Self {
        Self::new(aim.metric.into(), aim.combine)
    }
}

pub(crate) fn done() -> Outcome {
    Outcome::Done
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
pub(crate) fn is_done(outcome: &Outcome) -> bool {
    *outcome == Outcome::Done
}

/// A number for both phases, or one for each.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(untagged)]
pub(crate) enum Numbers {
    /// For both.
    Both(u32),
    /// For each.
    Each(Pair),
}

/// A number for the map phase and one for the reduce phase.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(deny_unknown_fields)]
pub(crate) struct Pair {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reduce: Option<u32>,
}

/// Seconds of every task, or of each.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(untagged)]
pub(crate) enum Seconds {
    /// Of every task.
    All(Duration),
    /// One a task.
    Each(Vec<Duration>),
}

// Both are distinguished by hand: serde's derived errors for untagged enums have neither the value found nor
// its place.

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of slots or a table { map = n, reduce = n }")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Numbers, E> {
        let small = u32::try_from(n);
        small.map(Numbers::Both).map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(n), &self))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Numbers, E> {
        let small = u32::try_from(n);
        small.map(Numbers::Both).map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(n), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Numbers, A::Error> {
        Pair::deserialize(MapAccessDeserializer::new(map)).map(Numbers::Each)
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor)
    }
}

struct SecondsVisitor;

impl<'de> Visitor<'de> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a list with one a task", duration::EXPECTED)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Seconds, E> {
        Ok(Seconds::All(Duration(n as f64)))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Seconds, E> {
        Ok(Seconds::All(Duration(n as f64)))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Seconds, E> {
        Ok(Seconds::All(Duration(seconds)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Seconds, E> {
        Duration::deserialize(text.into_deserializer()).map(Seconds::All)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Seconds, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Seconds::Each)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondsVisitor)
    }
}

/// Named numbers in the order of the document, each name once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedValues<V = f64>(pub Vec<(String, V)>);

#[cfg(test)]
impl<V: schemars::JsonSchema> schemars::JsonSchema for NamedValues<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Named".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<String, V>::json_schema(generator)
    }
}

impl<V: Serialize> Serialize for NamedValues<V> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

struct NamedValuesVisitor;

impl<'de> Visitor<'de> for NamedValuesVisitor {
    type Value = NamedValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with a number for each name, such as { a = 1 }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedValues, A::Error> {
        let mut seen = std::collections::BTreeSet::new();
        let mut list = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, f64>()? {
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format!("found {name:?} a second time")));
            }
            if !value.is_finite() {
                let what = format!("found {value} for {name:?}, expected a finite number");
                return Err(A::Error::custom(what));
            }
            list.push((name, value));
        }
        Ok(NamedValues(list))
    }
}

impl<'de> Deserialize<'de> for NamedValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedValuesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_the_model() {
        for metric in Metric::ALL {
            let name = MetricName::from(metric);
            assert_eq!(serde_json::to_string(&name).unwrap(), format!("{:?}", metric.name()));
            assert_eq!(Metric::from(name), metric);
        }
        let steps: MetricName = serde_json::from_str("\"steps\"").unwrap();
        assert_eq!(Metric::from_name("steps"), Some(steps.into()));
    }
}
