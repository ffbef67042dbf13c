//! Finished jobs are reused. Changed jobs, and only these, run again, and the reason is printed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::processes::{Family, ended, until};
use crate::runs::{checked, command};
use crate::{Ran, ran as outcome, scratch};

const RUN: [&str; 6] = ["run", "flow.toml", "--slots", "2", "--state", "state"];

/// Eight jobs, each of which appends its name to a file: `one` to `four` in a chain, `five` beside it, `six`
/// reads `four` and `five`, `seven` and `eight` read `six`. The mapper of `six` is a parameter.
fn eight(dir: &Path, six: &str) {
    let job = |id: &str, command: &str, inputs: &str| {
        format!(
            "  {{ id = \"{id}\", run = {{ mapper = \"echo {id} >> ran; {command}\", inputs = [{inputs}], output = \"out/{id}\" }} }},\n"
        )
    };
    let jobs = [
        job("one", "cat", "\"in.txt\""),
        job("two", "tr a-z A-Z", "\"@one\""),
        job("three", "cat", "\"@two\""),
        job("four", "cat", "\"@three\""),
        job("five", "cat", "\"other.txt\""),
        job("six", six, "\"@four\", \"@five\""),
        job("seven", "cat", "\"@six\""),
        job("eight", "wc -l", "\"@six\""),
    ];
    let flow = format!("slackline = 1\n[[flows]]\nid = \"night\"\njobs = [\n{}]\n", jobs.concat());
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
}

fn prepared(test: &str) -> PathBuf {
    let dir = scratch(test);
    fs::write(dir.join("in.txt"), "one\ntwo\n").expect("an input");
    fs::write(dir.join("other.txt"), "three\n").expect("an input");
    eight(&dir, "cat");
    dir
}

fn run(dir: &Path, more: &[&str]) -> Ran {
    outcome(&command(dir, &[&RUN[..], more].concat()).output().expect("the program starts"))
}

/// The jobs that ran since the last call, by name.
fn ran(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("ran")).unwrap_or_default();
    let _ = fs::remove_file(dir.join("ran"));
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// The run succeeds; returns the jobs that ran, and the messages.
fn done(dir: &Path, more: &[&str]) -> (Vec<String>, String) {
    let went = run(dir, more);
    assert_eq!(went.code, Some(0), "{}{}", went.out, went.err);
    (ran(dir), went.err)
}

fn lines(dir: &Path, job: &str) -> String {
    let mut text = String::new();
    for part in 0.. {
        let Ok(more) = fs::read_to_string(dir.join(format!("out/{job}/part-{part:05}"))) else { break };
        text += &more;
    }
    text
}

#[test]
fn a_typo_that_is_mended_costs_only_what_comes_after_it() {
    let dir = prepared("reuse-typo");
    eight(&dir, "awkk 1");
    let failed = run(&dir, &[]);
    assert_eq!(failed.code, Some(1), "{}{}", failed.out, failed.err);
    assert_eq!(ran(&dir), ["five", "four", "one", "six", "three", "two"]);
    eight(&dir, "cat");
    let (jobs, _) = done(&dir, &[]);
    assert_eq!(jobs, ["eight", "seven", "six"]);
    assert_eq!(lines(&dir, "seven"), "ONE\nTWO\nthree\n");
    checked(&dir);
    let (jobs, said) = done(&dir, &[]);
    assert!(jobs.is_empty() && said.contains("nothing is left to do"), "{said}");
}

