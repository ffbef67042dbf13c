//! The id of a task within a run.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use slackline_model::PhaseKind;

/// A task of a run: a job by its index, its phase, a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    /// Index of the job among the run's jobs.
    pub job: u32,
    #[serde(serialize_with = "write_kind", deserialize_with = "read_kind")]
    pub phase: PhaseKind,
    /// Its number in its phase.
    pub task: u32,
}

impl TaskId {
    pub fn map(job: u32, task: u32) -> Self {
        Self { job, phase: PhaseKind::Map, task }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn write_kind<S: Serializer>(kind: &PhaseKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

fn read_kind<'de, D: Deserializer<'de>>(from: D) -> Result<PhaseKind, D::Error> {
    let name = String::deserialize(from)?;
    PhaseKind::ALL
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| serde::de::Error::custom(format!("found the phase {name:?}, expected map or reduce")))
}
