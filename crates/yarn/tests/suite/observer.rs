//! Cycles of the observer on a mock cluster.

use std::time::Duration;

use slackline_yarn::cluster::observer::PollIntervals;
use slackline_yarn::mock::{Mock, MockApp, Mood};
use slackline_yarn::rest::http::HttpError;
use slackline_yarn::{AppId, AppState, Change, FinalStatus, Observer, Purpose, ResourceManager};

use crate::{manager, next};

/// An observer with its cluster, whose time is in seconds.
struct Watch {
    mock: Mock,
    manager: ResourceManager,
    observer: Observer,
    now: u64,
}

impl Watch {
    fn new() -> Self {
        let mock = Mock::start().unwrap();
        let manager = manager(&mock);
        Self { mock, manager, observer: Observer::new(PollIntervals::default()), now: 0 }
    }

    fn try_cycle(&mut self) -> Result<Vec<String>, HttpError> {
        self.now += 1;
        let changes = self
            .observer
            .cycle(&self.manager, Duration::from_secs(self.now), |app| app.queue == "root.jobs")?;
        Ok(changes.iter().map(described).collect())
    }

    fn cycle(&mut self) -> Vec<String> {
        self.try_cycle().unwrap()
    }

    fn submit(&self, maps: u32, reduces: u32) -> AppId {
        self.mock.with(|state| state.submit("root.jobs", maps, reduces).id)
    }

    fn app<T>(&self, id: AppId, change: impl FnOnce(&mut MockApp) -> T) -> T {
        self.mock.with(|state| change(state.apps.get_mut(&id).unwrap()))
    }

    fn requests(&self) -> Vec<String> {
        self.mock.with(|state| std::mem::take(&mut state.requests))
    }

    fn live(&self, id: AppId, purpose: Purpose) -> usize {
        self.observer.snapshot().watched[&id].live(purpose)
    }

    /// Another ResourceManager process, which knows applications but not yet their containers.
    fn restart(&self) {
        self.mock.with(|state| state.started_on += 1);
        next(&self.mock, "/apps?", 3, Mood::HangsUp);
    }
}

fn described(change: &Change) -> String {
    match change {
        Change::Restarted => "restarted".to_owned(),
        Change::Appeared(app) => format!("{} appeared", app.number),
        Change::State { app, from, to } => format!("{} {from:?} -> {to:?}", app.number),
        Change::Attempt(attempt) => format!("{} attempt {}", attempt.app.number, attempt.number),
        Change::Started(c) => {
            format!("{} +{:?} {} on {}", c.id.attempt.app.number, c.purpose, c.id.number, c.host)
        }
        Change::Ended(c) => format!("{} -{:?} {}", c.id.attempt.app.number, c.purpose, c.id.number),
        Change::AppEnded { app, state, status, finished_ms } => {
            format!("{} over: {state:?} {status:?} {}", app.number, finished_ms.is_some())
        }
        Change::Released(app) => format!("{} released", app.number),
        Change::Gone(app) => format!("{} gone", app.number),
    }
}

