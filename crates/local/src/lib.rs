#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`task`]: what one attempt of one task does; [`worker`]: the process it does it in; [`guest`]: the same inside a
//!   container of another system;
//! - [`task_id`], [`job_plan`]: tasks and jobs of a run; [`job_cost`]: what jobs took;
//! - [`resolve`](mod@resolve): from a flow file to tasks; [`preflight`](mod@preflight): what keeps a flow from being run at all;
//! - `estimate`: how long tasks may take, from their input and from earlier runs;
//! - [`log`]: append-only files; [`journal`]: what a run has done, on disk; [`history`]: what earlier runs took;
//! - [`layout`]: where files are; `output_lock`: whose outputs are; [`files`]: removing them;
//! - `definition`: what makes a job what it is; `made`: what a state directory has made; [`reuse`]: what is done again, and
//!   why; `publish`: the end of a job;
//! - [`fleet`]: machines that run attempts: worker processes of this one, agents on others; [`agent`]: such an agent; `process`: finding and killing processes;
//!   [`limits`]: what a job says of its attempts; [`neighbours`]: other runs of the same user on this machine; [`clock`]:
//!   real time;
//! - [`engine`]: the engine that a policy drives; [`remaining`](mod@remaining): what is left of a run that is resumed;
//! - [`elsewhere`]: what an engine of another kind needs of a run;
//! - [`run`]: a run, opened and driven to its end; `resident`: many of them under one driver;
//! - [`regular_file`]: opens files that other programs may replace;
//! - [`backend`]: what any engine brings to a run, and the entry of the table of engines; [`this_machine`]: that of
//!   this one; [`machines`]: those of several;
//! - [`file_lock`]: locks, which nothing waits for without a limit;
//! - [`activity`]: what the threads of this process do, for a watchdog;
//! - [`surroundings`]: signals, descriptors and limits that a process inherits;
//! - [`places`]: which machine a slot is of; [`speeds`]: how fast machines are;
//! - [`run_schedule`]: what was run, as documents.

pub mod activity;
pub mod agent;
pub mod backend;
pub mod clock;
mod definition;
pub mod elsewhere;
pub mod engine;
mod estimate;
pub mod file_lock;
pub mod files;
pub mod fleet;
pub mod guest;
pub mod history;
pub mod job_cost;
pub mod job_plan;
pub mod journal;
pub mod layout;
pub mod limits;
pub mod log;
pub mod machines;
mod made;
pub mod neighbours;
mod output_lock;
pub mod places;
pub mod preflight;
mod process;
mod publish;
pub mod regular_file;
pub mod remaining;
mod repeated;
mod resident;
pub mod resolve;
pub mod reuse;
pub mod run;
pub mod run_schedule;
pub mod speeds;
pub mod surroundings;
pub mod task;
pub mod task_id;
pub mod this_machine;
pub mod worker;

pub use definition::Definition;
pub use elsewhere::{Elsewhere, JobThere};
pub use engine::{Happening, Interrupt, Observer, Settings};
pub use fleet::AtWork;
pub use history::HistoryStore;
pub use job_cost::{JobCost, JobHistory, JobName, MachineCost};
pub use job_plan::JobPlan;
pub use journal::{Attempt, Ended, KeptJob, Segment, Setup};
pub use limits::Limits;
pub use log::LogError;
pub use places::{Place, Places, WholeCluster};
pub use preflight::Obstacle;
pub use process::WorkerCommand;
pub use remaining::remaining;
pub use resident::known_machines;
pub use resolve::{InputRules, Resolved, Spread, resolve};
pub use reuse::{Choices, Reason, Verdict};
pub use run::{EngineError, JobVerdict, RunEnd, Session};
pub use speeds::Speeds;
pub use task_id::TaskId;
