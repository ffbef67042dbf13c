//! Executes schedules of work that can be divided at will among whole slots (malleable work).
//!
//! **Problem**: P | malleable with linear speed-up to a cap, prec, r_j, kinds of slots | any.
//! **Idea** 1. Nodes that are released and wait for nothing are ready, in the order of a key ([`Rule::key`]).
//! 2. At every event the rule divides the slots again ([`Rule::grant`]). Events are releases, ends of nodes,
//! and instants that the rule requests ([`Rule::look`]). 3. When a node is done, the nodes that waited for it
//! alone become ready; nodes without work are done at once.
//!
//! So only the rule distinguishes one schedule from another. An [`Executor`] keeps its memory for the next
//! schedule and writes rows only on request, so that a search can make thousands; a rule may end a schedule
//! early ([`Rule::is_over`]).
//!
//! **Complexity**: O(n) events for n nodes plus those that the rule requests, each O(grants) plus the rule,
//! plus an insertion into the ready list for each node.

pub mod greedy;

use slackline_model::tolerance;

/// A part of the work or of a step below this is rounding: the node is done.
const NEAR: f64 = 1e-12;

/// A piece of work.
pub trait Work {
    /// Slot-seconds.
    fn work(&self) -> f64;
    /// Most slots at a time.
    fn cap(&self) -> u32;
    /// Which slots serve it: 0 or 1.
    fn slot_kind(&self) -> usize;
}

/// A node without other data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Slot-seconds.
    pub work: f64,
    /// Most slots at a time.
    pub cap: u32,
    /// Which slots serve it.
    pub slot_kind: usize,
    /// Seconds of its longest task, unless it is work without tasks.
    pub longest: Option<f64>,
}

impl Work for Node {
    fn work(&self) -> f64 {
        self.work
    }

    fn cap(&self) -> u32 {
        self.cap
    }

    fn slot_kind(&self) -> usize {
        self.slot_kind
    }
}

/// The nodes, their order and their slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph<N = Node> {
    slots: [u32; 2],
    nodes: Vec<N>,
    /// The successors of each node, concatenated, and where those of each start.
    next: Vec<u32>,
    first_next: Vec<u32>,
    /// The number of predecessors of each node.
    waits: Vec<u32>,
    /// Nodes without predecessors, by release.
    arrivals: Vec<(f64, u32)>,
}

impl<N> Graph<N> {
    /// Nodes on `slots` slots of each slot kind; of each pair of `arcs`, the second node waits for the first.
    /// Nodes that wait for none may run from their `release` on (seconds), which is asked for in their order.
    /// O(n log n + arcs log arcs).
    pub fn new(
        slots: [u32; 2],
        nodes: Vec<N>,
        mut arcs: Vec<(u32, u32)>,
        mut release: impl FnMut(usize) -> f64,
    ) -> Self {
        arcs.sort_unstable();
        let (mut first_next, mut waits) = (vec![0; nodes.len() + 1], vec![0; nodes.len()]);
        for &(before, after) in &arcs {
            first_next[before as usize + 1] += 1;
            waits[after as usize] += 1;
        }
        for node in 0..nodes.len() {
            first_next[node + 1] += first_next[node];
        }
        let next = arcs.into_iter().map(|(_, after)| after).collect();
        let free = (0..nodes.len()).filter(|&node| waits[node] == 0);
        let mut arrivals: Vec<(f64, u32)> = free.map(|node| (release(node), node as u32)).collect();
        arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { slots, nodes, next, first_next, waits, arrivals }
    }

    /// The slots of each slot kind.
    pub fn slots(&self) -> [u32; 2] {
        self.slots
    }

    pub fn node(&self, node: usize) -> &N {
        &self.nodes[node]
    }

    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// A node, to be changed.
    pub fn node_mut(&mut self, node: usize) -> &mut N {
        &mut self.nodes[node]
    }

    /// The successors of a node.
    pub fn next(&self, node: usize) -> &[u32] {
        &self.next[self.first_next[node] as usize..self.first_next[node + 1] as usize]
    }
}

