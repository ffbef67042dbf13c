//! The state of the service, as a pure state machine: commands and events in, records and effects out. It has
//! no thread, file, socket or clock.
//!
//! - [`ServiceState`]: the state; [`Command`], [`Answer`], [`Refusal`]: the requests of clients, and the
//!   responses; [`StateEvent`]: results of effects; [`Transition`], [`Effect`]: the records to write and the
//!   work to carry out;
//! - `commands`: one method for each command; `queue`: submissions that may start, in order; `running`:
//!   submissions whose flows are scheduled; `finished`: those that ended; `recurring`: schedules;
//!   `wait_reasons`: why a submission or a flow waits; `quota`: slots by user; `clock`: jumps of the wall
//!   clock, and ages; `replay`: the state from its records.
//!
//! The caller writes the records of a call to disk before it carries out an effect or sends the answer
//! ([`Transition::records`]). So a crash loses no acknowledged command and no started run.

pub mod auth;
mod clock;
mod commands;
pub mod cron;
mod finished;
mod forecasts;
mod queue;
mod quota;
pub mod record;
mod recurring;
mod replay;
mod running;
#[cfg(test)]
mod tests;
pub mod times;
mod view;
mod wait_reasons;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::tz::TimeZone;
use slackline::resident::{FlowOrder, FlowOverrides};
use slackline_task::base::clock::{ClockReading, Elapsed};

use crate::api::{self, Alert, AlertKind, Load, LoadPoint, Prediction, State};
use crate::state::record::{CancelReason, Changes, Record, Scores, StoredPrediction, SubmissionSpec};
use crate::{Moment, SECOND, timestamp};

pub use commands::{Answer, Command, FlowFileCheck, PendingSubmission, Refusal, RefusalKind};
pub use forecasts::{FlowEstimate, ForecastResult, Impact};
pub use running::{FlowFacts, JobFacts, Opened, StateEvent};

use clock::ServiceClock;
use finished::FinishedSubmission;
use forecasts::{ForecastError, UnpredictedQueue};
use queue::Queue;
use recurring::RecurringSubmission;
use running::RunningSubmission;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Submissions whose flows are scheduled at a time; the others wait in the queue.
    pub live: usize,
    /// Submissions that wait in the queue, of all users together.
    pub queued: usize,
    /// Submissions of one user that wait in the queue.
    pub queued_by_user: usize,
    /// Submissions of one user that are scheduled at a time.
    pub live_by_user: usize,
    /// Slots that the tasks of one user may hold at a time. `None`: no limit.
    pub slots_by_user: Option<u32>,
    /// Submissions of one user within a minute.
    pub rate_by_user: usize,
    /// Finished submissions that are remembered.
    pub remembered: usize,
    /// How long a finished submission is remembered, microseconds.
    pub remembered_for: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            live: 1_000,
            queued: 200_000,
            queued_by_user: 200_000,
            live_by_user: 1_000,
            slots_by_user: None,
            rate_by_user: 100_000,
            remembered: 10_000,
            remembered_for: 30 * 24 * 3600 * SECOND,
        }
    }
}

/// The configuration of the service that the state reports and obeys.
#[derive(Clone, Debug)]
pub struct ServiceFacts {
    /// A description of the engine, for messages.
    pub engine: String,
    pub policy: String,
    /// A description of the objective that the policy minimizes.
    pub objective: String,
    /// The time zone of schedules without a zone.
    pub zone: TimeZone,
    pub limits: Limits,
}

