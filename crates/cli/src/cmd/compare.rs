//! `compare`: several policies on one workload, or on several files or pieces of one, side by side.

mod course;
mod drawing;
mod samples;
mod written;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::PossibleValue;
use slackline::PolicySpec;
use slackline::compare::{Compared, SideBySide, compare};
use slackline::import::{Every, Loaded, RecordedOptions, bounds};
use slackline::parallel::processors;
use slackline::recorded::{self, Distance};
use slackline::registry::ALL;
use slackline::report::number::{Unit, number};
use slackline::report::page::Drawn;
use slackline::report::{self, Figures, Row, comparison, headline, write_schedule};
use slackline::simulate::{Left, SimulateError};
use slackline_model::schedule::{Clock, TaskRows};
use slackline_model::{Instance, Objective};
use slackline_trace::Meta;

use self::course::{Course, Results};
use self::drawing::Drawing;
use self::samples::{Sample, Samples};
use self::written::Written;
use super::Answer;
use crate::args::listed::Listed;
use crate::args::output::Form;
use crate::args::{OutputArgs, PolicyTimeout, ReportArgs, Shape, SimulationArgs, TableArgs, policy, value};
use crate::clock::Stopwatches;
use crate::history::Past;
use crate::input::{self, Source};
use crate::out;
use crate::progress::Progress;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline compare examples/nightly.toml
  slackline compare examples/nightly.toml -p fifo,fair:by=flow,edf
  slackline compare examples/nightly.toml --jitter 0.3 --seeds 10
  slackline compare examples/nightly.toml -p all --timeout 5m
  slackline compare examples/nightly.toml -p fair,edf --machines 6,8,10
  slackline compare trace.tsv --by size --machines 600 --slots 3 --deadlines 3
  slackline compare week.jsonl --each day -p fifo,edf,auto
  slackline compare monday.swf tuesday.swf wednesday.swf -p fifo,fair

The gap is that between the cost and a lower bound on the cost of any schedule: no policy can be \
better by more. On a terminal each policy is shown as soon as it ends. With --seeds, figures are means ± half their 95 % interval, \
a rank is the mean of the ranks by cost, and differences to the first policy are paired, seed by seed. The same holds over several \
workloads, and with --each over the days of one. With several --machines there is a \
row for each size and policy (with --seeds tables for each size), and deadlines that --deadlines F makes are those of the largest cluster, \
for all sizes. A --history is only read: every run begins with the same.")]
pub(crate) struct Compare {
    /// Workload document or trace; - for standard input
    ///
    /// Of several, figures are means over them.
    #[arg(value_name = "WORKLOAD", required = true)]
    workloads: Vec<PathBuf>,
    /// Policies, or all
    ///
    /// As in fifo,fair:by=flow. all means the baselines and the policies of the papers; rule, auto and Hadoop's schedulers are
    /// named beside it, as in all,auto. What follows command: is all one program with its arguments, commas included.
    #[arg(long, short, value_name = "P,Q", default_value = ALL, value_parser = policy::several_of_standard(), help_heading = "Policy")]
    policies: Vec<policy::Several>,
    /// Longest that the simulation of a policy may take
    ///
    /// One that takes longer is stopped between two instants, and its row says so (exit code 1); the others go on.
    #[arg(long, hide_short_help = true, value_name = "DURATION", value_parser = value::seconds_above_zero, help_heading = "Policy")]
    timeout: Option<f64>,
    #[command(flatten)]
    answers: PolicyTimeout,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    simulation: SimulationArgs,
    /// Seeds to average over
    ///
    /// Each draws by itself; figures are means, intervals and paired differences.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u32>(1, 10_000), help_heading = "Simulation")]
    seeds: u32,
    /// Cut the workload into days (or weeks, or pieces of such a length) and average over them
    ///
    /// day, week, or a duration such as 6h. A day is from midnight to midnight where the workload has a start, and has the flows that
    /// are released in it. Each piece begins with an empty cluster, so that what a day leaves to the next is not counted.
    #[arg(long, hide_short_help = true, value_name = "day|DURATION", value_parser = str::parse::<Every>, help_heading = "Simulation")]
    each: Option<Every>,
    /// Policies that run at a time [default: as many as there are processors]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u16>(1, u16::MAX.into()), help_heading = "Simulation")]
    threads: Option<u16>,
    #[command(flatten)]
    output: OutputArgs,
    /// A row for each policy and pool, user or size class
    ///
    /// Queues and partitions of logs are pools; queue is the same word here. Size classes are powers of ten of slot-seconds.
    /// JSON has all groups.
    #[arg(long, value_name = "WHAT", value_parser = group(), help_heading = "Output")]
    by: Option<&'static str>,
    #[command(flatten)]
    table: TableArgs,
    /// Write every schedule as DIR/POLICY.json
    ///
    /// Each is written when its policy ends. Without, no schedule is kept, and memory follows what runs at a time.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    schedules: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

fn group() -> Listed<&'static str> {
    // Hadoop's word for a pool.
    let name = |by: &'static str| match by {
        "pool" => PossibleValue::new(by).alias("queue"),
        _ => PossibleValue::new(by),
    };
    Listed::of("group", comparison::GROUPS.map(|by| (name(by), by)))
}

