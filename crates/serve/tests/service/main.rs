//! The whole service without its network: flows really run, under one policy, and resume when it is started
//! again.
//!
//! Attempts are processes of this program, so it has its own main; its tests are otherwise like all others.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![expect(clippy::print_stdout, reason = "it says what tests say")]

mod http;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use slackline::Registry;
use slackline::run::{Engines, HistoryStore};
use slackline_model::Combine;
use slackline_model::quota::Quota;
use slackline_serve::api::{Change, FlowStatus, IfLate, Overlap, State, Submission, Submit};
use slackline_serve::service::explain::LogQuery;
use slackline_serve::service::hooks::Hooks;
use slackline_serve::service::paths::ServicePaths;
use slackline_serve::service::{Service, Setup};
use slackline_serve::state::auth::{Principal, Role};
use slackline_serve::state::{Answer, Command, Limits, Refusal};

/// A test, in its own directory.
type Test = fn(&Path);

const TESTS: &[(&str, Test)] = &[
    ("flows_of_several_submissions_run_and_are_judged", several),
    ("a_flow_is_held_changed_resumed_and_cancelled", held),
    ("a_quota_of_slots_is_the_reason", quota),
    ("the_reason_of_a_waiting_flow_is_exact", causes),
    ("what_has_held_slots_is_named_by_who_did", taken_over),
    ("what_has_not_begun_says_why", queued),
    ("a_stopped_service_resumes_and_reruns_no_finished_task", stopped),
    ("a_mended_file_replaces_one_that_fails_and_what_was_done_stays_done", mended),
    ("a_submission_that_would_be_late_is_not_begun", late),
    ("what_cannot_be_run_fails_with_the_reason", wrong),
    ("a_flow_that_waits_is_explained_across_submissions", explained),
    ("every_operation_is_done_only_for_principals_with_its_role", http::roles),
    ("floods_of_refused_requests_displace_no_accepted_ones", http::flood),
    ("a_submitter_changes_only_its_own_submissions", http::own),
    ("what_makes_no_sense_is_refused_with_the_reason", http::wrong),
    ("a_slow_or_surplus_client_takes_nothing_from_others", http::slow),
    ("events_come_as_they_happen_and_are_gone_on_with", http::events),
    ("the_socket_is_asked_by_users_of_this_machine", http::socket),
    ("beyond_this_machine_there_is_tls_and_certificates_are_renewed", http::tls),
];

fn main() -> ExitCode {
    if let Some(worker) = slackline::run::worker_if_asked() {
        return worker;
    }
    let asked = std::env::args().nth(1).filter(|arg| !arg.starts_with('-')).unwrap_or_default();
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(&asked)) {
        let dir = tempfile::tempdir().unwrap();
        let passed = catch_unwind(AssertUnwindSafe(|| test(dir.path()))).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += u32::from(!passed);
    }
    println!("\ntest result: {}. {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn setup(dir: &Path) -> Setup {
    let policy = Registry::standard().parse("edf").unwrap();
    Setup {
        paths: ServicePaths::new(dir.join("state")),
        engine: Engines::default().parse("local:slots=2,split=1KiB").unwrap(),
        looks_with: policy.clone(),
        policy,
        metric: None,
        combine: Combine::Sum,
        slowstart: 1.0,
        attempts_max: 2,
        failure_policy: None,
        limits: Limits::default(),
        hooks: Hooks::default(),
        says: std::sync::Arc::new(|_| ()),
        warns: std::sync::Arc::new(|_| ()),
        zone: jiff::tz::TimeZone::UTC,
    }
}

fn anna() -> Principal {
    Principal::new("anna", Role::Operate)
}

