//! The one file of the local engine that owns the wall clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use slackline_model::{Span, Start, Time};

/// Time since the start of a run, which may have been before this process was.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    /// The start of this process's part.
    here: Instant,
    /// How long the run had lasted by then.
    before: Duration,
}

impl RunClock {
    /// The clock of a run that started so many microseconds after 1970. It shows no less than `seen`, so that a
    /// wall clock that was set back does not turn time around.
    pub fn since(started: u64, seen: Time) -> Self {
        let before = Duration::from_micros(unix_micros().saturating_sub(started).max(seen.0));
        #[expect(clippy::disallowed_methods, reason = "a real engine lives in real time")]
        Self { here: Instant::now(), before }
    }

    /// The same clock for a run that started so much later; before that it shows 0.
    #[must_use]
    pub fn of_later(self, by: Span) -> Self {
        let by = Duration::from_micros(by.0);
        match self.before.checked_sub(by) {
            Some(before) => Self { before, ..self },
            None => Self { here: self.here + by.saturating_sub(self.before), before: Duration::ZERO },
        }
    }

    /// Now.
    pub fn now(&self) -> Time {
        Time(u64::try_from((self.before + self.here.elapsed()).as_micros()).unwrap_or(u64::MAX))
    }
}

/// Time since some moment of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// That moment is now.
    pub(crate) fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "processes are waited for in real time")]
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Microseconds since 1970.
pub fn unix_micros() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a run remembers when it started")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// That many microseconds after 1970 in the time zone of this machine, or UTC if it has none.
pub fn local(micros: u64) -> Start {
    let moment = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    moment.unwrap_or(Timestamp::MAX).to_zoned(zone).into()
}

/// What the environment calls this machine's time zone (`TZ`), if there is no such zone: then [`local`] means UTC.
pub fn unknown_zone() -> Option<String> {
    let said = std::env::var_os("TZ").filter(|_| TimeZone::try_system().is_err())?;
    Some(said.to_string_lossy().into_owned())
}

/// Waits.
pub fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "an old process takes a moment to go")]
    std::thread::sleep(time);
}
