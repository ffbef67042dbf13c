//! `explain`: why a flow or a job waits, and what would make its deadline.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::Args;
use slackline::explain::{explain, flow_times};
use slackline::import::{Loaded, ScheduleDocument, WorkloadOptions};
use slackline::judge;
use slackline::names::{listed, unknown};
use slackline::report::explain::{Told, csv, json};
use slackline_model::schedule::Clock;
use slackline_model::{FlowId, Instance, JobId, Schedule};
use slackline_trace::Meta;

use super::Answer;
use crate::args::OutputArgs;
use crate::args::output::Form;
use crate::input::{self, Source};
use crate::out;
use crate::tables::Tables;

/// What a workload beside its schedule is called; the first is what `run` writes.
const BESIDE: [&str; 4] = ["workload.json", "workload.toml", "workload.yaml", "workload.yml"];

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline simulate examples/nightly.toml --policy fair --output fair.json
  slackline explain fair.json billing --workload examples/nightly.toml
  slackline explain fair.json billing rate -w examples/nightly.toml

The workload is that of --workload, or a file named workload.json (.toml, .yaml) beside the schedule, where \
`run` leaves it. The options that the schedule records are applied again. CSV has a row a phase.")]
pub(crate) struct Explain {
    /// Schedule of plan, simulate or run, as a document or in lines (.jsonl); - for standard input
    #[arg(value_name = "SCHEDULE")]
    schedule: PathBuf,
    /// Flow to explain
    #[arg(value_name = "FLOW")]
    flow: String,
    /// One job of it [default: all of them]
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Workload that the schedule was made for [default: beside it]
    #[arg(long, short, value_name = "FILE")]
    workload: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Explain, tables: &Tables) -> anyhow::Result<Answer> {
    if args.schedule.as_os_str() == "-" && args.workload.as_deref() == Some(Path::new("-")) {
        bail!("found - twice, expected only one of SCHEDULE and --workload from standard input");
    }
    let written = input::read(&args.schedule, args.output.file())?;
    let document = ScheduleDocument::open(&written, &tables.importers)?;
    let loaded = workload(args, tables, &written, &document)?;
    let instance = &loaded.instance;
    let schedule = document.read(instance)?;
    if let Err(violation) = judge::check(instance, &schedule) {
        out::warn(format_args!("{}: not feasible, so what follows may be wrong: {violation}", written.name));
    }
    let flow = flow_named(instance, &args.flow)?;
    let job = args.job.as_deref().map(|name| job_named(instance, flow, name)).transpose()?;
    let explanation = explain(instance, &schedule, flow, job);
    let flows = flow_times(instance, &schedule);
    let plan = is_plan(&schedule, &document.meta);
    let told = Told { instance, policy: &schedule.policy, plan, explanation: &explanation, flows: &flows };
    let text = match args.output.form() {
        Form::Table => told.text(&out::view(args.output.file())),
        Form::Json => json(&told),
        Form::Csv => csv(&told),
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}

/// Whether a schedule says what will be: simulations record what their policy knew, runs are measured.
fn is_plan(schedule: &Schedule, meta: &Meta) -> bool {
    schedule.tasks.is_empty() || schedule.clock == Clock::Exact && !meta.options.contains_key("knowledge")
}

/// The workload the schedule was made for, shaped as it was then.
fn workload(
    args: &Explain,
    tables: &Tables,
    written: &Source,
    document: &ScheduleDocument<'_>,
) -> anyhow::Result<Loaded> {
    let path = match &args.workload {
        Some(path) => path.clone(),
        None => beside(&args.schedule, &written.name)?,
    };
    let source = input::read(&path, args.output.file())?;
    if !document.names_workload() {
        out::warn(format_args!("{}: does not say which workload it was made for", written.name));
    }
    if let Err(wrong) = document.made_for(&source) {
        bail!("{wrong}{}", if args.workload.is_some() { "" } else { "; --workload FILE names another" });
    }
    let options = WorkloadOptions::default().with_importers(tables.importers.clone());
    Ok(document.load(&source, options, None)?)
}

/// The workload that lies beside a schedule.
fn beside(schedule: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let known = BESIDE.map(|name| schedule.with_file_name(name));
    let there = known.into_iter().find(|path| schedule.as_os_str() != "-" && path.is_file());
    there.ok_or_else(|| {
        anyhow!(
            "{name}: found no {} beside it, expected --workload FILE with the workload it was made for",
            BESIDE[0]
        )
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
        bail!("found flow {name:?}, expected a workload with flows: this one has none, so that none waits");
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
