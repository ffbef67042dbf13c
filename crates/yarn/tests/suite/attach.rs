//! `attach` on a mock cluster with jobs of other users. Everything happens between two polls: a step changes
//! the cluster after each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slackline_algo::baseline::edf::Edf;
use slackline_executor::spec::job_cost::JobCost;
use slackline_model::params::Settings;
use slackline_model::{History, Time};
use slackline_policy::{Config, Learning};
use slackline_yarn::attach::{
    Application, AttachEvent, AttachOptions, AttachSummary, Cluster, PARAMS, Stage, Status, Watcher,
};
use slackline_yarn::mock::{Mock, MockApp, Mood, State};
use slackline_yarn::{AppId, AppState};

/// A mock cluster with the plug-in: four hosts of two slots.
struct TestCluster {
    mock: Mock,
    /// Where the table is.
    directory: tempfile::TempDir,
}

impl TestCluster {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mock = Mock::start().unwrap();
        let site = Self { mock, directory };
        let table = site.table().display().to_string();
        site.mock.with(|state| {
            for (name, value) in [
                ("slackline.table", table.as_str()),
                ("yarn.cluster.max-application-priority", "1000000"),
                ("yarn.scheduler.minimum-allocation-mb", "512"),
            ] {
                state.properties.insert(name.to_owned(), value.to_owned());
            }
        });
        site
    }

    fn table(&self) -> PathBuf {
        self.directory.path().join("table")
    }

    /// Submits an application that has its ApplicationMaster, or waits for it.
    fn submit(&self, tags: &str, (maps, reduces): (u32, u32), runs: bool) -> AppId {
        self.mock.with(|state| {
            let app = state.submit("root.jobs", maps, reduces);
            tags.clone_into(&mut app.tags);
            if runs {
                app.start();
            }
            app.id
        })
    }

    fn ask(&self, wish: AttachOptions) -> Result<Cluster, String> {
        self.ask_with(wish, "none")
    }

    /// The same, with this option for the JobHistory server.
    fn ask_with(&self, wish: AttachOptions, history: &str) -> Result<Cluster, String> {
        let settings = Settings::parse(PARAMS, [("memory", "512MiB"), ("job-history", history)]).unwrap();
        Cluster::ask(&self.mock.address().to_string(), &settings, wish).map_err(|e| e.to_string())
    }

    fn wish() -> AttachOptions {
        let quick = Duration::from_millis(1);
        AttachOptions { cycle: quick, every: Duration::ZERO, ..AttachOptions::new(vec!["jobs".to_owned()]) }
    }

    /// Drives with EDF, one step after each look: until a step says that it is enough.
    fn drive(
        &self,
        wish: AttachOptions,
        step: impl FnMut(&mut State, &Seen) -> bool,
    ) -> (Seen, AttachSummary) {
        let cluster = self.ask(wish).unwrap();
        let learning = Learning::new(cluster.empty().cluster(), &History::new()).guessing();
        let config = Config { attempts_max: u16::MAX, learning: Some(learning), ..Config::plain() }.audited();
        let stop = Arc::new(AtomicBool::new(false));
        let mut steps = Steps { site: self, step, stop: stop.clone(), seen: Seen::default() };
        let closed = cluster.drive(&mut Edf::default(), config, stop, &mut steps).unwrap();
        (steps.seen, closed)
    }
}

/// The events so far.
#[derive(Default)]
struct Seen {
    looks: u32,
    status: Status,
    happened: Vec<String>,
    /// The rows of the table by application.
    rows: BTreeMap<String, String>,
}

impl Seen {
    fn app(&self, id: AppId) -> Option<&Application> {
        self.status.applications.iter().find(|one| one.id == id)
    }

    /// Which maps and reduces an application may run, by the table.
    fn row(&self, id: AppId) -> &str {
        self.rows.get(&id.to_string()).map_or("none", String::as_str)
    }
}

