//! The search for a cheap order: the orders of rules and orders near the best of them, each rated by a rollout.

use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Combine, CostFn, FlowId, Objective, Time};
use slackline_policy::ChosenBy;

use super::evaluate::{Evaluator, Sequence};
use crate::auto::dispatch::kept;
use crate::rule::orders::{RULES, Rule, RuleContext, RuleKind, RuleParams, rule_for};

/// The multiples of the delay of a [`super::future_arrivals::Prospect`] at which orders of equal cost are compared.
const LATER: [f64; 3] = [4.0, 8.0, 16.0];

/// The number of rules that are always tried, at any cost.
pub(super) const FEWEST: usize = 2;

/// The tried rules, with their parameters.
pub(super) fn portfolio() -> Vec<(Rule, RuleParams)> {
    let knobs = RuleParams { k: 0.5, x: 0.0, tail: false };
    let with = |rule: &Rule| match rule.name {
        "atc" => [0.5, 2.0].map(|k| RuleParams { k, ..knobs }).to_vec(),
        "due" => {
            let levels = [0.0, 0.1, 0.3, 0.5, 0.9];
            levels.iter().flat_map(|&x| [true, false].map(|tail| RuleParams { x, tail, ..knobs })).collect()
        }
        _ => vec![knobs],
    };
    RULES.iter().flat_map(|rule| with(rule).into_iter().map(|knobs| (*rule, knobs))).collect()
}

/// The position in the portfolio of the rule for the objective; the first one if it is not there.
pub(super) fn own(portfolio: &[(Rule, RuleParams)], objective: Objective) -> usize {
    usable(portfolio, Some(objective))[0]
}

/// Positions in the portfolio of the rules that may be tried: all, or only the rule for the objective, with
/// its first parameters for a sum. For a maximum, durations only set the level, which is the same for all
/// flows, so all levels are tried.
pub(super) fn usable(portfolio: &[(Rule, RuleParams)], only_own: Option<Objective>) -> Vec<usize> {
    let all = 0..portfolio.len();
    let Some(objective) = only_own else { return all.collect() };
    let is_own = |&at: &usize| portfolio[at].0.name == rule_for(objective) && !portfolio[at].1.tail;
    let most = if objective.combine == Combine::Max { usize::MAX } else { 1 };
    let usable: Vec<usize> = all.clone().filter(is_own).take(most).collect();
    if usable.is_empty() { all.collect() } else { usable }
}

/// The estimated cost of an order. Orders are compared by expected cost, then by the cost much later, then by
/// the sum of completions from now on, since steps and maxima have plateaus.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct EstimatedCost {
    /// The cost of the active flows, by the objective.
    pub cost: f64,
    /// The mean of `cost` and of the cost with every flow completed later, because more flows arrive.
    pub expected: f64,
    /// The sum of costs with every flow completed later still; 0 if that does not depend on the order.
    pub later: f64,
    /// Seconds from now.
    pub completions: f64,
}

impl EstimatedCost {
    pub(super) const WORST: Self = {
        let never = f64::INFINITY;
        Self { cost: never, expected: never, later: never, completions: never }
    };

    /// Whether it is lower than `other` by more than a share of it.
    pub(super) fn beats(self, other: Self, share: f64) -> bool {
        let less = |a: f64, b: f64| a < b - share * b.abs();
        let not_later = self.later <= other.later && less(self.completions, other.completions);
        less(self.expected, other.expected)
            || self.expected <= other.expected && (less(self.later, other.later) || not_later)
    }
}

/// An order of flows, or none if phases of all flows are served by their tails.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The position in the portfolio of its rule.
    pub(super) rule: usize,
    pub(super) flows: Option<Vec<FlowId>>,
}

