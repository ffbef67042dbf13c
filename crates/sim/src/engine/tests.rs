//! Drives the simulator by hand: its reports, and its reactions to orders.

use super::*;
use crate::crashes::Crash;
use crate::in_vain::FAILURES_IN_VAIN;
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Seed, SlotRange};

/// Machines of one slot each with these speeds, and flows of maps of 3 s released at these seconds.
fn instance(speeds: &[f64], releases: &[f64]) -> Instance {
    let machine = |(k, &speed): (usize, &f64)| MachineDraft {
        name: format!("m{k}"),
        count: 1,
        speed,
        slots: Slots::Generic(1),
        rack: None,
    };
    let map = Some(TasksDraft::Uniform { tasks: 4, seconds: 3.0 }.into());
    let jobs = vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }];
    let flow =
        |(k, &release): (usize, &f64)| FlowDraft { release, ..FlowDraft::new(format!("f{k}"), jobs.clone()) };
    Instance::new(&Draft {
        machines: speeds.iter().enumerate().map(machine).collect(),
        flows: releases.iter().enumerate().map(flow).collect(),
        ..Draft::default()
    })
    .unwrap()
}

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000)
}

fn poll(sim: &mut Sim<'_>) -> Option<(Time, Vec<Report>)> {
    let mut reports = Vec::new();
    sim.poll(&mut reports).map(|time| (time, reports))
}

/// The next reports.
fn next(sim: &mut Sim<'_>) -> (Time, Vec<Report>) {
    poll(sim).expect("something happens")
}

/// Starts `count` tasks of the first phase, from the slot with the number of the machine.
fn start(sim: &mut Sim<'_>, live: &Instance, row: u32, machine: u32, count: u32) {
    begin(sim, live, row, (machine, count), false);
}

/// Starts a task that waits for [`Order::Go`].
fn hold(sim: &mut Sim<'_>, live: &Instance, row: u32, machine: u32) {
    begin(sim, live, row, (machine, 1), true);
}

fn begin(sim: &mut Sim<'_>, live: &Instance, row: u32, (machine, count): (u32, u32), held: bool) {
    let places = [SlotRange { first: machine, len: count }];
    sim.start(&Start { count, held, ..one_task(row, sim.now, &places) }, live);
}

/// The first task of the first phase, from now on.
fn one_task(row: u32, since: Time, places: &[SlotRange]) -> Start<'_> {
    let (row, phase) = (RowId(row), PhaseId(0));
    Start { row, since, reported_as: None, phase, first: 0, count: 1, attempt: 0, places, held: false }
}

fn finished(row: u32, end: Time) -> Report {
    Report::Finished { row: RowId(row), at: end }
}

fn arrived(instance: &Instance, flow: u32) -> Report {
    Report::Arrived(Box::new(instance.excerpt(FlowId(flow))))
}

const M0: MachineId = MachineId(0);
const M1: MachineId = MachineId(1);

/// A simulation in which the first machine dies and, maybe, comes back at these seconds.
fn dying(instance: &Instance, dies: u64, back: Option<u64>) -> Sim<'_> {
    let crash = Crash { machine: M0, at: at(dies), back: back.map(at) };
    Sim::new(instance, Options { crashes: Crashes::Script(vec![crash]), ..Options::exact() })
}

fn beating(instance: &Instance, seconds: u64) -> Sim<'_> {
    Sim::new(instance, Options { heartbeat: Span(seconds * 1_000_000), ..Options::exact() })
}

#[test]
fn flows_arrive_by_release_then_id_and_together_in_one_report() {
    let instance = instance(&[1.0], &[5.0, 2.0, 5.0]);
    let mut sim = Sim::new(&instance, Options::exact());
    assert_eq!(next(&mut sim), (at(2), vec![arrived(&instance, 1)]));
    assert_eq!(next(&mut sim), (at(5), vec![arrived(&instance, 0), arrived(&instance, 2)]));
    assert_eq!(poll(&mut sim), None);
}

