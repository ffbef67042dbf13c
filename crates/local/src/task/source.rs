//! Input files as they were when a run began, and whether they still are.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::TaskError;
use super::error::at;
use crate::clock::unix_micros;
use crate::theirs;

/// How much of a file is hashed at once, bytes.
const BLOCK: usize = 1 << 18;

/// An input file as it was when the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its size.
    pub bytes: u64,
    /// When it was written last, microseconds since 1970; 0 where the file system does not say.
    pub modified: u64,
    /// The SHA-256 of its content in hexadecimal digits, where it was asked for. Then size and content tell whether the
    /// file is the same, whenever it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Which file its content was read of, and when the system noted its last change (see [`identity`]). As long as
    /// these stay its content does, so that the maps of a large file need not hash all of it each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<[i64; 5]>,
}

/// A file that was changed less than this before it was read, microseconds, may be changed again within the same tick of
/// the file system's clock.
const SETTLED: i64 = 2_000_000;

impl Source {
    /// A file as it is now, without a look at its content.
    ///
    /// # Errors
    /// It is not there.
    pub fn now(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|meta| Self::of(&meta))
    }

    /// A file as it is now, with the SHA-256 of its content.
    ///
    /// # Errors
    /// It cannot be read, or it changes while it is read.
    pub fn hashed(path: &Path) -> io::Result<Self> {
        let file = theirs::open_through(path)?;
        let now = i64::try_from(unix_micros()).unwrap_or(0);
        let meta = file.metadata()?;
        let before = Self::of(&meta);
        let changed = meta.ctime().saturating_mul(1_000_000).saturating_add(meta.ctime_nsec() / 1000);
        let stamp = (changed < now - SETTLED).then(|| identity(&meta));
        let sha256 = hash(file)?;
        if Self::now(path)? != before {
            return Err(io::Error::other(
                "found it changing while it was read, expected it to stay as it is",
            ));
        }
        Ok(Self { sha256: Some(sha256), stamp, ..before })
    }

    /// Whether a file is still what it was: of the same size, and of the same content where that is known, else of
    /// the same time.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn is_still(&self, path: &Path) -> io::Result<bool> {
        Ok(match &self.sha256 {
            None => Self::now(path)? == *self,
            Some(then) => {
                fs::metadata(path)?.len() == self.bytes && hash(theirs::open_through(path)?)? == *then
            }
        })
    }

    /// Whether two looks at a file found the same: of the same content where both know it, else of the same time.
    pub fn is_same(&self, other: &Self) -> bool {
        self.bytes == other.bytes
            && match (&self.sha256, &other.sha256) {
                (Some(one), Some(two)) => one == two,
                _ => self.modified == other.modified,
            }
    }

    pub(super) fn of(meta: &Metadata) -> Self {
        let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since.and_then(|d| u64::try_from(d.as_micros()).ok()).unwrap_or(0);
        Self { bytes: meta.len(), modified, sha256: None, stamp: None }
    }
}

/// The SHA-256 of all that a file holds.
fn hash(mut file: File) -> io::Result<String> {
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK]);
    loop {
        match file.read(&mut block) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) => break,
            other => hash.update(&block[..other?]),
        }
    }
    let sum = hash.finalize();
    let digits = sum.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Ok(digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect())
}

/// A file that is being read, and that must stay as it was.
pub(super) struct Watched {
    source: Source,
    /// Which file it was when it was opened, and when the system noted its last change. As long as these stay its
    /// content does, so that it is not hashed twice.
    opened: [i64; 5],
}

impl Watched {
    /// Begins to watch a file that was opened; none if it is no longer what it was.
    pub(super) fn begin(source: &Source, path: &Path, file: &File) -> io::Result<Option<Self>> {
        let meta = file.metadata()?;
        let same = match source.sha256 {
            None => Source::of(&meta) == *source,
            Some(_) => source.stamp == Some(identity(&meta)) || source.is_still(path)?,
        };
        Ok(same.then(|| Self { source: source.clone(), opened: identity(&meta) }))
    }

