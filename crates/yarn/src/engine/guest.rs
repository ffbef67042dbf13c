//! The engine: decisions go out as rows of the table and as priorities, containers come back as tasks that run and end.
//!
//! A job is one application, submitted when its predecessors are done and the driver has started a task of it, or can start
//! none as others hold all slots. It is done when all its attempts have reported so and its output is published; what its
//! application does after that is of no interest but for the slots that it holds.
//!
//! A job that is given by jar and main class is a program which submits applications by itself, see `jars`.

mod ending;
mod jars;
mod looking;
mod noting;
mod several;
mod submitting;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slackline_executor::engine::external_runs::{Elsewhere, ExternalEnd};

use slackline_executor::engine::Happening;
use slackline_executor::engine::backend::RemainingWork;
use slackline_executor::run::error::EngineError;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_model::draft::MachineDraft;
use slackline_model::schedule::NewRow;
use slackline_model::{FlowId, Instance, PhaseKind, SlotRange, Time};
use slackline_policy::engine::{Batch, Capabilities, Faults, Lengths, Offers, Order, Report, RowId, Start};
use slackline_policy::log::{FlowEnd, Sink};
use slackline_policy::plans::Plans;
use slackline_policy::{Driver, Engine};

use super::books::Books;
use super::cluster::{Cluster, Request, Ticket};
use super::jobs::{Jobs, OwnJob, Places, Retry};
use super::remote::may_pass;
use super::reports::Destination;
use super::wishes::Wishes;
use crate::clock::{Stopwatch, pause};
use crate::id::AppId;
use crate::observe::Snapshot;
use crate::rest::{Pending, Purpose};
use crate::round::{LASTS, Turn};

pub(super) use several::Parted;

/// How long the engine waits between two looks.
pub(super) const CYCLE: Duration = Duration::from_millis(250);

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(200);

/// How often reports on other file systems than that of this machine are looked for, in looks.
const THERE_EVERY: u32 = 4;

/// The most priorities that are changed after a look: each is written to the ResourceManager's state store.
pub(super) const CHANGES_MAX: usize = 5;

/// How often applications are killed again that have to go, in looks.
const KILL_EVERY: u32 = 8;

/// After how many looks an application is killed whose job is done and that still runs tasks.
const LATE_LOOKS: u32 = 40;

/// How often it is tried to submit a job or to publish its output where a file system does not answer.
const TRIES: u32 = 30;

/// How often a job is submitted whose applications do not do it.
const SUBMISSIONS_MAX: u32 = 3;

/// The priority of applications that are submitted.
const PRIORITY: u64 = 1000;

/// Part files: their names, and where they are.
pub(super) type Parts = Vec<(String, PathBuf)>;

