//! A YARN cluster in memory, with its own clock: applications with ApplicationMasters that ask for
//! containers, a scheduler that grants what the table allows in any order, and everything that can go wrong.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::random::{ChaCha8Rng, chance, integer, rng};
use slackline_model::{PhaseKind, Seed};

use crate::cluster::table::{Hosts, Rows};
use crate::rest::id::{AppAttemptId, AppId, ContainerId};
use crate::rest::resource_manager::Pending;

/// Microseconds of a second.
pub(super) const SECOND: u64 = 1_000_000;

/// What goes wrong, as chances in each cycle or of each task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    pub(super) host_goes: f64,
    pub(super) am_dies: f64,
    pub(super) foreign: f64,
    pub(super) task_fails: f64,
    /// The ResourceManager does not answer, or its answers are late.
    pub(super) silent: f64,
}

/// What a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Am,
    Task(PhaseKind, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Pending,
    Runs(ContainerId),
    Done,
}

/// A container that runs.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) host: usize,
    pub(super) role: Role,
    pub(super) since: u64,
    /// How long its work takes.
    work: u64,
    /// When its work is done, if that is settled.
    works_until: Option<u64>,
    /// When it is gone, if that is settled.
    ends: Option<u64>,
}

/// An application of one job.
#[derive(Clone, Debug)]
pub(super) struct App {
    pub(super) job: u32,
    tasks: [Vec<Task>; 2],
    failures: BTreeMap<(PhaseKind, u32), u32>,
    pub(super) am_container: Option<ContainerId>,
    life: u32,
    next: u64,
    pub(super) is_over: bool,
    pub(super) containers: BTreeMap<ContainerId, Container>,
}

/// What an attempt reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskEnd {
    pub(super) app: AppId,
    pub(super) kind: PhaseKind,
    pub(super) task: u32,
    pub(super) container: ContainerId,
    pub(super) is_well: bool,
}

/// A host. It has room for more containers than the ledger has slots of it if `room` is more than these.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) slots: u32,
    pub(super) room: u32,
    pub(super) is_up: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Cluster {
    rng: ChaCha8Rng,
    pub(super) now: u64,
    pub(super) hosts: Vec<Host>,
    pub(super) apps: BTreeMap<AppId, App>,
    /// Containers of others: host and end.
    foreign: Vec<(usize, u64)>,
    pub(super) table: Rows,
    pub(super) task_ends: Vec<TaskEnd>,
    pub(super) weather: Weather,
    slowstart: f64,
    /// The job of which a task fails whenever it is tried.
    pub(super) cursed: Option<u32>,
}

fn index(kind: PhaseKind) -> usize {
    match kind {
        PhaseKind::Map => 0,
        PhaseKind::Reduce => 1,
    }
}

impl Cluster {
    pub(super) fn new(seed: u64, hosts: Vec<Host>, slowstart: f64, weather: Weather) -> Self {
        Self {
            rng: rng(Seed(seed), "yarn", 0),
            now: 0,
            hosts,
            apps: BTreeMap::new(),
            foreign: Vec::new(),
            table: Rows::new(),
            task_ends: Vec::new(),
            weather,
            slowstart,
            cursed: None,
        }
    }

    pub(super) fn chance(&mut self, p: f64) -> bool {
        chance(&mut self.rng, p)
    }

    pub(super) fn draw(&mut self, low: u64, high: u64) -> u64 {
        integer(&mut self.rng, low, high)
    }

    pub(super) fn submit(&mut self, job: u32, maps: u32, reduces: u32) -> AppId {
        let id = AppId { cluster: 1, number: self.apps.len() as u32 + 1 };
        let tasks = [maps, reduces].map(|count| vec![Task::Pending; count as usize]);
        let app = App {
            job,
            tasks,
            failures: BTreeMap::new(),
            am_container: None,
            life: 0,
            next: 0,
            is_over: false,
            containers: BTreeMap::new(),
        };
        self.apps.insert(id, app);
        id
    }

