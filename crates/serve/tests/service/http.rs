//! The HTTP API from outside: who may what, what is refused and how, connections that misbehave, events, and
//! TLS.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use slackline_serve::TlsFiles;
use slackline_serve::api::{
    Accepted, Alerts, Done, Identity, Load, Service as Shown, Submission, Submissions, Submit,
};
use slackline_serve::http::audit_line::Line;
use slackline_serve::http::client::{Client, ClientError, Server as At};
use slackline_serve::http::tokens::Tokens;
use slackline_serve::http::{Bounds, ListenError, Server, Setup, Socket, description};
use slackline_serve::service::Service;
use slackline_serve::state::auth::Role;

use super::{flow, setup};

/// A service of which nothing begins, with a token for each role.
pub(super) struct World {
    service: Service,
    server: Server,
    tokens: BTreeMap<Role, String>,
}

fn http(dir: &Path) -> Setup {
    Setup {
        socket: Some(Socket { path: dir.join("socket"), group: None, others: None }),
        listen: Some("127.0.0.1:0".parse().unwrap()),
        tls: None,
        loopback: None,
        hosts: Vec::new(),
        bounds: Bounds::default(),
        say: Arc::new(|_| {}),
    }
}

impl World {
    fn new(dir: &Path, http: &Setup) -> Self {
        let service = Service::start(&setup(dir)).unwrap();
        let tokens = Tokens::new(service.handle().paths().tokens());
        let tokens =
            Role::ALL.map(|role| (role, tokens.add(role.name(), role, jiff::Timestamp::now()).unwrap()));
        let server = Server::start(service.handle().clone(), http).unwrap();
        let world = Self { service, server, tokens: tokens.into() };
        let _: Done = world.client(Role::Operate).post("/api/v1/drain", None::<&()>).unwrap();
        world
    }

    fn address(&self) -> SocketAddr {
        self.server.address().unwrap()
    }

    fn client(&self, role: Role) -> Client {
        let at = At::parse(&format!("http://{}", self.address())).unwrap();
        Client::new(at.with_token(Some(self.tokens[&role].clone()))).unwrap()
    }

    fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends a request as it is written, and gives the status and the whole answer.
    fn said(&self, request: &[u8]) -> (u16, String) {
        let mut stream = self.raw();
        // A client that is refused early may find the connection closed.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer)
    }

    /// A request with a token.
    fn asked(&self, role: Option<Role>, method: &str, path: &str, body: &str) -> (u16, String) {
        let token =
            role.map_or_else(String::new, |role| format!("authorization: Bearer {}\r\n", self.tokens[&role]));
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{token}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.said(request.as_bytes())
    }

    fn end(self) {
        self.server.stop();
        self.service.stop().unwrap();
    }
}

/// Everything that a part of the description refers to is in it.
fn refers_to_what_it_has(part: &Value, described: &Value) {
    if let Some(reference) = part.get("$ref").and_then(Value::as_str) {
        let paths = reference.strip_prefix('#').unwrap();
        assert!(described.pointer(paths).is_some(), "{reference} is not described");
    }
    let parts: Vec<&Value> = match part {
        Value::Array(parts) => parts.iter().collect(),
        Value::Object(parts) => parts.values().collect(),
        _ => return,
    };
    for part in parts {
        refers_to_what_it_has(part, described);
    }
}

/// Each operation of the description, as every role: it is done for its role, and refused to all others.
pub(super) fn roles(dir: &Path) {
    let world = World::new(dir, &http(dir));
    let described: Value = serde_json::from_str(&description()).unwrap();
    refers_to_what_it_has(&described, &described);
    let mut operations = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations += 1;
            let needs = operation["security"][0]["token"][0].as_str();
            let least = needs.map(|needs| Role::ALL.into_iter().find(|role| role.name() == needs).unwrap());
            let roles = [None].into_iter().chain(Role::ALL.map(Some));
            for role in roles {
                if path == "/api/v1/events" && role.is_some() {
                    continue; // It has no end, and a separate test.
                }
                let path = path.replace("{number}", "4711").replace("{name}", "nothing");
                let (status, answer) = world.asked(role, &method.to_uppercase(), &path, "{}");
                let is_refused = matches!(status, 401 | 403);
                assert_eq!(is_refused, role < least, "{method} {path} for {role:?}: {answer}");
                assert_eq!(
                    status == 401,
                    role < least && role.is_none(),
                    "{method} {path} for {role:?}: {answer}"
                );
                assert!(status < 500, "{method} {path} for {role:?}: {answer}");
                let responses = operation["responses"].as_object().unwrap();
                assert!(
                    responses.contains_key(&status.to_string()),
                    "{method} {path}: {status} is not described"
                );
            }
        }
    }
    assert!(operations >= 24, "{operations}");
    let me: Identity = world.client(Role::Submit).get("/api/v1/me").unwrap();
    assert_eq!((me.name.as_str(), me.role), ("submit", Role::Submit));
    // Everything that was done or refused is noted.
    let audit = fs::read_to_string(dir.join("state/audit.log")).unwrap();
    let refused = fs::read_to_string(dir.join("state/refused.log")).unwrap();
    assert!(audit.contains("\"path\":\"/api/v1/drain\"") && !audit.contains("\"status\":4"), "{audit}");
    assert!(refused.contains("\"status\":401") && refused.contains("\"status\":403"), "{refused}");
    assert!(world.tokens.values().all(|token| !audit.contains(token) && !refused.contains(token)));
    world.end();
}

