//! The description of a job for its tasks in containers, without the input of each map.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_model::Span;

use crate::base::codec::Codec;
use crate::base::error::{TaskError, at};
use crate::base::source::Source;
use crate::container::pieces::{Piece, is_elsewhere};
use crate::process::limits::Limits;
use crate::process::spec::{Job, Setting, Shuffle, Spec, Split, Task};

/// A job, as its tasks get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// The work of its tasks.
    job: Job,
    pub(crate) maps: u32,
    /// Reduce tasks; 0 for a job of maps only.
    reducers: u32,
    /// The directory of the run: the default for commands, and the base of relative file names.
    directory: PathBuf,
    /// Memory for the buffers of an attempt, bytes.
    memory_bytes: u64,
    /// The directory, environment and shell of commands.
    setting: Setting,
    /// The path of pairs from maps to reduces.
    shuffle: Shuffle,
    /// The compression of part files.
    compress: Option<Codec>,
    /// The memory limit of each process of a command, bytes.
    memory_limit: Option<u64>,
    /// Seconds after which an attempt is ended and fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<f64>,
    /// The output of [`crate::attempt::prepare`], if the program needs it.
    prepared: Option<Vec<u8>>,
    /// Local input files by their names in the job, with their state when the run began, if that is known.
    files: BTreeMap<PathBuf, Option<Source>>,
}

/// A job whose tasks are to run in containers.
#[derive(Clone, Copy, Debug)]
pub struct ContainerJob<'a> {
    pub work: &'a Job,
    /// The splits of each map, with the files as they were when the run began.
    pub maps: &'a [Vec<Split>],
    /// Reduce tasks; 0 for a job of maps only.
    pub reducers: u32,
    /// Whether its program needs samples of all input before the first map.
    pub needs_preparation: bool,
    /// The file written by [`crate::attempt::prepare`].
    pub prepared: Option<&'a Path>,
    pub setting: &'a Setting,
    pub shuffle: &'a Shuffle,
    pub compress: Option<Codec>,
    pub limits: &'a Limits,
}

impl JobSpec {
    /// The description for the tasks of a job. Paths start from `directory`, that of the run.
    ///
    /// # Errors
    ///
    /// A job that Hadoop cannot run in this way; a prepared file that is missing or cannot be read.
    pub fn of(job: &ContainerJob<'_>, directory: &Path, memory_bytes: u64) -> Result<Self, TaskError> {
        if job.shuffle.ranges > 1 {
            return Err(TaskError::Job(NO_TOTAL_ORDER.to_owned()));
        }
        if job.needs_preparation && job.prepared.is_none() {
            let problem = "the boundaries of the sorted partitions are missing";
            return Err(TaskError::Job(problem.to_owned()));
        }
        let read = |path: &Path| fs::read(path).map_err(at("cannot read", path));
        let mut files = BTreeMap::new();
        for split in job.maps.iter().flatten() {
            let says_something = split.source.is_some() || split.path.is_relative();
            if says_something && !is_elsewhere(&split.path) {
                files.insert(split.path.clone(), split.source.clone());
            }
        }
        Ok(Self {
            job: job.work.clone(),
            maps: job.maps.len() as u32,
            reducers: job.reducers,
            directory: directory.to_owned(),
            memory_bytes,
            setting: job.setting.clone(),
            shuffle: job.shuffle.clone(),
            compress: job.compress,
            memory_limit: job.limits.memory,
            timeout: job.limits.timeout,
            prepared: job.prepared.map(read).transpose()?,
            files,
        })
    }

