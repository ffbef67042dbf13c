//! Failures of requests, and their errors and retries.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use slackline_yarn::mock::{Mock, Mood};
use slackline_yarn::{Address, HttpError, ResourceManager, Settings};

use crate::{manager, next, quick};

fn page(status: u16) -> Mood {
    Mood::Says(status, "text/html", "<html><head><title>Error of Jetty</title></head></html>".to_owned())
}

fn requests(mock: &Mock) -> usize {
    mock.with(|state| state.requests.len())
}

#[test]
fn a_port_without_a_listener() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let manager = ResourceManager::new(&Address::parse(&free.to_string()).unwrap(), quick());
    let error = manager.metrics().unwrap_err();
    assert!(matches!(error, HttpError::Unreachable { .. }) && error.may_pass());
    assert_eq!(
        error.to_string(),
        format!(
            "http://{free}/ws/v1/cluster/metrics: no answer: no program listens there (connection refused)"
        )
    );
}

#[test]
fn an_answer_that_takes_too_long_is_none() {
    let mock = Mock::start().unwrap();
    let settings = Settings { total: Duration::from_millis(800), retries: 1, ..quick() };
    let manager = ResourceManager::new(&mock.address(), settings);
    next(&mock, "metrics", 2, Mood::Slow(Duration::from_secs(4)));
    let error = manager.metrics().unwrap_err();
    assert!(error.to_string().ends_with("no answer: timed out"), "{error}");
    assert_eq!(requests(&mock), 2);
    assert_eq!(
        manager.metrics().unwrap().active_nodes,
        4,
        "what came too late is not taken for the next answer"
    );
}

#[test]
fn temporary_failures_are_retried_up_to_the_limit() {
    let mock = Mock::start().unwrap();
    for mood in [page(503), page(500), Mood::HangsUp] {
        next(&mock, "metrics", 2, mood);
        assert_eq!(manager(&mock).metrics().unwrap().active_nodes, 4);
    }
    mock.with(|state| (state.moods.clear(), state.requests.clear()));
    next(&mock, "metrics", 9, page(503));
    let error = manager(&mock).metrics().unwrap_err();
    assert!(matches!(error, HttpError::Failed { status: 503, .. }));
    assert!(error.to_string().ends_with("the server failed (503): a page: `Error of Jetty`"), "{error}");
    assert_eq!(requests(&mock), 3);
}

#[test]
fn refused_requests_are_not_retried() {
    let mock = Mock::start().unwrap();
    let unknown = "application_1700000000000_0009".parse().unwrap();
    let error = manager(&mock).attempts(unknown).unwrap_err();
    assert!(error.is_missing() && !error.may_pass());
    assert!(
        error.to_string().ends_with(
            "refused (404): java.lang.Exception: app with id: application_1700000000000_0009 not found"
        ),
        "{error}"
    );
    assert_eq!(requests(&mock), 1);
}

#[test]
fn a_page_is_an_answer_for_the_moment_only_while_something_starts() {
    let mock = Mock::start().unwrap();
    next(&mock, "info", 2, page(200));
    assert_eq!(manager(&mock).info().unwrap().version, "3.5.0");
    next(&mock, "metrics", 1, page(200));
    let error = manager(&mock).metrics().unwrap_err();
    assert!(error.to_string().ends_with("the answer is not JSON but a page: `Error of Jetty`"), "{error}");
    assert_eq!(requests(&mock), 4);
    for (body, found) in
        [("", "nothing"), ("  ", "nothing"), ("This is standby RM.\n", "`This is standby RM.`")]
    {
        next(&mock, "metrics", 1, Mood::Says(200, "text/plain", body.to_owned()));
        let error = manager(&mock).metrics().unwrap_err();
        assert!(matches!(&error, HttpError::NotJson { found: said, .. } if said == found), "{error}");
    }
}

#[test]
fn json_of_another_shape_is_not_an_empty_answer() {
    let mock = Mock::start().unwrap();
    for body in
        ["{\"else\":{}}", "{\"clusterMetrics\":[]}", "{\"clusterMetrics\":7}", "{\"clusterMetrics\":", "[]"]
    {
        next(&mock, "metrics", 1, Mood::Says(200, "application/json", body.to_owned()));
        let error = manager(&mock).metrics().unwrap_err();
        assert!(matches!(error, HttpError::Unknown { .. }), "{body}: {error}");
    }
}

#[test]
fn an_answer_has_a_limit() {
    let mock = Mock::start().unwrap();
    let small = ResourceManager::new(&mock.address(), Settings { largest: 1000, ..quick() });
    let body = format!("{{\"clusterMetrics\":{{\"activeNodes\":4}}}}{}", " ".repeat(2000));
    next(&mock, "metrics", 1, Mood::Says(200, "application/json", body));
    let error = small.metrics().unwrap_err();
    assert!(error.to_string().ends_with("the answer is larger than 1000 bytes"), "{error}");
    assert_eq!(small.metrics().unwrap().active_nodes, 4);
}

