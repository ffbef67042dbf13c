//! Clocks, files, checksums and errors.

pub mod activity;
pub mod clock;
pub mod codec;
pub mod digest;
pub mod error;
pub mod file_lock;
pub mod files;
pub mod regular_file;
pub mod source;
pub mod system;
pub mod task_id;
