//! Plans of `auto` when everything is known: no task schedule of any policy costs less, and the search
//! estimates the exact costs of its orders.

use slackline::algo::auto::offline_search::{Idle, InOrder, Search};
use slackline::plan::{Options as PlanOptions, Plan, plan};
use slackline::policy_spec::PolicySpec;
use slackline::registry::Registry;
use slackline::simulate::{Options as SimOptions, simulate};
use slackline_model::random::test_seeds;
use slackline_model::{FlowId, Instance, Seed};
use slackline_policy::{Config, Driver};
use slackline_sim::{Options, Sim};

use crate::rollouts::workload;

#[test]
fn no_task_schedule_of_any_policy_costs_less() {
    let registry = Registry::standard();
    let auto = registry.parse("auto:effort=0.1").unwrap();
    let mut better = 0;
    for seed in test_seeds(14) {
        let (instance, _) = workload(Seed(seed));
        let Ok(Plan::Schedule(best)) = plan(&instance, &auto, PlanOptions::default()) else {
            panic!("seed {seed}: no plan");
        };
        let cost = best.schedule.cost.unwrap();
        let (mut least, mut whose) = (f64::INFINITY, String::new());
        let mut other = |cost: Option<f64>, policy: &PolicySpec| {
            if cost.unwrap() < least {
                (least, whose) = (cost.unwrap(), policy.spec().to_owned());
            }
        };
        let is_other = |policy: &PolicySpec| policy.name() != auto.name();
        for policy in registry.policies().into_iter().filter(is_other).chain([auto.clone()]) {
            let simulated = simulate(&instance, &policy, &SimOptions::exact(), None, None)
                .unwrap_or_else(|error| panic!("seed {seed}, {policy:?}: {error}"));
            other(simulated.schedule.cost, &policy);
            if is_other(&policy)
                && let Ok(Plan::Schedule(planned)) = plan(&instance, &policy, PlanOptions::default())
                && planned.schedule.allocations.is_empty()
            {
                other(planned.schedule.cost, &policy);
            }
        }
        assert!(cost <= least, "seed {seed}: {cost}, {whose} {least}");
        better += u32::from(cost < least);
    }
    println!("better than all of them: {better}");
    assert!(better > 0, "the search finds nothing that policies do not");
}

#[test]
fn if_all_flows_are_known_auto_costs_no_more_than_policies_that_do_not_know_them() {
    let registry = Registry::standard();
    let auto = registry.parse("auto:effort=0.025").unwrap();
    let mut better = 0;
    for seed in test_seeds(40) {
        let (instance, slowstart) = workload(Seed(seed));
        let plain = SimOptions { slowstart, ..SimOptions::exact() };
        let cost = |policy: &PolicySpec, options: &SimOptions| {
            let simulated = simulate(&instance, policy, options, None, None);
            simulated
                .unwrap_or_else(|error| panic!("seed {seed}, {policy:?}: {error}"))
                .schedule
                .cost
                .unwrap()
        };
        let informed = cost(&auto, &SimOptions { known_releases: true, ..plain.clone() });
        let others = registry.policies().into_iter().filter(|policy| policy.name() != auto.name());
        let least =
            others.chain([auto.clone()]).map(|policy| cost(&policy, &plain)).fold(f64::INFINITY, f64::min);
        assert!(informed <= least, "seed {seed}: {informed}, another {least}");
        better += u32::from(informed < least);
    }
    assert!(better > 0, "knowing all flows never helps");
}

/// The estimated cost of an order that the search finds, and its real cost.
fn believed_and_found(instance: &Instance) -> Option<(f64, f64)> {
    let at_once = instance.clone().released_at_once();
    let (mut idle, mut engine, mut no_sink) = (Idle, Sim::new(&at_once, Options::exact()), ());
    let config = || Config { each: true, ..Config::plain() };
    let mut driver = Driver::new(at_once.without_flows(), &mut idle, &mut engine, &mut no_sink, config());
    driver.step();
    let view = driver.view();
    let place = |flow: FlowId| view.instance.flow(flow).place;
    let search = Search { objective: instance.objective(), rollouts: 20, seed: 3 };
    let found = search.run(&view, |flow| instance.flow(place(flow)).release, &[], || false)?;
    if found.order.len() < instance.flows().len() {
        return None;
    }
    let order: Vec<FlowId> = found.order.into_iter().map(place).collect();
    let mut engine = Sim::new(instance, Options::exact());
    let run = slackline_policy::run(instance, &mut InOrder::new(&order), &mut engine, config());
    let completions: Vec<f64> = run.completions.iter().map(|at| at.unwrap().seconds()).collect();
    Some((found.estimated.cost, instance.cost_of(&completions)))
}

#[test]
fn an_order_has_its_estimated_cost() {
    let mut compared = 0;
    for seed in test_seeds(40) {
        let (instance, _) = workload(Seed(seed));
        if let Some((estimated, found)) = believed_and_found(&instance) {
            assert!(
                (estimated - found).abs() <= 1e-9 * found.abs().max(1.0),
                "seed {seed}: {estimated}, found {found}"
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared} workloads");
}
