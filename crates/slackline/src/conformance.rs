//! A test suite for every policy, including your own. It runs small workloads with all workload features
//! under all simulator features. The state of the driver is audited after every instant. Schedules are
//! validated and cost no less than any lower bound, and flows finish as soon as machines stay up. A repeated
//! run gives the same schedule. Plans are feasible, or refused.

mod refilling;

use std::cell::RefCell;
use std::rc::Rc;

use slackline_judge::Report;
use slackline_model::schedule::Clock;
use slackline_model::{FlowId, Instance, MachineId, Schedule, Seed, Span, Time};
use slackline_policy::{Action, Admission, Ask, Choice, Config, Event, Grant, Policy, Style, View};
use slackline_relax::Bound;
use slackline_sim::{Crash, Crashes, Membership, Sim, noise};

use crate::import::{Source, WorkloadOptions};
use crate::plan::{Options, Plan, PlanError, plan};
use crate::policy_spec::PolicySpec;
use crate::simulate::{self, GRAIN, delays, prepare};

use refilling::Refilling;

/// The workloads of the suite, by the names of their documents.
const DOCUMENTS: [(&str, &str); 15] = [
    ("chain.toml", include_str!("../instances/chain.toml")),
    ("contract.toml", include_str!("../instances/contract.toml")),
    ("deadlines.toml", include_str!("../instances/deadlines.toml")),
    ("fork-join.toml", include_str!("../instances/fork-join.toml")),
    ("locality.toml", include_str!("../instances/locality.toml")),
    ("malleable-work.toml", include_str!("../instances/malleable-work.toml")),
    ("minima-above-capacity.toml", include_str!("../instances/minima-above-capacity.toml")),
    ("minima-and-caps.toml", include_str!("../instances/minima-and-caps.toml")),
    ("mixed-speeds.toml", include_str!("../instances/mixed-speeds.toml")),
    ("no-length.toml", include_str!("../instances/no-length.toml")),
    ("one-wave.toml", include_str!("../instances/one-wave.toml")),
    ("pools.toml", include_str!("../instances/pools.toml")),
    ("service-levels.toml", include_str!("../instances/service-levels.toml")),
    ("ties.toml", include_str!("../instances/ties.toml")),
    ("two-slot-kinds.toml", include_str!("../instances/two-slot-kinds.toml")),
];

/// The workloads of the suite, by the names of their documents.
pub fn workloads() -> Vec<(&'static str, Instance)> {
    let read = |(name, text): (&'static str, &str)| {
        let loaded = Source::new(name, text).load(&WorkloadOptions::default());
        (name, loaded.expect("invariant: the workloads of this library are valid").instance)
    };
    DOCUMENTS.map(read).into()
}

/// The settings of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The options of the simulator.
    pub sim: slackline_sim::Options,
    /// The fraction of a job's maps that must be finished before its reduces may take slots.
    pub slowstart: f64,
    /// The standard deviation of the logarithm of the error factor of estimates.
    pub noise: f64,
    /// The time that tasks wait for a slot near their input.
    pub locality_wait: Span,
    /// The probability that the cluster refills a slot without an order when a task on it ends.
    pub refills: f64,
}

impl Setup {
    /// Exact durations, slowstart 1, and no failures.
    pub fn plain() -> Self {
        Self {
            sim: slackline_sim::Options::exact(),
            slowstart: 1.0,
            noise: 0.0,
            locality_wait: Span::ZERO,
            refills: 0.0,
        }
    }

    /// Refuses settings that no simulation can have.
    fn check(&self, instance: &Instance) -> Result<(), String> {
        let Self { sim, slowstart, noise, locality_wait, .. } = self;
        let (sim, slowstart, noise, locality_wait) = (sim.clone(), *slowstart, *noise, *locality_wait);
        let options =
            simulate::Options { sim, slowstart, noise, locality_wait, ..simulate::Options::exact() };
        options.check_engine(instance).map_err(|wrong| wrong.to_string())
    }

