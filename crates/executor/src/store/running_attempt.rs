//! A running attempt, in the form of all outputs that show it: events, the state directory, `status`, the
//! live view, the API of the service and its page.

use serde::{Deserialize, Serialize};
use slackline_task::base::task_id::TaskId;

/// A running attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningAttempt {
    /// Its task. Jobs are numbered as in the run.
    pub id: TaskId,
    /// Its slot; `None` for an engine that does not number attempts when they start, such as Hadoop.
    #[serde(flatten)]
    pub holder: Option<SlotHolder>,
    /// Start of its time on the slot, microseconds since the run began.
    pub since: u64,
    /// Its process, if known.
    #[serde(skip)]
    pub process: Option<u64>,
    #[serde(flatten)]
    pub progress: AttemptProgress,
}

/// The slot of a running attempt. The attempt holds it until its end is recorded or it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotHolder {
    /// The number of the attempt in its run.
    pub number: u64,
    /// The slot, within the slot kind that serves the task.
    pub slot: u32,
}

/// The state that changes while an attempt runs. All documents of a running attempt have its fields: a new
/// field appears there without a change, and in texts with its words in [`AttemptProgress::words`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptProgress {
    /// Whether it has its slot and waits for memory or processors that other tasks on its machine use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

impl RunningAttempt {
    /// An attempt of an engine that does not number attempts when they start.
    pub fn unnumbered(id: TaskId, since: u64) -> Self {
        Self { id, holder: None, since, process: None, progress: AttemptProgress::default() }
    }

    /// An attempt with that number on a slot.
    pub fn on_slot(number: u64, id: TaskId, slot: u32, since: u64) -> Self {
        Self { holder: Some(SlotHolder { number, slot }), ..Self::unnumbered(id, since) }
    }

    /// Its number in its run, if it has one yet.
    pub fn number(&self) -> Option<u64> {
        self.holder.map(|holder| holder.number)
    }

    /// Its slot, within the slot kind that serves the task, if it has one.
    pub fn slot(&self) -> Option<u32> {
        self.holder.map(|holder| holder.slot)
    }
}

impl AttemptProgress {
    /// The text about its progress; empty if there is none.
    pub fn words(&self) -> String {
        let waits = self.waits.then_some("waits for memory or processors that other tasks use");
        waits.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Its fields, as documents have them.
    pub fn fields(&self) -> serde_json::Map<String, serde_json::Value> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(fields)) => fields,
            other => unreachable!("invariant: a struct is written as an object, found {other:?}"),
        }
    }
}
