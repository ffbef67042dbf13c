//! Cron expressions (five fields) in a time zone: each time occurs exactly once.
//!
//! Fixed times of day: one that daylight saving time skips comes at the end of the gap, and of one that occurs twice
//! the first counts. So every date has all its times, once each. With `*` or a step in the minute or the hour, times
//! come by elapsed time, as in Vixie cron: also through an hour that occurs twice, and none in a gap.

use cronexpr::{Crontab, MakeTimestamp};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use slackline_model::WallTime;

use crate::api::Schedule;
use crate::{SECOND, timestamp, wall_time};

/// No daylight saving change is larger.
const CHANGE_MOST: u64 = 3 * 3600 * SECOND;

/// A schedule such as 29 February has a time within this number of changes of the clock.
const CHANGES_MOST: usize = 1_000;

#[derive(Clone, Debug)]
pub struct Times {
    /// Times without a zone, represented in UTC.
    crontab: Crontab,
    zone: TimeZone,
    /// Whether times come by elapsed time, and not at fixed times of day.
    is_elapsed: bool,
}

impl Times {
    /// Reads an expression and a zone. Without a zone it uses `here`.
    ///
    /// # Errors
    /// The value found, and the value expected.
    pub fn new(schedule: &Schedule, here: &TimeZone) -> Result<Self, String> {
        let cron = schedule.cron.trim();
        if cron.split_whitespace().count() != 5 {
            return Err(format!(
                "schedule: found {cron:?}, expected five fields such as 0 2 * * 1-5: minute, hour, day of month, month, day of week"
            ));
        }
        let zone = match &schedule.zone {
            None => here.clone(),
            Some(name) => TimeZone::get(name).map_err(|_| {
                format!("schedule: found the time zone {name:?}, expected one such as Europe/Berlin")
            })?,
        };
        let crontab = cronexpr::parse_crontab(&format!("{cron} UTC")).map_err(|error| {
            let said = error.to_string();
            let what = said.lines().last().unwrap_or_default().trim();
            format!(
                "schedule: found {cron:?}, expected minute, hour, day of month, month and day of week: {what}"
            )
        })?;
        let is_elapsed = cron.split_whitespace().take(2).any(|field| field.contains(['*', '/']));
        let times = Self { crontab, zone, is_elapsed };
        if times.after(WallTime::default()).is_none() {
            return Err(format!("schedule: found {cron:?}, which matches no date"));
        }
        Ok(times)
    }

    /// The first time after a moment. `None` if there is none.
    pub fn after(&self, at: WallTime) -> Option<WallTime> {
        #[cfg(test)]
        SEARCHES.with(|searches| searches.set(searches.get() + 1));
        if self.is_elapsed {
            return self.after_elapsed(at);
        }
        let mut wall = self.wall(at);
        let before = at.earlier_by(CHANGE_MOST);
        if self.zone.to_offset(timestamp(before)) != self.zone.to_offset(timestamp(at)) {
            // A clock that is set back repeats times. Skipped times are moved after the change. So the search
            // starts earlier.
            wall = wall.checked_sub(jiff::Span::new().hours(3)).unwrap_or(wall);
        }
        for _ in 0..1_000 {
            wall = self.next_on_wall(wall)?;
            let next = wall_time(self.instant(wall)?);
            if next > at {
                return Some(next);
            }
        }
        None
    }

    /// The first time after a moment, where the clock of the zone runs on through its changes. O(changes of the clock
    /// until then).
    fn after_elapsed(&self, at: WallTime) -> Option<WallTime> {
        let mut wall = self.wall(at);
        let mut from = timestamp(at);
        for _ in 0..CHANGES_MOST {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next().map(|change| change.timestamp());
            let next = offset.to_timestamp(self.next_on_wall(wall)?).ok()?;
            let Some(change) = change.filter(|&change| change <= next) else { return Some(wall_time(next)) };
            // The first local time after the change counts too.
            from = change;
            wall = self.zone.to_datetime(change).checked_sub(jiff::Span::new().seconds(1)).ok()?;
        }
        None
    }

    /// The last time up to `until`, which is `first` or later. O(log of the time between), without listing
    /// the times.
    pub fn last(&self, first: WallTime, until: WallTime) -> WallTime {
        let next = |at: WallTime| self.after(at).filter(|&next| next <= until);
        let mut last = first;
        // The search goes back twice as far each time. The last time of a frequent schedule is near.
        let mut back = 60 * SECOND;
        while back < until.since(first) {
            if let Some(found) = next(until.earlier_by(back)) {
                last = found;
                break;
            }
            back *= 2;
        }
        while let Some(found) = next(last) {
            last = next(found + until.since(found) / 2).unwrap_or(found);
        }
        last
    }

