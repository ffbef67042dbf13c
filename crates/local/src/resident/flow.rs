//! A flow on its way to the driver: what is left of it, as it stands, in the time of the service.

use std::collections::BTreeSet;

use slackline_model::draft::MachineDraft;
use slackline_model::instance::Arrival;
use slackline_model::{Draft, FlowId, Instance, PhaseId, PhaseKind, Time};

use crate::backend::{Seat, Standing};
use crate::engine::seated::Busy;
use crate::job_plan::JobPlan;
use crate::remaining::{Numbers, flow_left};
use crate::run::EngineError;
use crate::task_id::TaskId;

/// A flow that the driver has.
pub(crate) struct Arrived {
    /// The run it is of.
    pub(crate) seat: Seat,
    /// The number that the driver has given its first phase; the others follow.
    first: PhaseId,
    numbers: Numbers,
}

/// What a flow is made of.
pub(crate) struct Source<'a> {
    /// The run.
    pub(crate) seat: Seat,
    /// Its workload, with the durations that are believed.
    pub(crate) workload: &'a Draft,
    pub(crate) jobs: &'a [JobPlan],
    pub(crate) done: &'a BTreeSet<TaskId>,
    /// How many seconds later than the service the run began.
    pub(crate) later: f64,
}

impl Source<'_> {
    /// A flow as what is left of it and as it stands; of one that is held what is at work. None if that is nothing. `first`
    /// is the number that its first phase gets.
    ///
    /// # Errors
    /// A workload that is none.
    pub(crate) fn arrival(
        &self,
        (flow, standing): (&str, Standing),
        busy: &[Busy],
        (machines, first): (&[MachineDraft], PhaseId),
    ) -> Result<Option<(Arrived, Arrival)>, EngineError> {
        let out = if standing.held { self.all_but(flow, busy) } else { self.done.clone() };
        let Some(left) = flow_left(self.workload, flow, &out) else { return Ok(None) };
        let mut left = left.later(self.later);
        let moved = Standing { deadline: standing.deadline.map(|at| at + self.later), ..standing };
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
        arrival.announce(standing.next.map(|at| Time::from_seconds_nearest(at + self.later)));
        Ok(Some((Arrived { seat: self.seat, first, numbers }, arrival)))
    }

    /// All tasks of a flow but those that are at work.
    fn all_but(&self, flow: &str, busy: &[Busy]) -> BTreeSet<TaskId> {
        let is_busy = |id: &TaskId| busy.iter().any(|busy| busy.id == *id);
        let of = |(job, plan): (u32, &JobPlan)| {
            let tasks = PhaseKind::ALL.map(|phase| (phase, plan.tasks(phase)));
            tasks.into_iter().flat_map(move |(phase, n)| (0..n).map(move |task| TaskId { job, phase, task }))
        };
        let jobs = (0..).zip(self.jobs).filter(|(_, plan)| plan.flow == flow);
        jobs.flat_map(of).filter(|id| !is_busy(id)).collect()
    }
}

impl Arrived {
    /// The task of the run that is task `task` of a phase of the driver's.
    pub(super) fn id(&self, phase: PhaseId, task: u32) -> TaskId {
        self.numbers.id(PhaseId(phase.0 - self.first.0), task)
    }

    /// Its phases, in the order of their numbers: the job, and how many tasks.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (u32, PhaseKind, u32)> + '_ {
        self.numbers.phases()
    }

    /// What the driver calls a task of the run.
    pub(super) fn place(&self, id: TaskId) -> Option<(PhaseId, u32)> {
        let (phase, task) = self.numbers.place(id)?;
        Some((PhaseId(phase.0 + self.first.0), task))
    }
}
