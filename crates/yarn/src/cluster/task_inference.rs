//! Infers which containers finished a task, from the counts of an ApplicationMaster (AM).
//!
//! The AM counts a finished task before the ResourceManager reports the end of its container, and does not
//! name the container. So the containers that ended first get the tasks that were counted first. An ended
//! container that the next answers do not count has failed. Finished tasks without an observed container
//! (shorter than a poll, or run inside the AM) count when no live container can be theirs. A wrong inference
//! corrects itself, since every answer is compared with the counts of the driver.

use std::collections::VecDeque;

use slackline_model::Time;

use crate::rest::id::ContainerId;

/// Answers of the AM after which an uncounted container has failed.
const UNDECIDED: u32 = 8;

/// Answers of the AM after which tasks without an observed container count as finished.
const UNSEEN: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedContainer {
    pub(crate) id: ContainerId,
    /// Its start.
    pub(crate) since: Time,
    /// When its end was observed.
    pub(crate) at: Time,
}

/// The counts that an AM reports for a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedCounts {
    /// Finished tasks.
    pub(crate) done: u32,
    /// Tasks with a container.
    pub(crate) running: u32,
}

/// The counts that the ledger has for a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownCounts {
    /// Finished tasks of the driver, among those that it was given.
    pub(crate) done: u32,
    pub(crate) live: u32,
}

/// The result of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inference {
    /// Containers that finished a task.
    pub(crate) done: Vec<EndedContainer>,
    /// Containers that failed.
    pub(crate) failed: Vec<EndedContainer>,
    /// Further finished tasks, without an observed container.
    pub(crate) unseen: u32,
}

/// The task counts of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskCounter {
    /// Tasks that finished before the first answer.
    before: u32,
    undecided: VecDeque<(EndedContainer, u32)>,
    /// Answers with finished tasks that belong to no live container.
    unexplained: u32,
}

impl TaskCounter {
    /// A counter with tasks that finished before the first answer.
    pub(crate) fn new(done: u32) -> Self {
        Self { before: done, ..Self::default() }
    }

    pub(crate) fn container_ended(&mut self, container: EndedContainer) {
        self.undecided.push_back((container, 0));
    }

    /// Whether a decision waits for another answer.
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

    /// The undecided containers; no further answer comes.
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
        count.container_ended(container(2));
        count.container_ended(container(3));
        assert_eq!(count.infer(reported(3, 1), known_counts(0, 1)), Inference::default());
        assert!(count.is_open());
        assert_eq!(count.infer(reported(4, 1), known_counts(0, 1)).done, [container(2)]);
        assert_eq!(count.infer(reported(5, 0), known_counts(1, 0)).done, [container(3)]);
        assert!(!count.is_open());
    }

    #[test]
    fn one_that_is_not_counted_has_failed() {
        let mut count = TaskCounter::default();
        count.container_ended(container(2));
        for _ in 1..UNDECIDED {
            assert_eq!(count.infer(reported(0, 0), known_counts(0, 0)), Inference::default());
        }
        assert_eq!(count.infer(reported(0, 0), known_counts(0, 0)).failed, [container(2)]);
        assert!(!count.is_open());
    }

    #[test]
    fn tasks_without_a_container_are_counted_when_no_live_container_can_be_theirs() {
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
        count.container_ended(container(4));
        assert_eq!(count.infer(reported(3, 1), known_counts(2, 1)).done, [container(4)]);
    }

    #[test]
    fn a_container_that_the_driver_knew_nothing_of_takes_no_task_away() {
        // Its task was done before anybody looked, and it ends later.
        let mut count = TaskCounter::new(1);
        count.container_ended(container(2));
        count.container_ended(container(3));
        assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).done, [container(2)]);
        // The driver believes what it believed before.
        assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).done, [container(3)]);
        for _ in 1..UNSEEN {
            assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).unseen, 0);
        }
        assert_eq!(count.infer(reported(2, 0), known_counts(0, 0)).unseen, 1);
    }
}