    /// Whether durations in the schedules of these runs are exact or measured.
    pub fn clock(&self) -> Clock {
        if self.sim.jitter > 0.0 { Clock::Measured } else { Clock::Exact }
    }
}

/// The settings of the suite, by name: the same names for every instance.
pub fn setups(instance: &Instance) -> Vec<(&'static str, Setup)> {
    let with = |change: &dyn Fn(&mut Setup)| {
        let mut setup = Setup::plain();
        change(&mut setup);
        setup
    };
    let n = instance.cluster().n_machines();
    let crash = |machine: u32, at: u64, back: u64| Crash {
        machine: MachineId(machine % n),
        at: Time(at * 1_000_000),
        back: Some(Time(back * 1_000_000)),
    };
    // Unless it is the only machine, the first one fails for good after half a minute. The last one fails and
    // returns repeatedly.
    let mut script = vec![crash(n - 1, 3, 9), crash(n - 1, 11, 14), crash(n / 2, 16, 17)];
    if n > 1 {
        script.push(Crash { back: None, ..crash(0, 30, 0) });
    }
    let second = Span(1_000_000);
    let rate = Crashes::Rate { between: Span(120_000_000), repair: Span(8_000_000) };
    vec![
        ("plain", Setup::plain()),
        ("slow-start 0.05", with(&|s| s.slowstart = 0.05)),
        ("slow-start 0.5", with(&|s| s.slowstart = 0.5)),
        ("heartbeat 3 s", with(&|s| s.sim.heartbeat = Span(3_000_000))),
        ("crash script", with(&|s| s.sim.crashes = Crashes::Script(script.clone()))),
        ("crash rate", with(&|s| s.sim.crashes = rate.clone())),
        ("jitter", with(&|s| s.sim.jitter = 0.5)),
        ("noise", with(&|s| s.noise = 1.0)),
        ("locality", with(&|s| s.locality_wait = Span(3 * second.0))),
        (
            "everything",
            with(&|s| {
                s.slowstart = 0.3;
                s.noise = 0.5;
                s.locality_wait = second;
                s.sim.heartbeat = second;
                s.sim.jitter = 0.3;
                s.sim.seed = Seed(3);
                s.sim.crashes = Crashes::Script(script.clone());
            }),
        ),
    ]
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The name of the check.
    pub name: &'static str,
    /// The error and its workload, if there is one.
    pub wrong: Option<String>,
}

/// Runs all checks of a policy on every workload: one check per setting, then a repeated run, then its plans.
/// `on_check` receives each result. A check ends with the first workload that fails.
///
/// # Panics
/// If an audit finds an invalid state of the driver, which is an internal error.
pub fn check(policy: &PolicySpec, on_check: &mut dyn FnMut(&Checked)) -> Vec<Checked> {
    let workloads: Vec<_> =
        workloads().into_iter().map(|(name, instance)| (name, instance.cut(GRAIN))).collect();
    let names = setups(&workloads[0].1).into_iter().map(|(name, _)| name);
    let mut all = Vec::new();
    for (k, name) in names.chain(["the same again", "plan"]).enumerate() {
        let on = |instance: &Instance| match setups(instance).into_iter().nth(k) {
            Some((_, setup)) => simulated(instance, policy, &setup).map(drop),
            None if name == "plan" => planned(instance, policy),
            None => repeated(instance, policy),
        };
        let wrong =
            workloads.iter().find_map(|(file, instance)| Some(format!("{file}: {}", on(instance).err()?)));
        let checked = Checked { name, wrong };
        on_check(&checked);
        all.push(checked);
    }
    all
}

/// Simulates a policy, validates the schedule and compares its cost with the bounds. All flows must finish.
///
/// # Errors
/// The error, as a message.
///
/// # Panics
/// If the audit finds an invalid state of the driver.
pub fn simulated(
    instance: &Instance,
    policy: &PolicySpec,
    setup: &Setup,
) -> Result<(Schedule, Report), String> {
    let built = policy.build(instance.cluster(), &instance.objective());
    let (schedule, report) = judged(instance, &mut Patient { policy: built, calls: 0 }, setup)?;
    if report.failed > 0 {
        let did = if report.failed == 1 { "flow did" } else { "flows did" };
        return Err(format!("{} {did} not finish", report.failed));
    }
    Ok((schedule, report))
}

