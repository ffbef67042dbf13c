//! Dropped rows are judged like kept ones. The figures of a simulation do not depend on what happens to its
//! rows. A judge that receives the rows one by one accepts no schedule that a judge of all rows refuses.

use slackline::simulate::{Knowledge, QuickBound, Watch, simulate_figures};
use slackline::{Options, PolicySpec, Registry, Simulated, simulate};
use slackline_judge::{FlowFacts, Metrics, Report, Stream, Violation};
use slackline_model::id::TiVec;
use slackline_model::random::test_seeds;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::schedule::{FlowResult, NewRow, Outcome, TaskRow, TaskRows};
use slackline_model::{FlowId, History, Instance, PhaseId, Schedule, Seed, SlotRange, Span, Time};
use slackline_testkit::harness;

use crate::{arb, swarm};

/// A workload and the events of its simulation, drawn from a seed.
fn drawn(seed: u64) -> (Instance, Options) {
    let seed = Seed(seed);
    let instance = Instance::new(&arb::draft_of(seed)).unwrap().cut(Span(3_000_000));
    let mut setup = swarm::setup_of(seed, &instance);
    // The stream judge does not know when machines were present.
    setup.sim.membership.clear();
    let rng = &mut random::rng(seed, "knowledge", 0);
    let knowledge = match random::integer(rng, 0, 3) {
        0 => Knowledge::Exact,
        1 => Knowledge::Learned(History::default()),
        _ => Knowledge::Mean,
    };
    let noise = if matches!(knowledge, Knowledge::Learned(_)) { 0.0 } else { setup.noise };
    let options = Options {
        sim: setup.sim,
        slowstart: setup.slowstart,
        noise,
        locality_wait: setup.locality_wait,
        knowledge,
        ..Options::exact()
    };
    (instance, options)
}

/// Removes sums over rows, whose last digit depends on their order, and returns them.
fn sums(metrics: &mut Metrics, flows: &mut TiVec<FlowId, FlowFacts>) -> Vec<f64> {
    let busy = flows.iter_mut().map(|fact| std::mem::take(&mut fact.busy));
    std::iter::once(std::mem::take(&mut metrics.utilisation)).chain(busy).collect()
}

fn nearly(some: &[f64], others: &[f64]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(a, b)| (a - b).abs() <= 1e-12 * a.abs())
}

#[test]
fn figures_are_those_of_the_schedule_that_is_kept() {
    let policies = harness::registered(&Registry::standard());
    for seed in test_seeds(33) {
        let (instance, options) = drawn(seed);
        let bound = Some(&QuickBound::default());
        for policy in &policies {
            let mut kept = simulate(&instance, policy, &options, bound, None).unwrap();
            let mut figures = simulate_figures(&instance, policy, &options, bound, Watch::default()).unwrap();
            assert!(figures.schedule.tasks.is_empty());
            kept.schedule.tasks = TaskRows::new();
            let of = |found: &mut Simulated| sums(&mut found.metrics, &mut found.flows);
            let what = format!("seed {seed}, {policy:?}, {options:?}");
            assert!(nearly(&of(&mut figures), &of(&mut kept)), "{what}");
            assert_eq!(format!("{figures:?}"), format!("{kept:?}"), "{what}");
        }
    }
}

/// The verdict of a judge that receives the rows as they end, and each flow after its last row; `None` if
/// only the whole can be judged.
fn judged_as_they_end(instance: &Instance, schedule: &Schedule) -> Option<Result<Report, Violation>> {
    let mut stream = Stream::new(instance, schedule)?;
    let mut rows: Vec<&TaskRow> = schedule.tasks.rows().iter().collect();
    rows.sort_by_key(|row| (row.end, row.start));
    let flow_of =
        |row: &TaskRow| (row.phase.index() < instance.phases().len()).then(|| instance.flow_of(row.phase));
    let mut left = vec![0; instance.flows().len()];
    rows.iter().filter_map(|row| flow_of(row)).for_each(|flow: FlowId| left[flow.index()] += 1);
    let judged = || {
        for row in rows {
            stream.row(row.into(), schedule.tasks.places(row))?;
            let Some(flow) = flow_of(row) else { continue };
            left[flow.index()] -= 1;
            if left[flow.index()] == 0 {
                let over = schedule.flows.iter().filter(|over| over.flow == flow);
                over.into_iter().try_for_each(|over| stream.flow(over))?;
            }
        }
        let had_rows = |flow: FlowId| schedule.tasks.rows().iter().any(|row| flow_of(row) == Some(flow));
        schedule.flows.iter().filter(|over| !had_rows(over.flow)).try_for_each(|over| stream.flow(over))
    };
    Some(judged().and_then(|()| stream.finish(schedule)))
}

