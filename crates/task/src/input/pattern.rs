//! Patterns of inputs, such as `logs/*/part-*`: the files and directories that match them.
//!
//! `*`, `?` and `[…]` match within one name, `**` matches any number of directories. A pattern is expanded
//! name by name, because two rules hold at any depth. A `.` or `_` at the beginning of a name is matched only
//! by the same character at the beginning of that part of the pattern. A part that is the exact name of an
//! entry must not match other entries.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::base::activity::during;
use crate::base::digest::Stamp;
use crate::base::error::{TaskError, at};

/// The characters that make a text a pattern.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// A path in which names may have wildcards.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
    /// Whether it matches only directories: it ends in `/` or `**`.
    is_directory: bool,
}

/// A part of a pattern between two slashes.
#[derive(Clone, Debug)]
enum Part {
    /// A name without wildcards; in an absolute pattern the first one is `/`.
    Name(String),
    /// A name with wildcards, and its pattern.
    Wild(String, glob::Pattern),
    /// `**`: any number of directories.
    Directories,
}

impl Part {
    fn new(text: &str) -> Result<Self, glob::PatternError> {
        Ok(match text {
            "**" => Self::Directories,
            _ if is_pattern(text) => Self::Wild(text.to_owned(), glob::Pattern::new(text)?),
            _ => Self::Name(text.to_owned()),
        })
    }

    /// Whether a name matches.
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(text) => text == name,
            Self::Wild(text, pattern) => {
                let is_named = !is_hidden(name) || text.chars().next() == name.chars().next();
                text == name || is_named && pattern.matches(name)
            }
            Self::Directories => !is_hidden(name),
        }
    }
}

/// Whether a text has wildcards.
pub fn is_pattern(text: &str) -> bool {
    text.contains(WILDCARDS)
}

/// Whether the name of a file marks it as no input (`_SUCCESS`, `.crc`), as in Hadoop.
fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A text that is not a pattern, such as `[a` or `a**`.
    pub fn new(text: &str) -> Result<Self, TaskError> {
        let root = text.starts_with('/').then(|| Part::Name("/".to_owned()));
        let names = text.split('/').filter(|name| !matches!(*name, "" | ".")).map(Part::new);
        let parts: Result<Vec<Part>, _> = root.into_iter().map(Ok).chain(names).collect();
        let mut parts = parts.map_err(|error| TaskError::Missing {
            pattern: text.to_owned(),
            problem: format!("not a pattern: {error}"),
        })?;
        let mut is_directory = text.ends_with('/');
        // An input directory includes all directories below it.
        while matches!(parts.last(), Some(Part::Directories)) {
            parts.pop();
            is_directory = true;
        }
        Ok(Self { text: text.to_owned(), parts, is_directory })
    }

    /// Whether a path matches; it need not exist.
    pub fn matches(&self, path: &Path) -> bool {
        let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        all_match(&self.parts, &names)
    }

    /// The files and directories that match, by name.
    ///
    /// # Errors
    /// A directory that cannot be read, a dangling link, a part that is the exact name of an entry and
    /// matches other entries.
    pub(crate) fn paths(&self) -> Result<BTreeSet<PathBuf>, TaskError> {
        let mut found = BTreeSet::from([PathBuf::new()]);
        for part in &self.parts {
            found = match part {
                Part::Name(name) => present(only_directories(found)?.iter().map(|path| path.join(name)))?,
                Part::Wild(text, _) => self.expand(part, text, &found)?,
                Part::Directories => {
                    let mut all = BTreeSet::new();
                    for directory in only_directories(found)? {
                        descend(&directory, &mut |path, is_directory| {
                            all.extend(is_directory.then_some(path));
                        })?;
                        all.insert(directory);
                    }
                    all
                }
            };
        }
        if self.is_directory { only_directories(found) } else { Ok(found) }
    }

    /// The entries of directories that a part with wildcards matches.
    fn expand(
        &self,
        part: &Part,
        text: &str,
        directories: &BTreeSet<PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, TaskError> {
        let (mut exact, mut others) = (BTreeSet::new(), BTreeSet::new());
        for directory in directories {
            if !is_directory(directory)? {
                continue;
            }
            for entry in entries(directory)? {
                let (name, path) = (entry.file_name(), directory.join(entry.file_name()));
                if name == text {
                    exact.insert(path);
                } else if part.matches(&name.to_string_lossy()) {
                    others.insert(path);
                }
            }
        }
        match (exact.first(), others.first()) {
            (Some(exact), Some(other)) => Err(self.ambiguous(text, exact, other)),
            (Some(_), None) => Ok(exact),
            (None, _) => Ok(others),
        }
    }

    fn ambiguous(&self, text: &str, exact: &Path, other: &Path) -> TaskError {
        let quoted = self
            .text
            .split('/')
            .map(|part| if part == text { glob::Pattern::escape(part) } else { part.to_owned() });
        TaskError::Job(format!(
            "input {:?}: found {}, whose name is the pattern itself, and {}, which the pattern matches; write {:?} to read the first alone, or rename it",
            self.text,
            exact.display(),
            other.display(),
            quoted.collect::<Vec<_>>().join("/"),
        ))
    }
}