#[test]
fn a_comment_another_policy_and_other_slots_change_nothing_that_is_done() {
    let dir = prepared("reuse-same");
    done(&dir, &[]);
    ran(&dir);
    let text = fs::read_to_string(dir.join("flow.toml")).expect("the flow file");
    fs::write(dir.join("flow.toml"), format!("# A comment.\n{text}")).expect("a flow file");
    for more in [&["--policy", "fifo"][..], &["--slowstart", "0.5"], &["--deadline", "night=1h"]] {
        let (jobs, said) = done(&dir, more);
        assert!(jobs.is_empty() && said.contains("nothing is left to do"), "{more:?}: {said}");
    }
    // All settings but comments count: for jobs that read files also the size of splits.
    let (jobs, said) = done(&dir, &["--engine", "local:split=1MiB"]);
    assert_eq!(jobs.len(), 8, "{said}");
    assert!(said.contains("night/one runs again: split changed"), "{said}");
    assert!(said.contains("night/two runs again: it reads from night/one, which also runs"), "{said}");
}

#[test]
fn an_input_that_changed_is_read_again_by_what_depends_on_it() {
    let dir = prepared("reuse-input");
    done(&dir, &[]);
    fs::write(dir.join("other.txt"), "three\nfour\n").expect("an input");
    let (jobs, said) = done(&dir, &[]);
    assert_eq!(jobs, ["eight", "five", "seven", "six"]);
    assert!(said.contains("night/five runs again: input other.txt changed"), "{said}");
    assert_eq!(lines(&dir, "seven"), "ONE\nTWO\nthree\nfour\n");
    checked(&dir);
    // The same text at another time is the same only by content.
    done(&dir, &["--engine=local:hash=on", "--force", "five"]);
    fs::write(dir.join("other.txt"), "three\nfour\n").expect("an input");
    let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let file = fs::File::options().append(true).open(dir.join("other.txt")).expect("the input");
    file.set_modified(later).expect("its time can be set");
    let (jobs, said) = done(&dir, &["--engine=local:hash=on"]);
    assert!(jobs.is_empty(), "{jobs:?} {said}");
    // The content of files that are not read again is known from the first read.
    let file = fs::File::options().append(true).open(dir.join("in.txt")).expect("the input");
    file.set_modified(later).expect("its time can be set");
    let (jobs, said) = done(&dir, &["--engine=local:hash=on"]);
    assert!(jobs.is_empty(), "{jobs:?} {said}");
}

#[test]
fn an_output_that_is_gone_is_made_again_and_one_that_was_changed_is_not_overwritten() {
    let dir = prepared("reuse-output");
    done(&dir, &[]);
    fs::remove_dir_all(dir.join("out/six")).expect("it can go");
    let (jobs, said) = done(&dir, &[]);
    assert_eq!(jobs, ["eight", "seven", "six"]);
    assert!(said.contains("night/six runs again: output out/six/part-00000 was removed"), "{said}");
    fs::remove_file(dir.join("out/four/_SUCCESS")).expect("it can go");
    let (jobs, _) = done(&dir, &[]);
    assert_eq!(jobs, ["eight", "four", "seven", "six"]);
    fs::write(dir.join("out/four/part-00000"), "edited by hand\n").expect("a file");
    let refused = run(&dir, &[]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("output out/four: part-00000 was changed after the run"), "{}", refused.err);
    assert_eq!(lines(&dir, "four"), "edited by hand\n");
    fs::remove_file(dir.join("out/four/part-00000")).expect("it can go");
    assert_eq!(done(&dir, &[]).0, ["eight", "four", "seven", "six"]);
    assert_eq!(lines(&dir, "seven"), "ONE\nTWO\nthree\n");
}

