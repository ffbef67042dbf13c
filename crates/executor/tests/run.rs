//! Runs with real processes: results are right, failures stay where they are, and a run that was cut short
//! is resumed.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::{fs, mem};

use slackline_algo::baseline::{Fifo, ShareUnit};
use slackline_executor::engine::Settings;
use slackline_executor::engine::backend::{EndedRun, RunConfig, Session as _, ended_runs, without_flows};
use slackline_executor::engine::event::RunEvent;
use slackline_executor::engine::process_session::ProcessSession;
use slackline_executor::run::opening::{Opening, open};
use slackline_executor::run::reuse::Choices;
use slackline_executor::run::{RunEnd, Session};
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::spec::resolve::{InputRules, ResolvedWorkload, resolve};
use slackline_executor::store::journal::{AttemptOutcome, Setup};
use slackline_executor::store::pid_file::at_work;
use slackline_executor::store::run_schedule;
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, RunDraft, RunWork};
use slackline_model::schedule::FlowResult;
use slackline_model::{Instance, PhaseKind, Schedule, Span};
use slackline_policy::{Config, Driver};
use slackline_task::base::clock::unix_micros;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::Limits;
use slackline_task::process::worker_command::WorkerCommand;

/// Does something to a run, given the tasks that are done.
type Meddler = Box<dyn FnMut(&[TaskId]) + Send>;

/// Damages the map output below a directory.
type Damage = fn(&Path);

/// Records the events; stops the run after `stop_after` finished tasks.
#[derive(Default)]
struct Watcher {
    done: Vec<TaskId>,
    failures: Vec<String>,
    logs: Vec<PathBuf>,
    /// How many attempts were said to wait for their machine.
    waits: usize,
    stop_after: Option<usize>,
    is_stopped: bool,
    /// Does something when a task is done, given all that are.
    meddle: Option<Meddler>,
}

impl Watcher {
    fn happened(&mut self, event: &RunEvent) {
        match event {
            RunEvent::TaskFinished { task: id, .. } => {
                self.done.push(*id);
                if let Some(meddle) = &mut self.meddle {
                    meddle(&self.done);
                }
            }
            RunEvent::AttemptProgress(attempt) => self.waits += usize::from(attempt.progress.waits),
            RunEvent::AttemptFailed { message, log, .. } => {
                self.failures.push(message.to_owned());
                self.logs.extend(log.clone());
            }
            _ => {}
        }
        self.is_stopped |= self.stop_after.is_some_and(|n| self.done.len() >= n);
    }
}

/// A session that is opened, or driven.
struct Opened {
    session: Option<Session>,
    settings: Settings,
}

impl Deref for Opened {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().unwrap()
    }
}

fn settings() -> Settings {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_slackline-agent"));
    Settings {
        memory_bytes: 16 << 20,
        timeout: Some(Span::from_seconds_nearest(20.0)),
        ..Settings::new(WorkerCommand { program, args: Vec::new() })
    }
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
    let slots = Slots::Generic(2);
    let machine = MachineDraft { name: "local".to_owned(), count: 1, speed: 1.0, slots, rack: None };
    Draft { machines: vec![machine], flows, ..Draft::default() }
}

/// What a workload resolves to here.
fn resolved(draft: &Draft, directory: &Path) -> ResolvedWorkload {
    let rules =
        InputRules { split_bytes: 1 << 10, hash: false, directory, outputs: Path::new("state/outputs") };
    resolve(draft, rules, &JobHistory::new()).unwrap()
}

/// Opens the run of a resolved workload in `dir/run`.
fn opened(dir: &Path, resolved: &ResolvedWorkload) -> Opened {
    let directory = std::env::current_dir().unwrap().display().to_string();
    let (state, setup) = (dir.join("run"), Setup { directory, ..Setup::default() });
    let (choices, says) = (Choices::default(), &|_: &str| {});
    let opening =
        Opening { state: &state, setup, started: unix_micros(), choices, beside_others: false, status: says };
    Opened { session: Some(open(opening, resolved).unwrap()), settings: settings() }
}

