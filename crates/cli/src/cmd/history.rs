//! `history`: what is in the store of earlier runs.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use slackline::report::number::{Unit, exact};
use slackline::report::{Column, Table, View};
use slackline_local::HistoryStore;
use slackline_local::history::PastRun;
use slackline_local::job_cost::{JobCost, JobName, records};
use slackline_model::PhaseKind;

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, TableArgs};
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
    #[command(flatten)]
    table: TableArgs,
}

/// What may be asked for with `--columns`.
const COLUMNS: [&str; 11] = [
    "started",
    "workload",
    "policy",
    "flow",
    "job",
    "maps",
    "seconds_per_map",
    "reduces",
    "seconds_per_reduce",
    "mb_read",
    "mb_written",
];

pub(crate) fn run(args: &History) -> anyhow::Result<Answer> {
    let view = args.table.view(&args.output, &COLUMNS)?;
    let name = args.file.display().to_string();
    let bytes = std::fs::read(&args.file).with_context(|| format!("{name}: cannot be read"))?;
    history::expect_store(&name, &bytes)?;
    let store = HistoryStore::existing(&args.file);
    match args.output.form() {
        Form::Table => out::text(args.output.file(), &table(&store.runs()?, &view))?,
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
fn table(runs: &[PastRun], view: &View) -> String {
    if runs.is_empty() {
        return "no run yet\n".to_owned();
    }
    let [started, workload, policy, flow, job, maps, per_map, reduces, per_reduce, read, written] = COLUMNS;
    let said = |k: usize| rows(runs).map(move |(run, name, _)| words(run, name)[k].clone());
    let of = |column: &str, unit, value: &dyn Fn(&JobCost) -> Option<f64>| {
        let values: Vec<Option<f64>> = rows(runs).map(|(_, _, cost)| value(cost)).collect();
        Column::numbers(column, &values, unit)
    };
    let table = Table::of(vec![
        Column::words(started, said(0)),
        Column::words(workload, said(1)).rank(4),
        Column::words(policy, said(2)).rank(5),
        Column::words(flow, said(3)),
        Column::words(job, said(4)),
        of(maps, Unit::Count, &|cost| Some(cost.maps as f64)).rank(2),
        of(per_map, Unit::Measure, &|cost| mean(cost, PhaseKind::Map)).heading("seconds\na map").rank(1),
        of(reduces, Unit::Count, &|cost| Some(cost.reduces as f64)).rank(2),
        of(per_reduce, Unit::Measure, &|cost| mean(cost, PhaseKind::Reduce))
            .heading("seconds\na reduce")
            .rank(1),
        of(read, Unit::Measure, &|cost| Some(cost.bytes_in as f64 / 1e6)).heading("read\nMB").rank(3),
        of(written, Unit::Measure, &|cost| Some(cost.bytes_out as f64 / 1e6)).heading("written\nMB").rank(3),
    ]);
    table.render(view)
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
