//! The documents of Hadoop, in all forms of their JSON.

use slackline_model::PhaseKind;
use slackline_yarn::mock::{Mock, Mood};
use slackline_yarn::{
    AppFilter, AppState, FinalStatus, HttpError, MapReduce, Pending, Purpose, ResourceManager,
};

use crate::{manager, next, quick, says};

const APP: &str = r#"{"id":"application_1700000000000_0007","user":"me","name":"q1/j2","queue":"root.jobs",
    "state":"RUNNING","finalStatus":"UNDEFINED","progress":12.5,"trackingUI":"ApplicationMaster","diagnostics":"",
    "clusterId":1700000000000,"applicationType":"MAPREDUCE","applicationTags":"flow=f1,deadline=60","priority":952,
    "startedTime":1700000000001,"launchTime":1700000000002,"finishedTime":0,"elapsedTime":7,
    "amContainerLogs":"http://127.0.0.5:8042/node/containerlogs/container_e03_1700000000000_0007_02_000001/me",
    "amHostHttpAddress":"127.0.0.5:8042","amRPCAddress":"127.0.0.5:41","allocatedMB":1536,"allocatedVCores":3,
    "runningContainers":3,"memorySeconds":1,"vcoreSeconds":1,"preemptedResourceMB":0,"unmanagedApplication":false,
    "resourceRequests":[
      {"priority":20,"resourceName":"/default-rack","numContainers":9,"capability":{"memory":512,"vCores":1}},
      {"priority":20,"resourceName":"127.0.0.2","numContainers":4},
      {"priority":20,"resourceName":"*","numContainers":9},{"priority":20,"resourceName":"*","numContainers":1},
      {"priority":5,"resourceName":"*","numContainers":2},{"priority":10,"resourceName":"*","numContainers":3},
      {"priority":1,"resourceName":"*","numContainers":4},{"priority":0,"resourceName":"*","numContainers":0}]}"#;

