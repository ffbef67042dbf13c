//! What is known of one run: its finished, running and failed tasks, its remaining work, and how long that
//! work is estimated to take.

use std::collections::{BTreeMap, BTreeSet};

use slackline_executor::engine::event::RunEvent;
use slackline_executor::spec::remaining::remaining;
use slackline_executor::store::journal::{Attempt, AttemptOutcome};
use slackline_model::draft::{JobDraft, PhaseDraft, TasksDraft};
use slackline_model::history::{PhaseName, recurring};
use slackline_model::profile::UniformSpan;
use slackline_model::{Draft, PhaseKind, Span, Time};
use slackline_task::base::task_id::TaskId;

use super::policy::Setting;
use super::sink::count;
use super::{RunRecord, jobs};
use crate::run::forecaster::running_tasks::{RunningTask, TasksByFlow};

mod samples;
#[cfg(test)]
pub(super) use samples::SAMPLED_TASKS_MAX;
pub(super) use samples::{SAMPLES, Sampler, SimulatedPhases, interval};

/// A task that exceeds its estimate is assumed to need this fraction of its elapsed time in addition.
const OVERDUE: f64 = 0.1;

/// The number of sampled durations of a phase. More samples would not improve the prediction.
const DURATIONS_MAX: usize = 1_000;

/// The state of a run, and the durations that it shows.
pub(super) struct RunModel {
    pub(super) setting: Setting,
    /// The workload with the durations that were estimated before the run.
    pub(super) draft: Draft,
    /// By job: its flow.
    flows: Vec<String>,
    done: BTreeSet<TaskId>,
    running: BTreeMap<TaskId, Running>,
    failed: BTreeSet<String>,
    took: BTreeMap<Phase, PhaseCost>,
    /// The durations of finished tasks, seconds: the first [`DURATIONS_MAX`] of each phase.
    pub(super) each: BTreeMap<Phase, Vec<f64>>,
}

/// A phase: the index of its job in the run, and its kind.
pub(super) type Phase = (u32, PhaseKind);

/// A running task.
#[derive(Clone, Copy)]
struct Running {
    since: Time,
    attempts: u32,
}

impl Running {
    /// Seconds since it started.
    fn elapsed(self, now: Time) -> f64 {
        now.since(self.since.min(now)).seconds()
    }
}

/// The number and the total duration of the finished tasks of a phase.
#[derive(Clone, Copy, Default)]
struct PhaseCost {
    tasks: f64,
    seconds: f64,
}

/// A phase of the workload.
struct PhaseEntry<'a> {
    phase: Phase,
    flow: &'a str,
    job: &'a str,
    draft: &'a PhaseDraft,
}

impl PhaseEntry<'_> {
    /// Its name in histories.
    fn name(&self) -> PhaseName {
        PhaseName { flow: recurring(self.flow).to_owned(), job: self.job.to_owned(), kind: self.phase.1 }
    }
}

/// The remaining tasks of a phase.
pub(super) struct RemainingTasks<'a> {
    pub(super) phase: Phase,
    /// The name of its job.
    pub(super) job: &'a str,
    /// Their numbers in the phase.
    pub(super) tasks: Vec<u32>,
}

/// Estimates durations of unfinished tasks.
struct Estimator<'a> {
    model: &'a RunModel,
    now: Time,
    /// The longest elapsed time of the running tasks of a phase, seconds.
    longest: BTreeMap<Phase, f64>,
    /// By kind: the ratio of measured to estimated time of finished tasks.
    units: [f64; 2],
}

impl Estimator<'_> {
    /// Replaces the durations of a phase that were estimated before the run.
    fn update(&self, phase @ (job, kind): Phase, each: &mut [f64]) {
        let mean = self.model.took.get(&phase).map(|took| took.seconds / took.tasks);
        let least = self.longest.get(&phase).copied().unwrap_or(0.0);
        for (seconds, task) in each.iter_mut().zip(0..) {
            *seconds = mean.unwrap_or((*seconds * self.units[kind as usize]).max(least));
            if let Some(running) = self.model.running.get(&TaskId { job, phase: kind, task }) {
                let so_far = running.elapsed(self.now);
                *seconds = (*seconds - so_far).max(so_far * OVERDUE);
            }
        }
    }
}

