//! Runs on the mock cluster: jobs are submitted to a submitter that is played, and their outputs say what they were made
//! by.

mod player;
mod programs;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use slackline_algo::baseline::{By, Fifo};
use slackline_executor::engine::backend::{FlowOverrides, RunConfig, RunId};
use slackline_executor::engine::{Happening, Observer};
use slackline_executor::run::opening;
use slackline_executor::run::reuse::Choices;
use slackline_executor::store::journal::{AttemptOutcome, Setup};
use slackline_model::SlotRange;
use slackline_model::Time;
use slackline_model::draft::{FlowDraft, JobDraft, RunDraft, RunWork};
use slackline_model::schedule::NewRow;
use slackline_policy::engine::RowId;
use slackline_policy::log::{FlowEnd, Sink};
use slackline_policy::plans::Plans;
use slackline_policy::{Config, Driver};
use slackline_task::base::clock::unix_micros;
use tempfile::TempDir;

use self::player::{Act, Player};
use super::*;
use crate::engine::remote::Away;
use crate::id::AppId;
use crate::mock::{Mock, Mood};
use crate::rest::AppState;
use crate::submitter::{Entry, FailureKind, SubmitterError};

/// A file system in which nothing is but directories, and of which nothing can be removed.
#[derive(Default)]
struct NoFiles {
    directories: Mutex<Vec<String>>,
    /// How often it does not answer when something is to be uploaded.
    away: AtomicUsize,
}

impl Files for NoFiles {
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
        let is_away = self.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if is_away.is_ok() { Err(io::Error::other(Away(format!("{path}: away")))) } else { Ok(()) }
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        Err(io::Error::other(path.to_owned()))
    }
}

/// Says when a run is to be stopped.
type Until = Box<dyn FnMut() -> bool>;

/// Writes down what happens, and stops the run when it is time.
struct Watcher {
    said: Vec<String>,
    until: Until,
    stop: Arc<Mutex<Option<Stop>>>,
}

impl Observer for Watcher {
    fn happened(&mut self, _: Time, what: Happening<'_>) {
        match what {
            Happening::Failed { message, is_final, .. } => {
                self.said.push(format!("failed{}: {message}", if is_final { " for good" } else { "" }));
            }
            Happening::Troubled(Some(message)) => self.said.push(format!("trouble: {message}")),
            Happening::Warned(message) => self.said.push(format!("warned: {message}")),
            Happening::Troubled(None) => self.said.push("no trouble".to_owned()),
            Happening::Tick if (self.until)() => {
                if let Some(stop) = self.stop.lock().unwrap().as_ref() {
                    stop.stop();
                }
            }
            _ => {}
        }
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
    pace: Pace,
    table: Option<PathBuf>,
    files: Arc<NoFiles>,
}

impl Scene {
    fn new() -> Self {
        let mock = Arc::new(Mock::start().unwrap());
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("in.txt"), "a b\nc d\n".repeat(300)).unwrap();
        let ms = Duration::from_millis;
        let pace = Pace {
            cycle: ms(5),
            end: ms(300),
            late: ms(100),
            unseen: ms(100),
            queued: ms(100),
            away: ms(5000),
            ..Pace::default()
        };
        Self {
            dir,
            player: Arc::new(Player::new(mock.clone())),
            mock,
            pace,
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
        let rules = InputRules { split_bytes: 1 << 10, hash: false, directory: self.dir.path() };
        let mut resolved = resolve(&draft, rules, &JobHistory::new()).unwrap();
        resolved.set_mirror(self.path("state/remote/files"));
        let setup = Setup { directory: self.dir.path().display().to_string(), ..Setup::default() };
        let state = self.path("state");
        let says = opening::StatusCallback::default();
        let opening = Opening {
            state: &state,
            setup,
            started: unix_micros(),
            choices,
            beside_others: false,
            status: says,
        };
        let session = opening::open(opening, &resolved).unwrap();
        let site = self.site(address);
        let mut session = SessionThere {
            session,
            table: site.table.as_deref().map(|path| Table::open(path, VALID).unwrap()),
            cover: Cover {
                site,
                remote: self.remote(&state, default_fs),
                state,
                obstacles: Vec::new(),
                verdicts: Vec::new(),
            },
        };
        let stop = Arc::new(Mutex::new(None));
        let mut watcher = Watcher { said: Vec::new(), until, stop: stop.clone() };
        let Some(instance) = session.session.remaining().unwrap() else {
            return (Ok(RunEnd::Done), watcher.said);
        };
        let mut policy = Fifo::new(By::Job);
        let config = Config::plain().audited();
        let drive = Drive { instance: &instance, policy: &mut policy, config, observer: &mut watcher };
        let end = slackline_executor::engine::backend::Session::run(&mut session, drive, &mut |given| {
            *stop.lock().unwrap() = Some(given);
        });
        (end, watcher.said)
    }

