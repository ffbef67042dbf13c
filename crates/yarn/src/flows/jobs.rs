//! The jobs of a run as applications: when to submit them, and which of their tasks have finished.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::path::{Path, PathBuf};

use slackline_executor::engine::external_runs::tasks::FinishedTask;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_executor::store::applications::ExternalJob;
use slackline_model::{PhaseKind, Time};
use slackline_task::base::task_id::TaskId;
use slackline_task::process::report::Report;

use crate::flows::attempt_reports::{AttemptReport, ReportReader};
use crate::flows::program::Program;
use crate::rest::id::{AppId, ContainerId};

/// The progress of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobStage {
    /// The driver has started none of its tasks, or the AM limit is reached.
    Waiting,
    /// Submitted, without an observed application.
    Submitted,
    /// Its application.
    Running(AppId),
    /// Its output is complete.
    Finished,
    /// It failed for good.
    Failed,
}

/// A retry, while a file system does not answer.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    /// The time of the next try.
    pub(super) next: Time,
    /// The time after which it fails for good.
    pub(super) until: Time,
    /// The last error.
    pub(super) problem: String,
}

/// When the application of a job reached each step.
#[derive(Debug, Default)]
pub(super) struct AppTimes {
    pub(super) submitted: Option<Time>,
    /// When its AM got a container, and when it began to request others.
    pub(super) am_started: [Option<Time>; 2],
    /// An accepted application without an AM, and since when.
    pub(super) accepted: Option<(AppId, Time)>,
    pub(super) wait_is_explained: bool,
}

#[derive(Debug)]
pub(super) struct FlowJob {
    pub(super) stage: JobStage,
    /// The name of its submission; empty before the first.
    pub(super) ticket: String,
    /// The directory of its files, which are kept until it finishes.
    pub(super) directory: PathBuf,
    pub(super) submissions: u32,
    /// The priority of its application.
    pub(super) priority: u64,
    pub(super) reports: ReportReader,
    /// The poll at which its reports were read last.
    pub(super) read_at: u32,
    /// The attempt that finished each task.
    pub(super) made: BTreeMap<(PhaseKind, u32), AttemptReport>,
    /// When YARN granted its containers.
    pub(super) granted: BTreeMap<ContainerId, Time>,
    /// When observers saw its tasks start.
    pub(super) started: BTreeMap<(PhaseKind, u32), Time>,
    pub(super) app_times: AppTimes,
    /// Failures of each task.
    pub(super) failures: BTreeMap<(PhaseKind, u32), u32>,
    /// The time limit for reports of an application that has succeeded.
    pub(super) late: Option<Time>,
    /// Since when its submission is unconfirmed, and the error.
    pub(super) unconfirmed: Option<(Time, String)>,
    /// A retry of its submission or of its publication.
    pub(super) retry: Option<Retry>,
    /// Why its reports cannot be read.
    pub(super) read_problem: Option<String>,
    /// The error of the last attempt that failed.
    pub(super) last_failure: Option<String>,
    /// The program, for a job with a jar.
    pub(super) program: Option<Program>,
}

/// By job number.
#[derive(Debug, Default)]
pub(super) struct Jobs(BTreeMap<u32, FlowJob>);

impl Jobs {
    pub(super) fn insert(&mut self, job: u32, own: FlowJob) {
        self.0.insert(job, own);
    }

    pub(super) fn remove(&mut self, job: u32) -> Option<FlowJob> {
        self.0.remove(&job)
    }

    pub(super) fn get_mut(&mut self, job: u32) -> Option<&mut FlowJob> {
        self.0.get_mut(&job)
    }

    pub(super) fn numbers(&self) -> Vec<u32> {
        self.0.keys().copied().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &FlowJob)> + Clone {
        self.0.iter().map(|(&job, own)| (job, own))
    }

    /// Unfinished jobs, with the applications of those that have one.
    pub(super) fn open_apps(&self) -> BTreeMap<u32, Option<AppId>> {
        let open = self.iter().filter(|(_, own)| own.stage != JobStage::Finished);
        open.map(|(job, own)| (job, own.app())).collect()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut FlowJob)> {
        self.0.iter_mut().map(|(&job, own)| (job, own))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &FlowJob> {
        self.0.values()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut FlowJob> {
        self.0.values_mut()
    }
}

impl Index<u32> for Jobs {
    type Output = FlowJob;

    fn index(&self, job: u32) -> &FlowJob {
        &self.0[&job]
    }
}

impl IndexMut<u32> for Jobs {
    fn index_mut(&mut self, job: u32) -> &mut FlowJob {
        self.0.get_mut(&job).expect("invariant: a run has its jobs as long as it is there")
    }
}

impl FlowJob {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            stage: JobStage::Waiting,
            ticket: String::new(),
            directory,
            submissions: 0,
            priority: 0,
            reports: ReportReader::default(),
            read_at: 0,
            made: BTreeMap::new(),
            granted: BTreeMap::new(),
            started: BTreeMap::new(),
            app_times: AppTimes::default(),
            failures: BTreeMap::new(),
            late: None,
            unconfirmed: None,
            retry: None,
            read_problem: None,
            last_failure: None,
            program: None,
        }
    }

