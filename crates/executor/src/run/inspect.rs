//! Reads the state of a run from outside, whether the run is active, stopped, killed or finished. Nothing is
//! locked or changed.

use std::path::Path;
use std::time::UNIX_EPOCH;
use std::{fs, io};

use slackline_model::Profile;
use slackline_task::base::task_id::TaskId;

use crate::run::error::{EngineError, file};
use crate::spec::job_plan::JobPlan;
use crate::store::applications::{self, ExternalJob};
use crate::store::journal::{Attempt, Head, Journal, done_tasks};
use crate::store::layout::Layout;
use crate::store::machine_slots::WholeCluster;
use crate::store::pid_file::at_work;
use crate::store::run_schedule;
use crate::store::running_attempt::RunningAttempt;

/// The visible state of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunInspection {
    /// Where its files are.
    pub layout: Layout,
    /// The head of its journal. Its workload has the machines of all segments, as one cluster.
    pub head: Head,
    pub jobs: Vec<JobPlan>,
    /// All attempts that are recorded, by their numbers, on the slots of that cluster; then those that were
    /// successful on a cluster, if one runs on the run that will record them.
    pub attempts: Vec<Attempt>,
    /// Whether a process drives it.
    pub is_at_work: bool,
    /// Whether it ended, successfully or not, since the last record: its schedule exists, or no work was
    /// left. A run that was stopped or killed has not ended.
    pub has_ended: bool,
    /// When something was recorded the last time: microseconds since 1970.
    pub recorded: u64,
    /// The running attempts, as far as visible; empty if no process drives the run.
    pub at_work: Vec<RunningAttempt>,
    /// Its jobs on a cluster, those that earlier runs have done among them.
    pub there: Vec<ExternalJob>,
}

impl RunInspection {
    /// The policy of the last segment, if the run has recorded it.
    pub fn policy(&self) -> Option<&str> {
        self.head.last_segment().policy()
    }

    /// How its engine differs from machines that do everything at once; `None` if it does not.
    pub fn profile(&self) -> Option<Profile> {
        Profile::parse(self.head.setup.options.get("profile")?).ok()?
    }

    /// The fraction of a job's maps after which its reduces may take slots, in the last segment.
    pub fn slowstart(&self) -> f64 {
        self.head.last_segment().slowstart()
    }
}

/// Reads the run of a directory; `None` if there is none. O(bytes of the journal).
///
/// # Errors
/// A run of the first edition; a journal that is damaged or cannot be read.
pub fn inspect(state: &Path) -> Result<Option<RunInspection>, EngineError> {
    let layout = Layout::new(state);
    let journal = layout.journal();
    if !journal.exists() {
        return Ok(None);
    }
    let (content, is_at_work) = Journal::glance(&journal)?;
    let Some(head) = content.head else { return Ok(None) };
    let damaged = |problem| EngineError::Damaged { path: journal.display().to_string(), problem };
    let jobs = JobPlan::all(&head.workload, head.jobs.clone()).map_err(damaged)?;
    let is_known = |id: TaskId| jobs.get(id.job as usize).is_some_and(|job| id.task < job.tasks(id.phase));
    if let Some(attempt) = content.attempts.iter().find(|attempt| !is_known(attempt.id)) {
        return Err(damaged(format!("an attempt of an unknown task: {:?}", attempt.id)));
    }
    let last = content.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0);
    let recorded = head.started.saturating_add(last);
    // Of a run in which nothing was left to do there is no schedule.
    let is_over = || jobs.is_empty() || written(&layout.schedule()).is_ok_and(|at| at >= recorded);
    let has_ended = !is_at_work && is_over();
    let pids = || at_work(state).map_err(file(&layout.pids()));
    let mut at_work = if is_at_work { pids()? } else { Vec::new() };
    let mut there = applications::read(&layout.applications());
    let mut attempts = content.attempts;
    let recorded_tasks = done_tasks(&attempts);
    for job in &mut there {
        // Applications that no process drives are rerun.
        if !is_at_work || job.run != head.started {
            (job.failed, job.containers) = (false, 0);
            (job.made, job.at_work) = (Vec::new(), Vec::new());
        }
        let is_new = |id: TaskId| is_known(id) && !recorded_tasks.contains(&id);
        job.at_work.retain(|(id, _)| is_new(*id));
        attempts.extend(std::mem::take(&mut job.made).into_iter().filter(|made| is_new(made.id)));
        at_work.extend(job.at_work.iter().map(|&(id, since)| RunningAttempt::unnumbered(id, since)));
    }
    at_work.retain(|one| is_known(one.id));
    let last = head.last_segment();
    let whole = WholeCluster::of(&head.segments);
    for one in &mut at_work {
        if let Some(holder) = &mut one.holder {
            holder.slot = whole.slot_of(last, one.id.phase, holder.slot).unwrap_or(holder.slot);
        }
        one.since = run_schedule::by_date(&head.segments, one.since);
    }
    let mut head = head;
    (head.workload, attempts) = run_schedule::whole(&head.workload, &head.segments, &attempts);
    Ok(Some(RunInspection { layout, head, jobs, attempts, is_at_work, has_ended, recorded, at_work, there }))
}