/// What all samples have in common.
struct Setting<'a> {
    args: &'a Compare,
    source: &'a Source,
    past: &'a Past,
    policies: &'a [PolicySpec],
    progress: &'a Progress,
    /// Which policies took longer than they may on this cluster.
    late: &'a [AtomicBool],
    /// Whether policies are shown as they end.
    is_shown: bool,
}

/// What one sample gave on one cluster.
struct Round {
    /// Which sample, where they are files or pieces.
    name: Option<String>,
    machines: u32,
    /// How many flows it has, and what the cluster is.
    flows: u64,
    cluster: String,
    rows: Vec<Row>,
    bound: Option<f64>,
    headlines: String,
    objective: Objective,
    options: RecordedOptions,
    /// What is drawn of each policy, if this round is.
    drawn: Vec<Option<Drawn>>,
}

pub(crate) fn run(args: &Compare, tables: &Tables) -> anyhow::Result<Answer> {
    // What cannot be shown is better known before the simulations than after them.
    let shapes = args.shape.sizes();
    let is_swept = shapes.len() > 1;
    let mut columns = args.by.map_or_else(comparison::column_names, comparison::column_names_by);
    let is_averaged = args.seeds > 1 || args.workloads.len() > 1 || args.each.is_some();
    if is_swept && !is_averaged {
        columns.insert(0, comparison::MACHINES);
    }
    let view = args.table.view(&args.output, &columns)?;
    if let Some(by) = args.by
        && args.output.form() == Form::Json
    {
        bail!(
            "--by: found {by} with --format json, expected a table or CSV: JSON has every group without it"
        );
    }
    if is_swept {
        refuse_with_sizes(args)?;
    }
    refuse_schedules_of_several(args)?;
    let past = Past::read(&args.simulation)?;
    let read = |workload: &PathBuf| input::read(workload, args.output.file());
    let sources = args.workloads.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let named = once(args.policies.iter().flat_map(|several| several.0.clone()));
    let mut policies: Vec<PolicySpec> = named.into_iter().map(|policy| args.answers.of(policy)).collect();
    let shapes =
        shapes.iter().map(|shape| shape.options(&tables.importers)).collect::<anyhow::Result<Vec<_>>>()?;
    let first = args.shape.root_seed();
    let seeds: Vec<u64> = (0..u64::from(args.seeds)).map(|k| first.wrapping_add(k)).collect();
    let samples = Samples { sources: &sources, every: args.each, seeds: &seeds };
    let mut of_first = Some(samples.of(&sources[0], &shapes[0], first)?);
    let loaded = of_first.as_ref().and_then(|samples| Some(&samples.first()?.loaded));
    // What really happened stands first beside the policies that are compared unless others are asked for; it did on one
    // cluster.
    if !is_swept
        && loaded.is_some_and(|loaded| loaded.recorded.is_some())
        && policies.iter().map(PolicySpec::spec).eq(tables.policies.usual())
    {
        policies.insert(0, tables.policies.parse(recorded::NAME)?);
    }
    args.simulation.check_policies(&policies)?;
    input::tell_of(&policies);
    // Tables of groups and of several sizes do not show how far the rows are from what happened.
    let beside = Some(policies.as_slice()).filter(|_| !is_swept && args.by.is_none());
    let has_profile = args.simulation.profile.0.is_some();
    let warning = loaded.and_then(|loaded| input::warn_of_recorded(loaded, beside, has_profile));
    if let Some(dir) = &args.schedules {
        std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be made", dir.display()))?;
    }
    let course = Course {
        args,
        samples: &samples,
        shapes: &shapes,
        policies: &policies,
        past: &past,
        is_shown: !is_averaged && !is_swept,
    };
    let Results { mut sizes, first_loaded } = course.run(of_first.take())?;
    if let Some(by) = args.by {
        refuse_without_groups(by, &sizes[0], &samples.title())?;
    }
    let written = Written { args, view: &view, policies: &policies, samples: &samples, warning };
    match sizes.as_slice() {
        [only] => written.write(only)?,
        several => written.write_sizes(several)?,
    }
    if let Some(loaded) = &first_loaded {
        written.write_page(loaded, &mut sizes)?;
    }
    let failed = |row: &Row| row.result.as_ref().is_ok_and(|figures| figures.failed > 0);
    let infeasible = |row: &Row| row.result.is_err();
    let no = sizes.iter().flatten().flat_map(|round| &round.rows).any(|row| failed(row) || infeasible(row));
    Ok(if no { Answer::No } else { Answer::Yes })
}

