//! Claims: each is recomputed from the rows and believed in nothing.

use slackline_judge::{check, metrics, metrics_of};
use slackline_model::cost::Objective;
use slackline_model::draft::{CostDraft, FlowDraft};
use slackline_model::schedule::Clock;
use slackline_model::{Combine, FlowId, Instance, Metric, Schedule};

use crate::build::*;

fn honest() -> (Instance, Schedule) {
    let instance = pair();
    let rows = [
        ("b/b/map", 0.0, 10.0, 2),
        ("a/a/map", 0.0, 15.0, 2),
        ("b/b/reduce", 10.0, 15.0, 2),
        ("a/a/map", 15.0, 17.5, 4),
    ];
    let mut schedule = plan(&instance, &rows);
    (schedule.lower_bound, schedule.gap) = (Some(40.0), Some(0.1875));
    let entries = metrics(&instance, &schedule).entries();
    schedule.metrics = entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    (instance, schedule)
}

/// Refuses the honest plan after `change`; the message.
#[track_caller]
fn broken(kind: &str, change: impl FnOnce(&mut Schedule)) -> String {
    let (instance, mut schedule) = honest();
    change(&mut schedule);
    refuses(&instance, &schedule, kind)
}

#[test]
fn honest_claims_are_accepted() {
    let (instance, mut schedule) = honest();
    accepts(&instance, &schedule);
    schedule.flows.reverse();
    schedule.metrics.push(("decision_seconds_p99".into(), 0.25));
    (schedule.lower_bound, schedule.gap) = (None, None);
    accepts(&instance, &schedule);
}

#[test]
fn every_flow_has_one_row() {
    assert_eq!(
        broken("flow-missing", |s| s.flows.truncate(0)),
        "flow a: found no row in flows, expected one"
    );
    broken("flow-twice", |s| s.flows.push(s.flows[1]));
    let message = broken("row", |s| s.flows[1].flow = FlowId(9));
    assert_eq!(message, "row 1 of flows: found flow number 9, expected one of the workload");
}

#[test]
fn claims_of_a_flow() {
    let message = broken("flow-release", |s| flow_row(s, 1).release = 1.0);
    assert_eq!(message, "flow b: found release 1, expected 0");
    broken("start", |s| flow_row(s, 0).start = Some(1.0));
    broken("start", |s| flow_row(s, 0).start = None);
    let message = broken("completion", |s| flow_row(s, 0).completion = Some(17.0));
    assert_eq!(message, "flow a: found completion 17, expected 17.5");
    broken("completion", |s| flow_row(s, 0).completion = None);
    broken("completion", |s| flow_row(s, 0).completion = Some(f64::NAN));
    broken("flow-cost", |s| flow_row(s, 1).cost = Some(15.0));
    broken("flow-cost", |s| flow_row(s, 1).cost = None);
}

#[test]
fn the_cost_of_the_whole() {
    assert_eq!(broken("cost", |s| s.cost = Some(47.0)), "cost: found 47, expected 47.5");
    broken("cost", |s| s.cost = None);
    let (instance, mut schedule) = honest();
    (schedule.cost, schedule.gap, schedule.clock) = (None, None, Clock::Measured);
    accepts(&instance, &schedule);
}

#[test]
fn bound_and_gap() {
    assert_eq!(
        broken("lower-bound", |s| s.lower_bound = Some(48.0)),
        "lower_bound: found 48, expected at most the cost of 47.5"
    );
    broken("lower-bound", |s| s.lower_bound = Some(f64::NAN));
    broken("gap", |s| s.gap = Some(0.2));
    broken("gap", |s| s.lower_bound = None);
    broken("gap", |s| s.lower_bound = Some(0.0));
}

