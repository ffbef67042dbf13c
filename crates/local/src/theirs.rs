//! Files that other processes may replace at any moment: by a device or a pipe without end, by a file that is larger than
//! memory, by a link.
//!
//! Names below `/proc` that are no paths (`/proc/self/fd/N`) are not followed, and neither is a link in the place of the file.

use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
#[cfg(target_os = "linux")]
use rustix::fs::{ResolveFlags, openat2};
use rustix::io::Errno;

/// The largest file that is read into memory, bytes.
pub(crate) const LARGEST: u64 = 512 << 20;

/// Flags of a file that is appended to, and made if it is not there.
const APPEND: OFlags = OFlags::RDWR.union(OFlags::APPEND).union(OFlags::CREATE).union(OFlags::NOFOLLOW);

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// To be read; it may be a link.
    Through,
    /// To be read.
    Read,
    /// To be read and appended to; it is made if it is not there.
    Append,
    /// The same; it is made for its user alone.
    Private,
}

/// Opens a file to read it.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] of what is no file; whatever the file system says.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, How::Read)
}

/// The same of a file that may be a link.
///
/// # Errors
/// As [`open`].
pub fn open_through(path: &Path) -> io::Result<File> {
    opened(path, How::Through)
}

/// Opens a file to read it and to append to it; it is made if it is not there.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    opened(path, How::Append)
}

/// Opens a file to append to it or to lock it; it is made if it is not there. No other user can open it from then on: a user who can
/// open a file can hold its lock.
///
/// # Errors
/// As [`open`], and of a file of another user.
pub fn open_private(path: &Path) -> io::Result<File> {
    let file = opened(path, How::Private)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] of one with more; those of [`open`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    rest(&mut open(path)?, most)
}

/// The same as text.
///
/// # Errors
/// As [`read`], and what is no UTF-8.
pub(crate) fn read_to_string(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the end of a file, at most so many bytes.
///
/// # Errors
/// As [`open`].
pub fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is left to be read of a file, at most so many bytes.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] of one with more; whatever the file system says.
pub fn rest(file: &mut impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Its size is not believed: it may grow, and there are files that do not say theirs.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let problem = format!("found more than {most} bytes, expected no more");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

fn opened(path: &Path, how: How) -> io::Result<File> {
    // One that is not to be waited for: nobody may ever write to a pipe.
    let file = guarded(path, how)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file("something else")) }
}

fn no_file(found: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("found {found}, expected a file"))
}

fn guarded(path: &Path, how: How) -> io::Result<File> {
    let always = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let (flags, mode) = match how {
        How::Through => (OFlags::RDONLY, 0),
        How::Read => (OFlags::RDONLY | OFlags::NOFOLLOW, 0),
        How::Append => (APPEND, 0o666),
        How::Private => (APPEND, 0o600),
    };
    match opened_at(path, always | flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Ok(file.into()),
        Err(Errno::LOOP) => Err(no_file("a link")),
        Err(Errno::NXIO | Errno::ISDIR) => Err(no_file("something else")),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
fn opened_at(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    match openat2(CWD, path, flags, mode, ResolveFlags::NO_MAGICLINKS) {
        // A system from before 2020 refuses no more than a link in the place of the file.
        Err(Errno::NOSYS) => openat(CWD, path, flags, mode),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn opened_at(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    openat(CWD, path, flags, mode)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_what_is_large_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let refused = |expected: io::ErrorKind| {
            for error in [
                open(&path).unwrap_err(),
                open_to_append(&path).unwrap_err(),
                open_private(&path).unwrap_err(),
                read(&path, 10).unwrap_err(),
                read_end(&path, 10).unwrap_err(),
            ] {
                assert_eq!(error.kind(), expected, "{error}");
            }
            fs::remove_file(&path).unwrap();
        };
        symlink("/dev/zero", &path).unwrap();
        assert_eq!(open_through(&path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        refused(io::ErrorKind::InvalidInput);
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        refused(io::ErrorKind::InvalidInput);
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_end(&path, 1 << 20).unwrap(), vec![0; 1 << 20]);
        fs::write(&path, "0123456789").unwrap();
        assert_eq!((read(&path, 10).unwrap().len(), read_end(&path, 3).unwrap()), (10, b"789".to_vec()));
        assert_eq!(read(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn what_this_process_has_open_is_not_reached_through_its_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("journal.log");
        fs::write(&journal, "journal").unwrap();
        let (open_file, open_dir) = (File::open(&journal).unwrap(), File::open(dir.path()).unwrap());
        let [file, through, logs] = ["file", "through", "logs"].map(|name| dir.path().join(name));
        let number = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
        symlink(number(&open_file), &file).unwrap();
        symlink(&file, &through).unwrap();
        symlink(number(&open_dir), &logs).unwrap();
        for path in [&file, &through, &logs.join("journal.log")] {
            assert!(open(path).is_err() && open_through(path).is_err(), "{}", path.display());
            assert!(read_end(path, 100).is_err() && open_to_append(path).is_err(), "{}", path.display());
        }
        // A link to a file is refused where no link is expected.
        let (plain, link) = (dir.path().join("plain"), dir.path().join("link"));
        fs::write(&plain, "text").unwrap();
        symlink(&plain, &link).unwrap();
        assert!(open(&link).is_err() && open_through(&link).is_ok());
    }
}
