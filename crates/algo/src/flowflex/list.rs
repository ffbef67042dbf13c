//! List scheduling of the real precedence graph: no slot idles while a ready node can use it.
//!
//! At every completion and release the ready nodes are served in the order of a [`Rule`], each with as
//! many slots as it can use, until none is left. Nodes may be interrupted. This realises an order of flows
//! directly, without stages 1 and 3, and is the ready-list form of FIFO and Fair (section 5.1).
//!
//! An executor by itself, not a rule of `classic::fluid`: every epoch and every step of the insertion search
//! makes such a schedule. So it keeps its memory from one schedule to the next, counts its events as effort,
//! and stops as soon as the schedule is certain to cost more than a limit, or its first allocation is known. And
//! it measures time in steps where the kernel subtracts instants, which differs in the last digits of plans.
//!
//! **Complexity**: O(n) events for n nodes, each O(slots held) plus one insertion into the ready list.

use slackline_model::Combine;
use slackline_model::schedule::Allocation;

use super::network::Network;

/// Finished when less than this part of the step is left: rounding of one subtraction.
const NEAR: f64 = 1e-12;
/// By what part of the costs a schedule must be above a limit to be given up: rounding of their sum.
const ABOVE: f64 = 1e-9;

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule<'a> {
    /// Flows in this order; within a flow the node with the longest path to its end.
    Flows(&'a [usize]),
    /// By the latest start with which the node's flow can still be done by its entry here.
    Due(&'a [f64]),
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
    /// The smallest is served first; ties by number.
    priority: Vec<u64>,
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
    /// Nodes that have just been done.
    done: Vec<usize>,
    flow_of: Vec<u32>,
    /// Nodes of each flow that are not done.
    nodes_left: Vec<u32>,
    /// What each flow costs at the least, and the sum of the absolute values.
    least: Vec<f64>,
    magnitude: f64,
    /// What the schedule costs at the least, as far as it has got.
    at_least: f64,
    /// Events handled so far, over all schedules.
    steps: u64,
}

/// How far a schedule is made.
#[derive(Clone, Copy)]
enum Until {
    /// All is done.
    Done,
    /// All is done, or it is certain to cost more than this.
    Above(f64),
    /// The allocation of the first instant after this time.
    After(f64),
}

impl<'a> Lister<'a> {
    /// A scheduler for `net`.
    pub fn new(net: &'a Network) -> Self {
        let mut by_urgency: Vec<u32> = (0..net.nodes.len() as u32).collect();
        for flow in &net.flows {
            let urgency = |k: u32| net.nodes[k as usize].alone();
            by_urgency[flow.nodes.clone()]
                .sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
        }
        let mut by_release: Vec<usize> = (0..net.flows.len()).collect();
        by_release.sort_by(|&a, &b| net.flows[a].release.total_cmp(&net.flows[b].release).then(a.cmp(&b)));
        let n = net.nodes.len();
        let least: Vec<f64> = net.flows.iter().map(|f| f.cost.eval(f.earliest)).collect();
        let flows = net.flows.iter().enumerate();
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
            done: Vec::new(),
            flow_of: flows.flat_map(|(k, f)| f.nodes.clone().map(move |_| k as u32)).collect(),
            nodes_left: Vec::with_capacity(net.flows.len()),
            magnitude: least.iter().map(|c| c.abs()).sum(),
            least,
            at_least: 0.0,
            steps: 0,
        }
    }

    /// Events handled so far, a measure of effort that does not depend on the machine.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// When each flow completes.
    pub fn completions(&mut self, rule: Rule<'_>) -> &[f64] {
        self.run(rule, Until::Done, None);
        &self.completions
    }

    /// The objective's value, and the sum of all costs, which breaks ties between maxima.
    pub fn cost(&mut self, rule: Rule<'_>) -> (f64, f64) {
        self.run(rule, Until::Done, None);
        costs(self.net, &self.completions)
    }

    /// The same, or `None` as soon as it is certain that the objective's value is above `limit`: flows that
    /// are done cost what they cost, the others no less than alone.
    pub fn cost_up_to(&mut self, rule: Rule<'_>, limit: f64) -> Option<(f64, f64)> {
        self.run(rule, Until::Above(limit), None).then(|| costs(self.net, &self.completions))
    }

    /// The schedule itself, by time.
    pub fn rows(&mut self, rule: Rule<'_>) -> Vec<Allocation> {
        let mut rows = Vec::new();
        self.run(rule, Until::Done, Some(&mut rows));
        rows
    }

    /// Slots that each ready node gets at time `now`, until the first event after it: the initial
    /// allocation of a plan.
    pub fn first(&mut self, rule: Rule<'_>, now: f64) -> Vec<(usize, u32)> {
        self.run(rule, Until::After(now), None);
        self.ready.iter().zip(&self.given).map(|(&node, &slots)| (node as usize, slots)).collect()
    }

    /// Runs up to `until`; whether all is done.
    fn run(&mut self, rule: Rule<'_>, until: Until, mut rows: Option<&mut Vec<Allocation>>) -> bool {
        self.start(rule);
        let (mut arrived, mut now) = (0, 0.0f64);
        let (instant, limit) = match until {
            Until::Done => (f64::INFINITY, f64::INFINITY),
            Until::Above(limit) => (f64::INFINITY, limit + ABOVE * (limit.abs() + self.magnitude)),
            Until::After(instant) => (instant, f64::INFINITY),
        };
        loop {
            if self.at_least > limit {
                return false;
            }
            if self.ready.is_empty() {
                let Some(&next) = self.by_release.get(arrived) else { return true };
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
            if now >= instant {
                return false;
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
            self.advance(step);
            for k in 0..self.done.len() {
                let node = self.done[k];
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
        self.nodes_left.clear();
        self.nodes_left.extend(net.flows.iter().map(|f| f.nodes.len() as u32));
        self.at_least = net.combine.of(self.least.iter().copied());
        if let Rule::Flows(order) = rule {
            let mut next = 0;
            for &flow in order {
                for &node in &self.by_urgency[net.flows[flow].nodes.clone()] {
                    self.priority[node as usize] = next;
                    next += 1;
                }
            }
        }
        if let Rule::Due(due) = rule {
            for ((priority, node), &flow) in self.priority.iter_mut().zip(&net.nodes).zip(&self.flow_of) {
                *priority = ordered(due[flow as usize] - node.alone());
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
        } else if let Rule::Flows(_) | Rule::Due(_) = rule {
            let priority = &self.priority;
            let key = |node: u32| (priority[node as usize], node);
            let at = self.ready.partition_point(|&r| key(r) < key(node));
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
            Rule::Flows(_) | Rule::Due(_) | Rule::Fifo => {
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

    /// Lets time pass; `done` are then the nodes that end, in the order of service.
    fn advance(&mut self, step: Step) {
        self.done.clear();
        for k in (0..self.given.len()).rev() {
            let (node, slots) = (self.ready[k] as usize, f64::from(self.given[k]));
            if slots > 0.0 && step.ends && self.left[node] / slots <= step.seconds * (1.0 + NEAR) {
                self.ready.remove(k);
                self.done.push(node);
            } else {
                self.left[node] = (self.left[node] - step.seconds * slots).max(f64::MIN_POSITIVE);
            }
        }
        self.done.reverse();
    }

    fn complete(&mut self, node: usize, now: f64, rule: Rule<'_>) {
        let flow = self.flow_of[node] as usize;
        self.completions[flow] = now;
        self.nodes_left[flow] -= 1;
        if self.nodes_left[flow] == 0 {
            let cost = self.net.flows[flow].cost.eval(now);
            match self.net.combine {
                Combine::Sum => self.at_least += cost - self.least[flow],
                Combine::Max => self.at_least = self.at_least.max(cost),
            }
        }
        for k in 0..self.net.successors(node).len() {
            let next = self.net.successors(node)[k];
            self.blocked_by[next as usize] -= 1;
            if self.blocked_by[next as usize] == 0 {
                self.enter(next, rule);
            }
        }
    }
}

/// A whole number that orders as `total_cmp` does.
fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    if x.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// The objective's value and the sum of all costs.
pub(super) fn costs(net: &Network, completions: &[f64]) -> (f64, f64) {
    let sum = net.flows.iter().zip(completions).map(|(flow, &c)| flow.cost.eval(c)).sum();
    (net.cost(completions), sum)
}
