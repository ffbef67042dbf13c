//! The command `change`.

use slackline_model::WallTime;

use crate::api::{AlertKind, Change};
use crate::state::ServiceState;
use crate::state::auth::Principal;
use crate::state::commands::{Refusal, named};
use crate::state::record::{FlowChange, Record};
use crate::timestamp;

impl ServiceState {
    pub(super) fn change(
        &mut self,
        principal: &Principal,
        number: u64,
        change: Change,
        deadline: Option<WallTime>,
    ) -> Result<String, Refusal> {
        self.own(principal, number, change.flow.as_deref())?;
        let Change { flow, weight, priority, .. } = change;
        if let Some(found) = weight.filter(|weight| !(*weight >= 0.0 && weight.is_finite())) {
            return Err(Refusal::invalid(format!("weight: found {found}, expected a number from 0")));
        }
        let changed = FlowChange { deadline, weight, priority };
        if changed == FlowChange::default() {
            let message = "found nothing to change, expected a deadline, a weight or a priority";
            return Err(Refusal::invalid(message));
        }
        let flow = flow.as_deref();
        self.out.records.push(Record::Changed { number, flow: flow.map(str::to_owned), changed });
        self.set_changed(number, flow, changed);
        self.stand_all(number);
        if self.submissions.running_mut(number).is_some() {
            self.want_prediction(number);
        }
        let mut changes = Vec::new();
        changes.extend(deadline.map(|at| format!("its deadline is {}", timestamp(at))));
        changes.extend(weight.map(|weight| format!("its weight is {weight}")));
        changes.extend(priority.map(|priority| format!("its priority is {priority}")));
        let message = format!("{}: {}", named(number, flow), changes.join(", "));
        self.event("changed", Some(number), flow, message.clone());
        Ok(message)
    }

    /// Changes a submission, or one flow of it.
    pub(in crate::state) fn set_changed(&mut self, number: u64, flow: Option<&str>, changed: FlowChange) {
        // The priority decides the place in the queue.
        self.requeue(number, |entry| {
            let so_far = entry.changes.entry(flow.map(str::to_owned)).or_default();
            *so_far = changed.or(*so_far);
            if flow.is_none() {
                // A change of the whole submission replaces earlier changes of single flows.
                for (_, own) in entry.changes.iter_mut().filter(|(of, _)| of.is_some()) {
                    own.deadline = own.deadline.filter(|_| changed.deadline.is_none());
                    own.weight = own.weight.filter(|_| changed.weight.is_none());
                    own.priority = own.priority.filter(|_| changed.priority.is_none());
                }
            }
            if changed.deadline.is_some() {
                // A missed new deadline is a new reason for an alert.
                entry.alerted.retain(|(of, kind)| {
                    flow.is_some_and(|flow| of != flow)
                        || !matches!(kind, AlertKind::Late | AlertKind::LikelyLate)
                });
            }
        });
        self.set_deadlines(number);
    }
}
