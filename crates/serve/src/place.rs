//! Where a service keeps its files.
//!
//! ```text
//! service.log       what was submitted, and what became of it
//! flows/NAME/       the state directory of the runs of a name, as `run` has it
//! users/USER/NAME/  the same, of a user as whom their flows run: theirs, in a directory that is the service's
//! gone/             state directories that are about to be removed
//! engine/           of the engine: which workers are at work
//! past.history      what jobs took
//! tokens.json       who may what, if it is reached over a network
//! audit.log         who asked for what
//! ```

use std::path::{Path, PathBuf};

/// The state directory of a service.
#[derive(Clone, Debug)]
pub struct Place(PathBuf);

impl Place {
    /// That of a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// What was submitted, and what became of it.
    pub fn log(&self) -> PathBuf {
        self.0.join("service.log")
    }

    /// Whether a service has been at work there.
    pub fn has_served(&self) -> bool {
        self.log().exists()
    }

    /// The state directory of the runs of a name; that of another user's has their name before it.
    pub fn run(&self, name: &str) -> PathBuf {
        self.0.join(if name.contains('/') { "users" } else { "flows" }).join(name)
    }

    /// Where the state directories of runs are but for those of other users.
    pub fn flows(&self) -> PathBuf {
        self.0.join("flows")
    }

    /// Where the state directory of a name is before it is removed.
    pub fn gone(&self, k: u64) -> PathBuf {
        self.0.join("gone").join(k.to_string())
    }

    /// Where such directories are.
    pub fn all_gone(&self) -> PathBuf {
        self.0.join("gone")
    }

    /// The engine's own files.
    pub fn engine(&self) -> PathBuf {
        self.0.join("engine")
    }

    /// What jobs took.
    pub fn history(&self) -> PathBuf {
        self.0.join("past.history")
    }

    /// The socket that those of this machine ask by.
    pub fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    /// Who may what.
    pub fn tokens(&self) -> PathBuf {
        self.0.join("tokens.json")
    }

    /// Who asked for what.
    pub fn audit(&self) -> PathBuf {
        self.0.join("audit.log")
    }
}
