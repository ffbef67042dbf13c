//! The turns of runs on a cluster, on a thread that may wait for their files.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use slackline_executor::engine::backend::{EndedRun, EngineEvent, FlowOrder, RunConfig, RunId};
use slackline_executor::engine::event::EventCallback;
use slackline_executor::engine::external_runs::JoinOutcome;
use slackline_policy::engine::{Order, Report};
use slackline_policy::plans::Plans;
use slackline_task::base::activity::{self, Duty};

use crate::clock::pause;
use crate::flows::engine::{FlowEngine, LeavingRun};
use crate::flows::session::{RunContext, YarnSession};
use crate::flows::submission::HadoopSubmission;

/// A command for the next turn.
pub(super) enum RunCommand {
    /// Add a run.
    Add(Box<Arrival>),
    /// Change a flow.
    Change { run: RunId, flow: String, change: FlowOrder },
    /// Change a row.
    Order(Order),
    /// Carry out the next decisions of the driver.
    CarryOut(Plans),
}

/// A run to be added.
pub(super) struct Arrival {
    pub(super) id: RunId,
    pub(super) session: Box<YarnSession>,
    pub(super) config: RunConfig,
    pub(super) on_event: EventCallback,
}

/// A turn: commands, a pause, and then a poll of the cluster; the last one ends all applications instead.
pub(super) struct Turn {
    pub(super) runs: Box<FlowRuns>,
    pub(super) commands: Vec<RunCommand>,
    pub(super) pause: Duration,
    pub(super) is_last: bool,
    /// For the driver.
    pub(super) reports: Vec<Report>,
}

impl Turn {
    fn take(&mut self) {
        for command in self.commands.drain(..) {
            match command {
                // The last turn submits nothing more.
                RunCommand::CarryOut(_) if self.is_last => {}
                command => self.runs.carry_out(command, &mut self.reports),
            }
        }
        if self.is_last {
            let left = self.runs.engine.stop();
            return self.runs.finish(left);
        }
        pause(self.pause);
        self.runs.engine.poll_cluster(&mut self.reports);
        let left = self.runs.engine.ended_runs(&mut self.reports);
        let notices = self.runs.engine.take_notices();
        self.runs.events.extend(notices.into_iter().map(EngineEvent::Notice));
        self.runs.finish(left);
    }
}

/// The runs on a cluster, with their engine.
pub(super) struct FlowRuns {
    pub(super) engine: FlowEngine,
    /// By the engine's number of the run.
    members: BTreeMap<u32, (RunId, RunContext)>,
    events: Vec<EngineEvent>,
}

impl FlowRuns {
    pub(super) fn new(engine: FlowEngine) -> Self {
        Self { engine, members: BTreeMap::new(), events: Vec::new() }
    }

    /// What the driver need not know, since the last call.
    pub(super) fn take_events(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.events)
    }

    fn carry_out(&mut self, command: RunCommand, reports: &mut Vec<Report>) {
        match command {
            RunCommand::Add(arrival) => self.add(*arrival),
            RunCommand::Order(order) => self.engine.order(order),
            RunCommand::CarryOut(plans) => self.engine.apply_plans(&plans),
            RunCommand::Change { run, flow, change } => {
                let number = self.members.iter().find(|(_, (id, _))| *id == run).map(|(&number, _)| number);
                match (number, change) {
                    (Some(number), FlowOrder::Override(overrides)) => {
                        self.engine.update_flow(number, &flow, overrides, reports);
                    }
                    (Some(number), FlowOrder::Cancel) => self.engine.cancel_flow(number, &flow, reports),
                    // It has left meanwhile.
                    (None, _) => {}
                }
            }
        }
    }

    fn add(&mut self, arrival: Arrival) {
        let Arrival { id, session, config, on_event } = arrival;
        let YarnSession { session, mut context, .. } = *session;
        let earlier = std::mem::take(&mut context.earlier);
        let submit = Arc::new(HadoopSubmission {
            config: context.config.clone(),
            files: context.files.clone(),
            state: context.state.clone(),
            slowstart: config.slowstart,
            worker: OnceLock::new(),
        });
        match self.engine.join(session, &config, on_event, submit, earlier) {
            JoinOutcome::From(run) => {
                self.members.insert(run, (id, context));
            }
            JoinOutcome::Ended(session, how) => {
                let session = Box::new(YarnSession::of(*session, context));
                self.events.push(EngineEvent::Ended(EndedRun { run: id, how, session }));
            }
        }
    }

    fn finish(&mut self, all: Vec<LeavingRun>) {
        for LeavingRun { run, end: how, session } in all {
            let Some((run, context)) = self.members.remove(&run) else { continue };
            let session = Box::new(YarnSession::of(session, context));
            self.events.push(EngineEvent::Ended(EndedRun { run, how, session }));
        }
    }
}

/// The thread, which ends when the scheduler is gone.
pub(super) struct TurnThread {
    begun: Sender<Turn>,
    ended: Receiver<Turn>,
    /// `None` after a panic.
    thread: Option<JoinHandle<()>>,
}

impl TurnThread {
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start() -> io::Result<Self> {
        let (begun, turns) = channel::<Turn>();
        let (done, ended) = channel();
        let work = move || {
            activity::announce("the runs on the cluster", Duty::Sole);
            for mut turn in turns {
                activity::during("take", "a turn", || turn.take());
                // The scheduler may have gone meanwhile.
                let _ = done.send(turn);
            }
        };
        let thread = Builder::new().name("runs".to_owned()).spawn(work)?;
        Ok(Self { begun, ended, thread: Some(thread) })
    }

    /// Begins a turn. Nothing else is in progress.
    pub(super) fn begin(&self, turn: Turn) {
        // The thread ends before the sender only if it panics, which the receiver tells.
        let _ = self.begun.send(turn);
    }

    /// The turn in progress, if it ends within that time.
    pub(super) fn ended(&mut self, lasts: Duration) -> Option<Turn> {
        match self.ended.recv_timeout(lasts) {
            Ok(turn) => Some(turn),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => resume_unwind(panic),
                Some(Ok(())) | None => None,
            },
        }
    }
}
