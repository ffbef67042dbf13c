//! Maps whose output is gone or damaged when a reduce wants it: they are made again.
//!
//! The driver believes that they are done, and after a resume does not even know their phase, so the engine makes them
//! again by itself. That is no scheduling decision: they run on slots of the reduces that wait for them, which are the
//! policy's choice, and on slots that the policy leaves idle, and give way to whatever it starts there. The reduces of
//! the job that were at work are stopped and begin anew when all maps are there, as after the death of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use slackline_model::{PhaseKind, SlotKind};
use slackline_policy::engine::RowId;

use super::ending::{Finished, Problem};
use super::{Happening, Local, Running, Stage};
use crate::job_plan::JobPlan;
use crate::task;
use crate::task_id::TaskId;
use crate::worker::Report as Said;

/// What was lost and is not there again.
pub(super) struct Lost {
    /// How often the output of a map was lost that ever was.
    times: BTreeMap<TaskId, u16>,
    /// Maps that have to be made again, and the attempt that does so.
    maps: BTreeMap<TaskId, Option<u64>>,
    /// Attempts that make them again, by their numbers.
    attempts: BTreeMap<u64, Running>,
}

impl Lost {
    /// Nothing is lost, and output was so often before.
    pub(super) fn new(times: BTreeMap<TaskId, u16>) -> Self {
        Self { times, maps: BTreeMap::new(), attempts: BTreeMap::new() }
    }

    /// The attempts that make maps again.
    pub(super) fn attempts(&self) -> impl Iterator<Item = &Running> {
        self.attempts.values()
    }

    /// The same, to be changed.
    pub(super) fn attempts_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.attempts.values_mut()
    }

    /// Takes an attempt out, which is not at work any more.
    pub(super) fn take(&mut self, number: u64) -> Option<Running> {
        let running = self.attempts.remove(&number)?;
        if let Some(attempt) = self.maps.get_mut(&running.id) {
            *attempt = None;
        }
        Some(running)
    }

    /// Takes all attempts out.
    pub(super) fn take_all(&mut self) -> Vec<Running> {
        std::mem::take(&mut self.attempts).into_values().collect()
    }
}

