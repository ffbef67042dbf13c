//! The resource allocation problem for costs that are not convex: a dynamic program over slots.
//!
//! **Paper**: FLEX §3.2 ("a simple dynamic programming algorithm", O(J·S²)). A step cost with K steps
//! only changes at ⌈V/d_k⌉ slots, so that a job has K + 1 useful choices and the program is a
//! multiple-choice knapsack in O(S·ΣK) (docs/math/flex.md C5).

use slackline_relax::malleable::Job;

use super::constant::{cost, least, most, spare};
use super::instance::FlexInstance;

/// The optimal constant allocation for any costs; `None` if there are more jobs than slots or the program
/// would look at more than `cells` pairs of choice and slot. O(slots · choices) time, O(slots · jobs) memory.
pub fn dynamic_program(instance: &FlexInstance, cells: u64) -> Option<Vec<u32>> {
    program(instance, useful, cells)
}

/// The paper's program, which tries all slots from a job's least to its most.
#[cfg(test)]
pub(super) fn paper_program(instance: &FlexInstance, cells: u64) -> Option<Vec<u32>> {
    program(instance, all, cells)
}

/// (slots above the least, cost) choices of a job for that number of spare slots, fewest first.
type Options = fn(&Job, u32) -> Vec<(u32, f64)>;

fn program(instance: &FlexInstance, options: Options, cells: u64) -> Option<Vec<u32>> {
    let spare = spare(instance)? as usize;
    let options: Vec<Vec<(u32, f64)>> =
        instance.jobs().iter().map(|job| options(job, spare as u32)).collect();
    let n: usize = options.iter().map(Vec::len).sum();
    if n as u64 * (spare as u64 + 1) > cells {
        return None;
    }
    // best[x]: the least cost of assigning at most x slots above the least to the jobs so far.
    let mut best = vec![0.0; spare + 1];
    let mut chosen: Vec<Vec<u32>> = Vec::with_capacity(options.len());
    for list in &options {
        let mut next = vec![f64::INFINITY; spare + 1];
        let mut pick = vec![0; spare + 1];
        for (k, &(more, price)) in list.iter().enumerate() {
            for x in more as usize..=spare {
                let total = best[x - more as usize] + price;
                if total < next[x] {
                    (next[x], pick[x]) = (total, k as u32);
                }
            }
        }
        best = next;
        chosen.push(pick);
    }
    let mut x = spare;
    let mut slots = vec![0; options.len()];
    for (job, list) in options.iter().enumerate().rev() {
        let (more, _) = list[chosen[job][x] as usize];
        slots[job] = least(&instance.jobs()[job]) + more;
        x -= more as usize;
    }
    Some(slots)
}

fn all(job: &Job, spare: u32) -> Vec<(u32, f64)> {
    let least = least(job);
    (0..=(most(job) - least).min(spare)).map(|more| (more, cost(job, least + more))).collect()
}

/// For step costs, only choices at which a step is met.
fn useful(job: &Job, spare: u32) -> Vec<(u32, f64)> {
    let Some(steps) = job.cost.as_steps() else { return all(job, spare) };
    let least = least(job);
    let reach = (most(job) - least).min(spare);
    let needed = |&(due, _): &(f64, f64)| {
        let within = due - job.base;
        let slots = (job.work / within * (1.0 - 1e-12)).ceil();
        (within > 0.0 && slots <= f64::from(least + reach)).then_some(slots as u32)
    };
    let met = steps.iter().filter_map(needed).map(|slots| slots.saturating_sub(least));
    let mut choices: Vec<u32> = met.chain([0]).collect();
    choices.sort_unstable();
    choices.dedup();
    choices.into_iter().map(|more| (more, cost(job, least + more))).collect()
}
