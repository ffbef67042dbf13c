//! An engine that stays: runs come and go, share its machines, and are driven as one.
//!
//! Each run keeps what it has when it is alone: its state directory, its journal, an engine of its own ([`Local`]) that
//! commits, retries and publishes. What is shared is the fleet (`hub`), the slots and the driver. So whatever holds of a run
//! that is killed holds of each of them, and nothing of one is in the files of another.
//!
//! A flow reaches the driver as what is left of it (`flow`). When it stands in another way (it is held, or has another
//! deadline), the driver is told that it is withdrawn, and it comes again as it is then, with the attempts that are at work
//! ([`Report::Running`]): policies need to know nothing of changes.
//!
//! Machines that go, come back and come are told to every run, and once to the driver. They have numbers for good (`stock`).

mod flow;
mod hub;
mod seat;
mod stock;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use slackline_model::cluster::Group;
use slackline_model::draft::MachineDraft;
use slackline_model::{Draft, FlowId, Instance, MachineId, PhaseId, Span, Time, WallTime};
use slackline_policy::engine::{Batch, Capabilities, Faults, Lengths, Offers, Order, Report, Running, Start};
use slackline_policy::{Config, Engine};

use crate::backend::{Ended, Quotas, Resident, Seat, SeatRules, Session, SharedMachine, Standing};
use crate::clock::RunClock;
use crate::engine::ending::PATIENCE;
use crate::engine::seated::{Busy, Fate};
use crate::engine::{Local, Observer, Settings, TICK};
use crate::fleet::{Fleet, NewMachine, Prospect, Told};
use crate::machines::{self, Sight};
use crate::run::{EngineError, RunEnd};
use crate::this_machine::SessionHere;

use self::flow::Arrived;
pub(crate) use self::flow::{Dates, Source};
use self::hub::{Held, Hub, Share};
pub(crate) use self::seat::Owned;
use self::seat::Seated;
pub use self::stock::known_machines;
pub(crate) use self::stock::{Stock, former_name};

/// Machines for as many runs as come.
pub(crate) struct ResidentEngine {
    hub: Rc<RefCell<Hub>>,
    settings: Settings,
    /// The first machines, without flows.
    empty: Instance,
    clock: RunClock,
    now: Time,
    seats: BTreeMap<Seat, Seated>,
    next_seat: u32,
    /// Whose runs are that may hold only so many slots together, and how many.
    quotas: Quotas,
    /// The flows that the driver has, by its numbers.
    arrived: BTreeMap<FlowId, Arrived>,
    /// The numbers that the driver gives to the next flow and its first phase.
    next: (FlowId, PhaseId),
    /// Reports that are due at the next poll.
    due: Vec<Report>,
    wakes: BTreeSet<Time>,
    ended: Vec<Ended>,
    /// What somebody should know.
    said: Vec<String>,
    /// Whether something does not start because its machine goes too soon.
    is_barred: bool,
    /// Why no machine will come by itself, if that was said since the last one came.
    given_up: Option<String>,
    /// What its machines have to see, if they are others.
    sight: Option<Sight>,
}

impl ResidentEngine {
    /// An engine on the machines of a fleet, with a time that began so many microseconds after 1970 and has come to `seen` at
    /// least.
    ///
    /// # Errors
    /// Machines that are none.
    pub(crate) fn new(
        fleet: Box<dyn Fleet>,
        stock: Stock,
        settings: Settings,
        (started, seen): (u64, Time),
    ) -> Result<Self, EngineError> {
        let machines = stock.machines().to_vec();
        let empty = Instance::new(&Draft { machines, ..Draft::default() })?.without_flows();
        let hub = Hub::new(fleet, stock);
        Ok(Self {
            due: hub.away().iter().copied().map(Report::Down).collect(),
            hub: Rc::new(RefCell::new(hub)),
            settings,
            empty,
            clock: RunClock::since(WallTime(started), seen, 0),
            now: Time::ZERO,
            seats: BTreeMap::new(),
            next_seat: 0,
            quotas: Quotas::default(),
            arrived: BTreeMap::new(),
            next: (FlowId(0), PhaseId(0)),
            wakes: BTreeSet::new(),
            ended: Vec::new(),
            said: Vec::new(),
            is_barred: false,
            given_up: None,
            sight: None,
        })
    }

    /// The same, which keeps the file by which its machines are seen to see what it sees.
    pub(crate) fn seen_by(mut self, sight: Sight) -> Self {
        self.sight = Some(sight);
        self
    }

