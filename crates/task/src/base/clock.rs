//! Wall time and monotonic time, and the only conversions between them.
//!
//! The wall clock jumps: a suspended machine wakes up, or an administrator sets the date. Dates (release
//! dates, deadlines, schedules) are wall time. Durations, ages and the times of a journal are monotonic:
//! [`Time`] within an engine or a run, [`Elapsed`] within a process. A [`TimeBase`] converts a monotonic time
//! to wall time. It is measured again at each use.

use std::ops::Add;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use slackline_model::{Span, Start, Time, WallTime};

/// The least change of the wall clock that is reported, microseconds. Smaller ones are corrections by a time
/// server.
const JUMP: u64 = 1_000_000;

/// Monotonic time of a process, microseconds. It has no date, and stands still while the machine is
/// suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elapsed(pub u64);

impl Elapsed {
    /// The time from an earlier one to this one, microseconds.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Elapsed {
    type Output = Self;

    fn add(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    pub wall: WallTime,
    pub elapsed: Elapsed,
}

impl ClockReading {
    pub fn read() -> Self {
        static START: OnceLock<Stopwatch> = OnceLock::new();
        let elapsed = Elapsed(micros(START.get_or_init(Stopwatch::start).elapsed()));
        Self { wall: WallTime(unix_micros()), elapsed }
    }

    /// The jump of the wall clock since an earlier reading, microseconds; `None` if it has not jumped.
    pub fn jump_since(self, earlier: Self) -> Option<i64> {
        let base = |now: Self| TimeBase::measured(now.wall, Time(now.elapsed.0));
        base(self).jump_since(base(earlier))
    }
}

/// The start of a monotonic time on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBase {
    /// The wall time at which the monotonic time is 0: microseconds since 1970, negative before.
    zero: i64,
}

impl TimeBase {
    /// The base that gives `time` that wall time.
    pub fn measured(wall: WallTime, time: Time) -> Self {
        Self { zero: wall.0.cast_signed() - time.0.cast_signed() }
    }

    /// The base of a run that began then, with the jumps recorded since.
    pub fn recorded(started: WallTime, jumped: i64) -> Self {
        Self { zero: started.0.cast_signed().saturating_add(jumped) }
    }

    /// A wall time as monotonic time; earlier times become the start.
    pub fn time(self, wall: WallTime) -> Time {
        Time(wall.0.saturating_add_signed(self.zero.saturating_neg()))
    }

    /// The monotonic time of a wall time in seconds; negative for times before the start.
    pub fn seconds(self, wall: WallTime) -> f64 {
        wall.0.cast_signed().saturating_sub(self.zero) as f64 / 1e6
    }

    /// A monotonic time as wall time.
    pub fn wall(self, time: Time) -> WallTime {
        WallTime(time.0.saturating_add_signed(self.zero))
    }

    /// The jump of the wall clock since an earlier measurement, microseconds; `None` if it has not jumped.
    pub fn jump_since(self, earlier: Self) -> Option<i64> {
        let by = self.zero - earlier.zero;
        (by.unsigned_abs() >= JUMP).then_some(by)
    }
}

/// The monotonic time of a run or an engine, which may have started before this process.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    /// The creation of this clock.
    here: Instant,
    /// The time that it showed then.
    shown: Time,
    /// The start of the run.
    started: WallTime,
    /// The start of the run's time on the wall clock. A recorded jump has moved it.
    base: TimeBase,
}

/// The delay between the starts of two monotonic times, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOffset(i64);

impl RunClock {
    /// The clock of a run that began at `started`. It shows `seen` or more, so that a wall clock that was set
    /// back does not turn time around. Since the start, jumps of `jumped` microseconds in all are recorded.
    pub fn since(started: WallTime, seen: Time, jumped: i64) -> Self {
        let base = TimeBase::recorded(started, jumped);
        let shown = base.time(ClockReading::read().wall).max(seen);
        #[expect(clippy::disallowed_methods, reason = "a real engine lives in real time")]
        Self { here: Instant::now(), shown, started, base }
    }

    pub fn now(&self) -> Time {
        self.shown + Span(micros(self.here.elapsed()))
    }

    /// The start of the run's time on the wall clock, measured now.
    pub fn measure(&self) -> TimeBase {
        TimeBase::measured(ClockReading::read().wall, self.now())
    }

    /// The jump of the wall clock that is not recorded yet, microseconds.
    pub fn jump(&self) -> Option<i64> {
        self.measure().jump_since(self.base)
    }

    /// Marks the jump as recorded.
    pub fn set_recorded(&mut self, jump: i64) {
        self.base.zero += jump;
    }

    /// The time of the run by date, for releases: includes the time for which the machine was suspended.
    pub fn by_date(&self, now: Time) -> Time {
        let began = TimeBase::measured(self.started, Time::ZERO);
        began.time(self.base.wall(now)).max(now)
    }

    /// The time at which [`Self::by_date`] reaches a time.
    pub fn reaches(&self, by_date: Time) -> Time {
        let began = TimeBase::measured(self.started, Time::ZERO);
        self.base.time(began.wall(by_date)).min(by_date)
    }

    /// The start of this run in the time of another clock, seconds, by the current date: the offset of the
    /// dates that a document counts from that start.
    pub fn date_on(&self, other: &Self) -> f64 {
        other.measure().seconds(self.started)
    }

