//! The minima in force at an instant: the number of slots that each ready phase should hold at least.
//!
//! The minimum of a phase is the larger of its stated minimum and its share of its pool's, but never more
//! than its cap or its tasks left. When the minima of all ready phases of a slot kind exceed its slots S they
//! become floor(m·S/Σm). The remaining slots go by largest remainder, then by rank (FLEX §1: "simply
//! normalized if necessary"; the rounding is that of the schedule document).

use std::collections::BTreeMap;

use slackline_model::id::PoolId;
use slackline_model::{Instance, PhaseId, PhaseKind, SlotKind, Time};

use crate::id_table::IdTable;
use crate::state::State;

/// Effective minima of all phases, updated by [`Minima::refresh`]. At first no phase is ready.
#[derive(Clone, Debug, Default)]
pub struct Minima {
    effective: IdTable<PhaseId, u32>,
    /// Phases with an effective minimum above 0, by slot kind.
    held: [Vec<PhaseId>; 2],
}

impl Minima {
    /// Forgets the phases of a finished flow.
    pub fn forget(&mut self, phases: impl IntoIterator<Item = PhaseId>) {
        self.effective.forget(phases);
    }

    /// The number of slots that a phase should hold at least now.
    pub fn of(&self, phase: PhaseId) -> u32 {
        self.effective[phase]
    }

    /// Recomputes the minima of a slot kind and calls `changed` with each phase whose minimum changed.
    /// O(ready phases · log).
    pub fn refresh(
        &mut self,
        instance: &Instance,
        state: &State,
        slot_kind: SlotKind,
        mut changed: impl FnMut(PhaseId),
    ) {
        // Most of the time no phase has a guarantee.
        if state.guaranteed(slot_kind).next().is_none() && self.held[slot_kind.index()].is_empty() {
            return;
        }
        let now = effective(instance, state, slot_kind);
        let before = std::mem::take(&mut self.held[slot_kind.index()]);
        let old: Vec<(PhaseId, u32)> = before.iter().map(|&p| (p, self.effective[p])).collect();
        for &(phase, _) in &old {
            self.effective[phase] = 0;
        }
        for &(phase, min) in &now {
            self.effective[phase] = min;
        }
        self.held[slot_kind.index()] = now.iter().map(|&(p, _)| p).collect();
        for &(phase, min) in &old {
            if self.effective[phase] != min {
                changed(phase);
            }
        }
        for &(phase, min) in &now {
            if before.binary_search(&phase).is_err() && min > 0 {
                changed(phase);
            }
        }
    }
}

/// The effective minima of the ready phases of a slot kind that have one, by id.
pub fn effective(instance: &Instance, state: &State, slot_kind: SlotKind) -> Vec<(PhaseId, u32)> {
    if state.guaranteed(slot_kind).next().is_none() {
        return Vec::new();
    }
    let ready: Vec<(PhaseId, u32)> = state
        .guaranteed(slot_kind)
        .filter(|&p| state.phase(p).running() > 0 || state.runnable(instance, p) > 0)
        .map(|p| (p, state.phase(p).unstarted() + state.phase(p).running()))
        .collect();
    among(instance, slot_kind, &ready)
}

/// The effective minima of these phases of a slot kind, each with its tasks left, in order of id; phases
/// without one are left out. O(phases · log).
pub fn among(instance: &Instance, slot_kind: SlotKind, ready: &[(PhaseId, u32)]) -> Vec<(PhaseId, u32)> {
    let shares = pool_shares(instance, ready);
    let mut minima: Vec<(PhaseId, u32)> = Vec::new();
    for &(phase, left) in ready {
        let own = instance.phase(phase).min_slots;
        let min = own.max(shares.get(&phase).copied().unwrap_or(0)).min(instance.phase(phase).cap).min(left);
        if min > 0 {
            minima.push((phase, min));
        }
    }
    normalise(&mut minima, instance.cluster().slots(slot_kind), |phase| rank(instance, phase));
    minima
}

/// Breaks ties: by the release of the flow, then by position in the document (of the flow, the job, the
/// phase), which is the order of ids.
fn rank(instance: &Instance, phase: PhaseId) -> (Time, PhaseId) {
    (instance.flow(instance.flow_of(phase)).release, phase)
}

