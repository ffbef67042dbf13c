//! What earlier runs took, in a log of its own: the file of `run --history`.
//!
//! A run says what its finished jobs took under the time it started at. One that is killed and resumed
//! says so again under the same time, and nothing is counted twice. A job is found again by its own name and
//! its flow's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_model::Draft;

use crate::job_cost::{JobCost, JobHistory, JobName};
use crate::log::{Kind, Log, LogError, is_one};

/// How many of the latest runs of a job an estimate is made from: data and machines change.
pub const LATEST: usize = 10;

/// The file. Runs keep it open for a moment only.
const LOG: Kind = Kind { name: "history", line: "slackline history 2\n", tries: 100, reserve: 0 };

/// A run, as the store remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The flow file.
    pub workload: String,
    /// The policy.
    pub policy: String,
}

/// A run with what its finished jobs took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastRun {
    /// When it started: microseconds since 1970.
    pub started: u64,
    /// What it was.
    pub note: Note,
    /// Its finished jobs.
    pub jobs: JobHistory,
}

/// A record of the log: what a run took so far. It replaces what was said before of the run of the same start.
#[derive(Serialize, Deserialize)]
struct Entry {
    started: u64,
    note: Note,
    jobs: Vec<(JobName, JobCost)>,
}

/// A store of earlier runs. Its file is open only while something is read or written, so that several runs
/// may use it.
#[derive(Clone, Debug)]
pub struct HistoryStore {
    path: PathBuf,
}

impl HistoryStore {
    /// A store in a file, which is begun if it is not there.
    ///
    /// # Errors
    /// A file that is no store, or cannot be written.
    pub fn new(path: &Path) -> Result<Self, LogError> {
        Log::open(LOG, path)?;
        Ok(Self::existing(path))
    }

