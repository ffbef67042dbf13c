//! The machines of a cluster, and the part of them that ApplicationMasters (AMs) may hold.

use std::collections::BTreeMap;

use slackline_executor::run::error::EngineError;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::params::{Param, Values};

use crate::rest::http::Address;
use crate::rest::resource_manager::{Node, ResourceManager};

pub(crate) const AM_SHARE: Param = Param::new(
    "am-share",
    "0.5",
    Values::Real(0.01, 1.0),
    "largest fraction of the slots for ApplicationMasters; each job has one",
);

/// Limits of an engine on a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The greatest part of the slots that AMs may hold.
    pub(crate) am_share: f64,
    /// Memory of a container, MiB.
    pub(crate) slot_mb: u64,
    /// Whether YARN decides by itself and the policy only observes.
    pub(crate) by_cluster: bool,
}

/// The machines of a cluster with slots of `slot_mb` MiB.
pub(crate) fn slots(
    address: &Address,
    manager: &ResourceManager,
    slot_mb: u64,
) -> Result<Vec<MachineDraft>, EngineError> {
    let machines = machines(&manager.nodes().map_err(EngineError::other)?, slot_mb);
    let slots: u32 = machines.iter().map(|machine| machine.count).sum();
    if slots < 2 {
        let problem = format!(
            "{address}: found NodeManagers with room for {slots} containers of {slot_mb} MiB, expected at least two, for an ApplicationMaster and a task; see the option memory"
        );
        return Err(EngineError::other(problem));
    }
    Ok(machines)
}

/// Hosts with a running NodeManager, each with the slots that fit into its memory.
pub(crate) fn machines(nodes: &[Node], slot_mb: u64) -> Vec<MachineDraft> {
    let slots = |node: &Node| u32::try_from((node.used_mb + node.free_mb) / slot_mb).unwrap_or(u32::MAX);
    let machine = |(node, count): (&Node, u32)| MachineDraft {
        name: node.host.clone(),
        count,
        speed: 1.0,
        // Each slot is a machine, since each may be taken separately.
        slots: Slots::Generic(1),
        rack: None,
    };
    let up = nodes.iter().filter(|node| node.is_up()).map(|node| (node, slots(node)));
    let mut machines: BTreeMap<&str, MachineDraft> = BTreeMap::new();
    for (node, slots) in up.filter(|&(_, slots)| slots > 0) {
        let known = machines.entry(&node.host).or_insert_with(|| machine((node, 0)));
        known.count = known.count.saturating_add(slots);
    }
    machines.into_values().collect()
}

/// The most AMs on this number of slots: at least one slot is for tasks.
pub(crate) fn am_limit(slots: u32, share: f64) -> usize {
    ((f64::from(slots) * share) as usize).min((slots as usize).saturating_sub(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ams_leave_a_slot_for_tasks() {
        assert_eq!(am_limit(8, 0.5), 4);
        assert_eq!(am_limit(8, 1.0), 7);
        assert_eq!(am_limit(8, 0.01), 1);
        assert_eq!(am_limit(2, 1.0), 1);
        // Every node is away.
        assert_eq!(am_limit(0, 0.5), 1);
    }
}
