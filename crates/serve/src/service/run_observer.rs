//! Forwards the events of a run to the state, the forecaster and the timeline.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use slackline::run::{AttemptOutcome, Happening, TaskId};
use slackline_executor::engine::Observer;
use slackline_model::{Draft, PhaseKind, Time, WallTime};
use slackline_task::base::clock::{ClockReading, TimeBase};

use crate::state::Seen;
use crate::{Moment, api, timestamp};

/// The number of attempts kept for the timeline.
const ATTEMPTS: usize = 20_000;

/// An owned [`Happening`].
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// See [`Happening::Started`].
    Started(TaskId),
    /// See [`Happening::Done`].
    Done(TaskId, f64),
    /// See [`Happening::Failed`].
    Failed {
        id: TaskId,
        /// Whether another attempt of the task is still running.
        other_runs: bool,
        /// Whether the flow has failed.
        is_final: bool,
    },
    /// See [`Happening::Killed`].
    Killed(TaskId),
    /// See [`Happening::Lost`].
    Lost(Vec<TaskId>),
    /// See [`Happening::NeverComes`].
    NeverComes(String),
}

impl Happened {
    /// Calls `tell` with the borrowed form.
    pub fn told<T>(&self, tell: impl FnOnce(Happening<'_>) -> T) -> T {
        match self {
            Self::Started(id) => tell(Happening::Started(*id)),
            Self::Done(id, seconds) => tell(Happening::Done(*id, *seconds)),
            Self::Failed { id, other_runs, is_final } => tell(Happening::Failed {
                id: *id,
                message: "",
                log: None,
                other_runs: *other_runs,
                is_final: *is_final,
            }),
            Self::Killed(id) => tell(Happening::Killed(*id)),
            Self::Lost(tasks) => tell(Happening::Lost { tasks, message: "" }),
            Self::NeverComes(flow) => tell(Happening::NeverComes { flow, job: 0 }),
        }
    }
}

/// Recently ended attempts, and running attempts.
#[derive(Clone, Debug, Default)]
pub struct RecentAttempts(Arc<Mutex<AttemptHistory>>);

#[derive(Debug, Default)]
struct AttemptHistory {
    attempts: VecDeque<api::Attempt>,
    /// Running attempts, by submission and attempt number in its run.
    open: BTreeMap<(u64, u64), api::Attempt>,
    /// The number of ended attempts by outcome.
    counts: BTreeMap<String, u64>,
}

impl RecentAttempts {
    fn ran(&self) -> std::sync::MutexGuard<'_, AttemptHistory> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds a running attempt.
    fn begin(&self, attempt: u64, open: api::Attempt) {
        self.ran().open.insert((open.number, attempt), open);
    }

    /// Removes a running attempt.
    fn leave(&self, number: u64, attempt: u64) {
        self.ran().open.remove(&(number, attempt));
    }

    /// Removes all running attempts of a submission.
    fn leave_all(&self, number: u64) {
        self.ran().open.retain(|(of, _), _| *of != number);
    }

    fn add(&self, number: u64, attempt: api::Attempt) {
        let mut ran = self.ran();
        ran.open.remove(&(attempt.number, number));
        *ran.counts.entry(attempt.outcome.clone().unwrap_or_default()).or_default() += 1;
        ran.attempts.push_back(attempt);
        if ran.attempts.len() > ATTEMPTS {
            ran.attempts.pop_front();
        }
    }

    /// The number of ended attempts by outcome.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.ran().counts.clone()
    }

    /// The running attempts.
    pub fn open(&self) -> Vec<api::Attempt> {
        self.ran().open.values().cloned().collect()
    }

    /// Attempts that ended at a moment or later, and running attempts, in the order of their starts.
    pub fn since(&self, at: Moment) -> api::Timeline {
        let least = timestamp(at);
        let ran = self.ran();
        let mut attempts: Vec<api::Attempt> = ran
            .attempts
            .iter()
            .filter(|attempt| attempt.end.is_none_or(|end| end >= least))
            .chain(ran.open.values())
            .cloned()
            .collect();
        attempts.sort_by(|a, b| a.start.cmp(&b.start).then(a.slot.cmp(&b.slot)));
        api::Timeline { attempts }
    }
}