#[test]
fn the_life_of_a_job() {
    let mut watch = Watch::new();
    assert!(watch.cycle().is_empty());
    let id = watch.submit(2, 1);
    assert_eq!(watch.cycle(), ["1 appeared"]);
    assert_eq!(watch.observer.snapshot().watched[&id].app.pending.ams, 1);
    watch.app(id, |app| {
        app.start();
        app.grant("127.0.0.3", 1)
    });
    let started = [
        "1 Accepted -> Running",
        "1 attempt 1",
        "1 +ApplicationMaster 1 on 127.0.0.2",
        "1 +Map 2 on 127.0.0.3",
    ];
    assert_eq!(watch.cycle(), started);
    assert_eq!(watch.observer.snapshot().watched[&id].app.pending.maps, 1);
    watch.app(id, |app| {
        app.end_one("SUCCEEDED", 2);
        app.grant("127.0.0.4", 2)
    });
    assert_eq!(watch.cycle(), ["1 -Map 2", "1 +Map 3 on 127.0.0.4"]);
    watch.app(id, |app| {
        app.end_one("SUCCEEDED", 3);
        app.grant("127.0.0.2", 3)
    });
    assert_eq!(watch.cycle(), ["1 -Map 3", "1 +Reduce 4 on 127.0.0.2"]);
    watch.app(id, |app| {
        app.end_one("SUCCEEDED", 4);
        app.end(AppState::Finished, 4);
    });
    assert_eq!(watch.cycle(), ["1 Running -> Finished", "1 over: Finished Succeeded true", "1 -Reduce 4"]);
    assert_eq!(watch.live(id, Purpose::ApplicationMaster), 1, "its ApplicationMaster still has a slot");
    assert!(watch.cycle().is_empty());
    watch.app(id, MockApp::release);
    assert_eq!(watch.cycle(), ["1 -ApplicationMaster 1", "1 released"]);
    assert!(watch.observer.snapshot().watched.is_empty());
    assert!(watch.cycle().is_empty());
}

#[test]
fn a_cycle_asks_once_for_all_and_for_containers_only_where_something_may_have_changed() {
    let mut watch = Watch::new();
    let ids: Vec<AppId> = (0..3).map(|_| watch.submit(4, 0)).collect();
    let foreign = watch.mock.with(|state| state.submit("root.other", 4, 0).id);
    for id in ids.iter().chain([&foreign]) {
        watch.app(*id, MockApp::start);
    }
    watch.app(foreign, |app| app.grant("127.0.0.5", 1));
    watch.cycle();
    assert_eq!(watch.requests().len(), 2 + 3, "the cluster, all applications, containers of three");
    let others = watch.observer.snapshot().others;
    assert_eq!((others.apps, others.containers, others.memory_mb, others.cores), (1, 2, 1024, 2));
    watch.cycle();
    assert_eq!(watch.requests().len(), 1);
    watch.app(ids[1], |app| app.grant("127.0.0.5", 1));
    assert_eq!(watch.cycle(), ["2 +Map 2 on 127.0.0.5"]);
    assert_eq!(watch.requests().len(), 2);
    // Unchanged applications too: after some cycles their containers are read again.
    let reads: usize = (0..22).map(|_| (watch.cycle(), watch.requests().len() - 1).1).sum();
    assert_eq!(reads, 2 * ids.len());
}

#[test]
fn a_cycle_without_time_for_all_continues_in_the_next() {
    let mut watch = Watch::new();
    // One application has time, and no other.
    watch.observer = Observer::new(PollIntervals { lasts: Duration::ZERO, ..PollIntervals::default() });
    let ids: Vec<AppId> = (0..3).map(|_| watch.submit(4, 0)).collect();
    for id in &ids {
        watch.app(*id, |app| {
            app.start();
            app.grant("127.0.0.2", 1)
        });
    }
    let first = watch.cycle();
    let seen = ["1 appeared", "1 attempt 1", "1 +ApplicationMaster 1 on 127.0.0.2", "1 +Map 2 on 127.0.0.2"];
    assert_eq!(first, [&seen[..], &["2 appeared", "3 appeared"]].concat(), "all are seen, and one is read");
    let read = |n| {
        [
            format!("{n} attempt 1"),
            format!("{n} +ApplicationMaster 1 on 127.0.0.2"),
            format!("{n} +Map 2 on 127.0.0.2"),
        ]
    };
    assert_eq!(watch.cycle(), read(2));
    // Another change of the first does not come before the turn of the third.
    watch.app(ids[0], |app| app.grant("127.0.0.3", 1));
    assert_eq!(watch.cycle(), read(3));
    assert_eq!(watch.cycle(), ["1 +Map 3 on 127.0.0.3"]);
    // Those that end are asked for one by one, too.
    for id in &ids {
        watch.app(*id, |app| {
            app.end(AppState::Finished, 9);
            app.release();
        });
    }
    let ended = (0..3).map(|_| watch.cycle().pop().unwrap()).collect::<Vec<_>>();
    assert_eq!(ended, ["1 released", "2 released", "3 released"]);
    assert!(watch.cycle().is_empty());
}

