//! The expectations on our rows that confirm a paper's claim, and their results.

use serde::Deserialize;

use super::points::order;
use super::{Claim, Row};

/// A statement about the rows of a policy and measure that a computer can decide.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The policy or method.
    pub policy: String,
    pub measure: String,
    /// Only at these values of the varied parameter.
    #[serde(default)]
    pub x: Vec<String>,
    /// Only in this series.
    pub series: Option<String>,
    /// Which of a row's numbers: its mean, its least over the seeds, or its largest.
    #[serde(default)]
    pub of: Statistic,
    /// The number is at least this in every row.
    pub least: Option<f64>,
    /// The number is at most this in every row.
    pub most: Option<f64>,
    /// The number is below that of this policy in every row.
    pub below: Option<String>,
    /// For `below`: below this many times that of the other policy.
    pub times: Option<f64>,
    /// From the first to the last value of the varied parameter it rises, or falls.
    pub trend: Option<Trend>,
}

/// Which number of a row.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean over the seeds.
    #[default]
    Mean,
    Least,
    Most,
}

/// The direction of a trend.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Trend {
    /// The last is above the first.
    Rises,
    /// The last is below the first.
    Falls,
}

/// An expectation as text, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub expected: String,
    pub found: String,
    pub holds: bool,
}

slackline_model::named_enum! {
    /// The verdict of our rows on a paper's claim.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Verdict {
        /// All expectations hold.
        Confirmed = "confirmed",
        /// All expectations hold, and ours is better.
        Better = "better",
        /// Some expectation does not hold.
        Differs = "differs",
        /// The paper has no claim that rows could decide; the figure is shown.
        Shown = "shown",
    }
}

/// Compares our rows with a claim. Returns the verdict and its reasons (first the expectations, then those on
/// better results). O(rows · expectations).
pub fn verdict(claim: &Claim, rows: &[Row]) -> (Verdict, Vec<Checked>) {
    let held = |list: &[Expectation]| list.iter().map(|e| e.hold(rows)).collect::<Vec<_>>();
    let (expected, better) = (held(&claim.expect), held(&claim.better));
    let all = |list: &[Checked]| list.iter().all(|checked| checked.holds);
    let verdict = match (all(&expected), better.is_empty() || !all(&better)) {
        _ if expected.is_empty() && better.is_empty() => Verdict::Shown,
        (false, _) => Verdict::Differs,
        (true, true) => Verdict::Confirmed,
        (true, false) => Verdict::Better,
    };
    (verdict, expected.into_iter().chain(better).collect())
}

impl Expectation {
    /// Checks that the expectation is not empty.
    ///
    /// # Errors
    /// The missing part, as a message.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.least.is_none() && self.most.is_none() && self.below.is_none() && self.trend.is_none() {
            return Err(
                "found an expectation without content, expected least, most, below or trend".to_owned()
            );
        }
        if self.times.is_some() && self.below.is_none() {
            return Err("found times without below, expected both".to_owned());
        }
        Ok(())
    }

    fn number(&self, row: &Row) -> Option<f64> {
        match self.of {
            Statistic::Mean => row.mean,
            Statistic::Least => row.least,
            Statistic::Most => row.most,
        }
    }

    fn rows<'a>(&self, rows: &'a [Row], policy: &str) -> Vec<&'a Row> {
        let fits = |row: &&Row| {
            row.policy == policy
                && row.measure == self.measure
                && (self.x.is_empty() || self.x.contains(&row.x))
                && self.series.as_ref().is_none_or(|series| *series == row.series)
        };
        rows.iter().filter(fits).collect()
    }

    /// Decides the expectation. Rows without a number, or no rows, confirm nothing.
    fn hold(&self, rows: &[Row]) -> Checked {
        let ours = self.rows(rows, &self.policy);
        let numbers: Vec<f64> = ours.iter().filter_map(|row| self.number(row)).collect();
        let complete = !ours.is_empty() && numbers.len() == ours.len();
        let (mut expected, mut found, mut holds) = (Vec::new(), Vec::new(), complete);
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !complete {
            found.push("no number".to_owned());
        } else if numbers.len() == 1 {
            found.push(short(low));
        } else {
            found.push(format!("{} to {}", short(low), short(high)));
        }
        if let Some(least) = self.least {
            expected.push(format!("at least {}", short(least)));
            holds &= low >= least;
        }
        if let Some(most) = self.most {
            expected.push(format!("at most {}", short(most)));
            holds &= high <= most;
        }
        if let Some(other) = &self.below {
            let (said, worst, below) = self.below(rows, &ours, other);
            expected.push(said);
            found.push(worst);
            holds &= below;
        }
        if let Some(trend) = self.trend {
            expected.push(if trend == Trend::Rises { "rises" } else { "falls" }.to_owned());
            holds &= self.goes(&ours, trend);
        }
        Checked { expected: self.words(&expected.join(", ")), found: found.join("; "), holds }
    }

    /// Below another policy in every point that both have.
    fn below(&self, rows: &[Row], ours: &[&Row], other: &str) -> (String, String, bool) {
        let times = self.times.unwrap_or(1.0);
        let theirs = self.rows(rows, other);
        let pair = |row: &&Row| {
            let found = theirs.iter().find(|t| t.x == row.x && t.series == row.series)?;
            Some(self.number(row)? / self.number(found)?)
        };
        let shares: Vec<Option<f64>> = ours.iter().map(pair).collect();
        let worst = shares.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let below = shares.iter().all(|share| share.is_some_and(|share| share < times));
        let said = if self.times.is_some() {
            format!("below {} times {other}", short(times))
        } else {
            format!("below {other}")
        };
        let worst = if worst.is_finite() {
            format!("at worst {} times", short(worst))
        } else {
            format!("nothing of {other}")
        };
        (said, worst, below && !shares.is_empty())
    }

    /// Whether every series has this trend from its first point to its last.
    fn goes(&self, ours: &[&Row], trend: Trend) -> bool {
        order(ours, |row| &row.series).iter().all(|series| {
            let line: Vec<f64> =
                ours.iter().filter(|row| row.series == *series).filter_map(|row| self.number(row)).collect();
            match (line.first(), line.last(), trend) {
                (Some(first), Some(last), Trend::Rises) => line.len() > 1 && last > first,
                (Some(first), Some(last), Trend::Falls) => line.len() > 1 && last < first,
                _ => false,
            }
        })
    }

    fn words(&self, expected: &str) -> String {
        let of = match self.of {
            Statistic::Mean => "",
            Statistic::Least => " least",
            Statistic::Most => " largest",
        };
        let at = if self.x.is_empty() { String::new() } else { format!(" at {}", self.x.join(", ")) };
        let series = self.series.as_ref().map_or(String::new(), |series| format!(" ({series})"));
        format!("{}:{of} {}{series}{at} {expected}", self.policy, self.measure.replace('_', " "))
    }
}

/// A number with three significant digits.
pub(super) fn short(x: f64) -> String {
    let digits = if x == 0.0 { 0 } else { (2 - x.abs().log10().floor() as i32).clamp(0, 4) as usize };
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
