//! The policy `auto`. At each arrival, and when flows have ended without an arrival, it chooses the order
//! with the lowest estimated cost. The candidates are the orders of the tried rules, the order in force, and
//! orders that a search finds near the best of them.

use slackline_model::params::{Param, Settings, Values};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Cluster, Combine, CostFn, FlowId, Objective, PhaseId, Seed, SlotKind, Span, Time};
use slackline_policy::{Action, Ask, Choice, ChosenBy, Event, Grant, Policy, View};

use super::evaluate::{Evaluator, Sequence};
use crate::auto::cost_floor::cost_floor;
use crate::auto::dispatch::{Serving, kept};
use crate::auto::estimate_error::EstimateError;
use crate::auto::future_arrivals::Prospect;
use crate::auto::job_order::JobOrder;
use crate::auto::recurring::{Announced, RecurringFlow};
use crate::auto::reserved_slots::Headroom;
use crate::registry::{Capabilities, Planner, PolicyEntry};
use crate::rule::orders::{RULES, Rule, RuleContext, RuleKind, RuleParams, rule_for};
use crate::rule::residual::{Residual, ResidualWork, is_live};

/// `auto` in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "none; rollouts of textbook rules (Bertsekas, Castañón 1999)",
    among_all: false,
    guarantee: "its order is never estimated to cost more than the best rule that it tried, apart from 0.5 % or the error of the estimates",
    params: &[
        Param::new(
            "rollouts",
            "200",
            Values::Count(1, 2_000),
            "orders tried at a decision; fewer if many flows are active",
        ),
        Param::new(
            "wait",
            "100",
            Values::Real(1.0, 1e9),
            "a flow whose response time reaches this multiple of its run time on an empty cluster goes first",
        ),
        Param::new(
            "headroom",
            "yes",
            Values::Choice(&["yes", "no"]),
            "whether to keep slots free of long tasks if that would have helped so far",
        ),
        Param::new(
            "ends",
            "yes",
            Values::Choice(&["yes", "no"]),
            "whether to decide also when two flows have ended and none has arrived",
        ),
        Param::new("seed", "0", Values::Count(0, u64::MAX), "seed of the random moves of the search"),
    ],
    capabilities: Capabilities::WITH_SPEEDS,
    page: PAGE,
    planner: Planner::Best,
    ..PolicyEntry::new(
        "auto",
        "the order of the lowest estimated cost, by rollouts of all rules and a search, at arrivals and ends of flows",
        |_: &Cluster, objective, settings| Box::new(Auto::new(*objective, settings)),
    )
};

