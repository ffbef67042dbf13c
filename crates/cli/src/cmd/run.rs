//! `run`: flows that really run, on this machine, under any policy.

mod forecast;
mod live;
mod outcome;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use slackline::Chosen;
use slackline::policy::view::Estimates;
use slackline::policy::{Config, Learning};
use slackline::report::number::counted;
use slackline_local::history::{GROUP, JobName, Jobs};
use slackline_local::run::{Found, RunError, discard, find};
use slackline_local::{
    HistoryStore, Identity, Resolved, RunEnd, Session, Settings, WorkerCommand, obstacles, resolve,
};
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::history::{PhaseName, Record};
use slackline_model::{Combine, Draft, History, Instance, Metric, Objective, Span};
use slackline_trace::{Format, ImportOptions, SourceMap, TraceError, read_workload, sha256, write_workload};

use super::Answer;
use crate::args::{OutputArgs, value};
use crate::input::{Source, tell};
use crate::out;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline run examples/first-run.toml
  slackline run flows.toml --policy woha-lpf --slots 4 --deadline nightly=3600
  slackline run flows.toml --history past.redb

A job says what it does: run = { program = \"wordcount\", inputs = [\"dir/*.txt\"], output = \"out/words\" }, or
run = { mapper = \"cmd\", reducer = \"cmd\", ... } with commands that read lines and write key TAB value lines.
An input \"@job\" is the output of an earlier job. Paths are relative to the current directory. `slackline
programs` lists what is built in.

Killed at any moment, the same command goes on where the run was. The journal, the logs of failed attempts,
the resolved workload and the schedule of what happened are in the directory of --state.")]
pub(crate) struct Run {
    /// Flow file: a workload document whose jobs say what they run, or WOHA XML with commands
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policy, with parameters as in fair:by=flow
    #[arg(long, short, value_name = "POLICY", default_value = "flowflex", value_parser = Chosen::parse, help_heading = "Policy")]
    policy: Chosen,
    /// What a flow costs, instead of the workload's metric
    #[arg(long, value_name = "METRIC", value_parser = value::metric(), help_heading = "Policy")]
    metric: Option<Metric>,
    /// Whether the sum or the maximum of the costs is to be small
    #[arg(long, value_name = "HOW", value_parser = value::combine(), help_heading = "Policy")]
    combine: Option<Combine>,
    /// A deadline: seconds after the start of the run, or a time such as 2026-03-01T06:00:00Z; may be given
    /// several times
    #[arg(long, value_name = "FLOW=WHEN", value_parser = deadline, help_heading = "Policy")]
    deadline: Vec<(String, When)>,
    /// A store of what jobs took in earlier runs, begun if it is not there; read at the start, told what this run
    /// took when it ends or is stopped. `slackline history FILE` shows it
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    history: Option<PathBuf>,

    /// Tasks at a time [default: as many as there are processors]
    #[arg(long, value_name = "N", conflicts_with = "map_slots", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Machine")]
    slots: Option<u32>,
    /// Maps at a time; goes with --reduce-slots
    #[arg(long, value_name = "N", requires = "reduce_slots", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Machine")]
    map_slots: Option<u32>,
    /// Reduces at a time; goes with --map-slots
    #[arg(long, value_name = "N", requires = "map_slots", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Machine")]
    reduce_slots: Option<u32>,
    /// Bytes of input a map reads
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = value::split, help_heading = "Machine")]
    split: u64,
    /// Memory for the buffers of each task
    #[arg(long, value_name = "BYTES", default_value = "128MiB", value_parser = value::memory, help_heading = "Machine")]
    task_memory: u64,
    /// Kill an attempt that takes longer; it counts as failed [default: a task that hangs is waited for]
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds_above_zero, help_heading = "Machine")]
    timeout: Option<f64>,
    /// Try tasks a second time that take much longer than others of their phase, on slots that are idle
    #[arg(long, help_heading = "Machine")]
    speculate: bool,
    /// How often a task may fail before its flow is given up
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Machine")]
    attempts: u16,
    /// Reduces may take slots once this fraction of their job's maps is done; 1 for not early
    #[arg(long, value_name = "F", default_value = "1", value_parser = value::fraction, help_heading = "Machine")]
    slowstart: f64,

    /// Where the run keeps its files [default: .slackline/ and the name of the flow file]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    state: Option<PathBuf>,
    /// Begin anew: remove what an earlier run of this state left, its outputs included
    #[arg(long, help_heading = "Output")]
    again: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// A moment: seconds after the start of the run, or a time of day.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Seconds(f64),
    /// Microseconds since 1970.
    Unix(i64),
}

fn deadline(text: &str) -> Result<(String, When), String> {
    let (flow, when) = text.split_once('=').ok_or("expected FLOW=WHEN")?;
    if let Ok(seconds) = when.parse::<f64>() {
        return value::seconds(&seconds.to_string()).map(|seconds| (flow.to_owned(), When::Seconds(seconds)));
    }
    let time: jiff::Timestamp = when.parse().map_err(|e| {
        format!("expected seconds after the start, or a time such as 2026-03-01T06:00:00Z: {e}")
    })?;
    Ok((flow.to_owned(), When::Unix(time.as_microsecond())))
}

pub(crate) fn run(args: &Run) -> anyhow::Result<Answer> {
    let source = Source::read(&args.workload)?;
    let root = args.state.clone().unwrap_or_else(|| default_state(&args.workload));
    // What cannot be written is better known before the run than after it.
    let store = args.history.as_deref().map(HistoryStore::new).transpose()?;
    if let Some(directory) = args.output.file().and_then(Path::parent)
        && !directory.as_os_str().is_empty()
        && !directory.is_dir()
    {
        bail!("--output: found no directory {}, expected one", directory.display());
    }
    let mut session = session(args, &source, &root, store.as_ref())?;
    for obstacle in session.obstacles() {
        let job = &session.jobs()[obstacle.job];
        out::warn(format_args!("flow {} fails: job {}: {}", job.flow, job.job, obstacle.problem));
    }
    let end = go(args, &mut session, store.as_ref());
    // What the run has learned is kept first, however it ended and whoever reads its table.
    if let Some(store) = &store {
        store.remember(&outcome::past_run(&session, source.short_name(), args.policy.spec()))?;
    }
    outcome::write(args, &session, source.short_name(), end?)
}

/// The run that is there, taken up, or a new one.
fn session(
    args: &Run,
    source: &Source,
    root: &Path,
    store: Option<&HistoryStore>,
) -> anyhow::Result<Session> {
    let identity = identity(args, source);
    if args.again {
        // Nothing is removed for a command that cannot be run.
        let begun = prepare(args, source, store)?;
        if discard(root, &begun.resolved.jobs)? {
            out::talk(format_args!("{}: the earlier run is removed, with its outputs", root.display()));
        }
        return begun.begin(find(root, &identity)?, identity);
    }
    let found = find(root, &identity).map_err(|error| match error {
        RunError::Another { .. } => anyhow::Error::from(error)
            .context("another --state keeps both runs, --again begins this one anew"),
        other => other.into(),
    })?;
    if found.is_orphaned()? {
        let begun = prepare(args, source, store)?;
        out::talk("the outputs of the earlier run are gone, so it begins anew");
        drop(found);
        discard(root, &begun.resolved.jobs)?;
        return begun.begin(find(root, &identity)?, identity);
    }
    match found.workload().map(str::to_owned) {
        Some(workload) => take_up(found, &workload),
        None => prepare(args, source, store)?.begin(found, identity),
    }
}

fn default_state(workload: &Path) -> PathBuf {
    let stem = workload.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned());
    Path::new(".slackline").join(if stem == "-" { "run".to_owned() } else { stem })
}

/// What makes this run this run: whoever changes it begins another.
fn identity(args: &Run, source: &Source) -> Identity {
    let mut options = BTreeMap::from([
        ("--policy".to_owned(), args.policy.spec().to_owned()),
        ("--split".to_owned(), args.split.to_string()),
        ("--slowstart".to_owned(), args.slowstart.to_string()),
        ("the slots".to_owned(), format!("{:?}", slots(args))),
    ]);
    options.extend(args.metric.map(|metric| ("--metric".to_owned(), metric.to_string())));
    options.extend(args.combine.map(|combine| ("--combine".to_owned(), combine.name().to_owned())));
    if !args.deadline.is_empty() {
        options.insert("--deadline".to_owned(), format!("{:?}", args.deadline));
    }
    let directory = std::env::current_dir().map_or_else(|_| String::new(), |path| path.display().to_string());
    Identity {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sha256: sha256(&source.bytes),
        directory,
        options,
    }
}

fn slots(args: &Run) -> Slots {
    match (args.map_slots.zip(args.reduce_slots), args.slots) {
        (Some((map, reduce)), _) => Slots::Typed { map, reduce },
        (None, Some(slots)) => Slots::Universal(slots),
        (None, None) => {
            let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            Slots::Universal(u32::try_from(processors).unwrap_or(1))
        }
    }
}

/// A run that can be begun.
struct Prepared {
    /// When it starts: microseconds since 1970.
    started: u64,
    resolved: Resolved,
}

impl Prepared {
    fn begin(self, found: Found, identity: Identity) -> anyhow::Result<Session> {
        let workload = write_workload(&self.resolved.draft, Format::Json);
        Ok(found.begin(identity, self.started, self.resolved, workload)?)
    }
}

/// Resolves the flow file. Nothing is written yet.
fn prepare(args: &Run, source: &Source, store: Option<&HistoryStore>) -> anyhow::Result<Prepared> {
    let imported = read_workload(&source.name, &source.bytes, None, &ImportOptions::default())?;
    tell(&source.name, &imported.diagnostics);
    let mut draft = imported.draft;
    if !draft.machines.is_empty() {
        out::talk(format_args!("{}: its cluster is left out: this machine is the cluster", source.name));
    }
    draft.machines =
        vec![MachineDraft { name: GROUP.to_owned(), count: 1, speed: 1.0, slots: slots(args), rack: None }];
    let objective = draft.objective;
    draft.objective =
        Objective::new(args.metric.unwrap_or(objective.metric), args.combine.unwrap_or(objective.combine));
    let started = slackline_local::clock::unix_micros();
    set_deadlines(args, &mut draft, started)?;
    let past = recalled(store, &draft)?;
    let resolved = resolve(&draft, args.split, &past)
        .map_err(|error| imported.source.error(vec![(error.path, error.problem)]))?;
    if resolved.jobs.is_empty() {
        bail!("{}: found no flows, expected one or more", source.name);
    }
    Instance::new(&resolved.draft).map_err(|invalid| TraceError::from_invalid(&invalid, &imported.source))?;
    refuse_the_hopeless(&resolved, &imported.source)?;
    Ok(Prepared { started, resolved })
}

/// A run of which no flow can be run is none; where some can, the others fail.
fn refuse_the_hopeless(resolved: &Resolved, source: &SourceMap) -> anyhow::Result<()> {
    let found = obstacles(&resolved.jobs, &BTreeSet::new());
    let hindered: BTreeSet<&String> = found.iter().map(|o| &resolved.jobs[o.job].flow).collect();
    if hindered.is_empty() || hindered.len() < resolved.draft.flows.len() {
        return Ok(());
    }
    let faults = found.into_iter().map(|o| (resolved.places[o.job].clone(), o.problem)).collect();
    Err(source.error(faults).into())
}

/// What earlier runs of the jobs took, by the store if there is one.
fn recalled(store: Option<&HistoryStore>, draft: &Draft) -> anyhow::Result<Jobs> {
    Ok(store.map(|store| store.recall(draft)).transpose()?.unwrap_or_default())
}

fn set_deadlines(args: &Run, draft: &mut Draft, now: u64) -> anyhow::Result<()> {
    for (k, (id, when)) in args.deadline.iter().enumerate() {
        if args.deadline[..k].iter().any(|(earlier, _)| earlier == id) {
            bail!("--deadline: found flow {id:?} twice, expected once");
        }
        let known: Vec<String> = draft.flows.iter().map(|flow| flow.id.clone()).collect();
        let Some(flow) = draft.flows.iter_mut().find(|flow| flow.id == *id) else {
            bail!("--deadline: found flow {id:?}, expected one of {}", known.join(", "));
        };
        let seconds = match *when {
            When::Seconds(seconds) => seconds,
            When::Unix(micros) => (micros - i64::try_from(now).unwrap_or(i64::MAX)) as f64 / 1e6,
        };
        if seconds < 0.0 {
            bail!("--deadline: found a time for flow {id:?} that has passed, expected one to come");
        }
        flow.deadline = Some(seconds);
    }
    Ok(())
}

/// Goes on with a run that was begun.
fn take_up(found: Found, workload: &str) -> anyhow::Result<Session> {
    let read = read_workload("journal", workload.as_bytes(), Some("json"), &ImportOptions::default())?;
    let session = found.resume(read.draft)?;
    let recovered = session.recovered();
    out::talk(format_args!(
        "going on with a run that was begun: {} done, {} cut short",
        counted(recovered.done as u64, "task"),
        counted(recovered.cut_short as u64, "attempt"),
    ));
    Ok(session)
}

/// What policies are told at the start of what finished tasks took: what this run has seen; of other phases,
/// what earlier runs took, at the sizes that are expected now.
fn known(session: &Session, instance: &Instance, past: &Jobs) -> History {
    let mut known = session.seen();
    let expected = Estimates::mean(instance).task;
    for (id, &expected) in expected.iter_enumerated() {
        let name = PhaseName::of(instance, id);
        let tasks =
            past.get(&JobName::new(&name.flow, &name.job)).map_or(0, |took| took.record(name.kind).tasks);
        if tasks > 0 {
            // Where the run has seen the phase, this changes nothing.
            known.insert(
                name,
                GROUP.to_owned(),
                Record { tasks, seconds: expected.seconds() * tasks as f64 },
            );
        }
    }
    known
}

/// Runs what is left.
fn go(args: &Run, session: &mut Session, store: Option<&HistoryStore>) -> anyhow::Result<RunEnd> {
    let Some(instance) = session.rest()? else {
        out::talk("nothing is left to do; --again begins anew");
        return Ok(if session.obstacles().is_empty() { RunEnd::Done } else { RunEnd::Failed });
    };
    let mut policy = args.policy.build(&instance);
    let known = known(session, &instance, &recalled(store, session.draft())?);
    let (learning, mut estimates) = Learning::start(&instance, &known);
    let guesses = Estimates::mean(&instance).task.into_iter().map(Span::seconds).collect::<Vec<_>>();
    let learning = learning.guessing(guesses.into(), &instance, &mut estimates);
    let config = Config {
        slowstart: args.slowstart,
        attempts_max: args.attempts,
        learning: Some(learning),
        estimates,
        ..Config::plain(&instance)
    };
    let settings = Settings {
        worker: WorkerCommand {
            program: std::env::current_exe().context("this program cannot find itself to start workers")?,
            args: vec!["worker".to_owned()],
        },
        memory_bytes: args.task_memory,
        timeout: args.timeout.map(Span::from_seconds_nearest),
        speculate: args.speculate,
    };
    let mut live = live::Live::new(session, forecast::Forecast::new(args, session), args.attempts);
    let stop = |interrupt: slackline_local::Interrupt| {
        // Without a handler ctrl-C ends the program, and the next run clears up.
        let _ = ctrlc::set_handler(move || interrupt.stop());
    };
    Ok(session.run(&instance, policy.as_mut(), (config, settings), &mut live, stop)?)
}
