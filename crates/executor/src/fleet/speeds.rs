//! Estimates the speeds of machines from finished tasks. A machine is twice as fast as another one if tasks
//! of the same phases take half as long there.
//!
//! Machines that differ by very little count as equal: the difference is noise, and policies that support
//! only equal machines can continue with them.

use std::collections::BTreeMap;

use slackline_model::PhaseKind;
use slackline_policy::learning;

use crate::spec::job_cost::{JobCost, JobHistory, records};

/// Machines whose speeds differ by less than this part count as equal.
const NOISE: f64 = 0.15;

/// Learned speeds, to three digits; their mean is 1 unless they were brought into another unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds(BTreeMap<String, f64>);

impl Speeds {
    /// Learns the speeds from the finished tasks of jobs. O(jobs · machines²).
    pub fn learned(jobs: &JobHistory) -> Self {
        let all = learning::speeds(&records(jobs));
        let named = jobs.values().flat_map(|cost| cost.machines.keys());
        let of: BTreeMap<&String, f64> = named.filter_map(|name| Some((name, *all.get(name)?))).collect();
        let (mean, slowest) =
            (of.values().sum::<f64>() / of.len() as f64, of.values().copied().fold(f64::MAX, f64::min));
        let are_equal = of.values().all(|speed| *speed <= slowest * (1.0 + NOISE));
        let speed = |speed: f64| if are_equal { 1.0 } else { digits(speed / mean) };
        Self(of.into_iter().map(|(name, of)| (name.clone(), speed(of))).collect())
    }

    /// The same speeds, in the unit of machines with known speeds.
    #[must_use]
    pub fn in_unit_of<'a>(self, known: impl Iterator<Item = (&'a str, f64)>) -> Self {
        let ratios: Vec<f64> = known.filter_map(|(name, speed)| Some(speed / self.of(name)?)).collect();
        if ratios.is_empty() {
            return self;
        }
        let unit = ratios.iter().sum::<f64>() / ratios.len() as f64;
        Self(self.0.into_iter().map(|(name, speed)| (name, digits(speed * unit))).collect())
    }

    /// The speed of a machine; `None` if unknown.
    pub fn of(&self, machine: &str) -> Option<f64> {
        self.0.get(machine).copied()
    }

    /// The cost of a job on machines of speed 1.
    pub fn sized(&self, cost: &JobCost) -> JobCost {
        let mut sized = cost.clone();
        for (name, took) in &cost.machines {
            let Some(speed) = self.of(name) else { continue };
            let more = |micros: u64| (micros as f64 * speed).round() as u64;
            sized.map_micros = sized.map_micros.saturating_sub(took.map_micros) + more(took.map_micros);
            sized.reduce_micros =
                sized.reduce_micros.saturating_sub(took.reduce_micros) + more(took.reduce_micros);
        }
        sized
    }

    /// The records of a phase by machine, in proportion to `seconds`, the total duration of its tasks at
    /// speed 1.
    pub fn records(
        &self,
        cost: &JobCost,
        kind: PhaseKind,
        seconds: f64,
    ) -> Vec<(String, slackline_model::history::Record)> {
        let by_machine = cost.records(kind);
        let size = |(name, record): &(String, slackline_model::history::Record)| {
            record.seconds * self.of(name).unwrap_or(1.0)
        };
        let whole: f64 = by_machine.iter().map(size).sum();
        if whole <= 0.0 {
            return Vec::new();
        }
        let scaled = by_machine.into_iter().map(|(name, mut record)| {
            record.seconds *= seconds / whole;
            (name, record)
        });
        scaled.collect()
    }
}

/// To three digits: more is noise.
fn digits(speed: f64) -> f64 {
    let unit = 10f64.powi(2 - speed.log10().floor() as i32);
    (speed * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use slackline_trace::MachineCost;

    use super::*;
    use crate::spec::job_cost::JobName;

    /// A job of which each machine has done this many maps, of this many microseconds each.
    fn job(on: &[(&str, u64, u64)]) -> JobHistory {
        let mut cost = JobCost::default();
        for &(machine, maps, micros) in on {
            (0..maps).for_each(|_| cost.add(MachineCost::of(PhaseKind::Map, micros), Some(machine)));
        }
        JobHistory::from([(JobName::new("f", "j"), cost)])
    }

    #[test]
    fn speeds_are_how_much_longer_the_same_takes_elsewhere() {
        let jobs = job(&[("a", 8, 1_000_000), ("b", 2, 4_000_000), ("local", 5, 7)]);
        let speeds = Speeds::learned(&jobs);
        assert_eq!((speeds.of("a"), speeds.of("b"), speeds.of("local")), (Some(1.6), Some(0.4), None));
        // A user who knows one of them fixes the unit of the others.
        let speeds = speeds.in_unit_of([("b", 1.0), ("c", 3.0)].into_iter());
        assert_eq!((speeds.of("a"), speeds.of("b")), (Some(4.0), Some(1.0)));
        let cost = jobs.values().next().unwrap();
        // Sixteen seconds of one machine are sixteen of the other, which takes four times as long for each
        // task.
        assert_eq!(speeds.sized(cost).map_micros, 8 * 4_000_000 + 2 * 4_000_000 + 35);
        let records = speeds.records(cost, PhaseKind::Map, 20.0);
        assert_eq!(records.iter().map(|(_, record)| record.tasks).collect::<Vec<_>>(), [8, 2, 5]);
        let size = |(name, record): &(String, _)| speeds.of(name).unwrap_or(1.0) * seconds(record);
        assert!((records.iter().map(size).sum::<f64>() - 20.0).abs() < 1e-9);
    }

    fn seconds(record: &slackline_model::history::Record) -> f64 {
        record.seconds
    }

    #[test]
    fn machines_that_differ_by_next_to_nothing_are_equal_and_nothing_is_known_of_nothing() {
        let speeds = Speeds::learned(&job(&[("a", 8, 1_000_000), ("b", 8, 1_100_000)]));
        assert_eq!((speeds.of("a"), speeds.of("b")), (Some(1.0), Some(1.0)));
        assert_eq!(Speeds::learned(&JobHistory::new()), Speeds::default());
        assert!(Speeds::default().in_unit_of([("a", 2.0)].into_iter()).of("a").is_none());
    }
}
