//! `plan`: plans a whole workload under a policy, before anything runs.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use slackline::import::{Loaded, WorkloadOptions, add_budget};
use slackline::plan::{self, Augmented, Options, Plan, PlanError, Planned, Requirements, Stopped};
use slackline::report::number::counted;
use slackline::report::page::{Drawn, Page};
use slackline::report::table::fitted;
use slackline::report::{Figures, Row, flows, headline, plan_remarks, requirements, write_schedule};
use slackline::{PlanForm, PolicySpec};
use slackline_model::Instance;

use crate::args::output::{CSV, Forms, JSON, Names, TABLE};
use crate::args::report::about;
use crate::args::{OutputArgs, PlanArgs, PolicyTimeout, ReportArgs, Shape, TableArgs, policy, value};
use crate::tables::Tables;
use crate::terminal::input::{Source, report_diagnostics};
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

/// Flows that the table shows unless all are asked for.
const SHOWN: usize = 20;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline plan examples/purdue-30.toml --slots 4
  slackline plan examples/nightly.toml --policy fair --metric tardiness
  slackline plan examples/purdue-30.toml --slots 4 --policy flowflex --speed 2
  slackline plan examples/three-workflows.toml --budget 20s
  slackline plan report.toml --policy woha-lpf --output report.plan

JSON is the schedule document, which `slackline check` checks (for woha-… it is the required progress, which \
is no schedule). CSV has a row for each flow. `slackline \
policies` shows what each policy plans: allocations of slots, tasks, or (woha) the progress that a \
scheduler should reach, which --output writes in a compact form. The default policy \
auto uses the best task schedule of all policies and of a search.")]
pub(crate) struct PlanVerb {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policy (see `slackline policies`) [default: auto]
    ///
    /// Parameters follow a colon, as in fair:by=flow.
    #[arg(long, short, value_name = "POLICY", value_parser = policy::standard(), help_heading = "Policy")]
    policy: Option<PolicySpec>,
    #[command(flatten)]
    timeout: PolicyTimeout,
    #[command(flatten)]
    plan: PlanArgs,
    /// Longest task of phases that are given as work [default: 10]
    ///
    /// In seconds or with a unit. Only policies that plan tasks use it.
    #[arg(long, value_name = "DURATION", value_parser = value::seconds_above_zero, help_heading = "Policy")]
    grain: Option<f64>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    output: OutputArgs<Form>,
    #[command(flatten)]
    table: TableArgs,
    /// Show every flow in the table, not only the first 20
    #[arg(long, help_heading = "Output")]
    all: bool,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// For people.
    Table,
    /// The schedule document, or the requirements.
    Json,
    /// Rows, for spreadsheets.
    Csv,
    /// Progress requirements in few bytes, for a scheduler.
    Plan,
}

impl Forms for Form {
    const ALL: &'static [(Self, Names)] =
        &[(Self::Table, TABLE), (Self::Json, JSON), (Self::Csv, CSV), (Self::Plan, ("plan", &["plan"]))];
}

pub(crate) fn run(args: &PlanVerb, tables: &Tables) -> anyhow::Result<Answer> {
    args.table.view(&args.output, &flows::COLUMNS)?;
    let source = input::read(&args.workload, args.output.file())?;
    let options = args.shape.options(&tables.importers)?;
    let mut loaded = source.load(&options)?;
    report_diagnostics(&source.name, &loaded.diagnostics);
    input::report_remarks(args.policy.as_slice());
    let policy = match &args.policy {
        Some(policy) => args.timeout.of(policy.clone()),
        None => plan::default_policy(&loaded.instance, &tables.policies).with_context(|| {
            let planners = plan::planners(&loaded.instance, &tables.policies);
            let planners = planners.iter().map(PolicySpec::name).collect::<Vec<_>>().join(", ");
            format!("no default policy plans these flows and machines; pass --policy with one of {planners}")
        })?,
    };
    if args.output.form() == Form::Plan && policy.plan_form() != PlanForm::Progress {
        bail!(
            "--format: found plan with policy {}, expected a policy that plans progress (woha-…)",
            policy.spec()
        );
    }
    if policy.plan_form() == PlanForm::Progress && args.report.is_asked() {
        bail!(
            "--report: found policy {}, which plans progress and not times, expected one that plans a schedule",
            policy.spec()
        );
    }
    if policy.plan_form().needs_tasks() {
        loaded.prepare(args.grain)?;
    }
    match plan::plan(&loaded.instance, &policy, Options { budget: args.plan.budget }) {
        Ok(Plan::Schedule(planned)) => {
            let augmented = augmented(options, &source, &loaded, &policy)?;
            write(args, source.short_name(), &loaded, *planned, augmented)?;
            Ok(Answer::Yes)
        }
        Ok(Plan::Progress(plans)) => {
            write_requirements(args, source.short_name(), &loaded.instance, &policy, &plans)
        }
        Err(PlanError::Refused(reason)) => Err(reason.into()),
        Err(PlanError::Infeasible(violation)) => {
            out::talk(format_args!("error: {}: not feasible: {violation}", policy.spec()));
            Ok(Answer::No)
        }
        Err(PlanError::Policy(failure)) => {
            out::error(&anyhow!("{}: {failure}", policy.spec()));
            Ok(Answer::No)
        }
        Err(other) => Err(other.into()),
    }
}

