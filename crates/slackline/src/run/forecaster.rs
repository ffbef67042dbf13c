//! Predicts the completions of flows when several runs share the machines of a service ([`crate::resident`]),
//! and answers "what if" questions about them.
//!
//! Times are in seconds since the start of the service unless stated otherwise. A flow is called `RUN/FLOW`
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use slackline_executor::engine::backend::FlowOverrides;
use slackline_executor::engine::event::RunEvent;
use slackline_model::draft::{FlowDraft, MachineDraft};
use slackline_model::history::PhaseName;
use slackline_model::quota::UserQuota;
use slackline_model::{Draft, History, Objective, Time};

use crate::policy_spec::PolicySpec;
use crate::run::Run;
use crate::run::policy::Setting;
use crate::run::run_model::{RunModel, SAMPLES, SimulatedPhases, interval};

mod forecast_engine;
mod forecast_input;
pub(super) mod running_tasks;
pub(super) mod scenario;
#[cfg(test)]
mod tests;

pub(super) use forecast_input::add_phases;
pub use forecast_input::{CachedOrder, Completions, ForecastInput, Samples};
use forecast_input::{SlotUse, keep_running};

/// Name prefix of a held flow. Only its running tasks are simulated.
const HELD: &str = "held:";

/// The state of the flows of several runs, from which their completions are predicted.
pub struct Forecaster {
    policy: PolicySpec,
    machines: Vec<MachineDraft>,
    objective: Objective,
    setting: Setting,
    runs: BTreeMap<u64, TrackedRun>,
}

/// A run that is tracked.
struct TrackedRun {
    model: RunModel,
    /// The start of the run minus the start of the service, seconds.
    later: f64,
    /// The sum of all jumps of the wall clock since the run started, seconds. The run's own time does not
    /// jump.
    jumped: f64,
    overrides: BTreeMap<String, FlowOverrides>,
    /// The phases whose jobs ran before.
    known: BTreeSet<PhaseName>,
    quota: Option<UserQuota>,
}

/// A run that has just started and is about to be tracked.
pub struct NewRun {
    model: RunModel,
    known: BTreeSet<PhaseName>,
    quota: Option<UserQuota>,
}

impl NewRun {
    /// A run that has just started and of which only the workload is known; its engine reports each task.
    pub fn of(workload: &Draft) -> Self {
        let model = RunModel::new(Setting { slowstart: 1.0, profile: None }, workload);
        Self { model, known: BTreeSet::new(), quota: None }
    }

    /// With the quota of its user; `None` for no limit.
    #[must_use]
    pub fn with_quota(self, quota: Option<UserQuota>) -> Self {
        Self { quota, ..self }
    }

    /// By job of the run: its flow.
    pub fn flows(&self) -> &[String] {
        self.model.flows()
    }
}

impl Run {
    /// The current state of the run, to be tracked. `known` is the result of [`Run::known`].
    pub fn follow(&self, known: &History) -> NewRun {
        let mut model = RunModel::of_record(self.setting.clone(), &self.record());
        // The finished tasks of a resumed run tell how long the remaining ones take.
        model.learn(self.record().attempts);
        let known = known.records().map(|(name, ..)| name.clone()).collect();
        NewRun { model, known, quota: None }
    }
}

impl TrackedRun {
    /// Converts `now` to the time of the run.
    fn own(&self, now: Time) -> Time {
        Time::from_seconds_nearest((now.seconds() - self.later - self.jumped).max(0.0))
    }
}

impl Forecaster {
    /// The number of samples in a prediction interval.
    pub const SAMPLES: usize = SAMPLES as usize;

    /// The 80 % interval of at least one completion time. Sorts `ends`.
    pub fn likely(ends: &mut [f64]) -> [f64; 2] {
        interval(ends)
    }

    /// A state without runs, under `policy` on these machines.
    pub fn new(
        policy: PolicySpec,
        machines: Vec<MachineDraft>,
        objective: Objective,
        slowstart: f64,
    ) -> Self {
        let setting = Setting { slowstart, profile: None };
        Self { policy, machines, objective, setting, runs: BTreeMap::new() }
    }

    /// Replaces the machines. An empty list keeps the last ones, as if they came back at once.
    pub fn stand_on(&mut self, machines: Vec<MachineDraft>) {
        if !machines.is_empty() {
            self.machines = machines;
        }
    }

    /// Tracks a run under a unique number. The run started `later` seconds after the service.
    pub fn track(
        &mut self,
        number: u64,
        followed: NewRun,
        later: f64,
        overrides: BTreeMap<String, FlowOverrides>,
    ) {
        let NewRun { model, known, quota } = followed;
        self.runs.insert(number, TrackedRun { model, later, jumped: 0.0, overrides, known, quota });
    }