    /// Hears of attempts that have ended, and has every run take in what is due.
    fn hear(&mut self, patience: Duration) {
        let mut told: BTreeMap<Seat, Vec<Told>> = BTreeMap::new();
        let heard = self.hub.borrow_mut().listen(patience);
        self.now = self.clock.now();
        let has_jumped = self.see_jump();
        let seats: Vec<Seat> = self.seats.keys().copied().collect();
        for (seat, news) in heard {
            if let Some(seat) = seat {
                told.entry(seat).or_default().push(news);
                continue;
            }
            for &seat in &seats {
                told.entry(seat).or_default().push(news.clone());
            }
            self.take_in_machine(news);
        }
        for seat in seats {
            self.turn(seat, told.remove(&seat).unwrap_or_default(), has_jumped);
        }
        let later = self.wakes.split_off(&Time(self.now.0 + 1));
        if !std::mem::replace(&mut self.wakes, later).is_empty() {
            self.due.push(Report::Woken);
        }
    }

    /// The driver hears of a machine, and whoever asks what there is to say.
    fn take_in_machine(&mut self, told: Told) {
        match told {
            Told::Down { machine, why } => {
                self.due.push(Report::Down(machine));
                self.said.push(format!("machine {} is not there any more: {why}", self.name(machine)));
            }
            Told::Up(machine) => {
                self.due.push(Report::Up(machine));
                self.said.push(format!("machine {} is there again", self.name(machine)));
                self.given_up = None;
            }
            Told::Joined(NewMachine { number, .. }) => {
                let group = group(self.hub.borrow().machines()[number.index()].clone());
                self.said.push(format!("machine {} has joined", group.name));
                self.due.push(Report::Joined(group));
                self.given_up = None;
            }
            Told::Until { machine, left } => {
                let at = self.now + Span(u64::try_from(left.as_micros()).unwrap_or(u64::MAX >> 1));
                self.due.push(Report::Ends { machine, at });
            }
            Told::Said(what) => self.said.push(what),
            Told::Ended { .. } => {}
        }
    }

    fn name(&self, machine: MachineId) -> String {
        self.hub.borrow().machines()[machine.index()].name.clone()
    }

    /// Where something is left to do and nothing is at work for lack of machines, more are asked for.
    fn see_to_machines(&mut self) {
        let mut hub = self.hub.borrow_mut();
        let is_lacking = self.is_barred || hub.away().len() == hub.machines().len();
        if !is_lacking || self.arrived.is_empty() || !hub.is_idle() {
            return;
        }
        if let Prospect::Over(why) = hub.prospect(self.is_barred)
            && self.given_up.as_ref() != Some(&why)
        {
            self.said.push(why.clone());
            self.given_up = Some(why);
        }
    }

    /// Whether the wall clock has jumped. Then the driver learns the new times of all dates that it knows.
    fn see_jump(&mut self) -> bool {
        let Some(by) = self.clock.jump() else { return false };
        self.clock.set_recorded(by);
        let known =
            |(&id, seated): (&Seat, &Seated)| seated.arrived().into_iter().map(move |flow| (id, flow));
        for (id, flow) in self.seats.iter().flat_map(known).collect::<Vec<_>>() {
            self.bring_again(id, &flow);
        }
        true
    }

    /// The turn of one run.
    fn turn(&mut self, id: Seat, told: Vec<Told>, has_jumped: bool) {
        let Some(seated) = self.seats.get_mut(&id) else { return };
        if told.is_empty() && !has_jumped && seated.is_quiet(self.now) && !seated.is_over() {
            return;
        }
        let (mut reports, later) = (Vec::new(), seated.later());
        let coming = seated.with(|local| local.turn(told, &mut reports));
        let has_stopped = seated.has_just_stopped();
        for report in &mut reports {
            if let Report::Finished { row, at } | Report::Failed { row, at, .. } = report {
                *at = later.of(*at);
                self.hub.borrow_mut().release(*row);
            }
        }
        self.due.extend(reports);
        for flow in coming {
            self.bring(id, &flow);
        }
        if has_stopped {
            self.withdraw_all(id);
        }
        if self.seats.get(&id).is_some_and(Seated::is_over) {
            self.end(id, false);
        }
    }

