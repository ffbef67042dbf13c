//! As whom flows run: all as the user of the service or, where root has started it, each as the user who has submitted it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use slackline::run::HistoryStore;
use slackline_local::RunAs;

use crate::place::Place;
use crate::record::Wanted;
use crate::run_files::refuse_shared;
use crate::users::{NoUser, Users, group};
use crate::who::RunsAs;

/// As whom flows run.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    kind: Kind,
    /// As whom flows run of those who are no user of this machine, and whose token says nothing.
    others: Option<String>,
    users: Arc<Users>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// All as the user of the service.
    #[default]
    Service,
    /// Each as who has submitted it: root has started the service.
    Submitter,
    /// The same where the engine, of that name, can be root alone.
    Root(String),
}

/// Why it is not known as whom something runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotKnown {
    /// What was found, and what was expected.
    pub problem: String,
    /// Whether that stays so, whoever starts the service.
    pub is_final: bool,
}

impl Rights {
    /// Those of a service that root has started, on an engine of that name. Flows of those who are no user of this machine run as
    /// `others`, if that is said, and are refused otherwise.
    pub fn of_root(engine: &str, others: Option<String>) -> Self {
        let kind = if engine == "local" { Kind::Submitter } else { Kind::Root(engine.to_owned()) };
        Self { kind, others, users: Arc::default() }
    }

    /// Whether root has started the service, so that flows run as who has submitted them.
    pub fn are_of_root(&self) -> bool {
        self.kind != Kind::Service
    }

    /// Sees to it that the state directory of a service that root has started is root's alone, and that others may no more than pass, to
    /// what is theirs.
    ///
    /// # Errors
    /// Others may write there, or put something else in its place; whatever the file system says.
    pub fn prepare(&self, place: &Place) -> Result<(), String> {
        if !self.are_of_root() {
            return Ok(());
        }
        refuse_shared(place.root())?;
        let private = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode))
                .map_err(|error| format!("{}: {error}", path.display()))
        };
        for directory in [place.flows(), place.engine(), place.all_gone()] {
            fs::create_dir_all(&directory)
                .map_err(|error| format!("{}: cannot be made: {error}", directory.display()))?;
            private(&directory, 0o700)?;
        }
        HistoryStore::new(&place.history()).map_err(|error| error.to_string())?;
        private(&place.history(), 0o600)
    }

    /// The users of this machine.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// As whom flows run of a user of this machine.
    pub fn of_user(&self, uid: u32, name: &str) -> RunsAs {
        match &self.kind {
            Kind::Service => RunsAs::Service,
            _ if uid == 0 => RunsAs::Root,
            Kind::Root(engine) => RunsAs::Nobody(format!(
                "found a submission of {name} to a service that root has started with --engine {engine}, on which all flows run \
                 as root, expected one of root: a service with a user of its own takes it"
            )),
            // It is the name of a directory.
            Kind::Submitter
                if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0', '\n']) =>
            {
                RunsAs::Nobody(format!(
                    "found a user {name:?}, expected a name that can be that of a directory"
                ))
            }
            Kind::Submitter => RunsAs::User { uid, name: name.to_owned() },
        }
    }

    /// As whom flows run of somebody who is no user of this machine: whose token says a user, or nothing.
    pub fn of_other(&self, says: Option<&str>) -> RunsAs {
        let Some(name) = says.or(self.others.as_deref()) else {
            return match self.kind {
                Kind::Service => RunsAs::Service,
                _ => RunsAs::Nobody(
                    "found somebody who is no user of this machine, and a service that root has started, expected to be told as whom \
                     their flows run: by a token of `slackline token --add NAME --role ROLE --run-as USER`, or by `slackline serve \
                     --run-as USER`"
                        .to_owned(),
                ),
            };
        };
        let Some(uid) = self.users.number(name) else {
            return RunsAs::Nobody(format!(
                "found no user {name} on this machine, as whom their flows are to run"
            ));
        };
        match self.kind {
            Kind::Service if uid == own() => RunsAs::Service,
            Kind::Service => RunsAs::Nobody(format!(
                "found a token whose flows run as {name}, expected a service that root has started, or a token without --run-as"
            )),
            _ => self.of_user(uid, name),
        }
    }

    /// As whom a submission runs; none for this process's user.
    ///
    /// # Errors
    /// It is not known, or this process cannot be that user.
    pub fn of(&self, wanted: &Wanted) -> Result<Option<RunAs>, NotKnown> {
        let later = |problem| NotKnown { problem, is_final: false };
        match (&self.kind, wanted.run_as) {
            (Kind::Service, None) | (Kind::Submitter | Kind::Root(_), Some(0)) => Ok(None),
            (Kind::Service, Some(uid)) if uid == own() => Ok(None),
            (Kind::Submitter, Some(uid)) => self.users.account(uid).map(Some).map_err(|why| NotKnown {
                is_final: matches!(why, NoUser::Missing(_)),
                problem: why.to_string(),
            }),
            (Kind::Service | Kind::Root(_), Some(uid)) => Err(later(format!(
                "found a submission that runs as user {uid}, expected a service that root has started with --engine local"
            ))),
            // Of a service that was started so before flows ran as who submits them.
            (Kind::Submitter | Kind::Root(_), None) if wanted.user == self.users.name(0) => Ok(None),
            // It must not become root's because the service has.
            (Kind::Submitter | Kind::Root(_), None) => Err(NotKnown {
                problem: format!(
                    "found a submission of {} that was made when the service had another user, expected that it is submitted again",
                    wanted.user
                ),
                is_final: true,
            }),
        }
    }
}

