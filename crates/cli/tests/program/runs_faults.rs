//! Runs with faults: signals, killed processes, commands that misbehave, a full disk, speculative attempts
//! that fail. The run continues if it can, and no output is half written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::processes::{Family, ended, signal, until};
use crate::real_data::skipped;
use crate::runs::{RUN, checked, parts};
use crate::scratch;

/// A directory with a flow of a short job, and a job that hangs until there is a file `go`.
fn hanging(test: &str) -> PathBuf {
    let dir = scratch(test);
    let flow = format!(
        r#"
slackline = 1
[[flows]]
id = "f"
jobs = [
  {{ id = "quick", run = {{ program = "wordcount", inputs = ["in.txt"], output = "quick" }} }},
  {{ id = "slow", run = {{ mapper = "cat; test -e go || sleep {}", inputs = ["@quick"], output = "slow" }} }},
]
"#,
        Family::long()
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\ntwo\nthree\n").expect("an input");
    dir
}

/// Starts the run of a [`hanging`] flow; returns when the second job hangs and the first is cleared up.
fn start_hanging(family: &Family, dir: &Path) -> (Child, u32) {
    let engine = family.start(dir, &RUN);
    let sleeper = family.awaits(&format!("sleep {}", Family::long()));
    until("the first job is cleared up", || !dir.join("quick/_temporary").exists());
    (engine, sleeper)
}

const COUNTS: &[u8] = b"one\t1\nthree\t1\ntwo\t1\n";

/// The files of an output that a reader would take for results.
fn visible(output: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(output) else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("part-") || name == "_SUCCESS").collect()
}

/// The same command finishes hanging tasks once they can continue, and leaves no process.
fn resumes(family: &Family, dir: &Path) {
    assert_eq!(visible(&dir.join("slow")), [""; 0], "nothing is half written");
    assert_eq!(parts(&dir.join("quick"))["part-00000"], COUNTS);
    fs::write(dir.join("go"), "").expect("a file");
    let rest = family.slackline(dir, &RUN);
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    assert!(rest.err.contains("resuming the run: 2 tasks finished"), "{}", rest.err);
    assert!(!rest.err.contains("f/quick done"), "{}", rest.err);
    assert_eq!(parts(&dir.join("slow"))["part-00000"], COUNTS);
    family.is_gone();
    checked(dir);
}

#[test]
fn a_run_that_is_asked_to_stop_leaves_nothing_behind_and_continues() {
    for name in ["INT", "TERM", "HUP"] {
        let test = format!("run-stopped-{name}");
        let (dir, family) = (hanging(&test), Family::new(&test));
        let engine = family.start(&dir, &RUN);
        family.awaits(&format!("sleep {}", Family::long()));
        signal(name, engine.id());
        let stopped = ended(engine);
        assert_eq!(stopped.code, Some(130), "{name}: {}{}", stopped.out, stopped.err);
        assert!(stopped.err.contains("the same command resumes it"), "{name}: {}", stopped.err);
        family.is_gone();
        let left =
            fs::read_dir(dir.join("slow")).expect("the output").map(|e| e.expect("an entry").file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["_temporary"], "nothing but the mark of whose it is");
        resumes(&family, &dir);
    }
}

#[test]
fn tasks_die_with_their_engine() {
    let (dir, family) = (hanging("run-orphans"), Family::new("run-orphans"));
    let (mut engine, _) = start_hanging(&family, &dir);
    engine.kill().expect("it can be killed");
    engine.wait().expect("it is gone");
    family.is_gone();
    resumes(&family, &dir);
}

#[test]
fn a_command_that_outlives_engine_and_worker_is_fenced_off() {
    let (dir, family) = (hanging("run-fence"), Family::new("run-fence"));
    let (mut engine, sleeper) = start_hanging(&family, &dir);
    // The worker of this task: that of the earlier task may be about to end.
    let worker = family.ancestor(sleeper, "slackline worker").expect("a worker started it");
    // A stopped engine does not see the end of its worker, so no process kills the command.
    signal("STOP", engine.id());
    signal("KILL", worker);
    until("the worker is gone", || family.alive().iter().all(|(pid, _)| *pid != worker));
    engine.kill().expect("it can be killed");
    engine.wait().expect("it is gone");
    assert!(family.alive().iter().any(|(pid, _)| *pid == sleeper), "{:?}", family.alive());
    resumes(&family, &dir);
}

