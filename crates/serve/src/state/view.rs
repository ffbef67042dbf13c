//! The documents of submissions and of the service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use slackline_model::WallTime;

use crate::api::{self, FlowStatus, Prediction, State};
use crate::state::ServiceState;
use crate::state::commands::Refusal;
use crate::state::finished::listed;
use crate::state::progress::{FlowProgress, RunningSubmission};
use crate::state::record::{Changes, SubmissionSpec};
use crate::state::series::RunKey;
use crate::state::submissions::Entry;
use crate::timestamp;

impl FlowProgress {
    fn shown(&self, now: WallTime, with_jobs: bool) -> api::Flow {
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
            failed_attempts: self.jobs.iter().map(|job| job.failed_attempts).sum(),
            completion: self.completion.map(timestamp),
            predicted: expected.and_then(|expected| expected.completion).map(timestamp),
            predicted_between: expected
                .and_then(|expected| expected.between)
                .map(|between| between.map(timestamp)),
            unknown: expected.is_some_and(|expected| expected.completion.is_none()),
            late: self.is_late(now),
            cause: self.cause.clone(),
            why: None,
            jobs: if with_jobs { self.jobs.clone() } else { Vec::new() },
        }
    }
}

impl RunningSubmission {
    /// The current prediction of its flows.
    pub(super) fn prediction(&self, now: WallTime) -> Prediction {
        let flow = |here: &FlowProgress| {
            let expected = here.expected.filter(|_| !here.state.is_over())?;
            Some(api::FlowPrediction {
                flow: here.flow.clone(),
                completion: expected.completion.map(timestamp),
                between: expected.between.map(|between| between.map(timestamp)),
                deadline: here.deadline.map(timestamp),
                holds: here.deadline.and_then(|deadline| Some(expected.completion? <= deadline)),
                chance: expected.chance,
            })
        };
        let flows = self.flows.iter().filter_map(flow).collect();
        Prediction { made: timestamp(now), flows, makes_late: Vec::new(), remedies: Vec::new() }
    }
}

/// A submission that has not started.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingSubmission {
    pub wanted: Arc<SubmissionSpec>,
    /// Changes since it was submitted.
    pub changes: Changes,
    pub held: bool,
    /// Flows that are held separately. Only a submission that has started before can have them.
    pub held_flows: BTreeSet<String>,
}

/// A selection of submissions.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only submissions in one of these states. Empty: all.
    pub states: Vec<State>,
    pub name: Option<String>,
    pub user: Option<String>,
    /// At most this many.
    pub most: usize,
    /// Only submissions with smaller numbers.
    pub before: Option<u64>,
}

impl Filter {
    fn has(&self, state: State, name: &str, user: &str, number: u64) -> bool {
        (self.states.is_empty() || self.states.contains(&state))
            && self.name.as_deref().is_none_or(|wanted| wanted == name)
            && self.user.as_deref().is_none_or(|wanted| wanted == user)
            && self.before.is_none_or(|before| number < before)
    }
}

impl Entry {
    /// The document of the submission, without the parts that depend on others
    /// ([`ServiceState::shown_among`]).
    pub(super) fn shown(&self, number: u64, now: WallTime, is_whole: bool) -> api::Submission {
        let Self { wanted, submitted, state, held, prediction, .. } = self;
        let state = state.shown();
        let occurrence = wanted.recurrence.clone();
        let could_start = self.running().filter(|run| !run.is_held_so_far).map(|run| run.could_start);
        api::Submission {
            number,
            name: wanted.name.clone(),
            user: wanted.user.clone(),
            submitted: timestamp(*submitted),
            state,
            why: self.own_why().cloned(),
            held: *held,
            priority: self.priority(),
            flows: self.flows().iter().map(|flow| flow.shown(now, is_whole)).collect(),
            deadline: self.due().filter(|_| state.has_not_begun()).map(timestamp),
            occurrence: occurrence
                .map(|recurrence| api::Occurrence { recurrence, at: timestamp(wanted.since) }),
            began: could_start.map(timestamp),
            ended: None,
            prediction: prediction.clone().filter(|_| is_whole),
            unpredicted: None,
            missing: None,
            zone: wanted.submit.zone.clone(),
            own_state: RunKey::of(wanted).time,
            rerun_of: wanted.rerun.as_ref().map(|(number, _)| *number),
            commit: wanted.submit.commit.clone(),
            key: wanted.key().cloned(),
        }
    }
}

