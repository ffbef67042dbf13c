//! Jobs with a jar and a main class.
//!
//! Such a job is a program in its own process; its applications carry the ticket of the job. Which of the
//! planned tasks have finished is inferred from the counts of their AMs. The last task finishes when the
//! program and all its applications have succeeded and the output is published. A job may have more tasks
//! than were planned, which run beside the driver's, or fewer.

use std::io;
use std::path::{Path, PathBuf};

use slackline_executor::engine::event::RunEvent;
use slackline_executor::engine::external_runs::tasks::{CannotFinish, FinishedTask};
use slackline_executor::spec::job_plan::JobPlan;
use slackline_model::{PhaseKind, Time};
use slackline_task::base::digest::Digest;
use slackline_task::base::source::Source;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::spec::{Outcome, Split};
use slackline_trace::PhaseCounts;

use crate::cluster::container_ledger::ContainerOutcome;
use crate::cluster::observer::phase_of;
use crate::cluster::task_inference::EndedContainer;
use crate::flows::applications::Ticket;
use crate::flows::attempt_reports::Destination;
use crate::flows::engine::FlowEngine;
use crate::flows::jobs::JobStage;
use crate::flows::program::ContainerWork;
use crate::rest::id::AppId;
use crate::rest::mapreduce::MapReduceJob;
use crate::rest::resource_manager::{AppState, Container, FinalStatus, Purpose};
use crate::submitter::{ProcessState, StartedProgram, SubmitterError};

impl FlowEngine {
    pub(super) fn program_started(&mut self, ticket: &Ticket, process: StartedProgram) {
        let own = &mut self.jobs[ticket.job];
        let is_last = own.ticket == ticket.name;
        if is_last {
            own.program.iter_mut().for_each(|program| program.process = Some(process));
        }
        if !is_last || own.stage == JobStage::Failed {
            self.cluster.stop(process.process);
        }
    }

    pub(super) fn program_exited(&mut self, ticket: &Ticket, state: ProcessState) {
        let own = &mut self.jobs[ticket.job];
        if let Some(program) = own.program.as_mut().filter(|_| own.ticket == ticket.name) {
            program.ended = Some(state);
        }
    }

    /// The submitter cannot tell the state of a program, or whether it was started.
    pub(super) fn program_lost(&mut self, job: u32, error: &SubmitterError) {
        let own = &self.jobs[job];
        if !own.runs_program() {
            return;
        }
        if let Some(process) = own.program.as_ref().and_then(|program| program.process) {
            let problem = format!("the state of its program, process {}, is unknown: {error}", process.pid);
            return self.fail(job, &problem);
        }
        // The job does not take over what this program may submit.
        self.apps.by_ticket.remove(&own.ticket);
        let app = own.app();
        self.resubmit(job, &format!("it cannot be submitted: {error}"));
        if let Some(app) = app {
            self.kill(app);
        }
    }

    /// Forgets programs that ended before the last poll.
    pub(super) fn forget_programs(&mut self) {
        for own in self.jobs.values_mut() {
            own.program.take_if(|program| program.ended.is_some());
        }
    }

    /// A container started for a job, which may be a program.
    pub(super) fn program_container_started(
        &mut self,
        job: u32,
        kind: PhaseKind,
        container: &Container,
        since: Time,
    ) {
        let tasks = self.runs.plan(job).tasks(kind);
        let Some(program) = &mut self.jobs[job].program else { return };
        if let Some(task) = program.container_started(container.id, kind, tasks, &container.host, since) {
            self.report_started(job, kind, task);
        }
    }

    pub(super) fn program_container_ended(&mut self, job: u32, container: &Container) {
        let Some(program) = &mut self.jobs[job].program else { return };
        let work = program.work(container.id).filter(|_| phase_of(container.purpose).is_some());
        let Some(since) = work.map(|work| work.since) else {
            return self.ledger.remove_container(container.id, ContainerOutcome::Failed);
        };
        // Undecided containers wait for the next report of their AM.
        if let Some(is_done) = program.container_ended(container.id, self.now) {
            self.record_outcome(job, EndedContainer { id: container.id, since, at: self.now }, is_done);
        }
    }

    /// Records whether a container finished its task.
    fn record_outcome(&mut self, job: u32, container: EndedContainer, is_done: bool) {
        let Some(program) = &mut self.jobs[job].program else { return };
        let Some(work) = program.work(container.id) else { return };
        let (kind, task) = (work.kind, work.task.map(|task| TaskId { job, phase: work.kind, task }));
        if is_done {
            program.mark_finished(&container);
        } else {
            program.mark_failed(container.id);
        }
        let is_reported = is_done && self.room(job, kind) > 0;
        self.ledger.remove_container(
            container.id,
            if is_reported { ContainerOutcome::Finished } else { ContainerOutcome::Failed },
        );
        let Some(id) = task else { return };
        if is_reported {
            self.report_done(id, container.at.since(container.since.min(container.at)).seconds());
        } else if !is_done {
            self.jobs[job].started.remove(&(kind, id.task));
            self.runs.happened(RunEvent::AttemptStopped { task: id, attempt: None });
        }
    }

