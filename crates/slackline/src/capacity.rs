//! Capacity search: finds, by simulation, the smallest cluster or the best setting with which a workload
//! meets conditions under a policy.

mod axis;
mod bisection;
mod condition;
mod hopes;
mod search;

pub use axis::{Axis, Knob, Values};
#[cfg(test)]
pub(crate) use condition::is_time;
pub use condition::{Condition, NoCondition};
pub use search::{Capacity, CapacityError, Figures, Method, Outcome, Search, Tried, search};
