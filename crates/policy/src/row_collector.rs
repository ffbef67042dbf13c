//! Collects all rows of a run of a whole instance, under the ids of the instance.

use slackline_model::id::TiVec;
use slackline_model::schedule::{AmRow, NewRow, TaskRows};
use slackline_model::{FlowId, Instance, SlotRange, Time};

use crate::engine::RowId;
use crate::log::{FlowEnd, Sink};

/// The rows and the flows of a run.
pub(crate) struct RowCollector<'a> {
    instance: &'a Instance,
    /// Rows in the order of their starts.
    pub(crate) tasks: TaskRows,
    pub(crate) ams: Vec<AmRow>,
    pub(crate) started: TiVec<FlowId, Option<Time>>,
    pub(crate) completions: TiVec<FlowId, Option<Time>>,
}

impl<'a> RowCollector<'a> {
    /// For a run in which the flows of `instance` arrive.
    pub(crate) fn new(instance: &'a Instance) -> Self {
        let none: TiVec<FlowId, Option<Time>> = vec![None; instance.flows().len()].into();
        Self { instance, tasks: TaskRows::new(), ams: Vec::new(), started: none.clone(), completions: none }
    }
}

impl Sink for RowCollector<'_> {
    fn row(&mut self, id: RowId, row: &NewRow, places: &[SlotRange], live: &Instance) {
        let phase = live.phase_in(self.instance, row.phase);
        self.tasks.set(id.into(), NewRow { phase, ..*row }, places);
    }

    fn am(&mut self, row: &AmRow, live: &Instance) {
        self.ams.push(AmRow { job: live.job_in(self.instance, row.job), ..*row });
    }

    fn flow(&mut self, end: &FlowEnd, live: &Instance) {
        let place = live.flow(end.flow).place;
        (self.started[place], self.completions[place]) = (end.started, end.completion);
    }
}
