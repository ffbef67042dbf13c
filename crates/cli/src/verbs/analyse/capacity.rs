//! `capacity`: the smallest cluster, or the best setting, that meets conditions under a policy.

mod draws;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use slackline::capacity::{
    Axis, Capacity as SearchResult, CapacityError, Condition, Draws, Knob, Method, NoCondition, Search,
    SearchStep, SeededDraft, Values, search,
};
use slackline::import::{ImportError, SlotOptions, WorkloadOptions, grain_span};
use slackline::parallel::processors;
use slackline::report::capacity as report;
use slackline::report::page::{Collector, Page, PageOrigin};
use slackline::report::{Row, headline};
use slackline::simulate::{FinalRow, Options, QuickBound, Watch, simulate_figures};
use slackline::{PolicySpec, Registry};
use slackline_model::load::LoadBy;
use slackline_model::{Draft, Instance};
use slackline_task::base::system::on_stop_signal;
use slackline_trace::Importers;

use self::draws::DrawArgs;
use crate::args::history::HistoryFile;
use crate::args::listed::NamedValue;
use crate::args::output::Form;
use crate::args::report::about;
use crate::args::value::{self, Machines};
use crate::args::{OutputArgs, PolicyTimeout, ReportArgs, Shape, SimulationArgs, TableArgs, policy};
use crate::tables::Tables;
use crate::terminal::clock::Stopwatches;
use crate::terminal::input::{Source, report_diagnostics, report_remarks, warn_of_load, warn_of_recorded};
use crate::terminal::progress::Cells;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline capacity examples/nightly.toml --machines 1..50 --until missed:0 -p edf
  slackline capacity trace.tsv --machines 10..6000 --deadlines 3 --until missed:1% --until p95_response:2h -p edf
  slackline capacity examples/nightly.toml --machines 4..40 --until missed:0 -p edf --jitter 0.3 --noise 0.3
  slackline capacity examples/nightly.toml --over load=0.8..3:0.05 -p edf
  slackline capacity examples/nightly.toml --over slowstart=0.05..1 -p fair
  slackline capacity examples/hadoop-log --over capacity:prod=20..80:5 -p yarn-capacity:file=examples/hadoop-log/capacity-scheduler.xml

Sizes, --machines A..B or --over slots=A..B, are searched for the smallest that meets every --until: by bisection, and \
then next to the answer and about 5 % from it, because more machines are not always better. --search every tries all \
sizes up to the answer. Settings (--over slowstart=A..B, heartbeat=A..B, capacity:QUEUE=A..B, param:NAME=A..B), speeds, \
sizes with a step (A..B:STEP) and sizes without --until are all simulated (--format csv gives the curve). Deadlines of --deadlines F are \
the same for all sizes and settings. When \
the capacity of a queue is varied, maximums below it are raised to it. The exit code is 1 if nothing meets the \
conditions.

Where anything is random (--jitter, --noise, --crash-rate, a profile, or a trace without task times), each value is simulated \
with several seeds, the same for all values. A value meets the conditions if they hold in 95 % of the draws (--confidence). \
The table shows means, the 80 % range of the draws, and the chance with its 95 % interval. Of settings, the answer names those \
whose cost is about the lowest. Ctrl-C ends the search and prints the results so far.

