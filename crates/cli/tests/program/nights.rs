//! Schedules night after night: each run has all its jobs, and all its times are in one zone.

use std::fs;

use crate::scratch;
use crate::serve::Place;

/// A job that uses the date, and one that does not.
const NIGHT: &str = r#"
slackline = 1
[parameters]
t = "none"
[[flows]]
id = "f"
jobs = [
  { id = "load", run = { command = "echo load {t} >> ran", output = "out/{t}" } },
  { id = "notify", after = ["load"], run = { command = "echo notify >> ran" } },
]
"#;

fn place(test: &str) -> Place {
    let place = Place::new(scratch(test), test);
    fs::write(place.dir.join("flow.toml"), NIGHT).expect("a flow file");
    place
}

#[test]
fn each_run_of_a_schedule_runs_every_job() {
    let place = place("nights-all-jobs");
    let mut service = place.serve(&[]);
    place.done(&["submit", "flow.toml", "--schedule", "0 0 1 1 *", "--set", "t=%Y", "--name", "n"]);
    let notified = || {
        let ran = fs::read_to_string(place.dir.join("ran")).unwrap_or_default();
        ran.lines().filter(|line| *line == "notify").count()
    };
    for night in 1..=3_usize {
        place.done(&["schedule", "run", "n"]);
        place.until_state(&night.to_string(), "finished");
        assert_eq!(notified(), night);
    }
    // What a user submits again keeps the jobs that are done.
    for number in ["4", "5"] {
        place.done(&["submit", "flow.toml", "--set", "t=x", "--name", "own"]);
        place.until_state(number, "finished");
        assert_eq!(notified(), 4);
    }
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn a_deadline_by_the_clock_is_in_the_zone_of_the_submission() {
    let place = place("nights-zone");
    let mut service = place.serve(&["--zone", "America/New_York"]);
    let deadline = |number: &str| {
        let document = place.shown(number);
        (document["deadline"].as_str().unwrap().to_owned(), document["zone"].as_str().unwrap().to_owned())
    };
    let submit = |more: &[&str]| {
        let args = [&["submit", "flow.toml", "--hold", "--deadline", "f=06:30", "--quiet"], more].concat();
        place.done(&args).trim().to_owned()
    };
    let (at, zone) = deadline(&submit(&["--name", "a", "--zone", "Asia/Kolkata"]));
    assert!(at.contains("T01:00:00") && zone == "Asia/Kolkata", "{at} {zone}");
    // The zone of the service, in summer or in winter.
    let (at, zone) = deadline(&submit(&["--name", "b"]));
    assert!((at.contains("T10:30:00") || at.contains("T11:30:00")) && zone == "America/New_York", "{at}");
    let ran = place.ask(&["submit", "flow.toml", "--zone", "Mars/Base"]);
    assert!(ran.code == Some(2) && ran.err.contains("found \"Mars/Base\""), "{}", ran.err);
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}
