//! Looking: what the cluster and the attempts say, and what the driver hears of it.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use slackline_executor::engine::Happening;
use slackline_executor::engine::external_runs::tasks::ArrivingFlow;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_model::{FlowId, PhaseId, PhaseKind, Time};
use slackline_policy::engine::Report;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::report::Report as Said;

use super::{Guest, KILL_EVERY, THERE_EVERY, phase_of};
use crate::clock::Stopwatch;
use crate::engine::books::Verdict;
use crate::engine::cluster::JOB_TAG;
use crate::engine::jobs::{OwnJob, Stage};
use crate::engine::reports::{AttemptEnded, Destination, News, Reports, phase_kind};
use crate::id::{AppId, TaskId as Task};
use crate::observe::Change;
use crate::rest::{App, Container, FinalStatus};

impl Guest<'_> {
    /// Looks at the cluster, takes in what changed, and gives what the driver has to hear.
    pub(super) fn look(&mut self, reports: &mut Vec<Report>) {
        self.now = self.left.now();
        self.books.advance(self.now);
        self.looks += 1;
        let looked = self.cluster.look();
        self.looked = Stopwatch::start();
        let silence = match looked {
            Ok(changes) => {
                for change in changes {
                    self.take_in(change);
                }
                self.ask_masters();
                self.end_programs();
                self.count_others();
                None
            }
            Err(error) => Some(error.to_string()),
        };
        self.is_silent = silence.is_some();
        for answer in self.cluster.answers() {
            self.answered(answer);
        }
        self.give_up_doubts();
        self.read_reports();
        self.end_late_tasks();
        if self.looks.is_multiple_of(KILL_EVERY) {
            self.kill_strays();
        }
        let is_open = |stage: &Stage| matches!(stage, Stage::Runs(_));
        let unread =
            || self.jobs.values().filter(|own| is_open(&own.stage)).find_map(|own| own.unread.clone());
        let is_left = |own: &&OwnJob| !matches!(own.stage, Stage::Done | Stage::Failed);
        let retried =
            || self.jobs.values().filter(is_left).find_map(|own| Some(own.retry.as_ref()?.problem.clone()));
        let trouble = silence.or_else(unread).or_else(retried);
        self.trouble(trouble.as_deref());
        self.books.report(reports);
        self.arrive(reports);
        // What is known of these flows has to be heard before anything of them is started.
        self.books.report(reports);
        self.note_masters();
        self.explain_waits();
        self.note(false);
        self.left.happened(Happening::Tick);
    }

    pub(super) fn take_in(&mut self, change: Change) {
        match change {
            Change::Appeared(app) => self.appeared(app),
            Change::Started(container) => self.started(&container),
            Change::Ended(container) => self.ended(&container),
            Change::Over { app, .. } => self.is_over(app),
            Change::Gone(app) => self.is_gone(app),
            Change::Restarted | Change::State { .. } | Change::Attempt(_) | Change::Released(_) => {}
        }
    }

    /// An application of the run was seen for the first time.
    pub(super) fn appeared(&mut self, app: AppId) {
        let Some(known) = self.cluster.snapshot().app(app) else { return };
        if !known.state.is_over() {
            self.live.insert(app);
        }
        let (priority, is_over) = (known.priority, known.state.is_over());
        let is_well = known.final_status == FinalStatus::Succeeded;
        let job = known.tag(JOB_TAG).and_then(|ticket| self.by_ticket.get(ticket).copied());
        let has_reported = is_over && !is_well && job.is_some_and(|job| self.has_reported(job));
        let own = job.and_then(|job| self.jobs.get_mut(job));
        match (job, own) {
            // One of an earlier session that was killed, or failed while nobody drove it, is tried again.
            (Some(_), Some(own)) if is_over && !is_well && own.submissions == 0 && !has_reported => {}
            (Some(job), Some(own)) if own.app() == Some(app) || own.may_get_app() => {
                own.stage = Stage::Runs(app);
                own.doubt = None;
                own.priority = priority;
                own.program.iter_mut().for_each(|program| program.add(app));
                self.by_app.insert(app, job);
            }
            _ if is_over => {}
            _ => {
                // It was submitted by a session that was killed before it knew, or for a job that is another now.
                self.kill(app);
            }
        }
    }

    pub(super) fn started(&mut self, container: &Container) {
        let job = self.by_app.get(&container.id.attempt.app).copied();
        let since = container.started_ms.map_or(self.now, |ms| self.left.since_start(ms));
        if let Some(own) = job.and_then(|job| self.jobs.get_mut(job)) {
            // A look takes time: maps may have ended since it began, and then this reduce was granted.
            own.granted.insert(container.id, since.min(self.left.now()));
        }
        let since = since.min(self.now);
        let kind = phase_of(container.purpose);
        let is_open = job.is_some_and(|job| !matches!(self.jobs[job].stage, Stage::Done | Stage::Failed));
        let work = job.filter(|_| is_open).map(|job| (job, kind));
        self.books.appear(container.id, (&container.host, since), work);
        if let Some((job, Some(kind))) = work {
            self.program_began(job, kind, (container, since));
        }
    }

    pub(super) fn ended(&mut self, container: &Container) {
        // Its report lies there since before it ended.
        let job = self.by_app.get(&container.id.attempt.app).copied();
        if let Some(job) = job {
            if self.jobs[job].runs_program() {
                return self.program_ended(job, container);
            }
            // Those that there is no time for are read later, and heard of then.
            if self.looked.elapsed() < self.pace.asks {
                self.read_reports_of(job, self.pace.asks);
            }
        }
        let is_well = job.is_some_and(|job| self.jobs[job].is_well(container.id));
        let verdict = if is_well { Verdict::Done } else { Verdict::Failed };
        self.books.disappear(container.id, verdict);
        // It may have made again what was done: then nothing is left to be done in its place.
        let kind = phase_of(container.purpose);
        if let Some((job, kind)) = job.zip(kind)
            && let Some(phase) = self.books.phase_of(job, kind)
        {
            self.hear_of_done(job, kind, phase);
        }
    }

    /// An application has ended: its job is done, or has failed.
    pub(super) fn is_over(&mut self, app: AppId) {
        self.live.remove(&app);
        self.strays.remove(&app);
        let Some(&job) = self.by_app.get(&app) else { return };
        if self.jobs[job].runs_program() {
            return self.app_is_over(app, job);
        }
        let is_well = |known: &App| known.final_status == FinalStatus::Succeeded;
        if !self.cluster.snapshot().app(app).is_some_and(is_well) {
            // It has failed, unless all is there.
            self.jobs[job].read_at = 0;
            self.read_reports_of(job, Duration::MAX);
        }
        let own = &mut self.jobs[job];
        // All it has made is there, and is published when a file system answers.
        if matches!(own.stage, Stage::Done | Stage::Failed) || own.retry.is_some() {
            return;
        }
        let Some(known) = self.cluster.snapshot().app(app).filter(|known| is_well(known)) else {
            return self.fail_with(app, job);
        };
        // One of an earlier session may have ended long ago.
        let ended = known.finished_ms.filter(|_| own.submissions == 0);
        let ended = ended.map_or(self.now, |ms| self.left.since_start(ms)).min(self.now);
        own.late = Some(Time(ended.0 + self.pace.late.as_micros() as u64));
    }

    /// The ResourceManager has forgotten an application: the job is submitted once more.
    pub(super) fn is_gone(&mut self, app: AppId) {
        self.live.remove(&app);
        self.strays.remove(&app);
        let Some(&job) = self.by_app.get(&app) else { return };
        if self.jobs[job].runs_program() {
            // Its program hears of that too, and has the last word.
            self.end_app(job, app, Ok(()));
        } else if self.jobs[job].app() == Some(app) && self.jobs[job].retry.is_none() {
            self.try_again(job, &format!("{app}: the ResourceManager does not know it any more"));
        }
        self.by_app.remove(&app);
    }

    /// Counts the slots that containers hold which are not of the run.
    pub(super) fn count_others(&mut self) {
        self.cluster.control.count_others(&mut self.books, self.rules.slot_mb, 0);
    }

    /// Reads what attempts have written, of as many jobs as there is time for: the others have their turn at the next look.
    pub(super) fn read_reports(&mut self) {
        let is_turn_of_all = self.looks.is_multiple_of(THERE_EVERY);
        let is_open = |own: &OwnJob| matches!(own.stage, Stage::Runs(_)) && own.program.is_none();
        let open = self.jobs.iter().filter(|(_, own)| is_open(own));
        let is_due = |&(job, own): &(u32, &OwnJob)| {
            let destination = || self.submit_of(job).destination(self.left.plan(job), own);
            is_turn_of_all || !own.reports.is_whole() || matches!(destination(), Destination::Here(_))
        };
        let due: Vec<u32> = open.clone().filter(is_due).map(|(job, _)| job).collect();
        let open: Vec<u32> = open.map(|(job, _)| job).collect();
        let mut round = self.reports_turn.round(due, self.pace.asks);
        while let Some(job) = round.next(&mut self.reports_turn) {
            self.read_reports_of(job, self.pace.asks);
            self.give_up_if_late(job);
        }
        for job in open {
            // What a container did that ended without a row of its own.
            for kind in [PhaseKind::Map, PhaseKind::Reduce] {
                if let Some(phase) = self.books.phase_of(job, kind) {
                    self.hear_of_done(job, kind, phase);
                }
            }
        }
    }

    /// A job whose application has succeeded some time ago, and all that its attempts have written was read just now.
    fn give_up_if_late(&mut self, job: u32) {
        let own = &self.jobs[job];
        let is_late = own.late.is_some_and(|until| until <= self.now) && own.retry.is_none();
        if let Stage::Runs(app) = own.stage
            && is_late
            && own.reports.is_whole()
        {
            self.try_again(job, &format!("{app} ended, and not all of its tasks have reported"));
        }
    }

    /// Whether all tasks of a job are done, by what their attempts have written.
    fn has_reported(&self, job: u32) -> bool {
        let (plan, own) = (self.left.plan(job), &self.jobs[job]);
        let destination = self.submit_of(job).destination(plan, own);
        let mut news = News::default();
        let read = Reports::default().read(&destination, (makes_part(plan), Duration::MAX), &mut news);
        if read.is_err() {
            return false;
        }
        let done = news.ended.iter().filter(|ended| matches!(ended.report, Said::Done(_)));
        let done: BTreeSet<_> = done.map(|ended| ended.attempt.task).collect();
        done.len() as u64 == u64::from(plan.maps()) + u64::from(plan.reducers)
    }

    /// Takes in what attempts of a job have written since the last time, as much as is read in a time. At a look that is done
    /// once: containers that ended since the last one had reported before this one.
    pub(super) fn read_reports_of(&mut self, job: u32, lasts: Duration) {
        let destination = self.submit_of(job).destination(self.left.plan(job), &self.jobs[job]);
        let (plan, own) = (self.left.plan(job), &mut self.jobs[job]);
        if matches!(own.stage, Stage::Done | Stage::Failed) || own.read_at == self.looks {
            return;
        }
        own.read_at = self.looks;
        let mut news = News::default();
        let read = own.reports.read(&destination, (makes_part(plan), lasts), &mut news);
        // What cannot be read now may be later.
        own.unread = read.as_ref().err().map(io::Error::to_string);
        for attempt in news.begun {
            let task = (phase_kind(attempt.task.kind), attempt.task.number);
            self.say_started(job, task);
        }
        for ended in news.ended {
            self.attempt_ended(job, ended);
        }
        match read {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => self.fail(job, &error.to_string()),
            _ => self.finish_if_made(job),
        }
    }

    pub(super) fn say_started(&mut self, job: u32, (phase, task): (PhaseKind, u32)) {
        let started = &mut self.jobs[job].started;
        if started.insert((phase, task), self.now).is_none() {
            self.left.happened(Happening::Started(TaskId { job, phase, task }));
        }
    }

    pub(super) fn attempt_ended(&mut self, job: u32, ended: AttemptEnded) {
        let (kind, number) = (phase_kind(ended.attempt.task.kind), ended.attempt.task.number);
        if self.jobs[job].made.contains_key(&(kind, number)) {
            return;
        }
        self.say_started(job, (kind, number));
        match ended.report.clone() {
            Said::Done(_) => {
                let seconds = ended.ended.saturating_sub(ended.started) as f64 / 1e3;
                let own = &mut self.jobs[job];
                own.made.insert((kind, number), ended);
                let phase = self.books.phase_of(job, kind);
                // Those of the last phase are done when the output is complete.
                let is_last = self.jobs[job].is_made(self.left.plan(job));
                if !is_last {
                    self.left.happened(Happening::Done(TaskId { job, phase: kind, task: number }, seconds));
                }
                if let Some(phase) = phase.filter(|_| !is_last) {
                    self.hear_of_done(job, kind, phase);
                }
            }
            Said::Failed { message, is_final, .. } => {
                self.attempt_failed((job, kind, number), &ended, &message, is_final);
            }
        }
    }

    /// The driver hears of tasks that are done and whose container it does not know.
    pub(super) fn hear_of_done(&mut self, job: u32, kind: PhaseKind, phase: PhaseId) {
        let own = &self.jobs[job];
        // Those of live containers end with these.
        let live = own.made.iter().filter(|((phase, _), made)| {
            *phase == kind && made.container.is_some_and(|container| self.books.is_live(container))
        });
        let known = self.books.done(phase) + live.count() as u32;
        let more = own.done(kind).saturating_sub(known);
        if more > 0 {
            self.books.done_before(phase, more);
        }
    }

    /// Flows that arrive now, whose phases get the next ids of the driver.
    pub(super) fn arrive(&mut self, reports: &mut Vec<Report>) {
        for (run, flow) in self.left.arriving() {
            self.bring((run, &flow), reports);
        }
    }

    /// A flow comes to the driver, unless it is held, or nothing of it is left.
    pub(super) fn bring(&mut self, (run, flow): (u32, &str), reports: &mut Vec<Report>) {
        // The workload was one when the run came; what is left of it is one too.
        let comer = self.left.arrival(run, flow, &self.machines);
        let comer = comer.expect("invariant: what is left of a workload is one");
        let Some(ArrivingFlow { arrival, phases }) = comer else { return };
        reports.push(Report::Arrived(Box::new(arrival)));
        self.flows.insert((run, flow.to_owned()), FlowId(self.next_flow));
        self.next_flow += 1;
        let mut jobs = BTreeSet::new();
        for (job, kind, tasks) in phases {
            self.books.add_phase(PhaseId(self.next_phase), (job, kind), tasks);
            self.next_phase += 1;
            jobs.insert(job);
        }
        self.tell_of_earlier(&jobs);
    }

    /// What is known already of the jobs of a flow that has arrived: they went on while nobody drove them.
    pub(super) fn tell_of_earlier(&mut self, jobs: &BTreeSet<u32>) {
        if let Some(&failed) = jobs.iter().find(|&&job| self.jobs[job].stage == Stage::Failed) {
            return self.books.fail_flow(&self.jobs_of_flow_of(failed));
        }
        for &job in jobs {
            if self.jobs[job].stage == Stage::Done {
                self.books.finish_job(job);
                continue;
            }
            for kind in [PhaseKind::Map, PhaseKind::Reduce] {
                if let Some(phase) = self.books.phase_of(job, kind) {
                    self.hear_of_done(job, kind, phase);
                }
            }
        }
    }
}

/// Which tasks of a job make parts; none of what is no task of it.
fn makes_part(plan: &JobPlan) -> impl Fn(Task) -> Option<bool> {
    move |task| {
        let kind = phase_kind(task.kind);
        let makes_part = kind == PhaseKind::Reduce || plan.reducers == 0;
        (task.number < plan.tasks(kind)).then_some(makes_part)
    }
}
