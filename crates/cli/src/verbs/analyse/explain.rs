//! `explain`: why a flow or a job waits, and what would make its deadline.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use slackline::explain::{Explainer, FailureCause, Unfinished};
use slackline::import::{Loaded, ScheduleDocument, WorkloadOptions};
use slackline::judge;
use slackline::names::{listed, unknown};
use slackline::report::explain::{ClusterEvents, ExplainInput, Open, OpenPhase, csv, json};
use slackline::run::{FailedJob, RunInspection, SoFar, Stage, StateOfRun, TaskId, so_far};
use slackline_model::instance::Job;
use slackline_model::schedule::Clock;
use slackline_model::{FlowId, Instance, JobId, PhaseKind, Schedule};
use slackline_serve::api::Explanation;
use slackline_serve::http::client::query;
use slackline_trace::Meta;

use crate::args::defaults::Defaults;
use crate::args::output::Form;
use crate::args::server::submission;
use crate::args::state::{RunSelector, all_states, flow_file_state, is_state, look_at};
use crate::args::{OutputArgs, ServerFlags, path};
use crate::tables::Tables;
use crate::terminal::input::Source;
use crate::terminal::{input, out, service};
use crate::verbs::answer::Answer;

/// The names of a workload file beside its schedule; `run` writes the first.
const BESIDE: [&str; 4] = ["workload.json", "workload.toml", "workload.yaml", "workload.yml"];

#[derive(Args, Debug)]
#[command(override_usage = "\
slackline explain [OPTIONS] [--state <RUN>] <FLOW> [JOB]
       slackline explain [OPTIONS] <SCHEDULE> <FLOW> [JOB]
       slackline explain [OPTIONS] <LOG> <FLOW> [JOB]")]
#[command(after_long_help = "\
Examples:
  slackline simulate examples/nightly.toml --policy fair --output fair.json
  slackline explain fair.json billing --workload examples/nightly.toml
  slackline explain fair.json billing rate -w examples/nightly.toml
  slackline explain billing
  slackline explain billing --state nightly.toml
  slackline explain 17 billing rate
  slackline explain examples/hadoop-log job_1795454051189_0009

For a run, `explain` explains the schedule so far, and what an unfinished flow waits for. The run may be running or \
stopped. It is that of --state, or the only one in .slackline, as for `status` and `logs`.

The workload of a schedule is that of --workload, or a file named workload.json (.toml, .yaml) next to it, where `run` writes it. The \
options that the schedule records are applied again. CSV has a row for each phase.

Of a log with the times of tasks, `explain` explains what happened.

A number instead of the schedule is a submission of a service (`slackline serve`), as `queue` shows it.")]
pub(crate) struct Explain {
    /// Schedule of plan, simulate or run, as a document or in lines (.jsonl); - for standard input [default:
    /// that of a run]
    ///
    /// A state directory or a flow file names a run instead, as --state does.
    #[arg(value_name = "SCHEDULE", value_parser = path::text_or_name)]
    first: String,
    /// Flow to explain
    #[arg(value_name = "FLOW")]
    second: Option<String>,
    /// Job to explain [default: all jobs of the flow]
    #[arg(value_name = "JOB", conflicts_with = "state")]
    third: Option<String>,
    /// The run: its state directory, its flow file or its schedule [default: the only run]
    #[arg(long, value_name = "RUN", conflicts_with = "workload")]
    state: Option<PathBuf>,
    /// Workload of the schedule [default: workload.json next to it]
    #[arg(long, short, value_name = "FILE")]
    workload: Option<PathBuf>,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: OutputArgs,
}

/// The flow or job to explain, and its schedule.
struct Question<'a> {
    from: ScheduleSource<'a>,
    flow: &'a str,
    job: Option<&'a str>,
}

enum ScheduleSource<'a> {
    Schedule(&'a Path),
    State(PathBuf),
}

/// A flow or job of a submission of a service.
struct ServiceQuestion<'a> {
    number: u64,
    flow: Option<&'a str>,
    job: Option<&'a str>,
}

