//! The bound by prices of slots against exhaustive search, on random instances where it can be tight: a few
//! flows that compete, lists of seconds, caps, releases, DAGs, both kinds of slots, two speeds.
#![expect(clippy::print_stdout, reason = "how close the bound came is worth a line")]

use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, PhaseDraft, TasksDraft};
use slackline_model::random::test_scale;
use slackline_model::{Combine, Instance, Metric, Objective, Seed};
use slackline_relax::{best, task_bounds};
use slackline_testkit::brute::brute;
use slackline_testkit::instances::machines;

/// Instances of each metric.
const EACH: f64 = 50.0;

/// A draft drawn from a seed: two or three flows on two to four slots. On slots of two speeds: two flows of
/// one job each, with even seconds, so that they are within reach.
pub(crate) fn draft(seed: u64, metric: Metric) -> Draft {
    let draw = |what: &str, part: u64, below: u64| Seed(seed).stream(what, part) % below;
    let kind = draw("slots", 0, 4);
    let slots = match kind {
        0 => {
            Slots::MapReduce { map: 1 + draw("maps", 0, 2) as u32, reduce: 1 + draw("reduces", 0, 2) as u32 }
        }
        n => Slots::Generic(1 + (n % 3) as u32),
    };
    let two_speeds = kind == 3;
    let (more, least) = if two_speeds { (1, 2.0) } else { (2, 1.0) };
    let phase = |what: &str, part: u64| -> Option<PhaseDraft> {
        let n = draw(what, part, 3);
        let seconds = |k: u64| least * (1 + draw(&format!("{what} {k}"), part, 1 + more)) as f64;
        let tasks = TasksDraft::Each((0..n).map(seconds).collect());
        let max_slots = Some(1 + draw(&format!("{what} cap"), part, 4) as u32).filter(|&cap| cap < 3);
        (n > 0).then(|| PhaseDraft { max_slots, ..tasks.into() })
    };
    let flow = |f: u64| {
        let jobs = 1 + draw("jobs", f, more);
        let job = |j: u64| {
            let part = f * 8 + j;
            let (map, reduce) = (phase("map", part), phase("reduce", part));
            let map = if reduce.is_none() {
                map.or_else(|| Some(TasksDraft::Uniform { tasks: 1, seconds: 2.0 * least }.into()))
            } else {
                map
            };
            let after = (0..j).filter(|&k| draw("after", part * 8 + k, 2) == 0).map(|k| format!("j{k}"));
            JobDraft { id: format!("j{j}"), after: after.collect(), map, reduce, ..JobDraft::default() }
        };
        let release = draw("release", f, 4);
        FlowDraft {
            release: release as f64,
            weight: 1.0 + draw("weight", f, 3) as f64,
            deadline: Some((release + 3 + draw("deadline", f, 8)) as f64),
            ..FlowDraft::new(format!("f{f}"), (0..jobs).map(job).collect())
        }
    };
    let fast = two_speeds.then(|| machines("fast", 1, 2.0, Slots::Generic(1 + draw("fast", 0, 2) as u32)));
    Draft {
        machines: [machines("m", 1, 1.0, slots)].into_iter().chain(fast).collect(),
        objective: Objective::new(metric, Combine::Sum),
        flows: (0..2 + draw("flows", 0, more)).map(flow).collect(),
        ..Draft::default()
    }
}

/// Bounds over positive optima: of all others together, and of prices.
struct Ratios {
    others: Vec<f64>,
    prices: Vec<f64>,
}

impl Ratios {
    fn positive(list: &[f64]) -> f64 {
        list.iter().filter(|&&ratio| ratio > 0.0).count() as f64 / list.len() as f64
    }

    fn median(list: &[f64]) -> f64 {
        let mut list = list.to_vec();
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    }
}

fn against_optima(metric: Metric) -> Ratios {
    let mut ratios = Ratios { others: Vec::new(), prices: Vec::new() };
    let (mut known, mut none) = (0, 0);
    for seed in 0..(EACH * test_scale()).ceil() as u64 {
        let draft = draft(seed, metric);
        let instance = Instance::new(&draft).unwrap();
        let Some(optimum) = brute(&instance) else {
            none += 1;
            continue;
        };
        known += 1;
        let prices = task_bounds(&instance).into_iter().find(|bound| bound.name == "prices");
        let prices = prices.map_or(0.0, |bound| bound.value);
        assert!(prices <= optimum, "{metric} {seed}: {prices} is above the optimum {optimum}\n{draft:#?}");
        // Tightness is tested on slots of one speed.
        if optimum > 0.0 && draft.machines.len() == 1 {
            ratios.others.push(best(&instance) / optimum);
            ratios.prices.push(prices / optimum);
        }
    }
    assert!(none * 4 < known, "{none} instances are out of reach, {known} are not");
    println!(
        "{metric}: {known} optima, {} positive; above 0 {:.2}, with prices {:.2}; median {:.2}, prices {:.2}",
        ratios.prices.len(),
        Ratios::positive(&ratios.others),
        Ratios::positive(&ratios.prices),
        Ratios::median(&ratios.others),
        Ratios::median(&ratios.prices),
    );
    ratios
}

#[test]
fn tardy_flows_have_a_price() {
    assert!(Ratios::positive(&against_optima(Metric::Tardy).prices) >= 0.75);
}

#[test]
fn tardiness_has_a_price() {
    assert!(Ratios::positive(&against_optima(Metric::Tardiness).prices) >= 0.8);
}

#[test]
fn prices_of_responses_are_below_the_optimum() {
    assert!(Ratios::median(&against_optima(Metric::Response).prices) >= 0.9);
}

#[test]
fn prices_of_slowdowns_are_below_the_optimum() {
    assert!(Ratios::median(&against_optima(Metric::Slowdown).prices) >= 0.9);
}
