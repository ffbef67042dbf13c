//! Flows on several machines. Each machine is this one under another name: scripts replace `ssh` and the
//! commands of Slurm. The outputs equal those of a run on one machine, and lost work runs again on another
//! machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::processes::{Family, ended, parent, signal, until, write_program};
use crate::runs::{checked, command, killed_again_and_again, parts, prepared, results};
use crate::{Ran, ran, scratch};

/// The run of the tests, on three machines.
const RUN: [&str; 6] = ["run", "flow.toml", "--engine", "ssh:hosts=hosts,ssh=./reach", "--state", "state"];

/// Replaces ssh: it gets a machine and a command, which it runs here, and writes its process number to a
/// file.
pub(crate) const SSH: &str = "#!/bin/sh\necho $$ > pid-$1\nexec sh -c \"$2\"\n";

/// The same, with a command that continues on the other machine when it is killed here.
const FAR: &str = "#!/bin/sh\nsh -c \"echo \\$\\$ > pid-$1; $2\"\n";

/// A directory with machines of as many slots.
pub(crate) fn with_machines(dir: PathBuf, ssh: &str, slots: &[u32]) -> PathBuf {
    let hosts: Vec<String> = (1..).zip(slots).map(|(k, slots)| format!("n{k} slots={slots}\n")).collect();
    fs::write(dir.join("hosts"), hosts.concat()).expect("a file of machines");
    write_program(&dir.join("reach"), ssh);
    dir
}

fn slackline(dir: &Path, args: &[&str]) -> Ran {
    ran(&command(dir, args).output().expect("the program starts"))
}

/// The names of the machines in the schedule of the run.
fn machines(dir: &Path) -> BTreeSet<String> {
    let text = fs::read(dir.join("state/schedule.json")).expect("a schedule");
    let schedule: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
    let names = schedule["tasks"].as_array().expect("rows").iter().flat_map(|row| {
        let places = row["places"].as_array().into_iter().flatten();
        let places =
            places.map(|place| place.as_str().expect("a place").split('/').next().unwrap().to_owned());
        places.chain(row["machine"].as_str().map(str::to_owned))
    });
    names.collect()
}

#[test]
fn the_bytes_are_those_of_one_machine_and_the_schedule_names_all() {
    let (one, several) = (prepared("fleet-one"), with_machines(prepared("fleet-same"), SSH, &[2, 1, 2]));
    assert_eq!(slackline(&one, &crate::runs::RUN).code, Some(0));
    for policy in ["fifo", "fair", "dmrs", "auto"] {
        let ran = slackline(&several, &[&RUN[..], &["--policy", policy, "--again", "--stats"]].concat());
        assert_eq!(ran.code, Some(0), "{policy}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains("on 3 machines (5 generic slots)"), "{}", ran.out);
        assert!(results(&several) == results(&one), "{policy}");
        checked(&several);
        assert_eq!(machines(&several), ["n1", "n2", "n3"].map(str::to_owned).into());
    }
    // The files that check the shared directory are removed, and so are those of agents.
    let left =
        fs::read_dir(several.join("state")).expect("the state").map(|e| e.expect("an entry").file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("seen-")));
}

/// A task that hangs until there is a file `go`.
pub(crate) const HANGS: &str = "until test -e go; do sleep 0.1; done";

