//! From a workload to job plans: inputs, definitions, estimates, and checks before the run.

pub mod definition;
pub mod estimate;
pub mod fault;
pub mod job_cost;
pub mod job_plan;
pub mod preflight;
pub mod remaining;
pub mod repeated;
pub mod resolve;
