//! Times in requests: relative or absolute.

use std::ops::Bound;

use jiff::Timestamp;
use slackline_model::{TimeSpec, WallTime};
use slackline_task::base::clock;

use crate::{timestamp, wall_time};

/// Parses a deadline: a duration after `after`, the first such time of day after it, or a date and time.
/// Clock times without a zone are in `zone`, by default that of this machine. The deadline has to be in the future: a
/// deadline that has passed is a mistake of the user.
///
/// # Errors
/// The value found, and the value expected.
pub fn deadline(text: &str, after: Timestamp, now: WallTime, zone: Option<&str>) -> Result<WallTime, String> {
    let wrong = |expected: &str| format!("deadline: found {text:?}, expected {expected}");
    let when = TimeSpec::parse_option(text).map_err(|expected| wrong(&expected))?;
    let start = clock::in_zone(wall_time(after).0, zone);
    if matches!(when, TimeSpec::Seconds(seconds) if seconds < 0.0) {
        return Err(wrong("a duration that is not negative"));
    }
    if when.is_before(&start) {
        return Err(wrong(&format!("a time after the release of the flow, which is at {after}")));
    }
    let seconds = when.seconds(Some(&start), Bound::Excluded(0.0));
    let seconds = seconds.map_err(|problem| format!("deadline: {problem}"))?;
    let at = wall_time(after).after_seconds(seconds);
    if at < now {
        let (at, counts) = (
            timestamp(at),
            match when {
                TimeSpec::Seconds(_) | TimeSpec::Daily(_) => {
                    format!(", counted from the release of the flow at {after}")
                }
                TimeSpec::Moment(_) | TimeSpec::Local(_) => String::new(),
            },
        );
        return Err(format!(
            "deadline: found {text:?}, which was at {at}{counts}, expected a time in the future"
        ));
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, now: &str) -> Result<String, String> {
        let [release, now] = ["2026-03-01T10:00:00Z", now].map(|at| at.parse::<Timestamp>().unwrap());
        deadline(text, release, wall_time(now), None).map(|at| timestamp(at).to_string())
    }

    #[test]
    fn durations_count_from_the_release_and_dates_stand_for_themselves() {
        let at = |text: &str| at(text, "2026-03-01T10:00:30Z").unwrap();
        assert_eq!(at("90m"), "2026-03-01T11:30:00Z");
        assert_eq!(at("60"), "2026-03-01T10:01:00Z");
        assert_eq!(at("2026-03-02T06:00:00Z"), "2026-03-02T06:00:00Z");
    }

    #[test]
    fn past_and_invalid_times_are_refused_with_a_reason() {
        let wrong = |text: &str| at(text, "2026-03-01T12:00:00Z").unwrap_err();
        assert!(wrong("soon").starts_with("deadline: found \"soon\", expected seconds, a duration"));
        assert_eq!(wrong("-5"), "deadline: found \"-5\", expected a duration that is not negative");
        assert_eq!(
            wrong("90m"),
            "deadline: found \"90m\", which was at 2026-03-01T11:30:00Z, counted from the release of the flow at \
             2026-03-01T10:00:00Z, expected a time in the future"
        );
        assert_eq!(
            wrong("2026-03-01T11:00:00Z"),
            "deadline: found \"2026-03-01T11:00:00Z\", which was at 2026-03-01T11:00:00Z, expected a time in the future"
        );
        assert_eq!(
            wrong("2020-01-01T00:00:00Z"),
            "deadline: found \"2020-01-01T00:00:00Z\", expected a time after the release of the flow, which is at \
             2026-03-01T10:00:00Z"
        );
    }
}
