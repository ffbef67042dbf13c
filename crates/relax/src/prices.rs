//! Prices of slots over time: a bound for schedules of tasks and for any sum of costs (docs/math/flowflex.md B9).
//!
//! If slots cost something over time, every flow can be asked what it costs and pays at least, by itself: no schedule
//! costs less than the sum of that, less what all slots cost. This holds for any prices that are not negative; good
//! ones are found by steps along the difference of what is used and what there is, in the manner of Adam (Kingma, Ba
//! 2015), the prices kept at 0 or above.
//!
//! Tasks run in one piece here. Plans that divide them, as allocations do, may cost less than this bound.

mod chains;
mod grid;
mod program;
mod sums;

use slackline_model::id::TiSlice;
use slackline_model::{FlowId, Instance, tolerance};

use crate::flow::just_after;
use crate::paths::Paths;
use crate::per_flow::FlowBound;
use chains::Node;
use grid::{Prices, Usage};
use program::{Cut, Program, Scale, Scratch};

/// Most cells times waves times steps.
const BUDGET: usize = 20_000_000;
/// Steps, at most and at least.
const STEPS: std::ops::RangeInclusive<usize> = 60..=300;
/// Intervals of prices, and cells in each, from fine to coarse.
const GRIDS: [(usize, usize); 5] = [(200, 4), (100, 4), (100, 2), (100, 1), (50, 1)];
/// Of the means of differences and of their squares.
const BETA: (f64, f64) = (0.9, 0.99);

/// What prices prove.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proof {
    /// No schedule of tasks that run in one piece costs less.
    pub bound: f64,
    /// Steps that were made.
    pub steps: usize,
    /// Cells times waves: what a step takes.
    pub cells: usize,
    /// Seconds after the start of the workload from which on nothing has a price.
    pub horizon: f64,
}

/// The bound on a sum of costs, from at most 300 steps of O(cells · waves) each.
///
/// `None` if work is not cut into tasks, if no flow can cost more than it does alone, if 60 steps on the coarsest grid
/// are beyond 20 million cells times waves, or if `stop` says so before the first step; it is asked before each.
pub fn bound(
    instance: &Instance,
    paths: &Paths,
    flows: &TiSlice<FlowId, FlowBound>,
    stop: &dyn Fn() -> bool,
) -> Option<Proof> {
    let horizon = horizon(instance, paths, flows);
    let grows = |f: FlowId| {
        let cost = &instance.flow(f).cost;
        cost.eval(horizon) > cost.eval(flows[f].earliest)
    };
    let growing: Vec<FlowId> = instance.flows().keys().filter(|&f| grows(f)).collect();
    let others = instance.flows().iter_enumerated().filter(|&(f, _)| !grows(f));
    let fixed: f64 = others.map(|(f, flow)| flow.cost.eval(flows[f].earliest)).sum();
    let trees: Option<Vec<Vec<Node>>> =
        growing.iter().map(|&f| chains::of_flow(instance, paths, f)).collect();
    let trees = trees.filter(|trees| !trees.is_empty())?;
    let from = growing.iter().map(|&f| flows[f].release).fold(f64::INFINITY, f64::min);
    let (programs, scale, steps) = GRIDS.iter().find_map(|&(intervals, cells)| {
        let scale = Scale { from, width: (horizon - from) / intervals as f64, intervals };
        let program = |(&f, nodes): (&FlowId, &Vec<Node>)| {
            let (cost, earliest) = (&instance.flow(f).cost, flows[f].earliest);
            let edges = edges(instance, flows, f, nodes, (scale.width / cells as f64, horizon));
            Program::new(nodes, &Cut { edges: &edges, earliest, cost }, scale)
        };
        let programs: Vec<Program> = growing.iter().zip(&trees).map(program).collect();
        let steps = BUDGET / programs.iter().map(Program::size).sum::<usize>().max(1);
        (steps >= *STEPS.start()).then(|| (programs, scale, steps.min(*STEPS.end())))
    })?;
    let stake: f64 = growing.iter().map(|&f| stake(instance, flows, f, horizon)).sum();
    let slots: Vec<f64> = {
        let cluster = instance.cluster();
        cluster.lanes().iter().map(|&lane| f64::from(cluster.slots(lane))).collect()
    };
    let cells = programs.iter().map(Program::size).sum();
    let mut ascent = Ascent::new(programs, slots, scale, stake);
    let (best, steps) = ascent.climb(steps, stop)?;
    let bound = sums::raised(instance, flows, best + fixed - 1e-10 * fixed.abs());
    Some(Proof { bound, steps, cells, horizon })
}

/// When everything could be done, one flow after the other as they come.
fn horizon(instance: &Instance, paths: &Paths, flows: &TiSlice<FlowId, FlowBound>) -> f64 {
    let cluster = instance.cluster();
    let mut order: Vec<FlowId> = instance.flows().keys().collect();
    order.sort_by(|&a, &b| flows[a].release.total_cmp(&flows[b].release));
    let earliest = flows.iter().map(|flow| flow.earliest).fold(0.0, f64::max);
    let mut end = earliest;
    for &lane in cluster.lanes() {
        let mut busy = 0.0;
        for &flow in &order {
            let phases = instance.flow(flow).phases().filter(|&p| instance.lane_of(p) == lane);
            let work: f64 = phases.map(|p| paths.work[p]).sum();
            busy = f64::max(busy, flows[flow].release) + work / cluster.capacity(lane);
        }
        end = f64::max(end, busy);
    }
    let from = flows.iter().map(|flow| flow.release).fold(f64::INFINITY, f64::min);
    end + STRETCH * (end - from)
}

/// By how much a schedule of tasks takes longer than the area of their work.
const STRETCH: f64 = 0.1;

