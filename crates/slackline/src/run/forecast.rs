//! Predicts when the flows of a run finish. It simulates the remaining work under the same policy, with
//! durations estimated from finished tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Mutex, PoisonError};

use slackline_executor::engine::event::RunEvent;
use slackline_executor::spec::remaining::remaining;
use slackline_executor::store::journal::{Attempt, AttemptOutcome};
use slackline_model::draft::{JobDraft, PhaseDraft, TasksDraft};
use slackline_model::history::{PhaseName, recurring};
use slackline_model::profile::UniformSpan;
use slackline_model::{Draft, FlowId, Instance, PhaseKind, Span, Time};
use slackline_task::base::task_id::TaskId;

use super::policy::{self, Setting};
use super::sink::count;
use super::{RunRecord, jobs};
use crate::policy_spec::PolicySpec;
use crate::run::service_forecast::flow_quotas::FlowQuotas;
use crate::run::service_forecast::running_tasks::{RunningTask, RunningTasks, TasksByFlow};
use crate::run::service_forecast::scenario;

mod scenarios;
pub(super) use scenarios::{SCENARIOS, likely};
#[cfg(test)]
mod tests;

/// The minimum time between two simulations, microseconds. The pause is also at least [`SHARE`] times the
/// duration of the last simulation, so that prediction takes almost no time from the tasks.
const PAUSE: Span = Span(250_000);
const SHARE: u64 = 20;

/// A task that exceeds its estimate is assumed to need this fraction of its elapsed time in addition.
const OVERDUE: f64 = 0.1;

/// The number of sampled durations of a phase. More samples would not improve the prediction.
const SAMPLES_MAX: usize = 1_000;

/// Predicts completions by simulation.
pub struct Forecast {
    policy: PolicySpec,
    setting: Setting,
    /// The workload with the durations that were estimated before the run.
    draft: Draft,
    /// By job: its flow.
    flows: Vec<String>,
    done: BTreeSet<TaskId>,
    running: BTreeMap<TaskId, Running>,
    failed: BTreeSet<String>,
    took: BTreeMap<Phase, PhaseCost>,
    /// The durations of finished tasks, seconds: the first [`SAMPLES_MAX`] of each phase.
    each: BTreeMap<Phase, Vec<f64>>,
    expected: BTreeMap<String, f64>,
    thinking: Option<Thinking>,
    /// The earliest time of the next simulation.
    next: Time,
    /// The time of the last event.
    now: Time,
}

/// A phase: the index of its job in the run, and its kind.
type Phase = (u32, PhaseKind);

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

/// A simulation that is in progress: its start, and the channel for its result.
struct Thinking {
    since: Time,
    /// Never locked; the mutex only makes the forecast `Sync`, so that several threads can read it.
    answer: Mutex<Receiver<BTreeMap<String, f64>>>,
}

impl Forecast {
    pub(super) fn new(policy: PolicySpec, setting: Setting, record: &RunRecord<'_>) -> Self {
        Self {
            policy,
            setting,
            draft: durations(record.workload),
            flows: jobs::jobs(record.workload).map(|(flow, _)| flow.to_owned()).collect(),
            done: record.done(),
            running: BTreeMap::new(),
            failed: record.unrunnable(),
            took: BTreeMap::new(),
            each: BTreeMap::new(),
            expected: BTreeMap::new(),
            thinking: None,
            next: Time::ZERO,
            now: Time::ZERO,
        }
    }

    /// The forecast of a run that another process drives or that was stopped, from its journal. Only recorded
    /// events are known, and no flow has failed for good.
    pub(super) fn of_journal(
        policy: PolicySpec,
        setting: Setting,
        workload: &Draft,
        attempts: &[Attempt],
    ) -> Self {
        let mut this = Self {
            policy,
            setting,
            draft: durations(workload),
            flows: jobs::jobs(workload).map(|(flow, _)| flow.to_owned()).collect(),
            done: BTreeSet::new(),
            running: BTreeMap::new(),
            failed: BTreeSet::new(),
            took: BTreeMap::new(),
            each: BTreeMap::new(),
            expected: BTreeMap::new(),
            thinking: None,
            next: Time::ZERO,
            now: Time::ZERO,
        };
        this.learn(attempts);
        this
    }

