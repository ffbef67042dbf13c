//! FlowFlex: a re-plan as an epoch makes it, and a plan with the minimum-cost flow, on growing workloads.

use slackline_algo::flowflex::{Config, network::Network, online, orders};
use slackline_model::draft::Weights;
use slackline_model::{Combine, Instance, Metric, Objective, Seed};
use slackline_trace::generate;

use crate::Size;
use crate::measure::{median, timed};

/// Prints a row for each workload and kind of plan.
pub fn run(size: Size) {
    let (flows, repeats): (&[&str], usize) = match size {
        Size::Small => (&["10"], 1),
        Size::Large => (&["100", "1000"], 15),
    };
    println!(
        "{:<10} {:<10} {:<14} {:>10} {:>10}  hash",
        "flows x 20", "metric", "plan", "median ms", "most ms"
    );
    for flows in flows {
        for metric in [Metric::Completion, Metric::Stretch, Metric::Tardiness] {
            measure(flows, metric, repeats);
        }
    }
}

fn measure(flows: &str, metric: Metric, repeats: usize) {
    let generator = generate::generator("flowflex-5.1").expect("the generator is registered");
    let draft = generator.generate(&[("flows", flows), ("jobs", "20")], Seed(1)).expect("valid settings");
    let instance = Instance::new(&draft)
        .and_then(|i| i.with_objective(Objective::new(metric, Combine::Sum), Weights::Use))
        .expect("generated workloads are valid");
    row(flows, metric, "re-plan", repeats, || {
        let net = Network::whole(&instance, 1.0);
        online::initial_allocation(&net, 0.0)
            .into_iter()
            .map(|(node, slots)| (node, f64::from(slots)))
            .collect()
    });
    row(flows, metric, "flow at 1 %", repeats.min(3), || {
        let net = Network::whole(&instance, 1.0);
        let grid = Config::thorough().grid.expect("invariant: thorough plans use the flow");
        let relaxed = orders::relaxed(&net, grid);
        (0..net.flows.len()).map(|flow| (flow, relaxed.deadline(flow, 0.5))).collect()
    });
}

fn row(flows: &str, metric: Metric, plan: &str, repeats: usize, f: impl Fn() -> Vec<(usize, f64)>) {
    let mut seconds = Vec::new();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for _ in 0..repeats {
        let (result, took) = timed(&f);
        seconds.push(took);
        hash = 0xcbf2_9ce4_8422_2325;
        for (index, value) in result {
            hash = (hash ^ index as u64 ^ value.to_bits()).wrapping_mul(0x100_0000_01b3);
        }
    }
    let most = seconds.iter().copied().fold(0.0, f64::max);
    println!(
        "{flows:<10} {metric:<10} {plan:<14} {:>10.2} {:>10.2}  {hash:016x}",
        median(seconds) * 1e3,
        most * 1e3
    );
}
