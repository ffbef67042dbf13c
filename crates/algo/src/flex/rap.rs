//! The resource allocation problem: the best constant allocation (moldable scheduling).
//!
//! **Paper**: FLEX §3.2. Job j on s slots throughout costs F_j(s) = w_j(V_j/s), which never rises in s;
//! minimise ΣF_j(s_j) or max F_j(s_j) subject to Σs_j ≤ S and m_j ≤ s_j ≤ M_j, each s_j at least 1. The
//! order of the completions V_j/s_j is FLEX's generic order for the packing scheme.
//!
//! **Deviations** (docs/math/flex.md C5). The paper sends tardiness to the dynamic program and step costs to
//! the convex schemes. It is the other way round: w·max(0, V/s − d) is convex as the maximum of convex
//! functions, and steps (tardy, SLA) are not. Its minimax reduction takes G_j(s) = Σ_(i≤s) F_j(i) and calls
//! it convex because F_j does not fall; but F_j does not rise, so that G_j is concave and its minimiser is s
//! = m_j. With the sign of G_j turned round it is right, and amounts to giving slot after slot to the job
//! that costs most; [`threshold`] finds the same level by bisection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::{Combine, Key};
use slackline_relax::malleable::Job;

use super::constant::{cost, least, most, spare};
use super::instance::FlexInstance;
use super::knapsack;
use super::selection::frederickson_johnson;

/// The optimal constant allocation, or `None` if there are more jobs than slots or the dynamic program
/// would look at more than `cells` pairs of choice and slot.
///
/// Minisum: Frederickson-Johnson for convex costs, the dynamic program if a cost is not convex.
/// Minimax: threshold.
pub fn solve(instance: &FlexInstance, cells: u64) -> Option<Vec<u32>> {
    match instance.combine() {
        Combine::Max => threshold(instance),
        Combine::Sum if instance.jobs().iter().all(|job| job.cost.is_convex()) => {
            frederickson_johnson(instance)
        }
        Combine::Sum => knapsack::dynamic_program(instance, cells),
    }
}

/// Slot after slot to the job that costs most now: the minimax optimum, and G_j with the right sign.
/// O((J + S) log J).
pub fn costliest_first(instance: &FlexInstance) -> Option<Vec<u32>> {
    greedy(instance, cost)
}

fn greedy(instance: &FlexInstance, key: impl Fn(&Job, u32) -> f64) -> Option<Vec<u32>> {
    let mut left = spare(instance)?;
    let jobs = instance.jobs();
    let mut slots: Vec<u32> = jobs.iter().map(least).collect();
    let mut heap: BinaryHeap<(Key, Reverse<usize>)> = BinaryHeap::with_capacity(jobs.len());
    let push = |heap: &mut BinaryHeap<_>, at: usize, held: u32| {
        if held < most(&jobs[at]) {
            heap.push((Key::new(key(&jobs[at], held)), Reverse(at)));
        }
    };
    (0..jobs.len()).for_each(|at| push(&mut heap, at, slots[at]));
    while left > 0 {
        let Some((_, Reverse(at))) = heap.pop() else { break };
        slots[at] += 1;
        left -= 1;
        push(&mut heap, at, slots[at]);
    }
    Some(slots)
}

/// The minimax optimum by its level: s_j(L) = max(m_j, ⌈V_j/D_j(L)⌉), feasible if each is at most M_j and
/// together at most S. Slots left over go to the job that costs most. O(J log range + S log J).
pub fn threshold(instance: &FlexInstance) -> Option<Vec<u32>> {
    let jobs = instance.jobs();
    spare(instance)?;
    let worst = |slots: fn(&Job) -> u32| {
        jobs.iter().map(|job| cost(job, slots(job))).fold(f64::NEG_INFINITY, f64::max)
    };
    let (mut low, mut high) = (worst(most), worst(least));
    let mut best: Vec<u32> = jobs.iter().map(least).collect();
    if let Some(slots) = slots_for(instance, low) {
        (best, high) = (slots, low);
    }
    while high - low > 1e-13 * low.abs().max(high.abs()) {
        let mid = low + (high - low) / 2.0;
        if mid <= low || mid >= high {
            break;
        }
        match slots_for(instance, mid) {
            Some(slots) => (best, high) = (slots, mid),
            None => low = mid,
        }
    }
    let held: u32 = best.iter().sum();
    let floors: Vec<Job> =
        jobs.iter().zip(&best).map(|(job, &slots)| Job { min: slots, ..job.clone() }).collect();
    debug_assert!(held <= instance.slots());
    costliest_first(&FlexInstance::new(instance.slots(), instance.combine(), floors))
}

fn slots_for(instance: &FlexInstance, level: f64) -> Option<Vec<u32>> {
    let mut slots = Vec::with_capacity(instance.jobs().len());
    let mut left = u64::from(instance.slots());
    for job in instance.jobs() {
        let due = job.latest(level)?;
        let needed = least(job).max((job.work / due * (1.0 - 1e-12)).ceil() as u32);
        if needed > most(job) {
            return None;
        }
        left = left.checked_sub(u64::from(needed))?;
        slots.push(needed);
    }
    Some(slots)
}

