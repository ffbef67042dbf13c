//! The durations of finished tasks: the execution database of `dmrs` §V, the past runs of `flex` §4.2.
//!
//! A value: a run receives it at its start and returns it at its end, extended by its own tasks. It contains
//! only measured durations; its users derive sizes and speeds. Tasks are identified by the names of their
//! flow, job and phase, and by the group of the machine they ran on.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::id::{PhaseId, PhaseKind};
use crate::instance::Instance;

/// The name that identifies a phase in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PhaseName {
    /// The flow; every recurrence (`nightly#3`) has the name of the recurring flow.
    pub flow: String,
    /// The job.
    pub job: String,
    /// The phase.
    pub kind: PhaseKind,
}

impl PhaseName {
    /// The name of a phase.
    pub fn of(instance: &Instance, phase: PhaseId) -> Self {
        let info = instance.phase(phase);
        let job = instance.job(info.job);
        let flow = recurring(&instance.flow(job.flow).id);
        Self { flow: flow.to_owned(), job: job.id.clone(), kind: info.kind }
    }
}

/// The name of the recurring flow, for each of its copies: `nightly` for `nightly#3`.
pub fn recurring(flow: &str) -> &str {
    match flow.rsplit_once('#') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => flow,
    }
}

/// The finished tasks of a phase on a group of machines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Record {
    /// The number of tasks.
    pub tasks: u64,
    /// Their total duration, seconds.
    pub seconds: f64,
}

impl Record {
    /// The record with `tasks` more tasks of a total of `seconds`.
    #[must_use]
    pub fn and(self, tasks: u64, seconds: f64) -> Self {
        Self { tasks: self.tasks.saturating_add(tasks), seconds: self.seconds + seconds }
    }
}

/// The records of finished tasks, by phase and by machine group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    records: BTreeMap<(PhaseName, String), Record>,
}

impl History {
    /// A history without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds a record. Returns false, without a change, if that phase and group has one already.
    pub fn insert(&mut self, phase: PhaseName, group: String, record: Record) -> bool {
        match self.records.entry((phase, group)) {
            Entry::Vacant(vacant) => {
                vacant.insert(record);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// All records, in the order of phases and groups.
    pub fn records(&self) -> impl Iterator<Item = (&PhaseName, &str, Record)> {
        self.records.iter().map(|((phase, group), &record)| (phase, group.as_str(), record))
    }
}
