//! Messages of a run to programs and users beside its table: events, hooks, lines. Also: how runs detect each
//! other, and which files `clean` removes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::processes::{Family, ended, signal};
use crate::runs::{RUN, command, parts};
use crate::runs_watched::{done, hanging, slackline};
use crate::{ran, scratch};

/// A flow with a job that fails once and then succeeds, and a flow with one that always fails.
fn setup(test: &str) -> PathBuf {
    let dir = scratch(test);
    let flow = "slackline = 1\n[[flows]]\nid = 'good'\ndeadline = 3000.0\njobs = [ { id = 'j', run = { mapper = \
                'mkdir once && exit 3; cat', inputs = ['in.txt'], output = 'good' } } ]\n[[flows]]\nid = 'bad'\njobs = \
                [ { id = 'k', run = { mapper = 'exit 7', inputs = ['in.txt'], output = 'bad' } } ]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    dir
}

/// The events of a file, each of which follows the schema.
pub(crate) fn events(file: &Path) -> Vec<Value> {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/events.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let text = fs::read_to_string(file).expect("events");
    let read = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        validator.validate(&event).unwrap_or_else(|error| panic!("{line}: {error}"));
        event
    };
    text.lines().map(read).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("a name")).collect()
}

#[test]
fn events_tell_every_attempt_every_flow_and_the_end() {
    let dir = setup("run-events");
    let ran = slackline(&dir, &[&RUN[..], &["--attempts", "2", "--events", "events.jsonl"]].concat());
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let found = events(&dir.join("events.jsonl"));
    let names = names(&found);
    assert_eq!((names[0], names[names.len() - 1]), ("run_began", "run_ended"));
    assert_eq!(found[0]["flows"][1]["tasks"], 1);
    let count = |name: &str| names.iter().filter(|found| **found == name).count();
    let counts =
        ["task_started", "task_failed", "task_done", "job_done", "flow_done", "flow_failed"].map(count);
    assert_eq!(counts, [4, 3, 1, 1, 1, 1], "{names:?}");
    let done = found.iter().find(|event| event["event"] == "task_done").expect("one");
    assert_eq!((&done["attempt"], &done["counters"]["records_out"]), (&2.into(), &1.into()), "{done}");
    assert!(done["slot"].is_u64() && done["number"].is_u64(), "{done}");
    assert_eq!(found.last().unwrap()["message"], "1 flow failed");
    // The same command adds to the file.
    slackline(&dir, &[&RUN[..], &["--attempts", "2", "--events", "events.jsonl"]].concat());
    let more = events(&dir.join("events.jsonl"));
    assert_eq!(more[found.len()]["event"], "run_resumed", "{:?}", more[found.len()]);
    assert!(more[found.len()..].iter().any(|event| event["event"] == "job_kept"));
}

#[test]
fn a_run_that_is_stopped_says_so_in_its_events() {
    let (dir, family) = (hanging("run-events-stopped"), Family::new("run-events-stopped"));
    let engine = family.start(&dir, &[&RUN[..], &["--events", "e.jsonl"]].concat());
    family.awaits(&format!("sleep {}", Family::long()));
    signal("INT", engine.id());
    assert_eq!(ended(engine).code, Some(130));
    let found = events(&dir.join("e.jsonl"));
    assert_eq!(found.last().unwrap()["end"], "stopped");
}

#[test]
fn events_that_cannot_be_written_are_a_warning_and_a_file_that_cannot_be_made_is_refused() {
    let dir = setup("run-events-refused");
    let missing = slackline(&dir, &[&RUN[..], &["--events", "no/such/file"]].concat());
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("--events: no/such/file: cannot be written"), "{}", missing.err);
    if Path::new("/dev/full").exists() {
        let full = slackline(&dir, &[&RUN[..], &["--events", "/dev/full"]].concat());
        assert_eq!(full.code, Some(1), "{}", full.err);
        assert!(full.err.contains("warning: --events: /dev/full: cannot be written"), "{}", full.err);
    }
}

#[test]
fn hooks_are_run_once_for_each_cause_and_their_failure_is_a_warning() {
    let dir = setup("run-hooks");
    let says = "echo $SLACKLINE_EVENT/$SLACKLINE_FLOW/$SLACKLINE_MESSAGE/$SLACKLINE_STATE >> hooks.txt";
    let late = ["--deadline", "good=2020-01-01T00:00:00Z"];
    let hooks =
        ["--on-failure", says, "--on-late", says, "--on-end", "sleep 0.2; echo end >> hooks.txt; exit 4"];
    let ran = slackline(&dir, &[&RUN[..], &["--attempts", "2"], &late, &hooks].concat());
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let text = fs::read_to_string(dir.join("hooks.txt")).expect("hooks wrote");
    let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(
        [
            count("failure/bad/flow bad failed: job k, map 0: "),
            count("late/good/flow good has not finished"),
            count("end")
        ],
        [1, 1, 1]
    );
    let state = dir.join("state");
    assert!(text.contains(&format!("/{}\n", state.display())), "{text}");
    assert!(ran.err.contains("warning: --on-end: its command failed (exit status: 4)"), "{}", ran.err);
    assert!(!ran.out.contains("hooks"), "{}", ran.out);
}