/// Opens the run in `dir/run`.
fn session(dir: &Path, draft: &Draft) -> Opened {
    opened(dir, &resolved(draft, &std::env::current_dir().unwrap()))
}

fn go(session: &mut Opened, watcher: &mut Watcher) -> RunEnd {
    go_with(session, watcher, slackline_policy::driver::ATTEMPTS_MAX)
}

/// Drives a run by FIFO to its end, or until the watcher stops it.
fn go_with(opened: &mut Opened, watcher: &mut Watcher, attempts_max: u16) -> RunEnd {
    if opened.remaining().unwrap().is_none() {
        return RunEnd::Done;
    }
    let session = opened.session.take().unwrap();
    let mut session = Box::new(ProcessSession::new(session, opened.settings.clone()));
    let mut engine = session.engine().unwrap();
    let shared = Arc::new(Mutex::new(mem::take(watcher)));
    let config = RunConfig { attempts_max, slowstart: 1.0, overrides: BTreeMap::new(), quota: None };
    let seen = shared.clone();
    engine.add_run(session, config, Box::new(move |_, event| seen.lock().unwrap().happened(event))).unwrap();
    let (empty, mut nowhere, mut policy) = (without_flows(&engine.machines()), (), Fifo::new(ShareUnit::Job));
    let mut ended = Vec::new();
    // How often a task may fail is known to its run.
    let config = Config { attempts_max: u16::MAX, ..Config::plain().audited() };
    let mut driver = Driver::new(empty, &mut policy, engine.as_mut(), &mut nowhere, config);
    while ended.is_empty() && !shared.lock().unwrap().is_stopped && driver.step() {
        ended = ended_runs(driver.engine().events());
    }
    driver.close();
    ended.extend(engine.stop());
    let EndedRun { how, session, .. } = ended.pop().unwrap();
    opened.session = Some((session as Box<dyn Any>).downcast::<ProcessSession>().unwrap().session);
    *watcher = mem::take(&mut shared.lock().unwrap());
    how.unwrap()
}

/// The schedule of the run, judged against the measured workload.
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
    assert_eq!(judged(&session).flows[0].status, FlowResult::Done);
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
    let flows: Vec<FlowResult> = judged(&session).flows.iter().map(|f| f.status).collect();
    assert_eq!(flows, [FlowResult::Done, FlowResult::Failed]);
}

#[test]
fn a_mapper_that_hangs_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (input, _) = text(dir.path());
    let hang = mapper("sleep 1000 & sleep 1000", &input, &dir.path().join("out/hang"));
    let mut session = session(dir.path(), &draft(vec![FlowDraft::new("hang", vec![job("j", &[], hang)])]));
    session.settings.timeout = Some(Span::from_seconds_nearest(0.5));
    let mut watcher = Watcher::default();
    assert_eq!(go_with(&mut session, &mut watcher, 1), RunEnd::Failed);
    assert!(watcher.failures[0].contains("timed out after 0.5"), "{:?}", watcher.failures);
}

