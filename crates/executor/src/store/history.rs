//! The costs of earlier runs: the file of `run --history`.
//!
//! It is the history document that simulations also write, with a section for real runs. A run records the
//! costs of its finished jobs under its start time. A run that is killed and resumed replaces its record, so
//! no job counts twice. A job is found by its own name and its flow's. The file has only the [`LATEST`] runs
//! of each job.
//!
//! The file is replaced as a whole under the lock of a file beside it, so that several runs may use it. An
//! old store, a log, is read as it is, and becomes a document at the next write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slackline_model::{Draft, History};
use slackline_task::base::file_lock::lock_within;
use slackline_task::base::regular_file;
use slackline_trace::{
    Compression, HistoryJob, HistoryRun, PhaseCounts, atomic_file, read_history, write_history,
};

use crate::spec::job_cost::{JobCost, JobHistory, JobName, of_workload, records};
use crate::store::log::LogError;

/// Number of the latest runs of a job behind an estimate: data and machines change.
pub const LATEST: usize = 10;

/// Longest wait of a store for its lock. Other runs hold it while they replace the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// The next step for a damaged history, and what the user loses.
const ADVICE: &str = "choose another history, or leave it out: only predictions depend on it";

/// A run in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The flow file.
    pub workload: String,
    pub policy: String,
}

/// A run with the costs of its finished jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastRun {
    /// The start: microseconds since 1970.
    pub started: u64,
    pub note: Note,
    pub jobs: JobHistory,
    /// The counts of their maps and their reduces, if recorded.
    pub counts: CountsOfJobs,
}

/// The counts of the maps and the reduces of jobs, by name.
pub type CountsOfJobs = BTreeMap<JobName, [PhaseCounts; 2]>;

/// The runs that were removed from a store, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrunedRuns {
    pub runs: usize,
    pub of: usize,
    /// The number of bytes by which the file shrinks.
    pub bytes: u64,
    /// The start of the latest removed run: microseconds since 1970; `None` if there is none.
    pub latest: Option<u64>,
}

/// The content of a file.
#[derive(Clone, Default)]
struct Content {
    /// The history of simulations, or the one that follows from the runs.
    history: History,
    runs: BTreeMap<u64, PastRun>,
}

/// A store of earlier runs. Its file is open only during a read or a write, so that several runs may use it.
#[derive(Clone, Debug)]
pub struct HistoryStore {
    path: PathBuf,
    /// Longest wait for its lock.
    patience: Duration,
}

impl HistoryStore {
    /// A store in a file, which is created if it does not exist.
    ///
    /// # Errors
    /// A file that is not a store, or cannot be written.
    pub fn new(path: &Path) -> Result<Self, LogError> {
        let store = Self::existing(path);
        if path.exists() {
            store.content()?;
        } else {
            let _lock = store.lock()?;
            if !path.exists() {
                store.write(&Content::default())?;
            }
        }
        Ok(store)
    }

    /// An existing store, to be checked.
    pub fn existing(path: &Path) -> Self {
        Self { path: path.to_owned(), patience: PATIENCE }
    }

    /// The same, with a limit on the wait for its lock.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the costs of a run so far; replaces its earlier record.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example; then the file is unchanged.
    pub fn remember(&self, run: &PastRun) -> Result<(), LogError> {
        self.remember_all(std::slice::from_ref(run))
    }

    /// Records the costs of several runs so far, with one write.
    ///
    /// # Errors
    /// As [`Self::remember`].
    pub fn remember_all(&self, runs: &[PastRun]) -> Result<(), LogError> {
        let _lock = self.lock()?;
        let mut content = if self.path.exists() { self.content()? } else { Content::default() };
        for run in runs {
            let so_far = content.runs.entry(run.started).or_insert_with(|| run.clone());
            so_far.jobs.extend(run.jobs.iter().map(|(name, cost)| (name.clone(), cost.clone())));
            so_far.counts.extend(run.counts.iter().map(|(name, counts)| (name.clone(), counts.clone())));
        }
        prune(&mut content.runs);
        self.write(&content)
    }

