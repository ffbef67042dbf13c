//! Durations in text form: `22s`, `1h30m`, `2d`, `1.5h`, `250ms`, `PT1H`. A day is 24 hours.
//!
//! They are converted to seconds, the unit of every draft and option, with a single rounding: `20.1s` is the
//! same number as 20.1.

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// The allowed forms of a duration, for messages.
pub const EXPECTED: &str = "seconds or a duration such as 90s, 1.5h or 2d";

const NEGATIVE: &str = "a duration that is not negative";
const UNIT: &str = "a unit after the number as in 90s, or a number without quotes";
const CALENDAR: &str = "days or shorter units such as 7d or 36h, because longer units have no fixed length";

/// Reads a duration with units, as seconds.
///
/// # Errors
/// The expected form.
pub fn parse(text: &str) -> Result<f64, String> {
    // The library reads 10:30:00 as a duration, but users mean a time of day; it also accepts trailing space.
    if text.contains(':') || text.trim() != text {
        return Err(EXPECTED.to_owned());
    }
    let span: Span = text.parse().map_err(|_| meant(text))?;
    if span.is_negative() {
        return Err(NEGATIVE.to_owned());
    }
    if span.get_years() != 0 || span.get_months() != 0 || span.get_weeks() != 0 {
        return Err(CALENDAR.to_owned());
    }
    let exact = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| EXPECTED)?;
    Ok(seconds_nearest(exact))
}

/// The expected form for a text that is no duration: hours for a fraction of a day, a unit for a number
/// without one.
fn meant(text: &str) -> String {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let number = digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    match (number, text[digits.len()..].trim_start()) {
        (Some(days), "d" | "day" | "days") if days < 1e6 => {
            // To the microsecond, so that 0.3 days are 7.2 hours.
            let hours = (days * 24.0 * 3.6e9).round() / 3.6e9;
            format!("{hours}h: hours and shorter units may have a fraction, days may not")
        }
        (Some(_), "w" | "week" | "weeks" | "mo" | "month" | "months" | "y" | "year" | "years") => {
            CALENDAR.to_owned()
        }
        (Some(_), "") => UNIT.to_owned(),
        _ => EXPECTED.to_owned(),
    }
}

/// Reads the value of an option, as seconds: a number of seconds, or a duration with units.
///
/// # Errors
/// The expected form.
pub fn parse_option(text: &str) -> Result<f64, String> {
    text.parse().or_else(|_| parse(text))
}

/// The number of seconds nearest to an exact duration.
pub(crate) fn seconds_nearest(exact: SignedDuration) -> f64 {
    // Reading digits rounds once; adding seconds and their fraction would round twice.
    format!("{}e-9", exact.as_nanos()).parse().expect("invariant: digits and an exponent are a number")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Span as Micros;

    #[test]
    fn units_become_seconds() {
        for (text, seconds) in [
            ("22s", 22.0),
            ("1h30m", 5400.0),
            ("2d", 172_800.0),
            ("1.5h", 5400.0),
            ("250ms", 0.25),
            ("1h 30m", 5400.0),
            ("90 minutes", 5400.0),
            ("20.1s", 20.1),
            ("0.3s", 0.3),
            ("PT1H30M", 5400.0),
            ("P1DT1S", 86_401.0),
            ("3us", 3e-6),
            ("3µs", 3e-6),
            ("0s", 0.0),
        ] {
            assert_eq!(parse(text), Ok(seconds), "{text}");
        }
        assert_eq!(parse_option("1e3"), Ok(1000.0));
        assert_eq!(parse_option("1e3s"), Err(EXPECTED.to_owned()));
    }

    #[test]
    fn invalid_durations_are_refused_with_the_reason() {
        for text in [
            "",
            " 2h",
            "2h ",
            "h",
            "2 fortnights",
            "soon",
            "06:00",
            "10:30:00",
            "2026-03-01",
            "zwei Stunden",
            "２h",
            "99999999999999999999s",
            "1e400s",
        ] {
            assert_eq!(parse(text), Err(EXPECTED.to_owned()), "{text}");
        }
        for text in ["-2h", "2h ago", "-PT1S"] {
            assert_eq!(parse(text), Err(NEGATIVE.to_owned()), "{text}");
        }
        for text in ["1y", "3mo", "1w", "1w 2d", "P1M", "2 years", "1.5w", "0.5 months"] {
            assert_eq!(parse(text), Err(CALENDAR.to_owned()), "{text}");
        }
    }

    #[test]
    fn one_obvious_mistake_is_answered_with_what_was_meant() {
        for (text, hours) in [("1.5d", "36h"), ("0.3 days", "7.2h"), ("2.d", "48h")] {
            let expected = format!("{hours}: hours and shorter units may have a fraction, days may not");
            assert_eq!(parse(text), Err(expected), "{text}");
        }
        for text in ["22", "1.5"] {
            assert_eq!(parse(text), Err(UNIT.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn durations_that_are_printed_read_back_to_the_same_microseconds(micros in 0..90_000_000_000_000_000_i64) {
            let exact = SignedDuration::from_micros(micros);
            for text in [format!("{exact}"), format!("{exact:#}")] {
                let seconds = parse(&text).unwrap();
                prop_assert_eq!(seconds, format!("{micros}e-6").parse().unwrap(), "{}", &text);
                // From 2^32 s (136 years) on, seconds as `f64` cannot represent every microsecond.
                if micros < (1 << 32) * 1_000_000 {
                    prop_assert_eq!(Micros::from_seconds_nearest(seconds).0, micros as u64, "{}", &text);
                }
            }
        }

        #[test]
        fn any_text_is_survived(text in "[0-9a-zµ.,:+\\- PTDHMS]{0,12}") {
            if let Ok(seconds) = parse(&text) {
                prop_assert!(seconds.is_finite() && seconds >= 0.0);
            }
        }
    }
}
