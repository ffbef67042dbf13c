//! The applications of the engine on a cluster: observing, submitting and killing them, all in the
//! background.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, thread};

use crate::clock::{Stopwatch, pause};
use crate::cluster::control::Control;
use crate::cluster::observer::Snapshot;
use crate::flows::requester::{self, Answers, Decisions, PollAnswer, PollRequest, RUN_TAG, Requests};
use crate::rest::http::HttpError;
use crate::rest::id::AppId;
use crate::rest::resource_manager::{AppFilter, ResourceManager};
use crate::submitter::{JarRequest, JobRequest, ProcessState, StartedProgram, Submitter, SubmitterError};

/// The tag with the submission of a job.
pub(super) const JOB_TAG: &str = "slackline.job";

/// One submission of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    /// The index of the job in the run.
    pub(super) job: u32,
    /// Unique among all submissions.
    pub(super) name: String,
}

/// Time between two checks of a program.
const LOOK: Duration = Duration::from_millis(250);

/// How long the end of an engine waits for the thread of the requests, which removes the table. After that
/// the table expires.
const LAST_REQUEST: Duration = Duration::from_secs(2);

pub(super) enum SubmitRequest {
    /// A job whose tasks run Slackline's worker.
    Job(JobRequest),
    /// A program that submits its applications itself.
    Jar(JarRequest),
}

/// An answer to a submission.
pub(super) enum SubmitterEvent {
    /// The application of a submitted job.
    Submitted(AppId),
    /// The program has started.
    Began(StartedProgram),
    /// The program has ended.
    Ended(ProcessState),
}

pub(super) type SubmitterAnswer = (Ticket, Result<SubmitterEvent, SubmitterError>);

/// Submits jobs to the cluster.
pub(super) trait JobSubmitter: Send + Sync {
    /// Submits a job, and gives its application.
    ///
    /// # Errors
    /// See [`SubmitterError`]: the job may have been submitted all the same.
    fn submit(&self, request: &JobRequest) -> Result<AppId, SubmitterError>;

    /// Starts the program of a jar.
    ///
    /// # Errors
    /// See [`SubmitterError`]: it may have been started all the same.
    fn jar(&self, request: &JarRequest) -> Result<StartedProgram, SubmitterError>;

    /// The state of a program.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    fn process(&self, process: u64) -> Result<ProcessState, SubmitterError>;

    /// Kills a program.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    fn stop(&self, process: u64) -> Result<(), SubmitterError>;
}

impl JobSubmitter for Submitter {
    fn submit(&self, request: &JobRequest) -> Result<AppId, SubmitterError> {
        Submitter::submit(self, request).map(|submitted| submitted.application)
    }

    fn jar(&self, request: &JarRequest) -> Result<StartedProgram, SubmitterError> {
        Submitter::jar(self, request)
    }

    fn process(&self, process: u64) -> Result<ProcessState, SubmitterError> {
        Submitter::process(self, process)
    }

    fn stop(&self, process: u64) -> Result<(), SubmitterError> {
        Submitter::stop(self, process)
    }
}

/// The applications of earlier sessions of a run, also those that have ended.
///
/// # Errors
/// The cluster does not answer: without its answer the run cannot start.
pub(super) fn earlier_apps(owner: &str, manager: &ResourceManager) -> Result<Vec<AppId>, HttpError> {
    let tags = vec![format!("{RUN_TAG}={}", owner.to_lowercase())];
    let which = AppFilter { tags, ended: true, ..AppFilter::default() };
    Ok(manager.apps(&which)?.into_iter().map(|app| app.id).collect())
}

/// The cluster as of its last answer, and the requests to it. No method waits for the cluster.
pub(super) struct FlowCluster {
    /// `None` at the end.
    requests: Option<Sender<Requests>>,
    answers: Receiver<Answers>,
    /// As of the last poll that was answered.
    snapshot: Snapshot,
    /// The time since the request of a poll that has no answer yet.
    poll: Option<Stopwatch>,
    /// Whether the last poll began after all runs had joined.
    has_polled_for_all_runs: bool,
    /// Applications to kill with the next request.
    kills: BTreeSet<AppId>,
    /// Applications of interest to name with the next poll.
    expected: Vec<AppId>,
    /// Priorities that YARN has changed, and warnings, since they were taken last.
    priorities: Vec<(AppId, u64)>,
    warnings: Vec<String>,
    submitter: Arc<dyn JobSubmitter>,
    submitted: (Sender<SubmitterAnswer>, Receiver<SubmitterAnswer>),
    /// The owners, by which applications of runs are found.
    owners: BTreeSet<String>,
}

