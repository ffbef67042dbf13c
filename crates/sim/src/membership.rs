//! Machines that join a cluster and leave it for good.

use slackline_model::cluster::Group;
use slackline_model::{MachineId, Time};

/// A change of the machines there are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Membership {
    /// Machines that were not there before join; they get the next ids, in the order of the changes.
    Join { at: Time, group: Group },
    /// A machine leaves, and takes with it what a machine that dies does.
    Leave { at: Time, machine: MachineId },
}

impl Membership {
    pub fn at(&self) -> Time {
        match *self {
            Self::Join { at, .. } | Self::Leave { at, .. } => at,
        }
    }
}
