//! How each policy of the registry makes its plan.

use slackline_algo::baseline::{edf, fair, fifo};
use slackline_algo::dmrs::Variant;
use slackline_algo::ordering::orders::{Candidates, Rule};
use slackline_algo::ordering::split::Config;
use slackline_algo::registry::{Planner, PolicyEntry};
use slackline_algo::{flex as flex_algo, flowflex as flowflex_algo, ordering as ordering_algo};
use slackline_model::schedule::{Clock, Rows, TaskRows};
use slackline_model::{Instance, Metric};
use slackline_sim::{Options, Sim};

use super::Made;
use crate::registry::Chosen;

const REFUSED: &str = "invariant: what the planner does not take was refused";

/// The plan of a policy that is in the table of `algo`.
fn proposed(entry: &PolicyEntry, instance: &Instance, policy: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    let Planner::Allocations(make) = entry.planner else { unreachable!("{} plans allocations", entry.name) };
    let proposal = make(instance, &policy.settings(entry), stop).expect(REFUSED);
    let Some(Rows::Allocations(allocations)) = proposal.rows else { unreachable!("plans have rows") };
    Made {
        allocations,
        bound: proposal.bound.unwrap_or_else(|| slackline_relax::best(instance)),
        winner: proposal.winner,
        guarantee: proposal.guarantee,
        cut: proposal.cut,
        ..Made::default()
    }
}

pub(crate) fn fifo(instance: &Instance, policy: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    proposed(&fifo::ENTRY, instance, policy, stop)
}

pub(crate) fn fair(instance: &Instance, policy: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    proposed(&fair::ENTRY, instance, policy, stop)
}

pub(crate) fn edf(instance: &Instance, policy: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    proposed(&edf::ENTRY, instance, policy, stop)
}

/// What FLEX may do with the slots of a phase that runs.
pub(super) fn flex_mode(policy: &Chosen) -> flex_algo::Mode {
    if policy.choices()[2] == 0 { flex_algo::Mode::Malleable } else { flex_algo::Mode::Moldable }
}

pub(crate) fn flex(instance: &Instance, policy: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    proposed(&flex_algo::ENTRY, instance, policy, stop)
}

pub(crate) fn flowflex(instance: &Instance, policy: &Chosen, stop: &dyn Fn() -> bool) -> Made {
    proposed(&flowflex_algo::ENTRY, instance, policy, stop)
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