    /// Runs a flow to its end.
    fn run_to_end(&self, jobs: Vec<JobDraft>) -> (Result<RunEnd, EngineError>, Vec<String>) {
        self.run(&[flow(jobs)], Choices::default(), Box::new(|| false))
    }

    /// Runs a flow until it is time, and leaves its applications as a process does that is killed.
    fn run_and_die(&self, jobs: Vec<JobDraft>, until: impl FnMut() -> bool + 'static) {
        let deaf = Mood::Says(503, "text/html", "not now".to_owned());
        self.mock.with(|state| state.moods.push(("/state", usize::MAX, deaf)));
        let (end, said) = self.run(&[flow(jobs)], Choices::default(), Box::new(until));
        assert_eq!(end.unwrap(), RunEnd::Interrupted, "{said:?}");
        self.mock.with(|state| state.moods.clear());
    }

    /// Until the cluster has so many applications.
    fn applications(&self, count: usize) -> impl FnMut() -> bool + 'static {
        let mock = self.mock.clone();
        move || mock.with(|state| state.apps.len()) == count
    }

    fn site(&self, address: Address) -> Site {
        Site {
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
            pace: self.pace.clone(),
        }
    }

    fn remote(&self, state: &Path, default_fs: &str) -> Arc<Remote> {
        let files: Arc<dyn Files> = self.files.clone();
        let mirror = Mirror::new(state.join("remote"), files.clone(), (default_fs, "me"));
        let submitter = self.player.clone();
        Arc::new(Remote { submitter, files, mirror: Arc::new(mirror), state: state.to_owned() })
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
    let (mut resident, seats) = seated(&scene, &["one", "two", "three"]);
    resident.update_flow(seats[1], "f", FlowOverrides { held: true, ..FlowOverrides::default() });
    resident.cancel_flow(seats[2], "f");
    let empty = resident.empty().clone();
    let (mut policy, mut nowhere, mut back) = (Fifo::new(By::Job), Nobody, Vec::new());
    let config = Config::plain().audited();
    let mut driver =
        Driver::new(empty, &mut policy, &mut resident as &mut dyn SharedEngine, &mut nowhere, config);
    for look in 0..2_000 {
        assert!(driver.step());
        let plans = Plans::of(&driver);
        driver.engine().planned(&plans);
        back.extend(driver.engine().finished_runs().into_iter().map(|ended| (ended.run, ended.how.unwrap())));
        if look == 100 {
            // The one that is held has not begun, and the one that was cancelled has come back.
            assert!(
                !scene.path("two/_SUCCESS").exists() && back.contains(&(seats[2], RunEnd::Failed)),
                "{back:?}"
            );
            driver.engine().update_flow(seats[1], "f", FlowOverrides::default());
        }
        if back.len() == 3 {
            break;
        }
    }
    assert!(driver.close().failure.is_none());
    back.sort_by_key(|(seat, _)| *seat);
    let expected = [RunEnd::Done, RunEnd::Done, RunEnd::Failed];
    assert_eq!(back, seats.into_iter().zip(expected).collect::<Vec<_>>());
    for name in ["one", "two"] {
        assert!(scene.output(name).contains(&made_by("cat")), "{}", scene.output(name));
    }
    assert!(!scene.path("three/_SUCCESS").exists());
    assert_eq!(scene.player.submitted(), ["f/one", "f/two"]);
}

/// A cluster that stays, with runs of one job each, whose states and outputs have these names.
fn seated(scene: &Scene, names: &[&str]) -> (ResidentThere, Vec<RunId>) {
    let site = scene.site(scene.mock.address());
    let manager = ResourceManager::new(&site.address, http::Settings::default());
    let machines = machines(&manager.nodes().unwrap(), 512);
    let empty = Instance::new(&Draft { machines: machines.clone(), ..Draft::default() }).unwrap();
    let began = unix_micros();
    let guest = Guest::new(
        Elsewhere::none(began, Time::ZERO),
        site.cluster(None, scene.player.clone()),
        machines.clone(),
        (site.rules(), site.pace.clone()),
        Arc::default(),
    );
    let mut resident = ResidentThere::new(guest, manager, (machines, empty.without_flows()));
    let seat = |name: &&str| {
        let state = scene.path(&format!("states/{name}"));
        let draft = Draft {
            machines: resident.machines().into_iter().map(|machine| machine.draft).collect(),
            flows: vec![flow(vec![scene.job(name, "cat", "in.txt", 1)])],
            ..Draft::default()
        };
        let rules = InputRules { split_bytes: 1 << 10, hash: false, directory: scene.dir.path() };
        let resolved = resolve(&draft, rules, &JobHistory::new()).unwrap();
        let setup = Setup { directory: scene.dir.path().display().to_string(), ..Setup::default() };
        let (choices, says) = (Choices::default(), opening::StatusCallback::default());
        let opening = Opening {
            state: &state,
            setup,
            started: unix_micros(),
            choices,
            beside_others: true,
            status: says,
        };
        let session = opening::open(opening, &resolved).unwrap();
        let remote = scene.remote(&state, "file:///");
        let cover = Cover { site: site.clone(), remote, state, obstacles: Vec::new(), verdicts: Vec::new() };
        let rules = RunConfig { attempts_max: 4, slowstart: 1.0, overrides: BTreeMap::new(), quota: None };
        resident.add_run(Box::new(SessionThere::of(session, cover)), rules, Box::new(Nobody)).unwrap()
    };
    let seats = names.iter().map(seat).collect();
    (resident, seats)
}

struct Nobody;

impl Observer for Nobody {
    fn happened(&mut self, _: Time, _: Happening<'_>) {}
}

impl Sink for Nobody {
    fn row(&mut self, _: RowId, _: &NewRow, _: &[SlotRange], _: &Instance) {}

