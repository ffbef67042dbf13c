//! Runs commands on events of a run: at its end, when a flow fails, and when a flow is predicted to miss its
//! deadline.
//!
//! `sh -c` runs the commands beside the run. The run waits for them only at its end, and at most 10 s. A
//! failed command causes a warning and does not affect the run.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use slackline_executor::engine::event::RunEvent;
use slackline_model::Time;
use slackline_task::base::clock;

use super::{Ending, Forecast, Note, Overview, Request, Sink, Stop};
use crate::run::flow_events::{Cause, Turn, Turns};
use crate::run::hook_process::{HookProcess, variable};

/// The longest wait for commands at the end of a run.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval at which they are polled.
const PAUSE: Duration = Duration::from_millis(20);

/// The command of each event; `None` for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCommands {
    /// Run when the run ends, in any way.
    pub on_end: Option<String>,
    /// Run when a flow has failed, once per flow.
    pub on_failure: Option<String>,
    /// Run when a flow is predicted to miss its deadline or has missed it, once per flow.
    pub on_late: Option<String>,
}

/// A sink that runs commands.
pub struct Hooks<F: FnMut(&str)> {
    commands: HookCommands,
    state: PathBuf,
    turns: Turns,
    /// By flow: whether `on_late` was run.
    is_reported: Vec<bool>,
    children: Vec<(&'static str, HookProcess)>,
    /// Receives a warning for each command that fails.
    warn: F,
}

impl<F: FnMut(&str)> Hooks<F> {
    /// Creates the hooks of a request. `warn` receives a warning for each command that fails.
    pub fn new(commands: HookCommands, request: &Request, warn: F) -> Self {
        let state = std::path::absolute(&request.state).unwrap_or_else(|_| request.state.clone());
        Self { commands, state, turns: Turns::default(), is_reported: Vec::new(), children: Vec::new(), warn }
    }

    /// Starts the command of an event; for a failure, with its cause if known.
    fn start(&mut self, event: &'static str, flow: &str, message: &str, cause: Option<&Cause>) {
        let line = match event {
            "end" => &self.commands.on_end,
            "failure" => &self.commands.on_failure,
            _ => &self.commands.on_late,
        };
        let Some(line) = line else { return };
        let log = cause.and_then(|cause| cause.log.as_deref());
        // The command may change its working directory.
        let log = log.map(|log| std::path::absolute(log).unwrap_or_else(|_| log.to_owned()));
        let of_cause =
            |text: fn(&Cause) -> &str| cause.map_or_else(String::new, |cause| variable(text(cause)));
        let variables = [
            ("SLACKLINE_EVENT", event.into()),
            ("SLACKLINE_FLOW", variable(flow).into()),
            ("SLACKLINE_STATE", self.state.clone().into()),
            ("SLACKLINE_MESSAGE", variable(message).into()),
            ("SLACKLINE_JOB", of_cause(|cause| &cause.job).into()),
            ("SLACKLINE_CAUSE", of_cause(|cause| &cause.message).into()),
            ("SLACKLINE_LOG", log.unwrap_or_default().into()),
        ];
        // Standard output is for the result of the run alone.
        match HookProcess::start(line, variables, "", std::io::stderr().into(), true) {
            Ok(child) => self.children.push((event, child)),
            Err(error) => (self.warn)(&format!("--on-{event}: {line:?} cannot be started: {error}")),
        }
    }

    /// Reaps commands that have ended.
    fn collect(&mut self) {
        let mut running = Vec::new();
        for (event, mut child) in std::mem::take(&mut self.children) {
            match child.try_wait() {
                Ok(None) => running.push((event, child)),
                Ok(Some(status)) => self.ended(event, status),
                Err(error) => (self.warn)(&format!("--on-{event}: cannot wait for its command: {error}")),
            }
        }
        self.children = running;
    }

    fn ended(&mut self, event: &str, status: ExitStatus) {
        if !status.success() {
            (self.warn)(&format!("--on-{event}: its command failed ({status})"));
        }
    }

    fn turn(&mut self, index: usize, turn: Turn) {
        let Some(flow) = self.turns.flows().get(index) else { return };
        let (id, deadline) = (flow.id.clone(), flow.deadline.unwrap_or_default());
        match turn {
            Turn::Failed => {
                let cause = flow.cause.clone();
                let why = cause.as_ref().map_or_else(String::new, |cause| format!(": {}", cause.sentence()));
                self.start("failure", &id, &format!("flow {id} failed{why}"), cause.as_ref());
            }
            Turn::LikelyLate { at } if !std::mem::replace(&mut self.is_reported[index], true) => {
                let message = format!(
                    "flow {id} is predicted to finish {at:.1} s after the start of the run, but its deadline is at {deadline:.1} s"
                );
                self.start("late", &id, &message, None);
            }
            Turn::DeadlinePassed if !std::mem::replace(&mut self.is_reported[index], true) => {
                let message = format!(
                    "flow {id} has not finished at its deadline, {deadline:.1} s after the start of the run"
                );
                self.start("late", &id, &message, None);
            }
            _ => {}
        }
    }
}

impl<F: FnMut(&str)> Sink for Hooks<F> {
    fn note(&mut self, note: &Note<'_>) {
        if let Note::Unrunnable { flow, job, problem } = note {
            let (job, message) = ((*job).to_owned(), (*problem).to_owned());
            let cause = Cause { job, task: None, message, log: None };
            let message = format!("flow {flow} fails: {}", cause.sentence());
            self.start("failure", flow, &message, Some(&cause));
        }
    }

    fn begin(&mut self, overview: &Overview, _: Stop) {
        self.turns = Turns::new(overview);
        self.is_reported = vec![false; overview.flows.len()];
    }

    fn happened(&mut self, now: Time, event: &RunEvent, forecast: &Forecast) {
        for (index, turn) in self.turns.take(now, event, forecast) {
            self.turn(index, turn);
        }
        if !self.children.is_empty() {
            self.collect();
        }
    }

    fn end(&mut self, ending: &Ending) {
        self.start("end", "", &ending.sentence(), None);
        let mut left = PATIENCE;
        loop {
            self.collect();
            if self.children.is_empty() {
                return;
            }
            let Some(rest) = left.checked_sub(PAUSE) else { break };
            left = rest;
            clock::pause(PAUSE);
        }
        for (event, _) in std::mem::take(&mut self.children) {
            let waited = PATIENCE.as_secs();
            (self.warn)(&format!(
                "--on-{event}: its command still runs after {waited} s and continues in the background"
            ));
        }
    }
}
