//! A mock submitter, with the ApplicationMasters of its jobs, on the mock cluster.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use slackline_model::PhaseKind;

use crate::clock::unix_millis;
use crate::flows::applications::JobSubmitter;
use crate::mock::{Mock, MockAttempt, Mood};
use crate::rest::id::AppId;
use crate::rest::resource_manager::AppState;
use crate::submitter::{FailureKind, JarRequest, JobRequest, ProcessState, StartedProgram, SubmitterError};

/// The outcome of a submission.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// All its tasks are done at once.
    Works,
    /// Its ApplicationMaster waits for containers.
    Waits,
    /// It is not submitted.
    Fails(SubmitterError),
    /// It waits, and the submission has no answer.
    Lost(SubmitterError),
    /// The submission has no answer until the sender is dropped.
    Late(Arc<Mutex<Receiver<()>>>),
    /// The first attempt of its first map fails, and it waits for another.
    FailsOnce,
    /// An attempt fails of a map that it does not have, and it waits.
    FailsBeyond,
    /// The report of an attempt is damaged.
    Damages,
}

/// The outcome of the submission with this number, from 0.
type Script = Box<dyn Fn(usize, &JobRequest) -> Act + Send + Sync>;

/// What the program of a jar does.
#[derive(Clone, Debug)]
pub(super) enum Plays {
    /// Its one application does all its tasks, and it ends well.
    Works,
    /// Its application waits for containers, and it waits for its application.
    Waits,
    /// The same, and it has submitted another by the time it is killed.
    SubmitsMore,
    /// Its application waits, and the start has no answer.
    Lost(SubmitterError),
    /// It is not started.
    Fails(SubmitterError),
    /// It ends with this exit code, and has submitted nothing.
    Exits(i32),
}

/// What the program of the submission with this number does, from 0.
type Part = Box<dyn Fn(usize, &JarRequest) -> Plays + Send + Sync>;

/// A submitter and ApplicationMasters.
pub(super) struct Player {
    mock: Arc<Mock>,
    script: Mutex<Script>,
    requests: Mutex<Vec<JobRequest>>,
    part: Mutex<Part>,
    jars: Mutex<Vec<JarRequest>>,
    /// Programs that were started: which submission each is, and how it ended.
    programs: Mutex<BTreeMap<u64, (usize, Option<i32>)>>,
    /// How far the clocks of nodes are ahead, ms.
    pub(super) ahead_ms: AtomicU64,
}

impl Player {
    pub(super) fn new(mock: Arc<Mock>) -> Self {
        Self {
            mock,
            script: Mutex::new(Box::new(|_, _| Act::Works)),
            requests: Mutex::default(),
            part: Mutex::new(Box::new(|_, _| Plays::Works)),
            jars: Mutex::default(),
            programs: Mutex::default(),
            ahead_ms: AtomicU64::new(0),
        }
    }