    /// A flow comes to the driver, as what is left of it and as it stands, with what of it is at work. Nothing comes of one
    /// that is held and has nothing at work.
    fn bring(&mut self, id: Seat, flow: &str) {
        let Some(seated) = self.seats.get_mut(&id) else { return };
        let (busy, later) = (seated.with(|local| local.busy(flow)), seated.later());
        let (number, phase) = self.next;
        // The workload was one when the session came; what is left of it is one too.
        let engine = (&self.clock, self.now);
        let arrival = seated.arrival((id, flow), &busy, engine, (self.hub.borrow().machines(), phase));
        let Some((arrived, arrival)) = arrival.expect("invariant: what is left of a workload is one") else {
            return seated.note(flow, None);
        };
        seated.note(flow, Some(number));
        self.next = (FlowId(number.0 + 1), PhaseId(phase.0 + arrival.n_phases() as u32));
        self.due.push(Report::Arrived(Box::new(arrival)));
        for Busy { number: attempt, id: task, slot, since } in busy {
            let Some((phase, task)) = arrived.place(task) else { continue };
            let Some(name) = self.hub.borrow().name(id, attempt) else { continue };
            let running = Running { name, phase, task, slot, since: later.of(since) };
            self.due.push(Report::Running(running));
        }
        self.arrived.insert(number, arrived);
    }

    /// The driver gives up a flow, and gets it again as it is now, with what of it runs.
    fn bring_again(&mut self, id: Seat, flow: &str) {
        let Some(seated) = self.seats.get_mut(&id) else { return };
        let busy = seated.with(|local| local.busy(flow));
        seated.with(|local| local.hand_over(busy.iter().map(|busy| busy.number)));
        if let Some(number) = seated.take_number(flow) {
            self.withdraw(number);
        }
        self.bring(id, flow);
    }

    /// Has the driver give up a flow; its attempts are stopped by the orders that follow.
    fn withdraw(&mut self, number: FlowId) {
        self.arrived.remove(&number);
        self.due.push(Report::Withdrawn(number));
    }

    fn withdraw_all(&mut self, id: Seat) {
        let numbers = self.seats.get_mut(&id).map(Seated::take_numbers).unwrap_or_default();
        for number in numbers {
            self.withdraw(number);
        }
    }

    /// A run leaves.
    fn end(&mut self, id: Seat, is_interrupted: bool) {
        let Some(seated) = self.seats.remove(&id) else { return };
        self.arrived.retain(|_, arrived| arrived.seat != id);
        self.quotas.remove(id);
        let (how, session) = seated.close(is_interrupted);
        self.hub.borrow_mut().forget(id);
        let session = Box::new(SessionHere { session, settings: self.settings.clone() });
        self.ended.push(Ended { seat: id, how, session });
    }

    /// Time until something is due by itself.
    fn patience(&self) -> Duration {
        let of_runs = self.seats.values().filter_map(Seated::due_at).min();
        let next = [of_runs, self.wakes.first().copied()].into_iter().flatten().min();
        let until = next.map(|at| Duration::from_micros(at.since(self.now.min(at)).0));
        until.map_or(TICK, |until| until.min(TICK))
    }
}

/// A machine as the driver hears of one that joins.
fn group(machine: MachineDraft) -> Group {
    let MachineDraft { name, count, speed, slots, rack } = machine;
    Group { name, count, speed, slots, rack, first: MachineId(0) }
}

impl Engine for ResidentEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            batch: Batch::Task,
            faults: if self.hub.borrow().changes() { Faults::Tasks } else { Faults::Never },
            offers: Offers::Immediate,
            masters: None,
            lengths: Lengths::Guessed,
        }
    }

    /// Waits at most once, so that whoever drives it can see to other things.
    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        self.hear(Duration::ZERO);
        if self.due.is_empty() {
            self.seats.values_mut().for_each(Seated::idle);
            self.see_to_machines();
            let patience = self.patience();
            self.hear(patience);
        }
        if !self.due.is_empty() {
            self.is_barred = false;
        }
        reports.append(&mut self.due);
        Some(self.now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        let arrived = &self.arrived[&live.flow_of(start.phase)];
        let (id, seat) = (arrived.id(start.phase, start.first), arrived.seat);
        let held = Held { seat, phase: id.phase, slot: start.places[0].first };
        let (slot_kind, others) = (live.slot_kind_of(start.phase), self.hub.borrow().others_on(held));
        self.hub.borrow_mut().hold(start.row, held);
        for other in others {
            if let Some(other) = self.seats.get_mut(&other) {
                other.with(|local| local.give_way(slot_kind, held.slot));
            }
        }
        let Some(seated) = self.seats.get_mut(&seat) else { return };
        match start.reported_as {
            Some(name) => {
                let named = self.hub.borrow().named(name);
                if let Some((_, number)) = named {
                    seated.with(|local| local.adopt(number, start.row));
                }
            }
            None => seated.with(|local| local.begin_task(start, id)),
        }
    }

    fn order(&mut self, order: Order) {
        let seat = match order {
            Order::Go { row, .. } | Order::Hold(row) => self.hub.borrow().seat_of(row),
            Order::Kill(row) => self.hub.borrow_mut().release(row),
            Order::Refuse(name) => {
                let named = self.hub.borrow().named(name);
                if let Some((seat, number)) = named
                    && let Some(seated) = self.seats.get_mut(&seat)
                {
                    seated.with(|local| local.order(Order::Refuse(number)));
                }
                return;
            }
        };
        if let Some(seated) = seat.and_then(|seat| self.seats.get_mut(&seat)) {
            seated.with(|local| local.order(order));
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.insert(at.max(Time(self.now.0 + 1)));
    }

    fn barred(&mut self) {
        self.is_barred = true;
    }

    fn room(&mut self, flow: FlowId) -> u32 {
        let seat = self.arrived.get(&flow).map(|arrived| arrived.seat);
        self.quotas.room(seat, self.hub.borrow().held())
    }

    /// More may come as long as somebody drives it.
    fn may_bring_flows(&mut self) -> bool {
        true
    }
}

