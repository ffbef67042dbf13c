//! What the engine needs of a cluster: looking at it, the table, priorities, submitting and killing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::http::HttpError;
use crate::id::AppId;
use crate::observe::{Change, Observer, Snapshot};
use crate::rest::{App, Node, ResourceManager, Which};
use crate::submitter::{JobRequest, Submitter, SubmitterError};
use crate::table::{Rows, Table, TableError};

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

/// How often NodeManagers are looked at, in looks.
const NODES_EVERY: u32 = 8;

/// A YARN cluster.
pub(super) struct Cluster {
    manager: ResourceManager,
    observer: Observer,
    table: Option<Table>,
    written: Option<(Rows, Duration)>,
    /// How long a table holds.
    valid: Duration,
    submitter: Arc<Submitter>,
    answers: (Sender<Answer>, Receiver<Answer>),
    began: Stopwatch,
    owner: String,
    looks: u32,
    nodes: BTreeMap<String, Node>,
}

impl Cluster {
    /// A cluster on which applications with the tag of `owner` are of interest.
    pub(super) fn new(
        manager: ResourceManager,
        observer: Observer,
        table: Option<Table>,
        valid: Duration,
        submitter: Arc<Submitter>,
        owner: &str,
    ) -> Self {
        Self {
            manager,
            observer,
            table,
            written: None,
            valid,
            submitter,
            answers: channel(),
            began: Stopwatch::start(),
            owner: owner.to_lowercase(),
            looks: 0,
            nodes: BTreeMap::new(),
        }
    }

    /// Has applications of the run looked at that may have ended while nobody drove it.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn expect_earlier(&mut self) -> Result<(), HttpError> {
        let tags = vec![format!("{RUN_TAG}={}", self.owner)];
        let which = Which { tags, ended: true, ..Which::default() };
        for app in self.manager.apps(&which)? {
            self.observer.expect(app.id);
        }
        Ok(())
    }

    /// Looks at the cluster, and gives what changed.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn look(&mut self) -> Result<Vec<Change>, HttpError> {
        if self.looks.is_multiple_of(NODES_EVERY) {
            let nodes = self.manager.nodes()?;
            self.nodes = nodes.into_iter().map(|node| (node.host.clone(), node)).collect();
        }
        self.looks += 1;
        let Self { manager, observer, began, owner, .. } = self;
        observer.cycle(manager, began.elapsed(), |app: &App| app.tag(RUN_TAG) == Some(owner))
    }

    /// The cluster as the last look saw it.
    pub(super) fn snapshot(&self) -> &Snapshot {
        self.observer.snapshot()
    }

    /// Whether a host takes containers.
    pub(super) fn is_up(&self, host: &str) -> bool {
        self.nodes.get(host).is_some_and(Node::is_up)
    }

    /// Writes the table if its rows are others than before, or it would expire.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn publish(&mut self, rows: &Rows) -> Result<(), TableError> {
        let now = self.began.elapsed();
        let is_fresh = |(before, at): &(Rows, Duration)| before == rows && now < *at + self.valid / 3;
        if self.written.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        if let Some(table) = &mut self.table {
            table.write(rows)?;
        }
        self.written = Some((rows.clone(), now));
        Ok(())
    }

    /// Gives an application a priority.
    ///
    /// # Errors
    /// The cluster does not answer, or does not want to.
    pub(super) fn set_priority(&self, app: AppId, priority: u64) -> Result<(), HttpError> {
        self.manager.set_priority(app, priority).map(drop)
    }

    /// Has an application killed.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn kill(&self, app: AppId) -> Result<(), HttpError> {
        self.manager.kill(app)
    }

    /// Submits a job, which is answered later.
    pub(super) fn submit(&mut self, ticket: Ticket, mut request: JobRequest) {
        request.tags = vec![format!("{RUN_TAG}={}", self.owner), format!("{JOB_TAG}={}", ticket.name)];
        let (submitter, answer) = (self.submitter.clone(), self.answers.0.clone());
        // It ends with its answer, or with the process; nobody waits for it.
        thread::spawn(move || {
            let submitted = submitter.submit(&request).map(|submitted| submitted.application);
            let _ = answer.send((ticket, submitted));
        });
    }

    /// Submissions that were answered since the last call. Applications are looked at from then on.
    pub(super) fn answers(&mut self) -> Vec<Answer> {
        let answers: Vec<Answer> = self.answers.1.try_iter().collect();
        for app in answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()) {
            self.observer.expect(*app);
        }
        answers
    }
}
