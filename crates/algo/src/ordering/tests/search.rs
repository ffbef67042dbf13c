//! EX_MK_SF_JR and MK_SF_JR against a search that tries every order on every split task by task, and
//! shares no code with the estimator, the bounds or the sweep.

use proptest::prelude::*;
use slackline_model::JobId;

use super::{naive, phase, split, workload};
use crate::ordering::estimator::Mode;
use crate::ordering::exhaustive::ex_mk_sf_jr;
use crate::ordering::split::{Config, mk_sf_jr};
use crate::ordering::splits::Splits;
use crate::ordering::workload::{Job, Workload};

/// Calls `visit` with every order of `jobs`, by Heap's algorithm.
fn each_order(jobs: &mut [JobId], left: usize, visit: &mut dyn FnMut(&[JobId])) {
    if left <= 1 {
        return visit(jobs);
    }
    for at in 0..left {
        each_order(jobs, left - 1, visit);
        jobs.swap(if left.is_multiple_of(2) { at } else { 0 }, left - 1);
    }
}

/// The least makespan of `slots` in all, over all orders on all splits, one by one.
fn least_makespan(workload: &Workload, slots: u32, mode: Mode) -> u64 {
    let mut least = u64::MAX;
    let mut jobs: Vec<JobId> = workload.ids().collect();
    let n = jobs.len();
    for map in 1..slots {
        each_order(&mut jobs, n, &mut |order| {
            let (_, completion) = naive::simulate(workload, order, split(map, slots - map), mode);
            least = least.min(completion.into_iter().max().unwrap());
        });
    }
    least
}

fn check_search(workload: &Workload, slots: u32, mode: Mode) -> Result<(), TestCaseError> {
    let splits = Splits::of_total(slots).unwrap();
    let least = least_makespan(workload, slots, mode);
    let ex = ex_mk_sf_jr(workload, splits, mode).unwrap().choice;
    prop_assert_eq!(ex.makespan.0, least);
    let (_, completion) = naive::simulate(workload, &ex.order, ex.split, mode);
    prop_assert_eq!(completion.into_iter().max(), Some(least));
    let mk = mk_sf_jr(workload, splits, Config { mode, ..Config::standard() }).choice;
    prop_assert!(mk.makespan.0 >= least);
    // (1 + δ') F, with F no more than the least makespan (docs/math/ordering.md D5); proved for FIFO.
    if mode == Mode::WorkConserving {
        let longest = |spans: &dyn Fn(&Job) -> u64| workload.jobs().iter().map(spans).max().unwrap();
        let (map, reduce) = (longest(&|job| job.map.longest().0), longest(&|job| job.reduce.longest().0));
        prop_assert!(mk.makespan.0 <= least + map + 2 * reduce);
    }
    Ok(())
}

fn mode(strict: bool) -> Mode {
    if strict { Mode::Strict } else { Mode::WorkConserving }
}

/// Seven jobs of few tasks.
fn seven() -> impl Strategy<Value = Workload> {
    let job = (phase(2, 2, 9), phase(2, 2, 9)).prop_map(|(map, reduce)| Job { map, reduce });
    prop::collection::vec(job, 7).prop_map(|jobs| Workload::new(jobs).unwrap())
}

#[test]
fn each_order_is_tried_once() {
    let mut jobs: Vec<JobId> = (0..4).map(JobId).collect();
    let mut orders = Vec::new();
    each_order(&mut jobs, 4, &mut |order| orders.push(order.to_vec()));
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), 24);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn ex_mk_sf_jr_is_the_best_of_all(w in workload(5, 2, 9, 9), slots in 2u32..9, strict: bool) {
        check_search(&w, slots, mode(strict))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn ex_mk_sf_jr_is_the_best_of_all_of_seven_jobs(w in seven(), slots in 3u32..6, strict: bool) {
        check_search(&w, slots, mode(strict))?;
    }
}