/// A policy that fails after a maximum number of calls. A policy that leaves tasks waiting would not end
/// while machines fail and return.
struct Patient {
    policy: Box<dyn Policy + Send>,
    calls: u32,
}

impl Patient {
    /// Some hundred times the number of calls that the workloads need.
    const CALLS_MAX: u32 = 100_000;
}

impl Policy for Patient {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn style(&self) -> Style {
        self.policy.style()
    }

    fn keeps_minima(&self) -> bool {
        self.policy.keeps_minima()
    }

    fn fills_early(&self) -> bool {
        self.policy.fills_early()
    }

    fn failure(&self) -> Option<&str> {
        let endless = self.calls >= Self::CALLS_MAX;
        self.policy
            .failure()
            .or(endless.then_some("some flows never finish, expected the policy to finish all"))
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.calls += 1;
        self.policy.on_events(events, view, out);
    }

    fn admissions(&self) -> &[(FlowId, Admission)] {
        self.policy.admissions()
    }

    fn choices(&self) -> &[Choice] {
        self.policy.choices()
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.policy.next(ask, view)
    }
}

/// Simulates `policy` with an audit after every instant. The instance is prepared first, as for any
/// simulation.
///
/// # Errors
/// The reason why the policy could not continue, or why the instance cannot be simulated with these settings.
///
/// # Panics
/// If the audit finds an invalid state of the driver.
pub fn simulate(instance: &Instance, policy: &mut dyn Policy, setup: &Setup) -> Result<Schedule, String> {
    let prepared = prepare(instance, GRAIN).map_err(|problem| problem.to_string())?;
    let instance = &*prepared;
    setup.check(instance)?;
    let (noise, seed) = (setup.noise, setup.sim.seed);
    let (node, rack) = delays(&setup.sim);
    let config = Config {
        slowstart: setup.slowstart,
        locality_wait: setup.locality_wait.max(node),
        rack_wait: rack,
        believe: Box::new(move |live, phase| noise::distorted(live, phase, noise, seed)),
        ..Config::plain().audited()
    };
    let name = policy.name().to_owned();
    let sim = Sim::new(instance, setup.sim.clone());
    let mut engine = Refilling::new(sim, setup.refills, seed);
    let mut run = slackline_policy::run(instance, policy, &mut engine, config);
    if let Some(failure) = run.figures.failure.take() {
        return Err(failure);
    }
    let mut schedule = run.schedule(instance, &name, setup.clock());
    schedule.profile.clone_from(&setup.sim.profile);
    // No policy can guarantee minima if the cluster starts tasks without orders. The validator does not know
    // which machines were up.
    schedule.minima &= setup.refills == 0.0 && setup.sim.membership.is_empty();
    Ok(schedule)
}

/// The instance with all machines that ever join, to validate and bound schedules.
fn with_all_machines(instance: &Instance, setup: &Setup) -> Instance {
    let mut whole = instance.clone();
    let mut joins: Vec<_> = setup.sim.membership.iter().collect();
    joins.sort_by_key(|change| change.at());
    for change in joins {
        if let Membership::Join { group, .. } = change {
            whole.cluster_mut().join(group.clone());
        }
    }
    whole
}

/// Simulates and validates, and compares the cost with the bounds.
///
/// # Errors
/// The reason why the policy could not continue, a violation, or a bound above the cost, as a message.
///
/// # Panics
/// As [`simulate`](fn@simulate).
pub fn judged(
    instance: &Instance,
    policy: &mut dyn Policy,
    setup: &Setup,
) -> Result<(Schedule, Report), String> {
    let schedule = simulate(instance, policy, setup)?;
    let prepared = prepare(instance, GRAIN).map_err(|problem| problem.to_string())?;
    let instance = &with_all_machines(&prepared, setup);
    match slackline_judge::check(instance, &schedule) {
        // Failures only add work. Distorted durations belong to another instance.
        Ok(report) if setup.clock() == Clock::Exact && report.failed == 0 => {
            broken_bound(instance, report.cost).map_or(Ok((schedule, report)), Err)
        }
        Ok(report) => Ok((schedule, report)),
        Err(violation) => Err(format!("{}: {violation}", policy.name())),
    }
}