`slackline tune` finds the best split of map and reduce slots.")]
pub(crate) struct Capacity {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Find the fewest machines with METRIC at most N
    ///
    /// Such as missed:0, missed:1% (of the flows with deadlines) or mean_response:5m; given several times,
    /// all must hold. For another comparison write one of < <= = >= > instead of the colon and quote it for
    /// the shell: 'utilisation>=0.5'. A METRIC alone takes its limit from --at-most.
    #[arg(long, value_name = "METRIC:N", value_parser = until(), hide_possible_values = true, help_heading = "Capacity")]
    until: Vec<UntilArg>,
    /// Limit of an --until without a limit; for several, in their order
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
    /// NAME is slots, map-slots, reduce-slots or speed of each machine, load (see --load-by), slowstart, heartbeat, capacity:QUEUE, or
    /// param:NAME for a parameter of the policy. capacity:QUEUE is the percentage of its parent that a queue of
    /// yarn-capacity has; the other queues of the parent share the rest in proportion. NAME=A..B:STEP tries every
    /// STEP. For a size the smallest value that meets every --until is found, for a load the largest up to which all
    /// do (by default missed:0), for a setting the value with the least cost.
    #[arg(long, value_name = "NAME=A..B", value_parser = axis(), hide_possible_values = true, help_heading = "Capacity")]
    over: Option<Axis>,
    /// Search sizes by bisection, or try every size up to the answer
    #[arg(long, hide_short_help = true, value_enum, default_value = "bisect", help_heading = "Capacity")]
    search: SearchArg,
    #[command(flatten)]
    draws: DrawArgs,
    /// Price of a machine per hour; adds a column of prices
    #[arg(long, hide_short_help = true, value_name = "PRICE", value_parser = value::price, help_heading = "Capacity")]
    machine_hour: Option<f64>,
    /// Simulations at a time [default: one per processor]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u16>(1, u16::MAX.into()), help_heading = "Capacity")]
    threads: Option<u16>,
    /// Policy that runs the cluster, as in fair:by=flow
    #[arg(long, short, value_name = "POLICY", value_parser = policy::standard(), help_heading = "Capacity")]
    policy: PolicySpec,
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
    /// Show every value that was tried
    #[arg(long, help_heading = "Output")]
    all: bool,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchArg {
    // By halves, with checks at the end.
    Bisect,
    // All sizes up to the answer.
    Every,
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

/// The policy that searches first: one that takes a fraction of a second on a large trace.
fn scout(conditions: &[Condition], policy: &PolicySpec) -> Option<PolicySpec> {
    let name = if conditions.iter().any(Condition::is_about_deadlines) { "edf" } else { "fifo" };
    let is_fast = ["fifo", "edf"].contains(&policy.name());
    (!is_fast).then(|| Registry::standard().parse(name).ok()).flatten()
}

impl Capacity {
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
            None if conditions.is_empty() && self.over.as_ref().is_some_and(|axis| axis.knob.is_load()) => {
                Ok(vec!["missed<=0".parse().context("missed<=0")?])
            }
            Some(limit) => {
                bail!(
                    "--at-most: found {limit}, which belongs to no --until, expected --until METRIC with it"
                )
            }
            None => Ok(conditions),
        }
    }

    fn axis(&self, source: &Source, importers: &Importers) -> anyhow::Result<Axis> {
        match (&self.over, &self.shape.machines) {
            (Some(axis), _) if axis.knob.is_load() => {
                if let Some(load) = self.shape.load {
                    bail!("--load: found {load} with --over load, expected one of them");
                }
                let rule = source.shape(&self.shape.options(importers)?)?.load_rule();
                Ok(Axis { knob: Knob::Load(rule), values: axis.values.clone() })
            }
            (Some(axis), Some(machines)) if axis.knob == Knob::Machines => {
                bail!("--machines: found {machines} with --over machines, expected one of them")
            }
            (Some(axis), _) => Ok(axis.clone()),
            (None, Some(Machines::Range(least, most))) => Ok(Axis::machines(*least..=*most)),
            (None, Some(Machines::List(sizes))) => {
                let values = Values::Listed(sizes.iter().copied().map(f64::from).collect());
                Ok(Axis { knob: Knob::Machines, values })
            }
            (None, None) => {
                bail!("nothing to vary: pass --machines A..B or --over NAME=A..B")
            }
        }
    }

    /// The workload on the cluster where the axis has this value.
    fn sized(&self, importers: &Importers, axis: &Axis, value: f64) -> anyhow::Result<WorkloadOptions> {
        let is_machines = axis.knob == Knob::Machines;
        let machines = if is_machines { None } else { self.shape.machines.clone() };
        let options = Shape { machines, ..self.shape.clone() }.options(importers)?;
        Ok(match axis.knob {
            Knob::Machines => WorkloadOptions { machines: Some(value as u32), ..options },
            Knob::Speed => WorkloadOptions { speed: Some(value), ..options },
            Knob::Slots => WorkloadOptions { slots: Some(SlotOptions::Generic(value as u32)), ..options },
            _ => options,
        })
    }
}

