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

/// What a job's tasks do.
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
        /// Gets sorted parts of one map's output and gives lines with the same keys.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        combiner: Option<String>,
        /// Gets one sorted partition; its output is the part file. Without one the sorted pairs are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reducer: Option<String>,
    },
    /// One command of the shell, which reads its inputs itself: one map without reduces.
    Command {
        /// Finds the paths of its inputs in `SLACKLINE_INPUTS`, one a line; what it says is the part file.
        command: String,
    },
    /// A program for Hadoop that submits its MapReduce jobs itself: none of its tasks is run here.
    Jar {
        /// The jar, a file of the machine of the run.
        jar: String,
        /// The class whose `main` is called.
        main: String,
        /// Its arguments, in which `{inputs}` and `{output}` stand for what the job reads and where it is to
        /// write.
        arguments: Vec<String>,
    },
}

/// Why a job that is given by jar and main class is refused wherever tasks are run by the worker.
pub const NEEDS_HADOOP: &str = "found a jar, expected program, mapper or command: only a Hadoop cluster runs jars, with \
                                --engine yarn://HOST:PORT";

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

/// Where and how the commands of a job run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// Variables of their environment, beside those that they have from us.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Their working directory; that of the run where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The program that reads them, with its options (`bash -o pipefail`): it is given `-c` and the command.
    /// `sh` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

/// How the pairs of a job go from its maps to its reduces. All but `compress` is for commands alone: programs
/// know their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shuffle {
    /// How many fields of a line are its key (1). A line with fewer is a key without a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_fields: Option<u32>,
    /// What separates fields, one character of ASCII (tab). It also stands between key and value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// How many fields of the key say which reduce gets it (all).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_fields: Option<u32>,
    /// The fields of the key by which a reduce's lines are ordered, as `sort -k` has it: `1`, `2nr`. Keys
    /// that are equal by them are ordered by their bytes, as all are where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Into how many ranges keys are cut, one for each reduce, so that the parts one after the other are in
    /// order; 0 or 1 where a hash of the key decides. Combiners are left out then.
    #[serde(skip_serializing_if = "is_zero")]
    pub ranges: u32,
    /// How the output of maps is compressed: by LZ4 or not at all.
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
    /// Where it begins, in bytes.
    #[serde(default)]
    pub offset: u64,
    /// Its length in bytes; none means to the end of the file, as for compressed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Which of the job's inputs it comes from, from 0.
    #[serde(default)]
    pub input: u32,
    /// The file as it was when the run began; none if an earlier job of the run makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Where its bytes are read, if not in `path`, which then is a name and no more: a copy of the whole
    /// file, or where there is a length of its bytes from the one before `offset` to the end of the line that
    /// `offset + length` is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<PathBuf>,
}

impl Split {
    /// The file that is opened.
    pub(crate) fn file(&self) -> &Path {
        self.copy.as_deref().unwrap_or(&self.path)
    }

    /// The byte at which it ends; none if it extends to the end of its file. So does one that reaches the
    /// reported size: that may be wrong, and counts only where files are cut.
    pub(crate) fn end(&self) -> Option<u64> {
        let end = self.offset.saturating_add(self.length?);
        let is_last = self.source.as_ref().is_some_and(|source| end >= source.bytes);
        (!is_last).then_some(end)
    }

    /// Whether that is a copy of a part of the input.
    pub(crate) fn is_excerpt(&self) -> bool {
        self.copy.is_some() && self.length.is_some()
    }

    /// The byte of the input at which the file begins that is opened.
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
    /// Which part of it.
    pub task: Task,
    /// The attempt's own directory; it writes nowhere else.
    pub directory: PathBuf,
    /// How much memory its buffers may take, in bytes. A record larger than that (or than 1 MiB) is an error.
    pub memory_bytes: u64,
    /// Whether output is forced to disk before the attempt reports success.
    #[serde(default)]
    pub durable: bool,
    /// Where and how commands run.
    #[serde(default)]
    pub setting: Setting,
    /// How pairs go from maps to reduces.
    #[serde(default)]
    pub shuffle: Shuffle,
    /// How part files are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Codec>,
    /// How much memory each process of a command may take (its address space, `ulimit -v`), in bytes. Where
    /// there is a [`Self::memory_group`] that holds it instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// The control group that commands run in, which holds their memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_group: Option<PathBuf>,
    /// The files that the job depends on beside its inputs, as they were when the run began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<PathBuf, Source>,
    /// Whether what it reads may have been written on another machine a moment ago, so that it is not seen
    /// here at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patient: bool,
    /// Of a reduce: the checksums of the committed outputs of the maps, by number. Empty where they are
    /// unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map_sums: Vec<u64>,
    /// Whether what commands say on standard error is passed on, line by line, to that of this process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echo: bool,
}

impl Spec {
    /// An attempt with nothing special about it.
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

    /// The checksum of the committed output of a map, where it is known.
    pub(crate) fn map_sum(&self, map: usize) -> Option<u64> {
        self.map_sums.get(map).copied()
    }

    /// What a program's own tables may take: a quarter.
    pub(crate) fn program_memory(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// What sorting and merging may take: the rest.
    pub(crate) fn shuffle_memory(&self) -> usize {
        (self.memory_bytes - self.program_memory()).max(1) as usize
    }
}

/// The part of a job that an attempt does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Task {
    Map {
        /// Its number, from 0.
        index: u32,
        /// How many maps the job has.
        maps: u32,
        /// What it reads; empty for generators.
        splits: Vec<Split>,
        /// How many partitions it makes; 0 means that its output is a part file.
        partitions: u32,
        /// What [`crate::attempt::prepare`] wrote, where the program wants it.
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

/// What an attempt did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// What it counted; `skipped` are records that the program could not use, such as a line without a number
    /// for `histogram`. At most 500 counters, by `reporter:counter:GROUP,NAME,AMOUNT` on standard error of its
    /// commands; the status text is the last by `reporter:status:TEXT`.
    #[serde(flatten)]
    pub counts: PhaseCounts,
    /// The digest of the part file or map output that it wrote. None of a part that is on another file
    /// system, which a placeholder stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Digest>,
}
