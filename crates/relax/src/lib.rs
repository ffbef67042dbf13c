#![doc = include_str!("../README.md")]
//!
//! # The bounds of an instance
//!
//! [`bounds`] computes all that fit the instance's objective, [`best`] is their maximum. Let n be the number
//! of slices, phases and flows together (a phase is cut into at most 8 slices).
//!
//! | name | objective | what no schedule can beat | time | where | from |
//! |---|---|---|---|---|---|
//! | `critical-path` | any | each flow's longest chain of phases, at their caps on the fastest slots; on mixed speeds none shorter than its longest task | n | [`paths`], [`per_flow`](mod@per_flow) | FlowFlex §3 |
//! | `area` | any | each flow's work over the capacity, for each kind of slot | n | [`per_flow`](mod@per_flow) | FlowFlex §3 (squashed area) |
//! | `alone` | any | each flow alone on the cluster: heads, work and tails on one fast machine, by slices | n log n | [`per_flow`](mod@per_flow), [`tails`] | docs/math/flowflex.md B7 |
//! | `tail-hall` | max | a level L whose deadlines EDF on the fast machine misses, by slices | n log n per step, about 40 | [`prefix_area`](mod@prefix_area), [`tails`] | FlowFlex §5.1, B7 |
//! | `fluid-johnson` | makespan, map and reduce slots | Johnson's order of the two stages as two fast machines | n log n | [`johnson`] | job ordering, formula 3; D4 |
//! | `pb` | sum, linear | the program of mean busy times with earliest completions and tails, in closed form: on mixed speeds at least LP-MapReduce | n log n | [`pb`], [`minisum`] | DMRS §III.A, A1–A4 |
//! | `mean-busy` | sum, convex | the same and preemptive WSPT under heads, by tangents | n log n per step, at most 100 | [`minisum`], [`convex`], [`preemptive`] | A7 (b), B7 |
//! | `pb-convex` | sum, convex | `pb` under the tangents of the costs | n log n per step, at most 300 | [`minisum`], [`convex`] | B7 |
//! | `flow-tails` | sum, not linear, at most 1500 flows | a minimum-cost flow of slices with heads and tails into slots of time | network simplex, at most 800 slots | [`flow_tails`], [`flow`], [`transport`] | FlowFlex Fig. 6, 7; B1–B4, B7 |
//! | `prices` | sum, of tasks in one piece | prices of slots over time, and what each flow costs and pays at least by itself | some hundred steps, 40 million cells in all | [`prices`] | B9 |
//! | `levels` | sum of steps | the cheapest choice of levels whose deadlines pass the EDF test | branch and bound, limited | [`flow_levels`] | B7 |
//!
//! # The optimum of small instances
//!
//! [`exact`] searches for it, starting from the bounds of `prices`. It takes long, so that only plans with a time
//! budget use it; until it ends, its bound rises.
//!
//! # Exact tests and bounds over malleable jobs
//!
//! What FLEX plans: jobs of one phase, all there from the start ([`malleable::Job`]), J of them.
//!
//! | what | question | time | from |
//! |---|---|---|---|
//! | [`deadlines::DeadlineTest`] | can all jobs meet their deadlines? Exact, with the schedule | J log J | C3 |
//! | [`minimax`](mod@minimax) | the least maximum of any costs: bisection with that test. Exact | J log J per step | C4 |
//! | [`levels::exact`] | the cheapest choice of steps that passes the test. Exact, for few jobs | exponential, limited | C4 |
//! | [`levels::bound`] | the same relaxed by prices, for many jobs and for any cost | J · levels per step | C6 |
//!
//! # Who uses them
//!
//! `slackline bound`: [`task_bounds`]. Simulations: [`quick_task_bounds`]. Plans, by the form of their rows:
//! [`bounds_until`]. As steps of algorithms: `algo::dmrs` ([`pb`], [`preemptive`]), `algo::flowflex`
//! ([`flow`] and [`pb`] for orders, [`level_choice`] for steps), `algo::flex` ([`deadlines`],
//! [`minimax`](mod@minimax), [`levels`], [`pb`]), `algo::ordering` ([`johnson`]).
//!
//! A4, B7 and the like are sections of the pages in docs/math, which have the proofs.
//!
//! # What the bounds hold for
//!
//! Every feasible schedule of the instance, as tasks without preemption or as malleable allocations, with or
//! without minima, slow-start, failures and re-runs: those only restrict or add work. On machines of mixed
//! speed there are only tasks, and the bounds know that none of them is divided ([`paths`]). Only `prices`
//! asks that tasks run in one piece: it says so ([`Form`]), and [`bounds`] and [`best`] leave it out. A
//! schedule whose durations were distorted (noise, measured runs) follows another instance.
//!
//! # Rounding
//!
//! *Whole microseconds.* A simulated task takes `round(seconds / speed)` microseconds and may so be
//! shorter than the real quotient; [`paths`] counts each task with the least work that any slot can
//! have spent on it, so bounds hold for rounded and for exact durations.
//!
//! *Floating point.* Earliest completions, and sums and levels found by search, are lowered by 10^-12
//! relative plus the worst case of naive summation, so that no rounding lifts a bound above the
//! optimum. A bound that meets the optimum is therefore a hair below it. Step costs are exact: their
//! bounds are levels of the document, and completions count as late with the documents' tolerance.
#![warn(missing_docs)]
#![deny(clippy::unwrap_used)]

