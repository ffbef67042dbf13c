//! The fields of the schedule document. Comments on fields become the schema's descriptions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slackline_model::PhaseKind;
use slackline_model::schedule::{self, FlowResult, Outcome};

use super::{Choice, RuleCost};
use crate::documents::counts::JobCounts;
use crate::documents::workload::wire::Cluster;
use crate::reading::diagnostic::Simplification;
use crate::reading::times::Beginning;
use crate::reading::wire::{Aim, Name, NamedValues, OutcomeName, PhaseName, SchemaName, done, is_done};

fn one() -> f64 {
    1.0
}

fn single() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_single(count: &u32) -> bool {
    *count == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

fn exact() -> schedule::Clock {
    schedule::Clock::Exact
}

fn flow_done() -> FlowResult {
    FlowResult::Done
}

/// A schedule with its cost. `allocations` are a plan, `tasks` the attempts; with both, `tasks` decide.
// The long lists are parameters, so that the head can be read without them.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "Slackline schedule", rename = "Schedule"))]
#[serde(deny_unknown_fields)]
pub(crate) struct Document<Flows, Allocations, Tasks, Ams> {
    /// Address of the schema, for editors.
    #[serde(rename = "$schema", default)]
    #[expect(dead_code, reason = "it is for editors alone")]
    schema: SchemaName,
    /// Version of the document.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub(crate) slackline: u32,
    /// Version of the program that made it.
    #[serde(default)]
    pub(crate) version: String,
    /// The workload it is for.
    #[serde(default)]
    pub(crate) workload: Workload,
    /// When second 0 is, if the workload says so; all times are seconds after it.
    #[serde(default)]
    pub(crate) start: Option<Beginning>,
    /// The seed.
    #[serde(default)]
    pub(crate) seed: u64,
    /// The policy that made it. Of a run whose policy changed: all of them, in order.
    pub(crate) policy: String,
    /// Whether the policy promises to keep the minima.
    #[serde(default)]
    pub(crate) minima: bool,
    /// What durations mean.
    #[serde(default = "exact", with = "Clock")]
    pub(crate) clock: schedule::Clock,
    /// Fraction of maps after which reduces could take slots; 1 for none early. With `segments`: that of the
    /// last one.
    #[serde(default = "one")]
    pub(crate) slowstart: f64,
    /// The profile of the simulated cluster.
    #[serde(default)]
    pub(crate) profile: Option<ProfileValues>,
    /// The parts of a run whose settings changed, in order. The first one starts at 0. Without them the
    /// settings above hold for the whole schedule.
    #[serde(default)]
    pub(crate) segments: Vec<Segment>,
    /// The objective.
    pub(crate) objective: Aim,
    /// Claimed cost.
    #[serde(default)]
    pub(crate) cost: Option<f64>,
    /// Claimed lower bound on the cost of any schedule.
    #[serde(default)]
    pub(crate) lower_bound: Option<f64>,
    /// (cost - bound) / |bound|; null when the bound is not positive.
    #[serde(default)]
    pub(crate) gap: Option<f64>,
    /// cost - bound, when the gap is null.
    #[serde(default)]
    pub(crate) gap_absolute: Option<f64>,
    /// How far from optimal, in words.
    #[serde(default)]
    pub(crate) status: String,
    /// Claimed metrics by their names in the comparison document.
    #[serde(default)]
    pub(crate) metrics: NamedValues,
    /// Counters of the jobs of a real run.
    #[serde(default)]
    pub(crate) jobs: Vec<JobCounts>,
    /// The rules that a policy such as `auto` chose; of a real run, since it was last resumed.
    #[serde(default)]
    pub(crate) choices: Vec<Choice>,
    /// The cost under each rule alone.
    #[serde(default)]
    pub(crate) rules: Vec<RuleCost>,
    /// The best candidate of a policy that plans several: a policy, a name, or `a search`.
    #[serde(default)]
    pub(crate) winner: Option<String>,
    /// What the simulation leaves out of the log.
    #[serde(default)]
    pub(crate) not_modelled: Vec<Simplification>,
    /// The flows.
    pub(crate) flows: Flows,
    /// Slots held by phases, piecewise constant.
    pub(crate) allocations: Option<Allocations>,
    /// Attempts of tasks.
    pub(crate) tasks: Option<Tasks>,
    /// ApplicationMasters (AMs) of jobs, under a profile.
    pub(crate) ams: Option<Ams>,
}

/// A part of a run with its settings. They hold from its start to the start of the next segment.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Segment {
    /// When it starts, in seconds.
    pub(crate) start: f64,
    /// The policy.
    pub(crate) policy: String,
    /// Fraction of maps after which reduces could take slots; 1 for none early.
    #[serde(default = "one")]
    pub(crate) slowstart: f64,
    /// The slots that were available: `machine/slot` or `machine/first-last`. Without it: all slots of the
    /// cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) places: Option<Vec<String>>,
}

