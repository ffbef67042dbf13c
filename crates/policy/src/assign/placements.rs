//! Placements: every machine serves its own queue from the head.
//!
//! A head whose phase is not ready yet keeps the slots of the machine idle. The policy intends this idle time
//! (DMRS, Algorithm 1, inserts it for precedence).

use std::collections::VecDeque;

use slackline_model::{Instance, MachineId, PhaseId, SlotRange};

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

/// The queues of a machine by slot kind.
#[derive(Clone, Default)]
struct MachineQueues {
    queues: [VecDeque<Placed>; 2],
    /// Whether it is among [`Placements::loaded`].
    is_listed: bool,
}

impl MachineQueues {
    fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

#[derive(Clone)]
pub(super) struct Placements {
    machines: Vec<MachineQueues>,
    /// Machines with a non-empty queue once each, and some whose queues became empty.
    loaded: Vec<MachineId>,
    /// Machines whose head may be able to start, in any order, some more than once.
    awake: Vec<MachineId>,
    /// The length of `awake` from which repeated machines are removed.
    awake_max: usize,
    /// Whether a task did not start because the engine had no room for it.
    is_full: bool,
    /// Scratch: the machines to serve, and the slots that a task takes.
    serving: Vec<MachineId>,
    slots: Vec<SlotRange>,
}

impl Placements {
    pub(super) fn new() -> Self {
        Self {
            machines: Vec::new(),
            loaded: Vec::new(),
            awake: Vec::new(),
            awake_max: 0,
            is_full: false,
            serving: Vec::new(),
            slots: Vec::new(),
        }
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
        if self.machines.len() <= machine.index() {
            self.machines.resize(machine.index() + 1, MachineQueues::default());
        }
        let queues = &mut self.machines[machine.index()];
        queues.queues[slot_kind.index()].push_back(Placed { phase, first, count });
        if !std::mem::replace(&mut queues.is_listed, true) {
            self.loaded.push(machine);
        }
        if self.awake.last() != Some(&machine) {
            self.awake.push(machine);
        }
        self.shorten_awake();
    }

    pub(super) fn clear(&mut self) {
        for machine in self.loaded.drain(..) {
            let queues = &mut self.machines[machine.index()];
            queues.is_listed = false;
            queues.queues.iter_mut().for_each(VecDeque::clear);
        }
    }

    /// Wakes the machines that may continue after these events.
    pub(super) fn note(&mut self, events: &[Event], ledger: &mut Ledger) {
        if let Some(freed) = &mut ledger.freed {
            self.awake.append(freed);
            self.shorten_awake();
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
            let Self { machines, loaded, awake, .. } = self;
            loaded.retain(|machine| {
                let queues = &mut machines[machine.index()];
                queues.is_listed = !queues.is_empty();
                queues.is_listed
            });
            awake.extend(&*loaded);
        }
    }

    /// Removes repeated machines if there are many: with heartbeats nothing else does.
    fn shorten_awake(&mut self) {
        if self.awake.len() > self.awake_max {
            self.awake.sort_unstable();
            self.awake.dedup();
            self.awake_max = 2 * self.awake.len() + 64;
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
        let mut serving = std::mem::take(&mut self.serving);
        serving.clear();
        match scope {
            Scope::All => {
                serving.append(&mut self.awake);
                serving.sort_unstable();
                serving.dedup();
            }
            Scope::Machines(machines) => serving.extend(machines),
        }
        let mut decisions = 0;
        for &machine in &serving {
            let Some(queues) = self.machines.get_mut(machine.index()).filter(|queues| !queues.is_empty())
            else {
                continue;
            };
            for &slot_kind in ledger.instance.cluster().slot_kinds() {
                if let Some(spot) = Spot::of_machine(ledger, slot_kind, machine) {
                    let queue = &mut queues.queues[slot_kind.index()];
                    let slots = &mut self.slots;
                    let (begun, is_full) = serve(queue, machine, spot, slots, ledger, engine, estimates);
                    decisions += begun;
                    self.is_full |= is_full;
                }
            }
        }
        self.serving = serving;
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
    slots: &mut Vec<SlotRange>,
    ledger: &mut Ledger,
    engine: &mut dyn Engine,
    estimates: &Estimates,
) -> (u64, bool) {
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
        spot.take(ledger, taken.count, slots);
        ledger.launch(engine, phase, taken, slots);
        decisions += 1;
    }
    (decisions, is_full)
}
