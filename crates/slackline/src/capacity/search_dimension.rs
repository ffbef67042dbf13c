//! The variable of a search: a size or a setting of the cluster.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use slackline_model::cluster::Slots;
use slackline_model::load::{LOADS, LoadBy, LoadRule};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Draft, Span, duration};

use crate::names::unknown;
use crate::simulate::Options;

/// The quantity that a search varies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Knob {
    /// Machines of the first group.
    Machines,
    /// Slots of each machine, shared by maps and reduces.
    Slots,
    /// Map slots of each machine.
    MapSlots,
    /// Reduce slots of each machine.
    ReduceSlots,
    /// The speed of every machine.
    Speed,
    /// The load, as a multiple of that of the workload.
    Load(LoadRule),
    /// The fraction of a job's maps that must be finished before its reduces may take slots.
    Slowstart,
    /// The interval between two heartbeats of a machine, seconds.
    Heartbeat,
    /// The guaranteed capacity of a `yarn-capacity` queue, percent of its parent. The other queues of the
    /// parent share the rest in their current proportions. A maximum below the capacity is raised to it.
    Capacity(String),
    /// A parameter of the policy whose value is a number.
    Parameter(String),
}

/// The prefix of the name of [`Knob::Capacity`]. The queue follows, by its path or short name.
const CAPACITY: &str = "capacity:";
/// The prefix of the name of [`Knob::Parameter`]. The name of the parameter follows.
const PARAMETER: &str = "param:";

/// The knobs without a parameter in their names.
/// The rule of a load whose axis was just read. The caller replaces it by that of the workload.
const USUAL_RULE: LoadRule = LoadRule { by: LoadBy::Arrivals, keeps_dates: false };

const PLAIN: [Knob; 8] = [
    Knob::Machines,
    Knob::Slots,
    Knob::MapSlots,
    Knob::ReduceSlots,
    Knob::Speed,
    Knob::Load(USUAL_RULE),
    Knob::Slowstart,
    Knob::Heartbeat,
];

impl Knob {
    /// The prefixes of axis texts, one for each knob.
    pub fn beginnings() -> impl Iterator<Item = String> {
        let named = [CAPACITY, PARAMETER].map(str::to_owned);
        PLAIN.into_iter().map(|knob| format!("{knob}=")).chain(named)
    }

    /// Its name, which is that of the option that sets it. The name of a queue or a parameter is left out.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Machines => "machines",
            Self::Slots => "slots",
            Self::MapSlots => "map-slots",
            Self::ReduceSlots => "reduce-slots",
            Self::Speed => "speed",
            Self::Load(_) => "load",
            Self::Slowstart => "slowstart",
            Self::Heartbeat => "heartbeat",
            Self::Capacity(_) => "capacity",
            Self::Parameter(_) => "param",
        }
    }

    fn named(name: &str) -> Result<Self, String> {
        if let Some(queue) = name.strip_prefix(CAPACITY) {
            if queue.is_empty() {
                return Err(
                    "found capacity: without a queue, expected capacity:QUEUE, such as capacity:root.prod=20..80"
                        .to_owned(),
                );
            }
            return Ok(Self::Capacity(queue.to_owned()));
        }
        if let Some(parameter) = name.strip_prefix(PARAMETER).filter(|parameter| !parameter.is_empty()) {
            return Ok(Self::Parameter(parameter.to_owned()));
        }
        let known = PLAIN.each_ref().map(Self::name);
        let names: Vec<&str> = known.into_iter().chain(["capacity:QUEUE", "param:NAME"]).collect();
        PLAIN.into_iter().find(|knob| knob.name() == name).ok_or_else(|| unknown("setting", name, &names))
    }

    /// Whether it is a size: a smaller value is a smaller cluster.
    pub const fn is_size(&self) -> bool {
        self.is_whole() || matches!(self, Self::Speed)
    }

    /// Whether conditions hold up to some value, and not from some value on.
    pub const fn is_load(&self) -> bool {
        matches!(self, Self::Load(_))
    }

    /// Whether it is a number of machines or slots.
    pub const fn is_whole(&self) -> bool {
        matches!(self, Self::Machines | Self::Slots | Self::MapSlots | Self::ReduceSlots)
    }

    /// Sets it to `value` in a workload or in the options of a simulation.
    ///
    /// # Errors
    /// Slots of another kind than the machines have.
    pub(super) fn set(&self, draft: &mut Draft, options: &mut Options, value: f64) -> Result<(), String> {
        let whole = value as u32;
        match self {
            Self::Machines => {
                let machines = draft.machines.first_mut();
                machines.ok_or("the workload has no machines to vary")?.count = whole;
            }
            Self::Load(rule) => rule.apply(draft, value, options.sim.seed),
            Self::Slowstart => options.slowstart = value,
            Self::Heartbeat => options.sim.heartbeat = Span::from_seconds_nearest(value),
            Self::Speed => draft.machines.iter_mut().for_each(|machine| machine.speed = value),
            // These are settings of the policy.
            Self::Capacity(_) | Self::Parameter(_) => {}
            Self::Slots | Self::MapSlots | Self::ReduceSlots => {
                for machine in &mut draft.machines {
                    machine.slots = self.of_machine(machine.slots, whole)?;
                }
            }
        }
        Ok(())
    }

    fn of_machine(&self, slots: Slots, value: u32) -> Result<Slots, String> {
        match (self, slots) {
            (Self::Slots, Slots::Generic(_)) => Ok(Slots::Generic(value)),
            (Self::MapSlots, Slots::MapReduce { reduce, .. }) => Ok(Slots::MapReduce { map: value, reduce }),
            (Self::ReduceSlots, Slots::MapReduce { map, .. }) => Ok(Slots::MapReduce { map, reduce: value }),
            (_, Slots::Generic(_)) => Err(format!(
                "the machines have generic slots, so {} cannot be varied: vary slots instead",
                self.name()
            )),
            (_, Slots::MapReduce { .. }) => {
                Err("the machines have map and reduce slots: vary map-slots or reduce-slots".to_owned())
            }
        }
    }
}

