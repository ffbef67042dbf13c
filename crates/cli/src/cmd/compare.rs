//! `compare`: several policies on one workload, side by side.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use slackline::PolicySpec;
use slackline::compare::{Compared, SideBySide, compare};
use slackline::import::{Loaded, RecordedOptions, bounds};
use slackline::parallel::processors;
use slackline::registry::ALL;
use slackline::report::comparison::About;
use slackline::report::number::counted;
use slackline::report::table::fitted;
use slackline::report::{Figures, Row, View, comparison, headline, spread, write_schedule};
use slackline::simulate::SimulateError;
use slackline_model::{Instance, Objective};

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, PolicyTimeout, Shape, SimulationArgs, TableArgs, policy, value};
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
  slackline compare trace.tsv --machines 600 --slots 3 --deadlines 3

The gap is that between the cost and a lower bound on the cost of any schedule: no policy can be \
better by more. With --seeds, figures are means ± half their 95 % interval. A --history is only read: \
every run begins with the same.")]
pub(crate) struct Compare {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policies, as in fifo,fair:by=flow
    ///
    /// What follows command: is all one program with its arguments, commas included.
    #[arg(long, short, value_name = "P,Q", default_value = ALL, value_parser = policy::several_of_standard(), help_heading = "Policy")]
    policies: Vec<policy::Several>,
    #[command(flatten)]
    timeout: PolicyTimeout,
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
    #[command(flatten)]
    table: TableArgs,
    /// Keep every schedule as DIR/POLICY.json
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    schedules: Option<PathBuf>,
}

/// What all seeds have in common.
struct Setting<'a> {
    args: &'a Compare,
    source: &'a Source,
    past: &'a Past,
    policies: &'a [PolicySpec],
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
    let view = args.table.view(&args.output, &comparison::column_names())?;
    let past = Past::read(&args.simulation)?;
    let source = input::read(&args.workload, args.output.file())?;
    let named = args.policies.iter().flat_map(|several| several.0.clone());
    let policies: Vec<PolicySpec> = named.map(|policy| args.timeout.of(policy)).collect();
    args.simulation.check_policies(&policies)?;
    if let Some(dir) = &args.schedules {
        std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be made", dir.display()))?;
    }
    let first = args.shape.root_seed();
    let seeds: Vec<u64> = (0..u64::from(args.seeds)).map(|k| first.wrapping_add(k)).collect();
    let setting = Setting { args, source: &source, past: &past, policies: &policies };
    let mut progress = None;
    let mut rounds = Vec::new();
    for (k, &seed) in seeds.iter().enumerate() {
        let shape = args.shape.options(&tables.importers)?.with_seed(seed);
        let mut loaded = source.load(&shape)?;
        loaded.prepare(args.simulation.grain)?;
        if k == 0 {
            tell(&source.name, &loaded.diagnostics);
            warn_of_load(&loaded.instance);
            warn_of_seeds(args, &loaded);
        }
        let runs = policies.len() * seeds.len();
        let progress = progress.get_or_insert_with(|| Progress::new(runs, loaded.instance.n_tasks()));
        let base = k * policies.len();
        rounds.push(round(&setting, &loaded, seed, &|policy, done| progress.at(base + policy, done))?);
    }
    drop(progress);
    write(args, &view, &policies, &seeds, &rounds)?;
    let failed = |row: &Row| row.result.as_ref().is_ok_and(|figures| figures.failed > 0);
    let infeasible = |row: &Row| row.result.is_err();
    let no = rounds.iter().flat_map(|round| &round.rows).any(|row| failed(row) || infeasible(row));
    Ok(if no { Answer::No } else { Answer::Yes })
}

fn warn_of_seeds(args: &Compare, loaded: &Loaded) {
    if args.seeds > 1 && !args.simulation.options().draws() && !loaded.options.contains_key("seed") {
        out::warn(
            "nothing here is drawn, so every seed gives the same; see --jitter, --noise and --crash-rate",
        );
    }
}

/// Runs all policies with one seed.
fn round(
    setting: &Setting<'_>,
    loaded: &Loaded,
    seed: u64,
    progress: &(dyn Fn(usize, u64) + Sync),
) -> anyhow::Result<Round> {
    let Setting { args, source, past, policies } = *setting;
    let instance = &loaded.instance;
    let options = args.simulation.options().resolve(instance, seed, &past.history)?;
    // A bound holds for the durations of the workload, not for distorted ones.
    let bound = bounds(instance).best.filter(|_| args.simulation.jitter == 0.0);
    let threads = args.threads.map_or_else(processors, usize::from);
    let how = SideBySide::default().with_threads(threads).with_progress(progress);
    let mut compared = compare(instance, policies, &options, bound, how);
    for k in 0..policies.len() {
        progress(k, instance.n_tasks());
    }
    if let Some(dir) = &args.schedules {
        let suffix = if args.seeds > 1 { format!("-seed{seed}") } else { String::new() };
        for one in &mut compared {
            let file = dir.join(format!("{}{suffix}.json", one.policy.file_name()));
            keep(&file, setting, loaded, seed, one)?;
        }
    }
    let objective = headline::objective(instance.objective());
    let headlines = format!("{}{objective}, ", headline::lines(source.short_name(), instance));
    let mut options = loaded.options.clone();
    args.simulation.options().record(&mut options, past.sha256.as_deref());
    Ok(Round {
        rows: compared.iter().map(|one| row(instance, one)).collect(),
        bound,
        headlines,
        objective: instance.objective(),
        options,
        sha256: loaded.sha256.clone(),
    })
}

fn row(instance: &Instance, compared: &Compared) -> Row {
    let result = match &compared.result {
        Ok(simulated) => {
            let groups = comparison::groups(instance, &simulated.flows);
            Ok(Figures { groups, ..Figures::of_simulation(simulated) })
        }
        Err(SimulateError::Infeasible(violation)) => {
            Err(format!("its schedule is not feasible: {violation}"))
        }
        Err(problem) => Err(problem.to_string()),
    };
    Row { policy: compared.policy.spec().to_owned(), result }
}

/// Writes the schedule of one policy.
fn keep(
    file: &Path,
    setting: &Setting<'_>,
    loaded: &Loaded,
    seed: u64,
    compared: &mut Compared,
) -> anyhow::Result<()> {
    let Ok(simulated) = &mut compared.result else { return Ok(()) };
    let figures = Figures::of_simulation(simulated);
    let mut options = loaded.options.clone();
    setting.args.simulation.options().record(&mut options, setting.past.sha256.as_deref());
    let schedule = &mut simulated.schedule;
    let meta = loaded.meta(options, seed, schedule);
    out::data(Some(file), |out| write_schedule(out, &loaded.instance, schedule, &figures, &meta))
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
    if let [only] = rounds {
        head.extend([headline::bound(only.bound).as_str(), "; times are seconds unless they show units"]);
    } else {
        let (n, from) = (counted(seeds.len() as u64, "seed"), seeds[0].to_string());
        head.extend([
            &n,
            " from ",
            &from,
            ": means ± half their 95 % interval; times are seconds unless they show units",
        ]);
    }
    let body = match (form, rounds) {
        (Form::Table, [only]) => comparison::table(&only.rows, view),
        (Form::Table, _) => spread::table(&runs(), view),
        (Form::Csv, [only]) => comparison::csv(&only.rows),
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
