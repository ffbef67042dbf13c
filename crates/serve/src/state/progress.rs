//! The progress of a submission whose flows are scheduled.

use slackline_model::WallTime;

use crate::api::{self, FlowStatus};
use crate::timestamp;

/// A submission whose flows are scheduled.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningSubmission {
    /// The start of its run.
    pub(super) started: WallTime,
    /// The time from which its flows could start: the run was open and not held.
    pub(super) could_start: WallTime,
    /// Whether the whole submission has been held since its run was opened.
    pub(super) is_held_so_far: bool,
    pub(super) flows: Vec<FlowProgress>,
    /// By job number: the index of its flow, and its index in that flow.
    jobs: Vec<(usize, usize)>,
}

/// The progress of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowProgress {
    pub flow: String,
    pub(crate) state: FlowStatus,
    pub release: WallTime,
    pub deadline: Option<WallTime>,
    pub weight: f64,
    /// The jobs, numbered in `RunEvent` from the first flow of the submission on.
    pub jobs: Vec<api::Job>,
    /// The outputs of other flows of the submission that this flow reads, by flow and job. No task of the
    /// flow starts before all of them exist.
    pub reads: Vec<(String, String)>,
    pub(crate) completion: Option<WallTime>,
    pub(crate) expected: Option<FlowEstimate>,
    pub(crate) cause: Option<String>,
    /// Whether a task of the flow has started.
    pub(crate) has_begun: bool,
    /// Whether the last forecast estimated that the flow misses its deadline.
    pub(crate) is_likely_late: bool,
}

impl FlowProgress {
    /// The number of unfinished tasks and the estimated completion, as the rest of a sentence.
    pub(super) fn left(&self, now: WallTime) -> String {
        let counts = self.counts();
        let tasks = match counts.tasks.saturating_sub(counts.done) {
            1 => "1 task is unfinished".to_owned(),
            open => format!("{open} tasks are unfinished"),
        };
        let then =
            self.expected.and_then(|expected| expected.completion).filter(|&completion| completion > now);
        let then = then
            .map_or_else(String::new, |then| format!("; it is predicted to finish at {}", timestamp(then)));
        format!(", {tasks}{then}")
    }

    pub(super) fn phases(&self) -> impl Iterator<Item = api::Phase> + '_ {
        self.jobs.iter().flat_map(|job| [job.maps, job.reduces])
    }

    /// The numbers of all, finished and running tasks.
    pub(super) fn counts(&self) -> api::Phase {
        self.phases().fold(api::Phase::default(), |all, phase| api::Phase {
            tasks: all.tasks + phase.tasks,
            done: all.done + phase.done,
            running: all.running + phase.running,
        })
    }

    pub(super) fn is_done(&self) -> bool {
        self.phases().all(|phase| phase.done >= phase.tasks)
    }

    /// Whether the flow was late or will be late by its estimate. `None` if unknown.
    pub(super) fn is_late(&self, now: WallTime) -> Option<bool> {
        let deadline = self.deadline?;
        match (self.completion, self.expected.and_then(|expected| expected.completion)) {
            (Some(at), _) => Some(at > deadline),
            _ if now > deadline && !self.state.is_over() => Some(true),
            _ if self.state == FlowStatus::Held => None,
            (None, Some(expected)) if !self.state.is_over() => Some(expected > deadline),
            _ => None,
        }
    }
}

impl RunningSubmission {
    /// An open run that was started at `started`.
    pub fn new(started: WallTime, flows: Vec<FlowProgress>) -> Self {
        let jobs = flows.iter().enumerate().flat_map(|(f, flow)| (0..flow.jobs.len()).map(move |j| (f, j)));
        let jobs = jobs.collect();
        Self { started, could_start: started, is_held_so_far: true, flows, jobs }
    }

    /// Ends the hold of the whole submission.
    pub(super) fn end_hold(&mut self, now: WallTime) {
        if std::mem::take(&mut self.is_held_so_far) {
            self.could_start = now;
        }
    }

    /// Whether all unfinished flows are held and none of them has started.
    pub(super) fn is_held(&self) -> bool {
        let mut open = self.flows.iter().filter(|here| !here.state.is_over());
        open.all(|here| here.state == FlowStatus::Held && !here.has_begun)
    }

    /// The number of waiting tasks.
    pub(super) fn waiting(&self) -> u64 {
        let open = self.flows.iter().filter(|flow| !flow.state.is_over());
        open.map(FlowProgress::counts)
            .map(|phase| phase.tasks - phase.done.min(phase.tasks) - phase.running)
            .sum()
    }

    /// The number of running tasks.
    pub(super) fn running(&self) -> u64 {
        self.flows.iter().map(|flow| flow.counts().running).sum()
    }

    pub(super) fn flow(&mut self, name: &str) -> Option<&mut FlowProgress> {
        self.flows.iter_mut().find(|flow| flow.flow == name)
    }

    /// The flow of a job, and the index of the job in it.
    pub(super) fn job(&mut self, job: u32) -> Option<(&mut FlowProgress, usize)> {
        let &(flow, index) = self.jobs.get(job as usize)?;
        Some((&mut self.flows[flow], index))
    }
}

/// The estimate of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowEstimate {
    /// The estimated completion. `None` if it is unknown: a job never ran, and its file has no duration for it.
    pub completion: Option<WallTime>,
    /// The 80 % prediction interval of the completion.
    pub between: Option<[WallTime; 2]>,
    /// The chance of meeting the deadline, percent. `None` without a deadline, or if it is unknown.
    pub chance: Option<f64>,
}