    pub(super) fn kill(&mut self, id: AppId) {
        if let Some(app) = self.apps.get_mut(&id) {
            app.is_over = true;
            app.containers.clear();
        }
    }

    /// How many slots others hold.
    pub(super) fn others(&self) -> u32 {
        self.foreign.len() as u32
    }

    pub(super) fn pending(&self, id: AppId) -> Pending {
        let Some(app) = self.apps.get(&id).filter(|app| app.am_container.is_some()) else {
            return Pending::default();
        };
        let of = |kind| app.asks(kind, self.slowstart).count() as u64;
        Pending { maps: of(PhaseKind::Map), reduces: of(PhaseKind::Reduce), ..Pending::default() }
    }

    pub(super) fn advance(&mut self, to: u64) {
        while let Some(at) = self.next_end().filter(|&at| at <= to) {
            self.now = self.now.max(at);
            self.foreign.retain(|&(_, ends)| ends > at);
            for id in self.apps.keys().copied().collect::<Vec<_>>() {
                self.settle(id);
            }
            self.fill();
        }
        self.now = to;
        self.misfortune();
        self.preempt();
        // A host that goes may have stopped reduces without taking a map that they need.
        self.apps.values_mut().for_each(|app| app.let_reduces_work(to));
        self.fill();
    }

    fn next_end(&self) -> Option<u64> {
        let containers = self.apps.values().flat_map(|app| app.containers.values());
        let ends = containers.filter_map(|container| match container.works_until {
            Some(at) => Some(at),
            None => container.ends,
        });
        ends.chain(self.foreign.iter().map(|&(_, ends)| ends)).min()
    }

    /// Containers whose work is done report, and go a little later.
    fn settle(&mut self, id: AppId) {
        let now = self.now;
        let Some(mut app) = self.apps.remove(&id) else { return };
        for (&name, container) in &mut app.containers {
            let Role::Task(kind, task) = container.role else { continue };
            if container.works_until.is_none_or(|at| at > now) {
                continue;
            }
            container.works_until = None;
            container.ends = Some(now + integer(&mut self.rng, 0, SECOND));
            let failures = app.failures.entry((kind, task)).or_default();
            let is_cursed = self.cursed == Some(app.job) && task == 0;
            let fails = is_cursed || *failures < 3 && chance(&mut self.rng, self.weather.task_fails);
            *failures += u32::from(fails);
            self.task_ends.push(TaskEnd { app: id, kind, task, container: name, is_well: !fails });
            app.tasks[index(kind)][task as usize] = if fails { Task::Pending } else { Task::Done };
        }
        let gone: Vec<ContainerId> = app
            .containers
            .iter()
            .filter(|(_, c)| c.ends.is_some_and(|at| at <= now))
            .map(|(&id, _)| id)
            .collect();
        for name in gone {
            app.containers.remove(&name);
            if app.am_container == Some(name) {
                app.is_over = true;
            }
        }
        if app.is_over {
            app.containers.clear();
        }
        app.let_reduces_work(now);
        if app.is_complete()
            && let Some(am) = app.am_container.and_then(|am| app.containers.get_mut(&am))
            && am.ends.is_none()
        {
            am.ends = Some(now + integer(&mut self.rng, SECOND, 6 * SECOND));
        }
        self.apps.insert(id, app);
    }

    fn misfortune(&mut self) {
        if self.chance(self.weather.host_goes) {
            let host = self.draw(0, self.hosts.len() as u64 - 1) as usize;
            self.hosts[host].is_up = !self.hosts[host].is_up;
            if !self.hosts[host].is_up {
                self.lose_host(host);
            }
        }
        if self.weather.host_goes == 0.0 {
            self.hosts.iter_mut().for_each(|host| host.is_up = true);
        }
        if self.chance(self.weather.foreign)
            && let Some(host) = self.host_with_room(None)
        {
            let ends = self.now + self.draw(SECOND, 20 * SECOND);
            self.foreign.push((host, ends));
        }
        for id in self.apps.keys().copied().collect::<Vec<_>>() {
            if self.chance(self.weather.am_dies) {
                let keeps = self.chance(0.5);
                self.lose_am(id, keeps);
            }
        }
    }

