//! The engine: decisions go out as rows of the table and as priorities, containers come back as tasks that run and end.
//!
//! A job is one application, submitted when its predecessors are done and the driver has started a task of it, or can start
//! none as others hold all slots. It is done when all its attempts have reported so and its output is published; what its
//! application does after that is of no interest but for the slots that it holds.
//!
//! A job that is given by jar and main class is a program which submits applications by itself, see `jar_programs`.

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
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slackline_local::elsewhere::{Elsewhere, Over};
use slackline_local::run::{EngineError, Left};
use slackline_local::{Happening, JobPlan};
use slackline_model::draft::MachineDraft;
use slackline_model::schedule::NewRow;
use slackline_model::{FlowId, Instance, SlotRange, Time};
use slackline_policy::engine::{Batch, Capabilities, Faults, Lengths, Offers, Order, Report, RowId, Start};
use slackline_policy::log::{FlowEnd, Sink};
use slackline_policy::plans::Plans;
use slackline_policy::{Driver, Engine};

use crate::clock::{Stopwatch, pause};
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

/// How often reports on other file systems than that of this machine are looked for, in looks.
const THERE_EVERY: u32 = 4;

/// How often applications are killed again that have to go, in looks.
const KILL_EVERY: u32 = 8;

/// After how many looks an application is killed whose job is done and that still runs tasks.
const LATE_POLLS: u32 = 40;

/// How often it is tried to submit a job or to publish its output where a file system does not answer.
const TRIES: u32 = 30;

/// How often a job is submitted whose applications do not do it.
const SUBMISSIONS_MAX: u32 = 3;

/// The priority of applications that are submitted.
const PRIORITY: u64 = 1000;

/// Part files: their names, and where they are.
pub(super) type Parts = Vec<(String, PathBuf)>;

