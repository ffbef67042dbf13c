//! Relaxations of linear costs for convex ones, by tangents.
//!
//! A convex cost is at least each of its tangents: w(C) ≥ λC + a(λ) with a(λ) the least w(t) − λt, t from the
//! earliest completion on. With one slope λ_j a flow, a relaxation R that bounds Σ λ_j C_j gives
//!
//! R(λ) + Σ a_j(λ_j),
//!
//! a lower bound for any choice of slopes, concave in λ. With the closed-form program ([`crate::pb`]) its
//! maximum is the program with the convex costs themselves (docs/math/flowflex.md B7 solves that with cutting
//! planes). With mean busy times under heads ([`crate::minisum::mean_busy`]) it joins these with earliest
//! completions, also for linear costs. Subgradient steps come near the maximum; the bound holds wherever they
//! stop. Costs that are not convex have slope 0.

use slackline_model::CostFn;

use crate::pb;

/// Most steps of the ascent.
pub(crate) const STEPS: usize = 300;

/// A flow: its earliest completion and its cost.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Earliest completion.
    pub floor: f64,
    /// The cost as a function of the completion.
    pub cost: &'a CostFn,
}

/// A lower bound on the sum of costs by at most `steps` solutions of a relaxation: the least Σ λ_j C_j for
/// given slopes λ, with completions C that attain it. `horizon` is about the end of the schedule; it only
/// steers.
pub fn bound(
    flows: &[Flow<'_>],
    horizon: f64,
    steps: usize,
    mut relaxation: impl FnMut(&[f64]) -> pb::Solution,
) -> f64 {
    let tangents: Vec<Tangents> = flows.iter().map(|f| Tangents::new(f, horizon)).collect();
    let mut slopes: Vec<f64> = tangents.iter().map(|t| t.steepest).collect();
    let mut best = flows.iter().map(|f| f.cost.eval(f.floor)).sum::<f64>();
    let start = best;
    let (mut reach, mut quiet) = (1.0, 0);
    for _ in 0..steps.min(STEPS) {
        let solution = relaxation(&slopes);
        let (mut value, mut magnitude) = (solution.value, solution.value.abs());
        let mut gradient = Vec::with_capacity(flows.len());
        for ((tangents, &slope), &completion) in tangents.iter().zip(&slopes).zip(&solution.completion) {
            let (intercept, at) = tangents.intercept(slope);
            value += intercept;
            magnitude += intercept.abs();
            gradient.push(completion - at);
        }
        value -= crate::rounding_margin::margin(magnitude, 3 * flows.len());
        if value > best {
            (best, quiet) = (value, 0);
        } else {
            quiet += 1;
        }
        if quiet == 6 {
            (reach, quiet) = (reach * 0.7, 0);
        }
        // One step moves every slope over its whole range for the largest gradient.
        let largest = gradient.iter().fold(0.0f64, |a, g| a.max(g.abs()));
        if largest <= 0.0 || reach < 1e-4 {
            break;
        }
        for ((slope, g), tangents) in slopes.iter_mut().zip(&gradient).zip(&tangents) {
            *slope = (*slope + reach * tangents.steepest * g / largest).clamp(0.0, tangents.steepest);
        }
    }
    best.max(start)
}

/// The tangents of a cost, from its floor on.
struct Tangents {
    /// The last slope; 0 if the cost is not convex.
    steepest: f64,
    /// Corners with their costs, the floor first.
    corners: Vec<(f64, f64)>,
}

impl Tangents {
    fn new(flow: &Flow<'_>, horizon: f64) -> Self {
        let floor = flow.floor;
        let mut corners = vec![(floor, flow.cost.eval(floor))];
        let breaks = flow.cost.breakpoints();
        let last = breaks.last().copied().unwrap_or(floor).max(floor);
        let mut steepest = 0.0;
        if flow.cost.is_convex() {
            corners.extend(breaks.iter().filter(|&&t| t > floor).map(|&t| (t, flow.cost.eval(t))));
            let span = horizon.max(1.0);
            steepest = match flow.cost.as_linear() {
                Some((slope, _)) => slope,
                None => (flow.cost.eval(last + 2.0 * span) - flow.cost.eval(last + span)) / span,
            };
        }
        // Slightly less, so that rounding of the slope makes no line steeper than the cost.
        Self { steepest: steepest.max(0.0) * (1.0 - 1e-12), corners }
    }

    /// The least of w(t) − slope · t, and the t that attains it.
    fn intercept(&self, slope: f64) -> (f64, f64) {
        let values = self.corners.iter().map(|&(t, w)| (w - slope * t, t));
        values.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two flows of 4 s on one slot under the closed-form program.
    fn two(cost: &CostFn) -> f64 {
        bound(&[Flow { floor: 4.0, cost }; 2], 12.0, 300, |slopes| {
            let job = |&weight: &f64| pb::Job { work: 4.0, weight, floor: 4.0, tail: 2.0 };
            pb::solve(&slopes.iter().map(job).collect::<Vec<_>>(), 1.0)
        })
    }

    #[test]
    fn two_flows_due_together_are_late_by_the_area() {
        // Both are due at 4: the later one is 4 s late.
        let found = two(&CostFn::tardiness(1.0, 4.0));
        assert!((found - 4.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn linear_costs_are_the_program_itself() {
        let found = two(&CostFn::linear(2.0, 1.0));
        assert!((found - 20.0).abs() < 1e-6, "{found}");
    }
}