#[test]
fn a_batch_ends_after_its_length_over_the_speed_of_its_slots() {
    let instance = instance(&[2.0, 0.5], &[1.0]);
    let mut sim = Sim::new(&instance, Options::exact());
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    start(&mut sim, &instance, 1, 1, 1);
    assert_eq!(next(&mut sim), (Time(2_500_000), vec![finished(0, Time(2_500_000))]));
    assert_eq!(next(&mut sim), (at(7), vec![finished(1, at(7))]));
}

#[test]
fn events_of_one_instant_are_reported_in_the_order_of_cause_and_effect() {
    let instance = instance(&[1.0, 1.0], &[0.0, 3.0]);
    let crash = |machine, dies, back| Crash { machine, at: at(dies), back: Some(at(back)) };
    let crashes = Crashes::Script(vec![crash(M0, 3, 9), crash(M1, 1, 3)]);
    let mut sim = Sim::new(&instance, Options { crashes, ..Options::exact() });
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    assert_eq!(next(&mut sim), (at(1), vec![Report::Down(M1)]));
    sim.wake_at(at(3));
    let expected =
        [finished(0, at(3)), Report::Down(M0), Report::Up(M1), Report::Woken, arrived(&instance, 1)];
    assert_eq!(next(&mut sim), (at(3), expected.to_vec()));
}

#[test]
fn wakes_of_one_instant_are_one_and_never_in_the_past() {
    let instance = instance(&[1.0], &[4.0]);
    let mut sim = Sim::new(&instance, Options::exact());
    next(&mut sim);
    for seconds in [6, 1, 6] {
        sim.wake_at(at(seconds));
    }
    assert_eq!(next(&mut sim), (at(4), vec![Report::Woken]));
    assert_eq!(next(&mut sim), (at(6), vec![Report::Woken]));
    assert_eq!(poll(&mut sim), None);
}

#[test]
fn a_held_batch_computes_from_when_it_may_or_from_when_it_started() {
    let instance = instance(&[1.0, 1.0], &[5.0]);
    let mut sim = Sim::new(&instance, Options::exact());
    next(&mut sim);
    hold(&mut sim, &instance, 0, 0);
    hold(&mut sim, &instance, 1, 1);
    assert_eq!(poll(&mut sim), None, "it waits");
    sim.order(Order::Go { row: RowId(0), since: at(4) });
    sim.now = at(7);
    sim.order(Order::Go { row: RowId(1), since: at(6) });
    assert_eq!(next(&mut sim), (at(8), vec![finished(0, at(8))]));
    assert_eq!(next(&mut sim), (at(9), vec![finished(1, at(9))]));
}

#[test]
fn a_held_batch_is_released_once() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = Sim::new(&instance, Options::exact());
    next(&mut sim);
    hold(&mut sim, &instance, 0, 0);
    for since in [1, 2] {
        sim.order(Order::Go { row: RowId(0), since: at(since) });
    }
    assert_eq!(next(&mut sim), (at(4), vec![finished(0, at(4))]));
    assert_eq!(poll(&mut sim), None);
}

#[test]
fn a_batch_that_is_put_off_starts_over() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = dying(&instance, 100, None);
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    sim.now = at(2);
    sim.order(Order::Hold(RowId(0)));
    sim.now = at(3);
    sim.order(Order::Go { row: RowId(0), since: at(3) });
    // Without the delay it would have ended at 3.
    assert_eq!(next(&mut sim), (at(6), vec![finished(0, at(6))]));
}

#[test]
fn a_batch_that_has_ended_cannot_be_put_off() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = beating(&instance, 10);
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    sim.now = at(3);
    sim.order(Order::Hold(RowId(0)));
    assert_eq!(next(&mut sim), (at(10), vec![finished(0, at(3)), Report::Offer(M0)]));
}

#[test]
fn a_stopped_batch_is_not_reported_again() {
    let instance = instance(&[1.0, 1.0], &[0.0]);
    let mut sim = dying(&instance, 100, None);
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    start(&mut sim, &instance, 1, 1, 1);
    sim.order(Order::Kill(RowId(0)));
    assert_eq!(next(&mut sim), (at(3), vec![finished(1, at(3))]));
    assert_eq!(next(&mut sim), (at(100), vec![Report::Down(M0)]));
    assert_eq!(sim.ending, 0);
}

