//! The ledger of containers: what every slot of the cluster holds, as the driver knows it.
//!
//! The driver starts tasks; YARN grants containers. A row of the driver is bound to the next container that
//! appears for its phase, on any host. A container without a row is reported as a running task. A container
//! that is not the driver's (an ApplicationMaster, another user's container, a rerun map) takes its slot
//! away: the machine of the slot is down while it runs. For this every slot is a machine. If no slot is free
//! for a container, a row without a container gives up its slot, and its task is pending again.

mod availability;
mod queries;
mod results;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::{MachineId, PhaseId, PhaseKind, Time};
use slackline_policy::engine::{
    Batch, Capabilities, Faults, Lengths, Offers, Order, Report, RowId, Running, Start,
};

use crate::rest::id::ContainerId;

/// The use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Free,
    /// A row, bound to a container or waiting for one.
    Row(RowId),
    /// A task that was reported as running, before the driver answers.
    Offered(u64),
    /// A container that is not the driver's.
    Taken(ContainerId),
    /// A container of another application, known only by their total.
    Others,
    /// Its host is down.
    Away,
}

#[derive(Clone, Debug)]
struct Host {
    name: String,
    first: u32,
    count: u32,
}

/// An open row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LedgerRow {
    phase: PhaseId,
    task: u32,
    slot: u32,
    container: Option<ContainerId>,
}

/// A phase as the driver knows it.
#[derive(Clone, Debug)]
struct LedgerPhase {
    job: u32,
    kind: PhaseKind,
    tasks: u32,
    /// Tasks that the driver has not started.
    pending: BTreeSet<u32>,
    /// Finished tasks, for the driver.
    done: u32,
    /// Rows that wait for a container.
    unbound: BTreeSet<RowId>,
    /// Open rows.
    open: u32,
    /// Live containers.
    live: u32,
    /// Finished tasks that the driver does not know yet.
    unreported: u32,
    /// Finished tasks that were offered and that the driver has not answered.
    announced: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LiveContainer {
    host: String,
    since: Time,
    /// The phase that it works for, if that is the driver's.
    phase: Option<PhaseId>,
    /// The job whose application holds it, if it is one of the engine.
    job: Option<u32>,
    /// `None` for an ApplicationMaster.
    kind: Option<PhaseKind>,
    /// The slot on which it is counted; `None` if all were taken.
    slot: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerOutcome {
    /// Its task finished.
    Finished,
    /// Its task has to run again.
    Failed,
    /// Its task failed for good, and with it its flow.
    FailedForGood,
}

/// A task that was reported as running, before the driver answers.
#[derive(Clone, Copy, Debug)]
struct Offer {
    phase: PhaseId,
    task: u32,
    slot: u32,
    why: OfferReason,
}

/// Why a task is reported as running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfferReason {
    /// It has a container.
    Running(ContainerId),
    /// It finished before the driver knew it.
    FinishedEarlier,
    /// Its flow has failed: it will never finish.
    Failed,
}

/// A failed flow that the driver does not know of.
#[derive(Clone, Debug)]
struct FailedFlow {
    jobs: Vec<u32>,
    /// Phases without a task that was reported as running.
    phases: BTreeSet<PhaseId>,
}

#[derive(Debug, Default)]
pub(crate) struct ContainerLedger {
    hosts: Vec<Host>,
    slots: Vec<Slot>,
    rows: BTreeMap<RowId, LedgerRow>,
    phases: BTreeMap<PhaseId, LedgerPhase>,
    by_job: BTreeMap<(u32, PhaseKind), PhaseId>,
    live: BTreeMap<ContainerId, LiveContainer>,
    offers: BTreeMap<u64, Offer>,
    next_offer: u64,
    /// Containers that are counted on no slot.
    uncounted: BTreeSet<ContainerId>,
    /// Phases with finished tasks that the driver does not know yet.
    unreported: BTreeSet<PhaseId>,
    /// Failed flows that the driver does not know of.
    failed: Vec<FailedFlow>,
    free: BTreeSet<u32>,
    ends: Vec<Report>,
    machines: Vec<Report>,
    running: Vec<Report>,
    now: Time,
}

impl ContainerLedger {
    /// What an engine on this ledger can do.
    pub(crate) const CAPABILITIES: Capabilities = Capabilities {
        batch: Batch::Task,
        // After a failure of a machine the AM reruns its maps.
        faults: Faults::Tasks,
        offers: Offers::Immediate,
        lengths: Lengths::Guessed,
        // Running AMs hold slots, which the ledger reports as down.
        ams: None,
    };

