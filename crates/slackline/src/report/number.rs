//! Number formats for tables and messages. JSON and CSV have all digits, and times in seconds.
//!
//! A duration is written in seconds below 10,000 s and as `1d 14h 27m` from there on. A column uses the
//! format of its longest duration. A point in time is written as a clock time if the start of the workload is
//! known (`06:00`). It has the day if that is not the day of the start, and the offset if the clock shows
//! this time twice. Without a start it is written as a duration.

use jiff::tz::AmbiguousOffset;
use jiff::{RoundMode, Span, SpanRound, Unit as Part, Zoned, ZonedRound};
use slackline_model::Start;

use slackline_trace::documents::schedule::gap_text;

pub use crate::words::counted;
use crate::words::grouped;

/// The sign for a missing number.
pub const NOTHING: &str = "–";

/// The number format of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Costs and other measured quantities.
    Measure,
    /// Durations, in seconds.
    Seconds,
    /// Whole numbers.
    Count,
    /// Fractions, written as percentages.
    Percent,
    /// Gaps to a lower bound: percentages, rounded up ([`slackline_trace::documents::schedule::gap_text`]).
    Gap,
}

/// A column of numbers with the same number of decimals, for easy comparison: about four significant digits
/// of the largest one.
pub fn column(values: &[Option<f64>], unit: Unit) -> Vec<String> {
    let largest = values.iter().flatten().map(|v| v.abs()).fold(0.0, f64::max);
    values.iter().map(|value| value.map_or_else(|| NOTHING.to_owned(), |v| write(v, unit, largest))).collect()
}

/// Points in time as clock times, all with the same precision. Without a start: durations since second 0.
///
/// Tenths of seconds are shown if the times span less than 100 s, and seconds if one of the times is not a
/// whole minute.
pub fn instants(values: &[Option<f64>], start: Option<&Start>) -> Vec<String> {
    start.and_then(|start| clocks(values, start)).unwrap_or_else(|| column(values, Unit::Seconds))
}

/// A single duration, with its unit.
pub fn duration(seconds: f64) -> String {
    let text = number(seconds, Unit::Seconds);
    if seconds.abs() < LONG { text + " s" } else { text }
}

/// A single point in time, with its unit unless it is a clock time.
pub fn instant(seconds: f64, start: Option<&Start>) -> String {
    let clock = start.and_then(|start| clocks(&[Some(seconds)], start)?.pop());
    clock.unwrap_or_else(|| duration(seconds))
}

/// A difference as a percentage with its sign, without one if it rounds to zero.
pub(crate) fn signed_percent(share: f64) -> String {
    let percent = (share * 1000.0).round() / 10.0;
    if percent == 0.0 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
}

/// `4 maps, 2 reduces`; `5 tasks` of a job without reduces, such as a plain command.
pub fn tasks_of_job(maps: u64, reduces: u64) -> String {
    if reduces == 0 {
        counted(maps, "task")
    } else {
        format!("{}, {}", counted(maps, "map"), counted(reduces, "reduce"))
    }
}

/// A single number.
pub fn number(value: f64, unit: Unit) -> String {
    write(value, unit, value.abs())
}

fn write(value: f64, unit: Unit, largest: f64) -> String {
    match unit {
        Unit::Count => grouped(value, 0),
        Unit::Percent => format!("{} %", grouped(value * 100.0, digits(largest * 100.0).min(1))),
        Unit::Gap => gap_text(value),
        Unit::Seconds if largest >= LONG => in_units(value),
        Unit::Measure | Unit::Seconds => grouped(value, digits(largest)),
    }
}

/// The number of seconds from which on other units are used.
const LONG: f64 = 10_000.0;

/// `1d 14h 27m`: in seconds below one day, otherwise in minutes.
fn in_units(seconds: f64) -> String {
    const DAY: f64 = 86_400.0;
    let smallest = if seconds.abs() < DAY { Part::Second } else { Part::Minute };
    let round = SpanRound::new().largest(Part::Day).smallest(smallest).mode(RoundMode::HalfExpand);
    let span = Span::new().try_seconds(seconds.abs().round() as i64);
    let Ok(span) = span.and_then(|span| span.round(round.days_are_24_hours())) else {
        return format!("{seconds:.3e}s");
    };
    format!("{}{span:#}", if seconds < 0.0 && !span.is_zero() { "-" } else { "" })
}

/// Clock times; `None` if a time is outside the calendar.
fn clocks(values: &[Option<f64>], start: &Start) -> Option<Vec<String>> {
    let known = || values.iter().flatten().copied();
    let spread = known().fold(f64::NEG_INFINITY, f64::max) - known().fold(f64::INFINITY, f64::min);
    let tick = if spread < 100.0 { (Part::Millisecond, 100) } else { (Part::Second, 1) };
    let round = ZonedRound::new().smallest(tick.0).increment(tick.1);
    let rounded = |seconds| start.after(seconds)?.round(round).ok();
    let moments = values.iter().map(|value| value.map_or(Some(None), |seconds| rounded(seconds).map(Some)));
    let moments: Vec<Option<Zoned>> = moments.collect::<Option<_>>()?;
    let shown = || moments.iter().flatten();
    let time = if shown().any(|moment| moment.subsec_nanosecond() != 0) {
        "%H:%M:%S.%1f"
    } else if shown().any(|moment| moment.second() != 0) {
        "%H:%M:%S"
    } else {
        "%H:%M"
    };
    let first = start.moment();
    let clock = |moment: &Zoned| {
        let day = match moment.date() {
            day if day == first.date() => "",
            day if day.year() == first.year() => "%-d %b ",
            _ => "%-d %b %Y ",
        };
        let offset = if comes_twice(moment) { "%:z" } else { "" };
        moment.strftime(&format!("{day}{time}{offset}")).to_string()
    };
    Some(moments.iter().map(|moment| moment.as_ref().map_or_else(|| NOTHING.to_owned(), clock)).collect())
}

