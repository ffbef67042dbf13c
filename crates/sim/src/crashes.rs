//! Machine failures, from a script or at a seeded rate.

use slackline_model::random;
use slackline_model::{MachineId, Seed, Span, Time};

/// When machines fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Crashes {
    /// Never.
    Never,
    /// As written down.
    Script(Vec<Crash>),
    /// Each machine by itself, after an exponential time up with mean `between`, for `repair`.
    Rate {
        /// Mean time a machine is up.
        between: Span,
        /// How long it is down.
        repair: Span,
    },
}

/// One failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Which machine.
    pub machine: MachineId,
    /// When it dies.
    pub at: Time,
    /// When it comes back empty, if ever.
    pub back: Option<Time>,
}

/// Two failures of a script that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found a failure of a machine at {at} while it is down or dead since {since}")]
pub struct Overlap {
    /// Which machine.
    pub machine: MachineId,
    /// The earlier failure.
    pub since: Time,
    /// The later one.
    pub at: Time,
}

impl Crashes {
    /// A script in which no machine fails while it is down.
    ///
    /// # Errors
    /// The first two failures of a machine that overlap; a machine that comes back at the instant of its
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
        // A machine is away for a microsecond at least, so that it is down before it is up again.
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
}
