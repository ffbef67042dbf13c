//! The policy of a run: made for what is left, and simulated on estimated durations.

use slackline_model::{Instance, Profile};
use slackline_policy::Policy;

use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, SimulateError, Simulated, simulate};

/// The policy, for what is left of a run.
pub(super) fn make(policy: &PolicySpec, instance: &Instance) -> Box<dyn Policy + Send> {
    policy.build(instance.cluster(), &instance.objective())
}

/// Where a run is, for the simulator.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The fraction of a job's maps after which its reduces may take slots.
    pub(super) slowstart: f64,
    /// How its engine differs from machines that do everything at once.
    pub(super) profile: Option<Profile>,
}

/// What the simulator expects of the policy on durations that are believed. For a policy that cannot be simulated with the
/// ApplicationMasters of a profile, it is without.
///
/// # Errors
/// As [`simulate`].
pub(super) fn simulated(
    policy: &PolicySpec,
    instance: &Instance,
    setting: &Setting,
) -> Result<Simulated, SimulateError> {
    let plain = Options::exact().with_slowstart(setting.slowstart);
    let sim = plain.sim.clone().with_profile(setting.profile.clone());
    match simulate(instance, policy, &plain.clone().with_sim(sim), None, None) {
        Err(SimulateError::Refused(_)) => simulate(instance, policy, &plain, None, None),
        simulated => simulated,
    }
}
