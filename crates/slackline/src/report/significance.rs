//! Which policies can be distinguished from the best one, and what a comparison says in words.
//!
//! Policies are compared by paired differences, because all of them get the same random draws: a policy cannot
//! be distinguished from the best one in a metric if the 95 % interval of its difference (Student's t) contains 0. Without
//! random draws there is one value each, and any difference is one. The recorded run of a log is no policy, so it
//! is never the best.

use crate::recorded::{self, DISTANCE};
use crate::report::comparison::{Figures, Row};
use crate::report::names;
use crate::report::number::{Unit, counted, duration, number};
use crate::report::samples::{Runs, SEED};
use crate::report::table::Best;
use crate::statistics::{Interval, Spread};

/// How values were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The word for one sample: `seed`, `day`, `file`.
    pub word: &'static str,
    /// Whether each value is a single random draw, which may be chance.
    pub is_one_draw: bool,
}

impl Sampling {
    /// Nothing is random.
    pub const EXACT: Self = Self { word: SEED, is_one_draw: false };
}

/// Differences up to this fraction of the values are rounding errors of sums.
const ROUNDING: f64 = 1e-9;

type Get<'a> = &'a dyn Fn(&Figures) -> Option<f64>;

/// For each policy, whether it cannot be distinguished from the best one in a metric. All false where there is no
/// direction. O(policies · samples).
pub(crate) fn best(all: &[&Runs], get: Get<'_>, direction: Option<Best>) -> Vec<bool> {
    let Some(best) = direction.and_then(|direction| best_of(all, get, direction)) else {
        return vec![false; all.len()];
    };
    let is_best = |runs: &&Runs| {
        is_candidate(runs) && difference(runs, all[best], get).is_some_and(|spread| !is_clear(&spread))
    };
    all.iter().map(is_best).collect()
}

fn is_candidate(runs: &Runs) -> bool {
    runs.policy != recorded::NAME
}

/// The policy with the best mean.
fn best_of(all: &[&Runs], get: Get<'_>, direction: Best) -> Option<usize> {
    let mean = |runs: &&Runs| Some(Spread::over(runs.result.as_deref().ok()?, get)?.mean);
    let means = all.iter().enumerate().filter(|(_, runs)| is_candidate(runs));
    let means = means.filter_map(|(k, runs)| Some((k, mean(runs)?)));
    let order = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    match direction {
        Best::Least => means.min_by(order),
        // Of equal ones the first.
        Best::Largest => means.min_by(|a, b| order(b, a)),
    }
    .map(|(k, _)| k)
}

fn difference(runs: &Runs, base: &Runs, get: Get<'_>) -> Option<Difference> {
    let (own, base) = (runs.result.as_deref().ok()?, base.result.as_deref().ok()?);
    let spread = Spread::of_differences(own, base, get)?;
    let scale = Spread::over(base, get)?.mean;
    Some(Difference { spread, scale })
}

/// A paired difference, and the mean of the values that it is to.
struct Difference {
    spread: Spread,
    scale: f64,
}

/// Whether a difference is one: its interval does not contain 0.
fn is_clear(difference: &Difference) -> bool {
    let Difference { spread, scale } = difference;
    spread.mean.abs() > spread.ci95.max(ROUNDING * scale.abs())
}

/// The error of the simulation in a metric: how far the simulation of the cluster's own scheduler is from the
/// recorded run. `None` where there are not both.
pub(crate) fn model_error(all: &[&Runs], get: Get<'_>) -> Option<f64> {
    let recorded = all.iter().find(|runs| !is_candidate(runs))?;
    let own = all.iter().find(|runs| has_simulation_error(runs))?;
    Some(difference(own, recorded, get)?.spread.mean.abs())
}

/// Whether it simulates the scheduler that the cluster of the log used: only its differences to the recorded run
/// are errors of the simulation.
fn has_simulation_error(runs: &Runs) -> bool {
    let figures = runs.result.as_deref().unwrap_or_default();
    figures.iter().any(|figures| figures.metric(DISTANCE[0]).is_some())
}

/// The metrics by which policies are ranked, the first that differs decides: with deadlines, the missed ones and
/// then the total tardiness; else the cost.
pub(crate) fn ranked_by(all: &[&Runs]) -> &'static [&'static str] {
    let figures = || all.iter().filter_map(|runs| runs.result.as_deref().ok()).flatten();
    if figures().any(|figures| figures.metric("deadlines").is_some_and(|deadlines| deadlines > 0.0)) {
        &["missed", "total_tardiness", "cost"]
    } else {
        &["cost"]
    }
}

