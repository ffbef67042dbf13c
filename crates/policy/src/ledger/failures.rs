//! Jobs that fail while the rest of their flow continues.

use super::Ledger;
use crate::engine::{Engine, RowId};
use crate::event::Event;
use crate::log::Row;

impl Ledger {
    /// No further task of a job starts, nor of those that wait for it or, with `all`, of its flow. Reduces that wait for
    /// maps of these jobs are stopped, because these maps never come.
    pub(super) fn job_failed(
        &mut self,
        row: RowId,
        all: bool,
        engine: &mut dyn Engine,
        events: &mut Vec<Event>,
    ) {
        let Some(row) = self.log.get(row).filter(|row| row.is_running()) else { return };
        let job = self.instance.phase(row.task.phase).job;
        for job in self.state.drop_job(&self.instance, job, all) {
            let Some(reduce) = self.instance.job(job).reduce else { continue };
            if self.state.phase(reduce).waiting() == 0 {
                continue;
            }
            let of_reduce = |row: &Row| row.is_running() && row.task.phase == reduce;
            let rows = self.log.iter_enumerated().filter_map(|(id, row)| of_reduce(row).then_some(id));
            for id in rows.collect::<Vec<_>>() {
                self.free_places(id);
                self.kill(id, engine, events);
            }
        }
    }

    /// Flows that can run nothing more fail.
    pub(crate) fn fail_spent(&mut self, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        for flow in self.state.spent(&self.instance) {
            self.give_up(flow, engine, events);
        }
    }
}
