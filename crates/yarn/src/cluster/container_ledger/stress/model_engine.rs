//! A model of `FlowEngine` between a real driver and the cluster in memory: the same steps,
//! without its files.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::schedule::{NewRow, Outcome};
use slackline_model::tasks::Tasks;
use slackline_model::{FlowId, Instance, JobId, MachineId, PhaseId, PhaseKind, SlotKind, SlotRange, Time};
use slackline_policy::engine::{Capabilities, Order, Report, RowId, Start, Wakes};
use slackline_policy::log::{FlowEnd, Sink};
use slackline_policy::{Driver, Engine};

use crate::cluster::capacity::am_limit;
use crate::cluster::container_ledger::stress::cluster::{Cluster, Role, TaskEnd};
use crate::cluster::container_ledger::{ContainerLedger, ContainerOutcome, Slot};
use crate::cluster::desired_state::DesiredState;
use crate::rest::id::{AppId, ContainerId};
use slackline_policy::plans::Plans;

/// How often a task may fail.
const ATTEMPTS_MAX: u32 = 4;

/// The state that the driver must have, by the reports.
#[derive(Debug, Default)]
struct Belief {
    rows: BTreeMap<RowId, (PhaseId, u32)>,
    down: BTreeSet<u32>,
}

impl Belief {
    fn hear(&mut self, report: &Report) {
        match *report {
            Report::Finished { row, .. } | Report::Failed { row, .. } => drop(self.rows.remove(&row)),
            Report::Down(MachineId(slot)) => {
                self.rows.retain(|_, &mut (_, of_row)| of_row != slot);
                self.down.insert(slot);
            }
            Report::Up(MachineId(slot)) => drop(self.down.remove(&slot)),
            _ => {}
        }
    }
}

/// A job as an application.
#[derive(Debug)]
struct Job {
    stage: Stage,
    /// The containers that finished its tasks.
    finished: BTreeMap<(PhaseKind, u32), ContainerId>,
    /// How often each task failed.
    failures: BTreeMap<(PhaseKind, u32), u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Submitted,
    Running(AppId),
    Finished,
    Failed,
}

impl Job {
    fn new(is_finished: bool) -> Self {
        let stage = if is_finished { Stage::Finished } else { Stage::Waiting };
        Self { stage, finished: BTreeMap::new(), failures: BTreeMap::new() }
    }

    fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Finished | Stage::Failed)
    }

    fn app(&self) -> Option<AppId> {
        match self.stage {
            Stage::Running(app) => Some(app),
            _ => None,
        }
    }
}

pub(super) struct ModelEngine<'y> {
    pub(super) cluster: &'y mut Cluster,
    pub(super) ledger: ContainerLedger,
    /// By number.
    jobs: BTreeMap<u32, Job>,
    instance: &'y Instance,
    /// Flows that have not arrived.
    coming: BTreeSet<(Time, FlowId)>,
    next_phase: u32,
    by_app: BTreeMap<AppId, u32>,
    /// Containers that the observer knows.
    seen: BTreeMap<ContainerId, Role>,
    /// How many reports of each application were read.
    read: BTreeMap<AppId, usize>,
    /// Whether the cluster did not answer.
    troubled: bool,
    belief: Belief,
    wakes: Wakes,
    /// Jobs whose output is complete, by any session.
    published: &'y mut BTreeSet<u32>,
    am_share: f64,
    /// Looks until the session ends.
    polls_left: u32,
}

impl<'y> ModelEngine<'y> {
    pub(super) fn new(
        (cluster, instance): (&'y mut Cluster, &'y Instance),
        published: &'y mut BTreeSet<u32>,
        am_share: f64,
        polls_left: u32,
    ) -> Self {
        let groups = instance.cluster().groups().iter();
        let ledger = ContainerLedger::new(groups.map(|group| (group.name.clone(), group.count)));
        let jobs = 0..instance.jobs().len() as u32;
        let jobs = jobs.map(|job| (job, Job::new(published.contains(&job)))).collect();
        Self {
            ledger,
            jobs,
            coming: instance.flows().iter_enumerated().map(|(id, flow)| (flow.release, id)).collect(),
            next_phase: 0,
            by_app: BTreeMap::new(),
            seen: BTreeMap::new(),
            read: BTreeMap::new(),
            troubled: false,
            belief: Belief::default(),
            wakes: Wakes::default(),
            published,
            am_share,
            polls_left,
            cluster,
            instance,
        }
    }

