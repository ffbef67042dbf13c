//! The users of this machine by their numbers, as the other end of a Unix socket is known.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Names of users, looked up once each.
#[derive(Debug, Default)]
pub struct Users(Mutex<BTreeMap<u32, String>>);

impl Users {
    /// The name of a user; `uid-NUMBER` for one that has none.
    pub fn name(&self, uid: u32) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        assert_eq!((group("root"), group("17")), (Ok(0), Ok(17)));
        assert!(group("no such group").unwrap_err().starts_with("found no group"));
    }
}