    /// The directory for the attempts of its submission.
    pub(super) fn destination(&self) -> PathBuf {
        self.directory.join(&self.ticket).join("attempts")
    }

    /// Its output is complete: forgets its attempts.
    pub(super) fn end(&mut self) {
        *self = Self { stage: JobStage::Finished, ..Self::new(std::mem::take(&mut self.directory)) };
    }

    /// Its progress for observers, without applications and containers.
    pub(super) fn progress(&self, index: u32) -> ExternalJob {
        let is_reported_done =
            |task| self.program.as_ref().is_some_and(|program| program.reported_done.contains(task));
        let open =
            self.started.iter().filter(|(task, _)| !self.made.contains_key(task) && !is_reported_done(task));
        let failed = self.stage == JobStage::Failed;
        ExternalJob {
            submitted: self.app_times.submitted.map(|at| at.0),
            am: self.app_times.am_started.map(|at| at.map(|at| at.0)),
            failed,
            at_work: open
                .filter(|_| !failed)
                .map(|(&(phase, task), at)| (TaskId { job: index, phase, task }, at.0))
                .collect(),
            ..ExternalJob::default()
        }
    }

    pub(super) fn app(&self) -> Option<AppId> {
        match self.stage {
            JobStage::Running(app) => Some(app),
            _ => None,
        }
    }

    /// Whether a new application may be its own. A program has several, one after the other.
    pub(super) fn accepts_app(&self) -> bool {
        matches!(self.stage, JobStage::Waiting | JobStage::Submitted) || self.runs_program()
    }

    /// Whether a retry is scheduled for later.
    pub(super) fn waits_to_retry(&self, now: Time) -> bool {
        self.retry.as_ref().is_some_and(|retry| now < retry.next)
    }

    /// Whether its program runs, or has ended and its output is not checked yet.
    pub(super) fn runs_program(&self) -> bool {
        self.program.is_some() && !matches!(self.stage, JobStage::Finished | JobStage::Failed)
    }

    /// Whether its program has a process, or had one until the last poll.
    pub(super) fn has_program(&self) -> bool {
        let has_process = self.program.as_ref().is_some_and(|program| program.process.is_some());
        has_process && self.stage != JobStage::Finished
    }

    /// Finished tasks of a phase.
    pub(super) fn done(&self, kind: PhaseKind) -> u32 {
        self.made.keys().filter(|(phase, _)| *phase == kind).count() as u32
    }

    /// Whether all tasks have finished.
    pub(super) fn is_complete(&self, plan: &JobPlan) -> bool {
        self.made.len() as u64 == u64::from(plan.maps()) + u64::from(plan.reducers)
    }

    /// Whether a container has finished its task.
    pub(super) fn has_finished(&self, container: ContainerId) -> bool {
        self.stage == JobStage::Finished || self.made.values().any(|made| made.container == Some(container))
    }
}

/// The finished tasks of a job, in the order of their ends. The clocks of nodes differ: a reduce starts after
/// all maps have ended, so no map may end later. O(tasks log tasks).
pub(super) fn by_end(
    made: &BTreeMap<(PhaseKind, u32), AttemptReport>,
) -> Vec<((PhaseKind, u32), AttemptReport)> {
    let reduces = made.iter().filter(|((kind, _), _)| *kind == PhaseKind::Reduce);
    let first = reduces.map(|(_, reduce)| reduce.started).min().unwrap_or(u64::MAX);
    let mut tasks: Vec<((PhaseKind, u32), AttemptReport)> =
        made.iter().map(|(task, attempt)| (*task, attempt.clone())).collect();
    for (_, map) in tasks.iter_mut().filter(|((kind, _), _)| *kind == PhaseKind::Map) {
        map.ended = map.ended.min(first);
        map.started = map.started.min(map.ended);
    }
    tasks.sort_by_key(|(task, attempt)| (attempt.ended, *task));
    tasks
}