    fn job(&mut self, job: u32) -> &mut Job {
        self.jobs.get_mut(&job).unwrap()
    }

    fn now(&self) -> Time {
        Time(self.cluster.now)
    }

    fn poll_cluster(&mut self, reports: &mut Vec<Report>) {
        self.ledger.advance(self.now());
        let is_silent = self.cluster.weather.silent;
        self.troubled = self.cluster.chance(is_silent);
        if !self.troubled {
            self.apply_change();
            self.ledger.set_others(self.cluster.others().min(self.ledger.slots()));
            let away = |name: &str| self.cluster.hosts.iter().any(|host| host.name == name && !host.is_up);
            self.ledger.set_hosts(|name| !away(name));
        }
        self.read_reports();
        self.ledger.report(reports);
        self.arrive(reports);
        // Earlier progress of these flows has to reach the driver before it starts anything of them.
        self.ledger.report(reports);
        for report in reports {
            self.belief.hear(report);
        }
    }

    /// What changed, application by application: what ended, then what started.
    fn apply_change(&mut self) {
        for id in self.cluster.apps.keys().copied().collect::<Vec<_>>() {
            let app = &self.cluster.apps[&id];
            let (job, is_over) = (app.job, app.is_over);
            let live: Vec<(ContainerId, Role, usize, u64)> =
                app.containers.iter().map(|(&id, c)| (id, c.role, c.host, c.since)).collect();
            self.by_app.insert(id, job);
            let own = self.job(job);
            if matches!(own.stage, Stage::Waiting | Stage::Submitted) {
                own.stage = Stage::Running(id);
            }
            let is_gone = |known: &ContainerId| live.iter().all(|(name, ..)| name != known);
            let ended: Vec<(ContainerId, Role)> = self.seen.iter().map(|(&id, &role)| (id, role)).collect();
            for (name, role) in ended.into_iter().filter(|(name, _)| name.attempt.app == id && is_gone(name))
            {
                self.seen.remove(&name);
                self.ended(job, name, role);
            }
            for (name, role, host, since) in live {
                if self.seen.insert(name, role).is_none() {
                    let is_open = !self.jobs[&job].is_closed();
                    let kind = kind_of(role);
                    let work = is_open.then_some((job, kind));
                    let host = self.cluster.hosts[host].name.clone();
                    self.ledger.add_container(name, &host, Time(since), work);
                }
            }
            if is_over {
                self.is_over(job);
            }
        }
    }

    fn ended(&mut self, job: u32, name: ContainerId, role: Role) {
        self.read_reports();
        let own = &self.jobs[&job];
        let is_well =
            own.stage == Stage::Finished || own.finished.values().any(|container| *container == name);
        self.ledger.remove_container(
            name,
            if is_well { ContainerOutcome::Finished } else { ContainerOutcome::Failed },
        );
        if let Some(kind) = kind_of(role)
            && let Some(phase) = self.ledger.phase_of(job, kind)
        {
            self.report_finished(job, kind, phase);
        }
    }

    fn is_over(&mut self, job: u32) {
        self.read_reports();
        if !self.jobs[&job].is_closed() {
            self.give_up(job);
        }
    }

