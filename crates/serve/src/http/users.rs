//! The names of the users of this machine, by the user id at the other end of a Unix socket.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use slackline_task::base::clock::{self, ClockReading, Elapsed};

use crate::lock;

/// The time after which a failed lookup is repeated, microseconds.
const RETRY: u64 = 2 * crate::SECOND;

/// The time limit of a lookup by a program.
const PATIENCE: Duration = Duration::from_secs(10);

/// The names of users. Each user is looked up once. A lookup by a program takes up to ten seconds, and no
/// other lookup waits for it.
#[derive(Debug, Default)]
pub struct Users(Mutex<BTreeMap<u32, CachedLookup>>);

/// The time from which a failed lookup may be repeated, and the result.
type CachedLookup = (Elapsed, Result<String, String>);

impl Users {
    /// The name of a user. Returns `uid-NUMBER` for a user without a name, and after a failed lookup.
    pub fn name(&self, uid: u32) -> String {
        self.of(uid, || look_up(uid)).unwrap_or_else(|_| format!("uid-{uid}"))
    }

    fn of(&self, uid: u32, look_up: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
        let known = || lock(&self.0);
        if let Some((again, found)) = known().get(&uid)
            && (found.is_ok() || ClockReading::read().elapsed < *again)
        {
            return found.clone();
        }
        let found = look_up();
        known().insert(uid, (ClockReading::read().elapsed + RETRY, found.clone()));
        found
    }
}

fn look_up(uid: u32) -> Result<String, String> {
    let key = uid.to_string();
    let is_line = |line: &&str| line.split(':').nth(2) == Some(&key);
    let text = match std::fs::read_to_string("/etc/passwd") {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| format!("/etc/passwd: cannot be read: {error}"))?,
    };
    let mut line = text.lines().find(is_line).map(str::to_owned);
    if line.is_none() {
        line = match said("getent", &["passwd", "--", &key], PATIENCE)? {
            LookupResult::Well(text) => text.lines().find(is_line).map(str::to_owned),
            // By its manual, status 2 means that the key was not found.
            LookupResult::Ended(Some(2)) | LookupResult::NoProgram => None,
            LookupResult::Ended(_) => {
                return Err(format!("user {key} cannot be looked up (getent passwd)"));
            }
        };
    }
    let name = line.and_then(|line| Some(line.split_once(':')?.0.to_owned()));
    Ok(name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("uid-{uid}")))
}

/// The result of a lookup program.
#[derive(Debug, PartialEq, Eq)]
enum LookupResult {
    /// Its output.
    Well(String),
    /// It failed with this exit code.
    Ended(Option<i32>),
    /// The program does not exist.
    NoProgram,
}

/// The output of a program that ends within a time limit.
fn said(program: &str, args: &[&str], patience: Duration) -> Result<LookupResult, String> {
    let broken = |error: std::io::Error| format!("{program} cannot be run: {error}");
    let command = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match command {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(LookupResult::NoProgram),
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
                // A child process may still hold the output open, so the reading thread is not joined.
                end(child);
                let problem = format!("{program} timed out after {} s", patience.as_secs());
                return Err(problem);
            }
            _ => {
                clock::pause(STEP);
                waited += STEP;
            }
        }
    };
    if !status.success() {
        return Ok(LookupResult::Ended(status.code()));
    }
    let text = read.join().unwrap_or_else(|_| Err(ErrorKind::Other.into())).map_err(broken)?;
    Ok(LookupResult::Well(text))
}

/// The interval between two checks whether a program has ended.
const STEP: Duration = Duration::from_millis(2);

/// The most output that is read, bytes.
const LONGEST: u64 = 1 << 20;

/// The user id of this process.
pub fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group id of a group name or number.
///
/// # Errors
/// The name is unknown.
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
    found.ok_or_else(|| {
        format!("found no group {name:?} on this machine, expected a name or number of a group")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_directory_does_not_count_as_a_missing_user_and_has_a_time_limit() {
        let short = Duration::from_millis(300);
        assert_eq!(said("sh", &["-c", "echo one"], PATIENCE), Ok(LookupResult::Well("one\n".into())));
        assert_eq!(said("sh", &["-c", "exit 2"], PATIENCE), Ok(LookupResult::Ended(Some(2))));
        assert_eq!(said("no such program", &[], PATIENCE), Ok(LookupResult::NoProgram));
        let began = ClockReading::read().elapsed;
        for endless in ["sleep 60", "sleep 60 & echo", "yes"] {
            let asked = said("sh", &["-c", endless], short);
            assert!(!matches!(asked, Ok(LookupResult::Well(_))), "{endless}: {asked:?}");
        }
        assert!(ClockReading::read().elapsed.since(began) < 30 * crate::SECOND);
        let (users, failed) = (Users::default(), || Err("away".to_owned()));
        let slow = |name: &str| Ok(name.to_owned());
        assert_eq!(users.of(1, failed), failed());
        // Another user is looked up meanwhile.
        let found = users.of(2, || {
            assert_eq!(users.of(3, || slow("three")), slow("three"));
            slow("two")
        });
        assert_eq!((found, users.of(2, || slow("other"))), (slow("two"), slow("two")));
        assert_eq!(users.of(1, || slow("one")), failed(), "for a while");
        users.0.lock().unwrap().get_mut(&1).unwrap().0 = Elapsed::default();
        assert_eq!(users.of(1, || slow("one")), slow("one"));
    }

    #[test]
    fn users_and_groups_are_found_by_number_and_name() {
        let users = Users::default();
        assert_eq!((users.name(0), users.name(0)), ("root".into(), "root".into()));
        assert_eq!(users.name(4_000_000_000), "uid-4000000000");
        assert_eq!((group("root"), group("17")), (Ok(0), Ok(17)));
        assert!(group("no such group").unwrap_err().starts_with("found no group"));
    }
}