/// A file of a flow with `tasks` tasks of a command, each with a separate input.
fn flow(dir: &Path, name: &str, command: &str, tasks: usize) -> Submit {
    let inputs = dir.join(format!("in-{name}"));
    if fs::create_dir(&inputs).is_ok() {
        for k in 0..tasks {
            // As long as a split, so that each has one map.
            fs::write(inputs.join(format!("{k}.txt")), format!("{name} {k}{}\n", " ".repeat(1 << 10)))
                .unwrap();
        }
    }
    let document = format!(
        "slackline = 1\n[[flows]]\nid = '{name}'\njobs = [{{ id = 'j', run = {{ mapper = '{command}', inputs = ['in-{name}'], \
         output = 'out-{name}' }} }}]\n"
    );
    Submit {
        document,
        file: Some(format!("{name}.toml")),
        directory: Some(dir.display().to_string()),
        ..Submit::default()
    }
}

fn made(dir: &Path, name: &str) -> Vec<String> {
    let part = |k: usize| dir.join(format!("out-{name}/part-{k:05}"));
    let parts = (0..).map(part).take_while(|path: &PathBuf| path.exists());
    parts.map(|path| fs::read_to_string(path).unwrap().trim().to_owned()).collect()
}

fn execute(service: &Service, command: Command) -> Result<Answer, Refusal> {
    service.handle().execute_and_wait(anna(), command)
}

fn submit(service: &Service, submit: Submit) -> u64 {
    let asked = service.handle().submission(&anna(), submit).unwrap();
    let Answer::Accepted(accepted) = execute(service, asked).unwrap() else { panic!("it is not accepted") };
    accepted.number.unwrap()
}

fn show(service: &Service, number: u64) -> Submission {
    service.handle().query_and_wait(move |state, now| state.show(now, number)).unwrap().unwrap()
}

/// Waits until something is so of a submission.
fn until(service: &Service, number: u64, what: impl Fn(&Submission) -> bool) -> Submission {
    for _ in 0..6_000 {
        let shown = show(service, number);
        if what(&shown) {
            return shown;
        }
        slackline_task::base::clock::pause(Duration::from_millis(10));
    }
    panic!("it never was so: {:#?}", show(service, number));
}

fn over(service: &Service, number: u64) -> Submission {
    until(service, number, |shown| shown.state.is_over())
}

/// The run of a name is feasible.
fn judged(dir: &Path, name: &str) {
    let state = dir.join("state/flows").join(name);
    let look = slackline::run::look(&state).unwrap().unwrap();
    let slackline::run::SoFar { instance, schedule, .. } = slackline::run::so_far(&look).unwrap();
    slackline::judge::check(&instance, &schedule).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(state.join("schedule.json").exists());
}

fn several(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    let numbers = ["a", "b", "c"].map(|name| submit(&service, flow(dir, name, "cat", 4)));
    for (number, name) in numbers.into_iter().zip(["a", "b", "c"]) {
        let shown = over(&service, number);
        assert_eq!(shown.state, State::Finished, "{shown:#?}");
        assert_eq!(shown.flows[0].done, 4);
        assert_eq!(made(dir, name), (0..4).map(|k| format!("{name} {k}")).collect::<Vec<_>>());
        judged(dir, name);
    }
    let timeline = service.handle().timeline(slackline_model::WallTime(0));
    assert_eq!(timeline.attempts.len(), 12);
    // Whose run it is, a slot has one attempt at a time.
    let mut free = std::collections::BTreeMap::new();
    for attempt in &timeline.attempts {
        let before = free.insert(attempt.slot.unwrap(), attempt.end.unwrap());
        assert!(before.is_none_or(|before| before <= attempt.start), "{timeline:#?}");
    }
    service.stop().unwrap();
    // Durations of jobs enter the history of the user who submitted them.
    let known = HistoryStore::existing(&dir.join("state/past.history")).latest().unwrap();
    let flows: Vec<&str> = known.keys().map(|name| name.flow.as_str()).collect();
    assert_eq!(flows, ["anna\ta", "anna\tb", "anna\tc"]);
}