/// How jobs are submitted.
pub(super) trait JobSubmission {
    /// What the submitter is told of a job, whose files are written to `own.directory/own.ticket`.
    fn request(&self, runs: &Elsewhere<'_>, job: u32, own: &FlowJob) -> io::Result<SubmitRequest>;

    /// Whether a job would be submitted now as it was, by the files of its submission.
    fn is_as_submitted(&self, runs: &Elsewhere<'_>, job: u32, own: &FlowJob) -> bool;

    /// Where the attempts of its submission write.
    fn destination(&self, plan: &JobPlan, own: &FlowJob) -> Destination;

    /// The parts that the program of a jar has made, by their numbers: their names, and where they or their placeholders are;
    /// or what is wrong with them.
    fn made(&self, runs: &Elsewhere<'_>, job: u32, own: &FlowJob) -> io::Result<Result<Parts, String>>;

    /// Puts the output of a job in its place, here by `publish`.
    fn publish(
        &self,
        plan: &JobPlan,
        own: &FlowJob,
        publish: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()>;

    /// A text in which files have the names that the reader knows.
    fn user_text(&self, text: &str) -> String;

    /// Gives up what is there of a run that does not need it any more, by the name by which its outputs are known. What it
    /// gives is a warning.
    fn close(&self, jobs: &[JobPlan], owner: &str) -> Option<String>;
}

/// How long the engine waits for what.
#[derive(Clone, Debug)]
pub(super) struct Timeouts {
    /// For the next look.
    pub(super) cycle: Duration,
    /// For answers of a kind at a look: who has no time is first at the next.
    pub(super) asks: Duration,
    /// For applications that were killed, and submissions that are under way, at the end of the run.
    pub(super) end: Duration,
    /// For reports of an application that has succeeded: file systems of several machines show a file later than it was
    /// written.
    pub(super) late: Duration,
    /// For an application of which nobody knows whether it was submitted.
    pub(super) unseen: Duration,
    /// For an ApplicationMaster, before a warning gives the reason why there is none.
    pub(super) queued: Duration,
    /// For a file system that does not answer while a job is submitted or its output published.
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
            unseen: seconds(30),
            queued: seconds(30),
            away: seconds(300),
        }
    }
}

pub(super) struct FlowEngine<'o> {
    runs: Elsewhere<'o>,
    cluster: FlowCluster,
    /// By run: how its jobs are submitted.
    submits: BTreeMap<u32, Rc<dyn JobSubmission + 'o>>,
    /// The machines that flows are told of.
    machines: Vec<MachineDraft>,
    rules: Rules,
    timeouts: Timeouts,
    ledger: ContainerLedger,
    jobs: Jobs,
    by_ticket: BTreeMap<String, u32>,
    by_app: BTreeMap<AppId, u32>,
    /// Applications of the run that nobody has seen to be over.
    live: BTreeSet<AppId>,
    /// Of these: those that have to go, as they do no job's work any more.
    orphans: BTreeSet<AppId>,
    /// For how many looks applications of jobs that are done have run tasks.
    late_tasks: BTreeMap<AppId, u32>,
    /// Submissions that were not answered yet.
    unanswered: BTreeSet<Ticket>,
    places: SlotTimeline,
    /// The ids that the driver gives to the next flow and the next phase.
    next_flow: u32,
    next_phase: u32,
    /// By run and name: what the driver calls a flow.
    flows: BTreeMap<(u32, String), FlowId>,
    wakes: BTreeSet<Time>,
    now: Time,
    polls: u32,
    /// Since when the cluster has answered at this look.
    polled_at: Stopwatch,
    /// Whose ApplicationMaster is asked first, whose reports are read first, and who is killed first.
    am_turn: RoundRobin<(u32, AppId)>,
    reports_turn: RoundRobin<u32>,
    kills_turn: RoundRobin<AppId>,
    /// Whether the cluster did not answer when it was last looked at.
    is_silent: bool,
    /// Whether it was said last that something does not answer.
    troubled: bool,
    /// Whether it was said that others hold all slots.
    warned_of_full_cluster: bool,
    /// When it is next written down what the cluster does.
    note_at: Time,
    /// By run: why it cannot go on.
    fatal: BTreeMap<u32, String>,
    /// By run: since when its flows are over.
    over_since: BTreeMap<u32, Time>,
    /// What somebody should know, where runs come and go.
    notices: Option<Vec<String>>,
    asked_to_stop: Arc<AtomicBool>,
}

impl<'o> FlowEngine<'o> {
    /// An engine for runs on these machines.
    pub(super) fn new(
        runs: Elsewhere<'o>,
        cluster: FlowCluster,
        machines: Vec<MachineDraft>,
        rules: Rules,
        timeouts: Timeouts,
        asked_to_stop: Arc<AtomicBool>,
    ) -> Self {
        let ledger =
            ContainerLedger::new(machines.iter().map(|machine| (machine.name.clone(), machine.count)));
        let places = SlotTimeline::new(ledger.hosts());
        Self {
            runs,
            cluster,
            submits: BTreeMap::new(),
            machines,
            rules,
            timeouts,
            ledger,
            jobs: Jobs::default(),
            by_ticket: BTreeMap::new(),
            by_app: BTreeMap::new(),
            live: BTreeSet::new(),
            orphans: BTreeSet::new(),
            late_tasks: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            places,
            next_flow: 0,
            next_phase: 0,
            flows: BTreeMap::new(),
            wakes: BTreeSet::new(),
            now: Time::ZERO,
            polls: 0,
            polled_at: Stopwatch::start(),
            am_turn: RoundRobin::default(),
            reports_turn: RoundRobin::default(),
            kills_turn: RoundRobin::default(),
            is_silent: false,
            troubled: false,
            warned_of_full_cluster: false,
            note_at: Time::ZERO,
            fatal: BTreeMap::new(),
            over_since: BTreeMap::new(),
            notices: None,
            asked_to_stop,
        }
    }

    /// Takes a run that is among those left, by the number of its first job, and finds what earlier sessions have submitted.
    pub(super) fn add_run(&mut self, run: u32, submit: Rc<dyn JobSubmission + 'o>) {
        for (slot, (start, end)) in self.runs.held_before(run) {
            self.places.hold(slot, start, end);
        }
        for (job, _) in self.runs.jobs_of(run) {
            self.jobs.insert(job, FlowJob::new(self.runs.directory(job)));
        }
        self.submits.insert(run, submit);
        self.find_submissions(run);
    }

    /// How a job is submitted.
    fn submit_of(&self, job: u32) -> Rc<dyn JobSubmission + 'o> {
        self.submits[&self.runs.run_of(job)].clone()
    }

    /// The run of a job cannot go on.
    fn abort_run(&mut self, job: u32, why: &dyn Display) {
        self.fatal.entry(self.runs.run_of(job)).or_insert_with(|| why.to_string());
    }

