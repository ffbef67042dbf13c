//! Removes the temporary files of published jobs on a separate thread, so that the next tasks start meanwhile.
//!
//! The thread first forces the record of finished jobs to disk, once for all jobs published since the last
//! time. Only then it removes the marks that make a resumed run publish them again.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use slackline_task::base::activity::{self, Duty};

use crate::store::finished_jobs::FinishedLog;
use crate::store::layout::Leftovers;

/// The thread, which starts with the first job.
#[derive(Default)]
pub(crate) struct Cleaner {
    running: Option<(Sender<Leftovers>, JoinHandle<()>)>,
    /// Warnings of the thread.
    warnings: Option<Receiver<String>>,
}

impl Cleaner {
    /// Adds the temporary files of a published job. `log` has its record.
    ///
    /// # Errors
    /// The system has no more threads or descriptors.
    pub(crate) fn take(&mut self, left: Leftovers, log: &FinishedLog) -> io::Result<()> {
        if self.running.is_none() {
            let (queue, taken) = channel();
            let (warn, warnings) = channel();
            let record = log.file_to_force()?;
            let work = move || clean(&taken, &record, &warn);
            let thread = Builder::new().name("cleaner".to_owned()).spawn(work)?;
            (self.running, self.warnings) = (Some((queue, thread)), Some(warnings));
        }
        let (queue, _) = self.running.as_ref().expect("invariant: it was just started");
        queue.send(left).map_err(|_| io::Error::other("the thread that removes temporary files has ended"))
    }

    /// Waits until all files are removed.
    pub(crate) fn finish(&mut self) {
        if let Some((queue, thread)) = self.running.take() {
            drop(queue);
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }

    /// The warnings since the last call.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.iter().flat_map(Receiver::try_iter).collect()
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Removes files until the sender is gone. Without a record on disk all files stay, so that a resumed run
/// publishes the job again.
fn clean(jobs: &Receiver<Leftovers>, record: &File, warn: &Sender<String>) {
    activity::announce("the removal of temporary files".to_owned(), Duty::Helper);
    while let Ok(first) = jobs.recv() {
        let jobs: Vec<Leftovers> = std::iter::once(first).chain(jobs.try_iter()).collect();
        let warnings: Vec<String> = match record.sync_data() {
            Ok(()) => jobs.into_iter().filter_map(Leftovers::remove).collect(),
            Err(error) => vec![format!("jobs.log cannot be written to disk: {error}")],
        };
        // Without a receiver the run has ended, and the next one removes the files.
        for warning in warnings {
            let _ = warn.send(warning);
        }
    }
}
