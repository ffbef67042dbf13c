//! Submissions whose flows are scheduled: events of their runs, and their ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use slackline::resident::{FlowOrder, UserQuota};
use slackline::run::{RunEvent, TaskId};
use slackline_model::PhaseKind;
use slackline_model::WallTime;
use slackline_task::base::clock::ClockReading;

use crate::api::{self, AlertKind, FlowStatus, State};
use crate::state::forecasts::ForecastResult;
use crate::state::progress::{FlowProgress, RunningSubmission};
use crate::state::record::{CancelReason, Record, SubmissionSpec};
use crate::state::submissions::Entry;
use crate::state::{Effect, ServiceState, Transition};

/// Results of effects and events of the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum StateEvent {
    /// The run of a submission is open.
    Opened {
        number: u64,
        run: RunningSubmission,
        /// Flows that cannot be run, and the reason for each.
        unrunnable: Vec<(String, String)>,
    },
    NotOpened {
        number: u64,
        /// The value found, and the value expected.
        problem: String,
        /// Whether a retry is useless.
        is_final: bool,
    },
    /// An event of a run.
    Run {
        number: u64,
        event: RunEvent,
    },
    /// Tasks of a flow take much longer or shorter than estimated.
    EstimatesOff {
        number: u64,
        flow: String,
        /// The difference, as text.
        message: String,
    },
    /// The engine has stopped a run: all its flows have ended, or it is retried later.
    Returned {
        number: u64,
        /// The reason why the run cannot continue. `None`: it has ended.
        stopped: Option<String>,
    },
    /// The first deadline of a queued submission, from its file.
    Read {
        number: u64,
        /// The first deadline of its flows.
        due: Option<WallTime>,
    },
    /// The result of a check for the files that a submission waits for.
    Files {
        number: u64,
        /// A digest of the files, or the first missing one.
        found: Result<u64, String>,
    },
    Predicted(ForecastResult),
    Machines(Vec<api::Machine>),
    /// The policy's limits that keep flows from free slots.
    Limits(slackline::resident::Limits),
    /// A message about the machines.
    Machine(String),
}

impl ServiceState {
    /// Applies the result of an effect or an event of the engine.
    pub fn apply_event(&mut self, now: ClockReading, event: StateEvent, out: &mut Transition) {
        self.turn(now, out, |state| {
            match event {
                StateEvent::Opened { number, run, unrunnable } => state.opened(number, run, unrunnable),
                StateEvent::NotOpened { number, problem, is_final } => {
                    state.not_opened(number, problem, is_final);
                }
                StateEvent::Run { number, event } => state.run_event(number, event),
                StateEvent::EstimatesOff { number, flow, message } => {
                    state.alert(number, &flow, AlertKind::EstimatesOff, message);
                }
                StateEvent::Returned { number, stopped } => state.returned(number, stopped),
                StateEvent::Files { number, found } => state.looked(number, found),
                StateEvent::Read { number, due } => state.is_due(number, due),
                StateEvent::Predicted(forecast) => state.predicted(forecast),
                StateEvent::Machines(machines) => state.machines.all = machines,
                StateEvent::Limits(limits) => state.machines.limits = limits,
                StateEvent::Machine(message) => state.event("machine", None, None, message),
            }
            state.next_prediction();
            state.begin_next();
        });
    }

    /// Stores the result of a look at files. The first missing file is reported once. A submission whose time limit for
    /// files has passed fails.
    fn looked(&mut self, number: u64, found: Result<u64, String>) {
        let (now, elapsed) = (self.now(), self.clock.elapsed());
        let Some(entry) = self.submissions.open.get_mut(&number).filter(|entry| entry.is_queued()) else {
            return;
        };
        let is_news = entry.files.missing().is_none() && found.is_err();
        entry.files.look(&entry.wanted, found, elapsed);
        if let Some(problem) = entry.files.given_up(&entry.wanted, now) {
            self.alert(number, "", AlertKind::Failed, problem.clone());
            return self.end(number, State::Failed, Some(problem));
        }
        self.sort_in(number);
        let why = self.submissions.open.get(&number).filter(|_| is_news).and_then(Entry::own_why).cloned();
        if let Some(why) = why {
            self.event("waits", Some(number), None, why);
        }
    }

