//! Delay scheduling: tasks with known hosts of their input wait for some time for a slot there.
//!
//! Zaharia et al., "Delay Scheduling", EuroSys 2010; FLEX §1 describes the assignment layer in this way. A
//! phase that is next but has no task with its input on the machine lets others go first, until it has waited
//! [`Waits::node`] since it last started a task near its input. Then it takes slots in the racks of its
//! input. It takes other slots when it has waited [`Waits::rack`] more since it last started a task in such a
//! rack.

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
    /// The wait for a slot on a machine with input.
    pub(crate) node: Span,
    /// The wait for a slot in its rack after that; zero to take any other slot.
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
    /// this so far back that more tasks may start there at once, while other racks wait the full time again.
    since: BTreeMap<PhaseId, Time>,
}

/// Splits by machine, the lowest last so that they can be popped.
#[derive(Clone)]
struct Hosts {
    on: BTreeMap<MachineId, Vec<u32>>,
    /// By the first group of machines in each rack; empty where racks do not matter.
    in_rack: BTreeMap<GroupId, Vec<u32>>,
    /// Splits without any host: they may run anywhere at once.
    nowhere: Vec<u32>,
}

impl Hosts {
    /// Starts up to `n` tasks on machines that hold their input. Returns how many.
    fn launch_near(&mut self, start: &mut Starter<'_>, n: u32) -> u32 {
        let machines: Vec<MachineId> = match start.spot.machine {
            Some((machine, _)) => vec![machine],
            None => self.on.keys().copied().collect(),
        };
        let mut begun = 0;
        for machine in machines {
            begun += start.launch_of(self.on.get_mut(&machine), machine, n - begun);
        }
        begun
    }

    /// Starts up to `n` tasks on machines in a rack that holds their input. Returns how many.
    fn launch_in_rack(&mut self, start: &mut Starter<'_>, n: u32) -> u32 {
        let machines = match start.spot.machine {
            Some((machine, _)) => machine.0..machine.0 + 1,
            None => 0..start.ledger.instance.cluster().n_machines(),
        };
        let mut begun = 0;
        for machine in machines.map(MachineId) {
            if begun == n {
                break;
            }
            let rack = rack_of(start.ledger.instance.cluster(), machine);
            begun += start.launch_of(self.in_rack.get_mut(&rack), machine, n - begun);
        }
        begun
    }
}

/// Starts tasks of a phase in a spot.
pub(crate) struct Starter<'a> {
    pub(crate) spot: Spot,
    pub(crate) phase: PhaseId,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) engine: &'a mut dyn Engine,
}

impl Starter<'_> {
    /// Starts up to `n` tasks of some splits on a machine. Returns how many.
    fn launch_of(&mut self, splits: Option<&mut Vec<u32>>, machine: MachineId, n: u32) -> u32 {
        let at = Spot::of_machine(self.ledger, self.spot.slot_kind, machine);
        let (Some(splits), Some(at)) = (splits, at) else { return 0 };
        let mut begun = 0;
        while begun < n {
            let most = at.free(self.ledger).min(n - begun);
            let near = (most > 0).then(|| next_on(splits, self.ledger, self.phase, most)).flatten();
            let Some(near) = near else { break };
            begun += self.begin(at, near);
        }
        begun
    }

    /// Starts tasks. Returns how many.
    fn begin(&mut self, at: Spot, taken: TaskRange) -> u32 {
        let mut slots: Vec<SlotRange> = Vec::new();
        self.ledger.state.take_exactly(&self.ledger.instance, self.phase, taken);
        at.take(self.ledger, taken.count, &mut slots);
        self.ledger.launch(self.engine, self.phase, taken, &slots);
        taken.count
    }
}

impl Locality {
    pub(crate) fn new(waits: Waits) -> Self {
        Self { waits, hosts: BTreeMap::new(), since: BTreeMap::new() }
    }

    /// Forgets waits that have ended.
    pub(crate) fn note(&mut self, events: &[Event]) {
        for event in events {
            if let Event::TasksLost { phase, .. } | Event::PhaseDone(phase) = event {
                self.hosts.remove(phase);
                self.since.remove(phase);
            }
        }
    }

    /// Forgets the phases of a finished flow.
    pub(crate) fn forget(&mut self, phases: impl Iterator<Item = PhaseId>) {
        for phase in phases {
            self.hosts.remove(&phase);
            self.since.remove(&phase);
        }
    }

    /// Starts up to `n` tasks, near their input if possible. Returns how many. If fewer than `n`, the others
    /// wait.
    pub(crate) fn launch(&mut self, start: &mut Starter<'_>, n: u32) -> u32 {
        let (phase, has_racks) = (start.phase, self.waits.rack > Span::ZERO);
        let instance = &start.ledger.instance;
        let hosts = self.hosts.entry(phase).or_insert_with(|| by_host(instance, phase, has_racks));
        let mut begun = hosts.launch_near(start, n);
        if begun > 0 {
            self.since.remove(&phase);
        }
        while begun < n {
            let Some(any) = next_on(&mut hosts.nowhere, start.ledger, phase, n - begun) else { break };
            begun += start.begin(start.spot, any);
        }
        if begun < n {
            begun += self.launch_far(start, n - begun);
        }
        begun
    }

    /// Starts up to `n` tasks on machines without their input, if the phase has waited long enough. Returns
    /// how many.
    fn launch_far(&mut self, start: &mut Starter<'_>, n: u32) -> u32 {
        let Waits { node, rack } = self.waits;
        let mut begun = 0;
        if rack > Span::ZERO && self.waited(start) >= node {
            begun = self.hosts.get_mut(&start.phase).map_or(0, |hosts| hosts.launch_in_rack(start, n));
            if begun > 0 {
                self.wait_since(Time(start.ledger.now.0 - node.0), start);
            }
        }
        if begun < n && self.waited(start) >= Span(node.0 + rack.0) {
            while begun < n {
                let any = start.ledger.state.next_pending(start.phase, n - begun);
                begun += start.begin(start.spot, any);
            }
        }
        begun
    }

    /// How long the phase has waited for a slot near its input.
    fn waited(&mut self, start: &mut Starter<'_>) -> Span {
        if self.waits == Waits::NONE {
            return Span::ZERO;
        }
        let now = start.ledger.now;
        if !self.since.contains_key(&start.phase) {
            self.wait_since(now, start);
        }
        now.since(self.since[&start.phase])
    }

    /// Sets the start of the wait of a phase, and requests a wake-up at its end.
    fn wait_since(&mut self, since: Time, start: &mut Starter<'_>) {
        let Waits { node, rack } = self.waits;
        self.since.insert(start.phase, since);
        for (wait, at) in [(node, since + node), (rack, since + node + rack)] {
            if wait > Span::ZERO && at > start.ledger.now {
                start.ledger.wake_at(at, start.engine);
            }
        }
    }
}

/// Whether any task of the phase has a host of its input.
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

/// The next pending tasks among `splits`, at most `most`; drops splits without pending tasks.
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
