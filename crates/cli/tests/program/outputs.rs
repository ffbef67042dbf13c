//! Outputs are exactly what their tasks wrote: damaged parts are noticed, and no result mixes two outputs of
//! one map.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};

use crate::fleet::{SSH, with_machines};
use crate::processes::{Family, until};
use crate::runs::{RUN, checked, parts};
use crate::{Ran, scratch};

/// A run with this number of slots.
fn run(slots: &'static str) -> Vec<&'static str> {
    vec!["run", "flow.toml", "--slots", slots, "--engine", "local:split=1KiB", "--state", "state"]
}

/// Three maps and three reduces. Each run of map `m` gives the keys `m-n-0` to `m-n-19`, where `n` counts the
/// runs of the map, or is 1 if the mapper is deterministic. A reduce ends when there is a file `go` or
/// `go-NUMBER`. `before` is what its command does first, `more` goes into the `run` table. The job `after`
/// copies the output.
fn shuffling(test: &str, is_deterministic: bool, before: &str, more: &str) -> PathBuf {
    let dir = scratch(test);
    let count = if is_deterministic { "n=1" } else { "n=$(($(ls r$m.* | wc -l)))" };
    let mapper = format!(
        "m=$SLACKLINE_TASK; mktemp r$m.XXXXXX > /dev/null; {count}; i=0; while test $i -lt 20; do echo $m-$n-$i; i=$((i+1)); done"
    );
    let reducer = format!(
        "cat; echo $SLACKLINE_TASK >> ran; {before}; until test -e go -o -e go-$SLACKLINE_TASK; do sleep 0.05; done"
    );
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n  {{ id = 'j', run = {{ mapper = '''{mapper}''', reducer = '''{reducer}''', \
         inputs = ['in'], output = 'out', reducers = 3{more} }} }},\n  {{ id = 'after', run = {{ mapper = 'cat', inputs = ['@j'], \
         output = 'copy' }} }},\n]\n"
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::create_dir(dir.join("in")).expect("a directory");
    for map in 0..3 {
        fs::write(dir.join(format!("in/{map}")), "x".repeat(1000) + "\n").expect("an input");
    }
    dir
}

