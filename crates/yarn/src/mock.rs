//! A mock cluster for tests: a ResourceManager, ApplicationMasters (AMs) and a JobHistory server that answer
//! as those of Hadoop 3.5.0 do. It has no tasks and no clock, and can misbehave.
//!
//! A test changes the [`State`], or calls [`State::tick`] to advance all work by one task.

mod documents;
mod server;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use slackline_model::PhaseKind;

use crate::rest::http::Address;
use crate::rest::id::{AppAttemptId, AppId, ContainerId, TaskAttemptId, TaskId};
use crate::rest::resource_manager::AppState;

/// How the JSON has lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// An array, and an empty object for none, as of a ResourceManager.
    #[default]
    Arrays,
    /// A single element without an array, and an empty string for none, as of a JobHistory server.
    Singles,
}

/// An answer in place of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mood {
    /// The document, after a pause.
    Slow(Duration),
    /// This status, type and body.
    Says(u16, &'static str, String),
    /// A redirection to this address.
    Leads(String),
    /// 401, with a request for Kerberos.
    Kerberos,
    /// The connection is closed.
    HangsUp,
}

/// An attempt of a task, in its container.
#[derive(Clone, Debug)]
pub struct MockAttempt {
    pub id: TaskAttemptId,
    pub container: ContainerId,
    pub host: String,
    /// `RUNNING`, `SUCCEEDED`, `FAILED` or `KILLED`.
    pub state: &'static str,
    /// When it began, by [`State::now_ms`].
    pub started_ms: u64,
    /// When it ended; 0 before.
    pub finished_ms: u64,
}

/// An application with maps and reduces.
#[derive(Clone, Debug)]
pub struct MockApp {
    pub id: AppId,
    /// The full path of its queue.
    pub queue: String,
    pub name: String,
    /// `MAPREDUCE` or what else it is.
    pub kind: String,
    pub tags: String,
    /// When it was submitted, by [`State::now_ms`].
    pub submitted_ms: u64,
    /// Properties of its job.
    pub properties: BTreeMap<String, String>,
    pub priority: u64,
    pub state: AppState,
    /// Whether its AM has its container.
    pub has_am: bool,
    /// The number of its AM's attempt, from 1.
    pub life: u32,
    pub maps: u32,
    /// All reduces; it requests them after the last map.
    pub reduces: u32,
    /// In the order of their starts.
    pub attempts: Vec<MockAttempt>,
    /// 0 before its end.
    pub finished_ms: u64,
    pub diagnostics: String,
    containers_made: u64,
}

/// The state of the mock cluster.
#[derive(Debug)]
pub struct State {
    /// The time of its documents.
    pub now_ms: u64,
    /// When its ResourceManager was started.
    pub started_on: u64,
    pub apps: BTreeMap<AppId, MockApp>,
    /// The queues that take applications.
    pub queues: Vec<String>,
    /// The ordering policy of all queues.
    pub ordering: &'static str,
    /// Hosts of NodeManagers, and whether they are up.
    pub hosts: Vec<(String, bool)>,
    /// Whether no application gets an AM.
    pub is_full: bool,
    /// The highest priority of an application.
    pub priority_max: u64,
    /// Properties of the ResourceManager.
    pub properties: BTreeMap<String, String>,
    /// How the JSON has lists.
    pub shape: Shape,
    /// Answers to addresses that contain a text, and how often to give each; the first match counts.
    pub moods: Vec<(&'static str, usize, Mood)>,
    /// All requests so far: the method and the address.
    pub requests: Vec<String>,
}

impl MockApp {
    fn container(&mut self) -> ContainerId {
        self.containers_made += 1;
        ContainerId {
            attempt: AppAttemptId { app: self.id, number: self.life },
            epoch: 0,
            number: self.containers_made,
        }
    }

    /// The container of its AM.
    pub fn am(&self) -> ContainerId {
        ContainerId { attempt: AppAttemptId { app: self.id, number: self.life }, epoch: 0, number: 1 }
    }

    fn count(&self, kind: PhaseKind, state: &str) -> u32 {
        self.attempts.iter().filter(|a| a.id.task.kind == kind && a.state == state).count() as u32
    }

    fn pending(&self, kind: PhaseKind) -> u32 {
        let taken = self.count(kind, "RUNNING") + self.count(kind, "SUCCEEDED");
        match kind {
            _ if self.state != AppState::Running => 0,
            PhaseKind::Map => self.maps - taken,
            PhaseKind::Reduce if self.count(PhaseKind::Map, "SUCCEEDED") < self.maps => 0,
            PhaseKind::Reduce => self.reduces - taken,
        }
    }

    /// Grants a container to its AM, which runs at once.
    pub fn start(&mut self) {
        (self.state, self.has_am, self.containers_made) = (AppState::Running, true, 1);
    }

