//! One fleet that several runs share: each starts attempts by its own numbers, and hears of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use slackline_model::PhaseKind;
use slackline_policy::engine::RowId;

use crate::backend::Seat;
use crate::fleet::{Assignment, Beside, Capacity, Fleet, Told, Waker};
use crate::task::Spec;

/// A fleet, and what each run has on it.
pub(super) struct Hub {
    fleet: Box<dyn Fleet>,
    /// The number of the next attempt on the fleet.
    next: u64,
    /// What is at work, by its number on the fleet.
    at_work: BTreeMap<u64, (Seat, Assignment)>,
    /// The slots that rows of the driver hold.
    held: BTreeMap<RowId, Held>,
}

/// A slot that a row holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) seat: Seat,
    pub(super) phase: PhaseKind,
    pub(super) slot: u32,
}

impl Hub {
    pub(super) fn new(fleet: Box<dyn Fleet>) -> Self {
        Self { fleet, next: 0, at_work: BTreeMap::new(), held: BTreeMap::new() }
    }

    /// Waits for news, as [`Fleet::next`], and gives all there is, each with the run it is of.
    pub(super) fn listen(&mut self, patience: Duration) -> Vec<(Seat, Told)> {
        let (mut heard, mut patience) = (Vec::new(), patience);
        while let Some(told) = self.fleet.next(patience) {
            patience = Duration::ZERO;
            // This machine does not go.
            let Told::Ended { attempt, report } = told else { continue };
            if let Some((seat, assignment)) = self.at_work.remove(&attempt) {
                heard.push((seat, Told::Ended { attempt: assignment.number, report }));
            }
        }
        heard
    }

    pub(super) fn waker(&self) -> Waker {
        self.fleet.waker()
    }

    /// A row holds a slot.
    pub(super) fn hold(&mut self, row: RowId, held: Held) {
        self.held.insert(row, held);
    }

    /// A row is over; whose it was.
    pub(super) fn release(&mut self, row: RowId) -> Option<Seat> {
        self.held.remove(&row).map(|held| held.seat)
    }

    /// Whose a row is.
    pub(super) fn seat_of(&self, row: RowId) -> Option<Seat> {
        self.held.get(&row).map(|held| held.seat)
    }

    /// The runs that have an attempt at work on a slot, but for one of them.
    pub(super) fn others_on(&self, held: Held) -> Vec<Seat> {
        let on = |(seat, other): &(Seat, Assignment)| {
            *seat != held.seat && other.slot == held.slot && other.id.phase == held.phase
        };
        self.at_work.values().filter(|one| on(one)).map(|(seat, _)| *seat).collect()
    }

    /// What an attempt of a run is called on the fleet; none of one that is not at work.
    pub(super) fn name(&self, seat: Seat, attempt: u64) -> Option<u64> {
        let is_it = |(of, assignment): &(Seat, Assignment)| *of == seat && assignment.number == attempt;
        self.at_work.iter().find(|(_, one)| is_it(one)).map(|(&name, _)| name)
    }

    /// The attempt of that name, by its run and its number there.
    pub(super) fn named(&self, name: u64) -> Option<(Seat, u64)> {
        self.at_work.get(&name).map(|(seat, assignment)| (*seat, assignment.number))
    }

    /// Nothing is heard of a run any more.
    pub(super) fn forget(&mut self, seat: Seat) {
        self.at_work.retain(|_, (of, _)| *of != seat);
        self.held.retain(|_, held| held.seat != seat);
    }
}

/// The fleet as one of the runs sees it.
pub(super) struct Share {
    pub(super) hub: Rc<RefCell<Hub>>,
    pub(super) seat: Seat,
}

impl Fleet for Share {
    fn machines(&self) -> Vec<Capacity> {
        self.hub.borrow().fleet.machines()
    }

    fn start(&mut self, attempt: Assignment, spec: &Spec) -> io::Result<()> {
        let mut hub = self.hub.borrow_mut();
        let number = hub.next;
        hub.next += 1;
        hub.fleet.start(Assignment { number, ..attempt }, spec)?;
        hub.at_work.insert(number, (self.seat, attempt));
        Ok(())
    }

    fn stop(&mut self, attempt: u64) {
        let mut hub = self.hub.borrow_mut();
        if let Some(name) = hub.name(self.seat, attempt) {
            hub.fleet.stop(name);
        }
    }

    /// Whoever listens for all tells each what it has to hear.
    fn next(&mut self, _: Duration) -> Option<Told> {
        None
    }

    fn beside(&self) -> Vec<Beside> {
        let hub = self.hub.borrow();
        let others = hub.at_work.values().filter(|(seat, _)| *seat != self.seat);
        let at_work: Vec<Beside> = others
            .map(|(_, other)| Beside {
                phase: other.id.phase,
                slot: other.slot,
                at_work: Some((other.machine, other.demand)),
            })
            .collect();
        let is_idle = |held: &&Held| {
            held.seat != self.seat
                && !at_work.iter().any(|busy| busy.slot == held.slot && busy.phase == held.phase)
        };
        let idle = |held: &Held| Beside { phase: held.phase, slot: held.slot, at_work: None };
        let idle: Vec<Beside> = hub.held.values().filter(is_idle).map(idle).collect();
        at_work.into_iter().chain(idle).collect()
    }

    fn waker(&self) -> Waker {
        self.hub.borrow().waker()
    }
}
