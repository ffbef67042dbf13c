//! A reduce attempt: fetches its partition of every map, merges and reduces.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::attempt::command::{MemoryLimit, Streaming};
use crate::attempt::log::Log;
use crate::base::error::{TaskError, at};
use crate::input::reader::record_limit;
use crate::process::spec::{Job, NEEDS_HADOOP, Outcome, Spec, Task};
use crate::programs::build_program;
use crate::programs::contract::Resources;
use crate::shuffle::index;
use crate::shuffle::index::MAP_OUTPUT;
use crate::shuffle::keys::Keys;
use crate::shuffle::merge::{Merge, groups};
use crate::shuffle::pairs::Cursor;
use crate::shuffle::part::Part;
use crate::shuffle::ranges::{self, RangeCursor};
use crate::shuffle::segment::Segment;

pub(crate) fn run(spec: &Spec) -> Result<Outcome, TaskError> {
    let Task::Reduce { partition, maps } = &spec.task else {
        return Err(TaskError::Job("found a map, expected a reduce".to_owned()));
    };
    reduce(spec, *partition, maps).map_err(|error| lost(error, maps))
}

fn reduce(spec: &Spec, partition: u32, maps: &[PathBuf]) -> Result<Outcome, TaskError> {
    let mut outcome = Outcome::default();
    let (segments, range) = if spec.shuffle.is_ranged() {
        let (segments, range) = ranges::of(maps, |map| spec.map_sum(map), partition, spec.shuffle.ranges)?;
        (segments, Some(range))
    } else {
        (fetch(spec, partition, maps, &mut outcome)?, None)
    };
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
        Job::Commands { reducer, .. } => {
            let mut reduce = Reduce { spec, partition, command: reducer.as_deref(), part: &mut part };
            match range {
                None => reduce.run(&mut merge, &mut outcome)?,
                Some(range) => {
                    let mut within = RangeCursor::begin(&mut merge, range)?;
                    reduce.run(&mut within, &mut outcome)?;
                    (outcome.counts.records_in, outcome.counts.bytes_in) = (within.records, within.bytes);
                }
            }
        }
        Job::Command { .. } => {
            return Err(TaskError::Job(
                "found a reduce of one plain command, expected its map alone".to_owned(),
            ));
        }
        Job::Jar { .. } => return Err(TaskError::Job(NEEDS_HADOOP.to_owned())),
    }
    // A command that stopped reading early has not reached an error in the rest.
    merge.verify()?;
    part.finish(spec.durable, &mut outcome)?;
    fs::remove_dir_all(&scratch).map_err(at("cannot remove", &scratch))?;
    Ok(outcome)
}

/// The partition of each map.
fn fetch(
    spec: &Spec,
    partition: u32,
    maps: &[PathBuf],
    outcome: &mut Outcome,
) -> Result<Vec<Segment>, TaskError> {
    let mut segments = Vec::with_capacity(maps.len());
    for (number, directory) in maps.iter().enumerate() {
        let path = directory.join(MAP_OUTPUT);
        let section = index::read(&path, partition, spec.map_sum(number))?;
        outcome.counts.records_in += section.records;
        outcome.counts.bytes_in += section.bytes;
        segments.push(Segment::of(path, section));
    }
    Ok(segments)
}

/// A reduce by commands.
struct Reduce<'a> {
    spec: &'a Spec,
    partition: u32,
    /// The reducer; without one the part file has the pairs.
    command: Option<&'a str>,
    part: &'a mut Part,
}

impl Reduce<'_> {
    fn run(&mut self, pairs: &mut (impl Cursor + Send), outcome: &mut Outcome) -> Result<(), TaskError> {
        let keys = Keys::of(&self.spec.shuffle)?;
        let Some(command) = self.command else {
            while let Some((key, value)) = pairs.current() {
                let (key, value) = keys.pair(key, value);
                self.part.separated(key, keys.separator(), value)?;
                pairs.advance()?;
            }
            return Ok(());
        };
        let (spec, log) = (self.spec, Log::of(self.spec));
        let reducer = Streaming {
            role: "reducer",
            command: command.to_owned(),
            directory: spec.directory.clone(),
            log: log.clone(),
            environment: vec![
                ("SLACKLINE_TASK", self.partition.to_string()),
                ("mapreduce_task_partition", self.partition.to_string()),
                ("mapreduce_task_ismap", "false".to_owned()),
            ],
            setting: spec.setting.clone(),
            memory: MemoryLimit::of(spec),
            keys,
            record_limit: record_limit(spec.memory_bytes),
        };
        reducer.run(
            Some(Box::new(|feed| reducer.feed_pairs(feed, pairs, &mut 0).map(|_| ()))),
            |mut stdout| self.part.copy_lines(&mut stdout),
        )?;
        let reported = log.reported();
        (outcome.counts.counters, outcome.counts.says) = (reported.counters, reported.status);
        Ok(())
    }
}

/// Names the map whose output is missing or damaged, if that is the error: that map must run again.
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

/// Whether the error of the system means that a file is missing, is shorter than it was, or is on a broken
/// disk.
fn is_gone(source: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, StaleNetworkFileHandle, UnexpectedEof};
    let io = rustix::io::Errno::IO.raw_os_error();
    matches!(source.kind(), IsADirectory | NotADirectory | NotFound | StaleNetworkFileHandle | UnexpectedEof)
        || source.raw_os_error() == Some(io)
}
