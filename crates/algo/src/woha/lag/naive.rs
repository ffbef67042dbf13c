//! The naive solution of section IV-B: every lag is recomputed at every call.
//!
//! It shares only the plans with the lists, so that it can judge them; O(n · steps) per call.

use slackline_model::{FlowId, SlotKind, Time};

use super::record::Measure;
use crate::woha::plan::Plan;
use crate::woha::scheduler::{Goal, Turn, WorkflowScheduler};

#[derive(Clone, Debug)]
struct Flow {
    plan: Plan,
    goal: Goal,
    started: i64,
    slot_kinds: [bool; 2],
}

impl Flow {
    /// Negated lag and deadline, flows without deadline last.
    fn order(&self, measure: Measure, now: Time) -> (u8, i64, Time) {
        let due = match (self.goal, measure) {
            (Goal::Deadline(due), _) if now <= due => due,
            (Goal::Follow(due), _) => due,
            (Goal::Deadline(due) | Goal::Hopeless(due), Measure::Tasks) => return (0, self.started, due),
            (Goal::Deadline(due) | Goal::Hopeless(due), Measure::Time) => return (1, 0, due),
            (Goal::Whenever, _) => return (2, self.started, Time(u64::MAX)),
        };
        if measure == Measure::Time {
            let next = self.plan.steps().iter().find(|step| step.req.cast_signed() > self.started);
            let start = due.0.cast_signed() - next.map_or(0, |step| step.ttd.0.cast_signed());
            let overdue = start < now.0.cast_signed() && matches!(self.goal, Goal::Deadline(_));
            return if overdue { (1, 0, due) } else { (0, start, due) };
        }
        let due_now = |ttd: u64| u128::from(due.0) <= u128::from(now.0) + u128::from(ttd);
        let required = self.plan.steps().iter().rfind(|step| due_now(step.ttd.0)).map_or(0, |step| step.req);
        (0, self.started - i64::try_from(required).unwrap_or(i64::MAX), due)
    }
}

/// Recomputation.
#[derive(Clone, Debug, Default)]
pub struct Naive {
    measure: Measure,
    flows: Vec<Option<Flow>>,
    now: Time,
}

impl Naive {
    /// Flows by their lag in that measure.
    pub fn by(measure: Measure) -> Self {
        Self { measure, ..Self::default() }
    }

    fn flow(&mut self, flow: FlowId) -> &mut Flow {
        self.flows.get_mut(flow.index()).and_then(Option::as_mut).expect("invariant: the flow was submitted")
    }
}

impl WorkflowScheduler for Naive {
    fn copy(&self) -> Option<Box<dyn WorkflowScheduler + Send>> {
        Some(Box::new(self.clone()))
    }

    fn submit(&mut self, flow: FlowId, plan: Plan, goal: Goal) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, None);
        }
        self.flows[flow.index()] = Some(Flow { plan, goal, started: 0, slot_kinds: [false; 2] });
    }

    fn finish(&mut self, flow: FlowId) {
        self.flows[flow.index()] = None;
    }

    fn enter(&mut self, flow: FlowId, slot_kind: SlotKind) {
        self.flow(flow).slot_kinds[slot_kind.index()] = true;
    }

    fn leave(&mut self, flow: FlowId, slot_kind: SlotKind) {
        self.flow(flow).slot_kinds[slot_kind.index()] = false;
    }

    fn advance(&mut self, now: Time) {
        self.now = now;
    }

    /// One task at a time.
    fn first(&self, slot_kind: SlotKind, accept: &mut dyn FnMut(FlowId) -> bool) -> Option<Turn> {
        let mut best = None;
        for (id, flow) in self.flows.iter().enumerate() {
            let Some(flow) = flow.as_ref().filter(|flow| flow.slot_kinds[slot_kind.index()]) else {
                continue;
            };
            let key = (flow.order(self.measure, self.now), id);
            if best.is_none_or(|best| key < best) && accept(FlowId::from(id)) {
                best = Some(key);
            }
        }
        best.map(|(_, id)| Turn { flow: FlowId::from(id), tasks: 1 })
    }

    fn assigned(&mut self, flow: FlowId, tasks: u32) {
        self.flow(flow).started += i64::from(tasks);
    }

    fn lost(&mut self, flow: FlowId, tasks: u32) {
        self.flow(flow).started -= i64::from(tasks);
    }
}
