//! `run`: runs flows on any engine, under any policy.

mod choice;
mod live;
mod page;
mod summary;
mod table;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use slackline::PolicySpec;
use slackline::names::listed;
use slackline::report::number::counted;
use slackline::report::{Figures, flows, headline, write_schedule};
use slackline::run::{
    Backend, Deadline, Ending, EngineError, Events, Forecast, HookCommands, Hooks, JobFigures, Note, Outcome,
    Overview, Request, RunEnd, RunError, RunEvent, Sink, Stop, TimeSpec, Verdict,
};
use slackline_executor::fleet::concurrent_runs::{self, ConcurrentRun};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Combine, Metric, Time};

use crate::args::defaults::Defaults;
use crate::args::output::Form;
use crate::args::state::state_name;
use crate::args::{
    EngineFlags, OutputArgs, ParameterFlags, PolicyTimeout, ReportArgs, TaskRules, path, policy, secret,
    value,
};
use crate::tables::Tables;
use crate::terminal::input::Source;
use crate::terminal::{input, jobs, out};
use crate::verbs::answer::Answer;
use crate::verbs::run::programs;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline run examples/first-run.toml
  slackline run flows.toml --policy woha-lpf --slots 4 --deadline nightly=06:00
  slackline run flows.toml --history past.history

