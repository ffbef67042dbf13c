//! Recurring submissions: each time of a schedule is submitted once, or skipped with a record.
//!
//! The record of a submission also marks its time as handled, so a crash cannot fall between the two.

use slackline_model::WallTime;

use crate::api::{self, Accepted, CatchUp, Overlap};
use crate::state::auth::Principal;
use crate::state::commands::{Refusal, RefusalKind};
use crate::state::cron::Times;
use crate::state::record::{Record, ScheduleRecord, SubmissionSpec};
use crate::state::{HealthProblem, LATE, ServiceState};
use crate::timestamp;

/// A schedule and its times.
#[derive(Debug)]
pub(super) struct RecurringSubmission {
    pub(super) recurring: ScheduleRecord,
    times: Times,
    /// The first time that has not been handled.
    pub(super) next: Option<WallTime>,
}

impl RecurringSubmission {
    /// # Errors
    /// The schedule or its time zone is invalid.
    fn new(recurring: ScheduleRecord, zone: &jiff::tz::TimeZone) -> Result<Self, String> {
        let schedule = recurring.submit.schedule.clone().ok_or("found no schedule")?;
        let zone_of_all = recurring.submit.zone.as_ref().or(schedule.zone.as_ref()).cloned();
        let times = Times::new(&api::Schedule { zone: zone_of_all, ..schedule }, zone)?;
        let next = times.after(recurring.handled);
        Ok(Self { recurring, times, next })
    }

    /// Its times and their zone; `here` is the zone of the service.
    fn schedule(&self, here: &jiff::tz::TimeZone) -> Option<api::Schedule> {
        let api::Submit { schedule, zone, .. } = &self.recurring.submit;
        let schedule = schedule.clone()?;
        let zone = zone.clone().or(schedule.zone).or_else(|| here.iana_name().map(str::to_owned));
        Some(api::Schedule { zone, ..schedule })
    }

    /// Marks all times up to this one as handled.
    fn handle(&mut self, until: WallTime) {
        self.recurring.handled = self.recurring.handled.max(until);
        self.next = self.times.after(self.recurring.handled);
    }

    /// The first unhandled time, if it has come.
    fn due(&self, now: WallTime) -> Option<WallTime> {
        self.next.filter(|&at| at <= now)
    }

    /// The first time to submit, of those from `first` on. Earlier times are skipped.
    fn first_wanted(&self, first: WallTime, now: WallTime) -> Option<WallTime> {
        match self.recurring.catch_up() {
            // Each occurrence would replace the previous one, so only the last one is submitted.
            CatchUp::All if self.recurring.submit.overlap == Overlap::Replace => {
                Some(self.times.last(first, now))
            }
            CatchUp::All => Some(first),
            CatchUp::Latest => Some(self.times.last(first, now)),
            // A time that is at most `LATE` ago was not missed.
            CatchUp::None if first + LATE >= now => Some(first),
            CatchUp::None => self.times.after(now.earlier_by(LATE + 1)).filter(|&at| at <= now),
        }
    }

    /// Corrects times that were marked as handled while the clock was ahead: they are submitted when they
    /// come. `age` is the age clock of the service. Returns whether something changed.
    pub(super) fn clamp(&mut self, now: WallTime, age: WallTime) -> bool {
        let ScheduleRecord { handled, last, before, .. } = &mut self.recurring;
        if *handled > now + LATE {
            // The clock is wrong now, and was right then.
            if *handled <= age + LATE {
                *before = (*before).max(Some(*handled));
            }
            *handled = now;
        } else if now + LATE >= age && before.is_some() {
            *handled = (*handled).max(before.take().map_or_else(WallTime::default, |before| before.min(now)));
        } else {
            return false;
        }
        *last = last.filter(|&at| at <= now + LATE);
        self.next = self.times.after(*handled);
        true
    }

    /// The submission of a time.
    ///
    /// # Errors
    /// A parameter or pattern has a conversion that cannot be filled.
    fn at(&self, at: WallTime) -> Result<SubmissionSpec, String> {
        let mut submit = self.recurring.submit.clone();
        submit.schedule = None;
        for (name, value) in &mut submit.parameters {
            *value =
                self.times.filled(value, at).map_err(|problem| format!("parameter {name}: {problem}"))?;
        }
        for pattern in &mut submit.when {
            *pattern = self.times.filled(pattern, at).map_err(|problem| format!("when: {problem}"))?;
        }
        let ScheduleRecord { name, user, own_by, .. } = &self.recurring;
        Ok(SubmissionSpec {
            recurrence: Some(name.clone()),
            runs_all: true,
            own_by: own_by.clone(),
            ..SubmissionSpec::new(submit, name.clone(), user.clone(), at)
        })
    }
}