/// The document with its lists.
pub(crate) type FullDocument<'a> = Document<Vec<Flow<'a>>, Vec<Allocation<'a>>, Vec<Task<'a>>, Vec<Am<'a>>>;

/// The workload that a document is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "WorkloadReference"))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// SHA-256 of the file, lower-case hexadecimal.
    #[serde(default)]
    pub sha256: String,
    /// Every option of the workload and the simulations.
    #[serde(default)]
    pub options: BTreeMap<String, serde_json::Value>,
}

/// What durations mean: seconds / speed exactly, or what was measured.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(remote = "schedule::Clock", rename_all = "lowercase")]
enum Clock {
    Exact,
    Measured,
}

/// A profile with the value of each of its parameters; durations in seconds, ranges as in `4..6`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Profile"))]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileValues {
    /// Its name.
    pub(crate) name: String,
    /// Its parameters; one that is missing has its default.
    #[serde(default)]
    pub(crate) values: BTreeMap<String, serde_json::Value>,
}

/// The first line of a schedule in lines: how it came about.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "FirstLine"))]
#[serde(deny_unknown_fields)]
pub(crate) struct FirstLine {
    /// Version of the document.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub(crate) slackline: u32,
    /// Version of the program that made it.
    #[serde(default)]
    pub(crate) version: String,
    /// Every option of the workload and the simulations.
    #[serde(default)]
    pub(crate) options: BTreeMap<String, serde_json::Value>,
    /// When second 0 is, if the workload says so; all times are seconds after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Beginning>,
    /// The seed.
    #[serde(default)]
    pub(crate) seed: u64,
    /// The policy that made it.
    pub(crate) policy: String,
    /// Whether the policy promises to keep the minima.
    #[serde(default)]
    pub(crate) minima: bool,
    /// What durations mean.
    #[serde(default = "exact", with = "Clock")]
    pub(crate) clock: schedule::Clock,
    /// Fraction of maps after which reduces could take slots; 1 for none early.
    #[serde(default = "one")]
    pub(crate) slowstart: f64,
    /// The profile of the simulated cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<ProfileValues>,
    /// The objective.
    pub(crate) objective: Aim,
    /// The machines.
    pub(crate) cluster: Cluster,
}

/// The last line of a schedule in lines: what it amounts to.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LastLine"))]
#[serde(deny_unknown_fields)]
pub(crate) struct LastLine {
    /// SHA-256 of the workload file, lower-case hexadecimal; empty if it is not said.
    pub(crate) sha256: String,
    /// Claimed cost.
    #[serde(default)]
    pub(crate) cost: Option<f64>,
    /// Claimed lower bound on the cost of any schedule.
    #[serde(default)]
    pub(crate) lower_bound: Option<f64>,
    /// (cost - bound) / |bound|; null when the bound is not positive.
    #[serde(default)]
    pub(crate) gap: Option<f64>,
    /// cost - bound, when the gap is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gap_absolute: Option<f64>,
    /// How far from optimal, in words.
    #[serde(default)]
    pub(crate) status: String,
    /// Claimed metrics by their names in the comparison document.
    #[serde(default)]
    pub(crate) metrics: NamedValues,
    /// What the simulation leaves out of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_modelled: Vec<Simplification>,
}