    /// A ledger of free slots on these hosts, in the order of the machines.
    pub(crate) fn new(hosts: impl IntoIterator<Item = (String, u32)>) -> Self {
        let mut ledger = Self::default();
        for (name, count) in hosts {
            ledger.add_host(name, count);
        }
        ledger
    }

    /// Adds a host with free slots.
    pub(crate) fn add_host(&mut self, name: String, count: u32) {
        let first = self.slots.len() as u32;
        self.slots.extend((0..count).map(|_| Slot::Free));
        self.free.extend(first..first + count);
        self.hosts.push(Host { name, first, count });
    }

    /// Sets the time. Containers without a slot get one if one is free.
    pub(crate) fn advance(&mut self, now: Time) {
        self.now = now;
        for container in std::mem::take(&mut self.uncounted) {
            self.place_container(container);
        }
    }

    /// Gives the waiting reports, in the order in which the driver expects them.
    pub(crate) fn report(&mut self, to: &mut Vec<Report>) {
        self.report_finished_earlier();
        self.report_failed_flows();
        to.append(&mut self.ends);
        to.append(&mut self.machines);
        to.append(&mut self.running);
    }

    /// Adds a phase of an arrived flow, by its id in the driver.
    pub(crate) fn add_phase(&mut self, id: PhaseId, job: u32, kind: PhaseKind, tasks: u32) {
        self.by_job.insert((job, kind), id);
        let phase = LedgerPhase {
            job,
            kind,
            tasks,
            pending: (0..tasks).collect(),
            done: 0,
            unbound: BTreeSet::new(),
            open: 0,
            live: 0,
            unreported: 0,
            announced: 0,
        };
        self.phases.insert(id, phase);
        let of_phase = |live: &LiveContainer| live.job == Some(job) && live.kind == Some(kind);
        let early: Vec<ContainerId> =
            self.live.iter().filter(|(_, live)| of_phase(live)).map(|(&container, _)| container).collect();
        for container in early {
            self.adopt(container, id);
        }
    }

    /// Assigns a container to a phase that arrived after it.
    fn adopt(&mut self, container: ContainerId, phase: PhaseId) {
        let Some(live) = self.live.get_mut(&container) else { return };
        live.phase = Some(phase);
        let slot = live.slot.take();
        if let Some(known) = self.phases.get_mut(&phase) {
            known.live += 1;
        }
        if let Some(slot) = slot {
            self.release_slot(slot);
        }
        self.uncounted.insert(container);
    }

    /// Removes the phases of an ended job.
    pub(crate) fn forget_job(&mut self, job: u32) {
        for kind in [PhaseKind::Map, PhaseKind::Reduce] {
            let Some(phase) = self.by_job.remove(&(job, kind)) else { continue };
            self.phases.remove(&phase);
            self.unreported.remove(&phase);
        }
    }

