#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`task`]: what one attempt of one task does; [`worker`]: the process it does it in;
//! - [`task_id`], [`job_plan`]: tasks and jobs of a run; [`job_cost`]: what jobs took;
//! - [`resolve`](mod@resolve): from a flow file to tasks; [`preflight`](mod@preflight): what keeps a flow from being run at all;
//! - `estimate`: how long tasks may take, from their input and from earlier runs;
//! - [`log`]: append-only files; [`journal`]: what a run has done, on disk; [`history`]: what earlier runs took;
//! - [`layout`]: where files are; `output_lock`: whose outputs are; `files`: removing them;
//! - [`neighbours`]: other runs of the same user on this machine;
//! - `process`: worker processes, watched and killed as groups; [`clock`]: real time;
//! - [`engine`]: the engine that a policy drives; [`remaining`](mod@remaining): what is left of a run that is resumed;
//! - [`run`]: a run from its beginning, or from where it was, to its end;
//! - [`backend`]: what any engine brings to a run, and the entry of the table of engines; [`this_machine`]: that of
//!   this one;
//! - [`run_schedule`]: what was run, as documents.

pub mod backend;
pub mod clock;
pub mod engine;
mod estimate;
mod files;
pub mod history;
pub mod job_cost;
pub mod job_plan;
pub mod journal;
pub mod layout;
pub mod log;
pub mod neighbours;
mod output_lock;
pub mod preflight;
mod process;
pub mod remaining;
pub mod resolve;
pub mod run;
pub mod run_schedule;
pub mod task;
pub mod task_id;
pub mod this_machine;
pub mod worker;

pub use engine::{Happening, Interrupt, Observer, Settings};
pub use history::HistoryStore;
pub use job_cost::{JobCost, JobHistory, JobName};
pub use job_plan::JobPlan;
pub use journal::{Attempt, Ended, Identity};
pub use log::LogError;
pub use preflight::{Obstacle, preflight};
pub use process::WorkerCommand;
pub use remaining::remaining;
pub use resolve::{Resolved, resolve};
pub use run::{EngineError, RunEnd, Session};
pub use task_id::TaskId;