/// Who could put something else in the place of a directory of this process's user: the first directory on the way to it, or it itself, to
/// which others may write, and what that means. The group of this user alone, which has their number or name, is not looked at.
pub fn shared(directory: &Path) -> Option<String> {
    let uid = own();
    directory.ancestors().enumerate().find_map(|(k, above)| {
        let found = fs::metadata(above).ok()?;
        // In a directory such as /tmp files of others cannot be replaced.
        let is_kept = k > 0 && found.mode() & 0o1000 != 0;
        let by_others = || {
            let mode = found.mode();
            mode & 0o002 != 0 || mode & 0o020 != 0 && !is_own_group(found.gid(), uid)
        };
        let at = above.display();
        let (who, advice) = match found.uid() {
            // Whoever it is of may write there again, whatever is forbidden now.
            owner if owner != uid && owner != 0 => {
                (format!("user {owner}"), "--state says another place".to_owned())
            }
            // That of root is not this user's to change.
            owner if !is_kept && by_others() => {
                let advice = if owner == uid || uid == 0 {
                    format!("`chmod go-w {at}` forbids it, or --state says another place")
                } else {
                    "--state says another place".to_owned()
                };
                ("others".to_owned(), advice)
            }
            _ => return None,
        };
        let directory = directory.display();
        Some(format!(
            "{directory}: {who} may write to {at}, and could so have the service run what they like; {advice}"
        ))
    })
}

/// Whether a group is that of a user alone, as systems make one with each user: by its number, or by its name. A user's first group may
/// be everybody's.
fn is_own_group(gid: u32, uid: u32) -> bool {
    gid == uid || group(&Users::default().name(uid)) == Ok(gid)
}

