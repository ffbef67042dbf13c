//! The state rebuilt from records, and the shortest list of records that gives the same state.

use slackline_task::base::clock::ClockReading;

use crate::api::{self, Alert};
use crate::state::record::{CancelReason, Record, SubmissionEnd, SubmissionSpec};
use crate::state::recurring::LATE;
use crate::state::{Entry, ServiceFacts, ServiceState, Transition};
use crate::{Moment, timestamp};

impl ServiceState {
    /// The state after a restart, and the effects that start its work again: runs that were open are opened
    /// and resumed. `None` if the records do not begin with [`Record::Began`].
    pub fn replayed(
        facts: ServiceFacts,
        now: ClockReading,
        records: impl IntoIterator<Item = Record>,
    ) -> Option<(Self, Transition)> {
        let mut records = records.into_iter();
        let Some(Record::Began(began)) = records.next() else { return None };
        let mut state = Self::empty(facts, began, now);
        state.started = now.wall.0;
        for record in records {
            state.apply(record);
        }
        // These have no deadline, or an earlier version did not record it.
        let unread = |(number, entry): (&u64, &Entry)| entry.wanted.due.is_none().then_some(*number);
        state.unread = state.entries.iter().filter_map(unread).collect();
        let mut out = Transition::default();
        state.start_clock(&mut out);
        state.begin_next(&mut out);
        Some((state, out))
    }

    /// Applies a record from disk.
    fn apply(&mut self, record: Record) {
        match record {
            Record::Began(began) => self.began = began,
            Record::Sums { next, scores } => {
                self.next = self.next.max(next);
                self.scores = scores.apart();
            }
            Record::Submitted { number, at, wanted } => {
                if let Some(recurrence) = &wanted.recurrence {
                    self.handled(&recurrence.clone(), wanted.since, true);
                }
                let waits = wanted.submit.when_inputs || !wanted.submit.when.is_empty();
                self.enter(number, at, *wanted, waits);
            }
            Record::Recurs(recurring) => self.recall_recurring(*recurring),
            Record::RecursNoMore(name) => drop(self.recurring.remove(&name)),
            Record::LeftOut { recurrence, until } => self.handled(&recurrence, until, false),
            Record::Held { number, flow, held } => {
                self.set_held(number, flow, held);
                self.sort_in(number);
            }
            Record::Changed { number, flow, changed } => self.set_changed(number, flow.as_deref(), changed),
            Record::Cancelled { number, flow, reason } => {
                if let Some(entry) = self.entries.get_mut(&number) {
                    entry.cancelled.insert(flow, reason);
                }
            }
            Record::LetIn(number) => {
                if let Some(entry) = self.entries.get_mut(&number) {
                    entry.is_let_in = true;
                }
            }
            Record::Predicted { number, flow, said } => {
                if let Some(entry) = self.entries.get_mut(&number) {
                    entry.said.insert(flow, said);
                }
            }
            Record::Alerted { number, flow, kind, said } => {
                let Some(entry) = self.entries.get_mut(&number) else { return };
                entry.alerted.insert((flow.clone(), kind));
                let SubmissionSpec { name, user, .. } = &entry.wanted;
                let (name, user) = (name.clone(), user.clone());
                if let Some((at, message)) = said {
                    self.keep_alert(Alert { kind, at: timestamp(at), number, name, flow, user, message });
                }
            }
            Record::Alert(alert) => self.keep_alert(*alert),
            Record::Ended(end) => self.recall_end(*end),
            Record::Remembered(ended) => {
                let age = ended.ended.map_or(0, crate::moment);
                self.remember(*ended, age);
            }
            Record::RememberedSince(age, ended) => self.remember(*ended, age),
            Record::Aged(age) => self.clock.recall(age),
            Record::Draining(draining) => self.is_draining = draining,
        }
    }

    /// Adds a finished submission that ended at `age` by the age clock.
    fn remember(&mut self, ended: api::Submission, age: Moment) {
        self.next = self.next.max(ended.number + 1);
        if let Some(key) = &ended.key {
            self.keys.insert((ended.user.clone(), key.clone()), ended.number);
        }
        self.ended.push(ended, age);
    }

    /// Ends a submission, from its record.
    fn recall_end(&mut self, end: SubmissionEnd) {
        let SubmissionEnd { number, at, state, why, flows, prediction, began, age } = end;
        self.dequeue(number);
        self.leave_series(number);
        let Some(mut entry) = self.entries.remove(&number) else { return };
        for flow in &flows {
            if let (Some(&said), Some(done)) = (entry.said.get(&flow.flow), flow.completion) {
                let submitted = entry.submitted.max(crate::moment(flow.release));
                self.scores.add(said, submitted, flow.deadline.map(crate::moment), crate::moment(done));
            }
        }
        (entry.state, entry.why) = (state, why);
        let mut ended = Self::shown(number, &entry, at, false);
        (ended.ended, ended.flows) = (Some(timestamp(at)), flows);
        (ended.prediction, ended.began) = (prediction, began);
        self.ended.push(ended, age.unwrap_or(at));
    }

    /// The least number of records that [`Self::records`] returns.
    pub fn least_records(&self) -> usize {
        self.recurring.len() + self.ended.len() + self.entries.len() + self.alerts.len()
    }

    /// The shortest list of records that gives this state.
    pub fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Began(self.began), Record::Aged(self.clock.age())];
        records
            .extend(self.recurring.values().map(|again| Record::Recurs(Box::new(again.recurring.clone()))));
        for (one, age) in self.ended.with_ages() {
            let is_usual = one.ended.is_some_and(|at| crate::moment(at).abs_diff(age) <= LATE);
            let one = Box::new(one.clone());
            records.push(if is_usual { Record::Remembered(one) } else { Record::RememberedSince(age, one) });
        }
        for (&number, entry) in &self.entries {
            let (at, wanted) = (entry.submitted, Box::new(entry.wanted.clone()));
            records.push(Record::Submitted { number, at, wanted });
            if entry.held != entry.wanted.submit.held {
                records.push(Record::Held { number, flow: None, held: entry.held });
            }
            let held = |flow: &String| Record::Held { number, flow: Some(flow.clone()), held: true };
            records.extend(entry.held_flows.iter().map(held));
            // A change of the whole submission comes first, because it replaces earlier changes of single
            // flows.
            let changed = |(flow, &changed): (&Option<String>, _)| Record::Changed {
                number,
                flow: flow.clone(),
                changed,
            };
            records.extend(entry.changes.iter().map(changed));
            let cancelled = |(flow, reason): (&Option<String>, &CancelReason)| {
                let (flow, reason) = (flow.clone(), reason.clone());
                Record::Cancelled { number, flow, reason }
            };
            records.extend(entry.cancelled.iter().map(cancelled));
            records.extend(entry.is_let_in.then_some(Record::LetIn(number)));
            let said = |(flow, &said): (&String, _)| Record::Predicted { number, flow: flow.clone(), said };
            records.extend(entry.said.iter().map(said));
            let alerted = |(flow, kind): &(String, _)| Record::Alerted {
                number,
                flow: flow.clone(),
                kind: *kind,
                said: None,
            };
            records.extend(entry.alerted.iter().map(alerted));
        }
        records.extend(self.alerts.iter().map(|alert| Record::Alert(Box::new(alert.clone()))));
        records.push(Record::Sums { next: self.next, scores: self.scores });
        records.extend(self.is_draining.then_some(Record::Draining(true)));
        records
    }
}
