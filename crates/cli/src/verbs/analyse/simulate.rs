//! `simulate`: one policy on one workload.

mod seeds;
mod stream;

use std::io;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use slackline::certificates::{Certificates, certify};

use slackline::PolicySpec;
use slackline::import::{Loaded, RecordedOptions};
use slackline::parallel;
use slackline::report::number::counted;
use slackline::report::page::{Collector, Page};
use slackline::report::table::fitted;
use slackline::report::{
    self, Figures, Row, View, comparison, flows, headline, rules_chosen, simulate_lines, write_schedule,
};
use slackline::simulate::{
    FinalRow, NotWritten, Options, QuickBound, SimulateError, Simulated, Watch, simulate, simulate_figures,
};

use slackline::policy::unfinished::Unfinished;
use slackline_model::Instance;
use slackline_model::schedule::Clock;

use self::seeds::{AllSeeds, Further};
use crate::args::history::HistoryFile;
use crate::args::output::{Form, SimulationForm};
use crate::args::report::about;
use crate::args::seeds::SeedArgs;
use crate::args::{OutputArgs, PolicyTimeout, ReportArgs, Shape, SimulationArgs, TableArgs, policy};
use crate::tables::Tables;
use crate::terminal::input::{report_diagnostics, warn_of_load};
use crate::terminal::progress::Progress;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

/// Flows that the table shows unless all are asked for.
const SHOWN: usize = 20;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline simulate examples/nightly.toml
  slackline simulate examples/nightly.toml --policy edf
  slackline simulate examples/nightly.toml -p fair:by=flow -o fair.json
  slackline check examples/nightly.toml fair.json
  slackline simulate examples/nightly.toml -p fair -o fair.jsonl.zst
  slackline simulate year.jsonl.zst -p edf -o edf.jsonl.zst
  slackline simulate nightly.toml -p flex --knowledge learned --history past.json
  slackline simulate nightly.toml -p woha-lpf --plan-file nightly.plan

JSON is the schedule document; JSONL has it line by line, written during the simulation, for schedules \
larger than memory; CSV has a row for each flow. A workload in lines (.jsonl), or any with --stream, is read during the simulation \
too. `slackline policies` lists the policies.")]
pub(crate) struct Simulate {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policy (see `slackline policies`)
    ///
    /// Parameters follow a colon, as in fair:by=flow.
    #[arg(long, short, value_name = "POLICY", default_value = policy::DEFAULT_POLICY, value_parser = policy::standard(), help_heading = "Policy")]
    policy: PolicySpec,
    #[command(flatten)]
    timeout: PolicyTimeout,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    simulation: SimulationArgs,
    #[command(flatten)]
    seeds: SeedArgs,
    /// Read the workload during the simulation; only active flows are in memory
    ///
    /// Flows must be in the order of their releases. This works for documents in lines (.jsonl, for which it is the
    /// default), SWIM traces, and logs of swf, sacct and alibaba.
    #[arg(long, help_heading = "Workload")]
    stream: bool,
    #[command(flatten)]
    output: OutputArgs<SimulationForm>,
    #[command(flatten)]
    table: TableArgs,
    /// Show every flow in the table, not only the first 20
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Print a lower bound for each decision of auto, and what each rule alone costs
    ///
    /// The lower bound is on the cost of the flows that were present, under any later decisions; the estimate of auto
    /// stands next to it. Every rule is simulated too, which takes time.
    #[arg(long, help_heading = "Output", hide_short_help = true, conflicts_with = "stream")]
    certificates: bool,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: &Simulate, tables: &Tables) -> anyhow::Result<Answer> {
    let view = args.table.view(&args.output, &flows::COLUMNS)?;
    let past = HistoryFile::read(&args.simulation)?;
    args.simulation.check_policies(std::slice::from_ref(&args.policy))?;
    args.check_certificates()?;
    args.check_report()?;
    input::report_remarks(std::slice::from_ref(&args.policy));
    if let Some(answer) = stream::run(args, tables, &view, &past)? {
        return Ok(answer);
    }
    let source = input::read(&args.workload, args.output.file())?;
    let shape = args.shape.options(&tables.importers)?;
    let mut loaded = source.load(&shape)?;
    report_diagnostics(&source.name, &loaded.diagnostics);
    loaded.prepare(args.simulation.grain)?;
    let (instance, seed) = (&loaded.instance, args.shape.root_seed());
    let options = args.simulation.options().resolve(instance, seed, &past.history)?;
    warn_of_load(instance);
    let bound = QuickBound::default();
    let progress = Progress::new(1, instance.n_tasks());
    let mut report_progress = |done| progress.at(0, done);
    let policy = args.timeout.of(args.policy.clone());
    let mut collector = args.report.is_asked().then(|| Collector::new(instance));
    let simulation =
        Simulation { args, policy: &policy, loaded: &loaded, past: &past, options: &options, bound: &bound };
    let compute_bound = || (options.clock() == Clock::Exact).then(|| bound.get(instance));
    let (_, result) = parallel::both(compute_bound, || simulation.run(&mut report_progress, &mut collector));
    drop(progress);
    let mut simulated = match result? {
        Ok(simulated) => simulated,
        Err(problem @ SimulateError::Refused(_)) => bail!("{}: {problem}", args.policy.spec()),
        Err(problem) => {
            out::error(&anyhow!("{}: {problem}", args.policy.spec()));
            return Ok(Answer::No);
        }
    };
    let further = Further {
        seeds: &args.seeds,
        root: seed,
        simulation: &args.simulation,
        shape: &shape,
        source: &source,
        loaded: &loaded,
        past: &past,
        policy: &policy,
    };
    let all_seeds = if args.certificates { None } else { further.run(&simulated)? };
    let supplement = Supplement {
        is_one_draw: further.is_random() && all_seeds.is_none(),
        all_seeds,
        certificates: certificates(args, instance, &simulated, &options)?,
    };
    let failed = comparison::failed(&simulated.schedule);
    let unfinished = std::mem::take(&mut simulated.unfinished);
    let known = simulated.history.take();
    let page =
        collector.map(|collector| page(args, source.short_name(), &loaded, &past, &simulated, collector));
    let page = page.map(|page| supplement.on(page));
    // What was learned is worth keeping even if the output fails.
    let written = write(args, &view, source.short_name(), &loaded, &past, simulated, &supplement);
    if let (Some(file), Some(known)) = (&args.simulation.history, known) {
        past.replace(file, &known)?;
    }
    written?;
    page.iter().try_for_each(|page| args.report.write(page))?;
    if failed == 0 {
        return Ok(Answer::Yes);
    }
    warn_of_failed(failed, &unfinished);
    Ok(Answer::No)
}

