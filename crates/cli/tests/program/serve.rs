//! The service as its users run it: the commands submit, show, hold and cancel flows, and flows resume after
//! kill -9.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;
use slackline_model::random::test_scale;

use crate::Ran;
use crate::fleet::{HANGS, SSH, hanging, with_machines};
use crate::processes::{Family, pause, signal, until};
use crate::runs::{prepared, results};

/// A service of a test, and its client.
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    pub(crate) family: Family,
    pub(crate) socket: PathBuf,
}

impl Place {
    pub(crate) fn new(dir: PathBuf, test: &str) -> Self {
        // Paths of sockets are short.
        let socket = std::env::temp_dir().join(format!("{test}-{}.socket", std::process::id()));
        Self { dir, family: Family::new(test), socket }
    }

    /// Starts the service with two slots, and waits until it answers.
    pub(crate) fn serve(&self, more: &[&str]) -> Child {
        self.serve_with(&[&["--slots", "2"], more].concat())
    }

    /// Starts the service with these options, and waits until it answers.
    pub(crate) fn serve_with(&self, more: &[&str]) -> Child {
        let socket = self.socket.display().to_string();
        let args = ["serve", "--allow-root", "--state", "s", "--socket", &socket];
        let split: &[&str] =
            if more.contains(&"--engine") { &[] } else { &["--engine", "local:split=64KiB"] };
        let args = [&args[..], split, more].concat();
        let child = self.family.start(&self.dir, &args);
        until("the service answers", || self.ask(&["queue"]).code == Some(0));
        child
    }

    /// The outputs of the flows in a service without faults, which is then removed.
    fn undisturbed(&self) -> Vec<BTreeMap<String, Vec<u8>>> {
        let mut service = self.serve(&[]);
        assert!(self.done(&["submit", "flow.toml", "--wait"]).contains("1 ended: finished"));
        let made = results(&self.dir);
        service.kill().expect("it can be killed");
        service.wait().expect("it is gone");
        for made in ["s", "text", "words", "index", "sorted", "joined", "lines"] {
            fs::remove_dir_all(self.dir.join(made)).expect("it was made");
        }
        made
    }

    pub(crate) fn ask(&self, args: &[&str]) -> Ran {
        let mut command = self.family.command(&self.dir, args);
        command.env("SLACKLINE_SERVER", &self.socket).env_remove("SLACKLINE_TOKEN");
        crate::ran(&command.output().expect("the program starts"))
    }

    pub(crate) fn done(&self, args: &[&str]) -> String {
        let ran = self.ask(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.out, ran.err);
        ran.out
    }