pub(crate) fn run(asked: &Capacity, tables: &Tables) -> anyhow::Result<Answer> {
    let source = &input::read(&asked.workload, asked.output.file())?;
    let (policy, conditions) = (&asked.timeout.of(asked.policy.clone()), &asked.conditions()?[..]);
    let (price, axis) = (asked.machine_hour, &asked.axis(source, &tables.importers)?);
    let sized = |value| asked.sized(&tables.importers, axis, value);
    let large = sized(axis.largest())?;
    let mut loaded = source.load(&large)?;
    let is_drawn_by_load = matches!(axis.knob, Knob::Load(rule) if rule.by == LoadBy::Jobs);
    let is_drawn_by_import = loaded.depends_on_seed() || is_drawn_by_load;
    let rule = asked.draws.rule(is_drawn_by_import || asked.simulation.options().draws());
    let question = report::SearchQuestion { policy, conditions, axis, price, rule };
    let names = report::columns(&question);
    let view = asked.table.view(&asked.output, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    report_diagnostics(&source.name, &loaded.diagnostics);
    report_remarks(std::slice::from_ref(policy));
    warn_of_recorded(&loaded, None, asked.simulation.profile.0.is_some());
    loaded.prepare(asked.simulation.grain)?;
    refuse_idle_conditions(conditions, &loaded.instance, &source.name)?;
    // Crashes are of machines that every size has.
    let past = HistoryFile::read(&asked.simulation)?;
    let smallest_instance = source.load(&sized(axis.smallest())?)?.instance;
    let seed = asked.shape.root_seed();
    let options = asked.simulation.options().resolve(&smallest_instance, seed, &past.history)?;
    let search_input = SearchInput { asked, source, question, large, options, is_drawn_by_import };
    let (found, simulation) = match search_input.find()? {
        Ok(found) => found,
        Err(CapacityError::Invalid(invalid)) => bail!("{}: {invalid}", source.name),
        Err(CapacityError::Axis(problem)) => bail!("--over: {problem}"),
        Err(error) => {
            out::error(&anyhow!("{}: {error}", policy.spec()));
            return Ok(Answer::No);
        }
    };
    let head = format!(
        "{}\n{}\ncost: {}\n",
        headline::flows(source.short_name(), &loaded.instance),
        report::outcome(&found, &question),
        headline::objective_of(&loaded.instance)
    );
    let body = match asked.output.form() {
        Form::Table => report::table(&found, &question, asked.all, &view),
        Form::Csv => report::csv(&found, &question),
        Form::Json => report::json(&found, &question, loaded.not_modelled()),
    };
    asked.output.write(&head, &body, &view)?;
    if asked.report.is_asked() {
        // The cluster that is drawn is that of the answer.
        let mut recorded = match found.found {
            Some(value) => source.load(&sized(value)?)?.options,
            None => loaded.options.clone(),
        };
        asked.simulation.options().record(&mut recorded, past.sha256.as_deref());
        let (sha256, not_modelled) = (loaded.sha256.clone(), loaded.not_modelled());
        let about = about(source.short_name(), "capacity", vec![seed], recorded, sha256, not_modelled);
        let page = match &simulation {
            Some(simulation) => simulation.page(&question, about)?,
            None => Page::new(&loaded.instance, about),
        };
        asked.report.write(&page.with_capacity(&found, &question))?;
    }
    Ok(if found.found.is_some() && !found.is_interrupted { Answer::Yes } else { Answer::No })
}

/// The input of a search.
struct SearchInput<'a> {
    asked: &'a Capacity,
    source: &'a Source,
    question: report::SearchQuestion<'a>,
    /// The workload on the largest cluster.
    large: WorkloadOptions,
    options: Options,
    /// Whether the import draws task times.
    is_drawn_by_import: bool,
}

impl SearchInput<'_> {
    /// Searches, with progress on a terminal until the end. The inner errors are those of the search.
    fn find(&self) -> anyhow::Result<Result<(SearchResult, Option<AnswerSimulation>), CapacityError>> {
        let Self { asked, question, options, .. } = self;
        let report::SearchQuestion { policy, conditions, axis, rule, .. } = *question;
        let seed = asked.shape.root_seed();
        let draft = self.draft(seed)?;
        let draft_of = |seed: u64| self.draft(seed).map_err(|error| error.to_string());
        let shown = SearchProgress::new(axis);
        let report_progress = |tried: &SearchStep| shown.one_more(tried);
        let stop = stop_on_interrupt();
        let cancel = || stop.load(Ordering::Relaxed);
        let clock = Stopwatches::new(1);
        let is_out_of_time = || asked.draws.is_over(clock.seconds(0));
        // The first reading starts the clock.
        is_out_of_time();
        let scout = scout(conditions, policy);
        let search_for = Search {
            method: match asked.search {
                SearchArg::Bisect => Method::Bisect,
                SearchArg::Every => Method::Every,
            },
            scout: scout.as_ref(),
            draws: rule.map(|rule| Draws {
                rule,
                seed,
                draft: self.is_drawn_by_import.then_some(&draft_of as &SeededDraft<'_>),
                is_out_of_time: &is_out_of_time,
            }),
            grain: grain_span(asked.simulation.grain),
            threads: asked.threads.map_or_else(processors, usize::from),
            cancel: &cancel,
            on_step: &report_progress,
            ..Search::new(policy, conditions, axis, options)
        };
        let with_simulation = |found: SearchResult| {
            let value = found.found.filter(|_| asked.report.is_asked());
            let simulation =
                value.map(|value| AnswerSimulation::at(&search_for, &draft, value)).transpose()?;
            Ok((found, simulation))
        };
        Ok(search(&draft, &search_for).and_then(with_simulation))
    }

    /// The workload for a seed.
    fn draft(&self, seed: u64) -> Result<Draft, ImportError> {
        let shaped = self.source.shape(&WorkloadOptions { seed: Some(seed), ..self.large.clone() })?;
        Ok(shaped.into_draft()?.0)
    }
}