impl ServiceQuestion<'_> {
    fn write_explanation(&self, args: &Explain, defaults: &Defaults) -> anyhow::Result<Answer> {
        let mut client = args.server.client(defaults.state())?;
        let question = query(&[("flow", self.flow), ("job", self.job)]);
        let explained: Explanation =
            client.get(&format!("/api/v1/submissions/{}/explain{question}", self.number))?;
        let text = match args.output.form() {
            Form::Table => service::localised(&explained.text, Timestamp::now()),
            Form::Json => format!("{:#}\n", explained.document),
            Form::Csv => bail!("--format: found csv, expected table or json for a submission"),
        };
        out::text(args.output.file(), &text)?;
        Ok(Answer::Yes)
    }
}

impl Explain {
    /// The question to a service, if a submission is given by its number.
    fn of_service(&self) -> Option<ServiceQuestion<'_>> {
        let (flow, job) = (self.second.as_deref(), self.third.as_deref());
        if let Some(number) = submission(self.state.as_deref()) {
            return Some(ServiceQuestion { number, flow: Some(&self.first), job: flow });
        }
        let number = submission(Some(Path::new(&self.first)))?;
        Some(ServiceQuestion { number, flow, job })
    }

    /// `states` is where runs have their state directories.
    fn question(&self, states: &Path) -> anyhow::Result<Question<'_>> {
        let path = Path::new(&self.first);
        // A word that is no file is a flow of the only run, if there are runs at all.
        let is_flow = || self.workload.is_none() && self.first != "-" && !path.exists();
        if self.state.is_some() || self.third.is_none() && is_flow() && !all_states(states).is_empty() {
            let state = RunSelector { workload: None, state: self.state.as_deref() }.directory(states)?;
            return Ok(Question {
                from: ScheduleSource::State(state),
                flow: &self.first,
                job: self.second.as_deref(),
            });
        }
        let flow = self.second.as_deref().ok_or_else(|| anyhow!("missing argument FLOW"))?;
        let is_document =
            path.extension().is_some_and(|ending| ["json", "jsonl"].iter().any(|it| ending == *it));
        let of_flow_file =
            || flow_file_state(path, states).filter(|_| !is_document && self.workload.is_none());
        let state = is_state(path).then(|| path.to_owned()).or_else(of_flow_file);
        let from = state.map_or(ScheduleSource::Schedule(path), ScheduleSource::State);
        Ok(Question { from, flow, job: self.third.as_deref() })
    }
}

pub(crate) fn run(args: &Explain, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    if let Some(question) = args.of_service() {
        return question.write_explanation(args, defaults);
    }
    let question = args.question(defaults.state())?;
    match &question.from {
        ScheduleSource::State(state) => of_run(args, &question, state, defaults.state()),
        ScheduleSource::Schedule(path) => of_schedule(args, &question, path, tables),
    }
}

/// Explains the schedule so far of a run that is running, was stopped or has ended.
fn of_run(args: &Explain, question: &Question<'_>, state: &Path, states: &Path) -> anyhow::Result<Answer> {
    let look = look_at(state, states)?;
    let SoFar { instance, mut schedule, at_work, .. } = so_far(&look)?;
    let seen = StateOfRun::of(&look, None, slackline_task::base::clock::unix_micros());
    let is_over = matches!(seen.stage, Stage::Finished | Stage::Failed);
    if !is_over {
        // Unfinished flows may still finish.
        schedule.flows.retain(|row| row.completion.is_some());
    }
    let open = (!is_over).then(|| open(&instance, &seen));
    let there = look.profile().is_some().then(|| there(&instance, &look));
    let is_open = |flow| !schedule.flows.iter().any(|row| row.flow == flow);
    // Of one that was stopped nothing waits for slots.
    let now = if seen.stage == Stage::Stopped { seen.recorded } else { seen.now };
    let unfinished = Unfinished { at_work: &at_work, now, open: &is_open };
    let explainer = Explainer::so_far(&instance, &schedule, &unfinished);
    write_explanation(
        args,
        question,
        &ExplainedSchedule {
            explainer,
            plan: false,
            open: open.as_ref(),
            there: there.as_ref(),
            look: Some(&look),
        },
    )
}

/// The events of a cluster during a run.
fn there(instance: &Instance, look: &RunInspection) -> ClusterEvents {
    let mut there = ClusterEvents::default();
    for (plan, index) in look.jobs.iter().zip(0..) {
        let of_job = look.there.iter().find(|job| job.is(look.head.started, &plan.flow, &plan.job));
        there.jobs.extend(of_job.map(|job| (JobId(index), job.clone())));
    }
    for attempt in &look.attempts {
        let Some(job) = instance.jobs().get(JobId(attempt.id.job)) else { continue };
        let phase = if attempt.id.phase == PhaseKind::Map { job.map } else { job.reduce };
        let began = attempt.began as f64 / 1e6;
        if let Some(phase) = phase {
            there.began.entry(phase).and_modify(|at| *at = at.min(began)).or_insert(began);
        }
    }
    there
}

