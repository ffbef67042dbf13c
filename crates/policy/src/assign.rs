//! The assignment layer: assigns tasks to free slots, for every policy and every engine.
//!
//! By the style of the policy, a slot goes to the phase that the policy names ([`Style::Priorities`]), to the
//! phase furthest below its target (`targets`), or to the head of the queue of its machine (`placements`).
//! Tasks run on the hosts of their input if possible (`locality`: delay scheduling).

mod placements;
mod targets;

use slackline_model::{PhaseId, SlotRange};

use self::placements::Placements;
use self::targets::{Portion, Targets};
use crate::engine::Engine;
use crate::event::Event;
use crate::ledger::Ledger;
use crate::locality::{self, Locality, Starter, Waits};
use crate::policy::{Action, Ask, Policy, Style};
use crate::slot_scope::{Scope, Spot};
use crate::view::{Estimates, View};

/// A policy with its estimates, to be asked for the next phase.
pub(crate) struct Deciding<'a> {
    pub(crate) policy: &'a mut dyn Policy,
    pub(crate) estimates: &'a Estimates,
}

/// The assignment layer of one run.
#[derive(Clone)]
pub(crate) struct Assigner {
    style: Style,
    targets: Targets,
    placements: Placements,
    locality: Locality,
    scratch: Vec<SlotRange>,
    skip: Vec<PhaseId>,
    portions: Vec<Portion>,
    /// How many times a phase was chosen.
    pub(crate) decisions: u64,
}

impl Assigner {
    pub(crate) fn new(policy: &dyn Policy, waits: Waits) -> Self {
        Self {
            style: policy.style(),
            targets: Targets::new(policy),
            placements: Placements::new(),
            locality: Locality::new(waits),
            scratch: Vec::new(),
            skip: Vec::new(),
            portions: Vec::new(),
            decisions: 0,
        }
    }

    /// The target number of slots of a phase ([`Style::Targets`]).
    pub(crate) fn target(&self, phase: PhaseId) -> f64 {
        self.targets.of(phase)
    }

    /// Forgets the phases of a finished flow.
    pub(crate) fn forget(&mut self, phases: impl Iterator<Item = PhaseId> + Clone) {
        self.locality.forget(phases.clone());
        self.targets.forget(phases);
    }

    /// Applies the actions of the policy. Actions on phases that are no longer known are ignored.
    pub(crate) fn absorb(&mut self, actions: &[Action], ledger: &mut Ledger, engine: &mut dyn Engine) {
        for action in actions {
            match *action {
                Action::Target { phase, .. } | Action::Share(phase) | Action::Place { phase, .. }
                    if !ledger.state.knows(phase) => {}
                Action::Target { phase, slots } => self.targets.set(phase, slots),
                Action::Share(phase) => self.targets.share(phase, ledger.instance.slot_kind_of(phase)),
                Action::Level { slot_kind, slots } => self.targets.set_level(slot_kind, slots),
                Action::Place { machine, phase, first, count } => {
                    self.placements.push(&ledger.instance, machine, phase, first, count);
                }
                Action::ClearPlacements => self.placements.clear(),
                Action::WakeAt(at) => ledger.wake_at(at, engine),
            }
        }
    }

    /// Assigns tasks to the free slots in scope until none is left or nothing can run.
    pub(crate) fn assign(
        &mut self,
        ledger: &mut Ledger,
        engine: &mut dyn Engine,
        deciding: &mut Deciding<'_>,
        events: &[Event],
        scope: Scope<'_>,
    ) {
        if !engine.is_ready() {
            return;
        }
        match self.style {
            Style::Placements => {
                self.placements.note(events, ledger);
                self.decisions += self.placements.assign(ledger, engine, deciding.estimates, scope);
                ledger.state.clear_touched();
                return;
            }
            Style::Targets => self.targets.refresh(ledger),
            Style::Priorities => ledger.state.clear_touched(),
        }
        self.locality.note(events);
        for &slot_kind in ledger.instance.cluster().slot_kinds() {
            match scope {
                Scope::All => self.fill(Spot { slot_kind, machine: None }, ledger, engine, deciding),
                Scope::Machines(machines) => {
                    for &machine in machines {
                        if let Some(spot) = Spot::of_machine(ledger, slot_kind, machine) {
                            self.fill(spot, ledger, engine, deciding);
                        }
                    }
                }
            }
        }
        ledger.start_opened(engine);
    }

