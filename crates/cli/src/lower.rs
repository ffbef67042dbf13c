//! The lower bounds of an instance.

use slackline_model::Instance;
use slackline_trace::Bounds;

/// Every bound on the instance's objective, and the best.
pub(crate) fn bounds(instance: &Instance) -> Bounds {
    let bounds: Vec<(String, f64)> = Vec::new();
    let best = bounds.iter().map(|(_, value)| *value).reduce(f64::max);
    Bounds { objective: instance.objective(), bounds, best }
}
