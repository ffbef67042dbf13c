//! Speculative attempts: a second row for a task, of which the one that ends first counts.
//!
//! They are not decided by a policy. An engine starts them on idle slots, and policies may not count on these
//! slots. Their state on a machine that leaves would be unknown, so clusters whose machines may leave have
//! none.

use slackline_model::schedule::Outcome;
use slackline_model::{SlotKind, SlotRange, Time};

use super::Ledger;
use crate::engine::{Engine, Faults, Order, RowId, SpeculativeAttempt};
use crate::event::Event;
use crate::pending::TaskRange;

impl Ledger {
    /// A speculative attempt runs. The ledger accepts it if its slot is free and only the first attempt runs,
    /// and refuses it otherwise.
    pub(super) fn start_speculative(&mut self, second: SpeculativeAttempt, engine: &mut dyn Engine) {
        let SpeculativeAttempt { row, name, slot, since } = second;
        let place = SlotRange { first: slot, len: 1 };
        let Some(taken) = self.may_run_beside(row, place) else {
            engine.order(Order::Refuse(name));
            return;
        };
        let phase = self.log[row].task.phase;
        let slot_kind = self.instance.slot_kind_of(phase);
        self.free[slot_kind.index()].remove(place);
        self.state.set_alive(slot_kind, self.state.alive(slot_kind) - 1);
        self.piece.clear();
        self.piece.push(place);
        let id = self.open_row(phase, taken, since);
        self.rows.twins.insert(row, id);
        self.rows.twins.insert(id, row);
        self.start_row(id, Some(name), engine);
    }

    /// The attempt that may start on `place` beside a row, if any.
    fn may_run_beside(&self, row: RowId, place: SlotRange) -> Option<TaskRange> {
        let first = self.log.get(row).filter(|row| row.is_running() && row.task.count == 1)?.task;
        let slot_kind = self.instance.slot_kind_of(first.phase);
        let is_there = place.end() <= self.instance.cluster().slot_numbers(slot_kind);
        let may_run = self.capabilities.faults == Faults::Never
            && is_there
            && self.free[slot_kind.index()].count_in(place) == 1
            && !self.rows.twins.contains_key(&row)
            && !self.state.is_early(&self.instance, first.phase);
        let attempt = first.attempt.checked_add(1).filter(|_| may_run)?;
        Some(TaskRange { first: first.first, count: 1, attempt })
    }

    /// One of two attempts ended at `at`: the other one is stopped in that instant, and its slot becomes
    /// free. Returns the number of the other attempt, if there was one.
    pub(super) fn end_twin(
        &mut self,
        id: RowId,
        at: Time,
        engine: &mut dyn Engine,
        events: &mut Vec<Event>,
    ) -> Option<u16> {
        let other = self.rows.twins.remove(&id)?;
        self.rows.twins.remove(&other);
        let (row, _) = self.free_places(other);
        let slot_kind = self.instance.slot_kind_of(row.phase);
        self.state.set_alive(slot_kind, self.state.alive(slot_kind) + 1);
        self.end_row(other, at.max(row.start + row.startup), Outcome::Killed);
        engine.order(Order::Kill(other));
        self.unpark(events);
        Some(row.attempt)
    }

    /// Running speculative attempts on slots of a kind.
    pub(crate) fn speculative_attempts(&self, slot_kind: SlotKind) -> u32 {
        let is_here = |row: &RowId| self.instance.slot_kind_of(self.log[*row].task.phase) == slot_kind;
        self.rows.twins.keys().filter(|row| self.is_speculative(**row) && is_here(row)).count() as u32
    }

    /// Whether a row is a speculative attempt whose first attempt runs.
    pub(crate) fn is_speculative(&self, id: RowId) -> bool {
        self.rows.twins.get(&id).is_some_and(|first| *first < id)
    }
}