    fn flow(&mut self, _: &FlowEnd, _: &Instance) {}
}

#[test]
fn jobs_are_submitted_one_after_the_other_and_their_parts_are_published() {
    let scene = Scene::new();
    let jobs = vec![scene.job("count", "cat", "in.txt", 2), scene.job("last", "rev", "@count", 0)];
    let (end, said) = scene.run_to_end(jobs);
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
fn an_application_of_another_definition_is_not_taken_over() {
    // Changed as it is, asked for again, or behind a job that is changed.
    let again = Choices::again();
    let mut forced = Choices::default();
    forced.force = vec!["count".to_owned()];
    for (mapper, choices) in [("rev", Choices::default()), ("cat", again), ("rev", forced)] {
        let scene = Scene::new();
        scene.player.follow(|_, _| Act::Waits);
        scene.run_and_die(vec![scene.job("count", "cat", "in.txt", 1)], scene.applications(1));
        // It ends while nobody drives it, or goes on.
        let request = scene.player.last();
        scene.player.work(scene.app(1), &request);
        scene.player.follow(|_, _| Act::Works);
        let jobs = vec![scene.job("count", mapper, "in.txt", 1)];
        let (end, said) = scene.run(&[flow(jobs)], choices, Box::new(|| false));
        assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    let (end, said) = scene.run_to_end(vec![scene.job("count", "rev", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.states(), [AppState::Killed, AppState::Finished]);
}

#[test]
fn an_application_of_the_same_definition_is_taken_over() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1), scene.job("last", "cat", "@count", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    let request = scene.player.last();
    scene.player.work(scene.app(1), &request);
    scene.player.follow(|_, _| Act::Works);
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.player.submitted(), ["f/count", "f/last"]);
}

#[test]
fn a_submission_that_was_told_something_else_is_not_taken_over() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    let request = scene.player.last();
    scene.player.work(scene.app(1), &request);
    fs::write(player::local(&request.pieces), "something else").unwrap();
    scene.player.follow(|_, _| Act::Works);
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Failed, "{said:?}");
    fs::remove_file(&stranger).unwrap();
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    // What there is until the publication is done, and what a mirror has of the output when it is made anew: its lock.
    copy(&scene.path("state/elsewhere"), &scene.path("elsewhere"));
    copy(&scene.path("count/_temporary"), &scene.path("lock"));
    scene.run_and_die(jobs(), scene.applications(2));
    copy(&scene.path("elsewhere"), &scene.path("state/elsewhere"));
    fs::remove_dir_all(scene.path("count")).unwrap();
    copy(&scene.path("lock"), &scene.path("count/_temporary"));
    fs::create_dir_all(scene.path("count/_temporary/parts")).unwrap();
    scene.player.follow(|_, _| Act::Works);
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
        let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
        assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
        assert_eq!(scene.player.submitted().len(), 2);
    }
}

#[test]
fn a_job_that_was_submitted_without_an_answer_is_found_by_its_tag() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Lost(timed_out()));
    let (mock, player) = (scene.mock.clone(), scene.player.clone());
    let (app, mut looks) = (scene.app(1), 0);
    let until = move || {
        // The application is there for some looks before it works.
        looks += u32::from(mock.with(|state| !state.apps.is_empty()));
        if looks == 5 {
            player.work(app, &player.last());
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.player.submitted().len(), 1);
}

