//! Flows on a Hadoop cluster, without Hadoop: the ResourceManager and the submitter are mocks, the tasks are
//! real.

mod hadoop;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use slackline_yarn::AppState;
use slackline_yarn::cluster::table::Table;

use crate::processes::{ended, pause, signal, until};
use crate::run_messages::events;
use crate::runs::{command, parts};
use crate::runs_watched::{done, status};
use crate::{ran, scratch};

use self::hadoop::Hadoop;

const FLOW: &str = r#"
slackline = 1
[[flows]]
id = "library"
jobs = [
  { id = "words", run = { program = "wordcount", inputs = ["in.txt"], output = "words", reducers = 2 } },
  { id = "sorted", run = { program = "sort", inputs = ["@words"], output = "sorted" } },
]
"#;

/// Lines of words with different frequencies.
fn prepare(dir: &Path) {
    let line =
        |n: u32| format!("the {} of {} and {}\n", n % 7, n * n % 101, n.wrapping_mul(2_654_435_761) % 1009);
    let lines: String = (0..3000).map(line).collect();
    fs::write(dir.join("in.txt"), lines).unwrap();
    fs::write(dir.join("flow.toml"), FLOW).unwrap();
}

const JAR: &str = r#"
slackline = 1
[[flows]]
id = "library"
jobs = [
  { id = "words", run = { jar = "etl.jar", main = "Count", arguments = ["{inputs}", "{output}"], inputs = ["in.txt"], output = "words", reducers = 2 } },
  { id = "sorted", run = { program = "sort", inputs = ["@words"], output = "sorted" } },
]
"#;

/// A flow whose first job is a jar, beside a job that counts the same words by a built-in program.
fn prepare_jar(dir: &Path, flow: &str) {
    prepare(dir);
    fs::write(dir.join("jar.toml"), flow).unwrap();
    fs::write(dir.join("etl.jar"), "classes").unwrap();
}

/// All lines of an output, in order.
fn sorted_lines(output: &Path) -> Vec<String> {
    let text: Vec<u8> = parts(output).into_values().flatten().collect();
    let mut lines: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_jar_is_a_job_whose_output_others_read() {
    let dir = scratch("cluster-jar");
    prepare_jar(&dir, JAR);
    let refused = ran(&command(&dir, &["run", "jar.toml"]).output().unwrap());
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("flows[0].jobs[0].run.jar"), "{}", refused.err);
    assert!(refused.err.contains("only a Hadoop cluster runs jars"), "{}", refused.err);
    assert!(!dir.join(".slackline").exists() && !dir.join("words").exists());
    let here = dir.join("here");
    fs::create_dir(&here).unwrap();
    prepare(&here);
    let local = ran(&command(&here, &["run", "flow.toml", "--quiet"]).output().unwrap());
    assert_eq!(local.code, Some(0), "{}", local.err);

    let hadoop = Hadoop::start(&dir);
    let mut run = command(&dir, &["run", "jar.toml", "--engine", "yarn:split=16KiB,memory=512MiB"]);
    run.args(["--policy", "fifo", "--state", "state", "--events", "events"]).args(hadoop.arguments());
    let run = ran(&run.output().unwrap());
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert_eq!(sorted_lines(&dir.join("words")), sorted_lines(&here.join("words")));
    assert_eq!(parts(&dir.join("sorted")), parts(&here.join("sorted")));
    assert_eq!(parts(&dir.join("words")).len(), 2);

    // Its two applications end before the next job starts, and each planned task was reported once.
    let apps = hadoop.applications();
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["Count", "Count", "library/sorted"]);
    assert!(apps[1].finished_ms <= apps[2].submitted_ms);
    let planned = apps[1].maps - 1 + apps[1].reduces;
    let printed = events(&dir.join("events"));
    let done = printed.iter().filter(|event| event["event"] == "task_done" && event["job"] == "words");
    assert_eq!(done.count() as u32, planned);
    let checked = command(&dir, &["check", "state/workload.json", "state/schedule.json"]).output().unwrap();
    assert_eq!(ran(&checked).code, Some(0), "{}", ran(&checked).err);
}

