//! Tests the paper's scheme alone, without the list schedules, baselines and insertion that hide its errors.

use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};

use super::*;
use crate::flowflex::bisection::bisect;
use crate::flowflex::network::Network;
use crate::flowflex::orders::{Rule as OrderRule, relaxed, rounded};
use crate::flowflex::plan::ALPHAS;
use crate::flowflex::scheme::Scheme;

const GRID: slackline_relax::flow::Grid = slackline_relax::flow::Grid { ratio: 0.01, slots_max: 2000 };

/// The maximum that bracket and bisection reach with chains alone.
fn bisected(net: &Network) -> f64 {
    let scheme = Scheme::new(net);
    let cost = |order: &[usize]| net.cost(&scheme.completions(order));
    bisect(net, cost(&OrderRule::Given.order(net)), || false, |order| cost(&order))
}

/// The least sum that chains alone reach in the orders of the flow of `slow` at every share.
fn flown(slow: &Network, net: &Network) -> f64 {
    let (scheme, relaxed) = (Scheme::new(net), relaxed(slow, GRID));
    let cost = |&alpha: &f64| net.cost(&scheme.completions(&rounded(slow, &relaxed, alpha)));
    ALPHAS.iter().map(cost).fold(f64::INFINITY, f64::min)
}

#[test]
fn theorem_4_holds_for_bisected_chains() {
    for (metric, cost) in METRICS.into_iter().filter(|m| m.0 != Metric::Lateness) {
        for seed in 0..6 {
            let settings = [SMALL[0], SMALL[1], ("cost", cost)];
            let instance = generated(&settings, seed, Objective::new(metric, Combine::Max));
            let bound = slackline_relax::best(&instance);
            let found = bisected(&Network::whole(&instance, 2.0));
            assert!(found <= bound * (1.0 + 1e-5) + 1e-6, "{metric}, seed {seed}: {found} above {bound}");
        }
    }
}

#[test]
fn corollaries_hold_for_chains_at_unit_speed() {
    for metric in [Metric::Completion, Metric::Stretch] {
        for seed in 0..10 {
            let max = generated(&SMALL, seed, Objective::new(metric, Combine::Max));
            let most = 2.0 * slackline_relax::best(&max) * (1.0 + 1e-6);
            let found = bisected(&Network::whole(&max, 1.0));
            assert!(found <= most, "{metric}, seed {seed}: {found} above {most}");
            let sum = generated(&SMALL, seed, Objective::new(metric, Combine::Sum));
            let (net, most) = (Network::whole(&sum, 1.0), 6.0 * slackline_relax::best(&sum));
            let found = flown(&net, &net);
            assert!(found <= most, "{metric}, seed {seed}: {found} above {most}");
        }
    }
}

/// Flows of one phase that can use all four slots: one fast machine, on which some order of the flows is
/// optimal.
fn one_machine(works: &[f64], metric: Metric, combine: Combine) -> Instance {
    let flow = |(k, &work): (usize, &f64)| {
        let map = Some(TasksDraft::Work { work, tasks: None }.into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        let (weight, deadline) = ((k * 5 % 7 + 1) as f64, Some((k * 3 % 5) as f64 * 2.0 + 1.0));
        FlowDraft { weight, deadline, ..FlowDraft::new(k.to_string(), vec![job]) }
    };
    let slots = Slots::Generic(4);
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
    let draft = Draft {
        machines: vec![machine],
        flows: works.iter().enumerate().map(flow).collect(),
        objective: Objective::new(metric, combine),
        ..Draft::default()
    };
    Instance::new(&draft).unwrap()
}

/// The least cost of all orders of works on one machine as fast as four slots.
fn brute_force(instance: &Instance, works: &[f64]) -> f64 {
    fn go(instance: &Instance, works: &[f64], ends: &mut [f64], now: f64) -> f64 {
        let open: Vec<usize> = (0..works.len()).filter(|&k| ends[k] == 0.0).collect();
        if open.is_empty() {
            return instance.cost_of(ends);
        }
        let mut best = f64::INFINITY;
        for k in open {
            ends[k] = now + works[k] / 4.0;
            best = best.min(go(instance, works, ends, now + works[k] / 4.0));
            ends[k] = 0.0;
        }
        best
    }
    go(instance, works, &mut vec![0.0; works.len()], 0.0)
}

#[test]
fn bisected_chains_are_optimal_on_one_machine() {
    let works = [[8.0, 3.0, 14.0, 5.0, 9.0], [2.0, 2.0, 20.0, 7.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0]];
    for works in works {
        for metric in [Metric::Completion, Metric::Stretch, Metric::Tardiness] {
            let instance = one_machine(&works, metric, Combine::Max);
            let (found, optimum) =
                (bisected(&Network::whole(&instance, 1.0)), brute_force(&instance, &works));
            assert!((found - optimum).abs() <= 1e-6 * optimum.max(1.0), "{metric}: {found} for {optimum}");
        }
        for metric in [Metric::Completion, Metric::Stretch] {
            let instance = one_machine(&works, metric, Combine::Sum);
            let net = Network::whole(&instance, 1.0);
            let (found, optimum) = (flown(&net, &net), brute_force(&instance, &works));
            assert!(found >= optimum * (1.0 - 1e-9) && found <= 6.0 * optimum, "{found} for {optimum}");
        }
    }
}

/// Without the orders of the flow or the bisection, other candidates win, and dearer.
#[test]
fn the_flow_and_the_bisection_win_some_plans() {
    let config = Config { steps: 0, ..Config::thorough() };
    let (mut flow, mut bisection) = (0, 0);
    for seed in 0..12 {
        let settings = [("flows", "8"), ("jobs", "2..8")];
        let of = |combine| {
            let instance = generated(&settings, seed, Objective::new(Metric::Tardiness, combine));
            plan(&instance, &config).unwrap().candidate.source
        };
        flow += u32::from(matches!(of(Combine::Sum), Source::Flow(_)));
        bisection += u32::from(of(Combine::Max) == Source::Bisection);
    }
    println!("of 12 plans each: flow {flow}, bisection {bisection}");
    assert!(flow > 0 && bisection > 0, "flow {flow}, bisection {bisection}");
}
