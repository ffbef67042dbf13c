//! Runs a policy's decisions as worker processes in real time. A finished attempt is committed by renaming
//! its output.
//!
//! It takes no scheduling decision: it starts the tasks that the driver names on the machines of a fleet, and
//! reports the results. The engine records a successful attempt in the journal, moves its output into place,
//! and only then reports it. So every later task finds that output. Results that wait for the engine are
//! recorded together.

pub(crate) mod admission;
pub(crate) mod arrivals;
pub mod backend;
pub(crate) mod dir_pool;
pub(crate) mod ending;
pub mod event;
pub mod external_runs;
pub(crate) mod failing;
pub(crate) mod hosted;
pub(crate) mod logs;
pub(crate) mod lost_output;
pub(crate) mod machine_changes;
pub mod machines;
pub mod process_session;
pub mod shared;
pub(crate) mod speculation;
pub mod this_machine;
pub(crate) mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::time::Duration;

use slackline_model::{Cluster, FlowId, MachineId, PhaseKind, Span, Time};
use slackline_policy::engine::{Order, Report, RowId};
use slackline_task::base::clock::RunClock;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::Capacity;
use slackline_task::process::spec::{Spec, Task};
use slackline_task::process::worker_command::WorkerCommand;

use crate::engine::arrivals::{Arrivals, PendingArrivals};
use crate::engine::dir_pool::DirPool;
use crate::engine::event::{EventCallback, RunEvent};
use crate::engine::work::Work;
use crate::fleet::{Assignment, Fleet};
use crate::run::Session;
use crate::spec::job_plan::JobPlan;
use crate::store::journal::Attempt;
use crate::store::pid_file::{PROGRESS, PidFile};
use crate::store::running_attempt::{AttemptProgress, RunningAttempt};

/// The longest the engine sleeps, so that observers see time go by.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// How attempts are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How workers are started.
    pub worker: WorkerCommand,
    /// Memory for the buffers of an attempt, bytes.
    pub memory_bytes: u64,
    /// An attempt that takes longer is killed and counts as failed.
    pub timeout: Option<Span>,
    /// Whether slots that the policy leaves idle try tasks a second time that take much longer than others of
    /// their phase.
    pub speculate: bool,
    /// Whether attempts work on several machines, which see late what others have written.
    pub spread: bool,
}

/// Memory for the buffers of an attempt where nothing else is asked for, bytes.
const MEMORY_BYTES: u64 = 64 << 20;

impl Settings {
    /// Attempts as processes that are started like this, with 64 MiB of buffers, no time limit and no
    /// speculative attempts beside slow ones.
    pub fn new(worker: WorkerCommand) -> Self {
        Self { worker, memory_bytes: MEMORY_BYTES, timeout: None, speculate: false, spread: false }
    }
}

/// How far an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has its slot, and waits for the maps of its job.
    Held,
    /// The attempt has its slot, and waits for a time or for free resources of its machine.
    Waiting,
    /// It has its slot, and waits for lost maps that run again.
    Starved,
    /// Its fleet has it.
    AtWork,
    /// The machine of the attempt left with it.
    Gone,
    /// It has finished, and the driver learns that when the lost tasks of its job have run again.
    Finished,
}

/// An attempt that runs, or waits.
struct Running {
    number: u64,
    id: TaskId,
    slot: u32,
    /// Since when it has its slot.
    start: Time,
    /// Since when it runs.
    began: Time,
    stage: Stage,
    /// It does not start before.
    not_before: Time,
    /// Why it was killed, if it was.
    killed: Option<String>,
    /// A speculative attempt of the same task, on a slot that the policy leaves idle.
    second: Option<Box<Running>>,
    /// Whether a speculative attempt has failed; another one is not worth its while.
    second_failed: bool,
    progress: AttemptProgress,
    /// Shows its progress in the state directory.
    shown: Option<PidFile>,
}

impl Running {
    fn new(number: u64, id: TaskId, slot: u32, start: Time) -> Self {
        Self {
            number,
            id,
            slot,
            start,
            began: start,
            stage: Stage::Held,
            not_before: Time::ZERO,
            killed: None,
            second: None,
            second_failed: false,
            progress: AttemptProgress::default(),
            shown: None,
        }
    }

    fn is_at_work(&self) -> bool {
        self.stage == Stage::AtWork
    }

    /// The displayed data of the attempt.
    fn document(&self) -> RunningAttempt {
        let Self { number, id, slot, start, progress, .. } = *self;
        RunningAttempt { progress, ..RunningAttempt::on_slot(number, id, slot, start.0) }
    }

