//! Runs that share this machine under one driver: they come and go, are held, changed, cancelled and stopped,
//! and each is on disk what it is when it is alone.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use slackline_algo::baseline::dates::Dates;
use slackline_algo::baseline::{Edf, Fair, Fifo, ShareUnit};
use slackline_algo::dmrs::{Dmrs, OnlineConfig};
use slackline_executor::engine::Settings;
use slackline_executor::engine::backend::{
    Backend, EndedRun, FlowOrder, FlowOverrides, RunConfig, RunId, Session, SharedEngine, SharedEngineConfig,
    ended_runs, without_flows,
};
use slackline_executor::engine::event::RunEvent;
use slackline_executor::engine::this_machine::LocalEngine;
use slackline_executor::run::RunEnd;
use slackline_executor::run::opening::Opening;
use slackline_executor::run::reuse::Choices;
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::store::journal::Setup;
use slackline_executor::store::run_schedule;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, RunDraft, RunWork};
use slackline_model::quota::{Quota, UserQuota};
use slackline_model::{Cluster, Draft, Instance, Time};
use slackline_policy::{Config, Driver, Policy};
use slackline_task::base::clock::unix_micros;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::worker_command::WorkerCommand;

/// What has happened in all runs, by the name of their flow.
type Log = Arc<Mutex<Vec<(String, What)>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Started(TaskId),
    Done(TaskId),
    Killed(TaskId),
}

struct Watcher {
    name: String,
    log: Log,
}

impl Watcher {
    fn happened(&mut self, event: &RunEvent) {
        let what = match event {
            RunEvent::AttemptStarted(attempt) => What::Started(attempt.id),
            RunEvent::TaskFinished { task, .. } => What::Done(*task),
            RunEvent::AttemptStopped { task, .. } => What::Killed(*task),
            _ => return,
        };
        self.log.lock().unwrap().push((self.name.clone(), what));
    }
}

/// A service in a directory, with two slots.
struct Place {
    dir: PathBuf,
    engine: LocalEngine,
    started: u64,
    log: Log,
}

impl Place {
    fn new(dir: &Path) -> Self {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_slackline-agent"));
        let settings = Settings::new(WorkerCommand { program, args: Vec::new() });
        let engine = LocalEngine { split_bytes: 1 << 10, ..LocalEngine::new(Slots::Generic(2), settings) };
        Self { dir: dir.to_owned(), engine, started: unix_micros(), log: Log::default() }
    }

    fn resident(&self) -> Box<dyn SharedEngine> {
        let (files, past) = (self.dir.join("engine"), JobHistory::new());
        let (started, seen, says) = (self.started, Time::ZERO, &|_: &str| {});
        self.engine
            .shared_engine(SharedEngineConfig { files: &files, started, seen, past: &past, status: says })
            .unwrap()
    }

    fn cluster(&self) -> Cluster {
        let draft = Draft { machines: self.engine.description().machines, ..Draft::default() };
        Instance::new(&draft).unwrap().cluster().clone()
    }

    /// A flow of `tasks` tasks of a command, each with a separate input.
    fn flow(&self, name: &str, command: &str, tasks: usize) -> FlowDraft {
        let inputs = self.dir.join(format!("in-{name}"));
        // Inputs that are there stay as they are: one that was written again would be another.
        let new = if fs::create_dir(&inputs).is_ok() { tasks } else { 0 };
        for k in 0..new {
            // As long as a split, so that each has one map.
            fs::write(inputs.join(format!("{k}.txt")), format!("{name} {k}{}\n", " ".repeat(1 << 10)))
                .unwrap();
        }
        let work = RunWork::Commands { mapper: command.to_owned(), reducer: None, combiner: None };
        let inputs = vec![inputs.display().to_string()];
        let run = RunDraft { inputs, ..RunDraft::new(work, self.output(name).display().to_string()) };
        FlowDraft::new(name, vec![JobDraft { id: "j".into(), run: Some(run), ..JobDraft::default() }])
    }

    fn output(&self, name: &str) -> PathBuf {
        self.dir.join(format!("out-{name}"))
    }

    fn session(&self, name: &str, flow: FlowDraft) -> Box<dyn Session> {
        let draft =
            Draft { machines: self.engine.description().machines, flows: vec![flow], ..Draft::default() };
        let state = self.dir.join(format!("run-{name}"));
        let prepared = self.engine.prepare(&draft, &JobHistory::new(), &state).unwrap();
        let directory = std::env::current_dir().unwrap().display().to_string();
        let opening = Opening {
            state: &state,
            setup: Setup { directory, ..Setup::default() },
            started: unix_micros(),
            choices: Choices::default(),
            beside_others: true,
            status: &|_| {},
        };
        prepared.open(opening).unwrap()
    }