impl ServiceState {
    /// The document of an unfinished submission, with the reason why it waits.
    fn shown_among(&self, number: u64, entry: &Entry, now: WallTime, is_whole: bool) -> api::Submission {
        let mut shown = entry.shown(number, now, is_whole);
        shown.why = self.why(entry);
        shown.missing = self.missing(number, entry).cloned();
        if is_whole {
            shown.unpredicted = self.unpredicted(entry);
        }
        self.tell_waits(number, entry, now, &mut shown);
        shown
    }

    /// A submission with all details.
    ///
    /// # Errors
    /// The number is unknown, or the submission is forgotten.
    pub fn show(&self, now: WallTime, number: u64) -> Result<api::Submission, Refusal> {
        if let Some(entry) = self.submissions.open.get(&number) {
            return Ok(self.shown_among(number, entry, now, true));
        }
        self.submissions.finished.find(number).cloned().ok_or_else(|| Refusal::no_submission(number))
    }

    /// A submission that has not started. `None` if it has.
    pub fn pending(&self, number: u64) -> Option<PendingSubmission> {
        let entry = self.submissions.open.get(&number).filter(|entry| entry.running().is_none())?;
        let Entry { wanted, changes, held, held_flows, .. } = entry;
        let (wanted, changes, held_flows) = (wanted.clone(), changes.clone(), held_flows.clone());
        Some(PendingSubmission { wanted, changes, held: *held, held_flows })
    }

    /// The unfinished and the remembered submissions, the latest first.
    pub fn list(&self, now: WallTime, filter: &Filter) -> Vec<api::Submission> {
        let has = |(number, entry): &(&u64, &Entry)| {
            filter.has(entry.state.shown(), &entry.wanted.name, &entry.wanted.user, **number)
        };
        let open = self.submissions.open.iter().rev().filter(has);
        let shown = |(&number, entry): (&u64, &Entry)| self.shown_among(number, entry, now, false);
        let mut found: Vec<api::Submission> = open.take(filter.most).map(shown).collect();
        let ended = self.submissions.finished.iter();
        found.extend(ended.filter(|one| filter.has(one.state, &one.name, &one.user, one.number)).map(listed));
        found.sort_by_key(|one| std::cmp::Reverse(one.number));
        found.truncate(filter.most);
        found
    }

    /// The latest alerts, the latest first.
    pub fn alerts(&self) -> Vec<api::Alert> {
        self.alerts.kept.iter().rev().cloned().collect()
    }

    pub fn service(&self, now: WallTime) -> api::Service {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let open = self.submissions.open.values().map(|entry| entry.state.shown());
        for state in open.chain(self.submissions.finished.iter().map(|one| one.state)) {
            *counts.entry(state.name()).or_default() += 1;
        }
        let submissions = counts.into_iter().map(|(state, count)| (state.to_owned(), count)).collect();
        let machines = self.machines.all.clone();
        api::Service {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            began: timestamp(self.began()),
            started: timestamp(self.clock.started),
            now: timestamp(now),
            engine: self.facts.engine.clone(),
            policy: self.facts.policy.clone(),
            objective: self.facts.objective.clone(),
            quota: self.facts.limits.quota.map(|quota| quota.to_string()),
            slots: machines.iter().filter(|machine| machine.up).map(|machine| machine.slots).sum(),
            machines,
            running: self.usage.load.running,
            waiting: self.waiting(),
            submissions,
            draining: self.submissions.queue.is_draining,
            calibration: self.forecasts.scores.calibration(),
            trouble: self.health.values().next().cloned(),
        }
    }
}