/// What may come to be paid for a flow: the size of its prices.
fn stake(instance: &Instance, flows: &TiSlice<FlowId, FlowBound>, f: FlowId, horizon: f64) -> f64 {
    let (flow, earliest) = (instance.flow(f), flows[f].earliest);
    let more = |at: f64| flow.cost.eval(at) - flow.cost.eval(earliest);
    if flow.cost.as_steps().is_some() {
        more(horizon) / 10.0
    } else {
        more(earliest + flow.alone / 10.0 + horizon / 20.0) / 2.0
    }
}

/// Where the cells of a flow begin: `width` apart, and closer after whatever makes it cost more.
fn edges(
    instance: &Instance,
    flows: &TiSlice<FlowId, FlowBound>,
    f: FlowId,
    nodes: &[Node],
    (width, horizon): (f64, f64),
) -> Vec<f64> {
    let cost = &instance.flow(f).cost;
    let paths = nodes.iter().flat_map(|node| &node.bundles).map(|b| b.head + b.length() + b.tail);
    let first = paths.fold(flows[f].earliest, f64::min);
    // Behind the last step it is all the same.
    let steps = cost.as_steps().map(|steps| steps.last().map_or(first, |&(at, _)| tolerance::latest(at)));
    let end = steps.map_or(horizon, |last| just_after(last).min(horizon)).max(first);
    let mut edges = vec![first, end];
    let even = ((end - first) / width).ceil().max(1.0);
    edges.extend((1..even as usize).map(|k| first + (end - first) * k as f64 / even));
    let breaks = cost.breakpoints().into_iter().map(|at| just_after(tolerance::latest(at)));
    for at in breaks.chain([flows[f].earliest]).filter(|at| (first..end).contains(at)) {
        let (mut edge, mut gap) = (at, width / 8.0);
        while edge < end && gap < width {
            edges.push(edge);
            (edge, gap) = (edge + gap, gap * 1.5);
        }
    }
    edges.sort_by(f64::total_cmp);
    edges.dedup_by(|next, last| *next - *last <= 1e-9 * width);
    edges
}

/// Prices on their way up.
struct Ascent {
    programs: Vec<Program>,
    /// Slots of each lane.
    slots: Vec<f64>,
    prices: Vec<Prices>,
    usage: Vec<Usage>,
    /// Means of differences and of their squares, by lane and interval.
    means: Vec<Vec<(f64, f64)>>,
    /// The first step of a price of a whole interval.
    rate: f64,
    /// Number of tasks times intervals: how often rounding may tell.
    terms: f64,
    scratch: Scratch,
}

impl Ascent {
    fn new(programs: Vec<Program>, slots: Vec<f64>, scale: Scale, stake: f64) -> Self {
        let n = scale.intervals;
        Self {
            // Of an interval of all slots, not of a second.
            rate: 3.0 * stake / (slots.iter().sum::<f64>() * n as f64),
            terms: programs.iter().map(Program::tasks).sum::<f64>() * n as f64,
            prices: vec![Prices::zero(n); slots.len()],
            usage: vec![Usage::none(n); slots.len()],
            means: vec![vec![(0.0, 0.0); n]; slots.len()],
            scratch: Scratch::default(),
            programs,
            slots,
        }
    }

    /// The best bound of at most so many steps, and how many were made.
    fn climb(&mut self, steps: usize, stop: &dyn Fn() -> bool) -> Option<(f64, usize)> {
        let mut best: Option<f64> = None;
        for step in 0..steps {
            if stop() {
                return best.map(|best| (best, step));
            }
            let bound = self.look();
            best = Some(best.map_or(bound, |best| best.max(bound)));
            let left = 1.0 - step as f64 / steps as f64;
            if !self.go(i32::try_from(step + 1).unwrap_or(i32::MAX), self.rate * left * left) {
                return best.map(|best| (best, step + 1));
            }
        }
        best.map(|best| (best, steps))
    }

    /// The bound at the present prices, and what is used under them.
    fn look(&mut self) -> f64 {
        self.usage.iter_mut().for_each(Usage::clear);
        let (mut sum, mut size) = (0.0, 0.0);
        for program in &self.programs {
            let least = program.least(&self.prices, &mut self.scratch);
            program.use_up(least, &self.prices, &self.scratch, &mut self.usage);
            sum += least.value;
            size += least.value.abs();
        }
        let mut highest = 0.0;
        for (prices, slots) in self.prices.iter().zip(&self.slots) {
            let paid = slots * prices.whole();
            sum -= paid;
            size += paid;
            highest = prices.of_intervals().iter().copied().fold(highest, f64::max);
        }
        sum - 1e-10 * size - 1e-13 * self.terms * highest
    }

    /// Moves the prices; `false` if nothing says where to.
    fn go(&mut self, step: i32, rate: f64) -> bool {
        let mut is_moving = false;
        let grown = (1.0 - BETA.0.powi(step), 1.0 - BETA.1.powi(step));
        for (l, prices) in self.prices.iter_mut().enumerate() {
            let slots = self.slots[l];
            let wanted: Vec<f64> = self.usage[l].of_intervals().map(|used| used - slots).collect();
            let now = prices.of_intervals();
            is_moving |=
                wanted.iter().zip(now).any(|(&d, &price)| d > 1e-9 * slots || d < 0.0 && price > 0.0);
            let means = &mut self.means[l];
            for (mean, d) in means.iter_mut().zip(&wanted) {
                *mean = (BETA.0 * mean.0 + (1.0 - BETA.0) * d, BETA.1 * mean.1 + (1.0 - BETA.1) * d * d);
            }
            prices.change(|i| {
                let (mean, square) = means[i];
                rate * (mean / grown.0) / ((square / grown.1).sqrt() + f64::MIN_POSITIVE)
            });
        }
        is_moving
    }
}