fn held(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    let gate = dir.join("go");
    let waits = format!("while ! test -e {}; do sleep 0.05; done; cat", gate.display());
    let a = submit(&service, flow(dir, "a", &waits, 4));
    until(&service, a, |shown| shown.flows.first().is_some_and(|flow| flow.running == 2));
    let at_work = service.handle().timeline(slackline_model::WallTime(0)).attempts;
    let mut slots: Vec<_> = at_work.iter().map(|open| (open.number, open.slot, open.end)).collect();
    slots.sort_unstable();
    assert_eq!(slots, [(a, Some(0), None), (a, Some(1), None)], "{at_work:#?}");
    execute(&service, Command::Hold { number: a, flow: None, held: true }).unwrap();
    let b = submit(&service, flow(dir, "b", "cat", 2));
    fs::write(&gate, "").unwrap();
    assert_eq!(over(&service, b).state, State::Finished);
    let shown = until(&service, a, |shown| shown.flows[0].running == 0);
    assert_eq!((shown.flows[0].state, shown.flows[0].done), (FlowStatus::Held, 2));
    let change = Change { weight: Some(3.0), deadline: Some("1h".into()), ..Change::default() };
    let change = service.handle().change(a, change, &shown).unwrap();
    execute(&service, change).unwrap();
    execute(&service, Command::Hold { number: a, flow: None, held: false }).unwrap();
    let shown = over(&service, a);
    assert_eq!((shown.state, shown.flows[0].weight), (State::Finished, 3.0));
    let deadline =
        shown.flows[0].deadline.unwrap().as_microsecond() - shown.flows[0].release.as_microsecond();
    assert_eq!(deadline, 3_600_000_000);
    let explained = service.handle().explain(a, None, None).unwrap();
    let about = explained.text.lines().next().unwrap_or_default();
    assert!(about.contains(", deadline "), "it was given one since: {}", explained.text);
    assert_eq!(
        service.handle().timeline(slackline_model::WallTime(0)).attempts.len(),
        6,
        "nothing was done twice"
    );
    let c = submit(&service, flow(dir, "c", "sleep 300", 2));
    until(&service, c, |shown| shown.flows.first().is_some_and(|flow| flow.running == 2));
    execute(&service, Command::Cancel { number: c, flow: None }).unwrap();
    assert_eq!(over(&service, c).state, State::Cancelled);
    let ended = service.handle().timeline(slackline_model::WallTime(0)).attempts;
    assert!(ended.iter().all(|attempt| attempt.end.is_some()), "nothing is running: {ended:#?}");
    service.stop().unwrap();
}

fn quota(dir: &Path) {
    let limits = Limits { quota: Some(Quota { slots: 1 }), ..Limits::default() };
    let service = Service::start(&Setup { limits, ..setup(dir) }).unwrap();
    let number = submit(&service, flow(dir, "a", "sleep 300", 2));
    let shown = until(&service, number, |shown| shown.flows.first().is_some_and(|flow| flow.running == 1));
    let why = "anna's tasks hold 1 slot, the limit of one user (--quota slots=1)";
    assert_eq!(shown.flows[0].why.as_deref(), Some(why));
    let explained = service.handle().explain(number, None, None).unwrap();
    let text = in_one_line(&explained.text);
    assert!(text.contains(&format!("why now: {why}")), "{}", explained.text);
    assert!(text.contains(&format!("1 running; 1 task wait: {why}")), "{}", explained.text);
    assert!(!text.contains("for slots"), "{}", explained.text);
    assert_eq!(explained.document["why"], why);
    execute(&service, Command::Cancel { number, flow: None }).unwrap();
    over(&service, number);
    // What its attempts did is kept until another one of its name begins.
    let job = LogQuery { job: "j".into(), ..LogQuery::default() };
    service.handle().logs(number, &job).unwrap();
    let again = submit(&service, flow(dir, "a", "true", 2));
    assert_eq!(over(&service, again).state, State::Finished);
    let expected = format!(
        "the attempts of {number} are not available any more: {again}, which has the same name, has started since"
    );
    assert_eq!(service.handle().explain(number, None, None).unwrap_err().message, expected);
    assert_eq!(service.handle().logs(number, &job).unwrap_err().message, expected);
    service.handle().explain(again, None, None).unwrap();
    // Nothing of it is to be done a second time, in time for the deadline that it has now.
    let deadlines = [("a".to_owned(), "1h".to_owned())].into();
    let done = submit(&service, Submit { deadlines, ..flow(dir, "a", "true", 2) });
    let shown = over(&service, done);
    let due = shown.flows[0].deadline.unwrap().as_microsecond() - shown.submitted.as_microsecond();
    assert_eq!((shown.flows[0].late, due), (Some(false), 3_600_000_000), "{shown:?}");
    service.stop().unwrap();
}