#[test]
fn a_cycle_that_fails_changes_nothing() {
    let mut watch = Watch::new();
    let id = watch.submit(2, 0);
    watch.app(id, |app| {
        app.start();
        app.grant("127.0.0.3", 1)
    });
    watch.cycle();
    let before = watch.observer.snapshot().clone();
    for mood in [
        Mood::Says(500, "text/html", "<html>".to_owned()),
        Mood::HangsUp,
        Mood::Says(200, "text/html", "<html>".to_owned()),
        Mood::Says(200, "application/json", "{\"apps\":{\"app\":[{}]}}".to_owned()),
    ] {
        next(&watch.mock, "/apps?", 3, mood);
        watch.try_cycle().unwrap_err();
        assert_eq!(*watch.observer.snapshot(), before);
        watch.mock.with(|state| state.moods.clear());
    }
    assert!(watch.cycle().is_empty());
    assert_eq!(watch.observer.snapshot().cycle, before.cycle + 1);
}

#[test]
fn containers_that_cannot_be_read_stay_as_they_were() {
    let mut watch = Watch::new();
    let ids = [watch.submit(4, 0), watch.submit(4, 0)];
    for id in ids {
        watch.app(id, |app| {
            app.start();
            app.grant("127.0.0.3", 1)
        });
    }
    watch.cycle();
    for id in ids {
        watch.app(id, |app| (app.end_one("SUCCEEDED", 2), app.grant("127.0.0.4", 2)));
    }
    next(&watch.mock, "_0001/appattempts", 3, Mood::Says(500, "text/html", "<html>".to_owned()));
    assert_eq!(
        watch.cycle(),
        ["2 -Map 2", "2 +Map 3 on 127.0.0.4"],
        "one that fails does not keep the others from being read"
    );
    assert!(watch.observer.snapshot().watched[&ids[0]].problem.is_some());
    assert_eq!(watch.cycle(), ["1 -Map 2", "1 +Map 3 on 127.0.0.4"]);
    assert!(watch.observer.snapshot().watched[&ids[0]].problem.is_none());
    // Silence is not waited for once for each application.
    for id in ids {
        watch.app(id, |app| app.grant("127.0.0.4", 2));
    }
    watch.requests();
    next(&watch.mock, "appattempts", 3, Mood::HangsUp);
    assert!(watch.cycle().is_empty());
    assert!(watch.requests().iter().all(|request| !request.contains("_0002/appattempts")));
    assert_eq!(watch.cycle(), ["1 +Map 4 on 127.0.0.4", "2 +Map 4 on 127.0.0.4"]);
}

#[test]
fn after_a_restart_containers_may_be_missing_for_a_while() {
    let mut watch = Watch::new();
    let id = watch.submit(3, 0);
    watch.app(id, |app| (app.start(), app.grant("127.0.0.3", 1), app.grant("127.0.0.4", 1)));
    watch.cycle();
    watch.restart();
    watch.try_cycle().unwrap_err();
    // The application waits for its ApplicationMaster to come back; no NodeManager is there yet.
    let attempts = watch.app(id, |app| {
        (app.state, app.has_am) = (AppState::Accepted, false);
        std::mem::take(&mut app.attempts)
    });
    assert_eq!(watch.cycle(), ["restarted", "1 Running -> Accepted"]);
    assert!(watch.observer.snapshot().settling);
    assert_eq!((watch.live(id, Purpose::Map), watch.live(id, Purpose::ApplicationMaster)), (2, 1));
    watch.app(id, |app| {
        (app.state, app.has_am, app.attempts) = (AppState::Running, true, attempts[..1].to_vec());
    });
    assert_eq!(watch.cycle(), ["1 Accepted -> Running"]);
    assert_eq!(watch.live(id, Purpose::Map), 2);
    watch.now += 60;
    let mut changes = Vec::new();
    for _ in 0..=PollIntervals::default().reread {
        changes.extend(watch.cycle());
    }
    assert_eq!(changes, ["1 -Map 3"], "what has not come back by then is over");
    assert!(!watch.observer.snapshot().settling);
}