#[test]
fn jobs_can_be_chosen() {
    let dir = prepared("reuse-chosen");
    done(&dir, &[]);
    assert_eq!(done(&dir, &["--only", "night/two"]).0, ["two"]);
    // The jobs that read from it must run again.
    let (jobs, said) = done(&dir, &[]);
    assert_eq!(jobs, ["eight", "four", "seven", "six", "three"], "{said}");
    assert_eq!(done(&dir, &["--force", "six"]).0, ["eight", "seven", "six"]);
    fs::write(dir.join("in.txt"), "changed\n").expect("an input");
    assert_eq!(done(&dir, &["--from-job", "six"]).0, ["eight", "seven", "six"]);
    assert_eq!(lines(&dir, "seven"), "ONE\nTWO\nthree\n");
    assert_eq!(done(&dir, &[]).0, ["eight", "four", "one", "seven", "six", "three", "two"]);
    let wrong = run(&dir, &["--force", "sixx"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    assert!(wrong.err.contains("found job \"sixx\"") && wrong.err.contains("night/six"), "{}", wrong.err);
}

#[test]
fn a_chosen_job_names_the_one_before_it_that_is_not_done() {
    let dir = prepared("reuse-chosen-early");
    for flag in ["--only", "--from-job"] {
        for more in [&[flag, "two"][..], &[flag, "two", "--dry-run"]] {
            let went = run(&dir, more);
            let said = format!("{}{}", went.out, went.err);
            assert!(matches!(went.code, Some(1 | 2)), "{said}");
            let problem = "it reads from night/one, which is not finished and was not selected";
            assert!(said.contains(problem) && !said.contains("no such file"), "{said}");
        }
    }
}

/// All files below a directory, with their content.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).expect("a file")));
        }
    }
    found.sort();
    found
}

#[test]
fn a_dry_run_says_what_would_be_done_and_touches_nothing() {
    let dir = prepared("reuse-dry");
    let before = files(&dir);
    let dry = run(&dir, &["--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}{}", dry.out, dry.err);
    assert!(dry.out.contains("it has not finished yet") && dry.out.contains("8 jobs to run"), "{}", dry.out);
    assert!(files(&dir) == before, "something was written");
    for more in [["--format", "json"], ["-o", "dry.csv"]] {
        let refused = run(&dir, &[&["--dry-run"][..], &more].concat());
        assert!(
            refused.code == Some(2) && refused.err.contains("--dry-run: found csv or json"),
            "{}",
            refused.err
        );
    }
    done(&dir, &[]);
    fs::write(dir.join("other.txt"), "three\nfour\n").expect("an input");
    let before = files(&dir);
    let dry = run(&dir, &["--dry-run", "--deadline", "night=0.000001"]);
    assert_eq!(dry.code, Some(0), "{}{}", dry.out, dry.err);
    for words in
        ["input other.txt changed", "nothing has changed", "4 jobs to run, of 8", "unknown (no history)"]
    {
        assert!(dry.out.contains(words), "{words}: {}", dry.out);
    }
    assert!(files(&dir) == before, "something was written");
}

#[test]
fn a_dry_run_says_on_a_narrow_terminal_too_why_a_job_cannot_be_run_and_expects_nothing_of_its_flow() {
    let dir = scratch("reuse-dry-narrow");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let name = "the-output-of-a-job-that-has-a-very-long-name-as-they-often-have";
    let flow = |id: &str, output: &str| {
        format!(
            "[[flows]]\nid = '{id}'\ndeadline = 1000\njobs = [ {{ id = 'j', run = {{ mapper = 'cat', inputs = \
             ['in.txt'], output = '{output}' }} }} ]\n"
        )
    };
    let text = format!("slackline = 1\n{}{}", flow("good", "out"), flow("bad", name));
    fs::write(dir.join("flow.toml"), text).expect("a flow file");
    fs::create_dir(dir.join(name)).expect("a directory");
    fs::write(dir.join(name).join("mine"), "").expect("a file of another program");
    let dry =
        outcome(&command(&dir, &["run", "flow.toml", "--dry-run"]).env("COLUMNS", "72").output().unwrap());
    assert_eq!(dry.code, Some(1), "{}{}", dry.out, dry.err);
    let said = dry.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("bad/j cannot be run: output {name}: found")), "{}", dry.out);
    let of = |flow: &str| dry.out.lines().rfind(|line| line.starts_with(flow)).unwrap_or_default().to_owned();
    assert!(of("good").ends_with("unknown (no history)"), "{}", dry.out);
    assert!(of("bad").ends_with("cannot be run") && !of("bad").contains("1,000"), "{}", dry.out);
}

