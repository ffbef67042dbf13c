//! Hadoop's own schedulers: the CapacityScheduler and the FairScheduler, with the queues of a site.
//!
//! **Paper**: none; the source of Hadoop 3.4.2 (packages `…scheduler.capacity` and `…scheduler.fair`).
//! **Problem**: applications of several queues, in which users and applications take turns; lengths are not
//! known.
//! **Idea**: 1. A job is an application, submitted when it becomes ready, to the queue of its flow's pool. 2.
//! A free slot is one container: it goes down the tree of queues, at each level to the first child that may
//! have one more ([`capacity`]: the one that uses the smallest part of its guarantee; [`fair`]: the one
//! furthest below its minimum, then the one with the least use over weight), and in the leaf to the first
//! application in the leaf's order. 3. Nothing is taken back.
//! **Guarantee**: none on cost. **Complexity**: O(queues + log applications) a container, and the users of a
//! leaf that want one. **Deviations**: D1. All containers are one slot. D2. An application's requests are its
//! tasks that could start now, maps before reduces. D3. Everything that Hadoop updates every half second or
//! at heartbeats of AMs is current. D4. What is not modelled is named: preemption, labels, reservations,
//! locality delays, groups, queues made by themselves.
//!
//! - `book`: applications, users and queues, and what each uses and wants;
//! - `online`: the policy, which deals free slots;
//! - [`capacity`], [`fair`]: trees of queues as files say them, and whose turn it is.

mod book;
pub mod capacity;
pub mod fair;
mod online;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use slackline_model::params::{Param, Settings, Values};

/// The name of the parameter for the scheduler's file. Programs that read files pass the tree instead.
pub const FILE: &str = "file";

/// The name of the parameter that is the queue of flows whose pool is no queue.
pub const ELSE: &str = "else";

/// The container of a cluster: what one slot stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container {
    /// Memory in MiB.
    pub memory: u64,
    pub vcores: u64,
}

const MEMORY: Param = Param::new(
    "slot-memory",
    "1024",
    Values::Count(1, 1 << 24),
    "MiB of memory of a container, which is one slot; for limits of memory in the file",
);

const VCORES: Param = Param::new(
    "slot-vcores",
    "1",
    Values::Count(1, 1 << 16),
    "virtual cores of a container, for limits of cores in the file",
);

impl Container {
    /// What the parameters say.
    pub fn chosen(settings: &Settings) -> Self {
        Self { memory: settings.count(MEMORY.name), vcores: settings.count(VCORES.name) }
    }
}

/// How the applications of a leaf take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turns {
    /// The one of the highest priority, then the one submitted first.
    #[default]
    Fifo,
    /// The one that uses least.
    Fair,
    /// The one with the least use over the logarithm of use and demand.
    FairBySize,
}

/// How many applications may run at a time, by user: the others wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserApps {
    /// Users with a number of their own.
    pub of: BTreeMap<String, u32>,
    pub others: u32,
}

impl Default for UserApps {
    fn default() -> Self {
        Self { of: BTreeMap::new(), others: u32::MAX }
    }
}