A job has a run section: { program = \"wordcount\", inputs = [\"dir/*.txt\"], output = \"out/words\" }, or \
{ mapper = \"cmd\", reducer = \"cmd\", ... } with commands that read lines and write lines of a key, a tab and a value. \
An input \"@job\" is the output of an earlier job. Paths are relative to the current directory. `slackline run \
--list-programs` lists the built-in programs.

If the run is killed, the same command resumes it. A finished job is not run again unless its definition, inputs or \
output changed; the output of the run names the reason. The journal, the logs of failed attempts, \
the resolved workload and the executed schedule are in the directory of --state.")]
pub(crate) struct Run {
    /// Flow file, whose jobs have run sections; - for standard input
    ///
    /// A workload document, or WOHA XML with commands.
    #[arg(value_name = "WORKLOAD", required_unless_present = "list_programs")]
    workload: Option<PathBuf>,
    /// List the built-in programs that jobs can run, and how
    #[arg(long, exclusive = true, hide_short_help = true)]
    list_programs: bool,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    choice: choice::JobChoice,
    /// A deadline; may be given several times
    ///
    /// WHEN is seconds or a duration after the start of the run, a time of day such as 06:00, or a date and
    /// time such as 2026-03-01T06:00:00Z.
    #[arg(long, value_name = "FLOW=WHEN", value_parser = deadline, help_heading = "Jobs")]
    deadline: Vec<Deadline>,
    #[command(flatten)]
    hooks: HookFlags,
    /// Policy (see `slackline policies`)
    ///
    /// Parameters follow a colon, as in fair:by=flow.
    #[arg(long, short, value_name = "POLICY", default_value = policy::DEFAULT_POLICY, value_parser = policy::standard(), help_heading = "Policy")]
    policy: PolicySpec,
    #[command(flatten)]
    policy_timeout: PolicyTimeout,
    /// Cost of a flow in the objective [default: the workload's]
    #[arg(long, hide_short_help = true, value_name = "METRIC", value_parser = value::metric(), help_heading = "Policy")]
    metric: Option<Metric>,
    /// Objective: sum or maximum of the costs
    #[arg(long, hide_short_help = true, value_name = "HOW", value_parser = value::combine(), help_heading = "Policy")]
    combine: Option<Combine>,
    /// File with the durations of jobs in earlier runs
    ///
    /// It is created if it is missing, read at the start, and updated when the run ends or is stopped.
    /// `slackline history FILE` shows it; `simulate` and `compare` read it, too. Several runs may use it at a
    /// time.
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    history: Option<PathBuf>,

    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    tasks: TaskRules,

    /// Directory for the files of the run
    ///
    /// By default .slackline/NAME, where NAME is the name of the flow file. The defaults file can set another
    /// directory than .slackline, which `slackline config` shows.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    state: Option<PathBuf>,
    #[command(flatten)]
    progress: ProgressFlags,
    /// After the summary, print tables of flows, predictions and jobs
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    stats: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Messages while it runs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
struct ProgressFlags {
    /// Append the events of the run to FILE, a line of JSON each
    ///
    /// Their schema is docs/schema/events.schema.json.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Print a line for each task
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Print errors only, and no summary
    #[arg(long, short)]
    quiet: bool,
    /// On a terminal, print lines instead of showing the live view
    ///
    /// The view appears after a second; ? shows its keys. Messages are printed when it ends.
    #[arg(long, hide_short_help = true)]
    no_live: bool,
}

/// Commands to run when something has happened.
#[derive(Args, Debug)]
#[command(next_help_heading = "Jobs")]
struct HookFlags {
    /// Command to run when the run ends, also if it fails
    ///
    /// `sh -c` runs it in parallel, with SLACKLINE_EVENT (end, failure or late), SLACKLINE_FLOW,
    /// SLACKLINE_STATE and SLACKLINE_MESSAGE in its environment. At the end `run` waits for it for at
    /// most 10 seconds. If it fails, a warning is printed.
    #[arg(long = "on-end", hide_short_help = true, value_name = "COMMAND", value_parser = path::command)]
    end: Option<String>,
    /// Command to run for each flow that failed
    ///
    /// Its environment also has SLACKLINE_JOB, SLACKLINE_CAUSE (the reason of the failure) and SLACKLINE_LOG (the
    /// file with the log of the attempt).
    #[arg(long = "on-failure", value_name = "COMMAND", value_parser = path::command)]
    failure: Option<String>,
    /// Command to run once for each flow that is likely to miss its deadline
    #[arg(long = "on-late", hide_short_help = true, value_name = "COMMAND", value_parser = path::command)]
    late: Option<String>,
}

fn deadline(text: &str) -> Result<Deadline, String> {
    let (flow, when) = text.split_once('=').ok_or("expected FLOW=WHEN")?;
    let when = TimeSpec::parse_option(when).map_err(|expected| format!("expected {expected}"))?;
    match when {
        TimeSpec::Seconds(seconds) if !(0.0..=SECONDS_MAX).contains(&seconds) => {
            Err(format!("expected at most {SECONDS_MAX:e} seconds, from 0"))
        }
        when => Ok(Deadline { flow: flow.to_owned(), when }),
    }
}

pub(crate) fn run(args: &Run, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    let Some(workload) = &args.workload else {
        return programs::list();
    };
    let engine = args.engine.make()?;
    input::report_remarks(std::slice::from_ref(&args.policy));
    let source = Source::read(workload)?;
    let state = args.state.clone().unwrap_or_else(|| defaults.state().join(state_name(workload)));
    let mut request = args.request(source, state);
    request.importers = tables.importers.clone();
    request.parameters = args.parameters.parameters()?;
    let name = request.short_name().to_owned();
    if args.choice.dry_run {
        if args.output.form() != Form::Table {
            bail!("--dry-run: found csv or json, by --format or the name of the output, expected a table");
        }
        if args.report.is_asked() {
            bail!("--dry-run: found --report, expected only one of them: a dry run has no report");
        }
        let mut live = live::RunDisplay::new(&request, args.verbosity());
        let preview =
            slackline::run::Run::preview(engine.as_ref(), &request, &mut live).map_err(with_flag_names)?;
        let view = out::view(args.output.file());
        out::text(args.output.file(), &choice::table(&preview, &view))?;
        let is_prevented = preview.jobs.iter().any(|job| matches!(job.verdict, Verdict::Prevented(_)));
        return Ok(if is_prevented { Answer::No } else { Answer::Yes });
    }
    let mut events = args.progress.events.as_deref().map(|path| events(path, &request)).transpose()?;
    let here = RunAnnouncement { name: &name, engine: engine.as_ref(), state: &request.state };
    let _announced = args.announce(&here);
    let mut live = live::RunDisplay::new(&request, args.verbosity());
    if !args.progress.no_live {
        live = live.with_view(&request);
    }
    let mut hooks = Hooks::new(args.hooks()?, &request, |problem: &str| out::warn(problem));
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut live, &mut hooks];
    if let Some(events) = &mut events {
        sinks.push(events);
    }
    let opened = slackline::run::Run::open(engine.as_ref(), request, &mut sinks);
    let run = match opened {
        Ok(run) => run,
        Err(error) => {
            sinks.end(&Ending::Error(error.to_string()));
            return Err(with_flag_names(error));
        }
    };
    let went = run.go(&mut sinks);
    sinks.end(&ending(&went));
    drop((live, hooks, events));
    if let Err(error @ (RunError::Policy { .. } | RunError::Engine(EngineError::Stopped(_)))) = went {
        out::error(&error.into());
        out::talk("stopped; the same command resumes it");
        return Ok(Answer::No);
    }
    let (run, end) = went.map_err(with_flag_names)?;
    if end == RunEnd::Interrupted {
        out::talk("stopped; the same command resumes it");
        return Ok(Answer::Stopped);
    }
    if run.record().workload.flows.is_empty() && args.output.form() == Form::Table {
        // Everything was done already, and nothing is known of when.
        return Ok(Answer::Yes);
    }
    let mut outcome = match run.outcome() {
        // Neither use nor input is wrong.
        Err(error @ (RunError::File { .. } | RunError::Infeasible { .. })) => {
            out::error(&error.into());
            return Ok(Answer::No);
        }
        outcome => outcome.map_err(with_flag_names)?,
    };
    args.write_page(&name, &run, &outcome)?;
    if args.progress.quiet && args.output.file().is_none() && args.output.form() == Form::Table {
        return Ok(if outcome.failed() == 0 { Answer::Yes } else { Answer::No });
    }
    // The exit code depends on the run, not on whether its output is read.
    out::unless_closed(args.show(&name, &run, &mut outcome))?;
    match outcome.failed() {
        0 => Ok(Answer::Yes),
        failed => {
            // On a terminal the summary says so.
            if args.output.file().is_some() || !std::io::stdout().is_terminal() {
                out::warn(format_args!("{} failed", counted(failed as u64, "flow")));
            }
            Ok(Answer::No)
        }
    }
}

/// The file that events are added to.
fn events(path: &Path, request: &Request) -> anyhow::Result<EventFile> {
    let file = File::options().append(true).create(true).open(path);
    let file = file.with_context(|| format!("--events: {}: cannot be written", path.display()))?;
    Ok(EventFile { events: Events::new(file, request), path: path.to_owned() })
}

/// The event file; if writing fails, a warning is printed at the end.
struct EventFile {
    events: Events<File>,
    path: PathBuf,
}

impl Sink for EventFile {
    fn note(&mut self, note: &Note<'_>) {
        self.events.note(note);
    }

    fn begin(&mut self, overview: &Overview, stop: Stop) {
        self.events.begin(overview, stop);
    }

    fn happened(&mut self, now: Time, event: &RunEvent, forecast: &Forecast) {
        self.events.happened(now, event, forecast);
    }

    fn end(&mut self, ending: &Ending) {
        self.events.end(ending);
        if let Some(problem) = self.events.problem() {
            let path = self.path.display();
            out::warn(format_args!("--events: {path}: cannot be written, so lines are missing: {problem}"));
        }
    }
}

/// How a session of a run ended.
fn ending(went: &Result<(slackline::run::Run, RunEnd), RunError>) -> Ending {
    match went {
        Err(error) => Ending::Error(error.to_string()),
        Ok((_, RunEnd::Done)) => Ending::Done,
        Ok((_, RunEnd::Interrupted)) => Ending::Stopped,
        Ok((run, _)) => {
            let did = JobFigures::all(run.record().workload, run.record().attempts);
            let open = did.iter().filter(|job| !job.is_done()).map(|job| job.flow.as_str());
            Ending::Failed(open.collect::<BTreeSet<_>>().len())
        }
    }
}

/// What other runs on this machine learn of this one.
struct RunAnnouncement<'a> {
    name: &'a str,
    engine: &'a dyn Backend,
    state: &'a Path,
}