/// The simulation of the answer, which the page draws.
struct AnswerSimulation {
    value: f64,
    policy: PolicySpec,
    instance: Instance,
    options: Options,
}

impl AnswerSimulation {
    /// The simulation of a value with the first seed.
    fn at(search: &Search<'_>, draft: &Draft, value: f64) -> Result<Self, CapacityError> {
        let (policy, (instance, options)) = (search.policy_at(value)?, search.at(draft, value)?);
        Ok(Self { value, policy, instance, options })
    }

    fn page(&self, asked: &report::SearchQuestion<'_>, about: PageOrigin) -> anyhow::Result<Page<'_>> {
        let answer = format!("{} = {}", asked.axis.knob, self.value);
        let draw = if asked.rule.is_some() { ", with the first seed" } else { "" };
        let note = format!("The timeline and the flows show the answer, {answer}{draw}.");
        let page = Page::new(&self.instance, about);
        Ok(drawn(page, &self.instance, &self.policy, &self.options)?.with_note(note))
    }
}

/// Refuses conditions about deadlines where no flow has one.
fn refuse_idle_conditions(conditions: &[Condition], instance: &Instance, name: &str) -> anyhow::Result<()> {
    let flows = instance.flows();
    if flows.is_empty() {
        warn_of_load(instance);
    }
    let idle = conditions.iter().find(|condition| condition.is_about_deadlines());
    if let Some(condition) = idle
        && !flows.is_empty()
        && flows.iter().all(|flow| flow.deadline.is_none())
    {
        bail!(
            "--until: found {condition} for a workload without deadlines, which any cluster meets, expected deadlines \
             in {name} or --deadlines"
        );
    }
    Ok(())
}

/// With the behaviour of the policy on a workload.
fn drawn<'a>(
    page: Page<'a>,
    instance: &'a Instance,
    policy: &PolicySpec,
    options: &Options,
) -> anyhow::Result<Page<'a>> {
    let mut collector = Collector::new(instance);
    let mut collect = |row: FinalRow<'_>| collector.take(row);
    let bound = QuickBound::default();
    let watch = Watch { left: Some(&mut collect), ..Watch::default() };
    let simulated = simulate_figures(instance, policy, options, Some(&bound), watch)
        .map_err(|error| anyhow!("{}: {error}", policy.spec()))?;
    let row = Row::of_simulation(instance, &simulated);
    Ok(page.with_policy(row, Some(collector.finish_simulation(&simulated))))
}

/// The flag that ctrl-C sets: the search then ends with the results so far. A second ctrl-C ends the program.
fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let interrupted = move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    // A signal without a handler ends the program, which loses nothing but time.
    out::warn_if(on_stop_signal(interrupted).err());
    stop
}

/// How far the search is, on a terminal.
struct SearchProgress {
    cells: Cells,
    tried: AtomicUsize,
    /// About how many values will be tried.
    of: usize,
}

impl SearchProgress {
    fn new(axis: &Axis) -> Self {
        let of = axis.to_be_tried();
        Self { cells: Cells::new(), tried: AtomicUsize::new(0), of }
    }

    fn one_more(&self, _: &SearchStep) {
        let tried = self.tried.fetch_add(1, Ordering::Relaxed) + 1;
        self.cells.at(tried, self.of.max(tried));
    }
}
