//! The thread that predicts: when flows will finish, which flows a submission delays, and which changes would
//! meet its deadlines.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use slackline::resident::{FlowOrder, FlowOverrides};
use slackline::run::{self, CachedOrder, Completions, ForecastInput, NewRun, RunEvent, Samples};
use slackline::{PolicySpec, parallel};
use slackline_model::Time;
use slackline_model::WallTime;
use slackline_model::draft::MachineDraft;
use slackline_task::base::clock::ClockReading;

use crate::api::{DelayedFlow, Remedy};
use crate::service::durations::SharedHistogram;
use crate::state::{FlowEstimate, ForecastResult, Impact, StateEvent};
use crate::{SECOND, timestamp};

/// The flow's estimates are reported as wrong if its tasks take more than `OFF` times the estimate or less
/// than 1/`OFF` of it, once `OFF_TASKS` tasks have finished.
const OFF: f64 = 2.0;
const OFF_TASKS: u64 = 5;

/// The most slots that are tried, as a multiple of the slots of the cluster.
const SLOTS_MOST: f64 = 8.0;

/// A request to the forecaster.
pub enum ForecastRequest {
    /// Track a new run.
    Track {
        number: u64,
        name: String,
        started: WallTime,
        followed: Box<NewRun>,
        /// The overrides of its flows.
        standings: BTreeMap<String, FlowOverrides>,
        /// The deadline of each flow.
        deadlines: BTreeMap<String, WallTime>,
    },
    /// An event of a run, at this time of the run.
    RunEvent(u64, Time, RunEvent),
    /// A flow changed.
    Change(u64, String, FlowOrder),
    /// A run has ended.
    Forget(u64),
    /// The machines that are up.
    Machines(Vec<MachineDraft>),
    /// The wall clock jumped by this many microseconds.
    ClockJumped(i64),
    /// Forecast all flows, with the impact of one submission on the others.
    Predict(Option<u64>),
}

pub struct Forecaster {
    outlook: run::Forecaster,
    /// The start of the engine's time.
    began: WallTime,
    runs: BTreeMap<u64, TrackedRun>,
    /// The policy that simulates forecasts.
    by: PolicySpec,
    took: SharedHistogram,
}

struct TrackedRun {
    name: String,
    started: WallTime,
    /// The deadline of each flow.
    deadlines: BTreeMap<String, WallTime>,
    /// The flow of each job of the run.
    flows: Vec<String>,
}

impl Forecaster {
    /// A forecaster that simulates with the policy `by`, for an engine whose time starts at `began`. It adds
    /// its durations to `took`.
    pub fn new(outlook: run::Forecaster, by: PolicySpec, began: WallTime, took: SharedHistogram) -> Self {
        Self { outlook, began, runs: BTreeMap::new(), by, took }
    }

    /// Handles requests until all senders are gone.
    pub fn work(mut self, looks: &Receiver<ForecastRequest>, tell: &dyn Fn(StateEvent)) {
        while let Ok(look) = looks.recv() {
            self.handle(look).into_iter().for_each(tell);
        }
    }

    /// Handles a request. Returns the forecast, or a report if estimates turn out wrong.
    fn handle(&mut self, look: ForecastRequest) -> Option<StateEvent> {
        match look {
            ForecastRequest::Track { number, name, started, followed, standings, deadlines } => {
                // A start in the future was recorded by a wrong clock. It counts as now.
                let started = started.min(ClockReading::read().wall);
                let later = started.seconds_since(self.began);
                let flows = followed.flows().to_vec();
                self.outlook.track(number, *followed, later, standings);
                self.runs.insert(number, TrackedRun { name, started, deadlines, flows });
            }
            ForecastRequest::RunEvent(number, now, event) => {
                self.outlook.note(number, now, &event);
                if let RunEvent::TaskFinished { task, .. } = event {
                    return self.odd(number, task.job);
                }
            }
            ForecastRequest::Change(number, flow, FlowOrder::Override(overrides)) => {
                if let Some(run) = self.runs.get_mut(&number)
                    && let Some(deadline) = overrides.deadline
                {
                    let at = run.started.after_seconds(deadline);
                    run.deadlines.insert(flow.clone(), at);
                }
                self.outlook.stand(number, &flow, overrides);
            }
            ForecastRequest::Change(number, flow, FlowOrder::Cancel) => self.outlook.fail(number, &flow),
            ForecastRequest::Machines(machines) => self.outlook.stand_on(machines),
            ForecastRequest::Forget(number) => {
                self.outlook.forget(number);
                self.runs.remove(&number);
            }
            ForecastRequest::ClockJumped(by) => self.outlook.clock_jumped(by as f64 / SECOND as f64),
            ForecastRequest::Predict(number) => {
                let forecast = self.look(ClockReading::read().wall, number);
                self.took.add(forecast.took as f64 / SECOND as f64);
                return Some(StateEvent::Predicted(forecast));
            }
        }
        None
    }