    fn bring(&self, to: &mut dyn SharedEngine, flow: FlowDraft) -> RunId {
        self.bring_of(to, flow, None)
    }

    /// Adds a flow of a user with a quota of slots.
    fn bring_of(&self, to: &mut dyn SharedEngine, flow: FlowDraft, quota: Option<(String, u32)>) -> RunId {
        let quota = quota.map(|(user, slots)| UserQuota { user, quota: Quota { slots } });
        self.add(to, flow, RunConfig { attempts_max: 2, slowstart: 1.0, overrides: BTreeMap::new(), quota })
    }

    /// Brings a flow that stands in another way than its document says.
    fn bring_as(
        &self,
        to: &mut dyn SharedEngine,
        flow: FlowDraft,
        standings: BTreeMap<String, FlowOverrides>,
    ) -> RunId {
        self.add(to, flow, RunConfig { attempts_max: 2, slowstart: 1.0, overrides: standings, quota: None })
    }

    fn add(&self, to: &mut dyn SharedEngine, flow: FlowDraft, rules: RunConfig) -> RunId {
        let name = flow.id.clone();
        let mut watcher = Watcher { name: name.clone(), log: self.log.clone() };
        to.add_run(self.session(&name, flow), rules, Box::new(move |_, event| watcher.happened(event)))
            .unwrap()
    }

    fn events(&self) -> Vec<(String, What)> {
        self.log.lock().unwrap().clone()
    }

    fn count(&self, name: &str, is_one: impl Fn(What) -> bool) -> usize {
        self.events().iter().filter(|(flow, what)| flow == name && is_one(*what)).count()
    }

    /// What a flow has made: a line a task.
    fn made(&self, name: &str) -> Vec<String> {
        let parts =
            (0..).map(|k| self.output(name).join(format!("part-{k:05}"))).take_while(|path| path.exists());
        parts.map(|path| fs::read_to_string(path).unwrap().trim().to_owned()).collect()
    }
}

fn is_done(what: What) -> bool {
    matches!(what, What::Done(_))
}

fn is_start(what: What) -> bool {
    matches!(what, What::Started(_))
}

type Drive<'a> = Driver<'a, 'a, dyn SharedEngine>;

/// Drives what is there by a policy; `act` is called after each step, until it says that it is enough.
fn drive(
    resident: &mut (dyn SharedEngine + 'static),
    policy: &mut dyn Policy,
    mut act: impl FnMut(&mut Drive<'_>) -> bool,
) {
    let (empty, mut nowhere) = (without_flows(&resident.machines()), ());
    let mut driver: Drive<'_> = Driver::new(empty, policy, resident, &mut nowhere, Config::plain().audited());
    for _ in 0..2_000 {
        assert!(driver.step(), "the driver continues");
        if !act(&mut driver) {
            driver.close();
            return;
        }
    }
    panic!("it never came to its end");
}

/// What has ended, and judged.
fn judged(ended: Vec<EndedRun>) -> Vec<(RunId, RunEnd)> {
    let mut ends = Vec::new();
    for EndedRun { run, how, session } in ended {
        let instance =
            Instance::new(&run_schedule::measured(session.record().workload, session.record().attempts))
                .unwrap();
        let schedule = run_schedule::schedule(&instance, session.record().attempts, "fifo", 1.0);
        slackline_judge::check(&instance, &schedule).unwrap_or_else(|violation| panic!("{violation}"));
        ends.push((run, how.unwrap()));
    }
    ends
}

#[test]
fn runs_share_slots_and_each_has_its_own_output_and_journal() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path());
    let mut resident = place.resident();
    let flows = ["a", "b", "c"].map(|name| place.bring(resident.as_mut(), place.flow(name, "cat", 4)));
    let mut ends = Vec::new();
    let mut late = None;
    drive(resident.as_mut(), &mut Fifo::new(ShareUnit::Flow), |driver| {
        ends.extend(judged(ended_runs(driver.engine().events())));
        if late.is_none() && ends.len() == 1 {
            // One that comes while others are running.
            late = Some(place.bring(driver.engine(), place.flow("d", "cat", 2)));
        }
        ends.len() < 4
    });
    ends.sort_unstable_by_key(|(run, _)| *run);
    let expected: Vec<(RunId, RunEnd)> =
        flows.into_iter().chain(late).map(|run| (run, RunEnd::Done)).collect();
    assert_eq!(ends, expected);
    for (name, tasks) in [("a", 4), ("b", 4), ("c", 4), ("d", 2)] {
        let lines: Vec<String> = (0..tasks).map(|k| format!("{name} {k}")).collect();
        assert_eq!(place.made(name), lines);
        assert_eq!((place.count(name, is_start), place.count(name, is_done)), (tasks, tasks));
    }
}