#[test]
fn kerberos_and_tls_are_named() {
    let mock = Mock::start().unwrap();
    let default_user = r#"{"RemoteException":{"exception":"ForbiddenException","message":
        "The default static user cannot carry out this operation.","javaClassName":"x"}}"#;
    for (mood, missing) in [
        (Mood::Kerberos, "the cluster asks for Kerberos (SPNEGO), which is not supported"),
        (page(401), "only simple authentication is supported"),
        (
            Mood::Says(403, "application/json", default_user.to_owned()),
            "only simple authentication is supported",
        ),
        (Mood::Leads("https://127.0.0.1:9/ws".to_owned()), "TLS is not supported"),
    ] {
        next(&mock, "metrics", 1, mood);
        let error = manager(&mock).metrics().unwrap_err();
        assert!(matches!(&error, HttpError::Security { .. }), "{error}");
        assert!(error.to_string().contains(missing), "{error}");
    }
    next(&mock, "metrics", 1, page(403));
    assert!(matches!(manager(&mock).metrics().unwrap_err(), HttpError::Refused { status: 403, .. }));
}

#[test]
fn a_port_that_speaks_tls_is_guessed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1000]);
        // The alert of a server of TLS that was spoken to in plain text.
        stream.write_all(&[0x15, 3, 3, 0, 2, 2, 0x50, b'\r', b'\n', b'\r', b'\n']).unwrap();
    });
    let settings = Settings { retries: 0, ..quick() };
    let manager = ResourceManager::new(&Address::parse(&at.to_string()).unwrap(), settings);
    let error = manager.metrics().unwrap_err();
    assert!(error.to_string().contains("without TLS?"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_resource_manager_that_stands_by_leads_to_the_other() {
    let (standby, active) = (Mock::start().unwrap(), Mock::start().unwrap());
    active.with(|state| state.hosts.truncate(3));
    let manager = manager(&standby);
    let to = format!("http://{}/ws/v1/cluster/metrics", active.address());
    next(&standby, "metrics", 1, Mood::Leads(to.clone()));
    assert_eq!(manager.metrics().unwrap().active_nodes, 3);
    next(&standby, "metrics", 1, Mood::Leads("/ws/v1/cluster/metrics".to_owned()));
    assert_eq!(manager.metrics().unwrap().active_nodes, 4, "an address without a host");
    next(&standby, "metrics", 9, Mood::Leads("/ws/v1/cluster/metrics".to_owned()));
    let error = manager.metrics().unwrap_err();
    assert!(error.to_string().contains("a redirect loop to "), "{error}");
}

#[test]
fn a_write_goes_to_where_the_one_that_stands_by_leads() {
    let (standby, active) = (Mock::start().unwrap(), Mock::start().unwrap());
    let app = active.with(|state| state.submit("root.jobs", 1, 0).id);
    let path = format!("/ws/v1/cluster/apps/{app}/priority?user.name=me");
    let to = format!("http://{}{path}", active.address());
    let me = Settings { user: Some("me".to_owned()), ..quick() };
    let manager = ResourceManager::new(&standby.address(), me);
    next(&standby, "priority", 1, Mood::Leads(to));
    assert_eq!(manager.set_priority(app, 7).unwrap(), 7);
    assert_eq!(active.with(|state| state.apps[&app].priority), 7);
    assert_eq!(active.with(|state| state.requests.clone()), [format!("PUT {path}")]);
    // Each says that it is the other: some are followed.
    next(&standby, "priority", 9, Mood::Leads(path));
    let error = manager.set_priority(app, 1).unwrap_err();
    assert!(matches!(error, HttpError::Refused { status: 307, .. }), "{error}");
    assert!(error.to_string().contains("pass the address of the active ResourceManager"), "{error}");
    assert_eq!(requests(&standby), 5);
}

#[test]
fn a_write_is_sent_once_and_says_who_writes() {
    let mock = Mock::start().unwrap();
    let app = mock.with(|state| state.submit("root.jobs", 1, 0).id);
    next(&mock, "priority", 1, page(503));
    let me = Settings { user: Some("me & you".to_owned()), ..quick() };
    let manager = ResourceManager::new(&mock.address(), me);
    assert!(matches!(manager.set_priority(app, 7).unwrap_err(), HttpError::Failed { .. }));
    assert_eq!(manager.set_priority(app, 7).unwrap(), 7);
    assert_eq!(mock.with(|state| state.apps[&app].priority), 7);
    let address = format!("PUT /ws/v1/cluster/apps/{app}/priority?user.name=me%20%26%20you");
    assert_eq!(mock.with(|state| state.requests.clone()), [address.clone(), address]);
}
