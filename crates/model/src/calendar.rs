//! Converts between clock times and seconds after the start of a workload: dates and times, times of day,
//! time zones.
//!
//! A [`Start`] has the moment of second 0 and the time zone of clock times; a [`TimeSpec`] is a point in time
//! in the form in which it was written. Rules, which `docs/times.md` explains to users:
//! - a time of day stands for the first such time from a given second on;
//! - a time that a change of clocks skips is later by the change (02:30 becomes 03:30);
//! - if a time occurs twice, a date and time means the first, a time of day the next one to come.
//!
//! Time zones are those of the database in the program, so a document means the same on every machine.

use std::fmt;
use std::ops::Bound;

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::{DateTimeParser, Pieces};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::duration;

/// The allowed forms of a point in time, for messages.
pub const EXPECTED: &str = "seconds, a duration such as 2h, a date and time such as 2026-03-01T06:00[Europe/Berlin], or a \
                            time of day such as 06:00";

/// The allowed forms of the start of a workload, for messages.
pub const EXPECTED_START: &str =
    "a date and time with a time zone or offset such as 2026-03-01T06:00[Europe/Berlin]";

const ZONE: &str = "the name of a time zone such as Europe/Berlin";
const OFFSET: &str = "an offset that the time zone has at that time";

/// A day as documents write it: `2026-03-01`.
pub fn day(text: &str) -> Option<Date> {
    text.parse::<Date>().ok().filter(|day| day.to_string() == text)
}

/// The number of days from one to another, including both; 0 if the second is before the first, and `None` if
/// either is no valid day.
pub fn days_until(first: &str, last: &str) -> Option<u64> {
    let days = i64::from(day(last)?.since(day(first)?).ok()?.get_days());
    Some(u64::try_from(days + 1).unwrap_or(0))
}

/// The day `days` days later, as documents write it; `None` outside the calendar.
pub fn day_after(day: Date, days: u64) -> Option<String> {
    let days = i64::try_from(days).ok()?;
    Some(day.checked_add(jiff::Span::new().try_days(days).ok()?).ok()?.to_string())
}

/// The moment of second 0 of a workload, with the time zone of its clock times.
#[derive(Clone, Debug)]
pub struct Start(Zoned);

impl PartialEq for Start {
    fn eq(&self, other: &Self) -> bool {
        // The library compares only the moments, not the zones. Two zones of one name differ if one comes
        // from this machine and the other from a table.
        let [one, two] = [self.0.time_zone(), other.0.time_zone()];
        let is_same_zone = match (one.iana_name(), two.iana_name()) {
            (Some(one), Some(two)) => one == two,
            _ => one == two,
        };
        self.0 == other.0 && is_same_zone
    }
}

/// The form that [`Start::parse`] reads.
impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Zoned> for Start {
    fn from(moment: Zoned) -> Self {
        Self(moment)
    }
}

