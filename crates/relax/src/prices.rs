//! Prices of slots over time: a bound for schedules of tasks and for any sum of costs (docs/math/flowflex.md
//! B9).
//!
//! Under prices of slots over time, every flow has a least sum of its cost and its payment, independent of
//! the other flows. No schedule costs less than the total of these sums, less the price of all slots. This
//! holds for any prices that are not negative; gradient steps along the difference of demand and supply find
//! good ones, as in Adam (Kingma, Ba 2015), with prices of at least 0.
//!
//! Tasks run in one piece here. Plans that divide them, as allocations do, may cost less than this bound.

mod chains;
mod grid;
mod program;
mod sums;

use slackline_model::id::TiSlice;
use slackline_model::{FlowId, Instance, SlotKind, tolerance};

use crate::flow::just_after;
use crate::paths::Paths;
use crate::per_flow::FlowBound;
use chains::{Kind, Node};
use grid::{Kinks, Prices, Usage};
use program::{Cut, Program, Scale, Scratch};

/// The largest budget: cells times waves times kinds of slots, times steps. About half a second.
pub const BUDGET: usize = 40_000_000;
/// The time of a step for each cell, about.
pub(crate) const CELL_NANOS: usize = 12;
/// The part of the budget that finds the length of steps and good first prices.
const TRIAL: f64 = 0.3;
/// Intervals of prices, and cells in each, of this part.
const TRIAL_GRIDS: [(usize, usize); 2] = [(100, 1), (50, 1)];
/// Lengths of steps in the trials, and the least and the largest number of steps for each.
const RATES: [f64; 3] = [1.0, 3.0, 9.0];
const TRIAL_STEPS: std::ops::RangeInclusive<usize> = 20..=100;
/// Intervals of prices, cells in each, and the number of steps for the rest, from fine to coarse.
const GRIDS: [(usize, usize); 3] = [(200, 4), (200, 2), (100, 2)];
const STEPS: std::ops::RangeInclusive<usize> = 40..=300;
/// Length of the later steps relative to the best trial's steps.
const SHORTER: f64 = 0.3;
/// Factor by which the cells of the last evaluation are finer.
const FINER: usize = 4;
/// Decay of the means of differences and of their squares.
const BETA: (f64, f64) = (0.9, 0.99);

/// The bound that prices prove.
#[derive(Clone, Debug)]
pub struct Proof {
    /// A lower bound on every schedule of tasks that run in one piece.
    pub bound: f64,
    /// Number of steps.
    pub steps: usize,
    /// Cells times waves times kinds of slots: the cost of a step.
    pub cells: usize,
    /// Seconds after the start of the workload from which on all prices are 0.
    pub horizon: f64,
    /// The prices, by kind of slots.
    pub(crate) prices: Vec<SlotPrices>,
}

/// The prices of the slots of a kind.
#[derive(Clone, Debug)]
pub(crate) struct SlotPrices {
    pub(crate) serving: SlotKind,
    scale: Scale,
    prices: Prices,
}

impl SlotPrices {
    /// The price of a slot up to an instant, in seconds.
    pub(crate) fn until(&self, at: f64) -> f64 {
        self.prices.until((at - self.scale.from) / self.scale.width)
    }

    /// The price of a slot from an instant on.
    pub(crate) fn from(&self, at: f64) -> f64 {
        self.prices.whole() - self.until(at)
    }

    /// The end of the last interval.
    pub(crate) fn end(&self) -> f64 {
        self.scale.from + self.scale.width * self.scale.intervals as f64
    }

    /// The least payment of a task of `length` seconds that starts from `start` to `end`.
    pub(crate) fn least(&self, length: f64, start: f64, end: f64) -> f64 {
        let Scale { from, width, .. } = self.scale;
        let (length, start, end) = (length / width, (start - from) / width, (end - from) / width);
        let mut kinks = Kinks::after(start, length);
        let kinks = std::iter::from_fn(|| kinks.before(end));
        let of_task = |at: f64| self.prices.of_task(at, length);
        kinks.map(of_task).fold(of_task(start).min(of_task(end)), f64::min).max(0.0)
    }
}

