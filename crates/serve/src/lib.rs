#![doc = include_str!("../README.md")]
#![deny(clippy::unwrap_used)]

pub mod api;
pub mod http;
pub mod service;
pub mod state;

pub use http::tls::TlsFiles;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A moment: microseconds since 1970.
pub type Moment = u64;

/// Microseconds per second.
pub const SECOND: u64 = 1_000_000;

/// Locks a mutex. A thread that panicked meanwhile leaves its value as it is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The moment `seconds` after `start`. Negative seconds count as 0.
pub(crate) fn after(start: Moment, seconds: f64) -> Moment {
    start.saturating_add((seconds.max(0.0) * SECOND as f64) as Moment)
}

/// A moment as a document's timestamp. Later moments become the last possible timestamp.
pub fn timestamp(at: Moment) -> jiff::Timestamp {
    let micros = i64::try_from(at).ok();
    micros.and_then(|at| jiff::Timestamp::from_microsecond(at).ok()).unwrap_or(jiff::Timestamp::MAX)
}

/// A document's timestamp as a moment. Timestamps before 1970 become 0.
pub fn moment(at: jiff::Timestamp) -> Moment {
    u64::try_from(at.as_microsecond()).unwrap_or(0)
}
