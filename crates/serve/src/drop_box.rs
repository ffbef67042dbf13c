//! Directories whose files are submitted as they appear.
//!
//! A file is moved once it is dealt with, so that what is in the directory is what is to be done. That it is submitted once, even if
//! the service ends between the two, is seen to by a word made of its name and content.
//!
//! Where root has started the service a file runs as its owner, and that has to be somebody who has put it there: a directory
//! counts to which nobody may write but its owner and root, and in it files of its owner, or any in one of root's. Everything there
//! is done as that owner, as names in it may lead anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use slackline_local::clock;
use slackline_local::run_as::{RunAs, act};

use crate::api::Submit;
use crate::core::Message;
use crate::desk::{Answer, Refusal, RefusalKind};
use crate::front::Front;
use crate::http::Say;
use crate::run_files::refuse_shared;
use crate::who::{Role, Who};

/// Time between two looks at a directory.
const EVERY: Duration = Duration::from_secs(1);

/// One that cannot be dealt with is left alone for so many doublings of that at most: about a minute.
const LONGEST: u32 = 6;

/// A file that has changed within this time may still be written.
const SETTLED: Duration = Duration::from_secs(2);

/// The largest file that is submitted, bytes: as large as a request of the API.
const LARGEST: u64 = 16 << 20;

/// Endings of flow files; others are left alone.
const ENDINGS: [&str; 5] = ["toml", "json", "yaml", "yml", "xml"];

/// Where files go that were submitted, and that were refused.
const SUBMITTED: &str = "submitted";
const REFUSED: &str = "refused";

/// A directory that is looked at, until this is dropped.
pub struct DropBox {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DropBox {
    /// Begins to look at a directory.
    ///
    /// # Errors
    /// It is not there, or files in it cannot be moved to where they go.
    pub fn open(dir: &Path, front: Front, say: Say) -> Result<Self, std::io::Error> {
        let named =
            |error: std::io::Error| std::io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
        let is_shared = !front.rights().are_of_root();
        // One that is made here would be one whose name was mistyped.
        if !dir.is_dir() {
            let kind = std::io::ErrorKind::NotFound;
            return Err(named(std::io::Error::new(kind, "found no directory, expected one that is there")));
        }
        let dir = fs::canonicalize(dir).map_err(named)?;
        let owner = if is_shared { None } else { Some(trusted(&dir).map_err(std::io::Error::other)?) };
        {
            let _acting = act(theirs(owner).as_ref())?;
            for place in [SUBMITTED, REFUSED] {
                fs::create_dir_all(dir.join(place)).map_err(named)?;
            }
            try_moves(&dir).map_err(|error| {
                let problem =
                    format!("files in it cannot be moved to {SUBMITTED} and {REFUSED} below it: {error}");
                named(std::io::Error::new(error.kind(), problem))
            })?;
        }
        let (told, later) = (BTreeMap::new(), BTreeMap::new());
        let look = Looking { dir, owner, front, say, told, later, trouble: None };
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread =
            std::thread::Builder::new().name("drop box".to_owned()).spawn(move || look.work(&flag))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for DropBox {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Moves a file of its own as others are to be moved. What cannot be moved would be found again at each look.
fn try_moves(dir: &Path) -> std::io::Result<()> {
    let name = format!(".slackline-{}", std::process::id());
    let mut at = dir.join(&name);
    // One of a process that was killed and had the same number. Nothing is followed or written over.
    let _ = fs::remove_file(&at);
    fs::File::options().write(true).create_new(true).open(&at)?;
    let moved = [SUBMITTED, REFUSED].into_iter().try_for_each(|place| {
        let to = dir.join(place).join(&name);
        fs::rename(&at, &to)?;
        at = to;
        Ok(())
    });
    let removed = fs::remove_file(&at);
    moved.and(removed)
}

/// Why a file stays where it is.
enum Stays {
    /// It cannot be read or submitted now.
    Now(String),
    /// It is dealt with, and cannot be moved away.
    Unmoved(String),
}

impl From<String> for Stays {
    fn from(problem: String) -> Self {
        Self::Now(problem)
    }
}

/// A file that could not be dealt with, and is left alone for a while.
struct Later {
    /// How often it could not.
    tries: u32,
    /// For how many looks it is left alone.
    looks: u32,
    /// What is said, if it could not be moved away.
    unmoved: Option<String>,
}

struct Looking {
    dir: PathBuf,
    /// Whose the directory is, and of which group, where files run as their owner.
    owner: Option<(u32, u32)>,
    front: Front,
    say: Say,
    /// What was said last of a file that could not be dealt with.
    told: BTreeMap<PathBuf, String>,
    /// Those that are left alone for a while.
    later: BTreeMap<PathBuf, Later>,
    /// What is wrong as the service says it.
    trouble: Option<String>,
}

impl Looking {
    fn work(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            self.look(stop);
            let mut waited = Duration::ZERO;
            while waited < EVERY && !stop.load(Ordering::SeqCst) {
                let pause = Duration::from_millis(50);
                clock::pause(pause);
                waited += pause;
            }
        }
    }

    fn look(&mut self, stop: &AtomicBool) {
        if let Some(owner) = self.owner
            && trusted(&self.dir).as_ref() != Ok(&owner)
        {
            let problem = "found it to be another directory, or open to others, expected it as it was when the service started";
            return self.tell(&self.dir.clone(), problem);
        }
        let _acting = match act(theirs(self.owner).as_ref()) {
            Ok(acting) => acting,
            Err(error) => return self.tell(&self.dir.clone(), &error.to_string()),
        };
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) => return self.tell(&self.dir.clone(), &error.to_string()),
        };
        let mut files: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| is_flow_file(path)).collect();
        files.sort();
        self.told.retain(|path, _| path.exists());
        self.later.retain(|path, _| path.exists());
        for file in files {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            if let Some(later) = self.later.get_mut(&file).filter(|later| later.looks > 0) {
                later.looks -= 1;
                continue;
            }
            match self.take(&file) {
                Ok(()) => {
                    self.told.remove(&file);
                    self.later.remove(&file);
                }
                Err(stays) => self.leave(&file, stays),
            }
        }
        self.tell_trouble();
    }

