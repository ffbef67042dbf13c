//! Delay scheduling: tasks whose input has hosts wait a little for a slot there.
//!
//! Zaharia et al., "Delay Scheduling", EuroSys 2010, as FLEX §1 describes the assignment layer: a phase that
//! is next but has no task with its input on the machine that asks lets others go first, until it has waited
//! [`Waits::node`] since it last started a task near its input. Then it takes slots in the racks of its
//! input, and others when it has waited [`Waits::rack`] more since it last started a task in such a rack.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::{Cluster, GroupId, Instance, MachineId, PhaseId, SlotRange, Span, Time};

use crate::engine::Engine;
use crate::event::Event;
use crate::ledger::Ledger;
use crate::pending::TaskRange;
use crate::slot_scope::Spot;

/// How long a phase waits for slots near its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    /// For a slot on a machine that has some.
    pub(crate) node: Span,
    /// And then for one in its rack; zero if any other will do.
    pub(crate) rack: Span,
}

impl Waits {
    pub(crate) const NONE: Self = Self { node: Span::ZERO, rack: Span::ZERO };
}

/// Splits by host, and how long phases have waited.
#[derive(Clone)]
pub(crate) struct Locality {
    waits: Waits,
    /// The splits of each phase with hosts.
    hosts: BTreeMap<PhaseId, Hosts>,
    /// Since when the next phase has not started a task near its input. A task in the rack of its input sets
    /// this so far back that more may start there at once, while other racks wait the full time again.
    since: BTreeMap<PhaseId, Time>,
}

/// Splits by machine, lowest last so that they can be popped.
#[derive(Clone)]
struct Hosts {
    on: BTreeMap<MachineId, Vec<u32>>,
    /// By the first group of machines in each rack; empty where racks do not matter.
    in_rack: BTreeMap<GroupId, Vec<u32>>,
    /// Splits without any host: they may run anywhere at once.
    nowhere: Vec<u32>,
}

impl Hosts {
    /// Starts up to `n` tasks on machines that hold their input; returns how many.
    fn launch_near(
        &mut self,
        spot: Spot,
        phase: PhaseId,
        n: u32,
        ledger: &mut Ledger,
        engine: &mut dyn Engine,
    ) -> u32 {
        let machines: Vec<MachineId> = match spot.machine {
            Some((machine, _)) => vec![machine],
            None => self.on.keys().copied().collect(),
        };
        let mut begun = 0;
        for machine in machines {
            let Some(at) = Spot::of_machine(ledger, spot.slot_kind, machine) else { continue };
            let Some(splits) = self.on.get_mut(&machine) else { continue };
            begun += launch_of(splits, at, phase, n - begun, ledger, engine);
        }
        begun
    }

    /// Starts up to `n` tasks on machines in a rack that holds their input; returns how many.
    fn launch_in_rack(
        &mut self,
        spot: Spot,
        phase: PhaseId,
        n: u32,
        ledger: &mut Ledger,
        engine: &mut dyn Engine,
    ) -> u32 {
        let machines = match spot.machine {
            Some((machine, _)) => machine.0..machine.0 + 1,
            None => 0..ledger.instance.cluster().n_machines(),
        };
        let mut begun = 0;
        for machine in machines.map(MachineId) {
            if begun == n {
                break;
            }
            let Some(at) = Spot::of_machine(ledger, spot.slot_kind, machine) else { continue };
            let rack = rack_of(ledger.instance.cluster(), machine);
            let Some(splits) = self.in_rack.get_mut(&rack) else { continue };
            begun += launch_of(splits, at, phase, n - begun, ledger, engine);
        }
        begun
    }
}

/// Starts up to `n` tasks of some splits on a machine; returns how many.
fn launch_of(
    splits: &mut Vec<u32>,
    at: Spot,
    phase: PhaseId,
    n: u32,
    ledger: &mut Ledger,
    engine: &mut dyn Engine,
) -> u32 {
    let mut begun = 0;
    while begun < n {
        let most = at.free(ledger).min(n - begun);
        let Some(near) = (most > 0).then(|| next_on(splits, ledger, phase, most)).flatten() else { break };
        begin(at, phase, near, ledger, engine);
        begun += near.count;
    }
    begun
}

impl Locality {
    pub(crate) fn new(waits: Waits) -> Self {
        Self { waits, hosts: BTreeMap::new(), since: BTreeMap::new() }
    }

    /// Forgets what does not hold any more.
    pub(crate) fn note(&mut self, events: &[Event]) {
        for event in events {
            if let Event::TasksLost { phase, .. } | Event::PhaseDone(phase) = event {
                self.hosts.remove(phase);
                self.since.remove(phase);
            }
        }
    }

    /// Gives up what is known of the phases of a flow that is over.
    pub(crate) fn forget(&mut self, phases: impl Iterator<Item = PhaseId>) {
        for phase in phases {
            self.hosts.remove(&phase);
            self.since.remove(&phase);
        }
    }

