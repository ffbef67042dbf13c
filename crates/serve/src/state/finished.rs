//! Finished submissions that are still remembered, with their jobs and predictions. The oldest lose their
//! jobs first.

use std::collections::VecDeque;
use std::sync::Arc;

use slackline_model::WallTime;
use slackline_task::base::clock::Elapsed;

use crate::api::{Flow, Submission};
use crate::state::record::SubmissionSpec;

/// The most jobs and predicted flows that are remembered together, some tens of megabytes.
const DETAILS: usize = 100_000;

/// The most bytes of submissions that are kept as they were submitted, to run them again.
const BYTES: usize = 32 << 20;

/// Finished submissions, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct FinishedSubmissions {
    /// The time of the next search for submissions to forget.
    pub(super) next_purge: Elapsed,
    all: VecDeque<Submission>,
    /// The end of each, by the age clock of the service.
    ages: VecDeque<WallTime>,
    /// Each as it was submitted, to run it again; those of the latest only.
    wanted: VecDeque<Option<Arc<SubmissionSpec>>>,
    /// The number of submissions at the front that are no longer kept as they were submitted, and the bytes of the others.
    unkept: usize,
    bytes: usize,
    /// The number of submissions at the front without details.
    bare: usize,
    /// The number of details of the others.
    details: usize,
}

impl FinishedSubmissions {
    pub(super) fn new(now: Elapsed) -> Self {
        Self { next_purge: now, ..Self::default() }
    }

    /// Adds a submission that ended at `age` by the age clock.
    pub(super) fn push(&mut self, one: Submission, age: WallTime, wanted: Option<Arc<SubmissionSpec>>) {
        self.bytes += wanted.as_deref().map_or(0, bytes);
        self.wanted.push_back(wanted);
        while self.bytes > BYTES && self.unkept < self.wanted.len() {
            self.bytes -= self.wanted[self.unkept].take().as_deref().map_or(0, bytes);
            self.unkept += 1;
        }
        self.ages.push_back(age.max(self.ages.back().copied().unwrap_or_default()));
        self.details += details(&one);
        self.all.push_back(one);
        while self.details > DETAILS && self.bare < self.all.len() {
            let oldest = &mut self.all[self.bare];
            self.details -= details(oldest);
            for flow in &mut oldest.flows {
                flow.jobs = Vec::new();
            }
            oldest.prediction = None;
            self.bare += 1;
        }
    }

    /// Removes the submission that ended first.
    pub(super) fn pop(&mut self) -> Option<Submission> {
        let one = self.all.pop_front()?;
        self.ages.pop_front();
        self.bytes -= self.wanted.pop_front().flatten().as_deref().map_or(0, bytes);
        self.unkept = self.unkept.saturating_sub(1);
        self.details -= details(&one);
        self.bare = self.bare.saturating_sub(1);
        Some(one)
    }

