//! Submissions that may start, by user: higher priority first, then the earlier one.
//!
//! Submissions that cannot start (held, waiting for one of the same name, for files, or for a retry) are in
//! separate lists that no decision scans, so a hundred thousand of them cost nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use slackline_task::base::clock::Elapsed;

use crate::Moment;
use crate::api::{Overlap, State};
use crate::state::running::OPENING_MOST;
use crate::state::{Effect, Entry, Limits, ServiceState, Transition};

/// Sorts by priority, highest first, then by number.
type QueueKey = (Reverse<u32>, u64);

/// Submissions that have not started, and the number of those that have.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Submissions that may start, by user.
    ready: BTreeMap<String, BTreeSet<QueueKey>>,
    /// The number of submissions of each user that have not started.
    waiting: BTreeMap<String, usize>,
    n_waiting: usize,
    /// Submissions that wait for a retry, by its time.
    tries: BTreeSet<(Elapsed, u64)>,
    /// Submissions that wait for files.
    files: BTreeSet<u64>,
    /// The first deadlines of submissions that have not started.
    dues: BTreeSet<(Moment, u64)>,
    /// The number of submissions of each user that are being opened or running.
    begun: BTreeMap<String, usize>,
    n_begun: usize,
    /// Submissions that are being opened.
    opening: BTreeSet<u64>,
}

impl Queue {
    /// The number of submissions that have not started.
    pub(super) fn len(&self) -> usize {
        self.n_waiting
    }

    /// The number of submissions of a user that have not started.
    pub(super) fn of_user(&self, user: &str) -> usize {
        self.waiting.get(user).copied().unwrap_or(0)
    }

    /// The number of submissions that are being opened or running.
    pub(super) fn live(&self) -> usize {
        self.n_begun
    }

    /// Whether a submission is being opened.
    pub(super) fn is_opening(&self) -> bool {
        !self.opening.is_empty()
    }

    /// The opening of a submission succeeded or is not needed any more.
    pub(super) fn opened(&mut self, number: u64) {
        self.opening.remove(&number);
    }

    /// The number of submissions of a user that are being opened or running.
    pub(super) fn live_of(&self, user: &str) -> usize {
        self.begun.get(user).copied().unwrap_or(0)
    }

    /// The time of the next retry of an opening.
    pub(super) fn next_try(&self) -> Option<Elapsed> {
        self.tries.first().map(|(at, _)| *at)
    }

    /// The first deadline of a submission that has not started.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.dues.first().map(|(at, _)| *at)
    }

    /// Removes one submission that has not started by its deadline, and returns it.
    pub(super) fn overdue(&mut self, now: Moment) -> Option<(Moment, u64)> {
        let is_over = self.dues.first().is_some_and(|(at, _)| *at < now);
        is_over.then(|| self.dues.pop_first()).flatten()
    }

    pub(super) fn awaits_files(&self) -> bool {
        !self.files.is_empty()
    }

    pub(super) fn without_files(&self) -> impl Iterator<Item = u64> + '_ {
        self.files.iter().copied()
    }

    /// Removes a submission from all lists.
    fn leave(&mut self, number: u64, entry: &Entry) {
        let user = &entry.wanted.user;
        if let Some(ready) = self.ready.get_mut(user) {
            ready.remove(&paths(number, entry));
            if ready.is_empty() {
                self.ready.remove(user);
            }
        }
        if let Some(at) = entry.not_before {
            self.tries.remove(&(at, number));
        }
        self.files.remove(&number);
    }

    /// Counts one submission of a user more or less.
    fn count(counts: &mut BTreeMap<String, usize>, total: &mut usize, user: &str, is_more: bool) {
        if is_more {
            *counts.entry(user.to_owned()).or_default() += 1;
            *total += 1;
        } else if let Some(count) = counts.get_mut(user) {
            *count -= 1;
            *total -= 1;
            if *count == 0 {
                counts.remove(user);
            }
        }
    }

    /// The first ready submission, of users below their limit of running submissions.
    fn first(&self, limits: &Limits) -> Option<u64> {
        let has_room = |user: &String| self.live_of(user) < limits.live_by_user;
        let firsts =
            self.ready.iter().filter(|(user, _)| has_room(user)).filter_map(|(_, ready)| ready.first());
        firsts.min().map(|(_, number)| *number)
    }
}

fn paths(number: u64, entry: &Entry) -> QueueKey {
    (Reverse(entry.priority()), number)
}

