//! The observer of a cluster: polls it and gives the changes.
//!
//! A cycle costs one request for all applications, one for the containers of each application of interest
//! that has changed, and one for each that has just ended.
//!
//! A missing answer never removes anything: a failed cycle changes nothing, and an application whose
//! containers cannot be read keeps its containers. After a restart of the ResourceManager containers may be
//! missing until the NodeManagers have returned ([`PollIntervals::settle`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use slackline_model::PhaseKind;

use crate::cluster::fair_polling::{RoundRobin, TIME_LIMIT};
use crate::rest::http::HttpError;
use crate::rest::id::{AppAttemptId, AppId, ContainerId};
use crate::rest::resource_manager::{
    App, AppFilter, AppState, Container, FinalStatus, Pending, Purpose, ResourceManager,
};

/// The intervals and limits of an [`Observer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollIntervals {
    /// The applications to list. Ended applications are requested one by one.
    pub which: AppFilter,
    /// Cycles after which to read the containers of an unchanged application again: 10.
    pub reread: u32,
    /// Cycles with an answer "unknown application" after which it is gone: 3.
    pub believe: u32,
    /// How long containers may be missing after a restart of the ResourceManager: 60 s.
    pub settle: Duration,
    /// Time limit of a cycle for requests of single applications; at least one is made: 1 s.
    pub lasts: Duration,
}

impl Default for PollIntervals {
    fn default() -> Self {
        let settle = Duration::from_secs(60);
        Self { which: AppFilter::default(), reread: 10, believe: 3, settle, lasts: TIME_LIMIT }
    }
}

/// A change since the last poll. Within a cycle, changes are in the order of applications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The ResourceManager was restarted, or another one answers.
    Restarted,
    /// An application of interest appeared.
    Appeared(AppId),
    /// An application changed its state.
    State { app: AppId, from: AppState, to: AppState },
    /// An application has its first or another AM.
    Attempt(AppAttemptId),
    /// YARN granted a container.
    Started(Container),
    /// A container ended; its outcome comes from the AM or the history.
    Ended(Container),
    /// An application ended. Its AM may hold its container for some seconds.
    AppEnded {
        app: AppId,
        /// [`AppState::Finished`], `Failed` or `Killed`.
        state: AppState,
        /// The outcome that the application reported.
        status: FinalStatus,
        /// In milliseconds since 1970.
        finished_ms: Option<u64>,
    },
    /// An ended application holds no container any more, and leaves the snapshot.
    Released(AppId),
    /// The ResourceManager does not know the application any more; it leaves the snapshot.
    Gone(AppId),
}

#[derive(Clone, Debug, PartialEq)]
pub struct WatchedApp {
    /// At the last cycle.
    pub app: App,
    /// Its live containers, with that of the AM.
    pub containers: BTreeMap<ContainerId, Container>,
    /// The current attempt of its AM.
    pub attempt: Option<AppAttemptId>,
    /// Why the last cycle could not read it; it is then as an earlier cycle saw it.
    pub problem: Option<HttpError>,
    /// Its fingerprint when its containers were read.
    read: Option<Fingerprint>,
    was_read: bool,
    /// Cycles with this fingerprint.
    age: u32,
    /// Cycles with an answer "unknown application".
    missing: u32,
}

impl WatchedApp {
    /// Its live containers of a purpose.
    pub fn live(&self, purpose: Purpose) -> usize {
        self.containers.values().filter(|container| container.purpose == purpose).count()
    }
}

/// Fields of an application of which one changes whenever its containers change.
type Fingerprint = (AppState, Option<u64>, Pending, u64, Option<ContainerId>);

fn fingerprint(app: &App) -> Fingerprint {
    (app.state, app.running_containers, app.pending, app.progress.to_bits(), app.am_container)
}

/// Totals of the applications that are not of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherApps {
    pub apps: u64,
    pub containers: u64,
    /// MiB.
    pub memory_mb: u64,
    pub cores: u64,
}

/// The cluster at the last successful cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The number of successful cycles.
    pub cycle: u64,
    /// The applications of interest.
    pub watched: BTreeMap<AppId, WatchedApp>,
    /// Applications released in this cycle: one may have ended before it appeared.
    pub released: BTreeMap<AppId, App>,
    /// The others that [`PollIntervals::which`] selects.
    pub others: OtherApps,
    /// Whether containers may be missing after a recent restart of the ResourceManager.
    pub settling: bool,
}

impl Snapshot {
    /// An application of interest, also if it was released in this cycle.
    pub fn app(&self, id: AppId) -> Option<&App> {
        self.watched.get(&id).map(|watched| &watched.app).or_else(|| self.released.get(&id))
    }

    /// The requests of an application.
    pub(crate) fn pending(&self, app: AppId) -> Pending {
        self.watched.get(&app).map(|watched| watched.app.pending).unwrap_or_default()
    }
}

/// Polls a cluster. Its memory grows with the active applications of interest.
#[derive(Clone, Debug)]
pub struct Observer {
    rhythm: PollIntervals,
    snapshot: Snapshot,
    /// Applications of interest that no list has shown yet, and how often YARN did not know them.
    expected: BTreeMap<AppId, u32>,
    /// The start time of the ResourceManager.
    started_on: Option<u64>,
    /// Whether a different ResourceManager may answer now.
    unsure: bool,
    settled_at: Duration,
    turn: RoundRobin<AppId>,
}

impl Observer {
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

    /// The cluster at the last successful cycle.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Declares an application of interest before a list shows it, such as a new submission: its end is then
    /// reported even if it precedes the next cycle.
    pub fn expect(&mut self, app: AppId) {
        if !self.snapshot.watched.contains_key(&app) {
            self.expected.insert(app, 0);
        }
    }

