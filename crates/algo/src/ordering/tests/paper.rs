//! The paper's statements: the true ones, and counterexamples to the false ones.

use proptest::prelude::*;
use slackline_model::{JobId, Span};
use slackline_relax::johnson::Stages;

use super::{split, uniform, workload};
use crate::ordering::bounds::Bounds;
use crate::ordering::estimator::{Mode, estimate};
use crate::ordering::exhaustive::ex_mk_sf_jr;
use crate::ordering::orders::{
    Candidates, Goal, Rule, Times, TooMany, all_orders, mk_jr, mk_tct_jr, reverse_johnson,
};
use crate::ordering::split::{Config, at_split, mk_sf_jr, proportional};
use crate::ordering::splits::Splits;
use crate::ordering::workload::Workload;

const MODES: [Mode; 2] = [Mode::WorkConserving, Mode::Strict];

fn makespan(workload: &Workload, order: &[u32], slots: (u32, u32), mode: Mode) -> u64 {
    let order: Vec<JobId> = order.iter().map(|&job| JobId(job)).collect();
    estimate(workload, &order, split(slots.0, slots.1), mode).makespan().0
}

fn ids(order: &[JobId]) -> Vec<u32> {
    order.iter().map(|job| job.0).collect()
}

fn sec5_3() -> Workload {
    uniform(&[((10, 9), (1, 10)), ((8, 11), (1, 15))])
}

#[test]
fn ordering_sec5_3_example() {
    let w = sec5_3();
    for mode in MODES {
        assert_eq!(makespan(&w, &[0, 1], (10, 10), mode), 35);
        assert_eq!(makespan(&w, &[0, 1], (8, 8), mode), 44);
        assert_eq!(makespan(&w, &[1, 0], (8, 8), mode), 39);
        // "The optimal job scheduling order is J1 -> J2, with the makespan of 35" does not hold.
        assert_eq!(makespan(&w, &[1, 0], (10, 10), mode), 30);
        // It does on one reduce slot.
        assert_eq!(makespan(&w, &[0, 1], (10, 1), mode), 35);
        assert_eq!(makespan(&w, &[1, 0], (10, 1), mode), 36);
    }
    // MK_JR as printed finds both optima; the example must have used stage durations.
    for nodes in [5, 4] {
        assert_eq!(ids(&mk_jr(&w, split(2 * nodes, 2 * nodes), Times::Area)), [1, 0]);
    }
    assert_eq!(ids(&mk_jr(&w, split(10, 10), Times::Stage)), [0, 1]);
}

/// Theorem 3 is about area times: by stage durations the example's own order changes when a node fails.
#[test]
fn ordering_theorem3_fails_for_stage_times() {
    let w = sec5_3();
    assert_eq!(ids(&mk_jr(&w, split(10, 10), Times::Stage)), [0, 1]);
    assert_eq!(ids(&mk_jr(&w, split(8, 8), Times::Stage)), [1, 0]);
}

/// Six map and six reduce slots; five jobs whose long reduces leave the reduce slots staggered.
fn staggered() -> Workload {
    let mut jobs = vec![((6, 100), (1, 600)); 5];
    jobs.push(((6, 100), (3600, 1)));
    jobs.push(((6, 101), (1, 600)));
    uniform(&jobs)
}

/// Lemma 2's bound on the order given, times 6 · 6 to stay whole.
fn lemma2_times_36(w: &Workload) -> u64 {
    let (mut before, mut longest, mut worst) = (0, 0, 0);
    let mut rest: u64 = w.jobs().iter().map(|job| job.reduce.work().0 * 6).sum();
    for job in w.jobs() {
        before += job.map.work().0 * 6;
        longest = longest.max(job.map.longest().0);
        worst = worst.max(before + 36 * longest + rest);
        rest -= job.reduce.work().0 * 6;
    }
    worst + 36 * w.jobs().iter().map(|job| job.reduce.longest().0).max().unwrap()
}