impl Order {
    /// The order by numbers of these flows. New flows are inserted by its rule.
    pub(super) fn in_force(
        &self,
        portfolio: &[(Rule, RuleParams)],
        scene: &RuleContext<'_>,
        live: &[FlowId],
    ) -> (Numbered, ChosenBy) {
        let (rule, knobs) = portfolio[self.rule];
        let by_rule = numbers(rule, knobs, scene);
        match self.flows.as_deref().zip(by_rule.as_deref()) {
            Some((flows, rule)) => {
                (Numbered { rule: self.rule, flows: Some(kept(flows, rule, live)) }, ChosenBy::Kept)
            }
            None => (Numbered { rule: self.rule, flows: by_rule }, ChosenBy::Rule),
        }
    }
}

/// The order of a rule, by numbers of the evaluator; `None` for a rule of phases.
pub(super) fn numbers(rule: Rule, knobs: RuleParams, scene: &RuleContext<'_>) -> Option<Vec<u32>> {
    if matches!(rule.how, RuleKind::Together) {
        return None;
    }
    let ranks = rule.ranks(scene, knobs);
    let mut order = vec![0; ranks.len()];
    for (candidate, &rank) in scene.flows.iter().zip(&ranks) {
        order[rank as usize] = candidate.number;
    }
    Some(order)
}

/// An order by numbers of the evaluator, or none if phases are served by their tails.
pub(super) struct Numbered {
    pub(super) rule: usize,
    pub(super) flows: Option<Vec<u32>>,
}

/// The effort for finding a better order.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// The share by which it must be better than the order in force.
    pub(super) gain: f64,
    /// The number of rollouts that the search may make.
    pub(super) searched: u64,
    /// The rule that is tried first, the one after it, and their number.
    pub(super) own: usize,
    pub(super) turn: usize,
    pub(super) rules: usize,
    /// The work limit of the decision ([`Evaluator::work`]): half of it for rules.
    pub(super) work: u64,
}

/// The result of finding a better order.
pub(super) struct Best {
    pub(super) order: Numbered,
    pub(super) by: ChosenBy,
    /// `None` without rollouts.
    pub(super) estimated: Option<EstimatedCost>,
    /// The arrivals of the announced flows that the estimate covers.
    pub(super) announced: Vec<Time>,
    /// The number of tried rules.
    pub(super) tried: usize,
}

/// An evaluator with a snapshot, and the costs of completions.
pub(super) struct OrderCosts<'e, 'c> {
    pub(super) evaluator: &'e mut Evaluator,
    /// The costs, by the evaluator's numbers of flows.
    pub(super) costs: Vec<&'c CostFn>,
    pub(super) objective: Objective,
    pub(super) now: Time,
    /// The delay of completions in seconds, because of flows that will arrive.
    pub(super) delay: f64,
}

impl OrderCosts<'_, '_> {
    /// The order in force, or a better order of a rule or near the best of them.
    pub(super) fn best(
        &mut self,
        portfolio: &[(Rule, RuleParams)],
        usable: &[usize],
        scene: &RuleContext<'_>,
        held: Best,
        effort: Effort,
        rng: &mut ChaCha8Rng,
    ) -> Best {
        let before = self.evaluator.work();
        let incumbent = held.estimated.unwrap_or(EstimatedCost::WORST);
        let Best { order: mut best, mut by, announced, .. } = held;
        let mut least = incumbent;
        let (mut tried, mut seen) = (0, vec![best.flows.clone()]);
        let in_turn = (0..effort.rules).map(|at| usable[(effort.turn + at) % usable.len()]);
        let own = usable.contains(&effort.own).then_some(effort.own);
        for rule in own.into_iter().chain(in_turn) {
            if tried >= FEWEST && self.evaluator.work() - before > effort.work / 2 {
                break;
            }
            tried += 1;
            let flows = numbers(portfolio[rule].0, portfolio[rule].1, scene);
            // If weights and dates are equal, the orders of many rules are equal, and the order in force is
            // one of them.
            if seen.contains(&flows) {
                continue;
            }
            let estimated = self.estimated(flows.as_deref(), Some(least), None);
            if estimated.beats(incumbent, effort.gain) && estimated.beats(least, 0.0) {
                (best, by, least) = (Numbered { rule, flows: flows.clone() }, ChosenBy::Rule, estimated);
            }
            seen.push(flows);
        }
        if let Some(flows) = &best.flows {
            let mut flows = flows.clone();
            let found = self.search(&mut flows, least, effort.searched, before + effort.work, rng);
            // If it finds nothing, the order of the rule itself may beat the order in force.
            if found != least && found.beats(incumbent, effort.gain) {
                (best.flows, by, least) = (Some(flows), ChosenBy::Search, found);
            }
        }
        Best { order: best, by, estimated: Some(least), announced, tried }
    }

