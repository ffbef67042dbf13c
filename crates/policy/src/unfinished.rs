//! Why flows never finish: derives the reason from the state of a run in which no further event is possible.

use std::collections::BTreeMap;
use std::fmt;

use slackline_model::{FlowId, JobId, PhaseId, SlotKind};

use crate::policy::Policy;
use crate::view::View;

/// The number of names that a reason lists.
const NAMED: usize = 3;

/// Flows that never finish for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The reason.
    pub reason: String,
    /// How many.
    pub flows: u64,
    /// The id of the first of the flows that have arrived.
    pub first: Option<String>,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.first, self.flows) {
            (Some(flow), 1) => write!(f, "flow {flow} failed: {}", self.reason),
            (_, n) => write!(f, "{n} flow{} failed: {}", if n == 1 { "" } else { "s" }, self.reason),
        }
    }
}

/// Names in the form of a reason.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] if names.len() <= NAMED => format!("{} and {last}", most.join(", ")),
        _ => format!("{} and {} more", names[..NAMED - 1].join(", "), names.len() - NAMED + 1),
    }
}

/// `1 slot`, `2 slots`, `no slot`.
pub fn slots(n: u32) -> String {
    match n {
        0 => "no slot".to_owned(),
        1 => "1 slot".to_owned(),
        n => format!("{n} slots"),
    }
}

/// The flows whose ApplicationMasters hold slots, for jobs of a kind.
pub fn holders(view: &View<'_>, of: impl Fn(JobId) -> bool) -> Vec<String> {
    let holds = |job: JobId| of(job) && view.held.am_of(job) > 0;
    let flows = view.instance.flows().iter().filter(|flow| flow.jobs().any(holds));
    flows.map(|flow| flow.id.clone()).collect()
}

/// `the ApplicationMasters of a and b`.
pub fn ams(flows: &[String]) -> String {
    let s = if flows.len() == 1 { "" } else { "s" };
    format!("the ApplicationMaster{s} of {}", listed(flows))
}

/// A run in which no further event is possible.
pub(crate) struct Stuck<'a> {
    pub(crate) view: View<'a>,
    pub(crate) policy: &'a dyn Policy,
    /// Why the engine ended the run, if it did.
    pub(crate) gave_up: Option<String>,
}

impl Stuck<'_> {
    /// The flows that have arrived and not finished, by reason, in the order of their arrival.
    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let mut found: Vec<Unfinished> = Vec::new();
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for (flow, info) in self.view.instance.flows().iter_enumerated() {
            let reason = self.reason(flow);
            let at = *known.entry(reason.clone()).or_insert(found.len());
            match found.get_mut(at) {
                Some(same) => same.flows += 1,
                None => found.push(Unfinished { reason, flows: 1, first: Some(info.id.clone()) }),
            }
        }
        found
    }

    fn reason(&self, flow: FlowId) -> String {
        let view = &self.view;
        if let Some(why) = &self.gave_up {
            return why.clone();
        }
        if view.state.is_hopeless() {
            return format!("machines died too often: a task was started {} times", u16::MAX);
        }
        let waiting = view.instance.flow(flow).phases().filter(|&phase| view.state.waits_for_slots(phase));
        let waiting: Vec<PhaseId> = waiting.collect();
        let Some(&first) = waiting.first() else {
            return "its running tasks never finish".to_owned();
        };
        let reason = waiting.iter().find_map(|&phase| self.no_slot(phase));
        reason.unwrap_or_else(|| {
            let free = slots(view.held.free(view.instance.slot_kind_of(first)));
            format!("the policy {} starts none of its tasks (free: {free})", self.policy.name())
        })
    }

    /// Why a phase whose tasks could start gets no slot.
    fn no_slot(&self, phase: PhaseId) -> Option<String> {
        let view = &self.view;
        let (job, slot_kind) = (view.instance.phase(phase).job, view.instance.slot_kind_of(phase));
        if view.state.alive(slot_kind) + view.held.ams() == 0 {
            return Some(self.no_machine(slot_kind));
        }
        self.policy.limit(job, view).or_else(|| self.no_am(job))
    }

    /// The machines that had slots of a kind, and when they left.
    fn no_machine(&self, slot_kind: SlotKind) -> String {
        let cluster = self.view.instance.cluster();
        let has_slots = |machine| cluster.machine_slots(slot_kind, machine).is_some();
        let gone = self.view.held.gone().filter(|&(machine, _, has_left)| has_left || has_slots(machine));
        let gone = gone.map(|(machine, at, has_left)| {
            let how = if has_left { "left" } else { "died" };
            format!("{} {how} at {} s", cluster.machine_name(machine), at.seconds())
        });
        let gone: Vec<String> = gone.collect();
        let kind = match slot_kind {
            SlotKind::Any => "slots",
            SlotKind::Map => "map slots",
            SlotKind::Reduce => "reduce slots",
        };
        if gone.is_empty() {
            return format!("no machine has {kind}");
        }
        format!("no machine with {kind} is left: {}, and none returns", listed(&gone))
    }

    /// Why there is no slot for the ApplicationMaster of a job, or none for its tasks beside those of others.
    fn no_am(&self, job: JobId) -> Option<String> {
        let view = &self.view;
        if !view.held.has_ams() {
            return None;
        }
        let all = view.held.ams();
        if all == 0 {
            let has = slots(view.state.alive(SlotKind::Any));
            return Some(format!(
                "it needs a slot for its ApplicationMaster and one for its tasks, and the cluster has {has}"
            ));
        }
        let who = ams(&holders(view, |_| true));
        let hold = if all == 1 { "holds 1 slot".to_owned() } else { format!("hold {all} slots") };
        let is_full = view.held.free(SlotKind::Any) == 0;
        match view.held.am_of(job) {
            0 => Some(format!(
                "its ApplicationMaster gets no slot: {who} {hold}, and no other ApplicationMaster may start"
            )),
            _ => is_full.then(|| format!("no slot is free: {who} {hold}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b", "c", "d"]), "a, b and 2 more");
        assert_eq!([slots(0), slots(1), slots(2)], ["no slot", "1 slot", "2 slots"]);
    }
}
