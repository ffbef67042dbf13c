//! The one place where runs meet the type by which policies are chosen.

use slackline_judge::Violation;
use slackline_model::Instance;
use slackline_policy::Policy;

use crate::simulate::{Options, Simulated, simulate};

/// A policy, by value.
pub type PolicyChoice = crate::registry::Chosen;

/// The policy, for what is left of a run.
pub(super) fn make(policy: &PolicyChoice, instance: &Instance) -> Box<dyn Policy + Send> {
    policy.build(instance)
}

/// What the simulator expects of the policy on durations that are believed.
///
/// # Errors
/// The judge's finding.
pub(super) fn simulated(
    policy: &PolicyChoice,
    instance: &Instance,
    slowstart: f64,
) -> Result<Simulated, Violation> {
    let options = Options { slowstart, ..Options::exact() };
    simulate(instance, policy, &options, None, None)
}
