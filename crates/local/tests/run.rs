//! Runs with real processes: results are right, failures stay where they are, and a run that was cut short
//! is resumed.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use slackline_algo::baseline::{By, Fifo};
use slackline_local::JobHistory;
use slackline_local::clock::unix_micros;
use slackline_local::run::{Drive, Opening, Session, open};
use slackline_local::{
    Choices, Ended, Happening, InputRules, Interrupt, Observer, RunEnd, Settings, Setup, TaskId, WorkerCommand,
    resolve, run_schedule,
};
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, RunDraft, RunWork};
use slackline_model::schedule::FlowStatus;
use slackline_model::{Instance, PhaseKind, Schedule, Span, Time};
use slackline_policy::Config;

/// Remembers what happened; stops the run after so many finished tasks.
#[derive(Default)]
struct Watcher {
    done: Vec<TaskId>,
    failures: Vec<String>,
    logs: Vec<PathBuf>,
    stop_after: Option<usize>,
    stop: Option<std::sync::mpsc::Receiver<Interrupt>>,
}

impl Observer for Watcher {
    fn happened(&mut self, _: Time, what: Happening<'_>) {
        match what {
            Happening::Done(id, _) => self.done.push(id),
            Happening::Failed { message, log, .. } => {
                self.failures.push(message.to_owned());
                self.logs.extend(log.map(Path::to_owned));
            }
            _ => {}
        }
        if self.stop_after.is_some_and(|n| self.done.len() >= n)
            && let Some(stop) = self.stop.take()
        {
            stop.recv().unwrap().stop();
        }
    }
}

fn settings() -> Settings {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_slackline-worker"));
    Settings::new(WorkerCommand { program, args: Vec::new() })
        .with_memory_bytes(16 << 20)
        .with_timeout(Some(Span::from_seconds_nearest(20.0)))
}

fn program(name: &str, inputs: &[String], output: &Path, reducers: Option<u32>) -> RunDraft {
    let work = RunWork::Program { name: name.to_owned(), args: Vec::new() };
    RunDraft { inputs: inputs.to_vec(), reducers, ..RunDraft::new(work, output.display().to_string()) }
}

fn mapper(command: &str, input: &Path, output: &Path) -> RunDraft {
    let work = RunWork::Commands { mapper: command.to_owned(), reducer: None, combiner: None };
    RunDraft {
        inputs: vec![input.display().to_string()],
        ..RunDraft::new(work, output.display().to_string())
    }
}

fn job(id: &str, after: &[&str], run: RunDraft) -> JobDraft {
    let after = after.iter().map(|&a| a.to_owned()).collect();
    JobDraft { id: id.to_owned(), after, run: Some(run), ..JobDraft::default() }
}

fn draft(flows: Vec<FlowDraft>) -> Draft {
    let slots = Slots::Universal(2);
    let machine = MachineDraft { name: "local".to_owned(), count: 1, speed: 1.0, slots, rack: None };
    Draft { machines: vec![machine], flows, ..Draft::default() }
}

/// Opens the run in `dir/run`.
fn session(dir: &Path, draft: &Draft) -> Session {
    let directory = std::env::current_dir().unwrap();
    let rules = InputRules { split_bytes: 1 << 10, hash: false, directory: &directory };
    let setup = Setup { directory: directory.display().to_string(), ..Setup::default() };
    let state = dir.join("run");
    let choices = Choices::default();
    let opening = Opening { state: &state, setup, started: unix_micros(), choices };
    open(opening, resolve(draft, rules, &JobHistory::new()).unwrap()).unwrap()
}

fn go(session: &mut Session, watcher: &mut Watcher) -> RunEnd {
    let Some(instance) = session.remaining().unwrap() else { return RunEnd::Done };
    let mut policy = Fifo::new(By::Job);
    let config = Config::plain().audited();
    let (sender, receiver) = std::sync::mpsc::channel();
    watcher.stop = Some(receiver);
    let stop = |stop| sender.send(stop).unwrap();
    let drive = Drive { instance: &instance, policy: &mut policy, config, observer: watcher };
    session.run(drive, settings(), stop).unwrap()
}

