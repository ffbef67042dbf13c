//! The parts of a Hadoop cluster that a run needs. The ResourceManager is a mock, and a script in place of
//! Java starts a submitter on the given socket. The ApplicationMasters run the worker as the classes of
//! `hadoop/submitter` do. The program of a jar counts words.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use slackline_model::PhaseKind;
use slackline_task::base::clock::unix_micros;
use slackline_yarn::mock::{Mock, MockApp, MockAttempt, Mood};
use slackline_yarn::{AppId, AppState};

use crate::processes::{pause, until, write_program};
use crate::text;

/// Replaces Java: prints the requested socket, waits until it exists, and ends with its standard input.
const JAVA: &str = r#"#!/bin/sh
while [ $# -gt 1 ]; do
  [ "$1" = --socket ] && socket=$2
  shift
done
cd "$(dirname "$0")"
echo "$socket" > wanted.new
mv wanted.new wanted
until [ -S "$socket" ]; do sleep 0.01; done
echo ready 1
cat > /dev/null
"#;

/// Tags of frames that hold no partition.
const PART: u32 = u32::MAX - 1;
const REPORT: u32 = u32::MAX;

/// Number of requests after the first submission that the ResourceManager does not answer.
const TROUBLES: usize = 2;

/// A cluster of four hosts with two slots each.
pub(super) struct Hadoop {
    mock: Arc<Mock>,
    dir: PathBuf,
    /// The directory of the table: no user but this one can write to its parents, unlike those of the
    /// repository.
    tables: PathBuf,
}

impl Drop for Hadoop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.tables);
    }
}

