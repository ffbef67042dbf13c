//! Runs on the mock cluster with a mock submitter. The output of each job names its mapper.

mod player;
mod programs;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use slackline_algo::baseline::{Fifo, ShareUnit};
use slackline_executor::engine::backend::{
    EngineEvent, FlowOrder, FlowOverrides, RunConfig, RunId, Session as _, ended_runs, without_flows,
};
use slackline_executor::engine::event::RunEvent;
use slackline_executor::run::reuse::Choices;
use slackline_executor::run::{RunEnd, opening};
use slackline_executor::store::journal::{Attempt, AttemptOutcome, Setup};
use slackline_model::Time;
use slackline_model::draft::{FlowDraft, JobDraft, RunDraft, RunWork};
use slackline_policy::plans::Plans;
use slackline_policy::{Config, Driver};
use slackline_task::base::clock::unix_micros;
use tempfile::TempDir;

use crate::cluster::capacity::machines;
use crate::cluster::table::Table;
use crate::cluster::table_location::VALID;
use crate::flows::backend::tests::player::{Act, Player};
use crate::flows::backend::*;
use crate::flows::remote_files::{FileSystem, Unavailable};
use crate::mock::{Mock, Mood};
use crate::rest::id::AppId;
use crate::rest::resource_manager::AppState;
use crate::submitter::{Entry, FailureKind, SubmitterError};

/// A file system in which nothing is but directories, and of which nothing can be removed.
#[derive(Default)]
struct NoFiles {
    directories: Mutex<Vec<String>>,
    /// How often it does not answer when something is to be uploaded.
    away: AtomicUsize,
    /// While uploads hang.
    hangs: AtomicBool,
}

impl FileSystem for NoFiles {
    fn stat(&self, _: &str) -> io::Result<Option<Entry>> {
        Ok(None)
    }

    fn list(&self, _: &str) -> io::Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn read(&self, path: &str, _: u64) -> io::Result<Vec<u8>> {
        Err(io::Error::other(path.to_owned()))
    }

    fn make_directory(&self, path: &str) -> io::Result<()> {
        self.directories.lock().unwrap().push(path.to_owned());
        Ok(())
    }

    fn write(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn upload(&self, path: &str, _: &Path) -> io::Result<()> {
        while self.hangs.load(Ordering::SeqCst) {
            crate::clock::pause(Duration::from_millis(5));
        }
        let is_away = self.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if is_away.is_ok() { Err(io::Error::other(Unavailable(format!("{path}: away")))) } else { Ok(()) }
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        Err(io::Error::other(path.to_owned()))
    }
}

/// Says when a run is to be stopped.
type Until = Box<dyn FnMut() -> bool + Send>;

/// Writes down what happens, and stops the run when it is time.
struct Watcher {
    messages: Arc<Mutex<Vec<String>>>,
    until: Until,
    is_stopped: Arc<AtomicBool>,
}

impl Watcher {
    fn happened(&mut self, event: &RunEvent) {
        let message = match event {
            RunEvent::AttemptFailed { message, is_final, .. } => {
                format!("failed{}: {message}", if *is_final { " for good" } else { "" })
            }
            RunEvent::EngineUnreachable(Some(message)) => format!("trouble: {message}"),
            RunEvent::Warning(message) => format!("warned: {message}"),
            RunEvent::EngineUnreachable(None) => "no trouble".to_owned(),
            RunEvent::Tick => {
                if (self.until)() {
                    self.is_stopped.store(true, Ordering::SeqCst);
                }
                return;
            }
            _ => return,
        };
        self.messages.lock().unwrap().push(message);
    }
}

fn flow(jobs: Vec<JobDraft>) -> FlowDraft {
    FlowDraft::new("f", jobs)
}

/// A cluster, and a directory with a state directory, inputs and outputs.
struct Scene {
    dir: TempDir,
    mock: Arc<Mock>,
    player: Arc<Player>,
    timeouts: Timeouts,
    table: Option<PathBuf>,
    files: Arc<NoFiles>,
}

impl Scene {
    fn new() -> Self {
        let mock = Arc::new(Mock::start().unwrap());
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("in.txt"), "a b\nc d\n".repeat(300)).unwrap();
        let ms = Duration::from_millis;
        let timeouts = Timeouts {
            cycle: ms(5),
            end: ms(300),
            late: ms(100),
            unseen: ms(100),
            queued: ms(100),
            away: ms(5000),
            ..Timeouts::default()
        };
        Self {
            dir,
            player: Arc::new(Player::new(mock.clone())),
            mock,
            timeouts,
            table: None,
            files: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A job of commands: its mapper, what it reads and how many reduces it has. Its output has its name.
    fn job(&self, id: &str, mapper: &str, input: &str, reducers: u32) -> JobDraft {
        let reducer = (reducers > 0).then(|| "cat".to_owned());
        let work = RunWork::Commands { mapper: mapper.to_owned(), reducer, combiner: None };
        let input =
            if input.starts_with('@') { input.to_owned() } else { self.path(input).display().to_string() };
        let run = RunDraft {
            inputs: vec![input.clone()],
            reducers: Some(reducers),
            ..RunDraft::new(work, self.path(id).display().to_string())
        };
        let after = input.strip_prefix('@').map(str::to_owned).into_iter().collect();
        JobDraft { id: id.to_owned(), after, run: Some(run), ..JobDraft::default() }
    }

    /// Runs flows to their end, or until it is time, and says how it ended and what happened.
    fn run(
        &self,
        flows: &[FlowDraft],
        choices: Choices,
        until: Until,
    ) -> (Result<RunEnd, EngineError>, Vec<String>) {
        self.run_with(flows, choices, until, "file:///")
    }

    /// The same, where paths without a scheme are on a file system.
    fn run_with(
        &self,
        flows: &[FlowDraft],
        choices: Choices,
        until: Until,
        default_fs: &str,
    ) -> (Result<RunEnd, EngineError>, Vec<String>) {
        let address = self.mock.address();
        let manager = ResourceManager::new(&address, http::Settings::default());
        let draft = Draft {
            machines: machines(&manager.nodes().unwrap(), 512),
            flows: flows.to_vec(),
            ..Draft::default()
        };
        let rules = InputRules {
            split_bytes: 1 << 10,
            hash: false,
            directory: self.dir.path(),
            outputs: Path::new("state/outputs"),
        };
        let mut resolved = resolve(&draft, rules, &JobHistory::new()).unwrap();
        resolved.set_mirror(self.path("state/remote/files"));
        let setup = Setup { directory: self.dir.path().display().to_string(), ..Setup::default() };
        let state = self.path("state");
        let status = &|_: &str| {};
        let opening =
            Opening { state: &state, setup, started: unix_micros(), choices, beside_others: false, status };
        let session = opening::open(opening, &resolved).unwrap();
        let config = self.config(address);
        let earlier = earlier_apps(session.owner(), &manager).unwrap();
        let mut session = YarnSession {
            session,
            table: config.table.as_deref().map(|path| Table::open(path, VALID).unwrap()),
            context: RunContext { config, files: self.run_files(&state, default_fs), state, earlier },
        };
        if session.session.remaining().unwrap().is_none() {
            return (Ok(RunEnd::Done), Vec::new());
        }
        let mut engine = session.engine().unwrap();
        let (messages, is_stopped) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let mut watcher = Watcher { messages: messages.clone(), until, is_stopped: is_stopped.clone() };
        let rules = RunConfig { attempts_max: 4, slowstart: 1.0, overrides: BTreeMap::new(), quota: None };
        engine.add_run(Box::new(session), rules, Box::new(move |_, event| watcher.happened(event))).unwrap();
        let (empty, mut nowhere, mut policy) =
            (without_flows(&engine.machines()), (), Fifo::new(ShareUnit::Job));
        let mut ended = Vec::new();
        let config = Config { attempts_max: u16::MAX, ..Config::plain().audited() };
        let mut driver = Driver::new(empty, &mut policy, engine.as_mut(), &mut nowhere, config);
        while ended.is_empty() && !is_stopped.load(Ordering::SeqCst) && driver.step() {
            let plans = Plans::of(&driver);
            driver.engine().planned(&plans);
            ended = ended_runs(driver.engine().events());
        }
        driver.close();
        ended.extend(engine.stop());
        let messages = std::mem::take(&mut *messages.lock().unwrap());
        (ended.pop().unwrap().how, messages)
    }

    /// Runs a flow to its end.
    fn run_to_end(&self, jobs: Vec<JobDraft>) -> (Result<RunEnd, EngineError>, Vec<String>) {
        self.run(&[flow(jobs)], Choices::default(), Box::new(|| false))
    }

    /// Runs a flow until it is time, and leaves its applications as a process does that is killed.
    fn run_and_die(&self, jobs: Vec<JobDraft>, until: impl FnMut() -> bool + Send + 'static) {
        let deaf = Mood::Says(503, "text/html", "not now".to_owned());
        self.mock.with(|state| state.moods.push(("/state", usize::MAX, deaf)));
        let (end, messages) = self.run(&[flow(jobs)], Choices::default(), Box::new(until));
        assert_eq!(end.unwrap(), RunEnd::Interrupted, "{messages:?}");
        self.mock.with(|state| state.moods.clear());
    }

    /// Until the cluster has this number of applications.
    fn applications(&self, count: usize) -> impl FnMut() -> bool + Send + 'static {
        let mock = self.mock.clone();
        move || mock.with(|state| state.apps.len()) == count
    }

