//! The log of a run: rows of running tasks, and rows of ended tasks that may still change. A row leaves when
//! it cannot change any more.

use slackline_model::schedule::{AmRow, NewRow};
use slackline_model::{FlowId, Instance, SlotRange, Table, Time};

use crate::engine::RowId;

/// The end of a row whose tasks still run.
pub(crate) const RUNNING: Time = Time(u64::MAX);

/// The destination of finished rows and flows: a list, a file, a judge. `()` keeps nothing.
pub trait Sink {
    /// A row that will not change any more. Rows of a run come in any order; `id` gives the order of their
    /// starts. `live` still has the flow of the row.
    fn row(&mut self, _id: RowId, _row: &NewRow, _places: &[SlotRange], _live: &Instance) {}

    /// The ApplicationMaster of a job that finished or was stopped; `live` still has the job. Only for
    /// engines whose jobs need ApplicationMasters.
    fn am(&mut self, _row: &AmRow, _live: &Instance) {}

    /// A flow that is done or failed, or that is unfinished at the end of the run; its rows have come before.
    /// `live` still has it.
    fn flow(&mut self, _flow: &FlowEnd, _live: &Instance) {}
}

impl Sink for () {}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// Which.
    pub flow: FlowId,
    /// When its first task started, if any did.
    pub started: Option<Time>,
    /// When it was complete; `None` if it failed or did not finish.
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

    /// Adds tasks that follow those of the row, on the same number of slots. O(places added), amortised.
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
