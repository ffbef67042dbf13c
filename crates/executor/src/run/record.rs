//! The data of an opened run.

use std::collections::BTreeSet;

use slackline_model::draft::JobDraft;
use slackline_model::{Draft, PhaseKind, Span};
use slackline_task::base::task_id::TaskId;
use slackline_trace::MachineCost;

use crate::run::reuse::Verdict;
use crate::spec::job_cost::{JobCost, JobHistory, JobName};
use crate::spec::preflight::Obstacle;
use crate::store::journal::{Attempt, AttemptOutcome, Segment, done_tasks};
use crate::store::machine_slots::MachineSlots;
use crate::store::run_schedule::{tasks, whole};

/// What resuming a run found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Tasks that were done already.
    pub done: usize,
    /// Attempts without an end, whose processes have ended now.
    pub cut_short: usize,
    /// Whether everything is rerun that earlier runs had done.
    pub starts_over: bool,
    /// How long no process drove it, as far as clocks can be trusted.
    pub paused: Span,
}

/// A job of the flow file, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobVerdict {
    pub flow: String,
    pub job: String,
    pub maps: u32,
    pub reduces: u32,
    /// What happens to it.
    pub verdict: Verdict,
    /// Whether it is of a run that was not finished and continues.
    pub resumes: bool,
}

/// Output that an earlier session recorded and that is not there any more as it was written: its task is
/// rerun, if its job is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostOutput {
    pub flow: String,
    pub job: String,
    /// The phase of the task.
    pub phase: PhaseKind,
    pub task: u32,
    /// Found and expected.
    pub problem: String,
}

/// The data of an opened run.
#[derive(Clone, Copy, Debug)]
pub struct RunRecord<'a> {
    /// The workload with all phases, task by task, with the durations that were estimated when it began. Jobs
    /// of [`TaskId`] are counted in its order.
    pub workload: &'a Draft,
    /// By job: how many bytes it reads.
    pub bytes_in: &'a [u64],
    /// When it started: microseconds since 1970.
    pub started: u64,
    /// All attempts that have ended, by their numbers.
    pub attempts: &'a [Attempt],
    /// The segments of the run, in order. Empty for an engine that does not record them: then all attempts
    /// have slots of the workload's machines.
    pub segments: &'a [Segment],
    /// What opening it found.
    pub recovered: Recovery,
    /// What happens to the jobs of the flow file, in its order.
    pub verdicts: &'a [JobVerdict],
    /// Missing or changed output of earlier sessions; empty if the engine does not check.
    pub lost: &'a [LostOutput],
    /// What prevents unfinished jobs from running; their flows have failed from the start.
    pub obstacles: &'a [Obstacle],
    /// A message for the user about how memory limits of commands are enforced; `None` if no command has a
    /// limit, or the engine has nothing to report.
    pub memory: Option<&'a str>,
}

impl<'a> RunRecord<'a> {
    /// A run of which no more is known.
    pub fn new(workload: &'a Draft, started: u64, attempts: &'a [Attempt]) -> Self {
        Self {
            workload,
            bytes_in: &[],
            started,
            attempts,
            segments: &[],
            recovered: Recovery::default(),
            verdicts: &[],
            lost: &[],
            obstacles: &[],
            memory: None,
        }
    }

    /// The tasks that are done. O(attempts · log tasks).
    pub fn done(&self) -> BTreeSet<TaskId> {
        done_tasks(self.attempts)
    }

    /// The flows that cannot be run.
    pub fn unrunnable(&self) -> BTreeSet<String> {
        let flows = self.workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(|_| &flow.id));
        let flows: Vec<&String> = flows.collect();
        self.obstacles.iter().map(|obstacle| flows[obstacle.job].clone()).collect()
    }

    /// The costs of the finished jobs, for later runs. O(tasks + attempts).
    pub fn finished_jobs(&self) -> JobHistory {
        let (workload, attempts) = whole(self.workload, self.segments, self.attempts);
        let places = MachineSlots::of(&workload.machines);
        let jobs = workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(|job| (&flow.id, job)));
        let jobs: Vec<(&String, &JobDraft)> = jobs.collect();
        let mut costs = vec![JobCost::default(); jobs.len()];
        for attempt in &attempts {
            let AttemptOutcome::Done(outcome) = &attempt.ended else { continue };
            let (id, cost) = (attempt.id, &mut costs[attempt.id.job as usize]);
            let took = MachineCost::of(id.phase, attempt.micros());
            cost.add(took, places.at(id.phase, attempt.slot).map(|place| place.group));
            let is_final = id.phase == PhaseKind::Reduce || jobs[id.job as usize].1.reduce.is_none();
            cost.bytes_out += if is_final { outcome.counts.bytes_out } else { 0 };
        }
        let mut finished = JobHistory::new();
        for ((index, (flow, job)), cost) in jobs.into_iter().enumerate().zip(costs) {
            let [maps, reduces] = [&job.map, &job.reduce].map(|phase| phase.as_ref().map_or(0, tasks));
            if (cost.maps, cost.reduces) == (maps as u64, reduces as u64) {
                let bytes_in = self.bytes_in.get(index).copied().unwrap_or(0);
                let known = finished.entry(JobName::new(flow, &job.id)).or_default();
                *known = std::mem::take(known).and(&JobCost { bytes_in, ..cost });
            }
        }
        finished
    }
}