#[test]
fn the_hook_of_a_failure_receives_its_cause_and_output() {
    let dir = scratch("run-hook-cause");
    let mapper = "cat; echo disk 7 is broken >&2; exit 7";
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = 'bad'\njobs = [ {{ id = 'k', run = {{ mapper = '{mapper}', inputs = ['in.txt'], \
         output = 'bad' }} }} ]\n[[flows]]\nid = 'reads'\njobs = [ {{ id = 'r', run = {{ mapper = 'cat', inputs = \
         ['@bad/k'], output = 'reads' }} }} ]\n"
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let hook = "cd /; printf '%s|%s|%s|' \"$SLACKLINE_MESSAGE\" \"$SLACKLINE_JOB\" \"$SLACKLINE_CAUSE\" > \
                \"$SLACKLINE_STATE.$SLACKLINE_FLOW\"; cat \"${SLACKLINE_LOG:-/dev/null}\" >> \
                \"$SLACKLINE_STATE.$SLACKLINE_FLOW\"";
    let more = ["--attempts", "2", "--on-failure", hook, "--events", "e.jsonl"];
    let ran = slackline(&dir, &[&RUN[..], &more].concat());
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let hook_text = |flow: &str| {
        let text = fs::read_to_string(dir.join(format!("state.{flow}"))).expect("the hook wrote");
        text.split('|').map(str::to_owned).collect::<Vec<_>>()
    };
    let bad = hook_text("bad");
    assert!(bad[0].starts_with("flow bad failed: job k, map 0: ") && bad[0].contains("status: 7"), "{bad:?}");
    assert!(bad[0].ends_with("its standard error ends: disk 7 is broken"), "{bad:?}");
    assert_eq!((bad[1].as_str(), bad[3].as_str()), ("k", "disk 7 is broken\n"));
    assert!(bad[2].contains("exit status: 7"), "{bad:?}");
    let reads = hook_text("reads");
    assert_eq!((reads[1].as_str(), reads[3].as_str()), ("bad/k", ""), "{reads:?}");
    assert!(reads[2].contains("flow reads needs its output, which will never exist"), "{reads:?}");
    let found = events(&dir.join("e.jsonl"));
    let failed: Vec<&Value> = found.iter().filter(|event| event["event"] == "flow_failed").collect();
    assert_eq!((failed.len(), &failed[0]["job"], &failed[1]["log"]), (2, &"k".into(), &Value::Null));
    let log = dir.join(failed[0]["log"].as_str().expect("a log"));
    assert_eq!(fs::read_to_string(log).expect("it is there"), "disk 7 is broken\n");
    assert_eq!(failed[0]["message"].as_str(), Some(bad[2].as_str()));
}

#[test]
fn as_much_is_reported_as_is_wanted() {
    let dir = setup("run-verbosity");
    let quiet = slackline(&dir, &[&RUN[..], &["-q", "--attempts", "2"]].concat());
    assert_eq!((quiet.code, quiet.out.as_str()), (Some(1), ""), "{}", quiet.err);
    assert!(quiet.err.contains("bad/k failed, attempt 2, the last"), "{}", quiet.err);
    assert!(!quiet.err.contains("good/j done"), "{}", quiet.err);
    let verbose = slackline(&dir, &[&RUN[..], &["-v", "--again", "--attempts", "2"]].concat());
    for words in ["good/j started", "good/j finished after"] {
        assert!(verbose.err.contains(words), "{words:?} in {}", verbose.err);
    }
    assert_eq!(slackline(&dir, &[&RUN[..], &["-q", "-v"]].concat()).code, Some(2));
}