    pub(crate) fn refused(&self, args: &[&str]) -> String {
        let ran = self.ask(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        ran.err
    }

    pub(crate) fn shown(&self, number: &str) -> Value {
        serde_json::from_str(&self.done(&["status", number, "--format", "json"]))
            .expect("the document is JSON")
    }

    pub(crate) fn until_state(&self, number: &str, state: &str) -> Value {
        let mut shown = Value::Null;
        // Longer than `until` waits: other tests run at the same time.
        for _ in 0..4 * 3000 {
            shown = self.shown(number);
            if shown["state"] == state {
                return shown;
            }
            pause(10);
        }
        panic!("{number} was never {state}: {shown:#}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// The status and the body of the answer to a request. `None` without an answer within 10 s.
pub(crate) fn get(socket: &Path, path: &str) -> Option<(u16, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Puts a pipe in place of a file.
pub(crate) fn make_pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn judged(dir: &Path, name: &str) {
    let state = format!("s/flows/{name}");
    let (workload, schedule) = (format!("{state}/workload.json"), format!("{state}/schedule.json"));
    let checked = crate::runs_watched::slackline(dir, &["check", &workload, &schedule]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
}

/// The bytes are those of a service that was never killed, and the schedule is accepted.
#[test]
fn a_service_that_is_killed_continues_and_makes_the_same_bytes() {
    let place = Place::new(prepared("serve-killed"), "serve-killed");
    let expected = place.undisturbed();
    let mut service = place.serve(&[]);
    assert_eq!(place.done(&["submit", "flow.toml", "--key", "once", "--quiet"]), "1\n");
    for kill in 0..(4.0 * test_scale()).ceil() as u64 {
        // The service is killed at different moments, in some cases before it has started any work.
        pause(30 + 37 * (kill % 12));
        service.kill().expect("it can be killed");
        service.wait().expect("it is gone");
        place.family.is_gone();
        service = place.serve(&[]);
        assert_eq!(place.done(&["submit", "flow.toml", "--key", "once", "--quiet"]), "1\n");
    }
    place.until_state("1", "finished");
    assert!(results(&place.dir) == expected, "the bytes are others");
    judged(&place.dir, "flow");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
    // Finished submissions are still known, and the same file has no open jobs.
    let mut service = place.serve(&[]);
    assert_eq!(place.shown("1")["state"], "finished");
    assert!(place.done(&["submit", "flow.toml", "--wait"]).contains("2 ended: finished"));
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

/// Machines that are reached by a script.
const ON_MACHINES: [&str; 2] = ["--engine", "ssh:hosts=hosts,ssh=./reach,split=64KiB"];

#[test]
fn a_service_on_several_machines_makes_the_bytes_of_one_and_continues_on_others() {
    let dir = with_machines(prepared("serve-several"), SSH, &[1, 2, 1]);
    let place = Place::new(dir, "serve-several");
    let expected = place.undisturbed();
    let mut service = place.serve_with(&ON_MACHINES);
    place.done(&["submit", "flow.toml", "--quiet"]);
    for hosts in ["n3 slots=1\nn4 slots=2\n", "n2 slots=1\nn1 slots=1\n", "n1 slots=1\nn2 slots=2\n"] {
        pause(300);
        service.kill().expect("it can be killed");
        service.wait().expect("it is gone");
        place.family.is_gone();
        fs::write(place.dir.join("hosts"), hosts).expect("other machines");
        service = place.serve_with(&ON_MACHINES);
    }
    place.until_state("1", "finished");
    assert!(results(&place.dir) == expected, "the bytes are others");
    judged(&place.dir, "flow");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn a_machine_that_goes_under_a_service_has_its_tasks_done_elsewhere_and_comes_back() {
    let place = Place::new(hanging("serve-machine", SSH), "serve-machine");
    let mut service = place.serve_with(&ON_MACHINES);
    // Two runs at a time: both get the event of a machine that leaves.
    let other = fs::read_to_string(place.dir.join("flow.toml")).expect("a flow file");
    let other = other.replace("output = \"", "output = \"other-").replace("id = \"f\"", "id = \"g\"");
    fs::write(place.dir.join("other.toml"), other).expect("a flow file");
    place.done(&["submit", "flow.toml", "--quiet"]);
    place.done(&["submit", "other.toml", "--quiet"]);
    let hang = || place.family.alive().into_iter().filter(|(_, line)| line.contains(HANGS)).count();
    until("three tasks hang", || hang() == 3);
    let gone = fs::read_to_string(place.dir.join("pid-n2")).expect("an agent of n2");
    signal("KILL", gone.trim().parse().expect("a process"));
    let up = || -> Vec<bool> {
        let server = place.socket.display().to_string();
        let service = place.done(&["status", "--server", &server, "--format", "json"]);
        let service: Value = serde_json::from_str(&service).expect("the document is JSON");
        let machines = service["machines"].as_array().expect("machines");
        machines.iter().map(|machine| machine["up"] == true).collect()
    };
    until("it is noticed, and there again", || {
        let all = place.done(&["status", "1", "--format", "json"]);
        let also = place.done(&["status", "2", "--format", "json"]);
        up() == [true; 3]
            && hang() == 3
            && (all + &also).contains("\"running\"")
            && fs::read_to_string(place.dir.join("pid-n2")).is_ok_and(|pid| pid != gone)
    });
    let server = place.socket.display().to_string();
    let printed = place.done(&["status", "--server", &server]);
    assert!(printed.contains("\nmachines: n1 with 1 slot, n2 with 1 slot, n3 with 1 slot\n"), "{printed}");
    fs::write(place.dir.join("go"), "").expect("a file");
    for number in ["1", "2"] {
        place.until_state(number, "finished");
    }
    for name in ["flow", "other"] {
        judged(&place.dir, name);
    }
    signal("TERM", service.id());
    assert!(service.wait().expect("it ends").success());
    place.family.is_gone();
}

/// A night for a user who works with the verbs alone.
#[test]
fn submissions_are_shown_held_changed_and_cancelled() {
    let dir = crate::runs_watched::hanging("serve-verbs");
    let place = Place::new(dir, "serve-verbs");
    let mut service = place.serve(&["--policy", "edf"]);
    assert!(
        place
            .done(&["submit", "flow.toml", "--deadline", "f=2h", "--wait-for-prediction"])
            .contains("f: completion unknown (a job never ran); whether it will meet its deadline")
    );
    place.family.awaits(&format!("sleep {}", Family::long()));
    let queue = place.done(&["queue"]);
    for words in
        ["local, edf (sum of response times, s): 2 slots", "1 active, 0 queued", "flow", "of 4", "running"]
    {
        assert!(queue.contains(words), "{words:?} in\n{queue}");
    }
    assert!(place.done(&["queue", "--format", "csv"]).contains("\n1,flow,"));
    let whole = place.done(&["status", "1"]);
    for words in ["1: flow of ", "slow", "predicted at"] {
        assert!(whole.contains(words), "{words:?} in\n{whole}");
    }
    let printed = place.done(&["explain", "1", "f", "last"]);
    assert!(printed.contains("waits for its input: slow"), "{printed}");
    assert_eq!(printed, place.done(&["explain", "--state", "1", "f", "last"]));
    assert!(place.done(&["status", "--server", &place.socket.display().to_string()]).contains("version"));
    place.done(&["submission", "hold", "1"]);
    assert_eq!(place.shown("1")["held"], true);
    place.done(&["submission", "set", "1", "--flow", "f", "--weight", "3"]);
    assert_eq!(place.shown("1")["flows"][0]["weight"], 3.0);
    place.done(&["submission", "resume", "1"]);
    fs::write(place.dir.join("go"), "").expect("a file");
    place.done(&["submission", "cancel", "1"]);
    place.until_state("1", "cancelled");
    // A submission of the same name continues with the finished jobs.
    assert!(place.done(&["submit", "flow.toml", "--wait"]).contains("2 ended: finished"));
    assert!(place.done(&["logs", "f", "slow", "--state", "2"]).contains("hello"));
    let recurs =
        ["submit", "flow.toml", "--name", "nightly", "--schedule", "0 2 * * *", "--zone", "Europe/Berlin"];
    assert!(place.done(&recurs).contains("next at"));
    assert!(place.done(&["schedule", "list"]).contains("0 2 * * *"));
    place.done(&["schedule", "pause", "nightly"]);
    assert!(place.done(&["schedule", "list"]).contains("paused"));
    place.done(&["schedule", "remove", "nightly"]);
    assert_eq!(place.done(&["schedule", "list"]), "no schedules\n");
    place.done(&["serve", "drain"]);
    assert!(place.done(&["queue"]).contains("no new submission starts"));
    // A queued submission is shown with its flows, and in lists with the earliest of their deadlines.
    place.done(&["submit", "flow.toml", "--name", "later", "--deadline", "f=2h"]);
    let later = place.shown("3");
    assert_eq!((&later["state"], &later["flows"][0]["flow"]), (&"queued".into(), &"f".into()), "{later}");
    let due = later["deadline"].as_str().expect("a deadline");
    let row = format!("\n3,later,{},queued,", later["user"].as_str().expect("a user"));
    let queue = place.done(&["queue", "--format", "csv"]);
    assert!(queue.contains(&row) && queue.contains(&format!(",0,,,,{due},,,,,,,,,,\n")), "{queue}");
    assert!(later["why"].as_str().is_some_and(|why| why.starts_with("the service drains")), "{later}");
    // A deadline of tomorrow has a date, so its text is shortened.
    assert!(place.done(&["queue"]).contains("queued: the"));
    assert!(place.done(&["status", "3"]).contains("its completion is predicted when it starts"));
    place.done(&["serve", "drain", "--undo"]);
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

/// All errors have a message and exit code 2, and no flow is submitted.
#[test]
fn invalid_files_are_reported_and_not_submitted() {
    let dir = crate::scratch("serve-wrong");
    let place = Place::new(dir, "serve-wrong");
    assert!(place.refused(&["queue"]).contains("no service answers at"));
    let mut alone = place.family.command(&place.dir, &["queue"]);
    let alone = crate::ran(&alone.env_remove("SLACKLINE_SERVER").output().expect("the program starts"));
    assert!(alone.err.contains("start one with `slackline serve`"), "{}", alone.err);
    let mut service = place.serve(&[]);
    fs::write(
        place.dir.join("bad.toml"),
        "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', run = { maper = 'x' } }]\n",
    )
    .expect("a file");
    let refused = place.refused(&["submit", "bad.toml"]);
    assert!(refused.contains("bad.toml:4") && refused.contains("maper"), "{refused}");
    assert!(place.refused(&["submit", "none.toml"]).contains("none.toml: cannot be read"));
    let good = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', run = { command = 'true', output = 'out' } }]\n";
    fs::write(place.dir.join("good.toml"), good).expect("a file");
    assert!(place.refused(&["submit", "good.toml", "--schedule", "61 * * * *"]).contains("schedule"));
    assert!(place.refused(&["submission", "cancel", "7"]).contains("found no submission 7"));
    assert!(place.refused(&["status", "7"]).contains("found no submission 7"));
    assert!(place.refused(&["submission", "set", "7"]).contains("--deadline"));
    assert!(place.refused(&["serve", "--allow-root", "--state", "s"]).contains("another"));
    assert!(
        place
            .refused(&["serve", "--allow-root", "--state", "t", "--listen", "0.0.0.0:0"])
            .contains("the service needs TLS and tokens")
    );
    assert!(place.done(&["queue", "--all"]).contains("no submissions"));
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}
