//! Whether a flow met its deadline, and what would have met it.

use std::collections::BTreeMap;

use slackline_model::cluster::SlotKind;
use slackline_model::cost::is_late;
use slackline_model::{FlowId, Instance, JobId, PhaseId};

use super::{Explanation, Facts};

/// The deadline of a flow, and the analysis of it. Times are in seconds since the start of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// The deadline.
    pub at: f64,
    /// Completion − deadline; `None` for an unfinished flow.
    pub lateness: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The minimum time of the flow with any number of slots, seconds: its longest chain of phases, each with
    /// its maximum of slots on the fastest machines.
    pub least: f64,
    /// The minimum time of the flow alone on this cluster, seconds.
    pub alone: f64,
    /// The latest start that meets the deadline with the slots that the flow got; `None` for an unfinished
    /// flow.
    pub start_by: Option<f64>,
    /// By slot kind: the slots needed from the release to the deadline; empty if this time is zero.
    pub needs: Vec<SlotKindNeed>,
    /// The slot-seconds that flows with later deadlines or none held while the flow wanted them.
    pub less_urgent: f64,
}

/// Mean numbers of slots of a kind from the release to the deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotKindNeed {
    /// The slot kind.
    pub slot_kind: SlotKind,
    /// The minimum number of slots needed: the work divided by the time, at the mean speed of the slot kind.
    pub needed: f64,
    /// The slots held.
    pub held: f64,
    /// The slots of the cluster.
    pub slots: u32,
}

slackline_model::named_enum! {
    /// The verdict on a deadline. All except [`Verdict::Met`] are for flows that are late or unfinished.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Verdict {
        /// The flow met its deadline.
        Met = "met",
        /// The flow failed. More slots would not have helped.
        Failed = "failed",
        /// No number of slots is enough: the chain of its phases is too long.
        Impossible = "impossible",
        /// The flow would be late even alone on this cluster.
        TooSmall = "too-small",
        /// Unlimited slots would have saved at least its lateness.
        Slots = "slots",
        /// More slots along its chain would not have been enough.
        NotEnough = "not-enough",
    }
}

/// The analysis of the deadline of a whole flow. The chain and the waits of `explanation` are complete.
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

/// The longest chain of phases of a flow, with the duration of each phase given by `seconds`.
fn chain_of(instance: &Instance, flow: FlowId, seconds: impl Fn(&Instance, PhaseId) -> f64) -> f64 {
    let mut ends: BTreeMap<JobId, f64> = BTreeMap::new();
    for &id in instance.topological_of(flow) {
        let job = instance.job(id);
        let ready = job.after.iter().filter_map(|before| ends.get(before)).copied().fold(0.0, f64::max);
        ends.insert(id, job.phases().fold(ready, |end, phase| end + seconds(instance, phase)));
    }
    ends.into_values().fold(0.0, f64::max)
}

/// The minimum duration of a phase with any number of the fastest slots.
fn least_of(instance: &Instance, phase: PhaseId) -> f64 {
    let fastest = instance.cluster().fastest(instance.slot_kind_of(phase), 1);
    let of = instance.phase(phase);
    longest(instance, phase).max(of.work().slot_seconds() / f64::from(of.cap) / fastest)
}

/// The minimum duration of a phase on this cluster.
fn alone_of(instance: &Instance, phase: PhaseId) -> f64 {
    longest(instance, phase).max(instance.phase_alone(phase))
}

/// The longest task on the fastest slot; 0 for plans without tasks.
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
