//! Capacity: the smallest cluster on which a workload meets a condition under a policy, by simulation.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use slackline_judge::Metrics;
use slackline_model::{Draft, Instance, Invalid, Span, duration};

use crate::names::unknown;
use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, SimulateError, Watch, simulate_figures};

/// A condition on a metric, such as `missed=0`, `mean_response<5m`, or `mean_response:300`, which is the same as
/// `mean_response<=300` and nothing that a shell would read otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    metric: &'static str,
    relation: Relation,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    AtMost,
    Below,
    Equal,
    AtLeast,
    Above,
}

/// Longer signs first, so that `<=` is not read as `<`; of two signs of one relation, the first is written.
const SIGNS: [(&str, Relation); 6] = [
    ("<=", Relation::AtMost),
    (":", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCondition {
    /// Nothing is compared.
    #[error(
        "expected METRIC:NUMBER (at most), such as missed:0 or mean_response:5m, or one of < <= = >= > for the colon"
    )]
    Sign,
    /// No such metric.
    #[error("{}", unknown("metric", .found, .known))]
    Metric {
        /// What was found.
        found: String,
        /// The metrics there are.
        known: Vec<&'static str>,
    },
    /// What it is compared with is no value of the metric.
    #[error("found {found:?} for {metric}, expected {expected}")]
    Value {
        /// The metric.
        metric: &'static str,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
}

impl FromStr for Condition {
    type Err = NoCondition;

    /// Reads a metric of the comparison document, one of `<= >= < > =`, and a number; of times also a duration.
    fn from_str(text: &str) -> Result<Self, NoCondition> {
        let split = |&(sign, relation): &(&str, Relation)| {
            text.split_once(sign).map(|(metric, value)| (metric.trim(), relation, value.trim()))
        };
        let (name, relation, value) = SIGNS.iter().find_map(split).ok_or(NoCondition::Sign)?;
        let known: Vec<&'static str> = Self::metrics().collect();
        let Some(&metric) = known.iter().find(|known| **known == name) else {
            return Err(NoCondition::Metric { found: name.to_owned(), known });
        };
        let wrong = |expected| NoCondition::Value { metric, found: value.to_owned(), expected };
        let number = if is_time(metric) {
            duration::parse_option(value).map_err(wrong)?
        } else {
            value.parse().map_err(|_| wrong("a finite number".to_owned()))?
        };
        let expected = match metric {
            "utilisation" if !(0.0..=1.0).contains(&number) => "a fraction from 0 to 1, such as 0.8",
            _ if !number.is_finite() => "a finite number",
            _ => return Ok(Self { metric, relation, value: number }),
        };
        Err(wrong(expected.to_owned()))
    }
}

/// Whether a metric is a time, in seconds.
pub(crate) fn is_time(metric: &str) -> bool {
    matches!(metric, "makespan" | "total_completion")
        || ["_response", "_wait", "_tardiness"].iter().any(|what| metric.ends_with(what))
}

impl Condition {
    /// The metrics that a condition can be on.
    pub fn metrics() -> impl Iterator<Item = &'static str> {
        Metrics::default().entries().into_iter().map(|(name, _)| name)
    }

    /// Whether a value of the metric meets it.
    pub fn holds(&self, found: f64) -> bool {
        match self.relation {
            Relation::AtMost => found <= self.value,
            Relation::Below => found < self.value,
            Relation::Equal => found == self.value,
            Relation::AtLeast => found >= self.value,
            Relation::Above => found > self.value,
        }
    }

    /// The metric's name.
    pub fn metric(&self) -> &'static str {
        self.metric
    }

    /// Whether it says nothing of a workload without deadlines.
    pub fn is_about_deadlines(&self) -> bool {
        matches!(self.metric, "deadlines" | "missed" | "total_tardiness" | "max_tardiness")
    }

    fn of(&self, metrics: &Metrics) -> f64 {
        let entry = metrics.entries().into_iter().find(|(name, _)| *name == self.metric);
        entry.expect("invariant: conditions are on metrics there are").1
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = SIGNS.iter().find(|(_, relation)| *relation == self.relation).map_or("", |(sign, _)| sign);
        write!(f, "{}{sign}{}", self.metric, self.value)
    }
}

/// What a search for capacity came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The smallest number of machines that does; `None` if no number does.
    pub found: Option<u32>,
    /// Every number tried and the metric it gave, in order; `None` if flows failed.
    pub tried: Vec<(u32, Option<f64>)>,
}

/// Why a search for capacity stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The workload cannot run on a cluster of that size.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A simulation came to nothing.
    #[error("{machines} machines: {problem}")]
    Simulation {
        /// How many machines there were.
        machines: u32,
        /// What the judge found, or what the policy says.
        problem: SimulateError,
    },
}

/// A search for the smallest cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Search<'a> {
    /// The policy that runs the cluster.
    pub policy: &'a PolicySpec,
    /// What must hold.
    pub condition: &'a Condition,
    /// How many machines there may be in the draft's first group.
    pub machines: RangeInclusive<u32>,
    /// How to simulate.
    pub options: &'a Options,
    /// Phases given as work are cut into tasks of at most this length.
    pub grain: Span,
}

