//! The lower bounds of an instance, as the document of bounds has them.

use slackline_model::Instance;
use slackline_trace::Bounds;

/// Every bound on the instance's objective, and the best.
pub(crate) fn bounds(instance: &Instance) -> Bounds {
    let bounds = slackline_relax::bounds(instance);
    let bounds: Vec<_> = bounds.into_iter().map(|bound| (bound.name.to_owned(), bound.value)).collect();
    let best = bounds.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).reduce(f64::max);
    Bounds { objective: instance.objective(), bounds, best }
}
