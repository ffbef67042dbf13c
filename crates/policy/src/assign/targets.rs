//! Targets: the phase furthest below its target is served first.
//!
//! Phases below their effective minimum come before all others (if the policy keeps minima), then those below
//! their target, by running / minimum or running / target. When all are satisfied and slots are left, they
//! continue, so that no slot idles while a phase could run. Reduces that would only wait there are left out
//! if the policy requests it. Ties go to the phase that was served longest ago, so that phases with less than
//! one slot each take turns; then to the lower id.

use slackline_model::{PhaseId, SlotKind};

use crate::id_heap::IdHeap;
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

/// The target of a phase.
#[derive(Clone, Copy, Debug)]
enum Target {
    Slots(f64),
    /// The level of its slot kind.
    Level(SlotKind),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    target: Target,
    /// When the phase was served last.
    served: u64,
    /// The index of its portion while slots are shared out.
    portion: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Self { target: Target::Slots(0.0), served: 0, portion: 0 }
    }
}

/// The phases of a slot kind that could use a slot, in the order in which they are served.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The target of the phases that share it.
    level: f64,
    /// Phases below their minimum, or with a target of their own.
    single: IdHeap<PhaseId, Rank>,
    /// The others, by running tasks and when they were served last: the order of their ranks at any level.
    level_with: IdHeap<PhaseId, (u32, u64)>,
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
    queues: [Queue; 2],
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
            queues: [Queue::default(), Queue::default()],
            clock: 0,
            stale: Vec::new(),
        }
    }

    /// Forgets the phases of a finished flow.
    pub(super) fn forget(&mut self, phases: impl Iterator<Item = PhaseId> + Clone) {
        self.minima.forget(phases.clone());
        for queue in &mut self.queues {
            queue.single.forget(phases.clone());
            queue.level_with.forget(phases.clone());
        }
        self.phases.forget(phases);
    }

    /// The target number of slots of a phase.
    pub(super) fn of(&self, phase: PhaseId) -> f64 {
        match self.phases[phase].target {
            Target::Slots(slots) => slots,
            Target::Level(slot_kind) => self.queues[slot_kind.index()].level,
        }
    }

    pub(super) fn set(&mut self, phase: PhaseId, slots: f64) {
        assert!(slots >= 0.0 && slots.is_finite(), "a target of {slots} slots");
        self.phases[phase].target = Target::Slots(slots);
        self.stale.push(phase);
    }

    /// The target of the phase is the level of its slot kind.
    pub(super) fn share(&mut self, phase: PhaseId, slot_kind: SlotKind) {
        assert!(self.fills_early, "a level for phases whose order depends on it");
        self.phases[phase].target = Target::Level(slot_kind);
        self.stale.push(phase);
    }

    pub(super) fn set_level(&mut self, slot_kind: SlotKind, slots: f64) {
        assert!(slots >= 0.0 && slots.is_finite(), "a level of {slots} slots");
        self.queues[slot_kind.index()].level = slots;
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
        let [first, next] = self.first_two(slot_kind, skip);
        let (rank, phase) = first?;
        let running = ledger.state.phase(phase).running();
        Some((phase, self.due(rank, phase, running, next.map(|(next, _)| next))))
    }

    /// The two phases that are served next.
    fn first_two(&self, slot_kind: SlotKind, skip: &[PhaseId]) -> [Option<(Rank, PhaseId)>; 2] {
        let queue = &self.queues[slot_kind.index()];
        let ranked = |((running, served), phase)| (rank_for(queue.level, running, served), phase);
        let [level_first, level_next] = queue.level_with.first_two(skip).map(|entry| entry.map(ranked));
        let [first, next] = queue.single.first_two(skip);
        match (first, level_first) {
            (_, None) => [first, next],
            (None, _) => [level_first, level_next],
            (Some(a), Some(b)) if a < b => [first, next.map_or(level_first, |next| Some(next.min(b)))],
            (Some(a), Some(_)) => [level_first, level_next.map_or(first, |next| Some(next.min(a)))],
        }
    }

    /// The number of tasks of the first phase after which the next phase is due.
    fn due(&self, rank: Rank, phase: PhaseId, running: u32, next: Option<Rank>) -> u32 {
        let running = f64::from(running);
        let goal = match rank.need {
            Need::Minimum => f64::from(self.minima.of(phase)),
            Need::Target => self.of(phase),
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
        let (mut left, mut turns) = (slots, 0);
        while left > 0
            && let [Some((rank, phase)), next] = self.first_two(slot_kind, &[])
        {
            let mut at = self.phases[phase].portion as usize;
            if portions.get(at).is_none_or(|portion| portion.phase != phase) {
                if !simply_start(phase) {
                    break;
                }
                let running = ledger.state.phase(phase).running();
                let runnable = ledger.state.runnable(&ledger.instance, phase);
                at = portions.len();
                portions.push(Portion { phase, tasks: 0, running, runnable });
            }
            let portion = &mut portions[at];
            let due = self.due(rank, phase, portion.running, next.map(|(rank, _)| rank));
            let tasks = due.min(left).min(portion.runnable);
            turns += 1;
            self.clock += 1;
            left -= tasks;
            portion.tasks += tasks;
            portion.running += tasks;
            portion.runnable -= tasks;
            let entry = &mut self.phases[phase];
            (entry.served, entry.portion) = (self.clock, at as u32);
            let running = (portion.runnable > 0).then_some(portion.running);
            self.enter(phase, slot_kind, running);
        }
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
        let is_runnable = ledger.state.runnable(&ledger.instance, phase) > 0;
        let running = ledger.state.phase(phase).running();
        let waits = || {
            !self.fills_early
                && self.rank_of(phase, running).need == Need::Spare
                && ledger.state.is_early(&ledger.instance, phase)
        };
        let running = (is_runnable && !waits()).then_some(running);
        self.enter(phase, ledger.instance.slot_kind_of(phase), running);
    }

    /// Gives a phase with this number of running tasks its place in the order; without one it has none.
    fn enter(&mut self, phase: PhaseId, slot_kind: SlotKind, running: Option<u32>) {
        let Entry { target, served, .. } = self.phases[phase];
        let shares = |&running: &u32| matches!(target, Target::Level(_)) && running >= self.minima.of(phase);
        let key = running.filter(shares).map(|running| (running, served));
        let rank = running.filter(|_| key.is_none()).map(|running| self.rank_of(phase, running));
        let queue = &mut self.queues[slot_kind.index()];
        queue.single.set(phase, rank);
        queue.level_with.set(phase, key);
    }

    /// The rank of a phase that has `running` running tasks.
    fn rank_of(&self, phase: PhaseId, running: u32) -> Rank {
        let (min, served) = (self.minima.of(phase), self.phases[phase].served);
        if running < min {
            let ratio = (f64::from(running) / f64::from(min)).to_bits();
            return Rank { need: Need::Minimum, ratio, served };
        }
        rank_for(self.of(phase), running, served)
    }
}

/// The rank of a phase with this target that is not below its minimum.
fn rank_for(target: f64, running: u32, served: u64) -> Rank {
    let running = f64::from(running);
    let (need, ratio) = if running < target {
        (Need::Target, running / target)
    } else {
        // A phase without a target counts as if it wanted half a slot: it is served last, but not never.
        (Need::Spare, (running + 1.0) / target.max(0.5))
    };
    Rank { need, ratio: ratio.to_bits(), served }
}
