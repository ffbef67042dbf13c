//! Every policy of the registry on every instance of `testdata/instances`: simulated under everything the
//! simulator can do, audited, judged, and done as soon as machines stay up; planned for every objective,
//! judged, or refused for the reason that the table of policies gives.

use slackline::plan::{Options, Plan, PlanError, Refused};
use slackline::{PlanForm, PolicySpec, Registry, plan};
use slackline_model::draft::Weights;
use slackline_model::{Combine, Instance, MachineId, Metric, Objective, Seed, Span, Time};
use slackline_sim::{Crash, Crashes};
use slackline_testkit::harness::{self, Setup, same};
use slackline_testkit::oracle;

use crate::common::instances;

fn cut(instance: Instance) -> Instance {
    instance.cut(Span(10_000_000))
}

/// The ways to simulate, by name.
fn setups(instance: &Instance) -> Vec<(&'static str, Setup)> {
    let with = |change: &dyn Fn(&mut Setup)| {
        let mut setup = Setup::plain();
        change(&mut setup);
        setup
    };
    let n = instance.cluster().n_machines();
    let crash = |machine: u32, at: u64, back: u64| Crash {
        machine: MachineId(machine % n),
        at: Time(at * 1_000_000),
        back: Some(Time(back * 1_000_000)),
    };
    // The first dies for good half a minute in unless it is the only one; the last comes and goes.
    let mut script = vec![crash(n - 1, 3, 9), crash(n - 1, 11, 14), crash(n / 2, 16, 17)];
    if n > 1 {
        script.push(Crash { back: None, ..crash(0, 30, 0) });
    }
    let second = Span(1_000_000);
    let rate = Crashes::Rate { between: Span(120_000_000), repair: Span(8_000_000) };
    vec![
        ("plain", Setup::plain()),
        ("slow-start 0.05", with(&|s| s.slowstart = 0.05)),
        ("slow-start 0.5", with(&|s| s.slowstart = 0.5)),
        ("heartbeat 3 s", with(&|s| s.sim.heartbeat = Span(3_000_000))),
        ("crash script", with(&|s| s.sim.crashes = Crashes::Script(script.clone()))),
        ("crash rate", with(&|s| s.sim.crashes = rate.clone())),
        ("jitter", with(&|s| s.sim.jitter = 0.5)),
        ("noise", with(&|s| s.noise = 1.0)),
        ("locality", with(&|s| s.locality_wait = Span(3 * second.0))),
        (
            "everything",
            with(&|s| {
                s.slowstart = 0.3;
                s.noise = 0.5;
                s.locality_wait = second;
                s.sim.heartbeat = second;
                s.sim.jitter = 0.3;
                s.sim.seed = Seed(3);
                s.sim.crashes = Crashes::Script(script.clone());
            }),
        ),
    ]
}

#[test]
fn every_policy_on_every_instance() {
    let instances = instances();
    assert!(instances.len() >= 12, "found {} instances", instances.len());
    for (name, instance) in instances {
        let instance = &cut(instance);
        for policy in harness::registered(&Registry::standard()) {
            for (how, setup) in setups(instance) {
                let fail = |what: String| -> ! { panic!("{name}, {policy:?}, {how}: {what}") };
                let judged = harness::judged(
                    instance,
                    policy.build(instance.cluster(), &instance.objective()).as_mut(),
                    &setup,
                );
                let (schedule, report) = judged.unwrap_or_else(|e| fail(e));
                if report.failed > 0 {
                    fail(format!("{} flows were not done", report.failed));
                }
                for (metric, value) in oracle::metrics(instance, &schedule) {
                    let judged = report.metrics.entries().into_iter().find(|(n, _)| *n == metric).unwrap().1;
                    if !same(value, judged) {
                        fail(format!("{metric} is {judged} to the judge, {value} to the oracle"));
                    }
                }
            }
        }
    }
}

/// Why the contract's table has no plan of `policy` for an instance.
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
        "flowflex" if instance.cluster().is_typed() => Some("typed"),
        "flex" if mixed => Some("speeds"),
        "flex" if moldable && (pools || minima && staged) => Some("minima"),
        "fifo" | "fair" | "edf" | "flex" | "flowflex" => mixed.then_some("speeds"),
        woha if woha.starts_with("woha-") => None,
        _ => several.then_some("jobs"),
    }
}

fn reason(refused: &Refused) -> &'static str {
    match refused {
        Refused::SeveralJobs { .. } => "jobs",
        Refused::TypedSlots { .. } => "typed",
        Refused::MixedSpeeds { .. } => "speeds",
        Refused::Minima { .. } => "minima",
        Refused::NotCut { .. } => "uncut",
        _ => "another",
    }
}

/// Plans, and says what is wrong with the plan or its refusal.
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
    for (name, instance) in instances() {
        for policy in harness::registered(&Registry::standard()) {
            let cut = if policy.plan_form().needs_tasks() { cut(instance.clone()) } else { instance.clone() };
            // Parameters are tried with the objective of the document only.
            let objectives = Metric::ALL.iter().flat_map(|&metric| {
                [Combine::Sum, Combine::Max].map(|combine| Some(Objective::new(metric, combine)))
            });
            let all = policy.spec() == policy.name();
            for objective in objectives.filter(|_| all).chain([None]) {
                let objective = objective.unwrap_or_else(|| cut.objective());
                // A metric may need what the flows do not give.
                let Ok(instance) = cut.clone().with_objective(objective, Weights::Use) else { continue };
                if let Err(what) = check_plan(&instance, &policy) {
                    panic!("{name}, {policy:?}, {objective:?}: {what}");
                }
            }
        }
    }
}