#[test]
fn two_runs_of_one_user_know_of_each_other() {
    let (dir, family) = (hanging("run-neighbours"), Family::new("run-neighbours"));
    let engine = family.start(&dir, &RUN);
    family.awaits(&format!("sleep {}", Family::long()));
    let flow = "slackline = 1\n[[flows]]\nid = 'g'\njobs = [ { id = 'j', run = { mapper = 'cat', inputs = ['in.txt'], \
                output = 'other' } } ]\n";
    fs::write(dir.join("other.toml"), flow).expect("a flow file");
    let other = [
        "run",
        "other.toml",
        "--slots",
        "4",
        "--engine=local:share=on",
        "--state",
        "other.state",
        "--events",
        "other.jsonl",
    ];
    let second = family.slackline(&dir, &other);
    assert_eq!(second.code, Some(0), "{}{}", second.out, second.err);
    assert!(
        second.err.contains(
            "1 other run is running on this machine with 2 slots, in addition to the 2 of this run"
        ),
        "{}",
        second.err
    );
    assert!(!second.err.contains("share=on takes half"), "{}", second.err);
    assert_eq!(events(&dir.join("other.jsonl"))[0]["slots"], 2);
    signal("INT", engine.id());
    ended(engine);
    let third = family.slackline(
        &dir,
        &["run", "other.toml", "--slots", "4", "--engine=local:share=on", "--state", "third", "--again"],
    );
    assert!(!third.err.contains("other run"), "{}", third.err);
}

#[test]
fn clean_removes_states_of_runs_that_have_ended_and_nothing_else() {
    let (dir, family) = (hanging("run-clean"), Family::new("run-clean"));
    let engine = family.start(&dir, &["run", "flow.toml", "--slots", "2"]);
    family.awaits(&format!("sleep {}", Family::long()));
    let flow = "slackline = 1\n[[flows]]\nid = 'g'\njobs = [ { id = 'j', run = { program = 'wordcount', inputs = \
                ['in.txt'], output = 'other' } } ]\n";
    fs::write(dir.join("other.toml"), flow).expect("a flow file");
    assert_eq!(family.slackline(&dir, &["run", "other.toml"]).code, Some(0));
    let state = |name: &str| dir.join(".slackline").join(name);
    let dry = done(&dir, &["clean", "--all", "--dry-run"]);
    assert!(dry.contains("stays: a process uses it") && dry.contains("would be removed"), "{dry}");
    assert!(state("other").join("journal.log").exists());
    assert!(done(&dir, &["clean", "--all", "--older-than", "1d"]).contains("stays: it is not old enough"));
    assert!(
        done(&dir, &["clean", "--all", "--larger-than", "1GiB"]).contains("stays: it is not large enough")
    );
    done(&dir, &["clean", "--all", "--intermediates"]);
    assert!(state("other").join("journal.log").exists() && !state("other").join("maps").exists());
    assert!(done(&dir, &["status", "other.toml"]).contains("finished: started at"));
    done(&dir, &["clean", "--all"]);
    assert!(!state("other").exists() && state("flow").join("journal.log").exists());
    assert_eq!(parts(&dir.join("other"))["part-00000"], b"one\t1\nthree\t1\ntwo\t1\n");
    signal("INT", engine.id());
    ended(engine);
    assert!(done(&dir, &["clean", "--all"]).contains("stays: it was stopped, and can be resumed"));
    fs::write(dir.join("go"), "").expect("a file");
    let rest =
        ran(&command(&dir, &["run", "flow.toml", "--slots", "2"]).output().expect("the program starts"));
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    let named = slackline(&dir, &["clean", "--state", "no/such"]);
    assert_eq!(named.code, Some(2), "{}", named.err);
    assert_eq!(slackline(&dir, &["clean"]).code, Some(2));
}

#[test]
fn clean_takes_the_earliest_runs_out_of_histories() {
    let dir = scratch("run-clean-histories");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let flow = "slackline = 1\n[[flows]]\nid = 'g'\njobs = [ { id = 'j', run = { program = 'wordcount', inputs = \
                ['in.txt'], output = 'out' } } ]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    for _ in 0..3 {
        done(&dir, &["run", "flow.toml", "--again", "--history", "past"]);
    }
    let runs = || done(&dir, &["history", "past", "--format", "csv"]).lines().count() - 1;
    let clean = |more: &[&str]| done(&dir, &[&["clean", "--histories", "past"], more].concat());
    let before = fs::read(dir.join("past")).expect("the history");
    assert!(clean(&["--dry-run"]).contains("3 of 3 runs would be removed"));
    assert!(clean(&["--older-than", "1d"]).contains("stays: none of 3 runs qualifies"));
    assert!(clean(&["--larger-than", "1GiB"]).contains("stays: none of 3 runs qualifies"));
    assert!(fs::read(dir.join("past")).expect("the history") == before, "nothing was changed");
    let small = format!("{}B", before.len() - 1);
    let said = clean(&["--larger-than", &small, "--format", "json"]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["histories"][0]["what"], "1 of 3 runs removed", "{said:#}");
    assert_eq!((runs(), said["states"].as_array().map(Vec::len)), (2, Some(0)));
    // With the states, whose files are independent of it.
    let said = done(&dir, &["clean", "--all", "--histories", "past"]);
    assert!(said.contains(".slackline/flow") && said.contains("2 of 2 runs removed"), "{said}");
    assert!(!dir.join(".slackline/flow").exists());
    let none = slackline(&dir, &["clean", "--histories"]);
    assert_eq!(none.code, Some(2));
    assert!(none.err.contains("--histories: name a file"), "{}", none.err);
    let none = slackline(&dir, &["clean", "--all", "--histories", "in.txt"]);
    assert_eq!((none.code, none.out.as_str()), (Some(2), ""), "{}", none.err);
}

