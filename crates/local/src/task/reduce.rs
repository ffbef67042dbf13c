//! A reduce attempt: fetch its partition of every map, merge, reduce.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::command::Streaming;
use super::error::at;
use super::index;
use super::input::record_limit;
use super::keys::Keys;
use super::log::Log;
use super::map::MAP_OUTPUT;
use super::merge::{Merge, groups};
use super::pairs::Cursor;
use super::part::Part;
use super::program::{Resources, build_program};
use super::segment::Segment;
use super::{Job, Outcome, Spec, Task, TaskError};

pub(super) fn run(spec: &Spec) -> Result<Outcome, TaskError> {
    let Task::Reduce { partition, maps } = &spec.task else {
        return Err(TaskError::Job("found a map, expected a reduce".to_owned()));
    };
    reduce(spec, *partition, maps).map_err(|error| lost(error, maps))
}

fn reduce(spec: &Spec, partition: u32, maps: &[PathBuf]) -> Result<Outcome, TaskError> {
    let mut outcome = Outcome::default();
    let mut segments = Vec::with_capacity(maps.len());
    for directory in maps {
        let path = directory.join(MAP_OUTPUT);
        let section = index::read(&path, partition)?;
        outcome.records_in += section.records;
        outcome.bytes_in += section.bytes;
        segments.push(Segment { path, section });
    }
    let scratch = spec.directory.join("scratch");
    fs::create_dir_all(&scratch).map_err(at("cannot make directory", &scratch))?;
    let mut merge = Merge::open(segments, &scratch, spec.shuffle_memory())?;
    let mut part = Part::create(&spec.directory, partition, spec.compress)?;
    match &spec.job {
        Job::Program { program, args } => {
            let resources = Resources { memory_bytes: spec.program_memory(), directory: &scratch };
            let mut program = build_program(program, args, resources)?;
            groups(&mut merge, |key, values| program.reduce(key, values, &mut part))?;
        }
        Job::Commands { reducer: Some(command), .. } => {
            run_reducer(spec, partition, command, &mut merge, &mut part, &mut outcome)?;
        }
        Job::Commands { reducer: None, .. } => {
            let keys = Keys::of(&spec.shuffle)?;
            while let Some((key, value)) = merge.current() {
                let (key, value) = keys.pair(key, value);
                part.separated(key, keys.separator(), value)?;
                merge.advance()?;
            }
        }
        Job::Command { .. } => {
            return Err(TaskError::Job(
                "found a reduce of one plain command, expected its map alone".to_owned(),
            ));
        }
    }
    // A command that stopped reading early has seen nothing of what is wrong behind that.
    merge.verify()?;
    (outcome.records_out, outcome.bytes_out) = part.finish(spec.durable)?;
    fs::remove_dir_all(&scratch).map_err(at("cannot remove", &scratch))?;
    Ok(outcome)
}

fn run_reducer(
    spec: &Spec,
    partition: u32,
    command: &str,
    merge: &mut Merge,
    part: &mut Part,
    outcome: &mut Outcome,
) -> Result<(), TaskError> {
    let log = Log::new(&spec.directory);
    let reducer = Streaming {
        role: "reducer",
        command: command.to_owned(),
        directory: spec.directory.clone(),
        log: log.clone(),
        environment: vec![
            ("SLACKLINE_TASK", partition.to_string()),
            ("mapreduce_task_partition", partition.to_string()),
            ("mapreduce_task_ismap", "false".to_owned()),
        ],
        setting: spec.setting.clone(),
        memory_limit: spec.memory_limit,
        keys: Keys::of(&spec.shuffle)?,
        record_limit: record_limit(spec.memory_bytes),
    };
    reducer.run(
        |feed| reducer.feed_pairs(feed, merge, &mut 0).map(|_| ()),
        |mut stdout| part.copy(&mut stdout),
    )?;
    let reported = log.reported();
    (outcome.counters, outcome.status) = (reported.counters, reported.status);
    Ok(())
}

/// Says of which map the output is gone or damaged, if it is: that map has to be done again.
fn lost(error: TaskError, maps: &[PathBuf]) -> TaskError {
    let (path, problem) = match &error {
        TaskError::Damaged { path, problem } => (path, problem.clone()),
        TaskError::File { path, source, .. } if is_gone(source) => (path, error.to_string()),
        _ => return error,
    };
    let Some(directory) = path.parent().filter(|parent| maps.iter().any(|map| map == parent)) else {
        return error;
    };
    let directory = Path::to_owned(directory);
    TaskError::LostMap { directory, problem: format!("the output of a map is lost: {problem}") }
}

/// Whether what the system says is that a file is not there, is shorter than it was, or lies on a broken disk.
fn is_gone(source: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, StaleNetworkFileHandle, UnexpectedEof};
    let io = rustix::io::Errno::IO.raw_os_error();
    matches!(source.kind(), IsADirectory | NotADirectory | NotFound | StaleNetworkFileHandle | UnexpectedEof)
        || source.raw_os_error() == Some(io)
}
