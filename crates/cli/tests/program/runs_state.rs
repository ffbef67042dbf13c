//! The files on disk when a run starts or resumes: other runs at the same place, changed inputs, damaged
//! journals, wrong commands. No finished work is lost, and no output of another run is mistaken.

use std::fs;
use std::path::{Path, PathBuf};

use crate::processes::{Family, ended, signal, until};
use crate::runs::{RUN, checked, parts, prepared, results};
use crate::{Ran, scratch};

const LINES: &str = "one\ntwo\nthree\n";

/// A flow that waits for a file `go`, and one that does not.
fn waiting(test: &str) -> PathBuf {
    let dir = scratch(test);
    let flow = r#"
slackline = 1
[[flows]]
id = "waits"
jobs = [
  { id = "j", run = { mapper = "until test -e go; do sleep 0.02; done; cat", inputs = ["in.txt"], output = "waited" } },
]
[[flows]]
id = "good"
jobs = [ { id = "j", run = { program = "wordcount", inputs = ["other.txt"], output = "good" } } ]
"#;
    for (name, text) in [("flow.toml", flow), ("in.txt", LINES), ("other.txt", LINES)] {
        fs::write(dir.join(name), text).expect("a file");
    }
    dir
}

fn refused(ran: &Ran, words: &str) {
    assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(words), "{words:?} in {}", ran.err);
}

/// Both flows have finished with the right output.
fn is_right(dir: &Path) {
    assert_eq!(parts(&dir.join("waited"))["part-00000"], LINES.as_bytes());
    assert_eq!(parts(&dir.join("good"))["part-00000"], b"one\t1\nthree\t1\ntwo\t1\n");
    checked(dir);
}

#[test]
fn an_active_run_is_not_disturbed_by_another() {
    let (dir, family) = (waiting("run-twice"), Family::new("run-twice"));
    let first = family.start(&dir, &RUN);
    family.awaits("until test -e go");
    until("the good flow is done", || dir.join("good/_SUCCESS").exists());
    refused(&family.slackline(&dir, &RUN), "another process uses it");
    let again = [&RUN[..], &["--again"]].concat();
    refused(&family.slackline(&dir, &again), "another process uses it");
    let other = ["run", "flow.toml", "--slots", "2", "--state", "other"];
    refused(&family.slackline(&dir, &other), "another run writes to this directory, or can be resumed");
    let other = [&other[..], &["--again"]].concat();
    refused(&family.slackline(&dir, &other), "another run writes to this directory, or can be resumed");
    fs::write(dir.join("go"), "").expect("a file");
    let first = ended(first);
    assert_eq!(first.code, Some(0), "{}{}", first.out, first.err);
    is_right(&dir);
}

#[test]
fn one_of_two_simultaneous_runs_with_the_same_outputs_is_refused() {
    for round in 0..4 {
        let (dir, family) = (waiting("run-race"), Family::new("run-race"));
        fs::write(dir.join("go"), "").expect("a file");
        let states = ["state", "other"].map(|state| ["run", "flow.toml", "--slots", "2", "--state", state]);
        let both = states.map(|args| family.start(&dir, &args)).map(ended);
        let winner = both.iter().position(|ran| ran.code == Some(0)).expect("one is done");
        let loser = &both[1 - winner];
        assert_eq!(loser.code, Some(2), "round {round}: {}{}", loser.out, loser.err);
        if winner == 1 {
            // The refused run has left no state, or an empty journal.
            let _ = fs::remove_dir_all(dir.join("state"));
            fs::rename(dir.join("other"), dir.join("state")).expect("it can be moved");
        }
        is_right(&dir);
    }
}

