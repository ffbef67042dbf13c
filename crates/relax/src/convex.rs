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
///
/// Steps end when nothing can be gained: the costs at completions that the relaxation allows, each no earlier than its
/// floor, are at least the bound for every λ (weak duality). They also end while the bound is below the sum of the
/// costs at the floors and does not rise fast enough to reach it.
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
    let (mut gradient, mut tops) = (vec![0.0; flows.len()], Vec::new());
    for left in (0..steps.min(STEPS)).rev() {
        let solution = relaxation(&slopes);
        let (mut value, mut magnitude, mut most) = (solution.value, solution.value.abs(), 0.0);
        for (k, &completion) in solution.completion.iter().enumerate() {
            let (intercept, at) = tangents[k].intercept(slopes[k]);
            value += intercept;
            magnitude += intercept.abs();
            most += flows[k].cost.eval(completion.max(flows[k].floor));
            gradient[k] = completion - at;
        }
        value -= crate::rounding_margin::margin(magnitude, 3 * flows.len());
        if value > best {
            (best, quiet) = (value, 0);
        } else {
            quiet += 1;
        }
        tops.push(tops.last().map_or(value, |&top: &f64| top.max(value)));
        if most <= best || is_in_vain(&tops, start, left) {
            break;
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

/// Whether an ascent with these largest values so far ends below `known`, if all `left` steps raise it by twice the pace
/// of the last eighth of the steps: the pace may grow for a while.
fn is_in_vain(tops: &[f64], known: f64, left: usize) -> bool {
    let window = ((tops.len() + left) / 8).max(2);
    let Some(&before) = tops.len().checked_sub(window + 1).and_then(|at| tops.get(at)) else { return false };
    let top = tops[tops.len() - 1];
    top + 2.0 * (top - before) / window as f64 * left as f64 <= known
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

    /// The number of steps for flows of 4 s with these floors and this cost.
    fn steps(floors: &[f64], cost: &CostFn) -> usize {
        let flows: Vec<Flow<'_>> = floors.iter().map(|&floor| Flow { floor, cost }).collect();
        let mut n = 0;
        bound(&flows, 12.0, 300, |slopes| {
            n += 1;
            let job = |&weight: &f64| pb::Job { work: 4.0, weight, floor: 4.0, tail: 2.0 };
            pb::solve(&slopes.iter().map(job).collect::<Vec<_>>(), 1.0)
        });
        n
    }

    #[test]
    fn an_ascent_ends_when_it_can_gain_nothing() {
        // Nothing is late in the relaxation.
        assert_eq!(steps(&[4.0, 8.0], &CostFn::tardiness(1.0, 20.0)), 1);
        // Without waiting, nothing is better than the floors.
        assert_eq!(steps(&[100.0, 200.0], &CostFn::linear(1.0, 0.0)), 1);
        assert!(steps(&[4.0, 4.0], &CostFn::tardiness(1.0, 4.0)) > 20);
    }

    #[test]
    fn an_ascent_that_is_too_slow_is_in_vain() {
        assert!(!is_in_vain(&[1.0, 2.0], 100.0, 10), "too early to say");
        assert!(is_in_vain(&[1.0, 2.0, 3.0], 100.0, 20), "43 at most");
        assert!(!is_in_vain(&[1.0, 30.0, 60.0], 100.0, 20));
        assert!(!is_in_vain(&[1.0, 2.0, 3.0], 100.0, 200), "too early for 200 steps");
        assert!(!is_in_vain(&[1.0, 101.0, 101.0, 101.0], 100.0, 9), "it is above");
    }

    #[test]
    fn linear_costs_are_the_program_itself() {
        let found = two(&CostFn::linear(2.0, 1.0));
        assert!((found - 20.0).abs() < 1e-6, "{found}");
    }
}
