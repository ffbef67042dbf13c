//! `export`: a schedule as a file for another program.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use slackline::export::charts::{self, Chart, Size, Timeline};
use slackline::export::{self, ExportError, InLines, Jobs, Perfetto};
use slackline::import::{ImportError, Opened, ScheduleDocument, WorkloadOptions};
use slackline::model::Instance;
use slackline::simulate::RowWriter;
use slackline_trace::Importers;
use slackline_trace::reading::format::ending;

use crate::args::output::{ExportForm, Forms, OutputArgs};
use crate::args::{ParameterFlags, Shape, value};
use crate::tables::Tables;
use crate::terminal::input::Source;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline simulate examples/nightly.toml --policy edf --output edf.json
  slackline export examples/nightly.toml edf.json --format perfetto --output edf.perfetto.json
  slackline export examples/nightly.toml edf.json --output edf.svg --chart gantt
  slackline export examples/nightly.toml edf.json --output jobs.csv

The schedule has tasks (simulate, run, or plans that have tasks):
  perfetto  Chrome's trace event format: a process for each machine, a thread for each slot, a slice for each task. Two files in lines \
(.jsonl) are read as streams, with only active flows in memory
  csv       a row for each job, with the column names of Batsim and evalys
  svg       one chart (--chart)

The schedule is not checked: `slackline check` does that. The options that the schedule records (import, cluster, objective, deadlines, \
grain) are applied again; options given here override them.")]
pub(crate) struct Export {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Schedule of the workload, as a document or in lines (.jsonl); - for standard input
    #[arg(value_name = "SCHEDULE")]
    schedule: PathBuf,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    parameters: ParameterFlags,
    /// Chart to draw: flows, gantt, utilisation, response, wait, slowdown [default: flows]
    ///
    /// flows: slots of each flow over time. gantt: the tasks on each slot. utilisation: used slots and unfinished
    /// flows over time. response, wait, slowdown: their distributions over flows.
    #[arg(long, value_name = "CHART", value_parser = value::chart(), hide_possible_values = true, help_heading = "Output")]
    chart: Option<Chart>,
    /// Width and height of the chart in pixels [default: depends on the chart]
    #[arg(long, value_name = "WxH", value_parser = value::size, help_heading = "Output")]
    size: Option<Size>,
    #[command(flatten)]
    output: OutputArgs<ExportForm>,
}

pub(crate) fn run(args: &Export, tables: &Tables) -> anyhow::Result<Answer> {
    let form = args.output.form();
    let flags = [("chart", args.chart.is_some()), ("size", args.size.is_some())];
    if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && form != ExportForm::Svg) {
        bail!("--{flag}: found --format {}, expected svg", form.name());
    }
    of_schedule(args, &args.schedule, tables)?;
    Ok(Answer::Yes)
}

enum Rows {
    /// Read while they are written.
    InLines(Box<InLines>),
    /// In memory.
    Whole { written: Source, instance: Box<Instance>, importers: Importers },
}

impl Rows {
    fn go(self, out: &mut dyn RowWriter) -> anyhow::Result<()> {
        let done = match self {
            Self::InLines(both) => both.rows(out).map(|()| true),
            Self::Whole { written, instance, importers } => {
                let document = ScheduleDocument::open(&written, &importers)?;
                match export::document(&document, &instance, out) {
                    Ok(false) => bail!(
                        "{}: found a plan of slots without tasks, expected a schedule of tasks, as simulate and run write it",
                        written.name
                    ),
                    done => done,
                }
            }
        };
        match done {
            // The caller handles these.
            Err(ExportError::Output(error)) => Err(error.into()),
            other => Ok(other.map(drop)?),
        }
    }
}

fn of_schedule(args: &Export, schedule: &Path, tables: &Tables) -> anyhow::Result<()> {
    if [&args.workload, schedule].iter().all(|path| path.as_os_str() == "-") {
        bail!("found - twice, expected only one of WORKLOAD and SCHEDULE from standard input");
    }
    let form = args.output.form();
    let rows = read(args, schedule, tables)?;
    let file = args.output.file();
    match form {
        ExportForm::Perfetto => write(file, |out| {
            let mut trace = Perfetto::new(out);
            rows.go(&mut trace)?;
            Ok(trace.end()?)
        }),
        ExportForm::Csv => write(file, |out| {
            let mut jobs = Jobs::new(out);
            rows.go(&mut jobs)?;
            Ok(jobs.end()?)
        }),
        ExportForm::Svg => {
            let mut timeline = Timeline::new();
            rows.go(&mut timeline)?;
            let chart = args.chart.unwrap_or(Chart::ALL[0]);
            let size = args.size.unwrap_or_else(|| Size::usual(chart, &timeline));
            match charts::svg(&timeline, chart, size) {
                Ok(svg) => out::text(file, &svg),
                Err(problem) => bail!("{}: {problem}", schedule.display()),
            }
        }
    }
}

/// Reads both, as a stream if both are in lines.
fn read(args: &Export, schedule: &Path, tables: &Tables) -> anyhow::Result<Rows> {
    let parameters = args.parameters.parameters()?;
    let options = WorkloadOptions { parameters, ..args.shape.options(&tables.importers)? };
    let output = args.output.file();
    let is_in_lines =
        |path: &&Path| ending(&path.to_string_lossy()).as_deref() == Some("jsonl") && path.is_file();
    if [schedule, &args.workload].iter().all(is_in_lines) {
        let (name, lines) = input::open(schedule, output)?;
        let (workload, flows) = input::open(&args.workload, output)?;
        let schedule = Opened { name: &name, source: lines };
        let workload = Opened { name: &workload, source: flows };
        if let Some(both) = InLines::open(schedule, workload, options.clone())? {
            return Ok(Rows::InLines(Box::new(both)));
        }
    }
    let written = input::read(schedule, output)?;
    let document = ScheduleDocument::open(&written, &tables.importers)?;
    let workload = input::read(&args.workload, output)?;
    document.made_for(&workload).map_err(ImportError::from)?;
    let instance = Box::new(document.load(&workload, options, None)?.instance);
    Ok(Rows::Whole { written, instance, importers: tables.importers.clone() })
}

/// Writes what may fail for other reasons than the output; these are said in their own words.
fn write(
    file: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut wrong = None;
    let written = out::data(file, |out| {
        content(out).map_err(|error| {
            error.downcast::<std::io::Error>().unwrap_or_else(|other| {
                wrong = Some(other);
                std::io::Error::other("there is nothing to write")
            })
        })
    });
    wrong.map_or(written, Err)
}
