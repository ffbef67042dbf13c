//! The messages and exit codes of the service commands when a request is impossible, waits, or is wrong.

use std::fs::{self, File};
use std::process::Stdio;

use serde_json::Value;

use crate::processes::{ended, until};
use crate::scratch;
use crate::serve::Place;

/// A flow of one command, which records its start.
const FLOW: &str = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', map = { tasks = 1, seconds = 5 }, run = { command = 'touch began', output = 'out' } }]\n";

fn place(test: &str) -> Place {
    let place = Place::new(scratch(test), test);
    fs::write(place.dir.join("flow.toml"), FLOW).expect("a flow file");
    place
}

/// The exit code, standard output and standard error.
fn answered(place: &Place, args: &[&str]) -> (Option<i32>, String, String) {
    let ran = place.ask(args);
    (ran.code, ran.out, ran.err)
}

#[test]
fn wait_returns_with_the_reason_if_a_flow_cannot_start() {
    let place = place("serve-undecided");
    let mut service = place.serve(&[]);
    let held = answered(&place, &["submit", "flow.toml", "--hold", "--wait-for-prediction"]);
    let words = "flow is submitted as 1: held\nno prediction: it is held (slackline submission resume 1)\n";
    assert_eq!(held, (Some(3), words.into(), String::new()));
    let (code, out, err) =
        answered(&place, &["submit", "flow.toml", "--name", "q", "--hold", "--if-late", "reject", "--quiet"]);
    assert_eq!((code, out.as_str()), (Some(3), "2\n"));
    assert_eq!(err, "no prediction: it is held (slackline submission resume 2)\n");
    // Standard output has one document, and the number appears before it.
    let (code, out, err) = answered(
        &place,
        &["submit", "flow.toml", "--name", "j", "--hold", "--wait-for-prediction", "--format", "json"],
    );
    let document: Value = serde_json::from_str(&out).expect("the document is JSON");
    assert_eq!((code, err.as_str()), (Some(3), "j is submitted as 3: held\n"));
    assert_eq!(
        (&document["accepted"]["number"], &document["submission"]["state"], &document["waits"]),
        (&3.into(), &"queued".into(), &"it is held (slackline submission resume 3)".into())
    );
    let files = ["submit", "flow.toml", "--name", "w", "--when", "no/such/*", "--wait-for-prediction"];
    let (code, out, _) = answered(&place, &files);
    assert!(code == Some(3) && out.contains("no/such/*, which does not exist"), "{code:?} {out}");
    place.done(&["serve", "drain"]);
    let (code, out, _) = answered(&place, &["submit", "flow.toml", "--name", "d", "--if-late", "reject"]);
    assert!(code == Some(3) && out.contains("(slackline serve drain --undo)"), "{code:?} {out}");
    assert!(!place.dir.join("began").exists());
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn late_submissions_are_rejected_with_exit_code_1() {
    let place = place("serve-rejected");
    let mut service = place.serve(&[]);
    // No task is done within a microsecond.
    let late = ["submit", "flow.toml", "--deadline", "f=0.000001", "--if-late", "reject"];
    let (code, out, err) = answered(&place, &late);
    assert_eq!(code, Some(1), "{out}{err}");
    for words in ["flow is submitted as 1\n", "will miss its deadline", "1 ended: rejected"] {
        assert!(out.contains(words), "{words:?} in\n{out}");
    }
    let all = place.done(&["queue", "--all"]);
    assert!(!out.contains("cancelled") && all.contains("rejected: it"), "{out}{all}");
    assert_eq!(place.shown("1")["state"], "rejected");
    assert!(!place.dir.join("began").exists(), "it was not to be begun");
    let (code, out, err) =
        answered(&place, &["submit", "flow.toml", "--deadline", "f=2h", "--if-late", "reject"]);
    assert_eq!(code, Some(0), "{out}{err}");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn a_refused_submission_does_not_stop_the_other_ones() {
    let place = place("serve-others");
    let mut service = place.serve(&[]);
    place.done(&["serve", "drain"]);
    for name in ["a", "b", "c"] {
        place.done(&["submit", "flow.toml", "--name", name]);
    }
    let (code, _, err) = answered(&place, &["submission", "hold", "1", "77", "3"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("1 is held") && err.contains("3 is held"), "{err}");
    assert!(err.ends_with("error: found no submission 77\n"), "{err}");
    let held = ["1", "2", "3"].map(|number| place.shown(number)["held"] == true);
    assert_eq!(held, [true, false, true]);
    let (code, _, err) = answered(&place, &["submission", "resume", "1", "2"]);
    assert_eq!((code, err.as_str()), (Some(0), "1 is resumed\n2 was not held\n"));
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn times_that_have_passed_and_options_that_do_not_go_together_are_refused() {
    let place = place("serve-refused");
    let mut service = place.serve(&[]);
    let past = place.refused(&["submit", "flow.toml", "--deadline", "f=2020-01-01T00:00:00Z"]);
    assert!(past.contains("f: found 2020-01-01T00:00:00Z, which has passed"), "{past}");
    let wait = ["submit", "flow.toml", "--schedule", "0 2 * * *", "--wait"];
    assert!(place.refused(&wait).contains("cannot be used with"), "{}", place.refused(&wait));
    let bare = place.refused(&["queue", "--server", "127.0.0.1:7070"]);
    assert!(bare.contains("expected http://127.0.0.1:7070 or https://127.0.0.1:7070"), "{bare}");
    assert_eq!(place.done(&["queue", "--all", "--format", "csv"]).lines().count(), 1, "no submissions");
    place.done(&["submit", "flow.toml", "--hold"]);
    for (deadline, words) in [
        ("--deadline=-5", "expected a duration that is not negative"),
        ("--deadline=2020-01-01T00:00:00Z", "expected a time after the release of the flow"),
        ("--deadline=soon", "found \"soon\", expected seconds"),
    ] {
        let refused = place.refused(&["submission", "set", "1", deadline]);
        assert!(refused.contains(words) && !refused.contains("expected found"), "{refused}");
    }
    let nothing = place.refused(&["submission", "set", "1"]);
    assert!(nothing.contains("--deadline <WHEN>|--weight <N>|--priority <N>"), "{nothing}");
    // The answer to a recurring submission has its time zone, and says that its times are all alike.
    let (code, out, err) =
        answered(&place, &["submit", "flow.toml", "--name", "n", "--schedule", "0 2 * * *"]);
    assert!(code == Some(0) && err.contains("all runs of the schedule have the same parameters"), "{err}");
    let next = out.lines().find(|line| line.starts_with("next at ")).expect("when it comes next");
    let at = next.trim_start_matches("next at ").split(" (").next().expect("a time").to_owned();
    assert!(
        at.chars().last().is_some_and(|last| !last.is_ascii_digit() || at.contains(['+', '-'])),
        "{next}"
    );
    assert!(place.done(&["schedule", "list"]).contains(&at));
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn a_directory_that_is_mistyped_is_not_made() {
    let place = place("serve-mistyped");
    let refused = place.refused(&["token", "--state", "mistyped", "--add", "anna", "--role", "look"]);
    assert!(
        refused.contains("mistyped: found no directory, expected the state directory of a service"),
        "{refused}"
    );
    let refused = place.refused(&["serve", "--allow-root", "--state", "s", "--alert-to", "nourl"]);
    assert!(refused.contains("expected http://HOST"), "{refused}");
    assert!(!place.dir.join("mistyped").exists());
    // Before the first start, tokens go to a directory that a user has made.
    fs::create_dir(place.dir.join("made")).expect("a directory");
    let ran = place.ask(&["token", "--state", "made", "--add", "anna", "--role", "look"]);
    assert!(ran.code == Some(0) && ran.err.contains("no service has run there yet"), "{}", ran.err);
    assert!(ran.out.starts_with("slackline_"), "{}", ran.out);
}

#[test]
fn a_service_waits_for_the_one_before_to_end() {
    let place = place("serve-again");
    let mut service = place.serve(&[]);
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
    // A service that is about to end, and does not answer any more.
    let log = File::options().append(true).open(place.dir.join("s/service.log")).expect("its log");
    log.lock().expect("no other thread has it");
    let socket = place.socket.display().to_string();
    let mut command = place
        .family
        .command(&place.dir, &["serve", "--allow-root", "--state", "s", "--slots", "2", "--socket", &socket]);
    let said = place.dir.join("said");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said).expect("a file"));
    let child = command.spawn().expect("the program starts");
    let waits = |child: std::process::Child| {
        let has_said = || fs::read_to_string(&said).is_ok_and(|said| said.contains("running there; waiting"));
        until("it says what it waits for", has_said);
        child
    };
    let child = waits(child);
    // The waiting start can be stopped.
    crate::processes::signal("TERM", child.id());
    assert_eq!(ended(child).code, Some(0));
    let printed = fs::read_to_string(&said).expect("what it said");
    assert!(printed.ends_with("stopped; the same command resumes the unfinished flows\n"), "{printed}");
    command.stderr(File::create(&said).expect("a file"));
    let child = waits(command.spawn().expect("the program starts"));
    drop(log);
    until("the service answers", || place.ask(&["queue"]).code == Some(0));
    crate::processes::signal("TERM", child.id());
    assert_eq!(ended(child).code, Some(0));
}
