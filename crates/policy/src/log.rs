//! What runs and what ran, as far as it may still change: rows leave when nothing can happen to them any
//! more.

use slackline_model::schedule::{MasterRow, NewRow};
use slackline_model::{FlowId, Instance, SlotRange, Table, Time};

use crate::engine::RowId;

/// The end of a row whose tasks still run.
pub(crate) const RUNNING: Time = Time(u64::MAX);

/// Where a run leaves what is finished: a list, a file, a judge. `()` keeps nothing.
pub trait Sink {
    /// A row that will not change any more. Rows of a run come in any order; `id` says in which they started.
    /// `live` still has the row's flow.
    fn row(&mut self, _id: RowId, _row: &NewRow, _places: &[SlotRange], _live: &Instance) {}

    /// The master of a job that is over or was stopped; `live` still has the job. Only of engines whose jobs
    /// need them.
    fn master(&mut self, _row: &MasterRow, _live: &Instance) {}

    /// A flow that is done or was abandoned, or that has not ended when the run does; its rows have come
    /// before. `live` still has it.
    fn flow(&mut self, _flow: &FlowEnd, _live: &Instance) {}
}

impl Sink for () {}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// Which.
    pub flow: FlowId,
    /// When its first task started, if one did.
    pub started: Option<Time>,
    /// When it was complete; `None` if it was abandoned or not finished.
    pub completion: Option<Time>,
}

/// A batch with its slots.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) task: NewRow,
    places: Places,
}

/// Ranges of slots; nearly always one, which needs no allocation.
#[derive(Clone, Debug)]
enum Places {
    One([SlotRange; 1]),
    Many(Vec<SlotRange>),
}

impl Row {
    /// A row on `places`, which hold exactly `task.count` slots.
    pub(crate) fn new(task: NewRow, places: &[SlotRange]) -> Self {
        debug_assert_eq!(places.iter().map(|p| p.len).sum::<u32>(), task.count);
        let places = match *places {
            [only] => Places::One([only]),
            _ => Places::Many(places.to_vec()),
        };
        Self { task, places }
    }

    /// More tasks, which follow those of the row, on as many more slots. O(places added), amortised.
    pub(crate) fn extend(&mut self, places: &[SlotRange]) {
        for &range in places {
            self.task.count += range.len;
            match &mut self.places {
                Places::One([last]) if last.end() == range.first => last.len += range.len,
                Places::One([first]) => self.places = Places::Many(vec![*first, range]),
                Places::Many(many) => match many.last_mut() {
                    Some(last) if last.end() == range.first => last.len += range.len,
                    _ => many.push(range),
                },
            }
        }
    }

    pub(crate) fn places(&self) -> &[SlotRange] {
        match &self.places {
            Places::One(only) => only,
            Places::Many(many) => many,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.task.end == RUNNING
    }
}

/// The rows that may still change, by id.
pub(crate) type Log = Table<RowId, Row>;
