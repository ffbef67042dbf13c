//! Delay scheduling: tasks whose input has hosts wait a little for a slot there.
//!
//! Zaharia et al., "Delay Scheduling", EuroSys 2010, as FLEX §1 describes the assignment layer: a
//! phase that is next but has no task with its input on the machine that asks lets others go first,
//! until it has waited `wait` since it last started a task near its input.

use std::collections::BTreeMap;

use slackline_model::{Instance, MachineId, PhaseId, SlotRange, Span, Time};

use crate::engine::Engine;
use crate::event::Event;
use crate::ledger::Ledger;
use crate::spot::Spot;
use crate::state::Taken;

/// Splits by host, and how long phases have waited.
#[derive(Clone)]
pub(crate) struct Locality {
    wait: Span,
    /// The splits of each phase with hosts.
    hosts: BTreeMap<PhaseId, Hosts>,
    /// Since when a phase has not started a task near its input although it was next.
    since: BTreeMap<PhaseId, Time>,
}

/// Splits by machine, lowest last so that they can be popped.
#[derive(Clone)]
struct Hosts {
    on: BTreeMap<MachineId, Vec<u32>>,
    /// Splits without any host: they may run anywhere at once.
    nowhere: Vec<u32>,
}

impl Hosts {
    /// Starts up to `n` tasks on machines that hold their input; returns how many.
    fn launch_near<E: Engine + ?Sized>(
        &mut self,
        spot: Spot,
        phase: PhaseId,
        n: u32,
        ledger: &mut Ledger,
        engine: &mut E,
    ) -> u32 {
        let machines: Vec<MachineId> = match spot.machine {
            Some((machine, _)) => vec![machine],
            None => self.on.keys().copied().collect(),
        };
        let mut begun = 0;
        for machine in machines {
            let Some(at) = Spot::of_machine(ledger, spot.lane, machine) else { continue };
            let Some(splits) = self.on.get_mut(&machine) else { continue };
            while begun < n {
                let most = at.free(ledger).min(n - begun);
                let Some(near) = (most > 0).then(|| next_on(splits, ledger, phase, most)).flatten() else {
                    break;
                };
                begin(at, phase, near, ledger, engine);
                begun += near.count;
            }
        }
        begun
    }
}

impl Locality {
    pub(crate) fn new(wait: Span) -> Self {
        Self { wait, hosts: BTreeMap::new(), since: BTreeMap::new() }
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
    pub(crate) fn launch<E: Engine + ?Sized>(
        &mut self,
        spot: Spot,
        phase: PhaseId,
        n: u32,
        ledger: &mut Ledger,
        engine: &mut E,
    ) -> u32 {
        let hosts = self.hosts.entry(phase).or_insert_with(|| by_host(&ledger.instance, phase));
        let mut begun = hosts.launch_near(spot, phase, n, ledger, engine);
        if begun > 0 {
            self.since.remove(&phase);
        }
        while begun < n {
            let Some(any) = next_on(&mut hosts.nowhere, ledger, phase, n - begun) else { break };
            begin(spot, phase, any, ledger, engine);
            begun += any.count;
        }
        if begun < n && self.waited(phase, ledger.now, engine) {
            while begun < n {
                let any = ledger.state.next_pending(phase, n - begun);
                begin(spot, phase, any, ledger, engine);
                begun += any.count;
            }
        }
        begun
    }

    /// Whether the phase has waited long enough to run anywhere; if not, the engine wakes us then.
    fn waited<E: Engine + ?Sized>(&mut self, phase: PhaseId, now: Time, engine: &mut E) -> bool {
        if self.wait == Span::ZERO {
            return true;
        }
        let mut fresh = false;
        let since = *self.since.entry(phase).or_insert_with(|| {
            fresh = true;
            now
        });
        if fresh {
            engine.wake_at(now + self.wait);
        }
        now.since(since) >= self.wait
    }
}

fn begin<E: Engine + ?Sized>(at: Spot, phase: PhaseId, taken: Taken, ledger: &mut Ledger, engine: &mut E) {
    let mut slots: Vec<SlotRange> = Vec::new();
    ledger.state.take_exactly(&ledger.instance, phase, taken);
    at.take(ledger, taken.count, &mut slots);
    ledger.launch(engine, phase, taken, &slots);
}

/// Whether any task of the phase has a place for its input.
pub(crate) fn has_hosts(instance: &Instance, phase: PhaseId) -> bool {
    instance.phase(phase).tasks().is_some_and(|t| !t.splits().is_empty())
}

fn by_host(instance: &Instance, phase: PhaseId) -> Hosts {
    let mut hosts = Hosts { on: BTreeMap::new(), nowhere: Vec::new() };
    let splits = instance.phase(phase).tasks().map_or(&[][..], slackline_model::tasks::Tasks::splits);
    for (k, split) in splits.iter().enumerate().rev() {
        if split.hosts.is_empty() {
            hosts.nowhere.push(k as u32);
        }
        for &host in &split.hosts {
            hosts.on.entry(host).or_default().push(k as u32);
        }
    }
    hosts
}

/// The next pending tasks among `splits`, at most `most`; splits without any are dropped.
fn next_on(splits: &mut Vec<u32>, ledger: &Ledger, phase: PhaseId, most: u32) -> Option<Taken> {
    let all = ledger.instance.phase(phase).tasks()?.splits();
    while let Some(&k) = splits.last() {
        let split = &all[k as usize];
        if let Some(near) = ledger.state.pending_within(phase, split.first, split.count) {
            return Some(Taken { count: near.count.min(most), ..near });
        }
        splits.pop();
    }
    None
}
