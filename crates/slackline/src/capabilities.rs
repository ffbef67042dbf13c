//! The capabilities of policies, as sets for programs and as sentences for users. Both are derived from the
//! entries of the policies, so they agree with the refusals.

use std::collections::BTreeSet;

use slackline_algo::registry::{Capabilities, Flows, MapReduceSlots, Planner, PolicyEntry, Speeds};
use slackline_model::params::{Param, Values};

use crate::policy_spec::PlanForm;

slackline_model::named_enum! {
    /// A feature of a workload that not every policy supports.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Feature {
        /// Flows of several jobs.
        SeveralJobs = "several-jobs",
        /// Map slots and reduce slots.
        MapReduceSlots = "typed-slots",
        /// Machines of different speed.
        MixedSpeeds = "mixed-speeds",
    }
}

/// The features that a policy supports when it plans. When it runs online, every policy supports every
/// feature.
pub fn planned(can: Capabilities, planner: &Planner) -> BTreeSet<Feature> {
    let rehearsal = matches!(planner, Planner::Rehearsal | Planner::Best);
    let takes = [
        (Feature::SeveralJobs, rehearsal || can.flows == Flows::Whole),
        (Feature::MapReduceSlots, rehearsal || can.map_reduce_slots != MapReduceSlots::OnSum),
        (Feature::MixedSpeeds, PlanForm::of(planner) != PlanForm::Allocations),
    ];
    takes.into_iter().filter_map(|(feature, taken)| taken.then_some(feature)).collect()
}

/// The properties of a policy, one sentence each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentences {
    /// Flows of several jobs.
    pub flows: &'static str,
    /// Map and reduce slots.
    pub map_reduce_slots: &'static str,
    /// Machines of mixed speed.
    pub speeds: &'static str,
    /// The output of `plan`.
    pub plan: &'static str,
    /// Minima.
    pub minima: &'static str,
}

/// The name of policies that are external programs.
const PROGRAM: &str = "command";

/// The sentences of an entry.
pub fn sentences(entry: &PolicyEntry) -> Sentences {
    let can = entry.capabilities;
    let form = PlanForm::of(&entry.planner);
    Sentences {
        flows: match can.flows {
            Flows::Whole => "yes",
            Flows::ReadyJobs => "online: every ready job is one of its jobs; plan: one-job flows",
        },
        map_reduce_slots: match can.map_reduce_slots {
            MapReduceSlots::Yes => "yes",
            MapReduceSlots::PerKind => "one instance per kind",
            MapReduceSlots::OnSum => "online: orders by the busiest slot kind, slots per kind, no guarantee",
        },
        speeds: match (can.speeds, form) {
            (Speeds::Known, _) => "yes",
            (Speeds::Ignored, PlanForm::Allocations) => "online, as equal",
            (Speeds::Ignored, _) => "yes, as equal",
        },
        plan: match form {
            PlanForm::Allocations => "allocations on one speed",
            PlanForm::Tasks => "tasks",
            PlanForm::Progress => "progress requirements",
        },
        minima: match can.minima {
            true => "kept",
            // A program declares this when it runs.
            false if entry.name == PROGRAM => "kept if the program says so",
            false => "ignored",
        },
    }
}

/// The valid values of a parameter, in a short form if there is one: `job|flow`, `0..3600`.
pub fn values(param: &Param) -> String {
    match param.values {
        Values::Choice(_) => param.words().join("|"),
        Values::Real(low, high) if param.word.is_none() => format!("{low}..{high}"),
        Values::Seconds(low, high) if param.word.is_none() => format!("{low}..{high} s"),
        Values::Count(low, high) if param.word.is_none() && high < u64::MAX => format!("{low}..{high}"),
        _ => param.expected(),
    }
}

#[cfg(test)]
mod tests {
    use super::Feature::{MapReduceSlots, MixedSpeeds, SeveralJobs};
    use super::*;
    use crate::Registry;

    #[test]
    fn capabilities_of_plans_are_a_set() {
        let registry = Registry::standard();
        let of = |name: &str| {
            let entry = registry.get(name).unwrap();
            planned(entry.capabilities, &entry.planner).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of("fifo"), [SeveralJobs, MapReduceSlots]);
        assert_eq!(of("flex"), [MapReduceSlots]);
        assert_eq!(of("flowflex"), [SeveralJobs]);
        assert_eq!(of("woha-lpf"), [SeveralJobs, MapReduceSlots, MixedSpeeds]);
        assert_eq!(of("dmrs"), [MapReduceSlots, MixedSpeeds]);
    }

    #[cfg(feature = "report")]
    #[test]
    fn programs_read_words_instead_of_sentences() {
        let registry = Registry::standard();
        let text = crate::report::policies::json(&[registry.get("flex").unwrap()]);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "flows": "ready-jobs", "map_reduce_slots": "per-kind", "speeds": "ignored", "plan": "allocations",
            "planned": ["typed-slots"], "minima": true,
        });
        assert_eq!(document[0]["capabilities"], expected);
    }
}
