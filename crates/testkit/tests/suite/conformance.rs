//! Runs every policy of the registry on every instance of `testdata/instances`. Each is simulated with all
//! features of the simulator, audited and judged, and finishes as soon as machines stay up. Each is planned
//! for every objective, and the plan is judged, or refused for the reason in the table of policies.

use slackline::plan::{Options, Plan, PlanError, Refused};
use slackline::{Flows, PlanForm, PolicySpec, Registry, plan};
use slackline_model::draft::Weights;
use slackline_model::random::test_step;
use slackline_model::{Combine, Instance, Metric, Objective, Span};
use slackline_testkit::{conformance, harness};

use crate::common::instances;

fn cut(instance: Instance) -> Instance {
    instance.cut(Span(10_000_000))
}

#[test]
fn every_policy_on_every_instance() {
    let n = instances().len();
    assert!(n >= 12, "found {n} instances");
    conformance::check(&Registry::standard()).unwrap_or_else(|what| panic!("{what}"));
}

/// The reason in the contract's table why `policy` has no plan for an instance.
fn not_in_the_table(instance: &Instance, policy: &PolicySpec) -> Option<&'static str> {
    let several = instance.flows().iter().any(|flow| flow.jobs().len() > 1);
    let mixed = instance.cluster().uniform_speed().is_none();
    let pools = instance.pools().iter().any(|pool| pool.min_map > 0 || pool.min_reduce > 0);
    let minima = instance.phases().iter().any(|phase| phase.min_slots > 0);
    let staged = instance.flows().iter().any(|flow| flow.release.0 > 0)
        || instance.jobs().iter().any(|job| job.phases().count() > 1);
    let moldable = policy.spec().contains("jobs=moldable");
    match policy.name() {
        "flex" if several => Some("jobs"),
        "flowflex" if instance.cluster().is_map_reduce() => Some("map-reduce"),
        "flex" if mixed => Some("speeds"),
        "flex" if moldable && (pools || minima && staged) => Some("minima"),
        "fifo" | "fair" | "edf" | "flex" | "flowflex" => mixed.then_some("speeds"),
        woha if woha.starts_with("woha-") => None,
        ordering if ordering.starts_with("mk-") || ordering.starts_with("dmrs") => several.then_some("jobs"),
        // A newer policy must satisfy its own entry.
        _ if several && policy.capabilities().flows == Flows::ReadyJobs => Some("jobs"),
        _ if mixed && policy.plan_form() == PlanForm::Allocations => Some("speeds"),
        _ => None,
    }
}

fn reason(refused: &Refused) -> &'static str {
    match refused {
        Refused::SeveralJobs { .. } => "jobs",
        Refused::MapReduceSlots { .. } => "map-reduce",
        Refused::MixedSpeeds { .. } => "speeds",
        Refused::Minima { .. } => "minima",
        Refused::NotCut { .. } => "uncut",
        _ => "another",
    }
}

/// Plans, and returns an error in the plan or its refusal.
fn check_plan(instance: &Instance, policy: &PolicySpec) -> Result<(), String> {
    let expected = not_in_the_table(instance, policy);
    match (plan(instance, policy, Options::default()), expected) {
        (Err(PlanError::Refused(found)), expected) if Some(reason(&found)) == expected => Ok(()),
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), Some(expected)) => Err(format!("not refused, expected so because of {expected}")),
        (Ok(Plan::Progress(plans)), None) => {
            let wrong = plans.iter().find_map(|of| of.plan.fits(instance, of.flow).err());
            wrong.map_or(Ok(()), |wrong| Err(wrong.to_string()))
        }
        (Ok(Plan::Schedule(planned)), None) => {
            let report = slackline_judge::check(instance, &planned.schedule).map_err(|v| v.to_string())?;
            if planned.schedule.allocations.is_empty() == (policy.plan_form() == PlanForm::Allocations) {
                return Err("the plan has the wrong form".to_owned());
            }
            let mut phases: Vec<_> = planned.schedule.allocations.iter().map(|row| row.phase).collect();
            phases.dedup();
            if policy.spec().contains("jobs=moldable") && phases.len() < planned.schedule.allocations.len() {
                return Err("slots of a moldable phase change".to_owned());
            }
            harness::broken_bound(instance, report.cost).map_or(Ok(()), Err)
        }
    }
}

#[test]
fn every_policy_plans_every_instance_or_says_why_not() {
    let policies = harness::registered(&Registry::standard());
    // Parameters are tried with the objective of the document only.
    let without: Vec<PolicySpec> =
        policies.iter().filter(|policy| policy.spec() == policy.name()).cloned().collect();
    let objectives = Metric::ALL
        .iter()
        .flat_map(|&metric| [Combine::Sum, Combine::Max].map(|combine| Objective::new(metric, combine)));
    let objectives: Vec<Objective> = objectives.collect();
    // A sixth of the objectives for each instance, others for the next one; all where `SLACKLINE_SCALE` is 6.
    let step = test_step(6.0);
    for (k, (name, instance)) in instances().into_iter().enumerate() {
        let others = objectives.iter().skip(k % step).step_by(step).map(|objective| (*objective, &without));
        for (objective, policies) in others.chain([(instance.objective(), &policies)]) {
            // A metric may need numbers that the flows do not have.
            let Ok(instance) = instance.clone().with_objective(objective, Weights::Use) else { continue };
            let tasks = cut(instance.clone());
            for policy in policies {
                let instance = if policy.plan_form().needs_tasks() { &tasks } else { &instance };
                if let Err(what) = check_plan(instance, policy) {
                    panic!("{name}, {policy:?}, {objective:?}: {what}");
                }
            }
        }
    }
}
