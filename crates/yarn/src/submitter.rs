//! The submitter: a long-running Java process that submits jobs to Hadoop and reads and writes its file
//! systems. A new process would take seconds for each request.
//!
//! Requests go over a Unix socket that only its user can open: one JSON document per line, each with an id;
//! several threads may send requests at once. The process ends when its standard input closes, so it does not
//! outlive this one. If it dies, it is started again a few times. Idempotent requests are then retried; a
//! submission is not.

mod process;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::rest::id::AppId;
use process::Process;

/// How to start the process, and its time limits.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: PathBuf,
    /// Its arguments; `--socket PATH` follows them.
    pub arguments: Vec<OsString>,
    /// Added to its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The parent of the socket's directory: the system's temporary directory. The path of a socket has 100
    /// bytes at most.
    pub directory: PathBuf,
    /// Time limit until it is ready: 60 s.
    pub start: Duration,
    /// Time limit for an answer: 60 s.
    pub answer: Duration,
    /// Restarts after it died: 3.
    pub restarts: u32,
}

impl Launch {
    /// The submitter on a JVM, with the directories and jars of its class path (the directory of the
    /// cluster's configuration first) and options of the JVM such as `-Xmx256m`.
    ///
    /// # Errors
    /// A path contains `:`.
    pub fn java(
        java: &Path,
        class_path: &[PathBuf],
        options: &[&str],
    ) -> Result<Self, std::env::JoinPathsError> {
        let class_path = std::env::join_paths(class_path)?;
        let options = options.iter().map(OsStr::new);
        let rest = [OsStr::new("-cp"), &class_path, OsStr::new("slackline.hadoop.Submitter")];
        Ok(Self::of(java, options.chain(rest).map(OsStr::to_owned).collect()))
    }

    /// Any program that speaks the protocol.
    pub fn of(program: &Path, arguments: Vec<OsString>) -> Self {
        Self {
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            directory: std::env::temp_dir(),
            start: Duration::from_secs(60),
            answer: Duration::from_secs(60),
            restarts: 3,
        }
    }
}

/// The kind of an error that the submitter reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// An input is missing or cannot be read.
    Input,
    /// An output exists, or cannot be written.
    Output,
    /// The cluster requires Kerberos or TLS.
    Security,
    /// The request or the job was refused.
    Refused,
    /// The cluster does not answer.
    Unreachable,
    #[serde(other)]
    Other,
}

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitterError {
    /// The process could not be started, or did not become ready.
    #[error("the process that submits to Hadoop did not start: {why}")]
    Start {
        /// The cause, and its last output.
        why: String,
    },
    /// The process died. The request may have had an effect.
    #[error("the process that submits to Hadoop died: {why}")]
    Died {
        /// The cause, and its last output.
        why: String,
    },
    /// The process did not answer. The request may still have an effect.
    #[error("the process that submits to Hadoop did not answer `{verb}` within {} s", after.as_secs())]
    TimedOut { verb: &'static str, after: Duration },
    /// The request failed.
    #[error("{message}")]
    Failed {
        kind: FailureKind,
        /// For the user.
        message: String,
    },
    /// The answer violates the protocol.
    #[error("the process that submits to Hadoop answered `{verb}` with an invalid message: {why}")]
    Unknown { verb: &'static str, why: String },
}

impl SubmitterError {
    /// Whether the request certainly had no effect, and a retry would fail too.
    pub fn is_final(&self) -> bool {
        use FailureKind::{Input, Output, Refused, Security};
        matches!(self, Self::Failed { kind: Refused | Input | Output | Security, .. })
    }
}

/// The description of a submitter and its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SubmitterInfo {
    /// Of the protocol.
    pub version: u32,
    /// The version of Hadoop.
    pub hadoop: String,
    /// The file system of paths without a scheme, such as `hdfs://nn:9000`.
    pub default_fs: String,
    /// The user of its submissions.
    pub user: String,
    /// The framework that runs its jobs (`mapreduce.framework.name`), `yarn` for a cluster; `None` from an
    /// earlier submitter.
    #[serde(default)]
    pub framework: Option<String>,
}

/// A job whose tasks run Slackline's worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobRequest {
    pub name: String,
    /// Its queue; `None` is the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its priority; a higher one goes first. `None` is the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Tags, by which the application is found.
    pub tags: Vec<String>,
    /// The URI of the definition of its tasks.
    pub spec: String,
    /// The URI of the splits of its maps.
    pub pieces: String,
    /// The URI of the worker.
    pub worker: String,
    /// The directory for the files of attempts.
    pub destination: String,
    pub maps: u32,
    pub reducers: u32,
    /// The most attempts of a task.
    pub attempts: u32,
    /// Memory of a task's container in MiB.
    pub memory_mb: u64,
    /// Processors of a task's container.
    pub cores: u32,
    /// Files in the working directory of its tasks, as `URI#NAME`.
    pub files: Vec<String>,
    /// Properties of Hadoop.
    pub properties: BTreeMap<String, String>,
}