/// What a comparison says: which policies are best in the metric by which policies are ranked, and by how much
/// the others are worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// For each policy, whether it cannot be distinguished from the best one.
    pub is_best: Vec<bool>,
    /// The best policies: `fair, flex and auto`.
    pub names: String,
    /// The rest of the sentence: ` are about equal in cost; fifo is worse by 31 % (28 to 35 %).`
    pub rest: String,
}

impl Verdict {
    /// The whole sentence.
    pub fn sentence(&self) -> String {
        format!("{}{}", self.names, self.rest)
    }

    /// The verdict on policies; `None` if fewer than two have figures.
    pub fn of(all: &[Runs], sampling: Sampling) -> Option<Self> {
        let all: Vec<&Runs> = all.iter().collect();
        let decides = |metric: &&'static str| {
            let marks = best(&all, &|figures| figures.value(metric), Some(Best::Least));
            marks.iter().zip(&all).any(|(is_best, runs)| !is_best && has(runs, metric))
        };
        let metrics = ranked_by(&all);
        let deciding = metrics.iter().copied().find(|metric| decides(metric));
        let metric = deciding.or(metrics.last().copied())?;
        let get = |figures: &Figures| figures.value(metric);
        let is_best = best(&all, &get, Some(Best::Least));
        if all.iter().filter(|runs| has(runs, metric)).count() < 2 {
            return None;
        }
        let shown = names::shown(all.iter().map(|runs| runs.policy.as_str()));
        let least = best_of(&all, &get, Best::Least)?;
        let error = model_error(&all, &get);
        let (mut alike, mut others) = (Vec::new(), String::new());
        for ((runs, name), is_best) in all.iter().zip(shown).zip(&is_best) {
            if *is_best {
                alike.push(name);
            } else if let Some(spread) =
                has(runs, metric).then(|| difference(runs, all[least], &get)).flatten()
            {
                others += if others.is_empty() { "; " } else { ", " };
                others += &worse(&name, metric, &spread, error);
            }
        }
        let what = match deciding {
            Some(metric) => words(metric),
            None => listed(&metrics.iter().map(|metric| words(metric)).collect::<Vec<_>>()),
        };
        let is = match alike.as_slice() {
            [_] => format!(" has the {} {what}", if metric == "missed" { "fewest" } else { "least" }),
            _ => are_alike(&what, samples(&all), sampling),
        };
        let one = if sampling.is_one_draw { "; one draw: the differences may be chance" } else { "" };
        Some(Self { is_best, names: listed(&alike), rest: format!("{is}{others}{one}.") })
    }

    /// The verdict on the rows of one sample.
    pub fn of_rows(rows: &[Row], sampling: Sampling) -> Option<Self> {
        Self::of(&rows.iter().map(Runs::of_row).collect::<Vec<_>>(), sampling)
    }
}

/// What several best policies have in common, over `n` samples.
fn are_alike(what: &str, n: usize, sampling: Sampling) -> String {
    match n {
        _ if sampling.is_one_draw => format!(" have the same {what}"),
        1 => format!(" are equal in {what}"),
        2..5 => format!(" do not differ significantly in {what} over {n} {}s", sampling.word),
        _ => format!(" are about equal in {what}"),
    }
}

fn words(metric: &str) -> String {
    if metric == "missed" { "missed deadlines".to_owned() } else { metric.replace('_', " ") }
}

fn has(runs: &Runs, metric: &str) -> bool {
    let figures = runs.result.as_deref().unwrap_or_default();
    is_candidate(runs) && figures.iter().any(|figures| figures.value(metric).is_some())
}

fn samples(all: &[&Runs]) -> usize {
    all.iter().filter_map(|runs| Some(runs.result.as_ref().ok()?.len())).max().unwrap_or(0)
}

