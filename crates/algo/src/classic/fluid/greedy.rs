//! Executes schedules in which the first ready nodes hold all the slots that they can use, without rows.
//!
//! The schedule is that of [`super::Executor::run`] under [`super::in_order`] and [`super::Rounding::Steps`], to
//! the last digit. Each slot kind has its own ready list. A node that ends or becomes ready changes only the
//! slots of the last nodes that hold any, so that an event visits no other node except to advance its work.
//!
//! **Complexity**: O(n) events for n nodes, each O(nodes that hold slots) with a few operations for each.

use super::{Graph, NEAR, Rule, Work};

/// The ready nodes of a slot kind, in order. The first of them hold the slots.
#[derive(Clone, Debug, Default)]
struct ReadyList<K> {
    nodes: Vec<(K, u32)>,
    /// Remaining slot-seconds and most slots, by position.
    left: Vec<f64>,
    caps: Vec<u32>,
    /// The slots of the nodes that hold any: all that they can use, except for the last.
    held: Vec<f64>,
    /// How long each of them still takes with these slots.
    seconds: Vec<f64>,
    /// Slots that no node holds. After [`ReadyList::fill`], every node then holds all it can use.
    free: u32,
}

impl<K: Copy + Ord> ReadyList<K> {
    fn reset(&mut self, slots: u32) {
        self.nodes.clear();
        self.left.clear();
        self.caps.clear();
        self.held.clear();
        self.free = slots;
    }

    fn insert(&mut self, key: K, node: u32, left: f64, cap: u32) {
        let at = self.nodes.partition_point(|&entry| entry < (key, node));
        self.nodes.insert(at, (key, node));
        self.left.insert(at, left);
        self.caps.insert(at, cap);
        if at < self.held.len() {
            self.held.insert(at, f64::from(cap));
            let unmet = cap.saturating_sub(self.free);
            self.free = self.free.saturating_sub(cap);
            self.take_back(f64::from(unmet));
        } else {
            self.fill();
        }
    }

    /// Takes slots from the last nodes that hold any.
    fn take_back(&mut self, mut slots: f64) {
        while slots > 0.0
            && let Some(last) = self.held.last_mut()
        {
            if *last > slots {
                *last -= slots;
                return;
            }
            slots -= *last;
            self.held.pop();
        }
    }

    /// Gives free slots to the first nodes that can use more.
    fn fill(&mut self) {
        let mut caps = self.caps.iter().take(self.held.len());
        if let Some((last, &cap)) = self.held.last_mut().zip(caps.next_back()) {
            let more = (f64::from(cap) - *last).min(f64::from(self.free));
            *last += more;
            self.free -= more as u32;
        }
        while self.free > 0
            && let Some(&cap) = self.caps.get(self.held.len())
        {
            let slots = cap.min(self.free);
            self.held.push(f64::from(slots));
            self.free -= slots;
        }
    }

    /// The least time that a node which holds slots still needs.
    fn least_seconds(&mut self) -> f64 {
        let least = |a: f64, b: f64| if b < a { b } else { a };
        self.seconds.clear();
        self.seconds.extend(self.left.iter().zip(&self.held).map(|(left, held)| left / held));
        // Four minima at a time: a single one waits for the last comparison.
        let mut lanes = [f64::INFINITY; 4];
        let chunks = self.seconds.chunks_exact(4);
        let rest = chunks.remainder().iter().copied().fold(f64::INFINITY, least);
        for chunk in chunks {
            for (lane, &seconds) in lanes.iter_mut().zip(chunk) {
                *lane = least(*lane, seconds);
            }
        }
        lanes.into_iter().fold(rest, least)
    }

    fn advance(&mut self, seconds: f64) {
        for (left, held) in self.left.iter_mut().zip(&self.held) {
            let now = *left - held * seconds;
            *left = if now > f64::MIN_POSITIVE { now } else { f64::MIN_POSITIVE };
        }
    }

    /// Removes the nodes that take no longer than `limit` seconds, and appends them to `done`.
    fn finish(&mut self, limit: f64, done: &mut Vec<(K, u32)>) {
        let before = done.len();
        let mut end = self.seconds.len();
        while let Some(at) = self.seconds[..end].iter().rposition(|&seconds| seconds <= limit) {
            done.push(self.nodes.remove(at));
            self.left.remove(at);
            self.caps.remove(at);
            self.free += self.held.remove(at) as u32;
            end = at;
        }
        if done.len() > before {
            self.fill();
        }
    }
}

/// Executes rules with keys `K`; keeps its memory for the next schedule.
#[derive(Clone, Debug, Default)]
pub struct Greedy<K> {
    now: f64,
    waits: Vec<u32>,
    ready: [ReadyList<K>; 2],
    /// Ready nodes without work.
    workless: Vec<u32>,
    /// Nodes that have just finished.
    done: Vec<(K, u32)>,
    /// Events handled so far.
    steps: u64,
}

