//! Verbs for research: `plan`, `bound`, `tune`, `repro`, `policies`.

pub(crate) mod bound;
pub(crate) mod plan;
pub(crate) mod policies;
pub(crate) mod repro;
pub(crate) mod tune;
