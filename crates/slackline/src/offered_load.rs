//! How much work arrives for each slot: whether a cluster can keep up with a workload at all.

use slackline_model::{Instance, Lane, Time, Work};

/// The load that a workload offers to the slots of one lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The lane.
    pub lane: Lane,
    /// Slots of the lane.
    pub slots: u32,
    /// Work for the lane in slot-seconds.
    pub work: f64,
    /// Work that arrives a second over what the lane can do in a second; `None` if all flows arrive
    /// at once.
    pub offered: Option<f64>,
}

/// The load of each lane: its work over its capacity times the time from the first to the last release.
pub fn offered(instance: &Instance) -> Vec<Load> {
    let releases = || instance.flows().iter().map(|flow| flow.release);
    let (first, last) = (releases().min().unwrap_or_default(), releases().max().unwrap_or_default());
    let window = last.since(first).seconds();
    let mut work = [Work::ZERO; 2];
    for (phase, info) in instance.phases().iter_enumerated() {
        work[instance.lane_of(phase).index()] += info.work();
    }
    let load = |&lane: &Lane| {
        let work = work[lane.index()].slot_seconds();
        let offered = (last > Time::ZERO && window > 0.0)
            .then(|| work / (instance.cluster().capacity(lane) * window))
            .filter(|load| load.is_finite());
        Load { lane, slots: instance.cluster().slots(lane), work, offered }
    };
    instance.cluster().lanes().iter().map(load).collect()
}