impl ServiceState {
    /// Adds a schedule, or replaces the one of this name.
    pub(super) fn add_schedule(
        &mut self,
        principal: &Principal,
        wanted: SubmissionSpec,
    ) -> Result<Accepted, Refusal> {
        let SubmissionSpec { submit, name, user, own_by, .. } = wanted;
        let before = self.schedules.get(&name).map(|again| &again.recurring);
        if let Some(owner) = before.map(|before| &before.user).filter(|owner| !principal.may_change(owner)) {
            let message = format!("name: a schedule of {owner} has the name {name}; choose another name");
            return Err(Refusal::new(RefusalKind::Forbidden, message));
        }
        let is_own =
            |again: &&RecurringSubmission| again.recurring.user == user && again.recurring.name != name;
        let (found, most) =
            (self.schedules.values().filter(is_own).count(), self.facts.limits.queued_by_user);
        if found >= most {
            let message = format!("{user} already has {found} schedules, the limit of a user is {most}");
            return Err(Refusal::new(RefusalKind::Conflict, message));
        }
        let now = self.now();
        let recurring = ScheduleRecord {
            name: name.clone(),
            // A user who replaces a schedule owns it.
            user,
            submit,
            handled: now,
            last: before.and_then(|before| before.last),
            paused: false,
            own_by,
            before: None,
        };
        let again = RecurringSubmission::new(recurring, &self.facts.zone).map_err(Refusal::invalid)?;
        again.at(now).map_err(Refusal::invalid)?;
        self.out.records.push(Record::Recurs(Box::new(again.recurring.clone())));
        self.usage.count_rate(&principal.name, self.clock.elapsed());
        let next = again.next;
        self.schedules.insert(name.clone(), again);
        self.announce(&name);
        let at = next.map_or_else(String::new, |at| format!(", next at {}", timestamp(at)));
        let message = format!("{name} is scheduled{at}");
        self.event("recurrence", None, None, message.clone());
        Ok(Accepted { next: next.map(timestamp), ..Accepted::new(None, &name, message) })
    }

    /// Restores a schedule from a record.
    pub(super) fn recall_recurring(&mut self, recurring: ScheduleRecord) {
        let name = recurring.name.clone();
        match RecurringSubmission::new(recurring, &self.facts.zone) {
            Ok(again) => drop(self.schedules.insert(name, again)),
            // The schedule was valid when it was written, but this machine may have lost its time zone since.
            Err(problem) => {
                self.set_trouble(
                    HealthProblem::Zone,
                    Some(format!("the schedule {name} has stopped: {problem}")),
                );
            }
        }
    }

    /// Marks times of a schedule as handled, from a record.
    pub(super) fn handled(&mut self, name: &str, until: WallTime, is_submitted: bool) {
        // A past time that a user has submitted again is handled already.
        let again = self.schedules.get_mut(name).filter(|again| until > again.recurring.handled);
        if let Some(again) = again {
            again.handle(until);
            if is_submitted {
                again.recurring.last = Some(until);
            }
        }
    }

    /// The next time of a schedule, unless the schedule is paused. Under `CatchUp::All` it also waits until
    /// the clock is settled.
    pub(super) fn recurs_by(&self, again: &RecurringSubmission) -> Option<WallTime> {
        let waits = self.clock.is_unsettled() && again.recurring.catch_up() == CatchUp::All;
        again.next.filter(|_| !again.recurring.paused && !waits)
    }

    /// Submits the due times of all schedules.
    pub(super) fn recur(&mut self) {
        let now = self.now();
        let is_due = |again: &RecurringSubmission| self.recurs_by(again).is_some_and(|at| at <= now);
        let due: Vec<String> =
            self.schedules.iter().filter(|(_, again)| is_due(again)).map(|(name, _)| name.clone()).collect();
        for name in due {
            self.recur_one(now, &name);
        }
    }

    /// The first due time of a schedule.
    fn due_of(&self, now: WallTime, name: &str) -> Option<(&RecurringSubmission, WallTime)> {
        self.schedules.get(name).and_then(|again| Some((again, again.due(now)?)))
    }

