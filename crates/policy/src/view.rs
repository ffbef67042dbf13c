//! What a policy may look at: the instance, the state of every phase, the time, and estimates.

use slackline_model::id::TiVec;
use slackline_model::instance::Phase;
use slackline_model::{Cluster, GroupId, Instance, PhaseId, Span, Table, Time};

use crate::busy_slots::BusySlots;
use crate::ledger::Ledger;
use crate::state::{PhaseState, State};

/// A read-only look at the system at one instant.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The work and the cluster: the flows that had arrived and were not finished or abandoned before this
    /// instant. The view does not know others: a lookup of another flow panics.
    pub instance: &'a Instance,
    /// How far it is.
    pub state: &'a State,
    /// The estimated durations.
    pub estimates: &'a Estimates,
    /// What holds slots, and which are free.
    pub held: BusySlots<'a>,
    /// The instant.
    pub now: Time,
}

impl<'a> View<'a> {
    /// What a policy sees of a run now.
    pub(crate) fn of(ledger: &'a Ledger, estimates: &'a Estimates) -> Self {
        let Ledger { instance, state, now, .. } = ledger;
        Self { instance, state, estimates, held: BusySlots::of(ledger), now: *now }
    }
}

impl View<'_> {
    /// How far a phase is.
    #[inline]
    pub fn phase(&self, phase: PhaseId) -> &PhaseState {
        self.state.phase(phase)
    }

    /// How many tasks of `phase` could start now if enough slots were free: 0 if it is not ready, at
    /// its cap, all started, or barred from taking slots early.
    pub fn runnable(&self, phase: PhaseId) -> u32 {
        self.state.runnable(self.instance, phase)
    }

    /// The most slots a phase can use from now on: its tasks not done yet, and no more than its cap.
    pub fn usable(&self, phase: PhaseId) -> u32 {
        let state = self.phase(phase);
        (state.unstarted() + state.running()).min(self.instance.phase(phase).cap)
    }

    /// Whether a phase finishes as soon as it is ready and never holds a slot; see [`State::is_instant`].
    /// This is exact, like its number of tasks, also where durations are only estimates.
    pub fn is_instant(&self, phase: PhaseId) -> bool {
        self.state.is_instant(self.instance, phase)
    }

    /// Estimated work left in a phase, in slot-seconds at speed 1: its tasks not done yet times the
    /// estimated mean of a task; nothing of an instant phase.
    pub fn work_left(&self, phase: PhaseId) -> f64 {
        if self.is_instant(phase) {
            return 0.0;
        }
        let state = self.phase(phase);
        f64::from(state.unstarted() + state.running()) * self.estimates.task[phase].seconds()
    }
}

/// What a policy believes of durations (`--knowledge`, `--noise`).
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// Mean length of a task of each phase that is known, at speed 1.
    pub task: Table<PhaseId, Span>,
    /// Speed of the machines of each group.
    pub speed: TiVec<GroupId, f64>,
    /// Whether the proportions of the tasks within a phase are known too, as to a master that knows the
    /// sizes of its splits; a policy that looks at single tasks takes them from the instance.
    pub each: bool,
}

impl Estimates {
    /// The true speeds, and nothing of phases yet.
    pub fn new(cluster: &Cluster) -> Self {
        let speed = cluster.groups().iter().map(|group| group.speed).collect();
        Self { task: Table::new(), speed, each: false }
    }

    /// The true means and speeds, nothing of single tasks.
    pub fn mean(instance: &Instance) -> Self {
        let task = instance.phases().iter().map(mean_of).collect();
        Self { task, ..Self::new(instance.cluster()) }
    }
}

/// The true mean length of a task of a phase at speed 1; all the work of a phase that was not cut. O(1).
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
