//! Clears up after published jobs on a thread, so that the next tasks start meanwhile.
//!
//! The thread first forces out the record of finished jobs, once for all jobs that were published since it
//! did so last. Only then it removes the marks by which a resumed run would publish them again.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use slackline_task::base::activity::{self, Duty};

use crate::store::finished_jobs::FinishedLog;
use crate::store::layout::Leftovers;

/// A thread that clears up, from the first job on.
#[derive(Default)]
pub(crate) struct Cleaner {
    running: Option<(Sender<Leftovers>, JoinHandle<()>)>,
    /// Its warnings.
    warnings: Option<Receiver<String>>,
}

impl Cleaner {
    /// Takes what a published job leaves, whose record `log` has.
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
        queue.send(left).map_err(|_| io::Error::other("the thread that clears up has ended"))
    }

    /// Waits until everything is cleared up.
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

/// Clears up until there will be no more jobs. Without a record on disk everything stays, so that a resumed
/// run publishes the job again.
fn clean(jobs: &Receiver<Leftovers>, record: &File, warn: &Sender<String>) {
    activity::announce("clearing up after finished jobs".to_owned(), Duty::Helper);
    while let Ok(first) = jobs.recv() {
        let jobs: Vec<Leftovers> = std::iter::once(first).chain(jobs.try_iter()).collect();
        let warnings: Vec<String> = match record.sync_data() {
            Ok(()) => jobs.into_iter().filter_map(Leftovers::remove).collect(),
            Err(error) => vec![format!("jobs.log cannot be written to disk: {error}")],
        };
        // Without a receiver the run has ended, and the next one clears up again.
        for warning in warnings {
            let _ = warn.send(warning);
        }
    }
}
