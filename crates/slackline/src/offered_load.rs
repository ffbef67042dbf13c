//! How much work arrives for each slot: whether a cluster can keep up with a workload at all.

use slackline_model::{Cluster, FlowId, Instance, SlotKind, Time, Work};

/// The load that a workload offers to the slots of one slot kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The slot kind.
    pub slot_kind: SlotKind,
    /// Slots of the slot kind.
    pub slots: u32,
    /// Work for the slot kind in slot-seconds.
    pub work: f64,
    /// Work that arrives a second over what the slot kind can do in a second; `None` of a burst, where it
    /// says nothing.
    pub offered: Option<f64>,
    /// Whether more than the slot kind can do has arrived by the time of the last release, without what
    /// arrives then: flows then pile up, however the last ones are placed.
    pub is_too_much: bool,
}

/// The load of each slot kind: its work over its capacity times the time from the first to the last release.
///
/// Flows are a burst, and not a stream with a rate, if that time is shorter than one of them takes alone on
/// average: then the ratio grows without limit the closer they come together, and says nothing of what the
/// cluster can bear.
pub fn offered(instance: &Instance) -> Vec<Load> {
    let mut tally = Tally::default();
    for flow in instance.flows().keys() {
        tally.add(instance, flow);
    }
    tally.offered(instance.cluster())
}

/// What is counted of flows that come one at a time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tally {
    /// How many flows.
    pub flows: u64,
    /// How many jobs.
    pub jobs: u64,
    /// How many tasks; work that is not cut counts none.
    pub tasks: u64,
    first: Option<Time>,
    last: Time,
    /// Seconds that each takes alone, together.
    alone: f64,
    work: [Work; 2],
    /// The part of it that is released last of all.
    work_at_last: [Work; 2],
}

impl Tally {
    /// One more flow of that instance. O(its phases).
    pub fn add(&mut self, instance: &Instance, id: FlowId) {
        let flow = instance.flow(id);
        self.flows += 1;
        self.jobs += flow.jobs().len() as u64;
        self.alone += flow.alone;
        self.first = Some(self.first.map_or(flow.release, |first| first.min(flow.release)));
        if flow.release > self.last {
            self.last = flow.release;
            self.work_at_last = [Work::ZERO; 2];
        }
        for id in flow.phases() {
            let (phase, slot_kind) = (instance.phase(id), instance.slot_kind_of(id).index());
            self.tasks += phase.tasks().map_or(0, |tasks| u64::from(tasks.count()));
            self.work[slot_kind] += phase.work();
            if flow.release == self.last {
                self.work_at_last[slot_kind] += phase.work();
            }
        }
    }

    /// The load of each slot kind; see [`offered`].
    pub fn offered(&self, cluster: &Cluster) -> Vec<Load> {
        let window = self.last.since(self.first.unwrap_or_default()).seconds();
        let alone = self.alone / self.flows as f64;
        let is_stream = window > 0.0 && window >= alone;
        let load = |&slot_kind: &SlotKind| {
            let capacity = cluster.capacity(slot_kind) * window;
            let (work, at_last) = (self.work[slot_kind.index()], self.work_at_last[slot_kind.index()]);
            let before_last = Work(work.0 - at_last.0).slot_seconds();
            let work = work.slot_seconds();
            let offered = is_stream.then(|| work / capacity).filter(|load| load.is_finite());
            let is_too_much = is_stream && before_last > capacity;
            Load { slot_kind, slots: cluster.slots(slot_kind), work, offered, is_too_much }
        };
        cluster.slot_kinds().iter().map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;

    /// Flows of ten tasks of 10 s on ten slots, released at these seconds.
    fn load(releases: &[f64]) -> (Option<f64>, bool) {
        let map = Some(TasksDraft::Uniform { tasks: 10, seconds: 10.0 }.into());
        let jobs = vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }];
        let flow = |(k, &release): (usize, &f64)| FlowDraft {
            release,
            ..FlowDraft::new(format!("f{k}"), jobs.clone())
        };
        let slots = Slots::Universal(10);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let flows = releases.iter().enumerate().map(flow).collect();
        let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
        let load = offered(&instance)[0];
        (load.offered, load.is_too_much)
    }

    #[test]
    fn a_burst_has_no_rate_and_only_what_piles_up_is_too_much() {
        assert_eq!(load(&[0.0, 0.5, 1.0, 1.5, 2.0]), (None, false), "five flows within two seconds");
        assert_eq!(load(&[0.0, 0.0]), (None, false));
        assert_eq!(
            load(&[5.0, 16.0]),
            (Some(20.0 / 11.0), false),
            "the first is done before the second comes"
        );
        assert_eq!(load(&[0.0, 8.0, 16.0]), (Some(30.0 / 16.0), true));
        assert_eq!(load(&[0.0, 20.0, 40.0]), (Some(0.75), false));
    }
}
