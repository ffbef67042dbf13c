//! Runs that are resumed with other settings: each part of a run is judged by its own settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::fleet::{SSH, with_machines};
use crate::processes::{Family, signal, until};
use crate::runs::{checked, parts};
use crate::serve::Place;
use crate::{Ran, scratch};

/// Four maps that each wait for a file `map-N`, and two reduces that wait for `reduce`.
const FLOW: &str = r#"
slackline = 1
[[flows]]
id = "f"
jobs = [
  { id = "first", run = { program = "wordcount", inputs = ["in/0"], output = "first" } },
  { id = "j", after = ["first"], run = { mapper = "until test -e map-$SLACKLINE_TASK; do sleep 0.02; done; cat", reducer = "until test -e reduce; do sleep 0.02; done; cat", inputs = ["in/*"], output = "out", reducers = 2 } },
]
"#;

/// The files for which tasks of a run wait.
const GATES: [&str; 5] = ["map-0", "map-1", "map-2", "map-3", "reduce"];

struct Scene {
    dir: PathBuf,
    family: Family,
}

impl Scene {
    fn new(test: &str) -> Self {
        let dir = scratch(test);
        fs::write(dir.join("flow.toml"), FLOW).expect("a flow file");
        fs::create_dir(dir.join("in")).expect("a directory");
        for k in 0..4 {
            fs::write(dir.join(format!("in/{k}")), format!("{k:1023}\n")).expect("an input");
        }
        Self { dir, family: Family::new(test) }
    }

    /// Tasks that wait for these files continue.
    fn open(&self, gates: &[&str]) {
        for gate in gates {
            fs::write(self.dir.join(gate), "").expect("a file");
        }
    }

    fn run(&self, more: &[&str]) -> Ran {
        self.family.slackline(&self.dir, &all(more))
    }

    /// Runs until the words have occurred `times` times in its events, and stops it by that signal.
    fn session(&self, more: &[&str], (words, times): (&str, usize), by: &str) {
        let events = self.dir.join("events");
        let _ = fs::remove_file(&events);
        let err = fs::File::create(self.dir.join("err")).expect("a file");
        let args = [&all(more)[..], &["--events", "events"]].concat();
        let mut run = self.family.command(&self.dir, &args);
        let run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(err);
        let mut run = run.spawn().expect("it starts");
        let read = |path: &str| fs::read_to_string(self.dir.join(path)).unwrap_or_default();
        until(words, || {
            let ended = run.try_wait().expect("it can be asked");
            assert_eq!(ended, None, "{more:?}: {}", read("err"));
            read("events").lines().filter(|line| has(line, words)).count() >= times
        });
        signal(by, run.id());
        let status = run.wait().expect("it ends");
        assert!(by == "KILL" || status.code() == Some(130), "{status:?}: {}", read("err"));
        self.family.is_gone();
    }

    /// Opens all gates: the run finishes, and its outputs are right.
    fn finishes(&self, more: &[&str]) -> Ran {
        self.open(&GATES);
        let ran = self.run(more);
        assert_eq!(ran.code, Some(0), "{more:?}: {}{}", ran.out, ran.err);
        self.is_right();
        ran
    }

