//! Removes the files of runs that have ended, but never their outputs.

use std::fs;
use std::path::Path;

use slackline_task::base::files::remove;
use slackline_task::process::cgroups::Linux;
use slackline_task::process::memory::remove_noted;

use super::error::file;
use crate::run::error::EngineError;
use crate::run::inspect::RunInspection;
use crate::store::journal::Journal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clean {
    /// The whole state directory, as far as a run keeps something there.
    State,
    /// Output of maps and of attempts: no longer needed once the run has ended. Journal, logs and schedule
    /// stay.
    Intermediates,
}

/// Bytes of the files below a directory, links not followed; what cannot be read counts nothing. O(files).
pub fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

impl RunInspection {
    /// Bytes that [`Self::clean`] would remove. O(files).
    pub fn size(&self, what: Clean) -> u64 {
        match what {
            Clean::State => self.layout.journal().parent().map_or(0, size),
            Clean::Intermediates => size(&self.layout.attempts()) + size(&self.layout.all_maps()),
        }
    }

    /// Removes the files of a run that has ended, except its outputs. Removes nothing if a process works on
    /// it by now, or has since the check.
    ///
    /// # Errors
    /// The run has not ended; it was resumed meanwhile; something cannot be removed.
    pub fn clean(&self, what: Clean) -> Result<(), EngineError> {
        let path = self.layout.journal();
        let journal = Journal::open(&path)?;
        // A killed run may have recorded files that it has not moved to their place. It needs this directory
        // to resume.
        let now = journal.read()?;
        let is_same = now.head.as_ref() == Some(&self.head) && now.attempts == self.attempts;
        let has_ended = self.has_ended && is_same;
        if self.is_at_work || !has_ended {
            let state = path.display();
            return Err(EngineError::Stopped(format!(
                "{state}: the run is unfinished: resume and finish it first"
            )));
        }
        match what {
            // The journal is removed last, and is locked until then.
            Clean::State => {
                remove_noted(&self.layout.memory(), &Linux);
                self.layout.remove_all().map_err(|(path, problem)| file(&path)(problem))
            }
            Clean::Intermediates => [self.layout.attempts(), self.layout.all_maps()]
                .into_iter()
                .try_for_each(|path| remove(&path).map_err(file(&path))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::inspect;
    use crate::run::inspect::tests::{attempt, head};
    use crate::store::journal::Head;
    use crate::store::layout::Layout;

    /// The run of a directory that has ended.
    fn ended(state: &Path) -> RunInspection {
        let layout = Layout::new(state);
        let journal = Journal::open(&layout.journal()).unwrap();
        journal.begin(&head()).unwrap();
        journal.record(&[attempt(0)]).unwrap();
        fs::create_dir_all(layout.all_maps()).unwrap();
        fs::write(layout.all_maps().join("a"), "1").unwrap();
        fs::write(layout.schedule(), "{}").unwrap();
        drop(journal);
        let look = inspect::inspect(state).unwrap().unwrap();
        assert!(look.has_ended);
        look
    }

    #[test]
    fn a_run_that_was_resumed_since_its_check_stays() {
        for what in [Clean::State, Clean::Intermediates] {
            let dir = tempfile::tempdir().unwrap();
            let (before, layout) = (ended(dir.path()), Layout::new(dir.path()));
            let stays = || {
                let refused = before.clean(what).unwrap_err().to_string();
                assert!(layout.journal().exists() && layout.all_maps().join("a").exists(), "{refused}");
                refused
            };
            // A run that continues has the lock.
            let at_work = Journal::open(&layout.journal()).unwrap();
            assert!(stays().contains("another process uses it"));
            drop(at_work);
            // One that was killed since has as many attempts as there were.
            let next = Head { started: before.head.started + 1, ..head() };
            drop(Journal::replace(&layout.journal(), &next, &[attempt(0)]).unwrap());
            assert!(stays().contains("the run is unfinished"));
            drop(Journal::replace(&layout.journal(), &before.head, &[attempt(0)]).unwrap());
            before.clean(what).unwrap();
            assert_eq!(
                (layout.journal().exists(), layout.all_maps().exists()),
                (what != Clean::State, false)
            );
        }
    }
}
