//! For workloads that are known in advance: a search for the order of flows with the lowest cost, and the
//! policy that serves by an order.
//!
//! The search evaluates a state in which all flows have arrived and nothing has started, and holds each flow
//! back until its release.

use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{FlowId, Objective, PhaseId, Seed, Time};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, Policy, View};

use crate::auto::evaluate::Evaluator;
use crate::auto::order_search::{EstimatedCost, OrderCosts, numbers, portfolio};
use crate::auto::template::Template;
use crate::rule::online::{ByPlace, by_tail};
use crate::rule::orders::RuleContext;
use crate::rule::residual::Residual;

/// The settings of a search.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The objective.
    pub objective: Objective,
    /// The number of orders near the best one that are tried.
    pub rollouts: u64,
    /// The seed of its random moves.
    pub seed: u64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// All unfinished flows.
    pub order: Vec<FlowId>,
    /// The estimated cost of serving them in this order.
    pub estimated: EstimatedCost,
}

/// The number of orders between two calls of `stop`.
const AT_ONCE: u64 = 50;

impl Search {
    /// The cheapest order found, from those of all rules and from `starts`, which contain all flows; `None`
    /// if some flow never completes. `view` shows all flows before any start, and `released` has their
    /// releases. `stop` is called at intervals. O((rules + rollouts) · rollout).
    pub fn run(
        &self,
        view: &View<'_>,
        released: impl Fn(FlowId) -> Time,
        starts: &[Vec<FlowId>],
        stop: impl Fn() -> bool,
    ) -> Option<SearchResult> {
        let residual = Residual::of(view);
        let here: Vec<FlowId> = residual.flows.iter().map(|left| left.flow).collect();
        // Numbers are by release.
        let mut coming: Vec<(Time, usize, FlowId)> =
            here.iter().enumerate().map(|(at, &flow)| (released(flow), at, flow)).collect();
        coming.sort_unstable();
        let template =
            |&(release, _, flow): &(Time, usize, FlowId)| (Template::of(flow, &residual, view), release);
        let templates: Vec<(Template, Time)> = coming.iter().map(template).collect();
        let mut evaluator = Evaluator::default();
        evaluator.look_back(view, templates.iter().map(|(template, at)| (template, *at)));
        let mut number = vec![0; coming.len()];
        (0..).zip(&coming).for_each(|(new, &(_, at, _))| number[at] = new);
        let costs = coming.iter().map(|&(_, _, flow)| &view.instance.flow(flow).cost).collect();
        let scene = RuleContext::of(&residual, view, []);
        let mut looking = OrderCosts {
            evaluator: &mut evaluator,
            costs,
            objective: self.objective,
            now: view.now,
            delay: 0.0,
        };
        let ruled = portfolio().into_iter().filter_map(|(rule, knobs)| numbers(rule, knobs, &scene));
        let place = |flow: &FlowId| here.binary_search(flow).ok().map(|at| at as u32);
        let given = starts.iter().map(|order| order.iter().filter_map(place).collect());
        let orders = ruled
            .chain(given)
            .map(|order: Vec<u32>| -> Vec<u32> { order.into_iter().map(|at| number[at as usize]).collect() });
        let mut best: Option<(EstimatedCost, Vec<u32>)> = None;
        for order in orders {
            let estimated = looking.estimated(Some(&order), None, None);
            if best.as_ref().is_none_or(|(least, _)| estimated.beats(*least, 0.0)) {
                best = Some((estimated, order));
            }
        }
        let (mut least, mut order) = best.filter(|(estimated, _)| estimated.cost.is_finite())?;
        let mut rng: ChaCha8Rng = random::rng(Seed(self.seed), "auto", 1);
        let mut left = self.rollouts;
        while left > 0 && !stop() {
            let now = left.min(AT_ONCE);
            least = looking.search(&mut order, least, now, u64::MAX, &mut rng);
            left -= now;
        }
        Some(SearchResult {
            order: order.iter().map(|&number| coming[number as usize].2).collect(),
            estimated: least,
        })
    }
}

/// Serves flows in an order, and phases of a flow by their tails when it arrives, the longest first.
#[derive(Clone, Debug)]
pub struct InOrder {
    /// The rank of each flow of the document.
    rank: Vec<u32>,
    residual: Residual,
    /// The rank of its flow, and its place by tail among all phases, of each phase.
    place: IdTable<PhaseId, (u32, u32)>,
    serving: ByPlace<(u32, u32)>,
}

impl InOrder {
    /// The policy for an order of all flows of a document.
    pub fn new(order: &[FlowId]) -> Self {
        let n = order.iter().map(|flow| flow.index() + 1).max().unwrap_or(0);
        // Flows without work have no position in an order, and no phase that needs one.
        let mut rank = vec![u32::MAX; n];
        (0..).zip(order).for_each(|(at, flow)| rank[flow.index()] = at);
        let (residual, place, serving) = Default::default();
        Self { rank, residual, place, serving }
    }

    /// Gives the phases of arriving flows their positions.
    fn place(&mut self, arrived: &[FlowId], view: &View<'_>) {
        self.residual.measure(view);
        for (at, phase) in (0..).zip(by_tail(&self.residual, view)) {
            let flow = view.instance.flow_of(phase);
            if arrived.contains(&flow) {
                let place = view.instance.flow(flow).place.index();
                self.place[phase] = (self.rank.get(place).copied().unwrap_or(u32::MAX), at);
            }
        }
    }
}

impl Policy for InOrder {
    fn name(&self) -> &'static str {
        super::ENTRY.name
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        self.residual.note(events, view);
        let arrival = |event: &Event| match event {
            Event::FlowArrived(flow) => Some(*flow),
            _ => None,
        };
        let arrived: Vec<FlowId> = events.iter().filter_map(arrival).collect();
        if !arrived.is_empty() {
            self.place(&arrived, view);
        }
        let Self { place, serving, .. } = self;
        serving.note(events, view, |phase| place[phase]);
        for flow in events.iter().filter_map(Event::over) {
            place.forget(view.instance.flow(flow).phases());
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.serving.next(ask, view)
    }
}

/// Starts nothing: for a view of flows that have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl Policy for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn on_events(&mut self, _: &[Event], _: &View<'_>, _: &mut Vec<Action>) {}

    fn next(&mut self, _: &Ask<'_>, _: &View<'_>) -> Option<Grant> {
        None
    }
}
