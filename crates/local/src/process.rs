//! Worker processes: started in a group of their own, watched, killed as a group.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::task::Spec;
use crate::worker::{self, Report};

/// How a worker is started: a program that does [`crate::worker::main`] when it is given these arguments.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

impl WorkerCommand {
    /// This same program, started with [`worker::ARGUMENT`]: its `main` has to begin with
    /// [`worker::main_if_asked`].
    ///
    /// # Errors
    /// The program cannot find itself.
    pub fn this_program() -> io::Result<Self> {
        let program = std::env::current_exe().map_err(|error| {
            io::Error::new(error.kind(), format!("this program cannot find itself to start workers: {error}"))
        })?;
        Ok(Self { program, args: vec![worker::ARGUMENT.to_owned()] })
    }
}

/// The variable by which everything that a worker starts is known: it holds the name of the worker's pid file.
const MARK: &str = "SLACKLINE_ATTEMPT";

/// What a worker is started for.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    /// Its number in the run.
    pub(crate) number: u64,
    /// What to do.
    pub(crate) spec: &'a Spec,
    /// The file that says which process does it.
    pub(crate) pid_file: &'a Path,
}

/// What a watcher says when its worker has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) number: u64,
    /// What the worker reported, or why it did not.
    pub(crate) report: Result<Report, String>,
}

/// A worker at work. Dropping it closes its standard input, which it takes as an order to die.
pub(crate) struct Worker {
    _stdin: ChildStdin,
    group: Group,
}

/// The process group of a worker, until it has been waited for: after that the number may be another's.
#[derive(Clone)]
struct Group(Arc<Mutex<Option<rustix::process::Pid>>>);

impl Group {
    fn kill(&self) {
        let group = self.0.lock().expect("invariant: no thread panics while holding the lock");
        if let Some(pid) = *group {
            // It may have ended by itself just now.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }

    /// Kills what is left of the group and forgets its number.
    fn close(&self) {
        self.kill();
        *self.0.lock().expect("invariant: no thread panics while holding the lock") = None;
    }
}

impl Worker {
    /// Starts a worker. Before it is told what to do, its pid file says who it is, so that a later engine can
    /// make sure that it is gone.
    ///
    /// # Errors
    /// The program cannot be started, or the file cannot be written; then nothing runs.
    pub(crate) fn start(
        command: &WorkerCommand,
        attempt: Attempt<'_>,
        ended: Sender<Ended>,
    ) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let Attempt { number, spec, pid_file } = attempt;
        let mut child = Command::new(&command.program)
            .args(&command.args)
            .env(MARK, mark(pid_file))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = rustix::process::Pid::from_child(&child);
        let group = Group(Arc::new(Mutex::new(Some(pid))));
        let told = tell(&mut child, spec, pid_file);
        let stdin = match told {
            Ok(stdin) => stdin,
            Err(error) => {
                group.close();
                let _ = child.wait();
                return Err(error);
            }
        };
        let watched = group.clone();
        thread::spawn(move || {
            let report = watch(child, &watched);
            // Nobody listens any more if the engine has ended.
            let _ = ended.send(Ended { number, report });
        });
        Ok(Self { _stdin: stdin, group })
    }

    /// Kills it and everything it started.
    pub(crate) fn kill(&self) {
        self.group.kill();
    }
}

/// Writes down who the worker is, then tells it what to do.
fn tell(child: &mut Child, spec: &Spec, pid_file: &Path) -> io::Result<ChildStdin> {
    let began = Process::of(u64::from(child.id())).map_or(0, |process| process.began);
    fs::write(pid_file, format!("{} {began} {}", child.id(), boot()))?;
    let mut stdin = child.stdin.take().expect("invariant: standard input was piped");
    let mut line = serde_json::to_string(spec).expect("invariant: an attempt can be written as JSON");
    line.push('\n');
    stdin.write_all(line.as_bytes())?;
    Ok(stdin)
}

/// Reads the worker's report to its end, then makes sure that nothing of its group stays.
fn watch(mut child: Child, group: &Group) -> Result<Report, String> {
    /// A report with the last words of a command is far shorter.
    const REPORT_MAX: u64 = 1 << 20;
    let mut text = String::new();
    let stdout = child.stdout.take().expect("invariant: standard output was piped");
    let read = stdout.take(REPORT_MAX).read_to_string(&mut text);
    group.close();
    let status = child.wait();
    match (read, serde_json::from_str(&text)) {
        (Ok(_), Ok(report)) => Ok(report),
        _ => Err(match status {
            Ok(status) => format!("its process ended without a report: {status}"),
            Err(e) => format!("its process cannot be waited for: {e}"),
        }),
    }
}

/// A process, as the system tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    /// Its process group.
    group: u64,
    /// When it began, in ticks since the machine did.
    began: u64,
    /// Whether it only waits to be taken note of: it does nothing any more.
    is_dead: bool,
}

impl Process {
    fn of(pid: u64) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; fields are counted from its end.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_dead = matches!(*fields.first()?, "Z" | "X");
        Some(Self { group: fields.get(2)?.parse().ok()?, began: fields.get(19)?.parse().ok()?, is_dead })
    }
}

/// Which start of the machine this is; empty where it does not say. Before another one nothing is alive.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The mark of what the worker of a pid file starts, however the path of the file is given.
fn mark(pid_file: &Path) -> String {
    std::path::absolute(pid_file).unwrap_or_else(|_| pid_file.to_owned()).display().to_string()
}

/// Whether a process was started by the worker of a pid file, or by what it started.
fn has_mark(pid: u64, pid_file: &Path) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    let expected = format!("{MARK}={}", mark(pid_file));
    environment.split(|&byte| byte == 0).any(|variable| variable == expected.as_bytes())
}

/// Whether something of the group of a worker is alive that began at `start`. Its number may be another group's
/// meanwhile: then the process that has it began at another time, or nothing in the group has the mark.
fn is_alive(pid: u64, start: u64, pid_file: &Path) -> bool {
    let is_worker = match Process::of(pid) {
        Some(leader) if leader.began != start => return false,
        leader => leader.is_some_and(|leader| !leader.is_dead),
    };
    let Ok(entries) = fs::read_dir("/proc") else { return is_worker };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let is_left = |member: u64| {
        let of_group = |p: Process| p.group == pid && p.began >= start && !p.is_dead;
        Process::of(member).is_some_and(of_group) && has_mark(member, pid_file)
    };
    is_worker || pids.into_iter().any(is_left)
}

/// Makes sure that the worker of a pid file is gone, with everything of its group, whether or not the worker
/// itself is.
///
/// # Errors
/// It cannot be killed, or does not go within ten seconds.
pub(crate) fn fence(pid_file: &Path) -> io::Result<()> {
    let text = fs::read_to_string(pid_file)?;
    let mut words = text.split_whitespace();
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    let (Some(pid), Some(start)) = (number(), number()) else { return Ok(()) };
    if words.next().unwrap_or_default() != boot() {
        return Ok(());
    }
    let Some(group) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return Ok(()) };
    for _ in 0..1000 {
        if !is_alive(pid, start, pid_file) {
            return Ok(());
        }
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        crate::clock::pause(Duration::from_millis(10));
    }
    Err(io::Error::other(format!(
        "found a process of group {pid} of an earlier run still there, expected it to be gone"
    )))
}
