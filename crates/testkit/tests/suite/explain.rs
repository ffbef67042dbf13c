//! Explanations of random simulations: their numbers add up.

use crate::arb::arb_draft;
use proptest::prelude::*;
use slackline::Registry;
use slackline::explain::{Blocked, Verdict, explain, flow_times};
use slackline_model::cost::is_late;
use slackline_model::{Instance, PhaseId, Span};
use slackline_testkit::harness::{self, Setup, same};

/// All slots are accounted for, and none twice.
fn adds_up(instance: &Instance, phase: PhaseId, blocked: &Blocked) -> bool {
    let slots = instance.cluster().slots(instance.slot_kind_of(phase));
    blocked.idle >= 0.0 && same(blocked.slot_seconds(), blocked.seconds * f64::from(slots))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn explanations_add_up(
        draft in arb_draft(),
        policy in prop::sample::select(vec!["fifo", "fair", "edf"]),
        slowstart in prop::sample::select(vec![1.0, 0.3]),
    ) {
        let instance = Instance::new(&draft).unwrap().cut(Span(5_000_000));
        let policy = Registry::standard().parse(policy).unwrap();
        let setup = Setup { slowstart, ..Setup::plain() };
        let schedule = harness::simulate(&instance, policy.build(instance.cluster(), &instance.objective()).as_mut(), &setup);
        let completions = slackline_judge::completions(&instance, &schedule);
        let times = flow_times(&instance, &schedule);
        for (id, flow) in instance.flows().iter_enumerated() {
            let found = explain(&instance, &schedule, id, None).unwrap();
            prop_assert_eq!(found.completed, completions[id.index()]);
            prop_assert_eq!(times[id].completed, found.completed);
            let completed = found.completed.unwrap();
            prop_assert_eq!(found.until, completed);
            // Waiting and running along the chain are the response time.
            prop_assert!(same(found.waits.total(), completed - found.released), "{found:?}");
            prop_assert!(found.waits.lost <= found.waits.none + found.waits.below + 1e-9);
            // Each step begins where the one before it ended.
            let mut at = found.released;
            for story in found.steps() {
                prop_assert_eq!(story.ready, Some(at));
                at = story.ended.unwrap();
            }
            for story in &found.phases {
                let (ready, ended) = (story.ready.unwrap(), story.ended.unwrap());
                prop_assert!(same(story.waits.total(), (ended - ready).max(0.0)), "{story:?}");
                prop_assert!(same(story.blocked.seconds, story.waits.none + story.waits.below), "{story:?}");
                prop_assert!(adds_up(&instance, story.phase, &story.blocked), "{story:?}");
                prop_assert!(story.most <= story.cap, "{story:?}");
            }
            prop_assert_eq!(found.deadline.is_some(), flow.deadline.is_some());
            if let Some(deadline) = &found.deadline {
                prop_assert_eq!(deadline.verdict != Verdict::Met, is_late(completed, deadline.at));
                // No flow is faster than alone.
                prop_assert!(harness::at_most(deadline.least, deadline.alone));
                prop_assert!(harness::at_most(deadline.alone, completed - found.released), "{deadline:?}");
            }
            for job in flow.jobs() {
                let one = explain(&instance, &schedule, id, Some(job)).unwrap();
                prop_assert_eq!(&one.deadline, &found.deadline);
                prop_assert!(same(one.waits.total(), one.until - one.released));
            }
        }
    }
}
