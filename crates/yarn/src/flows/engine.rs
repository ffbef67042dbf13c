//! The engine of a policy on YARN: its decisions become rows of the table and priorities, and containers
//! become running and finished tasks.
//!
//! A job is one application. The engine submits it when its predecessors have finished and the driver has
//! started a task of it, or can start none since other applications hold all slots. The job is finished when
//! all its attempts have reported and its output is published. Later events of its application only matter
//! for the slots that it holds.
//!
//! A job with a jar and a main class is a program that submits applications itself, see `jar_programs`.

mod finish;
mod hosted_runs;
mod jar_programs;
mod observe;
mod progress;
mod submit;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use slackline_executor::engine::event::RunEvent;
use slackline_executor::engine::external_runs::ExternalRuns;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_model::draft::MachineDraft;
use slackline_model::{FlowId, Time};
use slackline_policy::engine::{Order, Start};
use slackline_policy::plans::Plans;
use slackline_task::base::clock::RunClock;

use crate::clock::Stopwatch;
use crate::cluster::capacity::Rules;
use crate::cluster::container_ledger::ContainerLedger;
use crate::cluster::control::{CYCLE, poll_delay};
use crate::cluster::desired_state::DesiredState;
use crate::cluster::fair_polling::{RoundRobin, TIME_LIMIT};
use crate::flows::applications::{FlowCluster, SubmitRequest, Ticket};
use crate::flows::attempt_reports::Destination;
use crate::flows::jobs::{FlowJob, Jobs, Retry, SlotTimeline};
use crate::flows::remote_files::may_pass;
use crate::rest::id::AppId;

pub(super) use hosted_runs::LeavingRun;

/// Polls between two reads of reports on other file systems.
const THERE_EVERY: u32 = 4;

/// Polls between two kills of the same application.
const KILL_EVERY: u32 = 8;

/// Polls after which an application of a finished job is killed if it still runs tasks.
const LATE_POLLS: u32 = 40;

/// Tries to submit a job or to publish its output while a file system does not answer.
const TRIES: u32 = 30;

/// The most submissions of a job whose applications do not finish it.
const SUBMISSIONS_MAX: u32 = 3;

/// The priority of new applications.
const PRIORITY: u64 = 1000;

/// Part files: names and paths.
pub(super) type Parts = Vec<(String, PathBuf)>;

/// Turns jobs into requests to the submitter, and their output files into the outputs of jobs.
pub(super) trait JobSubmission: Send + Sync {
    /// The request for a job. Writes the files of the job to `own.directory/own.ticket`.
    fn request(&self, runs: &ExternalRuns, job: u32, own: &FlowJob) -> io::Result<SubmitRequest>;

    /// Whether a new submission of a job would equal the earlier one, by its files.
    fn is_as_submitted(&self, runs: &ExternalRuns, job: u32, own: &FlowJob) -> bool;

    /// The directory for the attempts of a submission.
    fn destination(&self, plan: &JobPlan, own: &FlowJob) -> Destination;

    /// The parts that the program of a jar has written, by number: names, and paths of parts or placeholders.
    /// The inner error is the reason why they are not the output of the job.
    fn written_parts(
        &self,
        runs: &ExternalRuns,
        job: u32,
        own: &FlowJob,
    ) -> io::Result<Result<Parts, String>>;

    /// Publishes the output of a job, locally by `publish`.
    fn publish(
        &self,
        plan: &JobPlan,
        own: &FlowJob,
        publish: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()>;

    /// A text with the names of files that the user knows.
    fn user_text(&self, text: &str) -> String;

    /// Removes the files of a run on the cluster that are no longer needed; `owner` is the name by which its
    /// outputs are locked. Gives a warning.
    fn close(&self, jobs: &[JobPlan], owner: &str) -> Option<String>;
}

/// Time limits of the engine.
#[derive(Clone, Debug)]
pub(super) struct Timeouts {
    /// Until the next poll.
    pub(super) cycle: Duration,
    /// For requests of one kind in a poll; the next poll continues with the rest.
    pub(super) asks: Duration,
    /// At the end of a run: for killed applications and unanswered submissions.
    pub(super) end: Duration,
    /// For reports of an application that has succeeded: network file systems show a new file late.
    pub(super) late: Duration,
    /// For a turn, before a message says that it takes long.
    pub(super) silent: Duration,
    /// For an application whose submission is unconfirmed.
    pub(super) unseen: Duration,
    /// For an AM, before a warning gives YARN's reason.
    pub(super) queued: Duration,
    /// For a file system that does not answer when a job is submitted or its output published.
    pub(super) away: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            cycle: CYCLE,
            asks: TIME_LIMIT,
            end: seconds(20),
            late: seconds(60),
            silent: seconds(6),
            unseen: seconds(30),
            queued: seconds(30),
            away: seconds(300),
        }
    }
}

