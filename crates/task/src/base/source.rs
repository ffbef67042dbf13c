//! Input files as they were when a run began, and checks that they are unchanged.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::clock::unix_micros;
use crate::base::error::{TaskError, at};
use crate::base::regular_file;

/// Bytes of a file that are hashed at once.
const BLOCK: usize = 1 << 18;

/// An input file as it was when the run began, or a part file as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub bytes: u64,
    /// The last modification, microseconds since 1970; 0 if the file system does not report it.
    pub modified: u64,
    /// The SHA-256 of its content in hexadecimal digits, if the user asked for it. Then size and content
    /// decide whether the file is the same, and the time of modification does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The identity of the file. Part files and files on other file systems (HDFS) have none: a part is
    /// renamed after it was written, which changes the time that the system notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    /// The content was read so soon after the last change that an equal identity does not prove equal
    /// content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_fresh: bool,
    /// The path was a link to the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_link: bool,
}

/// The identity of a file at a path, and its times in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    inode: u64,
    device: u64,
    modified: i64,
    /// The time of the last change of content, name or permissions. No program can set it.
    changed: i64,
}

impl Identity {
    fn of(meta: &Metadata) -> Self {
        // Years after 2262 wrap around, and stay different from each other.
        let nanoseconds = |seconds: i64, rest| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
        Self {
            inode: meta.ino(),
            device: meta.dev(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// A file that was changed less than this before it was read, nanoseconds, may change again within the same
/// tick of the file system's clock.
const SETTLED: i64 = 2_000_000_000;

/// The result of [`Source::difference`] for the same file seen through another mount, or on another machine.
const DEVICE: &str = "device";

impl Source {
    /// A file as it is now, without its content.
    ///
    /// # Errors
    /// A missing file.
    pub fn now(path: &Path) -> io::Result<Self> {
        let meta = fs::symlink_metadata(path)?;
        if meta.is_symlink() {
            Ok(Self { is_link: true, ..Self::of(&fs::metadata(path)?) })
        } else {
            Ok(Self::of(&meta))
        }
    }

    /// A file as it is now, with the SHA-256 of its content.
    ///
    /// # Errors
    /// A file that cannot be read, or changes while it is read.
    pub fn hashed(path: &Path) -> io::Result<Self> {
        let now = i64::try_from(unix_micros()).unwrap_or(0).saturating_mul(1000);
        let before = Self::now(path)?;
        let sha256 = hash(before.open(path)?)?;
        if Self::now(path)? != before {
            return Err(io::Error::other("it changed while it was being read"));
        }
        let is_fresh = before.identity.is_none_or(|identity| identity.changed >= now - SETTLED);
        Ok(Self { sha256: Some(sha256), is_fresh, ..before })
    }

    /// The current size and time of change of a part file.
    ///
    /// # Errors
    /// A missing file.
    pub fn of_part(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|meta| Self::written(&meta))
    }

    /// A part file that was just written.
    pub(crate) fn written(meta: &Metadata) -> Self {
        Self { identity: None, ..Self::of(meta) }
    }

    fn of(meta: &Metadata) -> Self {
        let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since.and_then(|d| u64::try_from(d.as_micros()).ok()).unwrap_or(0);
        let identity = Some(Identity::of(meta));
        Self { bytes: meta.len(), modified, sha256: None, identity, is_fresh: false, is_link: false }
    }

    /// Drops the identity, which only distinguishes files of one file system.
    pub fn forget_identity(&mut self) {
        self.identity = None;
    }

    /// Opens the file. A path that was no link must not have become one.
    ///
    /// # Errors
    /// As [`regular_file::open`].
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        if self.is_link { regular_file::open(path) } else { regular_file::open_no_link(path) }
    }

    /// Whether a file has not changed.
    ///
    /// # Errors
    /// A missing file, or one that cannot be read.
    pub fn is_still(&self, path: &Path) -> io::Result<bool> {
        let now = Self::now(path)?;
        Ok(match &self.sha256 {
            None => self.is_same(&now),
            Some(then) => now.bytes == self.bytes && hash(now.open(path)?)? == *then,
        })
    }

    /// Whether both are the same file with the same content.
    pub fn is_same(&self, other: &Self) -> bool {
        self.difference(other).is_none()
    }

    /// The difference between two states of a file, as text: the content if known both times, else size,
    /// times or identity.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        if self.bytes != other.bytes {
            return Some("size");
        }
        if let (Some(one), Some(two)) = (&self.sha256, &other.sha256) {
            return (one != two).then_some("content");
        }
        let (Some(one), Some(two)) = (self.identity, other.identity) else {
            return (self.modified != other.modified).then_some("modification time");
        };
        if one.modified != two.modified {
            Some("modification time")
        } else if one.inode != two.inode {
            Some("inode: another file has the name")
        } else if one.changed != two.changed {
            Some("change time")
        } else {
            (one.device != two.device).then_some(DEVICE)
        }
    }

