//! The cheapest way through one flow under prices, by dynamic programming over cells of projected
//! completions.
//!
//! The *projected completion* of a task is its start plus the longest path from there to the end of its flow.
//! It never falls along a chain or an edge of the tree, so that one grid serves all tasks of a flow and no
//! length is rounded.

use slackline_model::CostFn;

use super::chains::{Bundle, Hold, Node};
use super::grid::{Kinks, Prices, Usage};

/// A flow, its times in intervals of prices.
#[derive(Clone, Debug)]
pub(super) struct Program {
    nodes: Vec<Node>,
    /// Starts of the cells; the last cell has no end, the first no start.
    edges: Vec<f64>,
    /// The least cost of completing the flow in each cell.
    costs: Vec<f64>,
    /// For each node, the cell that its predecessors must be in, by the cell of the first wave of its first
    /// bundle; `None` if it is the same cell.
    shifts: Vec<Option<Vec<u32>>>,
    /// Largest error of a head.
    rounding: f64,
}

/// Buffers that the programs of flows share, and the solution that one of them leaves for
/// [`Program::use_up`].
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// The payments of the predecessors of a node, by cells; the last is that of the flow.
    below: Vec<f64>,
    /// The cell and the hold of each wave, by the last cell it may be in, times the number of holds.
    taken: Vec<u32>,
    wave: Vec<f64>,
    /// The wave after it.
    after: Vec<f64>,
}

/// The least cost and payment of a flow, and the cell in which it completes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Least {
    pub(super) value: f64,
    cell: usize,
}

/// The cuts of time for a flow, in seconds.
pub(super) struct Cut<'a> {
    /// Starts of cells, sorted.
    pub(super) edges: &'a [f64],
    /// The earliest completion of the flow.
    pub(super) earliest: f64,
    pub(super) cost: &'a CostFn,
}

/// The grid of prices: its start and the length of its intervals, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) width: f64,
    pub(super) intervals: usize,
}

impl Program {
    pub(super) fn new(nodes: &[Node], cut: &Cut<'_>, scale: Scale) -> Self {
        let hold = |hold: &Hold| Hold { seconds: hold.seconds / scale.width, ..*hold };
        let in_intervals = |bundle: &Bundle| Bundle {
            holds: bundle.holds.iter().map(hold).collect(),
            head: (bundle.head - scale.from) / scale.width,
            tail: bundle.tail / scale.width,
            ..*bundle
        };
        let node = |node: &Node| Node {
            bundles: node.bundles.iter().map(in_intervals).collect(),
            slack: node.slack / scale.width,
            next: node.next,
        };
        let nodes: Vec<Node> = nodes.iter().map(node).collect();
        let edges: Vec<f64> = cut.edges.iter().map(|at| (at - scale.from) / scale.width).collect();
        // The first cell reaches down to the first start.
        let at = |k: usize| if k == 0 { cut.earliest } else { cut.edges[k].max(cut.earliest) };
        let costs = (0..edges.len()).map(|k| cut.cost.eval(at(k))).collect();
        let rounding = 1e-10 * scale.intervals as f64;
        let shifts = nodes.iter().map(|node| shift(&edges, node.slack, rounding)).collect();
        Self { nodes, edges, costs, shifts, rounding }
    }

    /// Cells times waves times kinds of slots: the time of [`Self::least`].
    pub(super) fn size(&self) -> usize {
        let bundles = self.nodes.iter().flat_map(|node| &node.bundles);
        self.edges.len() * bundles.map(|bundle| bundle.waves as usize * bundle.holds.len()).sum::<usize>()
    }

    /// Cells times waves.
    fn places(&self) -> usize {
        let bundles = self.nodes.iter().flat_map(|node| &node.bundles);
        self.edges.len() * bundles.map(|bundle| bundle.waves as usize).sum::<usize>()
    }

    /// Tasks.
    pub(super) fn tasks(&self) -> f64 {
        let bundles = self.nodes.iter().flat_map(|node| &node.bundles);
        bundles.map(|bundle| f64::from(bundle.chains) * f64::from(bundle.waves)).sum()
    }

