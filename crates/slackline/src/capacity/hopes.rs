//! Whether a simulation that is under way can still meet its conditions: one that cannot is not worth its end.

use std::cell::Cell;

use slackline_model::cost::is_late;
use slackline_model::schedule::FlowTimes;
use slackline_model::{FlowId, Instance, Time};

use super::condition::Condition;

/// What has become of the flows of a simulation so far, as far as upper limits are on it.
pub(super) struct Hopes<'a> {
    instance: &'a Instance,
    tallies: Vec<Tally>,
    are_gone: Cell<bool>,
}

/// A figure that only grows while flows complete.
struct Tally {
    figure: Figure,
    limit: f64,
    so_far: Cell<f64>,
}

/// What is counted of flows.
#[derive(Clone, Copy)]
enum Figure {
    Missed,
    TotalTardiness,
    MaxTardiness,
    TotalCompletion,
    Makespan,
    MeanResponse,
    MeanWait,
    /// Flows above the limit of a percentile, of which that many are too many.
    Responses(usize),
    Waits(usize),
}

impl Figure {
    /// The figure of a metric among so many flows; nothing if little is known of it before the end.
    fn of(metric: &str, flows: usize) -> Option<Self> {
        // Once so many are above the limit, the nearest rank is.
        let too_many = |percent: usize| flows - (flows * percent).div_ceil(100) + 1;
        Some(match metric {
            "missed" => Self::Missed,
            "total_tardiness" => Self::TotalTardiness,
            "max_tardiness" => Self::MaxTardiness,
            "total_completion" => Self::TotalCompletion,
            "makespan" => Self::Makespan,
            "mean_response" => Self::MeanResponse,
            "mean_wait" => Self::MeanWait,
            "p50_response" => Self::Responses(too_many(50)),
            "p95_response" => Self::Responses(too_many(95)),
            "p99_response" => Self::Responses(too_many(99)),
            "p95_wait" => Self::Waits(too_many(95)),
            _ => return None,
        })
    }
}

/// Whether a value is above a limit for certain: sums are rounded, and those of the judge in another order.
fn is_above(value: f64, limit: f64) -> bool {
    value > limit + 1e-9 * limit.abs().max(1.0)
}

impl<'a> Hopes<'a> {
    /// Nothing has become of any flow yet.
    pub(super) fn new(instance: &'a Instance, conditions: &[Condition]) -> Self {
        let flows = instance.flows().len();
        let deadlines = instance.flows().iter().filter(|flow| flow.deadline.is_some()).count();
        let tally = |condition: &Condition| {
            let limit = condition.most(deadlines as f64)?;
            let figure = Figure::of(condition.metric(), flows)?;
            Some(Tally { figure, limit, so_far: Cell::new(0.0) })
        };
        Self { instance, tallies: conditions.iter().filter_map(tally).collect(), are_gone: Cell::new(false) }
    }

    /// Whether a condition cannot be met any more.
    pub(super) fn are_gone(&self) -> bool {
        self.are_gone.get()
    }

    /// A flow completed, or failed: nothing is met where flows fail.
    pub(super) fn ended(&self, flow: FlowId, times: FlowTimes) {
        let too_much = |tally: &Tally| {
            times.completion.is_none_or(|completion| tally.add(self.instance, flow, times.start, completion))
        };
        // All are asked, so that each of them counts.
        let gone = self.tallies.iter().filter(|tally| too_much(tally)).count();
        if gone > 0 {
            self.are_gone.set(true);
        }
    }
}

impl Tally {
    /// Counts a flow; whether it is too much now.
    fn add(&self, instance: &Instance, id: FlowId, start: Option<f64>, completion: f64) -> bool {
        let (flow, flows) = (instance.flow(id), instance.flows().len() as f64);
        let release = flow.release.seconds();
        let (response, wait) = (completion - release, start.map_or(0.0, |start| start - release));
        let deadline = flow.deadline.map_or(f64::INFINITY, Time::seconds);
        let tardiness = (completion - deadline).max(0.0);
        let one = |is_one: bool| f64::from(u8::from(is_one));
        let so_far = self.so_far.get();
        let (now, limit) = match self.figure {
            Figure::Missed => (so_far + one(is_late(completion, deadline)), self.limit),
            Figure::TotalTardiness => (so_far + tardiness, self.limit),
            Figure::MaxTardiness => (so_far.max(tardiness), self.limit),
            Figure::TotalCompletion => (so_far + completion, self.limit),
            Figure::Makespan => (so_far.max(completion), self.limit),
            Figure::MeanResponse => (so_far + response / flows, self.limit),
            Figure::MeanWait => (so_far + wait / flows, self.limit),
            Figure::Responses(too_many) => {
                (so_far + one(is_above(response, self.limit)), too_many as f64 - 0.5)
            }
            Figure::Waits(too_many) => (so_far + one(is_above(wait, self.limit)), too_many as f64 - 0.5),
        };
        self.so_far.set(now);
        is_above(now, limit)
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;

    /// So many flows released at 0, due at 10.
    fn instance(flows: usize) -> Instance {
        let flow = |k: usize| {
            let map = Some(TasksDraft::Uniform { tasks: 1, seconds: 6.0 }.into());
            let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
            FlowDraft { deadline: Some(10.0), ..FlowDraft::new(format!("f{k}"), vec![job]) }
        };
        let slots = Slots::Universal(1);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let flows = (0..flows).map(flow).collect();
        Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
    }

    /// After how many flows that start at 14 and complete at 20 hope is gone, of a hundred.
    fn gone_after(condition: &str) -> Option<usize> {
        let instance = instance(100);
        let hopes = Hopes::new(&instance, &[condition.parse().unwrap()]);
        let at = instance.flows().keys().position(|flow| {
            hopes.ended(flow, FlowTimes { start: Some(14.0), completion: Some(20.0) });
            hopes.are_gone()
        });
        at.map(|at| at + 1)
    }

    #[test]
    fn hope_goes_with_the_first_flow_that_is_too_much() {
        for (condition, flows) in [
            ("missed:0", 1),
            ("missed:1%", 2),
            ("missed=0", 1),
            ("total_tardiness:50", 6),
            ("max_tardiness:9", 1),
            ("total_completion:50", 3),
            ("mean_response:5", 26),
            ("mean_wait:7", 51),
            ("p95_response:19", 6),
            ("p99_response:19", 2),
            ("p50_response:19", 51),
            ("p95_wait:13", 6),
            ("makespan:19", 1),
        ] {
            assert_eq!(gone_after(condition), Some(flows), "{condition}");
        }
    }

    #[test]
    fn what_may_yet_be_met_is_not_given_up() {
        for condition in [
            "missed:100%",
            "mean_response:20",
            "p95_response:20",
            "total_completion:2000",
            "makespan>30",
            "mean_slowdown:0",
        ] {
            assert_eq!(gone_after(condition), None, "{condition}");
        }
    }

    #[test]
    fn a_flow_that_fails_ends_all_hope() {
        let instance = instance(2);
        let hopes = Hopes::new(&instance, &["makespan:100".parse().unwrap()]);
        hopes.ended(FlowId::from(0usize), FlowTimes::default());
        assert!(hopes.are_gone());
    }
}
