//! Records on disk: one append-only log, which is rewritten when most of it is obsolete.
//!
//! Records that are appended together are on disk together after one flush.

use std::path::{Path, PathBuf};

use slackline_executor::store::log::{Kind, Log, LogError};

use crate::state::record::Record;

const LOG: Kind = Kind {
    name: "state of the service",
    line: "slackline service 1\n",
    advice: "to start without it, move the state directory away: its submissions are lost, outputs are kept",
    tries: 20,
    reserve: 1 << 20,
};

/// The least size to which the growth of a log is compared, bytes. So small logs are not rewritten.
const SMALL: u64 = 1 << 20;

/// The growth since the last rewrite, as a factor, after which the log may be rewritten.
const GROWN: u64 = 4;

pub struct Store {
    log: Log,
    path: PathBuf,
    bytes: u64,
    /// The number of records in the log.
    records: usize,
    /// The size after the last rewrite, bytes.
    fresh: u64,
}

impl Store {
    /// Opens the log of a state directory, and returns its records. Creates the directory and the log if they
    /// are missing; then there are no records.
    ///
    /// # Errors
    /// Another service is running there. The file is not a log, is damaged or cannot be read.
    pub fn open(state: &Path) -> Result<(Self, Vec<Record>), LogError> {
        let path = state.join("service.log");
        let refused =
            |problem| LogError::File { name: format!("state of the service {}", state.display()), problem };
        std::fs::create_dir_all(state).map_err(refused)?;
        let log = Log::open(LOG, &path)?;
        for_service_alone(&path).map_err(refused)?;
        let texts = log.texts()?;
        let bytes = texts.iter().map(|text| text.len() as u64).sum();
        let records = texts.iter().map(|text| serde_json::from_slice(text).map_err(|e| log.unreadable(&e)));
        let records: Vec<Record> = records.collect::<Result<_, _>>()?;
        Ok((Self { log, path, bytes, records: records.len(), fresh: SMALL }, records))
    }

    /// Appends records. They are on disk when this returns.
    ///
    /// # Errors
    /// Any error of the file system, such as a full disk. Then no record is appended.
    pub fn append(&mut self, records: &[Record]) -> Result<(), LogError> {
        if records.is_empty() {
            return Ok(());
        }
        let texts = texts(records);
        self.log.append(texts.iter().map(Vec::as_slice))?;
        self.bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
        self.records += texts.len();
        Ok(())
    }

    /// Whether most of the log is likely obsolete, if at least `needed` records are needed. A rewrite delays
    /// all answers, and a queue that only grows needs all its records.
    pub fn is_grown(&self, needed: usize) -> bool {
        let is_larger = self.bytes > self.fresh.max(SMALL).saturating_mul(GROWN);
        is_larger && self.records / 2 > needed
    }

    /// Replaces the records of the log atomically: after a crash the log has either the old or the new
    /// records.
    ///
    /// # Errors
    /// Any error of the file system. Then the log is unchanged.
    pub fn replace(&mut self, records: &[Record]) -> Result<(), LogError> {
        let beside = self.path.with_extension("next");
        // A leftover of an unfinished rewrite is not needed.
        let _ = std::fs::remove_file(&beside);
        let mut log = Log::open(LOG, &beside)?;
        for_service_alone(&beside)
            .map_err(|problem| LogError::File { name: LOG.name.to_owned(), problem })?;
        let texts = texts(records);
        log.append(texts.iter().map(Vec::as_slice))?;
        log.move_to(&beside, &self.path)?;
        self.log = log;
        self.bytes = texts.iter().map(|text| text.len() as u64).sum();
        self.records = texts.len();
        self.fresh = self.bytes;
        Ok(())
    }
}

/// The log has the flow files of all users, so only this user may read it.
fn for_service_alone(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

fn texts(records: &[Record]) -> Vec<Vec<u8>> {
    let text = |record| serde_json::to_vec(record).expect("invariant: a record can be written as JSON");
    records.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_their_order_and_a_log_is_rewritten_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("new/state");
        let some = |n: u64| (0..n).map(Record::LetIn).collect::<Vec<_>>();
        {
            let (mut store, records) = Store::open(&state).unwrap();
            assert!(records.is_empty());
            store.append(&[Record::Began(slackline_model::WallTime(7))]).unwrap();
            store.append(&some(3)).unwrap();
            store.append(&[]).unwrap();
            assert!(matches!(Store::open(&state), Err(LogError::Busy { .. })));
        }
        let (mut store, records) = Store::open(&state).unwrap();
        assert_eq!(records, [vec![Record::Began(slackline_model::WallTime(7))], some(3)].concat());
        assert!(!store.is_grown(0));
        store.append(&some(400_000)).unwrap();
        assert!(store.is_grown(1) && !store.is_grown(300_000), "most of it may be needed");
        store.replace(&[Record::Began(slackline_model::WallTime(7))]).unwrap();
        assert!(!store.is_grown(0));
        store.append(&some(1)).unwrap();
        // An unfinished rewrite is ignored.
        std::fs::write(state.join("service.next"), "slackline service 1\nhalf").unwrap();
        drop(store);
        let (mut store, records) = Store::open(&state).unwrap();
        assert_eq!(records, [vec![Record::Began(slackline_model::WallTime(7))], some(1)].concat());
        store.replace(&records).unwrap();
        drop(store);
        assert_eq!(Store::open(&state).unwrap().1.len(), 2);
    }

    #[test]
    fn a_file_of_something_else_and_one_that_is_damaged_are_refused_and_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("service.log");
        std::fs::write(&path, "a file of another program, longer than a first line").unwrap();
        assert!(matches!(Store::open(dir.path()), Err(LogError::Foreign { .. })));
        std::fs::remove_file(&path).unwrap();
        {
            let (mut store, _) = Store::open(dir.path()).unwrap();
            store.append(&[Record::Began(slackline_model::WallTime(7))]).unwrap();
            store.append(&[Record::LetIn(1)]).unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = Store::open(dir.path()).err().unwrap();
        assert!(error.to_string().contains("damaged at byte"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}
