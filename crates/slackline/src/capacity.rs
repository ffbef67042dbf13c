//! Capacity search: finds, by simulation, the smallest cluster or the best setting with which a workload
//! meets conditions under a policy.

mod bisection;
mod condition;
mod search;
mod search_dimension;

#[cfg(test)]
pub(crate) use condition::is_time;
pub use condition::{Condition, NoCondition};
pub use search::{Capacity, CapacityError, Figures, Method, Search, SearchStep, search};
pub use search_dimension::{Axis, Knob, Values};
