//! Remarks on a plan.

use crate::plan::{Augmented, Planned, Stopped};
use crate::report::number::{Unit, duration, number};

/// Remarks on a plan, by name.
pub fn remarks(
    planned: &Planned,
    budget: Option<f64>,
    augmented: Option<Augmented>,
) -> Vec<(&'static str, String)> {
    let mut remarks = Vec::new();
    remarks.extend(planned.winner.clone().map(|winner| ("winner", winner)));
    remarks.extend(planned.guarantee.clone().map(|guarantee| ("guarantee", guarantee)));
    remarks
        .extend(augmented.zip(planned.schedule.cost).map(|(against, cost)| ("speed", speed(against, cost))));
    remarks.extend(
        planned
            .without_minima
            .zip(planned.schedule.cost)
            .map(|(without, cost)| ("minima", minima(without, cost))),
    );
    let stopped = planned.stopped.map(|stopped| match stopped {
        Stopped::Steps => "stopped at the limit of steps for a plan".to_owned(),
        Stopped::Budget => format!("stopped at its budget of {}", duration(budget.unwrap_or_default())),
    });
    remarks.extend(stopped.map(|stopped| ("search", stopped)));
    remarks
}

/// `this plan costs 17.0 % more than one without minima, which costs 1,234`.
fn minima(without: f64, cost: f64) -> String {
    if cost <= without {
        return "no cheaper plan without minima was found".to_owned();
    }
    let plain = number(without, Unit::Measure);
    if without <= 0.0 {
        return format!("a plan without minima costs {plain}");
    }
    let more = number(cost / without - 1.0, Unit::Percent);
    format!("this plan costs {more} more than one without minima, which costs {plain}")
}

/// `2 times the workload's: cost 0.50 of the workload's lower bound, 3,318; at most the optimum (Theorem 4)`.
fn speed(against: Augmented, cost: f64) -> String {
    let Augmented { factor, lower_bound, promise } = against;
    let bound = number(lower_bound, Unit::Measure);
    let share = if lower_bound > 0.0 {
        format!("cost {} of the workload's lower bound, {bound}", number(cost / lower_bound, Unit::Measure))
    } else {
        format!("the workload's lower bound is {bound}")
    };
    let promise = promise.map_or_else(|| "no guarantee".to_owned(), |promise| promise.to_string());
    format!("{factor} times the workload's: {share}; {promise}")
}
