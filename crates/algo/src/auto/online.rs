//! The policy `auto`: at each arrival the order with the least believed cost, of those of all rules, the order in force, and
//! some that a search finds near the best of them.

use slackline_model::params::{Param, Settings, Values};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Cluster, FlowId, Objective, PhaseId, Seed, Time};
use slackline_policy::{Action, Ask, Event, Grant, Grown, Policy, ReadyQueue, Style, View};

use super::evaluate::{Evaluator, Sequence};
use crate::machines::Machines;
use crate::registry::PolicyEntry;
use crate::rule::online::{Place, by_tail};
use crate::rule::orders::{How, Knobs, RULES, Rule, Scene};
use crate::rule::residual::Residual;

/// `auto` in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "none; rollouts of the rules of the textbook (Bertsekas, Castañón 1999)",
    guarantee: "at each arrival believed to cost no more than any rule's order, within 0.5 %",
    params: &[
        Param::new(
            "rollouts",
            "200",
            Values::Count(0, 2_000),
            "orders near the best one that are tried at an arrival; fewer beyond 1,000 phases",
        ),
        Param::new("seed", "0", Values::Count(0, u64::MAX), "where the random moves of the search begin"),
    ],
    ..PolicyEntry::new(
        "auto",
        "the order that is believed to cost least, by rollouts of all rules and a search, at every arrival",
        |_: &Cluster, objective, settings| Box::new(Auto::new(*objective, settings)),
    )
};

/// An order is left only for one that is believed to be better by this share: or noise would decide.
const GAIN: f64 = 0.005;

/// The search makes all its rollouts while no more phases than these are there, and of more in proportion fewer: a decision
/// takes about as long.
const PHASES: u64 = 1_000;

/// The rules that are tried, with their parameters.
fn portfolio() -> Vec<(Rule, Knobs)> {
    let knobs = Knobs { k: 0.5, x: 0.0, tail: false };
    let with = |rule: &Rule| match rule.name {
        "atc" => [0.5, 2.0].map(|k| Knobs { k, ..knobs }).to_vec(),
        "due" => {
            let levels = [0.0, 0.1, 0.3, 0.5, 0.9];
            levels.iter().flat_map(|&x| [true, false].map(|tail| Knobs { x, tail, ..knobs })).collect()
        }
        _ => vec![knobs],
    };
    RULES.iter().flat_map(|rule| with(rule).into_iter().map(|knobs| (*rule, knobs))).collect()
}

/// What an order is believed to cost: by the objective, then the sum of completions from now on, as maxima have plateaus.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Believed {
    /// Of the flows that are there, by the objective.
    pub cost: f64,
    /// Seconds from now.
    pub completions: f64,
}

impl Believed {
    /// Whether it is better than `other` by more than a share of it.
    fn beats(self, other: Self, share: f64) -> bool {
        let less = |a: f64, b: f64| a < b - share * b.abs();
        less(self.cost, other.cost) || self.cost <= other.cost && less(self.completions, other.completions)
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Auto {
    objective: Objective,
    portfolio: Vec<(Rule, Knobs)>,
    rollouts: u64,
    rng: ChaCha8Rng,
    residual: Residual,
    evaluator: Evaluator,
    /// The order in force.
    order: Order,
    decided: Option<Decided>,
    place: Grown<PhaseId, Place>,
    queue: ReadyQueue<Place>,
    machines: Machines,
}

/// An order: flows, or none where phases of all flows go by their tails.
#[derive(Clone, Debug, Default)]
struct Order {
    /// Place in the portfolio of the rule it came from.
    rule: usize,
    flows: Option<Vec<FlowId>>,
}

/// What was decided at the last arrival.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The rule whose order won, or was where the search began.
    pub rule: &'static str,
    /// What the order is believed to cost.
    pub believed: Believed,
    /// When each flow that was there is believed to complete.
    pub completions: Vec<(FlowId, Time)>,
}

impl Auto {
    /// The policy for an objective, with these settings of [`ENTRY`].
    pub fn new(objective: Objective, settings: &Settings) -> Self {
        Self {
            objective,
            portfolio: portfolio(),
            rollouts: settings.count("rollouts"),
            rng: random::rng(Seed(settings.count("seed")), "auto", 0),
            residual: Residual::default(),
            evaluator: Evaluator::default(),
            order: Order::default(),
            decided: None,
            place: Grown::default(),
            queue: ReadyQueue::new(),
            machines: Machines::default(),
        }
    }

