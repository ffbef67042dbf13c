//! What changed on the cluster since the last look.
//!
//! A cycle costs one request for all applications, one for the containers of each application of interest that looks
//! different than before, and one for each application of interest that has just ended.
//!
//! Nothing is reported as gone because somebody did not answer: a cycle that fails changes nothing, an application whose
//! containers cannot be read keeps those it had, and after a restart of the ResourceManager containers may be missing for as
//! long as NodeManagers take to come back ([`PollIntervals::settle`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use slackline_model::PhaseKind;

use crate::cluster::fair_polling::{RoundRobin, TIME_LIMIT};
use crate::rest::http::HttpError;
use crate::rest::id::{AppAttemptId, AppId, ContainerId};
use crate::rest::resource_manager::{
    App, AppFilter, AppState, Container, FinalStatus, Pending, Purpose, ResourceManager,
};

/// How an [`Observer`] looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollIntervals {
    /// Which applications it asks for. Those that are over are asked for one by one.
    pub which: AppFilter,
    /// After so many cycles the containers of an application are read again although it looks as before: 10.
    pub reread: u32,
    /// After so many cycles in which the ResourceManager said that it does not know an application, it is gone: 3.
    pub believe: u32,
    /// How long containers may be missing after a restart of the ResourceManager: 60 s.
    pub settle: Duration,
    /// How long a cycle asks for applications one by one; at least one is asked for: 1 s.
    pub lasts: Duration,
}

impl Default for PollIntervals {
    fn default() -> Self {
        let settle = Duration::from_secs(60);
        Self { which: AppFilter::default(), reread: 10, believe: 3, settle, lasts: TIME_LIMIT }
    }
}

/// Something that is different than at the last look. Within a cycle, changes come in the order of applications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another ResourceManager answers than before, or the same was started again.
    Restarted,
    /// An application of interest appeared.
    Appeared(AppId),
    /// An application is in another state.
    State {
        app: AppId,
        /// The state it was in.
        from: AppState,
        /// The state it is in.
        to: AppState,
    },
    /// An application has another ApplicationMaster than before, or its first.
    Attempt(AppAttemptId),
    /// A container was granted.
    Started(Container),
    /// A container is over; how, the ApplicationMaster or the history say.
    Ended(Container),
    /// An application is over. Its ApplicationMaster may hold its container for some seconds more.
    AppEnded {
        app: AppId,
        /// [`AppState::Finished`], `Failed` or `Killed`.
        state: AppState,
        /// How it ended, in its own words.
        status: FinalStatus,
        /// When, in milliseconds since 1970.
        finished_ms: Option<u64>,
    },
    /// An application that is over holds nothing any more, and is no longer watched.
    Released(AppId),
    /// The ResourceManager does not know the application (any more); it is no longer in the snapshot.
    Gone(AppId),
}

/// An application of interest.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedApp {
    /// As the last cycle saw it.
    pub app: App,
    /// Its live containers, the ApplicationMaster's among them.
    pub containers: BTreeMap<ContainerId, Container>,
    /// Its ApplicationMaster's life.
    pub attempt: Option<AppAttemptId>,
    /// What kept the last cycle from reading it; it is then as an earlier cycle saw it.
    pub problem: Option<HttpError>,
    /// How it looked when its containers were read.
    read: Option<Fingerprint>,
    was_read: bool,
    /// For how many cycles it has looked like that.
    age: u32,
    /// For how many cycles the ResourceManager has not known it.
    missing: u32,
}

impl WatchedApp {
    /// How many of its live containers are for that.
    pub fn live(&self, purpose: Purpose) -> usize {
        self.containers.values().filter(|container| container.purpose == purpose).count()
    }
}

/// What of an application cannot stay the same when its containers change.
type Fingerprint = (AppState, Option<u64>, Pending, u64, Option<ContainerId>);

fn fingerprint(app: &App) -> Fingerprint {
    (app.state, app.running_containers, app.pending, app.progress.to_bits(), app.master)
}

