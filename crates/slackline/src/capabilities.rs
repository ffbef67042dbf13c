//! What policies can take, in words: derived from their entries, so that no sentence can disagree with what
//! is refused.

use slackline_algo::registry::{Flows, PolicyEntry, Speeds, Typed};
use slackline_model::params::{Param, Values};

use crate::policy_spec::PlanForm;

/// What a policy takes and gives, a sentence each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentences {
    /// Flows of several jobs.
    pub flows: &'static str,
    /// Typed slots.
    pub typed: &'static str,
    /// Machines of mixed speed.
    pub speeds: &'static str,
    /// What `plan` gives.
    pub plan: &'static str,
    /// Minima.
    pub minima: &'static str,
}

/// The sentences of an entry.
pub fn sentences(entry: &PolicyEntry) -> Sentences {
    let can = entry.capabilities;
    let form = PlanForm::of(&entry.planner);
    Sentences {
        flows: match can.flows {
            Flows::Whole => "yes",
            Flows::ReadyJobs => "online: every ready job is one of its jobs; plan: one-job flows",
        },
        typed: match can.typed {
            Typed::Yes => "yes",
            Typed::PerKind => "one instance per kind",
            Typed::OnSum => "online: orders from the sum, slots per kind, no guarantee",
        },
        speeds: match (can.speeds, form) {
            (Speeds::Aware, _) => "yes",
            (Speeds::Blind, PlanForm::Allocations) => "online only, blind",
            (Speeds::Blind, _) => "yes, blind",
        },
        plan: match form {
            PlanForm::Allocations => "allocations on one speed",
            PlanForm::Tasks => "tasks",
            PlanForm::Progress => "progress requirements",
        },
        minima: if can.minima { "kept" } else { "ignored" },
    }
}

/// What a parameter may be, in a few characters where there is a short form: `job|flow`, `0..3600`.
pub fn values(param: &Param) -> String {
    match param.values {
        Values::Choice(_) => param.words().join("|"),
        Values::Real(low, high) if param.word.is_none() => format!("{low}..{high}"),
        Values::Seconds(low, high) if param.word.is_none() => format!("{low}..{high} s"),
        Values::Count(low, high) if param.word.is_none() && high < u64::MAX => format!("{low}..{high}"),
        _ => param.expected(),
    }
}
