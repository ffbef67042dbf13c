//! Relaxations: what no schedule can beat, written once, for bounds and as steps of algorithms.
//!
//! In reading order:
//! - [`paths`]: effective work of every phase, and the longest paths before and after it;
//! - [`preemptive`]: one fast machine with preemption: EDF, WSPT, Jackson's tails;
//! - [`per_flow`](mod@per_flow): the earliest completion of each flow, had it the cluster for itself;
//! - [`prefix_area`](mod@prefix_area): the bound on maxima, by bisection with the EDF test;
//! - [`pb`]: the closed-form linear program of mean busy times, and its separation oracle;
//! - [`minisum`]: that program and the release-date bound on sums of linear costs;
//! - [`malleable`]: malleable jobs, what the next three talk about;
//! - [`deadlines`]: the exact deadline test and EDF water filling;
//! - [`minimax`](mod@minimax): the optimum of any minimax objective over malleable jobs;
//! - [`levels`]: step costs over malleable jobs, exact for few and relaxed for many.
//!
//! [`bounds`] applies all that fit an instance's objective, [`best`] is their maximum.
//!
//! # What the bounds hold for
//!
//! Every feasible schedule of the instance, as tasks without preemption or as malleable allocations,
//! with or without minima, slow-start, failures and re-runs: those only restrict or add work. A
//! schedule whose durations were distorted (noise, measured runs) follows another instance.
//!
//! # Rounding
//!
//! *Whole microseconds.* A simulated task takes `round(seconds / speed)` microseconds and may so be
//! shorter than the real quotient; [`paths`] counts each task with the least work that any slot can
//! have spent on it, so bounds hold for rounded and for exact durations.
//!
//! *Floating point.* Earliest completions, and sums and levels found by search, are lowered by 10^-12
//! relative plus the worst case of naive summation, so that no rounding lifts a bound above the
//! optimum. A bound that meets the optimum is therefore a hair below it. Step costs are exact: their
//! bounds are levels of the document, and completions count as late with the documents' tolerance.
//!
//! **Never knows**: policies, engines.
#![deny(clippy::unwrap_used)]

pub mod deadlines;
pub mod flow;
mod guard;
pub mod johnson;
pub mod levels;
pub mod malleable;
pub mod minimax;
pub mod minisum;
pub mod paths;
pub mod pb;
pub mod per_flow;
pub mod preemptive;
pub mod prefix_area;
#[cfg(test)]
mod tests;
pub mod transport;

use slackline_model::{Combine, Instance};

pub use paths::Paths;
pub use per_flow::{FlowBound, per_flow};

/// A lower bound on the objective of every feasible schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Which relaxation: `critical-path`, `area`, `alone`, `prefix-area`, `pb`, `wspt-release`.
    pub name: &'static str,
    /// The bound, in units of the objective.
    pub value: f64,
}

/// All lower bounds that apply to the instance's objective, each valid on its own.
///
/// `critical-path`, `area` and `alone` (which is at least both) for every objective, `prefix-area`
/// for maxima, `pb` and `wspt-release` for sums in which a flow costs in proportion to its completion.
/// Their maximum is a bound too, their sum is not.
///
/// O(n log n) for n phases and flows; `prefix-area` that times the steps of its search (about 40).
pub fn bounds(instance: &Instance) -> Vec<Bound> {
    let paths = Paths::of(instance);
    let flows = per_flow::with_paths(instance, &paths);
    let combined = |bound: &dyn Fn(&FlowBound) -> f64| {
        let costs = instance.flows().iter().zip(&flows);
        instance.objective().combine.of(costs.map(|(flow, b)| flow.cost.eval(bound(b))))
    };
    let mut list = vec![
        Bound { name: "critical-path", value: combined(&|b| b.completion_after(b.critical_path)) },
        Bound { name: "area", value: combined(&|b| b.completion_after(b.area())) },
        Bound { name: "alone", value: combined(&|b| b.earliest) },
    ];
    match instance.objective().combine {
        Combine::Max => {
            let value = prefix_area::prefix_area(instance, &paths, &flows);
            list.push(Bound { name: "prefix-area", value });
        }
        Combine::Sum => {
            if let Some(costs) = minisum::linear_part(instance, &flows) {
                let value = minisum::pb(instance, &paths, &flows, &costs);
                list.push(Bound { name: "pb", value });
                let value = minisum::wspt_release(instance, &paths, &flows, &costs);
                list.push(Bound { name: "wspt-release", value });
            }
        }
    }
    // Weights near the end of the floating-point range may end in inf - inf, which bounds nothing.
    list.retain(|bound| !bound.value.is_nan());
    list
}

/// The strongest of [`bounds`]; at least 0 for objectives that cannot be negative.
pub fn best(instance: &Instance) -> f64 {
    bounds(instance).iter().map(|bound| bound.value).reduce(f64::max).unwrap_or(0.0)
}
