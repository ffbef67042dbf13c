//! Damaged folders: some of their files damaged, some missing, some there twice or under another's name.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use slackline::import::Source;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_trace::Importer;

use super::Target;
use super::corpus::Corpus;
use super::damage::Damage;
use super::trial::{self, Verdict};

/// Most files of a folder.
const FILES_MAX: u64 = 6;

/// Names of files in folders of each format, besides those that may be anything.
const NAMES: [(&str, &[&str]); 3] = [
    (
        "jhist",
        &[
            "job_1_0001.jhist",
            "job_1_0002-1-u-n-2-1-1-SUCCEEDED-q-3.jhist",
            "job_1_0003.jhist.gz",
            "job_1_0001_conf.xml",
            "2026/01/02/job_1_0002_conf.xml",
            "_SUCCESS",
        ],
    ),
    ("azkaban", &["flow20.project", "nightly.flow", "a.job", "b.job", "sub/c.job", "common.properties"]),
    (
        "spark",
        &[
            "application_1_0001",
            "application_1_0002.inprogress",
            "eventlog_v2_application_1_0003/appstatus_application_1_0003",
            "eventlog_v2_application_1_0003/events_1_application_1_0003",
            "eventlog_v2_application_1_0003/events_2_application_1_0003.zstd",
            "other",
        ],
    ),
];

/// Files that belong to folders and are in no corpus.
const SMALL: &[&str] = &[
    "",
    "azkaban-flow-version: 2.0\n",
    "type=command\ncommand=true\n",
    "type=command\ncommand=true\ndependencies=a\n",
    "type=flow\nflow.name=b\n",
    "<configuration><property><name>mapreduce.job.queuename</name><value>q</value></property></configuration>",
];

/// Folders of a format.
pub(super) struct FolderTarget {
    importer: Importer,
    good: Vec<Vec<u8>>,
    damage: Damage,
    names: &'static [&'static str],
    root: PathBuf,
}

static FOLDERS: AtomicU64 = AtomicU64::new(0);

impl FolderTarget {
    /// # Errors
    /// No good file of the format; a folder that cannot be made.
    pub(super) fn of(importer: Importer) -> anyhow::Result<Self> {
        let good: Vec<Vec<u8>> = Corpus::of(&importer)?
            .good
            .into_iter()
            .chain(SMALL.iter().map(|text| text.as_bytes().to_vec()))
            .collect();
        let names = NAMES.iter().find(|(format, _)| *format == importer.name);
        let n = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("slackline-fuzz-{}-{n}", std::process::id()));
        fs::create_dir_all(&root)?;
        Ok(Self {
            importer,
            damage: Damage::of(good.clone()),
            good,
            names: names.map_or(&["one"], |(_, names)| names),
            root,
        })
    }
}

impl Drop for FolderTarget {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Target for FolderTarget {
    fn tried(&self, rng: &mut ChaCha8Rng) -> Verdict {
        let folder = self.root.join("damaged");
        if let Err(error) = write(&folder, &self.files(rng)) {
            return Verdict::Wrong(format!("the folder cannot be written: {error}"));
        }
        let source = match Source::read(&folder) {
            Ok(source) => source,
            Err(error) => return Verdict::Wrong(format!("the folder cannot be read: {error}")),
        };
        let options = trial::options(&self.importer, Vec::new());
        trial::read(&source, &options, random::chance(rng, 0.25), &source.name)
    }

    fn files(&self, rng: &mut ChaCha8Rng) -> Vec<(String, Vec<u8>)> {
        let n = random::integer(rng, 1, FILES_MAX) as usize;
        let any = |rng: &mut ChaCha8Rng, n: usize| random::integer(rng, 0, n as u64 - 1) as usize;
        let mut files = Vec::new();
        for _ in 0..n {
            let name = self.names[any(rng, self.names.len())];
            let is_good = random::chance(rng, 0.6);
            let bytes =
                if is_good { self.good[any(rng, self.good.len())].clone() } else { self.damage.input(rng) };
            files.push((name.to_owned(), bytes));
        }
        files
    }
}

/// Writes a folder anew.
fn write(folder: &Path, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}
