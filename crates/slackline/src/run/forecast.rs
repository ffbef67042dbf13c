//! Predicts when the flows of a run finish. It simulates the remaining work under the same policy, with
//! durations estimated from finished tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Mutex, PoisonError};

use slackline_executor::engine::event::RunEvent;
use slackline_model::{Span, Time};

use super::forecaster::{CachedOrder, ForecastInput, Samples, add_phases};
use super::run_model::{RunModel, SAMPLES, SimulatedPhases, interval};
use crate::policy_spec::PolicySpec;

#[cfg(test)]
mod tests;

/// The minimum time between two simulations, microseconds. The pause is also at least [`SHARE`] times the
/// duration of the last simulation, so that prediction takes almost no time from the tasks.
const PAUSE: Span = Span(250_000);
const SHARE: u64 = 20;

/// Predicts completions by simulation.
pub struct Forecast {
    policy: PolicySpec,
    pub(super) model: RunModel,
    expected: BTreeMap<String, f64>,
    thinking: Option<Thinking>,
    /// The earliest time of the next simulation.
    next: Time,
    /// The time of the last event.
    now: Time,
}

/// A simulation that is in progress: its start, and the channel for its result.
struct Thinking {
    since: Time,
    /// Never locked; the mutex only makes the forecast `Sync`, so that several threads can read it.
    answer: Mutex<Receiver<BTreeMap<String, f64>>>,
}

impl Forecast {
    pub(super) fn new(policy: PolicySpec, model: RunModel) -> Self {
        let (next, now) = (Time::ZERO, Time::ZERO);
        Self { policy, model, expected: BTreeMap::new(), thinking: None, next, now }
    }

    /// The remaining work, with estimated durations.
    fn ahead(&self, now: Time) -> ForecastInput {
        let draft = self.model.ahead(self.model.estimated(now), now);
        ForecastInput::of_run(
            draft,
            now,
            self.policy.clone(),
            self.model.setting.clone(),
            self.model.running(),
        )
    }

    /// Simulates now. Returns the predicted completions of unfinished flows, seconds since the start of the
    /// run; `None` if no flow is left, or they cannot be simulated.
    pub(super) fn simulated(&self, now: Time) -> Option<BTreeMap<String, f64>> {
        let completions = self.ahead(now).completions();
        completions.ok().filter(|completions| !completions.is_empty())
    }

    /// By flow: the 80 % prediction interval of its completion time. The result is empty if too many tasks
    /// are unfinished. The draws are the same in every prediction.
    pub(super) fn spread(&self, now: Time) -> BTreeMap<String, [f64; 2]> {
        let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        if self.model.is_too_large_to_sample() {
            return BTreeMap::new();
        }
        let (ahead, mut tasks) = (self.ahead(now), self.model.remaining_tasks());
        let (mut simulated, mut n_phases) = (SimulatedPhases::new(), 0);
        for flow in &ahead.draft.flows {
            let left = tasks.remove(flow.id.as_str()).unwrap_or_default();
            n_phases = add_phases(flow, left, n_phases, &mut simulated);
        }
        let sampler = self.model.sampler(now, &BTreeSet::new(), simulated);
        let Ok(drawn) = Samples::new(&ahead, vec![sampler]) else { return BTreeMap::new() };
        for k in 0..SAMPLES {
            let Ok(ends) = drawn.completions(k as usize, &CachedOrder::default()) else { break };
            for (flow, at) in ends {
                samples.entry(flow).or_default().push(at);
            }
        }
        samples.into_iter().map(|(flow, mut ends)| (flow, interval(&mut ends))).collect()
    }

    /// When a flow is predicted to finish, seconds after the start of the run, never before the last event;
    /// `None` if it failed, its completion is unknown, or no prediction is available.
    pub fn of(&self, flow: &str) -> Option<f64> {
        let expected = self.expected.get(flow).filter(|_| !self.has_failed(flow));
        expected.map(|at| at.max(self.now.seconds()))
    }

    /// How many flows have failed.
    pub(super) fn failed(&self) -> usize {
        self.model.failed()
    }

    /// Whether a flow has failed.
    pub fn has_failed(&self, flow: &str) -> bool {
        self.model.has_failed(flow)
    }

    /// Processes an event, and simulates if the next simulation is due.
    pub(super) fn note(&mut self, now: Time, event: &RunEvent) {
        self.now = now;
        self.model.record(now, event);
        self.take_in(now);
        // An external policy is not simulated: its program would be restarted for every simulation.
        if now >= self.next && self.thinking.is_none() && !self.policy.is_program() {
            self.look_ahead(now);
        }
    }

    /// Moves the forecast by a jump of the clock, microseconds: events after it have later times by `by`.
    pub(super) fn clock_jumped(&mut self, by: i64) {
        self.model.clock_jumped(by);
        self.next = Time::ZERO;
    }

    /// Takes the result of the simulation, if it has finished.
    fn take_in(&mut self, now: Time) {
        let Some(thinking) = &mut self.thinking else { return };
        match thinking.answer.get_mut().unwrap_or_else(PoisonError::into_inner).try_recv() {
            Err(TryRecvError::Empty) => return,
            // The policy cannot be simulated. The last prediction stays.
            Err(TryRecvError::Disconnected) => {}
            Ok(expected) => {
                let unknown = self.model.unknown_flows();
                let known = expected.into_iter().filter(|(flow, _)| !unknown.contains(flow.as_str()));
                self.expected.extend(known);
            }
        }
        let pause = now.since(thinking.since).0.saturating_mul(SHARE).max(PAUSE.0);
        self.next = Time(now.0.saturating_add(pause));
        self.thinking = None;
    }

    /// Simulates the remaining work on a separate thread, so that a large workload does not delay the engine.
    fn look_ahead(&mut self, now: Time) {
        let ahead = self.ahead(now);
        let (sender, answer) = channel();
        // The receiver is gone if the run has ended.
        let work = move || drop(ahead.completions().map(|expected| sender.send(expected)));
        // If no thread can be created, the channel is closed and the last prediction stays.
        let _ = std::thread::Builder::new().spawn(work);
        self.thinking = Some(Thinking { since: now, answer: Mutex::new(answer) });
    }
}
