//! The engine that submits the jobs of flows to a YARN cluster itself.
//!
//! In reading order:
//! - `backend`: the parameters of the engine, and the checks and preparations before a run;
//! - `cluster_config`: the settings of a run; `session`: the run, from its opening to its end;
//! - `hdfs_placeholders`: files of HDFS as a run sees them, over `remote_files`;
//! - `submission`: from a job to a request to the submitter, and from the output of attempts to the output of
//!   the job;
//! - `engine`: the engine of a policy; `engine/jar_programs` is its part for jobs that are Java programs
//!   (`program`);
//! - `jobs`, `attempt_reports`: a job as an application, and the reports that its attempts write;
//! - `applications`: submits and kills applications in the background;
//! - `shared_engine`: one engine for several runs.

mod applications;
mod attempt_reports;
mod backend;
mod cluster_config;
mod engine;
mod hdfs_placeholders;
mod jobs;
mod program;
mod remote_files;
mod session;
mod shared_engine;
mod submission;

pub use backend::ENTRY;
