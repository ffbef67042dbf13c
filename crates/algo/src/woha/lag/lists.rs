//! The two lists: by next change, and, for each slot kind, by lag.

use slackline_model::{FlowId, SlotKind, Time};

use super::heap::Heap;
use super::queue::Queue;
use super::record::{Measure, Rank, Record};
use crate::woha::plan::Plan;
use crate::woha::scheduler::{Goal, Turn, WorkflowScheduler};

/// Algorithm 2 on the heaps that are fastest.
pub type Lags = LagsOn<Heap<Time>, Heap<Rank>>;

/// Algorithm 2 on queues `C` by next change and `L` by lag; the benchmarks compare other queues with
/// [`Heap`].
///
/// With n flows: a requirement that falls due, a task assigned or lost, a flow that comes or goes
/// O(log n); the first flow O(1 + flows not accepted).
#[derive(Clone, Debug)]
pub struct LagsOn<C, L> {
    measure: Measure,
    now: Time,
    /// By flow.
    records: Vec<Option<Record>>,
    /// L^ct: flows that still have requirements to fire, by when.
    changes: C,
    /// L^pri of each slot kind.
    slot_kinds: [L; 2],
}

impl<C: Queue<Time>, L: Queue<Rank>> Default for LagsOn<C, L> {
    fn default() -> Self {
        Self::by(Measure::default())
    }
}

impl<C: Queue<Time>, L: Queue<Rank>> LagsOn<C, L> {
    /// Flows by their lag in that measure.
    pub fn by(measure: Measure) -> Self {
        Self {
            measure,
            now: Time::ZERO,
            records: Vec::new(),
            changes: C::default(),
            slot_kinds: [L::default(), L::default()],
        }
    }

    fn record(&mut self, flow: FlowId) -> &mut Record {
        self.records
            .get_mut(flow.index())
            .and_then(Option::as_mut)
            .expect("invariant: the flow was submitted")
    }

    /// Changes a record and moves the flow in the lists by lag.
    fn update(&mut self, flow: FlowId, change: impl FnOnce(&mut Record)) {
        let record = self.record(flow);
        let (from, due) = (record.rank(), record.next_change());
        change(record);
        let (to, slot_kinds, next) = (record.rank(), record.slot_kinds, record.next_change());
        match (due, next) {
            (due, next) if due == next => {}
            (Some(due), Some(next)) => self.changes.change(due, next, flow.0),
            (Some(due), None) => self.changes.remove(due, flow.0),
            (None, Some(next)) => self.changes.insert(next, flow.0),
            (None, None) => {}
        }
        if from != to {
            for (queue, _) in self.slot_kinds.iter_mut().zip(slot_kinds).filter(|(_, present)| *present) {
                queue.change(from, to, flow.0);
            }
        }
    }
}

impl<C, L> WorkflowScheduler for LagsOn<C, L>
where
    C: Queue<Time> + Clone + Send + 'static,
    L: Queue<Rank> + Clone + Send + 'static,
{
    fn copy(&self) -> Option<Box<dyn WorkflowScheduler + Send>> {
        Some(Box::new(self.clone()))
    }

    fn submit(&mut self, flow: FlowId, plan: Plan, goal: Goal) {
        if self.records.len() <= flow.index() {
            self.records.resize_with(flow.index() + 1, || None);
        }
        let record = Record::new(plan, goal, self.measure);
        if let Some(at) = record.next_change() {
            self.changes.insert(at, flow.0);
        }
        self.records[flow.index()] = Some(record);
    }

    fn finish(&mut self, flow: FlowId) {
        self.leave(flow, SlotKind::Map);
        self.leave(flow, SlotKind::Reduce);
        let record = self.records[flow.index()].take().expect("invariant: the flow was submitted");
        if let Some(at) = record.next_change() {
            self.changes.remove(at, flow.0);
        }
    }

    fn enter(&mut self, flow: FlowId, slot_kind: SlotKind) {
        let record = self.record(flow);
        let rank = record.rank();
        if !std::mem::replace(&mut record.slot_kinds[slot_kind.index()], true) {
            self.slot_kinds[slot_kind.index()].insert(rank, flow.0);
        }
    }

    fn leave(&mut self, flow: FlowId, slot_kind: SlotKind) {
        let record = self.record(flow);
        let rank = record.rank();
        if std::mem::replace(&mut record.slot_kinds[slot_kind.index()], false) {
            self.slot_kinds[slot_kind.index()].remove(rank, flow.0);
        }
    }

    /// Algorithm 2, lines 4–19.
    fn advance(&mut self, now: Time) {
        self.now = now;
        while let Some((at, id)) = self.changes.first()
            && at <= now
        {
            self.update(FlowId(id), |record| record.fire(now));
        }
    }

    /// Algorithm 2, line 20, and how often it would come out the same: the flow stays first while its
    /// rank, raised by one for each task, is below that of the second.
    fn first(&self, slot_kind: SlotKind, accept: &mut dyn FnMut(FlowId) -> bool) -> Option<Turn> {
        let mut head: Option<(Rank, u32)> = None;
        let mut turn = None;
        self.slot_kinds[slot_kind.index()].walk(&mut |rank, id| {
            if !accept(FlowId(id)) {
                return true;
            }
            let Some((first, flow)) = head else {
                head = Some((rank, id));
                turn = Some(Turn { flow: FlowId(id), tasks: u32::MAX });
                return true;
            };
            let wins_ties = (first.due, flow) < (rank.due, id);
            let record = self.records[flow as usize].as_ref().expect("invariant: the flow was submitted");
            turn = Some(Turn { flow: FlowId(flow), tasks: record.tasks_until(rank, wins_ties) });
            false
        });
        turn
    }

    /// Algorithm 2, lines 21–23.
    fn assigned(&mut self, flow: FlowId, tasks: u32) {
        let now = self.now;
        self.update(flow, |record| record.count(i64::from(tasks), now));
    }

    fn lost(&mut self, flow: FlowId, tasks: u32) {
        let now = self.now;
        self.update(flow, |record| record.count(-i64::from(tasks), now));
    }
}