    pub(crate) fn read(path: &Path) -> Result<Self, TaskError> {
        let bytes = fs::read(path).map_err(at("cannot read", path))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| TaskError::Damaged { path: path.to_owned(), problem: error.to_string() })
    }

    /// A map with its input.
    pub(crate) fn map(
        &self,
        index: u32,
        pieces: Vec<Piece>,
        copies: &BTreeMap<usize, PathBuf>,
        place: &AttemptDirectories,
    ) -> Result<Task, TaskError> {
        check("map", index, self.maps)?;
        if let Some((copy, _)) = copies.last_key_value().filter(|(copy, _)| **copy >= pieces.len()) {
            let found = pieces.len();
            return Err(TaskError::Job(format!(
                "internal error: the job names a copy of split {copy}, but its number of splits is {found}; please report this"
            )));
        }
        let split = |(number, piece)| self.split(piece, copies.get(&number));
        let splits = pieces.into_iter().enumerate().map(split).collect::<Result<_, _>>()?;
        let prepared = match &self.prepared {
            None => None,
            Some(bytes) => {
                let path = place.attempt.join("prepared");
                fs::write(&path, bytes).map_err(at("cannot write", &path))?;
                Some(path)
            }
        };
        Ok(Task::Map { index, maps: self.maps, splits, partitions: self.reducers, prepared })
    }

    /// The longest time of an attempt.
    pub(crate) fn limit(&self) -> Option<Span> {
        self.timeout.map(Span::from_seconds_nearest)
    }

    pub(crate) fn check_reduce(&self, partition: u32) -> Result<u32, TaskError> {
        check("reduce", partition, self.reducers)
    }

    fn split(&self, piece: Piece, copy: Option<&PathBuf>) -> Result<Split, TaskError> {
        let (path, source) = match (piece.local(), copy) {
            (Some(path), _) => self.known(path),
            (None, Some(_)) => (piece.path.into(), None),
            (None, None) => {
                let problem = format!("found {:?}, expected a copy of it or file:/PATH", piece.path);
                return Err(TaskError::Job(problem));
            }
        };
        let Piece { offset, length, input, .. } = piece;
        // The submitter has compared the file, before and after copying.
        let source = source.filter(|_| copy.is_none());
        Ok(Split { path, offset, length, input, source, copy: copy.cloned() })
    }

    /// The job's name for a file, and its earlier state.
    fn known(&self, path: PathBuf) -> (PathBuf, Option<Source>) {
        let below = path.strip_prefix(&self.directory).ok();
        let names =
            [Some(path.clone()), below.map(Path::to_owned), below.map(|below| Path::new(".").join(below))];
        let known = |name: PathBuf| self.files.get_key_value(&name);
        let known = names.into_iter().flatten().find_map(known);
        known.map_or((path, None), |(name, source)| (name.clone(), source.clone()))
    }

    /// The specification of an attempt.
    pub(crate) fn attempt(&self, task: Task, place: &AttemptDirectories) -> Spec {
        let mut setting = self.setting.clone();
        let cwd = setting.cwd.filter(|cwd| self.directory.join(cwd).is_dir());
        setting.cwd = self.setting.cwd.as_ref().map(|_| cwd.unwrap_or_else(|| place.container.clone()));
        Spec {
            job: self.job.clone(),
            task,
            directory: place.attempt.clone(),
            memory_bytes: self.memory_bytes,
            durable: false,
            setting,
            shuffle: self.shuffle.clone(),
            compress: self.compress,
            memory_limit: self.memory_limit,
            memory_group: None,
            // The containers of a cluster may have other files of these names.
            files: BTreeMap::new(),
            map_sums: Vec::new(),
            patient: false,
            echo: true,
        }
    }
}

/// The reason why such jobs are refused.
pub const NO_TOTAL_ORDER: &str = "total_order: not supported on Hadoop: the key ranges of reduces are known only when all maps \
have finished, and Hadoop moves the output of each map before that";

fn check(what: &str, number: u32, count: u32) -> Result<u32, TaskError> {
    if number < count {
        return Ok(number);
    }
    Err(TaskError::Job(format!("--task: found {what} {number}, expected one of {count} from 0")))
}

/// The directories of an attempt, absolute.
pub(crate) struct AttemptDirectories {
    container: PathBuf,
    /// The directory to which the attempt writes.
    pub(crate) attempt: PathBuf,
}

impl AttemptDirectories {
    pub(crate) fn make(container: &Path, attempt: u32) -> Result<Self, TaskError> {
        let attempt = container.join(format!("attempt-{attempt}"));
        fs::create_dir_all(&attempt).map_err(at("cannot make directory", &attempt))?;
        Ok(Self { container: container.to_owned(), attempt })
    }

    /// Makes the directory of the run that of this process, as for every worker of the run; uses the
    /// container's directory if that does not exist.
    pub(crate) fn enter(&self, job: &JobSpec) -> Result<(), TaskError> {
        let directory = if job.directory.is_dir() { &job.directory } else { &self.container };
        std::env::set_current_dir(directory).map_err(at("cannot enter", directory))
    }
}