/// Values of a knob.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity to vary.
    pub knob: Knob,
    /// The values to try.
    pub values: Values,
}

/// The values of an axis.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// Every whole number of a range.
    Range(RangeInclusive<u32>),
    /// These values, in ascending order.
    Listed(Vec<f64>),
}

/// The number of values of a range without a step.
const POINTS: u32 = 20;
/// A range of whole numbers of a parameter has step 1 if its length is between these.
const WHOLE: (f64, f64) = (2.0, 50.0);
/// The least and the most that the speed of a machine can be.
const SPEED: (f64, f64) = (1e-6, 1e6);
/// The maximum number of listed values.
const MOST: f64 = 10_000.0;

impl Axis {
    /// An axis of numbers of machines.
    pub fn machines(range: RangeInclusive<u32>) -> Self {
        Self { knob: Knob::Machines, values: Values::Range(range) }
    }

    /// Refuses an axis without values or with invalid ones. If each value is tried, refuses too many of them.
    pub(super) fn check(&self, tries_each: bool) -> Result<(), String> {
        let number = match &self.values {
            Values::Range(range) if range.is_empty() => {
                return Err(backwards(f64::from(*range.start()), f64::from(*range.end())));
            }
            Values::Range(range) if !tries_each => return Ok(()),
            Values::Range(range) => f64::from(range.end() - range.start()) + 1.0,
            Values::Listed(values) => {
                let most = match self.knob {
                    Knob::Slowstart => 1.0,
                    Knob::Capacity(_) => 100.0,
                    Knob::Speed => SPEED.1,
                    Knob::Load(_) => *LOADS.end(),
                    // The policy checks its parameters.
                    Knob::Parameter(_) => f64::MAX,
                    _ => SECONDS_MAX,
                };
                let least = match self.knob {
                    Knob::Speed => SPEED.0,
                    Knob::Load(_) => *LOADS.start(),
                    _ => 0.0,
                };
                if let Some(value) = values.iter().find(|value| !(least..=most).contains(*value)) {
                    return Err(format!(
                        "found {value} for {}, expected values from {least} to {most}",
                        self.knob
                    ));
                }
                values.len() as f64
            }
        };
        if (1.0..=MOST + 1.0).contains(&number) {
            return Ok(());
        }
        Err(format!("found {number} values for {}, expected from 1 to {MOST}", self.knob))
    }

    /// The largest value.
    pub fn largest(&self) -> f64 {
        match &self.values {
            Values::Range(range) => f64::from(*range.end()),
            Values::Listed(values) => values.last().copied().unwrap_or_default(),
        }
    }

    /// The approximate number of values that are tried: all values of a list; for a range, the steps of the
    /// bisection and its checks.
    pub fn to_be_tried(&self) -> usize {
        match &self.values {
            Values::Range(range) => {
                5 + range.end().abs_diff(*range.start()).saturating_add(1).ilog2() as usize
            }
            Values::Listed(values) => values.len(),
        }
    }

    /// The smallest value.
    pub fn smallest(&self) -> f64 {
        match &self.values {
            Values::Range(range) => f64::from(*range.start()),
            Values::Listed(values) => values.first().copied().unwrap_or_default(),
        }
    }
}

