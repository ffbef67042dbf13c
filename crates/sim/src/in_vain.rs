//! Ends simulations that make no progress.

/// The number of consecutive machine failures without progress after which a simulation stops. Tasks that
/// outlast every machine, or whose output is lost repeatedly, would otherwise be retried forever. On a large
/// cluster the limit is [`FAILURES_IN_VAIN_EACH`] for each machine.
pub(crate) const FAILURES_IN_VAIN: u32 = 1_000;
const FAILURES_IN_VAIN_EACH: u32 = 100;

/// The number of consecutive wakes, with nothing running and no flow or machine to come, after which a
/// simulation stops. A policy that plans by epochs would otherwise continue forever on dead machines.
const WAKES_IN_VAIN: u32 = 100_000;

/// What happened since the last progress.
pub(crate) struct InVain {
    /// Failures of machines, and the limit on them.
    pub(crate) failures: u32,
    pub(crate) failures_max: u32,
    /// Wake-ups of the policy.
    pub(crate) wakes: u32,
}

impl InVain {
    pub(crate) fn new(machines: u32) -> Self {
        let failures_max = FAILURES_IN_VAIN.max(machines.saturating_mul(FAILURES_IN_VAIN_EACH));
        Self { failures: 0, failures_max, wakes: 0 }
    }

    pub(crate) fn is_too_much(&self) -> bool {
        self.failures >= self.failures_max || self.wakes >= WAKES_IN_VAIN
    }
}