/// How the length of a step and the nodes that are done at its end are computed. It affects only the last
/// digits of a schedule; the plans of a policy keep theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// From instant to instant. The node that ends first is done, and so is each node whose remaining work is
    /// only rounding.
    Instants,
    /// The least time that a node still needs. Nodes that need no more time, up to rounding, are done.
    Steps,
}

/// Who is served, and how: a scheduling rule.
pub trait Rule {
    type Node: Work;
    /// The key by which ready nodes are ordered, the least first; ties go to the lower node.
    type Key: Copy + Ord + Default;
    /// How times are rounded.
    const ROUNDING: Rounding;

    /// The key of a node that becomes ready at `now`.
    fn key(&mut self, node: usize, now: f64) -> Self::Key;

    /// Writes the slots of the first ready nodes into `given`, which is empty; the others get none. Called at
    /// every event; `ready` is in order.
    fn grant(&mut self, ready: &[u32], progress: &Progress<'_, Self::Node>, given: &mut Vec<u32>);

    /// When the rule needs a further event although no node starts or ends; ignored unless it is after now.
    fn look(&self, ready: &[u32], given: &[u32], progress: &Progress<'_, Self::Node>) -> f64 {
        let _ = (ready, given, progress);
        f64::INFINITY
    }

    /// A node has held its slots for `seconds` seconds.
    fn pass(&mut self, node: usize, slots: u32, seconds: f64) {
        let _ = (node, slots, seconds);
    }

    /// A node is done.
    fn done(&mut self, node: usize, now: f64) {
        let _ = (node, now);
    }

    /// Whether the rest of the schedule is not needed; called before every event.
    fn is_over(&self) -> bool {
        false
    }
}

/// The progress of an execution.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a, N = Node> {
    graph: &'a Graph<N>,
    now: f64,
    /// Remaining slot-seconds, by node.
    left: &'a [f64],
}

impl<N> Progress<'_, N> {
    /// The instant, in seconds.
    pub fn now(&self) -> f64 {
        self.now
    }
}

impl Progress<'_> {
    /// Remaining tasks of a node, as documents count them; `u32::MAX` for work without tasks.
    pub fn tasks(&self, node: usize) -> u32 {
        let info = &self.graph.nodes[node];
        let Some(longest) = info.longest else { return u32::MAX };
        let left = self.left[node] - tolerance::of_amount(info.work);
        if left <= 0.0 || longest <= 0.0 { 0 } else { (left / longest).ceil() as u32 }
    }

    /// The next time at which a node that holds `slots` slots has one running task less than now, but some.
    pub fn task_less(&self, node: usize, slots: u32) -> Option<f64> {
        let (longest, tasks) = (self.graph.nodes[node].longest?, self.tasks(node));
        if tasks <= 1 || slots == 0 {
            return None;
        }
        let over = self.left[node] - f64::from(tasks - 1) * longest;
        Some(self.now + over / f64::from(slots)).filter(|&at| at > self.now)
    }
}

/// `slots` slots for a node from `start` to `end` (seconds).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub node: usize,
    pub start: f64,
    pub end: f64,
    pub slots: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// The slots of each node over time, by node and start; only changes.
    pub rows: Vec<Row>,
    /// When each node is done.
    pub ends: Vec<f64>,
}

/// The schedule of a graph under a rule. The rule must not leave a slot kind idle forever while it has ready
/// nodes.
pub fn execute<R: Rule>(graph: &Graph<R::Node>, rule: &mut R) -> Executed {
    let mut executor = Executor::default();
    let mut rows = Vec::new();
    executor.run(graph, rule, Some(&mut rows));
    rows.sort_by(|a, b| a.node.cmp(&b.node).then(a.start.total_cmp(&b.start)));
    Executed { rows, ends: executor.ends }
}