#[test]
fn commands_that_misbehave_fail_their_own_flow_only() {
    let (dir, family) = (scratch("run-misbehaves"), Family::new("run-misbehaves"));
    let bytes = b"\xff\xfe\tkey\n\xc3\x28 and \xed\xa0\x80\n\tno key\n\x00\x01\n";
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    fs::write(dir.join("bytes"), bytes).expect("an input");
    let hangs = format!("sleep {}", Family::long());
    let flows = [
        ("exits", "echo half a line; exit 1"),
        ("killed", "echo half a line; kill -9 $$"),
        ("floods", "yes why | head -c 5000000 >&2; exit 7"),
        ("hangs", hangs.as_str()),
        ("bytes", "cat bytes"),
        ("good", "cat"),
    ];
    let flow = |(id, mapper): &(&str, &str)| {
        // The limit on the command line is for the job that hangs: on a busy machine other jobs take seconds.
        let timeout = if *id == "hangs" { "" } else { ", timeout = 600" };
        format!(
            "[[flows]]\nid = '{id}'\njobs = [\n  {{ id = 'j', run = {{ mapper = '{mapper}', \
             inputs = ['in.txt'], output = '{id}.out'{timeout} }} }},\n]\n"
        )
    };
    let text: String = flows.iter().map(flow).collect();
    fs::write(dir.join("flow.toml"), format!("slackline = 1\n{text}")).expect("a flow file");
    let ran =
        family.slackline(&dir, &[&RUN[..], &["--engine", "local:timeout=2", "--attempts", "2"]].concat());
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    for (flow, why) in [
        ("exits", "exit status: 1"),
        ("killed", "signal: 9"),
        ("floods", "exit status: 7"),
        ("hangs", "timed out after 2 s and was killed"),
    ] {
        let start = format!("{flow}/j failed, attempt 2, the last: ");
        let line = ran.err.lines().find(|line| line.contains(&start)).expect("a line says it");
        assert!(line.contains(why), "{why:?} in {line}");
        assert_eq!(visible(&dir.join(format!("{flow}.out"))), [""; 0], "{flow}");
        let summary = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(summary.contains(&format!(" failed: {flow}: job j: ")), "{summary}");
        assert!(summary.contains(why), "{summary}");
        let logs = format!("  slackline logs {flow} j --state state\n");
        assert!(ran.out.contains(&logs), "{}", ran.out);
    }
    assert!(
        ran.out.contains(" flows finished, 4 failed\n") && ran.err.contains("good/j done"),
        "{}",
        ran.err
    );
    assert_eq!(parts(&dir.join("good.out"))["part-00000"], b"one\n");
    assert_eq!(parts(&dir.join("bytes.out"))["part-00000"], bytes);
    let logs = fs::read_dir(dir.join("state/logs")).expect("logs").map(|log| log.expect("a log").path());
    let floods: Vec<PathBuf> = logs.filter(|log| log.to_string_lossy().contains("floods.j.map-0")).collect();
    assert_eq!(floods.len(), 2, "one an attempt");
    for log in floods {
        let size = fs::metadata(&log).expect("a log").len();
        assert!((1000..1 << 20).contains(&size), "{}: {size} bytes", log.display());
    }
    family.is_gone();
    checked(&dir);
}

/// A small separate file system for the time of the test.
struct Disk(PathBuf);

impl Disk {
    /// `None` if the test may not mount.
    fn new(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir_all(&at).expect("a directory can be made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&at).stderr(Stdio::null());
        let is_there = mount.status().is_ok_and(|status| status.success());
        is_there.then_some(Self(at))
    }

    fn grow(&self, size: &str) {
        let status =
            Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0).status();
        assert!(status.expect("it could be mounted").success());
    }