#[test]
fn a_stopped_run_resumes_and_reruns_no_finished_task() {
    let dir = tempfile::tempdir().unwrap();
    let (input, expected) = text(dir.path());
    let draft = two_jobs(dir.path(), &input);
    let mut done: Vec<TaskId> = Vec::new();
    for stop_after in [1, 3, 7] {
        let mut session = session(dir.path(), &draft);
        assert_eq!(session.record().recovered.done, done.len());
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
        let done = session.attempts().iter().find(|a| matches!(a.ended, AttemptOutcome::Done(_))).unwrap();
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
fn a_job_whose_output_was_marked_and_not_remembered_yet_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let (input, expected) = text(dir.path());
    let draft = two_jobs(dir.path(), &input);
    {
        let mut session = session(dir.path(), &draft);
        let instance = session.remaining().unwrap().unwrap();
        let phases = instance.jobs().iter().next().unwrap().phases();
        let tasks: u32 = phases.map(|phase| instance.phase(phase).tasks().unwrap().count()).sum();
        let mut watcher = Watcher { stop_after: Some(tasks as usize), ..Watcher::default() };
        assert_eq!(go(&mut session, &mut watcher), RunEnd::Interrupted);
    }
    // As if the engine had died between the mark and the record of the finished job.
    let (words, sorted) = (dir.path().join("out/words/_temporary"), dir.path().join("out/sorted/_temporary"));
    fs::create_dir_all(words.join("parts")).unwrap();
    fs::copy(sorted.join("owner"), words.join("owner")).unwrap();
    fs::remove_file(dir.path().join("run/jobs.log")).unwrap();
    assert!(dir.path().join("out/words/_SUCCESS").exists());
    let (mut session, mut watcher) = (session(dir.path(), &draft), Watcher::default());
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Done, "{:?}", watcher.failures);
    assert!(watcher.done.iter().all(|id| id.job == 1), "nothing was done twice");
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
    session.settings.speculate = true;
    let mut watcher = Watcher::default();
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Done, "{:?}", watcher.failures);
    assert_eq!(output(&dir.path().join("out")), "0\n1\n2\n3\n");
    let killed: Vec<TaskId> =
        session.attempts().iter().filter(|a| a.ended == AttemptOutcome::Killed).map(|a| a.id).collect();
    assert_eq!(killed, [TaskId { job: 0, phase: PhaseKind::Map, task: 3 }]);
    judged(&session);
}

/// A word count of several maps and three reduces, and what it must give.
fn counting(dir: &Path) -> (Draft, BTreeMap<String, u64>) {
    let (input, expected) = text(dir);
    let words = program("wordcount", &[input.display().to_string()], &dir.join("out/words"), Some(3));
    (draft(vec![FlowDraft::new("f", vec![job("count", &[], words)])]), expected)
}

/// Where the maps of the only job with reduces are; nowhere if none is done.
fn maps_in(dir: &Path) -> PathBuf {
    let entries = fs::read_dir(dir.join("run/maps"));
    entries.ok().and_then(|mut jobs| Some(jobs.next()?.unwrap().path())).unwrap_or_default()
}

fn maps_of(session: &Session) -> usize {
    session.jobs()[0].maps() as usize
}

/// Defect 6: map output that is lost in any way, at any time, is made again.
#[test]
fn a_map_whose_output_is_gone_or_damaged_is_made_again_and_its_flow_does_not_fail() {
    let damages: [(&str, Damage); 4] = [
        ("one is gone", |maps| fs::remove_dir_all(maps.join("0")).unwrap()),
        ("all are gone", |maps| fs::remove_dir_all(maps).unwrap()),
        ("one is cut", |maps| {
            fs::File::options().write(true).open(maps.join("1/map.out")).unwrap().set_len(3).unwrap();
        }),
        ("two have lost their files", |maps| {
            for file in ["0/map.out", "2/map.out"] {
                fs::remove_file(maps.join(file)).unwrap();
            }
        }),
    ];
    for (what, damage) in damages {
        for is_resumed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (draft, expected) = counting(dir.path());
            let mut first = session(dir.path(), &draft);
            let (total, root) = (maps_of(&first), dir.path().to_owned());
            let mut watcher = Watcher::default();
            if is_resumed {
                watcher.stop_after = Some(total);
                assert_eq!(go(&mut first, &mut watcher), RunEnd::Interrupted);
                // As damage looks that nothing sees before it is read.
                for map in 0..total {
                    fs::write(maps_in(&root).join(map.to_string()).join("map.out"), "").unwrap();
                }
            } else {
                watcher.meddle = Some(Box::new(move |done| {
                    if done.len() == total {
                        damage(&maps_in(&root));
                    }
                }));
            }
            drop(first);
            let mut session = session(dir.path(), &draft);
            let mut rest = if is_resumed { Watcher::default() } else { watcher };
            assert_eq!(go(&mut session, &mut rest), RunEnd::Done, "{what}: {:?}", rest.failures);
            assert_eq!(counted(&output(&dir.path().join("out/words"))), expected, "{what}");
            let lost = session.attempts().iter().filter(|attempt| attempt.ended.is_lost()).count();
            assert!(lost > 0, "{what}");
            assert_eq!(session.done().len(), total + 3, "{what}");
            assert_eq!(judged(&session).flows[0].status, FlowResult::Done, "{what}");
        }
    }
}

