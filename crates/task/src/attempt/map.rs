//! Runs a map attempt.

use std::fs;
use std::path::Path;

use crate::attempt::command::{Feed, MemoryLimit, Streaming};
use crate::attempt::log::Log;
use crate::base::error::{TaskError, at};
use crate::base::source::WatchedFile;
use crate::input::input_list::{InputList, shown};
use crate::input::reader::{Format, Records, display, open_split, record_limit, watch};
use crate::process::spec::{Job, NEEDS_HADOOP, Outcome, Spec, Split, Task};
use crate::programs::contract::{Generator, Program, Resources};
use crate::programs::emit::{Emit, Sink};
use crate::programs::{Built, build, build_program};
use crate::shuffle::collect::{Collector, Combiner, Target};
use crate::shuffle::index::MAP_OUTPUT;
use crate::shuffle::keys::Keys;
use crate::shuffle::part::Part;
use crate::shuffle::partition::{Boundaries, Partitioner};
use crate::shuffle::ranges;

/// An attempt: the fields of [`Task::Map`], and its other inputs.
struct Map<'a> {
    spec: &'a Spec,
    index: u32,
    maps: u32,
    splits: &'a [Split],
    partitions: u32,
    prepared: Option<&'a Path>,
}

pub(crate) fn run(spec: &Spec) -> Result<Outcome, TaskError> {
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
        Job::Command { command } => map.run_command(command),
        Job::Jar { .. } => Err(TaskError::Job(NEEDS_HADOOP.to_owned())),
    }
}

impl Map<'_> {
    fn generate(&self, name: &str, generator: &dyn Generator) -> Result<Outcome, TaskError> {
        if self.partitions > 0 {
            let found = self.partitions;
            return Err(TaskError::Job(format!("{name}: found {found} reducers, expected none")));
        }
        let mut part = Part::create(&self.spec.directory, self.index, self.spec.compress)?;
        generator.generate(self.index, self.maps, &mut part)?;
        let mut outcome = Outcome::default();
        finish(self.spec, Sink::Part(Box::new(part)), &mut outcome)?;
        Ok(outcome)
    }

    fn run_program(&self, program: &mut dyn Program, combiner: Combiner) -> Result<Outcome, TaskError> {
        let mut outcome = Outcome::default();
        let mut emit = Emit::new(self.sink(combiner)?);
        for split in self.splits {
            program.open(split, &mut emit)?;
            let limit = record_limit(self.spec.memory_bytes);
            let mut records = Records::open(split, program.format(), limit)?;
            match program.format() {
                Format::Text | Format::Lines => {
                    while let Some(lines) = records.lines()? {
                        count(lines, &mut outcome);
                        program.map_lines(lines, &mut emit)?;
                    }
                }
                Format::Fixed(_) => {
                    while let Some(record) = records.next()? {
                        outcome.counts.records_in += 1;
                        outcome.counts.bytes_in += record.len() as u64;
                        program.map(record, &mut emit)?;
                    }
                }
            }
            records.close()?;
        }
        program.finish(&mut emit)?;
        outcome.counts.skipped = emit.skipped;
        finish(self.spec, emit.into_sink(), &mut outcome)?;
        Ok(outcome)
    }

    /// Runs the mapper once for each file, in sequence, so that each process knows its file.
    fn run_commands(&self, mapper: &str, combiner: Option<&str>) -> Result<Outcome, TaskError> {
        let log = Log::of(self.spec);
        let combiner = match combiner {
            // With ranges of keys a combiner would move the boundaries, see [`crate::shuffle::ranges`].
            Some(command) if self.partitions > 0 && !self.spec.shuffle.is_ranged() => {
                Combiner::Command(Box::new(self.streaming("combiner", command, &log, Vec::new())?))
            }
            _ => Combiner::None,
        };
        let mut outcome = Outcome::default();
        let mut sink = self.sink(combiner)?;
        for split in self.splits {
            let mapper = self.streaming("mapper", mapper, &log, variables(split)?)?;
            run_mapper(&mapper, split, &mut sink, &mut outcome)?;
        }
        finish(self.spec, sink, &mut outcome)?;
        report(&log, &mut outcome);
        Ok(outcome)
    }

    /// Runs a command that reads its inputs itself.
    fn run_command(&self, command: &str) -> Result<Outcome, TaskError> {
        if self.partitions > 0 || self.maps != 1 {
            let problem = "found several tasks for one plain command, expected one map and no reduces";
            return Err(TaskError::Job(problem.to_owned()));
        }
        let watched = self.splits.iter().map(opened).collect::<Result<Vec<_>, _>>()?;
        let log = Log::of(self.spec);
        let files = self.splits.iter().map(Split::file);
        let list = InputList::new(command, files, self.spec.setting.cwd.is_some())?;
        let command = self.streaming("command", command, &log, list.variables(&self.spec.directory)?)?;
        let mut part = Part::create(&self.spec.directory, self.index, self.spec.compress)?;
        command.run(None, |mut stdout| part.copy(&mut stdout))?;
        for (split, watched) in self.splits.iter().zip(watched) {
            if watched.is_some_and(|watched| !watched.is_same(&split.path)) {
                return Err(TaskError::changed(&split.path));
            }
        }
        let mut outcome = Outcome::default();
        finish(self.spec, Sink::Part(Box::new(part)), &mut outcome)?;
        report(&log, &mut outcome);
        Ok(outcome)
    }

    fn streaming(
        &self,
        role: &'static str,
        command: &str,
        log: &Log,
        mut environment: Vec<(&'static str, String)>,
    ) -> Result<Streaming, TaskError> {
        for (name, value) in &mut environment {
            if *name == INPUT_FILE {
                *value = shown(Path::new(value), self.spec.setting.cwd.is_some());
            }
        }
        environment.extend([
            ("SLACKLINE_TASK", self.index.to_string()),
            ("mapreduce_task_partition", self.index.to_string()),
            ("mapreduce_task_ismap", "true".to_owned()),
        ]);
        Ok(Streaming {
            role,
            command: command.to_owned(),
            directory: self.spec.directory.clone(),
            log: log.clone(),
            environment,
            setting: self.spec.setting.clone(),
            memory: MemoryLimit::of(self.spec),
            keys: Keys::of(&self.spec.shuffle)?,
            record_limit: record_limit(self.spec.memory_bytes),
        })
    }

    /// The destination of the map's output.
    fn sink(&self, combiner: Combiner) -> Result<Sink, TaskError> {
        if self.partitions == 0 {
            return Part::create(&self.spec.directory, self.index, self.spec.compress)
                .map(|part| Sink::Part(Box::new(part)));
        }
        let partitioner = match self.prepared {
            Some(path) => Partitioner::Range(Boundaries::read(path, self.partitions)?),
            None if self.spec.shuffle.is_ranged() => Partitioner::Hash(1),
            None => Partitioner::Hash(self.partitions),
        };
        let memory = self.spec.shuffle_memory();
        let collector = Collector::new(&self.spec.directory, memory, partitioner, combiner);
        Ok(Sink::Shuffle(Box::new(collector)))
    }
}