/// Simulates the setting with all features twice.
fn repeated(instance: &Instance, policy: &PolicySpec) -> Result<(), String> {
    let (_, setup) = setups(instance).pop().expect("invariant: there is a way to simulate");
    let once = || Ok::<_, String>(simulated(instance, policy, &setup)?.0);
    if once()?.tasks == once()?.tasks {
        return Ok(());
    }
    Err("the second simulation gave another schedule, expected the same (does it draw random numbers, read a clock, or \
         iterate over an unordered set?)"
        .to_owned())
}

/// Plans and validates. A refused plan is no error.
///
/// # Errors
/// The error in the plan, as a message.
pub fn planned(instance: &Instance, policy: &PolicySpec) -> Result<(), String> {
    match plan(instance, policy, Options::default()) {
        Ok(Plan::Schedule(planned)) => {
            let judged = slackline_judge::check(instance, &planned.schedule);
            let report = judged.map_err(|violation| violation.to_string())?;
            broken_bound(instance, report.cost).map_or(Ok(()), Err)
        }
        Ok(Plan::Progress(_)) | Err(PlanError::Refused(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The lower bounds of an instance. Many policies are tried on one instance before the next one, so the last
/// bounds are cached: they take longer than a simulation.
fn bounds(instance: &Instance) -> Rc<[Bound]> {
    thread_local!(static LAST: RefCell<Option<(Instance, Rc<[Bound]>)>> = const { RefCell::new(None) });
    LAST.with_borrow_mut(|last| match last {
        Some((same, bounds)) if same == instance => Rc::clone(bounds),
        _ => Rc::clone(&last.insert((instance.clone(), slackline_relax::bounds(instance).into())).1),
    })
}

/// A message about a bound of `slackline_relax` above `cost`, if there is one.
pub fn broken_bound(instance: &Instance, cost: f64) -> Option<String> {
    let above = bounds(instance).iter().find(|bound| !at_most(bound.value, cost)).copied();
    above.map(|bound| format!("the lower bound {} is {}, above the cost {cost}", bound.name, bound.value))
}

/// Whether two numbers are equal within the tolerance of documents.
pub fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 2e-6 + 1e-6 * a.abs().max(b.abs())
}

/// Whether `a` is at most `b` within the tolerance of documents.
pub fn at_most(a: f64, b: f64) -> bool {
    a <= b || same(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    #[test]
    fn every_document_of_the_folder_is_a_workload() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/instances");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, DOCUMENTS.map(|(name, _)| name));
        assert!(workloads().iter().all(|(_, instance)| !instance.flows().is_empty()));
    }

    /// A policy that assigns no slots.
    struct Idle;

    impl Policy for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }

        fn style(&self) -> Style {
            Style::Priorities
        }

        fn on_events(&mut self, _: &[Event], _: &View<'_>, _: &mut Vec<Action>) {}
    }

    #[test]
    fn every_check_is_reported_and_a_policy_that_does_nothing_passes_none_that_runs() {
        let mut reported = Vec::new();
        let idle = PolicySpec::new("idle", |_, _| Box::new(Idle));
        let all = check(&idle, &mut |checked| reported.push(checked.clone()));
        assert_eq!(all, reported);
        assert_eq!(all.len(), 12);
        assert_eq!(all[0].wrong.as_deref(), Some("chain.toml: 7 flows did not finish"));
        assert!(all.iter().all(|checked| checked.wrong.is_some()), "{all:?}");
        let fifo = Registry::standard().parse("fifo").unwrap();
        assert_eq!(check(&fifo, &mut |_| ()).iter().find(|checked| checked.wrong.is_some()), None);
    }
}