#[test]
fn capabilities_follow_from_the_options() {
    let instance = instance(&[1.0], &[0.0]);
    let of = |options: Options| Sim::new(&instance, options).capabilities();
    let plain = Capabilities {
        batch: Batch::Speed,
        faults: Faults::Never,
        offers: Offers::Immediate,
        lengths: Lengths::Known,
        ams: None,
    };
    assert_eq!(of(Options::exact()), plain);
    let jitter = Options { jitter: 0.1, ..Options::exact() };
    assert_eq!(of(jitter), Capabilities { batch: Batch::Task, ..plain });
    let heartbeat = Options { heartbeat: Span(1), ..Options::exact() };
    assert_eq!(of(heartbeat), Capabilities { batch: Batch::Machine, offers: Offers::Heartbeat, ..plain });
    let crashes = Crashes::Rate { between: Span(1), repair: Span(1) };
    let crashes = Options { crashes, ..Options::exact() };
    assert_eq!(of(crashes), Capabilities { batch: Batch::Machine, faults: Faults::TasksAndOutput, ..plain });
}

#[test]
fn ends_are_reported_with_the_next_heartbeat_of_their_machine() {
    let instance = instance(&[1.0, 1.0], &[0.0]);
    // Heartbeats at 0, 10, … and 5, 15, ….
    let mut sim = beating(&instance, 10);
    assert_eq!(next(&mut sim), (at(0), vec![arrived(&instance, 0), Report::Offer(M0)]));
    start(&mut sim, &instance, 0, 0, 1);
    assert_eq!(next(&mut sim), (at(5), vec![Report::Offer(M1)]));
    start(&mut sim, &instance, 1, 1, 1);
    assert_eq!(next(&mut sim), (at(10), vec![finished(0, at(3)), Report::Offer(M0)]));
    assert_eq!(next(&mut sim), (at(15), vec![finished(1, at(8)), Report::Offer(M1)]));
    // The end of the second batch may give work to the first machine, which was idle before.
    assert_eq!(next(&mut sim), (at(20), vec![Report::Offer(M0)]));
    assert_eq!(poll(&mut sim), None);
}

#[test]
fn slots_of_a_stopped_batch_are_offered_although_nothing_else_happens() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = beating(&instance, 10);
    next(&mut sim);
    hold(&mut sim, &instance, 0, 0);
    assert_eq!(poll(&mut sim), None);
    sim.now = at(12);
    sim.order(Order::Kill(RowId(0)));
    assert_eq!(next(&mut sim), (at(20), vec![Report::Offer(M0)]));
}

#[test]
fn unreported_ends_are_reported_with_the_failure_of_their_machine() {
    let instance = instance(&[1.0, 1.0], &[0.0]);
    let crash = Crash { machine: M0, at: at(4), back: Some(at(6)) };
    let crashes = Crashes::Script(vec![crash]);
    let mut sim = Sim::new(&instance, Options { crashes, heartbeat: Span(10_000_000), ..Options::exact() });
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    assert_eq!(next(&mut sim), (at(4), vec![finished(0, at(3)), Report::Down(M0)]));
    assert_eq!(next(&mut sim), (at(5), vec![Report::Offer(M1)]));
    assert_eq!(next(&mut sim), (at(6), vec![Report::Up(M0)]));
    assert_eq!(next(&mut sim), (at(10), vec![Report::Offer(M0)]));
}

#[test]
fn a_reduce_that_had_ended_for_all_its_machine_knew_is_not_lost_with_it() {
    let instance = instance(&[1.0, 1.0], &[0.0]);
    let crash = Crash { machine: M0, at: at(12), back: None };
    let crashes = Crashes::Script(vec![crash]);
    let mut sim = Sim::new(&instance, Options { crashes, heartbeat: Span(10_000_000), ..Options::exact() });
    next(&mut sim);
    hold(&mut sim, &instance, 0, 0);
    assert_eq!(next(&mut sim), (at(5), vec![Report::Offer(M1)]));
    start(&mut sim, &instance, 1, 1, 1);
    // The first reduce waits for a task that ended at 8 s. That end is reported when the machine on which it
    // waits fails, not at 15 s.
    assert_eq!(next(&mut sim), (at(12), vec![finished(1, at(8))]));
    sim.order(Order::Go { row: RowId(0), since: at(8) });
    assert_eq!(next(&mut sim), (at(12), vec![finished(0, at(11)), Report::Down(M0)]));
}

