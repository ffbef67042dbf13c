//! The lists against recomputation.

use std::collections::BTreeSet;

use slackline_model::{FlowId, SlotKind, Span, Time};

use super::{Lags, Measure, Naive};
use crate::woha::plan::{Plan, Step};
use crate::woha::scheduler::{Goal, Turn, WorkflowScheduler};

/// A small random number generator, so that long streams are cheap.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn plan(&mut self) -> Plan {
        let (mut ttd, mut req) = (self.below(30), 0);
        let mut steps = Vec::new();
        for _ in 0..self.below(6) {
            req += 1 + self.below(4);
            steps.push(Step { ttd: Span(ttd), req });
            let Some(later) = ttd.checked_sub(1 + self.below(9)) else { break };
            ttd = later;
        }
        Plan::new(1, Span::ZERO, vec![0], steps).unwrap()
    }
}

/// A scheduler and the naive one, with the same input.
struct Pair<'a> {
    naive: Naive,
    fast: &'a mut dyn WorkflowScheduler,
}

impl Pair<'_> {
    fn tell(&mut self, call: impl Fn(&mut dyn WorkflowScheduler)) {
        call(&mut self.naive);
        call(self.fast);
    }

    /// Assigns tasks to the first flow, with the number from the fast one; checks each.
    fn assign(&mut self, slot_kind: SlotKind, refused: u32) {
        let accept = |flow: FlowId| flow.0 % 5 != refused;
        let head = |naive: &Naive| naive.first(slot_kind, &mut { accept }).map(|turn| turn.flow);
        let turn = self.fast.first(slot_kind, &mut { accept });
        assert_eq!(turn.map(|t| t.flow), head(&self.naive));
        let Some(Turn { flow, tasks }) = turn else { return };
        let some = tasks.min(9);
        for k in 0..some {
            assert_eq!(head(&self.naive), Some(flow), "task {k} of {tasks}");
            self.naive.assigned(flow, 1);
        }
        self.fast.assigned(flow, some);
        if some == tasks {
            assert_ne!(head(&self.naive), Some(flow), "after {tasks} tasks another flow is first");
        }
    }
}

/// One stream of random calls; returns how many of them assigned tasks.
fn stream(seed: u64, measure: Measure, fast: &mut dyn WorkflowScheduler, calls: u64) -> u64 {
    let mut draw = Draw(seed);
    let mut pair = Pair { naive: Naive::by(measure), fast };
    let mut live: BTreeSet<u32> = BTreeSet::new();
    let (mut now, mut assigned) = (0, 0);
    for _ in 0..calls {
        let nth = draw.below(live.len().max(1) as u64) as usize;
        let some = live.iter().nth(nth).map(|&id| FlowId(id));
        let slot_kind = if draw.below(2) == 0 { SlotKind::Map } else { SlotKind::Reduce };
        match (draw.below(24), some) {
            (0 | 1, _) if live.len() < 40 => {
                let flow = FlowId(draw.below(60) as u32);
                if live.insert(flow.0) {
                    let plan = draw.plan();
                    let at = Time(now + draw.below(40));
                    let goal = match draw.below(9) {
                        0 => Goal::Whenever,
                        1 => Goal::Hopeless(at),
                        2 | 3 => Goal::Follow(at),
                        _ => Goal::Deadline(at),
                    };
                    pair.tell(|s| {
                        s.submit(flow, plan.clone(), goal);
                        s.enter(flow, slot_kind);
                    });
                }
            }
            (2, Some(flow)) if draw.below(4) == 0 => {
                live.remove(&flow.0);
                pair.tell(|s| s.finish(flow));
            }
            (3 | 4, Some(flow)) => pair.tell(|s| s.enter(flow, slot_kind)),
            (5, Some(flow)) => pair.tell(|s| s.leave(flow, slot_kind)),
            (6, Some(flow)) => pair.tell(|s| s.lost(flow, 1 + nth as u32 % 3)),
            (7 | 8, _) => now += draw.below(4),
            _ => {
                pair.tell(|s| s.advance(Time(now)));
                pair.assign(slot_kind, draw.below(5) as u32);
                assigned += 1;
            }
        }
    }
    assigned
}

#[test]
fn the_heap_never_has_a_wrong_head() {
    for measure in [Measure::Tasks, Measure::Time] {
        let one = |seed| stream(seed, measure, &mut Lags::by(measure), 440);
        let assigned: u64 = (0..500).map(one).sum();
        assert!(assigned >= 133_000, "only {assigned} assignments");
    }
}
