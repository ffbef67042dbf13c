//! Runs a flow file on this machine under a policy, prints the completion of each flow, and writes the
//! schedule. A second start after a crash resumes the run.
//!
//! ```sh
//! cargo run --example run_flows -- examples/first-run.toml
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::process::ExitCode;

use slackline::Registry;
use slackline::model::{Time, cluster::Slots};
use slackline::run::{Forecast, LocalEngine, Request, Run, RunEvent, Settings, Sink, WorkerCommand};

/// Prints tasks as they end.
struct Printer;

impl Sink for Printer {
    fn happened(&mut self, now: Time, event: &RunEvent, _: &Forecast) {
        if let RunEvent::TaskFinished { task: id, seconds } = event {
            println!(
                "{:8.1} s  job {} {} {}: {seconds:.2} s",
                now.seconds(),
                id.job,
                id.phase.name(),
                id.task
            );
        }
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    // Tasks are processes of this same program, started with this argument.
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return Ok(slackline::run::worker());
    }
    let file = std::env::args().nth(1).ok_or("expected a flow file")?;
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["worker".to_owned()] };
    let engine =
        LocalEngine::new(Slots::Generic(2), Settings { memory_bytes: 128 << 20, ..Settings::new(worker) });
    let request = Request::new(
        &file,
        std::fs::read(&file)?,
        Registry::standard().parse("flowflex")?,
        ".slackline/example",
    );
    let run = Run::open(&engine, request, &mut Printer)?;
    let (run, end) = run.go(&mut Printer)?;
    let outcome = run.outcome()?;
    println!(
        "{end:?}: makespan {} s; schedule: {}",
        outcome.metrics.makespan,
        outcome.schedule_file.display()
    );
    Ok(ExitCode::SUCCESS)
}