    fn config(&self, address: Address) -> ClusterConfig {
        ClusterConfig {
            address,
            queue: "jobs".to_owned(),
            table: self.table.clone(),
            java: PathBuf::new(),
            class_path: Vec::new(),
            slot_mb: 512,
            am_share: 0.5,
            by_cluster: false,
            split_bytes: 1 << 10,
            memory_bytes: 1 << 20,
            hash: false,
            worker: WorkerCommand { program: self.path("in.txt"), args: Vec::new() },
            timeouts: self.timeouts.clone(),
        }
    }

    fn run_files(&self, state: &Path, default_fs: &str) -> Arc<RunFiles> {
        let file_system: Arc<dyn FileSystem> = self.files.clone();
        let placeholders = Placeholders::new(state.join("remote"), file_system.clone(), default_fs, "me");
        let submitter = self.player.clone();
        Arc::new(RunFiles {
            submitter,
            file_system,
            placeholders: Arc::new(placeholders),
            state: state.to_owned(),
        })
    }

    /// What the parts of an output say.
    fn output(&self, name: &str) -> String {
        let entries = fs::read_dir(self.path(name)).unwrap().map(|entry| entry.unwrap().path());
        let mut parts: Vec<PathBuf> =
            entries.filter(|path| path.display().to_string().contains("/part-")).collect();
        parts.sort();
        parts.iter().map(|part| fs::read_to_string(part).unwrap()).collect()
    }

    /// The states of all applications.
    fn states(&self) -> Vec<AppState> {
        self.mock.with(|state| state.apps.values().map(|app| app.state).collect())
    }