    /// Whether an open file has not changed, by size, times and identity. Other machines have other device
    /// numbers.
    fn is_opened(&self, opened: &Self) -> bool {
        let by_identity = Self { sha256: None, ..self.clone() };
        !self.is_fresh && matches!(by_identity.difference(opened), None | Some(DEVICE))
    }
}

/// The SHA-256 of the content of a file.
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

/// A file that is being read and must not change.
pub(crate) struct WatchedFile {
    source: Source,
    /// The file when it was opened. While this is unchanged, so is its content, which is not hashed twice.
    opened: Source,
}

impl WatchedFile {
    /// Starts to watch an open file. Returns `None` if it has changed.
    pub(crate) fn begin(source: &Source, path: &Path, file: &File) -> io::Result<Option<Self>> {
        let opened = Source::of(&file.metadata()?);
        let is_same = source.is_opened(&opened) || source.sha256.is_some() && source.is_still(path)?;
        Ok(is_same.then(|| Self { source: source.clone(), opened }))
    }

    /// Whether it has not changed. A missing file has.
    pub(crate) fn is_same(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|meta| Source::of(&meta) == self.opened)
            || self.source.sha256.is_some() && self.source.is_still(path).unwrap_or(false)
    }
}

/// Files beside the inputs that an attempt depends on and that must not change while it runs: its commands
/// may read them at any moment.
pub(crate) struct WatchedFiles<'a> {
    files: Vec<(&'a Path, WatchedFile)>,
}

