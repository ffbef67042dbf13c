//! Each rule against its definition on a handful of flows.

use slackline_model::params::Settings;
use slackline_model::{CostFn, FlowId};

use super::*;
use crate::rule::online::ENTRY;

const KNOBS: RuleParams = RuleParams { k: 0.5, x: 0.0, tail: false };

/// What is left: stages of a second each of `work`, on map and reduce slots, and a due date.
fn flow(id: u32, (map, reduce): (f64, f64), rem: f64, due: f64, cost: &CostFn) -> Candidate<'_> {
    let left = ResidualWork {
        flow: FlowId(id),
        stages: [map, reduce],
        area: map.max(reduce),
        rem,
        overrun: 1.0,
        lag: 0.0,
    };
    Candidate { number: id, left, release: f64::from(id) - 9.0, due, weight: 1.0, slope: 1.0, cost }
}

fn order(name: &str, flows: &[Candidate<'_>], knobs: RuleParams) -> Vec<u32> {
    let end = flows.iter().map(|flow| flow.left.area).sum();
    let scene = RuleContext { flows: flows.to_vec(), now: 0.0, end };
    let ranks = Rule::named(name).unwrap().ranks(&scene, knobs);
    let mut order: Vec<u32> = (0..ranks.len() as u32).collect();
    order.sort_by_key(|&at| (ranks[at as usize], at));
    order
}

#[test]
fn spelled_rules_are_what_the_policy_of_rules_takes() {
    for rule in RULES {
        let knobs = RuleParams { k: 2.0, x: 0.3, tail: true };
        let text = format!("order={}", rule.spelled(knobs));
        let pairs = text.split(':').map(|pair| pair.split_once('=').unwrap());
        let settings = Settings::parse(ENTRY.params, pairs).unwrap();
        assert_eq!(settings.choice("order"), rule.name);
        match rule.name {
            "atc" => assert_eq!((text.as_str(), settings.real("k")), ("order=atc:k=2", 2.0)),
            "due" => assert_eq!((settings.real("x"), settings.choice("tail")), (0.3, "yes")),
            name => assert_eq!(text, format!("order={name}")),
        }
    }
}

#[test]
fn each_rule_orders_by_its_key() {
    let cost = CostFn::linear(1.0, 0.0);
    let mut flows = vec![
        flow(0, (6.0, 1.0), 8.0, 30.0, &cost),
        flow(1, (2.0, 5.0), 5.0, 31.0, &cost),
        flow(2, (1.0, 4.0), 9.0, 28.0, &cost),
        flow(3, (3.0, 2.0), 3.0, 40.0, &cost),
    ];
    (flows[0].weight, flows[3].slope) = (4.0, 0.5);
    (flows[1].left.lag, flows[3].left.lag) = (2.0, -1.0);
    for (name, expected) in [
        ("fifo", [0, 1, 2, 3]),
        ("edf", [2, 0, 1, 3]),
        // 8, 5, 9, 3; over weights 2, 5, 9, 3.
        ("srpt", [3, 1, 0, 2]),
        ("wspt", [0, 3, 1, 2]),
        ("lrpt", [2, 0, 1, 3]),
        // Areas 6, 5, 4, 3; over weights 1.5, 5, 4, 3; over slopes 6, 5, 4, 6.
        ("area", [0, 3, 2, 1]),
        ("slope", [2, 1, 0, 3]),
        // Maps first where they are shorter, ascending: 2, 1; then by reduces, descending: 3, 0.
        ("johnson", [2, 1, 3, 0]),
        // 22, 26, 19, 37.
        ("lst", [2, 0, 1, 3]),
        // All are on time in the order of dates.
        ("moore", [2, 0, 1, 3]),
        ("worth", [2, 0, 1, 3]),
        // 7, 7, 5, 5 seconds of both stages, the geometric mean 5.9: the last two first.
        ("mk-tct-jr", [2, 3, 1, 0]),
        ("woha", [1, 0, 2, 3]),
        // The program has them complete at 16, 7, 9 and 18; less half of their times alone 12, 4.5, 4.5,
        // 16.5.
        ("dmrs", [1, 2, 0, 3]),
    ] {
        assert_eq!(order(name, &flows, KNOBS), expected, "{name}");
    }
    let together = Rule::named("critical-path").unwrap();
    assert_eq!(together.ranks(&RuleContext { flows, now: 0.0, end: 18.0 }, KNOBS), [0; 4]);
}

#[test]
fn ties_go_to_the_older_flow_and_what_is_worth_nothing_is_last() {
    let cost = CostFn::zero();
    let mut flows = [0, 1, 2].map(|id| flow(id, (2.0, 2.0), 4.0, f64::INFINITY, &cost));
    (flows[0].weight, flows[0].slope) = (0.0, 0.0);
    for rule in RULES {
        let worthless = ["wspt", "area", "slope", "atc", "moore", "worth", "dmrs"].contains(&rule.name);
        let expected = if worthless { [1, 2, 0] } else { [0, 1, 2] };
        let found = order(rule.name, &flows, KNOBS);
        // Without dates the textbook's rules for dates keep the order in which flows came.
        let dates = ["atc", "moore", "worth"].contains(&rule.name);
        assert!(found == expected || dates && found == [0, 1, 2], "{}: {found:?}", rule.name);
    }
}

#[test]
fn atc_looks_at_worth_and_slack() {
    let cost = CostFn::zero();
    // The second is short and has slack for ever, the third is short and late already.
    let flows = [
        flow(0, (6.0, 0.0), 6.0, 8.0, &cost),
        flow(1, (1.0, 0.0), 1.0, 90.0, &cost),
        flow(2, (1.0, 0.0), 1.0, -5.0, &cost),
    ];
    assert_eq!(order("atc", &flows, KNOBS), [2, 0, 1]);
    // Who looks far ahead sees little difference in slack: by worth.
    assert_eq!(order("atc", &flows, RuleParams { k: 100.0, ..KNOBS }), [2, 1, 0]);
}

#[test]
fn moore_gives_up_what_has_most_area_for_its_weight() {
    let cost = CostFn::zero();
    let mut flows = [
        flow(0, (4.0, 0.0), 4.0, 5.0, &cost),
        flow(1, (3.0, 0.0), 3.0, 6.0, &cost),
        flow(2, (2.0, 0.0), 2.0, 8.0, &cost),
    ];
    assert_eq!(order("moore", &flows, KNOBS), [1, 2, 0]);
    flows[0].weight = 9.0;
    assert_eq!(order("moore", &flows, KNOBS), [0, 2, 1]);
}

#[test]
fn due_keeps_the_largest_cost_below_a_level() {
    // Response times times weight 1 and 4: alone the second is done at 2 and costs 8; last, at 8, 32.
    let (slow, fast) = (CostFn::linear(1.0, 0.0), CostFn::linear(4.0, 0.0));
    let flows = [flow(0, (6.0, 0.0), 6.0, 0.0, &slow), flow(1, (2.0, 0.0), 2.0, 0.0, &fast)];
    // Level 8: by 8 and by 2. Counted back: from 2 and from 0.
    assert_eq!(order("due", &flows, KNOBS), [1, 0]);
    assert_eq!(order("due", &flows, RuleParams { tail: true, ..KNOBS }), [1, 0]);
    // Level 32, by 32 and by 8.
    assert_eq!(order("due", &flows, RuleParams { x: 1.0, ..KNOBS }), [1, 0]);
    // A step that costs more than the level allows is due at once: now, at 0.
    let step = CostFn::steps(vec![(0.5, 9.0)]);
    let flows = [flow(0, (6.0, 0.0), 6.0, 0.0, &slow), flow(1, (2.0, 0.0), 2.0, 0.0, &step)];
    assert_eq!(order("due", &flows, KNOBS), [0, 1], "at level 9, dates 9 and never");
}
