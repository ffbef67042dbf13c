//! Stored flows beyond their active time: recent flows, and flows that will recur.

use slackline_model::{CostFn, Time};
use slackline_policy::View;

use crate::auto::template::Template;
use crate::rule::orders::Candidate;
use crate::rule::residual::{Residual, ResidualWork, due};

/// A flow in its state at arrival.
#[derive(Clone, Debug)]
pub(super) struct RecurringFlow {
    pub(super) at: Time,
    /// The name of the flow and its release, now or at the next recurrence.
    of: (String, Time),
    pub(super) template: Template,
    /// Its remaining work then: all of it.
    pub(super) left: ResidualWork,
    pub(super) cost: CostFn,
    due: f64,
    weight: f64,
    slope: f64,
}

impl RecurringFlow {
    /// A flow that has just arrived, with its remaining work.
    pub(super) fn of(left: ResidualWork, residual: &Residual, view: &View<'_>) -> Self {
        let flow = view.instance.flow(left.flow);
        Self {
            at: flow.release,
            of: (flow.id.clone(), flow.release),
            template: Template::of(left.flow, residual, view),
            left,
            cost: flow.cost.clone(),
            due: due(left.flow, view),
            weight: flow.weight,
            slope: slope(&flow.cost, flow.weight),
        }
    }

    /// The same flow at its next recurrence.
    pub(super) fn again(&self, at: Time) -> Self {
        let later = at.seconds() - self.at.seconds();
        Self { at, cost: self.cost.clone().later(later), due: self.due + later, ..self.clone() }
    }

    /// Work over the cost of a second: in a fixed order the lowest is served first.
    pub(super) fn ratio(&self) -> f64 {
        if self.slope > 0.0 { self.left.area / self.slope } else { f64::INFINITY }
    }

    /// The flow as rules see it before its arrival.
    pub(super) fn candidate(&self, number: u32, now: Time) -> Candidate<'_> {
        let Self { left, weight, slope, ref cost, .. } = *self;
        let now = now.seconds();
        let (release, due) = (self.at.seconds() - now, self.due - now);
        Candidate { number, left, release, due, weight, slope, cost }
    }
}

/// The cost of another second, if it is constant; else the weight.
fn slope(cost: &CostFn, weight: f64) -> f64 {
    cost.as_linear().map_or(weight, |(slope, _)| slope)
}

/// Announced flows: they recur unchanged.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced(Vec<RecurringFlow>);

impl Announced {
    /// Records a flow that has arrived and whether it will recur. A flow that comes back in another state is
    /// expected once, in its state at its first arrival, since a part of it may be done by now.
    pub(super) fn note(&mut self, known: &RecurringFlow, next: Option<Time>, now: Time) {
        let before = self.0.iter().position(|other| other.of == known.of).map(|at| self.0.remove(at));
        if let Some(next) = next.filter(|&next| next > now) {
            self.0.push(before.as_ref().unwrap_or(known).again(next));
            self.0.sort_by_key(|known| known.at);
        }
    }

    /// The flows that arrive within `seconds` from now on, in order; forgets earlier ones.
    pub(super) fn within(&mut self, seconds: f64, now: Time) -> &[RecurringFlow] {
        self.0.retain(|known| known.at > now);
        let is_within = |known: &RecurringFlow| known.at.since(now).seconds() < seconds;
        &self.0[..self.0.partition_point(is_within)]
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::FlowId;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000)
    }

    /// A flow that arrived at 0, is due at 50, and has `area` seconds of work left.
    fn known(name: &str, area: f64) -> RecurringFlow {
        let left =
            ResidualWork { flow: FlowId(0), stages: [area, 0.0], area, rem: area, overrun: 1.0, lag: 0.0 };
        let (template, cost) = (Template::default(), CostFn::tardiness(1.0, 50.0));
        RecurringFlow {
            at: at(0),
            of: (name.to_owned(), at(0)),
            template,
            left,
            cost,
            due: 50.0,
            weight: 1.0,
            slope: 1.0,
        }
    }

    #[test]
    fn a_flow_that_comes_back_is_expected_once_and_whole_and_not_when_it_comes_no_more() {
        let mut announced = Announced::default();
        announced.note(&known("f", 10.0), Some(at(100)), at(0));
        announced.note(&known("g", 20.0), Some(at(300)), at(0));
        // The flow comes back when half of it is done, and recurs sooner and later than announced.
        for next in [100, 90, 200] {
            announced.note(&known("f", 5.0), Some(at(next)), at(10));
            let seen = announced.within(1e9, at(10));
            let seen: Vec<_> = seen.iter().map(|k| (k.of.0.as_str(), k.at, k.left.area, k.due)).collect();
            let due = 50.0 + next as f64;
            assert_eq!(seen, [("f", at(next), 10.0, due), ("g", at(300), 20.0, 350.0)]);
        }
        announced.note(&known("f", 5.0), None, at(20));
        assert_eq!(announced.within(1e9, at(20)).len(), 1, "f was paused");
    }
}
