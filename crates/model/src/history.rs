//! What finished tasks took: the execution database of `dmrs` §V, the past runs of `flex` §4.2.
//!
//! A value: it is handed in at the start of a run and handed back at its end, with what the run has seen.
//! Only what was measured is in it; sizes and speeds are derived by who uses it. Tasks are found again by
//! the name of their flow, job and phase, and by the group of the machine they ran on.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::id::{PhaseId, PhaseKind};
use crate::instance::Instance;

/// How a phase is found again in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PhaseName {
    /// The flow; every recurrence (`nightly#3`) goes by the name of the flow that recurs.
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

/// The name of the flow that recurs, for each of its copies: `nightly` for `nightly#3`.
pub fn recurring(flow: &str) -> &str {
    match flow.rsplit_once('#') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => flow,
    }
}

/// What a group of machines has finished of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Record {
    /// How many tasks.
    pub tasks: u64,
    /// How long they took together, seconds.
    pub seconds: f64,
}

impl Record {
    /// The same with `tasks` more that took `seconds` together.
    #[must_use]
    pub fn and(self, tasks: u64, seconds: f64) -> Self {
        Self { tasks: self.tasks.saturating_add(tasks), seconds: self.seconds + seconds }
    }
}

/// What is known of finished tasks, by phase and by machine group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    records: BTreeMap<(PhaseName, String), Record>,
}

impl History {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds a record; false if there was one of that phase and group already, which stays.
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
