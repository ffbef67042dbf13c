//! The driver loop against a scripted engine: the events of the policy, the end of a run, and its result.

use std::cell::Cell;

use super::*;
use crate::engine::{Batch, Order, RowId, Running};
use crate::log::FlowEnd;
use crate::testing::{
    FLOW, Listed, Scripted, arrived, failed, finished, flow, instance, machines, seconds, uniform,
};
use slackline_model::draft::{Draft, FlowDraft, Weights};
use slackline_model::schedule::{FlowResult, Outcome};
use slackline_model::{Combine, Metric, Objective, PhaseId};

/// Flows of two maps of 3 s on one machine of two slots, cost = response.
fn flows(n: usize) -> Instance {
    let flows = ["f", "g", "h"][..n].iter().map(|id| flow(id, uniform(2, 3.0), None));
    instance(vec![machines("m", 1, 2)], flows.collect())
}

/// A policy that serves the phases in the order of their ids.
fn granting(instance: &Instance) -> Listed {
    let order: Vec<(u32, u32)> = (0..instance.phases().len() as u32).map(|phase| (phase, 9)).collect();
    Listed::granting(&order)
}

fn audited<'a>() -> Config<'a> {
    Config { audit: true, ..Config::plain() }
}

#[test]
fn all_events_of_an_instant_come_in_one_call_in_the_order_of_the_reports() {
    let instance = flows(2);
    let mut engine = Scripted::reporting([
        (seconds(0), vec![arrived(&instance, 0)]),
        (seconds(3), vec![finished(0, seconds(3)), arrived(&instance, 1), Report::Woken]),
    ]);
    let mut policy = granting(&instance);
    run(&instance, &mut policy, &mut engine, audited());
    let [a, b] = [0, 1].map(PhaseId);
    assert_eq!(policy.calls[0], [Event::FlowArrived(FLOW), Event::PhaseReady(a)]);
    assert_eq!(
        policy.calls[1][1..],
        [
            Event::PhaseDone(a),
            Event::JobDone(slackline_model::JobId(0)),
            Event::FlowDone(FLOW),
            Event::FlowArrived(FlowId(1)),
            Event::PhaseReady(b),
            Event::Wake,
        ]
    );
    assert!(matches!(policy.calls[1][0], Event::TasksDone { count: 2, .. }));
    assert_eq!(policy.calls.len(), 2);
}

#[test]
fn a_policy_is_not_bothered_when_nothing_happened() {
    let instance = flows(1);
    let offer = || vec![Report::Offer(MachineId(0))];
    let mut engine = Scripted::reporting([
        (seconds(0), offer()),
        (seconds(1), vec![arrived(&instance, 0)]),
        (seconds(2), offer()),
    ]);
    engine.capabilities.offers = Offers::Heartbeat;
    let mut policy = granting(&instance);
    let run = run(&instance, &mut policy, &mut engine, audited());
    assert_eq!(policy.calls.len(), 1);
    // Its slots are used at its offer, not before.
    assert_eq!(run.started[FLOW], Some(seconds(2)));
}

#[test]
fn the_run_ends_with_its_last_flow() {
    let instance = flows(1);
    let later = (seconds(9), vec![Report::Woken]);
    let mut engine = Scripted::reporting([
        (seconds(0), vec![arrived(&instance, 0)]),
        (seconds(4), vec![finished(0, seconds(3))]),
        later,
    ]);
    let run = run(&instance, &mut granting(&instance), &mut engine, audited());
    assert_eq!(engine.script.len(), 1, "the driver must not ask what comes later");
    assert_eq!((run.completions[FLOW], run.started[FLOW]), (Some(seconds(3)), Some(seconds(0))));
    assert_eq!((run.figures.reports, run.figures.decisions), (2, 1));
}

#[test]
fn the_run_ends_when_no_further_event_is_possible() {
    let instance = flows(2);
    let mut engine =
        Scripted::reporting([(seconds(0), vec![arrived(&instance, 0)]), (seconds(1), vec![Report::Woken])]);
    let run = run(&instance, &mut granting(&instance), &mut engine, audited());
    assert_eq!(run.completions.raw, [None, None]);
    let row = run.tasks.row(0);
    assert_eq!((row.end, row.outcome), (seconds(1), Outcome::Killed));
    assert_eq!(run.started.raw, [Some(seconds(0)), None]);
}

#[test]
fn the_run_ends_when_a_task_reaches_the_limit_on_attempt_numbers() {
    let instance = flows(1);
    let machine = MachineId(0);
    let again = |k: u64| (Time(k), vec![Report::Down(machine), Report::Up(machine)]);
    let first = (Time::ZERO, vec![arrived(&instance, 0)]);
    let mut engine = Scripted::new(Batch::Machine, true);
    engine.script = std::iter::once(first).chain((1..70_000).map(again)).collect();
    let run = run(&instance, &mut granting(&instance), &mut engine, Config::plain());
    assert_eq!(run.completions[FLOW], None);
    assert_eq!(run.tasks.len(), 1 << 16, "attempts 0 to 65,535");
}