/// The result of a call: the records to write and the effects to carry out.
#[derive(Debug, Default)]
pub struct Transition {
    /// The caller writes these first.
    pub records: Vec<Record>,
    /// The caller carries these out next, in this order.
    pub effects: Vec<Effect>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Look up the inputs of a submission and open its run. The event is [`StateEvent::Opened`] or
    /// [`StateEvent::NotOpened`].
    Open(u64),
    /// Hand an opened run to the engine, with the overrides of its flows.
    Admit {
        number: u64,
        standings: BTreeMap<String, FlowOverrides>,
    },
    /// Change one flow of a run.
    Change {
        number: u64,
        flow: String,
        change: FlowOrder,
    },
    /// Forecast all running flows, and the effect of one submission on the others. The event is
    /// [`StateEvent::Predicted`].
    Predict {
        /// The submission. `None`: update the forecasts of all flows.
        number: Option<u64>,
    },
    /// Check whether the files that a submission waits for exist. The event is [`StateEvent::Files`].
    Look(u64),
    /// Read the first deadline of a queued submission from its file. The event is [`StateEvent::Read`].
    Read(u64),
    /// No submission or schedule of this name is left. Move its state directory aside;
    /// [`Effect::RemoveAside`] removes it a day later.
    Forget {
        name: String,
        /// The time of the move, by the age clock.
        at: Moment,
    },
    /// Remove the directories moved aside before this time of the age clock.
    RemoveAside(Moment),
    /// The wall clock jumped by this many microseconds.
    ClockJumped(i64),
    Alert(Alert),
    Event(api::Event),
}

/// The wait before a failed opening is retried, microseconds. It doubles with each retry, up to
/// `RETRY_LONGEST`.
const RETRY_FIRST: u64 = 5 * SECOND;
const RETRY_LONGEST: u64 = 300 * SECOND;

/// The interval between two checks for the files that submissions wait for.
const LOOK_EVERY: u64 = 2 * SECOND;

/// The interval between two load points, and the number of load points kept (one day).
const LOAD_EVERY: u64 = 10 * SECOND;
const LOAD_POINTS: usize = 8_640;

/// The number of alerts kept, across restarts too.
const ALERTS: usize = 1_000;

/// The interval between two searches for finished submissions to forget.
const PURGE_EVERY: u64 = 60 * SECOND;

/// The least time between two periodic forecasts.
const OUTLOOK_EVERY: u64 = 10 * SECOND;

/// A submission that has not finished.
#[derive(Debug)]
pub(super) struct Entry {
    wanted: SubmissionSpec,
    submitted: Moment,
    state: State,
    held: bool,
    changes: Changes,
    /// Flows that a user holds separately.
    held_flows: BTreeSet<String>,
    /// Cancelled flows; the key `None` is the whole submission.
    cancelled: BTreeMap<Option<String>, CancelReason>,
    /// Whether a submission with `IfLate::Reject` has been accepted.
    is_let_in: bool,
    /// The first prediction of each flow.
    said: BTreeMap<String, StoredPrediction>,
    alerted: BTreeSet<(String, AlertKind)>,
    prediction: Option<Prediction>,
    /// The reason why the submission waits, if known.
    why: Option<String>,
    /// The number of failed openings.
    tries: u32,
    not_before: Option<Elapsed>,
    /// Whether the files that the submission waits for exist.
    has_files: bool,
    /// One of the files that were missing at the last check.
    missing: Option<String>,
    live: Option<RunningSubmission>,
}

#[derive(Debug)]
pub struct ServiceState {
    facts: ServiceFacts,
    began: Moment,
    clock: ServiceClock,
    /// The start of this process.
    started: Moment,
    next: u64,
    entries: BTreeMap<u64, Entry>,
    queue: Queue,
    /// The unfinished submissions of each name, the oldest first.
    series: BTreeMap<String, VecDeque<u64>>,
    ended: FinishedSubmission,
    /// Submissions of schedules whose files have not been read yet.
    unread: Vec<u64>,
    /// Submissions by user and idempotency key.
    keys: BTreeMap<(String, String), u64>,
    recurring: BTreeMap<String, RecurringSubmission>,
    scores: Scores,
    /// The latest alerts, the oldest first.
    alerts: VecDeque<Alert>,
    is_draining: bool,
    /// Future deadlines, with the submission and the flow.
    deadlines: BTreeSet<(Moment, u64, String)>,
    /// The times at which each user submitted within the last minute.
    rates: BTreeMap<String, VecDeque<Elapsed>>,
    load: LoadSoFar,
    /// Slots that the tasks of each user hold. Counted only if `Limits::slots_by_user` is set.
    held: BTreeMap<String, u64>,
    next_event: u64,
    next_look: Elapsed,
    next_purge: Elapsed,
    next_outlook: Elapsed,
    /// The error of the last forecast.
    forecast_error: Option<ForecastError>,
    /// Whether a forecast is being made.
    is_predicting: bool,
    wanting: UnpredictedQueue,
    /// Until this time, new submissions are not predicted while others are being opened.
    opening_until: Option<Elapsed>,
    machines: Vec<api::Machine>,
    /// The policy's limits that keep flows from free slots.
    policy_limits: slackline::resident::Limits,
    troubles: BTreeMap<HealthProblem, String>,
}