/// A directory with a flow of a short job and two tasks that hang until there is a file `go`.
pub(crate) fn hanging(test: &str, ssh: &str) -> PathBuf {
    let dir = with_machines(scratch(test), ssh, &[1, 1, 1]);
    let flow = format!(
        r#"
slackline = 1
[[flows]]
id = "f"
jobs = [
  {{ id = "quick", run = {{ program = "wordcount", inputs = ["in.txt"], output = "quick" }} }},
  {{ id = "one", run = {{ mapper = "cat; {HANGS}", inputs = ["@quick"], output = "one" }} }},
  {{ id = "two", run = {{ mapper = "cat; {HANGS}", inputs = ["@quick"], output = "two" }} }},
]
"#
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\ntwo\nthree\n").expect("an input");
    dir
}

/// A run in which two tasks hang, and the agents of their machines.
fn start(family: &Family, dir: &Path) -> (Child, Vec<u32>) {
    let err = fs::File::create(dir.join("err")).expect("a file");
    let mut run = family.command(dir, &RUN);
    let run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(err).spawn().expect("it starts");
    let hang = || {
        let all = family.alive().into_iter().filter(|(_, line)| line.contains(HANGS));
        all.map(|(pid, _)| pid).collect::<Vec<_>>()
    };
    // A shell that starts a process appears twice for a moment.
    let (mut before, mut agents) = (Vec::new(), Vec::new());
    until("two tasks hang", || {
        let now = hang();
        agents = now.iter().filter_map(|&pid| family.ancestor(pid, "slackline agent")).collect();
        let is_so = agents.len() == 2 && now == before;
        before = now;
        is_so
    });
    (run, agents)
}

fn err(dir: &Path) -> String {
    fs::read_to_string(dir.join("err")).expect("what was said")
}

/// The run succeeds after the file `go` is there, and leaves no process or file.
fn ends(family: &Family, dir: &Path, mut run: Child) {
    fs::write(dir.join("go"), "").expect("a file");
    let status = run.wait().expect("it ends");
    assert!(status.success(), "{status:?}: {}", err(dir));
    for output in ["quick", "one", "two"] {
        assert_eq!(parts(&dir.join(output))["part-00000"], b"one\t1\nthree\t1\ntwo\t1\n", "{output}");
    }
    checked(dir);
    family.is_gone();
}

#[test]
fn an_agent_that_is_killed_has_its_tasks_done_elsewhere_and_is_started_again() {
    let family = Family::new("fleet-agent-killed");
    let dir = hanging("fleet-agent-killed", SSH);
    let (run, agents) = start(&family, &dir);
    signal("KILL", agents[0]);
    until("it is noticed", || err(&dir).contains(" is down: its agent ended"));
    until("it is there again", || err(&dir).contains(" is up\n"));
    let gone = err(&dir).split("machine ").nth(1).expect("a machine")[..2].to_owned();
    // An observer sees the machine of each task and of each lost output.
    let status = || -> serde_json::Value {
        let ran = slackline(&dir, &["status", "--state", "state", "--format", "json"]);
        serde_json::from_str(&ran.out).expect("it is JSON")
    };
    until("both are running again", || status()["at_work"].as_array().is_some_and(|all| all.len() == 2));
    let seen = status();
    assert_eq!(seen["machines"].as_array().expect("machines").len(), 3);
    let of_gone = seen["machines"].as_array().unwrap().iter().find(|machine| machine["machine"] == *gone);
    assert_eq!(of_gone.expect("it is one of them")["stopped_attempts"], 1, "{seen:#}");
    for one in seen["at_work"].as_array().unwrap() {
        assert!(["n1", "n2", "n3"].iter().any(|name| one["machine"] == **name) && one["slot"] == 0, "{one}");
    }
    let text = slackline(&dir, &["status", "--state", "state"]).out;
    assert!(text.contains("machine  slots  running  tasks done") && text.contains(", slot 0 of n"), "{text}");
    let why = slackline(&dir, &["explain", "f", "--state", "state"]).out;
    assert!(why.contains(&format!("lost on {gone}: 1 attempt stopped")), "{why}");
    ends(&family, &dir, run);
    let printed = slackline(&dir, &["logs", "f", "one", "--state", "state"]);
    let also = slackline(&dir, &["logs", "f", "two", "--state", "state"]);
    let (printed, also) = (printed.out + &also.out, printed.err + &also.err);
    assert!(
        printed.contains(&format!("stopped on {gone} at ")) || also.contains("wrote no output"),
        "{printed}{also}"
    );
}

#[test]
fn a_machine_that_hangs_is_given_up_and_ends_what_it_had_when_it_continues() {
    let family = Family::new("fleet-hangs");
    let dir = hanging("fleet-hangs", FAR);
    let (run, agents) = start(&family, &dir);
    signal("STOP", agents[0]);
    until("it is noticed", || err(&dir).contains(" is down: it sent nothing for 10 s"));
    // Another agent of the same run on the same machine does not start beside it.
    until("it is there again", || err(&dir).contains(" is up\n"));
    until("the first one is gone", || family.alive().iter().all(|(pid, _)| *pid != agents[0]));
    ends(&family, &dir, run);
}

#[test]
fn an_agent_that_was_stopped_for_too_long_ends_with_everything() {
    let family = Family::new("fleet-stopped-agent");
    let dir = hanging("fleet-stopped-agent", FAR);
    let (mut run, agents) = start(&family, &dir);
    let link = parent(agents[0]);
    signal("STOP", agents[0]);
    // No process is left that could end it. If it has stopped by then, the system ends it and its link, as it
    // does with every stopped process group that loses its parent.
    run.kill().expect("it can be killed");
    run.wait().expect("it is gone");
    let is_other = |pid: u32| pid != agents[0] && Some(pid) != link;
    until("the others are gone", || {
        !family.alive().iter().any(|(pid, line)| is_other(*pid) && line.contains("slackline agent"))
    });
    signal("CONT", agents[0]);
    family.is_gone();
}

#[test]
fn a_driver_that_is_killed_leaves_nothing_running_and_continues() {
    let family = Family::new("fleet-driver-killed");
    let dir = hanging("fleet-driver-killed", FAR);
    let (mut run, _) = start(&family, &dir);
    // Meanwhile no other process drives it.
    let other = family.slackline(&dir, &RUN);
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("another process uses it"), "{}", other.err);
    run.kill().expect("it can be killed");
    run.wait().expect("it is gone");
    family.is_gone();
    let (run, _) = start(&family, &dir);
    assert!(err(&dir).contains("resuming the run: 2 tasks finished"), "{}", err(&dir));
    ends(&family, &dir, run);
}

