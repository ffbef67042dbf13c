//! The documents between an engine and its workers: the attempt to run, and its outcome.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_trace::PhaseCounts;

use crate::base::codec::Codec;
use crate::base::digest::Digest;
use crate::base::source::Source;

/// Arguments of a built-in program by name; the values are strings, numbers or booleans, or strings that
/// read as such.
pub type Args = BTreeMap<String, serde_json::Value>;

/// The work of a job's tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Job {
    /// A built-in program, see [`crate::programs::programs`].
    Program {
        program: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        args: Args,
    },
    /// Commands of the shell that follow the contract of Hadoop Streaming: lines in, `key TAB value`
    /// lines out; combiner and reducer get lines that are sorted by the bytes of the key.
    Commands {
        /// Gets the lines of the input.
        mapper: String,
        /// Gets sorted parts of one map's output and writes lines with the same keys.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        combiner: Option<String>,
        /// Gets one sorted partition; its output is the part file. Without a reducer the part file has the
        /// sorted pairs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reducer: Option<String>,
    },
    /// One shell command, which reads its inputs itself: one map without reduces.
    Command {
        /// Gets the paths of its inputs in `SLACKLINE_INPUTS`, one per line; its standard output is the part
        /// file.
        command: String,
    },
    /// A program for Hadoop that submits its MapReduce jobs itself: none of its tasks runs here.
    Jar {
        /// The jar, a file of the machine of the run.
        jar: String,
        /// The class whose `main` is called.
        main: String,
        /// Its arguments, in which `{inputs}` and `{output}` stand for the inputs and the output directory of
        /// the job.
        arguments: Vec<String>,
    },
}

/// The reason why a job with jar and main class is refused by all engines that run tasks in workers.
pub const NEEDS_HADOOP: &str = "only a Hadoop cluster runs jars: pass --engine yarn://HOST:PORT, or use program, mapper or \
                                command instead";

impl Job {
    /// Whether it has a single map, which reads all files without splits: see
    /// [`crate::input::split::whole_files`].
    pub fn has_one_map(&self) -> bool {
        matches!(self, Job::Command { .. })
    }

    /// Whether it is a program for Hadoop.
    pub fn is_jar(&self) -> bool {
        matches!(self, Job::Jar { .. })
    }
}

/// The directory, environment and shell of a job's commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// Variables of their environment, in addition to Slackline's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Their working directory; by default that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The shell with its options (`bash -o pipefail`): it gets `-c` and the command. By default `sh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

/// The path of a job's pairs from its maps to its reduces. All settings but `compress` are for commands only:
/// programs know their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shuffle {
    /// Number of fields of a line in its key (1). A line with fewer is a key without a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_fields: Option<u32>,
    /// The separator of fields, one ASCII character (tab). It also separates key and value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// Number of fields of the key that select the reduce (all).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_fields: Option<u32>,
    /// The fields of the key that order a reduce's lines, as in `sort -k`: `1`, `2nr`. Keys that are equal in
    /// them, or all keys without such fields, are ordered by their bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Number of ranges of keys, one for each reduce, so that the concatenated parts are in order; 0 or 1 to
    /// select the reduce by a hash of the key. With ranges, combiners do not run.
    #[serde(skip_serializing_if = "is_zero")]
    pub ranges: u32,
    /// The compression of map output: LZ4 or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<Codec>,
}

/// A piece of an input file: the lines that begin after `offset` and up to `offset + length`.
///
/// A line that begins right at a border belongs to the split before it, so that every line belongs to
/// one split wherever the borders are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    pub path: PathBuf,
    /// The start, in bytes.
    #[serde(default)]
    pub offset: u64,
    /// The length in bytes; `None` means to the end of the file, as for compressed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The index of the job's input, from 0.
    #[serde(default)]
    pub input: u32,
    /// The file as it was when the run began; `None` if an earlier job of the run makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The file with its bytes, if not `path`, which then is only a name: a copy of the whole file, or, if
    /// there is a length, of its bytes from the one before `offset` to the end of the line that contains
    /// `offset + length`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<PathBuf>,
}

impl Split {
    /// The file that is opened.
    pub(crate) fn file(&self) -> &Path {
        self.copy.as_deref().unwrap_or(&self.path)
    }