    /// A report if the tasks of a job's flow take much longer or shorter than estimated.
    fn odd(&self, number: u64, job: u32) -> Option<StateEvent> {
        let flow = self.runs.get(&number)?.flows.get(job as usize)?;
        let (ratio, tasks) = self.outlook.off(number, flow)?;
        if tasks < OFF_TASKS || (1.0 / OFF..=OFF).contains(&ratio) {
            return None;
        }
        let message = format!("{flow}: {tasks} tasks took {ratio:.1} times as long as estimated");
        Some(StateEvent::EstimatesOff { number, flow: flow.clone(), message })
    }

    fn at(&self, seconds: f64) -> WallTime {
        self.began.after_seconds(seconds)
    }

    pub fn look(&self, now: WallTime, number: Option<u64>) -> ForecastResult {
        let begun = ClockReading::read().elapsed;
        let took = || ClockReading::read().elapsed.since(begun);
        let time = Time(now.since(self.began));
        let samples = self.outlook.samples(time, number, self.by.clone());
        let resolved = samples.and_then(|(ahead, samples)| Ok((samples.expected()?, ahead, samples)));
        let ((with, kept), ahead, samples) = match resolved {
            Ok(resolved) => resolved,
            Err(problem) => {
                let of = number.map(|number| Impact { number, makes_late: Vec::new(), remedies: Vec::new() });
                return ForecastResult { took: took(), flows: BTreeMap::new(), of, problem: Some(problem) };
            }
        };
        // Later simulations keep the order that the search found. So differences come from the change alone,
        // not from a different search.
        let ahead = ahead.keeping(&kept);
        let mut flows = self.expected(&with);
        let (of, spread) = parallel::both(
            || number.map(|number| self.meaning(number, &ahead, &with)),
            || self.spread(&samples, &kept, &mut flows),
        );
        let of = of.map(|meaning| meaning.with_room(&flows));
        ForecastResult { took: took(), flows, of, problem: spread.err() }
    }

    /// The estimates, without prediction intervals.
    fn expected(&self, with: &Completions) -> BTreeMap<(u64, String), FlowEstimate> {
        let unknown = self.outlook.unknown_flows();
        let one = |(name, &at): (&String, &f64)| {
            let (number, flow) = split(name)?;
            let completion = (!unknown.contains(name)).then(|| self.at(at));
            let expected = FlowEstimate { completion, between: None, chance: None };
            Some(((number, flow.to_owned()), expected))
        };
        with.iter().filter_map(one).collect()
    }

    fn deadline(&self, number: u64, flow: &str) -> Option<WallTime> {
        self.runs.get(&number)?.deadlines.get(flow).copied()
    }