struct Steps<'a, F> {
    site: &'a TestCluster,
    step: F,
    stop: Arc<AtomicBool>,
    seen: Seen,
}

impl<F: FnMut(&mut State, &Seen) -> bool> Watcher for Steps<'_, F> {
    fn happened(&mut self, _: Time, what: &AttachEvent) {
        let text = match what {
            AttachEvent::Seen(app) => format!("seen {}", app.number),
            AttachEvent::Released(app) => format!("released {}", app.number),
            AttachEvent::Arrived { app, flow, tasks, .. } => {
                format!("arrived {} {flow} {tasks:?}", app.number)
            }
            AttachEvent::Done(app) => format!("done {}", app.number),
            AttachEvent::Failed(app, why) => format!("failed {} {why}", app.number),
            other => format!("{other:?}"),
        };
        self.seen.happened.push(text);
    }

    fn status(&mut self, status: &Status) {
        self.seen.looks += 1;
        self.seen.status = status.clone();
        let table = std::fs::read_to_string(self.site.table()).unwrap_or_default();
        let row = |line: &str| line.split_once(' ').map(|(app, row)| (app.to_owned(), row.to_owned()));
        self.seen.rows =
            table.lines().filter(|line| line.starts_with("application_")).filter_map(row).collect();
        assert!(self.seen.looks < 500, "it does not end: {:?}", self.seen.happened);
        if self.site.mock.with(|state| (self.step)(state, &self.seen)) {
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}

fn app(state: &mut State, id: AppId) -> &mut MockApp {
    state.apps.get_mut(&id).unwrap()
}

#[test]
fn the_one_with_the_nearest_deadline_gets_the_slots() {
    let site = TestCluster::new();
    let late = site.submit("slackline.deadline=+900", (8, 0), true);
    let soon = site.submit("slackline.deadline=+60,slackline.flow=soon", (5, 1), true);
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| seen.looks == 10);
    assert!(seen.happened.contains(&"arrived 1 job *#1 [8, 0]".to_owned()), "{:?}", seen.happened);
    assert!(seen.happened.contains(&"arrived 2 soon#2 [5, 1]".to_owned()), "{:?}", seen.happened);
    // Two of the eight slots are held by ApplicationMasters. What may come beyond the tasks that were started
    // goes to the first in the order that has any left.
    assert_eq!(seen.status.taken, 2);
    assert_eq!((seen.row(soon), seen.row(late)), ("0 5 0 * *", "0 3 0 * *"));
    let priority = |id| site.mock.with(|state| app(state, id).priority);
    // At the end all have the priorities back that they had.
    assert_eq!((priority(soon), priority(late)), (0, 0));
    assert!(seen.app(soon).unwrap().priority > seen.app(late).unwrap().priority);
    assert!(!site.table().exists(), "the table goes with its writer");
}

#[test]
fn applications_of_other_queues_are_counted_and_not_changed() {
    let site = TestCluster::new();
    let (spark, other, own) = site.mock.with(|state| {
        let spark = state.submit("root.jobs", 4, 0);
        spark.kind = "SPARK".to_owned();
        spark.start();
        (0..2).for_each(|_| assert!(spark.grant("127.0.0.2", 5)));
        let spark = spark.id;
        let other = state.submit("root.default", 4, 0);
        other.start();
        let other = other.id;
        let own = state.submit("root.jobs", 9, 0);
        own.start();
        (spark, other, own.id)
    });
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| seen.looks == 10);
    assert_eq!((seen.row(spark), seen.row(other)), ("none", "none"));
    // Four containers of others and one ApplicationMaster leave three slots, and one may come ahead of a
    // task's end.
    assert_eq!((seen.status.slots, seen.status.taken), (8, 5));
    assert_eq!(seen.row(own), "0 5 0 * *");
    let touched = |requests: &[String]| {
        let put = requests.iter().filter(|request| request.starts_with("PUT"));
        put.filter(|request| !request.contains(&own.to_string())).count()
    };
    assert_eq!(site.mock.with(|state| touched(&state.requests)), 0);
}

