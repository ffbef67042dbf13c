//! The definition of a job. If the definition and the inputs of a job are unchanged, its output is up to
//! date.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_model::draft::{RunDraft, RunSetting, RunShuffle, RunWork};
use slackline_task::base::source::Source;

/// A job in canonical form: its computation and the directory of its output, by name. Comments, layout, names
/// of inputs that mean the same file, policy, slots and limits are not part of it, because the output does
/// not depend on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Definition(BTreeMap<String, String>);

/// The parts of a job's meaning that are not in its `run` section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// The directory that relative paths start from.
    pub(crate) directory: &'a Path,
    pub(crate) reducers: u32,
    /// About how many bytes a map reads; `None` if the maps do not follow from that number.
    pub(crate) split_bytes: Option<u64>,
}

impl Definition {
    /// The definition of a job, and the current state of the files that it declares, by their declared names.
    /// O(their bytes).
    pub(crate) fn of(run: &RunDraft, around: Surroundings<'_>) -> (Self, BTreeMap<PathBuf, Source>) {
        let RunDraft { work, inputs, output, reducers: _, setting, limits: _, shuffle, compress } = run;
        let absolute = |path: &str| around.directory.join(path).display().to_string();
        let input = |input: &String| if input.starts_with('@') { input.clone() } else { absolute(input) };
        let mut parts = Parts::of_work(work, around.directory);
        parts.put("inputs", &inputs.iter().map(input).collect::<Vec<_>>().join("\n"));
        parts.put("output", &absolute(output.as_deref().unwrap_or_default()));
        parts.put("reducers", &around.reducers);
        parts.put_some("split", around.split_bytes);
        parts.put_some("compress", compress.as_ref());
        if !matches!(work, RunWork::Program { .. }) {
            parts.put_setting(setting, around.directory);
        }
        parts.put_shuffle(shuffle);
        (Self(parts.named), parts.files)
    }

    /// The name of the first part in which the definitions differ.
    pub fn difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let names = self.0.keys().chain(other.0.keys());
        names.map(String::as_str).find(|&name| self.0.get(name) != other.0.get(name))
    }

    /// The first declared file that cannot be read or does not exist.
    pub(crate) fn missing_file(&self) -> Option<&str> {
        let missing = self.0.iter().find(|(name, hash)| name.starts_with(FILE) && *hash == MISSING);
        missing.and_then(|(name, _)| name.strip_prefix(FILE))
    }

    /// The directory of its output, absolute.
    pub fn output(&self) -> PathBuf {
        PathBuf::from(self.0.get("output").map_or("", String::as_str))
    }
}

/// Collects the parts of a definition.
#[derive(Default)]
struct Parts {
    named: BTreeMap<String, String>,
    /// The declared files that can be read.
    files: BTreeMap<PathBuf, Source>,
}

impl Parts {
    fn put(&mut self, name: impl Into<String>, value: &(impl ToString + ?Sized)) {
        self.named.insert(name.into(), value.to_string());
    }

    fn put_some(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.put(name, &value);
        }
    }

    fn of_work(work: &RunWork, directory: &Path) -> Self {
        let mut parts = Self::default();
        match work {
            RunWork::Program { name, args } => {
                parts.put("program", name);
                for (name, value) in args {
                    parts.put(format!("argument {name}"), value);
                }
            }
            RunWork::Commands { mapper, reducer, combiner } => {
                parts.put("mapper", mapper);
                parts.put_some("reducer", reducer.as_ref());
                parts.put_some("combiner", combiner.as_ref());
            }
            RunWork::Command { command } => parts.put("command", command),
            RunWork::Jar { jar, main, arguments } => {
                parts.put_file(jar, directory);
                parts.put("main", main);
                parts.put("arguments", &format!("{arguments:?}"));
            }
        }
        parts
    }

    fn put_setting(&mut self, setting: &RunSetting, directory: &Path) {
        let RunSetting { env, cwd, shell, files } = setting;
        self.put("cwd", &directory.join(cwd.as_deref().unwrap_or("")).display());
        self.put_some("shell", shell.as_ref());
        for (name, value) in env {
            self.put(format!("env {name}"), value);
        }
        for file in files {
            self.put_file(file, directory);
        }
    }

    fn put_file(&mut self, file: &str, directory: &Path) {
        let source = Source::hashed(&directory.join(file)).ok();
        let hash = source.as_ref().and_then(|source| source.sha256.as_deref());
        self.put(format!("{FILE}{file}"), hash.unwrap_or(MISSING));
        self.files.extend(source.map(|source| (PathBuf::from(file), source)));
    }

    /// The settings of the shuffle on which the output depends: not the compression of map output.
    fn put_shuffle(&mut self, shuffle: &RunShuffle) {
        let RunShuffle { key_fields, separator, partition_fields, order, total_order, compress: _ } = shuffle;
        self.put_some("key_fields", *key_fields);
        self.put_some("separator", separator.as_ref());
        self.put_some("partition_fields", *partition_fields);
        self.put_some("order", (!order.is_empty()).then(|| order.join(" ")));
        self.put_some("total_order", total_order.then_some("true"));
    }
}

/// How the names of declared files begin.
const FILE: &str = "file ";

/// The hash of a file that cannot be read: its job cannot run.
const MISSING: &str = "missing";
