//! Checks that a machine sees the files of the run: a file that the run has just written beside the map
//! output, and the inputs with their sizes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use slackline_task::base::clock::unix_micros;

use crate::fleet::agents::{AgentTiming, Terms};
use crate::fleet::protocol::{Hello, PROGRAM, Proof, VERSION};
use crate::run::error::EngineError;
use crate::spec::job_plan::JobPlan;

/// The prefix of the names of files that machines must see.
const SEEN: &str = "seen-";

/// At most this many inputs are checked, each of another directory.
const INPUTS: usize = 64;

/// Variables for the sort order of texts and the display of times: commands get them as on this machine.
const VARIABLES: [&str; 4] = ["LANG", "LANGUAGE", "TZ", "LC_"];

/// The file that the machines of a run must see; it is removed with this value.
pub(crate) struct VisibilityCheck {
    file: PathBuf,
    terms: Terms,
}

impl VisibilityCheck {
    /// Writes the file into the directory for map output. `owner` is the permanent name of the user of the
    /// machines. The inputs of `jobs` must be visible too, and `pids` is the directory for the processes that
    /// reach machines.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn new(
        data: &Path,
        owner: &str,
        jobs: &[JobPlan],
        pids: PathBuf,
    ) -> Result<Self, EngineError> {
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        let wrong = |problem| EngineError::File { path: data.display().to_string(), problem };
        // What runs that were killed have left.
        for entry in fs::read_dir(&data).map_err(wrong)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SEEN) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let nonce = format!("{}-{}", unix_micros(), std::process::id());
        let file = data.join(format!("{SEEN}{nonce}"));
        let holds = format!("slackline {owner} {nonce}\n");
        fs::write(&file, &holds).map_err(wrong)?;
        let directory = directory();
        let mut proofs = vec![Proof::Holds { path: file.clone(), holds }];
        proofs.extend(inputs(jobs, &directory));
        let is_wanted = |name: &str| {
            VARIABLES.iter().any(|known| name == *known || known.ends_with('_') && name.starts_with(known))
        };
        let hello = Hello {
            v: VERSION,
            program: PROGRAM.to_owned(),
            owner: owner.to_owned(),
            machine: String::new(),
            directory,
            proofs,
            env: std::env::vars().filter(|(name, _)| is_wanted(name)).collect(),
        };
        let terms = Terms { hello, pids, pace: AgentTiming::default() };
        Ok(Self { file, terms })
    }

    /// What agents are given.
    pub(crate) fn terms(&self) -> Terms {
        self.terms.clone()
    }
}

impl Drop for VisibilityCheck {
    fn drop(&mut self) {
        // One that stays is removed by the next session.
        let _ = fs::remove_file(&self.file);
    }
}

/// Inputs that there are, one of each directory.
fn inputs(jobs: &[JobPlan], directory: &Path) -> Vec<Proof> {
    let mut directories = BTreeSet::new();
    let all = jobs.iter().flat_map(|job| &job.inputs.sources);
    let first = all.filter(|(path, _)| directories.insert(path.parent()));
    let proof = |path: &PathBuf, bytes| Proof::Bytes { path: directory.join(path), bytes };
    first.take(INPUTS).map(|(path, source)| proof(path, source.bytes)).collect()
}

/// The directory of the run, by the name by which its user knows it: on other machines links may lead
/// elsewhere.
pub(crate) fn directory() -> PathBuf {
    let real = std::env::current_dir().unwrap_or_default();
    let is_it = |path: &PathBuf| {
        let [one, other] = [fs::metadata(path), fs::metadata(&real)];
        path.is_absolute()
            && one.ok().zip(other.ok()).is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
    };
    std::env::var_os("PWD").map(PathBuf::from).filter(is_it).unwrap_or(real)
}
