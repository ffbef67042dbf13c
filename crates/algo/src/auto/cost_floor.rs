//! An estimated lower bound on the cost of every order of many flows. A decision whose order is that good needs
//! neither rules nor a search.
//!
//! For a sum of linear costs, two bounds hold for every order:
//! 1. No flow completes before its longest path from now on has ended.
//! 2. Let `a` be the seconds for which the work of a flow keeps all slots of a kind busy. On one machine that
//!    serves a flow in `a` seconds, Smith's order has the least weighted sum of mean busy times (Goemans 1997).
//!    A flow completes at least `a`/2 after its mean busy time. It also completes at least half of its path after
//!    the mean busy time of the tasks on the path.

use crate::rule::orders::{Candidate, RuleContext};

/// With fewer flows a decision takes little time, so the search decides.
const FLOWS_MIN: usize = 100;

/// The bound, where it applies: all flows are there, their costs are linear and added up. `capacity` is the work
/// that generic slots do in a second; `None` for map slots and reduce slots. O(n log n).
pub(super) fn cost_floor(scene: &RuleContext<'_>, capacity: Option<f64>) -> Option<f64> {
    let is_linear = |flow: &Candidate<'_>| flow.cost.as_linear().is_some() && flow.release <= scene.now;
    if scene.flows.len() < FLOWS_MIN || !scene.flows.iter().all(is_linear) {
        return None;
    }
    let by_now: f64 = scene.flows.iter().map(|flow| flow.cost.eval(scene.now)).sum();
    let by_paths: f64 = scene.flows.iter().map(|flow| flow.slope * flow.left.rem).sum();
    let queues = match capacity {
        Some(capacity) => queue(scene, |flow| {
            let area = flow.left.area;
            let on_path = if area > 0.0 { (flow.left.rem / (area * capacity)).min(1.0) } else { 1.0 };
            (area, area.max(on_path * flow.left.rem))
        }),
        None => [0, 1]
            .map(|kind| queue(scene, |flow| (flow.left.stages[kind], flow.left.stages[kind])))
            .into_iter()
            .fold(0.0, f64::max),
    };
    Some(by_now + by_paths.max(queues))
}

/// The weighted sum of completions on one machine. `of` gives the seconds of a flow there, and twice the seconds
/// from its mean busy time to its completion.
fn queue(scene: &RuleContext<'_>, of: impl Fn(&Candidate<'_>) -> (f64, f64)) -> f64 {
    let mut flows: Vec<(f64, f64, f64)> =
        scene.flows.iter().map(|flow| (of(flow).0, of(flow).1, flow.slope)).collect();
    let key = |&(area, _, slope): &(f64, f64, f64)| if slope > 0.0 { area / slope } else { f64::INFINITY };
    flows.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let mut now = 0.0;
    let completion = |(area, tail, slope): (f64, f64, f64)| {
        now += area;
        slope * (now + (tail - area) / 2.0)
    };
    flows.into_iter().map(completion).sum()
}
