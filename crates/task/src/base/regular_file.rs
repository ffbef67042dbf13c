//! Opens files that other programs may replace at any moment.
//!
//! A path that named a regular file may name a pipe, a device or a link a moment later. These functions open
//! regular files only, never wait for the writer of a pipe, and read a bounded number of bytes into memory.
//! Links to the open files of a process (`/proc/self/fd/N`) are not followed.

use std::fs::{self, File, FileType, Metadata, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, openat};
use rustix::io::Errno;

use crate::base::activity::during;
use crate::base::clock;

/// The largest state file that the program reads into memory, bytes.
pub const LARGEST: u64 = 4 << 30;

/// Flags of a file that is appended to, and created if it is missing.
const APPEND: OFlags = OFlags::RDWR.union(OFlags::APPEND).union(OFlags::CREATE).union(OFlags::NOFOLLOW);

/// Opens a file to read it. The path may be a link to a regular file.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is not a regular file; any error of the file system.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDONLY, 0)
}

/// Opens a file to read it. The path must not be a link.
///
/// # Errors
/// As [`open`].
pub fn open_no_link(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDONLY | OFlags::NOFOLLOW, 0)
}

/// Opens a file to read it and to append to it, and creates it if it is missing. The path must not be a link.
///
/// # Errors
/// As [`open`].
pub fn open_to_append(path: &Path) -> io::Result<File> {
    opened(path, APPEND, 0o666)
}

/// Opens a file to append to it or to lock it, and creates it if it is missing. No other user can open it
/// from then on: a user who can open a file can hold its lock. The path must not be a link.
///
/// # Errors
/// As [`open`]; the file belongs to another user.
pub fn open_private(path: &Path) -> io::Result<File> {
    let file = opened(path, APPEND, 0o600)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Writes a new file. Removes an existing file of that name first, also a pipe or a link.
///
/// # Errors
/// Any error of the file system.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => File::create_new(path)?.write_all(bytes),
    }
}

/// Reads a file of at most `most` bytes. The path must not be a link.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] if it has more; those of [`open`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    whole(&open_no_link(path)?, most)
}

/// Reads a file from its beginning, at most `most` bytes. A file with a larger reported size is not read at
/// all.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] if it has more; any error of the file.
pub fn whole(mut file: &File, most: u64) -> io::Result<Vec<u8>> {
    file.rewind()?;
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    rest(&mut file, most)
}

/// Reads a text of at most `most` bytes. The path must not be a link.
///
/// # Errors
/// As [`read`]; [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_to_string(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the last `most` bytes of a file. The path must not be a link.
///
/// # Errors
/// As [`open`].
pub fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (open_no_link(path)?, Vec::new());
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the rest of a source, at most `most` bytes. The reported size of a file does not count: it may be
/// wrong.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] if there are more; any error of the source.
pub fn rest(source: &mut impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

fn too_large(most: u64) -> io::Error {
    let problem = format!("the file is larger than the limit of {most} bytes");
    io::Error::new(io::ErrorKind::FileTooLarge, problem)
}

/// The kind of a file, as text, if it is not a regular file.
pub(crate) fn other_kind(kind: FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_fifo() => Some("a named pipe"),
        kind if kind.is_dir() => Some("a directory"),
        kind if kind.is_symlink() => Some("a link"),
        kind if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

fn refuse_others(meta: &Metadata) -> io::Result<()> {
    other_kind(meta.file_type()).map_or(Ok(()), |found| Err(not_regular(found)))
}

fn not_regular(found: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("found {found}, expected a regular file"))
}

fn opened(path: &Path, flags: OFlags, mode: u32) -> io::Result<File> {
    during("open", path.display(), || open_regular(path, flags, mode))
}

fn open_regular(path: &Path, flags: OFlags, mode: u32) -> io::Result<File> {
    // Opening a pipe wakes its writer, and opening a device may start it: both are refused before, and again
    // afterwards.
    let is_direct = flags.contains(OFlags::NOFOLLOW);
    let meta = if is_direct { fs::symlink_metadata(path) } else { fs::metadata(path) };
    match meta {
        Err(e) if e.kind() == io::ErrorKind::NotFound && flags.contains(OFlags::CREATE) => {}
        meta => refuse_others(&meta?)?,
    }
    let file = match guarded(
        path,
        flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY,
        Mode::from_raw_mode(mode),
    ) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) if is_direct => return Err(not_regular("a link")),
        Err(Errno::LOOP) => {
            return Err(not_regular("a link to an open file of a process, or a loop of links"));
        }
        Err(Errno::NXIO) => return Err(not_regular("a socket or a pipe")),
        Err(error) => return Err(error.into()),
    };
    refuse_others(&file.metadata()?)?;
    // A file system in user space may abort reads of such a file.
    fcntl_setfl(&file, flags & OFlags::APPEND)?;
    Ok(file)
}