impl Local<'_> {
    /// The map whose committed output is that directory, if a reduce of its job says so.
    pub(super) fn map_in(&self, reduce: TaskId, directory: &Path) -> Option<TaskId> {
        let task = directory.file_name()?.to_str()?.parse().ok()?;
        let is_it = reduce.phase == PhaseKind::Reduce
            && task < self.work.jobs[reduce.job as usize].maps()
            && self.work.layout.map_output(reduce.job, task) == directory;
        is_it.then_some(TaskId { job: reduce.job, phase: PhaseKind::Map, task })
    }

    /// Whether a reduce has to wait for maps that are made again.
    pub(super) fn misses_maps(&self, id: TaskId) -> bool {
        id.phase == PhaseKind::Reduce && self.lost.maps.keys().any(|map| map.job == id.job)
    }

    /// A reduce could not end because the output of a map is not there: it is made again, and so is all other output of
    /// the job's maps that is gone or cut short, so that the reduces are stopped once and not for each of them. O(maps ·
    /// reduces of the job + bytes of the journal).
    pub(super) fn lose(&mut self, (row, reduce): (RowId, &Running), map: TaskId, message: &str) {
        let job = map.job;
        let done = TaskId { job, phase: PhaseKind::Map, task: 0 }..=TaskId {
            job,
            phase: PhaseKind::Map,
            task: u32::MAX,
        };
        let JobPlan { reducers, shuffle, .. } = &self.work.jobs[job as usize];
        let is_gone = |id: &&TaskId| {
            !task::is_there(&self.work.layout.map_output(job, id.task), *reducers, shuffle.is_ranged())
        };
        let mut gone: BTreeSet<TaskId> = self.work.done.range(done).filter(is_gone).copied().collect();
        gone.extend((!self.lost.maps.contains_key(&map)).then_some(map));
        let most = self.attempts_of(job);
        if let Some((id, times)) = self.too_often(&gone, most) {
            let task = id.task;
            let message = format!(
                "{message}; the output of map {task} was lost {times} times before, expected it to stay"
            );
            return self.fail(row, reduce, &Problem { message, is_final: true });
        }
        if let Err(error) = self.work.journal.lost(&gone) {
            return self.lose_journal(&error);
        }
        for &id in &gone {
            self.work.done.remove(&id);
            let times = self.lost.times.entry(id).or_default();
            *times = times.saturating_add(1);
            self.lost.maps.insert(id, None);
            // If it stays, the output that is made again cannot be moved there, and that is said.
            let _ = crate::files::remove(&self.work.layout.map_output(job, id.task));
        }
        self.stop_reduces(job);
        self.record_failed(reduce, message);
        self.observer.happened(self.now, Happening::Killed(reduce.id));
        let maps: Vec<TaskId> = gone.into_iter().collect();
        self.observer.happened(self.now, Happening::Lost { maps: &maps, message });
        self.starve(row, reduce);
    }

    /// The first of these maps whose output was lost as often as a task may fail, and how often that was.
    fn too_often(&self, maps: &BTreeSet<TaskId>, most: u16) -> Option<(TaskId, u16)> {
        let times =
            |id: &TaskId| Some((*id, self.lost.times.get(id).copied().filter(|&times| times >= most)?));
        maps.iter().find_map(times)
    }

    /// Stops the reduces of a job that are at work; they begin anew when the maps are there.
    fn stop_reduces(&mut self, job: u32) {
        let is_one = |r: &Running| r.is_at_work() && r.id.job == job && r.id.phase == PhaseKind::Reduce;
        let rows: Vec<RowId> = self.running.iter().filter(|(_, r)| is_one(r)).map(|(&row, _)| row).collect();
        for row in rows {
            let Some(mut running) = self.running.remove(&row) else { continue };
            if let Some(second) = running.second.take() {
                self.drop_attempt(&second);
            }
            self.drop_attempt(&running);
            self.starve(row, &running);
        }
    }

    /// Another attempt of a reduce takes its slot and waits for maps.
    fn starve(&mut self, row: RowId, before: &Running) {
        let mut next = Running::new(self.number(), before.id, before.slot, self.now);
        next.stage = Stage::Starved;
        self.tell_started(&next);
        self.keep(row, next);
    }

    /// Starts attempts of maps that have to be made again, where reduces wait for them and there is a slot.
    pub(super) fn make_again(&mut self) {
        let is_open = |(map, attempt): (&TaskId, &Option<u64>)| attempt.is_none().then_some(*map);
        let open: Vec<TaskId> = self.lost.maps.iter().filter_map(is_open).collect();
        for map in open {
            let is_early = self.not_before.get(&map).is_some_and(|&at| at > self.now);
            if is_early || !self.is_waited_for(map) {
                continue;
            }
            let Some(slot) = self.slot_for(map).filter(|&slot| self.fits(map, slot)) else { continue };
            let mut running = Running::new(self.number(), map, slot, self.now);
            running.stage = Stage::AtWork;
            self.tell_started(&running);
            match self.launch(&running) {
                Ok(()) => {
                    self.lost.maps.insert(map, Some(running.number));
                    self.lost.attempts.insert(running.number, running);
                }
                Err(error) => self.not_made_again(&running, &Problem::of_start(&error)),
            }
        }
    }

    fn is_waited_for(&self, map: TaskId) -> bool {
        self.running.values().any(|r| r.stage == Stage::Starved && r.id.job == map.job)
    }

    /// The first slot for a map that nothing is at work on: that of a reduce which waits for it, or an idle one.
    fn slot_for(&self, map: TaskId) -> Option<u32> {
        let slot_kind = self.slot_kind_of(map);
        let waits = |r: &Running| r.stage == Stage::Starved && r.id.job == map.job;
        let on = |r: &Running, slot: u32| r.slot == slot && self.slot_kind_of(r.id) == slot_kind;
        let others = self.fleet.beside();
        let is_taken = |slot: u32| {
            let by_row =
                |r: &Running| on(r, slot) && !waits(r) || r.second.as_deref().is_some_and(|r| on(r, slot));
            self.is_others(&others, slot_kind, slot)
                || self.running.values().any(by_row)
                || self.lost.attempts().any(|r| on(r, slot))
        };
        let mut slots = 0..self.cluster.slot_numbers(slot_kind);
        slots.find(|&slot| !is_taken(slot) && !self.is_away(map, slot))
    }

    /// An attempt that makes a map again gives way to what the policy starts on its slot.
    pub(super) fn make_room_of_lost(&mut self, slot_kind: SlotKind, slot: u32) {
        let on = |r: &Running| r.slot == slot && self.slot_kind_of(r.id) == slot_kind;
        let number = self.lost.attempts().find(|r| on(r)).map(|r| r.number);
        if let Some(running) = number.and_then(|number| self.lost.take(number)) {
            self.drop_attempt(&running);
        }
    }

    /// An attempt that made a map again has ended.
    pub(super) fn end_of_lost(
        &mut self,
        running: Running,
        report: Result<Said, String>,
        done: &mut Vec<Finished>,
    ) {
        match Problem::in_report(&report, &running, &self.work.jobs[running.id.job as usize].limits) {
            Some(problem) => self.not_made_again(&running, &problem),
            None => {
                if let Ok(Said::Done(outcome)) = report {
                    done.push(Finished { row: None, running, outcome });
                }
            }
        }
    }

    /// A map could not be made again: the next attempt does it, or the reduces that wait for it fail for good.
    pub(super) fn not_made_again(&mut self, running: &Running, problem: &Problem) {
        let is_final = self.count_failure(running.id, problem.is_final);
        self.give_up(running, &problem.message, (false, is_final));
        if !is_final {
            return;
        }
        let job = running.id.job;
        let rows: Vec<RowId> = self.starved(job);
        for row in rows {
            let Some(reduce) = self.running.remove(&row) else { continue };
            self.rows.remove(&reduce.number);
            let task = running.id.task;
            let message = format!("map {task}, whose output was lost, cannot be made again");
            self.fail(row, &reduce, &Problem { message, is_final: true });
        }
    }

    fn starved(&self, job: u32) -> Vec<RowId> {
        let waits = |r: &Running| r.stage == Stage::Starved && r.id.job == job;
        self.running.iter().filter(|(_, r)| waits(r)).map(|(&row, _)| row).collect()
    }

    /// A map was made again: if it was the last of its job, the reduces that wait go on.
    pub(super) fn made_again(&mut self, map: TaskId) {
        self.lost.maps.remove(&map);
        if self.lost.maps.keys().any(|other| other.job == map.job) {
            return;
        }
        for row in self.starved(map.job) {
            let Some(mut running) = self.running.remove(&row) else { continue };
            // Its slot was the map's until now.
            running.start = self.now;
            self.set_to_work(row, running);
        }
    }
}
