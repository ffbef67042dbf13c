//! Alerts and events.

use std::collections::VecDeque;

use slackline_model::WallTime;

use crate::api::{self, Alert, AlertKind};
use crate::state::record::{Record, SubmissionSpec};
use crate::state::{Effect, ServiceState};
use crate::timestamp;

/// The number of alerts kept, across restarts too.
pub(super) const ALERTS: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Alerts {
    /// The latest alerts, the oldest first.
    pub(super) kept: VecDeque<Alert>,
    /// The number of events so far.
    events: u64,
}

impl Alerts {
    /// Keeps an alert, and drops the oldest if there are too many.
    pub(super) fn keep(&mut self, alert: Alert) {
        self.kept.push_back(alert);
        if self.kept.len() > ALERTS {
            self.kept.pop_front();
        }
    }

    /// Forgets the alerts before a moment.
    pub(super) fn forget(&mut self, before: WallTime) {
        while self.kept.front().is_some_and(|alert| crate::wall_time(alert.at) < before) {
            self.kept.pop_front();
        }
    }
}

impl ServiceState {
    /// Sends an event to all listeners: about a submission, about one flow of it, or about the service.
    pub(super) fn event(&mut self, kind: &str, number: Option<u64>, flow: Option<&str>, message: String) {
        self.alerts.events += 1;
        let name = number.and_then(|number| self.submissions.name(number)).cloned();
        self.out.effects.push(Effect::Event(api::Event {
            id: self.alerts.events,
            at: timestamp(self.now()),
            kind: kind.to_owned(),
            number,
            name,
            flow: flow.map(str::to_owned),
            message,
        }));
    }

    /// Sends an alert, unless the same alert was sent before.
    pub(super) fn alert(&mut self, number: u64, flow: &str, kind: AlertKind, message: String) {
        let at = timestamp(self.now());
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        if !entry.alerted.insert((flow.to_owned(), kind)) {
            return;
        }
        let SubmissionSpec { name, user, .. } = &*entry.wanted;
        let (name, user, flow_name) = (name.clone(), user.clone(), flow.to_owned());
        let alert = Alert { kind, at, number, name, flow: flow_name, user, message: message.clone() };
        self.out.records.push(Record::Alert(Box::new(alert.clone())));
        self.alerts.keep(alert.clone());
        self.out.effects.push(Effect::Alert(alert));
        self.event(kind.name(), Some(number), Some(flow), message);
    }
}
