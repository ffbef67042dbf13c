//! Clock times for the axes. The page adds seconds to a local time and needs no time zones.

use jiff::Zoned;
use serde::Serialize;
use slackline_model::Start;

/// The clock time of second 0, and the times at which the clock is set forward or back.
#[derive(Debug, Serialize)]
pub(super) struct Clock {
    /// `2026-03-28T22:00:00`.
    local: String,
    zone: String,
    /// Pairs of seconds after the start, and the offset to the clock of second 0 from then on, seconds.
    shifts: Vec<(f64, i32)>,
}

/// The interval between two samples of the clock, seconds, and the maximum number of samples. A longer
/// workload has longer intervals.
const LOOK: f64 = 6.0 * 3600.0;
const LOOKS: f64 = 4000.0;

impl Clock {
    /// The clock up to `horizon` microseconds; `None` if that is outside the calendar.
    pub(super) fn of(start: &Start, horizon: u64) -> Option<Self> {
        let seconds = horizon as f64 / 1e6;
        let first = start.moment();
        start.after(seconds)?;
        let ahead = |at: f64| {
            let offset = |moment: &Zoned| moment.offset().seconds();
            start.after(at).map_or(0, |moment| offset(&moment) - offset(first))
        };
        let step = LOOK.max(seconds / LOOKS);
        let (mut shifts, mut before, mut at) = (Vec::new(), 0, 0.0);
        while at < seconds {
            let next = (at + step).min(seconds);
            if ahead(next) != before {
                before = ahead(next);
                shifts.push((turn(at, next, &|at| ahead(at) == before), before));
            }
            at = next;
        }
        let local = first.datetime().to_string();
        let zone = first.time_zone().iana_name().map_or_else(|| first.offset().to_string(), str::to_owned);
        Some(Self { local, zone, shifts })
    }
}

/// The first whole second after `from` and up to `to` at which the condition holds. It must hold at `to`.
fn turn(from: f64, to: f64, holds: &dyn Fn(f64) -> bool) -> f64 {
    let (mut before, mut after) = (from.floor() as i64, to.ceil() as i64);
    while after - before > 1 {
        let middle = before.midpoint(after);
        *(if holds(middle as f64) { &mut after } else { &mut before }) = middle;
    }
    after as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_set_forward_in_the_night_of_spring() {
        let start = Start::parse("2026-03-28T22:00[Europe/Berlin]").unwrap();
        let clock = Clock::of(&start, 24 * 3_600_000_000).unwrap();
        assert_eq!((clock.local.as_str(), clock.zone.as_str()), ("2026-03-28T22:00:00", "Europe/Berlin"));
        assert_eq!(clock.shifts, [(4.0 * 3600.0, 3600)]);
    }
}
