//! Clusters that would not follow the decisions of a run are refused before any submission.

use slackline_model::params::Settings;
use slackline_yarn::attach::{AttachOptions, Cluster, PARAMS};
use slackline_yarn::flows::ENTRY;
use slackline_yarn::mock::{Mock, Mood};

use crate::{next, says};

/// Its ResourceManager has another scheduler from now on.
pub(crate) fn has_the_fair_scheduler(mock: &Mock) {
    let queues = r#"{ "queue": [{ "queueName": "root.jobs", "schedulingPolicy": "fair" }] }"#;
    let root = format!(r#"{{ "queueName": "root", "childQueues": {queues} }}"#);
    let info = format!(r#"{{ "type": "fairScheduler", "rootQueue": {root} }}"#);
    says(mock, "cluster/scheduler", &format!(r#"{{ "scheduler": {{ "schedulerInfo": {info} }} }}"#));
}

/// A cluster that is asked as for a run, with some settings; what it says against it.
fn run(mock: &Mock, set: &[(&str, &str)]) -> Result<(), String> {
    let address = mock.address().to_string();
    let usual = [("address", address.as_str()), ("table", "none"), ("memory", "512MiB"), ("queue", "jobs")];
    // These only have to be there.
    let paths = [("conf", "."), ("classpath", "."), ("submitter", ".")];
    let is_set = |name: &str| set.iter().any(|(one, _)| *one == name);
    let usual = usual.into_iter().chain(paths).filter(|(name, _)| !is_set(name));
    let settings = Settings::parse(ENTRY.params, usual.chain(set.iter().copied())).unwrap();
    (ENTRY.make)(&settings).map(drop).map_err(|error| error.to_string())
}

/// The same, asked as by `attach`.
fn attach(mock: &Mock, set: &[(&str, &str)]) -> Result<(), String> {
    let usual = [("memory", "512MiB"), ("job-history", "none")];
    let settings = Settings::parse(PARAMS, usual.into_iter().chain(set.iter().copied())).unwrap();
    let asked =
        Cluster::ask(&mock.address().to_string(), &settings, AttachOptions::new(vec!["jobs".to_owned()]));
    asked.map(drop).map_err(|error| error.to_string())
}

fn cluster() -> Mock {
    let mock = Mock::start().unwrap();
    let minimum = ("yarn.scheduler.minimum-allocation-mb".to_owned(), "512".to_owned());
    mock.with(|state| state.properties.extend([minimum]));
    mock
}

/// It stays as it is where the cluster decides.
const CLUSTER_DECIDES: (&str, &str) = ("decide", "cluster");

#[test]
fn another_scheduler_is_refused_unless_it_decides() {
    let mock = cluster();
    run(&mock, &[]).unwrap();
    has_the_fair_scheduler(&mock);
    let error = run(&mock, &[]).unwrap_err();
    assert!(error.contains("found the scheduler \"fairScheduler\""), "{error}");
    assert!(error.contains("expected \"capacityScheduler\""), "{error}");
    assert!(error.contains("yarn.resourcemanager.scheduler.class"), "{error}");
    run(&mock, &[CLUSTER_DECIDES]).unwrap();
}

#[test]
fn a_queue_that_orders_by_fairness_is_refused_unless_it_decides() {
    let mock = cluster();
    mock.with(|state| state.ordering = "fair");
    let error = run(&mock, &[]).unwrap_err();
    assert!(error.contains("\"fair\" in the queue root.jobs, expected \"fifo\""), "{error}");
    assert!(error.contains("yarn.scheduler.capacity.root.jobs.ordering-policy"), "{error}");
    run(&mock, &[CLUSTER_DECIDES]).unwrap();
}

#[test]
fn a_queue_has_to_be_there_and_to_be_meant_alone() {
    let mock = cluster();
    let expected = "one of the queues that accept jobs: root.default, root.jobs";
    for options in [&[][..], &[CLUSTER_DECIDES]] {
        let with = |queue| [&[("queue", queue)], options].concat();
        assert_eq!(
            run(&mock, &with("job")).unwrap_err(),
            format!("found queue=\"job\", expected {expected}")
        );
        assert!(run(&mock, &with("root")).is_err(), "it only has others below it");
        run(&mock, &with("root.jobs")).unwrap();
    }
    mock.with(|state| state.queues = vec!["root.a.jobs".to_owned(), "root.b.jobs".to_owned()]);
    let error = run(&mock, &[]).unwrap_err();
    assert!(error.ends_with(": root.a.jobs, root.b.jobs"), "{error}");
    run(&mock, &[("queue", "root.b.jobs")]).unwrap();
}

#[test]
fn a_queue_that_is_made_when_it_is_named_need_not_be_there() {
    let mock = cluster();
    let users =
        r#"{ "queueName": "users", "queuePath": "root.users", "autoCreationEligibility": "flexible" }"#;
    let root =
        format!(r#""type": "capacityScheduler", "queueName": "root", "queues": {{ "queue": [{users}] }}"#);
    says(&mock, "cluster/scheduler", &format!(r#"{{ "scheduler": {{ "schedulerInfo": {{ {root} }} }} }}"#));
    run(&mock, &[("queue", "root.users.ann")]).unwrap();
    run(&mock, &[("queue", "root.usersann")]).unwrap_err();
}

#[test]
fn containers_that_are_larger_than_the_largest_are_refused() {
    let mock = cluster();
    let error = run(&mock, &[("memory", "8193MiB")]).unwrap_err();
    assert!(error.starts_with("found memory=8193MiB, expected at most 8192MiB"), "{error}");
    let maximum = ("yarn.scheduler.maximum-allocation-mb".to_owned(), "700".to_owned());
    mock.with(|state| state.properties.extend([maximum]));
    let error = run(&mock, &[("memory", "701MiB")]).unwrap_err();
    assert!(error.contains("at most 700MiB"), "{error}");
    assert!(error.contains("yarn.scheduler.maximum-allocation-mb"), "{error}");
    run(&mock, &[("memory", "700MiB")]).unwrap();
}

#[test]
fn a_table_that_the_cluster_does_not_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["tables", "others"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink(dir.path().join("tables"), dir.path().join("link")).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (own, linked, other) = (path("tables/table"), path("link/table"), path("others/table"));
    let mock = cluster();
    let asked = |table: &str| [run(&mock, &[("table", table)]), attach(&mock, &[("table", table)])];
    for refused in asked(&own) {
        let error = refused.unwrap_err();
        assert!(error.starts_with("found no slackline.table in the ResourceManager's"), "{error}");
    }
    mock.with(|state| state.properties.insert("slackline.table".to_owned(), own.clone()));
    for refused in asked(&other) {
        let error = refused.unwrap_err();
        let expected = format!("found table={other}, expected {own}, which the ResourceManager reads");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("slackline.table in its yarn-site.xml"), "{error}");
    }
    for table in ["cluster", "none", &own, &linked] {
        assert_eq!(asked(table), [Ok(()), Ok(())], "{table}");
    }
    run(&mock, &[("table", &other), CLUSTER_DECIDES]).unwrap();
}

#[test]
fn another_daemon_at_the_address_is_no_resource_manager() {
    let (missing, strange) = (cluster(), cluster());
    next(&missing, "cluster/info", usize::MAX, Mood::Says(404, "text/html", "Not Found".to_owned()));
    says(&strange, "cluster/info", r#"{ "nodeInfo": { "id": "node1:8041" } }"#);
    for mock in [&missing, &strange] {
        let expected = format!(
            "{}: found no ResourceManager there, expected its web address (usually port 8088)",
            mock.address()
        );
        for refused in [run(mock, &[]), attach(mock, &[("table", "none")])] {
            let error = refused.unwrap_err();
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn a_slot_of_attach_is_as_the_containers_that_run_and_else_the_smallest() {
    let mock = cluster();
    let slot = || {
        let settings = Settings::parse(PARAMS, [("table", "none"), ("job-history", "none")]).unwrap();
        let wish = AttachOptions::new(vec!["jobs".to_owned()]);
        let cluster = Cluster::ask(&mock.address().to_string(), &settings, wish).unwrap();
        let slots: u32 = cluster.machines().iter().map(|machine| machine.count).sum();
        (cluster.slot().to_owned(), slots)
    };
    let smallest = "512 MiB, the smallest that the cluster grants (yarn.scheduler.minimum-allocation-mb)";
    assert_eq!(slot(), (smallest.to_owned(), 8));
    mock.with(|state| {
        state.properties.insert("yarn.scheduler.minimum-allocation-mb".to_owned(), "128".to_owned());
        // An ApplicationMaster alone says nothing, nor does what is in another queue.
        state.submit("root.jobs", 4, 0).start();
    });
    assert_eq!(slot().0, smallest.replace("512", "128"));
    mock.with(|state| {
        let (host, now) = (state.hosts[0].0.clone(), state.now_ms);
        let app = state.submit("root.jobs", 4, 0);
        app.start();
        for _ in 0..3 {
            assert!(app.grant(&host, now));
        }
    });
    assert_eq!(slot().0, "512 MiB, the mean of the 4 running containers");
}