    /// Whether it has its slot and waits for lost tasks of a job.
    fn waits_for_lost(&self, job: u32) -> bool {
        self.id.job == job && matches!(self.stage, Stage::Starved | Stage::Finished)
    }
}

/// The machines of a run. Others may join them.
struct RunMachines {
    cluster: Cluster,
    /// By machine of the fleet: its id in the cluster.
    ids: BTreeMap<MachineId, MachineId>,
    capacities: BTreeMap<MachineId, Capacity>,
    /// Whether a job states what its attempts take of their machine.
    is_demand_declared: bool,
    /// Machines that have left.
    away: BTreeSet<MachineId>,
    /// Files of attempts on machines that have left.
    left_behind: machine_changes::LeftBehind,
}

/// Failures and results of the tasks of a run.
#[derive(Default)]
struct TaskCounts {
    /// The number of failures of each task that has failed.
    failures: BTreeMap<TaskId, u16>,
    /// The time before which a failed task may not start again.
    not_before: BTreeMap<TaskId, Time>,
    /// By job and phase: the number of finished tasks, and their total duration in microseconds.
    took: BTreeMap<(u32, PhaseKind), (u32, u64)>,
    /// By job: the number of records that its tasks could not use.
    skipped: BTreeMap<u32, u64>,
}

/// Attempts that continue although the driver drops their rows; see `hosted`.
#[derive(Default)]
struct Handover {
    /// Attempts whose rows the driver is about to drop.
    promised: BTreeSet<u64>,
    /// Attempts without a row.
    attempts: BTreeMap<u64, Running>,
    /// The reports of those that have ended since.
    ended: BTreeMap<u64, Result<slackline_task::process::report::Report, String>>,
}

/// The attempts of a run.
struct Attempts {
    next_number: u64,
    running: BTreeMap<RowId, Running>,
    /// The rows of running attempts, by their numbers.
    rows: BTreeMap<u64, RowId>,
    /// Rows whose attempt waits to start, in the order in which they do.
    queue: VecDeque<RowId>,
    /// Attempts that were stopped and have not ended yet, with their slots.
    leaving: BTreeMap<u64, (TaskId, u32)>,
    /// Attempts that ended and are not in the journal yet.
    records: Vec<Attempt>,
}

impl Attempts {
    /// After the attempts of a journal.
    fn after(journal: &[Attempt]) -> Self {
        Self {
            next_number: journal.last().map_or(0, |last| last.number + 1),
            running: BTreeMap::new(),
            rows: BTreeMap::new(),
            queue: VecDeque::new(),
            leaving: BTreeMap::new(),
            records: Vec::new(),
        }
    }
}

/// The parts of outputs that are not written yet.
struct OpenParts {
    /// By job: how many of the tasks that write its output are not done.
    parts: Vec<u32>,
    /// By flow: its jobs, which follow each other.
    jobs_of: BTreeMap<String, Range<usize>>,
}

impl OpenParts {
    fn of(work: &Work) -> Self {
        let jobs = &work.session.jobs;
        let mut parts: Vec<u32> = jobs.iter().map(JobPlan::parts).collect();
        for id in work.done.iter().filter(|id| jobs[id.job as usize].is_final(**id)) {
            parts[id.job as usize] -= 1;
        }
        let mut jobs_of: BTreeMap<String, Range<usize>> = BTreeMap::new();
        for (job, plan) in jobs.iter().enumerate() {
            jobs_of.entry(plan.flow.clone()).or_insert(job..job).end = job + 1;
        }
        Self { parts, jobs_of }
    }

    /// Whether all outputs of a flow are written.
    fn is_flow_complete(&self, flow: &str) -> bool {
        let jobs = self.jobs_of.get(flow).cloned().unwrap_or_default();
        self.parts[jobs].iter().all(|&open| open == 0)
    }
}

pub(crate) struct ProcessEngine {
    work: Work,
    settings: Settings,
    pub(crate) clock: RunClock,
    on_event: EventCallback,
    fleet: Box<dyn Fleet>,
    machines: RunMachines,
    now: Time,
    /// Directories that attempts of part files have left.
    spares: DirPool,
    attempts: Attempts,
    coming: PendingArrivals,
    /// Reports that are due at the next turn.
    due: Vec<Report>,
    open: OpenParts,
    counts: TaskCounts,
    failing: failing::FailingFlows,
    lost: lost_output::LostOutputs,
    said: logs::StoredLogs,
    handover: Handover,
    /// Why nothing more can be done.
    fatal: Option<String>,
    /// Whether the run stops, to be resumed.
    is_stopping: bool,
}

