//! Workloads out, in formats of others: one file each.

mod synth;

pub use synth::synth;

/// A workload in another format, and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The text of the file.
    pub text: String,
    /// What the format cannot say, with counts.
    pub remarks: Vec<String>,
}