/// The applications of the runs.
#[derive(Default)]
struct RunApplications {
    /// Jobs by the tickets of their submissions.
    by_ticket: BTreeMap<String, u32>,
    /// Jobs by their applications.
    by_app: BTreeMap<AppId, u32>,
    active: BTreeSet<AppId>,
    /// Active applications that work for no job any more and have to be killed.
    orphans: BTreeSet<AppId>,
    /// Polls for which applications of finished jobs have run tasks.
    late_tasks: BTreeMap<AppId, u32>,
    /// Submissions without an answer.
    unanswered: BTreeSet<Ticket>,
}

/// The ids that the driver assigns.
#[derive(Default)]
struct DriverIds {
    next_flow: u32,
    next_phase: u32,
    /// By run and name of the flow.
    flows: BTreeMap<(u32, String), FlowId>,
}

/// What to begin the next poll with, so that each gets its turn.
#[derive(Default)]
struct Turns {
    /// ApplicationMasters to poll.
    ams: RoundRobin<(u32, AppId)>,
    /// Jobs whose reports are read.
    reports: RoundRobin<u32>,
    /// Applications to kill.
    kills: RoundRobin<AppId>,
}

/// Problems of the cluster, and the messages about them.
#[derive(Default)]
struct Trouble {
    /// Whether the cluster did not answer the last poll.
    is_silent: bool,
    /// Whether the last message was that something does not answer.
    is_reported: bool,
    /// Whether a message said that the cluster is full.
    is_full_reported: bool,
    /// Warnings since they were taken last.
    notices: Vec<String>,
}

/// The polls of the cluster.
struct Polls {
    count: u32,
    /// The time of the cluster's answer to the last one.
    answered_at: Stopwatch,
}

pub(super) struct FlowEngine {
    runs: ExternalRuns,
    cluster: FlowCluster,
    /// By run.
    submissions: BTreeMap<u32, Arc<dyn JobSubmission>>,
    /// The machines of the instances of flows.
    machines: Vec<MachineDraft>,
    rules: Rules,
    timeouts: Timeouts,
    ledger: ContainerLedger,
    jobs: Jobs,
    apps: RunApplications,
    places: SlotTimeline,
    driver_ids: DriverIds,
    now: Time,
    polls: Polls,
    turns: Turns,
    trouble: Trouble,
    /// The time of the next note in the journals.
    note_at: Time,
    /// By run: the error that ends it.
    fatal: BTreeMap<u32, String>,
    /// By run: the time at which its flows had ended.
    over_since: BTreeMap<u32, Time>,
}

impl FlowEngine {
    /// An engine for runs on these machines.
    pub(super) fn new(
        runs: ExternalRuns,
        cluster: FlowCluster,
        machines: Vec<MachineDraft>,
        rules: Rules,
        timeouts: Timeouts,
    ) -> Self {
        let ledger =
            ContainerLedger::new(machines.iter().map(|machine| (machine.name.clone(), machine.count)));
        let places = SlotTimeline::new(ledger.hosts());
        Self {
            runs,
            cluster,
            submissions: BTreeMap::new(),
            machines,
            rules,
            timeouts,
            ledger,
            jobs: Jobs::default(),
            apps: RunApplications::default(),
            places,
            driver_ids: DriverIds::default(),
            now: Time::ZERO,
            polls: Polls { count: 0, answered_at: Stopwatch::start() },
            turns: Turns::default(),
            trouble: Trouble::default(),
            note_at: Time::ZERO,
            fatal: BTreeMap::new(),
            over_since: BTreeMap::new(),
        }
    }

