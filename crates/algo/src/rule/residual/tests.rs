//! What is left, against sums by hand.

use std::cell::RefCell;
use std::rc::Rc;

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Draft, Instance, Span};
use slackline_policy::{Action, Ask, Config, Grant, Policy, Style};
use slackline_sim::{Options, Sim};

use super::*;

/// What was left of each flow, by instant.
type Seen = Vec<(f64, Vec<ResidualWork>)>;

/// FIFO by phase, which measures what is left whenever something happens.
#[derive(Default)]
struct Probe {
    residual: Residual,
    seen: Rc<RefCell<Seen>>,
}

impl Policy for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _: &mut Vec<Action>) {
        self.residual.note(events, view);
        self.residual.measure(view);
        self.seen.borrow_mut().push((view.now.seconds(), self.residual.flows.clone()));
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let phase = view.state.ready(ask.slot_kind).find(|&phase| view.runnable(phase) > 0)?;
        Some(Grant { phase, tasks: u32::MAX })
    }
}

fn job(id: &str, after: &[&str], map: (u32, f64), reduce: Option<(u32, f64)>) -> JobDraft {
    let phase = |(tasks, seconds)| TasksDraft::Uniform { tasks, seconds }.into();
    let after = after.iter().map(|&a| a.to_owned()).collect();
    JobDraft { id: id.into(), after, map: Some(phase(map)), reduce: reduce.map(phase), ..JobDraft::default() }
}

fn instance(slots: Slots, jobs: Vec<JobDraft>) -> Instance {
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 2.0, slots, rack: None };
    Instance::new(&Draft {
        machines: vec![machine],
        flows: vec![FlowDraft::new("f", jobs)],
        ..Draft::default()
    })
    .unwrap()
}

/// The instants, and what was left of the only flow then. Estimates are `estimated` times what tasks take.
fn seen(instance: &Instance, estimated: f64) -> Vec<(f64, ResidualWork)> {
    let mut probe = Probe::default();
    let seen = Rc::clone(&probe.seen);
    let mut engine = Sim::new(instance, Options::exact());
    let config = Config {
        believe: Box::new(|instance, phase| {
            Span::from_seconds_nearest(
                slackline_policy::view::mean_of(instance.phase(phase)).seconds() * estimated,
            )
        }),
        ..Config::plain().audited()
    };
    slackline_policy::run(instance, &mut probe, &mut engine, config);
    let seen = seen.borrow();
    seen.iter().filter_map(|(at, flows)| Some((*at, *flows.first()?))).collect()
}

#[test]
fn remaining_work_falls_with_finished_tasks() {
    // Speed 2, so tasks take half as long: four maps of 8 on three slots, then two reduces of 4 on one; then
    // a job of one map of 6.
    let jobs = vec![job("a", &[], (4, 8.0), Some((2, 4.0))), job("b", &["a"], (1, 6.0), None)];
    let instance = instance(Slots::MapReduce { map: 3, reduce: 1 }, jobs);
    let left = |map: f64, reduce: f64, rem: f64| ResidualWork {
        flow: FlowId(0),
        stages: [map / 6.0, reduce / 2.0],
        area: (map / 6.0).max(reduce / 2.0),
        rem,
        overrun: 1.0,
        lag: 0.0,
    };
    let expected = [
        // Two waves are not counted, work is: 32 / 6, then 4, then 3.
        (0.0, left(38.0, 8.0, 32.0 / 6.0 + 4.0 + 3.0)),
        (4.0, left(14.0, 8.0, 4.0 + 4.0 + 3.0)),
        (8.0, left(6.0, 8.0, 4.0 + 3.0)),
        (10.0, left(6.0, 4.0, 2.0 + 3.0)),
        (12.0, left(6.0, 0.0, 3.0)),
    ];
    for (found, expected) in seen(&instance, 1.0).iter().zip(&expected) {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let (a, b) = (found.1, expected.1);
        let same = near(found.0, expected.0) && near(a.area, b.area) && near(a.rem, b.rem);
        assert!(same && near(a.stages[0], b.stages[0]), "{found:?}, expected {expected:?}");
    }
}

#[test]
fn a_flow_beyond_its_estimate_has_remaining_work_in_proportion() {
    // Ten maps of 20 (10 s at speed 2) one after the other, said to be a hundredth of that: 2 in all.
    let instance = instance(Slots::Generic(1), vec![job("a", &[], (10, 20.0), None)]);
    let work: Vec<f64> = seen(&instance, 0.01).iter().map(|(_, left)| left.area * 2.0).collect();
    let expected: Vec<f64> =
        (0..10).map(|done| if done == 0 { 2.0 } else { 20.0 * f64::from(10 - done) }).collect();
    assert_eq!(work.len(), expected.len());
    for (found, expected) in work.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-9, "{work:?}, expected {expected:?}");
    }
}

