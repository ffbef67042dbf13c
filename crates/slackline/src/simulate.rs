//! Runs one policy on the simulator and validates the result.

mod crowding;
mod final_row;
mod prepare;
mod quick_bound;
mod streaming;
mod writing;

use std::collections::BTreeMap;

use slackline_judge::{FlowFacts, Metrics, Violation};
use slackline_model::id::TiVec;
use slackline_model::schedule::Clock;
use slackline_model::{Cluster, FlowId, History, Instance, Schedule, Span};
use slackline_policy::unfinished::Unfinished;
use slackline_policy::{Admission, Choice, Config, Figures, Learning, Policy, Style};
use slackline_sim::noise;

use crate::policy_spec::PolicySpec;
use crate::stopwatch::Stopwatch;
use crate::woha;

pub use crowding::Crowding;
pub use final_row::FinalRow;
pub(crate) use prepare::check_instance;
pub use prepare::{GRAIN, prepare};
#[cfg(feature = "import")]
pub(crate) use prepare::{WrongOption, check_cluster, check_horizon, check_number, slowest};
pub use quick_bound::QuickBound;
pub use streaming::{NoWriter, NotStreamed, Streamed, needs_whole, simulate_stream};
pub(crate) use writing::{Leave, simulate_watched};
pub use writing::{NotWritten, RowWriter, simulate_to};

/// What a policy knows about durations and speeds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Knowledge {
    /// The mean of each phase and the speeds.
    Mean,
    /// The duration of each task, and the speeds. Policies that ignore single tasks know the means.
    Exact,
    /// Only finished tasks: those of this history and those of the run.
    Learned(History),
}

/// The options of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The options of the simulated engine.
    pub sim: slackline_sim::Options,
    /// The fraction of a job's maps that must be finished before its reduces may take slots; 1 for all maps.
    pub slowstart: f64,
    /// The knowledge of the policy.
    pub knowledge: Knowledge,
    /// The standard deviation of the logarithm of the error factor of the policy's knowledge. Learned
    /// durations are measured and have no error.
    pub noise: f64,
    /// The time that a task waits for a slot near its input. Under a profile with a `node-delay`, the longer
    /// of both applies.
    pub locality_wait: Span,
    /// Whether a planning policy knows all flows in advance, with the durations of their tasks. It then uses
    /// the cheapest of: every policy with default settings, every rule, and the orders that a search finds.
    /// Possible only if durations are certain and no machine fails.
    pub known_releases: bool,
    /// Whether to time decisions on the wall clock.
    pub timings: bool,
    /// Plans for flows, from a plan file ([`woha::PlanFile::assign`]). Only policies that follow plans use
    /// them ([`PolicySpec::follows_plans`]).
    pub plans: BTreeMap<FlowId, woha::Plan>,
}

impl Options {
    /// Exact durations and estimates, slowstart 1, and no failures.
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

    /// Times decisions on the wall clock.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.timings = true;
        self
    }

    /// The learning of the policy's knowledge, if it learns.
    fn learning(&self, cluster: &Cluster) -> Option<Learning> {
        match &self.knowledge {
            Knowledge::Learned(history) => Some(Learning::new(cluster, history)),
            Knowledge::Mean | Knowledge::Exact => None,
        }
    }

    /// The configuration of the driver.
    pub(crate) fn config<'a>(
        &self,
        cluster: &Cluster,
        clock: &'a dyn Fn() -> u64,
        progress: Option<&'a mut dyn FnMut(u64)>,
    ) -> Config<'a> {
        let (noise, seed) = (self.noise, self.sim.seed);
        let (node, rack) = delays(&self.sim);
        Config {
            slowstart: self.slowstart,
            locality_wait: self.locality_wait.max(node),
            rack_wait: rack,
            believe: Box::new(move |live, phase| noise::distorted(live, phase, noise, seed)),
            each: self.knowledge == Knowledge::Exact,
            learning: self.learning(cluster),
            stopwatch: self.timings.then_some(clock),
            progress,
            ..Config::plain()
        }
    }

    /// Wall-clock figures of a finished run, if they were requested.
    fn timed_by(&self, stopwatch: &Stopwatch, figures: &mut Figures) -> Option<Timings> {
        self.timings.then(|| Timings {
            seconds: stopwatch.seconds(),
            decision_seconds_p99: percentile_99(&mut figures.decision_nanos) as f64 / 1e9,
        })
    }

    /// Whether durations are exact or measured.
    pub fn clock(&self) -> Clock {
        if self.sim.jitter > 0.0 { Clock::Measured } else { Clock::Exact }
    }

    /// The reason why a policy cannot be simulated with these options, if there is one.
    fn refuses(&self, policy: &dyn Policy) -> Option<String> {
        let profile = self.sim.profile.as_ref().filter(|_| policy.style() == Style::Placements)?;
        if profile.am_share() > 0.0 {
            return Some(
                "this policy chooses the machine of each task and leaves no slots to ApplicationMasters; choose another policy, \
                 or add am-share=0 to --profile"
                    .to_owned(),
            );
        }
        if profile.speculation().is_some() {
            return Some(
                "this policy chooses the machine of each task and allows no speculative attempts; choose another policy, or add \
                 speculate=0 to --profile"
                    .to_owned(),
            );
        }
        (delays(&self.sim) != (Span::ZERO, Span::ZERO)).then(|| {
            "this policy chooses the machine of each task, so tasks cannot wait for slots near their input; choose another \
             policy, or add node-delay=0 and rack-delay=0 to --profile"
                .to_owned()
        })
    }
}