/// A phase with finished tasks.
struct MeasuredPhase<'a> {
    entry: PhaseEntry<'a>,
    took: PhaseCost,
    /// The durations of its tasks that were estimated before the run, seconds.
    estimates: &'a [f64],
}

impl MeasuredPhase<'_> {
    /// The estimated time of as many tasks as are finished.
    fn estimated(&self, finished: f64) -> f64 {
        finished * self.estimates.iter().sum::<f64>() / self.estimates.len().max(1) as f64
    }
}

impl RunModel {
    /// A run of which only the workload is known.
    pub(super) fn new(setting: Setting, workload: &Draft) -> Self {
        let mut draft = workload.clone();
        // Every simulation copies the draft, and needs no commands.
        for job in draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs) {
            (job.run, job.recorded) = (None, Vec::new());
        }
        Self {
            setting,
            draft,
            flows: jobs::jobs(workload).map(|(flow, _)| flow.to_owned()).collect(),
            done: BTreeSet::new(),
            running: BTreeMap::new(),
            failed: BTreeSet::new(),
            took: BTreeMap::new(),
            each: BTreeMap::new(),
        }
    }

    /// A run whose tasks are about to start. Its estimates are those before the run.
    pub(super) fn of_record(setting: Setting, record: &RunRecord<'_>) -> Self {
        let (done, failed) = (record.done(), record.unrunnable());
        Self { done, failed, ..Self::new(setting, record.workload) }
    }

    /// Adds finished attempts and their durations.
    pub(super) fn learn(&mut self, attempts: &[Attempt]) {
        for attempt in attempts.iter().filter(|attempt| matches!(attempt.ended, AttemptOutcome::Done(_))) {
            self.finish(attempt.id, attempt.micros() as f64 / 1e6);
        }
    }

    /// A task has finished.
    fn finish(&mut self, id: TaskId, seconds: f64) {
        self.done.insert(id);
        let phase = (id.job, id.phase);
        let took = self.took.entry(phase).or_default();
        *took = PhaseCost { tasks: took.tasks + 1.0, seconds: took.seconds + seconds };
        let each = self.each.entry(phase).or_default();
        if each.len() < DURATIONS_MAX {
            each.push(seconds);
        }
    }

    /// By job: its flow.
    pub(super) fn flows(&self) -> &[String] {
        &self.flows
    }

    /// Marks a flow as failed for good.
    pub(super) fn fail(&mut self, flow: &str) {
        self.failed.insert(flow.to_owned());
    }

    /// How many flows have failed for good.
    pub(super) fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Whether a flow has failed for good.
    pub(super) fn has_failed(&self, flow: &str) -> bool {
        self.failed.contains(flow)
    }

    /// Adds an attempt that has been running since `since`.
    pub(super) fn start(&mut self, id: TaskId, since: Time) {
        self.running.entry(id).or_insert(Running { since, attempts: 0 }).attempts += 1;
    }

    /// Processes an event.
    pub(super) fn record(&mut self, now: Time, event: &RunEvent) {
        match event {
            RunEvent::AttemptStarted(attempt) => self.start(attempt.id, now),
            RunEvent::TaskFinished { task, seconds } => {
                self.running.remove(task);
                self.finish(*task, *seconds);
            }
            RunEvent::AttemptFailed { task, other_runs: false, is_final, .. } => {
                self.running.remove(task);
                if *is_final {
                    self.failed.insert(self.flows[task.job as usize].clone());
                }
            }
            RunEvent::AttemptStopped { task, .. } | RunEvent::AttemptFailed { task, .. } => self.stop(*task),
            RunEvent::OutputLost { tasks, .. } => self.done.retain(|id| !tasks.contains(id)),
            RunEvent::FlowBlocked { flow, .. } => self.fail(flow),
            // The other events do not change the state of a task.
            _ => {}
        }
    }

    /// An attempt has ended. Another attempt of the task may still run.
    fn stop(&mut self, id: TaskId) {
        if let Some(running) = self.running.get_mut(&id) {
            running.attempts -= 1;
            if running.attempts == 0 {
                self.running.remove(&id);
            }
        }
    }

    /// The clock jumped by `by` microseconds: later events have later times.
    pub(super) fn clock_jumped(&mut self, by: i64) {
        for running in self.running.values_mut() {
            running.since = Time(running.since.0.saturating_add_signed(by));
        }
    }

    /// The number of unfinished tasks.
    fn unfinished(&self) -> usize {
        self.phases().map(|entry| count(entry.draft)).sum::<usize>().saturating_sub(self.done.len())
    }

    /// The remaining work from `now` on, with the given durations.
    pub(super) fn ahead(&self, durations: Draft, now: Time) -> Draft {
        let mut draft = remaining(durations, &self.done);
        draft.flows.retain(|flow| !self.failed.contains(&flow.id));
        // In whole microseconds, as in all workloads. For short tasks the fraction is too large to be rounded
        // silently.
        for seconds in each_mut(&mut draft).flat_map(|(_, each)| each) {
            *seconds = Span::from_seconds_nearest(*seconds).seconds();
        }
        let behind = self.behind();
        for flow in &mut draft.flows {
            let behind = behind.get(flow.id.as_str()).copied().unwrap_or(0.0);
            flow.release = flow.release.max(now.seconds() - behind).max(0.0);
        }
        draft
    }

    /// The running tasks, numbered among the remaining ones. O(running tasks · finished tasks of their
    /// phase).
    pub(super) fn running(&self) -> TasksByFlow {
        let jobs: Vec<&JobDraft> = self.draft.flows.iter().flat_map(|flow| &flow.jobs).collect();
        let mut running = TasksByFlow::new();
        for &id in self.running.keys() {
            let before = self.done.range(TaskId { task: 0, ..id }..id).count() as u32;
            let job = jobs[id.job as usize].id.clone();
            let task = RunningTask { job, phase: id.phase, task: id.task - before };
            running.entry(self.flows[id.job as usize].clone()).or_default().push(task);
        }
        running
    }

    /// By flow: the seconds of start-up that its running tasks have behind them. Simulating the flow as
    /// released that much earlier leaves only the remaining time. O(tasks).
    fn behind(&self) -> BTreeMap<&str, f64> {
        let mut behind = BTreeMap::new();
        let Some(profile) = &self.setting.profile else { return behind };
        let middle = |range: UniformSpan| f64::midpoint(range.least.seconds(), range.most.seconds());
        let am = middle(profile.submit()) + middle(profile.am_start());
        let (mut all, mut done) = (vec![0; self.flows.len()], vec![0; self.flows.len()]);
        self.phases().for_each(|entry| all[entry.phase.0 as usize] += count(entry.draft));
        self.done.iter().for_each(|id| done[id.job as usize] += 1);
        for ((all, done), flow) in all.into_iter().zip(done).zip(&self.flows) {
            if 0 < done && done < all {
                behind.insert(flow.as_str(), am);
            }
        }
        for id in self.running.keys() {
            behind.insert(&self.flows[id.job as usize], am + middle(profile.container_start()));
        }
        behind
    }

    /// The workload with the durations that are estimated now. A phase with finished tasks gets their mean.
    /// Any other phase gets its earlier estimate, scaled by the ratio of finished tasks of its kind, but at
    /// least the elapsed time of its running tasks.
    pub(super) fn estimated(&self, now: Time) -> Draft {
        let estimator = self.estimator(now);
        let mut draft = self.draft.clone();
        each_mut(&mut draft).for_each(|(phase, each)| estimator.update(phase, each));
        draft
    }

    fn estimator(&self, now: Time) -> Estimator<'_> {
        let mut longest: BTreeMap<Phase, f64> = BTreeMap::new();
        for (id, running) in &self.running {
            let so_far = longest.entry((id.job, id.phase)).or_default();
            *so_far = so_far.max(running.elapsed(now));
        }
        Estimator { model: self, now, longest, units: PhaseKind::ALL.map(|kind| self.unit(kind)) }
    }

    /// By flow that has not failed: its phases with remaining tasks, in the order of jobs. O(tasks · log).
    pub(super) fn remaining_tasks(&self) -> BTreeMap<&str, Vec<RemainingTasks<'_>>> {
        let mut flows: BTreeMap<&str, Vec<RemainingTasks<'_>>> = BTreeMap::new();
        for PhaseEntry { phase, flow, job, draft } in self.phases() {
            let TasksDraft::Each(each) = &draft.tasks else { continue };
            let is_left = |&task: &u32| !self.done.contains(&TaskId { job: phase.0, phase: phase.1, task });
            let tasks: Vec<u32> = (0..each.len() as u32).filter(is_left).collect();
            if !tasks.is_empty() && !self.failed.contains(flow) {
                flows.entry(flow).or_default().push(RemainingTasks { phase, job, tasks });
            }
        }
        flows
    }

    /// The ratio of measured to estimated time of the finished tasks of a flow, and the number of these
    /// tasks. Only the phases in `known` count.
    pub(super) fn off(&self, flow: &str, known: &BTreeSet<PhaseName>) -> Option<(f64, u64)> {
        let (mut took, mut estimated, mut tasks) = (0.0, 0.0, 0.0);
        for phase in self.measured() {
            if phase.entry.flow == flow && known.contains(&phase.entry.name()) {
                took += phase.took.seconds;
                estimated += phase.estimated(phase.took.tasks);
                tasks += phase.took.tasks;
            }
        }
        (estimated > 0.0).then(|| (took / estimated, tasks as u64))
    }

    /// The flows whose completion is unknown: they have an unfinished phase without known durations, in a job without
    /// finished tasks, or read the output of such a flow. O(tasks).
    pub(super) fn unknown_flows(&self) -> BTreeSet<&str> {
        self.draft.unknown_flows(|job, phase, draft| {
            let first = TaskId { job, phase, task: 0 };
            let done = || self.done.range(first..=TaskId { task: u32::MAX, ..first }).count();
            let is_measured = || PhaseKind::ALL.iter().any(|&kind| self.took.contains_key(&(job, kind)));
            draft.unknown && !is_measured() && done() < count(draft)
        })
    }

    /// The ratio of measured to estimated time of the finished tasks of a kind.
    fn unit(&self, kind: PhaseKind) -> f64 {
        let (mut took, mut estimated) = (0.0, 0.0);
        for phase in self.measured().filter(|phase| phase.entry.phase.1 == kind) {
            took += phase.took.seconds;
            estimated += phase.estimated(phase.took.tasks);
        }
        if estimated > 0.0 { took / estimated } else { 1.0 }
    }

    /// The phases of the workload, in the order of jobs.
    fn phases(&self) -> impl Iterator<Item = PhaseEntry<'_>> {
        let jobs = self.draft.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)));
        jobs.zip(0..).flat_map(|((flow, job), index)| {
            [&job.map, &job.reduce].into_iter().zip(PhaseKind::ALL).filter_map(move |(draft, kind)| {
                Some(PhaseEntry {
                    phase: (index, kind),
                    flow: &flow.id,
                    job: &job.id,
                    draft: draft.as_ref()?,
                })
            })
        })
    }

    /// The phases that have finished tasks.
    fn measured(&self) -> impl Iterator<Item = MeasuredPhase<'_>> {
        self.phases().filter_map(|entry| {
            let TasksDraft::Each(estimates) = &entry.draft.tasks else { return None };
            Some(MeasuredPhase { took: *self.took.get(&entry.phase)?, estimates, entry })
        })
    }
}

/// The phases of a workload whose tasks have durations, with these durations.
fn each_mut(draft: &mut Draft) -> impl Iterator<Item = (Phase, &mut Vec<f64>)> {
    let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs).zip(0..);
    jobs.flat_map(|(JobDraft { map, reduce, .. }, index)| {
        [map, reduce].into_iter().zip(PhaseKind::ALL).filter_map(move |(phase, kind)| match phase {
            Some(PhaseDraft { tasks: TasksDraft::Each(each), .. }) => Some(((index, kind), each)),
            _ => None,
        })
    })
}