/// A program that submits MapReduce jobs itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JarRequest {
    /// The jar, a file of this machine.
    pub jar: String,
    /// The class whose `main` is called.
    pub main: String,
    pub arguments: Vec<String>,
    /// The queue of its jobs; `None` is the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Their priority; `None` is the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Tags, by which its applications are found.
    pub tags: Vec<String>,
    /// Properties of Hadoop.
    pub properties: BTreeMap<String, String>,
}

/// A submitted job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Submitted {
    pub application: AppId,
}

/// A program of a jar that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct StartedProgram {
    /// Its number in the submitter.
    pub process: u64,
    /// Its process id on this machine.
    pub pid: u64,
}

/// The state of a program of a jar.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProcessState {
    pub running: bool,
    /// After its end.
    #[serde(default)]
    pub exit: Option<i32>,
    /// Its last lines of output, after its end.
    #[serde(default)]
    pub said: String,
}

/// A file or directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// With the scheme of its file system.
    pub path: String,
    /// Its length in bytes.
    pub length: u64,
    /// The time of the last change, in milliseconds since 1970.
    pub modified: u64,
    pub directory: bool,
}

/// Whether a request may be repeated when it may have had an effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Fine,
    Never,
}

/// The submitter process, restarted when it dies. It ends when this is dropped.
#[derive(Debug)]
pub struct Submitter {
    launch: Launch,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    process: Arc<Process>,
    restarts_left: u32,
}

impl Submitter {
    /// Starts the process and waits until it is ready.
    ///
    /// # Errors
    /// [`SubmitterError::Start`] has its last output.
    pub fn start(launch: Launch) -> Result<Self, SubmitterError> {
        let process = Arc::new(Process::start(&launch)?);
        let state = State { process, restarts_left: launch.restarts };
        Ok(Self { launch, state: Mutex::new(state) })
    }

    /// The description of the submitter and its cluster.
    ///
    /// # Errors
    /// See [`SubmitterError`]; also for the other functions.
    pub fn about(&self) -> Result<SubmitterInfo, SubmitterError> {
        self.ask("about", &json!({}), Repeat::Fine)
    }

