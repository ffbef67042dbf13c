//! The paths of a run's files.
//!
//! The state directory has the journal, the record of finished jobs, map output, attempts, logs of attempts,
//! the resolved workload and the schedule. A run on several machines may have map output and attempts in
//! another directory, which all machines see: the file `shared` names it. Part files are written below their
//! job's output directory, in `_temporary`, so that a rename on one file system moves them to their place;
//! readers ignore names with `_`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use slackline_task::attempt::prepare::prepare;
use slackline_task::base::files::{clear_away, remove, remove_busy, set_aside};
use slackline_task::base::task_id::TaskId;
use slackline_task::base::{clock, regular_file};
use slackline_trace::{atomic_file, sha256};

use crate::spec::job_plan::{JobPlan, file_name};
use crate::store::finished_jobs::{self, FinishedJobs};
use crate::store::journal::{Attempt, KeptJob};
use crate::store::output_files::{SUCCESS, others, staged, temporaries, temporary};

/// The file that names the directory for attempts, if that is not the state directory.
const SHARED: &str = "shared";
/// Bytes to read of it: more than any path has.
const SHARED_MOST: u64 = 1 << 16;

/// Number of checks for output of another machine, and the pause between two checks.
const LOOKS: u32 = 8;
const LOOK: Duration = Duration::from_millis(250);

/// The paths of a run.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
    /// The directory of attempts and map output.
    data: PathBuf,
    /// For each job, the name of its files, which stays when other jobs come or go.
    names: Vec<String>,
}

impl Layout {
    /// The paths of a run that has its files in `root`.
    pub fn new(root: &Path) -> Self {
        let noted = regular_file::read_to_string(&root.join(SHARED), SHARED_MOST).ok();
        let noted = noted.and_then(|text| Some(PathBuf::from(text.strip_suffix('\n')?)));
        Self { root: root.to_owned(), data: noted.unwrap_or_else(|| root.to_owned()), names: Vec::new() }
    }

