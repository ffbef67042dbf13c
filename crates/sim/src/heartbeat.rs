//! Machines that report by heartbeats.
//!
//! Machine `m` of `n` reports first at `m/n` of the interval and then once an interval, as Hadoop's task
//! trackers do. Reports without news are not simulated: after an event that could give work, each machine
//! with free slots offers them once, in its next report. Such a round of offers is not a list of events: the
//! next machine is searched for among those with free slots, and only while tasks wait for slots. So the cost
//! follows the tasks and not the machines.

use std::collections::BTreeSet;

use slackline_model::cluster::{Group, Slots};
use slackline_model::{Cluster, MachineId, SlotKind, Span, Time};

/// The slots of one kind.
#[derive(Debug, Default)]
struct KindOfSlots {
    /// By machine: its slots, and those of them that are free; none are free while it is down.
    slots: Vec<u32>,
    free: Vec<u32>,
    /// The machines with free slots, by the place of their reports in the interval.
    idle: BTreeSet<(u32, MachineId)>,
}

/// The heartbeat of every machine.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    interval: Span,
    /// The number of machines at the start: they share the interval.
    n_first: u32,
    kinds: [KindOfSlots; 2],
    is_down: Vec<bool>,
    /// Whether tasks wait for slots of each kind.
    wanted: [bool; 2],
    /// The round of offers: reports from the first time on and before the second one make an offer.
    round: (Time, Time),
    /// Machines that make an offer in their next report whether or not a round includes it. The caller queues
    /// it.
    queued: BTreeSet<MachineId>,
}

impl Heartbeats {
    pub(crate) fn new(cluster: &Cluster, interval: Span) -> Self {
        let n_first = cluster.n_machines();
        let mut heartbeats = Self {
            interval,
            n_first,
            kinds: <[KindOfSlots; 2]>::default(),
            is_down: vec![false; n_first as usize],
            wanted: [true; 2],
            round: (Time::ZERO, Time::ZERO),
            queued: BTreeSet::new(),
        };
        for machine in (0..n_first).map(MachineId) {
            let slots = |kind| cluster.machine_slots(kind, machine).map_or(0, |range| range.len);
            let [any, second] = match *cluster.slot_kinds() {
                [kind] => [slots(kind), 0],
                [map, reduce] => [slots(map), slots(reduce)],
                _ => [0, 0],
            };
            heartbeats.add(machine, [any, second]);
        }
        heartbeats
    }

    /// A machine with free slots of each kind.
    fn add(&mut self, machine: MachineId, slots: [u32; 2]) {
        for (kind, slots) in self.kinds.iter_mut().zip(slots) {
            kind.slots.push(slots);
            kind.free.push(0);
        }
        self.up(machine);
    }

    /// The place of a machine in the interval.
    fn place(&self, machine: MachineId) -> u32 {
        machine.0 % self.n_first
    }

    /// When machines of a place report first.
    fn first_report(&self, place: u32) -> u64 {
        (u128::from(self.interval.0) * u128::from(place) / u128::from(self.n_first)) as u64
    }

    /// The first report of `machine` not before `at`.
    pub(crate) fn next(&self, machine: MachineId, at: Time) -> Time {
        let first = self.first_report(self.place(machine));
        let beats = at.0.saturating_sub(first).div_ceil(self.interval.0);
        Time(first + beats * self.interval.0)
    }

    /// Machines join, with all slots free.
    pub(crate) fn join(&mut self, group: &Group) {
        let slots = match group.slots {
            Slots::Generic(n) => [n, 0],
            Slots::MapReduce { map, reduce } => [map, reduce],
        };
        for _ in 0..group.count {
            self.is_down.push(false);
            self.add(MachineId::from(self.is_down.len() - 1), slots);
        }
    }

    /// Whether tasks wait for slots of each kind. Offers of other slots would be in vain.
    pub(crate) fn want(&mut self, kinds: [bool; 2]) {
        self.wanted = kinds;
    }

    /// An event may give work: every machine with free slots makes an offer in its next report.
    pub(crate) fn begin_round(&mut self, now: Time) {
        self.round = (now, now + self.interval);
    }

    /// The first offer of the round, not before `now`, that is not in vain. O(log machines).
    pub(crate) fn next_offer(&self, now: Time) -> Option<Time> {
        let from = self.round.0.max(now);
        let wanted = self.kinds.iter().zip(self.wanted).filter(|&(_, is_wanted)| is_wanted);
        let next = wanted.filter_map(|(kind, _)| self.next_report(kind, from)).min()?;
        (next < self.round.1).then_some(next)
    }

    /// The first report not before `from` of a machine with free slots of a kind.
    fn next_report(&self, kind: &KindOfSlots, from: Time) -> Option<Time> {
        let (n, interval) = (u128::from(self.n_first), u128::from(self.interval.0));
        let before = from.0 - from.0 % self.interval.0;
        // The first place whose reports come so long after the start of an interval.
        let place = (u128::from(from.0 - before) * n).div_ceil(interval) as u32;
        let (begins, &(place, _)) = match kind.idle.range((place, MachineId(0))..).next() {
            Some(later) => (before, later),
            None => (before + self.interval.0, kind.idle.first()?),
        };
        Some(Time(begins + self.first_report(place)))
    }