    fn app(&self, number: u32) -> AppId {
        AppId { cluster: self.mock.with(|state| state.started_on), number }
    }
}

/// What a service does with a cluster: runs come, stand in another way, and come back.
#[test]
fn runs_share_a_cluster_under_one_driver() {
    let scene = Scene::new();
    let (mut resident, runs) = seated(&scene, &["one", "two", "three"]);
    resident.order_flow(
        runs[1],
        "f",
        FlowOrder::Override(FlowOverrides { held: true, ..FlowOverrides::default() }),
    );
    resident.order_flow(runs[2], "f", FlowOrder::Cancel);
    let empty = without_flows(&resident.machines());
    let (mut policy, mut nowhere, mut back) = (Fifo::new(ShareUnit::Job), (), Vec::new());
    let config = Config::plain().audited();
    let mut driver =
        Driver::new(empty, &mut policy, &mut resident as &mut dyn SharedEngine, &mut nowhere, config);
    for poll_cluster in 0..2_000 {
        assert!(driver.step());
        let plans = Plans::of(&driver);
        driver.engine().planned(&plans);
        back.extend(
            ended_runs(driver.engine().events()).into_iter().map(|ended| (ended.run, ended.how.unwrap())),
        );
        if poll_cluster == 100 {
            // The one that is held has not begun, and the one that was cancelled has come back.
            assert!(
                !scene.path("two/_SUCCESS").exists() && back.contains(&(runs[2], RunEnd::Failed)),
                "{back:?}"
            );
            driver.engine().order_flow(runs[1], "f", FlowOrder::Override(FlowOverrides::default()));
        }
        if back.len() == 3 {
            break;
        }
    }
    assert!(driver.close().failure.is_none());
    back.sort_by_key(|(run, _)| *run);
    let expected = [RunEnd::Done, RunEnd::Done, RunEnd::Failed];
    assert_eq!(back, runs.into_iter().zip(expected).collect::<Vec<_>>());
    for name in ["one", "two"] {
        assert!(scene.output(name).contains(&made_by("cat")), "{}", scene.output(name));
    }
    assert!(!scene.path("three/_SUCCESS").exists());
    assert_eq!(scene.player.submitted(), ["f/one", "f/two"]);
}

/// While a turn of the runs hangs, the scheduler takes its own, says that it waits, and takes in a
/// cancellation. `resume` ends it if nothing else does. Only the first run works.
fn hangs_alone(scene: &Scene, (mut resident, runs): (YarnSharedEngine, Vec<RunId>), resume: impl Fn()) {
    scene.player.follow(|_, request| if request.name == "f/two" { Act::Waits } else { Act::Works });
    let empty = without_flows(&resident.machines());
    let (mut policy, mut nowhere, mut notices, mut back) =
        (Fifo::new(ShareUnit::Job), (), Vec::new(), Vec::new());
    let config = Config::plain().audited();
    let mut driver =
        Driver::new(empty, &mut policy, &mut resident as &mut dyn SharedEngine, &mut nowhere, config);
    let mut turns = 0;
    while back.len() < 2 {
        assert!(driver.step());
        let plans = Plans::of(&driver);
        driver.engine().planned(&plans);
        turns += 1;
        if turns == 20 {
            driver.engine().order_flow(runs[1], "f", FlowOrder::Cancel);
        }
        if turns == 40 {
            assert_eq!((&back[..], scene.player.submitted().len()), (&[][..], 0));
            resume();
        }
        for event in driver.engine().events() {
            match event {
                EngineEvent::Notice(notice) => notices.push(notice),
                EngineEvent::Ended(ended) => back.push((ended.run, ended.how.unwrap())),
                EngineEvent::MachinesChanged => {}
            }
        }
    }
    assert!(driver.close().failure.is_none());
    back.sort_by_key(|(run, _)| *run);
    assert_eq!(back, [(runs[0], RunEnd::Done), (runs[1], RunEnd::Failed)]);
    notices.retain(|notice| notice.starts_with("the runs on the cluster: "));
    let said = [
        "the runs on the cluster: they wait for YARN or a file system",
        "the runs on the cluster: YARN and the file system answer again",
    ];
    // On a busy machine later turns may be late, too.
    assert!(notices.len() >= 2, "{notices:?}");
    assert!(notices.iter().zip(said.iter().cycle()).all(|(notice, said)| notice == said), "{notices:?}");
}

#[test]
fn a_request_that_hangs_stops_neither_the_scheduler_nor_a_cancellation() {
    let mut scene = Scene::new();
    scene.timeouts.silent = Duration::from_millis(50);
    let seated = seated(&scene, &["one", "two"]);
    let hangs = Mood::Slow(Duration::from_secs(2));
    scene.mock.with(|state| state.moods.push(("/ws/v1/cluster/apps?", 1, hangs)));
    hangs_alone(&scene, seated, || {});
}

#[test]
fn a_file_system_that_hangs_stops_neither_the_scheduler_nor_a_cancellation() {
    let mut scene = Scene::new();
    scene.timeouts.silent = Duration::from_millis(50);
    let seated = seated_on(&scene, &["one", "two"], "hdfs://gone:9000");
    scene.files.hangs.store(true, Ordering::SeqCst);
    hangs_alone(&scene, seated, || scene.files.hangs.store(false, Ordering::SeqCst));
}

/// A turn that a file system blocks does not keep the engine from ending.
#[test]
fn an_engine_whose_files_hang_ends_without_them() {
    let scene = Scene::new();
    let (mut resident, runs) = seated_on(&scene, &["one"], "hdfs://gone:9000");
    let empty = without_flows(&resident.machines());
    let (mut policy, mut nowhere) = (Fifo::new(ShareUnit::Job), ());
    let mut driver = Driver::new(
        empty,
        &mut policy,
        &mut resident as &mut dyn SharedEngine,
        &mut nowhere,
        Config::plain().audited(),
    );
    scene.files.hangs.store(true, Ordering::SeqCst);
    for _ in 0..40 {
        assert!(driver.step());
        let plans = Plans::of(&driver);
        driver.engine().planned(&plans);
    }
    driver.close();
    assert!(resident.stop().is_empty(), "the thread has it");
    scene.files.hangs.store(false, Ordering::SeqCst);
    let left = resident.stop();
    assert_eq!(left.iter().map(|ended| ended.run).collect::<Vec<_>>(), runs);
}

/// A cluster that stays, with runs of one job each, whose states and outputs have these names.
fn seated(scene: &Scene, names: &[&str]) -> (YarnSharedEngine, Vec<RunId>) {
    seated_on(scene, names, "file:///")
}

/// The same, where paths without a scheme are on a file system.
fn seated_on(scene: &Scene, names: &[&str], default_fs: &str) -> (YarnSharedEngine, Vec<RunId>) {
    let config = scene.config(scene.mock.address());
    let manager = ResourceManager::new(&config.address, http::Settings::default());
    let machines = machines(&manager.nodes().unwrap(), 512);
    let began = unix_micros();
    let engine = FlowEngine::new(
        ExternalRuns::none(began, Time::ZERO),
        config.cluster(None, scene.player.clone()),
        machines.clone(),
        config.rules(),
        config.timeouts.clone(),
    );
    let mut resident = YarnSharedEngine::new(engine, &machines).unwrap();
    let run_id = |name: &&str| {
        let state = scene.path(&format!("states/{name}"));
        let draft = Draft {
            machines: resident.machines().into_iter().map(|machine| machine.draft).collect(),
            flows: vec![flow(vec![scene.job(name, "cat", "in.txt", 1)])],
            ..Draft::default()
        };
        let rules = InputRules {
            split_bytes: 1 << 10,
            hash: false,
            directory: scene.dir.path(),
            outputs: Path::new("state/outputs"),
        };
        let mut resolved = resolve(&draft, rules, &JobHistory::new()).unwrap();
        resolved.set_mirror(state.join("remote/files"));
        let setup = Setup { directory: scene.dir.path().display().to_string(), ..Setup::default() };
        let (choices, status) = (Choices::default(), &|_: &str| {});
        let opening =
            Opening { state: &state, setup, started: unix_micros(), choices, beside_others: true, status };
        let session = opening::open(opening, &resolved).unwrap();
        let files = scene.run_files(&state, default_fs);
        let context = RunContext { config: config.clone(), files, state, earlier: Vec::new() };
        let rules = RunConfig { attempts_max: 4, slowstart: 1.0, overrides: BTreeMap::new(), quota: None };
        resident.add_run(Box::new(YarnSession::of(session, context)), rules, Box::new(|_, _| {})).unwrap()
    };
    let runs = names.iter().map(run_id).collect();
    (resident, runs)
}

#[test]
fn jobs_are_submitted_one_after_the_other_and_their_parts_are_published() {
    let scene = Scene::new();
    let jobs = vec![scene.job("count", "cat", "in.txt", 2), scene.job("last", "rev", "@count", 0)];
    let (end, messages) = scene.run_to_end(jobs);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted(), ["f/count", "f/last"]);
    assert!(scene.output("count").contains(r#""mapper":"cat""#), "{}", scene.output("count"));
    assert!(scene.output("last").contains(r#""mapper":"rev""#), "{}", scene.output("last"));
    assert!(!scene.path("state/elsewhere/").read_dir().unwrap().any(|_| true));
}

/// The program that parts say they were made by.
fn made_by(mapper: &str) -> String {
    format!(r#""mapper":"{mapper}""#)
}

#[test]
fn an_application_of_another_definition_is_not_resumed() {
    // Changed as it is, asked for again, or behind a job that is changed.
    let again = Choices::again();
    let mut forced = Choices::default();
    forced.force = vec!["count".to_owned()];
    for (mapper, choices) in [("rev", Choices::default()), ("cat", again), ("rev", forced)] {
        let scene = Scene::new();
        scene.player.follow(|_, _| Act::Waits);
        scene.run_and_die(vec![scene.job("count", "cat", "in.txt", 1)], scene.applications(1));
        // It ends without an engine, or continues.
        let request = scene.player.last();
        scene.player.work(scene.app(1), &request);
        scene.player.follow(|_, _| Act::Works);
        let jobs = vec![scene.job("count", mapper, "in.txt", 1)];
        let (end, messages) = scene.run(&[flow(jobs)], choices, Box::new(|| false));
        assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
        assert_eq!(scene.player.submitted().len(), 2, "{mapper}");
        assert!(scene.output("count").contains(&made_by(mapper)), "{}", scene.output("count"));
    }
}

#[test]
fn an_application_of_another_definition_that_still_runs_is_ended() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    scene.run_and_die(vec![scene.job("count", "cat", "in.txt", 1)], scene.applications(1));
    scene.player.follow(|_, _| Act::Works);
    let (end, messages) = scene.run_to_end(vec![scene.job("count", "rev", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.states(), [AppState::Killed, AppState::Finished]);
}

#[test]
fn an_application_of_the_same_definition_is_resumed() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1), scene.job("last", "cat", "@count", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    let request = scene.player.last();
    scene.player.work(scene.app(1), &request);
    scene.player.follow(|_, _| Act::Works);
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted(), ["f/count", "f/last"]);
}

#[test]
fn a_submission_with_another_definition_is_not_resumed() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    let request = scene.player.last();
    scene.player.work(scene.app(1), &request);
    fs::write(player::local(&request.pieces), "something else").unwrap();
    scene.player.follow(|_, _| Act::Works);
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 2);
}

#[test]
fn reports_of_tasks_that_there_are_not_are_passed_over() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::FailsBeyond);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    let request = scene.player.last();
    scene.player.work(scene.app(1), &request);
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
}