    /// Stores the first deadline of a queued submission.
    fn is_due(&mut self, number: u64, due: Option<WallTime>) {
        if self.submissions.open.get(&number).is_some_and(Entry::is_queued) {
            self.requeue(number, |entry| Arc::make_mut(&mut entry.wanted).due = due);
        }
    }

    fn opened(&mut self, number: u64, mut run: RunningSubmission, unrunnable: Vec<(String, String)>) {
        let now = self.now();
        self.submissions.queue.opening.remove(&number);
        let next = self.comes_again(number);
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        run.could_start = now;
        let (mut standings, mut deadlines) = (BTreeMap::new(), BTreeMap::new());
        for flow in &mut run.flows {
            let changed = entry.changed(&flow.flow);
            flow.deadline = changed.deadline.or(flow.deadline);
            flow.weight = changed.weight.unwrap_or(flow.weight);
            if let Some((_, problem)) = unrunnable.iter().find(|(name, _)| *name == flow.flow) {
                (flow.state, flow.cause) = (FlowStatus::Failed, Some(problem.clone()));
            } else if flow.is_done() {
                (flow.state, flow.completion) = (FlowStatus::Finished, Some(now));
            } else if entry.is_cancelled(&flow.flow) {
                flow.state = FlowStatus::Cancelled;
            } else if entry.is_held(&flow.flow) {
                flow.state = FlowStatus::Held;
            }
            standings.insert(flow.flow.clone(), entry.overrides(flow, run.started, next));
            deadlines.extend(flow.deadline.map(|deadline| (flow.flow.clone(), deadline)));
        }
        let open = || run.flows.iter().filter(|flow| !flow.state.is_over());
        let keys = open().filter_map(|flow| Some((flow.deadline?, number, flow.flow.clone())));
        self.deadlines.extend(keys);
        // A deadline that was missed before the start, which is the first deadline of the flows, is not
        // reported again.
        let first = run.flows.iter().filter_map(|flow| flow.deadline).min();
        if entry.alerted.contains(&(String::new(), AlertKind::Late)) {
            let missed = open().filter(|flow| flow.deadline.is_some() && flow.deadline == first);
            entry.alerted.extend(missed.map(|flow| (flow.flow.clone(), AlertKind::Late)));
        }
        let has_open = open().next().is_some();
        run.is_held_so_far = run.is_held();
        let SubmissionSpec { name, user, .. } = &*entry.wanted;
        let (name, user) = (name.clone(), user.clone());
        let message = format!("{name} has started: the policy assigns slots to its tasks");
        let cancelled = run.flows.iter().filter(|flow| flow.state == FlowStatus::Cancelled);
        let cancelled = cancelled.map(|flow| Effect::cancel(number, &flow.flow)).collect::<Vec<_>>();
        entry.run(run);
        let quota = self.facts.limits.quota.map(|quota| UserQuota { user, quota });
        self.out.effects.push(Effect::Admit { number, name, quota, standings, deadlines });
        self.out.effects.extend(cancelled);
        self.event("opened", Some(number), None, message);
        for (flow, problem) in unrunnable {
            let message = format!("{flow} cannot be run: {problem}");
            self.alert(number, &flow, AlertKind::Failed, message);
        }
        if has_open {
            self.forecasts.waiting.push_back(number);
        }
    }

    fn not_opened(&mut self, number: u64, problem: String, is_final: bool) {
        if is_final {
            self.alert(number, "", AlertKind::Failed, format!("it cannot be run: {problem}"));
            return self.end(number, State::Failed, Some(problem));
        }
        self.retry(number, &problem);
    }

