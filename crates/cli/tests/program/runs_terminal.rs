//! What a run draws on a terminal, and on one whose width changes.

use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::processes::{Family, until};
use crate::runs::RUN;
use crate::scratch;

/// A terminal: the end at which a person sits, and the one that programs write to.
fn terminal() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it opens");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, rustix::fs::Mode::empty());
    (File::from(master), File::from(slave.expect("programs can open it")))
}

fn widen(terminal: &File, columns: u16) {
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("terminals have sizes");
}

/// All that programs wrote to a terminal until they closed it, in a thread of its own: terminals hold little.
fn seen(mut master: File) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        // A terminal that nobody writes to any more ends with an error.
        while let Ok(bytes @ 1..) = master.read(&mut piece) {
            text.extend_from_slice(&piece[..bytes]);
        }
        String::from_utf8(text).expect("UTF-8")
    })
}

#[test]
fn bars_leave_nothing_behind_on_a_terminal_that_is_made_narrower() {
    let (dir, family) = (scratch("run-narrower"), Family::new("run-narrower"));
    let flow = "slackline = 1\n[[flows]]\nid = 'waits'\njobs = [ { id = 'first', run = { mapper = 'until test -e go; do \
                sleep 0.02; done; cat', inputs = ['in.txt'], output = 'o1' } }, { id = 'second', run = { mapper = \
                'cat', inputs = ['@first'], output = 'o2' } } ]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let (master, slave) = terminal();
    widen(&slave, 120);
    let mut command = family.command(&dir, &RUN);
    command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(slave.try_clone().expect("a handle"));
    let mut child = command.spawn().expect("the program starts");
    drop(command);
    let seen = seen(master);
    family.awaits("until test -e go");
    widen(&slave, 40);
    fs::write(dir.join("go"), "").expect("a file");
    let mut code = None;
    until("the run is done", || {
        code = child.try_wait().expect("a child");
        code.is_some()
    });
    drop(slave);
    let drawn = seen.join().expect("it was read");
    assert_eq!(code.and_then(|code| code.code()), Some(0), "{drawn:?}");
    let (before, after) =
        drawn.split_once("A\x1b[J").unwrap_or_else(|| panic!("nothing was erased: {drawn:?}"));
    // So narrow a terminal has no place for the bar itself.
    assert!(before.contains('░') && !after.contains('░'), "{drawn:?}");
    assert!(after.contains("waits 2/2 done"), "{drawn:?}");
}
