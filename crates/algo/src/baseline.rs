//! FIFO, EDF and Fair: what everybody runs, and what everything else is compared with.
//!
//! - [`Fifo`]: the oldest job first;
//! - [`Edf`]: the flow with the earliest deadline first;
//! - [`Fair`]: equal shares, with minima and maxima;
//! - [`fluid`]: all three as plans, on whole slots of one speed.
//!
//! All three take flows of several jobs, typed and universal slots and mixed speeds (to which they are
//! blind), and none reads durations.

mod edf;
mod fair;
mod fifo;
pub mod fluid;

pub use edf::Edf;
pub use fair::Fair;
pub use fifo::Fifo;

use slackline_model::id::TiVec;
use slackline_model::{Instance, JobId, PhaseId, Time};
use slackline_policy::View;

/// What a baseline treats as one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Each job by itself, as Hadoop does, which knows no flows.
    Job,
    /// Each flow as a whole.
    Flow,
}

/// When each job became ready: its first phase did.
#[derive(Clone, Debug)]
struct JobReady(TiVec<JobId, Option<Time>>);

impl JobReady {
    fn new(instance: &Instance) -> Self {
        Self(vec![None; instance.jobs().len()].into())
    }

    /// The ready time of the job of a phase that is ready now.
    fn of(&mut self, phase: PhaseId, view: &View<'_>) -> Time {
        *self.0[view.instance.phase(phase).job].get_or_insert(view.now)
    }
}
