//! Placements: every machine serves its own queue from the head.
//!
//! A head whose phase is not ready yet keeps the slots of the machine idle. The policy intends this idle time
//! (DMRS, Algorithm 1, inserts it for precedence).

use std::collections::{BTreeSet, VecDeque};

use slackline_model::{Instance, MachineId, PhaseId};

use crate::engine::Engine;
use crate::event::Event;
use crate::ledger::Ledger;
use crate::pending::TaskRange;
use crate::slot_scope::{Scope, Spot};
use crate::view::Estimates;

#[derive(Clone, Copy, Debug)]
struct Placed {
    phase: PhaseId,
    first: u32,
    count: u32,
}

/// A queue for each machine and slot kind.
#[derive(Clone)]
pub(super) struct Placements {
    queues: Vec<[VecDeque<Placed>; 2]>,
    /// Machines with a non-empty queue.
    loaded: BTreeSet<MachineId>,
    /// Machines whose head may be able to start.
    awake: BTreeSet<MachineId>,
    /// Whether a task did not start because the engine had no room for it.
    is_full: bool,
}

impl Placements {
    pub(super) fn new() -> Self {
        Self { queues: Vec::new(), loaded: BTreeSet::new(), awake: BTreeSet::new(), is_full: false }
    }

    pub(super) fn push(
        &mut self,
        instance: &Instance,
        machine: MachineId,
        phase: PhaseId,
        first: u32,
        count: u32,
    ) {
        let slot_kind = instance.slot_kind_of(phase);
        assert!(
            instance.cluster().machine_slots(slot_kind, machine).is_some(),
            "{} placed on a machine without slots for it",
            instance.phase_name(phase)
        );
        if self.queues.len() <= machine.index() {
            self.queues.resize(machine.index() + 1, [VecDeque::new(), VecDeque::new()]);
        }
        self.queues[machine.index()][slot_kind.index()].push_back(Placed { phase, first, count });
        self.loaded.insert(machine);
        self.awake.insert(machine);
    }

    pub(super) fn clear(&mut self) {
        for machine in std::mem::take(&mut self.loaded) {
            self.queues[machine.index()].iter_mut().for_each(VecDeque::clear);
        }
    }

    /// Wakes the machines that may continue after these events.
    pub(super) fn note(&mut self, events: &[Event], ledger: &mut Ledger) {
        if let Some(freed) = &mut ledger.freed {
            self.awake.append(freed);
        }
        let Ledger { instance, state, .. } = &*ledger;
        let everybody = |event: &Event| match *event {
            Event::PhaseReady(_)
            | Event::PhaseDone(_)
            | Event::TasksLost { .. }
            | Event::FlowFailed(_)
            | Event::MachineUp(_) => true,
            // A phase that was at its cap may continue, on any machine that has its next tasks.
            Event::TasksDone { phase, .. } => instance.phase(phase).cap < state.phase(phase).total(),
            _ => false,
        };
        if events.iter().any(everybody) || !events.is_empty() && std::mem::take(&mut self.is_full) {
            self.awake.extend(&self.loaded);
        }
    }

    /// Serves the queues. Returns how many heads were started.
    pub(super) fn assign(
        &mut self,
        ledger: &mut Ledger,
        engine: &mut dyn Engine,
        estimates: &Estimates,
        scope: Scope<'_>,
    ) -> u64 {
        let machines: Vec<MachineId> = match scope {
            Scope::All => std::mem::take(&mut self.awake).into_iter().collect(),
            Scope::Machines(machines) => machines.to_vec(),
        };
        let mut decisions = 0;
        for machine in machines {
            if !self.loaded.contains(&machine) {
                continue;
            }
            let queues = &mut self.queues[machine.index()];
            for &slot_kind in ledger.instance.cluster().slot_kinds() {
                if let Some(spot) = Spot::of_machine(ledger, slot_kind, machine) {
                    let queue = &mut queues[slot_kind.index()];
                    let (begun, is_full) = serve(queue, machine, spot, ledger, engine, estimates);
                    decisions += begun;
                    self.is_full |= is_full;
                }
            }
            if queues.iter().all(VecDeque::is_empty) {
                self.loaded.remove(&machine);
            }
        }
        decisions
    }
}

/// Starts tasks from the head of a queue while slots are free. Skips tasks that would not end before the
/// machine leaves, and tasks for which the engine has no room. Returns how many heads were started, and
/// whether the engine lacked room for one.
fn serve(
    queue: &mut VecDeque<Placed>,
    machine: MachineId,
    spot: Spot,
    ledger: &mut Ledger,
    engine: &mut dyn Engine,
    estimates: &Estimates,
) -> (u64, bool) {
    let mut slots = Vec::new();
    let (mut decisions, mut at, mut is_full) = (0, 0, false);
    while let Some(head) = queue.get_mut(at) {
        // An entry stays only while its phase needs slots and its flow is active.
        let waits = ledger.state.knows(head.phase)
            && !ledger.state.is_instant(&ledger.instance, head.phase)
            && !ledger.state.has_failed(ledger.instance.flow_of(head.phase));
        if head.count == 0 || !waits {
            queue.remove(at);
            continue;
        }
        if !ledger.ends_in_time(head.phase, machine, estimates) {
            engine.blocked_by_deadline();
            at += 1;
            continue;
        }
        let free = spot.free(ledger);
        if free == 0 {
            break;
        }
        let room = ledger.quotas.room(&ledger.instance, head.phase);
        if room == 0 {
            is_full = true;
            at += 1;
            continue;
        }
        let phase = head.phase;
        let Some(next) = ledger.state.pending_at(phase, head.first, head.count) else {
            // Another machine has started these tasks in the meantime.
            head.first += 1;
            head.count -= 1;
            continue;
        };
        // A queue is an order. A reduce at its head that took the slot early could wait for maps that are
        // queued behind other such heads, and no machine would ever continue.
        let early = ledger.state.is_early(&ledger.instance, phase);
        let runnable = ledger.state.runnable(&ledger.instance, phase);
        if early || runnable == 0 {
            break;
        }
        if !ledger.admits(phase, spot, engine) {
            break;
        }
        let taken = TaskRange { count: next.count.min(free).min(runnable).min(room), ..next };
        head.first += taken.count;
        head.count -= taken.count;
        ledger.state.take_exactly(&ledger.instance, phase, taken);
        spot.take(ledger, taken.count, &mut slots);
        ledger.launch(engine, phase, taken, &slots);
        decisions += 1;
    }
    (decisions, is_full)
}
