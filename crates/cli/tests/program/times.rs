//! Durations and clock times, from documents and options to tables.

use std::fs;

use serde_json::Value;

use crate::{MORNING, NIGHTLY, done, run, run_with, scratch, text};

#[test]
fn the_example_with_clock_times_is_simulated_by_the_clock() {
    let table = done(&["simulate", MORNING, "--policy", "edf"]);
    assert!(table.contains("\nstart: 28 Mar 2026 22:00 Europe/Berlin\n"), "{table}");
    let row = |flow: &str| table.lines().find(|line| line.starts_with(flow)).unwrap();
    assert!(row("tables").contains("22:30") && row("tables").contains("29 Mar 06:00"), "{table}");
    // The fifth copy is due five hours after the first, at 05:00 by clocks that have gone forward.
    assert!(row("hourly#4").contains("29 Mar 05:00"), "{table}");
    // 08:30 in New York, which changed its clocks three weeks before.
    assert!(row("new-york").contains("29 Mar 07:00") && row("new-york").contains("29 Mar 14:30"), "{table}");
    let document: Value =
        serde_json::from_str(&done(&["simulate", MORNING, "--policy", "edf", "--format", "json"])).unwrap();
    assert_eq!(document["start"], "2026-03-28T22:00:00+01:00[Europe/Berlin]");
    assert_eq!(document["flows"][0]["release"], 1800.0, "documents have seconds");
}

#[test]
fn a_document_keeps_its_start_and_its_instants_when_it_is_written_again() {
    let dir = scratch("times_again");
    let schedule = dir.join("edf.json");
    done(&["simulate", MORNING, "--policy", "edf", "--output", text(&schedule)]);
    done(&["check", MORNING, text(&schedule)]);
    let flows = |path: &str| done(&["simulate", path, "--policy", "edf", "--format", "csv"]);
    for format in ["toml", "json", "yaml"] {
        let file = dir.join(format!("again.{format}"));
        done(&["import", MORNING, "--output", text(&file)]);
        assert!(fs::read_to_string(&file).unwrap().contains("2026-03-28T22:00:00+01:00[Europe/Berlin]"));
        assert_eq!(flows(text(&file)), flows(MORNING), "{format}");
    }
}

#[test]
fn a_schedule_for_another_start_is_refused() {
    let dir = scratch("times_other_start");
    let schedule = dir.join("edf.json");
    let made = done(&["simulate", MORNING, "--policy", "edf", "--format", "json"]);
    fs::write(&schedule, made.replacen("2026-03-28T22:00:00+01:00", "2026-03-27T22:00:00+01:00", 1)).unwrap();
    let ran = run(&["check", MORNING, text(&schedule)]);
    let expected = "start: found 2026-03-27T22:00:00+01:00[Europe/Berlin], but the start of the workload is 2026-03-28T22:00";
    assert!(
        ran.code == Some(1) && format!("{}{}", ran.out, ran.err).contains(expected),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn options_and_parameters_take_durations() {
    let same = |texts: &[&str], numbers: &[&str]| assert_eq!(done(texts), done(numbers), "{texts:?}");
    let simulate = ["simulate", NIGHTLY, "--format", "csv"];
    let with = |more: &[&'static str]| [&simulate[..], more].concat();
    same(
        &with(&["--policy", "flex", "--heartbeat", "3s", "--grain", "0.5m"]),
        &with(&["--policy", "flex", "--heartbeat", "3", "--grain", "30"]),
    );
    same(
        &with(&["--policy", "fifo", "--crash", "node-3@2m+1m30s"]),
        &with(&["--policy", "fifo", "--crash", "node-3@120+90"]),
    );
    same(&with(&["--policy", "flex:epoch=500ms"]), &with(&["--policy", "flex:epoch=0.5"]));
    let generate = |settings: &'static str| ["generate", "flowflex-5.1", "--set", settings];
    same(&generate("short=1s..0.1m"), &generate("short=1..6"));
    let ran = run(&["simulate", NIGHTLY, "--policy", "fifo", "--heartbeat", "1mo"]);
    assert!(ran.code == Some(2) && ran.err.contains("have no fixed length"), "{}", ran.err);
}

#[test]
fn long_results_are_in_days_and_hours() {
    let workload = "slackline = 1\n[cluster]\nmachines = [{ name = 'n', slots = 1 }]\n[[flows]]\nid = 'f'\n\
                    jobs = [{ id = 'a', map = { tasks = 1, seconds = 138409.0 } }]\n";
    let ran = run_with(&["simulate", "-", "--policy", "fifo"], workload.as_bytes());
    assert!(ran.code == Some(0) && ran.out.contains("1d 14h 27m"), "{}{}", ran.out, ran.err);
}

#[test]
fn errors_of_times_name_the_value() {
    for (value, expected) in [
        ("2026-02-30T06:00", "expected a day from 01 to 28, which are all of February 2026"),
        ("25:00", "expected an hour from 00 to 23"),
        ("6:00", "expected 06:00"),
        ("1.5d", "expected 36h: "),
    ] {
        let workload = format!(
            "slackline = 1\nstart = '2026-02-01T00:00Z'\n[[flows]]\nid = 'f'\ndeadline = '{value}'\n\
             jobs = [{{ id = 'a', map = {{ tasks = 1, seconds = 1.0 }} }}]\n"
        );
        let ran = run_with(&["bound", "-", "--machines", "1", "--slots", "1"], workload.as_bytes());
        assert_eq!(ran.code, Some(2), "{value}: {}", ran.out);
        assert!(
            ran.err.contains(&format!(":5:12: flows[0].deadline: found text {value:?}, {expected}")),
            "{}",
            ran.err
        );
    }
    let ran = run(&["simulate", NIGHTLY, "--policy", "fifo", "--heartbeat", "1.5d"]);
    assert!(ran.code == Some(2) && ran.err.contains("expected 36h: "), "{}", ran.err);
    let ran = run(&["run", NIGHTLY, "--deadline", "f=25:00"]);
    assert!(ran.code == Some(2) && ran.err.contains("expected an hour from 00 to 23"), "{}", ran.err);
}

#[test]
fn a_deadline_before_the_release_is_remarked_on_once_a_document() {
    let flow = |id: &str| {
        format!(
            "[[flows]]\nid = '{id}'\nrelease = 10\ndeadline = 5\njobs = [{{ id = 'a', map = {{ tasks = 1, seconds = 1.0 }} }}]\n"
        )
    };
    let workload = format!(
        "slackline = 1\ncluster.machines = [{{ name = 'n', slots = 1 }}]\n{}{}",
        flow("early"),
        flow("too")
    );
    let ran = run_with(&["simulate", "-", "--policy", "fifo"], workload.as_bytes());
    assert_eq!(ran.code, Some(0), "it is legal: {}", ran.err);
    let expected = "2 flows: the deadline is before the release, as of \"early\", so that no schedule meets it (first at line 6)";
    assert_eq!(ran.err.matches("before the release").count(), 1, "{}", ran.err);
    assert!(ran.err.contains(expected), "{}", ran.err);
}
