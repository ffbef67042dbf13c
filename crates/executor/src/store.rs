//! The files of a state directory: journal, history, logs, outputs and their locks.

pub mod applications;
pub mod finished_jobs;
pub mod history;
pub mod journal;
pub mod layout;
pub mod log;
pub mod machine_names;
pub mod machine_slots;
pub mod output_files;
pub mod output_lock;
pub mod pid_file;
pub mod publish;
pub mod run_schedule;
