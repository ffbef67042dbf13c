//! The state of a run, read from its state directory: progress, running tasks, and predicted completions of
//! flows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use slackline_executor::store::applications::ExternalJob;
use slackline_executor::store::journal::{Attempt, KeptJob, Segment};
use slackline_executor::store::machine_slots::{MachineSlots, WholeCluster};
use slackline_executor::store::running_attempt::RunningAttempt;
use slackline_model::cost::is_late;
use slackline_model::{Draft, Instance, Schedule, Start, Time};
use slackline_task::base::clock;

use slackline_executor::engine::event::FlowStatus;
use slackline_executor::run::error::EngineError;
use slackline_executor::run::inspect::RunInspection;
use slackline_executor::store::run_schedule;

use super::figures::JobFigures;
use super::machines::{MachineState, machines};
use super::policy::Setting;
use super::run_model::RunModel;
use super::{Forecast, Progress, RunError};
use crate::explain::TaskNow;
use crate::policy_spec::PolicySpec;
use crate::words::doing;

slackline_model::named_enum! {
    /// The state of a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Stage {
        /// A process drives it.
        Running = "running",
        /// It was stopped or killed, and can be resumed.
        Stopped = "stopped",
        /// All its flows are finished.
        Finished = "finished",
        /// It has ended, and at least one flow failed.
        Failed = "failed",
    }
}

/// The state of a run. Times are in seconds since its start unless stated otherwise.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StateOfRun {
    /// Its state directory.
    pub state: PathBuf,
    /// Its start, microseconds since 1970.
    pub started: u64,
    /// The date of second 0 of the run.
    pub start: Option<Start>,
    /// The policy, if it is recorded. If the policy changed, all policies in order.
    pub policy: Option<String>,
    /// Its settings over time, the current one last.
    pub segments: Vec<Segment>,
    /// The state of the run.
    pub stage: Stage,
    /// The current time; for a run that has ended, the time of its last record.
    pub now: f64,
    /// The time of its last record.
    pub recorded: f64,
    /// Its number of slots.
    pub slots: u32,
    /// Its flows.
    pub flows: Vec<FlowState>,
    /// The jobs of the flow file that earlier runs finished and that this run keeps.
    pub kept: Vec<KeptJob>,
    /// Its machines, if it has several.
    pub machines: Vec<MachineState>,
    /// The running tasks.
    pub at_work: Vec<NamedAttempt>,
    /// Its jobs on a cluster, including those that earlier runs finished.
    pub there: Vec<ExternalJob>,
}

/// The progress of a flow.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowState {
    /// Its name.
    pub id: String,
    /// Its release time.
    pub release: f64,
    /// Its deadline.
    pub deadline: Option<f64>,
    /// Its state.
    pub status: FlowStatus,
    /// Its completion time.
    pub completion: Option<f64>,
    /// Its predicted completion time, if nothing interferes. For a stopped run, assuming that it is resumed
    /// now.
    pub predicted: Option<f64>,
    /// The 80 % prediction interval of its completion time, if durations vary as they did so far. `None` if
    /// the interval is empty.
    pub predicted_between: Option<[f64; 2]>,
    /// Whether its completion is unknown: a job never ran, and its document has no duration for it.
    pub unknown: bool,
    /// Its jobs.
    pub jobs: Vec<JobState>,
}

/// The progress of a job.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobState {
    /// The jobs of its flow that it depends on.
    pub after: Vec<String>,
    /// Its figures so far.
    pub figures: JobFigures,
    /// Its number of running tasks, as far as the engine reports them.
    pub at_work: usize,
}

/// A running attempt with its names.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NamedAttempt {
    /// Its flow.
    pub flow: String,
    /// Its job.
    pub job: String,
    /// The machine, if the run has several.
    pub machine: Option<String>,
    /// The attempt; its slot is counted on its machine.
    pub attempt: RunningAttempt,
}

impl NamedAttempt {
    /// Since when it has its slot, seconds since the run began.
    pub fn since(&self) -> f64 {
        Time(self.attempt.since).seconds()
    }
}

impl FlowState {
    /// Its tasks, and how many of them are finished.
    pub fn tasks(&self) -> Progress {
        self.jobs.iter().map(|job| job.figures.tasks()).sum()
    }