/// How jobs are submitted.
pub(super) trait Submit {
    /// What the submitter is told of a job, whose files are written to `own.directory/own.ticket`.
    fn request(&self, left: &Elsewhere<'_>, job: u32, own: &OwnJob) -> io::Result<Request>;

    /// Whether a job would be submitted now as it was, by the files of its submission.
    fn is_as_submitted(&self, left: &Elsewhere<'_>, job: u32, own: &OwnJob) -> bool;

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

    /// Gives up what is there of a run that does not need it any more, by the name by which its outputs are known. What it
    /// gives is a warning.
    fn close(&self, jobs: &[JobPlan], owner: &str) -> Option<String>;
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

/// How long the engine waits for what.
#[derive(Clone, Debug)]
pub(super) struct Pace {
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

impl Default for Pace {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            cycle: CYCLE,
            asks: LASTS,
            end: seconds(20),
            late: seconds(60),
            unseen: seconds(30),
            queued: seconds(30),
            away: seconds(300),
        }
    }
}

pub(super) struct Guest<'o> {
    left: Elsewhere<'o>,
    cluster: Cluster,
    /// By run: how its jobs are submitted.
    submits: BTreeMap<u32, Rc<dyn Submit + 'o>>,
    /// The machines that flows are told of.
    machines: Vec<MachineDraft>,
    rules: Rules,
    pace: Pace,
    books: Books,
    jobs: Jobs,
    by_ticket: BTreeMap<String, u32>,
    by_app: BTreeMap<AppId, u32>,
    /// Applications of the run that nobody has seen to be over.
    live: BTreeSet<AppId>,
    /// Of these: those that have to go, as they do no job's work any more.
    strays: BTreeSet<AppId>,
    /// For how many looks applications of jobs that are done have run tasks.
    late_tasks: BTreeMap<AppId, u32>,
    /// Submissions that were not answered yet.
    unanswered: BTreeSet<Ticket>,
    places: Places,
    /// The ids that the driver gives to the next flow and the next phase.
    next_flow: u32,
    next_phase: u32,
    /// By run and name: what the driver calls a flow.
    flows: BTreeMap<(u32, String), FlowId>,
    wakes: BTreeSet<Time>,
    now: Time,
    looks: u32,
    /// Since when the cluster has answered at this look.
    looked: Stopwatch,
    /// Whose ApplicationMaster is asked first, whose reports are read first, and who is killed first.
    masters_turn: Turn<(u32, AppId)>,
    reports_turn: Turn<u32>,
    kills_turn: Turn<AppId>,
    /// Whether the cluster did not answer when it was last looked at.
    is_silent: bool,
    /// Whether it was said last that something does not answer.
    troubled: bool,
    /// Whether it was said that others hold all slots.
    fullness_is_said: bool,
    /// When it is next written down what the cluster does.
    note_at: Time,
    /// By run: why it cannot go on.
    fatal: BTreeMap<u32, String>,
    /// By run: since when its flows are over.
    over_since: BTreeMap<u32, Time>,
    /// What somebody should know, where runs come and go.
    said: Option<Vec<String>>,
    asked_to_stop: Arc<AtomicBool>,
}

impl<'o> Guest<'o> {
    /// An engine for runs on these machines.
    pub(super) fn new(
        left: Elsewhere<'o>,
        cluster: Cluster,
        machines: Vec<MachineDraft>,
        (rules, pace): (Rules, Pace),
        asked_to_stop: Arc<AtomicBool>,
    ) -> Self {
        let books = Books::new(machines.iter().map(|machine| (machine.name.clone(), machine.count)));
        let places = Places::new(books.hosts());
        Self {
            left,
            cluster,
            submits: BTreeMap::new(),
            machines,
            rules,
            pace,
            books,
            jobs: Jobs::default(),
            by_ticket: BTreeMap::new(),
            by_app: BTreeMap::new(),
            live: BTreeSet::new(),
            strays: BTreeSet::new(),
            late_tasks: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            places,
            next_flow: 0,
            next_phase: 0,
            flows: BTreeMap::new(),
            wakes: BTreeSet::new(),
            now: Time::ZERO,
            looks: 0,
            looked: Stopwatch::start(),
            masters_turn: Turn::default(),
            reports_turn: Turn::default(),
            kills_turn: Turn::default(),
            is_silent: false,
            troubled: false,
            fullness_is_said: false,
            note_at: Time::ZERO,
            fatal: BTreeMap::new(),
            over_since: BTreeMap::new(),
            said: None,
            asked_to_stop,
        }
    }

    /// Takes a run that is among those left, by the number of its first job, and finds what earlier sessions have submitted.
    pub(super) fn take(&mut self, run: u32, submit: Rc<dyn Submit + 'o>) {
        for (slot, held) in self.left.held_before(run) {
            self.places.hold(slot, held);
        }
        for (job, _) in self.left.jobs_of(run) {
            self.jobs.insert(job, OwnJob::new(self.left.directory(job)));
        }
        self.submits.insert(run, submit);
        self.find_submissions(run);
    }

    /// How a job is submitted.
    fn submit_of(&self, job: u32) -> Rc<dyn Submit + 'o> {
        self.submits[&self.left.run_of(job)].clone()
    }

    /// The run of a job cannot go on.
    fn cannot_go_on(&mut self, job: u32, why: &dyn Display) {
        self.fatal.entry(self.left.run_of(job)).or_insert_with(|| why.to_string());
    }

