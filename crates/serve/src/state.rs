//! The state of the service, as a pure state machine: commands and events in, records and effects out. It has
//! no thread, file, socket or clock.
//!
//! - [`ServiceState`]: the state; [`Command`], [`Answer`], [`Refusal`]: what clients request, and the
//!   responses;
//!   [`StateEvent`]: results of effects; [`Transition`], [`Effect`]: what the caller writes down and carries out;
//! - `commands`: one method for each command; `queue`: submissions that may start, in order; `running`:
//!   submissions whose flows are scheduled; `finished`: those that ended; `recurring`: schedules;
//!   `wait_reasons`: why a submission or a flow waits; `quota`: slots by user; `clock`: jumps of the wall
//!   clock, and ages; `replay`: the state from its records.
//!
//! The caller writes the records of a call down before it carries out an effect or sends the answer
//! ([`Transition::records`]). So everything that was acknowledged survives a crash, and everything that was
//! started is known.

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
use slackline::resident::FlowOverrides;
use slackline_task::base::clock::{ClockReading, Elapsed};

use crate::api::{self, Alert, AlertKind, Load, LoadPoint, Prediction, State};
use crate::state::record::{Changes, Record, Scores, StoredPrediction, SubmissionSpec};
use crate::{Moment, SECOND, timestamp};

pub use commands::{Answer, Command, FlowFileCheck, Refusal, RefusalKind};
pub use forecasts::{FlowEstimate, ForecastResult, Impact};
pub use running::{FlowFacts, JobFacts, Opened, Seen, StateEvent};
pub use view::PendingSubmission;

use clock::ServiceClock;
use finished::FinishedSubmission;
use forecasts::{ForecastError, UnpredictedQueue};
use queue::Queue;
use recurring::RecurringSubmission;
use running::RunningSubmission;

/// How large things may get.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Submissions whose flows are scheduled at a time; the others wait in the queue.
    pub live: usize,
    /// Submissions that wait, altogether and of one user.
    pub queued: usize,
    /// See [`Limits::queued`].
    pub queued_by_user: usize,
    /// Submissions of one user that are scheduled at a time.
    pub live_by_user: usize,
    /// Slots that the tasks of one user may hold at a time; none for all there are.
    pub slots_by_user: Option<u32>,
    /// Submissions of one user within a minute.
    pub rate_by_user: usize,
    /// Submissions that are over and remembered, and for how long, microseconds.
    pub remembered: usize,
    /// See [`Limits::remembered`].
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

/// What the desk is told of the service that it is of.
#[derive(Clone, Debug)]
pub struct ServiceFacts {
    /// The engine, for a person.
    pub engine: String,
    /// The policy, as it is named.
    pub policy: String,
    /// What it keeps small, in words.
    pub objective: String,
    /// The time zone of schedules that name none.
    pub zone: TimeZone,
    /// How large things may get.
    pub limits: Limits,
}

/// Everything that a call has to be done for.
#[derive(Debug, Default)]
pub struct Transition {
    /// To be written down first.
    pub records: Vec<Record>,
    /// To be done then, in this order.
    pub effects: Vec<Effect>,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Look up the inputs of a submission, and open its run. The answer is [`StateEvent::Opened`] or
    /// [`StateEvent::NotOpened`].
    Open(u64),
    /// Give an opened run to the engine, with flows that stand in another way than its document says.
    Admit {
        number: u64,
        standings: BTreeMap<String, FlowOverrides>,
    },
    /// A flow of a run stands in another way.
    Stand {
        number: u64,
        flow: String,
        standing: FlowOverrides,
    },
    /// A flow of a run is not to go on.
    Cancel {
        number: u64,
        flow: String,
    },
    /// Say what is expected of all flows that are live, and what that of one submission means for the others.
    /// The answer is [`StateEvent::Predicted`].
    Predict {
        /// The submission; none to bring what is known of all up to date.
        number: Option<u64>,
    },
    /// Look whether the files are there that a submission waits for. The answer is [`StateEvent::Files`].
    Look(u64),
    /// Read when a submission should be done that waits. The answer is [`StateEvent::Read`].
    Read(u64),
    /// Nothing of a name is known any more: its state directory is moved aside, and removed a day later.
    Forget {
        name: String,
        /// When, by the age clock.
        at: Moment,
    },
    /// Remove what was moved aside before a moment of the age clock.
    RemoveAside(Moment),
    /// The jump of the wall clock, microseconds.
    ClockJumped(i64),
    Alert(Alert),
    Event(api::Event),
}

