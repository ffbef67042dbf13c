//! The interface of a running service for the HTTP API, and for programs that embed a service.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use slackline_task::base::clock::ClockReading;
use tokio::sync::{broadcast, oneshot};

use crate::api::{Change, Event, Prediction, State, Submission, Submit, Timeline};
use crate::service::durations::SharedHistogram;
use crate::service::flow_file::check;
use crate::service::message::{CommandRequest, Message};
use crate::service::paths::ServicePaths;
use crate::service::run_observer::RecentAttempts;
use crate::service::watchdog::Blockage;
use crate::state::auth::Principal;
use crate::state::{Answer, Command, Refusal, RefusalKind};
use crate::{Moment, SECOND};

/// The number of events kept for clients that reconnect.
const EVENTS: usize = 10_000;

/// The stream of events, and the latest of them.
#[derive(Clone)]
pub struct Events {
    live: broadcast::Sender<Arc<Event>>,
    recent: Arc<Mutex<VecDeque<Arc<Event>>>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { live: broadcast::Sender::new(4_096), recent: Arc::default() }
    }
}

impl Events {
    pub fn tell(&self, event: Event) {
        let event = Arc::new(event);
        let mut recent = self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        recent.push_back(event.clone());
        if recent.len() > EVENTS {
            recent.pop_front();
        }
        // There may be no listeners.
        let _ = self.live.send(event);
    }

    /// The kept events after `id`, and a receiver of all later ones. Each event is in exactly one of the two.
    pub fn after(&self, id: Option<u64>) -> (Vec<Arc<Event>>, broadcast::Receiver<Arc<Event>>) {
        let recent = self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let missed =
            id.map_or_else(Vec::new, |id| recent.iter().filter(|event| event.id > id).cloned().collect());
        (missed, self.live.subscribe())
    }
}

/// The interface of a running service.
#[derive(Clone)]
pub struct ServiceHandle {
    pub(crate) questions: Sender<Message>,
    pub(crate) events: Events,
    pub(crate) recent: RecentAttempts,
    pub(crate) timings: Timings,
    pub(crate) paths: ServicePaths,
    pub(crate) blocked: Blockage,
}

/// Histograms of durations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timings {
    /// The scheduling decisions of one instant.
    pub(crate) decisions: SharedHistogram,
    pub(crate) predictions: SharedHistogram,
}

/// The refusal of a service that has ended.
fn gone() -> Refusal {
    Refusal { kind: RefusalKind::Unavailable, message: "the service is about to end".to_owned() }
}

impl ServiceHandle {
    pub fn now(&self) -> Moment {
        ClockReading::read().wall.0
    }

    /// The state directory.
    pub fn paths(&self) -> &ServicePaths {
        &self.paths
    }

