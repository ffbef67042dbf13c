//! The request of a run: the flow file, the policy and the options.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use slackline_executor::run::reuse::Choices;
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::store::journal::Setup;
use slackline_model::draft::{FailurePolicy, MachineDraft};
use slackline_model::{Combine, Draft, Metric, TimeSpec, WallTime};
use slackline_trace::{Importers, Parameters, sha256};

use super::policy::Setting;
use super::{Backend, DeadlineError, RunError};
use crate::policy_spec::PolicySpec;

/// The request of a run: the flow file, the policy, and the directory of its state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The name of the flow file in messages. Its extension determines the format.
    pub name: String,
    /// The flow file: a workload document whose jobs have commands, or WOHA XML with commands.
    pub bytes: Vec<u8>,
    /// The formats that the flow file may have.
    pub importers: Importers,
    /// Values of the parameters that the flow file declares.
    pub parameters: Parameters,
    /// The policy.
    pub policy: PolicySpec,
    /// The cost of a flow, instead of the workload's metric.
    pub metric: Option<Metric>,
    /// The function that combines the costs of flows, instead of the workload's.
    pub combine: Option<Combine>,
    /// Deadlines of flows, in addition to the workload's or in place of them.
    pub deadlines: Vec<Deadline>,
    /// The fraction of a job's maps that must be finished before its reduces may take slots; 1 for all maps.
    pub slowstart: f64,
    /// The number of failures of a task after which its flow fails.
    pub attempts_max: u16,
    /// What happens to the rest of a flow when a job has failed that does not say it itself.
    pub failure_policy: Option<FailurePolicy>,
    /// The state directory of the run.
    pub state: PathBuf,
    /// The history: a store of the durations of jobs in earlier runs. Created if it does not exist.
    pub history: Option<PathBuf>,
    /// Which jobs are rerun although they are finished.
    pub choices: Choices,
    /// The directory of relative paths and commands; by default the working directory of this process.
    pub directory: Option<PathBuf>,
    /// The start, microseconds since 1970; by default now. For a resumed run: the time from which deadlines
    /// count, by default the start of the run.
    pub since: Option<u64>,
    /// The time zone of times of day, such as `Europe/Berlin`; by default that of this machine.
    pub zone: Option<String>,
    /// The time of a schedule that the run is for.
    pub scheduled: Option<WallTime>,
    /// The number of a rerun, which [`Request::start_rerun`] sets.
    pub rerun: Option<u64>,
    /// The durations of jobs in earlier runs, instead of the history file.
    pub past: Option<Arc<JobHistory>>,
    /// The owner of the flows, if several users share a history. Records are stored under the owner, and
    /// records of other owners are ignored.
    pub owner: Option<String>,
    /// The machines that the run shares with other runs of a service ([`crate::resident`]); `None` if the run
    /// has its own engine.
    pub beside_others: Option<Vec<MachineDraft>>,
}

/// The option that records the time of a schedule, microseconds since 1970.
const SCHEDULED: &str = "scheduled";

/// The option that records the number of a rerun.
const RERUN: &str = "rerun";

/// A deadline of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// The flow.
    pub flow: String,
    /// The deadline. A time of day is the first one after the release.
    pub when: TimeSpec,
}

impl Request {
    /// A request to run a flow file under a policy with default options: four attempts, slowstart 1, no
    /// history, and finished jobs are kept.
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
            failure_policy: None,
            state: state.into(),
            history: None,
            choices: Choices::default(),
            directory: None,
            since: None,
            zone: None,
            scheduled: None,
            rerun: None,
            past: None,
            owner: None,
            beside_others: None,
        }
    }

    /// The run is for this time of a schedule: all its jobs run, unless the last run was for the same time.
    ///
    /// # Errors
    /// A state directory that cannot be read.
    pub fn start_time(&mut self, at: WallTime) -> Result<(), RunError> {
        if self.recorded(SCHEDULED)? != Some(at.0.to_string()) {
            // Outputs of another time are no inputs of this one, so a choice of jobs does not hold.
            let foreign = self.choices.foreign;
            self.choices = Choices::again();
            self.choices.foreign = foreign;
        }
        self.scheduled = Some(at);
        Ok(())
    }

    /// The run is a rerun with this number: it runs the jobs of `choices`, unless the last run was the same rerun, which
    /// then continues.
    ///
    /// # Errors
    /// A state directory that cannot be read.
    pub fn start_rerun(&mut self, number: u64, choices: Choices) -> Result<(), RunError> {
        if self.recorded(RERUN)? != Some(number.to_string()) {
            self.choices = choices;
        }
        self.rerun = Some(number);
        Ok(())
    }

    /// An option of the last run of the state directory.
    fn recorded(&self, option: &str) -> Result<Option<String>, RunError> {
        Ok(super::look(&self.state)?.and_then(|last| last.head.setup.options.get(option).cloned()))
    }

    /// The last component of the name.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// The settings of the run, which are recorded with it.
    pub(super) fn setup(&self, backend: &dyn Backend) -> Setup {
        let mut options = BTreeMap::from([
            ("policy".to_owned(), self.policy.spec().to_owned()),
            ("slowstart".to_owned(), self.slowstart.to_string()),
            ("attempts".to_owned(), self.attempts_max.to_string()),
        ]);
        let description = backend.description();
        options.extend(description.options);
        options.extend(description.profile.map(|profile| ("profile".to_owned(), profile.to_string())));
        options.extend(self.parameters.options());
        options.extend(self.metric.map(|metric| ("metric".to_owned(), metric.to_string())));
        options.extend(self.scheduled.map(|at| (SCHEDULED.to_owned(), at.0.to_string())));
        options.extend(self.rerun.map(|number| (RERUN.to_owned(), number.to_string())));
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

    /// The settings for the simulator.
    pub(super) fn setting(&self, backend: &dyn Backend) -> Setting {
        Setting { slowstart: self.slowstart, profile: backend.description().profile }
    }
}

/// Sets the deadlines of a workload. Returns those before the start of the run: their flows are late in any
/// case and run nevertheless, with the start as deadline.
///
/// # Errors
/// Two deadlines for one flow, an unknown flow, or a time outside the calendar.
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
