//! How far one phase is.

use slackline_model::Time;

use crate::pending::Pending;

/// How far a phase is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseState {
    pub(super) total: u32,
    pub(super) unstarted: u32,
    pub(super) running: u32,
    pub(super) done: u32,
    pub(super) waiting: u32,
    pub(super) ready: bool,
    pub(super) ready_since: Time,
    /// When the last of its tasks so far ended.
    pub(super) last_end: Time,
    /// Tasks to start.
    pub(super) pending: Pending,
}

impl PhaseState {
    /// How many tasks it has.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Tasks not started yet, or to be run again.
    pub fn unstarted(&self) -> u32 {
        self.unstarted
    }

    /// Tasks that hold a slot.
    pub fn running(&self) -> u32 {
        self.running
    }

    /// Tasks done.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Early reduces: tasks that hold a slot and wait for maps of their job.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Whether its tasks may start.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Since when its tasks may start.
    pub fn ready_since(&self) -> Time {
        self.ready_since
    }

    /// When the last of its tasks so far ended, which may be reported later.
    pub fn last_end(&self) -> Time {
        self.last_end
    }

    /// Whether `task` still has to start.
    pub fn is_pending(&self, task: u32) -> bool {
        self.pending.at(task, 1).is_some()
    }

    /// Tasks that still have to start: (first, how many), in order.
    pub fn pending(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.pending.iter().map(|piece| (piece.first, piece.count))
    }

    /// Whether all tasks are done.
    pub fn is_done(&self) -> bool {
        self.done == self.total
    }
}