    /// Unmounts the file system of a test that was killed.
    fn unmount(at: &Path) {
        let _ = Command::new("umount").arg("-l").arg(at).stderr(Stdio::null()).status();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Self::unmount(&self.0);
    }
}

const FULL: &str = r#"
slackline = 1
[[flows]]
id = "large"
jobs = [
  { id = "j", run = { program = "generate-text", output = "small/large", args = { bytes = "6MB", maps = 2, words = 500 } } },
  { id = "k", run = { program = "wordcount", inputs = ["@j"], output = "small/words" } },
]
[[flows]]
id = "good"
jobs = [ { id = "j", run = { program = "wordcount", inputs = ["in.txt"], output = "good" } } ]
"#;

/// A run with outputs below `small`, on a disk that is too small for them and for other files there. Returns
/// false if no disk can be mounted.
fn on_a_full_disk(test: &str, size: &str, run: &[&str]) -> bool {
    Disk::unmount(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(test).join("small"));
    let (dir, family) = (scratch(test), Family::new(test));
    let Some(disk) = Disk::new(dir.join("small"), size) else {
        return false;
    };
    fs::write(dir.join("flow.toml"), FULL).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\ntwo\nthree\n").expect("an input");
    let full = family.slackline(&dir, run);
    assert!(matches!(full.code, Some(1 | 2)), "{}{}", full.out, full.err);
    assert!(full.err.contains("No space left on device"), "{}", full.err);
    assert!(!dir.join("small/large/_SUCCESS").exists());
    assert_eq!(visible(&dir.join("small/words")), [""; 0]);
    family.is_gone();
    if full.code == Some(1) {
        assert!(full.err.contains("large/j map") && full.err.contains("good/j done"), "{}", full.err);
        assert_eq!(parts(&dir.join("good"))["part-00000"], COUNTS);
    }
    disk.grow("64m");
    let rest = family.slackline(&dir, run);
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    assert_eq!(parts(&dir.join("good"))["part-00000"], COUNTS);
    let sizes = parts(&dir.join("small/large")).into_values().map(|part| part.len());
    assert!(sizes.sum::<usize>() >= 6_000_000);
    assert!(!parts(&dir.join("small/words"))["part-00000"].is_empty());
    true
}

#[test]
fn a_full_disk_under_outputs_fails_their_flow_only() {
    if on_a_full_disk("run-full-output", "1m", &RUN) {
        checked(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-full-output"));
    } else {
        skipped("no disk can be mounted here");
    }
}

#[test]
fn a_run_continues_after_a_full_disk_under_its_state() {
    let run = ["run", "flow.toml", "--slots", "2", "--state", "small/state"];
    if !on_a_full_disk("run-full-state", "4m", &run) {
        skipped("no disk can be mounted here");
    }
}

/// A phase of three maps, one of them a straggler, with the shell commands of its first and second attempt.
fn straggling(test: &str, first: &str, second: &str) -> PathBuf {
    let dir = scratch(test);
    for (name, line) in [("a", "quick"), ("b", "quick"), ("c", "slow")] {
        fs::write(dir.join(name), format!("{line}\n")).expect("an input");
    }
    let mapper = format!(
        "read x; if test $x = quick; then echo $x; elif mkdir first 2>/dev/null; then {first}; else {second}; fi"
    );
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n  \
         {{ id = 'j', run = {{ mapper = '''{mapper}''', inputs = ['a', 'b', 'c'], output = 'out' }} }},\n]\n"
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    dir
}