/// The share of each ready phase of its pool's minimum: equal parts, the remainder to the first by rank.
fn pool_shares(instance: &Instance, ready: &[(PhaseId, u32)]) -> BTreeMap<PhaseId, u32> {
    let mut members: BTreeMap<(PoolId, PhaseKind), Vec<PhaseId>> = BTreeMap::new();
    for &(phase, _) in ready {
        if let Some(pool) = instance.flow(instance.flow_of(phase)).pool {
            members.entry((pool, instance.phase(phase).kind)).or_default().push(phase);
        }
    }
    let mut shares = BTreeMap::new();
    for ((pool, kind), mut phases) in members {
        phases.sort_by_key(|&phase| rank(instance, phase));
        let pool = &instance.pools()[pool];
        let min = if kind == PhaseKind::Map { pool.min_map } else { pool.min_reduce };
        let (each, over) = (min / phases.len() as u32, min % phases.len() as u32);
        for (k, phase) in phases.into_iter().enumerate() {
            shares.insert(phase, each + u32::from((k as u32) < over));
        }
    }
    shares
}

/// Scales minima down to `slots` by largest remainder, ties by rank, if they exceed it.
fn normalise<R: Ord>(minima: &mut [(PhaseId, u32)], slots: u32, rank: impl Fn(PhaseId) -> R) {
    let sum: u64 = minima.iter().map(|&(_, m)| u64::from(m)).sum();
    if sum <= u64::from(slots) {
        return;
    }
    let mut remainders: Vec<(std::cmp::Reverse<u64>, R, usize)> = Vec::new();
    let mut left = slots;
    for (k, (phase, min)) in minima.iter_mut().enumerate() {
        let exact = u64::from(*min) * u64::from(slots);
        *min = (exact / sum) as u32;
        left -= *min;
        remainders.push((std::cmp::Reverse(exact % sum), rank(*phase), k));
    }
    remainders.sort_unstable();
    for &(_, _, k) in remainders.iter().take(left as usize) {
        minima[k].1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::{Draft, FlowDraft, PerPhase, PoolDraft};
    use slackline_model::{FlowId, Time};

    use super::*;
    use crate::testing::{flow, machines, uniform};

    #[test]
    fn minima_above_capacity_shrink_by_largest_remainder_then_rank() {
        let mut minima = [(PhaseId(0), 3), (PhaseId(1), 3), (PhaseId(2), 1)];
        normalise(&mut minima, 4, |phase| phase);
        // 12/7, 12/7, 4/7: floors 1, 1, 0; remainders 5, 5, 4.
        assert_eq!(minima.map(|(_, m)| m), [2, 2, 0]);
        let mut fits = [(PhaseId(0), 3), (PhaseId(1), 1)];
        normalise(&mut fits, 4, |phase| phase);
        assert_eq!(fits.map(|(_, m)| m), [3, 1]);
    }

    #[test]
    fn the_largest_remainder_wins_under_any_id() {
        let mut minima = [(PhaseId(0), 3), (PhaseId(1), 1)];
        normalise(&mut minima, 3, |phase| phase);
        // 9/4 and 3/4: floors 2 and 0, remainders 1 and 3.
        assert_eq!(minima.map(|(_, m)| m), [2, 1]);
    }

    /// Flows not listed by release, of 3 maps each and a minimum of 3, on 4 slots.
    #[test]
    fn ties_end_in_the_release_before_the_place() {
        let late = |id: &str, release: f64| {
            let mut flow = FlowDraft { release, ..flow(id, uniform(3, 1.0), None) };
            flow.jobs[0].min_slots = PerPhase::both(3);
            flow
        };
        let draft = |pool: Option<u32>| {
            let mut flows = vec![late("f", 5.0), late("g", 0.0), late("h", 5.0)];
            for flow in &mut flows {
                flow.pool = pool.map(|_| "p".into());
                if pool.is_some() {
                    flow.jobs[0].min_slots = PerPhase::default();
                }
            }
            let pools = pool.map(|min| PoolDraft {
                id: "p".into(),
                min_slots: PerPhase { map: Some(min), reduce: None },
            });
            let pools = pools.into_iter().collect();
            Instance::new(&Draft { machines: vec![machines("m", 1, 4)], flows, pools, ..Draft::default() })
                .unwrap()
        };
        let ready = left(&[(0, 3), (1, 3), (2, 3)]);
        // 12/9 each: one slot is left over, and goes to the flow that arrived first.
        assert_eq!(among(&draft(None), SlotKind::Any, &ready), left(&[(0, 1), (1, 2), (2, 1)]));
        assert_eq!(among(&draft(Some(4)), SlotKind::Any, &ready), left(&[(0, 1), (1, 2), (2, 1)]));
        assert_eq!(
            among(&draft(Some(2)), SlotKind::Any, &ready),
            left(&[(0, 1), (1, 1)]),
            "then to the place"
        );
    }

    /// Three flows with these numbers of maps on 20 slots, the first two in a pool with a minimum of five
    /// maps, the third with its own minimum.
    fn pooled(counts: [u32; 3], own: u32) -> Instance {
        let pool = PoolDraft { id: "p".into(), min_slots: PerPhase { map: Some(5), reduce: None } };
        let in_pool = |id: &str, n| FlowDraft { pool: Some("p".into()), ..flow(id, uniform(n, 1.0), None) };
        let mut third = flow("h", uniform(counts[2], 1.0), None);
        third.jobs[0].min_slots = PerPhase::both(own);
        Instance::new(&Draft {
            machines: vec![machines("m", 1, 20)],
            flows: vec![in_pool("f", counts[0]), in_pool("g", counts[1]), third],
            pools: vec![pool],
            ..Draft::default()
        })
        .unwrap()
    }

    fn left(list: &[(u32, u32)]) -> Vec<(PhaseId, u32)> {
        list.iter().map(|&(phase, left)| (PhaseId(phase), left)).collect()
    }

    #[test]
    fn the_minimum_of_a_pool_is_shared_by_its_ready_phases() {
        let instance = pooled([9, 9, 9], 0);
        let of = |ready: &[(u32, u32)]| among(&instance, SlotKind::Any, &left(ready));
        assert_eq!(of(&[(0, 9), (1, 9), (2, 9)]), left(&[(0, 3), (1, 2)]), "the odd one to the lower id");
        assert_eq!(of(&[(1, 9), (2, 9)]), left(&[(1, 5)]));
        assert_eq!(of(&[(0, 9), (1, 1)]), left(&[(0, 3), (1, 1)]), "no more than there are tasks left");
    }

    #[test]
    fn a_minimum_is_at_most_the_cap() {
        let instance = pooled([2, 9, 9], 4);
        let ready = left(&[(0, 9), (1, 9), (2, 9)]);
        assert_eq!(among(&instance, SlotKind::Any, &ready), left(&[(0, 2), (1, 2), (2, 4)]));
    }

    #[test]
    fn the_larger_of_the_own_minimum_and_the_share_of_the_pool_counts() {
        let mut draft = flow("f", uniform(9, 1.0), None);
        for (own, expected) in [(4, 5), (6, 6)] {
            draft.jobs[0].min_slots = PerPhase::both(own);
            draft.pool = Some("p".into());
            let pool = PoolDraft { id: "p".into(), min_slots: PerPhase { map: Some(5), reduce: Some(1) } };
            let instance = Instance::new(&Draft {
                machines: vec![machines("m", 1, 20)],
                flows: vec![draft.clone()],
                pools: vec![pool],
                ..Draft::default()
            })
            .unwrap();
            assert_eq!(among(&instance, SlotKind::Any, &left(&[(0, 9)])), left(&[(0, expected)]));
        }
    }

    #[test]
    fn the_phases_whose_minimum_moved_are_named() {
        let instance = pooled([9, 9, 9], 2);
        let mut state = State::new(instance.cluster(), 1.0);
        let mut minima = Minima::default();
        let mut refresh = |state: &State| {
            let mut changed = Vec::new();
            minima.refresh(&instance, state, SlotKind::Any, |phase| changed.push(phase.0));
            (changed, [0, 1, 2].map(|p| minima.of(PhaseId(p))))
        };
        assert_eq!(refresh(&state), (vec![], [0, 0, 0]), "nothing has arrived");
        for flow in [0, 2] {
            state.arrive(&instance, FlowId(flow), Time::ZERO, &mut Vec::new());
        }
        assert_eq!(refresh(&state), (vec![0, 2], [5, 0, 2]));
        assert_eq!(refresh(&state), (vec![], [5, 0, 2]));
        state.arrive(&instance, FlowId(1), Time::ZERO, &mut Vec::new());
        assert_eq!(refresh(&state), (vec![0, 1], [3, 2, 2]));
        state.give_up(&instance, FlowId(2), &mut Vec::new());
        assert_eq!(refresh(&state), (vec![2], [3, 2, 0]));
    }

    #[test]
    fn a_phase_that_runs_keeps_its_minimum_although_nothing_more_can_start() {
        let instance = pooled([9, 9, 1], 1);
        let mut state = State::new(instance.cluster(), 1.0);
        state.arrive(&instance, FlowId(2), Time::ZERO, &mut Vec::new());
        state.take(&instance, PhaseId(2), 1);
        assert_eq!(effective(&instance, &state, SlotKind::Any), left(&[(2, 1)]));
    }
}
