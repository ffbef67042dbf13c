//! Simulates a policy with the audit of the driver, and judges the result.

use slackline::{PolicySpec, Registry};
use slackline_model::{Instance, Schedule};
use slackline_policy::Policy;

pub use slackline::conformance::{Setup, at_most, broken_bound, judged, same};

/// Runs `policy` on the simulator, audited after every instant. The instance must have been cut.
///
/// # Panics
/// If the audit finds the state of the driver wrong, or the policy fails.
pub fn simulate(instance: &Instance, policy: &mut dyn Policy, setup: &Setup) -> Schedule {
    slackline::conformance::simulate(instance, policy, setup).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Every policy of the registry, with every choice of each of its parameters in turn, or the limits of a
/// number.
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
