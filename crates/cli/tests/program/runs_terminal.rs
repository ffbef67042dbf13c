//! The output of a run on a terminal, also while its size changes; the live view, its keys, and how it
//! restores the terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::processes::{Family, pause, signal, until};
use crate::runs::RUN;
use crate::scratch;

/// A terminal: the user's end, and the end for programs.
fn terminal() -> (File, File) {
    // A child process inherits no other end, so the terminal can disappear.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it opens");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let slave =
        rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, rustix::fs::Mode::empty());
    (File::from(master), File::from(slave.expect("programs can open it")))
}

fn widen(terminal: &File, columns: u16) {
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("terminals have sizes");
}

/// The sequences that switch to the live view and back.
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";

/// A program on its terminal.
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    keys: File,
    slave: File,
    drawn: Arc<Mutex<String>>,
}

impl OnTerminal {
    /// Starts the program with standard input and standard error on a terminal of 80 columns, and optionally
    /// standard output.
    pub(crate) fn start(family: &Family, dir: &Path, args: &[&str]) -> Self {
        let (mut master, slave) = terminal();
        widen(&slave, 80);
        let mut command = family.command(dir, args);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        let handle = || slave.try_clone().expect("a handle");
        command.stdin(handle()).stdout(handle()).stderr(handle());
        let child = command.spawn().expect("the program starts");
        let drawn = Arc::new(Mutex::new(String::new()));
        let (keys, seen) = (master.try_clone().expect("a handle"), Arc::clone(&drawn));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(bytes @ 1..) = master.read(&mut piece) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..bytes]));
            }
        });
        Self { child, keys, slave, drawn }
    }

    pub(crate) fn drawn(&self) -> String {
        self.drawn.lock().unwrap().clone()
    }

    /// Waits until the words were drawn after the first `from` bytes.
    pub(crate) fn awaits(&self, words: &str, from: usize) {
        until(words, || self.drawn()[from..].contains(words));
    }

    /// Presses keys and waits until the words were drawn.
    fn press(&mut self, keys: &str, words: &str) {
        let from = self.drawn().len();
        self.keys.write_all(keys.as_bytes()).expect("a terminal takes keys");
        self.awaits(words, from);
    }

    /// Waits for the end; returns the text on the terminal after the live view.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut code = None;
        until("the program ends", || {
            code = self.child.try_wait().expect("a child");
            code.is_some()
        });
        // The last output may still be on its way.
        pause(100);
        let drawn = self.drawn();
        let (_, after) =
            drawn.rsplit_once(GIVEN_BACK).unwrap_or_else(|| panic!("never given back: {drawn:?}"));
        assert!(drawn.matches(TAKEN).count() == drawn.matches(GIVEN_BACK).count(), "{drawn:?}");
        assert!(after.contains("\x1b[?25h"), "the cursor stays hidden: {drawn:?}");
        (code.and_then(|code| code.code()), after.to_owned())
    }
}

/// Flows of which one waits for the file `go`.
fn waiting(test: &str) -> std::path::PathBuf {
    let dir = scratch(test);
    let flow = "slackline = 1\n[[flows]]\nid = 'waits'\ndeadline = 900.0\njobs = [ { id = 'first', run = { mapper = 'until test -e go; do \
                sleep 0.02; done; cat', inputs = ['in.txt'], output = 'o1' } }, { id = 'second', run = { mapper = \
                'cat', inputs = ['@first'], output = 'o2' } } ]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    dir
}

