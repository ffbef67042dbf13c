//! How the memory of commands with a limit is enforced: by control groups where they can be made, else by
//! resource limits. Each session of a run decides it once and notes it in the state directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::base::regular_file;
use crate::process::cgroups::{Groups, System, look, remove_left};

/// The message where control groups hold it.
const GROUPS: &str = "a control group for each attempt";

/// What holds the memory of a run's commands.
#[derive(Default)]
pub struct Memory {
    /// Control groups, until the engine has them.
    pub groups: Option<Groups>,
    /// What it is, for the user; none if no command has a limit.
    pub said: Option<String>,
}

/// What would hold the memory of commands that have a limit, for the user. Nothing is written.
pub fn would_hold(root: &Path, system: &dyn System) -> String {
    look(root, system).map_or_else(|why| limits(&why), |_| GROUPS.to_owned())
}

/// Removes the control groups that an earlier session has left. Where commands are limited in this one, makes
/// its groups if that can be, and has the file `kept` say which of the two holds. Without the file, groups
/// are not made, and nothing else depends on it.
pub fn hold<S: System + 'static>(is_limited: bool, kept: &Path, root: &Path, system: S) -> Memory {
    let left: Vec<PathBuf> = noted(kept).into_iter().filter(|all| !remove_left(all, &system)).collect();
    let write = |said: &str, groups: &[&Path]| {
        let groups = groups.iter().copied().chain(left.iter().map(PathBuf::as_path));
        let groups = groups.map(|group| format!("{NOTED}{}", group.display()));
        let lines: Vec<String> = [said.to_owned()].into_iter().chain(groups).collect();
        fs::write(kept, lines.join("\n") + "\n")
    };
    if !is_limited {
        // What is still there of another session is to be known to the next one.
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

/// Removes the control groups that a session has left, as far as nothing is in them.
pub fn remove_noted(kept: &Path, system: &dyn System) {
    for all in noted(kept) {
        remove_left(&all, system);
    }
}

/// What begins a line that names a group.
const NOTED: &str = "cgroup ";

/// What is read of a file that names groups, bytes.
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

    /// The file's lines, without the place of the hierarchy.
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
        // It is killed, and the group of the next session has others in it.
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
        // Without limits there is nothing to say.
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
        // Its processes are still there, and those of another process are in the group of the next session.
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
