//! The state rebuilt from records, and the shortest list of records that gives the same state.

use std::sync::Arc;

use slackline_model::WallTime;
use slackline_task::base::clock::ClockReading;

use crate::api::{self, FlowPrediction};
use crate::state::record::{CancelReason, Record, SubmissionSpec};
use crate::state::submissions::Entry;
use crate::state::{LATE, ServiceFacts, ServiceState, Transition};
use crate::wall_time;

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
        records.for_each(|record| state.apply(record));
        // Those of schedules were not read, and others may have no deadline.
        let unread = |(number, entry): (&u64, &Entry)| entry.wanted.due.is_none().then_some(*number);
        state.submissions.unread = state.submissions.open.iter().filter_map(unread).collect();
        state.start_clock();
        state.begin_next();
        let out = std::mem::take(&mut state.out);
        Some((state, out))
    }

    /// Applies a record from disk.
    fn apply(&mut self, record: Record) {
        match record {
            // This is the first record alone.
            Record::Began(_) => {}
            Record::Sums { next, scores } => {
                self.submissions.next = self.submissions.next.max(next);
                self.forecasts.scores = scores;
            }
            Record::Submitted { number, at, wanted } => {
                if let Some(recurrence) = &wanted.recurrence {
                    self.handled(recurrence, wanted.since, true);
                }
                self.enter(number, at, *wanted);
            }
            Record::Recurs(recurring) => self.recall_recurring(*recurring),
            Record::RecursNoMore(name) => drop(self.schedules.remove(&name)),
            Record::LeftOut { recurrence, until } => self.handled(&recurrence, until, false),
            Record::Held { number, flow, held } => {
                self.set_held(number, flow, held);
                self.sort_in(number);
            }
            Record::Changed { number, flow, changed } => self.set_changed(number, flow.as_deref(), changed),
            Record::Cancelled { number, flow, reason } => {
                self.recall(number, |entry| drop(entry.cancelled.insert(flow, reason)));
            }
            Record::LetIn(number) => self.recall(number, |entry| entry.is_let_in = true),
            Record::Predicted { number, made, first } => {
                self.recall(number, |entry| drop(entry.first.insert(first.flow.clone(), (made, first))));
            }
            Record::Alert(alert) => {
                let cause = (alert.flow.clone(), alert.kind);
                self.recall(alert.number, |entry| entry.alerted.extend([cause]));
                self.alerts.keep(*alert);
            }
            Record::Alerted { number, flow, kind } => {
                self.recall(number, |entry| entry.alerted.extend([(flow, kind)]));
            }
            Record::Ended { age, ended, wanted } => {
                let end = ended.ended.map_or_else(WallTime::default, wall_time);
                let entry = self.take_out(ended.number);
                if let Some(entry) = &entry {
                    self.recall_scores(entry, &ended.flows);
                }
                let wanted = entry.map(Entry::kept).or(wanted.map(|wanted| Arc::new(*wanted)));
                self.submissions.remember(*ended, age.unwrap_or(end), wanted);
            }
            Record::Aged(age) => self.clock.recall(age),
            Record::Draining(draining) => self.submissions.queue.is_draining = draining,
        }
    }

    fn recall(&mut self, number: u64, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.submissions.open.get_mut(&number) {
            change(entry);
        }
    }

    /// Counts the predictions of a finished submission.
    fn recall_scores(&mut self, entry: &Entry, flows: &[api::Flow]) {
        for flow in flows {
            if let (Some((_, first)), Some(done)) = (entry.first.get(&flow.flow), flow.completion) {
                let submitted = entry.submitted.max(wall_time(flow.release));
                self.forecasts.scores.add(first, submitted, flow.deadline.map(wall_time), wall_time(done));
            }
        }
    }

    /// The least number of records that [`Self::records`] returns.
    pub fn least_records(&self) -> usize {
        let all = &self.submissions;
        self.schedules.len() + all.finished.len() + all.open.len() + self.alerts.kept.len()
    }

    /// The shortest list of records that gives this state.
    pub fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Began(self.began()), Record::Aged(self.clock.age())];
        records
            .extend(self.schedules.values().map(|again| Record::Recurs(Box::new(again.recurring.clone()))));
        // Those of unfinished submissions come first, because a change may allow a second alert.
        records.extend(self.alerts.kept.iter().map(|alert| Record::Alert(Box::new(alert.clone()))));
        for (ended, age, wanted) in self.submissions.finished.with_ages() {
            let is_usual = ended.ended.is_some_and(|at| wall_time(at).0.abs_diff(age.0) <= LATE);
            let age = (!is_usual).then_some(age);
            let wanted = wanted.map(|wanted| Box::new(SubmissionSpec::clone(wanted)));
            records.push(Record::Ended { age, ended: Box::new(ended.clone()), wanted });
        }
        for (&number, entry) in &self.submissions.open {
            let (at, wanted) = (entry.submitted, Box::new(SubmissionSpec::clone(&entry.wanted)));
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
            let first = |(made, first): &(WallTime, _)| Record::Predicted {
                number,
                made: *made,
                first: FlowPrediction::clone(first),
            };
            records.extend(entry.first.values().map(first));
            let alerted =
                |(flow, kind): &(String, _)| Record::Alerted { number, flow: flow.clone(), kind: *kind };
            records.extend(entry.alerted.iter().map(alerted));
        }
        records.push(Record::Sums { next: self.submissions.next, scores: self.forecasts.scores });
        records.extend(self.submissions.queue.is_draining.then_some(Record::Draining(true)));
        records
    }
}
