//! What earlier runs took, in an embedded store: the file of `run --history`.
//!
//! A run says what its finished jobs took under the time it started at. One that is killed and taken up again
//! says so again under the same time, and nothing is counted twice. A job is found again by its own name and
//! its flow's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redb::{ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use slackline_model::history::{History, PhaseName, Record, recurring};
use slackline_model::{Draft, PhaseKind};

use crate::resolve::JobPlan;
use crate::store::{Store, StoreError, json, table};

/// By start of the run, microseconds since 1970: the run.
const RUNS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("runs");
/// By flow, job and start of the run: the fields of [`Took`], in their order.
const JOBS: TableDefinition<'_, (&str, &str, u64), TookRow> = TableDefinition::new("jobs");
type TookRow = (u64, u64, u64, u64, u64, u64);

/// How many of the latest runs of a job an estimate is made from: data and machines change.
pub const LATEST: usize = 10;

/// The group of machines that the records of this machine go by.
pub const GROUP: &str = "local";

/// How often a store is tried to open that another run has open; it keeps it for a moment.
const TRIES: u32 = 100;

/// How a job is found again in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobName {
    /// The flow; every recurrence (`nightly#3`) goes by the name of the flow that recurs.
    pub flow: String,
    /// The job.
    pub job: String,
}

impl JobName {
    /// The name of a job.
    pub fn of(plan: &JobPlan) -> Self {
        Self::new(&plan.flow, &plan.job)
    }

    /// The name of a job of a flow or of one of its recurrences.
    pub fn new(flow: &str, job: &str) -> Self {
        Self { flow: recurring(flow).to_owned(), job: job.to_owned() }
    }
}

/// What a job took and moved, in one run or in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// Map tasks.
    pub maps: u64,
    /// How long they took together, microseconds.
    pub map_micros: u64,
    /// Reduce tasks.
    pub reduces: u64,
    /// How long they took together, microseconds.
    pub reduce_micros: u64,
    /// Bytes that the maps read, as they are on disk; of a generator, bytes it made.
    pub bytes_in: u64,
    /// Bytes of its part files.
    pub bytes_out: u64,
}

impl Took {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            maps: self.maps.saturating_add(other.maps),
            map_micros: self.map_micros.saturating_add(other.map_micros),
            reduces: self.reduces.saturating_add(other.reduces),
            reduce_micros: self.reduce_micros.saturating_add(other.reduce_micros),
            bytes_in: self.bytes_in.saturating_add(other.bytes_in),
            bytes_out: self.bytes_out.saturating_add(other.bytes_out),
        }
    }

    /// The record of a phase.
    pub fn record(&self, kind: PhaseKind) -> Record {
        let (tasks, micros) = match kind {
            PhaseKind::Map => (self.maps, self.map_micros),
            PhaseKind::Reduce => (self.reduces, self.reduce_micros),
        };
        Record { tasks, seconds: micros as f64 / 1e6 }
    }
}

