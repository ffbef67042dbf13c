//! A folder that is imported as one workload: the names of its files, which are read one at a time.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use crate::reading::compression::Compression;
use crate::reading::error::TraceError;
use crate::reading::line_reader::LineReader;
use crate::reading::text::{sha256, text};

const FILES_MAX: usize = 1_000_000;

/// How deep folders within it are looked into.
const DEPTH_MAX: usize = 16;

/// Bytes of a file that show its format.
const HEAD: u64 = 4096;

/// A folder and the names of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    name: String,
    root: PathBuf,
    files: Vec<String>,
}

/// Bytes of a file that are read at a time: of most files only the beginning is read.
const BUFFER: usize = 1 << 13;

impl Folder {
    /// Finds the files of a folder and of the folders in it, except hidden files and links to folders.
    ///
    /// # Errors
    /// Errors of the file system; more than a million files.
    pub fn open(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        find(root, "", 0, &mut files)?;
        files.sort();
        Ok(Self { name: root.display().to_string(), root: root.to_owned(), files })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its files within it, with `/` between folders, in the order of their bytes.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Whether it has a file of that name.
    pub fn has(&self, file: &str) -> bool {
        self.files.binary_search_by(|known| known.as_str().cmp(file)).is_ok()
    }

    /// The name of one of its files in messages.
    pub fn name_of(&self, file: &str) -> String {
        format!("{}/{file}", self.name.trim_end_matches('/'))
    }

    /// The content of a file, unchanged.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn bytes(&self, file: &str) -> Result<Vec<u8>, TraceError> {
        std::fs::read(self.root.join(file)).map_err(|error| self.unreadable(file, &error))
    }

    /// The text of a file, decompressed.
    ///
    /// # Errors
    /// A file that cannot be read, is damaged, or is no text.
    pub fn text(&self, file: &str) -> Result<String, TraceError> {
        Ok(text(&self.name_of(file), &self.bytes(file)?)?.into_owned())
    }

    /// The beginning of a file's text; empty if it cannot be read.
    pub fn head(&self, file: &str) -> String {
        let mut head = Vec::new();
        if let Ok(content) = self.content(file) {
            let _ = content.take(HEAD).read_to_end(&mut head);
        }
        String::from_utf8_lossy(&head).into_owned()
    }

    /// The lines of a file, decompressed as they are read.
    pub(crate) fn lines(&self, file: &str) -> Result<LineReader<'static>, TraceError> {
        let content = self.content(file).map_err(|error| self.unreadable(file, &error))?;
        Ok(LineReader::new(&self.name_of(file), content))
    }

    /// The names and hashes of all files, one per line: the input of the folder's hash.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn manifest(&self) -> Result<Vec<u8>, TraceError> {
        let mut manifest = Vec::new();
        for file in &self.files {
            manifest.extend(format!("{}  {file}\n", sha256(&self.bytes(file)?)).into_bytes());
        }
        Ok(manifest)
    }

    fn content(&self, file: &str) -> io::Result<Box<dyn BufRead>> {
        Compression::open(File::open(self.root.join(file))?, BUFFER)
    }

    fn unreadable(&self, file: &str, error: &io::Error) -> TraceError {
        TraceError::input(&self.name_of(file), None, format!("cannot be read: {error}"))
    }
}

fn find(folder: &Path, within: &str, depth: usize, files: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // A name that is not text cannot be in a message or a manifest.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') {
            continue;
        }
        let name = if within.is_empty() { name } else { format!("{within}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEPTH_MAX {
            find(&entry.path(), &name, depth + 1, files)?;
        } else if kind.is_file() || (kind.is_symlink() && entry.path().is_file()) {
            files.push(name);
        }
        if files.len() > FILES_MAX {
            return Err(io::Error::other(format!("more than {FILES_MAX} files")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_names_and_hashed() {
        let root = std::env::temp_dir().join(format!("slackline-folder-{}", std::process::id()));
        std::fs::create_dir_all(root.join("b/c")).unwrap();
        std::fs::write(root.join("b/c/one"), "first\n").unwrap();
        std::fs::write(root.join("b/.hidden"), "x").unwrap();
        let mut packed = Vec::new();
        Compression::Zstd.write(&mut packed, |out| out.write_all(b"packed\n")).unwrap();
        std::fs::write(root.join("a.zst"), &packed).unwrap();
        let folder = Folder::open(&root).unwrap();
        assert_eq!(folder.files(), ["a.zst", "b/c/one"]);
        assert_eq!(
            (folder.head("a.zst"), folder.text("b/c/one").unwrap()),
            ("packed\n".into(), "first\n".into())
        );
        let mut lines = folder.lines("a.zst").unwrap();
        assert_eq!((lines.next().unwrap(), lines.text.as_str()), (true, "packed"));
        let manifest = folder.manifest().unwrap();
        std::fs::write(root.join("b/c/one"), "other\n").unwrap();
        assert_ne!(folder.manifest().unwrap(), manifest);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(folder.text("b/c/one").unwrap_err().to_string().contains("b/c/one: cannot be read"));
    }
}
