//! The metrics of the flows of each pool, each user and each size class.

use std::collections::BTreeMap;

use slackline_judge::{FlowFacts, metrics_of};
use slackline_model::id::TiVec;
use slackline_model::{FlowId, Instance, Work};

use super::{Named, known};

/// The properties by which flows are grouped, as named in documents and options.
pub const GROUPS: [&str; 3] = ["pool", "user", "size"];

/// A group of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The property: `pool`, `user` or `size`.
    pub by: &'static str,
    /// The name of the pool, the user or the size class.
    pub name: String,
    /// The number of its flows.
    pub flows: usize,
    /// The metrics of its flows.
    pub metrics: Named,
}

impl Group {
    /// The metric of this name.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| *known == name)?.1
    }
}

/// The groups of a workload with their metrics, from the facts about each flow. Pools are in document order,
/// users in alphabetical order, and size classes in ascending order. A flow without a pool or a user is in no
/// such group. If there is only one size class, it is omitted. O(flows · groups).
pub fn groups(instance: &Instance, facts: &TiVec<FlowId, FlowFacts>) -> Vec<Group> {
    let mut all: BTreeMap<(u8, usize, String), Vec<FlowId>> = BTreeMap::new();
    for (id, flow) in instance.flows().iter_enumerated() {
        if let Some(pool) = flow.pool {
            let name = instance.pools()[pool].id.clone();
            all.entry((0, usize::from(pool), name)).or_default().push(id);
        }
        if let Some(user) = &flow.user {
            all.entry((1, 0, user.clone())).or_default().push(id);
        }
        let (class, name) = size_class(flow.work);
        all.entry((2, class, name)).or_default().push(id);
    }
    let classes = all.keys().filter(|(by, ..)| *by == 2).count();
    let groups = all.into_iter().filter(|((by, ..), _)| *by < 2 || classes > 1);
    groups
        .map(|((by, _, name), flows)| {
            let metrics = metrics_of(instance, facts, &flows);
            let nothing_done = flows.iter().all(|&flow| facts[flow].completion.is_none());
            Group {
                by: GROUPS[usize::from(by)],
                name,
                flows: flows.len(),
                metrics: known(&metrics, nothing_done),
            }
        })
        .collect()
}

/// The size class of a flow, by powers of ten of its slot-seconds of work: 0 for none, 1 for less than 1, 2
/// for less than 10, and so on. Returns its number and its name, such as `1..10`.
fn size_class(work: Work) -> (usize, String) {
    if work.0 == 0 {
        return (0, "0".to_owned());
    }
    let (mut class, mut least, mut end) = (1, 0, 1);
    while work.0 >= end * 1_000_000 {
        (class, least, end) = (class + 1, end, end * 10);
    }
    (class, format!("{least}..{end}"))
}

#[cfg(test)]
mod tests {
    use slackline_model::Draft;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PerPhase, PoolDraft, TasksDraft};

    use super::*;
    use crate::{Options, Registry, simulate};

    #[test]
    fn size_classes_are_powers_of_ten_of_slot_seconds() {
        let name = |micros| size_class(Work(micros)).1;
        assert_eq!([0, 1, 999_999].map(name), ["0", "0..1", "0..1"]);
        assert_eq!([1_000_000, 9_999_999, 10_000_000].map(name), ["1..10", "1..10", "10..100"]);
    }

    #[test]
    fn flows_are_grouped_by_pool_user_and_size() {
        let flow = |id: &str, tasks, pool: Option<&str>, user: Option<&str>| FlowDraft {
            pool: pool.map(str::to_owned),
            user: user.map(str::to_owned),
            ..FlowDraft::new(
                id,
                vec![JobDraft {
                    id: "j".into(),
                    map: Some(TasksDraft::Uniform { tasks, seconds: 5.0 }.into()),
                    ..JobDraft::default()
                }],
            )
        };
        let flows = vec![
            flow("a", 1, Some("night"), Some("eve")),
            flow("b", 4, Some("adhoc"), None),
            flow("c", 4, Some("night"), Some("bob")),
        ];
        let pool = |id: &str| PoolDraft { id: id.into(), min_slots: PerPhase::default() };
        let machine =
            MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(1), rack: None };
        let pools = vec![pool("night"), pool("adhoc")];
        let instance =
            Instance::new(&Draft { machines: vec![machine], pools, flows, ..Draft::default() }).unwrap();
        let fifo = Registry::standard().parse("fifo").unwrap();
        let done = simulate(&instance, &fifo, &Options::exact(), None, None).unwrap();
        let groups = groups(&instance, &done.flows);
        let names: Vec<_> = groups.iter().map(|g| format!("{} {} {}", g.by, g.name, g.flows)).collect();
        let expected =
            ["pool night 2", "pool adhoc 1", "user bob 1", "user eve 1", "size 1..10 1", "size 10..100 2"];
        assert_eq!(names, expected);
        // First a, then b from 5 s to 25 s, then c to 45 s.
        let wait = |k: usize| groups[k].metrics.iter().find(|(name, _)| *name == "mean_wait").unwrap().1;
        assert_eq!((wait(0), wait(1), wait(2), wait(3)), (Some(12.5), Some(5.0), Some(25.0), Some(0.0)));
    }
}
