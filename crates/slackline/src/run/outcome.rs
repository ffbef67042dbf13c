//! The executed schedule of a run, and its prediction.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use slackline_executor::store::layout::Layout;
use slackline_executor::store::run_schedule;
use slackline_judge::Metrics;
use slackline_model::schedule::FlowResult;
use slackline_model::{Draft, Instance, Schedule};
use slackline_trace::documents::schedule::status;
use slackline_trace::{Format, Meta, atomic_file, sha256, write_schedule, write_workload};

use super::figures::JobFigures;
use super::{Run, RunError, policy};
use crate::chosen;
use crate::simulate::Simulated;

/// The executed schedule of a run. Unfinished tasks have their estimated durations.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The workload with the measured durations.
    pub instance: Instance,
    /// The executed schedule, validated. Its claims contain its metrics.
    pub schedule: Schedule,
    /// Its metrics.
    pub metrics: Metrics,
    /// The metadata of its document.
    pub meta: Meta,
    /// The path of its document.
    pub schedule_file: PathBuf,
    /// The path of the workload document.
    pub workload_file: PathBuf,
}

/// The simulated schedule of a run: the policy on the simulator, with the durations estimated when the run
/// started.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The workload, without flows that cannot be run.
    pub instance: Instance,
    /// The simulation.
    pub simulated: Simulated,
    /// The flows whose completion is unknown: a job never ran, and its document has no duration for it, or they read the
    /// output of such a flow.
    pub unknown: BTreeSet<String>,
}

/// The error of a prediction, over the finished flows that were predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionError {
    /// Mean of |completion − predicted completion|, seconds.
    pub seconds: f64,
    /// The mean error as a fraction of the mean response time.
    pub share: f64,
}

impl Run {
    /// The executed schedule so far. It is validated, and written with its workload to the state directory.
    ///
    /// # Errors
    /// Documents that cannot be written; an invalid schedule, which is an internal error.
    pub fn outcome(&self) -> Result<Outcome, RunError> {
        let (record, request) = (self.record(), &self.request);
        let (workload, attempts) = run_schedule::whole(record.workload, record.segments, record.attempts);
        let draft = run_schedule::measured(&workload, &attempts);
        let instance = Instance::new(&draft)?;
        let policy = self.policies();
        let mut schedule = run_schedule::schedule(&instance, &attempts, &policy, request.slowstart);
        schedule.segments = run_schedule::schedule_segments(record.segments);
        let judged = slackline_judge::check(&instance, &schedule);
        let metrics = slackline_judge::metrics(&instance, &schedule);
        schedule.metrics = claims(&schedule, &metrics);
        let document = write_workload(&draft, Format::Json);
        let did = JobFigures::all(record.workload, record.attempts);
        let meta = Meta {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: sha256(document.as_bytes()),
            status: status(schedule.cost, None),
            jobs: did.iter().map(JobFigures::counts).collect(),
            choices: chosen::choices(&self.choices),
            ..Meta::default()
        };
        let layout = Layout::new(&request.state);
        let (schedule_file, workload_file) = (layout.schedule(), layout.workload());
        write(&workload_file, |out| out.write_all(document.as_bytes()))?;
        write(&schedule_file, |out| write_schedule(out, &instance, &schedule, &meta))?;
        if let Err(violation) = judged {
            let violation = Box::new(violation);
            return Err(RunError::Infeasible { violation, state: request.state.display().to_string() });
        }
        Ok(Outcome { instance, schedule, metrics, meta, schedule_file, workload_file })
    }

    /// The policies of the run, in order: `edf, then fair`.
    pub fn policies(&self) -> String {
        match run_schedule::policies(self.record().segments) {
            none if none.is_empty() => self.request.policy.spec().to_owned(),
            policies => policies,
        }
    }

    /// The prediction; `None` if no flow can run.
    ///
    /// # Errors
    /// An invalid simulation, which is an internal error.
    pub fn prediction(&self) -> Result<Option<Prediction>, RunError> {
        let unrunnable = self.record().unrunnable();
        let mut draft = self.record().workload.clone();
        draft.flows.retain(|flow| !unrunnable.contains(&flow.id));
        if draft.flows.is_empty() {
            return Ok(None);
        }
        let instance = Instance::new(&draft)?;
        let simulated = policy::simulated(&self.request.policy, &instance, &self.setting)
            .map_err(RunError::Prediction)?;
        Ok(Some(Prediction { instance, simulated, unknown: unknown_flows(&draft) }))
    }
}

impl Outcome {
    /// The number of failed flows.
    pub fn failed(&self) -> usize {
        self.schedule.flows.iter().filter(|row| row.status == FlowResult::Failed).count()
    }

    /// The error of a prediction; `None` if no finished flow was predicted.
    pub fn error_of(&self, prediction: &Prediction) -> Option<PredictionError> {
        let predicted = prediction.completions();
        let (mut flows, mut error, mut response) = (0.0, 0.0, 0.0);
        for row in &self.schedule.flows {
            let expected = predicted.get(self.instance.flow(row.flow).id.as_str());
            let (Some(completion), Some(expected)) = (row.completion, expected) else { continue };
            flows += 1.0;
            error += (completion - expected).abs();
            response += completion - row.release;
        }
        (response > 0.0).then(|| PredictionError { seconds: error / flows, share: error / response })
    }
}

impl Prediction {
    /// By name of a flow: its predicted completion, seconds after the start of the run. Without unknown ones.
    pub fn completions(&self) -> BTreeMap<&str, f64> {
        let rows = self.simulated.schedule.flows.iter();
        let named = rows.filter_map(|row| Some((self.instance.flow(row.flow).id.as_str(), row.completion?)));
        named.filter(|(flow, _)| !self.unknown.contains(*flow)).collect()
    }
}

/// The flows of a draft whose completion is unknown.
pub(super) fn unknown_flows(draft: &Draft) -> BTreeSet<String> {
    let unknown = draft.unknown_flows(|_, _, phase| phase.unknown);
    unknown.into_iter().map(str::to_owned).collect()
}

/// The metrics that a schedule claims. If no flow is finished, metrics of finished flows are left out.
fn claims(schedule: &Schedule, metrics: &Metrics) -> Vec<(String, f64)> {
    let is_nothing_done = schedule.flows.iter().all(|row| row.status == FlowResult::Failed);
    let is_of_all = |name: &str| matches!(name, "deadlines" | "missed" | "tasks");
    let known = metrics.entries().into_iter().filter(|(name, _)| !is_nothing_done || is_of_all(name));
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn write(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), RunError> {
    atomic_file::replace(path, content)
        .map_err(|problem| RunError::File { path: path.display().to_string(), problem })
}
