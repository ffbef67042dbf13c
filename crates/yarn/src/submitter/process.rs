//! One submitter process: its start, its socket, its end.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{FailureKind, Launch, SubmitterError, locked};
use crate::clock::{Stopwatch, pause, unix_millis};

/// Time limit for a process to end by itself.
const FAREWELL: Duration = Duration::from_secs(5);
/// Bytes of the last output of a process that are kept.
const LAST_WORDS: usize = 4_000;
/// The longest answer in bytes, some million files of a list.
const LONGEST: u64 = 256 << 20;

/// A process that has become ready.
#[derive(Debug)]
pub(super) struct Process {
    child: Mutex<Child>,
    last: RecentOutput,
    stream: Mutex<UnixStream>,
    line: Arc<Mutex<Connection>>,
    _home: SocketDirectory,
}

/// Requests that wait for answers.
#[derive(Debug, Default)]
struct Connection {
    last_id: u64,
    waiting: BTreeMap<u64, Sender<Response>>,
    closed: bool,
}

#[derive(Debug, Deserialize)]
struct Response {
    id: Option<u64>,
    #[serde(default)]
    done: Option<Value>,
    #[serde(default)]
    failed: Option<FailureResponse>,
}

#[derive(Debug, Deserialize)]
struct FailureResponse {
    kind: FailureKind,
    message: String,
}

impl Process {
    pub(super) fn start(launch: &Launch) -> Result<Self, SubmitterError> {
        let failed = |why: String| SubmitterError::Start { why };
        let home = SocketDirectory::make(&launch.directory).map_err(|error| failed(error.to_string()))?;
        let socket = home.0.join("socket");
        let mut child = Command::new(&launch.program)
            .args(&launch.arguments)
            .arg("--socket")
            .arg(&socket)
            .envs(launch.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // This process handles Ctrl-C, since it needs the submitter to clean up.
            .process_group(0)
            .spawn()
            .map_err(|error| failed(format!("{}: {error}", launch.program.display())))?;
        let last = RecentOutput::default();
        let (ready, is_ready) = mpsc::channel();
        let line = Arc::<Mutex<Connection>>::default();
        let listening = match (child.stdout.take(), child.stderr.take()) {
            (Some(stdout), Some(stderr)) => {
                last.listen(stderr, None).and_then(|()| last.listen(stdout, Some(ready)))
            }
            _ => Ok(()),
        };
        let listening = listening.map_err(|error| format!("its output cannot be read: {error}"));
        let is_up = listening.and_then(|()| wait_until_ready(&is_ready, launch.start));
        let connected = is_up.and_then(|()| {
            connect(&socket, launch.answer, &line).map_err(|error| format!("its socket: {error}"))
        });
        match connected {
            Ok(stream) => {
                Ok(Self { child: Mutex::new(child), last, stream: Mutex::new(stream), line, _home: home })
            }
            Err(why) => {
                let ended = end_process(&mut child, Duration::from_millis(200));
                Err(failed(format!("{why}; {}", last.with_output(&ended))))
            }
        }
    }

    /// Sends a request, and waits for the answer.
    pub(super) fn ask(
        &self,
        verb: &'static str,
        request: &Value,
        time_limit: Duration,
    ) -> Result<Value, SubmitterError> {
        let (sender, answers) = mpsc::channel();
        let id = {
            let mut line = locked(&self.line);
            line.last_id += 1;
            let id = line.last_id;
            if !line.closed {
                line.waiting.insert(id, sender);
            }
            id
        };
        let mut document = request.clone();
        document["id"] = id.into();
        document["do"] = verb.into();
        let sent = locked(&self.stream).write_all(format!("{document}\n").as_bytes());
        if sent.is_err() {
            // Half a request may have been sent: the process could not understand the next one.
            self.hang_up();
        }
        let answer = match answers.recv_timeout(time_limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                locked(&self.line).waiting.remove(&id);
                return Err(SubmitterError::TimedOut { verb, after: time_limit });
            }
            Err(RecvTimeoutError::Disconnected) => {
                let why = self.death().unwrap_or_else(|| "it closed its socket".to_owned());
                return Err(SubmitterError::Died { why });
            }
        };
        match (answer.done, answer.failed) {
            (_, Some(FailureResponse { kind, message })) => Err(SubmitterError::Failed { kind, message }),
            (Some(done), None) => Ok(done),
            (None, None) => {
                Err(SubmitterError::Unknown { verb, why: "neither `done` nor `failed` in it".to_owned() })
            }
        }
    }

    /// The cause of its death and its last output, if it no longer answers.
    pub(super) fn death(&self) -> Option<String> {
        if !locked(&self.line).closed {
            return None;
        }
        let ended = end_process(&mut locked(&self.child), FAREWELL);
        Some(self.last.with_output(&ended))
    }