#[test]
fn a_job_is_not_submitted_for_ever() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Fails(timed_out()));
    let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Failed);
    assert_eq!(scene.player.submitted().len(), 3);
    assert!(said.iter().any(|line| line.contains("did not answer `submit`")), "{said:?}");
}

#[test]
fn a_job_that_is_refused_fails_at_once() {
    let kinds = [FailureKind::Refused, FailureKind::Input, FailureKind::Output, FailureKind::Security];
    for kind in kinds {
        let scene = Scene::new();
        scene.player.follow(move |_, _| Act::Fails(failed(kind)));
        let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
        assert_eq!(end.unwrap(), RunEnd::Failed);
        assert_eq!(scene.player.submitted().len(), 1, "{kind:?}");
        assert!(said.iter().any(|line| line.contains("said so")), "{said:?}");
    }
}

#[test]
fn applications_are_killed_until_they_are_over() {
    let mut scene = Scene::new();
    scene.pace.end = Duration::from_secs(20);
    scene.player.follow(|_, _| Act::Waits);
    // Kills get no answer at first.
    let deaf = Mood::Says(503, "text/html", "not now".to_owned());
    scene.mock.with(|state| state.moods.push(("/state", 2, deaf)));
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(scene.applications(1)));
    assert_eq!(end.unwrap(), RunEnd::Interrupted);
    assert_eq!(scene.states(), [AppState::Killed]);
    assert!(!said.iter().any(|line| line.starts_with("warned")), "{said:?}");
}