/// The label of a random result.
const ONE_DRAW: &str = "one draw, which may be chance (several --seeds give intervals)\n";

/// What is shown beside the schedule.
struct Supplement {
    /// Whether another seed would give another result, and there is only one.
    is_one_draw: bool,
    all_seeds: Option<AllSeeds>,
    certificates: Option<Certificates>,
}

impl Supplement {
    /// The means over all seeds; a note if there is only one draw.
    fn text(&self, instance: &Instance, view: &View) -> String {
        if self.is_one_draw {
            return ONE_DRAW.to_owned();
        }
        let text = self.all_seeds.as_ref().map(|all| all.text(instance.start(), view));
        text.unwrap_or_default()
    }

    fn on<'a>(&self, page: Page<'a>) -> Page<'a> {
        match &self.all_seeds {
            Some(all) if all.has_chances() => page.with_flow_chances(&all.flows),
            _ => page,
        }
    }
}

impl Simulate {
    /// A page needs the rows of the simulation.
    fn check_report(&self) -> anyhow::Result<()> {
        if self.report.is_asked() && self.output.form() == SimulationForm::Lines {
            bail!(
                "--report: found a schedule that is written line by line, expected a table, CSV or JSON (`check --report` \
                 makes the report of a schedule in lines)"
            );
        }
        Ok(())
    }

    /// Certificates are of exact durations, and of a schedule that is kept.
    fn check_certificates(&self) -> anyhow::Result<()> {
        if !self.certificates {
            return Ok(());
        }
        if self.output.form() == SimulationForm::Lines {
            bail!(
                "--certificates: found a schedule that is written line by line, expected a table, CSV or JSON"
            );
        }
        if self.simulation.jitter > 0.0 || self.simulation.profile.0.is_some() {
            bail!("--certificates: found --jitter or --profile, which change durations, expected neither");
        }
        Ok(())
    }
}

/// Reports the number of failed flows, with a line for each reason.
fn warn_of_failed(flows: usize, unfinished: &[Unfinished]) {
    if unfinished.is_empty() {
        out::warn(counted(flows as u64, "flow") + " failed");
    }
    unfinished.iter().for_each(out::warn);
}

/// The certificates of a run, if requested.
fn certificates(
    args: &Simulate,
    instance: &Instance,
    simulated: &Simulated,
    options: &Options,
) -> anyhow::Result<Option<Certificates>> {
    let certified = || certify(instance, &simulated.schedule, &simulated.choices, options);
    Ok(args.certificates.then(certified).transpose()?)
}

/// After an empty line, if there is anything.
fn apart(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\n{text}") }
}

/// Prints a text, unless it is empty.
fn say(text: &str) {
    if !text.is_empty() {
        out::talk(text.trim());
    }
}

/// Every option that shaped the workload or the simulation.
fn recorded(args: &Simulate, loaded: &Loaded, past: &HistoryFile) -> RecordedOptions {
    let mut options = loaded.options.clone();
    args.simulation.options().record(&mut options, past.sha256.as_deref());
    options
}

/// What is simulated, and how.
#[derive(Clone, Copy)]
struct Simulation<'a> {
    args: &'a Simulate,
    policy: &'a PolicySpec,
    loaded: &'a Loaded,
    past: &'a HistoryFile,
    options: &'a Options,
    bound: &'a QuickBound,
}

