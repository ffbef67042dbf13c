//! Readers of the values of flags, with the messages for wrong ones.

use std::collections::BTreeSet;

use clap::builder::PossibleValue;
use slackline::export::charts::{Chart, Size};
use slackline::import::{CrashAt, KnowledgeOption};
use slackline_model::draft::{FailurePolicy, Weights};
use slackline_model::load::{LOADS, LoadBy};
use slackline_model::profile::{self, Profile};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Combine, Metric, duration};

use super::listed::NamedValue;

fn number(text: &str, range: std::ops::RangeInclusive<f64>, expected: &str) -> Result<f64, String> {
    // Comparisons with NaN are false, so it is in no range.
    text.parse().ok().filter(|x| range.contains(x)).ok_or_else(|| format!("expected {expected}"))
}

/// How a cluster behaves, if not plainly.
#[derive(Clone, Debug)]
pub(crate) struct ProfileArg(pub(crate) Option<Profile>);

/// A profile with its parameters.
pub(crate) fn profile(text: &str) -> Result<ProfileArg, String> {
    Profile::parse(text).map(ProfileArg).map_err(|problem| problem.to_string())
}

/// What help says of profiles: all parameters with their defaults.
pub(crate) fn profile_help() -> String {
    let wide = profile::PARAMS.iter().map(|param| param.name.len() + param.default.len()).max().unwrap_or(0);
    let line = |param: &slackline_model::params::Param| {
        let pad = " ".repeat(wide - param.name.len() - param.default.len());
        format!("\n  {}={}{pad}  {}", param.name, param.default, param.help)
    };
    let of_log: Vec<String> = profile::OF_LOG.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let of_log = of_log.join(", ");
    let lines: String = profile::PARAMS.iter().map(line).collect();
    format!(
        "How the cluster behaves: plain, hadoop[:PARAMETER=VALUE]... or hadoop-log[:…]\n\nA plain cluster starts tasks without delay. A \
         Hadoop cluster submits jobs, starts an ApplicationMaster for each job on a separate slot, and starts a container \
         for each task, with measured times (docs/profiles.md). hadoop-log is for workloads from Hadoop logs, whose task \
         times include most of the start-up ({of_log}). Parameters and their defaults, in seconds:{lines}"
    )
}

/// What a picture shows.
pub(crate) fn chart() -> NamedValue<Chart> {
    NamedValue::of("chart", Chart::ALL.map(|chart| (PossibleValue::new(chart.name()), chart)))
}

/// Width and height in pixels, as in `1200x640`.
pub(crate) fn size(text: &str) -> Result<Size, String> {
    let (least, most) = Size::LIMITS;
    let side = |text: &str| text.parse().ok().filter(|side: &u32| (least..=most).contains(side));
    let both = text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
    both.map(|(width, height)| Size { width, height })
        .ok_or_else(|| format!("expected WIDTHxHEIGHT, each from {least} to {most}, such as 1200x640"))
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

/// A whole number from `least` to `most`.
pub(crate) fn whole<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number: &u64| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match most {
            u64::MAX => format!("expected a whole number from {least}"),
            most => format!("expected a whole number from {least} to {most}"),
        })
    }
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

/// A multiple of the load of a workload.
pub(crate) fn load(text: &str) -> Result<f64, String> {
    number(text, LOADS, "a number from 0.01 to 100")
}

pub(crate) fn speed(text: &str) -> Result<f64, String> {
    number(text, 1e-6..=1e6, "a number from 0.000001 to 1000000")
}

pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1.0, "a number from 0 to 1")
}

/// The standard deviation of a logarithm: 3 already means factors of hundreds.
pub(crate) fn deviation(text: &str) -> Result<f64, String> {
    number(text, 0.0..=3.0, "a number from 0 to 3")
}

/// A price, in any currency.
pub(crate) fn price(text: &str) -> Result<f64, String> {
    number(text, 0.0..=f64::MAX, "a number from 0")
}

/// A number of machines; several of them for `compare` and `capacity`, a range for `capacity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Machines {
    /// From the least to the most, which is the same where it is one number.
    Range(u32, u32),
    /// Several, in rising order.
    List(Vec<u32>),
}

impl Machines {
    /// The number, if it is one.
    pub(crate) fn only(&self) -> Option<u32> {
        match self {
            Self::Range(least, most) => (least == most).then_some(*least),
            Self::List(_) => None,
        }
    }
}

impl std::fmt::Display for Machines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Range(least, most) if least == most => write!(f, "{least}"),
            Self::Range(least, most) => write!(f, "{least}..{most}"),
            Self::List(sizes) => {
                let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
                write!(f, "{}", sizes.join(","))
            }
        }
    }
}

