//! `tune`: the best division of map and reduce slots, or with `--until` the smallest cluster that does.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use slackline::PolicySpec;
use slackline::capacity::Condition;
use slackline::import::{KnowledgeOption, RecordedOptions, SlotOptions, bounds};
use slackline::report::table::fitted;
use slackline::report::tuning;
use slackline::tune::{Candidates, Choice, Config, Method, Mode, Request, Splits, Times, in_order, tune};
use slackline_model::Instance;

use super::Answer;
use super::capacity::{self, Capacity};
use crate::args::listed::Listed;
use crate::args::output::{Form, json_file};
use crate::args::{OutputArgs, PolicyTimeout, Shape, SimulationArgs, TableArgs, policy, value};
use crate::input::{self, Source, tell};
use crate::out;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline tune examples/purdue-30.toml --total-slots 80
  slackline tune examples/purdue-30.toml --machines 19 --slots 4
  slackline tune examples/purdue-30.toml --total-slots 80 --schedule best.json
  slackline tune examples/nightly.toml --machines 1..50 --until missed:0 -p edf

Splits: --total-slots divides slots one by one; --machines with --slots gives every machine the same m map \
and r reduce slots, m + r = --slots. Without either, the workload's own machines are divided so. Flows are \
of one job and all there at 0.

Capacity: every size of --machines A..B is simulated under --policy, smallest first, until one meets the \
condition; none is skipped, as more machines may do worse, so sizes above the answer may fail again. \
Deadlines that --deadlines F makes are those of the largest cluster, for all sizes. If no size does, the exit \
code is 1.")]
pub(crate) struct Tune {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// How the order and the split are found
    ///
    /// Least makespan by Johnson's rule (mk-sf-jr), with small jobs first (mk-tct-sf-jr), or over all orders of up to nine
    /// jobs (ex-mk-sf-jr).
    #[arg(long, value_name = "METHOD", default_value = "mk-sf-jr", value_parser = method(), help_heading = "Tuning")]
    method: Method,
    /// Times that make the orders [default: best]
    ///
    /// Work over slots (area), whole waves (stage), or the better of both (best); of mk-tct-sf-jr the default is area.
    #[arg(long, value_enum, help_heading = "Tuning")]
    times: Option<TimesArg>,
    /// Whether reduces go to the first job that is ready (wc), or strictly in order (strict)
    #[arg(long, hide_short_help = true, value_enum, default_value = "wc", help_heading = "Tuning")]
    mode: ModeArg,
    /// Scale the best split of N slots instead of searching, and say what that loses
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u32>(0, u32::MAX.into()), help_heading = "Tuning")]
    proportional: Option<u32>,
    /// Write the schedule of the best split to FILE
    #[arg(long, value_name = "FILE", value_parser = json_file, help_heading = "Tuning")]
    schedule: Option<PathBuf>,

    /// Find the fewest machines with METRIC at most N
    ///
    /// Such as missed:0 or mean_response:5m. For another comparison write one of < <= = >= > instead of the colon and
    /// quote it for the shell: 'utilisation>=0.5'.
    #[arg(long, value_name = "METRIC:N", requires = "policy", value_parser = condition(), hide_possible_values = true, help_heading = "Capacity",
        conflicts_with_all = ["method", "times", "mode", "proportional", "schedule", "total_slots"])]
    until: Option<Condition>,
    /// Policy that runs the cluster, as in fair:by=flow
    #[arg(long, short, value_name = "POLICY", value_parser = policy::standard(), requires = "until", help_heading = "Capacity")]
    policy: Option<PolicySpec>,
    #[command(flatten)]
    timeout: PolicyTimeout,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    simulation: SimulationArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Show the whole order, or every size that was tried
    #[arg(long, help_heading = "Output")]
    all: bool,
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

fn method() -> Listed<Method> {
    Listed::of("method", Method::ALL.map(|method| (method.name(), method)))
}

fn condition() -> Listed<Condition> {
    Listed::new(Condition::metrics().map(|metric| format!("{metric}:")), str::parse::<Condition>)
}