impl Simulation<'_> {
    /// Simulates, and keeps the rows that the form of the output needs.
    fn run(
        self,
        progress: &mut dyn FnMut(u64),
        collector: &mut Option<Collector<'_>>,
    ) -> anyhow::Result<Result<Simulated, SimulateError>> {
        let Self { args, policy, loaded, options, .. } = self;
        let (instance, bound) = (&loaded.instance, Some(self.bound));
        Ok(match args.output.form() {
            SimulationForm::Lines => self.lines(progress)?,
            SimulationForm::Of(form) if form == Form::Json || args.certificates => {
                simulate(instance, policy, options, bound, Some(progress))
            }
            SimulationForm::Of(_) => {
                let mut collect =
                    |row: FinalRow<'_>| collector.iter_mut().for_each(|collector| collector.take(row));
                let watch = Watch { progress: Some(progress), left: Some(&mut collect), ..Watch::default() };
                simulate_figures(instance, policy, options, bound, watch)
            }
        })
    }

    /// Simulates and writes the schedule line by line meanwhile.
    fn lines(self, progress: &mut dyn FnMut(u64)) -> anyhow::Result<Result<Simulated, SimulateError>> {
        let Self { args, policy, loaded, past, options, bound } = self;
        let mut meta = loaded.meta_before(recorded(args, loaded, past), args.shape.root_seed());
        let mut found = None;
        let written = out::data(args.output.file(), |out| {
            let (instance, bound) = (&loaded.instance, Some(bound));
            match simulate_lines(out, instance, policy, options, bound, Some(progress), &mut meta) {
                Ok(simulated) => found = Some(Ok(simulated)),
                Err(NotWritten::Output(error)) => return Err(error),
                Err(NotWritten::NotSimulated(problem)) => {
                    found = Some(Err(problem));
                    return Err(io::Error::other("there is no schedule"));
                }
            }
            Ok(())
        });
        match found {
            Some(Err(problem)) => Ok(Err(problem)),
            found => written.and_then(|()| found.context("no schedule was made")),
        }
    }
}

fn page<'a>(
    args: &Simulate,
    name: &str,
    loaded: &'a Loaded,
    past: &HistoryFile,
    simulated: &Simulated,
    mut collector: Collector<'a>,
) -> Page<'a> {
    if !simulated.schedule.tasks.is_empty() {
        // The schedule was kept as a whole, and no row left the simulation.
        collector.take_schedule(&simulated.schedule);
    }
    let instance = &loaded.instance;
    let row = Row::of_simulation(instance, simulated);
    let seeds = vec![args.shape.root_seed()];
    let (options, sha256) = (recorded(args, loaded, past), loaded.sha256.clone());
    let about = about(name, "simulate", seeds, options, sha256, loaded.not_modelled());
    Page::new(instance, about).with_policy(row, Some(collector.finish_simulation(simulated)))
}

fn write(
    args: &Simulate,
    view: &View,
    name: &str,
    loaded: &Loaded,
    past: &HistoryFile,
    mut simulated: Simulated,
    supplement: &Supplement,
) -> anyhow::Result<()> {
    let certificates = supplement.certificates.as_ref();
    let (instance, file) = (&loaded.instance, args.output.file());
    let figures = Figures::of_simulation(&simulated);
    let crowding = comparison::crowding(&[Row {
        policy: simulated.schedule.policy.clone(),
        result: Ok(figures.clone()),
    }]);
    let warnings = headline::admissions(instance, &simulated.admissions) + &apart(&crowding);
    let remarks = rules_chosen(&simulated.choices);
    let schedule = &mut simulated.schedule;
    let mut meta = loaded.meta(recorded(args, loaded, past), args.shape.root_seed(), schedule);
    meta.choices = report::choices(&simulated.choices);
    if let Some(certificates) = certificates {
        report::certificates::note(certificates, &mut meta);
    }
    let summary = headline::lines(name, instance)
        + &headline::outcome(schedule, headline::is_weighted(instance), &meta.status);
    let form = match args.output.form() {
        SimulationForm::Of(form) => form,
        SimulationForm::Lines => {
            out::talk(summary.trim_end());
            say(&supplement.text(instance, view));
            say(&warnings);
            return Ok(());
        }
    };
    match form {
        Form::Table => {
            let most = if args.all { usize::MAX } else { SHOWN };
            let flows = flows::table(instance, schedule, most, view);
            let summary = fitted(&summary, view.width);
            let seeds = supplement.text(instance, view);
            let certain = certificates.map_or_else(String::new, |found| {
                let tables =
                    report::certificates::tables(found, &simulated.choices, schedule.cost, args.all, view);
                format!("\n{tables}")
            });
            out::text(
                file,
                &format!(
                    "{summary}{}\n{flows}{certain}{seeds}{warnings}",
                    flows::figures(&figures, &remarks)
                ),
            )
        }
        Form::Csv => {
            out::talk(summary.trim_end());
            say(&supplement.text(instance, view));
            say(&warnings);
            out::text(file, &flows::csv(instance, schedule))
        }
        Form::Json => {
            out::talk(summary.trim_end());
            say(&supplement.text(instance, view));
            say(&warnings);
            out::data(file, |out| write_schedule(out, instance, schedule, &figures, &meta))
        }
    }
}
