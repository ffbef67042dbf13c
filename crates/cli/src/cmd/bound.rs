//! `bound`: what no schedule can beat.

use std::path::PathBuf;

use clap::Args;
use slackline::report::number::{Unit, column, exact};
use slackline::report::{Align, Table, headline};
use slackline_trace::Bounds;

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, Shape};
use crate::input::Source;
use crate::{lower, out, results};

#[derive(Args, Debug)]
#[command(after_help = "\
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

pub(crate) fn run(args: &Bound) -> anyhow::Result<Answer> {
    let source = Source::read(&args.workload)?;
    let loaded = source.load(&args.shape)?;
    loaded.tell(&source.name);
    let bounds = lower::bounds(&loaded.instance);
    let head = results::headlines(source.short_name(), &loaded.instance);
    let body = match args.output.form() {
        Form::Table => format!("{head}\n{}", table(&bounds)),
        Form::Csv => {
            let rows = bounds.bounds.iter().map(|(name, value)| [name.clone(), exact(Some(*value))]);
            slackline::report::csv(&["bound", "value"], rows)
        }
        Form::Json => slackline_trace::write_bounds(&bounds),
    };
    if args.output.form() != Form::Table {
        out::talk(head.trim_end());
    }
    out::text(args.output.file(), &body)?;
    Ok(Answer::Yes)
}

fn table(bounds: &Bounds) -> String {
    let objective = headline::objective(bounds.objective);
    let mut table =
        Table::new(&[("bound", Align::Left), (objective.as_str(), Align::Right), ("", Align::Left)]);
    let values: Vec<_> = bounds.bounds.iter().map(|(_, value)| Some(*value)).collect();
    let best = values.iter().position(|value| *value == bounds.best);
    for (k, cell) in column(&values, Unit::Measure).into_iter().enumerate() {
        let mark = if Some(k) == best { "best" } else { "" };
        table.row([bounds.bounds[k].0.clone(), cell, mark.to_owned()]);
    }
    table.render()
}