#[test]
fn a_tenth_of_their_run_time_is_left_of_the_last_tasks() {
    // Two maps of 20 at once, said to be 0.2 each, and a map of 2 of another job that ends meanwhile, as
    // said.
    let jobs = vec![job("a", &[], (2, 20.0), None), job("b", &[], (1, 2.0), None)];
    let instance = instance(Slots::Generic(3), jobs);
    let mut probe = Probe::default();
    let seen = Rc::clone(&probe.seen);
    let mut engine = Sim::new(&instance, Options::exact());
    let config = Config {
        believe: Box::new(|instance, phase| {
            let mean = slackline_policy::view::mean_of(instance.phase(phase));
            if mean > Span(2_000_000) { Span(200_000) } else { mean }
        }),
        ..Config::plain()
    };
    slackline_policy::run(&instance, &mut probe, &mut engine, config);
    let (at, flows) = seen.borrow()[1].clone();
    // At speed 2 two maps have done 2 each after a second.
    assert!((at - 1.0).abs() < 1e-9 && (flows[0].area * 6.0 - 0.4).abs() < 1e-9, "{at}: {flows:?}");
}

#[test]
fn lag_is_what_the_plan_requires_less_what_was_started() {
    // Six maps of a second, then a reduce, which start at 0, 1 and 2. In time for 5 with two map slots: two
    // tasks, four, six and seven by 4, 3, 2 and 1 before the deadline. For 1 not even with all three: three,
    // six and seven by 3, 2 and 1 before.
    for (deadline, expected) in [(5.0, [0.0, -1.0, -2.0]), (1.0, [7.0, 4.0, 1.0])] {
        let machine = MachineDraft {
            name: "m".into(),
            count: 1,
            speed: 1.0,
            slots: Slots::MapReduce { map: 3, reduce: 1 },
            rack: None,
        };
        let mut flow = FlowDraft::new("f", vec![job("a", &[], (6, 1.0), Some((1, 1.0)))]);
        flow.deadline = Some(deadline);
        let draft = Draft { machines: vec![machine], flows: vec![flow], ..Draft::default() };
        let instance = Instance::new(&draft).unwrap();
        let mut probe = Probe { residual: Residual::with_plans(), ..Probe::default() };
        let seen = Rc::clone(&probe.seen);
        let mut engine = Sim::new(&instance, Options::exact());
        slackline_policy::run(&instance, &mut probe, &mut engine, Config::plain().audited());
        let lags: Vec<f64> = seen.borrow().iter().filter_map(|(_, flows)| Some(flows.first()?.lag)).collect();
        assert_eq!(lags, expected, "deadline {deadline}");
    }
}

/// Measures when flows come and end, and compares that with a measurement for which nothing is known.
#[derive(Default)]
struct Compared {
    residual: Residual,
    measured: Rc<RefCell<usize>>,
}

impl Policy for Compared {
    fn name(&self) -> &'static str {
        "compared"
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _: &mut Vec<Action>) {
        self.residual.note(events, view);
        if events.iter().any(|event| matches!(event, Event::FlowArrived(_)) || event.over().is_some()) {
            let mut fresh = self.residual.clone();
            fresh.read_again();
            fresh.measure(view);
            self.residual.measure(view);
            assert_eq!(self.residual.flows, fresh.flows, "{}", view.now);
            let phases = |residual: &Residual| -> Vec<(PhaseId, PhaseLeft)> {
                residual.phases.iter_enumerated().map(|(phase, left)| (phase, *left)).collect()
            };
            assert_eq!(phases(&self.residual), phases(&fresh), "{}", view.now);
            *self.measured.borrow_mut() += 1;
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let phase = view.state.ready(ask.slot_kind).find(|&phase| view.runnable(phase) > 0)?;
        Some(Grant { phase, tasks: u32::MAX })
    }
}

#[test]
fn measuring_what_changed_is_measuring_all() {
    use slackline_model::{Combine, History, Metric};
    use slackline_policy::Learning;

    use crate::rule::tests::{UNIVERSAL, workload};

    for seed in 0..6 {
        let instance = workload(seed, UNIVERSAL, Metric::Response, Combine::Sum);
        for (learned, slowstart) in [(false, 1.0), (true, 1.0), (false, 0.3), (true, 0.3)] {
            let mut policy = Compared::default();
            let measured = Rc::clone(&policy.measured);
            let mut engine = Sim::new(&instance, Options::exact());
            let learning = learned.then(|| Learning::new(instance.cluster(), &History::new()));
            let config = Config { learning, slowstart, ..Config::plain() };
            slackline_policy::run(&instance, &mut policy, &mut engine, config);
            assert!(*measured.borrow() > 100, "each of 60 flows comes and ends");
        }
    }
}
