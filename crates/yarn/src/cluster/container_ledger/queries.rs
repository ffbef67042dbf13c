//! Queries of the ledger: phases, rows, hosts and slots.

use std::collections::BTreeSet;

use slackline_model::{PhaseId, PhaseKind};
use slackline_policy::engine::RowId;

use crate::cluster::container_ledger::{ContainerLedger, Host, LedgerPhase, Slot};
use crate::rest::id::ContainerId;

impl ContainerLedger {
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (&str, u32)> {
        self.hosts.iter().map(|host| (host.name.as_str(), host.count))
    }

    pub(crate) fn is_up(&self, host: &str) -> bool {
        let is_it = |known: &&Host| known.name == host;
        self.hosts.iter().find(is_it).is_some_and(|host| {
            (host.first..host.first + host.count).any(|slot| self.slots[slot as usize] != Slot::Away)
        })
    }

    /// The phase of a job, if its flow has arrived and the job is active.
    pub(crate) fn phase_of(&self, job: u32, kind: PhaseKind) -> Option<PhaseId> {
        self.by_job.get(&(job, kind)).copied()
    }

    /// The phases of active jobs.
    pub(crate) fn phases(&self) -> impl Iterator<Item = PhaseId> + '_ {
        self.phases.keys().copied()
    }

    pub(crate) fn job_of(&self, phase: PhaseId) -> Option<u32> {
        self.phases.get(&phase).map(|phase| phase.job)
    }

    /// Finished tasks of a phase that the driver knows or is about to know.
    pub(crate) fn done(&self, phase: PhaseId) -> u32 {
        self.phases.get(&phase).map_or(0, |phase| phase.done + phase.unreported + phase.announced)
    }

    /// Whether all tasks of a phase are finished for the driver.
    pub(crate) fn is_done(&self, phase: PhaseId) -> bool {
        self.phases.get(&phase).is_none_or(|phase| phase.done == phase.tasks)
    }

    /// Rows of a phase that wait for a container.
    pub(crate) fn unbound(&self, phase: PhaseId) -> u32 {
        self.phases.get(&phase).map_or(0, |phase| phase.unbound.len() as u32)
    }

    /// Jobs with rows that wait for a container, in the order of their first such row.
    pub(crate) fn waiting_jobs(&self) -> Vec<u32> {
        let first = |phase: &LedgerPhase| Some((*phase.unbound.first()?, phase.job));
        let mut first: Vec<(RowId, u32)> = self.phases.values().filter_map(first).collect();
        first.sort_unstable();
        let mut jobs: Vec<u32> = Vec::new();
        for (_, job) in first {
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
        jobs
    }

    pub(crate) fn is_live(&self, container: ContainerId) -> bool {
        self.live.contains_key(&container)
    }

    pub(crate) fn kind_of(&self, phase: PhaseId) -> Option<PhaseKind> {
        self.phases.get(&phase).map(|phase| phase.kind)
    }

    /// Tasks of a phase that the driver has not started.
    pub(crate) fn pending(&self, phase: PhaseId) -> u32 {
        self.phases.get(&phase).map_or(0, |phase| phase.pending.len() as u32)
    }

    /// The first row of a phase that waits for a container.
    pub(crate) fn first_unbound(&self, phase: PhaseId) -> Option<RowId> {
        self.phases.get(&phase)?.unbound.first().copied()
    }

    /// The hosts on which rows of a phase wait for a container, if they have room: a container counts on a
    /// slot of another host if its own are taken.
    pub(crate) fn preferred_hosts(&self, phase: PhaseId) -> BTreeSet<String> {
        let rows = self.phases.get(&phase).into_iter().flat_map(|phase| &phase.unbound);
        let slots = rows.filter_map(|row| Some(self.rows.get(row)?.slot));
        let hosts = slots.filter_map(|slot| self.host_of(slot)).filter(|host| self.has_room(host));
        hosts.map(|host| host.name.clone()).collect()
    }

    /// Whether a host has room for another container, as far as its containers are known.
    fn has_room(&self, host: &Host) -> bool {
        let live = self.live.values().filter(|live| live.host == host.name).count();
        live < host.count as usize && !self.slots.contains(&Slot::Others)
    }

    /// Live containers of a phase.
    pub(crate) fn live(&self, phase: PhaseId) -> u32 {
        self.phases.get(&phase).map_or(0, |phase| phase.live)
    }

    /// Slots of hosts that are up.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.iter().filter(|&&slot| slot != Slot::Away).count() as u32
    }

    /// Slots that hold containers other than the driver's.
    pub(crate) fn taken(&self) -> u32 {
        let is_taken = |slot: &&Slot| matches!(slot, Slot::Taken(_) | Slot::Others);
        self.slots.iter().filter(is_taken).count() as u32
    }

    /// Whether other applications leave the driver no slot.
    pub(crate) fn is_full_of_others(&self) -> bool {
        self.slots.contains(&Slot::Others) && self.taken() == self.slots()
    }
}
