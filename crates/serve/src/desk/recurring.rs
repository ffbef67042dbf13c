//! What comes again: each of its times is submitted once, or left out and that is written down.
//!
//! The record of a submission also says that its time is done with, so that no crash lies between the two.

use super::asked::{Answer, Refusal, RefusalKind};
use super::{Desk, Out, Told, Trouble};
use crate::api::{self, Accepted, CatchUp};
use crate::cron::Times;
use crate::record::{Record, Recurring, Wanted};
use crate::who::Who;
use crate::{Moment, timestamp};

/// Something that recurs, and when.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) recurring: Recurring,
    times: Times,
    /// The first time that is not done with.
    pub(super) next: Option<Moment>,
}

impl Again {
    /// # Errors
    /// A schedule that is none.
    fn new(recurring: Recurring, zone: &jiff::tz::TimeZone) -> Result<Self, String> {
        let schedule = recurring.submit.schedule.clone().ok_or("found no schedule")?;
        let times = Times::new(&schedule, zone)?;
        let next = times.after(recurring.handled);
        Ok(Self { recurring, times, next })
    }

    /// Times up to this one are done with.
    fn handle(&mut self, until: Moment) {
        self.recurring.handled = self.recurring.handled.max(until);
        self.next = self.times.after(self.recurring.handled);
    }

    /// The times that are not done with and have come.
    fn due(&self, now: Moment) -> Vec<Moment> {
        let mut due = Vec::new();
        let mut next = self.next;
        while let Some(at) = next.filter(|&at| at <= now) {
            due.push(at);
            next = self.times.after(at);
        }
        due
    }

    /// What is submitted at a time.
    ///
    /// # Errors
    /// A value of a parameter that cannot be filled.
    fn at(&self, at: Moment) -> Result<Wanted, String> {
        let mut submit = self.recurring.submit.clone();
        submit.schedule = None;
        for (name, value) in &mut submit.parameters {
            *value =
                self.times.filled(value, at).map_err(|problem| format!("parameter {name}: {problem}"))?;
        }
        for pattern in &mut submit.when {
            *pattern = self.times.filled(pattern, at).map_err(|problem| format!("when: {problem}"))?;
        }
        let Recurring { name, user, .. } = &self.recurring;
        Ok(Wanted {
            submit,
            name: name.clone(),
            user: user.clone(),
            since: at,
            recurrence: Some(name.clone()),
            // Its file has not been read for this time.
            due: None,
        })
    }
}

impl Desk {
    /// Something recurs from now on, or in another way than before.
    pub(super) fn recurs(
        &mut self,
        now: Moment,
        who: &Who,
        (submit, name): (api::Submit, String),
        out: &mut Out,
    ) -> Result<Answer, Refusal> {
        if let Some(before) = self.recurring.get(&name)
            && !who.may_change(&before.recurring.user)
        {
            let owner = &before.recurring.user;
            let message =
                format!("name: found {name}, which recurs and is {owner}'s, expected a name of your own");
            return Err(Refusal { kind: RefusalKind::Forbidden, message });
        }
        let is_own = |again: &&Again| again.recurring.user == who.name && again.recurring.name != name;
        let (found, most) =
            (self.recurring.values().filter(is_own).count(), self.facts.limits.queued_by_user);
        if found >= most {
            let message =
                format!("found {found} flows of {} that recur already, expected fewer than {most}", who.name);
            return Err(Refusal { kind: RefusalKind::Conflict, message });
        }
        let last = self.recurring.get(&name).and_then(|again| again.recurring.last);
        let recurring = Recurring {
            name: name.clone(),
            // A user who replaces it owns it from then on.
            user: who.name.clone(),
            submit,
            handled: now,
            last,
            paused: false,
        };
        let invalid = |message| Refusal { kind: RefusalKind::Invalid, message };
        let again = Again::new(recurring, &self.facts.zone).map_err(invalid)?;
        again.at(now).map_err(invalid)?;
        out.records.push(Record::Recurs(Box::new(again.recurring.clone())));
        self.rates.entry(who.name.clone()).or_default().push_back(now);
        let next = again.next;
        self.recurring.insert(name.clone(), again);
        self.announce(&name, out);
        let said = next.map_or_else(String::new, |at| format!(", the next time at {}", timestamp(at)));
        let message = format!("{name} recurs{said}");
        self.event(out, now, Told { kind: "recurrence", number: None, flow: None, message: message.clone() });
        let next = next.map(timestamp);
        Ok(Answer::Accepted(Box::new(Accepted { number: None, name, message, next, prediction: None })))
    }