#[test]
fn a_flow_that_is_withdrawn_is_stopped_and_may_come_again_with_what_runs_of_it() {
    let whole = flows(2);
    let again = instance(vec![machines("m", 1, 2)], vec![flow("f", uniform(1, 3.0), None)]);
    let runs = Report::Running(Running { name: 7, phase: PhaseId(2), task: 0, slot: 1, since: seconds(0) });
    let mut engine = Scripted::reporting([
        (seconds(0), vec![arrived(&whole, 0), arrived(&whole, 1)]),
        (seconds(1), vec![Report::Withdrawn(FLOW), arrived(&again, 0), runs]),
        (seconds(2), vec![Report::Withdrawn(FLOW), Report::Withdrawn(FlowId(9))]),
        (seconds(3), vec![finished(1, seconds(3)), finished(2, seconds(3))]),
        (seconds(6), vec![finished(3, seconds(4)), finished(4, seconds(6))]),
    ]);
    engine.capabilities.batch = Batch::Task;
    let mut policy = Listed::granting(&[(0, 9), (2, 9), (1, 9)]);
    let mut sink = Ends::default();
    let mut driver = Driver::new(whole.without_flows(), &mut policy, &mut engine, &mut sink, audited());
    while driver.step() {}
    driver.close();
    // Both of its maps have started. One continues in another row, beside a map of the flow that waited.
    let begun: Vec<(u32, u32)> =
        engine.starts.iter().map(|start| (start.phase, start.places[0].first)).collect();
    assert_eq!(begun, [(0, 0), (0, 1), (2, 1), (1, 0), (1, 1)]);
    assert_eq!(engine.orders, [Order::Kill(RowId(0)), Order::Kill(RowId(1))]);
    assert!(policy.calls[1].starts_with(&[
        Event::TasksLost { phase: PhaseId(0), count: 1 },
        Event::TasksLost { phase: PhaseId(0), count: 1 },
        Event::FlowFailed(FLOW),
        Event::FlowArrived(FlowId(2)),
    ]));
    let expected = [(0, None), (2, Some(seconds(3))), (1, Some(seconds(6)))];
    assert_eq!(sink.0, expected.map(|(flow, at)| (FlowId(flow), at)));
}

/// The ends of flows, in order.
#[derive(Default)]
struct Ends(Vec<(FlowId, Option<Time>)>);

impl Sink for Ends {
    fn flow(&mut self, end: &FlowEnd, _: &Instance) {
        self.0.push((end.flow, end.completion));
    }
}

/// A policy that fails at its n-th call.
struct Failing {
    calls_left: u32,
    served: Listed,
}

impl Policy for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn style(&self) -> Style {
        self.served.style()
    }

    fn failure(&self) -> Option<&str> {
        (self.calls_left == 0).then_some("it has nothing more to say")
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.calls_left -= 1;
        self.served.on_events(events, view, out);
    }
}

#[test]
fn the_run_ends_when_the_policy_fails_and_no_action_of_that_call_is_applied() {
    let instance = flows(2);
    for (calls_left, polled, carried_out) in [(0, 0, false), (1, 1, false), (2, 2, true)] {
        let mut engine = Scripted::reporting([
            (seconds(0), vec![arrived(&instance, 0)]),
            (seconds(1), vec![arrived(&instance, 1)]),
            (seconds(2), vec![Report::Woken]),
        ]);
        // Slots go to phases without a target too, so only the failure prevents starts.
        let served = Listed::pushing(Style::Targets, vec![Action::WakeAt(seconds(2))]);
        let mut policy = Failing { calls_left, served };
        let run = run(&instance, &mut policy, &mut engine, audited());
        assert_eq!(run.figures.failure.as_deref(), Some("it has nothing more to say"));
        assert_eq!(3 - engine.script.len(), polled, "{calls_left}");
        let done = [!engine.starts.is_empty(), !engine.wakes.is_empty()];
        assert_eq!(done, [carried_out; 2], "{calls_left}");
    }
}

