//! Real runs of flows: correct results, documents that `check` accepts, runs that resume after kill -9.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use slackline_model::random::test_scale;

use crate::processes::{Family, pause, until};
use crate::{Ran, ran, scratch};

/// The program in a directory of the test.
fn slackline(dir: &Path, args: &[&str]) -> Ran {
    ran(&command(dir, args).output().expect("the program starts"))
}

pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    crate::processes::have_default_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_slackline"));
    command.current_dir(dir).args(args).env("SLACKLINE_CONFIG", "");
    // Ignores runs of other tests at the same time.
    command.env("XDG_RUNTIME_DIR", dir);
    command
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All part files of an output by name; the only other file is the success mark.
pub(crate) fn parts(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |e: std::io::Result<fs::DirEntry>| {
        let path = e.expect("an entry").path();
        (
            path.file_name().expect("a name").to_string_lossy().into_owned(),
            fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())),
        )
    };
    let mut parts: BTreeMap<String, Vec<u8>> = fs::read_dir(dir).expect("an output").map(entry).collect();
    assert!(parts.remove("_SUCCESS").is_some(), "{} is complete", dir.display());
    assert!(parts.keys().all(|name| name.starts_with("part-")), "{:?}", parts.keys());
    parts
}

/// Six jobs over a generated text, on two slots with many small tasks.
const FLOW: &str = r#"
slackline = 1
[[flows]]
id = "library"
deadline = 300.0
jobs = [
  { id = "text", run = { program = "generate-text", output = "text", args = { bytes = "2MB", maps = 3, words = 500 } } },
  { id = "words", run = { program = "wordcount", inputs = ["@text"], output = "words", reducers = 2 } },
  { id = "index", run = { program = "inverted-index", inputs = ["@text"], output = "index", reducers = 2 } },
  { id = "sorted", run = { program = "sort", inputs = ["@words"], output = "sorted", reducers = 2 } },
  { id = "joined", run = { program = "join", inputs = ["@words", "@index"], output = "joined", reducers = 2 } },
]
[[flows]]
id = "commands"
jobs = [ { id = "lines", run = { mapper = "grep -c ''", inputs = ["in.txt"], output = "lines" } } ]
"#;

const OUTPUTS: [&str; 6] = ["text", "words", "index", "sorted", "joined", "lines"];

pub(crate) fn prepared(test: &str) -> PathBuf {
    let dir = scratch(test);
    fs::write(dir.join("flow.toml"), FLOW).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\ntwo\nthree\n").expect("an input");
    dir
}

/// The run of the tests.
pub(crate) const RUN: [&str; 6] = ["run", "flow.toml", "--slots", "2", "--state", "state"];

/// The part files of a run, by job.
pub(crate) fn results(dir: &Path) -> Vec<BTreeMap<String, Vec<u8>>> {
    OUTPUTS.iter().map(|output| parts(&dir.join(output))).collect()
}

