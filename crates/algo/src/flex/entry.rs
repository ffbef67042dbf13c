//! The entry of FLEX in the table of policies: its parameters, the policy and its plans.

use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Rows;
use slackline_model::{Instance, Span};

use super::online::{Flex, Hand};
use super::plan::{Config, Mode};
use super::plan_instance::{cost_without_minima, plan_instance};
use crate::registry::{Capabilities, Flows, MapReduceSlots, Planner, PolicyEntry, Proposal, Refused};

/// FLEX in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "flex, sections 2 and 3",
    guarantee: "plan: optimal maxima, a bound for sums; online: none",
    capabilities: Capabilities {
        flows: Flows::ReadyJobs,
        map_reduce_slots: MapReduceSlots::PerKind,
        minima: true,
        ..Capabilities::PLAIN
    },
    params: &[
        Param::new(
            "epoch",
            "0.5",
            Values::Seconds(0.0, 86_400.0),
            "seconds between allocations; 0 for one at every event",
        ),
        Param::new(
            "hand",
            "targets",
            Values::Choice(&["targets", "minima"]),
            "whether slots are set directly, or passed to Fair as minima (same slots)",
        ),
        Param::new(
            "jobs",
            "malleable",
            Values::Choice(&["malleable", "moldable"]),
            "plan: whether the slots of a phase may change while it runs (online they may, in every epoch)",
        ),
    ],
    planner: Planner::Allocations(propose),
    ..PolicyEntry::new(
        "flex",
        "slots by the malleable packing of the best order for the objective; keeps minima and maxima",
        |_, _, settings| {
            let hand = if settings.choice("hand") == "minima" { Hand::Minima } else { Hand::Targets };
            Box::new(Flex::new(Span::from_seconds_nearest(settings.real("epoch")), hand))
        },
    )
};

fn propose(instance: &Instance, settings: &Settings, stop: &dyn Fn() -> bool) -> Result<Proposal, Refused> {
    let mode = if settings.choice("jobs") == "moldable" { Mode::Moldable } else { Mode::Malleable };
    let config = Config { mode, cancel: Some(stop), ..Config::thorough() };
    let plan = plan_instance(instance, &config)?;
    Ok(Proposal {
        rows: Some(Rows::Allocations(plan.allocations)),
        bound: Some(plan.bound),
        winner: Some(plan.winner).filter(|winner| !winner.is_empty()),
        guarantee: None,
        cut: plan.cut,
        without_minima: cost_without_minima(instance, &config),
    })
}
