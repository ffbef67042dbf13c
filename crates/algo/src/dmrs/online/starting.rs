//! Free slots get tasks: the head of the queue if it can start, and if no other slot has become better.

use std::collections::BTreeMap;

use slackline_model::{PhaseId, Time};
use slackline_policy::{Action, View};

use super::super::queues::{At, Running};
use super::super::variant::Variant;
use super::{Dmrs, Reoptimise};

impl Dmrs {
    /// Hands tasks to slots that are free.
    pub(super) fn start(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        let mut begun: BTreeMap<PhaseId, u32> = BTreeMap::new();
        let mut may_replan = self.config.reoptimise == Reoptimise::OnDeparture
            && self.config.variant != Variant::Identical
            && !self.fixed;
        loop {
            let mut awake: Vec<At> = std::mem::take(&mut self.awake).into_iter().collect();
            if !self.loose.is_empty() {
                awake.sort_by_key(|&at| (self.queues.slot(at).idle_since, at));
            }
            let mut replanned = false;
            for at in awake {
                if !self.idle.contains(&at) {
                    continue;
                }
                if let Some(task) = self.next_loose(at, &begun, view) {
                    self.hand_over(at, task, &mut begun, out);
                    continue;
                }
                let Some(task) = self.head(at, &begun, view) else { continue };
                if let Some(start) = self.too_early(at, view.now) {
                    out.push(Action::WakeAt(start));
                    continue;
                }
                if self.departed && may_replan && self.may_pay(at, view.now) {
                    // What was handed over in this call is not under way yet, but no longer to be listed.
                    replanned = true;
                    break;
                }
                self.queues.pop(at);
                self.hand_over(at, task, &mut begun, out);
            }
            if !replanned {
                return;
            }
            may_replan = false;
            self.reoptimised += 1;
            begun.clear();
            self.replan(view, out);
        }
    }

    /// Whether another slot is better for the head of `at`, and enough has happened since the list was
    /// made for making it anew to cost O(log tasks) a task in all.
    fn may_pay(&self, at: At, now: Time) -> bool {
        self.started >= self.queues.queued() / 64
            && self.queues.is_better_elsewhere(at, self.beliefs.speeds(), now)
    }

    /// The head of a slot's queue, if it can start now.
    fn head(&mut self, at: At, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> Option<Running> {
        loop {
            let head = *self.queues.slot(at).queue.front()?;
            if view.phase(head.phase).is_pending(head.task) {
                let room = has_room(head.phase, begun, view);
                let running =
                    Running { phase: head.phase, task: head.task, span: head.span, since: view.now };
                return room.then_some(running);
            }
            self.queues.pop(at);
        }
    }

    /// When the head of a slot's queue is to start, if that is not yet: a plan that is followed says so.
    fn too_early(&self, at: At, now: Time) -> Option<Time> {
        let head = self.queues.slot(at).queue.front()?;
        (self.fixed && head.start > now).then_some(head.start)
    }

    /// The first reduce that belongs to no queue and can start now (map-only).
    fn next_loose(&mut self, at: At, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> Option<Running> {
        let mut over = None;
        let mut found = None;
        for (&key, next) in &mut self.loose {
            let (_, phase) = key;
            let state = view.phase(phase);
            while *next < state.total() && !state.is_pending(*next) {
                *next += 1;
            }
            if *next == state.total() {
                over = Some(key);
            } else if view.instance.lane_of(phase).index() == at.lane && has_room(phase, begun, view) {
                let span = self.beliefs.size(view, phase, *next);
                found = Some(Running { phase, task: *next, span, since: view.now });
                *next += 1;
                break;
            }
        }
        if let Some(key) = over {
            self.loose.remove(&key);
        }
        found
    }

    fn hand_over(
        &mut self,
        at: At,
        task: Running,
        begun: &mut BTreeMap<PhaseId, u32>,
        out: &mut Vec<Action>,
    ) {
        let slot = self.queues.slot_mut(at);
        slot.running = Some(task);
        out.push(Action::Place { machine: slot.machine, phase: task.phase, first: task.task, count: 1 });
        *begun.entry(task.phase).or_default() += 1;
        self.idle.remove(&at);
        self.started += 1;
    }
}

/// Whether one more task of a phase can start, its maps being done.
fn has_room(phase: PhaseId, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> bool {
    let begun = begun.get(&phase).copied().unwrap_or(0);
    !view.state.is_early(view.instance, phase) && view.runnable(phase) > begun
}