    /// Has submissions from now on end like that.
    pub(super) fn follow(&self, script: impl Fn(usize, &JobRequest) -> Act + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// Has programs from now on do that.
    pub(super) fn play(&self, part: impl Fn(usize, &JarRequest) -> Plays + Send + Sync + 'static) {
        *self.part.lock().unwrap() = Box::new(part);
    }

    /// The programs that were started.
    pub(super) fn jars(&self) -> Vec<JarRequest> {
        self.jars.lock().unwrap().clone()
    }

    /// How programs ended that were started, by their numbers.
    pub(super) fn exits(&self) -> Vec<Option<i32>> {
        self.programs.lock().unwrap().values().map(|(_, exit)| *exit).collect()
    }

    /// Knows no program any more, as another submitter that was started in the place of this one.
    pub(super) fn forget_programs(&self) {
        self.programs.lock().unwrap().clear();
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
        let tasks = (request.maps, request.reducers);
        self.submit_app(&request.name, tasks, (&request.tags, request.priority))
    }

    fn submit_app(
        &self,
        name: &str,
        (maps, reducers): (u32, u32),
        (tags, priority): (&[String], Option<u32>),
    ) -> AppId {
        self.mock.with(|state| {
            state.now_ms = unix_millis();
            let is_full = state.is_full;
            let app = state.submit("root.jobs", maps, reducers);
            name.clone_into(&mut app.name);
            app.tags = tags.join(",").to_lowercase();
            app.priority = priority.map_or(0, u64::from);
            if !is_full {
                app.start();
            }
            app.id
        })
    }

    /// Submits an application of a program, with one map and the reduces of its properties.
    fn submission_of(&self, request: &JarRequest) -> AppId {
        let reducers = request.properties["mapreduce.job.reduces"].parse().unwrap();
        self.submit_app(&request.main, (1, reducers), (&request.tags, request.priority))
    }

    /// Does what a program does: its parts say what its arguments are.
    fn do_all_of(&self, app: AppId, request: &JarRequest) {
        let output = local(request.arguments.last().unwrap());
        fs::create_dir_all(&output).unwrap();
        self.mock.with(|state| {
            let now = unix_millis();
            let app = state.apps.get_mut(&app).unwrap();
            while app.grant("127.0.0.2", now) {
                app.end_one("SUCCEEDED", now);
            }
            for number in 0..app.reduces {
                fs::write(output.join(format!("part-r-{number:05}")), request.arguments[0].clone()).unwrap();
            }
            fs::write(output.join("_SUCCESS"), "").unwrap();
            app.end(AppState::Finished, now);
            app.release();
        });
    }

    /// What the clock of a node says.
    fn node_ms(&self) -> u64 {
        unix_millis() + self.ahead_ms.load(Ordering::SeqCst)
    }

    /// Runs all tasks of a job that are left, and ends it.
    pub(super) fn work(&self, app: AppId, request: &JobRequest) {
        self.work_on(app, request);
        self.mock.with(|state| {
            let app = state.apps.get_mut(&app).unwrap();
            app.end(AppState::Finished, unix_millis());
            app.release();
        });
    }

    /// Runs all remaining tasks of a job, and reruns one that keeps running.
    pub(super) fn work_on(&self, app: AppId, request: &JobRequest) {
        self.mock.with(|state| {
            let now = unix_millis();
            let app = state.apps.get_mut(&app).unwrap();
            while app.grant("127.0.0.2", now) {
                let attempt = app.attempts.last().unwrap().clone();
                let is_final = request.reducers == 0 || attempt.id.task.kind == PhaseKind::Reduce;
                let part = is_final.then(|| made_by(request));
                write((&attempt, self.node_ms()), request, &json!({ "done": { "records_in": 1 } }), part);
                app.end_one("SUCCEEDED", now);
            }
            app.maps += 1;
            app.grant("127.0.0.2", now);
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

impl JobSubmitter for Player {
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

    fn jar(&self, request: &JarRequest) -> Result<StartedProgram, SubmitterError> {
        let number = {
            let mut jars = self.jars.lock().unwrap();
            jars.push(request.clone());
            jars.len() - 1
        };
        let plays = (self.part.lock().unwrap())(number, request);
        let exit = match plays.clone() {
            Plays::Fails(error) => return Err(error),
            Plays::Exits(code) => Some(code),
            Plays::Works => {
                self.do_all_of(self.submission_of(request), request);
                Some(0)
            }
            Plays::Waits | Plays::SubmitsMore | Plays::Lost(_) => {
                self.submission_of(request);
                None
            }
        };
        let mut programs = self.programs.lock().unwrap();
        let process = programs.len() as u64 + 1;
        programs.insert(process, (number, exit));
        match plays {
            Plays::Lost(error) => Err(error),
            _ => Ok(StartedProgram { process, pid: 4000 + process }),
        }
    }

    fn process(&self, process: u64) -> Result<ProcessState, SubmitterError> {
        let programs = self.programs.lock().unwrap();
        let Some(&(_, exit)) = programs.get(&process) else {
            return Err(SubmitterError::Failed { kind: FailureKind::Other, message: "no such".to_owned() });
        };
        let said = if exit.is_some_and(|code| code != 0) { "its last words" } else { "" };
        Ok(ProcessState { running: exit.is_none(), exit, said: said.to_owned() })
    }

    fn stop(&self, process: u64) -> Result<(), SubmitterError> {
        let mut programs = self.programs.lock().unwrap();
        let Some((number, exit)) = programs.get_mut(&process).filter(|(_, exit)| exit.is_none()) else {
            return Ok(());
        };
        let request = self.jars.lock().unwrap()[*number].clone();
        if matches!((self.part.lock().unwrap())(*number, &request), Plays::SubmitsMore) {
            self.submission_of(&request);
        }
        *exit = Some(137);
        Ok(())
    }
}

/// The content of a job's parts: the definition of its tasks, if that is local.
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
