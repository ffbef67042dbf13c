//! Names the policy with the lowest cost, or several policies if their difference is not significant.

use serde::Serialize;

use crate::report::comparison::{Figures, Row, shown_names};
use crate::report::number::{Unit, column, number};
use crate::report::spread::{Runs, Spread};

/// Two costs are about equal if they differ by at most this fraction of the lowest cost.
const ABOUT: f64 = 0.01;

/// The sentence in three parts. The middle part names the policies.
#[derive(Debug, Serialize)]
pub(super) struct Least {
    before: &'static str,
    names: String,
    after: String,
}

impl Least {
    /// The sentence for the policies of `rows`. With several samples, the means of `all` count, and one
    /// sample is called by the given word. `None` if no policy has a cost.
    pub(super) fn of(rows: &[Row], all: Option<(&[Runs], &str)>, objective: &str) -> Option<Self> {
        let names = shown_names(rows);
        let costs: Vec<Vec<f64>> = match all {
            Some((all, _)) => {
                all.iter().map(|runs| costs(runs.result.as_deref().unwrap_or_default())).collect()
            }
            None => {
                rows.iter().map(|row| costs(row.result.as_ref().map_or(&[], std::slice::from_ref))).collect()
            }
        };
        let means: Vec<Option<f64>> = costs.iter().map(|costs| Some(Spread::of(costs)?.mean)).collect();
        let known = || means.iter().enumerate().filter_map(|(k, mean)| Some((k, (*mean)?)));
        let (best, least) = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let is_alike = |k: usize| k == best || is_about(&costs[k], &costs[best], least);
        let alike: Vec<usize> = known().map(|(k, _)| k).filter(|&k| is_alike(k)).collect();
        let rest = known().filter(|(k, _)| !alike.contains(k)).min_by(|a, b| a.1.total_cmp(&b.1));
        let texts = column(&means, Unit::Measure);
        let of = |texts: &[String]| alike.iter().map(|&k| texts[k].clone()).collect::<Vec<_>>();
        let than = rest.filter(|&(_, cost)| cost > 0.0).map(|(k, cost)| {
            let worst = alike.iter().filter_map(|&k| means[k]).fold(least, f64::max);
            format!(", {} below {}", number(1.0 - worst / cost, Unit::Percent), names[k])
        });
        let gap = rows[best].result.as_ref().ok().and_then(|figures| figures.gap).filter(|_| all.is_none());
        let bound = gap.map(|gap| {
            if gap <= 1e-9 {
                return "; no schedule can cost less".to_owned();
            }
            format!("; at most {} above the least possible cost", number(gap, Unit::Percent))
        });
        let mean = all.map_or_else(String::new, |(_, sample)| format!(", mean of all {sample}s"));
        let (than, bound) = (than.unwrap_or_default(), bound.unwrap_or_default());
        Some(Self {
            before: match (known().count(), alike.len()) {
                (1, _) => "Cost: ",
                (_, 1) => "Least cost: ",
                _ => "Least cost, about equal: ",
            },
            names: listed(&of(&names)),
            after: format!(" with {} ({objective}{mean}){than}{bound}.", listed(&of(&texts))),
        })
    }
}

/// Whether a cost is about the lowest: within 1 % of it, or not significantly different over the samples.
fn is_about(costs: &[f64], best: &[f64], least: f64) -> bool {
    let differences: Vec<f64> = costs.iter().zip(best).map(|(cost, best)| cost - best).collect();
    Spread::of(&differences).is_some_and(|spread| spread.mean <= spread.ci95.max(ABOUT * least.abs()))
}

/// The costs of the runs; empty if flows failed in one of them.
fn costs(figures: &[Figures]) -> Vec<f64> {
    figures.iter().map(|figures| figures.cost).collect::<Option<Vec<f64>>>().unwrap_or_default()
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

    fn figures(cost: Option<f64>) -> Figures {
        Figures { cost, ..Figures::default() }
    }

    fn said(costs: &[(&str, Option<f64>)]) -> Option<String> {
        let row = |&(policy, cost): &(&str, _)| Row { policy: policy.into(), result: Ok(figures(cost)) };
        let rows: Vec<Row> = costs.iter().map(row).collect();
        let least = Least::of(&rows, None, "makespan")?;
        Some(format!("{}{}{}", least.before, least.names, least.after))
    }

    #[test]
    fn values_within_a_hundredth_are_about_equal() {
        let found = said(&[("fifo", Some(300.0)), ("auto", Some(100.2)), ("flex", Some(100.0))]);
        let expected =
            "Least cost, about equal: auto and flex with 100.2 and 100.0 (makespan), 66.6 % below fifo.";
        assert_eq!(found.as_deref(), Some(expected));
        let found = said(&[("fifo", Some(102.0)), ("edf", None), ("flex", Some(100.0))]);
        assert_eq!(found.as_deref(), Some("Least cost: flex with 100.0 (makespan), 2.0 % below fifo."));
        assert_eq!(said(&[("fifo", Some(3.0))]).as_deref(), Some("Cost: fifo with 3.00 (makespan)."));
        assert_eq!(said(&[("fifo", None)]), None);
    }

    #[test]
    fn paired_differences_decide_over_several_seeds() {
        let runs = |policy: &str, costs: &[f64]| Runs {
            policy: policy.into(),
            result: Ok(costs.iter().map(|&cost| figures(Some(cost))).collect()),
        };
        let names = |all: &[Runs]| {
            let row = |runs: &Runs| Row { policy: runs.policy.clone(), result: Err(String::new()) };
            Least::of(&all.iter().map(row).collect::<Vec<_>>(), Some((all, "seed")), "makespan")
                .map(|least| least.names)
        };
        let wide = [runs("a", &[100.0, 140.0, 90.0]), runs("b", &[120.0, 100.0, 130.0])];
        assert_eq!(names(&wide).as_deref(), Some("a and b"), "either may be better");
        let paired = [runs("a", &[100.0, 140.0, 90.0]), runs("b", &[110.0, 150.0, 100.0])];
        assert_eq!(names(&paired).as_deref(), Some("a"), "the same luck");
    }
}
