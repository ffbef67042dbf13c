//! The policy `rule`: flows in the order of a rule, which is made again when a flow arrives or is over.

use std::cmp::Reverse;

use slackline_model::instance::Flow;
use slackline_model::params::{Param, Settings, Values};
use slackline_model::{Key, PhaseId};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, Policy, ReadyQueue, View};

use super::orders::{NAMES, Rule, RuleContext, RuleParams};
use super::residual::Residual;
use crate::machines::Machines;
use crate::registry::{Capabilities, PolicyEntry};

/// `rule` in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "none; the rules of the textbook on one machine",
    among_all: false,
    params: &[
        Param::new(
            "order",
            "area",
            Values::Choice(NAMES),
            "the rule that orders flows by what is left of them",
        ),
        Param::new("k", "0.5", Values::Real(0.01, 100.0), "how far atc looks ahead, in mean areas of flows"),
        Param::new(
            "x",
            "0.1",
            Values::Real(0.0, 1.0),
            "the level due aims at: 0 the least the largest cost can be, 1 what it is if every flow were last",
        ),
        Param::new(
            "tail",
            "yes",
            Values::Choice(&["yes", "no"]),
            "whether due counts back from the date the time that is left of the flow",
        ),
    ],
    capabilities: Capabilities::WITH_SPEEDS,
    ..PolicyEntry::new(
        "rule",
        "a rule of the textbook on what is left of each flow, such as area, slope, atc or moore",
        |_, _, settings| Box::new(ByRule::new(settings)),
    )
};

#[derive(Clone, Debug)]
pub struct ByRule {
    rule: Rule,
    knobs: RuleParams,
    residual: Residual,
    serving: ByPlace,
}

/// Serves the phases that are ready by their places.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPlace {
    /// Place of each phase of a live flow: the rank of its flow, and its place by tail among all phases.
    pub(crate) place: IdTable<PhaseId, Place>,
    queue: ReadyQueue<Place>,
    machines: Machines,
}

impl ByPlace {
    /// All phases may have other places than before.
    fn sort(&mut self, view: &View<'_>) {
        self.queue.rekey(view, |phase| self.place[phase]);
    }

    /// Takes in events, when the phases of flows that arrived have their places.
    pub(crate) fn note(&mut self, events: &[Event], view: &View<'_>) {
        self.machines.look_again();
        self.queue.update(events, view, |phase| self.place[phase]);
        for flow in events.iter().filter_map(Event::over) {
            self.place.forget(view.instance.flow(flow).phases());
        }
    }

    pub(crate) fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.machines.grant(ask, view, |ask| self.queue.first(ask, view))
    }
}

/// The rank of its flow, and the place of a phase by tail.
pub(crate) type Place = (u32, u32);

impl ByRule {
    /// The policy with these settings of [`ENTRY`].
    pub fn new(settings: &Settings) -> Self {
        let rule = Rule::named(settings.choice("order")).expect("invariant: the parameter names a rule");
        let knobs = RuleParams {
            k: settings.real("k"),
            x: settings.real("x"),
            tail: settings.choice("tail") == "yes",
        };
        Self {
            rule,
            knobs,
            residual: if rule.needs_plans() { Residual::with_plans() } else { Residual::default() },
            serving: ByPlace::default(),
        }
    }

    /// The order from now on.
    fn sort(&mut self, view: &View<'_>) {
        self.residual.measure(view);
        let scene = RuleContext::of(&self.residual, view, []);
        let ranks = self.rule.ranks(&scene, self.knobs);
        for (flow, &rank) in scene.flows.iter().zip(&ranks) {
            for phase in view.instance.flow(flow.left.flow).phases() {
                self.serving.place[phase].0 = rank;
            }
        }
        for (at, phase) in (0..).zip(by_tail(&self.residual, view)) {
            self.serving.place[phase].1 = at;
        }
        self.serving.sort(view);
    }
}

/// The phases of live flows, the longest tail first; ties by id. O(n log n).
pub fn by_tail(residual: &Residual, view: &View<'_>) -> Vec<PhaseId> {
    let flows = residual.flows.iter().map(|left| view.instance.flow(left.flow));
    let mut phases: Vec<PhaseId> = flows.flat_map(Flow::phases).collect();
    phases.sort_by_cached_key(|&phase| (Reverse(Key::new(residual.phases[phase].tail)), phase));
    phases
}

impl Policy for ByRule {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        self.residual.note(events, view);
        let changes = |event: &Event| matches!(event, Event::FlowArrived(_)) || event.over().is_some();
        if events.iter().any(changes) {
            self.sort(view);
        }
        self.serving.note(events, view);
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.serving.next(ask, view)
    }
}
