//! The unfinished submissions, their states, and their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use slackline::resident::FlowOverrides;
use slackline_model::WallTime;
use slackline_task::base::clock::Elapsed;

use crate::api::{self, Alert, AlertKind, IfLate, Prediction, State};
use crate::state::files::AwaitedFiles;
use crate::state::progress::{FlowProgress, RunningSubmission};
use crate::state::record::{CancelReason, Changes, FlowChange, Record, SubmissionSpec};
use crate::state::series::RunKey;
use crate::state::{Effect, LATE, PURGE_EVERY, ServiceState, Submissions};
use crate::{SECOND, timestamp};

/// The state of an unfinished submission. One that ends becomes an [`api::Submission`] that is
/// remembered.
///
/// ```text
/// queued ──► opening ──► running ──► finished
///   │ ▲         │          ├───────► failed
///   │ └─────────┤          └───────► cancelled
///   │           ├──► rejected       (a deadline would not hold, with --if-late reject)
///   └► cancelled└──► failed         (it cannot be run)
/// ```
///
/// The arrows are [`ServiceState::open_first`] (queued to opening), [`Entry::run`] (opening to running),
/// [`ServiceState::retry`] (opening or running to queued) and [`ServiceState::end`] (all arrows to an end).
#[derive(Debug)]
pub(super) enum SubmissionState {
    Queued {
        /// The reason why it waits, if the reason does not depend on other submissions.
        why: Option<String>,
        /// The time of the retry after a failed opening or run.
        not_before: Option<Elapsed>,
    },
    Opening,
    Running(RunningSubmission),
}

/// A submission that has not finished.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) wanted: Arc<SubmissionSpec>,
    pub(super) submitted: WallTime,
    pub(super) state: SubmissionState,
    pub(super) held: bool,
    pub(super) changes: Changes,
    /// Flows that a user holds separately.
    pub(super) held_flows: BTreeSet<String>,
    /// Cancelled flows; the key `None` is the whole submission.
    pub(super) cancelled: BTreeMap<Option<String>, CancelReason>,
    /// Whether a submission with `IfLate::Reject` has been accepted.
    pub(super) is_let_in: bool,
    /// The first prediction of each flow, and its time.
    pub(super) first: BTreeMap<String, (WallTime, api::FlowPrediction)>,
    pub(super) alerted: BTreeSet<(String, AlertKind)>,
    pub(super) prediction: Option<Prediction>,
    /// The number of failed openings and runs.
    pub(super) tries: u32,
    pub(super) files: AwaitedFiles,
}

/// The wait before a failed opening is retried, microseconds. It doubles with each retry, up to
/// `RETRY_LONGEST`.
const RETRY_FIRST: u64 = 5 * SECOND;
const RETRY_LONGEST: u64 = 300 * SECOND;

impl Submissions {
    /// The name of an unfinished or remembered submission.
    pub(super) fn name(&self, number: u64) -> Option<&String> {
        let open = self.open.get(&number).map(|entry| &entry.wanted.name);
        open.or_else(|| self.finished.find(number).map(|ended| &ended.name))
    }

    /// The running submissions, by number.
    pub(super) fn running(&self) -> impl DoubleEndedIterator<Item = (u64, &Entry, &RunningSubmission)> {
        self.open.iter().filter_map(|(&number, entry)| Some((number, entry, entry.running()?)))
    }

    pub(super) fn running_mut(&mut self, number: u64) -> Option<&mut RunningSubmission> {
        self.open.get_mut(&number)?.running_mut()
    }

    /// The first unfinished submission of a name.
    pub(super) fn first_of(&self, name: &str) -> Option<u64> {
        self.series.of_name(name).min()
    }

    /// Remembers a finished submission that ended at `age` by the age clock.
    pub(super) fn remember(
        &mut self,
        ended: api::Submission,
        age: WallTime,
        wanted: Option<Arc<SubmissionSpec>>,
    ) {
        self.next = self.next.max(ended.number + 1);
        if let Some(key) = &ended.key {
            self.keys.insert((ended.user.clone(), key.clone()), ended.number);
        }
        self.finished.push(ended, age, wanted);
    }
}

impl SubmissionState {
    /// The state in documents.
    pub(super) fn shown(&self) -> State {
        match self {
            Self::Queued { .. } => State::Queued,
            Self::Opening => State::Opening,
            Self::Running(_) => State::Running,
        }
    }
}

