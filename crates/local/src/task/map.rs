//! A map attempt.

use std::fs;
use std::path::Path;

use super::collect::{Collector, Combiner};
use super::command::Streaming;
use super::emit::{Emit, Sink};
use super::error::at;
use super::input::{Format, Records, display, record_limit};
use super::part::Part;
use super::partition::{Boundaries, Partitioner};
use super::program::{Built, Program, Room, build, build_program};
use super::segment::{Run, Section};
use super::{Job, Outcome, Spec, Split, Task, TaskError};

/// The name of a map's output in its directory; `map.index` beside it says where each partition lies.
pub const MAP_OUTPUT: &str = "map.out";
const MAP_INDEX: &str = "map.index";

/// The fields of [`Task::Map`].
struct Map<'a> {
    index: u32,
    maps: u32,
    splits: &'a [Split],
}

pub(super) fn run(spec: &Spec) -> Result<Outcome, TaskError> {
    let Task::Map { index, maps, splits, partitions, prepared } = &spec.task else {
        return Err(TaskError::Job("found a reduce, expected a map".to_owned()));
    };
    let map = Map { index: *index, maps: *maps, splits };
    let partitioner = match prepared {
        Some(path) if *partitions > 0 => Partitioner::Range(Boundaries::read(path, *partitions)?),
        _ => Partitioner::Hash(*partitions),
    };
    let mut outcome = Outcome::default();
    match &spec.job {
        Job::Program { program, args } => {
            let room = Room { memory_bytes: spec.program_memory(), directory: &spec.directory };
            match build(program, args, room)? {
                Built::Generator(generator) => {
                    check_generator(program, *partitions)?;
                    let mut part = Part::create(&spec.directory, map.index)?;
                    generator.generate(map.index, map.maps, &mut part)?;
                    finish(spec, Sink::Part(part), &mut outcome)?;
                }
                Built::Program(mut built) => {
                    check(program, built.as_ref(), *partitions, prepared.is_some())?;
                    let combiner = if built.combines() {
                        Combiner::Program(build_program(program, args, room)?)
                    } else {
                        Combiner::None
                    };
                    let mut emit = Emit::new(sink(spec, map.index, partitioner, combiner)?);
                    run_program(built.as_mut(), &map, spec, &mut emit, &mut outcome)?;
                    outcome.skipped = emit.skipped;
                    finish(spec, emit.into_sink(), &mut outcome)?;
                }
            }
        }
        Job::Commands { mapper, combiner, .. } => {
            let environment = environment(&map);
            let streaming = |role, command: &str| Streaming {
                role,
                command: command.to_owned(),
                directory: spec.directory.clone(),
                environment: environment.clone(),
                record_limit: record_limit(spec.memory_bytes),
            };
            let combiner = match combiner {
                Some(command) if *partitions > 0 => Combiner::Command(streaming("combiner", command)),
                _ => Combiner::None,
            };
            let mut sink = sink(spec, map.index, partitioner, combiner)?;
            run_mapper(&streaming("mapper", mapper), splits, &mut sink, &mut outcome)?;
            finish(spec, sink, &mut outcome)?;
        }
    }
    Ok(outcome)
}

/// Refuses what would give wrong output.
fn check(name: &str, program: &dyn Program, partitions: u32, prepared: bool) -> Result<(), TaskError> {
    let wrong = |problem: &str| Err(TaskError::Job(format!("{name}: {problem}")));
    if program.needs_reducers() && partitions == 0 {
        return wrong("found no reducers, expected at least one");
    }
    if program.is_ranged() && partitions > 1 && !prepared {
        return wrong("found no sampled boundaries, expected them for more than one reducer");
    }
    Ok(())
}

fn check_generator(name: &str, partitions: u32) -> Result<(), TaskError> {
    match partitions {
        0 => Ok(()),
        _ => Err(TaskError::Job(format!("{name}: found {partitions} reducers, expected none"))),
    }
}

