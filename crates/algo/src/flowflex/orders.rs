//! Orders of flows: rules of the textbook, the closed-form program, and the minimum-cost flow.
//!
//! Each ends in deadlines or keys that are sorted; ties go to the flow that could be done first, then to
//! the first in the instance. A cost that is not linear counts with its mean slope up to the end of all work.

use slackline_relax::flow::{self, Grid, Relaxed, Supply};
use slackline_relax::pb;

use super::network::{NetFlow, Network};

slackline_model::named_enum! {
    /// Where an order comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rule {
        /// By release, then as given.
        Given = "given order",
        /// Smith's rule: work over weight, V/w.
        Smith = "smith",
        /// Earliest completion alone over weight, Q/w.
        Shortest = "shortest",
        /// The first breakpoint of the cost, at which it begins to rise or jump.
        EarliestDue = "earliest due",
        /// The first breakpoint less the time the flow takes alone.
        LeastSlack = "least slack",
        /// Completions in the closed-form program of mean busy times (the variant without a flow, section 5.2).
        ClosedForm = "closed form",
    }
}

impl Rule {
    /// The order of flows. O(m log m).
    pub fn order(self, net: &Network) -> Vec<usize> {
        let due = |j: usize| net.flows[j].cost.breakpoints().first().copied().unwrap_or(f64::INFINITY);
        let slopes = |j: usize, of: f64| of / slope(net, j).max(f64::MIN_POSITIVE);
        match self {
            Self::Given => by_key(net, |j| net.flows[j].release),
            Self::Smith => by_key(net, |j| slopes(j, net.flows[j].work)),
            Self::Shortest => by_key(net, |j| slopes(j, net.flows[j].earliest)),
            Self::EarliestDue => by_key(net, due),
            Self::LeastSlack => by_key(net, |j| due(j) - (net.flows[j].earliest - net.flows[j].release)),
            Self::ClosedForm => {
                let completion = closed_form(net);
                by_key(net, |j| completion[j])
            }
        }
    }
}

/// Flows by a key, then by Q, then as given.
pub fn by_key(net: &Network, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let keys: Vec<f64> = (0..net.flows.len()).map(key).collect();
    let mut order: Vec<usize> = (0..net.flows.len()).collect();
    let earliest = |j: usize| net.flows[j].earliest;
    order.sort_by(|&a, &b| {
        keys[a].total_cmp(&keys[b]).then(earliest(a).total_cmp(&earliest(b))).then(a.cmp(&b))
    });
    order
}

/// Cost a second, on average from Q to the end of all work.
fn slope(net: &Network, flow: usize) -> f64 {
    let flow = &net.flows[flow];
    if let Some((slope, _)) = flow.cost.as_linear() {
        return slope;
    }
    let end = end_of_work(net).max(flow.earliest * (1.0 + 1e-6) + 1e-6);
    (flow.cost.eval(end) - flow.cost.eval(flow.earliest)) / (end - flow.earliest)
}

fn end_of_work(net: &Network) -> f64 {
    let release = net.flows.iter().map(|f| f.release).fold(0.0, f64::max);
    release + net.flows.iter().map(|f| f.work).sum::<f64>() / net.capacity()
}

/// Completions that minimise Σ w C under the mean busy times (docs/math/mean-busy-times.md P1).
fn closed_form(net: &Network) -> Vec<f64> {
    let base = net.flows.iter().map(|f| f.release).fold(f64::INFINITY, f64::min);
    let jobs: Vec<pb::Job> = (0..net.flows.len())
        .map(|j| {
            let flow = &net.flows[j];
            let weighted: f64 = net.counted(flow).map(|n| n.work * (n.tail + n.seconds() / 2.0)).sum();
            let tail = if flow.work > 0.0 {
                (weighted / flow.work).max(flow.work / (2.0 * net.capacity()))
            } else {
                0.0
            };
            pb::Job { work: flow.work, weight: slope(net, j), floor: flow.earliest - base, tail }
        })
        .collect();
    pb::solve(&jobs, net.capacity()).completion
}

/// The minimum-cost flow of a network (Fig. 6, steps 1 to 4).
pub fn relaxed<'a>(net: &'a Network, grid: Grid) -> Relaxed {
    let supply = |flow: &'a NetFlow| Supply {
        work: flow.work,
        release: flow.release,
        earliest: flow.earliest,
        cost: &flow.cost,
    };
    let supplies: Vec<Supply<'a>> = net.flows.iter().map(supply).collect();
    flow::solve(&supplies, net.capacity(), grid)
}

/// Flows by the instant at which the share `alpha` of their work is done in the flow (step 5).
pub fn rounded(net: &Network, relaxed: &Relaxed, alpha: f64) -> Vec<usize> {
    by_key(net, |j| relaxed.deadline(j, alpha))
}
