//! Executing schedules of work that can be divided at will among whole slots (malleable work).
//!
//! **Problem**: P | malleable with linear speed-up to a cap, prec, r_j, lanes of slots | any. **Idea**
//! 1. Nodes that are released and wait for nothing are ready, in the order of a key ([`Rule::key`]).
//! 2. At every event the rule gives out the slots of each lane anew ([`Rule::grant`]). Events are releases,
//!    ends of nodes, and instants at which the rule wants to look again ([`Rule::look`]).
//! 3. A node that is done makes those ready that waited for it alone; nodes without work are done at once.
//!
//! What a rule decides is thus all that distinguishes one schedule from another. **Complexity**: O(n) an
//! event besides the rule, for n ready nodes; two events a node besides those the rule asks for.
//! **Rounding**: a node is done when it ends first or when no more than 1e-12 of its work is left.

use slackline_model::tolerance;

/// Work below this part of a node's is rounding: the node is done.
const ROUNDING: f64 = 1e-12;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Slot-seconds.
    pub work: f64,
    /// Most slots at a time.
    pub cap: u32,
    /// Which slots serve it.
    pub lane: usize,
    /// Seconds before which it may not run; counts for nodes that wait for no other.
    pub release: f64,
    /// Seconds of its longest task, unless it is work without tasks.
    pub longest: Option<f64>,
}

/// What there is to do, in which order and on what.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    slots: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes that wait for each node.
    next: Vec<Vec<usize>>,
    /// How many nodes each node waits for.
    waits: Vec<u32>,
    /// Nodes that wait for none, by release.
    arrivals: Vec<usize>,
}

impl Graph {
    /// Nodes on so many `slots` of each lane; of each pair of `arcs`, the second node waits for the first.
    /// O(n log n + arcs).
    pub fn new(slots: Vec<u32>, nodes: Vec<Node>, arcs: &[(usize, usize)]) -> Self {
        let (mut next, mut waits) = (vec![Vec::new(); nodes.len()], vec![0; nodes.len()]);
        for &(before, after) in arcs {
            next[before].push(after);
            waits[after] += 1;
        }
        let mut arrivals: Vec<usize> = (0..nodes.len()).filter(|&node| waits[node] == 0).collect();
        arrivals.sort_by(|&a, &b| nodes[a].release.total_cmp(&nodes[b].release));
        Self { slots, nodes, next, waits, arrivals }
    }

    /// The slots of a lane.
    pub fn slots(&self, lane: usize) -> u32 {
        self.slots[lane]
    }

    /// A node.
    pub fn node(&self, node: usize) -> &Node {
        &self.nodes[node]
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

/// Who is served, and how.
pub trait Rule {
    /// What ready nodes are put in order by, the least first; ties go to the lower node.
    type Key: Copy + Ord;

    /// The key of a node that becomes ready at `now`.
    fn key(&mut self, node: usize, now: f64) -> Self::Key;

    /// The slots of each ready node of a lane, together no more than the lane has. Asked of every lane at
    /// every event; `ready` is in order.
    fn grant(&mut self, lane: usize, ready: &[usize], progress: &Progress<'_>) -> Vec<u32>;

    /// When the rule wants to look again though no node begins or ends; ignored unless it is after now.
    fn look(&self, ready: &[usize], progress: &Progress<'_>) -> f64 {
        let _ = (ready, progress);
        f64::INFINITY
    }

    /// A ready node has held so many slots for so many seconds.
    fn pass(&mut self, node: usize, slots: u32, seconds: f64) {
        let _ = (node, slots, seconds);
    }
}

/// How far an execution is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    graph: &'a Graph,
    now: f64,
    /// Slot-seconds left, by node.
    left: Vec<f64>,
    slots: Vec<u32>,
    /// Since when each node holds its slots.
    since: Vec<f64>,
}

impl Progress<'_> {
    /// The instant, in seconds.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// What a node holds.
    pub fn slots(&self, node: usize) -> u32 {
        self.slots[node]
    }

    /// Tasks left of a node, as documents count them; more than there can be for work without tasks.
    pub fn tasks(&self, node: usize) -> u32 {
        let info = &self.graph.nodes[node];
        let Some(longest) = info.longest else { return u32::MAX };
        let left = self.left[node] - tolerance::of_amount(info.work);
        if left <= 0.0 || longest <= 0.0 { 0 } else { (left / longest).ceil() as u32 }
    }

    /// When a node that holds slots has a task less than now but not none, if that is after now.
    pub fn task_less(&self, node: usize) -> Option<f64> {
        let (longest, tasks) = (self.graph.nodes[node].longest?, self.tasks(node));
        if tasks <= 1 || self.slots[node] == 0 {
            return None;
        }
        let over = self.left[node] - f64::from(tasks - 1) * longest;
        Some(self.now + over / f64::from(self.slots[node])).filter(|&at| at > self.now)
    }
}

/// `slots` slots for a node from `start` to `end` (seconds).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The node.
    pub node: usize,
    /// From.
    pub start: f64,
    /// To.
    pub end: f64,
    /// How many slots.
    pub slots: u32,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// What each node holds, by node and start; changes of slots only.
    pub rows: Vec<Row>,
    /// When each node is done.
    pub ends: Vec<f64>,
}