    /// Executes a command. The answer is sent after its records are on disk.
    ///
    /// # Errors
    /// The refusal.
    pub async fn execute(&self, principal: Principal, command: Command) -> Result<Answer, Refusal> {
        let (answer, answered) = oneshot::channel();
        self.questions
            .send(Message::Command(CommandRequest { principal, command, answer }))
            .map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// [`Self::execute`] for a thread that may block.
    ///
    /// # Errors
    /// See [`Self::execute`].
    pub fn execute_and_wait(&self, principal: Principal, command: Command) -> Result<Answer, Refusal> {
        let (answer, answered) = oneshot::channel();
        self.questions
            .send(Message::Command(CommandRequest { principal, command, answer }))
            .map_err(|_| gone())?;
        answered.blocking_recv().map_err(|_| gone())?
    }

    /// A submission with all details. For a pending submission this reads its flow file, which takes a while
    /// for a large file.
    ///
    /// # Errors
    /// See [`Self::execute`].
    pub async fn show(&self, principal: Principal, number: u64) -> Result<Submission, Refusal> {
        let Answer::Submission(mut shown) = self.execute(principal.clone(), Command::Show(number)).await?
        else {
            return Err(gone());
        };
        if shown.state.has_not_begun()
            && let Answer::Pending(Some(pending)) = self.execute(principal, Command::Pending(number)).await?
        {
            let now = self.now();
            let read = tokio::task::spawn_blocking(move || pending.flows(now)).await;
            shown.flows = read.map_err(|_| gone())?;
        }
        Ok(*shown)
    }

    /// The command that submits a flow file. This parses the file, which takes a while for a large file.
    ///
    /// # Errors
    /// The errors of the file, with their lines.
    pub fn submission(&self, submit: Submit) -> Result<Command, Refusal> {
        let checked = check(&submit, self.now());
        let checked = checked.map_err(|message| Refusal { kind: RefusalKind::Invalid, message })?;
        Ok(Command::Submit(Box::new(submit), checked))
    }

    /// The command that changes a submission. A relative deadline counts from the release of the flow.
    ///
    /// # Errors
    /// The deadline is invalid or has passed.
    pub fn change(&self, number: u64, change: Change, of: &Submission) -> Result<Command, Refusal> {
        let invalid = |message| Refusal { kind: RefusalKind::Invalid, message };
        let release =
            of.flows.iter().filter(|flow| change.flow.as_ref().is_none_or(|name| *name == flow.flow));
        let release = release.map(|flow| flow.release).min().unwrap_or(of.submitted);
        let deadline =
            change.deadline.as_deref().map(|when| crate::state::times::deadline(when, release, self.now()));
        let deadline = deadline.transpose().map_err(invalid)?;
        Ok(Command::Change { number, change, deadline })
    }

    /// Waits at most `seconds` for the prediction of a submission. `None` if there is none by then, or the
    /// submission has ended without one.
    pub async fn prediction(&self, principal: &Principal, number: u64, seconds: f64) -> Option<Prediction> {
        let (_, mut events) = self.events.after(None);
        let until = ClockReading::read().elapsed + (seconds.max(0.0) * SECOND as f64) as u64;
        loop {
            let Ok(Answer::Submission(shown)) = self.execute(principal.clone(), Command::Show(number)).await
            else {
                return None;
            };
            let Submission { prediction, state, .. } = *shown;
            if prediction.is_some() || state.is_over() {
                return prediction;
            }
            let left = until.since(ClockReading::read().elapsed);
            if left == 0 || !has_event(&mut events, number, left).await {
                return None;
            }
        }
    }

    /// The stream of events.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The number of ended attempts since the start of this process, by outcome.
    pub fn attempts(&self) -> BTreeMap<String, u64> {
        self.recent.counts()
    }

    /// Attempts that ended at a moment or later, and running attempts.
    pub fn timeline(&self, since: Moment) -> Timeline {
        self.recent.since(since)
    }

    /// Waits until a submission has ended, and returns it.
    ///
    /// # Errors
    /// See [`Self::execute`].
    pub async fn over(&self, principal: &Principal, number: u64) -> Result<Submission, Refusal> {
        let (_, mut events) = self.events.after(None);
        loop {
            let answer = self.execute(principal.clone(), Command::Show(number)).await?;
            let Answer::Submission(shown) = answer else { return Err(gone()) };
            if shown.state.is_over() {
                return Ok(*shown);
            }
            has_event(&mut events, number, 60 * SECOND).await;
        }
    }
}

/// Waits for an event about a submission, at most `micros`. Returns false on timeout.
async fn has_event(events: &mut broadcast::Receiver<Arc<Event>>, number: u64, micros: u64) -> bool {
    let arrives = async {
        loop {
            match events.recv().await {
                Ok(event) if event.number != Some(number) => {}
                // The receiver may have missed events, so the caller checks again.
                _ => return,
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_micros(micros), arrives).await.is_ok()
}

/// Parses a list of state names.
///
/// # Errors
/// A name is unknown.
pub fn states(names: &str) -> Result<Vec<State>, String> {
    let known = State::ALL.map(State::name);
    names
        .split(',')
        .map(|name| {
            let found = State::ALL.into_iter().find(|state| state.name() == name.trim());
            found.ok_or_else(|| slackline::names::unknown("state", name, &known))
        })
        .collect()
}
