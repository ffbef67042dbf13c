//! List scheduling of the real precedence graph: no slot idles while a ready node can use it.
//!
//! At every completion and release the ready nodes are served in the order of a [`Rule`], each with as
//! many slots as it can use, until none is left. Nodes may be interrupted. This realises an order of flows
//! directly, without stages 1 and 3, and is the ready-list form of FIFO and Fair (section 5.1).
//!
//! A rule of [`fluid`] that tracks a lower bound on the cost of the schedule, so that a search stops as soon
//! as the schedule is certain to cost more than a limit, and that counts events as effort.
//!
//! **Complexity**: O(n) events for n nodes, each O(slots held) plus one insertion into the ready list.

use slackline_model::schedule::Allocation;
use slackline_model::{Combine, Key};

use super::network::{Network, Node};
use crate::classic::fluid::greedy::Greedy;
use crate::classic::fluid::{self, Executor, Progress, Rounding, in_order};

/// By what part of the costs a schedule must be above a limit to be abandoned: rounding of their sum.
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
    /// Equal shares among all ready nodes, whole slots; those left over go to the node that was ready first.
    Fair,
}

/// A list scheduler with its working memory.
#[derive(Clone, Debug)]
pub struct Lister<'a> {
    executor: Executor<Key>,
    greedy: Greedy<Key>,
    service: Service<'a>,
}

/// The order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Priority,
    /// By when nodes became ready.
    Fifo,
    /// The same, but all get a share.
    Fair,
}

/// How far a schedule is made.
#[derive(Clone, Copy, Debug)]
enum ScheduleEnd {
    Done,
    /// All is done, or it is certain to cost more than this.
    Above(f64),
    /// The allocation of the first instant after this time.
    After(f64),
}

impl<'a> Lister<'a> {
    /// A scheduler for `net`.
    pub fn new(net: &'a Network) -> Self {
        Self { executor: Executor::default(), greedy: Greedy::default(), service: Service::new(net) }
    }

    /// Events handled so far, a measure of effort that does not depend on the machine.
    pub fn steps(&self) -> u64 {
        self.service.steps + self.greedy.steps()
    }

    /// When each flow completes.
    pub fn completions(&mut self, rule: Rule<'_>) -> &[f64] {
        self.run(rule, ScheduleEnd::Done, None);
        &self.service.completions
    }

    /// The objective's value, and the sum of all costs, which breaks ties between maxima.
    pub fn cost(&mut self, rule: Rule<'_>) -> (f64, f64) {
        self.run(rule, ScheduleEnd::Done, None);
        costs(self.service.net, &self.service.completions)
    }

    /// The same, or `None` as soon as it is certain that the objective's value is above `limit`: flows that
    /// are done cost what they cost, the others no less than alone.
    pub fn cost_up_to(&mut self, rule: Rule<'_>, limit: f64) -> Option<(f64, f64)> {
        let all = self.run(rule, ScheduleEnd::Above(limit), None);
        all.then(|| costs(self.service.net, &self.service.completions))
    }

    /// The schedule itself, by time.
    pub fn rows(&mut self, rule: Rule<'_>) -> Vec<Allocation> {
        let mut rows = Vec::new();
        self.run(rule, ScheduleEnd::Done, Some(&mut rows));
        let allocation = |row: fluid::Row| Allocation {
            phase: self.service.net.node(row.node).phase,
            start: row.start,
            end: row.end,
            slots: row.slots,
        };
        rows.into_iter().map(allocation).collect()
    }

    /// Slots that each ready node gets at time `now`, until the first event after it: the initial
    /// allocation of a plan.
    pub fn first(&mut self, rule: Rule<'_>, now: f64) -> Vec<(usize, u32)> {
        self.run(rule, ScheduleEnd::After(now), None);
        std::mem::take(&mut self.service.first)
    }

    /// Runs up to `until`; whether all is done.
    fn run(&mut self, rule: Rule<'_>, until: ScheduleEnd, rows: Option<&mut Vec<fluid::Row>>) -> bool {
        self.service.start(rule, until);
        let is_in_order = !matches!(rule, Rule::Fair);
        if is_in_order && rows.is_none() && !matches!(until, ScheduleEnd::After(_)) {
            return self.greedy.run(&self.service.net.graph, &mut self.service);
        }
        self.executor.run(&self.service.net.graph, &mut self.service, rows)
    }
}

/// Who is served, and what that costs.
#[derive(Clone, Debug)]
struct Service<'a> {
    net: &'a Network,
    /// Nodes of each flow by urgency, concatenated.
    by_urgency: Vec<u32>,
    flow_of: Vec<u32>,
    /// What each flow costs at the least, and the sum of the absolute values.
    least: Vec<f64>,
    magnitude: f64,
    order: Order,
    /// By node: the smallest is served first; ties by number.
    priority: Vec<Key>,
    /// Nodes that were ready so far.
    entered: u32,
    completions: Vec<f64>,
    /// Nodes of each flow that are not done.
    nodes_left: Vec<u32>,
    /// What the schedule costs at the least, as far as it has got, and what it may.
    at_least: f64,
    limit: f64,
    /// From when on the first allocation is wanted, and nothing after it.
    instant: f64,
    first: Vec<(usize, u32)>,
    is_over: bool,
    /// Events handled so far, over all schedules.
    steps: u64,
}

