//! How far one flow is: requirements fired, tasks started, and the rank that follows.

use slackline_model::Time;

use crate::woha::plan::{Plan, Step};
use crate::woha::scheduler::Goal;

/// What a flow without deadline is ahead of its plan, beside its started tasks: more than any flow
/// has tasks, so that it comes after all others (deviation D10).
const NO_DEADLINE: i64 = 1 << 52;

/// What flows are ordered by: the smallest is served first; ties go to the lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Tasks started less tasks required: the lag, negated.
    pub ahead: i64,
    /// When the flow is to be done.
    pub due: Time,
}

/// The state of one flow (E4).
#[derive(Clone, Debug)]
pub(super) struct Record {
    steps: Vec<Step>,
    goal: Goal,
    /// How many requirements have fired.
    fired: u32,
    /// Lanes it is in.
    pub(super) lanes: [bool; 2],
    /// What the last requirement that fired asks for.
    required: i64,
    /// ρ: tasks started.
    started: i64,
}

impl Record {
    pub(super) fn new(plan: Plan, goal: Goal) -> Self {
        let steps = if matches!(goal, Goal::Deadline(_)) { plan.into_steps() } else { Vec::new() };
        Self { steps, goal, fired: 0, lanes: [false; 2], required: 0, started: 0 }
    }

    pub(super) fn rank(&self) -> Rank {
        let ahead = self.started - self.required;
        match self.goal {
            Goal::Deadline(due) | Goal::Hopeless(due) => Rank { ahead, due },
            Goal::Whenever => Rank { ahead: ahead + NO_DEADLINE, due: Time(u64::MAX) },
        }
    }

    /// When the next requirement falls due, if there is one. The time may have passed already.
    pub(super) fn next_change(&self) -> Option<Time> {
        let Goal::Deadline(due) = self.goal else { return None };
        let step = self.steps.get(self.fired as usize)?;
        Some(Time(due.0.saturating_sub(step.ttd.0)))
    }

    /// Fires the requirements that are due by `now`.
    pub(super) fn fire(&mut self, now: Time) {
        while self.next_change().is_some_and(|at| at <= now) {
            self.required = i64::try_from(self.steps[self.fired as usize].req).unwrap_or(i64::MAX);
            self.fired += 1;
        }
    }

    /// Counts tasks that were started, or, negative, that must run again.
    pub(super) fn count(&mut self, tasks: i64) {
        self.started += tasks;
    }
}
