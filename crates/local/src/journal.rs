//! What a run has done, on disk: killed at any moment, it goes on where it was.
//!
//! The record of a finished attempt is written, and on disk, *before* its output is moved to its place. A
//! run that is taken up again first moves what was recorded but not moved yet ("roll forward"), so that the
//! record is the moment of commitment: a recorded task never runs again, an unrecorded one has no output.

use std::path::Path;

use redb::{ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

use crate::store::{Store, StoreError, json, table};
use crate::task::Outcome;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const ATTEMPTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("attempts");

/// How often a journal is tried to open: the processes of a run that was killed a moment ago may still have it.
const TRIES: u32 = 20;

/// A task of a run: a job by its index, map or reduce, a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    /// Index of the job among the run's jobs.
    pub job: u32,
    /// Whether it is a reduce.
    pub reduce: bool,
    /// Its number in its phase.
    pub task: u32,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Well; its output is committed.
    Done(Outcome),
    /// With an error.
    Failed(String),
    /// It was stopped, or its engine was.
    Killed,
}

/// An attempt that has ended. Times are microseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number in the run, from 0; also the name of its directory.
    pub number: u64,
    /// The task.
    pub id: TaskId,
    /// The slot, of the lane that serves the task.
    pub slot: u32,
    /// Since when it had its slot.
    pub start: u64,
    /// Since when it was at work: a reduce that has its slot early waits for its maps.
    pub began: u64,
    /// When it ended.
    pub end: u64,
    /// How.
    pub ended: Ended,
}

impl Attempt {
    /// How long it was at work, microseconds.
    pub fn micros(&self) -> u64 {
        self.end.saturating_sub(self.began)
    }
}

/// What a run is, so that another one is not mistaken for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the program.
    pub version: String,
    /// SHA-256 of the flow file.
    pub sha256: String,
    /// The directory that relative paths start from.
    pub directory: String,
    /// Options that shape the run.
    pub options: std::collections::BTreeMap<String, String>,
}

/// The head of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// What the run is.
    pub identity: Identity,
    /// The name by which its outputs are known to be its own.
    pub owner: String,
    /// When it started: microseconds since 1970.
    pub started: u64,
    /// Its jobs, as they were resolved: splits do not change when files do.
    pub jobs: Vec<crate::resolve::JobPlan>,
    /// Its workload document with all phases, as JSON.
    pub workload: String,
}

/// The journal of a run.
pub struct Journal {
    store: Store,
}

impl Journal {
    /// Opens a journal, or begins one.
    ///
    /// # Errors
    /// Another run that has it open, a file that is no journal, whatever the file system says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: Store::patiently(TRIES, || Store::open("journal", path))? })
    }

    /// The head, if the journal has one.
    ///
    /// # Errors
    /// Whatever the store says.
    pub fn head(&self) -> Result<Option<Head>, StoreError> {
        self.store.read(|read| {
            let Some(table) = table(read, META)? else { return Ok(None) };
            table.get("head")?.map(|bytes| json(bytes.value())).transpose()
        })
    }

    /// Writes the head.
    ///
    /// # Errors
    /// Whatever the store says, a full disk for example.
    pub fn write_head(&self, head: &Head) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(head).expect("invariant: a head can be written as JSON");
        self.store.change(|write| {
            write.open_table(META)?.insert("head", bytes.as_slice())?;
            Ok(())
        })
    }

    /// Records attempts that ended; they are on disk when this returns.
    ///
    /// # Errors
    /// Whatever the store says, a full disk for example; then nothing is recorded.
    pub fn record(&self, attempts: &[Attempt]) -> Result<(), StoreError> {
        self.store.change(|write| {
            let mut table = write.open_table(ATTEMPTS)?;
            for attempt in attempts {
                let bytes =
                    serde_json::to_vec(attempt).expect("invariant: an attempt can be written as JSON");
                table.insert(attempt.number, bytes.as_slice())?;
            }
            Ok(())
        })
    }

    /// All attempts that ended, in the order of their numbers.
    ///
    /// # Errors
    /// Whatever the store says.
    pub fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        self.store.read(|read| {
            let Some(table) = table(read, ATTEMPTS)? else { return Ok(Vec::new()) };
            table.iter()?.map(|entry| json(entry?.1.value())).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u64) -> Attempt {
        let id = TaskId { job: 1, reduce: number.is_multiple_of(2), task: 3 };
        Attempt { number, id, slot: 0, start: 5, began: 6, end: 9, ended: Ended::Done(Outcome::default()) }
    }

    #[test]
    fn what_was_recorded_is_there_when_it_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let head = Head {
            identity: Identity {
                version: "1".into(),
                sha256: "x".into(),
                directory: "/".into(),
                options: [("a".into(), "b".into())].into(),
            },
            owner: "7-1".into(),
            started: 7,
            jobs: Vec::new(),
            workload: "{}".into(),
        };
        {
            let journal = Journal::open(&path).unwrap();
            assert_eq!(journal.head().unwrap(), None);
            assert!(journal.attempts().unwrap().is_empty());
            journal.write_head(&head).unwrap();
            journal.record(&[attempt(1), attempt(0)]).unwrap();
            assert!(matches!(Journal::open(&path), Err(StoreError::Busy { .. })));
        }
        let journal = Journal::open(&path).unwrap();
        assert_eq!(journal.head().unwrap(), Some(head));
        assert_eq!(journal.attempts().unwrap(), [attempt(0), attempt(1)]);
    }

    #[test]
    fn a_file_that_is_no_journal_is_said_to_be_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        std::fs::write(&path, "this is a text of more than a few bytes, and no journal at all").unwrap();
        assert!(matches!(Journal::open(&path), Err(StoreError::Store { .. })));
    }
}
