//! Runs one policy on the simulator and has the result judged.

mod crowding;
mod left;
mod prepare;
mod streaming;
mod writing;

use std::collections::BTreeMap;

use slackline_judge::{FlowFacts, Metrics, Violation};
use slackline_model::id::TiVec;
use slackline_model::schedule::{Clock, FlowTimes};
use slackline_model::{Cluster, FlowId, History, Instance, Schedule, Span};
use slackline_policy::unfinished::Unfinished;
use slackline_policy::{Admission, Choice, Config, Figures, Learning, Policy, Style};
use slackline_sim::noise;

use crate::policy_spec::PolicySpec;
use crate::stopwatch::Stopwatch;
use crate::woha;

pub use crowding::Crowding;
pub use left::Left;
pub(crate) use prepare::check_instance;
pub use prepare::{GRAIN, prepare};
#[cfg(feature = "import")]
pub(crate) use prepare::{WrongOption, check_cluster, check_horizon, check_number, slowest};
pub use streaming::{NotStreamed, Nowhere, Streamed, needs_whole, simulate_stream};
pub(crate) use writing::{Leave, simulate_watched};
pub use writing::{NotWritten, RowWriter, simulate_to};

/// What a policy may know of durations and speeds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Knowledge {
    /// The mean of each phase and the speeds.
    Mean,
    /// Each task and the speeds; policies that do not look at single tasks know the means.
    Exact,
    /// Nothing but finished tasks: those of this history and those of the run.
    Learned(History),
}

/// How to simulate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// What the engine does.
    pub sim: slackline_sim::Options,
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
    /// What the policy knows.
    pub knowledge: Knowledge,
    /// Standard deviation of the logarithm of the factor by which what it knows is off; what is learned
    /// was measured.
    pub noise: f64,
    /// How long a task waits for a slot near its input. Under a profile with a `node-delay` it waits for the longer of both.
    pub locality_wait: Span,
    /// Whether a policy that plans is told of all flows before they come, with the durations of their tasks: it then does
    /// what costs least of what every policy, as it is by default, every rule and the orders of a search would do. To be had
    /// only where durations are certain and nothing fails.
    pub known_releases: bool,
    /// Whether to time decisions on the wall clock.
    pub timings: bool,
    /// Plans made elsewhere, which fit their flows ([`woha::PlanFile::assign`]); only policies that follow
    /// plans have a use for them ([`PolicySpec::follows_plans`]).
    pub plans: BTreeMap<FlowId, woha::Plan>,
}

impl Options {
    /// Exact durations and estimates, no early reduces, nothing fails.
    pub fn exact() -> Self {
        Self {
            sim: slackline_sim::Options::exact(),
            slowstart: 1.0,
            knowledge: Knowledge::Mean,
            noise: 0.0,
            locality_wait: Span::ZERO,
            known_releases: false,
            timings: false,
            plans: BTreeMap::new(),
        }
    }

    /// With an engine that does this.
    #[must_use]
    pub fn with_sim(mut self, sim: slackline_sim::Options) -> Self {
        self.sim = sim;
        self
    }

    /// With reduces that may take slots after this fraction of the maps; 1 for not early.
    #[must_use]
    pub fn with_slowstart(mut self, slowstart: f64) -> Self {
        self.slowstart = slowstart;
        self
    }