/// A problem of the service itself. It stays reported until it is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthProblem {
    /// An important thread is blocked.
    Blocked,
    /// The log cannot be written: the service refuses all changes.
    Log,
    /// The log cannot be rewritten without the records of finished submissions.
    Compaction,
    /// The disk has no space for the documents of finished runs.
    Documents,
    /// The history of task durations cannot be written.
    History,
    /// The wall clock jumped, or was wrong.
    Clock,
    /// A schedule is lost, because this machine does not know its time zone.
    Zone,
}

/// The number of running tasks over time.
#[derive(Debug, Default)]
struct LoadSoFar {
    points: VecDeque<LoadPoint>,
    /// The integral of running tasks over the time since the last point, task-microseconds.
    work: f64,
    running: u64,
    since: Elapsed,
    /// The time of the last point.
    noted: Elapsed,
    next: Elapsed,
}

impl ServiceState {
    /// The state of a new service, and its first record.
    pub fn new(facts: ServiceFacts, now: ClockReading) -> (Self, Record) {
        (Self::empty(facts, now.wall.0, now), Record::Began(now.wall.0))
    }

    fn empty(facts: ServiceFacts, began: Moment, now: ClockReading) -> Self {
        Self {
            facts,
            began,
            clock: ServiceClock::new(now, began),
            started: began,
            next: 1,
            entries: BTreeMap::new(),
            queue: Queue::default(),
            series: BTreeMap::new(),
            ended: FinishedSubmission::default(),
            unread: Vec::new(),
            keys: BTreeMap::new(),
            recurring: BTreeMap::new(),
            scores: Scores::default(),
            alerts: VecDeque::new(),
            is_draining: false,
            deadlines: BTreeSet::new(),
            rates: BTreeMap::new(),
            load: LoadSoFar { since: now.elapsed, noted: now.elapsed, ..LoadSoFar::default() },
            held: BTreeMap::new(),
            next_event: 1,
            next_look: now.elapsed,
            next_purge: now.elapsed,
            next_outlook: now.elapsed,
            forecast_error: None,
            is_predicting: false,
            opening_until: None,
            wanting: UnpredictedQueue::new(),
            machines: Vec::new(),
            policy_limits: slackline::resident::Limits::new(),
            troubles: BTreeMap::new(),
        }
    }

    /// The first start of the service; the time of its engine starts there.
    pub fn began(&self) -> Moment {
        self.began
    }

    /// Sets a problem of the service, or clears it with `None`.
    pub fn set_trouble(&mut self, of: HealthProblem, problem: Option<String>) {
        match problem {
            Some(problem) => drop(self.troubles.insert(of, problem)),
            None => drop(self.troubles.remove(&of)),
        }
    }

    /// While the log cannot be written: a record that changes nothing, to test whether it can be written
    /// again.
    pub fn trial(&self) -> Option<Record> {
        self.troubles.contains_key(&HealthProblem::Log).then_some(Record::Draining(self.is_draining))
    }

    /// The number of slots that one user may hold. `None`: no limit.
    pub fn slots_by_user(&self) -> Option<u32> {
        self.facts.limits.slots_by_user
    }

    /// The specification of an unfinished submission.
    pub fn wanted(&self, number: u64) -> Option<&SubmissionSpec> {
        self.entries.get(&number).map(|entry| &entry.wanted)
    }

