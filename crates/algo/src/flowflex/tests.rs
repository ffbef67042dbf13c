//! Tests plans against the judge, the bounds and each other.

mod alone;
mod online;
mod real;
mod stop;

use slackline_judge::check;
use slackline_model::draft::Weights;
use slackline_model::schedule::{Allocation, Clock, FlowResult, FlowRow, Schedule, TaskRows};
use slackline_model::{Combine, Instance, Metric, Objective, Seed};
use slackline_trace::generate;

use super::list::{Lister, Rule};
use super::network::Network;
use super::*;
use crate::baseline::{ShareUnit, fluid};

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

/// The ready-list schedule of FIFO or Fair (section 5.1).
fn ready_list(instance: &Instance, rule: Rule<'_>) -> Vec<Allocation> {
    Lister::new(&Network::whole(instance, 1.0)).rows(rule)
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
            status: FlowResult::Done,
        }
    };
    Schedule {
        policy: "flowflex".into(),
        minima: false,
        clock: Clock::Exact,
        slowstart: 1.0,
        profile: None,
        segments: Vec::new(),
        objective: instance.objective(),
        cost: Some(cost),
        lower_bound: Some(bound),
        gap: None,
        metrics: Vec::new(),
        flows: instance.flows().iter_enumerated().map(row).collect(),
        tasks: TaskRows::new(),
        ams: Vec::new(),
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
fn no_plan_loses_to_fifo_or_fair_on_the_metric_it_was_asked_for() {
    for seed in 0..25 {
        for (metric, cost) in METRICS {
            for combine in [Combine::Sum, Combine::Max] {
                let settings = [("cost", cost), ("flows", "2..8"), ("jobs", "2..8")];
                let instance = generated(&settings, seed, Objective::new(metric, combine));
                let ours = plan(&instance, &Config::quick()).unwrap().cost;
                let lists = [Rule::Fifo, Rule::Fair].map(|rule| ready_list(&instance, rule));
                let baselines = [ShareUnit::Job, ShareUnit::Flow]
                    .into_iter()
                    .flat_map(|by| [fluid::Rule::Fifo(by), fluid::Rule::Fair(by)])
                    .map(|rule| fluid::plan(&instance, rule).unwrap());
                for rows in lists.into_iter().chain(baselines) {
                    let cost = instance.cost_of(&completions(&instance, &rows));
                    assert!(ours <= cost + 1e-9 * cost.abs(), "{metric} {combine:?}: {ours} above {cost}");
                }
            }
        }
    }
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
                    let rows = ready_list(&instance, rule);
                    let cost = instance.cost_of(&completions(&instance, &rows));
                    let document = schedule(&instance, rows, (cost, plan.bound));
                    check(&instance, &document).unwrap_or_else(|v| panic!("{rule:?}: {v}"));
                    assert!(plan.cost <= cost + 1e-9 * cost.abs(), "{metric} {combine:?} {rule:?}");
                }
            }
        }
    }
}

/// The same instance on slots of another speed.
fn faster(settings: &[(&str, &str)], seed: u64, objective: Objective, speed: f64) -> Instance {
    let mut draft = generate::generator("flowflex-5.1").unwrap().generate(settings, Seed(seed)).unwrap();
    for machine in &mut draft.machines {
        machine.speed = speed;
    }
    Instance::new(&draft).unwrap().with_objective(objective, Weights::Use).unwrap()
}

const SMALL: [(&str, &str); 2] = [("flows", "3..8"), ("jobs", "2..10")];

#[test]
fn theorem_2_deadlines_are_met_within_path_plus_area() {
    for seed in 0..10 {
        let instance = generated(&SMALL, seed, Objective::new(Metric::Tardiness, Combine::Sum));
        let net = network::Network::whole(&instance, 1.0);
        let chains: Vec<_> = (0..net.flows.len()).map(|flow| chain::chain(&net, flow)).collect();
        let order = orders::Rule::EarliestDue.order(&net);
        let (completions, _) = deadlines::greedy(&chains, &vec![0.0; chains.len()], &order, net.slots[0]);
        let mut area = 0.0;
        for flow in order {
            area += net.flows[flow].work / net.capacity();
            let path: f64 = chains[flow].iter().map(|p| p.seconds).sum();
            let most = path + area;
            assert!(completions[flow] <= most * (1.0 + 1e-9), "{} above {most}", completions[flow]);
        }
    }
}

