//! The user of a service: root is refused, other users share the service by roles, and state files are
//! private.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::processes::until;
use crate::serve::Place;
use crate::{Ran, scratch};

/// The page with the script and the units of the inbox.
const PAGE: &str = include_str!("../../../../docs/serve.md");

/// Users of this machine without permissions.
const UNPRIVILEGED: (u32, &str) = (65_534, "nobody");
const DAEMON: (u32, &str) = (1, "daemon");

/// A flow whose command prints its user.
const WHO: &str = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', run = { command = 'id -u > uid', output = 'out' } }]\n";

fn place(test: &str) -> Place {
    Place::new(scratch(test), test)
}

fn is_root() -> bool {
    owner(Path::new("/proc/self")) == 0
}

fn owner(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).uid()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).mode() & 0o777
}

impl Place {
    /// A directory of another user.
    fn home(&self, (uid, name): (u32, &str)) -> PathBuf {
        let home = self.dir.join(name);
        fs::create_dir_all(&home).expect("a directory");
        chown(&home, Some(uid), Some(uid)).expect("root gives it to the user");
        home
    }

    /// The program as another user in a group.
    fn command_as(&self, user: (u32, &str), group: u32, args: &[&str]) -> Command {
        let mut command = self.family.command(&self.home(user), args);
        command.env("SLACKLINE_SERVER", &self.socket).env_remove("SLACKLINE_TOKEN");
        command.uid(user.0).gid(group);
        command
    }

    fn ask_as(&self, user: (u32, &str), args: &[&str]) -> Ran {
        crate::ran(&self.command_as(user, UNPRIVILEGED.0, args).output().expect("the program starts"))
    }

    /// Whether this test can run the program as other users.
    #[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
    fn has_users(&self) -> bool {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let are_there = passwd.contains("\nnobody:x:65534:65534:") && passwd.contains("\ndaemon:x:1:1:");
        let can = is_root()
            && are_there
            && self
                .command_as(UNPRIVILEGED, UNPRIVILEGED.0, &["--version"])
                .output()
                .is_ok_and(|ran| ran.status.success());
        if !can {
            eprintln!(
                "SKIPPED: needs root, the users nobody and daemon, and a directory that they can reach"
            );
        }
        can
    }
}

#[test]
fn a_service_does_not_start_as_root_unless_it_is_allowed() {
    let place = place("serve-root");
    if !is_root() {
        eprintln!("SKIPPED: not root");
        return;
    }
    let refused = place.refused(&["serve", "--state", "s"]);
    assert_eq!(
        refused,
        "error: the service does not start as root, because all flows would run as root: start it as the user whose commands it \
         runs (`systemctl --user`, or User= in a unit of systemd), or pass --allow-root in a container\n"
    );
    assert!(!place.dir.join("s").exists());
    // `run` has no such limit.
    fs::write(place.dir.join("flow.toml"), WHO).expect("a flow file");
    place.done(&["run", "flow.toml"]);
}

