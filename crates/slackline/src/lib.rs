//! The library's face: what the program can do, as functions.
//!
//! - [`registry`]: the policies there are, their parameters and what they can take;
//! - [`simulate`](mod@simulate): run one policy on the simulator, judged;
//! - [`compare`](mod@compare): run several, side by side;
//! - [`plan`](mod@plan): plan with one policy before anything runs, judged;
//! - [`tune`](mod@tune): the best division of map and reduce slots, with an order;
//! - [`capacity`]: the smallest cluster that meets a condition;
//! - [`explain`](mod@explain): why a flow or a job waits, and what would make its deadline;
//! - [`report`]: results as tables, CSV and JSON documents (feature `report`);
//! - [`run`](mod@run): flows that really run, on this machine or another engine (feature `run`);
//! - [`load`]: how much work arrives for each slot;
//! - [`table`]: the policies as a document;
//! - [`woha`]: WOHA with plans made elsewhere.
//!
//! **Never knows**: arguments, terminals.
#![deny(clippy::unwrap_used)]

pub mod capacity;
pub mod compare;
mod dmrs;
pub mod explain;
pub mod load;
pub mod plan;
pub mod registry;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "run")]
pub mod run;
pub mod simulate;
mod stopwatch;
pub mod table;
pub mod tune;
pub mod woha;

pub use compare::{Compared, compare};
pub use explain::{Explanation, explain};
pub use plan::{Plan, Planned, plan};
pub use registry::{Chosen, Entry, policies};
pub use simulate::{Options, Simulated, simulate};
pub use slackline_model as model;
#[cfg(feature = "import")]
pub use slackline_trace as trace;
pub use {
    slackline_judge as judge, slackline_policy as policy, slackline_relax as relax, slackline_sim as sim,
};
