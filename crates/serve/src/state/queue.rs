//! Submissions that may start, by user: higher priority first, then the earlier one.
//!
//! Submissions that cannot start (held, waiting for one of the same name, for files, or for a retry) are in
//! separate lists that no decision scans, so a hundred thousand of them cost nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use slackline_model::WallTime;
use slackline_task::base::clock::Elapsed;

use crate::api::Overlap;
use crate::state::series::RunKey;
use crate::state::submissions::{Entry, SubmissionState};
use crate::state::{Effect, LOOK_EVERY, Limits, ServiceState, WorkItem};

/// Sorts by priority, highest first, then by number.
type QueueKey = (Reverse<u32>, u64);

/// Counts by user, and their sum.
#[derive(Debug, Default)]
pub(super) struct UserCounts {
    by_user: BTreeMap<String, usize>,
    pub(super) total: usize,
}

impl UserCounts {
    pub(super) fn of(&self, user: &str) -> usize {
        self.by_user.get(user).copied().unwrap_or(0)
    }

    fn add(&mut self, user: &str) {
        *self.by_user.entry(user.to_owned()).or_default() += 1;
        self.total += 1;
    }

    fn remove(&mut self, user: &str) {
        let Some(count) = self.by_user.get_mut(user) else { return };
        *count -= 1;
        self.total -= 1;
        if *count == 0 {
            self.by_user.remove(user);
        }
    }
}

/// Submissions that have not started, and the number of those that have.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Submissions that may start, by user.
    ready: BTreeMap<String, BTreeSet<QueueKey>>,
    /// The submissions that have not started.
    pub(super) waiting: UserCounts,
    /// Submissions that wait for a retry, by its time.
    pub(super) tries: BTreeSet<(Elapsed, u64)>,
    /// Submissions that wait for files.
    pub(super) files: BTreeSet<u64>,
    /// The first deadlines of submissions that have not started.
    pub(super) dues: BTreeSet<(WallTime, u64)>,
    /// The submissions that are being opened or running.
    pub(super) begun: UserCounts,
    /// Submissions that are being opened.
    pub(super) opening: BTreeSet<u64>,
    /// Whether no new submissions start.
    pub(super) is_draining: bool,
    /// The time of the next check for files.
    pub(super) next_look: Elapsed,
}

impl Queue {
    /// Removes one submission that has not started by its deadline, and returns it.
    pub(super) fn overdue(&mut self, now: WallTime) -> Option<(WallTime, u64)> {
        let is_over = self.dues.first().is_some_and(|(at, _)| *at < now);
        is_over.then(|| self.dues.pop_first()).flatten()
    }

    /// Removes a submission from all lists.
    fn leave(&mut self, number: u64, entry: &Entry) {
        let user = &entry.wanted.user;
        if let Some(ready) = self.ready.get_mut(user) {
            ready.remove(&key(number, entry));
            if ready.is_empty() {
                self.ready.remove(user);
            }
        }
        if let Some(at) = entry.not_before() {
            self.tries.remove(&(at, number));
        }
        self.files.remove(&number);
    }

    /// The first ready submission, of users below their limit of running submissions.
    fn first(&self, limits: &Limits) -> Option<u64> {
        let has_room = |user: &String| self.begun.of(user) < limits.live_by_user;
        let firsts =
            self.ready.iter().filter(|(user, _)| has_room(user)).filter_map(|(_, ready)| ready.first());
        firsts.min().map(|(_, number)| *number)
    }
}

fn key(number: u64, entry: &Entry) -> QueueKey {
    (Reverse(entry.priority()), number)
}

impl ServiceState {
    /// Adds a submission to the queue.
    pub(super) fn enqueue(&mut self, number: u64) {
        let Some(entry) = self.submissions.open.get(&number) else { return };
        let queue = &mut self.submissions.queue;
        queue.waiting.add(&entry.wanted.user);
        queue.dues.extend(entry.due().map(|at| (at, number)));
        self.sort_in(number);
    }

