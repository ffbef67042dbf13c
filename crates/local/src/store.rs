//! The embedded store under the journal and the history: one file, changed as a whole or not at all.
//!
//! The library asserts what it finds in its pages, and a damaged file makes it panic. No file may do that to the
//! program: every call goes through [`guarded`], and a panic becomes an error.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use redb::{
    Database, Key, ReadOnlyDatabase, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition,
    Value, WriteTransaction,
};
use serde::de::DeserializeOwned;

use crate::clock;

/// Time between two tries to open a store.
const PAUSE: Duration = Duration::from_millis(50);

/// What is wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store refused something.
    #[error("{name}: {problem}")]
    Store {
        /// What the store is for, and its file.
        name: String,
        /// What it says.
        problem: String,
    },
    /// Another process has it open.
    #[error("{name}: found another run at work on it, expected none")]
    Busy {
        /// What the store is for, and its file.
        name: String,
    },
}

/// An open store; while one process may change it, nobody else has it open.
pub(crate) struct Store {
    /// There until it is dropped.
    database: Option<Opened>,
    name: String,
}

enum Opened {
    ToRead(ReadOnlyDatabase),
    ToChange(Database),
}

impl Store {
    /// Opens a store as `open` does, one that another process has open after a while: it may be about to close it,
    /// or killed and not quite gone. Tries so many times, 50 ms apart.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn patiently(
        tries: u32,
        open: impl Fn() -> Result<Self, StoreError>,
    ) -> Result<Self, StoreError> {
        for _ in 1..tries {
            match open() {
                Err(StoreError::Busy { .. }) => clock::pause(PAUSE),
                other => return other,
            }
        }
        open()
    }

    /// Opens a store, or begins one; `what` it is for goes into every message.
    ///
    /// # Errors
    /// Another process that has it open, a file that is no store, whatever the file system says.
    pub(crate) fn open(what: &str, path: &Path) -> Result<Self, StoreError> {
        Self::opened(format!("{what} {}", path.display()), || {
            if !path.exists() {
                begin(path)?;
            }
            Database::open(path).map(Opened::ToChange)
        })
    }

    /// Opens a store that is there, to look at it; its file stays as it is.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_to_read(what: &str, path: &Path) -> Result<Self, StoreError> {
        Self::opened(format!("{what} {}", path.display()), || match ReadOnlyDatabase::open(path) {
            // Whoever wrote it was killed: it is mended first, which takes a writer.
            Err(redb::DatabaseError::RepairAborted) => Database::open(path).map(Opened::ToChange),
            other => other.map(Opened::ToRead),
        })
    }

    fn opened(
        name: String,
        open: impl FnOnce() -> Result<Opened, redb::DatabaseError>,
    ) -> Result<Self, StoreError> {
        match guarded(open) {
            Some(Ok(database)) => Ok(Self { database: Some(database), name }),
            Some(Err(redb::DatabaseError::DatabaseAlreadyOpen)) => Err(StoreError::Busy { name }),
            Some(Err(redb::DatabaseError::Storage(redb::StorageError::Io(e))))
                if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
            {
                Err(damaged(&name))
            }
            Some(Err(other)) => Err(StoreError::Store { name, problem: other.to_string() }),
            None => Err(damaged(&name)),
        }
    }

    /// Looks at the store as it is now.
    ///
    /// # Errors
    /// Whatever the store says; a damaged file.
    pub(crate) fn read<T>(
        &self,
        look: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.with(|database| {
            look(&match database {
                Opened::ToRead(database) => database.begin_read()?,
                Opened::ToChange(database) => database.begin_read()?,
            })
        })
    }

    fn with<T>(&self, work: impl FnOnce(&Opened) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let database = self.database.as_ref().expect("invariant: the database is there until the store goes");
        match guarded(|| work(database)) {
            Some(result) => {
                result.map_err(|e| StoreError::Store { name: self.name.clone(), problem: e.to_string() })
            }
            None => Err(damaged(&self.name)),
        }
    }

    /// Makes a change, which is on disk when this returns.
    ///
    /// # Errors
    /// Whatever the store says, a full disk for example; then nothing has changed.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        self.with(|database| {
            let Opened::ToChange(database) = database else {
                return Err(redb::Error::Corrupted("it was opened only to be read".to_owned()));
            };
            let write = database.begin_write()?;
            change(&write)?;
            Ok(write.commit()?)
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A damaged one has said so already.
        guarded(|| drop(self.database.take()));
    }
}

/// Makes a store beside its place and moves it there, so that whoever is killed meanwhile leaves no half of
/// one; if somebody else was faster, theirs stays.
fn begin(path: &Path) -> Result<(), redb::DatabaseError> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let beside = path.with_file_name(name);
    let made = Database::create(&beside).map(drop).and_then(|()| match fs::hard_link(&beside, path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems know no second names; two runs that begin at once are rarer than these.
        Err(_) => Ok(fs::rename(&beside, path)?),
        Ok(()) => Ok(()),
    });
    // The first error is the one worth telling.
    let _ = fs::remove_file(&beside);
    made
}

/// A table; `None` if nothing was ever written to it.
///
/// # Errors
/// Whatever the store says, a table with other types for example.
pub(crate) fn table<K: Key + 'static, V: Value + 'static>(
    read: &ReadTransaction,
    definition: TableDefinition<'_, K, V>,
) -> Result<Option<ReadOnlyTable<K, V>>, redb::Error> {
    match read.open_table(definition) {
        Ok(table) => Ok(Some(table)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// A value that was written as JSON.
///
/// # Errors
/// It is none.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, redb::Error> {
    serde_json::from_slice(bytes).map_err(|e| redb::Error::Corrupted(e.to_string()))
}

fn damaged(name: &str) -> StoreError {
    let problem =
        "the file is damaged, expected one as it was written; remove it, or name another".to_owned();
    StoreError::Store { name: name.to_owned(), problem }
}

/// Calls the library; `None` if it panicked, of which nothing is printed: the caller says what it means.
fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    thread_local! {
        static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                usual(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    IS_QUIET.set(false);
    outcome.ok()
}
