//! The tasks of a phase, run-length encoded.
//!
//! A Facebook day has millions of map tasks in a few thousand phases, nearly all of equal length
//! within their phase; a run of equal tasks is one entry here, for any count.

use std::sync::Arc;

use crate::time::{Span, Work};

/// Consecutive tasks of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How many tasks; at least 1.
    pub count: u32,
    /// How long each takes on a slot of speed 1.
    pub span: Span,
}

/// The input location of consecutive tasks: the machines that hold a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// First task of the stretch.
    pub first: u32,
    /// How many tasks.
    pub count: u32,
    /// Machines that hold the input, in the order of the document.
    pub hosts: Vec<crate::id::MachineId>,
}

/// The tasks of a phase, numbered from 0. Copies share their lists: a flow that arrives is a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    runs: Arc<[Run]>,
    /// First task number of each run; empty when there is one run (the common case needs no search).
    starts: Arc<[u32]>,
    count: u32,
    work: Work,
    longest: Span,
    splits: Arc<[Split]>,
}

impl Tasks {
    /// Tasks from runs; equal neighbours are merged and empty runs dropped.
    pub fn from_runs(list: impl IntoIterator<Item = Run>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for run in list {
            match runs.last_mut() {
                _ if run.count == 0 => {}
                Some(last) if last.span == run.span => last.count += run.count,
                _ => runs.push(run),
            }
        }
        let mut starts = Vec::new();
        let (mut count, mut work, mut longest) = (0u32, Work::ZERO, Span::ZERO);
        for run in &runs {
            if runs.len() > 1 {
                starts.push(count);
            }
            count += run.count;
            work += Work(run.span.0 * u64::from(run.count));
            longest = longest.max(run.span);
        }
        let (runs, starts) = (runs.into(), starts.into());
        Self { runs, starts, count, work, longest, splits: Arc::default() }
    }

    /// `count` equal tasks.
    pub fn uniform(count: u32, span: Span) -> Self {
        Self::from_runs([Run { count, span }])
    }

    /// `count` tasks that share `work` as evenly as whole microseconds allow.
    pub fn share(work: Work, count: u32) -> Self {
        let (each, over) = (work.0 / u64::from(count), (work.0 % u64::from(count)) as u32);
        Self::from_runs([
            Run { count: over, span: Span(each + 1) },
            Run { count: count - over, span: Span(each) },
        ])
    }

    /// The same tasks with locations of their input.
    #[must_use]
    pub fn with_splits(mut self, splits: Vec<Split>) -> Self {
        self.splits = splits.into();
        self
    }

    /// The runs, in task order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// How many tasks.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Total work.
    pub fn work(&self) -> Work {
        self.work
    }

    /// The longest task.
    pub fn longest(&self) -> Span {
        self.longest
    }

    /// The locations of inputs, for tasks that have them; empty for most phases.
    pub fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Length of `task`, and how many tasks from it on have the same length. O(log runs); O(1) where all
    /// lengths are equal, or each task up to this one has its own.
    ///
    /// # Panics
    /// If there is no such task.
    pub fn run_at(&self, task: u32) -> (Span, u32) {
        assert!(task < self.count, "task {task} of {}", self.count);
        if self.starts.is_empty() {
            return (self.runs[0].span, self.count - task);
        }
        // No run begins before the task of its number.
        let last = (task as usize).min(self.starts.len() - 1);
        let at = if self.starts[last] <= task {
            last
        } else {
            self.starts[..last].partition_point(|&start| start <= task) - 1
        };
        let run = self.runs[at];
        (run.span, self.starts[at] + run.count - task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_merge_and_answer_by_task() {
        let s = Span;
        let tasks = Tasks::from_runs([
            Run { count: 2, span: s(5) },
            Run { count: 0, span: s(9) },
            Run { count: 1, span: s(5) },
            Run { count: 4, span: s(7) },
        ]);
        assert_eq!(tasks.runs().len(), 2);
        assert_eq!((tasks.count(), tasks.work(), tasks.longest()), (7, Work(43), s(7)));
        assert_eq!(tasks.run_at(0), (s(5), 3));
        assert_eq!(tasks.run_at(2), (s(5), 1));
        assert_eq!(tasks.run_at(3), (s(7), 4));
        assert_eq!(tasks.run_at(6), (s(7), 1));
    }

    #[test]
    fn shared_work_is_kept_to_the_microsecond() {
        let tasks = Tasks::share(Work(10), 4);
        assert_eq!(tasks.work(), Work(10));
        assert_eq!(tasks.runs(), [Run { count: 2, span: Span(3) }, Run { count: 2, span: Span(2) }]);
    }
}