    /// With policies that know this.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Knowledge) -> Self {
        self.knowledge = knowledge;
        self
    }

    /// With errors in what policies know; see [`Options::noise`].
    #[must_use]
    pub fn with_noise(mut self, noise: f64) -> Self {
        self.noise = noise;
        self
    }

    /// With tasks that wait this long for a slot near their input.
    #[must_use]
    pub fn with_locality_wait(mut self, locality_wait: Span) -> Self {
        self.locality_wait = locality_wait;
        self
    }

    /// With plans made elsewhere; see [`Options::plans`].
    #[must_use]
    pub fn with_plans(mut self, plans: BTreeMap<FlowId, woha::Plan>) -> Self {
        self.plans = plans;
        self
    }

    /// With policies that plan being told of all flows; see [`Options::known_releases`].
    #[must_use]
    pub fn with_known_releases(mut self) -> Self {
        self.known_releases = true;
        self
    }

    /// With decisions timed on the wall clock.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.timings = true;
        self
    }

    /// What corrects the policy's knowledge, if it learns.
    fn learning(&self, cluster: &Cluster) -> Option<Learning> {
        match &self.knowledge {
            Knowledge::Learned(history) => Some(Learning::new(cluster, history)),
            Knowledge::Mean | Knowledge::Exact => None,
        }
    }

    /// How the run is driven.
    pub(crate) fn config<'a>(
        &self,
        cluster: &Cluster,
        clock: &'a dyn Fn() -> u64,
        progress: Option<&'a mut dyn FnMut(u64)>,
    ) -> Config<'a> {
        let (noise, seed) = (self.noise, self.sim.seed);
        let (node, rack) = delays(&self.sim);
        Config::plain()
            .with_slowstart(self.slowstart)
            .with_locality_wait(self.locality_wait.max(node))
            .with_rack_wait(rack)
            .with_beliefs(move |live, phase| noise::distorted(live, phase, noise, seed))
            .with_each(self.knowledge == Knowledge::Exact)
            .with_learning(self.learning(cluster))
            .with_stopwatch(self.timings.then_some(clock))
            .with_progress(progress)
    }

    /// Wall-clock figures of a run that is over, if they were asked for.
    fn timed_by(&self, stopwatch: &Stopwatch, figures: &mut Figures) -> Option<Timings> {
        self.timings.then(|| Timings {
            seconds: stopwatch.seconds(),
            decision_seconds_p99: percentile_99(&mut figures.decision_nanos) as f64 / 1e9,
        })
    }

    /// Whether durations are those of the workload.
    pub fn clock(&self) -> Clock {
        if self.sim.jitter > 0.0 { Clock::Measured } else { Clock::Exact }
    }

    /// Why a policy cannot be simulated so, if it cannot.
    fn refuses(&self, policy: &dyn Policy) -> Option<String> {
        let profile = self.sim.profile.as_ref().filter(|_| policy.style() == Style::Placements)?;
        if profile.am_share() > 0.0 {
            return Some(
                "found a policy that places each task on a machine, expected one that leaves slots to \
                 ApplicationMasters (or a profile with am-share=0, in which they hold none)"
                    .to_owned(),
            );
        }
        if profile.speculation().is_some() {
            return Some(
                "found a policy that places each task on a machine, expected one that leaves tasks to be tried again \
                 on others (or a profile with speculate=0)"
                    .to_owned(),
            );
        }
        (delays(&self.sim) != (Span::ZERO, Span::ZERO)).then(|| {
            "found a policy that places each task on a machine, expected one that leaves tasks to wait for slots near \
             their input (or a profile with node-delay=0 and rack-delay=0)"
                .to_owned()
        })
    }
}

/// How long tasks wait for slots where their input is, and then for slots in a rack where it is.
pub(crate) fn delays(sim: &slackline_sim::Options) -> (Span, Span) {
    sim.profile.as_ref().map_or((Span::ZERO, Span::ZERO), |p| (p.node_delay(), p.rack_delay()))
}

/// Who looks on while a simulation runs, and may stop it.
#[derive(Default)]
#[non_exhaustive]
pub struct Watch<'a> {
    /// Hears now and then how many tasks are done.
    pub progress: Option<&'a mut dyn FnMut(u64)>,
    /// Asked before every instant whether to stop there.
    pub cancel: Option<&'a dyn Fn() -> bool>,
    /// Hears when each flow ran that completed or failed, as soon as it has.
    pub ended: Option<&'a dyn Fn(FlowId, FlowTimes)>,
    /// Hears every row that leaves the run, whatever else becomes of it.
    pub left: Option<&'a mut dyn FnMut(Left<'_>)>,
}

impl<'a> Watch<'a> {
    /// With a function that hears how many tasks are done, if there is one.
    #[must_use]
    pub fn with_progress(mut self, progress: Option<&'a mut dyn FnMut(u64)>) -> Self {
        self.progress = progress;
        self
    }

