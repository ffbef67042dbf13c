//! Multiplexes one fleet over several runs. Each run starts attempts under its own numbers and receives their
//! reports. Machines have the numbers of the `machine_table`, not those of the fleet.
//!
//! The loop changes it, and runs read it from their threads. No other work is done while it is locked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slackline_model::draft::MachineDraft;
use slackline_model::{MachineId, PhaseKind};
use slackline_policy::engine::RowId;
use slackline_task::process::limits::Capacity;
use slackline_task::process::spec::Spec;

use crate::engine::backend::RunId;
use crate::engine::shared::machine_table::MachineTable;
use crate::engine::shared::messages::{Outbox, RunMessage};
use crate::fleet::{Assignment, Fleet, FleetEvent, ForeignSlot, NewMachine, Waker};
use crate::store::journal::JoinedMachine;

pub(crate) fn lock(mux: &Mutex<FleetMux>) -> MutexGuard<'_, FleetMux> {
    mux.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The machines of a fleet, and what each run has on them.
pub(crate) struct FleetMux {
    /// Whether machines may go, and come.
    changes: bool,
    machines: MachineTable,
    /// What each machine has, as far as it is known.
    capacities: Vec<Capacity>,
    /// Machines that are not there.
    away: BTreeSet<MachineId>,
    /// The number of the next attempt on the fleet; none where attempts keep the numbers of the only run.
    next: Option<u64>,
    /// Running attempts, by their numbers on the fleet.
    at_work: BTreeMap<u64, (RunId, Assignment)>,
    /// The slots that rows of the driver hold.
    held: BTreeMap<RowId, HeldSlot>,
}

/// The capacity of an unknown machine.
const UNKNOWN: Capacity = Capacity { processors: 0, memory: None };

/// A slot that a row holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldSlot {
    pub(crate) run: RunId,
    pub(crate) phase: PhaseKind,
    pub(crate) slot: u32,
}

impl FleetMux {
    /// `is_alone`: for one run, whose attempts keep their numbers.
    pub(crate) fn new(fleet: &dyn Fleet, table: MachineTable, is_alone: bool) -> Self {
        let mut capacities = vec![UNKNOWN; table.machines().len()];
        for (of_fleet, capacity) in (0..).map(MachineId).zip(fleet.machines()) {
            if let Some(id) = table.id(of_fleet) {
                capacities[id.index()] = capacity;
            }
        }
        let all = (0..capacities.len()).map(MachineId::from);
        let away = all.filter(|&id| table.is_missing(id)).collect();
        let (changes, at_work, held) = (fleet.changes(), BTreeMap::new(), BTreeMap::new());
        let next = (!is_alone).then_some(0);
        Self { changes, machines: table, capacities, away, next, at_work, held }
    }

    /// Events with the numbers that runs know; none where no run needs to know.
    pub(crate) fn translated(&mut self, event: FleetEvent) -> Option<(Option<RunId>, FleetEvent)> {
        let known = |mux: &Self, machine| mux.machines.id(machine);
        let of_machine = match event {
            FleetEvent::Ended { attempt, report } => {
                let (run_id, assignment) = self.at_work.remove(&attempt)?;
                return Some((Some(run_id), FleetEvent::Ended { attempt: assignment.number, report }));
            }
            FleetEvent::Down { machine, why } => {
                let machine = known(self, machine)?;
                // Nothing more arrives from what ran there.
                self.at_work.retain(|_, (_, assignment)| assignment.machine != machine);
                self.away.insert(machine).then_some(FleetEvent::Down { machine, why })?
            }
            FleetEvent::Up(machine) => {
                let machine = known(self, machine)?;
                self.away.remove(&machine).then_some(FleetEvent::Up(machine))?
            }
            FleetEvent::Joined(new) => self.joined(new),
            FleetEvent::Until { machine, left } => FleetEvent::Until { machine: known(self, machine)?, left },
            FleetEvent::Notice(what) => FleetEvent::Notice(what),
        };
        Some((None, of_machine))
    }

    /// A machine joins the fleet; it may be one that is known.
    fn joined(&mut self, new: NewMachine) -> FleetEvent {
        let NewMachine { name, slots, speed, .. } = new.clone();
        let draft = JoinedMachine { name, slots, speed, apart: false }.draft();
        match self.machines.add(new.number, draft) {
            Err(error) => FleetEvent::Notice(format!("machine {} is not used: {error}", new.name)),
            Ok(is_new) => {
                let number =
                    self.machines.id(new.number).expect("invariant: a machine that was added has a number");
                self.away.remove(&number);
                if is_new {
                    self.capacities.push(new.capacity);
                    return FleetEvent::Joined(NewMachine { number, ..new });
                }
                self.capacities[number.index()] = new.capacity;
                FleetEvent::Up(number)
            }
        }
    }