/// Executes rules with keys `K`; keeps its memory for the next schedule.
#[derive(Clone, Debug, Default)]
pub struct Executor<K> {
    now: f64,
    // Remaining slot-seconds by node.
    left: Vec<f64>,
    waits: Vec<u32>,
    keys: Vec<K>,
    ends: Vec<f64>,
    /// Ready nodes in order.
    ready: Vec<u32>,
    /// Slots by position in `ready`; nodes beyond its end get none.
    given: Vec<u32>,
    /// How long each of them would take with these slots, by position; infinite without slots.
    seconds: Vec<f64>,
    /// Ready nodes without work.
    workless: Vec<u32>,
    /// Nodes that have just finished.
    done: Vec<u32>,
    held: SlotHoldings,
}

#[derive(Clone, Copy)]
struct Step {
    at: f64,
    seconds: f64,
    /// The position of the first ready node that ends at that time.
    first: Option<usize>,
}

impl<K: Copy + Ord + Default> Executor<K> {
    /// Executes a graph under a rule. Writes `rows` by end if requested. Returns whether all nodes are done.
    pub fn run<R: Rule<Key = K>>(
        &mut self,
        graph: &Graph<R::Node>,
        rule: &mut R,
        mut rows: Option<&mut Vec<Row>>,
    ) -> bool {
        self.start(graph);
        let mut arrivals = graph.arrivals.iter().copied().peekable();
        loop {
            if rule.is_over() {
                return false;
            }
            if self.ready.is_empty() && self.workless.is_empty() {
                let Some(&(release, _)) = arrivals.peek() else { return true };
                self.now = self.now.max(release);
            }
            while let Some((_, node)) = arrivals.next_if(|&(release, _)| release <= self.now) {
                self.enter(node, rule);
            }
            while let Some(node) = self.workless.pop() {
                self.complete(node as usize, graph, rule);
            }
            if self.ready.is_empty() {
                continue;
            }
            self.given.clear();
            let progress = Progress { graph, now: self.now, left: &self.left };
            rule.grant(&self.ready, &progress, &mut self.given);
            if let Some(rows) = rows.as_deref_mut() {
                self.held.record(&self.ready, &self.given, self.now, rows);
            }
            let until = arrivals.peek().map_or(f64::INFINITY, |&(release, _)| release);
            self.advance(until, graph, rule);
            for k in 0..self.done.len() {
                let node = self.done[k] as usize;
                if let Some(rows) = rows.as_deref_mut() {
                    self.held.close(node, self.now, rows);
                }
                self.complete(node, graph, rule);
            }
        }
    }

    fn start<N: Work>(&mut self, graph: &Graph<N>) {
        let n = graph.nodes.len();
        self.now = 0.0;
        self.left.clear();
        self.left.extend(graph.nodes.iter().map(Work::work));
        self.waits.clone_from(&graph.waits);
        self.keys.resize(n, K::default());
        self.ends.clear();
        self.ends.resize(n, 0.0);
        self.ready.clear();
        self.workless.clear();
        self.held.reset(n);
    }

    /// A node has no unfinished predecessors any more.
    fn enter<R: Rule<Key = K>>(&mut self, node: u32, rule: &mut R) {
        if self.left[node as usize] <= 0.0 {
            self.workless.push(node);
            return;
        }
        let key = rule.key(node as usize, self.now);
        self.keys[node as usize] = key;
        let keys = &self.keys;
        let at = self.ready.partition_point(|&r| (keys[r as usize], r) < (key, node));
        self.ready.insert(at, node);
    }

    /// A node is done; its successors without other unfinished predecessors are ready.
    fn complete<R: Rule<Key = K>>(&mut self, node: usize, graph: &Graph<R::Node>, rule: &mut R) {
        self.ends[node] = self.now;
        rule.done(node, self.now);
        for &next in graph.next(node) {
            self.waits[next as usize] -= 1;
            if self.waits[next as usize] == 0 {
                self.enter(next, rule);
            }
        }
    }