/// A text without its line breaks and indents.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The reason of a waiting flow is exact: another flow, a user's hold, or the end of its submission.
fn causes(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    let mut both = flow(dir, "load", "sleep 300", 1);
    both.document.push_str(
        "[[flows]]\nid = 'ship'\njobs = [{ id = 'k', run = { mapper = 'cat', inputs = ['@load/j'], output = 'out-ship' } }]\n",
    );
    let number = submit(&service, both);
    until(&service, number, |shown| shown.flows.first().is_some_and(|flow| flow.running == 1));
    let explain = |what: &str| {
        let explained = service.handle().explain(number, Some("ship"), None).unwrap();
        let text = in_one_line(&explained.text);
        assert!(text.contains(&format!("why now: {what}")), "{}", explained.text);
        assert!(!text.contains("for slots"), "{}", explained.text);
        assert_eq!(explained.document["why"], what);
        text
    };
    let why = "the output of load/j is not available yet";
    let text = explain(why);
    assert!(text.contains(&format!("k waits: {why}")), "{text}");
    let of_ship = || Some("ship".to_owned());
    execute(&service, Command::Hold { number, flow: of_ship(), held: true }).unwrap();
    let why = format!("it is held (slackline submission resume {number})");
    let text = explain(&why);
    assert!(text.contains(&format!("k waits: {why}")), "{text}");
    execute(&service, Command::Cancel { number, flow: of_ship() }).unwrap();
    assert!(!explain("it was cancelled").contains("not finished yet"));
    execute(&service, Command::Cancel { number, flow: None }).unwrap();
    over(&service, number);
    service.stop().unwrap();
}

/// An explanation names the submission that held the slots, also if another of its name runs now.
fn taken_over(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    let gate = dir.join("go");
    let a = submit(&service, flow(dir, "a", "sleep 0.5; cat", 2));
    until(&service, a, |shown| shown.flows.first().is_some_and(|flow| flow.running == 2));
    let waits = format!("while ! test -e {}; do sleep 0.05; done; cat", gate.display());
    let b = submit(&service, flow(dir, "b", &waits, 2));
    over(&service, a);
    let again = [0, 1].map(|_| {
        let again = submit(&service, flow(dir, "a", "sleep 0.5; cat", 2));
        assert_eq!(over(&service, again).state, State::Finished);
        assert!(
            service
                .handle()
                .timeline(slackline_model::WallTime(0))
                .attempts
                .iter()
                .all(|one| one.number != again)
        );
        format!("{again}/a")
    });
    fs::write(&gate, "").unwrap();
    assert_eq!(over(&service, b).state, State::Finished);
    let text = service.handle().explain(b, None, None).unwrap().text;
    assert!(text.contains(&format!("{a}/a")) && !again.iter().any(|again| text.contains(again)), "{text}");
    service.stop().unwrap();
}

/// A queued submission gives its reason, also in an explanation.
fn queued(dir: &Path) {
    let service =
        Service::start(&Setup { limits: Limits { live: 1, ..Limits::default() }, ..setup(dir) }).unwrap();
    let first = submit(&service, flow(dir, "a", "sleep 300", 1));
    let second = submit(&service, flow(dir, "b", "cat", 1));
    let refusal = |number| service.handle().explain(number, None, None).unwrap_err().message;
    assert_eq!(refusal(second), "2 has not started: 1 submission is active, the limit of --live");
    execute(&service, Command::Cancel { number: first, flow: None }).unwrap();
    assert_eq!(over(&service, second).state, State::Finished);
    service.stop().unwrap();
}

