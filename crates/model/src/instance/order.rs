//! Topological orders, or a cycle.

use std::collections::BTreeSet;

/// Topological order of `0..after.len()`, smallest index first among the ready ones, or a cycle.
pub(super) fn topological(after: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let n = after.len();
    let mut waiting: Vec<usize> = vec![0; n];
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (k, list) in after.iter().enumerate() {
        waiting[k] = list.len();
        for &a in list {
            before[a].push(k);
        }
    }
    let mut ready: BTreeSet<usize> = (0..n).filter(|&k| waiting[k] == 0).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(k) = ready.pop_first() {
        order.push(k);
        for &b in &before[k] {
            waiting[b] -= 1;
            if waiting[b] == 0 {
                ready.insert(b);
            }
        }
    }
    if order.len() == n { Ok(order) } else { Err(cycle(after, &waiting)) }
}

/// A cycle among the jobs that never became ready: follow unfinished predecessors until one repeats.
fn cycle(after: &[Vec<usize>], waiting: &[usize]) -> Vec<usize> {
    let mut seen = vec![usize::MAX; after.len()];
    let mut path = Vec::new();
    let mut at = waiting.iter().position(|&w| w > 0).expect("invariant: a cycle leaves jobs waiting");
    while seen[at] == usize::MAX {
        seen[at] = path.len();
        path.push(at);
        at = *after[at]
            .iter()
            .find(|&&a| waiting[a] > 0)
            .expect("invariant: a waiting job waits for a waiting job");
    }
    let mut found = path.split_off(seen[at]);
    found.push(at);
    found
}
