//! List scheduling of the real precedence graph: no slot idles while a ready node can use it.
//!
//! At every completion and release the ready nodes are served in the order of a [`Rule`], each with as
//! many slots as it can use, until none is left. Nodes may be interrupted. This realises an order of flows
//! directly, without stages 1 and 3, and is the ready-list form of FIFO and Fair (section 5.1).
//!
//! **Complexity**: O(n) events for n nodes, each O(slots held) plus one insertion into the ready list.

use slackline_model::schedule::Allocation;

use super::network::Network;

/// Finished when less than this part of the step is left: rounding of one subtraction.
const NEAR: f64 = 1e-12;

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule<'a> {
    /// Flows in this order; within a flow the node with the longest path to its end.
    Flows(&'a [usize]),
    /// The node that became ready first.
    Fifo,
    /// Equal shares among all ready nodes, whole slots; those over go to whoever was ready first.
    Fair,
}

/// Time that passes between two events.
#[derive(Clone, Copy)]
struct Step {
    seconds: f64,
    /// Whether it is the time until the first node is done.
    ends: bool,
}

/// A list scheduler with its working memory.
#[derive(Clone, Debug)]
pub struct Lister<'a> {
    net: &'a Network,
    /// Nodes of each flow by urgency, concatenated.
    by_urgency: Vec<u32>,
    by_release: Vec<usize>,
    // Working memory, by node unless said otherwise.
    left: Vec<f64>,
    blocked_by: Vec<u32>,
    priority: Vec<u32>,
    /// Ready nodes in the order of service.
    ready: Vec<u32>,
    /// Ready nodes without work.
    workless: Vec<u32>,
    /// Slots given, by position in `ready`; those after its end get none.
    given: Vec<u32>,
    /// Since when a node holds how many slots, while rows are recorded.
    open: Vec<(f64, u32)>,
    /// Nodes that held slots at the last record.
    running: Vec<u32>,
    /// Slots at the present instant, 0 outside of `record`.
    wanted: Vec<u32>,
    completions: Vec<f64>,
    /// Events handled so far, over all schedules.
    steps: u64,
}

impl<'a> Lister<'a> {
    /// A scheduler for `net`.
    pub fn new(net: &'a Network) -> Self {
        let mut by_urgency: Vec<u32> = (0..net.nodes.len() as u32).collect();
        for flow in &net.flows {
            let urgency = |k: u32| net.nodes[k as usize].tail + net.nodes[k as usize].seconds();
            by_urgency[flow.nodes.clone()]
                .sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
        }
        let mut by_release: Vec<usize> = (0..net.flows.len()).collect();
        by_release.sort_by(|&a, &b| net.flows[a].release.total_cmp(&net.flows[b].release).then(a.cmp(&b)));
        let n = net.nodes.len();
        Self {
            net,
            by_urgency,
            by_release,
            left: Vec::with_capacity(n),
            blocked_by: Vec::with_capacity(n),
            priority: vec![0; n],
            ready: Vec::new(),
            workless: Vec::new(),
            given: Vec::new(),
            open: vec![(0.0, 0); n],
            running: Vec::new(),
            wanted: vec![0; n],
            completions: Vec::new(),
            steps: 0,
        }
    }

    /// Events handled so far, a measure of effort that does not depend on the machine.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// When each flow completes.
    pub fn completions(&mut self, rule: Rule<'_>) -> &[f64] {
        self.run(rule, f64::INFINITY, None);
        &self.completions
    }

    /// The objective's value, and the sum of all costs, which breaks ties between maxima.
    pub fn cost(&mut self, rule: Rule<'_>) -> (f64, f64) {
        self.run(rule, f64::INFINITY, None);
        costs(self.net, &self.completions)
    }

    /// The schedule itself, by time.
    pub fn rows(&mut self, rule: Rule<'_>) -> Vec<Allocation> {
        let mut rows = Vec::new();
        self.run(rule, f64::INFINITY, Some(&mut rows));
        rows
    }

    /// Slots that each ready node gets at time `now`, until the first event after it: the initial
    /// allocation of a plan.
    pub fn first(&mut self, rule: Rule<'_>, now: f64) -> Vec<(usize, u32)> {
        self.run(rule, now, None);
        self.ready.iter().zip(&self.given).map(|(&node, &slots)| (node as usize, slots)).collect()
    }

    /// Runs until all is done, or stops with the allocation of the first instant after `until`.
    fn run(&mut self, rule: Rule<'_>, until: f64, mut rows: Option<&mut Vec<Allocation>>) {
        self.start(rule);
        let (mut arrived, mut now) = (0, 0.0f64);
        loop {
            if self.ready.is_empty() {
                let Some(&next) = self.by_release.get(arrived) else { return };
                now = now.max(self.net.flows[next].release);
            }
            while let Some(&flow) = self.by_release.get(arrived)
                && self.net.flows[flow].release <= now
            {
                arrived += 1;
                self.arrive(flow, rule);
            }
            self.finish_workless(now, rule);
            if self.ready.is_empty() {
                continue;
            }
            self.steps += 1;
            let step = self.give(rule);
            if now >= until {
                return;
            }
            if let Some(rows) = rows.as_deref_mut() {
                self.record(now, rows);
            }
            let next = self.by_release.get(arrived).map_or(f64::INFINITY, |&f| self.net.flows[f].release);
            // A step too short to move the clock still ends its nodes.
            let (step, end) = if now + step <= next {
                (Step { seconds: step, ends: true }, now + step)
            } else {
                (Step { seconds: next - now, ends: false }, next)
            };
            now = end;
            for node in self.advance(step) {
                if let Some(rows) = rows.as_deref_mut() {
                    self.close(node, now, rows);
                }
                self.complete(node, now, rule);
            }
        }
    }