    fn lose_host(&mut self, host: usize) {
        self.foreign.retain(|&(at, _)| at != host);
        for id in self.apps.keys().copied().collect::<Vec<_>>() {
            let Some(app) = self.apps.get_mut(&id) else { continue };
            let here: Vec<ContainerId> =
                app.containers.iter().filter(|(_, c)| c.host == host).map(|(&id, _)| id).collect();
            let lost_am = app.am_container.is_some_and(|am| here.contains(&am));
            for name in here {
                app.lose(name);
            }
            // Output of maps that lay there: some of them are made again.
            if !app.is_complete() {
                let maps = app.tasks[0].len() as u64;
                let again = integer(&mut self.rng, 0, maps) as usize;
                let maps = app.tasks[0].iter_mut().take(again);
                maps.filter(|task| **task == Task::Done).for_each(|task| *task = Task::Pending);
                app.stop_reduces();
            }
            if lost_am {
                self.lose_am(id, true);
            }
        }
    }

    /// An ApplicationMaster dies, and all containers of its application; the next one knows what was done if
    /// it `keeps` that.
    fn lose_am(&mut self, id: AppId, keeps: bool) {
        let Some(app) = self.apps.get_mut(&id).filter(|app| !app.is_over && app.am_container.is_some())
        else {
            return;
        };
        if app.is_complete() {
            return;
        }
        let all: Vec<ContainerId> = app.containers.keys().copied().collect();
        for name in all {
            app.lose(name);
        }
        app.am_container = None;
        if !keeps {
            app.tasks.iter_mut().flatten().for_each(|task| *task = Task::Pending);
        }
    }

    /// Reduces make room for maps of their own application.
    fn preempt(&mut self) {
        for app in self.apps.values_mut() {
            let waits = app.tasks[0].contains(&Task::Pending);
            let none_runs = !app.tasks[0].iter().any(|task| matches!(task, Task::Runs(_)));
            let is_reduce = |container: &Container| {
                matches!(container.role, Role::Task(PhaseKind::Reduce, _)) && container.ends.is_none()
            };
            let last = app.containers.iter().rfind(|(_, c)| is_reduce(c)).map(|(&id, _)| id);
            if let Some(last) = last.filter(|_| waits && none_runs) {
                app.lose(last);
            }
        }
    }

    fn host_with_room(&mut self, among: Option<&BTreeSet<String>>) -> Option<usize> {
        let held = |host: usize| {
            let ours = self.apps.values().flat_map(|app| app.containers.values());
            let ours = ours.filter(|container| container.host == host).count();
            ours + self.foreign.iter().filter(|&&(at, _)| at == host).count()
        };
        let may = |at: usize| {
            let host = &self.hosts[at];
            host.is_up
                && (held(at) as u32) < host.room
                && among.is_none_or(|among| among.contains(&host.name))
        };
        let hosts: Vec<usize> = (0..self.hosts.len()).filter(|&at| may(at)).collect();
        let last = hosts.len().checked_sub(1)? as u64;
        Some(hosts[self.draw(0, last) as usize])
    }

    /// Grants what the table allows until nothing more is asked for or there is no room.
    fn fill(&mut self) {
        let mut wants = self.wants();
        while let Some(last) = wants.len().checked_sub(1) {
            let (id, role) = wants[self.draw(0, last as u64) as usize];
            let row = self.table.get(&Some(id)).cloned().unwrap_or_default();
            let hosts = match role {
                Role::Task(PhaseKind::Map, _) => row.map_hosts,
                Role::Task(PhaseKind::Reduce, _) => row.reduce_hosts,
                Role::Am => Hosts::Any,
            };
            let among = match hosts {
                Hosts::Any => None,
                Hosts::Only(hosts) => Some(hosts),
            };
            match self.host_with_room(among.as_ref()) {
                Some(host) => {
                    self.grant(id, role, host);
                    wants = self.wants();
                }
                None => wants.retain(|&other| other != (id, role)),
            }
        }
    }

