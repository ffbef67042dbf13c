//! The fields of the workload document. Comments on fields become the schema's descriptions.

mod run;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slackline_model::schedule::Outcome;
use slackline_model::{Combine, PhaseKind, draft};

use crate::reading::times::{Beginning, Duration, Moment};
use crate::reading::wire::{
    CombineName, MetricName, Numbers, OutcomeName, PhaseName, SchemaName, Seconds, done, is_done,
};

pub(crate) use run::{Arg, Run};

fn one() -> f64 {
    1.0
}

fn single() -> u32 {
    1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A workload: flows of MapReduce-style jobs, their cluster, and the objective.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "Slackline workload"))]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    /// Address of the schema, for editors.
    #[serde(rename = "$schema", default, skip_serializing)]
    #[expect(dead_code, reason = "it is for editors alone")]
    pub(crate) schema: SchemaName,
    /// Version of the document.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub(crate) slackline: u32,
    /// When second 0 is, and the time zone of clock times; only documents with clock times need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Beginning>,
    /// Parameters with their values: in `run` sections `{name}` stands for the value, unless the command line
    /// gives another.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parameters: BTreeMap<String, Arg>,
    /// The machines; the command line may give them instead.
    #[serde(default)]
    pub(crate) cluster: Option<Cluster>,
    /// The objective; by default the sum of response times.
    #[serde(default)]
    pub(crate) objective: Objective,
    /// Pools whose jobs share a guarantee.
    #[serde(default)]
    pub(crate) pools: Vec<Pool>,
    /// The flows.
    #[serde(default)]
    pub(crate) flows: Vec<Flow>,
}

/// The first line of a workload in lines: everything but the flows.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "WorkloadHead"))]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// Address of the schema, for editors.
    #[serde(rename = "$schema", default, skip_serializing)]
    pub(crate) schema: SchemaName,
    /// Version of the document.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub(crate) slackline: u32,
    /// When second 0 is, and the time zone of clock times; only documents with clock times need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Beginning>,
    /// The machines; the command line may give them instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<Cluster>,
    /// The objective; by default the sum of response times.
    #[serde(default)]
    pub(crate) objective: Objective,
    /// Pools whose jobs share a guarantee.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pools: Vec<Pool>,
}

/// A line of a workload in lines: the first one, then flows in the order of their releases.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(title = "Slackline workload, line by line", rename = "WorkloadLine", untagged)]
#[expect(dead_code, reason = "it is for the schema alone")]
pub(crate) enum Line {
    Head(Head),
    Flow(Flow),
}

/// The machines.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    /// Groups of equal machines; all slots are generic or all are map and reduce slots.
    pub(crate) machines: Vec<Machine>,
}

/// Equal machines.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// The name; machines of a group of several are `name-0`, `name-1`, ….
    pub(crate) name: String,
    /// Number of machines.
    #[serde(default = "single")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) count: u32,
    /// A task of s seconds takes s / speed.
    #[serde(default = "one")]
    #[cfg_attr(test, schemars(range(min = 1e-6, max = 1e6)))]
    pub(crate) speed: f64,
    /// Slots of each machine: a number of generic slots, or map and reduce slots by kind.
    pub(crate) slots: Numbers,
    /// The rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rack: Option<String>,
}

/// The objective.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Objective {
    /// The metric of flows without a cost; by default tardiness if every flow has a deadline, else response (in
    /// lines always response).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metric: Option<MetricName>,
    /// Sum (minisum) or maximum (minimax).
    #[serde(with = "CombineName")]
    pub(crate) combine: Combine,
    /// Whether weights count.
    #[serde(with = "Weights", skip_serializing_if = "is_default")]
    pub(crate) weights: draft::Weights,
}

impl Default for Objective {
    fn default() -> Self {
        Self { metric: None, combine: Combine::Sum, weights: draft::Weights::Use }
    }
}

/// Whether weights count.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(remote = "draft::Weights", rename_all = "lowercase")]
enum Weights {
    Use,
    Ignore,
}

