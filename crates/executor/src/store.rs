//! TODO: one sentence.

pub mod applications;
pub mod finished_jobs;
pub mod history;
pub mod journal;
pub mod layout;
pub mod log;
pub mod machine_names;
pub mod output_files;
pub mod output_lock;
pub mod pid_file;
pub mod places;
pub mod publish;
pub mod run_schedule;