#[test]
fn an_input_that_changed_since_the_kill_is_read_again() {
    let (dir, family) = (waiting("run-changed"), Family::new("run-changed"));
    let mut first = family.start(&dir, &RUN);
    family.awaits("until test -e go");
    first.kill().expect("it can be killed");
    first.wait().expect("it is gone");
    family.is_gone();
    fs::write(dir.join("in.txt"), "one\ntwo\nfour and more\n").expect("an input");
    fs::write(dir.join("go"), "").expect("a file");
    let rest = family.slackline(&dir, &RUN);
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    assert_eq!(parts(&dir.join("waited"))["part-00000"], b"one\ntwo\nfour and more\n");
    assert!(parts(&dir.join("good")).len() == 1, "the other flow is done");
    checked(&dir);
}

#[test]
fn a_command_that_cannot_be_run_removes_nothing() {
    let (dir, family) = (waiting("run-wrong-again"), Family::new("run-wrong-again"));
    fs::write(dir.join("go"), "").expect("a file");
    assert_eq!(family.slackline(&dir, &RUN).code, Some(0));
    let again = |more: &[&str]| family.slackline(&dir, &[&RUN[..], &["--again"], more].concat());
    refused(&again(&["--deadline", "absent=5"]), "expected one of waits, good");
    refused(&again(&["--deadline", "good=soon"]), "--deadline");
    refused(&again(&["--policy", "absent"]), "absent");
    fs::rename(dir.join("in.txt"), dir.join("away")).expect("it can be moved");
    fs::rename(dir.join("other.txt"), dir.join("away-too")).expect("it can be moved");
    refused(&again(&[]), "no such file");
    is_right(&dir);
    fs::rename(dir.join("away"), dir.join("in.txt")).expect("it can be moved");
    fs::rename(dir.join("away-too"), dir.join("other.txt")).expect("it can be moved");
    // A rename changes the time that the system notes.
    let twice = family.slackline(&dir, &RUN);
    assert!(twice.code == Some(0) && twice.err.contains("in.txt changed (change time)"), "{}", twice.err);
    is_right(&dir);
}

#[test]
fn output_of_another_run_is_neither_mixed_nor_removed() {
    let (dir, family) = (waiting("run-others"), Family::new("run-others"));
    let other = ["run", "flow.toml", "--slots", "2", "--state", "other"];
    // A stopped run keeps its outputs locked.
    let mut first = family.start(&dir, &RUN);
    family.awaits("until test -e go");
    until("the good flow is done", || dir.join("good/_SUCCESS").exists());
    first.kill().expect("it can be killed");
    first.wait().expect("it is gone");
    fs::write(dir.join("go"), "").expect("a file");
    refused(&family.slackline(&dir, &other), "give each run its own output directory");
    // If a user removes them by hand, the other run owns them, and the first cannot change them.
    for output in ["waited", "good"] {
        fs::remove_dir_all(dir.join(output)).expect("it can go");
    }
    let second = family.slackline(&dir, &other);
    assert_eq!(second.code, Some(0), "{}{}", second.out, second.err);
    let right = ["waited", "good"].map(|output| parts(&dir.join(output)));
    let late = family.slackline(&dir, &RUN);
    assert_ne!(late.code, Some(0), "{}{}", late.out, late.err);
    let again = family.slackline(&dir, &[&RUN[..], &["--again"]].concat());
    // A part with content that this state directory once published counts as its own: then one flow may run.
    assert!(matches!(again.code, Some(1 | 2)), "{}{}", again.out, again.err);
    assert!(["waited", "good"].map(|output| parts(&dir.join(output))) == right);
}

/// A journal with all occurrences of a text overwritten, in records with correct checksums.
fn rewritten(journal: &[u8], text: &str, by: &str) -> Vec<u8> {
    let mut at = 1 + journal.iter().position(|&byte| byte == b'\n').expect("the first line");
    let mut bytes = journal.to_vec();
    while at < bytes.len() {
        let head: [u8; 4] = bytes[at..at + 4].try_into().expect("a length");
        let record = at + 12..at + 12 + u32::from_le_bytes(head) as usize;
        for place in record.clone() {
            if journal[place..].starts_with(text.as_bytes()) {
                bytes[place..place + by.len()].copy_from_slice(by.as_bytes());
            }
        }
        let check = crc32fast::hash(&bytes[record.clone()]).to_le_bytes();
        bytes[at + 4..at + 8].copy_from_slice(&check);
        let check = crc32fast::hash(&bytes[at..at + 8]).to_le_bytes();
        bytes[at + 8..at + 12].copy_from_slice(&check);
        at = record.end;
    }
    assert!(bytes != journal, "{text}");
    bytes
}