fn sink(spec: &Spec, index: u32, partitioner: Partitioner, combiner: Combiner) -> Result<Sink, TaskError> {
    if partitioner.partitions() == 0 {
        return Ok(Sink::Part(Part::create(&spec.directory, index)?));
    }
    Ok(Sink::Shuffle(Collector::new(&spec.directory, spec.shuffle_memory(), partitioner, combiner)))
}

fn run_program(
    program: &mut dyn Program,
    map: &Map<'_>,
    spec: &Spec,
    emit: &mut Emit,
    outcome: &mut Outcome,
) -> Result<(), TaskError> {
    for split in map.splits {
        program.open(split, emit)?;
        let mut records = Records::open(split, program.format(), record_limit(spec.memory_bytes))?;
        while let Some(record) = records.next()? {
            outcome.records_in += 1;
            outcome.bytes_in += record.len() as u64 + u64::from(program.format() == Format::Lines);
            program.map(record, emit)?;
        }
    }
    program.finish(emit)
}

/// Feeds the lines of the splits to the mapper, its output to the sink.
fn run_mapper(
    mapper: &Streaming,
    splits: &[Split],
    sink: &mut Sink,
    outcome: &mut Outcome,
) -> Result<(), TaskError> {
    let (records_in, bytes_in) = (&mut outcome.records_in, &mut outcome.bytes_in);
    let feed = |feed: &mut super::command::Feed| {
        for split in splits {
            let mut records = Records::open(split, Format::Lines, mapper.record_limit)?;
            while let Some(line) = records.next()? {
                *records_in += 1;
                *bytes_in += line.len() as u64 + 1;
                let written = feed.write(&[line, b"\n"]);
                if !written.map_err(at("cannot feed the mapper of", &mapper.directory))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    mapper.run(feed, |mut stdout| match sink {
        Sink::Part(part) => part.copy(&mut stdout),
        Sink::Shuffle(collector) => mapper.each_pair(stdout, &mut |key, value| collector.push(key, value)),
        Sink::Sample(_) => Ok(()),
    })
}

/// What a mapper or combiner can learn of its task. The names in capitals are ours; the other is
/// Hadoop Streaming's, which scripts use. Of several files that share a map it names the first.
fn environment(map: &Map<'_>) -> Vec<(&'static str, String)> {
    let mut variables = vec![("SLACKLINE_TASK", map.index.to_string())];
    if let Some(split) = map.splits.first() {
        variables.push(("SLACKLINE_INPUT", split.input.to_string()));
        variables.push(("mapreduce_map_input_file", display(&split.path)));
    }
    variables
}

fn finish(spec: &Spec, sink: Sink, outcome: &mut Outcome) -> Result<(), TaskError> {
    match sink {
        Sink::Shuffle(mut collector) => {
            let path = spec.directory.join(MAP_OUTPUT);
            let run = collector.finish(&path, spec.durable)?;
            outcome.spills = collector.spills();
            outcome.records_out = run.sections.iter().map(|section| section.records).sum();
            outcome.bytes_out = run.sections.iter().map(|section| section.bytes).sum();
            write_index(&spec.directory, &run.sections, spec.durable)
        }
        Sink::Part(part) => {
            (outcome.records_out, outcome.bytes_out) = part.finish(spec.durable)?;
            Ok(())
        }
        Sink::Sample(_) => Ok(()),
    }
}

fn write_index(directory: &Path, sections: &[Section], durable: bool) -> Result<(), TaskError> {
    let path = directory.join(MAP_INDEX);
    let text = serde_json::to_vec(sections).expect("invariant: numbers can be written as JSON");
    fs::write(&path, text).map_err(at("cannot write", &path))?;
    if durable {
        fs::File::open(&path).and_then(|file| file.sync_all()).map_err(at("cannot write", &path))?;
    }
    Ok(())
}

/// The output of the map that was committed as `directory`.
pub(super) fn committed(directory: &Path) -> Result<Run, TaskError> {
    let index = directory.join(MAP_INDEX);
    let text = fs::read(&index).map_err(at("cannot read", &index))?;
    let sections = serde_json::from_slice(&text)
        .map_err(|e| TaskError::Damaged { path: index, problem: format!("not an index of a map: {e}") })?;
    Ok(Run { path: directory.join(MAP_OUTPUT), sections })
}
