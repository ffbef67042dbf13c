//! `plan`: what a policy would do with a whole workload, before anything runs.

mod progress;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use slackline::Chosen;
use slackline::plan::{self, Augmented, Options, Plan, PlanError, Planned, Stopped};
use slackline::report::flows;
use slackline::report::number::{Unit, number};

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, PlanArgs, Shape, value};
use crate::input::{Loaded, Source};
use crate::{out, recorded, results};

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
    #[arg(long, short, value_name = "POLICY", value_parser = Chosen::parse, help_heading = "Policy")]
    policy: Option<Chosen>,
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
    /// Show every flow in the table, not only the first 20
    #[arg(long, help_heading = "Output")]
    all: bool,
}

pub(crate) fn run(args: &PlanVerb) -> anyhow::Result<Answer> {
    let source = Source::read(&args.workload)?;
    let mut loaded = source.load(&args.shape)?;
    loaded.tell(&source.name);
    let policy = match &args.policy {
        Some(policy) => policy.clone(),
        None => plan::default_policy(&loaded.instance).with_context(|| {
            let planners = plan::planners(&loaded.instance).join(", ");
            format!(
                "found flows of several jobs on typed slots or mixed speeds, expected --policy, one of {planners}"
            )
        })?,
    };
    if policy.plan_form().needs_tasks() {
        loaded.prepare(&source.name, args.grain)?;
    }
    match plan::plan(&loaded.instance, &policy, Options { budget: args.plan.budget }) {
        Ok(Plan::Schedule(planned)) => {
            let augmented = augmented(args, &source, &loaded, &policy)?;
            write(args, source.short_name(), &loaded, *planned, augmented)?;
            Ok(Answer::Yes)
        }
        Ok(Plan::Progress(plans)) => {
            progress::write(&args.output, args.all, source.short_name(), &loaded, (&policy, &plans))
        }
        Err(PlanError::Refused(reason)) => Err(reason.into()),
        Err(PlanError::Infeasible(violation)) => {
            out::talk(format_args!("error: {}: not feasible: {violation}", policy.spec()));
            Ok(Answer::No)
        }
    }
}

/// With `--speed`, how FlowFlex's plan does against machines of the speed in the document.
fn augmented(
    args: &PlanVerb,
    source: &Source,
    loaded: &Loaded,
    policy: &Chosen,
) -> anyhow::Result<Option<Augmented>> {
    if args.shape.speed.is_none() || policy.entry().name != "flowflex" {
        return Ok(None);
    }
    let given = source.load(&Shape { speed: None, ..args.shape.clone() })?;
    let base = given.instance.cluster().uniform_speed();
    Ok(base.and_then(|base| plan::augmented(&loaded.instance, base)))
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
    let remarks = remarks(&planned, args.plan.budget, augmented);
    let mut schedule = planned.schedule;
    let figures = results::figures_of(&schedule, &planned.metrics);
    let mut options = loaded.options.clone();
    recorded::add_plan(&mut options, &args.plan);
    let mut meta = results::meta(loaded, options, args.shape.root_seed(), &schedule);
    if planned.stopped == Some(Stopped::Budget) {
        meta.status.push_str(", search ended by the budget");
    }
    let summary = results::headlines(name, instance) + &results::outcome(&schedule, &meta.status);
    match args.output.form() {
        Form::Table => {
            let most = if args.all { usize::MAX } else { SHOWN };
            let flows = flows::table(instance, &schedule, most);
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
            out::data(file, |out| results::write_schedule(out, instance, &mut schedule, (&figures, &meta)))
        }
    }
}

/// What is to be said of a plan beside its figures, by name.
fn remarks(
    planned: &Planned,
    budget: Option<f64>,
    augmented: Option<Augmented>,
) -> Vec<(&'static str, String)> {
    let mut remarks = Vec::new();
    remarks.extend(planned.winner.clone().map(|winner| ("winner", winner)));
    remarks.extend(planned.guarantee.clone().map(|guarantee| ("guarantee", guarantee)));
    remarks
        .extend(augmented.zip(planned.schedule.cost).map(|(against, cost)| ("speed", speed(against, cost))));
    let stopped = planned.stopped.map(|stopped| match stopped {
        Stopped::Steps => "ended after as many steps as a plan may take".to_owned(),
        Stopped::Budget => format!("ended by the budget of {} s", budget.unwrap_or_default()),
    });
    remarks.extend(stopped.map(|stopped| ("search", stopped)));
    remarks
}

/// `2 times the workload's: cost 0.50 of the lower bound there, 3,318; at most the optimum (Theorem 4)`.
fn speed(against: Augmented, cost: f64) -> String {
    let Augmented { factor, lower_bound, promise } = against;
    let bound = number(lower_bound, Unit::Measure);
    let share = if lower_bound > 0.0 {
        format!("cost {} of the lower bound there, {bound}", number(cost / lower_bound, Unit::Measure))
    } else {
        format!("lower bound there {bound}")
    };
    let promise = promise.map_or_else(|| "nothing promised".to_owned(), |promise| promise.to_string());
    format!("{factor} times the workload's: {share}; {promise}")
}
