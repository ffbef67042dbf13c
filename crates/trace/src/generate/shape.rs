//! Shared by several generators: clusters, jobs, shares of a whole, random draws.

use std::ops::RangeInclusive;

use slackline_model::cluster::{SlotKind, Slots};
use slackline_model::draft::{CostDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::instance::Flow;
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Instance, Metric, Objective, PhaseId, Work};

use super::generator::{GenerateError, Params};
pub(super) use crate::importers::durations::whole_micros;
use crate::random::{self, ChaCha8Rng};

/// Machines called `node` of speed 1.
pub(super) fn nodes(count: u32, slots: Slots) -> Vec<MachineDraft> {
    vec![MachineDraft { name: "node".to_owned(), count, speed: 1.0, slots, rack: None }]
}

/// Nodes with map and reduce slots by the parameters `machines`, `map-slots` and `reduce-slots`.
pub(super) fn typed_nodes(params: &Params) -> Vec<MachineDraft> {
    let slots = Slots::MapReduce { map: params.count("map-slots"), reduce: params.count("reduce-slots") };
    nodes(params.count("machines"), slots)
}

pub(super) const fn machines_param(default: &'static str) -> Param {
    Param::new("machines", default, Values::Count(1, 100_000), "machines that run tasks")
}

pub(super) const fn map_slots_param(default: &'static str) -> Param {
    Param::new("map-slots", default, Values::Count(1, 10_000), "map slots of each machine")
}

pub(super) const fn reduce_slots_param(default: &'static str) -> Param {
    Param::new("reduce-slots", default, Values::Count(1, 10_000), "reduce slots of each machine")
}

/// The parameter `cost`: the objective's metric for every flow, or step costs.
pub(super) const COST: Param = Param::new(
    "cost",
    "metric",
    Values::Choice(&["metric", "sla"]),
    "what a flow costs: the objective's metric, or its own SLA steps (weights are then 1)",
);

/// The objective: the sum of `metric`, or of step costs if flows have them.
pub(super) fn objective(params: &Params, metric: Metric) -> Objective {
    let metric = if params.choice("cost") == "sla" { Metric::Sla } else { metric };
    Objective::new(metric, Combine::Sum)
}

/// Step costs from times and levels drawn independently: both are put in order.
pub(super) fn steps(mut times: Vec<f64>, mut levels: Vec<f64>) -> CostDraft {
    times.sort_by(f64::total_cmp);
    levels.sort_by(f64::total_cmp);
    CostDraft::Steps(times.into_iter().zip(levels).collect())
}

/// `tasks` equal tasks, or no phase for 0 tasks.
pub(super) fn phase(tasks: u32, seconds: f64) -> Option<PhaseDraft> {
    let seconds = whole_micros(seconds);
    (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds }.into())
}

/// A job after the jobs of these names.
pub(super) fn job(
    id: String,
    after: Vec<String>,
    map: Option<PhaseDraft>,
    reduce: Option<PhaseDraft>,
) -> JobDraft {
    JobDraft { id, after, map, reduce, ..JobDraft::default() }
}

/// The name of the `k`-th job of a flow.
pub(super) fn job_name(k: usize) -> String {
    format!("j{}", k + 1)
}

/// The larger of critical path and area of every flow, in seconds. The longest task does not count, as in the
/// papers whose workloads are generated.
pub(super) fn alone(draft: &Draft) -> Result<Vec<f64>, GenerateError> {
    let instance = Instance::new(draft)?;
    let cluster = instance.cluster();
    let area = |flow: &Flow, slot_kind: SlotKind| {
        let of_kind = |phase: &PhaseId| instance.slot_kind_of(*phase) == slot_kind;
        let work: Work = flow.phases().filter(of_kind).map(|phase| instance.phase(phase).work()).sum();
        if work == Work::ZERO { 0.0 } else { work.slot_seconds() / cluster.capacity(slot_kind) }
    };
    let alone = |flow: &Flow| {
        let areas = cluster.slot_kinds().iter().map(|&slot_kind| area(flow, slot_kind));
        areas.fold(flow.critical_path, f64::max)
    };
    Ok(instance.flows().iter().map(alone).collect())
}

/// A whole number, uniform on the closed range.
pub(super) fn count_in(rng: &mut ChaCha8Rng, range: &RangeInclusive<u32>) -> u32 {
    random::integer(rng, u64::from(*range.start()), u64::from(*range.end())) as u32
}

/// A number, uniform on the range.
pub(super) fn real_in(rng: &mut ChaCha8Rng, range: &RangeInclusive<f64>) -> f64 {
    random::uniform(rng, *range.start(), *range.end())
}

/// Normal with that mean and a third of it as standard deviation, cut off below 0 by drawing again
/// (one draw in 740 falls there).
pub(super) fn truncated_normal_third(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    loop {
        let draw = random::normal(rng, mean, mean / 3.0);
        if draw >= 0.0 {
            return draw;
        }
    }
}

/// A random order (Fisher and Yates).
pub(super) fn shuffle<T>(rng: &mut ChaCha8Rng, list: &mut [T]) {
    for i in (1..list.len()).rev() {
        list.swap(i, random::integer(rng, 0, i as u64) as usize);
    }
}

/// `total` divided in proportion to `weights` by largest remainder, ties to the first; all 0 if all
/// weights are. O(n log n).
pub(super) fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&w| u128::from(w)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |w: u64| u128::from(total) * u128::from(w);
    let mut shares: Vec<u64> = weights.iter().map(|&w| (exact(w) / sum) as u64).collect();
    let left = total - shares.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(exact(weights[i]) % sum), i));
    for &i in order.iter().take(left as usize) {
        shares[i] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(7, &[0, 5, 2]), [0, 5, 2]);
        assert_eq!(apportion(3, &[0, 0]), [0, 0]);
        assert_eq!(
            apportion(u64::from(u32::MAX), &[u64::from(u32::MAX); 3]).iter().sum::<u64>(),
            0xffff_ffff
        );
    }

    #[test]
    fn shuffling_keeps_every_element() {
        let mut list: Vec<u32> = (0..100).collect();
        shuffle(&mut random::rng(slackline_model::Seed(3), "shuffle", 0), &mut list);
        assert_ne!(list, (0..100).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..100).collect::<Vec<_>>());
    }
}