    /// Submits the due times of a schedule, at most `AT_ONCE`, so that nothing else waits for them.
    fn recur_one(&mut self, now: WallTime, name: &str) {
        let Some((again, first)) = self.due_of(now, name) else { return };
        let wanted = again.first_wanted(first, now);
        if wanted != Some(first) {
            let until = again.times.last(first, wanted.map_or(now, |wanted| wanted.earlier_by(1)));
            self.leave_out(name, first, until, "they were missed");
        }
        for _ in 0..AT_ONCE {
            let Some((_, at)) = self.due_of(now, name) else { return };
            match self.wanted_at(name, at) {
                Ok(wanted) => {
                    let skips = wanted.submit.overlap == Overlap::Skip;
                    let is_submitted = self.accept(wanted).number.is_some();
                    self.handled(name, at, is_submitted);
                    if let Some((again, next)) = self.due_of(now, name).filter(|_| skips) {
                        let until = again.times.last(next, now);
                        self.leave_out(name, next, until, "the previous submission has not finished");
                    }
                }
                // The queue is full or a parameter cannot be filled. That holds for all times that have come.
                Err(problem) => {
                    let until = self.schedules[name].times.last(at, now);
                    self.leave_out(name, at, until, &problem);
                }
            }
        }
    }

    /// Skips times of a schedule, with a record of the reason.
    fn leave_out(&mut self, name: &str, first: WallTime, until: WallTime, why: &str) {
        self.out.records.push(Record::LeftOut { recurrence: name.to_owned(), until });
        let times = if first == until {
            format!("its time {} is", timestamp(first))
        } else {
            format!("its times from {} to {} are", timestamp(first), timestamp(until))
        };
        self.event("skipped", None, None, format!("{name}: {times} skipped: {why}"));
        self.handled(name, until, false);
    }

    /// The submission of a time of a schedule.
    ///
    /// # Errors
    /// The reason why the time is skipped.
    fn wanted_at(&self, name: &str, at: WallTime) -> Result<SubmissionSpec, String> {
        let again = self.schedules.get(name).ok_or("the schedule is removed")?;
        // The replaced submission frees a place in the queue.
        let replaces = again.recurring.submit.overlap == api::Overlap::Replace
            && self.submissions.first_of(name).is_some();
        if !replaces {
            self.has_place(&again.recurring.user).map_err(|full| full.message)?;
        }
        again.at(at)
    }

    /// The next time of the schedule of a submission. `None` if the schedule is paused, if its submissions
    /// are held, or if a later occurrence exists already.
    pub(super) fn comes_again(&self, number: u64) -> Option<WallTime> {
        let wanted = self.wanted(number)?;
        let again = self.schedules.get(wanted.recurrence.as_ref()?)?;
        let is_last = self.submissions.series.of_name(&wanted.name).max() == Some(number);
        if !is_last {
            return None;
        }
        again.next.filter(|_| !again.recurring.paused && !again.recurring.submit.held)
    }

    /// Tells the engine the new next times of the running flows of a schedule.
    fn announce(&mut self, name: &str) {
        let numbers: Vec<u64> = self.submissions.series.of_name(name).collect();
        let is_of_it = |number: &u64| self.wanted(*number).is_some_and(|of| of.recurrence.is_some());
        for number in numbers.into_iter().filter(is_of_it).collect::<Vec<_>>() {
            self.stand_all(number);
        }
    }

    /// The schedule, if the principal may change it.
    fn own_schedule(
        &mut self,
        principal: &Principal,
        name: &str,
    ) -> Result<&mut RecurringSubmission, Refusal> {
        let names: Vec<String> = self.schedules.keys().cloned().collect();
        let unknown =
            || Refusal::new(RefusalKind::NotFound, slackline_model::names::unknown("schedule", name, &names));
        let again = self.schedules.get_mut(name).ok_or_else(unknown)?;
        let (user, owner) = (&principal.name, &again.recurring.user);
        if !principal.may_change(owner) {
            let message = format!("{name} belongs to {owner}; {user} may change only their own schedules");
            return Err(Refusal::new(RefusalKind::Forbidden, message));
        }
        Ok(again)
    }