    fn warn(&mut self, warning: &str) {
        self.runs.happened(Happening::Warned(warning));
        self.notices.iter_mut().for_each(|notices| notices.push(warning.to_owned()));
    }

    /// Drives what is left to its end.
    pub(super) fn run(mut self, left: Left<'_>) -> Result<Over, EngineError> {
        let Left { instance, policy, config } = left;
        let mut nowhere = NoSink;
        let mut driver = Driver::new(instance.without_flows(), policy, &mut self, &mut nowhere, config);
        while driver.step() {
            let plans = Plans::of(&driver);
            driver.engine().apply_plans(&plans);
        }
        let policy_failed = driver.close().failure;
        let interrupted = self.asked_to_stop.load(Ordering::SeqCst);
        let all_done = self.runs.runs().all(|run| self.runs.all_done(run));
        self.end_applications(all_done);
        match self.fatal.pop_first() {
            Some((_, reason)) => Err(EngineError::Stopped(reason)),
            None => Ok(Over { all_done, interrupted, policy_failed }),
        }
    }

    /// Whether what failed of a job is tried again later: where a file system does not answer, for some time.
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
        if self.troubled != message.is_some() {
            self.troubled = message.is_some();
            self.runs.happened(Happening::Troubled(message));
            let state = message
                .map_or("it answers again".to_owned(), |message| format!("it does not answer: {message}"));
            self.notices.iter_mut().for_each(|all| all.push(format!("the cluster: {state}")));
        }
    }

    /// Tells the cluster what follows from the driver's decisions.
    pub(super) fn apply_plans(&mut self, plans: &Plans) {
        if self.rules.by_cluster {
            self.submit_ready(plans);
            return self.forget_finished_jobs();
        }
        self.submit_wanted(plans);
        let snapshot = self.cluster.snapshot();
        let apps = self.jobs.open_apps();
        let mut desired = DesiredState::of(&self.ledger, plans, &apps, |app| snapshot.pending(app));
        self.hold_rows(&mut desired.rows);
        if let Some(warning) = self.cluster.control.publish(&desired.rows) {
            self.warn(&warning);
        }
        let now = |app: &AppId| Some((*app, self.jobs[*self.by_app.get(app)?].priority));
        let order: Vec<(AppId, u64)> = desired.order.iter().filter_map(now).collect();
        let (changed, warning) = self.cluster.control.set_order(&order);
        for (app, priority) in changed {
            if let Some(&job) = self.by_app.get(&app) {
                self.jobs[job].priority = priority;
            }
        }
        if let Some(warning) = warning {
            self.warn(&warning);
        }
        self.forget_finished_jobs();
    }

    /// Time until something is due by itself.
    fn time_to_next_poll(&self) -> Duration {
        let due = [self.runs.next_release(), self.wakes.first().copied()].into_iter().flatten().min();
        poll_delay(self.now, due, self.timeouts.cycle)
    }
}

impl Engine for FlowEngine<'_> {
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
        if self.polls > 0 {
            pause(self.time_to_next_poll());
        }
        let has_failed = self.notices.is_none() && !self.fatal.is_empty();
        if self.asked_to_stop.load(Ordering::SeqCst) || has_failed {
            return None;
        }
        self.poll_cluster(reports);
        let later = self.wakes.split_off(&Time(self.now.0 + 1));
        if !std::mem::replace(&mut self.wakes, later).is_empty() {
            reports.push(Report::Woken);
        }
        Some(self.now)
    }

    fn start(&mut self, start: &Start<'_>, _: &Instance) {
        let Start { row, phase, first, places, reported_as, .. } = *start;
        self.ledger.start(row, phase, first, places[0].first, reported_as);
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Kill(row) => self.ledger.kill(row),
            Order::Refuse(name) => self.ledger.refuse(name),
            // Reduces wait for maps in their own application, which makes maps again that are lost.
            Order::Go { .. } | Order::Hold(_) => {}
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.insert(at.max(Time(self.now.0 + 1)));
    }

    fn may_bring_flows(&mut self) -> bool {
        self.runs.may_bring_flows()
    }
}

/// Rows and flows are in journals.
struct NoSink;

impl Sink for NoSink {
    fn row(&mut self, _: RowId, _: &NewRow, _: &[SlotRange], _: &Instance) {}

    fn flow(&mut self, _: &FlowEnd, _: &Instance) {}
}
