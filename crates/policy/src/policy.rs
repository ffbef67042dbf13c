//! The trait of scheduling policies: a policy receives events and returns decisions. It has no clock, no I/O,
//! no randomness.

use std::sync::Arc;

use slackline_model::{FlowId, JobId, MachineId, PhaseId, SlotKind, Time};

use crate::event::Event;
use crate::view::View;

/// A scheduling policy.
///
/// All events of one instant come in one call, in a fixed order, and the view already includes them. The
/// policy answers with changed targets or placements. With the style [`Style::Priorities`], the driver asks
/// it for the next phase whenever a slot is free.
pub trait Policy {
    /// The name in the registry.
    fn name(&self) -> &str;

    /// How the policy decides; requested once, before the first event.
    fn style(&self) -> Style {
        Style::Priorities
    }

    /// Whether the policy promises to keep the minima of phases and pools; the judge then checks them. Under
    /// [`Style::Targets`] the assignment layer serves phases below their minimum first. In the other styles
    /// the policy itself must ensure this.
    fn keeps_minima(&self) -> bool {
        false
    }

    /// Whether reduces that wait for maps may take slots that no target claims ([`Style::Targets`]). If not,
    /// they take the slots of their own target, and the others stay free for phases that can compute there.
    fn fills_early(&self) -> bool {
        true
    }

    /// Why the policy cannot decide any more, if it cannot. The driver asks before the first event and after
    /// every call. It then carries out no further decision and ends the run ([`crate::Figures::failure`]).
    /// For policies whose decisions come from elsewhere, such as another program.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// The policy's limit that keeps a job from one more slot now, as a sentence; `None` if the policy has no
    /// such limit. Called when no event is left.
    fn limit(&self, job: JobId, view: &View<'_>) -> Option<String> {
        let _ = (job, view);
        None
    }

    /// Handles events. `out` receives the decisions of the policy.
    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>);

    /// The answers to flows with a deadline at their arrival, for policies with admission; by the index of
    /// the flow in its document ([`slackline_model::instance::Flow::place`]).
    fn admissions(&self) -> &[(FlowId, Admission)] {
        &[]
    }

    /// The choices so far, for policies that choose between rules.
    fn choices(&self) -> &[Choice] {
        &[]
    }

    /// A copy of the policy in its present state, to look ahead ([`crate::Driver::fork`]); `None` if it
    /// cannot be copied.
    fn copy(&self) -> Option<Box<dyn Policy>> {
        None
    }

    /// The phase that should get the next free slot ([`Style::Priorities`] only). `None` if no phase of that
    /// slot kind, outside `ask.skip`, can or should run there: a policy may leave slots free, and is asked
    /// again after the next event. A granted phase must be runnable ([`View::runnable`] above 0). The driver
    /// repeats the call while slots are free.
    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let _ = (ask, view);
        None
    }
}

/// A rule that a policy chose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// When.
    pub at: Time,
    /// The rule from which the order was derived, with its parameters: `due:x=0.1:tail=no`.
    pub rule: Arc<str>,
    /// How the order was found.
    pub by: ChosenBy,
    /// The estimated cost of the active flows, by the objective, if it was estimated.
    pub cost: Option<f64>,
    /// The number of active flows.
    pub flows: u32,
}

/// How a policy that chooses between rules found an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChosenBy {
    /// The order in force was kept; flows that arrived were inserted by its rule.
    Kept,
    /// The order is that of the rule.
    Rule,
    /// A search found the order near one of the rule.
    Search,
}

impl ChosenBy {
    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Rule => "rule",
            Self::Search => "search",
        }
    }
}

/// The answer to a flow when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Whether its deadline can be met with the whole cluster; true without a deadline.
    pub feasible: bool,
    /// When the flow is done if it has the whole cluster from its arrival.
    pub earliest_completion: Time,
}

/// How a policy decides. The enum is closed by design: the policies of the papers are of these three kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The driver asks the policy for the next phase of each free slot.
    Priorities,
    /// The policy sets the target number of slots of each phase; the phase furthest below its target is
    /// served first.
    Targets,
    /// The policy sets which machine runs which tasks, in which order. Reduces never take slots early.
    Placements,
}

/// A decision of a policy.
///
/// The enum is closed by design: the assignment layer must carry out every action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The number of slots that a phase should hold from now on ([`Style::Targets`]).
    Target {
        /// The phase.
        phase: PhaseId,
        /// How many slots; fractions count when phases are compared.
        slots: f64,
    },
    /// The target of a phase is the level of its slot kind from now on ([`Style::Targets`]). Only for
    /// policies that fill early ([`Policy::fills_early`]).
    Share(PhaseId),
    /// The target of every phase that shares the level of a slot kind. It changes all of them at once: O(1).
    Level {
        /// The slot kind.
        slot_kind: SlotKind,
        /// How many slots.
        slots: f64,
    },
    /// Appends tasks to the queue of a machine ([`Style::Placements`]). The machine serves its queue from the
    /// head. A head whose phase is not ready yet keeps the slot of the machine idle.
    Place {
        /// The machine.
        machine: MachineId,
        /// The phase.
        phase: PhaseId,
        /// First task.
        first: u32,
        /// How many consecutive tasks.
        count: u32,
    },
    /// Empties all machine queues ([`Style::Placements`]); running tasks continue.
    ClearPlacements,
    /// Requests [`Event::Wake`] at that time.
    WakeAt(Time),
}

/// A request for work for a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// The slot kind of the free slots.
    pub slot_kind: SlotKind,
    /// The machine of the slots; `None` for slots on any machine of the cluster.
    pub machine: Option<MachineId>,
    /// The number of free slots there. The driver uses those of the highest estimated speed first
    /// ([`crate::BusySlots::classes`]). A policy that wants only those grants no more tasks than there are of
    /// them.
    pub slots: u32,
    /// Phases that were granted already and wait for a slot nearer to their input.
    pub skip: &'a [PhaseId],
}

/// The answer to an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The next phase.
    pub phase: PhaseId,
    /// The number of its tasks that may start at once. The driver reduces it to the number that can run and
    /// fit.
    pub tasks: u32,
}
