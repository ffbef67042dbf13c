#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`policy_spec`]: a policy as a value, which every function here takes;
//! - [`registry`]: policies by name; [`capabilities`], [`table`]: what is said of them;
//! - `queue_files`: queues of Hadoop's schedulers from their files (feature `import`);
//! - [`import`]: workloads and schedules in, from files, with all their options (feature `import`);
//! - [`simulate`](mod@simulate): run one policy on the simulator, judged;
//! - [`compare`](mod@compare): run several, side by side;
//! - [`certificates`](mod@certificates): how much better a run could have been, decision by decision, and
//!   under each rule;
//! - [`plan`](mod@plan): plan with one policy before anything runs, judged;
//! - [`recorded`]: what an imported log says really happened, judged;
//! - [`tune`](mod@tune): the best division of map and reduce slots, with an order;
//! - [`capacity`]: the smallest cluster that meets a condition;
//! - [`explain`](mod@explain): why a flow or a job waits, and what would make its deadline;
//! - [`command`]: policies that are programs of their own, in any language (feature `command`);
//! - [`conformance`]: what every policy is held to (feature `import`);
//! - [`report`]: results as tables, CSV and JSON documents (feature `report`);
//! - [`export`]: schedules as timelines, tables and pictures for programs of others (features `report`,
//!   `charts`);
//! - [`run`](mod@run): flows that really run, on this machine or another engine (feature `run`);
//! - [`resident`](mod@resident): flows that come at any time, under one policy on an engine that stays
//!   (feature `run`);
//! - [`attach`](mod@attach): jobs that others submit to a Hadoop cluster (feature `yarn`);
//! - [`offered_load`]: how much work arrives for each slot;
//! - [`woha`]: progress plans made elsewhere, in files;
//! - [`parallel`], [`names`]: work on several threads; names that were mistyped; `atomic_file`: whole files
//!   (feature `import`).
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
mod stopwatch;
pub mod table;
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
pub use slackline_algo::registry::{Capabilities, Flows, Planner, PolicyEntry, Speeds, Typed};
pub use slackline_model::{self as model, names};
#[cfg(feature = "import")]
pub use slackline_trace::{self as trace, atomic_file};
pub use tune::tune;
pub use {
    slackline_judge as judge, slackline_policy as policy, slackline_relax as relax, slackline_sim as sim,
};
