#![doc = include_str!("../README.md")]
#![deny(clippy::unwrap_used)]

pub mod api;
pub mod http;
pub mod service;
pub mod state;

pub use http::tls::TlsFiles;

use std::sync::{Mutex, MutexGuard, PoisonError};

use slackline_model::WallTime;

/// Microseconds per second.
pub const SECOND: u64 = 1_000_000;

/// Locks a mutex. A thread that panicked meanwhile leaves its value as it is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A date as a document's timestamp. Later dates become the last possible timestamp.
pub fn timestamp(at: WallTime) -> jiff::Timestamp {
    let micros = i64::try_from(at.0).ok();
    micros.and_then(|at| jiff::Timestamp::from_microsecond(at).ok()).unwrap_or(jiff::Timestamp::MAX)
}

/// A document's timestamp as a date. Timestamps before 1970 become 0.
pub fn wall_time(at: jiff::Timestamp) -> WallTime {
    WallTime(u64::try_from(at.as_microsecond()).unwrap_or(0))
}
