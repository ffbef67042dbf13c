//! Phases without length: they hold no slot and are done when they become ready, under every policy and in
//! plans.

use proptest::prelude::*;
use slackline::Registry;
use slackline::conformance::{planned, setups};
use slackline_model::draft::{Draft, PhaseDraft, TasksDraft};
use slackline_model::random::test_scale;
use slackline_model::{Instance, Seed, Span, random};
use slackline_policy::Policy;
use slackline_testkit::conformance::measured;
use slackline_testkit::harness::{self, Setup};
use slackline_testkit::instances;
use slackline_trace::{ImportOptions, read_workload};

use crate::arb::arb_draft;

/// The draft with about every other phase without length; some flows lose all their work.
pub(crate) fn with_pauses(mut draft: Draft, seed: u64) -> Draft {
    let rng = &mut random::rng(Seed(seed), "pauses", 0);
    for flow in &mut draft.flows {
        let share = [0.3, 0.6, 1.0][random::integer(rng, 0, 2) as usize];
        for phase in flow.jobs.iter_mut().flat_map(|job| [&mut job.map, &mut job.reduce]).flatten() {
            // If work is cut later, the oracle and the judge compute different times alone.
            if let TasksDraft::Work { tasks, .. } = &mut phase.tasks {
                tasks.get_or_insert(3);
            }
            if random::chance(rng, share) {
                empty(phase);
            }
        }
    }
    draft
}

fn empty(phase: &mut PhaseDraft) {
    match &mut phase.tasks {
        TasksDraft::Uniform { seconds, .. } => *seconds = 0.0,
        TasksDraft::Each(list) => list.fill(0.0),
        TasksDraft::Splits(splits) => splits.iter_mut().for_each(|split| split.seconds = 0.0),
        TasksDraft::Work { work, .. } => *work = 0.0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: (6.0 * test_scale()) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_passes_over_them(draft in arb_draft(), seed: u64, at in 0..100usize) {
        let instance = Instance::new(&with_pauses(draft, seed)).unwrap().cut(Span(3_000_000));
        let setups = setups(&instance);
        let (how, setup) = &setups[at % setups.len()];
        for policy in harness::registered(&Registry::standard()) {
            for setup in [setup, &Setup::plain()] {
                let found = measured(&instance, &policy, setup);
                prop_assert!(found.is_ok(), "{:?}, {}: {}", policy, how, found.unwrap_err());
                let mut built = policy.build(instance.cluster(), &instance.objective());
                let schedule = harness::simulate(&instance, built.as_mut() as &mut dyn Policy, setup);
                let shown = schedule.tasks.rows().iter().find(|row| instance.phase(row.phase).work().0 == 0);
                prop_assert!(shown.is_none(), "{:?} starts {}", policy, instance.phase_name(shown.unwrap().phase));
            }
            let plan = planned(&instance, &policy);
            prop_assert!(plan.is_ok(), "{:?}, plan: {}", policy, plan.unwrap_err());
        }
    }
}

/// Minima above capacity, while tasks without length shrink one of them within an instant.
const SHRINKING: &str = r#"slackline = 1
cluster.machines = [{ name = "node", count = 3, slots = 2 }]
[[flows]]
id = "f0"
release = 7.0
jobs = [{ id = "j0", reduce = { splits = [{ seconds = 1.0, count = 3 }, { seconds = 5.184 }, { seconds = 1.0 }], min_slots = 2 } }]
[[flows]]
id = "f1"
release = 6.0
jobs = [{ id = "j0", reduce = { tasks = 4, seconds = 5.459, min_slots = 3 } }]
[[flows]]
id = "f2"
jobs = [{ id = "j1", reduce = { tasks = 3, seconds = 10.0 } }]
[[flows]]
id = "f4"
release = 4.0
jobs = [
  { id = "j0", map = { tasks = 3, seconds = 10.0, min_slots = 3 } },
  { id = "j4", reduce = { seconds = [5.346, 10.0], min_slots = 1 } },
]
[[flows]]
id = "more2"
release = 8.0
jobs = [
  { id = "j2", map = { seconds = [10.0, 2.0], min_slots = 1 } },
  { id = "j3", reduce = { tasks = 1, seconds = 3.0, min_slots = 1 } },
  { id = "j4", map = { seconds = [10.0], min_slots = 1 } },
]
[[flows]]
id = "more3"
release = 7.0
jobs = [{ id = "j0", map = { seconds = [10.0, 0.0, 0.0, 5.74], min_slots = 3 } }]
"#;

#[test]
fn an_instant_in_which_they_shrink_a_minimum_is_not_judged() {
    let read = read_workload("shrinking.toml", SHRINKING.as_bytes(), None, &ImportOptions::default());
    let instance = Instance::new(&read.unwrap().draft).unwrap();
    for policy in harness::registered(&Registry::standard()) {
        let found = measured(&instance, &policy, &Setup::plain());
        assert!(found.is_ok(), "{policy:?}: {}", found.unwrap_err());
    }
}

/// Instances of the exhaustive suite with phases emptied.
pub(crate) fn small(n: u64) -> impl Iterator<Item = Draft> {
    instances::sampled_jobs(3, n).zip(0..).map(|(draft, seed)| with_pauses(draft, seed))
}
