//! This machine as an engine: tasks are processes, outputs are directories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use slackline_local::job_cost::GROUP;
use slackline_local::run::{self, Drive, Recovered};
use slackline_local::{
    Attempt, Identity, JobHistory, Obstacle, Resolved, RunEnd, Settings, preflight, resolve,
};
use slackline_model::Draft;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

use super::{Backend, Beginning, Fault, Hindered, Opened, Prepared, RunError, Session, Stop};

/// This machine.
#[derive(Clone, Debug)]
pub struct LocalEngine {
    /// Tasks at a time.
    pub slots: Slots,
    /// About how many bytes of a file a map reads.
    pub split_bytes: u64,
    /// How attempts are run.
    pub settings: Settings,
}

impl Backend for LocalEngine {
    fn options(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("split".to_owned(), self.split_bytes.to_string()),
            ("slots".to_owned(), format!("{:?}", self.slots)),
        ])
    }

    fn machines(&self) -> Vec<MachineDraft> {
        vec![MachineDraft { name: GROUP.to_owned(), count: 1, speed: 1.0, slots: self.slots, rack: None }]
    }

    fn prepare(&self, workload: &Draft, past: &JobHistory) -> Result<Box<dyn Prepared>, Vec<Fault>> {
        match resolve(workload, self.split_bytes, past) {
            Ok(resolved) => Ok(Box::new(PreparedHere { resolved, settings: self.settings.clone() })),
            Err(error) => Err(vec![Fault { path: error.path, problem: error.problem }]),
        }
    }

    fn open(&self, state: &Path, identity: &Identity) -> Result<Opened, RunError> {
        let found = run::find(state, identity)?;
        if found.is_orphaned() {
            return Ok(Opened::Orphaned);
        }
        if !found.is_begun() {
            return Ok(Opened::Nothing);
        }
        let session = found.resume()?;
        Ok(Opened::Begun(Box::new(SessionHere { session, settings: self.settings.clone() })))
    }
}

/// A workload that is ready to be run here.
struct PreparedHere {
    resolved: Resolved,
    settings: Settings,
}

impl Prepared for PreparedHere {
    fn workload(&self) -> &Draft {
        &self.resolved.draft
    }

    fn hindered(&self) -> Vec<Hindered> {
        let Resolved { jobs, places, .. } = &self.resolved;
        let of = |obstacle: Obstacle| Hindered {
            flow: jobs[obstacle.job].flow.clone(),
            fault: Fault { path: places[obstacle.job].clone(), problem: obstacle.problem },
        };
        preflight(jobs, &BTreeSet::new()).into_iter().map(of).collect()
    }

    fn discard(&self, state: &Path) -> Result<bool, RunError> {
        Ok(run::discard(state, &self.resolved.jobs)?)
    }

    fn begin(self: Box<Self>, beginning: Beginning<'_>) -> Result<Box<dyn Session>, RunError> {
        let Self { resolved, settings } = *self;
        let Beginning { state, identity, started } = beginning;
        let session = run::find(state, &identity)?.begin(identity, started, resolved)?;
        Ok(Box::new(SessionHere { session, settings }))
    }
}

/// A run on this machine.
struct SessionHere {
    session: run::Session,
    settings: Settings,
}

impl Session for SessionHere {
    fn workload(&self) -> &Draft {
        self.session.draft()
    }

    fn started(&self) -> u64 {
        self.session.started()
    }

    fn attempts(&self) -> &[Attempt] {
        self.session.attempts()
    }

    fn recovered(&self) -> Recovered {
        self.session.recovered()
    }

    fn obstacles(&self) -> &[Obstacle] {
        self.session.obstacles()
    }

    fn finished_jobs(&self) -> JobHistory {
        self.session.finished_jobs()
    }

    fn run(&mut self, drive: Drive<'_>, stop: &mut dyn FnMut(Stop)) -> Result<RunEnd, RunError> {
        let interrupted = |interrupt: slackline_local::Interrupt| stop(Stop::new(move || interrupt.stop()));
        Ok(self.session.run(drive, self.settings.clone(), interrupted)?)
    }
}