/// How far the phases of a run are.
fn open(instance: &Instance, seen: &StateOfRun) -> Open {
    let mut open = Open { now: seen.now, is_at_work: seen.stage == Stage::Running, ..Open::default() };
    // The measured workload has the jobs of the run in its order.
    let jobs = seen.flows.iter().flat_map(|flow| &flow.jobs);
    for (job, index) in jobs.zip(0u32..) {
        let Some(of) = instance.jobs().get(JobId(index)) else { continue };
        for (phase, kind) in [(of.map, PhaseKind::Map), (of.reduce, PhaseKind::Reduce)] {
            let Some(phase) = phase else { continue };
            let figures = job.figures.phase(kind);
            let is_it = |id: TaskId| id.job == index && id.phase == kind;
            let at_work = seen.at_work.iter().filter(|one| is_it(one.attempt.id)).count();
            let (done, total, failed) = (figures.tasks.done, figures.tasks.total, figures.failed);
            open.phases.insert(phase, OpenPhase { done, at_work, total, failed });
        }
    }
    open
}

fn of_schedule(
    args: &Explain,
    question: &Question<'_>,
    path: &Path,
    tables: &Tables,
) -> anyhow::Result<Answer> {
    if path.as_os_str() == "-" && args.workload.as_deref() == Some(Path::new("-")) {
        bail!("found - twice, expected only one of SCHEDULE and --workload from standard input");
    }
    let written = input::read(path, args.output.file())?;
    let document = match ScheduleDocument::open(&written, &tables.importers) {
        Ok(document) => document,
        Err(error) if args.workload.is_some() => return Err(error.into()),
        Err(error) => return of_log(args, question, &written, tables).unwrap_or_else(|| Err(error.into())),
    };
    let loaded = workload(args, path, tables, &written, &document)?;
    let instance = &loaded.instance;
    let schedule = document.read(instance)?;
    if let Err(violation) = judge::check(instance, &schedule) {
        out::warn(format_args!(
            "{}: not feasible, so the explanation may be wrong: {violation}",
            written.name
        ));
    }
    let plan = is_plan(&schedule, &document.meta);
    write_explanation(
        args,
        question,
        &ExplainedSchedule {
            explainer: Explainer::new(instance, &schedule),
            plan,
            open: None,
            there: None,
            look: None,
        },
    )
}

/// Explains what a log recorded. `None` if the file is not a log with recorded times.
fn of_log(
    args: &Explain,
    question: &Question<'_>,
    log: &Source,
    tables: &Tables,
) -> Option<anyhow::Result<Answer>> {
    let options = WorkloadOptions { importers: tables.importers.clone(), ..WorkloadOptions::default() };
    let Loaded { instance, recorded, .. } = log.load(&options).ok()?;
    let happened = match recorded?.replay(&instance) {
        Ok(happened) => happened,
        Err(error) => return Some(Err(error.into())),
    };
    out::talk(
        "the log records tasks only: slots that seem idle may have been held by ApplicationMasters or other programs",
    );
    // The recorded machines may be others than those that the workload is given.
    if let Err(violation) = judge::check(&instance, &happened.schedule) {
        return Some(Err(anyhow!("{}: its recorded times do not fit the cluster: {violation}", log.name)));
    }
    let explainer = Explainer::new(&instance, &happened.schedule);
    let explained = ExplainedSchedule { explainer, plan: false, open: None, there: None, look: None };
    Some(write_explanation(args, question, &explained))
}

struct ExplainedSchedule<'a> {
    explainer: Explainer<'a>,
    plan: bool,
    open: Option<&'a Open>,
    there: Option<&'a ClusterEvents>,
    /// The run, if it is the schedule of one.
    look: Option<&'a RunInspection>,
}

