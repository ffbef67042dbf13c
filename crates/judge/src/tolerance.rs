//! The tolerances of the documents. No other file of the judge compares times or amounts.
//!
//! Durations, work and costs: 10^-6 relative plus 2 µs. Instants: 2 µs plus 10^-9 of their value.

use slackline_model::Time;

/// The largest difference of two instants around `seconds` that count as the same, in seconds.
pub(crate) fn instant(seconds: f64) -> f64 {
    2e-6 + 1e-9 * seconds.abs()
}

/// The largest difference of a duration, an amount of work or a cost from `expected`.
pub(crate) fn amount(expected: f64) -> f64 {
    2e-6 + 1e-6 * expected.abs()
}

/// Whether two instants in seconds are the same.
pub(crate) fn same_instant(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= instant(expected)
}

/// Whether a duration, an amount of work or a cost is the expected one.
pub(crate) fn same_amount(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= amount(expected)
}

/// Whether `a` is earlier than `b` by more than the tolerance; instants in seconds.
pub(crate) fn earlier(a: f64, b: f64) -> bool {
    a < b - instant(b)
}

/// The latest instant that is still the same as `t`.
pub(crate) fn latest_same(t: Time) -> Time {
    Time(t.0.saturating_add(2 + t.0 / 1_000_000_000))
}

/// Whether `a` is earlier than `b` by more than the tolerance; instants in whole microseconds.
pub(crate) fn earlier_micros(a: Time, b: Time) -> bool {
    shrunk(b) > a
}

/// `end` less the tolerance. A row that ends by then overlaps no row that starts at `end`; a row that starts
/// after it is too short to overlap any row.
pub(crate) fn shrunk(end: Time) -> Time {
    Time(end.0.saturating_sub(2 + end.0 / 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_those_of_the_documents() {
        assert!(same_instant(10.000_002, 10.0) && !same_instant(10.000_002_1, 10.0));
        assert!(same_instant(1e6 + 0.001, 1e6) && !same_instant(1e6 + 0.0011, 1e6));
        assert!(same_amount(100.0001, 100.0) && !same_amount(100.000_103, 100.0));
        assert!(same_amount(0.000_002, 0.0) && !same_amount(0.000_003, 0.0));
        assert_eq!(shrunk(Time(1)), Time(0));
        assert_eq!(shrunk(Time(3_000_000_000)), Time(2_999_999_995));
        assert!(!earlier_micros(Time(8), Time(10)) && earlier_micros(Time(7), Time(10)));
        assert!(!earlier(9.999_998, 10.0) && earlier(9.999_99, 10.0));
        assert!(!same_instant(f64::NAN, 1.0) && !same_amount(f64::NAN, 1.0));
    }
}