    fn is_right(&self) {
        let lines: Vec<String> = parts(&self.dir.join("out"))
            .values()
            .flat_map(|part| {
                String::from_utf8_lossy(part).lines().map(|l| l.trim().to_owned()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(
            lines.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
            ["0", "1", "2", "3"].into()
        );
        assert_eq!(lines.len(), 4);
        checked(&self.dir);
    }

    fn schedule(&self) -> Value {
        json(&fs::read_to_string(self.dir.join("state/schedule.json")).expect("a schedule"))
    }

    fn status(&self) -> Value {
        let ran = self.family.slackline(&self.dir, &["status", "--state", "state", "--format", "json"]);
        json(&ran.out)
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

/// Whether a line of events has all of these words.
fn has(line: &str, words: &str) -> bool {
    words.split(' ').all(|word| line.contains(&format!("\"{word}\"")))
}

fn all<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let says = |words: &str| more.iter().any(|more| more.contains(words));
    let split: &[&str] = match (says("split="), says("ssh:")) {
        (true, _) => &[],
        (_, true) => &["--engine", "ssh:split=1KiB"],
        _ => &["--engine", "local:split=1KiB"],
    };
    let slots: &[&str] = if says("slots") || says("ssh:") { &[] } else { &["--slots", "2"] };
    [&["run", "flow.toml", "--state", "state"], split, slots, more].concat()
}

/// A reduce has its slot before all maps are done: on two slots, when only one map is left.
const EARLY: (&str, usize) = ("task_started reduce j", 1);

#[test]
fn a_reduce_that_started_early_is_right_though_later_reduces_may_not() {
    let scene = Scene::new("segments-early");
    scene.open(&GATES[..3]);
    scene.session(&["--slowstart", "0.05"], EARLY, "TERM");
    scene.finishes(&[]);
    let schedule = scene.schedule();
    let slowstarts: Vec<_> =
        schedule["segments"].as_array().unwrap().iter().map(|s| s["slowstart"].as_f64()).collect();
    assert_eq!(slowstarts, [Some(0.05), Some(1.0)], "{schedule:#}");
    // A document that has the last rule in its first segment is refused.
    let text = fs::read_to_string(scene.dir.join("state/schedule.json")).unwrap();
    fs::write(
        scene.dir.join("state/schedule.json"),
        text.replacen("\"slowstart\":0.05", "\"slowstart\":1.0", 1),
    )
    .unwrap();
    let ran = scene.family.slackline(&scene.dir, &["check", "state/workload.json", "state/schedule.json"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
}

#[test]
fn slowstart_changes_in_both_directions_and_back() {
    let scene = Scene::new("segments-slowstart");
    scene.open(&["map-0"]);
    scene.session(&[], ("task_done map j", 1), "INT");
    scene.open(&GATES[..3]);
    scene.session(&["--slowstart", "0"], EARLY, "HUP");
    scene.session(&["--slowstart", "0.9"], ("task_started map j", 1), "TERM");
    scene.session(&["--slowstart", "0"], EARLY, "TERM");
    scene.open(&GATES[..4]);
    scene.session(&[], ("task_started reduce j", 1), "KILL");
    scene.finishes(&[]);
}

#[test]
fn slots_come_and_go_and_the_machine_stays_one() {
    let scene = Scene::new("segments-slots");
    scene.open(&["map-0"]);
    scene.session(&["--slots", "2"], ("task_done map j", 1), "TERM");
    scene.session(&["--slots", "4"], ("task_started map j", 3), "TERM");
    scene.open(&["map-1"]);
    scene.session(&["--slots", "1", "--slowstart", "0"], ("task_done map j", 1), "TERM");
    scene.session(&["--engine", "local:map-slots=3,reduce-slots=1", "--slowstart", "0"], EARLY, "TERM");
    let status = scene.status();
    assert_eq!(
        (status["slots"].as_u64(), status["machines"].as_array().map(Vec::len)),
        (Some(4), Some(0)),
        "{status:#}"
    );
    let ran = scene.finishes(&["--slots", "3", "--stats"]);
    assert!(ran.out.contains("on 1 machine (4 generic slots)"), "{}", ran.out);
    let schedule = scene.schedule();
    let places = |segment: &Value| segment["places"][0].as_str().map(str::to_owned);
    let segments: Vec<_> = schedule["segments"].as_array().unwrap().iter().map(places).collect();
    assert_eq!(
        segments,
        [Some("local/0-1".into()), None, Some("local/0".into()), None, Some("local/0-2".into())],
        "{schedule:#}"
    );
    // The judge refuses a task on a slot that was not available.
    let mut forged = schedule;
    let last = forged["segments"].as_array().unwrap().last().unwrap()["start"].as_f64().unwrap();
    let tasks = forged["tasks"].as_array_mut().unwrap();
    let late = tasks.iter_mut().find(|task| task["start"].as_f64().unwrap() > last).expect("a task");
    late["slot"] = 3.into();
    fs::write(scene.dir.join("state/schedule.json"), forged.to_string()).unwrap();
    let ran = scene.family.slackline(&scene.dir, &["check", "state/workload.json", "state/schedule.json"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("starts on local slot 3, which is not available in segment 4"), "{}", ran.out);
}

#[test]
fn policies_are_shown_for_the_segments_that_they_had() {
    let scene = Scene::new("segments-policy");
    scene.open(&["map-0"]);
    scene.session(&["--policy", "fifo"], ("task_done map j", 1), "KILL");
    scene.open(&["map-1"]);
    scene.session(&["--policy", "fair:by=flow"], ("task_done map j", 1), "KILL");
    let status = scene.status();
    assert_eq!(status["policy"], "fifo, then fair:by=flow");
    assert_eq!(status["segments"].as_array().map(Vec::len), Some(2), "{status:#}");
    let text = scene.family.slackline(&scene.dir, &["status", "--state", "state"]).out;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("under fifo, then fair:by=flow")
            && text.contains(": fair:by=flow, slowstart 1, 2 slots"),
        "{text}"
    );
    let why = scene.family.slackline(&scene.dir, &["explain", "f", "--state", "state"]).out;
    assert!(why.contains("f under fifo, then fair:by=flow:"), "{why}");
    let ran = scene.finishes(&["--policy", "fifo", "--stats"]);
    assert!(ran.out.contains("fifo, then fair:by=flow, then fifo ran"), "{}", ran.out);
    let checked =
        scene.family.slackline(&scene.dir, &["check", "state/workload.json", "state/schedule.json"]);
    assert!(!checked.err.contains("is unknown to this program"), "{}", checked.err);
}

#[test]
fn the_same_settings_are_one_segment() {
    let scene = Scene::new("segments-same");
    scene.open(&["map-0"]);
    scene.session(&[], ("task_done map j", 1), "KILL");
    scene.session(&[], ("task_started map j", 1), "TERM");
    // Settings under which no attempt ended leave no trace.
    scene.session(&["--policy", "fair"], ("task_started map j", 1), "KILL");
    scene.finishes(&[]);
    assert_eq!(scene.schedule()["segments"], Value::Null);
    assert_eq!(scene.status()["segments"].as_array().map(Vec::len), Some(1));
}

#[test]
fn another_engine_is_refused_before_anything_starts() {
    let scene = Scene::new("segments-engine");
    with_machines(scene.dir.clone(), SSH, &[1, 1]);
    let ssh = ["--engine", "ssh:hosts=hosts,ssh=./reach"];
    scene.open(&["map-0"]);
    scene.session(&[], ("task_done map j", 1), "KILL");
    for more in [&[][..], &["--dry-run"], &["--policy", "fair"]] {
        let ran = scene.run(&[&ssh[..], more].concat());
        assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
        for words in ["started with engine local", "--engine local to resume it", "--again to start over"] {
            assert!(ran.err.contains(words), "{words:?} in {}", ran.err);
        }
    }
    assert!(!scene.dir.join("pid-n1").exists(), "no machine was reached");
    scene.finishes(&[]);
    // A finished run accepts another engine, and so does a run that starts over.
    let ran = scene.run(&ssh);
    assert!(ran.code == Some(0) && ran.err.contains("nothing is left to do"), "{}", ran.err);
    let ran = scene.run(&[&ssh[..], &["--again"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    scene.is_right();
}

/// Each session has another option, and is killed while reduces run.
#[test]
fn every_other_setting_may_change_too() {
    let scene = Scene::new("segments-others");
    scene.open(&GATES[..4]);
    let others: [&[&str]; 14] = [
        &["--engine=local:hash=on"],
        &["--engine", "local:task-memory=2MiB"],
        &["--engine", "local:timeout=300"],
        &["--attempts", "1"],
        &["--engine=local:speculate=on"],
        &["--metric", "tardiness"],
        &["--combine", "max"],
        &["--history", "past.history"],
        &["--deadline", "f=1000"],
        &["--deadline", "f=0"],
        &["--engine", "local:split=512KiB"],
        &["--engine=local:share=on"],
        &["--policy", "woha-lpf", "--slowstart", "0.3", "--slots", "3"],
        &["--policy", "dmrs"],
    ];
    for (k, more) in others.into_iter().enumerate() {
        let by = ["KILL", "TERM", "HUP", "INT"][k % 4];
        scene.session(more, ("task_started reduce j", 1), by);
        let dry = scene.run(&[more, &["--dry-run"]].concat());
        assert_eq!(dry.code, Some(0), "{more:?}: {}{}", dry.out, dry.err);
    }
    scene.finishes(&["--metric", "lateness"]);
}

/// A rule that a flow file has since a later session does not apply to earlier attempts.
#[test]
fn a_flow_file_that_is_edited_between_is_right() {
    let edits: [(&str, &str, &str); 7] = [
        ("release", "id = \"f\"\n", "id = \"f\"\nrelease = 2.0\n"),
        ("limit", "id = \"j\", after", "id = \"j\", max_slots = 1, after"),
        ("order", "id = \"first\", run", "id = \"first\", after = [\"new\"], run"),
        ("deadline", "id = \"f\"\n", "id = \"f\"\ndeadline = 0.001\n"),
        ("weight", "id = \"f\"\n", "id = \"f\"\nweight = 7.0\npriority = 3\n"),
        ("command", "inputs = [\"in/0\"]", "inputs = [\"in/1\"]"),
        (
            "removed",
            "  { id = \"first\", run = { program = \"wordcount\", inputs = [\"in/0\"], output = \"first\" } },\n",
            "",
        ),
    ];
    for (name, from, to) in edits {
        let scene = Scene::new(&format!("segments-edited-{name}"));
        scene.open(&["map-0", "map-1"]);
        scene.session(&[], ("task_done map j", 2), "TERM");
        let new = "  { id = \"new\", run = { program = \"wordcount\", inputs = [\"in/2\"], output = \"new\" } },\n]";
        let mut text = FLOW.replacen(from, to, 1);
        assert_ne!(text, FLOW);
        if name == "order" {
            text = text.replacen("\n]", &format!("\n{new}"), 1);
        }
        if name == "removed" {
            text = text.replacen("after = [\"first\"], ", "", 1);
        }
        fs::write(scene.dir.join("flow.toml"), text).unwrap();
        scene.session(&["--policy", "fair"], ("task_started map j", 1), "TERM");
        scene.finishes(&[]);
    }
}

/// A job that only waits for another does not rerun with it.
#[test]
fn output_that_is_lost_between_segments_is_written_again_and_the_run_is_right() {
    let scene = Scene::new("segments-lost");
    scene.open(&["map-0", "map-1"]);
    scene.session(&["--slowstart", "0"], ("task_done map j", 2), "TERM");
    fs::remove_dir_all(scene.dir.join("first")).unwrap();
    scene.session(&["--slots", "3"], ("task_started map j", 1), "KILL");
    for map in fs::read_dir(scene.dir.join("state/maps")).unwrap() {
        fs::remove_dir_all(map.unwrap().path()).unwrap();
    }
    scene.session(&[], ("task_started map j", 1), "KILL");
    scene.finishes(&["--slowstart", "0.05"]);
    assert!(scene.dir.join("first/_SUCCESS").exists());
}

#[test]
fn another_flow_file_is_refused_and_changes_nothing() {
    let scene = Scene::new("segments-another");
    scene.open(&["map-0"]);
    scene.session(&["--policy", "fifo"], ("task_done map j", 1), "KILL");
    fs::write(scene.dir.join("flow.toml"), FLOW.replace("id = \"f\"", "id = \"g\"")).unwrap();
    let ran = scene.run(&["--policy", "fair"]);
    assert!(ran.code == Some(2) && ran.err.contains("an unfinished run of other jobs"), "{}", ran.err);
    fs::write(scene.dir.join("flow.toml"), FLOW).unwrap();
    scene.finishes(&["--policy", "fair"]);
}

#[test]
fn hosts_that_join_and_leave_between_are_machines_of_the_run() {
    let scene = Scene::new("segments-hosts");
    with_machines(scene.dir.clone(), SSH, &[1, 1]);
    let ssh = ["--engine", "ssh:hosts=hosts,ssh=./reach"];
    scene.session(&ssh, ("task_started map j", 2), "TERM");
    fs::write(scene.dir.join("hosts"), "n2 slots=2\nn3 slots=1\n").unwrap();
    scene.open(&["map-0"]);
    scene.session(&[&ssh[..], &["--policy", "fair"]].concat(), ("task_done map j", 1), "TERM");
    let status = scene.status();
    let machines: BTreeMap<&str, u64> = (status["machines"].as_array().unwrap().iter())
        .map(|machine| (machine["machine"].as_str().unwrap(), machine["slots"].as_u64().unwrap()))
        .collect();
    assert_eq!(machines, [("n1", 1), ("n2", 2), ("n3", 1)].into(), "{status:#}");
    fs::write(scene.dir.join("hosts"), "n1 slots=1\n").unwrap();
    let ran = scene.finishes(&[&ssh[..], &["--stats"]].concat());
    assert!(ran.out.contains("on 3 machines (4 generic slots)"), "{}", ran.out);
    let last = scene.schedule()["segments"].as_array().unwrap().last().cloned().unwrap();
    assert_eq!(last["places"], serde_json::json!(["n1/0"]), "{last:#}");
}

#[test]
fn a_service_that_is_restarted_with_other_settings_resumes_its_runs() {
    let scene = Scene::new("segments-serve");
    let dir = &scene.dir;
    // The service cuts inputs at 64 KiB.
    for k in 0..4 {
        fs::write(dir.join(format!("in/{k}")), format!("{k:65535}\n")).expect("an input");
    }
    let place = Place::new(dir.clone(), "segments-serve");
    let settings: [&[&str]; 5] = [
        &["--slots", "2", "--policy", "fifo", "--slowstart", "0"],
        &["--slots", "4", "--policy", "fair"],
        &["--slots", "1", "--policy", "fair", "--slowstart", "0.05"],
        &["--slots", "3", "--policy", "edf", "--slowstart", "0.5"],
        &["--slots", "2", "--policy", "fifo", "--slowstart", "0"],
    ];
    for (k, more) in settings.into_iter().enumerate() {
        let mut service = place.serve_with(more);
        if k == 0 {
            assert_eq!(place.done(&["submit", "flow.toml", "--quiet"]), "1\n");
        }
        scene.open(&GATES[k..=k]);
        until("a map is done", || {
            let shown = place.shown("1");
            let maps = shown["flows"][0]["jobs"][1]["maps"]["done"].as_u64();
            if k < 4 { maps > Some(k as u64) } else { shown["state"] == "finished" }
        });
        signal(["TERM", "KILL"][k % 2], service.id());
        service.wait().expect("it ends");
        place.family.is_gone();
    }
    let files = ["s/flows/flow/workload.json", "s/flows/flow/schedule.json"];
    let ran = scene.family.slackline(dir, &["check", files[0], files[1]]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let schedule = json(&fs::read_to_string(dir.join(files[1])).unwrap());
    assert!(schedule["segments"].as_array().is_some_and(|all| all.len() > 2), "{schedule:#}");
}
