//! The client of the submitter, against a mock process: this test program, started again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use slackline_yarn::submitter::{
    FailureKind, JarRequest, JobRequest, Launch, StartedProgram, Submitter, SubmitterError,
};

/// The variable that makes a test of this program the other side, and says how it behaves.
const MODE: &str = "SLACKLINE_TEST_SUBMITTER";
const SOCKET: &str = "SLACKLINE_TEST_SOCKET";

fn launch(mode: &str, directory: &Path) -> Launch {
    let program = std::env::current_exe().unwrap();
    // The arguments of the protocol become a variable, since the test harness has its own.
    let script = format!(
        "[ \"$1\" = --socket ] && {SOCKET}=$2 exec \"$0\" --exact submitter::the_other_side --nocapture --test-threads 2"
    );
    let arguments: Vec<OsString> = vec!["-c".into(), script.into(), program.into()];
    let mut launch = Launch::of(Path::new("/bin/sh"), arguments);
    launch.environment.push((MODE.into(), mode.into()));
    directory.clone_into(&mut launch.directory);
    launch
}

fn start(mode: &str) -> (tempfile::TempDir, Submitter) {
    let directory = tempfile::tempdir().unwrap();
    let submitter = Submitter::start(launch(mode, directory.path())).unwrap();
    (directory, submitter)
}

/// What a submitter says of itself, when it is asked.
fn refused(mode: &str, change: impl FnOnce(&mut Launch)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = launch(mode, directory.path());
    change(&mut launch);
    let error = Submitter::start(launch).unwrap_err();
    assert!(matches!(error, SubmitterError::Start { .. }));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "no directory is left");
    error.to_string()
}

/// Plays the submitter if this process was started for that.
#[test]
fn the_other_side() {
    let Ok(mode) = std::env::var(MODE) else { return };
    match mode.as_str() {
        "broken" => {
            eprintln!("Exception in thread main: no class");
            std::process::exit(3);
        }
        "silent" => loop {
            std::thread::park();
        },
        _ => {}
    }
    let path = PathBuf::from(std::env::var_os(SOCKET).unwrap());
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    println!("\nlog4j: a warning\nready {}", if mode == "new" { 2 } else { 1 });
    let (stream, _) = listener.accept().unwrap();
    let mut late = Vec::new();
    for line in BufReader::new(&stream).lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let mut answers = vec![answered(&request)];
        if request["path"] == "/late" {
            late.append(&mut answers);
        } else {
            answers.append(&mut late);
        }
        for answer in answers {
            (&stream).write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
    }
    std::process::exit(0);
}

/// The answer to a request; paths choose what happens.
fn answered(request: &Value) -> Value {
    let path = request["path"].as_str().unwrap_or_default();
    if let Some(marker) = path.strip_prefix("die:") {
        // Once: the next process finds the marker.
        if marker.is_empty() || fs::File::create_new(marker).is_ok() {
            std::io::stderr().write_all(b"OutOfMemoryError\n").unwrap();
            std::process::exit(9);
        }
    }
    let done = match (request["do"].as_str().unwrap(), path) {
        (_, "/fails") => {
            let failed = json!({ "kind": "input", "message": "/fails: there is no such file" });
            return json!({ "id": request["id"], "failed": failed });
        }
        (_, "/odd") => {
            return json!({ "id": request["id"], "failed": { "kind": "cosmic", "message": "rays" } });
        }
        (_, "/nothing") => return json!({ "id": request["id"] }),
        (_, "/never") => return json!({ "id": 0, "done": {} }),
        ("about", _) => {
            json!({ "version": 1, "hadoop": "3.5.0", "default_fs": "file:///", "user": std::process::id().to_string() })
        }
        ("submit", _) => {
            json!({ "application": "application_1_0001", "job": "job_1_0001", "echo": request["job"] })
        }
        ("jar", _) => json!({ "process": 17, "pid": 4321 }),
        ("process", _) => json!({ "running": false, "exit": request["process"], "said": "bye" }),
        ("list", _) => {
            let entry = json!({ "path": path, "length": 5, "modified": 7, "directory": false });
            json!({ "entries": [entry] })
        }
        ("stat", _) => json!({ "entry": null }),
        ("read", _) if path == "/not-base64" => json!({ "base64": "%" }),
        ("read", _) if request["offset"] == 3 => json!({ "base64": "AP8=" }),
        ("write", _) if request["local"] == "/local" => json!({}),
        ("write", _) if request["base64"] != "AP8=" => json!(null),
        _ => json!({}),
    };
    json!({ "id": request["id"], "done": done })
}