/// Number of runs of each reduce.
fn reduces(dir: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(dir.join("ran")).unwrap_or_default().lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

/// The directory of the committed output of a map.
fn map_output(dir: &Path, map: u32) -> PathBuf {
    let jobs = fs::read_dir(dir.join("state/maps")).expect("map output").flatten();
    jobs.map(|job| job.path().join(map.to_string())).find(|map| map.exists()).expect("the map is done")
}

/// The run has succeeded, and its output has all keys of one run of each map.
fn is_one_run(dir: &Path, ended: &Ran, what: &str) {
    assert_eq!(ended.code, Some(0), "{what}: {}{}", ended.out, ended.err);
    let text: Vec<u8> = parts(&dir.join("out")).into_values().flatten().collect();
    let text = String::from_utf8(text).expect("text");
    let lines: BTreeSet<&str> = text.split_whitespace().collect();
    assert_eq!(lines.len(), 60, "{what}: {text}");
    let runs: BTreeSet<&str> = lines.iter().map(|line| line.rsplit_once('-').expect("a key").0).collect();
    assert_eq!(runs.len(), 3, "{what}: keys of several runs of a map: {runs:?}");
    let copy: Vec<u8> = parts(&dir.join("copy")).into_values().flatten().collect();
    assert_eq!(String::from_utf8(copy).expect("text"), text, "{what}");
    checked(dir);
}

/// Runs until these reduces are done, and is then killed.
fn killed_after(family: &Family, dir: &Path, done: &[u32]) {
    for reduce in done {
        fs::write(dir.join(format!("go-{reduce}")), "").expect("a file");
    }
    let mut engine = family.start(dir, &run("3"));
    let staged = |reduce: &u32| dir.join(format!("out/_temporary/parts/part-{reduce:05}")).exists();
    until("the reduces are done", || done.iter().all(staged) && reduces(dir).len() == 3);
    engine.kill().expect("it can be killed");
    engine.wait().expect("it is gone");
    family.is_gone();
}

const OTHER: &str = "the mapper is not deterministic";

/// Damages the output of a map.
type Damage = fn(&Path);

/// Changes one byte of a file and sets its time back.
fn flip(path: &Path) {
    let modified = fs::metadata(path).and_then(|meta| meta.modified()).expect("a file");
    let mut bytes = fs::read(path).expect("a file");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    fs::write(path, bytes).expect("it can be written");
    let file = File::options().append(true).open(path).expect("a file");
    file.set_times(FileTimes::new().set_modified(modified)).expect("its time can be set");
}

#[test]
fn reduces_that_have_read_lost_output_of_a_random_mapper_run_again_after_a_kill() {
    let damages: [(&str, Damage); 4] = [
        ("directory removed", |map| fs::remove_dir_all(map).unwrap()),
        ("file removed", |map| fs::remove_file(map.join("map.out")).unwrap()),
        ("file cut", |map| {
            File::options().write(true).open(map.join("map.out")).unwrap().set_len(200).unwrap();
        }),
        ("bit flipped", |map| flip(&map.join("map.out"))),
    ];
    for (nth, (what, damage)) in damages.into_iter().enumerate() {
        let (done, test): (&[u32], _) =
            (if nth < 2 { &[0, 1] } else { &[0] }, format!("outputs-random-{nth}"));
        let (dir, family) = (shuffling(&test, false, ":", ""), Family::new(&test));
        killed_after(&family, &dir, done);
        damage(&map_output(&dir, 1));
        fs::write(dir.join("go"), "").expect("a file");
        let rest = family.slackline(&dir, &run("2"));
        is_one_run(&dir, &rest, what);
        assert!(rest.err.contains(OTHER), "{what}: {}", rest.err);
        assert!(
            done.iter().all(|reduce| reduces(&dir)[&reduce.to_string()] == 2),
            "{what}: {:?}",
            reduces(&dir)
        );
    }
}

#[test]
fn nothing_runs_again_but_the_map_if_the_mapper_is_deterministic() {
    let (dir, family) = (shuffling("outputs-same", true, ":", ""), Family::new("outputs-same"));
    killed_after(&family, &dir, &[0, 1]);
    fs::remove_dir_all(map_output(&dir, 1)).expect("it can go");
    fs::write(dir.join("go"), "").expect("a file");
    let rest = family.slackline(&dir, &run("2"));
    is_one_run(&dir, &rest, "deterministic");
    assert!(!rest.err.contains(OTHER), "{}", rest.err);
    assert_eq!((reduces(&dir)["0"], reduces(&dir)["1"]), (1, 1));
}

#[test]
fn a_run_that_is_killed_while_stale_reduces_run_again_mixes_nothing() {
    let (dir, family) = (shuffling("outputs-killed", false, ":", ""), Family::new("outputs-killed"));
    killed_after(&family, &dir, &[0, 1]);
    for map in [0, 2] {
        fs::remove_dir_all(map_output(&dir, map)).expect("it can go");
    }
    for reduce in 0..2 {
        fs::remove_file(dir.join(format!("go-{reduce}"))).expect("a file");
    }
    let mut engine = family.start(&dir, &run("3"));
    until("the reduces run again", || ["0", "1", "2"].iter().all(|reduce| reduces(&dir)[*reduce] == 2));
    engine.kill().expect("it can be killed");
    engine.wait().expect("it is gone");
    family.is_gone();
    fs::write(dir.join("go"), "").expect("a file");
    is_one_run(&dir, &family.slackline(&dir, &run("1")), "killed twice");
}

/// The command of the first reduce removes the output of a map, so that a later reduce notices it.
const REMOVES: &str = "if test $SLACKLINE_TASK = 0 && mkdir mark 2>/dev/null; then rm -r state/maps/*/1; fi";

#[test]
fn a_loss_that_a_reduce_notices_makes_the_earlier_ones_run_again() {
    for slots in ["1", "2"] {
        let test = format!("outputs-noticed-{slots}");
        let (dir, family) = (shuffling(&test, false, REMOVES, ""), Family::new(&test));
        fs::write(dir.join("go"), "").expect("a file");
        let ran = family.slackline(&dir, &run(slots));
        is_one_run(&dir, &ran, slots);
        // On one slot the first reduce has ended before another one begins.
        assert!(slots == "2" || ran.err.contains(OTHER) && reduces(&dir)["0"] == 2, "{}", ran.err);
    }
}

#[test]
fn a_total_order_is_that_of_one_run_of_each_map() {
    let test = "outputs-order";
    let (dir, family) = (shuffling(test, false, REMOVES, ", total_order = true"), Family::new(test));
    fs::write(dir.join("go"), "").expect("a file");
    let ran = family.slackline(&dir, &run("1"));
    is_one_run(&dir, &ran, test);
    assert!(ran.err.contains(OTHER), "{}", ran.err);
}

#[test]
fn machines_that_lose_map_output_give_the_output_of_one_run() {
    let test = "outputs-fleet";
    // A missing file may only be visible late, so the run waits for it; a truncated file fails at once.
    let cuts = REMOVES.replace("rm -r state/maps/*/1", "truncate -s 100 state/maps/*/1/map.out");
    let (dir, family) = (shuffling(test, false, &cuts, ""), Family::new(test));
    let dir = with_machines(dir, SSH, &[1]);
    fs::write(dir.join("go"), "").expect("a file");
    let engine = ["run", "flow.toml", "--engine", "ssh:hosts=hosts,ssh=./reach"];
    let ran =
        family.slackline(&dir, &[&engine[..], &["--engine", "ssh:split=1KiB", "--state", "state"]].concat());
    is_one_run(&dir, &ran, test);
    assert!(ran.err.contains(OTHER), "{}", ran.err);
}

#[test]
fn a_staged_part_is_published_only_with_the_content_that_was_written() {
    let (dir, family) = (shuffling("outputs-staged", true, ":", ""), Family::new("outputs-staged"));
    killed_after(&family, &dir, &[0, 1]);
    let staged = dir.join("out/_temporary/parts");
    flip(&staged.join("part-00001"));
    // Another time of modification alone is not another content.
    let file = File::options().append(true).open(staged.join("part-00000")).expect("a part");
    file.set_times(FileTimes::new().set_modified(std::time::UNIX_EPOCH)).expect("its time can be set");
    fs::write(dir.join("go"), "").expect("a file");
    let rest = family.slackline(&dir, &run("2"));
    is_one_run(&dir, &rest, "staged");
    let line = "f/j reduce 1 is no longer finished: its output was changed";
    assert_eq!(rest.err.matches("is no longer finished").count(), 1, "{}", rest.err);
    assert!(rest.err.contains(line), "{}", rest.err);
    assert_eq!((reduces(&dir)["0"], reduces(&dir)["1"]), (1, 2));
}

#[test]
fn a_staged_part_that_is_damaged_during_the_run_is_written_again() {
    let (dir, family) = (shuffling("outputs-during", true, ":", ""), Family::new("outputs-during"));
    for reduce in 0..2 {
        fs::write(dir.join(format!("go-{reduce}")), "").expect("a file");
    }
    let engine = family.start(&dir, &[run("3"), vec!["--events", "events"]].concat());
    // The engine checks a part when it moves it, and then reports that the task is done.
    let events = || fs::read_to_string(dir.join("events")).unwrap_or_default();
    until("two reduces are done", || events().matches("task_done").count() == 5 && reduces(&dir).len() == 3);
    flip(&dir.join("out/_temporary/parts/part-00000"));
    fs::write(dir.join("go"), "").expect("a file");
    let ended = crate::processes::ended(engine);
    is_one_run(&dir, &ended, "during");
    assert_eq!((reduces(&dir)["0"], reduces(&dir)["1"]), (2, 1), "{}", ended.err);
}

/// A finished run of one small job.
fn finished(test: &str) -> (PathBuf, Family) {
    let (dir, family) = (scratch(test), Family::new(test));
    fs::write(dir.join("in.txt"), "one\ntwo\n").expect("an input");
    let flow = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n  { id = 'a', run = { mapper = 'cat', inputs = ['in.txt'], output = \
                'a' } },\n  { id = 'b', run = { command = 'cat $SLACKLINE_INPUTS', inputs = ['@a'], output = 'b' } },\n]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    let ran = family.slackline(&dir, &RUN);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    (dir, family)
}

