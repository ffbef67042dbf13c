//! Written schedules pass `check` without repeated flags; manipulated ones do not.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::real_data::real;
use crate::{CONTRACT, NIGHTLY, Ran, TRACE, done, run, scratch, text};

fn check(workload: &str, schedule: &Path) -> Ran {
    run(&["check", workload, text(schedule)])
}

fn passes(workload: &str, schedule: &Path) {
    let ran = check(workload, schedule);
    assert_eq!(ran.code, Some(0), "{}: {}{}", schedule.display(), ran.out, ran.err);
    assert!(ran.out.starts_with("feasible: "), "{}", ran.out);
}

/// A schedule of the contract's workload.
fn schedule(test: &str) -> (PathBuf, String) {
    let file = scratch(test).join("s.json");
    done(&["simulate", CONTRACT, "--policy", "fifo", "--output", text(&file)]);
    let document = fs::read_to_string(&file).unwrap().replace("\":", "\": ").replace(":  ", ": ");
    (file, document)
}

/// A phase given only as work, and a schedule of its two tasks of 7.5 s that records no grain.
#[test]
fn plain_work_is_cut_with_the_usual_grain_where_none_is_recorded() {
    let dir = scratch("check-grain");
    let (workload, schedule) = (dir.join("w.json"), dir.join("s.json"));
    let flow = r#"{"id":"a","jobs":[{"id":"a","map":{"work":15.0}}]}"#;
    let machines = r#"{"machines":[{"name":"m","slots":2}]}"#;
    let given = format!(r#"{{"slackline":1,"cluster":{machines},"flows":[{flow}]}}"#);
    fs::write(&workload, given).expect("a workload");
    let row = |task: u32| {
        format!(
            r#"{{"flow":"a","job":"a","phase":"map","task":{task},"machine":"m","slot":{task},"start":0.0,"end":7.5}}"#
        )
    };
    let flow = r#"{"flow":"a","release":0.0,"start":0.0,"completion":7.5,"cost":7.5}"#;
    let claims = r#""objective":{"metric":"response","combine":"sum"},"cost":7.5"#;
    let document = format!(
        r#"{{"slackline":1,"policy":"x",{claims},"flows":[{flow}],"tasks":[{},{}]}}"#,
        row(0),
        row(1)
    );
    fs::write(&schedule, document).expect("a schedule");
    let ran = check(text(&workload), &schedule);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
}

#[test]
fn schedules_of_simulate_pass() {
    let dir = scratch("check_simulate");
    let file = dir.join("s.json");
    for flags in [
        vec!["--policy", "fair:by=flow"],
        vec!["--policy", "fifo", "--grain", "3", "--slowstart", "0.05", "--heartbeat", "3"],
        vec!["--policy", "edf", "--metric", "tardiness", "--deadlines", "1.5", "--weights", "ignore"],
        vec!["--policy", "fair", "--machines", "5", "--slots", "4", "--speed", "1.5", "--combine", "max"],
        vec!["--policy", "edf", "--noise", "0.5", "--jitter", "0.3", "--crash", "node-1@500+300,node-3@900"],
    ] {
        let written = run(&[&["simulate", NIGHTLY, "--output", text(&file)], &flags[..]].concat());
        assert_eq!(written.code, Some(0), "{flags:?}: {}", written.err);
        passes(NIGHTLY, &file);
    }
}

/// The side files of Oozie's own example are in the schedule: `check` needs only the two files.
#[test]
fn a_schedule_of_an_oozie_workflow_passes_without_its_side_files() {
    let Some(workflow) = real("oozie/demo.workflow.xml") else { return };
    let Some(properties) = real("oozie/demo.job.properties") else { return };
    let (workflow, properties) = (text(&workflow), text(&properties));
    let dir = scratch("check_oozie");
    let (side, file) = (dir.join("actions.toml"), dir.join("s.json"));
    std::fs::write(&side, "deadline = 900\n[actions.pig-node]\nmaps = 12\nseconds = 20.5\n").unwrap();
    let from = format!("oozie:properties={properties},actions={}", text(&side));
    let flags = ["--from", &from, "--machines", "2", "--slots", "3"];
    let flags = [&flags[..], &["--policy", "woha-lpf", "--output", text(&file)]].concat();
    let written = run(&[&["simulate", workflow], &flags[..]].concat());
    assert_eq!(written.code, Some(0), "{}", written.err);
    std::fs::remove_file(&side).unwrap();
    passes(workflow, &file);
}

#[test]
fn every_schedule_of_a_comparison_passes() {
    let dir = scratch("check_compare");
    let (trace, kept) = (dir.join("trace.tsv"), dir.join("kept"));
    fs::write(&trace, TRACE).unwrap();
    let cluster =
        ["--machines", "3", "--map-slots", "2", "--reduce-slots", "1", "--from", "swim:split=64MiB"];
    let options = ["--deadlines", "3", "--seed", "9", "--policies", "fifo,fair:by=flow,edf", "--schedules"];
    done(&[&["compare", text(&trace)], &cluster[..], &options[..], &[text(&kept)]].concat());
    for name in ["fifo", "fair-by-flow", "edf"] {
        passes(text(&trace), &kept.join(format!("{name}.json")));
    }
    done(&[&["compare", text(&trace), "--seeds", "2"], &cluster[..], &options[..], &[text(&kept)]].concat());
    passes(text(&trace), &kept.join("edf-seed10.json"));
}

#[test]
fn a_schedule_of_a_comparison_says_what_auto_chose() {
    let dir = scratch("check_compare_choices");
    done(&["compare", NIGHTLY, "--policies", "fifo,auto", "--schedules", text(&dir)]);
    let document =
        |name: &str| -> Value { serde_json::from_str(&fs::read_to_string(dir.join(name)).unwrap()).unwrap() };
    let alone: Value =
        serde_json::from_str(&done(&["simulate", NIGHTLY, "-p", "auto", "--format", "json"])).unwrap();
    assert!(alone["choices"][0]["by"].is_string(), "{}", alone["choices"]);
    assert_eq!(document("auto.json")["choices"], alone["choices"]);
    assert!(document("fifo.json").get("choices").is_none(), "fifo does not choose");
}

#[test]
fn every_schedule_of_a_real_day_passes() {
    let Some(trace) = real("swim/FB-2009_samples_24_times_1hr_0.tsv") else { return };
    let trace = text(&trace);
    let kept = scratch("check_day");
    let cluster = ["--machines", "600", "--map-slots", "2", "--reduce-slots", "1", "--deadlines", "3"];
    let options = ["--policies", "fifo,fair,edf", "--schedules", text(&kept)];
    done(&[&["compare", trace], &cluster[..], &options[..]].concat());
    for name in ["fifo", "fair", "edf"] {
        passes(trace, &kept.join(format!("{name}.json")));
    }
}

#[test]
fn explicit_flags_win_over_recorded_ones() {
    let (file, _) = schedule("check_flags");
    let ran = run(&["check", CONTRACT, text(&file), "--machines", "1"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
}

#[test]
fn a_tampered_schedule_is_a_no_with_the_reason() {
    let (file, document) = schedule("check_tampered");
    for (from, to, reason) in [
        ("\"cost\": 60.0", "\"cost\": 50.0", "50"),
        ("\"completion\": 10.0", "\"completion\": 9.0", "9"),
        ("\"start\": 10.0, \"end\": 20.0", "\"start\": 9.0, \"end\": 19.0", "overlaps"),
        ("\"start\": 0.0, \"end\": 10.0", "\"start\": 0.0, \"end\": 9.0", "ends after 9 s, expected 10 s"),
        ("\"makespan\": 25.0", "\"makespan\": 24.0", "makespan"),
        (
            "\"count\": 4, \"places\": [\"node-0/0-1\", \"node-1/0-1\"]",
            "\"count\": 2, \"places\": [\"node-0/0-1\"]",
            "map task 2: found no finished attempt",
        ),
        ("node-1/0-1", "node-9/0-1", "node-9"),
        ("\"flow\": \"a\"", "\"flow\": \"z\"", "z"),
    ] {
        assert!(document.contains(from), "{from} in {document}");
        fs::write(&file, document.replacen(from, to, 1)).unwrap();
        let ran = check(CONTRACT, &file);
        assert_eq!(ran.code, Some(1), "{from} → {to}: {}{}", ran.out, ran.err);
        assert!(ran.out.starts_with("not feasible: ") && ran.out.contains(reason), "{}", ran.out);
    }
}

#[test]
fn a_schedule_of_another_workload_is_wrong_input() {
    let (file, _) = schedule("check_other");
    let ran = check(NIGHTLY, &file);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains("s.json: made for another workload (SHA-256 "), "{}", ran.err);
}

#[test]
fn a_schedule_that_is_none_is_wrong_input() {
    let (file, document) = schedule("check_rubbish");
    for (rubbish, place) in [
        (document[..document.len() / 2].to_owned(), "s.json:"),
        (document.replacen("\"options\": {", "\"options\": {\"colour\": 1, ", 1), "found option \"colour\""),
        (document.replacen("\"seed\"", "\"sead\"", 1), "s.json:"),
        (String::new(), "s.json"),
    ] {
        fs::write(&file, rubbish).unwrap();
        let ran = check(CONTRACT, &file);
        assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(place), "{}", ran.err);
    }
    assert_eq!(run(&["check", "-", "-"]).code, Some(2));
}

#[test]
fn the_example_of_the_contract_passes() {
    passes(CONTRACT, Path::new("examples/contract/schedule.json"));
}

#[test]
fn answers_come_as_documents_too() {
    let (file, document) = schedule("check_documents");
    let json = |ran: &crate::Ran| serde_json::from_str::<serde_json::Value>(&ran.out).unwrap();
    let check = |format: &str| run(&["check", CONTRACT, text(&file), "--format", format]);
    let yes = json(&check("json"));
    assert_eq!((&yes["valid"], &yes["metrics"]["makespan"]), (&true.into(), &25.0.into()));
    assert!(check("csv").out.starts_with("valid,violation,message,cost,rows,tasks,failed\ntrue,,,60,"));
    fs::write(&file, document.replacen("\"cost\": 60.0", "\"cost\": 50.0", 1)).unwrap();
    let ran = check("json");
    let no = json(&ran);
    assert_eq!((ran.code, &no["valid"], &no["violation"]["kind"]), (Some(1), &false.into(), &"cost".into()));
}