/// A table of groups has nothing to show where no flows are in any.
fn refuse_without_groups(by: &str, rounds: &[Round], workload: &str) -> anyhow::Result<()> {
    let ran = || rounds.iter().flat_map(|round| &round.rows).filter_map(|row| row.result.as_ref().ok());
    let has_groups = |figures: &Figures| figures.groups.iter().any(|group| group.by == by);
    if ran().next().is_some() && !ran().any(has_groups) {
        bail!("--by: found {by}, which tells no flows of {workload} apart");
    }
    Ok(())
}

/// Schedules are for `check`, which reads one workload as it is.
fn refuse_schedules_of_several(args: &Compare) -> anyhow::Result<()> {
    let found = match args.each {
        Some(_) => "--each",
        None if args.workloads.len() > 1 => "several workloads",
        None => return Ok(()),
    };
    if args.schedules.is_some() {
        bail!("--schedules: found {found} with it, expected one workload as it is, which `check` can read");
    }
    Ok(())
}

/// What is for one cluster only.
fn refuse_with_sizes(args: &Compare) -> anyhow::Result<()> {
    let flag = [
        ("by", args.by.is_some()),
        ("schedules", args.schedules.is_some()),
        ("format json", args.output.form() == Form::Json),
    ];
    if let Some((flag, _)) = flag.iter().find(|(_, given)| *given) {
        bail!(
            "--{flag}: found several numbers of machines with it, expected one (--machines N), or a table or CSV of all"
        );
    }
    Ok(())
}

/// Each policy once, in order; says which were named again.
fn once(named: impl Iterator<Item = PolicySpec>) -> Vec<PolicySpec> {
    let mut policies: Vec<PolicySpec> = Vec::new();
    for policy in named {
        if policies.iter().any(|known| known.spec() == policy.spec()) {
            out::warn(format_args!("--policies: found {} again, which is compared once", policy.spec()));
        } else {
            policies.push(policy);
        }
    }
    policies
}

fn warn_of_seeds(args: &Compare, loaded: &Loaded) {
    if args.seeds > 1 && !args.simulation.options().draws() && !loaded.options.contains_key("seed") {
        out::warn(
            "nothing here is drawn, so every seed gives the same; see --jitter, --noise and --crash-rate",
        );
    }
}

