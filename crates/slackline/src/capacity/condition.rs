//! Conditions on the metrics of a schedule, such as `missed<=1%`.

use std::fmt;
use std::str::FromStr;

use slackline_judge::Metrics;
use slackline_model::duration;

use crate::names::unknown;

/// A condition on a metric, such as `missed=0`, `missed<=1%`, `mean_response<5m` or `mean_response:300`. The
/// last form means `mean_response<=300` and needs no quotes in a shell.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    metric: &'static str,
    relation: Relation,
    amount: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    AtMost,
    Below,
    Equal,
    AtLeast,
    Above,
}

/// The value that a metric is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Amount {
    Of(f64),
    /// A percentage of the flows with a deadline.
    Percent(f64),
}

/// Longer signs come first, so that `<=` is not read as `<`. The first sign of a relation is used for output.
const SIGNS: [(&str, Relation); 6] = [
    ("<=", Relation::AtMost),
    (":", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

/// The reason why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCondition {
    /// The text has no relation sign.
    #[error(
        "expected METRIC:NUMBER (at most), such as missed:1% or mean_response:5m, or with one of < <= = >= > instead of the colon"
    )]
    Sign,
    /// An unknown metric.
    #[error("{}", unknown("metric", .found, .known))]
    Metric {
        /// The name that was given.
        found: String,
        /// The known metrics.
        known: Vec<&'static str>,
    },
    /// The value is invalid for the metric.
    #[error("found {found:?} for {metric}, expected {expected}")]
    Value {
        /// The metric.
        metric: &'static str,
        /// The text that was found.
        found: String,
        /// The expected value.
        expected: String,
    },
}

impl FromStr for Condition {
    type Err = NoCondition;

    /// Reads a metric of the comparison document, one of `<= >= < > = :`, and a number. Times also take a
    /// duration, and `missed` also takes a percentage of the flows with deadlines.
    fn from_str(text: &str) -> Result<Self, NoCondition> {
        let split = |&(sign, relation): &(&str, Relation)| {
            text.split_once(sign).map(|(metric, value)| (metric.trim(), relation, value.trim()))
        };
        let (name, relation, value) = SIGNS.iter().find_map(split).ok_or(NoCondition::Sign)?;
        let metric = Self::metric_named(name)?;
        Ok(Self { metric, relation, amount: amount(metric, value)? })
    }
}

/// Reads the value that a metric is compared with.
fn amount(metric: &'static str, value: &str) -> Result<Amount, NoCondition> {
    let wrong = |expected: &str| NoCondition::Value {
        metric,
        found: value.to_owned(),
        expected: expected.to_owned(),
    };
    if let Some(percent) = value.strip_suffix('%').filter(|_| metric == "missed") {
        let percent = percent.trim().parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
        return percent.map(Amount::Percent).ok_or_else(|| wrong("a percentage from 0 % to 100 %"));
    }
    let number = if is_time(metric) {
        duration::parse_option(value).map_err(|expected| wrong(&expected))?
    } else {
        value.parse().map_err(|_| wrong("a finite number"))?
    };
    match metric {
        "utilisation" if !(0.0..=1.0).contains(&number) => Err(wrong("a fraction from 0 to 1, such as 0.8")),
        _ if !number.is_finite() => Err(wrong("a finite number")),
        _ => Ok(Amount::Of(number)),
    }
}

/// Whether a metric is a time, in seconds.
pub(crate) fn is_time(metric: &str) -> bool {
    matches!(metric, "makespan" | "total_completion")
        || ["_response", "_wait", "_tardiness"].iter().any(|what| metric.ends_with(what))
}

