//! The machines of a log: those with attempts, and those in a topology file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::Deserialize;
use slackline_model::PhaseKind;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

use super::{ImportedJob, Millis, printable};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::parse;

/// A machine by its name, and its rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::importers) struct Host {
    pub(in crate::importers) name: String,
    pub(in crate::importers) rack: Option<String>,
}

impl Host {
    /// Reads `/rack/host`, `/rack/…/host` or `host`; dots may be escaped. A port is no part of a name.
    pub(in crate::importers) fn parse(text: &str) -> Option<Self> {
        let plain = text.replace("\\.", ".");
        let (rack, name) = match plain.rsplit_once('/') {
            Some((rack, name)) => (printable(rack.trim_start_matches('/')), name),
            None => (None, plain.as_str()),
        };
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        Some(Self { name: printable(name)?, rack })
    }

    /// A machine with a separate name and rack.
    pub(in crate::importers) fn of(name: &str, rack: Option<&str>) -> Option<Self> {
        let host = Self::parse(name)?;
        let rack = rack.and_then(|rack| printable(rack.replace("\\.", ".").trim_start_matches('/')));
        Some(Self { rack: rack.or(host.rack), name: host.name })
    }
}

/// The machines of a cluster, with attempts or without.
pub(in crate::importers) struct Topology(Vec<TopologyHost>);

struct TopologyHost {
    host: Host,
    /// The number of its slots, if the topology has it.
    slots: Option<u32>,
}

/// A tree of racks and hosts; a leaf is a host.
#[derive(Deserialize)]
struct Tree {
    name: Option<String>,
    children: Option<Vec<Tree>>,
}

impl Topology {
    /// Reads the topology file that Rumen writes beside a trace; `None` for an empty text.
    pub(in crate::importers) fn of_rumen(text: &str) -> Result<Option<Self>, TraceError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let tree: Tree = parse("the topology", text, Format::Json, "a topology as Rumen writes it")?;
        let mut hosts = Vec::new();
        add_leaves(tree, None, &mut hosts);
        Ok(Some(Self::of(hosts.into_iter().map(|host| (host, None)))))
    }

    /// Machines, with the number of slots if known. The first of several with one name counts.
    pub(in crate::importers) fn of(hosts: impl IntoIterator<Item = (Host, Option<u32>)>) -> Self {
        Self(hosts.into_iter().map(|(host, slots)| TopologyHost { host, slots }).collect())
    }

    /// The machines with a known number of slots, by name.
    pub(in crate::importers) fn machines(&self) -> Vec<MachineDraft> {
        let mut machines = BTreeMap::new();
        for TopologyHost { host, slots } in &self.0 {
            let Some(slots) = *slots else { continue };
            machines.entry(&host.name).or_insert_with(|| MachineDraft {
                name: host.name.clone(),
                count: 1,
                speed: 1.0,
                slots: Slots::Generic(slots),
                rack: host.rack.clone(),
            });
        }
        machines.into_values().collect()
    }

    pub(in crate::importers) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The hosts below a node; the rack is the name of the node above.
fn add_leaves(tree: Tree, above: Option<&str>, hosts: &mut Vec<Host>) {
    let name = tree.name.unwrap_or_default();
    match tree.children {
        Some(children) if !children.is_empty() => {
            for child in children {
                add_leaves(child, Some(&name), hosts);
            }
        }
        // A rack without hosts would have only the root above it.
        _ => hosts.extend(Host::of(&name, above.filter(|rack| *rack != "<root>"))),
    }
}

/// Slots of a machine as they are taken: when each is free again.
#[derive(Default)]
struct SlotKind(BinaryHeap<Reverse<Millis>>);

impl SlotKind {
    fn take(&mut self, start: Millis, end: Millis) {
        if self.0.peek().is_some_and(|Reverse(free)| *free <= start) {
            self.0.pop();
        }
        self.0.push(Reverse(end));
    }