    fn hang_up(&self) {
        let _ = locked(&self.stream).shutdown(std::net::Shutdown::Both);
        close(&self.line);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.hang_up();
        end_process(&mut locked(&self.child), FAREWELL);
    }
}

/// Tells all waiting requests that no answer follows.
fn close(line: &Mutex<Connection>) {
    let mut line = locked(line);
    line.closed = true;
    line.waiting.clear();
}

fn wait_until_ready(lines: &Receiver<String>, time_limit: Duration) -> Result<(), String> {
    let began = Stopwatch::start();
    loop {
        match lines.recv_timeout(time_limit.saturating_sub(began.elapsed())) {
            Ok(line) if line == "ready 1" => return Ok(()),
            Ok(line) if line.starts_with("ready ") => {
                return Err(format!(
                    "it speaks another version of the protocol (`{line}`, expected `ready 1`)"
                ));
            }
            // Output of libraries.
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("it was not ready within {} s", time_limit.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err("it ended before it was ready".to_owned()),
        }
    }
}

/// Connects, and from then on hands out answers.
fn connect(socket: &Path, time_limit: Duration, line: &Arc<Mutex<Connection>>) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(time_limit).filter(|time_limit| !time_limit.is_zero()))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let line = Arc::clone(line);
    thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        loop {
            text.clear();
            match reader.by_ref().take(LONGEST).read_until(b'\n', &mut text) {
                Ok(_) if text.last() == Some(&b'\n') => {}
                _ => break,
            }
            let Ok(answer) = serde_json::from_slice::<Response>(&text) else { break };
            // No request waits for a late answer.
            let waits = answer.id.and_then(|id| locked(&line).waiting.remove(&id));
            if let Some(waits) = waits {
                let _ = waits.send(answer);
            }
        }
        let _ = reader.get_ref().shutdown(std::net::Shutdown::Both);
        close(&line);
    })?;
    Ok(stream)
}

/// Closes its standard input, waits for its end, and kills it after the time limit.
fn end_process(child: &mut Child, time_limit: Duration) -> String {
    drop(child.stdin.take());
    let began = Stopwatch::start();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.to_string(),
            Ok(None) if began.elapsed() < time_limit => pause(Duration::from_millis(10)),
            Ok(None) => break,
            Err(error) => return error.to_string(),
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    "it did not end and was killed".to_owned()
}

/// The last output of a process.
#[derive(Debug, Default)]
struct RecentOutput {
    lines: Arc<Mutex<String>>,
}

impl RecentOutput {
    /// Keeps the last lines of a stream, and sends each on if a receiver is given.
    fn listen(&self, stream: impl Read + Send + 'static, wanted: Option<Sender<String>>) -> io::Result<()> {
        let lines = Arc::clone(&self.lines);
        let read = move || {
            let mut reader = BufReader::new(stream);
            let mut bytes = Vec::new();
            while matches!(reader.by_ref().take(LAST_WORDS as u64).read_until(b'\n', &mut bytes), Ok(n) if n > 0)
            {
                let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                bytes.clear();
                {
                    let mut lines = locked(&lines);
                    lines.push_str(&line);
                    lines.push('\n');
                    let surplus = lines.len().saturating_sub(LAST_WORDS);
                    if let Some((cut, _)) = lines.char_indices().find(|(at, _)| *at >= surplus) {
                        lines.drain(..cut);
                    }
                }
                if let Some(wanted) = &wanted {
                    let _ = wanted.send(line);
                }
            }
        };
        thread::Builder::new().spawn(read).map(drop)
    }

    /// A cause of death, with the last output.
    fn with_output(&self, ended: &str) -> String {
        // The listening threads share it until the end of the stream, which children of the process may keep
        // open.
        let began = Stopwatch::start();
        while Arc::strong_count(&self.lines) > 1 && began.elapsed() < Duration::from_millis(500) {
            pause(Duration::from_millis(5));
        }
        let last = locked(&self.lines).trim().to_owned();
        if last.is_empty() { ended.to_owned() } else { format!("{ended}; its last output:\n{last}") }
    }
}

/// A directory that only this user can enter, removed with its content.
#[derive(Debug)]
struct SocketDirectory(PathBuf);

impl SocketDirectory {
    fn make(parent: &Path) -> io::Result<Self> {
        for n in 0..100 {
            let path = parent.join(format!("slackline-{}-{}-{n}", std::process::id(), unix_millis()));
            if path.as_os_str().len() > 90 {
                let why = format!(
                    "{}: the path of a socket in it would be longer than 100 bytes",
                    parent.display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidFilename, why));
            }
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
                }
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
