//! Converts inputs to splits: files, directories and patterns, cut by size; small files share a map.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::base::error::{TaskError, at};
use crate::base::regular_file;
use crate::base::source::Source;
use crate::input::pattern::{Pattern, descend, descend_matched, is_directory, is_pattern};
use crate::input::reader::can_be_cut;
use crate::process::spec::Split;

/// Most files of a map, even if they are small.
const FILES_MAX: usize = 1000;
/// The last split of a file may be longer than the others by this factor, so that no tiny one is left
/// (the factor of Hadoop's `FileInputFormat`).
const SLOP: f64 = 1.1;

/// All files of some maps, each as a whole, as the single map of a plain command; without files there is
/// still one map.
pub fn whole_files(maps: Vec<Vec<Split>>) -> Vec<Vec<Split>> {
    let mut files: Vec<Split> = Vec::new();
    for split in maps.into_iter().flatten() {
        let is_known = files.last().is_some_and(|last| last.path == split.path && last.input == split.input);
        if !is_known {
            files.push(Split { offset: 0, length: None, ..split });
        }
    }
    vec![files]
}

/// Cuts inputs into the splits of each map, about `split_bytes` each (at least 1), in the order of the inputs
/// and of names. Small neighbours of one input share a map; compressed files, recognised by their first
/// bytes, are not cut. Each split has the current state of its file, so that its map can check it.
///
/// An input is a file, a directory (with everything below it) or a [`Pattern`] (`dir/*.txt`). Files and
/// directories whose names begin with `_` or `.` are ignored in directories; a pattern matches them if it has
/// that character itself.
///
/// # Errors
///
/// A missing input, a directory without files, a pattern that no file matches.
pub fn of_inputs(inputs: &[String], split_bytes: u64) -> Result<Vec<Vec<Split>>, TaskError> {
    let split_bytes = split_bytes.max(1);
    let mut maps = Vec::new();
    for (input, pattern) in inputs.iter().enumerate() {
        let mut batch = Batch { splits: Vec::new(), bytes: 0 };
        for path in files(pattern)? {
            check_regular(&path)?;
            let source = Source::now(&path).map_err(at("cannot read", &path))?;
            let bytes = source.bytes;
            for split in of_file(&path, &source, input as u32, split_bytes)? {
                batch.add(split, bytes, split_bytes, &mut maps);
            }
        }
        batch.close(&mut maps);
    }
    Ok(maps)
}

/// Splits that will share a map.
struct Batch {
    splits: Vec<Split>,
    bytes: u64,
}

impl Batch {
    fn add(&mut self, split: Split, file_bytes: u64, split_bytes: u64, maps: &mut Vec<Vec<Split>>) {
        let bytes = split.length.unwrap_or(file_bytes);
        if self.bytes + bytes > split_bytes || self.splits.len() >= FILES_MAX {
            self.close(maps);
        }
        self.splits.push(split);
        self.bytes += bytes;
    }

    fn close(&mut self, maps: &mut Vec<Vec<Split>>) {
        if !self.splits.is_empty() {
            maps.push(std::mem::take(&mut self.splits));
        }
        self.bytes = 0;
    }
}

/// The splits of one file. The last one extends to the end of the file, even if the reported size is wrong.
fn of_file(path: &Path, source: &Source, input: u32, split_bytes: u64) -> Result<Vec<Split>, TaskError> {
    let bytes = source.bytes;
    let split = |offset, length| Split {
        path: path.to_owned(),
        offset,
        length,
        input,
        source: Some(source.clone()),
        copy: None,
    };
    if !can_be_cut(path)? {
        return Ok(vec![split(0, None)]);
    }
    let (mut splits, mut offset) = (Vec::new(), 0);
    while (bytes - offset) as f64 > split_bytes as f64 * SLOP {
        splits.push(split(offset, Some(split_bytes)));
        offset += split_bytes;
    }
    splits.push(split(offset, Some(bytes - offset)));
    Ok(splits)
}

/// Refuses an input that is a pipe, a device or a socket: its bytes are gone after one task has read them.
fn check_regular(path: &Path) -> Result<(), TaskError> {
    let meta = fs::metadata(path).map_err(at("cannot read", path))?;
    match regular_file::other_kind(meta.file_type()) {
        None => Ok(()),
        Some(found) => Err(TaskError::Job(format!(
            "input {}: found {found}, expected a regular file: write its content to a file first",
            path.display()
        ))),
    }
}