/// The job of a run whose failure prevented a flow from finishing.
fn failure_cause(instance: &Instance, look: &RunInspection, flow: FlowId) -> Option<FailureCause> {
    let failed = FailedJob::of_inspection(look, &instance.flow(flow).id)?;
    let is_it = |job: &Job| job.id == failed.job && instance.flow(job.flow).id == failed.flow;
    let (job, _) = instance.jobs().iter_enumerated().find(|(_, job)| is_it(job))?;
    Some(FailureCause { job, reason: Some(failed.reason) })
}

fn write_explanation(
    args: &Explain,
    question: &Question<'_>,
    shown: &ExplainedSchedule<'_>,
) -> anyhow::Result<Answer> {
    let ExplainedSchedule { explainer, plan, open, there, look } = shown;
    let instance = explainer.instance();
    let flow = flow_named(instance, question.flow)?;
    let job = question.job.map(|name| job_named(instance, flow, name)).transpose()?;
    let mut explanation = explainer.explain(flow, job).context("found a job of another flow")?;
    if let (Some(look), true) = (look, explanation.failed) {
        explanation.cause = failure_cause(instance, look, flow).or(explanation.cause);
    }
    let explained = ExplainInput {
        instance,
        policy: explainer.policy(),
        plan: *plan,
        explanation: &explanation,
        flows: explainer.flow_times(),
        open: *open,
        there: *there,
    };
    let text = match args.output.form() {
        Form::Table => explained.text(&out::view(args.output.file())),
        Form::Json => json(&explained),
        Form::Csv => csv(&explained),
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}

/// Whether a schedule predicts: simulations record the knowledge of their policy, runs are measured.
fn is_plan(schedule: &Schedule, meta: &Meta) -> bool {
    schedule.tasks.is_empty() || schedule.clock == Clock::Exact && !meta.options.contains_key("knowledge")
}

/// The workload the schedule was made for, shaped as it was then.
fn workload(
    args: &Explain,
    schedule: &Path,
    tables: &Tables,
    written: &Source,
    document: &ScheduleDocument<'_>,
) -> anyhow::Result<Loaded> {
    let path = match &args.workload {
        Some(path) => path.clone(),
        None => workload_beside(schedule, &written.name)?,
    };
    let source = input::read(&path, args.output.file())?;
    if !document.names_workload() {
        out::warn(format_args!("{}: does not name its workload", written.name));
    }
    if let Err(wrong) = document.made_for(&source) {
        bail!("{wrong}{}", if args.workload.is_some() { "" } else { "; pass it with --workload FILE" });
    }
    let options = WorkloadOptions { importers: tables.importers.clone(), ..WorkloadOptions::default() };
    Ok(document.load(&source, options, None)?)
}

/// The workload that lies beside a schedule.
fn workload_beside(schedule: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let known = BESIDE.map(|name| schedule.with_file_name(name));
    let there = known.into_iter().find(|path| schedule.as_os_str() != "-" && path.is_file());
    there.ok_or_else(|| {
        anyhow!("{name}: found no {} next to it; name its workload with --workload FILE", BESIDE[0])
    })
}

fn flow_named(instance: &Instance, name: &str) -> anyhow::Result<FlowId> {
    let flows = instance.flows().iter_enumerated();
    if let Some((id, _)) = flows.clone().find(|(_, flow)| flow.id == name) {
        return Ok(id);
    }
    let mut owners: Vec<&str> = Vec::new();
    for job in instance.jobs().iter().filter(|job| job.id == name) {
        owners.push(&instance.flow(job.flow).id);
    }
    let job = match owners.as_slice() {
        [] => String::new(),
        [only] => format!("; {name} is a job of flow {only}: explain SCHEDULE {only} {name}"),
        many => format!("; {name} is a job of {} flows: {}", many.len(), listed(many)),
    };
    let all: Vec<&str> = flows.map(|(_, flow)| flow.id.as_str()).collect();
    if all.is_empty() {
        bail!("found flow {name:?}, but the workload has no flows");
    }
    bail!("{}{job}", unknown("flow", name, &all));
}

fn job_named(instance: &Instance, flow: FlowId, name: &str) -> anyhow::Result<JobId> {
    let of = instance.flow(flow);
    if let Some(job) = of.jobs().find(|&job| instance.job(job).id == name) {
        return Ok(job);
    }
    let all: Vec<&str> = of.jobs().map(|job| instance.job(job).id.as_str()).collect();
    bail!("flow {}: {}", of.id, unknown("job", name, &all));
}
