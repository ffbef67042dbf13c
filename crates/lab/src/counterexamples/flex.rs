//! FLEX: packing orders, the sign of the minimax reduction, steps that are not convex.

use slackline_algo::flex::mps::Packer;
use slackline_algo::flex::{Config, FlexInstance, Job, knapsack, plan, rap};
use slackline_model::{Combine, CostFn};

use crate::counterexamples::CounterexampleEntry;
use crate::counterexamples::drawing::{Bar, bars};

/// A job that holds `slots` slots from `start` to `end`.
struct SlotInterval {
    job: usize,
    start: f64,
    end: f64,
    slots: f64,
}

/// Each job on its slots from the start until it is done.
fn constant(instance: &FlexInstance, slots: &[u32]) -> Vec<SlotInterval> {
    let jobs = instance.jobs().iter().zip(slots).enumerate();
    let interval = |(job, (info, &slots)): (usize, (&Job, &u32))| {
        let slots = f64::from(slots);
        SlotInterval { job, start: 0.0, end: info.work / slots, slots }
    };
    jobs.map(interval).collect()
}

/// Stacks the slots of jobs in every interval between two changes.
fn stacked(held: &[SlotInterval]) -> Vec<Bar> {
    let mut times: Vec<f64> = held.iter().flat_map(|piece| [piece.start, piece.end]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut all = Vec::new();
    for pair in times.windows(2) {
        let (start, end) = (pair[0], pair[1]);
        let mut low = 0.0;
        for piece in held.iter().filter(|piece| piece.start <= start && piece.end >= end) {
            let high = low + piece.slots;
            let name = format!("J{}", piece.job + 1);
            all.push(Bar { job: piece.job, name, start, end, low, high });
            low = high;
        }
    }
    all
}

/// Lemma 1: some packing order is optimal for every metric.
pub(super) fn packing_orders() -> Result<CounterexampleEntry, String> {
    let job = Job::new(2.0, 0..=2, CostFn::linear(1.0, 0.0));
    let instance = FlexInstance::new(3, Combine::Max, vec![job; 3]);
    let mut packer = Packer::new(&instance);
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let packed = orders.iter().map(|order| packer.cost(order)).fold(f64::INFINITY, f64::min);
    let best = plan(&instance, &Config::thorough());
    let pieces: Vec<SlotInterval> = packer
        .pieces(&orders[0])
        .iter()
        .map(|piece| SlotInterval {
            job: piece.job,
            start: piece.start,
            end: piece.end,
            slots: f64::from(piece.slots),
        })
        .collect();
    let even: Vec<SlotInterval> =
        (0..3).map(|job| SlotInterval { job, start: 0.0, end: best.cost, slots: 1.0 }).collect();
    Ok(CounterexampleEntry {
        id: "flex-lemma-1",
        paper: "flex",
        at: "Lemma 1",
        printed: "For every metric, some packing order is optimal.",
        example: "Three equal jobs, 2 slot-seconds of work on at most 2 slots each, on 3 slots; the last completion is to be early.",
        found: vec![
            format!("best of all six packing orders: {packed} s"),
            format!("optimum: {} s (each job on one slot)", best.cost),
        ],
        refuted: best.cost < packed - 1e-9,
        pictures: vec![
            bars(&format!("A packing order: {packed} s"), &stacked(&pieces), packed, &[])?,
            bars(&format!("The optimum: {} s", best.cost), &stacked(&even), packed, &[])?,
        ],
        instead: "Maxima are solved by an exact test of deadlines within a bisection, which is optimal.",
    })
}

/// Section 3.2: G_j(s) as the sum of F_j(i) up to s, minimised, gives the least maximum.
pub(super) fn least_maximum() -> Result<CounterexampleEntry, String> {
    let job = |work: f64| Job::new(work, 1..=4, CostFn::linear(1.0, 0.0));
    let instance = FlexInstance::new(4, Combine::Max, vec![job(8.0), job(2.0)]);
    let right = rap::threshold(&instance).ok_or("two jobs do not fit on four slots")?;
    let ends = |slots: &[u32]| -> Vec<f64> {
        instance.jobs().iter().zip(slots).map(|(job, &slots)| job.work / f64::from(slots)).collect()
    };
    // F_j > 0, so every further slot adds to the sum: its least value is at the minimum.
    let sum = |job: &Job, slots: u32| (1..=slots).map(|s| job.cost_at(job.work / f64::from(s))).sum::<f64>();
    let literal: Vec<u32> = instance
        .jobs()
        .iter()
        .map(|job| (1..=4).min_by(|&a, &b| sum(job, a).total_cmp(&sum(job, b))).unwrap_or(1))
        .collect();
    let (worse, better) = (instance.cost(&ends(&literal)), instance.cost(&ends(&right)));
    let draw = |title: &str, slots: &[u32]| {
        bars(&format!("{title}: {slots:?} slots"), &stacked(&constant(&instance, slots)), worse, &[])
    };
    Ok(CounterexampleEntry {
        id: "flex-minimax",
        paper: "flex",
        at: "Section 3.2",
        printed: "The least maximum over moldable jobs is found by minimising a sum of functions G_j, each the sum of the job's costs on 1, 2, … slots.",
        example: "Two jobs of 8 and 2 slot-seconds, 1 to 4 slots each, on 4 slots; the last completion is to be early.",
        found: vec![
            format!("slots as printed: {literal:?}, last completion {worse} s"),
            format!("optimum: {right:?}, {better:.2} s"),
        ],
        refuted: better < worse - 1e-9,
        pictures: vec![draw("As printed", &literal)?, draw("The optimum", &right)?],
        instead: "G_j has the other sign: a slot is worth what it saves. Or directly: the fewest slots with which each job keeps a level, and bisection over levels.",
    })
}

/// Section 3.2: which costs are convex in the slots.
pub(super) fn steps_are_not_convex() -> Result<CounterexampleEntry, String> {
    // Two more slots save 3, but the first alone saves nothing; one more saves the other job's 1.
    let job = |work: f64, cost: f64| Job::new(work, 1..=4, CostFn::steps(vec![(2.0, cost)]));
    let instance = FlexInstance::new(4, Combine::Sum, vec![job(6.0, 3.0), job(4.0, 1.0)]);
    let cost = |slots: &[u32]| -> f64 {
        instance.jobs().iter().zip(slots).map(|(job, &s)| job.cost_at(job.work / f64::from(s))).sum()
    };
    // Slot after slot to the job that gains most from one more, to the first job if none gains.
    let mut greedy = vec![1u32; 2];
    while greedy.iter().sum::<u32>() < 4 {
        let gain = |k: usize| {
            let job = &instance.jobs()[k];
            let now = f64::from(greedy[k]);
            job.cost_at(job.work / now) - job.cost_at(job.work / (now + 1.0))
        };
        let best = (0..2).fold(0, |best, k| if gain(k) > gain(best) + 1e-12 { k } else { best });
        greedy[best] += 1;
    }
    steps(&instance, &greedy, &cost)
}

fn steps(
    instance: &FlexInstance,
    greedy: &[u32],
    cost: &dyn Fn(&[u32]) -> f64,
) -> Result<CounterexampleEntry, String> {
    let right = knapsack::dynamic_program(instance, 1_000_000).ok_or("two jobs do not fit on four slots")?;
    let draw = |title: &str, slots: &[u32]| {
        bars(
            &format!("{title}: {slots:?} slots, cost {}", cost(slots)),
            &stacked(&constant(instance, slots)),
            6.0,
            &[(2.0, "due")],
        )
    };
    Ok(CounterexampleEntry {
        id: "flex-steps",
        paper: "flex",
        at: "Section 3.2",
        printed: "Costs that are not convex are tardiness and the counts of tardy jobs; for the others slots are given out greedily.",
        example: "SLA costs are steps: two jobs of 6 and 4 slot-seconds on 4 slots, due at 2 s; late costs 3 and 1.",
        found: vec![
            format!("greedy: {greedy:?} slots, cost {}", cost(greedy)),
            format!("optimum: {right:?} slots, cost {}", cost(&right)),
        ],
        refuted: cost(&right) < cost(greedy) - 1e-9,
        pictures: vec![draw("Greedy", greedy)?, draw("The optimum", &right)?],
        instead: "Tardiness is convex in the slots; tardy counts and SLA costs are not, and are solved as a multiple-choice knapsack over their steps.",
    })
}
