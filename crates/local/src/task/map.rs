//! A map attempt.

use std::fs;
use std::path::Path;

use super::collect::{Collector, Combiner};
use super::command::{Feed, Streaming};
use super::emit::{Emit, Sink};
use super::error::at;
use super::input::{Format, Records, display, record_limit};
use super::log::Log;
use super::part::Part;
use super::partition::{Boundaries, Partitioner};
use super::program::{Built, Generator, Program, Resources, build, build_program};
use super::segment::{Run, Section};
use super::{Job, Outcome, Spec, Split, Task, TaskError};

/// The name of a map's output in its directory; `map.index` beside it says where each partition lies.
pub const MAP_OUTPUT: &str = "map.out";
const MAP_INDEX: &str = "map.index";

/// An attempt: the fields of [`Task::Map`], and the rest of what it was told.
struct Map<'a> {
    spec: &'a Spec,
    index: u32,
    maps: u32,
    splits: &'a [Split],
    partitions: u32,
    prepared: Option<&'a Path>,
}

pub(super) fn run(spec: &Spec) -> Result<Outcome, TaskError> {
    let Task::Map { index, maps, splits, partitions, prepared } = &spec.task else {
        return Err(TaskError::Job("found a reduce, expected a map".to_owned()));
    };
    let (index, maps, partitions, prepared) = (*index, *maps, *partitions, prepared.as_deref());
    let map = Map { spec, index, maps, splits, partitions, prepared };
    match &spec.job {
        Job::Program { program, args } => {
            let resources = Resources { memory_bytes: spec.program_memory(), directory: &spec.directory };
            match build(program, args, resources)? {
                Built::Generator(generator) => map.generate(program, generator.as_ref()),
                Built::Program(mut built) => {
                    check(program, built.as_ref(), &map)?;
                    let combiner = if built.combines() {
                        let mut instance = build_program(program, args, resources)?;
                        Combiner::Function(Box::new(move |values, put| instance.combine(values, put)))
                    } else {
                        Combiner::None
                    };
                    map.run_program(built.as_mut(), combiner)
                }
            }
        }
        Job::Commands { mapper, combiner, .. } => map.run_commands(mapper, combiner.as_deref()),
    }
}

impl Map<'_> {
    fn generate(&self, name: &str, generator: &dyn Generator) -> Result<Outcome, TaskError> {
        if self.partitions > 0 {
            let found = self.partitions;
            return Err(TaskError::Job(format!("{name}: found {found} reducers, expected none")));
        }
        let mut part = Part::create(&self.spec.directory, self.index)?;
        generator.generate(self.index, self.maps, &mut part)?;
        let mut outcome = Outcome::default();
        finish(self.spec, Sink::Part(part), &mut outcome)?;
        Ok(outcome)
    }

    fn run_program(&self, program: &mut dyn Program, combiner: Combiner) -> Result<Outcome, TaskError> {
        let mut outcome = Outcome::default();
        let mut emit = Emit::new(self.sink(combiner)?);
        for split in self.splits {
            program.open(split, &mut emit)?;
            let limit = record_limit(self.spec.memory_bytes);
            let mut records = Records::open(split, program.format(), limit)?;
            while let Some(record) = records.next()? {
                outcome.records_in += 1;
                outcome.bytes_in += record.len() as u64 + u64::from(program.format() == Format::Lines);
                program.map(record, &mut emit)?;
            }
            records.close()?;
        }
        program.finish(&mut emit)?;
        outcome.skipped = emit.skipped;
        finish(self.spec, emit.into_sink(), &mut outcome)?;
        Ok(outcome)
    }

    fn run_commands(&self, mapper: &str, combiner: Option<&str>) -> Result<Outcome, TaskError> {
        let (environment, log) = (self.environment(), Log::new(&self.spec.directory));
        let streaming = |role, command: &str| Streaming {
            role,
            command: command.to_owned(),
            directory: self.spec.directory.clone(),
            log: log.clone(),
            environment: environment.clone(),
            record_limit: record_limit(self.spec.memory_bytes),
        };
        let combiner = match combiner {
            Some(command) if self.partitions > 0 => Combiner::Command(streaming("combiner", command)),
            _ => Combiner::None,
        };
        let mut outcome = Outcome::default();
        let mut sink = self.sink(combiner)?;
        run_mapper(&streaming("mapper", mapper), self.splits, &mut sink, &mut outcome)?;
        finish(self.spec, sink, &mut outcome)?;
        Ok(outcome)
    }

    /// Where its pairs go.
    fn sink(&self, combiner: Combiner) -> Result<Sink, TaskError> {
        let directory = &self.spec.directory;
        if self.partitions == 0 {
            return Ok(Sink::Part(Part::create(directory, self.index)?));
        }
        let partitioner = match self.prepared {
            Some(path) => Partitioner::Range(Boundaries::read(path, self.partitions)?),
            None => Partitioner::Hash(self.partitions),
        };
        let memory_bytes = self.spec.shuffle_memory();
        Ok(Sink::Shuffle(Collector::new(directory, memory_bytes, partitioner, combiner)))
    }

    /// What a mapper or combiner can learn of its task. The names in capitals are ours; the other is
    /// Hadoop Streaming's, which scripts use. Of several files that share a map it names the first.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("SLACKLINE_TASK", self.index.to_string())];
        if let Some(split) = self.splits.first() {
            variables.push(("SLACKLINE_INPUT", split.input.to_string()));
            variables.push(("mapreduce_map_input_file", display(&split.path)));
        }
        variables
    }
}

/// Refuses what would give wrong output.
fn check(name: &str, program: &dyn Program, map: &Map<'_>) -> Result<(), TaskError> {
    let wrong = |problem: &str| Err(TaskError::Job(format!("{name}: {problem}")));
    if program.needs_reducers() && map.partitions == 0 {
        return wrong("found no reducers, expected at least one");
    }
    if program.is_ranged() && map.partitions > 1 && map.prepared.is_none() {
        return wrong("found no sampled boundaries, expected them for more than one reducer");
    }
    Ok(())
}

/// Feeds the lines of the splits to the mapper, its output to the sink.
fn run_mapper(
    mapper: &Streaming,
    splits: &[Split],
    sink: &mut Sink,
    outcome: &mut Outcome,
) -> Result<(), TaskError> {
    let (records_in, bytes_in) = (&mut outcome.records_in, &mut outcome.bytes_in);
    let feed = |feed: &mut Feed<'_>| {
        for split in splits {
            let mut records = Records::open(split, Format::Lines, mapper.record_limit)?;
            while let Some(lines) = records.lines()? {
                let (count, end) = ended(lines);
                *records_in += count;
                *bytes_in += (lines.len() + end.len()) as u64;
                let written = feed.write(&[lines, end]);
                if !written.map_err(at("cannot feed the mapper of", &mapper.directory))? {
                    return records.close();
                }
            }
            records.close()?;
        }
        Ok(())
    };
    mapper.run(feed, |mut stdout| match sink {
        Sink::Part(part) => part.copy(&mut stdout),
        Sink::Shuffle(collector) => mapper.each_pair(stdout, &mut |key, value| collector.push(key, value)),
        Sink::Sample(_) => Ok(()),
    })
}

/// How many lines these are, and the newline that the last one lacks.
fn ended(lines: &[u8]) -> (u64, &'static [u8]) {
    let newlines = memchr::memchr_iter(b'\n', lines).count() as u64;
    if lines.ends_with(b"\n") { (newlines, b"") } else { (newlines + 1, b"\n") }
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
