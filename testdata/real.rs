//! Real traces, which we may not publish: tests find them in the folder that `SLACKLINE_DATA` names.
//!
//! Crates whose tests read real traces include this file.

use std::io::Write;
use std::path::PathBuf;

/// The file or folder of that name among the real data. `None` if `SLACKLINE_DATA` is not set; a message then
/// says so on standard error, which the test harness does not capture.
///
/// # Panics
/// If `SLACKLINE_DATA` names a folder without it, or is not set although `SLACKLINE_REQUIRE_DATA=1` asks for it.
pub(crate) fn real(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SLACKLINE_DATA") else {
        let required = std::env::var_os("SLACKLINE_REQUIRE_DATA").is_some_and(|value| value == "1");
        assert!(!required, "SLACKLINE_REQUIRE_DATA=1 asks for {name}, but SLACKLINE_DATA is not set");
        skipped(&format!("SLACKLINE_DATA is not set, so there is no {name}"));
        return None;
    };
    let path = PathBuf::from(folder).join(name);
    assert!(path.exists(), "SLACKLINE_DATA has no {name}: {} is missing", path.display());
    Some(path)
}

/// Says that a test could not do what it is for. Printing macros are captured while tests pass, the stream is not.
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "SKIPPED {}: {why}", thread.name().unwrap_or("a test"));
}
