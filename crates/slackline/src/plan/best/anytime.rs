//! Improves a plan until its time is over or it is optimal. One thread searches for the optimum, the others
//! for better orders of tasks; they tell each other the least cost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use slackline_algo::auto::insertion::{Insertion, TIMED_TASKS_MAX};
use slackline_model::params::Settings;
use slackline_model::schedule::{Rows, TaskRows};
use slackline_model::{Instance, Key};
use slackline_relax::{Form, exact};

use super::{Evaluated, Options, in_order, search};
use crate::parallel;

/// The relative difference below which costs are equal.
const EQUAL: f64 = 1e-9;

/// The result of [`improve`].
pub(super) struct Improved {
    pub(super) rows: Rows,
    /// Whether it costs less than the plan from which it started.
    pub(super) is_cheaper: bool,
    /// A lower bound on the cost of all task schedules.
    pub(super) bound: f64,
    /// Whether the cost of the plan is this bound.
    pub(super) is_optimal: bool,
}

/// What the threads know of each other.
struct Shared<'a> {
    /// The bits of the least cost.
    least: AtomicU64,
    bound: f64,
    is_proven: AtomicBool,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl Shared<'_> {
    fn least(&self) -> f64 {
        f64::from_bits(self.least.load(Ordering::Relaxed))
    }

    fn note(&self, cost: f64) {
        let lower = |bits| (cost < f64::from_bits(bits)).then_some(cost.to_bits());
        let _ = self.least.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower);
    }

    /// Whether the time is over or a plan is optimal.
    fn is_over(&self) -> bool {
        self.is_proven.load(Ordering::Relaxed) || equals(self.least(), self.bound) || (self.stop)()
    }
}

fn equals(cost: f64, bound: f64) -> bool {
    cost <= bound + EQUAL * bound.abs()
}

/// Improves a plan until `stop` is true or its cost is a lower bound.
pub(super) fn improve(
    instance: &Instance,
    settings: &Settings,
    from: Evaluated,
    stop: &(dyn Fn() -> bool + Sync),
) -> Improved {
    let bound = slackline_relax::best_of(&slackline_relax::bounds_until(instance, Form::Tasks, stop));
    let shared = Shared { least: from.cost.to_bits().into(), bound, is_proven: false.into(), stop };
    let mut bound = bound;
    let mut better = None;
    if !shared.is_over() {
        let Rows::Tasks(rows) = &from.rows else { unreachable!("candidates plan tasks") };
        let found = match Insertion::new(instance, TIMED_TASKS_MAX) {
            Some(insertion) => {
                let (found, exact) = of_tasks(instance, settings, rows, &insertion, &shared);
                bound = bound.max(exact.min(shared.least()));
                found
            }
            None => of_flows(instance, settings, &from, &shared),
        };
        better = found.filter(|found| found.cost < from.cost);
    }
    let is_cheaper = better.is_some();
    let Evaluated { cost, rows, .. } = better.unwrap_or(from);
    Improved { rows, is_cheaper, bound, is_optimal: equals(cost, bound) }
}

/// The cheapest order of tasks, and a lower bound from the exact search, which is infinite if no schedule costs
/// less than the least cost.
fn of_tasks(
    instance: &Instance,
    settings: &Settings,
    from: &TaskRows,
    insertion: &Insertion<'_>,
    shared: &Shared<'_>,
) -> (Option<Evaluated>, f64) {
    let bound = Mutex::new(f64::NEG_INFINITY);
    let seed = settings.count("seed");
    let work = |k: usize| -> Result<TaskRows, std::convert::Infallible> {
        let mut insertion = insertion.clone();
        if k == 0
            && let Some(found) = prove(instance, &mut insertion, &bound, shared)
        {
            return Ok(found);
        }
        let stop = |cost: f64| {
            shared.note(cost);
            shared.is_over()
        };
        Ok(insertion.anneal(from, seed.wrapping_add(k as u64), &stop))
    };
    let threads = parallel::processors().max(2);
    let Ok(found) = parallel::map(threads, threads, work);
    let all = found.into_iter().map(|rows| super::costed(instance, Rows::Tasks(rows)));
    let best = all.min_by_key(|found| Key::new(found.cost));
    (best, bound.into_inner().unwrap_or(f64::NEG_INFINITY))
}

/// The rows of an optimal schedule, if the exact search finds one that costs less than all others.
fn prove(
    instance: &Instance,
    insertion: &mut Insertion<'_>,
    bound: &Mutex<f64>,
    shared: &Shared<'_>,
) -> Option<TaskRows> {
    let found = exact::search(instance, &|| shared.least(), exact::STATES_MAX, &|| shared.is_over())?;
    if let Ok(mut bound) = bound.lock() {
        *bound = found.bound;
    }
    if found.bound == f64::INFINITY || found.starts.is_some() {
        shared.is_proven.store(true, Ordering::Relaxed);
    }
    let starts = found.starts?;
    shared.note(found.bound);
    Some(insertion.in_order(starts.iter().map(|task| (task.phase, task.span))))
}

/// The cheapest order of flows, for workloads of many tasks.
fn of_flows(
    instance: &Instance,
    settings: &Settings,
    from: &Evaluated,
    shared: &Shared<'_>,
) -> Option<Evaluated> {
    let options = Options::exact();
    let order = search(instance, settings, u64::MAX, &options, &from.completions, &|| shared.is_over())?;
    Some(super::costed(instance, in_order(instance, &order, &options)))
}
