//! One engine on a cluster for several runs that join and leave.
//!
//! The runs share the polls, the table and the container ledger. Each run submits its jobs as a single run
//! does, records them in its own journal, and finds its applications again after the service was killed.
//!
//! In a turn the runs send requests to YARN and read and write their files, and both may hang. So a separate
//! thread takes the turns ([`turns`]), and the scheduler lends it the runs for each. If they are late, the
//! scheduler continues without them: the driver starts nothing until they are back, and everything else waits
//! for the next turn.

mod session;
mod turns;

use std::any::Any;
use std::time::Duration;

use slackline_executor::engine::backend::{
    self, EndedRun, EngineEvent, FlowOrder, RunConfig, RunId, SharedEngine, SharedMachine, ended_runs,
};
use slackline_executor::engine::event::EventCallback;
use slackline_executor::run::error::EngineError;
use slackline_model::draft::MachineDraft;
use slackline_model::{Instance, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, Order, Report, Start, Wakes};
use slackline_policy::plans::Plans;
use slackline_task::base::clock::RunClock;
use slackline_task::base::system::with_remedy;

use crate::clock::Stopwatch;
use crate::cluster::container_ledger::ContainerLedger;
use crate::flows::engine::{FlowEngine, Timeouts};
use crate::flows::session::YarnSession;
use crate::flows::shared_engine::turns::{Arrival, FlowRuns, RunCommand, Turn, TurnThread};

/// How long the end of the engine waits for a thread that is blocked.
const LAST_TURN: Duration = Duration::from_secs(2);

/// An engine for any number of runs.
pub(super) struct YarnSharedEngine {
    /// `None` while they take a turn.
    runs: Option<Box<FlowRuns>>,
    thread: TurnThread,
    /// For the next turn.
    commands: Vec<RunCommand>,
    clock: RunClock,
    wakes: Wakes,
    /// As of the last turn.
    machines: Vec<SharedMachine>,
    timeouts: Timeouts,
    /// How long the driver has continued without the runs.
    late: Option<Stopwatch>,
    /// Whether the last message was that they are late.
    is_late_reported: bool,
    happened: Vec<EngineEvent>,
    next_run: u32,
}

impl YarnSharedEngine {
    /// An engine on these machines.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn new(engine: FlowEngine, machines: &[MachineDraft]) -> Result<Self, EngineError> {
        let shared =
            |draft: &MachineDraft| SharedMachine { draft: draft.clone(), is_up: engine.is_up(&draft.name) };
        let no_thread =
            |error| EngineError::other(with_remedy(format!("a thread cannot be started: {error}")));
        Ok(Self {
            thread: TurnThread::start().map_err(no_thread)?,
            commands: Vec::new(),
            clock: engine.clock(),
            wakes: Wakes::default(),
            machines: machines.iter().map(shared).collect(),
            is_late_reported: false,
            timeouts: engine.timeouts().clone(),
            late: None,
            happened: Vec::new(),
            next_run: 0,
            runs: Some(Box::new(FlowRuns::new(engine))),
        })
    }

    /// Begins a turn unless one is in progress, and ends it if it ends within the time for it.
    fn turn(&mut self, is_last: bool, reports: &mut Vec<Report>) {
        let Timeouts { cycle, end, silent, .. } = self.timeouts;
        let mut lasts = if is_last { end + cycle * 2 + LAST_TURN } else { cycle * 2 };
        if let Some(runs) = self.runs.take() {
            let pause = runs.engine.time_to_next_poll(self.wakes.first());
            lasts += pause;
            let commands = std::mem::take(&mut self.commands);
            self.thread.begin(Turn { runs, commands, pause, is_last, reports: Vec::new() });
        }
        if let Some(turn) = self.thread.ended(lasts) {
            return self.take_back(turn, reports);
        }
        let late = self.late.get_or_insert_with(Stopwatch::start);
        if late.elapsed() >= silent && !std::mem::replace(&mut self.is_late_reported, true) {
            self.notice("they wait for YARN or a file system");
        }
    }

    fn notice(&mut self, state: &str) {
        self.happened.push(EngineEvent::Notice(format!("the runs on the cluster: {state}")));
    }

    /// Takes over the outcome of a turn.
    fn take_back(&mut self, turn: Turn, reports: &mut Vec<Report>) {
        let Turn { mut runs, reports: news, .. } = turn;
        reports.extend(news);
        if self.late.take().is_some() {
            // The driver could start nothing meanwhile.
            reports.push(Report::Woken);
        }
        if std::mem::take(&mut self.is_late_reported) {
            self.notice("YARN and the file system answer again");
        }
        let mut is_changed = false;
        for machine in &mut self.machines {
            let is_up = runs.engine.is_up(&machine.draft.name);
            is_changed |= std::mem::replace(&mut machine.is_up, is_up) != is_up;
        }
        self.happened.extend(is_changed.then_some(EngineEvent::MachinesChanged));
        self.happened.extend(runs.take_events());
        self.runs = Some(runs);
    }
}

impl Engine for YarnSharedEngine {
    fn capabilities(&self) -> Capabilities {
        ContainerLedger::CAPABILITIES
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        self.turn(false, reports);
        let now = self.clock.now();
        if self.runs.is_some() {
            self.wakes.report(now, reports);
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, _: &Instance) {
        self.runs.as_mut().expect("invariant: nothing starts during a turn").engine.start(start);
    }

    fn order(&mut self, order: Order) {
        match &mut self.runs {
            Some(runs) => runs.engine.order(order),
            None => self.commands.push(RunCommand::Order(order)),
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.add(at, self.clock.now());
    }

    fn is_ready(&mut self) -> bool {
        self.runs.is_some()
    }

    /// The service may add runs at any time.
    fn may_bring_flows(&mut self) -> bool {
        true
    }
}

impl SharedEngine for YarnSharedEngine {
    fn machines(&self) -> Vec<SharedMachine> {
        self.machines.clone()
    }

    fn events(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.happened)
    }

    fn add_run(
        &mut self,
        session: Box<dyn backend::Session>,
        config: RunConfig,
        on_event: EventCallback,
    ) -> Result<RunId, EngineError> {
        let session = (session as Box<dyn Any>).downcast::<YarnSession>();
        let session = session
            .map_err(|_| EngineError::other("found a session of another engine, expected one of this"))?;
        let id = RunId(self.next_run);
        self.next_run += 1;
        self.commands.push(RunCommand::Add(Box::new(Arrival { id, session, config, on_event })));
        Ok(id)
    }

    fn order_flow(&mut self, run: RunId, flow: &str, change: FlowOrder) {
        self.commands.push(RunCommand::Change { run, flow: flow.to_owned(), change });
    }

    fn wants_plans(&self) -> bool {
        true
    }

    fn planned(&mut self, plans: &Plans) {
        // Plans that are made during a turn are out of date after it.
        if self.runs.is_some() {
            self.commands.push(RunCommand::CarryOut(plans.clone()));
        }
    }

    fn stop(&mut self) -> Vec<EndedRun> {
        let mut reports = Vec::new();
        if self.runs.is_none()
            && let Some(turn) = self.thread.ended(LAST_TURN)
        {
            self.take_back(turn, &mut reports);
        }
        if self.runs.is_some() {
            self.turn(true, &mut reports);
        }
        // Runs that a file system blocks stay behind. Their journals have all their finished work.
        ended_runs(self.events())
    }
}