/// The schedule of what happened, judged against the measured workload.
fn judged(session: &Session) -> Schedule {
    let instance = Instance::new(&run_schedule::measured(session.draft(), session.attempts())).unwrap();
    let schedule = run_schedule::schedule(&instance, session.attempts(), "fifo", 1.0);
    slackline_judge::check(&instance, &schedule).unwrap_or_else(|violation| panic!("{violation}"));
    schedule
}

/// All part files of an output, in order; nothing else but the mark of success may be there.
fn output(dir: &Path) -> String {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.remove(0), "_SUCCESS");
    assert!(names.iter().all(|name| name.starts_with("part-")), "{names:?}");
    names.iter().map(|name| fs::read_to_string(dir.join(name)).unwrap()).collect()
}

/// A text, and how often each word is in it.
fn text(dir: &Path) -> (PathBuf, BTreeMap<String, u64>) {
    let words = ["the", "slack", "line", "holds", "a", "walker", "who", "waits"];
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut lines = String::new();
    for k in 0..1000usize {
        for j in 0..5 {
            let word = words[(k * k + 3 * j) % words.len()];
            *counts.entry(word.to_owned()).or_default() += 1;
            lines.extend([word, " "]);
        }
        lines.push('\n');
    }
    let path = dir.join("text.txt");
    fs::write(&path, lines).unwrap();
    (path, counts)
}

fn two_jobs(dir: &Path, input: &Path) -> Draft {
    let words = program("wordcount", &[input.display().to_string()], &dir.join("out/words"), Some(3));
    let sorted = program("sort", &["@count".to_owned()], &dir.join("out/sorted"), Some(1));
    draft(vec![FlowDraft::new("f", vec![job("count", &[], words), job("sort", &["count"], sorted)])])
}

fn counted(text: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (word, count) = line.split_once('\t').unwrap();
        (word.to_owned(), count.trim().parse().unwrap())
    };
    text.lines().map(pair).collect()
}

#[test]
fn a_flow_gives_the_right_results_and_a_schedule_that_the_judge_accepts() {
    let dir = tempfile::tempdir().unwrap();
    let (input, expected) = text(dir.path());
    let mut session = session(dir.path(), &two_jobs(dir.path(), &input));
    let mut watcher = Watcher::default();
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Done, "{:?}", watcher.failures);
    assert_eq!(counted(&output(&dir.path().join("out/words"))), expected);
    let sorted = output(&dir.path().join("out/sorted"));
    assert!(sorted.lines().is_sorted() && sorted.lines().count() == expected.len(), "{sorted}");
    assert_eq!(judged(&session).flows[0].status, FlowStatus::Done);
    let maps = dir.path().join("run/maps");
    assert!(fs::read_dir(maps).unwrap().next().is_none(), "map output is cleared");
}

#[test]
fn a_mapper_that_fails_takes_its_flow_with_it_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (input, expected) = text(dir.path());
    let mut draft = two_jobs(dir.path(), &input);
    let bad = mapper("echo this is why >&2; exit 3", &input, &dir.path().join("out/bad"));
    draft.flows.push(FlowDraft::new("bad", vec![job("j", &[], bad)]));
    let mut session = session(dir.path(), &draft);
    let mut watcher = Watcher::default();
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Failed);
    for message in &watcher.failures {
        assert!(message.contains("exit status: 3") && message.contains("this is why"), "{message}");
    }
    assert!(fs::read_to_string(&watcher.logs[0]).unwrap().contains("this is why"));
    assert_eq!(counted(&output(&dir.path().join("out/words"))), expected);
    assert!(!dir.path().join("out/bad/_SUCCESS").exists());
    let flows: Vec<FlowStatus> = judged(&session).flows.iter().map(|f| f.status).collect();
    assert_eq!(flows, [FlowStatus::Done, FlowStatus::Failed]);
}

#[test]
fn a_mapper_that_hangs_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (input, _) = text(dir.path());
    let hang = mapper("sleep 1000 & sleep 1000", &input, &dir.path().join("out/hang"));
    let mut session = session(dir.path(), &draft(vec![FlowDraft::new("hang", vec![job("j", &[], hang)])]));
    let instance = session.remaining().unwrap().unwrap();
    let mut policy = Fifo::new(By::Job);
    let config = Config::plain().with_attempts_max(1);
    let settings = settings().with_timeout(Some(Span::from_seconds_nearest(0.5)));
    let mut watcher = Watcher::default();
    let drive = Drive { instance: &instance, policy: &mut policy, config, observer: &mut watcher };
    let end = session.run(drive, settings, |_| {}).unwrap();
    assert_eq!(end, RunEnd::Failed);
    assert!(watcher.failures[0].contains("found no end after 0.5"), "{:?}", watcher.failures);
}

