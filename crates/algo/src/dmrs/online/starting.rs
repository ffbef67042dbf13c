//! Assigns tasks to free slots: the head of the queue if it can start, and if no other slot has become
//! better.

use std::collections::BTreeMap;

use slackline_model::{MachineId, PhaseId, Time};
use slackline_policy::{Action, View};

use super::super::queues::{Running, SlotRef};
use super::super::variant::Variant;
use super::config::Reoptimise;
use super::state::{Awake, Dmrs};
use crate::estimated;

impl Dmrs {
    /// Hands tasks to slots that are free.
    pub(super) fn start(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        let mut begun: BTreeMap<PhaseId, u32> = BTreeMap::new();
        let mut may_replan =
            self.config.reoptimise == Reoptimise::OnDeparture && self.config.variant != Variant::Identical;
        loop {
            // The slot that has been free longest comes first while there are reduces that belong to no
            // queue.
            let by_idleness = !self.loose.is_empty();
            let mut has_loose = [0, 1].map(|slot_kind| self.next_loose(slot_kind, &begun, view).is_some());
            let mut replanned = false;
            for at in self.take_awake(has_loose, by_idleness) {
                if has_loose[at.slot_kind] {
                    if let Some((key, task)) = self.next_loose(at.slot_kind, &begun, view) {
                        self.loose.insert(key, task.task + 1);
                        self.transfer(at, task, &mut begun, view, out);
                        continue;
                    }
                    // A task that cannot start now cannot start later in this call.
                    has_loose[at.slot_kind] = false;
                }
                let Some(task) = self.head(at, &begun, view) else { continue };
                if self.departed && may_replan && self.may_pay(at, view.now) {
                    // Tasks that were handed over in this call are not running yet, but must not be listed
                    // again.
                    replanned = true;
                    break;
                }
                self.queues.pop(at);
                self.transfer(at, task, &mut begun, view, out);
            }
            if !replanned {
                return;
            }
            may_replan = false;
            begun.clear();
            self.replan(view, out);
        }
    }

    /// Slots that may start a task: the awake ones that are idle and have a queue, and all that are awake
    /// and idle in slot kinds where reduces wait that belong to no queue.
    fn take_awake(&mut self, has_loose: [bool; 2], by_idleness: bool) -> Vec<SlotRef> {
        let awake = std::mem::replace(&mut self.awake, Awake::Some(Vec::new()));
        let may_start = |at: &SlotRef| has_loose[at.slot_kind] || self.queues.is_loaded(*at);
        let mut slots: Vec<SlotRef> = match awake {
            Awake::Some(mut slots) => {
                slots.sort_unstable();
                slots.dedup();
                slots.into_iter().filter(|at| self.queues.is_idle(*at) && may_start(at)).collect()
            }
            Awake::All if has_loose == [false; 2] => self.queues.idle_and_loaded().collect(),
            Awake::All => self.queues.idle().filter(may_start).collect(),
        };
        if by_idleness {
            slots.sort_by_key(|&at| (self.queues.slot(at).idle_since, at));
        }
        slots
    }

    /// Whether another slot is better for the head of `at`, and enough tasks have started since the list was
    /// made that rebuilding it costs O(log tasks) per task in total.
    fn may_pay(&self, at: SlotRef, now: Time) -> bool {
        is_worth_a_list(self.started, self.queues.queued())
            && self.queues.is_better_elsewhere(at, self.speeds.get(), now)
    }

    /// The head of a slot's queue, if it can start now.
    fn head(&mut self, at: SlotRef, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> Option<Running> {
        loop {
            let head = *self.queues.head(at)?;
            if view.state.knows(head.phase) && view.phase(head.phase).is_pending(head.task) {
                let room = has_room(head.phase, begun, view);
                if !room && !can_run(head.phase, view) {
                    self.queues.block(at, head.phase);
                }
                let running =
                    Running { phase: head.phase, task: head.task, span: head.span, since: view.now };
                return room.then_some(running);
            }
            self.queues.pop(at);
        }
    }

    /// The first reduce of a slot kind that belongs to no queue and can start now, with its key (map-only).
    fn next_loose(
        &mut self,
        slot_kind: usize,
        begun: &BTreeMap<PhaseId, u32>,
        view: &View<'_>,
    ) -> Option<((Time, PhaseId), Running)> {
        self.loose.retain(|&(_, phase), next| {
            if !view.state.knows(phase) {
                return false;
            }
            let state = view.phase(phase);
            while *next < state.total() && !state.is_pending(*next) {
                *next += 1;
            }
            *next < state.total()
        });
        let can_start =
            |phase| view.instance.slot_kind_of(phase).index() == slot_kind && has_room(phase, begun, view);
        let (&key, &task) = self.loose.iter().find(|((_, phase), _)| can_start(*phase))?;
        let span = estimated::size(view, key.1, task);
        Some((key, Running { phase: key.1, task, span, since: view.now }))
    }

    fn transfer(
        &mut self,
        at: SlotRef,
        task: Running,
        begun: &mut BTreeMap<PhaseId, u32>,
        view: &View<'_>,
        out: &mut Vec<Action>,
    ) {
        self.ranking.begin(view.instance.phase(task.phase).job);
        self.queues.occupy(at, task);
        self.handed.push(at);
        place(self.queues.slot(at).machine, task, out);
        *begun.entry(task.phase).or_default() += 1;
        self.started += 1;
    }
}

/// Hands a task to a machine, together with its neighbour of the same phase if that goes there too: the slots
/// of a machine are equal, and tasks that start there together then start at once.
fn place(machine: MachineId, task: Running, out: &mut Vec<Action>) {
    if let Some(Action::Place { machine: last, phase, first, count }) = out.last_mut()
        && (*last, *phase) == (machine, task.phase)
    {
        if task.task + 1 == *first {
            (*first, *count) = (task.task, *count + 1);
            return;
        }
        if task.task == *first + *count {
            *count += 1;
            return;
        }
    }
    out.push(Action::Place { machine, phase: task.phase, first: task.task, count: 1 });
}

/// Whether one more task of a phase can start, its maps being done.
fn has_room(phase: PhaseId, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> bool {
    let begun = begun.get(&phase).copied().unwrap_or(0);
    !view.state.is_early(view.instance, phase) && view.runnable(phase) > begun
}

/// Whether tasks of a phase can start, apart from those that were handed over in this call.
fn can_run(phase: PhaseId, view: &View<'_>) -> bool {
    has_room(phase, &BTreeMap::new(), view)
}

/// Whether `started` tasks since the last list are enough: then rebuilding it for the `queued` tasks costs
/// O(log tasks) per task in total (deviation D6).
fn is_worth_a_list(started: u64, queued: u64) -> bool {
    started >= queued / 64
}

#[cfg(test)]
mod tests {
    use super::is_worth_a_list;

    #[test]
    fn short_lists_are_rebuilt_at_once_and_long_ones_after_a_64th() {
        let worth = [(0, 63), (0, 64), (1, 64), (1, 127), (1, 128), (15, 1024), (16, 1024)]
            .map(|(started, queued)| is_worth_a_list(started, queued));
        assert_eq!(worth, [true, false, true, true, false, false, true]);
    }
}
