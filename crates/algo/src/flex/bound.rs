//! Lower bounds on the cost of any schedule of a FLEX instance.
//!
//! - Maximum: the deadline test (exact).
//! - Sum, linear costs: the closed form "PB" with h = V/2M and l = V/M (docs/math/mean-busy-times.md P1),
//!   minima ignored.
//! - Sum, other costs: the level relaxation.
//!
//! A sum of both kinds is bounded by the sum of the two bounds, each as if its jobs had the cluster for
//! themselves.

use slackline_model::Combine;
use slackline_relax::malleable::Job;
use slackline_relax::{levels, minimax, pb};

use super::instance::FlexInstance;

/// The best of our bounds; `upper`, the cost of some schedule, only steers.
pub fn of(instance: &FlexInstance, upper: f64) -> f64 {
    if instance.combine() == Combine::Max {
        return minimax::minimax(instance.jobs(), instance.slots()).bound;
    }
    let (linear, other): (Vec<Job>, Vec<Job>) =
        instance.jobs().iter().cloned().partition(|job| job.cost.as_linear().is_some());
    let mut bound = linear_bound(&linear, instance.slots());
    if !other.is_empty() {
        bound += levels::bound(&other, instance.slots(), upper - bound);
    }
    bound
}

/// Σ slope·(base + C) + intercept with C from the closed form.
fn linear_bound(jobs: &[Job], slots: u32) -> f64 {
    let mut fixed = 0.0;
    let rows: Vec<pb::Job> = jobs
        .iter()
        .map(|job| {
            let (weight, intercept) = job.cost.as_linear().unwrap_or((0.0, 0.0));
            fixed += weight * job.base + intercept;
            pb::Job { work: job.work, weight, floor: job.alone(), tail: job.alone() / 2.0 }
        })
        .collect();
    fixed + pb::solve(&rows, f64::from(slots)).value
}
