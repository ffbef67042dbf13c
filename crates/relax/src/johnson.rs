//! Johnson's rule, and the fluid two-stage flow shop as a bound.
//!
//! Map and reduce slots make a cluster of one-job flows a two-stage flow shop: a job's maps on the map slots,
//! then its reduces on the reduce slots. If each stage were one machine as fast as all its slots
//! together (the *fluid* model: a stage takes its work over its slots), Johnson's rule (*Optimal two-
//! and three-stage production schedules with setup times included*, 1954) would order the jobs
//! optimally, and the makespan of an order would be the largest over k of the first stages up to k and
//! the second stages from k on (the job-ordering paper, formula 3).
//!
//! **Lower bound** (docs/math/ordering.md D4): number the jobs of any schedule in the order in which their
//! maps end. When the maps of job k end, at T, the maps of the first k are done, so T is at least their work
//! over the map slots; no reduce of the jobs from k on has started before T, so their work over the reduce
//! slots is still to come. So the makespan is at least the fluid makespan of that order, and so at least that
//! of Johnson's. It holds with releases, precedence, minima, caps and several speeds, all of which only take
//! schedules away, and for malleable phases; with maps that are run again too, if maps end when all of a job
//! were first done.
//!
//! **Complexity**: O(n log n) for the order, O(n) for everything else.

use std::cmp::Ordering;
use std::ops::Add;

use slackline_model::{Instance, PhaseId, SlotKind};

use crate::paths::Paths;
use crate::rounding_margin;

/// Times a job spends on the first and on the second machine (or stage).
pub type Stages<T> = [T; 2];

/// Johnson's order: first the jobs that are shorter on the first machine, the shortest there first, then the
/// rest, the longest on the second machine first. Jobs of equal times on both count as shorter on the first;
/// other ties go to the job given first. O(n log n).
///
/// Times must be comparable with each other: finite, if they are floats.
pub fn order<T: Copy + PartialOrd>(times: &[Stages<T>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|&i, &j| precedence(times[i], times[j]));
    order
}

/// How two jobs compare in Johnson's order, ties apart.
pub fn precedence<T: Copy + PartialOrd>(one: Stages<T>, other: Stages<T>) -> Ordering {
    let cmp = |x: T, y: T| x.partial_cmp(&y).unwrap_or(Ordering::Equal);
    match (one[0] <= one[1], other[0] <= other[1]) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (true, true) => cmp(one[0], other[0]),
        (false, false) => cmp(other[1], one[1]),
    }
}

/// The makespan of an order on two machines. O(n).
pub fn makespan<T: Copy + PartialOrd + Default + Add<Output = T>>(times: &[Stages<T>], order: &[usize]) -> T {
    let (mut first, mut second) = (T::default(), T::default());
    for &job in order {
        first = first + times[job][0];
        let start = if first > second { first } else { second };
        second = start + times[job][1];
    }
    second
}

/// The fluid bound on the makespan of any schedule of an instance, in seconds; `None` for generic slots,
/// where maps and reduces share a stage. Every job of every flow counts separately; time counts from the
/// first release. Works are those of [`Paths`], which also hold for durations in whole microseconds. O(n log
/// n).
pub fn fluid_bound(instance: &Instance, paths: &Paths) -> Option<f64> {
    let cluster = instance.cluster();
    if !cluster.is_map_reduce() {
        return None;
    }
    let time = |phase: Option<PhaseId>, slot_kind: SlotKind| {
        let work = phase.map_or(0.0, |p| paths.work[p]);
        if work > 0.0 { work / cluster.capacity(slot_kind) } else { 0.0 }
    };
    let times: Vec<Stages<f64>> = (instance.jobs().iter())
        .map(|job| [time(job.map, SlotKind::Map), time(job.reduce, SlotKind::Reduce)])
        .collect();
    let fluid = makespan(&times, &order(&times));
    let first = instance.flows().iter().map(|flow| flow.release).min().unwrap_or_default().seconds();
    let end = first + fluid - rounding_margin::margin(fluid, 4 * times.len()) - 2.0 * f64::EPSILON * first;
    Some(end.max(0.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::Draft;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;

    /// Calls `f` with every order of `items`.
    fn each_order(items: &mut Vec<usize>, from: usize, f: &mut impl FnMut(&[usize])) {
        if from == items.len() {
            return f(items);
        }
        for i in from..items.len() {
            items.swap(from, i);
            each_order(items, from + 1, f);
            items.swap(from, i);
        }
    }

    proptest! {
        /// D4, Theorem 2: with one machine per stage, Johnson's order is best and its reverse is worst.
        #[test]
        fn johnson_is_best_and_reversed_is_worst_on_two_machines(
            times in prop::collection::vec([0u64..6, 0u64..6], 1..7)
        ) {
            let mut johnson = order(&times);
            let best = makespan(&times, &johnson);
            johnson.reverse();
            let worst = makespan(&times, &johnson);
            let (mut least, mut most) = (u64::MAX, 0);
            each_order(&mut (0..times.len()).collect(), 0, &mut |order| {
                let value = makespan(&times, order);
                (least, most) = (least.min(value), most.max(value));
            });
            prop_assert_eq!((best, worst), (least, most));
        }

        /// The recursion is formula (3) of the paper.
        #[test]
        fn makespan_is_the_largest_cut(times in prop::collection::vec([0u64..9, 0u64..9], 1..9)) {
            let order: Vec<usize> = (0..times.len()).collect();
            let cut = |k: usize| {
                let first: u64 = times[..=k].iter().map(|t| t[0]).sum();
                first + times[k..].iter().map(|t| t[1]).sum::<u64>()
            };
            prop_assert_eq!(makespan(&times, &order), (0..times.len()).map(cut).max().unwrap());
        }
    }

    #[test]
    fn fluid_bound_needs_typed_slots() {
        let instance = |slots| {
            let job = JobDraft {
                id: "j".into(),
                map: Some(TasksDraft::Uniform { tasks: 4, seconds: 3.0 }.into()),
                reduce: Some(TasksDraft::Uniform { tasks: 2, seconds: 5.0 }.into()),
                ..JobDraft::default()
            };
            let machine = MachineDraft { name: "m".into(), count: 1, speed: 2.0, slots, rack: None };
            let flows = ["a", "b"].map(|id| FlowDraft::new(id, vec![job.clone()])).to_vec();
            Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
        };
        let bound = |slots| {
            let instance = instance(slots);
            fluid_bound(&instance, &Paths::of(&instance))
        };
        assert_eq!(bound(Slots::Generic(3)), None);
        // 12 and 10 slot-seconds per job, 4 and 2 per second: stages of 3 and 5 seconds.
        let value = bound(Slots::MapReduce { map: 2, reduce: 1 }).unwrap();
        assert!(value <= 13.0 && value > 13.0 - 1e-9, "{value}");
    }
}
