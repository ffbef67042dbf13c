//! `status`: the progress of a run that is running, was stopped or has ended.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use slackline::PolicySpec;
use slackline::report::number::{counted, duration, exact, instant, instants, tasks_of_job};
use slackline::report::table::fitted;
use slackline::report::{Align, Column, Table, View};
use slackline::run::{
    ExternalJob, FlowState, JobFigures, KeptJob, MachineState, NamedAttempt, Segment, Stage, StateOfRun,
};
use slackline_task::base::clock;

use crate::args::defaults::Defaults;
use crate::args::output::{Form, Forms};
use crate::args::server::submission;
use crate::args::state::{RunSelector, look_at};
use crate::args::{OutputArgs, ServerFlags};
use crate::tables::Tables;
use crate::terminal::watch::content::{NO_HISTORY, UNKNOWN, running_task, times, verdict};
use crate::terminal::watch::{Observation, Stream, ViewEnd, Watch};
use crate::terminal::{jobs, out};
use crate::verbs::answer::Answer;
use crate::verbs::service::queue;

const PAUSE: Duration = Duration::from_secs(1);
/// How many running tasks are listed.
const AT_WORK: usize = 10;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline status
  slackline status --state flows.toml --follow
  slackline status --state /var/lib/slackline/night --format json
  slackline status 17

The run is that of --state, or the only one in .slackline, as for `explain` and `logs`. `status` locks and changes nothing, \
so it can be used at any time, also for a run that was killed. Predictions are simulated under the policy of \
the run, with durations estimated from finished tasks; for a stopped run, as if it were resumed now.

A number is a submission of a service (`slackline serve`), as `queue` shows it; --server without one shows the service.")]
pub(crate) struct Status {
    /// The run, as for --state
    #[arg(value_name = "RUN", conflicts_with = "state")]
    workload: Option<PathBuf>,
    /// The run: its state directory, its flow file or its schedule [default: the only run]
    #[arg(long, value_name = "RUN")]
    state: Option<PathBuf>,
    /// Update every second until the run ends
    ///
    /// On a terminal this is a live view; ? shows its keys.
    #[arg(long)]
    follow: bool,
    /// With --follow, redraw the table instead of showing the live view
    #[arg(long, requires = "follow")]
    no_live: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Status, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    let named = args.state.as_deref().or(args.workload.as_deref());
    let is_of_service = submission(named).is_some() || args.server.is_given() && named.is_none();
    if args.follow && is_of_service {
        bail!("--follow: found a service, expected a run: slackline top follows a service");
    }
    match submission(named) {
        Some(number) => return queue::one(number, &args.server, &args.output, defaults),
        None if is_of_service => return queue::service(&args.server, &args.output, defaults),
        None => {}
    }
    let named = RunSelector { workload: args.workload.as_deref(), state: args.state.as_deref() };
    let directory = named.directory(defaults.state())?;
    let is_shown = args.output.file().is_none() && std::io::stdout().is_terminal();
    if args.follow && args.output.form() != Form::Table {
        bail!("--follow: found --format {}, expected a table", args.output.form().name());
    }
    let first = observe(&directory, defaults.state(), tables)?;
    if args.follow
        && !args.no_live
        && is_shown
        && first.stage == Stage::Running
        && Stream::Out.is_interactive()
    {
        return watch(args, &directory, tables, defaults);
    }
    let mut state = first;
    loop {
        let is_running = args.follow && state.stage == Stage::Running;
        // Without a terminal, only the last state is printed.
        if !is_running || is_shown {
            show(args, &state, args.follow && is_shown)?;
        }
        if !is_running {
            return Ok(Answer::Yes);
        }
        clock::pause(PAUSE);
        state = observe(&directory, defaults.state(), tables)?;
    }
}

/// Follows a run in a view. When the run is over, its table remains.
fn watch(args: &Status, directory: &Path, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    let look = {
        let (directory, states, tables) = (directory.to_owned(), defaults.state().to_owned(), tables.clone());
        move || match observe(&directory, &states, &tables) {
            Ok(state) if state.stage == Stage::Running => Observation::State(Box::new(state)),
            // The result is printed when the view has ended.
            _ => Observation::Finished,
        }
    };
    match Watch::observe(Box::new(look))? {
        ViewEnd::ByInterrupt => return Ok(Answer::Stopped),
        ViewEnd::RunFinished => show(args, &observe(directory, defaults.state(), tables)?, false)?,
        ViewEnd::Open | ViewEnd::ByKey => {}
    }
    Ok(Answer::Yes)
}

