//! The files of a state directory: journal, history, logs, outputs and their locks.

pub mod applications;
pub(crate) mod cleaner;
pub(crate) mod finished_jobs;
pub mod history;
pub mod journal;
pub mod layout;
pub mod log;
pub(crate) mod machine_names;
pub(crate) mod machine_records;
pub mod machine_slots;
pub(crate) mod output_files;
pub(crate) mod output_lock;
pub mod pid_file;
pub(crate) mod publish;
pub mod run_schedule;
pub mod running_attempt;