impl<'a> WatchedFiles<'a> {
    /// Starts to watch files.
    ///
    /// # Errors
    /// A file that has changed since the run began, or cannot be read.
    pub(crate) fn begin(files: &'a BTreeMap<PathBuf, Source>) -> Result<Self, TaskError> {
        let watched = |(path, source): (&'a PathBuf, &Source)| {
            let changed = || TaskError::changed(path);
            let file = source.open(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => changed(),
                _ => at("cannot read", path)(error),
            })?;
            let watched = WatchedFile::begin(source, path, &file).map_err(at("cannot read", path))?;
            Ok((path.as_path(), watched.ok_or_else(changed)?))
        };
        files.iter().map(watched).collect::<Result<_, _>>().map(|files| Self { files })
    }

    /// Refuses files that were written meanwhile, even with unchanged content.
    pub(crate) fn check(&self) -> Result<(), TaskError> {
        let is_written = |(path, watched): &&(&Path, WatchedFile)| {
            let is_untouched = fs::metadata(path).is_ok_and(|meta| {
                let modified = |source: &Source| source.identity.map(|identity| identity.modified);
                modified(&Source::of(&meta)) == modified(&watched.opened)
            });
            !is_untouched || !watched.is_same(path)
        };
        match self.files.iter().find(is_written) {
            Some((path, _)) => Err(TaskError::changed(path)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;

    fn set_modified(path: &Path, time: SystemTime) {
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn content_counts_where_it_is_known_and_identity_where_it_is_not() {
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
        set_modified(&path, UNIX_EPOCH);
        assert!(!plain.is_still(&path).unwrap() && hashed.is_still(&path).unwrap());
        // Written, and its time set back.
        let touched = Source::now(&path).unwrap();
        fs::write(&path, "abd").unwrap();
        set_modified(&path, UNIX_EPOCH);
        assert!(!touched.is_still(&path).unwrap() && !hashed.is_still(&path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(plain.is_still(&path).is_err() && hashed.is_still(&path).is_err());
    }

    /// Each case changes one property, and restores it if possible.
    #[test]
    fn a_difference_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (path, beside) = (dir.path().join("x"), dir.path().join("y"));
        let before_1970 = UNIX_EPOCH - Duration::from_secs(86_400);
        let cases: [(&str, &dyn Fn()); 7] = [
            ("size", &|| fs::write(&path, "abcd").unwrap()),
            ("modification time", &|| set_modified(&path, before_1970 + Duration::from_nanos(800))),
            ("modification time", &|| set_modified(&path, UNIX_EPOCH)),
            ("inode: another file has the name", &|| {
                fs::write(&beside, "abd").unwrap();
                set_modified(&beside, before_1970);
                fs::rename(&beside, &path).unwrap();
            }),
            ("change time", &|| {
                fs::write(&path, "abd").unwrap();
                set_modified(&path, before_1970);
            }),
            ("change time", &|| fs::hard_link(&path, &beside).unwrap()),
            ("change time", &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap()),
        ];
        for (nth, (expected, change)) in cases.into_iter().enumerate() {
            let _ = (fs::remove_file(&path), fs::remove_file(&beside));
            fs::write(&path, "abc").unwrap();
            set_modified(&path, before_1970);
            let before = Source::now(&path).unwrap();
            let kept: Source = serde_json::from_value(serde_json::to_value(&before).unwrap()).unwrap();
            assert_eq!(kept.difference(&Source::now(&path).unwrap()), None);
            // The clock of a file system has ticks.
            while Source::now(&path).unwrap().difference(&before).is_none() {
                change();
            }
            assert_eq!(Source::now(&path).unwrap().difference(&kept), Some(expected), "case {nth}");
        }
    }

    #[test]
    fn records_of_earlier_versions_and_parts_are_compared_by_size_and_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        let now = Source::now(&path).unwrap();
        let text = format!("{{\"bytes\":3,\"modified\":{},\"stamp\":[1,2,3,4,5]}}", now.modified);
        let old: Source = serde_json::from_str(&text).unwrap();
        assert!(old.is_same(&now) && now.is_same(&old));
        let part = Source::of_part(&path).unwrap();
        fs::rename(&path, dir.path().join("y")).unwrap();
        assert!(part.is_still(&dir.path().join("y")).unwrap());
    }

    #[test]
    fn a_settled_file_is_not_hashed_again_as_long_as_its_identity_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        let fresh = Source::hashed(&path).unwrap();
        assert!(fresh.is_fresh, "it may be changed again within a tick");
        let begin = |source: &Source| {
            WatchedFile::begin(source, &path, &File::open(&path).unwrap()).unwrap().is_some()
        };
        // The wrong sum shows whether the content was compared.
        let unseen = Source { sha256: Some("none".to_owned()), is_fresh: false, ..fresh.clone() };
        assert!(begin(&unseen) && begin(&fresh) && !begin(&Source { is_fresh: true, ..unseen.clone() }));
        fs::rename(&path, dir.path().join("y")).unwrap();
        fs::write(&path, "abc").unwrap();
        assert!(!begin(&unseen) && begin(&fresh), "another file");
    }

    #[test]
    fn another_device_is_another_file_between_runs_and_not_on_another_machine() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        let now = Source::now(&path).unwrap();
        let identity = now.identity.map(|identity| Identity { device: !identity.device, ..identity });
        let there = Source { identity, ..now.clone() };
        assert_eq!(there.difference(&now), Some(DEVICE));
        assert!(WatchedFile::begin(&there, &path, &File::open(&path).unwrap()).unwrap().is_some());
    }

    #[test]
    fn a_path_that_has_become_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("x"), dir.path().join("link"));
        fs::write(&path, "abc").unwrap();
        symlink(&path, &link).unwrap();
        let (plain, linked) = (Source::now(&path).unwrap(), Source::now(&link).unwrap());
        assert!(plain.is_same(&linked) && linked.open(&link).is_ok());
        assert!(plain.open(&path).is_ok() && plain.open(&link).is_err());
    }
}