    /// Removes the earliest runs while they started before a moment (microseconds since 1970) and the file is
    /// larger than this number of bytes, or one of the two if only one is given. History of simulations
    /// stays. O(entries · log).
    ///
    /// # Errors
    /// A file that is not a store or is damaged; an error of the file system, then the file is unchanged.
    pub fn forget(&self, before: Option<u64>, larger_than: Option<u64>) -> Result<PrunedRuns, LogError> {
        let _lock = self.lock()?;
        let (mut content, forgotten) = self.shortened(before, larger_than)?;
        if forgotten.runs > 0 {
            content.forget(forgotten.runs);
            self.write(&content)?;
        }
        Ok(forgotten)
    }

    /// The runs that [`Self::forget`] would remove; changes and locks nothing. O(entries · log).
    ///
    /// # Errors
    /// A file that is not a store or is damaged.
    pub fn forgettable(&self, before: Option<u64>, larger_than: Option<u64>) -> Result<PrunedRuns, LogError> {
        Ok(self.shortened(before, larger_than)?.1)
    }

    /// The content of the file, and the runs to remove.
    fn shortened(
        &self,
        before: Option<u64>,
        larger_than: Option<u64>,
    ) -> Result<(Content, PrunedRuns), LogError> {
        let content = self.content()?;
        let bytes = fs::metadata(&self.path).map_err(|e| self.refused(e))?.len();
        let old = |&&started: &&u64| before.is_none_or(|before| started < before);
        let old = content.runs.keys().take_while(old).count();
        let size = |runs: usize| -> Result<u64, LogError> {
            let mut rest = content.clone();
            rest.forget(runs);
            let mut document = Vec::new();
            self.document(&rest, &mut document).map_err(|e| self.refused(e))?;
            Ok(document.len() as u64)
        };
        let runs = match larger_than {
            None => old,
            Some(most) if bytes <= most => 0,
            Some(most) => fewest(old, |runs| Ok(size(runs)? <= most))?,
        };
        let saved = if runs == 0 { 0 } else { bytes.saturating_sub(size(runs)?) };
        let latest = content.runs.keys().next_back().copied();
        let forgotten = PrunedRuns { runs, of: content.runs.len(), bytes: saved, latest };
        Ok((content, forgotten))
    }

    /// The total costs of the [`LATEST`] runs of each job of a workload. O(entries).
    ///
    /// # Errors
    /// A file that is not a store or is damaged.
    pub fn recall(&self, workload: &Draft) -> Result<JobHistory, LogError> {
        Ok(of_workload(&self.latest()?, workload))
    }

    /// The total costs of the [`LATEST`] runs of every job. O(entries).
    ///
    /// # Errors
    /// A file that is not a store or is damaged.
    pub fn latest(&self) -> Result<JobHistory, LogError> {
        let mut runs = self.content()?.runs;
        prune(&mut runs);
        Ok(together(&runs))
    }

    /// All runs, the earliest first. O(entries).
    ///
    /// # Errors
    /// A file that is not a store or is damaged.
    pub fn runs(&self) -> Result<Vec<PastRun>, LogError> {
        Ok(self.content()?.runs.into_values().collect())
    }

    fn name(&self) -> String {
        format!("history {}", self.path.display())
    }

    fn refused(&self, problem: io::Error) -> LogError {
        LogError::File { name: self.name(), problem }
    }

    /// Excludes other writers until it is dropped. The lock file stays: if a run removed it, two other runs
    /// could hold locks on two files of that name.
    fn lock(&self) -> Result<File, LogError> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".lock");
        let lock = regular_file::open_to_append(Path::new(&beside));
        let lock = lock.and_then(|lock| lock_within(&lock, self.patience).map(|()| lock));
        lock.map_err(|problem| LogError::File {
            name: format!("history {}", beside.to_string_lossy()),
            problem,
        })
    }

    fn content(&self) -> Result<Content, LogError> {
        let read =
            regular_file::open(&self.path).and_then(|file| regular_file::whole(&file, regular_file::LARGEST));
        let bytes = read.map_err(|e| self.refused(e))?;
        let (history, runs) = read_history(&self.name(), &bytes)
            .map_err(|error| LogError::History { problem: format!("{error}; {ADVICE}") })?;
        let runs = runs.into_iter().map(|run| (run.started, PastRun::from(run))).collect();
        Ok(Content { history, runs })
    }

    /// Replaces the whole file. The rows of measured jobs are those of the latest runs; other rows stay.
    fn write(&self, content: &Content) -> Result<(), LogError> {
        let written = atomic_file::replace(&self.path, |out| self.document(content, out));
        written.map_err(|e| self.refused(e))
    }

    /// Writes the document, compressed according to the name of the file.
    fn document(&self, content: &Content, out: &mut dyn Write) -> io::Result<()> {
        let mut history = records(&together(&content.runs));
        for (phase, group, record) in content.history.records() {
            history.insert(phase.clone(), group.to_owned(), record);
        }
        let runs: Vec<HistoryRun> = content.runs.values().map(HistoryRun::from).collect();
        let document = |out: &mut dyn Write| write_history(out, &history, &runs);
        match Compression::of_name(&self.path) {
            Some(compression) => compression.write(out, document),
            None => document(out),
        }
    }
}