    fn read_reports(&mut self) {
        for (app, job) in self.by_app.clone() {
            let read = self.read.entry(app).or_default();
            let new: Vec<TaskEnd> = self
                .cluster
                .task_ends
                .iter()
                .filter(|task_ends| task_ends.app == app)
                .skip(*read)
                .copied()
                .collect();
            *read += new.len();
            for task_ends in new {
                let own = &self.jobs[&job];
                let is_known = own.finished.contains_key(&(task_ends.kind, task_ends.task));
                if !own.is_closed() && !is_known {
                    self.attempt_ended(job, task_ends);
                }
            }
            for kind in [PhaseKind::Map, PhaseKind::Reduce] {
                if let Some(phase) = self.ledger.phase_of(job, kind) {
                    self.report_finished(job, kind, phase);
                }
            }
        }
    }

    fn attempt_ended(&mut self, job: u32, task_ends: TaskEnd) {
        let TaskEnd { kind, task, container, is_well, .. } = task_ends;
        let own = self.job(job);
        if !is_well {
            let failures = own.failures.entry((kind, task)).or_default();
            *failures += 1;
            if *failures >= ATTEMPTS_MAX {
                self.give_up(job);
            }
            return;
        }
        own.finished.insert((kind, task), container);
        if self.is_complete(job) {
            self.job(job).stage = Stage::Finished;
            self.published.insert(job);
            self.ledger.finish_job(job);
        } else if let Some(phase) = self.ledger.phase_of(job, kind) {
            self.report_finished(job, kind, phase);
        }
    }

    fn is_complete(&self, job: u32) -> bool {
        let (maps, reduces) = tasks(self.instance, job);
        self.jobs[&job].finished.len() as u32 == maps + reduces
    }

    fn report_finished(&mut self, job: u32, kind: PhaseKind, phase: PhaseId) {
        let finished = self.jobs[&job].finished.iter().filter(|((phase, _), _)| *phase == kind);
        let live = finished.clone().filter(|(_, container)| self.ledger.is_live(**container));
        let known = self.ledger.done(phase) + live.count() as u32;
        let more = (finished.count() as u32).saturating_sub(known);
        if more > 0 {
            self.ledger.add_finished(phase, more);
        }
    }

    fn give_up(&mut self, job: u32) {
        let jobs = self.jobs_of_flow_of(job);
        for &other in &jobs {
            let own = self.job(other);
            if !own.is_closed() {
                let app = own.app();
                own.stage = Stage::Failed;
                if let Some(app) = app {
                    self.cluster.kill(app);
                }
            }
        }
        self.ledger.fail_flow(&jobs);
    }

    fn jobs_of_flow_of(&self, job: u32) -> Vec<u32> {
        let flow = |job: u32| self.instance.job(JobId(job)).flow;
        self.jobs.keys().copied().filter(|&other| flow(other) == flow(job)).collect()
    }

    fn arrive(&mut self, reports: &mut Vec<Report>) {
        while let Some(&(_, flow)) = self.coming.first().filter(|(at, _)| *at <= self.now()) {
            self.coming.pop_first();
            reports.push(Report::Arrived(Box::new(self.instance.excerpt(flow))));
            let mut jobs = BTreeSet::new();
            for phase in self.instance.flow(flow).phases() {
                let info = self.instance.phase(phase);
                let (job, tasks) = (info.job.0, info.tasks().map_or(0, Tasks::count));
                self.ledger.add_phase(PhaseId(self.next_phase), job, info.kind, tasks);
                self.next_phase += 1;
                jobs.insert(job);
            }
            self.report_earlier(&jobs);
        }
    }

    fn report_earlier(&mut self, jobs: &BTreeSet<u32>) {
        if let Some(&failed) = jobs.iter().find(|&&job| self.jobs[&job].stage == Stage::Failed) {
            return self.ledger.fail_flow(&self.jobs_of_flow_of(failed));
        }
        for &job in jobs {
            if self.jobs[&job].stage == Stage::Finished {
                self.ledger.finish_job(job);
                continue;
            }
            for kind in [PhaseKind::Map, PhaseKind::Reduce] {
                if let Some(phase) = self.ledger.phase_of(job, kind) {
                    self.report_finished(job, kind, phase);
                }
            }
        }
    }