    /// The byte at which it ends; `None` if it extends to the end of its file. The same if it reaches the
    /// reported size, which may be wrong and only serves to cut files.
    pub(crate) fn end(&self) -> Option<u64> {
        let end = self.offset.saturating_add(self.length?);
        let is_last = self.source.as_ref().is_some_and(|source| end >= source.bytes);
        (!is_last).then_some(end)
    }

    /// Whether its file is a copy of a part of the input.
    pub(crate) fn is_excerpt(&self) -> bool {
        self.copy.is_some() && self.length.is_some()
    }

    /// The byte of the input at which the opened file begins.
    pub(crate) fn file_offset(&self) -> u64 {
        if self.is_excerpt() { self.offset.saturating_sub(1) } else { 0 }
    }
}

impl Shuffle {
    /// Whether keys are cut into ranges.
    pub fn is_ranged(&self) -> bool {
        self.ranges > 1
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub job: Job,
    /// The part of the job.
    pub task: Task,
    /// The attempt's own directory; it writes to no other place.
    pub directory: PathBuf,
    /// Memory for its buffers, in bytes. A record larger than that (or than 1 MiB) is an error.
    pub memory_bytes: u64,
    /// Whether output is forced to disk before the attempt reports success.
    #[serde(default)]
    pub durable: bool,
    /// The directory, environment and shell of commands.
    #[serde(default)]
    pub setting: Setting,
    /// The path of pairs from maps to reduces.
    #[serde(default)]
    pub shuffle: Shuffle,
    /// The compression of part files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Codec>,
    /// The memory limit of each process of a command (its address space, `ulimit -v`), in bytes. A
    /// [`Self::memory_group`] replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// The control group of commands, which limits their memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_group: Option<PathBuf>,
    /// The files that the job depends on beside its inputs, with their state when the run began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<PathBuf, Source>,
    /// Whether another machine may have written its inputs a moment ago, so that they may not be visible here
    /// at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patient: bool,
    /// For a reduce: the checksums of the committed outputs of the maps, by number. Empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map_sums: Vec<u64>,
    /// Whether standard error of commands is forwarded, line by line, to that of this process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echo: bool,
}

impl Spec {
    /// An attempt with default settings.
    pub fn new(job: Job, task: Task, directory: PathBuf, memory_bytes: u64) -> Self {
        Spec {
            job,
            task,
            directory,
            memory_bytes,
            durable: false,
            setting: Setting::default(),
            shuffle: Shuffle::default(),
            compress: None,
            memory_limit: None,
            memory_group: None,
            files: BTreeMap::new(),
            patient: false,
            map_sums: Vec::new(),
            echo: false,
        }
    }

    /// The checksum of the committed output of a map, if known.
    pub(crate) fn map_sum(&self, map: usize) -> Option<u64> {
        self.map_sums.get(map).copied()
    }

    /// Memory for a program's own tables: a quarter.
    pub(crate) fn program_memory(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Memory for sorting and merging: the rest.
    pub(crate) fn shuffle_memory(&self) -> usize {
        (self.memory_bytes - self.program_memory()).max(1) as usize
    }
}

/// The part of a job that an attempt runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Task {
    Map {
        /// Its number, from 0.
        index: u32,
        /// Number of maps of the job.
        maps: u32,
        /// Its input; empty for generators.
        splits: Vec<Split>,
        /// Number of its partitions; 0 means that its output is a part file.
        partitions: u32,
        /// The output of [`crate::attempt::prepare`], if the program needs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prepared: Option<PathBuf>,
    },
    Reduce {
        /// Its partition, from 0.
        partition: u32,
        /// The directories of the committed maps, in the order of the maps' numbers.
        maps: Vec<PathBuf>,
    },
}

/// The result of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// Its counts; `skipped` are records that the program could not use, such as a line without a number for
    /// `histogram`. At most 500 counters, by `reporter:counter:GROUP,NAME,AMOUNT` on standard error of its
    /// commands; the status text is the last by `reporter:status:TEXT`.
    #[serde(flatten)]
    pub counts: PhaseCounts,
    /// The digest of its part file or map output. `None` for a part on another file system, for which a
    /// placeholder stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Digest>,
}
