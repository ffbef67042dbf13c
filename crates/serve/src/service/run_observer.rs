//! Forwards the events of a run to the state, the forecaster and the timeline.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use slackline::run::{AttemptOutcome, RunEvent, RunningAttempt};
use slackline_executor::engine::event::EventCallback;
use slackline_model::{Draft, Time, WallTime};
use slackline_task::base::clock::{ClockReading, TimeBase};

use crate::lock;
use crate::{api, timestamp};

/// The number of attempts kept for the timeline.
const ATTEMPTS: usize = 20_000;

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
    /// The number of ended attempts by outcome.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.0).counts.clone()
    }

    /// The running attempts.
    pub fn open(&self) -> Vec<api::Attempt> {
        lock(&self.0).open.values().cloned().collect()
    }

    /// Attempts that ended at a moment or later, and running attempts, in the order of their starts.
    pub fn since(&self, at: WallTime) -> api::Timeline {
        let least = timestamp(at);
        let ran = lock(&self.0);
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
    tell: EventCallback,
}

impl Watch {
    /// Calls `tell` with the events that change tasks and flows.
    pub fn new(
        number: u64,
        started: WallTime,
        workload: &Draft,
        recent: RecentAttempts,
        tell: impl FnMut(Time, &RunEvent) + Send + 'static,
    ) -> Self {
        let jobs = workload
            .flows
            .iter()
            .flat_map(|flow| flow.jobs.iter().map(|job| (flow.id.clone(), job.id.clone())));
        let jobs = jobs.collect();
        let base = TimeBase::measured(started, Time::ZERO);
        Self { number, base, jobs, recent, tell: Box::new(tell) }
    }

    fn open(&self, attempt: &RunningAttempt) -> Option<api::Attempt> {
        let RunningAttempt { id, since, progress, .. } = *attempt;
        let (flow, job) = self.jobs.get(id.job as usize)?;
        Some(api::Attempt {
            number: self.number,
            flow: flow.clone(),
            job: job.clone(),
            phase: id.phase.name().to_owned(),
            task: id.task,
            slot: attempt.slot(),
            start: timestamp(self.base.wall(Time(since))),
            end: None,
            outcome: None,
            progress,
        })
    }

    /// Adds an attempt that has ended.
    fn ended(&self, attempt: &slackline::run::Attempt) {
        let running = RunningAttempt::on_slot(attempt.number, attempt.id, attempt.slot, attempt.start);
        let Some(open) = self.open(&running) else { return };
        let outcome = match attempt.ended {
            AttemptOutcome::Done(_) => "done",
            AttemptOutcome::Failed(_) => "failed",
            AttemptOutcome::Killed => "killed",
            AttemptOutcome::Lost(_) => "lost",
        };
        let end = Some(timestamp(self.base.wall(Time(attempt.end))));
        let mut recent = lock(&self.recent.0);
        recent.open.remove(&(self.number, attempt.number));
        *recent.counts.entry(outcome.to_owned()).or_default() += 1;
        recent.attempts.push_back(api::Attempt { end, outcome: Some(outcome.to_owned()), ..open });
        if recent.attempts.len() > ATTEMPTS {
            recent.attempts.pop_front();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.recent.0).open.retain(|(of, _), _| *of != self.number);
    }
}

impl Watch {
    /// Takes in an event at time `now` of the run.
    pub fn happened(&mut self, now: Time, event: &RunEvent) {
        self.base = TimeBase::measured(ClockReading::read().wall, now);
        match event {
            RunEvent::AttemptRecorded(attempt) => return self.ended(attempt),
            RunEvent::AttemptStarted(attempt) | RunEvent::AttemptProgress(attempt) => {
                if let Some((number, open)) = attempt.number().zip(self.open(attempt)) {
                    lock(&self.recent.0).open.insert((self.number, number), open);
                }
                if matches!(event, RunEvent::AttemptProgress(_)) {
                    return;
                }
            }
            RunEvent::AttemptStopped { attempt: Some(attempt), .. } => {
                lock(&self.recent.0).open.remove(&(self.number, *attempt));
            }
            RunEvent::AttemptStopped { attempt: None, .. }
            | RunEvent::TaskFinished { .. }
            | RunEvent::AttemptFailed { .. }
            | RunEvent::OutputLost { .. }
            | RunEvent::FlowBlocked { .. }
            | RunEvent::FlowFailed { .. } => {}
            // Other events change neither tasks nor flows.
            _ => return,
        }
        (self.tell)(now, event);
    }
}
