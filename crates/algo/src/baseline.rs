//! FIFO, EDF and Fair: the usual policies, which the others are compared with.
//!
//! - [`Fifo`]: the oldest job first;
//! - [`Edf`]: the flow with the earliest deadline first;
//! - [`Fair`]: equal shares, with minima and maxima;
//! - [`dates`]: the dates by which EDF orders phases;
//! - [`fluid`]: all three as plans, on whole slots of one speed.
//!
//! All three take flows of several jobs, typed and universal slots and mixed speeds (which they
//! ignore), and none reads durations.

pub mod dates;
pub mod edf;
pub mod fair;
pub mod fifo;
pub mod fluid;
mod shares;

pub use edf::Edf;
pub use fair::Fair;
pub use fifo::Fifo;

use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Rows;
use slackline_model::{Instance, JobId, PhaseId, Time};
use slackline_policy::{Event, IdTable, View};

use crate::registry::{Proposal, Refused};

/// The parameter of FIFO and Fair that [`ShareUnit`] stands for.
const BY: Param = Param::new(
    "by",
    "job",
    Values::Choice(&["job", "flow"]),
    "what queues or shares: every job by itself, or each flow as a whole",
);

/// Plans of the baselines' entries.
fn propose(instance: &Instance, rule: fluid::Rule) -> Result<Proposal, Refused> {
    let rows = Some(Rows::Allocations(fluid::plan(instance, rule)?));
    Ok(Proposal { rows, ..Proposal::default() })
}

/// What a baseline treats as one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareUnit {
    /// Each job by itself, as Hadoop does, which knows no flows.
    Job,
    /// Each flow as a whole.
    Flow,
}

impl ShareUnit {
    /// What the parameter `by` says.
    fn chosen(settings: &Settings) -> Self {
        if settings.choice(BY.name) == "flow" { Self::Flow } else { Self::Job }
    }
}

/// When each job became ready: its first phase did.
#[derive(Clone, Debug, Default)]
struct JobReady(IdTable<JobId, Option<Time>>);

impl JobReady {
    /// Forgets jobs of flows that are over.
    fn note(&mut self, events: &[Event], view: &View<'_>) {
        for flow in events.iter().filter_map(Event::over) {
            self.0.forget(view.instance.flow(flow).jobs());
        }
    }

    /// The ready time of the job of a phase that is ready now.
    fn of(&mut self, phase: PhaseId, view: &View<'_>) -> Time {
        *self.0[view.instance.phase(phase).job].get_or_insert(view.now)
    }
}
