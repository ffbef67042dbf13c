//! What a policy can see: the instance, the state of every phase, the time, and estimates.

use slackline_model::id::TiVec;
use slackline_model::instance::Phase;
use slackline_model::{Cluster, GroupId, Instance, PhaseId, Span, Table, Time};

use crate::busy_slots::BusySlots;
use crate::ledger::Ledger;
use crate::state::{PhaseState, State};

/// A read-only view of the system at one instant.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The cluster and the active flows: those that had arrived and not finished or failed before this
    /// instant. The view does not know others: a lookup of another flow panics.
    pub instance: &'a Instance,
    /// The progress of the flows.
    pub state: &'a State,
    /// The estimated durations.
    pub estimates: &'a Estimates,
    /// The busy and the free slots.
    pub held: BusySlots<'a>,
    /// The instant.
    pub now: Time,
}

impl<'a> View<'a> {
    /// The view of a run at this instant.
    pub(crate) fn of(ledger: &'a Ledger, estimates: &'a Estimates) -> Self {
        let Ledger { instance, state, now, .. } = ledger;
        Self { instance, state, estimates, held: BusySlots::of(ledger), now: *now }
    }
}

impl View<'_> {
    /// The progress of a phase.
    #[inline]
    pub fn phase(&self, phase: PhaseId) -> &PhaseState {
        self.state.phase(phase)
    }

    /// The number of tasks of `phase` that could start now if enough slots were free: 0 if it is not ready,
    /// at its cap, all started, or barred from taking slots early.
    pub fn runnable(&self, phase: PhaseId) -> u32 {
        self.state.runnable(self.instance, phase)
    }

    /// The number of slots that a phase can use from now on: its unfinished tasks, but no more than its cap.
    pub fn usable(&self, phase: PhaseId) -> u32 {
        let state = self.phase(phase);
        (state.unstarted() + state.running()).min(self.instance.phase(phase).cap)
    }

    /// Whether a phase finishes as soon as it is ready and never holds a slot; see [`State::is_instant`].
    /// This is exact, like the number of tasks, even if durations are only estimates.
    pub fn is_instant(&self, phase: PhaseId) -> bool {
        self.state.is_instant(self.instance, phase)
    }

    /// Estimated remaining work of a phase, in slot-seconds at speed 1: its unfinished tasks times the
    /// estimated mean of a task; 0 for an instant phase.
    pub fn work_left(&self, phase: PhaseId) -> f64 {
        if self.is_instant(phase) {
            return 0.0;
        }
        let state = self.phase(phase);
        f64::from(state.unstarted() + state.running()) * self.estimates.task[phase].seconds()
    }
}

/// The estimates of a policy about durations (`--knowledge`, `--noise`).
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// The mean length of a task of each known phase, at speed 1.
    pub task: Table<PhaseId, Span>,
    /// Speed of the machines of each group.
    pub speed: TiVec<GroupId, f64>,
    /// The phases of which no task has finished, neither of their own nor of an earlier flow of that name: their
    /// lengths are those of other phases.
    pub unknown: Table<PhaseId, bool>,
    /// Whether the proportions of the tasks within a phase are known too, as for an ApplicationMaster that
    /// knows the sizes of its splits. A policy that considers single tasks takes them from the instance.
    pub each: bool,
    /// How often the estimates of all phases were made again. Other changes are of phases that an event of
    /// the instant names, or that are of the same job.
    pub revision: u64,
}

impl Estimates {
    /// The true speeds, without any phase.
    pub fn new(cluster: &Cluster) -> Self {
        let speed = cluster.groups().iter().map(|group| group.speed).collect();
        Self { task: Table::new(), speed, unknown: Table::new(), each: false, revision: 0 }
    }

    /// The true means and speeds, without the proportions of single tasks.
    pub fn mean(instance: &Instance) -> Self {
        let task = instance.phases().iter().map(mean_of).collect();
        Self { task, ..Self::new(instance.cluster()) }
    }
}

/// The true mean length of a task of a phase at speed 1; the total work of a phase that was not cut. O(1).
pub fn mean_of(phase: &Phase) -> Span {
    let count = phase.tasks().map_or(1, slackline_model::tasks::Tasks::count);
    Span(phase.work().0 / u64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Finished;
    use crate::testing::{FLOW, flow, instance, machines, uniform};

    #[test]
    fn work_is_left_in_tasks_that_run_and_that_have_not_started() {
        let instance = instance(vec![machines("m", 1, 4)], vec![flow("f", uniform(4, 3.0), None)]);
        let (map, estimates) = (PhaseId(0), Estimates::mean(&instance));
        let mut state = State::new(instance.cluster(), 1.0);
        state.arrive(&instance, FLOW, Time::ZERO, &mut Vec::new());
        state.take(&instance, map, 2);
        let finished = Finished { phase: map, count: 1, at: Time::ZERO, now: Time::ZERO };
        state.finish(&instance, finished, &mut Vec::new());
        let view = View {
            instance: &instance,
            state: &state,
            estimates: &estimates,
            held: BusySlots::none(),
            now: Time::ZERO,
        };
        assert_eq!((view.work_left(map), view.runnable(map)), (9.0, 2));
    }
}