#[test]
fn a_held_flow_ends_its_running_tasks_and_starts_none_until_it_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path());
    let mut resident = place.resident();
    let gate = dir.path().join("go");
    let waits = format!("while ! test -e {}; do sleep 0.05; done; cat", gate.display());
    let a = place.bring(resident.as_mut(), place.flow("a", &waits, 5));
    let (mut step, mut ends) = (0, Vec::new());
    drive(resident.as_mut(), &mut Fifo::new(ShareUnit::Flow), |driver| {
        ends.extend(judged(ended_runs(driver.engine().events())));
        match step {
            0 if place.count("a", is_start) == 2 => {
                driver.engine().order_flow(
                    a,
                    "a",
                    FlowOrder::Override(FlowOverrides { held: true, ..FlowOverrides::default() }),
                );
                place.bring(driver.engine(), place.flow("b", "cat", 3));
                step = 1;
            }
            1 => {
                // Its tasks go on, on both slots, so that the other flow has none.
                assert_eq!(place.count("b", is_start), 0);
                fs::write(&gate, "").unwrap();
                step = 2;
            }
            // The tasks of a look for the file every 50 ms: one may end after all of b.
            2 if place.count("b", is_done) == 3 && place.count("a", is_done) == 2 => {
                assert_eq!(place.count("a", is_start), 2, "nothing of it starts");
                driver.engine().order_flow(a, "a", FlowOrder::Override(FlowOverrides::default()));
                step = 3;
            }
            _ => {}
        }
        ends.len() < 2
    });
    assert_eq!(ends.iter().filter(|(_, end)| *end == RunEnd::Done).count(), 2);
    assert_eq!((place.count("a", is_start), place.made("a").len()), (5, 5), "nothing is done twice");
    assert_eq!(place.count("a", |what| matches!(what, What::Killed(_))), 0);
}

#[test]
fn a_user_with_a_quota_of_one_slot_never_has_two_under_policies_of_every_style() {
    let cluster = Place::new(tempfile::tempdir().unwrap().path()).cluster();
    // DMRS may have placed the rest of her tasks on the slot of his, behind it.
    let policies: [(Box<dyn Policy>, bool); 3] = [
        (Box::new(Fifo::new(ShareUnit::Flow)), false),
        (Box::new(Fair::new(ShareUnit::Flow)), false),
        (Box::new(Dmrs::new(&cluster, OnlineConfig::default())), true),
    ];
    for (mut policy, places) in policies {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::new(dir.path());
        let mut resident = place.resident();
        // Of two slots, the task of the other user holds one until a task of hers was seen beside it; if he
        // might hold both, hers would wait for it, and it for them.
        let gate = dir.path().join("go");
        let waits = format!("while ! test -e {}; do sleep 0.02; done; cat", gate.display());
        let ann = Some(("ann".to_owned(), 1));
        for name in ["a", "b"] {
            place.bring_of(resident.as_mut(), place.flow(name, "sleep 0.05; cat", 4), ann.clone());
        }
        let of_ann = |what: fn(What) -> bool| place.count("a", what) + place.count("b", what);
        let (mut is_late, mut ends, mut was_beside, mut alone) = (false, Vec::new(), false, 0);
        drive(resident.as_mut(), policy.as_mut(), |driver| {
            ends.extend(judged(ended_runs(driver.engine().events())));
            let at_work = of_ann(is_start) - of_ann(is_done);
            assert!(at_work <= 1, "{at_work} running");
            if !is_late && of_ann(is_done) >= 1 {
                is_late = true;
                let bob = Some(("bob".to_owned(), 1));
                place.bring_of(driver.engine(), place.flow("c", &waits, 4), bob);
            }
            was_beside |= at_work == 1 && place.count("c", is_start) > place.count("c", is_done);
            alone += u32::from(places && at_work == 0 && place.count("c", is_start) > 0);
            if was_beside || of_ann(is_done) == 8 || alone > 20 {
                fs::write(&gate, "").unwrap();
            }
            ends.len() < 3
        });
        assert!(ends.iter().all(|(_, end)| *end == RunEnd::Done) && (was_beside || places));
        assert_eq!(["a", "b", "c"].map(|name| place.made(name).len()), [4; 3]);
    }
}

#[test]
fn a_cancelled_flow_is_stopped_and_the_others_continue() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path());
    let mut resident = place.resident();
    let a = place.bring(resident.as_mut(), place.flow("a", "sleep 100", 3));
    let (mut is_cancelled, mut ends) = (false, Vec::new());
    drive(resident.as_mut(), &mut Fifo::new(ShareUnit::Flow), |driver| {
        ends.extend(judged(ended_runs(driver.engine().events())));
        if !is_cancelled && place.count("a", is_start) == 2 {
            driver.engine().order_flow(a, "a", FlowOrder::Cancel);
            place.bring(driver.engine(), place.flow("b", "cat", 3));
            is_cancelled = true;
        }
        ends.len() < 2
    });
    assert!(ends.contains(&(a, RunEnd::Failed)), "{ends:?}");
    assert_eq!(place.count("a", |what| matches!(what, What::Killed(_))), 2);
    assert_eq!((place.count("a", is_start), place.made("b").len()), (2, 3));
    assert!(!place.output("a").join("_SUCCESS").exists());
}

