//! What leaves a run, for those who look on.

use slackline_model::schedule::{MasterRow, NewRow};
use slackline_model::{Schedule, SlotRange};

/// A row that will not change any more, under the ids of the workload.
#[derive(Clone, Copy, Debug)]
pub enum Left<'a> {
    /// Attempts of tasks, and the slots that they held.
    Row(&'a NewRow, &'a [SlotRange]),
    /// The master of a job that is over.
    Master(&'a MasterRow),
}

impl Left<'_> {
    /// Tells of every row of a schedule that is whole, in its order.
    pub fn of_schedule(schedule: &Schedule, told: &mut dyn FnMut(Left<'_>)) {
        for row in schedule.tasks.rows() {
            told(Left::Row(&NewRow::from(row), schedule.tasks.places(row)));
        }
        for master in &schedule.masters {
            told(Left::Master(master));
        }
    }
}
