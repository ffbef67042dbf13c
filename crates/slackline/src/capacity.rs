//! Capacity search: finds, by simulation, the smallest cluster or the best setting with which a workload
//! meets conditions under a policy.

mod bisection;
mod condition;
#[cfg(test)]
mod coverage;
mod draws;
mod search;
mod search_dimension;
mod search_step;

#[cfg(test)]
pub(crate) use condition::is_time;
pub use condition::{Condition, NoCondition};
pub use draws::{DrawRule, Draws, SeededDraft};
pub use search::{Capacity, CapacityError, Method, Search, search};
pub use search_dimension::{Axis, Knob, Values};
pub use search_step::{Draw, Figures, SearchStep};
