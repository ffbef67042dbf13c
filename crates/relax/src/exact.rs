//! The optimum of small instances, or a lower bound that rises with the effort.
//!
//! Every cost of the documents is regular. So on slots of one speed some optimal schedule starts its tasks in
//! some order, each at the earliest instant that is not before the start of the last one. The search extends
//! such orders task by task, always the one with the least lower bound first (A*; Hart, Nilsson, Raphael
//! 1968). Three rules keep it small. Of two states with the same unstarted tasks, the one that is nowhere
//! earlier and not cheaper is dropped. A task starts before any other could have run in the same slots (Giffler,
//! Thompson 1960). Tasks that start together are started in the order of their phases.
//!
//! The lower bound of a state: for sums, prices of slots (docs/math/flowflex.md B9) applied to what is left
//! (`values`); for maxima, the earliest completion of each flow, and the area of the work that is left.
//!
//! Kinds of slots, caps, releases and tasks of unlike length are covered; mixed speeds, tasks without length
//! and more than [`TASKS_MAX`] tasks are not.

mod problem;
mod values;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use slackline_model::{Combine, Instance, Key, PhaseId, Span, Time};

use crate::{Paths, per_flow, prices};
use problem::{Problem, State};
use values::Values;

/// The largest number of tasks.
pub const TASKS_MAX: u64 = 200;
/// The number of states at which the search ends: some hundred megabytes.
pub const STATES_MAX: usize = 600_000;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    /// A lower bound on the cost of every schedule of tasks that run in one piece; infinite if no such
    /// schedule costs less than the known one.
    pub bound: f64,
    /// An optimal schedule, if it costs less than the known one: the tasks in order of their starts.
    pub starts: Option<Vec<TaskStart>>,
    /// The number of states.
    pub states: usize,
}

/// The start of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStart {
    /// Its phase.
    pub phase: PhaseId,
    /// Its length.
    pub span: Span,
    /// Its start.
    pub start: Time,
}

/// Searches for a schedule that costs less than `known`, which is asked again and again and may fall. It ends
/// when there is none or the cheapest is found, at `states` states, and when `stop` is true.
///
/// `None` if the instance is not covered.
pub fn search(
    instance: &Instance,
    known: &dyn Fn() -> f64,
    states: usize,
    stop: &dyn Fn() -> bool,
) -> Option<Exact> {
    let problem = Problem::of(instance)?;
    let is_sum = instance.objective().combine == Combine::Sum;
    let paths = Paths::of(instance);
    let flows = per_flow::with_paths(instance, &paths);
    let proof = if is_sum { prices::bound(instance, &paths, &flows, prices::BUDGET, stop) } else { None };
    let values = Values::new(&problem, &proof.map(|proof| proof.prices).unwrap_or_default());
    let mut tree = Tree {
        problem: &problem,
        values,
        nodes: Vec::new(),
        alike: BTreeMap::new(),
        open: BinaryHeap::new(),
    };
    let root = problem.root();
    let bound = tree.bound(&root);
    tree.add(Node { state: root, bound, parent: u32::MAX, class: 0, is_dropped: false });
    Some(tree.run(known, states, stop))
}

/// A partial schedule.
struct Node {
    state: State,
    /// A lower bound on the cost of every schedule that it starts.
    bound: f64,
    parent: u32,
    /// The class of the last started task.
    class: u16,
    /// Whether another state is as good.
    is_dropped: bool,
}

struct Tree<'a> {
    problem: &'a Problem<'a>,
    values: Values<'a>,
    nodes: Vec<Node>,
    /// The states with the same unstarted tasks.
    alike: BTreeMap<Box<[u8]>, Vec<u32>>,
    /// The states to extend, with the number of their unstarted tasks.
    open: BinaryHeap<Reverse<(Key, u32, u32)>>,
}

impl Tree<'_> {
    fn run(mut self, known: &dyn Fn() -> f64, states: usize, stop: &dyn Fn() -> bool) -> Exact {
        let mut bound = f64::INFINITY;
        let mut starts = None;
        while let Some(Reverse((key, left, at))) = self.open.pop() {
            if self.nodes[at as usize].is_dropped {
                continue;
            }
            if key.number() >= known() {
                break;
            }
            if left == 0 || self.nodes.len() >= states || stop() {
                bound = key.number();
                starts = (left == 0).then(|| self.starts(at));
                break;
            }
            self.extend(at, known());
        }
        Exact { bound, starts, states: self.nodes.len() }
    }

    /// Adds the states that follow one and may lead to a cost below `known`.
    fn extend(&mut self, at: u32, known: f64) {
        let node = &self.nodes[at as usize];
        let least = node.bound;
        for (class, start) in self.problem.choices(&node.state) {
            let state = self.problem.started(&self.nodes[at as usize].state, class, start);
            let bound = self.bound(&state).max(least);
            if bound < known {
                self.add(Node { state, bound, parent: at, class, is_dropped: false });
            }
        }
    }

    fn bound(&mut self, state: &State) -> f64 {
        match self.problem.objective().combine {
            Combine::Sum => self.values.of_sum(state),
            Combine::Max => self.problem.least_maximum(state),
        }
    }

    /// Adds a node unless another is as good; drops those that are worse.
    fn add(&mut self, node: Node) {
        let id = self.nodes.len() as u32;
        let nodes = &mut self.nodes;
        let alike = self.alike.entry(node.state.unstarted.clone()).or_default();
        if alike.iter().any(|&other| nodes[other as usize].state.is_as_good_as(&node.state)) {
            return;
        }
        alike.retain(|&other| {
            let other = &mut nodes[other as usize];
            other.is_dropped |= node.state.is_as_good_as(&other.state);
            !other.is_dropped
        });
        alike.push(id);
        let left = node.state.unstarted.iter().map(|&count| u32::from(count)).sum();
        self.open.push(Reverse((Key::new(node.bound), left, id)));
        self.nodes.push(node);
    }

    fn starts(&self, mut at: u32) -> Vec<TaskStart> {
        let mut starts = Vec::new();
        while self.nodes[at as usize].parent != u32::MAX {
            let node = &self.nodes[at as usize];
            starts.push(self.problem.task_start(node.class, node.state.now()));
            at = node.parent;
        }
        starts.reverse();
        starts
    }
}