#[test]
fn a_flow_whose_task_fails_too_often_has_no_completion_and_the_schedule_no_cost() {
    let instance = flows(2);
    let script = || {
        Scripted::reporting([
            (seconds(0), vec![arrived(&instance, 0), arrived(&instance, 1)]),
            (seconds(1), vec![failed(0, seconds(1))]),
            (seconds(5), vec![finished(1, seconds(5))]),
        ])
    };
    // A task gets at least one attempt, even with a limit of 0. With a limit of 2 the first flow would run
    // again.
    for (attempts_max, done) in [(0, [None, Some(5.0)]), (1, [None, Some(5.0)]), (2, [Some(5.0), None])] {
        let config = Config { attempts_max, ..audited() };
        let run = run(&instance, &mut granting(&instance), &mut script(), config);
        assert_eq!(run.completions.raw, done.map(|d| d.map(Time::from_seconds_nearest)), "{attempts_max}");
        let schedule = run.schedule(&instance, "listed", Clock::Exact);
        let rows: Vec<_> = schedule.flows.iter().map(|row| (row.completion, row.cost)).collect();
        assert_eq!(rows, done.map(|d| (d, d)), "{attempts_max}");
        assert_eq!(schedule.cost, None);
        let failed = schedule.flows.iter().map(|row| row.status == FlowResult::Failed);
        assert_eq!(failed.collect::<Vec<_>>(), done.map(|d| d.is_none()));
    }
}

#[test]
fn the_schedule_says_what_the_flows_cost_together() {
    let late = FlowDraft { release: 2.0, weight: 3.0, ..flow("g", uniform(1, 1.0), None) };
    for (combine, cost) in [(Combine::Sum, 1.0 + 3.0 * 4.0), (Combine::Max, 12.0)] {
        let draft = Draft {
            machines: vec![machines("m", 1, 2)],
            flows: vec![flow("f", uniform(1, 1.0), None), late.clone()],
            objective: Objective::new(Metric::Response, combine),
            weights: Weights::Use,
            ..Draft::default()
        };
        let instance = Instance::new(&draft).unwrap();
        let mut engine = Scripted::reporting([
            (seconds(0), vec![arrived(&instance, 0)]),
            (seconds(1), vec![finished(0, seconds(1))]),
            (seconds(2), vec![arrived(&instance, 1)]),
            (seconds(6), vec![finished(1, seconds(6))]),
        ]);
        let run = run(&instance, &mut granting(&instance), &mut engine, audited());
        let schedule = run.schedule(&instance, "listed", Clock::Measured);
        assert_eq!(schedule.cost, Some(cost));
        assert_eq!((schedule.policy.as_str(), schedule.clock), ("listed", Clock::Measured));
        let second = &schedule.flows[1];
        assert_eq!((second.release, second.start, second.completion), (2.0, Some(2.0), Some(6.0)));
        assert_eq!(second.status, FlowResult::Done);
    }
}

#[test]
fn minima_are_promised_only_where_a_free_slot_is_given_at_once() {
    let instance = flows(1);
    let claims = |keeps_minima, locality_wait, offers| {
        let mut engine = Scripted::reporting([]);
        engine.capabilities.offers = offers;
        let mut policy = Listed { keeps_minima, ..granting(&instance) };
        let config = Config { locality_wait, ..audited() };
        run(&instance, &mut policy, &mut engine, config).schedule(&instance, "listed", Clock::Exact).minima
    };
    assert!(claims(true, Span::ZERO, Offers::Immediate));
    assert!(!claims(false, Span::ZERO, Offers::Immediate));
    assert!(!claims(true, Span(1), Offers::Immediate));
    assert!(!claims(true, Span::ZERO, Offers::Heartbeat));
}

#[test]
fn slow_start_reaches_the_schedule() {
    let instance = flows(1);
    let config = Config { slowstart: 0.25, ..audited() };
    let run = run(&instance, &mut granting(&instance), &mut Scripted::reporting([]), config);
    assert_eq!(run.schedule(&instance, "listed", Clock::Exact).slowstart, 0.25);
}

#[test]
fn estimates_are_updated_before_the_policy_receives_the_event() {
    let instance = flows(2);
    let learning = Learning::new(instance.cluster(), &History::new());
    let mut engine = Scripted::reporting([
        (seconds(0), vec![arrived(&instance, 0)]),
        (seconds(3), vec![finished(0, seconds(3))]),
    ]);
    let mut policy = granting(&instance);
    let config = Config { learning: Some(learning), ..audited() };
    let run = run(&instance, &mut policy, &mut engine, config);
    assert_eq!(policy.estimated, [1.0, 3.0]);
    let history = run.figures.history.unwrap();
    let known: Vec<_> =
        history.records().map(|(name, _, record)| (name.flow.as_str(), record.tasks)).collect();
    assert_eq!(known, [("f", 2)]);
}