/// The lines of a log.
fn logged(dir: &Path, name: &str) -> Vec<Line> {
    let text = fs::read_to_string(dir.join("state").join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Floods of refused requests of all kinds change nothing in the log of accepted ones, are all counted, and
/// lock no user out.
pub(super) fn flood(dir: &Path) {
    let world = World::new(dir, &http(dir));
    let look = &world.tokens[&Role::Look];
    let accepted = logged(dir, "audit.log");
    let long = "x".repeat(900);
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let floods: [(&str, String); 10] = [
        ("GET", format!("/api/v1/me HTTP/1.1\r\nhost: localhost\r\n{}", bearer("x"))),
        ("GET", format!("/{long} HTTP/1.1\r\nhost: localhost\r\n{}", bearer("x"))),
        ("GET", format!("/ HTTP/1.1\r\nhost: {long}\r\n")),
        ("GET", format!("/ HTTP/1.1\r\nhost: localhost\r\norigin: http://{long}\r\n")),
        ("POST", "/nothing HTTP/1.1\r\nhost: localhost\r\n".to_owned()),
        ("DELETE", "/api/v1/drain HTTP/1.1\r\nhost: localhost\r\n".to_owned()),
        ("POST", format!("/api/v1/drain?token={long} HTTP/1.1\r\nhost: localhost\r\n{}", bearer(look))),
        (
            "POST",
            format!(
                "/api/v1/submissions HTTP/1.1\r\nhost: localhost\r\ncontent-type: {long}\r\n{}",
                bearer(&world.tokens[&Role::Submit])
            ),
        ),
        ("PUT", format!("/api/v1/submissions/%1b%5b2J HTTP/1.1\r\nhost: localhost\r\n{}", bearer(look))),
        ("ODD", format!("/ HTTP/1.1\r\nhost: localhost\r\n{}", bearer("\u{9b}"))),
    ];
    let mut statuses = BTreeMap::new();
    for (method, rest) in &floods {
        let request = format!("{method} {rest}connection: close\r\ncontent-length: 0\r\n\r\n");
        for _ in 0..80 {
            *statuses.entry(world.said(request.as_bytes()).0).or_insert(0) += 1;
        }
    }
    assert!(statuses[&401] > 0 && statuses[&403] > 0 && statuses[&429] > 0, "{statuses:?}");
    assert!(statuses.keys().all(|status| (400..500).contains(status)), "{statuses:?}");
    // A right token is let in from the address of the flood.
    let mut operator = world.client(Role::Operate);
    let metrics = operator.text("/metrics").unwrap();
    let counted = |name: &str| {
        let line =
            metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{metrics}"));
        line.trim().parse::<u64>().unwrap()
    };
    assert_eq!(counted("slackline_http_requests_refused_total "), 800);
    assert_eq!(counted("slackline_http_requests_limited_total "), statuses[&429]);
    let [look, token] = [look.clone(), long];
    world.end();
    // The last line of a request before the flood may be younger than its answer.
    let audit = logged(dir, "audit.log");
    assert!(audit.starts_with(&accepted) && audit.iter().all(|line| line.status < 300), "{audit:?}");
    let lines = logged(dir, "refused.log");
    assert_eq!(lines.iter().map(|line| 1 + line.more).sum::<u64>(), 800);
    let text = fs::read_to_string(dir.join("state/refused.log")).unwrap();
    assert!(text.len() < 40_000 && slackline_model::printable::escaped(&text) == text, "{text:?}");
    assert!(!text.contains(&look) && !text.contains(&token), "{text}");
}

/// A client with the role `submit` may change only its own submissions.
pub(super) fn own(dir: &Path) {
    let world = World::new(dir, &http(dir));
    let (mut anna, mut operator, mut look) =
        (world.client(Role::Submit), world.client(Role::Operate), world.client(Role::Look));
    let submit = |name: &str| Submit { name: Some(name.into()), ..flow(dir, "a", "cat", 1) };
    let own: Accepted = anna.post("/api/v1/submissions", Some(&submit("own"))).unwrap();
    let other: Accepted = operator.post("/api/v1/submissions", Some(&submit("other"))).unwrap();
    let hold = |client: &mut Client, number: u64| {
        client.post::<Done>(&format!("/api/v1/submissions/{number}/hold"), None::<&()>)
    };
    hold(&mut anna, own.number.unwrap()).unwrap();
    let refused = hold(&mut anna, other.number.unwrap()).unwrap_err();
    assert!(matches!(refused, ClientError::Refused { status: 403, .. }), "{refused}");
    hold(&mut operator, own.number.unwrap()).unwrap();
    let list: Submissions = look.get("/api/v1/submissions?limit=1").unwrap();
    assert_eq!((list.submissions.len(), list.submissions[0].name.as_str()), (1, "other"));
    let next: Submissions =
        look.get(&format!("/api/v1/submissions?limit=1&before={}", list.before.unwrap())).unwrap();
    assert_eq!((next.submissions[0].name.as_str(), next.before), ("own", None));
    assert!(next.submissions[0].held);
    world.end();
}

/// What makes no sense is refused with the reason, as a document.
pub(super) fn wrong(dir: &Path) {
    let world =
        World::new(dir, &Setup { bounds: Bounds { body_bytes: 10_000, ..Bounds::default() }, ..http(dir) });
    let operate = Some(Role::Operate);
    let large = format!("{{\"document\":\"{}\"}}", "x".repeat(20_000));
    let cases: &[(&str, &str, &str, u16, &str)] = &[
        ("POST", "/api/v1/submissions", "{", 400, "request"),
        ("POST", "/api/v1/submissions", "{}", 400, "document"),
        ("POST", "/api/v1/submissions", "{\"document\":\"\",\"x\":1}", 400, "x"),
        ("POST", "/api/v1/submissions", "{\"document\":\"slackline = 1\"}", 422, "found no flows"),
        ("POST", "/api/v1/submissions", &large, 413, "10000 bytes"),
        ("POST", "/api/v1/submissions?wait=x", "{\"document\":\"\"}", 400, "wait"),
        ("GET", "/api/v1/submissions?limit=0", "", 400, "limit"),
        ("GET", "/api/v1/submissions?limit=1&limit=2", "", 400, "twice"),
        ("GET", "/api/v1/submissions?sate=live", "", 400, "state"),
        ("GET", "/api/v1/submissions/1x", "", 400, "number"),
        ("GET", "/api/v1/submissions/99999999999999999999", "", 400, "number"),
        ("GET", "/api/v1/submissions/7", "", 404, "no submission 7"),
        ("GET", "/api/v1/nothing", "", 404, "openapi.json"),
        ("PUT", "/api/v1/submissions", "", 405, "PUT"),
        ("DELETE", "/api/v1/recurrences/%FF", "", 400, "UTF-8"),
        ("GET", "/api/v1/events?after=x", "", 400, "after"),
        ("GET", "/api/v1/load?since=x", "", 400, "since"),
    ];
    for (method, path, body, status, part) in cases {
        let (found, answer) = world.asked(operate, method, path, body);
        assert_eq!(found, *status, "{method} {path}: {answer}");
        let document = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let problem: Value = serde_json::from_str(document).unwrap_or_else(|_| panic!("{answer}"));
        assert!(problem["message"].as_str().unwrap().contains(part), "{method} {path}: {problem}");
    }
    let kind = world.said(b"POST /api/v1/drain HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic eDp5\r\nconnection: close\r\n\r\n");
    assert_eq!(kind.0, 401, "{}", kind.1);
    let token = &world.tokens[&Role::Operate];
    let head = |more: &str| {
        format!(
            "POST /api/v1/submissions HTTP/1.1\r\nauthorization: Bearer {token}\r\nconnection: close\r\n{more}\r\n"
        )
    };
    for (more, status) in [
        ("host: localhost\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n", 415),
        (
            "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 0\r\norigin: http://evil.example\r\n",
            403,
        ),
        ("host: evil.example\r\ncontent-type: application/json\r\ncontent-length: 0\r\n", 403),
        ("content-type: application/json\r\ncontent-length: 0\r\n", 403),
    ] {
        let (found, answer) = world.said(head(more).as_bytes());
        assert_eq!(found, status, "{more}: {answer}");
    }
    for broken in [&b"\0\0\0\0\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n"] {
        let (status, answer) = world.said(broken);
        assert!(status == 0 || status == 400 || status == 505, "{answer}");
    }
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(100));
    assert_eq!(world.said(many.as_bytes()).0, 431);
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    assert!(matches!(world.said(long.as_bytes()).0, 0 | 400 | 431));
    world.end();
}

/// A client that is slow, sends half a request or is one too many takes nothing from the others.
pub(super) fn slow(dir: &Path) {
    let short = Duration::from_millis(300);
    let bounds = Bounds { connections: 20, head: short, body: short, stall: short, ..Bounds::default() };
    let world = World::new(dir, &Setup { bounds, ..http(dir) });
    let token = world.tokens[&Role::Operate].clone();
    // The head never ends: the connection does.
    let mut half = world.raw();
    half.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").unwrap();
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest);
    // The body never ends: the service says so.
    let (status, answer) = world.said(
        format!("POST /api/v1/submissions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{").as_bytes(),
    );
    assert_eq!(status, 408, "{answer}");
    // Twenty who say nothing keep others out for as long as that is allowed, and no longer.
    let idle: Vec<TcpStream> = (0..20).map(|_| world.raw()).collect();
    let mut was_full = false;
    for _ in 0..600 {
        let (status, answer) =
            world.said(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        was_full |= status == 503;
        assert!(matches!(status, 200 | 503 | 0), "{answer}");
        if status == 200 {
            break;
        }
        slackline_task::base::clock::pause(Duration::from_millis(50));
    }
    assert!(was_full, "the twenty connections were no bound");
    drop(idle);
    let me: Identity = world.client(Role::Look).get("/api/v1/me").unwrap();
    assert_eq!(me.role, Role::Look);
    world.end();
}

/// Events arrive as they happen; a client that was away gets the missed events, or that they are unknown.
pub(super) fn events(dir: &Path) {
    let world = World::new(dir, &http(dir));
    let (mut operator, mut listener) = (world.client(Role::Operate), world.client(Role::Look));
    let listening = std::thread::spawn(move || {
        let mut seen = Vec::new();
        listener
            .events(None, |id, event| {
                seen.push((id.to_owned(), event));
                seen.len() < 3
            })
            .unwrap();
        seen
    });
    // A client that connects now and then is asked until the listener has its event.
    let mut undo = false;
    while !listening.is_finished() {
        let _: Done =
            operator.post(if undo { "/api/v1/undrain" } else { "/api/v1/drain" }, None::<&()>).unwrap();
        undo = !undo;
        slackline_task::base::clock::pause(Duration::from_millis(20));
    }
    let seen = listening.join().unwrap();
    assert!(seen.iter().all(|(_, event)| event.kind == "service"), "{seen:?}");
    assert_eq!(seen[1].1.id, seen[0].1.id + 1);
    let mut again = Vec::new();
    let mut late = world.client(Role::Look);
    late.events(Some(&seen[0].0), |id, event| {
        again.push((id.to_owned(), event));
        again.len() < 2
    })
    .unwrap();
    assert_eq!(again, seen[1..3]);
    // The events of another process are unknown: the client gets all since this one started.
    let mut first = None;
    late.events(Some("1-5"), |_, event| {
        first = Some(event.id);
        false
    })
    .unwrap();
    assert_eq!(first, Some(1));
    // With its token, a stream ends.
    let mut shut_out = world.client(Role::Look);
    let (hears, event) = std::sync::mpsc::channel();
    let listening = std::thread::spawn(move || {
        shut_out.events(Some("1-5"), |_, _| {
            let _ = hears.send(());
            true
        })
    });
    event.recv().unwrap();
    Tokens::new(world.service.handle().paths().tokens()).remove(Role::Look.name()).unwrap();
    for _ in 0..3_000 {
        if listening.is_finished() {
            break;
        }
        let _: Done = operator.post("/api/v1/drain", None::<&()>).unwrap();
        slackline_task::base::clock::pause(Duration::from_millis(20));
    }
    assert!(listening.is_finished(), "the stream continues");
    listening.join().unwrap().unwrap();
    world.end();
}

/// What is asked over the socket is asked by a user of this machine, and the socket is this user's alone.
pub(super) fn socket(dir: &Path) {
    let world = World::new(dir, &http(dir));
    let path = dir.join("socket");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let at = At::parse(&path.display().to_string()).unwrap();
    let mut client = Client::new(at).unwrap();
    let me: Identity = client.get("/api/v1/me").unwrap();
    assert_eq!(me.role, Role::Operate);
    let shown: Shown = client.get("/api/v1/service").unwrap();
    assert!(shown.draining);
    let metrics = client.text("/metrics").unwrap();
    assert!(metrics.contains("slackline_draining 1"), "{metrics}");
    let accepted: Accepted = client.post("/api/v1/submissions", Some(&flow(dir, "a", "cat", 1))).unwrap();
    let path_of = format!("/api/v1/submissions/{}", accepted.number.unwrap());
    let submitted: Submission = client.get(&path_of).unwrap();
    assert_eq!(submitted.user, me.name);
    // It has not begun, and its flows are read from its file; lists have none of them.
    let jobs: Vec<&str> = submitted.flows[0].jobs.iter().map(|job| job.job.as_str()).collect();
    assert_eq!((submitted.flows[0].flow.as_str(), submitted.flows[0].tasks, jobs), ("a", 0, vec!["j"]));
    let list: Submissions = client.get("/api/v1/submissions").unwrap();
    assert!(list.submissions[0].flows.is_empty());
    let alerts: Alerts = client.get("/api/v1/alerts").unwrap();
    assert!(alerts.alerts.is_empty());
    let load: Load = client.get("/api/v1/load?since=2100-01-01T00:00:00Z").unwrap();
    assert!(load.points.is_empty());
    world.end();
    assert!(!path.exists(), "the socket goes with the service");
    let error = client.get::<Identity>("/api/v1/me").unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(..)), "{error}");
}

