//! Names of machines of which the number of slots has changed.

use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

/// What the name of a machine ends in of which there is another one with another number of slots now.
pub(crate) fn suffix(slots: Slots) -> String {
    match slots {
        Slots::Universal(slots) => format!(" ({slots} slots)"),
        Slots::Typed { map, reduce } => format!(" ({map} map and {reduce} reduce slots)"),
    }
}

/// The name of a machine before there was another one of that name with another number of slots.
pub(crate) fn former_name(machine: &MachineDraft) -> &str {
    machine.name.strip_suffix(&*suffix(whole(machine))).unwrap_or(&machine.name)
}

pub(crate) fn whole(machine: &MachineDraft) -> Slots {
    match machine.slots {
        Slots::Universal(slots) => Slots::Universal(slots * machine.count),
        typed @ Slots::Typed { .. } => typed,
    }
}
