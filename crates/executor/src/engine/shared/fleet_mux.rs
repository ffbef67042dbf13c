//! What is known of the fleet that several runs share: each starts attempts under its own numbers and gets their reports.
//! Machines have the numbers here that they have for the runs (`stock`), not those of the fleet.
//!
//! The loop changes it, and runs look at it from their threads. No other work is done while it is locked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slackline_model::draft::MachineDraft;
use slackline_model::{MachineId, PhaseKind};
use slackline_policy::engine::RowId;
use slackline_task::process::limits::Capacity;
use slackline_task::process::spec::Spec;

use crate::engine::backend::Seat;
use crate::engine::shared::hosted_run::{Outbox, RunEvent};
use crate::engine::shared::machine_table::Stock;
use crate::fleet::{Assignment, Beside, Fleet, NewMachine, Told, Waker};
use crate::store::journal::JoinedMachine;

pub(crate) fn lock(hub: &Mutex<Hub>) -> MutexGuard<'_, Hub> {
    hub.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The machines of a fleet, and what each run has on them.
pub(crate) struct Hub {
    /// Whether machines may go, and come.
    changes: bool,
    stock: Stock,
    /// What each machine has, as far as it is known.
    capacities: Vec<Capacity>,
    /// Machines that are not there.
    away: BTreeSet<MachineId>,
    /// The number of the next attempt on the fleet.
    next: u64,
    /// What is at work, by its number on the fleet.
    at_work: BTreeMap<u64, (Seat, Assignment)>,
    /// The slots that rows of the driver hold.
    held: BTreeMap<RowId, Held>,
}

/// What a machine has of which nothing is known.
const UNKNOWN: Capacity = Capacity { processors: 0, memory: None };

/// A slot that a row holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) seat: Seat,
    pub(crate) phase: PhaseKind,
    pub(crate) slot: u32,
}

impl Hub {
    pub(crate) fn new(fleet: &dyn Fleet, stock: Stock) -> Self {
        let mut capacities = vec![UNKNOWN; stock.machines().len()];
        for (of_fleet, capacity) in (0..).map(MachineId).zip(fleet.machines()) {
            if let Some(id) = stock.id(of_fleet) {
                capacities[id.index()] = capacity;
            }
        }
        let all = (0..capacities.len()).map(MachineId::from);
        let away = all.filter(|&id| stock.is_missing(id)).collect();
        let (changes, at_work, held) = (fleet.changes(), BTreeMap::new(), BTreeMap::new());
        Self { changes, stock, capacities, away, next: 0, at_work, held }
    }

    /// News with the numbers that runs know; none where nobody has to know.
    pub(crate) fn translated(&mut self, told: Told) -> Option<(Option<Seat>, Told)> {
        let known = |hub: &Self, machine| hub.stock.id(machine);
        let of_machine = match told {
            Told::Ended { attempt, report } => {
                let (seat, assignment) = self.at_work.remove(&attempt)?;
                return Some((Some(seat), Told::Ended { attempt: assignment.number, report }));
            }
            Told::Down { machine, why } => {
                let machine = known(self, machine)?;
                // Nothing more is heard of what was at work there.
                self.at_work.retain(|_, (_, assignment)| assignment.machine != machine);
                self.away.insert(machine).then_some(Told::Down { machine, why })?
            }
            Told::Up(machine) => {
                let machine = known(self, machine)?;
                self.away.remove(&machine).then_some(Told::Up(machine))?
            }
            Told::Joined(new) => self.joined(new),
            Told::Until { machine, left } => Told::Until { machine: known(self, machine)?, left },
            Told::Said(what) => Told::Said(what),
        };
        Some((None, of_machine))
    }

    /// A machine joins the fleet; it may be one that is known.
    fn joined(&mut self, new: NewMachine) -> Told {
        let NewMachine { name, slots, speed, .. } = new.clone();
        let draft = JoinedMachine { name, slots, speed, apart: false }.draft();
        match self.stock.add(new.number, draft) {
            Err(error) => Told::Said(format!("machine {} is not used: {error}", new.name)),
            Ok(is_new) => {
                let number =
                    self.stock.id(new.number).expect("invariant: a machine that was added has a number");
                self.away.remove(&number);
                if is_new {
                    self.capacities.push(new.capacity);
                    return Told::Joined(NewMachine { number, ..new });
                }
                self.capacities[number.index()] = new.capacity;
                Told::Up(number)
            }
        }
    }

    /// All machines that are known.
    pub(crate) fn machines(&self) -> &[MachineDraft] {
        self.stock.machines()
    }

    /// What each of them has, as far as it is known.
    pub(crate) fn capacities(&self) -> &[Capacity] {
        &self.capacities
    }