/// Of several maps whose files are gone, empty or cut, the first loss finds all: no reduce begins once for
/// each of them.
#[test]
fn maps_that_are_lost_together_are_made_again_together() {
    let damages: [Damage; 2] = [
        |map| fs::remove_file(map).unwrap(),
        |map| {
            let file = fs::File::options().write(true).open(map).unwrap();
            file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        },
    ];
    for damage in damages {
        let dir = tempfile::tempdir().unwrap();
        let (draft, expected) = counting(dir.path());
        let mut session = session(dir.path(), &draft);
        let (total, root) = (maps_of(&session), dir.path().to_owned());
        let meddle = move |done: &[TaskId]| {
            if done.len() == total {
                (0..total).for_each(|map| damage(&maps_in(&root).join(format!("{map}/map.out"))));
            }
        };
        let mut watcher = Watcher { meddle: Some(Box::new(meddle)), ..Watcher::default() };
        assert_eq!(go(&mut session, &mut watcher), RunEnd::Done, "{:?}", watcher.failures);
        assert_eq!(counted(&output(&dir.path().join("out/words"))), expected);
        let attempts = session.attempts();
        assert_eq!(attempts.iter().filter(|attempt| attempt.ended.is_lost()).count(), total);
        let reduces = attempts.iter().filter(|attempt| attempt.id.phase == PhaseKind::Reduce).count();
        assert!(total > 6 && reduces <= 6, "{reduces} attempts of 3 reduces, {total} maps");
    }
}

#[test]
fn a_map_whose_output_is_lost_again_and_again_fails_its_flow() {
    let dir = tempfile::tempdir().unwrap();
    let (mut draft, _) = counting(dir.path());
    let (input, _) = text(dir.path());
    let good = mapper("cat", &input, &dir.path().join("out/good"));
    draft.flows.push(FlowDraft::new("good", vec![job("j", &[], good)]));
    let mut session = session(dir.path(), &draft);
    let (total, root) = (maps_of(&session), dir.path().to_owned());
    let meddle = move |done: &[TaskId]| {
        let maps = maps_in(&root);
        let of_count = |id: &&TaskId| id.job == 0 && id.phase == PhaseKind::Map;
        if done.iter().filter(of_count).count() >= total && maps.join("0").exists() {
            fs::remove_dir_all(maps.join("0")).unwrap();
        }
    };
    let mut watcher = Watcher { meddle: Some(Box::new(meddle)), ..Watcher::default() };
    assert_eq!(go_with(&mut session, &mut watcher, 2), RunEnd::Failed);
    let last = watcher.failures.last().unwrap();
    assert!(
        last.contains("the output of map 0 was lost 2 times before; check the disk that it was on"),
        "{last}"
    );
    let flows: Vec<FlowResult> = judged(&session).flows.iter().map(|f| f.status).collect();
    assert_eq!(flows, [FlowResult::Failed, FlowResult::Done]);
}

