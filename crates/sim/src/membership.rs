//! Machines that join a cluster and leave it for good.

use slackline_model::cluster::Group;
use slackline_model::{MachineId, Time};

/// A change of the set of machines.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Membership {
    /// New machines join. They get the next ids, in the order of the changes.
    Join { at: Time, group: Group },
    /// A machine leaves. It takes along the same tasks and output as a machine that fails.
    Leave { at: Time, machine: MachineId },
}

impl Membership {
    pub fn at(&self) -> Time {
        match *self {
            Self::Join { at, .. } | Self::Leave { at, .. } => at,
        }
    }
}
