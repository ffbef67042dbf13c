//! The engine: decisions go out as rows of the table and as priorities, containers come back as tasks that run and end.
//!
//! A job is one application, submitted when its predecessors are done and the driver has started a task of it. It is
//! done when all its attempts have reported so and its output is published; what its application does after that is of no
//! interest but for the slots that it holds.
//!
//! A job that is given by jar and main class is a program which submits applications by itself, see `jars`.

mod jars;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slackline_local::elsewhere::{CannotFinish, Elsewhere, FailedTask, MadeTask, Over};
use slackline_local::run::EngineError;
use slackline_local::worker::Report as Said;
use slackline_local::{Happening, JobPlan, TaskId};
use slackline_model::schedule::NewRow;
use slackline_model::tasks::Tasks;
use slackline_model::{Instance, PhaseId, PhaseKind, SlotRange, Time};
use slackline_policy::engine::{Batch, Capabilities, Faults, Lengths, Offers, Order, Report, RowId, Start};
use slackline_policy::log::{FlowEnd, Sink};
use slackline_policy::{Config, Driver, Engine, Policy};

use super::books::{Books, Verdict};
use super::cluster::{Answer, Cluster, JOB_TAG, Request, Said as Answered, Ticket};
use super::jobs::{OwnJob, Places, Stage, made_task};
use super::reports::{AttemptEnded, Destination, Reports, phase_kind};
use super::wishes::{Plans, Wishes, priorities};
use crate::clock::pause;
use crate::id::AppId;
use crate::observe::{Change, Snapshot};
use crate::rest::{AppState, Container, FinalStatus, Pending, Purpose};

/// How long the engine waits between two looks.
pub(super) const CYCLE: Duration = Duration::from_millis(250);

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(200);

/// How often reports on other file systems than that of this machine are looked for, in looks.
const THERE_EVERY: u32 = 4;

/// The most priorities that are changed after a look: each is written to the ResourceManager's state store.
pub(super) const CHANGES_MAX: usize = 5;

/// How often a job is submitted whose applications the ResourceManager forgets.
const SUBMISSIONS_MAX: u32 = 3;

/// How long killed applications are waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long reports may take to be seen of an application that has succeeded: file systems of several machines show a file
/// later than it was written.
const LATE: Duration = Duration::from_secs(60);

/// The priority of applications that are submitted.
const PRIORITY: u64 = 1000;

/// Part files: their names, and where they are.
pub(super) type Parts = Vec<(String, PathBuf)>;

