//! Commands of clients, and their answers.

mod cancel;
mod change;
mod hold;
pub(super) mod submit;

use slackline_model::WallTime;
use slackline_task::base::clock::ClockReading;

use crate::api::{Accepted, Change};
use crate::state::auth::{Principal, Role};
use crate::state::record::{Record, Rerun, SubmissionSpec};
use crate::state::submissions::Entry;
use crate::state::{ServiceState, Transition};

/// A change of the state.
#[derive(Clone, Debug)]
pub enum Command {
    /// Submit a flow file, or add a schedule.
    Submit {
        /// The submission, with the facts of its file.
        wanted: Box<SubmissionSpec>,
        /// The error of a deadline in the request that has passed. The submission is refused.
        passed: Option<String>,
    },
    /// Cancel a submission, or one flow of it.
    Cancel { number: u64, flow: Option<String> },
    /// Hold or resume a submission, or one flow of it.
    Hold { number: u64, flow: Option<String>, held: bool },
    /// Change a deadline, weight or priority.
    Change {
        number: u64,
        /// The change, as the client sent it.
        change: Change,
        /// The parsed deadline of `change`, if it has one.
        deadline: Option<WallTime>,
    },
    /// Submit the flows of a schedule now, or for one of its past times.
    Run { name: String, past: Option<WallTime> },
    /// Run a submission that has ended again.
    Rerun { number: u64, choice: Rerun },
    /// Remove a schedule.
    Remove(String),
    /// Pause or resume a schedule.
    Pause { name: String, paused: bool },
    /// Stop starting new submissions, or resume.
    Drain(bool),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Accepted(Box<Accepted>),
    /// A message of success.
    Done(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: RefusalKind,
    /// The value found, and the value expected.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request is malformed.
    Invalid,
    /// The role of the principal does not permit the command.
    Forbidden,
    NotFound,
    /// The command does not fit the current state.
    Conflict,
    /// A limit is reached; retry after this many seconds.
    TooMany(u64),
    /// The service cannot do it now. For example, its disk is full or it is stopping.
    Unavailable,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The refusal of a malformed request.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Invalid, message)
    }

    /// The refusal for an unknown submission.
    pub(crate) fn no_submission(number: u64) -> Self {
        Self::new(RefusalKind::NotFound, format!("found no submission {number}"))
    }
}

/// Checks the role of the principal. Each command checks the owner of a submission.
fn check_role(principal: &Principal, command: &Command) -> Result<(), Refusal> {
    let least = if matches!(command, Command::Drain(_)) { Role::Operate } else { Role::Submit };
    if principal.role >= least {
        return Ok(());
    }
    let (name, has, needs) = (&principal.name, principal.role.name(), least.name());
    Err(Refusal::new(RefusalKind::Forbidden, format!("{name} has the role {has}, expected {needs}")))
}

fn named(number: u64, flow: Option<&str>) -> String {
    flow.map_or_else(|| number.to_string(), |flow| format!("{flow} of {number}"))
}

impl ServiceState {
    /// Executes a command of a client.
    ///
    /// # Errors
    /// The refusal. Then the state is unchanged.
    pub fn execute(
        &mut self,
        now: ClockReading,
        principal: &Principal,
        command: Command,
        out: &mut Transition,
    ) -> Result<Answer, Refusal> {
        self.turn(now, out, |state| {
            check_role(principal, &command)?;
            let answer = match command {
                Command::Submit { wanted, passed } => {
                    Answer::Accepted(Box::new(state.submit(principal, *wanted, passed)?))
                }
                Command::Cancel { number, flow } => Answer::Done(state.cancel(principal, number, flow)?),
                Command::Hold { number, flow, held } => {
                    Answer::Done(state.hold(principal, number, flow, held)?)
                }
                Command::Change { number, change, deadline } => {
                    Answer::Done(state.change(principal, number, change, deadline)?)
                }
                Command::Run { name, past } => {
                    Answer::Accepted(Box::new(state.run_now(principal, &name, past)?))
                }
                Command::Rerun { number, choice } => {
                    Answer::Accepted(Box::new(state.rerun(principal, number, choice)?))
                }
                Command::Remove(name) => Answer::Done(state.remove(principal, &name)?),
                Command::Pause { name, paused } => Answer::Done(state.pause(principal, &name, paused)?),
                Command::Drain(draining) => Answer::Done(state.drain(draining)),
            };
            state.begin_next();
            Ok(answer)
        })
    }

    fn drain(&mut self, draining: bool) -> String {
        self.submissions.queue.is_draining = draining;
        self.out.records.push(Record::Draining(draining));
        let message = if draining {
            "the service drains and starts no new submissions"
        } else {
            "the service starts submissions again"
        };
        self.event("service", None, None, message.to_owned());
        message.to_owned()
    }

    /// The unfinished submission, if the principal may change it, and if `flow` is an unfinished flow of it.
    fn own(&mut self, principal: &Principal, number: u64, flow: Option<&str>) -> Result<&mut Entry, Refusal> {
        let conflict = |message: String| Err(Refusal::new(RefusalKind::Conflict, message));
        let Some(entry) = self.submissions.open.get_mut(&number) else {
            let ended =
                self.submissions.finished.find(number).ok_or_else(|| Refusal::no_submission(number))?;
            return conflict(format!("{number} has already ended ({})", ended.state.name()));
        };
        let (name, owner) = (&principal.name, &entry.wanted.user);
        if !principal.may_change(owner) {
            let message =
                format!("{number} belongs to {owner}; {name} may change only their own submissions");
            return Err(Refusal::new(RefusalKind::Forbidden, message));
        }
        let Some(flow) = flow else { return Ok(entry) };
        let Some(run) = entry.running() else {
            return conflict(format!(
                "{number} has not started, so its flows are not known yet; omit the flow"
            ));
        };
        match run.flows.iter().find(|known| known.flow == flow) {
            None => {
                let names: Vec<&str> = run.flows.iter().map(|known| known.flow.as_str()).collect();
                let message = slackline_model::names::unknown("flow", flow, &names);
                Err(Refusal::new(RefusalKind::NotFound, message))
            }
            Some(known) if known.state.is_over() => {
                conflict(format!("flow {flow} of {number} has already ended"))
            }
            Some(_) => Ok(entry),
        }
    }
}