    /// The delay from the start of another clock's time to the start of this one.
    pub fn offset_to(&self, other: &Self) -> TimeOffset {
        let shown = |clock: &Self| clock.shown.0.cast_signed();
        let between = micros(self.here.saturating_duration_since(other.here)).cast_signed()
            - micros(other.here.saturating_duration_since(self.here)).cast_signed();
        TimeOffset(shown(other) + between - shown(self))
    }
}

impl TimeOffset {
    /// The difference in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// A time of the run that begins later, as time of the other clock.
    pub fn of(self, own: Time) -> Time {
        Time(own.0.saturating_add_signed(self.0))
    }

    /// A time of the other clock, as time of the run that starts later; earlier times become its start.
    pub fn own(self, at: Time) -> Time {
        Time(at.0.saturating_add_signed(-self.0))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX >> 2)
}

/// A stopwatch: the time since some moment of this process.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at this moment.
    pub fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "processes are waited for in real time")]
        Self(Instant::now())
    }

    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Microseconds since 1970; 0 before.
pub fn unix_micros() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a run remembers when it started")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, micros)
}

/// Milliseconds since 1970, the time of Hadoop's documents; 0 before.
pub fn unix_millis() -> u64 {
    unix_micros() / 1000
}

/// The moment that number of microseconds after 1970 in the time zone of this machine, or in UTC if it has
/// none.
pub fn local(micros: u64) -> Start {
    let moment = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    moment.unwrap_or(Timestamp::MAX).to_zoned(zone).into()
}

/// The moment that number of microseconds after 1970 in a time zone by its name, such as `Europe/Berlin`; in that of
/// this machine if there is no name, or no zone of that name.
pub fn in_zone(micros: u64, zone: Option<&str>) -> Start {
    let moment = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    match zone.and_then(|zone| TimeZone::get(zone).ok()) {
        Some(zone) => moment.unwrap_or(Timestamp::MAX).to_zoned(zone).into(),
        None => local(micros),
    }
}

/// The name of this machine's time zone in the environment (`TZ`), if the zone is unknown: then [`local`]
/// uses UTC.
pub fn unknown_zone() -> Option<String> {
    let said = std::env::var_os("TZ").filter(|_| TimeZone::try_system().is_err())?;
    Some(said.to_string_lossy().into_owned())
}

pub fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "an old process takes a moment to go")]
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000;

    #[test]
    fn dates_and_monotonic_time_are_converted_by_a_base_that_is_measured_again() {
        let before = TimeBase::measured(WallTime(10 * HOUR), Time(HOUR));
        assert_eq!(before.wall(Time(2 * HOUR)), WallTime(11 * HOUR));
        assert_eq!(
            (before.time(WallTime(12 * HOUR)), before.time(WallTime(0))),
            (Time(3 * HOUR), Time::ZERO)
        );
        // Also before 1970.
        let long_ago = TimeBase::measured(WallTime(0), Time(HOUR));
        assert_eq!((long_ago.wall(Time::ZERO), long_ago.seconds(WallTime(0))), (WallTime(0), 3600.0));
        let after = TimeBase::measured(WallTime(18 * HOUR), Time(HOUR));
        assert_eq!(after.jump_since(before), Some(8 * HOUR.cast_signed()));
        assert_eq!(before.jump_since(after), Some(-8 * HOUR.cast_signed()));
        assert_eq!(TimeBase::measured(WallTime(10 * HOUR + JUMP / 2), Time(HOUR)).jump_since(before), None);
    }

    #[test]
    fn the_clock_of_a_run_never_turns_back_and_knows_what_has_jumped() {
        let now = ClockReading::read().wall.0;
        // The wall clock was set back by eight hours after the start of the run.
        let mut set_back = RunClock::since(WallTime(now + 8 * HOUR), Time(HOUR), 0);
        assert!((HOUR..2 * HOUR).contains(&set_back.now().0));
        let by = set_back.jump().unwrap();
        assert!((-10 * HOUR.cast_signed()..-8 * HOUR.cast_signed()).contains(&by), "{by}");
        set_back.set_recorded(by);
        assert_eq!(set_back.jump(), None);
        assert_eq!(set_back.by_date(Time(HOUR)), Time(HOUR), "releases do not wait for the date");
        // It was put forward by eight hours, which is recorded: the time of the run stays behind the date.
        let mut ahead = RunClock::since(WallTime(now - 9 * HOUR), Time::ZERO, 8 * HOUR.cast_signed());
        assert!((HOUR..2 * HOUR).contains(&ahead.now().0) && ahead.jump().is_none());
        assert_eq!(ahead.by_date(Time(HOUR)), Time(9 * HOUR));
        assert_eq!((ahead.reaches(Time(9 * HOUR)), ahead.reaches(Time(HOUR))), (Time(HOUR), Time::ZERO));
        let engine = RunClock::since(WallTime(now - HOUR), Time::ZERO, 0);
        let later = ahead.offset_to(&engine);
        assert!(later.of(ahead.now()).0.abs_diff(engine.now().0) < HOUR / 60);
        assert_eq!(later.own(later.of(Time(2 * HOUR))), Time(2 * HOUR));
        assert!((ahead.date_on(&engine) + 8.0 * 3600.0).abs() < 60.0);
        ahead.set_recorded(-8 * HOUR.cast_signed());
        assert!(ahead.jump().is_some());
    }
}
