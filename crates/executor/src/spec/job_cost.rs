//! The cost of a job in an earlier run (time, bytes), and the name that finds it in a later run.
//!
//! The engine knows more of a job than [`History`] keeps: bytes, which give the next run's durations when
//! inputs grow. [`records`] is the part that every policy gets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slackline_model::history::{History, PhaseName, Record, recurring};
use slackline_model::{Draft, PhaseKind};
use slackline_trace::MachineCost;

use crate::spec::job_plan::JobPlan;

/// The name for this machine in records by group of machines.
pub const GROUP: &str = "local";

/// The name by which a job is found in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobName {
    /// The flow; every copy of a recurring flow (`nightly#3`) has the name of that flow.
    pub flow: String,
    pub job: String,
}

impl JobName {
    /// The name of a job.
    pub fn of(plan: &JobPlan) -> Self {
        Self::new(&plan.flow, &plan.job)
    }

    /// The name of a job of a flow or of a copy of a recurring flow.
    pub fn new(flow: &str, job: &str) -> Self {
        Self { flow: recurring(flow).to_owned(), job: job.to_owned() }
    }

    /// The displayed name of the flow, with its owner if it has one: `OWNER/FLOW`.
    pub fn flow_shown(&self) -> String {
        self.flow.replace('\t', "/")
    }

    /// The name of an owner's job in a history that several owners share: the owner, a tab, which no name
    /// contains, and the flow.
    #[must_use]
    pub fn of_owner(&self, owner: &str) -> Self {
        Self { flow: format!("{owner}\t{}", self.flow), job: self.job.clone() }
    }
}

/// Times and bytes of a job, in one run or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCost {
    pub maps: u64,
    /// The sum of their times, microseconds.
    pub map_micros: u64,
    pub reduces: u64,
    /// The sum of their times, microseconds.
    pub reduce_micros: u64,
    /// Bytes that the maps read, as they are on disk; for a generator, the bytes it made.
    pub bytes_in: u64,
    /// Bytes of its part files.
    pub bytes_out: u64,
    /// The shares of the machines (groups of machines); empty for runs on this machine alone, and for old
    /// records without machines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, MachineCost>,
}

impl JobCost {
    /// The sum of both.
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

    /// Adds the costs of tasks on a machine of a group; without a group for tasks on this machine alone.
    pub fn add(&mut self, took: MachineCost, group: Option<&str>) {
        let MachineCost { maps, map_micros, reduces, reduce_micros } = self.whole().and(took);
        (self.maps, self.map_micros, self.reduces, self.reduce_micros) =
            (maps, map_micros, reduces, reduce_micros);
        if let Some(group) = group.filter(|group| *group != GROUP) {
            let so_far = self.machines.entry(group.to_owned()).or_default();
            *so_far = so_far.and(took);
        }
    }

    /// The sum, as if all tasks ran on one machine.
    fn whole(&self) -> MachineCost {
        let Self { maps, map_micros, reduces, reduce_micros, .. } = *self;
        MachineCost { maps, map_micros, reduces, reduce_micros }
    }

    /// The record of a phase.
    pub fn record(&self, kind: PhaseKind) -> Record {
        self.whole().record(kind)
    }

    /// The records of a phase by group of machines; costs without a group count for [`GROUP`].
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

/// Costs of jobs, by name.
pub type JobHistory = BTreeMap<JobName, JobCost>;

/// The known costs of the jobs of a workload; for a recurring job, of all its copies together. O(jobs of the
/// workload · log).
pub fn of_workload(jobs: &JobHistory, workload: &Draft) -> JobHistory {
    of_owned_workload(jobs, workload, None)
}

/// The same for an owner, without jobs of other owners. Records without an owner ([`JobName::of_owner`])
/// count for every owner without own records.
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

/// All known costs of jobs, as the records of phases that the policies of every engine get.
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