#[test]
fn every_metric_is_checked() {
    let n = honest().1.metrics.len();
    for i in 0..n {
        let message = broken("metric", |s| s.metrics[i].1 += 1.0);
        assert!(message.contains(&honest().1.metrics[i].0), "{message}");
    }
    assert_eq!(
        broken("metric", |s| s.metrics[0].0 = "speed".into()),
        "metric speed: found 17.5, expected a name of the comparison document"
    );
}

#[test]
fn the_metrics_of_the_comparison_document_in_its_order() {
    let (instance, schedule) = honest();
    let names: Vec<_> = metrics(&instance, &schedule).entries().into_iter().map(|e| e.0).collect();
    let expected = "makespan total_completion weighted_completion mean_response p50_response p95_response \
        p99_response mean_wait p95_wait mean_stretch max_stretch mean_slowdown max_slowdown \
        mean_bounded_slowdown max_bounded_slowdown deadlines missed total_tardiness max_tardiness utilisation \
        tasks";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn costs_follow_the_objective_of_the_schedule() {
    let (instance, mut schedule) = honest();
    schedule.objective = Objective::new(Metric::Completion, Combine::Max);
    (schedule.cost, schedule.gap, schedule.lower_bound) = (Some(30.0), None, None);
    accepts(&instance, &schedule);
    schedule.objective = Objective::new(Metric::Sla, Combine::Sum);
    refuses(&instance, &schedule, "objective");
}

#[test]
fn a_completion_rounded_over_a_step_may_cost_either_level() {
    let steps = Some(CostDraft::Steps(vec![(10.0, 7.0)]));
    let a = FlowDraft { cost: steps, ..flow("a", uniform(1, 10.0), None) };
    let instance = instance(two_by_two(), vec![a]);
    // Just late in the rows, on time in the claim: the two are the same instant.
    let mut schedule = plan(&instance, &[("a/a/map", 0.000_003, 10.000_003, 1)]);
    assert_eq!(schedule.cost, Some(7.0));
    accepts(&instance, &schedule);
    flow_row(&mut schedule, 0).completion = Some(10.000_001_5);
    flow_row(&mut schedule, 0).cost = Some(0.0);
    schedule.cost = Some(0.0);
    accepts(&instance, &schedule);
    flow_row(&mut schedule, 0).cost = Some(3.0);
    refuses(&instance, &schedule, "flow-cost");
}

/// Flow a arrives at 3 and starts at 10, flow b waits for nothing; alone either takes a few seconds.
#[test]
fn waits_and_bounded_slowdowns_follow_from_the_rows() {
    let a = FlowDraft { release: 3.0, ..flow("a", uniform(4, 2.0), None) };
    let instance = instance(two_by_two(), vec![a, flow("b", uniform(4, 10.0), None)]);
    let schedule = plan(&instance, &[("b/b/map", 0.0, 10.0, 4), ("a/a/map", 10.0, 12.0, 4)]);
    let found = metrics(&instance, &schedule);
    assert_eq!((found.mean_wait, found.p95_wait), (3.5, 7.0));
    // a: 9 s for what takes 2 s alone, so over 10 s, but not less than 1; b: 10 s for 10 s.
    assert_eq!((found.max_slowdown, found.max_bounded_slowdown), (4.5, 1.0));
    assert_eq!(found.mean_bounded_slowdown, 1.0);
}

/// Every flow counts in one part, so that counts and shares of the slots add up to those of the whole.
#[test]
fn metrics_of_parts_add_up() {
    let (instance, schedule) = honest();
    let report = check(&instance, &schedule).unwrap();
    let part = |flow| metrics_of(&instance, &report.flows, &[FlowId(flow)]);
    let (a, b, all) = (part(0), part(1), report.metrics);
    assert_eq!((a.makespan, b.makespan, all.makespan), (17.5, 15.0, 17.5));
    assert_eq!(a.total_completion + b.total_completion, all.total_completion);
    assert!((a.utilisation + b.utilisation - all.utilisation).abs() < 1e-12);
    assert_eq!(metrics_of(&instance, &report.flows, &[]).mean_response, 0.0);
}
