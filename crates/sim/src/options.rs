//! The options of a simulation.

use slackline_model::{Profile, Seed, Span};

use crate::crashes::Crashes;
use crate::membership::Membership;

/// The behaviour of the simulated cluster beyond exact durations.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The seed of all random numbers.
    pub seed: Seed,
    /// Time between two reports of a machine; zero for immediate reports.
    pub heartbeat: Span,
    /// Standard deviation of the logarithm of a random factor (mean 1) on every task's duration;
    /// 0 for exact durations.
    pub jitter: f64,
    pub crashes: Crashes,
    /// Machines that join or leave. Joined machines do not fail.
    pub membership: Vec<Membership>,
    /// Whether the output of finished tasks survives their machine, as on a shared file system.
    pub shared_output: bool,
    /// The profile of the cluster: startup times and ApplicationMasters. Its machines have generic slots and
    /// never leave. If ApplicationMasters hold slots, there are at least two slots. The heartbeat and the
    /// spread of the profile are [`Options::heartbeat`] and [`Options::jitter`].
    pub profile: Option<Profile>,
}

impl Options {
    /// Exact durations, immediate reports, machines that never fail.
    pub fn exact() -> Self {
        Self {
            seed: Seed(0),
            heartbeat: Span::ZERO,
            jitter: 0.0,
            crashes: Crashes::Never,
            membership: Vec::new(),
            shared_output: false,
            profile: None,
        }
    }

    /// The same options with a profile, its heartbeat and its jitter included.
    #[must_use]
    pub fn with_profile(mut self, profile: Option<Profile>) -> Self {
        if let Some(profile) = &profile {
            self.heartbeat = profile.heartbeat();
            self.jitter = profile.spread();
        }
        self.profile = profile;
        self
    }
}
