//! Nights of a service: files that come late or never, nights that run again, and forecasts of jobs that never ran.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::processes::{pause, until};
use crate::scratch;
use crate::serve::Place;

fn place(test: &str, flow: &str) -> Place {
    let place = Place::new(scratch(test), test);
    fs::write(place.dir.join("flow.toml"), format!("slackline = 1\n{flow}")).expect("a flow file");
    place
}

/// The lines of a file that jobs write, in any order.
fn lines(file: &Path) -> Vec<String> {
    let mut lines: Vec<String> =
        fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_file_that_is_still_written_is_not_complete() {
    let job = "{ id = 'j', run = { command = 'wc -l < in.csv', inputs = ['in.csv'], output = 'out' } }";
    let place = place("night-growing", &format!("[[flows]]\nid = 'f'\njobs = [{job}]\n"));
    let mut service = place.serve(&[]);
    place.done(&["submit", "flow.toml", "--when", "in.csv"]);
    let mut file = File::create(place.dir.join("in.csv")).expect("an input");
    for row in 0..30 {
        writeln!(file, "row {row}").expect("it can be written");
        pause(150);
    }
    place.until_state("1", "finished");
    let count = fs::read_to_string(place.dir.join("out/part-00000")).expect("its output");
    assert_eq!(count.trim(), "30");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

/// Regression: a night without its file stopped all later ones.
#[test]
fn a_night_whose_file_does_not_come_stops_no_other_and_gives_up() {
    let job = "{ id = 'j', run = { command = 'echo {t} >> ran; cat in/{t}', inputs = ['in/{t}'], output = 'out/{t}' } }";
    let place =
        place("night-missing", &format!("[parameters]\nt = 'x'\n[[flows]]\nid = 'f'\njobs = [{job}]\n"));
    let mut service = place.serve(&["--zone", "Europe/Berlin"]);
    fs::create_dir(place.dir.join("in")).expect("a directory");
    let schedule = ["--schedule", "0 2 * * *", "--set", "t=%m-%d", "--when", "in/%m-%d"];
    place.done(&[&["submit", "flow.toml", "--name", "night", "--when-for", "2s"][..], &schedule].concat());
    for day in ["03-01", "03-03"] {
        fs::write(place.dir.join("in").join(day), "x\n").expect("an input");
    }
    let backfill =
        ["schedule", "run", "night", "--from", "2026-03-01", "--to", "2026-03-03", "--parallel", "3"];
    let ran = place.ask(&backfill);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let nights: Vec<&str> = ran.out.lines().collect();
    let expected = [
        ("2026-03-01 02:00 CET: finished in ", "(submission 1)"),
        ("2026-03-02 02:00 CET: failed", "in/03-02 does not exist"),
        ("2026-03-03 02:00 CET: finished in ", "(submission 3)"),
    ];
    assert_eq!(nights.len(), expected.len(), "{}", ran.out);
    for (night, (start, end)) in nights.iter().zip(expected) {
        assert!(night.starts_with(start) && night.ends_with(end), "{night}");
    }
    assert_eq!(lines(&place.dir.join("ran")), ["03-01", "03-03"]);
    // Lists name the night.
    let all = place.done(&["queue", "--all"]);
    assert!(all.contains("night 2026-03-02 02:00"), "{all}");
    // The night runs when its file has come, and only what has not run.
    fs::write(place.dir.join("in/03-02"), "x\n").expect("an input");
    place.done(&["submission", "rerun", "2", "--failed"]);
    place.until_state("4", "finished");
    assert_eq!(place.shown("4")["rerun_of"], 2);
    assert_eq!(lines(&place.dir.join("ran")), ["03-01", "03-02", "03-03"]);
    let wrong = place.refused(&["schedule", "run", "night", "--from", "2026-13-01"]);
    assert!(wrong.contains("from: found \"2026-13-01\", expected a date such as 2026-03-01"), "{wrong}");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn a_submission_is_run_again_as_a_whole_from_a_job_or_where_it_failed() {
    let job = |id: &str, input: &str, more: &str| {
        format!(
            "{{ id = '{id}', run = {{ mapper = 'echo {id} >> ran; {more} cat', reducer = 'cat', inputs = ['{input}'], output = 'o-{id}', attempts = 1 }} }}"
        )
    };
    let jobs = [job("a", "in.txt", ""), job("b", "@a", "test -e ok &&"), job("c", "@b", "")].join(",\n");
    let place = place("night-rerun", &format!("[[flows]]\nid = 'f'\njobs = [{jobs}]\n"));
    fs::write(place.dir.join("in.txt"), "one\n").expect("an input");
    let alerts = ["--on-alert", "echo $SLACKLINE_ALERT >> alerts", "--alert-on", "failed,finished"];
    let mut service = place.serve(&alerts);
    assert_eq!(place.ask(&["submit", "flow.toml", "--wait"]).code, Some(1));
    let ran = place.dir.join("ran");
    let again = |more: &[&str], expected: &[&str]| {
        fs::remove_file(&ran).expect("jobs have run");
        let said = place.ask(&[&["submission", "rerun", "1"][..], more].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let number = said.err.trim().rsplit(' ').next().expect("a number").to_owned();
        place.until_state(&number, "finished");
        assert_eq!(lines(&ran), expected, "{more:?}");
    };
    fs::write(place.dir.join("ok"), "").expect("a file");
    again(&["--failed"], &["b", "c"]);
    again(&["--from-job", "b"], &["b", "c"]);
    again(&["--from-job", "f/c"], &["c"]);
    again(&[], &["a", "b", "c"]);
    let expected = ["failed", "finished", "finished", "finished", "finished"];
    until("all alerts are sent", || lines(&place.dir.join("alerts")) == expected);
    let wrong = place.refused(&["submission", "rerun", "1", "--from-job", "bb"]);
    assert!(wrong.contains("from_job: ") && wrong.contains("f/b"), "{wrong}");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

#[test]
fn a_job_that_never_ran_has_no_forecast_and_one_that_ran_has_an_interval() {
    let job = "{ id = 'j', run = { command = 'until test -e go; do sleep 0.1; done', output = 'out' } }";
    let place = place("night-unknown", &format!("[[flows]]\nid = 'f'\njobs = [{job}]\n"));
    let mut service = place.serve(&[]);
    let said = place.done(&["submit", "flow.toml", "--deadline", "f=2h", "--wait-for-prediction"]);
    assert!(said.contains("f: completion unknown (a job never ran)") && !said.contains("would"), "{said}");
    let shown = place.until_state("1", "running");
    let flow = &shown["flows"][0];
    assert_eq!(
        (flow["unknown"] == true, flow["predicted"].is_null(), flow["late"].is_null()),
        (true, true, true)
    );
    assert!(place.done(&["queue"]).contains("unknown"));
    pause(500);
    fs::write(place.dir.join("go"), "").expect("a file");
    place.until_state("1", "finished");
    fs::remove_file(place.dir.join("go")).expect("it is there");
    until("its durations are known", || place.ask(&["history", "s/past.history"]).out.contains("j "));
    place.done(&["submission", "rerun", "1"]);
    until("it is predicted", || !place.shown("2")["prediction"]["flows"][0]["between"].is_null());
    assert!(
        place
            .done(&["status", "--server", &place.socket.display().to_string()])
            .contains("no forecast of 1 flow")
    );
    fs::write(place.dir.join("go"), "").expect("a file");
    place.until_state("2", "finished");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

/// What another night has written is no input of a night that runs again from a job.
#[test]
fn a_night_runs_again_as_a_whole_if_another_one_has_replaced_its_outputs() {
    let jobs = "{ id = 'a', run = { command = 'echo a{t} >> ran; echo {t}', output = 'o-a' } }, \
                { id = 'b', run = { command = 'echo b{t} >> ran; cat o-a/part-*', inputs = ['@a'], output = 'o-b' } }";
    let flow = format!("[parameters]\nt = 'x'\n[[flows]]\nid = 'f'\njobs = [{jobs}]\n").replace("\\\n", "");
    let place = place("night-shared", &flow);
    let mut service = place.serve(&["--zone", "UTC"]);
    place.done(&["submit", "flow.toml", "--name", "night", "--schedule", "0 2 * * *", "--set", "t=%d"]);
    place.done(&["schedule", "run", "night", "--from", "2026-03-01", "--to", "2026-03-02"]);
    fs::remove_file(place.dir.join("ran")).expect("jobs have run");
    place.done(&["submission", "rerun", "2", "--from-job", "b"]);
    place.until_state("3", "finished");
    place.done(&["submission", "rerun", "1", "--from-job", "b"]);
    place.until_state("4", "finished");
    assert_eq!(lines(&place.dir.join("ran")), ["a01", "b01", "b02"]);
    let read = fs::read_to_string(place.dir.join("o-b/part-00000")).expect("its output");
    assert_eq!(read.trim(), "01");
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}