#[test]
fn machines_that_fail_at_a_rate_fail_again_after_they_are_back() {
    let instance = instance(&[1.0], &[0.0]);
    let crashes = Crashes::Rate { between: Span(50_000_000), repair: Span(2_000_000) };
    let mut sim = Sim::new(&instance, Options { crashes, ..Options::exact() });
    next(&mut sim);
    for _ in 0..5 {
        let (down, reports) = next(&mut sim);
        assert_eq!(reports, [Report::Down(M0)]);
        assert_eq!(next(&mut sim), (Time(down.0 + 2_000_000), vec![Report::Up(M0)]));
    }
}

#[test]
fn a_simulation_stops_after_a_thousand_failures_without_progress() {
    let instance = instance(&[1.0], &[0.0]);
    let crashes = Crashes::Rate { between: Span(1), repair: Span(1) };
    let mut sim = Sim::new(&instance, Options { crashes, ..Options::exact() });
    let (mut downs, mut reports) = (0, Vec::new());
    while sim.poll(&mut reports).is_some() {
        downs += reports.drain(..).filter(|report| matches!(report, Report::Down(_))).count();
    }
    assert_eq!(downs, 1_000);
}

#[test]
fn a_batch_that_ends_shows_that_failures_are_not_in_vain() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = dying(&instance, 5, None);
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    sim.in_vain.failures = FAILURES_IN_VAIN - 1;
    assert_eq!(next(&mut sim), (at(3), vec![finished(0, at(3))]));
    assert_eq!(sim.in_vain.failures, 0);
}

#[test]
fn a_task_that_ends_again_because_its_output_was_lost_is_no_progress() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = dying(&instance, 50, None);
    next(&mut sim);
    for (row, in_vain) in [(0, 0), (1, 0), (2, 0), (3, 0), (4, 7)] {
        sim.in_vain.failures = 7;
        start(&mut sim, &instance, row, 0, 1);
        next(&mut sim);
        assert_eq!(sim.in_vain.failures, in_vain, "row {row} of a phase of four tasks");
    }
}

#[test]
fn ends_are_reported_before_a_simulation_stops() {
    let instance = instance(&[1.0, 1.0], &[0.0]);
    let mut sim = beating(&instance, 10);
    next(&mut sim);
    start(&mut sim, &instance, 0, 0, 1);
    start(&mut sim, &instance, 1, 1, 1);
    sim.now = at(3);
    sim.in_vain.failures = FAILURES_IN_VAIN;
    assert_eq!(next(&mut sim), (at(3), vec![finished(0, at(3)), finished(1, at(3))]));
    sim.in_vain.failures = FAILURES_IN_VAIN;
    assert_eq!(poll(&mut sim), None);
}

#[test]
fn a_simulation_stops_after_a_hundred_thousand_wakes_in_vain() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = Sim::new(&instance, Options::exact());
    next(&mut sim);
    let mut wakes = 0;
    sim.wake_at(at(1));
    while poll(&mut sim).is_some() {
        wakes += 1;
        sim.wake_at(Time(sim.now.0 + 1));
    }
    assert_eq!(wakes, 100_000);
}

/// The number of wakes in vain after one wake at second 1.
fn wakes_in_vain(mut sim: Sim<'_>, prepare: impl Fn(&mut Sim<'_>)) -> u32 {
    next(&mut sim);
    sim.in_vain.wakes = 7;
    prepare(&mut sim);
    sim.wake_at(at(1));
    while next(&mut sim).0 < at(1) {}
    sim.in_vain.wakes
}

