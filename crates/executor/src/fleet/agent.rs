//! The agent of a machine. It runs attempts for a run on another machine, in worker processes (`Processes`).
//! The run starts it over a link (`ssh`, `srun`) and speaks `crate::fleet::protocol` over its standard input
//! and output.
//!
//! When its input ends, or nothing has arrived for `LEASE`, it ends with everything that it started. It also
//! does so when it was stopped for longer than the run waits (`SILENT`): by then the run has given its work
//! to another process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use slackline_model::{MachineId, PhaseKind};
use slackline_task::attempt::nfs_cache::VISIBLE_WITHIN;
use slackline_task::base::clock::{self, Stopwatch};
use slackline_task::base::system::lock_refused;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::{Capacity, Demand};
use slackline_task::process::spec::{Spec, Task};
use slackline_task::process::worker_command::WorkerCommand;
use slackline_trace::sha256;

use crate::fleet::lines::Lines;
use crate::fleet::processes::Processes;
use crate::fleet::protocol::{
    BEAT, FromAgent, Hello, LEASE, PROGRAM, Proof, Ready, Refused, SILENT, ToAgent, VERSION, line, mismatch,
    version_of,
};
use crate::fleet::{Assignment, Fleet, FleetEvent, Waker, concurrent_runs};
use crate::store::pid_file::{PidFile, end_process, kill_leftovers};
use crate::store::running_attempt::RunningAttempt;

/// The name of the verb by which a program is started as an agent.
pub const ARGUMENT: &str = "agent";

/// How long the agent's end may take after its input has ended; then the process ends all the same, and its
/// workers by themselves.
const END: Duration = Duration::from_secs(10);

/// The interval of checks for a file that is not visible yet.
const LOOK: Duration = Duration::from_millis(250);

/// Runs the agent to its end, and gives its exit code.
pub fn main() -> u8 {
    let mut speaker = Speaker { since: Stopwatch::start(), beaten: Duration::ZERO };
    let refused = match listen() {
        Err(error) => Some(format!("its process cannot start a thread: {error}")),
        Ok((inputs, waking)) => match Agent::begin(&inputs, &mut speaker) {
            Ok(agent) => return agent.serve(&inputs, &waking, &mut speaker),
            Err(why) => why,
        },
    };
    let Some(why) = refused else { return 0 };
    // The reader may have ended.
    let _ = speaker.say(&[FromAgent::Refused(Refused { v: VERSION, why })]);
    2
}

/// The input from the run.
enum Input {
    Line(Vec<u8>),
    /// There will be none any more.
    Over,
}

/// Reads standard input on a thread. The sender that it returns takes the wakers to call after each line.
///
/// # Errors
/// The system has no more threads.
fn listen() -> io::Result<(Receiver<Input>, Sender<Waker>)> {
    let (said, inputs) = channel();
    let (waking, wakers) = channel::<Waker>();
    thread::Builder::new().spawn(move || {
        let mut waker: Option<Waker> = None;
        let mut tell = |what: Input| {
            let _ = said.send(what);
            waker = wakers.try_iter().last().or(waker.take());
            if let Some(waker) = &waker {
                waker();
            }
        };
        let mut lines = Lines::default();
        while let Some(bytes) = read() {
            lines.add(&bytes);
            lines.take().into_iter().for_each(|line| tell(Input::Line(line)));
        }
        tell(Input::Over);
        // A process that has not ended by then cannot.
        clock::pause(END);
        std::process::exit(1);
    })?;
    Ok((inputs, waking))
}