#[test]
fn tasks_end_with_the_counts_of_the_am_and_all_of_them_with_the_application() {
    let site = TestCluster::new();
    let id = site.submit("slackline.flow=etl", (4, 1), true);
    let second = site.submit("slackline.flow=etl", (1, 0), false);
    let (mut most, mut failed) = (0, false);
    let (seen, closed) = site.drive(TestCluster::wish(), |state, seen| {
        let one = app(state, id);
        most = most.max(seen.app(id).and_then(|one| one.phases[0]).map_or(0, |phase| phase.done));
        match seen.looks {
            5 => (0..4).for_each(|_| assert!(one.grant("127.0.0.3", 5))),
            // The first fails, and is done again.
            10 if !failed => failed = one.end_one("FAILED", 6),
            30 => assert!(one.grant("127.0.0.4", 7)),
            35 => (0..4).for_each(|_| assert!(one.end_one("SUCCEEDED", 8))),
            50 => assert!(one.grant("127.0.0.4", 9)),
            // The ApplicationMaster ends before anybody has asked it of the last task.
            60 => {
                assert!(one.end_one("SUCCEEDED", 10));
                one.end(AppState::Finished, 11);
                one.release();
            }
            70 => app(state, second).end(AppState::Killed, 12),
            _ => {}
        }
        seen.looks == 90
    });
    assert!(failed);
    assert_eq!(most, 4);
    assert!(seen.happened.contains(&"done 1".to_owned()), "{:?}", seen.happened);
    assert!(seen.happened.contains(&"failed 2 killed".to_owned()), "{:?}", seen.happened);
    assert!(seen.status.applications.is_empty());
    assert_eq!((seen.row(id), seen.status.taken), ("none", 0));
    let names: Vec<(&str, u64, u64)> =
        closed.learned.iter().map(|(name, cost)| (name.flow.as_str(), cost.maps, cost.reduces)).collect();
    assert_eq!(names, [("etl", 4, 1)]);
}

#[test]
fn a_job_that_is_half_done_arrives_with_the_rest_of_it() {
    let site = TestCluster::new();
    let id = site.submit("", (6, 1), true);
    site.mock.with(|state| {
        let one = app(state, id);
        for _ in 0..3 {
            assert!(one.grant("127.0.0.3", 5) && one.end_one("SUCCEEDED", 6));
        }
        one.properties.insert("mapreduce.workflow.name".to_owned(), "night 7".to_owned());
        one.properties.insert("mapreduce.workflow.node.name".to_owned(), "sum".to_owned());
    });
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| seen.looks == 10);
    assert!(seen.happened.contains(&"arrived 1 night *#1 [3, 1]".to_owned()), "{:?}", seen.happened);
    let one = seen.app(id).unwrap();
    assert_eq!((one.job.as_str(), one.phases[0].unwrap().total, one.phases[0].unwrap().done), ("sum", 6, 3));
    let conf = |requests: &[String]| requests.iter().filter(|request| request.contains("/conf")).count();
    // Four properties of the ResourceManager, and the job's own once.
    assert_eq!(site.mock.with(|state| conf(&state.requests)), 5);
}

#[test]
fn ams_are_given_by_deadline_to_a_part_of_the_slots() {
    let site = TestCluster::new();
    let ids: Vec<AppId> = (0..6)
        .map(|k| {
            let deadline = [900, 800, 700, 600, 500, 400][k];
            site.submit(&format!("slackline.deadline=+{deadline}"), (2, 0), false)
        })
        .collect();
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| seen.looks == 5);
    let stage = |id: &AppId| seen.app(*id).unwrap().stage;
    let stages: Vec<Stage> = ids.iter().map(stage).collect();
    let (held, starting) = (Stage::Held, Stage::Starting);
    assert_eq!(stages, [held, held, starting, starting, starting, starting]);
    assert_eq!((seen.row(ids[0]), seen.row(ids[5])), ("1 0 0 * *", "0 0 0 * *"));
    // Without an AM the number of tasks is unknown, and nothing arrives. A slot is kept for each that may
    // come.
    assert!(!seen.happened.iter().any(|line| line.starts_with("arrived")), "{:?}", seen.happened);
    assert_eq!(seen.status.taken, 4);
    let order: Vec<u64> = ids[2..].iter().map(|id| seen.app(*id).unwrap().priority).collect();
    assert!(order.is_sorted_by(|a, b| a < b), "the nearest deadline is first: {order:?}");
}

