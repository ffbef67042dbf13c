//! Job orders and slot configurations for flows of one job each on map slots and reduce slots.
//!
//! **Paper**: `ordering` (Tang, Lee, He), sections 4 to 6: MREstimator, Algorithms 1 to 5, Theorems 1 to
//! 4, Lemmas 2 to 4, the proportional configuration property. What does not hold is in docs/math/ordering.md,
//! which wins.
//!
//! **Problem**: two-stage flow shop with many tasks a stage: jobs of maps, then reduces, all released at
//! 0, on a map and b reduce slots, served by FIFO in an order that is to be chosen, and with it a and b
//! of a total |S|. Costs: makespan, total completion time, or both as a Pareto front. Releases, flows of
//! several jobs, phases without tasks and maxima are refused offline ([`workload`]); the policies
//! ([`online`]) take everything.
//!
//! **Idea**:
//! 1. MREstimator ([`estimator`]) says when each job of an order completes; runs of equal tasks are
//!    batches, of any number of tasks.
//! 2. MK_JR ([`orders`], Algorithm 1): Johnson's rule on how long the stages of the jobs last.
//! 3. MK_TCT_JR (Algorithm 2): the same among jobs no longer than the geometric mean, then among the
//!    others.
//! 4. MK_SF_JR and MK_TCT_SF_JR ([`split`], Algorithms 4 and 5): the best of all splits with these
//!    orders. Best-first search over ranges of splits, by lower bounds that hold over a range, estimates
//!    only those that could be best.
//! 5. EX_MK_SF_JR ([`exhaustive`], Algorithm 3): the best of all orders on all splits, up to nine jobs.
//! 6. An order becomes a schedule of tasks ([`plan`](mod@plan)) that the judge can check.
//!
//! **Guarantee**: splits are exact for their rule; EX_MK_SF_JR is optimal among FIFO orders. MK_JR and
//! MK_SF_JR with area times: within a factor 1 + δ' of the optimum, δ' = (max t^M + 2 max t^R) / F with
//! F the fluid makespan of Johnson's order (docs/math/ordering.md D5, in place of Theorems 1 and 4), for
//! work-conserving reduces. MK_TCT_JR: none, a heuristic.
//!
//! **Complexity**: an order O(n log n); an estimate O(n G log G) for G groups of slots that are free at
//! the same time, G at most the slots and the runs of tasks; a sweep in the worst case |S| times that.
//!
//! **Invariants**: I1: what the estimator says is what a simulation task by task gives (tests). I2: no
//! split of a range gives less than the bounds of the range (tests). I3: sweeps give what estimating
//! every split gives (tests).
//!
//! **Symbols**: J_i [`JobId`](slackline_model::JobId); φ order; |S^M|, |S^R| [`workload::Split`] (a, b);
//! t^M, t^R task durations; T^M, T^R stage times ([`orders::Times`]); C_max makespan; C_tct total
//! completion time; r = a/b.
//!
//! **Deviations**: D1: ready reduces of later jobs may overtake unready ones of earlier jobs, as in
//! Hadoop; [`estimator::Mode::Strict`] is the other reading. D2: stage times ⌈n/a⌉·d are a second
//! candidate order for MK_JR, the better is kept. D3: jobs that take no time are small and not in the
//! geometric mean, which they would make 0. D4: Algorithm 5 prints the least makespan only; here the
//! whole front is given and that choice marked; of equal values the first that the search finds is
//! kept, not the one with fewest map slots. D5: the proportional property is a start and an option, not
//! an answer ([`split::proportional`]). D6: Lemma 2 and Theorems 1 and 4 are replaced, see Guarantee.
//!
//! **Example**: section 5.3, where the paper says 35 is optimal on ten map and ten reduce slots.
//! ```
//! use slackline_algo::ordering::estimator::{Mode, estimate};
//! use slackline_algo::ordering::orders::{Times, mk_jr};
//! use slackline_algo::ordering::workload::{Job, Split, Workload};
//! use slackline_model::{JobId, Span};
//!
//! let jobs = vec![Job::uniform(10, 9, 1, 10), Job::uniform(8, 11, 1, 15)];
//! let workload = Workload::new(jobs)?;
//! let split = Split::new(10, 10)?;
//! let order = mk_jr(&workload, split, Times::Area);
//! assert_eq!(order, [JobId(1), JobId(0)]);
//! assert_eq!(estimate(&workload, &order, split, Mode::WorkConserving).makespan(), Span(30));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bounds;
mod changes;
mod entry;
pub mod estimator;
mod executor;
pub mod exhaustive;
mod johnson_order;
pub mod online;
pub mod orders;
pub mod plan;
mod ranges;
mod sizes;
mod slot_bank;
pub mod split;
mod split_search;
pub mod splits;
#[cfg(test)]
mod tests;
pub mod workload;

pub use entry::{MK_JR, MK_TCT_JR};