#[test]
fn another_application_master_ends_the_containers_of_the_first() {
    let mut watch = Watch::new();
    let id = watch.submit(2, 0);
    watch.app(id, |app| (app.start(), app.grant("127.0.0.3", 1)));
    watch.cycle();
    watch.app(id, |app| (app.fail_am(2), app.grant("127.0.0.4", 3)));
    assert_eq!(
        watch.cycle(),
        [
            "1 attempt 2",
            "1 -ApplicationMaster 1",
            "1 -Map 2",
            "1 +ApplicationMaster 1 on 127.0.0.2",
            "1 +Map 2 on 127.0.0.4"
        ]
    );
}

#[test]
fn an_application_is_gone_when_the_resource_manager_has_said_so_three_times() {
    let mut watch = Watch::new();
    let id = watch.submit(2, 0);
    watch.app(id, |app| (app.start(), app.grant("127.0.0.3", 1)));
    watch.cycle();
    let app = watch.mock.with(|state| state.apps.remove(&id).unwrap());
    assert!(watch.cycle().is_empty() && watch.cycle().is_empty());
    watch.mock.with(|state| state.apps.insert(id, app));
    assert!(watch.cycle().is_empty(), "it is back");
    watch.mock.with(|state| state.apps.clear());
    // Silence does not count.
    next(&watch.mock, "/apps/application", 3, Mood::HangsUp);
    assert!(watch.cycle().is_empty() && watch.cycle().is_empty() && watch.cycle().is_empty());
    assert_eq!(watch.cycle(), ["1 -ApplicationMaster 1", "1 -Map 2", "1 gone"]);
    assert!(watch.observer.snapshot().watched.is_empty());
}

#[test]
fn an_expected_application_is_seen_even_if_it_finished_before_the_first_poll() {
    let mut watch = Watch::new();
    let id = watch.submit(1, 0);
    watch.observer.expect(id);
    let never = AppId { number: 99, ..id };
    watch.observer.expect(never);
    watch.app(id, |app| {
        app.end(AppState::Failed, 5);
        app.release();
    });
    assert_eq!(watch.cycle(), ["1 appeared", "1 over: Failed Failed true", "1 released"]);
    assert!(watch.cycle().is_empty());
    assert_eq!(watch.cycle(), ["99 gone"]);
    watch.requests();
    watch.cycle();
    assert_eq!(watch.requests().len(), 1, "nothing is remembered of either");
    assert_eq!(FinalStatus::default(), FinalStatus::Undefined);
}

#[test]
fn many_jobs_come_and_go_and_nothing_is_kept_of_them() {
    let mut watch = Watch::new();
    let (mut started, mut ended, mut released) = (0, 0, 0);
    for tick in 0..60 {
        watch.mock.with(|state| {
            if tick < 40 {
                state.submit("root.jobs", 3, 1);
            }
            state.tick(2);
        });
        for change in watch.cycle() {
            started += usize::from(change.contains(" +"));
            ended += usize::from([" -App", " -Map", " -Red"].iter().any(|end| change.contains(end)));
            released += usize::from(change.contains("released"));
        }
        assert!(watch.observer.snapshot().watched.len() < 10);
    }
    assert_eq!((started, ended, released), (40 * 5, 40 * 5, 40));
    assert!(watch.observer.snapshot().watched.is_empty());
}
