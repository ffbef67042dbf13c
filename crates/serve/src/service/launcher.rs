//! The threads that open runs: they read flow files, look up inputs, and find the finished jobs of earlier
//! runs.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use slackline::run::{
    Backend, Choices, EngineError, JobHistory, NewRun, Note, Request, Run, RunError, RunRecord, Sink,
};
use slackline_executor::store::log::LogError;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::{History, PhaseKind, WallTime};
use slackline_task::base::activity::{self, Duty, during};
use slackline_task::base::error::may_pass;
use slackline_task::base::files;

use crate::api::{Job, Phase};
use crate::lock;
use crate::service::flow_file::{deadlines, file_of, look, parameters};
use crate::service::message::Tell;
use crate::service::setup::Setup;
use crate::state::record::{Rerun, SubmissionSpec};
use crate::state::series::RunKey;
use crate::state::{FlowProgress, RunningSubmission, StateEvent, WorkItem};

/// The number of threads that open runs.
const OPENERS: usize = 4;

/// The most threads that open runs, while some are blocked.
const OPENERS_MAX: usize = 64;

/// The name of these threads, without their number.
pub(crate) const OPENER: &str = "opener";

/// The current history of task durations.
pub type Past = Arc<Mutex<Arc<JobHistory>>>;

/// The current machines that all runs share.
pub type Machines = Arc<Mutex<Vec<MachineDraft>>>;

/// An open run that the scheduler has not taken yet.
pub struct OpenedRun {
    pub run: Run,
    /// The known durations of its phases.
    pub known: History,
    /// The run for the forecaster.
    pub followed: NewRun,
}

/// Threads of the service that end with it.
pub(crate) type ThreadHandles = Arc<Mutex<Vec<JoinHandle<()>>>>;

/// By number.
pub type OpenedRuns = Arc<Mutex<BTreeMap<u64, OpenedRun>>>;

/// What opener threads need.
#[derive(Clone)]
pub(crate) struct Launcher {
    pub(crate) setup: Setup,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) past: Past,
    /// The machines of the engine.
    pub(crate) machines: Machines,
    /// Open runs, for the scheduler.
    pub(crate) readies: OpenedRuns,
}

impl Launcher {
    /// Does work items until all senders are gone, and reports their results.
    pub(crate) fn work(&self, errands: &Mutex<Receiver<WorkItem>>, tell: &dyn Fn(StateEvent)) {
        loop {
            let work_item = lock(errands).recv();
            let Ok(work_item) = work_item else { return };
            match work_item {
                WorkItem::Open(number, wanted) => {
                    tell(during("open submission", number, || self.open(number, &wanted)));
                }
                WorkItem::Look(number, wanted) => {
                    let found = during("look for the files of submission", number, || {
                        // The opening reports an unreadable file.
                        look(&wanted.awaited().unwrap_or_default())
                    });
                    tell(StateEvent::Files { number, found });
                }
                WorkItem::Read(number, wanted) => {
                    tell(StateEvent::Read { number, due: wanted.first_deadline() });
                }
                WorkItem::RemoveAside(before) => self.remove_aside(before),
            }
        }
    }

    /// Removes directories that were moved aside before a moment. A failed removal is retried later.
    fn remove_aside(&self, before: WallTime) {
        for gone in std::fs::read_dir(self.setup.paths.all_gone()).into_iter().flatten().flatten() {
            let name = gone.file_name();
            let moved = name.to_string_lossy().split('-').next().and_then(|at| at.parse().ok()).map(WallTime);
            if moved.is_none_or(|moved| moved < before) {
                let _ = during("remove", gone.path().display(), || files::remove(&gone.path()));
            }
        }
    }