/// The schedule of a graph under a rule. The rule must leave no lane idle forever while it has ready nodes.
pub fn execute<R: Rule>(graph: &Graph, rule: &mut R) -> Executed {
    let n = graph.nodes.len();
    let progress = Progress {
        graph,
        now: 0.0,
        left: graph.nodes.iter().map(|node| node.work).collect(),
        slots: vec![0; n],
        since: vec![0.0; n],
    };
    let executed = Executed { rows: Vec::new(), ends: vec![0.0; n] };
    let mut run = Run { graph, rule, progress, ready: Vec::new(), waits: graph.waits.clone(), executed };
    run.all();
    run.executed.rows.sort_by(|a, b| a.node.cmp(&b.node).then(a.start.total_cmp(&b.start)));
    run.executed
}

/// An execution in progress.
struct Run<'a, R: Rule> {
    graph: &'a Graph,
    rule: &'a mut R,
    progress: Progress<'a>,
    /// Ready nodes in order.
    ready: Vec<(R::Key, usize)>,
    /// Nodes that each node still waits for.
    waits: Vec<u32>,
    executed: Executed,
}

impl<R: Rule> Run<'_, R> {
    fn all(&mut self) {
        let graph = self.graph;
        let release = |node: usize| graph.nodes[node].release;
        let mut arrivals = graph.arrivals.iter().copied().peekable();
        loop {
            if self.ready.is_empty() {
                let Some(&node) = arrivals.peek() else { return };
                self.progress.now = self.progress.now.max(release(node));
            }
            while let Some(node) = arrivals.next_if(|&node| release(node) <= self.progress.now) {
                self.open(node);
            }
            let ready: Vec<usize> = self.ready.iter().map(|&(_, node)| node).collect();
            for lane in 0..graph.slots.len() {
                self.give(lane, &ready);
            }
            let until = arrivals.peek().map_or(f64::INFINITY, |&node| release(node));
            self.advance(until, &ready);
        }
    }

    /// A node waits for nothing any more. Nodes without work are done at once.
    fn open(&mut self, node: usize) {
        let mut opening = vec![node];
        while let Some(node) = opening.pop() {
            if self.graph.nodes[node].work > 0.0 {
                let key = (self.rule.key(node, self.progress.now), node);
                let at = self.ready.partition_point(|other| *other < key);
                self.ready.insert(at, key);
            } else {
                self.done(node, &mut opening);
            }
        }
    }

    /// A node is done; `free` receives the nodes that waited for nothing else.
    fn done(&mut self, node: usize, free: &mut Vec<usize>) {
        self.executed.ends[node] = self.progress.now;
        for &next in &self.graph.next[node] {
            self.waits[next] -= 1;
            if self.waits[next] == 0 {
                free.push(next);
            }
        }
    }

    fn give(&mut self, lane: usize, ready: &[usize]) {
        let mine: Vec<usize> =
            ready.iter().copied().filter(|&node| self.graph.nodes[node].lane == lane).collect();
        let slots = self.rule.grant(lane, &mine, &self.progress);
        for (node, slots) in mine.into_iter().zip(slots) {
            if self.progress.slots[node] != slots {
                self.record(node);
                (self.progress.slots[node], self.progress.since[node]) = (slots, self.progress.now);
            }
        }
    }

    /// Writes down what a node has held until now.
    fn record(&mut self, node: usize) {
        let (start, end, slots) = (self.progress.since[node], self.progress.now, self.progress.slots[node]);
        if slots > 0 && end > start {
            self.executed.rows.push(Row { node, start, end, slots });
        }
    }

    /// Goes on to the next node that is done, to `next`, or to where the rule looks again.
    fn advance(&mut self, mut next: f64, ready: &[usize]) {
        let progress = &mut self.progress;
        let mut first = None;
        for &node in ready.iter().filter(|&&node| progress.slots[node] > 0) {
            let end = progress.now + progress.left[node] / f64::from(progress.slots[node]);
            if end < next {
                (next, first) = (end, Some(node));
            }
        }
        let look = self.rule.look(ready, progress);
        if look > progress.now && look < next {
            (next, first) = (look, None);
        }
        let seconds = next - progress.now;
        for &node in ready {
            let slots = progress.slots[node];
            progress.left[node] -= f64::from(slots) * seconds;
            self.rule.pass(node, slots, seconds);
        }
        progress.now = next;
        let (nodes, left) = (&self.graph.nodes, &progress.left);
        let is_done = |node: usize| first == Some(node) || left[node] <= ROUNDING * nodes[node].work;
        let finished: Vec<usize> = self.ready.extract_if(.., |r| is_done(r.1)).map(|r| r.1).collect();
        let mut free = Vec::new();
        for &node in &finished {
            self.record(node);
            self.progress.slots[node] = 0;
            self.done(node, &mut free);
        }
        for node in free {
            self.open(node);
        }
    }
}