#[test]
fn a_publication_that_failed_is_made_again_by_the_next_run() {
    let scene = Scene::new();
    let output = scene.path("count");
    // Something is put into the output between the lock and the publication.
    let stranger = output.join("stranger");
    let beside = stranger.clone();
    scene.player.follow(move |_, _| {
        fs::write(&beside, "").unwrap();
        Act::Works
    });
    let jobs = || vec![scene.job("count", "cat", "in.txt", 2)];
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Failed, "{messages:?}");
    fs::remove_file(&stranger).unwrap();
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 1, "its parts were there");
    assert!(scene.output("count").contains(&made_by("cat")));
}

/// Copies a directory with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() { copy(&path, &to) } else { _ = fs::copy(&path, &to).unwrap() }
    }
}

#[test]
fn a_job_that_was_killed_while_its_output_was_published_is_recorded_once() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 2), scene.job("last", "rev", "@count", 0)];
    scene.run_and_die(jobs(), scene.applications(1));
    scene.player.work(scene.app(1), &scene.player.last());
    // What exists before the publication, and the lock that new placeholders have of the output.
    copy(&scene.path("state/elsewhere"), &scene.path("elsewhere"));
    copy(&scene.path("count/_temporary"), &scene.path("lock"));
    scene.run_and_die(jobs(), scene.applications(2));
    copy(&scene.path("elsewhere"), &scene.path("state/elsewhere"));
    fs::remove_dir_all(scene.path("count")).unwrap();
    copy(&scene.path("lock"), &scene.path("count/_temporary"));
    fs::create_dir_all(scene.path("count/_temporary/parts")).unwrap();
    scene.player.follow(|_, _| Act::Works);
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert!(scene.output("count").contains(&made_by("cat")));
    let done =
        recorded(&scene).into_iter().filter(|attempt| matches!(attempt.ended, AttemptOutcome::Done(_)));
    let done: Vec<_> = done.map(|attempt| attempt.id).collect();
    let once: std::collections::BTreeSet<_> = done.iter().copied().collect();
    assert_eq!(done.len(), once.len(), "{done:?}");
}

