//! Plans a whole workload before it runs, and validates the plan.

mod best;

pub(crate) use best::foreseeing;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use slackline_algo::registry::{Planner, Proposal};
use slackline_algo::woha::{Plan as ProgressPlan, PlanGenerator, Request};
use slackline_algo::{auto, flowflex};
use slackline_judge::{Metrics, Violation};
use slackline_model::cluster::SPEEDS;
use slackline_model::schedule::{Clock, FlowResult, FlowTimes, Origin, Rows};
use slackline_model::{FlowId, Instance, Schedule};
use slackline_policy::{Admission, Estimates, Figures, Run};
use slackline_relax::Form;
use slackline_sim::Sim;

use crate::capabilities::{Feature, planned};
use crate::policy_spec::PolicySpec;
use crate::registry::Registry;
use crate::simulate;
use crate::stopwatch::Stopwatch;

pub use slackline_algo::flowflex::Promise;
pub use slackline_algo::registry::Refused;

/// The options of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The time of searches, seconds on the wall clock. The search of `auto` uses all of it unless the plan is
    /// optimal. Without it, searches count steps, so that a workload has the same plan on every machine.
    pub budget: Option<f64>,
}

/// A plan.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A validated schedule.
    Schedule(Box<Planned>),
    /// Progress requirements, flow by flow.
    Progress(Vec<Requirements>),
}

/// A validated schedule that has not run yet.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Allocations or tasks, with cost and lower bound.
    pub schedule: Schedule,
    /// Its metrics.
    pub metrics: Metrics,
    /// The candidate that won, for a policy that has several.
    pub winner: Option<String>,
    /// The proven property of every plan of this policy for this workload, in addition to the bound.
    pub guarantee: Option<String>,
    /// The reason why a search ended early, if it did.
    pub stopped: Option<Stopped>,
    /// The cost of a plan of the policy that ignores minima, if the policy respects them.
    pub without_minima: Option<f64>,
}

/// The reason why a search ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// It reached its maximum number of steps.
    Steps,
    /// It reached [`Options::budget`].
    Budget,
}

/// The requirements that a scheduler needs to follow one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// The flow.
    pub flow: FlowId,
    /// The order of its jobs, and the number of tasks required over time.
    pub plan: ProgressPlan,
    /// Whether its deadline can be met, and the earliest completion.
    pub admission: Admission,
}

/// The reason why a plan failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The policy does not plan such workloads.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The plan is invalid.
    #[error("the plan is not feasible: {0}")]
    Infeasible(Violation),
    /// The policy could not continue.
    #[error("{0}")]
    Policy(String),
    /// The instance cannot be prepared.
    #[error("{0}")]
    Unready(String),
}