impl Entry {
    fn new(wanted: SubmissionSpec, submitted: WallTime) -> Self {
        Self {
            held: wanted.submit.held,
            files: AwaitedFiles::of(&wanted),
            wanted: Arc::new(wanted),
            submitted,
            state: SubmissionState::Queued { why: None, not_before: None },
            changes: BTreeMap::new(),
            held_flows: BTreeSet::new(),
            cancelled: BTreeMap::new(),
            is_let_in: false,
            first: BTreeMap::new(),
            alerted: BTreeSet::new(),
            prediction: None,
            tries: 0,
        }
    }

    /// The submission as it was submitted, without its parsed file.
    pub(super) fn kept(self) -> Arc<SubmissionSpec> {
        let mut wanted = Arc::unwrap_or_clone(self.wanted);
        wanted.draft.take();
        Arc::new(wanted)
    }

    /// The run of the submission was opened.
    pub(super) fn run(&mut self, running: RunningSubmission) {
        self.state = SubmissionState::Running(running);
    }

    pub(super) fn is_queued(&self) -> bool {
        matches!(self.state, SubmissionState::Queued { .. })
    }

    pub(super) fn running(&self) -> Option<&RunningSubmission> {
        if let SubmissionState::Running(running) = &self.state { Some(running) } else { None }
    }

    pub(super) fn running_mut(&mut self) -> Option<&mut RunningSubmission> {
        if let SubmissionState::Running(running) = &mut self.state { Some(running) } else { None }
    }

    /// The flows of a running submission.
    pub(super) fn flows(&self) -> &[FlowProgress] {
        self.running().map_or(&[], |running| &running.flows)
    }

    /// The stored reason why the submission waits.
    pub(super) fn own_why(&self) -> Option<&String> {
        if let SubmissionState::Queued { why, .. } = &self.state { why.as_ref() } else { None }
    }

    pub(super) fn not_before(&self) -> Option<Elapsed> {
        if let SubmissionState::Queued { not_before, .. } = self.state { not_before } else { None }
    }

    pub(super) fn priority(&self) -> u32 {
        let changed = self.changes.get(&None).and_then(|changed| changed.priority);
        changed.unwrap_or(self.wanted.submit.priority)
    }

    /// The first deadline of a submission that has not started.
    pub(super) fn due(&self) -> Option<WallTime> {
        self.changes.get(&None).and_then(|changed| changed.deadline).or(self.wanted.due)
    }

    pub(super) fn changed(&self, flow: &str) -> FlowChange {
        FlowChange::of(&self.changes, flow)
    }

    pub(super) fn is_cancelled(&self, flow: &str) -> bool {
        self.cancelled.contains_key(&None) || self.cancelled.contains_key(&Some(flow.to_owned()))
    }

    /// Whether no task of a flow may start.
    pub(super) fn is_held(&self, flow: &str) -> bool {
        self.is_held_by_hand(flow) || self.is_on_trial()
    }

    /// Whether a user holds the flow.
    pub(super) fn is_held_by_hand(&self, flow: &str) -> bool {
        self.held || self.held_flows.contains(flow)
    }

    /// Whether the submission waits for the decision of `IfLate::Reject`.
    pub(super) fn is_on_trial(&self) -> bool {
        self.wanted.submit.if_late == IfLate::Reject && !self.is_let_in
    }

    /// The first predictions of its flows, with the latest impact on others.
    fn first_prediction(&self) -> Option<Prediction> {
        let made = self.first.values().map(|(made, _)| *made).min()?;
        let impact = self.prediction.as_ref().map(|last| (last.makes_late.clone(), last.remedies.clone()));
        let (makes_late, remedies) = impact.unwrap_or_default();
        let flows = self.first.values().map(|(_, first)| first.clone()).collect();
        Some(Prediction { made: timestamp(made), flows, makes_late, remedies })
    }

    /// The overrides of a flow for the engine. `next` is the next time of the submission's schedule; the flow
    /// recurs later than that by its release offset.
    pub(super) fn overrides(
        &self,
        flow: &FlowProgress,
        started: WallTime,
        next: Option<WallTime>,
    ) -> FlowOverrides {
        let FlowChange { deadline, weight, priority } = self.changed(&flow.flow);
        let held = self.is_held(&flow.flow) || self.is_cancelled(&flow.flow);
        let next = next.map(|at| at + flow.release.since(started));
        let [deadline, next] = [deadline, next].map(|at| at.map(|at| at.seconds_since(started)));
        FlowOverrides { held, deadline, weight, priority, next }
    }
}

