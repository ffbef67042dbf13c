//! Attempts that fail: their tasks run again. A task that fails too often fails its flow and no other flow,
//! under every policy.

use slackline::Registry;
use std::collections::BTreeMap;

use slackline_model::schedule::{Clock, FlowResult, Outcome};
use slackline_model::{Instance, PhaseId, Schedule, Span, Time};
use slackline_policy::engine::{Capabilities, Order, Report, RowId, Start};
use slackline_policy::{Config, Engine};
use slackline_sim::{Options, Sim};
use slackline_testkit::harness::registered;

/// The simulator, but the attempts that `fails` names end with an error.
struct Flaky<'a, F> {
    instance: &'a Instance,
    sim: Sim<'a>,
    fails: F,
    attempts: BTreeMap<RowId, (PhaseId, u32, u16)>,
}

impl<F: Fn(PhaseId, u32, u16) -> bool> Engine for Flaky<'_, F> {
    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let now = self.sim.poll(reports)?;
        for report in reports {
            if let Report::Finished { row, at } = *report {
                let (phase, first, attempt) = self.attempts[&row];
                if (self.fails)(phase, first, attempt) {
                    *report = Report::Failed { row, at, is_final: false };
                }
            }
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        let phase = live.phase_in(self.instance, start.phase);
        self.attempts.insert(start.row, (phase, start.first, start.attempt));
        self.sim.start(start, live);
    }

    fn order(&mut self, order: Order) {
        self.sim.order(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.sim.wake_at(at);
    }

    fn may_bring_flows(&mut self) -> bool {
        self.sim.may_bring_flows()
    }
}

fn run(
    instance: &Instance,
    spec: &slackline::PolicySpec,
    fails: impl Fn(PhaseId, u32, u16) -> bool,
) -> Schedule {
    let mut policy = spec.build(instance.cluster(), &instance.objective());
    let sim = Sim::new(instance, Options::exact());
    let mut engine = Flaky { instance, sim, fails, attempts: BTreeMap::new() };
    let config = Config::plain().audited();
    let run = slackline_policy::run(instance, policy.as_mut(), &mut engine, config);
    let schedule = run.schedule(instance, spec.spec(), Clock::Exact);
    slackline_judge::check(instance, &schedule)
        .unwrap_or_else(|violation| panic!("{}: {violation}", spec.spec()));
    schedule
}

fn failed_rows(schedule: &Schedule) -> usize {
    schedule.tasks.rows().iter().filter(|row| row.outcome == Outcome::Failed).count()
}

#[test]
fn a_task_that_fails_three_times_is_done_by_its_fourth_attempt() {
    for instance in conformance() {
        for spec in registered(&Registry::standard()) {
            let schedule = run(&instance, &spec, |_, first, attempt| first == 0 && attempt < 3);
            assert!(schedule.flows.iter().all(|f| f.status == FlowResult::Done), "{}", spec.spec());
            assert_eq!(failed_rows(&schedule), 3 * with_tasks(&instance).count(), "{}", spec.spec());
        }
    }
}

#[test]
fn a_task_that_always_fails_takes_its_flow_with_it_and_no_other() {
    for instance in conformance() {
        let first_phase = with_tasks(&instance).next().unwrap();
        let doomed = instance.flow_of(first_phase);
        for spec in registered(&Registry::standard()) {
            let schedule = run(&instance, &spec, |phase, first, _| phase == first_phase && first == 0);
            for flow in &schedule.flows {
                let expected = if flow.flow == doomed { FlowResult::Failed } else { FlowResult::Done };
                assert_eq!(flow.status, expected, "{}: flow {}", spec.spec(), instance.flow(flow.flow).id);
            }
            assert_eq!(failed_rows(&schedule), 4, "{}", spec.spec());
        }
    }
}

/// Phases that have tasks to start: those without length have none.
fn with_tasks(instance: &Instance) -> impl Iterator<Item = PhaseId> + '_ {
    instance.phases().iter_enumerated().filter(|(_, phase)| !phase.is_without_length()).map(|(id, _)| id)
}

/// The documents of the conformance suite, cut into tasks.
fn conformance() -> impl Iterator<Item = Instance> {
    crate::common::instances().into_iter().map(|(_, instance)| instance.cut(Span(10_000_000)))
}
