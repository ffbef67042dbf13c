//! `history`: what is in the store of earlier runs.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use slackline::report::number::{Unit, column, exact};
use slackline::report::{Align, Table};
use slackline_local::HistoryStore;
use slackline_local::history::PastRun;
use slackline_local::job_cost::{JobCost, JobName, records};
use slackline_model::PhaseKind;

use super::Answer;
use crate::args::OutputArgs;
use crate::args::output::Form;
use crate::{history, out};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline history past.history
  slackline history past.history --format json --output past.json

The JSON form is the history document that `simulate` and `compare` read with --knowledge learned: the latest \
ten runs of each job together. They read the store itself as well.")]
pub(crate) struct History {
    /// The store that `run --history FILE` keeps
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &History) -> anyhow::Result<Answer> {
    let name = args.file.display().to_string();
    let bytes = std::fs::read(&args.file).with_context(|| format!("{name}: cannot be read"))?;
    history::expect_store(&name, &bytes)?;
    let store = HistoryStore::existing(&args.file);
    match args.output.form() {
        Form::Table => out::text(args.output.file(), &table(&store.runs()?))?,
        Form::Csv => out::text(args.output.file(), &csv(&store.runs()?))?,
        Form::Json => {
            let known = records(&store.latest()?);
            out::data(args.output.file(), |out| slackline_trace::write_history(out, &known))?;
        }
    }
    Ok(Answer::Yes)
}

/// When a run started, to the second, in UTC.
fn started(run: &PastRun) -> String {
    let time =
        i64::try_from(run.started).ok().and_then(|at| jiff::Timestamp::from_second(at / 1_000_000).ok());
    time.map_or_else(String::new, |time| time.to_string())
}

fn mean(cost: &JobCost, kind: PhaseKind) -> Option<f64> {
    let record = cost.record(kind);
    (record.tasks > 0).then(|| record.seconds / record.tasks as f64)
}

/// A job of a run.
type Row<'a> = (&'a PastRun, &'a JobName, &'a JobCost);

fn rows(runs: &[PastRun]) -> impl Iterator<Item = Row<'_>> {
    runs.iter().flat_map(|run| run.jobs.iter().map(move |(name, cost)| (run, name, cost)))
}

fn words(run: &PastRun, name: &JobName) -> [String; 5] {
    [started(run), run.note.workload.clone(), run.note.policy.clone(), name.flow.clone(), name.job.clone()]
}

/// A line a job of each run.
fn table(runs: &[PastRun]) -> String {
    if runs.is_empty() {
        return "no run yet\n".to_owned();
    }
    let of = |value: &dyn Fn(&JobCost) -> Option<f64>, unit| {
        column(&rows(runs).map(|(_, _, cost)| value(cost)).collect::<Vec<_>>(), unit)
    };
    let columns = [
        of(&|cost| Some(cost.maps as f64), Unit::Count),
        of(&|cost| mean(cost, PhaseKind::Map), Unit::Measure),
        of(&|cost| Some(cost.reduces as f64), Unit::Count),
        of(&|cost| mean(cost, PhaseKind::Reduce), Unit::Measure),
        of(&|cost| Some(cost.bytes_in as f64 / 1e6), Unit::Measure),
        of(&|cost| Some(cost.bytes_out as f64 / 1e6), Unit::Measure),
    ];
    let mut table = Table::new(&[
        ("started", Align::Left),
        ("workload", Align::Left),
        ("policy", Align::Left),
        ("flow", Align::Left),
        ("job", Align::Left),
        ("maps", Align::Right),
        ("seconds\na map", Align::Right),
        ("reduces", Align::Right),
        ("seconds\na reduce", Align::Right),
        ("read\nMB", Align::Right),
        ("written\nMB", Align::Right),
    ]);
    for (k, (run, name, _)) in rows(runs).enumerate() {
        table.row(words(run, name).into_iter().chain(columns.iter().map(|column| column[k].clone())));
    }
    table.render()
}

/// The same with exact numbers: seconds of all tasks together, bytes.
fn csv(runs: &[PastRun]) -> String {
    let header = [
        "started",
        "workload",
        "policy",
        "flow",
        "job",
        "maps",
        "map_seconds",
        "reduces",
        "reduce_seconds",
        "bytes_in",
        "bytes_out",
    ];
    let row = |(run, name, cost): Row<'_>| {
        let numbers = [
            cost.maps as f64,
            cost.record(PhaseKind::Map).seconds,
            cost.reduces as f64,
            cost.record(PhaseKind::Reduce).seconds,
            cost.bytes_in as f64,
            cost.bytes_out as f64,
        ];
        words(run, name).into_iter().chain(numbers.map(|number| exact(Some(number)))).collect::<Vec<_>>()
    };
    slackline::report::csv(&header, rows(runs).map(row))
}