fn tamper(rng: &mut ChaCha8Rng, schedule: &mut Schedule) {
    let n = schedule.tasks.len() as u64;
    let moved = |rng: &mut ChaCha8Rng, time: Time| match random::integer(rng, 0, 3) {
        0 => Time(time.0 + 1_000_000),
        1 => Time(time.0.saturating_sub(1_000_000)),
        2 => Time(time.0 + random::integer(rng, 0, 9_000_000)),
        _ => Time(time.0.saturating_sub(random::integer(rng, 0, 9_000_000))),
    };
    if n == 0 || random::chance(rng, 0.15) {
        let Some(last) = schedule.flows.len().checked_sub(1) else { return };
        let flow = random::integer(rng, 0, last as u64) as usize;
        match random::integer(rng, 0, 4) {
            0 => schedule.flows[flow].completion = Some(5.0),
            1 => schedule.flows[flow].start = Some(0.0),
            2 => schedule.flows[flow].status = FlowResult::Failed,
            3 => schedule.cost = Some(17.0),
            _ => drop(schedule.flows.remove(flow)),
        }
        return;
    }
    let chosen = random::integer(rng, 0, n - 1) as usize;
    let what = random::integer(rng, 0, 9);
    let mut rows = TaskRows::new();
    for (k, row) in schedule.tasks.rows().iter().enumerate() {
        let mut new: NewRow = row.into();
        let mut places: Vec<SlotRange> = schedule.tasks.places(row).to_vec();
        if k == chosen {
            match what {
                0 => new.start = moved(rng, new.start),
                1 => new.end = moved(rng, new.end),
                2 => (new.start, new.end) = (moved(rng, new.start), moved(rng, new.end)),
                3 => {
                    let by = random::integer(rng, 0, 5) * 1_000_000;
                    (new.start, new.end) = (Time(new.start.0 + by), Time(new.end.0 + by));
                }
                4 => places[0].first = random::integer(rng, 0, 6) as u32,
                5 => new.phase = PhaseId(random::integer(rng, 0, u64::from(new.phase.0) + 2) as u32),
                6 => new.first = random::integer(rng, 0, 4) as u32,
                7 => new.attempt = random::integer(rng, 0, 2) as u16,
                8 => new.outcome = if new.outcome == Outcome::Done { Outcome::Killed } else { Outcome::Done },
                _ => continue,
            }
        }
        rows.push(new, &places);
    }
    schedule.tasks = rows;
}

#[test]
fn schedules_accepted_row_by_row_are_accepted_as_a_whole() {
    let policies = harness::registered(&Registry::standard());
    let (mut accepted, mut refused, mut differ) = (0, 0, 0);
    for seed in 0..2000 {
        let (instance, options) = drawn(seed);
        let policy: &PolicySpec = &policies[seed as usize % policies.len()];
        let made = simulate(&instance, policy, &options, None, None).unwrap().schedule;
        let rng = &mut random::rng(Seed(seed), "tamper", 0);
        for change in 0..20 {
            let mut schedule = made.clone();
            (0..change.min(2)).for_each(|_| tamper(rng, &mut schedule));
            let Some(found) = judged_as_they_end(&instance, &schedule) else { break };
            let whole = slackline_judge::check(&instance, &schedule);
            match found {
                Ok(mut report) => {
                    let what = format!("seed {seed}, {policy:?}, change {change}");
                    let mut whole = whole.unwrap_or_else(|violation| panic!("{what}: {violation}"));
                    let of = |report: &mut Report| sums(&mut report.metrics, &mut report.flows);
                    assert!(nearly(&of(&mut report), &of(&mut whole)), "{what}");
                    assert_eq!(report, whole, "{what}");
                    accepted += 1;
                }
                Err(violation) if change == 0 => panic!("seed {seed}, {policy:?}: {violation}"),
                Err(_) => (refused, differ) = (refused + 1, differ + usize::from(whole.is_ok())),
            }
        }
    }
    assert!(accepted > 2000 && refused > 5000, "{accepted} accepted, {refused} refused");
    assert!(differ * 20 < refused, "{differ} of {refused} are refused only row by row");
}
