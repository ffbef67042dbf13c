//! One application that the engine of `attach` drives: its state and its counts of tasks.

use std::collections::BTreeMap;

use slackline_executor::spec::job_cost::{JobCost, JobName};
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::instance::Arrival;
use slackline_model::{FlowId, Instance, Invalid, PhaseKind, Time};
use slackline_trace::MachineCost;

use crate::attach::job_name::AppTags;
use crate::attach::watcher::Stage;
use crate::cluster::am_polling::PollSchedule;
use crate::cluster::task_inference::{EndedContainer, Inference, KnownCounts, ReportedCounts, TaskCounter};
use crate::rest::id::AppId;
use crate::rest::mapreduce::MapReduceJob;
use crate::rest::resource_manager::App;

/// Estimated seconds of a task without history. It is the same for all, so that policies compare numbers of
/// tasks. Finished tasks correct it.
const GUESS: f64 = 30.0;

/// Polls after which the engine ignores an application whose AM has not reported its tasks: 30 s.
pub(super) const SILENT: u32 = 120;

#[derive(Clone, Debug, Default)]
pub(super) struct DrivenPhase {
    pub(super) total: u32,
    pub(super) done: u32,
    /// Tasks that finished before the application arrived.
    before: u32,
    count: TaskCounter,
}

impl DrivenPhase {
    /// Tasks for the policy to schedule.
    pub(super) fn scheduled(&self) -> u32 {
        self.total - self.before
    }
}

