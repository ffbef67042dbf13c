//! The final rows of a simulation, for its observers.

use slackline_model::schedule::{AmRow, NewRow};
use slackline_model::{Schedule, SlotRange};

/// A row that is final, with the ids of the workload.
#[derive(Clone, Copy, Debug)]
pub enum FinalRow<'a> {
    /// Attempts of tasks, and the slots that they held.
    Row(&'a NewRow, &'a [SlotRange]),
    /// The ApplicationMaster of a job that has ended.
    Am(&'a AmRow),
}

impl FinalRow<'_> {
    /// Passes every row of a complete schedule to `emit`, in its order.
    pub fn of_schedule(schedule: &Schedule, emit: &mut dyn FnMut(FinalRow<'_>)) {
        for row in schedule.tasks.rows() {
            emit(FinalRow::Row(&NewRow::from(row), schedule.tasks.places(row)));
        }
        for am in &schedule.ams {
            emit(FinalRow::Am(am));
        }
    }
}