    /// Appends the machines whose offers of the round are due at `now`: those that are not in vain, or all.
    /// They make no further offer in this round.
    pub(crate) fn take_due(&mut self, now: Time, all: bool, due: &mut Vec<MachineId>) {
        if now < self.round.0 || now >= self.round.1 {
            return;
        }
        let offset = now.0 % self.interval.0;
        let n = u128::from(self.n_first);
        let place = (u128::from(offset) * n).div_ceil(u128::from(self.interval.0)) as u32;
        for (kind, is_wanted) in self.kinds.iter().zip(self.wanted) {
            if is_wanted || all {
                let later = kind.idle.range((place, MachineId(0))..);
                due.extend(
                    later.take_while(|&&(place, _)| self.first_report(place) == offset).map(|&(_, m)| m),
                );
            }
        }
        due.sort_unstable();
        due.dedup();
        self.round.0 = Time(now.0 + 1);
    }

    /// The offer that the caller queued for a machine is due. Returns whether it has free slots.
    pub(crate) fn take_queued(&mut self, machine: MachineId) -> bool {
        self.queued.remove(&machine);
        self.has_free(machine)
    }

    fn has_free(&self, machine: MachineId) -> bool {
        self.kinds.iter().any(|kind| kind.free[machine.index()] > 0)
    }

    /// Whether a machine offered free slots that stayed idle, and will not offer them again before another
    /// event. All offers that were due at `now` have been made.
    pub(crate) fn is_idle(&self, machine: MachineId, now: Time) -> bool {
        let from = self.round.0.max(Time(now.0 + 1));
        self.has_free(machine) && !self.queued.contains(&machine) && self.next(machine, from) >= self.round.1
    }

    pub(crate) fn started(&mut self, machine: MachineId, slot_kind: SlotKind, slots: u32) {
        self.set_free(
            machine,
            slot_kind.index(),
            self.kinds[slot_kind.index()].free[machine.index()] - slots,
        );
    }

    /// Slots of a machine became free at its report.
    pub(crate) fn freed(&mut self, machine: MachineId, slot_kind: SlotKind, slots: u32) {
        let kind = &self.kinds[slot_kind.index()];
        let free = kind.free[machine.index()] + slots;
        assert!(free <= kind.slots[machine.index()], "more slots free than there are");
        self.set_free(machine, slot_kind.index(), free);
    }

    fn set_free(&mut self, machine: MachineId, kind: usize, free: u32) {
        let entry = (self.place(machine), machine);
        let KindOfSlots { free: of_machines, idle, .. } = &mut self.kinds[kind];
        let before = std::mem::replace(&mut of_machines[machine.index()], free);
        match (before, free) {
            (0, 1..) => drop(idle.insert(entry)),
            (1.., 0) => drop(idle.remove(&entry)),
            _ => {}
        }
    }

    /// A batch was stopped. Its slots become free unless its machine failed. Returns whether the machine has
    /// an offer to make that is not queued; the caller then queues one.
    pub(crate) fn killed(&mut self, machine: MachineId, slot_kind: SlotKind, slots: u32) -> bool {
        if self.is_down[machine.index()] {
            return false;
        }
        self.freed(machine, slot_kind, slots);
        self.queued.insert(machine)
    }

    pub(crate) fn down(&mut self, machine: MachineId) {
        self.is_down[machine.index()] = true;
        for kind in 0..self.kinds.len() {
            self.set_free(machine, kind, 0);
        }
    }

