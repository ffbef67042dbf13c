//! Results that stay as they are: schedules, plans, bounds, generated workloads and figures.

use std::fs::{self, read_dir};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::Deserialize;
use slackline::trace::sha256;

use crate::{program, real_data, scratch};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pins.toml");

#[derive(Deserialize)]
struct Pins {
    pins: Vec<Pin>,
}

/// Runs of the program in one directory, each without an error, and a hash of their output and files.
#[derive(Deserialize)]
struct Pin {
    /// The property that it protects.
    name: String,
    /// Whether it reads real traces.
    #[serde(default)]
    data: bool,
    sha256: String,
    /// Arguments, separated by spaces. Paths start from a directory with examples, experiments and testdata of
    /// this repository, and the folders of the real traces.
    runs: Vec<String>,
}

#[test]
fn pinned_results_are_as_they_were() {
    let text = fs::read_to_string(PATH).unwrap();
    let pins: Pins = toml::from_str(&text).unwrap();
    let root = scratch("pins");
    let traces = real_data::real("");
    let (next, changed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(pin) = pins.pins.get(next.fetch_add(1, Ordering::Relaxed)) {
            if pin.data && traces.is_none() {
                continue;
            }
            let dir = root.join(pin.name.replace(|c: char| !c.is_alphanumeric(), "-"));
            let found = pin.run(&dir, traces.as_deref());
            if found == pin.sha256 {
                fs::remove_dir_all(&dir).unwrap();
            } else {
                changed.lock().unwrap_or_else(PoisonError::into_inner).push((pin, found, dir));
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let changed = changed.into_inner().unwrap();
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        let blessed = changed.iter().fold(text, |text, (pin, found, _)| replaced(&text, pin, found));
        fs::write(PATH, blessed).unwrap();
        return;
    }
    let changed = changed.iter().map(|(pin, _, dir)| format!("\n{}: {}", pin.name, dir.display()));
    let changed: String = changed.collect();
    assert!(
        changed.is_empty(),
        "these results changed; compare the files below each directory with those of an older commit, and run `cargo xtask \
         bless` if the change is intended:{changed}"
    );
}

impl Pin {
    /// The hash of the output and the files of its runs: `N.out` is the output of run N.
    fn run(&self, dir: &Path, traces: Option<&Path>) -> String {
        let written = dir.join("written");
        fs::create_dir_all(&written).unwrap();
        let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let folders = ["examples", "experiments", "testdata"].map(|name| repository.join(name)).into_iter();
        let traces = traces.into_iter().flat_map(|traces| read_dir(traces).unwrap());
        for folder in folders.chain(traces.map(|entry| entry.unwrap().path())) {
            let folder = folder.canonicalize().unwrap();
            symlink(&folder, written.join(folder.file_name().unwrap())).unwrap();
        }
        for (number, run) in self.runs.iter().enumerate() {
            let output = program().args(run.split(' ')).current_dir(&written).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: slackline {run}: {error}", self.name);
            fs::write(written.join(format!("{number}.out")), output.stdout).unwrap();
        }
        let mut content = String::new();
        for file in files(&written) {
            let bytes = fs::read(&file).unwrap();
            let text = String::from_utf8_lossy(&bytes).replace(env!("CARGO_PKG_VERSION"), "VERSION");
            let path = file.strip_prefix(&written).unwrap();
            content.extend([format!("{} {}\n", path.display(), text.len()), text]);
        }
        sha256(content.as_bytes())
    }
}

/// All files below a directory, without those behind links, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| !path.is_symlink());
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The text of all pins with another hash of this one.
fn replaced(text: &str, pin: &Pin, found: &str) -> String {
    let (before, rest) = text.split_once(&format!("name = {:?}\n", pin.name)).unwrap();
    let (between, after) = rest.split_once(&format!("sha256 = {:?}\n", pin.sha256)).unwrap();
    format!("{before}name = {:?}\n{between}sha256 = {found:?}\n{after}", pin.name)
}
