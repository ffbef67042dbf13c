//! `tune --until` and `tune --over`: the smallest cluster or the best setting that meets conditions under a
//! policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{anyhow, bail};
use slackline::PolicySpec;
use slackline::capacity::{Axis, CapacityError, Condition, Knob, Method, Search, SearchStep, Values, search};
use slackline::import::{SlotOptions, WorkloadOptions, grain_span};
use slackline::report::capacity as report;
use slackline::report::page::{Collector, Page};
use slackline::report::{Row, headline};
use slackline::simulate::{FinalRow, Options, QuickBound, Watch, simulate_figures};
use slackline_model::Instance;
use slackline_task::base::system::on_stop_signal;
use slackline_trace::Importers;

use crate::args::history::HistoryFile;
use crate::args::output::Form;
use crate::args::report::about;
use crate::args::value::Machines;
use crate::args::{OutputArgs, ReportArgs, Shape, SimulationArgs, TableArgs};
use crate::terminal::input::{Source, report_diagnostics, report_remarks, warn_of_load, warn_of_recorded};
use crate::terminal::out;
use crate::terminal::progress::Cells;
use crate::verbs::answer::Answer;

/// The request of a capacity search with one varied property of the cluster.
pub(crate) struct Capacity<'a> {
    pub(crate) source: &'a Source,
    pub(crate) policy: &'a PolicySpec,
    pub(crate) conditions: &'a [Condition],
    /// The varied property; `None` for machines, whose range is that of the shape.
    pub(crate) over: Option<&'a Axis>,
    pub(crate) method: Method,
    /// A fast policy that searches first.
    pub(crate) scout: Option<&'a PolicySpec>,
    pub(crate) threads: usize,
    /// The price of a machine per hour.
    pub(crate) price: Option<f64>,
    pub(crate) shape: &'a Shape,
    pub(crate) importers: &'a Importers,
    pub(crate) simulation: &'a SimulationArgs,
    pub(crate) output: &'a OutputArgs,
    pub(crate) table: &'a TableArgs,
    /// Whether to show every value that was tried.
    pub(crate) all: bool,
    pub(crate) report: &'a ReportArgs,
}

impl Capacity<'_> {
    fn axis(&self) -> anyhow::Result<Axis> {
        match (self.over, &self.shape.machines) {
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
                bail!(
                    "--until: found neither --machines nor --over, expected --machines A..B or --over NAME=A..B"
                )
            }
        }
    }

    /// The workload on the cluster where the axis has this value.
    fn sized(&self, axis: &Axis, value: f64) -> anyhow::Result<WorkloadOptions> {
        let is_machines = axis.knob == Knob::Machines;
        let machines = if is_machines { None } else { self.shape.machines.clone() };
        let options = Shape { machines, ..self.shape.clone() }.options(self.importers)?;
        Ok(match axis.knob {
            Knob::Machines => WorkloadOptions { machines: Some(value as u32), ..options },
            Knob::Slots => WorkloadOptions { slots: Some(SlotOptions::Generic(value as u32)), ..options },
            _ => options,
        })
    }
}

pub(crate) fn run(asked: &Capacity<'_>) -> anyhow::Result<Answer> {
    let Capacity { source, policy, conditions, price, .. } = *asked;
    let axis = asked.axis()?;
    let question = report::SearchQuestion { policy, conditions, axis: &axis, price };
    let view = asked.table.view(asked.output, &report::columns(&question))?;
    let (small, large) = (asked.sized(&axis, axis.smallest())?, asked.sized(&axis, axis.largest())?);
    let mut loaded = source.load(&large)?;
    report_diagnostics(&source.name, &loaded.diagnostics);
    report_remarks(std::slice::from_ref(policy));
    warn_of_recorded(&loaded, None, asked.simulation.profile.0.is_some());
    loaded.prepare(asked.simulation.grain)?;
    let flows = loaded.instance.flows();
    if flows.is_empty() {
        warn_of_load(&loaded.instance);
    }
    let idle = conditions.iter().find(|condition| condition.is_about_deadlines());
    if let Some(condition) = idle
        && !flows.is_empty()
        && flows.iter().all(|flow| flow.deadline.is_none())
    {
        bail!(
            "--until: found {condition} for a workload without deadlines, which any cluster meets, expected deadlines in \
             {} or --deadlines",
            source.name
        );
    }
    // Crashes are of machines that every size has.
    let past = HistoryFile::read(asked.simulation)?;
    let smallest_instance = source.load(&small)?.instance;
    let options =
        asked.simulation.options().resolve(&smallest_instance, asked.shape.root_seed(), &past.history)?;
    let (draft, _) = source.shape(&large)?.into_draft()?;
    let shown = SearchProgress::new(&axis);
    let report_progress = |tried: &SearchStep| shown.one_more(tried);
    let stop = stop_on_interrupt();
    let cancel = || stop.load(Ordering::Relaxed);
    let search_for = Search {
        method: asked.method,
        scout: asked.scout,
        grain: grain_span(asked.simulation.grain),
        threads: asked.threads,
        cancel: &cancel,
        on_step: &report_progress,
        ..Search::new(policy, conditions, &axis, &options)
    };
    let found = match search(&draft, &search_for) {
        Ok(found) => found,
        Err(CapacityError::Invalid(invalid)) => bail!("{}: {invalid}", source.name),
        Err(CapacityError::Axis(problem)) => bail!("--over: {problem}"),
        Err(error) => {
            out::error(&anyhow!("{}: {error}", policy.spec()));
            return Ok(Answer::No);
        }
    };
    let answer = found.found.filter(|_| asked.report.is_asked());
    let at = |value| Ok((search_for.policy_at(value)?, search_for.at(&draft, value)?));
    let answer: Result<Option<_>, CapacityError> = answer.map(at).transpose();
    let answer = answer.map_err(|error| anyhow!("{}: {error}", source.name))?;
    drop(shown);
    let head = format!(
        "{}\n{}\n",
        headline::flows(source.short_name(), &loaded.instance),
        report::outcome(&found, &question)
    );
    let body = match asked.output.form() {
        Form::Table => report::table(&found, &question, asked.all, &view),
        Form::Csv => report::csv(&found, &question),
        Form::Json => report::json(&found, &question),
    };
    asked.output.write(&head, &body, &view)?;
    if asked.report.is_asked() {
        // The cluster that is drawn is that of the answer.
        let mut recorded = match found.found {
            Some(value) => source.load(&asked.sized(&axis, value)?)?.options,
            None => loaded.options.clone(),
        };
        asked.simulation.options().record(&mut recorded, past.sha256.as_deref());
        let seeds = vec![asked.shape.root_seed()];
        let about = about(source.short_name(), "tune", seeds, recorded, loaded.sha256.clone());
        let page = match &answer {
            Some((policy, (instance, options))) => {
                drawn(Page::new(instance, about), instance, policy, options)?.with_note(format!(
                    "The timeline and the flows are those with the answer, {} = {}.",
                    axis.knob,
                    found.found.unwrap_or_default()
                ))
            }
            None => Page::new(&loaded.instance, about),
        };
        asked.report.write(&page.with_capacity(&found, &question))?;
    }
    Ok(if found.found.is_some() && !found.is_interrupted { Answer::Yes } else { Answer::No })
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
