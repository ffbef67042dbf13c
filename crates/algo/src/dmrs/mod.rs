//! DMRS: dependent map and reduce tasks on machines of different speed.
//!
//! **Paper**: `dmrs` (Aggarwal et al.): §III (LP-MapReduce, Oracle-LP, Algorithm 1), §IV (Lemma 2,
//! Theorem 1), §V (job scheduler, task scheduler, execution database), §VI (Identical-machine, Map-only).
//!
//! **Problem**: Q | r_j, map before reduce | Σ w_j C_j. Other costs are accepted and ordered by their
//! slope where they are linear, by the flow's weight where they are not.
//!
//! **Idea**
//! 1. LP-MapReduce gives each job a completion time C_j that no schedule can beat on the whole ([`lp`]).
//! 2. The list is sorted by C_j − p_j/(2μ_j) ([`order`](mod@order)).
//! 3. Maps, then reduces of each job, the largest first, each where it ends earliest ([`list`]).
//! 4. Online the jobs are the ready jobs of all flows; each slot serves its queue, and the list is
//!    rebuilt when the best slot of the next task is no longer the planned one ([`online`]).
//! 5. The baselines of §VI are planned with what they know and followed in simulated time (`replay`).
//! 6. Speeds and task times are the driver's estimates, which may be learned
//!    ([`slackline_policy::learning`], the execution database).
//!
//! **Guarantee**: Σ w_j C_j ≤ (2 + 2(m−1)/D) · LP when all jobs are released at 0, (3 + 2(m−1)/D) · LP
//! otherwise (Theorem 1; D is [`order::skewness`]), for slots of either kind and phases without caps.
//! Online, `dmrs-identical`, `dmrs-map-only`: none.
//!
//! **Complexity**: order O(N log N); list O(log m + speed classes) per task; online the same for each
//! arrival, and O(log) amortised per task for departures; memory O(tasks placed ahead).
//!
//! **Invariants**: I1 a slot's tasks do not overlap, I2 no reduce before its maps, I3 no phase above
//! its cap (the judge, in tests); I4 LP ≤ cost, Lemma 2 and Theorem 1 (tests); I5 a slot is handed a
//! task only when it is free and the task can run, so that what is planned is what runs if all
//! jobs are released at 0 (tests).
//!
//! **Symbols**: p_j `Job::work`, w_j `weight`, r_j `release`, p_{j,1} `Side::longest`, m
//! `Machines::count`, v_l `speed`, v_1 `Machines::fastest`, μ `Machines::capacity`, μ_j
//! `System::rate_of`, C_j `completion`, σ `order`, t_l `free`, T^M_j `ready` of the reduces, D
//! `skewness`.
//!
//! **Deviations**
//! - D1 Polymatroid greedy by divide and conquer instead of the ellipsoid method (docs/math/dmrs.md A1–A4).
//! - D2 Misprints of the paper: Lemma 1 has the key C_x − p_x/(2μ), which finds wrong sets; the text's
//!   μ_x is right. Eq. (12) adds max r where it must be μ · max r. Algorithm 1 uses T^M_σ(j) for the map
//!   tasks and for the time at which they end.
//! - D3 Stronger floors and tails, and the bound of release dates (A7); [`lp::Form::Paper`] is the
//!   paper's program.
//! - D4 Ties among slots, and caps: see [`list`].
//! - D5 Reduces take no slot early, under any slow-start.
//! - D6 The list is rebuilt for a departure only after 1/64 of it has been started, so that a task
//!   costs O(log) in all; lists of fewer than 64 tasks are rebuilt every time, as in the paper.
//! - D7 A task's progress is not reported to policies: one that is overdue is taken to be as late again
//!   as it is, where the paper divides the data left by the speed.
//! - D8 Map-only hands a ready reduce to the slot that has been free longest; the paper says "random".
//! - D9 Online, only some tasks are placed ahead (500, or one for 64 slots); the list continues where it
//!   stopped when half of them have started or a slot has nothing to do, so that nothing is placed
//!   differently. On more than 250 slots, jobs that could start on slots with nothing to do are then listed
//!   out of their turn, up to two tasks for each slot. At an arrival it is rebuilt only if something has
//!   departed from it or the jobs on it do not come first in the new order. The linear program counts
//!   machines that are down.
//!
//! **Example**
//! ```
//! use slackline_algo::dmrs::lp::{Form, Job, Machines, Side, System, solve};
//!
//! // A map of 8 s, then a reduce of 4 s; alone on machines of speed 2 and 1.
//! let side = |work| Side { work, longest: work, tasks: 1 };
//! let job = Job { weight: 1.0, release: 0.0, map: side(8.0), reduce: side(4.0) };
//! let system = System::shared(Machines::new([(2.0, 1), (1.0, 1)]));
//! assert_eq!(solve(&[job], &system, Form::Strong).completion, [6.0]);
//! ```

mod bits;
mod entry;
mod estimates;
mod jobs;
mod links;
pub mod list;
pub mod lp;
pub mod model;
pub mod online;
pub mod order;
mod plan;
mod queues;
mod replay;
#[cfg(test)]
mod tests;
mod variant;

pub use entry::{ENTRY, IDENTICAL, MAP_ONLY};
pub use online::{Config as OnlineConfig, Dmrs, Reoptimise};
pub(crate) use plan::rows;
pub use plan::{Config, Plan, plan};
pub use variant::Variant;