    /// Those that are not there.
    pub(crate) fn away(&self) -> &BTreeSet<MachineId> {
        &self.away
    }

    /// Whether machines may go, and come, or have gone.
    pub(crate) fn changes(&self) -> bool {
        self.changes || !self.away.is_empty()
    }

    /// Whether nothing is at work.
    pub(crate) fn is_idle(&self) -> bool {
        self.at_work.is_empty()
    }

    /// An attempt of a run is about to start: what the fleet is to start, by its own numbers. None if its machine is not
    /// there.
    pub(crate) fn begin(&mut self, seat: Seat, attempt: Assignment) -> Option<Assignment> {
        let machine =
            self.stock.of_fleet(attempt.machine).filter(|_| !self.away.contains(&attempt.machine))?;
        let number = self.next;
        self.next += 1;
        self.at_work.insert(number, (seat, attempt));
        Some(Assignment { number, machine, ..attempt })
    }

    /// It could not be started.
    pub(crate) fn undo(&mut self, number: u64) {
        self.at_work.remove(&number);
    }

    /// A row holds a slot.
    pub(crate) fn hold(&mut self, row: RowId, held: Held) {
        self.held.insert(row, held);
    }

    /// A row is over; whose it was.
    pub(crate) fn release(&mut self, row: RowId) -> Option<Seat> {
        self.held.remove(&row).map(|held| held.seat)
    }

    /// Whose the slots are that rows hold, one by one.
    pub(crate) fn held(&self) -> impl Iterator<Item = Seat> + '_ {
        self.held.values().map(|held| held.seat)
    }

    /// Whose a row is.
    pub(crate) fn seat_of(&self, row: RowId) -> Option<Seat> {
        self.held.get(&row).map(|held| held.seat)
    }

    /// The runs that have an attempt at work on a slot, but for one of them.
    pub(crate) fn others_on(&self, held: Held) -> Vec<Seat> {
        let on = |(seat, other): &(Seat, Assignment)| {
            *seat != held.seat && other.slot == held.slot && other.id.phase == held.phase
        };
        self.at_work.values().filter(|one| on(one)).map(|(seat, _)| *seat).collect()
    }

    /// What an attempt of a run is called on the fleet; none of one that is not at work.
    pub(crate) fn name(&self, seat: Seat, attempt: u64) -> Option<u64> {
        let is_it = |(of, assignment): &(Seat, Assignment)| *of == seat && assignment.number == attempt;
        self.at_work.iter().find(|(_, one)| is_it(one)).map(|(&name, _)| name)
    }

    /// Nothing is heard of a run any more.
    pub(crate) fn forget(&mut self, seat: Seat) {
        self.at_work.retain(|_, (of, _)| *of != seat);
        self.held.retain(|_, held| held.seat != seat);
    }
}

/// The fleet as one of the runs sees it.
pub(crate) struct Share {
    pub(crate) hub: Arc<Mutex<Hub>>,
    pub(crate) out: Outbox,
}

impl Fleet for Share {
    fn machines(&self) -> Vec<Capacity> {
        lock(&self.hub).capacities.clone()
    }

    fn changes(&self) -> bool {
        lock(&self.hub).changes()
    }

    /// The loop starts it. One that cannot be started ends at once.
    fn start(&mut self, attempt: Assignment, spec: &Spec) -> io::Result<()> {
        self.out.send(RunEvent::Start(attempt, Box::new(spec.clone())));
        Ok(())
    }

    fn stop(&mut self, attempt: u64) {
        self.out.send(RunEvent::Stop(attempt));
    }

    /// The loop listens for all, and tells each what it has to hear.
    fn next(&mut self, _: Duration) -> Option<Told> {
        None
    }

    fn beside(&self) -> Vec<Beside> {
        let (hub, own) = (lock(&self.hub), self.out.seat);
        let others = hub.at_work.values().filter(|(seat, _)| *seat != own);
        let at_work: Vec<Beside> = others
            .map(|(_, other)| Beside {
                phase: other.id.phase,
                slot: other.slot,
                at_work: Some((other.machine, other.demand)),
            })
            .collect();
        let is_idle = |held: &&Held| {
            held.seat != own && !at_work.iter().any(|busy| busy.slot == held.slot && busy.phase == held.phase)
        };
        let idle = |held: &Held| Beside { phase: held.phase, slot: held.slot, at_work: None };
        let idle: Vec<Beside> = hub.held.values().filter(is_idle).map(idle).collect();
        at_work.into_iter().chain(idle).collect()
    }

    fn waker(&self) -> Waker {
        self.out.waker.clone()
    }
}