/// When a file was written last: microseconds since 1970.
pub(super) fn written(path: &Path) -> io::Result<u64> {
    let since = fs::metadata(path)?.modified()?.duration_since(UNIX_EPOCH);
    Ok(since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
pub(super) mod tests {
    use slackline_model::PhaseKind;
    use slackline_model::draft::TasksDraft;
    use slackline_trace::{ImportOptions, read_workload};

    use super::*;
    use crate::spec::definition::Definition;
    use crate::spec::job_plan::{Inputs, KnownJob};
    use crate::store::journal::{AttemptOutcome, Segment, Setup};
    use slackline_task::process::spec::Outcome;

    const FLOW: &[u8] = b"slackline = 1\n[[flows]]\nid = 'f'\n[[flows.jobs]]\nid = 'j'\n\
                          run = { mapper = 'cat', inputs = ['in'], output = 'out' }\n";

    pub(crate) fn head() -> Head {
        let mut workload =
            read_workload("flow.toml", FLOW, Some("toml"), &ImportOptions::default()).unwrap().draft;
        workload.flows[0].jobs[0].map = Some(TasksDraft::Each(vec![1.0; 2]).into());
        let options = [("policy".to_owned(), "edf".to_owned())].into();
        let setup = Setup { version: "1".into(), directory: "/".into(), options, ..Setup::default() };
        let inputs = Inputs { maps: vec![Vec::new(); 2], ..Inputs::default() };
        let jobs = vec![KnownJob { inputs, definition: Definition::default() }];
        let segments = vec![Segment { options: setup.options.clone(), ..Segment::default() }];
        Head { setup, owner: "7-1".into(), started: 7, workload, jobs, kept: Vec::new(), segments }
    }

    pub(crate) fn attempt(task: u32) -> Attempt {
        let id = TaskId { job: 0, phase: PhaseKind::Map, task };
        let ended = AttemptOutcome::Done(Outcome::default());
        Attempt { number: u64::from(task), id, slot: 0, segment: 0, start: 5, began: 6, end: 9, ended }
    }

    #[test]
    fn an_active_run_is_read_up_to_its_last_whole_record_and_not_disturbed() {
        let dir = tempfile::tempdir().unwrap();
        assert!(inspect(dir.path()).unwrap().is_none());
        let layout = Layout::new(dir.path());
        let journal = Journal::open(&layout.journal()).unwrap();
        assert!(inspect(dir.path()).unwrap().is_none(), "it has not begun");
        journal.begin(&head()).unwrap();
        journal.record(&[attempt(0)]).unwrap();
        let seen = inspect(dir.path()).unwrap().unwrap();
        assert_eq!((seen.is_at_work, seen.has_ended, seen.policy()), (true, false, Some("edf")));
        assert_eq!(seen.attempts, [attempt(0)]);
        // Half a record is none yet, and stays for who writes it.
        let bytes = fs::read(layout.journal()).unwrap();
        journal.record(&[attempt(1)]).unwrap();
        let longer = fs::read(layout.journal()).unwrap();
        drop(journal);
        for end in bytes.len()..longer.len() {
            fs::write(layout.journal(), &longer[..end]).unwrap();
            let seen = inspect(dir.path()).unwrap().unwrap();
            assert_eq!((seen.is_at_work, seen.attempts.len(), seen.at_work.len()), (false, 1, 0));
            assert_eq!(fs::read(layout.journal()).unwrap().len(), end);
        }
    }

    #[test]
    fn a_run_has_ended_once_its_schedule_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        Journal::open(&layout.journal()).unwrap().begin(&head()).unwrap();
        assert!(!inspect(dir.path()).unwrap().unwrap().has_ended);
        fs::write(layout.schedule(), "{}").unwrap();
        assert!(inspect(dir.path()).unwrap().unwrap().has_ended);
        fs::write(layout.journal(), "another file").unwrap();
        assert!(inspect(dir.path()).is_err());
    }
}