/// What is known of jobs.
pub type Jobs = BTreeMap<JobName, Took>;

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
    pub jobs: Jobs,
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
    pub fn new(path: &Path) -> Result<Self, StoreError> {
        let store = Self { path: path.to_owned() };
        store.open(Store::open)?;
        Ok(store)
    }

    /// A store that is there, to be looked at.
    pub fn existing(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whether a file begins as a store does.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(b"redb\x1A\x0A\xA9\x0D\x0A")
    }

    fn open(&self, open: fn(&str, &Path) -> Result<Store, StoreError>) -> Result<Store, StoreError> {
        Store::patiently(TRIES, || open("history", &self.path))
    }

    /// Says what a run took so far; what was said of it before is replaced.
    ///
    /// # Errors
    /// Whatever the store says, a full disk for example; then it stays as it was.
    pub fn remember(&self, run: &PastRun) -> Result<(), StoreError> {
        let store = self.open(Store::open)?;
        let note = serde_json::to_vec(&run.note).expect("invariant: a note can be written as JSON");
        store.change(|write| {
            write.open_table(RUNS)?.insert(run.started, note.as_slice())?;
            let mut jobs = write.open_table(JOBS)?;
            for (name, took) in &run.jobs {
                let Took { maps, map_micros, reduces, reduce_micros, bytes_in, bytes_out } = *took;
                let row = (maps, map_micros, reduces, reduce_micros, bytes_in, bytes_out);
                jobs.insert((name.flow.as_str(), name.job.as_str(), run.started), row)?;
            }
            Ok(())
        })
    }

    /// What the [`LATEST`] runs of each job of a workload took together. O(jobs · log entries).
    ///
    /// # Errors
    /// Whatever the store says.
    pub fn recall(&self, workload: &Draft) -> Result<Jobs, StoreError> {
        let names = workload
            .flows
            .iter()
            .flat_map(|flow| flow.jobs.iter().map(|job| JobName::new(&flow.id, &job.id)));
        self.open(Store::open_to_read)?.read(|read| {
            let Some(table) = table(read, JOBS)? else { return Ok(Jobs::new()) };
            let mut known = Jobs::new();
            for name in names {
                let (flow, job) = (name.flow.as_str(), name.job.as_str());
                let mut took = Took::default();
                for entry in table.range((flow, job, 0)..=(flow, job, u64::MAX))?.rev().take(LATEST) {
                    took = took.and(took_of(entry?.1.value()));
                }
                if took.maps > 0 {
                    known.insert(name, took);
                }
            }
            Ok(known)
        })
    }

    /// What the [`LATEST`] runs of every job took together. O(entries).
    ///
    /// # Errors
    /// Whatever the store says.
    pub fn latest(&self) -> Result<Jobs, StoreError> {
        let mut counts: BTreeMap<JobName, usize> = BTreeMap::new();
        let mut known = Jobs::new();
        for (name, took) in self.runs()?.into_iter().rev().flat_map(|run| run.jobs) {
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            if *count <= LATEST {
                let so_far = known.entry(name).or_default();
                *so_far = so_far.and(took);
            }
        }
        Ok(known)
    }

    /// All runs, the earliest first. O(entries).
    ///
    /// # Errors
    /// Whatever the store says.
    pub fn runs(&self) -> Result<Vec<PastRun>, StoreError> {
        self.open(Store::open_to_read)?.read(|read| {
            let mut all: BTreeMap<u64, PastRun> = BTreeMap::new();
            let (Some(runs), Some(jobs)) = (table(read, RUNS)?, table(read, JOBS)?) else {
                return Ok(Vec::new());
            };
            for entry in runs.iter()? {
                let (started, note) = entry?;
                let run = PastRun { started: started.value(), note: json(note.value())?, jobs: Jobs::new() };
                all.insert(run.started, run);
            }
            for entry in jobs.iter()? {
                let (key, row) = entry?;
                let (flow, job, started) = key.value();
                if let Some(run) = all.get_mut(&started) {
                    run.jobs.insert(JobName::new(flow, job), took_of(row.value()));
                }
            }
            Ok(all.into_values().collect())
        })
    }
}

fn took_of(row: TookRow) -> Took {
    let (maps, map_micros, reduces, reduce_micros, bytes_in, bytes_out) = row;
    Took { maps, map_micros, reduces, reduce_micros, bytes_in, bytes_out }
}

/// All that is known of jobs, as the records of phases that every engine's policies can be given.
pub fn records(jobs: &Jobs) -> History {
    let mut history = History::new();
    for (name, took) in jobs {
        for kind in [PhaseKind::Map, PhaseKind::Reduce] {
            let record = took.record(kind);
            if record.tasks > 0 {
                let phase = PhaseName { flow: name.flow.clone(), job: name.job.clone(), kind };
                history.insert(phase, GROUP.to_owned(), record);
            }
        }
    }
    history
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::{FlowDraft, JobDraft};

    use super::*;

    fn took(maps: u64) -> Took {
        Took { maps, map_micros: maps * 1_500_000, bytes_in: 100 * maps, ..Took::default() }
    }

    fn run(started: u64, jobs: &[(&str, u64)]) -> PastRun {
        let note = Note { workload: "flows.toml".into(), policy: "fifo".into() };
        let jobs = jobs.iter().map(|&(job, maps)| (JobName::new("nightly#2", job), took(maps))).collect();
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
        let known = Jobs::from([
            (JobName::new("nightly", "words"), took(6)),
            (JobName::new("nightly", "sorted"), took(1)),
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
        let expected = Jobs::from([(JobName::new("nightly", "words"), took(LATEST as u64))]);
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
                let at = 9 + (state >> 33) as usize % if seed % 2 == 0 { 8_000 } else { bad.len() - 9 };
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
