//! Tests the paper's statements, including the false ones, and all algorithms against brute force.

mod naive;
mod paper;
mod search;

use proptest::prelude::*;
use slackline_model::tasks::{Run, Tasks};
use slackline_model::{JobId, Span};

use super::bounds::Bounds;
use super::estimator::{Estimator, Mode, estimate};
use super::orders::{Candidates, Goal, Rule, Times, stage_times};
use super::ranges::RangeBounds;
use super::sizes::sure_sizes;
use super::split::{Config, best_split, mk_tct_sf_jr};
use super::splits::Splits;
use super::workload::{Ends, Job, Split, Workload};

/// A phase of up to `runs` runs; spans from 0, so that there are ties and tasks of length 0.
fn phase(runs: usize, tasks: u32, span: u64) -> impl Strategy<Value = Tasks> {
    let run = (0..=tasks, 0..=span).prop_map(|(count, span)| Run { count, span: Span(span) });
    prop::collection::vec(run, 0..=runs).prop_map(Tasks::from_runs)
}

fn workload(jobs: usize, runs: usize, tasks: u32, span: u64) -> impl Strategy<Value = Workload> {
    let job =
        (phase(runs, tasks, span), phase(runs, tasks, span)).prop_map(|(map, reduce)| Job { map, reduce });
    prop::collection::vec(job, 1..=jobs).prop_map(|jobs| Workload::new(jobs).unwrap())
}

fn split(map: u32, reduce: u32) -> Split {
    Split::new(map, reduce).unwrap()
}

/// How many tasks, and how long each.
type Phase = (u32, u64);

fn uniform(jobs: &[(Phase, Phase)]) -> Workload {
    Workload::new(jobs.iter().map(|&(map, reduce)| Job::uniform(map.0, map.1, reduce.0, reduce.1)).collect())
        .unwrap()
}

