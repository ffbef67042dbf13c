//! Rules of the textbook, online: the active flows in the order of their remaining work.
//!
//! **Paper**: none; the rules are those of single machines (Smith 1956 for `area` and `wspt`, Jackson 1955
//! for `edf`, Moore 1968 for `moore`, Johnson 1954, Rachamadugu and Morton 1983 and Vepsalainen and Morton
//! 1987 for `atc`).
//! **Problem**: flows that arrive over time, any metric; each rule is for some.
//! **Idea**: 1. When a flow arrives or is over, measure what is left of each flow at estimated lengths
//! ([`residual`]).
//! 2. Put the flows in the order of the rule ([`orders`]), as if all slots together were one machine. 3. A
//!    free slot goes to the first flow that can use it, and there to the phase with the longest path to the
//!    end of the flow; a slow slot is left free while faster ones would do the rest of the phase sooner.
//! **Guarantee**: none with several slots. **Complexity**, when a flow arrives or is over, for n phases of the
//! flows that are there: O(batches and phases of flows that run or changed, log n for each that moves) for
//! rules whose keys stay as long as a flow does not change; else O(n log n). O(log n) a decision.
//! **Deviations**: D1. The remaining work of a phase is at least a tenth of its finished work. D2.
//! `moore` with weights leaves late what has most area over weight. D3. `due` is the earliest date by which
//! the largest cost stays below a level. D4. Where slots are generic, Johnson's stages are all maps and all
//! reduces of a flow. D5. A flow without a deadline is due when its cost begins to rise; `woha` has it last.
//! D6. `woha` computes lag when the others decide, and not whenever a requirement falls due. D7. A flow is
//! one job to `dmrs`: its floor is its time alone, its rate alone the mean over that time.
//!
//! | rule | first is the flow with | for |
//! |---|---|---|
//! | `fifo`, `edf` | the earliest release, due date | |
//! | `srpt`, `wspt`, `lrpt` | the least time left, over its weight; the most time left | response of wide clusters; makespan |
//! | `area` | the least work over weight, in the kind of slots it needs most | response |
//! | `slope` | the least work over what a second costs | any cost that grows evenly, such as slowdown |
//! | `johnson` | Johnson's order of maps and reduces | makespan on map and reduce slots |
//! | `lst` | the least slack: due date less time left | largest lateness |
//! | `atc` | the largest apparent tardiness cost | tardiness |
//! | `moore`, `worth` | the earliest due date, of those that can be on time; `worth` keeps those first that are worth most for their work (FLEX's schemes for due dates) | tardy |
//! | `mk-tct-jr` | Johnson's order, of those first that take no longer than the geometric mean (MK_TCT_JR on what is left) | makespan and response |
//! | `woha` | the most tasks that should have been started by now and were not, by the plan that WOHA makes when a flow comes | tardy |
//! | `dmrs` | the least completion time in DMRS's linear program, less half its time alone | response |
//! | `due` | the earliest date that keeps the largest cost below a level | any maximum |
//! | `critical-path` | the longest path, of phases rather than flows | makespan |

mod lag;
pub mod online;
pub mod orders;
pub mod residual;

pub use online::{ByRule, ENTRY};

#[cfg(test)]
pub(crate) mod tests;
