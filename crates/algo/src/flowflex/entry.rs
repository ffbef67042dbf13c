//! The entry of FlowFlex in the table of policies: its parameter, the policy, its plans and their guarantee.

use std::fmt;

use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Rows;
use slackline_model::{Combine, Instance, Span, tolerance};

use super::online::FlowFlex;
use super::plan::{Config, plan};
use crate::registry::{Capabilities, MapReduceSlots, Planner, PolicyEntry, Proposal, Refused};

/// FlowFlex in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "flowflex, sections 4 and 5.2",
    guarantee: "plan: theorems of the paper, a bound; online: none",
    capabilities: Capabilities { map_reduce_slots: MapReduceSlots::OnSum, ..Capabilities::PLAIN },
    params: &[
        Param::new(
            "epoch",
            "2",
            Values::Seconds(0.0, 86_400.0),
            "seconds between plans; 0 for one at every event",
        ),
        Param::new(
            "between",
            "order",
            Values::Choice(&["order", "targets"]),
            "online: what free slots follow until the next plan: the order of the last plan or, as in the paper, the slots at its start",
        ),
        Param::new(
            "kinds",
            "binding",
            Values::Choice(&["binding", "sum"]),
            "online, map and reduce slots: orders consider the kind of slots with the most work, or both together",
        ),
    ],
    planner: Planner::Allocations(propose),
    ..PolicyEntry::new(
        "flowflex",
        "flows in the cheapest order for the objective, re-planned every epoch; keeps maxima, ignores minima",
        |_, _, settings| {
            let letter = FlowFlex::new(Span::from_seconds_nearest(settings.real("epoch")));
            let ordered = if settings.choice("between") == "order" { letter.in_order() } else { letter };
            Box::new(if settings.choice("kinds") == "binding" { ordered.by_binding_kind() } else { ordered })
        },
    )
};

fn propose(instance: &Instance, _: &Settings, stop: &dyn Fn() -> bool) -> Result<Proposal, Refused> {
    let plan = plan(instance, &Config { cancel: Some(stop), ..Config::thorough() })?;
    let is_optimal = plan.cost - plan.bound <= tolerance::of_amount(plan.bound);
    Ok(Proposal {
        rows: Some(Rows::Allocations(plan.allocations)),
        bound: Some(plan.bound),
        winner: Some(plan.candidate.name()),
        guarantee: promise(instance, 1.0).map(|promise| promise.to_string()),
        cut: plan.cut && !is_optimal,
        without_minima: None,
    })
}

/// How many times the optimum a plan costs at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    pub times: u32,
    /// Where it is proven.
    pub source: &'static str,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.times == 1 { String::new() } else { format!("{} times ", self.times) };
        write!(f, "at most {times}the optimum ({})", self.source)
    }
}

/// What FlowFlex promises of its plans on slots `factor` times as fast as those of the optimum, for generic
/// slots and flows that are all released at 0. Theorem 4 is for maxima, Theorem 3 for sums; their
/// corollaries need no faster slots where costs grow in proportion to completions.
pub fn promise(instance: &Instance, factor: f64) -> Option<Promise> {
    let theory =
        !instance.cluster().is_map_reduce() && instance.flows().iter().all(|flow| flow.release.0 == 0);
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
