//! The interface of a running service for the HTTP API, and for programs that embed a service.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use jiff::tz::TimeZone;
use slackline_model::WallTime;
use slackline_task::base::clock::ClockReading;
use tokio::sync::{broadcast, oneshot};

use crate::api::{Change, Event, Prediction, State, Submission, Submit, Timeline};
use crate::lock;
use crate::service::durations::SharedHistogram;
use crate::service::flow_file::check;
use crate::service::message::Message;
use crate::service::own_paths::own_by;
use crate::service::paths::ServicePaths;
use crate::service::run_observer::RecentAttempts;
use crate::service::watchdog::Blockage;
use crate::state::auth::Principal;
use crate::state::record::Rerun;
use crate::state::times::deadline;
use crate::state::{Answer, Command, Refusal, RefusalKind, ServiceState};

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
        let mut recent = lock(&self.recent);
        recent.push_back(event.clone());
        if recent.len() > EVENTS {
            recent.pop_front();
        }
        // There may be no listeners.
        let _ = self.live.send(event);
    }

    /// The kept events after `id`, and a receiver of all later ones. Each event is in exactly one of the two.
    pub fn after(&self, id: Option<u64>) -> (Vec<Arc<Event>>, broadcast::Receiver<Arc<Event>>) {
        let recent = lock(&self.recent);
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
    /// The time zone of submissions that name none.
    pub(crate) zone: TimeZone,
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
    Refusal::new(RefusalKind::Unavailable, "the service is stopping")
}

impl ServiceHandle {
    pub fn now(&self) -> WallTime {
        ClockReading::read().wall
    }

    /// The state directory.
    pub fn paths(&self) -> &ServicePaths {
        &self.paths
    }

    fn send(&self, message: Message) -> Result<(), Refusal> {
        self.questions.send(message).map_err(|_| gone())
    }

