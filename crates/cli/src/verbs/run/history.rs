//! `history`: durations and sizes of the jobs of earlier runs.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use slackline::report::number::{Unit, exact};
use slackline::report::{Column, Table, View};
use slackline_executor::spec::job_cost::{JobCost, JobName, records};
use slackline_executor::store::history::{HistoryStore, PastRun};
use slackline_model::PhaseKind;
use slackline_model::history::{History as Known, Record};

use crate::args::output::Form;
use crate::args::{OutputArgs, TableArgs};
use crate::terminal::numbers::{Number, megabytes, number};
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline history past.history
  slackline history past.history --format json --output past.json

JSON has no single runs: it is the document that `simulate` keeps with --knowledge learned, and sums up the latest ten runs of \
each job. `simulate` and `compare` read the history file, too.")]
pub(crate) struct History {
    /// The history that `run --history FILE` or `simulate --history FILE` keeps
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    table: TableArgs,
}

/// The columns with texts, with their ranks in the table: as [`Number::rank`], `None` for columns that are
/// never omitted.
const WORDS: [(&str, Option<u8>); 5] =
    [("started", None), ("workload", Some(4)), ("policy", Some(5)), ("flow", None), ("job", None)];

/// Every number that is kept of a job. One of rank 0 is shown only where it is asked for.
const NUMBERS: [Number<JobCost>; 8] = [
    number("maps", Unit::Count, 2, |cost| Some(cost.maps as f64)),
    number("map_seconds", Unit::Measure, 0, |cost| Some(cost.record(PhaseKind::Map).seconds)),
    number("seconds_per_map", Unit::Measure, 1, |cost| mean(cost, PhaseKind::Map)),
    number("reduces", Unit::Count, 2, |cost| Some(cost.reduces as f64)),
    number("reduce_seconds", Unit::Measure, 0, |cost| Some(cost.record(PhaseKind::Reduce).seconds)),
    number("seconds_per_reduce", Unit::Measure, 1, |cost| mean(cost, PhaseKind::Reduce)),
    megabytes("bytes_in", 3, |cost| Some(cost.bytes_in as f64)),
    megabytes("bytes_out", 3, |cost| Some(cost.bytes_out as f64)),
];

/// The names of all columns, in order.
pub(crate) fn columns() -> Vec<&'static str> {
    WORDS.iter().map(|(name, _)| *name).chain(NUMBERS.iter().map(|number| number.name)).collect()
}

pub(crate) fn run(args: &History) -> anyhow::Result<Answer> {
    let view = args.table.view(&args.output, &columns())?;
    let name = args.file.display().to_string();
    let bytes = std::fs::read(&args.file).with_context(|| format!("{name}: cannot be read"))?;
    let (history, runs) = slackline_trace::read_history(&name, &bytes)?;
    if runs.is_empty() {
        return phases(args, &history);
    }
    let store = HistoryStore::existing(&args.file);
    match args.output.form() {
        Form::Table => out::text(args.output.file(), &table(&store.runs()?, &view))?,
        Form::Csv => out::text(args.output.file(), &csv(&store.runs()?))?,
        Form::Json => {
            let known = records(&store.latest()?);
            out::data(args.output.file(), |out| slackline_trace::write_history(out, &known, &[]))?;
        }
    }
    Ok(Answer::Yes)
}

/// What is known of phases, where no real run is in the document.
fn phases(args: &History, history: &Known) -> anyhow::Result<Answer> {
    if args.table.is_given() {
        bail!("{}: has no real runs, and --columns and --sort are for real runs only", args.file.display());
    }
    let header = ["flow", "job", "phase", "group", "tasks", "seconds"];
    let rows = history.records().map(|(phase, group, record)| {
        let words = [&phase.flow, &phase.job, phase.kind.name(), group].map(str::to_owned);
        (words, record)
    });
    let rows: Vec<_> = rows.collect();
    match args.output.form() {
        Form::Table if rows.is_empty() => out::text(args.output.file(), "no run yet\n")?,
        Form::Table => {
            let words =
                |k: usize| Column::words(header[k], rows.iter().map(move |(words, _)| words[k].clone()));
            let tasks: Vec<Option<f64>> = rows.iter().map(|(_, record)| Some(record.tasks as f64)).collect();
            let seconds: Vec<Option<f64>> = rows.iter().map(|(_, record)| Some(record.seconds)).collect();
            let mut columns: Vec<Column> = (0..4).map(words).collect();
            columns.push(Column::numbers(header[4], &tasks, Unit::Count));
            columns.push(Column::numbers(header[5], &seconds, Unit::Measure));
            out::text(args.output.file(), &Table::of(columns).render(&out::view(args.output.file())))?;
        }
        Form::Csv => {
            let row = |(words, record): &([String; 4], Record)| {
                let numbers = [record.tasks.to_string(), exact(Some(record.seconds))];
                words.iter().cloned().chain(numbers).collect::<Vec<_>>()
            };
            out::text(args.output.file(), &slackline::report::csv(&header, rows.iter().map(row)))?;
        }
        Form::Json => out::data(args.output.file(), |out| slackline_trace::write_history(out, history, &[]))?,
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
    [started(run), run.note.workload.clone(), run.note.policy.clone(), name.flow_shown(), name.job.clone()]
}

/// A line a job of each run.
fn table(runs: &[PastRun], view: &View) -> String {
    if runs.is_empty() {
        return "no run yet\n".to_owned();
    }
    let cells = |k: usize| rows(runs).map(move |(run, name, _)| words(run, name)[k].clone());
    let word = |(k, (name, rank)): (usize, &(&str, Option<u8>))| {
        let column = Column::words(*name, cells(k));
        if let Some(rank) = *rank { column.rank(rank) } else { column }
    };
    let of = |number: &Number<JobCost>| {
        let column = number.column(&number.values(rows(runs).map(|(.., cost)| cost)));
        if number.rank > 0 { column.rank(number.rank) } else { column.if_asked() }
    };
    let table = Table::of(WORDS.iter().enumerate().map(word).chain(NUMBERS.iter().map(of)).collect());
    table.render(view)
}

/// The same with exact numbers.
fn csv(runs: &[PastRun]) -> String {
    let row = |(run, name, cost): Row<'_>| {
        let numbers = NUMBERS.iter().map(|number| exact((number.value)(cost)));
        words(run, name).into_iter().chain(numbers).collect::<Vec<_>>()
    };
    slackline::report::csv(&columns(), rows(runs).map(row))
}