#[test]
fn a_killed_run_continues_task_by_task_although_another_job_was_edited() {
    let (dir, family) = (scratch("reuse-killed"), Family::new("reuse-killed"));
    let flow = |last: &str| {
        let text = format!(
            r#"
slackline = 1
[[flows]]
id = "f"
jobs = [
  {{ id = "many", run = {{ mapper = "cat; echo map >> ran; if grep -q wait; then until test -e go; do sleep 0.02; done; fi < \"$mapreduce_map_input_file\"", reducer = "cat", inputs = ["in"], output = "many" }} }},
  {{ id = "last", run = {{ mapper = "{last}", inputs = ["@many"], output = "last" }} }},
]
"#
        );
        fs::write(dir.join("flow.toml"), text).expect("a flow file");
    };
    fs::create_dir(dir.join("in")).expect("a directory");
    for k in 0..4 {
        let text = if k == 3 { "wait\n".to_owned() } else { format!("{k}\n") };
        fs::write(dir.join(format!("in/{k}")), text + &"x".repeat(1000) + "\n").expect("an input");
    }
    flow("cat");
    let args = ["run", "flow.toml", "--slots", "1", "--engine", "local:split=1KiB", "--state", "state"];
    let mut first = family.start(&dir, &args);
    let maps = || fs::read_to_string(dir.join("ran")).unwrap_or_default().lines().count();
    until("the last map waits", || maps() == 4);
    first.kill().expect("it can be killed");
    first.wait().expect("it is gone");
    family.is_gone();
    fs::write(dir.join("go"), "").expect("a file");
    flow("wc -l");
    let rest = family.slackline(&dir, &args);
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    assert!(rest.err.contains("resuming the run: 3 tasks finished"), "{}", rest.err);
    assert_eq!(maps(), 5);
    assert_eq!(fs::read_to_string(dir.join("last/part-00000")).expect("a part").trim(), "8");
    checked(&dir);
}

#[test]
fn outputs_within_inputs_and_within_the_state_directory_are_refused() {
    let dir = scratch("reuse-within");
    fs::create_dir(dir.join("in")).expect("a directory");
    fs::write(dir.join("in/a.txt"), "x\n").expect("an input");
    let refused = |inputs: &str, output: &str, words: &str| {
        let text = format!(
            "slackline = 1\n[[flows]]\nid = 'f'\njobs = [ {{ id = 'j', run = {{ program = 'wordcount', inputs = ['{inputs}'], output = '{output}' }} }} ]\n"
        );
        fs::write(dir.join("flow.toml"), text).expect("a flow file");
        let went = run(&dir, &[]);
        assert_eq!(went.code, Some(2), "{}{}", went.out, went.err);
        assert!(went.err.contains(words), "{words}: {}", went.err);
    };
    refused("in", "in/out", "found the input in, which holds the job's own output");
    refused("in/*", "in/out", "found the input in/*, which holds the job's own output");
    refused("in", "state/maps", "found the output");
    refused("in/*.txt", "state", "found the output");
}

#[test]
fn a_state_of_an_earlier_version_is_refused_by_its_name() {
    let dir = prepared("reuse-earlier");
    fs::create_dir(dir.join("state")).expect("a directory");
    fs::write(dir.join("state/journal.log"), "slackline journal 2\n").expect("a journal");
    let refused = run(&dir, &[]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("another version of slackline wrote this file"), "{}", refused.err);
    assert_eq!(fs::read(dir.join("state/journal.log")).expect("it is there"), b"slackline journal 2\n");
}

#[test]
fn an_unfinished_run_of_other_jobs_is_not_replaced() {
    let dir = prepared("reuse-other");
    eight(&dir, "false");
    assert_eq!(run(&dir, &[]).code, Some(1));
    let other = "slackline = 1\n[[flows]]\nid = 'g'\njobs = [ { id = 'j', run = { program = 'wordcount', inputs = ['in.txt'], output = 'g' } } ]\n";
    fs::write(dir.join("flow.toml"), other).expect("a flow file");
    let refused = run(&dir, &[]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("another --state keeps both runs"), "{}", refused.err);
    // A restart removes the output of this file's jobs, and leaves that of the other file.
    let again = run(&dir, &["--again"]);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    assert!(dir.join("g/part-00000").exists() && dir.join("out/four/part-00000").exists());
}

