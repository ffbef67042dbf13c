//! An engine that is one of several on the same machines, under one driver ([`crate::resident`]): what it is told and
//! asked, as it neither waits for its fleet nor names flows to the driver.

use std::collections::BTreeSet;

use slackline_model::{MachineId, SlotKind, Time};
use slackline_policy::engine::{Report, RowId, Start};

use super::{Local, Running};
use crate::fleet::Told;
use crate::task_id::TaskId;

/// What has become of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is not over.
    Open,
    /// All its jobs are done.
    Done,
    /// It failed, or was cancelled.
    Failed,
}

/// An attempt that is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// Its number in the run.
    pub(crate) number: u64,
    pub(crate) id: TaskId,
    /// Its slot, of the slot kind that serves the task.
    pub(crate) slot: u32,
    /// Since when it has its slot.
    pub(crate) since: Time,
}

impl Local<'_> {
    /// Takes in what the fleet has told of its attempts, and says what is to be reported: ends, and by name the flows that
    /// come.
    pub(crate) fn turn(&mut self, told: Vec<Told>, reports: &mut Vec<Report>) -> Vec<String> {
        self.take(told);
        // Of machines the driver hears once, and not from every run.
        self.of_machines.clear();
        let flows = self.news(reports);
        flows.into_iter().map(|flow| self.work.instance.flow(flow).id.clone()).collect()
    }

    /// Without machines that are not there when it comes.
    pub(crate) fn without_machines(mut self, away: BTreeSet<MachineId>) -> Self {
        self.away = away;
        self
    }

    /// Goes on by itself, once there is nothing to report.
    pub(crate) fn idle(&mut self) {
        self.go_on();
    }

    /// When something of it is due by itself.
    pub(crate) fn due_at(&self) -> Option<Time> {
        self.next_due()
    }

    /// Whether it has nothing on its machines and nothing to say, so that it need not be looked at before something of it is
    /// due.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_settled() && self.due.is_empty() && self.records.is_empty()
    }

    /// Whether nothing of it is on its machines any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.running.is_empty()
            && self.handed_over.is_empty()
            && self.leaving.is_empty()
            && self.lost.attempts().next().is_none()
    }

    /// Starts what the driver asks for, which is that task of the run.
    pub(crate) fn begin_task(&mut self, start: &Start<'_>, id: TaskId) {
        // While it was quiet nobody told it how late it is.
        self.now = self.clock.now();
        self.start_task(start, id);
    }

    /// What the driver starts on a slot is not of this run: second attempts there give way.
    pub(crate) fn give_way(&mut self, slot_kind: SlotKind, slot: u32) {
        self.make_room(slot_kind, slot);
    }

    /// The attempts of a flow that are at work, one for each task.
    pub(crate) fn busy(&self, flow: &str) -> Vec<Busy> {
        let is_of = |running: &&Running| {
            running.is_at_work()
                && running.killed.is_none()
                && self.work.jobs[running.id.job as usize].flow == flow
        };
        let of = |running: &Running| {
            let Running { number, id, slot, start, .. } = *running;
            Busy { number, id, slot, since: start }
        };
        self.running.values().filter(is_of).map(of).collect()
    }

    /// Attempts go on when the driver gives up their rows, which it is about to.
    pub(crate) fn hand_over(&mut self, attempts: impl IntoIterator<Item = u64>) {
        self.handing_over.extend(attempts);
    }

    /// An attempt that went on has a row again; false if there is none of that number.
    pub(crate) fn adopt(&mut self, number: u64, row: RowId) -> bool {
        let Some(running) = self.handed_over.remove(&number) else { return false };
        self.keep(row, running);
        true
    }

    /// A flow is not to go on. What runs of it is stopped by the driver's order.
    pub(crate) fn cancel(&mut self, flow: &str) {
        self.coming.cancel(flow, self.work.instance);
    }

    /// What has become of a flow.
    pub(crate) fn fate(&self, flow: &str) -> Fate {
        let mut jobs = self.work.jobs.iter().zip(&self.open).filter(|(plan, _)| plan.flow == flow);
        if jobs.all(|(_, &open)| open == 0) {
            return Fate::Done;
        }
        if self.coming.has_failed(flow) { Fate::Failed } else { Fate::Open }
    }

    /// The tasks that are done.
    pub(crate) fn done(&self) -> &BTreeSet<TaskId> {
        &self.work.done
    }

    /// Takes in what the fleet still tells once everything is stopped.
    pub(crate) fn hear_of(&mut self, told: Told) {
        self.take(vec![told]);
    }

    /// Kills what still runs, and records it. To be called when the run is over, however it ended.
    pub(crate) fn end(&mut self) {
        self.stop_all();
    }

    /// Stops as a run does that is to be resumed.
    pub(crate) fn interrupt_here(&self) {
        self.asked_to_stop.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}
