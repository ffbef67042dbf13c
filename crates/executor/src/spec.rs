//! From a workload to job plans: inputs, definitions, estimates, and checks before the run.

pub(crate) mod definition;
pub(crate) mod estimate;
pub mod fault;
pub mod job_cost;
pub(crate) mod job_index;
pub mod job_plan;
pub(crate) mod plans;
pub mod preflight;
pub(crate) mod real_names;
pub mod remaining;
pub(crate) mod repeated;
pub mod resolve;
pub(crate) mod writers;
