//! The applications of the engine on a cluster: submitting them in the background, and killing them.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crate::clock::pause;
use crate::cluster::control::Control;
use crate::cluster::observer::{Change, Observer, Snapshot};
use crate::cluster::table::Table;
use crate::rest::http::HttpError;
use crate::rest::id::AppId;
use crate::rest::resource_manager::{App, AppFilter, ResourceManager};
use crate::submitter::{JarRequest, JobRequest, ProcessState, StartedProgram, Submitter, SubmitterError};

/// The tag with the run of an application.
pub(super) const RUN_TAG: &str = "slackline.run";

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

pub(super) struct FlowCluster {
    pub(super) control: Control,
    submitter: Arc<dyn JobSubmitter>,
    answers: (Sender<SubmitterAnswer>, Receiver<SubmitterAnswer>),
    /// The owners, by which applications of runs are found.
    owners: BTreeSet<String>,
    warned_of_refusal: bool,
}

impl FlowCluster {
    /// A cluster without applications of interest.
    pub(super) fn new(
        manager: ResourceManager,
        observer: Observer,
        table: Option<Table>,
        valid: Duration,
        submitter: Arc<dyn JobSubmitter>,
    ) -> Self {
        Self {
            control: Control::new(manager, observer, table, valid),
            submitter,
            answers: channel(),
            owners: BTreeSet::new(),
            warned_of_refusal: false,
        }
    }

    /// Makes the applications of a run applications of interest, also those of earlier sessions.
    pub(super) fn expect(&mut self, owner: &str, earlier: Vec<AppId>) {
        for app in earlier {
            self.control.observer.expect(app);
        }
        self.owners.insert(owner.to_lowercase());
    }

    /// New applications of a run are no longer of interest.
    pub(super) fn forget(&mut self, owner: &str) {
        self.owners.remove(&owner.to_lowercase());
    }

    /// Polls the cluster, and gives the changes.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn poll_cluster(&mut self) -> Result<Vec<Change>, HttpError> {
        let Self { control, owners, .. } = self;
        control.poll_cluster(|app: &App| app.tag(RUN_TAG).is_some_and(|owner| owners.contains(owner)))
    }

    /// The cluster at the last poll.
    pub(super) fn snapshot(&self) -> &Snapshot {
        self.control.snapshot()
    }

    /// Kills an application. The first refusal gives a warning.
    pub(super) fn kill(&mut self, app: AppId) -> Option<String> {
        let refusal = |error: &HttpError| !error.may_pass() && !error.is_missing();
        let error = self.control.manager.kill(app).err().filter(refusal)?;
        let has_warned = std::mem::replace(&mut self.warned_of_refusal, true);
        (!has_warned)
            .then(|| format!("{app} cannot be killed: {error}; kill it with: yarn application -kill {app}"))
    }

    /// Submits a job of a run with a priority. The answer comes later.
    pub(super) fn submit(&mut self, owner: &str, ticket: Ticket, request: SubmitRequest, priority: u32) {
        let owner = owner.to_lowercase();
        let its_tags = vec![format!("{RUN_TAG}={owner}"), format!("{JOB_TAG}={}", ticket.name)];
        let (submitter, answers) = (self.submitter.clone(), self.answers.0.clone());
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
            let why = format!("its thread cannot be started: {error}");
            let _ = self.answers.0.send((refused, Err(SubmitterError::Start { why })));
        }
    }

    /// Kills a program in the background.
    pub(super) fn stop(&self, process: u64) {
        let submitter = self.submitter.clone();
        // A submitter that does not know the program has replaced the one that started it, whose end ended
        // the program. Without a thread the program runs until the submitter ends.
        let _ = thread::Builder::new().spawn(move || submitter.stop(process));
    }

    /// Answers since the last call. Their applications are of interest from then on.
    pub(super) fn answers(&mut self) -> Vec<SubmitterAnswer> {
        let answers: Vec<SubmitterAnswer> = self.answers.1.try_iter().collect();
        for (_, answer) in &answers {
            if let Ok(SubmitterEvent::Submitted(app)) = answer {
                self.control.observer.expect(*app);
            }
        }
        answers
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
