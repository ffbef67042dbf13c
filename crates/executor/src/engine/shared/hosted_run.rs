//! One run of the shared engine: its session and its process engine. In a service a thread of the pool
//! (`run_pool`) does its work.
//!
//! The loop sends it events and decisions of the driver ([`RunCommand`]), in order. It sends the loop orders
//! for the fleet and reports for the driver ([`RunMessage`]), in order. Neither waits for the other. So each
//! may receive messages about rows that the other has ended: the loop drops reports of rows that the driver
//! has dropped, and the run reports each row that it cannot start as failed.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackline_model::draft::MachineDraft;
use slackline_model::quota::UserQuota;
use slackline_model::{Instance, MachineId, Time};
use slackline_policy::engine::Report;
use slackline_task::base::activity;
use slackline_task::base::clock::{RunClock, TimeOffset};

use crate::engine::backend::{FlowOrder, FlowOverrides};
use crate::engine::event::{EventCallback, FlowStatus};
use crate::engine::shared::fleet_mux::{FleetMux, Share, lock};
use crate::engine::shared::flow::{FlowSource, RunDates};
use crate::engine::shared::messages::{Outbox, RunCommand, RunMessage};
use crate::engine::work::Work;
use crate::engine::{ProcessEngine, Settings, TICK};
use crate::fleet::FleetEvent;
use crate::run::Session;
use crate::run::error::EngineError;
use crate::store::running_attempt::RunningAttempt;

/// The start data of a run.
pub(crate) struct RunStart {
    pub(crate) session: Session,
    /// The machines when it came, and those of them that are not there; it learns of changes since.
    pub(crate) machines: Vec<MachineDraft>,
    pub(crate) away: BTreeSet<MachineId>,
    /// The limit on failures of a task if its job has none.
    pub(crate) attempts_max: u16,
    pub(crate) overrides: BTreeMap<String, FlowOverrides>,
    /// The quota of its user.
    pub(crate) quota: Option<UserQuota>,
    pub(crate) settings: Settings,
    pub(crate) engine: RunClock,
    pub(crate) on_event: EventCallback,
    pub(crate) mux: Arc<Mutex<FleetMux>>,
    /// Whether the engine is for this run alone.
    pub(crate) is_alone: bool,
}

impl RunStart {
    /// Has the run ready to work; the loop learns if that cannot be.
    pub(crate) fn ready(self, out: Outbox) -> Option<HostedRun> {
        let Self { mut session, machines, away, attempts_max, overrides, quota, .. } = self;
        let Self { settings, engine, on_event, mux, is_alone, .. } = self;
        let clock = session.clock();
        let later = clock.offset_to(&engine);
        let joined = session.join(&machines, quota.as_ref()).and_then(|()| {
            let mut left = session.left().ok_or_else(|| EngineError::other("nothing is left to do"))?;
            left.machines = machines;
            Ok(Instance::new(&left)?)
        });
        let instance = match joined {
            Ok(instance) => instance,
            Err(error) => {
                out.send(RunMessage::Ended(Err(error), Box::new(session)));
                return None;
            }
        };
        let fleet = Box::new(Share { mux: mux.clone(), out: out.clone() });
        let here = |id: &String| FlowState {
            overrides: overrides.get(id).copied().unwrap_or_default(),
            has_come: false,
        };
        let flows = instance.flows().iter().map(|flow| (flow.id.clone(), here(&flow.id))).collect();
        let work = Work::of(session, instance, attempts_max);
        let local = ProcessEngine::new(work, settings, clock, on_event, fleet).without_machines(away);
        Some(HostedRun {
            local,
            flows,
            open_flow: String::new(),
            later,
            engine,
            mux,
            out,
            is_stopped: false,
            is_stopping: false,
            is_alone,
            commands: 0,
            last_idle: None,
        })
    }
}

/// Tells the loop if the thread panics.
pub(crate) struct PanicReport(pub(crate) Outbox);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send(RunMessage::Panicked);
        }
    }
}