    /// The deadlines of the flows of a running submission.
    pub fn deadlines_of(&self, number: u64) -> BTreeMap<String, Moment> {
        let live = self.entries.get(&number).and_then(|entry| entry.live.as_ref());
        let flows = live.into_iter().flat_map(|live| &live.flows);
        flows.filter_map(|here| Some((here.flow.clone(), here.deadline?))).collect()
    }

    /// Sends an event about the service itself to all listeners.
    pub fn tell_of_service(&mut self, now: ClockReading, kind: &str, message: String, out: &mut Transition) {
        let now = self.read_clock(now, out);
        self.tell(now, kind, message, out);
    }

    /// The number of unfinished submissions.
    pub fn open(&self) -> usize {
        self.entries.len()
    }

    /// The time until the next call of [`ServiceState::tick`], microseconds.
    pub fn due(&self, now: ClockReading) -> u64 {
        let recurring = self.recurring.values().filter_map(|again| self.recurs_by(again));
        let deadlines = self.deadlines.first().map(|(at, ..)| *at);
        let looks = self.queue.awaits_files().then_some(self.next_look);
        // Forecasts wait for submissions that are being opened.
        let outlook = self.opening_until.unwrap_or(self.next_outlook);
        let outlook = (!self.is_predicting && self.has_live()).then_some(outlook);
        let purge = (!self.ended.is_empty()).then_some(self.next_purge);
        let load = (self.load.running > 0 || !self.entries.is_empty()).then_some(self.load.next);
        let dates = recurring.chain([deadlines, self.queue.next_due()].into_iter().flatten()).min();
        let by_date = dates.map(|at| at.saturating_sub(now.wall.0));
        let timers = [looks, outlook, purge, load, self.queue.next_try()].into_iter().flatten();
        let next = timers.fold(self.clock.due(), Elapsed::min).since(now.elapsed);
        by_date.map_or(next, |by_date| by_date.min(next))
    }

    /// Whether forecasts wait for submissions that are being opened.
    fn waits_for_opening(&self) -> bool {
        let now = self.clock.elapsed();
        self.queue.is_opening() && self.opening_until.is_some_and(|until| now < until)
    }

    fn has_live(&self) -> bool {
        self.queue.live() > 0
    }

    /// Does all work that is due at `now`.
    pub fn tick(&mut self, now: ClockReading, out: &mut Transition) {
        let (now, elapsed) = (self.read_clock(now, out), now.elapsed);
        self.recur(now, out);
        self.miss_deadlines(now, out);
        if self.queue.awaits_files() && elapsed >= self.next_look {
            self.next_look = elapsed + LOOK_EVERY;
            out.effects.extend(self.queue.without_files().map(Effect::Look));
        }
        self.next_prediction(out);
        let is_due = elapsed >= self.next_outlook && !self.waits_for_opening();
        if !self.is_predicting && self.has_live() && is_due {
            self.predict(None, out);
        }
        self.note_load(now);
        if elapsed >= self.next_purge {
            self.next_purge = elapsed + PURGE_EVERY;
            self.forget(out);
        }
        self.begin_next(out);
    }

    fn predict(&mut self, number: Option<u64>, out: &mut Transition) {
        self.is_predicting = true;
        out.effects.push(Effect::Predict { number });
    }

    /// Forgets submissions and alerts that are too old by the age clock.
    fn forget(&mut self, out: &mut Transition) {
        let Limits { remembered, remembered_for, .. } = self.facts.limits;
        let (now, at) = (self.clock.elapsed(), self.clock.age());
        let least = at.saturating_sub(remembered_for);
        while self.alerts.front().is_some_and(|alert| crate::moment(alert.at) < least) {
            self.alerts.pop_front();
        }
        let mut names = BTreeSet::new();
        while self.ended.len() > remembered || self.ended.first().is_some_and(|ended| ended < least) {
            let Some(ended) = self.ended.pop() else { break };
            if let Some(key) = ended.key {
                self.keys.remove(&(ended.user, key));
            }
            names.insert(ended.name);
        }
        // A state directory stays while another submission or schedule has its name.
        names.retain(|name| !self.series.contains_key(name) && !self.recurring.contains_key(name));
        if !names.is_empty() {
            for ended in self.ended.iter() {
                names.remove(&ended.name);
            }
        }
        out.effects.extend(names.into_iter().map(|name| Effect::Forget { name, at }));
        self.rates.retain(|_, times| {
            times.retain(|&at| now.since(at) < 60 * SECOND);
            !times.is_empty()
        });
    }

