//! Whether a flow's deadline was met, and what would have made it.

use std::collections::BTreeMap;

use slackline_model::cluster::SlotKind;
use slackline_model::cost::is_late;
use slackline_model::{FlowId, Instance, JobId, PhaseId};

use super::{Explanation, Facts};

/// A flow's deadline and what became of it. Times are seconds since the start of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// The deadline.
    pub at: f64,
    /// Completion − deadline; none of a flow that is not done.
    pub lateness: Option<f64>,
    /// What can be said of it.
    pub verdict: Verdict,
    /// Seconds the flow takes at least, whatever the number of slots: its longest chain of phases, each at
    /// its maximum of slots on the fastest machines.
    pub least: f64,
    /// Seconds it takes at least, alone on this cluster.
    pub alone: f64,
    /// By when it had to start, with the slots it got; none of a flow that is not done.
    pub start_by: Option<f64>,
    /// Slots it needed from its release to its deadline, slot kind by slot kind; empty if there was no time
    /// at all.
    pub needs: Vec<SlotKindNeed>,
    /// Slot-seconds that flows with later deadlines or none held while it wanted them.
    pub less_urgent: f64,
}

/// Slots of a slot kind from release to deadline, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotKindNeed {
    /// The slot kind.
    pub slot_kind: SlotKind,
    /// Slots needed at least: the work over the time, at the mean speed of the slot kind.
    pub needed: f64,
    /// Slots held.
    pub held: f64,
    /// Slots there are.
    pub slots: u32,
}

/// What can be said of a deadline. Those after [`Verdict::Met`] are for flows that are late or not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The flow was done in time.
    Met,
    /// The flow failed; no slots would have helped.
    Failed,
    /// No number of slots would do: the chain of its phases alone is too long.
    Impossible,
    /// It would be late even alone on this cluster.
    TooSmall,
    /// All the slots it could use, when it could use them, would have saved at least what it is late.
    Slots,
    /// More slots along its chain would not have been enough.
    NotEnough,
}

impl Verdict {
    /// A word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Failed => "failed",
            Self::Impossible => "impossible",
            Self::TooSmall => "too-small",
            Self::Slots => "slots",
            Self::NotEnough => "not-enough",
        }
    }
}

/// The deadline of the flow that `explanation` is of as a whole, its chain and waits being there.
pub(super) fn judge(facts: &Facts<'_>, explanation: &Explanation) -> Option<Deadline> {
    let (instance, id) = (facts.instance, explanation.flow);
    let flow = instance.flow(id);
    let at = flow.deadline?.seconds();
    let (least, alone) = (chain_of(instance, id, least_of), chain_of(instance, id, alone_of).max(flow.alone));
    let completed = explanation.completed;
    let lateness = completed.map(|completed| completed - at);
    let verdict = match (completed, lateness) {
        (Some(completed), _) if !is_late(completed, at) => Verdict::Met,
        _ if explanation.failed => Verdict::Failed,
        _ if is_late(explanation.released + least, at) => Verdict::Impossible,
        _ if is_late(explanation.released + alone, at) => Verdict::TooSmall,
        (_, Some(late)) if explanation.waits.lost >= late => Verdict::Slots,
        _ => Verdict::NotEnough,
    };
    let less_urgent = |job: JobId| {
        let other = instance.job(job).flow;
        other != id && instance.flow(other).deadline.is_none_or(|deadline| deadline.seconds() > at)
    };
    let others = explanation.blocked.others.iter().filter(|other| less_urgent(other.job));
    Some(Deadline {
        at,
        lateness,
        verdict,
        least,
        alone,
        start_by: completed.zip(explanation.started).map(|(completed, started)| at - (completed - started)),
        needs: needs(facts, id, at),
        less_urgent: others.fold(0.0, |sum, other| sum + other.slot_seconds),
    })
}

/// The longest chain of phases of a flow, each as long as `seconds` says.
fn chain_of(instance: &Instance, flow: FlowId, seconds: impl Fn(&Instance, PhaseId) -> f64) -> f64 {
    let mut ends: BTreeMap<JobId, f64> = BTreeMap::new();
    for &id in instance.topological_of(flow) {
        let job = instance.job(id);
        let ready = job.after.iter().filter_map(|before| ends.get(before)).copied().fold(0.0, f64::max);
        ends.insert(id, job.phases().fold(ready, |end, phase| end + seconds(instance, phase)));
    }
    ends.into_values().fold(0.0, f64::max)
}

/// What a phase takes at least with any number of slots as fast as the fastest there are.
fn least_of(instance: &Instance, phase: PhaseId) -> f64 {
    let fastest = instance.cluster().fastest(instance.slot_kind_of(phase), 1);
    let of = instance.phase(phase);
    longest(instance, phase).max(of.work().slot_seconds() / f64::from(of.cap) / fastest)
}

/// What a phase takes at least on this cluster.
fn alone_of(instance: &Instance, phase: PhaseId) -> f64 {
    longest(instance, phase).max(instance.phase_alone(phase))
}

/// The longest task on the fastest slot; plans without tasks have none.
fn longest(instance: &Instance, phase: PhaseId) -> f64 {
    let fastest = instance.cluster().fastest(instance.slot_kind_of(phase), 1);
    instance.phase(phase).tasks().map_or(0.0, |tasks| tasks.longest().seconds() / fastest)
}

fn needs(facts: &Facts<'_>, id: FlowId, deadline: f64) -> Vec<SlotKindNeed> {
    let (instance, cluster) = (facts.instance, facts.instance.cluster());
    let release = instance.flow(id).release.seconds();
    let time = deadline - release;
    if time <= 0.0 {
        return Vec::new();
    }
    let phases: Vec<PhaseId> = instance.flow(id).jobs().flat_map(|job| instance.job(job).phases()).collect();
    let (mut work, mut held) = ([0.0; 2], [0.0; 2]);
    for &phase in &phases {
        work[instance.slot_kind_of(phase).index()] += instance.phase(phase).work().slot_seconds();
    }
    // The phases of a flow are consecutive.
    for row in facts.held.iter().filter(|row| phases.binary_search(&row.phase).is_ok()) {
        let seconds = (row.end.min(deadline) - row.start.max(release)).max(0.0);
        held[instance.slot_kind_of(row.phase).index()] += f64::from(row.slots) * seconds;
    }
    let need = |&slot_kind: &SlotKind| {
        let slots = cluster.slots(slot_kind);
        let mean_speed = cluster.capacity(slot_kind) / f64::from(slots);
        let needed = work[slot_kind.index()] / mean_speed / time;
        SlotKindNeed { slot_kind, needed, held: held[slot_kind.index()] / time, slots }
    };
    cluster.slot_kinds().iter().filter(|slot_kind| work[slot_kind.index()] > 0.0).map(need).collect()
}
