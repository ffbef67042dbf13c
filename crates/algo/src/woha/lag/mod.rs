//! Flows in the order of their lag (section IV-B, Algorithm 2, deviations D7–D9): two lists, one by
//! when the next requirement falls due, one by lag, on several data structures.
//!
//! Only flows whose requirement changed are looked at, and the list by lag has a copy for each lane
//! that holds only flows with tasks to run there, so that nobody is passed over in a search.
//!
//! - `record`: how far a flow is and what it ranks by;
//! - `queue`: what the lists must be able to do;
//! - `lists`: [`Lags`], the two lists over any queue;
//! - `btree`, `skip_list`, `heap`: the queues;
//! - `naive`: recomputes everything at every call; for tests and for comparison.
//!
//! The choice is measured: `slackline-bench`, suite `woha`.

mod btree;
mod heap;
mod lists;
mod naive;
mod queue;
mod record;
mod skip_list;
#[cfg(test)]
mod tests;

pub use btree::BTree;
pub use heap::Heap;
pub use lists::Lags;
pub use naive::Naive;
pub use queue::{Family, Queue};
pub use record::{Measure, Rank};
pub use skip_list::SkipList;
