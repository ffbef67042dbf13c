//! Where everything is known beforehand: the order of flows that a search finds to cost least, and the policy that serves by
//! one.
//!
//! The search looks at a moment at which all flows have arrived and nothing has begun, and holds each back until its release.

use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{FlowId, Objective, PhaseId, Seed, Time};
use slackline_policy::{Action, Ask, Event, Grant, Grown, Policy, ReadyQueue, Style, View};

use super::evaluate::Evaluator;
use super::online::{Believed, Looking, numbers, portfolio};
use crate::rule::online::{Place, by_tail};
use crate::rule::orders::Scene;
use crate::rule::residual::Residual;

/// How a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// What flows cost together.
    pub objective: Objective,
    /// How many orders near the best one are tried.
    pub rollouts: u64,
    /// Where its random moves begin.
    pub seed: u64,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// All flows that are not over.
    pub order: Vec<FlowId>,
    /// What serving them in this order is believed to cost.
    pub believed: Believed,
}

/// How many orders are tried between two questions whether to stop.
const AT_ONCE: u64 = 50;

impl Search {
    /// The cheapest order found from those of all rules and from `starts`, which are of all flows; none if some flow never
    /// completes. `view` shows all flows with nothing begun, and `released` says when each may. `stop` is asked now and
    /// then. O((rules + rollouts) · rollout).
    pub fn run(
        &self,
        view: &View<'_>,
        released: impl Fn(FlowId) -> Time,
        starts: &[Vec<FlowId>],
        stop: impl Fn() -> bool,
    ) -> Option<Found> {
        let mut residual = Residual::default();
        residual.measure(view);
        let mut evaluator = Evaluator::default();
        evaluator.look(view, by_tail(&residual, view));
        evaluator.hold_back(view.instance.flows().keys().map(|flow| (flow, released(flow))));
        let scene = Scene::of(&residual, view);
        let mut looking = Looking { evaluator: &mut evaluator, view, objective: self.objective };
        let ruled =
            portfolio().into_iter().filter_map(|(rule, knobs)| numbers(rule, knobs, &scene, &looking));
        let given =
            starts.iter().map(|order| order.iter().filter_map(|&flow| looking.number(flow)).collect());
        let orders: Vec<Vec<u32>> = ruled.chain(given).collect();
        let mut best: Option<(Believed, Vec<u32>)> = None;
        for order in orders {
            let believed = looking.believed(Some(&order));
            if best.as_ref().is_none_or(|(least, _)| believed.beats(*least, 0.0)) {
                best = Some((believed, order));
            }
        }
        let (mut least, mut order) = best.filter(|(believed, _)| believed.cost.is_finite())?;
        let mut rng: ChaCha8Rng = random::rng(Seed(self.seed), "auto", 1);
        let mut left = self.rollouts;
        while left > 0 && !stop() {
            let now = left.min(AT_ONCE);
            least = looking.search(&mut order, least, now, &mut rng);
            left -= now;
        }
        let flows = evaluator.flows();
        Some(Found { order: order.iter().map(|&flow| flows[flow as usize]).collect(), believed: least })
    }
}

/// Serves flows in an order, and phases of a flow by their tails when it arrives, the longest first.
#[derive(Clone, Debug)]
pub struct InOrder {
    /// By flow of the document: its rank.
    rank: Vec<u32>,
    residual: Residual,
    place: Grown<PhaseId, Place>,
    queue: ReadyQueue<Place>,
}

impl InOrder {
    /// The policy for an order of all flows of a document, as that has them.
    pub fn new(order: &[FlowId]) -> Self {
        let n = order.iter().map(|flow| flow.index() + 1).max().unwrap_or(0);
        // Flows that are over before they begin have no place in an order, and no phase that asks for one.
        let mut rank = vec![u32::MAX; n];
        (0..).zip(order).for_each(|(at, flow)| rank[flow.index()] = at);
        Self { rank, residual: Residual::default(), place: Grown::default(), queue: ReadyQueue::new() }
    }

    /// Gives the phases of flows that arrive their places.
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

    fn style(&self) -> Style {
        Style::Priorities
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
        let place = &self.place;
        self.queue.update(events, view, |phase| place[phase]);
        for flow in events.iter().filter_map(Event::over) {
            self.place.forget(view.instance.flow(flow).phases());
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

/// Starts nothing: for a look at flows that have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl Policy for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, _: &[Event], _: &View<'_>, _: &mut Vec<Action>) {}

    fn next(&mut self, _: &Ask<'_>, _: &View<'_>) -> Option<Grant> {
        None
    }
}