#[test]
fn every_verb() {
    let (_directory, submitter) = start("good");
    let about = submitter.about().unwrap();
    assert_eq!((about.version, about.hadoop.as_str(), about.default_fs.as_str()), (1, "3.5.0", "file:///"));
    let job = JobRequest { name: "f/j".to_owned(), maps: 3, ..JobRequest::default() };
    let application = submitter.submit(&job).unwrap().application;
    assert_eq!(application.to_string(), "application_1_0001");
    let program = StartedProgram { process: 17, pid: 4321 };
    assert_eq!(submitter.jar(&JarRequest::default()).unwrap(), program);
    let state = submitter.process(17).unwrap();
    assert_eq!((state.running, state.exit, state.said.as_str()), (false, Some(17), "bye"));
    submitter.stop(17).unwrap();
    submitter.kill(application).unwrap();
    let entries = submitter.list("/a/*").unwrap();
    assert_eq!((entries[0].path.as_str(), entries[0].length, entries[0].modified), ("/a/*", 5, 7));
    assert_eq!(submitter.stat("/a").unwrap(), None);
    assert_eq!(submitter.read("/a", 3, 10).unwrap(), [0, 255]);
    submitter.write("/a", &[0, 255]).unwrap();
    submitter.upload("/a", Path::new("/local")).unwrap();
    submitter.delete("/a").unwrap();
    submitter.rename("/a", "/b").unwrap();
    submitter.mkdirs("/a").unwrap();
}

#[test]
fn the_documents_of_jobs_are_those_of_the_protocol() {
    let keys = |request: Value| {
        let keys: BTreeSet<String> = request.as_object().unwrap().keys().cloned().collect();
        keys.into_iter().collect::<Vec<_>>().join(" ")
    };
    let job = JobRequest { queue: Some("jobs".to_owned()), priority: Some(7), ..JobRequest::default() };
    assert_eq!(
        keys(json!(job)),
        "attempts cores destination files maps memory_mb name pieces priority properties queue reducers spec tags worker"
    );
    assert_eq!(
        keys(json!(JarRequest::default())),
        "arguments jar main properties tags",
        "the cluster's queue and priority"
    );
}

#[test]
fn failures_have_a_kind_and_a_message() {
    let (_directory, submitter) = start("good");
    let error = submitter.list("/fails").unwrap_err();
    assert_eq!(error.to_string(), "/fails: there is no such file");
    assert!(matches!(error, SubmitterError::Failed { kind: FailureKind::Input, .. }));
    let error = submitter.list("/odd").unwrap_err();
    assert!(matches!(error, SubmitterError::Failed { kind: FailureKind::Other, .. }));
    for (path, why) in [("/nothing", "neither `done` nor `failed`"), ("/not-base64", "symbol")] {
        let error = submitter.read(path, 0, 1).unwrap_err();
        assert!(
            matches!(&error, SubmitterError::Unknown { .. }) && error.to_string().contains(why),
            "{error}"
        );
    }
    let error = submitter.read("/", 0, 1).unwrap_err();
    assert!(error.to_string().contains("no `base64` in it"), "{error}");
    assert!(matches!(submitter.write("/", b"x").unwrap_err(), SubmitterError::Unknown { verb: "write", .. }));
}

