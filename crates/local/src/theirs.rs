//! Files that the user as whom this thread [acts](crate::run_as) may replace at any moment: by a device or a pipe without end, by a
//! file that is larger than memory, by a link.
//!
//! A link to what this process has open (`/proc/self/fd/N`) leads there whoever acts and whatever directories are on the way,
//! as a process may always look into itself. So names below `/proc` that are no paths are not followed, and neither is a link in
//! the place of the file. What is made is its owner's alone to read.
//!
//! A thread that acts as nobody else opens and reads as ever.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

pub use crate::files::empty;
use crate::run_as;

/// The largest file that is read into memory for a user, bytes.
pub(crate) const LARGEST: u64 = 512 << 20;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// To be read; it may be a link.
    Through,
    /// To be read.
    Read,
    /// To be read and appended to; it is made if it is not there.
    Append,
}

/// Opens a file to read it.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] of what is no file; whatever the file system says.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, How::Read)
}

/// The same of a file that its user may well have made a link.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_through(path: &Path) -> io::Result<File> {
    opened(path, How::Through)
}

/// Opens a file to read it and to append to it; it is made if it is not there.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    opened(path, How::Append)
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
    if run_as::current().is_none() {
        file.read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
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
    if run_as::current().is_none() {
        file.read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    // Its size is not believed: it may grow, and there are files that do not say theirs.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let problem = format!("found more than {most} bytes, expected no more");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

fn opened(path: &Path, how: How) -> io::Result<File> {
    if run_as::current().is_none() {
        return match how {
            How::Through | How::Read => File::open(path),
            How::Append => OpenOptions::new().create(true).append(true).read(true).open(path),
        };
    }
    // One that is not to be waited for: nobody may ever write to a pipe.
    let file = guarded(path, how)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file("something else")) }
}

fn no_file(found: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("found {found}, expected a file"))
}

#[cfg(target_os = "linux")]
fn guarded(path: &Path, how: How) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
    use rustix::io::Errno;

    let always = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let (flags, mode) = match how {
        How::Through => (always | OFlags::RDONLY, Mode::empty()),
        How::Read => (always | OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty()),
        How::Append => (
            always | OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW,
            Mode::RUSR | Mode::WUSR,
        ),
    };
    let opened = match openat2(CWD, path, flags, mode, ResolveFlags::NO_MAGICLINKS) {
        // A system from before 2020 refuses no more than a link in the place of the file.
        Err(Errno::NOSYS) => openat(CWD, path, flags, mode),
        opened => opened,
    };
    match opened {
        Ok(file) => Ok(file.into()),
        Err(Errno::LOOP) => Err(no_file("a link")),
        Err(Errno::NXIO | Errno::ISDIR) => Err(no_file("something else")),
        Err(error) => Err(error.into()),
    }
}

/// Elsewhere nobody is acted as.
#[cfg(not(target_os = "linux"))]
fn guarded(_: &Path, _: How) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;
    use crate::run_as::{RunAs, act, is_root};

    /// A directory of somebody, if this is root.
    fn of_somebody() -> Option<(tempfile::TempDir, RunAs)> {
        if !is_root() {
            eprintln!("SKIPPED: not root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        chown(dir.path(), Some(54_321), Some(54_322)).unwrap();
        Some((dir, RunAs::new(54_321, 54_322, [])))
    }

    #[test]
    fn what_has_no_end_is_refused_and_what_is_large_is_bounded() {
        let Some((dir, anna)) = of_somebody() else { return };
        let path = dir.path().join("file");
        let _acting = act(Some(&anna)).unwrap();
        let refused = |expected: io::ErrorKind| {
            for error in [
                open(&path).unwrap_err(),
                open_to_append(&path).unwrap_err(),
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
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        refused(io::ErrorKind::InvalidInput);
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_end(&path, 1 << 20).unwrap(), vec![0; 1 << 20]);
        fs::write(&path, "0123456789").unwrap();
        assert_eq!((read(&path, 10).unwrap().len(), read_end(&path, 3).unwrap()), (10, b"789".to_vec()));
        assert_eq!(read(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // What is made is nobody else's to read.
        fs::remove_file(&path).unwrap();
        open_to_append(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn what_this_process_has_open_is_not_reached_through_its_numbers() {
        let Some((dir, anna)) = of_somebody() else { return };
        // Bob's file, which all may read that reach it, in a directory that nobody else may pass.
        let bobs = tempfile::tempdir().unwrap();
        fs::set_permissions(bobs.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let journal = bobs.path().join("journal.log");
        fs::write(&journal, "of bob").unwrap();
        fs::set_permissions(&journal, fs::Permissions::from_mode(0o644)).unwrap();
        let (open_file, open_dir) = (File::open(&journal).unwrap(), File::open(bobs.path()).unwrap());
        let [file, through, logs] = ["file", "through", "logs"].map(|name| dir.path().join(name));
        let number = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
        let _acting = act(Some(&anna)).unwrap();
        symlink(number(&open_file), &file).unwrap();
        symlink(&file, &through).unwrap();
        symlink(number(&open_dir), &logs).unwrap();
        assert!(fs::read(&journal).is_err());
        // This is what it is about.
        assert_eq!(fs::read(&file).unwrap(), b"of bob");
        for path in [&file, &through, &logs.join("journal.log")] {
            assert!(open(path).is_err() && open_through(path).is_err(), "{}", path.display());
            assert!(read_end(path, 100).is_err() && open_to_append(path).is_err(), "{}", path.display());
        }
        // Other links are as good as files where they make sense.
        let (plain, link) = (dir.path().join("plain"), dir.path().join("link"));
        fs::write(&plain, "hers").unwrap();
        symlink(&plain, &link).unwrap();
        assert!(open(&link).is_err() && open_through(&link).is_ok());
    }
}