    pub(crate) fn up(&mut self, machine: MachineId) {
        self.is_down[machine.index()] = false;
        for kind in 0..self.kinds.len() {
            self.set_free(machine, kind, self.kinds[kind].slots[machine.index()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::MachineDraft;
    use slackline_model::{Draft, Instance, Seed, random};

    use super::*;

    /// Machines of two slots, a report every 8 microseconds.
    fn of(count: u32) -> Heartbeats {
        let slots = Slots::MapReduce { map: 1, reduce: 1 };
        let machine = MachineDraft { name: "m".into(), count, speed: 1.0, slots, rack: None };
        let instance = Instance::new(&Draft { machines: vec![machine], ..Draft::default() }).unwrap();
        Heartbeats::new(instance.cluster(), Span(8))
    }

    #[test]
    fn machines_report_one_after_the_other() {
        let heartbeats = of(4);
        let next = |machine, at| heartbeats.next(MachineId(machine), Time(at)).0;
        assert_eq!([next(0, 0), next(1, 0), next(2, 0), next(3, 0)], [0, 2, 4, 6]);
        assert_eq!([next(1, 1), next(1, 2), next(1, 3), next(1, 10), next(1, 11)], [2, 2, 10, 10, 18]);
    }

    /// The rules machine by machine: whether each has an offer to make in its next report.
    struct PlainOffers {
        has_offer: Vec<bool>,
    }

    impl PlainOffers {
        fn has_free(heartbeats: &Heartbeats, machine: usize) -> bool {
            heartbeats.has_free(MachineId::from(machine))
        }

        fn begin_round(&mut self, heartbeats: &Heartbeats) {
            for (machine, has_offer) in self.has_offer.iter_mut().enumerate() {
                *has_offer |= Self::has_free(heartbeats, machine);
            }
        }

        /// The machines that report at `now` with an offer.
        fn take_due(&mut self, heartbeats: &Heartbeats, now: Time) -> Vec<MachineId> {
            let mut due = Vec::new();
            for (machine, has_offer) in self.has_offer.iter_mut().enumerate() {
                let id = MachineId::from(machine);
                if *has_offer && heartbeats.next(id, now) == now {
                    *has_offer = false;
                    due.extend(Self::has_free(heartbeats, machine).then_some(id));
                }
            }
            due
        }
    }

    /// Random tasks on 4, 5 or 19 machines, of which several report at one time.
    #[test]
    fn a_round_has_the_offers_that_each_machine_makes_by_itself() {
        for (case, machines) in [4, 5, 19].into_iter().cycle().take(60).enumerate() {
            let mut rng = random::rng(Seed(7), "heartbeats", case as u64);
            let mut draw = |below: u64| random::integer(&mut rng, 0, below - 1);
            let mut heartbeats = of(machines);
            let mut plain = PlainOffers { has_offer: vec![false; machines as usize] };
            for now in (0..400).map(Time) {
                let mut offers = 0;
                if draw(6) == 0 {
                    // A task ends where one runs, which is work for all.
                    let (machine, kind) = (draw(u64::from(machines)) as usize, draw(2) as usize);
                    if heartbeats.kinds[kind].free[machine] == 0 && !heartbeats.is_down[machine] {
                        heartbeats.freed(
                            MachineId::from(machine),
                            [SlotKind::Map, SlotKind::Reduce][kind],
                            1,
                        );
                    }
                    heartbeats.begin_round(now);
                    plain.begin_round(&heartbeats);
                }
                if draw(60) == 0 {
                    let machine = MachineId(draw(u64::from(machines)) as u32);
                    if heartbeats.is_down[machine.index()] {
                        heartbeats.up(machine);
                    } else {
                        heartbeats.down(machine);
                    }
                    heartbeats.begin_round(now);
                    plain.begin_round(&heartbeats);
                }
                let is_next = heartbeats.next_offer(now) == Some(now);
                let mut due = Vec::new();
                heartbeats.take_due(now, false, &mut due);
                assert_eq!(due, plain.take_due(&heartbeats, now), "case {case} at {now}");
                assert_eq!(is_next, !due.is_empty(), "case {case} at {now}");
                for machine in due {
                    offers += 1;
                    for (kind, slot_kind) in [SlotKind::Map, SlotKind::Reduce].into_iter().enumerate() {
                        if heartbeats.kinds[kind].free[machine.index()] > 0 && draw(2) == 0 {
                            heartbeats.started(machine, slot_kind, 1);
                        }
                    }
                }
                for machine in (0..machines).map(MachineId) {
                    let is_idle = heartbeats.has_free(machine) && !plain.has_offer[machine.index()];
                    assert_eq!(
                        heartbeats.is_idle(machine, now),
                        is_idle,
                        "case {case}, {offers} offers at {now}"
                    );
                }
            }
        }
    }

    #[test]
    fn unwanted_slots_are_offered_only_at_instants_with_news() {
        let mut heartbeats = of(4);
        heartbeats.begin_round(Time(0));
        heartbeats.started(MachineId(0), SlotKind::Map, 1);
        heartbeats.want([true, false]);
        assert_eq!(heartbeats.next_offer(Time(0)), Some(Time(2)), "machine 0 has only a reduce slot");
        let mut due = Vec::new();
        heartbeats.take_due(Time(0), true, &mut due);
        assert_eq!(due, [MachineId(0)]);
        heartbeats.want([false; 2]);
        assert_eq!(heartbeats.next_offer(Time(0)), None);
    }

    #[test]
    fn slots_of_a_stopped_batch_need_an_offer_unless_one_is_queued() {
        let mut heartbeats = of(4);
        let machine = MachineId(0);
        heartbeats.started(machine, SlotKind::Map, 1);
        heartbeats.started(machine, SlotKind::Reduce, 1);
        assert!(heartbeats.killed(machine, SlotKind::Map, 1));
        assert!(!heartbeats.killed(machine, SlotKind::Reduce, 1), "one is queued now");
        assert!(!heartbeats.is_idle(machine, Time(0)));
        assert!(heartbeats.take_queued(machine));
        assert!(heartbeats.is_idle(machine, Time(0)));
        heartbeats.down(machine);
        assert!(!heartbeats.killed(machine, SlotKind::Map, 1), "its slots are gone");
    }
}
