//! The command line of a task in a container.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::base::error::{TaskError, at};

/// The arguments of a task in a container. Paths are absolute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) phase: Phase,
    pub(crate) spec: PathBuf,
    pub(crate) task: u32,
    pub(crate) attempt: u32,
    /// The directory of the container.
    pub(crate) directory: PathBuf,
}

/// The arguments for each kind of task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Map {
        pieces: PathBuf,
        /// For each piece, the place of its copy.
        copies: BTreeMap<usize, PathBuf>,
    },
    Reduce,
}

pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Arguments, TaskError> {
    let mut words = arguments.map(|word| {
        word.into_string()
            .map_err(|word| wrong(format!("found the argument {}, expected UTF-8", word.display())))
    });
    let phase = words.next().transpose()?;
    let (mut given, mut copies) = (BTreeMap::new(), BTreeMap::new());
    while let Some(name) = words.next().transpose()? {
        let is_known =
            matches!(&*name, "--spec" | "--pieces" | "--task" | "--attempt" | "--directory" | "--copy");
        let Some(value) = words.next().transpose()?.filter(|_| is_known) else {
            return Err(wrong(format!("found {name:?}, expected {USAGE}")));
        };
        if name == "--copy" {
            let (piece, path) = copy(&value)?;
            copies.insert(piece, path);
        } else {
            given.insert(name, value);
        }
    }
    let mut take =
        |name: &str| given.remove(name).ok_or_else(|| wrong(format!("missing {name}, usage: {USAGE}")));
    let arguments = Arguments {
        phase: match phase.as_deref() {
            Some("map") => Phase::Map { pieces: absolute(&take("--pieces")?)?, copies },
            Some("reduce") => Phase::Reduce,
            other => return Err(wrong(format!("found {:?}, expected {USAGE}", other.unwrap_or_default()))),
        },
        spec: absolute(&take("--spec")?)?,
        task: number("--task", &take("--task")?)?,
        attempt: number("--attempt", &take("--attempt")?)?,
        directory: absolute(&take("--directory")?)?,
    };
    Ok(arguments)
}

/// The only form of the command line.
const USAGE: &str = "container map|reduce --spec FILE [--pieces FILE] --task N --attempt N --directory DIR [--copy PIECE=FILE]…";

fn copy(value: &str) -> Result<(usize, PathBuf), TaskError> {
    let piece = value.split_once('=').and_then(|(piece, path)| Some((piece.parse().ok()?, path)));
    let (piece, path) = piece.ok_or_else(|| {
        wrong(format!("--copy: found {value:?}, expected the number of a piece, = and a file"))
    })?;
    Ok((piece, absolute(path)?))
}

fn number(name: &str, text: &str) -> Result<u32, TaskError> {
    text.parse().map_err(|_| wrong(format!("{name}: found {text:?}, expected a number")))
}

fn absolute(path: &str) -> Result<PathBuf, TaskError> {
    std::path::absolute(path).map_err(at("cannot find", Path::new(path)))
}

fn wrong(problem: String) -> TaskError {
    TaskError::Job(problem)
}