#[test]
fn a_job_whose_tasks_are_all_done_is_published_although_its_application_was_killed() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    let (request, app) = (scene.player.last(), scene.app(1));
    scene.player.work(app, &request);
    scene.mock.with(|state| state.apps.get_mut(&app).unwrap().state = AppState::Killed);
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 1);
}

#[test]
fn a_job_whose_part_is_gone_is_submitted_again() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    let request = scene.player.last();
    scene.player.work(scene.app(1), &request);
    for attempt in fs::read_dir(player::local(&request.destination)).unwrap() {
        let _ = fs::remove_file(attempt.unwrap().path().join("part"));
    }
    scene.player.follow(|_, _| Act::Works);
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 2);
    assert!(scene.output("count").contains(&made_by("cat")));
}

fn timed_out() -> SubmitterError {
    SubmitterError::TimedOut { verb: "submit", after: Duration::from_secs(60) }
}

fn failed(kind: FailureKind) -> SubmitterError {
    SubmitterError::Failed { kind, message: "said so".to_owned() }
}

#[test]
fn a_job_that_may_not_have_been_submitted_is_submitted_again() {
    for error in [timed_out(), failed(FailureKind::Unreachable), SubmitterError::Died { why: String::new() }]
    {
        let scene = Scene::new();
        scene
            .player
            .follow(move |number, _| if number == 0 { Act::Fails(error.clone()) } else { Act::Works });
        let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
        assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
        assert_eq!(scene.player.submitted().len(), 2);
    }
}

#[test]
fn a_job_that_was_submitted_without_an_answer_is_found_by_its_tag() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Lost(timed_out()));
    let (mock, player) = (scene.mock.clone(), scene.player.clone());
    let (app, mut polls) = (scene.app(1), 0);
    let until = move || {
        // The application is there for some looks before it works.
        polls += u32::from(mock.with(|state| !state.apps.is_empty()));
        if polls == 5 {
            player.work(app, &player.last());
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 1);
}

#[test]
fn a_job_is_not_submitted_for_ever() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Fails(timed_out()));
    let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Failed);
    assert_eq!(scene.player.submitted().len(), 3);
    assert!(messages.iter().any(|line| line.contains("did not answer `submit`")), "{messages:?}");
}

#[test]
fn a_job_that_is_refused_fails_at_once() {
    let kinds = [FailureKind::Refused, FailureKind::Input, FailureKind::Output, FailureKind::Security];
    for kind in kinds {
        let scene = Scene::new();
        scene.player.follow(move |_, _| Act::Fails(failed(kind)));
        let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
        assert_eq!(end.unwrap(), RunEnd::Failed);
        assert_eq!(scene.player.submitted().len(), 1, "{kind:?}");
        assert!(messages.iter().any(|line| line.contains("said so")), "{messages:?}");
    }
}

#[test]
fn applications_are_killed_until_they_have_ended() {
    let mut scene = Scene::new();
    scene.timeouts.end = Duration::from_secs(20);
    scene.player.follow(|_, _| Act::Waits);
    // Kills get no answer at first.
    let deaf = Mood::Says(503, "text/html", "not now".to_owned());
    scene.mock.with(|state| state.moods.push(("/state", 2, deaf)));
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(scene.applications(1)));
    assert_eq!(end.unwrap(), RunEnd::Interrupted);
    assert_eq!(scene.states(), [AppState::Killed]);
    assert!(!messages.iter().any(|line| line.starts_with("warned")), "{messages:?}");
}

#[test]
fn applications_that_cannot_be_killed_are_named() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let deaf = Mood::Says(503, "text/html", "not now".to_owned());
    scene.mock.with(|state| state.moods.push(("/state", usize::MAX, deaf)));
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (_, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(scene.applications(1)));
    let app = scene.app(1);
    let warning = format!(
        "warned: still on the cluster: {app} (f/count); kill them with: yarn application -kill {app}"
    );
    assert!(messages.contains(&warning), "{messages:?}");
}

#[test]
fn a_refused_kill_gives_one_warning() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let refusal = r#"{ "RemoteException": { "exception": "X", "message": "not yours" } }"#;
    let refused = Mood::Says(403, "application/json", refusal.to_owned());
    scene.mock.with(|state| state.moods.push(("/state", usize::MAX, refused)));
    let jobs = vec![scene.job("a", "cat", "in.txt", 1), scene.job("b", "cat", "in.txt", 1)];
    let (_, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(scene.applications(2)));
    let refusals: Vec<_> = messages.iter().filter(|line| line.contains("cannot be killed: ")).collect();
    let [refusal] = refusals.as_slice() else { panic!("found {messages:?}, expected one") };
    assert!(refusal.contains(&scene.app(1).to_string()) && refusal.contains("not yours"), "{refusal}");
    let kills = scene.mock.with(|state| state.requests.iter().filter(|it| it.contains("/state")).count());
    assert!(kills > 2, "they are tried again");
}

#[test]
fn the_first_question_of_a_run_is_asked_again() {
    let scene = Scene::new();
    let busy = Mood::Says(503, "text/html", "not now".to_owned());
    scene.mock.with(|state| state.moods.push(("applicationTags", 2, busy)));
    let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
}

