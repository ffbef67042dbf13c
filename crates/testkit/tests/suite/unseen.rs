//! No policy knows flows that have not arrived: after any change of unannounced flows that are released after
//! an instant, every decision up to that instant stays the same.

use slackline::Registry;
use slackline_model::draft::{Draft, FlowDraft};
use slackline_model::{Instance, PhaseId, Schedule, Seed, SlotKind, Span, Time, random};
use slackline_policy::{Action, Ask, Event, Grant, Policy, Style, View};
use slackline_testkit::harness::{self, Setup};
use slackline_testkit::instances;

use crate::arb;
use crate::swarm::{goes_with, setup_of, under_profile};

/// A workload twice: unchanged, and with another future after `until`.
struct Futures {
    until: Time,
    one: Instance,
    other: Instance,
}

fn cut(draft: &Draft) -> Instance {
    Instance::new(draft).expect("drawn drafts are valid").cut(Span(3_000_000))
}

/// Draws a workload, an instant before some of its arrivals, and another future.
fn futures(seed: Seed) -> Futures {
    let rng = &mut random::rng(seed, "futures", 0);
    let mut draft = arb::draft_of(seed);
    for flow in &mut draft.flows {
        flow.release += random::integer(rng, 0, 12) as f64;
    }
    let until = random::integer(rng, 0, 14) as f64;
    let mut other = draft.clone();
    // Flows from another workload; flows that name missing things could not be written down.
    let mut strangers = arb::draft_of(Seed(seed.stream("strangers", 0))).flows;
    strangers.retain(|flow| flow.pool.is_none() && names_no_host(flow));
    for (k, stranger) in strangers.iter_mut().enumerate() {
        stranger.id = format!("stranger{k}");
        stranger.release += until + 1.0;
        stranger.cost.clone_from(&draft.flows[0].cost);
    }
    other.flows.retain(|flow| flow.release <= until || random::chance(rng, 0.6));
    for flow in other.flows.iter_mut().filter(|flow| flow.release > until) {
        flow.release = until + 1.0 + random::integer(rng, 0, 9) as f64;
        flow.weight = random::integer(rng, 0, 9) as f64;
        flow.deadline = None;
    }
    for stranger in strangers {
        let at = random::integer(rng, 0, other.flows.len() as u64) as usize;
        other.flows.insert(at, stranger);
    }
    if other.flows.is_empty() {
        other.flows.clone_from(&draft.flows);
    }
    Futures { until: Time::from_seconds_nearest(until), one: cut(&draft), other: cut(&other) }
}

fn names_no_host(flow: &FlowDraft) -> bool {
    let phases = flow.jobs.iter().flat_map(|job| [&job.map, &job.reduce]).flatten();
    phases.into_iter().all(|phase| !matches!(phase.tasks, slackline_model::draft::TasksDraft::Splits(_)))
}

/// The starts up to an instant: time, task and place, by names.
fn decisions(instance: &Instance, schedule: &Schedule, until: Time) -> Vec<String> {
    let rows = schedule.tasks.rows().iter().filter(|row| row.start <= until);
    let name = |row: &slackline_model::schedule::TaskRow| {
        let places: Vec<_> = schedule.tasks.places(row).iter().map(|p| (p.first, p.len)).collect();
        let phase = instance.phase_name(row.phase);
        format!("{} {phase} {}+{} attempt {} on {places:?}", row.start, row.first, row.count, row.attempt)
    };
    rows.map(name).collect()
}

/// The first decision that differs, if one does.
fn difference(
    futures: &Futures,
    make: &dyn Fn(&Instance) -> Box<dyn Policy>,
    setup: &Setup,
) -> Option<String> {
    let [one, other] = [&futures.one, &futures.other].map(|instance| {
        let schedule = harness::simulate(instance, make(instance).as_mut(), setup);
        decisions(instance, &schedule, futures.until)
    });
    let n = one.len().max(other.len());
    (0..n).find(|&k| one.get(k) != other.get(k)).map(|k| format!("{:?} or {:?}", one.get(k), other.get(k)))
}

fn broken(seed: u64) -> Vec<String> {
    let futures = futures(Seed(seed));
    let mut setups = vec![setup_of(Seed(seed), &futures.one)];
    setups.extend(under_profile(Seed(seed), &futures.one));
    let policies = harness::registered(&Registry::standard());
    let breaks = |(policy, setup): (&slackline::PolicySpec, &Setup)| {
        let make = |instance: &Instance| -> Box<dyn Policy> {
            policy.build(instance.cluster(), &instance.objective())
        };
        if !goes_with(make(&futures.one).as_ref(), setup) {
            return None;
        }
        let found = difference(&futures, &make, setup)?;
        Some(format!("seed {seed}, {policy:?}, until {}: {found}\n  {setup:?}", futures.until))
    };
    let runs = policies.iter().flat_map(|policy| setups.iter().map(move |setup| (policy, setup)));
    runs.filter_map(breaks).collect()
}

#[test]
fn decisions_do_not_depend_on_future_flows() {
    let found = instances::on_each_seed(20, broken);
    assert!(found.is_empty(), "{} runs; the first:\n{}", found.len(), found[..found.len().min(9)].join("\n"));
}

/// A policy that was given the whole workload in advance, and reserves slots for flows that will arrive.
struct Prophet {
    releases: Vec<Time>,
}

impl Policy for Prophet {
    fn name(&self) -> &'static str {
        "prophet"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, _: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.releases.retain(|&release| release > view.now);
        out.extend(self.releases.iter().map(|&release| Action::WakeAt(release)));
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let soon = |&release: &Time| release <= view.now + Span(2_000_000);
        if ask.slot_kind != SlotKind::Reduce && self.releases.iter().any(soon) {
            return None;
        }
        let can_run = |phase: &PhaseId| view.runnable(*phase) > 0 && !ask.skip.contains(phase);
        view.state.ready(ask.slot_kind).find(can_run).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

#[test]
fn a_policy_that_knows_the_future_is_detected() {
    let make = |instance: &Instance| -> Box<dyn Policy> {
        Box::new(Prophet { releases: instance.flows().iter().map(|flow| flow.release).collect() })
    };
    let caught = (0..20).filter(|&seed| difference(&futures(Seed(seed)), &make, &Setup::plain()).is_some());
    assert!(caught.count() > 0);
}