fn stopped(dir: &Path) {
    let done = |service: &Service| {
        let attempts = service.handle().timeline(slackline_model::WallTime(0)).attempts;
        attempts.iter().filter(|attempt| attempt.outcome.as_deref() == Some("done")).count()
    };
    let mut attempts = 0;
    for round in 0..4 {
        let service = Service::start(&setup(dir)).unwrap();
        if round == 0 {
            for name in ["a", "b"] {
                submit(&service, flow(dir, name, "cat; sleep 0.1", 8));
            }
        }
        let goal = 2 * (round + 1);
        until(&service, 1, |shown| shown.state.is_over() || shown.flows.iter().any(|flow| flow.done >= goal));
        let handle = service.handle().clone();
        service.stop().unwrap();
        let ended = handle.timeline(slackline_model::WallTime(0)).attempts;
        attempts += ended.iter().filter(|attempt| attempt.outcome.as_deref() == Some("done")).count();
    }
    let service = Service::start(&setup(dir)).unwrap();
    for number in [1, 2] {
        let shown = over(&service, number);
        assert_eq!(shown.state, State::Finished, "{shown:#?}");
    }
    attempts += done(&service);
    for name in ["a", "b"] {
        assert_eq!(made(dir, name), (0..8).map(|k| format!("{name} {k}")).collect::<Vec<_>>());
        judged(dir, name);
    }
    assert_eq!(attempts, 16, "each task was done once");
    service.stop().unwrap();
}

fn mended(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    fs::write(dir.join("x.txt"), "one\ntwo\n").unwrap();
    let file = |second: &str| {
        let document = format!(
            "slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n  {{ id = 'first', run = {{ mapper = 'cat; echo done >> {0}/count', \
             inputs = ['x.txt'], output = 'out-first' }} }},\n  {{ id = 'second', run = {{ mapper = '{second}', inputs = ['@first'], \
             output = 'out-second' }} }},\n]\n",
            dir.display()
        );
        Submit {
            document,
            file: Some("night.toml".into()),
            directory: Some(dir.display().to_string()),
            overlap: Overlap::Replace,
            ..Submit::default()
        }
    };
    let due = |second: &str, deadline: &str| Submit {
        deadlines: [("f".to_owned(), deadline.to_owned())].into(),
        ..file(second)
    };
    let broken = submit(&service, due("exit 7", "1"));
    let shown = over(&service, broken);
    assert_eq!(shown.state, State::Failed);
    assert!(shown.why.as_deref().unwrap().contains("exit status: 7"), "{shown:#?}");
    let hanging = submit(&service, file("sleep 300"));
    until(&service, hanging, |shown| shown.flows.first().is_some_and(|flow| flow.running == 1));
    slackline_task::base::clock::pause(Duration::from_millis(1_100));
    let right = submit(&service, due("cat", "1"));
    let shown = over(&service, right);
    assert_eq!(shown.state, State::Finished);
    // The resumed flow has the deadline of the user who repaired it: a second from then on.
    let due = shown.flows[0].deadline.unwrap();
    let after = due.as_microsecond() - shown.submitted.as_microsecond();
    assert!((1_000_000..1_001_000).contains(&after), "{shown:#?}");
    assert_eq!(show(&service, hanging).why.as_deref(), Some("replaced by 3"));
    assert_eq!(fs::read_to_string(dir.join("count")).unwrap().lines().count(), 1, "what is done stays done");
    assert_eq!(fs::read_to_string(dir.join("out-second/part-00000")).unwrap().trim(), "one\ntwo");
    service.stop().unwrap();
}

