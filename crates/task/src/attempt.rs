//! Runs one attempt of one task. A map attempt reads splits and writes partitioned, sorted output; a reduce
//! attempt merges one partition of all maps and writes a part file.
//!
//! An attempt writes only into its own directory. The engine commits by renaming: a map's directory as a
//! whole, or the part file (`part-00000`) of a reduce or map-only task into the job's output. Nothing here
//! requires UTF-8.
//!
//! The steps of a caller for one job:
//!
//! 1. [`programs::describe`](crate::programs::describe) returns the needs of the job's program: inputs,
//!    reducers, preparation.
//! 2. [`plan`] cuts the inputs into maps (or returns the number of maps of a generator).
//! 3. [`prepare`], if `describe` requires it, once before the first map.
//! 4. For each map, then for each partition, a [`Spec`] that [`run`] turns into an [`Outcome`], in a worker
//!    process ([`crate::worker`]) or in this one.
//!
//! An attempt checks its assumptions. An input must not have changed since the run began, both before and
//! after it is read ([`Source`](crate::base::source::Source)). Map output has checksums; a wrong one names
//! the map that must run again ([`TaskError::lost_map`]). [`TaskError::is_final`] tells whether no other
//! attempt can avoid the error.
//!
//! Equal keys keep the order of the maps and, within a map, of emission. The output of a job depends on its
//! input, splits, partitions and program, never on memory limits or the times of tasks.

pub mod command;
pub mod log;
pub(crate) mod map;
pub mod nfs_cache;
pub(crate) mod pipe;
pub mod plan;
pub mod prepare;
pub(crate) mod reduce;
pub(crate) mod reporter;

use std::fs;

use crate::base::codec::Codec;
use crate::base::error::TaskError;
use crate::base::source::WatchedFiles;
use crate::base::{error, files};
use crate::process::spec::{Job, Outcome, Shuffle, Spec, Task};
use crate::shuffle::keys;
use crate::shuffle::part::PARTS_MAX;

/// Runs one attempt to its end, in this process and in its directory, which is created if missing.
///
/// # Errors
///
/// The error that stops the attempt, with the file and place or the command and the last lines of its
/// standard error. The files of the attempt stay.
pub fn run(spec: &Spec) -> Result<Outcome, TaskError> {
    let ended = once(spec);
    match &ended {
        Err(error) if spec.patient && nfs_cache::becomes_visible(spec, error) => {
            files::remove(&spec.directory).map_err(error::at("cannot remove", &spec.directory))?;
            once(spec)
        }
        _ => ended,
    }
}

/// Runs an attempt once, with its inputs as visible now.
fn once(spec: &Spec) -> Result<Outcome, TaskError> {
    check_parts(&spec.task)?;
    check_shuffle(&spec.job, &spec.shuffle)?;
    fs::create_dir_all(&spec.directory).map_err(error::at("cannot make directory", &spec.directory))?;
    let files = WatchedFiles::begin(&spec.files)?;
    let ended = match &spec.task {
        Task::Map { .. } => map::run(spec),
        Task::Reduce { .. } => reduce::run(spec),
    };
    // A changed input file may also cause the failure.
    files.check().and(ended)
}

/// Refuses a task of a job with more parts than names can sort.
fn check_parts(task: &Task) -> Result<(), TaskError> {
    let (parts, what) = match *task {
        Task::Map { maps, partitions: 0, .. } => (maps, "maps without reducers"),
        Task::Map { partitions, .. } => (partitions, "reducers"),
        Task::Reduce { partition, .. } => (partition.saturating_add(1), "reducers"),
    };
    if parts > PARTS_MAX {
        return Err(TaskError::Job(format!("found {parts} {what}, expected at most {PARTS_MAX}")));
    }
    Ok(())
}

/// Refuses an invalid shuffle, or one that a job cannot have: an order by missing fields, key fields for a
/// program. An attempt returns the same errors.
///
/// # Errors
///
/// Found and expected.
pub fn check_shuffle(job: &Job, shuffle: &Shuffle) -> Result<(), TaskError> {
    keys::Keys::of(shuffle)?;
    if let Some(codec) = shuffle.compress.filter(|codec| *codec != Codec::Lz4) {
        let found = codec.name();
        return Err(TaskError::Job(format!("compressed map output: found {found:?}, expected \"lz4\"")));
    }
    let is_plain = Shuffle { compress: None, ..shuffle.clone() } == Shuffle::default();
    match job {
        Job::Program { program, .. } if !is_plain => Err(TaskError::Job(format!(
            "found key fields for the program {program}, expected them only for commands"
        ))),
        _ => Ok(()),
    }
}