/// The clock is set forward while no process drives the run, or a machine was off for a year: that counts as
/// time of the run, and is reported.
#[test]
fn time_without_a_process_of_a_run_is_reported() {
    const DAYS_400: u64 = 400 * 24 * 3600 * 1_000_000;
    let (dir, family) = (waiting("run-paused"), Family::new("run-paused"));
    let paused = "no process ran it for 400d; deadlines include this time";
    let stopped = || {
        let engine = family.start(&dir, &RUN);
        family.awaits("until test -e go");
        until("the good flow is done", || dir.join("good/_SUCCESS").exists());
        signal("INT", engine.id());
        ended(engine)
    };
    stopped();
    let at_once = stopped();
    assert!(at_once.err.contains("resuming the run: 2 tasks finished"), "{}", at_once.err);
    assert!(!at_once.err.contains("no process ran it"), "{}", at_once.err);
    let path = dir.join("state/journal.log");
    let journal = fs::read(&path).expect("the journal");
    let text = String::from_utf8_lossy(&journal);
    let (_, head) = text.split_once("\"started\":").expect("the head");
    let started = &head[..head.find(',').expect("more")];
    let earlier = started.parse::<u64>().expect("microseconds") - DAYS_400;
    let [is, was] = [started, &earlier.to_string()].map(|micros| format!("\"started\":{micros}"));
    fs::write(&path, rewritten(&journal, &is, &was)).expect("the journal can be replaced");
    fs::write(dir.join("go"), "").expect("a file");
    let resumed = family.slackline(&dir, &RUN);
    assert!(resumed.err.contains(paused), "{}", resumed.err);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    is_right(&dir);
}

#[test]
fn a_damaged_journal_is_refused_or_does_no_harm() {
    let dir = prepared("run-damaged");
    let family = Family::new("run-damaged");
    assert_eq!(family.slackline(&dir, &RUN).code, Some(0));
    let right = results(&dir);
    let path = dir.join("state/journal.log");
    let journal = fs::read(&path).expect("the journal");
    let look = |what: &str, bytes: &[u8], must_refuse: bool| {
        fs::write(&path, bytes).expect("the journal can be replaced");
        let ran = family.slackline(&dir, &RUN);
        // Damage in unused bytes has no effect.
        let is_fine = ran.code == Some(0) && !must_refuse;
        assert!(is_fine || ran.code == Some(2), "{what}: {:?}: {}{}", ran.code, ran.out, ran.err);
        assert!(is_fine || ran.err.lines().any(|line| line.starts_with("error: ")), "{what}: {}", ran.err);
        assert!(!ran.err.contains("so it starts over"), "{what}: {}", ran.err);
        assert!(results(&dir) == right, "{what}: results were touched");
    };
    let len = journal.len();
    // Finished jobs are recorded apart from the journal.
    for size in [0, 1, 100, 4096] {
        look(&format!("cut to {size}"), &journal[..size], false);
    }
    look("another file", b"this is a text of more than a few bytes, and no journal at all", true);
    // Any sequence of places is valid; this one is the same every time.
    let mut state = 12_345u64;
    for _ in 0..20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bytes = journal.clone();
        let at = (state >> 33) as usize % len;
        bytes[at] ^= 1 << (state >> 30 & 7);
        look(&format!("byte {at} changed"), &bytes, true);
    }
    // Texts that are not valid in a journal, in complete records.
    for (text, by) in [
        ("\"task\":", "\"task\":9"),
        ("\"phase\":\"map\"", "\"phase\":\"mop\""),
        ("\"maps\":[", "\"maps\":1"),
        ("\"done\"", "\"gone\""),
        ("\"start\":", "\"start\":x"),
        ("\"id\":{\"job\":", "\"id\":{\"job\":9"),
        ("\"output\":\"w", "\"outpux\":\"w"),
    ] {
        look(text, &rewritten(&journal, text, by), true);
    }
    // A journal that has lost its last records does not claim their output as its own, nor as that of another
    // run.
    fs::write(&path, &journal[..len / 2]).expect("the journal can be written");
    let lost = family.slackline(&dir, &RUN);
    assert_eq!(lost.code, Some(0), "{}{}", lost.out, lost.err);
    assert!(lost.err.contains("nothing is left to do") && results(&dir) == right, "{}", lost.err);
}

