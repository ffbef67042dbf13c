//! When the flows of several runs are going to be done that share the machines of an engine that stays
//! ([`crate::resident`]), and what would be if this or that were different.
//!
//! Times are seconds since the service began, unless something else is said. A flow is called `RUN/FLOW` here.

use std::collections::{BTreeMap, BTreeSet};

use slackline_local::Happening;
use slackline_local::backend::Standing;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::history::PhaseName;
use slackline_model::{Draft, History, Objective, Time};

use super::Run;
use super::forecast::{self, COURSES, Forecast};
use super::policy::Setting;
use crate::policy_spec::PolicySpec;

/// What is believed of the flows of several runs.
pub struct Outlook {
    policy: PolicySpec,
    machines: Vec<MachineDraft>,
    objective: Objective,
    slowstart: f64,
    runs: BTreeMap<u64, Tracked>,
}

/// A run that is watched.
struct Tracked {
    forecast: Forecast,
    /// How many seconds later than the service it began.
    later: f64,
    standings: BTreeMap<String, Standing>,
    /// The phases whose jobs ran before.
    known: BTreeSet<PhaseName>,
}

/// A run as it begins, to be watched.
pub struct Followed {
    forecast: Forecast,
    known: BTreeSet<PhaseName>,
}

impl Followed {
    /// By job of the run: its flow.
    pub fn flows(&self) -> &[String] {
        self.forecast.flows()
    }
}

impl Run {
    /// The run as it is now, to be watched. What is known of its phases is that of [`Run::known`].
    pub fn follow(&self, known: &History) -> Followed {
        let forecast = Forecast::new(self.request.policy.clone(), self.setting.clone(), self.session());
        Followed { forecast, known: known.records().map(|(name, ..)| name.clone()).collect() }
    }
}

impl Tracked {
    /// Now in the time of the run.
    fn own(&self, now: Time) -> Time {
        Time::from_seconds_nearest((now.seconds() - self.later).max(0.0))
    }
}

/// What is left of all flows at a moment, to be simulated.
#[derive(Clone, Debug)]
pub struct Ahead {
    /// The flows, with what is believed of them.
    pub draft: Draft,
    now: Time,
    policy: PolicySpec,
    slowstart: f64,
}

/// When flows are going to be done, by name.
pub type Completions = BTreeMap<String, f64>;

impl Outlook {
    /// What is believed where nothing runs yet, under a policy on these machines.
    pub fn new(
        policy: PolicySpec,
        machines: Vec<MachineDraft>,
        objective: Objective,
        slowstart: f64,
    ) -> Self {
        Self { policy, machines, objective, slowstart, runs: BTreeMap::new() }
    }

    /// The machines are these from now on. Without any it is as if the last ones came back at once.
    pub fn stand_on(&mut self, machines: Vec<MachineDraft>) {
        if !machines.is_empty() {
            self.machines = machines;
        }
    }

    /// A run is watched from now on, under a number that no other has; it began so many seconds after the service.
    pub fn track(
        &mut self,
        number: u64,
        followed: Followed,
        later: f64,
        standings: BTreeMap<String, Standing>,
    ) {
        let Followed { forecast, known } = followed;
        self.runs.insert(number, Tracked { forecast, later, standings, known });
    }

    /// What finished tasks of a flow took over what was expected of them, and how many there are: of phases whose jobs ran before.
    /// None if there is no such task.
    pub fn off(&self, number: u64, flow: &str) -> Option<(f64, u64)> {
        let run = self.runs.get(&number)?;
        run.forecast.off(flow, &run.known)
    }

    /// Something happened in a run, at that time of the run.
    pub fn note(&mut self, number: u64, now: Time, what: Happening<'_>) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.forecast.record(now, what);
        }
    }

    /// A flow stands in another way.
    pub fn stand(&mut self, number: u64, flow: &str, standing: Standing) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.standings.insert(flow.to_owned(), standing);
        }
    }

    /// A flow does not go on.
    pub fn fail(&mut self, number: u64, flow: &str) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.forecast.fail(flow);
        }
    }

    /// A run is over.
    pub fn forget(&mut self, number: u64) {
        self.runs.remove(&number);
    }

    /// What is left, as it is believed. Flows that are held are left out, whose tasks at work are short beside what waits; where
    /// `freed` names one it is not.
    pub fn ahead(&self, now: Time, freed: Option<u64>) -> Ahead {
        self.made(now, freed, |run, own| run.forecast.believed(own))
    }

    /// What is left in the courses that it may take, each drawn; those of the same moment are the same again.
    pub fn courses(&self, now: Time, freed: Option<u64>) -> Vec<Ahead> {
        (0..COURSES).map(|k| self.made(now, freed, |run, own| run.forecast.drawn(own, k))).collect()
    }

    fn made(&self, now: Time, freed: Option<u64>, durations: impl Fn(&Tracked, Time) -> Draft) -> Ahead {
        let mut draft =
            Draft { machines: self.machines.clone(), objective: self.objective, ..Draft::default() };
        for (number, run) in &self.runs {
            let own = run.own(now);
            let left = run.forecast.ahead(&durations(run, own), own);
            for mut flow in left.flows {
                let standing = run.standings.get(&flow.id).copied().unwrap_or_default();
                if standing.held && freed != Some(*number) {
                    continue;
                }
                standing.applied(&mut flow);
                flow.id = format!("{number}/{}", flow.id);
                draft.flows.push(flow.later(run.later));
            }
        }
        Ahead { draft, now, policy: self.policy.clone(), slowstart: self.slowstart }
    }
}

impl Ahead {
    /// When the flows are going to be done; `None` where the policy is a program, or cannot be simulated.
    pub fn completions(&self) -> Option<Completions> {
        if self.draft.flows.is_empty() {
            return Some(Completions::new());
        }
        if self.policy.is_program() {
            return None;
        }
        let setting = Setting { slowstart: self.slowstart, profile: None };
        forecast::completions(&self.draft, &self.policy, &setting, self.now)
    }

    /// The same without some flows.
    #[must_use]
    pub fn without(&self, is_one: impl Fn(&str) -> bool) -> Self {
        let mut other = self.clone();
        other.draft.flows.retain(|flow| !is_one(&flow.id));
        other
    }

    /// The same under another policy.
    #[must_use]
    pub fn under(&self, policy: PolicySpec) -> Self {
        Self { policy, ..self.clone() }
    }

    /// The same with so many times the slots on each machine, rounded up.
    #[must_use]
    pub fn with_slots(&self, times: f64) -> Self {
        let mut other = self.clone();
        let more = |slots: u32| (f64::from(slots) * times).ceil() as u32;
        for machine in &mut other.draft.machines {
            machine.slots = match machine.slots {
                Slots::Universal(slots) => Slots::Universal(more(slots)),
                Slots::Typed { map, reduce } => Slots::Typed { map: more(map), reduce: more(reduce) },
            };
        }
        other
    }

    /// How many slots there are.
    pub fn slots(&self) -> u64 {
        let of = |machine: &MachineDraft| {
            let each = match machine.slots {
                Slots::Universal(slots) => slots,
                Slots::Typed { map, reduce } => map + reduce,
            };
            u64::from(machine.count) * u64::from(each)
        };
        self.draft.machines.iter().map(of).sum()
    }
}
