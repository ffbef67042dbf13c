//! The dates by which EDF orders phases: the deadlines of their flows, or their latest starts.

use slackline_model::instance::Flow;
use slackline_model::params::Settings;
use slackline_model::{FlowId, Instance, JobId, PhaseId};

/// The dates by which phases are ordered; by default the deadlines of their flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dates {
    /// Whether the date of a phase is its latest start.
    pub slack: bool,
    /// Whether the time from release to deadline is divided by the weight.
    pub weights: bool,
}

impl Dates {
    /// The deadlines of flows.
    pub const DEADLINES: Self = Self { slack: false, weights: false };

    /// The values of the parameters.
    pub(super) fn chosen(settings: &Settings) -> Self {
        Self { slack: settings.choice("due") == "slack", weights: settings.choice("weights") == "counted" }
    }

    /// The date of a phase whose path to the end of its flow is `path`, in seconds; infinite without a
    /// deadline.
    pub(super) fn of(self, flow: &Flow, path: f64) -> f64 {
        let Some(deadline) = flow.deadline else { return f64::INFINITY };
        let (release, deadline) = (flow.release.seconds(), deadline.seconds());
        let weight = flow.weight.max(f64::MIN_POSITIVE);
        let due = if self.weights { release + (deadline - release) / weight } else { deadline };
        if self.slack { due - path } else { due }
    }
}

/// Seconds from the start of every phase of a flow to the end of the flow, for these durations.
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
