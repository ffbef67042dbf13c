//! A flow as the shared driver receives it: its remaining tasks and its overrides, in the time of the
//! service.

use std::collections::BTreeSet;

use slackline_model::draft::{FlowDraft, MachineDraft};
use slackline_model::instance::Arrival;
use slackline_model::{Draft, FlowId, Instance, PhaseId, PhaseKind, Time};
use slackline_task::base::clock::{RunClock, TimeOffset};
use slackline_task::base::task_id::TaskId;

use crate::engine::backend::{FlowOverrides, RunId};
use crate::run::error::EngineError;
use crate::spec::job_plan::JobPlan;
use crate::spec::remaining::{Numbers, flow_left};
use crate::store::running_attempt::RunningAttempt;

/// A flow that the driver has.
pub(crate) struct DriverFlow {
    pub(crate) run: RunId,
    /// The number that the driver has given its first phase; the others follow.
    first: PhaseId,
    numbers: Numbers,
}

/// The parts of a flow.
pub(crate) struct FlowSource<'a> {
    pub(crate) run: RunId,
    /// Its workload, with the durations that are estimated.
    pub(crate) workload: &'a Draft,
    pub(crate) jobs: &'a [JobPlan],
    pub(crate) done: &'a BTreeSet<TaskId>,
    pub(crate) dates: RunDates,
}

/// Where the dates of a run are in the time of the engine: they count from the start of the run, by the wall
/// clock of now.
#[derive(Clone, Copy)]
pub(crate) struct RunDates {
    /// The start of the run by the wall clock, seconds.
    start: f64,
    /// The start of the run by its own time, seconds.
    own_start: f64,
    now: f64,
}

impl RunDates {
    /// The offset between the clock of a run and that of an engine, whose clock shows `now`.
    pub(crate) fn of(run: &RunClock, engine: &RunClock, now: Time, later: TimeOffset) -> Self {
        Self { start: run.date_on(engine), own_start: later.seconds(), now: now.seconds() }
    }

    /// A flow that has arrived, with its dates in the time of the engine. Earlier dates become the start of
    /// that time.
    fn applied(self, mut flow: FlowDraft) -> FlowDraft {
        // Costs over time cannot begin before it.
        let by_date = (flow.cost.is_none() || self.start >= 0.0).then_some(self.start);
        flow = flow.later(by_date.unwrap_or(self.own_start));
        flow.release = flow.release.min(self.now).max(0.0);
        flow.deadline = flow.deadline.map(|at| at.max(0.0));
        flow
    }
}

impl FlowSource<'_> {
    /// A flow as its remaining work, with its overrides; only the running tasks if it is held. `None` if no
    /// work is left. The driver's numbers of its phases are [set later](Arrived::begin_at).
    ///
    /// # Errors
    /// An invalid workload.
    pub(crate) fn arrival(
        &self,
        flow: &str,
        overrides: FlowOverrides,
        busy: &[RunningAttempt],
        machines: &[MachineDraft],
    ) -> Result<Option<(DriverFlow, Arrival)>, EngineError> {
        let out = if overrides.held { self.all_but(flow, busy) } else { self.done.clone() };
        let Some(left) = flow_left(self.workload, flow, &out) else { return Ok(None) };
        let mut left = self.dates.applied(left);
        let [deadline, next] =
            [overrides.deadline, overrides.next].map(|at| at.map(|at| (at + self.dates.start).max(0.0)));
        let moved = FlowOverrides { deadline, ..overrides };
        moved.applied(&mut left);
        let Draft { start, objective, weights, pools, machines: _, flows: _ } = self.workload;
        let draft = Draft {
            start: start.clone(),
            machines: machines.to_vec(),
            objective: *objective,
            weights: *weights,
            pools: pools.clone(),
            flows: vec![left],
        };
        let instance = Instance::new(&draft)?;
        let numbers = Numbers::new(&instance, self.jobs, &out);
        let mut arrival = instance.excerpt(FlowId(0));
        arrival.announce(next.map(Time::from_seconds_nearest));
        Ok(Some((DriverFlow { run: self.run, first: PhaseId(0), numbers }, arrival)))
    }

    /// All tasks of a flow but those that run.
    fn all_but(&self, flow: &str, busy: &[RunningAttempt]) -> BTreeSet<TaskId> {
        let is_busy = |id: &TaskId| busy.iter().any(|busy| busy.id == *id);
        let of = |(job, plan): (u32, &JobPlan)| {
            let tasks = PhaseKind::ALL.map(|phase| (phase, plan.tasks(phase)));
            tasks.into_iter().flat_map(move |(phase, n)| (0..n).map(move |task| TaskId { job, phase, task }))
        };
        let jobs = (0..).zip(self.jobs).filter(|(_, plan)| plan.flow == flow);
        jobs.flat_map(of).filter(|id| !is_busy(id)).collect()
    }
}

impl DriverFlow {
    /// The driver gives its first phase this number.
    pub(crate) fn begin_at(&mut self, first: PhaseId) {
        self.first = first;
    }

    /// The task of the run that is task `task` of a phase of the driver's.
    pub(crate) fn id(&self, phase: PhaseId, task: u32) -> TaskId {
        self.numbers.id(PhaseId(phase.0 - self.first.0), task)
    }

    /// Its phases, in the order of their numbers: the job, and how many tasks.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (u32, PhaseKind, u32)> + '_ {
        self.numbers.phases()
    }

    /// The driver's name of a task of the run.
    pub(crate) fn place(&self, id: TaskId) -> Option<(PhaseId, u32)> {
        let (phase, task) = self.numbers.place(id)?;
        Some((PhaseId(phase.0 + self.first.0), task))
    }
}
