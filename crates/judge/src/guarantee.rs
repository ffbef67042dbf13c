//! The slots guaranteed to the phases that are ready: own minima, pools, and what is left of both
//! when they exceed the lane.

use slackline_model::{Instance, Lane, PhaseId, PhaseKind};

/// A phase that is ready, and how many of its tasks are not done yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) phase: PhaseId,
    pub(crate) left: u32,
}

/// The most that is ever guaranteed to `phase`: its own minimum or all of its pool's.
pub(crate) fn at_most(instance: &Instance, phase: PhaseId) -> u32 {
    let own = instance.phase(phase).min_slots;
    own.max(pool_minimum(instance, phase)).min(instance.phase(phase).cap)
}

fn pool_minimum(instance: &Instance, phase: PhaseId) -> u32 {
    let pool = instance.flow(instance.flow_of(phase)).pool.map(|pool| &instance.pools()[pool]);
    pool.map_or(0, |pool| match instance.phase(phase).kind {
        PhaseKind::Map => pool.min_map,
        PhaseKind::Reduce => pool.min_reduce,
    })
}

/// The minimum of each phase of `ready` (all of `lane`, in order of id).
///
/// A pool's minimum for a kind is split evenly over its ready phases of that kind, the remainder to
/// the lowest ids. A phase's minimum is the larger of its own and its share, at most its cap and its
/// tasks left. If the minima together exceed the lane's slots S, they become floor(m·S/Σm), the rest
/// by largest remainder, then by id. O(n log n).
pub(crate) fn minima(instance: &Instance, lane: Lane, ready: &[Ready]) -> Vec<u32> {
    let group = |r: &Ready| (instance.flow(instance.flow_of(r.phase)).pool, instance.phase(r.phase).kind);
    let mut members = vec![[0u32; 2]; instance.pools().len()];
    for r in ready {
        if let (Some(pool), kind) = group(r) {
            members[pool.index()][kind as usize] += 1;
        }
    }
    let mut seen = vec![[0u32; 2]; instance.pools().len()];
    let mut minima = Vec::with_capacity(ready.len());
    for r in ready {
        let phase = instance.phase(r.phase);
        let mut minimum = phase.min_slots;
        if let (Some(pool), kind) = group(r) {
            let (total, n) = (pool_minimum(instance, r.phase), members[pool.index()][kind as usize]);
            let rank = &mut seen[pool.index()][kind as usize];
            minimum = minimum.max(total / n + u32::from(*rank < total % n));
            *rank += 1;
        }
        minima.push(minimum.min(phase.cap).min(r.left));
    }
    normalise(&mut minima, instance.cluster().slots(lane));
    minima
}

fn normalise(minima: &mut [u32], slots: u32) {
    let sum: u64 = minima.iter().map(|&m| u64::from(m)).sum();
    let slots = u64::from(slots);
    if sum <= slots {
        return;
    }
    let mut remainders = Vec::with_capacity(minima.len());
    let mut rest = slots;
    for (i, m) in minima.iter_mut().enumerate() {
        let share = u64::from(*m) * slots;
        remainders.push((share % sum, i));
        *m = (share / sum) as u32;
        rest -= share / sum;
    }
    remainders.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    for &(_, i) in remainders.iter().take(rest as usize) {
        minima[i] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minima_shrink_by_largest_remainder_then_id() {
        let mut minima = [3, 3, 4];
        normalise(&mut minima, 5);
        // 1.5, 1.5, 2.0: the one slot of the rest goes to the first of two equal remainders.
        assert_eq!(minima, [2, 1, 2]);
        let mut fits = [3, 2];
        normalise(&mut fits, 5);
        assert_eq!(fits, [3, 2]);
        let mut huge = [u32::MAX, u32::MAX];
        normalise(&mut huge, (1 << 31) - 1);
        assert_eq!(huge, [1 << 30, (1 << 30) - 1]);
    }
}
