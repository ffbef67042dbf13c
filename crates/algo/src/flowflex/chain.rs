//! Stage 1: the precedence graph of a flow becomes a chain of pseudo-jobs (section 4.1, Fig. 4).
//!
//! With unlimited slots every node starts as soon as the nodes before it are done, at its cap. Cut where
//! the set of running nodes changes, this *pseudo-schedule* is a chain: each interval is a pseudo-job whose
//! cap is the sum of its nodes' caps, possibly more than there are slots. Work and critical path, and so both
//! lower bounds, are those of the flow (footnote 9; asserted).
//!
//! **Complexity**: O(n log n) for n nodes, plus the total number of nodes in pseudo-jobs.

use slackline_model::tolerance;

use super::network::Network;

/// An interval of the pseudo-schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct PseudoJob {
    /// Its length, in seconds.
    pub seconds: f64,
    /// The caps of its nodes together (r).
    pub cap: u32,
    /// The nodes that run in it.
    pub nodes: Vec<u32>,
}

impl PseudoJob {
    /// Slot-seconds of work.
    pub fn work(&self) -> f64 {
        self.seconds * f64::from(self.cap)
    }
}

/// The chain of a flow, first pseudo-job first; empty for a flow without work.
///
/// # Panics
/// If the chain had other work or another critical path than the flow: a bug here.
pub fn chain(net: &Network, flow: usize) -> Vec<PseudoJob> {
    let nodes = net.flows[flow].nodes.clone();
    let first = nodes.start;
    let mut start = vec![0f64; nodes.len()];
    // Starts and ends by time; at one instant ends come first.
    let mut events: Vec<(f64, bool, usize)> = Vec::with_capacity(2 * nodes.len());
    for k in nodes {
        let end = start[k - first] + net.node(k).seconds();
        for &next in net.successors(k) {
            start[next as usize - first] = start[next as usize - first].max(end);
        }
        if net.node(k).work > 0.0 {
            events.push((start[k - first], true, k));
            events.push((end, false, k));
        }
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut chain = Vec::new();
    let (mut running, mut cap, mut since): (Vec<u32>, u32, f64) = (Vec::new(), 0, 0.0);
    for (at, starts, node) in events {
        if at > since && !running.is_empty() {
            chain.push(PseudoJob { seconds: at - since, cap, nodes: running.clone() });
        }
        since = at;
        let own = net.node(node).cap;
        if starts {
            running.push(node as u32);
            cap += own;
        } else {
            running.retain(|&n| n != node as u32);
            cap -= own;
        }
    }
    assert_bounds(net, flow, &chain);
    chain
}

/// Both lower bounds of the chain are those of the flow.
fn assert_bounds(net: &Network, flow: usize, chain: &[PseudoJob]) {
    let nodes = &net.nodes()[net.flows[flow].nodes.clone()];
    let work: f64 = nodes.iter().map(|n| n.work).sum();
    let path = nodes.iter().map(|n| n.tail + n.seconds()).fold(0.0, f64::max);
    let chain_work: f64 = chain.iter().map(PseudoJob::work).sum();
    let chain_path: f64 = chain.iter().map(|p| p.seconds).sum();
    assert!((chain_work - work).abs() <= tolerance::of_amount(work), "work {chain_work} of {work}");
    assert!((chain_path - path).abs() <= tolerance::of_amount(path), "path {chain_path} of {path}");
}
