//! What a job took and moved, and how it is found again in another run.
//!
//! The engine knows more of a job than [`History`] keeps: bytes, from which the next run's durations follow when
//! inputs grow. [`records`] is what of it every policy can be given.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slackline_model::history::{History, PhaseName, Record, recurring};
use slackline_model::{Draft, PhaseKind};

use crate::job_plan::JobPlan;

/// The group of machines that the records of this machine go by.
pub const GROUP: &str = "local";

/// How a job is found again in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCost {
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

impl JobCost {
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

/// What jobs took, by name.
pub type JobHistory = BTreeMap<JobName, JobCost>;

/// What is known of the jobs of a workload; of a job that recurs, of all its recurrences together. O(jobs of the workload · log).
pub fn of_workload(jobs: &JobHistory, workload: &Draft) -> JobHistory {
    let all = workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)));
    let known = all.filter_map(|(flow, job)| jobs.get_key_value(&JobName::new(&flow.id, &job.id)));
    known.filter(|(_, cost)| cost.maps > 0).map(|(name, cost)| (name.clone(), *cost)).collect()
}

/// All that is known of jobs, as the records of phases that every engine's policies can be given.
pub fn records(jobs: &JobHistory) -> History {
    let mut history = History::new();
    for (name, cost) in jobs {
        for kind in [PhaseKind::Map, PhaseKind::Reduce] {
            let record = cost.record(kind);
            if record.tasks > 0 {
                let phase = PhaseName { flow: name.flow.clone(), job: name.job.clone(), kind };
                history.insert(phase, GROUP.to_owned(), record);
            }
        }
    }
    history
}
