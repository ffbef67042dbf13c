//! Placeholders for the files of another file system, such as HDFS. A placeholder is a file below the state
//! directory with the length, the time and the first bytes of the original. The run finds tasks, compares
//! inputs, locks outputs and publishes jobs through placeholders, as with local files; only containers and
//! the submitter use the originals.
//!
//! The placeholders are made again whenever a flow file is read, so the originals decide: a missing or
//! changed output is found as a local one is, and damaged placeholders do no harm.

mod outputs;
#[cfg(test)]
pub(super) mod tests;

use std::borrow::Cow;
use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use slackline_executor::spec::fault::Fault;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_executor::spec::resolve::without_mirror;
use slackline_model::Draft;
use slackline_task::base::source::Source;

use crate::flows::remote_files::{FileSystem, may_pass};
use crate::submitter::Entry;
use outputs::{OWNER, TEMPORARY};

/// The length of the first bytes, by which formats are recognised.
const HEAD: u64 = 512;

pub(super) struct Placeholders {
    /// Absolute.
    directory: PathBuf,
    /// The directory of the placeholders: `root/hdfs/HOST:PORT/PATH`.
    root: PathBuf,
    /// Locked while the placeholders are in use.
    lock: Mutex<Option<File>>,
    files: Arc<dyn FileSystem>,
    /// The file system of paths without a scheme, such as `hdfs://host:9000`; `None` if it is the local one.
    default: Option<String>,
    /// The start of relative paths on it.
    home: String,
}

impl Placeholders {
    /// Placeholders in an absolute directory.
    pub(super) fn new(directory: PathBuf, files: Arc<dyn FileSystem>, default_fs: &str, user: &str) -> Self {
        let default = (!default_fs.starts_with("file:")).then(|| default_fs.trim_end_matches('/').to_owned());
        let (root, lock) = (directory.join("files"), Mutex::default());
        Self { directory, root, lock, files, default, home: format!("/user/{user}") }
    }

    /// The directory of the placeholders.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A directory of this user on the default file system; `None` if that is the local one.
    pub(super) fn staging(&self, owner: &str) -> Option<String> {
        self.default.as_ref().map(|default| format!("{default}{}/.slackline/{owner}", self.home))
    }

