//! `run`: flows that really run, on any engine, under any policy.

mod live;
mod table;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use slackline::PolicySpec;
use slackline::report::number::counted;
use slackline::report::{Figures, flows, headline, write_schedule};
use slackline::run::{Deadline, Difference, Request, RunEnd, RunError, When};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Combine, Metric};

use super::Answer;
use crate::args::output::Form;
use crate::args::{EngineFlags, OutputArgs, ParameterFlags, PolicyTimeout, policy, value};
use crate::defaults::Defaults;
use crate::history::expect_store;
use crate::input::Source;
use crate::out;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline run examples/first-run.toml
  slackline run flows.toml --policy woha-lpf --slots 4 --deadline nightly=06:00
  slackline run flows.toml --history past.history

A job says what it does: run = { program = \"wordcount\", inputs = [\"dir/*.txt\"], output = \"out/words\" }, or \
run = { mapper = \"cmd\", reducer = \"cmd\", ... } with commands that read lines and write key TAB value lines. \
An input \"@job\" is the output of an earlier job. Paths are relative to the current directory. `slackline \
programs` lists what is built in.

If the run is killed, the same command resumes it. The journal, the logs of failed attempts, \
the resolved workload and the schedule of what happened are in the directory of --state.")]
pub(crate) struct Run {
    /// Flow file, whose jobs say what they run; - for standard input
    ///
    /// A workload document whose jobs have a `run` section, or WOHA XML with commands.
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policy, as in fair:by=flow
    #[arg(long, short, value_name = "POLICY", default_value = super::RUN_POLICY, value_parser = policy::standard(), help_heading = "Policy")]
    policy: PolicySpec,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    policy_timeout: PolicyTimeout,
    /// What a flow costs, instead of the workload's metric
    #[arg(long, hide_short_help = true, value_name = "METRIC", value_parser = value::metric(), help_heading = "Policy")]
    metric: Option<Metric>,
    /// Whether the sum or the maximum of the costs is to be small
    #[arg(long, hide_short_help = true, value_name = "HOW", value_parser = value::combine(), help_heading = "Policy")]
    combine: Option<Combine>,
    /// A deadline; may be given several times
    ///
    /// WHEN is seconds or a duration after the start of the run, a time of day such as 06:00, or a date and time such as
    /// 2026-03-01T06:00:00Z.
    #[arg(long, value_name = "FLOW=WHEN", value_parser = deadline, help_heading = "Policy")]
    deadline: Vec<Deadline>,
    /// Store of what jobs took in earlier runs
    ///
    /// It is begun if it is not there, read at the start, and told what this run took when it ends or is stopped; `slackline history FILE` shows it. It
    /// is no history document (JSON), which `simulate --history` keeps.
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    history: Option<PathBuf>,

    #[command(flatten)]
    engine: EngineFlags,
    /// How often a task may fail before its flow fails
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 4, value_parser = value::whole::<u16>(1, u16::MAX.into()), help_heading = "Engine")]
    attempts: u16,
    /// Fraction of maps after which reduces may take slots; 1 for not early
    #[arg(long, hide_short_help = true, value_name = "F", default_value = "1", value_parser = value::fraction, help_heading = "Engine")]
    slowstart: f64,

    /// Where the run keeps its files
    ///
    /// By default .slackline/NAME, where NAME is that of the flow file; `slackline config` shows the directory that is
    /// meant instead of .slackline.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    state: Option<PathBuf>,
    /// Start over: remove what an earlier run left
    ///
    /// Its outputs are removed as well.
    #[arg(long, help_heading = "Output")]
    again: bool,
    #[command(flatten)]
    output: OutputArgs,
}

fn deadline(text: &str) -> Result<Deadline, String> {
    let (flow, when) = text.split_once('=').ok_or("expected FLOW=WHEN")?;
    let when = When::parse_option(when).map_err(|expected| format!("expected {expected}"))?;
    match when {
        When::Seconds(seconds) if !(0.0..=SECONDS_MAX).contains(&seconds) => {
            Err(format!("expected at most {SECONDS_MAX:e} seconds, from 0"))
        }
        when => Ok(Deadline { flow: flow.to_owned(), when }),
    }
}