    /// What recurs, as a record has it.
    pub(super) fn recall_recurring(&mut self, recurring: Recurring) {
        let name = recurring.name.clone();
        match Again::new(recurring, &self.facts.zone) {
            Ok(again) => drop(self.recurring.insert(name, again)),
            // It was a schedule when it was written down; a zone may be gone from this machine since.
            Err(problem) => {
                self.set_trouble(Trouble::Zone, Some(format!("{name} does not recur any more: {problem}")));
            }
        }
    }

    /// Times of something that recurs are done with, as a record has it.
    pub(super) fn handled(&mut self, name: &str, until: Moment, is_submitted: bool) {
        if let Some(again) = self.recurring.get_mut(name) {
            again.handle(until);
            if is_submitted {
                again.recurring.last = Some(until);
            }
        }
    }

    /// Submits what is due.
    pub(super) fn recur(&mut self, now: Moment, out: &mut Out) {
        let is_due = |again: &Again| !again.recurring.paused && again.next.is_some_and(|at| at <= now);
        let due: Vec<String> =
            self.recurring.iter().filter(|(_, again)| is_due(again)).map(|(name, _)| name.clone()).collect();
        for name in due {
            self.recur_one(now, &name, out);
        }
    }

    fn recur_one(&mut self, now: Moment, name: &str, out: &mut Out) {
        let Some(again) = self.recurring.get(name) else { return };
        let mut times = again.due(now);
        let Some(&last) = times.last() else { return };
        // A time that is a little late was not missed.
        let is_missed = |at: &Moment| *at + LATE < now;
        let left_out = match again.recurring.catch_up() {
            CatchUp::All => 0,
            CatchUp::Last => times.len() - 1,
            CatchUp::None => times.iter().filter(|at| is_missed(at)).count(),
        };
        if left_out > 0 {
            let until = times[left_out - 1];
            out.records.push(Record::LeftOut { recurrence: name.to_owned(), until });
            let message = format!("{name}: {left_out} of its times are left out, up to {}", timestamp(until));
            self.event(out, now, Told { kind: "skipped", number: None, flow: None, message });
            times.drain(..left_out);
        }
        for at in times {
            let is_submitted = match self.wanted_at(name, at) {
                Ok(wanted) => {
                    let waits = wanted.submit.when_inputs || !wanted.submit.when.is_empty();
                    self.accept(now, (wanted, waits), out).number.is_some()
                }
                // Too many wait, or it cannot be filled any more.
                Err(problem) => {
                    out.records.push(Record::LeftOut { recurrence: name.to_owned(), until: at });
                    let message = format!("{name} is left out: {problem}");
                    self.event(out, now, Told { kind: "skipped", number: None, flow: None, message });
                    false
                }
            };
            self.handled(name, at, is_submitted);
        }
        self.handled(name, last, false);
    }

    /// What is submitted at a time of what recurs.
    ///
    /// # Errors
    /// Why it is not.
    fn wanted_at(&self, name: &str, at: Moment) -> Result<Wanted, String> {
        let again = self.recurring.get(name).ok_or("it recurs no more")?;
        // What it replaces makes room.
        let replaces =
            again.recurring.submit.overlap == api::Overlap::Replace && self.series.contains_key(name);
        if !replaces {
            self.has_place(&again.recurring.user).map_err(|full| full.message)?;
        }
        again.at(at)
    }

