//! The documents of submissions and of the service.

use std::collections::BTreeMap;

use crate::api::{self, FlowStatus, Prediction, State};
use crate::state::commands::{PendingSubmission, Refusal, RefusalKind};
use crate::state::finished::listed;
use crate::state::running::{FlowProgress, RunningSubmission};
use crate::state::{Entry, ServiceState};
use crate::{Moment, timestamp};

impl FlowProgress {
    fn shown(&self, now: Moment, with_jobs: bool) -> api::Flow {
        let counts = self.counts();
        // An estimate of a held flow is outdated, or valid only from the resume on.
        let is_expected = !self.state.is_over() && self.state != FlowStatus::Held;
        let expected = self.expected.filter(|_| is_expected);
        api::Flow {
            flow: self.flow.clone(),
            state: self.state,
            release: timestamp(self.release),
            deadline: self.deadline.map(timestamp),
            weight: self.weight,
            tasks: counts.tasks,
            done: counts.done,
            running: counts.running,
            failed_attempts: self.failed_attempts,
            completion: self.completion.map(timestamp),
            predicted: expected.map(|expected| timestamp(expected.completion)),
            predicted_between: expected
                .and_then(|expected| expected.between)
                .map(|between| between.map(timestamp)),
            guess: expected.is_some_and(|expected| expected.is_guess),
            late: self.is_late(now),
            cause: self.cause.clone(),
            why: None,
            jobs: if with_jobs { self.jobs.clone() } else { Vec::new() },
        }
    }
}

impl RunningSubmission {
    /// The current prediction of its flows.
    pub(super) fn prediction(&self, now: Moment) -> Prediction {
        let flow = |here: &FlowProgress| {
            let expected = here.expected.filter(|_| !here.state.is_over())?;
            Some(api::FlowPrediction {
                flow: here.flow.clone(),
                completion: timestamp(expected.completion),
                between: expected.between.map(|between| between.map(timestamp)),
                guess: expected.is_guess,
                deadline: here.deadline.map(timestamp),
                holds: here.deadline.map(|deadline| expected.completion <= deadline),
                chance: expected.chance,
            })
        };
        let flows = self.flows.iter().filter_map(flow).collect();
        Prediction { made: timestamp(now), flows, makes_late: Vec::new(), remedies: Vec::new() }
    }
}

impl ServiceState {
    /// The document of a submission, without the parts that depend on others ([`ServiceState::shown_among`]).
    pub(super) fn shown(number: u64, entry: &Entry, now: Moment, is_whole: bool) -> api::Submission {
        let Entry { wanted, submitted, state, held, why, live, prediction, .. } = entry;
        let flows = live.iter().flat_map(|live| &live.flows);
        api::Submission {
            number,
            name: wanted.name.clone(),
            user: wanted.user.clone(),
            submitted: timestamp(*submitted),
            state: *state,
            why: why.clone(),
            held: *held,
            priority: entry.priority(),
            flows: flows.map(|here| here.shown(now, is_whole)).collect(),
            deadline: entry.due().filter(|_| state.has_not_begun()).map(timestamp),
            occurrence: wanted
                .recurrence
                .clone()
                .map(|recurrence| api::Occurrence { recurrence, at: timestamp(wanted.since) }),
            began: live.as_ref().filter(|live| !live.is_held_so_far).map(|live| timestamp(live.could_start)),
            ended: None,
            prediction: prediction.clone().filter(|_| is_whole),
            unpredicted: None,
            missing: None,
            key: wanted.submit.key.clone().filter(|_| wanted.recurrence.is_none()),
        }
    }

    /// The document of an unfinished submission, with the reason why it waits.
    fn shown_among(&self, number: u64, entry: &Entry, now: Moment, is_whole: bool) -> api::Submission {
        let mut shown = Self::shown(number, entry, now, is_whole);
        shown.why = self.why(entry);
        shown.missing = self.missing(number, entry).cloned();
        if is_whole {
            shown.unpredicted = self.unpredicted(entry);
        }
        self.tell_waits(number, entry, now, &mut shown);
        shown
    }

    pub(super) fn show(&self, now: Moment, number: u64) -> Result<api::Submission, Refusal> {
        if let Some(entry) = self.entries.get(&number) {
            return Ok(self.shown_among(number, entry, now, true));
        }
        self.ended.find(number).cloned().ok_or_else(|| Refusal {
            kind: RefusalKind::NotFound,
            message: format!("found no submission {number}"),
        })
    }

    /// A submission that has not started. `None` if it has.
    pub(super) fn pending(&self, number: u64) -> Option<PendingSubmission> {
        let entry = self.entries.get(&number).filter(|entry| entry.live.is_none())?;
        let Entry { wanted, changes, held, held_flows, .. } = entry;
        let (wanted, changes, held_flows) = (wanted.clone(), changes.clone(), held_flows.clone());
        Some(PendingSubmission { wanted, changes, held: *held, held_flows })
    }

    /// Submissions, the latest first.
    pub(super) fn list(
        &self,
        now: Moment,
        states: &[State],
        name: Option<&str>,
        user: Option<&str>,
        most: usize,
        before: Option<u64>,
    ) -> Vec<api::Submission> {
        let is_wanted = |state: State, of: &str, by: &str, number: u64| {
            (states.is_empty() || states.contains(&state))
                && name.is_none_or(|name| name == of)
                && user.is_none_or(|user| user == by)
                && before.is_none_or(|before| number < before)
        };
        let open = self.entries.iter().rev();
        let open = open.filter(|(number, entry)| {
            is_wanted(entry.state, &entry.wanted.name, &entry.wanted.user, **number)
        });
        let shown = |(&number, entry): (&u64, &Entry)| self.shown_among(number, entry, now, false);
        let mut found: Vec<api::Submission> = open.take(most).map(shown).collect();
        let ended = self.ended.iter().filter(|one| is_wanted(one.state, &one.name, &one.user, one.number));
        found.extend(ended.map(listed));
        found.sort_by_key(|one| std::cmp::Reverse(one.number));
        found.truncate(most);
        found
    }

    pub(super) fn service(&self, now: Moment) -> api::Service {
        let mut submissions: BTreeMap<String, u64> = BTreeMap::new();
        let states =
            self.entries.values().map(|entry| entry.state).chain(self.ended.iter().map(|one| one.state));
        for state in states {
            *submissions.entry(state.name().to_owned()).or_default() += 1;
        }
        api::Service {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            began: timestamp(self.began),
            started: timestamp(self.started),
            now: timestamp(now),
            engine: self.facts.engine.clone(),
            policy: self.facts.policy.clone(),
            objective: self.facts.objective.clone(),
            slots_by_user: self.facts.limits.slots_by_user.map(u64::from),
            slots: self.machines.iter().filter(|machine| machine.up).map(|machine| machine.slots).sum(),
            machines: self.machines.clone(),
            running: self.load.running,
            waiting: self
                .entries
                .values()
                .filter_map(|entry| entry.live.as_ref())
                .map(RunningSubmission::waiting)
                .sum(),
            submissions,
            draining: self.is_draining,
            calibration: self.scores.calibration(),
            trouble: self.troubles.values().next().cloned(),
        }
    }
}