    /// Executes a command. The answer is sent after its records are on disk.
    ///
    /// # Errors
    /// The refusal.
    pub async fn execute(&self, principal: Principal, command: Command) -> Result<Answer, Refusal> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::Command(principal, command, answer))?;
        answered.await.map_err(|_| gone())?
    }

    /// [`Self::execute`] for a thread that may block.
    ///
    /// # Errors
    /// See [`Self::execute`].
    pub fn execute_and_wait(&self, principal: Principal, command: Command) -> Result<Answer, Refusal> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::Command(principal, command, answer))?;
        answered.blocking_recv().map_err(|_| gone())?
    }

    /// Queries the state, with the current time.
    ///
    /// # Errors
    /// The service has ended.
    pub async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&ServiceState, WallTime) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.ask(query)?.await.map_err(|_| gone())
    }

    /// [`Self::query`] for a thread that may block.
    ///
    /// # Errors
    /// See [`Self::query`].
    pub fn query_and_wait<T: Send + 'static>(
        &self,
        query: impl FnOnce(&ServiceState, WallTime) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.ask(query)?.blocking_recv().map_err(|_| gone())
    }

    fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&ServiceState, WallTime) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Refusal> {
        let (answer, answered) = oneshot::channel();
        // The client may have disconnected.
        self.send(Message::Query(Box::new(move |state, now| drop(answer.send(query(state, now))))))?;
        Ok(answered)
    }

    /// A submission with all details. For a pending submission this may read its flow file, which takes a
    /// while for a large file.
    ///
    /// # Errors
    /// The number is unknown, or the service has ended.
    pub async fn show(&self, number: u64) -> Result<Submission, Refusal> {
        let (shown, pending) =
            self.query(move |state, now| (state.show(now, number), state.pending(number))).await?;
        let mut shown = shown?;
        if let Some(pending) = pending {
            let now = self.now();
            let read = tokio::task::spawn_blocking(move || pending.flows(now)).await;
            shown.flows = read.map_err(|_| gone())?;
        }
        Ok(shown)
    }

    /// The command that submits a flow file. This parses the file, which takes a while for a large file.
    ///
    /// # Errors
    /// The errors of the file, with their lines.
    pub fn submission(&self, principal: &Principal, submit: Submit) -> Result<Command, Refusal> {
        let (mut wanted, passed) =
            check(submit, &principal.name, self.now(), &self.zone).map_err(Refusal::invalid)?;
        wanted.own_by = own_by(&wanted.submit, &self.zone);
        Ok(Command::Submit { wanted: Box::new(wanted), passed })
    }

    /// The command that runs a submission that has ended again.
    ///
    /// # Errors
    /// It is not kept, or has no job of this name.
    pub async fn rerun(&self, number: u64, choice: Rerun) -> Result<Command, Refusal> {
        if let Rerun::From(name) = &choice {
            let wanted = self.query(move |state, _| state.ended_spec(number)).await??;
            let read = tokio::task::spawn_blocking(move || wanted.draft()).await.map_err(|_| gone())?;
            let draft = read.map_err(Refusal::invalid)?;
            let jobs = draft.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)));
            let names: Vec<String> = jobs.map(|(flow, job)| format!("{}/{}", flow.id, job.id)).collect();
            let is_it = |known: &String| known == name || known.rsplit('/').next() == Some(name);
            if !names.iter().any(is_it) {
                let message = slackline_model::names::unknown("job", name, &names);
                return Err(Refusal::invalid(format!("from_job: {message}")));
            }
        }
        Ok(Command::Rerun { number, choice })
    }

    /// The command that changes a submission. A relative deadline counts from the release of the flow.
    ///
    /// # Errors
    /// The deadline is invalid or has passed.
    pub fn change(&self, number: u64, change: Change, of: &Submission) -> Result<Command, Refusal> {
        let release =
            of.flows.iter().filter(|flow| change.flow.as_ref().is_none_or(|name| *name == flow.flow));
        let release = release.map(|flow| flow.release).min().unwrap_or(of.submitted);
        let deadline =
            change.deadline.as_deref().map(|when| deadline(when, release, self.now(), of.zone.as_deref()));
        let deadline = deadline.transpose().map_err(Refusal::invalid)?;
        Ok(Command::Change { number, change, deadline })
    }

    /// Waits at most `seconds` for the prediction of a submission. `None` if there is none by then, or the
    /// submission has ended without one.
    pub async fn prediction(&self, number: u64, seconds: f64) -> Option<Prediction> {
        let is_ready = |shown: &Submission| shown.prediction.is_some() || shown.state.is_over();
        let ready = self.wait(number, is_ready);
        let within = std::time::Duration::from_secs_f64(seconds.max(0.0));
        tokio::time::timeout(within, ready).await.ok()?.ok()?.prediction
    }

    /// Waits until a submission has ended, and returns it.
    ///
    /// # Errors
    /// See [`Self::show`].
    pub async fn over(&self, number: u64) -> Result<Submission, Refusal> {
        self.wait(number, |shown| shown.state.is_over()).await
    }

    /// Waits until a submission is as it should be.
    async fn wait(&self, number: u64, is_ready: impl Fn(&Submission) -> bool) -> Result<Submission, Refusal> {
        let (_, mut events) = self.events.after(None);
        loop {
            let shown = self.query(move |state, now| state.show(now, number)).await??;
            if is_ready(&shown) {
                return Ok(shown);
            }
            has_event(&mut events, number).await;
        }
    }

    /// The stream of events.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Attempts that ended at a moment or later, and running attempts.
    pub fn timeline(&self, since: WallTime) -> Timeline {
        self.recent.since(since)
    }
}

/// Waits for an event about a submission, at most a minute.
async fn has_event(events: &mut broadcast::Receiver<Arc<Event>>, number: u64) {
    let arrives = async {
        // The receiver may have missed events, so the caller checks again.
        while events.recv().await.is_ok_and(|event| event.number != Some(number)) {}
    };
    let _ = tokio::time::timeout(std::time::Duration::from_secs(60), arrives).await;
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
