//! Processes of a test, found by a mark in their environment, which all their children inherit.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;

use crate::runs::command;
use crate::{Ran, ran};

/// The variable of the environment that holds the mark.
const NAME: &str = "SLACKLINE_TEST_FAMILY";

/// A pause by the wall clock: processes have no other.
#[expect(clippy::disallowed_methods, reason = "processes are waited for by the wall clock")]
pub(crate) fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// Waits until a condition holds; fails after half a minute.
pub(crate) fn until(what: &str, is_so: impl FnMut() -> bool) {
    let mut is_so = is_so;
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        pause(10);
    }
    panic!("it never was so: {what}");
}

/// Writes a program, with a separate process. A program cannot be started while a file of it is open for
/// writing, and a process that another test starts meanwhile would inherit a file of the tests.
pub(crate) fn write_program(path: &Path, bytes: impl AsRef<[u8]>) {
    let mut write = Command::new("sh");
    write.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut write = write.spawn().expect("a shell starts");
    std::io::Write::write_all(&mut write.stdin.take().expect("a pipe"), bytes.as_ref())
        .expect("the shell reads");
    assert!(write.wait().expect("it ends").success(), "{}", path.display());
}

/// All descendants of the processes that a test starts; they end with the test.
pub(crate) struct Family {
    mark: String,
}

impl Family {
    pub(crate) fn new(test: &str) -> Self {
        Self { mark: format!("{NAME}={test}-{}.", std::process::id()) }
    }

    /// Five minutes in a unique number of seconds.
    pub(crate) fn long() -> String {
        format!("300.{}", std::process::id())
    }

    /// Runs the program to its end.
    pub(crate) fn slackline(&self, dir: &Path, args: &[&str]) -> Ran {
        ran(&self.command(dir, args).output().expect("the program starts"))
    }

    pub(crate) fn start(&self, dir: &Path, args: &[&str]) -> Child {
        let mut command = self.command(dir, args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    /// The program, about to be started.
    pub(crate) fn command(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = command(dir, args);
        command.env(NAME, &self.mark[NAME.len() + 1..]);
        command
    }

    /// The numbers and command lines of the living processes.
    pub(crate) fn alive(&self) -> Vec<(u32, String)> {
        let text = |pid: u32, file: &str| {
            // A process that is gone has no files, a dead one has empty files.
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let entries = fs::read_dir("/proc").expect("processes are listed").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let members = pids.filter(|&pid| text(pid, "environ").contains(&self.mark));
        members.map(|pid| (pid, text(pid, "cmdline"))).collect()
    }

    /// Waits for a process with these words in its command line; returns its number.
    pub(crate) fn awaits(&self, words: &str) -> u32 {
        let mut found = None;
        until(words, || {
            found = self.alive().into_iter().find(|(_, line)| line.contains(words));
            found.is_some()
        });
        found.expect("it was found").0
    }

    /// The ancestor of `pid` with these words in its command line, if both exist.
    pub(crate) fn ancestor(&self, pid: u32, words: &str) -> Option<u32> {
        let alive = self.alive();
        let mut at = pid;
        loop {
            at = parent(at)?;
            let (_, line) = alive.iter().find(|(pid, _)| *pid == at)?;
            if line.contains(words) {
                return Some(at);
            }
        }
    }

    /// Waits until no process is left.
    pub(crate) fn is_gone(&self) {
        until("all processes are gone", || self.alive().is_empty());
    }
}

/// The parent of a process, if the process exists.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

impl Drop for Family {
    fn drop(&mut self) {
        for (pid, _) in self.alive() {
            signal("KILL", pid);
        }
    }
}

/// Makes programs that the tests start find no signal ignored, as they would if the tests ran under `nohup`
/// or in the background of a script.
pub(crate) fn have_default_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            // A handler, because the system gives a child the default in its place. It ends the tests, like
            // the default.
            let ends = Arc::new(AtomicBool::new(true));
            register_conditional_shutdown(signal, 128 + signal, ends).expect("signals can be handled");
        }
    });
}

/// Sends a signal to a process, if it exists.
pub(crate) fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).stderr(Stdio::null()).status();
    status.expect("signals can be sent");
}

/// The end of a program that was started.
pub(crate) fn ended(child: Child) -> Ran {
    ran(&child.wait_with_output().expect("the program ends"))
}