    /// The number of failed attempts.
    pub fn failed(&self) -> u64 {
        self.jobs.iter().map(|job| job.figures.failed()).sum()
    }

    /// Whether it missed its deadline or is predicted to miss it; `None` without a deadline or a prediction.
    pub fn is_late(&self, now: f64) -> Option<bool> {
        let deadline = self.deadline?;
        match self.completion.or(self.predicted) {
            Some(at) => Some(is_late(at, deadline)),
            // A flow that is unfinished after its deadline is late, whenever it finishes.
            None => is_late(now, deadline).then_some(true),
        }
    }
}

impl StateOfRun {
    /// The state of an inspected run at `moment`, microseconds since 1970. With a policy, the completions of
    /// its flows are simulated. O(tasks + attempts · log), and a simulation.
    pub fn of(look: &RunInspection, policy: Option<&PolicySpec>, moment: u64) -> Self {
        let workload = &look.head.workload;
        let since = |micros: u64| micros.saturating_sub(look.head.started);
        let figures = JobFigures::all(workload, &look.attempts);
        let all_done = figures.iter().all(JobFigures::is_done);
        let stage = match (look.is_at_work, all_done, look.has_ended) {
            (true, ..) => Stage::Running,
            (false, true, true) => Stage::Finished,
            (false, false, true) => Stage::Failed,
            // Even if all tasks are recorded as finished: the last output may not have been moved into place
            // yet.
            (false, _, false) => Stage::Stopped,
        };
        let recorded = Time(since(look.recorded));
        let now =
            if matches!(stage, Stage::Running | Stage::Stopped) { Time(since(moment)) } else { recorded };
        let names: Vec<(String, String)> =
            figures.iter().map(|job| (job.flow.clone(), job.job.clone())).collect();
        let places = MachineSlots::of(&workload.machines);
        let at_work: Vec<NamedAttempt> = (look.at_work.iter())
            .filter_map(|&(mut attempt)| {
                let (flow, job) = names.get(attempt.id.job as usize)?.clone();
                let place = attempt.slot().and_then(|slot| places.of_several(attempt.id.phase, slot));
                let (machine, slot) = place.unzip();
                if let Some((holder, slot)) = attempt.holder.as_mut().zip(slot) {
                    holder.slot = slot;
                }
                Some(NamedAttempt { flow, job, machine, attempt })
            })
            .collect();
        let predicted = match policy {
            Some(policy) if !all_done && stage != Stage::Failed => predicted(look, policy, now, &at_work),
            _ => Predicted::default(),
        };
        let has_failed = |flow: &str| look.there.iter().any(|job| job.failed && job.flow == flow);
        let flows = flow_states(workload, figures, &at_work, |flow| StageAndTimes {
            stage: if has_failed(flow) { Stage::Failed } else { stage },
            predicted: predicted.at.get(flow).copied(),
            between: predicted.between.get(flow).copied(),
            unknown: predicted.unknown.contains(flow),
        });
        Self {
            state: root(look),
            started: look.head.started,
            start: workload.start.clone(),
            policy: Some(run_schedule::policies(&look.head.segments)).filter(|policy| !policy.is_empty()),
            segments: look.head.segments.clone(),
            stage,
            now: now.seconds(),
            recorded: recorded.seconds(),
            slots: look.head.last_segment().slots(),
            flows,
            kept: look.head.kept.clone(),
            machines: machines(&workload.machines, &look.attempts, &look.at_work),
            at_work,
            there: look.there.clone(),
        }
    }

    /// Its tasks, and how many of them are finished.
    pub fn tasks(&self) -> Progress {
        self.flows.iter().map(FlowState::tasks).sum()
    }

    /// Whether a job on a cluster belongs to this run, and not to an earlier one.
    pub fn is_of_run(&self, there: &ExternalJob) -> bool {
        there.run == self.started
    }

    /// The state of a job on a cluster, in words. Empty unless a process drives this run and the job is an
    /// unfinished one of it.
    pub fn stage_there(&self, there: &ExternalJob) -> String {
        if self.stage != Stage::Running || !self.is_of_run(there) || self.is_done(there) {
            return String::new();
        }
        doing(there)
    }

