//! The order in which a document lists its machine groups does not matter: every flow, job and task starts
//! and ends at the same time, on machines of the same speed.
//!
//! Without crashes, jitter and heartbeats, which depend on the numbers of machines, and without hosts, which
//! name them.

use std::collections::BTreeMap;

use slackline::{PolicySpec, Registry};
use slackline_model::draft::{Draft, TasksDraft};
use slackline_model::{Instance, Schedule, Seed, Span, random};
use slackline_testkit::harness::{self, Setup};
use slackline_testkit::instances;

use crate::arb;

/// A workload without hosts on machines of mixed speed, and the same with its machines listed in another
/// order.
fn listed(seed: Seed) -> [Instance; 2] {
    let rng = &mut random::rng(seed, "groups", 0);
    let mut draft: Draft = arb::draft_of(seed);
    let more = arb::draft_of(Seed(seed.stream("more", 0))).flows;
    let cost = draft.flows[0].cost.clone();
    for (k, mut flow) in more.into_iter().enumerate() {
        (flow.id, flow.pool, flow.cost) = (format!("more{k}"), None, cost.clone());
        draft.flows.push(flow);
    }
    for phase in draft.flows.iter_mut().flat_map(|f| &mut f.jobs).flat_map(|j| [&mut j.map, &mut j.reduce]) {
        if let Some(TasksDraft::Splits(splits)) = phase.as_mut().map(|phase| &mut phase.tasks) {
            for split in splits {
                split.hosts.clear();
            }
        }
    }
    for machine in &mut draft.machines {
        machine.speed = [0.5, 1.0, 1.0, 2.0, 3.0, 0.7][random::integer(rng, 0, 5) as usize];
    }
    let mut other = draft.clone();
    other.machines.reverse();
    let turn = random::integer(rng, 0, other.machines.len() as u64 - 1) as usize;
    other.machines.rotate_left(turn);
    [draft, other].map(|draft| Instance::new(&draft).expect("drawn drafts are valid").cut(Span(3_000_000)))
}

/// The number of tasks of each phase by start, end and speed, and the starts and completions of flows.
fn times(instance: &Instance, schedule: &Schedule) -> (BTreeMap<String, u32>, Vec<String>) {
    let mut tasks = BTreeMap::new();
    for row in schedule.tasks.rows() {
        for place in schedule.tasks.places(row) {
            let mut slot = place.first;
            while slot < place.end() {
                let (speed, next) = instance.cluster().speed_of(instance.slot_kind_of(row.phase), slot);
                let name = instance.phase_name(row.phase);
                let n = next.min(place.end()) - slot;
                *tasks.entry(format!("{name} {} to {} at {speed}", row.start, row.end)).or_default() += n;
                slot += n;
            }
        }
    }
    let flows = instance.flows().iter().zip(&schedule.flows);
    (
        tasks,
        flows.map(|(flow, times)| format!("{} {:?} {:?}", flow.id, times.start, times.completion)).collect(),
    )
}

fn broken(seed: u64) -> Vec<String> {
    let instances = listed(Seed(seed));
    let slowstart = [1.0, 0.5, 0.0][seed as usize % 3];
    let setup = Setup { slowstart, ..Setup::plain() };
    let differs = |policy: &PolicySpec| {
        let [one, other] = instances.each_ref().map(|instance| {
            let mut policy = policy.build(instance.cluster(), &instance.objective());
            times(instance, &harness::simulate(instance, policy.as_mut(), &setup))
        });
        let task = one.0.iter().find(|(name, n)| other.0.get(*name) != Some(n));
        (one != other).then(|| format!("seed {seed}, {policy:?}: {task:?}"))
    };
    harness::registered(&Registry::standard()).iter().filter_map(differs).collect()
}

#[test]
fn the_order_of_machine_groups_does_not_matter() {
    let found = instances::on_each_seed(7, broken);
    assert!(
        found.is_empty(),
        "{} runs; the first:\n{}",
        found.len(),
        found[..found.len().min(40)].join("\n")
    );
}