mod budget;
pub mod convex;
pub mod deadlines;
pub mod exact;
pub mod flow;
pub mod flow_levels;
pub mod flow_tails;
pub mod johnson;
pub mod levels;
pub mod malleable;
pub mod minimax;
pub mod minisum;
pub mod paths;
pub mod pb;
pub mod per_flow;
pub mod preemptive;
pub mod prefix_area;
pub mod prices;
mod rounding_margin;
pub mod tails;
#[cfg(test)]
mod tests;
pub mod transport;

use slackline_model::id::TiSlice;
use slackline_model::{Combine, FlowId, Instance, Metric};

pub use budget::Budget;
pub use paths::Paths;
pub use per_flow::{FlowBound, per_flow};

/// Which schedules a bound holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All: tasks, and allocations of slots, which may divide tasks.
    Any,
    /// Those of tasks that run in one piece.
    Tasks,
}

/// A lower bound on the objective of every feasible schedule of a form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Which relaxation: `critical-path`, `area`, `alone`, `tail-hall`, `fluid-johnson`, `pb`, `mean-busy`,
    /// `pb-convex`, `flow-tails`, `levels`, `prices`.
    pub name: &'static str,
    /// The bound, in units of the objective.
    pub value: f64,
    /// What it holds for.
    pub form: Form,
    /// How far its search went, of bounds that search.
    pub search: Option<Search>,
}

/// How far the search for a bound went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Search {
    /// The least choice of levels was found, or the search was cut short.
    Levels {
        /// Whether it was found.
        complete: bool,
    },
    /// The prices, after this number of changes.
    Prices {
        /// How often.
        steps: usize,
        /// Nothing has a price from here on, in seconds after the start of the workload.
        horizon: f64,
    },
}

impl Bound {
    /// One that holds for all schedules.
    fn new(name: &'static str, value: f64) -> Self {
        Self { name, value, form: Form::Any, search: None }
    }
}

/// Flows above which the minimum-cost flow is not a bound any more: memory grows with flows and slots.
const FLOW_FLOWS_MAX: usize = 1500;

/// All lower bounds that apply to the instance's objective and hold for schedules of any form, each valid on
/// its own.
///
/// `critical-path`, `area` and `alone` (which is at least both) for every objective; `tail-hall` for maxima;
/// `fluid-johnson` for the makespan on map and reduce slots; for sums `pb` where flows cost in proportion to their
/// completion, `mean-busy` and `pb-convex` where costs are convex, `flow-tails` for other costs of few flows,
/// `levels` where all costs are steps. Their maximum is a bound too, their sum is not.
///
/// O(n log n) for n phases and flows, times the steps of a search for `tail-hall` and `pb-convex` (about 40
/// and 300); `flow-tails` and `levels` are limited in size and take up to some tenths of a second.
pub fn bounds(instance: &Instance) -> Vec<Bound> {
    bounds_until(instance, Form::Any, &|| false)
}

/// [`bounds`], and for sums `prices`, which holds for schedules of tasks only and takes up to a second.
pub fn task_bounds(instance: &Instance) -> Vec<Bound> {
    bounds_until(instance, Form::Tasks, &|| false)
}

/// [`task_bounds`] whose searches take about 50 ms, or a fifth of the time of a simulation if that is more.
/// The limit is a count of steps that follows from the instance, so that the same instance has the same bounds.
pub fn quick_task_bounds(instance: &Instance) -> Vec<Bound> {
    bounds_within(instance, Form::Tasks, Budget::quick(instance), &|| false)
}

/// The bounds that hold for schedules of a form, but without those that take long (`flow-tails`,
/// `levels`, `prices`) once `stop` says so; it is asked before each of them, and before every step of
/// `prices`.
pub fn bounds_until(instance: &Instance, form: Form, stop: &dyn Fn() -> bool) -> Vec<Bound> {
    bounds_within(instance, form, Budget::full(), stop)
}