#[test]
fn a_jar_that_fails_says_why() {
    let dir = scratch("cluster-jar-fails");
    prepare_jar(&dir, &JAR.replace("Count", "Fails"));
    let hadoop = Hadoop::start(&dir);
    let mut run = command(&dir, &["run", "jar.toml", "--engine", "yarn:memory=512MiB", "--state", "state"]);
    let run = ran(&run.args(hadoop.arguments()).output().unwrap());
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let said = format!("{}{}", run.out, run.err);
    assert!(said.contains("the program of the jar ended with exit code 3:"), "{said}");
    assert!(said.contains("Table not found"), "{said}");
    assert!(!dir.join("words").join("_SUCCESS").exists());
}

#[test]
fn a_jar_is_killed_with_its_run_and_done_again_by_the_next() {
    for name in ["INT", "KILL"] {
        let dir = scratch(&format!("cluster-jar-{name}"));
        prepare_jar(&dir, &JAR.replace("Count", "Waits"));
        let hadoop = Hadoop::start(&dir);
        let run = || {
            let mut run =
                command(&dir, &["run", "jar.toml", "--engine", "yarn:memory=512MiB", "--state", "state"]);
            run.args(hadoop.arguments()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            run
        };
        let first = run().spawn().unwrap();
        let state = || hadoop.applications().first().map(|app| app.state);
        until("its application runs", || state() == Some(AppState::Running));
        pause(1000);
        signal(name, first.id());
        let first = ended(first);
        if name == "INT" {
            assert_eq!(first.code, Some(130), "{}{}", first.out, first.err);
            assert_eq!(state(), Some(AppState::Killed));
            assert!(hadoop.has_stopped_programs());
        }
        let second = ran(&run().output().unwrap());
        assert_eq!(second.code, Some(0), "{name}: {}{}", second.out, second.err);
        assert_eq!(state(), Some(AppState::Killed), "{name}");
        assert_eq!(parts(&dir.join("sorted")).len(), 1);
    }
}

#[test]
fn a_flow_on_a_cluster_writes_what_it_writes_here() {
    let (here, there) = (scratch("cluster-here"), scratch("cluster-there"));
    for dir in [&here, &there] {
        prepare(dir);
    }
    let local = ran(&command(&here, &["run", "flow.toml", "--engine", "local:split=16KiB", "--quiet"])
        .output()
        .unwrap());
    assert_eq!(local.code, Some(0), "{}", local.err);

    let hadoop = Hadoop::start(&there);
    let mut run = command(&there, &["run", "flow.toml", "--engine", "yarn:split=16KiB,memory=512MiB"]);
    run.args(["--policy", "fifo", "--state", "state", "--events", "events"]).args(hadoop.arguments());
    let run = ran(&run.output().unwrap());
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    for output in ["words", "sorted"] {
        assert_eq!(parts(&here.join(output)), parts(&there.join(output)), "{output}");
    }

    // One application each, the second after the first, with one map per split, and no table remains.
    let apps = hadoop.applications();
    let tasks: Vec<(&str, u32, u32)> =
        apps.iter().map(|app| (app.name.as_str(), app.maps, app.reduces)).collect();
    let maps = fs::metadata(there.join("in.txt")).unwrap().len().div_ceil(16 << 10) as u32;
    assert_eq!(tasks, [("library/words", maps, 2), ("library/sorted", 2, 1)]);
    assert!(maps > 3, "several maps run at a time");
    assert!(apps[0].finished_ms <= apps[1].submitted_ms);
    assert!(!hadoop.table().exists());

    // After the first submission the ResourceManager did not answer for a while, and the run continued.
    let troubles =
        events(&there.join("events")).into_iter().filter(|event| event["event"] == "engine_unreachable");
    let messages: Vec<bool> = troubles.map(|event| event["message"].is_string()).collect();
    assert_eq!(messages, [true, false], "one warning, and one message that all is well");
    let checked = command(&there, &["check", "state/workload.json", "state/schedule.json"]).output().unwrap();
    assert_eq!(ran(&checked).code, Some(0), "{}", ran(&checked).err);
}

#[test]
fn a_run_on_a_cluster_is_seen_from_outside() {
    let dir = scratch("cluster-seen");
    fs::write(dir.join("in.txt"), "one\n").unwrap();
    let flow = r#"
slackline = 1
[[flows]]
id = "f"
jobs = [
  { id = "a", map = { tasks = 1, seconds = 1 }, reduce = { tasks = 1, seconds = 1 }, run = { mapper = "cat; until test -e go; do sleep 0.05; done", reducer = "cat", inputs = ["in.txt"], output = "a" } },
  { id = "b", map = { tasks = 1, seconds = 1 }, reduce = { tasks = 1, seconds = 1 }, run = { mapper = "cat", reducer = "cat", inputs = ["@a"], output = "b" } },
]
"#;
    fs::write(dir.join("flow.toml"), flow).unwrap();
    let hadoop = Hadoop::start(&dir);
    // Two ApplicationMasters and the containers of four phases take at least 17 s. A policy that cannot be
    // simulated with ApplicationMasters has none.
    for (policy, expected) in [("fifo", "late"), ("dmrs", "on time")] {
        let asked = [
            "run",
            "flow.toml",
            "--engine",
            "yarn:memory=512MiB",
            "--dry-run",
            "--deadline",
            "f=12",
            "--policy",
            policy,
        ];
        let dry = ran(&command(&dir, &asked).args(hadoop.arguments()).output().unwrap());
        assert_eq!(dry.code, Some(0), "{}{}", dry.out, dry.err);
        let line = dry.out.lines().rfind(|line| line.starts_with("f ")).unwrap_or_default();
        assert!(line.ends_with(expected), "{policy}: {}", dry.out);
    }

    let mut run = command(&dir, &["run", "flow.toml", "--engine", "yarn:memory=512MiB", "--state", "state"]);
    run.args(hadoop.arguments()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    let is_at_work = || {
        dir.join("state/applications.json").exists()
            && status(&dir)["at_work"].as_array().is_some_and(|tasks| !tasks.is_empty())
    };
    until("a task of it is running", is_at_work);
    let seen = status(&dir);
    let application = seen["cluster"][0]["applications"][0].as_str().unwrap().to_owned();
    assert!(application.starts_with("application_"), "{seen:#}");
    let task = &seen["at_work"][0];
    assert_eq!((&task["job"], &task["phase"], &task["process"]), (&"a".into(), &"map".into(), &Value::Null));
    let (now, predicted) = (seen["now"].as_f64().unwrap(), seen["flows"][0]["predicted"].as_f64().unwrap());
    // The ApplicationMaster of the next job is still to start.
    assert!(predicted > now + 5.4, "{seen:#}");
    let text = done(&dir, &["status", "--state", "state"]);
    for words in
        ["on the cluster:", "1 task running", &application, "yarn logs -applicationId", "f/a map 0, for "]
    {
        assert!(text.contains(words), "{words:?} in\n{text}");
    }
    let printed = done(&dir, &["explain", "f", "--state", "state"]);
    for words in
        ["0 of 1 task done, 1 running", "waits for its input: a map", "waits for its input: a map, a reduce"]
    {
        assert!(printed.contains(words), "{words:?} in\n{printed}");
    }
    fs::write(dir.join("go"), "").unwrap();
    let run = ended(run);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    let seen = status(&dir);
    let applications = seen["cluster"].as_array().unwrap();
    assert_eq!((applications.len(), seen["at_work"].as_array().unwrap().len()), (2, 0), "{seen:#}");
    let printed = done(&dir, &["explain", "f", "--state", "state"]);
    for words in ["its ApplicationMasters start", "its containers start", "on the cluster", "submitted"] {
        assert!(printed.contains(words), "{words:?} in\n{printed}");
    }
}

/// All files below a directory with what is in them, and the directories.
fn tree(below: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(tree(&path));
            all.insert(path, Vec::new());
        } else {
            let bytes = fs::read(&path).unwrap();
            all.insert(path, bytes);
        }
    }
    all
}

