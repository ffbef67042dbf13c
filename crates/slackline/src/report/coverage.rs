//! Whether intervals hold what they promise: generated workloads against fresh draws.

use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::random::{integer, rng, test_scale};
use slackline_model::{Instance, Seed};

use crate::report::Figures;
use crate::report::flow_chances::FlowSeeds;
use crate::report::spread::{Interval, Runs, Spread, is_enough};
use crate::simulate::{Watch, simulate_figures};
use crate::{Options, PolicySpec, Registry, parallel};

const WORKLOADS: usize = 200;
/// Fresh draws of each workload; six times as many in `.ci/long`.
const FRESH: u64 = 400;
const METRICS: [&str; 3] = ["cost", "mean_response", "makespan"];

/// A few flows that compete for a few slots.
fn workload(seed: u64) -> Instance {
    let mut draws = rng(Seed(seed), "coverage", 0);
    let mut flow = |k: usize| {
        let mut tasks = |most: u64, seconds: u64| {
            let (tasks, seconds) = (integer(&mut draws, 1, most), integer(&mut draws, 2, seconds));
            Some(TasksDraft::Uniform { tasks: tasks as u32, seconds: seconds as f64 }.into())
        };
        let (map, reduce) = (tasks(8, 30), tasks(3, 20));
        let job = JobDraft { id: "j".into(), map, reduce, ..JobDraft::default() };
        let release = integer(&mut draws, 0, 60) as f64;
        FlowDraft { release, ..FlowDraft::new(format!("f{k}"), vec![job]) }
    };
    let mut flows: Vec<FlowDraft> = (0..6).map(&mut flow).collect();
    flows.sort_by(|a, b| a.release.total_cmp(&b.release));
    let machine =
        MachineDraft { name: "m".into(), count: 4, speed: 1.0, slots: Slots::Generic(2), rack: None };
    Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
}

/// The figures of a seed, and the completions of its flows.
fn drawn(instance: &Instance, policy: &PolicySpec, seed: u64) -> (Figures, Vec<Option<f64>>) {
    let mut options = Options::exact();
    options.sim.jitter = 0.3;
    options.sim.seed = Seed(seed);
    let simulated = simulate_figures(instance, policy, &options, None, Watch::default()).unwrap();
    let completions = simulated.schedule.flows.iter().map(|row| row.completion).collect();
    (Figures::of_simulation(&simulated), completions)
}

/// How often intervals hold the truth.
#[derive(Default)]
struct Coverage {
    differences: (u64, u64),
    completions: (u64, u64),
}

fn of_workload(k: usize) -> Coverage {
    let instance = workload(k as u64);
    let policies = Registry::standard().parse_several("fifo,fair").unwrap();
    let several = |from: u64, n: u64, policy: &PolicySpec| -> Vec<_> {
        (from..from + n).map(|seed| drawn(&instance, policy, seed)).collect()
    };
    let runs = |n: u64| -> Vec<Runs> {
        let figures =
            |policy: &PolicySpec| several(0, n, policy).into_iter().map(|(figures, _)| figures).collect();
        policies
            .iter()
            .map(|policy| Runs { policy: policy.spec().into(), result: Ok(figures(policy)) })
            .collect()
    };
    let n = (1..=20).find(|&n| is_enough(n, || runs(n.into()), &[])).unwrap();
    let n_fresh = (FRESH as f64 * test_scale()) as u64;
    let fresh: Vec<Vec<_>> = policies.iter().map(|policy| several(1 << 32, n_fresh, policy)).collect();
    let mut held = Coverage::default();
    let all = runs(n.into());
    let [first, second] = [0, 1].map(|k| all[k].result.as_deref().unwrap());
    for metric in METRICS {
        let get = |figures: &Figures| figures.value(metric);
        let spread = Spread::of_differences(second, first, &get).unwrap();
        let pairs = fresh[0].iter().zip(&fresh[1]).map(|(a, b)| get(&b.0).unwrap() - get(&a.0).unwrap());
        let truth = pairs.sum::<f64>() / fresh[0].len() as f64;
        // Where all draws gave the same difference, no interval is shown.
        if let Interval::Half(half) = spread.interval() {
            held.differences.0 += u64::from((truth - spread.mean).abs() <= half);
            held.differences.1 += 1;
        }
    }
    let twenty: Vec<_> = several(0, 20, &policies[0]).into_iter().map(|(_, flows)| flows).collect();
    for (k, flow) in FlowSeeds::of("fifo", &instance, &twenty).iter().enumerate() {
        let (low, high) = (flow.quantile(0.1), flow.quantile(0.9));
        let inside =
            fresh[0].iter().filter(|(_, flows)| flows[k].is_some_and(|c| low <= c && c <= high)).count();
        held.completions.0 += inside as u64;
        held.completions.1 += fresh[0].len() as u64;
    }
    held
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let all = parallel::map(WORKLOADS, parallel::processors(), |k| Ok::<_, ()>(of_workload(k))).unwrap();
    let share = |get: fn(&Coverage) -> (u64, u64)| {
        let (held, of) = all.iter().map(get).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        held as f64 / of as f64
    };
    let (differences, completions) = (share(|held| held.differences), share(|held| held.completions));
    println!("differences {differences:.4}, completions {completions:.4}");
    assert!((0.93..=0.97).contains(&differences), "95 % intervals of differences hold {differences}");
    assert!((0.75..=0.85).contains(&completions), "80 % intervals of completions hold {completions}");
}
