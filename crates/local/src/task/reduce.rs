//! A reduce attempt: fetch its partition of every map, merge, reduce.

use std::fs;

use super::command::Streaming;
use super::error::at;
use super::input::record_limit;
use super::log::Log;
use super::map::committed;
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
    let mut outcome = Outcome::default();
    let mut segments = Vec::with_capacity(maps.len());
    for directory in maps {
        let segment = fetch(directory, *partition)?;
        outcome.records_in += segment.section.records;
        outcome.bytes_in += segment.section.bytes;
        segments.push(segment);
    }
    let scratch = spec.directory.join("scratch");
    fs::create_dir_all(&scratch).map_err(at("cannot make directory", &scratch))?;
    let mut merge = Merge::open(segments, &scratch, spec.shuffle_memory())?;
    let mut part = Part::create(&spec.directory, *partition)?;
    match &spec.job {
        Job::Program { program, args } => {
            let resources = Resources { memory_bytes: spec.program_memory(), directory: &scratch };
            let mut program = build_program(program, args, resources)?;
            groups(&mut merge, |key, values| program.reduce(key, values, &mut part))?;
        }
        Job::Commands { reducer: Some(command), .. } => {
            let reducer = Streaming {
                role: "reducer",
                command: command.clone(),
                directory: spec.directory.clone(),
                log: Log::new(&spec.directory),
                environment: vec![("SLACKLINE_TASK", partition.to_string())],
                record_limit: record_limit(spec.memory_bytes),
            };
            reducer.run(
                |feed| reducer.feed_pairs(feed, &mut merge).map(|_| ()),
                |mut stdout| part.copy(&mut stdout),
            )?;
        }
        Job::Commands { reducer: None, .. } => {
            while let Some((key, value)) = merge.current() {
                part.pair(key, value)?;
                merge.advance()?;
            }
        }
    }
    (outcome.records_out, outcome.bytes_out) = part.finish(spec.durable)?;
    fs::remove_dir_all(&scratch).map_err(at("cannot remove", &scratch))?;
    Ok(outcome)
}

/// A partition of a committed map.
fn fetch(directory: &std::path::Path, partition: u32) -> Result<Segment, TaskError> {
    let run = committed(directory)?;
    if partition as usize >= run.sections.len() {
        let problem = format!("{} partitions, expected more than {partition}", run.sections.len());
        return Err(TaskError::Damaged { path: directory.to_owned(), problem });
    }
    Ok(run.segment(partition as usize))
}
