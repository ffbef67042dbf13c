//! The thread that writes records to disk, so that the event loop never waits for the disk.

use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use slackline_model::WallTime;
use slackline_task::base::activity::{self, Duty};
use slackline_task::base::clock;

use crate::service::message::{Message, WriteResult};
use crate::service::paths::ServicePaths;
use crate::service::store::Store;
use crate::state::record::Record;
use crate::state::series::RunKey;

/// The pause after a failed write.
const RETRY: Duration = Duration::from_millis(200);

/// Work for the writer.
pub(crate) enum Write {
    /// Append records, then move the state directories of these names aside.
    Append {
        records: Vec<Record>,
        /// The state directories, and the times of the age clock at which they are forgotten.
        forgotten: Vec<(WallTime, RunKey)>,
        /// The least number of records that the state needs.
        needed: usize,
    },
    Replace(Vec<Record>),
}

pub(crate) struct Writer {
    pub(crate) store: Store,
    pub(crate) paths: ServicePaths,
    pub(crate) messages: Sender<Message>,
}

impl Writer {
    pub(crate) fn work(mut self, writes: &Receiver<Write>) {
        activity::announce("the writer of the service's log", Duty::Sole);
        for write in writes {
            let written = match write {
                Write::Append { records, forgotten, needed } => {
                    let appended = self.store.append(&records);
                    if appended.is_ok() {
                        for (at, key) in &forgotten {
                            self.move_aside(*at, key);
                        }
                    }
                    let outcome = appended.map(|()| self.store.is_grown(needed)).map_err(|e| e.to_string());
                    WriteResult { records, outcome }
                }
                Write::Replace(records) => {
                    let outcome = self.store.replace(&records).map(|()| false).map_err(|e| e.to_string());
                    WriteResult { records: Vec::new(), outcome }
                }
            };
            let has_failed = written.outcome.is_err();
            let _ = self.messages.send(Message::Written(written));
            if has_failed {
                clock::pause(RETRY);
            }
        }
    }

    /// Moves a state directory aside, so that its name can be used again at once. A failed move does no harm.
    fn move_aside(&self, at: WallTime, key: &RunKey) {
        let run = self.paths.run(key);
        let _ =
            activity::during("move aside", run.display(), || std::fs::rename(&run, self.paths.gone(at, key)));
    }
}