#[test]
fn a_wake_is_not_in_vain_while_something_runs_arrives_or_comes_back() {
    let (idle, coming) = (instance(&[1.0], &[0.0]), instance(&[1.0], &[0.0, 9.0]));
    let plain = |instance| Sim::new(instance, Options::exact());
    assert_eq!(wakes_in_vain(plain(&idle), |_| {}), 8);
    assert_eq!(wakes_in_vain(plain(&idle), |sim| hold(sim, &idle, 0, 0)), 8, "what waits does not end");
    assert_eq!(wakes_in_vain(plain(&idle), |sim| start(sim, &idle, 0, 0, 1)), 0);
    assert_eq!(wakes_in_vain(plain(&coming), |_| {}), 0);
    assert_eq!(wakes_in_vain(dying(&idle, 0, Some(9)), |_| {}), 0);
    assert_eq!(wakes_in_vain(dying(&idle, 0, None), |_| {}), 8);
    let released = |sim: &mut Sim<'_>| {
        hold(sim, &idle, 0, 0);
        sim.order(Order::Go { row: RowId(0), since: at(0) });
    };
    assert_eq!(wakes_in_vain(plain(&idle), released), 0);
    let put_off = |sim: &mut Sim<'_>| {
        start(sim, &idle, 0, 0, 1);
        sim.order(Order::Hold(RowId(0)));
    };
    assert_eq!(wakes_in_vain(dying(&idle, 99, None), put_off), 8);
}

#[test]
fn jitter_is_a_separate_factor_for_each_attempt_of_each_task() {
    let instance = instance(&[1.0], &[0.0]);
    let duration = |seed, first, attempt| {
        let options = Options { jitter: 0.3, seed: Seed(seed), ..Options::exact() };
        let places = [SlotRange { first: 0, len: 1 }];
        let start = Start { first, attempt, ..one_task(0, Time::ZERO, &places) };
        Sim::new(&instance, options).duration(&start, &instance)
    };
    let base = duration(1, 0, 0);
    assert_eq!(base, duration(1, 0, 0));
    assert_ne!(base, Span(3_000_000));
    for other in [duration(1, 1, 0), duration(1, 0, 1), duration(2, 0, 0)] {
        assert_ne!(base, other);
    }
}

#[test]
fn unreported_ends_on_other_machines_are_not_reported_with_a_failure() {
    let instance = instance(&[1.0, 1.0], &[0.0]);
    let crashes = Crashes::Script(vec![Crash { machine: M0, at: at(4), back: None }]);
    let mut sim = Sim::new(&instance, Options { crashes, heartbeat: Span(10_000_000), ..Options::exact() });
    next(&mut sim);
    start(&mut sim, &instance, 0, 1, 1);
    assert_eq!(next(&mut sim), (at(4), vec![Report::Down(M0)]));
}

#[test]
fn a_machine_offers_its_slots_once_an_instant() {
    // The flow of second 3 requests the offer of second 10, and so does the flow that arrives then.
    let instance = instance(&[1.0], &[0.0, 3.0, 10.0]);
    let mut sim = beating(&instance, 10);
    assert_eq!(next(&mut sim), (at(0), vec![arrived(&instance, 0), Report::Offer(M0)]));
    assert_eq!(next(&mut sim), (at(3), vec![arrived(&instance, 1)]));
    assert_eq!(next(&mut sim), (at(10), vec![arrived(&instance, 2), Report::Offer(M0)]));
    assert_eq!(poll(&mut sim), None);
}

#[test]
fn an_end_that_is_known_only_afterwards_is_reported_at_once() {
    let instance = instance(&[1.0], &[0.0]);
    let mut sim = dying(&instance, 100, None);
    next(&mut sim);
    hold(&mut sim, &instance, 0, 0);
    sim.now = at(9);
    sim.order(Order::Go { row: RowId(0), since: at(2) });
    assert_eq!(next(&mut sim), (at(9), vec![finished(0, at(5))]));
}

#[test]
fn a_dead_machine_is_not_asked_for_its_slots() {
    let instance = instance(&[1.0], &[0.0, 7.0]);
    let crashes = Crashes::Script(vec![Crash { machine: M0, at: at(4), back: None }]);
    let mut sim = Sim::new(&instance, Options { crashes, heartbeat: Span(10_000_000), ..Options::exact() });
    assert_eq!(next(&mut sim), (at(0), vec![arrived(&instance, 0), Report::Offer(M0)]));
    assert_eq!(next(&mut sim), (at(4), vec![Report::Down(M0)]));
    assert_eq!(next(&mut sim), (at(7), vec![arrived(&instance, 1)]));
    assert_eq!(poll(&mut sim), None);
}