impl<'a> Search<'a> {
    /// A search among these numbers of machines; phases given as work are cut into tasks of at most ten seconds.
    pub fn new(
        policy: &'a PolicySpec,
        condition: &'a Condition,
        machines: RangeInclusive<u32>,
        options: &'a Options,
    ) -> Self {
        Self { policy, condition, machines, options, grain: Span(10_000_000) }
    }

    /// With tasks of at most this length cut from phases given as work.
    #[must_use]
    pub fn with_grain(mut self, grain: Span) -> Self {
        self.grain = grain;
        self
    }
}

/// Simulates every number of machines of the search, fewest first, until the condition holds. `progress` is
/// told each number before it is tried.
///
/// More machines may do worse (Graham's anomalies), so every number is tried in turn and none is
/// skipped because another failed; for the same reason, numbers above the answer may fail again.
///
/// # Errors
/// A draft that is not valid with some number of machines; a schedule the judge refuses; a policy that could not
/// go on.
///
/// # Panics
/// If the draft has no machines.
pub fn smallest(
    draft: &Draft,
    search: &Search<'_>,
    progress: &dyn Fn(u32),
) -> Result<Capacity, CapacityError> {
    let Search { policy, condition, machines, options, grain } = search;
    let mut draft = draft.clone();
    let mut tried = Vec::new();
    for count in machines.clone() {
        progress(count);
        draft.machines[0].count = count;
        let instance = Instance::new(&draft)?.cut(*grain);
        let simulated = simulate_figures(&instance, policy, options, None, Watch::default())
            .map_err(|problem| CapacityError::Simulation { machines: count, problem })?;
        let value = simulated.schedule.cost.map(|_| condition.of(&simulated.metrics));
        tried.push((count, value));
        if value.is_some_and(|value| condition.holds(value)) {
            return Ok(Capacity { found: Some(count), tried });
        }
    }
    Ok(Capacity { found: None, tried })
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;
    use crate::Registry;

    #[test]
    fn conditions_are_read_as_they_are_written() {
        for text in ["missed=0", "mean_response<300", "p99_response<=12.5", "utilisation>=0.5", "tasks>3"] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), text);
        }
        assert_eq!("missed:0".parse::<Condition>().unwrap().to_string(), "missed<=0");
        for text in ["", "missed", "missed=", "missed=x", "mised=0", "missed=NaN", "missed==0"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
        assert_eq!("p99_response<=5m".parse::<Condition>().unwrap().to_string(), "p99_response<=300");
        let error = |text: &str| text.parse::<Condition>().unwrap_err().to_string();
        assert_eq!(error("missed:5m"), "found \"5m\" for missed, expected a finite number");
        assert!(error("makespan<1.5d").contains("expected 36h: "), "{}", error("makespan<1.5d"));
        assert!(error("utilisation>=80").contains("expected a fraction from 0 to 1, such as 0.8"));
        assert!("utilisation>=-0.1".parse::<Condition>().is_err());
        let error = "mised=0".parse::<Condition>().unwrap_err().to_string();
        assert!(error.starts_with(r#"found metric "mised", expected one of makespan, "#), "{error}");
    }

    /// Ten tasks of six seconds, due by the deadline, on machines of one slot.
    fn draft(deadline: f64) -> Draft {
        let map = Some(TasksDraft::Uniform { tasks: 10, seconds: 6.0 }.into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        let flow = FlowDraft { deadline: Some(deadline), ..FlowDraft::new("f", vec![job]) };
        let slots = Slots::Universal(1);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        Draft { machines: vec![machine], flows: vec![flow], ..Draft::default() }
    }

    fn search(deadline: f64, machines: RangeInclusive<u32>) -> Capacity {
        let search = Search {
            policy: &Registry::standard().parse("edf").unwrap(),
            condition: &"missed=0".parse().unwrap(),
            machines,
            options: &Options::exact(),
            grain: Span(10_000_000),
        };
        smallest(&draft(deadline), &search, &|_| ()).unwrap()
    }

    #[test]
    fn without_flows_the_smallest_cluster_does() {
        let empty = Draft { flows: Vec::new(), ..draft(1.0) };
        for (policy, condition) in [("edf", "missed=0"), ("mk-jr", "makespan<=0"), ("dmrs", "utilisation=0")]
        {
            let policy = Registry::standard().parse(policy).unwrap();
            let (condition, options) = (condition.parse().unwrap(), Options::exact());
            let search = Search::new(&policy, &condition, 3..=9, &options);
            let found = smallest(&empty, &search, &|_| ()).unwrap();
            assert_eq!((found.found, found.tried), (Some(3), vec![(3, Some(0.0))]));
        }
    }

    #[test]
    fn the_smallest_cluster_is_found_and_what_was_tried_is_told() {
        let found = search(18.0, 2..=9);
        assert_eq!(found.found, Some(4));
        assert_eq!(found.tried, [(2, Some(1.0)), (3, Some(1.0)), (4, Some(0.0))]);
        assert_eq!(search(5.0, 8..=10).found, None);
    }
}
