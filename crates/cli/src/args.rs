//! Groups of flags that mean the same in every verb.
//!
//! - [`shape`]: what makes a workload what it is: import, cluster, objective, deadlines; recorded in
//!   schedules;
//! - [`declared`]: flags of parameters that a table declares; [`import`], [`engine`], [`attach`]: those of
//!   importers, of engines and of a cluster whose jobs others submit;
//! - [`simulation`]: what the simulated cluster does;
//! - [`policy`]: policies, read by a registry;
//! - [`parameters`]: values of the parameters that a document declares;
//! - [`path`]: paths and commands that a shell would read differently;
//! - [`seeds`]: how many seeds are simulated;
//! - [`secret`]: secrets, which the command line must not hold;
//! - [`plan`]: how a plan is searched for;
//! - [`listed`]: values that a table has by name;
//! - [`state`]: which run is meant;
//! - [`report`]: the page beside the result;
//! - [`server`]: which service is asked, and as whom;
//! - [`output`]: in which form, where to, and how tables look;
//! - [`value`]: readers of values, with the messages for wrong ones;
//! - [`defaults`]: the user's defaults file;
//! - [`help`]: what `-h` and `--help` show;
//! - [`history`]: the file of `--history`.

pub(crate) mod attach;
pub(crate) mod declared;
pub(crate) mod defaults;
pub(crate) mod engine;
pub(crate) mod help;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod listed;
pub(crate) mod output;
pub(crate) mod parameters;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod report;
pub(crate) mod secret;
pub(crate) mod seeds;
pub(crate) mod server;
pub(crate) mod shape;
pub(crate) mod simulation;
pub(crate) mod state;
pub(crate) mod value;

pub(crate) use engine::{EngineFlags, TaskRules};
pub(crate) use output::{OutputArgs, TableArgs};
pub(crate) use parameters::ParameterFlags;
pub(crate) use plan::PlanArgs;
pub(crate) use policy::PolicyTimeout;
pub(crate) use report::ReportArgs;
pub(crate) use server::ServerFlags;
pub(crate) use shape::Shape;
pub(crate) use simulation::SimulationArgs;
