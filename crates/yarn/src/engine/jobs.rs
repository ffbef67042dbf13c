//! The jobs of a run as applications: what is submitted when, and what of it is done.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::path::{Path, PathBuf};

use slackline_executor::engine::external_runs::tasks::FinishedTask;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_executor::store::applications::ExternalJob;
use slackline_model::{PhaseKind, Time};
use slackline_task::base::task_id::TaskId;
use slackline_task::process::report::Report;

use super::program::Program;
use super::reports::{AttemptEnded, Reports};
use crate::id::{AppId, ContainerId};

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The driver has started none of its tasks, or it has to wait for others' ApplicationMasters.
    Waiting,
    /// It was submitted, or is being submitted; no application of it was seen.
    Submitted,
    /// This application runs it.
    Runs(AppId),
    /// Its output is complete.
    Done,
    /// It failed for good.
    Failed,
}

/// What is tried again, as a file system does not answer.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    /// When it is tried next.
    pub(super) next: Time,
    /// When it has failed for good.
    pub(super) until: Time,
    /// What was said last.
    pub(super) problem: String,
}

#[derive(Debug)]
pub(super) struct OwnJob {
    pub(super) stage: Stage,
    /// The name of its submission; empty before there is one.
    pub(super) ticket: String,
    /// Where its files are, which are kept until it is done.
    pub(super) directory: PathBuf,
    /// How often it was submitted.
    pub(super) submissions: u32,
    /// The priority its application has.
    pub(super) priority: u64,
    pub(super) reports: Reports,
    /// The look at which they were read last.
    pub(super) read_at: u32,
    /// By task: the attempt that did it.
    pub(super) made: BTreeMap<(PhaseKind, u32), AttemptEnded>,
    /// When containers of it were granted.
    pub(super) granted: BTreeMap<ContainerId, Time>,
    /// Tasks that observers were told of as started, and when.
    pub(super) started: BTreeMap<(PhaseKind, u32), Time>,
    /// When it was submitted, and since when its ApplicationMaster has a container, and asks for others.
    pub(super) submitted: Option<Time>,
    pub(super) master: [Option<Time>; 2],
    /// The application that YARN has accepted and that has no ApplicationMaster, and since when.
    pub(super) accepted: Option<(AppId, Time)>,
    /// Whether a warning has given the reason.
    pub(super) wait_is_explained: bool,
    /// How often each task failed.
    pub(super) failures: BTreeMap<(PhaseKind, u32), u32>,
    /// Its application has succeeded, and until then its reports may be seen.
    pub(super) late: Option<Time>,
    /// Since when nobody knows whether it was submitted, and why.
    pub(super) doubt: Option<(Time, String)>,
    /// What is tried again: to submit it, or to publish its output.
    pub(super) retry: Option<Retry>,
    /// Why its reports cannot be read.
    pub(super) unread: Option<String>,
    /// What the last attempt said that failed.
    pub(super) complaint: Option<String>,
    /// The program that it is, of one that submits its applications itself.
    pub(super) program: Option<Program>,
}

/// Jobs by their numbers.
#[derive(Debug, Default)]
pub(super) struct Jobs(BTreeMap<u32, OwnJob>);

impl Jobs {
    pub(super) fn insert(&mut self, job: u32, own: OwnJob) {
        self.0.insert(job, own);
    }

    pub(super) fn remove(&mut self, job: u32) -> Option<OwnJob> {
        self.0.remove(&job)
    }

    pub(super) fn get_mut(&mut self, job: u32) -> Option<&mut OwnJob> {
        self.0.get_mut(&job)
    }

    pub(super) fn numbers(&self) -> Vec<u32> {
        self.0.keys().copied().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &OwnJob)> + Clone {
        self.0.iter().map(|(&job, own)| (job, own))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut OwnJob)> {
        self.0.iter_mut().map(|(&job, own)| (job, own))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &OwnJob> {
        self.0.values()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut OwnJob> {
        self.0.values_mut()
    }
}

impl Index<u32> for Jobs {
    type Output = OwnJob;

    fn index(&self, job: u32) -> &OwnJob {
        &self.0[&job]
    }
}

impl IndexMut<u32> for Jobs {
    fn index_mut(&mut self, job: u32) -> &mut OwnJob {
        self.0.get_mut(&job).expect("invariant: a run has its jobs as long as it is there")
    }
}

impl OwnJob {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            stage: Stage::Waiting,
            ticket: String::new(),
            directory,
            submissions: 0,
            priority: 0,
            reports: Reports::default(),
            read_at: 0,
            made: BTreeMap::new(),
            granted: BTreeMap::new(),
            started: BTreeMap::new(),
            submitted: None,
            master: [None; 2],
            accepted: None,
            wait_is_explained: false,
            failures: BTreeMap::new(),
            late: None,
            doubt: None,
            retry: None,
            unread: None,
            complaint: None,
            program: None,
        }
    }