#[test]
fn a_driver_that_is_asked_to_stop_has_all_machines_end() {
    let family = Family::new("fleet-driver-stopped");
    let dir = hanging("fleet-driver-stopped", SSH);
    let (mut run, _) = start(&family, &dir);
    signal("INT", run.id());
    assert_eq!(run.wait().expect("it ends").code(), Some(130), "{}", err(&dir));
    family.is_gone();
}

/// `SLACKLINE_SCALE=k` kills k times as often.
#[test]
fn a_run_on_several_machines_that_is_killed_continues_and_gives_the_same() {
    let (calm, dir) = (prepared("fleet-calm"), with_machines(prepared("fleet-killed"), SSH, &[1, 1, 1]));
    fs::write(dir.join("others"), "n2 slots=2\nn4 slots=1\n").expect("a file of machines");
    fs::write(dir.join("one"), "n1 slots=3\n").expect("a file of machines");
    let on = |engine, more: &[&'static str]| {
        let run = ["run", "flow.toml", "--engine", engine, "--engine", "ssh:ssh=./reach", "--state", "state"];
        [&run[..], more].concat()
    };
    let runs = [
        on("ssh:hosts=hosts", &[]),
        on("ssh:hosts=others", &["--slowstart", "0.05"]),
        on("ssh:hosts=hosts", &["--policy", "fair"]),
        on("ssh:hosts=one", &["--policy", "fifo", "--slowstart", "0"]),
        on("ssh:hosts=others", &["--policy", "edf"]),
    ];
    let runs: Vec<&[&str]> = runs.iter().map(Vec::as_slice).collect();
    killed_again_and_again(&Family::new("fleet-killed"), &calm, &dir, &runs);
}

#[test]
fn a_run_continues_on_other_machines() {
    let (calm, dir) = (prepared("fleet-calm-other"), with_machines(prepared("fleet-other"), SSH, &[2, 1]));
    assert_eq!(slackline(&calm, &crate::runs::RUN).code, Some(0));
    let family = Family::new("fleet-other");
    // Each session is stopped after one or two more tasks.
    let mut last = None;
    for hosts in
        ["n1 slots=2\nn2 slots=1\n", "n2 slots=2\nn3 slots=1\n", "n3 slots=1\n", "n1 slots=3\nn3 slots=2\n"]
    {
        fs::write(dir.join("hosts"), hosts).expect("other machines");
        let mut run = family.command(&dir, &RUN);
        run.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("err")).expect("a file"));
        let mut child = run.spawn().expect("it starts");
        let before = crate::runs::committed(&dir);
        until("something more is done", || {
            child.try_wait().expect("it can be asked").is_some() || crate::runs::committed(&dir) > before
        });
        signal("INT", child.id());
        last = child.wait().expect("it ends").code();
        assert!(matches!(last, Some(0 | 130)), "{last:?}: {}", err(&dir));
    }
    if last != Some(0) {
        let rest = slackline(&dir, &RUN);
        assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    }
    assert!(results(&dir) == results(&calm));
    checked(&dir);
}

