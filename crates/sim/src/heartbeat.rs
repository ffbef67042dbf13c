//! Machines that report by heartbeats.
//!
//! Machine `m` of `n` reports first at `m/n` of the interval and then once an interval, as Hadoop's task
//! trackers do. Reports without news are not simulated: a machine whose offer was not used up stays quiet
//! until an event could give it work.

use slackline_model::cluster::{Group, Slots};
use slackline_model::{Cluster, MachineId, Span, Time};

/// The subject of the next report of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pulse {
    /// Nothing: the machine is busy or down.
    Silent,
    /// Free slots that no phase took; the machine is in the list of quiet machines.
    Quiet,
    /// An offer that is in the queue of events.
    Armed,
}

/// The heartbeat of every machine.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    interval: Span,
    /// The number of machines at the start: they share the interval.
    n_first: u32,
    slots: Vec<u32>,
    /// Free slots of both slot kinds together; 0 while down.
    free: Vec<u32>,
    pulse: Vec<Pulse>,
    quiet: Vec<MachineId>,
    is_down: Vec<bool>,
}

impl Heartbeats {
    pub(crate) fn new(cluster: &Cluster, interval: Span) -> Self {
        let machines = (0..cluster.n_machines()).map(MachineId);
        let count =
            |m| cluster.slot_kinds().iter().filter_map(|&l| cluster.machine_slots(l, m)).map(|r| r.len).sum();
        let slots: Vec<u32> = machines.clone().map(count).collect();
        let pulse = vec![Pulse::Quiet; slots.len()];
        let is_down = vec![false; slots.len()];
        Self {
            interval,
            n_first: cluster.n_machines(),
            free: slots.clone(),
            slots,
            pulse,
            quiet: machines.collect(),
            is_down,
        }
    }

    /// The first report of `machine` not before `at`.
    pub(crate) fn next(&self, machine: MachineId, at: Time) -> Time {
        let interval = u128::from(self.interval.0);
        let phase = (interval * u128::from(machine.0 % self.n_first) / u128::from(self.n_first)) as u64;
        let beats = at.0.saturating_sub(phase).div_ceil(self.interval.0);
        Time(phase + beats * self.interval.0)
    }

    /// Machines join, with all slots free.
    pub(crate) fn join(&mut self, group: &Group) {
        let slots = match group.slots {
            Slots::Universal(n) => n,
            Slots::Typed { map, reduce } => map + reduce,
        };
        for _ in 0..group.count {
            self.quiet.push(MachineId::from(self.slots.len()));
            self.slots.push(slots);
            self.free.push(slots);
            self.pulse.push(Pulse::Quiet);
            self.is_down.push(false);
        }
    }

    /// An event may give work: the quiet machines will make an offer in their next report.
    pub(crate) fn arm(&mut self) -> Vec<MachineId> {
        let mut armed = std::mem::take(&mut self.quiet);
        armed.retain(|machine| {
            // A machine that was armed separately is still in the list, but already has an offer.
            if self.pulse[machine.index()] != Pulse::Quiet {
                return false;
            }
            let useful = self.free[machine.index()] > 0;
            self.pulse[machine.index()] = if useful { Pulse::Armed } else { Pulse::Silent };
            useful
        });
        armed
    }

    /// A pending offer is due. Returns whether the machine still has free slots.
    pub(crate) fn offer(&mut self, machine: MachineId) -> bool {
        self.pulse[machine.index()] = Pulse::Silent;
        self.listen(machine);
        self.free[machine.index()] > 0
    }

    /// Whether a machine offered free slots that stayed idle, and will not offer them again before another
    /// event.
    pub(crate) fn is_idle(&self, machine: MachineId) -> bool {
        self.pulse[machine.index()] == Pulse::Quiet && self.free[machine.index()] > 0
    }

    pub(crate) fn started(&mut self, machine: MachineId, slots: u32) {
        self.free[machine.index()] -= slots;
    }

    /// Slots of a machine became free at its report.
    pub(crate) fn freed(&mut self, machine: MachineId, slots: u32) {
        self.free[machine.index()] += slots;
        assert!(self.free[machine.index()] <= self.slots[machine.index()], "more slots free than there are");
        self.listen(machine);
    }