/// The files of an input, by name, each once.
fn files(input: &str) -> Result<Vec<PathBuf>, TaskError> {
    let missing =
        |problem: &str| TaskError::Missing { pattern: input.to_owned(), problem: problem.to_owned() };
    let (path, mut found) = (Path::new(input), BTreeSet::new());
    let mut add = |path, is_directory: bool| found.extend((!is_directory).then_some(path));
    let pattern = match Pattern::new(input) {
        // A name such as `a[` is not a pattern, and may exist.
        Err(error) if !path.exists() => return Err(error),
        pattern => pattern.ok().filter(|_| is_pattern(input)),
    };
    if let Some(pattern) = pattern {
        for path in pattern.paths()? {
            if is_directory(&path)? {
                descend_matched(&path, &mut add)?;
            } else {
                add(path, false);
            }
        }
        if found.is_empty() {
            return Err(missing("no file matches"));
        }
    } else if path.is_dir() {
        descend(path, &mut add)?;
        if found.is_empty() {
            return Err(missing("the directory holds no input files"));
        }
    } else if path.exists() {
        add(path.to_owned(), false);
    } else {
        return Err(missing("no such file or directory"));
    }
    // An attempt gets its paths as JSON, which has no other names.
    match found.iter().find(|path| path.to_str().is_none()) {
        Some(path) => Err(missing(&format!("found the file name {}, expected one in UTF-8", path.display()))),
        None => Ok(found.into_iter().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_cut_by_size_and_small_ones_share_a_map() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in
            [("a", 10), ("b", 20), ("c", 100), ("d", 90), ("e.gz", 5), ("_SUCCESS", 1), (".x", 1)]
        {
            let mut content = vec![b'\n'; bytes];
            if name == "d" {
                content[..2].copy_from_slice(&[0x1f, 0x8b]);
            }
            fs::write(dir.path().join(name), content).unwrap();
        }
        let maps = of_inputs(&[dir.path().to_str().unwrap().to_owned()], 40).unwrap();
        let shape = maps
            .iter()
            .map(|splits| {
                splits
                    .iter()
                    .map(|s| {
                        (s.path.file_name().unwrap().to_str().unwrap(), s.offset, s.length.unwrap_or(999))
                    })
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>();
        assert_eq!(
            shape,
            [
                vec![("a", 0, 10), ("b", 0, 20)],
                vec![("c", 0, 40)],
                vec![("c", 40, 40)],
                vec![("c", 80, 20)],
                vec![("d", 0, 999)],
                vec![("e.gz", 0, 5)],
            ]
        );
    }

    #[test]
    fn missing_files_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        let problem =
            |name: &str| of_inputs(&[format!("{root}/{name}")], 1).unwrap_err().to_string().replace(root, "");
        assert_eq!(problem("no"), "input \"/no\": no such file or directory");
        assert_eq!(problem("*.txt"), "input \"/*.txt\": no file matches");
        assert_eq!(problem(""), "input \"/\": the directory holds no input files");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_that_lead_up_and_names_that_are_not_text_are_refused() {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        fs::write(dir.path().join("in/x"), "x\n").unwrap();
        symlink("x", dir.path().join("in/y")).unwrap();
        let input = dir.path().join("in").to_str().unwrap().to_owned();
        assert_eq!(files(&input).unwrap().len(), 2);
        symlink("../in", dir.path().join("in/z")).unwrap();
        let error = files(&input).unwrap_err().to_string();
        assert!(error.ends_with("in/z links back to a directory that contains it"), "{error}");
        fs::remove_file(dir.path().join("in/z")).unwrap();
        fs::write(dir.path().join("in").join(std::ffi::OsStr::from_bytes(b"\xff")), "x\n").unwrap();
        let error = files(&input).unwrap_err().to_string();
        assert!(error.ends_with("in/\u{fffd}, expected one in UTF-8"), "{error}");
    }

    #[test]
    fn patterns_take_files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("out/part")).unwrap();
        for name in ["out/part/x", "out/_logs", "out.txt", "two.txt"] {
            fs::write(dir.path().join(name), "x\n").unwrap();
        }
        let found = files(&format!("{}/o*", dir.path().display())).unwrap();
        let names: Vec<_> = found.iter().map(|p| p.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("out/part/x"), Path::new("out.txt")]);
    }
}
