//! The slots guaranteed to ready phases: their own minima and shares of pool minima, scaled down if they
//! exceed the slots of the cluster.

use slackline_model::{Instance, PhaseId, PhaseKind, SlotKind, Time};

/// A phase that is ready, and how many of its tasks are not done yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) phase: PhaseId,
    pub(crate) left: u32,
}

/// The upper limit on what is ever guaranteed to `phase`: its own minimum or all of its pool's.
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

/// The minimum of each phase of `ready` (all of `slot_kind`, in order of id).
///
/// The minimum of a pool for a slot kind is split evenly over its ready phases of that kind; the remainder
/// goes to the first phases by rank. The minimum of a phase is the larger of its stated minimum and its
/// share, but at most its cap and its number of tasks left. If the minima together exceed the S slots of the
/// kind, they become floor(m·S/Σm). The slots that remain go by largest remainder, then by rank: by the
/// release of the flow, then by position in the document. O(n log n).
pub(crate) fn minima(instance: &Instance, slot_kind: SlotKind, ready: &[Ready]) -> Vec<u32> {
    let group = |r: &Ready| (instance.flow(instance.flow_of(r.phase)).pool, instance.phase(r.phase).kind);
    let mut members = vec![[0u32; 2]; instance.pools().len()];
    for r in ready {
        if let (Some(pool), kind) = group(r) {
            members[pool.index()][kind as usize] += 1;
        }
    }
    let by_rank = by_rank(instance, ready);
    let mut seen = vec![[0u32; 2]; instance.pools().len()];
    let mut minima = vec![0; ready.len()];
    for &at in &by_rank {
        let r = &ready[at];
        let phase = instance.phase(r.phase);
        let mut minimum = phase.min_slots;
        if let (Some(pool), kind) = group(r) {
            let (total, n) = (pool_minimum(instance, r.phase), members[pool.index()][kind as usize]);
            let before = &mut seen[pool.index()][kind as usize];
            minimum = minimum.max(total / n + u32::from(*before < total % n));
            *before += 1;
        }
        minima[at] = minimum.min(phase.cap).min(r.left);
    }
    normalise(&mut minima, &by_rank, instance.cluster().slots(slot_kind));
    minima
}

/// Positions in `ready`, by rank.
fn by_rank(instance: &Instance, ready: &[Ready]) -> Vec<usize> {
    let rank = |&at: &usize| -> (Time, PhaseId) {
        let phase = ready[at].phase;
        (instance.flow(instance.flow_of(phase)).release, phase)
    };
    let mut positions: Vec<usize> = (0..ready.len()).collect();
    positions.sort_by_key(rank);
    positions
}

fn normalise(minima: &mut [u32], by_rank: &[usize], slots: u32) {
    let sum: u64 = minima.iter().map(|&m| u64::from(m)).sum();
    let slots = u64::from(slots);
    if sum <= slots {
        return;
    }
    let mut remainders = Vec::with_capacity(minima.len());
    let mut rest = slots;
    for &i in by_rank {
        let m = &mut minima[i];
        let share = u64::from(*m) * slots;
        remainders.push((share % sum, i));
        *m = (share / sum) as u32;
        rest -= share / sum;
    }
    // The sort is stable: equal remainders stay in the order of rank.
    remainders.sort_by_key(|&(remainder, _)| std::cmp::Reverse(remainder));
    for &(_, i) in remainders.iter().take(rest as usize) {
        minima[i] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minima_shrink_by_largest_remainder_then_rank() {
        let mut minima = [3, 3, 4];
        normalise(&mut minima, &[0, 1, 2], 5);
        // The shares are 1.5, 1.5 and 2.0: the remaining slot goes to the first of two equal remainders.
        assert_eq!(minima, [2, 1, 2]);
        let mut minima = [3, 3, 4];
        normalise(&mut minima, &[1, 2, 0], 5);
        assert_eq!(minima, [1, 2, 2]);
        let mut fits = [3, 2];
        normalise(&mut fits, &[0, 1], 5);
        assert_eq!(fits, [3, 2]);
        let mut huge = [u32::MAX, u32::MAX];
        normalise(&mut huge, &[0, 1], (1 << 31) - 1);
        assert_eq!(huge, [1 << 30, (1 << 30) - 1]);
    }
}
