//! A library preloaded into the program, with which a test shifts its wall clock, fills its disk and hangs
//! its file system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::real_data::skipped;

/// A fake clock, disk and file system for one process and its children.
pub(crate) struct FakeSystem {
    directory: PathBuf,
}

impl FakeSystem {
    /// Compiles the library into a directory. `None`, with a message, without a C compiler.
    pub(crate) fn new(directory: &Path) -> Option<Self> {
        let directory = directory.join("fake-system");
        fs::create_dir_all(&directory).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/fake_system.c");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(directory.join("library.so")).arg(source);
        let Ok(status) = cc.status() else {
            skipped("there is no C compiler");
            return None;
        };
        assert!(status.success(), "{source} compiles");
        Some(Self { directory })
    }

    /// Makes a program use this system when it starts.
    pub(crate) fn fake<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", self.directory.join("library.so")).env("FAKE_SYSTEM", &self.directory)
    }

    /// Shifts the wall clock by `seconds` from now on.
    pub(crate) fn shift(&self, seconds: i64) {
        // No process reads an incomplete number.
        let next = self.directory.join("next");
        fs::write(&next, seconds.to_string()).unwrap();
        fs::rename(next, self.directory.join("shift")).unwrap();
    }

    /// Makes calls on paths that contain this text hang; `None` ends that. The text also stands for the name
    /// of a host.
    pub(crate) fn hang(&self, text: Option<&str>) {
        let (next, mark) = (self.directory.join("next-hang"), self.directory.join("hang"));
        match text {
            Some(text) => {
                fs::write(&next, text).unwrap();
                fs::rename(next, mark).unwrap();
            }
            None => fs::remove_file(mark).unwrap(),
        }
    }

    /// Makes every write to a file fail for lack of space, or ends that.
    pub(crate) fn fill_disk(&self, is_full: bool) {
        if is_full { self.fill_disk_at("") } else { fs::remove_file(self.directory.join("full")).unwrap() }
    }

    /// Makes writes to paths that contain this text fail for lack of space.
    pub(crate) fn fill_disk_at(&self, text: &str) {
        let next = self.directory.join("next-full");
        fs::write(&next, text).unwrap();
        fs::rename(next, self.directory.join("full")).unwrap();
    }
}
