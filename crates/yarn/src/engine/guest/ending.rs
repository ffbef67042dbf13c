//! Ending: tasks that fail, jobs that are done or fail for good, and applications that have to go.

use slackline_executor::engine::Happening;
use slackline_executor::engine::external_runs::tasks::{CannotFinish, FailedTask, FinishedTask};
use slackline_model::{PhaseKind, Time};
use slackline_task::base::task_id::TaskId;

use super::{Guest, LATE_LOOKS, phase_of};
use crate::clock::pause;
use crate::engine::cluster::{RUN_TAG, Said};
use crate::engine::jobs::{OwnJob, Stage, in_order, made_task};
use crate::engine::reports::AttemptEnded;
use crate::id::AppId;
use crate::observe::Change;
use crate::rest::AppState;

impl Guest<'_> {
    pub(super) fn attempt_failed(
        &mut self,
        (job, phase, task): (u32, PhaseKind, u32),
        ended: &AttemptEnded,
        message: &str,
        is_final: bool,
    ) {
        let most = u32::from(self.left.attempts_of(job));
        let own = &mut self.jobs[job];
        own.complaint = Some(message.to_owned());
        let message = &format!("{message}\n({})", log_of(ended));
        own.started.remove(&(phase, task));
        let failures = own.failures.entry((phase, task)).or_default();
        *failures += 1;
        let is_final = is_final || *failures >= most;
        let (id, since) = (TaskId { job, phase, task }, |ms| self.left.since_start(ms).min(self.now));
        let (start, end) = (since(ended.started), since(ended.ended));
        if self.left.is_recorded(id, end) && !is_final {
            return;
        }
        let (slot, start) = self.places.take(&ended.host, (start, end));
        let failed = FailedTask { id, slot, start, end, message };
        if let Err(error) = self.left.record_failed(&failed, is_final) {
            self.cannot_go_on(job, &error);
        }
        if is_final {
            self.give_up(job);
        }
    }

    /// A job of which every task is done is published, and its rows end.
    pub(super) fn finish_if_made(&mut self, job: u32) {
        let own = &self.jobs[job];
        let is_due = !own.waits_to_retry(self.now);
        if own.stage == Stage::Failed || !own.is_made(self.left.plan(job)) || !is_due {
            return;
        }
        let places = self.places.clone();
        let since = |millis| self.left.since_start(millis).min(self.now);
        let made = in_order(&own.made);
        let tasks = made.iter().map(|(task, attempt)| (*task, attempt));
        let tasks: Vec<FinishedTask> =
            tasks.filter_map(|task| made_task((own, job), task, since, &mut self.places)).collect();
        let last = made.last().map(|((kind, task), attempt)| {
            let seconds = attempt.ended.saturating_sub(attempt.started) as f64 / 1e3;
            (TaskId { job, phase: *kind, task: *task }, seconds)
        });
        let skipped = tasks.iter().map(|task| task.outcome.skipped).sum();
        let (submit, own) = (self.submit_of(job), &self.jobs[job]);
        match self.left.finish(job, tasks, |plan, publish| submit.publish((plan, own), publish)) {
            Ok(()) => {
                self.note(true);
                self.jobs[job].end();
                if let Some((id, seconds)) = last {
                    self.left.happened(Happening::Done(id, seconds));
                }
                self.left.happened(Happening::JobDone { job, skipped });
                self.books.finish_job(job);
            }
            Err(CannotFinish::Output { problem, .. }) if self.tries_later(job, &problem) => {
                self.places = places;
            }
            Err(CannotFinish::Output { output, problem }) => {
                self.fail(job, &format!("output {output}: cannot be completed: {problem}"));
            }
            Err(error) => {
                self.cannot_go_on(job, &error);
            }
        }
    }

    /// The application of a job has ended, and the job is not done.
    pub(super) fn fail_with(&mut self, app: AppId, job: u32) {
        let own = &self.jobs[job];
        let (state, said) = self.end_of(app);
        let how = match state {
            AppState::Killed => "was killed",
            AppState::Finished if said.is_empty() && own.complaint.is_none() => {
                "ended, and not all of its tasks have reported"
            }
            _ => "failed",
        };
        let message = match (&own.complaint, said) {
            (Some(complaint), _) => format!("{complaint} ({app} {how})"),
            (None, "") => format!("{app} {how}"),
            (None, said) => format!("{app} {how}: {said}"),
        };
        let message = format!("{message}\n(what its containers said: yarn logs -applicationId {app})");
        self.fail(job, &message);
    }

    /// How an application has ended, and what it says of that.
    pub(super) fn end_of(&self, app: AppId) -> (AppState, &str) {
        let known = self.cluster.snapshot().app(app);
        known.map_or((AppState::Failed, ""), |app| (app.state, app.diagnostics.trim()))
    }

    /// A job fails for good, and says why.
    pub(super) fn fail(&mut self, job: u32, message: &str) {
        let kind = if self.left.plan(job).maps() > 0 { PhaseKind::Map } else { PhaseKind::Reduce };
        let id = TaskId { job, phase: kind, task: 0 };
        self.say_started(job, (kind, 0));
        let message = &self.submit_of(job).words(message);
        let failed = FailedTask { id, slot: 0, start: self.now, end: self.now, message };
        if let Err(error) = self.left.record_failed(&failed, true) {
            self.cannot_go_on(job, &error);
        }
        self.give_up(job);
    }

    /// A job has failed for good: what runs of its flow is stopped.
    pub(super) fn give_up(&mut self, job: u32) {
        self.left.fail(job);
        let jobs = self.jobs_of_flow_of(job);
        for &other in &jobs {
            let own = &mut self.jobs[other];
            if !matches!(own.stage, Stage::Done | Stage::Failed) {
                let app = own.app();
                own.stage = Stage::Failed;
                self.stop_program(other);
                if let Some(app) = app {
                    self.kill(app);
                }
            }
        }
        self.books.fail_flow(&jobs);
        self.note(true);
    }

    /// A job and the others of its flow.
    pub(super) fn jobs_of_flow_of(&self, job: u32) -> Vec<u32> {
        let (run, flow) = (self.left.run_of(job), &self.left.plan(job).flow);
        self.jobs_of((run, flow))
    }

    /// The jobs of a flow of a run.
    pub(super) fn jobs_of(&self, (run, flow): (u32, &str)) -> Vec<u32> {
        let of_flow = self.left.jobs_of(run).filter(|(_, plan)| plan.flow == flow);
        of_flow.map(|(job, _)| job).collect()
    }

    /// An application has to go, if it is there. One that cannot be reached is tried again until it is over.
    pub(super) fn kill(&mut self, app: AppId) {
        if self.live.contains(&app) {
            self.strays.insert(app);
            self.send_kill(app);
        }
    }

    /// Has applications go whose jobs are done and that run tasks all the same for some time, such as maps that are made
    /// again: nobody reads what these make, and they hold slots.
    pub(super) fn end_late_tasks(&mut self) {
        if self.is_silent {
            return;
        }
        let is_done =
            |app: &AppId| self.by_app.get(app).is_some_and(|&job| self.jobs[job].stage == Stage::Done);
        let has_tasks = |app: &AppId| {
            let watched = self.cluster.snapshot().watched.get(app);
            watched.is_some_and(|it| it.containers.values().any(|it| phase_of(it.purpose).is_some()))
        };
        let late = self.live.iter().filter(|app| is_done(app) && has_tasks(app));
        let looks = |app: &AppId| self.late_tasks.get(app).copied().unwrap_or(0) + 1;
        self.late_tasks = late.map(|app| (*app, looks(app))).collect();
        let apps: Vec<AppId> =
            self.late_tasks.iter().filter(|(_, looks)| **looks == LATE_LOOKS).map(|(&app, _)| app).collect();
        for app in apps {
            self.kill(app);
        }
    }

    /// Kills applications that have to go and are not over, as many as there is time for: the others come first at the next
    /// call.
    pub(super) fn kill_strays(&mut self) {
        let mut round = self.kills_turn.round(self.strays.iter().copied(), self.pace.asks);
        while let Some(app) = round.next(&mut self.kills_turn) {
            self.send_kill(app);
        }
    }

    fn send_kill(&mut self, app: AppId) {
        if let Some(warning) = self.cluster.kill(app) {
            self.warn(&warning);
        }
    }

    /// Phases that the driver knows to be done are not looked at any more.
    pub(super) fn forget_what_is_over(&mut self) {
        for (job, own) in self.jobs.iter() {
            let phases = [PhaseKind::Map, PhaseKind::Reduce].map(|kind| self.books.phase_of(job, kind));
            let is_known = phases.iter().flatten().all(|&phase| self.books.is_done(phase));
            if own.stage == Stage::Done && is_known && phases.iter().any(Option::is_some) {
                self.books.forget_job(job);
            }
        }
    }

    /// Ends what is left on the cluster, all of it unless everything is done, and says what could not be ended.
    pub(super) fn end_applications(&mut self, all_done: bool) {
        if !all_done {
            // First of all what would submit more.
            self.stop_programs();
            self.strays.clone_from(&self.live);
        }
        let until = Time(self.left.now().0 + self.pace.end.as_micros() as u64);
        while self.is_anything_left() && self.left.now() < until {
            self.kill_strays();
            pause(self.pace.cycle);
            self.see_ends(all_done);
        }
        self.say_what_is_left();
    }

    /// Looks for ends of applications, and for applications that are still to end.
    fn see_ends(&mut self, all_done: bool) {
        self.now = self.left.now();
        let looked = self.cluster.look();
        self.is_silent = looked.is_err();
        if !self.is_silent {
            // What they have submitted was seen.
            self.forget_programs();
        }
        for change in looked.unwrap_or_default() {
            match change {
                Change::Appeared(app) => {
                    let known = self.cluster.snapshot().app(app);
                    if known.is_some_and(|known| !known.state.is_over()) {
                        self.expect_end(app, all_done);
                    }
                }
                Change::Over { app, .. } | Change::Gone(app) => {
                    self.live.remove(&app);
                    self.strays.remove(&app);
                }
                _ => {}
            }
        }
        for (ticket, answer) in self.cluster.answers() {
            self.unanswered.remove(&ticket);
            if self.is_of_none(&ticket, &answer) {
                continue;
            }
            match answer {
                Ok(Said::Submitted(app)) => self.expect_end(app, all_done),
                Ok(Said::Began(process)) => self.program_is_there(&ticket, process),
                Ok(Said::Ended(state)) => self.program_is_over(&ticket, state),
                Err(_) if self.jobs[ticket.job].has_program() => {
                    self.jobs[ticket.job].program = None;
                }
                Err(error) => self.jobs[ticket.job].doubt = Some((self.now, error.to_string())),
            }
        }
        self.forget_doubts();
    }

    fn expect_end(&mut self, app: AppId, all_done: bool) {
        if !all_done || !self.by_app.contains_key(&app) {
            self.live.insert(app);
            self.strays.insert(app);
        }
    }

    /// Submissions of which nobody knows what became of them, and that looks have not shown for some time, were none.
    fn forget_doubts(&mut self) {
        let (now, unseen) = (self.now, self.pace.unseen.as_micros() as u64);
        for own in self.jobs.values_mut().filter(|_| !self.is_silent) {
            own.doubt.take_if(|(since, _)| now.since(now.min(*since)).0 >= unseen);
        }
    }

    fn is_anything_left(&self) -> bool {
        let is_doubted = self.jobs.values().any(|own| own.doubt.is_some());
        let has_programs = self.jobs.values().any(OwnJob::has_program);
        !self.strays.is_empty() || !self.unanswered.is_empty() || is_doubted || has_programs
    }

    /// Says which applications are left, and how a person ends them.
    fn say_what_is_left(&mut self) {
        let name = |job: u32| {
            let plan = self.left.plan(job);
            format!("{}/{}", plan.flow, plan.job)
        };
        let named = |app: &AppId| match self.by_app.get(app) {
            Some(&job) => format!("{app} ({})", name(job)),
            None => app.to_string(),
        };
        let mut warnings = Vec::new();
        if !self.strays.is_empty() {
            let named: Vec<String> = self.strays.iter().map(named).collect();
            let ids: Vec<String> = self.strays.iter().map(AppId::to_string).collect();
            warnings.push(format!(
                "left on the cluster: {}; this ends them: yarn application -kill {}",
                named.join(", "),
                ids.join(" ")
            ));
        }
        let unanswered = self.unanswered.iter().map(|ticket| ticket.job);
        let is_open = |own: &OwnJob| own.doubt.is_some() || own.has_program();
        let doubted = self.jobs.iter().filter(|(_, own)| is_open(own)).map(|(job, _)| job);
        let process = |job: u32| self.jobs[job].program.as_ref().and_then(|program| program.process);
        let with_process = |job: u32| match process(job) {
            Some(process) => format!("{} (by process {} of this machine)", name(job), process.pid),
            None => name(job),
        };
        let open: Vec<u32> = unanswered.chain(doubted).collect();
        let owner = open.first().map(|&job| self.left.owner(job).to_owned());
        let open: Vec<String> = open.into_iter().map(with_process).collect();
        if let Some(owner) = owner.filter(|_| !open.is_empty()) {
            warnings.push(format!(
                "may still be submitted: {}; this shows them: yarn application -list -appTags {RUN_TAG}={}",
                open.join(", "),
                owner.to_lowercase()
            ));
        }
        for warning in warnings {
            self.warn(&warning);
        }
    }
}

/// Which attempt it was, and what shows a person all that its container said.
fn log_of(ended: &AttemptEnded) -> String {
    let AttemptEnded { attempt, container, host, .. } = ended;
    let container = container.map_or_else(String::new, |container| format!(" -containerId {container}"));
    format!("{attempt} on {host}: yarn logs -applicationId {}{container}", attempt.task.app)
}
