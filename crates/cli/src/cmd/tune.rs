//! `tune`: the best division of map and reduce slots, or with `--until` the smallest cluster that does.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use slackline::capacity::Condition;
use slackline::report::number::{Unit, column, counted, exact, number};
use slackline::report::{Align, Table};
use slackline::tune::{Candidates, Choice, Config, Method, Mode, Request, Rule, Splits, Times, Tuned, tune};
use slackline::{Chosen, tune as tuning};
use slackline_model::Instance;
use slackline_trace::tuning::{TunedSplit, Tuning, write_tuning};

use super::{Answer, capacity};
use crate::args::output::Form;
use crate::args::simulation::Known;
use crate::args::value::Machines;
use crate::args::{OutputArgs, Shape, SimulationArgs};
use crate::input::Source;
use crate::{lower, out, recorded, results};

/// Flows of the order that the table shows unless all are asked for.
const SHOWN: usize = 40;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline tune examples/purdue-30.toml --total-slots 80
  slackline tune examples/purdue-30.toml --machines 19 --slots 4 --method mk-tct-sf-jr --format json
  slackline tune examples/purdue-30.toml --total-slots 80 --schedule best.json
  slackline tune examples/nightly.toml --machines 1..50 --until missed=0 --policy edf

Splits: --total-slots divides slots one by one; --machines with --slots gives every machine the same m map
and r reduce slots, m + r = --slots. Without either, the workload's own machines are divided so. Flows are
of one job and all there at 0.

Capacity: every size of --machines A..B is simulated under --policy, smallest first, until one meets the
condition; none is skipped, as more machines may do worse, so sizes above the answer may fail again.
Deadlines that --deadlines F makes are those of the largest cluster, for all sizes. If no size does, the exit
code is 1.")]
pub(crate) struct Tune {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    pub(super) workload: PathBuf,
    /// Least makespan by Johnson's rule (mk-sf-jr), with small jobs first (mk-tct-sf-jr), or over all orders
    /// of up to nine jobs (ex-mk-sf-jr)
    #[arg(long, value_name = "METHOD", default_value = "mk-sf-jr", value_parser = method(), help_heading = "Tuning")]
    method: Method,
    /// Times that make the orders: work over slots, whole waves, or the better [default: best; mk-tct-sf-jr: area]
    #[arg(long, value_enum, help_heading = "Tuning")]
    times: Option<TimesArg>,
    /// Whether reduces go to the first job that is ready (wc), or strictly in order (strict)
    #[arg(long, value_enum, default_value = "wc", help_heading = "Tuning")]
    mode: ModeArg,
    /// Scale the best split of N slots instead of searching, and say what that loses
    #[arg(long, value_name = "N", help_heading = "Tuning")]
    proportional: Option<u32>,
    /// Write the schedule of the best split to FILE, for check
    #[arg(long, value_name = "FILE", help_heading = "Tuning")]
    schedule: Option<PathBuf>,

    /// Find the smallest number of machines with which a metric is so: missed=0, mean_response<300
    #[arg(long, value_name = "METRIC<NUMBER", requires = "policy", help_heading = "Capacity",
        conflicts_with_all = ["method", "times", "mode", "proportional", "schedule", "total_slots"])]
    pub(super) until: Option<Condition>,
    /// Policy that runs the cluster, with parameters as in fair:by=flow
    #[arg(long, short, value_name = "POLICY", value_parser = Chosen::parse, requires = "until", help_heading = "Capacity")]
    pub(super) policy: Option<Chosen>,
    #[command(flatten)]
    pub(super) shape: Shape,
    #[command(flatten)]
    pub(super) simulation: SimulationArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Show the whole order, or every size that was tried
    #[arg(long, help_heading = "Output")]
    pub(super) all: bool,
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

fn method() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::name)).map(|name| {
        let found = Method::ALL.into_iter().find(|method| method.name() == name);
        found.expect("invariant: possible values are names")
    })
}

pub(crate) fn run(args: &Tune) -> anyhow::Result<Answer> {
    let source = Source::read(&args.workload)?;
    if let (Some(condition), Some(policy)) = (&args.until, &args.policy) {
        return capacity::run(args, &source, policy, condition);
    }
    refuse_without_effect(args)?;
    let mut loaded = source.load(&args.shape)?;
    loaded.tell(&source.name);
    loaded.cut(args.simulation.grain);
    let request = request(args, &loaded.instance)?;
    let tuned = tune(&loaded.instance, &request).with_context(|| source.name.clone())?;
    if let Some(file) = &args.schedule {
        write_schedule(args, &source, (&request, &tuned.best), file)?;
    }
    let head = headlines(source.short_name(), &loaded.instance, &request, &tuned);
    let ids = |choice: &Choice| -> Vec<String> {
        let flow = |&job| loaded.instance.flow(loaded.instance.job(job).flow).id.clone();
        choice.order.iter().map(flow).collect()
    };
    let body = match args.output.form() {
        Form::Table => format!("{head}\n{}", table(&request, &tuned, &ids(&tuned.best), args.all)),
        Form::Csv => csv(&tuned, &ids),
        Form::Json => json(&tuned, &ids),
    };
    if args.output.form() != Form::Table {
        out::talk(head.trim_end());
    }
    out::text(args.output.file(), &body)?;
    Ok(Answer::Yes)
}

