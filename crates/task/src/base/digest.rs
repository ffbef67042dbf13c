//! The digest of a task's output: its size and a checksum. The journal records it, so that every later reader
//! can check that the file is the one that the task wrote.

use std::fs::{self, File, Metadata};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::base::regular_file;

/// Bytes of a file that are read at once.
const BLOCK: usize = 1 << 18;

/// The digest of a part file or of the output of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// Size of the file, bytes.
    pub bytes: u64,
    /// XXH3 of 64 bits: of all bytes of a part file; of the partitions of map output, without their index.
    pub sum: u64,
    /// The stamp of the part file when its task had written it. Moving the file changes its stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
}

/// Device, inode number, size, time of modification and time of change of a file. No program can set the last
/// one: a file with the same stamp has the same content, unless the disk itself damages it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp([i64; 7]);

impl Stamp {
    /// The stamp of a regular file.
    ///
    /// # Errors
    /// A missing file.
    pub fn now(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file"));
        }
        Ok(Self::of(&meta))
    }

    fn of(meta: &Metadata) -> Self {
        let [device, number, size] = [meta.dev(), meta.ino(), meta.size()].map(u64::cast_signed);
        Self([device, number, size, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()])
    }

    fn bytes(self) -> u64 {
        self.0[2].cast_unsigned()
    }

    /// A digest of the stamp and the path of its file.
    pub(crate) fn digest(self, path: &Path) -> u64 {
        let mut hash = XxHash3_64::new();
        (path, self.0).hash(&mut hash);
        hash.finish()
    }

    /// Whether it is the stamp of the same file without a change. Machines number the device of a shared file
    /// system differently, so the device does not count.
    fn is_unchanged(self, other: Self) -> bool {
        self.0[1..] == other.0[1..]
    }
}

impl Digest {
    /// The digest of the current content of a file. Reads all of it.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let stamp = Stamp::now(path)?;
        let (bytes, sum) = sum(regular_file::open(path)?)?;
        Ok(Self { bytes, sum, stamp: Some(stamp) })
    }

    /// Compares a file with the written one. Reads the content unless the file has the stamp `known`, with
    /// which it was compared before. Returns the stamp with which the file has the right content.
    ///
    /// # Errors
    /// The difference, as a message for the user.
    pub fn check(&self, path: &Path, known: Option<Stamp>) -> Result<Stamp, String> {
        let name = path.display();
        let before = Stamp::now(path).map_err(|_| format!("its output is gone: found no file {name}"))?;
        if known == Some(before) {
            return Ok(before);
        }
        let (found, wrote) = (before.bytes(), self.bytes);
        if found != wrote {
            return Err(format!(
                "its output is damaged: found {found} bytes in {name}, expected the {wrote} that were written"
            ));
        }
        let now =
            Self::of_file(path).map_err(|error| format!("its output cannot be read: {name}: {error}"))?;
        let is_settled = Stamp::now(path).is_ok_and(|after| after == before);
        if (now.bytes, now.sum) == (self.bytes, self.sum) && is_settled {
            Ok(before)
        } else {
            Err(format!("its output was changed: {name} no longer has the content that was written"))
        }
    }

    /// Whether a file is unchanged since its task has just written it.
    pub fn is_fresh(&self, path: &Path) -> bool {
        let is_same = |now: Stamp| self.stamp.is_some_and(|then| then.is_unchanged(now));
        Stamp::now(path).is_ok_and(is_same)
    }
}

/// The bytes of a file, and their checksum.
fn sum(mut file: impl Read) -> io::Result<(u64, u64)> {
    let (mut hash, mut block, mut bytes) = (XxHash3_64::new(), vec![0; BLOCK], 0);
    loop {
        match file.read(&mut block) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) => return Ok((bytes, hash.finish())),
            read => {
                let read = read?;
                hash.write(&block[..read]);
                bytes += read as u64;
            }
        }
    }
}

/// A file that is being written, with the digest of the bytes so far.
pub(crate) struct DigestWriter {
    file: File,
    hash: XxHash3_64,
    bytes: u64,
}

impl DigestWriter {
    pub(crate) fn new(file: File) -> Self {
        Self { file, hash: XxHash3_64::new(), bytes: 0 }
    }

    /// The digest of the complete file; `durable` waits until it is on the disk.
    pub(crate) fn finish(self, durable: bool) -> io::Result<Digest> {
        let Self { file, hash, bytes } = self;
        // An empty file has no content that a crash could take.
        if durable && bytes > 0 {
            file.sync_all()?;
        }
        let stamp = Some(Stamp::of(&file.metadata()?));
        Ok(Digest { bytes, sum: hash.finish(), stamp })
    }
}

impl Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.write(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;

    use super::*;

    fn written(path: &Path, text: &[u8]) -> Digest {
        let mut out = DigestWriter::new(File::create(path).unwrap());
        for piece in text.chunks(3) {
            out.write_all(piece).unwrap();
        }
        out.finish(false).unwrap()
    }

    #[test]
    fn a_file_is_recognised_by_its_content_and_not_by_its_times() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part");
        let digest = written(&path, b"one two three");
        assert_eq!(Digest::of_file(&path).unwrap(), digest);
        assert!(digest.is_fresh(&path));
        let known = digest.check(&path, None).unwrap();
        fs::write(&path, "one two three").unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(!digest.is_fresh(&path), "it was written again");
        assert_ne!(digest.check(&path, Some(known)).unwrap(), known);
        let copy = dir.path().join("copy");
        fs::copy(&path, &copy).unwrap();
        assert!(digest.check(&copy, None).is_ok(), "another file with the same content");
    }

    #[test]
    fn every_change_of_the_content_is_found_although_size_and_time_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part");
        let digest = written(&path, b"one two three");
        let known = digest.check(&path, None).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        for at in 0..13 {
            let mut text = *b"one two three";
            text[at] ^= 1;
            fs::write(&path, text).unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            file.set_times(FileTimes::new().set_modified(modified)).unwrap();
            let problem = digest.check(&path, Some(known)).unwrap_err();
            assert!(problem.contains("no longer has the content that was written"), "{problem}");
        }
        fs::write(&path, "one").unwrap();
        let problem = digest.check(&path, Some(known)).unwrap_err();
        assert!(problem.contains("found 3 bytes in") && problem.contains("the 13 that"), "{problem}");
        fs::remove_file(&path).unwrap();
        assert!(digest.check(&path, Some(known)).unwrap_err().contains("found no file"));
        fs::create_dir(&path).unwrap();
        assert!(digest.check(&path, Some(known)).unwrap_err().contains("found no file"));
    }
}