/// A run of commands over small files, one flow each, whose jobs have these limits.
fn limited(dir: &Path, jobs: &[(&str, Limits)]) -> Opened {
    let inputs = dir.join("in");
    fs::create_dir_all(&inputs).unwrap();
    for k in 0..3 {
        fs::write(inputs.join(format!("{k}.txt")), format!("{k}\n").repeat(400)).unwrap();
    }
    let flow = |(k, (command, _)): (usize, &(&str, Limits))| {
        let run = mapper(command, &inputs, &dir.join(format!("out/{k}")));
        FlowDraft::new(format!("f{k}"), vec![job("j", &[], run)])
    };
    let draft = draft(jobs.iter().enumerate().map(flow).collect());
    let mut resolved = resolved(&draft, &std::env::current_dir().unwrap());
    for (plan, (_, limits)) in resolved.jobs.iter_mut().zip(jobs) {
        plan.limits = limits.clone();
    }
    opened(dir, &resolved)
}

/// Defect 13: what no second attempt can mend is not tried again.
#[test]
fn a_failure_that_is_final_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let codes = Limits { no_retry: vec![7, 9], ..Limits::default() };
    let twice = Limits { attempts: Some(2), ..Limits::default() };
    let jobs = [
        ("exit 9", codes.clone()),
        ("no-such-command-at-all", Limits::default()),
        ("exit 8", twice),
        ("exit 8", codes),
        ("cat", Limits::default()),
    ];
    let mut session = limited(dir.path(), &jobs);
    assert_eq!(go(&mut session, &mut Watcher::default()), RunEnd::Failed);
    let failures = |job: u32| {
        let failed = |a: &&slackline_executor::store::journal::Attempt| {
            a.id.job == job && matches!(a.ended, AttemptOutcome::Failed(_))
        };
        let mut of_task: BTreeMap<u32, usize> = BTreeMap::new();
        session.attempts().iter().filter(failed).for_each(|a| *of_task.entry(a.id.task).or_default() += 1);
        of_task.values().copied().max().unwrap_or(0)
    };
    assert_eq!([0, 1, 2, 3, 4].map(failures), [1, 1, 2, 4, 0]);
    judged(&session);
}

/// A file that a job declares is not mixed into its output: neither when it changes between two attempts, nor
/// when it is changed and put back while one is running, nor when it is gone.
#[test]
fn a_declared_file_that_changes_during_a_run_fails_its_flow() {
    for (command, between) in
        [("cat; true TAB", "echo new > TAB"), ("cat TAB; echo old > TAB", ":"), ("cat", "rm TAB")]
    {
        let dir = tempfile::tempdir().unwrap();
        let (input, _) = text(dir.path());
        let tab = dir.path().join("tab").display().to_string();
        fs::write(&tab, "old\n").unwrap();
        let mut run = mapper(&command.replace("TAB", &tab), &input, &dir.path().join("out/j"));
        run.setting.files = vec![tab.clone()];
        let mut session = session(dir.path(), &draft(vec![FlowDraft::new("f", vec![job("j", &[], run)])]));
        let between = between.replace("TAB", &tab);
        let change = move |_: &[TaskId]| {
            std::process::Command::new("sh").args(["-c", &between]).status().unwrap();
        };
        let mut watcher = Watcher { meddle: Some(Box::new(change)), ..Watcher::default() };
        assert_eq!(go(&mut session, &mut watcher), RunEnd::Failed, "{command}");
        let said = &watcher.failures[0];
        assert!(said.contains(&format!("{tab}: ")) && said.contains("since the run began"), "{said}");
        assert!(!dir.path().join("out/j/_SUCCESS").exists());
    }
}

#[test]
fn control_characters_of_commands_do_not_reach_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = limited(dir.path(), &[("printf '\\033[31mred\\a' >&2; exit 1", Limits::default())]);
    let mut watcher = Watcher::default();
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Failed);
    assert!(watcher.failures[0].ends_with("\\u001b[31mred\\u0007"), "{:?}", watcher.failures[0]);
}