impl<'a> Service<'a> {
    fn new(net: &'a Network) -> Self {
        let by_urgency = by_urgency(net);
        let least: Vec<f64> = net.flows.iter().map(|f| f.cost.eval(f.earliest)).collect();
        let flows = net.flows.iter().enumerate();
        Self {
            net,
            by_urgency,
            flow_of: flows.flat_map(|(k, f)| f.nodes.clone().map(move |_| k as u32)).collect(),
            magnitude: least.iter().map(|c| c.abs()).sum(),
            least,
            order: Order::Fifo,
            priority: vec![Key::default(); net.nodes().len()],
            entered: 0,
            completions: Vec::new(),
            nodes_left: Vec::with_capacity(net.flows.len()),
            at_least: 0.0,
            limit: f64::INFINITY,
            instant: f64::INFINITY,
            first: Vec::new(),
            is_over: false,
            steps: 0,
        }
    }

    fn start(&mut self, rule: Rule<'_>, until: ScheduleEnd) {
        let net = self.net;
        (self.limit, self.instant) = match until {
            ScheduleEnd::Done => (f64::INFINITY, f64::INFINITY),
            ScheduleEnd::Above(limit) => (limit + ABOVE * (limit.abs() + self.magnitude), f64::INFINITY),
            ScheduleEnd::After(instant) => (f64::INFINITY, instant),
        };
        (self.entered, self.is_over) = (0, false);
        self.first.clear();
        self.completions.clear();
        self.completions.extend(net.flows.iter().map(|f| f.release));
        self.nodes_left.clear();
        self.nodes_left.extend(net.flows.iter().map(|f| f.nodes.len() as u32));
        self.at_least = net.combine.of(self.least.iter().copied());
        self.order = match rule {
            Rule::Flows(_) | Rule::Due(_) => Order::Priority,
            Rule::Fifo => Order::Fifo,
            Rule::Fair => Order::Fair,
        };
        prioritise(net, rule, &self.by_urgency, &mut self.priority);
    }

    /// Max-min fair whole shares in each slot kind.
    fn share(&self, ready: &[u32], given: &mut Vec<u32>) {
        given.resize(ready.len(), 0);
        for (slot_kind, mut free) in self.net.slots.into_iter().enumerate() {
            let node = |k: usize| self.net.node(ready[k] as usize);
            let mut open: Vec<usize> = (0..ready.len()).filter(|&k| node(k).slot_kind == slot_kind).collect();
            while free > 0 && !open.is_empty() {
                // At least one slot each for the first ones when there are fewer slots than nodes.
                let each = (free / open.len() as u32).max(1);
                open.retain(|&k| {
                    let cap = node(k).cap;
                    let more = each.min(cap - given[k]).min(free);
                    given[k] += more;
                    free -= more;
                    given[k] < cap
                });
            }
        }
    }
}

impl fluid::Rule for Service<'_> {
    type Node = Node;
    type Key = Key;
    const ROUNDING: Rounding = Rounding::Steps;

    fn key(&mut self, node: usize, _: f64) -> Key {
        if self.order == Order::Priority {
            return self.priority[node];
        }
        self.entered += 1;
        Key::new(f64::from(self.entered))
    }

    fn grant(&mut self, ready: &[u32], progress: &Progress<'_, Node>, given: &mut Vec<u32>) {
        self.steps += 1;
        match self.order {
            Order::Priority | Order::Fifo => in_order(&self.net.graph, ready, given),
            Order::Fair => self.share(ready, given),
        }
        if progress.now() >= self.instant {
            let nodes = ready.iter().map(|&node| node as usize);
            self.first.extend(nodes.zip(given.iter().copied()));
            self.is_over = true;
        }
    }

    fn done(&mut self, node: usize, now: f64) {
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
    }

    fn is_over(&self) -> bool {
        self.is_over || self.at_least > self.limit
    }
}

/// Nodes of each flow by urgency, the longest path to the end first, concatenated. O(n log n).
fn by_urgency(net: &Network) -> Vec<u32> {
    let mut nodes: Vec<u32> = (0..net.nodes().len() as u32).collect();
    let urgency = |k: u32| net.node(k as usize).alone();
    for flow in &net.flows {
        nodes[flow.nodes.clone()].sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
    }
    nodes
}

/// Writes the place of each node under a rule of flows or dates: the smallest is served first. O(n).
fn prioritise(net: &Network, rule: Rule<'_>, by_urgency: &[u32], priority: &mut [Key]) {
    match rule {
        Rule::Flows(order) => {
            let nodes = order.iter().flat_map(|&flow| &by_urgency[net.flows[flow].nodes.clone()]);
            for (at, &node) in (0u32..).zip(nodes) {
                priority[node as usize] = Key::new(f64::from(at));
            }
        }
        Rule::Due(due) => {
            for (flow, due) in net.flows.iter().zip(due) {
                for node in flow.nodes.clone() {
                    priority[node] = Key::new(due - net.node(node).alone());
                }
            }
        }
        Rule::Fifo | Rule::Fair => {}
    }
}

/// The place of each node under a rule of flows or dates: the smallest is served first. O(n log n).
pub fn places(net: &Network, rule: Rule<'_>) -> Vec<Key> {
    let mut priority = vec![Key::default(); net.nodes().len()];
    prioritise(net, rule, &by_urgency(net), &mut priority);
    priority
}

/// The objective's value and the sum of all costs.
pub(super) fn costs(net: &Network, completions: &[f64]) -> (f64, f64) {
    let sum = net.flows.iter().zip(completions).map(|(flow, &c)| flow.cost.eval(c)).sum();
    (net.cost(completions), sum)
}
