//! What the engine needs of a cluster beside what it is told: its own applications, submitting and killing.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::control::Control;
use crate::http::HttpError;
use crate::id::AppId;
use crate::observe::{Change, Observer, Snapshot};
use crate::rest::{App, ResourceManager, Which};
use crate::submitter::{JobRequest, Submitter, SubmitterError};
use crate::table::Table;

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

/// A submission that was answered.
pub(super) type Answer = (Ticket, Result<AppId, SubmitterError>);

/// Who hands jobs to the cluster.
pub(super) trait Submits: Send + Sync {
    /// Submits a job, and gives its application.
    ///
    /// # Errors
    /// See [`SubmitterError`]: the job may have been submitted all the same.
    fn submit(&self, request: &JobRequest) -> Result<AppId, SubmitterError>;
}

impl Submits for Submitter {
    fn submit(&self, request: &JobRequest) -> Result<AppId, SubmitterError> {
        Submitter::submit(self, request).map(|submitted| submitted.application)
    }
}

/// A YARN cluster.
pub(super) struct Cluster {
    pub(super) control: Control,
    submitter: Arc<dyn Submits>,
    answers: (Sender<Answer>, Receiver<Answer>),
    owner: String,
}

impl Cluster {
    /// A cluster on which applications with the tag of `owner` are of interest.
    pub(super) fn new(
        manager: ResourceManager,
        observer: Observer,
        table: Option<Table>,
        valid: Duration,
        submitter: Arc<dyn Submits>,
        owner: &str,
    ) -> Self {
        Self {
            control: Control::new(manager, observer, table, valid),
            submitter,
            answers: channel(),
            owner: owner.to_lowercase(),
        }
    }

    /// Has applications of the run looked at that may have ended while nobody drove it.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn expect_earlier(&mut self) -> Result<(), HttpError> {
        let tags = vec![format!("{RUN_TAG}={}", self.owner)];
        let which = Which { tags, ended: true, ..Which::default() };
        for app in self.control.manager.apps(&which)? {
            self.control.observer.expect(app.id);
        }
        Ok(())
    }

    /// Looks at the cluster, and gives what changed.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn look(&mut self) -> Result<Vec<Change>, HttpError> {
        let Self { control, owner, .. } = self;
        control.look(|app: &App| app.tag(RUN_TAG) == Some(owner))
    }

    /// The cluster as the last look saw it.
    pub(super) fn snapshot(&self) -> &Snapshot {
        self.control.snapshot()
    }

    /// Has an application killed.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn kill(&self, app: AppId) -> Result<(), HttpError> {
        self.control.manager.kill(app)
    }

    /// Submits a job, which is answered later.
    pub(super) fn submit(&mut self, ticket: Ticket, mut request: JobRequest) {
        request.tags = vec![format!("{RUN_TAG}={}", self.owner), format!("{JOB_TAG}={}", ticket.name)];
        let (submitter, answer) = (self.submitter.clone(), self.answers.0.clone());
        // It ends with its answer, or with the process; nobody waits for it.
        thread::spawn(move || {
            let submitted = submitter.submit(&request);
            let _ = answer.send((ticket, submitted));
        });
    }

    /// Submissions that were answered since the last call. Applications are looked at from then on.
    pub(super) fn answers(&mut self) -> Vec<Answer> {
        let answers: Vec<Answer> = self.answers.1.try_iter().collect();
        for app in answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()) {
            self.control.observer.expect(*app);
        }
        answers
    }
}