#[test]
fn a_finished_part_that_was_changed_is_noticed_although_size_and_time_stay() {
    let (dir, family) = finished("outputs-finished");
    for output in ["a", "b"] {
        let part = dir.join(output).join("part-00000");
        flip(&part);
        let ran = family.slackline(&dir, &RUN);
        assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
        assert!(
            ran.err.contains(&format!("output {output}: part-00000 was changed after the run")),
            "{}",
            ran.err
        );
        flip(&part);
        let ran = family.slackline(&dir, &RUN);
        assert!(ran.code == Some(0) && ran.err.contains("nothing is left to do"), "{}", ran.err);
    }
}

#[test]
fn a_part_that_changes_before_another_job_reads_it_fails_that_job() {
    let wait = "until test -e go; do sleep 0.05; done";
    for reads in ["mapper = 'cat'", "command = 'cat $SLACKLINE_INPUTS'", "program = 'sort'"] {
        let flow = format!(
            "slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n  {{ id = 'a', run = {{ mapper = 'cat', inputs = ['in.txt'], \
             output = 'a' }} }},\n  {{ id = 'wait', after = ['a'], run = {{ command = '{wait}', output = 'wait' }} }},\n  \
             {{ id = 'b', after = ['wait'], run = {{ {reads}, inputs = ['@a'], output = 'b' }} }},\n]\n"
        );
        let (dir, family) = (scratch("outputs-between"), Family::new("outputs-between"));
        fs::write(dir.join("in.txt"), "one\ntwo\n").expect("an input");
        fs::write(dir.join("flow.toml"), flow).expect("a flow file");
        let engine = family.start(&dir, &RUN);
        family.awaits(wait);
        flip(&dir.join("a/part-00000"));
        fs::write(dir.join("go"), "").expect("a file");
        let ran = crate::processes::ended(engine);
        assert_eq!(ran.code, Some(1), "{reads}: {}{}", ran.out, ran.err);
        assert!(
            ran.err.contains("f/b ")
                && ran.err.contains(" failed, attempt")
                && ran.err.contains("no longer has the content that was written"),
            "{}",
            ran.err
        );
        assert!(!dir.join("b/_SUCCESS").exists(), "{reads}");
    }
}