    /// The local time.
    fn wall(&self, at: WallTime) -> DateTime {
        self.zone.to_datetime(timestamp(at))
    }

    /// The first local time after another.
    fn next_on_wall(&self, wall: DateTime) -> Option<DateTime> {
        let as_utc = TimeZone::UTC.to_timestamp(wall).ok()?;
        self.crontab.find_next(MakeTimestamp(as_utc)).ok().map(|next| next.datetime())
    }

    /// When a fixed time of day comes.
    fn instant(&self, wall: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_zoned(wall);
        if let AmbiguousOffset::Gap { before, .. } = ambiguous.offset() {
            // As the clock before the gap would read it, it is after the change.
            // A time at the very beginning of the gap is that of the change itself.
            let skipped = before.to_timestamp(wall).ok()?.checked_add(SignedDuration::from_nanos(1)).ok()?;
            return self.zone.preceding(skipped).next().map(|change| change.timestamp());
        }
        ambiguous.compatible().ok().map(|zoned| zoned.timestamp())
    }

    /// A moment, or the beginning or the end of a date, in the zone of the schedule.
    ///
    /// # Errors
    /// The value found, and the value expected.
    pub fn date(&self, text: &str, is_end: bool) -> Result<WallTime, String> {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(wall_time(at));
        }
        let date = text.parse::<jiff::civil::Date>().ok();
        let date = if is_end { date.and_then(|date| date.tomorrow().ok()) } else { date };
        let at = date.and_then(|date| date.to_zoned(self.zone.clone()).ok());
        let at = at.ok_or_else(|| format!("found {text:?}, expected a date such as 2026-03-01"))?;
        let at = wall_time(at.timestamp());
        Ok(if is_end { at.earlier_by(1) } else { at })
    }

    /// Fills strftime conversions in a text with a moment, in the zone of the schedule.
    ///
    /// # Errors
    /// The value found, and the value expected.
    pub fn filled(&self, text: &str, at: WallTime) -> Result<String, String> {
        if !text.contains('%') {
            return Ok(text.to_owned());
        }
        let zoned = timestamp(at).to_zoned(self.zone.clone());
        jiff::fmt::strtime::format(text, &zoned)
            .map_err(|error| format!("found {text:?}, expected conversions such as %Y-%m-%d: {error}"))
    }
}

