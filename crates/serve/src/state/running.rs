//! Submissions whose flows are scheduled: their progress and their ends.

mod event;

use std::collections::BTreeMap;

use slackline::resident::{FlowOrder, FlowOverrides};
use slackline::run::{RunEvent, TaskId};
use slackline_model::PhaseKind;
use slackline_task::base::clock::ClockReading;

use crate::api::{self, AlertKind, FlowStatus, IfLate, Prediction, State};
use crate::state::forecasts::FlowEstimate;
use crate::state::record::{CancelReason, FlowChange, Record, StoredPrediction, SubmissionEnd};
use crate::state::recurring::LATE;
use crate::state::{Effect, Entry, RETRY_FIRST, RETRY_LONGEST, ServiceEvent, ServiceState, Transition};
use crate::{Moment, SECOND, timestamp};

pub use event::{FlowFacts, JobFacts, Opened, StateEvent};

/// A submission whose flows are scheduled.
#[derive(Debug)]
pub(super) struct RunningSubmission {
    /// The start of its run.
    pub(super) started: Moment,
    /// The time from which its flows could start: the run was open and not held.
    pub(super) could_start: Moment,
    /// Whether the whole submission has been held since its run was opened.
    pub(super) is_held_so_far: bool,
    pub(super) flows: Vec<FlowProgress>,
    /// By job number: the index of its flow, and its index in that flow.
    jobs: BTreeMap<u32, (usize, usize)>,
}

#[derive(Debug)]
pub(super) struct FlowProgress {
    pub(super) flow: String,
    pub(super) state: FlowStatus,
    pub(super) release: Moment,
    pub(super) deadline: Option<Moment>,
    pub(super) weight: f64,
    pub(super) jobs: Vec<api::Job>,
    /// The outputs of other flows that this flow reads, by flow and job.
    pub(super) reads: Vec<(String, String)>,
    pub(super) failed_attempts: u64,
    pub(super) completion: Option<Moment>,
    pub(super) expected: Option<FlowEstimate>,
    pub(super) cause: Option<String>,
    /// Whether a task of the flow has started.
    has_begun: bool,
    /// Whether the last forecast estimated that the flow misses its deadline.
    pub(super) is_likely_late: bool,
}

impl FlowProgress {
    /// The number of unfinished tasks and the estimated completion, as the rest of a sentence.
    fn left(&self, now: Moment) -> String {
        let counts = self.counts();
        let tasks = match counts.tasks.saturating_sub(counts.done) {
            1 => "1 task is not done".to_owned(),
            open => format!("{open} tasks are not done"),
        };
        let then = self.expected.map(|expected| expected.completion).filter(|&completion| completion > now);
        let then = then
            .map_or_else(String::new, |then| format!("; all is expected to be done at {}", timestamp(then)));
        format!(", {tasks}{then}")
    }

    fn of(facts: FlowFacts) -> Self {
        let FlowFacts { flow, release, deadline, weight, jobs, reads } = facts;
        let failed_attempts = jobs.iter().map(|job| job.job.failed_attempts).sum();
        Self {
            flow,
            state: FlowStatus::Waiting,
            release,
            deadline,
            weight,
            jobs: jobs.into_iter().map(|job| job.job).collect(),
            reads,
            failed_attempts,
            completion: None,
            expected: None,
            cause: None,
            has_begun: false,
            is_likely_late: false,
        }
    }

    fn phases(&self) -> impl Iterator<Item = api::Phase> + '_ {
        self.jobs.iter().flat_map(|job| [job.maps, job.reduces])
    }

    /// The numbers of all, finished and running tasks.
    pub(super) fn counts(&self) -> api::Phase {
        self.phases().fold(api::Phase::default(), |all, phase| api::Phase {
            tasks: all.tasks + phase.tasks,
            done: all.done + phase.done,
            running: all.running + phase.running,
        })
    }

    fn is_done(&self) -> bool {
        self.phases().all(|phase| phase.done >= phase.tasks)
    }

    /// Whether the flow was late or will be late by its estimate. `None` if unknown.
    pub(super) fn is_late(&self, now: Moment) -> Option<bool> {
        let deadline = self.deadline?;
        match (self.completion, self.expected) {
            (Some(at), _) => Some(at > deadline),
            _ if now > deadline && !self.state.is_over() => Some(true),
            _ if self.state == FlowStatus::Held => None,
            (None, Some(expected)) if !self.state.is_over() => Some(expected.completion > deadline),
            _ => None,
        }
    }
}

