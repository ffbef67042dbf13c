//! Machine failures, from a script or at a seeded rate.

use slackline_model::{MachineId, Seed, Span, Time};
use slackline_random as random;

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
        Some(Crash { machine, at, back: Some(at + repair) })
    }
}