#[test]
fn a_job_says_how_often_its_tasks_are_tried_and_after_what_pause() {
    let dir = tempfile::tempdir().unwrap();
    let tries = dir.path().join("tries");
    let command =
        format!("n=$SLACKLINE_TASK; echo >> {0}.$n; test $(wc -l < {0}.$n) -ge 6 && cat", tries.display());
    let limits = Limits { attempts: Some(6), retry_delay: Some(0.02), ..Limits::default() };
    let mut session = limited(dir.path(), &[(&command, limits)]);
    assert_eq!(go(&mut session, &mut Watcher::default()), RunEnd::Done);
    for map in 0..session.jobs()[0].maps() {
        let of_map: Vec<_> = session.attempts().iter().filter(|attempt| attempt.id.task == map).collect();
        assert_eq!(of_map.len(), 6);
        for pair in of_map.windows(2) {
            assert!(pair[1].began >= pair[0].end + 20_000, "{pair:?}");
        }
    }
    judged(&session);
}

#[test]
fn a_job_says_how_long_its_attempts_may_take() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { timeout: Some(0.2), attempts: Some(1), ..Limits::default() };
    let mut session =
        limited(dir.path(), &[("trap '' TERM; sleep 1000", limits), ("cat", Limits::default())]);
    let mut watcher = Watcher::default();
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Failed);
    assert!(watcher.failures[0].contains("timed out after 0.2"), "{:?}", watcher.failures);
    assert!(output(&dir.path().join("out/1")).starts_with("0\n"));
}

#[test]
fn an_attempt_starts_when_what_it_takes_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get() as u32;
    let all = Limits { processors: Some(processors), ..Limits::default() };
    let mut session =
        limited(dir.path(), &[("cat; sleep 0.05", all), ("cat; sleep 0.02", Limits::default())]);
    let (state, shown) = (dir.path().join("run"), Arc::new(AtomicBool::new(false)));
    let meddle = {
        let shown = Arc::clone(&shown);
        move |_: &[TaskId]| {
            let waits = at_work(&state).unwrap().into_iter().filter(|attempt| attempt.progress.waits);
            shown.fetch_or(waits.inspect(|one| assert_eq!(one.process, None)).count() > 0, Relaxed);
        }
    };
    let mut watcher = Watcher { meddle: Some(Box::new(meddle)), ..Watcher::default() };
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Done);
    assert!(shown.load(Relaxed), "the state directory shows which attempts wait");
    assert!(at_work(&dir.path().join("run")).unwrap().is_empty());
    let attempts = session.attempts();
    assert!(watcher.waits > 0 && watcher.waits <= attempts.len(), "{} wait", watcher.waits);
    for one in attempts.iter().filter(|attempt| attempt.id.job == 0) {
        let beside = attempts.iter().filter(|other| other.began < one.end && one.began < other.end);
        assert_eq!(beside.count(), 1, "{one:?} is alone");
    }
    judged(&session);
}

#[test]
fn a_job_that_asks_for_more_than_there_is_keeps_its_flow_from_being_run() {
    let dir = tempfile::tempdir().unwrap();
    let greedy = Limits { memory: Some(1 << 60), ..Limits::default() };
    let mut session = limited(dir.path(), &[("cat", greedy), ("cat", Limits::default())]);
    let problem = &session.obstacles()[0].problem;
    assert!(problem.contains("MiB of memory, but this machine has"), "{problem}");
    assert_eq!(go(&mut session, &mut Watcher::default()), RunEnd::Failed);
    assert!(!dir.path().join("out/0").exists() && dir.path().join("out/1/_SUCCESS").exists());
}

/// Workers stay; one that dies is noticed at once, and the next attempt has another.
#[test]
fn a_worker_that_is_killed_fails_its_attempt_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let command = format!(
        "cat; echo $PPID; sleep 0.02; if mkdir {} 2>/dev/null; then kill -9 $PPID; sleep 60; fi",
        mark.display()
    );
    let mut session = limited(dir.path(), &[(&command, Limits::default())]);
    let mut watcher = Watcher::default();
    assert_eq!(go(&mut session, &mut watcher), RunEnd::Done);
    assert_eq!(watcher.failures.len(), 1);
    assert!(
        watcher.failures[0].contains("its process ended without a report: signal: 9"),
        "{:?}",
        watcher.failures
    );
    let text = output(&dir.path().join("out/0"));
    let workers: BTreeSet<&str> = text.lines().filter(|line| line.len() > 1).collect();
    assert!(workers.len() <= 2, "two slots, two workers that stay: {workers:?}");
    assert!(fs::read_dir(dir.path().join("run/pids")).unwrap().next().is_none());
    judged(&session);
}