impl RunningSubmission {
    /// Ends the hold of the whole submission.
    pub(super) fn end_hold(&mut self, now: Moment) {
        if std::mem::take(&mut self.is_held_so_far) {
            self.could_start = now;
        }
    }

    /// Whether all unfinished flows are held and none of them has started.
    fn is_held(&self) -> bool {
        let mut open = self.flows.iter().filter(|here| !here.state.is_over());
        open.all(|here| here.state == FlowStatus::Held && !here.has_begun)
    }

    /// The number of waiting tasks.
    pub(super) fn waiting(&self) -> u64 {
        let open = self.flows.iter().filter(|flow| !flow.state.is_over());
        open.map(FlowProgress::counts)
            .map(|phase| phase.tasks - phase.done.min(phase.tasks) - phase.running)
            .sum()
    }

    pub(super) fn running(&self) -> u64 {
        self.flows.iter().map(|flow| flow.counts().running).sum()
    }

    pub(super) fn flow(&mut self, name: &str) -> Option<&mut FlowProgress> {
        self.flows.iter_mut().find(|flow| flow.flow == name)
    }
}

impl Entry {
    pub(super) fn priority(&self) -> u32 {
        let changed = self.changes.get(&None).and_then(|changed| changed.priority);
        changed.unwrap_or(self.wanted.submit.priority)
    }

    /// The first deadline of a submission that has not started.
    pub(super) fn due(&self) -> Option<Moment> {
        self.changes.get(&None).and_then(|changed| changed.deadline).or(self.wanted.due)
    }

    pub(super) fn changed(&self, flow: &str) -> FlowChange {
        FlowChange::of(&self.changes, flow)
    }

    pub(super) fn is_cancelled(&self, flow: &str) -> bool {
        self.cancelled.contains_key(&None) || self.cancelled.contains_key(&Some(flow.to_owned()))
    }

    /// Whether no task of a flow may start.
    pub(super) fn is_held(&self, flow: &str) -> bool {
        self.is_held_by_hand(flow) || self.is_on_trial()
    }

    /// Whether a user holds the flow.
    pub(super) fn is_held_by_hand(&self, flow: &str) -> bool {
        self.held || self.held_flows.contains(flow)
    }

    /// Whether the submission waits for the decision of `IfLate::Reject`.
    pub(super) fn is_on_trial(&self) -> bool {
        self.wanted.submit.if_late == IfLate::Reject && !self.is_let_in
    }

    /// The first predictions of its flows, with the latest impact on others.
    pub(super) fn said_first(&self) -> Option<Prediction> {
        let flow = |(flow, said): (&String, &StoredPrediction)| api::FlowPrediction {
            flow: flow.clone(),
            completion: timestamp(said.completion),
            between: said.between.map(|between| between.map(timestamp)),
            guess: said.is_guess(),
            deadline: said.deadline.map(timestamp),
            holds: said.deadline.map(|deadline| said.completion <= deadline),
            chance: said.chance,
        };
        let made = self.said.values().filter_map(|said| said.made).min().unwrap_or(self.submitted);
        let (makes_late, remedies) = self
            .prediction
            .as_ref()
            .map(|last| (last.makes_late.clone(), last.remedies.clone()))
            .unwrap_or_default();
        (!self.said.is_empty()).then(|| Prediction {
            made: timestamp(made),
            flows: self.said.iter().map(flow).collect(),
            makes_late,
            remedies,
        })
    }

    /// The overrides of a flow for the engine. `next` is the next time of the submission's schedule; the flow
    /// recurs later than that by its release offset.
    pub(super) fn overrides(
        &self,
        here: &FlowProgress,
        started: Moment,
        next: Option<Moment>,
    ) -> FlowOverrides {
        let flow = &here.flow;
        let FlowChange { deadline, weight, priority } = self.changed(flow);
        let held = self.is_held(flow) || self.is_cancelled(flow);
        let next = next.map(|at| at + here.release.saturating_sub(started));
        let [deadline, next] =
            [deadline, next].map(|at| at.map(|at| at.saturating_sub(started) as f64 / SECOND as f64));
        FlowOverrides { held, deadline, weight, priority, next }
    }
}