/// Jobs in the order of V_j/s_j: FLEX's generic order. Ties by position.
pub fn order(instance: &FlexInstance, slots: &[u32]) -> Vec<usize> {
    let jobs = instance.jobs();
    let end: Vec<f64> =
        jobs.iter().zip(slots).map(|(job, &s)| if s == 0 { 0.0 } else { job.work / f64::from(s) }).collect();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|&a, &b| end[a].total_cmp(&end[b]).then(a.cmp(&b)));
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::CostFn;

    use super::super::constant::saving;
    use super::super::knapsack::{dynamic_program, paper_program};
    use super::super::selection::frederickson_johnson;
    use super::*;

    /// Fox (1966): slot after slot to the job that saves most by it. Optimal for convex costs.
    fn fox(instance: &FlexInstance) -> Option<Vec<u32>> {
        greedy(instance, saving)
    }

    fn total(instance: &FlexInstance, slots: &[u32]) -> f64 {
        instance.combine().of(instance.jobs().iter().zip(slots).map(|(job, &s)| cost(job, s)))
    }

    #[derive(Clone, Copy, Debug)]
    enum Kind {
        Linear,
        Tardiness,
        Steps,
    }

    fn instances(kinds: &'static [Kind], combine: Combine) -> impl Strategy<Value = FlexInstance> {
        let one = (0u32..40, 0u32..3, 0u32..12, 1u32..10, 1u32..12, prop::sample::select(kinds));
        (prop::collection::vec(one, 1..9), 0u32..40).prop_map(move |(list, spare)| {
            let jobs: Vec<Job> = (list.into_iter())
                .map(|(work, min, more, weight, due, kind)| {
                    let (w, d) = (f64::from(weight), f64::from(due) / 2.0);
                    let cost = match kind {
                        Kind::Linear => CostFn::linear(w, d),
                        Kind::Tardiness => CostFn::tardiness(w, d),
                        Kind::Steps => CostFn::steps(vec![(d, w), (2.0 * d, 3.0 * w)]),
                    };
                    Job::new(f64::from(work) / 2.0, min..=min + more, cost)
                })
                .collect();
            let needed: u32 = jobs.iter().map(|job| job.min.max(1)).sum();
            FlexInstance::new(needed + spare, combine, jobs)
        })
    }

    fn check_valid(instance: &FlexInstance, slots: &[u32]) {
        assert!(slots.iter().sum::<u32>() <= instance.slots());
        for (job, &s) in instance.jobs().iter().zip(slots) {
            assert!(least(job) <= s && s <= most(job), "{s} slots for {job:?}");
        }
    }

    fn same(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    proptest! {
        #[test]
        fn convex_schemes_agree(instance in instances(&[Kind::Linear, Kind::Tardiness], Combine::Sum)) {
            let greedy = fox(&instance).unwrap();
            check_valid(&instance, &greedy);
            let optimum = total(&instance, &paper_program(&instance, 1 << 20).unwrap());
            prop_assert!(same(total(&instance, &greedy), optimum), "tardiness is convex, so Fox is optimal");
            let slots = frederickson_johnson(&instance).unwrap();
            check_valid(&instance, &slots);
            prop_assert_eq!(slots.iter().sum::<u32>(), greedy.iter().sum::<u32>());
            prop_assert!(same(total(&instance, &slots), optimum));
        }

        #[test]
        fn few_choices_are_enough_for_steps(
            instance in instances(&[Kind::Steps, Kind::Linear], Combine::Sum),
        ) {
            let all = paper_program(&instance, 1 << 20).unwrap();
            let useful = dynamic_program(&instance, 1 << 20).unwrap();
            check_valid(&instance, &all);
            check_valid(&instance, &useful);
            prop_assert!(same(total(&instance, &all), total(&instance, &useful)));
            prop_assert!(total(&instance, &fox(&instance).unwrap()) >= total(&instance, &all) - 1e-9);
        }

        #[test]
        fn thresholds_are_minimax_optima(
            instance in instances(&[Kind::Linear, Kind::Tardiness, Kind::Steps], Combine::Max),
        ) {
            let slots = threshold(&instance).unwrap();
            check_valid(&instance, &slots);
            let greedy = costliest_first(&instance).unwrap();
            prop_assert!(same(total(&instance, &slots), total(&instance, &greedy)));
        }
    }

    #[test]
    fn greedy_marginals_are_wrong_on_steps() {
        // Two slots more meet the deadline of the first job; one slot more saves nothing there.
        let steps = |d: f64, c: f64| CostFn::steps(vec![(d, c)]);
        let jobs =
            vec![Job::new(6.0, 1..=9, steps(2.0, 5.0)), Job::new(2.0, 1..=9, CostFn::linear(1.0, 0.0))];
        let instance = FlexInstance::new(4, Combine::Sum, jobs);
        assert_eq!(solve(&instance, 1 << 20).unwrap(), [3, 1]);
        assert_eq!(fox(&instance).unwrap(), [1, 3]);
    }

    #[test]
    fn more_jobs_than_slots_have_no_moldable_schedule() {
        let jobs = vec![Job::new(1.0, 0..=1, CostFn::linear(1.0, 0.0)); 3];
        assert_eq!(solve(&FlexInstance::new(2, Combine::Sum, jobs), 1 << 20), None);
    }
}
