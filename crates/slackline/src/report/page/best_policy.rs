//! The first sentence of a page: the best policies, and by how much the others are worse.

use serde::Serialize;

use crate::report::comparison::{Row, shown_names};
use crate::report::number::{Unit, number};
use crate::report::significance::{Sampling, Verdict};
use crate::report::spread::Runs;

/// The sentence in two parts. The first part names the best policies.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    names: String,
    rest: String,
}

impl Answer {
    /// The sentence for the policies of `rows`, or of `all` if there are several samples. `None` if no policy has
    /// a cost.
    pub(super) fn of(rows: &[Row], all: Option<(&[Runs], Sampling)>, objective: &str) -> Option<Self> {
        let verdict = match all {
            Some((all, sampling)) => Verdict::of(all, sampling),
            None => Verdict::of_rows(rows, Sampling::EXACT),
        };
        // The bound is on the cost of this sample.
        let bound = if all.is_none() { cheapest(rows, objective) } else { None };
        match (verdict, bound) {
            (Some(Verdict { names, rest, .. }), bound) => {
                let bound = bound.map_or_else(String::new, |(name, bound)| format!(" {name} {bound}"));
                Some(Self { names, rest: rest + &bound })
            }
            (None, bound) => bound.map(|(names, rest)| Self { names, rest: format!(" {rest}") }),
        }
    }
}

/// The policy with the least cost, with this cost and how far it may be above the least possible one.
fn cheapest(rows: &[Row], objective: &str) -> Option<(String, String)> {
    let named = rows.iter().zip(shown_names(rows));
    let costs = named.filter_map(|(row, name)| {
        let figures = row.result.as_ref().ok()?;
        Some((name, figures.cost?, figures.gap))
    });
    let (name, cost, gap) = costs.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let bound = match gap {
        None => String::new(),
        Some(gap) if gap <= 1e-9 => "; no schedule can cost less".to_owned(),
        Some(gap) => format!("; at most {} above the least possible cost", number(gap, Unit::Gap)),
    };
    Some((name, format!("costs {} ({objective}){bound}.", number(cost, Unit::Measure))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::comparison::Figures;

    fn said(costs: &[(&str, Option<f64>)], gap: Option<f64>) -> Option<String> {
        let row = |&(policy, cost): &(&str, _)| Row {
            policy: policy.into(),
            result: Ok(Figures { cost, gap, ..Figures::default() }),
        };
        let answer = Answer::of(&costs.iter().map(row).collect::<Vec<_>>(), None, "makespan, s")?;
        Some(format!("{}{}", answer.names, answer.rest))
    }

    #[test]
    fn the_verdict_comes_with_the_cost_and_its_bound() {
        let found = said(&[("fifo", Some(300.0)), ("edf", None), ("flex", Some(100.0))], Some(0.0844));
        let expected = "flex has the least cost; fifo is worse by 200.0 %. flex costs 100.0 (makespan, s); at most 8.5 % above the least possible cost.";
        assert_eq!(found.as_deref(), Some(expected));
        assert_eq!(said(&[("fifo", Some(3.0))], None).as_deref(), Some("fifo costs 3.00 (makespan, s)."));
        assert_eq!(said(&[("fifo", None)], None), None);
    }
}