    /// Closes the rows of a flow that the driver withdraws, and counts its containers as taken.
    pub(crate) fn withdraw(&mut self, jobs: &[u32]) {
        self.failed.retain(|failed| !failed.jobs.iter().any(|job| jobs.contains(job)));
        let phases: BTreeSet<PhaseId> = jobs.iter().flat_map(|&job| self.phases_of(job)).collect();
        let rows = self.rows.iter().filter(|(_, row)| phases.contains(&row.phase));
        for id in rows.map(|(&id, _)| id).collect::<Vec<RowId>>() {
            if let Some(container) = self.remove_row(id).and_then(|row| row.container) {
                self.disown(container);
            }
        }
        let others = self.live.iter().filter(|(_, live)| live.phase.is_some_and(|it| phases.contains(&it)));
        for container in others.map(|(&container, _)| container).collect::<Vec<_>>() {
            self.disown(container);
        }
        for &job in jobs {
            self.forget_job(job);
        }
    }

    fn host_of(&self, slot: u32) -> Option<&Host> {
        let at = self.hosts.partition_point(|host| host.first <= slot);
        self.hosts.get(at.checked_sub(1)?)
    }

    fn set(&mut self, slot: u32, holds: Slot) {
        self.slots[slot as usize] = holds;
        if holds == Slot::Free {
            self.free.insert(slot);
        } else {
            self.free.remove(&slot);
        }
    }

    /// The driver starts a task, or accepts a task that was reported as running.
    pub(crate) fn start(&mut self, start: &Start<'_>) {
        self.add_row(start.row, start.phase, start.first, start.places[0].first, start.reported_as);
    }

    /// The driver changes its mind about a task.
    pub(crate) fn order(&mut self, order: Order) {
        match order {
            Order::Kill(row) => self.kill(row),
            Order::Refuse(name) => self.refuse(name),
            // In a MapReduce job reduces wait for maps by themselves, and the AM reruns lost maps.
            Order::Go { .. } | Order::Hold(_) => {}
        }
    }

    fn add_row(&mut self, id: RowId, phase: PhaseId, task: u32, slot: u32, offer: Option<u64>) {
        let offer = offer.and_then(|name| self.offers.remove(&name));
        let container = match offer.map(|offer| offer.why) {
            Some(OfferReason::Running(container)) => Some(container),
            _ => None,
        };
        if offer.is_none() && self.slots[slot as usize] != Slot::Free {
            // The next report has its machine down.
            return;
        }
        if let Some(known) = self.phases.get_mut(&phase) {
            known.pending.remove(&task);
            known.open += 1;
            if container.is_none() {
                known.unbound.insert(id);
            }
        }
        self.set(slot, Slot::Row(id));
        self.rows.insert(id, LedgerRow { phase, task, slot, container });
        if let Some(failed) = self.failed_with(phase) {
            return self.end_flow(failed, id);
        }
        match offer.map(|offer| offer.why) {
            Some(OfferReason::Running(container)) if !self.live.contains_key(&container) => {
                self.end_row(id, ContainerOutcome::Failed);
            }
            Some(OfferReason::FinishedEarlier) => {
                if let Some(known) = self.phases.get_mut(&phase) {
                    known.announced -= 1;
                }
                self.end_row(id, ContainerOutcome::Finished);
            }
            _ => {}
        }
    }

    /// The driver refuses a task that was reported as running.
    fn refuse(&mut self, name: u64) {
        let Some(Offer { phase, task, slot, why }) = self.offers.remove(&name) else { return };
        self.set(slot, Slot::Free);
        if let Some(known) = self.phases.get_mut(&phase) {
            known.pending.insert(task);
            known.announced -= u32::from(why == OfferReason::FinishedEarlier);
        }
        if why == OfferReason::FinishedEarlier {
            self.add_finished(phase, 1);
        }
        if let OfferReason::Running(container) = why {
            self.disown(container);
        }
    }

    /// The driver gives up a row: its flow has failed, or a waiting reduce makes room for maps. The container
    /// is not the driver's any more.
    fn kill(&mut self, id: RowId) {
        let Some(row) = self.remove_row(id) else { return };
        if let Some(known) = self.phases.get_mut(&row.phase) {
            known.pending.insert(row.task);
        }
        if let Some(container) = row.container {
            self.disown(container);
        }
    }

