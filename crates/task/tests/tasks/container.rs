//! Tasks in containers of another system: the same output as here to the byte, and errors are reported.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::json;
use slackline_task::attempt::plan;
use slackline_task::attempt::prepare::prepare;
use slackline_task::base::codec::Codec;
use slackline_task::base::error::TaskError;
use slackline_task::base::source::Source;
use slackline_task::container::frames::{FRAME_MAX, PART, REPORT};
use slackline_task::container::job_spec::{ContainerJob, JobSpec};
use slackline_task::container::pieces;
use slackline_task::process::limits::Limits;
use slackline_task::process::report::Report;
use slackline_task::process::spec::{Setting, Shuffle, Split, Task};
use slackline_task::programs;

use crate::job::{Trial, text};
use crate::process::{eventually, report, runs, start_as};

/// The files of a job whose tasks are run in containers, one each.
struct Job<'a> {
    trial: &'a Trial,
    plan: Plan,
    /// Whether the input lies where no task can open it, so that each gets copies.
    is_elsewhere: bool,
}

/// What a run knows of a job.
#[derive(Clone)]
struct Plan {
    work: slackline_task::process::spec::Job,
    maps: Vec<Vec<Split>>,
    /// Files as they were when the run began.
    sources: BTreeMap<PathBuf, Source>,
    reducers: u32,
    needs_preparation: bool,
    setting: Setting,
    shuffle: Shuffle,
    compress: Option<Codec>,
    limits: Limits,
}

impl Plan {
    fn spec(
        &self,
        directory: &Path,
        memory_bytes: u64,
        prepared: Option<&Path>,
    ) -> Result<JobSpec, TaskError> {
        let mut maps = self.maps.clone();
        for split in maps.iter_mut().flatten() {
            split.source = self.sources.get(&split.path).cloned();
        }
        let job = ContainerJob {
            work: &self.work,
            maps: &maps,
            reducers: self.reducers,
            needs_preparation: self.needs_preparation,
            prepared,
            setting: &self.setting,
            shuffle: &self.shuffle,
            compress: self.compress,
            limits: &self.limits,
        };
        JobSpec::of(&job, directory, memory_bytes)
    }
}

/// What a task gave.
#[derive(Debug)]
struct Gave {
    frames: Vec<(u32, Vec<u8>)>,
    report: Report,
    said: String,
}

/// Where input lies that no task can open.
const ELSEWHERE: &str = "hdfs://name.node:8020";

impl<'a> Job<'a> {
    fn new(trial: &'a Trial, inputs: &[String]) -> Self {
        let maps = plan::plan(&trial.job, inputs, trial.split_bytes).unwrap();
        Self::of(trial, maps)
    }

    fn of(trial: &'a Trial, maps: Vec<Vec<Split>>) -> Self {
        let shape = programs::describe(&trial.job).unwrap();
        let reducers = if shape.is_map_only { 0 } else { trial.reducers };
        let plan = Plan {
            work: trial.job.clone(),
            maps,
            sources: BTreeMap::new(),
            reducers,
            needs_preparation: shape.needs_preparation && reducers > 1,
            setting: trial.setting.clone(),
            shuffle: trial.shuffle.clone(),
            compress: trial.compress,
            limits: Limits { memory: trial.memory_limit, ..Limits::default() },
        };
        Self { trial, plan, is_elsewhere: false }.written()
    }

    /// The same with its input elsewhere.
    fn elsewhere(mut self) -> Self {
        for split in self.plan.maps.iter_mut().flatten() {
            // A later copy of the file is compared with that.
            let source = Source::now(&split.path).ok();
            (split.path, split.source) = (format!("{ELSEWHERE}{}", split.path.display()).into(), source);
        }
        self.is_elsewhere = true;
        self.written()
    }

