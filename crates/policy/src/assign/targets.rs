//! Targets: the phase furthest below its target is served first.
//!
//! Phases below their effective minimum come before all others (if the policy keeps minima), then those below
//! their target, by running / minimum or running / target. When all are satisfied and slots are left, they
//! continue, so that no slot idles while a phase could run. Reduces that would only wait there are left out
//! if the policy requests it. Ties go to the phase that was served longest ago, so that phases with less than
//! one slot each take turns; then to the lower id.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use slackline_model::{PhaseId, SlotKind};

use crate::id_table::IdTable;
use crate::ledger::Ledger;
use crate::minima::Minima;
use crate::policy::Policy;

/// How urgently a phase needs a slot; the smallest rank is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    need: Need,
    /// Bits of a non-negative `f64`, which order as the number does.
    ratio: u64,
    /// When the phase was served last.
    served: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Minimum,
    Target,
    Spare,
}

/// The target and the rank of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The target number of slots.
    target: f64,
    /// When the phase was served last.
    served: u64,
    /// Its rank in the order, if it is in the order.
    rank: Option<Rank>,
}

/// The part of a phase of the slots that are free at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portion {
    pub(super) phase: PhaseId,
    pub(super) tasks: u32,
    /// Its running tasks after that.
    running: u32,
    /// Its tasks that could still start after that.
    runnable: u32,
}

/// The targets of all phases, and the order that follows from them.
#[derive(Clone)]
pub(super) struct Targets {
    keeps_minima: bool,
    fills_early: bool,
    minima: Minima,
    phases: IdTable<PhaseId, Entry>,
    order: [BTreeSet<(Rank, PhaseId)>; 2],
    clock: u64,
    stale: Vec<PhaseId>,
}

impl Targets {
    pub(super) fn new(policy: &dyn Policy) -> Self {
        Self {
            keeps_minima: policy.keeps_minima(),
            fills_early: policy.fills_early(),
            minima: Minima::default(),
            phases: IdTable::default(),
            order: [BTreeSet::new(), BTreeSet::new()],
            clock: 0,
            stale: Vec::new(),
        }
    }

    /// Forgets the phases of a finished flow.
    pub(super) fn forget(&mut self, phases: impl Iterator<Item = PhaseId> + Clone) {
        self.minima.forget(phases.clone());
        self.phases.forget(phases);
    }

    /// The target number of slots of a phase.
    pub(super) fn of(&self, phase: PhaseId) -> f64 {
        self.phases[phase].target
    }

    pub(super) fn set(&mut self, phase: PhaseId, slots: f64) {
        assert!(slots >= 0.0 && slots.is_finite(), "a target of {slots} slots");
        self.phases[phase].target = slots;
        self.stale.push(phase);
    }

    /// Brings minima and ranks up to date with the state.
    pub(super) fn refresh(&mut self, ledger: &mut Ledger) {
        let mut stale = std::mem::take(&mut self.stale);
        ledger.state.drain_touched(&mut stale);
        if self.keeps_minima {
            for &slot_kind in ledger.instance.cluster().slot_kinds() {
                self.minima.refresh(&ledger.instance, &ledger.state, slot_kind, |phase| stale.push(phase));
            }
        }
        for phase in stale.drain(..) {
            self.touch(phase, ledger);
        }
        self.stale = stale;
    }

    /// The phase to serve next, and the number of tasks after which another phase is due.
    pub(super) fn first(
        &self,
        slot_kind: SlotKind,
        skip: &[PhaseId],
        ledger: &Ledger,
    ) -> Option<(PhaseId, u32)> {
        let mut order = self.order[slot_kind.index()].iter().filter(|(_, phase)| !skip.contains(phase));
        let &(rank, phase) = order.next()?;
        let running = ledger.state.phase(phase).running();
        Some((phase, self.due(rank, phase, running, order.next().map(|&(next, _)| next))))
    }

    /// The number of tasks of the first phase after which the next phase is due.
    fn due(&self, rank: Rank, phase: PhaseId, running: u32, next: Option<Rank>) -> u32 {
        let running = f64::from(running);
        let goal = match rank.need {
            Need::Minimum => f64::from(self.minima.of(phase)),
            Need::Target => self.phases[phase].target,
            Need::Spare => return 1,
        };
        let full = (goal - running).ceil().max(1.0);
        let due = match next {
            Some(next) if next.need == rank.need => {
                (f64::from_bits(next.ratio) * goal - running).floor() + 1.0
            }
            _ => full,
        };
        due.clamp(1.0, full) as u32
    }

