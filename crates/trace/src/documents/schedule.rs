//! The schedule document: read and written, with the hash of its workload and the import options, which
//! `check` needs.

mod lines;
mod names;
mod read;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
mod write;

use std::collections::BTreeMap;

use crate::documents::counts::JobCounts;
use crate::reading::diagnostic::Simplification;
use serde::{Deserialize, Serialize};
use slackline_model::{Schedule, schedule::gap, tolerance};

pub use lines::{ScheduleLine, ScheduleLines, read_schedule_lines};
pub use names::Names;
pub use read::{read_schedule, read_schedule_head};
pub use stream::{FlowLine, RowLine, ScheduleStream, StreamedLine};
pub use write::write_schedule;

/// Metrics that are counts: documents write them as whole numbers.
pub const COUNTS: [&str; 4] = ["deadlines", "missed", "tasks", "decisions"];

/// What a schedule document says beside the schedule: where it comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Version of the program that made it; empty if it does not say.
    pub version: String,
    /// SHA-256 of the workload file, lower-case hexadecimal; empty if it does not say.
    pub sha256: String,
    /// Every option that shaped the workload or the schedule, by name.
    pub options: BTreeMap<String, serde_json::Value>,
    pub seed: u64,
    /// How far from optimal, in words; see [`status`]. Empty if it does not say.
    pub status: String,
    /// What the jobs of a real run counted; of others nothing.
    pub jobs: Vec<JobCounts>,
    /// What a policy that chooses between rules chose when; of others nothing.
    pub choices: Vec<Choice>,
    /// What the same would have cost under each rule alone, where certificates were asked for.
    pub rules: Vec<RuleCost>,
    /// Which candidate a plan is, of a policy that plans several and takes the cheapest.
    pub winner: Option<String>,
    /// What the simulation leaves out of the log.
    pub not_modelled: Vec<Simplification>,
}

/// A rule that a policy chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// When, in seconds.
    pub at: f64,
    /// The rule that the order of flows came from, with its parameters as those of the policy `rule`:
    /// `due:x=0.1:tail=no`; without them in documents of earlier versions.
    pub rule: String,
    /// The origin of the order: kept, from the rule, or found by a search near it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ChosenBy>,
    /// The estimated cost of the active flows under it; null if some would never finish.
    pub cost: Option<f64>,
    /// Number of active flows.
    pub flows: u32,
    /// A lower bound on the cost of those flows by the objective from then on; where certificates were asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

/// How an order was come to: it was in force and was kept, it is that of the rule, or a search found it near
/// one of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub enum ChosenBy {
    /// It was in force, and flows that came were put in by the rule.
    Kept,
    /// It is that of the rule.
    Rule,
    /// A search found it.
    Search,
}

/// The cost under one rule alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleCost {
    /// The rule, as a policy.
    pub policy: String,
    /// The cost; null if it is not available.
    pub cost: Option<f64>,
}

/// What a schedule says without its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// What it says of itself.
    pub meta: Meta,
    /// Whether tasks say what happened, so that every phase was cut into tasks.
    pub has_tasks: bool,
    /// Whether it comes in lines, and may be read as they come ([`read_schedule_lines`]).
    pub is_in_lines: bool,
}

/// How close to optimal the claims put a schedule: `optimal`, `at most 18.8 % above optimal`,
/// `at most 3.5 above optimal` (where the bound is not positive and a ratio says nothing), `no bound`
/// or `no cost`.
pub fn status(cost: Option<f64>, lower_bound: Option<f64>) -> String {
    let (Some(cost), Some(bound)) = (cost, lower_bound) else {
        return if cost.is_none() { "no cost" } else { "no bound" }.to_owned();
    };
    if cost - bound <= tolerance::of_amount(bound) {
        return "optimal".to_owned();
    }
    match gap(cost, bound) {
        Some(gap) => format!("at most {} above optimal", gap_text(gap)),
        None => format!("at most {} above optimal", rounded_up(cost - bound, 10.0)),
    }
}

/// A gap for people, everywhere: percent with one digit after the point, rounded up, so that the
/// statement on the distance to the optimum stays true.
pub fn gap_text(gap: f64) -> String {
    format!("{:.1} %", rounded_up(100.0 * gap, 10.0))
}

/// The value in the next `1 / parts` above it. A hair less is taken of it first, or 18.8 itself would be
/// rounded up.
fn rounded_up(value: f64, parts: f64) -> f64 {
    // Plus nothing, which makes nothing of minus nothing.
    (value * parts - 1e-6).ceil() / parts + 0.0
}

/// The difference that stands for a gap that has no ratio.
fn gap_absolute(schedule: &Schedule) -> Option<f64> {
    match (schedule.gap, schedule.cost, schedule.lower_bound) {
        (None, Some(cost), Some(bound)) => Some(cost - bound),
        _ => None,
    }
}
