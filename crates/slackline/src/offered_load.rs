//! How much work arrives for each slot: whether a cluster can keep up with a workload at all.

use slackline_model::{Instance, Lane, Work};

/// The load that a workload offers to the slots of one lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The lane.
    pub lane: Lane,
    /// Slots of the lane.
    pub slots: u32,
    /// Work for the lane in slot-seconds.
    pub work: f64,
    /// Work that arrives a second over what the lane can do in a second; `None` of a burst, where it says nothing.
    pub offered: Option<f64>,
    /// Whether more than the lane can do has arrived by the time of the last release, without what arrives then: flows
    /// then pile up, however the last ones are placed.
    pub is_too_much: bool,
}

/// The load of each lane: its work over its capacity times the time from the first to the last release.
///
/// Flows are a burst, and not a stream with a rate, if that time is shorter than one of them takes alone on average:
/// then the ratio grows without limit the closer they come together, and says nothing of what the cluster can bear.
pub fn offered(instance: &Instance) -> Vec<Load> {
    let flows = instance.flows();
    let releases = || flows.iter().map(|flow| flow.release);
    let (first, last) = (releases().min().unwrap_or_default(), releases().max().unwrap_or_default());
    let window = last.since(first).seconds();
    let alone = flows.iter().map(|flow| flow.alone).sum::<f64>() / flows.len() as f64;
    let is_stream = window > 0.0 && window >= alone;
    let (mut work, mut before_last) = ([Work::ZERO; 2], [Work::ZERO; 2]);
    for (phase, info) in instance.phases().iter_enumerated() {
        let lane = instance.lane_of(phase).index();
        work[lane] += info.work();
        if instance.flow(instance.job(info.job).flow).release < last {
            before_last[lane] += info.work();
        }
    }
    let load = |&lane: &Lane| {
        let capacity = instance.cluster().capacity(lane) * window;
        let work = work[lane.index()].slot_seconds();
        let offered = is_stream.then(|| work / capacity).filter(|load| load.is_finite());
        let is_too_much = is_stream && before_last[lane.index()].slot_seconds() > capacity;
        Load { lane, slots: instance.cluster().slots(lane), work, offered, is_too_much }
    };
    instance.cluster().lanes().iter().map(load).collect()
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
