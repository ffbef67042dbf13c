//! The engine of processes: runs on the same machines under one driver. Runs join and leave a service while
//! it works; `slackline run` has an engine for one run, which ends with it (`for_run`).
//!
//! Each run has a state directory, a journal, and a `ProcessEngine` that commits, retries and publishes. Runs
//! share the fleet (`fleet_mux`), the slots and the driver. No run writes into the files of another.
//!
//! The driver receives a flow as its remaining work (`flow`). When the flow changes (it is held, or gets
//! another deadline), the engine withdraws it and submits it again in its new state, with its running
//! attempts ([`Report::Running`]). So policies need not handle changes.
//!
//! Threads (`run_pool`) do all work on the files of the runs (`hosted_run`) of a service. The loop listens to
//! the fleet, to these threads and to the driver, and waits for no file. A single run works in the loop.
//!
//! Every run learns of machines that leave, return and join; the driver learns of them once. Machines have
//! permanent numbers (`machine_table`).

pub(crate) mod fleet_mux;
pub(crate) mod flow;
pub(crate) mod hosted_run;
pub mod machine_table;
pub(crate) mod messages;
mod run_pool;
pub(crate) mod session;

pub(crate) use crate::engine::shared::machine_table::MachineTable;
pub use crate::engine::shared::machine_table::known_machines;

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackline_model::cluster::Group;
use slackline_model::draft::MachineDraft;
use slackline_model::instance::Arrival;
use slackline_model::{Draft, FlowId, Instance, MachineId, PhaseId, Span, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{
    Batch, Capabilities, Faults, Lengths, Offers, Order, Report, Running, Start, Wakes,
};
use slackline_task::base::clock::RunClock;
use slackline_task::process::spec::Spec;

use crate::engine::backend::{
    self, EndedRun, EngineEvent, FlowOrder, RunConfig, RunId, SharedEngine, SharedMachine, ended_runs,
};
use crate::engine::ending::PATIENCE;
use crate::engine::event::EventCallback;
use crate::engine::machines::visibility_check::VisibilityCheck;
use crate::engine::process_session::ProcessSession;
use crate::engine::shared::fleet_mux::{FleetMux, HeldSlot, lock};
use crate::engine::shared::flow::DriverFlow;
use crate::engine::shared::hosted_run::{HostedRun, RunStart};
use crate::engine::shared::messages::{Outbox, RunCommand, RunMessage};
use crate::engine::shared::run_pool::RunPool;
use crate::engine::{Settings, TICK};
use crate::fleet::{Assignment, Availability, Fleet, FleetEvent, NewMachine};
use crate::run::error::EngineError;
use crate::run::limits::check_limits;
use crate::run::{RunEnd, Session};
use crate::store::running_attempt::{RunningAttempt, SlotHolder};

/// A run, as the loop knows it.
struct RunHandle {
    commands: Box<dyn Fn(RunCommand)>,
    /// How many commands were sent, and after how many the run was idle last.
    sent: Cell<u64>,
    idle_after: Option<u64>,
    /// Whether a flow of the run is released later.
    comes_later: bool,
    /// The numbers of its flows that the driver has.
    numbers: BTreeMap<String, FlowId>,
}

impl RunHandle {
    /// Sends a command. A run that has ended has reported so.
    fn send(&self, command: RunCommand) {
        (self.commands)(command);
        self.sent.set(self.sent.get() + 1);
    }

    /// Whether no attempt of the run runs or is about to, after all commands so far.
    fn is_idle(&self) -> bool {
        self.idle_after == Some(self.sent.get())
    }
}

/// How long runs with running tasks may take to leave.
const LEAVE: Duration = Duration::from_millis(500);

/// The ids of the driver.
struct DriverIds {
    /// The attempts that were reported to it as running ([`Report::Running`]), by their names, until it has
    /// decided.
    named: BTreeMap<u64, (RunId, u64)>,
    /// Its flows.
    arrived: BTreeMap<FlowId, DriverFlow>,
    /// The numbers that it gives to the next flow and its first phase.
    next: (FlowId, PhaseId),
}

/// Why tasks do not start although slots are free.
#[derive(Default)]
struct Shortage {
    /// Whether a task does not start because its machine leaves too soon.
    is_barred: bool,
    /// Why no machine will join, if the fleet reported this since the last one joined.
    given_up: Option<String>,
    /// Whether nothing of its run can start any more.
    is_stuck: bool,
}

/// Machines for as many runs as come.
pub(crate) struct SharedProcessEngine {
    fleet: Box<dyn Fleet>,
    mux: Arc<Mutex<FleetMux>>,
    settings: Settings,
    clock: RunClock,
    now: Time,
    runs: BTreeMap<RunId, RunHandle>,
    next_run_id: u32,
    /// What runs tell, and where they send it.
    events: Receiver<(RunId, RunMessage)>,
    out: Sender<(RunId, RunMessage)>,
    driver_ids: DriverIds,
    /// Reports that are due at the next poll.
    due: Vec<Report>,
    wakes: Wakes,
    /// What happened since it was asked last.
    happened: Vec<EngineEvent>,
    shortage: Shortage,
    /// What its machines have to see, if they are others.
    visibility_check: Option<VisibilityCheck>,
    /// Whether it is for one run and ends with it.
    is_alone: bool,
    /// The threads that work on the runs of a service.
    pool: Arc<RunPool>,
    /// The run of an engine for one, which works in the loop: no thread has to be woken for each task.
    run_here: Option<RunHere>,
}

/// A run that works in the loop.
struct RunHere {
    run: HostedRun,
    commands: Receiver<RunCommand>,
    /// How long it waits.
    patience: Duration,
}

impl SharedProcessEngine {
    /// An engine on the machines of a fleet, with its clock.
    ///
    /// # Errors
    /// Invalid machines.
    pub(crate) fn new(
        fleet: Box<dyn Fleet>,
        table: MachineTable,
        settings: Settings,
        clock: RunClock,
    ) -> Result<Self, EngineError> {
        let machines = table.machines().to_vec();
        // Refuses invalid machines.
        Instance::new(&Draft { machines, ..Draft::default() })?;
        let mux = FleetMux::new(fleet.as_ref(), table, false);
        let (out, events) = channel();
        Ok(Self {
            due: mux.away().iter().copied().map(Report::Down).collect(),
            fleet,
            mux: Arc::new(Mutex::new(mux)),
            settings,
            clock,
            now: Time::ZERO,
            runs: BTreeMap::new(),
            next_run_id: 0,
            events,
            out,
            driver_ids: DriverIds {
                named: BTreeMap::new(),
                arrived: BTreeMap::new(),
                next: (FlowId(0), PhaseId(0)),
            },
            wakes: Wakes::default(),
            happened: Vec::new(),
            shortage: Shortage::default(),
            visibility_check: None,
            is_alone: false,
            pool: Arc::new(RunPool::new()),
            run_here: None,
        })
    }

    /// An engine for one run, in its time and on its machines.
    ///
    /// # Errors
    /// Invalid machines.
    pub(crate) fn for_run(
        fleet: Box<dyn Fleet>,
        session: &Session,
        settings: Settings,
    ) -> Result<Self, EngineError> {
        let table = || MachineTable::fixed(session.draft().machines.clone());
        let mux = FleetMux::new(fleet.as_ref(), table(), true);
        let engine = Self::new(fleet, table(), settings, session.clock())?;
        Ok(Self { mux: Arc::new(Mutex::new(mux)), is_alone: true, ..engine })
    }

    /// The same engine, which keeps the file that its machines must see.
    pub(crate) fn seen_by(mut self, visibility_check: VisibilityCheck) -> Self {
        self.visibility_check = Some(visibility_check);
        self
    }

    /// Receives events of the fleet and messages of the runs, and forwards them to the runs and the driver.
    fn hear(&mut self, patience: Duration) {
        self.listen(patience);
        self.now = self.clock.now();
        self.work_here();
        // Without any thread the run was refused when it was added.
        let _ = self.pool.keep_working();
        if let Some(by) = self.clock.jump() {
            self.clock.set_recorded(by);
            // The driver learns the new times of all dates that it knows.
            self.runs.values().for_each(|run| run.send(RunCommand::ClockJumped));
        }
        while let Ok((run_id, event)) = self.events.try_recv() {
            self.take_in(run_id, event);
        }
        self.wakes.report(self.now, &mut self.due);
    }

    /// Makes the run of a single-run engine carry out its commands and due actions.
    fn work_here(&mut self) {
        let Some(mut here) = self.run_here.take() else { return };
        match here.run.step(here.commands.try_iter()) {
            Some(patience) => self.run_here = Some(RunHere { patience, ..here }),
            None => here.run.leave(),
        }
    }

    /// Waits for news of the fleet, as [`Fleet::next`], and tells all there is: of attempts the run they are
    /// of, of machines all runs.
    fn listen(&mut self, mut patience: Duration) {
        while let Some(event) = self.fleet.next(patience) {
            patience = Duration::ZERO;
            let news = lock(&self.mux).translated(event);
            match news {
                None => {}
                Some((Some(run_id), news)) => self.send(run_id, RunCommand::Event(news)),
                Some((None, news)) => {
                    for run in self.runs.values() {
                        run.send(RunCommand::Event(news.clone()));
                    }
                    self.now = self.clock.now();
                    self.take_in_machine(news);
                }
            }
        }
    }

    fn send(&self, run_id: RunId, command: RunCommand) {
        if let Some(run) = self.runs.get(&run_id) {
            run.send(command);
        }
    }

    /// Handles a message of a run.
    fn take_in(&mut self, id: RunId, event: RunMessage) {
        match event {
            RunMessage::Start(attempt, spec) => self.start_attempt(id, attempt, &spec),
            RunMessage::Stop(attempt) => {
                let name = lock(&self.mux).name(id, attempt);
                if let Some(name) = name {
                    self.fleet.stop(name);
                }
            }
            RunMessage::Reports(reports) => {
                let mut mux = lock(&self.mux);
                // The driver may have dropped a row meanwhile.
                self.due.extend(reports.into_iter().filter(|report| match report {
                    Report::Finished { row, .. } | Report::Failed { row, .. } => mux.release(*row).is_some(),
                    _ => true,
                }));
            }
            RunMessage::Comes { flow, arrival, busy } => {
                self.bring(id, flow, arrival.map(|arrival| *arrival), busy);
            }
            RunMessage::Goes(flow) => {
                if let Some(number) = self.take_number(id, &flow) {
                    self.withdraw(number);
                }
            }
            RunMessage::AllGo => self.withdraw_all(id),
            RunMessage::Idle { commands, comes_later } => {
                if let Some(run) = self.runs.get_mut(&id) {
                    (run.idle_after, run.comes_later) = (Some(commands), comes_later);
                }
            }
            RunMessage::Ended(how, session) => self.end(id, how, *session),
            RunMessage::Panicked => panic!("a run ended in the middle of something"),
        }
    }

    /// Has the fleet start an attempt of a run.
    fn start_attempt(&mut self, run_id: RunId, attempt: Assignment, spec: &Spec) {
        let begun = lock(&self.mux).begin(run_id, attempt);
        // If the machine left, the run is about to learn of it.
        let Some(of_fleet) = begun else { return };
        if let Err(error) = self.fleet.start(of_fleet, spec) {
            lock(&self.mux).undo(of_fleet.number);
            let event = FleetEvent::Ended { attempt: attempt.number, report: Err(error.to_string()) };
            self.send(run_id, RunCommand::Event(event));
        }
    }

    /// Reports a machine to the driver, and its message to the commander.
    fn take_in_machine(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Down { machine, why } => {
                self.due.push(Report::Down(machine));
                self.machines_changed(format!(
                    "machine {} is no longer available: {why}",
                    self.name(machine)
                ));
            }
            FleetEvent::Up(machine) => {
                self.due.push(Report::Up(machine));
                self.machines_changed(format!("machine {} is available again", self.name(machine)));
                self.shortage.given_up = None;
            }
            FleetEvent::Joined(NewMachine { number, .. }) => {
                let group = group(lock(&self.mux).machines()[number.index()].clone());
                self.machines_changed(format!("machine {} has joined", group.name));
                self.due.push(Report::Joined(group));
                self.shortage.given_up = None;
            }
            FleetEvent::Until { machine, left } => {
                let at = self.now + Span(u64::try_from(left.as_micros()).unwrap_or(u64::MAX >> 1));
                self.due.push(Report::Ends { machine, at });
            }
            FleetEvent::Notice(what) => self.happened.push(EngineEvent::Notice(what)),
            FleetEvent::Ended { .. } => {}
        }
    }

    fn machines_changed(&mut self, notice: String) {
        self.happened.extend([EngineEvent::Notice(notice), EngineEvent::MachinesChanged]);
    }

    fn name(&self, machine: MachineId) -> String {
        lock(&self.mux).machines()[machine.index()].name.clone()
    }

    /// Where something is left to do and nothing runs for lack of machines, more are asked for. An engine for
    /// one run ends when none will come, or when nothing can start although there are machines.
    fn see_to_machines(&mut self) {
        if self.runs.is_empty() || !self.runs.values().all(RunHandle::is_idle) {
            return;
        }
        let comes_later = self.wakes.first().is_some() || self.runs.values().any(|run| run.comes_later);
        let is_last = self.is_alone && !comes_later;
        let mux = lock(&self.mux);
        let is_lacking = self.shortage.is_barred || mux.away().len() == mux.machines().len();
        if !mux.is_idle() || (!is_lacking && !is_last) {
            return;
        }
        drop(mux);
        let has_left = !self.driver_ids.arrived.is_empty();
        let availability = if is_lacking && has_left {
            self.fleet.availability(self.shortage.is_barred)
        } else {
            Availability::Same
        };
        match availability {
            Availability::Over(why) if self.shortage.given_up.as_ref() != Some(&why) => {
                self.happened.push(EngineEvent::Notice(why.clone()));
                self.shortage.given_up = Some(why);
            }
            Availability::Same => self.shortage.is_stuck = is_last,
            Availability::Over(_) | Availability::Coming => {}
        }
    }

    /// Brings a flow to the driver, after withdrawing its earlier version.
    fn bring(
        &mut self,
        id: RunId,
        flow: String,
        arrival: Option<(DriverFlow, Arrival)>,
        busy: Vec<RunningAttempt>,
    ) {
        if let Some(number) = self.take_number(id, &flow) {
            self.withdraw(number);
        }
        let (Some(seated), Some((mut arrived, arrival))) = (self.runs.get_mut(&id), arrival) else { return };
        let (number, phase) = self.driver_ids.next;
        seated.numbers.insert(flow, number);
        self.driver_ids.next = (FlowId(number.0 + 1), PhaseId(phase.0 + arrival.n_phases() as u32));
        arrived.begin_at(phase);
        self.due.push(Report::Arrived(Box::new(arrival)));
        let mux = lock(&self.mux);
        for attempt in busy {
            let Some((phase, task)) = arrived.place(attempt.id) else { continue };
            let Some(SlotHolder { number, slot }) = attempt.holder else { continue };
            let Some(name) = mux.name(id, number) else { continue };
            self.driver_ids.named.insert(name, (id, number));
            let since = Time(attempt.since);
            self.due.push(Report::Running(Running { name, phase, task, slot, since }));
        }
        self.driver_ids.arrived.insert(number, arrived);
    }

    /// The driver is not to know a flow by its number any more, which is given.
    fn take_number(&mut self, id: RunId, flow: &str) -> Option<FlowId> {
        self.runs.get_mut(&id)?.numbers.remove(flow)
    }

    /// Has the driver give up a flow; its attempts are stopped by the orders that follow.
    fn withdraw(&mut self, number: FlowId) {
        self.driver_ids.arrived.remove(&number);
        self.due.push(Report::Withdrawn(number));
    }

    fn withdraw_all(&mut self, id: RunId) {
        let numbers = self.runs.get_mut(&id).map(|seated| std::mem::take(&mut seated.numbers));
        for number in numbers.unwrap_or_default().into_values() {
            self.withdraw(number);
        }
    }

    fn end(&mut self, id: RunId, how: Result<RunEnd, EngineError>, session: crate::run::Session) {
        // The driver may have rows of it whose end it does not know.
        self.withdraw_all(id);
        self.runs.remove(&id);
        self.driver_ids.named.retain(|_, (run_id, _)| *run_id != id);
        lock(&self.mux).forget(id);
        let session = Box::new(ProcessSession::new(session, self.settings.clone()));
        self.happened.push(EngineEvent::Ended(EndedRun { run: id, how, session }));
    }

    /// Time until something is due by itself.
    fn patience(&self) -> Duration {
        let until = self.wakes.first().map(|at| Duration::from_micros(at.since(self.now.min(at)).0));
        let here = self.run_here.as_ref().map(|here| here.patience);
        [until, here].into_iter().flatten().fold(TICK, Duration::min)
    }
}