#[test]
fn a_failed_job_has_its_diagnostics() {
    let site = TestCluster::new();
    let id = site.submit("", (2, 0), true);
    let (seen, _) = site.drive(TestCluster::wish(), |state, seen| {
        if seen.looks == 5 {
            let one = app(state, id);
            "Task failed task_1_m_000000\n".clone_into(&mut one.diagnostics);
            one.end(AppState::Failed, 6);
            // Nothing is left of it at the next look.
            one.release();
        }
        seen.looks == 20
    });
    let said = "failed 1 Task failed task_1_m_000000".to_owned();
    assert!(seen.happened.contains(&said), "{:?}", seen.happened);
}

#[test]
fn a_dry_run_writes_nothing() {
    let site = TestCluster::new();
    let late = site.submit("slackline.deadline=+900", (8, 0), true);
    let soon = site.submit("slackline.deadline=+60", (8, 0), true);
    let (seen, _) =
        site.drive(AttachOptions { dry_run: true, ..TestCluster::wish() }, |_, seen| seen.looks == 10);
    let cap = |id| seen.app(id).unwrap().phases[0].unwrap().cap;
    assert!(cap(soon) > cap(late) && seen.app(soon).unwrap().priority > seen.app(late).unwrap().priority);
    assert!(seen.rows.is_empty() && !site.table().exists());
    assert!(!site.mock.with(|state| state.requests.iter().any(|request| request.starts_with("PUT"))));
}

#[test]
fn a_failed_write_of_the_table_gives_one_warning_and_is_retried() {
    let site = TestCluster::new();
    let id = site.submit("", (8, 0), true);
    // A directory in its place.
    std::fs::create_dir_all(site.table().join("x")).unwrap();
    let table = site.table();
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| {
        if seen.looks == 20 {
            std::fs::remove_dir_all(&table).unwrap();
        }
        seen.looks == 40
    });
    assert_ne!(seen.row(id), "none", "it is written at last");
    let warned = seen.happened.iter().filter(|line| line.starts_with("Warned")).count();
    assert_eq!(warned, 1, "{:?}", seen.happened);
    assert!(!seen.happened.iter().any(|line| line.starts_with("Troubled")), "{:?}", seen.happened);
}

#[test]
fn priorities_that_a_cluster_does_not_have_are_asked_for_once() {
    let site = TestCluster::new();
    site.mock.with(|state| {
        state.priority_max = 0;
        state.properties.insert("yarn.cluster.max-application-priority".to_owned(), "0".to_owned());
    });
    site.submit("slackline.deadline=+900", (8, 0), true);
    site.submit("slackline.deadline=+60", (8, 0), true);
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| seen.looks == 20);
    let warned = seen.happened.iter().filter(|line| line.contains("max-application-priority")).count();
    assert_eq!(warned, 1, "{:?}", seen.happened);
    let puts = |requests: &[String]| requests.iter().filter(|request| request.starts_with("PUT")).count();
    assert_eq!(site.mock.with(|state| puts(&state.requests)), 1);
}

/// What is answered to priorities of an application: that is its part of the address.
fn answers(site: &TestCluster, address: &'static str, status: u16, body: &str) {
    let mood = Mood::Says(status, "application/json", body.to_owned());
    site.mock.with(|state| state.moods.push((address, usize::MAX, mood)));
}

