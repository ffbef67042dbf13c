//! What a job cost in an earlier run (time, bytes), and the name that finds it in a later run.
//!
//! The engine knows more of a job than [`History`] keeps: bytes, from which the next run's durations follow
//! when inputs grow. [`records`] is what of it every policy can be given.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slackline_model::history::{History, PhaseName, Record, recurring};
use slackline_model::{Draft, PhaseKind};
use slackline_trace::MachineCost;

use crate::spec::job_plan::JobPlan;

/// The group of machines that the records of this machine go by.
pub const GROUP: &str = "local";

/// How a job is found again in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobName {
    /// The flow; every recurrence (`nightly#3`) goes by the name of the flow that recurs.
    pub flow: String,
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

    /// The flow as it is shown, with its owner if it has one: `OWNER/FLOW`.
    pub fn flow_shown(&self) -> String {
        self.flow.replace('\t', "/")
    }

    /// What the job of an owner goes by in a history that several have together: the owner, a tab, which no
    /// name has, and the flow.
    #[must_use]
    pub fn of_owner(&self, owner: &str) -> Self {
        Self { flow: format!("{owner}\t{}", self.flow), job: self.job.clone() }
    }
}

/// What a job took and moved, in one run or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCost {
    pub maps: u64,
    /// How long they took together, microseconds.
    pub map_micros: u64,
    pub reduces: u64,
    /// How long they took together, microseconds.
    pub reduce_micros: u64,
    /// Bytes that the maps read, as they are on disk; of a generator, bytes it made.
    pub bytes_in: u64,
    /// Bytes of its part files.
    pub bytes_out: u64,
    /// What of this was on which machine (group of machines); nothing of runs on this machine alone, and of
    /// those of the time before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, MachineCost>,
}

impl JobCost {
    /// Both together.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let mut machines = self.machines;
        for (name, took) in &other.machines {
            let so_far = machines.entry(name.clone()).or_default();
            *so_far = so_far.and(*took);
        }
        Self {
            machines,
            maps: self.maps.saturating_add(other.maps),
            map_micros: self.map_micros.saturating_add(other.map_micros),
            reduces: self.reduces.saturating_add(other.reduces),
            reduce_micros: self.reduce_micros.saturating_add(other.reduce_micros),
            bytes_in: self.bytes_in.saturating_add(other.bytes_in),
            bytes_out: self.bytes_out.saturating_add(other.bytes_out),
        }
    }

    /// Adds what tasks took on a machine of a group; what was on this machine alone goes by no name.
    pub fn add(&mut self, took: MachineCost, group: Option<&str>) {
        let MachineCost { maps, map_micros, reduces, reduce_micros } = self.whole().and(took);
        (self.maps, self.map_micros, self.reduces, self.reduce_micros) =
            (maps, map_micros, reduces, reduce_micros);
        if let Some(group) = group.filter(|group| *group != GROUP) {
            let so_far = self.machines.entry(group.to_owned()).or_default();
            *so_far = so_far.and(took);
        }
    }

    /// All of it, as if it were on one machine.
    fn whole(&self) -> MachineCost {
        let Self { maps, map_micros, reduces, reduce_micros, .. } = *self;
        MachineCost { maps, map_micros, reduces, reduce_micros }
    }

    /// The record of a phase.
    pub fn record(&self, kind: PhaseKind) -> Record {
        self.whole().record(kind)
    }

    /// The records of a phase by group of machines: what is not known to be of any is of [`GROUP`].
    pub fn records(&self, kind: PhaseKind) -> Vec<(String, Record)> {
        let whole = self.record(kind);
        let of = |(name, took): (&String, &MachineCost)| (name.clone(), took.record(kind));
        let mut all: Vec<(String, Record)> = self.machines.iter().map(of).collect();
        let known = all.iter().fold(Record::default(), |sum, (_, one)| sum.and(one.tasks, one.seconds));
        let seconds = (whole.seconds - known.seconds).max(0.0);
        all.push((GROUP.to_owned(), Record { tasks: whole.tasks.saturating_sub(known.tasks), seconds }));
        all.retain(|(_, record)| record.tasks > 0);
        all
    }
}

/// What jobs took, by name.
pub type JobHistory = BTreeMap<JobName, JobCost>;

/// What is known of the jobs of a workload; of a job that recurs, of all its recurrences together. O(jobs of
/// the workload · log).
pub fn of_workload(jobs: &JobHistory, workload: &Draft) -> JobHistory {
    of_owned_workload(jobs, workload, None)
}

/// The same of an owner: of others' jobs nothing is taken. What was remembered before anybody owned it
/// ([`JobName::of_owner`]) counts for everybody, as long as the owner has nothing of their own.
pub fn of_owned_workload(jobs: &JobHistory, workload: &Draft, owner: Option<&str>) -> JobHistory {
    let all = workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)));
    let known = all.filter_map(|(flow, job)| {
        let name = JobName::new(&flow.id, &job.id);
        let own = owner.and_then(|owner| jobs.get(&name.of_owner(owner)));
        let cost = own.or_else(|| jobs.get(&name))?;
        (cost.maps > 0).then(|| (name, cost.clone()))
    });
    known.collect()
}

/// All that is known of jobs, as the records of phases that every engine's policies can be given.
pub fn records(jobs: &JobHistory) -> History {
    let mut history = History::new();
    for (name, cost) in jobs {
        for kind in [PhaseKind::Map, PhaseKind::Reduce] {
            for (group, record) in cost.records(kind) {
                let phase = PhaseName { flow: name.flow_shown(), job: name.job.clone(), kind };
                history.insert(phase, group, record);
            }
        }
    }
    history
}
