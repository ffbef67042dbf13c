//! The local engine: map and reduce tasks that really run, as processes of this machine.
//!
//! In reading order:
//! - [`task`]: what one attempt of one task does; [`worker`]: the process it does it in;
//! - [`resolve`](mod@resolve): from a flow file to tasks;
//! - [`estimate`]: how long tasks may take, from their input and from earlier runs;
//! - [`journal`]: what a run has done, on disk; [`history`]: what earlier runs took; [`layout`]: where files are; `claim`: whose outputs are;
//! - [`obstacles`](mod@obstacles): what keeps a flow from being run at all;
//! - `process`: worker processes, watched and killed as groups; `clock`: real time;
//! - [`engine`]: the engine that a policy drives;
//! - [`rest`](fn@rest): what is left of a run that is taken up again;
//! - [`run`]: a run from its beginning, or from where it was, to its end;
//! - [`happened`]: what happened, as documents.
//!
//! **Never knows**: scheduling. Which task starts where and when is said by the policy that drives the engine.

mod claim;
pub mod clock;
pub mod engine;
pub mod estimate;
pub mod happened;
pub mod history;
pub mod journal;
pub mod layout;
pub mod obstacles;
mod process;
pub mod resolve;
mod rest;
pub mod run;
mod store;
pub mod task;
pub mod worker;

pub use engine::{Happening, Interrupt, Observer, Settings};
pub use history::HistoryStore;
pub use journal::{Ended, Identity, TaskId};
pub use obstacles::{Obstacle, obstacles};
pub use process::WorkerCommand;
pub use resolve::{JobPlan, Resolved, resolve};
pub use rest::rest;
pub use run::{RunEnd, RunError, Session};
pub use store::StoreError;