#[test]
fn an_application_that_has_just_ended_does_not_keep_the_others_from_their_order() {
    let site = TestCluster::new();
    let last = site.submit("slackline.deadline=+900", (8, 0), true);
    site.submit("slackline.deadline=+60", (8, 0), true);
    let middle = site.submit("slackline.deadline=+300", (8, 0), true);
    // The list does not show yet that the first in the order is about to end: it has the priority that it
    // had.
    answers(&site, "_0002/priority", 200, r#"{ "priority": 0 }"#);
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| seen.looks == 20);
    assert!(!seen.happened.iter().any(|line| line.starts_with("Warned")), "{:?}", seen.happened);
    assert!(seen.app(middle).unwrap().priority > seen.app(last).unwrap().priority);
    let puts = site.mock.with(|state| {
        state
            .requests
            .iter()
            .filter(|request| request.starts_with("PUT") && request.contains("_0002"))
            .count()
    });
    assert_eq!(puts, 1, "it is not asked at every look");
}

#[test]
fn applications_that_refuse_a_priority_do_not_keep_the_others_from_theirs() {
    let site = TestCluster::new();
    // More than are changed at a look.
    let refusing: Vec<AppId> = (0..6).map(|_| site.submit("slackline.deadline=+60", (8, 0), true)).collect();
    let numbers = ["_0001/pri", "_0002/pri", "_0003/pri", "_0004/pri", "_0005/pri", "_0006/pri"];
    for number in numbers {
        let refusal = r#"{ "RemoteException": { "exception": "X", "message": "not for you" } }"#;
        answers(&site, number, 403, refusal);
    }
    let middle = site.submit("slackline.deadline=+300", (8, 0), true);
    let last = site.submit("slackline.deadline=+900", (8, 0), true);
    let (seen, _) = site.drive(TestCluster::wish(), |_, seen| seen.looks == 20);
    assert!(seen.app(middle).unwrap().priority > seen.app(last).unwrap().priority);
    let warned: Vec<_> = seen.happened.iter().filter(|line| line.starts_with("Warned")).collect();
    let [warned] = warned.as_slice() else { panic!("found {warned:?}, expected one") };
    assert!(warned.contains("keeps its priority") && warned.contains("not for you"), "{warned}");
    assert!(refusing.iter().any(|app| warned.contains(&app.to_string())), "{warned}");
}

#[test]
fn an_application_that_is_not_accepted_yet_is_given_no_priority() {
    let site = TestCluster::new();
    let [soon, late] =
        ["slackline.deadline=+60", "slackline.deadline=+900"].map(|tags| site.submit(tags, (8, 0), false));
    site.mock.with(|state| app(state, soon).state = AppState::Submitted);
    let (seen, _) = site.drive(TestCluster::wish(), |state, seen| {
        if seen.looks == 10 {
            assert!(!state.requests.iter().any(|request| request.starts_with("PUT")), "{:?}", state.requests);
            app(state, soon).state = AppState::Accepted;
        }
        seen.looks == 20
    });
    assert!(!seen.happened.iter().any(|line| line.starts_with("Warned")), "{:?}", seen.happened);
    assert!(seen.app(soon).unwrap().priority > seen.app(late).unwrap().priority);
}

