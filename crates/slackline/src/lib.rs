#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`policy_spec`]: a policy as a value, which every function of this crate takes;
//! - [`registry`]: policies by name; [`capabilities`]: their descriptions;
//! - `queue_files`: queue files of Hadoop's schedulers (feature `import`);
//! - [`import`]: reads workloads and schedules with all their options (feature `import`);
//! - [`simulate`](mod@simulate): simulates one policy and validates the schedule;
//! - [`compare`](mod@compare): simulates several policies in parallel;
//! - [`certificates`](mod@certificates): bounds at each decision of a run, and the cost of the run under each
//!   rule;
//! - [`plan`](mod@plan): plans with one policy before the workload runs, and validates the plan;
//! - [`recorded`]: validates the execution that an imported log records;
//! - [`tune`](mod@tune): the best split of map and reduce slots, with an order of the jobs;
//! - [`capacity`]: the smallest cluster that meets conditions;
//! - [`explain`](mod@explain): why a flow or a job waits, and what would let it meet its deadline;
//! - [`command`]: external programs as policies, in any language (feature `command`);
//! - [`conformance`]: a test suite for policies (feature `import`);
//! - [`report`]: results as tables, CSV and JSON documents (feature `report`);
//! - [`export`]: schedules as timelines, tables and charts for other programs (features `report`, `charts`);
//! - [`run`](mod@run): runs flows on this machine or on another engine (feature `run`);
//! - [`resident`](mod@resident): the core of the service: runs that arrive at any time, under one policy
//!   (feature `run`);
//! - [`attach`](mod@attach): schedules jobs that other users submit to a Hadoop cluster (feature `yarn`);
//! - [`offered_load`]: the load that arrives for each slot;
//! - [`woha`]: progress plans from plan files;
//! - [`parallel`], [`names`]: threads, and suggestions for mistyped names; `atomic_file`: atomic file
//!   replacement (feature `import`).
//!
//! **Never knows**: arguments, terminals.
#![warn(missing_docs)]
#![deny(clippy::unwrap_used)]

#[cfg(feature = "yarn")]
pub mod attach;
pub mod capabilities;
pub mod capacity;
pub mod certificates;
#[cfg(feature = "import")]
mod chosen;
#[cfg(feature = "command")]
pub mod command;
pub mod compare;
#[cfg(feature = "import")]
pub mod conformance;
pub mod explain;
#[cfg(feature = "report")]
pub mod export;
#[cfg(feature = "import")]
pub mod import;
pub mod offered_load;
pub mod parallel;
pub mod plan;
pub mod policy_spec;
#[cfg(test)]
mod published_schema;
#[cfg(feature = "import")]
mod queue_files;
pub mod recorded;
pub mod registry;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "run")]
pub mod resident;
#[cfg(feature = "run")]
pub mod run;
pub mod simulate;
mod statistics;
mod stopwatch;
#[cfg(test)]
mod table;
pub mod tune;
pub mod woha;
#[cfg(any(feature = "report", feature = "run"))]
mod words;

pub use compare::{Compared, SideBySide, compare};
pub use explain::{Explanation, explain};
pub use plan::{Plan, Planned, plan};
pub use policy_spec::{PlanForm, PolicySpec};
pub use registry::Registry;
pub use simulate::{Options, Simulated, simulate};
pub use slackline_algo as algo;
pub use slackline_algo::registry::{Capabilities, Flows, MapReduceSlots, Planner, PolicyEntry, Speeds};
pub use slackline_model::{self as model, names};
#[cfg(feature = "import")]
pub use slackline_trace::{self as trace, atomic_file};
pub use tune::tune;
pub use {
    slackline_judge as judge, slackline_policy as policy, slackline_relax as relax, slackline_sim as sim,
};