    fn slots(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// The most slots of a machine that were busy at once: by kind, or all in the first.
#[derive(Default)]
struct MachineUse {
    rack: Option<String>,
    slot_kinds: [SlotKind; 2],
    given: Option<u32>,
}

/// Every machine with attempts, with the largest number of slots that were busy at once, and those of the
/// topology, with the median of the other machines if the log has no number. By name.
pub(super) fn machines(
    jobs: &[ImportedJob],
    map_reduce: bool,
    topology: Option<&Topology>,
    diagnostics: &mut Diagnostics,
) -> Vec<MachineDraft> {
    let mut seen = BTreeMap::<&str, MachineUse>::new();
    for TopologyHost { host, slots } in topology.iter().flat_map(|topology| &topology.0) {
        let fresh = || MachineUse { rack: host.rack.clone(), given: *slots, ..MachineUse::default() };
        seen.entry(&host.name).or_insert_with(fresh);
    }
    let listed = seen.len();
    let mut attempts: Vec<_> = jobs.iter().flat_map(|job| &job.attempts).collect();
    attempts.sort_by_key(|attempt| (attempt.start, attempt.end));
    for attempt in attempts {
        let Some(host) = &attempt.host else { continue };
        let machine = seen.entry(&host.name).or_default();
        machine.rack = machine.rack.take().or_else(|| host.rack.clone());
        let slot_kind = usize::from(map_reduce && attempt.phase == PhaseKind::Reduce);
        machine.slot_kinds[slot_kind].take(attempt.start, attempt.end);
    }
    if seen.values().all(|machine| {
        machine.given.is_none() && machine.slot_kinds.iter().all(|slot_kind| slot_kind.slots() == 0)
    }) {
        return Vec::new();
    }
    if listed > 0 {
        let more = (seen.len() - listed) as u64;
        diagnostics.add_all("machine", more, "in the log but not in the topology, added");
    }
    let usual: [u32; 2] =
        [0, 1].map(|slot_kind| middle(seen.values().map(|machine| machine.slot_kinds[slot_kind].slots())));
    let draft = |(name, machine): (&str, MachineUse)| {
        let [map, reduce] = [0, 1].map(|slot_kind| {
            let slots = machine.slot_kinds[slot_kind].slots();
            let is_idle = machine.slot_kinds.iter().all(|slot_kind| slot_kind.slots() == 0);
            if is_idle { usual[slot_kind] } else { slots }
        });
        let slots = match machine.given {
            _ if map_reduce => Slots::MapReduce { map, reduce },
            Some(given) => Slots::Generic(given),
            None => Slots::Generic(map),
        };
        MachineDraft { name: name.to_owned(), count: 1, speed: 1.0, slots, rack: machine.rack }
    };
    let machines: Vec<MachineDraft> = seen.into_iter().map(draft).collect();
    if topology.is_none_or(|topology| topology.0.iter().all(|host| host.slots.is_none())) {
        let what = "inferred from the log, with the peak of concurrent tasks as slots (options for machines and slots override it)";
        diagnostics.add_all("machine", machines.len() as u64, what);
    }
    machines
}

/// The middle one of the numbers above 0, the upper one of two; 0 if there are none.
fn middle(numbers: impl Iterator<Item = u32>) -> u32 {
    let mut numbers: Vec<u32> = numbers.filter(|number| *number > 0).collect();
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_distinguished_from_their_racks() {
        let host = |text| Host::parse(text).map(|host| (host.name, host.rack));
        assert_eq!(host("/default-rack/a.b.c"), Some(("a.b.c".into(), Some("default-rack".into()))));
        assert_eq!(host(r"/10\.1\.2\.0/n1\.x\.com"), Some(("n1.x.com".into(), Some("10.1.2.0".into()))));
        assert_eq!(host("n1:8041"), Some(("n1".into(), None)));
        assert_eq!(host("/d1/r1/n1"), Some(("n1".into(), Some("d1/r1".into()))));
        assert_eq!((host(""), host("/rack/")), (None, None));
    }

    #[test]
    fn as_many_slots_as_were_busy_at_once() {
        let mut slot_kind = SlotKind::default();
        for (start, end) in [(0, 10), (5, 7), (7, 9), (10, 11), (10, 10)] {
            slot_kind.take(start, end);
        }
        assert_eq!(slot_kind.slots(), 2);
        assert_eq!(middle([0, 3, 1, 2].into_iter()), 2);
        assert_eq!(middle([0].into_iter()), 0);
    }
}
