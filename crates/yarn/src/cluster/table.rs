//! The table for the plug-in in the ResourceManager: how many containers of an application may run, on which
//! hosts, and whether its ApplicationMaster (AM) has to wait.
//!
//! ```text
//! slackline 1 SEQUENCE EXPIRES_EPOCH_MS
//! application_1700000000000_0001 0 4 -1 node2,node3 *
//! * 0 -1 -1 * *
//! end ROWS
//! ```
//!
//! The columns are `APP|* am_hold map_max reduce_max map_hosts reduce_hosts`; -1 is no cap and `*` any host.
//! A write replaces the whole table by renaming. A writer of the table decides for the cluster, so only its
//! owner may write in its directory. Without a writer the table expires, and the plug-in lets everything run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use slackline_task::base::regular_file;

use crate::clock::unix_millis;
use crate::rest::id::AppId;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hosts {
    #[default]
    Any,
    /// By the names that NodeManagers report. None: no container may run.
    Only(BTreeSet<String>),
}

/// The limits of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Whether its AM has to wait. A running AM is not affected.
    pub hold: bool,
    /// The most maps at once; `None`: no cap. Running maps beyond it finish.
    pub maps: Option<u32>,
    /// The most reduces at once.
    pub reduces: Option<u32>,
    pub map_hosts: Hosts,
    pub reduce_hosts: Hosts,
}

/// `None` is the row of all applications without their own row.
pub type Rows = BTreeMap<Option<AppId>, Row>;

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The path names no file in a directory.
    #[error("{}: this is not the path of a file in a directory", path.display())]
    NoFile { path: PathBuf },
    /// The directory is missing or cannot be read.
    #[error("{}: the directory of the plug-in's table cannot be used: {problem}", directory.display())]
    Directory {
        directory: PathBuf,
        /// The error of the system.
        problem: io::Error,
    },
    /// Other users can write the table.
    #[error(
        "{0}: others can write in the directory of the plug-in's table (its mode is {mode:03o}), and so control the whole cluster; run `chmod go-w {0}`",
        directory.display()
    )]
    Writable { directory: PathBuf, mode: u32 },
    /// Other users can replace the directory of the table.
    #[error(
        "{0}: others can write in this directory above the plug-in's table (its mode is {mode:03o}) and so replace the \
         table, so the plug-in ignores it; run `chmod go-w {0}`, or set `slackline.table` in the ResourceManager's yarn-site.xml to another file",
        above.display()
    )]
    Exchangeable {
        /// The directory above that of the table.
        above: PathBuf,
        mode: u32,
    },
    /// The directory belongs to another user.
    #[error(
        "{}: the directory of the plug-in's table belongs to user {owner}, not to user {user} who runs this; run it as \
         that user, or set `slackline.table` in the ResourceManager's yarn-site.xml to a file in your own directory",
        directory.display()
    )]
    Foreign {
        directory: PathBuf,
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Another process writes the table.
    #[error("{}: another slackline writes the plug-in's table; stop it first", path.display())]
    Busy { path: PathBuf },
    /// The table could not be written.
    #[error("{}: the plug-in's table cannot be written: {problem}", path.display())]
    Write {
        path: PathBuf,
        /// The error of the system.
        problem: io::Error,
    },
    /// A host name that no row can hold.
    #[error("`{host}` cannot be a host in the plug-in's table: a name has no blanks, commas or `*`")]
    Host { host: String },
}

/// The writer of a table. Dropping it removes the table, and everything on the cluster runs as without
/// Slackline.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    /// Locked: only one process writes in it.
    _lock: File,
    sequence: u64,
    valid: Duration,
}

