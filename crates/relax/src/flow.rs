//! The minimum-cost flow relaxation of FlowFlex (Fig. 6, 7) as a transportation problem.
//!
//! Work of flow j that is done at time s means a completion at max(s, Q_j) or later: each unit done in a slot
//! of time costs w_j(max(s, Q_j)) / V_j, and a slot of length t takes P·t units (docs/math/flowflex.md B1,
//! B2). The paper's network has a node for every time unit; here time is cut only where costs change (B4):
//!
//! - steps: at every Q_j and step, so that the cost is constant in a slot and the value exact;
//! - linear: a geometric grid from the smallest Q on, (1 + ε): the value within a factor 1 + ε;
//! - else: at every Q_j and breakpoint, the grid, and after each breakpoint d the points d + g(1 + ε)^i with
//!   g = ε/16 of the horizon: value within (1 + ε) plus g Σ w_j.
//!
//! Slots are priced at their left end, which makes the value a lower bound for continuous time (B3 (i)).

use slackline_model::{CostFn, tolerance};

use crate::transport::{self, Problem};

/// A flow in the relaxation.
#[derive(Clone, Copy, Debug)]
pub struct Supply<'a> {
    /// Slot-seconds V.
    pub work: f64,
    /// No work can be done earlier (seconds).
    pub release: f64,
    /// Earliest completion (Q, seconds).
    pub earliest: f64,
    /// The cost as a function of the completion.
    pub cost: &'a CostFn,
}

/// The granularity of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Ratio of successive grid points, less 1 (ε).
    pub ratio: f64,
    /// Most slots; with more, only every n-th cut remains.
    pub slots_max: usize,
}

/// A solved relaxation.
#[derive(Clone, Debug, PartialEq)]
pub struct Relaxed {
    /// No schedule costs less than this sum.
    pub bound: f64,
    /// The same solution with slots priced at their right ends: an upper bound on the value for continuous
    /// time.
    pub right: f64,
    cuts: Vec<f64>,
    shipped: Vec<Vec<(usize, f64)>>,
    earliest: Vec<f64>,
}

impl Relaxed {
    /// The deadline of a flow (step 5): the instant when the share `alpha` of its work is done, at least Q.
    pub fn deadline(&self, flow: usize, alpha: f64) -> f64 {
        let shipped = &self.shipped[flow];
        let mut left = alpha * shipped.iter().map(|&(_, amount)| amount).sum::<f64>();
        let mut at = self.earliest[flow];
        for &(slot, amount) in shipped {
            if left <= 0.0 {
                break;
            }
            left -= amount;
            at = at.max(self.cuts[slot + 1]);
        }
        at
    }
}

/// Solves the relaxation on `capacity` slots.
pub fn solve(flows: &[Supply<'_>], capacity: f64, grid: Grid) -> Relaxed {
    let working: Vec<usize> = (0..flows.len()).filter(|&j| flows[j].work > 0.0).collect();
    let idle = flows.iter().filter(|f| f.work <= 0.0);
    let fixed: f64 = idle.map(|f| f.cost.eval(f.earliest)).sum();
    let cuts = cuts(flows, capacity, grid);
    let mut relaxed = Relaxed {
        bound: fixed,
        right: fixed,
        shipped: vec![Vec::new(); flows.len()],
        earliest: flows.iter().map(|f| f.earliest).collect(),
        cuts,
    };
    if working.is_empty() {
        return relaxed;
    }
    let order = starting_order(flows, working, &relaxed.cuts);
    let problem = Problem {
        supply: order.iter().map(|&j| flows[j].work).collect(),
        capacity: relaxed.cuts.windows(2).map(|w| capacity * (w[1] - w[0])).collect(),
        cost: order.iter().flat_map(|&j| prices(&flows[j], &relaxed.cuts)).collect(),
    };
    let solution = transport::solve(&problem);
    relaxed.bound += solution.bound;
    for (row, list) in solution.shipped.into_iter().enumerate() {
        let flow = &flows[order[row]];
        for &(slot, amount) in &list {
            let end = relaxed.cuts[slot + 1].max(flow.earliest);
            relaxed.right += amount / flow.work * flow.cost.eval(end);
        }
        relaxed.shipped[order[row]] = list;
    }
    relaxed
}

/// The cost per unit of a flow in each slot.
fn prices<'a>(flow: &'a Supply<'_>, cuts: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    cuts.windows(2).map(|slot| {
        if slot[1] <= flow.release {
            f64::INFINITY
        } else {
            flow.cost.eval(just_after(slot[0]).max(flow.earliest)) / flow.work
        }
    })
}

/// The first instant within a slot that begins at `cut`: a step at the cut itself lies before it.
pub(crate) fn just_after(cut: f64) -> f64 {
    cut.next_up()
}