/// `fifo is worse by 31 % (28 to 35 %)`; counts and differences to 0 have no percentage.
fn worse(name: &str, metric: &str, difference: &Difference, error: Option<f64>) -> String {
    let Difference { spread, scale } = difference;
    let is_relative = *scale > 0.0 && metric != "missed";
    let text = |value: f64| match metric {
        _ if is_relative => number(value / scale, Unit::Percent),
        "total_tardiness" => duration(value),
        _ => number(value, Unit::Measure),
    };
    let by = match metric {
        "missed" if spread.interval() == Interval::None => counted(spread.mean.round() as u64, "deadline"),
        "missed" => format!("{} deadlines", text(spread.mean)),
        _ => text(spread.mean),
    };
    let bare = |value: f64| text(value).trim_end_matches(" %").to_owned();
    let band = match spread.interval() {
        Interval::None => String::new(),
        Interval::Half(half) => format!(" ({} to {})", bare(spread.mean - half), bare(spread.mean + half)),
        Interval::Range(least, most) => format!(" (range {} to {})", bare(least), bare(most)),
    };
    let within = error.is_some_and(|error| spread.mean < error);
    let within = if within { ", less than the simulation error" } else { "" };
    format!("{name} is worse by {by}{band}{within}")
}

/// `a, b and c`.
fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: Sampling = Sampling { word: "seed", is_one_draw: false };

    fn runs(policy: &str, metric: &'static str, values: &[f64]) -> Runs {
        let figures = |&value: &f64| match metric {
            "cost" => Figures { cost: Some(value), ..Figures::default() },
            metric => Figures {
                cost: Some(1.0),
                metrics: vec![
                    ("deadlines", Some(9.0)),
                    (metric, Some(value)),
                    ("total_tardiness", Some(0.0)),
                ],
                ..Figures::default()
            },
        };
        Runs { policy: policy.into(), result: Ok(values.iter().map(figures).collect()) }
    }

    fn said(all: &[Runs]) -> String {
        Verdict::of(all, SEEDS).unwrap().sentence()
    }

    #[test]
    fn policies_that_cannot_be_distinguished_from_the_best_share_its_mark() {
        let all = [
            runs("fifo", "cost", &[130.0, 172.0, 118.0, 135.0, 141.0]),
            runs("fair", "cost", &[100.0, 131.0, 90.0, 104.0, 107.0]),
            runs("auto", "cost", &[101.0, 129.0, 91.0, 103.0, 108.0]),
            runs("recorded", "cost", &[50.0; 5]),
        ];
        let verdict = Verdict::of(&all, SEEDS).unwrap();
        assert_eq!(verdict.is_best, [false, true, true, false]);
        assert_eq!(
            said(&all),
            "fair and auto are about equal in cost; fifo is worse by 30.8 % (24.9 to 36.7)."
        );
        let same: Vec<Runs> =
            all[..3].iter().map(|runs| Runs { policy: runs.policy.clone(), ..all[0].clone() }).collect();
        assert_eq!(said(&same), "fifo, fair and auto are about equal in cost.");
    }

    #[test]
    fn deadlines_come_before_costs_and_few_samples_have_a_range() {
        let all = [runs("edf", "missed", &[0.0, 1.0]), runs("fifo", "missed", &[3.0, 4.0])];
        assert_eq!(said(&all), "edf has the fewest missed deadlines; fifo is worse by 3 deadlines.");
        let one = [runs("edf", "missed", &[0.0]), runs("fifo", "missed", &[1.0])];
        assert_eq!(said(&one), "edf has the fewest missed deadlines; fifo is worse by 1 deadline.");
        let wide = [runs("a", "cost", &[100.0, 140.0]), runs("b", "cost", &[120.0, 300.0])];
        assert_eq!(said(&wide), "a and b do not differ significantly in cost over 2 seeds.");
        let clear = [runs("a", "cost", &[100.0, 140.0, 90.0]), runs("b", "cost", &[200.0, 241.0, 190.0])];
        assert_eq!(said(&clear), "a has the least cost; b is worse by 91.2 % (range 90.9 to 91.8).");
    }

    #[test]
    fn a_draw_alone_may_be_chance() {
        let all = [runs("a", "cost", &[100.0]), runs("b", "cost", &[120.0])];
        let drawn = Sampling { is_one_draw: true, ..SEEDS };
        let found = Verdict::of(&all, drawn).unwrap().sentence();
        assert_eq!(
            found,
            "a has the least cost; b is worse by 20.0 %; one draw: the differences may be chance."
        );
        assert_eq!(said(&all), "a has the least cost; b is worse by 20.0 %.");
        assert_eq!(Verdict::of(&all[..1], SEEDS), None);
    }
}
