//! `tune`: the best division of map and reduce slots, or with `--until` the smallest cluster that meets
//! conditions.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use slackline::capacity::{Axis, Condition, Knob, NoCondition};
use slackline::import::{KnowledgeOption, Loaded, RecordedOptions, SlotOptions, WorkloadOptions, bounds};
use slackline::judge::metrics;
use slackline::parallel::processors;
use slackline::report::page::{Drawn, Page};
use slackline::report::{Figures, Row, tuning};
use slackline::tune::{
    Candidates, Config, Method, Mode, Request, Splits, Times, Tuned, curve, in_order, tune_with_progress,
};
use slackline::{PolicySpec, Registry};
use slackline_model::Instance;

use crate::args::listed::NamedValue;
use crate::args::output::{Form, json_file};
use crate::args::path::WrittenFile;
use crate::args::report::about;
use crate::args::{OutputArgs, PolicyTimeout, ReportArgs, Shape, SimulationArgs, TableArgs, policy, value};
use crate::tables::Tables;
use crate::terminal::input::{Source, report_diagnostics};
use crate::terminal::progress::Cells;
use crate::terminal::{input, out};
use crate::verbs::analyse::capacity;
use crate::verbs::analyse::capacity::Capacity;
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
  slackline tune examples/nightly.toml --machines 1..50 --until missed:0 -p edf
  slackline tune trace.tsv --machines 10..6000 --deadlines 3 --until missed:1% --until p95_response:2h -p edf
  slackline tune examples/nightly.toml --over slowstart=0.05..1 -p fair
  slackline tune examples/hadoop-log --over capacity:prod=20..80:5 -p yarn-capacity:file=examples/hadoop-log/capacity-scheduler.xml

Splits: --total-slots divides slots one by one; --machines with --slots gives every machine the same m map \
and r reduce slots, m + r = --slots. Without either, the workload's own machines are divided so. Flows are \
of one job and all there at 0.

Capacity: sizes of --machines A..B, or of --over slots=A..B, are simulated under --policy until the fewest is \
known that meets every --until: by halves, and then next to the answer and about 5 % from it, to see whether more is \
better here (it need not be). --search every tries all sizes up to the answer. Settings (--over slowstart=A..B, heartbeat=A..B, capacity:QUEUE=A..B), sizes with a step (A..B:STEP), and \
sizes without --until are all simulated, and make a curve (--format csv). Deadlines that --deadlines F makes \
are those of the largest cluster, for all sizes (of map-slots and reduce-slots those of the cluster as it stands). Where a queue gets another capacity, maximums below \
a capacity are raised to it. If nothing does, the exit code is 1. Ctrl-C ends the search with what \
it knows.")]
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
    /// Times that make the orders [default: best]
    ///
    /// Work over slots (area), whole waves (stage), or the better of both (best); of mk-tct-sf-jr the default
    /// is area.
    #[arg(long, value_enum, help_heading = "Tuning")]
    times: Option<TimesArg>,
    /// Whether reduces go to the first job that is ready (wc), or strictly in order (strict)
    #[arg(long, hide_short_help = true, value_enum, default_value = "wc", help_heading = "Tuning")]
    mode: ModeArg,
    /// Scale the best split of N slots instead of searching, and say what that loses
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u32>(0, u32::MAX.into()), help_heading = "Tuning")]
    proportional: Option<u32>,
    /// Make the Pareto front too: what nothing beats in both makespan and total completion time
    ///
    /// Exact over all splits and the orders of both rules, and many times the work of the best split alone.
    #[arg(long, help_heading = "Tuning")]
    front: bool,
    /// Write the schedule of the best split to FILE
    #[arg(long, value_name = "FILE", value_parser = json_file, help_heading = "Tuning")]
    schedule: Option<WrittenFile>,

    /// Find the fewest machines with METRIC at most N
    ///
    /// Such as missed:0, missed:1% (of the flows with deadlines) or mean_response:5m; given several times,
    /// all must hold. For another comparison write one of < <= = >= > instead of the colon and quote it for
    /// the shell: 'utilisation>=0.5'. A METRIC alone takes its limit from --at-most.
    #[arg(long, value_name = "METRIC:N", value_parser = until(), hide_possible_values = true, help_heading = "Capacity",
        conflicts_with_all = ["method", "times", "mode", "proportional", "front", "schedule", "total_slots"])]
    until: Vec<UntilArg>,
    /// The limit of an --until that names a metric alone; of several, in their order
    #[arg(
        long,
        hide_short_help = true,
        value_name = "N",
        requires = "until",
        allow_hyphen_values = true,
        help_heading = "Capacity"
    )]
    at_most: Vec<String>,
    /// Vary this instead of machines
    ///
    /// slots, map-slots or reduce-slots of each machine, slowstart, heartbeat, or capacity:QUEUE, the percent
    /// of its parent that a queue of yarn-capacity has (the other queues of the parent share the rest as they
    /// did): NAME=A..B, or NAME=A..B:STEP. Of sizes the fewest with every --until is found; of settings the
    /// one that costs least, by the objective.
    #[arg(long, value_name = "NAME=A..B", value_parser = axis(), hide_possible_values = true, help_heading = "Capacity",
        conflicts_with_all = ["method", "times", "mode", "proportional", "front", "schedule", "total_slots"])]
    over: Option<Axis>,
    /// Whether sizes are tried by halves, or all up to the answer
    #[arg(long, hide_short_help = true, value_enum, default_value = "bisect", help_heading = "Capacity")]
    search: SearchArg,
    /// What a machine costs an hour, for a column of prices
    #[arg(long, hide_short_help = true, value_name = "PRICE", value_parser = value::price, help_heading = "Capacity")]
    machine_hour: Option<f64>,
    /// Simulations at a time [default: as many as there are processors]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u16>(1, u16::MAX.into()), help_heading = "Capacity")]
    threads: Option<u16>,
    /// Policy that runs the cluster, as in fair:by=flow
    #[arg(long, short, value_name = "POLICY", value_parser = policy::standard(), help_heading = "Capacity")]
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
    /// Show the whole order, or every value that was tried
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchArg {
    // By halves, with checks at the end.
    Bisect,
    // All sizes up to the answer.
    Every,
}