#[test]
fn the_view_of_a_run_survives_sizes_and_keys_and_gives_the_terminal_back() {
    let (dir, family) = (waiting("run-view"), Family::new("run-view"));
    let mut view = OnTerminal::start(&family, &dir, &RUN);
    view.awaits(TAKEN, 0);
    view.awaits("waits", 0);
    for columns in [200, 1, 40, 3, 120, 80] {
        widen(&view.slave, columns);
        pause(150);
    }
    // Only changes are drawn, so the test searches for single words.
    view.press("\r", "jobs");
    view.press("?", "keys");
    view.press(" ", "\x1b[");
    view.press("\x1b", "flows");
    view.press("q", "stop");
    view.press("\x1b", "\x1b[");
    fs::write(dir.join("go"), "").expect("a file");
    let (code, after) = view.ended();
    assert_eq!(code, Some(0), "{after}");
    // Messages of that time are printed after the live view, and the summary follows.
    assert!(after.contains("waits/first done") && after.contains("waits/second done"), "{after}");
    assert!(after.contains("flow finished") && after.contains("outputs: "), "{after}");
}

#[test]
fn a_view_that_is_left_becomes_lines_and_one_that_is_stopped_stops() {
    let (dir, family) = (waiting("run-view-left"), Family::new("run-view-left"));
    let mut view = OnTerminal::start(&family, &dir, &RUN);
    view.awaits(TAKEN, 0);
    view.press("q", "stop");
    view.press("l", GIVEN_BACK);
    // The run continues, and ctrl-C stops it as before.
    family.awaits("until test -e go");
    signal("INT", view.child.id());
    let (code, after) = view.ended();
    assert!(code == Some(130) && after.contains("the same command resumes it"), "{code:?} {after}");
    for ends in ["\x03", "qs", "TERM"] {
        let mut view = OnTerminal::start(&family, &dir, &RUN);
        view.awaits(TAKEN, 0);
        view.awaits("waits", 0);
        match ends {
            "TERM" => signal(ends, view.child.id()),
            keys => view.keys.write_all(keys.as_bytes()).expect("a terminal takes keys"),
        }
        let (code, after) = view.ended();
        assert!(
            code == Some(130) && after.contains("the same command resumes it"),
            "{ends}: {code:?} {after}"
        );
    }
    family.is_gone();
}

#[test]
fn a_run_is_followed_in_a_view_that_leaves_its_table() {
    let (dir, family) = (waiting("status-view"), Family::new("status-view"));
    let engine = family.start(&dir, &RUN);
    family.awaits("until test -e go");
    let follow = ["status", "--state", "state", "--follow"];
    for ends in ["q", "\x03", "TERM"] {
        let mut view = OnTerminal::start(&family, &dir, &follow);
        view.awaits("waits", 0);
        match ends {
            "TERM" => signal(ends, view.child.id()),
            keys => view.keys.write_all(keys.as_bytes()).expect("a terminal takes keys"),
        }
        let (code, _) = view.ended();
        assert_eq!(code, Some(if ends == "q" { 0 } else { 130 }), "{ends:?}");
    }
    let view = OnTerminal::start(&family, &dir, &follow);
    view.awaits("waits", 0);
    fs::write(dir.join("go"), "").expect("a file");
    let (code, after) = view.ended();
    assert!(code == Some(0) && after.contains("2 of 2 tasks done"), "{code:?} {after}");
    assert_eq!(crate::processes::ended(engine).code, Some(0));
}

#[test]
fn a_view_of_a_service_ends_when_its_terminal_is_gone() {
    let place = crate::serve::Place::new(scratch("serve-top-gone"), "serve-top-gone");
    let mut service = place.serve(&[]);
    let (mut master, slave) = terminal();
    widen(&slave, 80);
    let mut command = place.family.command(&place.dir, &["top"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR").env("SLACKLINE_SERVER", &place.socket);
    let handle = || slave.try_clone().expect("a handle");
    command.stdin(handle()).stdout(handle()).stderr(handle());
    let mut top = command.spawn().expect("the program starts");
    // Now only the program has that end.
    drop((command, slave));
    let (mut drawn, mut piece) = (String::new(), [0; 4096]);
    while !drawn.contains("flows") {
        let bytes = master.read(&mut piece).expect("it draws");
        drawn.push_str(&String::from_utf8_lossy(&piece[..bytes]));
    }
    drop(master);
    until("it ends", || top.try_wait().expect("a child").is_some());
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}