/// Flags that change neither the splits nor their estimates.
fn refuse_without_effect(args: &Tune) -> anyhow::Result<()> {
    let mut given = recorded::Options::new();
    recorded::add_simulation(&mut given, &args.simulation, None);
    given.retain(|name, value| name != "knowledge" || *value != Known::Mean.name());
    let mut flags: Vec<&str> = given.keys().map(String::as_str).collect();
    flags.extend(args.simulation.history.is_some().then_some("history"));
    flags.extend(args.simulation.timings.then_some("timings"));
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
    let config = Config {
        mode,
        mk_jr: times.unwrap_or(standard.mk_jr),
        mk_tct_jr: times.unwrap_or(standard.mk_tct_jr),
    };
    if args.proportional.is_some() && args.method != Method::MkSfJr {
        bail!("--proportional: found --method {}, expected mk-sf-jr with it", args.method.name());
    }
    let proportional = args.proportional.map(Splits::of_total).transpose().context("--proportional")?;
    Ok(Request { splits: splits(&args.shape, instance)?, method: args.method, config, proportional })
}

/// Writes the best split and its order as a schedule on a cluster so divided.
fn write_schedule(
    args: &Tune,
    source: &Source,
    (request, best): (&Request, &Choice),
    file: &Path,
) -> anyhow::Result<()> {
    let (nodes, split) = (request.splits.nodes(), best.split);
    let shape = Shape {
        machines: Some(Machines::one(nodes)),
        map_slots: Some(split.map() / nodes),
        reduce_slots: Some(split.reduce() / nodes),
        slots: None,
        total_slots: None,
        ..args.shape.clone()
    };
    let mut loaded = source.load(&shape)?;
    loaded.cut(args.simulation.grain);
    let instance = &loaded.instance;
    let plan = tuning::in_order(instance, best.order.clone(), request.config.mode)?;
    let mut schedule = plan.schedule(instance, request.method.name());
    schedule.claim_bound(lower::bounds(instance).best);
    let meta = results::meta(&loaded, loaded.options.clone(), args.shape.root_seed(), &schedule);
    out::data(Some(file), |out| slackline_trace::write_schedule(out, instance, &schedule, &meta))
}

fn headlines(name: &str, instance: &Instance, request: &Request, tuned: &Tuned) -> String {
    let mode = if request.config.mode == Mode::Strict { ", reduces strictly in order" } else { "" };
    let half = tuned.default.split;
    format!(
        "{name}: {}, {} on {}\n{}{mode}: {}, {} of them estimated, the others ruled out by bounds\n",
        counted(instance.flows().len() as u64, "flow"),
        counted(instance.n_tasks(), "task"),
        counted(u64::from(half.map()) + u64::from(half.reduce()), "slot"),
        request.method.name(),
        counted(u64::from(tuned.candidates), "split"),
        number(f64::from(tuned.evaluated), Unit::Count),
    )
}

fn seconds(choice: &Choice) -> (f64, f64) {
    (choice.makespan.seconds(), choice.total_completion as f64 / 1e6)
}

/// `mk-jr, area`: what made an order.
fn order_name(choice: &Choice) -> &'static str {
    match choice.rule {
        None => "",
        Some((Rule::MkJr, Times::Area)) => "mk-jr, area",
        Some((Rule::MkJr, Times::Stage)) => "mk-jr, stage",
        Some((Rule::MkTctJr, Times::Area)) => "mk-tct-jr, area",
        Some((Rule::MkTctJr, Times::Stage)) => "mk-tct-jr, stage",
    }
}

/// Rows of a name, a choice, and what made its order.
type Rows<'a> = Vec<(&'static str, &'a Choice, &'static str)>;

fn compared<'a>(request: &Request, tuned: &'a Tuned) -> Rows<'a> {
    let best = match request.method {
        Method::ExMkSfJr => "the best of all orders",
        _ => order_name(&tuned.best),
    };
    let mut rows = Vec::new();
    if let Some(exact) = &tuned.exact {
        rows.push(("proportional", &tuned.best, best));
        rows.push(("exact", exact, order_name(exact)));
    } else {
        rows.push(("best", &tuned.best, best));
    }
    rows.push(("half and half", &tuned.default, order_name(&tuned.default)));
    rows.push(("half and half", &tuned.submitted, "as submitted"));
    rows
}