    /// Writes the spec and the pieces.
    fn written(self) -> Self {
        let prepared = self.plan.needs_preparation.then(|| self.trial.path("boundaries"));
        if let Some(file) = &prepared {
            prepare(&self.plan.work, &self.plan.maps, self.plan.reducers, file).unwrap();
        }
        let directory = self.trial.dir.path();
        let spec = self.plan.spec(directory, self.trial.memory_bytes, prepared.as_deref()).unwrap();
        fs::write(self.trial.path("spec.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
        let mut lines = Vec::new();
        pieces::write(&mut lines, &self.plan.maps, directory, |map| {
            vec![format!("host-{map}"); map as usize % 3]
        })
        .unwrap();
        fs::write(self.trial.path("pieces"), lines).unwrap();
        self
    }

    fn command(&self, phase: &str, number: u32) -> Command {
        let container = self.trial.path(&format!("container-{phase}-{number}"));
        fs::create_dir_all(&container).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_slackline-worker"));
        command.args(["container", phase, "--spec", "../spec.json", "--task", &number.to_string()]);
        command.args(["--attempt", "7", "--directory", "work"]).current_dir(&container);
        if phase == "map" {
            command.args(["--pieces", "../pieces"]);
        }
        if phase == "map" && self.is_elsewhere {
            for (number, split) in self.plan.maps[number as usize].iter().enumerate() {
                let copy = container.join(format!("copy-{number}"));
                fs::write(&copy, excerpt(split)).unwrap();
                command.args(["--copy", &format!("{number}=copy-{number}")]);
            }
        }
        command
    }

    fn map(&self, number: u32) -> Gave {
        gave(self.command("map", number), b"")
    }

    fn reduce(&self, partition: u32, maps: &[Gave]) -> Gave {
        gave(self.command("reduce", partition), &shuffled(partition, maps))
    }

    /// All its part files.
    fn parts(&self) -> Vec<Vec<u8>> {
        let maps: Vec<Gave> = (0..self.plan.maps.len() as u32).map(|map| self.map(map)).collect();
        if self.plan.reducers == 0 {
            return maps.iter().map(Gave::part).collect();
        }
        (0..self.plan.reducers).map(|partition| self.reduce(partition, &maps).part()).collect()
    }
}

impl Gave {
    fn part(&self) -> Vec<u8> {
        assert!(matches!(self.report, Report::Done(_)), "{self:?}");
        assert!(self.frames.iter().all(|(tag, _)| *tag == PART));
        self.frames.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Why it failed, and the map that was lost if one was.
    fn failure(&self) -> (&str, Option<&Path>) {
        let Report::Failed { message, lost, .. } = &self.report else { panic!("done") };
        assert!(self.frames.is_empty());
        (message, lost.as_deref())
    }
}

/// What a copy of a piece holds, see [`Split::copy`].
fn excerpt(split: &Split) -> Vec<u8> {
    let whole = fs::read(split.path.to_str().unwrap().strip_prefix(ELSEWHERE).unwrap()).unwrap();
    let Some(length) = split.length else { return whole };
    let end = (split.offset + length) as usize;
    let line = whole[end..].iter().position(|&byte| byte == b'\n').map_or(whole.len(), |at| end + at + 1);
    whole[split.offset.saturating_sub(1) as usize..line].to_vec()
}

/// What a reduce gets.
fn shuffled(partition: u32, maps: &[Gave]) -> Vec<u8> {
    let mut input = Vec::new();
    for (map, gave) in (0..).zip(maps) {
        for (_, bytes) in gave.frames.iter().filter(|(tag, _)| *tag == partition) {
            put(&mut input, map, bytes);
        }
    }
    input
}

fn put(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    out.extend(tag.to_be_bytes());
    out.extend((bytes.len() as u32).to_be_bytes());
    out.extend(bytes);
}

/// Runs a task to its end, which has to be a good one.
fn gave(command: Command, input: &[u8]) -> Gave {
    let output = ended(command, input);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let (mut rest, mut frames) = (output.stdout.as_slice(), Vec::new());
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (bytes, after) = after.split_at(number(4) as usize);
        assert!(bytes.len() <= FRAME_MAX && !bytes.is_empty());
        frames.push((number(0), bytes.to_vec()));
        rest = after;
    }
    assert!(rest.is_empty() && frames.is_sorted_by_key(|(tag, _)| *tag));
    let (tag, report) = frames.pop().unwrap();
    assert_eq!(tag, REPORT);
    Gave { frames, report: serde_json::from_slice(&report).unwrap(), said }
}

/// Runs a task to its end. The standard input of a map stays open until then.
fn ended(mut command: Command, input: &[u8]) -> Output {
    let is_map = command.get_args().nth(1).is_some_and(|phase| phase == "map");
    let mut child = piped(&mut command);
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let feeder = std::thread::spawn(move || {
        // One that refuses its input reads no more of it.
        let _ = stdin.write_all(&input);
        is_map.then_some(stdin)
    });
    let output = child.wait_with_output().unwrap();
    drop(feeder.join());
    output
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Its input in place and elsewhere gives what it gives here.
fn check(trial: &Trial, inputs: &[String]) {
    let here = trial.run(inputs).unwrap().parts;
    let job = Job::new(trial, inputs);
    assert!(job.parts() == here, "in place");
    assert!(job.elsewhere().parts() == here, "elsewhere");
}

#[test]
fn words_are_counted_as_they_are_here() {
    let trial = Trial::program("wordcount", json!({})).with(3, 4000, 1 << 20);
    let inputs = [trial.write("a", text(1, 400)), trial.write("b", text(2, 300).trim_end())];
    check(&trial, &inputs);
}

#[test]
fn commands_with_a_combiner_give_what_they_give_here_and_their_reports_arrive_as_they_come() {
    let mut trial = Trial::of(json!({
        "mapper": "tr -s '\\t ' '\\n' | sed 's/$/\\t1/'; echo reporter:counter:g,maps,2 >&2; echo words >&2",
        "combiner": "awk -F'\\t' '{n[$1]+=$2} END {for (w in n) print w \"\\t\" n[w]}' | sort",
        "reducer": "awk -F'\\t' '{n[$1]+=$2} END {for (w in n) print w \"\\t\" n[w]}' | sort; echo reporter:status:end >&2",
    }))
    .with(2, 5000, 1 << 20);
    trial.shuffle.compress = Some(Codec::Lz4);
    let inputs = [trial.write("in", text(3, 600))];
    check(&trial, &inputs);
    let job = Job::new(&trial, &inputs);
    let map = job.map(0);
    assert_eq!(map.said, "reporter:counter:g,maps,2\nwords\n");
    let Report::Done(outcome) = &map.report else { panic!("{map:?}") };
    assert_eq!(outcome, &trial.run(&inputs).unwrap().maps[0]);
    assert_eq!(outcome.counts.counters["g,maps"], 2);
}

#[test]
fn maps_without_reduces_give_parts_as_they_are_here() {
    let mut trial = Trial::of(
        json!({ "mapper": "cat; env | grep -E '^(SLACKLINE_TASK|mapreduce_)' | sort" }),
    )
    .with(0, 3000, 1 << 20);
    trial.setting.env.insert("LC_ALL".to_owned(), "C".to_owned());
    let inputs = [trial.write("in", text(4, 500))];
    assert!(Job::new(&trial, &inputs).parts() == trial.run(&inputs).unwrap().parts);
    trial.compress = Some(Codec::Gzip);
    assert!(Job::new(&trial, &inputs).parts() == trial.run(&inputs).unwrap().parts);
    let long = Trial::of(json!({ "mapper": "cat" })).with(0, 8 << 20, 1 << 20);
    check(&long, &[long.write("in", "a line\n".repeat(400_000))]);
    let made = Trial::program("teragen", json!({ "records": 1000, "maps": 3 }));
    check(&made, &[]);
    let plain = Trial::of(json!({ "command": "sort $SLACKLINE_INPUTS" }));
    check(&plain, &[plain.write("x", text(5, 20)), plain.write("y", text(6, 20))]);
}

#[test]
fn compressed_inputs_are_read_as_wholes() {
    let trial = Trial::program("count", json!({ "field": 1 })).with(2, 1000, 1 << 20);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text(7, 900).as_bytes()).unwrap();
    check(&trial, &[trial.write("in.gz", packed.finish().unwrap()), trial.write("plain", text(8, 100))]);
}

#[test]
fn empty_inputs_and_many_partitions_are_nothing_special() {
    let empty = Trial::program("wordcount", json!({})).with(2, 1000, 1 << 20);
    check(&empty, &[empty.write("empty", "")]);
    let wide = Trial::of(json!({ "mapper": "cat", "reducer": "cat" })).with(40, 60, 1 << 20);
    check(&wide, &[wide.write("in", "some\nfew\nwords\nand\nmore\n".repeat(8))]);
    let sorted = Trial::program("sort", json!({})).with(4, 4000, 1 << 20);
    let inputs = [sorted.write("in", text(9, 500))];
    assert!(Job::new(&sorted, &inputs).parts() == sorted.run(&inputs).unwrap().parts);
}

#[test]
fn files_keep_the_names_that_the_job_has_for_them() {
    let trial =
        Trial::of(json!({ "mapper": "cat; pwd; echo $mapreduce_map_input_file" })).with(0, 100, 1 << 20);
    trial.write("in", "a\n");
    for (name, cwd) in [("in", None), ("./in", None), ("in", Some("sub")), ("sub/../in", None)] {
        fs::create_dir_all(trial.path("sub")).unwrap();
        let split =
            Split { path: name.into(), offset: 0, length: Some(2), input: 0, source: None, copy: None };
        let mut job = Job::of(&trial, vec![vec![split]]);
        job.plan.setting.cwd = cwd.map(Into::into);
        let job = job.written();
        let splits = job.plan.maps[0].clone();
        let task = Task::Map { index: 0, maps: 1, splits, partitions: 0, prepared: None };
        let mut spec = trial.spec(task, &trial.path("here"));
        spec.setting = job.plan.setting.clone();
        let mut command = Command::new(env!("CARGO_BIN_EXE_slackline-worker"));
        command.current_dir(trial.dir.path());
        let mut child = start_as(command, &spec);
        assert!(matches!(report(&mut child), Report::Done(_)));
        drop(child.stdin.take());
        child.wait().unwrap();
        let here = fs::read_to_string(trial.path("here/part-00000")).unwrap();
        assert_eq!(String::from_utf8(job.map(0).part()).unwrap(), here, "{name} {cwd:?}");
    }
    // Where there is no such directory commands work in that of the container.
    let mut job = Job::new(&trial, &[trial.path("in").display().to_string()]);
    job.plan.setting.cwd = Some("nowhere".into());
    let part = String::from_utf8(job.written().map(0).part()).unwrap();
    assert_eq!(part.lines().nth(1), trial.path("container-map-0/work").canonicalize().unwrap().to_str());
}

#[test]
fn damage_of_map_output_is_found() {
    let trial = Trial::program("wordcount", json!({})).with(1, 300, 1 << 20);
    let job = Job::new(&trial, &[trial.write("in", text(10, 60))]);
    let mut maps: Vec<Gave> = (0..job.plan.maps.len() as u32).map(|map| job.map(map)).collect();
    assert!(maps.len() > 2);
    let good = maps[1].frames[0].1.clone();
    for (at, byte) in [(3, 1), (50, 1), (good.len() - 1, 1)] {
        maps[1].frames[0].1.clone_from(&good);
        maps[1].frames[0].1[at] ^= byte;
        let gave = job.reduce(0, &maps);
        let (message, lost) = gave.failure();
        assert!(message.contains("the output of a map is lost: "), "{message}");
        assert_eq!(lost, Some(&*trial.path("container-reduce-0/work/attempt-7/maps/1")));
    }
    maps[1].frames[0].1 = good[..good.len() - 1].to_vec();
    assert!(job.reduce(0, &maps).failure().1.is_some());
    maps[1].frames[0].1 = [&*good, b"x"].concat();
    let gave = job.reduce(0, &maps);
    assert!(gave.failure().0.contains("bytes of partition 0, expected "), "{gave:?}");
}

#[test]
fn a_command_that_fails_is_reported() {
    let trial =
        Trial::of(json!({ "mapper": "cat", "reducer": "echo why >&2; exit 3" })).with(1, 100, 1 << 20);
    let job = Job::new(&trial, &[trial.write("in", "a\n")]);
    let maps = [job.map(0)];
    let gave = job.reduce(0, &maps);
    assert_eq!(gave.said, "why\n");
    let Report::Failed { message, exit: Some(3), is_final: false, .. } = &gave.report else {
        panic!("{gave:?}")
    };
    assert!(message.starts_with("reducer \"echo why") && message.ends_with("\nwhy"), "{message}");
    fs::remove_file(trial.path("in")).unwrap();
    let gave = job.map(0);
    let Report::Failed { message, is_final: true, .. } = &gave.report else { panic!("{gave:?}") };
    assert!(message.starts_with("cannot read "), "{message}");
}

#[test]
fn an_input_that_changed_since_the_run_began_is_refused() {
    let trial = Trial::of(json!({ "mapper": "cat" })).with(0, 100, 1 << 20);
    let job = Job::new(&trial, &[trial.write("in", "a\n")]);
    let splits = job.plan.maps[0].clone();
    let mut plan = Job::of(&trial, vec![splits.clone()]);
    plan.plan.sources = splits.into_iter().map(|split| (split.path, split.source.unwrap())).collect();
    let job = plan.written();
    assert_eq!(job.map(0).part(), b"a\n");
    trial.write("in", "ab\n");
    assert!(job.map(0).failure().0.ends_with("changed since the run began"));
}

#[test]
fn an_attempt_that_takes_too_long_is_ended_with_all_that_it_started() {
    let trial =
        Trial::of(json!({ "mapper": "sleep 600", "reducer": "cat; sleep 600" })).with(1, 100, 1 << 20);
    let mut job = Job::new(&trial, &[trial.write("in", "a\n")]);
    job.plan.limits.timeout = Some(0.5);
    let job = job.written();
    let slow = job.map(0);
    assert_eq!(slow.failure().0, "timed out after 0.5 s and was killed");
    let Report::Failed { is_final, .. } = slow.report else { panic!("done") };
    assert!(!is_final, "another attempt may be faster");
}

#[test]
fn a_job_in_total_order_is_refused() {
    let mut trial = Trial::of(json!({ "mapper": "cat" }));
    let job = Job::new(&trial, &[trial.write("in", "a\n")]).plan;
    trial.shuffle.ranges = 2;
    let job = Plan { shuffle: trial.shuffle.clone(), ..job };
    let error = job.spec(trial.dir.path(), 1 << 20, None).unwrap_err().to_string();
    assert!(error.starts_with("total_order: not supported on Hadoop: "), "{error}");
    let sorted = Plan { shuffle: Shuffle::default(), needs_preparation: true, ..job };
    let error = sorted.spec(trial.dir.path(), 1 << 20, None).unwrap_err().to_string();
    assert!(error.starts_with("the boundaries of the sorted partitions are missing"), "{error}");
}

/// The message of a refused task.
fn refusal(command: Command, input: &[u8]) -> String {
    let output = ended(command, input);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{said}");
    let said = said.strip_prefix("slackline-worker: ").unwrap().trim_end().to_owned();
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[test]
fn invalid_tasks_are_refused_with_their_place() {
    let trial = Trial::program("wordcount", json!({})).with(2, 100, 1 << 20);
    let job = Job::new(&trial, &[trial.write("in", "a\n")]);
    let maps = [job.map(0)];
    let (spec, pieces) =
        (fs::read(trial.path("spec.json")).unwrap(), fs::read(trial.path("pieces")).unwrap());
    let map = || refusal(job.command("map", 0), b"");
    assert!(
        refusal(job.command("map", 1), b"")
            .ends_with("/pieces: line 2: found the end, expected a line for each map")
    );
    assert_eq!(refusal(job.command("reduce", 2), b""), "--task: found reduce 2, expected one of 2 from 0");
    for (line, problem) in [
        ("[]", "line 1: found no tab, expected hosts, a tab and pieces"),
        ("\t[{}]", "line 1: missing field `path` at line 1 column 3"),
        ("\t{", "line 1: "),
        (
            "\t[{\"path\":\"hdfs://x/y\",\"offset\":0,\"length\":null,\"input\":0}]",
            "found \"hdfs://x/y\", expected a copy",
        ),
        (
            "\t[{\"path\":\"file://host/y\",\"offset\":0,\"length\":null,\"input\":0}]",
            "found \"file://host/y\", expected a copy",
        ),
    ] {
        fs::write(trial.path("pieces"), line).unwrap();
        assert!(map().contains(problem), "{}", map());
    }
    fs::write(trial.path("pieces"), pieces).unwrap();
    let copied = |copy: &str| {
        let mut command = job.command("map", 0);
        command.args(["--copy", copy]);
        refusal(command, b"")
    };
    assert_eq!(
        copied("1=x"),
        "internal error: the job names a copy of split 1, but its number of splits is 1; please report this"
    );
    assert_eq!(copied("x"), "--copy: found \"x\", expected the number of a piece, = and a file");
    let reduce = |input: &[u8]| refusal(job.command("reduce", 0), input);
    assert_eq!(reduce(b""), "standard input: found the output of 0 maps, expected 1");
    assert_eq!(reduce(b"\0\0"), "standard input: found 2 bytes of a frame's head, expected 8");
    let good = shuffled(0, &maps);
    assert!(reduce(&good[..good.len() - 1]).contains("bytes of a frame, expected "));
    let mut twice = good.clone();
    put(&mut twice, 1, b"x");
    assert_eq!(
        reduce(&twice),
        "standard input: found tag 1 after 1 maps, expected 1 maps in the order of their numbers"
    );
    for bad in ["", "{}", "[1]", "{\"job\":"] {
        fs::write(trial.path("spec.json"), bad).unwrap();
        assert!(map().contains("/spec.json: "), "{}", map());
    }
    fs::write(trial.path("spec.json"), spec).unwrap();
    for (arguments, problem) in [
        (&[][..], "found \"\", expected container map|reduce"),
        (&["help"], "found \"help\", expected container map|reduce"),
        (&["map"], "missing --pieces, usage: container"),
        (&["reduce", "--spec"], "found \"--spec\", expected container"),
        (&["reduce", "--what", "x"], "found \"--what\", expected container"),
        (&["reduce", "--spec", "x", "--task", "-1"], "--task: found \"-1\", expected a number"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slackline-worker"));
        command.arg("container").args(arguments);
        let said = refusal(command, b"");
        assert!(said.starts_with(problem), "{said}");
    }
}

#[test]
fn a_task_in_a_container_whose_parent_dies_ends_with_all_that_it_started() {
    let hang = "sleep 600 & echo $! $$ > pids.new; mv pids.new pids; sleep 600";
    let trial = Trial::of(
        json!({ "mapper": format!("cat; [ ! -e hang ] || {{ {hang}; }}"), "reducer": hang }),
    )
    .with(1, 100, 1 << 20);
    let job = Job::new(&trial, &[trial.write("in", "a\n")]);
    let maps = [job.map(0)];
    let input = trial.write("frames", shuffled(0, &maps));
    trial.write("hang", "");
    for phase in ["map", "reduce"] {
        let mut child = piped(&mut job.command(phase, 0));
        let mut stdin = child.stdin.take();
        if phase == "reduce" {
            stdin.take().unwrap().write_all(&fs::read(&input).unwrap()).unwrap();
        }
        let file = trial.path("pids");
        eventually("the command has started", || file.exists());
        let pids = fs::read_to_string(&file).unwrap();
        assert!(pids.split_whitespace().count() == 2 && pids.split_whitespace().all(runs));
        // What the system does with the ends of a parent that dies.
        drop((stdin, child.stdout.take(), child.stderr.take()));
        eventually("all has ended", || !pids.split_whitespace().any(runs));
        assert_eq!(child.wait().unwrap().code(), Some(1));
        fs::remove_file(&file).unwrap();
    }
}