    /// Applies an event of a run to the progress of its flows.
    fn run_event(&mut self, number: u64, event: RunEvent) {
        let less = |phase: &mut api::Phase| phase.running = phase.running.saturating_sub(1);
        match event {
            RunEvent::AttemptStarted(attempt) => self.count(number, attempt.id, |phase| phase.running += 1),
            RunEvent::AttemptStopped { task, .. } => self.count(number, task, less),
            RunEvent::TaskFinished { task, .. } => {
                self.count(number, task, |phase| {
                    less(phase);
                    phase.done += 1;
                });
                self.flow_done(number, task.job);
            }
            RunEvent::AttemptFailed { task, message, is_final, .. } => {
                self.count(number, task, less);
                let Some((flow, index)) = self.job_of(number, task.job) else { return };
                let job = &mut flow.jobs[index];
                job.failed_attempts += 1;
                let message = format!("job {}: {} {}: {message}", job.job, task.phase.name(), task.task);
                if is_final && !flow.state.is_over() && flow.cause.is_none() {
                    flow.cause = Some(message);
                }
            }
            RunEvent::FlowFailed { flow } => {
                let cause = self.flow(number, &flow).and_then(|progress| progress.cause.clone());
                self.fail_flow(number, &flow, cause.unwrap_or_default());
            }
            RunEvent::OutputLost { tasks, .. } => {
                let Some(&first) = tasks.first() else { return };
                let lost = tasks.len() as u64;
                self.count(number, first, |phase| phase.done -= lost.min(phase.done));
            }
            RunEvent::FlowBlocked { flow, missing_job } => {
                let missing = self.job_of(number, missing_job);
                let (other, job) = missing
                    .map(|(flow, index)| (flow.flow.clone(), flow.jobs[index].job.clone()))
                    .unwrap_or_default();
                let message =
                    format!("it reads the output of job {job} of flow {other}, which will never exist");
                self.fail_flow(number, &flow, message);
            }
            // Other events change neither tasks nor flows.
            _ => {}
        }
    }

    fn fail_flow(&mut self, number: u64, flow: &str, cause: String) {
        if let Some(progress) = self.flow(number, flow) {
            (progress.state, progress.cause) = (FlowStatus::Failed, Some(cause.clone()));
        }
        self.leave_deadline(number, flow);
        self.alert(number, flow, AlertKind::Failed, cause);
    }

    /// The flow of a job, and the index of the job in it.
    fn job_of(&mut self, number: u64, job: u32) -> Option<(&mut FlowProgress, usize)> {
        self.submissions.running_mut(number)?.job(job)
    }

    pub(super) fn flow(&mut self, number: u64, flow: &str) -> Option<&mut FlowProgress> {
        self.submissions.running_mut(number)?.flow(flow)
    }

    /// Changes the task counts of a phase.
    fn count(&mut self, number: u64, task: TaskId, how: impl FnOnce(&mut api::Phase)) {
        let Some((flow, index)) = self.job_of(number, task.job) else { return };
        let job = &mut flow.jobs[index];
        let phase = if task.phase == PhaseKind::Map { &mut job.maps } else { &mut job.reduces };
        let before = phase.running;
        how(phase);
        let more = phase.running.cast_signed() - before.cast_signed();
        flow.has_begun |= more > 0;
        if flow.state == FlowStatus::Waiting && flow.has_begun {
            flow.state = FlowStatus::Running;
        }
        self.work(more);
    }