    /// A file stays where it is: that is said once, and the more often it is so, the longer it is left alone.
    fn leave(&mut self, file: &Path, stays: Stays) {
        let (problem, unmoved) = match stays {
            Stays::Now(problem) => (problem, None),
            Stays::Unmoved(problem) => (problem.clone(), Some(format!("{}: {problem}", file.display()))),
        };
        self.tell(file, &problem);
        let tries = self.later.get(file).map_or(0, |later| later.tries);
        let looks = (1 << tries.min(LONGEST)) - 1;
        self.later.insert(file.to_owned(), Later { tries: tries + 1, looks, unmoved });
    }

    /// Has the service say that files cannot be moved away, or that they can again.
    fn tell_trouble(&mut self) {
        let trouble = self.later.values().find_map(|later| later.unmoved.clone());
        if trouble == self.trouble {
            return;
        }
        self.front.events().set_trouble(&self.dir, trouble.clone());
        if let Some(trouble) = trouble.clone() {
            // The service may be about to end.
            let _ = self.front.questions.send(Message::Happened("service", trouble));
        }
        self.trouble = trouble;
    }

    /// Says something of a file, once.
    fn tell(&mut self, file: &Path, problem: &str) {
        if self.told.get(file).is_none_or(|told| told != problem) {
            (self.say)(&format!("{}: {problem}", file.display()));
            self.told.insert(file.to_owned(), problem.to_owned());
        }
    }

