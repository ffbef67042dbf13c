//! WOHA from its parameters, and plans that were made elsewhere.
//!
//! Child: `plan_file`, the file that such plans come in.

mod plan_file;

use std::collections::BTreeMap;

use slackline_algo::woha::lag::{Lags, Measure};
use slackline_algo::woha::plan::Mismatch;
use slackline_algo::woha::{Cap, JobOrder, Late, Progress, Woha};
use slackline_model::{FlowId, Instance};

use crate::registry::{Chosen, Param};

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "cap",
        values: &["none", "search", "scan"],
        range: None,
        help: "slots a plan counts on: all, or the fewest that meet the deadline, by binary search as in the paper or exactly",
    },
    Param {
        name: "pooled",
        values: &["no", "yes"],
        range: None,
        help: "whether plans count map and reduce slots as one kind, as the paper does",
    },
    Param {
        name: "late",
        values: &["yield", "follow"],
        range: None,
        help: "whether a flow that will miss its deadline gives way to those that can meet theirs, or follows its plan",
    },
    Param {
        name: "lag",
        values: &["time", "tasks"],
        range: None,
        help: "what a flow's lag behind its plan is counted in: when its next task is due, or tasks as in the paper",
    },
];

pub use plan_file::{PlanFile, PlanFileError, Unfit};
pub use slackline_algo::woha::Plan;

/// The generator that a policy makes its plans with; `None` if it is not one of WOHA's.
pub fn generator(policy: &Chosen) -> Option<Progress> {
    let order = match policy.entry().name {
        "woha-hlf" => JobOrder::HighestLevel,
        "woha-lpf" => JobOrder::LongestPath,
        "woha-mpf" => JobOrder::MaximumParallelism,
        _ => return None,
    };
    Some(progress(order, policy.choices()))
}

/// A policy that follows these plans, and makes those of other flows itself; `None` if it is not one of
/// WOHA's.
///
/// # Errors
/// The first plan that does not fit its flow.
pub fn with_plans(
    policy: &Chosen,
    instance: &Instance,
    plans: BTreeMap<FlowId, Plan>,
) -> Option<Result<Woha, (FlowId, Mismatch)>> {
    let order = generator(policy)?.order;
    for (&flow, plan) in &plans {
        if let Err(mismatch) = plan.fits(instance, flow) {
            return Some(Err((flow, mismatch)));
        }
    }
    Some(Ok(build(policy.entry().name, order, policy.choices()).with_plans(plans)))
}

/// The policy with the chosen value of each of [`PARAMS`].
pub(crate) fn build(name: &str, order: JobOrder, choices: &[usize]) -> Woha {
    let measure = if PARAMS[3].values[choices[3]] == "tasks" { Measure::Tasks } else { Measure::Time };
    let late = if PARAMS[2].values[choices[2]] == "follow" { Late::Follow } else { Late::Yield };
    Woha::new(name, Box::new(progress(order, choices)), Box::new(Lags::by(measure))).with_late(late)
}

fn progress(order: JobOrder, choices: &[usize]) -> Progress {
    let cap = match PARAMS[0].values[choices[0]] {
        "scan" => Cap::Scan,
        "search" => Cap::Search,
        _ => Cap::None,
    };
    Progress { order, cap, pooled: PARAMS[1].values[choices[1]] == "yes" }
}
