//! Future deadlines: of the flows of running submissions, and the first ones of queued submissions.
//!
//! The deadline of a flow is in [`FlowProgress`](crate::state::progress::FlowProgress), and so is the key by which
//! it is removed.

use slackline_model::WallTime;

use crate::api::AlertKind;
use crate::state::ServiceState;
use crate::state::record::FlowChange;
use crate::state::submissions::{Entry, SubmissionState};
use crate::timestamp;

impl ServiceState {
    /// Removes the deadline of a flow.
    pub(super) fn leave_deadline(&mut self, number: u64, flow: &str) {
        if let Some(deadline) = self.flow(number, flow).and_then(|flow| flow.deadline) {
            self.deadlines.remove(&(deadline, number, flow.to_owned()));
        }
    }

    /// Removes the deadlines of a submission.
    pub(super) fn leave_deadlines(&mut self, number: u64) {
        let flows = self.submissions.open.get(&number).map_or(&[][..], Entry::flows);
        for flow in flows {
            if let Some(deadline) = flow.deadline {
                self.deadlines.remove(&(deadline, number, flow.flow.clone()));
            }
        }
    }

    /// Applies the latest deadlines and weights to the flows of a running submission.
    pub(super) fn set_deadlines(&mut self, number: u64) {
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        let changes = entry.changes.clone();
        let Some(run) = entry.running_mut() else { return };
        for known in run.flows.iter_mut().filter(|known| !known.state.is_over()) {
            let FlowChange { deadline, weight, .. } = FlowChange::of(&changes, &known.flow);
            known.weight = weight.unwrap_or(known.weight);
            let Some(deadline) = deadline.filter(|&deadline| known.deadline != Some(deadline)) else {
                continue;
            };
            if let Some(before) = known.deadline.replace(deadline) {
                self.deadlines.remove(&(before, number, known.flow.clone()));
            }
            self.deadlines.insert((deadline, number, known.flow.clone()));
            known.is_likely_late = false;
            // This chance was for the old deadline.
            known.expected.iter_mut().for_each(|expected| expected.chance = None);
        }
    }

    /// Deadlines that are in the future by the corrected clock can still be missed.
    pub(super) fn await_deadlines_again(&mut self, now: WallTime) {
        for (&number, Entry { state, alerted, .. }) in &mut self.submissions.open {
            let SubmissionState::Running(run) = state else { continue };
            for flow in run.flows.iter().filter(|flow| !flow.state.is_over()) {
                let Some(deadline) = flow.deadline.filter(|&deadline| deadline > now) else { continue };
                self.deadlines.insert((deadline, number, flow.flow.clone()));
                alerted.remove(&(flow.flow.clone(), AlertKind::Late));
            }
        }
    }

    /// Reports the deadlines that have passed.
    pub(super) fn miss_deadlines(&mut self) {
        let now = self.now();
        while self.deadlines.first().is_some_and(|(at, ..)| *at < now) {
            let Some((at, number, flow)) = self.deadlines.pop_first() else { return };
            let left = self.flow(number, &flow).map_or_else(String::new, |progress| progress.left(now));
            let message = format!("{flow}: its deadline {} has passed{left}", timestamp(at));
            self.alert(number, &flow, AlertKind::Late, message);
        }
        while let Some((at, number)) = self.submissions.queue.overdue(now) {
            let Some(entry) = self.submissions.open.get(&number) else { continue };
            // A submission that had started before was reported then.
            if entry.alerted.iter().any(|(_, kind)| *kind == AlertKind::Late) {
                continue;
            }
            let name = &entry.wanted.name;
            let why = self.why(entry).unwrap_or_else(|| "it waits in the queue".to_owned());
            let message = format!(
                "{name}: its first deadline {} has passed, and it has not started: {why}",
                timestamp(at)
            );
            self.alert(number, "", AlertKind::Late, message);
        }
    }
}
