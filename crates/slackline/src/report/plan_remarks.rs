//! What is to be said of a plan beside its figures.

use crate::plan::{Augmented, Planned, Stopped};
use crate::report::number::{Unit, duration, number};

/// What is to be said of a plan beside its figures, by name.
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
    let stopped = planned.stopped.map(|stopped| match stopped {
        Stopped::Steps => "ended after as many steps as a plan may take".to_owned(),
        Stopped::Budget => format!("ended by the budget of {}", duration(budget.unwrap_or_default())),
    });
    remarks.extend(stopped.map(|stopped| ("search", stopped)));
    remarks
}

/// `2 times the workload's: cost 0.50 of the lower bound there, 3,318; at most the optimum (Theorem 4)`.
fn speed(against: Augmented, cost: f64) -> String {
    let Augmented { factor, lower_bound, promise } = against;
    let bound = number(lower_bound, Unit::Measure);
    let share = if lower_bound > 0.0 {
        format!("cost {} of the lower bound there, {bound}", number(cost / lower_bound, Unit::Measure))
    } else {
        format!("lower bound there {bound}")
    };
    let promise = promise.map_or_else(|| "nothing promised".to_owned(), |promise| promise.to_string());
    format!("{factor} times the workload's: {share}; {promise}")
}
