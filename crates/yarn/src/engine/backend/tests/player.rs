//! A submitter and ApplicationMasters that are played, on the mock cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::clock::unix_millis;
use crate::engine::cluster::Submits;
use crate::id::{AppId, TaskKind};
use crate::mock::{Mock, MockAttempt, Mood};
use crate::rest::AppState;
use crate::submitter::{JobRequest, SubmitterError};

/// What becomes of a job that is submitted.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// All its tasks are done at once.
    Works,
    /// Its ApplicationMaster waits for containers.
    Waits,
    /// It is not submitted.
    Fails(SubmitterError),
    /// It waits, and nobody is told which application it is.
    Lost(SubmitterError),
    /// Nobody is told which application it is until the sender is gone.
    Late(Arc<Mutex<Receiver<()>>>),
    /// The first attempt of its first map fails, and it waits for another.
    FailsOnce,
    /// An attempt fails of a map that it does not have, and it waits.
    FailsBeyond,
    /// The report of an attempt is damaged.
    Damages,
}

/// What becomes of the submission with this number, from 0.
type Script = Box<dyn Fn(usize, &JobRequest) -> Act + Send + Sync>;

/// A submitter and ApplicationMasters.
pub(super) struct Player {
    mock: Arc<Mock>,
    script: Mutex<Script>,
    requests: Mutex<Vec<JobRequest>>,
    /// How far the clocks of nodes are ahead, ms.
    pub(super) ahead_ms: AtomicU64,
}

impl Player {
    pub(super) fn new(mock: Arc<Mock>) -> Self {
        Self {
            mock,
            script: Mutex::new(Box::new(|_, _| Act::Works)),
            requests: Mutex::default(),
            ahead_ms: AtomicU64::new(0),
        }
    }

    /// Has submissions from now on end like that.
    pub(super) fn follow(&self, script: impl Fn(usize, &JobRequest) -> Act + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// The jobs that were submitted, by their names.
    pub(super) fn submitted(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|request| request.name.clone()).collect()
    }

    /// The last submission of all.
    pub(super) fn last(&self) -> JobRequest {
        self.requests.lock().unwrap().last().unwrap().clone()
    }

    /// Hands a job to the mock cluster.
    fn accept(&self, request: &JobRequest) -> AppId {
        self.mock.with(|state| {
            state.now_ms = unix_millis();
            let app = state.submit("root.jobs", request.maps, request.reducers);
            app.name.clone_from(&request.name);
            app.tags = request.tags.join(",").to_lowercase();
            app.priority = request.priority.map_or(0, u64::from);
            app.start();
            app.id
        })
    }

    /// What the clock of a node says.
    fn node_ms(&self) -> u64 {
        unix_millis() + self.ahead_ms.load(Ordering::SeqCst)
    }

    /// Runs all tasks of a job that are left.
    pub(super) fn work(&self, app: AppId, request: &JobRequest) {
        self.mock.with(|state| {
            let now = unix_millis();
            let app = state.apps.get_mut(&app).unwrap();
            while app.grant("127.0.0.2", now) {
                let attempt = app.attempts.last().unwrap().clone();
                let is_final = request.reducers == 0 || attempt.id.task.kind == TaskKind::Reduce;
                let part = is_final.then(|| made_by(request));
                write((&attempt, self.node_ms()), request, &json!({ "done": { "records_in": 1 } }), part);
                app.end_one("SUCCEEDED", now);
            }
            app.end(AppState::Finished, now);
            app.release();
        });
    }

    /// Has the list of applications show none.
    pub(super) fn hide(&self) {
        let none = Mood::Says(200, "application/json;charset=utf-8", r#"{"apps":{}}"#.to_owned());
        self.mock.with(|state| state.moods.push(("cluster/apps?", usize::MAX, none)));
    }

    /// An attempt fails, which says that it was one of its map plus this.
    fn fail_once(&self, app: AppId, request: &JobRequest, beyond: u32) {
        self.mock.with(|state| {
            let now = unix_millis();
            let app = state.apps.get_mut(&app).unwrap();
            app.grant("127.0.0.2", now);
            let mut attempt = app.attempts.last().unwrap().clone();
            attempt.id.task.number += beyond;
            write((&attempt, self.node_ms()), request, &json!({ "failed": { "message": "no luck" } }), None);
            app.end_one("FAILED", now);
        });
    }
}

impl Submits for Player {
    fn submit(&self, request: &JobRequest) -> Result<AppId, SubmitterError> {
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        let act = (self.script.lock().unwrap())(number, request);
        if let Act::Fails(error) = act {
            return Err(error);
        }
        let app = self.accept(request);
        match act {
            Act::Works => self.work(app, request),
            Act::FailsOnce => self.fail_once(app, request, 0),
            Act::FailsBeyond => self.fail_once(app, request, 1000),
            Act::Damages => {
                let directory =
                    local(&request.destination).join(format!("attempt_{}_m_000000_0", &app.job()[4..]));
                fs::create_dir_all(&directory).unwrap();
                fs::write(directory.join("report.json"), "{").unwrap();
            }
            Act::Lost(error) => return Err(error),
            Act::Late(gate) => drop(gate.lock().unwrap().recv()),
            _ => {}
        }
        Ok(app)
    }
}

/// What a job's parts say: what its tasks were told, if that is here.
fn made_by(request: &JobRequest) -> String {
    let read = |uri: &String| uri.strip_prefix("file://").map(|path| fs::read_to_string(path).unwrap());
    [&request.spec, &request.pieces].into_iter().filter_map(read).collect()
}

/// Writes what an attempt writes that ends at that time.
fn write((attempt, now): (&MockAttempt, u64), request: &JobRequest, report: &Value, part: Option<String>) {
    let directory = local(&request.destination).join(attempt.id.to_string());
    fs::create_dir_all(&directory).unwrap();
    let mut said = json!({ "container": attempt.container.to_string(), "host": attempt.host,
        "started": attempt.started_ms });
    fs::write(directory.join("begun.json"), said.to_string()).unwrap();
    if let Some(part) = part {
        fs::write(directory.join("part"), part).unwrap();
    }
    said["ended"] = now.into();
    said["report"] = report.clone();
    fs::write(directory.join("report.json"), said.to_string()).unwrap();
}

/// The file of a URI.
pub(super) fn local(uri: &str) -> PathBuf {
    Path::new(uri.strip_prefix("file://").unwrap()).to_owned()
}
