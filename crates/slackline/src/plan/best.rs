//! Finds the best task schedule of all policies, all rules, the orders that a search finds near the best one
//! and, for few tasks, a search that places single tasks. This is the plan of `auto` if everything is known.
//!
//! All policies except Hadoop's schedulers are candidates, so none of their task schedules costs less.
//! Hadoop's schedulers are excluded, because they depend on the queues of a site, which only a file defines
//! (`plan --policy yarn-capacity:file=…`).

mod anytime;

use std::sync::Mutex;

use slackline_algo::auto::insertion::{Insertion, TASKS_MAX};
use slackline_algo::auto::offline_search::{Idle, InOrder, Search};
use slackline_algo::policies::POLICIES;
use slackline_algo::registry::{MakePlan, Planner, PolicyEntry, Proposal};
use slackline_algo::{auto, rule, yarn};
use slackline_model::params::Settings;
use slackline_model::schedule::Rows;
use slackline_model::{FlowId, Instance, Key};
use slackline_policy::{Config, Driver, Policy, Run};
use slackline_sim::Sim;

use super::{PlanError, refused, rehearsed, schedule};
use crate::parallel;
use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, SimulateError};

/// The number of orders, and of moved tasks, that a search tries at effort 1.
const TRIES: f64 = 2_000.0;

/// The proven property of the plan.
const GUARANTEE: &str = "costs at most as much as the task schedule of every rule and of every policy with its defaults, except Hadoop's schedulers, which need a site's queues";

/// The proven property of a plan whose cost is a lower bound.
const OPTIMAL: &str = "optimal: no task schedule costs less";

/// A candidate for the best task schedule.
enum Candidate {
    /// The schedule of the policy with exact durations.
    Rehearsed(PolicySpec),
    Planned(PolicySpec, MakePlan),
}

struct Evaluated {
    cost: f64,
    /// The index of its candidate.
    candidate: usize,
    rows: Rows,
    completions: Vec<f64>,
}

/// The cheapest task schedule of all candidates.
struct Best {
    winner: Candidate,
    /// The order of flows, if a search found a cheaper schedule.
    order: Option<Vec<FlowId>>,
    rows: Rows,
}