/// Writes a flow file of one flow `f` with these jobs.
fn flow(dir: &Path, jobs: &str) {
    let text = format!("slackline = 1\n[[flows]]\nid = \"f\"\njobs = [\n{jobs}\n]\n");
    fs::write(dir.join("flow.toml"), text).expect("a flow file");
}

const WAITS: &str = "until test -e go; do sleep 0.02; done; cat";

#[test]
fn output_of_another_job_is_compared_while_it_is_read() {
    let (dir, family) = (prepared("reuse-part"), Family::new("reuse-part"));
    flow(
        &dir,
        &format!(
            "{{ id = \"a\", run = {{ mapper = \"cat\", inputs = [\"in.txt\"], output = \"a\" }} }},\n\
             {{ id = \"b\", run = {{ mapper = \"{WAITS}\", inputs = [\"@a\"], output = \"b\" }} }}"
        ),
    );
    // More than fits into a pipe.
    fs::write(dir.join("in.txt"), "one two\n".repeat(100_000)).expect("an input");
    let child = family.start(&dir, &RUN);
    family.awaits("until test -e go");
    fs::write(dir.join("a/part-00000"), "ONE TWO\n".repeat(100_000)).expect("a part");
    fs::write(dir.join("go"), "").expect("a file");
    let went = ended(child);
    assert_eq!(went.code, Some(1), "{}{}", went.out, went.err);
    assert!(went.err.contains("a/part-00000") && went.err.contains("changed"), "{}", went.err);
    assert!(!dir.join("b/_SUCCESS").exists());
}

#[test]
fn a_file_that_a_user_puts_into_an_output_meanwhile_stays_and_fails_that_flow_alone() {
    let (dir, family) = (prepared("reuse-meanwhile"), Family::new("reuse-meanwhile"));
    let job = |flow: &str, mapper: &str| {
        format!(
            "[[flows]]\nid = \"{flow}\"\njobs = [ {{ id = \"j\", run = {{ mapper = \"{mapper}\", inputs = [\"in.txt\"], output = \"{flow}\" }} }} ]\n"
        )
    };
    let text = format!("slackline = 1\n{}{}", job("waits", WAITS), job("good", "cat"));
    fs::write(dir.join("flow.toml"), text).expect("a flow file");
    let child = family.start(&dir, &RUN);
    family.awaits("until test -e go");
    fs::write(dir.join("waits/part-00000"), "mine\n").expect("a file");
    fs::write(dir.join("go"), "").expect("a file");
    let went = ended(child);
    assert_eq!(went.code, Some(1), "{}{}", went.out, went.err);
    assert!(went.err.contains("output waits: cannot be completed: found part-00000"), "{}", went.err);
    assert_eq!(fs::read_to_string(dir.join("waits/part-00000")).expect("it is there"), "mine\n");
    assert_eq!(fs::read_to_string(dir.join("good/part-00000")).expect("it is there"), "one\ntwo\n");
    fs::remove_file(dir.join("waits/part-00000")).expect("it can go");
    assert_eq!(run(&dir, &[]).code, Some(0));
    assert_eq!(fs::read_to_string(dir.join("waits/part-00000")).expect("it is there"), "one\ntwo\n");
}