#[test]
fn machines_that_are_not_there_are_said_and_the_others_continue_without_them() {
    let dir = with_machines(prepared("fleet-missing"), SSH, &[1, 1]);
    write_program(
        &dir.join("reach"),
        "#!/bin/sh\ntest $1 = n1 || { echo \"$1: no route\" >&2; exit 255; }\nexec sh -c \"$2\"\n",
    );
    let ran = slackline(&dir, &RUN);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("machine n2 is down: its agent ended without an answer: n2: no route"),
        "{}",
        ran.err
    );
    assert_eq!(machines(&dir), ["n1".to_owned()].into());
    checked(&dir);
    write_program(&dir.join("reach"), "#!/bin/sh\necho closed >&2\nexit 255\n");
    let ran = slackline(&dir, &[&RUN[..], &["--again"]].concat());
    assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
    for word in ["no machine responds", "n1: its agent ended without an answer: closed", "n2: its"] {
        assert!(ran.err.contains(word), "{word:?} in {}", ran.err);
    }
}

#[test]
fn a_run_has_the_speeds_that_an_earlier_one_has_shown() {
    // The costs of a machine include the connection to it.
    let ssh = "#!/bin/sh\ncase $1 in n1) PACE=0.01;; *) PACE=2;; esac\nexport PACE\nexec sh -c \"$2\"\n";
    let dir = with_machines(scratch("fleet-speeds"), ssh, &[1, 1]);
    let flow = r#"
slackline = 1
[[flows]]
id = "f"
jobs = [{ id = "j", run = { mapper = "cat; sleep $PACE", inputs = ["in/*"], output = "out" } }]
"#;
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::create_dir(dir.join("in")).expect("a directory");
    for k in 0..6 {
        fs::write(dir.join(format!("in/{k}")), format!("{k:1023}\n")).expect("an input");
    }
    let args = [&RUN[..], &["--history", "history", "--engine", "ssh:split=1KiB", "--again"]].concat();
    let speeds = |dir: &Path| -> Vec<f64> {
        let text = fs::read(dir.join("state/workload.json")).expect("a workload");
        let workload: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
        let machines = workload["cluster"]["machines"].as_array().expect("machines");
        machines.iter().map(|machine| machine["speed"].as_f64().unwrap_or(1.0)).collect()
    };
    let first = slackline(&dir, &args);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(speeds(&dir), [1.0, 1.0], "nothing is known yet");
    for policy in ["dmrs", "auto"] {
        let second = slackline(&dir, &[&args[..], &["--policy", policy]].concat());
        assert_eq!(second.code, Some(0), "{}", second.err);
        checked(&dir);
        let speeds = speeds(&dir);
        assert!(speeds[0] > 1.2 * speeds[1], "{policy}: {speeds:?}");
    }
    // The speed in the file counts.
    fs::write(dir.join("hosts"), "n1 slots=1 speed=1\nn2 slots=1 speed=1\n").expect("a file of machines");
    let third = slackline(&dir, &args);
    assert_eq!(third.code, Some(0), "{}", third.err);
    assert_eq!(speeds(&dir), [1.0, 1.0]);
    // An unchanged machine without a speed in the file keeps the unit of the one that has a speed.
    fs::write(dir.join("hosts"), "n1 slots=1\nn2 slots=1 speed=3\n").expect("a file of machines");
    let fourth = slackline(&dir, &args);
    assert_eq!(fourth.code, Some(0), "{}", fourth.err);
    let speeds = speeds(&dir);
    assert!(speeds[1] == 3.0 && speeds[0] > 1.2 * 3.0, "{speeds:?}");
}

