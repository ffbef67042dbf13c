//! The fields of the `run` section of a job.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use crate::reading::sizes::Size;
use crate::reading::times::Duration;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(is: &bool) -> bool {
    !*is
}

/// How to run the tasks of a job: a built-in program, commands as in Hadoop Streaming, or one plain command.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    /// A built-in program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<String>,
    /// A command: lines in, `key TAB value` lines out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mapper: Option<String>,
    /// A command: `key TAB value` lines sorted by key in, lines out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reducer: Option<String>,
    /// A command that reduces the output of one map, in the form of the reducer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) combiner: Option<String>,
    /// One plain command: its inputs are in SLACKLINE_INPUTS, one path per line, and its standard output is the
    /// only part file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// A jar of this machine with a Hadoop program that submits its jobs itself; only for a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jar: Option<String>,
    /// The class of the jar whose `main` is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) main: Option<String>,
    /// Arguments of the jar's program. `{inputs}` stands for the URIs of the inputs, separated by commas, and
    /// `{output}` for the URI of a new directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) arguments: Vec<String>,
    /// Files, globs, directories, `@job` for the output of an earlier job of the flow, or `@flow/job` for a job
    /// of another flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inputs: Vec<String>,
    /// The directory of its output: `part-00000`, …, and `_SUCCESS` when it is complete. Only a plain command
    /// may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// Number of reduce tasks; by default 1, or 0 without a reducer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reducers: Option<u32>,
    /// Arguments of the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) args: BTreeMap<String, Arg>,
    /// Environment variables of the commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, Arg>,
    /// The directory of the commands; by default that of `slackline run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    /// The shell with its options, such as `bash -o pipefail`; by default `sh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shell: Option<String>,
    /// Other files that the job depends on: scripts, tables. The job reruns when one changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<String>,
    /// Memory of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Size>,
    /// Processors of a task; by default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) processors: Option<u32>,
    /// Time limit of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Duration>,
    /// Number of attempts of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) attempts: Option<u16>,
    /// Pause before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_delay: Option<Duration>,
    /// Factor on this pause after each further failure, up to a day; by default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1, max = 100)))]
    pub(crate) retry_backoff: Option<f64>,
    /// Exit codes of commands that are not retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(inner(range(min = 1))))]
    pub(crate) no_retry: Vec<u8>,
    /// What happens to the rest of the flow if the job fails: continue (jobs that do not depend on it run), finish
    /// (running tasks end) or stop (running tasks are killed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = ["continue", "finish", "stop", null])))]
    pub(crate) failure_policy: Option<String>,
    /// Number of fields at the start of a line that form its key; by default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) key_fields: Option<u32>,
    /// The character (of ASCII) between the fields of a line; by default a tab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(equal = 1)))]
    pub(crate) separator: Option<String>,
    /// Number of fields of the key that select the reduce; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) partition_fields: Option<u32>,
    /// Fields of the key to sort by, each a number followed by n (numbers) or r (reverse), as of sort -k:
    /// `["1", "2nr"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(inner(regex(pattern = "^[1-9][0-9]*(n|r|nr|rn)?$"))))]
    pub(crate) order: Vec<String>,
    /// Whether the part files are sorted as a whole.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) total_order: bool,
    /// Compression of map output: lz4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = ["lz4", null])))]
    pub(crate) compress_shuffle: Option<String>,
    /// Compression of the part files: gzip, zstd or lz4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = ["gzip", "zstd", "lz4", null])))]
    pub(crate) compress: Option<String>,
}

impl Run {
    /// The texts that parameters are replaced in, each with where it stands in the section.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = (String, &mut String)> {
        let commands = [
            ("mapper", &mut self.mapper),
            ("reducer", &mut self.reducer),
            ("combiner", &mut self.combiner),
            ("command", &mut self.command),
            ("jar", &mut self.jar),
            ("main", &mut self.main),
            ("output", &mut self.output),
            ("cwd", &mut self.cwd),
        ];
        let commands = commands.into_iter().filter_map(|(at, text)| Some((at.to_owned(), text.as_mut()?)));
        commands
            .chain(items("arguments", &mut self.arguments))
            .chain(items("inputs", &mut self.inputs))
            .chain(words("args", &mut self.args))
            .chain(words("env", &mut self.env))
            .chain(items("files", &mut self.files))
    }
}

fn items<'a>(
    name: &'a str,
    list: &'a mut [String],
) -> impl Iterator<Item = (String, &'a mut String)> + use<'a> {
    list.iter_mut().enumerate().map(move |(k, text)| (format!("{name}[{k}]"), text))
}

fn words<'a>(
    name: &'a str,
    table: &'a mut BTreeMap<String, Arg>,
) -> impl Iterator<Item = (String, &'a mut String)> + use<'a> {
    table.iter_mut().filter_map(move |(key, arg)| match arg {
        Arg::Text(text) => Some((format!("{name}.{key}"), text)),
        _ => None,
    })
}

/// An argument of a program: a word, a number, or true or false.
// Distinguished by hand, as `Numbers` are.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(untagged)]
pub(crate) enum Arg {
    Flag(bool),
    Count(i64),
    Real(f64),
    Text(String),
}

struct ArgVisitor;

impl Visitor<'_> for ArgVisitor {
    type Value = Arg;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word, a number, or true or false")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Arg, E> {
        Ok(Arg::Flag(flag))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Arg, E> {
        Ok(i64::try_from(n).map_or(Arg::Real(n as f64), Arg::Count))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Arg, E> {
        Ok(Arg::Count(n))
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Arg, E> {
        Ok(Arg::Real(x))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arg, E> {
        Ok(Arg::Text(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Arg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgVisitor)
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Count(n) => n.fmt(f),
            Self::Real(x) => x.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}
