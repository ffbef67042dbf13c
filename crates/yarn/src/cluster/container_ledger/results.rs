//! Results of tasks and jobs that the driver learns of without a container: tasks that finished earlier,
//! finished jobs, and failed flows.

use std::collections::BTreeSet;

use slackline_model::{PhaseId, PhaseKind};
use slackline_policy::engine::RowId;

use crate::cluster::container_ledger::{ContainerLedger, ContainerOutcome, FailedFlow, Offer, OfferReason};
use crate::rest::id::ContainerId;

impl ContainerLedger {
    /// More tasks of a phase have finished than the driver knows; it learns of them as slots become free.
    pub(crate) fn add_finished(&mut self, phase: PhaseId, more: u32) {
        if self.failed_with(phase).is_some() {
            return;
        }
        if let Some(known) = self.phases.get_mut(&phase) {
            known.unreported += more;
            self.unreported.insert(phase);
        }
    }

    /// Reports tasks that finished before the driver knew them.
    pub(super) fn report_finished_earlier(&mut self) {
        for phase in std::mem::take(&mut self.unreported) {
            while self.phases.get(&phase).is_some_and(|known| known.unreported > 0) {
                if !self.report_one_finished(phase) {
                    self.unreported.insert(phase);
                    break;
                }
                if let Some(known) = self.phases.get_mut(&phase) {
                    known.unreported -= 1;
                }
            }
        }
    }

    fn report_one_finished(&mut self, phase: PhaseId) -> bool {
        if let Some(id) = self.first_unbound(phase) {
            self.end_row(id, ContainerOutcome::Finished);
            return true;
        }
        let Some(task) = self.offerable_task(phase) else { return false };
        let Some(slot) = self.free_slot_to_report() else { return false };
        self.offer(Offer { phase, task, slot, why: OfferReason::FinishedEarlier }, self.now);
        true
    }

    /// A job and its output are complete: the driver learns of all its tasks. Its remaining containers are
    /// not the driver's.
    pub(crate) fn finish_job(&mut self, job: u32) {
        for kind in [PhaseKind::Map, PhaseKind::Reduce] {
            let Some(phase) = self.phase_of(job, kind) else { continue };
            let rows = self.rows.iter().filter(|(_, row)| row.phase == phase);
            let rows: Vec<(RowId, Option<ContainerId>)> =
                rows.map(|(&id, row)| (id, row.container)).collect();
            for (id, container) in rows {
                self.end_row(id, ContainerOutcome::Finished);
                if let Some(container) = container {
                    self.disown(container);
                }
            }
            let Some(known) = self.phases.get_mut(&phase) else { continue };
            // Offered tasks are reported when the driver answers.
            known.unreported = known.pending.len() as u32;
            self.unreported.insert(phase);
        }
    }

    /// A flow of these jobs has failed for good. The failure of one row tells the driver; all other reports
    /// of the flow are dropped.
    pub(crate) fn fail_flow(&mut self, jobs: &[u32]) {
        let phases: BTreeSet<PhaseId> = jobs.iter().flat_map(|&job| self.phases_of(job)).collect();
        if phases.is_empty() || self.failed.iter().any(|failed| failed.jobs == jobs) {
            // It has not arrived, or the driver knows, or is about to.
            return;
        }
        for phase in &phases {
            self.unreported.remove(phase);
        }
        let row = self.rows.iter().find(|(_, row)| phases.contains(&row.phase)).map(|(&id, _)| id);
        self.failed.push(FailedFlow { jobs: jobs.to_owned(), phases });
        if let Some(id) = row {
            self.end_flow(self.failed.len() - 1, id);
        }
    }

    /// The phases of a job, if its flow has arrived and the job is active.
    pub(super) fn phases_of(&self, job: u32) -> impl Iterator<Item = PhaseId> + use<> {
        [PhaseKind::Map, PhaseKind::Reduce].map(|kind| self.phase_of(job, kind)).into_iter().flatten()
    }

    /// The index of the failed flow of a phase.
    pub(super) fn failed_with(&self, phase: PhaseId) -> Option<usize> {
        let job = self.job_of(phase)?;
        self.failed.iter().position(|failed| failed.jobs.contains(&job))
    }

    /// Fails a row of a failed flow: the driver gives up the whole flow.
    pub(super) fn end_flow(&mut self, failed: usize, id: RowId) {
        let container = self.rows.get(&id).and_then(|row| row.container);
        self.end_row(id, ContainerOutcome::FailedForGood);
        if let Some(container) = container {
            self.disown(container);
        }
        for job in self.failed.swap_remove(failed).jobs {
            self.forget_job(job);
        }
    }

    /// Reports failed flows without a row through a task that never finishes. It takes one phase after the
    /// other, since the driver refuses tasks of waiting phases.
    pub(super) fn report_failed_flows(&mut self) {
        for n in 0..self.failed.len() {
            let task = |&phase: &PhaseId| Some((phase, self.offerable_task(phase)?));
            let Some((phase, task)) = self.failed[n].phases.iter().find_map(task) else { continue };
            let Some(slot) = self.free_slot_to_report() else { return };
            self.failed[n].phases.remove(&phase);
            self.offer(Offer { phase, task, slot, why: OfferReason::Failed }, self.now);
        }
    }
}