    /// Adds finished attempts and their durations.
    pub(super) fn learn(&mut self, attempts: &[Attempt]) {
        for attempt in attempts.iter().filter(|attempt| matches!(attempt.ended, AttemptOutcome::Done(_))) {
            self.done.insert(attempt.id);
            self.took_task(attempt.id, attempt.micros() as f64 / 1e6);
        }
    }

    /// Records the duration of a finished task.
    fn took_task(&mut self, id: TaskId, seconds: f64) {
        let phase = (id.job, id.phase);
        let took = self.took.entry(phase).or_default();
        *took = PhaseCost { tasks: took.tasks + 1.0, seconds: took.seconds + seconds };
        self.sample(phase, seconds);
    }

    /// Adds a duration to the samples of a phase.
    fn sample(&mut self, phase: Phase, seconds: f64) {
        let each = self.each.entry(phase).or_default();
        if each.len() < SAMPLES_MAX {
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

    /// Adds a task that has been running since `since`.
    pub(super) fn at_work(&mut self, id: TaskId, since: Time) {
        self.running.entry(id).or_insert(Running { since, attempts: 0 }).attempts += 1;
    }

    /// Simulates now. Returns the predicted completions of unfinished flows, seconds since the start of the
    /// run; `None` if they cannot be simulated.
    pub(super) fn simulated(&self, now: Time) -> Option<BTreeMap<String, f64>> {
        let draft = self.ahead(&self.estimated(now), now);
        if self.policy.is_program() || draft.flows.is_empty() {
            return None;
        }
        completions(&draft, &self.running(), &self.policy, &self.setting, now)
    }

    /// When a flow is predicted to finish, seconds after the start of the run, never before the last event;
    /// `None` if it failed or no prediction is available.
    pub fn of(&self, flow: &str) -> Option<f64> {
        let expected = self.expected.get(flow).filter(|_| !self.has_failed(flow));
        expected.map(|at| at.max(self.now.seconds()))
    }

    /// Whether a flow has failed.
    pub fn has_failed(&self, flow: &str) -> bool {
        self.failed.contains(flow)
    }

    /// Processes an event, and simulates if the next simulation is due.
    pub(super) fn note(&mut self, now: Time, event: &RunEvent) {
        self.record(now, event);
        self.take_in(now);
        // An external policy is not simulated: its program would be restarted for every simulation.
        if now >= self.next && self.thinking.is_none() && !self.policy.is_program() {
            self.look_ahead(now);
        }
    }

    /// Processes an event without simulating.
    pub(super) fn record(&mut self, now: Time, event: &RunEvent) {
        self.now = now;
        match event {
            RunEvent::AttemptStarted(attempt) => {
                self.running.entry(attempt.id).or_insert(Running { since: now, attempts: 0 }).attempts += 1;
            }
            RunEvent::TaskFinished { task, seconds } => {
                self.running.remove(task);
                self.done.insert(*task);
                self.took_task(*task, *seconds);
            }
            RunEvent::AttemptFailed { task, other_runs: false, is_final, .. } => {
                self.running.remove(task);
                if *is_final {
                    self.failed.insert(self.flows[task.job as usize].clone());
                }
            }
            RunEvent::AttemptStopped { task, .. } | RunEvent::AttemptFailed { task, .. } => self.stop(*task),
            RunEvent::OutputLost { tasks, .. } => self.done.retain(|id| !tasks.contains(id)),
            RunEvent::FlowBlocked { flow, .. } => drop(self.failed.insert(flow.clone())),
            // The other events do not change the state of a task.
            _ => {}
        }
    }

    /// Moves the forecast by a jump of the clock, microseconds: events after it have later times by `by`.
    pub(super) fn clock_jumped(&mut self, by: i64) {
        for running in self.running.values_mut() {
            running.since = Time(running.since.0.saturating_add_signed(by));
        }
        self.next = Time::ZERO;
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

    /// Takes the result of the simulation, if it has finished.
    fn take_in(&mut self, now: Time) {
        let Some(thinking) = &mut self.thinking else { return };
        match thinking.answer.get_mut().unwrap_or_else(PoisonError::into_inner).try_recv() {
            Err(TryRecvError::Empty) => return,
            // The policy cannot be simulated. The last prediction stays.
            Err(TryRecvError::Disconnected) => {}
            Ok(expected) => self.expected.extend(expected),
        }
        let pause = now.since(thinking.since).0.saturating_mul(SHARE).max(PAUSE.0);
        self.next = Time(now.0.saturating_add(pause));
        self.thinking = None;
    }

    /// Simulates the remaining work on a separate thread, so that a large workload does not delay the engine.
    fn look_ahead(&mut self, now: Time) {
        let draft = self.ahead(&self.estimated(now), now);
        let (running, policy, setting) = (self.running(), self.policy.clone(), self.setting.clone());
        let (sender, answer) = channel();
        let work = move || {
            // The receiver is gone if the run has ended.
            let _ =
                completions(&draft, &running, &policy, &setting, now).map(|expected| sender.send(expected));
        };
        // If no thread can be created, the channel is closed and the last prediction stays.
        let _ = std::thread::Builder::new().spawn(work);
        self.thinking = Some(Thinking { since: now, answer: Mutex::new(answer) });
    }

    /// The remaining work from `now` on, with the given durations.
    pub(super) fn ahead(&self, durations: &Draft, now: Time) -> Draft {
        let mut draft = remaining(durations, &self.done);
        draft.flows.retain(|flow| !self.failed.contains(&flow.id));
        draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs).for_each(in_whole_micros);
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
        let master = middle(profile.submit()) + middle(profile.am_start());
        let mut done = vec![0; self.flows.len()];
        for id in &self.done {
            done[id.job as usize] += 1;
        }
        let tasks = |phase: &Option<PhaseDraft>| phase.as_ref().map_or(0, count);
        let jobs = self.draft.flows.iter().flat_map(|flow| &flow.jobs);
        let all = jobs.map(|job| tasks(&job.map) + tasks(&job.reduce));
        for ((all, done), flow) in all.zip(done).zip(&self.flows) {
            if 0 < done && done < all {
                behind.insert(flow.as_str(), master);
            }
        }
        for id in self.running.keys() {
            behind.insert(&self.flows[id.job as usize], master + middle(profile.container_start()));
        }
        behind
    }

    /// The workload with the durations that are estimated now. A phase with finished tasks gets their mean.
    /// Any other phase gets its earlier estimate, scaled by the ratio of finished tasks of its kind, but at
    /// least the elapsed time of its running tasks.
    pub(super) fn estimated(&self, now: Time) -> Draft {
        let mut draft = self.draft.clone();
        let mut longest: BTreeMap<Phase, f64> = BTreeMap::new();
        for (id, running) in &self.running {
            let so_far = longest.entry((id.job, id.phase)).or_default();
            *so_far = so_far.max(running.elapsed(now));
        }
        let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
        let units = PhaseKind::ALL.map(|kind| self.unit(kind));
        for (job, index) in jobs.zip(0..) {
            for ((phase, kind), unit) in
                [&mut job.map, &mut job.reduce].into_iter().zip(PhaseKind::ALL).zip(units)
            {
                let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = phase else { continue };
                let mean = self.took.get(&(index, kind)).map(|took| took.seconds / took.tasks);
                let least = longest.get(&(index, kind)).copied().unwrap_or(0.0);
                for (seconds, task) in seconds.iter_mut().zip(0..) {
                    *seconds = mean.unwrap_or((*seconds * unit).max(least));
                    if let Some(running) = self.running.get(&TaskId { job: index, phase: kind, task }) {
                        let so_far = running.elapsed(now);
                        *seconds = (*seconds - so_far).max(so_far * OVERDUE);
                    }
                }
            }
        }
        draft
    }

    /// The ratio of measured to estimated time of the finished tasks of a flow, and the number of these
    /// tasks. Only the phases in `known` count.
    pub(super) fn off(&self, flow: &str, known: &BTreeSet<PhaseName>) -> Option<(f64, u64)> {
        let (mut took, mut expected, mut tasks) = (0.0, 0.0, 0.0);
        for (job, index) in self.draft.flows.iter().flat_map(|flow| &flow.jobs).zip(0u32..) {
            if self.flows[index as usize] != flow {
                continue;
            }
            for (phase, kind) in [&job.map, &job.reduce].into_iter().zip(PhaseKind::ALL) {
                let Some(PhaseDraft { tasks: TasksDraft::Each(each), .. }) = phase else { continue };
                let Some(done) = self.took.get(&(index, kind)) else { continue };
                let name = PhaseName { flow: recurring(flow).to_owned(), job: job.id.clone(), kind };
                if known.contains(&name) {
                    took += done.seconds;
                    expected += done.tasks * each.iter().sum::<f64>() / each.len().max(1) as f64;
                    tasks += done.tasks;
                }
            }
        }
        (expected > 0.0).then(|| (took / expected, tasks as u64))
    }

    /// The flows whose task durations are unknown. Such a flow has an unfinished phase that is not in `known`
    /// (phases whose jobs ran before), in a job without finished tasks. O(tasks).
    pub(super) fn guesses(&self, known: &BTreeSet<PhaseName>) -> BTreeSet<&str> {
        let mut guesses = BTreeSet::new();
        for (job, index) in self.draft.flows.iter().flat_map(|flow| &flow.jobs).zip(0u32..) {
            let flow = self.flows[index as usize].as_str();
            if self.has_finished_tasks(index) || guesses.contains(flow) {
                continue;
            }
            for (phase, kind) in [&job.map, &job.reduce].into_iter().zip(PhaseKind::ALL) {
                let Some(phase) = phase else { continue };
                let first = TaskId { job: index, phase: kind, task: 0 };
                let last = TaskId { task: u32::MAX, ..first };
                let is_done = self.done.range(first..=last).count() >= count(phase);
                let name = PhaseName { flow: recurring(flow).to_owned(), job: job.id.clone(), kind };
                if !is_done && !known.contains(&name) {
                    guesses.insert(flow);
                }
            }
        }
        guesses
    }

    /// Whether a job has a finished task, in either phase.
    fn has_finished_tasks(&self, job: u32) -> bool {
        PhaseKind::ALL.iter().any(|&kind| self.took.contains_key(&(job, kind)))
    }

    /// The ratio of measured to estimated time of the finished tasks of a kind.
    fn unit(&self, kind: PhaseKind) -> f64 {
        let estimated = self.draft.flows.iter().flat_map(|flow| &flow.jobs).zip(0..);
        let (mut took, mut expected) = (0.0, 0.0);
        for (job, index) in estimated {
            let phase = match kind {
                PhaseKind::Map => &job.map,
                PhaseKind::Reduce => &job.reduce,
            };
            let (Some(PhaseDraft { tasks: TasksDraft::Each(each), .. }), Some(done)) =
                (phase, self.took.get(&(index, kind)))
            else {
                continue;
            };
            took += done.seconds;
            expected += done.tasks * each.iter().sum::<f64>() / each.len().max(1) as f64;
        }
        if expected > 0.0 { took / expected } else { 1.0 }
    }
}

/// Rounds the durations of a job to whole microseconds, as in all workloads. For short tasks the fraction is
/// too large to be rounded silently.
fn in_whole_micros(job: &mut JobDraft) {
    for phase in [&mut job.map, &mut job.reduce].into_iter().flatten() {
        if let TasksDraft::Each(seconds) = &mut phase.tasks {
            for seconds in seconds {
                *seconds = Span::from_seconds_nearest(*seconds).seconds();
            }
        }
    }
}

/// The workload without the commands of its tasks, because every simulation copies it.
fn durations(workload: &Draft) -> Draft {
    let mut draft = workload.clone();
    for job in draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs) {
        (job.run, job.recorded) = (None, Vec::new());
    }
    draft
}

/// The completion of each flow under a policy, at `now` or later, with running tasks on their slots. `None`
/// if it cannot be simulated.
pub(super) fn completions(
    draft: &Draft,
    at_work: &TasksByFlow,
    policy: &PolicySpec,
    setting: &Setting,
    now: Time,
) -> Option<BTreeMap<String, f64>> {
    let instance = Instance::new(draft).ok()?;
    let named = |flow: FlowId, at: f64| (instance.flow(flow).id.clone(), at.max(now.seconds()));
    // On a cluster, jobs start ApplicationMasters and containers first. The full simulator models them, and a
    // sample does not.
    if setting.profile.is_some() {
        let schedule = policy::simulated(policy, &instance, setting).ok()?.schedule;
        return Some(
            schedule.flows.iter().filter_map(|row| Some(named(row.flow, row.completion?))).collect(),
        );
    }
    let running = RunningTasks::new(&instance, at_work);
    let mut policy = policy.build(instance.cluster(), &instance.objective());
    let ends =
        scenario::ends(&instance, policy.as_mut(), setting.slowstart, &FlowQuotas::default(), &running)
            .ok()?;
    Some(ends.into_iter_enumerated().filter_map(|(flow, at)| Some(named(flow, at?.seconds()))).collect())
}