#[test]
fn theorem_3_sums_at_triple_speed_are_within_twice_the_bound() {
    for (metric, cost) in METRICS.into_iter().filter(|m| m.0 != Metric::Lateness) {
        for seed in 0..4 {
            let settings = [SMALL[0], SMALL[1], ("cost", cost)];
            let objective = Objective::new(metric, Combine::Sum);
            let instance = generated(&settings, seed, objective);
            let slow = network::Network::whole(&instance, 1.0);
            let fast = network::Network::whole(&instance, 3.0);
            let grid = slackline_relax::flow::Grid { ratio: 0.01, slots_max: 2000 };
            let relaxed = orders::relaxed(&slow, grid);
            let order = orders::rounded(&slow, &relaxed, 0.5);
            let chains: Vec<_> = (0..fast.flows.len()).map(|flow| chain::chain(&fast, flow)).collect();
            let (completions, _) =
                deadlines::greedy(&chains, &vec![0.0; chains.len()], &order, fast.slots[0]);
            let cost: f64 = fast.flows.iter().zip(&completions).map(|(f, &c)| f.cost.eval(c)).sum();
            // The value for continuous time lies between `bound` and `right`.
            assert!(cost <= 2.0 * relaxed.right * (1.0 + 1e-6) + 1e-6, "{metric}: {cost} {}", relaxed.right);
        }
    }
}

#[test]
fn theorem_4_maxima_at_double_speed_are_within_the_bound() {
    for (metric, cost) in METRICS.into_iter().filter(|m| m.0 != Metric::Lateness) {
        for seed in 0..4 {
            let settings = [SMALL[0], SMALL[1], ("cost", cost)];
            let objective = Objective::new(metric, Combine::Max);
            let bound = slackline_relax::best(&generated(&settings, seed, objective));
            // Stretch divides by work and slowdown by the time alone, which change with the speed of
            // the cluster for slowdown only.
            let factor = if metric == Metric::Slowdown { 2.0 } else { 1.0 };
            let plan = checked(&faster(&settings, seed, objective, 2.0), &Config::quick());
            let most = factor * bound;
            assert!(plan.cost <= most * (1.0 + 1e-5) + 1e-6, "{metric}: {} above {most}", plan.cost);
        }
    }
}

#[test]
fn corollaries_1_and_2_at_unit_speed() {
    for seed in 0..10 {
        let of = |metric, combine| {
            checked(&generated(&SMALL, seed, Objective::new(metric, combine)), &Config::quick())
        };
        for metric in [Metric::Completion, Metric::Stretch] {
            let sum = of(metric, Combine::Sum);
            assert!(sum.cost <= 6.0 * sum.bound);
            let max = of(metric, Combine::Max);
            assert!(max.cost <= 2.0 * max.bound * (1.0 + 1e-6));
        }
    }
}

#[test]
fn chains_are_valid_schedules_of_the_real_jobs() {
    for seed in 0..10 {
        let instance = generated(&SMALL, seed, Objective::new(Metric::Completion, Combine::Sum));
        let net = network::Network::whole(&instance, 1.0);
        let (rows, ends) = scheme::Scheme::new(&net).schedule(&orders::Rule::Smith.order(&net));
        let cost = net.cost(&ends);
        if let Err(violation) = check(&instance, &schedule(&instance, rows, (cost, 0.0))) {
            panic!("seed {seed}: {violation}");
        }
    }
}

#[test]
fn reduces_releases_typed_slots_and_mixed_costs_are_planned() {
    for name in ["woha-yahoo", "flowflex-5.2", "woha-fig7"] {
        let mut draft = generate::generator(name).unwrap().generate(&[], Seed(1)).unwrap();
        draft.flows.truncate(6);
        draft.flows[0].cost = Some(slackline_model::draft::CostDraft::Piecewise {
            points: vec![(0.0, 0.0), (60.0, 5.0)],
            slope: None,
        });
        let instance = Instance::new(&draft).unwrap();
        for combine in [Combine::Sum, Combine::Max] {
            let objective = Objective::new(Metric::Response, combine);
            let instance = instance.clone().with_objective(objective, Weights::Use).unwrap();
            checked(&instance, &Config { steps: 2000, ..Config::thorough() });
        }
    }
}