    /// The wall clock jumped by `seconds`.
    pub fn clock_jumped(&mut self, seconds: f64) {
        self.runs.values_mut().for_each(|run| run.jumped += seconds);
    }

    /// The ratio of measured to estimated time of the finished tasks of a flow, and the number of these
    /// tasks. Only phases whose jobs ran before count. `None` if there is no such task.
    pub fn off(&self, number: u64, flow: &str) -> Option<(f64, u64)> {
        let run = self.runs.get(&number)?;
        run.model.off(flow, &run.known)
    }

    /// Records an event of a run at time `now` of the run.
    pub fn note(&mut self, number: u64, now: Time, event: &RunEvent) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.model.record(now, event);
        }
    }

    /// Replaces the overrides of a flow.
    pub fn stand(&mut self, number: u64, flow: &str, overrides: FlowOverrides) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.overrides.insert(flow.to_owned(), overrides);
        }
    }

    /// Marks a flow as failed.
    pub fn fail(&mut self, number: u64, flow: &str) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.model.fail(flow);
        }
    }

    /// Forgets a run that has ended.
    pub fn forget(&mut self, number: u64) {
        self.runs.remove(&number);
    }

    /// The remaining work, with estimated durations. A held flow contributes only its running tasks and gets
    /// no prediction. The flows of the run `freed` do not count as held.
    pub fn ahead(&self, now: Time, freed: Option<u64>) -> ForecastInput {
        self.simulated(now, freed).0
    }

    /// The remaining work, and [`Forecaster::SAMPLES`] samples of it with drawn durations, all under `policy`.
    /// Samples of the same moment are equal.
    ///
    /// # Errors
    /// As [`ForecastInput::completions`].
    pub fn samples(
        &self,
        now: Time,
        freed: Option<u64>,
        policy: PolicySpec,
    ) -> Result<(ForecastInput, Samples<'_>), String> {
        let (ahead, mut simulated) = self.simulated(now, freed);
        let ahead = ahead.under(policy);
        let mut samplers = Vec::with_capacity(self.runs.len());
        for (number, run) in &self.runs {
            let phases = simulated.remove(number).unwrap_or_default();
            samplers.push(run.model.sampler(run.own(now), &run.known, phases));
        }
        let samples = Samples::new(&ahead, samplers)?;
        Ok((ahead, samples))
    }

    /// The flows whose completion is unknown: they have an unfinished job that never ran before and has no finished task,
    /// and their document has no duration for it, or they read the output of such a flow.
    pub fn unknown_flows(&self) -> BTreeSet<String> {
        let of = |(number, run): (&u64, &TrackedRun)| {
            let unknown = run.model.unknown_flows();
            unknown.into_iter().map(|flow| format!("{number}/{flow}")).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of).collect()
    }

    /// The remaining work, and the simulated phases of each run.
    fn simulated(&self, now: Time, freed: Option<u64>) -> (ForecastInput, BTreeMap<u64, SimulatedPhases>) {
        let mut draft =
            Draft { machines: self.machines.clone(), objective: self.objective, ..Draft::default() };
        let (mut slots, mut simulated, mut n_phases) = (SlotUse::default(), BTreeMap::new(), 0);
        for (number, run) in &self.runs {
            let own = run.own(now);
            let left = run.model.ahead(run.model.estimated(own), own);
            let (mut all_running, mut all_tasks) = (run.model.running(), run.model.remaining_tasks());
            let mut phases = SimulatedPhases::new();
            draft.add_pools(&left.pools);
            for mut flow in left.flows {
                let overrides = run.overrides.get(&flow.id).copied().unwrap_or_default();
                overrides.applied(&mut flow);
                let mut running = all_running.remove(&flow.id).unwrap_or_default();
                let mut tasks = all_tasks.remove(flow.id.as_str()).unwrap_or_default();
                let mut id = format!("{number}/{}", flow.id);
                if overrides.held && freed != Some(*number) {
                    if running.is_empty() {
                        continue;
                    }
                    tasks.retain_mut(|phase| keep_running(phase, &running));
                    flow = running_tasks::alone(flow, &mut running);
                    id.insert_str(0, HELD);
                    slots.held.insert(id.clone());
                }
                n_phases = add_phases(&flow, tasks, n_phases, &mut phases);
                flow.id = id;
                flow.quota.clone_from(&run.quota);
                slots.running.insert(flow.id.clone(), running);
                // The deadline is a date. The remaining tasks are in the time of the run.
                let deadline = flow.deadline.map(|at| (at + run.later).max(0.0));
                draft.flows.push(FlowDraft { deadline, ..flow.later(run.later + run.jumped) });
            }
            simulated.insert(*number, phases);
        }
        let (policy, setting) = (self.policy.clone(), self.setting.clone());
        let (slots, kept) = (Arc::new(slots), CachedOrder::default());
        (ForecastInput { draft, now, policy, setting, slots, kept }, simulated)
    }
}
