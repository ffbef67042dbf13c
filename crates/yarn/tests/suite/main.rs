//! The crate against a mock cluster and a mock submitter.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod attach;
mod cluster_checks;
mod http;
mod observer;
mod rest;
mod submitter;

use std::time::Duration;

use slackline_yarn::mock::{Mock, Mood};
use slackline_yarn::{ResourceManager, Settings};

/// Retries without long pauses.
fn quick() -> Settings {
    Settings { back_off: Duration::from_millis(1), ..Settings::default() }
}

fn manager(mock: &Mock) -> ResourceManager {
    ResourceManager::new(&mock.address(), quick())
}

/// From now on, addresses that contain `part` get this document.
fn says(mock: &Mock, part: &'static str, document: &str) {
    let mood = Mood::Says(200, "application/json;charset=utf-8", document.to_owned());
    mock.with(|state| state.moods.insert(0, (part, usize::MAX, mood)));
}

/// The next requests for addresses that contain `part` get this answer.
fn next(mock: &Mock, part: &'static str, times: usize, mood: Mood) {
    mock.with(|state| state.moods.insert(0, (part, times, mood)));
}
