//! The users of this machine by their numbers, as the other end of a Unix socket is known.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use slackline_local::clock;
use slackline_local::run_as::{Account, RunAs};

use crate::Moment;

/// For how long what is known of a user is believed, microseconds: groups may change.
const BELIEVED: u64 = 30 * crate::SECOND;

/// The users of this machine. Names are looked up once each, what processes of theirs have again after a while.
#[derive(Debug, Default)]
pub struct Users {
    names: Mutex<BTreeMap<u32, String>>,
    accounts: Mutex<BTreeMap<u32, (Moment, RunAs)>>,
}

impl Users {
    /// The number of a user, if there is one of that name.
    pub fn number(&self, name: &str) -> Option<u32> {
        entry(|fields| fields.first() == Some(&name), name)?.split(':').nth(2)?.parse().ok()
    }

    /// A user with all that their processes have of them.
    ///
    /// # Errors
    /// There is none of that number.
    pub fn account(&self, uid: u32) -> Result<RunAs, String> {
        let mut known = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::unix_micros();
        if let Some((_, user)) = known.get(&uid).filter(|(at, _)| now.saturating_sub(*at) < BELIEVED) {
            return Ok(user.clone());
        }
        let user = account(uid)?;
        known.insert(uid, (now, user.clone()));
        Ok(user)
    }

    /// The name of a user; `uid-NUMBER` for one that has none.
    pub fn name(&self, uid: u32) -> String {
        let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(uid).or_insert_with(|| look_up(uid)).clone()
    }
}

/// Users may be known to this machine without standing in its file, which `id` finds out.
fn look_up(uid: u32) -> String {
    let of_file = || named("/etc/passwd", uid);
    let asked = || {
        let output =
            Command::new("id").args(["-nu", &uid.to_string()]).stderr(Stdio::null()).output().ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !name.is_empty()).then_some(name)
    };
    of_file().or_else(asked).unwrap_or_else(|| format!("uid-{uid}"))
}

/// The line of a user in the file of users, or where else this machine knows them from.
fn entry(is_it: impl Fn(&[&str]) -> bool, key: &str) -> Option<String> {
    let is_line = |line: &&str| is_it(&line.split(':').collect::<Vec<_>>());
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_file = || text.lines().find(is_line).map(str::to_owned);
    let asked = || {
        let text = said("getent", &["passwd", "--", key])?;
        text.lines().find(is_line).map(str::to_owned)
    };
    of_file().or_else(asked)
}

/// What a command says, if all is well.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

/// A user as this machine knows them.
fn account(uid: u32) -> Result<RunAs, String> {
    let key = uid.to_string();
    let line = entry(|fields| fields.get(2) == Some(&key.as_str()), &key);
    let line = line.ok_or_else(|| format!("found no user of the number {uid} on this machine any more"))?;
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, _, gid, _, home, rest @ ..] = fields.as_slice() else {
        return Err(format!("found a line of user {uid} that is none: {line:?}"));
    };
    let gid = gid.parse().map_err(|_| format!("found no group of user {uid}: {line:?}"))?;
    let groups =
        said("id", &["-G", "--", name]).map(|text| text.split_whitespace().map(str::parse).collect());
    let Some(Ok(groups)) = groups else {
        return Err(format!("the groups of {name} cannot be found out (id -G {name})"));
    };
    let groups: Vec<u32> = groups;
    let shell = rest.first().copied().unwrap_or_default();
    let account = Account { name: (*name).to_owned(), home: home.into(), shell: shell.into() };
    Ok(RunAs::new(uid, gid, groups).with_account(account))
}

/// The name of a number in a file such as `/etc/passwd`.
fn named(file: &str, number: u32) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut entries = text.lines().map(|line| line.split(':'));
    entries.find_map(|mut fields| {
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(number)).then(|| name.to_owned())
    })
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
    fn users_and_groups_are_found_by_number_and_name() {
        let users = Users::default();
        assert_eq!((users.name(0), users.name(0)), ("root".into(), "root".into()));
        assert_eq!(users.name(4_000_000_000), "uid-4000000000");
        assert_eq!((users.number("root"), users.number("no such user")), (Some(0), None));
        let root = users.account(0).unwrap();
        assert_eq!((root.uid(), root.gid(), root.name()), (0, 0, "root".to_owned()));
        assert!(users.account(4_000_000_000).unwrap_err().starts_with("found no user of the number"));
        assert_eq!((group("root"), group("17")), (Ok(0), Ok(17)));
        assert!(group("no such group").unwrap_err().starts_with("found no group"));
    }
}
