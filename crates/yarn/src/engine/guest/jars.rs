//! Jobs that are given by jar and main class.
//!
//! Such a job is a program in a process of its own, whose applications are known by the job's ticket. Which of the planned
//! tasks are done follows from the counts of their ApplicationMasters, and of the last one the driver hears when
//! the program has ended well, all its applications have, and its output is published. It may have more tasks than were
//! planned, which run beside the driver's, or fewer.

use std::io;
use std::path::{Path, PathBuf};

use slackline_executor::engine::Happening;
use slackline_executor::engine::external_runs::tasks::{CannotFinish, FinishedTask};
use slackline_executor::spec::job_plan::JobPlan;
use slackline_model::{PhaseKind, Time};
use slackline_task::base::digest::Digest;
use slackline_task::base::source::Source;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::spec::{Outcome, Split};

use super::{Guest, phase_of};
use crate::engine::books::Verdict;
use crate::engine::cluster::Ticket;
use crate::engine::count::EndedContainer;
use crate::engine::jobs::Stage;
use crate::engine::program::Work;
use crate::engine::reports::Destination;
use crate::id::AppId;
use crate::mapreduce::Job;
use crate::rest::{AppState, Container, FinalStatus, Purpose};
use crate::submitter::{ProcessState, StartedProgram, SubmitterError};