impl Hadoop {
    /// A cluster whose files are in a directory of the test's.
    pub(super) fn start(of: &Path) -> Self {
        let dir = of.join("hadoop");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        write_program(&dir.join("java"), JAVA);
        let mock = Mock::start().unwrap();
        mock.with(|state| {
            let minimum = ("yarn.scheduler.minimum-allocation-mb".to_owned(), "512".to_owned());
            state.properties.extend([minimum]);
        });
        let test = of.file_name().unwrap_or_default().display();
        let tables = std::env::temp_dir().join(format!("slackline-tables-{}-{test}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&tables).unwrap();
        let hadoop = Self { mock: Arc::new(mock), dir, tables };
        let table = ("slackline.table".to_owned(), text(&hadoop.table()).to_owned());
        hadoop.mock.with(|state| state.properties.extend([table]));
        let (mock, dir) = (hadoop.mock.clone(), hadoop.dir.clone());
        thread::spawn(move || {
            loop {
                submitter(&mock, &dir);
            }
        });
        hadoop
    }

    /// The arguments of `run` for it.
    pub(super) fn arguments(&self) -> Vec<String> {
        let here = |name: &str| text(&self.dir.join(name)).to_owned();
        // Nothing reads the configuration, the submitter and the class path.
        let engine = format!(
            "yarn://{},queue=jobs,table={},java={java},conf={dir},submitter={java},classpath={dir}",
            self.mock.address(),
            text(&self.table()),
            java = here("java"),
            dir = here(""),
        );
        vec!["--engine".to_owned(), engine]
    }

    /// From now on the submitter reports this framework for jobs.
    pub(super) fn set_framework(&self, name: &str) {
        fs::write(self.dir.join("framework"), name).unwrap();
    }

    /// The table of the plug-in.
    pub(super) fn table(&self) -> PathBuf {
        self.tables.join("table")
    }

    /// Whether the programs of jars have been stopped, or their submitter has ended.
    pub(super) fn has_stopped_programs(&self) -> bool {
        self.dir.join("stopped").exists()
    }

    /// The applications there were, in the order of their submission.
    pub(super) fn applications(&self) -> Vec<MockApp> {
        self.mock.with(|state| state.apps.values().cloned().collect())
    }
}

/// Answers a driver until it hangs up.
fn submitter(mock: &Arc<Mock>, dir: &Path) {
    while !dir.join("wanted").exists() {
        pause(10);
    }
    let socket = fs::read_to_string(dir.join("wanted")).unwrap();
    fs::remove_file(dir.join("wanted")).unwrap();
    let listener = UnixListener::bind(socket.trim()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let programs: Arc<Mutex<Vec<Option<ExitStatus>>>> = Arc::default();
    for line in BufReader::new(&stream).lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).unwrap();
        let done = match request["do"].as_str().unwrap() {
            "about" => {
                let framework =
                    fs::read_to_string(dir.join("framework")).unwrap_or_else(|_| "yarn".to_owned());
                json!({ "version": 1, "hadoop": "3.5.0", "default_fs": "file:///", "user": "me", "framework": framework })
            }
            "submit" => {
                let id = submit(mock, &request["job"]);
                let (mock, job, dir) = (mock.clone(), request["job"].clone(), dir.to_owned());
                thread::spawn(move || Am { mock, id, job, dir }.run());
                json!({ "application": id.to_string(), "job": id.job() })
            }
            "jar" => {
                let mut all = programs.lock().unwrap();
                all.push(None);
                let (number, programs) = (all.len(), programs.clone());
                let (mock, dir) = (mock.clone(), dir.to_owned());
                let request = request.clone();
                thread::spawn(move || {
                    let ended = program(&mock, &dir, &request);
                    programs.lock().unwrap()[number - 1] = Some(ended);
                });
                json!({ "process": number, "pid": std::process::id() })
            }
            "process" => {
                let process = request["process"].as_u64().unwrap() as usize;
                match &programs.lock().unwrap()[process - 1] {
                    None => json!({ "running": true }),
                    Some((exit, said)) => json!({ "running": false, "exit": exit, "said": said }),
                }
            }
            "stop" => {
                fs::write(dir.join("stopped"), "").unwrap();
                json!({})
            }
            other => panic!("found {other}, expected no more than jobs on files of this machine"),
        };
        // The client may have closed its side.
        let _ = writeln!(&stream, "{}", json!({ "id": request["id"], "done": done }));
    }
    // Programs end with their submitter.
    fs::write(dir.join("stopped"), "").unwrap();
}

/// The end of a program: its exit code and its output.
type ExitStatus = (i32, String);

/// The program of a jar. `Fails` fails at once, and `Waits` waits until it is stopped, the first time. Any
/// other program counts the words of its first argument in two applications, the first with one map, the
/// second with one more than planned, and writes into its second argument.
fn program(mock: &Arc<Mock>, dir: &Path, request: &Value) -> ExitStatus {
    if request["main"] == "Fails" {
        return (3, "loading\nTable not found".to_owned());
    }
    if request["main"] == "Waits" && fs::File::create_new(dir.join("waited")).is_ok() {
        let job =
            json!({ "name": "Waits", "maps": 4, "reducers": 0, "tags": request["tags"], "priority": 1 });
        let id = submit(mock, &job);
        mock.with(|state| state.apps.get_mut(&id).unwrap().start());
        while !dir.join("stopped").exists() {
            pause(10);
        }
        return (137, String::new());
    }
    let local = |n: usize| {
        let names = request["arguments"][n].as_str().unwrap().split(',');
        names.map(|name| PathBuf::from(name.strip_prefix("file://").unwrap())).collect::<Vec<_>>()
    };
    let property = |name: &str| request["properties"][name].as_str().unwrap().parse::<u64>().unwrap();
    let (inputs, output) = (local(0), local(1).remove(0));
    let reducers = property("mapreduce.job.reduces");
    let split = property("mapreduce.input.fileinputformat.split.minsize");
    let bytes: u64 = inputs.iter().map(|input| fs::metadata(input).unwrap().len()).sum();
    for (maps, reducers) in [(1, 0), (bytes.div_ceil(split) + 1, reducers)] {
        let job = json!({ "name": request["main"], "maps": maps, "reducers": reducers, "tags": request["tags"],
            "priority": request["priority"] });
        let id = submit(mock, &job);
        Am { mock: mock.clone(), id, job, dir: dir.to_owned() }.take_time();
    }
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let texts: Vec<String> = inputs.iter().map(|input| fs::read_to_string(input).unwrap()).collect();
    for word in texts.iter().flat_map(|text| text.split_whitespace()) {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    assert!(!output.exists(), "{}", output.display());
    fs::create_dir_all(&output).unwrap();
    for reduce in 0..reducers as usize {
        let its = counts.iter().skip(reduce).step_by(reducers as usize);
        let mut part = fs::File::create(output.join(format!("part-r-{reduce:05}"))).unwrap();
        for (word, count) in its {
            writeln!(part, "{word}\t{count}").unwrap();
        }
    }
    fs::write(output.join("_SUCCESS"), "").unwrap();
    (0, "all counted".to_owned())
}

fn now_ms() -> u64 {
    unix_micros() / 1000
}

fn submit(mock: &Mock, job: &Value) -> AppId {
    let count = |name: &str| job[name].as_u64().unwrap() as u32;
    let tags: Vec<&str> = job["tags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    mock.with(|state| {
        state.now_ms = now_ms();
        let app = state.submit("root.jobs", count("maps"), count("reducers"));
        job["name"].as_str().unwrap().clone_into(&mut app.name);
        app.tags = tags.join(",").to_lowercase();
        app.priority = u64::from(count("priority"));
        let id = app.id;
        if id.number == 1 {
            let away = Mood::Says(503, "text/html", "starting".to_owned());
            state.moods.push(("cluster/apps?", TROUBLES, away));
        }
        id
    })
}

/// An application and its ApplicationMaster.
struct Am {
    mock: Arc<Mock>,
    id: AppId,
    job: Value,
    dir: PathBuf,
}

/// The output of a map: its blobs with their partitions.
type Blobs = Vec<(u32, Vec<u8>)>;

impl Am {
    fn with<T>(&self, change: impl FnOnce(&mut MockApp, u64) -> T) -> T {
        self.mock.with(|state| {
            state.now_ms = now_ms();
            change(state.apps.get_mut(&self.id).unwrap(), now_ms())
        })
    }