#[test]
fn an_output_that_is_removed_while_a_run_continues_is_made_again_and_stops_no_process() {
    let (dir, family) = (prepared("reuse-vanished"), Family::new("reuse-vanished"));
    flow(
        &dir,
        &format!(
            "{{ id = \"j\", run = {{ mapper = \"{WAITS}\", inputs = [\"in.txt\"], output = \"out/j\" }} }}"
        ),
    );
    let child = family.start(&dir, &RUN);
    family.awaits("until test -e go");
    fs::remove_dir_all(dir.join("out")).expect("it can go");
    fs::write(dir.join("go"), "").expect("a file");
    let went = ended(child);
    assert_eq!(went.code, Some(0), "{}{}", went.out, went.err);
    assert_eq!(lines(&dir, "j"), "one\ntwo\n");
    checked(&dir);
}

#[test]
fn starting_over_removes_no_output_of_a_flow_that_cannot_run() {
    let dir = prepared("reuse-again");
    done(&dir, &[]);
    fs::write(dir.join("out/five/part-00000"), "precious\n").expect("a file");
    fs::remove_file(dir.join("other.txt")).expect("it can go");
    let good = "[[flows]]\nid = \"good\"\njobs = [ { id = \"j\", run = { mapper = \"cat\", inputs = [\"in.txt\"], output = \"good\" } } ]\n";
    let text = fs::read_to_string(dir.join("flow.toml")).expect("the flow file");
    fs::write(dir.join("flow.toml"), text + good).expect("a flow file");
    let again = run(&dir, &["--again"]);
    assert_eq!(again.code, Some(1), "{}{}", again.out, again.err);
    assert_eq!(lines(&dir, "five"), "precious\n");
    assert!(dir.join("good/_SUCCESS").exists());
}

#[test]
fn requested_reruns_happen_although_the_run_was_killed() {
    let (dir, family) = (prepared("reuse-asked"), Family::new("reuse-asked"));
    flow(
        &dir,
        "{ id = \"j\", run = { mapper = \"date +%N; until test -e go; do sleep 0.02; done\", inputs = [\"in.txt\"], output = \"out/j\" } }",
    );
    fs::write(dir.join("go"), "").expect("a file");
    assert_eq!(run(&dir, &[]).code, Some(0));
    let before = lines(&dir, "j");
    fs::remove_file(dir.join("go")).expect("it can go");
    let mut forced = family.start(&dir, &[&RUN[..], &["--force", "j"]].concat());
    family.awaits("until test -e go");
    assert_eq!(lines(&dir, "j"), before, "the earlier output is there until the new one is whole");
    forced.kill().expect("it can be killed");
    forced.wait().expect("it is gone");
    family.is_gone();
    fs::write(dir.join("go"), "").expect("a file");
    let went = run(&dir, &[]);
    assert!(went.code == Some(0) && went.err.contains("f/j done"), "{}", went.err);
    assert_ne!(lines(&dir, "j"), before);
}

#[test]
fn a_sort_that_was_killed_may_have_another_number_of_reduces() {
    let (dir, family) = (prepared("reuse-sort"), Family::new("reuse-sort"));
    let sort = |reducers: u32| {
        flow(
            &dir,
            &format!(
                "{{ id = \"s\", run = {{ program = \"sort\", inputs = [\"many\"], output = \"out/s\", reducers = {reducers} }} }},\n\
                 {{ id = \"w\", run = {{ mapper = \"{WAITS}\", inputs = [\"in.txt\"], output = \"out/w\" }} }}"
            ),
        );
    };
    let text: Vec<String> = (0..20_000).map(|k| format!("{:05}\n", k * 7919 % 20_000)).collect();
    fs::write(dir.join("many"), text.concat()).expect("an input");
    sort(4);
    let args = [&RUN[..], &["--engine", "local:split=4KiB", "--policy", "fair"]].concat();
    let mut first = family.start(&dir, &args);
    family.awaits("until test -e go");
    until("a map is done", || {
        fs::read_dir(dir.join("state/maps")).is_ok_and(|mut maps| maps.next().is_some())
    });
    first.kill().expect("it can be killed");
    first.wait().expect("it is gone");
    family.is_gone();
    fs::write(dir.join("go"), "").expect("a file");
    sort(2);
    let went = run(&dir, &["--engine", "local:split=4KiB"]);
    assert_eq!(went.code, Some(0), "{}{}", went.out, went.err);
    let sorted: Vec<String> = (0..20_000).map(|k| format!("{k:05}\n")).collect();
    assert!(lines(&dir, "s") == sorted.concat(), "the parts one after the other are in order");
    checked(&dir);
}