    fn start(&mut self, rule: Rule<'_>) {
        let net = self.net;
        self.left.clear();
        self.left.extend(net.nodes.iter().map(|n| n.work));
        self.blocked_by.clear();
        self.blocked_by.extend_from_slice(&net.waits_for);
        self.ready.clear();
        self.workless.clear();
        self.running.clear();
        self.open.fill((0.0, 0));
        self.completions.clear();
        self.completions.extend(net.flows.iter().map(|f| f.release));
        if let Rule::Flows(order) = rule {
            let mut next = 0;
            for &flow in order {
                for &node in &self.by_urgency[net.flows[flow].nodes.clone()] {
                    self.priority[node as usize] = next;
                    next += 1;
                }
            }
        }
    }

    fn arrive(&mut self, flow: usize, rule: Rule<'_>) {
        for node in self.net.flows[flow].nodes.clone() {
            if self.blocked_by[node] == 0 {
                self.enter(node as u32, rule);
            }
        }
    }

    fn enter(&mut self, node: u32, rule: Rule<'_>) {
        if self.left[node as usize] <= 0.0 {
            self.workless.push(node);
        } else if let Rule::Flows(_) = rule {
            let priority = &self.priority;
            let at = self.ready.partition_point(|&r| priority[r as usize] < priority[node as usize]);
            self.ready.insert(at, node);
        } else {
            self.ready.push(node);
        }
    }

    /// Nodes without work are done as soon as they are ready.
    fn finish_workless(&mut self, now: f64, rule: Rule<'_>) {
        while let Some(node) = self.workless.pop() {
            self.complete(node as usize, now, rule);
        }
    }

    /// Divides the slots; returns the seconds until the first node is done.
    fn give(&mut self, rule: Rule<'_>) -> f64 {
        let mut free = self.net.slots;
        self.given.clear();
        match rule {
            Rule::Flows(_) | Rule::Fifo => {
                for &node in &self.ready {
                    let node = &self.net.nodes[node as usize];
                    let slots = node.cap.min(free[node.lane]);
                    free[node.lane] -= slots;
                    self.given.push(slots);
                    if free == [0, 0] {
                        break;
                    }
                }
            }
            Rule::Fair => self.share(free),
        }
        let mut step = f64::INFINITY;
        for (&node, &slots) in self.ready.iter().zip(&self.given) {
            if slots > 0 {
                step = step.min(self.left[node as usize] / f64::from(slots));
            }
        }
        step
    }

    /// Max-min fair whole shares in each lane.
    fn share(&mut self, free: [u32; 2]) {
        self.given.resize(self.ready.len(), 0);
        for (lane, mut free) in free.into_iter().enumerate() {
            let mut open: Vec<usize> = (0..self.ready.len())
                .filter(|&k| self.net.nodes[self.ready[k] as usize].lane == lane)
                .collect();
            while free > 0 && !open.is_empty() {
                // At least one slot each for the first ones when there are fewer slots than nodes.
                let each = (free / open.len() as u32).max(1);
                open.retain(|&k| {
                    let cap = self.net.nodes[self.ready[k] as usize].cap;
                    let more = each.min(cap - self.given[k]).min(free);
                    self.given[k] += more;
                    free -= more;
                    self.given[k] < cap
                });
            }
        }
    }

    /// Ends the rows of nodes whose slots changed and opens new ones.
    fn record(&mut self, now: f64, rows: &mut Vec<Allocation>) {
        for (&node, &slots) in self.ready.iter().zip(&self.given) {
            self.wanted[node as usize] = slots;
        }
        for k in 0..self.running.len() {
            let node = self.running[k] as usize;
            if self.open[node].1 != self.wanted[node] {
                self.close(node, now, rows);
            }
        }
        self.running.clear();
        for (&node, &slots) in self.ready.iter().zip(&self.given) {
            self.wanted[node as usize] = 0;
            if slots > 0 {
                self.running.push(node);
                if self.open[node as usize].1 == 0 {
                    self.open[node as usize] = (now, slots);
                }
            }
        }
    }

    fn close(&mut self, node: usize, now: f64, rows: &mut Vec<Allocation>) {
        let (start, slots) = std::mem::take(&mut self.open[node]);
        if slots > 0 && now > start {
            rows.push(Allocation { phase: self.net.nodes[node].phase, start, end: now, slots });
        }
    }

    /// Lets time pass; returns the nodes that are done, in the order of service.
    fn advance(&mut self, step: Step) -> Vec<usize> {
        let mut done = Vec::new();
        for k in (0..self.given.len()).rev() {
            let (node, slots) = (self.ready[k] as usize, f64::from(self.given[k]));
            if slots > 0.0 && step.ends && self.left[node] / slots <= step.seconds * (1.0 + NEAR) {
                self.ready.remove(k);
                done.push(node);
            } else {
                self.left[node] = (self.left[node] - step.seconds * slots).max(f64::MIN_POSITIVE);
            }
        }
        done.reverse();
        done
    }

    fn complete(&mut self, node: usize, now: f64, rule: Rule<'_>) {
        // Nodes of a flow are consecutive and flows are in order of their nodes.
        let flow = self.net.flows.partition_point(|f| f.nodes.end <= node);
        self.completions[flow] = now;
        for k in 0..self.net.successors(node).len() {
            let next = self.net.successors(node)[k];
            self.blocked_by[next as usize] -= 1;
            if self.blocked_by[next as usize] == 0 {
                self.enter(next, rule);
            }
        }
    }
}

/// The objective's value and the sum of all costs.
pub(super) fn costs(net: &Network, completions: &[f64]) -> (f64, f64) {
    let sum = net.flows.iter().zip(completions).map(|(flow, &c)| flow.cost.eval(c)).sum();
    (net.cost(completions), sum)
}