#[derive(Clone, Debug)]
pub(super) struct DrivenApp {
    pub(super) app: AppId,
    pub(super) tags: AppTags,
    /// The name under which history is kept; set before the application arrives.
    pub(super) name: Option<JobName>,
    /// Submission and deadline, since the start.
    pub(super) submitted: Time,
    pub(super) deadline: Option<f64>,
    pub(super) stage: Stage,
    /// The priority at submission, and now.
    pub(super) first_priority: u64,
    pub(super) priority: u64,
    pub(super) maps: DrivenPhase,
    pub(super) reduces: DrivenPhase,
    pub(super) in_driver: DriverState,
    pub(super) ended: Option<AppOutcome>,
    /// Whether the application holds no container any more.
    pub(super) is_gone: bool,
    /// Durations of its finished tasks.
    pub(super) durations: JobCost,
    pub(super) asking: PollSchedule,
    /// Polls since its AM started without a report of its tasks.
    pub(super) silent: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriverState {
    Pending,
    Active,
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppOutcome {
    Succeeded,
    Failed,
}

impl DrivenApp {
    /// A new application. `since` converts milliseconds since 1970 to seconds since the start, which may be
    /// negative.
    pub(super) fn of(app: &App, now: Time, since: impl Fn(u64) -> f64) -> Self {
        let tags = AppTags::of(app);
        let submitted = app.started_ms.map_or(now.seconds(), since);
        let at = Time::from_seconds_nearest(submitted.clamp(0.0, now.seconds()));
        Self {
            app: app.id,
            name: None,
            submitted: at,
            deadline: tags.deadline.map(|deadline| (submitted + deadline).max(at.seconds())),
            tags,
            stage: if app.am_container.is_some() { Stage::Starting } else { Stage::Held },
            first_priority: app.priority,
            priority: app.priority,
            maps: DrivenPhase::default(),
            reduces: DrivenPhase::default(),
            in_driver: DriverState::Pending,
            ended: None,
            is_gone: false,
            durations: JobCost::default(),
            asking: PollSchedule::new(),
            silent: 0,
        }
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.in_driver != DriverState::Pending
    }

    pub(super) fn phase(&mut self, kind: PhaseKind) -> &mut DrivenPhase {
        match kind {
            PhaseKind::Map => &mut self.maps,
            PhaseKind::Reduce => &mut self.reduces,
        }
    }

    /// Sort key for the start of AMs: by deadline, then by submission.
    pub(super) fn urgency(&self) -> (Time, Time, AppId) {
        let deadline = self.deadline.map_or(Time(u64::MAX), Time::from_seconds_nearest);
        (deadline, self.submitted, self.app)
    }

    /// Whether to poll its AM now.
    pub(super) fn is_due(&mut self) -> bool {
        let is_open = self.maps.count.is_open() || self.reduces.count.is_open();
        self.asking.is_due(is_open || !self.has_arrived())
    }

    /// Applies a report of its AM; `known_counts` has the counts of the ledger for each phase.
    pub(super) fn update(&mut self, job: &MapReduceJob, known_counts: [KnownCounts; 2]) -> [Inference; 2] {
        let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let reported = [
            (number(job.maps_total), number(job.maps_completed), number(job.maps_running)),
            (number(job.reduces_total), number(job.reduces_completed), number(job.reduces_running)),
        ];
        let has_arrived = self.has_arrived();
        let phases = [&mut self.maps, &mut self.reduces].into_iter().zip(reported).zip(known_counts);
        let mut decided = phases.map(|((phase, (total, done, running)), known_counts)| {
            phase.done = done;
            if has_arrived {
                return phase.count.infer(ReportedCounts { done, running }, known_counts);
            }
            phase.total = total;
            phase.before = done.min(total);
            phase.count = TaskCounter::new(done);
            Inference::default()
        });
        [decided.next().unwrap_or_default(), decided.next().unwrap_or_default()]
    }

    pub(super) fn container_ended(&mut self, kind: PhaseKind, container: EndedContainer) {
        self.asking.changed = true;
        self.phase(kind).count.container_ended(container);
    }

    /// Containers whose outcome no later report will tell.
    pub(super) fn close(&mut self) -> Vec<(PhaseKind, EndedContainer)> {
        let closed = PhaseKind::ALL.map(|kind| (kind, self.phase(kind).count.close()));
        closed.into_iter().flat_map(|(kind, all)| all.into_iter().map(move |one| (kind, one))).collect()
    }

    /// Adds the duration of a finished task.
    pub(super) fn add_duration(&mut self, kind: PhaseKind, container: EndedContainer) {
        let micros = container.at.since(container.since.min(container.at)).0;
        self.durations.add(MachineCost::of(kind, micros), None);
    }

    /// Whether a task is left for the policy to schedule.
    pub(super) fn has_tasks(&self) -> bool {
        self.maps.scheduled() + self.reduces.scheduled() > 0
    }

    /// The remaining tasks as a flow of one job, on these machines.
    ///
    /// # Errors
    /// The instance is invalid: it has too many tasks.
    pub(super) fn arrival(
        &self,
        name: &JobName,
        machines: &[MachineDraft],
    ) -> Result<(Instance, Arrival), Invalid> {
        let phase = |phase: &DrivenPhase| -> Option<PhaseDraft> {
            let tasks = phase.scheduled();
            (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds: GUESS }.into())
        };
        let job = JobDraft {
            id: name.job.clone(),
            map: phase(&self.maps),
            reduce: phase(&self.reduces),
            ..JobDraft::default()
        };
        let flow = FlowDraft {
            release: self.submitted.seconds(),
            deadline: self.deadline,
            weight: self.tags.weight,
            ..FlowDraft::new(flow_name(name, self.app), vec![job])
        };
        let instance =
            Instance::new(&Draft { machines: machines.to_vec(), flows: vec![flow], ..Draft::default() })?;
        let arrival = instance.excerpt(FlowId(0));
        Ok((instance, arrival))
    }
}

/// The name of its flow: the name of its kind and the number of the application.
pub(super) fn flow_name(name: &JobName, app: AppId) -> String {
    format!("{}#{}", name.flow, app.number)
}

/// By the job numbers of the container ledger.
pub(super) type Applications = BTreeMap<u32, DrivenApp>;
