//! `bound`: lower bounds on the cost of any schedule of a workload.

use std::path::PathBuf;

use clap::Args;
use slackline::import::bounds;
use slackline::report::{self, headline};

use crate::args::output::Form;
use crate::args::{OutputArgs, Shape};
use crate::tables::Tables;
use crate::terminal::input::report_diagnostics;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline bound examples/nightly.toml
  slackline bound examples/nightly.toml --metric makespan --format json")]
pub(crate) struct Bound {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    output: OutputArgs,
}

/// Why simulate, compare and plan may know a higher bound.
const UNCUT: &str = "\nSome phases are given as work, so the bound that needs tasks (prices) is missing. simulate, compare and plan\n\
    cut the work into tasks and compute it.\n";

pub(crate) fn run(args: &Bound, tables: &Tables) -> anyhow::Result<Answer> {
    let source = input::read(&args.workload, args.output.file())?;
    let loaded = source.load(&args.shape.options(&tables.importers)?)?;
    report_diagnostics(&source.name, &loaded.diagnostics);
    let bounds = bounds(&loaded.instance);
    let head = headline::lines(source.short_name(), &loaded.instance);
    let view = out::view(args.output.file());
    let body = match args.output.form() {
        Form::Table => {
            let uncut = if loaded.instance.work_uncut().slot_seconds() > 0.0 { UNCUT } else { "" };
            report::bounds::table(&bounds, &view) + uncut
        }
        Form::Csv => report::bounds::csv(&bounds),
        Form::Json => report::bounds::json(&bounds),
    };
    args.output.write(&head, &body, &view)?;
    Ok(Answer::Yes)
}