/// Flows by the cost per unit of work over the whole time, largest first: Smith's order for linear costs.
fn starting_order(flows: &[Supply<'_>], mut working: Vec<usize>, cuts: &[f64]) -> Vec<usize> {
    let end = cuts[cuts.len() - 1];
    let loss = |j: usize| {
        let flow = &flows[j];
        (flow.cost.eval(end) - flow.cost.eval(flow.earliest)) / flow.work
    };
    working.sort_by(|&a, &b| loss(b).total_cmp(&loss(a)).then(a.cmp(&b)));
    working
}

/// Cut points from 0 to a time by which all work is done.
fn cuts(flows: &[Supply<'_>], capacity: f64, grid: Grid) -> Vec<f64> {
    let release = flows.iter().map(|f| f.release).fold(0.0, f64::max);
    let work: f64 = flows.iter().map(|f| f.work).sum();
    let end = (release + work / capacity).max(f64::MIN_POSITIVE) * (1.0 + 1e-9);
    let mut cuts = special_points(flows.iter().map(|f| (f.earliest, f.cost)), end, grid);
    cuts.extend(flows.iter().map(|f| f.release));
    finish_cuts(cuts, end, grid.slots_max)
}

/// The points at which costs change, and grids where they change continuously, before `end`.
pub(crate) fn special_points<'a>(
    flows: impl Iterator<Item = (f64, &'a CostFn)> + Clone,
    end: f64,
    grid: Grid,
) -> Vec<f64> {
    let mut cuts = Vec::new();
    let mut first = f64::INFINITY;
    for (earliest, cost) in flows {
        let breaks = cost.breakpoints();
        let is_step = cost.as_steps().is_some();
        if !breaks.is_empty() {
            cuts.push(earliest);
        }
        if !is_step {
            first = first.min(earliest);
        }
        for at in breaks {
            cuts.push(tolerance::latest(at));
            let mut gap = grid.ratio / 16.0 * end;
            while !is_step && at + gap < end && grid.ratio > 0.0 {
                cuts.push(at + gap);
                gap *= 1.0 + grid.ratio;
            }
        }
    }
    let mut at = first.max(end * 1e-6);
    while at < end && grid.ratio > 0.0 {
        cuts.push(at);
        at *= 1.0 + grid.ratio;
    }
    cuts
}

/// Sorted, within the ends, no slot shorter than rounding, at most `slots_max` slots.
pub(crate) fn finish_cuts(mut cuts: Vec<f64>, end: f64, slots_max: usize) -> Vec<f64> {
    cuts.retain(|&t| t > 0.0 && t < end);
    cuts.sort_by(f64::total_cmp);
    cuts.dedup_by(|next, last| *next - *last < 1e-9 * end);
    if cuts.len() >= slots_max.max(2) {
        let (n, m) = (cuts.len(), slots_max.max(2) - 1);
        cuts = (0..m).map(|k| cuts[k * n / m]).collect();
    }
    cuts.insert(0, 0.0);
    cuts.push(end);
    cuts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FINE: Grid = Grid { ratio: 0.01, slots_max: 2000 };

    fn supply(work: f64, earliest: f64, cost: &CostFn) -> Supply<'_> {
        Supply { work, release: 0.0, earliest, cost }
    }

    #[test]
    fn one_flow_on_one_slot_costs_what_it_must() {
        // V = 5, Q = 5: all work is priced at 5 (docs/math/flowflex.md B1: the network without E4 says 7).
        let cost = CostFn::linear(1.0, 0.0);
        let relaxed = solve(&[supply(5.0, 5.0, &cost)], 1.0, FINE);
        assert!((relaxed.bound - 5.0).abs() < 1e-6, "{}", relaxed.bound);
        assert!((relaxed.deadline(0, 0.5) - 5.0).abs() < 1e-6);
    }

    #[test]
    fn a_late_deadline_counts_from_just_after_it() {
        // Two flows of 5 s on one slot, both due at 5: half the work is late.
        let cost = CostFn::steps(vec![(5.0, 8.0)]);
        let relaxed = solve(&[supply(5.0, 5.0, &cost), supply(5.0, 5.0, &cost)], 1.0, FINE);
        assert!((relaxed.bound - 8.0).abs() < 1e-4, "{}", relaxed.bound);
    }

    proptest! {
        #[test]
        fn finer_grids_close_in_from_both_sides(
            list in prop::collection::vec((1u32..20, 0u32..20, 1u32..5, 0u32..30, 0u8..3), 1..6),
        ) {
            let costs: Vec<CostFn> = list.iter().map(|&(_, _, w, d, kind)| {
                let (w, d) = (f64::from(w), f64::from(d));
                match kind {
                    0 => CostFn::linear(w, 0.0),
                    1 => CostFn::tardiness(w, d),
                    _ => CostFn::steps(vec![(d, w), (d + 7.0, 3.0 * w)]),
                }
            }).collect();
            let flows: Vec<Supply<'_>> = list.iter().zip(&costs).map(|(l, cost)| {
                let work = f64::from(l.0);
                supply(work, (work / 2.0).max(f64::from(l.1)), cost)
            }).collect();
            let at = |ratio| solve(&flows, 2.0, Grid { ratio, slots_max: 5000 });
            let (coarse, fine) = (at(0.2), at(0.01));
            prop_assert!(coarse.bound <= fine.right * (1.0 + 1e-9) + 1e-9);
            prop_assert!(fine.bound <= coarse.right * (1.0 + 1e-9) + 1e-9);
            let weights: f64 = list.iter().map(|l| f64::from(l.2)).sum();
            let end = flows.iter().map(|f| f.work).sum::<f64>() / 2.0;
            prop_assert!(fine.right <= 1.0101 * fine.bound + 0.02 * end * weights + 1e-6, "{} {}", fine.bound, fine.right);
        }
    }
}