#[test]
fn an_application_as_it_runs() {
    let mock = Mock::start().unwrap();
    says(&mock, "/apps", &format!(r#"{{"apps":{{"app":[{APP}]}}}}"#));
    let apps = manager(&mock).apps(&AppFilter::default()).unwrap();
    let [app] = apps.as_slice() else { panic!("{apps:?}") };
    assert_eq!(app.id.to_string(), "application_1700000000000_0007");
    assert_eq!((app.name.as_str(), app.queue.as_str(), app.user.as_str()), ("q1/j2", "root.jobs", "me"));
    assert_eq!(
        (app.state, app.final_status, app.kind.as_str()),
        (AppState::Running, FinalStatus::Undefined, "MAPREDUCE")
    );
    assert_eq!((app.progress, app.priority), (12.5, 952));
    assert_eq!((app.tag("flow"), app.tag("deadline"), app.tag("weight")), (Some("f1"), Some("60"), None));
    assert_eq!((app.started_ms, app.finished_ms), (Some(1_700_000_000_001), None));
    assert_eq!(
        (app.running_containers, app.allocated_mb, app.allocated_cores),
        (Some(3), Some(1536), Some(3))
    );
    assert_eq!(app.pending, Pending { ams: 0, maps: 10, failed_maps: 2, reduces: 3, other: 4 });
    assert_eq!(app.am_container.unwrap().attempt.number, 2);
}

#[test]
fn a_finished_application_has_unknown_numbers() {
    let mock = Mock::start().unwrap();
    let over = r#"{"id":"application_1_0001","state":"FINISHED","finalStatus":"SUCCEEDED","progress":"NaN","priority":"3",
        "runningContainers":-1,"allocatedMB":-1,"allocatedVCores":-1,"finishedTime":1700000000009,"diagnostics":null,
        "applicationTags":"","resourceRequests":{"priority":20,"resourceName":"*","numContainers":2}}"#;
    says(&mock, "/apps", &format!(r#"{{"app":{over}}}"#));
    let app = manager(&mock).app("application_1_0001".parse().unwrap()).unwrap().unwrap();
    assert_eq!((app.state, app.final_status, app.priority), (AppState::Finished, FinalStatus::Succeeded, 3));
    assert_eq!((app.running_containers, app.allocated_mb, app.progress), (None, None, 0.0));
    assert!(
        app.state.is_over() && !app.holds_containers() && app.tags.is_empty() && app.am_container.is_none()
    );
    assert_eq!(app.pending.maps, 2, "a single request");
}

#[test]
fn an_unknown_state_is_active() {
    let mock = Mock::start().unwrap();
    says(
        &mock,
        "/apps",
        r#"{"apps":{"app":{"id":"application_1_0001","state":"ASLEEP","finalStatus":"ODD"}}}"#,
    );
    let apps = manager(&mock).apps(&AppFilter::default()).unwrap();
    assert_eq!((apps[0].state, apps[0].final_status), (AppState::Other, FinalStatus::Undefined));
    assert!(!apps[0].state.is_over());
}

#[test]
fn no_applications_have_many_shapes_and_another_answer_is_none_of_them() {
    let mock = Mock::start().unwrap();
    for none in
        [r#"{"apps":{}}"#, r#"{"apps":""}"#, r#"{"apps":null}"#, "{}", r#"{"apps":{"app":[]}}"#, "\"\""]
    {
        says(&mock, "/apps", none);
        assert_eq!(manager(&mock).apps(&AppFilter::default()), Ok(vec![]), "{none}");
    }
    for other in [r#"{"jobs":{}}"#, r#"{"apps":{"job":[]}}"#, r#"{"apps":{"app":[{"id":"job"}]}}"#] {
        says(&mock, "/apps", other);
        let error = manager(&mock).apps(&AppFilter::default()).unwrap_err();
        assert!(matches!(error, HttpError::Unknown { .. }), "{other}: {error}");
    }
}

#[test]
fn applications_are_asked_for_by_state_queue_and_tags() {
    let mock = Mock::start().unwrap();
    let which = AppFilter {
        queue: Some("root.jobs".to_owned()),
        tags: vec!["a=1".to_owned(), "b".to_owned()],
        ended: false,
    };
    manager(&mock).apps(&which).unwrap();
    manager(&mock).apps(&AppFilter { ended: true, ..AppFilter::default() }).unwrap();
    let asked = mock.with(|state| state.requests.clone()).join("\n").replace("%2C", ",").replace("%3D", "=");
    let select = "deSelects=timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo";
    assert_eq!(
        asked,
        format!(
            "GET /ws/v1/cluster/apps?{select}&states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING&queue=root.jobs\
             &applicationTags=a=1,b\nGET /ws/v1/cluster/apps?{select}"
        )
    );
}

#[test]
fn containers_have_hosts_and_purposes() {
    let mock = Mock::start().unwrap();
    let one = |id: &str, priority: &str, node: &str| {
        format!(
            r#"{{"containerId":"container_1_0001_01_{id}","priority":{priority},"nodeId":"{node}","assignedNodeId":"b:2",
            "startedTime":1700000000003,"finishedTime":0,"containerState":"RUNNING"}}"#
        )
    };
    let all = [
        one("000001", "0", "127.0.0.2:39019"),
        one("000002", "20", "[::1]:39019"),
        one("000003", "10", "plain"),
        one("000004", "5", ""),
        one("000005", "\"19\"", "n:1"),
        one("000006", "7", "n:1"),
    ]
    .join(",");
    says(&mock, "/containers", &format!(r#"{{"container":[{all}]}}"#));
    let attempt = "appattempt_1_0001_000001".parse().unwrap();
    let containers = manager(&mock).containers(attempt).unwrap();
    let seen: Vec<(&str, Purpose)> = containers.iter().map(|c| (c.host.as_str(), c.purpose)).collect();
    assert_eq!(
        seen,
        [
            ("127.0.0.2", Purpose::ApplicationMaster),
            ("[::1]", Purpose::Map),
            ("plain", Purpose::Reduce),
            ("b", Purpose::FailedMap),
            ("n", Purpose::Map),
            ("n", Purpose::Other)
        ]
    );
    assert_eq!(
        (containers[0].started_ms, containers[0].state.as_str()),
        (Some(1_700_000_000_003), "RUNNING")
    );
    says(&mock, "/containers", &format!(r#"{{"containers":{{"container":{}}}}}"#, one("000001", "0", "a:1")));
    assert_eq!(manager(&mock).containers(attempt).unwrap().len(), 1, "one, in an object around it");
    for none in ["{}", r#"{"container":[]}"#, r#"{"container":""}"#, "\"\""] {
        says(&mock, "/containers", none);
        assert_eq!(manager(&mock).containers(attempt), Ok(vec![]), "{none}");
    }
}

#[test]
fn a_cluster_in_the_shapes_of_both_servers() {
    let mock = Mock::start().unwrap();
    let manager = manager(&mock);
    for shape in [slackline_yarn::mock::Shape::Arrays, slackline_yarn::mock::Shape::Singles] {
        mock.with(|state| (state.shape, state.apps) = (shape, std::collections::BTreeMap::new()));
        assert_eq!(manager.apps(&AppFilter::default()), Ok(vec![]));
        let id = mock.with(|state| {
            let app = state.submit("root.jobs", 2, 1);
            app.start();
            app.grant("127.0.0.3", 5);
            app.id
        });
        let app = manager.app(id).unwrap().unwrap();
        assert_eq!((app.pending.maps, app.running_containers), (1, Some(2)));
        assert_eq!(manager.attempts(id).unwrap().len(), 1);
        let containers = manager.containers(app.am_container.unwrap().attempt).unwrap();
        assert_eq!(
            containers.iter().map(|c| c.purpose).collect::<Vec<_>>(),
            [Purpose::ApplicationMaster, Purpose::Map]
        );
    }
    mock.with(|state| state.hosts[3].1 = false);
    let nodes = manager.nodes().unwrap();
    assert_eq!(nodes.iter().filter(|node| node.is_up()).count(), 3);
    let node = &nodes[1];
    assert_eq!((node.host.as_str(), node.containers, node.used_mb, node.free_mb), ("127.0.0.3", 1, 512, 512));
    let metrics = manager.metrics().unwrap();
    assert_eq!((metrics.active_nodes, metrics.containers_allocated, metrics.containers_pending), (3, 2, 0));
    let info = manager.info().unwrap();
    assert_eq!((info.started_on, info.ha_state.as_str()), (Some(1_700_000_000_000), "ACTIVE"));
}

#[test]
fn properties_of_the_resource_manager() {
    let mock = Mock::start().unwrap();
    let manager = manager(&mock);
    assert_eq!(manager.property("slackline.table"), Ok(None));
    mock.with(|state| {
        state.properties.insert("slackline.table".to_owned(), "/run/slackline/table".to_owned())
    });
    assert_eq!(manager.property("slackline.table").unwrap().as_deref(), Some("/run/slackline/table"));
    assert_eq!(mock.with(|state| state.requests[1].clone()), "GET /conf?format=json&name=slackline.table");
    says(
        &mock,
        "/conf",
        r#"{"properties":[{"key":"a","value":"1"},{"key":"slackline.table","value":"/t","isFinal":true}]}"#,
    );
    assert_eq!(manager.property("slackline.table").unwrap().as_deref(), Some("/t"), "of all of them");
    says(&mock, "/conf", r#"{"properties":[]}"#);
    assert_eq!(manager.property("slackline.table"), Ok(None));
}

#[test]
fn an_application_is_killed() {
    let mock = Mock::start().unwrap();
    let id = mock.with(|state| state.submit("root.jobs", 1, 0).id);
    manager(&mock).kill(id).unwrap();
    assert_eq!(manager(&mock).app(id).unwrap().unwrap().state, AppState::Killed);
    let unknown = "application_1_0009".parse().unwrap();
    assert_eq!(manager(&mock).app(unknown), Ok(None));
    assert!(manager(&mock).kill(unknown).unwrap_err().is_missing());
}

#[test]
fn tasks_by_the_application_master_then_by_the_history() {
    let mock = Mock::start().unwrap();
    let id = mock.with(|state| {
        let app = state.submit("root.jobs", 1, 1);
        app.start();
        app.grant("127.0.0.2", 5);
        app.end_one("FAILED", 6);
        app.grant("127.0.0.3", 7);
        app.id
    });
    let manager = manager(&mock);
    let history = MapReduce::history(&mock.address(), quick());
    history.check().unwrap();
    assert_eq!(history.jobs(), Ok(vec![]), "an empty string");
    let am = manager.application_master(id);
    am.check().unwrap();
    let job = am.job(id).unwrap().unwrap();
    assert_eq!((job.id, job.maps_running, job.reduces_total, job.finished_ms), (id, 1, 1, None));
    let map = am.tasks(id).unwrap()[0].clone();
    assert_eq!((map.id.kind, map.state.as_str(), map.successful), (PhaseKind::Map, "RUNNING", None));
    let attempts = am.attempts(map.id).unwrap();
    assert_eq!(attempts.iter().map(|a| a.state.as_str()).collect::<Vec<_>>(), ["FAILED", "RUNNING"]);
    assert_eq!(attempts[1].container.unwrap().number, 3);
    assert_eq!((attempts[0].finished_ms, attempts[1].finished_ms), (Some(6), None));

    mock.with(|state| {
        let app = state.apps.get_mut(&id).unwrap();
        app.end_one("SUCCEEDED", 8);
        app.grant("127.0.0.3", 9);
        app.end_one("SUCCEEDED", 12);
        app.end(AppState::Finished, 13);
    });
    let error = am.tasks(id).unwrap_err();
    assert!(matches!(error, HttpError::NotJson { .. }), "the proxy leads to the history: {error}");
    let job = history.job(id).unwrap().unwrap();
    assert_eq!((job.state.as_str(), job.mean_map_ms, job.maps_completed), ("SUCCEEDED", Some(1), 1));
    let reduce = history.tasks(id).unwrap()[1].clone();
    assert_eq!(reduce.successful.unwrap().task, reduce.id);
    let attempts = history.attempts(reduce.id).unwrap();
    assert_eq!(attempts.len(), 1, "an object in place of an array");
    assert_eq!((attempts[0].shuffled_ms, attempts[0].merged_ms), (Some(10), Some(11)));
    let counters = history.counters(id).unwrap();
    assert_eq!(
        (counters[0].counters[0].name.as_str(), counters[0].counters[0].total),
        ("MAP_INPUT_RECORDS", 1)
    );
    assert_eq!(history.job("job_1_0009".parse().unwrap()), Ok(None));
}

#[test]
fn an_application_master_that_starts_does_not_answer_yet() {
    let mock = Mock::start().unwrap();
    let id = mock.with(|state| {
        let app = state.submit("root.jobs", 1, 0);
        app.start();
        app.id
    });
    let manager: ResourceManager = manager(&mock);
    next(&mock, "/proxy/", 1, Mood::Says(503, "text/html", "<html>".to_owned()));
    assert_eq!(manager.application_master(id).jobs().unwrap().len(), 1);
}
