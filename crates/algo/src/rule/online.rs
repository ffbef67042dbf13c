//! The policy `rule`: flows in the order of a rule, which is made again when a flow arrives or is over.

use std::cmp::Reverse;

use slackline_model::instance::Flow;
use slackline_model::params::{Param, Settings, Values};
use slackline_model::{FlowId, Key, PhaseId, Time};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, Policy, ReadyQueue, View};

use super::orders::{Candidate, NAMES, Rule, RuleContext, RuleKind, RuleParams};
use super::residual::Residual;
use crate::machines::Machines;
use crate::registry::{Capabilities, PolicyEntry};

/// `rule` in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "none; textbook rules for one machine",
    among_all: false,
    params: &[
        Param::new(
            "order",
            "area",
            Values::Choice(NAMES),
            "the rule that orders flows by their remaining work",
        ),
        Param::new("k", "0.5", Values::Real(0.01, 100.0), "how far atc looks ahead, in mean areas of flows"),
        Param::new(
            "x",
            "0.1",
            Values::Real(0.0, 1.0),
            "the target cost of due: 0 is the smallest possible maximum, 1 the maximum if every flow finished last",
        ),
        Param::new(
            "tail",
            "yes",
            Values::Choice(&["yes", "no"]),
            "whether due subtracts the remaining time of the flow from its due date",
        ),
    ],
    capabilities: Capabilities::WITH_SPEEDS,
    ..PolicyEntry::new(
        "rule",
        "a textbook rule on the remaining work of each flow, such as area, slope, atc or moore",
        |_, _, settings| Box::new(ByRule::new(settings)),
    )
};

#[derive(Clone, Debug)]
pub struct ByRule {
    order: Order,
    serving: ByPlace<Place>,
}

/// The order of a rule at the last arrival or end of a flow.
#[derive(Clone, Debug)]
struct Order {
    rule: Rule,
    knobs: RuleParams,
    residual: Residual,
    /// The rank of each active flow, if all flows are put in order at once.
    rank: IdTable<FlowId, u32>,
}

/// Serves the phases that are ready by their places.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPlace<K> {
    queue: ReadyQueue<K>,
    machines: Machines,
}

impl<K: Ord + Copy> ByPlace<K> {
    /// Applies the events of an instant. `place` is called when a phase becomes ready.
    pub(crate) fn note(&mut self, events: &[Event], view: &View<'_>, place: impl FnMut(PhaseId) -> K) {
        self.machines.look_again();
        self.queue.update(events, view, place);
    }

    pub(crate) fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.machines.grant(ask, view, |ask| self.queue.first(ask, view))
    }
}

/// The place of a phase: that of its flow, then the longest tail first. Ties go to the flow that was released
/// first, then to the lower id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    key: Key,
    flow: Option<(Time, FlowId)>,
    tail: Reverse<Key>,
}

impl Order {
    /// The place of a phase. O(1).
    fn place(&self, phase: PhaseId, view: &View<'_>) -> Place {
        let flow = view.instance.flow_of(phase);
        let tail = Reverse(Key::new(self.residual.phases[phase].tail));
        match self.rule.how {
            RuleKind::Together => Place { tail, ..Place::default() },
            RuleKind::Key(key) => {
                let left =
                    self.residual.of_flow(flow).expect("invariant: flows are measured when they arrive");
                let candidate = Candidate::of(0, left, view, Time::ZERO);
                let release = view.instance.flow(flow).release;
                Place { key: Key::new(key(&candidate)), flow: Some((release, flow)), tail }
            }
            RuleKind::TimedKey(_) | RuleKind::Order(_) => {
                Place { key: Key::new(f64::from(self.rank[flow])), flow: None, tail }
            }
        }
    }

    /// Puts all flows in order. O(n log n).
    fn rank(&mut self, view: &View<'_>) {
        self.residual.measure(view);
        let scene = RuleContext::of(&self.residual, view, []);
        for (flow, rank) in scene.flows.iter().zip(self.rule.ranks(&scene, self.knobs)) {
            self.rank[flow.left.flow] = rank;
        }
    }
}

impl ByRule {
    /// The policy with these settings of [`ENTRY`].
    pub fn new(settings: &Settings) -> Self {
        let rule = Rule::named(settings.choice("order")).expect("invariant: the parameter names a rule");
        let knobs = RuleParams {
            k: settings.real("k"),
            x: settings.real("x"),
            tail: settings.choice("tail") == "yes",
        };
        let residual = if rule.needs_plans() { Residual::with_plans() } else { Residual::default() };
        let order = Order { rule, knobs, residual, rank: IdTable::default() };
        Self { order, serving: ByPlace::default() }
    }

    /// The order from now on. O(changed · log n) if the keys of flows that do not run stay, else O(n log n).
    fn sort(&mut self, view: &View<'_>) {
        let Self { order, serving } = self;
        if matches!(order.rule.how, RuleKind::TimedKey(_) | RuleKind::Order(_)) {
            order.rank(view);
            serving.queue.rekey(view, |phase| order.place(phase, view));
            return;
        }
        order.residual.update(view);
        for &flow in order.residual.updated() {
            for phase in view.instance.flow(flow).phases().filter(|&phase| view.phase(phase).is_ready()) {
                serving.queue.move_to(phase, order.place(phase, view), view);
            }
        }
    }
}

/// The phases of live flows, the longest tail first; ties by id. O(n log n).
pub fn by_tail(residual: &Residual, view: &View<'_>) -> Vec<PhaseId> {
    let flows = residual.flows.iter().map(|left| view.instance.flow(left.flow));
    let mut phases: Vec<PhaseId> = flows.flat_map(Flow::phases).collect();
    sort_by_tail(&mut phases, residual);
    phases
}

/// The longest tail first; ties by id. O(n log n).
pub(crate) fn sort_by_tail(phases: &mut [PhaseId], residual: &Residual) {
    phases.sort_by_cached_key(|&phase| (Reverse(Key::new(residual.phases[phase].tail)), phase));
}

impl Policy for ByRule {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        self.order.residual.note(events, view);
        let changes = |event: &Event| matches!(event, Event::FlowArrived(_)) || event.over().is_some();
        if events.iter().any(changes) {
            self.sort(view);
        }
        let Self { order, serving } = self;
        serving.note(events, view, |phase| order.place(phase, view));
        order.rank.forget(events.iter().filter_map(Event::over));
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.serving.next(ask, view)
    }
}