#[test]
fn applications_that_cannot_be_killed_are_named() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let deaf = Mood::Says(503, "text/html", "not now".to_owned());
    scene.mock.with(|state| state.moods.push(("/state", usize::MAX, deaf)));
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (_, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(scene.applications(1)));
    let app = scene.app(1);
    let warning =
        format!("warned: left on the cluster: {app} (f/count); this ends them: yarn application -kill {app}");
    assert!(said.contains(&warning), "{said:?}");
}

#[test]
fn a_kill_that_is_refused_is_said_once() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let refusal = r#"{ "RemoteException": { "exception": "X", "message": "not yours" } }"#;
    let refused = Mood::Says(403, "application/json", refusal.to_owned());
    scene.mock.with(|state| state.moods.push(("/state", usize::MAX, refused)));
    let jobs = vec![scene.job("a", "cat", "in.txt", 1), scene.job("b", "cat", "in.txt", 1)];
    let (_, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(scene.applications(2)));
    let refusals: Vec<_> = said.iter().filter(|line| line.contains("cannot be killed: ")).collect();
    let [refusal] = refusals.as_slice() else { panic!("found {said:?}, expected one") };
    assert!(refusal.contains(&scene.app(1).to_string()) && refusal.contains("not yours"), "{refusal}");
    let kills = scene.mock.with(|state| state.requests.iter().filter(|it| it.contains("/state")).count());
    assert!(kills > 2, "they are tried again");
}

#[test]
fn the_first_question_of_a_run_is_asked_again() {
    let scene = Scene::new();
    let busy = Mood::Says(503, "text/html", "not now".to_owned());
    scene.mock.with(|state| state.moods.push(("applicationTags", 2, busy)));
    let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    let (end, said) = std::thread::scope(|scope| {
        scope.spawn(move || {
            while mock.with(|state| state.apps.is_empty()) || player.submitted().len() < 2 {
                crate::clock::pause(Duration::from_millis(5));
            }
            crate::clock::pause(Duration::from_millis(50));
            drop(opener);
        });
        scene.run_to_end(jobs)
    });
    assert_eq!(end.unwrap(), RunEnd::Failed, "{said:?}");
    assert_eq!(scene.states(), [AppState::Killed], "{said:?}");
}

#[test]
fn a_submission_does_not_inherit_the_failures_of_the_one_before() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::FailsOnce);
    let (player, mock) = (scene.player.clone(), scene.mock.clone());
    let mut looks = 0;
    let until = move || {
        let submissions = player.submitted().len();
        looks += u32::from(mock.with(|state| state.apps.len()) == 1);
        if submissions == 1 && looks >= 10 {
            // The ResourceManager knows it no more; the next one has another number.
            mock.with(|state| {
                state.submit("root.other", 1, 0).end(AppState::Finished, 0);
                state.apps.pop_first();
            });
            looks = 0;
        }
        let last = mock.with(|state| state.apps.values().next_back().map(|app| (app.id, app.queue.clone())));
        if let Some((app, queue)) = last
            && submissions == 2
            && queue == "root.jobs"
        {
            looks += 1;
            if looks == 10 {
                player.work(app, &player.last());
            }
        }
        false
    };
    let mut job = scene.job("count", "cat", "in.txt", 1);
    job.run.iter_mut().for_each(|run| run.limits.attempts = Some(2));
    let (end, said) = scene.run(&[flow(vec![job])], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    // Each says which attempt it was, and how a person reads what its container said.
    for said in &said {
        let words = [
            "failed: no luck\n(attempt_",
            "_m_000000_0 on 127.0.0.",
            ": yarn logs -applicationId application_",
        ];
        assert!(words.iter().all(|words| said.contains(words)), "{said}");
    }
    assert_eq!(said.len(), 2);
}