/// With `--speed`, the plan against machines of the speed in the document, if theory has a bound.
fn augmented(
    options: WorkloadOptions,
    source: &Source,
    loaded: &Loaded,
    policy: &PolicySpec,
) -> anyhow::Result<Option<Augmented>> {
    if options.speed.is_none() {
        return Ok(None);
    }
    let given = source.load(&WorkloadOptions { speed: None, ..options })?;
    let base = given.instance.cluster().uniform_speed();
    Ok(base.and_then(|base| plan::augmented(&loaded.instance, policy, base)))
}

fn write(
    args: &PlanVerb,
    name: &str,
    loaded: &Loaded,
    planned: Planned,
    augmented: Option<Augmented>,
) -> anyhow::Result<()> {
    let (instance, file) = (&loaded.instance, args.output.file());
    let promised = planned.stopped != Some(Stopped::Budget);
    let augmented = augmented.map(|of| Augmented { promise: of.promise.filter(|_| promised), ..of });
    let remarks = plan_remarks::remarks(&planned, args.plan.budget, augmented);
    let mut schedule = planned.schedule;
    let figures = Figures::of_schedule(&schedule, &planned.metrics);
    let mut options = loaded.options.clone();
    add_budget(&mut options, args.plan.budget);
    let mut meta = loaded.meta(options, args.shape.root_seed(), &schedule);
    meta.winner = planned.winner;
    if planned.stopped == Some(Stopped::Budget) {
        meta.status.push_str(", search ended by the budget");
    }
    let summary = headline::lines(name, instance)
        + &headline::outcome(&schedule, headline::is_weighted(instance), &meta.status);
    if args.report.is_asked() {
        let seeds = vec![args.shape.root_seed()];
        let (options, left_out) = (meta.options.clone(), meta.not_modelled.clone());
        let about = about(name, "plan", seeds, options, loaded.sha256.clone(), left_out);
        let row = Row { policy: schedule.policy.clone(), result: Ok(figures.clone()) };
        let drawn = Drawn::of_schedule(instance, &schedule, true);
        let mut page = Page::new(instance, about).with_policy(row, Some(drawn));
        for (what, text) in &remarks {
            page = page.with_note(format!("{what}: {text}"));
        }
        args.report.write(&page)?;
    }
    match args.output.form() {
        Form::Table => {
            let most = if args.all { usize::MAX } else { SHOWN };
            let view = args.table.view(&args.output, &flows::COLUMNS)?;
            let flows = flows::table(instance, &schedule, most, &view);
            let summary = fitted(&summary, view.width);
            out::text(file, &format!("{summary}{}\n{flows}", flows::figures(&figures, &remarks)))
        }
        Form::Csv => {
            out::talk(summary.trim_end());
            out::talk(slackline::report::table::list(&remarks).trim_end());
            out::text(file, &flows::csv(instance, &schedule))
        }
        Form::Json | Form::Plan => {
            out::talk(summary.trim_end());
            out::talk(slackline::report::table::list(&remarks).trim_end());
            out::data(file, |out| write_schedule(out, instance, &mut schedule, &figures, &meta))
        }
    }
}

/// Writes progress requirements; the answer is no if a deadline cannot be met.
fn write_requirements(
    args: &PlanVerb,
    name: &str,
    instance: &Instance,
    policy: &PolicySpec,
    plans: &[Requirements],
) -> anyhow::Result<Answer> {
    let (output, file) = (&args.output, args.output.file());
    let summary = headline::lines(name, instance) + &requirements::outcome(instance, policy, plans);
    if output.form() == Form::Plan {
        out::talk(summary.trim_end());
        let bytes = requirements::plan_file(instance, policy, plans).encode();
        let (plans, size) = (counted(plans.len() as u64, "plan"), counted(bytes.len() as u64, "byte"));
        out::talk(format_args!("{plans} in {size}"));
        out::data(file, |out| out.write_all(&bytes))?;
    } else {
        let view = out::view(file);
        let text = match output.form() {
            Form::Table => requirements::table(instance, plans, args.all, &view),
            Form::Csv => requirements::csv(instance, plans),
            Form::Json | Form::Plan => requirements::json(instance, policy, plans),
        };
        output.write(&summary, &text, &view)?;
    }
    Ok(if requirements::hopeless(plans) > 0 { Answer::No } else { Answer::Yes })
}
