//! The claims of a schedule that follow from the times of its flows: status, cost and combined cost.

use super::{FlowResult, FlowRow, FlowTimes, Origin, Rows, Schedule, TaskRows};
use crate::cost::Objective;
use crate::id::FlowId;
use crate::instance::Instance;

impl Schedule {
    /// The schedule of these rows, with the claims that follow from the times of the flows: a row for every
    /// flow and the combined cost (none if a flow failed); no lower bound yet. O(flows).
    pub fn from_rows(
        instance: &Instance,
        origin: Origin,
        rows: Rows,
        times: impl FnMut(FlowId) -> FlowTimes,
    ) -> Self {
        let (tasks, allocations) = match rows {
            Rows::Tasks(tasks) => (tasks, Vec::new()),
            Rows::Allocations(allocations) => (TaskRows::new(), allocations),
        };
        let mut schedule = Self { tasks, allocations, ..Self::without_rows(origin, instance.objective()) };
        schedule.claim_times(instance, times);
        schedule
    }

    /// A schedule without rows and claims.
    pub fn without_rows(origin: Origin, objective: Objective) -> Self {
        let Origin { policy, minima, clock, slowstart, profile } = origin;
        Self {
            policy,
            minima,
            clock,
            slowstart,
            profile,
            segments: Vec::new(),
            objective,
            cost: None,
            lower_bound: None,
            gap: None,
            metrics: Vec::new(),
            flows: Vec::new(),
            tasks: TaskRows::new(),
            ams: Vec::new(),
            allocations: Vec::new(),
        }
    }

    /// Claims the times of each flow, and the resulting status, cost and combined cost. O(flows).
    pub fn claim_times(&mut self, instance: &Instance, mut times: impl FnMut(FlowId) -> FlowTimes) {
        self.flows = instance.flows().keys().map(|flow| FlowRow::new(instance, flow, times(flow))).collect();
        let costs: Option<Vec<f64>> = self.flows.iter().map(|flow| flow.cost).collect();
        self.cost = costs.map(|costs| self.objective.combine.of(costs));
    }
}

impl FlowRow {
    /// The status and the cost that follow from the times of a flow. A flow that was complete without ever
    /// holding a slot started when it was complete.
    pub fn new(instance: &Instance, id: FlowId, times: FlowTimes) -> Self {
        let (flow, FlowTimes { start, completion }) = (instance.flow(id), times);
        Self {
            flow: id,
            release: flow.release.seconds(),
            start: start.or(completion),
            completion,
            cost: completion.map(|c| flow.cost.eval(c)),
            status: if completion.is_some() { FlowResult::Done } else { FlowResult::Failed },
        }
    }
}
