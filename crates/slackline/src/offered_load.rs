//! The offered load: the work that arrives for each slot. It shows whether a cluster can keep up with a
//! workload.

use slackline_model::{Cluster, FlowId, Instance, SlotKind, Time, Work};

/// The load that a workload offers to the slots of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The slot kind.
    pub slot_kind: SlotKind,
    /// Slots of the slot kind.
    pub slots: u32,
    /// The work for this slot kind, slot-seconds.
    pub work: f64,
    /// The rate of arriving work divided by the capacity; `None` for a burst, which has no rate.
    pub offered: Option<f64>,
    /// Whether more work than the slots can do has arrived by the last release, without the work of the last
    /// release. If so, flows queue up wherever the last ones are placed.
    pub is_too_much: bool,
}

/// The load of each slot kind: its work divided by its capacity over the time from the first to the last
/// release.
///
/// If this time is shorter than the mean run time of a flow on an empty cluster, the flows are a burst
/// without a rate. The ratio then grows without limit as the releases get closer, and says nothing about the
/// capacity of the cluster.
pub fn offered(instance: &Instance) -> Vec<Load> {
    let mut tally = Tally::default();
    for flow in instance.flows().keys() {
        tally.add(instance, flow);
    }
    tally.offered(instance.cluster())
}

/// Counts of flows that are added one at a time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tally {
    /// The number of flows.
    pub flows: u64,
    /// The number of jobs.
    pub jobs: u64,
    /// The number of tasks. Uncut work counts as none.
    pub tasks: u64,
    /// Whether flows have other weights than 1.
    pub is_weighted: bool,
    first: Option<Time>,
    last: Time,
    /// The sum of the run times on an empty cluster, seconds.
    alone: f64,
    work: [Work; 2],
    /// The part of the work that is released last.
    work_at_last: [Work; 2],
}

impl Tally {
    /// Adds a flow of the instance. O(its phases).
    pub fn add(&mut self, instance: &Instance, id: FlowId) {
        let flow = instance.flow(id);
        self.flows += 1;
        self.jobs += flow.jobs().len() as u64;
        self.alone += flow.alone;
        self.is_weighted |= flow.weight != 1.0;
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

    /// Flows of ten tasks of 10 s on ten slots, released at these times in seconds.
    fn load(releases: &[f64]) -> (Option<f64>, bool) {
        let map = Some(TasksDraft::Uniform { tasks: 10, seconds: 10.0 }.into());
        let jobs = vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }];
        let flow = |(k, &release): (usize, &f64)| FlowDraft {
            release,
            ..FlowDraft::new(format!("f{k}"), jobs.clone())
        };
        let slots = Slots::Generic(10);
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
