//! Reads documents: converts a file or bytes to an instance and applies options.
//!
//! - [`Source`]: a file in memory; [`Source::load`] converts it to a [`Loaded`] instance;
//! - [`PieceSpan`]: pieces of a workload, such as its days ([`Shaped::pieces`]);
//! - [`StreamedWorkload`]: a workload that is read flow by flow during its simulation;
//! - [`WorkloadOptions`]: import options, another cluster, another objective, deadlines;
//! - [`SimulationOptions`]: the behaviour of a simulated cluster, with machines by name;
//! - [`RecordedOptions`]: both kinds of options as a schedule records them, so that users need not repeat
//!   them;
//! - [`ScheduleDocument`]: a schedule and its workload; [`check`](fn@check) validates a schedule, and
//!   [`check_streams`] validates it while reading;
//! - [`bounds`]: the lower bounds of an instance, as in their document.

mod check;
mod check_stream;
mod deadlines;
mod error;
mod loaded;
mod pieces;
mod recorded_options;
mod simulation_options;
mod source;
mod streaming;
mod workload_options;

use slackline_model::Instance;
use slackline_relax::{Bound, Form, Search};
use slackline_trace::{Bounds, NamedBound};

pub use check::{ScheduleDocument, Verdict, check};
pub use check_stream::{Opened, check_streams};
pub use error::{ImportError, MissingOption, WrongWorkload};
pub use loaded::{Loaded, Shaped, grain_span};
pub use pieces::PieceSpan;
pub use recorded_options::{RecordedOptions, add_budget};
pub use simulation_options::{CrashAt, CrashRate, KnowledgeOption, SimulationOptions};
pub use source::Source;
pub use streaming::StreamedWorkload;
pub use workload_options::{DeadlineCluster, SlotOptions, WorkloadOptions};

/// Every lower bound on the cost of task schedules (which runs and simulations are), and the best one. Bounds
/// that do not hold for allocations are marked.
pub fn bounds(instance: &Instance) -> Bounds {
    let bounds = slackline_relax::task_bounds(instance);
    let bounds: Vec<_> = bounds.into_iter().map(named).collect();
    let best = bounds.iter().map(|bound| bound.value).filter(|value| value.is_finite()).reduce(f64::max);
    let weighted = instance.flows().iter().any(|flow| flow.weight != 1.0);
    Bounds { objective: instance.objective(), weighted, bounds, best }
}

fn named(bound: Bound) -> NamedBound {
    let search = match bound.search {
        Some(Search::Levels { complete: true }) => Some("search complete".to_owned()),
        Some(Search::Levels { complete: false }) => Some("search cut short".to_owned()),
        Some(Search::Prices { steps, horizon }) => {
            Some(format!("{steps} steps, prices up to {horizon:.0} s"))
        }
        None => None,
    };
    NamedBound {
        name: bound.name.to_owned(),
        value: bound.value,
        holds_for: if bound.form == Form::Tasks { "tasks" } else { "any" },
        search,
    }
}