/// Applications that are not of interest, as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherApps {
    pub apps: u64,
    pub containers: u64,
    /// Memory of these in MiB.
    pub memory_mb: u64,
    /// Processors of these.
    pub cores: u64,
}

/// The cluster as the last cycle that succeeded saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// How many cycles have succeeded.
    pub cycle: u64,
    /// The applications of interest.
    pub watched: BTreeMap<AppId, WatchedApp>,
    /// Those that were released in this cycle: one that was seen for the first time may be over already.
    pub released: BTreeMap<AppId, App>,
    /// The others that [`PollIntervals::which`] names.
    pub others: OtherApps,
    /// Whether the ResourceManager was started so lately that containers may be missing from what it says.
    pub settling: bool,
}

impl Snapshot {
    /// An application of interest, also if it was released in this cycle.
    pub fn app(&self, id: AppId) -> Option<&App> {
        self.watched.get(&id).map(|watched| &watched.app).or_else(|| self.released.get(&id))
    }

    /// What an application asks for.
    pub(crate) fn pending(&self, app: AppId) -> Pending {
        self.watched.get(&app).map(|watched| watched.app.pending).unwrap_or_default()
    }
}

/// Looks at a cluster again and again. Its memory is what live applications of interest take.
#[derive(Clone, Debug)]
pub struct Observer {
    rhythm: PollIntervals,
    snapshot: Snapshot,
    /// Applications of interest that no list has shown yet, and how often they were not known.
    expected: BTreeMap<AppId, u32>,
    /// When the ResourceManager that answers was started.
    started_on: Option<u64>,
    /// Whether another one may answer than before.
    unsure: bool,
    settled_at: Duration,
    turn: RoundRobin<AppId>,
}

impl Observer {
    /// An observer that has seen nothing.
    pub fn new(rhythm: PollIntervals) -> Self {
        Self {
            rhythm,
            snapshot: Snapshot::default(),
            expected: BTreeMap::new(),
            started_on: None,
            unsure: true,
            settled_at: Duration::ZERO,
            turn: RoundRobin::default(),
        }
    }

    /// The cluster as the last cycle that succeeded saw it.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Declares an application of interest before a list has shown it, such as one that was just submitted: its end is seen
    /// even if it comes before the next cycle.
    pub fn expect(&mut self, app: AppId) {
        if !self.snapshot.watched.contains_key(&app) {
            self.expected.insert(app, 0);
        }
    }

    /// Looks at the cluster. `now` is the time since any fixed moment. An application that was of interest once stays so.
    ///
    /// # Errors
    ///
    /// The ResourceManager does not answer, or not as it should: the snapshot is the last one still.
    pub fn cycle(
        &mut self,
        manager: &ResourceManager,
        now: Duration,
        mut of_interest: impl FnMut(&App) -> bool,
    ) -> Result<Vec<Change>, HttpError> {
        let mut changes = Vec::new();
        let was_unsure = std::mem::replace(&mut self.unsure, true);
        if was_unsure && self.is_another(manager, now)? {
            changes.push(Change::Restarted);
        }
        let listed = manager.apps(&self.rhythm.which)?;
        self.unsure = false;
        self.snapshot.cycle += 1;
        self.snapshot.released.clear();
        self.snapshot.settling = now < self.settled_at;
        let mut others = OtherApps::default();
        let mut seen = BTreeMap::new();
        for app in listed {
            let known = self.snapshot.watched.contains_key(&app.id) || self.expected.contains_key(&app.id);
            if known || of_interest(&app) {
                seen.insert(app.id, app);
            } else {
                others.apps += 1;
                others.containers += app.running_containers.unwrap_or(0);
                others.memory_mb += app.allocated_mb.unwrap_or(0);
                others.cores += app.allocated_cores.unwrap_or(0);
            }
        }
        self.snapshot.others = others;
        self.visit(manager, seen, &mut changes);
        Ok(changes)
    }

