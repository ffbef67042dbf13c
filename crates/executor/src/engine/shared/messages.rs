//! Messages between the loop of a shared engine and the threads of its runs.

use std::sync::mpsc::Sender;

use slackline_model::SlotKind;
use slackline_model::instance::Arrival;
use slackline_policy::engine::{Order, Report, RowId};
use slackline_task::base::task_id::TaskId;
use slackline_task::process::spec::Spec;

use crate::engine::backend::{FlowOrder, RunId};
use crate::engine::shared::flow::DriverFlow;
use crate::fleet::{Assignment, FleetEvent, Waker};
use crate::run::error::EngineError;
use crate::run::{RunEnd, Session};
use crate::store::running_attempt::RunningAttempt;

/// A command of the loop to a run.
pub(crate) enum RunCommand {
    /// News of the fleet.
    Event(FleetEvent),
    /// The driver starts a task on a slot; held, it waits for the maps of its job.
    Begin { row: RowId, id: TaskId, slot: u32, held: bool },
    /// A running attempt has a row again.
    Adopt { number: u64, row: RowId, id: TaskId },
    /// The driver decides something else.
    Order(Order),
    /// Another run starts something on a slot.
    GiveWay(SlotKind, u32),
    /// A flow is to change.
    Change(String, FlowOrder),
    /// The wall clock has jumped: dates are other times.
    ClockJumped,
    /// Everything is to stop, to be resumed some day.
    Stop,
    /// The run has to leave, also with running tasks.
    Leave,
    /// No task of the run can start any more: it ends in its present state.
    End,
}

/// A message of a run to the loop.
pub(crate) enum RunMessage {
    /// The fleet is to start an attempt.
    Start(Assignment, Box<Spec>),
    /// The fleet is to stop one.
    Stop(u64),
    /// The driver is to know, in the time of the service.
    Reports(Vec<Report>),
    /// A flow arrives at the driver, as its remaining work with its overrides and its running attempts. A
    /// held flow without running attempts does not arrive.
    Comes {
        flow: String,
        arrival: Option<Box<(DriverFlow, Arrival)>>,
        busy: Vec<RunningAttempt>,
    },
    /// The driver is to give up a flow.
    Goes(String),
    /// The driver is to give up all its flows.
    AllGo,
    /// The run has no attempts and no reports after this number of commands.
    Idle {
        commands: u64,
        /// Whether a flow of the run is released later.
        comes_later: bool,
    },
    Ended(Result<RunEnd, EngineError>, Box<Session>),
    /// Its thread has panicked.
    Panicked,
}

/// Where a run sends to. It wakes the loop.
#[derive(Clone)]
pub(crate) struct Outbox {
    pub(crate) run: RunId,
    pub(crate) events: Sender<(RunId, RunMessage)>,
    pub(crate) waker: Waker,
}

impl Outbox {
    pub(crate) fn send(&self, event: RunMessage) {
        // A loop that has ended needs no messages.
        let _ = self.events.send((self.run, event));
        (self.waker)();
    }
}