    /// Observers see each task finish once.
    fn report_done(&mut self, id: TaskId, seconds: f64) {
        let program = &mut self.jobs[id.job].program;
        if program.as_mut().is_some_and(|program| program.reported_done.insert((id.phase, id.task))) {
            self.runs.happened(RunEvent::TaskFinished { task: id, seconds });
        }
    }

    /// How many more tasks of a phase may finish for the driver: all but the last of the job.
    fn room(&self, job: u32, kind: PhaseKind) -> u32 {
        let plan = self.runs.plan(job);
        let most = plan.tasks(kind).saturating_sub(u32::from(writes_output(plan, kind)));
        self.ledger.phase_of(job, kind).map_or(0, |phase| most.saturating_sub(self.ledger.done(phase)))
    }

    /// Polls the AMs of programs that may have news, within the time limit.
    pub(super) fn poll_ams(&mut self) {
        let due = self.due_ams();
        let mut round = self.turns.ams.round(due, self.timeouts.asks);
        while let Some((job, app)) = round.next(&mut self.turns.ams) {
            let Some(watched) = self.cluster.snapshot().watched.get(&app) else { continue };
            let live = |purpose| watched.live(purpose) as u32;
            let live = [live(Purpose::Map) + live(Purpose::FailedMap), live(Purpose::Reduce)];
            let report = self.cluster.control.manager.application_master(app).job(app).ok().flatten();
            self.am_reported(job, app, report.as_ref(), live);
        }
    }