    /// Updates the list and the reason to wait of a queued submission.
    pub(super) fn sort_in(&mut self, number: u64) {
        let Some(entry) = self.submissions.open.get(&number).filter(|entry| entry.is_queued()) else {
            return;
        };
        let queue = &mut self.submissions.queue;
        queue.leave(number, entry);
        let first = self.submissions.series.first(&RunKey::of(&entry.wanted));
        let is_first = !entry.held && first == Some(number);
        let now = self.clock.now.wall;
        let not_before = entry.not_before();
        let reason = match first {
            _ if entry.held => Some("held".to_owned()),
            Some(first) if first != number => Some(match entry.wanted.submit.overlap {
                Overlap::Replace => format!("replaces submission {first}, and starts when that has stopped"),
                Overlap::Apart | Overlap::Wait | Overlap::Skip => {
                    format!("waits for {first}, which has the same name")
                }
            }),
            _ if not_before.is_some() => entry.own_why().cloned(),
            _ => entry.files.why(),
        };
        if let Some(at) = not_before.filter(|_| is_first) {
            queue.tries.insert((at, number));
        } else if is_first && !entry.files.are_there() {
            queue.files.insert(number);
        } else if is_first {
            queue.ready.entry(entry.wanted.user.clone()).or_default().insert(key(number, entry));
        }
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        if is_first {
            entry.files.await_from(now);
        } else {
            entry.files.stop_waiting();
        }
        if let SubmissionState::Queued { why, .. } = &mut entry.state {
            *why = reason;
        }
    }

    /// Removes a submission from the queue.
    pub(super) fn dequeue(&mut self, number: u64) {
        let Some(entry) = self.submissions.open.get(&number).filter(|entry| entry.is_queued()) else {
            return;
        };
        let queue = &mut self.submissions.queue;
        queue.leave(number, entry);
        queue.waiting.remove(&entry.wanted.user);
        if let Some(at) = entry.due() {
            queue.dues.remove(&(at, number));
        }
    }

    /// Stops counting a submission as started: it has finished, or it waits again.
    pub(super) fn end_begun(&mut self, number: u64) {
        let Some(entry) = self.submissions.open.get(&number) else { return };
        let queue = &mut self.submissions.queue;
        if !entry.is_queued() {
            queue.begun.remove(&entry.wanted.user);
        }
        queue.opening.remove(&number);
    }

    /// Checks for the files that submissions wait for, if that is due.
    pub(super) fn look_for_files(&mut self) {
        let (elapsed, queue) = (self.clock.elapsed(), &mut self.submissions.queue);
        if !queue.files.is_empty() && elapsed >= queue.next_look {
            queue.next_look = elapsed + LOOK_EVERY;
            let wanted = |number: &u64| Some((*number, self.submissions.open.get(number)?.wanted.clone()));
            let looks = queue.files.iter().filter_map(wanted);
            self.out
                .effects
                .extend(looks.map(|(number, wanted)| Effect::Launch(WorkItem::Look(number, wanted))));
        }
    }

    /// Starts the next submissions, while there is room. Requests the first deadline of schedule submissions
    /// that have to wait.
    pub(super) fn begin_next(&mut self) {
        let now = self.clock.elapsed();
        while let Some(&(at, number)) = self.submissions.queue.tries.first().filter(|(at, _)| *at <= now) {
            self.submissions.queue.tries.remove(&(at, number));
            if let Some(SubmissionState::Queued { not_before, .. }) =
                self.submissions.open.get_mut(&number).map(|entry| &mut entry.state)
            {
                *not_before = None;
            }
            self.sort_in(number);
        }
        while self.open_first() {}
        for number in std::mem::take(&mut self.submissions.unread) {
            if let Some(entry) = self.submissions.open.get(&number).filter(|entry| entry.is_queued()) {
                self.out.effects.push(Effect::Launch(WorkItem::Read(number, entry.wanted.clone())));
            }
        }
    }

    /// Opens the first ready submission. Returns false if no submission may start.
    fn open_first(&mut self) -> bool {
        let (queue, limits) = (&self.submissions.queue, &self.facts.limits);
        if queue.is_draining || queue.begun.total >= limits.live {
            return false;
        }
        let Some(number) = queue.first(limits) else { return false };
        self.dequeue(number);
        let Some(entry) = self.submissions.open.get_mut(&number) else { return false };
        entry.state = SubmissionState::Opening;
        self.submissions.queue.begun.add(&entry.wanted.user);
        self.submissions.queue.opening.insert(number);
        self.out.effects.push(Effect::Launch(WorkItem::Open(number, entry.wanted.clone())));
        self.forecasts.wait_for_opening(self.clock.elapsed());
        true
    }

    /// Removes a submission from the submissions of its name. The next of them may start.
    pub(super) fn leave_series(&mut self, number: u64) {
        let Some(key) = self.wanted(number).map(RunKey::of) else { return };
        if let Some(next) = self.submissions.series.leave(&key, number) {
            self.sort_in(next);
        }
    }
}