    /// The same with attempts and map output in a separate directory below `shared`. Writes no file yet.
    pub(crate) fn sharing(mut self, shared: &Path) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let shared = absolute(shared);
        if self.data.parent() != Some(&shared) {
            let of_state = format!("{}:{}", host(), absolute(&self.root).display());
            let name = self.root.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy());
            let name: String =
                name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
            self.data = shared.join(format!("slackline-{name}-{}", &sha256(of_state.as_bytes())[..8]));
        }
        self
    }

    /// Whether attempts and map output are in the same place as in another layout.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        self.data == other.data
    }

    /// The directory of attempts and map output: every machine of the run must see it.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The directory of the outputs of commands that name none, which every machine of the run sees, too.
    pub(crate) fn outputs(&self) -> PathBuf {
        self.data.join("outputs")
    }

    /// Creates the directory of attempts and map output, and writes its name to the state directory.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn note_data(&self) -> io::Result<()> {
        fs::create_dir_all(&self.data)?;
        if self.data == self.root {
            return remove(&self.root.join(SHARED));
        }
        let path = self.root.join(SHARED);
        atomic_file::write(&path, |out| writeln!(out, "{}", self.data.display()))
    }

    /// Removes the separate directory of attempts and map output, and the file that names it.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn remove_data(&self) -> Result<(), (PathBuf, io::Error)> {
        if self.data == self.root {
            return Ok(());
        }
        for path in [self.data.clone(), self.root.join(SHARED)] {
            remove(&path).map_err(|error| (path, error))?;
        }
        Ok(())
    }

    /// The same, for a run of these jobs.
    pub(crate) fn of_jobs(mut self, jobs: &[JobPlan]) -> Self {
        self.names = jobs.iter().map(|job| file_name(&job.flow, &job.job)).collect();
        self
    }

    /// The record of finished jobs.
    pub(crate) fn made(&self) -> PathBuf {
        self.root.join("jobs.log")
    }

    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.log")
    }

    /// A damaged journal that was set aside.
    pub(crate) fn damaged_journal(&self) -> PathBuf {
        self.journal().with_extension("damaged")
    }

    /// The resolved workload, with measured durations.
    pub fn workload(&self) -> PathBuf {
        self.root.join("workload.json")
    }

    /// The measured schedule.
    pub fn schedule(&self) -> PathBuf {
        self.root.join("schedule.json")
    }

    /// The state of the run's jobs on a cluster.
    pub(crate) fn applications(&self) -> PathBuf {
        self.root.join("applications.json")
    }

    /// The standard error of the commands of an attempt.
    pub fn log(&self, flow: &str, job: &str, id: TaskId, number: u64) -> PathBuf {
        let (flow, job) = (log_name(flow), log_name(job));
        self.logs().join(format!("{flow}.{job}.{}-{}.{number}.log", id.phase.name(), id.task))
    }

    /// The same for all attempts of a run that `wanted` selects: first those of jobs that earlier runs have
    /// done.
    pub(crate) fn logs_of(
        &self,
        kept: &[KeptJob],
        jobs: &[JobPlan],
        attempts: &[Attempt],
        wanted: impl Fn(&Attempt) -> bool,
    ) -> Vec<PathBuf> {
        let kept = kept.iter().flat_map(|it| it.attempts.iter().map(|one| (&it.flow, &it.job, one)));
        let own = attempts.iter().map(|one| (&jobs[one.id.job as usize], one));
        let all = kept.chain(own.map(|(plan, one)| (&plan.flow, &plan.job, one)));
        let wanted = all.filter(|(_, _, one)| wanted(one));
        wanted.map(|(flow, job, one)| self.log(flow, job, one.id, one.number)).collect()
    }

    /// The directory of the cgroups of commands with a memory limit.
    pub(crate) fn memory(&self) -> PathBuf {
        self.root.join("memory")
    }

    /// The known machines that come and go.
    pub(crate) fn machines(&self) -> PathBuf {
        self.root.join("machines.json")
    }

    /// The running workers: a file for each worker process.
    pub(crate) fn pids(&self) -> PathBuf {
        self.root.join("pids")
    }

    pub(crate) fn attempts(&self) -> PathBuf {
        self.data.join("attempts")
    }

    /// The directory of an attempt.
    pub(crate) fn attempt(&self, job: &JobPlan, id: TaskId, number: u64) -> PathBuf {
        if job.is_final(id) {
            temporary(job).join(number.to_string())
        } else {
            self.attempts().join(number.to_string())
        }
    }

    /// The committed output of a task: a map's directory, or a part file that waits for the other parts.
    pub(crate) fn committed(&self, job: &JobPlan, id: TaskId) -> PathBuf {
        if job.is_final(id) {
            staged(&job.output).join(job.part(id.task))
        } else {
            self.map_output(id.job, id.task)
        }
    }

    /// The committed output of a map.
    pub(crate) fn map_output(&self, job: u32, task: u32) -> PathBuf {
        self.maps(job).join(task.to_string())
    }

    /// The directory of a job on an engine that runs it as a whole.
    pub(crate) fn elsewhere(&self, job: u32) -> PathBuf {
        self.all_elsewhere().join(&self.names[job as usize])
    }

    /// The placeholders for remote files.
    pub fn mirror(&self) -> PathBuf {
        self.root.join("remote")
    }

    pub(crate) fn all_elsewhere(&self) -> PathBuf {
        self.root.join("elsewhere")
    }

    /// The committed maps of a job.
    pub(crate) fn maps(&self, job: u32) -> PathBuf {
        self.all_maps().join(&self.names[job as usize])
    }

    pub(crate) fn all_maps(&self) -> PathBuf {
        self.data.join("maps")
    }

    /// The state directory of the run.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The first existing name that a run would use, if no run has used the directory yet.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub(crate) fn first_in_use(&self) -> io::Result<Option<PathBuf>> {
        if finished_jobs::is_one(&self.made()) {
            return Ok(None);
        }
        let named = [
            self.attempts(),
            self.all_maps(),
            self.all_elsewhere(),
            self.logs(),
            self.pids(),
            self.workload(),
        ];
        let named = named.into_iter().chain(Some(self.schedule()));
        Ok(named.chain(self.all_prepared()?).find(|path| path.exists()))
    }

    /// The prepared data of programs that read all input first, complete or not.
    fn all_prepared(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.data) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?.collect::<io::Result<Vec<_>>>()?,
        };
        let is_one = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("prepared-");
        Ok(entries.into_iter().filter(is_one).map(|entry| entry.path()).collect())
    }

    /// Removes everything that a run keeps here, the journal last, so that an interrupted removal can be
    /// repeated; then the directory, if it is empty.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn remove_all(&self) -> Result<(), (PathBuf, io::Error)> {
        let large =
            [self.attempts(), self.all_maps(), self.all_elsewhere(), self.mirror(), self.logs(), self.pids()];
        let beside = self.journal().with_extension("next");
        let beside_made = self.made().with_extension("next");
        let small = [
            self.memory(),
            self.applications(),
            self.workload(),
            self.schedule(),
            beside,
            self.damaged_journal(),
            beside_made,
            self.machines(),
            self.made(),
            self.journal(),
        ];
        let prepared = self.all_prepared().map_err(|error| (self.data.clone(), error))?;
        let aside = [&self.root, &self.data].into_iter().flat_map(|directory| set_aside(directory));
        for path in large.into_iter().chain(prepared).chain(aside) {
            remove(&path).map_err(|error| (path, error))?;
        }
        self.remove_data()?;
        for path in small {
            remove(&path).map_err(|error| (path, error))?;
        }
        // It may have files of other programs.
        let _ = fs::remove_dir(&self.root);
        Ok(())
    }

    /// The prepared data of a job's program, from all its input.
    pub(crate) fn prepared(&self, job: u32) -> PathBuf {
        self.data.join(format!("prepared-{}", self.names[job as usize]))
    }

    /// The prepared data of a job's program, made before its first map; `None` if the program needs none.
    ///
    /// # Errors
    /// Input that cannot be read; an error of the file system.
    pub(crate) fn prepare(&self, job: &JobPlan, index: u32) -> io::Result<Option<PathBuf>> {
        if !job.prepare {
            return Ok(None);
        }
        let path = self.prepared(index);
        if !path.exists() {
            let beside = path.with_extension("part");
            prepare(&job.work, &job.inputs.maps, job.reducers, &beside).map_err(io::Error::other)?;
            fs::rename(&beside, &path)?;
        }
        Ok(Some(path))
    }

    /// Moves an attempt's output to its place, if it is not there yet, and removes the other files of the
    /// attempt. A file that cannot be removed stays until the job is done.
    ///
    /// # Errors
    /// An error of the file system; [`io::ErrorKind::NotFound`] if it is in neither place.
    pub(crate) fn commit(&self, job: &JobPlan, id: TaskId, number: u64) -> io::Result<()> {
        self.put(job, id, number)?;
        if job.is_final(id) {
            let _ = remove(&self.attempt(job, id, number));
        }
        Ok(())
    }

    /// Moves an attempt's output to its place, if it is not there yet. If the attempt writes a part file, its
    /// directory stays.
    ///
    /// # Errors
    /// An error of the file system; [`io::ErrorKind::NotFound`] if it is in neither place.
    pub(crate) fn put(&self, job: &JobPlan, id: TaskId, number: u64) -> io::Result<()> {
        let (from, to) = (self.attempt(job, id, number), self.committed(job, id));
        let is_final = job.is_final(id);
        let output = if is_final { from.join(job.part(id.task)) } else { from.clone() };
        let is_missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
        let mut moved = fs::rename(&output, &to);
        if moved.as_ref().is_err_and(is_missing)
            && output.exists()
            && let Some(parent) = to.parent()
        {
            // The first output of a job.
            fs::create_dir_all(parent)?;
            moved = fs::rename(&output, &to);
        }
        match moved {
            Err(e) if is_missing(&e) && to.exists() => Ok(()),
            other => other,
        }
    }

    /// The same with output that another machine wrote a moment ago, which may not be visible here at once.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub(crate) fn put_when_seen(&self, job: &JobPlan, id: TaskId, number: u64) -> io::Result<()> {
        let from = self.attempt(job, id, number);
        for _ in 0..LOOKS {
            match self.put(job, id, number) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => return other,
            }
            clock::pause(LOOK);
            // Read the directories again.
            for directory in from.ancestors().take(2) {
                let _ = fs::read_dir(directory).map(Iterator::count);
            }
        }
        self.put(job, id, number).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let from = from.display();
                let problem = format!(
                    "not found in {from}, where another machine has written it: all machines must share that \
                     directory"
                );
                io::Error::new(io::ErrorKind::NotFound, problem)
            }
            _ => error,
        })
    }

    /// Removes the prepared data of programs, except of these jobs: it belongs to other definitions or
    /// inputs.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn remove_prepared(&self, kept: impl Fn(u32) -> bool) -> io::Result<()> {
        let known: BTreeSet<PathBuf> =
            (0..self.names.len() as u32).filter(|&job| kept(job)).map(|job| self.prepared(job)).collect();
        self.all_prepared()?
            .iter()
            .filter(|path| !known.contains(*path))
            .try_for_each(|path| clear_away(path))
    }

    /// Removes the logs of attempts except these. Numbers do not distinguish them: each run counts from 0.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn remove_logs(&self, kept: &BTreeSet<PathBuf>) -> io::Result<()> {
        let entries = match fs::read_dir(self.logs()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if !kept.contains(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Moves the parts of a job whose tasks are all done to their places, where they replace those of earlier
    /// runs of the state directory, and marks the output as complete. Can be repeated after an interruption.
    ///
    /// # Errors
    /// An error of the file system; [`io::ErrorKind::NotFound`] if a part is in neither place.
    pub(crate) fn publish(job: &JobPlan, made: &FinishedJobs) -> io::Result<()> {
        let staged = staged(&job.output);
        // A part that is missing was moved here already.
        let moved: BTreeSet<String> =
            (0..job.parts()).map(|part| job.part(part)).filter(|name| !staged.join(name).exists()).collect();
        let directory = job.definition.output();
        // The mark comes last, and the record of the finished job after it.
        let is_whole = moved.len() == job.parts() as usize;
        let is_ours = |name: &String| {
            moved.contains(name) || made.owns(&directory, name) || is_whole && name == SUCCESS
        };
        if let Some(name) = others(&job.output)?.into_iter().find(|name| !is_ours(name)) {
            let problem =
                format!("found {name}, which no run of this state directory has made or which was changed");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        remove(&job.output.join(SUCCESS))?;
        for name in made.parts(&job.definition.output()).filter(|&name| !moved.contains(name)) {
            remove(&job.output.join(name))?;
        }
        for part in 0..job.parts() {
            let (from, to) = (staged.join(job.part(part)), job.output.join(job.part(part)));
            match fs::rename(&from, &to) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && to.exists() => {}
                other => other?,
            }
        }
        fs::write(job.output.join(SUCCESS), "")
    }

    /// Withdraws the parts of an interrupted publication, for a job with lost parts: their tasks run again,
    /// and no part is published until then. Removes lost parts.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn take_back(job: &JobPlan, is_lost: impl Fn(u32) -> bool) -> io::Result<()> {
        if job.output.join(SUCCESS).exists() {
            // The existing output is that of an earlier run.
            return Ok(());
        }
        for part in 0..job.parts() {
            let (staged, published) =
                (staged(&job.output).join(job.part(part)), job.output.join(job.part(part)));
            if is_lost(part) {
                remove(&published)?;
            } else if !staged.exists() {
                fs::rename(published, staged)?;
            }
        }
        Ok(())
    }

    /// Moves the committed maps of a finished job to the directory of attempts, which is cleared when a run
    /// resumes. Returns their new directory; `None` if they cannot be moved.
    pub(crate) fn set_aside(&self, job: u32) -> Option<PathBuf> {
        let aside = self.attempts().join(format!("maps-{}", self.names[job as usize]));
        fs::create_dir_all(self.attempts()).ok()?;
        fs::rename(self.maps(job), &aside).ok()?;
        Some(aside)
    }

    /// Removes all files that only served to make the output of a job. Returns a warning about the first file
    /// that cannot be removed: the output is complete without that.
    pub(crate) fn clear_up(&self, job: &JobPlan, index: u32) -> Option<String> {
        self.leftovers(job, index).remove()
    }

    /// What was only needed to make the output of a job.
    pub(crate) fn leftovers(&self, job: &JobPlan, index: u32) -> Leftovers {
        Leftovers {
            job: format!("{}/{}", job.flow, job.job),
            output: job.output.clone(),
            in_state: [self.maps(index), self.elsewhere(index), self.prepared(index)],
        }
    }
}