    /// Changes the number of running tasks.
    fn work(&mut self, by: i64) {
        let (load, now) = (&mut self.load, self.clock.elapsed());
        load.work += load.running as f64 * now.since(load.since) as f64;
        load.since = now;
        load.running = load.running.saturating_add_signed(by);
    }

    fn note_load(&mut self, now: Moment) {
        let elapsed = self.clock.elapsed();
        if elapsed < self.load.next {
            return;
        }
        self.work(0);
        let waiting = self
            .entries
            .values()
            .filter_map(|entry| entry.live.as_ref())
            .map(RunningSubmission::waiting)
            .sum();
        let took = elapsed.since(self.load.noted).max(1) as f64;
        let running =
            if self.load.points.is_empty() { self.load.running as f64 } else { self.load.work / took };
        let point = LoadPoint { at: timestamp(now), running, waiting, queued: self.queue.len() as u64 };
        self.load.points.push_back(point);
        if self.load.points.len() > LOAD_POINTS {
            self.load.points.pop_front();
        }
        (self.load.work, self.load.noted, self.load.next) = (0.0, elapsed, elapsed + LOAD_EVERY);
    }

    /// The load points from a moment on.
    fn loads(&self, since: Moment) -> Load {
        let since = timestamp(since);
        let first = self.load.points.partition_point(|point| point.at < since);
        Load { points: self.load.points.range(first..).copied().collect() }
    }

    fn event(&mut self, out: &mut Transition, now: Moment, what: ServiceEvent<'_>) {
        let ServiceEvent { kind, number, flow, message } = what;
        let id = self.next_event;
        self.next_event += 1;
        let open = |number: u64| self.wanted(number).map(|wanted| &wanted.name);
        let over = |number: u64| self.ended.find(number).map(|ended| &ended.name);
        let name = number.and_then(|number| open(number).or_else(|| over(number))).cloned();
        let (kind, flow) = (kind.to_owned(), flow.map(str::to_owned));
        out.effects.push(Effect::Event(api::Event {
            id,
            at: timestamp(now),
            kind,
            number,
            name,
            flow,
            message,
        }));
    }

    /// Keeps an alert, and drops the oldest if there are too many.
    fn keep_alert(&mut self, alert: Alert) {
        self.alerts.push_back(alert);
        if self.alerts.len() > ALERTS {
            self.alerts.pop_front();
        }
    }

    /// Sends an alert, unless the same alert was sent before.
    fn alert(
        &mut self,
        out: &mut Transition,
        now: Moment,
        number: u64,
        flow: &str,
        kind: AlertKind,
        message: String,
    ) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if !entry.alerted.insert((flow.to_owned(), kind)) {
            return;
        }
        let said = Some((now, message.clone()));
        out.records.push(Record::Alerted { number, flow: flow.to_owned(), kind, said });
        let SubmissionSpec { name, user, .. } = &entry.wanted;
        let alert = Alert {
            kind,
            at: timestamp(now),
            number,
            name: name.clone(),
            flow: flow.to_owned(),
            user: user.clone(),
            message: message.clone(),
        };
        self.keep_alert(alert.clone());
        out.effects.push(Effect::Alert(alert));
        self.event(
            out,
            now,
            ServiceEvent { kind: kind.name(), number: Some(number), flow: Some(flow), message },
        );
    }
}

/// An event to send to listeners.
pub(super) struct ServiceEvent<'a> {
    kind: &'a str,
    number: Option<u64>,
    flow: Option<&'a str>,
    message: String,
}
