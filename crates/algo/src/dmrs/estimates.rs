//! The estimates of the online policy: speeds as of its last decision.

use slackline_model::Cluster;
use slackline_policy::Estimates;

use super::queues::Speeds;
use super::variant::Variant;

/// Speeds of the machines.
#[derive(Clone, Debug)]
pub(super) struct SpeedEstimates {
    /// The speeds at the last decision.
    speeds: Speeds,
    /// Whether all machines count as equally fast, even if their speeds are known.
    blind: bool,
}

impl SpeedEstimates {
    pub(super) fn new(cluster: &Cluster, variant: Variant) -> Self {
        Self {
            speeds: Speeds(vec![cluster.mean_speed(); cluster.groups().len()].into()),
            blind: variant == Variant::Identical,
        }
    }

    /// Adds the groups of machines that joined.
    pub(super) fn join(&mut self, cluster: &Cluster) {
        self.speeds.0.resize(cluster.groups().len(), cluster.mean_speed());
    }

    pub(super) fn get(&self) -> &Speeds {
        &self.speeds
    }

    /// Updates the learned speeds.
    pub(super) fn update(&mut self, estimates: &Estimates) {
        if !self.blind {
            self.speeds.0.clone_from(&estimates.speed);
        }
    }
}
