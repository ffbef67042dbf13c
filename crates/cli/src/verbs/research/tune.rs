//! `tune`: the best split of map and reduce slots.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use slackline::import::{Loaded, SlotOptions, WorkloadOptions, bounds};
use slackline::judge::metrics;
use slackline::report::page::{Drawn, Page};
use slackline::report::{Figures, Row, tuning};
use slackline::tune::{
    Candidates, Config, Method, Mode, Request, Splits, Times, Tuned, curve, in_order, tune_with_progress,
};
use slackline_model::Instance;

use crate::args::listed::NamedValue;
use crate::args::output::{Form, json_file};
use crate::args::path::WrittenFile;
use crate::args::report::about;
use crate::args::{OutputArgs, ReportArgs, Shape, TableArgs, value};
use crate::tables::Tables;
use crate::terminal::input::{Source, report_diagnostics};
use crate::terminal::progress::Cells;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

/// Splits that the curve of a page is drawn through.
const CURVE: u32 = 96;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline tune examples/purdue-30.toml --total-slots 80
  slackline tune examples/purdue-30.toml --machines 19 --slots 4
  slackline tune examples/purdue-30.toml --total-slots 80 --front
  slackline tune examples/purdue-30.toml --total-slots 80 --schedule best.json

Splits: --total-slots divides slots one by one; --machines with --slots gives every machine the same m map \
and r reduce slots, m + r = --slots. Without either, the slots of the workload's machines are divided in this way. Flows must have \
one job each and be released at 0.

`slackline capacity` finds the smallest cluster, or the best setting, by simulation.")]
pub(crate) struct Tune {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// How the order and the split are found
    ///
    /// Least makespan by Johnson's rule (mk-sf-jr), with small jobs first (mk-tct-sf-jr), or over all orders
    /// of up to nine jobs (ex-mk-sf-jr).
    #[arg(long, value_name = "METHOD", default_value = "mk-sf-jr", value_parser = method(), help_heading = "Tuning")]
    method: Method,
    /// Job times that determine the orders [default: best]
    ///
    /// Work divided by slots (area), whole waves of tasks (stage), or the better of both (best). For mk-tct-sf-jr the
    /// default is area.
    #[arg(long, value_enum, help_heading = "Tuning")]
    times: Option<TimesArg>,
    /// Whether reduces go to the first job that is ready (wc), or strictly in order (strict)
    #[arg(long, hide_short_help = true, value_enum, default_value = "wc", help_heading = "Tuning")]
    mode: ModeArg,
    /// Scale the best split into map and reduce slots from N slots to all slots, and print how much worse it is than the best
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u32>(0, u32::MAX.into()), help_heading = "Tuning")]
    proportional: Option<u32>,
    /// Also compute the Pareto front of makespan and total completion time
    ///
    /// It is exact over all splits and the orders of both rules, and takes many times longer than the best split.
    #[arg(long, help_heading = "Tuning")]
    front: bool,
    /// Write the schedule of the best split to FILE
    #[arg(long, value_name = "FILE", value_parser = json_file, help_heading = "Tuning")]
    schedule: Option<WrittenFile>,

    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Show the whole order of jobs
    #[arg(long, help_heading = "Output")]
    all: bool,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimesArg {
    // Work over slots.
    Area,
    // Whole waves of tasks.
    Stage,
    // The better of both.
    Best,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    // Work-conserving.
    Wc,
    // In order.
    Strict,
}

fn method() -> NamedValue<Method> {
    NamedValue::of("method", Method::ALL.map(|method| (method.name(), method)))
}

pub(crate) fn run(args: &Tune, tables: &Tables) -> anyhow::Result<Answer> {
    let source = input::read(&args.workload, args.output.file())?;
    let view = args.table.view(&args.output, &tuning::COLUMNS)?;
    refuse_without_effect(&args.shape)?;
    let mut loaded = source.load(&args.shape.options(&tables.importers)?)?;
    report_diagnostics(&source.name, &loaded.diagnostics);
    loaded.prepare(None)?;
    let request = request(args, &loaded.instance)?;
    let tuned = {
        let cells = Cells::new();
        let mut report_progress = |done: u64, of: u64| cells.at(done as usize, of as usize);
        tune_with_progress(&loaded.instance, &request, &mut report_progress)
            .with_context(|| source.name.clone())?
    };
    if args.schedule.is_some() || args.report.is_asked() {
        write_best(args, tables, &source, &request, &loaded, &tuned)?;
    }
    let head = tuning::headlines(source.short_name(), &loaded.instance, &request, &tuned);
    let instance = &loaded.instance;
    let body = match args.output.form() {
        Form::Table => tuning::table(instance, &request, &tuned, args.all, &view),
        Form::Csv => tuning::csv(instance, &tuned),
        Form::Json => tuning::json(instance, &tuned, loaded.not_modelled()),
    };
    args.output.write(&head, &body, &view)?;
    Ok(Answer::Yes)
}