/// A digest of the names, sizes and times of the files that an input names, or a pattern matches; of a directory, of
/// all files below it. `None` if there are none. What cannot be read counts as being there: the run that reads it reports
/// the reason.
pub fn stamp(input: &str) -> Option<u64> {
    let found = if Path::new(input).exists() {
        BTreeSet::from([PathBuf::from(input)])
    } else if is_pattern(input) {
        match Pattern::new(input).ok()?.paths() {
            Ok(found) if found.is_empty() => return None,
            found => found.unwrap_or_default(),
        }
    } else {
        return None;
    };
    // A sum does not depend on the order in which a directory lists its files.
    let mut sum = found.len() as u64;
    let mut add =
        |path: &Path| sum = sum.wrapping_add(Stamp::now(path).map_or(0, |stamp| stamp.digest(path)));
    for path in &found {
        add(path);
        if path.is_dir() {
            let _ = descend_matched(path, &mut |path, _| add(&path));
        }
    }
    Some(sum)
}

fn all_match(parts: &[Part], names: &[&str]) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((Part::Directories, rest)), name) => {
            let matches_rest =
                |(name, more): (&&str, _)| Part::Directories.matches(name) && all_match(parts, more);
            all_match(rest, names) || name.is_some_and(matches_rest)
        }
        (Some((part, rest)), Some((name, more))) => part.matches(name) && all_match(rest, more),
        _ => false,
    }
}

/// Calls `each` with every entry below a directory except hidden names, and whether it is a directory.
/// Follows links.
///
/// # Errors
/// A directory that cannot be read, a dangling link, a link to a directory that contains it.
pub(crate) fn descend(directory: &Path, each: &mut impl FnMut(PathBuf, bool)) -> Result<(), TaskError> {
    descend_from(directory, &mut Vec::new(), each)
}

/// As [`descend`], for a directory that a pattern matched.
pub(crate) fn descend_matched(
    directory: &Path,
    each: &mut impl FnMut(PathBuf, bool),
) -> Result<(), TaskError> {
    let parent = or_here(directory.parent().unwrap_or(directory));
    let open = parent.canonicalize().map_err(at("cannot list", parent))?;
    // The parent of the root is the root.
    let mut open = if directory.parent().is_some() { vec![open] } else { Vec::new() };
    descend_from(directory, &mut open, each)
}

/// `open` has the directories on the way, without links.
fn descend_from(
    directory: &Path,
    open: &mut Vec<PathBuf>,
    each: &mut impl FnMut(PathBuf, bool),
) -> Result<(), TaskError> {
    let real = or_here(directory).canonicalize().map_err(at("cannot list", directory))?;
    if open.iter().any(|open| open.starts_with(&real)) {
        let problem = format!("{} links back to a directory that contains it", directory.display());
        return Err(at("cannot list", directory)(io::Error::other(problem)));
    }
    open.push(real);
    for entry in entries(directory)? {
        let name = entry.file_name();
        if is_hidden(&name.to_string_lossy()) {
            continue;
        }
        let path = directory.join(name);
        let is_directory = match entry.file_type() {
            Ok(kind) if !kind.is_symlink() => kind.is_dir(),
            _ => is_directory(&path)?,
        };
        if is_directory {
            descend_from(&path, open, each)?;
        }
        each(path, is_directory);
    }
    open.pop();
    Ok(())
}

