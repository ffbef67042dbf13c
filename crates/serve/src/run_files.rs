//! State directories of runs, and whose they are. Where they are is root's alone where root has started the service, so that only it can
//! have made them, and nobody can put something else in their place; what is in them is their owner's to decide.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use slackline_local::run_as::{Acting, act, owner_of};

use crate::rights::NotKnown;
use slackline_local::{RunAs, theirs};

/// Has this thread act as the owner of a state directory while it reads or writes there. Where there is none nothing is done.
///
/// # Errors
/// It is no directory; the system refuses it.
pub(crate) fn act_as_owner(state: &Path) -> io::Result<Acting> {
    match owner_of(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => act(None),
        owner => act(owner?.as_ref()),
    }
}

/// Makes the state directory of a run where it is missing, as that of a user.
///
/// # Errors
/// It is somebody else's, which stays so; it cannot be made now, or they do not reach it; with what was expected.
pub(crate) fn make(state: &Path, user: &RunAs) -> Result<(), NotKnown> {
    let told = |error: io::Error| now(format!("{}: cannot be made: {error}", state.display()));
    if let Some(root) = state.ancestors().nth(3) {
        refuse_shared(root).map_err(|problem| NotKnown { problem, is_final: true })?;
    }
    // Others may pass, to what is theirs, and see nothing.
    for above in state.ancestors().skip(1).take(2).collect::<Vec<_>>().into_iter().rev() {
        fs::create_dir_all(above).map_err(told)?;
        fs::set_permissions(above, Permissions::from_mode(0o711)).map_err(told)?;
    }
    match fs::create_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(told)?,
    }
    let found = fs::symlink_metadata(state).map_err(told)?;
    if found.is_dir() && found.uid() == 0 {
        // It was made just now, here or before the service was killed.
        fs::set_permissions(state, Permissions::from_mode(0o700)).map_err(told)?;
        chown(state, Some(user.uid()), Some(user.gid())).map_err(told)?;
    }
    refuse_others(state, user.uid())?;
    let _acting = act(Some(user)).map_err(|error| now(error.to_string()))?;
    fs::read_dir(state).map(drop).map_err(|error| {
        now(format!(
            "{}: {} cannot reach it ({error}), expected that everybody may pass the directories above (chmod o+x)",
            state.display(),
            user.name()
        ))
    })
}

/// Refuses a state directory of somebody else.
///
/// # Errors
/// Whose it is, and whose it should be.
pub(crate) fn refuse_others(state: &Path, uid: u32) -> Result<(), NotKnown> {
    let found = match fs::symlink_metadata(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| now(format!("{}: {error}", state.display())))?,
    };
    if found.is_dir() && found.uid() == uid {
        return Ok(());
    }
    let found = found.uid();
    let problem =
        format!("{}: found it to be of user {found}, expected of user {uid}: move it away", state.display());
    Err(NotKnown { problem, is_final: true })
}

/// What may be otherwise the next time.
fn now(problem: String) -> NotKnown {
    NotKnown { problem, is_final: false }
}

/// Removes a state directory that nobody needs: what is in it as its owner, and then it. What cannot be removed stays.
pub(crate) fn remove(state: &Path) {
    // Its owner may not pass the directories above.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(state, flags, Mode::empty()) else { return };
    {
        let Ok(_acting) = act_as_owner(state) else { return };
        let _ = theirs::empty(&directory);
    }
    let _ = fs::remove_dir(state);
}

/// Refuses a directory in which others than root may put something, or in place of which.
///
/// # Errors
/// Which directory they may write to.
pub(crate) fn refuse_shared(directory: &Path) -> Result<(), String> {
    for (k, above) in directory.ancestors().enumerate() {
        let found = fs::metadata(above).map_err(|error| format!("{}: {error}", above.display()))?;
        let is_kept = found.mode() & 0o022 == 0 || k > 0 && found.mode() & 0o1000 != 0;
        if found.uid() != 0 || !is_kept {
            return Err(format!(
                "{}: found {}, to which others than root may write, expected root's alone",
                directory.display(),
                above.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_state_directory_is_its_users_and_goes_as_them() {
        if !slackline_local::run_as::is_root() {
            eprintln!("SKIPPED: not root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let state = dir.path().join("users/anna/night");
        let anna = RunAs::new(54_321, 54_322, []);
        make(&state, &anna).unwrap();
        make(&state, &anna).unwrap();
        let found = fs::metadata(&state).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (54_321, 54_322, 0o700));
        let refused = make(&state, &RunAs::new(54_331, 54_332, [])).unwrap_err();
        assert!(
            refused.is_final && refused.problem.contains("of user 54321, expected of user 54331"),
            "{refused:?}"
        );
        assert!(refuse_others(&state, 0).is_err() && refuse_others(&dir.path().join("none"), 0).is_ok());
        // What root keeps elsewhere stays, whatever leads there.
        let kept = dir.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        symlink(&kept, state.join("link")).unwrap();
        fs::create_dir(state.join("below")).unwrap();
        chown(state.join("below"), Some(54_321), None).unwrap();
        symlink(&kept, state.join("below/link")).unwrap();
        // Wherever it is.
        let gone = dir.path().join("gone");
        fs::create_dir(&gone).unwrap();
        fs::set_permissions(&gone, Permissions::from_mode(0o700)).unwrap();
        fs::rename(&state, gone.join("0")).unwrap();
        remove(&gone.join("0"));
        assert!(!gone.join("0").exists() && kept.join("file").exists());
        make(&state, &anna).unwrap();
        // Where they may not pass they are told.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        let refused = make(&state, &anna).unwrap_err();
        assert!(!refused.is_final && refused.problem.contains("cannot reach it"), "{refused:?}");
        assert!(refuse_shared(&state).is_err() && refuse_shared(dir.path()).is_ok());
        // What stands in the way now may be gone the next time.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        fs::remove_dir_all(dir.path().join("users")).unwrap();
        fs::write(dir.path().join("users"), "").unwrap();
        assert!(!make(&state, &anna).unwrap_err().is_final);
        // Nothing is made where others may put something else in its place.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let refused = make(&state, &anna).unwrap_err();
        assert!(
            refused.is_final && refused.problem.contains("to which others than root may write"),
            "{refused:?}"
        );
    }
}
