//! `plan`: what a policy would do with a whole workload, before anything runs.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use slackline::PolicySpec;
use slackline::import::{Loaded, WorkloadOptions, add_budget};
use slackline::plan::{self, Augmented, Options, Plan, PlanError, Planned, Requirements, Stopped};
use slackline::report::number::counted;
use slackline::report::table::fitted;
use slackline::report::{Figures, flows, headline, plan_remarks, requirements, write_schedule};
use slackline_model::Instance;

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, PlanArgs, Shape, TableArgs, policy, value};
use crate::input::{Source, tell};
use crate::out;
use crate::tables::Tables;

/// Flows that the table shows unless all are asked for.
const SHOWN: usize = 20;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline plan examples/purdue-30.toml --slots 4
  slackline plan examples/nightly.toml --policy fair --metric tardiness --combine max
  slackline plan examples/purdue-30.toml --slots 4 --policy flowflex --speed 2
  slackline plan report.toml --policy woha-lpf --output report.plan

JSON is the schedule document, which `slackline check` decides on (of woha-… it is the requirements, which
are no schedule); CSV has a row a flow. `slackline
policies` says what each policy plans: allocations of slots, tasks, or (woha) the progress that a
scheduler should see, which --output writes in a compact form. Without --policy it is flex for flows
of one job, flowflex for others; on machines of different speed, dmrs.")]
pub(crate) struct PlanVerb {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policy, with parameters as in fair:by=flow [default: by the workload]
    #[arg(long, short, value_name = "POLICY", value_parser = policy::standard(), help_heading = "Policy")]
    policy: Option<PolicySpec>,
    #[command(flatten)]
    plan: PlanArgs,
    /// Where tasks are planned, a phase given only as work is cut into tasks of at most this many seconds
    /// [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds_above_zero, help_heading = "Policy")]
    grain: Option<f64>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Show every flow in the table, not only the first 20
    #[arg(long, help_heading = "Output")]
    all: bool,
}

pub(crate) fn run(args: &PlanVerb, tables: &Tables) -> anyhow::Result<Answer> {
    args.table.view(&args.output, &flows::COLUMNS)?;
    let source = Source::read(&args.workload)?;
    let options = args.shape.options(&tables.importers)?;
    let mut loaded = source.load(&options)?;
    tell(&source.name, &loaded.diagnostics);
    let policy = match &args.policy {
        Some(policy) => policy.clone(),
        None => plan::default_policy(&loaded.instance, &tables.policies).with_context(|| {
            let planners = plan::planners(&loaded.instance, &tables.policies);
            let planners = planners.iter().map(PolicySpec::name).collect::<Vec<_>>().join(", ");
            format!(
                "found flows of several jobs on typed slots or mixed speeds, expected --policy, one of {planners}"
            )
        })?,
    };
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
        Err(other) => Err(other.into()),
    }
}

/// With `--speed`, how the plan does against machines of the speed in the document, where theory says.
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
    if planned.stopped == Some(Stopped::Budget) {
        meta.status.push_str(", search ended by the budget");
    }
    let summary = headline::lines(name, instance) + &headline::outcome(&schedule, &meta.status);
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
        Form::Json => {
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
    // A file without a form of its own is for a scheduler.
    let compact = file.is_some() && output.format.is_none() && output.form() == Form::Table;
    if compact || output.form() != Form::Table {
        out::talk(summary.trim_end());
    }
    if compact {
        let bytes = requirements::plan_file(instance, policy, plans).encode();
        let (plans, size) = (counted(plans.len() as u64, "plan"), counted(bytes.len() as u64, "byte"));
        out::talk(format_args!("{plans} in {size}"));
        out::data(file, |out| out.write_all(&bytes))?;
    } else {
        let text = match output.form() {
            Form::Table => {
                let view = out::view(file);
                let table = requirements::table(instance, plans, args.all, &view);
                format!("{}\n{table}", fitted(&summary, view.width))
            }
            Form::Csv => requirements::csv(instance, plans),
            Form::Json => requirements::json(instance, policy, plans),
        };
        out::text(file, &text)?;
    }
    Ok(if requirements::hopeless(plans) > 0 { Answer::No } else { Answer::Yes })
}