    /// The next event: the end of a node, `until`, or an instant that the rule requests.
    fn step<R: Rule<Key = K>>(&mut self, until: f64, graph: &Graph<R::Node>, rule: &R) -> Step {
        let (mut least, mut first) = (f64::INFINITY, None);
        let Self { left, seconds, .. } = self;
        let takes = |(&node, &slots): (&u32, &u32)| {
            if slots > 0 { left[node as usize] / f64::from(slots) } else { f64::INFINITY }
        };
        seconds.clear();
        seconds.extend(self.ready.iter().zip(&self.given).map(takes));
        for (k, (&seconds, &slots)) in self.seconds.iter().zip(&self.given).enumerate() {
            if slots > 0 {
                let end = match R::ROUNDING {
                    Rounding::Instants => self.now + seconds,
                    Rounding::Steps => seconds,
                };
                if end < least {
                    (least, first) = (end, Some(k));
                }
            }
        }
        let step = match R::ROUNDING {
            Rounding::Instants if least < until => Step { at: least, seconds: least - self.now, first },
            // A step too short to move the clock still ends its nodes.
            Rounding::Steps if self.now + least <= until => {
                Step { at: self.now + least, seconds: least, first }
            }
            _ => Step { at: until, seconds: until - self.now, first: None },
        };
        let progress = Progress { graph, now: self.now, left: &self.left };
        let look = rule.look(&self.ready, &self.given, &progress);
        if look > self.now && look < step.at {
            return Step { at: look, seconds: look - self.now, first: None };
        }
        step
    }

    /// Advances the time; `done` has the nodes that end, in the order of service.
    fn advance<R: Rule<Key = K>>(&mut self, until: f64, graph: &Graph<R::Node>, rule: &mut R) {
        let step = self.step(until, graph, rule);
        self.done.clear();
        for k in (0..self.given.len()).rev() {
            let (node, slots) = (self.ready[k] as usize, self.given[k]);
            rule.pass(node, slots, step.seconds);
            let before = self.left[node];
            let left = before - f64::from(slots) * step.seconds;
            let is_done = match R::ROUNDING {
                Rounding::Instants => step.first == Some(k) || left <= NEAR * graph.nodes[node].work(),
                Rounding::Steps => {
                    step.first.is_some() && slots > 0 && self.seconds[k] <= step.seconds * (1.0 + NEAR)
                }
            };
            if is_done {
                self.ready.remove(k);
                self.done.push(node as u32);
            } else {
                self.left[node] = left.max(f64::MIN_POSITIVE);
            }
        }
        self.done.reverse();
        self.now = step.at;
    }
}

/// The slots of each node and since when, if rows are written.
#[derive(Clone, Debug, Default)]
struct SlotHoldings {
    /// Since when a node holds how many slots.
    open: Vec<(f64, u32)>,
    /// Nodes that held slots at the last record.
    running: Vec<u32>,
    /// Slots at the present instant, 0 outside of `record`.
    wanted: Vec<u32>,
}

impl SlotHoldings {
    fn reset(&mut self, nodes: usize) {
        self.running.clear();
        self.open.clear();
        self.open.resize(nodes, (0.0, 0));
        self.wanted.resize(nodes, 0);
    }

    /// Ends the rows of nodes whose slots changed and starts new ones.
    fn record(&mut self, ready: &[u32], given: &[u32], now: f64, rows: &mut Vec<Row>) {
        for (&node, &slots) in ready.iter().zip(given) {
            self.wanted[node as usize] = slots;
        }
        for k in 0..self.running.len() {
            let node = self.running[k] as usize;
            if self.open[node].1 != self.wanted[node] {
                self.close(node, now, rows);
            }
        }
        self.running.clear();
        for (&node, &slots) in ready.iter().zip(given) {
            self.wanted[node as usize] = 0;
            if slots > 0 {
                self.running.push(node);
                if self.open[node as usize].1 == 0 {
                    self.open[node as usize] = (now, slots);
                }
            }
        }
    }

    fn close(&mut self, node: usize, now: f64, rows: &mut Vec<Row>) {
        let (start, slots) = std::mem::take(&mut self.open[node]);
        if slots > 0 && now > start {
            rows.push(Row { node, start, end: now, slots });
        }
    }
}