    /// Where the attempts of its submission write.
    pub(super) fn destination(&self) -> PathBuf {
        self.directory.join(&self.ticket).join("attempts")
    }

    /// Its output is complete; what is known of its attempts is of no use any more.
    pub(super) fn end(&mut self) {
        *self = Self { stage: Stage::Done, ..Self::new(std::mem::take(&mut self.directory)) };
    }

    /// What those who look on from outside are told of it, beside its applications and containers.
    pub(super) fn there(&self, index: u32) -> ExternalJob {
        let is_told_done = |task| self.program.as_ref().is_some_and(|program| program.told.contains(task));
        let open =
            self.started.iter().filter(|(task, _)| !self.made.contains_key(task) && !is_told_done(task));
        let failed = self.stage == Stage::Failed;
        ExternalJob {
            submitted: self.submitted.map(|at| at.0),
            master: self.master.map(|at| at.map(|at| at.0)),
            failed,
            at_work: open
                .filter(|_| !failed)
                .map(|(&(phase, task), at)| (TaskId { job: index, phase, task }, at.0))
                .collect(),
            ..ExternalJob::default()
        }
    }

    /// The application that runs it.
    pub(super) fn app(&self) -> Option<AppId> {
        match self.stage {
            Stage::Runs(app) => Some(app),
            _ => None,
        }
    }

    /// Whether an application that is seen may be its own. A program has one after the other.
    pub(super) fn may_get_app(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Submitted) || self.runs_program()
    }

    /// Whether it has to wait until something is tried again.
    pub(super) fn waits_to_retry(&self, now: Time) -> bool {
        self.retry.as_ref().is_some_and(|retry| now < retry.next)
    }

    /// Whether a program of it goes on, or has ended and nothing is known yet of its output.
    pub(super) fn runs_program(&self) -> bool {
        self.program.is_some() && !matches!(self.stage, Stage::Done | Stage::Failed)
    }

    /// Whether there is a process of its program, or was until the last look.
    pub(super) fn has_program(&self) -> bool {
        let has_process = self.program.as_ref().is_some_and(|program| program.process.is_some());
        has_process && self.stage != Stage::Done
    }

    /// How many tasks of a phase are done.
    pub(super) fn done(&self, kind: PhaseKind) -> u32 {
        self.made.keys().filter(|(phase, _)| *phase == kind).count() as u32
    }

    /// Whether all tasks are done.
    pub(super) fn is_made(&self, plan: &JobPlan) -> bool {
        self.made.len() as u64 == u64::from(plan.maps()) + u64::from(plan.reducers)
    }

    /// Whether a container has done its task.
    pub(super) fn is_well(&self, container: ContainerId) -> bool {
        self.stage == Stage::Done || self.made.values().any(|made| made.container == Some(container))
    }
}

/// The tasks of a job that are done, in the order of their ends. Clocks of nodes differ: a reduce is at work when all maps
/// have ended, so no map has ended later. O(tasks log tasks).
pub(super) fn in_order(
    made: &BTreeMap<(PhaseKind, u32), AttemptEnded>,
) -> Vec<((PhaseKind, u32), AttemptEnded)> {
    let reduces = made.iter().filter(|((kind, _), _)| *kind == PhaseKind::Reduce);
    let first = reduces.map(|(_, reduce)| reduce.started).min().unwrap_or(u64::MAX);
    let mut tasks: Vec<((PhaseKind, u32), AttemptEnded)> =
        made.iter().map(|(task, attempt)| (*task, attempt.clone())).collect();
    for (_, map) in tasks.iter_mut().filter(|((kind, _), _)| *kind == PhaseKind::Map) {
        map.ended = map.ended.min(first);
        map.started = map.started.min(map.ended);
    }
    tasks.sort_by_key(|(task, attempt)| (attempt.ended, *task));
    tasks
}