/// The run as it is now.
fn observe(directory: &Path, states: &Path, tables: &Tables) -> anyhow::Result<StateOfRun> {
    let look = look_at(directory, states)?;
    // The policy may be unknown here, or belong to another program: then there is no prediction.
    let policy: Option<PolicySpec> = look.policy().and_then(|spec| tables.policies.parse(spec).ok());
    Ok(StateOfRun::of(&look, policy.as_ref(), clock::unix_micros()))
}

fn show(args: &Status, state: &StateOfRun, redraws: bool) -> anyhow::Result<()> {
    let text = match args.output.form() {
        Form::Table => table(state, &out::view(args.output.file())),
        Form::Csv => csv(state),
        Form::Json => format!("{:#}\n", document(state)),
    };
    if redraws {
        return Ok(out::redraw(&text)?);
    }
    out::text(args.output.file(), &text)
}

/// The text output: the run, its flows, its jobs, its running tasks.
fn table(state: &StateOfRun, view: &View) -> String {
    let figures: Vec<JobFigures> =
        state.flows.iter().flat_map(|flow| flow.jobs.iter().map(|job| job.figures.clone())).collect();
    let mut out = fitted(&headline(state), view.width);
    if !state.flows.is_empty() {
        out.extend(["\n", &flows(state, view), "\n"]);
        let has_ended = |job: &JobFigures| job.phases().iter().any(|phase| phase.ended.is_some());
        if figures.iter().any(has_ended) {
            out.push_str(&jobs::table(&figures, view));
        } else {
            out.push_str("no task has ended yet\n");
        }
    }
    if !state.kept.is_empty() {
        out.extend(["\nfinished by earlier runs:\n", &kept(state, view)]);
    }
    if !state.there.is_empty() {
        out.extend(["\non the cluster:\n", &there(state, view)]);
    }
    if !state.machines.is_empty() {
        out.extend(["\n", &machines(state, view)]);
    }
    if !state.at_work.is_empty() {
        out.extend(["\n", &at_work(state)]);
    }
    out
}

/// The jobs on a cluster: their application ids and states.
fn there(state: &StateOfRun, view: &View) -> String {
    let all: Vec<&ExternalJob> = state.there.iter().collect();
    let words = |name: &str, cell: &dyn Fn(&ExternalJob) -> String| {
        Column::words(name, all.iter().map(|one| cell(one)).collect::<Vec<_>>())
    };
    let at = |name: &str, of: fn(&ExternalJob) -> Option<u64>| {
        let values: Vec<Option<f64>> =
            all.iter().map(|one| Some(of(one)? as f64 / 1e6).filter(|_| state.is_of_run(one))).collect();
        Column::written(name, &values, instants(&values, state.start.as_ref()))
    };
    let table = Table::of(vec![
        words("job", &|one| format!("{}/{}", one.flow, one.job)),
        words("application", &|one| one.applications.join(", ")),
        words("remarks", &|one| state.stage_there(one)).heading("").rank(1),
        at("submitted", |one| one.submitted).rank(2),
        at("ApplicationMaster up", |one| one.am[1]).heading("ApplicationMaster\nup").rank(3),
    ]);
    format!("{}(logs of its containers: yarn logs -applicationId APPLICATION)\n", table.render(view))
}

/// `.slackline/night: running for 12 s under flowflex`, and how far.
fn headline(state: &StateOfRun) -> String {
    let started = instant(0.0, Some(&state.clock()));
    let name = state.state.display();
    let stage = match state.stage {
        Stage::Running => format!("running since {started}, for {}", duration(state.now)),
        Stage::Stopped => {
            let last = duration((state.now - state.recorded).max(0.0));
            format!("stopped: started at {started}, nothing is running, the last record is {last} old")
        }
        Stage::Finished => format!("finished: started at {started}, took {}", duration(state.recorded)),
        _ => format!("ended with failures: started at {started}, took {}", duration(state.recorded)),
    };
    let policy = state.policy.as_deref().map_or_else(String::new, |policy| format!(", under {policy}"));
    let policy = policy + &segments(state);
    if state.flows.is_empty() {
        return format!("{name}: {stage}{policy}\nnothing to run: all jobs were finished before\n");
    }
    let tasks = state.tasks();
    let failed: u64 = state.flows.iter().map(FlowState::failed).sum();
    let failed = if failed > 0 { format!(", {} failed", counted(failed, "attempt")) } else { String::new() };
    format!(
        "{name}: {stage}{policy}\n{} of {} done{failed}\n",
        tasks.done,
        counted(tasks.total as u64, "task")
    )
}