impl Table {
    /// Opens the table at `path`, which may be missing. A written table is valid for `valid`, and has to be
    /// written again before. Sequence numbers continue those of the existing table.
    ///
    /// # Errors
    /// Other users can write in the directory, or another process writes there.
    pub fn open(path: &Path, valid: Duration) -> Result<Self, TableError> {
        let (Some(directory), Some(_)) = (path.parent(), path.file_name()) else {
            return Err(TableError::NoFile { path: path.to_owned() });
        };
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let failed = |problem| TableError::Directory { directory: directory.to_owned(), problem };
        let opened = File::open(directory).map_err(failed)?;
        let about = opened.metadata().map_err(failed)?;
        if !about.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        check_owner(directory, about.uid(), about.mode())?;
        check_parents(&directory.canonicalize().map_err(failed)?)?;
        match opened.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TableError::Busy { path: path.to_owned() }),
            Err(TryLockError::Error(problem)) => return Err(failed(problem)),
        }
        let sequence = sequence_of(path);
        Ok(Self { path: path.to_owned(), _lock: opened, sequence, valid })
    }

    /// Replaces the table, and returns its sequence number.
    ///
    /// # Errors
    /// A host name is invalid, or the file cannot be written; the existing table stays.
    pub fn write(&mut self, rows: &Rows) -> Result<u64, TableError> {
        let sequence = self.sequence + 1;
        let valid = u64::try_from(self.valid.as_millis()).unwrap_or(LARGEST);
        let text = render(sequence, unix_millis().saturating_add(valid).min(LARGEST), rows)?;
        self.replace(&text).map_err(|problem| TableError::Write { path: self.path.clone(), problem })?;
        self.sequence = sequence;
        Ok(sequence)
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        // A killed process may have left a file; a new file certainly belongs to this process.
        if let Err(error) = fs::remove_file(&name)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&name)?;
        // The ResourceManager may run as another user, so the umask must not apply.
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
        file.write_all(text.as_bytes())?;
        fs::rename(&name, &self.path)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // If it cannot be removed, it expires.
        let _ = fs::remove_file(&self.path);
    }
}