pub(crate) fn run(args: &Tune, tables: &Tables) -> anyhow::Result<Answer> {
    let source = input::read(&args.workload, args.output.file())?;
    if let (Some(condition), Some(policy)) = (&args.until, &args.policy) {
        return capacity::run(&Capacity {
            source: &source,
            policy: &args.timeout.of(policy.clone()),
            condition,
            shape: &args.shape,
            importers: &tables.importers,
            simulation: &args.simulation,
            output: &args.output,
            table: &args.table,
            all: args.all,
        });
    }
    let view = args.table.view(&args.output, &tuning::COLUMNS)?;
    refuse_without_effect(args)?;
    let mut loaded = source.load(&args.shape.options(&tables.importers)?)?;
    tell(&source.name, &loaded.diagnostics);
    loaded.cut(args.simulation.grain);
    let request = request(args, &loaded.instance)?;
    let tuned = tune(&loaded.instance, &request).with_context(|| source.name.clone())?;
    write_schedule(args, tables, &source, &request, &tuned.best)?;
    let head = tuning::headlines(source.short_name(), &loaded.instance, &request, &tuned);
    let instance = &loaded.instance;
    let body = match args.output.form() {
        Form::Table => {
            let table = tuning::table(instance, &request, &tuned, args.all, &view);
            format!("{}\n{table}", fitted(&head, view.width))
        }
        Form::Csv => tuning::csv(instance, &tuned),
        Form::Json => tuning::json(instance, &tuned),
    };
    if args.output.form() != Form::Table {
        out::talk(head.trim_end());
    }
    out::text(args.output.file(), &body)?;
    Ok(Answer::Yes)
}

/// Flags that change neither the splits nor their estimates.
fn refuse_without_effect(args: &Tune) -> anyhow::Result<()> {
    let mut given = RecordedOptions::new();
    args.simulation.options().record(&mut given, None);
    given.retain(|name, value| name != "knowledge" || *value != KnowledgeOption::Mean.name());
    let mut flags: Vec<&str> = given.keys().map(String::as_str).collect();
    flags.extend(args.simulation.history.is_some().then_some("history"));
    flags.extend(args.simulation.timings.then_some("timings"));
    flags.extend(args.timeout.is_given().then_some("policy-timeout"));
    if let Some(flag) = flags.first() {
        bail!("--{flag}: found no --until, expected one: splits are estimated, not simulated");
    }
    let shape = &args.shape;
    let objective = [
        ("metric", shape.metric.is_some()),
        ("combine", shape.combine.is_some()),
        ("weights", shape.weights.is_some()),
        ("deadlines", shape.deadlines.is_some()),
    ];
    if let Some((flag, _)) = objective.iter().find(|(_, given)| *given) {
        bail!(
            "--{flag}: found no --until, expected one: splits are judged by makespan and total completion time"
        );
    }
    Ok(())
}

/// The splits of the cluster that was asked for.
fn splits(shape: &Shape, instance: &Instance) -> anyhow::Result<Splits> {
    if let (Some(total), None) = (shape.total_slots, shape.machines) {
        return Splits::of_total(total).context("--total-slots");
    }
    let [group] = instance.cluster().groups().raw.as_slice() else {
        bail!(
            "found a cluster of {} groups of machines, expected --total-slots N, or --machines N with --slots M",
            instance.cluster().groups().len()
        );
    };
    let budget = match group.slots {
        slackline_model::cluster::Slots::Universal(slots) => slots,
        slackline_model::cluster::Slots::Typed { map, reduce } => map + reduce,
    };
    Splits::of_nodes(group.count, budget).context("cannot divide the slots")
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
    let config = standard
        .with_mode(mode)
        .with_mk_jr(times.unwrap_or(standard.mk_jr))
        .with_mk_tct_jr(times.unwrap_or(standard.mk_tct_jr));
    if args.proportional.is_some() && args.method != Method::MkSfJr {
        bail!("--proportional: found --method {}, expected mk-sf-jr with it", args.method.name());
    }
    let proportional = args.proportional.map(Splits::of_total).transpose().context("--proportional")?;
    let request = Request::new(splits(&args.shape, instance)?, args.method);
    Ok(request.with_config(config).with_proportional(proportional))
}

/// Writes the best split and its order as a schedule on a cluster so divided, if that was asked for.
fn write_schedule(
    args: &Tune,
    tables: &Tables,
    source: &Source,
    request: &Request,
    best: &Choice,
) -> anyhow::Result<()> {
    let Some(file) = &args.schedule else { return Ok(()) };
    let (nodes, split) = (request.splits.nodes(), best.split);
    let slots = SlotOptions::Typed { map: split.map() / nodes, reduce: split.reduce() / nodes };
    let options = args.shape.options(&tables.importers)?.with_machines(nodes).with_slots(slots);
    let mut loaded = source.load(&options)?;
    loaded.cut(args.simulation.grain);
    let instance = &loaded.instance;
    let plan = in_order(instance, best.order.clone(), request.config.mode)?;
    let mut schedule = plan.schedule(instance, request.method.name());
    schedule.claim_bound(bounds(instance).best);
    let meta = loaded.meta(loaded.options.clone(), args.shape.root_seed(), &schedule);
    out::data(Some(file), |out| slackline_trace::write_schedule(out, instance, &schedule, &meta))
}
