//! Runs one job on so many processes at a time, without a scheduler: for measurements, and to show in
//! what order an engine calls the library.
//!
//! `cargo run --release -p slackline-local --example job -- PROCESSES REDUCERS OUTPUT JOB [INPUT…]`,
//! where JOB is a [`task::Job`] as JSON, such as `{"program": "wordcount"}`. `SPLIT` (bytes, 64 MiB)
//! and `MEMORY` (bytes, 256 MiB) may be set in the environment. OUTPUT must not exist yet.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use slackline_local::task::{self, Job, Outcome, Spec, Task};
use slackline_local::worker::{self, Report};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("worker") {
        return worker::main();
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            drop(writeln!(io::stderr(), "error: {e}"));
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<(), Box<dyn Error>> {
    let [processes, reducers, output, job, inputs @ ..] = args else {
        return Err("expected PROCESSES REDUCERS OUTPUT JOB [INPUT…]".into());
    };
    let (processes, reducers, output) = (processes.parse()?, reducers.parse()?, Path::new(output));
    let job: Job = serde_json::from_str(job)?;
    let shape = task::describe(&job)?;
    let partitions = if shape.is_map_only { 0 } else { reducers };
    let maps = task::plan(&job, inputs, setting("SPLIT", 64 << 20)?)?;
    let scratch = output.with_extension("scratch");
    fs::create_dir_all(&scratch)?;
    let mut clock = Clock::start();
    let prepared = (shape.needs_preparation && partitions > 1).then(|| scratch.join("prepared"));
    if let Some(file) = &prepared {
        task::prepare(&job, &maps, partitions, file)?;
        clock.tell("prepare", &[])?;
    }
    let count = maps.len() as u32;
    let memory_bytes = setting("MEMORY", 256 << 20)?;
    let spec = |task, directory| Spec { job: job.clone(), task, directory, memory_bytes, durable: false };
    let map = |(index, splits)| {
        let prepared = prepared.clone();
        let directory = scratch.join(format!("map-{index}"));
        spec(Task::Map { index, maps: count, splits, partitions, prepared }, directory)
    };
    let specs: Vec<Spec> = (0..).zip(maps).map(map).collect();
    clock.tell("map", &attempts(&specs, processes)?)?;
    let directories: Vec<PathBuf> = specs.iter().map(|spec| spec.directory.clone()).collect();
    let reduce = |partition| {
        let directory = scratch.join(format!("reduce-{partition}"));
        spec(Task::Reduce { partition, maps: directories.clone() }, directory)
    };
    let reduces: Vec<Spec> = (0..partitions).map(reduce).collect();
    if partitions > 0 {
        clock.tell("reduce", &attempts(&reduces, processes)?)?;
    }
    fs::create_dir(output)?;
    for (number, spec) in (0..).zip(if partitions > 0 { &reduces } else { &specs }) {
        let name = task::part_name(number);
        fs::rename(spec.directory.join(&name), output.join(&name))?;
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

fn setting(name: &str, otherwise: u64) -> Result<u64, Box<dyn Error>> {
    std::env::var(name).map_or(Ok(otherwise), |text| Ok(text.parse()?))
}

/// Runs attempts, so many at a time; the oldest is waited for first, which is near enough.
fn attempts(specs: &[Spec], processes: usize) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let mut running = std::collections::VecDeque::new();
    let mut outcomes = Vec::new();
    for spec in specs {
        if running.len() >= processes.max(1) {
            outcomes.extend(running.pop_front().map(wait).transpose()?);
        }
        running.push_back(start(spec)?);
    }
    for child in running {
        outcomes.push(wait(child)?);
    }
    Ok(outcomes)
}

fn start(spec: &Spec) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    let mut line = serde_json::to_string(spec)?;
    line.push('\n');
    child.stdin.as_mut().ok_or("no standard input")?.write_all(line.as_bytes())?;
    Ok(child)
}

fn wait(mut child: Child) -> Result<Outcome, Box<dyn Error>> {
    let mut line = String::new();
    // Standard input stays open until the worker is done: it takes its end for the engine's death.
    BufReader::new(child.stdout.take().ok_or("no standard output")?).read_line(&mut line)?;
    child.wait()?;
    match serde_json::from_str(&line)? {
        Report::Done(outcome) => Ok(outcome),
        Report::Failed { message, .. } => Err(message.into()),
    }
}

/// Tells how long each phase took.
struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a measurement")]
    fn start() -> Self {
        Clock(Instant::now())
    }

    fn tell(&mut self, phase: &str, outcomes: &[Outcome]) -> io::Result<()> {
        let seconds = self.0.elapsed().as_secs_f64();
        *self = Self::start();
        let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
        let (bytes_in, bytes_out) = (sum(|o| o.bytes_in), sum(|o| o.bytes_out));
        let rate = bytes_in.max(bytes_out) as f64 / 1e6 / seconds;
        writeln!(
            io::stdout(),
            "{phase}: {} tasks, {seconds:.2} s, {rate:.0} MB/s, in {} records {bytes_in} bytes, out {} records {bytes_out} bytes, {} spills",
            outcomes.len(),
            sum(|o| o.records_in),
            sum(|o| o.records_out),
            sum(|o| u64::from(o.spills)),
        )
    }
}
