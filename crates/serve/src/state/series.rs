//! The unfinished submissions, by the state directory that their runs share.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::api::Submission;
use crate::state::record::SubmissionSpec;

/// Names the state directory of runs. Runs of one key start one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    pub name: String,
    /// The digest of the parameters that distinguish the paths of one time of a schedule from those of others.
    /// `None`: all submissions of the name share paths.
    pub time: Option<String>,
}

impl RunKey {
    pub fn of(wanted: &SubmissionSpec) -> Self {
        let values: Vec<_> = wanted.own_by.iter().map(|name| wanted.submit.parameters.get(name)).collect();
        let time = (!values.is_empty()).then(|| digest(&format!("{values:?}")));
        Self { name: wanted.name.clone(), time }
    }

    pub fn of_shown(shown: &Submission) -> Self {
        Self { name: shown.name.clone(), time: shown.own_state.clone() }
    }
}

/// Half of a SHA-256, in hexadecimal: no two texts with the same one can be found.
fn digest(text: &str) -> String {
    use sha2::Digest;
    let sum = sha2::Sha256::digest(text.as_bytes());
    sum.iter().take(16).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The unfinished submissions of each key, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Series(BTreeMap<RunKey, VecDeque<u64>>);

impl Series {
    pub(super) fn enter(&mut self, key: RunKey, number: u64) {
        self.0.entry(key).or_default().push_back(number);
    }

    /// Removes a submission, and returns the first of those that remain.
    pub(super) fn leave(&mut self, key: &RunKey, number: u64) -> Option<u64> {
        let all = self.0.get_mut(key)?;
        all.retain(|&other| other != number);
        let first = all.front().copied();
        if first.is_none() {
            self.0.remove(key);
        }
        first
    }

    pub(super) fn first(&self, key: &RunKey) -> Option<u64> {
        self.0.get(key)?.front().copied()
    }

    /// All submissions of a name.
    pub(super) fn of_name(&self, name: &str) -> impl Iterator<Item = u64> {
        let start = RunKey { name: name.to_owned(), time: None };
        let of_name = self.0.range(start..).take_while(move |(key, _)| key.name == name);
        of_name.flat_map(|(_, all)| all.iter().copied())
    }

    pub(super) fn has(&self, key: &RunKey) -> bool {
        self.0.contains_key(key)
    }
}