/// Flags of the objective change neither the splits nor their estimates.
fn refuse_without_effect(shape: &Shape) -> anyhow::Result<()> {
    let objective = [
        ("metric", shape.metric.is_some()),
        ("combine", shape.combine.is_some()),
        ("weights", shape.weights.is_some()),
        ("deadlines", shape.deadlines.is_some()),
    ];
    if let Some((flag, _)) = objective.iter().find(|(_, given)| *given) {
        bail!(
            "--{flag} has no effect on splits, which are judged by makespan and total completion time; \
             `slackline capacity` finds the smallest cluster for an objective"
        );
    }
    Ok(())
}

/// The splits of the cluster that was asked for.
fn splits(shape: &Shape, instance: &Instance) -> anyhow::Result<Splits> {
    if let (Some(total), None) = (shape.total_slots, &shape.machines) {
        return Splits::of_total(total).context("--total-slots");
    }
    let [group] = instance.cluster().groups().raw.as_slice() else {
        bail!(
            "found a cluster with {} groups of machines, expected --total-slots N, or --machines N with --slots M",
            instance.cluster().groups().len()
        );
    };
    Splits::of_nodes(group.count, group.slots.total()).context("cannot divide the slots")
}

fn request(args: &Tune, instance: &Instance) -> anyhow::Result<Request> {
    let times = args.times.map(|times| match times {
        TimesArg::Area => Candidates::Only(Times::Area),
        TimesArg::Stage => Candidates::Only(Times::Stage),
        TimesArg::Best => Candidates::Best,
    });
    let mode = match args.mode {
        ModeArg::Wc => Mode::WorkConserving,
        ModeArg::Strict => Mode::Strict,
    };
    let standard = Config::standard();
    let (mk_jr, mk_tct_jr) = (times.unwrap_or(standard.mk_jr), times.unwrap_or(standard.mk_tct_jr));
    let config = Config { mode, mk_jr, mk_tct_jr };
    if args.proportional.is_some() && args.method != Method::MkSfJr {
        bail!("--proportional: found --method {}, expected mk-sf-jr with it", args.method.name());
    }
    let proportional = args.proportional.map(Splits::of_total).transpose().context("--proportional")?;
    let request = Request::new(splits(&args.shape, instance)?, args.method);
    Ok(Request { config, proportional, front: args.front, ..request })
}

/// Writes the best split and its order as a schedule on a cluster so divided, and as a page, where these were
/// asked for.
fn write_best(
    args: &Tune,
    tables: &Tables,
    source: &Source,
    request: &Request,
    undivided: &Loaded,
    tuned: &Tuned,
) -> anyhow::Result<()> {
    let best = &tuned.best;
    let (nodes, split) = (request.splits.nodes(), best.split);
    let slots = SlotOptions::MapReduce { map: split.map() / nodes, reduce: split.reduce() / nodes };
    let (machines, slots) = (Some(nodes), Some(slots));
    let options = WorkloadOptions { machines, slots, ..args.shape.options(&tables.importers)? };
    let mut loaded = source.load(&options)?;
    loaded.prepare(None)?;
    let instance = &loaded.instance;
    let plan = in_order(instance, best.order.clone(), request.config.mode)?;
    let mut schedule = plan.schedule(instance, request.method.name());
    schedule.claim_bound(bounds(instance).best);
    let meta = loaded.meta(loaded.options.clone(), args.shape.root_seed(), &schedule);
    if let Some(file) = &args.schedule {
        out::data(Some(file), |out| slackline_trace::write_schedule(out, instance, &schedule, &meta))?;
    }
    if args.report.is_asked() {
        let (options, left_out) = (meta.options.clone(), meta.not_modelled.clone());
        let about =
            about(source.short_name(), "tune", vec![meta.seed], options, meta.sha256.clone(), left_out);
        let name = format!("{} (best split)", schedule.policy);
        let figures = Figures::of_schedule(&schedule, &metrics(instance, &schedule));
        let drawn = Drawn::of_schedule(instance, &schedule, true);
        let page =
            Page::new(instance, about).with_policy(Row { policy: name, result: Ok(figures) }, Some(drawn));
        let curve = curve(&undivided.instance, request, CURVE)?;
        args.report.write(&page.with_tuning(request, tuned, &curve))?;
    }
    Ok(())
}
