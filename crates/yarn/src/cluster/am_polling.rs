//! When to poll an ApplicationMaster (AM) for its progress: each request goes through the ResourceManager's
//! proxy.

/// Polls of the cluster between two requests to an AM without changes.
const ASKED_EVERY: u32 = 20;

/// The most polls to wait between two requests to an AM that does not answer.
const BACK_OFF: u32 = 32;

#[derive(Clone, Debug)]
pub(crate) struct PollSchedule {
    /// Whether the AM may have news.
    pub(crate) changed: bool,
    /// Polls since the last request, and until the next is allowed.
    asked: u32,
    waits: u32,
    failures: u32,
}

impl PollSchedule {
    pub(crate) fn new() -> Self {
        Self { changed: true, asked: 0, waits: 0, failures: 0 }
    }

    /// Whether to ask now; `is_open`: a decision waits for the answer.
    pub(crate) fn is_due(&mut self, is_open: bool) -> bool {
        self.asked += 1;
        if self.waits > 0 {
            self.waits -= 1;
            return false;
        }
        self.changed || is_open || self.asked >= ASKED_EVERY
    }

    /// The AM has answered, or failed to.
    pub(crate) fn record_answer(&mut self, well: bool) {
        self.asked = 0;
        if well {
            (self.failures, self.changed) = (0, false);
        } else {
            self.failures = (self.failures + 1).min(BACK_OFF.ilog2());
            self.waits = 1 << self.failures;
        }
    }
}
