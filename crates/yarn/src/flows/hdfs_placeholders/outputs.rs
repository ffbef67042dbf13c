//! Outputs on another file system: who owns their directories, and how parts are published.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use slackline_executor::spec::job_plan::JobPlan;

use crate::clock::{Stopwatch, pause};
use crate::flows::hdfs_placeholders::{HEAD, Placeholders, escaped, is_of, name};
use crate::flows::remote_files::may_pass;
use crate::submitter::Entry;

/// The directory inside an output for unpublished files.
pub(super) const TEMPORARY: &str = "_temporary";

/// The file inside it with the owner of the directory.
pub(super) const OWNER: &str = "owner";

/// The mark of a complete output.
const SUCCESS: &str = "_SUCCESS";

/// Time limit for completing a partly published output, and the pause between two tries.
const INSIST: Duration = Duration::from_secs(30);
const BETWEEN: Duration = Duration::from_millis(250);

impl Placeholders {
    /// The owner of an output directory.
    pub(super) fn owner(&self, output: &str) -> io::Result<Option<Vec<u8>>> {
        let owner = format!("{output}/{TEMPORARY}/{OWNER}");
        match self.files.stat(&owner)? {
            None => Ok(None),
            Some(entry) => self.files.read(&owner, entry.length.min(HEAD)).map(Some),
        }
    }

    /// Fails if an input of a job differs from what the run found or made. O(files).
    ///
    /// # Errors
    /// The first such file; a directory cannot be listed.
    pub(in crate::flows) fn check_inputs(&self, plan: &JobPlan) -> io::Result<()> {
        let paths: BTreeSet<&Path> =
            plan.inputs.maps.iter().flatten().map(|split| split.path.as_path()).collect();
        // One list for all files of a directory.
        let mut listed: (String, BTreeMap<String, Entry>) = Default::default();
        for here in paths {
            let Some(uri) = self.uri(here) else { continue };
            let directory = uri.rsplit_once('/').map_or("", |(directory, _)| directory);
            if listed.0 != directory {
                let entries = self.list(&escaped(&format!("{directory}/")))?;
                let by_path = entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
                listed = (directory.to_owned(), by_path);
            }
            if !listed.1.get(&uri).is_some_and(|entry| is_of(here, entry)) {
                let problem = "it changed after the run found or made it; pass --again to start over";
                return Err(io::Error::other(format!("input {uri}: {problem}")));
            }
        }
        Ok(())
    }

    /// Makes this run the owner of an output directory.
    ///
    /// # Errors
    /// Another run owns it.
    pub(in crate::flows) fn claim(&self, output: &str, owner: &str) -> io::Result<()> {
        let temporary = format!("{output}/{TEMPORARY}");
        match self.owner(output)? {
            Some(found) if found == owner.as_bytes() => return Ok(()),
            Some(_) => return Err(claimed(output)),
            None => {}
        }
        // A rename does not replace an existing directory: the first run to rename its own owns the output.
        let beside = format!("{temporary}.{owner}");
        self.files.write(&format!("{beside}/{OWNER}"), owner.as_bytes())?;
        self.files.rename(&beside, &temporary).or_else(|error| {
            if self.owner(output)?.is_some_and(|found| found == owner.as_bytes()) {
                // The rename happened without an answer.
                return Ok(());
            }
            self.files.delete(&beside)?;
            Err(if self.files.stat(&temporary)?.is_some() { claimed(output) } else { error })
        })
    }

    /// Gives up an output directory, if this run owns it.
    pub(in crate::flows) fn release(&self, output: &str, owner: &str) -> io::Result<()> {
        match self.owner(output)? {
            Some(found) if found == owner.as_bytes() => self.files.delete(&format!("{output}/{TEMPORARY}")),
            _ => Ok(()),
        }
    }

    /// Publishes parts into an output directory, by their paths and new names, with `publish` for the
    /// placeholders. The next run treats a partly published output as missing.
    ///
    /// # Errors
    /// The output differs from its placeholders; any error of the file system.
    pub(in crate::flows) fn publish(
        &self,
        output: &str,
        here: &Path,
        parts: &[(String, String)],
        publish: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let entries = self.files.list(&escaped(output))?;
        let entries: Vec<Entry> =
            entries.into_iter().filter(|entry| !name(&entry.path).starts_with(TEMPORARY)).collect();
        let is_ours = |entry: &&Entry| match name(&entry.path) {
            SUCCESS => true,
            name => is_of(&here.join(name), entry),
        };
        if let Some(entry) = entries.iter().find(|entry| !is_ours(entry)) {
            let name = name(&entry.path);
            let problem =
                format!("found {name}, which no run of this state directory has made or which was changed");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        // Readers treat an output without the mark as missing.
        self.files.delete(&format!("{output}/{SUCCESS}"))?;
        entries.iter().try_for_each(|entry| self.files.delete(&entry.path))?;
        publish()?;
        self.move_parts(output, parts).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Moves parts to their places. A half-done move cannot start over, so it is retried for some time.
    fn move_parts(&self, output: &str, parts: &[(String, String)]) -> io::Result<()> {
        for (from, name) in parts {
            let to = format!("{output}/{name}");
            // A file system may have moved it without an answer.
            let is_done = || -> io::Result<bool> {
                Ok(self.files.stat(from)?.is_none() && self.files.stat(&to)?.is_some())
            };
            insist(|is_again| if is_again && is_done()? { Ok(()) } else { self.files.rename(from, &to) })?;
        }
        insist(|_| self.files.write(&format!("{output}/{SUCCESS}"), b""))?;
        insist(|_| self.files.delete(&format!("{output}/{TEMPORARY}")))
    }
}

/// Retries an action until a file system answers; the argument tells whether it was tried before.
fn insist(mut action: impl FnMut(bool) -> io::Result<()>) -> io::Result<()> {
    let began = Stopwatch::start();
    let mut done = action(false);
    while done.as_ref().is_err_and(may_pass) && began.elapsed() < INSIST {
        pause(BETWEEN);
        done = action(true);
    }
    done
}

fn claimed(output: &str) -> io::Error {
    let problem = format!(
        "output {output}: another run writes to this directory, or can be resumed; give each run its \
         own output directory, or remove {output}/{TEMPORARY} if there is no such run"
    );
    io::Error::new(io::ErrorKind::AlreadyExists, problem)
}