impl<K: Copy + Ord + Default> Greedy<K> {
    /// Events handled so far, as many as calls of [`Rule::grant`] by [`super::Executor::run`].
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Executes a graph in the order of the keys of a rule, which divides no slots itself. Returns whether all
    /// nodes are done.
    pub fn run<R: Rule<Key = K>>(&mut self, graph: &Graph<R::Node>, rule: &mut R) -> bool {
        self.now = 0.0;
        self.waits.clone_from(&graph.waits);
        self.workless.clear();
        self.ready.iter_mut().zip(graph.slots).for_each(|(ready, slots)| ready.reset(slots));
        let mut arrivals = graph.arrivals.iter().copied().peekable();
        loop {
            if rule.is_over() {
                return false;
            }
            if self.is_idle() && self.workless.is_empty() {
                let Some(&(release, _)) = arrivals.peek() else { return true };
                self.now = self.now.max(release);
            }
            while let Some((_, node)) = arrivals.next_if(|&(release, _)| release <= self.now) {
                self.enter(node, graph, rule);
            }
            while let Some(node) = self.workless.pop() {
                self.complete(node, graph, rule);
            }
            if self.is_idle() {
                continue;
            }
            self.steps += 1;
            self.step(arrivals.peek().map_or(f64::INFINITY, |&(release, _)| release));
            for k in 0..self.done.len() {
                self.complete(self.done[k].1, graph, rule);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.ready.iter().all(|ready| ready.nodes.is_empty())
    }

    /// A node has no unfinished predecessors any more.
    fn enter<R: Rule<Key = K>>(&mut self, node: u32, graph: &Graph<R::Node>, rule: &mut R) {
        let info = &graph.nodes[node as usize];
        if info.work() <= 0.0 {
            self.workless.push(node);
            return;
        }
        let key = rule.key(node as usize, self.now);
        self.ready[info.slot_kind()].insert(key, node, info.work(), info.cap());
    }

    /// A node is done; its successors without other unfinished predecessors are ready.
    fn complete<R: Rule<Key = K>>(&mut self, node: u32, graph: &Graph<R::Node>, rule: &mut R) {
        rule.done(node as usize, self.now);
        for &next in graph.next(node as usize) {
            self.waits[next as usize] -= 1;
            if self.waits[next as usize] == 0 {
                self.enter(next, graph, rule);
            }
        }
    }

    /// Advances the time to the next end of a node or to `until`; `done` has the nodes that end, in order.
    fn step(&mut self, until: f64) {
        let [first, second] = &mut self.ready;
        let least = first.least_seconds().min(second.least_seconds());
        // A step too short to move the clock still ends its nodes.
        let ends = self.now + least <= until && least < f64::INFINITY;
        let seconds = if ends { least } else { until - self.now };
        self.done.clear();
        for ready in &mut self.ready {
            ready.advance(seconds);
            if ends {
                ready.finish(seconds * (1.0 + NEAR), &mut self.done);
            }
        }
        self.done.sort_unstable();
        self.now = if ends { self.now + least } else { until };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::classic::fluid::{Executor, Node, Progress, Rounding, in_order};

    /// Nodes by keys; notes the end of each.
    struct ByKey<'a> {
        graph: &'a Graph,
        keys: &'a [u32],
        ends: Vec<(usize, f64)>,
        grants: u64,
    }

    impl Rule for ByKey<'_> {
        type Node = Node;
        type Key = u32;
        const ROUNDING: Rounding = Rounding::Steps;

        fn key(&mut self, node: usize, _: f64) -> u32 {
            self.keys[node]
        }

        fn grant(&mut self, ready: &[u32], _: &Progress<'_>, given: &mut Vec<u32>) {
            self.grants += 1;
            in_order(self.graph, ready, given);
        }

        fn done(&mut self, node: usize, now: f64) {
            self.ends.push((node, now));
        }
    }

    proptest! {
        #[test]
        fn ends_are_those_of_grants_in_order(
            list in prop::collection::vec((0u32..9, 1u32..5, 0usize..2, 0u32..4, 0u32..6, 0u32..5), 1..40),
            slots in (1u32..9, 1u32..9),
        ) {
            let mut arcs = Vec::new();
            for (node, &(.., back)) in list.iter().enumerate().filter(|(node, row)| row.5 > 0 && *node > 0) {
                arcs.push((node.saturating_sub(back as usize) as u32, node as u32));
            }
            let node = |&(work, cap, slot_kind, ..): &(u32, u32, usize, u32, u32, u32)| {
                Node { work: f64::from(work) / 3.0, cap, slot_kind, longest: None }
            };
            let release = |node: usize| f64::from(list[node].4) * 0.7;
            let graph = Graph::new([slots.0, slots.1], list.iter().map(node).collect(), arcs, release);
            let keys: Vec<u32> = list.iter().map(|row| row.3).collect();
            let new = || ByKey { graph: &graph, keys: &keys, ends: Vec::new(), grants: 0 };
            let (mut plain, mut rule) = (new(), new());
            let (mut executor, mut greedy) = (Executor::default(), Greedy::default());
            prop_assert!(executor.run(&graph, &mut plain, None));
            prop_assert!(greedy.run(&graph, &mut rule));
            prop_assert_eq!((rule.ends, greedy.steps()), (plain.ends, plain.grants));
        }
    }
}
