//! The users of this machine by their numbers, as the other end of a Unix socket is known.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use slackline_local::clock;
use slackline_local::run_as::{Account, RunAs};

use crate::Moment;

/// For how long what is known of a user is believed, microseconds: groups may change.
const BELIEVED: u64 = 30 * crate::SECOND;

/// For how long it is believed that somebody cannot be looked up.
const DOUBTED: u64 = 2 * crate::SECOND;

/// How long a program may take that looks somebody up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The users of this machine. Names are looked up once each, what processes of theirs have again after a while. What is looked up by
/// programs takes up to ten seconds, and nobody who is known waits for it meanwhile.
#[derive(Debug, Default)]
pub struct Users {
    names: Known<u32, String>,
    numbers: Known<String, Option<u32>>,
    accounts: Known<u32, RunAs>,
}

/// Why nothing is known of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoUser {
    /// There is none.
    Missing(String),
    /// They could not be looked up now.
    Unasked(String),
}

/// What was found out, and when.
#[derive(Debug)]
struct Known<K, V>(Mutex<BTreeMap<K, Found<V>>>);

type Found<V> = (Moment, Result<V, NoUser>);

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone, V: Clone> Known<K, V> {
    /// What is known of somebody, for so many microseconds; the rest is looked up.
    fn of(&self, key: &K, believed: u64, look_up: impl FnOnce() -> Result<V, NoUser>) -> Result<V, NoUser> {
        let now = clock::unix_micros();
        {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, found)) = known.get(key) {
                let believed = if found.is_ok() { believed } else { DOUBTED };
                if now.saturating_sub(*at) < believed {
                    return found.clone();
                }
            }
        }
        let found = look_up();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.clone(), (clock::unix_micros(), found.clone()));
        found
    }
}

impl Users {
    /// The number of a user, if there is one of that name.
    pub fn number(&self, name: &str) -> Option<u32> {
        let look_up = || {
            let entry = entry(|fields| fields.first() == Some(&name), name)?;
            Ok(entry.and_then(|line| line.split(':').nth(2)?.parse().ok()))
        };
        self.numbers.of(&name.to_owned(), BELIEVED, look_up).ok().flatten()
    }

    /// A user with all that their processes have of them.
    ///
    /// # Errors
    /// There is none of that number; they cannot be looked up now.
    pub fn account(&self, uid: u32) -> Result<RunAs, NoUser> {
        self.accounts.of(&uid, BELIEVED, || account(uid))
    }

    /// The name of a user; `uid-NUMBER` for one that has none, or who cannot be looked up now.
    pub fn name(&self, uid: u32) -> String {
        self.known_name(uid).unwrap_or_else(|_| format!("uid-{uid}"))
    }

    /// The same of one who can be looked up.
    ///
    /// # Errors
    /// Why they cannot be now.
    pub fn known_name(&self, uid: u32) -> Result<String, String> {
        self.names.of(&uid, u64::MAX, || look_up(uid)).map_err(|error| error.to_string())
    }
}

impl std::fmt::Display for NoUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Missing(problem) | Self::Unasked(problem)) = self;
        f.write_str(problem)
    }
}

fn look_up(uid: u32) -> Result<String, NoUser> {
    let key = uid.to_string();
    let line = entry(|fields| fields.get(2) == Some(&key.as_str()), &key)?;
    let name = line.and_then(|line| Some(line.split_once(':')?.0.to_owned()));
    Ok(name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("uid-{uid}")))
}

/// The line of a user in the file of users, or where else this machine knows them from; none if there is none.
fn entry(is_it: impl Fn(&[&str]) -> bool, key: &str) -> Result<Option<String>, NoUser> {
    let is_line = |line: &&str| is_it(&line.split(':').collect::<Vec<_>>());
    let text = match std::fs::read_to_string("/etc/passwd") {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| NoUser::Unasked(format!("/etc/passwd: cannot be read: {error}")))?,
    };
    if let Some(line) = text.lines().find(is_line) {
        return Ok(Some(line.to_owned()));
    }
    let text = match said("getent", &["passwd", "--", key], PATIENCE)? {
        Said::Well(text) => text,
        // By its manual: what was asked for is not there.
        Said::Ended(Some(2)) | Said::NoProgram => return Ok(None),
        Said::Ended(_) => {
            return Err(NoUser::Unasked(format!("the users cannot be asked for {key} (getent passwd)")));
        }
    };
    Ok(text.lines().find(is_line).map(str::to_owned))
}

/// What came of a program.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// What it has said.
    Well(String),
    /// It ended otherwise, with that code.
    Ended(Option<i32>),
    /// There is no such program.
    NoProgram,
}

