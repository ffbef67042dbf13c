//! The state of the service, as a pure state machine: commands and events in, records and effects out. It has
//! no thread, file, socket or clock.
//!
//! - [`ServiceState`]: the state; [`Command`], [`Answer`], [`Refusal`]: the requests of clients, and the
//!   responses; [`StateEvent`]: results of effects; [`Transition`], [`Effect`]: the records to write and the
//!   work to carry out;
//! - `submissions`: the states of a submission, and its ends; `commands`: one file for each command; `queue`:
//!   submissions that may start, in order; `series`: those that share a state directory; `files`: the files that one waits
//!   for; `running`: submissions whose flows are scheduled; `finished`: those
//!   that ended; `recurring`: schedules; `wait_reasons`: why a submission or a flow waits; `usage`: slots and
//!   requests by user, and the load; `alerts`: alerts and events; `clock`: jumps of the wall clock, and ages;
//!   `deadlines`: deadlines that are missed;
//!   `replay`: the state from its records; `view`: queries and their documents.
//!
//! The caller writes the records of a call to disk before it carries out an effect or sends the answer
//! ([`Transition::records`]). So a crash loses no acknowledged command and no started run.

mod alerts;
pub mod auth;
mod clock;
mod commands;
pub mod cron;
mod deadlines;
mod files;
mod finished;
mod forecasts;
mod progress;
mod queue;
pub mod record;
mod recurring;
mod replay;
mod running;
pub mod series;
mod submissions;
#[cfg(test)]
mod tests;
pub mod times;
mod usage;
mod view;
mod wait_reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::tz::TimeZone;
use slackline::resident::{FlowOrder, FlowOverrides, Quota, UserQuota};
use slackline_model::WallTime;
use slackline_task::base::clock::{ClockReading, Elapsed};

use crate::SECOND;
use crate::api::{self, Alert};
use crate::state::record::{Record, SubmissionSpec};

pub use commands::{Answer, Command, Refusal, RefusalKind};
pub use forecasts::{ForecastResult, Impact};
pub use progress::{FlowEstimate, FlowProgress, RunningSubmission};
pub use running::StateEvent;
pub use view::{Filter, PendingSubmission};

use alerts::Alerts;
use clock::ServiceClock;
use finished::FinishedSubmissions;
use forecasts::Forecasts;
use queue::Queue;
use recurring::RecurringSubmission;
use series::{RunKey, Series};
use submissions::Entry;
use usage::Usage;

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
    /// What the tasks of one user may hold at a time. `None`: no limit.
    pub quota: Option<Quota>,
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
            quota: None,
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
    /// Whether finished submissions send alerts.
    pub tells_finished: bool,
}

/// The result of a call: the records to write and the effects to carry out.
#[derive(Debug, Default)]
pub struct Transition {
    /// The caller writes these first.
    pub records: Vec<Record>,
    /// The caller carries these out next, in this order.
    pub effects: Vec<Effect>,
}

impl Transition {
    /// Moves the records and effects of a later call to the end of these.
    pub fn append(&mut self, later: &mut Self) {
        self.records.append(&mut later.records);
        self.effects.append(&mut later.effects);
    }
}

/// Work for a launcher, with the submission.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkItem {
    /// Look up the inputs of a submission and open its run. The event is [`StateEvent::Opened`] or
    /// [`StateEvent::NotOpened`].
    Open(u64, Arc<SubmissionSpec>),
    /// Look at the files that a submission waits for. The event is [`StateEvent::Files`].
    Look(u64, Arc<SubmissionSpec>),
    /// Read the first deadline of a queued submission from its file. The event is [`StateEvent::Read`].
    Read(u64, Arc<SubmissionSpec>),
    /// Remove the directories moved aside before this time of the age clock.
    RemoveAside(WallTime),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Launch(WorkItem),
    /// Hand an opened run to the engine, with the overrides of its flows.
    Admit {
        number: u64,
        name: String,
        quota: Option<UserQuota>,
        standings: BTreeMap<String, FlowOverrides>,
        /// The deadlines of its flows.
        deadlines: BTreeMap<String, WallTime>,
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
    /// No submission or schedule with this state directory is left. Move the directory aside;
    /// [`WorkItem::RemoveAside`] removes it a day later.
    Forget {
        key: RunKey,
        /// The time of the move, by the age clock.
        at: WallTime,
    },
    /// The wall clock jumped by this many microseconds.
    ClockJumped(i64),
    Alert(Alert),
    Event(api::Event),
}