impl Start {
    /// Reads a date and time with a time zone or an offset.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        match ClockTime::parse(text)
            .map_err(|expected| expected.unwrap_or_else(|| EXPECTED_START.to_owned()))?
        {
            ClockTime::Zoned(moment) => Ok(Self(moment)),
            ClockTime::Local(_) | ClockTime::Daily(_) => Err(EXPECTED_START.to_owned()),
        }
    }

    /// The moment with its time zone.
    pub fn moment(&self) -> &Zoned {
        &self.0
    }

    /// The same moment, with clock times in the zone of `other`.
    #[must_use]
    pub fn in_zone_of(&self, other: &Self) -> Self {
        Self(self.0.with_time_zone(other.0.time_zone().clone()))
    }

    /// The clock `seconds` seconds later, to the nearest microsecond; `None` outside the calendar.
    pub fn after(&self, seconds: f64) -> Option<Zoned> {
        let micros = (seconds * 1e6).round();
        let span = (micros.abs() < 9e18).then(|| SignedDuration::from_micros(micros as i64))?;
        self.0.checked_add(span).ok()
    }

    /// The day `seconds` seconds later, as documents write it; `None` outside the calendar.
    pub fn day_at(&self, seconds: f64) -> Option<String> {
        Some(self.after(seconds)?.date().to_string())
    }

    /// The week of the year `seconds` seconds later, as ISO 8601 writes it (`2026-W09`); `None` outside the
    /// calendar.
    pub fn week_at(&self, seconds: f64) -> Option<String> {
        let week = self.after(seconds)?.date().iso_week_date();
        Some(format!("{}-W{:02}", week.year(), week.week()))
    }

    /// Seconds from the start to `moment`.
    fn until(&self, moment: Timestamp) -> f64 {
        duration::seconds_nearest(moment.duration_since(self.0.timestamp()))
    }

    /// Seconds to the first time of day `time` within the bound; `None` outside the calendar.
    fn first(&self, time: Time, bound: Bound<f64>) -> Option<f64> {
        let (Bound::Included(from) | Bound::Excluded(from)) = bound else { return None };
        let (zone, day) = (self.0.time_zone(), self.after(from)?.date());
        // Two days on, because some zones skipped a whole day.
        let days = [Ok(day), day.tomorrow(), day.tomorrow().and_then(Date::tomorrow)];
        let moments = days.into_iter().flatten().flat_map(|day| {
            let ambiguous = zone.to_ambiguous_timestamp(day.to_datetime(time));
            // The same moment twice, except where clocks are set back.
            [ambiguous.compatible(), ambiguous.later()]
        });
        let seconds = moments.flatten().map(|moment| self.until(moment));
        let within = |seconds: &f64| match bound {
            Bound::Excluded(from) => *seconds > from,
            _ => *seconds >= from,
        };
        seconds.filter(within).min_by(f64::total_cmp)
    }
}

/// A time zone for the clock times of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Default for Zone {
    /// UTC.
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl Zone {
    /// The zone of that name, such as `Europe/Berlin`.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn parse(name: &str) -> Result<Self, String> {
        TimeZoneDatabase::bundled().get(name).map(Self).map_err(|_| ZONE.to_owned())
    }

    /// Milliseconds from 1970-01-01T00:00Z to a date and time, which is in this zone if it has neither zone
    /// nor offset; `None` if the text is invalid.
    pub fn unix_millis(&self, text: &str) -> Option<i64> {
        let moment = match ClockTime::parse(text).ok()? {
            ClockTime::Zoned(moment) => moment,
            ClockTime::Local(time) => time.to_zoned(self.0.clone()).ok()?,
            ClockTime::Daily(_) => return None,
        };
        Some(moment.timestamp().as_millisecond())
    }

    /// The moment `unix_millis` milliseconds after 1970-01-01T00:00Z, with clock times in this zone; `None`
    /// outside the calendar.
    pub fn start(&self, unix_millis: i64) -> Option<Start> {
        let moment = Timestamp::from_millisecond(unix_millis).ok()?;
        Some(Start(moment.to_zoned(self.0.clone())))
    }
}

/// A point in time in the form in which it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeSpec {
    /// Seconds after the start of the workload.
    Seconds(f64),
    /// A date and time with a time zone or an offset.
    Moment(Timestamp),
    /// A date and time in the time zone of the start.
    Local(DateTime),
    /// A time of day in the time zone of the start.
    Daily(Time),
}

impl Default for TimeSpec {
    fn default() -> Self {
        Self::Seconds(0.0)
    }
}

impl fmt::Display for TimeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => seconds.fmt(f),
            Self::Moment(moment) => moment.fmt(f),
            Self::Local(date) => date.fmt(f),
            Self::Daily(time) => time.fmt(f),
        }
    }
}