/// What a program says within a time.
fn said(program: &str, args: &[&str], patience: Duration) -> Result<Said, NoUser> {
    let broken = |error: std::io::Error| NoUser::Unasked(format!("{program} cannot be asked: {error}"));
    let command = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match command {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Said::NoProgram),
        child => child.map_err(broken)?,
    };
    let end = |mut child: Child| {
        let _ = child.kill();
        let _ = child.wait();
    };
    let out = child.stdout.take();
    let read = std::thread::Builder::new().name(program.to_owned()).spawn(move || {
        let mut text = String::new();
        let read = out.map_or(Ok(0), |out| out.take(LONGEST).read_to_string(&mut text));
        read.map(|_| text)
    });
    let read = match read {
        Ok(read) => read,
        Err(error) => {
            end(child);
            return Err(broken(error));
        }
    };
    let mut waited = Duration::ZERO;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) if read.is_finished() => break status,
            Err(error) => {
                end(child);
                return Err(broken(error));
            }
            _ if waited >= patience => {
                // What it has started may still hold its output: nobody waits for that.
                end(child);
                let problem = format!("{program} has not answered within {} s", patience.as_secs());
                return Err(NoUser::Unasked(problem));
            }
            _ => {
                clock::pause(STEP);
                waited += STEP;
            }
        }
    };
    if !status.success() {
        return Ok(Said::Ended(status.code()));
    }
    let text = read.join().unwrap_or_else(|_| Err(ErrorKind::Other.into())).map_err(broken)?;
    Ok(Said::Well(text))
}

/// Time between two looks whether a program has ended.
const STEP: Duration = Duration::from_millis(2);

/// What is read of what a program says, bytes.
const LONGEST: u64 = 1 << 20;

/// A user as this machine knows them.
fn account(uid: u32) -> Result<RunAs, NoUser> {
    let key = uid.to_string();
    let line = entry(|fields| fields.get(2) == Some(&key.as_str()), &key)?;
    let missing = |problem| NoUser::Missing(problem);
    let line =
        line.ok_or_else(|| missing(format!("found no user of the number {uid} on this machine any more")))?;
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, _, gid, _, home, rest @ ..] = fields.as_slice() else {
        return Err(missing(format!("found a line of user {uid} that is none: {line:?}")));
    };
    let gid = gid.parse().map_err(|_| missing(format!("found no group of user {uid}: {line:?}")))?;
    let groups = match said("id", &["-G", "--", name], PATIENCE)? {
        Said::Well(text) => text.split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>().ok(),
        Said::Ended(_) | Said::NoProgram => None,
    };
    let Some(groups) = groups else {
        return Err(NoUser::Unasked(format!("the groups of {name} cannot be found out (id -G {name})")));
    };
    let shell = rest.first().copied().unwrap_or_default();
    let account = Account { name: (*name).to_owned(), home: home.into(), shell: shell.into() };
    Ok(RunAs::new(uid, gid, groups).with_account(account))
}

/// The number of a group, by its name or as a number.
///
/// # Errors
/// There is none of that name.
pub fn group(name: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let mut entries = text.lines().map(|line| line.split(':'));
    let found = entries.find_map(|mut fields| {
        let (known, id) = (fields.next()?, fields.nth(1)?);
        (known == name).then(|| id.parse().ok())?
    });
    found.ok_or_else(|| format!("found no group {name:?} on this machine, expected one, or a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_be_asked_is_not_taken_for_missing_and_nobody_waits_for_it_for_ever() {
        let short = Duration::from_millis(300);
        assert_eq!(said("sh", &["-c", "echo one"], PATIENCE), Ok(Said::Well("one\n".into())));
        assert_eq!(said("sh", &["-c", "exit 2"], PATIENCE), Ok(Said::Ended(Some(2))));
        assert_eq!(said("no such program", &[], PATIENCE), Ok(Said::NoProgram));
        let began = clock::unix_micros();
        for endless in ["sleep 60", "sleep 60 & echo", "yes"] {
            let asked = said("sh", &["-c", endless], short);
            assert!(!matches!(asked, Ok(Said::Well(_))), "{endless}: {asked:?}");
        }
        assert!(clock::unix_micros() - began < 30 * crate::SECOND);
        let unasked = || NoUser::Unasked("away".to_owned());
        let known = Known::<u32, String>::default();
        let slow = |name: &str| Ok(name.to_owned());
        assert_eq!(known.of(&1, BELIEVED, || Err(unasked())), Err(unasked()));
        // Others are looked up while somebody is.
        let found = known.of(&2, BELIEVED, || {
            assert_eq!(known.of(&3, BELIEVED, || slow("three")), slow("three"));
            slow("two")
        });
        assert_eq!((found, known.of(&2, BELIEVED, || slow("other"))), (slow("two"), slow("two")));
        assert_eq!(known.of(&1, BELIEVED, || slow("one")), Err(unasked()), "for a while");
        known.0.lock().unwrap().get_mut(&1).unwrap().0 = 0;
        assert_eq!(known.of(&1, BELIEVED, || slow("one")), slow("one"));
    }

    #[test]
    fn users_and_groups_are_found_by_number_and_name() {
        let users = Users::default();
        assert_eq!((users.name(0), users.name(0)), ("root".into(), "root".into()));
        assert_eq!(users.name(4_000_000_000), "uid-4000000000");
        assert_eq!((users.number("root"), users.number("no such user")), (Some(0), None));
        let root = users.account(0).unwrap();
        assert_eq!((root.uid(), root.gid(), root.name()), (0, 0, "root".to_owned()));
        let missing = users.account(4_000_000_000).unwrap_err();
        assert!(matches!(&missing, NoUser::Missing(why) if why.starts_with("found no user of the number")));
        assert_eq!((group("root"), group("17")), (Ok(0), Ok(17)));
        assert!(group("no such group").unwrap_err().starts_with("found no group"));
    }
}