    fn open(&self, number: u64, wanted: &SubmissionSpec) -> StateEvent {
        let mut unrunnable = UnrunnableFlows::default();
        match self.opened(number, wanted, &mut unrunnable) {
            Ok(opened) => {
                let run = progress(&opened.run);
                lock(&self.readies).insert(number, opened);
                StateEvent::Opened { number, run, unrunnable: unrunnable.0 }
            }
            Err(error) => {
                let is_final = !is_passing(&error);
                StateEvent::NotOpened { number, problem: error.to_string(), is_final }
            }
        }
    }

    fn opened(
        &self,
        number: u64,
        wanted: &SubmissionSpec,
        sink: &mut dyn Sink,
    ) -> Result<OpenedRun, RunError> {
        let invalid = |problem: String| RunError::from(EngineError::other(problem));
        let (setup, submit) = (&self.setup, &wanted.submit);
        let state = setup.paths.run(&RunKey::of(wanted));
        let document = submit.document.clone().into_bytes();
        let mut request = Request::new(file_of(submit), document, setup.policy.clone(), state);
        request.parameters = parameters(submit).map_err(invalid)?;
        request.metric = setup.metric;
        request.deadlines = deadlines(submit.deadlines.iter()).map_err(invalid)?;
        request.slowstart = setup.slowstart;
        request.attempts_max = setup.attempts_max;
        request.failure_policy = setup.failure_policy;
        request.directory = submit.directory.as_ref().map(PathBuf::from);
        request.since = Some(wanted.since.0);
        request.zone.clone_from(&submit.zone);
        if let Some((_, choice)) = &wanted.rerun {
            request.start_rerun(number, choices(choice))?;
        }
        if wanted.runs_all {
            request.start_time(wanted.since)?;
        }
        request.past = Some(lock(&self.past).clone());
        request.owner = Some(wanted.user.clone());
        request.beside_others = Some(lock(&self.machines).clone());
        let run = Run::open(self.backend.as_ref(), request, sink)?;
        let known = run.known()?;
        let followed = run.follow(&known);
        Ok(OpenedRun { run, known, followed })
    }
}

/// The jobs of a rerun.
fn choices(choice: &Rerun) -> Choices {
    match choice {
        Rerun::All => Choices::again(),
        Rerun::Failed => Choices::default(),
        Rerun::From(job) => {
            let mut choices = Choices::default();
            choices.from.push(job.clone());
            choices
        }
    }
}

/// Threads that open runs. Another one starts when one of them is blocked, so that a hung file system does
/// not stop the others.
pub(crate) struct LauncherPool {
    launcher: Launcher,
    to_open: Arc<Mutex<Receiver<WorkItem>>>,
    tell: Tell,
    started: AtomicUsize,
    threads: ThreadHandles,
}

impl LauncherPool {
    /// Starts the first threads.
    pub(crate) fn new(
        launcher: Launcher,
        to_open: Receiver<WorkItem>,
        tell: Tell,
        threads: ThreadHandles,
    ) -> Result<Self, String> {
        let (to_open, started) = (Arc::new(Mutex::new(to_open)), AtomicUsize::new(0));
        let pool = Self { launcher, to_open, tell, started, threads };
        (0..OPENERS).try_for_each(|_| pool.start())?;
        Ok(pool)
    }

    /// Starts another thread, up to `OPENERS_MAX`.
    pub(crate) fn start(&self) -> Result<(), String> {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        if number > OPENERS_MAX {
            return Ok(());
        }
        let (launcher, to_open, tell) = (self.launcher.clone(), self.to_open.clone(), self.tell.clone());
        let name = format!("{OPENER} {number}");
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
            activity::announce(name, Duty::Helper);
            launcher.work(&to_open, &*tell);
        });
        thread.map(|thread| lock(&self.threads).push(thread)).map_err(|error| error.to_string())
    }
}

