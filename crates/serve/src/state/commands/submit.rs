//! The command `submit`, and the submissions of schedules.

use std::sync::Arc;

use slackline_model::printable::is_printable;

use crate::api::{self, Accepted, Overlap};
use crate::state::ServiceState;
use crate::state::auth::Principal;
use crate::state::commands::{Refusal, RefusalKind};
use crate::state::record::{CancelReason, Record, Rerun, SubmissionSpec};
use crate::state::submissions::Entry;

/// The most open submissions whose parsed files are kept from the start. Files of a longer queue are parsed again
/// when they are shown: kept, they would be a sixth of its memory.
pub(in crate::state) const PARSED: usize = 1_000;

impl ServiceState {
    /// Accepts a submission or a schedule.
    pub(super) fn submit(
        &mut self,
        principal: &Principal,
        mut wanted: SubmissionSpec,
        passed: Option<String>,
    ) -> Result<Accepted, Refusal> {
        wanted.user.clone_from(&principal.name);
        let SubmissionSpec { submit, name, user, .. } = &wanted;
        let is_name = |c: char| c != '/' && is_printable(c);
        if name.is_empty() || name.len() > 200 || !name.chars().all(is_name) || name.starts_with('.') {
            return Err(Refusal::invalid(format!(
                "name: found {name:?}, expected at most 200 printable characters without a slash, not beginning with a dot (choose one with --name)"
            )));
        }
        if let Some(key) = &submit.key {
            if key.is_empty() || key.len() > 200 {
                let found = key.len();
                return Err(Refusal::invalid(format!("key: found {found} bytes, expected 1 to 200")));
            }
            if let Some(&number) = self.submissions.keys.get(&(user.clone(), key.clone())) {
                self.is_same(number, name, submit)?;
                let message = format!("{name} was submitted as {number} already");
                return Ok(Accepted::new(Some(number), name, message));
            }
        }
        // This check comes after the key: a repeated request may have a deadline that has passed since.
        if let Some(problem) = passed {
            return Err(Refusal::invalid(problem));
        }
        let now = self.clock.elapsed();
        self.usage.check_rate(user, &self.facts.limits, now)?;
        if submit.schedule.is_some() {
            return self.add_schedule(principal, wanted);
        }
        self.has_place(user)?;
        if let Some(owner) = self.submissions.first_of(name).and_then(|first| Some(&self.wanted(first)?.user))
            && !principal.may_change(owner)
        {
            let message =
                format!("name: an unfinished submission of {owner} has the name {name}; choose another name");
            return Err(Refusal::new(RefusalKind::Forbidden, message));
        }
        self.usage.count_rate(user, now);
        Ok(self.accept(wanted))
    }

    /// Submits a submission that has ended again.
    pub(super) fn rerun(
        &mut self,
        principal: &Principal,
        number: u64,
        choice: Rerun,
    ) -> Result<Accepted, Refusal> {
        let wanted = self.ended_spec(number)?;
        if !principal.may_change(&wanted.user) {
            let (user, owner) = (&principal.name, &wanted.user);
            let message =
                format!("{number} belongs to {owner}; {user} may change only their own submissions");
            return Err(Refusal::new(RefusalKind::Forbidden, message));
        }
        let now = self.clock.elapsed();
        self.usage.check_rate(&principal.name, &self.facts.limits, now)?;
        self.has_place(&wanted.user)?;
        self.usage.count_rate(&principal.name, now);
        let mut wanted = SubmissionSpec { rerun: Some((number, choice)), ..(*wanted).clone() };
        wanted.submit.repeat_now();
        Ok(self.accept(wanted))
    }

    /// A submission that has ended, to run it again.
    ///
    /// # Errors
    /// It is unknown, has not ended, or is no longer kept.
    pub fn ended_spec(&self, number: u64) -> Result<Arc<SubmissionSpec>, Refusal> {
        let conflict = |message| Err(Refusal::new(RefusalKind::Conflict, message));
        if self.submissions.open.contains_key(&number) {
            return conflict(format!("{number} has not ended"));
        }
        let finished = &self.submissions.finished;
        match finished.wanted(number) {
            Some(wanted) => Ok(wanted.clone()),
            None if finished.find(number).is_none() => Err(Refusal::no_submission(number)),
            None => conflict(format!("the flow file of {number} is no longer kept; submit it again")),
        }
    }

    /// Refuses a different request under the key of a submission. Of a finished submission only the name is
    /// compared.
    fn is_same(&self, number: u64, name: &str, submit: &api::Submit) -> Result<(), Refusal> {
        let is_other = |before: &SubmissionSpec| {
            let before = &before.submit;
            before.document != submit.document
                || before.parameters != submit.parameters
                || before.deadlines != submit.deadlines
        };
        let found = if let Some(known) = self.submissions.name(number).filter(|&known| known != name) {
            format!("another name ({known})")
        } else if self.wanted(number).is_some_and(is_other) {
            "another document, other parameters or other deadlines".to_owned()
        } else {
            return Ok(());
        };
        let message = format!(
            "key: submission {number} has the same key but {found}; submit it unchanged, or use another key"
        );
        Err(Refusal::new(RefusalKind::Conflict, message))
    }

    /// Checks the queue limits for one more submission of a user.
    pub(in crate::state) fn has_place(&self, user: &str) -> Result<(), Refusal> {
        let (limits, queue) = (&self.facts.limits, &self.submissions.queue);
        let (all, own) = (queue.waiting.total, queue.waiting.of(user));
        let message = if all >= limits.queued {
            format!("{all} submissions wait in the queue, its limit is {}; retry later", limits.queued)
        } else if own >= limits.queued_by_user {
            let most = limits.queued_by_user;
            format!(
                "{own} submissions of {user} wait in the queue, the limit of a user is {most}; retry later"
            )
        } else {
            return Ok(());
        };
        Err(Refusal::new(RefusalKind::TooMany(60), message))
    }

    /// Enters a submission under the next number. It is skipped if its overlap rule says so.
    pub(in crate::state) fn accept(&mut self, mut wanted: SubmissionSpec) -> Accepted {
        let name = wanted.name.clone();
        // A user submitted it when the service read its file, from which relative deadlines count.
        let is_of_now = wanted.recurrence.is_some() || wanted.rerun.is_some();
        let at = if is_of_now { self.now() } else { wanted.since };
        let others: Vec<u64> = self.submissions.series.of_name(&name).collect();
        let overlap = wanted.submit.overlap;
        if let (Overlap::Skip, Some(&other)) = (overlap, others.iter().min()) {
            let message = format!("{name} is skipped, because {other} has the same name and has not ended");
            if let Some(recurrence) = wanted.recurrence {
                self.out.records.push(Record::LeftOut { recurrence, until: wanted.since });
            }
            self.event("skipped", Some(other), None, message.clone());
            return Accepted::new(None, &name, message);
        }
        let number = self.submissions.next;
        self.out.records.push(Record::Submitted { number, at, wanted: Box::new(wanted.clone()) });
        self.submissions.unread.extend(wanted.recurrence.is_some().then_some(number));
        if self.submissions.open.len() >= PARSED {
            wanted.draft.take();
        }
        self.enter(number, at, wanted);
        self.event("submitted", Some(number), None, format!("{name} is submitted"));
        if overlap == Overlap::Replace {
            for other in others {
                self.cancel_all(other, CancelReason::ReplacedBy(number));
            }
        }
        let why = self.submissions.open.get(&number).and_then(Entry::own_why);
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        Accepted::new(Some(number), &name, format!("{name} is submitted as {number}{why}"))
    }
}