/// A machine as the driver learns of one that joins.
fn group(machine: MachineDraft) -> Group {
    let MachineDraft { name, count, speed, slots, rack } = machine;
    Group { name, count, speed, slots, rack, first: MachineId(0) }
}

impl Engine for SharedProcessEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            batch: Batch::Task,
            faults: if lock(&self.mux).changes() { Faults::Tasks } else { Faults::Never },
            offers: Offers::Immediate,
            ams: None,
            lengths: Lengths::Guessed,
        }
    }

    /// Waits at most once, so that the driver can do other things.
    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        self.hear(Duration::ZERO);
        if self.due.is_empty() {
            self.see_to_machines();
            let given_up = self.shortage.given_up.clone().filter(|_| self.is_alone);
            if self.shortage.is_stuck || given_up.is_some() {
                reports.extend(given_up.map(Report::GaveUp));
                return None;
            }
            let patience = self.patience();
            self.hear(patience);
        }
        if !self.due.is_empty() {
            self.shortage.is_barred = false;
        }
        reports.append(&mut self.due);
        Some(self.now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        let arrived = &self.driver_ids.arrived[&live.flow_of(start.phase)];
        let (id, run_id, row) = (arrived.id(start.phase, start.first), arrived.run, start.row);
        let held = HeldSlot { run: run_id, phase: id.phase, slot: start.places[0].first };
        let slot_kind = live.slot_kind_of(start.phase);
        let others = {
            let mut mux = lock(&self.mux);
            mux.hold(row, held);
            mux.others_on(held)
        };
        for other in others {
            self.send(other, RunCommand::GiveWay(slot_kind, held.slot));
        }
        let named = start.reported_as.and_then(|name| self.driver_ids.named.remove(&name));
        self.send(
            run_id,
            match named {
                Some((_, number)) => RunCommand::Adopt { number, row, id },
                None => RunCommand::Begin { row, id, slot: held.slot, held: start.held },
            },
        );
    }

    fn order(&mut self, order: Order) {
        let (run_id, order) = match order {
            Order::Go { row, .. } | Order::Hold(row) => (lock(&self.mux).run_of(row), order),
            Order::Kill(row) => (lock(&self.mux).release(row), order),
            Order::Refuse(name) => match self.driver_ids.named.remove(&name) {
                Some((run_id, number)) => (Some(run_id), Order::Refuse(number)),
                None => return,
            },
        };
        if let Some(run_id) = run_id {
            self.send(run_id, RunCommand::Order(order));
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.add(at, self.now);
    }

    fn blocked_by_deadline(&mut self) {
        self.shortage.is_barred = true;
    }

    /// More may come as long as a process drives it.
    fn may_bring_flows(&mut self) -> bool {
        true
    }
}