/// Whether a retry may succeed without a change by the user.
fn is_passing(error: &RunError) -> bool {
    match error {
        // A service that runs with the engine of the run resumes it.
        RunError::Away(_)
        | RunError::File { .. }
        | RunError::Engine(EngineError::OtherEngine { .. } | EngineError::Passing(_)) => true,
        RunError::Engine(EngineError::File { problem, .. }) => may_pass(problem),
        RunError::Engine(EngineError::Log(error)) | RunError::History(error) => match error {
            // The path is not a regular file, or the file is larger than any log.
            LogError::File { problem, .. } => {
                !matches!(problem.kind(), ErrorKind::InvalidInput | ErrorKind::FileTooLarge)
            }
            error => matches!(error, LogError::Busy { .. }),
        },
        _ => false,
    }
}

#[derive(Default)]
struct UnrunnableFlows(Vec<(String, String)>);

impl Sink for UnrunnableFlows {
    fn note(&mut self, note: &Note<'_>) {
        if let Note::Unrunnable { flow, job, problem } = note {
            self.0.push(((*flow).to_owned(), format!("job {job}: {problem}")));
        }
    }
}

/// The progress of an open run.
fn progress(run: &Run) -> RunningSubmission {
    let record = run.record();
    let started = WallTime(record.started);
    let (done, failed) = (done(&record), failed(&record));
    let mut index = 0..;
    let flows = record.workload.flows.iter().map(|flow| FlowProgress {
        flow: flow.id.clone(),
        release: started.after_seconds(flow.release),
        deadline: run.due(&flow.id).map(WallTime),
        weight: flow.weight,
        jobs: flow.jobs.iter().zip(index.by_ref()).map(|(job, k)| job_of(k, job, &done, &failed)).collect(),
        reads: reads(flow),
        ..FlowProgress::default()
    });
    RunningSubmission::new(started, flows.collect())
}

/// The outputs of other flows that a flow reads, by flow and job.
fn reads(flow: &FlowDraft) -> Vec<(String, String)> {
    let mut reads: Vec<(String, String)> = Vec::new();
    for (other, job) in flow.foreign_inputs().filter(|(other, _)| *other != flow.id) {
        let read = (other.to_owned(), job.to_owned());
        if !reads.contains(&read) {
            reads.push(read);
        }
    }
    reads
}

fn job_of(index: u32, job: &JobDraft, done: &BTreeMap<(u32, bool), u64>, failed: &BTreeMap<u32, u64>) -> Job {
    let phase = |phase: &Option<PhaseDraft>, is_map| {
        let tasks = match phase.as_ref().map(|phase| &phase.tasks) {
            Some(TasksDraft::Each(each)) => each.len() as u64,
            _ => 0,
        };
        Phase { tasks, done: done.get(&(index, is_map)).copied().unwrap_or(0), running: 0 }
    };
    Job {
        job: job.id.clone(),
        after: job.after.clone(),
        maps: phase(&job.map, true),
        reduces: phase(&job.reduce, false),
        failed_attempts: failed.get(&index).copied().unwrap_or(0),
    }
}

/// The number of failed attempts of each job.
fn failed(record: &RunRecord<'_>) -> BTreeMap<u32, u64> {
    let mut failed: BTreeMap<u32, u64> = BTreeMap::new();
    for attempt in record.attempts {
        if matches!(attempt.ended, slackline::run::AttemptOutcome::Failed(_)) {
            *failed.entry(attempt.id.job).or_default() += 1;
        }
    }
    failed
}

/// The number of finished tasks of each phase, by job and `is_map`.
fn done(record: &RunRecord<'_>) -> BTreeMap<(u32, bool), u64> {
    let mut done: BTreeMap<(u32, bool), u64> = BTreeMap::new();
    for id in record.done() {
        *done.entry((id.job, id.phase == PhaseKind::Map)).or_default() += 1;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_a_user_has_to_repair_is_not_retried() {
        let file = |kind: ErrorKind| {
            let (path, problem) = ("out".to_owned(), kind.into());
            is_passing(&RunError::Engine(EngineError::File { path, problem }))
        };
        assert!(file(ErrorKind::StorageFull) && file(ErrorKind::Other));
        assert!(!file(ErrorKind::PermissionDenied) && !file(ErrorKind::NotADirectory));
    }
}
