//! The engine that submits the jobs of flows to a YARN cluster itself.
//!
//! In reading order:
//! - `backend`: the parameters of the engine, and the checks and preparations before a run;
//! - `hdfs_placeholders`: files of HDFS as a run sees them, over `remote_files`;
//! - `submission`: from a job to a request to the submitter, and from the output of attempts to the output of the job;
//! - `engine`: the engine of a policy; `engine/jars` is its part for jobs that are Java programs (`program`);
//! - `jobs`, `attempt_reports`: a job as an application, and the reports that its attempts write;
//! - `applications`: submits and kills applications in the background;
//! - `shared_engine`: one engine for several runs.

mod applications;
pub(crate) mod attempt_reports;
pub(crate) mod backend;
pub(crate) mod engine;
pub(crate) mod hdfs_placeholders;
pub(crate) mod jobs;
pub(crate) mod program;
mod remote_files;
mod shared_engine;
mod submission;

pub use backend::ENTRY;
