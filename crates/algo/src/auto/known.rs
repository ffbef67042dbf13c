//! What is kept of flows beyond the time that they are there: of those that came lately, and of those that will come again.

use slackline_model::{CostFn, FlowId, Time};
use slackline_policy::View;

use super::evaluate::Evaluator;
use super::template::Template;
use crate::rule::orders::Candidate;
use crate::rule::residual::{Left, due};

/// A flow as it comes.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// When it comes.
    pub(super) at: Time,
    /// Which flow it is, or will be once more: its name, and when it came.
    of: (String, Time),
    pub(super) template: Template,
    /// What is left of it then: all of it.
    pub(super) left: Left,
    pub(super) cost: CostFn,
    due: f64,
    weight: f64,
    slope: f64,
}

impl Known {
    /// A flow that has just come, of which so much is left.
    pub(super) fn of(left: Left, number: usize, evaluator: &Evaluator, view: &View<'_>) -> Self {
        let flow = view.instance.flow(left.flow);
        Self {
            at: flow.release,
            of: (flow.id.clone(), flow.release),
            template: evaluator.template(number),
            left,
            cost: flow.cost.clone(),
            due: due(left.flow, view),
            weight: flow.weight,
            slope: slope(&flow.cost, flow.weight),
        }
    }

    /// The same flow when it comes again.
    pub(super) fn again(&self, at: Time) -> Self {
        let later = at.seconds() - self.at.seconds();
        Self { at, cost: self.cost.clone().later(later), due: self.due + later, ..self.clone() }
    }

    /// Work over what a second costs: the least is served first where a fixed order is wanted.
    pub(super) fn ratio(&self) -> f64 {
        if self.slope > 0.0 { self.left.area / self.slope } else { f64::INFINITY }
    }

    /// What rules see of it before it comes.
    pub(super) fn candidate(&self, number: u32, now: Time) -> Candidate<'_> {
        let Self { left, weight, slope, ref cost, .. } = *self;
        let now = now.seconds();
        let (release, due) = (self.at.seconds() - now, self.due - now);
        Candidate { number, left, release, due, weight, slope, cost }
    }
}

/// What a second more costs, if it always costs the same; else the weight.
fn slope(cost: &CostFn, weight: f64) -> f64 {
    cost.as_linear().map_or(weight, |(slope, _)| slope)
}

/// Flows that were announced: they come again, as they were.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced(Vec<Known>);

impl Announced {
    /// Takes in a flow that has come: it will come again, or not. One that came before and comes back, as it stands in another way now,
    /// is expected once: as it was when it first came, since by now a part of it may be done.
    pub(super) fn note(&mut self, known: &Known, flow: FlowId, view: &View<'_>) {
        let before = self.0.iter().position(|other| other.of == known.of).map(|at| self.0.remove(at));
        if let Some(next) = view.instance.flow(flow).next_release.filter(|&next| next > view.now) {
            self.0.push(before.as_ref().unwrap_or(known).again(next));
            self.0.sort_by_key(|known| known.at);
        }
    }

    /// Those that come from now on and before so many seconds are over, the first one first; forgets those that came.
    pub(super) fn within(&mut self, seconds: f64, now: Time) -> &[Known] {
        self.0.retain(|known| known.at > now);
        let is_within = |known: &Known| known.at.since(now).seconds() < seconds;
        &self.0[..self.0.partition_point(is_within)]
    }
}
