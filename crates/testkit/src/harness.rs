//! Simulate a policy with the driver's audit on, and have the result judged.

use slackline::{PolicySpec, Registry};
use slackline_judge::Report;
use slackline_model::schedule::Clock;
use slackline_model::{Instance, Schedule, Span};
use slackline_policy::{Config, Policy};
use slackline_sim::{Membership, Sim, noise};

use crate::refilling::Refilling;

/// How a run is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// What the simulator does.
    pub sim: slackline_sim::Options,
    /// Fraction of maps after which reduces may take slots.
    pub slowstart: f64,
    /// How far estimates are off.
    pub noise: f64,
    /// How long tasks wait for a slot near their input.
    pub locality_wait: Span,
    /// How likely the cluster refills a slot by itself.
    pub refills: f64,
}

impl Setup {
    /// Exact durations, nothing early, nothing fails.
    pub fn plain() -> Self {
        Self {
            sim: slackline_sim::Options::exact(),
            slowstart: 1.0,
            noise: 0.0,
            locality_wait: Span::ZERO,
            refills: 0.0,
        }
    }

    /// What durations mean in the schedules of these runs.
    pub fn clock(&self) -> Clock {
        if self.sim.jitter > 0.0 { Clock::Measured } else { Clock::Exact }
    }
}

/// Runs `policy` on the simulator, audited after every instant. The instance must have been cut.
///
/// # Panics
/// If the audit finds the driver's state wrong.
pub fn simulate(instance: &Instance, policy: &mut dyn Policy, setup: &Setup) -> Schedule {
    let (noise, seed) = (setup.noise, setup.sim.seed);
    let config = Config {
        slowstart: setup.slowstart,
        locality_wait: setup.locality_wait,
        believe: Box::new(move |live, phase| noise::distorted(live, phase, noise, seed)),
        audit: true,
        ..Config::plain()
    };
    let name = policy.name().to_owned();
    let sim = Sim::new(instance, setup.sim.clone());
    let mut engine = Refilling::new(sim, setup.refills, seed);
    let run = slackline_policy::run(instance, policy, &mut engine, config);
    let mut schedule = run.schedule(instance, &name, setup.clock());
    // No policy can promise what a cluster gives away by itself, nor does the judge know which machines were there.
    schedule.minima &= setup.refills == 0.0 && setup.sim.membership.is_empty();
    schedule
}

/// The instance on all machines that are ever there, to judge and bound schedules by.
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

/// Simulates and judges, and holds the cost against the bounds.
///
/// # Errors
/// What the judge found, or a bound above the cost, as a message.
pub fn judged(
    instance: &Instance,
    policy: &mut dyn Policy,
    setup: &Setup,
) -> Result<(Schedule, Report), String> {
    let schedule = simulate(instance, policy, setup);
    let instance = &with_all_machines(instance, setup);
    let name = policy.name();
    match slackline_judge::check(instance, &schedule) {
        // Failures only add work; distorted durations are those of another instance.
        Ok(report) if setup.clock() == Clock::Exact && report.failed == 0 => {
            broken_bound(instance, report.cost).map_or(Ok((schedule, report)), Err)
        }
        Ok(report) => Ok((schedule, report)),
        Err(violation) => Err(format!("{name}: {violation}")),
    }
}

/// Every policy of the registry, with every word of each of its parameters in turn, or the ends of what a number
/// may be.
pub fn registered(registry: &Registry) -> Vec<PolicySpec> {
    let others = |entry: &slackline::PolicyEntry| -> Vec<String> {
        let of = |param: &slackline::model::params::Param| {
            let name = param.name;
            param
                .samples()
                .into_iter()
                .skip(1)
                .map(move |value| format!("{name}={value}"))
                .collect::<Vec<_>>()
        };
        entry.params.iter().flat_map(of).map(|setting| format!("{}:{setting}", entry.name)).collect()
    };
    let specs = registry.iter().flat_map(|entry| [vec![entry.name.to_owned()], others(entry)].concat());
    specs.map(|spec| registry.parse(&spec).expect("invariant: declared values are valid")).collect()
}

/// What a bound of `slackline_relax` above `cost` says, if there is one.
pub fn broken_bound(instance: &Instance, cost: f64) -> Option<String> {
    let above = slackline_relax::bounds(instance).into_iter().find(|bound| !at_most(bound.value, cost));
    above.map(|bound| format!("the bound {} is {}, above a cost of {cost}", bound.name, bound.value))
}

/// Whether two amounts are the same by the documents' tolerance.
pub fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 2e-6 + 1e-6 * a.abs().max(b.abs())
}

/// Whether `a` is at most `b` by the documents' tolerance.
pub fn at_most(a: f64, b: f64) -> bool {
    a <= b || same(a, b)
}
