//! Estimates as the online policy uses them: speeds as of its last decision, and sizes of single tasks.

use slackline_model::{Cluster, PhaseId, Span};
use slackline_policy::view::mean_of;
use slackline_policy::{Estimates, View};

use super::list::Run;
use super::queues::Speeds;
use super::variant::Variant;

/// Speeds of the machines.
#[derive(Clone, Debug)]
pub(super) struct SpeedEstimates {
    /// As they were when something was last decided.
    speeds: Speeds,
    /// Whether all machines are taken to have the same speed, whatever is known.
    blind: bool,
}

impl SpeedEstimates {
    pub(super) fn new(cluster: &Cluster, variant: Variant) -> Self {
        Self {
            speeds: Speeds(vec![cluster.mean_speed(); cluster.groups().len()].into()),
            blind: variant == Variant::Identical,
        }
    }

    /// Machines of groups that were not known join.
    pub(super) fn join(&mut self, cluster: &Cluster) {
        self.speeds.0.resize(cluster.groups().len(), cluster.mean_speed());
    }

    pub(super) fn get(&self) -> &Speeds {
        &self.speeds
    }

    /// Takes over what has been learned of speeds.
    pub(super) fn update(&mut self, estimates: &Estimates) {
        if !self.blind {
            self.speeds.0.clone_from(&estimates.speed);
        }
    }
}

/// The estimated size of a task.
pub(super) fn size(view: &View<'_>, phase: PhaseId, task: u32) -> Span {
    let truth = || view.instance.phase(phase).tasks().map_or(Span::ZERO, |tasks| tasks.run_at(task).0);
    if view.estimates.each { of_task(view, phase, truth()) } else { view.estimates.task[phase] }
}

/// Tasks of a phase that have not begun, with estimated sizes. O(pieces of them + runs of tasks).
pub(super) fn pending(view: &View<'_>, phase: PhaseId) -> Vec<Run> {
    let mut runs = Vec::new();
    let Some(tasks) = view.instance.phase(phase).tasks() else { return runs };
    for (first, count) in view.phase(phase).pending() {
        let mut from = first;
        while from < first + count {
            // Without knowledge of single tasks all of them are equal, however they are cut up.
            let (span, count) = if view.estimates.each {
                let (truth, equal) = tasks.run_at(from);
                (of_task(view, phase, truth), equal.min(first + count - from))
            } else {
                (view.estimates.task[phase], count)
            };
            runs.push(Run { first: from, count, span });
            from += count;
        }
    }
    runs
}

/// Estimated work and longest of the tasks of a phase that have not begun, seconds.
pub(super) fn left(view: &View<'_>, phase: PhaseId) -> (f64, f64) {
    if !view.estimates.each {
        let (left, mean) = (view.phase(phase).unstarted(), view.estimates.task[phase].seconds());
        return (f64::from(left) * mean, if left > 0 { mean } else { 0.0 });
    }
    let runs = pending(view, phase);
    let work = runs.iter().map(|run| run.span.seconds() * f64::from(run.count)).sum();
    (work, runs.iter().map(|run| run.span).max().unwrap_or(Span::ZERO).seconds())
}

/// The estimated size of a task of that true size.
fn of_task(view: &View<'_>, phase: PhaseId, truth: Span) -> Span {
    let (estimated, mean) = (view.estimates.task[phase], mean_of(view.instance.phase(phase)));
    if !view.estimates.each || mean == Span::ZERO {
        estimated
    } else if estimated == mean {
        truth
    } else {
        Span::from_seconds_nearest(estimated.seconds() * (truth.seconds() / mean.seconds()))
    }
}