    /// Makes placeholders of all files that a workload reads and writes, and lets the workload name them.
    ///
    /// # Errors
    /// Files that cannot be read, with their place in the workload.
    pub(super) fn make(&self, workload: &mut Draft) -> Result<(), Vec<Fault>> {
        let runs = workload.flows.iter().flat_map(|flow| &flow.jobs).filter_map(|job| job.run.as_ref());
        let names: Vec<&String> = runs.flat_map(|run| run.inputs.iter().chain(&run.output)).collect();
        let is_there = |name: &&String| !name.starts_with('@') && !matches!(self.full_uri(name), Ok(None));
        let before = self.directory.join("before");
        if names.iter().any(is_there) {
            self.begin(&before).map_err(|error| {
                let problem = format!("{}: {error}", self.directory.display());
                vec![Fault { may_pass: true, ..Fault::new("flows", problem) }]
            })?;
        }
        let mut faults = Vec::new();
        for (f, flow) in workload.flows.iter_mut().enumerate() {
            for (j, job) in flow.jobs.iter_mut().enumerate() {
                let Some(run) = &mut job.run else { continue };
                let mut fault = |key: &str, problem: io::Error| {
                    let path = format!("flows[{f}].jobs[{j}].run.{key}");
                    faults.push(Fault {
                        may_pass: may_pass(&problem),
                        ..Fault::new(path, problem.to_string())
                    });
                };
                let inputs = run.inputs.iter_mut().filter(|input| !input.starts_with('@'));
                for input in inputs {
                    match self.input(input, &before) {
                        Ok(there) => *input = there,
                        Err(problem) => fault("inputs", problem),
                    }
                }
                match run.output.as_ref().map(|output| self.output(output, &before)).transpose() {
                    Ok(there) => run.output = there,
                    Err(problem) => fault("output", problem),
                }
            }
        }
        // The next run removes what cannot be removed now.
        let _ = slackline_executor::engine::external_runs::clear(&before);
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Moves earlier placeholders away, if no other process uses them.
    fn begin(&self, before: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_none() {
            let file = File::create(self.directory.join("lock"))?;
            if file.try_lock().is_err() {
                return Err(io::Error::other("another process uses it"));
            }
            *lock = Some(file);
        }
        slackline_executor::engine::external_runs::clear(before)?;
        match fs::rename(&self.root, before) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes placeholders of an input, and gives its local name.
    fn input(&self, input: &str, before: &Path) -> io::Result<String> {
        let Some(uri) = self.full_uri(input)? else { return Ok(local(input).into_owned()) };
        let is_pattern = uri.contains(['*', '?', '[']);
        let exact = self.files.stat(&uri)?;
        if let Some(entry) = &exact {
            self.add_tree(entry, before)?;
            // A file whose name looks like a pattern must be its only match: see
            // `slackline_task::input::pattern::Pattern`.
            if !is_pattern {
                return Ok(self.place(&entry.path).display().to_string());
            }
        }
        let here = self.place(&uri);
        if !is_pattern {
            return Ok(here.display().to_string());
        }
        if uri.contains("**") || uri.contains("[!") {
            return Err(io::Error::other(format!(
                "found the pattern {input}, expected one without ** and [!"
            )));
        }
        let exact = exact.map(|entry| entry.path);
        for entry in self.files.list(&uri.replace('{', "\\{"))? {
            if exact.as_ref() != Some(&entry.path) {
                self.add_tree(&entry, before)?;
            }
        }
        // Only the part that the user wrote is a pattern.
        let root = glob_escaped(&self.root.display().to_string());
        let below = here.strip_prefix(&self.root).unwrap_or(&here);
        Ok(format!("{root}/{}", below.display()))
    }

    /// Makes placeholders of an output directory, and gives its local name.
    fn output(&self, output: &str, before: &Path) -> io::Result<String> {
        let Some(uri) = self.full_uri(output)? else { return Ok(local(output).into_owned()) };
        let here = self.place(&uri);
        let entry = self.files.stat(&uri)?;
        match &entry {
            None => {}
            Some(entry) if !entry.directory => self.add_tree(entry, before)?,
            Some(_) => {
                fs::create_dir_all(&here)?;
                for entry in self.files.list(&escaped(&uri))? {
                    match name(&entry.path) {
                        TEMPORARY => self.add_owner(&uri, &here)?,
                        // A killed run tried it beside the directory.
                        name if name.starts_with(TEMPORARY) => {}
                        _ if entry.directory => fs::create_dir_all(self.place(&entry.path))?,
                        _ => self.add_file(&self.place(&entry.path), &entry, before)?,
                    }
                }
            }
        }
        Ok(here.display().to_string())
    }

    fn add_owner(&self, uri: &str, here: &Path) -> io::Result<()> {
        let owner = self.owner(uri)?.unwrap_or_default();
        let directory = here.join(TEMPORARY);
        fs::create_dir_all(directory.join("parts"))?;
        fs::write(directory.join(OWNER), owner)
    }

    /// Makes placeholders of a file, or of all possible inputs below a directory.
    fn add_tree(&self, entry: &Entry, before: &Path) -> io::Result<()> {
        let here = self.place(&entry.path);
        if !entry.directory {
            return self.add_file(&here, entry, before);
        }
        fs::create_dir_all(&here)?;
        let entries = self.files.list(&escaped(&entry.path))?;
        let is_input = |entry: &&Entry| !name(&entry.path).starts_with(['_', '.']);
        entries.iter().filter(is_input).try_for_each(|entry| self.add_tree(entry, before))
    }

    /// Makes the placeholder of a file, or reuses an earlier one of the same file.
    fn add_file(&self, here: &Path, entry: &Entry, before: &Path) -> io::Result<()> {
        if let Some(parent) = here.parent() {
            fs::create_dir_all(parent)?;
        }
        let earlier = here.strip_prefix(&self.root).map(|below| before.join(below)).unwrap_or_default();
        if is_of(&earlier, entry) {
            return fs::rename(earlier, here);
        }
        self.make_placeholder(here, entry)
    }

    /// Makes a placeholder with the length, the time and the first bytes of a file.
    pub(super) fn make_placeholder(&self, here: &Path, entry: &Entry) -> io::Result<()> {
        let head = match entry.length {
            0 => Vec::new(),
            length => self.files.read(&entry.path, length.min(HEAD))?,
        };
        let mut file = File::create(here)?;
        file.write_all(&head)?;
        file.set_len(entry.length)?;
        file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_millis(entry.modified)))
    }