#[test]
fn a_finished_part_with_the_same_content_stays_and_is_read_by_jobs() {
    let (dir, family) = finished("outputs-touched");
    let part = dir.join("a/part-00000");
    let times = FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    File::options().append(true).open(&part).expect("a part").set_times(times).expect("its time can be set");
    let ran = family.slackline(&dir, &RUN);
    assert!(ran.code == Some(0) && ran.err.contains("nothing is left to do"), "{}", ran.err);
    fs::copy(&part, dir.join("beside")).expect("it can be copied");
    fs::rename(dir.join("beside"), &part).expect("it can be renamed");
    let ran = family.slackline(&dir, &[&RUN[..], &["--engine=local:hash=on", "--force", "b"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert_eq!(parts(&dir.join("b"))["part-00000"], b"one\ntwo\n");
}

#[test]
fn a_file_beside_finished_parts_is_refused_if_readers_would_read_it() {
    let (dir, family) = finished("outputs-beside");
    for name in ["_hidden", ".part-00000.crc"] {
        fs::write(dir.join("b").join(name), "x").expect("a file");
    }
    let ran = family.slackline(&dir, &RUN);
    assert!(ran.code == Some(0) && ran.err.contains("nothing is left to do"), "{}", ran.err);
    for name in ["_hidden", ".part-00000.crc"] {
        fs::remove_file(dir.join("b").join(name)).expect("it can go");
    }
    for name in ["part-00003", "part-00000.gz", "notes", "0"] {
        fs::write(dir.join("b").join(name), "three\n").expect("a file");
        let ran = family.slackline(&dir, &RUN);
        assert_eq!(ran.code, Some(2), "{name}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(&format!("output b: found {name}, which no run")), "{}", ran.err);
        assert!(ran.err.contains("move it away"), "{}", ran.err);
        assert_eq!(fs::read(dir.join("b").join(name)).expect("it stays"), b"three\n");
        fs::remove_file(dir.join("b").join(name)).expect("it can go");
    }
    let ran = family.slackline(&dir, &RUN);
    assert!(ran.code == Some(0) && ran.err.contains("nothing is left to do"), "{}", ran.err);
}
