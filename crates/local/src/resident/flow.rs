//! A flow on its way to the driver: what is left of it, as it stands, in the time of the service.

use std::collections::BTreeSet;

use slackline_model::draft::MachineDraft;
use slackline_model::instance::Arrival;
use slackline_model::{Draft, FlowId, Instance, PhaseId, PhaseKind};

use crate::backend::{Seat, Standing};
use crate::engine::seated::Busy;
use crate::job_plan::JobPlan;
use crate::remaining::{Numbers, remaining};
use crate::run::EngineError;
use crate::task_id::TaskId;

/// A flow that the driver has.
pub(super) struct Arrived {
    /// The run it is of.
    pub(super) seat: Seat,
    /// The number that the driver has given its first phase; the others follow.
    first: PhaseId,
    numbers: Numbers,
}

/// What a flow is made of.
pub(super) struct Source<'a> {
    /// The run.
    pub(super) seat: Seat,
    /// Its workload, with the durations that are believed.
    pub(super) workload: &'a Draft,
    pub(super) jobs: &'a [JobPlan],
    pub(super) done: &'a BTreeSet<TaskId>,
    /// How many seconds later than the service the run began.
    pub(super) later: f64,
}

impl Source<'_> {
    /// A flow as what is left of it and as it stands; of one that is held what is at work. None if that is nothing. `first`
    /// is the number that its first phase gets.
    ///
    /// # Errors
    /// A workload that is none.
    pub(super) fn arrival(
        &self,
        (flow, standing): (&str, Standing),
        busy: &[Busy],
        (machines, first): (&[MachineDraft], PhaseId),
    ) -> Result<Option<(Arrived, Arrival)>, EngineError> {
        let out = if standing.held { self.all_but(flow, busy) } else { self.done.clone() };
        let mut draft = remaining(self.workload, &out);
        draft.flows.retain(|left| left.id == flow);
        let Some(left) = draft.flows.pop() else { return Ok(None) };
        let mut left = left.later(self.later);
        let moved = Standing { deadline: standing.deadline.map(|at| at + self.later), ..standing };
        moved.applied(&mut left);
        draft.machines = machines.to_vec();
        draft.flows.push(left);
        let instance = Instance::new(&draft)?;
        let numbers = Numbers::new(&instance, self.jobs, &out);
        Ok(Some((Arrived { seat: self.seat, first, numbers }, instance.excerpt(FlowId(0)))))
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

    /// What the driver calls a task of the run.
    pub(super) fn place(&self, id: TaskId) -> Option<(PhaseId, u32)> {
        let (phase, task) = self.numbers.place(id)?;
        Some((PhaseId(phase.0 + self.first.0), task))
    }
}