pub(crate) fn run(args: &Run, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    let engine = args.engine.make()?;
    let source = Source::read(&args.workload)?;
    if let Some(history) = &args.history
        && let Ok(bytes) = std::fs::read(history)
        && !bytes.is_empty()
    {
        expect_store(&history.display().to_string(), &bytes)?;
    }
    let mut request = args.request(source, defaults.state());
    request.importers = tables.importers.clone();
    request.parameters = args.parameters.parameters()?;
    let name = request.short_name().to_owned();
    let mut live = live::Live::new(&request);
    let mut run = slackline::run::Run::open(engine.as_ref(), request, &mut live).map_err(worded)?;
    let end = run.go(&mut live);
    drop(live);
    if let Err(error @ RunError::Policy { .. }) = end {
        out::error(&error.into());
        out::talk("stopped; the same command resumes it");
        return Ok(Answer::No);
    }
    if end.map_err(worded)? == RunEnd::Interrupted {
        out::talk("stopped; the same command resumes it");
        return Ok(Answer::No);
    }
    let mut outcome = run.outcome().map_err(worded)?;
    let figures = Figures::of_schedule(&outcome.schedule, &outcome.metrics);
    match args.output.form() {
        Form::Table => {
            let head = headline::lines(&name, &outcome.instance);
            let predicted = run.prediction().map_err(worded)?;
            let columns = table::Columns { policy: &args.policy, has_history: args.history.is_some() };
            let text = columns.table(predicted.as_ref(), &outcome, figures, &out::view(args.output.file()));
            let files = format!(
                "\nschedule of what happened: {}\nits workload: {}\n",
                outcome.schedule_file.display(),
                outcome.workload_file.display()
            );
            out::text(args.output.file(), &format!("{head}\n{text}{files}"))?;
        }
        Form::Csv => out::text(args.output.file(), &flows::csv(&outcome.instance, &outcome.schedule))?,
        Form::Json => out::data(args.output.file(), |out| {
            let (instance, schedule) = (&outcome.instance, &mut outcome.schedule);
            write_schedule(out, instance, schedule, &figures, &outcome.meta)
        })?,
    }
    match outcome.failed() {
        0 => Ok(Answer::Yes),
        failed => {
            out::warn(format_args!("{} failed; the reasons are above", counted(failed as u64, "flow")));
            Ok(Answer::No)
        }
    }
}

impl Run {
    /// What is asked for; `states` is where runs have their state directories.
    fn request(&self, source: Source, states: &Path) -> Request {
        let state = self.state.clone().unwrap_or_else(|| states.join(state_name(&self.workload)));
        let mut request =
            Request::new(source.name, source.bytes, self.policy_timeout.of(self.policy.clone()), state);
        request.metric = self.metric;
        request.combine = self.combine;
        request.deadlines.clone_from(&self.deadline);
        request.slowstart = self.slowstart;
        request.attempts_max = self.attempts;
        request.history.clone_from(&self.history);
        request.again = self.again;
        request
    }
}

/// The name of a run's state directory.
fn state_name(workload: &Path) -> String {
    let stem = workload.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned());
    if stem == "-" { "run".to_owned() } else { stem }
}

/// An error in the words of the command line.
fn worded(error: RunError) -> anyhow::Error {
    match error {
        RunError::Deadline(error) => anyhow!("--{error}"),
        RunError::Another { path, difference } => {
            let difference = match difference {
                Difference::Option(name) => Difference::Option(format!("--{name}")),
                other => other,
            };
            anyhow::Error::from(RunError::Another { path, difference })
                .context("another --state keeps both runs, --again starts this one over")
        }
        other => other.into(),
    }
}