/// A journal is damaged, and then removed as the message advises, or the run starts over.
#[test]
fn without_its_journal_a_run_keeps_what_is_finished() {
    let (dir, family) = (prepared("run-no-journal"), Family::new("run-no-journal"));
    assert_eq!(family.slackline(&dir, &RUN).code, Some(0));
    let (right, path) = (results(&dir), dir.join("state/journal.log"));
    let mut journal = fs::read(&path).expect("the journal");
    journal[20] ^= 4;
    fs::write(&path, &journal).expect("the journal can be replaced");
    for verb in [&RUN[..], &["status", "--state", "state"]] {
        refused(&family.slackline(&dir, verb), "the file is damaged at byte 20");
        refused(
            &family.slackline(&dir, verb),
            "move it away and run again: jobs that are finished in jobs.log",
        );
    }
    let stays = family.slackline(&dir, &["clean", "--state", "state"]);
    refused(&stays, "the file is damaged at byte 20");
    fs::remove_file(&path).expect("it can be removed");
    let kept = family.slackline(&dir, &RUN);
    assert!(kept.code == Some(0) && kept.err.contains("nothing is left to do"), "{}", kept.err);
    assert!(results(&dir) == right);
    fs::write(&path, "").expect("the journal can be replaced");
    let empty = family.slackline(&dir, &["status", "--state", "state"]);
    refused(&empty, "state: the journal is empty: no run has started there");
    fs::write(&path, &journal).expect("the journal can be replaced");
    let again = family.slackline(&dir, &[&RUN[..], &["--again"]].concat());
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    assert!(
        results(&dir) == right && fs::read(dir.join("state/journal.damaged")).expect("it is kept") == journal
    );
}

#[test]
fn a_record_of_finished_jobs_that_was_cut_is_blamed_and_not_the_output() {
    let (dir, family) = (waiting("run-cut-jobs"), Family::new("run-cut-jobs"));
    fs::write(dir.join("go"), "").expect("a file");
    assert_eq!(family.slackline(&dir, &RUN).code, Some(0));
    let path = dir.join("state/jobs.log");
    cut(&path, fs::metadata(&path).expect("it is there").len() - 1);
    // The first run cuts off the rest of the record, and the next still knows about it.
    for _ in 0..2 {
        refused(&family.slackline(&dir, &RUN), "but jobs.log in the state directory has lost its record");
    }
    is_right(&dir);
}