fn backwards(from: f64, to: f64) -> String {
    format!("found {from}..{to}, expected the smaller value first")
}

impl FromStr for Axis {
    type Err = String;

    /// Reads `NAME=A..B` or `NAME=A..B:STEP`, such as `slots=1..16` or `slowstart=0.05..1:0.05`. Without a
    /// step, a number of machines or slots takes all whole numbers in the range, a parameter takes them if there are
    /// from 3 to 51, and everything else takes 20 evenly spaced values.
    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str =
            "expected NAME=A..B or NAME=A..B:STEP, such as slots=1..16 or slowstart=0.05..1";
        let (name, values) = text.split_once('=').ok_or(EXPECTED)?;
        let knob = Knob::named(name.trim())?;
        let (range, step) =
            values.split_once(':').map_or((values, None), |(range, step)| (range, Some(step)));
        let (from, to) = range.split_once("..").ok_or(EXPECTED)?;
        let [from, to] = [from, to].map(|value| knob.value(value.trim()));
        let (from, to) = (from?, to?);
        let step = step.map(|step| knob.value(step.trim())).transpose()?;
        if from > to {
            return Err(backwards(from, to));
        }
        // Hadoop's files have percentages. A value that looks like a fraction of 1 is probably not meant as a
        // fraction of a percent.
        if matches!(knob, Knob::Capacity(_)) && to <= 1.0 && !values.contains('%') {
            return Err(format!(
                "found {values} for {}, which is at most one percent, expected percentages such as 20..80 (or {from}..{to}%)",
                knob.name()
            ));
        }
        let values = values_of(&knob, from, to, step)?;
        Ok(Self { knob, values })
    }
}

fn values_of(knob: &Knob, from: f64, to: f64, step: Option<f64>) -> Result<Values, String> {
    if knob.is_whole() && step.is_none() {
        return Ok(Values::Range(from as u32..=to as u32));
    }
    let are_whole = matches!(knob, Knob::Parameter(_))
        && [from, to].iter().all(|end| end.fract() == 0.0)
        && (WHOLE.0..=WHOLE.1).contains(&(to - from));
    let even = if are_whole { 1.0 } else { (to - from) / f64::from(POINTS - 1) };
    let step = step.unwrap_or(even);
    if from == to {
        return Ok(Values::Listed(vec![from]));
    }
    if step <= 0.0 || (to - from) / step > MOST {
        return Err(format!("found a step of {step}, expected one above 0 that makes at most {MOST} values"));
    }
    // A last value that exceeds the end only by rounding is the end.
    let steps = ((to - from) / step * (1.0 + 1e-12)).floor() as u32;
    let mut values: Vec<f64> = (0..=steps).map(|k| digits(from + f64::from(k) * step).min(to)).collect();
    if values.last().is_some_and(|&last| last < to) {
        values.push(to);
    }
    Ok(Values::Listed(values))
}

