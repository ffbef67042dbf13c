//! The thread that writes records to disk, so that the desk never waits for the disk.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};

use slackline_local::activity::{self, Duty};

use crate::opener::Errand;
use crate::place::Place;
use crate::record::Record;
use crate::store::Store;

/// What is to be written.
pub(crate) enum Write {
    /// Append records. Then the state directories of these names are moved away.
    Append {
        /// The records.
        records: Vec<Record>,
        /// The names.
        forgotten: Vec<String>,
        /// How many records the desk needs at least.
        needed: usize,
    },
    /// Replace all records.
    Replace(Vec<Record>),
}

/// What became of a [`Write`].
pub(crate) struct Written {
    /// The records that were to be appended.
    pub(crate) records: Vec<Record>,
    /// Why nothing was written, or whether most of the log is no longer needed.
    pub(crate) outcome: Result<bool, String>,
}

/// Writes records.
pub(crate) struct Writer {
    pub(crate) store: Store,
    pub(crate) place: Place,
    /// Removes what was moved away.
    pub(crate) errands: Sender<Errand>,
}

impl Writer {
    /// Writes as it is asked to, until nobody asks any more.
    pub(crate) fn work(mut self, writes: &Receiver<Write>, tell: &dyn Fn(Written)) {
        activity::announce("the writer of the service's log", Duty::Sole);
        let mut moved = 0;
        for write in writes {
            tell(match write {
                Write::Append { records, forgotten, needed } => {
                    let appended = self.store.append(&records);
                    if appended.is_ok() {
                        for name in &forgotten {
                            self.move_away(name, &mut moved);
                        }
                    }
                    let outcome = appended.map(|()| self.store.is_grown(needed)).map_err(|e| e.to_string());
                    Written { records, outcome }
                }
                Write::Replace(records) => {
                    let outcome = self.store.replace(&records).map(|()| false).map_err(|e| e.to_string());
                    Written { records: Vec::new(), outcome }
                }
            });
        }
    }

    /// Moves the state directory of a name away, so that the name can be used again at once, and has it removed.
    fn move_away(&self, name: &str, moved: &mut u64) {
        // An earlier removal may have failed.
        let gone = loop {
            let gone = self.place.gone(*moved);
            *moved += 1;
            if !is_there(&gone) {
                break gone;
            }
        };
        // What cannot be moved or removed does no harm.
        let run = self.place.run(name);
        if activity::during("move away", run.display(), || std::fs::rename(&run, &gone)).is_ok() {
            let _ = self.errands.send(Errand::Remove(gone));
        }
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