/// How long something that could not be opened for want of something waits before it is tried again; doubled
/// each time.
const RETRY_FIRST: u64 = 5 * SECOND;
const RETRY_LONGEST: u64 = 300 * SECOND;

/// How often files are looked for that somebody waits for.
const LOOK_EVERY: u64 = 2 * SECOND;

/// How often what is at work is noted, and for how long it is remembered.
const LOAD_EVERY: u64 = 10 * SECOND;
const LOAD_POINTS: usize = 8_640;

/// Alerts that are shown, over restarts too.
const ALERTS: usize = 1_000;

/// How often what is over is looked at that may be forgotten.
const PURGE_EVERY: u64 = 60 * SECOND;

/// The least time between two looks ahead that nobody asked for.
const OUTLOOK_EVERY: u64 = 10 * SECOND;

/// A submission that is not over.
#[derive(Debug)]
pub(super) struct Entry {
    wanted: SubmissionSpec,
    submitted: Moment,
    state: State,
    held: bool,
    changes: Changes,
    /// Flows that are held by themselves.
    held_flows: BTreeSet<String>,
    /// Flows that were cancelled, or all of them by none; with the reason if nobody asked for it.
    cancelled: BTreeMap<Option<String>, Option<String>>,
    /// Whether it may begin although a deadline of it has to be expected to hold.
    is_let_in: bool,
    /// What was said of its flows when it was submitted.
    said: BTreeMap<String, StoredPrediction>,
    alerted: BTreeSet<(String, AlertKind)>,
    prediction: Option<Prediction>,
    /// Why it does not begin, if that is known.
    why: Option<String>,
    /// How often it could not be opened, and until when it waits.
    tries: u32,
    not_before: Option<Elapsed>,
    /// Whether the files are there that it waits for.
    has_files: bool,
    /// One of the files that are not there, as they were looked for last.
    missing: Option<String>,
    live: Option<RunningSubmission>,
}

/// The state of the service.
#[derive(Debug)]
pub struct ServiceState {
    facts: ServiceFacts,
    began: Moment,
    clock: ServiceClock,
    /// When this process started.
    started: Moment,
    next: u64,
    entries: BTreeMap<u64, Entry>,
    queue: Queue,
    /// By name: the submissions that are not over, the first one first.
    series: BTreeMap<String, VecDeque<u64>>,
    ended: FinishedSubmission,
    /// Of what recurs: those whose files have not been read.
    unread: Vec<u64>,
    /// By user and their word: the submission.
    keys: BTreeMap<(String, String), u64>,
    recurring: BTreeMap<String, RecurringSubmission>,
    scores: Scores,
    /// Those that were told last.
    alerts: VecDeque<Alert>,
    is_draining: bool,
    /// Deadlines to come, with the submission and the flow.
    deadlines: BTreeSet<(Moment, u64, String)>,
    /// When each user submitted within the last minute.
    rates: BTreeMap<String, VecDeque<Elapsed>>,
    load: LoadSoFar,
    /// Slots that tasks of each user hold, where there is a quota.
    held: BTreeMap<String, u64>,
    next_event: u64,
    next_look: Elapsed,
    next_purge: Elapsed,
    next_outlook: Elapsed,
    /// Why something could not be simulated in the last look ahead.
    forecast_error: Option<ForecastError>,
    /// Whether a look ahead is being made.
    is_predicting: bool,
    wanting: UnpredictedQueue,
    /// Until when it is waited for what is being opened, before those are predicted that want it.
    opening_until: Option<Elapsed>,
    machines: Vec<api::Machine>,
    /// The limits of the policy that keep flows from free slots.
    policy_limits: slackline::resident::Limits,
    troubles: BTreeMap<HealthProblem, String>,
}