/// Beyond this machine the service requires TLS and tokens; it reads changed certificates again.
pub(super) fn tls(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    let everywhere = Setup { listen: Some("0.0.0.0:0".parse().unwrap()), ..http(dir) };
    let refused = |setup: &Setup| match Server::start(service.handle().clone(), setup) {
        Ok(_) => panic!("it listens"),
        Err(error) => error.to_string(),
    };
    assert!(refused(&everywhere).contains("the service needs TLS and tokens"));
    let token = Tokens::new(service.handle().paths().tokens())
        .add("anna", Role::Look, jiff::Timestamp::now())
        .unwrap();
    assert!(refused(&everywhere).contains("the service needs TLS"));
    let files = certificate(dir, "first");
    let secret = Setup { tls: Some(files.clone()), ..everywhere };
    let server = Server::start(service.handle().clone(), &secret).unwrap();
    let port = server.address().unwrap().port();
    let at = |trusted: Option<&Path>| {
        let at = At::parse(&format!("https://localhost:{port}")).unwrap();
        Client::new(at.with_token(Some(token.clone())).trusting(trusted.map(Path::to_owned)))
    };
    let me: Identity = at(Some(&files.certificate)).unwrap().get("/api/v1/me").unwrap();
    assert_eq!(me.name, "anna");
    // Another certificate of the same name is not trusted, until it is the one that is shown.
    let old = dir.join("old.pem");
    fs::copy(&files.certificate, &old).unwrap();
    certificate(dir, "second");
    let renewed: Identity = at(Some(&files.certificate)).unwrap().get("/api/v1/me").unwrap();
    assert_eq!(renewed.name, "anna");
    assert!(at(Some(&old)).unwrap().get::<Identity>("/api/v1/me").is_err());
    // A key that is none leaves it as it was.
    fs::write(&files.key, "nothing").unwrap();
    let kept: Identity = at(Some(&files.certificate)).unwrap().get("/api/v1/me").unwrap();
    assert_eq!(kept.name, "anna");
    server.stop();
    let error = Server::start(service.handle().clone(), &secret);
    assert!(matches!(error, Err(ListenError::Tls(_))));
    service.stop().unwrap();
}

/// Writes one of the certificates of `tests/tls` for localhost, which are valid until 2126 and trusted by no
/// one: `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj /CN=localhost
/// -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE`.
fn certificate(dir: &Path, name: &str) -> TlsFiles {
    let files = TlsFiles { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls");
    fs::copy(kept.join(format!("{name}.pem")), &files.certificate).unwrap();
    fs::copy(kept.join(format!("{name}.key.pem")), &files.key).unwrap();
    files
}