    fn wants(&self) -> Vec<(AppId, Role)> {
        let mut wants = Vec::new();
        for (&id, app) in self.apps.iter().filter(|(_, app)| !app.is_over) {
            let row = self.table.get(&Some(id)).cloned().unwrap_or_default();
            if app.am_container.is_none() {
                if !row.hold {
                    wants.push((id, Role::Am));
                }
                continue;
            }
            for (kind, cap) in [(PhaseKind::Map, row.maps), (PhaseKind::Reduce, row.reduces)] {
                let has_room = cap.is_none_or(|cap| app.live(kind) < cap);
                let next = app.asks(kind, self.slowstart).next().filter(|_| has_room);
                wants.extend(next.map(|task| (id, Role::Task(kind, task))));
            }
        }
        wants
    }

    fn grant(&mut self, id: AppId, role: Role, host: usize) {
        let work = self.draw(SECOND / 10, 8 * SECOND);
        let now = self.now;
        let row = self.table.get(&Some(id)).cloned().unwrap_or_default();
        let Some(app) = self.apps.get_mut(&id) else { return };
        if role == Role::Am {
            (app.life, app.next) = (app.life + 1, 0);
        }
        app.next += 1;
        let attempt = AppAttemptId { app: id, number: app.life };
        let name = ContainerId { attempt, epoch: 0, number: app.next };
        let container = Container { host, role, since: now, work, works_until: None, ends: None };
        app.containers.insert(name, container);
        match role {
            Role::Am => app.am_container = Some(name),
            Role::Task(kind, task) => {
                app.tasks[index(kind)][task as usize] = Task::Runs(name);
                let cap = if kind == PhaseKind::Map { row.maps } else { row.reduces };
                assert!(
                    cap.is_none_or(|cap| app.live(kind) <= cap),
                    "{id} has more than its cap of {kind:?}"
                );
            }
        }
        app.let_reduces_work(now);
    }
}

impl App {
    pub(super) fn live(&self, kind: PhaseKind) -> u32 {
        let of_kind = |container: &&Container| matches!(container.role, Role::Task(of, _) if of == kind);
        self.containers.values().filter(of_kind).count() as u32
    }

    fn is_complete(&self) -> bool {
        self.tasks.iter().flatten().all(|task| *task == Task::Done)
    }

    /// Tasks that it wants containers for.
    fn asks(&self, kind: PhaseKind, slowstart: f64) -> impl Iterator<Item = u32> + '_ {
        let maps = &self.tasks[0];
        let done = maps.iter().filter(|task| **task == Task::Done).count() as f64;
        let may = kind == PhaseKind::Map || done >= slowstart * maps.len() as f64;
        let tasks = (0..).zip(&self.tasks[index(kind)]);
        tasks.filter(move |(_, task)| may && **task == Task::Pending).map(|(task, _)| task)
    }

    /// Maps compute at once, reduces when all maps are done.
    fn let_reduces_work(&mut self, now: u64) {
        let maps_done = self.tasks[0].iter().all(|task| *task == Task::Done);
        for container in self.containers.values_mut() {
            let may = match container.role {
                Role::Am => false,
                Role::Task(PhaseKind::Map, _) => true,
                Role::Task(PhaseKind::Reduce, _) => maps_done,
            };
            if may && container.works_until.is_none() && container.ends.is_none() {
                container.works_until = Some(now + container.work);
            }
        }
    }

    /// Output of maps is lost: reduces wait for it.
    fn stop_reduces(&mut self) {
        for container in self.containers.values_mut() {
            if matches!(container.role, Role::Task(PhaseKind::Reduce, _)) {
                container.works_until = None;
            }
        }
    }

    /// A container is gone, and what it did is not done.
    fn lose(&mut self, name: ContainerId) {
        let Some(container) = self.containers.remove(&name) else { return };
        if let Role::Task(kind, task) = container.role {
            let task = &mut self.tasks[index(kind)][task as usize];
            if *task == Task::Runs(name) {
                *task = Task::Pending;
            }
        }
    }
}
