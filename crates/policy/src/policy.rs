//! What a scheduling policy is: events in, decisions out. No clock, no I/O, no randomness.

use std::sync::Arc;

use slackline_model::{FlowId, JobId, MachineId, PhaseId, SlotKind, Time};

use crate::event::Event;
use crate::view::View;

/// A scheduling policy.
///
/// All events of one instant come in one call, in a fixed order, and are already in the view. The
/// policy answers by pushing targets or placements that changed, or, if its style is
/// [`Style::Priorities`], by being asked for the next phase whenever a slot is free.
pub trait Policy {
    /// The name in the registry.
    fn name(&self) -> &str;

    /// How the policy decides; asked once, before the first event.
    fn style(&self) -> Style {
        Style::Priorities
    }

    /// Whether the policy promises to keep the minima of phases and pools; the judge then holds it to
    /// them. Under [`Style::Targets`] the assignment layer serves phases below their minimum first; in
    /// the other styles the policy has to see to it by itself.
    fn keeps_minima(&self) -> bool {
        false
    }

    /// Whether reduces that wait for maps may take slots that no target claims ([`Style::Targets`]). If not,
    /// they take what their own target gives them, and the slots stay free for phases that can work there.
    fn fills_early(&self) -> bool {
        true
    }

    /// Why the policy cannot decide any more, if it cannot: the driver asks before the first event and after
    /// every call, carries out nothing more of it, and ends the run ([`crate::Figures::failure`]). For
    /// policies whose decisions come from elsewhere, such as another program.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// The policy's limit that keeps a job from one more slot now, as a sentence; `None` if the policy has no
    /// such limit. Called when no event is left.
    fn limit(&self, job: JobId, view: &View<'_>) -> Option<String> {
        let _ = (job, view);
        None
    }

    /// Something happened. `out` receives what the policy wants changed.
    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>);

    /// The answers to flows with a deadline at their arrival, for policies with admission; by the flow's
    /// index in its document ([`slackline_model::instance::Flow::place`]).
    fn admissions(&self) -> &[(FlowId, Admission)] {
        &[]
    }

    /// What the policy chose when, for policies that choose between rules.
    fn choices(&self) -> &[Choice] {
        &[]
    }

    /// The same policy once more, as it is now, for a look ahead ([`crate::Driver::fork`]); `None` if it
    /// cannot be copied.
    fn copy(&self) -> Option<Box<dyn Policy>> {
        None
    }

    /// The phase that should get the next free slot ([`Style::Priorities`] only), or `None` if no phase of
    /// that slot kind, outside `ask.skip`, can run or is to run there: a policy may leave slots free, and is
    /// asked again when something happens. A phase that is granted must be runnable ([`View::runnable`] above
    /// 0); the call is repeated while slots are free.
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
    /// The rule that the order came from, with its parameters: `due:x=0.1:tail=no`.
    pub rule: Arc<str>,
    /// How that order was come to.
    pub by: ChosenBy,
    /// The estimated cost of the flows that were there, by the objective.
    pub cost: f64,
    /// How many flows were there.
    pub flows: u32,
}

/// How a policy that chooses between rules came to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChosenBy {
    /// It was in force and stayed; flows that came were put in by the rule that it came from.
    Kept,
    /// It is that of the rule.
    Rule,
    /// A search found it near one of the rule.
    Search,
}

impl ChosenBy {
    /// The word in documents.
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
    /// Whether its deadline can be met with the whole cluster; true without one.
    pub feasible: bool,
    /// When the flow is done if it has the whole cluster from its arrival on.
    pub earliest_completion: Time,
}

/// How a policy decides. Closed by design, as the papers' policies are of these three kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// It is asked for the next phase of each free slot.
    Priorities,
    /// It pushes how many slots each phase should hold; the most under-allocated phase is served first.
    Targets,
    /// It pushes which machine runs which tasks, in which order. Reduces never take slots early.
    Placements,
}

/// What a policy wants changed.
///
/// Closed by design: the assignment layer has to carry out every action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// How many slots a phase should hold from now on ([`Style::Targets`]).
    Target {
        /// The phase.
        phase: PhaseId,
        /// How many slots; fractions count when phases are compared.
        slots: f64,
    },
    /// Appends tasks to a machine's queue ([`Style::Placements`]). The queue is served from its head;
    /// a head whose phase is not ready yet keeps the machine's slot waiting.
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
    /// Asks for [`Event::Wake`] at that time.
    WakeAt(Time),
}

/// A free slot asks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// The slot kind of the free slots.
    pub slot_kind: SlotKind,
    /// The machine they are on; `None` if they are free all over the cluster.
    pub machine: Option<MachineId>,
    /// The number of free slots there. The driver takes those of the highest estimated speed first
    /// ([`crate::BusySlots::classes`]). A policy that wants only those grants no more tasks than there are of
    /// them.
    pub slots: u32,
    /// Phases that were granted already and wait for a slot nearer to their input.
    pub skip: &'a [PhaseId],
}

/// The answer to an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The phase that is next.
    pub phase: PhaseId,
    /// How many of its tasks may start at once. More than can run or fit is cut down.
    pub tasks: u32,
}