#[test]
fn a_failed_attempt_is_recorded_once() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::FailsOnce);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    let recorded = || {
        let said = ends(&scene);
        said.iter()
            .filter(
                |ended| matches!(ended, AttemptOutcome::Failed(message) if message.starts_with("no luck\n")),
            )
            .count()
    };
    for _ in 0..3 {
        let mut looks = 0;
        scene.run_and_die(jobs(), move || {
            looks += 1;
            looks == 30
        });
        assert_eq!(recorded(), 1);
    }
    assert_eq!(scene.player.submitted().len(), 1);
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
fn who_looks_from_outside_is_told_of_the_application_of_a_job_and_of_its_start() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::FailsOnce);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    let seen = || slackline_executor::run::inspect::inspect(&scene.path("state")).unwrap().unwrap().there;
    let mut looks = 0;
    scene.run_and_die(jobs(), move || {
        looks += 1;
        looks == 30
    });
    let [there] = &seen()[..] else { panic!("found {:?}, expected one job", seen()) };
    assert_eq!((there.flow.as_str(), there.job.as_str(), there.applications.len()), ("f", "count", 1));
    assert!(there.submitted.is_some() && there.master[1].is_some(), "{there:?}");
    // Nobody drives it.
    assert!(there.at_work.is_empty() && !there.failed && there.containers == 0, "{there:?}");
}

#[test]
fn an_attempt_on_a_node_whose_clock_is_ahead_has_ended_by_now() {
    let scene = Scene::new();
    scene.player.ahead_ms.store(3_600_000, Ordering::SeqCst);
    let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    let journal =
        slackline_executor::store::journal::Journal::open(&scene.path("state/journal.log")).unwrap();
    let content = journal.read().unwrap();
    let now = unix_micros() - content.head.unwrap().started;
    assert!(content.attempts.iter().all(|attempt| attempt.end <= now), "{:?}", content.attempts);
}