#[cfg(test)]
thread_local! {
    /// The number of searches for a next time in this thread.
    static SEARCHES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(crate) fn searches() -> u64 {
    SEARCHES.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::CatchUp;

    #[test]
    fn the_last_time_is_that_of_the_list() {
        let from = at("2026-03-28T00:00:00Z");
        for cron in ["* * * * *", "*/7 2,3 * * *", "30 2 * * *", "0 0 1 * *", "5 4 * * 1", "* 2 * * 6"] {
            for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo"] {
                let times = times(cron, zone);
                let first = times.after(from).unwrap();
                let mut listed = first;
                for step in 0..300 {
                    let until = first + step * step * 97 * SECOND;
                    while let Some(next) = times.after(listed).filter(|&next| next <= until) {
                        listed = next;
                    }
                    assert_eq!(times.last(first, until), listed, "{cron} {zone} {}", timestamp(until));
                }
            }
        }
    }

    #[test]
    fn times_are_those_of_a_search_minute_by_minute() {
        let minute = 60 * SECOND;
        let matches = |times: &Times, wall: DateTime| {
            let before = wall.checked_sub(jiff::Span::new().seconds(1)).unwrap();
            times.next_on_wall(before) == Some(wall)
        };
        // Elapsed times: the minutes whose local time matches. Fixed times: also the end of a gap in which one was, and
        // the second occurrence of a local time never.
        let is_time = |times: &Times, at: WallTime| {
            let wall = times.wall(at);
            if times.is_elapsed {
                return matches(times, wall);
            }
            let earlier = times.wall(at.earlier_by(minute));
            let skipped = (1..=180).map(|k| earlier.checked_add(jiff::Span::new().minutes(k)).unwrap());
            let mut skipped = skipped.take_while(|skipped| *skipped < wall);
            let is_second = (1..=180).any(|k| times.wall(at.earlier_by(k * minute)) == wall);
            !is_second && matches(times, wall) || skipped.any(|skipped| matches(times, skipped))
        };
        let slow = |times: &Times, at: WallTime| {
            let first = WallTime(at.0 / minute * minute);
            (1..100_000).map(|k| first + k * minute).find(|&at| is_time(times, at))
        };
        for cron in ["* * * * *", "*/20 * * * *", "30 0,2,3 * * *", "0 2 * * *", "15 2 * * *", "30 */2 * * *"]
        {
            for zone in ["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca"] {
                let times = times(cron, zone);
                for start in ["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-04-04T10:00:00Z"] {
                    for step in 0..6 {
                        let at = at(start) + step * 181 * 61 * SECOND;
                        assert_eq!(times.after(at), slow(&times, at), "{cron} {zone} {}", timestamp(at));
                    }
                }
            }
        }
    }

    fn times(cron: &str, zone: &str) -> Times {
        let schedule = Schedule { cron: cron.into(), zone: Some(zone.into()), catch_up: CatchUp::default() };
        Times::new(&schedule, &TimeZone::UTC).unwrap()
    }

    fn at(text: &str) -> WallTime {
        wall_time(text.parse::<Timestamp>().unwrap())
    }

    /// The first `n` times after a moment, in UTC.
    fn next(times: &Times, from: &str, n: usize) -> Vec<String> {
        let mut now = at(from);
        let mut found = Vec::new();
        for _ in 0..n {
            now = times.after(now).unwrap();
            found.push(timestamp(now).to_string());
        }
        found
    }

    #[test]
    fn a_night_is_every_night_also_when_clocks_are_put_forward_or_back() {
        let two = times("30 2 * * *", "Europe/Berlin");
        // 29 March 2026 has no 02:30; the next valid instant is 03:00.
        assert_eq!(
            next(&two, "2026-03-27T12:00:00Z", 4),
            ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z",]
        );
        // 25 October has 02:30 twice; only the first counts.
        assert_eq!(
            next(&two, "2026-10-24T12:00:00Z", 3),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z",]
        );
    }

    #[test]
    fn days_of_the_week_are_those_of_the_zone() {
        let monday = times("0 1 * * 1", "Asia/Tokyo");
        assert_eq!(
            next(&monday, "2026-11-24T00:00:00Z", 2),
            ["2026-11-29T16:00:00Z", "2026-12-06T16:00:00Z"]
        );
    }

    #[test]
    fn every_quarter_of_an_hour_comes_through_all_changes_of_the_clock() {
        for zone in ["Europe/Berlin", "Australia/Lord_Howe", "UTC"] {
            let quarters = times("*/15 * * * *", zone);
            let (mut now, mut count) = (at("2026-01-01T00:00:00Z"), 0);
            while let Some(next) = quarters.after(now).filter(|&next| next <= at("2027-01-01T00:00:00Z")) {
                assert_eq!(next.since(now), 15 * 60 * SECOND, "{zone} {}", timestamp(next));
                (now, count) = (next, count + 1);
            }
            assert_eq!(count, 365 * 96, "{zone}");
        }
    }

    #[test]
    fn a_fixed_time_comes_on_every_day_of_a_year_once() {
        for (zone, cron) in [("Europe/Berlin", "30 2 * * *"), ("Australia/Lord_Howe", "15 2 * * *")] {
            let nights = times(cron, zone);
            let (mut now, mut days) = (at("2025-12-31T12:00:00Z"), std::collections::BTreeSet::new());
            let mut count = 0;
            while let Some(next) = nights.after(now).filter(|&next| next < at("2026-12-31T12:00:00Z")) {
                days.insert(nights.wall(next).date());
                (now, count) = (next, count + 1);
            }
            assert_eq!((count, days.len()), (365, 365), "{zone}");
        }
    }

    #[test]
    fn errors_are_reported() {
        let wrong = |cron: &str, zone: Option<&str>| {
            let zone = zone.map(str::to_owned);
            let schedule = Schedule { cron: cron.into(), zone, catch_up: CatchUp::default() };
            Times::new(&schedule, &TimeZone::UTC).err().unwrap()
        };
        assert!(wrong("0 2 * *", None).starts_with("schedule: found \"0 2 * *\", expected five fields"));
        assert!(wrong("0 25 * * *", None).contains("found \"0 25 * * *\", expected minute, hour"));
        assert!(wrong("0 2 * * *", Some("Mars/Base")).contains("time zone \"Mars/Base\""));
        assert!(wrong("0 0 31 2 *", None).contains("matches no date"), "{}", wrong("0 0 31 2 *", None));
    }

    #[test]
    fn texts_are_filled_with_the_time_in_its_zone() {
        let two = times("30 2 * * *", "Europe/Berlin");
        let at = at("2026-03-01T23:30:00Z");
        assert_eq!(two.filled("%Y-%m-%d", at).unwrap(), "2026-03-02");
        assert_eq!(two.filled("plain", at).unwrap(), "plain");
        assert!(two.filled("%Q%", at).is_err());
    }
}