    /// When what a submission is the last time of comes the next time, as far as that is known: not of what is paused, and not of what
    /// is held whenever it comes. Of earlier times it came already.
    pub(super) fn comes_again(&self, number: u64) -> Option<Moment> {
        let wanted = self.wanted(number)?;
        let again = self.recurring.get(wanted.recurrence.as_ref()?)?;
        let is_last = self.series.get(&wanted.name).and_then(|series| series.back()) == Some(&number);
        if !is_last {
            return None;
        }
        again.next.filter(|_| !again.recurring.paused && !again.recurring.submit.held)
    }

    /// What recurs does so at other times than before: the engine is told of those of its flows that are scheduled.
    fn announce(&mut self, name: &str, out: &mut Out) {
        let numbers: Vec<u64> = self.series.get(name).into_iter().flatten().copied().collect();
        let is_of_it = |number: &u64| self.wanted(*number).is_some_and(|of| of.recurrence.is_some());
        for number in numbers.into_iter().filter(is_of_it).collect::<Vec<_>>() {
            self.stand_all(number, out);
        }
    }

    /// What recurs, if whoever asks may change it.
    fn own_recurring(&mut self, who: &Who, name: &str) -> Result<&mut Again, Refusal> {
        let names: Vec<String> = self.recurring.keys().cloned().collect();
        let Some(again) = self.recurring.get_mut(name) else {
            let message = slackline_model::names::unknown("recurrence", name, &names);
            return Err(Refusal { kind: RefusalKind::NotFound, message });
        };
        if who.may_change(&again.recurring.user) {
            return Ok(again);
        }
        let message =
            format!("{name} is {}'s, and {} may change their own only", again.recurring.user, who.name);
        Err(Refusal { kind: RefusalKind::Forbidden, message })
    }

    pub(super) fn remove(&mut self, who: &Who, name: &str, out: &mut Out) -> Result<Answer, Refusal> {
        self.own_recurring(who, name)?;
        self.recurring.remove(name);
        out.records.push(Record::RecursNoMore(name.to_owned()));
        self.announce(name, out);
        Ok(Answer::Done(format!("{name} recurs no more; what was submitted of it goes on")))
    }

    pub(super) fn pause(
        &mut self,
        now: Moment,
        who: &Who,
        (name, paused): (&str, bool),
        out: &mut Out,
    ) -> Result<Answer, Refusal> {
        let again = self.own_recurring(who, name)?;
        let went_on = again.recurring.paused && !paused;
        again.recurring.paused = paused;
        if went_on {
            // What would have come meanwhile was not missed, but not wanted.
            again.handle(now);
        }
        out.records.push(Record::Recurs(Box::new(again.recurring.clone())));
        let next = again.next.filter(|_| !paused).map(|at| format!(", the next time at {}", timestamp(at)));
        let what = if paused { "is paused" } else { "goes on" };
        self.announce(name, out);
        Ok(Answer::Done(format!("{name} {what}{}", next.unwrap_or_default())))
    }

    /// All that recurs.
    pub(super) fn recurrences(&self) -> Vec<api::Recurrence> {
        let of = |again: &Again| {
            let recurring = &again.recurring;
            Some(api::Recurrence {
                name: recurring.name.clone(),
                user: recurring.user.clone(),
                schedule: recurring.submit.schedule.clone()?,
                overlap: recurring.submit.overlap,
                paused: recurring.paused,
                last: recurring.last.map(timestamp),
                next: again.next.filter(|_| !recurring.paused).map(timestamp),
            })
        };
        self.recurring.values().filter_map(of).collect()
    }
}

/// A time that is submitted within so long was not missed.
const LATE: u64 = 60 * crate::SECOND;