#[test]
fn an_application_whose_submission_is_answered_after_its_flow_failed_is_ended() {
    let scene = Scene::new();
    let (opener, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    scene.player.follow(move |_, request| match request.name.as_str() {
        "f/slow" => Act::Late(gate.clone()),
        _ => Act::Fails(failed(FailureKind::Refused)),
    });
    // The list of applications does not show it, so that only the answer says which it is.
    scene.player.hide();
    let (player, mock) = (scene.player.clone(), scene.mock.clone());
    let jobs = vec![scene.job("slow", "cat", "in.txt", 1), scene.job("bad", "cat", "in.txt", 1)];
    let (end, messages) = std::thread::scope(|scope| {
        scope.spawn(move || {
            while mock.with(|state| state.apps.is_empty()) || player.submitted().len() < 2 {
                crate::clock::pause(Duration::from_millis(5));
            }
            crate::clock::pause(Duration::from_millis(50));
            drop(opener);
        });
        scene.run_to_end(jobs)
    });
    assert_eq!(end.unwrap(), RunEnd::Failed, "{messages:?}");
    assert_eq!(scene.states(), [AppState::Killed], "{messages:?}");
}

#[test]
fn a_submission_does_not_inherit_the_failures_of_the_one_before() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::FailsOnce);
    let (player, mock) = (scene.player.clone(), scene.mock.clone());
    let mut polls = 0;
    let until = move || {
        let submissions = player.submitted().len();
        polls += u32::from(mock.with(|state| state.apps.len()) == 1);
        if submissions == 1 && polls >= 10 {
            // The ResourceManager knows it no more; the next one has another number.
            mock.with(|state| {
                state.submit("root.other", 1, 0).end(AppState::Finished, 0);
                state.apps.pop_first();
            });
            polls = 0;
        }
        let last = mock.with(|state| state.apps.values().next_back().map(|app| (app.id, app.queue.clone())));
        if let Some((app, queue)) = last
            && submissions == 2
            && queue == "root.jobs"
        {
            polls += 1;
            if polls == 10 {
                player.work(app, &player.last());
            }
        }
        false
    };
    let mut job = scene.job("count", "cat", "in.txt", 1);
    job.run.iter_mut().for_each(|run| run.limits.attempts = Some(2));
    let (end, messages) = scene.run(&[flow(vec![job])], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    // Each says which attempt it was, and how a person reads what its container said.
    for messages in &messages {
        let words = [
            "failed: no luck\n(attempt_",
            "_m_000000_0 on 127.0.0.",
            ": yarn logs -applicationId application_",
        ];
        assert!(words.iter().all(|words| messages.contains(words)), "{messages}");
    }
    assert_eq!(messages.len(), 2);
}

#[test]
fn a_failed_attempt_is_recorded_once() {
    // Also where the clock of its node is ahead, so that the end of the attempt lies in the future.
    for ahead in [0, 5_000] {
        let scene = Scene::new();
        scene.player.ahead_ms.store(ahead, Ordering::SeqCst);
        scene.player.follow(|_, _| Act::FailsOnce);
        let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
        let failures = || {
            let is_it = |end: &&AttemptOutcome| matches!(end, AttemptOutcome::Failed(message) if message.starts_with("no luck\n"));
            ends(&scene).iter().filter(is_it).count()
        };
        for _ in 0..3 {
            let mut polls = 0;
            scene.run_and_die(jobs(), move || {
                polls += 1;
                polls == 30
            });
            assert_eq!(failures(), 1, "{ahead} ms ahead");
        }
        assert_eq!(scene.player.submitted().len(), 1);
    }
}

/// The attempts that the journal has.
fn recorded(scene: &Scene) -> Vec<Attempt> {
    let journal =
        slackline_executor::store::journal::Journal::open(&scene.path("state/journal.log")).unwrap();
    journal.read().unwrap().attempts
}

fn ends(scene: &Scene) -> Vec<AttemptOutcome> {
    recorded(scene).into_iter().map(|attempt| attempt.ended).collect()
}

#[test]
fn observers_see_the_application_of_a_job_and_its_start() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::FailsOnce);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    let seen = || slackline_executor::run::inspect::inspect(&scene.path("state")).unwrap().unwrap().there;
    let mut polls = 0;
    scene.run_and_die(jobs(), move || {
        polls += 1;
        polls == 30
    });
    let [there] = &seen()[..] else { panic!("found {:?}, expected one job", seen()) };
    assert_eq!((there.flow.as_str(), there.job.as_str(), there.applications.len()), ("f", "count", 1));
    assert!(there.submitted.is_some() && there.am[1].is_some(), "{there:?}");
    // No engine drives it.
    assert!(there.at_work.is_empty() && !there.failed && there.containers == 0, "{there:?}");
}

#[test]
fn an_attempt_on_a_node_whose_clock_is_ahead_has_ended_by_now() {
    let scene = Scene::new();
    scene.player.ahead_ms.store(3_600_000, Ordering::SeqCst);
    let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    let journal =
        slackline_executor::store::journal::Journal::open(&scene.path("state/journal.log")).unwrap();
    let content = journal.read().unwrap();
    let now = unix_micros() - content.head.unwrap().started;
    assert!(content.attempts.iter().all(|attempt| attempt.end <= now), "{:?}", content.attempts);
}