#[test]
fn estimates_without_evidence_stay_unchanged() {
    let instance = flows(1);
    let mut engine = Scripted::reporting([
        (seconds(0), vec![arrived(&instance, 0)]),
        (seconds(9), vec![finished(0, seconds(9))]),
    ]);
    let mut policy = granting(&instance);
    let run = run(&instance, &mut policy, &mut engine, audited());
    assert_eq!((policy.estimated, run.figures.history), (vec![3.0, 3.0], None));
}

#[test]
fn decisions_are_timed_by_the_stopwatch_given() {
    let instance = flows(1);
    let script = || {
        Scripted::reporting([(seconds(0), vec![arrived(&instance, 0)]), (seconds(1), vec![Report::Woken])])
    };
    let calls = Cell::new(0);
    let clock = || {
        calls.set(calls.get() + 1);
        10 * calls.get() * calls.get()
    };
    let config = Config { stopwatch: Some(&clock), ..audited() };
    // 10, 40 and 90, 160.
    assert_eq!(
        run(&instance, &mut granting(&instance), &mut script(), config).figures.decision_nanos,
        [30, 70]
    );
    assert_eq!(run(&instance, &mut granting(&instance), &mut script(), audited()).figures.decision_nanos, []);
}

#[test]
fn progress_is_reported_from_time_to_time() {
    let instance = flows(1);
    let reports = |instants: u64| {
        let wakes = (1..instants).map(|k| (Time(k), vec![Report::Woken]));
        let first = (Time::ZERO, vec![arrived(&instance, 0)]);
        let mut engine = Scripted::reporting(std::iter::once(first).chain(wakes));
        let mut reports = 0;
        let mut progress = |_| reports += 1;
        let config = Config { progress: Some(&mut progress), ..Config::plain() };
        run(&instance, &mut granting(&instance), &mut engine, config);
        reports
    };
    assert_eq!([4095, 4096, 8191, 8192].map(reports), [0, 1, 1, 2]);
}

#[test]
fn progress_is_how_many_tasks_are_done() {
    let instance = flows(2);
    let wakes = (4..4200).map(|k| (seconds(k), vec![Report::Woken]));
    let script = [(Time::ZERO, vec![arrived(&instance, 0)]), (seconds(3), vec![finished(0, seconds(3))])];
    let mut engine = Scripted::reporting(script.into_iter().chain(wakes));
    engine.may_bring_flows = true;
    let mut reported = Vec::new();
    let mut progress = |done| reported.push(done);
    let config = Config { progress: Some(&mut progress), ..Config::plain() };
    run(&instance, &mut granting(&instance), &mut engine, config);
    assert_eq!(reported, [2]);
}

#[test]
fn an_action_of_a_policy_is_applied_once() {
    let instance = flows(1);
    let mut engine =
        Scripted::reporting([(seconds(0), vec![arrived(&instance, 0)]), (seconds(1), vec![Report::Woken])]);
    let mut policy = Listed::pushing(Style::Priorities, vec![Action::WakeAt(seconds(9))]);
    run(&instance, &mut policy, &mut engine, audited());
    assert_eq!(engine.wakes, [seconds(9)]);
}

#[test]
fn a_queue_advances_when_its_machine_has_a_slot_again() {
    let instance = instance(vec![machines("m", 1, 1)], vec![flow("f", uniform(3, 1.0), None)]);
    let mut engine = Scripted::reporting([
        (seconds(0), vec![arrived(&instance, 0)]),
        (seconds(1), vec![finished(0, seconds(1))]),
        (seconds(2), vec![finished(1, seconds(2))]),
        (seconds(3), vec![finished(2, seconds(3))]),
    ]);
    let place = Action::Place { machine: MachineId(0), phase: PhaseId(0), first: 0, count: 3 };
    let mut policy = Listed::pushing(Style::Placements, vec![place]);
    let run = run(&instance, &mut policy, &mut engine, audited());
    assert_eq!(run.completions[FLOW], Some(seconds(3)));
}

#[test]
fn a_phase_without_length_needs_no_slot_and_no_row() {
    // The only slot is busy until 3; the other flow needs none.
    let flows = vec![flow("f", uniform(1, 3.0), None), flow("g", uniform(5, 0.0), uniform(2, 0.0))];
    let instance = instance(vec![machines("m", 1, 1)], flows);
    let mut engine = Scripted::reporting([
        (seconds(0), vec![arrived(&instance, 0), arrived(&instance, 1)]),
        (seconds(3), vec![finished(0, seconds(3))]),
    ]);
    let run = run(&instance, &mut granting(&instance), &mut engine, audited());
    assert_eq!(run.completions.raw, [Some(seconds(3)), Some(seconds(0))]);
    assert_eq!(run.tasks.len(), 1);
    let schedule = run.schedule(&instance, "p", Clock::Exact);
    assert_eq!(schedule.flows[1].start, Some(0.0), "without ever holding a slot it started when it was done");
}
