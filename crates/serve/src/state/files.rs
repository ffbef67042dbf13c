//! The files that a submission waits for before it starts.

use jiff::SignedDuration;
use slackline_model::WallTime;
use slackline_task::base::clock::Elapsed;

use crate::SECOND;
use crate::state::record::SubmissionSpec;

/// How long a submission waits for files, seconds.
const WHEN_FOR: f64 = 86_400.0;

/// How long files must not have changed, seconds: a file that is still being written changes.
const WHEN_STILL: f64 = 2.0;

/// What is known of the files of a submission.
#[derive(Debug)]
pub(super) enum AwaitedFiles {
    /// They are complete, or the submission waits for none.
    There,
    Awaited {
        /// From when on the submission waits for nothing else, and the time limit counts. `None`: it does.
        since: Option<WallTime>,
        last: Option<LastLook>,
    },
}

/// The result of the last look at the files.
#[derive(Debug)]
pub(super) enum LastLook {
    /// One that was missing.
    Missing(String),
    /// All exist, with this digest since then.
    Found(u64, Elapsed),
}

impl AwaitedFiles {
    pub(super) fn of(wanted: &SubmissionSpec) -> Self {
        if wanted.awaits_files() { Self::Awaited { since: None, last: None } } else { Self::There }
    }

    pub(super) fn are_there(&self) -> bool {
        matches!(self, Self::There)
    }

    pub(super) fn missing(&self) -> Option<&String> {
        if let Self::Awaited { last: Some(LastLook::Missing(missing)), .. } = self {
            Some(missing)
        } else {
            None
        }
    }

    /// The reason to wait.
    pub(super) fn why(&self) -> Option<String> {
        let Self::Awaited { last, .. } = self else { return None };
        Some(match last {
            None => "waits for files".to_owned(),
            Some(LastLook::Missing(missing)) => format!("waits for {missing}, which does not exist"),
            Some(LastLook::Found(..)) => "waits until its files have stopped changing".to_owned(),
        })
    }

    /// Starts the time limit, unless it runs already.
    pub(super) fn await_from(&mut self, at: WallTime) {
        if let Self::Awaited { since, .. } = self {
            since.get_or_insert(at);
        }
    }

    /// Stops the time limit: the submission waits for something else.
    pub(super) fn stop_waiting(&mut self) {
        if let Self::Awaited { since, .. } = self {
            *since = None;
        }
    }

    /// Stores the result of a look.
    pub(super) fn look(&mut self, wanted: &SubmissionSpec, found: Result<u64, String>, elapsed: Elapsed) {
        let Self::Awaited { last, .. } = self else { return };
        let still = microseconds(wanted.submit.when_still.unwrap_or(WHEN_STILL));
        match found {
            Err(missing) => *last = Some(LastLook::Missing(missing)),
            Ok(digest) => {
                let since = match last {
                    Some(LastLook::Found(before, since)) if *before == digest => *since,
                    _ => elapsed,
                };
                *last = Some(LastLook::Found(digest, since));
                if elapsed.since(since) >= still {
                    *self = Self::There;
                }
            }
        }
    }

    /// The reason to give up, if the time limit has passed.
    pub(super) fn given_up(&self, wanted: &SubmissionSpec, now: WallTime) -> Option<String> {
        let Self::Awaited { since: Some(since), last } = self else { return None };
        let limit = wanted.submit.when_for.unwrap_or(WHEN_FOR);
        if now.since(*since) < microseconds(limit) {
            return None;
        }
        let limit = format!("{:#}", SignedDuration::from_micros(microseconds(limit).cast_signed()));
        Some(match last {
            Some(LastLook::Missing(missing)) => format!("gave up after {limit}: {missing} does not exist"),
            _ => format!("gave up after {limit}: its files have not stopped changing"),
        })
    }
}

fn microseconds(seconds: f64) -> u64 {
    (seconds * SECOND as f64) as u64
}