#[test]
fn a_run_that_was_stopped_goes_on_without_doing_anything_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (input, expected) = text(dir.path());
    let draft = two_jobs(dir.path(), &input);
    let mut done: Vec<TaskId> = Vec::new();
    for stop_after in [1, 3, 7] {
        let mut session = session(dir.path(), &draft);
        assert_eq!(session.recovered().done, done.len());
        let mut watcher = Watcher { stop_after: Some(stop_after), ..Watcher::default() };
        assert_eq!(go(&mut session, &mut watcher), RunEnd::Interrupted);
        done.append(&mut watcher.done);
    }
    let mut session = session(dir.path(), &draft);
    let mut watcher = Watcher::default();
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Done, "{:?}", watcher.failures);
    done.append(&mut watcher.done);
    let once: BTreeSet<TaskId> = done.iter().copied().collect();
    assert_eq!(once.len(), done.len(), "no task was done twice");
    assert_eq!(counted(&output(&dir.path().join("out/words"))), expected);
    judged(&session);
}

#[test]
fn a_recorded_task_whose_output_was_not_moved_yet_is_rolled_forward() {
    let dir = tempfile::tempdir().unwrap();
    let (input, expected) = text(dir.path());
    let draft = two_jobs(dir.path(), &input);
    {
        let mut session = session(dir.path(), &draft);
        let mut watcher = Watcher { stop_after: Some(3), ..Watcher::default() };
        assert_eq!(go(&mut session, &mut watcher), RunEnd::Interrupted);
        // As if the engine had died between the record and the move.
        let done = session.attempts().iter().find(|a| matches!(a.ended, Ended::Done(_))).unwrap();
        let root = dir.path().join("run");
        let jobs = fs::read_dir(root.join("maps")).unwrap().map(|entry| entry.unwrap().path());
        let place = jobs.map(|job| job.join(done.id.task.to_string())).find(|map| map.exists()).unwrap();
        fs::create_dir_all(root.join("attempts")).unwrap();
        fs::rename(place, root.join("attempts").join(done.number.to_string())).unwrap();
    }
    let mut session = session(dir.path(), &draft);
    assert_eq!(go(&mut session, &mut Watcher::default()), RunEnd::Done);
    assert_eq!(counted(&output(&dir.path().join("out/words"))), expected);
}

#[test]
fn a_straggler_is_tried_again_on_an_idle_slot() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = dir.path().join("in");
    fs::create_dir(&inputs).unwrap();
    for k in 0..4 {
        fs::write(inputs.join(format!("{k}.txt")), format!("{k}\n").repeat(300)).unwrap();
    }
    // The first attempt at one of the files hangs, the second does not.
    let mark = dir.path().join("mark");
    let command = format!(
        "read first; if [ $first = 3 ] && mkdir {} 2>/dev/null; then sleep 60; fi; cat > /dev/null; echo $first",
        mark.display()
    );
    let slow = mapper(&command, &inputs, &dir.path().join("out"));
    let mut session = session(dir.path(), &draft(vec![FlowDraft::new("f", vec![job("j", &[], slow)])]));
    let instance = session.remaining().unwrap().unwrap();
    let mut policy = Fifo::new(By::Job);
    let settings = settings().with_speculate(true);
    let mut watcher = Watcher::default();
    let config = Config::plain().audited();
    let drive = Drive { instance: &instance, policy: &mut policy, config, observer: &mut watcher };
    let end = session.run(drive, settings, |_| {}).unwrap();
    assert_eq!(end, RunEnd::Done, "{:?}", watcher.failures);
    assert_eq!(output(&dir.path().join("out")), "0\n1\n2\n3\n");
    let killed: Vec<TaskId> =
        session.attempts().iter().filter(|a| a.ended == Ended::Killed).map(|a| a.id).collect();
    assert_eq!(killed, [TaskId { job: 0, phase: PhaseKind::Map, task: 3 }]);
    judged(&session);
}