/// What was only needed to make the output of a job.
pub(crate) struct Leftovers {
    job: String,
    output: PathBuf,
    in_state: [PathBuf; 3],
}

impl Leftovers {
    /// As [`Layout::clear_up`].
    pub(crate) fn remove(self) -> Option<String> {
        let in_output = temporaries(&self.output).unwrap_or_default();
        let removed = in_output.into_iter().map(|path| (remove_busy(&path), path));
        let removed: Vec<_> = removed.chain(self.in_state.map(|path| (remove(&path), path))).collect();
        let (error, path) = removed.into_iter().find_map(|(removed, path)| Some((removed.err()?, path)))?;
        Some(format!(
            "{} is finished, but {} cannot be removed: {error}; no run needs it, so remove {} later",
            self.job,
            first_below(&path).display(),
            path.display()
        ))
    }
}

/// The first file on the way down from a path that is not a directory, or is an empty one.
fn first_below(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    while path.is_dir() && !path.is_symlink() {
        let Some(Ok(entry)) = fs::read_dir(&path).ok().and_then(|mut entries| entries.next()) else { break };
        path = entry.path();
    }
    path
}

/// The name of this machine; empty if unknown.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A flow or a job in the name of a log: unchanged if possible, and unique.
fn log_name(name: &str) -> String {
    let clean = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    if clean == name { clean } else { format!("{clean}-{}", &sha256(name.as_bytes())[..8]) }
}