/// Serves the ready phases in the order of their ids.
struct InOrder;

impl slackline_policy::Policy for InOrder {
    fn name(&self) -> &'static str {
        "in-order"
    }

    fn style(&self) -> slackline_policy::Style {
        slackline_policy::Style::Priorities
    }

    fn on_events(
        &mut self,
        _: &[slackline_policy::Event],
        _: &slackline_policy::View<'_>,
        _: &mut Vec<slackline_policy::Action>,
    ) {
    }

    fn next(
        &mut self,
        ask: &slackline_policy::Ask<'_>,
        view: &slackline_policy::View<'_>,
    ) -> Option<slackline_policy::Grant> {
        let phase = view.state.ready(ask.slot_kind).find(|&phase| view.runnable(phase) > 0)?;
        Some(slackline_policy::Grant { phase, tasks: u32::MAX })
    }
}

/// One flow of jobs in a chain, each with a map phase of this number of tasks and seconds; one slot.
fn chain(jobs: &[(u32, f64)]) -> Instance {
    let job = |(k, &(tasks, seconds)): (usize, &(u32, f64))| JobDraft {
        id: format!("j{k}"),
        after: k.checked_sub(1).map(|before| format!("j{before}")).into_iter().collect(),
        map: Some(TasksDraft::Uniform { tasks, seconds }.into()),
        ..JobDraft::default()
    };
    let jobs = jobs.iter().enumerate().map(job).collect();
    let machine =
        MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(1), rack: None };
    Instance::new(&Draft {
        machines: vec![machine],
        flows: vec![FlowDraft::new("f", jobs)],
        ..Draft::default()
    })
    .unwrap()
}

fn run(instance: &Instance, options: Options) -> slackline_policy::Run {
    let config = slackline_policy::Config { slowstart: 0.5, ..slackline_policy::Config::plain() };
    slackline_policy::run(instance, &mut InOrder, &mut Sim::new(instance, options), config)
}

#[test]
fn phases_without_length_hold_no_slot() {
    let instance = chain(&[(2, 0.0), (1, 3.0), (9, 0.0), (1, 2.0), (1, 0.0)]);
    let exact = run(&instance, Options::exact());
    assert_eq!(exact.completions.raw, [Some(at(5))]);
    assert_eq!(exact.tasks.rows().iter().map(|row| row.phase.0).collect::<Vec<_>>(), [1, 3]);
    // Ends are reported every 4 s. The last phase with a length runs from 4 to 6, and the flow ends with it.
    let heartbeat = run(&instance, Options { heartbeat: Span(4_000_000), ..Options::exact() });
    assert_eq!(heartbeat.completions.raw, [Some(heartbeat.tasks.row(1).end)]);
    let crash = Crash { machine: M0, at: at(4), back: Some(at(7)) };
    let crashed = run(&instance, Options { crashes: Crashes::Script(vec![crash]), ..Options::exact() });
    assert_eq!(crashed.completions.raw, [Some(at(9))], "what has no length has nothing to lose");
}

#[test]
fn a_flow_of_a_hundred_thousand_jobs_without_length_is_done_at_once() {
    let mut jobs = vec![(1, 0.0); 100_000];
    jobs[0].1 = 1.0;
    let found = run(&chain(&jobs), Options::exact());
    assert_eq!((found.completions.raw, found.tasks.len()), (vec![Some(at(1))], 1));
}

#[test]
fn a_run_whose_machine_left_says_so() {
    let leave = Membership::Leave { machine: M0, at: at(4) };
    let left = run(&chain(&[(9, 3.0)]), Options { membership: vec![leave], ..Options::exact() });
    let [unfinished] = &left.figures.unfinished[..] else { panic!("{:?}", left.figures.unfinished) };
    let expected = "flow f failed: no machine with slots is left: m left at 4 s, and none returns";
    assert_eq!(unfinished.to_string(), expected);
}
