//! Documents in: from a file or bytes to an instance, with everything that may be said beside the document.
//!
//! - [`Source`]: a file in memory; [`Source::load`] makes a [`Loaded`] instance of it;
//! - [`StreamedWorkload`]: a workload that is read flow by flow, while it is simulated;
//! - [`WorkloadOptions`]: import options, another cluster, another objective, deadlines;
//! - [`SimulationOptions`]: what a simulated cluster does, machines by name;
//! - [`RecordedOptions`]: both as a schedule records them, written and read back, so that none need be
//!   repeated;
//! - [`ScheduleDocument`]: a schedule and the workload it was made for; [`check`](fn@check) decides on both, and
//!   [`check_streams`] while it reads them;
//! - [`bounds`]: the lower bounds of an instance, as their document has them.

mod check;
mod check_stream;
mod error;
mod loaded;
mod recorded_options;
mod simulation_options;
mod source;
mod streaming;
mod workload_options;

use slackline_model::Instance;
use slackline_trace::Bounds;

pub use check::{ScheduleDocument, Verdict, WrongWorkload, check};
pub use check_stream::{Opened, check_streams};
pub use error::{ImportError, MissingOption};
pub use loaded::{Loaded, Shaped, grain_span};
pub use recorded_options::{RecordedOptions, add_budget};
pub use simulation_options::{CrashAt, CrashRate, KnowledgeOption, SimulationOptions};
pub use source::Source;
pub use streaming::StreamedWorkload;
pub use workload_options::{SlotOptions, WorkloadOptions};

/// Every lower bound on the instance's objective, and the best.
pub fn bounds(instance: &Instance) -> Bounds {
    let bounds = slackline_relax::bounds(instance);
    let bounds: Vec<_> = bounds.into_iter().map(|bound| (bound.name.to_owned(), bound.value)).collect();
    let best = bounds.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).reduce(f64::max);
    Bounds { objective: instance.objective(), bounds, best }
}