/// The number of the user of this process.
pub fn own() -> u32 {
    rustix::process::getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Submit;

    fn wanted(user: &str, run_as: Option<u32>) -> Wanted {
        let (submit, name) = (Submit::default(), "night".to_owned());
        Wanted { submit, name, user: user.to_owned(), since: 0, recurrence: None, run_as, due: None }
    }

    #[test]
    fn where_root_has_started_it_everybody_runs_as_themselves_and_nobody_as_root() {
        let rights = Rights::of_root("local", None);
        let anna = RunsAs::User { uid: 1_001, name: "anna".into() };
        assert_eq!(rights.of_user(1_001, "anna"), anna);
        assert_eq!((anna.own_name("night"), anna.uid()), ("anna/night".into(), Some(1_001)));
        assert_eq!(rights.of_user(0, "root"), RunsAs::Root);
        assert!(matches!(rights.of_user(5, "../x"), RunsAs::Nobody(_)));
        assert!(matches!(rights.of_other(None), RunsAs::Nobody(why) if why.contains("--run-as")));
        assert!(matches!(rights.of_other(Some("no such user")), RunsAs::Nobody(_)));
        assert_eq!(rights.of_other(Some("root")), RunsAs::Root);
        assert_eq!(Rights::of_root("local", Some("root".into())).of_other(None), RunsAs::Root);
        // What was submitted to a service with a user of its own does not become root's.
        assert!(rights.of(&wanted("anna", None)).unwrap_err().is_final);
        assert_eq!(rights.of(&wanted("root", None)), Ok(None));
        assert_eq!(rights.of(&wanted("ops", Some(0))), Ok(None));
        let gone = rights.of(&wanted("anna", Some(4_000_000_000))).unwrap_err();
        assert!(gone.is_final && gone.problem.contains("4000000000"), "{}", gone.problem);
    }

    #[test]
    fn a_state_directory_of_root_is_roots_alone() {
        use std::os::unix::fs::{MetadataExt, chown};
        if own() != 0 {
            eprintln!("SKIPPED: not root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let place = Place::new(dir.path().join("state"));
        fs::create_dir(place.root()).unwrap();
        for (uid, open) in [(54_321, 0o700), (0, 0o770), (0, 0o1777)] {
            chown(place.root(), Some(uid), None).unwrap();
            fs::set_permissions(place.root(), Permissions::from_mode(open)).unwrap();
            let refused = Rights::of_root("local", None).prepare(&place).unwrap_err();
            assert!(refused.contains("to which others than root may write"), "{refused}");
            assert!(!place.flows().exists());
            Rights::default().prepare(&place).unwrap();
        }
        fs::set_permissions(place.root(), Permissions::from_mode(0o711)).unwrap();
        fs::create_dir(place.flows()).unwrap();
        for _ in 0..2 {
            Rights::of_root("local", None).prepare(&place).unwrap();
            let modes = [place.flows(), place.engine(), place.all_gone()].map(|path| mode(&path));
            assert_eq!((modes, mode(&place.history())), ([0o700; 3], 0o600));
        }
    }

    #[test]
    fn engines_of_other_machines_are_for_root_alone() {
        let rights = Rights::of_root("ssh", None);
        assert!(matches!(rights.of_user(1_001, "anna"), RunsAs::Nobody(why) if why.contains("--engine ssh")));
        assert_eq!(rights.of_user(0, "root"), RunsAs::Root);
        assert!(!rights.of(&wanted("anna", Some(1_001))).unwrap_err().is_final);
    }

    #[test]
    fn directories_to_which_others_may_write_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let (above, state) = (dir.join("above"), dir.join("above/state"));
        fs::create_dir_all(&state).unwrap();
        // What lies above is not this test's.
        let shared =
            |path: &Path| shared(path).filter(|told| told.contains(&format!("write to {}", dir.display())));
        let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(&above, 0o755);
        set(&state, 0o755);
        assert_eq!(shared(&state), None);
        set(&above, 0o777);
        let told = shared(&state).unwrap();
        assert!(told.contains(&format!("others may write to {}, and", above.display())), "{told}");
        assert!(told.contains(&format!("`chmod go-w {}`", above.display())), "{told}");
        // Only its own files can somebody replace there.
        set(&above, 0o1777);
        assert_eq!(shared(&state), None);
        set(&state, 0o1777);
        assert!(shared(&state).unwrap().contains(&format!("write to {}, and", state.display())));
    }

    #[test]
    fn a_group_is_a_users_own_by_its_number_or_name() {
        assert!(is_own_group(54_321, 54_321));
        assert!(is_own_group(0, 0));
        // The first group of users may be everybody's.
        assert!(!is_own_group(0, 54_321));
        assert!(!is_own_group(100, 54_321));
    }

    #[test]
    fn where_a_directory_is_of_somebody_else_another_place_is_the_advice() {
        if own() != 0 {
            eprintln!("SKIPPED: not root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(54_321), None).unwrap();
        let told = shared(dir.path()).unwrap();
        assert!(
            told.contains("user 54321 may write") && told.ends_with("--state says another place"),
            "{told}"
        );
        assert!(!told.contains("chmod"), "{told}");
    }

    #[test]
    fn a_service_with_a_user_of_its_own_is_nobody_else() {
        let rights = Rights::default();
        assert_eq!(
            (rights.of_user(1_001, "anna"), rights.of_other(None)),
            (RunsAs::Service, RunsAs::Service)
        );
        assert_eq!(rights.of(&wanted("anna", None)), Ok(None));
        assert!(!rights.of(&wanted("anna", Some(4_000_000_000))).unwrap_err().is_final);
    }
}