    /// Submits the flows of a schedule now, or for one of its past times, which waits for no files. The other times of the
    /// schedule stay as they are.
    pub(super) fn run_now(
        &mut self,
        principal: &Principal,
        name: &str,
        past: Option<WallTime>,
    ) -> Result<Accepted, Refusal> {
        let now = self.now();
        let again = self.own_schedule(principal, name)?;
        if let Some(at) =
            past.filter(|&at| at > again.recurring.handled || again.times.after(at.earlier_by(1)) != Some(at))
        {
            let message = format!("at: found {}, expected a past time of {name}", timestamp(at));
            return Err(Refusal::invalid(message));
        }
        let mut wanted = again.at(past.unwrap_or(now)).map_err(Refusal::invalid)?;
        wanted.submit.key = None;
        if past.is_some() {
            wanted.submit.repeat_now();
        } else {
            wanted.recurrence = None;
        }
        let first = self.submissions.first_of(name);
        if let Some(other) = first.filter(|_| wanted.submit.overlap == Overlap::Skip) {
            let message =
                format!("submission {other} of {name} has not finished, and this schedule skips overlaps");
            return Err(Refusal::new(RefusalKind::Conflict, message));
        }
        self.usage.check_rate(&principal.name, &self.facts.limits, self.clock.elapsed())?;
        self.has_place(&wanted.user)?;
        self.usage.count_rate(&principal.name, self.clock.elapsed());
        let accepted = self.accept(wanted);
        self.submissions.unread.extend(accepted.number);
        Ok(accepted)
    }

    /// The times of a schedule from `from` up to `to`, at most `TIMES_MOST`. The second value is its zone.
    ///
    /// # Errors
    /// The schedule is unknown, or there are more times.
    pub fn times_of(&self, name: &str, from: &str, to: &str) -> Result<Vec<WallTime>, Refusal> {
        let names: Vec<String> = self.schedules.keys().cloned().collect();
        let unknown =
            || Refusal::new(RefusalKind::NotFound, slackline_model::names::unknown("schedule", name, &names));
        let again = self.schedules.get(name).ok_or_else(unknown)?;
        let [from, to] = [("from", from, false), ("to", to, true)].map(|(option, text, is_end)| {
            again
                .times
                .date(text, is_end)
                .map_err(|expected| Refusal::invalid(format!("{option}: {expected}")))
        });
        let (from, to) = (from?, to?.min(self.now()));
        let next = |&at: &WallTime| again.times.after(at);
        let times = std::iter::successors(again.times.after(from.earlier_by(1)), next);
        let times: Vec<WallTime> = times.take_while(|&at| at <= to).take(TIMES_MOST + 1).collect();
        if times.len() > TIMES_MOST {
            return Err(Refusal::invalid(format!(
                "found more than {TIMES_MOST} times, expected fewer at once"
            )));
        }
        Ok(times)
    }

    pub(super) fn remove(&mut self, principal: &Principal, name: &str) -> Result<String, Refusal> {
        self.own_schedule(principal, name)?;
        self.schedules.remove(name);
        self.out.records.push(Record::RecursNoMore(name.to_owned()));
        self.announce(name);
        Ok(format!("{name} is removed; its earlier submissions continue"))
    }

    pub(super) fn pause(
        &mut self,
        principal: &Principal,
        name: &str,
        paused: bool,
    ) -> Result<String, Refusal> {
        let now = self.now();
        let again = self.own_schedule(principal, name)?;
        let is_resumed = std::mem::replace(&mut again.recurring.paused, paused) && !paused;
        if is_resumed {
            // Times during the pause are not wanted, so they are handled and not caught up.
            again.handle(now);
        }
        let next = again.next.filter(|_| !paused).map(|at| format!(", next at {}", timestamp(at)));
        let record = Record::Recurs(Box::new(again.recurring.clone()));
        self.out.records.push(record);
        self.announce(name);
        let what = if paused { "is paused" } else { "is resumed" };
        Ok(format!("{name} {what}{}", next.unwrap_or_default()))
    }

    /// All schedules, sorted by name.
    pub fn recurrences(&self) -> Vec<api::Recurrence> {
        let of = |again: &RecurringSubmission| {
            let recurring = &again.recurring;
            Some(api::Recurrence {
                name: recurring.name.clone(),
                user: recurring.user.clone(),
                schedule: again.schedule(&self.facts.zone)?,
                overlap: recurring.submit.overlap,
                paused: recurring.paused,
                last: recurring.last.map(timestamp),
                next: again.next.filter(|_| !recurring.paused).map(timestamp),
            })
        };
        self.schedules.values().filter_map(of).collect()
    }
}

/// The most times of a schedule in one answer.
const TIMES_MOST: usize = 1_000;

/// The most times of a schedule that are submitted together.
const AT_ONCE: usize = 20;
