//! The finished jobs of a state directory (`jobs.log`): the definition, inputs and outputs of each. They show
//! which jobs are up to date when the flow file, the inputs or the outputs change.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_task::base::digest::Digest;
use slackline_task::base::regular_file;
use slackline_task::base::source::Source;

use crate::spec::definition::Definition;
use crate::store::log::{Kind, Log, LogError};
use crate::store::output_files::{SUCCESS, others};

/// The file. It is open while the journal is, which excludes other runs.
const LOG: Kind = Kind {
    name: "record of finished jobs",
    line: "slackline jobs 2\n",
    advice: "restore it from a copy, or remove the state directory and move the outputs away: then all jobs run \
             again",
    tries: 20,
    reserve: 0,
};

/// Whether a file is such a record, by its name alone.
pub(crate) fn is_one(path: &Path) -> bool {
    let mut begun = vec![0; LOG.line.len()];
    regular_file::open_no_link(path).and_then(|mut file| file.read_exact(&mut begun)).is_ok()
        && begun == LOG.line.as_bytes()
}

/// The file is rewritten when it has this many records more than twice the current ones.
const SPARE: usize = 256;

/// A finished job, as it was then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FinishedJob {
    pub(crate) flow: String,
    pub(crate) job: String,
    pub(crate) definition: Definition,
    /// Its inputs, by absolute path.
    pub(crate) read: BTreeMap<PathBuf, Source>,
    /// Its part files, by name, in the output directory of its definition.
    pub(crate) wrote: BTreeMap<String, FinishedPart>,
    /// The start of the run that made it, and the number of that run's first attempt after it.
    pub(crate) run: (u64, u64),
    /// Whether it is to be rerun at the request of the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) again: bool,
}

/// A part file of a finished job, as it was when it was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinishedPart {
    /// The data that readers of the part compare.
    pub(crate) source: Source,
    /// Its digest. `None` for a placeholder and for a part that a jar has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<Digest>,
}

impl FinishedPart {
    /// Whether the file at a path has the published content. The file is read if its stamp has changed, or if
    /// `is_read`.
    ///
    /// # Errors
    /// There is no such file.
    fn is_still(&self, path: &Path, is_read: bool) -> io::Result<bool> {
        let now = Source::of_part(path)?;
        Ok(match &self.digest {
            Some(digest) => digest.check(path, digest.stamp.filter(|_| !is_read)).is_ok(),
            None => (now.bytes, now.modified) == (self.source.bytes, self.source.modified),
        })
    }
}

/// The state of a finished job's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// As published.
    Intact,
    /// A file is missing.
    Gone(String),
    /// A file of it was changed.
    Changed(String),
    /// There is an additional file, which readers of the directory would take for a part.
    Foreign(String),
}

impl FinishedJob {
    pub(crate) fn directory(&self) -> PathBuf {
        self.definition.output()
    }

    /// Compares its output with the published parts. Reads parts whose stamp has changed, and all parts if
    /// `is_read`. O(parts), and the bytes read.
    pub(crate) fn output(&self, is_read: bool) -> Output {
        let directory = self.directory();
        for (name, part) in &self.wrote {
            match part.is_still(&directory.join(name), is_read) {
                Ok(true) => {}
                Ok(false) => return Output::Changed(name.clone()),
                Err(_) => return Output::Gone(name.clone()),
            }
        }
        if !directory.join(SUCCESS).exists() {
            return Output::Gone(SUCCESS.to_owned());
        }
        let is_foreign = |name: &String| !name.starts_with(['_', '.']) && !self.wrote.contains_key(name);
        let found = others(&directory).unwrap_or_default().into_iter().find(is_foreign);
        found.map_or(Output::Intact, Output::Foreign)
    }

    /// The same job with the current stamps of its parts, if some were touched without a change of content.
    /// So later runs need not read them.
    pub(crate) fn restamped(&self) -> Option<Self> {
        let (directory, mut now) = (self.directory(), self.clone());
        for (name, part) in &mut now.wrote {
            let Some(digest) = &mut part.digest else { continue };
            digest.stamp = Some(digest.check(&directory.join(name), digest.stamp).ok()?);
        }
        (now != *self).then_some(now)
    }

