//! Small schedules, explained by hand.

use slackline_model::cluster::SlotRange;
use slackline_model::cost::Objective;
use slackline_model::schedule::{Allocation, Clock, FlowRow, NewRow, TaskRows};
use slackline_model::{PhaseKind, Span, Time};
use slackline_trace::{ImportOptions, read_workload};

use super::*;

fn instance(flows: &str, slots: &str) -> Instance {
    let text = format!(
        "slackline = 1\n[cluster]\nmachines = [{{ name = \"n\", count = 1, slots = {slots} }}]\n{flows}"
    );
    let imported = read_workload("t.toml", text.as_bytes(), None, &ImportOptions::default()).unwrap();
    Instance::new(&imported.draft).unwrap()
}

fn schedule() -> Schedule {
    Schedule {
        policy: "by-hand".to_owned(),
        minima: false,
        clock: Clock::Exact,
        slowstart: 1.0,
        profile: None,
        segments: Vec::new(),
        objective: Objective::default(),
        cost: None,
        lower_bound: None,
        gap: None,
        metrics: Vec::new(),
        flows: Vec::new(),
        tasks: TaskRows::new(),
        ams: Vec::new(),
        allocations: Vec::new(),
    }
}

fn phase(instance: &Instance, name: &str) -> PhaseId {
    instance.phases().keys().find(|&phase| instance.phase_name(phase) == name).unwrap()
}

/// A row `(phase, first task, first slot, number of slots, start, end, attempt, outcome)`.
type Row<'a> = (&'a str, u32, u32, u32, u64, u64, u16, Outcome);