    /// Deals with a file, if it has settled.
    ///
    /// # Errors
    /// Why it stays where it is.
    fn take(&self, file: &Path) -> Result<(), Stays> {
        // What is looked at is what is read: neither a link nor a pipe.
        let opened = rustix::fs::open(
            file,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let mut opened = fs::File::from(opened.map_err(|error| error.to_string())?);
        let metadata = opened.metadata().map_err(|error| error.to_string())?;
        let written =
            Duration::new(u64::try_from(metadata.mtime()).unwrap_or(0), metadata.mtime_nsec() as u32);
        // One that is of the future has been set so, and is whole.
        let age = Duration::from_micros(clock::unix_micros()).checked_sub(written);
        if !metadata.is_file() || age.is_some_and(|age| age < SETTLED) {
            return Ok(());
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let too_large = || format!("{name}: found more than {} MiB, expected a flow file", LARGEST >> 20);
        if metadata.len() > LARGEST {
            return self.refuse(file, &name, &too_large());
        }
        // It may have grown since.
        let mut bytes = Vec::new();
        opened.by_ref().take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > LARGEST {
            return self.refuse(file, &name, &too_large());
        }
        let key = key(&name, &bytes, metadata.mtime());
        let Ok(document) = String::from_utf8(bytes) else {
            return self.refuse(
                file,
                &name,
                &format!("{name}: found bytes that are not UTF-8, expected a text"),
            );
        };
        let directory = Some(self.dir.display().to_string());
        let submit =
            Submit { document, file: Some(name.clone()), directory, key: Some(key), ..Submit::default() };
        // A file is its owner's.
        let uid = metadata.uid();
        let of_others = |(owner, _)| owner != 0 && owner != uid || metadata.nlink() > 1;
        if self.owner.is_some_and(of_others) {
            return self.refuse(
                file,
                &name,
                "found a file of somebody else, or one with several names, expected the owner's",
            );
        }
        let rights = self.front.rights();
        // Users are looked up by programs, which are this process's.
        let (user, runs_as) = {
            let _itself = act(None).map_err(|error| error.to_string())?;
            let user =
                if rights.are_of_root() { rights.users().known_name(uid)? } else { rights.users().name(uid) };
            let runs_as = rights.of_user(uid, &user);
            (user, runs_as)
        };
        let who = Who::new(user, Role::Submit).running_as(runs_as);
        let asked = self.front.submission(submit).and_then(|ask| self.front.ask_and_wait(who, ask));
        match asked {
            Ok(Answer::Accepted(accepted)) => {
                let number = accepted.number.map_or_else(String::new, |number| format!("{number}-"));
                self.moved(file, SUBMITTED, &format!("{number}{name}"))
            }
            Ok(_) => Err("found another answer, expected that it is submitted".to_owned().into()),
            Err(Refusal { kind: RefusalKind::TooMany(_) | RefusalKind::Unavailable, message }) => {
                Err(message.into())
            }
            Err(Refusal { message, .. }) => self.refuse(file, &name, &message),
        }
    }

    fn refuse(&self, file: &Path, name: &str, why: &str) -> Result<(), Stays> {
        if !self.later.contains_key(file) {
            (self.say)(&format!("{}: refused: {why}", file.display()));
        }
        let beside = self.dir.join(REFUSED).join(format!("{name}.why"));
        fs::write(&beside, format!("{why}\n"))
            .map_err(|error| Stays::Unmoved(format!("is refused, and {}: {error}", beside.display())))?;
        self.moved(file, REFUSED, name)
    }

    fn moved(&self, file: &Path, place: &str, name: &str) -> Result<(), Stays> {
        let to = self.dir.join(place).join(name);
        fs::rename(file, &to).map_err(|error| {
            Stays::Unmoved(format!("is {place}, and cannot be moved to {}: {error}", to.display()))
        })
    }
}

/// Whoever the files of a directory are read and moved as.
fn theirs(owner: Option<(u32, u32)>) -> Option<RunAs> {
    owner.filter(|(uid, _)| *uid != 0).map(|(uid, gid)| RunAs::new(uid, gid, []))
}

/// Whose a directory is to which nobody else but root may write.
///
/// # Errors
/// Others may, or may put something else in its place, if it is root's.
fn trusted(dir: &Path) -> Result<(u32, u32), String> {
    let found = fs::symlink_metadata(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    if !found.is_dir() || found.mode() & 0o022 != 0 {
        return Err(format!(
            "{}: found a directory that others than its owner may write to, expected one of one user, as flows run as the owner of \
             their file",
            dir.display()
        ));
    }
    if found.uid() == 0 {
        refuse_shared(dir)?;
    }
    Ok((found.uid(), found.gid()))
}

fn is_flow_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    !name.starts_with('.') && ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

/// A word for what a file says at a time.
fn key(name: &str, content: &[u8], modified: i64) -> String {
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    hash.update(modified.to_be_bytes());
    hash.update(content);
    let digest = hash.finalize();
    digest.iter().take(16).fold("file-".to_owned(), |mut word, byte| {
        use std::fmt::Write;
        let _ = write!(word, "{byte:02x}");
        word
    })
}