/// A run, its engine, and the state that the loop knows of both.
pub(crate) struct HostedRun {
    local: ProcessEngine,
    /// Its flows that were not over when it came.
    flows: BTreeMap<String, FlowState>,
    /// The flow at which the search for an unfinished one begins.
    open_flow: String,
    /// How much later its time begins than that of the engine.
    later: TimeOffset,
    engine: RunClock,
    mux: Arc<Mutex<FleetMux>>,
    out: Outbox,
    /// Whether the loop has seen the failure of the engine.
    is_stopped: bool,
    /// Whether the loop has asked it to stop.
    is_stopping: bool,
    is_alone: bool,
    /// The number of commands that it has received.
    commands: u64,
    /// The last idle message: the number of commands, and whether a flow comes later.
    last_idle: Option<(u64, bool)>,
}

/// A flow of the run.
#[derive(Clone, Copy, Debug)]
struct FlowState {
    overrides: FlowOverrides,
    /// Whether the flow has arrived: it is released, and its inputs exist.
    has_come: bool,
}

impl HostedRun {
    pub(crate) fn root(&self) -> &Path {
        self.local.session().layout().root()
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.out
    }

    /// Carries out commands and due actions. Returns how long it then waits for the loop; `None` if it
    /// leaves.
    pub(crate) fn step(&mut self, commands: impl Iterator<Item = RunCommand>) -> Option<Duration> {
        let name = self.root().display().to_string();
        activity::during("work in", &name, || self.carry_out_all(commands))
    }

    fn carry_out_all(&mut self, commands: impl Iterator<Item = RunCommand>) -> Option<Duration> {
        let mut event = Vec::new();
        for command in commands {
            self.commands += 1;
            if let RunCommand::Event(news) = command {
                event.push(news);
                continue;
            }
            // In the order in which they came, and news that came together are recorded together.
            if !event.is_empty() {
                self.local.take(mem::take(&mut event));
            }
            match command {
                RunCommand::Leave => {
                    self.is_stopping = true;
                    return None;
                }
                RunCommand::End => return None,
                RunCommand::Stop => {
                    self.local.interrupt_here();
                    self.local.end();
                    self.is_stopping = true;
                }
                command => self.carry_out(command),
            }
        }
        let has_news = self.turn(event);
        if self.local.is_settled() && (self.is_stopping || self.is_stopped || !self.is_open()) {
            return None;
        }
        Some(match has_news {
            _ if self.is_stopping => TICK,
            true => Duration::ZERO,
            false => self.rest(),
        })
    }

    /// Whether a flow of it is unfinished. O(1) on average: the search continues at the flow found last.
    fn is_open(&mut self) -> bool {
        let Self { flows, local, open_flow, .. } = self;
        let (before, from) = (flows.range(..open_flow.clone()), flows.range(open_flow.clone()..));
        let found = from.chain(before).map(|(flow, _)| flow).find(|flow| local.end_of(flow).is_none());
        if let Some(flow) = found
            && flow != open_flow
        {
            open_flow.clone_from(flow);
        }
        found.is_some()
    }

    /// The engine continues by itself. How long it then waits for the loop.
    fn rest(&mut self) -> Duration {
        self.local.idle();
        if self.local.has_due() {
            return Duration::ZERO;
        }
        let until = self.local.due_in();
        if !self.local.is_quiet() {
            return until.map_or(TICK, |until| until.min(TICK));
        }
        let idle = (self.commands, until.is_some());
        if self.last_idle.replace(idle) != Some(idle) {
            self.out.send(RunMessage::Idle { commands: self.commands, comes_later: until.is_some() });
        }
        // The user of a run sees time pass.
        let most = if self.is_alone { TICK } else { QUIET };
        until.map_or(most, |until| until.min(most))
    }

    fn carry_out(&mut self, command: RunCommand) {
        match command {
            RunCommand::Begin { row, id, slot, held } => self.local.begin_task(row, id, slot, held),
            RunCommand::Adopt { number, row, id } => self.local.adopt(number, row, id),
            RunCommand::Order(order) => self.local.order_here(order),
            RunCommand::GiveWay(slot_kind, slot) => self.local.make_room(slot_kind, slot),
            RunCommand::Change(flow, FlowOrder::Override(overrides)) => self.stand(&flow, overrides),
            RunCommand::Change(flow, FlowOrder::Cancel) => self.cancel(flow),
            RunCommand::ClockJumped => self.bring_all_again(),
            RunCommand::Event(_) | RunCommand::Stop | RunCommand::Leave | RunCommand::End => {}
        }
    }