#[test]
fn clean_leaves_alone_a_run_that_continues() {
    let (dir, family) = (scratch("run-clean-at-work"), Family::new("run-clean-at-work"));
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let flow = "slackline = 1\n[[flows]]\nid = 'g'\njobs = [ { id = 'j', run = { mapper = \
                'cat; until test -e go; do sleep 0.02; done; echo more', reducer = 'cat', inputs = ['in.txt'], output = \
                'out' } } ]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    let engine = family.start(&dir, &RUN);
    family.awaits("sleep 0.02");
    for more in [&[][..], &["--intermediates"], &["--older-than", "0s", "--larger-than", "1B"]] {
        let said = done(&dir, &[&["clean", "--state", "state"], more].concat());
        assert!(said.contains("stays: a process uses it"), "{more:?}: {said}");
    }
    fs::write(dir.join("go"), "").expect("a file");
    let ran = ended(engine);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(done(&dir, &["status", "--state", "state"]).starts_with("state: finished"));
}

/// A document that follows its schema.
fn valid(name: &str, text: &str) -> Value {
    let schema = format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let document: Value = serde_json::from_str(text).expect("the document is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    validator.validate(&document).unwrap_or_else(|error| panic!("{document:#}: {error}"));
    document
}

#[test]
fn counters_of_jobs_are_in_the_run_document_and_in_the_history() {
    let dir = scratch("run-counts");
    fs::write(dir.join("in.txt"), "b\na\nb\n").expect("an input");
    let mapper = "cat; echo reporter:counter:errors,parse,3 >&2; echo reporter:status:half >&2";
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = 'f'\njobs = [ {{ id = 'j', run = {{ mapper = '{mapper}', reducer = 'uniq', \
         combiner = 'uniq', inputs = ['in.txt'], output = 'out' }} }} ]\n"
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    let ran = done(&dir, &[&RUN[..], &["--history", "past", "--format", "json"]].concat());
    let counted = &valid("schedule", &ran)["jobs"][0];
    assert_eq!((&counted["flow"], &counted["job"]), (&"f".into(), &"j".into()), "{counted:#}");
    let (maps, reduces) = (&counted["maps"], &counted["reduces"]);
    assert_eq!((&maps["records_in"], &maps["bytes_in"], &maps["skipped"]), (&3.into(), &6.into(), &0.into()));
    assert_eq!((&maps["combine_in"], &maps["combine_out"]), (&3.into(), &2.into()));
    assert_eq!((&reduces["records_in"], &reduces["records_out"]), (&2.into(), &2.into()));
    assert_eq!((&maps["counters"]["errors,parse"], &maps["says"]), (&3.into(), &"half".into()));
    for name in ["bytes_out", "spills", "spilled"] {
        assert!(maps[name].is_u64(), "{name}: {maps:#}");
    }
    // The file of the state directory has them as well, and stays a schedule.
    let file = fs::read_to_string(dir.join("state/schedule.json")).expect("the schedule");
    assert_eq!(valid("schedule", &file)["jobs"][0], *counted);
    done(&dir, &["check", "state/workload.json", "state/schedule.json"]);
    let past = valid("history", &fs::read_to_string(dir.join("past")).expect("the history"));
    let job = &past["runs"][0]["jobs"][0];
    assert_eq!((&job["map_counts"], &job["reduce_counts"]), (maps, reduces));
    // An earlier history is read, and new counts are added.
    let mut before = past.clone();
    for name in ["map_counts", "reduce_counts"] {
        before["runs"][0]["jobs"][0].as_object_mut().expect("a job").remove(name).expect("it was there");
    }
    fs::write(dir.join("past"), valid("history", &before.to_string()).to_string()).expect("the history");
    done(&dir, &[&RUN[..], &["--history", "past", "--again"]].concat());
    let past = valid("history", &fs::read_to_string(dir.join("past")).expect("the history"));
    assert_eq!(past["runs"][0], before["runs"][0]);
    assert_eq!(past["runs"][1]["jobs"][0]["map_counts"], *maps);
}
