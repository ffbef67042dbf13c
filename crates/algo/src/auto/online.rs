//! The policy `auto`. At each arrival, and when flows have ended without an arrival, it chooses the order
//! with the lowest estimated cost. The candidates are the orders of the tried rules, the order in force, and
//! orders that a search finds near the best of them.

use slackline_model::params::{Param, Settings, Values};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Cluster, CostFn, FlowId, Objective, PhaseId, Seed, Span, Time};
use slackline_policy::{Action, Ask, Choice, Event, Grant, Policy, View};

use super::evaluate::{Evaluator, Sequence};
use crate::auto::dispatch::Serving;
use crate::auto::estimate_error::EstimateError;
use crate::auto::future_arrivals::Prospect;
use crate::auto::job_order::JobOrder;
use crate::auto::order_search::{
    Best, Effort, EstimatedCost, FEWEST, Order, OrderCosts, own, portfolio, usable,
};
use crate::auto::recurring::{Announced, RecurringFlow};
use crate::auto::reserved_slots::Headroom;
use crate::auto::work_budget::WorkBudget;
use crate::registry::{Capabilities, Planner, PolicyEntry};
use crate::rule::orders::{Rule, RuleContext, RuleParams};
use crate::rule::residual::{Residual, is_live};

/// `auto` in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "none; rollouts of textbook rules (Bertsekas, Castañón 1999)",
    among_all: false,
    guarantee: "its order is never estimated to cost more than the best rule that it tried, apart from 0.5 % or the error of the estimates",
    params: &[
        Param::new(
            "effort",
            "1",
            Values::Real(0.0, 100.0),
            "the work of decisions: 0 only follows the rule for the metric, 10 tries ten times as many orders",
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
    "When a flow arrives, and several phases want the free slots, auto decides on an order of the active flows. It orders them by each rule of the policy `rule` and simulates the tasks of each order, so it estimates when every flow completes. The \
     order in force, with new flows inserted by its rule, stays unless another is estimated to cost at least 0.5 % less. From the best \
     order, a search moves one flow after another at random and keeps each move that lowers the cost. Free slots follow the order until \
     the next decision.",
    "Orders are compared also as if every flow completed later, because more flows will arrive, so slack goes to flows that are close to \
     their due dates. Map slots and reduce slots: the jobs of a flow are also tried in Johnson's order, a short map phase before much other \
     work first. Machines of mixed speed: the fastest free slots are used first, and a slow one stays free if the faster ones would finish the \
     rest of the phase before it finished one task.",
    "ends=yes: auto decides also when two flows have ended and none has arrived.",
    "effort=E: the work of all decisions is at most a multiple of the work of assigning slots; it is counted and not timed, so a run is \
     reproducible. With effort=0, and where nothing is left, the order is that of the rule for the metric: slope for linear costs, atc for \
     tardiness, moore for the number of late flows, due for a maximum. The same rule alone is followed while recent phases took on average \
     20 % more or less than estimated, or nothing is known of a quarter of the active phases.",
    "wait=K: a flow whose response time reaches K times its estimated run time on an empty cluster goes before all others.",
    "headroom=yes: tasks longer than the median run time of the last 100 flows leave a share of the slots free, the one that would have cost least for \
     these flows.",
];

/// The order in force is replaced only by an order whose estimated cost is lower by this share, or noise
/// would decide.
const GAIN: f64 = 0.005;

/// The number of orders that a decision tries at effort 1.
const ROLLOUTS: f64 = 200.0;

/// The work limit of a decision for each of its rollouts ([`Evaluator::work`]). With up to some hundreds of
/// phases, all rollouts are made; with more phases fewer, so that a decision takes about as long.
const WORK: u64 = 1_000;

/// The factor on the number of tried orders if all active flows have just arrived together: nothing has
/// started, and no other decision matters as much.
const AT_FIRST: u64 = 10;

/// The number of flows that end before a decision without an arrival. If as many flows arrive as end, this
/// adds a third of decisions.
const ENDED: usize = 2;

#[derive(Clone, Debug)]
pub struct Auto {
    objective: Objective,
    portfolio: Vec<(Rule, RuleParams)>,
    /// The number of orders that a decision may try.
    rollouts: u64,
    budget: WorkBudget,
    /// The first rule of the next decision.
    turn: usize,
    /// Whether it also decides when flows end.
    ends: bool,
    /// The number of flows that ended since the last decision.
    ended: usize,
    /// Whether something has happened since the last decision that may change the order.
    is_due: bool,
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

/// The last decision with rollouts.
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
        let order = Order { rule: own(&portfolio, objective), flows: None };
        Self {
            objective,
            portfolio,
            rollouts: (ROLLOUTS * settings.real("effort")).ceil() as u64,
            budget: WorkBudget::new(settings.real("effort")),
            turn: 0,
            ends: settings.choice("ends") == "yes",
            ended: 0,
            is_due: false,
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
        self.order.rule = self.own();
        self
    }

    /// The same with this number of orders that a decision tries.
    #[must_use]
    pub fn with_rollouts(self, rollouts: u64) -> Self {
        Self { rollouts, ..self }
    }

    /// The same with a share of each slot kind that tasks longer than `theta` never hold.
    #[must_use]
    pub fn with_headroom(mut self, theta: Span, share: f64) -> Self {
        self.headroom = Headroom::fixed(theta, share);
        self
    }

    /// The position in the portfolio of the rule for the metric.
    fn own(&self) -> usize {
        own(&self.portfolio, self.objective)
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
    fn admit(&mut self, events: &[Event], view: &View<'_>) {
        self.residual.update(view);
        for event in events {
            let Event::FlowArrived(flow) = *event else { continue };
            // A flow without work has finished already.
            let Some(left) = self.residual.of_flow(flow).copied().filter(|_| is_live(flow, view)) else {
                continue;
            };
            self.budget.earn(1 + view.instance.flow(flow).phases().count());
            self.serving.admit(flow, &self.headroom, view);
            self.prospect.note(left.area);
            self.serving.limits.set(flow, view.instance.flow(flow).release, self.wait * left.rem);
            let known = RecurringFlow::of(left, &self.residual, view);
            self.announced.note(&known, view.instance.flow(flow).next_release, view.now);
            self.headroom.note(known);
        }
        if self.budget.has_left() {
            let before = self.headroom.work();
            if self.headroom.choose(self.objective, view) {
                let live = view.instance.flows().keys().filter(|&flow| is_live(flow, view));
                let phases = live.flat_map(|flow| view.instance.flow(flow).phases());
                self.serving.headroom.set(&self.headroom, phases, view);
                self.serving.sort(view);
            }
            self.budget.spend(self.headroom.work() - before);
        }
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
    fn decide(&mut self, view: &View<'_>) {
        self.residual.measure(view);
        let phases = self.job_order.phases(&self.residual, view);
        let is_doubtful = self.doubts(&phases, view);
        let usable = usable(&self.portfolio, is_doubtful.then_some(self.objective));
        // Of the rule for the metric alone, the order by what is known now.
        let follows = is_doubtful && usable.len() == 1;
        if follows || !usable.contains(&self.order.rule) {
            self.order = Order { rule: usable[0], flows: None };
        }
        let live: Vec<FlowId> = self.residual.flows.iter().map(|left| left.flow).collect();
        let covered = self.budget.begin(phases.len(), FEWEST + 1);
        let has_several = |flow: &FlowId| view.instance.flow(*flow).jobs().len() > 1;
        let has_job_orders = view.instance.cluster().is_map_reduce() && live.iter().any(has_several);
        let best = if let Some(covered) = covered.filter(|_| !follows || has_job_orders) {
            let last = self.choices.last().map(|choice| choice.at);
            let is_new = |flow: &FlowId| last.is_none_or(|last| view.instance.flow(*flow).release > last);
            let times = if live.len() > 1 && live.iter().all(is_new) { AT_FIRST } else { 1 };
            // A single rollout is always that of a rule.
            let rollouts = if self.rollouts > 1 { times * self.rollouts } else { 1 };
            let rules = usable.len().min(rollouts.div_ceil(2) as usize);
            let searched = if is_doubtful { 0 } else { rollouts.saturating_sub(rules as u64) };
            let gain = GAIN.max(self.estimate_error.noise(phases.len()));
            let work = covered.min(WORK * rollouts);
            let effort = Effort { gain, searched, own: self.own(), turn: self.turn, rules, work };
            self.look_ahead(&usable, &live, &phases, has_job_orders, effort, view)
        } else {
            self.order = Order { rule: self.own(), flows: None };
            let scene = RuleContext::of(&self.residual, view, []);
            let (order, by) = self.order.in_force(&self.portfolio, &scene, &live);
            Best { order, by, estimated: None, announced: Vec::new(), tried: 0 }
        };
        self.turn = (self.turn + best.tried) % usable.len();
        self.adopt(best, &live, view);
    }

    /// The best order of those whose costs are estimated by rollouts.
    fn look_ahead(
        &mut self,
        usable: &[usize],
        live: &[FlowId],
        phases: &[PhaseId],
        has_job_orders: bool,
        effort: Effort,
        view: &View<'_>,
    ) -> Best {
        let Self { residual, headroom, announced, evaluator, serving, budget, .. } = self;
        let backlog: f64 = residual.flows.iter().map(|left| left.rem).sum();
        let announced = announced.within(backlog, view.now);
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
        set_up(evaluator, phases);
        let to_come = (live.len() as u32..).zip(announced);
        let scene =
            RuleContext::of(residual, view, to_come.map(|(number, known)| known.candidate(number, view.now)));
        let mut costs: Vec<&CostFn> = live.iter().map(|&flow| &view.instance.flow(flow).cost).collect();
        costs.extend(announced.iter().map(|known| &known.cost));
        let delay = self.prospect.delay(self.objective, &costs);
        let before = evaluator.work();
        let (order, by) = self.order.in_force(&self.portfolio, &scene, live);
        let mut looking = OrderCosts { evaluator, costs, objective: self.objective, now: view.now, delay };
        let incumbent = looking.estimated(order.flows.as_deref(), None, None);
        budget.note_rollout(looking.evaluator.work() - before, phases.len());
        let announced = announced.iter().map(|known| known.at).collect();
        let held = Best { order, by, estimated: Some(incumbent), announced, tried: 0 };
        let mut best = looking.best(&self.portfolio, usable, &scene, held, effort, &mut self.rng);
        if has_job_orders {
            let other = self.job_order.other();
            set_up(looking.evaluator, &other.phases(residual, view));
            let under_other = looking.estimated(best.order.flows.as_deref(), best.estimated, None);
            if best.estimated.is_some_and(|least| under_other.beats(least, effort.gain)) {
                (self.job_order, best.estimated) = (other, Some(under_other));
            } else {
                set_up(looking.evaluator, phases);
            }
        }
        budget.spend(evaluator.work() - before);
        best
    }

    /// Serves by this order from now on.
    fn adopt(&mut self, best: Best, flows: &[FlowId], view: &View<'_>) {
        let Best { order, by, estimated, announced, .. } = best;
        let (rule, knobs) = self.portfolio[order.rule];
        let spelled = rule.spelled(knobs).into();
        let (cost, n_flows) = (estimated.map(|estimated| estimated.cost), flows.len() as u32);
        self.choices.push(Choice { at: view.now, rule: spelled, by, cost, flows: n_flows });
        self.decided = estimated.map(|estimated| Decided {
            rule: rule.name,
            estimated,
            announced,
            order: order.flows.clone(),
        });
        let named =
            |order: Vec<u32>| order.iter().filter_map(|&at| flows.get(at as usize).copied()).collect();
        self.order = Order { rule: order.rule, flows: order.flows.map(named) };
        let phases = self.job_order.phases(&self.residual, view);
        self.serving.headroom.set(&self.headroom, phases.iter().copied(), view);
        self.serving.by(self.order.flows.as_deref(), flows, &phases, view);
    }
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
        if events.iter().any(is_arrival) {
            self.admit(events, view);
            self.is_due = true;
        }
        let ended = if self.estimate_error.is_little() { ENDED } else { 1 };
        self.is_due |= self.ends && self.ended >= ended;
        self.serving.update(events, view);
        if self.is_due && self.budget.is_open() && self.serving.is_contended(view) {
            self.decide(view);
            self.serving.sort(view);
            (self.is_due, self.ended) = (false, 0);
        }
        out.extend(self.serving.limits.wake(view.now));
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let grant = self.serving.next(ask, view);
        self.budget.earn(usize::from(grant.is_some()));
        grant
    }
}

#[cfg(test)]
mod tests;
