//! FlowFlex: the duration of an epoch, and of a plan with the minimum-cost flow, on growing workloads.
//!
//! Flows are those of section 5.1 with 20 jobs each. *Re-plan* is the work of the online policy in every
//! epoch: the network of the remaining work, the order of the closed form (or of the best rule), and the
//! initial allocation of its list schedule. Epochs are spread evenly over the schedule, with half-done
//! phases. Each is timed three times, and the least time counts. *Flow* is the minimum-cost flow with cuts 1
//! % apart and deadlines at one half; `crates/lab/reference/ortools_flow.py` solves the same one.

use slackline_algo::flowflex::list::{self, Lister};
use slackline_algo::flowflex::network::{Network, Remaining, Supply};
use slackline_algo::flowflex::{Config, online, orders};
use slackline_model::draft::Weights;
use slackline_model::schedule::Allocation;
use slackline_model::{Combine, Instance, Metric, Objective, PhaseId, Seed};
use slackline_trace::generate;

use super::measure::{fnv, median, timed_thrice};
use super::size::Size;

/// Prints a row for each workload and metric.
pub fn run(size: Size) {
    let (flows, epochs): (&[&str], usize) = match size {
        Size::Small => (&["10"], 3),
        Size::Large => (&["10", "100", "1000"], 100),
    };
    println!("{:<6} {:<11} {:<4} {:>12} {:>9} {:>9}  hash", "flows", "metric", "", "", "median ms", "p99 ms");
    for flows in flows {
        for (metric, combine) in [
            (Metric::Completion, Combine::Sum),
            (Metric::Stretch, Combine::Sum),
            (Metric::Tardiness, Combine::Sum),
            (Metric::Completion, Combine::Max),
        ] {
            let objective = Objective::new(metric, combine);
            let instance = instance(flows, objective);
            replans(flows, &instance, epochs);
            if combine == Combine::Sum {
                flow(flows, &instance, if size == Size::Small { 1 } else { 5 });
            }
        }
    }
}

fn instance(flows: &str, objective: Objective) -> Instance {
    let generator = generate::generator("flowflex-5.1").expect("the generator is registered");
    let draft = generator.generate(&[("flows", flows), ("jobs", "20")], Seed(1)).expect("valid settings");
    let instance = Instance::new(&draft).expect("generated workloads are valid");
    instance.with_objective(objective, Weights::Use).expect("the metric needs no numbers")
}

/// The remaining work of a schedule at an instant.
struct Left<'a> {
    instance: &'a Instance,
    work: Vec<f64>,
}

impl<'a> Left<'a> {
    fn at(instance: &'a Instance, rows: &[Allocation], now: f64) -> Self {
        let mut work: Vec<f64> = instance.phases().iter().map(|p| p.work().slot_seconds()).collect();
        for row in rows.iter().filter(|row| row.start < now) {
            work[row.phase.index()] -= f64::from(row.slots) * (row.end.min(now) - row.start);
        }
        Self { instance, work }
    }
}

impl Remaining for Left<'_> {
    fn work(&self, phase: PhaseId) -> Option<f64> {
        Some(self.work[phase.index()]).filter(|&left| left > 1e-6)
    }

    fn cap(&self, phase: PhaseId) -> u32 {
        self.instance.phase(phase).cap
    }
}

fn replans(flows: &str, instance: &Instance, epochs: usize) {
    let whole = Network::whole(instance, 1.0);
    let order = orders::Rule::Smith.order(&whole);
    let mut lister = Lister::new(&whole);
    let rows = lister.rows(list::Rule::Flows(&order));
    let end = lister.completions(list::Rule::Flows(&order)).iter().copied().fold(0.0, f64::max);
    let (mut seconds, mut hash) = (Vec::new(), 0);
    for epoch in 0..epochs {
        let now = end * epoch as f64 / epochs as f64;
        let left = Left::at(instance, &rows, now);
        let arrived = instance.flows().iter_enumerated().filter(|(_, flow)| {
            flow.jobs().flat_map(|job| instance.job(job).phases()).any(|p| left.work(p).is_some())
        });
        let arrived: Vec<_> = arrived.map(|(id, _)| id).collect();
        let (given, took) = timed_thrice(|| {
            let slots = Supply { slots: whole.slots, speed: 1.0, binding: false };
            let net = Network::of(instance, arrived.iter().copied(), slots, now, &left);
            online::initial_allocation(&net, now)
        });
        hash = fnv(given.iter().flat_map(|&(node, slots)| [hash, node as u64, u64::from(slots)]));
        seconds.push(took);
    }
    row(flows, instance.objective(), "re-plan", seconds, hash);
}

fn flow(flows: &str, instance: &Instance, repeats: usize) {
    let grid = Config::thorough().grid.expect("invariant: thorough plans use the flow");
    let (mut seconds, mut hash) = (Vec::new(), 0);
    for _ in 0..repeats {
        let (deadlines, took) = timed_thrice(|| {
            let net = Network::whole(instance, 1.0);
            let relaxed = orders::relaxed(&net, grid);
            (0..net.flows.len()).map(|flow| relaxed.deadline(flow, 0.5)).collect::<Vec<f64>>()
        });
        hash = fnv(deadlines.iter().map(|d| d.to_bits()));
        seconds.push(took);
    }
    row(flows, instance.objective(), "flow at 1 %", seconds, hash);
}

/// Prints median and 99th percentile (nearest rank).
fn row(flows: &str, objective: Objective, what: &str, mut seconds: Vec<f64>, hash: u64) {
    seconds.sort_by(f64::total_cmp);
    let p99 = seconds[(seconds.len() * 99).div_ceil(100) - 1];
    println!(
        "{flows:<6} {:<11} {:<4} {what:>12} {:>9.3} {:>9.3}  {hash:016x}",
        objective.metric.name(),
        objective.combine.name(),
        1e3 * median(seconds),
        1e3 * p99,
    );
}
