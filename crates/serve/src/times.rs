//! Times as they are sent: counted from something, or on a clock.

use jiff::Timestamp;
use slackline_local::clock;
use slackline_model::When;

use crate::{Moment, SECOND, moment};

/// A deadline: a duration after a moment, the first such time of day after it, or a date and time. Clock times without a zone are
/// those of this machine.
///
/// # Errors
/// What was found, and what was expected.
pub fn deadline(text: &str, after: Timestamp) -> Result<Moment, String> {
    let wrong = |expected: String| format!("deadline: found {text:?}, expected {expected}");
    let when = When::parse_option(text).map_err(wrong)?;
    let start = clock::local(moment(after));
    let seconds = when.seconds(Some(&start), std::ops::Bound::Excluded(0.0)).map_err(|e| wrong(e.clone()))?;
    Ok(moment(after).saturating_add((seconds.max(0.0) * SECOND as f64).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_from_the_release_and_dates_stand_for_themselves() {
        let release: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let at = |text: &str| crate::timestamp(deadline(text, release).unwrap()).to_string();
        assert_eq!(at("90m"), "2026-03-01T11:30:00Z");
        assert_eq!(at("60"), "2026-03-01T10:01:00Z");
        assert_eq!(at("2026-03-02T06:00:00Z"), "2026-03-02T06:00:00Z");
        assert!(deadline("soon", release).unwrap_err().starts_with("deadline: found \"soon\", expected"));
    }
}