pub(crate) fn checked(dir: &Path) {
    let checked = slackline(dir, &["check", "state/workload.json", "state/schedule.json"]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
}

#[test]
fn results_are_those_of_an_independent_computation() {
    let dir = prepared("run-results");
    let ran = slackline(&dir, &[&RUN[..], &["--stats"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    for word in ["library", "commands", "predicted", "auto ran", "state/schedule.json"] {
        assert!(ran.out.contains(word), "{word:?} in\n{}", ran.out);
    }
    checked(&dir);
    let text: Vec<(String, String)> = (parts(&dir.join("text")).into_keys())
        .map(|part| (format!("text/{part}"), read(&dir.join("text").join(part))))
        .collect();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for word in text.iter().flat_map(|(_, text)| text.split_whitespace()) {
        *counts.entry(word).or_default() += 1;
    }
    let lines = |job: &str| -> Vec<String> {
        let bytes = parts(&dir.join(job)).into_values().flatten().collect();
        String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
    };
    let mut expected: Vec<String> = counts.iter().map(|(word, n)| format!("{word}\t{n}")).collect();
    let mut words = lines("words");
    words.sort();
    assert_eq!(words, expected);
    expected.sort();
    assert_eq!(lines("sorted"), expected, "the parts one after the other are in order");
    let mut index: Vec<String> = (counts.keys())
        .map(|word| {
            let holds = |(name, text): &&(String, String)| {
                text.split_whitespace().any(|other| other == *word).then_some(name.as_str()).is_some()
            };
            let files: Vec<&str> = text.iter().filter(holds).map(|(name, _)| name.as_str()).collect();
            format!("{word}\t{}", files.join(","))
        })
        .collect();
    index.sort();
    let mut found = lines("index");
    found.sort();
    assert_eq!(found, index);
    assert_eq!(lines("joined").len(), counts.len());
    assert_eq!(lines("lines"), ["3"]);
    // The same command finds nothing left to do; --again runs all jobs again.
    let twice = slackline(&dir, &RUN);
    assert!(twice.code == Some(0) && twice.err.contains("nothing is left to do"), "{}", twice.err);
    // The command alone runs all jobs if all outputs are gone; if one output is gone, that job and its
    // dependants.
    for output in OUTPUTS {
        fs::remove_dir_all(dir.join(output)).expect("an output can go");
    }
    let again = slackline(&dir, &RUN);
    assert!(again.code == Some(0) && again.err.contains("part-00000 was removed"), "{}", again.err);
    fs::remove_dir_all(dir.join("words")).expect("an output can go");
    let partly = slackline(&dir, &RUN);
    assert_eq!(partly.code, Some(0), "{}{}", partly.out, partly.err);
    assert!(
        partly.err.contains("library/sorted done") && !partly.err.contains("library/index done"),
        "{}",
        partly.err
    );
    // The run refuses to remove a file of another program, and then removes no file at all.
    fs::write(dir.join("joined/notes"), "").expect("a file");
    let again = slackline(&dir, &[&RUN[..], &["--again"]].concat());
    assert!(
        again.code == Some(1) && again.err.contains("output joined: found notes, which no run"),
        "{}",
        again.err
    );
    assert!(dir.join("sorted/part-00000").exists());
    fs::remove_file(dir.join("joined/notes")).expect("it can go");
    let again = slackline(&dir, &[&RUN[..], &["--again"]].concat());
    assert!(again.code == Some(0) && again.err.contains("library/joined done"), "{}", again.err);
}

/// Number of task outputs that have been moved to their places.
pub(crate) fn committed(dir: &Path) -> usize {
    let entries = |dir: &Path| -> Vec<PathBuf> {
        // Directories come and go while the run is active.
        fs::read_dir(dir).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
    };
    let maps = entries(&dir.join("state/maps")).iter().map(|job| entries(job).len()).sum::<usize>();
    let is_part =
        |path: &&PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("part-"));
    let parts = |out: &PathBuf| entries(out).iter().filter(is_part).count();
    let outputs = OUTPUTS.iter().flat_map(|out| [dir.join(out), dir.join(out).join("_temporary/parts")]);
    maps + outputs.map(|out| parts(&out)).sum::<usize>()
}

/// A run that may be killed, whose standard error goes to a file `err`.
fn start(family: &Family, dir: &Path, args: &[&str]) -> Child {
    let err = fs::File::create(dir.join("err")).expect("a file");
    let mut command = family.command(dir, args);
    command.process_group(0).stdout(Stdio::null()).stderr(err).spawn().expect("it starts")
}

/// Whether a run has ended, which it must not do with an error.
fn has_ended(child: &mut Child, dir: &Path) -> bool {
    let status = child.try_wait().expect("it can be asked");
    assert!(status.is_none_or(|status| status.success()), "{status:?}: {}", read(&dir.join("err")));
    status.is_some()
}

/// `SLACKLINE_SCALE=k` kills k times as often.
#[test]
fn a_run_that_is_killed_continues_and_gives_the_same() {
    let runs = [
        &RUN[..],
        &["run", "flow.toml", "--slots", "2", "--state", "state", "--slowstart", "0.05"],
        &["run", "flow.toml", "--slots", "1", "--state", "state", "--policy", "fair"],
        &["run", "flow.toml", "--slots", "4", "--state", "state", "--policy", "fifo", "--slowstart", "0"],
        &["run", "flow.toml", "--engine", "local:map-slots=2,reduce-slots=1", "--state", "state"],
        &[
            "run",
            "flow.toml",
            "--slots",
            "3",
            "--state",
            "state",
            "--engine",
            "local:speculate=--attempts",
            "2",
        ],
        &["run", "flow.toml", "--slots", "2", "--state", "state", "--policy", "edf", "--slowstart", "0.5"],
    ];
    killed_again_and_again(&Family::new("run-killed"), &prepared("run-calm"), &prepared("run-killed"), &runs);
}

/// The signals that end a run.
const SIGNALS: [&str; 4] = ["KILL", "TERM", "INT", "HUP"];

/// Kills a run in `dir` at many different moments, by different signals, and resumes it in a third of the
/// cases as another one of `runs`, which differ in their settings. Its result equals that of a run in `calm`
/// that is never killed.
#[allow(clippy::print_stdout, reason = "the counts of the long check")]
pub(crate) fn killed_again_and_again(family: &Family, calm: &Path, dir: &Path, runs: &[&[&str]]) {
    assert_eq!(slackline(calm, &RUN).code, Some(0));
    let expected = results(calm);
    let scale = test_scale().ceil() as u64;
    let (mut kills, mut resumed, mut state, mut again) = (0, 0, 12_345u64, false);
    let (mut run, mut changes, mut by_signal) = (runs[0], 0, BTreeMap::<String, u64>::new());
    // With a slow disk, a task's end may not be recorded yet when the run is killed: then it is killed more
    // often, and later.
    while kills < 6 * scale || 3 * resumed < kills && kills < 60 * scale {
        let args = if again { [run, &["--again"]].concat() } else { run.to_vec() };
        let before = committed(dir);
        let mut child = start(family, dir, &args);
        // Any sequence of pauses, signals and settings is valid; this one is the same every time.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let signal = SIGNALS[(state >> 40) as usize % SIGNALS.len()];
        let to = if (state >> 44).is_multiple_of(2) { "engine" } else { "group" };
        let is_early = kills % 3 == 0;
        if is_early {
            pause(1 + (state >> 33) % 20);
        } else {
            until("a task is done", || {
                let has_begun = !again || read(&dir.join("err")).contains("all jobs run again");
                let now = committed(dir);
                has_ended(&mut child, dir) || has_begun && now != before
            });
            pause((state >> 33) % 60 * (1 + kills / (6 * scale)));
        }
        // A run that had ended was not killed: its results are checked, and it starts over.
        let is_over = has_ended(&mut child, dir);
        let pid = child.id().to_string();
        let target = if to == "group" { format!("-{pid}") } else { pid };
        let sent = Command::new("kill").args(["-s", signal, "--", &target]).stderr(Stdio::null()).status();
        sent.expect("signals can be sent");
        let status = child.wait().expect("it is gone");
        // A run that is asked to stop may finish first.
        let is_right =
            signal == "KILL" || matches!(status.code(), Some(0 | 130)) || status.signal().is_some();
        assert!(is_right, "{signal} to the {to}: {status:?}: {}", read(&dir.join("err")));
        let is_over = is_over || status.success();
        let resuming = "resuming the run: ";
        let err = read(&dir.join("err"));
        resumed += u64::from(err.contains(resuming) && !err.contains(&format!("{resuming}0 tasks")));
        if is_over {
            assert_eq!(results(dir), expected);
            checked(dir);
            again = true;
        } else {
            kills += 1;
            *by_signal.entry(format!("{signal} to the {to}")).or_default() += 1;
            if kills.is_multiple_of(3) {
                changes += 1;
                run = runs[(kills / 3) as usize % runs.len()];
            }
            // A restart may be killed before it has removed the old run, and is then repeated.
            again &= is_early;
        }
    }
    assert!(3 * resumed >= kills, "{resumed} of {kills} kills came after a task was done");
    println!("{kills} kills, {changes} of them before other settings: {by_signal:?}");
    let last = slackline(dir, run);
    assert_eq!(last.code, Some(0), "{}{}", last.out, last.err);
    assert_eq!(results(dir), expected);
    // The judge accepts one finished attempt per task: no committed attempt ran again.
    checked(dir);
}

#[test]
fn flows_that_cannot_run_are_reported_with_their_place() {
    let dir = prepared("run-wrong");
    let error = |flow: &str, expected: &str| {
        fs::write(
            dir.join("wrong.toml"),
            format!("slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n{flow}\n]\n"),
        )
        .expect("a flow file");
        let ran = slackline(&dir, &["run", "wrong.toml", "--state", "wrong"]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(expected) && ran.err.contains("wrong.toml:"), "{expected:?} in {}", ran.err);
    };
    error("{ id = 'a', map = { tasks = 1, seconds = 1.0 } }", "found no run section");
    error(
        "{ id = 'a', run = { program = 'wordcuont', inputs = ['in.txt'], output = 'o' } }",
        "expected one of wordcount",
    );
    error("{ id = 'a', run = { program = 'wordcount', inputs = ['no.txt'], output = 'o' } }", "no such file");
    error(
        "{ id = 'a', run = { program = 'wordcount', inputs = ['*.none'], output = 'o' } }",
        "no file matches",
    );
    error("{ id = 'a', run = { program = 'wordcount', inputs = ['@b'], output = 'o' } }", "expected");
    error(
        "{ id = 'a', run = { program = 'sort', inputs = ['in.txt'], output = 'o' } },\n\
         { id = 'b', run = { program = 'sort', inputs = ['in.txt'], output = 'o/below' } }",
        "overlaps",
    );
    fs::create_dir(dir.join("lines")).expect("a directory");
    fs::write(dir.join("lines/old"), "").expect("a file");
    let ran = slackline(&dir, &RUN);
    assert!(ran.code == Some(1) && ran.err.contains("output lines: found old, which no run"), "{}", ran.err);
}

#[test]
fn a_flow_that_fails_leaves_the_others_and_its_log() {
    let dir = prepared("run-fails");
    let flows = r#"
slackline = 1
[[flows]]
id = "bad"
jobs = [ { id = "j", run = { mapper = "echo this is why >&2; exit 3", inputs = ["in.txt"], output = "bad" } } ]
[[flows]]
id = "good"
jobs = [ { id = "j", run = { program = "wordcount", inputs = ["in.txt"], output = "good" } } ]
"#;
    fs::write(dir.join("flow.toml"), flows).expect("a flow file");
    let ran = slackline(&dir, &RUN);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    for word in ["bad/j failed", "exit status: 3", "this is why", "log: state/logs/"] {
        assert!(ran.err.contains(word), "{word:?} in {}", ran.err);
    }
    assert_eq!(parts(&dir.join("good"))["part-00000"], b"one\t1\nthree\t1\ntwo\t1\n");
    assert!(!dir.join("bad/_SUCCESS").exists());
    checked(&dir);
    // Failed jobs are retried under any policy, and finished jobs are not rerun.
    let other = slackline(&dir, &[&RUN[..], &["--policy", "fifo"]].concat());
    assert_eq!(other.code, Some(1), "{}{}", other.out, other.err);
    assert!(other.err.contains("bad/j failed") && !other.err.contains("good/j done"), "{}", other.err);
}

#[test]
fn a_flow_that_cannot_be_run_leaves_the_others() {
    let dir = prepared("run-hindered");
    fs::write(dir.join("plain"), "a file, and no directory").expect("a file");
    let flows = r#"
slackline = 1
[[flows]]
id = "early"
jobs = [
  { id = "there", run = { program = "wordcount", inputs = ["in.txt"], output = "there" } },
  { id = "not", run = { program = "join", inputs = ["@there", "late.txt"], output = "not" } },
]
[[flows]]
id = "walled"
jobs = [ { id = "j", run = { program = "wordcount", inputs = ["in.txt"], output = "plain/below" } } ]
[[flows]]
id = "good"
jobs = [ { id = "j", run = { program = "wordcount", inputs = ["in.txt"], output = "good" } } ]
"#;
    fs::write(dir.join("flow.toml"), flows).expect("a flow file");
    let dry = slackline(&dir, &[&RUN[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, Some(1), "{}", dry.err);
    for word in ["its flow does not start because not cannot run", "1 job to run, of 4"] {
        assert!(dry.out.contains(word), "{word:?} in {}", dry.out);
    }
    let ran = slackline(&dir, &RUN);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    for word in [
        "flow early fails: job not: input \"late.txt\": no such file",
        "flow walled fails: job j: output plain/below: cannot be made",
        "good/j done",
        "2 flows failed",
    ] {
        assert!(ran.err.contains(word), "{word:?} in {}", ran.err);
    }
    assert_eq!(parts(&dir.join("good"))["part-00000"], b"one\t1\nthree\t1\ntwo\t1\n");
    // A flow that cannot finish does not start.
    assert!(!dir.join("there").exists() && !dir.join("not").exists());
    checked(&dir);
    // While the obstacle is there, the result is the same.
    let twice = slackline(&dir, &RUN);
    assert_eq!(twice.code, Some(1), "{}{}", twice.out, twice.err);
    assert!(
        twice.err.contains("flow walled fails") && twice.err.contains("nothing is left to do"),
        "{}",
        twice.err
    );
    // Without the obstacle, the same command runs the rest, and only that.
    fs::write(dir.join("late.txt"), "two\tlate\n").expect("an input");
    fs::remove_file(dir.join("plain")).expect("it can go");
    let rest = slackline(&dir, &RUN);
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    assert!(!rest.err.contains("good/j"), "{}", rest.err);
    assert_eq!(parts(&dir.join("not"))["part-00000"], b"two\t1\tlate\n");
    checked(&dir);
}

#[test]
fn the_history_makes_the_next_prediction() {
    let dir = prepared("run-history");
    let flow = |lines: usize| {
        fs::write(dir.join("in.txt"), "word\n".repeat(lines)).expect("an input");
        let flows = r#"
slackline = 1
[[flows]]
id = "slow"
jobs = [ { id = "j", run = { mapper = "cat; sleep 0.4", inputs = ["in.txt"], output = "out" } } ]
"#;
        fs::write(dir.join("flow.toml"), flows).expect("a flow file");
    };
    let run = |more: &[&str]| {
        let ran =
            slackline(&dir, &[&RUN[..], &["--stats", "--again", "--history", "past.history"], more].concat());
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        let row = ran.out.lines().find(|line| line.starts_with("auto predicted "));
        let prediction = row.map(|row| {
            row.split_whitespace().nth(2).and_then(|s| s.parse::<f64>().ok()).expect("a prediction")
        });
        assert_eq!(
            prediction.is_none(),
            ran.out.contains("no prediction of 1 flow: the history has not all jobs"),
            "{}",
            ran.out
        );
        prediction
    };
    flow(1000);
    assert_eq!(run(&[]), None);
    let known = run(&[]).expect("it ran before");
    assert!((0.35..2.0).contains(&known), "{known}");
    flow(4000);
    let more = run(&[]).expect("it ran before");
    assert!(more > 2.0 * known, "four times the input: {more} after {known}");
    let shown = slackline(&dir, &["history", "past.history", "--format", "csv"]);
    assert_eq!(shown.out.lines().count(), 4, "{}{}", shown.out, shown.err);
    assert!(shown.out.lines().skip(1).all(|line| line.contains("flow.toml,auto,slow,j,1,")), "{}", shown.out);
    // The simulator may learn from the store, but does not add to it.
    let before = fs::read(dir.join("past.history")).expect("the store");
    let args = ["simulate", "state/workload.json", "--policy", "fifo", "--knowledge", "learned", "--history"];
    let simulated = slackline(&dir, &[&args[..], &["past.history"]].concat());
    assert!(
        simulated.code == Some(0) && simulated.err.contains("this simulation is not added"),
        "{}",
        simulated.err
    );
    assert!(fs::read(dir.join("past.history")).expect("the store") == before);
    let exported = slackline(&dir, &["history", "past.history", "--output", "past.json"]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    let simulated = slackline(&dir, &[&args[..], &["past.json"]].concat());
    assert_eq!(simulated.code, Some(0), "{}", simulated.err);
    // The document of simulations is taken as well, and gets the runs.
    let ran = slackline(&dir, &[&RUN[..], &["--again", "--history", "past.json"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let shown = slackline(&dir, &["history", "past.json", "--format", "csv"]);
    assert_eq!(shown.out.lines().count(), 2, "{}{}", shown.out, shown.err);
    // Another file is refused before the run starts, and is unchanged.
    let wrong = slackline(&dir, &["history", "in.txt"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("in.txt:"), "{}", wrong.err);
}
