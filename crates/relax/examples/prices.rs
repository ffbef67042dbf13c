//! Measures the time and the value of the bound by prices on chains of jobs that arrive at random: `cargo run
//! --release -p slackline-relax --example prices [FLOWS]`.
#![expect(clippy::print_stdout, reason = "what was measured is the output")]
#![expect(clippy::disallowed_methods, reason = "what bounds take is measured")]
#![expect(clippy::unwrap_used, reason = "the drafts are valid")]

use std::time::Instant;

use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Combine, Instance, Metric, Objective, Seed};
use slackline_relax::{Bound, bounds, per_flow, prices, quick_task_bounds, task_bounds};

fn main() {
    let flows: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(60);
    for metric in [Metric::Tardy, Metric::Tardiness, Metric::Response, Metric::Slowdown] {
        let instance = workload(flows, metric);
        let old = strongest(&bounds(&instance));
        let begun = Instant::now();
        let new = strongest(&task_bounds(&instance));
        let seconds = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let paths = slackline_relax::Paths::of(&instance);
        let proof = prices::bound(&instance, &paths, &per_flow(&instance), prices::BUDGET, &|| false);
        let alone = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let quick = strongest(&quick_task_bounds(&instance));
        let quickly = begun.elapsed().as_secs_f64();
        println!(
            "{metric}: {old:.1} without, {new:.1} with prices, all bounds {seconds:.2} s; {quick:.1} in {quickly:.2} s"
        );
        if let Some(proof) = proof {
            let nanos = alone * 1e9 / (proof.cells * proof.steps) as f64;
            let prices::Proof { bound, steps, cells, .. } = proof;
            println!(
                "  prices {bound:.1}: {steps} steps of {cells} cells·waves, {alone:.2} s, {nanos:.1} ns each"
            );
        }
    }
}

fn strongest(bounds: &[Bound]) -> f64 {
    slackline_relax::best_of(bounds)
}

/// Chains of one to five jobs on twelve slots, at 90 % of their capacity.
fn workload(flows: u64, metric: Metric) -> Instance {
    let draw = |what: &str, k: u64, below: u64| Seed(1).stream(what, k) % below;
    let (mut work, mut list) = (0.0, Vec::new());
    for f in 0..flows {
        let release = work / (12.0 * 0.9);
        let mut alone = 0.0;
        let job = |j: u64| {
            let phase = |what: &str, most: u64| TasksDraft::Uniform {
                tasks: 1 + draw(what, f * 8 + j, most) as u32,
                seconds: 2.0 + draw(&format!("{what}-seconds"), f * 8 + j, 30) as f64,
            };
            JobDraft {
                id: format!("j{j}"),
                after: (j > 0).then(|| format!("j{}", j - 1)).into_iter().collect(),
                map: Some(phase("maps", 30).into()),
                reduce: Some(phase("reduces", 8).into()),
                ..JobDraft::default()
            }
        };
        let jobs: Vec<JobDraft> = (0..=draw("jobs", f, 5)).map(job).collect();
        for phase in jobs.iter().flat_map(|job| [&job.map, &job.reduce]).flatten() {
            if let TasksDraft::Uniform { tasks, seconds } = phase.tasks {
                work += f64::from(tasks) * seconds;
                alone += f64::from(tasks.div_ceil(12)) * seconds;
            }
        }
        let deadline = release + alone * (1.5 + draw("slack", f, 20) as f64 / 10.0);
        let weight = 1.0 + draw("weight", f, 5) as f64;
        let named = FlowDraft::new(format!("f{f}"), jobs);
        list.push(FlowDraft { release, weight, deadline: Some(deadline), ..named });
    }
    let machine =
        MachineDraft { name: "m".into(), count: 6, speed: 1.0, slots: Slots::Generic(2), rack: None };
    let objective = Objective::new(metric, Combine::Sum);
    Instance::new(&Draft { machines: vec![machine], flows: list, objective, ..Draft::default() }).unwrap()
}