#[test]
fn parts_of_a_job_that_failed_are_kept_until_it_is_tried_again() {
    let dir = prepared("reuse-parts");
    fs::create_dir(dir.join("in")).expect("a directory");
    for k in 0..6 {
        fs::write(dir.join(format!("in/{k}")), format!("{k}\n") + &"x".repeat(2000) + "\n")
            .expect("an input");
    }
    let mapper =
        "echo $SLACKLINE_TASK >> ran; read first; test $first != 4 || test -e mended || exit 1; echo $first";
    flow(
        &dir,
        &format!(
            "{{ id = \"j\", run = {{ mapper = \"{mapper}\", inputs = [\"in\"], output = \"out/j\", attempts = 1 }} }}"
        ),
    );
    let args = ["--engine", "local:split=2KiB", "--policy", "fifo"];
    let failed = run(&dir, &args);
    assert_eq!(failed.code, Some(1), "{}{}", failed.out, failed.err);
    let first = ran(&dir).len();
    fs::write(dir.join("mended"), "").expect("a file");
    let went = run(&dir, &args);
    assert_eq!(went.code, Some(0), "{}{}", went.out, went.err);
    let second = ran(&dir).len();
    assert!(first >= 4 && second < first + 6, "{first} and then {second}");
    assert!(went.err.contains("resuming the run: "), "{}", went.err);
    checked(&dir);
}

#[test]
fn a_declared_file_has_to_be_a_file() {
    let dir = prepared("reuse-files");
    fs::create_dir(dir.join("tools")).expect("a directory");
    flow(
        &dir,
        "{ id = \"j\", run = { mapper = \"cat\", files = [\"tools\"], inputs = [\"in.txt\"], output = \"out/j\" } }",
    );
    let refused = run(&dir, &[]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("file tools: cannot be read"), "{}", refused.err);
}

#[test]
fn another_night_does_not_take_over_the_start_of_one_that_failed() {
    let dir = prepared("reuse-start");
    let night = |night: &str, mapper: &str| {
        flow(
            &dir,
            &format!(
                "{{ id = \"j\", run = {{ mapper = \"{mapper}\", inputs = [\"in.txt\"], output = \"out/{night}\" }} }}"
            ),
        );
    };
    night("1", "false");
    assert_eq!(run(&dir, &[]).code, Some(1));
    // Longer than the deadline, which is longer than this takes on a busy machine.
    crate::processes::pause(20_000);
    night("2", "cat");
    let went = run(&dir, &["--deadline", "f=19"]);
    assert!(went.code == Some(0) && went.out.starts_with("1 flow finished\n"), "{}{}", went.out, went.err);
}

/// Two commands in a chain, and a third one, of which only the second names an output.
fn without_outputs(dir: &Path) {
    let flow = "slackline = 1\n[[flows]]\nid = \"night/a\"\njobs = [\n  \
                { id = \"load\", run = { command = \"echo load >> ran; echo loaded\" } },\n  \
                { id = \"copy\", run = { command = \"echo copy >> ran; cat $SLACKLINE_INPUTS\", inputs = [\"@load\"], output = \"out/copy\" } },\n  \
                { id = \"last\", after = [\"copy\"], run = { command = \"echo last >> ran\" } },\n]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
}