impl ProcessEngine {
    /// An engine for the remaining work of a run, on these machines. O(tasks · log tasks).
    pub(crate) fn new(
        work: Work,
        settings: Settings,
        clock: RunClock,
        on_event: EventCallback,
        fleet: Box<dyn Fleet>,
    ) -> Self {
        let coming = PendingArrivals::new(&work.instance, &work.waits);
        let capacities: BTreeMap<MachineId, Capacity> = (0..).map(MachineId).zip(fleet.machines()).collect();
        let machines = RunMachines {
            cluster: work.instance.cluster().clone(),
            ids: capacities.keys().map(|&machine| (machine, machine)).collect(),
            is_demand_declared: work.session.jobs.iter().any(|job| job.limits.demand().is_declared()),
            capacities,
            away: BTreeSet::new(),
            left_behind: machine_changes::LeftBehind::new(),
        };
        Self {
            spares: DirPool::default(),
            attempts: Attempts::after(&work.session.attempts),
            open: OpenParts::of(&work),
            lost: lost_output::LostOutputs::after(&work.session.attempts),
            said: logs::StoredLogs::find(&work),
            machines,
            fleet,
            work,
            settings,
            clock,
            on_event,
            now: Time::ZERO,
            coming,
            due: Vec::new(),
            counts: TaskCounts::default(),
            failing: failing::FailingFlows::default(),
            handover: Handover::default(),
            fatal: None,
            is_stopping: false,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.work.session
    }

    /// Gives the session back.
    pub(crate) fn into_session(self) -> Session {
        self.work.session
    }

    /// Why it stopped by itself, if it did.
    pub(crate) fn fatal(&self) -> Option<&str> {
        self.fatal.as_deref()
    }

    /// Puts an attempt to work, now or as soon as it may start.
    fn set_to_work(&mut self, row: RowId, mut running: Running) {
        running.stage = Stage::Waiting;
        self.keep(row, running);
        self.attempts.queue.push_back(row);
        self.admit();
    }

    fn keep(&mut self, row: RowId, running: Running) {
        self.attempts.rows.insert(running.number, row);
        self.attempts.running.insert(row, running);
    }

    /// Tells of a change in the progress of an attempt, here and in the state directory.
    fn show_progress(&mut self, running: &mut Running) {
        let document = running.document();
        if running.shown.is_none() {
            let path = self.work.session.layout.pids().join(format!("{}.{PROGRESS}", running.number));
            // What cannot be written is not shown.
            running.shown = PidFile::create(path, std::process::id().into()).ok();
        }
        running.shown.iter().for_each(|file| file.note(Some(document)));
        (self.on_event)(self.now, &RunEvent::AttemptProgress(document));
    }

    /// The number of an attempt that is new.
    fn number(&mut self) -> u64 {
        let number = self.attempts.next_number;
        self.attempts.next_number += 1;
        number
    }

    /// The machine of a slot of the kind that serves a task.
    fn machine_of(&self, id: TaskId, slot: u32) -> MachineId {
        self.machines.cluster.machine_of(self.machines.cluster.slot_kind_of(id.phase), slot).0
    }

    /// Starts the task that the driver requested.
    fn start_task(&mut self, row: RowId, id: TaskId, slot: u32, is_held: bool) {
        self.make_room(self.slot_kind_of(id), slot);
        if let Some(attempt) = self.lost.hand_over(id) {
            self.drop_attempt(&attempt);
        }
        if self.work.done.contains(&id) {
            // The driver has lost its row with a machine while it waited for others.
            let running = Running::new(self.number(), id, slot, self.now);
            self.attempts.running.insert(row, Running { stage: Stage::Finished, ..running });
            return self.release(id.job);
        }
        let mut running = Running::new(self.number(), id, slot, self.now);
        running.not_before = self.counts.not_before.remove(&id).unwrap_or(Time::ZERO);
        (self.on_event)(self.now, &RunEvent::AttemptStarted(running.document()));
        if is_held {
            self.keep(row, running);
        } else {
            self.set_to_work(row, running);
        }
    }

    /// Has the fleet start an attempt.
    fn launch(&mut self, running: &Running) -> io::Result<()> {
        let Running { number, id, slot, .. } = *running;
        let spec = self.spec(number, id)?;
        if self.work.session.jobs[id.job as usize].is_final(id) {
            self.spares.put(id.job, &spec.directory);
        }
        let of_cluster = self.machine_of(id, slot);
        let of_fleet = self.machines.ids.iter().find(|(_, id)| **id == of_cluster);
        let (&machine, _) = of_fleet.expect("invariant: nothing starts on machines that are away");
        let demand = self.demand(id);
        let attempt = RunningAttempt { since: running.began.0, ..running.document() };
        self.fleet.start(Assignment { number, attempt, machine, slot, demand }, &spec)
    }

    /// The specification for an attempt.
    fn spec(&self, number: u64, id: TaskId) -> io::Result<Spec> {
        let job = &self.work.session.jobs[id.job as usize];
        let directory = self.work.session.layout.attempt(job, id, number);
        let map_sum = |map| self.lost.map_sums.get(&TaskId::map(id.job, map)).copied();
        let map_sums = (0..job.maps()).filter(|_| id.phase == PhaseKind::Reduce).map(map_sum);
        let task = match id.phase {
            PhaseKind::Reduce => {
                let maps =
                    (0..job.maps()).map(|map| self.work.session.layout.map_output(id.job, map)).collect();
                Task::Reduce { partition: id.task, maps }
            }
            PhaseKind::Map => Task::Map {
                index: id.task,
                maps: job.maps(),
                splits: job.splits(id.task, |path| self.work.session.publisher().part(path))?,
                partitions: job.reducers,
                prepared: self.work.session.layout.prepare(job, id.job)?,
            },
        };
        Ok(Spec {
            durable: job.is_final(id) || self.settings.spread,
            patient: self.settings.spread,
            setting: job.setting.clone(),
            shuffle: job.shuffle.clone(),
            compress: job.compress,
            memory_limit: job.limits.memory,
            files: job.files.clone(),
            map_sums: map_sums.collect::<Option<_>>().unwrap_or_default(),
            ..Spec::new(job.work.clone(), task, directory, self.settings.memory_bytes)
        })
    }

    /// The work of the engine while there is nothing to report.
    fn go_on(&mut self) {
        self.warn();
        self.time_out();
        self.run_again();
        self.admit();
        self.speculate();
        (self.on_event)(self.now, &RunEvent::Tick);
    }

    /// When something is due by itself.
    fn next_due(&self) -> Option<Time> {
        let arrival = self.coming.next_release(&self.work.instance).map(|at| self.clock.reaches(at));
        [arrival, self.next_start()].into_iter().flatten().min()
    }

    /// The reports that are due now, and the flows that arrive.
    fn news(&mut self, reports: &mut Vec<Report>) -> Vec<FlowId> {
        self.now = self.clock.now();
        self.see_jump();
        self.fail_spent();
        reports.append(&mut self.due);
        let Self { coming, work, open, now, clock, .. } = self;
        let is_done = |job: u32| open.parts[job as usize] == 0;
        let Arrivals { flows, never } =
            coming.take_arrivals(clock.by_date(*now), &work.instance, &work.session.jobs, is_done);
        for (flow, job) in never {
            let flow = self.work.instance.flow(flow).id.clone();
            (self.on_event)(self.now, &RunEvent::FlowBlocked { flow, missing_job: job });
        }
        flows
    }

    /// Records and reports a jump of the wall clock. If that fails, the next poll tries again.
    fn see_jump(&mut self) {
        let Some(by) = self.clock.jump() else { return };
        if self.work.session.journal.jumped(by, self.now).is_ok() {
            self.clock.set_recorded(by);
            self.work.segment += 1;
            (self.on_event)(self.now, &RunEvent::ClockJumped(by));
        }
    }

    /// Carries out an order of the driver.
    pub(crate) fn order(&mut self, order: Order) {
        match order {
            Order::Go { row, .. } => {
                if self.attempts.running.get(&row).is_some_and(|running| running.stage == Stage::Held)
                    && let Some(running) = self.attempts.running.remove(&row)
                {
                    self.set_to_work(row, running);
                }
            }
            // The driver knows of no output that was lost (see `lost`).
            Order::Hold(_) => {}
            Order::Refuse(number) => {
                if let Some(running) = self.handover.attempts.remove(&number) {
                    self.drop_attempt(&running);
                    if self.handover.ended.remove(&number).is_some() {
                        self.is_gone(number);
                    }
                }
            }
            Order::Kill(row) => {
                let Some(mut running) = self.attempts.running.remove(&row) else { return };
                if let Some(second) = running.second.take() {
                    self.drop_attempt(&second);
                }
                if self.handover.promised.remove(&running.number) && running.is_at_work() {
                    self.attempts.rows.remove(&running.number);
                    self.handover.attempts.insert(running.number, running);
                    return;
                }
                self.drop_attempt(&running);
            }
        }
    }
}
