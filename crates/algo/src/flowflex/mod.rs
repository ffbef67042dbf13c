//! FlowFlex: flows of malleable jobs with precedence, for any metric.
//!
//! **Paper**: `flowflex` (Nagarajan et al., Middleware 2013): section 4 (Fig. 3 to 9, Theorems 1 to 4,
//! Corollaries 1 and 2), section 5.1 (bounds, ready-list FIFO and Fair), section 5.2 (epochs).
//!
//! **Problem**: P | malleable, linear speed-up to δ_i, prec, r_j | f for f = Σ w_j(C_j) or max w_j(C_j), each
//! w_j any non-decreasing cost function: linear, tardiness, steps, piecewise, mixed by flow. Map and reduce
//! phases are nodes of a flow's graph ([`network`]).
//!
//! **Idea**
//! 1. Each flow becomes a chain of pseudo-jobs with the same work and critical path ([`chain`]).
//!    The three stages together are [`scheme`] (Fig. 3).
//! 2. Orders of flows by deadlines: of the minimum-cost flow, rounded at several shares ([`orders`], and
//!    `slackline_relax::flow`); of bracket and bisection for maxima ([`bisection`], Fig. 8); of a choice of
//!    levels for steps; and rules.
//! 3. Chains take slots greedily in that order ([`deadlines`]).
//! 4. What a pseudo-job holds is handed to the nodes in it by McNaughton's rule ([`shape`]).
//! 5. Each order is also list scheduled on the real graph ([`list`]), which is nearly always better, and the
//!    best orders are improved by insertion ([`search`]).
//! 6. The baselines' plans are candidates too. The best is the plan, which says which it is ([`plan()`]).
//! 7. Online, a quick plan is made each epoch; its order is followed until the next, or its first allocation
//!    ([`online`]).
//!
//! **Guarantee** (of the chains, which are among the candidates; generic slots, all released at 0): with
//! slots of speed 2 no more than the optimum at speed 1 for maxima (Theorem 4), so twice the optimum for
//! maximum weighted completion at speed 1; with speed 3 and the deadlines of the flow at one half no more
//! than twice the optimum for sums (Theorem 3), so six times for weighted completion. Never worse than the
//! ready-list schedules of FIFO and Fair, and up to 5,000 nodes than the plans of the baselines. Map and reduce slots:
//! none but the last two. Called off early (`--budget`): only that the plan is valid.
//!
//! **Complexity** for n nodes, m flows, K cuts of time: a list schedule O(n (slots held + log n)), abandoned
//! when it is certain to cost more than another; a chain
//! O(steps of the profile it passes); the flow O(m K) memory and a few (m + K) pivots of O(m + K) each;
//! insertion m² list schedules a round, up to the configured number of events.
//!
//! **Invariants**: I1 chains keep both bounds of their flow ([`chain`], asserted); I2 pseudo-jobs never hold
//! more than their cap or the free slots, I3 nodes never more than theirs, I4 work is done exactly (all by
//! the judge in tests); I5 bound ≤ cost (tests).
//!
//! **Symbols**: P `slots`, δ_i `cap`, s_i `work`, V_j `NetFlow::work`, Q_j `NetFlow::earliest`, r_k
//! `PseudoJob::cap`, σ `Stretch::slots`, α `alpha`, D_j(L) `CostFn::latest`.
//!
//! **Deviations**
//! - D1 The network is a transportation problem on few cuts of time, not on every unit (docs/math/flowflex.md
//!   B2, B4).
//! - D2 Several shares α, and list schedules, rules and insertion beside the paper's candidates (B8).
//! - D3 Bisection stops at a relative width, tests realised costs, and keeps the best schedule of all probes,
//!   because success is not monotone in the level (B3 (iv)).
//! - D4 Caps are cut to the slots there are, in chains too: the critical path is that of the cluster.
//! - D5 Releases: a chain starts at its flow's; the theorems are stated for release 0.
//! - D6 Minima are no part of the model and are not kept.
//! - D7 Online, reduces take slots early only once all maps of their job have started, and only what the plan
//!   leaves; in the paper they are ready at a fraction of the maps. No other phase can take a slot from a
//!   reduce that waits, and other flows need it: costs of Fig. 12 are 4 to 23 % less.
//! - D8 Online, the search for the best order is made as often as events pay for it; in between the order is
//!   made by the rule that wins most. The first million steps are free, so that only long runs of many flows
//!   ever wait; with epochs of no length none does.
//! - D9 Online, free slots follow the order of the last plan until the next, not the slots that it gave at
//!   its start (`between=targets`, the paper): what ends within an epoch leaves slots that no target claims.
//! - D10 Online, on map and reduce slots, orders look at the work of the kind of slots that has most to do and at its
//!   slots only (`kinds=sum` for both together); the paper has slots of one kind.
//!
//! **Example**
//! ```
//! use slackline_algo::flowflex::{Config, plan};
//! use slackline_model::cluster::Slots;
//! use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
//! use slackline_model::{Combine, Instance, Metric, Objective};
//!
//! let job = |id: &str, after: &[&str]| JobDraft {
//!     id: id.into(),
//!     after: after.iter().map(|&a| a.into()).collect(),
//!     map: Some(TasksDraft::Uniform { tasks: 2, seconds: 5.0 }.into()),
//!     ..JobDraft::default()
//! };
//! let machine =
//!     MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(2), rack: None };
//! let draft = Draft {
//!     machines: vec![machine],
//!     flows: vec![
//!         FlowDraft::new("chain", vec![job("a", &[]), job("b", &["a"])]),
//!         FlowDraft::new("one", vec![job("c", &[])]),
//!     ],
//!     objective: Objective::new(Metric::Completion, Combine::Sum),
//!     ..Draft::default()
//! };
//! let plan = plan(&Instance::new(&draft)?, &Config::thorough())?;
//! // The short flow first: 5 + 15.
//! assert!((plan.cost - 20.0).abs() < 1e-9 && plan.bound > 19.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bisection;
pub mod chain;
pub mod deadlines;
mod entry;
pub mod list;
pub mod network;
mod numbers;
pub mod online;
pub mod orders;
mod plan;
mod remaining_flows;
pub mod scheme;
pub mod search;
pub mod shape;
#[cfg(test)]
mod tests;

pub use entry::{ENTRY, Promise, promise};
pub use online::FlowFlex;
pub use plan::{Candidate, Config, Plan, Realisation, Source, plan};