/// Opens a path without following links to open files of processes.
fn guarded(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    /// A file server holds a lease on the file: the system has asked the server to return it.
    const LEASED: Errno = Errno::AGAIN;
    const TRIES: u32 = 100;
    let mut opened = open_once(path, flags, mode);
    for _ in 1..TRIES {
        if opened.as_ref().err() != Some(&LEASED) {
            break;
        }
        clock::pause(Duration::from_millis(10));
        opened = open_once(path, flags, mode);
    }
    opened
}

fn open_once(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    match rustix::fs::openat2(CWD, path, flags, mode, rustix::fs::ResolveFlags::NO_MAGICLINKS) {
        // Linux before 5.6 does not know the call, and sandboxes of that time refuse it.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return opened,
    }
    openat(CWD, path, flags, mode)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn make_pipe(path: &Path) {
        let (mode, kind) = (Mode::RUSR | Mode::WUSR, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(CWD, path, kind, mode, 0).unwrap();
    }

    /// The errors of each function for a path that is not a regular file.
    fn refusals(path: &Path) -> Vec<String> {
        let errors = [
            open(path).unwrap_err(),
            open_no_link(path).unwrap_err(),
            open_to_append(path).unwrap_err(),
            open_private(path).unwrap_err(),
            read(path, 10).unwrap_err(),
            read_to_string(path, 10).unwrap_err(),
            read_end(path, 10).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == io::ErrorKind::InvalidInput), "{errors:?}");
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pipes_devices_sockets_and_directories_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        make_pipe(&pipe);
        let socket = dir.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, found) in [
            (pipe.as_path(), "a named pipe"),
            (Path::new("/dev/zero"), "a device"),
            (&socket, "a socket"),
            (dir.path(), "a directory"),
        ] {
            let expected = format!("found {found}, expected a regular file");
            assert!(refusals(path).iter().all(|said| *said == expected), "{:?}", refusals(path));
            let link = dir.path().join("link");
            symlink(path, &link).unwrap();
            let said = refusals(&link);
            assert_eq!(said[0], expected);
            assert!(said[1..].iter().all(|said| said == "found a link, expected a regular file"), "{said:?}");
            fs::remove_file(&link).unwrap();
        }
    }

    #[test]
    fn memory_is_bounded_for_files_of_every_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_end(&path, 1 << 20).unwrap(), vec![0; 1 << 20]);
        fs::write(&path, "0123456789").unwrap();
        assert_eq!((read(&path, 10).unwrap().len(), read_end(&path, 3).unwrap()), (10, b"789".to_vec()));
        assert_eq!(read(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_reported_size_is_zero_is_read_to_its_end() {
        let path = Path::new("/proc/self/status");
        assert_eq!(fs::metadata(path).unwrap().len(), 0);
        assert!(read_to_string(&path.canonicalize().unwrap(), 1 << 20).unwrap().lines().count() > 10);
    }

    #[test]
    fn a_file_is_appended_to_and_a_new_one_replaces_pipes_and_links() {
        use std::io::Write;

        let dir = tempfile::tempdir().unwrap();
        let [log, pipe, link] = ["log", "pipe", "link"].map(|name| dir.path().join(name));
        for word in ["one", "two"] {
            open_to_append(&log).unwrap().write_all(word.as_bytes()).unwrap();
        }
        assert_eq!(read_to_string(&log, 10).unwrap(), "onetwo");
        make_pipe(&pipe);
        symlink(&log, &link).unwrap();
        for path in [&pipe, &link, &log] {
            write_new(path, b"new").unwrap();
            assert_eq!(read(path, 3).unwrap(), b"new");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn open_files_of_a_process_are_not_reached_through_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "text").unwrap();
        let (file, directory) = (File::open(&path).unwrap(), File::open(dir.path()).unwrap());
        let number = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
        let [through, names] = ["through", "names"].map(|name| dir.path().join(name));
        symlink(number(&file), &through).unwrap();
        symlink(number(&directory), &names).unwrap();
        for path in [through.as_path(), &names.join("file"), Path::new(&number(&file))] {
            assert_eq!(fs::read(path).unwrap(), b"text");
            let error = open(path).unwrap_err();
            assert!(error.to_string().contains("a link to an open file of a process"), "{error}");
        }
        // A link to a file is as good as the file if links are allowed.
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(open(&link).is_ok() && open_no_link(&link).is_err());
    }
}