    fn is_done(&self, there: &ExternalJob) -> bool {
        let mut jobs = self.flows.iter().filter(|flow| flow.id == there.flow).flat_map(|flow| &flow.jobs);
        jobs.find(|job| job.figures.job == there.job).is_none_or(|job| job.figures.is_done())
    }

    /// Its start in the local time zone of this machine.
    pub fn clock(&self) -> Start {
        clock::local(self.started)
    }
}

/// The state directory of a run.
fn root(look: &RunInspection) -> PathBuf {
    look.layout.journal().parent().map(Path::to_owned).unwrap_or_default()
}

/// The predicted completions of the flows of a run.
#[derive(Default)]
struct Predicted {
    at: BTreeMap<String, f64>,
    between: BTreeMap<String, [f64; 2]>,
    /// The flows whose completion is unknown.
    unknown: BTreeSet<String>,
}

fn predicted(look: &RunInspection, policy: &PolicySpec, now: Time, at_work: &[NamedAttempt]) -> Predicted {
    let workload = &look.head.workload;
    let setting = Setting { slowstart: look.slowstart(), profile: look.profile() };
    let workload = &Draft { machines: look.head.last_segment().machines.clone(), ..workload.clone() };
    let mut model = RunModel::new(setting, workload);
    model.learn(&look.attempts);
    look.there.iter().filter(|job| job.failed).for_each(|job| model.fail(&job.flow));
    for one in at_work {
        model.start(one.attempt.id, Time(one.attempt.since));
    }
    let forecast = Forecast::new(policy.clone(), model);
    let Some(mut at) = forecast.simulated(now) else { return Predicted::default() };
    let unknown: BTreeSet<String> = forecast.model.unknown_flows().into_iter().map(str::to_owned).collect();
    at.retain(|flow, _| !unknown.contains(flow));
    let mut between = forecast.spread(now);
    between.retain(|flow, [least, most]| {
        // The interval always contains the predicted completion.
        let Some(expected) = at.get(flow).copied() else { return false };
        (*least, *most) = (least.min(expected), most.max(expected));
        least < most
    });
    Predicted { at, between, unknown }
}

/// The facts about a flow beside its tasks.
struct StageAndTimes {
    stage: Stage,
    predicted: Option<f64>,
    between: Option<[f64; 2]>,
    unknown: bool,
}

fn flow_states(
    workload: &Draft,
    figures: Vec<JobFigures>,
    at_work: &[NamedAttempt],
    known: impl Fn(&str) -> StageAndTimes,
) -> Vec<FlowState> {
    let mut figures = figures.into_iter().zip(0u32..);
    let mut flows = Vec::with_capacity(workload.flows.len());
    for flow in &workload.flows {
        let of = |(job, (figures, index))| {
            let job: &slackline_model::draft::JobDraft = job;
            let is_its = |one: &&NamedAttempt| one.attempt.id.job == index;
            JobState { after: job.after.clone(), figures, at_work: at_work.iter().filter(is_its).count() }
        };
        let jobs: Vec<JobState> = flow.jobs.iter().zip(figures.by_ref()).map(of).collect();
        let known = known(&flow.id);
        let is_done = jobs.iter().all(|job| job.figures.is_done());
        let phases = || jobs.iter().flat_map(|job| job.figures.phases());
        let is_begun = phases().any(|phase| phase.began.is_some()) || jobs.iter().any(|job| job.at_work > 0);
        let status = match known.stage {
            _ if is_done => FlowStatus::Finished,
            Stage::Failed => FlowStatus::Failed,
            _ if is_begun => FlowStatus::Running,
            _ => FlowStatus::Waiting,
        };
        let last = phases().filter_map(|phase| phase.ended).fold(flow.release, f64::max);
        flows.push(FlowState {
            id: flow.id.clone(),
            release: flow.release,
            deadline: flow.deadline,
            status,
            completion: is_done.then_some(last),
            predicted: known.predicted.filter(|_| !is_done),
            predicted_between: known.between.filter(|_| !is_done),
            unknown: known.unknown && !is_done,
            jobs,
        });
    }
    flows
}