/// A task that was done, as the run records it. `place` finds a slot for it on its host.
pub(super) fn made_task(
    (job, index): (&OwnJob, u32),
    ((kind, task), attempt): ((PhaseKind, u32), &AttemptEnded),
    since: impl Fn(u64) -> Time,
    place: &mut Places,
) -> Option<FinishedTask> {
    let Report::Done(outcome) = &attempt.report else { return None };
    let (began, end) = (since(attempt.started), since(attempt.ended));
    let granted = attempt.container.and_then(|container| job.granted.get(&container)).copied();
    let start = granted.unwrap_or(began).min(began);
    let (slot, start) = place.take(&attempt.host, (start, end));
    Some(FinishedTask {
        id: TaskId { job: index, phase: kind, task },
        slot,
        start,
        began: began.max(start),
        end: end.max(start),
        outcome: outcome.clone(),
        part: attempt.part.clone(),
    })
}

/// Which slots of which hosts were held until when, as it is recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// By host: its first slot, and how many it has.
    hosts: BTreeMap<String, (u32, u32)>,
    /// By slot: the intervals, in the order of their starts.
    held: BTreeMap<u32, BTreeMap<Time, Time>>,
}

impl Places {
    /// The slots of these hosts, one host after the other.
    pub(super) fn new<'a>(hosts: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let (mut places, mut first) = (Self::default(), 0);
        for (host, count) in hosts {
            places.hosts.insert(host.to_owned(), (first, count));
            first += count;
        }
        places
    }

    /// A slot was held.
    pub(super) fn hold(&mut self, slot: u32, (start, end): (Time, Time)) {
        self.held.entry(slot).or_default().insert(start, end.max(start));
    }

    /// A slot of a host for an interval, and from when on it is free: clocks of hosts differ a little.
    pub(super) fn take(&mut self, host: &str, (start, end): (Time, Time)) -> (u32, Time) {
        let all = (0, self.hosts.values().map(|(_, count)| count).sum());
        let (first, count) = self.hosts.get(host).copied().unwrap_or(all);
        let until = |slot: u32| {
            let before = self.held.get(&slot).and_then(|held| held.range(..end.max(start)).next_back());
            before.map_or(Time::ZERO, |(_, &until)| until)
        };
        let fits = (first..first + count).find(|&slot| until(slot) <= start);
        let slot = fits.or_else(|| (first..first + count).min_by_key(|&slot| until(slot))).unwrap_or(0);
        let start = start.max(until(slot));
        self.hold(slot, (start, end));
        (slot, start)
    }
}

/// The URI of a local file.
pub(super) fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

#[cfg(test)]
mod tests {
    use slackline_task::process::spec::Outcome;

    use super::*;
    use crate::id::{TaskAttemptId, TaskId as Task, TaskKind};

    /// An attempt that was at work at that time.
    fn attempt(kind: TaskKind, (started, ended): (u64, u64)) -> AttemptEnded {
        let task = Task { app: AppId { cluster: 1, number: 1 }, kind, number: 0 };
        AttemptEnded {
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
    fn no_map_ends_after_a_reduce_is_at_work() {
        let (map, reduce) = (PhaseKind::Map, PhaseKind::Reduce);
        let made = BTreeMap::from([
            ((map, 0), attempt(TaskKind::Map, (10, 20))),
            // The clock of its node is ahead.
            ((map, 1), attempt(TaskKind::Map, (25, 45))),
            ((map, 2), attempt(TaskKind::Map, (60, 70))),
            ((reduce, 0), attempt(TaskKind::Reduce, (40, 50))),
            ((reduce, 1), attempt(TaskKind::Reduce, (30, 55))),
        ]);
        let times: Vec<_> =
            in_order(&made).into_iter().map(|(task, it)| (task, it.started, it.ended)).collect();
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
        let mut places = Places::new([("a", 2), ("b", 1)]);
        let at = |start, end| (Time(start), Time(end));
        assert_eq!(places.take("b", at(0, 10)), (2, Time(0)));
        assert_eq!(places.take("a", at(0, 10)), (0, Time(0)));
        assert_eq!(places.take("a", at(5, 8)), (1, Time(5)));
        assert_eq!(places.take("a", at(8, 12)), (1, Time(8)));
        // A clock that is a little ahead.
        assert_eq!(places.take("b", at(9, 20)), (2, Time(10)));
        assert_eq!(places.take("b", at(12, 13)), (2, Time(20)));
    }
}