fn bounds_within(instance: &Instance, form: Form, mut budget: Budget, stop: &dyn Fn() -> bool) -> Vec<Bound> {
    let paths = Paths::of(instance);
    let flows = per_flow::with_paths(instance, &paths);
    let combined = |flows: &TiSlice<FlowId, FlowBound>, bound: &dyn Fn(&FlowBound) -> f64| {
        let costs = instance.flows().iter().zip(flows);
        instance.objective().combine.of(costs.map(|(flow, b)| flow.cost.eval(bound(b))))
    };
    let slices = tails::slices(instance, &paths, 8);
    let strong = tails::strengthened(instance, &slices, &flows);
    let mut list = vec![
        Bound::new("critical-path", combined(&flows, &|b| b.completion_after(b.critical_path))),
        Bound::new("area", combined(&flows, &|b| b.completion_after(b.area()))),
        Bound::new("alone", combined(&strong, &|b| b.earliest)),
    ];
    match instance.objective().combine {
        Combine::Max => {
            let value = prefix_area::prefix_area(instance, &slices, &strong);
            list.push(Bound::new("tail-hall", value));
            // A flow with a separate cost is not paid for by its completion.
            let is_makespan = instance.objective().metric == Metric::Makespan
                && instance.flows().iter().all(|flow| flow.cost.as_linear() == Some((1.0, 0.0)));
            if is_makespan && let Some(value) = johnson::fluid_bound(instance, &paths) {
                list.push(Bound::new("fluid-johnson", value));
            }
        }
        Combine::Sum => {
            minisum_bounds(instance, &slices, &strong, &mut budget, &mut list);
            let limits = Limits { budget: &mut budget, stop };
            minisum_searches(instance, &slices, &strong, limits, &mut list);
            if form == Form::Tasks
                && let Some(proof) = prices::bound(
                    instance,
                    &paths,
                    &strong,
                    budget.rest(prices::BUDGET, prices::CELL_NANOS),
                    stop,
                )
            {
                let search = Search::Prices { steps: proof.steps, horizon: proof.horizon };
                list.push(Bound { name: "prices", value: proof.bound, form, search: Some(search) });
            }
        }
    }
    // Weights near the end of the floating-point range may end in inf - inf, which bounds nothing.
    list.retain(|bound| !bound.value.is_nan());
    list
}

/// The choice of levels behind the bound `levels`, with its deadlines: a start for schedules that keep them.
/// `None` unless all costs are steps.
pub fn level_choice(instance: &Instance) -> Option<flow_levels::Choice> {
    let paths = Paths::of(instance);
    let flows = per_flow::with_paths(instance, &paths);
    let slices = tails::slices(instance, &paths, 8);
    flow_levels::choose(
        instance,
        &slices,
        &tails::strengthened(instance, &slices, &flows),
        &mut Budget::full(),
    )
}

/// The quick bounds on sums.
fn minisum_bounds(
    instance: &Instance,
    slices: &[tails::Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    budget: &mut Budget,
    list: &mut Vec<Bound>,
) {
    let costs = || instance.flows().iter().map(|flow| &flow.cost);
    if let Some(linear) = minisum::linear_part(instance, flows) {
        let value = minisum::pb(instance, slices, flows, &linear);
        list.push(Bound::new("pb", value));
    }
    if costs().any(slackline_model::CostFn::is_convex) {
        list.push(Bound::new("mean-busy", minisum::mean_busy(instance, slices, flows, budget)));
    }
    if costs().any(|cost| cost.as_linear().is_none() && cost.is_convex()) {
        list.push(Bound::new("pb-convex", minisum::pb_convex(instance, slices, flows, budget)));
    }
}

/// When searches end.
struct Limits<'a> {
    budget: &'a mut Budget,
    stop: &'a dyn Fn() -> bool,
}

/// The bounds on sums that solve flows or search.
fn minisum_searches(
    instance: &Instance,
    slices: &[tails::Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    Limits { budget, stop }: Limits<'_>,
    list: &mut Vec<Bound>,
) {
    if instance.flows().len() > FLOW_FLOWS_MAX || stop() {
        return;
    }
    if instance.flows().iter().any(|flow| flow.cost.as_linear().is_none())
        && let Some(value) = flow_tails::bound(instance, slices, flows, budget)
    {
        list.push(Bound::new("flow-tails", value));
    }
    if !stop()
        && let Some(choice) = flow_levels::choose(instance, slices, flows, budget)
    {
        let search = Some(Search::Levels { complete: choice.complete });
        list.push(Bound { search, ..Bound::new("levels", choice.bound) });
    }
}

/// The strongest of [`bounds`], for schedules of any form; at least 0 for objectives that cannot be negative.
pub fn best(instance: &Instance) -> f64 {
    best_of(&bounds(instance))
}

/// The strongest of some bounds; 0 of none.
pub fn best_of(bounds: &[Bound]) -> f64 {
    bounds.iter().map(|bound| bound.value).reduce(f64::max).unwrap_or(0.0)
}