impl Run {
    fn verbosity(&self) -> live::Verbosity {
        match (self.progress.quiet, self.progress.verbose) {
            (true, _) => live::Verbosity::Quiet,
            (_, true) => live::Verbosity::Verbose,
            _ => live::Verbosity::Usual,
        }
    }

    fn hooks(&self) -> anyhow::Result<HookCommands> {
        for (option, command) in [
            ("--on-end", &self.hooks.end),
            ("--on-failure", &self.hooks.failure),
            ("--on-late", &self.hooks.late),
        ] {
            secret::refuse_in_command(option, command.as_deref())?;
        }
        let mut hooks = HookCommands::default();
        hooks.on_end.clone_from(&self.hooks.end);
        hooks.on_failure.clone_from(&self.hooks.failure);
        hooks.on_late.clone_from(&self.hooks.late);
        Ok(hooks)
    }

    /// Lets other runs of this user know of this one, and warns of those there are: slots are counted for
    /// each alone. If that fails the run continues without.
    fn announce(&self, here: &RunAnnouncement<'_>) -> Option<ConcurrentRun> {
        if !self.engine.is_local() {
            return None;
        }
        let slots = here
            .engine
            .description()
            .machines
            .iter()
            .map(|machine| machine.count * machine.slots.total())
            .sum();
        let others = concurrent_runs::others();
        if !others.is_empty() && !self.progress.quiet {
            let total: u32 = others.iter().map(|other| other.slots).sum();
            let names: Vec<String> = others
                .iter()
                .map(|other| format!("{} ({})", other.state, counted(other.slots.into(), "slot")))
                .collect();
            let advice = if self.engine.is_on("share") { "" } else { "; --engine local:share=on takes half" };
            out::warn(format_args!(
                "{} running on this machine with {}, in addition to the {slots} of this run: {}{advice}",
                counted(others.len() as u64, "other run") + if others.len() == 1 { " is" } else { " are" },
                counted(total.into(), "slot"),
                listed(&names)
            ));
        }
        let state = std::path::absolute(here.state).unwrap_or_else(|_| here.state.to_owned());
        match ConcurrentRun::announce(here.name, &state, slots) {
            Ok(announced) => Some(announced),
            Err(error) => {
                if self.progress.verbose {
                    out::warn(format_args!("other runs cannot see this one: {error}"));
                }
                None
            }
        }
    }