/// Refuses a directory in which another user could put a table.
fn check_owner(directory: &Path, owner: u32, mode: u32) -> Result<(), TableError> {
    let user = rustix::process::geteuid().as_raw();
    if owner != user {
        return Err(TableError::Foreign { directory: directory.to_owned(), owner, user });
    }
    if mode & 0o022 != 0 {
        return Err(TableError::Writable { directory: directory.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

/// Refuses a directory, given by its real path, that another user could replace: the plug-in refuses it too.
/// In a directory with the sticky bit, such as /tmp, no other user can.
fn check_parents(directory: &Path) -> Result<(), TableError> {
    for above in directory.ancestors().skip(1) {
        let about = above.metadata();
        let about =
            about.map_err(|problem| TableError::Directory { directory: above.to_owned(), problem })?;
        if about.mode() & 0o022 != 0 && about.mode() & 0o1000 == 0 {
            return Err(TableError::Exchangeable { above: above.to_owned(), mode: about.mode() & 0o7777 });
        }
    }
    Ok(())
}

/// The largest table that is read, in bytes.
const TABLE_MAX: u64 = 1 << 28;

/// The largest number of a table: 18 digits.
const LARGEST: u64 = 999_999_999_999_999_999;

/// The sequence number of the existing table; 0 without a readable one.
fn sequence_of(path: &Path) -> u64 {
    let text = regular_file::read_to_string(path, TABLE_MAX).unwrap_or_default();
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some("slackline"), Some("1"), Some(sequence)) => {
            sequence.parse().ok().filter(|sequence| *sequence < LARGEST).unwrap_or(0)
        }
        _ => 0,
    }
}

/// The text of a table: rows of applications by their numbers, then the row of all others.
fn render(sequence: u64, expires: u64, rows: &Rows) -> Result<String, TableError> {
    let mut text = format!("slackline 1 {sequence} {expires}\n");
    let (others, apps): (Vec<_>, Vec<_>) = rows.iter().partition(|(app, _)| app.is_none());
    for (app, row) in apps.into_iter().chain(others) {
        match app {
            Some(app) => write!(text, "{app}"),
            None => write!(text, "*"),
        }
        .expect("a string takes any text");
        let (maps, map_hosts) = phase(row.maps, &row.map_hosts)?;
        let (reduces, reduce_hosts) = phase(row.reduces, &row.reduce_hosts)?;
        writeln!(text, " {} {maps} {reduces} {map_hosts} {reduce_hosts}", u8::from(row.hold))
            .expect("a string takes any text");
    }
    writeln!(text, "end {}", rows.len()).expect("a string takes any text");
    Ok(text)
}

/// The columns of a phase: a cap, and hosts.
fn phase(max: Option<u32>, hosts: &Hosts) -> Result<(i32, String), TableError> {
    // A cap has 31 bits.
    let cap = max.map_or(-1, |max| i32::try_from(max).unwrap_or(i32::MAX));
    match hosts {
        Hosts::Any => Ok((cap, "*".to_owned())),
        // A list of hosts cannot be empty, so a cap of 0 replaces it.
        Hosts::Only(hosts) if hosts.is_empty() => Ok((0, "*".to_owned())),
        Hosts::Only(hosts) => {
            let unfit = |host: &&String| {
                host.is_empty()
                    || host.chars().any(|c| c.is_whitespace() || c.is_control() || c == ',' || c == '*')
            };
            match hosts.iter().find(unfit) {
                Some(host) => Err(TableError::Host { host: host.clone() }),
                None => Ok((cap, hosts.iter().map(String::as_str).collect::<Vec<_>>().join(","))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(number: u32) -> AppId {
        AppId { cluster: 17, number }
    }

    fn only(hosts: &[&str]) -> Hosts {
        Hosts::Only(hosts.iter().map(|host| (*host).to_owned()).collect())
    }

    fn directory(mode: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        directory
    }

    #[test]
    fn rows_are_in_the_order_of_numbers_and_all_others_last() {
        let rows: Rows = [
            (None, Row::default()),
            (Some(app(10)), Row { hold: true, ..Row::default() }),
            (Some(app(9)), Row { maps: Some(4), map_hosts: only(&["b", "127.0.0.2"]), ..Row::default() }),
            (Some(app(11)), Row { maps: Some(3), map_hosts: only(&[]), reduces: Some(0), ..Row::default() }),
            (Some(app(12)), Row { maps: Some(u32::MAX), ..Row::default() }),
        ]
        .into();
        assert_eq!(
            render(7, 1_700, &rows).unwrap(),
            "slackline 1 7 1700\n\
             application_17_0009 0 4 -1 127.0.0.2,b *\n\
             application_17_0010 1 -1 -1 * *\n\
             application_17_0011 0 0 0 * *\n\
             application_17_0012 0 2147483647 -1 * *\n\
             * 0 -1 -1 * *\n\
             end 5\n"
        );
        assert_eq!(render(1, 0, &Rows::new()).unwrap(), "slackline 1 1 0\nend 0\n");
    }

    #[test]
    fn a_host_that_would_break_a_row_is_refused() {
        for host in ["", "a b", "a,b", "*", "a\n"] {
            let rows: Rows = [(Some(app(1)), Row { reduce_hosts: only(&[host]), ..Row::default() })].into();
            assert!(matches!(render(1, 0, &rows), Err(TableError::Host { .. })), "{host:?}");
        }
    }

    #[test]
    fn sequence_numbers_grow_over_restarts_and_the_table_goes_with_its_writer() {
        let directory = directory(0o755);
        let path = directory.path().join("table");
        fs::write(&path, "slackline 1 41 9\nend 0\n").unwrap();
        // What a killed writer left does not hinder.
        fs::write(directory.path().join("table.new"), "slack").unwrap();
        let before = unix_millis();
        let mut table = Table::open(&path, Duration::from_secs(10)).unwrap();
        assert_eq!(table.write(&Rows::new()).unwrap(), 42);
        assert_eq!(table.write(&Rows::new()).unwrap(), 43);
        let text = fs::read_to_string(&path).unwrap();
        let expires: u64 = text.lines().next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!((before + 10_000..=unix_millis() + 10_000).contains(&expires), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        drop(table);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left");
        let mut forever = Table::open(&path, Duration::MAX).unwrap();
        forever.write(&Rows::new()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "slackline 1 1 999999999999999999\nend 0\n");
    }

    #[test]
    fn a_broken_table_starts_from_zero() {
        let directory = directory(0o700);
        let path = directory.path().join("table");
        for text in ["", "slackline 2 7 9\n", "slackline 1 x", "\u{0}", "slackline 1 18446744073709551615 9"]
        {
            fs::write(&path, text).unwrap();
            assert_eq!(sequence_of(&path), 0, "{text}");
        }
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        for mode in [0o777, 0o775, 0o757, 0o1777] {
            let directory = directory(mode);
            let error = Table::open(&directory.path().join("table"), Duration::from_secs(1)).unwrap_err();
            assert!(matches!(error, TableError::Writable { .. }));
            assert!(error.to_string().contains("chmod go-w"), "{error}");
        }
    }

    #[test]
    fn a_directory_that_others_can_exchange_is_refused() {
        let top = directory(0o755);
        let below = top.path().join("a/b");
        for made in [top.path().join("a"), below.clone()] {
            fs::create_dir(&made).unwrap();
            fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let open = || Table::open(&below.join("table"), Duration::from_secs(1));
        for mode in [0o777, 0o775, 0o757] {
            fs::set_permissions(top.path(), fs::Permissions::from_mode(mode)).unwrap();
            let error = open().unwrap_err();
            assert!(matches!(error, TableError::Exchangeable { .. }), "{error}");
            let real = top.path().canonicalize().unwrap();
            assert!(error.to_string().contains(&format!("chmod go-w {}`", real.display())), "{error}");
        }
        for mode in [0o1777, 0o755] {
            fs::set_permissions(top.path(), fs::Permissions::from_mode(mode)).unwrap();
            open().unwrap();
        }
    }

    #[test]
    fn a_link_is_judged_by_where_it_leads() {
        let (top, open) = (directory(0o777), directory(0o755));
        let below = top.path().join("a");
        fs::create_dir(&below).unwrap();
        fs::set_permissions(&below, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&below, open.path().join("link")).unwrap();
        let error = Table::open(&open.path().join("link/table"), Duration::from_secs(1)).unwrap_err();
        assert!(matches!(error, TableError::Exchangeable { .. }), "{error}");
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let user = rustix::process::geteuid().as_raw();
        let error = check_owner(Path::new("/tables"), user + 1, 0o700).unwrap_err().to_string();
        assert!(
            error.starts_with("/tables: ") && error.contains(&format!("belongs to user {}", user + 1)),
            "{error}"
        );
    }

    #[test]
    fn two_writers_do_not_mix() {
        let directory = directory(0o700);
        let path = directory.path().join("table");
        let first = Table::open(&path, Duration::from_secs(1)).unwrap();
        assert!(matches!(Table::open(&path, Duration::from_secs(1)), Err(TableError::Busy { .. })));
        drop(first);
        Table::open(&path, Duration::from_secs(1)).unwrap();
        assert!(matches!(
            Table::open(Path::new("/"), Duration::from_secs(1)),
            Err(TableError::NoFile { .. })
        ));
        let missing = directory.path().join("no/table");
        let error = Table::open(&missing, Duration::from_secs(1)).unwrap_err();
        assert!(matches!(error, TableError::Directory { .. }));
        // An error printed with its sources has this text once.
        assert_eq!(error.to_string().matches("No such file").count(), 1);
        assert!(std::error::Error::source(&error).is_none());
    }
}
