//! Tests searches that are stopped or cut short, schedules that are dropped, and a clock too coarse for a
//! step.

use std::cell::Cell;

use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};

use super::*;
use crate::flowflex::list::Lister;

#[test]
fn a_plan_that_is_stopped_is_valid_and_says_so() {
    for combine in [Combine::Sum, Combine::Max] {
        for (metric, cost) in [(Metric::Completion, "metric"), (Metric::Sla, "sla")] {
            let settings = [("cost", cost), ("flows", "6"), ("jobs", "6")];
            let instance = generated(&settings, 2, Objective::new(metric, combine));
            let whole = checked(&instance, &Config::thorough());
            for answers in [0, 1, 3, 10, 40, 200] {
                let asked = Cell::new(0);
                let stop = || {
                    asked.set(asked.get() + 1);
                    asked.get() > answers
                };
                let plan = checked(&instance, &Config { cancel: Some(&stop), ..Config::thorough() });
                assert_eq!(plan.cut, asked.get() > answers, "{metric} {answers}");
                assert!(plan.cost >= whole.bound - 1e-9 && plan.bound <= whole.cost + 1e-9);
            }
        }
    }
}

#[test]
fn a_step_limit_cuts_and_says_so() {
    let instance = generated(&SMALL, 1, Objective::new(Metric::Completion, Combine::Sum));
    let of = |steps| checked(&instance, &Config { steps, ..Config::thorough() });
    assert!(of(100).cut && !of(u64::MAX).cut);
    assert!(of(u64::MAX).cost <= of(100).cost && of(100).cost <= of(0).cost);
    assert_eq!(of(100), of(100));
}

/// Found on a Sarek workflow of WfCommons: where only phases without work were ready, the schedule ended, or
/// they waited for the next release.
#[test]
fn phases_without_work_are_done_when_nothing_else_is_ready() {
    let job = |id: &str, seconds: f64, after: &[&str]| JobDraft {
        id: id.into(),
        after: after.iter().map(|&id| id.into()).collect(),
        map: Some(TasksDraft::Each(vec![seconds]).into()),
        ..JobDraft::default()
    };
    let chain =
        || vec![job("a", 4.0, &[]), job("b", 0.0, &["a"]), job("c", 3.0, &["b"]), job("d", 0.0, &["c"])];
    let late = FlowDraft { release: 100.0, ..FlowDraft::new("late", chain()) };
    let machine =
        MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(2), rack: None };
    let flows = vec![FlowDraft::new("early", chain()), late];
    let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
    assert_eq!(checked(&instance, &Config::quick()).completions, [7.0, 107.0]);
    let net = crate::flowflex::network::Network::whole(&instance, 1.0);
    for rule in [Rule::Flows(&[0, 1]), Rule::Due(&[0.0, 1.0]), Rule::Fifo, Rule::Fair] {
        assert_eq!(Lister::new(&net).completions(rule), [7.0, 107.0], "{rule:?}");
    }
}

#[test]
fn schedules_are_abandoned_only_above_the_limit() {
    for (metric, cost) in METRICS {
        for combine in [Combine::Sum, Combine::Max] {
            let settings = [SMALL[0], SMALL[1], ("cost", cost)];
            let instance = generated(&settings, 4, Objective::new(metric, combine));
            let net = network::Network::whole(&instance, 1.0);
            let mut lister = Lister::new(&net);
            for rule in orders::Rule::ALL {
                let order = rule.order(&net);
                let whole = lister.cost(Rule::Flows(&order));
                let at = |limit, lister: &mut Lister<'_>| lister.cost_up_to(Rule::Flows(&order), limit);
                assert_eq!(at(whole.0, &mut lister), Some(whole));
                if let Some(found) = at(whole.0 - 1e-3 * whole.0.abs() - 1e-3, &mut lister) {
                    assert_eq!(found, whole, "finished all the same");
                    assert!(combine == Combine::Sum || found.0 == 0.0, "a maximum is known when it is there");
                }
            }
        }
    }
}

#[test]
fn steps_too_short_for_the_clock_end_their_nodes() {
    // Released after a thousand years; a third of a microsecond is below what an f64 of that size resolves.
    let draft = |release: f64| {
        let job = |id: &str, after: &[&str]| JobDraft {
            id: id.into(),
            after: after.iter().map(|&a| a.into()).collect(),
            map: Some(TasksDraft::Work { work: 1e-6, tasks: None }.into()),
            ..JobDraft::default()
        };
        let flow =
            |id: &str| FlowDraft { release, ..FlowDraft::new(id, vec![job("a", &[]), job("b", &["a"])]) };
        Draft {
            flows: vec![flow("f"), flow("g")],
            machines: vec![MachineDraft {
                name: "m".into(),
                count: 1,
                speed: 1.0,
                slots: Slots::Generic(3),
                rack: None,
            }],
            ..Draft::default()
        }
    };
    for release in [0.0, 1.0, 3e10] {
        let instance = Instance::new(&draft(release)).unwrap();
        let net = network::Network::whole(&instance, 1.0);
        for rule in [Rule::Fifo, Rule::Fair, Rule::Flows(&[1, 0])] {
            let ends = Lister::new(&net).completions(rule).to_vec();
            assert!(ends.iter().all(|&c| (c - release).abs() < 1e-5), "{ends:?}");
        }
        plan(&instance, &Config::thorough()).unwrap();
    }
}
