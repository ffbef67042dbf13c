#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`api`]: the documents of the HTTP API; [`who`]: who asks, and what they may;
//! - [`record`]: what is written down, so that nothing that was acknowledged is lost;
//! - [`cron`]: when something recurs;
//! - [`desk`]: what becomes of submissions: messages and moments in, effects out;
//! - [`core`], [`front`]: the service at work, and how it is asked; [`unopened`]: submissions that have not begun, as they are shown;
//! - `writer`: writes records to disk, so that the desk does not wait; `watchdog`: notices blocked threads;
//! - [`http`]: the HTTP API, [`client`]: its other end; [`tokens`], [`users`]: who is at the other end; [`metrics`], [`audit`], `refusals`, `tls`.
#![deny(clippy::unwrap_used)]

pub mod api;
pub mod audit;
pub mod client;
mod closer;
pub mod core;
pub mod cron;
pub mod desk;
pub mod flow_file;
pub mod front;
pub mod hooks;
pub mod http;
pub mod metrics;
pub mod opener;
pub mod place;
pub mod predictor;
pub mod record;
mod refusals;
pub mod scheduler;
pub mod store;
pub mod times;
mod tls;
pub mod tokens;
pub mod told;
pub mod unopened;
pub mod users;
pub mod watch;
mod watchdog;
pub mod who;
mod writer;

pub use tls::TlsFiles;

/// A moment: microseconds since 1970.
pub type Moment = u64;

/// Microseconds of a second.
pub const SECOND: u64 = 1_000_000;

/// The moment so many seconds after another, which is the earliest there may be.
pub(crate) fn after(start: Moment, seconds: f64) -> Moment {
    start.saturating_add((seconds.max(0.0) * SECOND as f64) as Moment)
}

/// A moment as documents have it; the last one there is for moments beyond.
pub fn timestamp(at: Moment) -> jiff::Timestamp {
    let micros = i64::try_from(at).ok();
    micros.and_then(|at| jiff::Timestamp::from_microsecond(at).ok()).unwrap_or(jiff::Timestamp::MAX)
}

/// A document's instant; 1970 for what is before.
pub fn moment(at: jiff::Timestamp) -> Moment {
    u64::try_from(at.as_microsecond()).unwrap_or(0)
}