    /// Whether it finished after the attempts with these numbers of a run ended.
    pub(crate) fn is_later_than(&self, started: u64, mut numbers: impl Iterator<Item = u64>) -> bool {
        self.run.0 == started && numbers.all(|number| number < self.run.1)
    }

    /// Whether it wrote a file of this name that is unchanged.
    pub(crate) fn owns(&self, name: &str) -> bool {
        let is_still =
            |part: &FinishedPart| part.is_still(&self.directory().join(name), false).unwrap_or(false);
        name == SUCCESS || self.wrote.get(name).is_some_and(is_still)
    }
}

/// The finished jobs of a state directory, by output directory, which no two jobs share. The last record of a
/// directory counts, also under another job name.
#[derive(Debug, Default)]
pub(crate) struct FinishedJobs {
    jobs: BTreeMap<PathBuf, FinishedJob>,
}

impl FinishedJobs {
    fn of(log: &Log) -> Result<Self, LogError> {
        let mut made = Self::default();
        for text in log.texts()? {
            let job: FinishedJob = serde_json::from_slice(&text).map_err(|e| log.unreadable(&e))?;
            made.insert(job);
        }
        Ok(made)
    }

    /// The finished jobs in a file that a run may have open; none if there is no file. O(bytes).
    ///
    /// # Errors
    /// A file that is damaged or cannot be read.
    pub(crate) fn look(path: &Path) -> Result<Self, LogError> {
        if path.exists() { Self::of(&Log::glance(LOG, path)?.0) } else { Ok(Self::default()) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Adds a job that is finished or is to be rerun.
    pub(crate) fn insert(&mut self, made: FinishedJob) {
        self.jobs.insert(made.directory(), made);
    }

    /// The finished job of an output directory.
    pub(crate) fn get(&self, directory: &Path) -> Option<&FinishedJob> {
        self.jobs.get(directory)
    }

    /// Whether a run of this state directory wrote a file in an output directory, and the file is unchanged.
    pub(crate) fn owns(&self, directory: &Path, name: &str) -> bool {
        self.get(directory).is_some_and(|made| made.owns(name))
    }

    /// The names of the part files in an output directory.
    pub(crate) fn parts(&self, directory: &Path) -> impl Iterator<Item = &str> {
        self.get(directory).into_iter().flat_map(|made| made.wrote.keys().map(String::as_str))
    }
}

/// The file of finished jobs, open to append.
#[derive(Debug)]
pub(crate) struct FinishedLog {
    log: Log,
}

impl FinishedLog {
    /// Opens the file or creates it, and reads its jobs. O(bytes).
    ///
    /// # Errors
    /// A file that is not such a log or is damaged, an error of the file system.
    pub(crate) fn open(path: &Path) -> Result<(Self, FinishedJobs), LogError> {
        let log = Log::open(LOG, path)?;
        let (made, records) = (FinishedJobs::of(&log)?, log.texts()?.len());
        if records <= SPARE + 2 * made.jobs.len() {
            return Ok((Self { log }, made));
        }
        // Leaves out replaced records. A crash meanwhile leaves either the old or the new file.
        let beside = path.with_extension("next");
        let _ = fs::remove_file(&beside);
        let mut shorter = Self { log: Log::open(LOG, &beside)? };
        made.jobs.values().try_for_each(|job| shorter.add(job))?;
        shorter.log.move_to(&beside, path)?;
        Ok((shorter, made))
    }

    /// Records that a job is finished; the record is on disk when this returns.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example.
    pub(crate) fn add(&self, made: &FinishedJob) -> Result<(), LogError> {
        self.log.append([self.text(made)?.as_slice()])
    }

    /// Says that a job is finished; it is on disk when [`Self::file_to_force`] was forced out.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example.
    pub(crate) fn add_unforced(&self, made: &FinishedJob) -> Result<(), LogError> {
        self.log.append_unforced([self.text(made)?.as_slice()])
    }

    /// The file, to be forced out by another thread.
    pub(crate) fn file_to_force(&self) -> io::Result<File> {
        self.log.file_to_force()
    }

    fn text(&self, made: &FinishedJob) -> Result<Vec<u8>, LogError> {
        serde_json::to_vec(made).map_err(|e| self.log.unreadable(&e))
    }
}
