//! The best order for any metric: the orders of all rules and some near the best one, rated by rollouts.
//!
//! **Paper**: none; rollouts of base rules (Bertsekas, Castañón 1999). **Problem**: flows that arrive over
//! time, any metric. **Idea**: 1. When a flow has arrived or two have ended, and several want the free slots, take a
//! snapshot of the state ([`snapshot`]) and of the announced flows. 2. Make the order of each rule of
//! [`crate::rule`], and insert the new flows into the order in force by its rule. 3. Compute the completion
//! of each flow under each order, task by task ([`evaluate`]). 4. Replace the order in force only by one
//! whose estimated cost is lower by 0.5 % and by more than the noise of the estimates. 5. Move flows at
//! random, half of them not far; keep a move that lowers the cost or, at equal cost, the sum of completions.
//! Where estimates are wrong (`estimate_error`), none of this is done, and the order is that of one rule. 6.
//! Until the next decision, serve by the best order (`dispatch`), but flows that have waited
//! too long first, and keep some slots from long tasks (`reserved_slots`). **Guarantee**: at each decision
//! the estimated cost of the order is at most that of any rule that is tried, within 0.5 % or the error of the estimates; on
//! what the evaluator covers and with exact estimates the estimate is right if nothing else arrives (a law,
//! tested). A flow that has been there `wait` times its time alone is served before all others (tested).
//! **Complexity**: at a decision at most 200 rollouts, ten times as many where all flows come together, each
//! O(phases + batches · log batches). All decisions together do at most a constant multiple of the work of executing
//! tasks (`work_budget`).
//! **Invariants**: I1. The evaluator equals the simulator on what it covers
//! (`crates/testkit/tests/suite/rollouts.rs`).
//! **Deviations**: none.
//!
//! - [`snapshot`]: what a rollout starts from, copied from what a policy sees;
//! - [`evaluate`]: the rollout: a list scheduler task by task, a batch of equal tasks at a time;
//! - `positions`: the ready phases in the order in which they are served;
//! - `template`, `recurring`: flows that came before and flows that will come again, for rollouts;
//! - `reserved_slots`: slots that long tasks may not take;
//! - `estimate_error`: how far estimates are off; `future_arrivals`: how much later flows end because others
//!   will arrive;
//! - `work_budget`: the work that decisions may do;
//! - `job_order`: the order of the jobs of a flow;
//! - `dispatch`: who is served until the next decision;
//! - [`order_search`]: the orders of rules and orders near them, by the costs of rollouts;
//! - [`online`]: the policy; [`replayed_order`]: an order that it decided, for scenarios of the same flows;
//! - [`offline_search`], [`insertion`]: the searches for plans, where all flows are known: for an order of
//!   flows, and for the start of each task.

mod dispatch;
mod estimate_error;
pub mod evaluate;
mod future_arrivals;
pub mod insertion;
mod job_order;
pub mod offline_search;
pub mod online;
pub mod order_search;
mod positions;
mod recurring;
pub mod replayed_order;
mod reserved_slots;
pub mod snapshot;
mod template;
mod work_budget;

pub use evaluate::{Evaluator, Sequence};
pub use online::{Auto, ENTRY};
pub use replayed_order::{OrderRecorder, OrderReplay, Resolve};
