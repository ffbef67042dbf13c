//! The paper's scheme (Fig. 3): an order of flows becomes a schedule in three stages.
//!
//! 1. Each flow becomes a chain of pseudo-jobs ([`super::chain`], Fig. 4).
//! 2. The chains take slots greedily in the order ([`super::deadlines`], Fig. 5).
//! 3. What each pseudo-job holds is handed to the nodes in it ([`super::shape`], Fig. 9).
//!
//! Completions are known after stage 2. For generic slots.

use slackline_model::schedule::Allocation;

use super::chain::{PseudoJob, chain};
use super::network::Network;
use super::{deadlines, shape};

/// The scheme for one network, in any number of orders.
#[derive(Clone, Debug)]
pub struct Scheme<'a> {
    net: &'a Network,
    /// The chain of each flow.
    chains: Vec<Vec<PseudoJob>>,
    releases: Vec<f64>,
}

impl<'a> Scheme<'a> {
    /// Stage 1, which no order changes.
    pub fn new(net: &'a Network) -> Self {
        Self {
            net,
            chains: (0..net.flows.len()).map(|flow| chain(net, flow)).collect(),
            releases: net.flows.iter().map(|flow| flow.release).collect(),
        }
    }

    /// Stage 2: when each flow completes in this order.
    pub fn completions(&self, order: &[usize]) -> Vec<f64> {
        deadlines::greedy(&self.chains, &self.releases, order, self.net.slots[0]).0
    }

    /// Stages 2 and 3: the schedule, by phase and start, and when each flow completes.
    pub fn schedule(&self, order: &[usize]) -> (Vec<Allocation>, Vec<f64>) {
        let (completions, histograms) =
            deadlines::greedy(&self.chains, &self.releases, order, self.net.slots[0]);
        let mut rows = Vec::new();
        for (chain, histogram) in self.chains.iter().zip(&histograms) {
            shape::shift(self.net, chain, histogram, &mut rows);
        }
        shape::merge(&mut rows);
        (rows, completions)
    }
}