/// The schedule of one or several runs so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SoFar {
    /// The workload, with the measured durations of its tasks.
    pub instance: Instance,
    /// The recorded attempts. Unfinished flows count as failed, as in every schedule.
    pub schedule: Schedule,
    /// The tasks that are running, as far as the state directory shows them. Empty for several runs, whose
    /// processes belong to a service.
    pub at_work: Vec<TaskNow>,
}

impl SoFar {
    fn new(
        draft: &Draft,
        attempts: &[Attempt],
        at_work: &[RunningAttempt],
        first: Option<&RunInspection>,
        is_alone: bool,
    ) -> Result<Self, RunError> {
        let instance = Instance::new(draft)?;
        let segments = first.map_or(&[][..], |look| &look.head.segments);
        let policy = run_schedule::policies(segments);
        let policy = if policy.is_empty() { "run" } else { policy.as_str() };
        let mut schedule =
            run_schedule::schedule(&instance, attempts, policy, first.map_or(1.0, RunInspection::slowstart));
        if is_alone {
            schedule.segments = run_schedule::schedule_segments(segments);
        }
        let now = |task: &RunningAttempt| {
            Some(TaskNow {
                phase: run_schedule::phase_of(&instance, task.id)?,
                since: Time(task.since).seconds(),
            })
        };
        let at_work = at_work.iter().filter_map(now).collect();
        Ok(Self { instance, schedule, at_work })
    }
}

/// The schedule of a run so far.
///
/// # Errors
/// An invalid workload.
pub fn so_far(look: &RunInspection) -> Result<SoFar, RunError> {
    let measured = run_schedule::measured(&look.head.workload, &look.attempts);
    SoFar::new(&measured, &look.attempts, &look.at_work, Some(look), true)
}

/// The schedule so far of several runs that share machines. Each run has a name, and its flows are called
/// `NAME/FLOW`. Times count from the start of the first run.
///
/// # Errors
/// An invalid workload.
pub fn so_far_together(looks: &[(String, RunInspection)]) -> Result<SoFar, RunError> {
    let began = looks.iter().map(|(_, look)| look.head.started).min().unwrap_or(0);
    let mut all = Draft { start: Some(clock::local(began)), ..Draft::default() };
    let (mut attempts, mut jobs): (Vec<Attempt>, u32) = (Vec::new(), 0);
    // The machines of each run are those of its segments. The merged cluster has the machines of all runs.
    let cluster = |look: &RunInspection| Segment {
        machines: look.head.workload.machines.clone(),
        ..Segment::default()
    };
    let clusters: Vec<Segment> = looks.iter().map(|(_, look)| cluster(look)).collect();
    let whole = WholeCluster::of(&clusters);
    all.machines = whole.machines().to_vec();
    for ((name, look), cluster) in looks.iter().zip(&clusters) {
        let later = look.head.started - began;
        let measured = run_schedule::measured(&look.head.workload, &look.attempts);
        if jobs == 0 {
            all.objective = measured.objective;
        }
        all.add_pools(&measured.pools);
        for mut flow in measured.flows {
            flow.id = format!("{name}/{}", flow.id);
            all.flows.push(flow.later(later as f64 / 1e6));
        }
        attempts.extend(look.attempts.iter().map(|attempt| {
            let mut attempt = attempt.clone();
            attempt.slot = whole.slot_of(cluster, attempt.id.phase, attempt.slot).unwrap_or(attempt.slot);
            attempt.id.job += jobs;
            for at in [&mut attempt.start, &mut attempt.began, &mut attempt.end] {
                *at += later;
            }
            attempt
        }));
        jobs += look.jobs.len() as u32;
    }
    attempts.sort_by_key(|attempt| (attempt.start, attempt.id));
    SoFar::new(&all, &attempts, &[], looks.first().map(|(_, look)| look), false)
}

/// Inspects the run of a state directory; `None` if the directory has no run.
///
/// # Errors
/// As [`slackline_executor::run::inspect::inspect`].
pub fn look(state: &Path) -> Result<Option<RunInspection>, RunError> {
    slackline_executor::run::inspect::inspect(state).map_err(|error: EngineError| error.into())
}
