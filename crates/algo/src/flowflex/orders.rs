//! Orders of flows: rules of the textbook, the closed-form program, and the minimum-cost flow.
//!
//! Each ends in deadlines or keys that are sorted; ties go to the flow that could be done first, then to
//! the first in the instance. A cost that is not linear counts with its mean slope up to the end of all work.

use slackline_model::Key;
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
    /// The order of the flows of a network. O(m log m).
    pub fn order(self, net: &Network) -> Vec<usize> {
        self.order_on(&net.flows, net.capacity(), (0..net.flows.len()).collect())
    }

    /// The order of flows on this capacity, from an order that may be close to it. O(m log m), and O(m) if few
    /// flows move.
    pub(super) fn order_on(self, flows: &[NetFlow], capacity: f64, near: Vec<usize>) -> Vec<usize> {
        let due = |flow: &NetFlow| flow.cost.breakpoints().first().copied().unwrap_or(f64::INFINITY);
        let end = end_of_work(flows, capacity);
        let slopes = |flow: &NetFlow, of: f64| of / slope(flow, end).max(f64::MIN_POSITIVE);
        match self {
            Self::Given => sorted(flows, near, |j| flows[j].release),
            Self::Smith => sorted(flows, near, |j| slopes(&flows[j], flows[j].work)),
            Self::Shortest => sorted(flows, near, |j| slopes(&flows[j], flows[j].earliest)),
            Self::EarliestDue => sorted(flows, near, |j| due(&flows[j])),
            Self::LeastSlack => {
                sorted(flows, near, |j| due(&flows[j]) - (flows[j].earliest - flows[j].release))
            }
            Self::ClosedForm => {
                let completion = closed_form(flows, capacity, end);
                sorted(flows, near, |j| completion[j])
            }
        }
    }
}

/// Flows of a network by a key, then by Q, then as given.
pub fn by_key(net: &Network, key: impl Fn(usize) -> f64) -> Vec<usize> {
    sorted(&net.flows, (0..net.flows.len()).collect(), key)
}

/// The same for flows that are listed in an order close to it.
fn sorted(flows: &[NetFlow], mut near: Vec<usize>, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let (mut kept, mut moved): (Vec<(Key, Key, usize)>, Vec<_>) =
        (Vec::with_capacity(near.len()), Vec::new());
    for &j in &near {
        let entry = (Key::new(key(j)), Key::new(flows[j].earliest), j);
        // A flow that comes too late has moved, or the one before it comes too early.
        match kept.last() {
            Some(&last) if entry < last && kept.iter().rev().nth(1).is_none_or(|&before| before < entry) => {
                moved.push(last);
                kept.pop();
                kept.push(entry);
            }
            Some(&last) if entry < last => moved.push(entry),
            _ => kept.push(entry),
        }
    }
    moved.sort_unstable();
    let (mut kept, mut moved) = (kept.into_iter().peekable(), moved.into_iter().peekable());
    near.clear();
    while let Some((.., j)) = match (kept.peek(), moved.peek()) {
        (Some(a), Some(b)) if b < a => moved.next(),
        (None, _) => moved.next(),
        _ => kept.next(),
    } {
        near.push(j);
    }
    near
}

/// Cost a second, on average from Q to the end of all work.
fn slope(flow: &NetFlow, end_of_work: f64) -> f64 {
    if let Some((slope, _)) = flow.cost.as_linear() {
        return slope;
    }
    let end = end_of_work.max(flow.earliest * (1.0 + 1e-6) + 1e-6);
    (flow.cost.eval(end) - flow.cost.eval(flow.earliest)) / (end - flow.earliest)
}

fn end_of_work(flows: &[NetFlow], capacity: f64) -> f64 {
    let release = flows.iter().map(|f| f.release).fold(0.0, f64::max);
    release + flows.iter().map(|f| f.work).sum::<f64>() / capacity
}

/// Completions that minimise Σ w C under the mean busy times (docs/math/mean-busy-times.md P1).
fn closed_form(flows: &[NetFlow], capacity: f64, end_of_work: f64) -> Vec<f64> {
    let base = flows.iter().map(|f| f.release).fold(f64::INFINITY, f64::min);
    let job = |flow: &NetFlow| {
        let tail =
            if flow.work > 0.0 { (flow.weighted / flow.work).max(flow.work / (2.0 * capacity)) } else { 0.0 };
        pb::Job { work: flow.work, weight: slope(flow, end_of_work), floor: flow.earliest - base, tail }
    };
    let jobs: Vec<pb::Job> = flows.iter().map(job).collect();
    pb::solve(&jobs, capacity).completion
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