#[cfg(test)]
mod tests {
    use slackline_model::PhaseKind;

    use super::*;
    use crate::store::journal::AttemptOutcome;

    /// A job whose only attempt has the first number of its run.
    fn kept(job: &str, ended: AttemptOutcome) -> KeptJob {
        let id = TaskId { job: 0, phase: PhaseKind::Map, task: 0 };
        let attempt = Attempt { number: 0, id, slot: 0, segment: 0, start: 0, began: 0, end: 1, ended };
        KeptJob {
            flow: "f".into(),
            job: job.into(),
            started: 7,
            maps: 1,
            reduces: 0,
            attempts: vec![attempt],
        }
    }

    #[test]
    fn logs_of_runs_with_equal_attempt_numbers_are_distinct() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.remove_logs(&BTreeSet::new()).unwrap();
        fs::create_dir_all(layout.logs()).unwrap();
        let jobs = [
            kept("a", AttemptOutcome::Killed),
            kept("b", AttemptOutcome::Lost(None)),
            kept("gone", AttemptOutcome::Killed),
        ];
        let all = layout.logs_of(&jobs, &[], &[], |_| true);
        for path in &all {
            fs::write(path, "said").unwrap();
        }
        let left = layout.logs_of(&jobs[..2], &[], &[], |_| true);
        layout.remove_logs(&left.iter().cloned().collect()).unwrap();
        assert_eq!(all.iter().map(|path| path.exists()).collect::<Vec<_>>(), [true, true, false]);
        assert_ne!(log_name("é"), log_name("ü"));
        let lost = layout.logs_of(&jobs, &[], &[], |attempt| attempt.ended.is_lost());
        assert_eq!(lost, left[1..]);
    }
}