/// The variable with the file that a mapper reads, as in Hadoop Streaming.
const INPUT_FILE: &str = "mapreduce_map_input_file";

/// The environment variables of a mapper that describe its input.
fn variables(split: &Split) -> Result<Vec<(&'static str, String)>, TaskError> {
    let length = match split.length {
        Some(length) => length,
        None => fs::metadata(split.file()).map_err(at("cannot read", split.file()))?.len(),
    };
    Ok(vec![
        ("SLACKLINE_INPUT", split.input.to_string()),
        (INPUT_FILE, display(&split.path)),
        ("mapreduce_map_input_start", split.offset.to_string()),
        ("mapreduce_map_input_length", length.to_string()),
    ])
}

/// Checks that a file has not changed since the run began, for another process that reads it.
fn opened(split: &Split) -> Result<Option<WatchedFile>, TaskError> {
    watch(split, &open_split(split)?)
}

/// Counts lines that were read; the last one is counted with the newline that it may lack.
fn count(lines: &[u8], outcome: &mut Outcome) -> &'static [u8] {
    let newlines = memchr::memchr_iter(b'\n', lines).count() as u64;
    let end: &[u8] = if lines.ends_with(b"\n") { b"" } else { b"\n" };
    outcome.counts.records_in += newlines + end.len() as u64;
    outcome.counts.bytes_in += (lines.len() + end.len()) as u64;
    end
}

/// Adds the reports of commands to the outcome.
fn report(log: &Log, outcome: &mut Outcome) {
    let reported = log.reported();
    (outcome.counts.counters, outcome.counts.says) = (reported.counters, reported.status);
}

/// Refuses jobs whose output would be wrong.
fn check(name: &str, program: &dyn Program, map: &Map<'_>) -> Result<(), TaskError> {
    let wrong = |problem: &str| Err(TaskError::Job(format!("{name}: {problem}")));
    if program.needs_reducers() && map.partitions == 0 {
        return wrong("needs at least one reducer: reducers write its output");
    }
    if program.is_ranged() && map.partitions > 1 && map.prepared.is_none() {
        return wrong("found no sampled boundaries, expected them for more than one reducer");
    }
    Ok(())
}

/// Feeds the lines of a split to the mapper, and its output to the sink.
fn run_mapper(
    mapper: &Streaming,
    split: &Split,
    sink: &mut Sink,
    outcome: &mut Outcome,
) -> Result<(), TaskError> {
    let feed = |feed: &mut Feed<'_>| {
        let mut records = Records::open(split, Format::Lines, mapper.record_limit)?;
        while let Some(lines) = records.lines()? {
            let end = count(lines, outcome);
            let written = feed.write(&[lines, end]);
            if !written.map_err(at("cannot feed the mapper of", &mapper.directory))? {
                break;
            }
        }
        records.close()
    };
    mapper.run(Some(Box::new(feed)), |mut stdout| match sink {
        Sink::Part(part) => part.copy_lines(&mut stdout),
        Sink::Shuffle(collector) => mapper.each_pair(stdout, |line| collector.push_line(&line)),
        Sink::Sample(_) => Ok(()),
    })
}

fn finish(spec: &Spec, sink: Sink, outcome: &mut Outcome) -> Result<(), TaskError> {
    match sink {
        Sink::Shuffle(mut collector) => {
            let path = spec.directory.join(MAP_OUTPUT);
            let is_packed = spec.shuffle.compress.is_some();
            let target = if spec.shuffle.is_ranged() {
                Target::Pieces { is_packed }
            } else {
                Target::Output { is_durable: spec.durable, is_packed }
            };
            let run = collector.finish(&path, target)?;
            if spec.durable && spec.shuffle.is_ranged() {
                ranges::sync(&spec.directory)?;
            }
            outcome.output = run.digest;
            outcome.counts.spills = collector.spills();
            outcome.counts.records_out = run.sections.iter().map(|section| section.records).sum();
            outcome.counts.bytes_out = run.sections.iter().map(|section| section.bytes).sum();
            let counted = collector.counted();
            outcome.counts.spilled = counted.spilled;
            outcome.counts.combine_in = counted.combine_in;
            outcome.counts.combine_out = counted.combine_out;
            Ok(())
        }
        Sink::Part(part) => part.finish(spec.durable, outcome),
        Sink::Sample(_) => Ok(()),
    }
}