    /// Handles events, and sends the resulting messages to the loop. Returns true if there are any.
    fn turn(&mut self, event: Vec<FleetEvent>) -> bool {
        let mut reports = Vec::new();
        let coming = self.local.turn(event, &mut reports);
        for report in &mut reports {
            if let Report::Finished { at, .. } | Report::Failed { at, .. } = report {
                *at = self.later.of(*at);
            }
        }
        let has_news = !reports.is_empty() || !coming.is_empty();
        if !reports.is_empty() {
            self.out.send(RunMessage::Reports(reports));
        }
        for flow in coming {
            if let Some(here) = self.flows.get_mut(&flow) {
                here.has_come = true;
                self.bring(&flow, Vec::new());
            }
        }
        if self.local.fatal().is_some() && !mem::replace(&mut self.is_stopped, true) {
            self.out.send(RunMessage::AllGo);
        }
        has_news
    }

    fn stand(&mut self, flow: &str, overrides: FlowOverrides) {
        let Some(here) = self.flows.get_mut(flow) else { return };
        let is_new = here.overrides != overrides;
        here.overrides = overrides;
        if !is_new || !here.has_come || self.local.end_of(flow).is_some() {
            return;
        }
        self.bring_again(flow);
    }

    /// The driver drops a flow, and gets it again in its present state, with its running attempts.
    fn bring_again(&mut self, flow: &str) {
        let busy = self.local.busy(flow);
        self.local.hand_over(busy.iter().filter_map(RunningAttempt::number));
        self.bring(flow, busy);
    }

    fn bring_all_again(&mut self) {
        let come = self.flows.iter().filter(|(_, flow)| flow.has_come).map(|(id, _)| id.clone());
        for flow in come.collect::<Vec<_>>() {
            if self.local.end_of(&flow).is_none() {
                self.bring_again(&flow);
            }
        }
    }

    fn cancel(&mut self, flow: String) {
        if self.local.end_of(&flow).is_none() {
            self.local.cancel(&flow);
            self.out.send(RunMessage::Goes(flow));
        }
    }

    fn bring(&self, flow: &str, mut busy: Vec<RunningAttempt>) {
        let Some(here) = self.flows.get(flow) else { return };
        let machines = lock(&self.mux).machines().to_vec();
        let session = self.local.session();
        let source = FlowSource {
            run: self.out.run,
            workload: session.draft(),
            jobs: session.jobs(),
            done: self.local.done(),
            dates: RunDates::of(&self.local.clock, &self.engine, self.engine.now(), self.later),
        };
        // The workload was valid when the session joined, and so is its remaining part.
        let arrival = source.arrival(flow, here.overrides, &busy, &machines);
        let arrival = arrival.expect("invariant: what is left of a workload is one").map(Box::new);
        for busy in &mut busy {
            busy.since = self.later.of(Time(busy.since)).0;
        }
        self.out.send(RunMessage::Comes { flow: flow.to_owned(), arrival, busy });
    }

    /// Leaves: all records are on disk, and the loop gets the session back.
    pub(crate) fn leave(mut self) {
        if self.is_stopping {
            self.local.interrupt_here();
        }
        self.local.end();
        let is_finished = |flow: &String| self.local.end_of(flow) == Some(FlowStatus::Finished);
        let all_done = self.flows.keys().all(is_finished);
        let fatal = self.local.fatal().map(str::to_owned);
        let is_interrupted = self.is_stopping || fatal.is_some();
        let mut session = self.local.into_session();
        let end = session.ended(all_done, is_interrupted);
        let end = fatal.map_or(end, |reason| Err(EngineError::Stopped(reason)));
        self.out.send(RunMessage::Ended(end, Box::new(session)));
    }
}

/// How long a run without running tasks and timers waits.
const QUIET: Duration = Duration::from_secs(3600);