fn ran(instance: &Instance, rows: &[Row<'_>]) -> Schedule {
    let mut schedule = schedule();
    for &(name, first, slot, count, start, end, attempt, outcome) in rows {
        let [start, end] = [start, end].map(|s| Time(s * 1_000_000));
        let phase = phase(instance, name);
        schedule.tasks.push(
            NewRow { phase, first, count, start, end, startup: Span::ZERO, attempt, outcome },
            &[SlotRange { first: slot, len: count }],
        );
    }
    schedule
}

fn flow(instance: &Instance, name: &str) -> FlowId {
    instance.flows().iter_enumerated().find(|(_, flow)| flow.id == name).unwrap().0
}

fn waits(none: f64, below: f64, cap: f64, last: f64, lost: f64) -> Waits {
    Waits { none, below, cap, last, lost }
}

const TWO: &str = r#"
[[flows]]
id = "a"
  [[flows.jobs]]
  id = "a"
  map = { tasks = 4, seconds = 10.0 }
[[flows]]
id = "b"
deadline = 20.0
  [[flows.jobs]]
  id = "b"
  map = { tasks = 2, seconds = 10.0 }
  reduce = { tasks = 1, seconds = 5.0 }
"#;

#[test]
fn a_flow_behind_another_is_late_because_of_it() {
    let instance = instance(TWO, "2");
    let rows = [
        ("a/a/map", 0, 0, 2, 0, 10, 0, Outcome::Done),
        ("a/a/map", 2, 0, 2, 10, 20, 0, Outcome::Done),
        ("b/b/map", 0, 0, 2, 20, 30, 0, Outcome::Done),
        ("b/b/reduce", 0, 0, 1, 30, 35, 0, Outcome::Done),
    ];
    let schedule = ran(&instance, &rows);
    let found = explain(&instance, &schedule, flow(&instance, "b"), None).unwrap();
    assert_eq!((found.started, found.completed, found.until), (Some(20.0), Some(35.0), 35.0));
    assert_eq!(found.order, Order { started: Some(2), completed: Some(2), of: 2 });
    assert_eq!(found.chain, [phase(&instance, "b/b/map"), phase(&instance, "b/b/reduce")]);
    assert_eq!(found.waits, waits(20.0, 0.0, 15.0, 0.0, 20.0));
    let job = instance.flow(flow(&instance, "a")).jobs().next().unwrap();
    let others = vec![Blocker { job, slot_seconds: 40.0, waiting: 0.0 }];
    assert_eq!(found.blocked, Blocked { seconds: 20.0, idle: 0.0, ams: 0.0, own: 0.0, others });
    let deadline = found.deadline.unwrap();
    assert_eq!((deadline.verdict, deadline.lateness), (Verdict::Slots, Some(15.0)));
    assert_eq!((deadline.least, deadline.alone, deadline.start_by), (15.0, 15.0, Some(5.0)));
    assert_eq!((deadline.needs[0].needed, deadline.needs[0].held, deadline.less_urgent), (1.25, 0.0, 40.0));
}

#[test]
fn running_tasks_hold_slots_until_now() {
    let instance = instance(TWO, "2");
    let schedule = ran(&instance, &[("b/b/map", 0, 1, 1, 10, 20, 0, Outcome::Done)]);
    let [a, b] = ["a", "b"].map(|name| flow(&instance, name));
    let now = |phase_of: &str, since| TaskNow { phase: phase(&instance, phase_of), since };
    let at_work = [now("a/a/map", 0.0), now("b/b/map", 22.0)];
    let unfinished = |at_work| Unfinished { at_work, now: 26.0, open: &|_| true };
    let explainer = Explainer::so_far(&instance, &schedule, &unfinished(&at_work));
    let found = explainer.explain(b, None).unwrap();
    assert_eq!((found.until, found.completed, found.losses.len()), (26.0, None, 0));
    assert_eq!(found.waits, waits(12.0, 10.0, 0.0, 4.0, 17.0));
    let [other] = found.blocked.others[..] else { panic!("{:?}", found.blocked) };
    assert_eq!((instance.job(other.job).flow, other.slot_seconds), (a, 22.0));
    assert_eq!((found.blocked.own, found.blocked.idle), (10.0, 12.0));
    // An unfinished flow without running tasks waits until now, and a finished one does not.
    let at_work = [now("a/a/map", 0.0), now("a/a/map", 3.0)];
    let waiting = ran(&instance, &[]);
    let found = Explainer::so_far(&instance, &waiting, &unfinished(&at_work)).explain(b, None).unwrap();
    assert_eq!((found.started, found.until, found.waits), (None, 26.0, waits(26.0, 0.0, 0.0, 0.0, 26.0)));
    let held: Vec<f64> = found.blocked.others.iter().map(|other| other.slot_seconds).collect();
    assert_eq!((held, found.blocked.idle), (vec![49.0], 3.0));
    let over = Unfinished { open: &|flow| flow == a, ..unfinished(&at_work) };
    assert_eq!(Explainer::so_far(&instance, &waiting, &over).explain(b, None).unwrap().until, 0.0);
}

#[test]
fn a_plan_is_explained_from_its_allocations() {
    let instance = instance(TWO, "4");
    let mut schedule = schedule();
    let rows = [
        ("b/b/map", 0.0, 10.0, 2),
        ("a/a/map", 0.0, 15.0, 2),
        ("b/b/reduce", 10.0, 15.0, 1),
        ("a/a/map", 15.0, 17.5, 4),
    ];
    for (name, start, end, slots) in rows {
        schedule.allocations.push(Allocation { phase: phase(&instance, name), start, end, slots });
    }
    let found = explain(&instance, &schedule, flow(&instance, "a"), None).unwrap();
    assert_eq!(found.waits, waits(0.0, 15.0, 2.5, 0.0, 7.5));
    assert_eq!((found.blocked.seconds, found.blocked.own, found.blocked.idle), (15.0, 30.0, 5.0));
    assert_eq!(found.blocked.others[0].slot_seconds, 25.0);
    assert_eq!((found.phases[0].mean, found.phases[0].most), (Some(40.0 / 17.5), 4));
    let met = explain(&instance, &schedule, flow(&instance, "b"), None).unwrap();
    assert_eq!(met.deadline.unwrap().verdict, Verdict::Met);
}

#[test]
fn idle_slots_and_last_tasks_are_distinguished() {
    let text = "[[flows]]\nid = \"a\"\n[[flows.jobs]]\nid = \"a\"\nmap = { tasks = 3, seconds = 10.0 }\n";
    let instance = instance(text, "2");
    let rows =
        [("a/a/map", 0, 0, 2, 0, 10, 0, Outcome::Done), ("a/a/map", 2, 1, 1, 12, 22, 0, Outcome::Done)];
    let found = explain(&instance, &ran(&instance, &rows), FlowId(0), None).unwrap();
    assert_eq!(found.waits, waits(2.0, 0.0, 10.0, 10.0, 2.0));
    assert_eq!((found.blocked.seconds, found.blocked.idle, found.blocked.own), (2.0, 4.0, 0.0));
}

#[test]
fn reduces_that_take_slots_early_are_seen_on_both_sides() {
    let text = r#"
[[flows]]
id = "a"
  [[flows.jobs]]
  id = "a"
  map = { tasks = 2, seconds = 10.0 }
  reduce = { tasks = 1, seconds = 5.0 }
[[flows]]
id = "b"
release = 10.0
  [[flows.jobs]]
  id = "b"
  reduce = { tasks = 1, seconds = 5.0 }
"#;
    let instance = instance(text, "{ map = 1, reduce = 1 }");
    let rows = [
        ("a/a/map", 0, 0, 1, 0, 10, 0, Outcome::Done),
        ("a/a/map", 1, 0, 1, 10, 20, 0, Outcome::Done),
        ("a/a/reduce", 0, 0, 1, 10, 25, 0, Outcome::Done),
        ("b/b/reduce", 0, 0, 1, 25, 30, 0, Outcome::Done),
    ];
    let schedule = ran(&instance, &rows);
    let early = explain(&instance, &schedule, FlowId(0), None).unwrap();
    assert_eq!((early.phases[1].early, early.waits.total()), (10.0, 25.0));
    let other = explain(&instance, &schedule, FlowId(1), None).unwrap();
    assert_eq!((other.blocked.others[0].slot_seconds, other.blocked.others[0].waiting), (15.0, 10.0));
}

#[test]
fn a_failed_flow_names_its_tasks() {
    let instance = instance(TWO, "2");
    let rows = [
        ("b/b/map", 0, 0, 2, 0, 10, 0, Outcome::Failed),
        ("b/b/map", 0, 0, 1, 10, 20, 1, Outcome::Done),
        ("b/b/map", 1, 1, 1, 10, 15, 1, Outcome::Failed),
    ];
    let mut schedule = ran(&instance, &rows);
    let (id, map) = (flow(&instance, "b"), phase(&instance, "b/b/map"));
    let row = FlowRow {
        flow: id,
        release: 0.0,
        start: Some(0.0),
        completion: None,
        cost: None,
        status: FlowResult::Failed,
    };
    schedule.flows.push(row);
    let found = explain(&instance, &schedule, id, None).unwrap();
    assert!(found.failed && found.completed.is_none());
    let failure = |task, attempts, last| Failure { phase: map, task, attempts, last };
    assert_eq!(found.failures, [failure(0, 1, 10.0), failure(1, 2, 15.0)]);
    assert_eq!(found.cause, Some(FailureCause { job: instance.phase(map).job, reason: None }));
    assert_eq!(found.deadline.as_ref().unwrap().verdict, Verdict::Failed);
    // The second task could start from 15 s on.
    assert_eq!((found.until, found.waits), (20.0, waits(0.0, 5.0, 15.0, 0.0, 2.5)));
    assert_eq!(found.phase(phase(&instance, "b/b/reduce")).unwrap().ready, None);
}

#[test]
fn deadlines_that_no_order_makes_are_recognised() {
    let verdict = |tasks: u32, seconds: f64, end: u64| {
        let text = format!(
            "[[flows]]\nid = \"a\"\ndeadline = 20.0\n[[flows.jobs]]\nid = \"a\"\nmap = {{ tasks = {tasks}, seconds = {seconds} }}\n"
        );
        let instance = instance(&text, "2");
        let rows = [("a/a/map", 0, 0, tasks.min(2), 0, end, 0, Outcome::Done)];
        explain(&instance, &ran(&instance, &rows), FlowId(0), None).unwrap().deadline.unwrap().verdict
    };
    assert_eq!(verdict(1, 30.0, 30), Verdict::Impossible);
    assert_eq!(verdict(10, 10.0, 50), Verdict::TooSmall);
    assert_eq!(verdict(2, 15.0, 30), Verdict::NotEnough);
}

#[test]
fn the_chain_goes_through_the_job_that_was_done_last() {
    let text = r#"
[[flows]]
id = "a"
release = 1.0
  [[flows.jobs]]
  id = "long"
  map = { tasks = 1, seconds = 9.0 }
  [[flows.jobs]]
  id = "short"
  map = { tasks = 1, seconds = 2.0 }
  [[flows.jobs]]
  id = "last"
  after = ["long", "short"]
  map = { tasks = 1, seconds = 3.0 }
"#;
    let instance = instance(text, "2");
    let rows = [
        ("a/long/map", 0, 0, 1, 1, 10, 0, Outcome::Done),
        ("a/short/map", 0, 1, 1, 1, 3, 0, Outcome::Done),
        ("a/last/map", 0, 0, 1, 11, 14, 0, Outcome::Done),
    ];
    let schedule = ran(&instance, &rows);
    let found = explain(&instance, &schedule, FlowId(0), None).unwrap();
    assert_eq!(found.chain, [phase(&instance, "a/long/map"), phase(&instance, "a/last/map")]);
    assert_eq!(found.waits, waits(1.0, 0.0, 12.0, 0.0, 1.0));
    let job = |name: &str| instance.jobs().iter_enumerated().find(|(_, job)| job.id == name).unwrap().0;
    let short = explain(&instance, &schedule, FlowId(0), Some(job("short"))).unwrap();
    assert!(!short.decides && short.phases.len() == 1 && short.until == 3.0);
    let last = explain(&instance, &schedule, FlowId(0), Some(job("last"))).unwrap();
    assert!(last.decides && last.chain.len() == 2);
    assert_eq!(instance.phase(last.chain[0]).kind, PhaseKind::Map);
}