impl Resident for ResidentEngine {
    fn empty(&self) -> &Instance {
        &self.empty
    }

    fn machines(&self) -> Vec<SharedMachine> {
        let hub = self.hub.borrow();
        let all = (0..).map(MachineId).zip(hub.machines());
        all.map(|(id, draft)| SharedMachine { draft: draft.clone(), is_up: !hub.away().contains(&id) })
            .collect()
    }

    fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    fn seat(
        &mut self,
        session: Box<dyn Session>,
        rules: SeatRules,
        observer: Box<dyn Observer>,
    ) -> Result<Seat, EngineError> {
        let here = session.into_any().downcast::<SessionHere>();
        let SessionHere { mut session, .. } = *here
            .map_err(|_| EngineError::other("found a session of another engine, expected one of this"))?;
        let seat = Seat(self.next_seat);
        self.next_seat += 1;
        let Some(mut left) = session.left() else {
            let session = Box::new(SessionHere { session, settings: self.settings.clone() });
            let how = if session.obstacles().is_empty() { RunEnd::Done } else { RunEnd::Failed };
            self.ended.push(Ended { seat, how: Ok(how), session });
            return Ok(seat);
        };
        let (machines, away) = {
            let hub = self.hub.borrow();
            machines::fits(session.jobs(), hub.machines(), hub.capacities())?;
            (hub.machines().to_vec(), hub.away().clone())
        };
        session.join(&machines)?;
        left.machines = machines;
        let instance = Instance::new(&left)?;
        let clock = session.clock();
        let later = clock.later(&self.clock);
        let fleet = Box::new(Share { hub: self.hub.clone(), seat });
        let (settings, mut config) =
            (self.settings.clone(), Config::plain().with_attempts_max(rules.attempts_max));
        let seated = Seated::new(Owned { session, instance }, later, &rules.standings, |owned| {
            let work = owned.session.work(&owned.instance, &mut config);
            Local::new(work, settings, clock, observer, fleet).without_machines(away)
        });
        self.seats.insert(seat, seated);
        self.quotas.add(seat, rules.quota);
        Ok(seat)
    }

    fn stand(&mut self, seat: Seat, flow: &str, standing: Standing) {
        let Some(seated) = self.seats.get_mut(&seat) else { return };
        if seated.stand(flow, standing) {
            self.bring_again(seat, flow);
        }
    }

    fn cancel(&mut self, seat: Seat, flow: &str) {
        let Some(seated) = self.seats.get_mut(&seat) else { return };
        if seated.with(|local| local.fate(flow)) != Fate::Open {
            return;
        }
        seated.with(|local| local.cancel(flow));
        if let Some(number) = seated.take_number(flow) {
            self.withdraw(number);
        }
    }

    fn seat_of(&self, flow: FlowId) -> Option<Seat> {
        self.arrived.get(&flow).map(|arrived| arrived.seat)
    }

    fn ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        self.hub.borrow().waker()
    }

    fn stop(&mut self) -> Vec<Ended> {
        for seated in self.seats.values_mut() {
            seated.stop();
        }
        let until = self.clock.now().0 + PATIENCE.as_micros() as u64;
        while self.clock.now().0 < until && !self.seats.values().all(Seated::is_settled) {
            let left = Duration::from_micros(until.saturating_sub(self.clock.now().0));
            let heard = self.hub.borrow_mut().listen(left);
            for (seat, news) in heard {
                let hears = |id: &Seat| seat.is_none_or(|seat| seat == *id);
                for (_, seated) in self.seats.iter_mut().filter(|(id, _)| hears(id)) {
                    seated.with(|local| local.hear_of(news.clone()));
                }
            }
        }
        let seats: Vec<Seat> = self.seats.keys().copied().collect();
        for seat in seats {
            self.end(seat, true);
        }
        self.ended()
    }
}
