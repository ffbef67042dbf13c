//! Counters of the jobs of a real run: records, bytes, and counters and status texts of commands. They are
//! part of schedules of real runs and of the history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the tasks of a phase counted that are done, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PhaseCounts {
    /// Records read.
    pub records_in: u64,
    /// Bytes read, after decompression.
    pub bytes_in: u64,
    /// Records written.
    pub records_out: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Records that could not be used.
    pub skipped: u64,
    /// How often buffers were written out before the last time.
    pub spills: u64,
    /// Records that were written out then.
    pub spilled: u64,
    /// Records that combiners read.
    pub combine_in: u64,
    /// Records that combiners gave.
    pub combine_out: u64,
    /// What commands counted, by GROUP,NAME.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, i64>,
    /// The last status that a command reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

impl PhaseCounts {
    /// Whether nothing was counted or said.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Both added up; the status is the other's if it has one.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (name, count) in other.counters {
            let sum = self.counters.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
        Self {
            records_in: self.records_in.saturating_add(other.records_in),
            bytes_in: self.bytes_in.saturating_add(other.bytes_in),
            records_out: self.records_out.saturating_add(other.records_out),
            bytes_out: self.bytes_out.saturating_add(other.bytes_out),
            skipped: self.skipped.saturating_add(other.skipped),
            spills: self.spills.saturating_add(other.spills),
            spilled: self.spilled.saturating_add(other.spilled),
            combine_in: self.combine_in.saturating_add(other.combine_in),
            combine_out: self.combine_out.saturating_add(other.combine_out),
            counters: self.counters,
            says: other.says.or(self.says),
        }
    }
}

/// The counters of a job of a real run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JobCounts {
    /// The flow.
    pub flow: String,
    /// The job.
    pub job: String,
    /// Counters of its maps.
    pub maps: PhaseCounts,
    /// Counters of its reduces.
    pub reduces: PhaseCounts,
}