impl FlowCluster {
    /// A cluster without applications of interest. `lasts` limits the time for requests of one kind.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn new(
        control: Control,
        lasts: Duration,
        submitter: Arc<dyn JobSubmitter>,
    ) -> io::Result<Self> {
        let (requests, answers) = requester::start(control, lasts)?;
        Ok(Self {
            requests: Some(requests),
            answers,
            snapshot: Snapshot::default(),
            poll: None,
            has_polled_for_all_runs: false,
            kills: BTreeSet::new(),
            expected: Vec::new(),
            priorities: Vec::new(),
            warnings: Vec::new(),
            submitter,
            submitted: channel(),
            owners: BTreeSet::new(),
        })
    }

    /// Makes the applications of a run applications of interest, also those of earlier sessions.
    pub(super) fn expect(&mut self, owner: &str, earlier: Vec<AppId>) {
        self.expected.extend(earlier);
        self.has_polled_for_all_runs = false;
        self.owners.insert(owner.to_lowercase());
    }

    /// New applications of a run are no longer of interest.
    pub(super) fn forget(&mut self, owner: &str) {
        self.owners.remove(&owner.to_lowercase());
    }

    /// How long a poll has had no answer; `None`: no poll is in progress.
    pub(super) fn polls_since(&self) -> Option<Duration> {
        self.poll.map(Stopwatch::elapsed)
    }

    /// Whether the last poll, with or without an answer, began after all runs had joined: its answer shows their
    /// earlier submissions.
    pub(super) fn has_polled_for_all_runs(&self) -> bool {
        self.has_polled_for_all_runs
    }

    /// Begins a poll, with these AMs of programs. No other poll is in progress.
    pub(super) fn begin_poll(&mut self, programs: Vec<(u32, AppId)>) {
        let expected = std::mem::take(&mut self.expected);
        let poll = PollRequest { owners: self.owners.clone(), expected, programs };
        self.poll = Some(Stopwatch::start());
        self.has_polled_for_all_runs = true;
        self.send(None, Some(poll));
    }

    /// The answer to the poll in progress, if it comes within `wait`.
    pub(super) fn poll_answer(&mut self, wait: Duration) -> Option<Result<PollAnswer, HttpError>> {
        let since = Stopwatch::start();
        loop {
            let Answers { warnings, priorities, poll } =
                self.answers.recv_timeout(wait.saturating_sub(since.elapsed())).ok()?;
            self.warnings.extend(warnings);
            self.priorities.extend(priorities);
            let Some(mut answer) = poll else { continue };
            self.poll = None;
            if let Ok(answer) = &mut answer {
                self.snapshot = std::mem::take(&mut answer.snapshot);
            }
            return Some(answer);
        }
    }

    /// Has the driver's decisions carried out. Those that come while a poll has no answer are dropped:
    /// the driver makes new ones after the answer.
    pub(super) fn carry_out(&mut self, decisions: Decisions) {
        if self.poll.is_none() {
            self.send(Some(decisions), None);
        }
    }

    fn send(&mut self, decisions: Option<Decisions>, poll: Option<PollRequest>) {
        let kills = std::mem::take(&mut self.kills);
        // The thread ends only after the sender.
        if let Some(requests) = &self.requests {
            let _ = requests.send(Requests { kills, decisions, poll });
        }
    }

    /// Priorities that YARN has changed, and warnings, since the last call.
    pub(super) fn take_results(&mut self) -> (Vec<(AppId, u64)>, Vec<String>) {
        (std::mem::take(&mut self.priorities), std::mem::take(&mut self.warnings))
    }

    /// The cluster as of the last poll that was answered.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Has an application killed with the next request.
    pub(super) fn kill(&mut self, app: AppId) {
        self.kills.insert(app);
    }

    /// Submits a job of a run with a priority. The answer comes later.
    pub(super) fn submit(&mut self, owner: &str, ticket: Ticket, request: SubmitRequest, priority: u32) {
        let owner = owner.to_lowercase();
        let its_tags = vec![format!("{RUN_TAG}={owner}"), format!("{JOB_TAG}={}", ticket.name)];
        let (submitter, answers) = (self.submitter.clone(), self.submitted.0.clone());
        let refused = ticket.clone();
        // The thread ends with the last answer or with the process; nothing joins it.
        let started = thread::Builder::new().spawn(move || match request {
            SubmitRequest::Job(mut request) => {
                (request.tags, request.priority) = (its_tags, Some(priority));
                let submitted = submitter.submit(&request);
                let _ = answers.send((ticket, submitted.map(SubmitterEvent::Submitted)));
            }
            SubmitRequest::Jar(mut request) => {
                (request.tags, request.priority) = (its_tags, Some(priority));
                let began = submitter.jar(&request);
                let process = began.as_ref().ok().map(|began| began.process);
                let _ = answers.send((ticket.clone(), began.map(SubmitterEvent::Began)));
                let submitter = Arc::downgrade(&submitter);
                if let Some(ended) = process.and_then(|process| wait_for_exit(&submitter, process)) {
                    let _ = answers.send((ticket, ended.map(SubmitterEvent::Ended)));
                }
            }
        });
        if let Err(error) = started {
            let why = format!("a thread for it cannot be started: {error}");
            let _ = self.submitted.0.send((refused, Err(SubmitterError::Start { why })));
        }
    }

    /// Kills a program in the background.
    pub(super) fn stop(&self, process: u64) {
        let submitter = self.submitter.clone();
        // A submitter that does not know the program has replaced the one that started it, whose end ended
        // the program. Without a thread the program runs until the submitter ends.
        let _ = thread::Builder::new().spawn(move || submitter.stop(process));
    }

    /// Answers of the submitter since the last call. Their applications are of interest from then on.
    pub(super) fn submitter_answers(&mut self) -> Vec<SubmitterAnswer> {
        let answers: Vec<SubmitterAnswer> = self.submitted.1.try_iter().collect();
        for (_, answer) in &answers {
            if let Ok(SubmitterEvent::Submitted(app)) = answer {
                self.expected.push(*app);
            }
        }
        answers
    }
}

impl Drop for FlowCluster {
    fn drop(&mut self) {
        self.requests = None;
        // Until the thread has ended.
        while self.answers.recv_timeout(LAST_REQUEST).is_ok() {}
    }
}

/// Waits for the end of a program; `None` if the submitter ends first.
fn wait_for_exit(
    submitter: &Weak<dyn JobSubmitter>,
    process: u64,
) -> Option<Result<ProcessState, SubmitterError>> {
    loop {
        pause(LOOK);
        match submitter.upgrade()?.process(process) {
            Ok(state) if state.running => {}
            // The submitter is busy.
            Err(SubmitterError::TimedOut { .. }) => {}
            ended => return Some(ended),
        }
    }
}