/// Defect 10: standard error of tasks that succeed was thrown away.
#[test]
fn logs_of_successful_attempts_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = limited(dir.path(), &[("cat; echo a warning >&2", Limits::default())]);
    assert_eq!(go(&mut session, &mut Watcher::default()), RunEnd::Done);
    for attempt in session.attempts() {
        let log = session.layout().log("f0", "j", attempt.id, attempt.number);
        assert_eq!(fs::read_to_string(log).unwrap(), "a warning\n");
    }
}

#[test]
fn maps_of_a_jar_are_those_that_hadoop_makes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("in")).unwrap();
    for (name, bytes) in [("a", 10), ("b", 0), ("c", 2500)] {
        fs::write(at("in").join(name), vec![b'x'; bytes]).unwrap();
    }
    fs::write(at("etl.jar"), "classes").unwrap();
    let jar = |inputs: &[String], output: &str, reducers| {
        let work =
            RunWork::Jar { jar: "etl.jar".into(), main: "M".into(), arguments: vec!["{inputs}".into()] };
        let output = at(output).display().to_string();
        RunDraft { inputs: inputs.to_vec(), reducers, ..RunDraft::new(work, output) }
    };
    let input = at("in").display().to_string();
    let plan = || {
        let jobs = vec![
            job("first", &[], jar(std::slice::from_ref(&input), "first", Some(3))),
            job("second", &["first"], jar(&["@first".to_owned(), input.clone()], "second", None)),
            job("none", &[], jar(&[], "none", Some(0))),
        ];
        resolved(&draft(vec![FlowDraft::new("f", jobs)]), dir.path()).jobs
    };
    let plans = plan();
    // A file or a piece each; a file is not cut beside an output of unknown size.
    let lengths =
        |job: usize| plans[job].inputs.maps.iter().map(Vec::as_slice).map(<[_]>::len).collect::<Vec<_>>();
    assert_eq!((lengths(0), plans[0].reducers), (vec![1; 5], 3));
    assert_eq!((lengths(1), plans[1].reducers), (vec![1; 3 + 3], 1));
    assert_eq!((lengths(2), plans[2].parts()), (vec![0], 1));
    // Another jar is another job.
    fs::write(at("etl.jar"), "others").unwrap();
    assert_eq!(plan()[0].definition.difference(&plans[0].definition), Some("file etl.jar"));
}

/// The output of more than a few maps is removed while the run continues; the rest of it from a run that was
/// killed is removed too.
#[test]
fn nothing_is_left_of_very_many_maps() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("text.txt");
    fs::write(&input, "x\n".repeat(100 << 9)).unwrap();
    let words = program("wordcount", &[input.display().to_string()], &dir.path().join("out"), Some(1));
    let draft = draft(vec![FlowDraft::new("f", vec![job("count", &[], words)])]);
    let mut first = session(dir.path(), &draft);
    assert_eq!(maps_of(&first), 100);
    assert_eq!(go(&mut first, &mut Watcher::default()), RunEnd::Done);
    assert_eq!(output(&dir.path().join("out")), "x\t51200\n");
    let aside = dir.path().join("run/attempts/maps-of-a-job");
    assert!(!maps_in(dir.path()).is_dir());
    assert_eq!(fs::read_dir(aside.parent().unwrap()).unwrap().count(), 0);
    drop(first);
    fs::create_dir_all(aside.join("7")).unwrap();
    let mut second = session(dir.path(), &draft);
    assert!(!aside.exists());
    assert_eq!(go(&mut second, &mut Watcher::default()), RunEnd::Done);
}
