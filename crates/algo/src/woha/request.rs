//! The input of a plan: one flow, the cluster, and estimates of durations.

use slackline_model::{Cluster, FlowId, Instance, PhaseId, SlotKind, Span, Time};
use slackline_policy::Estimates;

/// The input of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The cluster and the flow.
    pub instance: &'a Instance,
    pub flow: FlowId,
    /// The estimates of durations.
    pub estimates: &'a Estimates,
    /// When the flow is submitted.
    pub now: Time,
}

impl Request<'_> {
    /// Estimated time of one task on a slot of the mean speed.
    pub fn span(&self, phase: PhaseId) -> Span {
        let speed = mean_speed(self.instance.cluster(), self.instance.slot_kind_of(phase));
        self.estimates.task[phase].at_speed_nearest(speed)
    }

    /// Time to the deadline, zero if it has passed; `None` without one.
    pub fn budget(&self) -> Option<Span> {
        self.instance.flow(self.flow).deadline.map(|deadline| deadline.since(self.now))
    }
}

/// Estimates are at speed 1; the mean speed of a kind's slots makes them times.
fn mean_speed(cluster: &Cluster, slot_kind: SlotKind) -> f64 {
    cluster.capacity(slot_kind) / f64::from(cluster.slots(slot_kind).max(1))
}
