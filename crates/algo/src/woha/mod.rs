//! WOHA: each workflow follows a plan made at its submission; the one that lags most behind goes first.
//!
//! **Paper**: `woha`, sections III (framework), IV-A (Algorithm 1), IV-B (Algorithm 2), V-C (job
//! priorities).
//!
//! **Problem**: online, flows of jobs with deadlines, tasks are not preempted; as few late flows as possible.
//! Map and reduce slots, or generic slots; machine speeds are ignored (plans use the mean speed of a slot
//! kind).
//!
//! **Idea**:
//! 1. The submitting side puts the jobs of a flow in an order ([`priorities`]).
//! 2. It simulates the flow alone on the cluster, list scheduling by that order, and records how many
//!    tasks have been started by which time ([`generate`]). Counted back from the end these are the
//!    progress requirements: a number of tasks for each time before the deadline.
//! 3. It may cap the slots of the simulation at the fewest with which the deadline is still met, so that
//!    the plan does not count on the whole cluster shortly before the deadline.
//! 4. Order and requirements are the [`plan`], a few kilobytes at most. The AM does no analysis.
//! 5. When a slot is free the AM serves the flow that lags most behind its requirement
//!    ([`scheduler`], [`lag`]), and in it the first job of its order that can run ([`online`]).
//!
//! **Guarantee**: none: heuristic. If the simulated plan of a flow misses its deadline on the whole cluster,
//! this is known at submission, with the possible completion ([`slackline_policy::Admission`]).
//!
//! **Complexity**: a plan O(E log J) for each cap tried, E batches of equal tasks (at most the tasks),
//! J jobs. A decision O((k + 1) log n), n flows, k requirements that fell due since the last.
//!
//! **Invariants**: I1 a flow is in the list of a slot kind if and only if it may have a phase to run there
//! (`active`); I2 the true progress of a flow is the number of its tasks that are not to be started
//! (`online`, settled before every decision); I3 lists and records agree (`lag` tests, against
//! recomputation).
//!
//! **Symbols**: W_i flow, J_i^j job, m, r tasks of a phase, M, R their spans, D_i deadline, F_i
//! [`plan::Step`]s, ttd time to deadline, req tasks required, ρ_i `started`, p_i lag.
//!
//! **Deviations**: D1–D6 correct Algorithm 1 and the search for a cap, D7–D9 Algorithm 2; the rest are
//! ours.
//! - D1: slots come back when tasks end; printed, they never do. All events of one instant are taken
//!   before slots are given out, and slots are given out while there are slots and jobs.
//! - D2: a job's dependents are activated when its last task *completes*, and tested for having no
//!   predecessor left, P_i^k; printed, the last *scheduled* predecessor decides, and D_i^k is tested.
//! - D3: requirements are cumulative, as the text and Algorithm 2 use them.
//! - D4: map slots and reduce slots are counted separately, and the cap holds for each kind; `pooled` counts
//!   them together, as the paper does.
//! - D5: jobs without maps or without reduces do not pass through an empty phase.
//! - D6: makespan is not monotone in the cap, so binary search may miss the smallest one. It is kept
//!   (`cap=search`) beside the exact scan (`cap=scan`); both begin at work over time.
//! - D7: line 7 must take W_h out of the ct list; when the last requirement has fired the next change
//!   is never; printed, it reads past the end.
//! - D8: line 20 takes the head even if no task of it can run on the free slot; here a flow is in the list of
//!   a slot kind only while a task may.
//! - D9: tasks that must run again lower the true progress and raise the lag.
//! - D10: flows without deadline come after all others, fewest started tasks first.
//! - D11: a flow that cannot meet its deadline even alone has no requirements (`late=yield`), so it gets the
//!   slots that lagging flows leave. Followed literally (`late=follow`), all overdue tasks are due at once,
//!   and the flow delays other flows past their deadlines without benefit.
//! - D12: maxima of phases are kept in the simulation.
//! - D13: lag is counted in time by default ([`lag::Measure`], `lag=tasks` for the paper's): the flow
//!   whose next task is due earliest comes first. Counted in tasks, the larger of two flows that are
//!   behind always lags more, so that the small one, or one with only its last few tasks to run, waits
//!   until the large one has caught up.
//! - D14: a flow that is behind its plan, or whose deadline has passed, yields (`late=yield`) until it is in
//!   time again; an overdue plan on the whole cluster (`cap=none`, the default) cannot catch up. The smallest
//!   cap leaves no slack: any job that shares slots is late immediately. Both defaults are measured on four
//!   workloads (`record/papers.md`); the paper's algorithm is `cap=search:lag=tasks:late=follow`.
//!
//! **Example**
//! ```
//! use slackline_algo::woha::{Cap, JobOrder, PlanGenerator, Progress, Request};
//! use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
//! use slackline_model::{Draft, FlowId, Instance, Time, cluster::Slots};
//! use slackline_policy::Estimates;
//!
//! // Six maps of a second, then a reduce, on three map slots and one reduce slot.
//! let uniform = |tasks| Some(TasksDraft::Uniform { tasks, seconds: 1.0 }.into());
//! let job = JobDraft { id: "j".into(), map: uniform(6), reduce: uniform(1), ..JobDraft::default() };
//! let mut flow = FlowDraft::new("w", vec![job]);
//! flow.deadline = Some(5.0);
//! let slots = Slots::MapReduce { map: 3, reduce: 1 };
//! let node = MachineDraft { name: "n".into(), count: 1, speed: 1.0, slots, rack: None };
//! let draft = Draft { machines: vec![node], flows: vec![flow], ..Draft::default() };
//! let instance = Instance::new(&draft).unwrap();
//!
//! let generator = Progress { order: JobOrder::LongestPath, cap: Cap::Search, pooled: false };
//! let estimates = Estimates::mean(&instance);
//! let request = Request { instance: &instance, flow: FlowId(0), estimates: &estimates, now: Time::ZERO };
//! let plan = generator.plan(&request);
//! // Two map slots are enough: 3 + 1 seconds. With one it would take 7.
//! assert_eq!((plan.cap(), plan.length().seconds()), (2, 4.0));
//! let steps: Vec<_> = plan.steps().iter().map(|s| (s.ttd.seconds(), s.req)).collect();
//! assert_eq!(steps, [(4.0, 2), (3.0, 4), (2.0, 6), (1.0, 7)]);
//! assert!(plan.encode().len() < 30);
//! ```

mod active;
mod entry;
pub mod generate;
pub mod lag;
pub mod online;
pub mod plan;
pub mod priorities;
mod request;
pub mod scheduler;
mod simulated_plan;
#[cfg(test)]
mod tests;

pub use entry::{HLF, LPF, MPF};
pub use generate::{Cap, PlanGenerator, Progress, admission};
pub use online::{Late, Woha};
pub use plan::{Plan, PlanError, Step};
pub use priorities::JobOrder;
pub use request::Request;
pub use scheduler::{Goal, Turn, WorkflowScheduler};
