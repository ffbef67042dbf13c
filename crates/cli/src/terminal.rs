//! Everything that is printed or shown: results, messages, progress bars, the live view, submissions of a
//! service.

pub(crate) mod clock;
pub(crate) mod input;
pub(crate) mod jobs;
pub(crate) mod numbers;
pub(crate) mod out;
pub(crate) mod progress;
pub(crate) mod service;
pub(crate) mod watch;