    /// Runs all tasks, as many at a time as the table allows.
    fn run(&self) {
        until("the table lets it start", || self.row().is_none_or(|row| row[0] == 0));
        self.with(|app, _| app.start());
        let mut maps: BTreeMap<u32, Blobs> = BTreeMap::new();
        let tasks = |app: &mut MockApp, _| app.maps + app.reduces;
        let (mut left, mut looks) = (self.with(tasks), 0);
        while left > 0 {
            let wave = self.granted();
            looks += 1;
            assert!(looks < 6000, "{}: found no more containers for a minute, expected {left}", self.id);
            if wave.is_empty() {
                pause(10);
            }
            let made: Vec<(MockAttempt, Blobs)> = thread::scope(|scope| {
                let maps = &maps;
                let run = |attempt: MockAttempt| {
                    scope.spawn(move || (attempt.clone(), self.attempt(&attempt, maps)))
                };
                let running: Vec<_> = wave.into_iter().map(run).collect();
                running.into_iter().map(|task| task.join().unwrap()).collect()
            });
            for (attempt, blobs) in made {
                left -= 1;
                self.with(|app, now| app.end_one("SUCCEEDED", now));
                if attempt.id.task.kind == PhaseKind::Map {
                    maps.insert(attempt.id.task.number, blobs);
                }
            }
        }
        self.with(|app, now| {
            app.end(AppState::Finished, now);
            app.release();
        });
    }

    /// Runs all tasks without work, in the number at a time that the table allows.
    fn take_time(&self) {
        until("the table lets it start", || self.row().is_none_or(|row| row[0] == 0));
        self.with(|app, _| app.start());
        let mut left = self.with(|app, _| app.maps + app.reduces);
        let mut looks = 0;
        while left > 0 {
            let wave = self.granted().len() as u32;
            looks += 1;
            assert!(looks < 600, "{}: found no more containers for a minute, expected {left}", self.id);
            // Longer than the time between two polls.
            pause(if wave > 0 { 600 } else { 100 });
            for _ in 0..wave {
                self.with(|app, now| app.end_one("SUCCEEDED", now));
            }
            left -= wave;
        }
        pause(600);
        self.with(|app, now| {
            app.end(AppState::Finished, now);
            app.release();
        });
    }