    /// Tells the cluster what follows from the driver's decisions.
    pub(super) fn apply_plans(&mut self, plans: &Plans) {
        let most = if self.troubled { 0 } else { am_limit(self.ledger.slots(), self.am_share) };
        let has_am = |own: &&Job| matches!(own.stage, Stage::Submitted | Stage::Running(_));
        let mut ams = self.jobs.values().filter(has_am).count();
        for job in self.ledger.waiting_jobs() {
            if ams < most && self.jobs[&job].stage == Stage::Waiting {
                let (maps, reduces) = tasks(self.instance, job);
                self.cluster.submit(job, maps, reduces);
                self.job(job).stage = Stage::Submitted;
                ams += 1;
            }
        }
        let cluster = &*self.cluster;
        let open = self.jobs.iter().filter(|(_, own)| own.stage != Stage::Finished);
        let apps = open.map(|(&job, own)| (job, own.app())).collect();
        let desired = DesiredState::of(&self.ledger, plans, &apps, |app| cluster.pending(app));
        self.cluster.table = desired.rows;
        self.forget_finished_jobs();
    }

    fn forget_finished_jobs(&mut self) {
        for (&job, own) in &self.jobs {
            let phases = [PhaseKind::Map, PhaseKind::Reduce].map(|kind| self.ledger.phase_of(job, kind));
            let is_known = phases.iter().flatten().all(|&phase| self.ledger.is_done(phase));
            if own.stage == Stage::Finished && is_known && phases.iter().any(Option::is_some) {
                self.ledger.forget_job(job);
            }
        }
    }
}

/// Ledger, reports and driver agree.
pub(super) fn agree(driver: &mut Driver<'_, '_, ModelEngine<'_>>) {
    let slots = driver.engine().ledger.slots.len() as u32;
    let belief = std::mem::take(&mut driver.engine().belief);
    let state = driver.view().state;
    assert_eq!(state.alive(SlotKind::Any), slots - belief.down.len() as u32, "slots that are there");
    let mut running: BTreeMap<PhaseId, u32> = BTreeMap::new();
    for &(phase, _) in belief.rows.values() {
        *running.entry(phase).or_default() += 1;
    }
    for (phase, _) in driver.view().instance.phases().iter_enumerated() {
        let of_phase = running.remove(&phase).unwrap_or(0);
        assert_eq!(driver.view().state.phase(phase).running(), of_phase, "running tasks of {phase:?}");
    }
    assert!(running.is_empty(), "the driver does not know {running:?}");
    let engine = driver.engine();
    engine.belief = belief;
    engine.audit();
}

impl ModelEngine<'_> {
    /// The driver, after the waiting reports, agrees with the ledger.
    fn audit(&self) {
        let Belief { rows, down } = &self.belief;
        let mut soon = Belief { rows: rows.clone(), down: down.clone() };
        for report in self.ledger.ends.iter().chain(&self.ledger.machines) {
            soon.hear(report);
        }
        let mut by_slot: BTreeMap<u32, RowId> = BTreeMap::new();
        for (&row, &(_, slot)) in &soon.rows {
            assert_eq!(by_slot.insert(slot, row), None, "slot {slot} has two rows");
        }
        for (slot, holds) in (0..).zip(&self.ledger.slots) {
            let row = by_slot.get(&slot).copied();
            let is_down = soon.down.contains(&slot);
            let is_same = match *holds {
                Slot::Free | Slot::Offered(_) => row.is_none() && !is_down,
                Slot::Row(id) => row == Some(id) && !is_down,
                Slot::Taken(_) | Slot::Others | Slot::Away => row.is_none() && is_down,
            };
            assert!(is_same, "slot {slot} holds {holds:?}, the driver has {row:?}, down {is_down}");
        }
        assert_eq!(soon.rows.len(), self.ledger.rows.len(), "rows: {:?}, {:?}", soon.rows, self.ledger.rows);
        self.ledger.audit();
    }
}