impl ServiceState {
    /// The specification of an unfinished submission.
    pub(crate) fn wanted(&self, number: u64) -> Option<&SubmissionSpec> {
        self.submissions.open.get(&number).map(|entry| &*entry.wanted)
    }

    /// Adds a submission to the state.
    pub(super) fn enter(&mut self, number: u64, at: WallTime, wanted: SubmissionSpec) {
        let Submissions { next, open, series, keys, .. } = &mut self.submissions;
        *next = (*next).max(number + 1);
        if let Some(key) = wanted.key() {
            keys.insert((wanted.user.clone(), key.clone()), number);
        }
        series.enter(RunKey::of(&wanted), number);
        let mut entry = Entry::new(wanted, at);
        // After a restart the time limit for files continues.
        entry.files.await_from(at);
        open.insert(number, entry);
        self.enqueue(number);
    }

    /// Changes a queued submission, and its place in the queue.
    pub(super) fn requeue(&mut self, number: u64, change: impl FnOnce(&mut Entry)) {
        let is_queued = self.submissions.open.get(&number).is_some_and(Entry::is_queued);
        if is_queued {
            self.dequeue(number);
        }
        if let Some(entry) = self.submissions.open.get_mut(&number) {
            change(entry);
        }
        if is_queued {
            self.enqueue(number);
        }
    }

    /// Queues a submission for a retry, after its opening or its run failed.
    pub(super) fn retry(&mut self, number: u64, problem: &str) {
        let Some(entry) = self.submissions.open.get(&number) else { return };
        if let Some(reason) = entry.cancelled.get(&None).cloned() {
            return self.end(number, reason.state(), reason.text());
        }
        self.leave_deadlines(number);
        self.end_begun(number);
        let now = self.clock.elapsed();
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        let wait = RETRY_FIRST.saturating_mul(1 << entry.tries.min(10)).min(RETRY_LONGEST);
        entry.tries += 1;
        let message = format!("retry {} in {} s: {problem}", entry.tries, wait / SECOND);
        let not_before = Some(now + wait);
        entry.state = SubmissionState::Queued { why: Some(message.clone()), not_before };
        self.enqueue(number);
        self.event("waits", Some(number), None, message);
    }

    /// Removes a submission, with its deadlines. The next one of its name may start.
    pub(super) fn take_out(&mut self, number: u64) -> Option<Entry> {
        self.dequeue(number);
        self.end_begun(number);
        self.leave_series(number);
        self.leave_deadlines(number);
        self.submissions.open.remove(&number)
    }

    /// Removes a submission whose record could not be written.
    pub fn revoke(&mut self, number: u64) {
        if let Some(Entry { wanted, .. }) = self.take_out(number)
            && let Some(key) = wanted.key()
        {
            self.submissions.keys.remove(&(wanted.user.clone(), key.clone()));
        }
    }

    /// Ends a submission.
    pub(super) fn end(&mut self, number: u64, state: State, why: Option<String>) {
        let now = self.now();
        let Some(entry) = self.take_out(number) else { return };
        let ended = api::Submission {
            state,
            why: why.clone(),
            deadline: None,
            ended: Some(timestamp(now)),
            prediction: entry.first_prediction(),
            ..entry.shown(number, now, true)
        };
        let age = self.clock.age();
        let record = Record::Ended {
            age: (age.0.abs_diff(now.0) > LATE).then_some(age),
            ended: Box::new(ended.clone()),
            wanted: None,
        };
        self.out.records.push(record);
        let (name, ended_user, kept) = (entry.wanted.name.clone(), ended.user.clone(), entry.kept());
        let finished = &mut self.submissions.finished;
        finished.push(ended, age, Some(kept));
        finished.next_purge = finished.next_purge.min(self.clock.elapsed() + PURGE_EVERY);
        if state == State::Finished && self.facts.tells_finished {
            let (at, user, flow) = (timestamp(now), ended_user, String::new());
            let message = format!("{name} has finished");
            let kind = AlertKind::Finished;
            self.out.effects.push(Effect::Alert(Alert {
                kind,
                at,
                number,
                name: name.clone(),
                flow,
                user,
                message,
            }));
        }
        let kind = state.name();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        self.event("ended", Some(number), None, format!("{name}: {kind}{why}"));
    }
}