    /// Removes a row, and frees its slot.
    fn remove_row(&mut self, id: RowId) -> Option<LedgerRow> {
        let row = self.rows.remove(&id)?;
        self.set(row.slot, Slot::Free);
        if let Some(known) = self.phases.get_mut(&row.phase) {
            known.open -= 1;
            known.unbound.remove(&id);
        }
        Some(row)
    }

    /// A container works for no row any more.
    fn disown(&mut self, container: ContainerId) {
        let Some(live) = self.live.get_mut(&container) else { return };
        live.slot = None;
        let phase = live.phase.take();
        if let Some(known) = phase.and_then(|phase| self.phases.get_mut(&phase)) {
            known.live -= 1;
        }
        self.uncounted.insert(container);
    }

    /// A container appeared on a host. `work` has its job and the phase it works for (`None`: an
    /// ApplicationMaster).
    pub(crate) fn add_container(
        &mut self,
        container: ContainerId,
        host: &str,
        since: Time,
        work: Option<(u32, Option<PhaseKind>)>,
    ) {
        if self.live.contains_key(&container) {
            return;
        }
        let (job, kind) = (work.map(|(job, _)| job), work.and_then(|(_, kind)| kind));
        let phase = work.and_then(|(job, kind)| self.phase_of(job, kind?));
        if let Some(known) = phase.and_then(|phase| self.phases.get_mut(&phase)) {
            known.live += 1;
        }
        self.live
            .insert(container, LiveContainer { host: host.to_owned(), since, phase, job, kind, slot: None });
        self.place_container(container);
    }

    /// Finds a slot for a container that has none.
    fn place_container(&mut self, container: ContainerId) {
        let Some(live) = self.live.get(&container).cloned() else { return };
        if let Some(phase) = live.phase {
            if self.bind(container, phase, &live.host) {
                return;
            }
            if let Some(task) = self.offerable_task(phase)
                && let Some(slot) = self.free_slot(&live.host, live.job)
            {
                self.offer(Offer { phase, task, slot, why: OfferReason::Running(container) }, live.since);
                return;
            }
        }
        let Some(slot) = self.free_slot(&live.host, live.job) else {
            self.uncounted.insert(container);
            return;
        };
        self.set(slot, Slot::Taken(container));
        self.assign_slot(container, slot);
        self.machines.push(Report::Down(MachineId(slot)));
    }

    fn assign_slot(&mut self, container: ContainerId, slot: u32) {
        if let Some(live) = self.live.get_mut(&container) {
            live.slot = Some(slot);
        }
    }

    /// Binds a container to a waiting row of its phase, on the same host if possible.
    fn bind(&mut self, container: ContainerId, phase: PhaseId, host: &str) -> bool {
        let Some(known) = self.phases.get(&phase) else { return false };
        let is_there = |id: &&RowId| {
            let slot = self.rows.get(id).map(|row| row.slot);
            slot.and_then(|slot| self.host_of(slot)).is_some_and(|known| known.name == host)
        };
        let best = known.unbound.iter().find(is_there).or(known.unbound.first()).copied();
        let Some(id) = best else { return false };
        let Some(row) = self.rows.get_mut(&id) else { return false };
        row.container = Some(container);
        let slot = row.slot;
        self.assign_slot(container, slot);
        if let Some(known) = self.phases.get_mut(&phase) {
            known.unbound.remove(&id);
        }
        true
    }

    /// Whether containers of a phase can run tasks: reduces cannot before all maps have finished.
    pub(crate) fn may_work(&self, phase: PhaseId) -> bool {
        let known = self.phases.get(&phase);
        let reduce = known.filter(|known| known.kind == PhaseKind::Reduce);
        let maps = reduce.and_then(|known| self.phase_of(known.job, PhaseKind::Map));
        maps.is_none_or(|maps| self.is_done(maps))
    }