/// Reads [`Machines`]: `600`, `20,30,40` in any order, or `10..200` with both ends in it.
pub(crate) fn machines(text: &str) -> Result<Machines, String> {
    let number = |text: &str| text.trim().parse().ok().filter(|n: &u32| *n > 0);
    let machines = if text.contains(',') {
        let sizes: Option<BTreeSet<u32>> = text.split(',').map(number).collect();
        sizes.map(|sizes| match sizes.len() {
            1 => sizes.first().map_or(Machines::List(Vec::new()), |&only| Machines::Range(only, only)),
            _ => Machines::List(sizes.into_iter().collect()),
        })
    } else {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let ends = number(least).zip(number(most)).filter(|(least, most)| least <= most);
        ends.map(|(least, most)| Machines::Range(least, most))
    };
    machines.ok_or_else(|| {
        "expected a number from 1, several such as 20,30,40 (compare, capacity), or a range from small to large such as \
         10..200 (capacity)"
            .to_owned()
    })
}

pub(crate) fn metric() -> NamedValue<Metric> {
    let value = |metric: Metric| {
        let about = match metric {
            Metric::Completion => "completion time",
            Metric::Response => "completion minus release",
            Metric::Makespan => "completion of the last flow",
            Metric::Stretch => "response time over work",
            Metric::Slowdown => "response time over run time alone on the cluster",
            Metric::Tardy => "1 if the flow misses its deadline",
            Metric::Tardiness => "time after the deadline, 0 if it is met",
            Metric::Lateness => "completion minus deadline",
            Metric::Sla => "steps that the flow gives",
            _ => "points that the flow gives, and lines between them",
        };
        let value = PossibleValue::new(metric.name()).help(about);
        if metric == Metric::Sla { value.alias("steps") } else { value }
    };
    NamedValue::of("metric", Metric::ALL.iter().map(|&metric| (value(metric), metric)))
}

/// How the costs of the flows become one.
pub(crate) fn combine() -> NamedValue<Combine> {
    NamedValue::of("combination", [Combine::Sum, Combine::Max].map(|combine| (combine.name(), combine)))
}

pub(crate) fn load_by() -> NamedValue<LoadBy> {
    NamedValue::of("change of the load", LoadBy::ALL.map(|by| (by.name(), by)))
}

pub(crate) fn failure_policy() -> NamedValue<FailurePolicy> {
    NamedValue::of("failure policy", FailurePolicy::ALL.map(|policy| (policy.name(), policy)))
}

pub(crate) fn weights() -> NamedValue<Weights> {
    NamedValue::of("use of weights", [("use", Weights::Use), ("ignore", Weights::Ignore)])
}

/// The text of a file, compressed or not.
pub(crate) fn text_of(path: &str) -> Result<String, String> {
    super::path::text(path)?;
    let bytes = std::fs::read(path).map_err(|error| match machines(path) {
        Ok(_) => format!("cannot be read as a file ({error}); the number of machines is --machines {path}"),
        Err(_) => format!("cannot be read: {error}"),
    })?;
    let text = slackline_trace::read_text(path, &bytes).map_err(|error| error.to_string())?;
    Ok(text.into_owned())
}

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
pub(crate) fn known() -> NamedValue<KnowledgeOption> {
    let name = |known: KnowledgeOption| {
        PossibleValue::new(known.name()).help(match known {
            KnowledgeOption::Mean => "The mean duration of each phase, and the speeds of machines",
            KnowledgeOption::Exact => {
                "The duration of each task, for policies that use it (dmrs), and the speeds of machines"
            }
            KnowledgeOption::Learned => {
                "The durations of finished tasks, of this run and of --history, and no speeds"
            }
        })
    };
    let all = [KnowledgeOption::Mean, KnowledgeOption::Exact, KnowledgeOption::Learned];
    NamedValue::of("knowledge", all.map(|known| (name(known), known)))
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
    fn a_number_where_a_file_is_expected_may_be_one_of_machines() {
        assert!(text_of("4..6").unwrap_err().ends_with("the number of machines is --machines 4..6"));
        assert!(text_of("nodes.json").unwrap_err().starts_with("cannot be read: "));
    }

    #[test]
    fn machines_are_a_number_or_a_range() {
        assert_eq!(machines("600"), Ok(Machines::Range(600, 600)));
        assert_eq!(machines("30,20,30"), Ok(Machines::List(vec![20, 30])));
        assert_eq!(
            (machines("7,7"), machines("20,30").unwrap().to_string()),
            (Ok(Machines::Range(7, 7)), "20,30".into())
        );
        assert_eq!(machines("10..200").unwrap().to_string(), "10..200");
        for text in ["", "0", "x", "5..2", "0..3", "1..", "..4", "-1", "1...3", "1,", "2,x", "1..2,3"] {
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
        assert!(seconds("1mo").unwrap_err().contains("have no fixed length"));
        assert!(seconds("-2h").unwrap_err().contains("not negative"));
        assert!(seconds("06:00").is_err() && seconds("").is_err() && seconds(" 2h").is_err());
    }

    #[test]
    fn whole_numbers_are_refused_in_words() {
        let seeds = whole::<u32>(1, 100);
        assert_eq!(seeds("7"), Ok(7));
        for text in ["0", "101", "-1", "x", "1.5", "", "99999999999999999999"] {
            assert_eq!(seeds(text), Err("expected a whole number from 1 to 100".to_owned()), "{text}");
        }
        assert_eq!(whole::<u64>(0, u64::MAX)("x"), Err("expected a whole number from 0".to_owned()));
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
