//! Enforces the memory limits of commands: by control groups if they can be made, otherwise by resource
//! limits. Each session of a run decides this once and records it in the state directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::base::regular_file;
use crate::process::cgroups::{Groups, System, look, remove_left};

/// The message if control groups enforce it.
const GROUPS: &str = "a control group for each attempt";

/// The enforcement of memory limits in a run.
#[derive(Default)]
pub struct Memory {
    /// Control groups, until the engine takes them.
    pub groups: Option<Groups>,
    /// Its description for the user; `None` if no command has a limit.
    pub said: Option<String>,
}

/// The enforcement that a run would use, as text for the user. Writes nothing.
pub fn would_hold(root: &Path, system: &dyn System) -> String {
    look(root, system).map_or_else(|why| limits(&why), |_| GROUPS.to_owned())
}

/// Removes the control groups of an earlier session. If commands have limits in this session, creates its
/// groups if possible, and writes the kind of enforcement to the file `kept`. Without the file no groups are
/// made; nothing else depends on it.
pub fn hold<S: System + 'static>(is_limited: bool, kept: &Path, root: &Path, system: S) -> Memory {
    let left: Vec<PathBuf> = noted(kept).into_iter().filter(|all| !remove_left(all, &system)).collect();
    let write = |said: &str, groups: &[&Path]| {
        let groups = groups.iter().copied().chain(left.iter().map(PathBuf::as_path));
        let groups = groups.map(|group| format!("{NOTED}{}", group.display()));
        let lines: Vec<String> = [said.to_owned()].into_iter().chain(groups).collect();
        fs::write(kept, lines.join("\n") + "\n")
    };
    if !is_limited {
        // The next session must know groups of earlier sessions that are still there.
        let _ = if left.is_empty() { crate::base::files::remove(kept) } else { write("", &[]) };
        return Memory::default();
    }
    let entered = look(root, &system)
        .and_then(|place| Groups::enter(place, Box::new(system), |all| write(GROUPS, &[all])));
    let (groups, said) = match entered {
        Ok(groups) => (Some(groups), GROUPS.to_owned()),
        Err(why) => {
            let said = limits(&why);
            let _ = write(&said, &[]);
            (None, said)
        }
    };
    Memory { groups, said: Some(said) }
}

/// Removes the empty control groups of a session.
pub fn remove_noted(kept: &Path, system: &dyn System) {
    for all in noted(kept) {
        remove_left(&all, system);
    }
}

/// The prefix of a line that names a group.
const NOTED: &str = "cgroup ";

/// Bytes to read of a file that names groups.
const KEPT_MOST: u64 = 1 << 20;

/// The groups that a file names.
fn noted(kept: &Path) -> Vec<PathBuf> {
    let text = regular_file::read_to_string(kept, KEPT_MOST).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix(NOTED)).map(PathBuf::from).collect()
}

fn limits(why: &str) -> String {
    format!("a resource limit for each process of a command ({why})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::cgroups::tests::Play;

    /// The file's lines, without the path of the simulated hierarchy.
    fn lines(kept: &Path, play: &Play) -> Vec<String> {
        let text = fs::read_to_string(kept).unwrap();
        text.lines().map(|line| line.replace(&play.own().display().to_string(), "OWN")).collect()
    }

    #[test]
    fn the_state_says_what_holds_and_a_resumed_run_removes_what_a_killed_one_left() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let kept = state.path().join("memory");
        let play = Play::new(dir.path());
        let first = hold(true, &kept, dir.path(), play.clone());
        assert_eq!(first.said.as_deref(), Some("a control group for each attempt"));
        let [said, group] = lines(&kept, &play).try_into().unwrap();
        assert_eq!(said, "a control group for each attempt");
        assert!(group.starts_with("cgroup OWN/slackline-"), "{group}");
        // The session is killed, and the group of the next session has other processes in it.
        let all = noted(&kept).remove(0);
        std::mem::forget(first);
        fs::write(all.join("engine/cgroup.procs"), "").unwrap();
        fs::write(play.own().join("cgroup.procs"), "1\n").unwrap();
        assert!(all.exists());
        let second = hold(true, &kept, dir.path(), play.clone());
        assert!(!all.exists() && second.groups.is_none());
        let why =
            "a resource limit for each process of a command (found other processes in the control group ";
        let said = second.said.unwrap();
        assert!(said.starts_with(why), "{said}");
        assert_eq!(would_hold(dir.path(), &play), said);
        assert!(noted(&kept).is_empty());
        assert_eq!(fs::read_to_string(&kept).unwrap(), format!("{said}\n"));
        // Without limits there is no message.
        let third = hold(false, &kept, dir.path(), play.clone());
        assert!(third.said.is_none() && third.groups.is_none() && !kept.exists());
    }

    #[test]
    fn a_group_that_is_still_in_use_is_known_to_the_next_session() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let kept = state.path().join("memory");
        let play = Play::new(dir.path());
        let first = hold(true, &kept, dir.path(), play.clone());
        let all = noted(&kept).remove(0);
        std::mem::forget(first);
        // Its processes are still there, and the group of the next session has processes of another program.
        fs::write(play.own().join("cgroup.procs"), "1\n").unwrap();
        for is_limited in [true, false] {
            assert!(hold(is_limited, &kept, dir.path(), play.clone()).groups.is_none());
            assert_eq!(noted(&kept), std::slice::from_ref(&all));
        }
        fs::write(all.join("engine/cgroup.procs"), "").unwrap();
        remove_noted(&kept, &play);
        assert!(!all.exists());
    }
}