#[test]
fn a_run_that_cannot_have_the_table_changes_nothing() {
    let dir = scratch("cluster-no-table");
    prepare(&dir);
    let other = FLOW.replace(r#"output = ""#, r#"output = "other-"#);
    fs::write(dir.join("other.toml"), other).unwrap();
    let hadoop = Hadoop::start(&dir);
    let run = |flow: &str, more: &[&str]| {
        let mut run = command(&dir, &["run", flow, "--engine", "yarn:memory=512MiB"]);
        ran(&run.args(more).args(hadoop.arguments()).output().unwrap())
    };
    let done = run("flow.toml", &[]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let applications = hadoop.applications().len();

    let tables = hadoop.table().parent().unwrap().to_owned();
    let refused = |why: &str| {
        let before = tree(&dir);
        let asked: [(&str, &[&str]); 3] =
            [("flow.toml", &["--again"]), ("flow.toml", &["--force", "words"]), ("other.toml", &[])];
        for (flow, more) in asked {
            let refused = run(flow, more);
            assert_eq!(refused.code, Some(2), "{flow} {more:?}: {}{}", refused.out, refused.err);
            assert!(refused.err.contains(why), "{flow} {more:?}: {}", refused.err);
            assert!(!refused.err.contains("runs again"), "{flow} {more:?}: {}", refused.err);
            assert!(tree(&dir) == before, "{flow} {more:?}: files have changed");
        }
    };
    fs::set_permissions(&tables, fs::Permissions::from_mode(0o770)).unwrap();
    refused("others can write in the directory of the plug-in's table");
    fs::set_permissions(&tables, fs::Permissions::from_mode(0o700)).unwrap();
    let held = Table::open(&hadoop.table(), Duration::from_secs(30)).unwrap();
    refused("another slackline writes the plug-in's table");
    // A run without open jobs needs no table.
    let idle = run("flow.toml", &[]);
    assert_eq!(idle.code, Some(0), "{}{}", idle.out, idle.err);
    assert_eq!(hadoop.applications().len(), applications);
    drop(held);
    let free = run("other.toml", &[]);
    assert_eq!(free.code, Some(0), "{}{}", free.out, free.err);
}

#[test]
fn a_configuration_that_names_no_cluster_is_refused_before_the_run() {
    let dir = scratch("cluster-no-conf");
    prepare(&dir);
    let hadoop = Hadoop::start(&dir);
    hadoop.set_framework("local");
    let mut run = command(&dir, &["run", "flow.toml", "--engine", "yarn:memory=512MiB", "--state", "state"]);
    let run = ran(&run.args(hadoop.arguments()).output().unwrap());
    assert_eq!(run.code, Some(2), "{}{}", run.out, run.err);
    assert!(run.err.contains("mapreduce.framework.name \"local\""), "{}", run.err);
    assert!(run.err.contains("HADOOP_CONF_DIR"), "{}", run.err);
    assert!(!dir.join("state").exists() && !dir.join("words").exists());
    assert!(hadoop.applications().is_empty());
}

#[test]
fn an_address_with_tls_is_refused_with_what_would_do() {
    let dir = scratch("cluster-tls");
    prepare(&dir);
    for arguments in [
        &["run", "flow.toml", "--engine", "yarn+https://rm:8090"][..],
        &["hadoop", "attach", "yarn+https://rm:8090"],
    ] {
        let refused = ran(&command(&dir, arguments).output().unwrap());
        assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
        assert!(refused.err.contains("TLS is not supported; give the plain HTTP address"), "{}", refused.err);
    }
}
