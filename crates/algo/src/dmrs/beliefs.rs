//! What the online policy believes of speeds and sizes.

use slackline_model::id::TiVec;
use slackline_model::{Cluster, GroupId, Instance, PhaseId, Span};
use slackline_policy::View;
use slackline_policy::learning::key;

use super::history::History;
use super::list::Run;
use super::lp::System;
use super::model;
use super::queues::Speeds;
use super::variant::mean_speed;

/// Where speeds come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeedSource {
    /// From the workload.
    #[default]
    Known,
    /// From finished tasks and the history, as the sizes of phases that either knows; 1 before that.
    Learned,
    /// All machines have the mean speed of all slots.
    Mean,
}

/// What is known of the sizes of single tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sizes {
    /// Nothing: all tasks of a phase have its mean.
    #[default]
    Mean,
    /// Their proportions, as a master knows that knows the sizes of splits.
    Each,
}

#[derive(Clone, Debug)]
pub(super) struct Beliefs {
    source: SpeedSource,
    sizes: Sizes,
    speeds: Speeds,
    history: History,
    /// Names in the history.
    keys: TiVec<PhaseId, String>,
    /// The true mean of each phase, against which single tasks are measured.
    means: TiVec<PhaseId, Span>,
}

impl Beliefs {
    pub(super) fn new(instance: &Instance, source: SpeedSource, sizes: Sizes, history: History) -> Self {
        let cluster = instance.cluster();
        let keys = match source {
            SpeedSource::Learned => instance.phases().keys().map(|phase| key(instance, phase)).collect(),
            SpeedSource::Known | SpeedSource::Mean => TiVec::new(),
        };
        let mut beliefs = Self {
            source,
            sizes,
            speeds: Speeds(cluster.groups().iter().map(|group| group.speed).collect()),
            history,
            keys,
            means: slackline_policy::Estimates::mean(instance).task,
        };
        match source {
            SpeedSource::Known => {}
            SpeedSource::Learned => beliefs.recall(cluster),
            SpeedSource::Mean => {
                let speed = mean_speed(cluster);
                beliefs.speeds.0.iter_mut().for_each(|each| *each = speed);
            }
        }
        beliefs
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    pub(super) fn speeds(&self) -> &Speeds {
        &self.speeds
    }

    pub(super) fn system(&self, cluster: &Cluster) -> System {
        model::system(cluster, |group| self.speeds.0[group])
    }

    /// Speeds as the history has them; a group it does not know is taken for an average one.
    fn recall(&mut self, cluster: &Cluster) {
        let mean = self.history.mean_speed().unwrap_or(1.0);
        for (id, group) in cluster.groups().iter_enumerated() {
            self.speeds.0[id] = self.history.speed(&group.name).unwrap_or(mean);
        }
    }

    /// Finished tasks of a phase, each of which took so long on a machine of that group.
    pub(super) fn learn(
        &mut self,
        view: &View<'_>,
        phase: PhaseId,
        count: u32,
        (group, took): (GroupId, Span),
    ) {
        if self.source == SpeedSource::Learned {
            let cluster = view.instance.cluster();
            let size = view.estimates.task[phase];
            self.history.note(&self.keys[phase], &cluster.groups()[group].name, count, (size, took));
            self.recall(cluster);
        }
    }

    /// The believed mean size of a task of a phase.
    pub(super) fn size(&self, view: &View<'_>, phase: PhaseId) -> Span {
        let learned = self.keys.get(phase).and_then(|key| self.history.size(key));
        learned.unwrap_or(view.estimates.task[phase])
    }

    /// Tasks of a phase that have not begun, with believed sizes. O(tasks · log) once some have begun.
    pub(super) fn pending(&self, view: &View<'_>, phase: PhaseId) -> Vec<Run> {
        let state = view.phase(phase);
        let mut runs: Vec<Run> = Vec::new();
        if state.unstarted() == 0 {
            return runs;
        }
        let mean = self.size(view, phase);
        let Some(tasks) = view.instance.phase(phase).tasks() else { return runs };
        let mut add = |first: u32, count: u32, span: Span| match runs.last_mut() {
            Some(last) if last.span == span && last.first + last.count == first => last.count += count,
            _ => runs.push(Run { first, count, span }),
        };
        let mut first = 0;
        for run in tasks.runs() {
            let span = self.of_task(phase, mean, run.span);
            if state.unstarted() == state.total() {
                add(first, run.count, span);
            } else {
                (first..first + run.count).filter(|&t| state.is_pending(t)).for_each(|t| add(t, 1, span));
            }
            first += run.count;
        }
        runs
    }

    /// Believed work and longest of the tasks of a phase that have not begun, seconds.
    pub(super) fn left(&self, view: &View<'_>, phase: PhaseId) -> (f64, f64) {
        let runs = self.pending(view, phase);
        let work = runs.iter().map(|run| run.span.seconds() * f64::from(run.count)).sum();
        (work, runs.iter().map(|run| run.span).max().unwrap_or(Span::ZERO).seconds())
    }

    /// The believed size of a task of that true size in a phase of that believed mean.
    fn of_task(&self, phase: PhaseId, mean: Span, truth: Span) -> Span {
        match self.sizes {
            Sizes::Mean => mean,
            Sizes::Each if mean == self.means[phase] => truth,
            Sizes::Each if self.means[phase] == Span::ZERO => mean,
            Sizes::Each => {
                let share = truth.seconds() / self.means[phase].seconds();
                Span::from_seconds_nearest(mean.seconds() * share)
            }
        }
    }
}