/// The next bytes of standard input; none if it has ended, or nothing came for too long.
fn read() -> Option<Vec<u8>> {
    let stdin = io::stdin();
    let timeout = Timespec { tv_sec: LEASE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut block = vec![0; 1 << 16];
    loop {
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout));
        match ready {
            Ok(1..) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => return None,
        }
        match rustix::io::read(&stdin, &mut block) {
            Ok(0) => return None,
            Ok(read) => {
                block.truncate(read);
                return Some(block);
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
}

/// Speaks to the run.
struct Speaker {
    since: Stopwatch,
    /// When the last message was sent.
    beaten: Duration,
}

impl Speaker {
    /// Sends all messages at once.
    fn say(&mut self, messages: &[FromAgent]) -> io::Result<()> {
        let bytes: Vec<u8> = messages.iter().flat_map(line).collect();
        let mut out = io::stdout().lock();
        out.write_all(&bytes).and_then(|()| out.flush())?;
        self.beaten = self.since.elapsed();
        Ok(())
    }

    /// How long nothing has been said.
    fn silent(&self) -> Duration {
        self.since.elapsed().saturating_sub(self.beaten)
    }

    /// Sends a heartbeat, if it is due.
    fn beat(&mut self) -> io::Result<()> {
        if self.silent() < BEAT { Ok(()) } else { self.say(&[FromAgent::Beat {}]) }
    }
}

/// The agent, which takes attempts.
struct Agent {
    processes: Processes,
    home: Home,
}

impl Agent {
    /// Receives the greeting, and prepares for the first attempt.
    ///
    /// # Errors
    /// Why it takes no attempts; empty if the run has ended.
    fn begin(inputs: &Receiver<Input>, speaker: &mut Speaker) -> Result<Self, Option<String>> {
        let hello = hello(inputs)?;
        let home = Home::take(&hello)
            .map_err(|error| Some(format!("cannot end processes of earlier agents: {error}")))?;
        let directory = &hello.directory;
        std::env::set_current_dir(directory).map_err(|error| {
            Some(format!(
                "{}: cannot be entered: {error}; the directory of the run must be shared with all machines",
                directory.display()
            ))
        })?;
        for proof in &hello.proofs {
            prove(proof, inputs, speaker)?;
        }
        let worker = WorkerCommand::this_program().map_err(|error| Some(error.to_string()))?;
        let processes = Processes::new(worker, home.pids(), None).map_err(|error| Some(error.to_string()))?;
        let processes = processes.with_env(hello.env);
        let Capacity { processors, memory } = Capacity::here();
        let ready = Ready { v: VERSION, program: PROGRAM.to_owned(), processors, memory };
        speaker.say(&[FromAgent::Ready(ready)]).map_err(|_| None)?;
        Ok(Self { processes, home })
    }

    /// Runs attempts and reports their ends, until the run has ended.
    fn serve(mut self, inputs: &Receiver<Input>, waking: &Sender<Waker>, speaker: &mut Speaker) -> u8 {
        // The other end exists as long as the run reads from it.
        let _ = waking.send(self.processes.waker());
        let code = loop {
            let mut ends: Vec<FromAgent> = Vec::new();
            let mut patience = BEAT.saturating_sub(speaker.silent());
            while let Some(event) = self.processes.next(patience) {
                ends.extend(end_of(event));
                patience = Duration::ZERO;
            }
            // Its work belongs to another process by now.
            if speaker.silent() > SILENT {
                break 1;
            }
            match self.take(inputs) {
                Ok(failed) => ends.extend(failed),
                Err(AgentEnd::Unwanted) => break 0,
                Err(AgentEnd::Puzzled(why)) => {
                    ends.push(FromAgent::Refused(Refused { v: VERSION, why }));
                    let _ = speaker.say(&ends);
                    break 2;
                }
            }
            let said = if ends.is_empty() { speaker.beat() } else { speaker.say(&ends) };
            if said.is_err() {
                break 1;
            }
        };
        let Self { processes, home } = self;
        drop(processes);
        home.leave();
        code
    }

    /// Carries out messages. Returns the ends of attempts that could not start.
    fn take(&mut self, inputs: &Receiver<Input>) -> Result<Vec<FromAgent>, AgentEnd> {
        let all: Vec<Input> = inputs.try_iter().collect();
        // An attempt without a waiting run is not started.
        if all.iter().any(|one| matches!(one, Input::Over)) {
            return Err(AgentEnd::Unwanted);
        }
        let mut failed = Vec::new();
        for input in all {
            let Input::Line(text) = input else { continue };
            match serde_json::from_slice::<ToAgent>(&text) {
                Ok(ToAgent::Start { n, spec }) => {
                    if let Err(error) = self.processes.start(assignment(n, &spec), &spec) {
                        let broken = Some(format!("it cannot be started: {error}"));
                        failed.push(FromAgent::Ended { n, report: None, broken });
                    }
                }
                Ok(ToAgent::Stop(n)) => self.processes.stop(n),
                Ok(ToAgent::Beat {}) => {}
                Ok(ToAgent::Hello(_)) | Err(_) => return Err(AgentEnd::Puzzled(unexpected(&text))),
            }
        }
        Ok(failed)
    }
}

/// Why an agent ends.
enum AgentEnd {
    /// No process needs it any more.
    Unwanted,
    /// It received a message that it does not understand.
    Puzzled(String),
}

/// The message about a line that is invalid, or not allowed at this place.
fn unexpected(text: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(text).chars().take(200).collect();
    format!("found the line {shown:?}, expected start, stop or beat")
}

/// The report of the end of an attempt.
fn end_of(event: FleetEvent) -> Option<FromAgent> {
    let FleetEvent::Ended { attempt: n, report } = event else { return None };
    Some(match report {
        Ok(report) => FromAgent::Ended { n, report: Some(report), broken: None },
        Err(broken) => FromAgent::Ended { n, report: None, broken: Some(broken) },
    })
}

/// An attempt as its pid file has it: which job it is of, the run knows.
fn assignment(number: u64, spec: &Spec) -> Assignment {
    let (phase, task) = match spec.task {
        Task::Map { index, .. } => (PhaseKind::Map, index),
        Task::Reduce { partition, .. } => (PhaseKind::Reduce, partition),
    };
    let attempt = RunningAttempt::on_slot(number, TaskId { job: 0, phase, task }, 0, 0);
    Assignment { number, attempt, machine: MachineId(0), slot: 0, demand: Demand::default() }
}

fn hello(inputs: &Receiver<Input>) -> Result<Hello, Option<String>> {
    let Ok(Input::Line(text)) = inputs.recv() else { return Err(None) };
    let shown: String = String::from_utf8_lossy(&text).chars().take(200).collect();
    let (v, program) = version_of(&text).ok_or_else(|| {
        Some(format!(
            "found the line {shown:?}, expected hello with the version of the protocol, from slackline run"
        ))
    })?;
    if let Some(why) = mismatch(v, program.as_deref().unwrap_or("of an unknown version")) {
        return Err(Some(why));
    }
    match serde_json::from_slice(&text) {
        Ok(ToAgent::Hello(hello)) => Ok(hello),
        Ok(_) => Err(Some(format!("found the line {shown:?}, expected hello"))),
        Err(error) => Err(Some(format!("invalid hello: {error}"))),
    }
}

/// Checks a file until it has the expected content.
fn prove(proof: &Proof, inputs: &Receiver<Input>, speaker: &mut Speaker) -> Result<(), Option<String>> {
    let since = Stopwatch::start();
    let path = match proof {
        Proof::Holds { path, .. } | Proof::Bytes { path, .. } => path,
    };
    while let Err(found) = look(proof) {
        if since.elapsed() > VISIBLE_WITHIN {
            return Err(Some(format!(
                "{}: {found}: its directory must be shared with all machines",
                path.display()
            )));
        }
        if inputs.try_iter().any(|input| matches!(input, Input::Over)) || speaker.beat().is_err() {
            return Err(None);
        }
        clock::pause(LOOK);
        // Its directory as it is now, and not as it was at the last check.
        let _ = path.parent().map(fs::read_dir);
    }
    Ok(())
}

/// The problem of a file that must be visible, if any.
fn look(proof: &Proof) -> Result<(), String> {
    let unseen = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist on this machine".to_owned(),
        _ => format!("it cannot be read: {error}"),
    };
    match proof {
        Proof::Holds { path, holds } => match fs::read_to_string(path) {
            Ok(text) if text == *holds => Ok(()),
            Ok(_) => {
                Err("the file on this machine differs from the file that the run has written".to_owned())
            }
            Err(error) => Err(unseen(error)),
        },
        // Opening a file shows its present content.
        Proof::Bytes { path, bytes } => match File::open(path).and_then(|file| file.metadata()) {
            Ok(meta) if meta.len() == *bytes => Ok(()),
            Ok(meta) => Err(format!("found {} bytes on this machine, expected {bytes}", meta.len())),
            Err(error) => Err(unseen(error)),
        },
    }
}

/// The directory for the pid files of the agent, on its machine.
struct Home {
    directory: PathBuf,
    own: PidFile,
}

impl Home {
    /// Makes sure that nothing is alive of earlier agents of the same machine of the same run, and takes
    /// their place.
    fn take(hello: &Hello) -> io::Result<Self> {
        let name = format!("{}\n{}", hello.owner, hello.machine);
        let directory = concurrent_runs::place()?.join("agents").join(&sha256(name.as_bytes())[..16]);
        fs::create_dir_all(&directory)?;
        let lock = File::create(directory.join("lock"))?;
        lock.lock().map_err(lock_refused)?;
        end_process(&directory.join("agent"))?;
        kill_leftovers(&directory.join("pids"))?;
        let own = PidFile::create(directory.join("agent"), u64::from(std::process::id()))?;
        Ok(Self { directory, own })
    }

    fn pids(&self) -> PathBuf {
        self.directory.join("pids")
    }

    /// Leaves nothing behind; a successor that has taken its place has its own files.
    fn leave(self) {
        let Self { directory, own } = self;
        drop(own);
        let left: [&Path; 2] = [&directory.join("pids"), &directory];
        let _ = fs::remove_dir(left[0]);
        let _ = fs::remove_file(directory.join("lock"));
        let _ = fs::remove_dir(left[1]);
    }
}
