//! Names of machines whose number of slots has changed.

use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

/// The suffix of a machine's name if a machine of that name has another number of slots now.
pub(crate) fn suffix(slots: Slots) -> String {
    match slots {
        Slots::Generic(slots) => format!(" ({slots} slots)"),
        Slots::MapReduce { map, reduce } => format!(" ({map} map and {reduce} reduce slots)"),
    }
}

/// The name of a machine without that suffix.
pub(crate) fn former_name(machine: &MachineDraft) -> &str {
    machine.name.strip_suffix(&*suffix(whole(machine))).unwrap_or(&machine.name)
}

pub(crate) fn whole(machine: &MachineDraft) -> Slots {
    match machine.slots {
        Slots::Generic(slots) => Slots::Generic(slots * machine.count),
        map_reduce @ Slots::MapReduce { .. } => map_reduce,
    }
}
