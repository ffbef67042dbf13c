//! Directories whose files are submitted as they appear.
//!
//! A file is moved once it is dealt with, so that what is in the directory is what is to be done. That it is submitted once, even if
//! the service ends between the two, is seen to by a word made of its name and content, for as long as the submission is remembered.
//! One that cannot be moved is known by its inode and time while the service runs, so that nothing but the move is tried again.
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
        let look = Looking::new(dir, owner, front, say);
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
    Unmoved(String, Dealt),
}

impl From<String> for Stays {
    fn from(problem: String) -> Self {
        Self::Now(problem)
    }
}

/// Which file is meant by a name: another one, or one that was written again, is dealt with anew.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    modified: (i64, i64),
}

impl Mark {
    fn of(file: &fs::Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino(), modified: (file.mtime(), file.mtime_nsec()) }
    }
}

/// A file that is dealt with, and where it goes.
#[derive(Clone)]
struct Dealt {
    mark: Mark,
    way: Way,
}

/// Where a file goes that is dealt with.
#[derive(Clone)]
enum Way {
    /// It is submitted; its name there.
    Submitted(String),
    /// It is refused: its name, and why.
    Refused(String, String),
}

/// A file that could not be dealt with or moved away, and is left alone for a while.
#[derive(Default)]
struct Later {
    /// How often it could not.
    tries: u32,
    /// For how many looks it is left alone.
    looks: u32,
    /// What is said, if it could not be moved away.
    unmoved: Option<String>,
    /// What it was dealt with as.
    dealt: Option<Dealt>,
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
    fn new(dir: PathBuf, owner: Option<(u32, u32)>, front: Front, say: Say) -> Self {
        Self { dir, owner, front, say, told: BTreeMap::new(), later: BTreeMap::new(), trouble: None }
    }

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
        let before = self.later.remove(file).unwrap_or_default();
        let (problem, unmoved, dealt) = match stays {
            // It may be the same one again when it can be read.
            Stays::Now(problem) => (problem, None, before.dealt),
            Stays::Unmoved(problem, dealt) => {
                let unmoved = format!("{}: {problem}", file.display());
                (problem, Some(unmoved), Some(dealt))
            }
        };
        self.tell(file, &problem);
        let looks = (1 << before.tries.min(LONGEST)) - 1;
        self.later.insert(file.to_owned(), Later { tries: before.tries + 1, looks, unmoved, dealt });
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

