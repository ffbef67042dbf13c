//! How each policy of the registry makes its plan.

use slackline_algo::baseline::By;
use slackline_algo::baseline::fluid;
use slackline_algo::dmrs::Variant;
use slackline_algo::ordering::orders::{Candidates, Rule};
use slackline_algo::ordering::split::Config;
use slackline_algo::{flex as flex_algo, flowflex as flowflex_algo, ordering as ordering_algo};
use slackline_model::schedule::{Clock, TaskRows};
use slackline_model::{Combine, Instance, Metric};
use slackline_sim::{Options, Sim};

use super::{Made, Promise};
use crate::registry::Chosen;

const REFUSED: &str = "invariant: what the planner does not take was refused";

fn by(choice: usize) -> By {
    if choice == 0 { By::Job } else { By::Flow }
}

fn fluid(instance: &Instance, rule: fluid::Rule) -> Made {
    Made {
        allocations: fluid::plan(instance, rule).expect(REFUSED),
        bound: slackline_relax::best(instance),
        ..Made::default()
    }
}

pub(crate) fn fifo(instance: &Instance, policy: &Chosen, _: &dyn Fn() -> bool) -> Made {
    fluid(instance, fluid::Rule::Fifo(by(policy.choices()[0])))
}

pub(crate) fn fair(instance: &Instance, policy: &Chosen, _: &dyn Fn() -> bool) -> Made {
    fluid(instance, fluid::Rule::Fair(by(policy.choices()[0])))
}

pub(crate) fn edf(instance: &Instance, _: &Chosen, _: &dyn Fn() -> bool) -> Made {
    fluid(instance, fluid::Rule::Edf)
}

/// What FLEX may do with the slots of a phase that runs.
pub(super) fn flex_mode(policy: &Chosen) -> flex_algo::Mode {
    if policy.choices()[2] == 0 { flex_algo::Mode::Malleable } else { flex_algo::Mode::Moldable }
}

pub(crate) fn flex(instance: &Instance, policy: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    let config =
        flex_algo::Config { mode: flex_mode(policy), cancel: Some(stop), ..flex_algo::Config::thorough() };
    let plan = flex_algo::model::plan_instance(instance, &config).expect(REFUSED);
    Made {
        allocations: plan.allocations,
        bound: plan.bound,
        winner: Some(plan.winner),
        cut: plan.cut,
        ..Made::default()
    }
}

pub(crate) fn flowflex(instance: &Instance, _: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    let config = flowflex_algo::Config { cancel: Some(stop), ..flowflex_algo::Config::thorough() };
    let plan = flowflex_algo::plan(instance, &config).expect(REFUSED);
    let optimal = plan.cost - plan.bound <= 1e-6 * plan.bound.abs();
    let guarantee = promise(instance, 1.0);
    Made {
        allocations: plan.allocations,
        bound: plan.bound,
        winner: Some(plan.candidate.name()),
        cut: plan.cut && !optimal,
        guarantee: guarantee.map(|promise| promise.to_string()),
        ..Made::default()
    }
}

/// What FlowFlex promises of its plans on slots `factor` times as fast, for universal slots and flows that
/// are there from the start. Theorem 4 is for maxima, Theorem 3 for sums; their corollaries need no faster
/// slots where costs grow in proportion to completions.
pub(super) fn promise(instance: &Instance, factor: f64) -> Option<Promise> {
    let theory = !instance.cluster().is_typed() && instance.flows().iter().all(|flow| flow.release.0 == 0);
    let proportional = instance
        .flows()
        .iter()
        .all(|flow| flow.cost.as_linear().is_some_and(|(_, intercept)| intercept == 0.0));
    let (times, source) = match instance.objective().combine {
        _ if !theory || factor < 1.0 => return None,
        Combine::Max if factor >= 2.0 => (1, "Theorem 4"),
        Combine::Max if proportional => (2, "Corollary 2"),
        Combine::Sum if factor >= 3.0 => (2, "Theorem 3"),
        Combine::Sum if proportional => (6, "Corollary 1"),
        _ => return None,
    };
    Some(Promise { times, source })
}

pub(crate) fn dmrs(variant: Variant, instance: &Instance, policy: &Chosen) -> Made {
    let config = crate::dmrs::plan_config(variant, policy.choices());
    let plan = slackline_algo::dmrs::plan(instance, config).expect(REFUSED);
    let bound = slackline_relax::best(instance);
    Made {
        tasks: plan.tasks,
        bound: plan.lower_bound.map_or(bound, |own| own.min(plan.cost).max(bound)),
        guarantee: plan.ratio.map(|times| {
            let factor = (times * 1000.0).ceil() / 1000.0;
            let of = if instance.objective().metric == Metric::Completion {
                ""
            } else {
                " of weighted completion"
            };
            format!("at most {factor} times the optimum{of} (Theorem 1)")
        }),
        ..Made::default()
    }
}

/// The offline order where the paper has one (jobs that are there from the start, typed slots, no maxima);
/// elsewhere what the policy does if everything goes as it is known.
pub(crate) fn ordering((rule, candidates): (Rule, Candidates), instance: &Instance, policy: &Chosen) -> Made {
    let config = Config { mk_jr: candidates, mk_tct_jr: candidates, ..Config::standard() };
    let tasks = match ordering_algo::plan::plan(instance, rule, config) {
        Ok(plan) => plan.tasks,
        Err(_) => rehearsed(instance, policy),
    };
    Made { tasks, bound: slackline_relax::best(instance), ..Made::default() }
}

/// The tasks of a run without distortions.
fn rehearsed(instance: &Instance, policy: &Chosen) -> TaskRows {
    let mut engine = Sim::new(instance, Options::exact());
    let config = slackline_policy::Config::plain(instance);
    let run = slackline_policy::run(instance, policy.build(instance).as_mut(), &mut engine, config);
    run.schedule(instance, policy.spec(), Clock::Exact).tasks
}