/// Plans `instance` with `policy`. A policy that plans tasks or progress gets a prepared instance
/// ([`simulate::prepare`] with [`simulate::GRAIN`]).
///
/// # Errors
/// The policy does not plan such workloads ([`refused`] detects most of them in advance) or cannot continue;
/// the instance cannot be prepared; the plan is invalid.
pub fn plan(instance: &Instance, policy: &PolicySpec, options: Options) -> Result<Plan, PlanError> {
    let prepared = if policy.plan_form().needs_tasks() {
        simulate::prepare(instance, simulate::GRAIN)
    } else {
        simulate::check_instance(instance).map(|()| Cow::Borrowed(instance))
    };
    let instance = &*prepared.map_err(|problem| PlanError::Unready(problem.to_string()))?;
    if let Some(reason) = refused(instance, policy) {
        return Err(reason.into());
    }
    let make = match policy.planner() {
        Planner::Progress { generator, .. } => {
            let generator = generator(policy.settings());
            return Ok(Plan::Progress(requirements(instance, &generator)));
        }
        Planner::Allocations(make) | Planner::Tasks(make) => Some(make),
        Planner::Rehearsal | Planner::Best => None,
    };
    let stopwatch = Stopwatch::start();
    let called_off = AtomicBool::new(false);
    let stop = || {
        let is_spent = options.budget.is_some_and(|budget| stopwatch.seconds() >= budget);
        called_off.fetch_or(is_spent, Ordering::Relaxed) || is_spent
    };
    let proposal = match policy.planner() {
        Planner::Best => best::propose(instance, policy.settings(), options.budget.is_some(), &stop)?,
        _ => make.map_or(Ok(Proposal::default()), |make| make(instance, policy.settings(), &stop))?,
    };
    let is_best = matches!(policy.planner(), Planner::Best);
    let is_called_off = called_off.load(Ordering::Relaxed);
    let stopped = proposal.cut.then_some(if is_called_off { Stopped::Budget } else { Stopped::Steps });
    let rows = match proposal.rows {
        Some(rows) => rows,
        None => rehearsed(instance, policy, &simulate::Options::exact(), || false)?
            .expect("invariant: nothing stops it"),
    };
    let bound = proposal.bound.unwrap_or_else(|| {
        let form = if matches!(rows, Rows::Tasks(_)) { Form::Tasks } else { Form::Any };
        slackline_relax::best_of(&slackline_relax::bounds_until(instance, form, &stop))
    });
    let schedule = schedule(instance, policy, rows, bound);
    let report = slackline_judge::check(instance, &schedule).map_err(PlanError::Infeasible)?;
    Ok(Plan::Schedule(Box::new(Planned {
        schedule,
        metrics: report.metrics,
        winner: proposal.winner,
        // An interrupted search of a paper's planner proves nothing.
        guarantee: proposal.guarantee.filter(|_| is_best || stopped != Some(Stopped::Budget)),
        stopped,
        without_minima: proposal.without_minima,
    })))
}

/// The reason why `policy` has no plan for `instance`, as far as its capabilities tell. Its planner may
/// refuse further instances.
pub fn refused(instance: &Instance, policy: &PolicySpec) -> Option<Refused> {
    let (takes, form) = (planned(policy.capabilities(), &policy.planner()), policy.plan_form());
    let policy = policy.name();
    let several = instance.flows().iter().find(|flow| flow.jobs().len() > 1);
    if let Some(flow) = several.filter(|_| !takes.contains(&Feature::SeveralJobs)) {
        return Some(Refused::SeveralJobs { policy, flow: flow.id.clone(), jobs: flow.jobs().len() });
    }
    if !takes.contains(&Feature::MapReduceSlots) && instance.cluster().is_map_reduce() {
        return Some(Refused::MapReduceSlots { policy });
    }
    if !takes.contains(&Feature::MixedSpeeds) && instance.cluster().uniform_speed().is_none() {
        return Some(Refused::MixedSpeeds { policy });
    }
    let uncut = instance.phases().iter_enumerated().find(|(_, phase)| phase.tasks().is_none());
    let (phase, _) = uncut.filter(|_| form.needs_tasks())?;
    Some(Refused::NotCut { policy, phase: instance.phase_name(phase) })
}

/// The default policy for planning an instance: `auto`, which plans every instance. In a registry without
/// `auto`: the first policy that plans such flows on such machines. Phases that are given only as work count
/// as cut.
pub fn default_policy(instance: &Instance, registry: &Registry) -> Option<PolicySpec> {
    let auto = registry.get(auto::ENTRY.name).map(PolicySpec::default_of);
    auto.into_iter().chain(registry.policies()).find(|policy| plans(policy, instance))
}

/// The policies of a registry that plan an instance. Phases that are given only as work count as cut.
pub fn planners(instance: &Instance, registry: &Registry) -> Vec<PolicySpec> {
    registry.policies().into_iter().filter(|policy| plans(policy, instance)).collect()
}

fn plans(policy: &PolicySpec, instance: &Instance) -> bool {
    refused(instance, policy).is_none_or(|reason| matches!(reason, Refused::NotCut { .. }))
}