/// The entries of a directory.
fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>, TaskError> {
    let list = || fs::read_dir(or_here(directory)).and_then(Iterator::collect);
    during("list", directory.display(), list).map_err(at("cannot list", directory))
}

/// The paths that exist.
fn present(paths: impl Iterator<Item = PathBuf>) -> Result<BTreeSet<PathBuf>, TaskError> {
    let mut found = BTreeSet::new();
    for path in paths {
        if look(&path)?.is_some() {
            found.insert(path);
        }
    }
    Ok(found)
}

fn only_directories(paths: BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>, TaskError> {
    let mut found = BTreeSet::new();
    for path in paths {
        if is_directory(&path)? {
            found.insert(path);
        }
    }
    Ok(found)
}

pub(crate) fn is_directory(path: &Path) -> Result<bool, TaskError> {
    Ok(look(path)?.is_some_and(|meta| meta.is_dir()))
}

/// The entry at a path, with links followed; `None` if there is none. A dangling link is an error: the run
/// would ignore its files without a message.
fn look(path: &Path) -> Result<Option<fs::Metadata>, TaskError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::metadata(or_here(path)) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) && !path.is_symlink() => Ok(None),
        Err(error) => Err(at("cannot read", path)(error)),
    }
}

/// The directory of the process for the empty path.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_matches_by_its_name_as_the_files_that_are_found_do() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["a/b", "a/.b", "a/_c/b", "_t/b", "c/d/b", "c/[x]", "x", ".h/b"];
        for name in names {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), "x\n").unwrap();
        }
        for (text, expected) in [
            ("*/b", &["a/b"][..]),
            ("**/b", &["a/b", "c/d/b"]),
            ("**/[!c]", &["a", "a/b", "c/d", "c/d/b", "x"]),
            ("_*/b", &["_t/b"]),
            (".*/**/b", &[".h/b"]),
            ("**/_c/b", &["a/_c/b"]),
            ("[_.]?/b", &[]),
            ("?", &["a", "c", "x"]),
            ("c/[x]", &["c/[x]"]),
            ("*/", &["a", "c"]),
            ("c/**", &["c"]),
        ] {
            let pattern = Pattern::new(&format!("{}/{text}", dir.path().display())).unwrap();
            let found = pattern.paths().unwrap();
            let relative: Vec<_> = found.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
            assert_eq!(relative, expected.iter().map(Path::new).collect::<Vec<_>>(), "{text}");
            assert!(found.iter().all(|path| pattern.matches(path)), "{text}");
            let is_found = |name: &&str| found.contains(&dir.path().join(name));
            let is_matched = |name: &&str| pattern.matches(&dir.path().join(name));
            // A name alone does not show whether it names a directory.
            let is_for_directories = text.ends_with('/');
            assert!(
                is_for_directories || names.iter().all(|name| !is_matched(name) || is_found(name)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_stamp_changes_with_each_file_below() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("in/deep")).unwrap();
        fs::write(dir.path().join("in/deep/a"), "x").unwrap();
        let stamp = |name: &str| super::stamp(&format!("{}/{name}", dir.path().display())).unwrap();
        for name in ["in", "*", "in/deep/a", "in/**/a"] {
            let before = stamp(name);
            assert_eq!(stamp(name), before, "{name}");
            let mut file = fs::File::options().append(true).open(dir.path().join("in/deep/a")).unwrap();
            io::Write::write_all(&mut file, b"y").unwrap();
            assert_ne!(stamp(name), before, "{name}");
        }
        let before = stamp("in");
        fs::write(dir.path().join("in/b"), "").unwrap();
        assert_ne!(stamp("in"), before);
    }

    #[test]
    fn an_input_that_cannot_be_inspected_is_left_to_its_reader() {
        let dir = tempfile::tempdir().unwrap();
        let is_there = |name: &str| super::stamp(&format!("{}/{name}", dir.path().display())).is_some();
        assert!(!is_there("*/b") && !is_there("b") && !is_there("[b"));
        fs::create_dir(dir.path().join("_t")).unwrap();
        fs::write(dir.path().join("_t/b"), "").unwrap();
        assert!(!is_there("*/b") && is_there("_t/b") && is_there("_*/b") && is_there(""));
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        assert!(is_there("*/b") && !is_there("link"));
    }
}
