//! Numbers for people. Programs read JSON and CSV, which have all digits.

use slackline_trace::schedule::gap_text;

/// What stands where there is no number.
pub const NOTHING: &str = "–";

/// How the numbers of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, costs and everything else that is measured.
    Measure,
    /// Whole numbers.
    Count,
    /// Fractions, written as percentages.
    Percent,
    /// Gaps to a lower bound: percentages that are rounded up ([`slackline_trace::schedule::gap_text`]).
    Gap,
}

/// A column of numbers with the same digits after the point, so that they can be compared at a glance:
/// about four significant digits of the largest.
pub fn column(values: &[Option<f64>], unit: Unit) -> Vec<String> {
    let largest = values.iter().flatten().map(|v| v.abs()).fold(0.0, f64::max);
    values.iter().map(|value| value.map_or_else(|| NOTHING.to_owned(), |v| write(v, unit, largest))).collect()
}

/// One number by itself.
pub fn number(value: f64, unit: Unit) -> String {
    write(value, unit, value.abs())
}

fn write(value: f64, unit: Unit, largest: f64) -> String {
    match unit {
        Unit::Count => grouped(value, 0),
        Unit::Percent => format!("{} %", grouped(value * 100.0, digits(largest * 100.0).min(1))),
        Unit::Gap => gap_text(value),
        Unit::Measure => grouped(value, digits(largest)),
    }
}

/// Digits after the point for a column whose largest number this is.
fn digits(largest: f64) -> usize {
    match largest {
        0.0 => 0,
        l if l < 10.0 => 2,
        l if l < 1000.0 => 1,
        _ => 0,
    }
}

/// A number with a comma after every three digits before the point; huge ones with an exponent.
fn grouped(value: f64, digits: usize) -> String {
    if !value.is_finite() || value.abs() >= 1e15 {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.digits$}");
    let (sign, text) = match text.strip_prefix('-') {
        // Nobody wants to read of minus nothing.
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => ("", rest),
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `1 flow`, `2 flows`, `1,234 tasks`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as f64, 0), if count == 1 { "" } else { "s" })
}

/// A number with all its digits, as JSON and CSV have it; nothing for nothing.
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
    fn odd_numbers_are_readable() {
        assert_eq!(number(-0.001, Unit::Measure), "0.00");
        assert_eq!(number(-1234.5, Unit::Count), "-1,234");
        assert_eq!(number(1e18, Unit::Measure), "1.000e18");
        assert_eq!(number(f64::INFINITY, Unit::Measure), "inf");
        assert_eq!(counted(1, "flow"), "1 flow");
        assert_eq!(counted(1000, "task"), "1,000 tasks");
    }
}
