//! One name for all names of a file, to compare outputs, inputs and state directories.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The names of directories without links, each looked up once.
#[derive(Default)]
pub(crate) struct RealNames(RefCell<BTreeMap<PathBuf, PathBuf>>);

impl RealNames {
    /// The result of [`plain`]. One system call for a file of a known directory.
    pub(crate) fn of(&self, path: &Path) -> PathBuf {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_indirect = absolute.components().any(|part| part == Component::ParentDir);
        let Some((parent, name)) = absolute.parent().zip(absolute.file_name()) else {
            return plain(&absolute);
        };
        if is_indirect || absolute.is_symlink() {
            return plain(&absolute);
        }
        let mut known = self.0.borrow_mut();
        known.entry(parent.to_owned()).or_insert_with(|| plain(parent)).join(name)
    }
}

/// One name for all names of a file: absolute, without links as far as it exists, and without `..`.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = absolute.ancestors().find_map(|there| Some((there, std::fs::canonicalize(there).ok()?)));
    let (mut plain, rest) = match &real {
        Some((there, real)) => (real.clone(), absolute.strip_prefix(there).unwrap_or(&absolute)),
        None => (PathBuf::new(), absolute.as_path()),
    };
    for part in rest.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_name_that_is_looked_up_once_is_the_name_that_is_looked_up_each_time() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/file"), "x").unwrap();
        symlink("a/b", dir.path().join("link")).unwrap();
        symlink("nowhere", dir.path().join("a/dangling")).unwrap();
        let words = ["a", "b", "link", "dangling", "file", "new", "..", "."];
        let names = RealNames::default();
        let n = words.len();
        // All paths of three words, each twice.
        for k in (0..n.pow(3)).chain(0..n.pow(3)) {
            let path = [k, k / n, k / n / n].map(|k| words[k % n]).iter().collect::<PathBuf>();
            for path in [dir.path().join(&path), path] {
                assert_eq!(names.of(&path), plain(&path), "{}", path.display());
            }
        }
        assert_eq!(names.of(Path::new("/")), plain(Path::new("/")));
    }
}