fn late(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    // What such tasks take is known.
    let first = submit(&service, flow(dir, "a", "cat; sleep 0.3", 6));
    assert_eq!(over(&service, first).state, State::Finished);
    slackline_task::base::clock::pause(Duration::from_secs(3));
    let due = |deadline: &str| {
        let again = flow(dir, "a", "cat; sleep 0.3; true", 6);
        let deadlines = [("a".to_owned(), deadline.to_owned())].into();
        Submit { deadlines, if_late: IfLate::Reject, ..again }
    };
    let rejected = submit(&service, due("0.2"));
    let shown = over(&service, rejected);
    assert_eq!(shown.state, State::Rejected, "{shown:#?}");
    assert_eq!(
        service.handle().timeline(slackline_model::WallTime(0)).attempts.len(),
        6,
        "nothing of it was begun"
    );
    let accepted = submit(&service, due("10m"));
    let shown = over(&service, accepted);
    assert_eq!((shown.state, shown.flows[0].late), (State::Finished, Some(false)));
    service.stop().unwrap();
}

fn wrong(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    let mut missing = flow(dir, "a", "cat", 1);
    missing.document = missing.document.replace("in-a", "nowhere/*.txt");
    let number = submit(&service, missing);
    let shown = over(&service, number);
    assert_eq!(shown.state, State::Failed);
    assert!(shown.why.as_deref().unwrap().contains("nowhere/*.txt"), "{shown:#?}");
    let broken = Submit { document: "slackline = 1\nflows = 3\n".into(), ..Submit::default() };
    let refused = service.handle().submission(&anna(), broken).unwrap_err();
    assert!(refused.message.contains("flow.toml:2"), "{}", refused.message);
    // Two services at one place are one too many.
    let error = Service::start(&setup(dir)).err().unwrap();
    assert!(error.to_string().contains("another process uses it"), "{error}");
    service.stop().unwrap();
}

fn explained(dir: &Path) {
    let service = Service::start(&setup(dir)).unwrap();
    let gate = dir.join("go");
    let first = submit(&service, flow(dir, "a", "cat; sleep 0.2; echo said >&2", 6));
    // What is submitted later may be opened sooner.
    until(&service, first, |shown| shown.flows.first().is_some_and(|flow| flow.running == 2));
    let second = submit(&service, flow(dir, "b", "cat", 2));
    over(&service, first);
    over(&service, second);
    let handle = service.handle();
    let why = handle.explain(second, None, None).unwrap();
    assert!(why.text.contains(&format!("{first}/a")), "the slots were held by the first:\n{}", why.text);
    assert_eq!(why.document["flow"], format!("{second}/b"), "{:#}", why.document);
    let waits = format!("while ! test -e {}; do sleep 0.05; done; cat", gate.display());
    let third = submit(&service, flow(dir, "c", &waits, 2));
    until(&service, third, |shown| shown.flows.first().is_some_and(|flow| flow.running == 2));
    let fourth = submit(&service, flow(dir, "d", "cat", 2));
    until(&service, fourth, |shown| shown.state == State::Running);
    let why = handle.explain(fourth, Some("d"), Some("j")).unwrap();
    assert!(why.text.contains(&format!("tasks running now: 2 of {third}/c")), "{}", why.text);
    let query = LogQuery { job: "j".into(), ..LogQuery::default() };
    let logs = handle.logs(first, &query).unwrap();
    assert_eq!(logs.matches("said").count(), 6, "{logs}");
    let problem = |query: LogQuery| handle.logs(first, &query).unwrap_err().message;
    assert!(problem(LogQuery { job: "k".into(), ..LogQuery::default() }).contains("found job \"k\""));
    assert!(problem(LogQuery { flow: Some("x".into()), ..query.clone() }).contains("found flow \"x\""));
    assert!(problem(LogQuery { task: Some("mop".into()), ..query }).contains("expected map-N"));
    fs::write(&gate, "").unwrap();
    over(&service, fourth);
    service.stop().unwrap();
}