impl Condition {
    /// The metrics that a condition can use.
    pub fn metrics() -> impl Iterator<Item = &'static str> {
        Metrics::default().entries().into_iter().map(|(name, _)| name)
    }

    /// The metric of this name.
    ///
    /// # Errors
    /// An unknown metric.
    pub fn metric_named(name: &str) -> Result<&'static str, NoCondition> {
        let mut metrics = Self::metrics();
        metrics
            .find(|known| *known == name)
            .ok_or_else(|| NoCondition::Metric { found: name.to_owned(), known: Self::metrics().collect() })
    }

    /// In words: `p95_response at most 120 s`.
    pub fn words(&self) -> String {
        let relation = match self.relation {
            Relation::AtMost => "at most",
            Relation::Below => "below",
            Relation::Equal => "equal to",
            Relation::AtLeast => "at least",
            Relation::Above => "above",
        };
        let unit = if is_time(self.metric) { " s" } else { "" };
        match self.amount {
            Amount::Of(value) => format!("{} {relation} {value}{unit}", self.metric),
            Amount::Percent(percent) => format!("{} {relation} {percent} %", self.metric),
        }
    }

    /// As a statement: `missed is 0`, `p95_response is at most 120 s`.
    pub fn statement(&self) -> String {
        let words = self.words();
        let is_zero = self.is_upper() && matches!(self.amount, Amount::Of(0.0) | Amount::Percent(0.0));
        if is_zero && self.relation != Relation::Below {
            return format!("{} is 0", self.metric);
        }
        words.replacen(' ', " is ", 1)
    }

    /// Whether the metrics meet the condition.
    pub fn holds(&self, found: &Metrics) -> bool {
        let (value, limit) = (self.of(found), self.limit(found.deadlines));
        match self.relation {
            Relation::AtMost => value <= limit,
            Relation::Below => value < limit,
            Relation::Equal => value == limit,
            Relation::AtLeast => value >= limit,
            Relation::Above => value > limit,
        }
    }

    /// The metric's name.
    pub fn metric(&self) -> &'static str {
        self.metric
    }

    /// The value of its metric.
    pub fn of(&self, metrics: &Metrics) -> f64 {
        let entry = metrics.entries().into_iter().find(|(name, _)| *name == self.metric);
        entry.expect("invariant: conditions are on metrics there are").1
    }

    /// Whether it is meaningless for a workload without deadlines.
    pub fn is_about_deadlines(&self) -> bool {
        matches!(self.metric, "deadlines" | "missed" | "total_tardiness" | "max_tardiness")
    }

    /// Whether a larger cluster is assumed to meet it if a smaller one does: an upper limit on a metric that
    /// contention increases.
    pub fn favours_size(&self) -> bool {
        !matches!(self.metric, "utilisation" | "tasks" | "deadlines") && self.is_upper()
    }

    /// Equality with 0 is an upper limit, because no metric is negative.
    fn is_upper(&self) -> bool {
        match self.relation {
            Relation::AtMost | Relation::Below => true,
            Relation::Equal => matches!(self.amount, Amount::Of(0.0) | Amount::Percent(0.0)),
            Relation::AtLeast | Relation::Above => false,
        }
    }

    fn limit(&self, deadlines: f64) -> f64 {
        match self.amount {
            Amount::Of(value) => value,
            Amount::Percent(percent) => deadlines * percent / 100.0,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = SIGNS.iter().find(|(_, relation)| *relation == self.relation).map_or("", |(sign, _)| sign);
        match self.amount {
            Amount::Of(value) => write!(f, "{}{sign}{value}", self.metric),
            Amount::Percent(percent) => write!(f, "{}{sign}{percent}%", self.metric),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_they_are_written() {
        let texts = [
            "missed=0",
            "missed<=1.5%",
            "mean_response<300",
            "p99_response<=12.5",
            "utilisation>=0.5",
            "tasks>3",
        ];
        for text in texts {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), text);
        }
        assert_eq!("missed:0".parse::<Condition>().unwrap().to_string(), "missed<=0");
        let words = ["missed:1%", "p95_response:2m", "utilisation>=0.5"]
            .map(|text| text.parse::<Condition>().unwrap().words());
        assert_eq!(words, ["missed at most 1 %", "p95_response at most 120 s", "utilisation at least 0.5"]);
        let statements = ["missed:0", "missed=0", "missed:1%", "missed<0"]
            .map(|text| text.parse::<Condition>().unwrap().statement());
        assert_eq!(statements, ["missed is 0", "missed is 0", "missed is at most 1 %", "missed is below 0"]);
        for text in ["", "missed", "missed=", "missed=x", "mised=0", "missed=NaN", "missed==0", "makespan:1%"]
        {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
        assert_eq!("p99_response<=5m".parse::<Condition>().unwrap().to_string(), "p99_response<=300");
        let error = |text: &str| text.parse::<Condition>().unwrap_err().to_string();
        assert_eq!(error("missed:5m"), "found \"5m\" for missed, expected a finite number");
        assert_eq!(
            error("missed:101%"),
            "found \"101%\" for missed, expected a percentage from 0 % to 100 %"
        );
        assert!(error("makespan<1.5d").contains("expected 36h: "), "{}", error("makespan<1.5d"));
        assert!(error("utilisation>=80").contains("expected a fraction from 0 to 1, such as 0.8"));
        assert!("utilisation>=-0.1".parse::<Condition>().is_err());
        let error = "mised=0".parse::<Condition>().unwrap_err().to_string();
        assert!(error.starts_with(r#"found metric "mised", expected one of makespan, "#), "{error}");
    }

    #[test]
    fn a_percentage_is_of_the_flows_with_deadlines() {
        let found = |missed| Metrics { deadlines: 150.0, missed, ..Metrics::default() };
        let condition: Condition = "missed:2%".parse().unwrap();
        assert!(condition.holds(&found(3.0)));
        assert!(!condition.holds(&found(4.0)));
    }

    #[test]
    fn conditions_that_favour_larger_clusters_are_recognised() {
        let favours = |text: &str| text.parse::<Condition>().unwrap().favours_size();
        assert!(["missed=0", "missed:1%", "p95_response:2h", "makespan<9"].into_iter().all(favours));
        assert!(!["missed=3", "utilisation:0.8", "utilisation>=0.5", "makespan>9"].into_iter().any(favours));
    }
}