/// D2: every ready and completion time is that of a simulation task by task.
fn check_estimator(workload: &Workload, splits: &[(u32, u32)]) -> Result<(), TestCaseError> {
    let order: Vec<JobId> = workload.ids().collect();
    let mut estimator = Estimator::default();
    for &(a, b) in splits {
        for mode in [Mode::WorkConserving, Mode::Strict] {
            let (ready, completion) = naive::simulate(workload, &order, split(a, b), mode);
            let batched = estimator.run(workload, &order, split(a, b), mode);
            let micros = |times: &[slackline_model::Time]| times.iter().map(|t| t.0).collect::<Vec<_>>();
            prop_assert_eq!(micros(&batched.ready.raw), ready, "ready {:?} {:?}", mode, (a, b));
            prop_assert_eq!(micros(&batched.completion.raw), completion, "done {:?} {:?}", mode, (a, b));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn estimator_is_the_task_level_simulation(w in workload(5, 1, 7, 5), a in 1u32..5, b in 1u32..5) {
        check_estimator(&w, &[(a, b), (1, 1), (40, 40)])?;
    }

    #[test]
    fn estimator_takes_runs_of_unequal_tasks(w in workload(4, 3, 6, 9), a in 1u32..6, b in 1u32..6) {
        check_estimator(&w, &[(a, b), (b, a)])?;
    }

    #[test]
    fn estimator_takes_long_runs(w in workload(4, 2, 60, 40), a in 1u32..12, b in 1u32..12) {
        check_estimator(&w, &[(a, b)])?;
    }
}

fn config(mode: Mode) -> Config {
    Config { mode, mk_tct_jr: Candidates::Best, ..Config::standard() }
}

/// Every split and candidate order of both rules, estimated one by one.
fn all_choices(workload: &Workload, splits: Splits, config: Config) -> Vec<(Rule, u64, u128)> {
    let mut estimator = Estimator::default();
    let mut all = Vec::new();
    for split in splits.iter() {
        for (rule, candidates) in [(Rule::MkJr, config.mk_jr), (Rule::MkTctJr, config.mk_tct_jr)] {
            for &times in candidates.times() {
                let order = rule.order(workload, split, times);
                let estimate = estimator.run(workload, &order, split, config.mode);
                all.push((rule, estimate.makespan().0, estimate.total_completion()));
            }
        }
    }
    all
}

/// D6: the sweep by bounds and the sweep over all splits agree.
fn check_sweep(workload: &Workload, splits: Splits, config: Config) -> Result<(), TestCaseError> {
    let all = all_choices(workload, splits, config);
    let of = |wanted: Rule| all.iter().filter(move |(rule, ..)| *rule == wanted);
    for rule in [Rule::MkJr, Rule::MkTctJr] {
        let best = best_split(workload, splits, rule, Goal::Makespan, config);
        prop_assert_eq!(Some(best.choice.makespan.0), of(rule).map(|c| c.1).min());
        let best = best_split(workload, splits, rule, Goal::TotalCompletion, config);
        prop_assert_eq!(Some(best.choice.total_completion), of(rule).map(|c| c.2).min());
        let again = estimate(workload, &best.choice.order, best.choice.split, config.mode);
        prop_assert_eq!(again.total_completion(), best.choice.total_completion);
    }
    let mut front: Vec<(u64, u128)> = all.iter().map(|&(_, makespan, total)| (makespan, total)).collect();
    front.sort_unstable();
    let mut least = u128::MAX;
    front.retain(|&(_, total)| {
        let better = total < least;
        least = least.min(total);
        better
    });
    let found = mk_tct_sf_jr(workload, splits, config);
    let choices: Vec<_> = found.choices.iter().map(|c| (c.makespan.0, c.total_completion)).collect();
    prop_assert_eq!(choices, front);
    prop_assert_eq!(Some(found.paper.makespan.0), of(Rule::MkTctJr).map(|c| c.1).min());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sweep_by_bounds_is_the_full_sweep(w in workload(9, 1, 30, 12), slots in 2u32..60, strict: bool) {
        let mode = if strict { Mode::Strict } else { Mode::WorkConserving };
        check_sweep(&w, Splits::of_total(slots).unwrap(), config(mode))?;
    }

    #[test]
    fn sweep_takes_unequal_tasks_and_nodes(w in workload(7, 3, 12, 30), k in 1u32..5, budget in 2u32..30) {
        check_sweep(&w, Splits::of_nodes(k, budget).unwrap(), config(Mode::WorkConserving))?;
    }
}

/// The bounds of a range hold on each of its splits.
fn check_ranges(workload: &Workload, low: (u32, u32), width: u32, mode: Mode) -> Result<(), TestCaseError> {
    let at = |step: u32| split(low.0 + step, low.1 + width - step);
    let ends = Ends { low: at(0), high: at(width) };
    let (mut ranges, mut estimator) = (RangeBounds::new(workload), Estimator::default());
    let mut any = Bounds::new(workload);
    let (makespan, total) =
        (any.makespan(low.0 + width, low.1 + width), any.total_completion(low.0 + width, low.1 + width));
    for rule in [Rule::MkJr, Rule::MkTctJr] {
        for &times in Candidates::Best.times() {
            let free = ranges.bound(rule, times, ends);
            let in_order = ranges.bound_in_order(mode, ends).unwrap_or(free);
            prop_assert!(in_order.total_completion >= free.total_completion);
            for step in 0..=width {
                let order = rule.order(workload, at(step), times);
                let value = estimator.run(workload, &order, at(step), mode);
                prop_assert!(
                    in_order.makespan.max(makespan) <= value.makespan().0,
                    "{rule:?} {times:?} {step}"
                );
                prop_assert!(
                    in_order.total_completion.max(total) <= value.total_completion(),
                    "{rule:?} {times:?} {step}"
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2500))]

    #[test]
    fn bounds_of_a_range_hold_on_all_its_splits(
        w in workload(9, 2, 20, 25), a in 1u32..8, b in 1u32..8, width in 0u32..6, strict: bool,
    ) {
        let mode = if strict { Mode::Strict } else { Mode::WorkConserving };
        check_ranges(&w, (a, b), width, mode)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sizes_that_are_sure_are_so_on_all_splits(
        w in workload(9, 2, 40, 3000), a in 1u32..60, b in 1u32..60, width in 0u32..200, by_stage: bool,
    ) {
        let times = if by_stage { Times::Stage } else { Times::Area };
        let sure = sure_sizes(&w, times, Ends { low: split(a, b + width), high: split(a + width, b) });
        for more in 0..=width {
            let split = split(a + more, b + width - more);
            // In units whose number is the same for both stages.
            let logs: Vec<f64> =
                stage_times(&w, split, times).iter().map(|[map, reduce]| libm::log((map + reduce) as f64)).collect();
            let counted: Vec<f64> = logs.iter().copied().filter(|log| log.is_finite()).collect();
            let mean = counted.iter().sum::<f64>() / counted.len().max(1) as f64;
            for (log, sure) in logs.iter().zip(&sure) {
                prop_assert!(sure.is_none_or(|large| large == (*log > mean + 1e-9)), "{:?} {sure:?}", split);
            }
        }
    }
}