/// Forwards the events of a run.
pub struct Watch {
    number: u64,
    /// The wall time at which the time of the run starts.
    base: TimeBase,
    /// The flow and the name of each job.
    jobs: Vec<(String, String)>,
    recent: RecentAttempts,
    tell: Box<dyn FnMut(Seen) + Send>,
    follow: Box<dyn FnMut(Time, Happened) + Send>,
}

impl Watch {
    /// Reports progress to `tell`, and events to `follow`.
    pub fn new(
        number: u64,
        started: Moment,
        workload: &Draft,
        recent: RecentAttempts,
        tell: impl FnMut(Seen) + Send + 'static,
        follow: impl FnMut(Time, Happened) + Send + 'static,
    ) -> Self {
        let jobs = workload
            .flows
            .iter()
            .flat_map(|flow| flow.jobs.iter().map(|job| (flow.id.clone(), job.id.clone())));
        let jobs = jobs.collect();
        let base = TimeBase::measured(WallTime(started), Time::ZERO);
        Self { number, base, jobs, recent, tell: Box::new(tell), follow: Box::new(follow) }
    }

    /// An attempt that has had its slot since `start`, a time of the run.
    fn open(&self, start: u64, id: TaskId, slot: u32) -> Option<api::Attempt> {
        let (flow, job) = self.jobs.get(id.job as usize)?;
        Some(api::Attempt {
            number: self.number,
            flow: flow.clone(),
            job: job.clone(),
            phase: id.phase.name().to_owned(),
            task: id.task,
            slot: Some(slot),
            start: timestamp(self.base.wall(Time(start)).0),
            end: None,
            outcome: None,
        })
    }

    fn ended(&self, attempt: &slackline::run::Attempt) {
        let Some(open) = self.open(attempt.start, attempt.id, attempt.slot) else { return };
        let outcome = match attempt.ended {
            AttemptOutcome::Done(_) => "done",
            AttemptOutcome::Failed(_) => "failed",
            AttemptOutcome::Killed => "killed",
            AttemptOutcome::Lost(_) => "lost",
        };
        let end = Some(timestamp(self.base.wall(Time(attempt.end)).0));
        let outcome = Some(outcome.to_owned());
        self.recent.add(attempt.number, api::Attempt { end, outcome, ..open });
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.recent.leave_all(self.number);
    }
}

impl Observer for Watch {
    fn happened(&mut self, now: Time, what: Happening<'_>) {
        self.base = TimeBase::measured(ClockReading::read().wall, now);
        let is_map = |id: TaskId| id.phase == PhaseKind::Map;
        let (seen, happened) = match what {
            Happening::Recorded(attempt) => return self.ended(attempt),
            Happening::Started(id) => {
                (Seen::Started { job: id.job, is_map: is_map(id) }, Happened::Started(id))
            }
            Happening::Done(id, seconds) => {
                (Seen::Done { job: id.job, is_map: is_map(id) }, Happened::Done(id, seconds))
            }
            Happening::Failed { id, message, other_runs, is_final, .. } => {
                let message = format!("{} {}: {message}", id.phase.name(), id.task);
                let seen = Seen::Failed { job: id.job, is_map: is_map(id), message, is_final };
                (seen, Happened::Failed { id, other_runs, is_final })
            }
            Happening::Killed(id) => {
                (Seen::Stopped { job: id.job, is_map: is_map(id) }, Happened::Killed(id))
            }
            Happening::Lost { tasks, .. } => {
                let Some(&id) = tasks.first() else { return };
                let seen = Seen::Lost { job: id.job, is_map: is_map(id), tasks: tasks.len() as u64 };
                (seen, Happened::Lost(tasks.to_vec()))
            }
            Happening::NeverComes { flow, job } => {
                let (other, job) = self.jobs.get(job as usize).cloned().unwrap_or_default();
                let message = format!(
                    "it reads the output of job {job} of flow {other}, which is never going to be there"
                );
                (Seen::Never { flow: flow.to_owned(), message }, Happened::NeverComes(flow.to_owned()))
            }
            // Other events are not about a task.
            _ => return,
        };
        (self.tell)(seen);
        (self.follow)(now, happened);
    }

    fn slot_acquired(&mut self, since: Time, attempt: u64, id: TaskId, slot: u32) {
        if let Some(open) = self.open(since.0, id, slot) {
            self.recent.begin(attempt, open);
        }
    }

    fn slot_released(&mut self, attempt: u64) {
        self.recent.leave(self.number, attempt);
    }
}