fn table(request: &Request, tuned: &Tuned, order: &[String], all: bool) -> String {
    let shown = if all { order.len() } else { order.len().min(SHOWN) };
    let more = match order.len() - shown {
        0 => String::new(),
        more => format!(", … ({more} more; --all shows them)"),
    };
    [
        choices(&compared(request, tuned)),
        gains(tuned),
        format!("order: {}{more}\n", order[..shown].join(", ")),
        front(tuned),
    ]
    .join("\n")
}

/// What the best split gains over the usual one, and loses by the proportional rule.
fn gains(tuned: &Tuned) -> String {
    let percent =
        |of: f64, than: f64| number(if than > 0.0 { (than - of) / than } else { 0.0 }, Unit::Percent);
    let (makespan, total) = seconds(&tuned.best);
    let gain = |name: &str, than: &Choice| {
        let (slower, longer) = seconds(than);
        let (makespan, total) = (percent(makespan, slower), percent(total, longer));
        format!("gain over half and half{name}: makespan {makespan}, total completion {total}\n")
    };
    let loss = tuned.exact.as_ref().map_or_else(String::new, |exact| {
        let (least, _) = seconds(exact);
        let loss = if least > 0.0 { makespan / least - 1.0 } else { 0.0 };
        format!("loss of the proportional rule: makespan {}\n", number(loss, Unit::Percent))
    });
    gain("", &tuned.default) + &gain(" as submitted", &tuned.submitted) + &loss
}

/// The Pareto front, with the paper's choice marked.
fn front(tuned: &Tuned) -> String {
    let value = |choice: &Choice| (choice.makespan, choice.total_completion);
    let is_paper = |choice: &Choice| value(choice) == value(&tuned.paper);
    let mark = |choice: &Choice| if is_paper(choice) { "Algorithm 5" } else { "" };
    let mut rows: Rows<'_> =
        tuned.pareto.iter().map(|choice| (mark(choice), choice, order_name(choice))).collect();
    let mut note = "";
    if !tuned.pareto.iter().any(is_paper) {
        rows.push(("Algorithm 5", &tuned.paper, order_name(&tuned.paper)));
        note = "Algorithm 5, the paper's choice, is beaten in both by one of the others\n";
    }
    format!("not beaten in both makespan and total completion time:\n{}{note}", choices(&rows))
}

fn choices(rows: &Rows<'_>) -> String {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("map\nslots", Align::Right),
        ("reduce\nslots", Align::Right),
        ("makespan", Align::Right),
        ("total\ncompletion", Align::Right),
        ("order", Align::Left),
    ]);
    let cells = |unit, value: &dyn Fn(&Choice) -> f64| {
        column(&rows.iter().map(|(_, choice, _)| Some(value(choice))).collect::<Vec<_>>(), unit)
    };
    let maps = cells(Unit::Count, &|choice| choice.split.map().into());
    let reduces = cells(Unit::Count, &|choice| choice.split.reduce().into());
    let makespans = cells(Unit::Measure, &|choice| seconds(choice).0);
    let totals = cells(Unit::Measure, &|choice| seconds(choice).1);
    for (k, (name, _, order)) in rows.iter().enumerate() {
        table.row([name, maps[k].as_str(), &reduces[k], &makespans[k], &totals[k], order]);
    }
    table.render()
}

fn csv(tuned: &Tuned, ids: &dyn Fn(&Choice) -> Vec<String>) -> String {
    let row = |(name, choice): (&str, &Choice)| {
        let (makespan, total) = seconds(choice);
        [
            name.to_owned(),
            choice.split.map().to_string(),
            choice.split.reduce().to_string(),
            exact(Some(makespan)),
            exact(Some(total)),
            ids(choice).join(" "),
        ]
    };
    let mut rows = vec![("best", &tuned.best)];
    rows.extend(tuned.exact.iter().map(|choice| ("exact", choice)));
    rows.extend([("default", &tuned.default), ("submitted", &tuned.submitted), ("paper", &tuned.paper)]);
    rows.extend(tuned.pareto.iter().map(|choice| ("pareto", choice)));
    let header = ["what", "map_slots", "reduce_slots", "makespan", "total_completion", "order"];
    slackline::report::csv(&header, rows.into_iter().map(row))
}

fn json(tuned: &Tuned, ids: &dyn Fn(&Choice) -> Vec<String>) -> String {
    let split = |choice: &Choice| {
        let (makespan, total_completion) = seconds(choice);
        TunedSplit {
            map_slots: choice.split.map(),
            reduce_slots: choice.split.reduce(),
            order: ids(choice),
            makespan,
            total_completion,
        }
    };
    write_tuning(&Tuning {
        best: split(&tuned.best),
        pareto: tuned.pareto.iter().map(split).collect(),
        default: split(&tuned.default),
        evaluated: tuned.evaluated,
        candidates: tuned.candidates,
    })
}