/// Whether the clock shows the same time twice, because it is set back.
pub(crate) fn comes_twice(moment: &Zoned) -> bool {
    let offset = moment.time_zone().to_ambiguous_timestamp(moment.datetime()).offset();
    matches!(offset, AmbiguousOffset::Fold { .. })
}

/// The number of decimals for a column whose largest number is `largest`.
fn digits(largest: f64) -> usize {
    match largest {
        0.0 => 0,
        l if l < 10.0 => 2,
        l if l < 1000.0 => 1,
        _ => 0,
    }
}

/// A number with all its digits, as in JSON and CSV; empty for `None`.
pub fn exact(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_same_digits() {
        let values = [Some(3.1449), None, Some(1234.5)];
        assert_eq!(column(&values, Unit::Measure), ["3", NOTHING, "1,234"]);
        assert_eq!(column(&values[..2], Unit::Measure), ["3.14", NOTHING]);
        assert_eq!(column(&[Some(0.18754), Some(0.021)], Unit::Percent), ["18.8 %", "2.1 %"]);
        assert_eq!(column(&[Some(16e6)], Unit::Count), ["16,000,000"]);
    }

    #[test]
    fn long_durations_are_in_units_and_a_column_is_written_as_its_longest() {
        let units = [138_409.0, 9_999.0, 86_400.0, 12.4, 0.0, -10_800.0];
        let found = column(&units.map(Some), Unit::Seconds);
        assert_eq!(found, ["1d 14h 27m", "2h 46m 39s", "1d", "12s", "0s", "-3h"]);
        assert_eq!(column(&[Some(9_999.0), None, Some(12.4)], Unit::Seconds), ["9,999", NOTHING, "12"]);
        assert_eq!(
            (duration(1492.0), duration(12.34), duration(10_000.0)),
            ("1,492 s".into(), "12.3 s".into(), "2h 46m 40s".into())
        );
        assert_eq!(duration(9e10), "1041666d 16h");
        assert_eq!(duration(f64::INFINITY), "infs");
    }

    #[test]
    fn points_in_time_are_by_the_clock_where_the_start_is_known() {
        let start = Start::parse("2026-03-28T22:00[Europe/Berlin]").unwrap();
        let at =
            |values: &[f64]| instants(&values.iter().copied().map(Some).collect::<Vec<_>>(), Some(&start));
        assert_eq!(at(&[0.0, 5400.0, 7200.0]), ["22:00", "23:30", "29 Mar 00:00"]);
        assert_eq!(
            at(&[25_200.0, 25_260.5]),
            ["29 Mar 06:00:00.0", "29 Mar 06:01:00.5"],
            "the clocks went forward"
        );
        assert_eq!(at(&[30.0, 7170.4]), ["22:00:30", "23:59:30"]);
        assert_eq!(at(&[300.0 * 86_400.0]), ["22 Jan 2027 22:00"]);
        assert_eq!(instants(&[Some(60.0), None], Some(&start)), ["22:01", NOTHING]);
        assert_eq!((instant(90.0, Some(&start)), instant(90.0, None)), ("22:01:30".into(), "90.0 s".into()));
        assert_eq!(instants(&[Some(90.0), Some(2e5)], None), ["1m 30s", "2d 7h 33m"]);
        assert_eq!(at(&[1e18])[0], column(&[Some(1e18)], Unit::Seconds)[0], "no calendar goes so far");
    }

    /// In Berlin, 02:00 to 03:00 of 25 October 2026 occurs twice.
    #[test]
    fn a_time_that_comes_twice_has_its_offset() {
        let start = Start::parse("2026-10-25T00:00[Europe/Berlin]").unwrap();
        let hours = [1.5, 2.5, 3.5, 4.5].map(|hours| Some(hours * 3600.0));
        assert_eq!(instants(&hours, Some(&start)), ["01:30", "02:30+02:00", "02:30+01:00", "03:30"]);
    }

    #[test]
    fn odd_numbers_are_readable() {
        assert_eq!(number(-0.001, Unit::Measure), "0.00");
        assert_eq!(number(-1234.5, Unit::Count), "-1,234");
        assert_eq!([-0.0004, 0.0004, -0.01].map(signed_percent), ["0.0 %", "0.0 %", "-1.0 %"]);
        assert_eq!(column(&[Some(-0.0004), Some(0.2)], Unit::Percent), ["0.0 %", "20.0 %"]);
        assert_eq!(number(1e18, Unit::Measure), "1.000e18");
        assert_eq!(number(f64::INFINITY, Unit::Measure), "inf");
        assert_eq!((tasks_of_job(1, 0), tasks_of_job(2, 1)), ("1 task".into(), "2 maps, 1 reduce".into()));
        assert_eq!(counted(1, "flow"), "1 flow");
        assert_eq!(counted(1000, "task"), "1,000 tasks");
    }
}