/// The settings of a run that changed, a line for each segment.
fn segments(state: &StateOfRun) -> String {
    if state.segments.len() < 2 {
        return String::new();
    }
    let line = |segment: &Segment| {
        let since = duration(segment.start as f64 / 1e6);
        let (policy, slowstart) = (segment.policy().unwrap_or("?"), segment.slowstart());
        let slots = counted(segment.slots().into(), "slot");
        format!("\n  from {since}: {policy}, slowstart {slowstart}, {slots}")
    };
    state.segments.iter().map(line).collect()
}

fn flows(state: &StateOfRun, view: &View) -> String {
    let mut columns = times(state, [&|flow| flow.deadline, &|flow| flow.predicted, &|flow| flow.completion]);
    for (k, _) in state.flows.iter().enumerate().filter(|(_, flow)| flow.unknown) {
        columns[1][k] = format!("{UNKNOWN} ({NO_HISTORY})");
    }
    let mut table = Table::new(&[
        ("flow", Align::Left),
        ("deadline", Align::Right),
        ("predicted\ncompletion", Align::Right),
        ("completion", Align::Right),
        ("tasks done", Align::Right),
        ("failed\nattempts", Align::Right),
        ("", Align::Left),
    ]);
    for (k, flow) in state.flows.iter().enumerate() {
        let tasks = flow.tasks();
        let done = format!("{} of {}", tasks.done, tasks.total);
        let verdict = match (state.stage, verdict(flow, state.now)) {
            (Stage::Stopped, "running") => "started",
            (_, verdict) => verdict,
        };
        let cells = columns.iter().map(|column| column[k].clone());
        let rest = [done, flow.failed().to_string(), verdict.to_owned()];
        table.row(std::iter::once(flow.id.clone()).chain(cells).chain(rest));
    }
    table.render(view)
}

/// The jobs that earlier runs have done.
fn kept(state: &StateOfRun, view: &View) -> String {
    let mut table = Table::new(&[
        ("flow", Align::Left),
        ("job", Align::Left),
        ("tasks", Align::Left),
        ("run started at", Align::Left),
    ]);
    for job in &state.kept {
        let begun = instant(0.0, Some(&clock::local(job.started)));
        let tasks = tasks_of_job(job.maps.into(), job.reduces.into());
        table.row([job.flow.clone(), job.job.clone(), tasks, begun]);
    }
    table.render(view)
}

/// The machines of a run on several.
fn machines(state: &StateOfRun, view: &View) -> String {
    let mut table = Table::new(&[
        ("machine", Align::Left),
        ("slots", Align::Right),
        ("running", Align::Right),
        ("tasks done", Align::Right),
        ("mean", Align::Right),
        ("failed\nattempts", Align::Right),
        ("stopped", Align::Right),
    ]);
    for machine in &state.machines {
        let MachineState { name, slots, at_work, done, failed, stopped, seconds, .. } = machine;
        let mean = if *done > 0 { duration(seconds / *done as f64) } else { String::new() };
        let [slots, at_work, done] = [u64::from(*slots), *at_work, *done].map(|n| n.to_string());
        table.row([name.clone(), slots, at_work, done, mean, failed.to_string(), stopped.to_string()]);
    }
    table.render(view)
}

fn at_work(state: &StateOfRun) -> String {
    let line = |one: &NamedAttempt| format!("  {}\n", running_task(state, one));
    let all = state.at_work.len();
    let mut out = format!("running: {}\n", counted(all as u64, "attempt"));
    out.extend(state.at_work.iter().take(AT_WORK).map(line));
    if all > AT_WORK {
        out.extend(["  … ", &(all - AT_WORK).to_string(), " more (JSON has all)\n"]);
    }
    out
}