    /// Fills the free slots of one spot.
    fn fill(
        &mut self,
        spot: Spot,
        ledger: &mut Ledger,
        engine: &mut dyn Engine,
        deciding: &mut Deciding<'_>,
    ) {
        self.skip.clear();
        if self.style == Style::Targets && spot.machine.is_none() && ledger.are_alike(spot.slot_kind) {
            self.share_out(spot, ledger, engine);
        }
        loop {
            let slots = spot.free(ledger);
            if slots == 0 {
                return;
            }
            let Some((phase, tasks)) = self.choose(spot, slots, ledger, deciding) else { return };
            self.decisions += 1;
            let hidden = ledger.hide_short(phase, deciding.estimates);
            let slots = spot.free(ledger);
            let room = ledger.quotas.room(&ledger.instance, phase);
            let (wanted, begun) = if slots > 0 && room > 0 && ledger.admits(phase, spot, engine) {
                let runnable = ledger.state.runnable(&ledger.instance, phase);
                assert!(runnable > 0, "policy {} granted a phase that cannot run", deciding.policy.name());
                let n = tasks.min(slots).min(runnable).min(room).max(1);
                (n, self.begin(&mut Starter { spot, phase, ledger, engine }, n))
            } else {
                (1, 0)
            };
            if slots == 0 {
                engine.blocked_by_deadline();
            }
            ledger.show(phase, hidden);
            if begun < wanted {
                self.skip.push(phase);
            }
            if self.style == Style::Targets {
                self.targets.served(phase, ledger, begun);
            }
        }
    }

    /// Divides equal slots by targets: each phase gets its part at once.
    fn share_out(&mut self, spot: Spot, ledger: &mut Ledger, engine: &mut dyn Engine) {
        let mut portions = std::mem::take(&mut self.portions);
        let slots = spot.free(ledger);
        let simply_start = |phase| {
            !ledger.state.is_early(&ledger.instance, phase)
                && !locality::has_hosts(&ledger.instance, phase)
                && ledger.quotas.room(&ledger.instance, phase) == u32::MAX
        };
        self.decisions += self.targets.share_out(spot.slot_kind, slots, ledger, simply_start, &mut portions);
        for Portion { phase, tasks, .. } in portions.drain(..) {
            self.launch(&mut Starter { spot, phase, ledger, engine }, tasks);
        }
        self.targets.refresh(ledger);
        self.portions = portions;
    }

    /// Starts up to `n` tasks of a phase. Returns how many.
    fn begin(&mut self, start: &mut Starter<'_>, n: u32) -> u32 {
        if locality::has_hosts(&start.ledger.instance, start.phase) {
            return self.locality.launch(start, n);
        }
        self.launch(start, n);
        n
    }

    /// The next phase, and how many of its tasks to start.
    fn choose(
        &mut self,
        spot: Spot,
        slots: u32,
        ledger: &Ledger,
        deciding: &mut Deciding<'_>,
    ) -> Option<(PhaseId, u32)> {
        if self.style == Style::Targets {
            return self.targets.first(spot.slot_kind, &self.skip, ledger);
        }
        let machine = spot.machine.map(|(machine, _)| machine);
        let ask = Ask { slot_kind: spot.slot_kind, machine, slots, skip: &self.skip };
        let Deciding { policy, estimates } = deciding;
        let view = View::of(ledger, estimates);
        let grant = policy.next(&ask, &view)?;
        assert!(
            !self.skip.contains(&grant.phase),
            "policy {} granted a phase that it has to skip",
            policy.name()
        );
        Some((grant.phase, grant.tasks))
    }

    fn launch(&mut self, start: &mut Starter<'_>, n: u32) {
        let Starter { spot, phase, ledger, engine } = start;
        let mut left = n;
        while left > 0 {
            let taken = ledger.state.take(&ledger.instance, *phase, left);
            spot.take(ledger, taken.count, &mut self.scratch);
            ledger.launch(*engine, *phase, taken, &self.scratch);
            left -= taken.count;
        }
    }
}

#[cfg(test)]
mod tests;
