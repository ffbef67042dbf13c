//! FLEX: the duration of an epoch (order and packing), from 10 to 100,000 jobs.
//!
//! Jobs are those of section 4.1, with ten slots and a hundred slot-seconds a job. *One order* is one rule's
//! order and its packing; *epoch* is the work of the online policy: every closed-form order, the cheapest of
//! their packings, the targets. Each is timed three times and the least time counts; medians of these. The
//! paper reports less than 10 ms for 172 jobs.

use slackline_algo::flex::mps::{Packer, first_interval};
use slackline_algo::flex::orders::{CostProfile, Rule};
use slackline_algo::flex::{FlexInstance, Job, quick_order};
use slackline_model::draft::Weights;
use slackline_model::{Combine, Instance, Metric, Objective, Seed};
use slackline_trace::generate;

use super::measure::{median, timed_thrice};
use super::size::Size;

/// Prints a row for each size and metric.
pub fn run(size: Size) {
    let sizes: &[u32] = match size {
        Size::Small => &[10, 172],
        Size::Large => &[10, 172, 1_000, 10_000, 100_000],
    };
    println!("{:<12} {:<4} {:>7} {:>14} {:>10}  hash", "metric", "", "jobs", "one order ms", "epoch ms");
    for &jobs in sizes {
        for (metric, combine) in [
            (Metric::Response, Combine::Sum),
            (Metric::Stretch, Combine::Sum),
            (Metric::Tardy, Combine::Sum),
            (Metric::Tardiness, Combine::Sum),
            (Metric::Response, Combine::Max),
        ] {
            epoch(jobs, Objective::new(metric, combine), size);
        }
    }
}

fn epoch(jobs: u32, objective: Objective, size: Size) {
    let instance = instance(jobs, objective);
    let rule = if matches!(objective.metric, Metric::Tardy | Metric::Tardiness) {
        Rule::DueDate
    } else {
        Rule::Smith
    };
    let repeats = if size == Size::Small { 1 } else { (100_000 / jobs as usize).clamp(5, 500) };
    let (mut one, mut all, mut hash) = (Vec::new(), Vec::new(), 0u64);
    for _ in 0..repeats {
        let (order, took) = timed_thrice(|| {
            let nature = CostProfile::new(&instance);
            let order = rule.order(&instance, &nature, 0).expect("the rule applies");
            Packer::new(&instance).completions(&order);
            order
        });
        one.push(took);
        assert_eq!(order.len(), jobs as usize);
        let (slots, took) = timed_thrice(|| first_interval(&instance, &quick_order(&instance)));
        all.push(took);
        hash = slots
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |h: u64, &s| (h ^ u64::from(s)).wrapping_mul(0x100_0000_01b3));
    }
    println!(
        "{:<12} {:<4} {jobs:>7} {:>14.4} {:>10.4}  {hash:016x}",
        objective.metric.name(),
        objective.combine.name(),
        1e3 * median(one),
        1e3 * median(all),
    );
}

fn instance(jobs: u32, objective: Objective) -> FlexInstance {
    let slots = 10 * jobs;
    let settings = [
        ("jobs", jobs.to_string()),
        ("total-slots", slots.to_string()),
        ("total-work", (100.0 * f64::from(jobs)).to_string()),
    ];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let generator = generate::generator("flex-4.1").expect("the generator is registered");
    let draft = generator.generate(&settings, Seed(1)).expect("the parameters are valid");
    let model = Instance::new(&draft).expect("generated workloads are valid");
    let model = model.with_objective(objective, Weights::Use).expect("the metric needs no numbers");
    let jobs = model.flows().iter().zip(model.phases().iter()).map(|(flow, phase)| {
        Job::new(phase.work().slot_seconds(), phase.min_slots..=phase.cap, flow.cost.clone())
    });
    FlexInstance::new(slots, objective.combine, jobs.collect())
}
