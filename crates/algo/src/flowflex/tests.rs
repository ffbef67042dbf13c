//! Plans held against the judge, the bounds and each other.

use slackline_judge::check;
use slackline_model::draft::Weights;
use slackline_model::schedule::{Allocation, Clock, FlowRow, FlowStatus, Schedule, TaskRows};
use slackline_model::{Combine, Instance, Metric, Objective, Seed};
use slackline_trace::generate;

use super::list::Rule;
use super::*;

/// Metrics with the cost of the generator that they need.
const METRICS: [(Metric, &str); 9] = [
    (Metric::Completion, "metric"),
    (Metric::Response, "metric"),
    (Metric::Makespan, "metric"),
    (Metric::Stretch, "metric"),
    (Metric::Tardy, "metric"),
    (Metric::Tardiness, "metric"),
    (Metric::Lateness, "metric"),
    (Metric::Slowdown, "metric"),
    (Metric::Sla, "sla"),
];

fn small() -> Config<'static> {
    Config { steps: 20_000, ..Config::thorough() }
}

fn generated(settings: &[(&str, &str)], seed: u64, objective: Objective) -> Instance {
    let draft = generate::generator("flowflex-5.1").unwrap().generate(settings, Seed(seed)).unwrap();
    Instance::new(&draft).unwrap().with_objective(objective, Weights::Use).unwrap()
}

/// When each flow completes.
fn completions(instance: &Instance, rows: &[Allocation]) -> Vec<f64> {
    let mut ends: Vec<f64> = instance.flows().iter().map(|f| f.release.seconds()).collect();
    for row in rows {
        let end = &mut ends[instance.flow_of(row.phase).index()];
        *end = end.max(row.end);
    }
    ends
}

/// The schedule document of some allocations.
fn schedule(instance: &Instance, allocations: Vec<Allocation>, (cost, bound): (f64, f64)) -> Schedule {
    let row = |(id, flow): (slackline_model::FlowId, &slackline_model::instance::Flow)| {
        let own = || allocations.iter().filter(|a| instance.flow_of(a.phase) == id);
        let completion = own().map(|a| a.end).fold(flow.release.seconds(), f64::max);
        FlowRow {
            flow: id,
            release: flow.release.seconds(),
            start: own().map(|a| a.start).reduce(f64::min),
            completion: Some(completion),
            cost: Some(flow.cost.eval(completion)),
            status: FlowStatus::Done,
        }
    };
    Schedule {
        policy: "flowflex".into(),
        minima: false,
        clock: Clock::Exact,
        slowstart: 1.0,
        objective: instance.objective(),
        cost: Some(cost),
        lower_bound: Some(bound),
        gap: None,
        metrics: Vec::new(),
        flows: instance.flows().iter_enumerated().map(row).collect(),
        tasks: TaskRows::new(),
        allocations,
    }
}

/// Plans, has the judge check the plan, and returns it.
fn checked(instance: &Instance, config: &Config<'_>) -> Plan {
    let plan = plan(instance, config).unwrap();
    let document = schedule(instance, plan.allocations.clone(), (plan.cost, plan.bound));
    if let Err(violation) = check(instance, &document) {
        panic!("{:?}, {}: {violation}", instance.objective(), plan.candidate.name());
    }
    plan
}

#[test]
fn every_metric_is_planned_validly_and_no_worse_than_fifo_and_fair() {
    for (metric, cost) in METRICS {
        for combine in [Combine::Sum, Combine::Max] {
            for seed in 0..3 {
                let settings = [("cost", cost), ("flows", "2..6"), ("jobs", "2..8")];
                let instance = generated(&settings, seed, Objective::new(metric, combine));
                let plan = checked(&instance, &small());
                for rule in [Rule::Fifo, Rule::Fair] {
                    let rows = ready_list(&instance, rule).unwrap();
                    let cost = instance.cost_of(&completions(&instance, &rows));
                    let document = schedule(&instance, rows, (cost, plan.bound));
                    check(&instance, &document).unwrap_or_else(|v| panic!("{rule:?}: {v}"));
                    assert!(plan.cost <= cost + 1e-9 * cost.abs(), "{metric} {combine:?} {rule:?}");
                }
            }
        }
    }
}
