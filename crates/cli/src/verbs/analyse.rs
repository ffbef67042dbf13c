//! Verbs that answer questions about a workload by simulation: `compare`, `simulate`, `capacity`, `explain`.

pub(crate) mod capacity;
pub(crate) mod compare;
pub(crate) mod explain;
pub(crate) mod simulate;