impl Effect {
    fn cancel(number: u64, flow: &str) -> Self {
        Self::Change { number, flow: flow.to_owned(), change: FlowOrder::Cancel }
    }
}

/// A time of a schedule that is submitted at most this late was not missed.
const LATE: u64 = 60 * SECOND;

/// The interval between two checks for the files that submissions wait for.
const LOOK_EVERY: u64 = SECOND;

/// The interval between two searches for finished submissions to forget.
const PURGE_EVERY: u64 = 60 * SECOND;

#[derive(Debug)]
pub struct ServiceState {
    facts: ServiceFacts,
    clock: ServiceClock,
    /// The records and effects of the current call.
    out: Transition,
    submissions: Submissions,
    /// By name.
    schedules: BTreeMap<String, RecurringSubmission>,
    forecasts: Forecasts,
    alerts: Alerts,
    /// Future deadlines, with the submission and the flow.
    deadlines: BTreeSet<(WallTime, u64, String)>,
    usage: Usage,
    machines: Machines,
    /// The problems of the service itself.
    health: BTreeMap<HealthProblem, String>,
}

/// All submissions.
#[derive(Debug)]
struct Submissions {
    /// The number of the next submission.
    next: u64,
    /// The unfinished submissions.
    open: BTreeMap<u64, Entry>,
    queue: Queue,
    series: Series,
    /// Submissions of schedules whose files have not been read yet.
    unread: Vec<u64>,
    /// Submissions by user and idempotency key.
    keys: BTreeMap<(String, String), u64>,
    finished: FinishedSubmissions,
}

impl Submissions {
    fn new(now: Elapsed) -> Self {
        Self {
            next: 1,
            open: BTreeMap::new(),
            queue: Queue::default(),
            series: Series::default(),
            unread: Vec::new(),
            keys: BTreeMap::new(),
            finished: FinishedSubmissions::new(now),
        }
    }
}

#[derive(Debug, Default)]
struct Machines {
    all: Vec<api::Machine>,
    /// The policy's limits that keep flows from free slots.
    limits: slackline::resident::Limits,
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

impl ServiceState {
    /// The state of a new service, and its first record.
    pub fn new(facts: ServiceFacts, now: ClockReading) -> (Self, Record) {
        (Self::empty(facts, now.wall, now), Record::Began(now.wall))
    }

    fn empty(facts: ServiceFacts, began: WallTime, now: ClockReading) -> Self {
        Self {
            facts,
            clock: ServiceClock::new(now, began),
            out: Transition::default(),
            submissions: Submissions::new(now.elapsed),
            schedules: BTreeMap::new(),
            forecasts: Forecasts::new(now.elapsed),
            alerts: Alerts::default(),
            deadlines: BTreeSet::new(),
            usage: Usage::new(now.elapsed),
            machines: Machines::default(),
            health: BTreeMap::new(),
        }
    }

    /// The first start of the service; the time of its engine starts there.
    pub fn began(&self) -> WallTime {
        self.clock.began
    }

    /// The start of this process.
    pub fn started(&self) -> WallTime {
        self.clock.started
    }

    /// The wall time of the current call.
    fn now(&self) -> WallTime {
        self.clock.now.wall
    }

    /// Sets a problem of the service, or clears it with `None`.
    pub fn set_trouble(&mut self, of: HealthProblem, problem: Option<String>) {
        match problem {
            Some(problem) => drop(self.health.insert(of, problem)),
            None => drop(self.health.remove(&of)),
        }
    }