    /// With a function that says when to stop.
    #[must_use]
    pub fn with_cancel(mut self, cancel: &'a dyn Fn() -> bool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// With a function that hears of flows when they end.
    #[must_use]
    pub fn with_ended(mut self, ended: &'a dyn Fn(FlowId, FlowTimes)) -> Self {
        self.ended = Some(ended);
        self
    }

    /// With a function that hears every row, if there is one.
    #[must_use]
    pub fn with_left(mut self, left: Option<&'a mut dyn FnMut(Left<'_>)>) -> Self {
        self.left = left;
        self
    }
}

/// A judged simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What happened, with its cost and, if one was given, the lower bound; without rows where they were not kept.
    pub schedule: Schedule,
    /// What it amounts to.
    pub metrics: Metrics,
    /// What became of each flow.
    pub flows: TiVec<FlowId, FlowFacts>,
    /// How many times a phase was chosen for free slots.
    pub decisions: u64,
    /// How many reports the engine sent.
    pub reports: u64,
    /// What is known of finished tasks now, with [`Knowledge::Learned`].
    pub history: Option<History>,
    /// What flows with a deadline were told when they arrived, by policies that can tell.
    pub admissions: Vec<(FlowId, Admission)>,
    /// What was chosen when, by policies that choose between rules.
    pub choices: Vec<Choice>,
    /// For how long masters of jobs held most slots, under a profile in which they hold any.
    pub crowding: Option<Crowding>,
    /// Wall-clock figures, with [`Options::timings`].
    pub timings: Option<Timings>,
    /// The flows that never finish, by reason.
    pub unfinished: Vec<Unfinished>,
}

/// Why there is no simulation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The judge found the schedule wrong: then a part of this program is.
    #[error("not feasible: {0}")]
    Infeasible(Violation),
    /// The policy cannot be simulated with these options.
    #[error("{0}")]
    Refused(String),
    /// The policy could not go on ([`slackline_policy::Policy::failure`]).
    #[error("{0}")]
    Policy(String),
    /// It was stopped ([`Watch::cancel`]).
    #[error("stopped before its end")]
    Stopped,
}

/// Wall-clock figures of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timings {
    /// The whole simulation, seconds.
    pub seconds: f64,
    /// The 99th percentile of an instant's decisions, seconds (nearest rank).
    pub decision_seconds_p99: f64,
}

/// Simulates `policy` on an instance, and judges the result. The schedule has all rows; phases that are given only as work
/// are cut into tasks first, as [`prepare`] does with [`GRAIN`].
///
/// `bound` is a lower bound on the cost of any schedule of the instance; it is left out where
/// durations are distorted, because it holds for the true ones. `progress` is told how many tasks
/// are done.
///
/// # Errors
/// An instance that cannot be simulated, or not with these options; the judge's finding, if the schedule is not feasible;
/// a policy that could not go on.
pub fn simulate(
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    bound: Option<f64>,
    progress: Option<&mut dyn FnMut(u64)>,
) -> Result<Simulated, SimulateError> {
    let watch = Watch::default().with_progress(progress);
    simulate_watched(instance, policy, options, bound, watch, Leave::Kept).map_err(NotWritten::simulation)
}

/// As [`simulate`], but rows are judged as they leave the run and not kept, so that memory follows what is live: the
/// schedule that is returned has none. The figures are the same. What the judge can only decide on as a whole is kept until
/// the end ([`slackline_judge::Stream::new`] says what).
///
/// # Errors
/// As [`simulate`]; a simulation that was stopped.
pub fn simulate_figures(
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    bound: Option<f64>,
    watch: Watch<'_>,
) -> Result<Simulated, SimulateError> {
    simulate_watched(instance, policy, options, bound, watch, Leave::Dropped).map_err(NotWritten::simulation)
}

/// Nearest-rank 99th percentile; 0 of nothing.
fn percentile_99(values: &mut [u64]) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let rank = (values.len() * 99).div_ceil(100);
    *values.select_nth_unstable(rank - 1).1
}
