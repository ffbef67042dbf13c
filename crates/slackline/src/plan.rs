//! Plans a whole workload before anything runs, and has the plan judged.

mod makers;

use std::cell::Cell;

use slackline_algo::flex::plan_instance as flex_algo;
pub use slackline_algo::flowflex::Promise;
use slackline_algo::woha::{Plan as ProgressPlan, PlanGenerator, Request};
use slackline_judge::{Metrics, Violation};
use slackline_model::schedule::{Clock, FlowTimes, Origin, Rows};
use slackline_model::{FlowId, Instance, Schedule};
use slackline_policy::{Admission, Estimates};

use crate::registry::{Chosen, policies};
use crate::stopwatch::Stopwatch;
use crate::woha;

pub(crate) use makers::{dmrs, edf, fair, fifo, flex, flowflex, ordering};

/// How to plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Searches end after this many seconds of the wall clock; without it they count steps, so that the
    /// same workload has the same plan everywhere.
    pub budget: Option<f64>,
}

/// What a policy gives when it is asked for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Slots of each phase over time; machines must have one speed.
    Allocations,
    /// Which task runs where and when.
    Tasks,
    /// How many tasks of a flow should have been started by which time.
    Progress,
}

impl Form {
    /// Whether phases given only as work must have been cut into tasks.
    pub const fn needs_tasks(self) -> bool {
        matches!(self, Self::Tasks | Self::Progress)
    }
}

/// How the registry has a policy make plans, and of what.
#[derive(Clone, Copy)]
pub(crate) struct Planner {
    pub(crate) form: Form,
    /// Whether flows must have one job each.
    pub(crate) one_job: bool,
    /// Whether slots must be universal.
    pub(crate) universal: bool,
    /// Makes schedules; progress requirements are made by WOHA's generators.
    pub(crate) make: Option<Make>,
}

/// Makes the rows of a plan; the closure is asked whether to stop searching.
pub(crate) type Make = fn(&Instance, &Chosen, &dyn Fn() -> bool) -> Made;

/// The rows of a plan with what its maker knows of them.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) allocations: Vec<slackline_model::schedule::Allocation>,
    pub(crate) tasks: slackline_model::schedule::TaskRows,
    /// The best bound known, those of `relax` included.
    pub(crate) bound: f64,
    pub(crate) winner: Option<String>,
    pub(crate) guarantee: Option<String>,
    /// Whether a search was not finished.
    pub(crate) cut: bool,
}

/// A plan.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Who runs what and when, judged.
    Schedule(Box<Planned>),
    /// Progress requirements, flow by flow.
    Progress(Vec<Requirements>),
}

/// A judged schedule that has not run yet.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Allocations or tasks, with cost and lower bound.
    pub schedule: Schedule,
    /// What it amounts to.
    pub metrics: Metrics,
    /// Which candidate won, of a policy that has several.
    pub winner: Option<String>,
    /// What is proven of any plan of this policy for this workload, beyond the bound.
    pub guarantee: Option<String>,
    /// Whether a search was left unfinished.
    pub stopped: Option<Stopped>,
}

/// Why a search was left unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It took as many steps as a plan may.
    Steps,
    /// [`Options::budget`] was spent.
    Budget,
}

/// What a scheduler needs to follow one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// The flow.
    pub flow: FlowId,
    /// Order of its jobs and tasks required over time.
    pub plan: ProgressPlan,
    /// Whether its deadline can be met, and the earliest completion.
    pub admission: Admission,
}

/// Why a policy has no plan for an instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A flow has several jobs.
    #[error("{policy} plans flows of one job, found {jobs} jobs in flow {flow:?} (simulate takes them)")]
    SeveralJobs {
        /// The policy.
        policy: &'static str,
        /// The flow.
        flow: String,
        /// How many jobs it has.
        jobs: usize,
    },
    /// Slots are typed.
    #[error("{policy} plans universal slots, found map and reduce slots (simulate takes them)")]
    TypedSlots {
        /// The policy.
        policy: &'static str,
    },
    /// Machines differ in speed.
    #[error(
        "{policy} plans allocations, which need machines of one speed, found several (simulate takes them)"
    )]
    MixedSpeeds {
        /// The policy.
        policy: &'static str,
    },
    /// Jobs may not give up slots, and minima may come when none are free.
    #[error(
        "{policy} plans moldable jobs with minima if all have one phase and are there from the start, found \
         others (jobs=malleable takes them)"
    )]
    Minima {
        /// The policy.
        policy: &'static str,
    },
    /// A phase is given only as work, and was not cut.
    #[error("{policy} plans tasks, found phase {phase} given only as work (cut it first)")]
    NotCut {
        /// The policy.
        policy: &'static str,
        /// The phase.
        phase: String,
    },
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The policy does not plan such workloads.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The judge found the plan wrong.
    #[error("the plan is not feasible: {0}")]
    Infeasible(Violation),
}

