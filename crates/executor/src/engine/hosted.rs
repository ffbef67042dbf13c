//! The process engine as one of several under one driver ([`crate::engine::shared`]). It does not wait for
//! its fleet, and names flows by their own names.

use std::collections::BTreeSet;
use std::time::Duration;

use slackline_model::MachineId;
use slackline_policy::engine::{Order, Report, RowId};
use slackline_task::base::task_id::TaskId;

use crate::engine::event::FlowStatus;
use crate::engine::{ProcessEngine, Running};
use crate::fleet::FleetEvent;
use crate::store::running_attempt::RunningAttempt;

impl ProcessEngine {
    /// Handles the events of its attempts, and returns the reports: ends, and the names of flows that arrive.
    pub(crate) fn turn(&mut self, event: Vec<FleetEvent>, reports: &mut Vec<Report>) -> Vec<String> {
        self.take(event);
        let flows = self.news(reports);
        flows.into_iter().map(|flow| self.work.instance.flow(flow).id.clone()).collect()
    }

    /// Without machines that are not there when it comes.
    pub(crate) fn without_machines(mut self, away: BTreeSet<MachineId>) -> Self {
        self.machines.away = away;
        self
    }

    /// Continues by itself, once there is nothing to report.
    pub(crate) fn idle(&mut self) {
        self.go_on();
    }

    /// Whether something is to be reported.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Time until the next action of the run without an event.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        self.next_due().map(|at| Duration::from_micros(at.since(self.now.min(at)).0))
    }

    /// Whether it has no attempts on its machines and nothing to report, so that it need not be checked
    /// before its next action.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_settled() && self.due.is_empty() && self.attempts.records.is_empty()
    }

    /// Whether it has no attempts on its machines any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.attempts.running.is_empty()
            && self.handover.attempts.is_empty()
            && self.attempts.leaving.is_empty()
            && self.lost.attempts().next().is_none()
    }

    /// Starts the task that the driver requested. A task of a flow that has failed meanwhile fails.
    pub(crate) fn begin_task(&mut self, row: RowId, id: TaskId, slot: u32, is_held: bool) {
        // While it was quiet, its clock was not updated.
        self.now = self.clock.now();
        if self.refuses(row, id.job) {
            return;
        }
        self.start_task(row, id, slot, is_held);
    }

    /// Carries out an order of the driver.
    pub(crate) fn order_here(&mut self, order: Order) {
        self.now = self.clock.now();
        self.order(order);
    }

    /// The attempts of a flow that run, one for each task.
    pub(crate) fn busy(&self, flow: &str) -> Vec<RunningAttempt> {
        let is_of = |running: &&Running| {
            running.is_at_work()
                && running.killed.is_none()
                && self.work.session.jobs[running.id.job as usize].flow == flow
        };
        self.attempts.running.values().filter(is_of).map(Running::document).collect()
    }

    /// The driver is about to drop the rows of these attempts, which continue.
    pub(crate) fn hand_over(&mut self, attempts: impl IntoIterator<Item = u64>) {
        self.handover.promised.extend(attempts);
    }

    /// An attempt that went on has a row again. One that ended before it could be handed over has not: its
    /// task is started again, and is found done or runs.
    pub(crate) fn adopt(&mut self, number: u64, row: RowId, id: TaskId) {
        self.now = self.clock.now();
        let Some(running) = self.handover.attempts.remove(&number) else {
            self.handover.promised.remove(&number);
            if !self.refuses(row, id.job) {
                self.due.push(Report::Failed { row, at: self.now, is_final: false });
            }
            return;
        };
        self.keep(row, running);
        if let Some(report) = self.handover.ended.remove(&number) {
            self.take(vec![FleetEvent::Ended { attempt: number, report }]);
        }
    }

    /// Cancels a flow. The driver then orders to stop its running tasks.
    pub(crate) fn cancel(&mut self, flow: &str) {
        self.coming.cancel(flow, &self.work.instance);
    }

    /// How a flow ended, finished or failed; `None` if it is not over. O(its jobs + log flows).
    pub(crate) fn end_of(&self, flow: &str) -> Option<FlowStatus> {
        if self.open.is_flow_complete(flow) {
            return Some(FlowStatus::Finished);
        }
        self.coming.has_failed(flow).then_some(FlowStatus::Failed)
    }

    /// The tasks that are done.
    pub(crate) fn done(&self) -> &BTreeSet<TaskId> {
        &self.work.done
    }

    /// Kills and records running attempts. Call this at the end of the run, however it ended.
    pub(crate) fn end(&mut self) {
        self.stop_all();
        self.work.session.publish_state.finish();
        self.warn();
        // The files of attempts on machines that did not come back.
        self.clear_left_behind();
    }

    /// Stops as a run does that is to be resumed.
    pub(crate) fn interrupt_here(&mut self) {
        self.is_stopping = true;
    }
}