#[test]
fn a_failed_write_of_the_table_gives_one_warning_and_is_retried() {
    let mut scene = Scene::new();
    // A directory in its place.
    fs::create_dir_all(scene.path("tables/table/x")).unwrap();
    fs::set_permissions(scene.path("tables"), PermissionsExt::from_mode(0o700)).unwrap();
    scene.table = Some(scene.path("tables/table"));
    scene.player.follow(|_, _| Act::Waits);
    let (player, table, app) = (scene.player.clone(), scene.path("tables/table"), scene.app(1));
    let mut polls = 0;
    let until = move || {
        polls += 1;
        match polls {
            20 => fs::remove_dir_all(&table).unwrap(),
            40 => assert!(table.is_file(), "it is written again"),
            41 => player.work(app, &player.last()),
            _ => {}
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    let warnings = messages.iter().filter(|line| line.contains("table cannot be written")).count();
    assert_eq!(warnings, 1, "{messages:?}");
}

#[test]
fn a_clean_up_that_fails_is_a_warning() {
    let scene = Scene::new();
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    // A staging directory on a file system that does not answer.
    let (end, messages) =
        scene.run_with(&[flow(jobs)], Choices::default(), Box::new(|| false), "hdfs://gone:9000");
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert!(
        messages
            .iter()
            .any(|line| line.starts_with("warned: temporary files of the run stay on the cluster")),
        "{messages:?}"
    );
}

#[test]
fn a_job_is_submitted_when_its_file_system_answers_again() {
    for (away, expected) in [(4, RunEnd::Done), (usize::MAX, RunEnd::Failed)] {
        let scene = Scene::new();
        scene.files.away.store(away, Ordering::SeqCst);
        let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
        let (end, messages) =
            scene.run_with(&[flow(jobs)], Choices::default(), Box::new(|| false), "hdfs://gone:9000");
        assert_eq!(end.unwrap(), expected, "{messages:?}");
        let is_trouble =
            |line: &String| line.starts_with("trouble: hdfs://gone:9000/") && line.ends_with(": away");
        assert_eq!(messages.iter().filter(|line| is_trouble(line)).count(), 1, "{messages:?}");
        assert_eq!(scene.player.submitted().len(), usize::from(expected == RunEnd::Done));
        let is_why =
            |line: &String| line.starts_with("failed for good: it cannot be submitted: hdfs://gone:9000/");
        assert_eq!(messages.iter().any(is_why), expected == RunEnd::Failed, "{messages:?}");
    }
}

#[test]
fn the_directory_of_attempts_is_made_before_a_job_is_submitted() {
    let scene = Scene::new();
    let files = scene.files.clone();
    scene.player.follow(move |_, request| {
        assert!(request.destination.starts_with("hdfs://gone:9000/out/_temporary/slackline-"));
        assert_eq!(files.directories.lock().unwrap().join(" "), request.destination);
        Act::Fails(failed(FailureKind::Refused))
    });
    let mut job = scene.job("count", "cat", "in.txt", 1);
    let output = scene.path("state/remote/files/hdfs/gone:9000/out");
    job.run.iter_mut().for_each(|run| run.output = Some(output.display().to_string()));
    let (_, messages) =
        scene.run_with(&[flow(vec![job])], Choices::default(), Box::new(|| false), "hdfs://gone:9000");
    assert!(
        messages.contains(&"failed for good: it cannot be submitted: said so".to_owned()),
        "{messages:?}"
    );
}

#[test]
fn an_application_that_runs_tasks_when_its_job_is_done_is_killed() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let (player, mock) = (scene.player.clone(), scene.mock.clone());
    let (first, last) = (scene.app(1), scene.app(2));
    let mut is_complete = false;
    let until = move || {
        let state = |app| mock.with(|state| state.apps.get(&app).map(|app| app.state));
        if state(first).is_some() && !is_complete {
            is_complete = true;
            player.work_on(first, &player.last());
        }
        if state(first) == Some(AppState::Killed) && state(last) == Some(AppState::Running) {
            player.work(last, &player.last());
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1), scene.job("last", "cat", "@count", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.states(), [AppState::Killed, AppState::Finished]);
}

#[test]
fn the_application_of_a_finished_job_ends_by_itself() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let (player, mock, app) = (scene.player.clone(), scene.mock.clone(), scene.app(1));
    let mut is_complete = false;
    let until = move || {
        if !is_complete && mock.with(|state| state.apps.contains_key(&app)) {
            is_complete = true;
            player.work_on(app, &player.last());
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.states(), [AppState::Running], "Hadoop would call a job that succeeded killed");
}

#[test]
fn reports_that_cannot_be_read_now_are_read_later() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let (player, app) = (scene.player.clone(), scene.app(1));
    let mut polls = 0;
    let until = move || {
        polls += 1;
        if polls < 5 || player.submitted().is_empty() {
            return false;
        }
        let attempts = player::local(&player.last().destination);
        match polls {
            // A file in the place of the directory.
            10 => {
                fs::remove_dir_all(&attempts).unwrap();
                fs::write(&attempts, "").unwrap();
            }
            20 => {
                fs::remove_file(&attempts).unwrap();
                player.work(app, &player.last());
            }
            _ => {}
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    let troubles: Vec<bool> = messages.iter().map(|line| line.starts_with("trouble: ")).collect();
    assert_eq!(troubles, [true, false], "{messages:?}");
}

#[test]
fn a_job_is_not_rerun_while_its_reports_cannot_be_read() {
    let mut scene = Scene::new();
    // Reports that are not there when the application has ended are missing.
    scene.timeouts.late = Duration::ZERO;
    scene.player.follow(|_, _| Act::Waits);
    let (player, app, aside) = (scene.player.clone(), scene.app(1), scene.path("aside"));
    let mut polls = 0;
    let until = move || {
        if player.submitted().is_empty() {
            return false;
        }
        polls += 1;
        let attempts = player::local(&player.last().destination);
        match polls {
            10 => {
                player.work(app, &player.last());
                // A file in the place of the directory.
                fs::rename(&attempts, &aside).unwrap();
                fs::write(&attempts, "").unwrap();
            }
            40 => {
                fs::remove_file(&attempts).unwrap();
                fs::rename(&aside, &attempts).unwrap();
            }
            _ => {}
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 1);
}

#[test]
fn jobs_for_which_a_look_has_no_time_are_read_at_the_next() {
    let mut scene = Scene::new();
    // Time for one question of each kind.
    scene.timeouts.asks = Duration::ZERO;
    let jobs = (0..6).map(|number| scene.job(&format!("job{number}"), "cat", "in.txt", 1)).collect();
    let (end, messages) = scene.run_to_end(jobs);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 6, "none is done again");
}

#[test]
fn a_damaged_report_fails_its_job() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Damages);
    let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Failed);
    assert!(messages.iter().any(|line| line.contains("report.json: ")), "{messages:?}");
}