    /// A pending task of a phase that may be reported as running.
    fn offerable_task(&self, phase: PhaseId) -> Option<u32> {
        self.phases.get(&phase)?.pending.first().copied().filter(|_| self.may_work(phase))
    }

    fn offer(&mut self, offer: Offer, since: Time) {
        let Offer { phase, task, slot, why } = offer;
        let name = self.next_offer;
        self.next_offer += 1;
        self.set(slot, Slot::Offered(name));
        if let Some(known) = self.phases.get_mut(&phase) {
            known.pending.remove(&task);
            known.announced += u32::from(why == OfferReason::FinishedEarlier);
        }
        if let OfferReason::Running(container) = why {
            self.assign_slot(container, slot);
        }
        self.offers.insert(name, offer);
        let since = since.min(self.now);
        self.running.push(Report::Running(Running { name, phase, task, slot, since }));
    }

    /// A free slot, on this host if possible; else the slot of a row without a container: one of the same
    /// job, or the newest.
    fn free_slot(&mut self, host: &str, job: Option<u32>) -> Option<u32> {
        let there = self.hosts.iter().find(|known| known.name == host);
        let there = there.and_then(|host| self.free.range(host.first..host.first + host.count).next());
        if let Some(&slot) = there.or(self.free.first()) {
            return Some(slot);
        }
        let of_job = |kind| self.phases.get(&self.phase_of(job?, kind)?)?.unbound.last().copied();
        let same = of_job(PhaseKind::Map).or_else(|| of_job(PhaseKind::Reduce));
        let last = || self.phases.values().filter_map(|phase| phase.unbound.last()).max().copied();
        let id = same.or_else(last)?;
        let row = self.remove_row(id)?;
        if let Some(known) = self.phases.get_mut(&row.phase) {
            known.pending.insert(row.task);
        }
        // Its task is pending again, and the slot free.
        self.machines.push(Report::Down(MachineId(row.slot)));
        self.machines.push(Report::Up(MachineId(row.slot)));
        Some(row.slot)
    }

    /// A slot for a report to the driver. If other applications hold all, it uses one of theirs until the
    /// next poll.
    fn free_slot_to_report(&mut self) -> Option<u32> {
        self.free_slot("", None).or_else(|| {
            let slot = self.slots.iter().rposition(|&slot| slot == Slot::Others)? as u32;
            self.release_slot(slot);
            Some(slot)
        })
    }

    /// A container has ended.
    pub(crate) fn remove_container(&mut self, container: ContainerId, verdict: ContainerOutcome) {
        self.uncounted.remove(&container);
        let Some(live) = self.live.remove(&container) else { return };
        if let Some(known) = live.phase.and_then(|phase| self.phases.get_mut(&phase)) {
            known.live -= 1;
        }
        let Some(slot) = live.slot else { return };
        match self.slots[slot as usize] {
            Slot::Row(id) => self.end_row(id, verdict),
            Slot::Taken(_) => self.release_slot(slot),
            // The driver has not answered the offer; its answer settles it.
            _ => {}
        }
    }

    /// Frees a slot that was taken.
    fn release_slot(&mut self, slot: u32) {
        self.set(slot, Slot::Free);
        self.machines.push(Report::Up(MachineId(slot)));
    }

    fn end_row(&mut self, id: RowId, verdict: ContainerOutcome) {
        let Some(row) = self.remove_row(id) else { return };
        if let Some(known) = self.phases.get_mut(&row.phase) {
            if verdict == ContainerOutcome::Finished {
                known.done += 1;
            } else {
                known.pending.insert(row.task);
            }
        }
        let at = self.now;
        self.ends.push(match verdict {
            ContainerOutcome::Finished => Report::Finished { row: id, at },
            ContainerOutcome::Failed => Report::Failed { row: id, at, is_final: false },
            ContainerOutcome::FailedForGood => Report::Failed { row: id, at, is_final: true },
        });
    }
}
