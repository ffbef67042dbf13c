//! How far one flow is: requirements fired, tasks started, and the rank that follows.

use slackline_model::Time;

use crate::woha::plan::{Plan, Step};
use crate::woha::scheduler::Goal;

/// The unit of a flow's lag behind its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Tasks required by now that were not started, as in the paper.
    #[default]
    Tasks,
    /// When the next task should be started, the earliest first (deviation D13).
    Time,
}

impl Measure {
    /// The rank of a flow whose deadline cannot be met: without requirements (D11), or after all flows whose
    /// deadline can be met (D14).
    pub(super) fn hopeless(self, due: Time, started: i64) -> Rank {
        match self {
            Self::Tasks => Rank { ahead: started, due },
            // More than any instant.
            Self::Time => Rank { ahead: 1 << 61, due },
        }
    }

    /// The rank of a flow without deadline: after all others, fewest started tasks first (deviation D10). No
    /// flow has this number of tasks, and no instant is as late.
    pub(super) fn whenever(self, started: i64) -> Rank {
        let base = match self {
            Self::Tasks => 1 << 52,
            Self::Time => 1 << 62,
        };
        Rank { ahead: base + started, due: Time(u64::MAX) }
    }
}

/// The rank of a flow: the smallest is served first; ties go to the lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// By tasks: started tasks less required ones, the negated lag. By time: the microsecond at which the
    /// next task is due, below zero if that was before time 0.
    pub ahead: i64,
    /// When the flow is to be done.
    pub due: Time,
}

/// The state of one flow (docs/math/woha.md E4).
#[derive(Clone, Debug)]
pub(super) struct Record {
    steps: Vec<Step>,
    goal: Goal,
    measure: Measure,
    /// By tasks: how many requirements have fired. By time: how many the started tasks fulfil.
    past: u32,
    /// Slot kinds it is in.
    pub(super) slot_kinds: [bool; 2],
    /// By tasks: the number in the last requirement that fell due.
    required: i64,
    /// ρ: tasks started.
    started: i64,
    /// By time: whether the next task should have been started before now, and the flow gives way.
    overdue: bool,
}

impl Record {
    pub(super) fn new(plan: Plan, goal: Goal, measure: Measure) -> Self {
        let follows = matches!(goal, Goal::Deadline(_) | Goal::Follow(_));
        let steps = if follows { plan.into_steps() } else { Vec::new() };
        Self {
            steps,
            goal,
            measure,
            past: 0,
            slot_kinds: [false; 2],
            required: 0,
            started: 0,
            overdue: false,
        }
    }

    pub(super) fn rank(&self) -> Rank {
        match (self.goal, self.measure) {
            (Goal::Deadline(due) | Goal::Follow(due), Measure::Tasks) => {
                Rank { ahead: self.started - self.required, due }
            }
            (Goal::Deadline(due), Measure::Time) if self.overdue => self.measure.hopeless(due, self.started),
            (Goal::Deadline(due) | Goal::Follow(due), Measure::Time) => {
                Rank { ahead: signed(due.0) - signed(self.next_ttd()), due }
            }
            (Goal::Hopeless(due), measure) => measure.hopeless(due, self.started),
            (Goal::Whenever, measure) => measure.whenever(self.started),
        }
    }

    /// How many tasks the flow may start, at least one, before its rank is no longer less than another
    /// flow's; `wins` if it goes first when both are equal.
    pub(super) fn tasks_until(&self, other: Rank, wins: bool) -> u32 {
        let tasks = match (self.goal, self.measure) {
            // Its rank does not change, or only falls.
            (Goal::Deadline(_) | Goal::Hopeless(_), Measure::Time)
                if self.overdue || matches!(self.goal, Goal::Hopeless(_)) =>
            {
                i64::MAX
            }
            (Goal::Deadline(due) | Goal::Follow(due), Measure::Time) => {
                let first = |ttd: u64| {
                    let rank = signed(due.0) - signed(ttd);
                    rank < other.ahead || (wins && rank == other.ahead)
                };
                let before = self.steps.partition_point(|step| first(step.ttd.0));
                match before.checked_sub(1).map(|last| self.steps[last].req) {
                    _ if first(0) => i64::MAX,
                    Some(req) => signed(req) - self.started,
                    None => 1,
                }
            }
            _ => other.ahead - self.rank().ahead + i64::from(wins),
        };
        u32::try_from(tasks.max(1)).unwrap_or(u32::MAX)
    }

    /// The instant when the next requirement falls due or, after the last, the deadline passes, if it changes
    /// the rank; it may have passed already. By time the rank includes the due time, and the only change is
    /// that a flow that does not start its next task in time yields.
    pub(super) fn next_change(&self) -> Option<Time> {
        let (Goal::Deadline(due) | Goal::Follow(due)) = self.goal else { return None };
        // One instant later, because a flow that ends at the deadline is in time.
        let passed = |ttd: u64| Time(due.0.saturating_add(1).saturating_sub(ttd));
        let yields = matches!(self.goal, Goal::Deadline(_));
        match (self.measure, self.steps.get(self.past as usize)) {
            (Measure::Tasks, Some(step)) => Some(Time(due.0.saturating_sub(step.ttd.0))),
            (Measure::Tasks, None) => yields.then(|| passed(0)),
            (Measure::Time, _) => (yields && !self.overdue).then(|| passed(self.next_ttd())),
        }
    }

    /// Fires the requirements that are due by `now`, and gives the flow up if its deadline has passed.
    pub(super) fn fire(&mut self, now: Time) {
        if self.measure == Measure::Time {
            self.overdue = self.is_overdue(now);
            return;
        }
        if let Goal::Deadline(due) = self.goal
            && due < now
        {
            self.goal = Goal::Hopeless(due);
            return;
        }
        while self.next_change().is_some_and(|at| at <= now) {
            self.required = signed(self.steps[self.past as usize].req);
            self.past += 1;
        }
    }

    /// The time before the deadline at which the next task is due; zero if none is left.
    fn next_ttd(&self) -> u64 {
        self.steps.get(self.past as usize).map_or(0, |step| step.ttd.0)
    }

    /// Whether the next task should have been started before now, so that the deadline will probably be
    /// missed, and the flow gives way.
    fn is_overdue(&self, now: Time) -> bool {
        let Goal::Deadline(due) = self.goal else { return false };
        u128::from(now.0) + u128::from(self.next_ttd()) > u128::from(due.0)
    }

    /// Counts tasks that were started, or, negative, that must run again.
    pub(super) fn count(&mut self, tasks: i64, now: Time) {
        self.started += tasks;
        if self.measure == Measure::Time {
            let fulfilled = |step: Option<&Step>| step.is_some_and(|step| signed(step.req) <= self.started);
            while fulfilled(self.steps.get(self.past as usize)) {
                self.past += 1;
            }
            while self.past > 0 && !fulfilled(self.steps.get(self.past as usize - 1)) {
                self.past -= 1;
            }
            self.overdue = self.is_overdue(now);
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
