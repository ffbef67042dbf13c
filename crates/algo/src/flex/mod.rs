//! FLEX: slots for malleable jobs, for any metric.
//!
//! **Paper**: `flex` (Wolf et al., Middleware 2010): §2 (metrics, epochs, moldable and malleable), §3
//! (packing scheme, Fig. 3; resource allocation), §1.1 (with Fair).
//!
//! **Problem**: P | malleable, m_j ≤ rate ≤ M_j | f for f = Σ w_j(C_j) or max w_j(C_j), each w_j any
//! non-decreasing cost function: linear, tardiness, steps, piecewise, mixed by job.
//!
//! **Idea**
//! 1. A priority order becomes a schedule by the packing scheme ([`mps`]).
//! 2. Orders come from the best constant allocation ([`rap`], with [`selection`] and [`knapsack`]) and
//!    from rules of the textbook for each metric ([`orders`]).
//! 3. The best order is improved by insertion ([`search`]).
//! 4. A maximum is bisected with the exact deadline test; the order of the optimal deadlines is packed,
//!    and if no packing gets there, EDF water filling does, sliced to whole slots ([`slicing`]).
//! 5. Step costs are searched by levels with the same test ([`targets`]), exactly for few jobs.
//! 6. The best of all is the plan, with a lower bound ([`bound`]) and the candidate that won ([`plan`]).
//! 7. An instance of the model with reduces, releases or pools is packed phase by phase ([`phases`],
//!    [`plan_instance`]).
//! 8. Online, the ready phases of each slot kind are an instance; the first interval of the packing becomes
//!    targets, again in each epoch ([`online`]).
//!
//! **Guarantee**: maximum: optimal (docs/math/flex.md C3, C4). Σ of steps with at most 12 jobs: optimal
//! unless the node limit is hit. One fast machine (M ≥ S, m = 0): optimal for ΣwC, stretch, the tardy count.
//! Other sums: none; the gap to the bound says how far.
//!
//! **Complexity**: packing O(J log J) time, O(J) memory; closed-form orders O(J log J) (ATC O(J²), up to
//! 3,000 jobs); maximum O(J log J) per bisection step, O(J² log J) for water filling (up to 600 jobs);
//! searches as many steps as the configuration allows. S enters only in the resource allocation:
//! O(J log(S/J)) for convex costs, O(S·Σ steps) otherwise.
//!
//! **Invariants**: I1 rates are whole and within [m, M] until a job is done, I2 together at most S
//! (tests of `mps` and `slicing`, and the judge); I3 Σm ≤ S ([`FlexInstance::new`]); I4 bound ≤ cost
//! (tests).
//!
//! **Symbols**: J jobs, S `slots`, V_j `work`, m_j `min`, M_j `max`, s_j slots of a constant allocation,
//! F_j(s) = w_j(V_j/s) `constant::cost`, L a level, D_j(L) `latest`.
//!
//! **Deviations**
//! - D1 Lemma 1 ("some packing order is optimal for every metric") is false: three jobs with V = M = 2
//!   on three slots end at 2, every packing at 2.25 (a test here). So there are steps 4 and 5.
//! - D2 Tardiness is convex and SLA is not; the paper says the opposite of the first and forgets the
//!   second. The sign of its G_j is wrong. See [`rap`].
//! - D3 Fig. 3 forgets to stop when the list is empty, and is O(J²); see [`mps`].
//! - D4 Minima are held until a job is done, even where only tasks left would be guaranteed. Bounds
//!   count only what is guaranteed (`firm`), so that they hold for every schedule.
//! - D5 Epochs: at most one plan an epoch, the first at once, and none while nothing happens.
//! - D6 Convex allocations by Frederickson and Johnson's scheme; Fox's and the paper's
//!   dynamic program are what tests hold it against.
//! - D7 Online, orders are packed and compared as often as events pay for it; in between the rule that wins
//!   most decides. The first million steps are free, so that only long runs of many jobs ever wait.
//!
//! **Example**
//! ```
//! use slackline_algo::flex::{Config, FlexInstance, Job, plan};
//! use slackline_model::{Combine, CostFn};
//!
//! let job = Job::new(2.0, 0..=2, CostFn::linear(1.0, 0.0));
//! let instance = FlexInstance::new(3, Combine::Max, vec![job; 3]);
//! let plan = plan(&instance, &Config::thorough());
//! assert!(plan.optimal && (plan.cost - 2.0).abs() < 1e-9);
//! ```

pub mod bound;
mod constant;
mod entry;
mod instance;
pub mod knapsack;
pub mod moldable;
pub mod mps;
pub mod online;
pub mod orders;
pub mod phases;
mod plan;
pub mod plan_instance;
pub mod rap;
pub mod search;
pub mod selection;
pub mod slicing;
mod smith_order;
pub mod targets;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;
pub use instance::{FlexInstance, Piece};
pub use plan::{Config, Mode, Plan, Winner, plan, quick_order};
pub use slackline_relax::malleable::Job;