    /// The least sum of the cost of the flow and the payments of its tasks.
    pub(super) fn least(&self, prices: &[Prices], scratch: &mut Scratch) -> Least {
        let cells = self.edges.len();
        let Scratch { below, taken, wave, after } = scratch;
        below.clear();
        below.resize((self.nodes.len() + 1) * cells, 0.0);
        taken.clear();
        taken.resize(self.places(), 0);
        wave.resize(cells, 0.0);
        after.resize(cells, 0.0);
        let mut taken = taken.chunks_exact_mut(cells);
        for (n, node) in self.nodes.iter().enumerate() {
            let (own, later) = below.split_at_mut((n + 1) * cells);
            let own = &own[n * cells..];
            let next = node.next.unwrap_or(self.nodes.len()) - n - 1;
            let next = &mut later[next * cells..(next + 1) * cells];
            if node.bundles.is_empty() {
                next.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
            for (b, bundle) in node.bundles.iter().enumerate() {
                match &self.shifts[n] {
                    _ if b > 0 => wave.fill(0.0),
                    None => wave.copy_from_slice(own),
                    Some(shift) => wave.iter_mut().zip(shift).for_each(|(w, &k)| *w = own[k as usize]),
                }
                for (w, taken) in (0..bundle.waves).zip(&mut taken) {
                    self.pass(bundle, w, prices, wave, after, taken);
                    std::mem::swap(wave, after);
                }
                next.iter_mut().zip(&*wave).for_each(|(sum, own)| *sum += own);
            }
        }
        let whole = below[self.nodes.len() * cells..].iter().zip(&self.costs).map(|(pay, cost)| pay + cost);
        let (cell, value) = whole
            .enumerate()
            .fold((0, f64::INFINITY), |least, (k, value)| if value < least.1 { (k, value) } else { least });
        Least { value, cell }
    }

    /// Adds a wave after the known waves, by the last cell that they may be in.
    fn pass(
        &self,
        bundle: &Bundle,
        w: u32,
        prices: &[Prices],
        known: &[f64],
        after: &mut [f64],
        taken: &mut [u32],
    ) {
        let last = self.edges.len() - 1;
        let n = bundle.holds.len() as u32;
        after.fill(f64::INFINITY);
        for (h, hold) in (0..n).zip(&bundle.holds) {
            let (starts, lag) = (Starts::of(bundle, w, hold), lag(bundle, w, hold));
            let slots = f64::from(bundle.chains);
            let prices = &prices[hold.kind];
            let first =
                self.edges[1..].partition_point(|&end| end - starts.path < starts.head - self.rounding);
            let mut start = starts.begin(&self.edges, first);
            let mut pays = prices.of_task(start, hold.seconds);
            let mut kinks = Kinks::after(start, hold.seconds);
            let mut before = if lag > 0.0 { self.before(first, lag) } else { first };
            for k in first..last {
                let end = (self.edges[k + 1] - starts.path).max(start);
                let mut cheapest = pays;
                while let Some(kink) = kinks.before(end) {
                    cheapest = cheapest.min(prices.of_task(kink, hold.seconds));
                }
                pays = prices.of_task(end, hold.seconds);
                cheapest = cheapest.min(pays).max(0.0);
                if lag > 0.0 {
                    while self.is_before(before + 1, k, lag) {
                        before += 1;
                    }
                } else {
                    before = k;
                }
                let sum = known[before] + slots * cheapest;
                if sum < after[k] {
                    (after[k], taken[k]) = (sum, k as u32 * n + h);
                }
                start = end;
            }
        }
        // A flow that may be arbitrarily late pays nothing.
        (after[last], taken[last]) = (known[last], last as u32 * n);
        for k in 1..=last {
            if after[k - 1] <= after[k] {
                (after[k], taken[k]) = (after[k - 1], taken[k - 1]);
            }
        }
    }

    /// Whether work in this cell can end before the start of a task that ends in cell `k` with a lag.
    fn is_before(&self, cell: usize, k: usize, lag: f64) -> bool {
        cell <= k && self.edges[cell] < self.edges[k + 1] - lag + self.rounding
    }

    /// The last cell for which that holds.
    fn before(&self, k: usize, lag: f64) -> usize {
        let Some(end) = self.edges.get(k + 1).map(|end| end - lag + self.rounding) else { return k };
        (self.edges.partition_point(|&edge| edge < end).max(1) - 1).min(k)
    }

    /// The cheapest start of a wave in a cell.
    fn cheapest(&self, starts: Starts, hold: &Hold, cell: usize, prices: &Prices) -> f64 {
        let start = starts.begin(&self.edges, cell);
        let Some(end) = self.edges.get(cell + 1).map(|end| (end - starts.path).max(start)) else {
            return f64::INFINITY;
        };
        let (mut at, mut least) = (start, prices.of_task(start, hold.seconds));
        let mut kinks = Kinks::after(start, hold.seconds);
        for other in std::iter::from_fn(|| kinks.before(end)).chain([end]) {
            let pays = prices.of_task(other, hold.seconds);
            if pays < least {
                (at, least) = (other, pays);
            }
        }
        at
    }

    /// Adds what the tasks use in the solution that [`Self::least`] left behind.
    pub(super) fn use_up(&self, least: Least, prices: &[Prices], scratch: &Scratch, usage: &mut [Usage]) {
        let cells = self.edges.len();
        // The latest cells of the predecessors of each node.
        let mut before = vec![least.cell; self.nodes.len()];
        let mut end = scratch.taken.len();
        for (n, node) in self.nodes.iter().enumerate().rev() {
            let own = node.next.map_or(least.cell, |next| before[next]);
            before[n] = own;
            for (b, bundle) in node.bundles.iter().enumerate().rev() {
                let mut cell = own;
                for w in (0..bundle.waves).rev() {
                    end -= cells;
                    let taken = scratch.taken[end + cell] as usize;
                    let hold = &bundle.holds[taken % bundle.holds.len()];
                    cell = taken / bundle.holds.len();
                    let start = self.cheapest(Starts::of(bundle, w, hold), hold, cell, &prices[hold.kind]);
                    usage[hold.kind].add(start, hold.seconds, f64::from(bundle.chains));
                    let lag = lag(bundle, w, hold);
                    cell = if lag > 0.0 { self.before(cell, lag) } else { cell };
                }
                if b == 0 {
                    before[n] = self.shifts[n].as_ref().map_or(cell, |shift| shift[cell] as usize);
                }
            }
        }
    }
}

/// The possible starts of the tasks of a wave.
#[derive(Clone, Copy)]
struct Starts {
    head: f64,
    /// The longest path from the start to the end of the flow.
    path: f64,
}

impl Starts {
    fn of(bundle: &Bundle, w: u32, hold: &Hold) -> Self {
        let path = f64::from(bundle.waves - w) * bundle.task() + bundle.tail;
        Self { head: bundle.head + f64::from(w) * bundle.task(), path: path + lag(bundle, w, hold) }
    }

    /// The start of a cell. The starts of the first cell begin with the head, even before the cell.
    fn begin(self, edges: &[f64], cell: usize) -> f64 {
        if cell == 0 { self.head } else { self.head.max(edges[cell] - self.path) }
    }
}

/// The delay of the end of the flow after a task, compared with the fastest slot. Successors surely wait only
/// for the last wave of a chain: other waves may be on slots that faster ones overtake.
fn lag(bundle: &Bundle, w: u32, hold: &Hold) -> f64 {
    if w + 1 == bundle.waves { hold.seconds - bundle.task() } else { 0.0 }
}

/// For each cell, the last cell of an instant that is `slack` later.
fn shift(edges: &[f64], slack: f64, rounding: f64) -> Option<Vec<u32>> {
    let last = edges.len() - 1;
    let beyond = |k: usize| {
        let end = edges.get(k + 1).map_or(f64::INFINITY, |end| end + slack + rounding);
        (edges.partition_point(|&edge| edge < end).max(1) - 1).min(last) as u32
    };
    (slack > rounding).then(|| (0..=last).map(beyond).collect())
}
