//! The best order for any metric: every rule's order and some near the best one, each looked at by a rollout.
//!
//! **Paper**: none; rollouts of base rules (Bertsekas, Castañón 1999). **Problem**: flows that arrive over time, any metric.
//! **Idea**: 1. When a flow comes, and when two have ended and none has come, look at what is there ([`snapshot`]), and at what was announced. 2. Make the order of each
//! rule of [`crate::rule`], and take the order in force with the new flows put in by its rule. 3. Find when each flow completes
//! under each, task by task ([`evaluate`]). 4. Leave the order in force only for one that is believed to cost 0.5 % less, or
//! less by more than the noise of what is believed (`estimate_error`). 5. Move flows at random, half of them not far; keep what costs
//! less or, at equal cost, completes earlier in sum. 6. Until the next decision, serve by the best order (`dispatch`), but first
//! whoever has waited too long, and keep some slots from long tasks (`reserved_slots`).
//! **Guarantee**: at each decision the order is believed to cost no more than that of any rule that is tried, within 0.5 % or the noise; on
//! what the evaluator covers and with exact estimates the belief is true if nothing else arrives (a law, tested). A flow that
//! has been there `wait` times its time alone is served before all others (tested).
//! **Complexity**: at a decision at most `rollouts` (a parameter) rollouts, ten times as many where all flows come together, each
//! O(phases + batches · log batches), and no more when they have taken 1,000 steps of that for each that is allowed, but the
//! order in force and two rules always; beside them, now and then, those of the past that choose the headroom.
//! **Invariants**: I1. The evaluator equals the simulator on what it covers (`crates/testkit/tests/suite/rollouts.rs`).
//! **Deviations**: none.
//!
//! - [`snapshot`]: what a rollout starts from, copied from what a policy sees;
//! - [`evaluate`]: the rollout: a list scheduler task by task, a batch of equal tasks at a time;
//! - `positions`: the ready phases in the order in which they are served;
//! - `template`, `recurring`: flows that came before and flows that will come again, for rollouts;
//! - `reserved_slots`: slots that long tasks may not take;
//! - `estimate_error`: how far estimates are off; `future_arrivals`: how much later flows end because others will arrive;
//! - `dispatch`: who is served until the next decision;
//! - [`online`]: the policy; [`replayed_order`]: an order that it decided, for scenarios of the same flows;
//! - [`offline_search`], [`insertion`]: the searches for plans, where all flows are known: for an order of flows, and for the
//!   start of each of a few tasks.

mod dispatch;
mod estimate_error;
pub mod evaluate;
mod future_arrivals;
pub mod insertion;
pub mod offline_search;
pub mod online;
mod positions;
mod recurring;
pub mod replayed_order;
mod reserved_slots;
pub mod snapshot;
mod template;

pub use evaluate::{Evaluator, Sequence};
pub use online::{Auto, ENTRY};
pub use replayed_order::{OrderRecorder, OrderReplay, Resolve};