    /// Starts the next requested task; false if none is requested.
    pub fn grant(&mut self, host: &str, now_ms: u64) -> bool {
        let Some(kind) = [PhaseKind::Map, PhaseKind::Reduce].into_iter().find(|kind| self.pending(*kind) > 0)
        else {
            return false;
        };
        let done = |number| {
            let of = TaskId { app: self.id, kind, number };
            self.attempts.iter().any(|a| a.id.task == of && matches!(a.state, "RUNNING" | "SUCCEEDED"))
        };
        let number = (0..self.maps.max(self.reduces)).find(|number| !done(*number)).unwrap_or_default();
        let task = TaskId { app: self.id, kind, number };
        let tried = self.attempts.iter().filter(|a| a.id.task == task).count() as u32;
        let container = self.container();
        self.attempts.push(MockAttempt {
            id: TaskAttemptId { task, number: tried },
            container,
            host: host.to_owned(),
            state: "RUNNING",
            started_ms: now_ms,
            finished_ms: 0,
        });
        true
    }

    /// Ends its oldest running attempt; false if there is none.
    pub fn end_one(&mut self, state: &'static str, now_ms: u64) -> bool {
        let oldest = self.attempts.iter_mut().find(|attempt| attempt.state == "RUNNING");
        oldest.map(|attempt| (attempt.state, attempt.finished_ms) = (state, now_ms)).is_some()
    }

    /// Ends it; its AM keeps its container until [`MockApp::release`].
    pub fn end(&mut self, state: AppState, now_ms: u64) {
        while self.end_one("KILLED", now_ms) {}
        (self.state, self.finished_ms) = (state, now_ms);
    }

    /// Its AM leaves its container.
    pub fn release(&mut self) {
        self.has_am = false;
    }

    /// Another AM takes over, without the running attempts.
    pub fn fail_am(&mut self, now_ms: u64) {
        while self.end_one("KILLED", now_ms) {}
        self.life += 1;
        self.containers_made = 1;
    }

    fn running(&self) -> impl Iterator<Item = &MockAttempt> {
        self.attempts.iter().filter(|attempt| attempt.state == "RUNNING")
    }
}

impl State {
    fn new() -> Self {
        Self {
            now_ms: 1_700_000_000_000,
            started_on: 1_700_000_000_000,
            apps: BTreeMap::new(),
            queues: vec!["root.default".to_owned(), "root.jobs".to_owned()],
            ordering: "fifo",
            hosts: (2..6).map(|n| (format!("127.0.0.{n}"), true)).collect(),
            is_full: false,
            priority_max: u64::MAX,
            properties: BTreeMap::new(),
            shape: Shape::Arrays,
            moods: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Adds an application that waits for its AM.
    pub fn submit(&mut self, queue: &str, maps: u32, reduces: u32) -> &mut MockApp {
        let number = self.apps.keys().next_back().map_or(1, |last| last.number + 1);
        let id = AppId { cluster: self.started_on, number };
        self.apps.entry(id).or_insert(MockApp {
            id,
            queue: queue.to_owned(),
            name: format!("job {number}"),
            kind: "MAPREDUCE".to_owned(),
            submitted_ms: self.now_ms,
            properties: BTreeMap::new(),
            tags: String::new(),
            priority: 0,
            state: AppState::Accepted,
            has_am: false,
            life: 1,
            maps,
            reduces,
            attempts: Vec::new(),
            finished_ms: 0,
            diagnostics: String::new(),
            containers_made: 0,
        })
    }

    /// Advances everything by one second: each application ends its oldest task and starts new ones up to
    /// `width`. One without tasks ends, and an ended one leaves.
    pub fn tick(&mut self, width: usize) {
        self.now_ms += 1000;
        let (now, hosts) = (self.now_ms, &self.hosts);
        for (n, app) in self.apps.values_mut().enumerate() {
            match app.state {
                AppState::Accepted => app.start(),
                AppState::Running => {
                    app.end_one("SUCCEEDED", now);
                    while app.running().count() < width {
                        let host = &hosts[(n + app.attempts.len()) % hosts.len()].0;
                        if !app.grant(host, now) {
                            break;
                        }
                    }
                    if app.running().next().is_none() {
                        app.end(AppState::Finished, now);
                    }
                }
                _ => app.release(),
            }
        }
    }
}

/// A cluster that runs until it is dropped.
#[derive(Debug)]
pub struct Mock {
    state: Arc<Mutex<State>>,
    at: SocketAddr,
    over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Mock {
    /// An empty cluster of four NodeManagers, on a free local port.
    ///
    /// # Errors
    /// No port is free.
    pub fn start() -> std::io::Result<Self> {
        let socket = TcpListener::bind(("127.0.0.1", 0))?;
        let at = socket.local_addr()?;
        let state = Arc::new(Mutex::new(State::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (shared, ends) = (Arc::clone(&state), Arc::clone(&over));
        let listener = thread::spawn(move || {
            for stream in socket.incoming().flatten() {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                let state = Arc::clone(&shared);
                // The thread ends when the client hangs up.
                thread::spawn(move || server::serve(&stream, &state));
            }
        });
        Ok(Self { state, at, over, listener: Some(listener) })
    }

    /// Its address, also of the history.
    pub fn address(&self) -> Address {
        Address::parse(&self.at.to_string()).expect("an address of this machine")
    }

    /// Reads or changes the cluster.
    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the listener.
        drop(TcpStream::connect(self.at));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}