#[test]
fn answers_may_come_in_another_order() {
    let (_directory, submitter) = start("good");
    let submitter = Arc::new(submitter);
    let other = Arc::clone(&submitter);
    let late = std::thread::spawn(move || other.list("/late"));
    // It is answered after the next request that comes behind it.
    while !late.is_finished() {
        assert_eq!(submitter.list("/quick").unwrap()[0].path, "/quick");
    }
    assert_eq!(late.join().unwrap().unwrap()[0].path, "/late");
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = launch("good", directory.path());
    launch.answer = Duration::from_secs(1);
    let submitter = Submitter::start(launch).unwrap();
    let error = submitter.list("/never").unwrap_err();
    assert_eq!(error.to_string(), "the process that submits to Hadoop did not answer `list` within 1 s");
    // A late answer has no request.
    assert!(matches!(submitter.list("/late").unwrap_err(), SubmitterError::TimedOut { .. }));
    assert_eq!(submitter.list("/next").unwrap()[0].path, "/next");
    assert_eq!(submitter.list("/last").unwrap()[0].path, "/last");
}

#[test]
fn a_process_that_dies_is_started_again_for_what_may_be_repeated() {
    let (directory, submitter) = start("good");
    let first = submitter.about().unwrap().user;
    let marker = directory.path().join("marker");
    let path = format!("die:{}", marker.display());
    assert_eq!(submitter.list(&path).unwrap()[0].path, path);
    assert_ne!(submitter.about().unwrap().user, first);
    fs::remove_file(&marker).unwrap();
    let error = submitter.rename("/a", "/b").and_then(|()| submitter.mkdirs("/c"));
    assert_eq!(error, Ok(()));
}

#[test]
fn restarts_have_an_end() {
    let (_directory, submitter) = start("good");
    for _ in 0..2 {
        let error = submitter.list("die:").unwrap_err().to_string();
        assert!(
            error.starts_with("the process that submits to Hadoop died: exit status: 9; its last output:\n"),
            "{error}"
        );
        assert!(error.contains("OutOfMemoryError"), "{error}");
    }
    let error = submitter.about().unwrap_err().to_string();
    assert!(error.ends_with("(it was restarted 3 times)"), "{error}");
}

#[test]
fn a_process_that_does_not_start_says_why() {
    let said = refused("broken", |_| ());
    assert!(said.contains("it ended before it was ready; exit status: 3; its last output:\n"), "{said}");
    assert!(said.contains("Exception in thread main: no class"), "{said}");
    let said = refused("new", |_| ());
    assert!(said.contains("another version of the protocol (`ready 2`, expected `ready 1`)"), "{said}");
    let said = refused("silent", |launch| launch.start = Duration::from_millis(200));
    assert!(
        said.contains("it was not ready within 0 s") && said.contains("it did not end and was killed"),
        "{said}"
    );
    let said = refused("good", |launch| launch.program = "/no/such/java".into());
    assert!(said.contains("/no/such/java: No such file"), "{said}");
}

#[test]
fn the_socket_is_where_a_path_can_name_it() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("d".repeat(90));
    let said = refused("good", |launch| launch.directory.clone_from(&deep));
    assert!(said.contains("longer than 100 bytes"), "{said}");
    let said = refused("good", |launch| launch.directory = "/no/such".into());
    assert!(said.contains("/no/such/slackline-"), "{said}");
}

#[test]
fn nothing_is_left_of_a_submitter() {
    let (directory, submitter) = start("good");
    let home = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap();
    assert_eq!(home.metadata().unwrap().mode() & 0o777, 0o700);
    let process: i32 = submitter.about().unwrap().user.parse().unwrap();
    let process = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::test_kill_process(process).unwrap();
    drop(submitter);
    rustix::process::test_kill_process(process).unwrap_err();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn java_is_called_with_its_class_path() {
    let path = ["/etc/hadoop".into(), "/lib/*".into(), "/lib/slackline-hadoop.jar".into()];
    let launch = Launch::java(Path::new("/usr/bin/java"), &path, &["-Xmx256m"]).unwrap();
    let arguments: Vec<&str> = launch.arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
    let class_path = "/etc/hadoop:/lib/*:/lib/slackline-hadoop.jar";
    assert_eq!(arguments, ["-Xmx256m", "-cp", class_path, "slackline.hadoop.Submitter"]);
    assert!(Launch::java(Path::new("java"), &["a:b".into()], &[]).is_err());
}
