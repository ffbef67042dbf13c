//! Johnson's orders of a set of jobs that changes: jobs are put in and taken out one at a time.

use std::collections::BTreeSet;

use slackline_model::{JobId, Key};
use slackline_policy::IdTable;
use slackline_relax::johnson::Stages;

/// The place of a job in Johnson's order, ties apart: jobs that are shorter on the first stage, the shortest
/// there first; then the others, the longest on the second stage first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JohnsonKey {
    is_shorter_last: bool,
    time: Key,
}

impl JohnsonKey {
    pub(super) fn of([map, reduce]: Stages<f64>) -> Self {
        let is_shorter_last = map > reduce;
        // Zeros of both signs are equal.
        let time = Key::new(if is_shorter_last { 0.0 - reduce } else { map + 0.0 });
        Self { is_shorter_last, time }
    }
}

/// Jobs in Johnson's order by up to two kinds of times; ties by id.
#[derive(Clone, Debug, Default)]
pub(super) struct JohnsonOrders {
    key: IdTable<JobId, Option<[JohnsonKey; 2]>>,
    orders: [BTreeSet<(JohnsonKey, JobId)>; 2],
}

impl JohnsonOrders {
    /// Puts in a job, or moves it, by the keys of its times. O(log n).
    pub(super) fn insert(&mut self, job: JobId, keys: [JohnsonKey; 2]) {
        if self.key[job] == Some(keys) {
            return;
        }
        self.remove(job);
        self.key[job] = Some(keys);
        for (order, key) in self.orders.iter_mut().zip(keys) {
            order.insert((key, job));
        }
    }

    /// Takes out a job, if it is in. O(log n).
    pub(super) fn remove(&mut self, job: JobId) {
        for (order, key) in self.orders.iter_mut().zip(self.key[job].into_iter().flatten()) {
            order.remove(&(key, job));
        }
        self.key.forget([job]);
    }

    /// The keys of a job.
    pub(super) fn keys(&self, job: JobId) -> Option<[JohnsonKey; 2]> {
        self.key[job]
    }

    /// The jobs in order by one of the times.
    pub(super) fn order(&self, times: usize) -> impl Iterator<Item = JobId> + '_ {
        self.orders[times].iter().map(|&(_, job)| job)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::ordering::orders::{Rule, order_of};

    proptest! {
        /// After any changes, the order is the one that is computed at once.
        #[test]
        fn changes_give_the_order_that_sorting_gives(
            steps in prop::collection::vec((0u32..12, prop::option::of([0u8..5, 0u8..5])), 1..60)
        ) {
            let mut orders = JohnsonOrders::default();
            let mut stages: BTreeMap<JobId, Stages<f64>> = BTreeMap::new();
            for (job, times) in steps {
                let job = JobId(job);
                if let Some([map, reduce]) = times.map(|times| times.map(f64::from)) {
                    orders.insert(job, [[map, reduce], [reduce, map]].map(JohnsonKey::of));
                    stages.insert(job, [map, reduce]);
                } else {
                    orders.remove(job);
                    stages.remove(&job);
                }
                let ids: Vec<JobId> = stages.keys().copied().collect();
                for times in 0..2 {
                    let of = |&[map, reduce]: &Stages<f64>| if times == 0 { [map, reduce] } else { [reduce, map] };
                    let stages: Vec<Stages<f64>> = stages.values().map(of).collect();
                    let expected = order_of(Rule::MkJr, &stages, |_| 0.0);
                    let expected: Vec<JobId> = expected.into_iter().map(|at: usize| ids[at]).collect();
                    prop_assert_eq!(orders.order(times).collect::<Vec<_>>(), expected);
                }
            }
        }
    }
}