/// Gives each ready node in order all it can hold, while slots are left.
pub fn in_order<N: Work>(graph: &Graph<N>, ready: &[u32], given: &mut Vec<u32>) {
    let mut free = graph.slots;
    for &node in ready {
        let node = &graph.nodes[node as usize];
        let slots = node.cap().min(free[node.slot_kind()]);
        free[node.slot_kind()] -= slots;
        given.push(slots);
        if free[0] == 0 && free[1] == 0 {
            return;
        }
    }
}

/// Divides the slots of each slot kind separately: `grant` divides those of one kind.
pub fn by_slot_kind<N: Work>(
    graph: &Graph<N>,
    ready: &[u32],
    given: &mut Vec<u32>,
    mut grant: impl FnMut(usize, &[u32]) -> Vec<u32>,
) {
    given.resize(ready.len(), 0);
    for slot_kind in (0..graph.slots.len()).filter(|&slot_kind| graph.slots[slot_kind] > 0) {
        let is_mine = |&at: &usize| graph.nodes[ready[at] as usize].slot_kind() == slot_kind;
        let mine: Vec<usize> = (0..ready.len()).filter(is_mine).collect();
        let nodes: Vec<u32> = mine.iter().map(|&at| ready[at]).collect();
        for (at, slots) in mine.into_iter().zip(grant(slot_kind, &nodes)) {
            given[at] = slots;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first nodes first, each with all it can hold.
    struct InOrder<'a>(&'a Graph);

    impl Rule for InOrder<'_> {
        type Node = Node;
        type Key = ();
        const ROUNDING: Rounding = Rounding::Instants;

        fn key(&mut self, _: usize, _: f64) {}

        fn grant(&mut self, ready: &[u32], _: &Progress<'_>, given: &mut Vec<u32>) {
            in_order(self.0, ready, given);
        }
    }

    fn node(work: f64, cap: u32, slot_kind: usize) -> Node {
        Node { work, cap, slot_kind, longest: None }
    }

    #[test]
    fn releases_precedence_and_caps_are_kept() {
        // 0 then 1 (no work) then 2 on the other slot kind; 3 comes at 1 and waits for slots.
        let nodes = vec![node(4.0, 2, 0), node(0.0, 1, 0), node(3.0, 3, 1), node(2.0, 2, 0)];
        let release = |node| if node == 3 { 1.0 } else { 0.0 };
        let graph = Graph::new([2, 3], nodes, vec![(0, 1), (1, 2)], release);
        let executed = execute(&graph, &mut InOrder(&graph));
        assert_eq!(executed.ends, [2.0, 2.0, 3.0, 3.0]);
        let row = |node, start, end, slots| Row { node, start, end, slots };
        assert_eq!(executed.rows, [row(0, 0.0, 2.0, 2), row(2, 2.0, 3.0, 3), row(3, 2.0, 3.0, 2)]);
    }

    #[test]
    fn a_node_without_work_is_done_when_it_is_ready_even_if_nothing_else_is() {
        // 1 waits for 0; 2 is released at 9.
        let nodes = vec![node(4.0, 2, 0), node(0.0, 1, 0), node(2.0, 2, 0)];
        let release = |node| if node == 2 { 9.0 } else { 0.0 };
        let graph = Graph::new([2, 0], nodes, vec![(0, 1)], release);
        assert_eq!(execute(&graph, &mut InOrder(&graph)).ends, [2.0, 2.0, 10.0]);
    }

    #[test]
    fn rows_change_only_where_slots_do() {
        // The end of 1 gives 2 one more slot; 0 continues as it was.
        let nodes = vec![node(6.0, 2, 0), node(1.0, 1, 0), node(3.0, 2, 0)];
        let graph = Graph::new([4, 0], nodes, Vec::new(), |_| 0.0);
        let executed = execute(&graph, &mut InOrder(&graph));
        assert_eq!(executed.rows.iter().filter(|row| row.node == 0).count(), 1);
        assert_eq!(executed.rows.iter().filter(|row| row.node == 2).count(), 2);
        assert_eq!(executed.ends, [3.0, 1.0, 2.0]);
    }
}
