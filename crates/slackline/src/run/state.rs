//! A run as it is seen from outside: how far it is, what it does now, and when its flows are going to be done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use slackline_executor::store::applications::ExternalJob;
use slackline_executor::store::journal::{Attempt, KeptJob, Segment};
use slackline_executor::store::machine_slots::{MachineSlots, WholeCluster};
use slackline_executor::store::pid_file::AtWork;
use slackline_model::cost::is_late;
use slackline_model::{Draft, Instance, Schedule, Start, Time};
use slackline_task::base::clock;
use slackline_task::base::task_id::TaskId;

use slackline_executor::run::error::EngineError;
use slackline_executor::run::inspect::RunInspection;
use slackline_executor::store::run_schedule;

use super::figures::JobFigures;
use super::machines::{MachineState, machines};
use super::policy::Setting;
use super::{Forecast, Progress, RunError};
use crate::explain::TaskNow;
use crate::policy_spec::PolicySpec;
use crate::words::doing;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// A process is at work on it.
    AtWork,
    /// It was stopped or killed, and can be resumed.
    Stopped,
    /// All its flows are done.
    Done,
    /// It came to its end, and flows have failed.
    Failed,
}

impl Stage {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtWork => "at_work",
            Self::Stopped => "stopped",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// Where a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowStatus {
    /// It has not been released yet.
    Coming,
    /// It is released, and nothing of it was begun.
    Waiting,
    /// Some of it is done or at work.
    Begun,
    /// All its tasks are done.
    Done,
    /// The run has ended without it.
    Failed,
}

impl FlowStatus {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coming => "coming",
            Self::Waiting => "waiting",
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// A run from outside. Times are seconds since its start unless something else is said.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StateOfRun {
    /// Its state directory.
    pub state: PathBuf,
    /// When it started: microseconds since 1970.
    pub started: u64,
    /// When its second 0 is, for clock times.
    pub start: Option<Start>,
    /// The policy, if it has recorded it; of a run whose policy changed all of them, in order.
    pub policy: Option<String>,
    /// The settings that it had, and has.
    pub segments: Vec<Segment>,
    /// Where it is.
    pub stage: Stage,
    /// Now; of a run that has ended, when something was recorded the last time.
    pub now: f64,
    /// When something was recorded the last time.
    pub recorded: f64,
    /// How many slots it has.
    pub slots: u32,
    /// Its flows.
    pub flows: Vec<FlowState>,
    /// The jobs of the flow file that earlier runs have done and this one leaves as they are.
    pub kept: Vec<KeptJob>,
    /// Its machines, if it is on several.
    pub machines: Vec<MachineState>,
    /// What is at work.
    pub at_work: Vec<TaskAtWork>,
    /// Its jobs on a cluster, those that earlier runs have done among them.
    pub there: Vec<ExternalJob>,
}

/// How far a flow is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowState {
    /// Its name.
    pub id: String,
    /// When it is released.
    pub release: f64,
    /// Its deadline.
    pub deadline: Option<f64>,
    /// Where it is.
    pub status: FlowStatus,
    /// When it was done.
    pub completion: Option<f64>,
    /// When it is going to be done, if nothing interferes; of a run that was stopped, if it is taken up now.
    pub predicted: Option<f64>,
    /// Between which times eight of ten courses of the run end it, if durations vary as they did; `None` if that says
    /// nothing.
    pub predicted_between: Option<[f64; 2]>,
    /// Its jobs.
    pub jobs: Vec<JobState>,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobState {
    /// The jobs of its flow that come before it.
    pub after: Vec<String>,
    /// What it did so far.
    pub figures: JobFigures,
    /// Its tasks at work, as far as the engine says which they are.
    pub at_work: usize,
}

/// A task at work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskAtWork {
    /// Its flow.
    pub flow: String,
    /// Its job.
    pub job: String,
    /// The task.
    pub id: TaskId,
    /// The process; none of one on a cluster.
    pub process: Option<u64>,
    /// The machine, if the run is on several.
    pub machine: Option<String>,
    /// The slot of its machine; none of one on a cluster.
    pub slot: Option<u32>,
    /// Since when.
    pub since: f64,
}

impl FlowState {
    /// Its tasks, and how many of them are done.
    pub fn tasks(&self) -> Progress {
        self.jobs.iter().map(|job| job.figures.tasks()).fold(Progress::default(), |sum, job| Progress {
            total: sum.total + job.total,
            done: sum.done + job.done,
        })
    }

