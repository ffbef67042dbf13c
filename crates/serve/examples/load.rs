//! Measures a service under load: a full queue, submissions at a steady rate, and clients that watch.
//!
//! ```console
//! slackline serve --state /tmp/load --slots 2 --live 100 --queued 1000000 &
//! cargo run --release --package slackline-serve --example load -- /tmp/load 100000 1000 60 200
//! ```
//!
//! The arguments are the state directory, the number of waiting submissions, submissions per second, the
//! duration in seconds, and the number of clients that watch. Each submission is sent at its time, even if
//! earlier ones have no answer yet, so that a slow service does not get less load. The measured time is from
//! then to the answer.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "it is a measurement on a terminal")]
#![expect(clippy::disallowed_methods, reason = "it measures by the wall clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use slackline_serve::api::{Accepted, Load, Service, Submissions, Submit};
use slackline_serve::http::client::{Client, Server};

/// Clients that submit at a time.
const SENDERS: u64 = 64;

fn client(server: &str) -> Client {
    let token = std::env::var("SLACKLINE_TOKEN").ok();
    Client::new(Server::parse(server).unwrap().with_token(token)).unwrap()
}

/// A flow that runs for ten minutes if it ever begins.
fn submit(n: u64) -> Submit {
    let document = "slackline = 1\n[[flows]]\nid = 'f'\ndeadline = '2h'\njobs = [{ id = 'j', run = { command = 'sleep 600', output = 'out' } }]\n";
    Submit {
        document: document.replace("'out'", &format!("'out-{n}'")),
        name: Some(format!("load-{n}")),
        directory: Some(std::env::temp_dir().join("slackline-load").display().to_string()),
        ..Submit::default()
    }
}

/// Sends those of numbers `from..to` from several threads, each when `due` says, and gives how long each
/// took, seconds.
fn send(server: &str, (from, to): (u64, u64), due: impl Fn(u64) -> Option<Instant> + Sync) -> Vec<f64> {
    let next = AtomicU64::new(from);
    let took = std::thread::scope(|scope| {
        let sender = || {
            let mut client = client(server);
            let mut took = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= to {
                    return took;
                }
                let began = due(n).unwrap_or_else(Instant::now);
                std::thread::sleep(began.saturating_duration_since(Instant::now()));
                let accepted: Accepted = client.post("/api/v1/submissions", Some(&submit(n))).unwrap();
                assert!(accepted.number.is_some());
                took.push(began.elapsed().as_secs_f64());
            }
        };
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(sender)).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect::<Vec<_>>()
    });
    took.concat()
}

fn tell(what: &str, mut took: Vec<f64>) {
    took.sort_by(f64::total_cmp);
    let at = |part: f64| 1e3 * took[((took.len() as f64 * part) as usize).min(took.len() - 1)];
    println!(
        "{what}: {} of them, p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        took.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [server, numbers @ ..] = args.as_slice() else { panic!("expected the service and four numbers") };
    let numbers: Vec<u64> = numbers.iter().map(|text| text.parse().unwrap()).collect();
    let [waiting, rate, seconds, watchers] = numbers[..] else {
        panic!("expected the service and four numbers")
    };
    let began = Instant::now();
    if waiting > 0 {
        let took = send(server, (0, waiting), |_| None);
        println!("filled with {waiting} in {:.1} s", began.elapsed().as_secs_f64());
        tell("submissions as fast as can be", took);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let event = Arc::new(AtomicU64::new(0));
    let watching: Vec<_> = (0..watchers)
        .map(|_| {
            let (server, event, is_over) = (server.clone(), event.clone(), is_over.clone());
            std::thread::spawn(move || {
                // One that does not keep up is left behind, and comes again.
                while !is_over.load(Ordering::Relaxed) {
                    let _ = client(&server).events(None, |_, _| {
                        event.fetch_add(1, Ordering::Relaxed);
                        !is_over.load(Ordering::Relaxed)
                    });
                }
            })
        })
        .collect();
    let looking = std::thread::spawn({
        let (server, is_over) = (server.clone(), is_over.clone());
        move || {
            let (mut client, mut took) = (client(&server), Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                let _: Service = client.get("/api/v1/service").unwrap();
                let _: Submissions =
                    client.get("/api/v1/submissions?state=running,opening,queued&limit=1000").unwrap();
                let _: Load = client.get("/api/v1/load").unwrap();
                took.push(began.elapsed().as_secs_f64());
                std::thread::sleep(Duration::from_secs(1));
            }
            took
        }
    });
    let began = Instant::now();
    let took = send(server, (waiting, waiting + rate * seconds), |n| {
        Some(began + Duration::from_secs_f64((n - waiting) as f64 / rate as f64))
    });
    println!("{} submissions in {:.1} s", took.len(), began.elapsed().as_secs_f64());
    tell("submissions", took);
    is_over.store(true, Ordering::Relaxed);
    tell("what the page asks for", looking.join().unwrap());
    println!("events that {watchers} clients received: {}", event.load(Ordering::Relaxed));
    let service: Service = client(server).get("/api/v1/service").unwrap();
    println!("{:?}", service.submissions);
    let metrics = client(server).text("/metrics").unwrap();
    for name in [
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "slackline_prediction_seconds",
        "slackline_decision",
    ] {
        metrics.lines().filter(|line| line.starts_with(name)).for_each(|line| println!("{line}"));
    }
    drop(watching);
}
