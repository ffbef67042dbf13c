//! The dates by which EDF orders phases: the deadlines of their flows, or their latest starts.

use slackline_model::instance::Flow;
use slackline_model::params::Settings;
use slackline_model::{FlowId, Instance, JobId, PhaseId};

/// What phases wait in the order of; by default the deadlines of their flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dates {
    /// When they have to start for the deadline.
    pub slack: bool,
    /// The time that flows are given counts divided by their weights.
    pub weights: bool,
}

impl Dates {
    /// The deadlines of flows.
    pub const DEADLINES: Self = Self { slack: false, weights: false };

    /// What the parameters say.
    pub(super) fn chosen(settings: &Settings) -> Self {
        Self { slack: settings.choice("due") == "slack", weights: settings.choice("weights") == "counted" }
    }

    /// The date of a phase of a flow, in seconds, from whose start it is so long to the end of the flow;
    /// infinite without a deadline.
    pub(super) fn of(self, flow: &Flow, path: f64) -> f64 {
        let Some(deadline) = flow.deadline else { return f64::INFINITY };
        let (release, deadline) = (flow.release.seconds(), deadline.seconds());
        let weight = flow.weight.max(f64::MIN_POSITIVE);
        let due = if self.weights { release + (deadline - release) / weight } else { deadline };
        if self.slack { due - path } else { due }
    }
}

/// Seconds from the start of every phase of a flow to the end of the flow, if each takes so long.
pub(super) fn paths(
    instance: &Instance,
    flow: FlowId,
    seconds: impl Fn(PhaseId) -> f64,
) -> Vec<(PhaseId, f64)> {
    let jobs = instance.flow(flow).jobs();
    let (first, mut from) = (jobs.clone().next().map_or(0, JobId::index), vec![0.0; jobs.len()]);
    let mut paths = Vec::new();
    for &id in instance.topological_of(flow).iter().rev() {
        let job = instance.job(id);
        let mut path = job.before.iter().map(|next| from[next.index() - first]).fold(0.0, f64::max);
        for phase in [job.reduce, job.map].into_iter().flatten() {
            path += seconds(phase);
            paths.push((phase, path));
        }
        from[id.index() - first] = path;
    }
    paths
}