    fn show(&self, name: &str, run: &slackline::run::Run, outcome: &mut Outcome) -> anyhow::Result<()> {
        let figures = Figures::of_schedule(&outcome.schedule, &outcome.metrics);
        let file = self.output.file();
        match self.output.form() {
            Form::Table => {
                let view = out::view(file);
                let record = run.record();
                let summary = summary::summary(&record, outcome, &run.request().state, &view);
                if !self.stats {
                    return out::text(file, &summary);
                }
                let head = headline::lines(name, &outcome.instance);
                let predicted = run.prediction().map_err(with_flag_names)?;
                let columns = table::Columns { policy: &self.policy };
                let text = columns.table(predicted.as_ref(), outcome, figures, &view);
                let jobs = jobs::table(&JobFigures::all(record.workload, record.attempts), &view);
                let files = format!(
                    "executed schedule: {}\nits workload: {}\n",
                    outcome.schedule_file.display(),
                    outcome.workload_file.display()
                );
                out::text(file, &format!("{summary}\n{head}\n{text}\n{jobs}\n{files}"))
            }
            Form::Csv => out::text(file, &flows::csv(&outcome.instance, &outcome.schedule)),
            Form::Json => out::data(file, |out| {
                let (instance, schedule) = (&outcome.instance, &mut outcome.schedule);
                write_schedule(out, instance, schedule, &figures, &outcome.meta)
            }),
        }
    }

    fn request(&self, source: Source, state: PathBuf) -> Request {
        let mut request =
            Request::new(source.name, source.bytes, self.policy_timeout.of(self.policy.clone()), state);
        request.metric = self.metric;
        request.combine = self.combine;
        request.deadlines.clone_from(&self.deadline);
        request.slowstart = self.tasks.slowstart;
        request.attempts_max = self.tasks.attempts;
        request.failure_policy = self.tasks.failure_policy;
        request.history.clone_from(&self.history);
        request.choices = self.choice.choices();
        request
    }
}

/// An error in the words of the command line.
fn with_flag_names(error: RunError) -> anyhow::Error {
    match error {
        RunError::Deadline(error) => anyhow!("--{error}"),
        RunError::Engine(error @ EngineError::Another { .. }) => {
            anyhow!("{error}; --again starts this one over, another --state keeps both runs")
        }
        RunError::Engine(EngineError::Choice(error)) => anyhow!("--force, --from-job, --only: {error}"),
        other => other.into(),
    }
}
