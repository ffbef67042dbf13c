//! Decides when an attempt with a slot starts: at once, unless its job asks for a pause after a failure or
//! for more of the machine than is free.
//!
//! Those that wait for the machine start in the order in which they came to wait; none overtakes another.

use std::collections::VecDeque;

use slackline_model::Time;
use slackline_policy::engine::RowId;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::Demand;

use super::ending::Problem;
use super::{ProcessEngine, Running, Stage};

/// What happens to an attempt that waits.
enum Step {
    Start,
    /// It waits for its time.
    Wait,
    /// It waits for its machine, and so do those behind it.
    Queue,
    /// Something else has happened to it.
    Leave,
}

impl ProcessEngine {
    /// Starts attempts that wait and may start.
    pub(super) fn admit(&mut self) {
        let (mut is_full, mut left) = (false, VecDeque::new());
        while let Some(row) = self.attempts.queue.pop_front() {
            match self.step(row, is_full) {
                Step::Start => self.begin(row),
                Step::Wait => left.push_back(row),
                Step::Queue => {
                    is_full = true;
                    left.push_back(row);
                    self.say_that_it_waits(row);
                }
                Step::Leave => {}
            }
        }
        self.attempts.queue = left;
    }

    fn say_that_it_waits(&mut self, row: RowId) {
        let Some(mut running) = self.attempts.running.remove(&row) else { return };
        if !running.progress.waits {
            running.progress.waits = true;
            self.show_progress(&mut running);
        }
        self.attempts.running.insert(row, running);
    }

    /// The first time at which an attempt may start that waits for its time.
    pub(super) fn next_start(&self) -> Option<Time> {
        let times =
            self.attempts.queue.iter().filter_map(|row| Some(self.attempts.running.get(row)?.not_before));
        times.filter(|&at| at > self.now).min()
    }

    fn step(&self, row: RowId, is_full: bool) -> Step {
        match self.attempts.running.get(&row) {
            Some(running) if running.stage == Stage::Waiting => {
                if running.not_before > self.now {
                    Step::Wait
                } else if is_full || !self.fits(running.id, running.slot) {
                    Step::Queue
                } else {
                    Step::Start
                }
            }
            _ => Step::Leave,
        }
    }

    /// Starts an attempt; one that cannot be started has failed.
    fn begin(&mut self, row: RowId) {
        let Some(mut running) = self.attempts.running.remove(&row) else { return };
        if self.misses_maps(running.id) {
            running.stage = Stage::Starved;
            self.attempts.running.insert(row, running);
            return;
        }
        running.began = self.now;
        if std::mem::take(&mut running.progress.waits) {
            self.show_progress(&mut running);
        }
        if self.is_away(running.id, running.slot) {
            // The driver is about to learn of it.
            running.stage = Stage::Gone;
            self.attempts.running.insert(row, running);
            return;
        }
        match self.launch(&running) {
            Ok(()) => {
                running.stage = Stage::AtWork;
                self.attempts.running.insert(row, running);
            }
            Err(error) => {
                self.attempts.rows.remove(&running.number);
                self.fail(row, &running, &Problem::of_start(&error));
            }
        }
    }

    /// Whether an attempt may start on a slot beside the other attempts on its machine. O(running attempts)
    /// if jobs state their resources.
    pub(super) fn fits(&self, id: TaskId, slot: u32) -> bool {
        let others = self.fleet.foreign_slots();
        let others = || others.iter().filter_map(|other| other.at_work);
        if !self.machines.is_demand_declared && !others().any(|(_, demand)| demand.is_declared()) {
            return true;
        }
        let machine = self.machine_of(id, slot);
        let Some(&capacity) = self.machines.capacities.get(&machine) else { return true };
        let own = self.all_at_work().filter(|other| self.machine_of(other.id, other.slot) == machine);
        let others = others().filter(|(at, _)| *at == machine).map(|(_, demand)| demand);
        self.demand(id).fits(capacity, own.map(|other| self.demand(other.id)).chain(others))
    }

    /// All running attempts, speculative ones and those of lost tasks included.
    fn all_at_work(&self) -> impl Iterator<Item = &Running> {
        let seconds = self.attempts.running.values().filter_map(|running| running.second.as_deref());
        self.attempts
            .running
            .values()
            .chain(seconds)
            .chain(self.lost.attempts())
            .filter(|running| running.is_at_work())
    }

    pub(super) fn demand(&self, id: TaskId) -> Demand {
        self.work.session.jobs[id.job as usize].limits.demand()
    }
}