#[test]
fn applications_that_do_not_get_their_priorities_back_are_named() {
    let failed = Mood::Says(500, "text/html", "<html>".to_owned());
    // One fails, and the others get theirs; or no answer comes any more, and no other is asked.
    for (address, mood, kept) in [("_0003/pri", failed, vec![3]), ("/priority", Mood::HangsUp, vec![2, 3, 4])]
    {
        let site = TestCluster::new();
        let ids = [900, 400, 300, 200]
            .map(|deadline| site.submit(&format!("slackline.deadline=+{deadline}"), (8, 0), true));
        let mut before = 0;
        let (seen, closed) = site.drive(TestCluster::wish(), |state, seen| {
            if seen.looks == 10 {
                before = state.requests.len();
                state.moods.push((address, usize::MAX, mood.clone()));
            }
            seen.looks == 10
        });
        let raised: Vec<u32> = closed.raised.keys().map(|app| app.number).collect();
        assert_eq!(raised, kept);
        let still: Vec<u32> = site.mock.with(|state| {
            state.apps.values().filter(|app| app.priority > 0).map(|app| app.id.number).collect()
        });
        assert_eq!(still, kept);
        let warned: Vec<_> = seen.happened.iter().filter(|line| line.starts_with("Warned")).collect();
        let [warned] = warned.as_slice() else { panic!("found {warned:?}, expected one") };
        let named = ids.iter().filter(|app| warned.contains(&format!("{app} (it had 0)"))).count();
        assert_eq!(named, kept.len(), "{warned}");
        assert!(warned.contains("yarn application -appId APPLICATION -updatePriority PRIORITY"), "{warned}");
        let asked =
            site.mock.with(|state| state.requests[before..].iter().filter(|r| r.starts_with("PUT")).count());
        assert_eq!(asked, if kept.len() == 1 { 3 } else { 1 });
    }
}