    /// The same with no other rules than these.
    #[must_use]
    pub fn with_rules(mut self, rules: Vec<(Rule, Knobs)>) -> Self {
        assert!(!rules.is_empty(), "an order comes from a rule");
        self.portfolio = rules;
        self
    }

    /// What was decided at the last arrival.
    pub fn decided(&self) -> Option<&Decided> {
        self.decided.as_ref()
    }

    /// The best order from now on.
    fn decide(&mut self, view: &View<'_>) {
        self.residual.measure(view);
        let phases = by_tail(&self.residual, view);
        self.evaluator.look(view, phases.iter().copied());
        let scene = Scene::of(&self.residual, view);
        let mut looking = Looking { evaluator: &mut self.evaluator, view, objective: self.objective };
        let orders: Vec<Option<Vec<u32>>> =
            self.portfolio.iter().map(|&(rule, knobs)| numbers(rule, knobs, &scene, &looking)).collect();
        let held = self.order.flows.as_deref().map(|flows| {
            let rule = orders[self.order.rule].as_deref().expect("invariant: it ordered flows before");
            kept(flows, rule, &looking)
        });
        let mut best = (self.order.rule, held.or_else(|| orders[self.order.rule].clone()));
        let incumbent = looking.believed(best.1.as_deref());
        let mut least = incumbent;
        for (rule, order) in orders.into_iter().enumerate() {
            let believed = looking.believed(order.as_deref());
            let beats = believed.beats(incumbent, GAIN) && believed.beats(least, 0.0);
            if beats {
                (best, least) = ((rule, order), believed);
            }
        }
        if let (rule, Some(order)) = &best {
            let mut order = order.clone();
            let rollouts = self.rollouts * PHASES.min(phases.len() as u64) / phases.len().max(1) as u64;
            let found = looking.search(&mut order, least, rollouts, &mut self.rng);
            if found.beats(incumbent, GAIN) {
                (best, least) = ((*rule, Some(order)), found);
            }
        }
        let completions = looking.completions(best.1.as_deref());
        let flows: Vec<FlowId> = self.evaluator.flows().to_vec();
        self.decided = Some(Decided {
            rule: self.portfolio[best.0].0.name,
            believed: least,
            completions: flows.iter().copied().zip(completions).collect(),
        });
        let named = best.1.map(|order| order.iter().map(|&flow| flows[flow as usize]).collect());
        self.order = Order { rule: best.0, flows: named };
        self.serve(&flows, &phases, view);
    }

    /// Slots go by the order in force from now on.
    fn serve(&mut self, flows: &[FlowId], phases: &[PhaseId], view: &View<'_>) {
        for (rank, &flow) in (0..).zip(self.order.flows.as_deref().unwrap_or(flows)) {
            let rank = if self.order.flows.is_some() { rank } else { 0 };
            view.instance.flow(flow).phases().for_each(|phase| self.place[phase].0 = rank);
        }
        for (at, &phase) in (0..).zip(phases) {
            self.place[phase].1 = at;
        }
    }
}

/// The order of a rule, by numbers of the evaluator; none of a rule of phases.
fn numbers(rule: Rule, knobs: Knobs, scene: &Scene<'_>, looking: &Looking<'_, '_>) -> Option<Vec<u32>> {
    if matches!(rule.how, How::Together) {
        return None;
    }
    let ranks = rule.ranks(scene, knobs);
    let mut order = vec![0; ranks.len()];
    for (candidate, &rank) in scene.flows.iter().zip(&ranks) {
        order[rank as usize] = looking.number(candidate.left.flow)?;
    }
    Some(order)
}

/// The order in force, without flows that are over and with new ones each before the first flow that the rule has after
/// it. O(n · new flows).
fn kept(flows: &[FlowId], rule: &[u32], looking: &Looking<'_, '_>) -> Vec<u32> {
    let mut rank = vec![0; rule.len()];
    (0..).zip(rule).for_each(|(at, &flow)| rank[flow as usize] = at);
    let mut order: Vec<u32> = flows.iter().filter_map(|&flow| looking.number(flow)).collect();
    let mut is_there = vec![false; rule.len()];
    for &flow in &order {
        is_there[flow as usize] = true;
    }
    for &new in rule.iter().filter(|&&flow| !is_there[flow as usize]) {
        let behind = |&flow: &u32| rank[flow as usize] > rank[new as usize];
        let at = order.iter().position(behind).unwrap_or(order.len());
        order.insert(at, new);
    }
    order
}

/// An evaluator that has looked, and what costs are.
struct Looking<'e, 'v> {
    evaluator: &'e mut Evaluator,
    view: &'e View<'v>,
    objective: Objective,
}

impl Looking<'_, '_> {
    fn number(&self, flow: FlowId) -> Option<u32> {
        self.evaluator.flows().binary_search(&flow).ok().map(|at| at as u32)
    }