    /// Adds a run, by the number of its first job, and finds submissions of earlier sessions.
    pub(super) fn add_run(&mut self, run: u32, submit: Arc<dyn JobSubmission>) {
        for (slot, (start, end)) in self.runs.held_before(run) {
            self.places.hold(slot, start, end);
        }
        for (job, _) in self.runs.jobs_of(run) {
            self.jobs.insert(job, FlowJob::new(self.runs.directory(job)));
        }
        self.submissions.insert(run, submit);
        self.find_submissions(run);
    }

    fn submission_of(&self, job: u32) -> Arc<dyn JobSubmission> {
        self.submissions[&self.runs.run_of(job)].clone()
    }

    /// Ends the run of a job with an error.
    fn abort_run(&mut self, job: u32, why: &dyn Display) {
        self.fatal.entry(self.runs.run_of(job)).or_insert_with(|| why.to_string());
    }

    fn warn(&mut self, warning: &str) {
        self.runs.happened(RunEvent::Warning(warning.to_owned()));
        self.trouble.notices.push(warning.to_owned());
    }

    /// Schedules a retry of a failed step, while a file system does not answer; false when the time for
    /// retries is over.
    fn schedule_retry(&mut self, job: u32, error: &io::Error) -> bool {
        if !may_pass(error) {
            return false;
        }
        let after = |span: Duration| Time(self.now.0 + span.as_micros() as u64);
        let (next, until) = (after(self.timeouts.away / TRIES), after(self.timeouts.away));
        let before = self.jobs[job].retry.take();
        let until = before.map_or(until, |before| before.until);
        self.jobs[job].retry = Some(Retry { next, until, problem: error.to_string() });
        self.now < until
    }

    fn trouble(&mut self, message: Option<&str>) {
        if self.trouble.is_reported != message.is_some() {
            self.trouble.is_reported = message.is_some();
            self.runs.happened(RunEvent::EngineUnreachable(message.map(str::to_owned)));
            let state = message
                .map_or("it answers again".to_owned(), |message| format!("it does not answer: {message}"));
            self.trouble.notices.push(format!("the cluster: {state}"));
        }
    }

    /// Writes the driver's decisions to the cluster: submissions, rows of the table, and priorities.
    pub(super) fn apply_plans(&mut self, plans: &Plans) {
        if self.rules.by_cluster {
            self.submit_ready(plans);
            return self.forget_finished_jobs();
        }
        self.submit_started(plans);
        let snapshot = self.cluster.snapshot();
        let apps = self.jobs.open_apps();
        let mut desired = DesiredState::of(&self.ledger, plans, &apps, |app| snapshot.pending(app));
        self.hold_rows(&mut desired.rows);
        if let Some(warning) = self.cluster.control.publish(&desired.rows) {
            self.warn(&warning);
        }
        let now = |app: &AppId| Some((*app, self.jobs[*self.apps.by_app.get(app)?].priority));
        let order: Vec<(AppId, u64)> = desired.order.iter().filter_map(now).collect();
        let (changed, warning) = self.cluster.control.set_order(&order);
        for (app, priority) in changed {
            if let Some(&job) = self.apps.by_app.get(&app) {
                self.jobs[job].priority = priority;
            }
        }
        if let Some(warning) = warning {
            self.warn(&warning);
        }
        self.forget_finished_jobs();
    }

    /// The time until the next poll is due; `wake` is when the driver wants a report.
    pub(super) fn time_to_next_poll(&self, wake: Option<Time>) -> Duration {
        if self.polls.count == 0 {
            return Duration::ZERO;
        }
        let due = [self.runs.next_release(), wake].into_iter().flatten().min();
        poll_delay(self.now, due, self.timeouts.cycle)
    }

    pub(super) fn start(&mut self, start: &Start<'_>) {
        self.ledger.start(start);
    }

    pub(super) fn order(&mut self, order: Order) {
        self.ledger.order(order);
    }

    pub(super) fn clock(&self) -> RunClock {
        self.runs.clock()
    }

    pub(super) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }
}
