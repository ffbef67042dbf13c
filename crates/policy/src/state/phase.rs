//! The progress of one phase.

use slackline_model::Time;

use crate::pending::Pending;

/// The progress of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseState {
    pub(super) total: u32,
    pub(super) unstarted: u32,
    pub(super) running: u32,
    pub(super) done: u32,
    pub(super) waiting: u32,
    pub(super) ready: bool,
    pub(super) ready_since: Time,
    /// The latest end of its tasks so far.
    pub(super) last_end: Time,
    /// Tasks to start.
    pub(super) pending: Pending,
}

impl PhaseState {
    /// The number of its tasks.
    #[inline]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The number of tasks that are not started yet, or must run again.
    #[inline]
    pub fn unstarted(&self) -> u32 {
        self.unstarted
    }

    /// The number of tasks that hold a slot.
    #[inline]
    pub fn running(&self) -> u32 {
        self.running
    }

    /// The number of done tasks.
    #[inline]
    pub fn done(&self) -> u32 {
        self.done
    }

    /// The number of early reduces: tasks that hold a slot and wait for maps of their job.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Whether some of its tasks could start on free slots, as far as the phase itself is concerned.
    pub(crate) fn wants_slots(&self) -> bool {
        self.ready && self.unstarted > 0
    }

    /// Whether its tasks may start.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Since when its tasks may start.
    pub fn ready_since(&self) -> Time {
        self.ready_since
    }

    /// The latest end of its tasks so far, which may be reported later.
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
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done == self.total
    }
}