#[test]
fn invalid_options_are_refused() {
    let site = TestCluster::new();
    let queue = site.ask(AttachOptions::new(vec!["job".to_owned()])).unwrap_err();
    let expected = "expected one of the queues that accept jobs: root.default, root.jobs";
    assert_eq!(queue, format!(r#"found queue="job", {expected}"#));
    assert_eq!(
        site.ask(AttachOptions::new(vec!["root".to_owned()])).unwrap().queues(),
        ["root.default", "root.jobs"]
    );
    site.mock.with(|state| state.properties.clear());
    let missing = site.ask(TestCluster::wish()).unwrap_err();
    assert!(missing.contains("expected the plug-in to be set up (docs/hadoop.md)"), "{missing}");
    let dry = site.ask(AttachOptions { dry_run: true, ..TestCluster::wish() }).unwrap();
    assert_eq!(dry.remarks().len(), 2);
}

#[test]
fn a_name_that_several_queues_have_is_refused() {
    let site = TestCluster::new();
    let paths = ["root.a.jobs", "root.b.jobs", "root.b.etl", "root.x.b"];
    site.mock.with(|state| state.queues = paths.map(str::to_owned).to_vec());
    let queues = |name: &str| {
        site.ask(AttachOptions::new(vec![name.to_owned()])).map(|cluster| cluster.queues().to_vec())
    };
    let error = queues("jobs").unwrap_err();
    assert!(error.ends_with(": root.a.jobs, root.b.jobs"), "{error}");
    // The name of one, and of one that has others below it.
    let error = queues("b").unwrap_err();
    assert!(error.ends_with(": root.x.b, root.b.jobs, root.b.etl"), "{error}");
    for (name, expected) in [
        ("etl", &["root.b.etl"][..]),
        ("root.a.jobs", &["root.a.jobs"]),
        ("root.b", &["root.b.etl", "root.b.jobs"]),
    ] {
        assert_eq!(queues(name).unwrap(), expected, "{name}");
    }
}

#[test]
fn queues_that_follow_no_priorities_are_refused() {
    let site = TestCluster::new();
    site.mock.with(|state| state.ordering = "fair");
    let fair = site.ask(TestCluster::wish()).unwrap_err();
    assert!(fair.contains("\"fair\" in the queue root.jobs, expected \"fifo\""), "{fair}");
    assert!(fair.contains("yarn.scheduler.capacity.root.jobs.ordering-policy"), "{fair}");
    let dry = site.ask(AttachOptions { dry_run: true, ..TestCluster::wish() }).unwrap();
    assert_eq!(dry.remarks(), [fair]);
    crate::cluster_checks::has_the_fair_scheduler(&site.mock);
    let other = site.ask(TestCluster::wish()).unwrap_err();
    assert!(other.contains("found the scheduler \"fairScheduler\""), "{other}");
}

#[test]
fn durations_of_earlier_jobs_come_from_the_history() {
    let site = TestCluster::new();
    // Of four of a name the newest three count; one of another queue, one that failed and one of long ago do
    // not.
    let today = 4_102_444_800_000;
    for n in 0..4 {
        let id = site.submit("", (6, 2), true);
        site.mock.with(|state| {
            let app = app(state, id);
            app.name = format!("load 2026-03-0{}", n + 1);
            app.properties.insert("mapreduce.job.tags".to_owned(), "slackline.flow=etl".to_owned());
            app.submitted_ms = today;
            let now = today;
            while app.grant("127.0.0.2", now) {
                app.end_one("SUCCEEDED", now + 1000 * (n + 1));
            }
            app.end(AppState::Finished, now + 10_000 * (n + 1));
        });
    }
    let other = site.submit("", (6, 0), true);
    let failed = site.submit("", (6, 0), true);
    let old = site.submit("", (6, 0), true);
    site.mock.with(|state| {
        for (id, ended) in
            [(other, AppState::Finished), (failed, AppState::Failed), (old, AppState::Finished)]
        {
            let app = app(state, id);
            app.submitted_ms = if id == old { 1_000_000 } else { today };
            app.grant("127.0.0.2", app.submitted_ms);
            app.end_one("SUCCEEDED", app.submitted_ms + 1000);
            app.end(ended, app.submitted_ms + 2000);
        }
        app(state, other).queue = "root.default".to_owned();
    });
    let cluster = site.ask_with(TestCluster::wish(), &site.mock.address().to_string()).unwrap();
    assert_eq!(cluster.remarks(), [""; 0]);
    let past: Vec<_> = cluster
        .past()
        .iter()
        .map(|(name, cost)| (name.flow.as_str(), name.job.as_str(), cost.clone()))
        .collect();
    // A reduce takes a second to fetch and half a second to merge before its mean.
    let cost = JobCost {
        maps: 18,
        map_micros: 6 * (2 + 3 + 4) * 1_000_000,
        reduces: 6,
        reduce_micros: 2 * (2 + 3 + 4) * 1_000_000 + 6 * 1_500_000,
        ..JobCost::default()
    };
    assert_eq!(past, [("etl", "load *", cost)]);
}

#[test]
fn a_history_that_does_not_answer_gives_a_warning() {
    let site = TestCluster::new();
    let cluster = site.ask_with(TestCluster::wish(), "127.0.0.1:1").unwrap();
    assert_eq!(cluster.past().len(), 0);
    assert!(
        cluster.remarks()[0].contains("durations of earlier jobs are not available: "),
        "{:?}",
        cluster.remarks()
    );
    assert!(cluster.remarks()[0].contains("--job-history HOST:PORT"), "{:?}", cluster.remarks());
}

#[test]
fn ams_that_answer_slowly_do_not_keep_the_table_from_being_written() {
    let site = TestCluster::new();
    let apps: Vec<AppId> = (0..6).map(|_| site.submit("", (8, 0), true)).collect();
    let slow = Mood::Slow(Duration::from_millis(400));
    site.mock.with(|state| state.moods.push(("/proxy/", usize::MAX, slow)));
    site.drive(TestCluster::wish(), |_, seen| seen.looks == 4);
    let requests = site.mock.with(|state| state.requests.clone());
    let is_asked = |app: &AppId| requests.iter().any(|r| r.contains(&format!("/proxy/{app}/ws")));
    assert!(apps.iter().all(is_asked), "{requests:?}");
    // Those of a second, and the last.
    let looks = requests.split(|request| request.contains("cluster/apps?"));
    let most = looks.map(|look| look.iter().filter(|r| r.contains("/jobs/")).count()).max();
    assert!(most.is_some_and(|most| (1..=6).contains(&most)), "{most:?}");
}