#[test]
fn a_machine_that_sees_something_else_keeps_the_run_from_beginning() {
    // The messages to the second machine are changed on the way.
    let ssh = "#!/bin/sh\ntest $1 = n1 || { sed -u -f change | sh -c \"$2\"; exit; }\nexec sh -c \"$2\"\n";
    let dir = with_machines(prepared("fleet-blind"), ssh, &[1, 1]);
    let printed = |change: &str| {
        fs::write(dir.join("change"), change).expect("a file");
        let ran = slackline(&dir, &RUN);
        assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
        assert!(!dir.join("text").exists() && !dir.join("state").exists(), "nothing has begun");
        ran.err
    };
    let error = printed(r#"s|"directory":"[^"]*"|"directory":"/nowhere"|"#);
    assert!(error.contains("n2: /nowhere: cannot be entered"), "{error}");
    let error = printed(r#"s|"v":1|"v":7|"#);
    assert!(error.contains("n2: found version 7 of the protocol, expected 1"), "{error}");
    let error = printed(r#"s|"program":"[^"]*"|"program":"0.0.1"|"#);
    assert!(error.contains("n2: found slackline 0.0.1, expected "), "{error}");
}

#[test]
fn the_file_of_machines_is_read_to_the_letter() {
    let dir = prepared("fleet-hosts");
    let error = |hosts: &str| {
        fs::write(dir.join("hosts"), hosts).expect("a file of machines");
        let ran = slackline(&dir, &RUN);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        ran.err
    };
    assert!(
        error("n1 slots=2\nn2 slots=many\n").contains("hosts:2: found slots=many, expected a whole number")
    );
    assert!(error("").contains("hosts: found no machines, expected a line for each"));
    fs::remove_file(dir.join("hosts")).expect("it can go");
    let ran = slackline(&dir, &RUN);
    assert!(ran.code == Some(2) && ran.err.contains("hosts: No such file"), "{}", ran.err);
    let ran = slackline(&dir, &["run", "flow.toml", "--engine", "ssh"]);
    assert!(
        ran.code == Some(2) && ran.err.contains("hosts=none, expected a file with a line"),
        "{}",
        ran.err
    );
}

#[test]
fn map_output_is_where_it_is_asked_to_be_and_goes_with_the_run() {
    let dir = with_machines(prepared("fleet-shared"), SSH, &[2, 1]);
    let shared = [&RUN[..], &["--engine", "ssh:shared=scratch"]].concat();
    let family = Family::new("fleet-shared");
    let mut child = family.start(&dir, &shared);
    let own = || {
        let entries = fs::read_dir(dir.join("scratch")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).find(|path| path.join("maps").exists())
    };
    until("a map is done", || own().is_some() || child.try_wait().expect("it can be asked").is_some());
    child.kill().expect("it can be killed");
    child.wait().expect("it is gone");
    assert!(!dir.join("state/maps").exists() && !dir.join("state/attempts").exists());
    if !dir.join("state/schedule.json").exists() {
        let other = slackline(&dir, &[&RUN[..], &["--engine", "ssh:shared=elsewhere"]].concat());
        assert_eq!(other.code, Some(2), "{}", other.err);
        assert!(other.err.contains("the map output of this run is in "), "{}", other.err);
    }
    // The resumed run knows the directory of its map output.
    let rest = slackline(&dir, &RUN);
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    checked(&dir);
    let cleaned = slackline(&dir, &["clean", "--state", "state"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.err);
    assert!(!dir.join("state").exists());
    let left = fs::read_dir(dir.join("scratch")).expect("it is there").count();
    assert_eq!(left, 0, "nothing of it is left");
}

/// Starts an agent, and sends these lines; returns its output and its exit code.
fn agent(dir: &Path, lines: &str) -> (String, Option<i32>) {
    let mut child = command(dir, &["agent"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    std::io::Write::write_all(&mut stdin, lines.as_bytes()).expect("the agent reads");
    drop(stdin);
    let ended = ended(child);
    (ended.out, ended.code)
}

#[test]
fn an_agent_says_what_it_does_not_understand() {
    let dir = scratch("fleet-agent");
    let hello = |v: u32, program: &str| {
        let directory = dir.display();
        format!(
            "{{\"hello\":{{\"v\":{v},\"program\":\"{program}\",\"owner\":\"1-1\",\"machine\":\"a\",\"directory\":\"{directory}\",\
             \"proofs\":[],\"env\":[]}}}}\n"
        )
    };
    let version = env!("CARGO_PKG_VERSION");
    let refused = |lines: &str, expected: &str| {
        let (said, code) = agent(&dir, lines);
        assert_eq!(code, Some(2), "{said}");
        let last = said.lines().last().expect("it says something");
        assert!(last.starts_with("{\"refused\":{\"v\":1,\"why\":") && last.contains(expected), "{last}");
    };
    refused("what?\n", "expected hello with the version of the protocol");
    refused(&hello(2, version), "found version 2 of the protocol, expected 1");
    refused(&hello(1, "0.0.1"), "found slackline 0.0.1, expected");
    refused("{\"hello\":{\"v\":1}}\n", "found slackline of an unknown version, expected");
    let (said, code) = agent(&dir, &hello(1, version));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(agent(&dir, ""), (String::new(), Some(0)), "no client asks for anything");
}

/// Replaces Slurm: two nodes, whose allocation lasts for the time in the file `left`.
fn with_slurm(dir: &Path) {
    fs::create_dir_all(dir.join("bin")).expect("a directory");
    fs::write(dir.join("left"), "UNLIMITED\n").expect("a file");
    write_program(&dir.join("bin/squeue"), "#!/bin/sh\ncat left\n");
    let srun = "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do\n  case $1 in --nodelist=*) node=${1#--nodelist=};; esac\n  \
                shift\ndone\necho $node >> nodes\nexec \"$@\"\n";
    write_program(&dir.join("bin/srun"), srun);
    // Each allocation has other nodes, and all but the first one have no time limit.
    let salloc = "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do echo $1 >> asked; shift; done\n\
                  n=$(cat count 2> /dev/null || echo 0); n=$((n + 1)); echo $n > count\n\
                  test $n = 1 || echo UNLIMITED > left\n\
                  echo \"salloc: Granted job allocation $n\" >&2\n\
                  export SLURM_JOB_ID=$n SLURM_JOB_NODELIST=\"m$n[1-2]\" SLURM_JOB_CPUS_PER_NODE='1(x2)'\n\
                  exec 3<&0\n\"$@\" <&3 &\nchild=$!\ntrap 'kill $child' HUP TERM INT\nwait $child\necho $n >> given-back\n";
    write_program(&dir.join("bin/salloc"), salloc);
}

/// The program with these commands in place of Slurm's.
fn on_slurm(family: &Family, dir: &Path, args: &[&str]) -> Command {
    let mut command = family.command(dir, args);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", dir.join("bin").display()));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SLURM_")) {
        command.env_remove(name);
    }
    command
}

/// The same in an allocation.
fn in_allocation(family: &Family, dir: &Path, args: &[&str]) -> Ran {
    let mut command = on_slurm(family, dir, args);
    command
        .env("SLURM_JOB_ID", "7")
        .env("SLURM_JOB_NODELIST", "n[1-2]")
        .env("SLURM_JOB_CPUS_PER_NODE", "2,1");
    ran(&command.output().expect("the program starts"))
}

const SLURM: [&str; 6] = ["run", "flow.toml", "--engine", "slurm", "--state", "state"];

#[test]
fn the_nodes_of_an_allocation_are_the_machines_of_a_run_in_it() {
    let (one, dir) = (prepared("fleet-slurm-one"), prepared("fleet-slurm"));
    assert_eq!(slackline(&one, &crate::runs::RUN).code, Some(0));
    with_slurm(&dir);
    let family = Family::new("fleet-slurm");
    let ran = in_allocation(&family, &dir, &[&SLURM[..], &["--stats"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("on 2 machines (3 generic slots)"), "{}", ran.out);
    assert!(results(&dir) == results(&one));
    assert_eq!(machines(&dir), ["n1", "n2"].map(str::to_owned).into());
    checked(&dir);
    family.is_gone();
    let outside = crate::ran(&on_slurm(&family, &dir, &SLURM).output().expect("the program starts"));
    assert_eq!(outside.code, Some(2), "{}", outside.err);
    assert!(outside.err.contains("not in a Slurm allocation (SLURM_JOB_ID is not set)"), "{}", outside.err);
    let more = [&SLURM[..], &["--engine", "slurm:time=1:00"]].concat();
    let ran = in_allocation(&family, &dir, &more);
    assert!(ran.code == Some(2) && ran.err.contains("expected nodes=N with it"), "{}", ran.err);
}

/// A flow of two jobs: one that takes almost no time, and one with an estimate of five minutes.
fn long_and_short(test: &str) -> PathBuf {
    let dir = scratch(test);
    let flow = r#"
slackline = 1
[[flows]]
id = "f"
jobs = [
  { id = "short", map = { tasks = 1, seconds = 0.001 }, run = { command = "cat in.txt", inputs = ["in.txt"], output = "short" } },
  { id = "long", map = { tasks = 1, seconds = 300.0 }, run = { command = "cat in.txt", inputs = ["in.txt"], output = "long" } },
]
"#;
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    dir
}

#[test]
fn nothing_starts_that_would_not_end_before_the_allocation_does_and_the_next_one_has_the_rest() {
    let (dir, family) = (long_and_short("fleet-horizon"), Family::new("fleet-horizon"));
    with_slurm(&dir);
    fs::write(dir.join("left"), "4:00\n").expect("a file");
    for policy in ["fifo", "dmrs"] {
        let args = [&SLURM[..], &["--policy", policy]].concat();
        let ran = in_allocation(&family, &dir, &args);
        assert_eq!(ran.code, Some(130), "{}{}", ran.out, ran.err);
        assert!(
            ran.err.contains("the remaining tasks are estimated to end after the allocation"),
            "{}",
            ran.err
        );
        assert!(dir.join("short/_SUCCESS").exists() && !dir.join("long/_SUCCESS").exists());
    }
    fs::write(dir.join("left"), "1-00:00:00\n").expect("a file");
    let ran = in_allocation(&family, &dir, &SLURM);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("resuming the run: 1 task finished"), "{}", ran.err);
    assert_eq!(parts(&dir.join("long"))["part-00000"], b"one\n");
    checked(&dir);
    family.is_gone();
}

#[test]
fn allocations_are_asked_for_one_after_the_other_and_given_back() {
    let (dir, family) = (long_and_short("fleet-allocations"), Family::new("fleet-allocations"));
    with_slurm(&dir);
    fs::write(dir.join("left"), "4:00\n").expect("a file");
    let args =
        [&SLURM[..], &["--engine", "slurm:nodes=2,time=5:00,salloc=--partition=main --qos=low"]].concat();
    let done = crate::ran(&on_slurm(&family, &dir, &args).output().expect("the program starts"));
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    for word in
        ["salloc: Granted job allocation 1", "machine m11 is down: its allocation has ended", "machine m2"]
    {
        assert!(done.err.contains(word), "{word:?} in {}", done.err);
    }
    let read = |name: &str| fs::read_to_string(dir.join(name)).expect("it is written");
    let asked: Vec<String> = read("asked").lines().map(str::to_owned).collect();
    let expected = [
        "--nodes=2",
        "--job-name=slackline",
        "--no-bell",
        "--kill-command=TERM",
        "--exclusive",
        "--time=5:00",
        "--partition=main",
        "--qos=low",
    ];
    assert_eq!(asked, [expected, expected].concat());
    let names = machines(&dir);
    assert!(
        names.iter().any(|name| name.starts_with("m1")) && names.iter().any(|name| name.starts_with("m2")),
        "{names:?}"
    );
    checked(&dir);
    family.is_gone();
    assert_eq!(read("given-back"), "1\n2\n");
}

#[test]
fn an_allocation_that_is_refused_is_reported() {
    let (dir, family) = (hanging("fleet-allocation-refused", SSH), Family::new("fleet-allocation-refused"));
    with_slurm(&dir);
    let args = [&SLURM[..], &["--engine", "slurm:nodes=2"]].concat();
    write_program(
        &dir.join("bin/salloc"),
        "#!/bin/sh\necho 'salloc: error: invalid partition' >&2\nexit 1\n",
    );
    let refused = crate::ran(&on_slurm(&family, &dir, &args).output().expect("the program starts"));
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused.err.contains("salloc gave no allocation: salloc: error: invalid partition"),
        "{}",
        refused.err
    );
}
