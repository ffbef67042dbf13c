use slackline_model::{FlowId, Time};

use super::*;
use crate::conformance::workloads;
use crate::simulate::simulate;

/// The final cost of the flows that had arrived at `now` and were unfinished.
fn really(instance: &Instance, schedule: &Schedule, now: Time) -> f64 {
    let is_there = |flow: FlowId| instance.flow(flow).release <= now;
    let costs = schedule.flows.iter().filter(|row| is_there(row.flow)).filter_map(|row| {
        let completion = row.completion.expect("nothing fails");
        (completion > now.seconds()).then(|| instance.flow(row.flow).cost.eval(completion))
    });
    instance.objective().combine.of(costs)
}

#[test]
fn no_bound_on_what_was_left_is_above_what_it_really_cost() {
    let auto = Registry::standard().parse("auto:effort=0.1").unwrap();
    let options = Options::exact();
    let (mut decisions, mut positive, mut worst) = (0, 0, 1.0_f64);
    for (name, instance) in workloads() {
        let instance = instance.cut(slackline_model::Span(10_000_000));
        let run = simulate(&instance, &auto, &options, None, None).unwrap();
        let found = certify(&instance, &run.schedule, &run.choices, &options).unwrap();
        assert_eq!(found.left.len(), run.choices.len(), "{name}");
        for (choice, &bound) in run.choices.iter().zip(&found.left) {
            let cost = really(&instance, &run.schedule, choice.at);
            assert!(bound <= cost * (1.0 + 1e-9) + 1e-9, "{name} at {:?}: {bound} above {cost}", choice.at);
            decisions += 1;
            positive += u32::from(bound > 0.0);
            if cost > 0.0 {
                worst = worst.min(bound / cost);
            }
        }
    }
    println!("{decisions} decisions, {positive} bounds above 0, the least {worst:.2} of the cost");
    assert!(decisions > 20 && positive > decisions / 2, "{positive} of {decisions}");
}

#[test]
fn every_rule_is_run_alone_on_the_same_workload() {
    let (_, instance) = workloads().into_iter().find(|(name, _)| *name == "deadlines.toml").unwrap();
    let instance = instance.cut(slackline_model::Span(10_000_000));
    let auto = Registry::standard().parse("auto").unwrap();
    let run = simulate(&instance, &auto, &Options::exact(), None, None).unwrap();
    let found = certify(&instance, &run.schedule, &run.choices, &Options::exact()).unwrap();
    assert_eq!(found.rules.len(), RULES.len());
    for (policy, cost) in found.rules {
        let policy = Registry::standard().parse(&policy).unwrap();
        let alone = simulate(&instance, &policy, &Options::exact(), None, None).unwrap();
        assert_eq!(cost, alone.schedule.cost, "{}", policy.spec());
    }
}