/// The record of a finished task. `place` finds a slot on its host.
pub(super) fn recorded_task(
    job: &FlowJob,
    id: TaskId,
    attempt: &AttemptReport,
    since: impl Fn(u64) -> Time,
    place: &mut SlotTimeline,
) -> Option<FinishedTask> {
    let Report::Done(outcome) = &attempt.report else { return None };
    let (began, end) = (since(attempt.started), since(attempt.ended));
    let granted = attempt.container.and_then(|container| job.granted.get(&container)).copied();
    let start = granted.unwrap_or(began).min(began);
    let (slot, start) = place.take(&attempt.host, start, end);
    Some(FinishedTask {
        id,
        slot,
        start,
        began: began.max(start),
        end: end.max(start),
        outcome: outcome.clone(),
        part: attempt.part.clone(),
    })
}

/// The recorded intervals of slots.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotTimeline {
    /// By host: the first slot and the number of slots.
    hosts: BTreeMap<String, (u32, u32)>,
    /// By slot: intervals in the order of their starts.
    held: BTreeMap<u32, BTreeMap<Time, Time>>,
}

impl SlotTimeline {
    /// The slots of these hosts, one host after the other.
    pub(super) fn new<'a>(hosts: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let (mut places, mut first) = (Self::default(), 0);
        for (host, count) in hosts {
            places.hosts.insert(host.to_owned(), (first, count));
            first += count;
        }
        places
    }

    /// Records an interval of a slot.
    pub(super) fn hold(&mut self, slot: u32, start: Time, end: Time) {
        self.held.entry(slot).or_default().insert(start, end.max(start));
    }

    /// Finds a slot of a host for an interval, and its start there: the slot may become free a little later,
    /// since clocks of hosts differ.
    pub(super) fn take(&mut self, host: &str, start: Time, end: Time) -> (u32, Time) {
        let all = (0, self.hosts.values().map(|(_, count)| count).sum());
        let (first, count) = self.hosts.get(host).copied().unwrap_or(all);
        let until = |slot: u32| {
            let before = self.held.get(&slot).and_then(|held| held.range(..end.max(start)).next_back());
            before.map_or(Time::ZERO, |(_, &until)| until)
        };
        let fits = (first..first + count).find(|&slot| until(slot) <= start);
        let slot = fits.or_else(|| (first..first + count).min_by_key(|&slot| until(slot))).unwrap_or(0);
        let start = start.max(until(slot));
        self.hold(slot, start, end);
        (slot, start)
    }
}

pub(super) fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

#[cfg(test)]
mod tests {
    use slackline_task::process::spec::Outcome;

    use super::*;
    use crate::rest::id::{TaskAttemptId, TaskId as Task};

    /// An attempt that was running at that time.
    fn attempt(kind: PhaseKind, (started, ended): (u64, u64)) -> AttemptReport {
        let task = Task { app: AppId { cluster: 1, number: 1 }, kind, number: 0 };
        AttemptReport {
            attempt: TaskAttemptId { task, number: 0 },
            container: None,
            host: String::new(),
            started,
            ended,
            report: Report::Done(Outcome::default()),
            part: None,
        }
    }

    #[test]
    fn no_map_ends_after_a_reduce_computes() {
        let (map, reduce) = (PhaseKind::Map, PhaseKind::Reduce);
        let made = BTreeMap::from([
            ((map, 0), attempt(PhaseKind::Map, (10, 20))),
            // The clock of its node is ahead.
            ((map, 1), attempt(PhaseKind::Map, (25, 45))),
            ((map, 2), attempt(PhaseKind::Map, (60, 70))),
            ((reduce, 0), attempt(PhaseKind::Reduce, (40, 50))),
            ((reduce, 1), attempt(PhaseKind::Reduce, (30, 55))),
        ]);
        let times: Vec<_> =
            by_end(&made).into_iter().map(|(task, it)| (task, it.started, it.ended)).collect();
        let expected = [
            ((map, 0), 10, 20),
            ((map, 1), 25, 30),
            ((map, 2), 30, 30),
            ((reduce, 0), 40, 50),
            ((reduce, 1), 30, 55),
        ];
        assert_eq!(times, expected);
    }

    #[test]
    fn tasks_are_recorded_on_slots_of_their_hosts_that_were_free() {
        let mut places = SlotTimeline::new([("a", 2), ("b", 1)]);
        let mut take = |host, start, end| places.take(host, Time(start), Time(end));
        assert_eq!(take("b", 0, 10), (2, Time(0)));
        assert_eq!(take("a", 0, 10), (0, Time(0)));
        assert_eq!(take("a", 5, 8), (1, Time(5)));
        assert_eq!(take("a", 8, 12), (1, Time(8)));
        // A clock that is a little ahead.
        assert_eq!(take("b", 9, 20), (2, Time(10)));
        assert_eq!(take("b", 12, 13), (2, Time(20)));
    }
}
