//! What the engine needs of a cluster beside what it is told: its own applications, submitting and killing.

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

/// The tag that says which run an application is of.
pub(super) const RUN_TAG: &str = "slackline.run";
/// The tag that says which submission of which job it is.
pub(super) const JOB_TAG: &str = "slackline.job";

/// Which submission of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    /// The job's index in the run.
    pub(super) job: u32,
    /// A name that no other submission has.
    pub(super) name: String,
}

/// How long is waited between two looks at a program.
const LOOK: Duration = Duration::from_millis(250);

pub(super) enum SubmitRequest {
    /// A job whose tasks run our worker.
    Job(JobRequest),
    /// A program that submits its applications itself.
    Jar(JarRequest),
}

/// What is said of a submission.
pub(super) enum SubmitterEvent {
    /// It is this application.
    Submitted(AppId),
    /// Its program was started.
    Began(StartedProgram),
    /// Its program has ended.
    Ended(ProcessState),
}

/// A submission that was answered.
pub(super) type SubmitterAnswer = (Ticket, Result<SubmitterEvent, SubmitterError>);

/// Who hands jobs to the cluster.
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

    /// How a program is.
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

pub(super) struct FlowCluster {
    pub(super) control: Control,
    submitter: Arc<dyn JobSubmitter>,
    answers: (Sender<SubmitterAnswer>, Receiver<SubmitterAnswer>),
    /// The names by which the runs are known whose applications are of interest.
    owners: BTreeSet<String>,
    /// Whether it was said that the cluster refuses to kill.
    warned_of_refusal: bool,
}

impl FlowCluster {
    /// A cluster on which no applications are of interest yet.
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

    /// Applications of a run are of interest from now on, those too that may have ended while nobody drove it. `manager` is
    /// asked: without its answer there is no run.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn expect(&mut self, owner: &str, manager: &ResourceManager) -> Result<(), HttpError> {
        let owner = owner.to_lowercase();
        let tags = vec![format!("{RUN_TAG}={owner}")];
        let which = AppFilter { tags, ended: true, ..AppFilter::default() };
        for app in manager.apps(&which)? {
            self.control.observer.expect(app.id);
        }
        self.owners.insert(owner);
        Ok(())
    }

    /// New applications of a run are of no interest any more.
    pub(super) fn forget(&mut self, owner: &str) {
        self.owners.remove(&owner.to_lowercase());
    }

    /// Looks at the cluster, and gives what changed.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn poll_cluster(&mut self) -> Result<Vec<Change>, HttpError> {
        let Self { control, owners, .. } = self;
        control.poll_cluster(|app: &App| app.tag(RUN_TAG).is_some_and(|owner| owners.contains(owner)))
    }

    /// The cluster as the last look saw it.
    pub(super) fn snapshot(&self) -> &Snapshot {
        self.control.snapshot()
    }

    /// Has an application killed. The first time that the cluster does not want to, somebody should be told.
    pub(super) fn kill(&mut self, app: AppId) -> Option<String> {
        let refusal = |error: &HttpError| !error.may_pass() && !error.is_missing();
        let error = self.control.manager.kill(app).err().filter(refusal)?;
        let is_said = std::mem::replace(&mut self.warned_of_refusal, true);
        (!is_said).then(|| {
            format!(
                "{app} is to end, and cannot be killed: {error}; this does it: yarn application -kill {app}"
            )
        })
    }

    /// Submits a job of a run with a priority, which is answered later.
    pub(super) fn submit(&mut self, owner: &str, ticket: Ticket, request: SubmitRequest, priority: u32) {
        let owner = owner.to_lowercase();
        let its_tags = vec![format!("{RUN_TAG}={owner}"), format!("{JOB_TAG}={}", ticket.name)];
        let (submitter, answers) = (self.submitter.clone(), self.answers.0.clone());
        let refused = ticket.clone();
        // It ends with its last answer, or with the process; nobody waits for it.
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
                if let Some(ended) = process.and_then(|process| end_of(&submitter, process)) {
                    let _ = answers.send((ticket, ended.map(SubmitterEvent::Ended)));
                }
            }
        });
        if let Err(error) = started {
            let why = format!("a thread for it cannot be started: {error}");
            let _ = self.answers.0.send((refused, Err(SubmitterError::Start { why })));
        }
    }

    /// Has a program killed, later.
    pub(super) fn stop(&self, process: u64) {
        let submitter = self.submitter.clone();
        // One that the submitter does not know ended with the submitter that did. Without a thread the program goes on until
        // the submitter ends.
        let _ = thread::Builder::new().spawn(move || submitter.stop(process));
    }

    /// Submissions that were answered since the last call. Applications are looked at from then on.
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

/// Waits for the end of a program; none if the submitter is gone before.
fn end_of(submitter: &Weak<dyn JobSubmitter>, process: u64) -> Option<Result<ProcessState, SubmitterError>> {
    loop {
        pause(LOOK);
        match submitter.upgrade()?.process(process) {
            Ok(state) if state.running => {}
            // It has more to do than to answer.
            Err(SubmitterError::TimedOut { .. }) => {}
            ended => return Some(ended),
        }
    }
}