/// Proposes the cheapest schedule of all candidates, the first of equal ones. The search tries `TRIES` times
/// the `effort` of the settings. When `stop` returns true, the best schedule so far is used. With
/// `is_timed`, the search continues until then, or until the schedule is optimal.
pub(super) fn propose(
    instance: &Instance,
    settings: &Settings,
    is_timed: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Proposal, PlanError> {
    let mut all = candidates(settings);
    all.extend(planned(instance));
    let mut best = best(instance, all, settings, &Options::exact(), stop)?;
    let mut is_searched = best.order.is_some();
    if let Some(inserted) = inserted(instance, settings, &best, stop) {
        (best.rows, is_searched) = (inserted, true);
    }
    // An interrupted search has not compared all candidates.
    let guarantee = (!stop()).then_some(GUARANTEE);
    let mut proposal = Proposal::default();
    let mut is_optimal = false;
    if is_timed {
        let found =
            anytime::improve(instance, settings, made(instance, best.winner.policy(), 0, best.rows), stop);
        is_searched |= found.is_cheaper;
        (best.rows, is_optimal) = (found.rows, found.is_optimal);
        proposal.bound = Some(found.bound);
    }
    let winner = if is_searched { "a search" } else { best.winner.policy().spec() };
    Ok(Proposal {
        winner: Some(winner.to_owned()),
        rows: Some(best.rows),
        guarantee: if is_optimal { Some(OPTIMAL) } else { guarantee }.map(str::to_owned),
        cut: stop() && !is_optimal,
        ..proposal
    })
}

/// The policy that serves an instance best under these options, for a planning policy that knows all flows in
/// advance; `None` for other policies and options.
pub(crate) fn foreseeing(
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    cancel: Option<&dyn Fn() -> bool>,
) -> Result<Option<Box<dyn Policy + Send>>, SimulateError> {
    if !options.known_releases || !policy.foresees() {
        return Ok(None);
    }
    let settings = policy.settings();
    let made = best(instance, candidates(settings), settings, options, &|| false);
    if cancel.is_some_and(|cancel| cancel()) {
        return Err(SimulateError::Stopped);
    }
    let Best { winner, order, .. } = made.map_err(|error| SimulateError::Policy(error.to_string()))?;
    let objective = instance.objective();
    Ok(Some(match order {
        Some(order) => Box::new(InOrder::new(&order)),
        None => winner.policy().build(instance.cluster(), &objective),
    }))
}

/// The cheapest schedule of these candidates, simulated with the options, and of a search.
fn best(
    instance: &Instance,
    mut candidates: Vec<Candidate>,
    settings: &Settings,
    options: &Options,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Best, PlanError> {
    const HELD: &str = "invariant: no candidate panics while it holds the lock";
    let best: Mutex<Option<Evaluated>> = Mutex::new(None);
    parallel::map(candidates.len(), parallel::processors(), |k| {
        // The first candidate always makes a plan.
        let Some(rows) = candidates[k].rows(instance, options, &|| k > 0 && stop())? else { return Ok(()) };
        let made = made(instance, candidates[k].policy(), k, rows);
        let mut best = best.lock().expect(HELD);
        let key = |made: &Evaluated| (Key::new(made.cost), made.candidate);
        if best.as_ref().is_none_or(|best| key(&made) < key(best)) {
            *best = Some(made);
        }
        Ok::<(), PlanError>(())
    })?;
    let best = best.into_inner().expect(HELD).expect("invariant: the first candidate makes a plan");
    let winner = candidates.swap_remove(best.candidate);
    let order = search(instance, settings, tries(settings), options, &best.completions, stop);
    let found =
        order.map(|order| (made(instance, winner.policy(), 0, in_order(instance, &order, options)), order));
    Ok(match found.filter(|(found, _)| found.cost < best.cost) {
        Some((found, order)) => Best { winner, order: Some(order), rows: found.rows },
        None => Best { winner, order: None, rows: best.rows },
    })
}

/// All policies except external programs and Hadoop's schedulers (which act like `fifo` and `fair` without a
/// queue file), `auto` with these settings, and all rules.
fn candidates(settings: &Settings) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    let has_queues = |entry: &&PolicyEntry| entry.params.iter().any(|param| param.name == yarn::FILE);
    for entry in POLICIES.iter().filter(|entry| !has_queues(entry)) {
        if entry.name == rule::online::ENTRY.name {
            candidates.extend(rule::orders::NAMES.iter().map(|order| Candidate::Rehearsed(ruled(order))));
        } else if entry.name == auto::ENTRY.name {
            let own = PolicySpec::of_entry(entry, settings.clone(), entry.name);
            candidates.push(Candidate::Rehearsed(own));
        } else {
            candidates.push(Candidate::Rehearsed(PolicySpec::default_of(entry)));
        }
    }
    candidates
}

/// The plans of policies that plan tasks.
fn planned(instance: &Instance) -> impl Iterator<Item = Candidate> {
    POLICIES.iter().filter_map(move |entry| {
        let Planner::Tasks(make) = entry.planner else { return None };
        let policy = PolicySpec::default_of(entry);
        refused(instance, &policy).is_none().then_some(Candidate::Planned(policy, make))
    })
}

/// The policy `rule` with an order.
fn ruled(order: &str) -> PolicySpec {
    let entry = &rule::online::ENTRY;
    let settings = Settings::parse(entry.params, [("order", order)]).expect("invariant: it is an order");
    PolicySpec::of_entry(entry, settings, &format!("{}:order={order}", entry.name))
}

impl Candidate {
    fn policy(&self) -> &PolicySpec {
        match self {
            Self::Rehearsed(policy) | Self::Planned(policy, _) => policy,
        }
    }

    /// Its rows; `None` if it was stopped or cannot plan the workload.
    fn rows(
        &self,
        instance: &Instance,
        options: &Options,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Rows>, PlanError> {
        if stop() {
            return Ok(None);
        }
        match self {
            Self::Rehearsed(policy) => rehearsed(instance, policy, options, stop),
            // A planner that refuses the workload, although its capabilities allow it, has no rows.
            Self::Planned(policy, make) => {
                Ok(make(instance, policy.settings(), stop).ok().and_then(|it| it.rows))
            }
        }
    }
}

/// The cost and the completions of rows.
fn made(instance: &Instance, policy: &PolicySpec, candidate: usize, rows: Rows) -> Evaluated {
    let mut schedule = schedule(instance, policy, rows, f64::INFINITY);
    let completions = slackline_judge::completions(instance, &schedule);
    let completions: Vec<f64> = completions.into_iter().map(|at| at.unwrap_or(f64::INFINITY)).collect();
    let rows = Rows::Tasks(std::mem::take(&mut schedule.tasks));
    Evaluated { cost: instance.cost_of(&completions), candidate, rows, completions }
}

/// The same, for rows of a search.
fn costed(instance: &Instance, rows: Rows) -> Evaluated {
    made(instance, &PolicySpec::default_of(&auto::ENTRY), 0, rows)
}

/// The number of tries of a search without a time limit.
fn tries(settings: &Settings) -> u64 {
    (TRIES * settings.real("effort")) as u64
}

/// The cheapest order of flows that a search finds, with this number of `tries`. It
/// starts from all rules and from the order in which flows complete in a schedule.
fn search(
    instance: &Instance,
    settings: &Settings,
    tries: u64,
    options: &Options,
    completions: &[f64],
    stop: &dyn Fn() -> bool,
) -> Option<Vec<FlowId>> {
    let at_once = instance.clone().released_at_once();
    let (mut idle, mut engine, mut no_sink) = (Idle, Sim::new(&at_once, options.sim.clone()), ());
    let config = Config { each: true, slowstart: options.slowstart, ..Config::plain() };
    let mut driver = Driver::new(at_once.without_flows(), &mut idle, &mut engine, &mut no_sink, config);
    driver.step();
    let view = driver.view();
    let place = |flow: FlowId| view.instance.flow(flow).place;
    let mut order: Vec<FlowId> = view.instance.flows().keys().collect();
    order.sort_by_key(|&flow| (Key::new(completions[place(flow).index()]), place(flow)));
    let search = Search { objective: instance.objective(), rollouts: tries, seed: settings.count("seed") };
    let released = |flow: FlowId| instance.flow(place(flow)).release;
    let found = search.run(&view, released, &[order], stop)?;
    Some(found.order.into_iter().map(place).collect())
}

/// Cheaper rows from a search that places single tasks; `None` if it finds none or there are too many tasks.
fn inserted(instance: &Instance, settings: &Settings, best: &Best, stop: &dyn Fn() -> bool) -> Option<Rows> {
    let Rows::Tasks(tasks) = &best.rows else { return None };
    let tries = tries(settings);
    let found = Insertion::new(instance, TASKS_MAX)?.run(tasks, tries, settings.count("seed"), stop);
    let made = |rows: Rows| made(instance, best.winner.policy(), 0, rows);
    let (before, found) = (made(best.rows.clone()), made(Rows::Tasks(found)));
    (found.cost < before.cost).then_some(found.rows)
}

/// The rows of a schedule that serves flows in an order.
fn in_order(instance: &Instance, order: &[FlowId], options: &Options) -> Rows {
    let mut engine = Sim::new(instance, options.sim.clone());
    let config = options.config(instance.cluster(), &|| 0, None);
    let Run { tasks, .. } = slackline_policy::run(instance, &mut InOrder::new(order), &mut engine, config);
    Rows::Tasks(tasks)
}
