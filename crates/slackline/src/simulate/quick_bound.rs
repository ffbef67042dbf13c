//! A lower bound beside simulations.

use std::sync::OnceLock;

use slackline_model::Instance;

/// The best lower bound on the cost of an instance that is fast compared with a simulation.
///
/// The simulations of one instance share it. The first caller of [`QuickBound::get`] computes it, on any
/// thread, and the others wait.
#[derive(Debug, Default)]
pub struct QuickBound(OnceLock<Option<f64>>);

impl QuickBound {
    /// The bound; `None` if there is none that is finite. Every call must have the same instance.
    pub fn get(&self, instance: &Instance) -> Option<f64> {
        let compute = || {
            let bounds = slackline_relax::quick_task_bounds(instance);
            bounds.iter().map(|bound| bound.value).filter(|value| value.is_finite()).reduce(f64::max)
        };
        *self.0.get_or_init(compute)
    }
}
