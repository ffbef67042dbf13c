//! FIFO, EDF and Fair: the baseline policies.
//!
//! - [`Fifo`]: the oldest job first;
//! - [`Edf`]: the flow with the earliest deadline first;
//! - [`Fair`]: equal shares, with minima and maxima;
//! - [`dates`]: the dates by which EDF orders phases;
//! - [`fluid`]: all three as plans, on whole slots of one speed.
//!
//! All three support flows of several jobs, map and reduce slots, generic slots and mixed speeds (which they
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
    "what is scheduled as a unit: each job, or each flow",
);

/// Plans of the baselines' entries.
fn propose(instance: &Instance, rule: fluid::Rule) -> Result<Proposal, Refused> {
    let rows = Some(Rows::Allocations(fluid::plan(instance, rule)?));
    Ok(Proposal { rows, ..Proposal::default() })
}

/// The unit to which a baseline gives a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareUnit {
    /// Each job by itself, as Hadoop does, which knows no flows.
    Job,
    /// Each flow as a whole.
    Flow,
}

impl ShareUnit {
    /// The value of the parameter `by`.
    fn chosen(settings: &Settings) -> Self {
        if settings.choice(BY.name) == "flow" { Self::Flow } else { Self::Job }
    }
}

/// When each job became ready, with its first phase.
#[derive(Clone, Debug, Default)]
struct JobReady(IdTable<JobId, Option<Time>>);

impl JobReady {
    /// Forgets jobs of finished flows.
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