    /// Simulates the samples on all processors, and sets prediction intervals and chances.
    ///
    /// # Errors
    /// A sample cannot be simulated. Then there are no prediction intervals.
    fn spread(
        &self,
        samples: &Samples<'_>,
        kept: &CachedOrder,
        flows: &mut BTreeMap<(u64, String), FlowEstimate>,
    ) -> Result<(), String> {
        let sample = |k: usize| samples.completions(k, kept);
        let simulated = parallel::map(run::Forecaster::SAMPLES, parallel::processors(), sample)?;
        let mut scenarios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, &at) in simulated.iter().flatten() {
            scenarios.entry(name).or_default().push(at);
        }
        for (name, mut ends) in scenarios {
            let Some((number, flow)) = split(name) else { continue };
            let deadline = self.deadline(number, flow);
            let Some(expected) = flows.get_mut(&(number, flow.to_owned())) else { continue };
            let Some(completion) = expected.completion else { continue };
            let [least, most] = run::Forecaster::likely(&mut ends).map(|at| self.at(at));
            // The interval always includes the estimate.
            expected.between = Some([least.min(completion), most.max(completion)]);
            expected.chance = deadline.map(|deadline| {
                let holds = ends.iter().filter(|&&at| self.at(at) <= deadline).count();
                100.0 * holds as f64 / ends.len() as f64
            });
        }
        Ok(())
    }

    /// The impact of a submission on the others, and the changes with which it meets its deadlines.
    fn meaning(&self, number: u64, ahead: &ForecastInput, with: &Completions) -> Impact {
        let is_own = |name: &str| split(name).is_some_and(|(of, _)| of == number);
        let unknown = self.outlook.unknown_flows();
        // What work of unknown length does to others is unknown.
        if unknown.iter().any(|name| is_own(name)) {
            return Impact { number, makes_late: Vec::new(), remedies: Vec::new() };
        }
        let without = ahead.without(is_own).completions().unwrap_or_default();
        let late = |(name, &before): (&String, &f64)| {
            let (of, flow) = split(name)?;
            let deadline = self.deadline(of, flow)?;
            let (before, after) = (self.at(before), self.at(*with.get(name)?));
            (!unknown.contains(name) && before <= deadline && after > deadline).then(|| DelayedFlow {
                number: of,
                name: self.runs.get(&of).map_or_else(String::new, |run| run.name.clone()),
                flow: flow.to_owned(),
                deadline: timestamp(deadline),
                without: timestamp(before),
                with: timestamp(after),
                late_by: after.seconds_since(deadline),
            })
        };
        let makes_late = without.iter().filter_map(late).collect();
        let own = with.iter().filter_map(|(name, &at)| {
            let (of, flow) = split(name).filter(|(of, _)| *of == number)?;
            let deadline = self.deadline(of, flow)?;
            (self.at(at) > deadline).then_some((name.as_str(), flow, at, deadline))
        });
        let remedies = own
            .flat_map(|(name, flow, at, deadline)| self.remedies(number, ahead, name, flow, at, deadline))
            .collect();
        Impact { number, makes_late, remedies }
    }

    /// The changes with which a flow meets its deadline.
    fn remedies(
        &self,
        number: u64,
        ahead: &ForecastInput,
        name: &str,
        flow: &str,
        at: f64,
        deadline: WallTime,
    ) -> Vec<Remedy> {
        let holds = |ahead: &ForecastInput| {
            let ends = ahead.completions().ok()?;
            Some(self.at(*ends.get(name)?) <= deadline)
        };
        let flow = flow.to_owned();
        let mut remedies = vec![Remedy::Deadline { flow: flow.clone(), deadline: timestamp(self.at(at)) }];
        let alone = ahead.without(|other| split(other).is_none_or(|(of, _)| of != number));
        let done_alone = alone.completions().ok().and_then(|ends| ends.get(name).copied());
        if let Some(done_alone) = done_alone.filter(|&at| self.at(at) > deadline) {
            remedies.push(Remedy::Nothing { flow: flow.clone(), alone: timestamp(self.at(done_alone)) });
        } else if let Some(numbers) = self.held(number, ahead, &holds) {
            remedies.push(Remedy::Hold { flow: flow.clone(), numbers });
        }
        if let Some(slots) = fewest_slots(ahead, &holds) {
            remedies.push(Remedy::Slots { flow, slots });
        }
        remedies
    }

    /// The submissions without deadlines that have to be held, the latest first. `None` if holding all of
    /// them is not enough.
    fn held(
        &self,
        number: u64,
        ahead: &ForecastInput,
        holds: &dyn Fn(&ForecastInput) -> Option<bool>,
    ) -> Option<Vec<u64>> {
        let is_free = |(of, run): &(&u64, &TrackedRun)| **of != number && run.deadlines.is_empty();
        let free: Vec<u64> = self.runs.iter().rev().filter(is_free).map(|(&of, _)| of).collect();
        let without = |count: usize| {
            ahead.without(|name| split(name).is_some_and(|(of, _)| free[..count].contains(&of)))
        };
        if free.is_empty() || holds(&without(free.len())) != Some(true) {
            return None;
        }
        // Binary search, because holding more rarely hurts. The result is always a verified number.
        let (mut too_few, mut enough) = (0, free.len());
        while enough - too_few > 1 {
            let middle = usize::midpoint(too_few, enough);
            if holds(&without(middle)) == Some(true) { enough = middle } else { too_few = middle }
        }
        Some(free[..enough].to_vec())
    }
}

/// The fewest slots that are enough, assuming that more slots never hurt.
fn fewest_slots(ahead: &ForecastInput, holds: &dyn Fn(&ForecastInput) -> Option<bool>) -> Option<u64> {
    let (mut too_few, mut enough) = (1.0, SLOTS_MOST);
    if holds(&ahead.with_slots(enough)) != Some(true) {
        return None;
    }
    while ahead.with_slots(enough).slots() > ahead.with_slots(too_few).slots() + 1 && enough - too_few > 0.01
    {
        let middle = f64::midpoint(too_few, enough);
        if holds(&ahead.with_slots(middle)) == Some(true) { enough = middle } else { too_few = middle }
    }
    Some(ahead.with_slots(enough).slots())
}

/// The submission and the flow of a name in a forecast.
fn split(name: &str) -> Option<(u64, &str)> {
    let (number, flow) = name.split_once('/')?;
    Some((number.parse().ok()?, flow))
}