#[test]
fn a_cluster_without_priorities_gives_one_warning() {
    let scene = Scene::new();
    scene.mock.with(|state| state.priority_max = 0);
    scene.player.follow(|_, _| Act::Waits);
    let mut polls = 0;
    let until = move || {
        polls += 1;
        polls == 40
    };
    let jobs = vec![scene.job("a", "cat", "in.txt", 1), scene.job("b", "cat", "in.txt", 1)];
    let (_, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    let warnings = messages.iter().filter(|line| line.contains("found no priority above 0")).count();
    assert_eq!(warnings, 1, "{messages:?}");
}

#[test]
fn an_application_without_a_am_is_explained_once_with_the_reason_that_yarn_gives() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    scene.mock.with(|state| state.is_full = true);
    let (mock, mut polls) = (scene.mock.clone(), 0);
    let until = move || {
        mock.with(|state| {
            let text = "Queue's AM resource limit exceeded.";
            state.apps.values_mut().for_each(|app| app.diagnostics = text.to_owned());
        });
        polls += 1;
        polls == 80
    };
    let jobs = vec![scene.job("a", "cat", "in.txt", 1)];
    let (_, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    let waits: Vec<_> =
        messages.iter().filter(|line| line.contains("has had no ApplicationMaster for")).collect();
    assert!(waits.len() == 1 && waits[0].ends_with("AM resource limit exceeded."), "{messages:?}");
}

/// Has an application of others hold all slots, to the end.
fn fill(scene: &Scene) {
    scene.mock.with(|state| {
        let app = state.submit("root.other", 7, 0);
        // Its ApplicationMaster is on the first host.
        app.start();
        for host in [2, 3, 3, 4, 4, 5, 5] {
            app.grant(&format!("127.0.0.{host}"), 0);
        }
    });
}

#[test]
fn where_others_hold_all_slots_the_first_job_is_submitted_with_one_warning() {
    let mut scene = Scene::new();
    fs::create_dir(scene.path("tables")).unwrap();
    fs::set_permissions(scene.path("tables"), PermissionsExt::from_mode(0o700)).unwrap();
    scene.table = Some(scene.path("tables/table"));
    fill(&scene);
    scene.player.follow(|number, _| if number == 0 { Act::Waits } else { Act::Works });
    let (player, mut there, table) =
        (scene.player.clone(), scene.applications(2), scene.path("tables/table"));
    let (app, mut polls) = (scene.app(2), 0);
    let until = move || {
        polls += u32::from(there());
        if polls == 20 {
            // Its ApplicationMaster may have all that the cluster gives, so that another would wait for it.
            assert_eq!(player.submitted(), ["f/a"]);
            let table = fs::read_to_string(&table).unwrap();
            let row = table.lines().find(|line| line.starts_with(&app.to_string())).unwrap();
            let maps = row.split(' ').nth(2).unwrap();
            assert!(maps.parse::<u32>().is_ok_and(|maps| maps > 0), "{row}");
            player.work(app, &player.last());
        }
        false
    };
    let jobs = vec![scene.job("a", "cat", "in.txt", 1), scene.job("b", "cat", "in.txt", 1)];
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted(), ["f/a", "f/b"]);
    let warning = "warned: other applications hold all slots: f/a is submitted anyway, and runs when its queue gets slots";
    assert_eq!(messages, [warning]);
}

#[test]
fn an_application_of_an_earlier_session_is_taken_over_where_others_hold_all_slots() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    fill(&scene);
    let (player, app, mut polls) = (scene.player.clone(), scene.app(1), 0);
    let until = move || {
        polls += 1;
        if polls == 20 {
            player.work(app, &player.last());
        }
        false
    };
    let (end, messages) = scene.run(&[flow(jobs())], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.submitted().len(), 1);
}

#[test]
fn a_flow_fails_where_others_hold_all_slots() {
    let scene = Scene::new();
    fill(&scene);
    scene.player.follow(|_, _| Act::Fails(failed(FailureKind::Refused)));
    let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Failed, "{messages:?}");
}

#[test]
fn several_node_managers_of_a_host_add_up() {
    let scene = Scene::new();
    scene
        .mock
        .with(|state| state.hosts.extend([("127.0.0.3".to_owned(), true), ("127.0.0.4".to_owned(), false)]));
    let manager = ResourceManager::new(&scene.mock.address(), http::Settings::default());
    let machines = machines(&manager.nodes().unwrap(), 512);
    let counts: Vec<(&str, u32)> = machines.iter().map(|machine| (&*machine.name, machine.count)).collect();
    assert_eq!(counts, [("127.0.0.2", 2), ("127.0.0.3", 4), ("127.0.0.4", 2), ("127.0.0.5", 2)]);
}

#[test]
fn a_host_that_came_back_with_another_port_is_there() {
    let scene = Scene::new();
    // As it was is listed after as it is.
    scene.mock.with(|state| {
        let before = state.hosts.clone().into_iter().map(|(host, _)| (host, false));
        state.hosts.extend(before.collect::<Vec<_>>());
    });
    let (end, messages) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
}

#[test]
fn a_run_resumes_on_a_changed_cluster() {
    let scene = Scene::new();
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1), scene.job("last", "cat", "@count", 1)];
    scene.player.follow(|number, _| if number == 0 { Act::Works } else { Act::Waits });
    scene.run_and_die(jobs(), scene.applications(2));
    scene.mock.with(|state| {
        state.apps.clear();
        state.hosts = vec![("127.0.0.1".to_owned(), true), ("127.0.0.2".to_owned(), true)];
    });
    scene.player.follow(|_, _| Act::Works);
    let (end, messages) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    let journal = slackline_executor::store::journal::Journal::open(&scene.path("state/journal.log"))
        .unwrap()
        .read()
        .unwrap();
    let segments = journal.head.unwrap().segments;
    let names = |number: usize| -> Vec<&str> {
        segments[number].machines.iter().map(|machine| machine.name.as_str()).collect()
    };
    assert_eq!(names(0), ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"]);
    assert_eq!((names(1), segments.len()), (vec!["127.0.0.1", "127.0.0.2"], 2));
    // All attempts ran on 127.0.0.2, whose slots are the first two in one segment, and then the third and the
    // fourth.
    let is_there =
        |attempt: &slackline_executor::store::journal::Attempt| attempt.slot / 2 == attempt.segment;
    assert!(journal.attempts.iter().all(is_there), "{:?}", journal.attempts);
}
