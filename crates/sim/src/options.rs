//! What may be simulated.

use slackline_model::{Profile, Seed, Span};

use crate::crashes::Crashes;
use crate::membership::Membership;

/// What a simulation does beyond running every task for exactly its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Seed of everything that is drawn.
    pub seed: Seed,
    /// Time between two reports of a machine; zero to report at once.
    pub heartbeat: Span,
    /// Standard deviation of the logarithm of a random factor (mean 1) on every task's duration;
    /// 0 for exact durations.
    pub jitter: f64,
    pub crashes: Crashes,
    /// Machines that join or leave. Those that join do not fail.
    pub membership: Vec<Membership>,
    /// Whether the output of finished tasks outlives their machine, as on a shared file system.
    pub shared_output: bool,
    /// How the cluster differs from one that does everything at once. Its machines have universal slots, at
    /// least two in all if masters of jobs hold slots, and never go. Its heartbeat and its spread are
    /// [`Options::heartbeat`] and [`Options::jitter`].
    pub profile: Option<Profile>,
}

impl Options {
    /// Exact durations, immediate reports, machines that never die.
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

    /// With a cluster that behaves so, heartbeat and jitter included.
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