    /// Finishes the flow of a job if all its tasks have finished.
    fn flow_done(&mut self, number: u64, job: u32) {
        let now = self.now();
        let Some((flow, _)) = self.job_of(number, job) else { return };
        if !flow.is_done() || flow.state.is_over() {
            return;
        }
        (flow.state, flow.completion) = (FlowStatus::Finished, Some(now));
        let (name, deadline, release) = (flow.flow.clone(), flow.deadline, flow.release);
        self.leave_deadline(number, &name);
        let Some(entry) = self.submissions.open.get(&number) else { return };
        if let Some((_, first)) = entry.first.get(&name) {
            self.forecasts.scores.add(first, entry.submitted.max(release), deadline, now);
        }
        let message = match deadline {
            Some(deadline) if now > deadline => {
                format!("{name} finished {:.0} s after its deadline", now.seconds_since(deadline))
            }
            Some(_) => format!("{name} finished before its deadline"),
            None => format!("{name} finished"),
        };
        self.event("done", Some(number), Some(&name), message);
    }

    fn returned(&mut self, number: u64, stopped: Option<String>) {
        let running = self.submissions.running_mut(number).map_or(0, |run| run.running());
        self.work(-running.cast_signed());
        if let Some(problem) = stopped {
            return self.retry(number, &problem);
        }
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        // The reason of the whole submission comes first.
        let reason = entry.cancelled.values().next().cloned();
        let Some(run) = entry.running_mut() else { return };
        for flow in run.flows.iter_mut().filter(|flow| !flow.state.is_over()) {
            (flow.state, flow.cause) =
                (FlowStatus::Failed, Some("its run ended before it finished".to_owned()));
        }
        let is = |state| run.flows.iter().any(|flow| flow.state == state);
        let why = run.flows.iter().find_map(|flow| {
            let cause = flow.cause.as_ref().filter(|_| flow.state == FlowStatus::Failed)?;
            Some(format!("{}: {cause}", flow.flow))
        });
        let (state, why) = match (is(FlowStatus::Failed), is(FlowStatus::Cancelled)) {
            (true, _) => (State::Failed, why),
            (false, true) => (
                reason.as_ref().map_or(State::Cancelled, CancelReason::state),
                reason.as_ref().and_then(CancelReason::text),
            ),
            _ => (State::Finished, None),
        };
        self.end(number, state, why);
    }

    /// Sends the overrides of all unfinished flows of a submission to the engine.
    pub(super) fn stand_all(&mut self, number: u64) {
        let next = self.comes_again(number);
        let Some(entry) = self.submissions.open.get(&number) else { return };
        let Some(run) = entry.running() else { return };
        let mut states = Vec::new();
        for (k, flow) in run.flows.iter().enumerate().filter(|(_, flow)| !flow.state.is_over()) {
            let state = match (entry.is_held(&flow.flow), flow.has_begun) {
                (true, _) => FlowStatus::Held,
                (false, true) => FlowStatus::Running,
                (false, false) => FlowStatus::Waiting,
            };
            states.push((k, state));
            let change = FlowOrder::Override(entry.overrides(flow, run.started, next));
            self.out.effects.push(Effect::Change { number, flow: flow.flow.clone(), change });
        }
        let Some(run) = self.submissions.running_mut(number) else { return };
        for (k, state) in states {
            run.flows[k].state = state;
        }
    }

    /// Cancels all unfinished flows of a submission.
    pub(super) fn cancel_all(&mut self, number: u64, reason: CancelReason) {
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        self.out.records.push(Record::Cancelled { number, flow: None, reason: reason.clone() });
        let (state, text) = (reason.state(), reason.text());
        entry.cancelled.insert(None, reason);
        if entry.is_queued() {
            return self.end(number, state, text);
        }
        // A submission that is being opened is cancelled when it is open.
        let flows: Vec<String> = entry.flows().iter().map(|flow| flow.flow.clone()).collect();
        for flow in flows {
            self.cancel_flow(number, &flow);
        }
    }

    /// Cancels a flow that is scheduled.
    pub(super) fn cancel_flow(&mut self, number: u64, flow: &str) {
        let Some(progress) = self.flow(number, flow).filter(|progress| !progress.state.is_over()) else {
            return;
        };
        progress.state = FlowStatus::Cancelled;
        self.leave_deadline(number, flow);
        self.out.effects.push(Effect::cancel(number, flow));
    }
}
