//! What makes a job what it is. If nothing of it changed, and nothing of what it reads, its output is what it would be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_model::draft::{RunDraft, RunSetting, RunShuffle, RunWork};
use slackline_trace::sha256;

/// A job in canonical form: what it computes and where its output goes, by name. Comments, layout, names of inputs that
/// mean the same file, policy, slots and limits are not among it, because its output does not depend on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Definition(BTreeMap<String, String>);

/// What of a job's meaning is not in its `run` section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// The directory that relative paths start from.
    pub(crate) directory: &'a Path,
    /// How many reduces it has.
    pub(crate) reducers: u32,
    /// About how many bytes a map reads; none if its maps do not follow from that.
    pub(crate) split_bytes: Option<u64>,
}

impl Definition {
    /// The definition of a job. Reads the files that it declares. O(their bytes).
    pub(crate) fn of(run: &RunDraft, around: Surroundings<'_>) -> Self {
        let RunDraft { work, inputs, output, reducers: _, setting, limits: _, shuffle, compress } = run;
        let mut parts = BTreeMap::new();
        let mut put = |name: &str, text: String| drop(parts.insert(name.to_owned(), text));
        let absolute = |path: &str| around.directory.join(path).display().to_string();
        match work {
            RunWork::Program { name, args } => {
                put("program", name.clone());
                args.iter().for_each(|(name, value)| put(&format!("argument {name}"), value.clone()));
            }
            RunWork::Commands { mapper, reducer, combiner } => {
                put("mapper", mapper.clone());
                let more = [("reducer", reducer), ("combiner", combiner)];
                more.into_iter().for_each(|(name, text)| {
                    text.iter().for_each(|text| put(name, text.clone()));
                });
            }
            RunWork::Command { command } => put("command", command.clone()),
        }
        if !matches!(work, RunWork::Program { .. }) {
            let RunSetting { env, cwd, shell, files } = setting;
            put("cwd", absolute(cwd.as_deref().unwrap_or("")));
            shell.iter().for_each(|shell| put("shell", shell.clone()));
            env.iter().for_each(|(name, value)| put(&format!("env {name}"), value.clone()));
            files.iter().for_each(|file| put(&format!("file {file}"), hash(&around.directory.join(file))));
        }
        let known = inputs.iter().map(|input| match input.starts_with('@') {
            true => input.clone(),
            false => absolute(input),
        });
        put("inputs", known.collect::<Vec<_>>().join("\n"));
        put("output", absolute(output));
        put("reducers", around.reducers.to_string());
        around.split_bytes.iter().for_each(|bytes| put("split", bytes.to_string()));
        compress.iter().for_each(|codec| put("compress", codec.clone()));
        let RunShuffle { key_fields, separator, partition_fields, order, total_order, compress: _ } = shuffle;
        key_fields.iter().for_each(|n| put("key_fields", n.to_string()));
        separator.iter().for_each(|text| put("separator", text.clone()));
        partition_fields.iter().for_each(|n| put("partition_fields", n.to_string()));
        if !order.is_empty() {
            put("order", order.join(" "));
        }
        if *total_order {
            put("total_order", "true".to_owned());
        }
        Self(parts)
    }

    /// The name of the first part in which the two differ.
    pub fn difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let names = self.0.keys().chain(other.0.keys());
        names.map(String::as_str).find(|&name| self.0.get(name) != other.0.get(name))
    }

    /// The directory of its output, absolute.
    pub fn output(&self) -> PathBuf {
        PathBuf::from(self.0.get("output").map_or("", String::as_str))
    }
}

/// The hash of a file, or a word for one that cannot be read: the job is then prevented from running.
fn hash(file: &Path) -> String {
    std::fs::read(file).map_or_else(|_| "missing".to_owned(), |bytes| sha256(&bytes))
}
