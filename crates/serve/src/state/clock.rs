//! The clock of the service: jumps of the wall clock, and ages.
//!
//! Dates follow the wall clock at once: submissions start, and schedules continue at their next time. A jump
//! deletes nothing. Ages follow an age clock, which advances with elapsed time and is recorded. Where the
//! wall clock is ahead, the age clock catches up slowly: by the time that elapses once more, and by one day
//! at a restart.

use std::sync::{Arc, OnceLock};

use slackline::report::number::duration;
use slackline_model::WallTime;
use slackline_task::base::clock::{ClockReading, Elapsed};

use crate::state::record::Record;
use crate::state::submissions::Entry;
use crate::state::{Effect, HealthProblem, LATE, ServiceState, WorkItem};
use crate::{SECOND, timestamp};

const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// How long `readyz` reports a jump.
const TROUBLE_FOR: u64 = 30 * SECOND;

#[derive(Debug)]
pub(super) struct ServiceClock {
    /// The first start of the service.
    pub(super) began: WallTime,
    /// The start of this process.
    pub(super) started: WallTime,
    /// The last reading of both clocks.
    pub(super) now: ClockReading,
    /// The age clock at `since`.
    age: WallTime,
    since: Elapsed,
    /// The time until which a jump is reported as a problem.
    trouble_until: Option<Elapsed>,
    /// Whether that jump was a day or more. It may be a mistake that is corrected soon.
    is_far: bool,
}

impl ServiceClock {
    /// The clock of a service that was first started at `began`.
    pub(super) fn new(now: ClockReading, began: WallTime) -> Self {
        Self {
            began,
            started: now.wall,
            now,
            age: began,
            since: now.elapsed,
            trouble_until: None,
            is_far: false,
        }
    }

    pub(super) fn elapsed(&self) -> Elapsed {
        self.now.elapsed
    }

    /// The current time of the age clock.
    pub(super) fn age(&self) -> WallTime {
        self.age + self.now.elapsed.since(self.since)
    }

    /// Sets the age clock from a record.
    pub(super) fn recall(&mut self, age: WallTime) {
        self.age = age;
    }

    /// Moves the base of the age clock to now. If the wall clock is ahead, the age clock gains at most
    /// `most`.
    fn gain(&mut self, most: u64) {
        let age = self.age();
        self.age = age.max(self.now.wall.min(age + most));
        self.since = self.now.elapsed;
    }

    /// Whether the wall clock may be wrong after a recent far jump.
    pub(super) fn is_unsettled(&self) -> bool {
        self.is_far && self.trouble_until.is_some()
    }

    /// The next time at which the clock itself has work to do.
    pub(super) fn due(&self) -> Elapsed {
        self.trouble_until.unwrap_or(self.since + HOUR)
    }
}

impl ServiceState {
    /// Reads the clock before any other work.
    pub(super) fn read_clock(&mut self, now: ClockReading) {
        let before = std::mem::replace(&mut self.clock.now, now);
        if let Some(by) = now.jump_since(before) {
            self.clock_jumped(by);
        }
        if self.clock.trouble_until.is_some_and(|until| until <= now.elapsed) {
            (self.clock.trouble_until, self.clock.is_far) = (None, false);
            self.set_trouble(HealthProblem::Clock, None);
        }
        if self.clock.since + HOUR <= now.elapsed {
            self.age_by(HOUR);
        }
    }

    /// Lets the age clock gain at most `most`, and removes the directories that were moved aside a day ago.
    fn age_by(&mut self, most: u64) {
        self.clock.gain(most);
        self.out.records.push(Record::Aged(self.clock.age));
        self.out.effects.push(Effect::Launch(WorkItem::RemoveAside(self.clock.age.earlier_by(DAY))));
    }

    /// Starts the clock after the records are read. Only the wall clock knows how long the service was down.
    pub(super) fn start_clock(&mut self) {
        let (wall, last) = (self.clock.now.wall, self.clock.age);
        self.age_by(DAY);
        self.submissions.finished.none_later_than(self.clock.age);
        if wall + LATE < last {
            let message = format!(
                "the clock shows {}, which is before the last run of this service at {}",
                timestamp(wall),
                timestamp(last)
            );
            self.tell_of_clock(false, message);
        }
        self.clamp_future();
    }

    fn clock_jumped(&mut self, by: i64) {
        let (wall, span) = (self.clock.now.wall, duration(by.unsigned_abs() as f64 / 1e6));
        let direction = if by < 0 { "back" } else { "forward" };
        let message = format!("the clock jumped {direction} by {span}, to {}", timestamp(wall));
        self.tell_of_clock(by.unsigned_abs() >= DAY, message);
        self.out.effects.push(Effect::ClockJumped(by));
        self.clamp_future();
        if by < 0 {
            self.await_deadlines_again(wall);
        }
    }

    fn tell_of_clock(&mut self, is_far: bool, message: String) {
        self.clock.trouble_until = Some(self.clock.now.elapsed + TROUBLE_FOR);
        self.clock.is_far = is_far;
        self.set_trouble(HealthProblem::Clock, Some(message.clone()));
        self.event("clock", None, None, message);
    }

    /// Corrects times of schedules and submissions that are in the future: they were recorded while the clock
    /// was wrong, and count as now.
    fn clamp_future(&mut self) {
        let (now, age) = (self.clock.now.wall, self.clock.age());
        let mut names: Vec<String> = Vec::new();
        for (name, again) in &mut self.schedules {
            if again.clamp(now, age) {
                self.out.records.push(Record::Recurs(Box::new(again.recurring.clone())));
                names.push(name.clone());
            }
        }
        let is_future = |(_, entry): &(&u64, &Entry)| entry.wanted.since > now + LATE;
        let future: Vec<u64> =
            self.submissions.open.iter().filter(is_future).map(|(&number, _)| number).collect();
        for number in future {
            names.push(number.to_string());
            let mut is_queued = false;
            self.requeue(number, |entry| {
                is_queued = entry.is_queued();
                let wanted = Arc::make_mut(&mut entry.wanted);
                (wanted.since, entry.submitted) = (now, entry.submitted.min(now));
                // A relative deadline counts from the corrected time.
                wanted.draft = OnceLock::new();
                if is_queued {
                    wanted.due = None;
                }
            });
            self.submissions.unread.extend(is_queued.then_some(number));
        }
        if !names.is_empty() {
            let message = format!(
                "the clock was wrong when these were recorded; they count from now on: {}",
                slackline_model::names::listed(&names.iter().collect::<Vec<_>>())
            );
            self.tell_of_clock(self.clock.is_far, message);
        }
    }
}
