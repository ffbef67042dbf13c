//! Machine failures, from a script or at a seeded rate.

use slackline_model::{MachineId, Seed, Span, Time, random};

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Crashes {
    Never,
    /// The failures of a script.
    Script(Vec<Crash>),
    /// Each machine fails independently, after an exponential time with mean `between`, for `repair`.
    Rate {
        /// Mean time a machine is up.
        between: Span,
        /// How long it is down.
        repair: Span,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    pub machine: MachineId,
    pub at: Time,
    /// When it comes back empty, if ever.
    pub back: Option<Time>,
}

/// Two failures of a script that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found a failure at {at} of a machine that has been down or dead since {since}")]
pub struct Overlap {
    pub machine: MachineId,
    /// The earlier failure.
    pub since: Time,
    /// The later one.
    pub at: Time,
}

impl Crashes {
    /// Creates a script in which no machine fails while it is down.
    ///
    /// # Errors
    /// The first two failures of a machine that overlap. A machine that comes back at the instant of its
    /// failure overlaps itself.
    pub fn script(mut crashes: Vec<Crash>) -> Result<Self, Overlap> {
        crashes.sort_by_key(|crash| (crash.machine, crash.at));
        for crash in &crashes {
            if crash.back.is_some_and(|back| back <= crash.at) {
                return Err(Overlap { machine: crash.machine, since: crash.at, at: crash.at });
            }
        }
        for pair in crashes.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if first.machine == second.machine && first.back.is_none_or(|back| back > second.at) {
                return Err(Overlap { machine: first.machine, since: first.at, at: second.at });
            }
        }
        Ok(if crashes.is_empty() { Self::Never } else { Self::Script(crashes) })
    }
}

/// The failures of each machine, one after the other.
#[derive(Debug)]
pub(crate) struct Failures {
    crashes: Crashes,
    streams: Vec<random::ChaCha8Rng>,
}

impl Failures {
    pub(crate) fn new(crashes: Crashes, seed: Seed, n_machines: u32) -> Self {
        let streams = match crashes {
            Crashes::Rate { .. } => {
                (0..n_machines).map(|m| random::rng(seed, "crashes", u64::from(m))).collect()
            }
            Crashes::Never | Crashes::Script(_) => Vec::new(),
        };
        Self { crashes, streams }
    }

    /// Failures known from the start: the whole script, or each machine's first.
    pub(crate) fn initial(&mut self) -> Vec<Crash> {
        match &self.crashes {
            Crashes::Never => Vec::new(),
            Crashes::Script(script) => script.clone(),
            Crashes::Rate { .. } => {
                let machines = 0..self.streams.len();
                machines.filter_map(|m| self.after(MachineId::from(m), Time::ZERO)).collect()
            }
        }
    }

    /// The failure of `machine` that follows its recovery at `up`, if failures come at a rate.
    pub(crate) fn after(&mut self, machine: MachineId, up: Time) -> Option<Crash> {
        let Crashes::Rate { between, repair } = self.crashes else { return None };
        let wait = random::exponential(&mut self.streams[machine.index()], between.seconds());
        let at = up + Span::from_seconds_nearest(wait);
        // A machine is away for at least a microsecond, so that it is down before it is up again.
        Some(Crash { machine, at, back: Some(at + repair.max(Span(1))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(machine: u32, at: u64, back: Option<u64>) -> Crash {
        Crash { machine: MachineId(machine), at: Time(at), back: back.map(Time) }
    }

    #[test]
    fn a_machine_cannot_fail_while_it_is_down() {
        let fine = vec![crash(0, 5, Some(7)), crash(1, 6, None), crash(0, 7, None)];
        assert!(Crashes::script(fine).is_ok());
        for wrong in [
            vec![crash(0, 5, None), crash(0, 7, Some(8))],
            vec![crash(0, 5, Some(65)), crash(0, 20, Some(25))],
            vec![crash(0, 5, Some(5))],
        ] {
            assert!(Crashes::script(wrong).is_err());
        }
        assert_eq!(Crashes::script(Vec::new()), Ok(Crashes::Never));
    }
    #[test]
    fn failures_that_overlap_are_named() {
        let overlap = Crashes::script(vec![crash(1, 20, None), crash(1, 5, Some(21))]).unwrap_err();
        assert_eq!(overlap, Overlap { machine: MachineId(1), since: Time(5), at: Time(20) });
        let backwards = Crashes::script(vec![crash(0, 5, Some(4))]).unwrap_err();
        assert_eq!(backwards, Overlap { machine: MachineId(0), since: Time(5), at: Time(5) });
    }

    #[test]
    fn a_script_is_known_from_the_start_and_ends() {
        let script = vec![crash(0, 5, Some(7)), crash(1, 6, None)];
        let mut failures = Failures::new(Crashes::Script(script.clone()), Seed(1), 2);
        assert_eq!(failures.initial(), script);
        assert_eq!(failures.after(MachineId(0), Time(7)), None);
        assert_eq!(Failures::new(Crashes::Never, Seed(1), 2).initial(), []);
    }

    #[test]
    fn machines_fail_at_the_rate_each_by_itself() {
        let rate = |repair| Crashes::Rate { between: Span(1_000_000), repair: Span(repair) };
        let first = |seed, repair| Failures::new(rate(repair), Seed(seed), 3).initial();
        let machines: Vec<u32> = first(1, 9).iter().map(|crash| crash.machine.0).collect();
        assert_eq!(machines, [0, 1, 2]);
        assert_eq!(first(1, 9), first(1, 9));
        assert_ne!(first(1, 9)[0].at, first(1, 9)[1].at);
        assert_ne!(first(1, 9)[0].at, first(2, 9)[0].at);
        for crash in first(1, 9) {
            assert_eq!(crash.back, Some(crash.at + Span(9)));
        }
        // A machine is down before it is up again.
        assert!(first(1, 0).iter().all(|crash| crash.back == Some(crash.at + Span(1))));
    }

    #[test]
    fn machines_are_up_for_the_mean_time_on_average() {
        let rate = Crashes::Rate { between: Span(1_000_000), repair: Span(1) };
        let mut failures = Failures::new(rate, Seed(3), 1);
        let up = |failures: &mut Failures| {
            let crash = failures.after(MachineId(0), Time(500)).expect("failures come at a rate");
            crash.at.since(Time(500)).seconds()
        };
        let times: Vec<f64> = (0..4000).map(|_| up(&mut failures)).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        // The mean of 4000 exponential times has a standard deviation of 1/63.
        assert!((mean - 1.0).abs() < 0.06, "{mean}");
    }
}