#[test]
fn a_table_that_cannot_be_written_is_said_once_and_tried_again() {
    let mut scene = Scene::new();
    // A directory in its place.
    fs::create_dir_all(scene.path("tables/table/x")).unwrap();
    fs::set_permissions(scene.path("tables"), PermissionsExt::from_mode(0o700)).unwrap();
    scene.table = Some(scene.path("tables/table"));
    scene.player.follow(|_, _| Act::Waits);
    let (player, table, app) = (scene.player.clone(), scene.path("tables/table"), scene.app(1));
    let mut looks = 0;
    let until = move || {
        looks += 1;
        match looks {
            20 => fs::remove_dir_all(&table).unwrap(),
            40 => assert!(table.is_file(), "it is written again"),
            41 => player.work(app, &player.last()),
            _ => {}
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    let (end, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    let warnings = said.iter().filter(|line| line.contains("table cannot be written")).count();
    assert_eq!(warnings, 1, "{said:?}");
}

#[test]
fn a_clean_up_that_fails_is_a_warning() {
    let scene = Scene::new();
    let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
    // A staging directory on a file system that does not answer.
    let (end, said) =
        scene.run_with(&[flow(jobs)], Choices::default(), Box::new(|| false), "hdfs://gone:9000");
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert!(
        said.iter().any(|line| line.starts_with("warned: what the run needed on the cluster is not removed")),
        "{said:?}"
    );
}

#[test]
fn a_job_is_submitted_when_its_file_system_answers_again() {
    for (away, expected) in [(4, RunEnd::Done), (usize::MAX, RunEnd::Failed)] {
        let scene = Scene::new();
        scene.files.away.store(away, Ordering::SeqCst);
        let jobs = vec![scene.job("count", "cat", "in.txt", 1)];
        let (end, said) =
            scene.run_with(&[flow(jobs)], Choices::default(), Box::new(|| false), "hdfs://gone:9000");
        assert_eq!(end.unwrap(), expected, "{said:?}");
        let is_trouble =
            |line: &String| line.starts_with("trouble: hdfs://gone:9000/") && line.ends_with(": away");
        assert_eq!(said.iter().filter(|line| is_trouble(line)).count(), 1, "{said:?}");
        assert_eq!(scene.player.submitted().len(), usize::from(expected == RunEnd::Done));
        let is_why =
            |line: &String| line.starts_with("failed for good: it cannot be submitted: hdfs://gone:9000/");
        assert_eq!(said.iter().any(is_why), expected == RunEnd::Failed, "{said:?}");
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
    job.run.iter_mut().for_each(|run| run.output = output.display().to_string());
    let (_, said) =
        scene.run_with(&[flow(vec![job])], Choices::default(), Box::new(|| false), "hdfs://gone:9000");
    assert!(said.contains(&"failed for good: it cannot be submitted: said so".to_owned()), "{said:?}");
}

#[test]
fn an_application_that_runs_tasks_when_its_job_is_done_is_killed() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let (player, mock) = (scene.player.clone(), scene.mock.clone());
    let (first, last) = (scene.app(1), scene.app(2));
    let mut is_made = false;
    let until = move || {
        let state = |app| mock.with(|state| state.apps.get(&app).map(|app| app.state));
        if state(first).is_some() && !is_made {
            is_made = true;
            player.work_on(first, &player.last());
        }
        if state(first) == Some(AppState::Killed) && state(last) == Some(AppState::Running) {
            player.work(last, &player.last());
        }
        false
    };
    let jobs = vec![scene.job("count", "cat", "in.txt", 1), scene.job("last", "cat", "@count", 1)];
    let (end, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.states(), [AppState::Killed, AppState::Finished]);
}

#[test]
fn reports_that_cannot_be_read_now_are_read_later() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let (player, app) = (scene.player.clone(), scene.app(1));
    let mut looks = 0;
    let until = move || {
        looks += 1;
        if looks < 5 || player.submitted().is_empty() {
            return false;
        }
        let attempts = player::local(&player.last().destination);
        match looks {
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
    let (end, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    let troubles: Vec<bool> = said.iter().map(|line| line.starts_with("trouble: ")).collect();
    assert_eq!(troubles, [true, false], "{said:?}");
}

#[test]
fn a_job_is_not_done_again_while_nobody_can_read_what_it_did() {
    let mut scene = Scene::new();
    // Reports that are not there when the application has ended are missing.
    scene.pace.late = Duration::ZERO;
    scene.player.follow(|_, _| Act::Waits);
    let (player, app, aside) = (scene.player.clone(), scene.app(1), scene.path("aside"));
    let mut looks = 0;
    let until = move || {
        if player.submitted().is_empty() {
            return false;
        }
        looks += 1;
        let attempts = player::local(&player.last().destination);
        match looks {
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
    let (end, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.player.submitted().len(), 1);
}

#[test]
fn jobs_for_which_a_look_has_no_time_are_read_at_the_next() {
    let mut scene = Scene::new();
    // Time for one question of each kind.
    scene.pace.asks = Duration::ZERO;
    let jobs = (0..6).map(|number| scene.job(&format!("job{number}"), "cat", "in.txt", 1)).collect();
    let (end, said) = scene.run_to_end(jobs);
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.player.submitted().len(), 6, "none is done again");
}

#[test]
fn a_damaged_report_fails_its_job() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Damages);
    let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Failed);
    assert!(said.iter().any(|line| line.contains("report.json: ")), "{said:?}");
}

#[test]
fn a_cluster_without_priorities_is_said_once() {
    let scene = Scene::new();
    scene.mock.with(|state| state.priority_max = 0);
    scene.player.follow(|_, _| Act::Waits);
    let mut looks = 0;
    let until = move || {
        looks += 1;
        looks == 40
    };
    let jobs = vec![scene.job("a", "cat", "in.txt", 1), scene.job("b", "cat", "in.txt", 1)];
    let (_, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    let warnings = said.iter().filter(|line| line.contains("found no priority above 0")).count();
    assert_eq!(warnings, 1, "{said:?}");
}

#[test]
fn an_application_without_a_master_is_explained_once_with_the_reason_that_yarn_gives() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    scene.mock.with(|state| state.is_full = true);
    let (mock, mut looks) = (scene.mock.clone(), 0);
    let until = move || {
        mock.with(|state| {
            let text = "Queue's AM resource limit exceeded.";
            state.apps.values_mut().for_each(|app| app.diagnostics = text.to_owned());
        });
        looks += 1;
        looks == 80
    };
    let jobs = vec![scene.job("a", "cat", "in.txt", 1)];
    let (_, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    let told: Vec<_> = said.iter().filter(|line| line.contains("has had no ApplicationMaster for")).collect();
    assert!(told.len() == 1 && told[0].ends_with("AM resource limit exceeded."), "{said:?}");
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
fn where_others_hold_all_slots_the_first_job_is_submitted_and_that_is_said_once() {
    let mut scene = Scene::new();
    fs::create_dir(scene.path("tables")).unwrap();
    fs::set_permissions(scene.path("tables"), PermissionsExt::from_mode(0o700)).unwrap();
    scene.table = Some(scene.path("tables/table"));
    fill(&scene);
    scene.player.follow(|number, _| if number == 0 { Act::Waits } else { Act::Works });
    let (player, mut there, table) =
        (scene.player.clone(), scene.applications(2), scene.path("tables/table"));
    let (app, mut looks) = (scene.app(2), 0);
    let until = move || {
        looks += u32::from(there());
        if looks == 20 {
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
    let (end, said) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.player.submitted(), ["f/a", "f/b"]);
    let warning = "warned: all slots are held by others: f/a is submitted all the same, and runs when the cluster gives \
                   its queue some";
    assert_eq!(said, [warning]);
}

#[test]
fn an_application_of_an_earlier_session_is_taken_over_where_others_hold_all_slots() {
    let scene = Scene::new();
    scene.player.follow(|_, _| Act::Waits);
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1)];
    scene.run_and_die(jobs(), scene.applications(1));
    fill(&scene);
    let (player, app, mut looks) = (scene.player.clone(), scene.app(1), 0);
    let until = move || {
        looks += 1;
        if looks == 20 {
            player.work(app, &player.last());
        }
        false
    };
    let (end, said) = scene.run(&[flow(jobs())], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
    assert_eq!(scene.player.submitted().len(), 1);
}

#[test]
fn a_flow_fails_where_others_hold_all_slots() {
    let scene = Scene::new();
    fill(&scene);
    scene.player.follow(|_, _| Act::Fails(failed(FailureKind::Refused)));
    let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Failed, "{said:?}");
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
    let (end, said) = scene.run_to_end(vec![scene.job("count", "cat", "in.txt", 1)]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
}

#[test]
fn a_run_goes_on_where_its_cluster_is_another() {
    let scene = Scene::new();
    let jobs = || vec![scene.job("count", "cat", "in.txt", 1), scene.job("last", "cat", "@count", 1)];
    scene.player.follow(|number, _| if number == 0 { Act::Works } else { Act::Waits });
    scene.run_and_die(jobs(), scene.applications(2));
    scene.mock.with(|state| {
        state.apps.clear();
        state.hosts = vec![("127.0.0.1".to_owned(), true), ("127.0.0.2".to_owned(), true)];
    });
    scene.player.follow(|_, _| Act::Works);
    let (end, said) = scene.run_to_end(jobs());
    assert_eq!(end.unwrap(), RunEnd::Done, "{said:?}");
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
    // All attempts ran on 127.0.0.2, whose slots are the first two in one segment, and then the third and the fourth.
    let is_there =
        |attempt: &slackline_executor::store::journal::Attempt| attempt.slot / 2 == attempt.segment;
    assert!(journal.attempts.iter().all(is_there), "{:?}", journal.attempts);
}
