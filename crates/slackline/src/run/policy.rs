//! The policy of a run: made for what is left, and simulated on estimated durations.

use slackline_model::Instance;
use slackline_policy::Policy;

use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, SimulateError, Simulated, simulate};

/// The policy, for what is left of a run.
pub(super) fn make(policy: &PolicySpec, instance: &Instance) -> Box<dyn Policy + Send> {
    policy.build(instance.cluster(), &instance.objective())
}

/// What the simulator expects of the policy on durations that are believed.
///
/// # Errors
/// As [`simulate`].
pub(super) fn simulated(
    policy: &PolicySpec,
    instance: &Instance,
    slowstart: f64,
) -> Result<Simulated, SimulateError> {
    let options = Options { slowstart, ..Options::exact() };
    simulate(instance, policy, &options, None, None)
}