#[test]
fn a_flow_comes_with_the_time_at_which_it_comes_again_as_long_as_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path());
    let mut resident = place.resident();
    let gate = dir.path().join("go");
    let waits = format!("while ! test -e {}; do sleep 0.05; done; cat", gate.display());
    let again = FlowOverrides { next: Some(3600.0), ..FlowOverrides::default() };
    let flow = place.flow("a", &waits, 3);
    let a = place.bring_as(resident.as_mut(), flow, [("a".to_owned(), again)].into());
    let (mut seen, mut is_changed) = (Vec::new(), false);
    drive(resident.as_mut(), &mut Fifo::new(ShareUnit::Flow), |driver| {
        let next = driver.view().instance.flows().iter_enumerated().map(|(_, flow)| flow.next_release).next();
        if let Some(next) = next.filter(|next| seen.last() != Some(next)) {
            seen.push(next);
        }
        if !is_changed && place.count("a", is_start) == 2 {
            driver.engine().order_flow(a, "a", FlowOrder::Override(FlowOverrides::default()));
            is_changed = true;
        }
        if seen.len() == 2 {
            fs::write(&gate, "").unwrap();
        }
        judged(ended_runs(driver.engine().events())).is_empty()
    });
    // In the time of the service, which began a little before the run.
    let [Some(next), None] = seen[..] else { panic!("{seen:?}") };
    assert!((3600.0..3660.0).contains(&next.seconds()), "{next:?}");
    assert_eq!((place.count("a", is_start), place.made("a").len()), (3, 3), "what ran went on");
}

#[test]
fn another_deadline_changes_who_is_next() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path());
    let mut resident = place.resident();
    let gate = dir.path().join("go");
    let waits = format!("while ! test -e {}; do sleep 0.05; done; cat", gate.display());
    let due = |name: &str, command: &str, deadline| FlowDraft {
        deadline: Some(deadline),
        ..place.flow(name, command, 4)
    };
    place.bring(resident.as_mut(), due("a", &waits, 10.0));
    place.bring(resident.as_mut(), due("b", "cat", 2000.0));
    let c = place.bring(resident.as_mut(), due("c", "cat", 3000.0));
    let (mut is_changed, mut ends) = (false, Vec::new());
    let mut policy = Edf::new(Dates::default());
    drive(resident.as_mut(), &mut policy, |driver| {
        ends.extend(judged(ended_runs(driver.engine().events())));
        if !is_changed && place.count("a", is_start) == 2 {
            // Before all others, before its first task.
            let overrides = FlowOverrides { deadline: Some(5.0), ..FlowOverrides::default() };
            driver.engine().order_flow(c, "c", FlowOrder::Override(overrides));
            fs::write(&gate, "").unwrap();
            is_changed = true;
        }
        ends.len() < 3
    });
    let order: Vec<String> =
        place.events().into_iter().filter(|(_, what)| is_start(*what)).map(|(name, _)| name).collect();
    let first = |name: &str| order.iter().position(|of| of == name).unwrap();
    assert!(first("c") < first("b"), "{order:?}");
    assert!(order.iter().filter(|name| *name == "c").count() == 4);
}

#[test]
fn a_stopped_service_is_resumed_and_no_work_runs_twice() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path());
    for stop_after in [1, 3, 6] {
        let mut resident = place.resident();
        for name in ["a", "b"] {
            place.bring(resident.as_mut(), place.flow(name, "cat; sleep 0.02", 6));
        }
        drive(resident.as_mut(), &mut Fifo::new(ShareUnit::Job), |_| {
            place.events().iter().filter(|(_, what)| is_done(*what)).count() < stop_after
        });
        let left = resident.stop();
        assert!(left.iter().all(|ended| matches!(ended.how, Ok(RunEnd::Interrupted | RunEnd::Done))));
        drop(left);
        drop(resident);
    }
    let mut resident = place.resident();
    let mut ends = Vec::new();
    for name in ["a", "b"] {
        place.bring(resident.as_mut(), place.flow(name, "cat; sleep 0.02", 6));
    }
    drive(resident.as_mut(), &mut Fifo::new(ShareUnit::Job), |driver| {
        ends.extend(judged(ended_runs(driver.engine().events())));
        ends.len() < 2
    });
    for name in ["a", "b"] {
        assert_eq!((place.count(name, is_done), place.made(name).len()), (6, 6));
    }
}