/// A line of a schedule in lines: the first one, rows of tasks, AMs and flows (each flow after its rows),
/// choices of rules, and the last one.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(title = "Slackline schedule, line by line", rename = "ScheduleLine", untagged)]
#[expect(dead_code, reason = "it is for the schema alone")]
pub(crate) enum Line<'a> {
    First(FirstLine),
    Task(Task<'a>),
    Am(AmLine<'a>),
    Flow(Flow<'a>),
    Choice(Choice),
    Last(LastLine),
}

/// The result of one flow; times in seconds.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Flow"))]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the contract's names")]
pub(crate) struct Flow<'a> {
    /// The flow.
    #[serde(borrow)]
    pub(crate) flow: Name<'a>,
    /// When it arrived.
    pub(crate) release: f64,
    /// When any of its work started.
    #[serde(default)]
    pub(crate) start: Option<f64>,
    /// When all of it was done.
    #[serde(default)]
    pub(crate) completion: Option<f64>,
    /// What that costs.
    #[serde(default)]
    pub(crate) cost: Option<f64>,
    /// How it ended.
    #[serde(default = "flow_done", with = "Status")]
    #[cfg_attr(test, schemars(transform = crate::documents::schema::without_default))]
    pub(crate) status: FlowResult,
}

/// How a flow ended.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(remote = "FlowResult", rename_all = "lowercase")]
enum Status {
    Done,
    Failed,
}

/// Slots for a phase from a time to a time, in seconds.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Allocation"))]
#[serde(deny_unknown_fields)]
pub(crate) struct Allocation<'a> {
    /// The flow.
    #[serde(borrow)]
    pub(crate) flow: Name<'a>,
    /// The job of that flow.
    pub(crate) job: Name<'a>,
    /// The phase of that job.
    #[serde(with = "PhaseName")]
    pub(crate) phase: PhaseKind,
    /// Start.
    pub(crate) start: f64,
    /// End.
    pub(crate) end: f64,
    /// Number of slots.
    pub(crate) slots: u32,
}

/// An attempt of a task, on `slot` of `machine`; or of `count` consecutive tasks on `places`.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Task"))]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the contract's names")]
pub(crate) struct Task<'a> {
    /// The flow.
    #[serde(borrow)]
    pub(crate) flow: Name<'a>,
    /// The job of that flow.
    pub(crate) job: Name<'a>,
    /// The phase of that job.
    #[serde(with = "PhaseName")]
    pub(crate) phase: PhaseKind,
    /// The task, or the first one, counted from 0 in the phase.
    pub(crate) task: u32,
    /// How many consecutive tasks.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) count: u32,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) machine: Option<Name<'a>>,
    /// The slot, counted from 0 in the machine; of map and reduce slots the map slots come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) slot: Option<u32>,
    /// Slots in task order: `machine/slot` or `machine/first-last`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) places: Option<Vec<Name<'a>>>,
    /// When the slots were taken, in seconds.
    pub(crate) start: f64,
    /// When they were left, in seconds.
    pub(crate) end: f64,
    /// How long after the start the tasks' own code began, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) startup: f64,
    /// Which attempt, from 0.
    #[serde(default)]
    pub(crate) attempt: u16,
    /// How it ended.
    #[serde(default = "done", with = "OutcomeName", skip_serializing_if = "is_done")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) outcome: Outcome,
}

/// The AM of a job, on `slot` of `machine` if AMs hold slots.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Am"))]
#[serde(deny_unknown_fields)]
pub(crate) struct Am<'a> {
    /// The flow.
    #[serde(borrow)]
    pub(crate) flow: Name<'a>,
    /// The job of that flow.
    pub(crate) job: Name<'a>,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) machine: Option<Name<'a>>,
    /// The slot, counted from 0 in the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) slot: Option<u32>,
    /// Start, in seconds.
    pub(crate) start: f64,
    /// When tasks of the job could first take slots, in seconds; none if it was stopped before.
    #[serde(default)]
    pub(crate) up: Option<f64>,
    /// End, in seconds.
    pub(crate) end: f64,
    /// Result: done or killed with its job.
    #[serde(default = "done", with = "OutcomeName", skip_serializing_if = "is_done")]
    #[cfg_attr(test, schemars(!skip_serializing_if))]
    pub(crate) outcome: Outcome,
}

/// The AM of a job as a line.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "AmLine"))]
#[serde(deny_unknown_fields)]
pub(crate) struct AmLine<'a> {
    /// The AM.
    #[serde(borrow)]
    pub(crate) am: Am<'a>,
}