    /// A store that is there, to be looked at.
    pub fn existing(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whether a file begins as a store does, one of the first edition included.
    pub fn is_one(bytes: &[u8]) -> bool {
        is_one(LOG, bytes)
    }

    /// Says what a run took so far; what was said of it before is replaced.
    ///
    /// # Errors
    /// Whatever the file system says, a full disk for example; then it stays as it was.
    pub fn remember(&self, run: &PastRun) -> Result<(), LogError> {
        let jobs = run.jobs.iter().map(|(name, cost)| (name.clone(), *cost)).collect();
        let entry = Entry { started: run.started, note: run.note.clone(), jobs };
        let text = serde_json::to_vec(&entry).expect("invariant: an entry can be written as JSON");
        Log::open(LOG, &self.path)?.append([text.as_slice()])
    }

    /// What the [`LATEST`] runs of each job of a workload took together. O(entries).
    ///
    /// # Errors
    /// A file that is no store or is damaged.
    pub fn recall(&self, workload: &Draft) -> Result<JobHistory, LogError> {
        let mut latest = self.latest()?;
        let jobs = workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)));
        let known = jobs.filter_map(|(flow, job)| latest.remove_entry(&JobName::new(&flow.id, &job.id)));
        Ok(known.filter(|(_, cost)| cost.maps > 0).collect())
    }

    /// What the [`LATEST`] runs of every job took together. O(entries).
    ///
    /// # Errors
    /// A file that is no store or is damaged.
    pub fn latest(&self) -> Result<JobHistory, LogError> {
        let mut counts: BTreeMap<JobName, usize> = BTreeMap::new();
        let mut known = JobHistory::new();
        for (name, cost) in self.runs()?.into_iter().rev().flat_map(|run| run.jobs) {
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            if *count <= LATEST {
                let so_far = known.entry(name).or_default();
                *so_far = so_far.and(cost);
            }
        }
        Ok(known)
    }

    /// All runs, the earliest first. O(entries).
    ///
    /// # Errors
    /// A file that is no store or is damaged.
    pub fn runs(&self) -> Result<Vec<PastRun>, LogError> {
        let log = Log::open_to_read(LOG, &self.path)?;
        let mut all: BTreeMap<u64, PastRun> = BTreeMap::new();
        for text in log.texts()? {
            let entry: Entry = serde_json::from_slice(&text).map_err(|e| log.unreadable(&e))?;
            let (started, note) = (entry.started, entry.note);
            let run = all.entry(started).or_insert(PastRun { started, note, jobs: JobHistory::new() });
            run.jobs.extend(entry.jobs);
        }
        Ok(all.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::{FlowDraft, JobDraft};

    use super::*;
    use crate::job_cost::records;

    fn cost(maps: u64) -> JobCost {
        JobCost { maps, map_micros: maps * 1_500_000, bytes_in: 100 * maps, ..JobCost::default() }
    }

    fn run(started: u64, jobs: &[(&str, u64)]) -> PastRun {
        let note = Note { workload: "flows.toml".into(), policy: "fifo".into() };
        let jobs = jobs.iter().map(|&(job, maps)| (JobName::new("nightly#2", job), cost(maps))).collect();
        PastRun { started, note, jobs }
    }

    fn workload() -> Draft {
        let job = |id: &str| JobDraft { id: id.into(), ..JobDraft::default() };
        let flow = FlowDraft::new("nightly", vec![job("words"), job("sorted"), job("new")]);
        Draft { flows: vec![flow], ..Draft::default() }
    }

    #[test]
    fn a_run_that_is_taken_up_again_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = HistoryStore::new(&dir.path().join("past")).unwrap();
        assert!(store.runs().unwrap().is_empty() && store.recall(&workload()).unwrap().is_empty());
        store.remember(&run(7, &[("words", 2)])).unwrap();
        store.remember(&run(7, &[("words", 2), ("sorted", 1)])).unwrap();
        store.remember(&run(5, &[("words", 4)])).unwrap();
        assert_eq!(store.runs().unwrap(), [run(5, &[("words", 4)]), run(7, &[("words", 2), ("sorted", 1)])]);
        let known = JobHistory::from([
            (JobName::new("nightly", "words"), cost(6)),
            (JobName::new("nightly", "sorted"), cost(1)),
        ]);
        assert_eq!(store.recall(&workload()).unwrap(), known);
        assert_eq!(store.latest().unwrap(), known);
        let history = records(&known);
        let rows: Vec<_> =
            history.records().map(|(name, _, r)| (name.job.as_str(), r.tasks, r.seconds)).collect();
        assert_eq!(rows, [("sorted", 1, 1.5), ("words", 6, 9.0)]);
    }

    #[test]
    fn only_the_latest_runs_count() {
        let dir = tempfile::tempdir().unwrap();
        let store = HistoryStore::new(&dir.path().join("past")).unwrap();
        for started in 0..LATEST as u64 + 5 {
            store.remember(&run(started, &[("words", 1 + 1000 * u64::from(started < 5))])).unwrap();
        }
        let expected = JobHistory::from([(JobName::new("nightly", "words"), cost(LATEST as u64))]);
        assert_eq!(store.recall(&workload()).unwrap(), expected);
        assert_eq!(store.latest().unwrap(), expected);
    }

    #[test]
    fn a_file_that_is_none_or_is_damaged_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("past");
        std::fs::write(&path, "{\"slackline\": 1, \"history\": []}").unwrap();
        let error = HistoryStore::new(&path).unwrap_err().to_string();
        assert!(error.starts_with("history ") && error.contains("past: "), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"slackline\": 1, \"history\": []}");
        let good = dir.path().join("good");
        HistoryStore::new(&good).unwrap().remember(&run(7, &[("words", 2)])).unwrap();
        let bytes = std::fs::read(&good).unwrap();
        assert!(HistoryStore::is_one(&bytes));
        // Whatever stands in the file, the answer is an error or the runs, never the end of the program.
        for seed in 0..60u64 {
            let mut bad = bytes.clone();
            let mut state = seed;
            for _ in 0..=seed % 40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 33) as usize % bad.len();
                bad[at] ^= (state >> 20) as u8;
            }
            bad.truncate(if seed % 3 == 0 { (state >> 30) as usize % bytes.len() } else { bytes.len() });
            std::fs::write(&path, &bad).unwrap();
            if let Ok(store) = HistoryStore::new(&path) {
                let _ = (store.runs(), store.recall(&workload()), store.remember(&run(8, &[("words", 1)])));
            }
        }
    }
}