    /// All machines that are known.
    pub(crate) fn machines(&self) -> &[MachineDraft] {
        self.machines.machines()
    }

    /// What each of them has, as far as it is known.
    pub(crate) fn capacities(&self) -> &[Capacity] {
        &self.capacities
    }

    /// Those that are not there.
    pub(crate) fn away(&self) -> &BTreeSet<MachineId> {
        &self.away
    }

    /// Whether machines may leave or join, or have left.
    pub(crate) fn changes(&self) -> bool {
        self.changes || !self.away.is_empty()
    }

    /// Whether nothing runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.at_work.is_empty()
    }

    /// An attempt of a run is about to start. Returns the attempt for the fleet, with the numbers of the
    /// fleet; `None` if its machine is not present.
    pub(crate) fn begin(&mut self, run_id: RunId, attempt: Assignment) -> Option<Assignment> {
        let machine =
            self.machines.of_fleet(attempt.machine).filter(|_| !self.away.contains(&attempt.machine))?;
        let number = self.next.unwrap_or(attempt.number);
        self.next = self.next.map(|next| next + 1);
        self.at_work.insert(number, (run_id, attempt));
        Some(Assignment { number, machine, ..attempt })
    }

    /// It could not be started.
    pub(crate) fn undo(&mut self, number: u64) {
        self.at_work.remove(&number);
    }

    pub(crate) fn hold(&mut self, row: RowId, held: HeldSlot) {
        self.held.insert(row, held);
    }

    /// Removes an ended row. Returns its run.
    pub(crate) fn release(&mut self, row: RowId) -> Option<RunId> {
        self.held.remove(&row).map(|held| held.run)
    }

    /// The run of a row.
    pub(crate) fn run_of(&self, row: RowId) -> Option<RunId> {
        self.held.get(&row).map(|held| held.run)
    }

    /// The runs that have an attempt running on a slot, but for one of them.
    pub(crate) fn others_on(&self, held: HeldSlot) -> Vec<RunId> {
        let on = |(run_id, other): &(RunId, Assignment)| {
            *run_id != held.run && other.slot == held.slot && other.attempt.id.phase == held.phase
        };
        self.at_work.values().filter(|one| on(one)).map(|(run_id, _)| *run_id).collect()
    }

    /// The fleet's number of an attempt of a run; `None` if it is not running.
    pub(crate) fn name(&self, run_id: RunId, attempt: u64) -> Option<u64> {
        let is_it = |(of, assignment): &(RunId, Assignment)| *of == run_id && assignment.number == attempt;
        self.at_work.iter().find(|(_, one)| is_it(one)).map(|(&name, _)| name)
    }

    /// Nothing arrives of a run any more.
    pub(crate) fn forget(&mut self, run_id: RunId) {
        self.at_work.retain(|_, (of, _)| *of != run_id);
        self.held.retain(|_, held| held.run != run_id);
    }
}

/// The fleet as one of the runs sees it.
pub(crate) struct Share {
    pub(crate) mux: Arc<Mutex<FleetMux>>,
    pub(crate) out: Outbox,
}

impl Fleet for Share {
    fn machines(&self) -> Vec<Capacity> {
        lock(&self.mux).capacities.clone()
    }

    fn changes(&self) -> bool {
        lock(&self.mux).changes()
    }

    /// The loop starts it. One that cannot be started ends at once.
    fn start(&mut self, attempt: Assignment, spec: &Spec) -> io::Result<()> {
        self.out.send(RunMessage::Start(attempt, Box::new(spec.clone())));
        Ok(())
    }

    fn stop(&mut self, attempt: u64) {
        self.out.send(RunMessage::Stop(attempt));
    }

    /// The loop receives all events, and forwards them to each run.
    fn next(&mut self, _: Duration) -> Option<FleetEvent> {
        None
    }

    fn foreign_slots(&self) -> Vec<ForeignSlot> {
        let (mux, own) = (lock(&self.mux), self.out.run);
        let others = mux.at_work.values().filter(|(run_id, _)| *run_id != own);
        let at_work: Vec<ForeignSlot> = others
            .map(|(_, other)| ForeignSlot {
                phase: other.attempt.id.phase,
                slot: other.slot,
                at_work: Some((other.machine, other.demand)),
            })
            .collect();
        let is_idle = |held: &&HeldSlot| {
            held.run != own && !at_work.iter().any(|busy| busy.slot == held.slot && busy.phase == held.phase)
        };
        let idle = |held: &HeldSlot| ForeignSlot { phase: held.phase, slot: held.slot, at_work: None };
        let idle: Vec<ForeignSlot> = mux.held.values().filter(is_idle).map(idle).collect();
        at_work.into_iter().chain(idle).collect()
    }

    fn waker(&self) -> Waker {
        self.out.waker.clone()
    }
}