fn method() -> NamedValue<Method> {
    NamedValue::of("method", Method::ALL.map(|method| (method.name(), method)))
}

/// A condition, or the metric of a condition whose limit is in `--at-most`.
#[derive(Clone, Debug)]
enum UntilArg {
    Whole(Condition),
    Metric(&'static str),
}

fn until() -> NamedValue<UntilArg> {
    NamedValue::new(Condition::metrics().map(|metric| format!("{metric}:")), |text: &str| {
        match text.parse() {
            Err(NoCondition::Sign) => Condition::metric_named(text.trim()).map(UntilArg::Metric),
            read => read.map(UntilArg::Whole),
        }
    })
}

fn axis() -> NamedValue<Axis> {
    NamedValue::new(Knob::beginnings(), str::parse::<Axis>)
}

impl Tune {
    /// Whether it is clusters or settings that are compared, and not splits.
    fn is_of_capacity(&self) -> bool {
        !self.until.is_empty() || self.over.is_some()
    }

    fn conditions(&self) -> anyhow::Result<Vec<Condition>> {
        let mut limits = self.at_most.iter();
        let mut condition = |until: &UntilArg| match until {
            UntilArg::Whole(condition) => Ok(condition.clone()),
            UntilArg::Metric(metric) => {
                let limit = limits.next().with_context(|| {
                    format!("--until: found {metric} without a limit, expected {metric}:N, or --at-most N beside it")
                })?;
                format!("{metric}<={limit}").parse().with_context(|| format!("--at-most {limit}"))
            }
        };
        let conditions = self.until.iter().map(&mut condition).collect::<anyhow::Result<Vec<_>>>()?;
        match limits.next() {
            Some(limit) => {
                bail!(
                    "--at-most: found {limit}, which belongs to no --until, expected --until METRIC beside it"
                )
            }
            None => Ok(conditions),
        }
    }
}

/// The policy that searches first: one that takes a fraction of a second on a large trace.
fn scout(conditions: &[Condition], policy: &PolicySpec) -> Option<PolicySpec> {
    let name = if conditions.iter().any(Condition::is_about_deadlines) { "edf" } else { "fifo" };
    let is_fast = ["fifo", "edf"].contains(&policy.name());
    (!is_fast).then(|| Registry::standard().parse(name).ok()).flatten()
}

pub(crate) fn run(args: &Tune, tables: &Tables) -> anyhow::Result<Answer> {
    let source = input::read(&args.workload, args.output.file())?;
    if args.is_of_capacity() {
        let Some(policy) = &args.policy else {
            bail!("--policy: found none, expected the policy that runs the cluster, such as --policy edf");
        };
        let (policy, conditions) = (args.timeout.of(policy.clone()), args.conditions()?);
        return capacity::run(&Capacity {
            source: &source,
            policy: &policy,
            conditions: &conditions,
            over: args.over.as_ref(),
            method: match args.search {
                SearchArg::Bisect => slackline::capacity::Method::Bisect,
                SearchArg::Every => slackline::capacity::Method::Every,
            },
            scout: scout(&conditions, &policy).as_ref(),
            threads: args.threads.map_or_else(processors, usize::from),
            price: args.machine_hour,
            shape: &args.shape,
            importers: &tables.importers,
            simulation: &args.simulation,
            output: &args.output,
            table: &args.table,
            all: args.all,
            report: &args.report,
        });
    }
    let view = args.table.view(&args.output, &tuning::COLUMNS)?;
    refuse_without_effect(args)?;
    let mut loaded = source.load(&args.shape.options(&tables.importers)?)?;
    report_diagnostics(&source.name, &loaded.diagnostics);
    loaded.prepare(args.simulation.grain)?;
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
        Form::Json => tuning::json(instance, &tuned),
    };
    args.output.write(&head, &body, &view)?;
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
    flags.extend(args.policy.is_some().then_some("policy"));
    flags.extend(args.machine_hour.is_some().then_some("machine-hour"));
    flags.extend(args.threads.is_some().then_some("threads"));
    flags.extend((args.search != SearchArg::Bisect).then_some("search"));
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
    if let (Some(total), None) = (shape.total_slots, &shape.machines) {
        return Splits::of_total(total).context("--total-slots");
    }
    let [group] = instance.cluster().groups().raw.as_slice() else {
        bail!(
            "found a cluster of {} groups of machines, expected --total-slots N, or --machines N with --slots M",
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
    loaded.prepare(args.simulation.grain)?;
    let instance = &loaded.instance;
    let plan = in_order(instance, best.order.clone(), request.config.mode)?;
    let mut schedule = plan.schedule(instance, request.method.name());
    schedule.claim_bound(bounds(instance).best);
    let meta = loaded.meta(loaded.options.clone(), args.shape.root_seed(), &schedule);
    if let Some(file) = &args.schedule {
        out::data(Some(file), |out| slackline_trace::write_schedule(out, instance, &schedule, &meta))?;
    }
    if args.report.is_asked() {
        let about =
            about(source.short_name(), "tune", vec![meta.seed], meta.options.clone(), meta.sha256.clone());
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