    /// A whole small file.
    pub(super) fn read(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        self.files.read(&entry.path, entry.length)
    }

    /// The matches of a pattern.
    pub(super) fn list(&self, pattern: &str) -> io::Result<Vec<Entry>> {
        self.files.list(pattern)
    }

    /// The whole URI of a name in a workload; `None` for a local file.
    fn full_uri(&self, named: &str) -> io::Result<Option<String>> {
        let wrong = |expected: &str| io::Error::other(format!("found {named}, expected {expected}"));
        let (system, path) = match (scheme(named), &self.default) {
            (Some("file"), _) if local(named).starts_with('/') => return Ok(None),
            (Some("file"), _) => return Err(wrong("file:///PATH")),
            (None, None) => return Ok(None),
            (None, Some(default)) => (default.clone(), named),
            (Some(scheme), default) => {
                let rest = named[scheme.len() + 1..].strip_prefix("//").unwrap_or(&named[scheme.len() + 1..]);
                let (host, path) = rest.split_at(rest.find('/').ok_or_else(|| wrong("a path"))?);
                let is_default = default.as_ref().filter(|_| host.is_empty());
                match is_default.filter(|default| default.starts_with(&format!("{scheme}://"))) {
                    Some(default) => (default.clone(), path),
                    None if host.is_empty() => return Err(wrong(&format!("{scheme}://HOST/PATH"))),
                    None => (format!("{scheme}://{host}"), path),
                }
            }
        };
        let mut plain = PathBuf::from("/");
        for part in Path::new(&self.home).join(path).components() {
            match part {
                Component::Normal(part) => plain.push(part),
                Component::ParentDir => drop(plain.pop()),
                _ => {}
            }
        }
        Ok(Some(format!("{system}{}", plain.display())))
    }

    /// The path of a placeholder.
    fn place(&self, uri: &str) -> PathBuf {
        let (scheme, rest) = uri.split_once("://").unwrap_or(("", uri));
        self.root.join(scheme).join(rest.trim_start_matches('/'))
    }

    /// The URI of a placeholder's original, also of a pattern; `None` for any other path.
    pub(super) fn uri(&self, here: &Path) -> Option<String> {
        let pattern = || here.strip_prefix(glob_escaped(&self.root.display().to_string()));
        let mut parts = here.strip_prefix(&self.root).or_else(|_| pattern()).ok()?.components();
        let scheme = parts.next()?.as_os_str().to_str()?;
        Some(format!("{scheme}://{}", parts.as_path().display()))
    }

    /// The job with the originals in place of their placeholders.
    pub(super) fn with_uris(&self, plan: &JobPlan) -> JobPlan {
        let mut there = plan.clone();
        for split in there.inputs.maps.iter_mut().flatten() {
            if let Some(uri) = self.uri(&split.path) {
                split.source = Source::of_part(&split.path).ok();
                split.path = uri.into();
            }
        }
        there
    }

    /// A text with the names of the originals in place of placeholders.
    pub(super) fn user_text(&self, text: &str) -> String {
        without_mirror(&self.root, text)
    }
}

/// Whether a placeholder fits its original as it is now.
fn is_of(here: &Path, entry: &Entry) -> bool {
    let time = UNIX_EPOCH + Duration::from_millis(entry.modified);
    fs::metadata(here).is_ok_and(|meta| {
        meta.is_file() && meta.len() == entry.length && meta.modified().is_ok_and(|modified| modified == time)
    })
}

/// The scheme of a URI; `None` for a path.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (rest.starts_with('/') && !scheme.is_empty() && scheme.chars().all(is_name)).then_some(scheme)
}

/// A local path without its scheme.
fn local(text: &str) -> Cow<'_, str> {
    let path = text.strip_prefix("file:");
    Cow::Borrowed(path.map_or(text, |path| path.strip_prefix("//").unwrap_or(path)))
}

/// The last name of a path.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path as a pattern of Hadoop that matches only itself.
pub(super) fn escaped(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | '{' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// A path as a pattern of flow files that matches only itself.
fn glob_escaped(path: &str) -> String {
    let escape = |c: char| if matches!(c, '*' | '?' | '[') { format!("[{c}]") } else { c.to_string() };
    path.chars().map(escape).collect()
}