#[test]
fn a_speculative_attempt_that_fails_leaves_the_first_alone() {
    // The first attempt ends after the failure of the second was recorded, or never.
    let first = "n=0; until ls state/logs/*.log >/dev/null 2>&1; do n=$((n+1)); test $n -lt 600 || exit 3; \
                 sleep 0.05; done; echo first";
    let dir = straggling("run-second-fails", first, "echo this is why >&2; exit 7");
    let family = Family::new("run-second-fails");
    let ran = family.slackline(&dir, &[&RUN[..], &["--engine=local:speculate=on"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    for word in ["f/j map 2 failed, a speculative attempt; the first one continues: ", "exit status: 7"] {
        assert!(ran.err.contains(word), "{word:?} in {}", ran.err);
    }
    assert_eq!(ran.err.matches(" failed, ").count(), 1, "{}", ran.err);
    let parts: Vec<Vec<u8>> = parts(&dir.join("out")).into_values().collect();
    assert_eq!(parts, [b"quick\n".to_vec(), b"quick\n".to_vec(), b"first\n".to_vec()]);
    family.is_gone();
    checked(&dir);
}

#[test]
fn a_speculative_attempt_that_is_faster_is_the_one_that_counts() {
    let hangs = format!("echo first; exec sleep {}", Family::long());
    let dir = straggling("run-second-wins", &hangs, "echo second");
    let family = Family::new("run-second-wins");
    let ran = family.slackline(&dir, &[&RUN[..], &["--engine=local:speculate=on"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let parts = parts(&dir.join("out"));
    assert!(parts["part-00002"] == b"second\n" && parts.len() == 3, "{parts:?}");
    family.is_gone();
    checked(&dir);
}

/// Defect 9: a state directory that one flow filled stopped all flows.
#[test]
fn a_full_state_directory_fails_the_flow_that_fills_it_only() {
    let test = "run-full-state-hog";
    Disk::unmount(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(test).join("small"));
    let (dir, family) = (scratch(test), Family::new(test));
    let Some(disk) = Disk::new(dir.join("small"), "4m") else {
        return skipped("no disk can be mounted here");
    };
    let flow = "slackline = 1\n\
        [[flows]]\nid = 'hog'\njobs = [\n  { id = 'j', run = { mapper = 'yes x | head -c 30000000', reducer = 'cat', \
        inputs = ['in.txt'], output = 'hog' } },\n]\n\
        [[flows]]\nid = 'good'\njobs = [\n  { id = 'j', run = { mapper = 'sleep 0.3; cat', inputs = ['in.txt'], \
        output = 'good' } },\n  { id = 'k', run = { mapper = 'sleep 0.3; cat', inputs = ['@j'], output = 'k' } },\n]\n";
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\ntwo\n").expect("an input");
    let ran = family.slackline(&dir, &["run", "flow.toml", "--slots", "2", "--state", "small/state"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("hog/j map 0 failed") && ran.err.contains("No space left on device"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("journal"), "{}", ran.err);
    assert_eq!(parts(&dir.join("k"))["part-00000"], b"one\ntwo\n");
    family.is_gone();
    drop(disk);
}

/// Defect 24: processes in a separate session survived the end of their task, and the end of the run.
#[test]
fn processes_that_leave_their_session_end_with_their_task_and_run() {
    let (dir, family) = (scratch("run-setsid"), Family::new("run-setsid"));
    let (sleeper, other) = (format!("sleep {}", Family::long()), format!("sleep 1{}", Family::long()));
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n  \
         {{ id = 'j', run = {{ mapper = 'cat; setsid {other} >/dev/null 2>&1 & sleep 0.1', inputs = ['in.txt'], output = 'j' }} }},\n  \
         {{ id = 'k', run = {{ mapper = 'cat; test -e go || setsid -w {sleeper}', inputs = ['@j'], output = 'k' }} }},\n]\n"
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let engine = family.start(&dir, &RUN);
    family.awaits(&format!("setsid -w {sleeper}"));
    assert!(!family.alive().iter().any(|(_, line)| line.contains(&other)), "{:?}", family.alive());
    signal("INT", engine.id());
    let stopped = ended(engine);
    assert!(stopped.err.contains("the same command resumes it"), "{}", stopped.err);
    family.is_gone();
    let mut engine = family.start(&dir, &RUN);
    family.awaits(&format!("setsid -w {sleeper}"));
    engine.kill().expect("it can be killed");
    engine.wait().expect("it is gone");
    family.is_gone();
    fs::write(dir.join("go"), "").expect("a file");
    let ran = family.slackline(&dir, &RUN);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    family.is_gone();
}