impl TimeSpec {
    /// Reads a duration after the start, a date and time, or a time of day.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.contains(':') {
            // A reason is useful only if it says more than that the text is no duration.
            let reason = |expected: String| match fault(text) {
                Some(fault) => fault,
                None if expected == duration::EXPECTED => EXPECTED.to_owned(),
                None => expected,
            };
            return duration::parse(text).map(Self::Seconds).map_err(reason);
        }
        match ClockTime::parse(text).map_err(|expected| expected.unwrap_or_else(|| EXPECTED.to_owned()))? {
            ClockTime::Zoned(moment) => Ok(Self::Moment(moment.timestamp())),
            ClockTime::Local(date) => Ok(Self::Local(date)),
            ClockTime::Daily(time) => Ok(Self::Daily(time)),
        }
    }

    /// Reads an option's value: a number of seconds, or as [`Self::parse`].
    ///
    /// # Errors
    /// What was expected instead.
    pub fn parse_option(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Seconds).or_else(|_| Self::parse(text))
    }

    /// Seconds after the start; a time of day is the first one within the bound.
    ///
    /// # Errors
    /// Found and expected: a clock time without a start, or before it; a time beyond the calendar.
    pub fn seconds(&self, start: Option<&Start>, bound: Bound<f64>) -> Result<f64, String> {
        let kind = match self {
            Self::Seconds(seconds) => return Ok(*seconds),
            Self::Moment(_) | Self::Local(_) => "a date and time",
            Self::Daily(_) => "a time of day",
        };
        let Some(start) = start else {
            return Err(format!(
                "found {kind}, {self}, expected seconds or a duration, or a `start` at the top of the workload"
            ));
        };
        let zone = start.0.time_zone();
        let seconds = match self {
            Self::Seconds(seconds) => Some(*seconds),
            Self::Moment(moment) => Some(start.until(*moment)),
            Self::Local(date) => {
                zone.to_ambiguous_timestamp(*date).compatible().ok().map(|moment| start.until(moment))
            }
            Self::Daily(time) => start.first(*time, bound),
        };
        match seconds {
            Some(seconds) if seconds >= 0.0 => Ok(seconds),
            Some(_) => Err(format!(
                "found {kind}, {self}, before the start of the workload, {start}, expected a later time"
            )),
            None => Err(format!("found {kind}, {self}, beyond the year 9999, expected an earlier one")),
        }
    }

    /// Whether it is a date and time before the start. A time of day never is: it is the next one.
    pub fn is_before(&self, start: &Start) -> bool {
        let zone = start.0.time_zone();
        match self {
            Self::Moment(moment) => start.until(*moment) < 0.0,
            Self::Local(date) => {
                let moment = zone.to_ambiguous_timestamp(*date).compatible();
                moment.is_ok_and(|moment| start.until(moment) < 0.0)
            }
            Self::Seconds(_) | Self::Daily(_) => false,
        }
    }
}

/// A clock time, by its missing parts.
enum ClockTime {
    Zoned(Zoned),
    Local(DateTime),
    Daily(Time),
}

impl ClockTime {
    /// Reads a clock time. If the text was meant as one, the error names the problem.
    fn parse(text: &str) -> Result<Self, Option<String>> {
        let Ok(pieces) = Pieces::parse(text) else {
            // The library accepts more forms of times of day than users expect.
            let is_time =
                text.contains(':') && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b':' | b'.'));
            return text.parse().map(Self::Daily).ok().filter(|_| is_time).ok_or_else(|| fault(text));
        };
        let Some(time) = pieces.time() else { return Err(None) };
        let date = pieces.date().to_datetime(time);
        let zones = TimeZoneDatabase::bundled();
        match (pieces.time_zone_annotation(), pieces.to_numeric_offset()) {
            (Some(zone), _) => {
                zone.to_time_zone_with(&zones).map_err(|_| Some(ZONE.to_owned()))?;
                let read = DateTimeParser::new().parse_zoned_with(&zones, text);
                read.map(Self::Zoned).map_err(|_| Some(OFFSET.to_owned()))
            }
            (None, Some(offset)) => {
                let moment = offset.to_timestamp(date).map_err(|_| None)?;
                Ok(Self::Zoned(moment.to_zoned(TimeZone::fixed(offset))))
            }
            (None, None) => Ok(Self::Local(date)),
        }
    }
}