impl ServiceState {
    /// Applies the result of an effect or an event of the engine.
    pub fn apply_event(&mut self, now: ClockReading, event: StateEvent, out: &mut Transition) {
        let now = self.read_clock(now, out);
        match event {
            StateEvent::Opened(opened) => self.opened(now, opened, out),
            StateEvent::NotOpened { number, problem, is_final } => {
                self.not_opened(now, number, problem, is_final, out);
            }
            StateEvent::Run { number, event } => self.run_event(now, number, event, out),
            StateEvent::EstimatesOff { number, flow, message } => {
                self.alert(out, now, number, &flow, AlertKind::EstimatesOff, message);
            }
            StateEvent::Returned { number, stopped } => self.returned(now, number, stopped, out),
            StateEvent::Files { number, missing } => self.looked(now, number, missing, out),
            StateEvent::Read { number, due } => self.is_due(number, due),
            StateEvent::Predicted(outlook) => self.predicted(now, outlook, out),
            StateEvent::Machines(machines) => self.machines = machines,
            StateEvent::Limits(limits) => self.policy_limits = limits,
            StateEvent::Machine(message) => self.tell(now, "machine", message, out),
        }
        self.next_prediction(out);
        self.begin_next(out);
    }

    /// Stores the result of a file check. The first missing file is reported once.
    fn looked(&mut self, now: Moment, number: u64, missing: Option<String>, out: &mut Transition) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let is_news = entry.missing.is_none() && missing.is_some();
        entry.has_files |= missing.is_none();
        entry.missing = missing;
        self.sort_in(number);
        let why = self.entries.get(&number).filter(|_| is_news).and_then(|entry| entry.why.clone());
        if let Some(why) = why {
            self.event(
                out,
                now,
                ServiceEvent { kind: "waits", number: Some(number), flow: None, message: why },
            );
        }
    }

    /// Stores the first deadline of a queued submission.
    fn is_due(&mut self, number: u64, due: Option<Moment>) {
        let waits = self.entries.get(&number).is_some_and(|entry| entry.state == State::Queued);
        if !waits {
            return;
        }
        self.dequeue(number);
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.wanted.due = due;
        }
        self.enqueue(number);
    }

    fn opened(&mut self, now: Moment, opened: Opened, out: &mut Transition) {
        let Opened { number, started, flows, unrunnable } = opened;
        self.queue.opened(number);
        let next = self.comes_again(number);
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let jobs = flows
            .iter()
            .enumerate()
            .flat_map(|(f, flow)| flow.jobs.iter().enumerate().map(move |(j, job)| (job.index, (f, j))));
        let jobs = jobs.collect();
        let flows = flows.into_iter().map(FlowProgress::of).collect();
        let mut live = RunningSubmission { started, could_start: now, is_held_so_far: true, flows, jobs };
        let mut standings = BTreeMap::new();
        for flow in &mut live.flows {
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
            standings.insert(flow.flow.clone(), entry.overrides(flow, started, next));
        }
        entry.state = State::Running;
        let (cancelled, open): (Vec<&FlowProgress>, Vec<&FlowProgress>) = live
            .flows
            .iter()
            .filter(|flow| !flow.state.is_over() || flow.state == FlowStatus::Cancelled)
            .partition(|flow| flow.state == FlowStatus::Cancelled);
        let deadlines = open.iter().filter_map(|flow| Some((flow.deadline?, number, flow.flow.clone())));
        self.deadlines.extend(deadlines);
        let has_open = !open.is_empty();
        // A deadline that was missed before the start, which is the first deadline of the flows, is not
        // reported again.
        let first = live.flows.iter().filter_map(|flow| flow.deadline).min();
        let missed = open.iter().filter(|flow| flow.deadline.is_some() && flow.deadline == first);
        if entry.alerted.contains(&(String::new(), AlertKind::Late)) {
            entry.alerted.extend(missed.map(|flow| (flow.flow.clone(), AlertKind::Late)));
        }
        live.is_held_so_far = live.is_held();
        out.effects.push(Effect::Admit { number, standings });
        out.effects.extend(cancelled.iter().map(|flow| Effect::Change {
            number,
            flow: flow.flow.clone(),
            change: FlowOrder::Cancel,
        }));
        entry.live = Some(live);
        let message = format!("{}: its flows are scheduled", entry.wanted.name);
        self.event(out, now, ServiceEvent { kind: "opened", number: Some(number), flow: None, message });
        for (flow, problem) in unrunnable {
            let message = format!("{flow} cannot be run: {problem}");
            self.alert(out, now, number, &flow, AlertKind::Failed, message);
        }
        if has_open {
            self.wanting.push_back(number);
        }
    }

    fn not_opened(
        &mut self,
        now: Moment,
        number: u64,
        problem: String,
        is_final: bool,
        out: &mut Transition,
    ) {
        if is_final {
            let message = format!("it cannot be run: {problem}");
            self.alert(out, now, number, "", AlertKind::Failed, message);
            return self.end(now, number, State::Failed, Some(problem), out);
        }
        self.try_later(now, number, &problem, out);
    }

    /// Queues a submission for a retry, after its opening or its run failed.
    fn try_later(&mut self, now: Moment, number: u64, problem: &str, out: &mut Transition) {
        if let Some(reason) = self.entries.get(&number).and_then(|entry| entry.cancelled.get(&None)).cloned()
        {
            return self.end(now, number, reason.state(), reason.text(), out);
        }
        self.end_begun(number);
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let wait = RETRY_FIRST.saturating_mul(1 << entry.tries.min(10)).min(RETRY_LONGEST);
        entry.tries += 1;
        entry.not_before = Some(self.clock.elapsed() + wait);
        entry.live = None;
        let message = format!("tried again in {} s: {problem}", wait / SECOND);
        entry.why = Some(message.clone());
        self.deadlines.retain(|(_, of, _)| *of != number);
        self.enqueue(number);
        self.event(out, now, ServiceEvent { kind: "waits", number: Some(number), flow: None, message });
    }

    /// Applies an event of a run to the progress of its flows.
    fn run_event(&mut self, now: Moment, number: u64, event: RunEvent, out: &mut Transition) {
        match event {
            RunEvent::AttemptStarted(attempt) => {
                self.count(number, attempt.id, |phase| phase.running += 1);
            }
            RunEvent::AttemptStopped { task, .. } => {
                self.count(number, task, |phase| phase.running = phase.running.saturating_sub(1));
            }
            RunEvent::TaskFinished { task, .. } => {
                self.count(number, task, |phase| {
                    phase.running = phase.running.saturating_sub(1);
                    phase.done += 1;
                });
                self.flow_done(now, number, task.job, out);
            }
            RunEvent::AttemptFailed { task, message, is_final, .. } => {
                self.count(number, task, |phase| phase.running = phase.running.saturating_sub(1));
                let Some((flow, index)) = self.job_of(number, task.job) else { return };
                flow.failed_attempts += 1;
                let job = &mut flow.jobs[index];
                job.failed_attempts += 1;
                let message = format!("job {}: {} {}: {message}", job.job, task.phase.name(), task.task);
                if is_final && !flow.state.is_over() {
                    let flow = flow.flow.clone();
                    self.fail_flow(now, number, &flow, message, out);
                }
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
                let message = format!(
                    "it reads the output of job {job} of flow {other}, which is never going to be there"
                );
                self.fail_flow(now, number, &flow, message, out);
            }
            // Other events change neither tasks nor flows.
            _ => {}
        }
    }

    fn fail_flow(&mut self, now: Moment, number: u64, flow: &str, cause: String, out: &mut Transition) {
        if let Some(progress) = self.here(number, flow) {
            (progress.state, progress.cause) = (FlowStatus::Failed, Some(cause.clone()));
        }
        self.flow_over(number, flow);
        self.alert(out, now, number, flow, AlertKind::Failed, cause);
    }

    /// The flow of a job, and the index of the job in it.
    fn job_of(&mut self, number: u64, job: u32) -> Option<(&mut FlowProgress, usize)> {
        let live = self.entries.get_mut(&number)?.live.as_mut()?;
        let &(flow, paths) = live.jobs.get(&job)?;
        Some((&mut live.flows[flow], paths))
    }

    pub(super) fn here(&mut self, number: u64, flow: &str) -> Option<&mut FlowProgress> {
        self.entries.get_mut(&number)?.live.as_mut()?.flow(flow)
    }

    /// Changes the task counts of a phase.
    fn count(&mut self, number: u64, task: TaskId, how: impl FnOnce(&mut api::Phase)) {
        let Some(live) = self.entries.get_mut(&number).and_then(|entry| entry.live.as_mut()) else { return };
        let Some(&(flow, paths)) = live.jobs.get(&task.job) else { return };
        let flow = &mut live.flows[flow];
        let job = &mut flow.jobs[paths];
        let phase = if task.phase == PhaseKind::Map { &mut job.maps } else { &mut job.reduces };
        let before = phase.running;
        how(phase);
        let more = phase.running.cast_signed() - before.cast_signed();
        if more > 0 {
            flow.has_begun = true;
        }
        if flow.state == FlowStatus::Waiting && flow.has_begun {
            flow.state = FlowStatus::Running;
        }
        self.work(more);
        self.hold_slots(number, more);
    }

    /// Finishes the flow of a job if all its tasks have finished.
    fn flow_done(&mut self, now: Moment, number: u64, job: u32, out: &mut Transition) {
        let Some((flow, _)) = self.job_of(number, job) else { return };
        if !flow.is_done() || flow.state.is_over() {
            return;
        }
        (flow.state, flow.completion) = (FlowStatus::Finished, Some(now));
        let (name, deadline, release) = (flow.flow.clone(), flow.deadline, flow.release);
        self.flow_over(number, &name);
        let Some(entry) = self.entries.get(&number) else { return };
        if let Some(&said) = entry.said.get(&name) {
            self.scores.add(said, entry.submitted.max(release), deadline, now);
        }
        let message = match deadline {
            Some(deadline) if now > deadline => {
                format!("{name} is done, {:.0} s after its deadline", (now - deadline) as f64 / 1e6)
            }
            Some(_) => format!("{name} is done by its deadline"),
            None => format!("{name} is done"),
        };
        self.event(out, now, ServiceEvent { kind: "done", number: Some(number), flow: Some(&name), message });
    }

    /// Removes the deadline of a flow that has ended.
    fn flow_over(&mut self, number: u64, flow: &str) {
        self.deadlines.retain(|(_, of, name)| (*of, name.as_str()) != (number, flow));
    }

    fn returned(&mut self, now: Moment, number: u64, stopped: Option<String>, out: &mut Transition) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if let Some(live) = &entry.live {
            let running = live.running();
            self.work(-running.cast_signed());
            self.hold_slots(number, -running.cast_signed());
        }
        if let Some(problem) = stopped {
            return self.try_later(now, number, &problem, out);
        }
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Some(live) = &mut entry.live else { return };
        for flow in live.flows.iter_mut().filter(|flow| !flow.state.is_over()) {
            (flow.state, flow.cause) = (FlowStatus::Failed, Some("it did not come to its end".to_owned()));
        }
        let is = |state| live.flows.iter().any(|flow| flow.state == state);
        let why = live.flows.iter().find_map(|flow| {
            let cause = flow.cause.as_ref().filter(|_| flow.state == FlowStatus::Failed)?;
            Some(format!("{}: {cause}", flow.flow))
        });
        // The reason of the whole submission comes first.
        let reason = entry.cancelled.values().next();
        let (state, why) = match (is(FlowStatus::Failed), is(FlowStatus::Cancelled)) {
            (true, _) => (State::Failed, why),
            (false, true) => {
                (reason.map_or(State::Cancelled, CancelReason::state), reason.and_then(CancelReason::text))
            }
            _ => (State::Finished, None),
        };
        self.end(now, number, state, why, out);
    }

    /// Ends a submission.
    pub(super) fn end(
        &mut self,
        now: Moment,
        number: u64,
        state: State,
        why: Option<String>,
        out: &mut Transition,
    ) {
        let kind = state.name();
        self.dequeue(number);
        self.end_begun(number);
        self.leave_series(number);
        self.deadlines.retain(|(_, of, _)| *of != number);
        let Some(mut entry) = self.entries.remove(&number) else { return };
        (entry.state, entry.why) = (state, why.clone());
        let mut ended = Self::shown(number, &entry, now, true);
        (ended.ended, ended.prediction) = (Some(timestamp(now)), entry.said_first());
        out.records.push(Record::Ended(Box::new(SubmissionEnd {
            number,
            at: now,
            state,
            why: why.clone(),
            flows: ended.flows.clone(),
            prediction: ended.prediction.clone(),
            began: ended.began,
            age: Some(self.clock.age()).filter(|age| age.abs_diff(now) > LATE),
        })));
        let name = entry.wanted.name;
        self.ended.push(ended, self.clock.age());
        self.next_purge = self.next_purge.min(self.clock.elapsed() + super::PURGE_EVERY);
        let message = why.map_or_else(|| format!("{name}: {kind}"), |why| format!("{name}: {kind}: {why}"));
        self.event(out, now, ServiceEvent { kind: "ended", number: Some(number), flow: None, message });
    }

    /// Reports the deadlines that have passed.
    pub(super) fn miss_deadlines(&mut self, now: Moment, out: &mut Transition) {
        while self.deadlines.first().is_some_and(|(at, ..)| *at < now) {
            let Some((at, number, flow)) = self.deadlines.pop_first() else { return };
            let left = self.here(number, &flow).map_or_else(String::new, |here| here.left(now));
            let message = format!("{flow}: its deadline {} has passed{left}", timestamp(at));
            self.alert(out, now, number, &flow, AlertKind::Late, message);
        }
        while let Some((at, number)) = self.queue.overdue(now) {
            let Some(entry) = self.entries.get(&number) else { continue };
            // A submission that had started before was reported then.
            if entry.alerted.iter().any(|(_, kind)| *kind == AlertKind::Late) {
                continue;
            }
            let name = &entry.wanted.name;
            let why = self.why(entry).unwrap_or_else(|| "it waits in the queue".to_owned());
            let message = format!(
                "{name}: its first deadline {} has passed, and it has not begun: {why}",
                timestamp(at)
            );
            self.alert(out, now, number, "", AlertKind::Late, message);
        }
    }

    /// Sends the overrides of all unfinished flows of a submission to the engine.
    pub(super) fn stand_all(&mut self, number: u64, out: &mut Transition) {
        let next = self.comes_again(number);
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Some(mut live) = entry.live.take() else { return };
        let started = live.started;
        for here in live.flows.iter_mut().filter(|here| !here.state.is_over()) {
            here.state = match (entry.is_held(&here.flow), here.has_begun) {
                (true, _) => FlowStatus::Held,
                (false, true) => FlowStatus::Running,
                (false, false) => FlowStatus::Waiting,
            };
            let overrides = entry.overrides(here, started, next);
            out.effects.push(Effect::Change {
                number,
                flow: here.flow.clone(),
                change: FlowOrder::Override(overrides),
            });
        }
        entry.live = Some(live);
    }

    /// Cancels all unfinished flows of a submission.
    pub(super) fn cancel_all(
        &mut self,
        now: Moment,
        number: u64,
        reason: CancelReason,
        out: &mut Transition,
    ) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        out.records.push(Record::Cancelled { number, flow: None, reason: reason.clone() });
        let (state, text) = (reason.state(), reason.text());
        entry.cancelled.insert(None, reason);
        if entry.state == State::Queued {
            return self.end(now, number, state, text, out);
        }
        // A submission that is being opened is cancelled when it is open.
        let live = entry.live.iter().flat_map(|live| &live.flows);
        let flows: Vec<String> = live.map(|here| here.flow.clone()).collect();
        for flow in flows {
            self.cancel_flow(number, &flow, out);
        }
    }

    /// Cancels a flow that is scheduled.
    pub(super) fn cancel_flow(&mut self, number: u64, flow: &str, out: &mut Transition) {
        let Some(here) = self.here(number, flow).filter(|here| !here.state.is_over()) else { return };
        here.state = FlowStatus::Cancelled;
        self.flow_over(number, flow);
        out.effects.push(Effect::Change { number, flow: flow.to_owned(), change: FlowOrder::Cancel });
    }
}

/// The longest wait for submissions that are being opened, before the first of them is predicted.
pub(super) const OPENING_MOST: u64 = SECOND / 4;