impl Content {
    /// Removes the earliest runs, and the rows that come from them alone.
    fn forget(&mut self, runs: usize) {
        let followed = records(&together(&self.runs));
        let derived: BTreeSet<_> = followed.records().map(|(phase, group, _)| (phase, group)).collect();
        let mut kept = History::new();
        for (phase, group, record) in self.history.records() {
            if !derived.contains(&(phase, group)) {
                kept.insert(phase.clone(), group.to_owned(), record);
            }
        }
        self.history = kept;
        self.runs = std::mem::take(&mut self.runs).into_iter().skip(runs).collect();
    }
}

/// The least number up to `most` for which a monotone condition holds; `most` if it holds for none.
fn fewest(most: usize, mut holds: impl FnMut(usize) -> Result<bool, LogError>) -> Result<usize, LogError> {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

/// Leaves the [`LATEST`] runs of each job.
fn prune(runs: &mut BTreeMap<u64, PastRun>) {
    let mut counts: BTreeMap<JobName, usize> = BTreeMap::new();
    for run in runs.values_mut().rev() {
        run.jobs.retain(|name, _| {
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            *count <= LATEST
        });
        let jobs = &run.jobs;
        run.counts.retain(|name, _| jobs.contains_key(name));
    }
    runs.retain(|_, run| !run.jobs.is_empty());
}

/// The total costs of all these runs, by job.
fn together(runs: &BTreeMap<u64, PastRun>) -> JobHistory {
    let mut known = JobHistory::new();
    for (name, cost) in runs.values().flat_map(|run| &run.jobs) {
        let so_far = known.entry(name.clone()).or_default();
        *so_far = std::mem::take(so_far).and(cost);
    }
    known
}

impl From<HistoryRun> for PastRun {
    fn from(run: HistoryRun) -> Self {
        let note = Note { workload: run.workload, policy: run.policy };
        let (mut jobs, mut counts) = (JobHistory::new(), CountsOfJobs::new());
        for job in run.jobs {
            let HistoryJob { maps, map_micros, reduces, reduce_micros, bytes_in, bytes_out, .. } = job;
            let name = JobName { flow: job.flow, job: job.job };
            let counted = [job.map_counts, job.reduce_counts];
            if !counted.iter().all(PhaseCounts::is_nothing) {
                counts.insert(name.clone(), counted);
            }
            let machines = job.machines;
            let cost = JobCost { maps, map_micros, reduces, reduce_micros, bytes_in, bytes_out, machines };
            jobs.insert(name, cost);
        }
        Self { started: run.started, note, jobs, counts }
    }
}

impl From<&PastRun> for HistoryRun {
    fn from(run: &PastRun) -> Self {
        let job = |(name, cost): (&JobName, &JobCost)| {
            let [map_counts, reduce_counts] = run.counts.get(name).cloned().unwrap_or_default();
            HistoryJob {
                flow: name.flow.clone(),
                job: name.job.clone(),
                maps: cost.maps,
                map_micros: cost.map_micros,
                reduces: cost.reduces,
                reduce_micros: cost.reduce_micros,
                bytes_in: cost.bytes_in,
                bytes_out: cost.bytes_out,
                map_counts,
                reduce_counts,
                machines: cost.machines.clone(),
            }
        };
        Self {
            started: run.started,
            workload: run.note.workload.clone(),
            policy: run.note.policy.clone(),
            jobs: run.jobs.iter().map(job).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::{FlowDraft, JobDraft};

    use super::*;
    use crate::spec::job_cost::records;

    fn cost(maps: u64) -> JobCost {
        JobCost { maps, map_micros: maps * 1_500_000, bytes_in: 100 * maps, ..JobCost::default() }
    }

    fn run(started: u64, jobs: &[(&str, u64)]) -> PastRun {
        let note = Note { workload: "flows.toml".into(), policy: "fifo".into() };
        let jobs = jobs.iter().map(|&(job, maps)| (JobName::new("nightly#2", job), cost(maps))).collect();
        PastRun { started, note, jobs, counts: CountsOfJobs::new() }
    }

    fn workload() -> Draft {
        let job = |id: &str| JobDraft { id: id.into(), ..JobDraft::default() };
        let flow = FlowDraft::new("nightly", vec![job("words"), job("sorted"), job("new")]);
        Draft { flows: vec![flow], ..Draft::default() }
    }

    #[test]
    fn a_run_that_is_resumed_is_recorded_once() {
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
    fn the_earliest_runs_are_forgotten_by_age_and_size_and_what_was_simulated_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("past");
        let mut simulated = History::new();
        let phase = slackline_model::history::PhaseName {
            flow: "other".into(),
            job: "j".into(),
            kind: slackline_model::PhaseKind::Map,
        };
        simulated.insert(phase, "fast".into(), slackline_model::history::Record { tasks: 3, seconds: 1.0 });
        let document = |out: &mut dyn Write| write_history(out, &simulated, &[]);
        atomic_file::write(&path, document).unwrap();
        let store = HistoryStore::new(&path).unwrap();
        let runs = [run(1, &[("old", 4)]), run(2, &[("words", 1)]), run(3, &[("words", 2)])];
        for run in &runs {
            store.remember(run).unwrap();
        }
        let whole = fs::read(&path).unwrap();
        let size = whole.len() as u64;
        for (before, larger_than, expected) in [
            (Some(1), None, 0),
            (Some(2), None, 1),
            (None, Some(size), 0),
            (None, Some(size - 1), 1),
            (Some(2), Some(0), 1),
            (Some(3), Some(size - 1), 1),
            (None, None, 3),
        ] {
            let case = (before, larger_than);
            fs::write(&path, &whole).unwrap();
            let would = store.forgettable(before, larger_than).unwrap();
            assert!(fs::read(&path).unwrap() == whole, "{case:?}: nothing is changed");
            let did = store.forget(before, larger_than).unwrap();
            assert_eq!((did, did.runs, did.of), (would, expected, 3), "{case:?}");
            assert_eq!(store.runs().unwrap(), runs[expected..], "{case:?}");
            assert_eq!(size - fs::metadata(&path).unwrap().len(), did.bytes, "{case:?}");
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(
                text.contains("\"old\""),
                expected == 0,
                "no row is left of a run that is gone: {text}"
            );
            assert!(text.contains("\"fast\""), "{text}");
        }
    }

    #[test]
    fn history_of_simulations_stays_and_several_runs_may_write_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("past.json");
        let row = r#"{"flow":"f","job":"j","phase":"map","group":"node","tasks":2,"seconds":3.0}"#;
        std::fs::write(&path, format!("{{\"slackline\": 1, \"history\": [{row}]}}")).unwrap();
        let store = HistoryStore::new(&path).unwrap();
        std::thread::scope(|scope| {
            for started in 0..8u64 {
                let store = &store;
                scope.spawn(move || store.remember(&run(started, &[("words", started + 1)])).unwrap());
            }
        });
        assert_eq!(store.runs().unwrap().len(), 8, "none is lost");
        let history = slackline_trace::read_history("past", &std::fs::read(&path).unwrap()).unwrap().0;
        assert!(history.records().any(|(name, group, _)| (name.job.as_str(), group) == ("j", "node")));
    }

    #[test]
    fn a_file_that_is_none_or_is_damaged_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("past");
        std::fs::write(&path, "{\"slackline\": 1, \"histori\": []}").unwrap();
        let error = HistoryStore::new(&path).unwrap_err().to_string();
        assert!(error.starts_with("history ") && error.matches("past").count() == 1, "{error}");
        assert!(error.contains("past:1:") && error.contains("leave it out"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"slackline\": 1, \"histori\": []}");
        let good = dir.path().join("good");
        HistoryStore::new(&good).unwrap().remember(&run(7, &[("words", 2)])).unwrap();
        let bytes = std::fs::read(&good).unwrap();
        // For any content of the file the store returns an error or the runs; it never panics.
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