    /// Deals with a file, if it has settled, and moves it away.
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
        let opened = fs::File::from(opened.map_err(|error| error.to_string())?);
        let metadata = opened.metadata().map_err(|error| error.to_string())?;
        let written =
            Duration::new(u64::try_from(metadata.mtime()).unwrap_or(0), metadata.mtime_nsec() as u32);
        // One that is of the future has been set so, and is whole.
        let age = Duration::from_micros(clock::unix_micros()).checked_sub(written);
        if !metadata.is_file() || age.is_some_and(|age| age < SETTLED) {
            return Ok(());
        }
        let mark = Mark::of(&metadata);
        let before = self.later.get(file).and_then(|later| later.dealt.as_ref());
        let way = match before.filter(|before| before.mark == mark) {
            Some(before) => before.way.clone(),
            None => self.deal(file, &opened, &metadata)?,
        };
        self.moved(file, &way).map_err(|problem| Stays::Unmoved(problem, Dealt { mark, way }))
    }

    /// Submits a file, or refuses it, which is said.
    ///
    /// # Errors
    /// It cannot be read or submitted now.
    fn deal(&self, file: &Path, opened: &fs::File, metadata: &fs::Metadata) -> Result<Way, String> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let refused = |why: String| {
            (self.say)(&format!("{}: refused: {why}", file.display()));
            Ok(Way::Refused(name.clone(), why))
        };
        let too_large = || format!("{name}: found more than {} MiB, expected a flow file", LARGEST >> 20);
        if metadata.len() > LARGEST {
            return refused(too_large());
        }
        // It may have grown since.
        let mut bytes = Vec::new();
        opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > LARGEST {
            return refused(too_large());
        }
        let key = key(&name, &bytes, metadata.mtime());
        let Ok(document) = String::from_utf8(bytes) else {
            return refused(format!("{name}: found bytes that are not UTF-8, expected a text"));
        };
        let directory = Some(self.dir.display().to_string());
        let submit =
            Submit { document, file: Some(name.clone()), directory, key: Some(key), ..Submit::default() };
        // A file is its owner's.
        let uid = metadata.uid();
        let of_others = |(owner, _)| owner != 0 && owner != uid || metadata.nlink() > 1;
        if self.owner.is_some_and(of_others) {
            let why = "found a file of somebody else, or one with several names, expected the owner's";
            return refused(why.to_owned());
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
                Ok(Way::Submitted(format!("{number}{name}")))
            }
            Ok(_) => Err("found another answer, expected that it is submitted".to_owned()),
            Err(Refusal { kind: RefusalKind::TooMany(_) | RefusalKind::Unavailable, message }) => {
                Err(message)
            }
            Err(Refusal { message, .. }) => refused(message),
        }
    }

    /// Moves a file to where it goes.
    fn moved(&self, file: &Path, way: &Way) -> Result<(), String> {
        let (place, name) = match way {
            Way::Submitted(name) => (SUBMITTED, name),
            Way::Refused(name, why) => {
                let beside = self.dir.join(REFUSED).join(format!("{name}.why"));
                fs::write(&beside, format!("{why}\n"))
                    .map_err(|error| format!("is refused, and {}: {error}", beside.display()))?;
                (REFUSED, name)
            }
        };
        let to = self.dir.join(place).join(name);
        fs::rename(file, &to)
            .map_err(|error| format!("is {place}, and cannot be moved to {}: {error}", to.display()))
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

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::api::Accepted;
    use crate::front::{Events, Timings};
    use crate::place::Place;
    use crate::rights::Rights;
    use crate::watch::Lately;

    const FLOW: &str = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', run = { command = 'true', output = 'out' } }]\n";

    /// A directory that is looked at when a test says so, and a service that answers each submission by how many came before.
    struct World {
        dir: tempfile::TempDir,
        looking: Looking,
        said: Arc<Mutex<Vec<String>>>,
        submitted: Arc<Mutex<usize>>,
    }

    impl World {
        fn new(answers: impl Fn(usize) -> Result<Answer, Refusal> + Send + 'static) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for place in [SUBMITTED, REFUSED] {
                fs::create_dir(dir.path().join(place)).unwrap();
            }
            let (questions, asked) = mpsc::channel();
            let submitted = Arc::new(Mutex::new(0));
            let counted = submitted.clone();
            // It ends when nobody asks any more.
            std::thread::spawn(move || {
                for message in asked {
                    let Message::Question(question) = message else { continue };
                    let mut counted = counted.lock().unwrap();
                    let _ = question.answer.send(answers(*counted));
                    *counted += 1;
                }
            });
            let front = Front {
                questions,
                events: Events::default(),
                lately: Lately::default(),
                timings: Timings::default(),
                place: Place::new(dir.path().join("state")),
                rights: Rights::default(),
                clock: clock::unix_micros,
            };
            let said: Arc<Mutex<Vec<String>>> = Arc::default();
            let told = said.clone();
            let say: Say = Arc::new(move |line: &str| told.lock().unwrap().push(line.to_owned()));
            let looking = Looking::new(dir.path().to_owned(), None, front, say);
            Self { dir, looking, said, submitted }
        }

        /// Drops a file that has been there for a while, at a second of its own.
        fn drop_file(&self, name: &str, at: u64) {
            let path = self.dir.path().join(name);
            fs::write(&path, FLOW).unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(at)).unwrap();
        }

        fn look(&mut self, times: usize) {
            (0..times).for_each(|_| self.looking.look(&AtomicBool::new(false)));
        }

        /// A file instead of a directory is where nothing can be moved to.
        fn block(&self, place: &str) {
            fs::remove_dir_all(self.dir.path().join(place)).unwrap();
            fs::write(self.dir.path().join(place), "in the way").unwrap();
        }

        fn unblock(&self, place: &str) {
            fs::remove_file(self.dir.path().join(place)).unwrap();
            fs::create_dir(self.dir.path().join(place)).unwrap();
        }

        fn trouble(&self) -> Option<String> {
            self.looking.front.events().trouble()
        }

        fn said(&self, words: &str) -> usize {
            self.said.lock().unwrap().iter().filter(|line| line.contains(words)).count()
        }
    }

    fn accepted(number: usize) -> Answer {
        let (number, name) = (Some(number as u64 + 1), "f".to_owned());
        let message = "submitted".to_owned();
        Answer::Accepted(Box::new(Accepted { number, name, message, next: None, prediction: None }))
    }

    #[test]
    fn what_cannot_be_moved_is_submitted_once_whatever_the_service_remembers() {
        let mut world = World::new(|before| Ok(accepted(before)));
        world.block(SUBMITTED);
        world.drop_file("f.toml", 1_000_000_000);
        world.look(20);
        assert_eq!(*world.submitted.lock().unwrap(), 1);
        assert_eq!(world.said("is submitted, and cannot be moved"), 1);
        assert!(world.trouble().unwrap().contains("f.toml: is submitted, and cannot be moved"));
        // Another file of that name is another one.
        world.drop_file("f.toml", 1_000_000_009);
        world.look(64);
        assert_eq!(*world.submitted.lock().unwrap(), 2);
        world.unblock(SUBMITTED);
        world.look(64);
        assert!(world.dir.path().join("submitted/2-f.toml").exists());
        assert_eq!((*world.submitted.lock().unwrap(), world.trouble()), (2, None));
    }

    #[test]
    fn what_is_refused_after_it_had_to_wait_says_why_and_once() {
        let refusal = |kind, message: &str| Err(Refusal { kind, message: message.to_owned() });
        let mut world = World::new(move |before| match before {
            0 => refusal(RefusalKind::TooMany(60), "too many"),
            _ => refusal(RefusalKind::Invalid, "no good"),
        });
        world.block(REFUSED);
        world.drop_file("f.toml", 1_000_000_000);
        world.look(20);
        assert_eq!((world.said("too many"), world.said("refused: no good")), (1, 1));
        assert_eq!(*world.submitted.lock().unwrap(), 2);
        world.unblock(REFUSED);
        world.look(64);
        let why = fs::read_to_string(world.dir.path().join("refused/f.toml.why")).unwrap();
        assert_eq!((why.as_str(), world.said("refused: no good")), ("no good\n", 1));
        assert_eq!(*world.submitted.lock().unwrap(), 2);
    }
}
