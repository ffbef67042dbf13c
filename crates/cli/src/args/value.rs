//! Values of flags, and what is said when they are wrong.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use slackline::import::{CrashAt, KnowledgeOption};
use slackline_model::draft::Weights;
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Combine, Metric, duration};
use slackline_trace::Format;

fn number(text: &str, range: std::ops::RangeInclusive<f64>, expected: &str) -> Result<f64, String> {
    // Comparisons with NaN are false, so it is in no range.
    text.parse().ok().filter(|x| range.contains(x)).ok_or_else(|| format!("expected {expected}"))
}

/// A number of seconds or a duration such as 1h30m, in seconds.
fn time(text: &str, range: std::ops::RangeInclusive<f64>, bounds: &str) -> Result<f64, String> {
    let seconds = duration::parse_option(text).map_err(|expected| format!("expected {expected}"))?;
    // Comparisons with NaN are false, so it is in no range.
    range
        .contains(&seconds)
        .then_some(seconds)
        .ok_or_else(|| format!("expected {}, {bounds}", duration::EXPECTED))
}

/// Seconds from 0.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    time(text, 0.0..=SECONDS_MAX, "from 0")
}

/// Seconds between two moments of a running cluster: beyond a month nothing would ever happen.
pub(crate) fn pause(text: &str) -> Result<f64, String> {
    time(text, 0.0..=2_592_000.0, "from 0 to 30 days")
}

/// Seconds, at least a microsecond.
pub(crate) fn seconds_above_zero(text: &str) -> Result<f64, String> {
    time(text, 1e-6..=SECONDS_MAX, "from 1us")
}

/// A factor from 0.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1e9, "a number from 0")
}

/// A speed.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    number(text, 1e-6..=1e6, "a number from 0.000001 to 1000000")
}

/// A fraction.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1.0, "a number from 0 to 1")
}

/// The standard deviation of a logarithm: 3 already means factors of hundreds.
pub(crate) fn deviation(text: &str) -> Result<f64, String> {
    number(text, 0.0..=3.0, "a number from 0 to 3")
}

/// A number of machines; for `tune`, a range of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machines {
    /// The least.
    pub(crate) least: u32,
    /// The most; the same where it is one number.
    pub(crate) most: u32,
}

impl Machines {
    /// The number, if it is one.
    pub(crate) fn only(self) -> Option<u32> {
        (self.least == self.most).then_some(self.least)
    }
}

impl std::fmt::Display for Machines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.only() {
            Some(number) => write!(f, "{number}"),
            None => write!(f, "{}..{}", self.least, self.most),
        }
    }
}

/// Reads [`Machines`]: `600`, or `10..200` with both ends in it.
pub(crate) fn machines(text: &str) -> Result<Machines, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.parse().ok().filter(|n: &u32| *n > 0);
    let machines = number(least).zip(number(most)).map(|(least, most)| Machines { least, most });
    machines.filter(|machines| machines.least <= machines.most).ok_or_else(|| {
        "expected a number from 1, or for tune a range from small to large such as 10..200".to_owned()
    })
}

/// A format of our own documents.
pub(crate) fn native() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .map(|name| Format::from_name(&name).expect("invariant: possible values are names"))
}

/// A metric of the objective.
pub(crate) fn metric() -> impl TypedValueParser<Value = Metric> {
    let value = |metric: &Metric| match metric {
        Metric::Sla => PossibleValue::new(metric.name()).alias("steps"),
        _ => PossibleValue::new(metric.name()),
    };
    PossibleValuesParser::new(Metric::ALL.iter().map(value))
        .map(|name| Metric::from_name(&name).expect("invariant: possible values are names"))
}

/// How the costs of the flows become one.
pub(crate) fn combine() -> impl TypedValueParser<Value = Combine> {
    PossibleValuesParser::new([Combine::Sum, Combine::Max].map(Combine::name))
        .map(|name| Combine::from_name(&name).expect("invariant: possible values are names"))
}