#[test]
fn a_workflow_of_woha_with_commands_runs() {
    let dir = scratch("run-woha");
    let flow = r#"<workflow name="small" deadline="300">
  <dataset path="in.txt"/>
  <job name="count">
    <command>cat</command>
    <reducer>cut -f 1 | uniq -c | tr -s ' '</reducer>
    <input>upper</input>
    <output>counted</output>
  </job>
  <job name="upper">
    <command>tr a-z A-Z</command>
    <input>in.txt</input>
    <output>upper</output>
  </job>
</workflow>
"#;
    fs::write(dir.join("flow.xml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "two\none\ntwo\n").expect("an input");
    let family = Family::new("run-woha");
    let ran = family.slackline(&dir, &["run", "flow.xml", "--slots", "2", "--state", "state"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("1 flow finished\n"), "{}", ran.out);
    assert_eq!(parts(&dir.join("upper"))["part-00000"], b"TWO\nONE\nTWO\n");
    let counted: Vec<u8> = parts(&dir.join("counted")).into_values().flatten().collect();
    assert_eq!(counted, b" 1 ONE\n 2 TWO\n");
    checked(&dir);
}

/// A flow of two maps and two reduces; the second of each waits for a file `go`.
fn parted(test: &str) -> PathBuf {
    let dir = scratch(test);
    let waits = "test $SLACKLINE_TASK = 0 || until test -e go; do sleep 0.02; done";
    let flow = format!(
        r#"
slackline = 1
[[flows]]
id = "f"
jobs = [
  {{ id = "maps", run = {{ mapper = "cat; echo m >> ran; {waits}", inputs = ["in.txt", "other.txt"], output = "maps" }} }},
]
[[flows]]
id = "g"
jobs = [
  {{ id = "sums", run = {{ mapper = "cat", reducer = "cat; echo r >> ran; {waits}", inputs = ["in.txt"], output = "sums", reducers = 2 }} }},
]
"#
    );
    for (name, text) in [("flow.toml", flow.as_str()), ("in.txt", LINES), ("other.txt", "four\n")] {
        fs::write(dir.join(name), text).expect("a file");
    }
    dir
}

#[test]
fn a_staged_part_that_is_not_as_it_was_written_is_made_again() {
    type Harm = fn(&Path);
    let cases: [(&str, Harm, &str); 4] = [
        ("cut", |path| cut(path, 3), "found 3 bytes in"),
        ("removed", |path| fs::remove_file(path).expect("it is there"), "its output is gone: found no"),
        ("edited", edited, "its output was changed"),
        ("left", |_| (), ""),
    ];
    let run = ["run", "flow.toml", "--slots", "4", "--state", "state", "--events", "e.jsonl"];
    let good = parted("run-parted");
    fs::write(good.join("go"), "").expect("a file");
    assert_eq!(Family::new("run-parted").slackline(&good, &run).code, Some(0));
    for (name, harm, words) in cases {
        let test = format!("run-parted-{name}");
        let (dir, family) = (parted(&test), Family::new(&test));
        let mut first = family.start(&dir, &run);
        let staged = ["maps", "sums"].map(|output| dir.join(output).join("_temporary/parts/part-00000"));
        until("the first parts are done", || staged.iter().all(|path| path.exists()));
        // The parts are recorded when they move.
        first.kill().expect("it can be killed");
        first.wait().expect("it is gone");
        family.is_gone();
        for path in &staged {
            harm(path);
        }
        fs::write(dir.join("go"), "").expect("a file");
        fs::write(dir.join("ran"), "").expect("a file");
        let rest = family.slackline(&dir, &run);
        assert_eq!(rest.code, Some(0), "{name}: {}{}", rest.out, rest.err);
        for output in ["maps", "sums"] {
            assert!(parts(&dir.join(output)) == parts(&good.join(output)), "{name}: {output}");
        }
        let said = rest.err.lines().filter(|line| line.contains("is no longer finished")).count();
        let printed = fs::read_to_string(dir.join("e.jsonl")).expect("events");
        let printed = printed.lines().filter(|line| line.contains("\"output_lost\"")).count();
        let ran = fs::read_to_string(dir.join("ran")).expect("it is there").lines().count();
        let (lost, expected) = if words.is_empty() { (0, 2) } else { (2, 4) };
        assert_eq!((said, printed, ran), (lost, lost, expected), "{name}: {}", rest.err);
        assert!(rest.err.contains(words), "{name}: {words:?} in {}", rest.err);
        checked(&dir);
    }
}

fn cut(path: &Path, bytes: u64) {
    fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(bytes)).expect("it is there");
}

/// Another content of the same length.
fn edited(path: &Path) {
    let len = fs::read(path).expect("it is there").len();
    fs::write(path, vec![b'?'; len]).expect("it can be written");
}