impl Guest<'_> {
    /// The program of a job has been started.
    pub(super) fn program_is_there(&mut self, ticket: &Ticket, process: StartedProgram) {
        let own = &mut self.jobs[ticket.job];
        let is_last = own.ticket == ticket.name;
        if is_last {
            own.program.iter_mut().for_each(|program| program.process = Some(process));
        }
        if !is_last || own.stage == Stage::Failed {
            self.cluster.stop(process.process);
        }
    }

    /// The program of a job has ended.
    pub(super) fn program_is_over(&mut self, ticket: &Ticket, state: ProcessState) {
        let own = &mut self.jobs[ticket.job];
        if let Some(program) = own.program.as_mut().filter(|_| own.ticket == ticket.name) {
            program.ended = Some(state);
        }
    }

    /// Nobody knows how the program of a job is, or whether it was started.
    pub(super) fn program_is_lost(&mut self, job: u32, error: &SubmitterError) {
        let own = &self.jobs[job];
        if !own.runs_program() {
            return;
        }
        if let Some(process) = own.program.as_ref().and_then(|program| program.process) {
            let problem = format!("its program, process {}, is lost: {error}", process.pid);
            return self.fail(job, &problem);
        }
        // What it may submit is not the job's.
        self.by_ticket.remove(&own.ticket);
        let app = own.app();
        self.try_again(job, &format!("it cannot be submitted: {error}"));
        if let Some(app) = app {
            self.kill(app);
        }
    }

    /// Programs that have ended, and whose applications were looked at since, are of no interest any more.
    pub(super) fn forget_programs(&mut self) {
        for own in self.jobs.values_mut() {
            own.program.take_if(|program| program.ended.is_some());
        }
    }

    /// A container works for a job, which may be a program.
    pub(super) fn program_began(
        &mut self,
        job: u32,
        kind: PhaseKind,
        (container, since): (&Container, Time),
    ) {
        let tasks = self.left.plan(job).tasks(kind);
        let Some(program) = &mut self.jobs[job].program else { return };
        if let Some(task) = program.began(container.id, (kind, tasks), (&container.host, since)) {
            self.say_started(job, (kind, task));
        }
    }

    /// A container of a program is gone.
    pub(super) fn program_ended(&mut self, job: u32, container: &Container) {
        let Some(program) = &mut self.jobs[job].program else { return };
        let work = program.work(container.id).filter(|_| phase_of(container.purpose).is_some());
        let Some(since) = work.map(|work| work.since) else {
            return self.books.disappear(container.id, Verdict::Failed);
        };
        // What is not known yet follows from what its ApplicationMaster says.
        if let Some(is_done) = program.ended(container.id, self.now) {
            self.decided(job, EndedContainer { id: container.id, since, at: self.now }, is_done);
        }
    }

    /// A container has done its task, or has not.
    fn decided(&mut self, job: u32, container: EndedContainer, is_done: bool) {
        let Some(program) = &mut self.jobs[job].program else { return };
        let Some(work) = program.work(container.id) else { return };
        let (kind, task) = (work.kind, work.task.map(|task| TaskId { job, phase: work.kind, task }));
        if is_done {
            program.done(&container);
        } else {
            program.failed(container.id);
        }
        let is_heard = is_done && self.room(job, kind) > 0;
        self.books.disappear(container.id, if is_heard { Verdict::Done } else { Verdict::Failed });
        let Some(id) = task else { return };
        if is_heard {
            self.say_done(id, container.at.since(container.since.min(container.at)).seconds());
        } else if !is_done {
            self.jobs[job].started.remove(&(kind, id.task));
            self.left.happened(Happening::Killed(id));
        }
    }

    /// Observers hear of each task once.
    fn say_done(&mut self, id: TaskId, seconds: f64) {
        let program = &mut self.jobs[id.job].program;
        if program.as_mut().is_some_and(|program| program.told.insert((id.phase, id.task))) {
            self.left.happened(Happening::Done(id, seconds));
        }
    }

    /// Of how many more tasks of a phase the driver may hear that they are done: of all but the last of the job.
    fn room(&self, job: u32, kind: PhaseKind) -> u32 {
        let plan = self.left.plan(job);
        let most = plan.tasks(kind).saturating_sub(u32::from(is_last(plan, kind)));
        self.books.phase_of(job, kind).map_or(0, |phase| most.saturating_sub(self.books.done(phase)))
    }

    /// Asks the ApplicationMasters of programs that may have something new to say, as many as have time to answer.
    pub(super) fn ask_masters(&mut self) {
        let due = self.due_masters();
        let mut round = self.masters_turn.round(due, self.pace.asks);
        while let Some((job, app)) = round.next(&mut self.masters_turn) {
            let Some(watched) = self.cluster.snapshot().watched.get(&app) else { continue };
            let live = |purpose| watched.live(purpose) as u32;
            let live = [live(Purpose::Map) + live(Purpose::FailedMap), live(Purpose::Reduce)];
            let said = self.cluster.control.manager.master(app).job(app).ok().flatten();
            self.master_said((job, app), said.as_ref(), live);
        }
    }

    /// Programs' applications whose ApplicationMasters are to be asked at this look.
    fn due_masters(&mut self) -> Vec<(u32, AppId)> {
        let watched = &self.cluster.snapshot().watched;
        let runs =
            |app: &AppId| watched.get(app).is_some_and(|watched| watched.app.state == AppState::Running);
        let mut due = Vec::new();
        for (job, own) in self.jobs.iter_mut().filter(|(_, own)| own.runs_program()) {
            let Some(program) = &mut own.program else { continue };
            let live: Vec<AppId> = program.live().filter(runs).collect();
            due.extend(live.into_iter().filter(|&app| program.is_due(app)).map(|app| (job, app)));
        }
        due
    }

    /// An ApplicationMaster has said how far its job is, or nothing.
    fn master_said(&mut self, (job, app): (u32, AppId), said: Option<&Job>, live: [u32; 2]) {
        let Some(program) = &mut self.jobs[job].program else { return };
        let decided = program.said(app, said, live);
        for (kind, decided) in PhaseKind::ALL.into_iter().zip(decided) {
            for container in decided.done {
                self.decided(job, container, true);
            }
            for container in decided.failed {
                self.decided(job, container, false);
            }
            self.done_unseen(job, kind, decided.unseen);
        }
        // There may be fewer than were planned: reduces would wait for ever.
        if said.is_some_and(|job| job.state == "RUNNING" && job.maps_completed == job.maps_total) {
            self.done_unseen(job, PhaseKind::Map, u32::MAX);
        }
    }

    /// More tasks are done, of which no container was seen.
    fn done_unseen(&mut self, job: u32, kind: PhaseKind, more: u32) {
        let more = more.min(self.room(job, kind));
        if let Some(phase) = self.books.phase_of(job, kind).filter(|_| more > 0) {
            self.books.done_before(phase, more);
        }
    }

    /// An application of a program is over.
    pub(super) fn app_is_over(&mut self, app: AppId, job: u32) {
        let known = self.cluster.snapshot().app(app);
        let is_well = known.is_some_and(|app| app.final_status == FinalStatus::Succeeded);
        let (state, said) = self.end_of(app);
        let how = if state == AppState::Killed { "was killed" } else { "failed" };
        let message = if said.is_empty() { how.to_owned() } else { format!("{how}: {said}") };
        self.end_app(job, app, if is_well { Ok(()) } else { Err(message) });
    }

    /// An application of a program is over, or gone.
    pub(super) fn end_app(&mut self, job: u32, app: AppId, over: Result<(), String>) {
        let is_well = over.is_ok();
        let program = self.jobs[job].program.as_mut();
        for container in program.map(|program| program.over(app, over)).unwrap_or_default() {
            self.decided(job, container, is_well);
        }
    }

    /// Jobs whose programs and applications have all ended are done, or have failed. What a program that has ended
    /// submitted before that was seen by now: its end is heard after the look, and this comes with the next.
    pub(super) fn end_programs(&mut self) {
        for job in self.jobs.numbers() {
            let own = &self.jobs[job];
            let Some(program) = own.program.as_ref().filter(|_| own.runs_program()) else { continue };
            match program.result() {
                Ok(false) => {}
                Ok(true) => self.finish_program(job),
                Err(message) => self.fail(job, &message),
            }
        }
    }

    /// The program of a job has made its output, which is published.
    fn finish_program(&mut self, job: u32) {
        if self.jobs[job].waits_to_retry(self.now) {
            return;
        }
        let places = self.places.clone();
        let submit = self.submit_of(job);
        let made = match submit.made(&self.left, job, &self.jobs[job]) {
            Ok(Err(message)) => return self.fail(job, &message),
            Ok(Ok(parts)) => {
                let (names, parts): (Vec<String>, Vec<PathBuf>) = parts.into_iter().unzip();
                self.jobs[job].program.iter_mut().for_each(|program| program.parts.clone_from(&names));
                self.made_by_program(job, &parts)
            }
            Err(error) => Err(error),
        };
        let made = match made {
            Ok(made) => made,
            Err(error) => return self.not_readable(job, &error),
        };
        let took = |task: &FinishedTask| (task.id, task.end.since(task.start).seconds());
        let all: Vec<(TaskId, f64)> = made.iter().map(took).collect();
        let own = &self.jobs[job];
        match self.left.finish(job, made, |plan, publish| submit.publish((plan, own), publish)) {
            Ok(()) => {
                for (id, seconds) in all {
                    self.say_started(job, (id.phase, id.task));
                    self.say_done(id, seconds);
                }
                self.note(true);
                self.jobs[job].end();
                self.left.happened(Happening::JobDone { job, skipped: 0 });
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

    /// The output of a program cannot be read now. What is elsewhere may be read later, as the cluster may answer then.
    fn not_readable(&mut self, job: u32, error: &io::Error) {
        let plan = self.left.plan(job);
        let is_here = matches!(self.submit_of(job).destination(plan, &self.jobs[job]), Destination::Here(_));
        let late = Time(self.now.0 + self.pace.late.as_micros() as u64);
        let own = &mut self.jobs[job];
        let until = *own.late.get_or_insert(late);
        if is_here || until <= self.now {
            return self.fail(job, &error.to_string());
        }
        own.unread = Some(error.to_string());
    }

    /// The planned tasks of a job as its program did them: those of which no container was seen took no time. That a container
    /// has ended is seen later than that another has begun, so maps end here when reduces begin.
    fn made_by_program(&mut self, job: u32, parts: &[PathBuf]) -> io::Result<Vec<FinishedTask>> {
        let plan = self.left.plan(job);
        let Some(program) = &self.jobs[job].program else { return Ok(Vec::new()) };
        let (mut made, mut begin, now) = (Vec::new(), Time::ZERO, self.now);
        // A placeholder has not the content of the part.
        let is_here = matches!(self.submit_of(job).destination(plan, &self.jobs[job]), Destination::Here(_));
        let since = (0..plan.reducers).filter_map(|task| program.made(PhaseKind::Reduce, task));
        let mut until = since.map(|work| work.since).min().unwrap_or(now);
        for phase in PhaseKind::ALL {
            let tasks = (0..plan.tasks(phase)).map(|task| (task, program.made(phase, task)));
            let mut tasks: Vec<(Time, u32, Option<&Work>)> = tasks
                .map(|(task, work)| (work.and_then(|work| work.done).unwrap_or(until).min(until), task, work))
                .collect();
            // Slots are given in the order of the ends.
            tasks.sort_by_key(|&(end, task, _)| (end, task));
            for (end, task, work) in tasks {
                let (host, start) = work.map_or(("", end), |work| (work.host.as_str(), work.since));
                let start = start.max(begin);
                let (slot, start) = self.places.take(host, (start, end.max(start)));
                let id = TaskId { job, phase, task };
                let part = parts.get(task as usize).filter(|_| is_last(plan, phase)).cloned();
                let mut outcome = outcome(plan, id, part.as_deref(), self.left.base(job))?;
                outcome.output = part.as_deref().filter(|_| is_here).map(Digest::of_file).transpose()?;
                made.push(FinishedTask { id, slot, start, began: start, end: end.max(start), outcome, part });
            }
            begin = made.iter().map(|made: &FinishedTask| made.end).max().unwrap_or(begin);
            until = now;
        }
        made.sort_by_key(|made| (made.end, made.id));
        Ok(made)
    }

    /// Kills the program of a job, and its applications.
    pub(super) fn stop_program(&mut self, job: u32) {
        let Some(program) = &self.jobs[job].program else { return };
        if let Some(process) = program.process.filter(|_| program.ended.is_none()) {
            self.cluster.stop(process.process);
        }
        for app in program.live().collect::<Vec<_>>() {
            self.kill(app);
        }
    }

    /// Kills all programs that are at work, and those that will be.
    pub(super) fn stop_programs(&mut self) {
        for job in self.jobs.numbers() {
            let own = &mut self.jobs[job];
            if own.runs_program() {
                own.stage = Stage::Failed;
                self.stop_program(job);
            }
        }
    }
}

/// Whether a phase writes the output of a job.
fn is_last(plan: &JobPlan, kind: PhaseKind) -> bool {
    kind == PhaseKind::Reduce || plan.reducers == 0
}

/// What is known of what a task has read and written.
fn outcome(plan: &JobPlan, id: TaskId, part: Option<&Path>, base: &Path) -> io::Result<Outcome> {
    let bytes = |split: &Split| {
        let whole = || Source::now(&base.join(&split.path)).map_or(0, |source| source.bytes);
        split.length.unwrap_or_else(whole)
    };
    let splits = plan.inputs.maps.get(id.task as usize).filter(|_| id.phase == PhaseKind::Map);
    let bytes_in = splits.into_iter().flatten().map(bytes).sum();
    let bytes_out = part.map(Source::of_part).transpose()?.map_or(0, |part| part.bytes);
    Ok(Outcome { bytes_in, bytes_out, ..Outcome::default() })
}