    /// The estimated cost of an order; infinite if some flow never completes, or if the cost is above `least`.
    /// Only `moved` differ from the order that the evaluator remembers.
    pub(super) fn estimated(
        &mut self,
        order: Option<&[u32]>,
        least: Option<EstimatedCost>,
        moved: Option<&[u32]>,
    ) -> EstimatedCost {
        let Self { evaluator, costs, objective, now, delay } = self;
        let cost_later = |delay: f64, completions: &[Time]| {
            let flows = costs.iter().zip(completions);
            objective.combine.of(flows.map(|(cost, at)| cost.eval(at.seconds() + delay)))
        };
        let cost = |completions: &[Time]| cost_later(0.0, completions);
        let expected = |completions: &[Time]| {
            let cost = cost(completions);
            if *delay > 0.0 { f64::midpoint(cost, cost_later(*delay, completions)) } else { cost }
        };
        // Costs never fall with time: an unfinished flow costs at least what it would cost if it finished
        // now.
        let is_worse =
            |completions: &[Time]| least.is_some_and(|least| expected(completions) > least.expected);
        let rolled = match (order, moved) {
            (Some(order), Some(moved)) => evaluator.roll_near(order, moved, is_worse),
            _ => evaluator.roll_until(order.map_or(Sequence::Tails, Sequence::Flows), is_worse),
        };
        let Some((_, completions)) = rolled else {
            return EstimatedCost::WORST;
        };
        let later = if *delay > 0.0 && objective.combine == Combine::Sum {
            LATER.iter().map(|times| cost_later(times * *delay, completions)).sum()
        } else {
            0.0
        };
        let sum = completions.iter().map(|at| at.since(*now).seconds()).sum();
        EstimatedCost { cost: cost(completions), expected: expected(completions), later, completions: sum }
    }

    /// Repeatedly moves a flow to another position, half of the times a near one, and keeps improvements.
    /// Stops when the evaluator has done `work` ([`Evaluator::work`]).
    pub(super) fn search(
        &mut self,
        order: &mut [u32],
        from: EstimatedCost,
        rollouts: u64,
        work: u64,
        rng: &mut ChaCha8Rng,
    ) -> EstimatedCost {
        let mut least = from;
        let last = (order.len() as u64).saturating_sub(1);
        let mut is_remembered = false;
        for _ in 0..if last > 0 { rollouts } else { 0 } {
            if self.evaluator.work() > work {
                break;
            }
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
            if !std::mem::replace(&mut is_remembered, true) {
                self.evaluator.remember(order);
            }
            shift(order, from, to);
            let moved = &order[from.min(to)..=from.max(to)];
            let estimated = self.estimated(Some(&*order), Some(least), Some(moved));
            if estimated.beats(least, 0.0) {
                (least, is_remembered) = (estimated, false);
            } else {
                shift(order, to, from);
            }
        }
        least
    }
}

/// The largest distance of a short move.
const NEAR: u64 = 3;

/// Moves the element at `from` to `to`.
pub(super) fn shift(order: &mut [u32], from: usize, to: usize) {
    if from < to { order[from..=to].rotate_left(1) } else { order[to..=from].rotate_right(1) }
}

#[cfg(test)]
mod tests;