#[test]
fn an_ordinary_user_needs_no_option_and_the_state_is_private() {
    let place = place("serve-ordinary");
    let args = ["serve", "--state", "s", "--slots", "2", "--socket", &place.socket.display().to_string()];
    let (mut command, dir) = if is_root() {
        if !place.has_users() {
            return;
        }
        (place.command_as(UNPRIVILEGED, UNPRIVILEGED.0, &args), place.home(UNPRIVILEGED))
    } else {
        (place.family.command(&place.dir, &args), place.dir.clone())
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut service = command.spawn().expect("the program starts");
    until("the service answers", || place.ask(&["queue"]).code == Some(0));
    let state = dir.join("s");
    let locks = ["tokens.lock", "past.history.lock", "service.log", "audit.log"];
    assert_eq!((mode(&state), mode(&place.socket)), (0o700, 0o600));
    assert_eq!(locks.map(|name| mode(&state.join(name))), [0o600; 4]);
    if is_root() {
        // Root would write where a link of the user leads.
        let refused = place.refused(&["token", "--state", "nobody/s", "--add", "anna", "--role", "look"]);
        assert!(refused.contains("belongs to nobody: run `sudo -u nobody slackline token`"), "{refused}");
    }
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn users_share_a_service_by_roles_and_all_flows_run_as_its_user() {
    let place = place("serve-shared");
    if !place.has_users() {
        return;
    }
    let group = UNPRIVILEGED.0.to_string();
    let mut service = place.serve(&["--socket-group", &group, "--socket-role", "submit"]);
    assert_eq!(mode(&place.socket), 0o660);
    for user in [UNPRIVILEGED, DAEMON] {
        fs::write(place.home(user).join("flow.toml"), WHO).expect("a flow file");
        let submitted = place.ask_as(user, &["submit", "flow.toml", "--name", user.1, "--wait"]);
        assert_eq!(submitted.code, Some(0), "{}{}", submitted.out, submitted.err);
        let ran_as = fs::read_to_string(place.home(user).join("uid")).expect("the command ran");
        assert_eq!(ran_as, "0\n", "the user of the service");
    }
    assert_eq!(place.shown("2")["user"], "daemon");
    let held = place.ask_as(UNPRIVILEGED, &["submit", "flow.toml", "--name", "held", "--hold", "--quiet"]);
    assert_eq!(held.out, "3\n");
    let denied = place.ask_as(DAEMON, &["submission", "cancel", "3"]);
    assert!(
        denied.code == Some(2) && denied.err.contains("may change only their own submissions"),
        "{}",
        denied.err
    );
    assert_eq!(place.ask_as(UNPRIVILEGED, &["submission", "cancel", "3"]).code, Some(0));
    let audit = fs::read_to_string(place.dir.join("s/audit.log")).expect("the audit log");
    assert!(audit.contains("\"principal\":\"daemon\"") && audit.contains("\"from\":\"unix:1\""), "{audit}");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn the_inbox_of_the_page_submits_each_file_once_and_moves_it_away() {
    let place = place("serve-inbox");
    let mut service = place.serve(&[]);
    let inbox = place.dir.join("inbox");
    fs::create_dir(&inbox).expect("a directory");
    let start = PAGE.find("#!/bin/sh\n# Submit the flow files").expect("the page has the script");
    let script = &PAGE[start..start + PAGE[start..].find("```").expect("the script ends")];
    fs::write(inbox.join("submit"), script).expect("a file");
    // The script finds the program by its name.
    let bin = place.dir.join("bin");
    fs::create_dir(&bin).expect("a directory");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_slackline"), bin.join("slackline")).expect("a link");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let submit = || {
        let mut command = Command::new("sh");
        command.arg("submit").current_dir(&inbox).env("PATH", &path).env("SLACKLINE_SERVER", &place.socket);
        let ran = crate::ran(&command.env_remove("SLACKLINE_TOKEN").output().expect("sh starts"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    };
    let files = |directory: &str| {
        let entries = fs::read_dir(inbox.join(directory)).expect("a directory").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    submit();
    fs::write(inbox.join("a b.toml"), WHO).expect("a file");
    fs::write(inbox.join("-bad.toml"), "slackline = 1\n[[flows]]\nid = 3\n").expect("a file");
    fs::write(inbox.join("later.toml.part"), WHO.replace("'out'", "'out2'")).expect("a file");
    submit();
    assert_eq!(files("submitted"), ["1-a b.toml"]);
    assert_eq!(files("refused"), ["-bad.toml", "-bad.toml.why"]);
    let why = fs::read_to_string(inbox.join("refused/-bad.toml.why")).expect("the reason");
    assert!(why.contains("bad.toml:3"), "{why}");
    fs::rename(inbox.join("submitted/1-a b.toml"), inbox.join("a b.toml")).expect("it is moved back");
    submit();
    assert_eq!(files("submitted"), ["1-a b.toml"], "the same file has the same key");
    fs::rename(inbox.join("later.toml.part"), inbox.join("later.toml")).expect("it is renamed");
    submit();
    assert_eq!(files("submitted"), ["1-a b.toml", "2-later.toml"]);
    assert_eq!(place.until_state("2", "finished")["user"], place.shown("1")["user"]);
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn a_pipe_or_a_link_in_place_of_a_state_file_is_refused_and_nothing_waits_for_it() {
    let place = place("serve-pipes");
    for (name, kind) in [
        ("tokens.lock", "a named pipe"),
        ("past.history.lock", "a named pipe"),
        ("past.history", "a named pipe"),
        ("tokens.json", "a named pipe"),
        ("service.log", "a named pipe"),
        ("audit.log", "a named pipe"),
        ("audit.log", "a link"),
    ] {
        let state = place.dir.join(format!("{name} {kind}"));
        let path = state.join(name);
        fs::create_dir(&state).expect("a directory");
        if kind == "a link" {
            std::os::unix::fs::symlink(place.dir.join("elsewhere"), &path).expect("a link");
        } else {
            let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo starts");
            assert!(made.success());
        }
        let refused = place.refused(&["serve", "--allow-root", "--state", crate::text(&state)]);
        assert!(refused.contains(&format!("found {kind}, expected a regular file")), "{name}: {refused}");
        assert!(refused.contains(name), "{refused}");
    }
    assert!(!place.dir.join("elsewhere").exists());
}