    fn warn(&mut self, warning: &str) {
        self.left.happened(Happening::Warned(warning));
        self.said.iter_mut().for_each(|said| said.push(warning.to_owned()));
    }

    /// Drives what is left to its end.
    pub(super) fn run(mut self, left: RemainingWork<'_>) -> Result<ExternalEnd, EngineError> {
        let RemainingWork { instance, policy, config } = left;
        let mut nowhere = Nowhere;
        let mut driver = Driver::new(instance.without_flows(), policy, &mut self, &mut nowhere, config);
        while driver.step() {
            let plans = Plans::of(&driver);
            driver.engine().tell(&plans);
        }
        let policy_failed = driver.close().failure;
        let interrupted = self.asked_to_stop.load(Ordering::SeqCst);
        let all_done = self.left.runs().all(|run| self.left.all_done(run));
        self.end_applications(all_done);
        match self.fatal.pop_first() {
            Some((_, reason)) => Err(EngineError::Stopped(reason)),
            None => Ok(ExternalEnd { all_done, interrupted, policy_failed }),
        }
    }

    /// Whether what failed of a job is tried again later: where a file system does not answer, for some time.
    fn tries_later(&mut self, job: u32, error: &io::Error) -> bool {
        if !may_pass(error) {
            return false;
        }
        let after = |span: Duration| Time(self.now.0 + span.as_micros() as u64);
        let (next, until) = (after(self.pace.away / TRIES), after(self.pace.away));
        let before = self.jobs[job].retry.take();
        let until = before.map_or(until, |before| before.until);
        self.jobs[job].retry = Some(Retry { next, until, problem: error.to_string() });
        self.now < until
    }

    fn trouble(&mut self, message: Option<&str>) {
        if self.troubled != message.is_some() {
            self.troubled = message.is_some();
            self.left.happened(Happening::Troubled(message));
            let said = message
                .map_or("it answers again".to_owned(), |message| format!("it does not answer: {message}"));
            self.said.iter_mut().for_each(|all| all.push(format!("the cluster: {said}")));
        }
    }

    /// Tells the cluster what follows from the driver's decisions.
    pub(super) fn tell(&mut self, plans: &Plans) {
        if self.rules.by_cluster {
            self.submit_ready(plans);
            return self.forget_what_is_over();
        }
        self.submit_wanted(plans);
        let snapshot = self.cluster.snapshot();
        let pending = |app| pending(snapshot, app);
        let mut wishes = Wishes::of((&self.books, plans), &self.jobs, pending);
        self.hold_rows(&mut wishes.rows);
        if let Some(warning) = self.cluster.control.publish(&wishes.rows) {
            self.warn(&warning);
        }
        let now = |app: &AppId| Some((*app, self.jobs[*self.by_app.get(app)?].priority));
        let order: Vec<(AppId, u64)> = wishes.order.iter().filter_map(now).collect();
        let (changed, warning) = self.cluster.control.set_order(&order);
        for (app, priority) in changed {
            if let Some(&job) = self.by_app.get(&app) {
                self.jobs[job].priority = priority;
            }
        }
        if let Some(warning) = warning {
            self.warn(&warning);
        }
        self.forget_what_is_over();
    }

    /// Time until something is due by itself.
    fn patience(&self) -> Duration {
        let due = [self.left.next_release(), self.wakes.first().copied()].into_iter().flatten().min();
        until_next_look(self.now, due, self.pace.cycle)
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

impl Engine for Guest<'_> {
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
        if self.looks > 0 {
            pause(self.patience());
        }
        let has_failed = self.said.is_none() && !self.fatal.is_empty();
        if self.asked_to_stop.load(Ordering::SeqCst) || has_failed {
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

/// Rows and flows are in journals.
struct Nowhere;

impl Sink for Nowhere {
    fn row(&mut self, _: RowId, _: &NewRow, _: &[SlotRange], _: &Instance) {}

    fn flow(&mut self, _: &FlowEnd, _: &Instance) {}
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