/// Whether weights count.
pub(crate) fn weights() -> impl TypedValueParser<Value = Weights> {
    PossibleValuesParser::new(["use", "ignore"])
        .map(|name| if name == "use" { Weights::Use } else { Weights::Ignore })
}

/// The text of a file.
pub(crate) fn text_of(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))
}

/// Reads a [`CrashAt`].
pub(crate) fn crash(text: &str) -> Result<CrashAt, String> {
    let read = || {
        let (machine, when) = text.rsplit_once('@')?;
        let (at, away) = when.split_once('+').map_or((when, None), |(at, away)| (at, Some(away)));
        let away = away.map(seconds_above_zero).transpose().ok()?;
        Some(CrashAt { machine: machine.to_owned(), at: seconds(at).ok()?, away })
    };
    read().ok_or_else(|| "expected MACHINE@T or MACHINE@T+D, times in seconds or with units, such as node-3@120+60 or node-3@2h+10m".to_owned())
}

/// What a policy may know of durations.
pub(crate) fn known() -> impl TypedValueParser<Value = KnowledgeOption> {
    let value = |known: KnowledgeOption| {
        PossibleValue::new(known.name()).help(match known {
            KnowledgeOption::Mean => "The mean of each phase, and the machines' speeds",
            KnowledgeOption::Exact => {
                "Each task, for policies that look at single tasks (dmrs), and the machines' speeds"
            }
            KnowledgeOption::Learned => {
                "Neither durations nor speeds: only tasks that have finished, in this run or in --history"
            }
        })
    };
    PossibleValuesParser::new(
        [KnowledgeOption::Mean, KnowledgeOption::Exact, KnowledgeOption::Learned].map(value),
    )
    .map(|name| {
        let all = [KnowledgeOption::Mean, KnowledgeOption::Exact, KnowledgeOption::Learned];
        all.into_iter().find(|known| known.name() == name).expect("invariant: possible values are names")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_are_read_and_written() {
        let expected = CrashAt { machine: "a@b".to_owned(), at: 12.5, away: Some(60.0) };
        assert_eq!(crash("a@b@12.5+60"), Ok(expected));
        for text in ["node-0@5", "node-0@5+0.5"] {
            assert_eq!(crash(text).unwrap().to_string(), text);
        }
        assert_eq!(crash("node-0@2h+90s").unwrap().to_string(), "node-0@7200+90");
        for text in ["", "node", "node@", "node@x", "node@-1", "node@5+", "node@5+0", "node@NaN"] {
            assert!(crash(text).is_err(), "{text}");
        }
    }

    #[test]
    fn machines_are_a_number_or_a_range() {
        assert_eq!(machines("600"), Ok(Machines { least: 600, most: 600 }));
        assert_eq!(machines("10..200").unwrap().to_string(), "10..200");
        for text in ["", "0", "x", "5..2", "0..3", "1..", "..4", "-1", "1...3"] {
            assert!(machines(text).is_err(), "{text}");
        }
    }

    #[test]
    fn options_that_are_times_take_durations() {
        assert_eq!(
            (seconds("1h30m"), pause("250ms"), seconds_above_zero("2d")),
            (Ok(5400.0), Ok(0.25), Ok(172_800.0))
        );
        assert_eq!(
            pause("31d").unwrap_err(),
            "expected seconds or a duration such as 90s, 1.5h or 2d, from 0 to 30 days"
        );
        assert!(seconds("1mo").unwrap_err().contains("of the calendar"));
        assert!(seconds("-2h").unwrap_err().contains("not negative"));
        assert!(seconds("06:00").is_err() && seconds("").is_err() && seconds(" 2h").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert!(seconds("inf").is_err());
        assert!(seconds("NaN").is_err());
        assert!(seconds_above_zero("0").is_err());
        assert!(fraction("1.1").is_err());
        assert_eq!(deviation("0.5"), Ok(0.5));
    }
}