/// Plans `instance` with `policy`.
///
/// # Errors
/// If the policy does not plan such workloads ([`refused`] says so beforehand), or the judge refuses
/// the plan.
pub fn plan(instance: &Instance, policy: &Chosen, options: Options) -> Result<Plan, PlanError> {
    if let Some(reason) = refused(instance, policy) {
        return Err(reason.into());
    }
    let Some(make) = policy.planner().make else {
        return Ok(Plan::Progress(requirements(instance, policy)));
    };
    let stopwatch = Stopwatch::start();
    let called_off = Cell::new(false);
    let stop = || {
        called_off.set(options.budget.is_some_and(|budget| stopwatch.seconds() >= budget));
        called_off.get()
    };
    let made = make(instance, policy, &stop);
    let schedule = schedule(instance, policy, &made);
    let report = slackline_judge::check(instance, &schedule).map_err(PlanError::Infeasible)?;
    let why = if called_off.get() { Stopped::Budget } else { Stopped::Steps };
    let stopped = made.cut.then_some(why);
    Ok(Plan::Schedule(Box::new(Planned {
        schedule,
        metrics: report.metrics,
        winner: made.winner,
        // What was not tried proves nothing.
        guarantee: made.guarantee.filter(|_| stopped != Some(Stopped::Budget)),
        stopped,
    })))
}

/// Why `policy` has no plan for `instance`, if it has none.
pub fn refused(instance: &Instance, policy: &Chosen) -> Option<Refused> {
    let (needs, chosen, policy) = (policy.planner(), policy, policy.entry().name);
    let several = instance.flows().iter().find(|flow| needs.one_job && flow.jobs().len() > 1);
    if let Some(flow) = several {
        return Some(Refused::SeveralJobs { policy, flow: flow.id.clone(), jobs: flow.jobs().len() });
    }
    if needs.universal && instance.cluster().is_typed() {
        return Some(Refused::TypedSlots { policy });
    }
    if needs.form == Form::Allocations && instance.cluster().uniform_speed().is_none() {
        return Some(Refused::MixedSpeeds { policy });
    }
    if policy == "flex" && !flex_algo::keeps_minima(instance, makers::flex_mode(chosen)) {
        return Some(Refused::Minima { policy });
    }
    let uncut = instance.phases().iter_enumerated().find(|(_, phase)| phase.tasks().is_none());
    let (phase, _) = uncut.filter(|_| needs.form.needs_tasks())?;
    Some(Refused::NotCut { policy, phase: instance.phase_name(phase) })
}

/// The policy that plans an instance if nobody says which: the first of `flex`, `flowflex` and `dmrs` that
/// takes it (which none does if flows have several jobs and slots are typed or speeds are mixed). Phases
/// that are given only as work count as cut.
pub fn default_policy(instance: &Instance) -> Option<Chosen> {
    ["flex", "flowflex", "dmrs"].into_iter().find(|name| plans(name, instance)).map(chosen)
}

/// Names of all policies that plan an instance. Phases that are given only as work count as cut.
pub fn planners(instance: &Instance) -> Vec<&'static str> {
    policies().iter().map(|entry| entry.name).filter(|name| plans(name, instance)).collect()
}

fn plans(name: &str, instance: &Instance) -> bool {
    refused(instance, &chosen(name)).is_none_or(|reason| matches!(reason, Refused::NotCut { .. }))
}

fn chosen(name: &str) -> Chosen {
    Chosen::parse(name).expect("invariant: names of the registry are valid")
}

/// The rows as a schedule whose claims the judge can check.
fn schedule(instance: &Instance, policy: &Chosen, made: &Made) -> Schedule {
    let origin = Origin {
        policy: policy.spec().to_owned(),
        minima: policy.entry().capabilities.minima,
        clock: Clock::Exact,
        slowstart: 1.0,
    };
    let rows = if made.tasks.is_empty() {
        Rows::Allocations(made.allocations.clone())
    } else {
        Rows::Tasks(made.tasks.clone())
    };
    // The judge says when flows complete, which it does from the rows alone.
    let mut schedule = Schedule::from_rows(instance, origin, rows, |_| FlowTimes::default());
    let completions = slackline_judge::completions(instance, &schedule);
    let starts = starts(instance, &schedule);
    schedule.claim_times(instance, |flow| FlowTimes {
        start: starts[flow.index()],
        completion: completions[flow.index()],
    });
    schedule.claim_bound(Some(made.bound).filter(|bound| bound.is_finite()));
    schedule
}

/// When the first row of each flow starts.
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
fn requirements(instance: &Instance, policy: &Chosen) -> Vec<Requirements> {
    let generator = woha::generator(policy).expect("invariant: only policies of WOHA have no maker");
    let estimates = Estimates::mean(instance);
    let of = |(flow, info): (FlowId, &slackline_model::instance::Flow)| {
        let plan = generator.plan(&Request { instance, flow, estimates: &estimates, now: info.release });
        let admission = slackline_algo::woha::admission(&plan, info.deadline, info.release);
        Requirements { flow, plan, admission }
    };
    instance.flows().iter_enumerated().map(of).collect()
}

/// A plan on faster machines held against the optimum on slower ones (resource augmentation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmented {
    /// How many times faster the plan's machines are.
    pub factor: f64,
    /// A lower bound on the cost of any schedule at the lower speed.
    pub lower_bound: f64,
    /// What is promised, the optimum being that at the lower speed.
    pub promise: Option<Promise>,
}

/// Holds plans of `flowflex` for `instance` against machines of speed `base`; `None` on mixed speeds and if
/// `base` is the instance's own speed.
pub fn augmented(instance: &Instance, base: f64) -> Option<Augmented> {
    let factor = instance.cluster().uniform_speed().filter(|&speed| speed != base)? / base;
    Some(Augmented {
        factor,
        lower_bound: slackline_relax::best(&instance.clone().at_speed(base)),
        promise: slackline_algo::flowflex::promise(instance, factor),
    })
}