    /// Starts up to `n` tasks, near their input if possible; returns how many. Fewer than `n` means
    /// that the others wait.
    pub(crate) fn launch(
        &mut self,
        spot: Spot,
        phase: PhaseId,
        n: u32,
        ledger: &mut Ledger,
        engine: &mut dyn Engine,
    ) -> u32 {
        let has_racks = self.waits.rack > Span::ZERO;
        let hosts = self.hosts.entry(phase).or_insert_with(|| by_host(&ledger.instance, phase, has_racks));
        let mut begun = hosts.launch_near(spot, phase, n, ledger, engine);
        if begun > 0 {
            self.since.remove(&phase);
        }
        while begun < n {
            let Some(any) = next_on(&mut hosts.nowhere, ledger, phase, n - begun) else { break };
            begin(spot, phase, any, ledger, engine);
            begun += any.count;
        }
        if begun < n {
            begun += self.launch_far(spot, phase, n - begun, ledger, engine);
        }
        begun
    }

    /// Starts up to `n` tasks on machines without their input, if the phase has waited long enough; returns
    /// how many.
    fn launch_far(
        &mut self,
        spot: Spot,
        phase: PhaseId,
        n: u32,
        ledger: &mut Ledger,
        engine: &mut dyn Engine,
    ) -> u32 {
        let Waits { node, rack } = self.waits;
        let mut begun = 0;
        if rack > Span::ZERO && self.waited(phase, ledger, engine) >= node {
            let hosts = self.hosts.get_mut(&phase);
            begun = hosts.map_or(0, |hosts| hosts.launch_in_rack(spot, phase, n, ledger, engine));
            if begun > 0 {
                self.wait_since(phase, Time(ledger.now.0 - node.0), ledger, engine);
            }
        }
        if begun < n && self.waited(phase, ledger, engine) >= Span(node.0 + rack.0) {
            while begun < n {
                let any = ledger.state.next_pending(phase, n - begun);
                begin(spot, phase, any, ledger, engine);
                begun += any.count;
            }
        }
        begun
    }

    /// How long the phase has waited for a slot near its input.
    fn waited(&mut self, phase: PhaseId, ledger: &mut Ledger, engine: &mut dyn Engine) -> Span {
        if self.waits == Waits::NONE {
            return Span::ZERO;
        }
        let now = ledger.now;
        if !self.since.contains_key(&phase) {
            self.wait_since(phase, now, ledger, engine);
        }
        now.since(self.since[&phase])
    }

    /// The phase waits as if since then; the engine wakes us when it has waited long enough.
    fn wait_since(&mut self, phase: PhaseId, since: Time, ledger: &mut Ledger, engine: &mut dyn Engine) {
        let Waits { node, rack } = self.waits;
        self.since.insert(phase, since);
        for (wait, at) in [(node, since + node), (rack, since + node + rack)] {
            if wait > Span::ZERO && at > ledger.now {
                ledger.wake_at(at, engine);
            }
        }
    }
}

fn begin(at: Spot, phase: PhaseId, taken: TaskRange, ledger: &mut Ledger, engine: &mut dyn Engine) {
    let mut slots: Vec<SlotRange> = Vec::new();
    ledger.state.take_exactly(&ledger.instance, phase, taken);
    at.take(ledger, taken.count, &mut slots);
    ledger.launch(engine, phase, taken, &slots);
}

/// Whether any task of the phase has a place for its input.
pub(crate) fn has_hosts(instance: &Instance, phase: PhaseId) -> bool {
    instance.phase(phase).tasks().is_some_and(|t| !t.splits().is_empty())
}

/// The first group of machines in the rack of a machine.
fn rack_of(cluster: &Cluster, machine: MachineId) -> GroupId {
    let of = cluster.group_id_of(machine);
    let is_of = |group: &GroupId| cluster.groups()[*group].rack == cluster.groups()[of].rack;
    cluster.groups().keys().find(is_of).unwrap_or(of)
}

fn by_host(instance: &Instance, phase: PhaseId, has_racks: bool) -> Hosts {
    let mut hosts = Hosts { on: BTreeMap::new(), in_rack: BTreeMap::new(), nowhere: Vec::new() };
    let splits = instance.phase(phase).tasks().map_or(&[][..], slackline_model::tasks::Tasks::splits);
    for (k, split) in splits.iter().enumerate().rev() {
        if split.hosts.is_empty() {
            hosts.nowhere.push(k as u32);
        }
        for &host in &split.hosts {
            hosts.on.entry(host).or_default().push(k as u32);
        }
        let cluster = instance.cluster();
        let racks: BTreeSet<GroupId> =
            split.hosts.iter().filter(|_| has_racks).map(|&host| rack_of(cluster, host)).collect();
        for rack in racks {
            hosts.in_rack.entry(rack).or_default().push(k as u32);
        }
    }
    hosts
}

/// The next pending tasks among `splits`, at most `most`; splits without any are dropped.
fn next_on(splits: &mut Vec<u32>, ledger: &Ledger, phase: PhaseId, most: u32) -> Option<TaskRange> {
    let all = ledger.instance.phase(phase).tasks()?.splits();
    while let Some(&k) = splits.last() {
        let split = &all[k as usize];
        if let Some(near) = ledger.state.pending_within(phase, split.first, split.count) {
            return Some(TaskRange { count: near.count.min(most), ..near });
        }
        splits.pop();
    }
    None
}