    /// A batch was stopped. Its slots become free unless its machine failed. Returns whether the machine has
    /// an offer to make and none pending; the caller then queues one.
    pub(crate) fn killed(&mut self, machine: MachineId, slots: u32) -> bool {
        if self.is_down[machine.index()] {
            return false;
        }
        self.freed(machine, slots);
        let pulse = &mut self.pulse[machine.index()];
        std::mem::replace(pulse, Pulse::Armed) != Pulse::Armed
    }

    pub(crate) fn down(&mut self, machine: MachineId) {
        self.free[machine.index()] = 0;
        self.is_down[machine.index()] = true;
    }

    pub(crate) fn up(&mut self, machine: MachineId) {
        self.free[machine.index()] = self.slots[machine.index()];
        self.is_down[machine.index()] = false;
        self.listen(machine);
    }

    fn listen(&mut self, machine: MachineId) {
        if self.pulse[machine.index()] == Pulse::Silent {
            self.pulse[machine.index()] = Pulse::Quiet;
            self.quiet.push(machine);
        }
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::MachineDraft;
    use slackline_model::{Draft, Instance};

    use super::*;

    const M0: MachineId = MachineId(0);
    const M1: MachineId = MachineId(1);
    const ALL: [MachineId; 4] = [M0, M1, MachineId(2), MachineId(3)];

    /// Four machines of two slots, a report every 8 microseconds.
    fn four() -> Heartbeats {
        let slots = Slots::Typed { map: 1, reduce: 1 };
        let machine = MachineDraft { name: "m".into(), count: 4, speed: 1.0, slots, rack: None };
        let instance = Instance::new(&Draft { machines: vec![machine], ..Draft::default() }).unwrap();
        Heartbeats::new(instance.cluster(), Span(8))
    }

    #[test]
    fn machines_report_one_after_the_other() {
        let heartbeats = four();
        let next = |machine, at| heartbeats.next(MachineId(machine), Time(at)).0;
        assert_eq!([next(0, 0), next(1, 0), next(2, 0), next(3, 0)], [0, 2, 4, 6]);
        assert_eq!([next(1, 1), next(1, 2), next(1, 3), next(1, 10), next(1, 11)], [2, 2, 10, 10, 18]);
    }

    #[test]
    fn a_machine_offers_once_until_its_offer_is_due() {
        let mut heartbeats = four();
        assert_eq!(heartbeats.arm(), ALL);
        assert_eq!(heartbeats.arm(), []);
        assert!(heartbeats.offer(M1));
        assert_eq!(heartbeats.arm(), [M1]);
    }

    #[test]
    fn a_busy_machine_has_nothing_to_offer_until_a_slot_comes_free() {
        let mut heartbeats = four();
        heartbeats.started(M0, 2);
        assert_eq!(heartbeats.arm(), ALL[1..]);
        heartbeats.freed(M0, 1);
        assert_eq!(heartbeats.arm(), [M0]);
        heartbeats.started(M0, 1);
        assert!(!heartbeats.offer(M0), "what was to be offered is taken");
    }

    #[test]
    fn slots_of_a_stopped_batch_need_an_offer_unless_there_is_one() {
        let mut heartbeats = four();
        heartbeats.started(M0, 2);
        heartbeats.arm();
        assert!(heartbeats.killed(M0, 1));
        assert!(!heartbeats.killed(M0, 1), "one is queued now");
        assert_eq!(heartbeats.arm(), [], "by the caller");
        assert!(heartbeats.offer(M0));
    }

    #[test]
    fn a_dead_machine_offers_nothing_and_comes_back_empty() {
        let mut heartbeats = four();
        heartbeats.started(M0, 2);
        heartbeats.down(M0);
        assert!(!heartbeats.killed(M0, 2), "its slots are gone");
        assert_eq!(heartbeats.arm(), ALL[1..]);
        heartbeats.up(M0);
        assert_eq!(heartbeats.arm(), [M0]);
        heartbeats.started(M0, 2);
        assert!(!heartbeats.offer(M0), "both slots are there again, and both taken");
    }

    #[test]
    fn a_machine_that_dies_with_an_offer_pending_does_not_make_it() {
        let mut heartbeats = four();
        heartbeats.arm();
        heartbeats.down(M1);
        assert!(!heartbeats.offer(M1));
    }
}
