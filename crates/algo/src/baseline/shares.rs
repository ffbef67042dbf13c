//! Fair shares of flows, divided among their phases, for plans and online.

use std::collections::BTreeMap;

use slackline_model::{FlowId, Instance, PhaseId};

use crate::classic::{Claim, water_line};

/// Shares among flows first, then equal shares among the phases of each.
pub(super) fn by_flow(claims: &[(PhaseId, Claim)], capacity: f64, instance: &Instance) -> Vec<f64> {
    let mut flows: BTreeMap<FlowId, Vec<usize>> = BTreeMap::new();
    for (k, &(phase, _)) in claims.iter().enumerate() {
        flows.entry(instance.flow_of(phase)).or_default().push(k);
    }
    let total = |members: &Vec<usize>| {
        let sum = |of: fn(&Claim) -> f64| members.iter().map(|&k| of(&claims[k].1)).sum();
        Claim { min: sum(|c| c.min), max: sum(|c| c.max), weight: claims[members[0]].1.weight }
    };
    let of_flows = water_line(&flows.values().map(total).collect::<Vec<_>>(), capacity);
    let mut shares = vec![0.0; claims.len()];
    for (members, share) in flows.values().zip(of_flows) {
        let inner: Vec<Claim> = members.iter().map(|&k| Claim { weight: 1.0, ..claims[k].1 }).collect();
        for (&k, slots) in members.iter().zip(water_line(&inner, share)) {
            shares[k] = slots;
        }
    }
    shares
}