/// What may be wrong with the service itself, until it is not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthProblem {
    /// A thread that everything waits for is blocked.
    Blocked,
    /// Nothing can be written down: nothing is taken in.
    Log,
    /// What is written down cannot be written again without what is over.
    Compaction,
    /// There is no space for the documents of runs that have finished.
    Documents,
    /// What jobs took cannot be remembered.
    History,
    /// The wall clock has jumped, or was wrong.
    Clock,
    /// Something recurs no more whose zone this machine does not know.
    Zone,
}

/// What is at work, over time.
#[derive(Debug, Default)]
struct LoadSoFar {
    points: VecDeque<LoadPoint>,
    /// The sum of tasks at work over time since the last point, microseconds.
    work: f64,
    running: u64,
    since: Elapsed,
    /// When the last point was noted.
    noted: Elapsed,
    next: Elapsed,
}

impl ServiceState {
    /// A desk at which nothing was ever asked; its records are empty.
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

    /// When the service was begun: the time of its engine starts there.
    pub fn began(&self) -> Moment {
        self.began
    }

    /// Something is wrong with the service itself, or is not any more.
    pub fn set_trouble(&mut self, of: HealthProblem, problem: Option<String>) {
        match problem {
            Some(problem) => drop(self.troubles.insert(of, problem)),
            None => drop(self.troubles.remove(&of)),
        }
    }

    /// A record that changes nothing, where it has to be tried whether something can be written down again.
    pub fn trial(&self) -> Option<Record> {
        self.troubles.contains_key(&HealthProblem::Log).then_some(Record::Draining(self.is_draining))
    }

    /// How many slots one user may hold, if not all.
    pub fn slots_by_user(&self) -> Option<u32> {
        self.facts.limits.slots_by_user
    }

    /// What a submission is of, that is not over.
    pub fn wanted(&self, number: u64) -> Option<&SubmissionSpec> {
        self.entries.get(&number).map(|entry| &entry.wanted)
    }

    /// The deadlines of the flows of a submission that is scheduled.
    pub fn deadlines_of(&self, number: u64) -> BTreeMap<String, Moment> {
        let live = self.entries.get(&number).and_then(|entry| entry.live.as_ref());
        let flows = live.into_iter().flat_map(|live| &live.flows);
        flows.filter_map(|here| Some((here.flow.clone(), here.deadline?))).collect()
    }

    /// Tells whoever listens of the service itself.
    pub fn tell_of_service(&mut self, now: ClockReading, kind: &str, message: String, out: &mut Transition) {
        let now = self.read_clock(now, out);
        self.tell(now, kind, message, out);
    }

    /// How many submissions are not over.
    pub fn open(&self) -> usize {
        self.entries.len()
    }

    /// In how many microseconds the desk wants to be called by [`ServiceState::tick`].
    pub fn due(&self, now: ClockReading) -> u64 {
        let recurring = self.recurring.values().filter_map(|again| self.recurs_by(again));
        let deadlines = self.deadlines.first().map(|(at, ..)| *at);
        let looks = self.queue.awaits_files().then_some(self.next_look);
        // What is being opened is waited for.
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

    /// Whether looks ahead wait for what is being opened.
    fn waits_for_opening(&self) -> bool {
        let now = self.clock.elapsed();
        self.queue.is_opening() && self.opening_until.is_some_and(|until| now < until)
    }

    fn has_live(&self) -> bool {
        self.queue.live() > 0
    }

    /// It is `now`: what is due is done.
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

    /// Forgets what was over long ago, by the age clock.
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
        // What is known of outputs stays as long as anything else of the name is known.
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

    /// The number of tasks at work is another from now on.
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

    /// What was at work, from a moment on.
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

    /// An alert is shown from now on, as long as there are not too many later ones.
    fn keep_alert(&mut self, alert: Alert) {
        self.alerts.push_back(alert);
        if self.alerts.len() > ALERTS {
            self.alerts.pop_front();
        }
    }

    /// Tells somebody who may want to act, unless that was done.
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

/// What is told to whoever listens.
pub(super) struct ServiceEvent<'a> {
    kind: &'a str,
    number: Option<u64>,
    flow: Option<&'a str>,
    message: String,
}
