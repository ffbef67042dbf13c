//! Computes the metrics of a schedule: sums, means and percentiles over its flows.

use slackline_model::cost::is_late;
use slackline_model::id::TiVec;
use slackline_model::instance::Flow;
use slackline_model::schedule::Schedule;
use slackline_model::{Cluster, FlowId, Instance, Time, Work};

use crate::metrics::{Metrics, facts};
use crate::segments;
use crate::summary::{self, FlowFacts};
use crate::time_alone::time_alone;

/// The divisor of the bounded slowdown is at least this, seconds.
const BOUNDED_FROM: f64 = 10.0;

/// The properties of a flow that the metrics count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    release: Time,
    deadline: Option<Time>,
    weight: f64,
    work: Work,
    alone: f64,
    fact: FlowFacts,
}

impl Counted {
    pub(crate) fn new(instance: &Instance, id: FlowId, fact: &FlowFacts) -> Self {
        let Flow { release, deadline, weight, work, .. } = *instance.flow(id);
        let alone = time_alone(instance, id);
        Self { release, deadline, weight, work, alone, fact: *fact }
    }
}

/// Sums and maxima so far, and five numbers (40 bytes) for each finished flow. Percentiles need all of these
/// numbers, and means need totals that are known only at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Sums and maxima; means and percentiles are computed at the end.
    sums: Metrics,
    busy: f64,
    /// The latest completion or failure so far.
    last: f64,
    responses: Vec<f64>,
    waits: Vec<f64>,
    stretches: Vec<f64>,
    slowdowns: Vec<f64>,
    bounded: Vec<f64>,
}

impl Totals {
    /// Adds a flow. The order of flows decides on the last digits of sums.
    pub(crate) fn add(&mut self, flow: &Counted) {
        let (fact, m) = (&flow.fact, &mut self.sums);
        self.busy += fact.busy;
        self.last = self.last.max(fact.last());
        m.tasks += fact.tasks as f64;
        m.deadlines += f64::from(u8::from(flow.deadline.is_some()));
        let Some(completion) = fact.completion else {
            m.missed += f64::from(u8::from(flow.deadline.is_some()));
            return;
        };
        let release = flow.release.seconds();
        let (response, wait) = (completion - release, fact.start.map_or(0.0, |start| start - release));
        let over = |size: f64| if flow.work.0 > 0 { response / size } else { 0.0 };
        let (stretch, slowdown) = (over(flow.work.slot_seconds()), over(flow.alone));
        let bounded = if flow.work.0 > 0 { (response / flow.alone.max(BOUNDED_FROM)).max(1.0) } else { 0.0 };
        self.responses.push(response);
        self.waits.push(wait);
        self.stretches.push(stretch);
        self.slowdowns.push(slowdown);
        self.bounded.push(bounded);
        m.makespan = m.makespan.max(completion);
        m.total_completion += completion;
        m.weighted_completion += flow.weight * completion;
        m.max_stretch = m.max_stretch.max(stretch);
        m.max_slowdown = m.max_slowdown.max(slowdown);
        m.max_bounded_slowdown = m.max_bounded_slowdown.max(bounded);
        let Some(deadline) = flow.deadline else { return };
        let deadline = deadline.seconds();
        let tardiness = (completion - deadline).max(0.0);
        m.total_tardiness += tardiness;
        m.max_tardiness = m.max_tardiness.max(tardiness);
        m.missed += f64::from(u8::from(is_late(completion, deadline)));
    }

    /// The latest completion or failure so far.
    pub(crate) fn last(&self) -> f64 {
        self.last
    }

    /// The metrics on `cluster`; `last` is the latest completion or failure in the whole schedule. O(n log
    /// n).
    pub(crate) fn metrics(mut self, cluster: &Cluster, last: f64) -> Metrics {
        let n = self.responses.len().max(1) as f64;
        let mean = |values: &[f64]| values.iter().fold(0.0, |mean, value| mean + value / n);
        let mut m = self.sums;
        m.mean_response = mean(&self.responses);
        m.mean_wait = mean(&self.waits);
        m.mean_stretch = mean(&self.stretches);
        m.mean_slowdown = mean(&self.slowdowns);
        m.mean_bounded_slowdown = mean(&self.bounded);
        self.responses.sort_by(f64::total_cmp);
        self.waits.sort_by(f64::total_cmp);
        m.p50_response = nearest_rank(&self.responses, 50);
        m.p95_response = nearest_rank(&self.responses, 95);
        m.p99_response = nearest_rank(&self.responses, 99);
        m.p95_wait = nearest_rank(&self.waits, 95);
        let slots: f64 =
            cluster.slot_kinds().iter().map(|&slot_kind| f64::from(cluster.slots(slot_kind))).sum();
        m.utilisation = if last > 0.0 { self.busy / (slots * last) } else { 0.0 };
        m
    }
}

/// The metrics of a schedule, recomputed from its rows. Feasibility is not checked, and invalid rows are left
/// out. O(n log n).
pub fn metrics(instance: &Instance, schedule: &Schedule) -> Metrics {
    of_all(instance, schedule, &facts(&schedule.flows, summary::of_schedule(instance, schedule)))
}

/// Metrics of all flows of a schedule. Utilisation is over the slots that were available.
pub(crate) fn of_all(instance: &Instance, schedule: &Schedule, facts: &TiVec<FlowId, FlowFacts>) -> Metrics {
    let mut metrics = metrics_of(instance, facts, &instance.flows().keys().collect::<Vec<_>>());
    if !schedule.segments.is_empty() {
        let last = facts.iter().map(FlowFacts::last).fold(0.0, f64::max);
        let there = segments::slot_seconds(schedule, instance.cluster(), last);
        let busy: f64 = facts.iter().map(|fact| fact.busy).sum();
        metrics.utilisation = if there > 0.0 { busy / there } else { 0.0 };
    }
    metrics
}

/// The metrics of some flows of a schedule, from the facts that [`crate::check`] found. Their `utilisation`
/// is their part of that of the whole schedule, over the time of the whole schedule. O(n log n) in all flows.
pub fn metrics_of(instance: &Instance, facts: &TiVec<FlowId, FlowFacts>, flows: &[FlowId]) -> Metrics {
    let mut totals = Totals::default();
    for &id in flows {
        totals.add(&Counted::new(instance, id, &facts[id]));
    }
    let last = facts.iter().map(FlowFacts::last).fold(0.0, f64::max);
    totals.metrics(instance.cluster(), last)
}

/// The smallest value that at least `percent` % of the values do not exceed; 0 for an empty slice.
fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    rank.checked_sub(1).map_or(0.0, |at| sorted[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!([50, 95, 99].map(|p| nearest_rank(&values, p)), [10.0, 19.0, 20.0]);
        assert_eq!(nearest_rank(&values[..1], 50), 1.0);
        assert_eq!(nearest_rank(&[], 50), 0.0);
    }
}
