//! When the flows of several runs are going to be done that share the machines of an engine that stays
//! ([`crate::resident`]), and what would be if this or that were different.
//!
//! Times are seconds since the service began, unless something else is said. A flow is called `RUN/FLOW` here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use slackline_executor::engine::Happening;
use slackline_executor::engine::backend::FlowOverrides;
use slackline_model::draft::{FlowDraft, MachineDraft};
use slackline_model::history::PhaseName;
use slackline_model::{Draft, History, Objective, Time};

use super::Run;
use super::forecast::{COURSES, Forecast, likely};
use super::policy::Setting;
use crate::policy_spec::PolicySpec;

mod ahead;
pub(super) mod course;
mod rations;
mod seats;
#[cfg(test)]
mod tests;

use ahead::Quotas;
pub use ahead::{Ahead, Checked, Completions, Kept};
pub(super) use rations::Rations;
pub(super) use seats::{AtWork, Seat, Seats};

/// What comes before the name of a flow that is held, of which only what is at work is looked at.
const HELD: &str = "held:";

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
    /// By how many seconds the wall clock has jumped since it began: its own time has not.
    jumped: f64,
    standings: BTreeMap<String, FlowOverrides>,
    /// The phases whose jobs ran before.
    known: BTreeSet<PhaseName>,
    quota: Option<(String, u32)>,
}

/// A run as it begins, to be watched.
pub struct Followed {
    forecast: Forecast,
    known: BTreeSet<PhaseName>,
    /// Whose it is, and how many slots all runs of theirs may hold together.
    quota: Option<(String, u32)>,
}

impl Followed {
    /// A run that has just begun, of which nothing but its workload is known: task by task.
    pub fn of(workload: &Draft, policy: &PolicySpec) -> Self {
        let setting = Setting { slowstart: 1.0, profile: None };
        let forecast = Forecast::of_journal(policy.clone(), setting, workload, &[]);
        Self { forecast, known: BTreeSet::new(), quota: None }
    }

    /// The same of somebody whose runs may hold only so many slots together; none for as many as there are.
    #[must_use]
    pub fn with_quota(self, quota: Option<(String, u32)>) -> Self {
        Self { quota, ..self }
    }

    /// By job of the run: its flow.
    pub fn flows(&self) -> &[String] {
        self.forecast.flows()
    }
}

impl Run {
    /// The run as it is now, to be watched. What is known of its phases is that of [`Run::known`].
    pub fn follow(&self, known: &History) -> Followed {
        let mut forecast = Forecast::new(self.request.policy.clone(), self.setting.clone(), self.session());
        // What is done of a run that goes on says how long the rest takes.
        forecast.learn(self.session().attempts());
        let known = known.records().map(|(name, ..)| name.clone()).collect();
        Followed { forecast, known, quota: None }
    }
}

impl Tracked {
    /// Now in the time of the run.
    fn own(&self, now: Time) -> Time {
        Time::from_seconds_nearest((now.seconds() - self.later - self.jumped).max(0.0))
    }
}

impl Outlook {
    /// In how many courses it is looked at what may come.
    pub const COURSES: usize = COURSES as usize;

    /// Between which of several ends, at least one, eight of ten lie; they are sorted.
    pub fn likely(ends: &mut [f64]) -> [f64; 2] {
        likely(ends)
    }

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
        standings: BTreeMap<String, FlowOverrides>,
    ) {
        let Followed { forecast, known, quota } = followed;
        self.runs.insert(number, Tracked { forecast, later, jumped: 0.0, standings, known, quota });
    }

    /// The wall clock has jumped by `seconds`.
    pub fn clock_jumped(&mut self, seconds: f64) {
        self.runs.values_mut().for_each(|run| run.jumped += seconds);
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
    pub fn stand(&mut self, number: u64, flow: &str, standing: FlowOverrides) {
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

    /// What is left, as it is believed. Of flows that are held it is what they have at work, of which nothing is said; those of the
    /// run that `freed` names are not held.
    pub fn ahead(&self, now: Time, freed: Option<u64>) -> Ahead {
        self.made(now, freed, |run, own| run.forecast.believed(own))
    }

    /// What is left in one of [`Outlook::COURSES`] courses that it may take, each drawn; those of the same moment are the same again.
    pub fn course(&self, now: Time, freed: Option<u64>, k: usize) -> Ahead {
        self.made(now, freed, |run, own| run.forecast.drawn_among_others(own, k as u64, &run.known))
    }

    /// The flows of which it is not known how long their tasks take, so that what is expected of them is a guess: a job of them that is
    /// not done never ran before, and none of its tasks is done.
    pub fn guesses(&self) -> BTreeSet<String> {
        let of = |(number, run): (&u64, &Tracked)| {
            run.forecast
                .guesses(&run.known)
                .into_iter()
                .map(|flow| format!("{number}/{flow}"))
                .collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of).collect()
    }

    fn made(&self, now: Time, freed: Option<u64>, durations: impl Fn(&Tracked, Time) -> Draft) -> Ahead {
        let mut draft =
            Draft { machines: self.machines.clone(), objective: self.objective, ..Draft::default() };
        let (mut quotas, mut at_work) = (Quotas::new(), AtWork::new());
        for (number, run) in &self.runs {
            let own = run.own(now);
            let left = run.forecast.ahead(&durations(run, own), own);
            let mut all_seats = run.forecast.seats();
            draft.add_pools(&left.pools);
            for mut flow in left.flows {
                let standing = run.standings.get(&flow.id).copied().unwrap_or_default();
                standing.applied(&mut flow);
                let mut seats = all_seats.remove(&flow.id).unwrap_or_default();
                let mut id = format!("{number}/{}", flow.id);
                if standing.held && freed != Some(*number) {
                    if seats.is_empty() {
                        continue;
                    }
                    flow = seats::alone(flow, &mut seats);
                    id.insert_str(0, HELD);
                }
                flow.id = id;
                quotas.extend(run.quota.clone().map(|quota| (flow.id.clone(), quota)));
                at_work.insert(flow.id.clone(), seats);
                // Its deadline is a date, and what is left of it comes in its own time.
                let deadline = flow.deadline.map(|at| (at + run.later).max(0.0));
                draft.flows.push(FlowDraft { deadline, ..flow.later(run.later + run.jumped) });
            }
        }
        Ahead {
            draft,
            now,
            policy: self.policy.clone(),
            slowstart: self.slowstart,
            quotas: Arc::new(quotas),
            at_work: Arc::new(at_work),
            kept: Kept::default(),
        }
    }
}