/// Runs all policies on one sample, which are those from `base` on of all runs.
fn round(setting: &Setting<'_>, sample: &Sample, base: usize, is_drawn: bool) -> anyhow::Result<Round> {
    let Sample { ref name, seed, ref loaded } = *sample;
    let Setting { args, source, past, policies, progress, late, .. } = *setting;
    let instance = &loaded.instance;
    let options = args.simulation.options().resolve(instance, seed, &past.history)?;
    // A bound holds for the durations of the workload, not for distorted ones.
    let bound = bounds(instance).best.filter(|_| options.clock() == Clock::Exact);
    let drawing = is_drawn.then(|| Drawing::new(instance, policies.len()));
    let heard = |k: usize, row: Left<'_>| drawing.iter().for_each(|drawing| drawing.take(k, row));
    let stopwatches = Stopwatches::new(policies.len());
    let unwritten = OnceLock::new();
    let cancel = |k: usize| {
        let seconds = stopwatches.seconds(k);
        if args.timeout.is_some_and(|most| seconds > most) {
            late[k].store(true, Ordering::Relaxed);
        }
        // One that was late with another seed has no figures anyway.
        late[k].load(Ordering::Relaxed) || unwritten.get().is_some()
    };
    let ended = |k: usize, compared: &mut Compared| {
        progress.at(base + k, instance.n_tasks());
        if setting.is_shown {
            progress.say(|| line(setting, &setting.row(instance, compared), stopwatches.seconds(k)));
        }
        if let Some(drawing) = &drawing {
            drawing.finish(k, compared);
        }
        if let Err(error) = setting.keep(loaded, seed, compared) {
            // One is enough to say.
            let _ = unwritten.set(error);
        }
    };
    let how = SideBySide::default()
        .with_threads(args.threads.map_or_else(processors, usize::from))
        .with_schedules(args.schedules.is_some())
        .with_cancel(&cancel)
        .with_ended(&ended)
        .with_left(is_drawn.then_some(&heard))
        .with_recorded(loaded.recorded.as_ref());
    let told = |k: usize, done: u64| progress.at(base + k, done);
    let compared = compare(instance, policies, &options, bound, how.with_progress(&told));
    if let Some(error) = unwritten.into_inner() {
        return Err(error);
    }
    let objective = headline::objective(instance.objective());
    let headlines = format!("{}{objective}, ", headline::lines(source.short_name(), instance));
    let mut options = loaded.options.clone();
    args.simulation.options().record(&mut options, past.sha256.as_deref());
    Ok(Round {
        name: name.clone(),
        machines: instance.cluster().n_machines(),
        flows: instance.flows().len() as u64,
        cluster: headline::cluster(instance),
        rows: rows(setting, instance, &compared),
        bound,
        headlines,
        objective: instance.objective(),
        options,
        drawn: drawing.map_or_else(Vec::new, Drawing::into_drawn),
    })
}

/// The row of each policy, with how far it is from what was recorded, if anything was.
fn rows(setting: &Setting<'_>, instance: &Instance, compared: &[Compared]) -> Vec<Row> {
    let is_recorded = |one: &&Compared| one.policy.name() == recorded::NAME;
    let recorded = compared.iter().find(is_recorded).and_then(|one| Some(&one.result.as_ref().ok()?.flows));
    let row = |one: &Compared| {
        let mut row = setting.row(instance, one);
        if let (Some(recorded), Ok(simulated), Ok(figures)) = (recorded, &one.result, &mut row.result)
            && !is_recorded(&one)
        {
            let distance = Distance::between(instance, recorded, &simulated.flows);
            figures.metrics.extend(distance.into_iter().flat_map(Distance::entries));
        }
        row
    };
    compared.iter().map(row).collect()
}

/// What is said of a policy when it ends.
fn line(setting: &Setting<'_>, row: &Row, seconds: f64) -> String {
    const MOST: usize = 30;
    let width = setting.policies.iter().map(|policy| policy.spec().chars().count()).max().unwrap_or(0);
    let took = number(seconds, Unit::Measure);
    format!("{:width$}  {} ({took} s)", row.policy, comparison::line(row), width = width.min(MOST))
}

impl Setting<'_> {
    fn row(&self, instance: &Instance, compared: &Compared) -> Row {
        let result = match &compared.result {
            Ok(simulated) => {
                let groups = comparison::groups(instance, &simulated.flows);
                Ok(Figures { groups, ..Figures::of_simulation(simulated) })
            }
            Err(SimulateError::Infeasible(violation)) => {
                Err(format!("its schedule is not feasible: {violation}"))
            }
            Err(SimulateError::Stopped) => {
                Err(format!("not finished in {} s", self.args.timeout.unwrap_or_default()))
            }
            Err(problem) => Err(problem.to_string()),
        };
        Row { policy: compared.policy.spec().to_owned(), result }
    }

    /// Writes the schedule of one policy, if that is asked for; then its rows are given up.
    fn keep(&self, loaded: &Loaded, seed: u64, compared: &mut Compared) -> anyhow::Result<()> {
        let (Some(dir), Ok(simulated)) = (&self.args.schedules, &mut compared.result) else { return Ok(()) };
        let suffix = if self.args.seeds > 1 { format!("-seed{seed}") } else { String::new() };
        let file = dir.join(format!("{}{suffix}.json", compared.policy.file_name()));
        let figures = Figures::of_simulation(simulated);
        let mut options = loaded.options.clone();
        self.args.simulation.options().record(&mut options, self.past.sha256.as_deref());
        let schedule = &mut simulated.schedule;
        let meta =
            Meta { choices: report::choices(&simulated.choices), ..loaded.meta(options, seed, schedule) };
        out::data(Some(&file), |out| write_schedule(out, &loaded.instance, schedule, &figures, &meta))?;
        schedule.tasks = TaskRows::new();
        Ok(())
    }
}
