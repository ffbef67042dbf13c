//! Measures how long ApplicationMasters held most of the slots, so that few were left for tasks.

use slackline_model::{Instance, Schedule, SlotKind, Time};

/// How long ApplicationMasters held large parts of a cluster, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Crowding {
    /// They held two thirds of the slots or more.
    pub most: f64,
    /// They held all slots but one, which is their maximum.
    pub all: f64,
}

impl Crowding {
    /// The crowding of a schedule; `None` if no ApplicationMaster holds a slot. O(m log m) for m
    /// ApplicationMasters.
    pub(crate) fn of(instance: &Instance, schedule: &Schedule) -> Option<Self> {
        let holding = schedule.ams.iter().filter(|am| am.slot.is_some());
        let mut changes: Vec<(Time, i64)> = holding.flat_map(|am| [(am.start, 1), (am.end, -1)]).collect();
        changes.sort_unstable();
        let slots = i64::from(instance.cluster().slots(SlotKind::Any));
        let (mut held, mut crowding) = (0, Self::default());
        for pair in changes.windows(2) {
            held += pair[0].1;
            let seconds = pair[1].0.since(pair[0].0).seconds();
            if 3 * held >= 2 * slots {
                crowding.most += seconds;
            }
            if held + 1 >= slots {
                crowding.all += seconds;
            }
        }
        (!changes.is_empty()).then_some(crowding)
    }
}

#[cfg(test)]
mod tests {
    use slackline_trace::{ImportOptions, read_workload};

    use super::*;
    use crate::{Options, Registry, simulate};

    /// Three slots. Jobs a and b arrive together, and each has a map of 10 s.
    const TWO: &str = r#"
slackline = 1
cluster.machines = [{ name = "m", slots = 3 }]
[[flows]]
id = "a"
jobs = [{ id = "j", map = { tasks = 1, seconds = 10.0 } }]
[[flows]]
id = "b"
jobs = [{ id = "j", map = { tasks = 1, seconds = 10.0 } }]
"#;

    fn crowding(profile: &str) -> Option<Crowding> {
        let imported =
            read_workload("t.toml", TWO.as_bytes(), None, &ImportOptions::default()).expect("a workload");
        let instance = Instance::new(&imported.draft).expect("an instance");
        let mut options = Options::exact();
        options.sim = options.sim.with_profile(slackline_model::Profile::parse(profile).expect("a profile"));
        let fifo = Registry::standard().parse("fifo").expect("a policy");
        simulate(&instance, &fifo, &options, None, None).expect("a schedule").crowding
    }

    #[test]
    fn seconds_with_ams_on_most_slots_are_counted() {
        const PROFILE: &str =
            "hadoop:submit=0:am-start=4:am-linger=1:heartbeat=0:am-heartbeat=0:container-start=0";
        // Both ApplicationMasters start at once. The last slot runs one map after the other: 4 s + 10 s, and
        // 10 s more after the first job has ended.
        let found = crowding(PROFILE).expect("ams");
        assert_eq!((found.most, found.all), (15.0, 15.0));
        let limited = crowding(&format!("{PROFILE}:am-share=0.4")).expect("ams");
        assert_eq!((limited.most, limited.all), (0.0, 0.0));
        assert_eq!(crowding("plain"), None);
    }
}