/// A row a flow with exact numbers.
fn csv(state: &StateOfRun) -> String {
    let header = [
        "flow",
        "status",
        "release",
        "deadline",
        "predicted",
        "completion",
        "late",
        "tasks",
        "done",
        "failed_attempts",
    ];
    let row = |flow: &FlowState| {
        let tasks = flow.tasks();
        vec![
            flow.id.clone(),
            flow.status.name().to_owned(),
            exact(Some(flow.release)),
            exact(flow.deadline),
            exact(flow.predicted),
            exact(flow.completion),
            flow.is_late(state.now).map_or_else(String::new, |late| late.to_string()),
            tasks.total.to_string(),
            tasks.done.to_string(),
            flow.failed().to_string(),
        ]
    };
    slackline::report::csv(&header, state.flows.iter().map(row))
}

/// The document: everything, times in seconds since the start of the run.
fn document(state: &StateOfRun) -> Value {
    let tasks = state.tasks();
    let kept = |job: &KeptJob| {
        json!({
            "flow": job.flow,
            "job": job.job,
            "maps": job.maps,
            "reduces": job.reduces,
            "started": timestamp(job.started),
        })
    };
    let there = |job: &ExternalJob| {
        let at =
            |micros: Option<u64>| micros.filter(|_| state.is_of_run(job)).map(|micros| micros as f64 / 1e6);
        json!({
            "flow": job.flow,
            "job": job.job,
            "applications": job.applications,
            "submitted": at(job.submitted),
            "am_granted": at(job.am[0]),
            "am_up": at(job.am[1]),
            "failed": job.failed,
            "containers": job.containers,
        })
    };
    json!({
        "slackline": 1,
        "state": state.state.display().to_string(),
        "status": state.stage.name(),
        "started": timestamp(state.started),
        "policy": state.policy,
        "segments": state.segments.iter().map(segment).collect::<Vec<_>>(),
        "now": state.now,
        "recorded": state.recorded,
        "slots": state.slots,
        "machines": state.machines.iter().map(machine).collect::<Vec<_>>(),
        "tasks": tasks.total,
        "done": tasks.done,
        "flows": state.flows.iter().map(|one| flow(one, state.now)).collect::<Vec<_>>(),
        "kept": state.kept.iter().map(kept).collect::<Vec<_>>(),
        "at_work": state.at_work.iter().map(running).collect::<Vec<_>>(),
        "cluster": state.there.iter().map(there).collect::<Vec<_>>(),
    })
}

fn flow(flow: &FlowState, now: f64) -> Value {
    let tasks = flow.tasks();
    let job = |job: &slackline::run::JobState| {
        let mut document = jobs::json(&job.figures);
        document["after"] = json!(job.after);
        document["at_work"] = json!(job.at_work);
        document
    };
    json!({
        "flow": flow.id,
        "status": flow.status.name(),
        "release": flow.release,
        "deadline": flow.deadline,
        "predicted": flow.predicted,
        "predicted_between": flow.predicted_between,
        "unknown": flow.unknown,
        "completion": flow.completion,
        "late": flow.is_late(now),
        "tasks": tasks.total,
        "done": tasks.done,
        "failed_attempts": flow.failed(),
        "jobs": flow.jobs.iter().map(job).collect::<Vec<_>>(),
    })
}

fn running(one: &NamedAttempt) -> Value {
    let attempt = one.attempt;
    let mut document = json!({
        "flow": one.flow,
        "job": one.job,
        "phase": attempt.id.phase.name(),
        "task": attempt.id.task,
        "machine": one.machine,
        "slot": attempt.slot(),
        "process": attempt.process,
        "since": one.since(),
    });
    document.as_object_mut().into_iter().for_each(|document| document.extend(attempt.progress.fields()));
    document
}

fn segment(segment: &Segment) -> Value {
    json!({
        "start": segment.start as f64 / 1e6,
        "policy": segment.policy(),
        "slowstart": segment.slowstart(),
        "slots": segment.slots(),
        "options": segment.options,
    })
}

fn machine(machine: &MachineState) -> Value {
    json!({
        "machine": machine.name,
        "slots": machine.slots,
        "speed": machine.speed,
        "at_work": machine.at_work,
        "done": machine.done,
        "seconds": machine.seconds,
        "failed_attempts": machine.failed,
        "stopped_attempts": machine.stopped,
    })
}

/// That many microseconds after 1970 as documents have it; none beyond all dates.
fn timestamp(micros: u64) -> Option<String> {
    let moment = jiff::Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()?;
    Some(moment.to_string())
}