    /// When each flow is believed to complete; never if no slot that could serve it is up.
    fn completions(&mut self, order: Option<&[u32]>) -> Vec<Time> {
        let rolled = self.evaluator.roll(order.map_or(Sequence::Tails, Sequence::Flows));
        rolled.map_or_else(Vec::new, |(_, completions)| completions.to_vec())
    }

    /// What an order is believed to cost; infinite if some flow never completes.
    fn believed(&mut self, order: Option<&[u32]>) -> Believed {
        let (view, objective) = (self.view, self.objective);
        let sequence = order.map_or(Sequence::Tails, Sequence::Flows);
        let Some((flows, completions)) = self.evaluator.roll(sequence) else {
            return Believed { cost: f64::INFINITY, completions: f64::INFINITY };
        };
        let cost = |(&flow, at): (&FlowId, &Time)| view.instance.flow(flow).cost.eval(at.seconds());
        Believed {
            cost: objective.combine.of(flows.iter().zip(completions).map(cost)),
            completions: completions.iter().map(|at| at.since(view.now).seconds()).sum(),
        }
    }

    /// Tries to take a flow out and put it elsewhere, again and again, half of the times not far; keeps what is better.
    fn search(&mut self, order: &mut [u32], from: Believed, rollouts: u64, rng: &mut ChaCha8Rng) -> Believed {
        let mut least = from;
        let last = (order.len() as u64).saturating_sub(1);
        for _ in 0..if last > 0 { rollouts } else { 0 } {
            let from = random::integer(rng, 0, last);
            let to = if random::chance(rng, 0.5) {
                random::integer(rng, from.saturating_sub(NEAR), (from + NEAR).min(last))
            } else {
                random::integer(rng, 0, last)
            };
            let (from, to) = (from as usize, to as usize);
            if from == to {
                continue;
            }
            shift(order, from, to);
            let believed = self.believed(Some(order));
            if believed.beats(least, 0.0) {
                least = believed;
            } else {
                shift(order, to, from);
            }
        }
        least
    }
}

/// How far a short move goes at most.
const NEAR: u64 = 3;

/// Takes out what is at `from` and puts it in at `to`.
fn shift(order: &mut [u32], from: usize, to: usize) {
    if from < to { order[from..=to].rotate_left(1) } else { order[to..=from].rotate_right(1) }
}

impl Policy for Auto {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        self.residual.note(events, view);
        self.machines.look_again();
        let arrived = events.iter().any(|event| matches!(event, Event::FlowArrived(_)));
        if arrived {
            self.decide(view);
        }
        let place = &self.place;
        if arrived {
            self.queue.rekey(view, |phase| place[phase]);
        }
        self.queue.update(events, view, |phase| place[phase]);
        for flow in events.iter().filter_map(Event::over) {
            self.place.forget(view.instance.flow(flow).phases());
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let Self { queue, machines, .. } = self;
        machines.grant(ask, view, |ask| queue.first(ask, view))
    }
}

#[cfg(test)]
mod tests;