    /// While the log cannot be written: a record that changes nothing, to test whether it can be written
    /// again.
    pub fn trial(&self) -> Option<Record> {
        let is_draining = self.submissions.queue.is_draining;
        self.health.contains_key(&HealthProblem::Log).then_some(Record::Draining(is_draining))
    }

    /// Reads the clock, changes the state, and moves the records and effects to `out`.
    fn turn<T>(&mut self, now: ClockReading, out: &mut Transition, work: impl FnOnce(&mut Self) -> T) -> T {
        self.read_clock(now);
        let result = work(self);
        out.append(&mut self.out);
        result
    }

    /// Sends an event about the service itself to all listeners.
    pub fn tell_of_service(&mut self, now: ClockReading, kind: &str, message: String, out: &mut Transition) {
        self.turn(now, out, |state| state.event(kind, None, None, message));
    }

    /// Answers a query.
    pub fn query(&mut self, now: ClockReading, out: &mut Transition, query: impl FnOnce(&Self, WallTime)) {
        self.turn(now, out, |state| query(state, state.now()));
    }

    /// The time until the next call of [`ServiceState::tick`], microseconds.
    pub fn due(&self, now: ClockReading) -> u64 {
        let Submissions { queue, finished, open, .. } = &self.submissions;
        let recurring = self.schedules.values().filter_map(|again| self.recurs_by(again));
        let deadlines = self.deadlines.first().map(|(at, ..)| *at);
        let looks = (!queue.files.is_empty()).then_some(queue.next_look);
        let purge = (!finished.is_empty()).then_some(finished.next_purge);
        let load = self.usage.next_load(!open.is_empty());
        let dates =
            recurring.chain([deadlines, queue.dues.first().map(|(at, _)| *at)].into_iter().flatten()).min();
        let by_date = dates.map(|at| at.since(now.wall));
        let timers = [looks, self.next_forecast(), purge, load, queue.tries.first().map(|(at, _)| *at)]
            .into_iter()
            .flatten();
        let next = timers.fold(self.clock.due(), Elapsed::min).since(now.elapsed);
        by_date.map_or(next, |by_date| by_date.min(next))
    }

    /// Does all work that is due at `now`.
    pub fn tick(&mut self, now: ClockReading, out: &mut Transition) {
        self.turn(now, out, |state| {
            let elapsed = now.elapsed;
            state.recur();
            state.miss_deadlines();
            state.look_for_files();
            state.next_prediction();
            if state.next_forecast().is_some_and(|at| elapsed >= at) {
                state.predict(None);
            }
            state.note_load();
            if elapsed >= state.submissions.finished.next_purge {
                state.submissions.finished.next_purge = elapsed + PURGE_EVERY;
                state.forget();
            }
            state.begin_next();
        });
    }

    /// Forgets submissions and alerts that are too old by the age clock.
    fn forget(&mut self) {
        let Limits { remembered, remembered_for, .. } = self.facts.limits;
        let at = self.clock.age();
        let least = at.earlier_by(remembered_for);
        self.alerts.forget(least);
        self.usage.forget(self.clock.elapsed());
        let Submissions { finished, keys, series, .. } = &mut self.submissions;
        let mut unused = BTreeSet::new();
        while finished.len() > remembered || finished.first().is_some_and(|ended| ended < least) {
            let Some(ended) = finished.pop() else { break };
            unused.insert(RunKey::of_shown(&ended));
            if let Some(key) = ended.key {
                keys.remove(&(ended.user, key));
            }
        }
        // A state directory stays while another submission or schedule uses it.
        unused.retain(|key| {
            !series.has(key) && (key.time.is_some() || !self.schedules.contains_key(&key.name))
        });
        if !unused.is_empty() {
            for ended in finished.iter() {
                unused.remove(&RunKey::of_shown(ended));
            }
        }
        self.out.effects.extend(unused.into_iter().map(|key| Effect::Forget { key, at }));
    }
}
