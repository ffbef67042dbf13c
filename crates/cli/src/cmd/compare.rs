//! `compare`: several policies on one workload, side by side.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::Args;
use slackline::PolicySpec;
use slackline::compare::{Compared, SideBySide, compare};
use slackline::import::{Loaded, RecordedOptions, bounds};
use slackline::parallel::processors;
use slackline::recorded::{self, Distance};
use slackline::registry::ALL;
use slackline::report::comparison::About;
use slackline::report::number::{Unit, counted, number};
use slackline::report::table::fitted;
use slackline::report::{Figures, Row, View, comparison, headline, spread, write_schedule};
use slackline::simulate::SimulateError;
use slackline_model::schedule::{Clock, TaskRows};
use slackline_model::{Instance, Objective};

use super::Answer;
use crate::args::listed::Listed;
use crate::args::output::Form;
use crate::args::{OutputArgs, PolicyTimeout, Shape, SimulationArgs, TableArgs, policy, value};
use crate::clock::Stopwatches;
use crate::history::Past;
use crate::input::{self, Source, tell, warn_of_load};
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
  slackline compare trace.tsv --by size --machines 600 --slots 3 --deadlines 3

The gap is that between the cost and a lower bound on the cost of any schedule: no policy can be \
better by more. On a terminal each policy is shown as soon as it ends. With --seeds, figures are means ± half their 95 % interval. A --history is only read: \
every run begins with the same.")]
pub(crate) struct Compare {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policies, or all
    ///
    /// As in fifo,fair:by=flow. What follows command: is all one program with its arguments, commas included.
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
    /// Policies that run at a time [default: as many as there are processors]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u16>(1, u16::MAX.into()), help_heading = "Simulation")]
    threads: Option<u16>,
    #[command(flatten)]
    output: OutputArgs,
    /// A row for each policy and pool, user or size class
    ///
    /// Size classes are powers of ten of slot-seconds. JSON has all groups.
    #[arg(long, value_name = "WHAT", value_parser = group(), help_heading = "Output")]
    by: Option<&'static str>,
    #[command(flatten)]
    table: TableArgs,
    /// Write every schedule as DIR/POLICY.json
    ///
    /// Each is written when its policy ends. Without, no schedule is kept, and memory follows what runs at a time.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    schedules: Option<PathBuf>,
}

fn group() -> Listed<&'static str> {
    Listed::of("group", comparison::GROUPS.map(|by| (by, by)))
}

/// What all seeds have in common.
struct Setting<'a> {
    args: &'a Compare,
    source: &'a Source,
    past: &'a Past,
    policies: &'a [PolicySpec],
    progress: &'a Progress,
    /// Which policies took longer than they may.
    late: &'a [AtomicBool],
    /// Whether policies are shown as they end.
    is_shown: bool,
}

/// What one seed gave.
struct Round {
    rows: Vec<Row>,
    bound: Option<f64>,
    headlines: String,
    objective: Objective,
    options: RecordedOptions,
    sha256: String,
}

