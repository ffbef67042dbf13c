//! The question of a capacity search.

use crate::capacity::{Axis, Condition, DrawRule};
use crate::policy_spec::PolicySpec;

/// The question of a search, without the workload.
#[derive(Clone, Copy, Debug)]
pub struct SearchQuestion<'a> {
    /// The policy that runs the cluster.
    pub policy: &'a PolicySpec,
    /// The conditions to meet.
    pub conditions: &'a [Condition],
    /// The quantity that was varied.
    pub axis: &'a Axis,
    /// The price of a machine per hour, in any currency.
    pub price: Option<f64>,
    /// The rule for the number of draws; `None` if nothing is random.
    pub rule: Option<DrawRule>,
}

impl SearchQuestion<'_> {
    /// Whether each value has several draws.
    pub(crate) fn has_draws(&self) -> bool {
        self.rule.is_some_and(|rule| rule.number != Some(1))
    }
}
