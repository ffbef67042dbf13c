//! The policy of a run, simulated on estimated durations.

use slackline_model::{Instance, Profile};

use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, SimulateError, Simulated, simulate};

/// The settings of a run for the simulator.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The fraction of a job's maps that must be finished before its reduces may take slots.
    pub(super) slowstart: f64,
    /// The delays of its engine; `None` for an engine without delays.
    pub(super) profile: Option<Profile>,
}

/// Simulates the policy on estimated durations. If the policy cannot be simulated with the ApplicationMasters
/// of a profile, the simulation ignores the profile.
///
/// # Errors
/// As [`simulate`].
pub(super) fn simulated(
    policy: &PolicySpec,
    instance: &Instance,
    setting: &Setting,
) -> Result<Simulated, SimulateError> {
    let plain = Options { slowstart: setting.slowstart, ..Options::exact() };
    let sim = plain.sim.clone().with_profile(setting.profile.clone());
    match simulate(instance, policy, &Options { sim, ..plain.clone() }, None, None) {
        Err(SimulateError::Refused(_)) => simulate(instance, policy, &plain, None, None),
        simulated => simulated,
    }
}