    /// Whether another ResourceManager answers than before.
    fn is_another(&mut self, manager: &ResourceManager, now: Duration) -> Result<bool, HttpError> {
        let started_on = manager.info()?.started_on;
        let before = std::mem::replace(&mut self.started_on, started_on);
        let another = before.is_some() && before != started_on;
        if another {
            self.settled_at = now.saturating_add(self.rhythm.settle);
        }
        Ok(another)
    }

    /// Brings applications of interest up to date, as long as there is time and the ResourceManager answers.
    fn visit(&mut self, manager: &ResourceManager, seen: BTreeMap<AppId, App>, changes: &mut Vec<Change>) {
        let known = self.snapshot.watched.keys().chain(self.expected.keys());
        let mut due: BTreeSet<AppId> = known.filter(|id| !seen.contains_key(id)).copied().collect();
        let mut changed: BTreeMap<AppId, Vec<Change>> = BTreeMap::new();
        let listed: BTreeSet<AppId> = seen.keys().copied().collect();
        for (id, app) in seen {
            self.update(app, changed.entry(id).or_default());
            let settling = self.snapshot.settling;
            let watched = self.snapshot.watched.get_mut(&id);
            if watched.is_some_and(|watched| watched.is_due(self.rhythm.reread, settling)) {
                due.insert(id);
            }
        }
        let mut round = self.turn.round(due, self.rhythm.lasts);
        let mut silent: Option<HttpError> = None;
        while let Some(id) = round.next(&mut self.turn) {
            let changes = changed.entry(id).or_default();
            let visited = match &silent {
                None if listed.contains(&id) => self.read(manager, id, changes),
                None => self.ask(manager, id, changes),
                Some(error) => Err(error.clone()),
            };
            if let Err(error @ HttpError::Unreachable { .. }) = &visited {
                silent = Some(error.clone());
                self.unsure = true;
            }
            if let Some(watched) = self.snapshot.watched.get_mut(&id) {
                watched.problem = visited.err();
            }
        }
        changes.extend(changed.into_values().flatten());
    }

    /// Asks for an application that is in no list: it is over, or not in yet.
    fn ask(
        &mut self,
        manager: &ResourceManager,
        id: AppId,
        changes: &mut Vec<Change>,
    ) -> Result<(), HttpError> {
        let Some(app) = manager.app(id)? else {
            self.not_known(id, changes);
            return Ok(());
        };
        self.update(app, changes);
        self.read(manager, id, changes)
    }

    /// An application that the ResourceManager says it does not know.
    fn not_known(&mut self, id: AppId, changes: &mut Vec<Change>) {
        let missing = match self.snapshot.watched.get_mut(&id) {
            Some(watched) => &mut watched.missing,
            None => self.expected.entry(id).or_default(),
        };
        *missing += 1;
        if *missing < self.rhythm.believe {
            return;
        }
        self.expected.remove(&id);
        if let Some(watched) = self.snapshot.watched.remove(&id) {
            changes.extend(watched.containers.into_values().map(Change::Ended));
        }
        changes.push(Change::Gone(id));
    }

    /// Reads the containers of an application.
    fn read(
        &mut self,
        manager: &ResourceManager,
        id: AppId,
        changes: &mut Vec<Change>,
    ) -> Result<(), HttpError> {
        let settling = self.snapshot.settling;
        let Some(watched) = self.snapshot.watched.get_mut(&id) else { return Ok(()) };
        if watched.app.state.is_over() {
            self.wind_up(id, changes);
            return Ok(());
        }
        let attempt = attempt_of(manager, &watched.app)?;
        let live = match attempt.filter(|_| watched.app.holds_containers()) {
            Some(attempt) => manager.containers(attempt)?,
            None => Vec::new(),
        };
        if let Some(attempt) = attempt.filter(|_| watched.attempt != attempt) {
            watched.attempt = Some(attempt);
            changes.push(Change::Attempt(attempt));
        }
        watched.take(live, settling, changes);
        // Those that were first seen together are not read again all in one cycle.
        let is_first = !std::mem::replace(&mut watched.was_read, true);
        watched.age = if is_first { id.number % self.rhythm.reread.max(1) } else { 0 };
        watched.read = Some(fingerprint(&watched.app));
        Ok(())
    }