    /// Whether it is still what it was. A file that is gone is not.
    pub(super) fn is_same(&self, path: &Path) -> bool {
        let Ok(meta) = fs::metadata(path) else { return false };
        match self.source.sha256 {
            None => Source::of(&meta) == self.source,
            Some(_) => identity(&meta) == self.opened || self.source.is_still(path).unwrap_or(false),
        }
    }
}

/// Files beside the inputs that an attempt depends on, which must stay as they were while it is at work: its commands may
/// read them at any moment.
pub(super) struct WatchedFiles<'a> {
    files: Vec<(&'a Path, Watched)>,
}

impl<'a> WatchedFiles<'a> {
    /// Begins to watch files.
    ///
    /// # Errors
    /// One that is not what it was when the run began, or cannot be read.
    pub(super) fn begin(files: &'a BTreeMap<PathBuf, Source>) -> Result<Self, TaskError> {
        let watched = |(path, source): (&'a PathBuf, &Source)| {
            let changed = || TaskError::changed(path);
            let file = File::open(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => changed(),
                _ => at("cannot read", path)(error),
            })?;
            let watched = Watched::begin(source, path, &file).map_err(at("cannot read", path))?;
            let mut watched = watched.ok_or_else(changed)?;
            // It may have been written with the same content before, and not from now on.
            let now = file.metadata().map_err(at("cannot read", path))?;
            watched.source.modified = Source::of(&now).modified;
            Ok((path.as_path(), watched))
        };
        files.iter().map(watched).collect::<Result<_, _>>().map(|files| Self { files })
    }

    /// Refuses files that were written meanwhile, also those that were put back.
    pub(super) fn check(&self) -> Result<(), TaskError> {
        let is_written = |(path, watched): &&(&Path, Watched)| {
            let now = Source::now(path);
            now.map_or(true, |now| now.modified != watched.source.modified) || !watched.is_same(path)
        };
        match self.files.iter().find(is_written) {
            Some((path, _)) => Err(TaskError::changed(path)),
            None => Ok(()),
        }
    }
}

/// Device, number and size of a file, and when the system noted its last change, which nobody can set.
fn identity(meta: &Metadata) -> [i64; 5] {
    [
        meta.dev().cast_signed(),
        meta.ino().cast_signed(),
        meta.size().cast_signed(),
        meta.ctime(),
        meta.ctime_nsec(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_where_it_is_known_and_size_and_time_where_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        let (plain, hashed) = (Source::now(&path).unwrap(), Source::hashed(&path).unwrap());
        assert_eq!(
            hashed.sha256.as_deref(),
            Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        );
        assert!(plain.is_still(&path).unwrap() && hashed.is_still(&path).unwrap());
        // Touched: another time, the same content.
        let file = File::options().append(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        assert!(!plain.is_still(&path).unwrap() && hashed.is_still(&path).unwrap());
        // Written and set back: the same time, another content.
        let touched = Source::now(&path).unwrap();
        fs::write(&path, "abd").unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert!(touched.is_still(&path).unwrap() && !hashed.is_still(&path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(plain.is_still(&path).is_err() && hashed.is_still(&path).is_err());
    }

    #[test]
    fn a_file_that_nobody_touched_since_it_was_hashed_is_not_hashed_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        let fresh = Source::hashed(&path).unwrap();
        assert!(fresh.stamp.is_none(), "it may be changed again within a tick");
        let stamp = Some(identity(&fs::metadata(&path).unwrap()));
        let begin =
            |source: &Source| Watched::begin(source, &path, &File::open(&path).unwrap()).unwrap().is_some();
        // The sum tells whether somebody looked at it.
        let unseen = Source { sha256: Some("none".to_owned()), stamp, ..fresh.clone() };
        assert!(begin(&unseen) && begin(&fresh));
        let kept: Source = serde_json::from_value(serde_json::to_value(&unseen).unwrap()).unwrap();
        assert!(kept == unseen && begin(&kept));
        File::options().append(true).open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        fs::rename(&path, dir.path().join("y")).unwrap();
        fs::write(&path, "abc").unwrap();
        assert!(!begin(&unseen) && begin(&fresh), "another file");
    }
}