    /// Submits a job. After [`SubmitterError::Died`] or [`SubmitterError::TimedOut`] it may have been
    /// submitted: search for its tags.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn submit(&self, job: &JobRequest) -> Result<Submitted, SubmitterError> {
        self.ask("submit", &json!({ "job": job }), Repeat::Never)
    }

    /// Starts the program of a jar, which ends with the submitter.
    ///
    /// # Errors
    ///
    /// See [`SubmitterError`].
    pub fn jar(&self, jar: &JarRequest) -> Result<StartedProgram, SubmitterError> {
        self.ask("jar", &json!(jar), Repeat::Never)
    }

    /// The state of a program of a jar. A restarted submitter does not know it.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn process(&self, process: u64) -> Result<ProcessState, SubmitterError> {
        self.ask("process", &json!({ "process": process }), Repeat::Fine)
    }

    /// Kills the program of a jar and all processes that it started.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn stop(&self, process: u64) -> Result<(), SubmitterError> {
        self.done("stop", &json!({ "process": process }), Repeat::Fine)
    }

    /// Kills an application.
    ///
    /// # Errors
    ///
    /// See [`SubmitterError`].
    pub fn kill(&self, app: AppId) -> Result<(), SubmitterError> {
        self.done("kill", &json!({ "application": app.to_string() }), Repeat::Fine)
    }

    /// The files that match a pattern, or the content of a directory, sorted by path.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn list(&self, pattern: &str) -> Result<Vec<Entry>, SubmitterError> {
        self.field("list", &json!({ "path": pattern }), Repeat::Fine, "entries")
    }

    /// A file or directory, if it exists.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn stat(&self, path: &str) -> Result<Option<Entry>, SubmitterError> {
        self.field("stat", &json!({ "path": path }), Repeat::Fine, "entry")
    }

    /// `length` bytes of a file from `offset` on (64 MiB at most); fewer only at its end.
    ///
    /// # Errors
    ///
    /// See [`SubmitterError`].
    pub fn read(&self, path: &str, offset: u64, length: u64) -> Result<Vec<u8>, SubmitterError> {
        let request = json!({ "path": path, "offset": offset, "length": length });
        let text: String = self.field("read", &request, Repeat::Fine, "base64")?;
        STANDARD
            .decode(text)
            .map_err(|error| SubmitterError::Unknown { verb: "read", why: error.to_string() })
    }

    /// Writes a small file: up to some 10 MB.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SubmitterError> {
        self.done("write", &json!({ "path": path, "base64": STANDARD.encode(bytes) }), Repeat::Fine)
    }

    /// Writes a copy of a local file of any size.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn upload(&self, path: &str, local: &Path) -> Result<(), SubmitterError> {
        self.done("write", &json!({ "path": path, "local": local }), Repeat::Fine)
    }

    /// Removes a file or directory with its content; a missing one is no error.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn delete(&self, path: &str) -> Result<(), SubmitterError> {
        self.done("delete", &json!({ "path": path }), Repeat::Fine)
    }

    /// Moves a file or directory to a free path.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn rename(&self, from: &str, to: &str) -> Result<(), SubmitterError> {
        self.done("rename", &json!({ "from": from, "to": to }), Repeat::Never)
    }

    /// Makes a directory and those above it.
    ///
    /// # Errors
    ///
    /// See [`SubmitterError`].
    pub fn mkdirs(&self, path: &str) -> Result<(), SubmitterError> {
        self.done("mkdirs", &json!({ "path": path }), Repeat::Fine)
    }

    fn done(&self, verb: &'static str, request: &Value, repeat: Repeat) -> Result<(), SubmitterError> {
        self.ask::<Map<String, Value>>(verb, request, repeat).map(drop)
    }

    /// Sends a request, and gives one field of the result.
    fn field<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        request: &Value,
        repeat: Repeat,
        field: &str,
    ) -> Result<T, SubmitterError> {
        let mut done: Map<String, Value> = self.ask(verb, request, repeat)?;
        let unknown = |why| SubmitterError::Unknown { verb, why };
        let part = done.remove(field).ok_or_else(|| unknown(format!("no `{field}` in it")))?;
        T::deserialize(part).map_err(|error| unknown(error.to_string()))
    }

    fn ask<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        request: &Value,
        repeat: Repeat,
    ) -> Result<T, SubmitterError> {
        let mut answer = self.running_process()?.ask(verb, request, self.launch.answer);
        if repeat == Repeat::Fine && matches!(answer, Err(SubmitterError::Died { .. })) {
            answer = self.running_process()?.ask(verb, request, self.launch.answer);
        }
        T::deserialize(answer?).map_err(|error| SubmitterError::Unknown { verb, why: error.to_string() })
    }

    /// The process, restarted if it has died.
    fn running_process(&self) -> Result<Arc<Process>, SubmitterError> {
        let mut state = locked(&self.state);
        if let Some(why) = state.process.death() {
            if state.restarts_left == 0 {
                return Err(SubmitterError::Died {
                    why: format!("{why} (it was restarted {} times)", self.launch.restarts),
                });
            }
            state.restarts_left -= 1;
            state.process = Arc::new(Process::start(&self.launch)?);
        }
        Ok(Arc::clone(&state.process))
    }
}

/// Locks a mutex, also after a panic of another thread: no state here is ever half written.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
