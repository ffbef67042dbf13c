//! Which containers have done a task, by the counts that an ApplicationMaster gives.
//!
//! The ApplicationMaster says how many tasks are done before the ResourceManager says that a container is over, but not
//! which: so the containers that ended first get the tasks that were counted first. One that ended and is not
//! counted in the looks that follow has failed. Tasks that are done although no container of them was seen (they were
//! shorter than a look, or ran in the ApplicationMaster) are counted when no live container can be theirs.
//! A mistake with that mends itself: what is counted is held against what the driver believes, again and again.

use std::collections::VecDeque;

use slackline_model::Time;

use crate::rest::id::ContainerId;

/// After so many answers of the ApplicationMaster an ended container that is not counted has failed.
const UNDECIDED: u32 = 8;

/// After so many answers tasks are done of which no container was seen.
const UNSEEN: u32 = 4;

/// A container that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedContainer {
    pub(crate) id: ContainerId,
    /// Since when it was there.
    pub(crate) since: Time,
    /// When it was seen to be over.
    pub(crate) at: Time,
}

/// What an ApplicationMaster says of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedCounts {
    /// Tasks that are done.
    pub(crate) done: u32,
    /// Tasks that have a container.
    pub(crate) running: u32,
}

/// What is known of a phase when its ApplicationMaster answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownCounts {
    /// Tasks that the driver believes to be done, of those it was given.
    pub(crate) done: u32,
    pub(crate) live: u32,
}

/// What follows from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inference {
    /// Containers that have done a task.
    pub(crate) done: Vec<EndedContainer>,
    /// Containers that have not.
    pub(crate) failed: Vec<EndedContainer>,
    /// How many tasks are done besides.
    pub(crate) unseen: u32,
}

/// The tasks of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskCounter {
    /// Tasks that were done before anybody looked.
    before: u32,
    undecided: VecDeque<(EndedContainer, u32)>,
    /// For how many answers tasks have been done that no live container can have done.
    unexplained: u32,
}

impl TaskCounter {
    /// So many tasks were done before anybody looked.
    pub(crate) fn new(done: u32) -> Self {
        Self { before: done, ..Self::default() }
    }

    pub(crate) fn ended(&mut self, container: EndedContainer) {
        self.undecided.push_back((container, 0));
    }

    /// Whether another answer is needed.
    pub(crate) fn is_open(&self) -> bool {
        !self.undecided.is_empty() || self.unexplained > 0
    }

    pub(crate) fn infer(&mut self, reported: ReportedCounts, known_counts: KnownCounts) -> Inference {
        let mut decided = Inference::default();
        let mut known = self.before.saturating_add(known_counts.done);
        while known < reported.done
            && let Some((container, _)) = self.undecided.pop_front()
        {
            known += 1;
            decided.done.push(container);
        }
        for (_, answers) in &mut self.undecided {
            *answers += 1;
        }
        while let Some(&(container, UNDECIDED)) = self.undecided.front() {
            self.undecided.pop_front();
            decided.failed.push(container);
        }
        let may_be_theirs = known_counts.live.saturating_sub(reported.running);
        let unseen = reported.done.saturating_sub(known).saturating_sub(may_be_theirs);
        self.unexplained = if unseen > 0 { self.unexplained + 1 } else { 0 };
        if self.unexplained == UNSEEN {
            self.unexplained = 0;
            decided.unseen = unseen;
        }
        decided
    }

    /// The containers of which it is not known how they ended, which nobody will say any more.
    pub(crate) fn close(&mut self) -> Vec<EndedContainer> {
        std::mem::take(&mut self.undecided).into_iter().map(|(container, _)| container).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::id::{AppAttemptId, AppId};

    fn container(number: u64) -> EndedContainer {
        let attempt = AppAttemptId { app: AppId { cluster: 1, number: 1 }, number: 1 };
        let id = ContainerId { attempt, epoch: 0, number };
        EndedContainer { id, since: Time::ZERO, at: Time(5) }
    }

    fn reported(done: u32, running: u32) -> ReportedCounts {
        ReportedCounts { done, running }
    }

    fn known_counts(done: u32, live: u32) -> KnownCounts {
        KnownCounts { done, live }
    }

    #[test]
    fn containers_that_ended_are_done_as_the_count_goes_up() {
        let mut count = TaskCounter::new(3);
        count.ended(container(2));
        count.ended(container(3));
        assert_eq!(count.infer(reported(3, 1), known_counts(0, 1)), Inference::default());
        assert!(count.is_open());
        assert_eq!(count.infer(reported(4, 1), known_counts(0, 1)).done, [container(2)]);
        assert_eq!(count.infer(reported(5, 0), known_counts(1, 0)).done, [container(3)]);
        assert!(!count.is_open());
    }

    #[test]
    fn one_that_is_not_counted_has_failed() {
        let mut count = TaskCounter::default();
        count.ended(container(2));
        for _ in 1..UNDECIDED {
            assert_eq!(count.infer(reported(0, 0), known_counts(0, 0)), Inference::default());
        }
        assert_eq!(count.infer(reported(0, 0), known_counts(0, 0)).failed, [container(2)]);
        assert!(!count.is_open());
    }

    #[test]
    fn tasks_that_nobody_saw_are_counted_when_no_live_container_can_be_theirs() {
        let mut count = TaskCounter::default();
        // Two containers are there of which one has a task: the other may have done what is counted.
        for _ in 0..2 * UNSEEN {
            assert_eq!(count.infer(reported(1, 1), known_counts(0, 2)), Inference::default());
        }
        for _ in 1..UNSEEN {
            assert_eq!(count.infer(reported(3, 1), known_counts(0, 2)), Inference::default());
        }
        assert_eq!(
            count.infer(reported(3, 1), known_counts(0, 2)),
            Inference { unseen: 2, ..Inference::default() }
        );
        count.ended(container(4));
        assert_eq!(count.infer(reported(3, 1), known_counts(2, 1)).done, [container(4)]);
    }

    #[test]
    fn a_container_that_the_driver_knew_nothing_of_takes_no_task_away() {
        // Its task was done before anybody looked, and it ends later.
        let mut count = TaskCounter::new(1);
        count.ended(container(2));
        count.ended(container(3));
        assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).done, [container(2)]);
        // The driver believes what it believed before.
        assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).done, [container(3)]);
        for _ in 1..UNSEEN {
            assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).unseen, 0);
        }
        assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).unseen, 1);
    }
}
