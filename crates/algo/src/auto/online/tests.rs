//! What the choice of an order promises.

use slackline_model::cluster::Slots;
use slackline_model::{Combine, Metric};
use slackline_policy::Config;
use slackline_sim::{Options, Sim};

use super::*;
use crate::rule::tests::{Shape, UNIVERSAL, cost, cost_of, workload};

fn auto(objective: Objective, rollouts: &str) -> Auto {
    Auto::new(objective, &Settings::parse(ENTRY.params, [("rollouts", rollouts)]).unwrap())
}

fn believed(cost: f64, completions: f64) -> Believed {
    Believed { cost, completions }
}

#[test]
fn what_is_better_is_better_by_more_than_the_share_or_earlier_in_sum() {
    let old = believed(100.0, 50.0);
    assert!(believed(99.0, 90.0).beats(old, GAIN));
    assert!(!believed(99.8, 49.9).beats(old, GAIN) && believed(99.8, 49.9).beats(old, 0.0));
    assert!(believed(100.0, 40.0).beats(old, GAIN), "as cheap, and earlier");
    assert!(!believed(100.1, 1.0).beats(old, 0.0));
    assert!(believed(-102.0, 50.0).beats(believed(-100.0, 50.0), GAIN), "costs may be negative");
    let never = believed(f64::INFINITY, f64::INFINITY);
    assert!(!never.beats(never, GAIN) && !never.beats(never, 0.0));
}

#[test]
fn moves_go_both_ways() {
    let mut order = [0, 1, 2, 3, 4];
    shift(&mut order, 1, 3);
    assert_eq!(order, [0, 2, 3, 1, 4]);
    shift(&mut order, 3, 1);
    assert_eq!(order, [0, 1, 2, 3, 4]);
}

const METRICS: [(Metric, Combine); 4] = [
    (Metric::Response, Combine::Sum),
    (Metric::Slowdown, Combine::Max),
    (Metric::Tardiness, Combine::Sum),
    (Metric::Tardy, Combine::Sum),
];

#[test]
fn where_all_is_there_a_search_never_loses_and_mostly_gains() {
    let at_once = Shape { load: 1e6, ..UNIVERSAL };
    let mut gained = 0;
    for (metric, combine) in METRICS {
        for seed in 0..3 {
            let instance = workload(seed, at_once, metric, combine);
            let [without, with] =
                ["0", "200"].map(|rollouts| cost_of(&instance, &mut auto(instance.objective(), rollouts)));
            assert!(with <= without, "{metric}, seed {seed}: {with} with a search, {without} without");
            gained += u32::from(with < without);
        }
    }
    assert!(gained >= 6, "{gained} of 12 workloads");
}

#[test]
fn over_time_it_is_better_than_the_rule_that_is_for_the_metric() {
    for ((metric, combine), rule) in METRICS.into_iter().zip(["area", "due", "atc", "moore"]) {
        let costs = (0..6).map(|seed| {
            let instance = workload(seed, UNIVERSAL, metric, combine);
            (cost_of(&instance, &mut auto(instance.objective(), "200")), cost(&instance, &[("order", rule)]))
        });
        let (all, one) = costs.fold((0.0, 0.0), |(all, one), (a, b)| (all + a, one + b));
        println!("{metric}: {:.3} of {rule}", all / one);
        assert!(all <= one, "{metric}: {all}, by {rule} alone {one}");
    }
}

#[test]
fn with_nothing_else_to_come_flows_complete_when_they_are_believed_to() {
    for (slots, seed) in [(Slots::Universal(20), 3), (Slots::Typed { map: 12, reduce: 6 }, 4)] {
        let shape = Shape { slots, jobs: 6, ..UNIVERSAL };
        let instance = workload(seed, shape, Metric::Response, Combine::Sum);
        let mut policy = auto(instance.objective(), "10");
        let mut engine = Sim::new(&instance, Options::exact());
        let run = slackline_policy::run(&instance, &mut policy, &mut engine, Config::plain());
        let decided = policy.decided().unwrap();
        assert!(decided.completions.len() > 3, "some flows are there at the last arrival");
        for &(flow, believed) in &decided.completions {
            assert_eq!(run.completions[flow], Some(believed), "flow {flow:?}");
        }
    }
}
