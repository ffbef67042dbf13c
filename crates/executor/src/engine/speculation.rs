//! Speculative attempts of tasks that take much longer than other tasks of their phase.
//!
//! No scheduling decision: they run on slots that the policy leaves idle, and give way to everything that it
//! starts there. Whichever attempt ends well first is the task's; the other is killed.

use std::time::Duration;

use slackline_model::SlotKind;
use slackline_policy::engine::RowId;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::report::Report as Said;

use super::ending::Problem;
use super::{ProcessEngine, Running, Stage};
use crate::engine::event::RunEvent;
use crate::fleet::ForeignSlot;

/// A task is tried a second time when it has taken this many times the mean of its phase, as Hadoop's
/// speculation does with slow progress; twice wastes little where durations vary by chance.
const STRAGGLER: f64 = 2.0;

/// And at least this long: starting a process has a price too.
const STRAGGLER_LEAST: Duration = Duration::from_millis(500);

impl ProcessEngine {
    /// One of the attempts of a row ended. Returns it if it counts for the task: if it succeeded, or was the
    /// first attempt, whose slot the policy chose; the other is dropped. A speculative attempt that failed
    /// does not affect the first, and nothing is returned.
    pub(super) fn settle_twins(
        &mut self,
        row: RowId,
        number: u64,
        mut first: Running,
        report: &Result<Said, String>,
    ) -> Option<Running> {
        let Some(second) = first.second.take() else { return Some(first) };
        let is_second = second.number == number;
        let (ended, other) = if is_second { (*second, first) } else { (first, *second) };
        let problem =
            Problem::in_report(report, &ended, &self.work.session.jobs[ended.id.job as usize].limits);
        let Some(problem) = problem.filter(|_| is_second) else {
            self.drop_attempt(&other);
            return Some(ended);
        };
        self.give_up(&ended, &problem.message, true, false);
        self.attempts.running.insert(row, Running { second_failed: true, ..other });
        None
    }

    /// A speculative attempt, or one of a lost task, gives way to the task that the policy starts on its
    /// slot.
    pub(super) fn make_room(&mut self, slot_kind: SlotKind, slot: u32) {
        self.make_room_of_lost(slot_kind, slot);
        let on = |second: &Running| second.slot == slot && self.slot_kind_of(second.id) == slot_kind;
        let row = self
            .attempts
            .running
            .iter()
            .find(|(_, r)| r.second.as_deref().is_some_and(on))
            .map(|(&row, _)| row);
        let second =
            row.and_then(|row| self.attempts.running.get_mut(&row)).and_then(|running| running.second.take());
        if let Some(second) = second {
            self.drop_attempt(&second);
        }
    }

    /// Tries stragglers a second time on slots that the policy leaves idle.
    pub(super) fn speculate(&mut self) {
        if !self.settings.speculate {
            return;
        }
        let others = self.fleet.foreign_slots();
        for &slot_kind in self.machines.cluster.slot_kinds() {
            let busy = |slot: u32| {
                let on = |r: &Running| r.slot == slot && self.slot_kind_of(r.id) == slot_kind;
                self.is_others(&others, slot_kind, slot)
                    || self.attempts.running.values().any(|r| on(r) || r.second.as_deref().is_some_and(on))
                    || self.lost.attempts().any(on)
            };
            let is_there = |slot: u32| {
                !self.machines.away.contains(&self.machines.cluster.machine_of(slot_kind, slot).0)
            };
            let slots = 0..self.machines.cluster.slot_numbers(slot_kind);
            let idle: Vec<u32> = slots.filter(|&slot| !busy(slot) && is_there(slot)).collect();
            for slot in idle {
                let Some(row) = self.straggler(slot_kind) else { break };
                self.try_again(row, slot);
            }
        }
    }

    /// The attempt that has taken longest for its phase: [`STRAGGLER`] times the mean of those that are done.
    fn straggler(&self, slot_kind: SlotKind) -> Option<RowId> {
        let late = |running: &Running| {
            let (count, micros) = self.counts.took.get(&(running.id.job, running.id.phase))?;
            let mean = *micros as f64 / f64::from(*count);
            let elapsed = self.now.since(running.began).0 as f64;
            (elapsed > STRAGGLER * mean && elapsed > STRAGGLER_LEAST.as_micros() as f64)
                .then_some(elapsed / mean)
        };
        (self.attempts.running.iter())
            .filter(|(_, r)| r.second.is_none() && !r.second_failed && r.is_at_work() && r.killed.is_none())
            .filter(|(_, r)| self.slot_kind_of(r.id) == slot_kind)
            .filter_map(|(&row, running)| Some((row, late(running)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
            .map(|(row, _)| row)
    }

    fn try_again(&mut self, row: RowId, slot: u32) {
        let Some(id) = self.attempts.running.get(&row).map(|running| running.id) else { return };
        if !self.fits(id, slot) {
            return;
        }
        let mut second = Running::new(self.number(), id, slot, self.now);
        if self.launch(&second).is_err() {
            // The first continues alone.
            if let Some(running) = self.attempts.running.get_mut(&row) {
                running.second_failed = true;
            }
            return;
        }
        second.stage = Stage::AtWork;
        (self.on_event)(self.now, &RunEvent::AttemptStarted(second.document()));
        self.attempts.rows.insert(second.number, row);
        if let Some(running) = self.attempts.running.get_mut(&row) {
            running.second = Some(Box::new(second));
        }
    }

    /// Whether another process has a slot.
    pub(super) fn is_others(&self, others: &[ForeignSlot], slot_kind: SlotKind, slot: u32) -> bool {
        let cluster = self.work.instance.cluster();
        others.iter().any(|other| other.slot == slot && cluster.slot_kind_of(other.phase) == slot_kind)
    }

    /// The slot kind of the slots that serve a task.
    pub(super) fn slot_kind_of(&self, id: TaskId) -> SlotKind {
        self.machines.cluster.slot_kind_of(id.phase)
    }
}