/// The expected form of a text that is almost a clock time: a number in the calendar, or all its digits.
fn fault(text: &str) -> Option<String> {
    match mended(text) {
        Ok(mended) => Some(mended).filter(|mended| mended != text && ClockTime::parse(mended).is_ok()),
        Err(fault) => fault,
    }
}

/// A text that is almost a clock time, with all its digits. The error names the part that no calendar has, if
/// it is known.
fn mended(text: &str) -> Result<String, Option<String>> {
    let (date, rest) = match text.split_once(['T', ' ']) {
        Some((date, rest)) => (Some(date), Some(rest)),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    let date = date.map(mended_date).transpose()?;
    let Some(rest) = rest else {
        return Err(date.map(|date| format!("a time of day after the date, as in {date}T00:00")));
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.')).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(end);
    let time = mended_time(time)?;
    Ok(date.map_or_else(String::new, |date| date + "T") + &time + zone)
}

fn mended_date(text: &str) -> Result<String, Option<String>> {
    let numbers: Vec<Option<i16>> = text.split('-').map(|number| number.parse().ok()).collect();
    let &[Some(year @ 1000..), Some(month), Some(day)] = numbers.as_slice() else { return Err(None) };
    let first = i8::try_from(month).ok().and_then(|month| Date::new(year, month, 1).ok());
    let first = first.ok_or_else(|| Some("a month from 01 to 12".to_owned()))?;
    let last = first.days_in_month();
    if !(1..=i16::from(last)).contains(&day) {
        return Err(Some(format!("a day from 01 to {last}, which are all of {}", first.strftime("%B %Y"))));
    }
    Ok(format!("{year}-{month:02}-{day:02}"))
}

fn mended_time(text: &str) -> Result<String, Option<String>> {
    let (clock, fraction) =
        text.split_once('.').map_or((text, None), |(clock, fraction)| (clock, Some(fraction)));
    let numbers: Option<Vec<u16>> = clock.split(':').map(|number| number.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| (2..=3).contains(&numbers.len())).ok_or(None)?;
    let ends = [("an hour", 23), ("a minute", 59), ("a second", 59)];
    if let Some((_, (name, end))) = numbers.iter().zip(ends).find(|(number, (_, end))| *number > end) {
        return Err(Some(format!("{name} from 00 to {end}")));
    }
    let digits: Vec<String> = numbers.iter().map(|number| format!("{number:02}")).collect();
    Ok(digits.join(":") + &fraction.map_or_else(String::new, |fraction| format!(".{fraction}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn start(text: &str) -> Start {
        Start::parse(text).unwrap_or_else(|expected| panic!("{text}: expected {expected}"))
    }

    fn seconds(when: &str, start: &Start, bound: Bound<f64>) -> f64 {
        TimeSpec::parse(when).unwrap().seconds(Some(start), bound).unwrap()
    }

    const FROM: Bound<f64> = Bound::Included(0.0);
    const HOUR: f64 = 3600.0;

    #[test]
    fn dates_and_times_count_from_the_start() {
        let start = start("2026-03-01T00:00[Europe/Berlin]");
        for when in [
            "6h",
            "06:00",
            "06:00:00",
            "2026-03-01T06:00",
            "2026-03-01 06:00:00",
            "2026-03-01T06:00[Europe/Berlin]",
            "2026-03-01T06:00:00+01:00",
            "2026-03-01T05:00:00Z",
            "2026-03-01T00:00-05:00[America/New_York]",
        ] {
            assert_eq!(seconds(when, &start, FROM), 6.0 * HOUR, "{when}");
        }
        assert_eq!(seconds("06:00:00.25", &start, FROM), 6.0 * HOUR + 0.25);
        assert_eq!(seconds("2026-03-02T06:00", &start, FROM), 30.0 * HOUR);
    }

    #[test]
    fn a_time_of_day_is_the_first_one_from_a_second_on() {
        let start = start("2026-03-01T06:00[Europe/Berlin]");
        assert_eq!(seconds("06:00", &start, FROM), 0.0, "at the start counts as a release");
        assert_eq!(
            seconds("06:00", &start, Bound::Excluded(0.0)),
            24.0 * HOUR,
            "a deadline is after the release"
        );
        assert_eq!(seconds("05:59", &start, FROM), 24.0 * HOUR - 60.0);
        assert_eq!(seconds("07:00", &start, Bound::Excluded(60.0 * HOUR)), 73.0 * HOUR);
    }

    /// In Berlin, 02:00 to 03:00 is skipped on 29 March 2026, and occurs twice on 25 October 2026.
    #[test]
    fn a_time_that_is_left_out_is_an_hour_later() {
        let start = start("2026-03-29T00:00[Europe/Berlin]");
        assert_eq!(seconds("02:30", &start, FROM), 2.5 * HOUR, "03:30 by the new time");
        assert_eq!(seconds("2026-03-29T02:30", &start, FROM), 2.5 * HOUR);
        assert_eq!(seconds("2026-03-29T02:30[Europe/Berlin]", &start, FROM), 2.5 * HOUR);
        assert_eq!(seconds("06:00", &start, FROM), 5.0 * HOUR, "that night has an hour less");
        assert_eq!(seconds("02:30", &start, Bound::Excluded(2.5 * HOUR)), 25.5 * HOUR);
    }

    #[test]
    fn if_a_time_occurs_twice_a_date_means_the_first_and_a_time_of_day_the_next() {
        let start = start("2026-10-25T00:00[Europe/Berlin]");
        assert_eq!(seconds("2026-10-25T02:30", &start, FROM), 2.5 * HOUR);
        assert_eq!(seconds("2026-10-25T02:30+01:00", &start, FROM), 3.5 * HOUR, "an offset says which");
        assert_eq!(seconds("02:30", &start, FROM), 2.5 * HOUR);
        assert_eq!(
            seconds("02:30", &start, Bound::Excluded(2.75 * HOUR)),
            3.5 * HOUR,
            "still the same night"
        );
        assert_eq!(seconds("02:30", &start, Bound::Excluded(3.5 * HOUR)), 27.5 * HOUR);
        assert_eq!(seconds("06:00", &start, FROM), 7.0 * HOUR, "that night has an hour more");
    }

    #[test]
    fn clock_times_of_a_log_are_those_of_its_zone() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let millis = 1_772_319_600_000;
        assert_eq!(berlin.unix_millis("2026-03-01T00:00:00"), Some(millis));
        assert_eq!(berlin.unix_millis("2026-02-28T23:00:00Z"), Some(millis), "an offset goes before");
        assert_eq!(berlin.start(millis), Some(start("2026-03-01T00:00[Europe/Berlin]")));
        assert_eq!(Zone::default().unix_millis("2026-02-28 23:00:00"), Some(millis));
        assert_eq!((berlin.unix_millis("06:00"), berlin.unix_millis("Unknown")), (None, None));
        assert_eq!(berlin.start(i64::MAX), None);
        assert_eq!(Zone::parse("Europe/Berln"), Err(ZONE.to_owned()));
    }

    #[test]
    fn a_day_that_a_zone_has_left_out_is_survived() {
        let start = start("2011-12-29T23:00[Pacific/Apia]");
        assert_eq!(seconds("22:00", &start, FROM), 23.0 * HOUR, "30 December did not happen");
    }

    #[test]
    fn a_start_needs_a_zone_or_an_offset_and_is_written_as_it_is_read() {
        for text in ["2026-03-01T00:00[Europe/Berlin]", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00.5-03:30"]
        {
            let first = start(text);
            assert_eq!(start(&first.to_string()), first, "{text}");
        }
        assert_ne!(start("2026-03-01T00:00Z"), start("2026-03-01T01:00[Europe/Berlin]"), "the zone counts");
        for text in ["", "06:00", "2h", "2026-03-01", "2026-03-01T00:00", "noon"] {
            assert_eq!(Start::parse(text), Err(EXPECTED_START.to_owned()), "{text}");
        }
        for (text, expected) in [
            ("2026-03-01T00:00[Europe/Berln]", ZONE),
            ("2026-03-01T00:00+05:00[Europe/Berlin]", OFFSET),
            ("2026-03-01T24:00Z", "an hour from 00 to 23"),
            ("2026-3-1 6:00[Europe/Berlin]", "2026-03-01T06:00[Europe/Berlin]"),
        ] {
            assert_eq!(Start::parse(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn invalid_points_in_time_are_refused() {
        for text in ["", "noon", " 06:00", "06:00Z", "T06:00", "06:00 pm", "０６:００", "1:2:3:4"] {
            assert_eq!(TimeSpec::parse(text), Err(EXPECTED.to_owned()), "{text}");
        }
        assert!(TimeSpec::parse("1y").unwrap_err().contains("have no fixed length"));
        assert!(TimeSpec::parse("-2h").unwrap_err().contains("not negative"));
        assert_eq!(TimeSpec::parse_option("90"), Ok(TimeSpec::Seconds(90.0)));
    }

    #[test]
    fn invalid_dates_are_reported_and_missing_digits_are_added() {
        for (text, expected) in [
            ("25:00", "an hour from 00 to 23"),
            ("24:00", "an hour from 00 to 23"),
            ("06:60", "a minute from 00 to 59"),
            ("06:00:75", "a second from 00 to 59"),
            ("6:00", "06:00"),
            ("6:5:0.5", "06:05:00.5"),
            ("2026-02-30T06:00", "a day from 01 to 28, which are all of February 2026"),
            ("2026-02-30", "a day from 01 to 28, which are all of February 2026"),
            ("2026-13-01T06:00", "a month from 01 to 12"),
            ("2026-3-1T6:00", "2026-03-01T06:00"),
            ("2026-03-01 6:00+01:00", "2026-03-01T06:00+01:00"),
            ("2026-03-01", "a time of day after the date, as in 2026-03-01T00:00"),
        ] {
            assert_eq!(TimeSpec::parse(text), Err(expected.to_owned()), "{text}");
        }
        assert!(TimeSpec::parse("1.5d").unwrap_err().starts_with("36h"));
    }

    #[test]
    fn a_clock_time_without_a_start_or_before_it_says_so() {
        let error = |text: &str, start: Option<&Start>| {
            TimeSpec::parse(text).unwrap().seconds(start, FROM).unwrap_err()
        };
        assert_eq!(
            error("06:00", None),
            "found a time of day, 06:00:00, expected seconds or a duration, or a `start` at the top of the workload"
        );
        assert!(
            error("2026-03-01T06:00Z", None)
                .starts_with("found a date and time, 2026-03-01T06:00:00Z, expected")
        );
        let start = start("2026-03-01T00:00[Europe/Berlin]");
        assert!(
            error("2026-02-28T06:00", Some(&start))
                .contains("before the start of the workload, 2026-03-01T00:00:00+01:00[Europe/Berlin]")
        );
        let far = TimeSpec::parse("06:00").unwrap().seconds(Some(&start), Bound::Excluded(1e18)).unwrap_err();
        assert!(far.contains("beyond the year 9999"), "{far}");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[0-9:.+\\-TZ /\\[\\]a-zEB]{0,24}", from in 0.0..1e12) {
            let start = start("2026-03-29T00:00[Europe/Berlin]");
            let _ = Start::parse(&text);
            if let Ok(when) = TimeSpec::parse(&text)
                && let Ok(seconds) = when.seconds(Some(&start), Bound::Excluded(from))
            {
                prop_assert!(seconds.is_finite() && seconds >= 0.0, "{}: {}", text, seconds);
            }
        }

        #[test]
        fn the_clock_and_seconds_are_inverse(seconds in 0..3_000_000_000_u32, zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"])) {
            let start = start(&format!("2026-03-01T12:00[{zone}]"));
            let clock = start.after(f64::from(seconds)).unwrap();
            let when = TimeSpec::parse(&clock.to_string()).unwrap();
            prop_assert_eq!(when.seconds(Some(&start), FROM), Ok(f64::from(seconds)));
        }
    }
}
