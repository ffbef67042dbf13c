//! Runs all policies on one sample and one cluster, side by side.

use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use slackline::PolicySpec;
use slackline::compare::{Compared, SideBySide, compare};
use slackline::import::{Loaded, RecordedOptions};
use slackline::parallel::processors;
use slackline::recorded::{self, Distance};
use slackline::report::number::{Unit, number};
use slackline::report::page::Drawn;
use slackline::report::{self, Figures, Row, comparison, headline, write_schedule};
use slackline::simulate::{FinalRow, SimulateError};
use slackline_model::schedule::{Clock, FlowRow, TaskRows};
use slackline_model::{Instance, Objective};
use slackline_trace::{Meta, Simplification};

use super::flags::Compare;
use super::page_rows::PageRows;
use super::samples::Sample;
use crate::args::history::HistoryFile;
use crate::terminal::clock::Stopwatches;
use crate::terminal::input::Source;
use crate::terminal::out;
use crate::terminal::progress::Progress;

/// What all rounds share.
pub(super) struct Setting<'a> {
    pub(super) args: &'a Compare,
    pub(super) source: &'a Source,
    pub(super) seed: u64,
    /// The name of the file or piece, where there are several.
    pub(super) name: Option<String>,
    pub(super) past: &'a HistoryFile,
    pub(super) policies: &'a [PolicySpec],
    pub(super) progress: &'a Progress,
    /// Which policies took longer than they may on this cluster.
    pub(super) late: &'a [AtomicBool],
    /// Whether policies are shown as they end.
    pub(super) is_shown: bool,
    /// Whether schedules of this seed are written, if any are.
    pub(super) keeps: bool,
}

/// The results of one sample on one cluster.
pub(super) struct Round {
    /// Which file or piece, where there are several.
    pub(super) name: Option<String>,
    pub(super) seed: u64,
    pub(super) machines: u32,
    /// The number of its flows, and the cluster.
    pub(super) flows: u64,
    pub(super) cluster: String,
    pub(super) rows: Vec<Row>,
    pub(super) bound: Option<f64>,
    pub(super) headlines: String,
    pub(super) objective: Objective,
    pub(super) is_weighted: bool,
    pub(super) not_modelled: Vec<Simplification>,
    /// Its name with its unit.
    pub(super) objective_text: String,
    pub(super) options: RecordedOptions,
    /// The data of the page for each policy, if this round is drawn.
    pub(super) drawn: Vec<Option<Drawn>>,
    /// The flows of each policy that ran, if they are asked for, and the workload that they are of.
    pub(super) flows_of: Option<(Rc<Sample>, Vec<Vec<FlowRow>>)>,
}

/// Runs all policies on one sample, which are those from `base` on of all runs.
pub(super) fn round(
    setting: &Setting<'_>,
    sample: &Rc<Sample>,
    base: usize,
    is_drawn: bool,
) -> anyhow::Result<Round> {
    let Sample { loaded, bound, .. } = sample.as_ref();
    let Setting { args, source, past, policies, progress, late, seed, .. } = *setting;
    let instance = &loaded.instance;
    let options = args.simulation.options().resolve(instance, seed, &past.history)?;
    let page_rows = is_drawn.then(|| PageRows::new(instance, policies.len()));
    let collect_row =
        |k: usize, row: FinalRow<'_>| page_rows.iter().for_each(|page_rows| page_rows.take(k, row));
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
    let report_end = |k: usize, compared: &mut Compared| {
        progress.at(base + k, instance.n_tasks());
        if setting.is_shown {
            progress.say(|| line(setting, &setting.row(instance, compared), stopwatches.seconds(k)));
        }
        if let Some(page_rows) = &page_rows {
            page_rows.finish(k, compared);
        }
        if let Err(error) = setting.keep(loaded, seed, compared) {
            // One error is enough.
            let _ = unwritten.set(error);
        }
    };
    let report_progress = |k: usize, done: u64| progress.at(base + k, done);
    let how = SideBySide {
        threads: args.threads.map_or_else(processors, usize::from),
        schedules: args.schedules.is_some() && setting.keeps,
        progress: &report_progress,
        cancel: &cancel,
        ended: &report_end,
        left: is_drawn.then_some(&collect_row),
        recorded: loaded.recorded.as_ref(),
    };
    let compared = compare(instance, policies, &options, Some(bound), how);
    if let Some(error) = unwritten.into_inner() {
        return Err(error);
    }
    // A bound holds for the durations of the workload, not for distorted ones.
    let is_exact = options.clock() == Clock::Exact;
    let mut options = loaded.options.clone();
    args.simulation.options().record(&mut options, past.sha256.as_deref());
    let flows =
        |one: &Compared| one.result.as_ref().map_or_else(|_| Vec::new(), |ran| ran.schedule.flows.clone());
    let flows_of = args.needs_flows().then(|| (Rc::clone(sample), compared.iter().map(flows).collect()));
    Ok(Round {
        name: setting.name.clone(),
        seed,
        machines: instance.cluster().n_machines(),
        flows: instance.flows().len() as u64,
        cluster: headline::cluster(instance),
        rows: rows(setting, instance, &compared),
        bound: is_exact.then(|| bound.get(instance)).flatten(),
        headlines: headline::lines(source.short_name(), instance),
        objective: instance.objective(),
        is_weighted: headline::is_weighted(instance),
        not_modelled: sample.loaded.not_modelled(),
        objective_text: headline::objective_of(instance),
        options,
        drawn: page_rows.map_or_else(Vec::new, PageRows::into_drawn),
        flows_of,
    })
}

/// The row of each policy; the cluster's own scheduler with its difference to the recorded execution, if there is
/// one, which is the error of the simulation. Other policies are meant to differ.
fn rows(setting: &Setting<'_>, instance: &Instance, compared: &[Compared]) -> Vec<Row> {
    let is_recorded = |one: &&Compared| one.policy.name() == recorded::NAME;
    let recorded = compared.iter().find(is_recorded).and_then(|one| Some(&one.result.as_ref().ok()?.flows));
    let row = |one: &Compared| {
        let mut row = setting.row(instance, one);
        if let (Some(recorded), Ok(simulated), Ok(figures)) = (recorded, &one.result, &mut row.result)
            && recorded::is_own_scheduler(&one.policy)
        {
            let distance = Distance::between(instance, recorded, &simulated.flows);
            figures.metrics.extend(distance.into_iter().flat_map(Distance::entries));
        }
        row
    };
    compared.iter().map(row).collect()
}

/// The line that is printed when a policy has finished.
fn line(setting: &Setting<'_>, row: &Row, seconds: f64) -> String {
    const MOST: usize = 30;
    let width = setting.policies.iter().map(|policy| policy.spec().chars().count()).max().unwrap_or(0);
    let took = number(seconds, Unit::Measure);
    format!("{:width$}  {} ({took} s)", row.policy, comparison::line(row), width = width.min(MOST))
}

impl Setting<'_> {
    fn row(&self, instance: &Instance, compared: &Compared) -> Row {
        let result = match &compared.result {
            Ok(simulated) => Row::of_simulation(instance, simulated).result,
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

    /// Writes the schedule of one policy, if requested; then drops its rows.
    fn keep(&self, loaded: &Loaded, seed: u64, compared: &mut Compared) -> anyhow::Result<()> {
        let (Some(dir), Ok(simulated), true) = (&self.args.schedules, &mut compared.result, self.keeps)
        else {
            return Ok(());
        };
        let is_one_of = self.args.seeds.seeds.is_some_and(|seeds| seeds > 1);
        let suffix = if is_one_of { format!("-seed{seed}") } else { String::new() };
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