    /// Polls the cluster. `now` is the time since any fixed moment. An application stays of interest.
    ///
    /// # Errors
    /// The ResourceManager does not answer, or not as expected: the snapshot stays as it was.
    pub fn cycle(
        &mut self,
        manager: &ResourceManager,
        now: Duration,
        mut of_interest: impl FnMut(&App) -> bool,
    ) -> Result<Vec<Change>, HttpError> {
        let mut changes = Vec::new();
        let was_unsure = std::mem::replace(&mut self.unsure, true);
        if was_unsure && self.is_restarted(manager, now)? {
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
        self.update_watched(manager, seen, &mut changes);
        Ok(changes)
    }

    /// Whether the ResourceManager was restarted or replaced.
    fn is_restarted(&mut self, manager: &ResourceManager, now: Duration) -> Result<bool, HttpError> {
        let started_on = manager.info()?.started_on;
        let before = std::mem::replace(&mut self.started_on, started_on);
        let another = before.is_some() && before != started_on;
        if another {
            self.settled_at = now.saturating_add(self.rhythm.settle);
        }
        Ok(another)
    }

    /// Updates applications of interest, within the time limit and while the ResourceManager answers.
    fn update_watched(
        &mut self,
        manager: &ResourceManager,
        seen: BTreeMap<AppId, App>,
        changes: &mut Vec<Change>,
    ) {
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
                None => self.request_app(manager, id, changes),
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

    /// Requests an application that is in no list: it has ended, or is not listed yet.
    fn request_app(
        &mut self,
        manager: &ResourceManager,
        id: AppId,
        changes: &mut Vec<Change>,
    ) -> Result<(), HttpError> {
        let Some(app) = manager.app(id)? else {
            self.handle_unknown(id, changes);
            return Ok(());
        };
        self.update(app, changes);
        self.read(manager, id, changes)
    }

    /// The ResourceManager does not know an application.
    fn handle_unknown(&mut self, id: AppId, changes: &mut Vec<Change>) {
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

    fn read(
        &mut self,
        manager: &ResourceManager,
        id: AppId,
        changes: &mut Vec<Change>,
    ) -> Result<(), HttpError> {
        let settling = self.snapshot.settling;
        let Some(watched) = self.snapshot.watched.get_mut(&id) else { return Ok(()) };
        if watched.app.state.is_over() {
            self.release_ended(id, changes);
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
        watched.apply_containers(live, settling, changes);
        // Spreads later reads of applications that appeared together over several cycles.
        let is_first = !std::mem::replace(&mut watched.was_read, true);
        watched.age = if is_first { id.number % self.rhythm.reread.max(1) } else { 0 };
        watched.read = Some(fingerprint(&watched.app));
        Ok(())
    }

    /// Applies a list entry or an application's own document.
    fn update(&mut self, app: App, changes: &mut Vec<Change>) {
        let (id, to) = (app.id, app.state);
        self.expected.remove(&id);
        let Some(watched) = self.snapshot.watched.get_mut(&id) else {
            changes.push(Change::Appeared(id));
            let is_over = app.state.is_over();
            if is_over {
                changes.push(app_ended(&app));
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
                changes.push(app_ended(&watched.app));
            }
        }
    }

    /// An ended application has no container but that of its AM, for a short time.
    fn release_ended(&mut self, id: AppId, changes: &mut Vec<Change>) {
        let Some(watched) = self.snapshot.watched.get_mut(&id) else { return };
        let lingers = watched.app.holds_containers();
        watched.end_where(changes, |container| !(lingers && container.purpose == Purpose::ApplicationMaster));
        if !lingers {
            let released = self.snapshot.watched.remove(&id);
            self.snapshot.released.extend(released.map(|watched| (id, watched.app)));
            changes.push(Change::Released(id));
        }
    }
}

impl WatchedApp {
    /// Whether to read its containers, since they may have changed. They count as changed until then.
    fn is_due(&mut self, reread: u32, settling: bool) -> bool {
        if self.read == Some(fingerprint(&self.app)) && self.age < reread && !settling {
            self.age += 1;
            self.problem = None;
            return false;
        }
        self.read = None;
        true
    }

    /// Applies the list of live containers.
    fn apply_containers(&mut self, live: Vec<Container>, settling: bool, changes: &mut Vec<Change>) {
        let attempt = self.attempt;
        let live: BTreeMap<ContainerId, Container> =
            live.into_iter().filter(|c| c.state != "COMPLETE").map(|c| (c.id, c)).collect();
        self.end_where(changes, |container| {
            // After a restart NodeManagers return one by one, with their containers.
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

fn app_ended(app: &App) -> Change {
    Change::AppEnded { app: app.id, state: app.state, status: app.final_status, finished_ms: app.finished_ms }
}

/// The last attempt of an application's AM, if it had one.
fn attempt_of(manager: &ResourceManager, app: &App) -> Result<Option<AppAttemptId>, HttpError> {
    match app.am_container {
        Some(container) => Ok(Some(container.attempt)),
        None if app.holds_containers() => {
            Ok(manager.attempts(app.id)?.into_iter().map(|attempt| attempt.id).max())
        }
        None => Ok(None),
    }
}

/// The phase of the driver for the purpose of a container.
pub(crate) fn phase_of(purpose: Purpose) -> Option<PhaseKind> {
    match purpose {
        Purpose::Map | Purpose::FailedMap => Some(PhaseKind::Map),
        Purpose::Reduce => Some(PhaseKind::Reduce),
        _ => None,
    }
}