impl SharedEngine for SharedProcessEngine {
    fn machines(&self) -> Vec<SharedMachine> {
        let mux = lock(&self.mux);
        let all = (0..).map(MachineId).zip(mux.machines());
        all.map(|(id, draft)| SharedMachine { draft: draft.clone(), is_up: !mux.away().contains(&id) })
            .collect()
    }

    fn events(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.happened)
    }

    fn add_run(
        &mut self,
        session: Box<dyn backend::Session>,
        rules: RunConfig,
        on_event: EventCallback,
    ) -> Result<RunId, EngineError> {
        let here = (session as Box<dyn Any>).downcast::<ProcessSession>();
        let ProcessSession { session, .. } = *here
            .map_err(|_| EngineError::other("found a session of another engine, expected one of this"))?;
        let run_id = RunId(self.next_run_id);
        self.next_run_id += 1;
        if session.left().is_none() {
            let how = if session.obstacles().is_empty() { RunEnd::Done } else { RunEnd::Failed };
            let session = Box::new(ProcessSession::new(session, self.settings.clone()));
            self.happened.push(EngineEvent::Ended(EndedRun { run: run_id, how: Ok(how), session }));
            return Ok(run_id);
        }
        let (machines, away) = {
            let mux = lock(&self.mux);
            if !self.is_alone {
                check_limits(session.jobs(), mux.machines(), mux.capacities())?;
            }
            (mux.machines().to_vec(), mux.away().clone())
        };
        let RunConfig { attempts_max, overrides, quota, .. } = rules;
        let start = RunStart {
            session,
            machines,
            away,
            attempts_max,
            overrides,
            quota,
            settings: self.settings.clone(),
            engine: self.clock,
            on_event,
            mux: self.mux.clone(),
            is_alone: self.is_alone,
        };
        let waker = if self.is_alone { Arc::new(|| {}) } else { self.fleet.waker() };
        let out = Outbox { run: run_id, events: self.out.clone(), waker };
        let commands: Box<dyn Fn(RunCommand)> = if self.is_alone {
            let (sender, commands) = channel();
            let ready = start.ready(out);
            self.run_here = ready.map(|run| RunHere { run, commands, patience: Duration::ZERO });
            Box::new(move |command| drop(sender.send(command)))
        } else {
            self.pool.add(run_id, start, out)?;
            let pool = self.pool.clone();
            Box::new(move |command| pool.send(run_id, command))
        };
        self.runs.insert(
            run_id,
            RunHandle {
                commands,
                sent: Cell::new(0),
                idle_after: None,
                comes_later: false,
                numbers: BTreeMap::new(),
            },
        );
        Ok(run_id)
    }

    fn order_flow(&mut self, run_id: RunId, flow: &str, change: FlowOrder) {
        if change == FlowOrder::Cancel
            && let Some(number) = self.take_number(run_id, flow)
        {
            self.withdraw(number);
        }
        self.send(run_id, RunCommand::Change(flow.to_owned(), change));
    }

    fn run_of(&self, flow: FlowId) -> Option<RunId> {
        self.driver_ids.arrived.get(&flow).map(|arrived| arrived.run)
    }

    fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        self.fleet.waker()
    }

    fn stop(&mut self) -> Vec<EndedRun> {
        for run in self.runs.values() {
            run.send(if self.shortage.is_stuck { RunCommand::End } else { RunCommand::Stop });
        }
        self.wait_for_ends(PATIENCE);
        self.runs.values().for_each(|run| run.send(RunCommand::Leave));
        // A run whose thread is blocked stays behind. Its journal has all its finished work.
        self.wait_for_ends(LEAVE);
        ended_runs(self.events())
    }
}

impl SharedProcessEngine {
    /// Waits until all runs have left, at most for that time.
    fn wait_for_ends(&mut self, patience: Duration) {
        let until = self.clock.now().0 + patience.as_micros() as u64;
        self.hear(Duration::ZERO);
        while !self.runs.is_empty() && self.clock.now().0 < until {
            let left = Duration::from_micros(until.saturating_sub(self.clock.now().0));
            self.hear(left.min(self.patience()));
        }
    }
}