#[test]
fn ordering_lemma2_counterexample() {
    let (w, slots) = (staggered(), split(6, 6));
    let order = mk_jr(&w, slots, Times::Area);
    assert_eq!(ids(&order), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(estimate(&w, &order, slots, Mode::WorkConserving).makespan(), Span(2050));
    assert_eq!(lemma2_times_36(&w), 2000 * 36);
}

/// Theorem 1: 1 + δ with δ = (max t^M + max t^R) / F is exceeded.
#[test]
fn ordering_theorem1_counterexample() {
    let (w, slots) = (staggered(), split(6, 6));
    let (best, _) = all_orders(&w, slots, Mode::WorkConserving, Goal::Makespan).unwrap();
    assert_eq!(best.makespan, Span(1301));
    let delta = (101.0 + 600.0) / Bounds::new(&w).makespan(6, 6) as f64;
    assert!(2050.0 > (1.0 + delta) * 1301.0);
    let corrected = (101.0 + 2.0 * 600.0) / Bounds::new(&w).makespan(6, 6) as f64;
    assert!(2050.0 <= (1.0 + corrected) * 1301.0);
}

/// Theorem 4, the same for MK_SF_JR: six nodes of two slots have one split, that of Theorem 1.
#[test]
fn ordering_theorem4_counterexample() {
    let (w, splits) = (staggered(), Splits::of_nodes(6, 2).unwrap());
    let config = Config { mk_jr: Candidates::Only(Times::Area), ..Config::standard() };
    let (found, best) = (mk_sf_jr(&w, splits, config), ex_mk_sf_jr(&w, splits, config.mode).unwrap());
    assert_eq!((found.choice.makespan, best.choice.makespan), (Span(2050), Span(1301)));
    let delta = (101.0 + 600.0) / Bounds::new(&w).makespan(6, 6) as f64;
    assert!(2050.0 > (1.0 + delta) * 1301.0);
}

/// The upper bound of D5, in place of the paper's Lemma 2, which does not hold. Every work-conserving FIFO
/// schedule of order 1, 2, … ends by
///
/// ```text
/// max_k { Σ_{i≤k} T^M_i + (1 − 1/a) max_{i≤k} t^M_i + Σ_{i≥k} T^R_i } + 2 (1 − 1/b) max_i t^R_i.
/// ```
///
/// A stage of a job is the work of all its tasks and its longest task. All jobs are released at 0.
fn fifo_upper_bound(jobs: &[Stages<(f64, f64)>], [map_slots, reduce_slots]: [u32; 2]) -> f64 {
    let (a, b) = (f64::from(map_slots), f64::from(reduce_slots));
    let mut rest: f64 = jobs.iter().map(|[_, (work, _)]| work / b).sum();
    let (mut before, mut longest_map, mut worst) = (0.0, 0.0_f64, 0.0_f64);
    for [(map_work, map_longest), (reduce_work, _)] in jobs {
        before += map_work / a;
        longest_map = longest_map.max(*map_longest);
        worst = worst.max(before + (1.0 - 1.0 / a) * longest_map + rest);
        rest -= reduce_work / b;
    }
    let longest_reduce = jobs.iter().map(|[_, (_, longest)]| *longest).fold(0.0, f64::max);
    worst + 2.0 * (1.0 - 1.0 / b) * longest_reduce
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// D5: the corrected upper bound, for any order.
    #[test]
    fn ordering_lemma2_corrected(w in workload(8, 2, 20, 30), a in 1u32..7, b in 1u32..7) {
        let order: Vec<JobId> = w.ids().collect();
        let loads = |job: &crate::ordering::workload::Job| {
            [&job.map, &job.reduce].map(|tasks| (tasks.work().0 as f64, tasks.longest().0 as f64))
        };
        let loads: Vec<_> = w.jobs().iter().map(loads).collect();
        let value = estimate(&w, &order, split(a, b), Mode::WorkConserving).makespan().0 as f64;
        prop_assert!(value <= fifo_upper_bound(&loads, [a, b]) + 1e-6);
    }

    /// Theorem 3: on any number of equal nodes the orders by area times are the same.
    #[test]
    fn ordering_theorem3_area_times(w in workload(8, 1, 9, 9), m in 1u32..6, r in 1u32..6, k in 2u32..50) {
        for rule in [Rule::MkJr, Rule::MkTctJr] {
            let orders = [1, k].map(|nodes| rule.order(&w, split(nodes * m, nodes * r), Times::Area));
            prop_assert_eq!(&orders[0], &orders[1]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// D4, Theorem 2: on one slot of each kind MK_JR is best and its reverse worst. (Reduces without
    /// maps need not wait for the maps of jobs before them, which no flow shop has.)
    #[test]
    fn ordering_theorem2_one_slot_each(w in workload(5, 1, 3, 5), strict: bool) {
        let jobs: Vec<_> = w.jobs().iter().filter(|job| job.map.count() > 0).cloned().collect();
        prop_assume!(!jobs.is_empty());
        let w = Workload::new(jobs).unwrap();
        let (one, mode) = (split(1, 1), MODES[usize::from(strict)]);
        let (best, worst) = all_orders(&w, one, mode, Goal::Makespan).unwrap();
        for times in [Times::Area, Times::Stage] {
            let value = |order: &[JobId]| estimate(&w, order, one, mode).makespan();
            prop_assert_eq!(value(&mk_jr(&w, one, times)), best.makespan);
            prop_assert_eq!(value(&reverse_johnson(&w, one, times)), worst.makespan);
        }
    }

    /// D4, D6: the bounds for all orders hold for every order.
    #[test]
    fn bounds_hold_for_every_order(w in workload(5, 2, 9, 9), a in 1u32..5, b in 1u32..5, strict: bool) {
        let (slots, mode) = (split(a, b), MODES[usize::from(strict)]);
        let mut bounds = Bounds::new(&w);
        let (best, _) = all_orders(&w, slots, mode, Goal::Makespan).unwrap();
        prop_assert!(bounds.makespan(a, b) <= best.makespan.0);
        let (best, _) = all_orders(&w, slots, mode, Goal::TotalCompletion).unwrap();
        prop_assert!(bounds.total_completion(a, b) <= best.total_completion);
    }

    /// D6: strictly ordered reduces never lose by more slots.
    #[test]
    fn strict_is_monotone_in_slots(w in workload(6, 2, 9, 9), a in 1u32..6, b in 1u32..6) {
        let order: Vec<JobId> = w.ids().collect();
        let value = |a, b| estimate(&w, &order, split(a, b), Mode::Strict).completion;
        let base = value(a, b);
        for more in [value(a + 1, b), value(a, b + 1)] {
            prop_assert!(more.iter().zip(&base).all(|(more, base)| more <= base));
        }
    }
}

#[test]
fn work_conserving_reduces_may_lose_by_more_slots() {
    let w = uniform(&[((2, 2), (1, 5)), ((1, 1), (2, 2))]);
    assert_eq!(makespan(&w, &[0, 1], (2, 2), Mode::WorkConserving), 7);
    assert_eq!(makespan(&w, &[0, 1], (3, 2), Mode::WorkConserving), 8);
}

#[test]
fn makespan_is_not_unimodal_in_map_slots() {
    let w = uniform(&[((2, 1), (2, 1)), ((3, 1), (1, 3))]);
    let config = Config::standard();
    let best = |s| at_split(&w, s, Rule::MkJr, config).makespan.0;
    let values: Vec<u64> = Splits::of_total(8).unwrap().iter().map(best).collect();
    assert_eq!(values, [6, 5, 4, 5, 4, 5, 6]);
}

/// PCP: the best of four slots is two and two; of twelve, six and six take 12 and four and eight 10.
#[test]
fn ordering_sec6_3_proportional_splits_lose() {
    let w = uniform(&[((4, 3), (5, 3)), ((3, 1), (6, 5)), ((4, 3), (5, 3))]);
    let (splits, small) = (Splits::of_total(12).unwrap(), Splits::of_total(4).unwrap());
    let scaled = proportional(&w, splits, small, Config::standard()).choice;
    let exact = mk_sf_jr(&w, splits, Config::standard()).choice;
    assert_eq!((scaled.split, scaled.makespan), (split(6, 6), Span(12)));
    assert_eq!(exact.makespan, Span(10));
}

#[test]
fn jobs_without_work_are_small_and_change_no_mean() {
    // Area times on one slot each: 2, 8 and 0; the geometric mean of the first two is 4.
    let w = uniform(&[((1, 5), (1, 3)), ((1, 1), (1, 1)), ((1, 0), (1, 0))]);
    assert_eq!(ids(&mk_tct_jr(&w, split(1, 1), Times::Area)), [2, 1, 0]);
    let nothing = uniform(&[((1, 0), (1, 0)), ((2, 0), (0, 9))]);
    assert_eq!(ids(&mk_tct_jr(&nothing, split(1, 1), Times::Area)), [0, 1]);
}

#[test]
fn small_jobs_come_first_where_johnson_puts_them_last() {
    // T = (100, 200), (110, 190), (2, 1): Johnson puts the small job last, behind 310 of maps.
    let w = uniform(&[((1, 100), (1, 200)), ((1, 110), (1, 190)), ((1, 2), (1, 1))]);
    let one = split(1, 1);
    assert_eq!(ids(&mk_jr(&w, one, Times::Area)), [0, 1, 2]);
    let order = mk_tct_jr(&w, one, Times::Area);
    assert_eq!(ids(&order), [2, 0, 1]);
    let total = |order: &[JobId]| estimate(&w, order, one, Mode::WorkConserving).total_completion();
    assert_eq!((total(&mk_jr(&w, one, Times::Area)), total(&order)), (300 + 490 + 491, 3 + 302 + 492));
}

#[test]
fn more_than_nine_jobs_are_refused() {
    let w = uniform(&[((1, 1), (1, 1)); 10]);
    let refused = TooMany { found: 10 };
    assert_eq!(ex_mk_sf_jr(&w, Splits::of_total(4).unwrap(), Mode::Strict), Err(refused));
    assert_eq!(all_orders(&w, split(1, 1), Mode::Strict, Goal::Makespan), Err(refused));
}

#[test]
fn splits_are_those_of_a_total_or_of_equal_nodes() {
    let all = |splits: Splits| splits.iter().map(|s| (s.map(), s.reduce())).collect::<Vec<_>>();
    assert_eq!(all(Splits::of_total(4).unwrap()), [(1, 3), (2, 2), (3, 1)]);
    let nodes = Splits::of_nodes(19, 4).unwrap();
    assert_eq!(all(nodes), [(19, 57), (38, 38), (57, 19)]);
    assert_eq!(nodes.half(), split(38, 38));
    assert!(Splits::of_nodes(3, 1).is_err());
    assert!(Splits::of_total(1 << 31).is_err());
}
