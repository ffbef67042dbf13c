//! Deadlines that are a multiple of the time alone. They depend on the cluster of a rule, not on the cluster of the
//! instance, so they are the same for every size and speed of the cluster.

use super::Instance;
use super::derive::time_alone;
use crate::cluster::Cluster;
use crate::id::FlowId;
use crate::time::{SECONDS_MAX, Span, Time};

/// Each deadline is the release of the flow plus `factor` times its time alone on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadlineRule {
    /// Multiple of the time alone.
    pub factor: f64,
    /// The cluster. `None` stands for unlimited slots of speed 1: the time alone is then the critical path.
    pub cluster: Option<Cluster>,
    /// If given, work that is not cut into tasks counts as tasks of at most this length.
    pub grain: Option<Span>,
}

impl DeadlineRule {
    /// The deadline of a flow of `instance`.
    ///
    /// # Errors
    /// The deadline in seconds, if it is later than time can be represented.
    pub fn deadline(&self, instance: &Instance, flow: FlowId) -> Result<Time, f64> {
        let seconds = self.factor * time_alone(instance, flow, self.cluster.as_ref(), self.grain);
        let release = instance.flow(flow).release;
        let deadline = release.seconds() + seconds;
        // The comparison is false for NaN, which 0 times an infinite time gives.
        if deadline <= SECONDS_MAX {
            Ok(release + Span::from_seconds_nearest(seconds))
        } else {
            Err(deadline)
        }
    }
}

impl Instance {
    /// The same instance with the deadlines of a rule.
    ///
    /// # Errors
    /// The first flow whose deadline is out of range, with its deadline in seconds.
    pub fn with_deadlines(mut self, rule: &DeadlineRule) -> Result<Self, (String, f64)> {
        for id in self.flows.keys().collect::<Vec<_>>() {
            let deadline =
                rule.deadline(&self, id).map_err(|seconds| (self.flows[id].id.clone(), seconds))?;
            self.flows[id].deadline = Some(deadline);
        }
        self.resolve_costs_again();
        Ok(self)
    }

    /// A rule for this cluster.
    pub fn deadline_rule(&self, factor: f64, grain: Option<Span>) -> DeadlineRule {
        DeadlineRule { factor, cluster: Some(self.cluster.clone()), grain }
    }
}