/// Simulates the policy with exact durations; `None` if it was stopped.
fn rehearsed(
    instance: &Instance,
    policy: &PolicySpec,
    options: &simulate::Options,
    stop: impl Fn() -> bool,
) -> Result<Option<Rows>, PlanError> {
    let mut built = policy.build(instance.cluster(), &instance.objective());
    let config = options.config(instance.cluster(), &|| 0, None);
    let mut engine = Sim::new(instance, options.sim.clone());
    let run = slackline_policy::run_unless(instance, built.as_mut(), &mut engine, config, stop);
    match run {
        Some(Run { figures: Figures { failure: Some(failure), .. }, .. }) => Err(PlanError::Policy(failure)),
        run => Ok(run.map(|run| Rows::Tasks(run.tasks))),
    }
}

/// Builds a schedule from the rows, with claims that the validator can check.
fn schedule(instance: &Instance, policy: &PolicySpec, rows: Rows, bound: f64) -> Schedule {
    let origin = Origin {
        policy: policy.spec().to_owned(),
        minima: policy.capabilities().minima,
        clock: Clock::Exact,
        slowstart: 1.0,
        profile: None,
    };
    // The validator calculates the completions of flows, from the rows alone.
    let mut schedule = Schedule::from_rows(instance, origin, rows, |_| FlowTimes::default());
    let completions = slackline_judge::completions(instance, &schedule);
    let starts = starts(instance, &schedule);
    schedule.claim_times(instance, |flow| FlowTimes {
        start: starts[flow.index()],
        completion: completions[flow.index()],
    });
    // A plan fails no flow. The validator refuses a flow whose rows do not complete.
    for row in &mut schedule.flows {
        row.status = FlowResult::Done;
    }
    schedule.claim_bound(Some(bound).filter(|bound| bound.is_finite()));
    schedule
}

/// By flow: the start of its first row.
fn starts(instance: &Instance, schedule: &Schedule) -> Vec<Option<f64>> {
    let mut starts: Vec<Option<f64>> = vec![None; instance.flows().len()];
    let tasks = schedule.tasks.rows().iter().map(|row| (row.phase, row.start.seconds()));
    for (phase, at) in schedule.allocations.iter().map(|row| (row.phase, row.start)).chain(tasks) {
        let start = &mut starts[instance.flow_of(phase).index()];
        *start = Some(start.map_or(at, |start| start.min(at)));
    }
    starts
}

/// A plan for each flow, submitted at its release.
fn requirements(instance: &Instance, generator: &dyn PlanGenerator) -> Vec<Requirements> {
    let estimates = Estimates::mean(instance);
    let of = |(flow, info): (FlowId, &slackline_model::instance::Flow)| {
        let plan = generator.plan(&Request { instance, flow, estimates: &estimates, now: info.release });
        let admission = slackline_algo::woha::admission(&plan, info.deadline, info.release);
        Requirements { flow, plan, admission }
    };
    instance.flows().iter_enumerated().map(of).collect()
}

/// A plan on faster machines, compared with the optimum on slower ones (resource augmentation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmented {
    /// The speed of the plan's machines, relative to the slower ones.
    pub factor: f64,
    /// A lower bound on the cost of any schedule at the lower speed.
    pub lower_bound: f64,
    /// The guarantee, relative to the optimum at the lower speed.
    pub promise: Option<Promise>,
}

/// Compares a plan of `policy` for `instance` with machines of speed `base`. `None` for policies without such
/// theorems (all but FlowFlex), for mixed speeds, and if `base` is the instance's own speed or no valid
/// speed.
pub fn augmented(instance: &Instance, policy: &PolicySpec, base: f64) -> Option<Augmented> {
    if policy.name() != flowflex::ENTRY.name || !SPEEDS.contains(&base) {
        return None;
    }
    let factor = instance.cluster().uniform_speed().filter(|&speed| speed != base)? / base;
    Some(Augmented {
        factor,
        lower_bound: slackline_relax::best(&instance.clone().at_speed(base)),
        promise: flowflex::promise(instance, factor),
    })
}
