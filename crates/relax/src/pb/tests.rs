//! The closed form against its definition over all subsets, its oracle, and the laws of a bound.

use proptest::prelude::*;

use super::*;

fn job(work: f64, weight: f64, floor: f64, tail: f64) -> Job {
    Job { work, weight, floor, tail }
}

/// The greedy of the definition with best(A) over all subsets: exponential, independent of prefixes.
fn by_subsets(jobs: &[Job], capacity: f64) -> f64 {
    let mut smith: Vec<usize> = (0..jobs.len()).filter(|&j| jobs[j].work > 0.0).collect();
    smith.sort_by(|&a, &b| (jobs[b].weight / jobs[b].work).total_cmp(&(jobs[a].weight / jobs[a].work)));
    let best = |among: &[usize]| {
        (0..1u32 << among.len())
            .map(|mask| {
                let chosen = || (0..among.len()).filter(|i| mask >> i & 1 == 1).map(|i| &jobs[among[i]]);
                let work: f64 = chosen().map(|j| j.work).sum();
                work * work / (2.0 * capacity) - chosen().map(|j| j.work * (j.floor - j.tail)).sum::<f64>()
            })
            .fold(0.0, f64::max)
    };
    let mut value: f64 = jobs.iter().map(|j| j.weight * j.floor).sum();
    for k in 0..smith.len() {
        let gain = best(&smith[..=k]) - best(&smith[..k]);
        value += jobs[smith[k]].weight * gain / jobs[smith[k]].work;
    }
    value
}

/// Small whole numbers, so that ties are common.
fn jobs(most: usize) -> impl Strategy<Value = Vec<Job>> {
    let one = (0u32..6, 0u32..4, 0u32..20, 0u32..10).prop_map(|(work, weight, slack, tail)| {
        job(f64::from(work), f64::from(weight), f64::from(tail + slack) / 2.0, f64::from(tail) / 2.0)
    });
    prop::collection::vec(one, 1..most)
}

proptest! {
    #[test]
    fn greedy_equals_the_definition_over_all_subsets(jobs in jobs(8), capacity in 1u32..4) {
        let capacity = f64::from(capacity);
        let (fast, slow) = (solve(&jobs, capacity).value, by_subsets(&jobs, capacity));
        prop_assert!((fast - slow).abs() <= 1e-9 * (1.0 + slow), "{fast} against {slow}");
    }

    #[test]
    fn solutions_are_feasible_and_smaller_ones_are_not(jobs in jobs(40), capacity in 1u32..4) {
        let capacity = f64::from(capacity);
        let solution = solve(&jobs, capacity);
        if let Some((_, violation)) = most_violated(&jobs, capacity, &solution.completion) {
            prop_assert!(violation < 1e-6, "violated by {violation}");
        }
        for (job, &c) in jobs.iter().zip(&solution.completion) {
            prop_assert!(c >= job.floor);
        }
    }

    #[test]
    fn the_bound_never_falls_when_a_job_comes(jobs in jobs(12), capacity in 1u32..4) {
        let capacity = f64::from(capacity);
        let fewer = solve(&jobs[1..], capacity).value;
        prop_assert!(solve(&jobs, capacity).value >= fewer - 1e-9 * (1.0 + fewer));
    }

    #[test]
    fn the_oracle_finds_the_worst_of_all_subsets(jobs in jobs(8), times in prop::collection::vec(0u32..30, 8)) {
        let completion: Vec<f64> = times.into_iter().map(f64::from).collect();
        let worst = (0..1u32 << jobs.len())
            .map(|mask| {
                let chosen = || (0..jobs.len()).filter(|j| mask >> j & 1 == 1);
                let work: f64 = chosen().map(|j| jobs[j].work).sum();
                let right = chosen().map(|j| jobs[j].work * (completion[j] - jobs[j].tail)).sum::<f64>();
                work * work / 2.0 - right
            })
            .fold(0.0, f64::max);
        let found = most_violated(&jobs, 1.0, &completion).map_or(0.0, |(_, v)| v);
        prop_assert!((worst - found).abs() < 1e-9);
    }
}

#[test]
fn dmrs_lemma_1_needs_the_key_of_the_text() {
    // Capacity 10; z has few machines (tail 100/20), x and y many. The printed key orders y first.
    let tail = |p: f64, mu: f64| p / (2.0 * mu);
    let z = job(100.0, 1.0, 10.0, tail(100.0, 10.0));
    let x = job(18.0, 1.0, 18.0, tail(18.0, 1.0));
    let y = job(1.0, 1.0, 12.6, tail(1.0, 10.0));
    let (set, violation) = most_violated(&[z, x, y], 10.0, &[10.0, 18.0, 12.6]).unwrap();
    assert_eq!(set, [0, 1]);
    assert!((violation - 34.2).abs() < 1e-9, "{violation}");
}

#[test]
fn no_floors_give_smith_on_one_fast_machine() {
    let jobs = [job(6.0, 1.0, 0.0, 0.0), job(2.0, 2.0, 0.0, 0.0)];
    // Mean busy times 0.5 and 2.5 at capacity 2: 2·0.5 + 1·2.5.
    assert!((solve(&jobs, 2.0).value - 3.5).abs() < 1e-12);
}

#[test]
fn a_hundred_thousand_jobs_are_no_matter() {
    let mut x = 1u64;
    let mut draw = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (x >> 40) as f64 / f64::from(1 << 24)
    };
    let jobs: Vec<Job> = (0..100_000)
        .map(|_| {
            let tail = draw();
            job(1.0 + draw(), draw(), tail + 1000.0 * draw(), tail)
        })
        .collect();
    let solution = solve(&jobs, 50.0);
    let violation = most_violated(&jobs, 50.0, &solution.completion).map_or(0.0, |(_, v)| v);
    assert!(violation < 1e-3, "{violation}");
}
