//! Flows in the order of their lag (section IV-B, Algorithm 2, deviations D7–D9): two lists, one by
//! when the next requirement falls due, one by lag.
//!
//! Only flows whose requirement changed are updated, and the list by lag has a copy for each slot kind
//! that holds only flows with tasks to run there, so that no search has to skip flows.
//!
//! - `record`: the progress of a flow and its rank;
//! - `queue`: the operations of the lists;
//! - `heap`: the queue behind them;
//! - `lists`: [`Lags`], the two lists;
//! - `naive`: recomputes everything at every call; for tests and benchmarks (feature `reference`).
//!
//! Suite `woha` of the benchmarks measures the heap against the paper's double skip list and a B-tree.

mod heap;
mod lists;
#[cfg(any(test, feature = "reference"))]
mod naive;
mod queue;
mod record;
#[cfg(test)]
mod tests;

pub use heap::Heap;
pub use lists::{Lags, LagsOn};
#[cfg(any(test, feature = "reference"))]
pub use naive::Naive;
pub use queue::Queue;
pub use record::{Measure, Rank};