    /// Attempts that failed.
    pub fn failed(&self) -> u64 {
        self.jobs.iter().map(|job| job.figures.failed()).sum()
    }

    /// Whether it was late, or is going to be; `None` without a deadline, or where nobody knows.
    pub fn is_late(&self, now: f64) -> Option<bool> {
        let deadline = self.deadline?;
        match self.completion.or(self.predicted) {
            Some(at) => Some(is_late(at, deadline)),
            // What is not done after its deadline is late whenever it will be done.
            None => is_late(now, deadline).then_some(true),
        }
    }
}

impl StateOfRun {
    /// What there is to say of a run that was looked at, at a moment (microseconds since 1970). With the policy, when
    /// its flows are going to be done is simulated. O(tasks + attempts · log), and a simulation.
    pub fn of(look: &RunInspection, policy: Option<&PolicySpec>, moment: u64) -> Self {
        let workload = &look.head.workload;
        let since = |micros: u64| micros.saturating_sub(look.head.started);
        let figures = JobFigures::all(workload, &look.attempts);
        let all_done = figures.iter().all(JobFigures::is_done);
        let stage = match (look.is_at_work, all_done, look.has_ended) {
            (true, ..) => Stage::AtWork,
            (false, true, true) => Stage::Done,
            (false, false, true) => Stage::Failed,
            // Even if all is recorded as done: the last of it may not be in its place yet.
            (false, _, false) => Stage::Stopped,
        };
        let recorded = Time(since(look.recorded));
        let now =
            if matches!(stage, Stage::AtWork | Stage::Stopped) { Time(since(moment)) } else { recorded };
        let names: Vec<(String, String)> =
            figures.iter().map(|job| (job.flow.clone(), job.job.clone())).collect();
        let places = MachineSlots::of(&workload.machines);
        let at_work: Vec<TaskAtWork> = (look.at_work.iter())
            .filter_map(|one| {
                let (flow, job) = names.get(one.id.job as usize)?.clone();
                let since = Time(one.since).seconds();
                let place = one.slot.and_then(|slot| places.of_several(one.id.phase, slot));
                let (machine, slot) =
                    place.map_or((None, one.slot), |(machine, slot)| (Some(machine), Some(slot)));
                Some(TaskAtWork { flow, job, id: one.id, process: one.pid, machine, slot, since })
            })
            .collect();
        let predicted = match policy {
            Some(policy) if !all_done && stage != Stage::Failed => predicted(look, policy, now, &at_work),
            _ => Predicted::default(),
        };
        let has_failed = |flow: &str| look.there.iter().any(|job| job.failed && job.flow == flow);
        let flows = flow_states(workload, figures, &at_work, |flow| Known {
            stage: if has_failed(flow) { Stage::Failed } else { stage },
            now: now.seconds(),
            predicted: predicted.at.get(flow).copied(),
            between: predicted.between.get(flow).copied(),
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

    /// Its tasks, and how many of them are done.
    pub fn tasks(&self) -> Progress {
        self.flows.iter().map(FlowState::tasks).fold(Progress::default(), |sum, flow| Progress {
            total: sum.total + flow.total,
            done: sum.done + flow.done,
        })
    }

    /// Whether a job on a cluster is of this run, and not of an earlier one.
    pub fn is_of_run(&self, there: &ExternalJob) -> bool {
        there.run == self.started
    }

    /// What a job does on a cluster, in words; of a run that is driven.
    pub fn stage_there(&self, there: &ExternalJob) -> String {
        if self.stage != Stage::AtWork || !self.is_of_run(there) || self.is_done(there) {
            return String::new();
        }
        doing(there)
    }

    fn is_done(&self, there: &ExternalJob) -> bool {
        let mut jobs = self.flows.iter().filter(|flow| flow.id == there.flow).flat_map(|flow| &flow.jobs);
        jobs.find(|job| job.figures.job == there.job).is_none_or(|job| job.figures.is_done())
    }

    /// When it started, by the clock of this machine.
    pub fn clock(&self) -> Start {
        clock::local(self.started)
    }
}

/// The state directory of a run.
fn root(look: &RunInspection) -> PathBuf {
    look.layout.journal().parent().map(Path::to_owned).unwrap_or_default()
}

/// When the flows of a run are going to be done.
#[derive(Default)]
struct Predicted {
    at: BTreeMap<String, f64>,
    between: BTreeMap<String, [f64; 2]>,
}

fn predicted(look: &RunInspection, policy: &PolicySpec, now: Time, at_work: &[TaskAtWork]) -> Predicted {
    let workload = &look.head.workload;
    let setting = Setting { slowstart: look.slowstart(), profile: look.profile() };
    let workload = &Draft { machines: look.head.last_segment().machines.clone(), ..workload.clone() };
    let mut forecast = Forecast::of_journal(policy.clone(), setting, workload, &look.attempts);
    look.there.iter().filter(|job| job.failed).for_each(|job| forecast.fail(&job.flow));
    for one in at_work {
        forecast.at_work(one.id, Time::from_seconds_nearest(one.since));
    }
    let Some(at) = forecast.simulated(now) else { return Predicted::default() };
    let mut between = forecast.spread(now);
    between.retain(|flow, [least, most]| {
        // What is expected is never outside of what is likely.
        let expected = at.get(flow).copied().unwrap_or(*least);
        (*least, *most) = (least.min(expected), most.max(expected));
        least < most
    });
    Predicted { at, between }
}

/// What is known of a flow beside its tasks.
struct Known {
    stage: Stage,
    now: f64,
    predicted: Option<f64>,
    between: Option<[f64; 2]>,
}

fn flow_states(
    workload: &Draft,
    figures: Vec<JobFigures>,
    at_work: &[TaskAtWork],
    known: impl Fn(&str) -> Known,
) -> Vec<FlowState> {
    let mut figures = figures.into_iter().zip(0u32..);
    let mut flows = Vec::with_capacity(workload.flows.len());
    for flow in &workload.flows {
        let of = |(job, (figures, index))| {
            let job: &slackline_model::draft::JobDraft = job;
            let is_its = |one: &&TaskAtWork| one.id.job == index;
            JobState { after: job.after.clone(), figures, at_work: at_work.iter().filter(is_its).count() }
        };
        let jobs: Vec<JobState> = flow.jobs.iter().zip(figures.by_ref()).map(of).collect();
        let known = known(&flow.id);
        let is_done = jobs.iter().all(|job| job.figures.is_done());
        let phases = || jobs.iter().flat_map(|job| job.figures.phases());
        let is_begun = phases().any(|phase| phase.began.is_some()) || jobs.iter().any(|job| job.at_work > 0);
        let status = match known.stage {
            _ if is_done => FlowStatus::Done,
            Stage::Failed => FlowStatus::Failed,
            _ if is_begun => FlowStatus::Begun,
            _ if flow.release > known.now => FlowStatus::Coming,
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
            jobs,
        });
    }
    flows
}

/// What became of runs so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SoFar {
    /// The workload, with what its tasks took.
    pub instance: Instance,
    /// What is recorded of its attempts. Flows that are not done count as failed in it, as in every schedule.
    pub schedule: Schedule,
    /// What is at work besides, as far as that can be seen; not of several runs, whose processes are those of a service.
    pub at_work: Vec<TaskNow>,
}

impl SoFar {
    fn new(
        draft: &Draft,
        attempts: &[Attempt],
        at_work: &[AtWork],
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
        let now = |task: &AtWork| {
            Some(TaskNow {
                phase: run_schedule::phase_of(&instance, task.id)?,
                since: Time(task.since).seconds(),
            })
        };
        let at_work = at_work.iter().filter_map(now).collect();
        Ok(Self { instance, schedule, at_work })
    }
}

/// A run so far.
///
/// # Errors
/// A workload that is none.
pub fn so_far(look: &RunInspection) -> Result<SoFar, RunError> {
    let measured = run_schedule::measured(&look.head.workload, &look.attempts);
    SoFar::new(&measured, &look.attempts, &look.at_work, Some(look), true)
}

/// Several runs so far that share machines, each with the name that its flows get before their own: `NAME/FLOW`. Times
/// count from when the first of them began.
///
/// # Errors
/// A workload that is none.
pub fn so_far_together(looks: &[(String, RunInspection)]) -> Result<SoFar, RunError> {
    let began = looks.iter().map(|(_, look)| look.head.started).min().unwrap_or(0);
    let mut all = Draft { start: Some(clock::local(began)), ..Draft::default() };
    let (mut attempts, mut jobs): (Vec<Attempt>, u32) = (Vec::new(), 0);
    // The machines of each run are those of its segments; together they are those of all.
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

/// Looks at the run of a state directory; `None` if none was begun there.
///
/// # Errors
/// As [`slackline_executor::run::inspect::look`].
pub fn look(state: &Path) -> Result<Option<RunInspection>, RunError> {
    slackline_executor::run::inspect::inspect(state).map_err(|error: EngineError| error.into())
}