const PAGE: &[&str] = &[
    "When a flow arrives, auto measures the remaining work of all active flows. It orders the flows by each rule of the policy \
     `rule` (atc and due with several parameters; woha by its plans, dmrs by its program). A rollout of each order estimates when every \
     flow completes, and so its cost by the objective. The current order, with the new flow inserted by the rule it came from, stays \
     unless the estimate of another is 0.5 % lower. From the best order, a search moves one flow after another at random. It keeps a \
     move that lowers the cost, or that completes earlier at the same cost. Slots follow the order until the next decision. The end of a \
     task causes no decision.",
    "ends=yes: auto decides also when two flows have ended and none has arrived, so that the search continues after a burst of arrivals.",
    "Orders are compared by the mean of two costs: the cost of the rollout, without further arrivals, and its cost if every flow \
     completed later. That delay is half of the mean time that each of about the last 32 flows takes on the whole cluster (twice that \
     time for the maximum of a nonlinear cost). So where no flow is late, an order with slack is better than one without. (For sums of \
     linear costs, the delay makes no difference.) Equal sums are compared again with delays of two, four and eight times that mean time. \
     So slack goes to the flows closest to their due dates, and not to flows that are already late.",
    "rollouts=N: each decision tries N orders, or ten times as many if all active flows have just arrived together. At most half of them \
     are orders of rules (in turn if there are more rules); the others are orders of the search. A decision has a budget of 1,000 units of \
     work for each of its rollouts, half of it for rules. A rollout costs one unit for each phase at its start and for each batch of tasks \
     that it starts. Up to some hundreds of phases can have all N rollouts, more phases have fewer. With 10,000 flows, only the current \
     order and two rules, in turn, are tried, and there is no search. The budget counts work and not time, so a run is reproducible. A \
     rollout simulates tasks with caps, kinds of slots and speeds. It includes the next release of recurring flows.",
    "wait=K: a flow whose response time reaches K times its estimated run time on an empty cluster goes before all others. Of several \
     such flows, the first to reach it goes first. They may use the slots that are kept free of long tasks. So no flow starves under any \
     rule. (If all arrivals are known in advance, there is no starvation, and no flow goes first.)",
    "headroom=yes: tasks are never preempted. So tasks longer than theta, the median run time on an empty cluster of the last 100 flows, \
     may hold at most a share 1 - rho of the slots of a kind, and the next flow finds a slot. rho starts at 0.05. After every ten \
     arrivals, these flows are simulated again with rho 0, 0.05, 0.1 and 0.2, and rho changes if another value would have cost 3 % less. \
     A flow with tasks longer than ten times theta triggers the same comparison. While such a flow is among the last 100, the latest \
     of them is simulated as if it came first, because more may follow, and rho may also be 0.35, 0.5 or 0.7. Nothing is reserved before \
     ten flows have arrived, or if rho of the slots is less than one slot.",
    "Machines of mixed speed: free slots are used fastest first. A slow slot stays free if the faster slots, including their current and \
     earlier work, would finish the rest of the phase before the slow slot finished one task.",
    "Wrong estimates: auto learns the mean error of about the last 32 phases, |ln(actual / estimated)|, and the mean error of their single \
     tasks. Above 0.2 for phases or 0.5 for tasks, and while nothing is known of a quarter of the active phases, auto tries no \
     other rule and searches no order. Flows are then ordered at every arrival and end by one rule that needs only the rough size of \
     their work: slope for linear costs, atc for tardiness, moore for the number of late flows. For a maximum it is due without tails, with \
     the best of five levels. The remaining time of a task or phase is at least a tenth of its elapsed work; a flow that has exceeded its \
     estimate has proportionally more left. The waiting limit of such a flow is computed again from its longer run time.",
    "Map slots and reduce slots: the jobs of a flow are also tried in Johnson's order, a short map phase before much other work first, \
     because its reduces can then overlap with the maps of the others.",
];

/// The order in force is replaced only by an order whose estimated cost is lower by this share, or noise
/// would decide.
const GAIN: f64 = 0.005;

/// The work limit of a decision for each of its rollouts ([`Evaluator::work`]). With up to some hundreds of
/// phases, all rollouts are made; with more phases fewer, so that a decision takes about as long.
const WORK: u64 = 1_000;

/// The factor on the number of tried orders if all active flows have just arrived together: nothing has
/// started, and no other decision matters as much.
const AT_FIRST: u64 = 10;

/// The number of flows that end before a decision without an arrival. If as many flows arrive as end, this
/// adds a third of decisions.
const ENDED: usize = 2;

/// The multiples of the delay of a [`Prospect`] at which orders of equal cost are compared.
const LATER: [f64; 3] = [4.0, 8.0, 16.0];

/// The number of rules that are always tried, at any cost.
const FEWEST: usize = 2;

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