    /// Its row of the table: whether it waits, and the most maps and reduces.
    fn row(&self) -> Option<[i64; 3]> {
        let table = fs::read_to_string(self.dir.join("table")).ok()?;
        let line = table.lines().find_map(|line| line.strip_prefix(&self.id.to_string()))?;
        let columns: Vec<i64> = line.split_whitespace().take(3).map(|text| text.parse().unwrap()).collect();
        columns.try_into().ok()
    }

    /// New containers, up to what the table allows.
    fn granted(&self) -> Vec<MockAttempt> {
        let row = self.row();
        self.with(|app, now| {
            let done = app.attempts.len() as u32;
            let kind = if done < app.maps { 1 } else { 2 };
            let most = row.map_or(i64::MAX, |row| if row[kind] < 0 { i64::MAX } else { row[kind] });
            let left = if kind == 1 { app.maps - done } else { app.maps + app.reduces - done };
            for n in 0..most.min(i64::from(left)) {
                app.grant(&format!("127.0.0.{}", 2 + n % 4), now);
            }
            app.attempts[done as usize..].to_vec()
        })
    }

    /// Runs an attempt in its container; returns the output of its map, for reduces.
    fn attempt(&self, attempt: &MockAttempt, maps: &BTreeMap<u32, Blobs>) -> Blobs {
        let local = |name: &str| self.job[name].as_str().unwrap().strip_prefix("file://").unwrap();
        let directory = Path::new(local("destination")).join(attempt.id.to_string());
        let work = self.dir.join(attempt.id.to_string());
        fs::create_dir_all(&directory).unwrap();
        fs::create_dir_all(&work).unwrap();
        let mut identity = json!({ "container": attempt.container.to_string(), "host": attempt.host,
            "started": now_ms() });
        fs::write(directory.join("begun.json"), identity.to_string()).unwrap();
        let task = attempt.id.task;
        let mut worker = Command::new(local("worker"));
        worker.arg("container").arg(if task.kind == PhaseKind::Map { "map" } else { "reduce" });
        worker.args(["--spec", local("spec"), "--task", &task.number.to_string(), "--attempt", "0"]);
        worker.arg("--directory").arg(&work).current_dir(&work);
        let mut input = None;
        if task.kind == PhaseKind::Map {
            worker.args(["--pieces", local("pieces")]);
        } else {
            let blobs = maps.iter().flat_map(|(map, blobs)| blobs.iter().map(move |blob| (map, blob)));
            let mine = blobs.filter(|(_, (partition, _))| *partition == task.number);
            input = Some(mine.flat_map(|(map, (_, bytes))| frame(*map, bytes)).collect());
        }
        let (mut blobs, mut part, mut report) = (Blobs::new(), Vec::new(), Value::Null);
        for (tag, bytes) in frames(&output(&mut worker, input)) {
            match tag {
                PART => part.extend(bytes),
                REPORT => report = serde_json::from_slice(bytes).unwrap(),
                partition => blobs.push((partition, bytes.to_vec())),
            }
        }
        assert!(report["done"].is_object(), "{}: {report}", attempt.id);
        if task.kind == PhaseKind::Reduce {
            fs::write(directory.join("part"), part).unwrap();
        }
        identity["ended"] = now_ms().into();
        identity["report"] = report;
        fs::write(directory.join("report.new"), identity.to_string()).unwrap();
        fs::rename(directory.join("report.new"), directory.join("report.json")).unwrap();
        blobs
    }
}

/// The output of a worker with this input. Without input, its standard input stays open until it ends.
fn output(worker: &mut Command, input: Option<Vec<u8>>) -> Vec<u8> {
    let mut worker = worker.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = worker.stdin.take();
    if let Some(input) = input {
        stdin.take().unwrap().write_all(&input).unwrap();
    }
    let mut output = Vec::new();
    worker.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    assert!(worker.wait().unwrap().success());
    output
}

/// A frame of these bytes.
fn frame(tag: u32, bytes: &[u8]) -> Vec<u8> {
    [&tag.to_be_bytes(), &(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// Frames: a tag, a length, and that number of bytes.
fn frames(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<8>() {
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (frame, rest) = rest.split_at(number(4) as usize);
        frames.push((number(0), frame));
        bytes = rest;
    }
    frames
}