pub(crate) fn run(args: &Compare, tables: &Tables) -> anyhow::Result<Answer> {
    // What cannot be shown is better known before the simulations than after them.
    let columns = args.by.map_or_else(comparison::column_names, comparison::column_names_by);
    let view = args.table.view(&args.output, &columns)?;
    if let Some(by) = args.by
        && (args.seeds > 1 || args.output.form() == Form::Json)
    {
        bail!(
            "--by: found {by} with --seeds or JSON, expected a table or CSV of one seed: JSON has every group"
        );
    }
    let past = Past::read(&args.simulation)?;
    let source = input::read(&args.workload, args.output.file())?;
    let named = once(args.policies.iter().flat_map(|several| several.0.clone()));
    let mut policies: Vec<PolicySpec> = named.into_iter().map(|policy| args.answers.of(policy)).collect();
    let shape = args.shape.options(&tables.importers)?;
    let mut loaded = Some(source.load(&shape.clone().with_seed(args.shape.root_seed()))?);
    // What really happened stands first beside the policies that are compared unless others are asked for.
    if loaded.as_ref().is_some_and(|loaded| loaded.recorded.is_some())
        && policies.iter().map(PolicySpec::spec).eq(tables.policies.usual())
    {
        policies.insert(0, tables.policies.parse(recorded::NAME)?);
    }
    args.simulation.check_policies(&policies)?;
    input::tell_of(&policies);
    if let Some(dir) = &args.schedules {
        std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be made", dir.display()))?;
    }
    let first = args.shape.root_seed();
    let seeds: Vec<u64> = (0..u64::from(args.seeds)).map(|k| first.wrapping_add(k)).collect();
    let late: Vec<AtomicBool> = policies.iter().map(|_| AtomicBool::new(false)).collect();
    let mut progress = None;
    let mut rounds = Vec::new();
    for (k, &seed) in seeds.iter().enumerate() {
        let mut loaded = match loaded.take() {
            Some(first) => first,
            None => source.load(&shape.clone().with_seed(seed))?,
        };
        loaded.prepare(args.simulation.grain)?;
        if k == 0 {
            tell(&source.name, &loaded.diagnostics);
            warn_of_load(&loaded.instance);
            warn_of_seeds(args, &loaded);
        }
        let runs = policies.len() * seeds.len();
        let progress = progress.get_or_insert_with(|| Progress::new(runs, loaded.instance.n_tasks()));
        let setting = Setting {
            args,
            source: &source,
            past: &past,
            policies: &policies,
            progress,
            late: &late,
            is_shown: seeds.len() == 1,
        };
        rounds.push(round(&setting, &loaded, seed, k * policies.len())?);
    }
    drop(progress);
    if let Some(by) = args.by {
        let ran = || rounds[0].rows.iter().filter_map(|row| row.result.as_ref().ok());
        let has_groups = |figures: &Figures| figures.groups.iter().any(|group| group.by == by);
        if ran().next().is_some() && !ran().any(has_groups) {
            bail!("--by: found {by}, which tells no flows of {} apart", source.name);
        }
    }
    write(args, &view, &policies, &seeds, &rounds)?;
    let failed = |row: &Row| row.result.as_ref().is_ok_and(|figures| figures.failed > 0);
    let infeasible = |row: &Row| row.result.is_err();
    let no = rounds.iter().flat_map(|round| &round.rows).any(|row| failed(row) || infeasible(row));
    Ok(if no { Answer::No } else { Answer::Yes })
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

/// Runs all policies with one seed, which are those from `base` on of all runs.
fn round(setting: &Setting<'_>, loaded: &Loaded, seed: u64, base: usize) -> anyhow::Result<Round> {
    let Setting { args, source, past, policies, progress, late, .. } = *setting;
    let instance = &loaded.instance;
    let options = args.simulation.options().resolve(instance, seed, &past.history)?;
    // A bound holds for the durations of the workload, not for distorted ones.
    let bound = bounds(instance).best.filter(|_| options.clock() == Clock::Exact);
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
        rows: rows(setting, instance, &compared),
        bound,
        headlines,
        objective: instance.objective(),
        options,
        sha256: loaded.sha256.clone(),
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
        let meta = loaded.meta(options, seed, schedule);
        out::data(Some(&file), |out| write_schedule(out, &loaded.instance, schedule, &figures, &meta))?;
        schedule.tasks = TaskRows::new();
        Ok(())
    }
}

fn write(
    args: &Compare,
    view: &View,
    policies: &[PolicySpec],
    seeds: &[u64],
    rounds: &[Round],
) -> anyhow::Result<()> {
    let form = args.output.form();
    let runs = || by_policy(policies, rounds);
    let mut head = rounds[0].headlines.clone();
    // A bound holds for the durations of the workload, not for distorted ones.
    let no_bound = (args.simulation.options().distorts())
        .then_some("no lower bound and no gaps, because --jitter makes durations others than the workload's");
    if let [only] = rounds {
        let bound = no_bound.map_or_else(|| headline::bound(only.bound), str::to_owned);
        head.extend([&bound, "; times are seconds unless they show units"]);
    } else {
        let (n, from) = (counted(seeds.len() as u64, "seed"), seeds[0].to_string());
        head.extend([
            &n,
            " from ",
            &from,
            ": means ± half their 95 % interval; times are seconds unless they show units",
        ]);
        head.extend(no_bound.map(|why| format!("; {why}")));
    }
    let body = match (form, rounds) {
        (Form::Table, [only]) => match args.by {
            Some(by) => comparison::table_by(by, &only.rows, view),
            None => comparison::table(&only.rows, view),
        },
        (Form::Table, _) => spread::table(&runs(), view),
        (Form::Csv, [only]) => match args.by {
            Some(by) => comparison::csv_by(by, &only.rows),
            None => comparison::csv(&only.rows),
        },
        (Form::Csv, _) => spread::csv(&runs()),
        (Form::Json, _) => comparison::json(&about(seeds, rounds), &runs()),
    };
    if form == Form::Table {
        let head = fitted(&head, view.width);
        return out::text(args.output.file(), &format!("{head}\n{body}"));
    }
    out::talk(head);
    out::text(args.output.file(), &body)
}

/// What all rounds are about.
fn about(seeds: &[u64], rounds: &[Round]) -> About {
    let first = &rounds[0];
    let mut options = first.options.clone();
    // A workload that was drawn records its seed, but here there are several.
    options.retain(|name, _| name != "seed" || rounds.len() == 1);
    About {
        sha256: first.sha256.clone(),
        options,
        seeds: seeds.to_vec(),
        lower_bounds: rounds.iter().map(|round| round.bound).collect(),
        objective: first.objective,
    }
}

/// The rounds of each policy.
fn by_policy(policies: &[PolicySpec], rounds: &[Round]) -> Vec<spread::Runs> {
    let runs = |(k, policy): (usize, &PolicySpec)| {
        let results = rounds.iter().map(|round| round.rows[k].result.clone());
        let result: Result<Vec<Figures>, String> = results.collect();
        spread::Runs { policy: policy.spec().to_owned(), result }
    };
    policies.iter().enumerate().map(runs).collect()
}