/// Positions in the portfolio of the rules that may be tried: all, or only the rule for the objective, with
/// its first parameters for a sum. For a maximum, durations only set the level, which is the same for all
/// flows, so all levels are tried.
fn usable(portfolio: &[(Rule, RuleParams)], only_own: Option<Objective>) -> Vec<usize> {
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
    const WORST: Self = {
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

#[derive(Clone, Debug)]
pub struct Auto {
    objective: Objective,
    portfolio: Vec<(Rule, RuleParams)>,
    rollouts: u64,
    /// The first rule of the next decision.
    turn: usize,
    /// Whether it also decides when flows end.
    ends: bool,
    /// The number of flows that ended since the last decision.
    ended: usize,
    /// A flow goes first when its response time reaches this multiple of its time alone.
    wait: f64,
    rng: ChaCha8Rng,
    residual: Residual,
    estimate_error: EstimateError,
    headroom: Headroom,
    prospect: Prospect,
    announced: Announced,
    evaluator: Evaluator,
    /// The order in force.
    order: Order,
    job_order: JobOrder,
    decided: Option<Decided>,
    choices: Vec<Choice>,
    serving: Serving,
}

/// An order of flows, or none if phases of all flows are served by their tails.
#[derive(Clone, Debug)]
struct Order {
    /// The position in the portfolio of its rule.
    rule: usize,
    flows: Option<Vec<FlowId>>,
}

/// The last decision.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The rule whose order won, or from which the search started.
    pub rule: &'static str,
    /// The estimated cost of the order.
    pub estimated: EstimatedCost,
    /// The estimated arrivals of announced flows, the first one first, without distant ones.
    pub announced: Vec<Time>,
    /// The order by numbers of the evaluator, including announced flows; none if phases are served by their
    /// tails.
    order: Option<Vec<u32>>,
}

impl Auto {
    /// The policy for an objective, with these settings of [`ENTRY`].
    pub fn new(objective: Objective, settings: &Settings) -> Self {
        let headroom = match settings.choice("headroom") {
            "yes" => Headroom::chosen(),
            _ => Headroom::fixed(Span(u64::MAX), 0.0),
        };
        let portfolio = portfolio();
        let order = Order { rule: usable(&portfolio, Some(objective))[0], flows: None };
        Self {
            objective,
            portfolio,
            rollouts: settings.count("rollouts"),
            turn: 0,
            ends: settings.choice("ends") == "yes",
            ended: 0,
            wait: settings.real("wait"),
            rng: random::rng(Seed(settings.count("seed")), "auto", 0),
            residual: Residual::with_plans(),
            estimate_error: EstimateError::default(),
            headroom,
            prospect: Prospect::default(),
            announced: Announced::default(),
            evaluator: Evaluator::default(),
            order,
            job_order: JobOrder::default(),
            decided: None,
            choices: Vec::new(),
            serving: Serving::default(),
        }
    }

    /// The same with only these rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Vec<(Rule, RuleParams)>) -> Self {
        assert!(!rules.is_empty(), "an order comes from a rule");
        self.portfolio = rules;
        self.order.rule = usable(&self.portfolio, Some(self.objective))[0];
        self
    }

    /// The same with a share of each slot kind that tasks longer than `theta` never hold.
    #[must_use]
    pub fn with_headroom(mut self, theta: Span, share: f64) -> Self {
        self.headroom = Headroom::fixed(theta, share);
        self
    }

    /// The last decision.
    pub fn decided(&self) -> Option<&Decided> {
        self.decided.as_ref()
    }

    /// The estimated completions of the flows that were active at the last decision, by another rollout.
    /// Empty before the first decision, and if some flow would never complete.
    pub fn completions(&mut self) -> Vec<(FlowId, Time)> {
        let Some(Decided { order, .. }) = &self.decided else { return Vec::new() };
        let rolled = self.evaluator.roll(order.as_deref().map_or(Sequence::Tails, Sequence::Flows));
        rolled.map_or_else(Vec::new, |(flows, at)| flows.iter().copied().zip(at.iter().copied()).collect())
    }

    /// The share of each slot kind that is reserved from long tasks, and the length above which tasks are
    /// long.
    pub fn headroom(&self) -> (f64, Span) {
        (self.headroom.rho, self.headroom.theta)
    }

    /// The active flows in the order in force; `None` if phases of all flows are served by their tails.
    pub(super) fn order(&self) -> Option<&[FlowId]> {
        self.order.flows.as_deref()
    }

    /// A flow goes first when its response time reaches this multiple of its time alone.
    pub(super) fn wait(&self) -> f64 {
        self.wait
    }

    /// Adds the flows that arrived.
    fn note_arrivals(&mut self, events: &[Event], phases: &[PhaseId], view: &View<'_>) {
        if !events.iter().any(is_arrival) {
            return;
        }
        self.evaluator.look(view, phases.iter().copied());
        for event in events {
            let Event::FlowArrived(flow) = *event else { continue };
            // A flow without work has finished already.
            let Ok(number) = self.evaluator.flows().binary_search(&flow) else { continue };
            let left = self.residual.flows[number];
            self.prospect.note(left.area);
            self.serving.limits.set(flow, view.instance.flow(flow).release, self.wait * left.rem);
            let known = RecurringFlow::of(left, number, &self.evaluator, view);
            self.announced.note(&known, view.instance.flow(flow).next_release, view.now);
            self.headroom.note(known);
        }
        self.headroom.choose(self.objective, view);
    }

    /// Whether the lengths of these phases are unknown or were wrong lately. Then flows that turn out longer
    /// than estimated at their arrival get a later waiting limit.
    fn doubts(&mut self, phases: &[PhaseId], view: &View<'_>) -> bool {
        let is_unknown = |phase: &&PhaseId| {
            view.estimates.unknown.get(**phase) == Some(&true) && !view.phase(**phase).is_done()
        };
        let unknown = phases.iter().filter(is_unknown).count();
        let doubts = !self.estimate_error.is_little() || unknown > phases.len() / 4;
        for left in self.residual.flows.iter().filter(|_| doubts) {
            let release = view.instance.flow(left.flow).release;
            self.serving.limits.defer(left.flow, release, self.wait * left.rem);
        }
        doubts
    }

    /// Chooses the best order from now on.
    fn decide(&mut self, events: &[Event], view: &View<'_>) {
        self.residual.measure(view);
        let mut phases = self.job_order.phases(&self.residual, view);
        self.note_arrivals(events, &phases, view);
        let is_doubtful = self.doubts(&phases, view);
        let Self { residual, estimate_error, headroom, prospect, announced, evaluator, serving, rng, .. } =
            self;
        let backlog: f64 = residual.flows.iter().map(|left| left.rem).sum();
        let announced = announced.within(backlog, view.now);
        let live = residual.flows.len();
        let set_up = |evaluator: &mut Evaluator, phases: &[PhaseId]| {
            evaluator.look(view, phases.iter().copied());
            let late = residual.flows.iter().enumerate().filter(|(_, left)| left.overrun > 1.0);
            late.for_each(|(number, left)| evaluator.stretch(number, left.overrun));
            evaluator.announce(announced.iter().map(|known| (&known.template, known.at)));
            evaluator.reserve(headroom.theta, headroom.rho);
            let numbered = |(at, flow)| Some((at, evaluator.flows().binary_search(&flow).ok()? as u32));
            let limits: Vec<(Time, u32)> = serving.limits.iter().filter_map(numbered).collect();
            evaluator.limit(limits.into_iter());
        };
        set_up(evaluator, &phases);
        let to_come = (live as u32..).zip(announced);
        let scene =
            RuleContext::of(residual, view, to_come.map(|(number, known)| known.candidate(number, view.now)));
        let mut costs: Vec<&CostFn> =
            evaluator.flows().iter().map(|&flow| &view.instance.flow(flow).cost).collect();
        costs.extend(announced.iter().map(|known| &known.cost));
        let gain = GAIN.max(estimate_error.noise(phases.len()));
        let delay = prospect.delay(self.objective, &costs);
        let usable = usable(&self.portfolio, is_doubtful.then_some(self.objective));
        // Of a single rule, the order by what is known now.
        if !usable.contains(&self.order.rule) || is_doubtful && usable.len() == 1 {
            self.order = Order { rule: usable[0], flows: None };
        }
        // A flow without work has finished already.
        let is_new = |event: &&Event| matches!(event, Event::FlowArrived(flow) if evaluator.flows().binary_search(flow).is_ok());
        let came_together = live > 1 && events.iter().filter(is_new).count() == live;
        // A single rollout is always that of a rule.
        let times = if came_together && self.rollouts > 1 { AT_FIRST } else { 1 };
        let rollouts = times * self.rollouts;
        let rules = usable.len().min(rollouts.div_ceil(2) as usize);
        let searched = if is_doubtful { 0 } else { rollouts.saturating_sub(rules as u64) };
        let work = WORK * rollouts;
        let cluster = view.instance.cluster();
        let capacity = (!cluster.is_map_reduce()).then(|| cluster.capacity(SlotKind::Any));
        let is_sum = delay <= 0.0 && self.objective.combine == Combine::Sum;
        let floor = if is_sum { cost_floor(&scene, capacity) } else { None };
        let effort = Effort { gain, floor, searched, turn: self.turn, rules, work };
        let mut looking = OrderCosts { evaluator, costs, objective: self.objective, now: view.now, delay };
        let mut best = looking.best(&self.portfolio, &usable, &scene, &self.order, effort, rng);
        let has_several = |left: &ResidualWork| view.instance.flow(left.flow).jobs().len() > 1;
        if cluster.is_map_reduce() && residual.flows.iter().any(has_several) {
            let other = self.job_order.other();
            let other_phases = other.phases(residual, view);
            set_up(looking.evaluator, &other_phases);
            let under_other = looking.estimated(best.order.flows.as_deref(), Some(best.estimated), None);
            if under_other.beats(best.estimated, gain) {
                (self.job_order, phases, best.estimated) = (other, other_phases, under_other);
            } else {
                set_up(looking.evaluator, &phases);
            }
        }
        self.turn = (self.turn + best.tried) % usable.len();
        let announced = announced.iter().map(|known| known.at).collect();
        self.adopt(best, announced, &phases, view);
    }

    /// Serves by this order from now on.
    fn adopt(&mut self, best: Best, announced: Vec<Time>, phases: &[PhaseId], view: &View<'_>) {
        let Best { order, by, estimated, .. } = best;
        let flows: Vec<FlowId> = self.evaluator.flows().to_vec();
        let (chosen, knobs) = self.portfolio[order.rule];
        let (rule, n_flows) = (chosen.name, flows.len() as u32);
        let spelled = chosen.spelled(knobs).into();
        self.choices.push(Choice { at: view.now, rule: spelled, by, cost: estimated.cost, flows: n_flows });
        self.decided = Some(Decided { rule, estimated, announced, order: order.flows.clone() });
        let named =
            |order: Vec<u32>| order.iter().filter_map(|&at| flows.get(at as usize).copied()).collect();
        self.order = Order { rule: order.rule, flows: order.flows.map(named) };
        self.serving.headroom.set(&self.headroom, phases.iter().copied(), view);
        self.serving.by(self.order.flows.as_deref(), &flows, phases, view);
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
struct Numbered {
    rule: usize,
    flows: Option<Vec<u32>>,
}

/// The effort for finding a better order.
#[derive(Clone, Copy)]
struct Effort {
    /// The share by which it must be better than the order in force.
    gain: f64,
    /// A cost that no order is below, if known.
    floor: Option<f64>,
    /// The number of rollouts that the search may make.
    searched: u64,
    /// The first tried rule, and their number.
    turn: usize,
    rules: usize,
    /// The work limit of the decision ([`Evaluator::work`]): half of it for rules.
    work: u64,
}

/// The result of finding a better order.
struct Best {
    order: Numbered,
    by: ChosenBy,
    estimated: EstimatedCost,
    /// The number of tried rules.
    tried: usize,
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
    fn best(
        &mut self,
        portfolio: &[(Rule, RuleParams)],
        usable: &[usize],
        scene: &RuleContext<'_>,
        held: &Order,
        effort: Effort,
        rng: &mut ChaCha8Rng,
    ) -> Best {
        let before = self.evaluator.work();
        let order_of = |rule: usize| numbers(portfolio[rule].0, portfolio[rule].1, scene);
        let by_rule = order_of(held.rule);
        let in_force = held.flows.as_deref().map(|flows| {
            let rule = by_rule.as_deref().expect("invariant: it ordered flows before");
            kept(flows, rule, self.evaluator.flows())
        });
        let mut by = if in_force.is_some() { ChosenBy::Kept } else { ChosenBy::Rule };
        let mut best = Numbered { rule: held.rule, flows: in_force.or(by_rule) };
        let incumbent = self.estimated(best.flows.as_deref(), None, None);
        if effort
            .floor
            .is_some_and(|floor| floor >= incumbent.expected - effort.gain * incumbent.expected.abs())
        {
            return Best { order: best, by, estimated: incumbent, tried: 0 };
        }
        let mut least = incumbent;
        let (mut tried, mut seen) = (0, vec![best.flows.clone()]);
        for rule in (0..effort.rules).map(|at| usable[(effort.turn + at) % usable.len()]) {
            if tried >= FEWEST && self.evaluator.work() - before > effort.work / 2 {
                break;
            }
            tried += 1;
            let flows = order_of(rule);
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
        Best { order: best, by, estimated: least, tried }
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
fn shift(order: &mut [u32], from: usize, to: usize) {
    if from < to { order[from..=to].rotate_left(1) } else { order[to..=from].rotate_right(1) }
}

fn is_arrival(event: &Event) -> bool {
    matches!(event, Event::FlowArrived(_))
}

impl Policy for Auto {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn choices(&self) -> &[Choice] {
        &self.choices
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.residual.note(events, view);
        self.estimate_error.note(events, view);
        self.serving.note(events, view);
        self.ended += events.iter().filter_map(Event::over).count();
        let ended = if self.estimate_error.is_little() { ENDED } else { 1 };
        let have_ended = self.ends && self.ended >= ended;
        let decides = events.iter().any(is_arrival)
            || have_ended && view.instance.flows().keys().any(|flow| is_live(flow, view));
        if decides {
            self.decide(events, view);
            self.ended = 0;
        }
        self.serving.update(events, decides, view);
        out.extend(self.serving.limits.wake(view.now));
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.serving.next(ask, view)
    }
}

#[cfg(test)]
mod tests;