/// The time that tasks wait for slots on machines with their input, and then for slots in a rack with it.
pub(crate) fn delays(sim: &slackline_sim::Options) -> (Span, Span) {
    sim.profile.as_ref().map_or((Span::ZERO, Span::ZERO), |p| (p.node_delay(), p.rack_delay()))
}

/// Callbacks of a simulation. They observe it and may stop it.
#[derive(Default)]
pub struct Watch<'a> {
    /// Called occasionally with the number of finished tasks.
    pub progress: Option<&'a mut dyn FnMut(u64)>,
    /// Called before every instant; returns whether to stop.
    pub cancel: Option<&'a dyn Fn() -> bool>,
    /// Called with every row that is final.
    pub left: Option<&'a mut dyn FnMut(FinalRow<'_>)>,
}

/// A validated simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The schedule, with its cost and the lower bound if one was given. It has no rows if they were not
    /// kept.
    pub schedule: Schedule,
    /// Its metrics.
    pub metrics: Metrics,
    /// The facts about each flow.
    pub flows: TiVec<FlowId, FlowFacts>,
    /// The number of times that a phase was chosen for free slots.
    pub decisions: u64,
    /// The number of reports of the engine.
    pub reports: u64,
    /// The knowledge about finished tasks at the end, with [`Knowledge::Learned`].
    pub history: Option<History>,
    /// The admission decision for each flow with a deadline at its arrival, of policies that make such
    /// decisions.
    pub admissions: Vec<(FlowId, Admission)>,
    /// The choices of policies that choose between rules.
    pub choices: Vec<Choice>,
    /// How long ApplicationMasters held most slots, under a profile in which they hold any.
    pub crowding: Option<Crowding>,
    /// Wall-clock figures, with [`Options::timings`].
    pub timings: Option<Timings>,
    /// The flows that never finish, by reason.
    pub unfinished: Vec<Unfinished>,
}

/// The reason why a simulation failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The schedule is invalid, which is an internal error.
    #[error("not feasible: {0}")]
    Infeasible(Violation),
    /// The policy cannot be simulated with these options.
    #[error("{0}")]
    Refused(String),
    /// The policy could not continue ([`slackline_policy::Policy::failure`]).
    #[error("{0}")]
    Policy(String),
    /// It was stopped ([`Watch::cancel`]).
    #[error("stopped before the end")]
    Stopped,
}

/// Wall-clock figures of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timings {
    /// The whole simulation, seconds.
    pub seconds: f64,
    /// The 99th percentile of the duration of an instant's decisions, seconds (nearest rank).
    pub decision_seconds_p99: f64,
}

/// Simulates `policy` on an instance, and validates the result. The schedule has all rows. Phases that are
/// given only as work are cut into tasks first, as [`prepare`] does with [`GRAIN`].
///
/// `bound` is the lower bound that the schedule claims. It is neither computed nor claimed if durations are
/// distorted ([`Options::clock`]), because it holds for the true ones. `progress` receives the number of finished tasks.
///
/// # Errors
/// An instance that cannot be simulated, or not with these options; an invalid schedule; a policy that could
/// not continue.
pub fn simulate(
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    bound: Option<&QuickBound>,
    progress: Option<&mut dyn FnMut(u64)>,
) -> Result<Simulated, SimulateError> {
    let watch = Watch { progress, ..Watch::default() };
    simulate_watched(instance, policy, options, bound, watch, Leave::Kept).map_err(NotWritten::simulation)
}

/// As [`simulate`], but rows are validated when they are final and then dropped, so that memory depends on
/// the active flows. The returned schedule has no rows; the figures are the same. Data that only the
/// validation of the whole schedule needs is kept until the end (see [`slackline_judge::Stream::new`]).
///
/// # Errors
/// As [`simulate`]; a simulation that was stopped.
pub fn simulate_figures(
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    bound: Option<&QuickBound>,
    watch: Watch<'_>,
) -> Result<Simulated, SimulateError> {
    simulate_watched(instance, policy, options, bound, watch, Leave::Dropped).map_err(NotWritten::simulation)
}

/// Nearest-rank 99th percentile; 0 for an empty list.
fn percentile_99(values: &mut [u64]) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let rank = (values.len() * 99).div_ceil(100);
    *values.select_nth_unstable(rank - 1).1
}
