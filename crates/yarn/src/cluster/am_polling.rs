//! When an ApplicationMaster is asked how far its job is: each question goes through the ResourceManager's proxy.

/// An ApplicationMaster about which nothing seems to change is asked after so many looks.
const ASKED_EVERY: u32 = 20;

/// The most looks between two tries with an ApplicationMaster that does not answer.
const BACK_OFF: u32 = 32;

/// When an ApplicationMaster was asked, and is to be.
#[derive(Clone, Debug)]
pub(crate) struct PollSchedule {
    /// Whether it may say something new.
    pub(crate) changed: bool,
    /// Looks since it was asked, and until it may be.
    asked: u32,
    waits: u32,
    failures: u32,
}

impl PollSchedule {
    /// One that was never asked.
    pub(crate) fn new() -> Self {
        Self { changed: true, asked: 0, waits: 0, failures: 0 }
    }

    /// Whether it is to be asked at this look; `is_open` says that an answer is waited for.
    pub(crate) fn is_due(&mut self, is_open: bool) -> bool {
        self.asked += 1;
        if self.waits > 0 {
            self.waits -= 1;
            return false;
        }
        self.changed || is_open || self.asked >= ASKED_EVERY
    }

    /// It has answered, or not.
    pub(crate) fn answered(&mut self, well: bool) {
        self.asked = 0;
        if well {
            (self.failures, self.changed) = (0, false);
        } else {
            self.failures = (self.failures + 1).min(BACK_OFF.ilog2());
            self.waits = 1 << self.failures;
        }
    }
}