/// The bound on a sum of costs, from at most `budget` cells times waves times steps (more than [`BUDGET`] is
/// of no use).
///
/// `None` if work is not divided into tasks, if no flow can cost more than it does alone, if the budget is
/// too small for a few steps on the coarsest grid, or if `stop` is true before the first step; it is called
/// before each.
pub fn bound(
    instance: &Instance,
    paths: &Paths,
    flows: &TiSlice<FlowId, FlowBound>,
    budget: usize,
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
    let kinds = chains::kinds(instance.cluster());
    let trees = |kinds: &[Kind]| -> Option<Vec<Vec<Node>>> {
        let trees: Option<Vec<_>> =
            growing.iter().map(|&f| chains::of_flow(instance, kinds, paths, f)).collect();
        trees.filter(|trees| !trees.is_empty())
    };
    let lumped = chains::lumped(&kinds);
    let whole = |trees| Whole { instance, flows, growing: &growing, trees, horizon };
    let untold = whole(Vec::new());
    if TRIAL_GRIDS.iter().all(|&grid| !is_worth_trying(budget, untold.least_size(grid.0, grid.1))) {
        return None;
    }
    let mut ascent = Ascent::new(&lumped, untold.stake(), budget);
    let mut cells = ascent.explore(&whole(trees(&lumped)?), stop)?;
    if kinds != lumped {
        ascent.spread(&kinds)?;
    }
    cells = ascent.refine(&whole(trees(&kinds)?), stop).unwrap_or(cells);
    let Ascent { best: Some(best), steps, .. } = ascent else { return None };
    if best.bound == f64::NEG_INFINITY {
        return None;
    }
    let bound = sums::raised(instance, flows, best.bound + fixed - 1e-10 * fixed.abs());
    let scale = untold.scale(best.prices[0].of_intervals().len());
    let of_kind = |(kind, prices): (&Kind, Prices)| SlotPrices { serving: kind.serving(), scale, prices };
    let prices = kinds.iter().zip(best.prices).map(of_kind).collect();
    Some(Proof { bound, steps, cells, horizon, prices })
}

/// The flows that may cost more than alone.
struct Whole<'a> {
    instance: &'a Instance,
    flows: &'a TiSlice<FlowId, FlowBound>,
    growing: &'a [FlowId],
    trees: Vec<Vec<Node>>,
    horizon: f64,
}

impl Whole<'_> {
    /// The scale of this number of intervals of prices.
    fn scale(&self, intervals: usize) -> Scale {
        let from = self.growing.iter().map(|&f| self.flows[f].release).fold(f64::INFINITY, f64::min);
        Scale { from, width: (self.horizon - from) / intervals as f64, intervals }
    }

    /// A lower bound on the size of the programs that [`Self::cut`] would make. O(flows), without the phases.
    fn least_size(&self, intervals: usize, cells: usize) -> usize {
        let width = self.scale(intervals).width / cells as f64;
        let even = |&f: &FlowId| {
            let first = self.flows[f].earliest;
            even_cells(first, end(self.instance, f, first, self.horizon), width) as usize
        };
        self.growing.iter().map(even).sum()
    }

    /// Programs with this number of intervals of prices, and about `cells` cells in each.
    fn cut(&self, intervals: usize, cells: usize) -> (Vec<Program>, Scale) {
        let scale = self.scale(intervals);
        let program = |(&f, nodes): (&FlowId, &Vec<Node>)| {
            let (cost, earliest) = (&self.instance.flow(f).cost, self.flows[f].earliest);
            let edges = edges(self.instance, self.flows, f, nodes, scale.width / cells as f64, self.horizon);
            Program::new(nodes, &Cut { edges: &edges, earliest, cost }, scale)
        };
        (self.growing.iter().zip(&self.trees).map(program).collect(), scale)
    }

    fn stake(&self) -> f64 {
        self.growing.iter().map(|&f| stake(self.instance, self.flows, f, self.horizon)).sum()
    }
}

/// The end of a schedule of one flow after the other, in order of arrival.
fn horizon(instance: &Instance, paths: &Paths, flows: &TiSlice<FlowId, FlowBound>) -> f64 {
    let cluster = instance.cluster();
    let mut order: Vec<FlowId> = instance.flows().keys().collect();
    order.sort_by(|&a, &b| flows[a].release.total_cmp(&flows[b].release));
    let earliest = flows.iter().map(|flow| flow.earliest).fold(0.0, f64::max);
    let mut end = earliest;
    for &slot_kind in cluster.slot_kinds() {
        let mut busy = 0.0;
        for &flow in &order {
            let phases = instance.flow(flow).phases().filter(|&p| instance.slot_kind_of(p) == slot_kind);
            let work: f64 = phases.map(|p| paths.work[p]).sum();
            busy = f64::max(busy, flows[flow].release) + work / cluster.capacity(slot_kind);
        }
        end = f64::max(end, busy);
    }
    let from = flows.iter().map(|flow| flow.release).fold(f64::INFINITY, f64::min);
    end + STRETCH * (end - from)
}

/// The part by which a schedule of tasks takes longer than the area of their work.
const STRETCH: f64 = 0.1;

