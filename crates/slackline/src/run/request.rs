//! What to run, and how.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use slackline_executor::run::reuse::Choices;
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::store::journal::Setup;
use slackline_model::draft::MachineDraft;
use slackline_model::{Combine, Draft, Metric, When};
use slackline_trace::{Importers, Parameters, sha256};

use super::policy::Setting;
use super::{Backend, DeadlineError};
use crate::policy_spec::PolicySpec;

/// What to run, under which policy, and where its state is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// What messages call the flow file; its ending says in which format it is.
    pub name: String,
    /// The flow file: a workload document whose jobs say what they run, or WOHA XML with commands.
    pub bytes: Vec<u8>,
    /// The formats that the flow file may come in.
    pub importers: Importers,
    /// Values of the parameters that the flow file declares.
    pub parameters: Parameters,
    /// Says what starts where and when.
    pub policy: PolicySpec,
    /// What a flow costs, instead of the workload's metric.
    pub metric: Option<Metric>,
    /// How the costs of flows are put together, instead of the workload's way.
    pub combine: Option<Combine>,
    /// Deadlines of flows, beside or instead of the workload's.
    pub deadlines: Vec<Deadline>,
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
    /// How often a task may fail before its flow has failed.
    pub attempts_max: u16,
    /// The directory of the run's state.
    pub state: PathBuf,
    /// The store of what jobs took in earlier runs; begun if it is not there.
    pub history: Option<PathBuf>,
    /// What is to be done whatever was done before.
    pub choices: Choices,
    /// The directory that relative paths start from, and that commands run in; that of this process if nothing is said.
    pub directory: Option<PathBuf>,
    /// When it starts, microseconds since 1970; now if nothing is said. Of one that is continued: since when deadlines count; since it
    /// started if nothing is said.
    pub since: Option<u64>,
    /// What jobs took in earlier runs, instead of the history's file.
    pub past: Option<Arc<JobHistory>>,
    /// Whose flows they are, where several users have a history together: what is remembered is theirs, and what others' jobs of the same
    /// names took says nothing of them.
    pub owner: Option<String>,
    /// The machines that it shares with others, of an engine that stays ([`crate::resident`]); none if it has an engine to
    /// itself.
    pub beside_others: Option<Vec<MachineDraft>>,
}

/// A deadline of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// The flow.
    pub flow: String,
    /// When; a time of day is the first one after the release.
    pub when: When,
}

impl Request {
    /// To run a flow file under a policy, with everything else as it usually is: four attempts, no early reduces, no
    /// history, doing what is not done.
    pub fn new(
        name: impl Into<String>,
        bytes: Vec<u8>,
        policy: PolicySpec,
        state: impl Into<PathBuf>,
    ) -> Self {
        Self {
            name: name.into(),
            bytes,
            importers: Importers::default(),
            parameters: Parameters::default(),
            policy,
            metric: None,
            combine: None,
            deadlines: Vec::new(),
            slowstart: 1.0,
            attempts_max: slackline_policy::driver::ATTEMPTS_MAX,
            state: state.into(),
            history: None,
            choices: Choices::default(),
            directory: None,
            since: None,
            past: None,
            owner: None,
            beside_others: None,
        }
    }

    /// The last part of the name.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// How it is begun or continued, to be remembered with it.
    pub(super) fn setup(&self, backend: &dyn Backend) -> Setup {
        let mut options = BTreeMap::from([
            ("policy".to_owned(), self.policy.spec().to_owned()),
            ("slowstart".to_owned(), self.slowstart.to_string()),
            ("attempts".to_owned(), self.attempts_max.to_string()),
        ]);
        options.extend(backend.options());
        options.extend(backend.profile().map(|profile| ("profile".to_owned(), profile.to_string())));
        options.extend(self.parameters.options());
        options.extend(self.metric.map(|metric| ("metric".to_owned(), metric.to_string())));
        options.extend(self.combine.map(|combine| ("combine".to_owned(), combine.name().to_owned())));
        let here = self.directory.clone().or_else(|| std::env::current_dir().ok());
        let directory = here.map_or_else(String::new, |path| path.display().to_string());
        Setup {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: sha256(&self.bytes),
            directory,
            options,
        }
    }

    /// Where it is run, for the simulator.
    pub(super) fn setting(&self, backend: &dyn Backend) -> Setting {
        Setting { slowstart: self.slowstart, profile: backend.profile() }
    }
}

/// Sets the deadlines of a workload; gives those that were before the start of the run. Their flows are late whatever is done, and
/// run all the same: their deadline is the start.
///
/// # Errors
/// Two deadlines for one flow, a flow that there is not, or a time beyond all calendars.
pub fn set_deadlines<'a>(
    deadlines: &'a [Deadline],
    workload: &mut Draft,
) -> Result<Vec<&'a Deadline>, DeadlineError> {
    let mut late = Vec::new();
    for (k, deadline) in deadlines.iter().enumerate() {
        let name = deadline.flow.clone();
        if deadlines[..k].iter().any(|earlier| earlier.flow == name) {
            return Err(DeadlineError::Twice { flow: name });
        }
        let known = workload.flows.iter().map(|flow| flow.id.clone()).collect();
        let Some(flow) = workload.flows.iter_mut().find(|flow| flow.id == name) else {
            return Err(DeadlineError::Unknown { flow: name, known });
        };
        if workload.start.as_ref().is_some_and(|start| deadline.when.is_before(start)) {
            flow.deadline = Some(0.0);
            late.push(deadline);
            continue;
        }
        let after = Bound::Excluded(flow.release);
        let seconds = deadline.when.seconds(workload.start.as_ref(), after);
        flow.deadline = Some(seconds.map_err(|what| DeadlineError::When { flow: name, what })?);
    }
    Ok(late)
}
