//! Data of others that tests read where it is at hand: the folder that `SLACKLINE_DATA` names.

use std::io::Write;
use std::path::PathBuf;

/// A file or folder of that data; `None`, said aloud, where it is not at hand.
///
/// # Panics
/// If it is not at hand and `SLACKLINE_REQUIRE_DATA` is 1.
pub(crate) fn real(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("SLACKLINE_DATA").map(|folder| PathBuf::from(folder).join(name));
    let found = path.filter(|path| path.exists());
    if found.is_none() {
        let required = std::env::var_os("SLACKLINE_REQUIRE_DATA").is_some_and(|value| value == "1");
        assert!(!required, "SLACKLINE_DATA has no {name}, and SLACKLINE_REQUIRE_DATA=1 requires it");
        // Not by a print macro: tests that pass keep what those print to themselves.
        let _ = writeln!(std::io::stderr(), "NOT TESTED: SLACKLINE_DATA has no {name}");
    }
    found
}