/// The most that a flow may pay: the scale of its prices.
fn stake(instance: &Instance, flows: &TiSlice<FlowId, FlowBound>, f: FlowId, horizon: f64) -> f64 {
    let (flow, earliest) = (instance.flow(f), flows[f].earliest);
    let more = |at: f64| flow.cost.eval(at) - flow.cost.eval(earliest);
    if flow.cost.as_steps().is_some() {
        more(horizon) / 10.0
    } else {
        more(earliest + flow.alone / 10.0 + horizon / 20.0) / 2.0
    }
}

/// The starts of the cells of a flow: `width` apart, and closer after every step of its cost.
fn edges(
    instance: &Instance,
    flows: &TiSlice<FlowId, FlowBound>,
    f: FlowId,
    nodes: &[Node],
    width: f64,
    horizon: f64,
) -> Vec<f64> {
    let cost = &instance.flow(f).cost;
    let paths = nodes.iter().flat_map(|node| &node.bundles).map(|b| b.head + b.length() + b.tail);
    let first = paths.fold(flows[f].earliest, f64::min);
    let end = end(instance, f, first, horizon);
    let mut edges = vec![first, end];
    let even = even_cells(first, end, width);
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

/// The end of the cells of a flow: after the last step of its cost nothing changes.
fn end(instance: &Instance, f: FlowId, first: f64, horizon: f64) -> f64 {
    let cost = &instance.flow(f).cost;
    let steps = cost.as_steps().map(|steps| steps.last().map_or(first, |&(at, _)| tolerance::latest(at)));
    steps.map_or(horizon, |last| just_after(last).min(horizon)).max(first)
}

/// The number of cells of about that width between two instants.
fn even_cells(first: f64, end: f64, width: f64) -> f64 {
    ((end - first) / width).ceil().max(1.0)
}

/// A bound and the prices that prove it; minus infinity if no bound is proven yet.
struct Best {
    bound: f64,
    prices: Vec<Prices>,
    /// The length of the steps that found it.
    rate: f64,
}

/// The state of the ascent over prices.
struct Ascent {
    kinds: Vec<Kind>,
    budget: usize,
    /// The most that all flows together may pay.
    stake: f64,
    best: Option<Best>,
    /// Steps made so far.
    steps: usize,
    /// Whether the caller stopped it.
    is_stopped: bool,
    usage: Vec<Usage>,
    scratch: Scratch,
}

impl Ascent {
    fn new(kinds: &[Kind], stake: f64, budget: usize) -> Self {
        let (usage, scratch) = (Vec::new(), Scratch::default());
        Self { kinds: kinds.to_vec(), budget, stake, best: None, steps: 0, is_stopped: false, usage, scratch }
    }

    /// Tries several lengths of steps on a coarse grid; returns the size of its programs.
    fn explore(&mut self, whole: &Whole<'_>, stop: &dyn Fn() -> bool) -> Option<usize> {
        let (programs, scale, size) = TRIAL_GRIDS.iter().find_map(|&grid| {
            let (programs, scale) = whole.cut(grid.0, grid.1);
            let size = size(&programs);
            is_worth_trying(self.budget, size).then_some((programs, scale, size))
        })?;
        let steps = trial_steps(self.budget, size).min(*TRIAL_STEPS.end());
        for rate in RATES {
            let prices = vec![Prices::zero(scale.intervals); self.kinds.len()];
            self.climb(&programs, prices, rate, steps, stop);
        }
        Some(size)
    }

    /// Continues with these kinds of slots: those of one slot kind have prices in proportion to their speed.
    fn spread(&mut self, kinds: &[Kind]) -> Option<()> {
        let Best { prices, rate, .. } = self.best.take()?;
        let of = |kind: &Kind| {
            let lump = self.kinds.iter().position(|lump| lump.is_beside(kind))?;
            let intervals = prices[lump].of_intervals().len();
            Some(prices[lump].finer(intervals, kind.speed / self.kinds[lump].speed))
        };
        let prices = kinds.iter().map(of).collect::<Option<Vec<Prices>>>()?;
        self.best = Some(Best { bound: f64::NEG_INFINITY, prices, rate });
        self.kinds = kinds.to_vec();
        Some(())
    }

    /// Continues from the best prices on a finer grid; returns the size of its programs.
    fn refine(&mut self, whole: &Whole<'_>, stop: &dyn Fn() -> bool) -> Option<usize> {
        let best = self.best.as_ref().filter(|_| !self.is_stopped)?;
        let left = |size: usize| ((1.0 - TRIAL) * self.budget as f64) as usize / size.max(1);
        let (programs, (intervals, cells), size) = GRIDS.iter().find_map(|&grid| {
            let (programs, _) = whole.cut(grid.0, grid.1);
            let size = size(&programs);
            (left(size) >= *STEPS.start()).then_some((programs, grid, size))
        })?;
        let prices = best.prices.iter().map(|prices| prices.finer(intervals, 1.0)).collect();
        let length = (best.rate * SHORTER, left(size).min(*STEPS.end()));
        self.climb(&programs, prices, length.0, length.1, stop);
        if let Some(best) = &self.best {
            let (programs, _) = whole.cut(intervals, cells * FINER);
            let prices = best.prices.iter().map(|prices| prices.finer(intervals, 1.0)).collect();
            self.climb(&programs, prices, 0.0, 1, stop);
        }
        Some(size)
    }

    /// At most this number of steps of this length from some prices; no more after a stop.
    fn climb(
        &mut self,
        programs: &[Program],
        mut prices: Vec<Prices>,
        rate: f64,
        steps: usize,
        stop: &dyn Fn() -> bool,
    ) {
        let n = prices[0].of_intervals().len();
        let mut means = vec![vec![(0.0, 0.0); n]; self.kinds.len()];
        self.usage = vec![Usage::none(n); self.kinds.len()];
        // In units of an interval of all slots, not of a second.
        let slots: f64 = self.kinds.iter().map(|kind| kind.slots).sum();
        let longest = 3.0 * rate * self.stake / (slots * n as f64);
        for step in 0..steps {
            self.is_stopped |= !self.is_stopped && stop();
            if self.is_stopped {
                return;
            }
            let bound = self.look(programs, &prices);
            self.steps += 1;
            if self.best.as_ref().is_none_or(|best| best.bound < bound) {
                self.best = Some(Best { bound, prices: prices.clone(), rate });
            }
            let left = 1.0 - step as f64 / steps as f64;
            let length = longest * left * left;
            if !self.go(&mut prices, &mut means, i32::try_from(step + 1).unwrap_or(i32::MAX), length) {
                return;
            }
        }
    }

    /// The bound at some prices, and the usage under them.
    fn look(&mut self, programs: &[Program], all: &[Prices]) -> f64 {
        self.usage.iter_mut().for_each(Usage::clear);
        let (mut sum, mut size, mut tasks) = (0.0, 0.0, 0.0);
        for program in programs {
            let least = program.least(all, &mut self.scratch);
            program.use_up(least, all, &self.scratch, &mut self.usage);
            sum += least.value;
            size += least.value.abs();
            tasks += program.tasks();
        }
        let mut highest = 0.0;
        for (prices, kind) in all.iter().zip(&self.kinds) {
            let paid = kind.slots * prices.whole();
            sum -= paid;
            size += paid;
            highest = prices.of_intervals().iter().copied().fold(highest, f64::max);
        }
        // The number of roundings: number of tasks times intervals.
        let terms = tasks * all[0].of_intervals().len() as f64;
        sum - 1e-10 * size - 1e-13 * terms * highest
    }

    /// Moves the prices; `false` if there is no direction.
    fn go(&self, all: &mut [Prices], means: &mut [Vec<(f64, f64)>], step: i32, length: f64) -> bool {
        let mut is_moving = false;
        let grown = (1.0 - BETA.0.powi(step), 1.0 - BETA.1.powi(step));
        for (((prices, means), usage), kind) in all.iter_mut().zip(means).zip(&self.usage).zip(&self.kinds) {
            let slots = kind.slots;
            let wanted: Vec<f64> = usage.of_intervals().map(|used| used - slots).collect();
            let now = prices.of_intervals();
            is_moving |=
                wanted.iter().zip(now).any(|(&d, &price)| d > 1e-9 * slots || d < 0.0 && price > 0.0);
            for (mean, d) in means.iter_mut().zip(&wanted) {
                *mean = (BETA.0 * mean.0 + (1.0 - BETA.0) * d, BETA.1 * mean.1 + (1.0 - BETA.1) * d * d);
            }
            prices.change(|i| {
                let (mean, square) = means[i];
                length * (mean / grown.0) / ((square / grown.1).sqrt() + f64::MIN_POSITIVE)
            });
        }
        is_moving
    }
}

fn size(programs: &[Program]) -> usize {
    programs.iter().map(Program::size).sum::<usize>().max(1)
}

/// Whether programs of this size get enough steps for a useful bound.
fn is_worth_trying(budget: usize, size: usize) -> bool {
    trial_steps(budget, size.max(1)) >= *TRIAL_STEPS.start()
}

/// Number of steps for each length on programs of this size.
fn trial_steps(budget: usize, size: usize) -> usize {
    (TRIAL * budget as f64) as usize / (RATES.len() * size)
}