/// How jobs are submitted.
pub(super) trait Submit {
    /// What the submitter is told of a job, whose files are written to `own.directory/own.ticket`.
    fn request(&self, left: &Elsewhere<'_>, job: u32, own: &OwnJob) -> io::Result<Request>;

    /// Where the attempts of its submission write.
    fn destination(&self, plan: &JobPlan, own: &OwnJob) -> Destination;

    /// The parts that the program of a jar has made, by their numbers: their names, and where they or their placeholders are;
    /// or what is wrong with them.
    fn made(&self, left: &Elsewhere<'_>, job: u32, own: &OwnJob) -> io::Result<Result<Parts, String>>;

    /// Puts the output of a job in its place, here by `publish`.
    fn publish(
        &self,
        job: (&JobPlan, &OwnJob),
        publish: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()>;

    /// A text in which files have the names that the reader knows.
    fn words(&self, text: &str) -> String;
}

/// What is set of the engine.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The greatest part of the slots that ApplicationMasters may hold.
    pub(super) am_share: f64,
    /// Memory of a container, MiB.
    pub(super) slot_mb: u64,
    /// Whether the cluster decides by itself: the policy is only told what happens.
    pub(super) by_cluster: bool,
}

/// The engine.
pub(super) struct Guest<'a, 's> {
    left: Elsewhere<'a>,
    cluster: Cluster,
    submit: &'s dyn Submit,
    rules: Rules,
    books: Books,
    jobs: Vec<OwnJob>,
    by_ticket: BTreeMap<String, u32>,
    by_app: BTreeMap<AppId, u32>,
    /// Applications of the run that are none of a job's any more.
    strays: BTreeSet<AppId>,
    places: Places,
    /// The id that the driver gives to the next phase.
    next_phase: u32,
    wakes: BTreeSet<Time>,
    now: Time,
    is_first: bool,
    looks: u32,
    troubled: bool,
    fatal: Option<String>,
    asked_to_stop: Arc<AtomicBool>,
}

impl<'a, 's> Guest<'a, 's> {
    /// An engine for what is left of a run.
    pub(super) fn new(
        left: Elsewhere<'a>,
        cluster: Cluster,
        submit: &'s dyn Submit,
        rules: Rules,
        asked_to_stop: Arc<AtomicBool>,
    ) -> Self {
        let groups = left.instance().cluster().groups().iter();
        let books = Books::new(groups.map(|group| (group.name.clone(), group.count)));
        let mut places = Places::new(books.hosts());
        for attempt in left.attempts() {
            places.hold(attempt.slot, (Time(attempt.start), Time(attempt.end)));
        }
        let jobs = (0..left.jobs().len() as u32).map(|job| OwnJob::new(left.directory(job))).collect();
        let mut guest = Self {
            left,
            cluster,
            submit,
            rules,
            books,
            jobs,
            by_ticket: BTreeMap::new(),
            by_app: BTreeMap::new(),
            strays: BTreeSet::new(),
            places,
            next_phase: 0,
            wakes: BTreeSet::new(),
            now: Time::ZERO,
            is_first: true,
            looks: 0,
            troubled: false,
            fatal: None,
            asked_to_stop,
        };
        guest.find_submissions();
        guest
    }

    /// Drives what is left to its end.
    pub(super) fn run(mut self, policy: &mut dyn Policy, config: Config<'_>) -> Result<Over, EngineError> {
        let mut kept = Ends::default();
        let flows = self.left.instance().flows().len();
        let empty = self.left.instance().without_flows();
        let mut driver = Driver::new(empty, policy, &mut self, &mut kept, config);
        while driver.step() {
            let plans = Plans::of(&driver);
            driver.engine().tell(&plans);
        }
        let policy_failed = driver.close().failure;
        let interrupted = self.asked_to_stop.load(Ordering::SeqCst);
        let all_done = kept.done == flows;
        if !all_done {
            self.kill_all();
        }
        match self.fatal {
            Some(reason) => Err(EngineError::Stopped(reason)),
            None => Ok(Over { all_done, interrupted, policy_failed }),
        }
    }

    /// Submissions of an earlier session: their applications may go on.
    fn find_submissions(&mut self) {
        for (job, own) in (0..).zip(&mut self.jobs) {
            if self.left.is_done(job) {
                own.stage = Stage::Done;
                continue;
            }
            // A program ends with the session that started it: its applications are strays.
            if self.left.jobs()[job as usize].work.is_jar() {
                continue;
            }
            let names = fs::read_dir(&own.directory).into_iter().flatten().flatten();
            let last = names.filter_map(|entry| entry.file_name().into_string().ok()).max();
            if let Some(name) = last {
                self.by_ticket.insert(name.clone(), job);
                own.ticket = name;
            }
        }
    }

    /// Looks at the cluster, takes in what changed, and gives what the driver has to hear.
    fn look(&mut self, reports: &mut Vec<Report>) {
        self.now = self.left.now();
        self.books.advance(self.now);
        match self.cluster.look() {
            Ok(changes) => {
                self.trouble(None);
                for change in changes {
                    self.take_in(change);
                }
                self.ask_masters();
                self.end_programs();
                self.count_others();
            }
            Err(error) => self.trouble(Some(&error.to_string())),
        }
        for answer in self.cluster.answers() {
            self.answered(answer);
        }
        self.read_reports();
        self.books.report(reports);
        self.arrive(reports);
        // What is known of these flows has to be heard before anything of them is started.
        self.books.report(reports);
        self.is_first = false;
        self.left.happened(Happening::Tick);
    }

    fn trouble(&mut self, message: Option<&str>) {
        if self.troubled != message.is_some() {
            self.troubled = message.is_some();
            self.left.happened(Happening::Troubled(message));
        }
    }

    fn take_in(&mut self, change: Change) {
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
    fn appeared(&mut self, app: AppId) {
        let Some(known) = self.cluster.snapshot().app(app) else { return };
        let (priority, is_over) = (known.priority, known.state.is_over());
        let is_well = known.final_status == FinalStatus::Succeeded;
        let job = known.tag(JOB_TAG).and_then(|ticket| self.by_ticket.get(ticket).copied());
        let own = job.and_then(|job| self.jobs.get_mut(job as usize));
        match (job, own) {
            // One of an earlier session that was killed, or failed while nobody drove it, is tried again.
            (Some(_), Some(own)) if is_over && !is_well && own.submissions == 0 => {}
            (Some(job), Some(own)) if own.app() == Some(app) || own.may_get_app() => {
                own.stage = Stage::Runs(app);
                own.priority = priority;
                own.program.iter_mut().for_each(|program| program.add(app));
                self.by_app.insert(app, job);
            }
            _ if is_over => {}
            _ => {
                // It was submitted by a session that was killed before it knew, or for a job that is another now.
                self.strays.insert(app);
                let _ = self.cluster.kill(app);
            }
        }
    }

    fn started(&mut self, container: &Container) {
        let job = self.by_app.get(&container.id.attempt.app).copied();
        let since = container.started_ms.map_or(self.now, |ms| self.left.since_start(ms)).min(self.now);
        if let Some(own) = job.and_then(|job| self.jobs.get_mut(job as usize)) {
            own.granted.insert(container.id, since);
        }
        let kind = phase_of(container.purpose);
        let is_open =
            job.is_some_and(|job| !matches!(self.jobs[job as usize].stage, Stage::Done | Stage::Failed));
        let work = job.filter(|_| is_open).map(|job| (job, kind));
        self.books.appear(container.id, (&container.host, since), work);
        if let Some((job, Some(kind))) = work {
            self.program_began(job, kind, (container, since));
        }
    }

    fn ended(&mut self, container: &Container) {
        // Its report lies there since before it ended.
        let job = self.by_app.get(&container.id.attempt.app).copied();
        if let Some(job) = job {
            if self.jobs[job as usize].runs_program() {
                return self.program_ended(job, container);
            }
            self.read_reports_of(job);
        }
        let is_well = job.is_some_and(|job| self.jobs[job as usize].is_well(container.id));
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
    fn is_over(&mut self, app: AppId) {
        let Some(&job) = self.by_app.get(&app) else { return };
        if self.jobs[job as usize].runs_program() {
            return self.app_is_over(app, job);
        }
        self.read_reports_of(job);
        let own = &mut self.jobs[job as usize];
        if matches!(own.stage, Stage::Done | Stage::Failed) {
            return;
        }
        let known = self.cluster.snapshot().app(app);
        if known.is_some_and(|app| app.final_status == FinalStatus::Succeeded) {
            own.late = Some(Time(self.now.0 + LATE.as_micros() as u64));
            return;
        }
        self.fail_with(app, job);
    }

    /// The application of a job has ended, and the job is not done.
    fn fail_with(&mut self, app: AppId, job: u32) {
        let own = &self.jobs[job as usize];
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
        self.fail(job, &message);
    }

    /// How an application has ended, and what it says of that.
    fn end_of(&self, app: AppId) -> (AppState, &str) {
        let known = self.cluster.snapshot().app(app);
        known.map_or((AppState::Failed, ""), |app| (app.state, app.diagnostics.trim()))
    }

    /// The ResourceManager has forgotten an application: the job is submitted once more.
    fn is_gone(&mut self, app: AppId) {
        self.strays.remove(&app);
        let Some(job) = self.by_app.remove(&app) else { return };
        let own = &mut self.jobs[job as usize];
        if own.runs_program() {
            // Its program hears of that too, and has the last word.
            return self.end_app(job, app, Ok(()));
        }
        if own.app() != Some(app) {
            return;
        }
        if own.submissions >= SUBMISSIONS_MAX {
            return self.fail(job, &format!("{app}: the ResourceManager does not know it any more"));
        }
        own.stage = Stage::Waiting;
    }

    /// Counts the slots that containers hold which are not of the run.
    fn count_others(&mut self) {
        self.cluster.control.count_others(&mut self.books, self.rules.slot_mb, 0);
    }

    fn read_reports(&mut self) {
        self.looks += 1;
        let is_turn_of_all = self.looks.is_multiple_of(THERE_EVERY);
        for job in 0..self.jobs.len() as u32 {
            let Stage::Runs(app) = self.jobs[job as usize].stage else { continue };
            if self.jobs[job as usize].program.is_some() {
                continue;
            }
            let destination =
                self.submit.destination(&self.left.jobs()[job as usize], &self.jobs[job as usize]);
            if is_turn_of_all || matches!(destination, Destination::Here(_)) {
                self.read_reports_of(job);
            }
            // What a container did that ended without a row of its own.
            for kind in [PhaseKind::Map, PhaseKind::Reduce] {
                if let Some(phase) = self.books.phase_of(job, kind) {
                    self.hear_of_done(job, kind, phase);
                }
            }
            if self.jobs[job as usize].late.is_some_and(|until| until <= self.now) {
                self.fail_with(app, job);
            }
        }
    }

    /// Takes in what attempts of a job have written since the last time.
    fn read_reports_of(&mut self, job: u32) {
        let own = &mut self.jobs[job as usize];
        if matches!(own.stage, Stage::Done | Stage::Failed) {
            return;
        }
        let destination = self.submit.destination(&self.left.jobs()[job as usize], own);
        let news = match own.reports.read(&destination) {
            Ok(news) => news,
            // What does not answer now may do so later, as the cluster does.
            Err(error) if matches!(destination, Destination::There { .. }) => {
                return self.trouble(Some(&error.to_string()));
            }
            Err(error) => return self.fail(job, &error.to_string()),
        };
        for attempt in news.begun {
            let task = (phase_kind(attempt.task.kind), attempt.task.number);
            self.say_started(job, task);
        }
        for ended in news.ended {
            self.attempt_ended(job, ended);
        }
        self.finish_if_made(job);
    }

    fn say_started(&mut self, job: u32, (phase, task): (PhaseKind, u32)) {
        if self.jobs[job as usize].started.insert((phase, task)) {
            self.left.happened(Happening::Started(TaskId { job, phase, task }));
        }
    }

    fn attempt_ended(&mut self, job: u32, ended: AttemptEnded) {
        let (kind, number) = (phase_kind(ended.attempt.task.kind), ended.attempt.task.number);
        if self.jobs[job as usize].made.contains_key(&(kind, number)) {
            return;
        }
        self.say_started(job, (kind, number));
        match ended.report.clone() {
            Said::Done(_) => {
                let seconds = ended.ended.saturating_sub(ended.started) as f64 / 1e3;
                let own = &mut self.jobs[job as usize];
                own.made.insert((kind, number), ended);
                let phase = self.books.phase_of(job, kind);
                // Those of the last phase are done when the output is complete.
                let is_last = self.jobs[job as usize].is_made(&self.left.jobs()[job as usize]);
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
    fn hear_of_done(&mut self, job: u32, kind: PhaseKind, phase: PhaseId) {
        let own = &self.jobs[job as usize];
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

    fn attempt_failed(
        &mut self,
        (job, phase, task): (u32, PhaseKind, u32),
        ended: &AttemptEnded,
        message: &str,
        is_final: bool,
    ) {
        let most = u32::from(self.left.attempts_of(job));
        let own = &mut self.jobs[job as usize];
        own.complaint = Some(message.to_owned());
        own.started.remove(&(phase, task));
        let failures = own.failures.entry((phase, task)).or_default();
        *failures += 1;
        let is_final = is_final || *failures >= most;
        let (start, end) = (self.left.since_start(ended.started), self.left.since_start(ended.ended));
        let (slot, start) = self.places.take(&ended.host, (start, end));
        let failed = FailedTask { id: TaskId { job, phase, task }, slot, start, end, message };
        if let Err(error) = self.left.record_failed(&failed, is_final) {
            self.fatal.get_or_insert(error.to_string());
        }
        if is_final {
            self.give_up(job);
        }
    }

    /// A job of which every task is done is published, and its rows end.
    fn finish_if_made(&mut self, job: u32) {
        let own = &self.jobs[job as usize];
        if own.stage == Stage::Failed || !own.is_made(&self.left.jobs()[job as usize]) {
            return;
        }
        let since = |millis| self.left.since_start(millis);
        let mut made: Vec<(&(PhaseKind, u32), &AttemptEnded)> = own.made.iter().collect();
        made.sort_by_key(|(task, attempt)| (attempt.ended, **task));
        let tasks = made.iter().map(|(task, attempt)| ((task.0, task.1), *attempt));
        let tasks: Vec<MadeTask> =
            tasks.filter_map(|task| made_task((own, job), task, since, &mut self.places)).collect();
        let last = made.last().map(|((kind, task), attempt)| {
            let seconds = attempt.ended.saturating_sub(attempt.started) as f64 / 1e3;
            (TaskId { job, phase: *kind, task: *task }, seconds)
        });
        let skipped = tasks.iter().map(|task| task.outcome.skipped).sum();
        let (submit, plan) = (self.submit, &self.left.jobs()[job as usize]);
        let own = &self.jobs[job as usize];
        match self.left.finish(job, tasks, |publish| submit.publish((plan, own), publish)) {
            Ok(()) => {
                self.jobs[job as usize].end();
                if let Some((id, seconds)) = last {
                    self.left.happened(Happening::Done(id, seconds));
                }
                self.left.happened(Happening::JobDone { job, skipped });
                self.books.finish_job(job);
            }
            Err(CannotFinish::Output { output, problem }) => {
                self.fail(job, &format!("output {output}: cannot be completed: {problem}"));
            }
            Err(error) => {
                self.fatal.get_or_insert(error.to_string());
            }
        }
    }

    /// A job fails for good, and says why.
    fn fail(&mut self, job: u32, message: &str) {
        let kind = if self.left.jobs()[job as usize].maps() > 0 { PhaseKind::Map } else { PhaseKind::Reduce };
        let id = TaskId { job, phase: kind, task: 0 };
        self.say_started(job, (kind, 0));
        let message = &self.submit.words(message);
        let failed = FailedTask { id, slot: 0, start: self.now, end: self.now, message };
        if let Err(error) = self.left.record_failed(&failed, true) {
            self.fatal.get_or_insert(error.to_string());
        }
        self.give_up(job);
    }

    /// A job has failed for good: what runs of its flow is stopped.
    fn give_up(&mut self, job: u32) {
        self.left.fail(job);
        let jobs = self.jobs_of_flow_of(job);
        for &other in &jobs {
            let own = &mut self.jobs[other as usize];
            if !matches!(own.stage, Stage::Done | Stage::Failed) {
                let app = own.app();
                own.stage = Stage::Failed;
                self.stop_program(other);
                self.kill(app);
            }
        }
        self.books.fail_flow(&jobs);
    }

    /// A job and the others of its flow.
    fn jobs_of_flow_of(&self, job: u32) -> Vec<u32> {
        let flow = &self.left.jobs()[job as usize].flow;
        let of_flow = (0..).zip(self.left.jobs()).filter(|(_, plan)| plan.flow == *flow);
        of_flow.map(|(other, _)| other).collect()
    }

    fn kill(&mut self, app: Option<AppId>) {
        if let Some(app) = app {
            self.strays.insert(app);
            // One that is over needs no killing, and one that cannot be reached is tried again at the end.
            let _ = self.cluster.kill(app);
        }
    }

    /// Flows that arrive now, whose phases get the next ids of the driver.
    fn arrive(&mut self, reports: &mut Vec<Report>) {
        for flow in self.left.arriving() {
            let instance = self.left.instance();
            reports.push(Report::Arrived(Box::new(instance.excerpt(flow))));
            let mut jobs = BTreeSet::new();
            for phase in instance.flow(flow).phases() {
                let info = instance.phase(phase);
                let id = self.left.id(phase, 0);
                let tasks = info.tasks().map_or(0, Tasks::count);
                self.books.add_phase(PhaseId(self.next_phase), (id.job, id.phase), tasks);
                self.next_phase += 1;
                jobs.insert(id.job);
            }
            self.tell_of_earlier(&jobs);
        }
    }

    /// What is known already of the jobs of a flow that has arrived: they went on while nobody drove them.
    fn tell_of_earlier(&mut self, jobs: &BTreeSet<u32>) {
        if let Some(&failed) = jobs.iter().find(|&&job| self.jobs[job as usize].stage == Stage::Failed) {
            return self.books.fail_flow(&self.jobs_of_flow_of(failed));
        }
        for &job in jobs {
            if self.jobs[job as usize].stage == Stage::Done {
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

    /// Submits jobs that the driver has started, as many as may have ApplicationMasters at a time: one that is submitted
    /// has its own before any table could hold it, and those of all slots would wait for each other for ever.
    fn submit_wanted(&mut self) {
        // What was submitted before, by an earlier session too, is seen when the cluster answers.
        if self.troubled {
            return;
        }
        let most = masters_max(self.books.slots(), self.rules.am_share);
        let has_master = |own: &&OwnJob| own.stage == Stage::Submitted || own.app().is_some();
        let mut masters = self.jobs.iter().filter(has_master).count();
        for job in self.books.waiting_jobs() {
            if masters >= most {
                return;
            }
            if self.jobs[job as usize].stage == Stage::Waiting {
                self.submit(job);
                masters += 1;
            }
        }
    }

    /// Submits all jobs whose input is there.
    fn submit_ready(&mut self, plans: &Plans) {
        let jobs: BTreeSet<u32> = plans.ready.iter().filter_map(|&phase| self.books.job_of(phase)).collect();
        for job in jobs {
            if self.jobs[job as usize].stage == Stage::Waiting && !self.troubled {
                self.submit(job);
            }
        }
    }

    fn submit(&mut self, job: u32) {
        let own = &mut self.jobs[job as usize];
        self.by_ticket.remove(&own.ticket);
        own.submissions += 1;
        own.reports = Reports::default();
        own.made.clear();
        let is_jar = self.left.jobs()[job as usize].work.is_jar();
        own.program = is_jar.then(Default::default);
        let before = own.directory.clone();
        own.ticket = format!("{:013x}-{job}", crate::clock::unix_millis());
        let own = &self.jobs[job as usize];
        let request = slackline_local::elsewhere::clear(&before)
            .and_then(|()| fs::create_dir_all(own.destination()))
            .and_then(|()| self.submit.request(&self.left, job, own));
        match request {
            Ok(request) => {
                let ticket = Ticket { job, name: own.ticket.clone() };
                self.by_ticket.insert(ticket.name.clone(), job);
                let own = &mut self.jobs[job as usize];
                (own.stage, own.priority) = (Stage::Submitted, PRIORITY);
                self.cluster.submit(ticket, request, PRIORITY as u32);
            }
            Err(error) => self.fail(job, &format!("it cannot be submitted: {error}")),
        }
    }

    /// A submission was answered: this is its application, unless a look has shown it before.
    fn answered(&mut self, (ticket, answer): Answer) {
        let own = &mut self.jobs[ticket.job as usize];
        match answer {
            _ if own.ticket != ticket.name => {}
            Ok(Answered::Began(process)) => self.program_is_there(ticket.job, process),
            Ok(Answered::Ended(state)) => {
                own.program.iter_mut().for_each(|program| program.ended = Some(state.clone()));
            }
            Err(error) if own.program.is_some() && own.app().is_some() => {
                self.fail(ticket.job, &format!("its program is lost: {error}"));
            }
            _ if own.stage != Stage::Submitted => {}
            Ok(Answered::Submitted(app)) => {
                own.stage = Stage::Runs(app);
                self.by_app.insert(app, ticket.job);
            }
            Err(error) => self.fail(ticket.job, &format!("it cannot be submitted: {error}")),
        }
    }

    /// Tells the cluster what follows from the driver's decisions.
    fn tell(&mut self, plans: &Plans) {
        if self.rules.by_cluster {
            self.submit_ready(plans);
            return self.forget_what_is_over();
        }
        self.submit_wanted();
        let snapshot = self.cluster.snapshot();
        let pending = |app| pending(snapshot, app);
        let wishes = Wishes::of((&self.books, plans), &self.jobs, pending);
        if let Err(error) = self.cluster.control.publish(&wishes.rows) {
            self.fatal.get_or_insert(error.to_string());
        }
        let now = |app: &AppId| Some((*app, self.jobs[*self.by_app.get(app)? as usize].priority));
        let order: Vec<(AppId, u64)> = wishes.order.iter().filter_map(now).collect();
        for (app, priority) in priorities(&order, CHANGES_MAX) {
            if self.cluster.control.set_priority(app, priority).is_ok()
                && let Some(&job) = self.by_app.get(&app)
            {
                self.jobs[job as usize].priority = priority;
            }
        }
        self.forget_what_is_over();
    }

    /// Phases that the driver knows to be done are not looked at any more.
    fn forget_what_is_over(&mut self) {
        for (job, own) in (0..).zip(&self.jobs) {
            let phases = [PhaseKind::Map, PhaseKind::Reduce].map(|kind| self.books.phase_of(job, kind));
            let is_known = phases.iter().flatten().all(|&phase| self.books.is_done(phase));
            if own.stage == Stage::Done && is_known && phases.iter().any(Option::is_some) {
                self.books.forget_job(job);
            }
        }
    }

    /// Kills what is left of the run, and waits until it is gone.
    fn kill_all(&mut self) {
        // First of all what would submit more.
        let mut submit_more = self.stop_programs();
        self.kill_live();
        let until = self.left.now().0 + PATIENCE.as_micros() as u64;
        while self.left.now().0 < until && (submit_more || self.has_strays()) {
            pause(CYCLE);
            submit_more = self.cluster.look().is_err() && submit_more;
            for (ticket, answer) in self.cluster.answers() {
                match answer {
                    Ok(Answered::Began(process)) => self.program_is_there(ticket.job, process),
                    Ok(Answered::Ended(_)) => {}
                    Ok(Answered::Submitted(app)) => self.kill(Some(app)),
                    Err(_) => self.jobs[ticket.job as usize].stage = Stage::Failed,
                }
            }
            submit_more |= self.stop_programs();
            self.kill_live();
        }
    }

    /// Kills all applications of the run that are not over and were not killed.
    fn kill_live(&mut self) {
        let watched = &self.cluster.snapshot().watched;
        let is_live = |app: &&AppId| !watched[*app].app.state.is_over() && !self.strays.contains(*app);
        let live: Vec<AppId> = watched.keys().filter(is_live).copied().collect();
        for app in live {
            self.kill(Some(app));
        }
    }

    fn has_strays(&self) -> bool {
        let snapshot = self.cluster.snapshot();
        let submitting = self.jobs.iter().any(|own| own.stage == Stage::Submitted);
        submitting
            || self
                .strays
                .iter()
                .any(|app| snapshot.watched.get(app).is_some_and(|watched| !watched.app.state.is_over()))
    }

    /// Time until something is due by itself.
    fn patience(&self) -> Duration {
        let due = [self.left.next_release(), self.wakes.first().copied()].into_iter().flatten().min();
        until_next_look(self.now, due, CYCLE)
    }
}

/// How long to wait for the next look, if something is due by itself or nothing is: policies that want to be woken again
/// and again have the ResourceManager asked no more often than others.
pub(super) fn until_next_look(now: Time, due: Option<Time>, cycle: Duration) -> Duration {
    let until = due.map_or(cycle, |at| Duration::from_micros(at.since(now.min(at)).0));
    until.clamp(SHORTEST.min(cycle), cycle)
}

/// How many ApplicationMasters there may be on so many slots: a slot at least is for tasks.
pub(super) fn masters_max(slots: u32, share: f64) -> usize {
    ((f64::from(slots) * share) as usize).min((slots as usize).saturating_sub(1)).max(1)
}

/// The phase that a container works for.
pub(super) fn phase_of(purpose: Purpose) -> Option<PhaseKind> {
    match purpose {
        Purpose::Map | Purpose::FailedMap => Some(PhaseKind::Map),
        Purpose::Reduce => Some(PhaseKind::Reduce),
        _ => None,
    }
}

/// What an application asks for.
pub(super) fn pending(snapshot: &Snapshot, app: AppId) -> Pending {
    snapshot.watched.get(&app).map(|watched| watched.app.pending).unwrap_or_default()
}

impl Engine for Guest<'_, '_> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            batch: Batch::Task,
            // What a machine does when it dies is its application's business, which makes maps again.
            faults: Faults::Tasks,
            offers: Offers::Immediate,
            lengths: Lengths::Guessed,
            // Those that there are hold slots that are not the driver's.
            masters: None,
        }
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        if !self.is_first {
            pause(self.patience());
        }
        if self.asked_to_stop.load(Ordering::SeqCst) || self.fatal.is_some() {
            return None;
        }
        self.look(reports);
        let later = self.wakes.split_off(&Time(self.now.0 + 1));
        if !std::mem::replace(&mut self.wakes, later).is_empty() {
            reports.push(Report::Woken);
        }
        Some(self.now)
    }

    fn start(&mut self, start: &Start<'_>, _: &Instance) {
        let Start { row, phase, first, places, reported_as, .. } = *start;
        self.books.start(row, (phase, first), places[0].first, reported_as);
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Kill(row) => self.books.kill(row),
            Order::Refuse(name) => self.books.refuse(name),
            // Reduces wait for maps in their own application, which makes maps again that are lost.
            Order::Go { .. } | Order::Hold(_) => {}
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.insert(at.max(Time(self.now.0 + 1)));
    }

    fn may_bring_flows(&mut self) -> bool {
        self.left.may_bring_flows()
    }
}

/// Counts flows that are done.
#[derive(Debug, Default)]
struct Ends {
    done: usize,
}

impl Sink for Ends {
    fn row(&mut self, _: RowId, _: &NewRow, _: &[SlotRange], _: &Instance) {}

    fn flow(&mut self, flow: &FlowEnd, _: &Instance) {
        self.done += usize::from(flow.completion.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_once_waits_for_a_look_that_is_not_too_soon() {
        let until = |now, due: Option<u64>| until_next_look(Time(now), due.map(Time), CYCLE).as_millis();
        assert_eq!(until(1_000_000, None), 250);
        assert_eq!(until(1_000_000, Some(9_000_000)), 250);
        assert_eq!(until(1_000_000, Some(1_220_000)), 220);
        assert_eq!(until(1_000_000, Some(1_000_001)), 200);
        assert_eq!(until(1_000_000, Some(0)), 200);
        // Who asks for more looks gets them.
        let quick = Duration::from_millis(5);
        assert_eq!(until_next_look(Time::ZERO, Some(Time(1)), quick), quick);
    }

    #[test]
    fn masters_leave_a_slot_for_tasks() {
        assert_eq!(masters_max(8, 0.5), 4);
        assert_eq!(masters_max(8, 1.0), 7);
        assert_eq!(masters_max(8, 0.01), 1);
        assert_eq!(masters_max(2, 1.0), 1);
        // Every node is away.
        assert_eq!(masters_max(0, 0.5), 1);
    }
}
