//! Plans from rehearsals: how many slots a plan counts on, and whether the deadline can be met.

use slackline_model::{Span, Time};
use slackline_policy::Admission;

use super::plan::{Plan, Step};
use super::priorities::JobOrder;
use super::request::Request;
use crate::woha::simulated_plan::{Rehearsal, Workflow};

/// Makes the plan that an AM follows. One of the two replaceable parts of WOHA (section III-B);
/// the other is [`super::WorkflowScheduler`].
pub trait PlanGenerator {
    /// A plan for one flow. It runs where the flow is submitted and does not see other flows.
    fn plan(&self, request: &Request<'_>) -> Plan;

    /// A copy of the generator, for look-ahead; `None` if it cannot be copied.
    fn copy(&self) -> Option<Box<dyn PlanGenerator + Send>> {
        None
    }
}

/// How many slots of each kind a rehearsal may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// All there are.
    None,
    /// The fewest with which the deadline is met, by binary search as in the paper; because makespan is
    /// not monotone in the cap, sometimes not the very fewest (deviation D6).
    Search,
    /// The fewest with which the deadline is met, by trying upwards.
    Scan,
    /// This many.
    Fixed(u32),
}

/// Progress requirements by rehearsal, the paper's own generator (section IV-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The order of the jobs.
    pub order: JobOrder,
    /// How many slots the plan counts on.
    pub cap: Cap,
    /// Whether map and reduce slots count as one kind, as in the paper.
    pub pooled: bool,
}

impl PlanGenerator for Progress {
    fn copy(&self) -> Option<Box<dyn PlanGenerator + Send>> {
        Some(Box::new(*self))
    }

    /// O(E log J) for each cap tried: one for `None` and `Fixed`, log of the slots for `Search`.
    fn plan(&self, request: &Request<'_>) -> Plan {
        let order = self.order.sorted(request);
        let workflow = Workflow::new(request, &order, self.pooled);
        let mut rehearsal = Rehearsal::new(&workflow);
        let endless = Span(u64::MAX);
        let most = workflow.cap_max();
        let shortest =
            rehearsal.run(most, endless).expect("invariant: no rehearsal ends after the end of time");
        let cap = match (self.cap, request.budget()) {
            (Cap::Fixed(cap), _) => cap.clamp(1, most),
            (Cap::Search, Some(budget)) if shortest <= budget => search(&workflow, &mut rehearsal, budget),
            (Cap::Scan, Some(budget)) if shortest <= budget => scan(&workflow, &mut rehearsal, budget),
            _ => most,
        };
        let length = rehearsal.run(cap, endless).expect("invariant: no rehearsal ends after the end of time");
        let mut req = 0;
        let step = |&(at, tasks): &(u64, u64)| {
            req += tasks;
            Step { ttd: Span(length.0 - at), req }
        };
        let steps: Vec<Step> = rehearsal.starts().iter().map(step).collect();
        let first = request.instance.flow(request.flow).jobs().next().map_or(0, |job| job.0);
        let order = order.iter().map(|job| job.0 - first).collect();
        Plan::new(cap, shortest, order, steps)
            .expect("invariant: a rehearsal starts tasks in the order of time")
    }
}

/// The cap below which the work of some kind does not fit into the time at all.
fn cap_min(workflow: &Workflow, budget: Span) -> u32 {
    let needed = workflow.work.map(|work| work.div_ceil(u128::from(budget.0.max(1))));
    u32::try_from(needed[0].max(needed[1])).unwrap_or(u32::MAX).clamp(1, workflow.cap_max())
}

/// Binary search; the whole cluster is known to suffice.
fn search(workflow: &Workflow, rehearsal: &mut Rehearsal<'_>, budget: Span) -> u32 {
    let (mut low, mut high) = (cap_min(workflow, budget), workflow.cap_max());
    while low < high {
        let middle = low + (high - low) / 2;
        if rehearsal.run(middle, budget).is_some() { high = middle } else { low = middle + 1 }
    }
    high
}

/// Upwards; the whole cluster is known to suffice.
fn scan(workflow: &Workflow, rehearsal: &mut Rehearsal<'_>, budget: Span) -> u32 {
    let most = workflow.cap_max();
    (cap_min(workflow, budget)..most).find(|&cap| rehearsal.run(cap, budget).is_some()).unwrap_or(most)
}

/// The answer to a flow with this plan and deadline that is submitted now.
pub fn admission(plan: &Plan, deadline: Option<Time>, now: Time) -> Admission {
    let earliest_completion = Time(now.0.saturating_add(plan.shortest().0));
    Admission {
        feasible: deadline.is_none_or(|deadline| earliest_completion <= deadline),
        earliest_completion,
    }
}