    /// Applications of programs whose AMs to poll now.
    fn due_ams(&mut self) -> Vec<(u32, AppId)> {
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

    /// Applies a report of an AM, or a missing one.
    fn am_reported(&mut self, job: u32, app: AppId, report: Option<&MapReduceJob>, live: [u32; 2]) {
        let Some(program) = &mut self.jobs[job].program else { return };
        let inferred = program.update(app, report, live);
        for (kind, inference) in PhaseKind::ALL.into_iter().zip(inferred) {
            for container in inference.done {
                self.record_outcome(job, container, true);
            }
            for container in inference.failed {
                self.record_outcome(job, container, false);
            }
            self.add_unobserved(job, kind, inference.unseen);
        }
        // There may be fewer maps than planned: reduces would wait forever.
        if report.is_some_and(|job| job.state == "RUNNING" && job.maps_completed == job.maps_total) {
            self.add_unobserved(job, PhaseKind::Map, u32::MAX);
        }
    }

    /// More tasks have finished, without an observed container.
    fn add_unobserved(&mut self, job: u32, kind: PhaseKind, more: u32) {
        let more = more.min(self.room(job, kind));
        if let Some(phase) = self.ledger.phase_of(job, kind).filter(|_| more > 0) {
            self.ledger.add_finished(phase, more);
        }
    }

    pub(super) fn program_app_ended(&mut self, app: AppId, job: u32) {
        let known = self.cluster.snapshot().app(app);
        let is_well = known.is_some_and(|app| app.final_status == FinalStatus::Succeeded);
        let (state, diagnostics) = self.final_state(app);
        let how = if state == AppState::Killed { "was killed" } else { "failed" };
        let message = if diagnostics.is_empty() { how.to_owned() } else { format!("{how}: {diagnostics}") };
        self.end_app(job, app, if is_well { Ok(()) } else { Err(message) });
    }

    /// An application of a program has ended, or YARN has forgotten it.
    pub(super) fn end_app(&mut self, job: u32, app: AppId, over: Result<(), String>) {
        let is_well = over.is_ok();
        let program = self.jobs[job].program.as_mut();
        for container in program.map(|program| program.app_ended(app, over)).unwrap_or_default() {
            self.record_outcome(job, container, is_well);
        }
    }

    /// Finishes or fails jobs whose program and applications have all ended. Answers of the submitter are
    /// applied after the poll and this runs at the next one, so all applications of an ended program have
    /// been observed.
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

    /// Publishes the output of a program.
    fn finish_program(&mut self, job: u32) {
        if self.jobs[job].waits_to_retry(self.now) {
            return;
        }
        let places = self.places.clone();
        let submit = self.submission_of(job);
        let made = match submit.written_parts(&self.runs, job, &self.jobs[job]) {
            Ok(Err(message)) => return self.fail(job, &message),
            Ok(Ok(parts)) => {
                let (names, parts): (Vec<String>, Vec<PathBuf>) = parts.into_iter().unzip();
                self.jobs[job].program.iter_mut().for_each(|program| program.parts.clone_from(&names));
                self.program_records(job, &parts)
            }
            Err(error) => Err(error),
        };
        let made = match made {
            Ok(made) => made,
            Err(error) => return self.retry_read(job, &error),
        };
        let took = |task: &FinishedTask| (task.id, task.end.since(task.start).seconds());
        let all: Vec<(TaskId, f64)> = made.iter().map(took).collect();
        let own = &self.jobs[job];
        match self.runs.finish(job, made, |plan, publish| submit.publish(plan, own, publish)) {
            Ok(()) => {
                for (id, seconds) in all {
                    self.report_started(job, id.phase, id.task);
                    self.report_done(id, seconds);
                }
                self.write_note(true);
                self.jobs[job].end();
                self.runs.happened(RunEvent::JobFinished { job, skipped_records: 0 });
                self.ledger.finish_job(job);
            }
            Err(CannotFinish::Output { problem, .. }) if self.schedule_retry(job, &problem) => {
                self.places = places;
            }
            Err(CannotFinish::Output { output, problem }) => {
                self.fail(job, &format!("output {output}: cannot be completed: {problem}"));
            }
            Err(error) => {
                self.abort_run(job, &error);
            }
        }
    }

    /// The output of a program cannot be read now. Output on another file system is retried.
    fn retry_read(&mut self, job: u32, error: &io::Error) {
        let plan = self.runs.plan(job);
        let is_here =
            matches!(self.submission_of(job).destination(plan, &self.jobs[job]), Destination::Local(_));
        let late = Time(self.now.0 + self.timeouts.late.as_micros() as u64);
        let own = &mut self.jobs[job];
        let until = *own.late.get_or_insert(late);
        if is_here || until <= self.now {
            return self.fail(job, &error.to_string());
        }
        own.read_problem = Some(error.to_string());
    }

    /// Records of the planned tasks of a program; those without an observed container took no time. The end
    /// of a container is observed after the start of the next, so maps end here at the latest when reduces
    /// start.
    fn program_records(&mut self, job: u32, parts: &[PathBuf]) -> io::Result<Vec<FinishedTask>> {
        let plan = self.runs.plan(job);
        let Some(program) = &self.jobs[job].program else { return Ok(Vec::new()) };
        let (mut made, mut begin, now) = (Vec::new(), Time::ZERO, self.now);
        // A placeholder lacks the content of the part.
        let is_here =
            matches!(self.submission_of(job).destination(plan, &self.jobs[job]), Destination::Local(_));
        let since = (0..plan.reducers).filter_map(|task| program.finished_work(PhaseKind::Reduce, task));
        let mut until = since.map(|work| work.since).min().unwrap_or(now);
        for phase in PhaseKind::ALL {
            let tasks = (0..plan.tasks(phase)).map(|task| (task, program.finished_work(phase, task)));
            let mut tasks: Vec<(Time, u32, Option<&ContainerWork>)> = tasks
                .map(|(task, work)| (work.and_then(|work| work.done).unwrap_or(until).min(until), task, work))
                .collect();
            // Slots are assigned in the order of the ends.
            tasks.sort_by_key(|&(end, task, _)| (end, task));
            for (end, task, work) in tasks {
                let (host, start) = work.map_or(("", end), |work| (work.host.as_str(), work.since));
                let start = start.max(begin);
                let (slot, start) = self.places.take(host, start, end.max(start));
                let id = TaskId { job, phase, task };
                let part = parts.get(task as usize).filter(|_| writes_output(plan, phase)).cloned();
                let mut outcome = io_of(plan, id, part.as_deref(), self.runs.base(job))?;
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

    /// Kills all programs, also those that are about to start.
    pub(super) fn stop_programs(&mut self) {
        for job in self.jobs.numbers() {
            let own = &mut self.jobs[job];
            if own.runs_program() {
                own.stage = JobStage::Failed;
                self.stop_program(job);
            }
        }
    }
}

/// Whether a phase writes the output of a job.
fn writes_output(plan: &JobPlan, kind: PhaseKind) -> bool {
    kind == PhaseKind::Reduce || plan.reducers == 0
}

/// The bytes that a task has read and written.
fn io_of(plan: &JobPlan, id: TaskId, part: Option<&Path>, base: &Path) -> io::Result<Outcome> {
    let bytes = |split: &Split| {
        let whole = || Source::now(&base.join(&split.path)).map_or(0, |source| source.bytes);
        split.length.unwrap_or_else(whole)
    };
    let splits = plan.inputs.maps.get(id.task as usize).filter(|_| id.phase == PhaseKind::Map);
    let bytes_in = splits.into_iter().flatten().map(bytes).sum();
    let bytes_out = part.map(Source::of_part).transpose()?.map_or(0, |part| part.bytes);
    let counts = PhaseCounts { bytes_in, bytes_out, ..PhaseCounts::default() };
    Ok(Outcome { counts, output: None })
}