#[test]
fn a_command_needs_no_output() {
    let dir = scratch("reuse-no-output");
    without_outputs(&dir);
    assert_eq!(done(&dir, &[]).0, ["copy", "last", "load"]);
    assert_eq!(lines(&dir, "copy"), "loaded\n");
    checked(&dir);
    // The files of the run say that the commands ran.
    let (jobs, said) = done(&dir, &[]);
    assert!(jobs.is_empty() && said.contains("nothing is left to do"), "{said}");
    assert_eq!(done(&dir, &["--force", "load"]).0, ["copy", "load"]);
    let flow = fs::read_to_string(dir.join("flow.toml")).expect("the flow file");
    fs::write(dir.join("flow.toml"), flow.replace("command = \"echo load", "mapper = \"echo load"))
        .expect("a flow file");
    let refused = run(&dir, &[]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("found no `output` with a mapper"), "{}", refused.err);
}

#[test]
fn outputs_whose_state_is_gone_are_adopted_or_overwritten() {
    let dir = prepared("reuse-state-gone");
    done(&dir, &[]);
    fs::remove_dir_all(dir.join("state")).expect("the state");
    let refused = run(&dir, &[]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("--adopt") && refused.err.contains("--overwrite"), "{}", refused.err);
    // An output that is not complete is not that of a finished job.
    fs::remove_file(dir.join("out/six/_SUCCESS")).expect("a mark");
    let refused = run(&dir, &["--adopt"]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("found no _SUCCESS, so it is not complete"), "{}", refused.err);
    fs::write(dir.join("out/six/_SUCCESS"), "").expect("a mark");
    assert!(run(&dir, &["--adopt", "--dry-run"]).out.contains("0 jobs to run, of 8"));
    assert_eq!(done(&dir, &["--adopt"]).0, [""; 0]);
    // Inputs count from now on.
    fs::write(dir.join("other.txt"), "three\nfour\n").expect("an input");
    assert_eq!(done(&dir, &[]).0, ["eight", "five", "seven", "six"]);
    assert_eq!(lines(&dir, "seven"), "ONE\nTWO\nthree\nfour\n");
    fs::remove_dir_all(dir.join("state")).expect("the state");
    fs::create_dir(dir.join("out/seven/notes")).expect("a directory");
    let refused = run(&dir, &["--overwrite"]);
    assert!(
        refused.code == Some(2) && refused.err.contains("out/seven/notes: not the path of a file"),
        "{}",
        refused.err
    );
    fs::remove_dir(dir.join("out/seven/notes")).expect("a directory");
    fs::write(dir.join("out/seven/note.txt"), "mine").expect("a file");
    let (jobs, _) = done(&dir, &["--overwrite"]);
    assert_eq!(jobs.len(), 8);
    assert!(!dir.join("out/seven/note.txt").exists());
    checked(&dir);
}

#[test]
fn an_output_that_was_edited_is_adopted_or_overwritten() {
    let dir = prepared("reuse-edited");
    done(&dir, &[]);
    let edit = |text: &str| fs::write(dir.join("out/six/part-00000"), text).expect("a part");
    edit("by hand\n");
    assert_eq!(run(&dir, &[]).code, Some(2));
    assert_eq!(done(&dir, &["--adopt"]).0, ["eight", "seven"]);
    assert_eq!(lines(&dir, "seven"), "by hand\nthree\n");
    assert_eq!(done(&dir, &[]).0, [""; 0]);
    edit("by hand again\n");
    assert!(run(&dir, &["--overwrite", "--dry-run"]).out.contains("3 jobs to run, of 8"));
    assert_eq!(lines(&dir, "six"), "by hand again\nthree\n");
    assert_eq!(done(&dir, &["--overwrite"]).0, ["eight", "seven", "six"]);
    assert_eq!(lines(&dir, "seven"), "ONE\nTWO\nthree\n");
    // A file that is no part of the output is not adopted.
    edit("by hand\n");
    fs::write(dir.join("out/six/note.txt"), "mine").expect("a file");
    let refused = run(&dir, &["--adopt"]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(
        refused.err.contains("found note.txt, expected only part-00000, part-00001 and _SUCCESS"),
        "{}",
        refused.err
    );
    assert_eq!(lines(&dir, "six"), "by hand\nthree\n");
}