impl ContainerLedger {
    /// What is counted is what is there.
    fn audit(&self) {
        for (&id, phase) in &self.phases {
            let rows = || self.rows.iter().filter(|(_, row)| row.phase == id);
            assert_eq!(phase.open as usize, rows().count(), "open rows of {id:?}");
            let unbound: BTreeSet<RowId> =
                rows().filter(|(_, row)| row.container.is_none()).map(|(&id, _)| id).collect();
            assert_eq!(phase.unbound, unbound, "rows of {id:?} that wait");
            let live = self.live.values().filter(|live| live.phase == Some(id)).count();
            assert_eq!(phase.live as usize, live, "containers of {id:?}");
            let offered = self.offers.values().filter(|offer| offer.phase == id).count();
            let all = phase.pending.len() + phase.done as usize + rows().count() + offered;
            assert_eq!(all, phase.tasks as usize, "tasks of {id:?}: {phase:?}, {offered} offered");
        }
        let free: BTreeSet<u32> =
            (0..).zip(&self.slots).filter(|(_, slot)| **slot == Slot::Free).map(|(slot, _)| slot).collect();
        assert_eq!(self.free, free, "free slots");
        for (container, live) in &self.live {
            let is_counted = live.slot.is_some();
            assert_ne!(is_counted, self.uncounted.contains(container), "{container}: {live:?}");
        }
    }
}

impl ModelEngine<'_> {
    /// Whether it took all the looks that it had.
    pub(super) fn is_tired(&self) -> bool {
        self.polls_left == 0
    }

    /// The state of everything, for a test that failed.
    pub(super) fn describe(&self) -> String {
        let jobs: Vec<_> = self.jobs.values().map(|own| (&own.stage, own.finished.len())).collect();
        format!(
            "slots {:?}\nphases {:#?}\njobs {jobs:?}\napps {:#?}\ntable {:#?}",
            self.ledger.slots, self.ledger.phases, self.cluster.apps, self.cluster.table
        )
    }
}

fn kind_of(role: Role) -> Option<PhaseKind> {
    match role {
        Role::Am => None,
        Role::Task(kind, _) => Some(kind),
    }
}

/// How many maps and reduces a job has.
fn tasks(instance: &Instance, job: u32) -> (u32, u32) {
    let of = |kind| {
        let phase = instance.job(JobId(job)).phase(kind)?;
        instance.phase(phase).tasks().map(Tasks::count)
    };
    (of(PhaseKind::Map).unwrap_or(0), of(PhaseKind::Reduce).unwrap_or(0))
}

impl Engine for ModelEngine<'_> {
    fn capabilities(&self) -> Capabilities {
        ContainerLedger::CAPABILITIES
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        self.polls_left = self.polls_left.checked_sub(1)?;
        let pause = self.cluster.draw(10_000, 1_000_000);
        let until = self.cluster.now + pause;
        self.cluster.advance(until);
        self.poll_cluster(reports);
        self.wakes.report(self.now(), reports);
        Some(self.now())
    }

    fn start(&mut self, start: &Start<'_>, _: &Instance) {
        self.belief.rows.insert(start.row, (start.phase, start.places[0].first));
        self.ledger.start(start);
    }

    fn order(&mut self, order: Order) {
        if let Order::Kill(row) = order {
            self.belief.rows.remove(&row);
        }
        self.ledger.order(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.add(at, self.now());
    }

    fn may_bring_flows(&mut self) -> bool {
        !self.coming.is_empty()
    }
}

/// What the driver left: how often each task was done, and how many flows were.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Left {
    pub(super) done: BTreeMap<(PhaseId, u32), u32>,
    pub(super) flows_done: BTreeSet<String>,
}

impl Sink for Left {
    fn row(&mut self, _: RowId, row: &NewRow, _: &[SlotRange], _: &Instance) {
        if row.outcome == Outcome::Done {
            *self.done.entry((row.phase, row.first)).or_default() += 1;
        }
    }

    fn flow(&mut self, flow: &FlowEnd, live: &Instance) {
        if flow.completion.is_some() {
            self.flows_done.insert(live.flow(flow.flow).id.clone());
        }
    }
}