    /// Divides slots as turns of [`Targets::first`] and [`Targets::served`] would, and returns the number of
    /// turns. Appends the part of each phase to `portions`, in the order of their first turns; the caller
    /// must start these before another query. Ends at the first phase whose tasks cannot simply start. O(log
    /// n) per turn.
    pub(super) fn share_out(
        &mut self,
        slot_kind: SlotKind,
        slots: u32,
        ledger: &Ledger,
        mut simply_start: impl FnMut(PhaseId) -> bool,
        portions: &mut Vec<Portion>,
    ) -> u64 {
        let order = std::mem::take(&mut self.order[slot_kind.index()]);
        let mut untouched = order.iter().copied().peekable();
        let mut again: BinaryHeap<Reverse<(Rank, PhaseId, usize)>> = BinaryHeap::new();
        let (mut left, mut turns) = (slots, 0);
        while left > 0 {
            let of_again = again.peek().map(|&Reverse((rank, phase, _))| (rank, phase));
            let is_again = match (of_again, untouched.peek()) {
                (Some(a), Some(b)) => a < *b,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            let (rank, at) = if is_again {
                let Some(Reverse((rank, _, at))) = again.pop() else { break };
                (rank, at)
            } else {
                let Some((rank, phase)) = untouched.next() else { break };
                if !simply_start(phase) {
                    break;
                }
                let running = ledger.state.phase(phase).running();
                let runnable = ledger.state.runnable(&ledger.instance, phase);
                portions.push(Portion { phase, tasks: 0, running, runnable });
                (rank, portions.len() - 1)
            };
            let next_again = again.peek().map(|Reverse((rank, ..))| *rank);
            let next = next_again.into_iter().chain(untouched.peek().map(|&(rank, _)| rank)).min();
            let Portion { phase, running, runnable, .. } = portions[at];
            let tasks = self.due(rank, phase, running, next).min(left).min(runnable);
            turns += 1;
            self.clock += 1;
            self.phases[phase].served = self.clock;
            left -= tasks;
            let portion = &mut portions[at];
            portion.tasks += tasks;
            portion.running += tasks;
            portion.runnable -= tasks;
            if portion.runnable > 0 {
                let rank = self.rank_at(phase, &self.phases[phase], portions[at].running);
                again.push(Reverse((rank, phase, at)));
            }
        }
        self.order[slot_kind.index()] = order;
        turns
    }

    /// `count` tasks of `phase` were started.
    pub(super) fn served(&mut self, phase: PhaseId, ledger: &mut Ledger, count: u32) {
        if count > 0 {
            self.clock += 1;
            self.phases[phase].served = self.clock;
        }
        let mut touched = std::mem::take(&mut self.stale);
        ledger.state.drain_touched(&mut touched);
        touched.retain(|&other| other != phase);
        touched.push(phase);
        // A reduce that waits may bar others from waiting too; their guaranteed slots then go to other
        // phases.
        if self.keeps_minima && ledger.state.is_early(&ledger.instance, phase) {
            let Ledger { instance, state, .. } = &*ledger;
            self.minima.refresh(instance, state, instance.slot_kind_of(phase), |phase| touched.push(phase));
        }
        for phase in touched.drain(..) {
            self.touch(phase, ledger);
        }
        self.stale = touched;
    }

    fn touch(&mut self, phase: PhaseId, ledger: &Ledger) {
        if !ledger.state.knows(phase) {
            return;
        }
        let entry = self.phases[phase];
        let rank = self.rank_of(phase, &entry, ledger);
        if rank == entry.rank {
            return;
        }
        let order = &mut self.order[ledger.instance.slot_kind_of(phase).index()];
        if let Some(old) = entry.rank {
            order.remove(&(old, phase));
        }
        if let Some(new) = rank {
            order.insert((new, phase));
        }
        self.phases[phase].rank = rank;
    }

    fn rank_of(&self, phase: PhaseId, entry: &Entry, ledger: &Ledger) -> Option<Rank> {
        if ledger.state.runnable(&ledger.instance, phase) == 0 {
            return None;
        }
        let rank = self.rank_at(phase, entry, ledger.state.phase(phase).running());
        let waits = || {
            rank.need == Need::Spare && !self.fills_early && ledger.state.is_early(&ledger.instance, phase)
        };
        (!waits()).then_some(rank)
    }

    /// The rank of a phase that has `running` running tasks.
    fn rank_at(&self, phase: PhaseId, entry: &Entry, running: u32) -> Rank {
        let running = f64::from(running);
        let (min, target) = (f64::from(self.minima.of(phase)), entry.target);
        let (need, ratio) = if running < min {
            (Need::Minimum, running / min)
        } else if running < target {
            (Need::Target, running / target)
        } else {
            // A phase without a target counts as if it wanted half a slot: it is served last, but not never.
            (Need::Spare, (running + 1.0) / target.max(0.5))
        };
        Rank { need, ratio: ratio.to_bits(), served: entry.served }
    }
}