impl ServiceState {
    /// Adds a submission to the queue.
    pub(super) fn enqueue(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.state = State::Queued;
        let Queue { waiting, n_waiting, dues, .. } = &mut self.queue;
        Queue::count(waiting, n_waiting, &entry.wanted.user, true);
        dues.extend(entry.due().map(|at| (at, number)));
        self.sort_in(number);
    }

    /// Updates the list and the reason to wait of a queued submission.
    pub(super) fn sort_in(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number).filter(|entry| entry.state == State::Queued) else {
            return;
        };
        self.queue.leave(number, entry);
        let first = self.series.get(&entry.wanted.name).and_then(|series| series.front()).copied();
        entry.why = match first {
            _ if entry.held => Some("held".to_owned()),
            Some(first) if first != number => Some(match entry.wanted.submit.overlap {
                Overlap::Replace => format!("waits until {first} has stopped, which it replaces"),
                Overlap::Wait | Overlap::Skip => format!("waits for {first}, which has the same name"),
            }),
            _ if entry.not_before.is_some() => entry.why.take(),
            _ if !entry.has_files => Some(entry.missing.as_ref().map_or_else(
                || "waits for files".to_owned(),
                |missing| format!("waits for {missing}, which is not there"),
            )),
            _ => None,
        };
        if entry.held || first != Some(number) {
            return;
        }
        if let Some(at) = entry.not_before {
            self.queue.tries.insert((at, number));
        } else if !entry.has_files {
            self.queue.files.insert(number);
        } else {
            self.queue.ready.entry(entry.wanted.user.clone()).or_default().insert(paths(number, entry));
        }
    }

    /// Removes a submission from the queue.
    pub(super) fn dequeue(&mut self, number: u64) {
        let Some(entry) = self.entries.get(&number).filter(|entry| entry.state == State::Queued) else {
            return;
        };
        self.queue.leave(number, entry);
        let Queue { waiting, n_waiting, dues, .. } = &mut self.queue;
        Queue::count(waiting, n_waiting, &entry.wanted.user, false);
        if let Some(at) = entry.due() {
            dues.remove(&(at, number));
        }
    }

    /// Stops counting a submission as started: it has finished, or it waits again.
    pub(super) fn end_begun(&mut self, number: u64) {
        let Some(entry) = self.entries.get(&number) else { return };
        if matches!(entry.state, State::Opening | State::Running) {
            let Queue { begun, n_begun, .. } = &mut self.queue;
            Queue::count(begun, n_begun, &entry.wanted.user, false);
        }
        self.queue.opened(number);
    }

    /// Starts the next submissions, while there is room. Requests the first deadline of schedule submissions
    /// that have to wait.
    pub(super) fn begin_next(&mut self, out: &mut Transition) {
        self.begin(out);
        for number in std::mem::take(&mut self.unread) {
            let waits = self.entries.get(&number).is_some_and(|entry| entry.state == State::Queued);
            out.effects.extend(waits.then_some(Effect::Read(number)));
        }
    }

    fn begin(&mut self, out: &mut Transition) {
        let now = self.clock.elapsed();
        while let Some(&(at, number)) = self.queue.tries.first().filter(|(at, _)| *at <= now) {
            self.queue.tries.remove(&(at, number));
            if let Some(entry) = self.entries.get_mut(&number) {
                entry.not_before = None;
            }
            self.sort_in(number);
        }
        while !self.is_draining && self.queue.n_begun < self.facts.limits.live {
            let Some(number) = self.queue.first(&self.facts.limits) else { return };
            self.dequeue(number);
            let Some(entry) = self.entries.get_mut(&number) else { return };
            (entry.state, entry.why) = (State::Opening, None);
            let Queue { begun, n_begun, .. } = &mut self.queue;
            Queue::count(begun, n_begun, &entry.wanted.user, true);
            self.queue.opening.insert(number);
            self.opening_until.get_or_insert(now + OPENING_MOST);
            out.effects.push(Effect::Open(number));
        }
    }

    /// Removes a submission from the submissions of its name. The next of them may start.
    pub(super) fn leave_series(&mut self, number: u64) {
        let Some(name) = self.wanted(number).map(|wanted| wanted.name.clone()) else { return };
        let Some(series) = self.series.get_mut(&name) else { return };
        series.retain(|&other| other != number);
        match series.front().copied() {
            Some(next) => self.sort_in(next),
            None => drop(self.series.remove(&name)),
        }
    }
}