    /// Takes in what a list or the application's own document says.
    fn update(&mut self, app: App, changes: &mut Vec<Change>) {
        let (id, to) = (app.id, app.state);
        self.expected.remove(&id);
        let Some(watched) = self.snapshot.watched.get_mut(&id) else {
            changes.push(Change::Appeared(id));
            let is_over = app.state.is_over();
            if is_over {
                changes.push(over(&app));
            }
            let watched = WatchedApp {
                app,
                containers: BTreeMap::new(),
                attempt: None,
                problem: None,
                read: None,
                was_read: false,
                age: 0,
                missing: 0,
            };
            self.snapshot.watched.insert(id, watched);
            return;
        };
        let from = std::mem::replace(&mut watched.app, app).state;
        watched.missing = 0;
        if from != to {
            changes.push(Change::State { app: id, from, to });
            if to.is_over() {
                changes.push(over(&watched.app));
            }
        }
    }

    /// An application that is over has no container but its ApplicationMaster's, and that not for long.
    fn wind_up(&mut self, id: AppId, changes: &mut Vec<Change>) {
        let Some(watched) = self.snapshot.watched.get_mut(&id) else { return };
        let lingers = watched.app.holds_containers();
        watched.end_where(changes, |container| !(lingers && container.purpose == Purpose::Master));
        if !lingers {
            let released = self.snapshot.watched.remove(&id);
            self.snapshot.released.extend(released.map(|watched| (id, watched.app)));
            changes.push(Change::Released(id));
        }
    }
}

impl WatchedApp {
    /// Whether its containers are to be read, as they may have changed. Until they are they count as changed.
    fn is_due(&mut self, reread: u32, settling: bool) -> bool {
        if self.read == Some(fingerprint(&self.app)) && self.age < reread && !settling {
            self.age += 1;
            self.problem = None;
            return false;
        }
        self.read = None;
        true
    }

    /// Takes in the list of live containers.
    fn take(&mut self, live: Vec<Container>, settling: bool, changes: &mut Vec<Change>) {
        let attempt = self.attempt;
        let live: BTreeMap<ContainerId, Container> =
            live.into_iter().filter(|c| c.state != "COMPLETE").map(|c| (c.id, c)).collect();
        self.end_where(changes, |container| {
            // After a restart NodeManagers come back one by one, and their containers with them.
            let may_come_back = settling && Some(container.id.attempt) == attempt;
            !live.contains_key(&container.id) && !may_come_back
        });
        for (id, container) in live {
            if self.containers.insert(id, container.clone()).is_none() {
                changes.push(Change::Started(container));
            }
        }
    }

    fn end_where(&mut self, changes: &mut Vec<Change>, is_over: impl Fn(&Container) -> bool) {
        self.containers.retain(|_, container| {
            let ends = is_over(container);
            if ends {
                changes.push(Change::Ended(container.clone()));
            }
            !ends
        });
    }
}

fn over(app: &App) -> Change {
    Change::AppEnded { app: app.id, state: app.state, status: app.final_status, finished_ms: app.finished_ms }
}

/// The last life of an application's ApplicationMaster, if it had one.
fn attempt_of(manager: &ResourceManager, app: &App) -> Result<Option<AppAttemptId>, HttpError> {
    match app.master {
        Some(container) => Ok(Some(container.attempt)),
        None if app.holds_containers() => {
            Ok(manager.attempts(app.id)?.into_iter().map(|attempt| attempt.id).max())
        }
        None => Ok(None),
    }
}

/// The phase that a container works for.
pub(crate) fn phase_of(purpose: Purpose) -> Option<PhaseKind> {
    match purpose {
        Purpose::Map | Purpose::FailedMap => Some(PhaseKind::Map),
        Purpose::Reduce => Some(PhaseKind::Reduce),
        _ => None,
    }
}
