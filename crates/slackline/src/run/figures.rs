//! The figures of the jobs of a run: tasks, attempts, time, records and bytes, from the recorded attempts.

use std::collections::BTreeMap;

use slackline_executor::spec::job_cost::JobName;
use slackline_executor::store::history::CountsOfJobs;
use slackline_executor::store::journal::{Attempt, AttemptOutcome};
use slackline_model::{Draft, PhaseKind};
use slackline_task::base::task_id::TaskId;
use slackline_trace::{JobCounts, PhaseCounts};

use super::sink::{Progress, count};

/// The figures of a job of a run so far.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobFigures {
    /// Its flow.
    pub flow: String,
    /// Its name.
    pub job: String,
    /// Its maps.
    pub maps: PhaseFigures,
    /// Its reduces.
    pub reduces: PhaseFigures,
}

/// The figures of the tasks of a phase so far.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PhaseFigures {
    /// Tasks, and how many of them are finished.
    pub tasks: Progress,
    /// The number of failed attempts.
    pub failed: u64,
    /// The number of killed attempts.
    pub stopped: u64,
    /// The sum of the durations of the attempts that finished a task, seconds.
    pub seconds: f64,
    /// The sum of the durations of all other attempts (failed, killed, or with lost output), seconds.
    pub lost_seconds: f64,
    /// The start of its first attempt, seconds since the start of the run.
    pub began: Option<f64>,
    /// The end of its last attempt, seconds since the start of the run.
    pub ended: Option<f64>,
    /// The counters of its tasks.
    pub counts: PhaseCounts,
}

impl JobFigures {
    /// The figures of every job of a workload, in the order of the job numbers of [`TaskId`]. O(tasks +
    /// attempts · log).
    pub fn all(workload: &Draft, attempts: &[Attempt]) -> Vec<Self> {
        let mut jobs = Vec::new();
        for flow in &workload.flows {
            for job in &flow.jobs {
                let of = |phase: Option<_>| PhaseFigures {
                    tasks: Progress { total: phase.map_or(0, count), done: 0 },
                    ..PhaseFigures::default()
                };
                let (maps, reduces) = (of(job.map.as_ref()), of(job.reduce.as_ref()));
                jobs.push(Self { flow: flow.id.clone(), job: job.id.clone(), maps, reduces });
            }
        }
        // If a task was rerun because its output was lost, its last attempt counts.
        let done = attempts.iter().filter(|attempt| matches!(attempt.ended, AttemptOutcome::Done(_)));
        let last: BTreeMap<TaskId, u64> = done.map(|attempt| (attempt.id, attempt.number)).collect();
        for attempt in attempts {
            let Some(job) = jobs.get_mut(attempt.id.job as usize) else { continue };
            let counts = last.get(&attempt.id) == Some(&attempt.number);
            job.phase_mut(attempt.id.phase).add(attempt, counts);
        }
        jobs
    }

    /// One of its phases.
    pub fn phase(&self, kind: PhaseKind) -> &PhaseFigures {
        match kind {
            PhaseKind::Map => &self.maps,
            PhaseKind::Reduce => &self.reduces,
        }
    }

    fn phase_mut(&mut self, kind: PhaseKind) -> &mut PhaseFigures {
        match kind {
            PhaseKind::Map => &mut self.maps,
            PhaseKind::Reduce => &mut self.reduces,
        }
    }

    /// Both phases.
    pub fn phases(&self) -> [&PhaseFigures; 2] {
        [&self.maps, &self.reduces]
    }

    /// The phase that writes the output.
    pub fn last(&self) -> &PhaseFigures {
        if self.reduces.tasks.total > 0 { &self.reduces } else { &self.maps }
    }

    /// Its tasks, and how many of them are finished.
    pub fn tasks(&self) -> Progress {
        self.phases().into_iter().map(|phase| phase.tasks).sum()
    }

    /// Whether all its tasks are finished.
    pub fn is_done(&self) -> bool {
        let Progress { total, done } = self.tasks();
        done >= total
    }

    /// The number of failed attempts.
    pub fn failed(&self) -> u64 {
        self.maps.failed + self.reduces.failed
    }

    /// The counters of its commands, by `GROUP,NAME`.
    pub fn counters(&self) -> BTreeMap<&str, i64> {
        let mut sums = BTreeMap::new();
        for (name, count) in self.phases().into_iter().flat_map(|phase| &phase.counts.counters) {
            let sum: &mut i64 = sums.entry(name.as_str()).or_default();
            *sum = sum.saturating_add(*count);
        }
        sums
    }

    /// The number of records that were skipped because they could not be processed.
    pub fn skipped(&self) -> u64 {
        self.maps.counts.skipped + self.reduces.counts.skipped
    }

    /// Its counters in the format of documents.
    pub fn counts(&self) -> JobCounts {
        let (flow, job) = (self.flow.clone(), self.job.clone());
        JobCounts { flow, job, maps: self.maps.counts.clone(), reduces: self.reduces.counts.clone() }
    }
}

/// The counters of the jobs whose tasks are all finished. The runs of a recurring flow are added up.
pub(super) fn finished_counts(jobs: &[JobFigures]) -> CountsOfJobs {
    let mut finished = CountsOfJobs::new();
    for job in jobs.iter().filter(|job| job.is_done()) {
        let known = finished.entry(JobName::new(&job.flow, &job.job)).or_default();
        let [maps, reduces] = std::mem::take(known);
        *known = [maps.and(job.maps.counts.clone()), reduces.and(job.reduces.counts.clone())];
    }
    finished
}

impl PhaseFigures {
    /// Adds an attempt; `counts` if it is the attempt that finished its task.
    fn add(&mut self, attempt: &Attempt, counts: bool) {
        let seconds = attempt.micros() as f64 / 1e6;
        let [began, ended] = [attempt.start, attempt.end].map(|micros| micros as f64 / 1e6);
        self.began = Some(self.began.map_or(began, |first| first.min(began)));
        self.ended = Some(self.ended.map_or(ended, |last| last.max(ended)));
        match &attempt.ended {
            AttemptOutcome::Done(outcome) if counts => {
                self.tasks.done += 1;
                self.seconds += seconds;
                self.counts = std::mem::take(&mut self.counts).and(outcome.counts.clone());
                return;
            }
            AttemptOutcome::Done(_) | AttemptOutcome::Lost(_) => {}
            AttemptOutcome::Failed(_) => self.failed += 1,
            AttemptOutcome::Killed => self.stopped += 1,
        }
        self.lost_seconds += seconds;
    }
}