/// Each ready node in order with all it can hold, as long as there are slots.
pub fn in_order(graph: &Graph, lane: usize, ready: &[usize]) -> Vec<u32> {
    let mut free = graph.slots[lane];
    let take = |&node: &usize| {
        let slots = graph.nodes[node].cap.min(free);
        free -= slots;
        slots
    };
    ready.iter().map(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first nodes first, each with all it can hold.
    struct InOrder<'a>(&'a Graph);

    impl Rule for InOrder<'_> {
        type Key = ();

        fn key(&mut self, _: usize, _: f64) {}

        fn grant(&mut self, lane: usize, ready: &[usize], _: &Progress<'_>) -> Vec<u32> {
            in_order(self.0, lane, ready)
        }
    }

    fn node(work: f64, cap: u32, lane: usize, release: f64) -> Node {
        Node { work, cap, lane, release, longest: None }
    }

    #[test]
    fn releases_precedence_and_caps_are_kept() {
        // 0 then 1 (no work) then 2 on the other lane; 3 comes at 1 and waits for slots.
        let nodes =
            vec![node(4.0, 2, 0, 0.0), node(0.0, 1, 0, 0.0), node(3.0, 3, 1, 0.0), node(2.0, 2, 0, 1.0)];
        let graph = Graph::new(vec![2, 3], nodes, &[(0, 1), (1, 2)]);
        let executed = execute(&graph, &mut InOrder(&graph));
        assert_eq!(executed.ends, [2.0, 2.0, 3.0, 3.0]);
        let row = |node, start, end, slots| Row { node, start, end, slots };
        assert_eq!(executed.rows, [row(0, 0.0, 2.0, 2), row(2, 2.0, 3.0, 3), row(3, 2.0, 3.0, 2)]);
    }

    #[test]
    fn rows_change_only_where_slots_do() {
        // The end of 1 gives 2 a slot more; 0 goes on as it was.
        let nodes = vec![node(6.0, 2, 0, 0.0), node(1.0, 1, 0, 0.0), node(3.0, 2, 0, 0.0)];
        let graph = Graph::new(vec![4], nodes, &[]);
        let executed = execute(&graph, &mut InOrder(&graph));
        assert_eq!(executed.rows.iter().filter(|row| row.node == 0).count(), 1);
        assert_eq!(executed.rows.iter().filter(|row| row.node == 2).count(), 2);
        assert_eq!(executed.ends, [3.0, 1.0, 2.0]);
    }
}