    /// The end of the submission that ended first, by the age clock.
    pub(super) fn first(&self) -> Option<WallTime> {
        self.ages.front().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The submissions are not sorted by number. The search starts at the latest, which are requested most.
    pub(super) fn find(&self, number: u64) -> Option<&Submission> {
        self.all.iter().rev().find(|one| one.number == number)
    }

    /// A submission as it was submitted. `None` if it is unknown or no longer kept.
    pub(super) fn wanted(&self, number: u64) -> Option<&Arc<SubmissionSpec>> {
        let index = self.all.iter().rposition(|one| one.number == number)?;
        self.wanted[index].as_ref()
    }

    /// Limits the recorded ends to `age`, a time of the age clock.
    pub(super) fn none_later_than(&mut self, age: WallTime) {
        self.ages.iter_mut().for_each(|ended| *ended = age.min(*ended));
    }

    /// All submissions, with their ends by the age clock, as they were submitted.
    pub(super) fn with_ages(
        &self,
    ) -> impl Iterator<Item = (&Submission, WallTime, Option<&Arc<SubmissionSpec>>)> {
        let parts = self.all.iter().zip(self.ages.iter().copied()).zip(&self.wanted);
        parts.map(|((one, age), wanted)| (one, age, wanted.as_ref()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Submission> {
        self.all.iter()
    }
}

/// About the bytes of a submission as it was submitted.
fn bytes(wanted: &SubmissionSpec) -> usize {
    let parameters = wanted.submit.parameters.iter().map(|(name, value)| name.len() + value.len());
    size_of::<SubmissionSpec>() + wanted.submit.document.len() + parameters.sum::<usize>()
}

/// The number of jobs and predicted flows of a submission.
fn details(one: &Submission) -> usize {
    let foretold = one.prediction.as_ref().map_or(0, |said| said.flows.len() + said.makes_late.len());
    one.flows.iter().map(|flow| flow.jobs.len()).sum::<usize>() + foretold
}

/// A submission as lists show it: without jobs and without prediction.
pub(super) fn listed(one: &Submission) -> Submission {
    let flow = |flow: &Flow| Flow {
        flow: flow.flow.clone(),
        cause: flow.cause.clone(),
        why: None,
        jobs: Vec::new(),
        ..*flow
    };
    Submission {
        name: one.name.clone(),
        user: one.user.clone(),
        why: one.why.clone(),
        own_state: one.own_state.clone(),
        commit: one.commit.clone(),
        flows: one.flows.iter().map(flow).collect(),
        occurrence: one.occurrence.clone(),
        prediction: None,
        unpredicted: None,
        missing: None,
        zone: one.zone.clone(),
        key: one.key.clone(),
        ..*one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Job, Phase, State};

    fn one(number: u64, jobs: usize) -> Submission {
        let job = |k: usize| Job {
            job: format!("j{k}"),
            after: Vec::new(),
            maps: Phase::default(),
            reduces: Phase::default(),
            failed_attempts: 0,
        };
        let flow = Flow { flow: "f".into(), jobs: (0..jobs).map(job).collect(), done: 7, ..Flow::default() };
        Submission {
            number,
            name: "n".into(),
            user: "anna".into(),
            submitted: jiff::Timestamp::UNIX_EPOCH,
            state: State::Finished,
            why: Some("w".into()),
            held: false,
            priority: 0,
            flows: vec![flow],
            deadline: None,
            occurrence: None,
            began: None,
            ended: None,
            prediction: None,
            own_state: None,
            rerun_of: None,
            commit: None,
            unpredicted: None,
            missing: None,
            zone: None,
            key: None,
        }
    }

    #[test]
    fn the_oldest_lose_their_jobs_where_there_are_too_many_together() {
        let mut over = FinishedSubmissions::default();
        for number in 0..10 {
            over.push(one(number, DETAILS / 4), WallTime(0), None);
        }
        let jobs =
            |over: &FinishedSubmissions| over.iter().map(|one| one.flows[0].jobs.len()).collect::<Vec<_>>();
        assert_eq!(jobs(&over), [[0; 6].as_slice(), &[DETAILS / 4; 4]].concat());
        for number in 0..8 {
            assert_eq!(over.pop().map(|one| one.number), Some(number));
        }
        over.push(one(10, DETAILS / 2 + 1), WallTime(0), None);
        assert_eq!(jobs(&over), [0, DETAILS / 4, DETAILS / 2 + 1]);
        over.push(one(11, 2 * DETAILS), WallTime(0), None);
        assert_eq!(jobs(&over), [0, 0, 0, 0]);
        over.push(one(12, 1), WallTime(0), None);
        assert_eq!((jobs(&over)[4], over.len()), (1, 5));
    }

    #[test]
    fn lists_leave_jobs_out() {
        let whole = one(3, 2);
        let shown = listed(&whole);
        assert!(shown.flows[0].jobs.is_empty());
        assert_eq!((shown.flows[0].done, shown.flows[0].flow.as_str()), (7, "f"));
        let bare = Flow { jobs: Vec::new(), ..whole.flows[0].clone() };
        assert_eq!(shown, Submission { flows: vec![bare], ..whole });
    }
}