/// A pool: the ready phases of its flows share a guarantee.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Pool {
    /// The name.
    pub(crate) id: String,
    /// Slots guaranteed to its ready phases together, by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min_slots: Option<Numbers>,
}

/// A flow: a DAG of jobs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    /// The name.
    pub(crate) id: String,
    /// Release time; a time of day is the first one from the start of the workload on.
    #[serde(default)]
    pub(crate) release: Moment,
    /// Its weight.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub(crate) weight: f64,
    /// Deadline; a time of day is the first one after the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<Moment>,
    /// Cost of this flow instead of the objective's metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
    /// Its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<String>,
    /// Its user; comparisons have results for each user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// Its priority in the log; higher is more urgent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u32>,
    /// Copies `id#0`, `id#1`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repeat: Option<Repeat>,
    /// Its jobs.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(crate) jobs: Vec<Job>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_one(weight: &f64) -> bool {
    *weight == 1.0
}

/// The cost of a flow.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Cost {
    /// `steps` with `steps`, `piecewise` with `points`, or the name of another metric.
    pub(crate) kind: MetricName,
    /// `[time, level]` pairs: the level holds for completions after the time. Times of day as in `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) steps: Option<Vec<(Moment, f64)>>,
    /// `[time, cost]` pairs with straight lines between them. Times of day as in `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) points: Option<Vec<(Moment, f64)>>,
    /// Slope after the last point; by default that of the last segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slope: Option<f64>,
}

/// Copies of a flow.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Repeat {
    /// Time between releases.
    pub(crate) every: Duration,
    /// Number of copies.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) times: u32,
}

/// A job: a map phase, a reduce phase, or both.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    /// The name, unique in its flow.
    pub(crate) id: String,
    /// Jobs of the same flow that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) after: Vec<String>,
    /// The map phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<Phase>,
    /// The reduce phase; starts when all maps have finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reduce: Option<Phase>,
    /// Slots guaranteed to each phase while it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min_slots: Option<Numbers>,
    /// Limit on the slots of each phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_slots: Option<Numbers>,
    /// How to run its tasks; `slackline run` derives missing phases from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<Run>,
    /// Attempts of its tasks in a log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) recorded: Vec<Attempt>,
    /// When the job finished according to the log, seconds after the start of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recorded_end: Option<f64>,
}

/// An attempt of a task in a log.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Attempt {
    /// The phase of the task.
    #[serde(with = "PhaseName")]
    pub(crate) phase: PhaseKind,
    /// The task's number in its phase, from 0.
    pub(crate) task: u32,
    /// The machine, if the log names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
    /// Start, seconds after the start of the workload.
    pub(crate) start: f64,
    /// End, seconds after the start of the workload.
    pub(crate) end: f64,
    /// Result; `lost`: it finished, but its output was lost with its machine.
    #[serde(default = "done", with = "OutcomeName", skip_serializing_if = "is_done")]
    pub(crate) outcome: Outcome,
}

/// A phase, in one of four forms: `tasks` and `seconds` (equal tasks), `seconds` as a list (one
/// number a task), `splits`, or `work` with or without `tasks`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Phase {
    /// Number of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) tasks: Option<u32>,
    /// Duration at speed 1: of every task, or a list with one for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<Seconds>,
    /// Slot-seconds of all tasks together; without `tasks` it is divided as needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<Duration>,
    /// Tasks by the machines of their input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) splits: Option<Vec<Split>>,
    /// Slots guaranteed to this phase, instead of the job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min_slots: Option<u32>,
    /// Limit on the slots of this phase, instead of the job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_slots: Option<u32>,
    /// In the journal of a run: the durations are placeholders, since the job never ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unknown: bool,
}

/// Equal tasks whose input lies on the same machines.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Split {
    /// Duration of a task at speed 1.
    pub(crate) seconds: Duration,
    /// Number of tasks.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) count: u32,
    /// Machines that hold the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_single(count: &u32) -> bool {
    *count == 1
}
