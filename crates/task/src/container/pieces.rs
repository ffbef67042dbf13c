//! The pieces file of a job: the input of each of its maps, a line for each in the order of their numbers:
//! `HOST,HOST TAB [{"path": URI, "offset": N, "length": N or null, "input": K, "source": {…}}, …]`. The list
//! of hosts may be empty, and only files on another file system have a `source`.
//!
//! A local file is `file://` and its absolute path, as Hadoop writes paths: without percent-encoding.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::error::{TaskError, at};
use crate::base::regular_file;
use crate::base::source::Source;
use crate::process::spec::Split;

/// The part of a file that a map reads: see [`Split`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    pub path: String,
    /// The start, in bytes.
    pub offset: u64,
    /// The length in bytes; `None` means the whole file.
    pub length: Option<u64>,
    /// The index of the job's input, from 0.
    pub input: u32,
    /// The state of the file when the run found or made it, for the submitter that copies it, if it is on
    /// another file system. The worker compares a local file with the state in the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

impl Piece {
    fn of(split: &Split, directory: &Path) -> Self {
        let (path, source) = if is_elsewhere(&split.path) {
            (split.path.display().to_string(), split.source.clone())
        } else {
            (format!("file://{}", directory.join(&split.path).display()), None)
        };
        Self { path, offset: split.offset, length: split.length, input: split.input, source }
    }

    /// Its file, if that is a local one.
    pub(crate) fn local(&self) -> Option<PathBuf> {
        let path = self.path.strip_prefix("file:")?;
        // An empty host name is between two slashes and the path.
        let path = path.strip_prefix("//").unwrap_or(path);
        path.starts_with('/').then(|| path.into())
    }
}

/// Whether a path is a URI (`hdfs://host/path`).
pub(crate) fn is_elsewhere(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|path| path.split_once("://")).map_or("", |(scheme, _)| scheme);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    !scheme.is_empty() && scheme.chars().all(is_name)
}

/// Writes the input of each map, with the hosts near it. Paths start from `directory`.
///
/// # Errors
///
/// An error of the system.
pub fn write(
    out: &mut impl Write,
    maps: &[Vec<Split>],
    directory: &Path,
    hosts: impl Fn(u32) -> Vec<String>,
) -> io::Result<()> {
    for (map, splits) in (0..).zip(maps) {
        let pieces: Vec<Piece> = splits.iter().map(|split| Piece::of(split, directory)).collect();
        writeln!(out, "{}\t{}", hosts(map).join(","), serde_json::to_string(&pieces)?)?;
    }
    Ok(())
}

/// Reads the pieces of one map.
///
/// # Errors
///
/// A line that is missing or cannot be read.
pub fn read(file: &Path, map: u32) -> Result<Vec<Piece>, TaskError> {
    let unreadable = || at("cannot read", file);
    let mut lines = BufReader::new(regular_file::open(file).map_err(unreadable())?).split(b'\n');
    let line = lines.nth(map as usize).transpose().map_err(unreadable())?;
    pieces(line.as_deref()).map_err(|problem| {
        let line = u64::from(map) + 1;
        TaskError::Damaged { path: file.to_owned(), problem: format!("line {line}: {problem}") }
    })
}

/// The pieces of a line, or its fault.
fn pieces(line: Option<&[u8]>) -> Result<Vec<Piece>, String> {
    let line = line.ok_or("found the end, expected a line for each map")?;
    let tab = memchr::memchr(b'\t', line).ok_or("found no tab, expected hosts, a tab and pieces")?;
    serde_json::from_slice(&line[tab + 1..]).map_err(|error| error.to_string())
}