/// Removes the rounding errors that sums of steps leave.
fn digits(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

impl Knob {
    fn value(&self, text: &str) -> Result<f64, String> {
        let wrong = |expected: &str| format!("found {text:?} for {}, expected {expected}", self.name());
        let number = match self {
            Self::Heartbeat => return duration::parse_option(text).map_err(|expected| wrong(&expected)),
            Self::Slowstart => {
                let number = text.parse().ok().filter(|value: &f64| (0.0..=1.0).contains(value));
                return number.ok_or_else(|| wrong("a fraction from 0 to 1"));
            }
            Self::Capacity(_) => {
                let number = text.trim_end_matches('%').trim_end().parse().ok();
                let number = number.filter(|value: &f64| (0.0..=100.0).contains(value));
                return number.ok_or_else(|| wrong("a percentage from 0 to 100"));
            }
            Self::Speed => {
                let number = text.parse().ok().filter(|value: &f64| (SPEED.0..=SPEED.1).contains(value));
                return number.ok_or_else(|| wrong("a number from 0.000001 to 1000000"));
            }
            Self::Load(_) => {
                let number = text.parse().ok().filter(|value: &f64| LOADS.contains(value));
                return number.ok_or_else(|| wrong("a number from 0.01 to 100"));
            }
            Self::Parameter(_) => {
                let number =
                    duration::parse_option(text).ok().filter(|value| value.is_finite() && *value >= 0.0);
                return number.ok_or_else(|| wrong("a number from 0"));
            }
            Self::Machines | Self::Slots => text.parse().ok().filter(|n: &u32| *n > 0),
            Self::MapSlots | Self::ReduceSlots => text.parse().ok(),
        };
        number.map(f64::from).ok_or_else(|| wrong("a whole number"))
    }
}

impl fmt::Display for Knob {
    /// Its name, with the queue or the parameter if it has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(queue) => write!(f, "{CAPACITY}{queue}"),
            Self::Parameter(name) => write!(f, "{PARAMETER}{name}"),
            knob => f.write_str(knob.name()),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.values {
            Values::Range(range) if range.start() == range.end() => write!(f, "{}", range.start()),
            Values::Range(range) => write!(f, "{}..{}", range.start(), range.end()),
            Values::Listed(values) => {
                write!(f, "{} values of {}..{}", values.len(), self.smallest(), self.largest())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_ranges_of_sizes_or_lists_of_settings() {
        let axis = |text: &str| text.parse::<Axis>();
        assert_eq!(axis("machines=10..600").unwrap(), Axis::machines(10..=600));
        assert_eq!(axis("slots=2..8:2").unwrap().values, Values::Listed(vec![2.0, 4.0, 6.0, 8.0]));
        assert_eq!(axis("slots=2..7:2").unwrap().values, Values::Listed(vec![2.0, 4.0, 6.0, 7.0]));
        assert_eq!(axis("slowstart=0.1..0.3:0.1").unwrap().values, Values::Listed(vec![0.1, 0.2, 0.3]));
        let Values::Listed(values) = axis("slowstart=0.05..1").unwrap().values else { panic!() };
        assert_eq!((values.len(), values[0], values[1], values[19]), (20, 0.05, 0.1, 1.0));
        assert_eq!(axis("heartbeat=1s..1m:59").unwrap().values, Values::Listed(vec![1.0, 60.0]));
        let capacity = axis("capacity:root.prod=20..80%:20").unwrap();
        assert_eq!(capacity.knob, Knob::Capacity("root.prod".to_owned()));
        assert_eq!(capacity.values, Values::Listed(vec![20.0, 40.0, 60.0, 80.0]));
        assert_eq!(capacity.knob.to_string(), "capacity:root.prod");
        assert_eq!(axis("speed=0.5..2:0.5").unwrap().values, Values::Listed(vec![0.5, 1.0, 1.5, 2.0]));
        let parameter = axis("param:k=2..5").unwrap();
        assert_eq!(parameter.knob, Knob::Parameter("k".to_owned()));
        assert_eq!(parameter.values, Values::Listed(vec![2.0, 3.0, 4.0, 5.0]));
        let Values::Listed(values) = axis("param:k=0..1").unwrap().values else { panic!() };
        assert_eq!(values.len(), 20);
    }

    #[test]
    fn an_invalid_axis_is_refused() {
        let error = |text: &str| text.parse::<Axis>().unwrap_err();
        assert!(error("slots").starts_with("expected NAME=A..B"), "{}", error("slots"));
        assert!(error("slot=1..2").contains("slots"), "{}", error("slot=1..2"));
        assert!(error("slots=0..2").contains("a whole number"), "{}", error("slots=0..2"));
        assert!(error("slots=3..2").contains("the smaller value first"));
        assert!(error("slowstart=0..2").contains("a fraction from 0 to 1"));
        assert!(error("slowstart=0..1:0").contains("a step of 0"));
        assert!(error("capacity:=1..2").contains("without a queue"));
        assert!(error("capacity:a=1..200").contains("a percentage from 0 to 100"));
        assert!(error("capacity:a=0.3..0.9").contains("expected percentages such as 20..80 (or 0.3..0.9%)"));
        assert!("capacity:a=0.3..0.9%".parse::<Axis>().is_ok());
        assert!(error("speed=0..2").contains("a number from 0.000001"), "{}", error("speed=0..2"));
        assert!(error("param:k=x..2").contains("a number from 0"));
        assert!(error("param:=1..2").contains("param:NAME"));
        assert!(error("capacity=1..2").contains("capacity:QUEUE"), "{}", error("capacity=1..2"));
    }

    #[test]
    fn slots_are_of_the_kind_that_machines_have() {
        assert_eq!(Knob::Slots.of_machine(Slots::Generic(3), 5), Ok(Slots::Generic(5)));
        let map_reduce = Slots::MapReduce { map: 2, reduce: 1 };
        assert_eq!(Knob::MapSlots.of_machine(map_reduce, 5), Ok(Slots::MapReduce { map: 5, reduce: 1 }));
        assert_eq!(Knob::ReduceSlots.of_machine(map_reduce, 5), Ok(Slots::MapReduce { map: 2, reduce: 5 }));
        assert!(Knob::Slots.of_machine(map_reduce, 5).is_err());
        assert!(Knob::MapSlots.of_machine(Slots::Generic(3), 5).is_err());
    }
}
