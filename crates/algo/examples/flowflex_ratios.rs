//! FlowFlex, FIFO and Fair on the generator of the paper's section 5.1: cost over the best lower bound,
//! mean and worst over seeds, for every metric (Fig. 10 and 11).
//!
//! `cargo run --release -p slackline-algo --example flowflex_ratios [seeds]`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example talks, and its inputs are valid")]

use slackline_algo::flowflex::{self, Config, list::Rule};
use slackline_model::draft::Weights;
use slackline_model::schedule::Allocation;
use slackline_model::{Combine, Instance, Metric, Objective, Seed};
use slackline_trace::generate;

/// Means and maxima of one policy's ratios.
#[derive(Default)]
struct Ratios {
    sum: f64,
    worst: f64,
}

impl Ratios {
    fn add(&mut self, ratio: f64) {
        self.sum += ratio;
        self.worst = self.worst.max(ratio);
    }

    fn show(&self, n: u64) -> String {
        format!("{:>8.3} {:>8.3}", self.sum / n as f64, self.worst)
    }
}

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(25);
    println!("{:<28} {:>17} {:>17} {:>17}  worst absolute gap", "metric", "flowflex", "fifo", "fair");
    let metrics = [
        (Metric::Completion, Weights::Ignore),
        (Metric::Completion, Weights::Use),
        (Metric::Stretch, Weights::Ignore),
        (Metric::Tardy, Weights::Ignore),
        (Metric::Tardy, Weights::Use),
        (Metric::Tardiness, Weights::Ignore),
        (Metric::Tardiness, Weights::Use),
        (Metric::Sla, Weights::Use),
    ];
    for combine in [Combine::Sum, Combine::Max] {
        for (metric, weights) in metrics {
            let metric =
                if combine == Combine::Max && metric == Metric::Completion && weights == Weights::Ignore {
                    Metric::Makespan
                } else {
                    metric
                };
            row(Objective::new(metric, combine), weights, seeds);
        }
    }
}

fn row(objective: Objective, weights: Weights, seeds: u64) {
    let [mut ours, mut fifo, mut fair] = [Ratios::default(), Ratios::default(), Ratios::default()];
    let mut gap = 0f64;
    for seed in 0..seeds {
        let cost = if objective.metric == Metric::Sla { "sla" } else { "metric" };
        let generator = generate::generator("flowflex-5.1").unwrap();
        let draft = generator.generate(&[("cost", cost)], Seed(seed)).unwrap();
        let instance = Instance::new(&draft).unwrap().with_objective(objective, weights).unwrap();
        let plan = flowflex::plan(&instance, &Config::thorough()).unwrap();
        let cost = |rows: &[Allocation]| {
            let mut ends = vec![0f64; instance.flows().len()];
            for row in rows {
                let end = &mut ends[instance.flow_of(row.phase).index()];
                *end = end.max(row.end);
            }
            instance.cost_of(&ends)
        };
        // One is added on both sides where the bound is (near) zero, as the paper does (its footnote 10).
        let add = if plan.bound < 1.0 { 1.0 } else { 0.0 };
        let ratio = |cost: f64| (cost + add) / (plan.bound + add);
        gap = gap.max(plan.cost - plan.bound);
        ours.add(ratio(plan.cost));
        fifo.add(ratio(cost(&flowflex::ready_list(&instance, Rule::Fifo).unwrap())));
        fair.add(ratio(cost(&flowflex::ready_list(&instance, Rule::Fair).unwrap())));
    }
    let weighted = if weights == Weights::Use { "weighted " } else { "" };
    let name = format!("{} {weighted}{}", objective.combine.name(), objective.metric);
    println!("{name:<28} {} {} {}  {gap:.3}", ours.show(seeds), fifo.show(seeds), fair.show(seeds));
}
