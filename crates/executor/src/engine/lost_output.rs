//! Reruns finished tasks whose output is lost.
//!
//! A task is lost in three ways. First, the output of a map is missing or damaged when a reduce reads it.
//! Second, the part of a task is damaged when it is about to be published. Third, a reduce has read map
//! output that was lost, and the map gives other output the second time, because the mapper is not
//! deterministic. Then the output of the reduce does not match the others (Spark calls such a stage
//! indeterminate).
//!
//! The driver counts these tasks as done, and after a resume does not even know their phase, so the engine
//! runs them itself. This is no scheduling decision. They run on slots of the attempts that wait for them,
//! which the policy chose, and on slots that the policy leaves idle, and yield to every task that it starts
//! there. When maps are lost, the running reduces of the job are stopped. They start again when all maps are
//! available, as after the failure of a machine. The driver learns of the end of the job's last task when no
//! task of the job is lost any more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

use slackline_model::{PhaseKind, SlotKind};
use slackline_policy::engine::{Report, RowId};
use slackline_task::base::task_id::TaskId;
use slackline_task::process::report::Report as Said;
use slackline_task::shuffle::index;

use crate::engine::ending::{Finished, Problem};
use crate::engine::event::RunEvent;
use crate::engine::{ProcessEngine, Running, Stage};
use crate::spec::job_plan::JobPlan;
use crate::store::journal::{self, Attempt};

/// Lost outputs that are not available again yet.
pub(super) struct LostOutputs {
    /// How often the output of each task was lost; only tasks that lost one.
    times: BTreeMap<TaskId, u16>,
    /// Tasks that have to run again, and the attempt that does so.
    tasks: BTreeMap<TaskId, Option<u64>>,
    /// Attempts of lost tasks, by their numbers.
    attempts: BTreeMap<u64, Running>,
    /// The checksums of the outputs of maps that were committed last, also of those that were lost since.
    pub(super) map_sums: BTreeMap<TaskId, u64>,
}

impl LostOutputs {
    /// Nothing is lost after the attempts of a journal.
    pub(super) fn after(attempts: &[Attempt]) -> Self {
        Self {
            times: journal::losses(attempts),
            map_sums: journal::map_sums(attempts),
            tasks: BTreeMap::new(),
            attempts: BTreeMap::new(),
        }
    }

    /// The attempts of lost tasks.
    pub(super) fn attempts(&self) -> impl Iterator<Item = &Running> {
        self.attempts.values()
    }

    /// The same, to be changed.
    pub(super) fn attempts_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.attempts.values_mut()
    }

    /// Takes an attempt out, which is not running any more.
    pub(super) fn take(&mut self, number: u64) -> Option<Running> {
        let running = self.attempts.remove(&number)?;
        if let Some(attempt) = self.tasks.get_mut(&running.id) {
            *attempt = None;
        }
        Some(running)
    }

    /// Takes all attempts out.
    pub(super) fn take_all(&mut self) -> Vec<Running> {
        std::mem::take(&mut self.attempts).into_values().collect()
    }

    /// The driver starts a task: it is not lost any more. Gives the attempt that is to be stopped.
    pub(super) fn hand_over(&mut self, id: TaskId) -> Option<Running> {
        let number = self.tasks.remove(&id)??;
        self.attempts.remove(&number)
    }

    /// The lost tasks of a job.
    fn of_job(&self, job: u32) -> impl Iterator<Item = TaskId> {
        self.tasks.keys().copied().filter(move |id| id.job == job)
    }
}

/// All tasks of a phase that a job may have.
fn tasks_of(job: u32, phase: PhaseKind) -> RangeInclusive<TaskId> {
    TaskId { job, phase, task: 0 }..=TaskId { job, phase, task: u32::MAX }
}

impl ProcessEngine {
    /// The map whose committed output is that directory, if a reduce of its job reports it.
    pub(super) fn map_in(&self, reduce: TaskId, directory: &Path) -> Option<TaskId> {
        let task = directory.file_name()?.to_str()?.parse().ok()?;
        let is_it = reduce.phase == PhaseKind::Reduce
            && task < self.work.session.jobs[reduce.job as usize].maps()
            && self.work.session.layout.map_output(reduce.job, task) == directory;
        is_it.then_some(TaskId { job: reduce.job, phase: PhaseKind::Map, task })
    }

    /// Whether a task writes a part of its job's output.
    fn is_final(&self, id: TaskId) -> bool {
        self.work.session.jobs[id.job as usize].is_final(id)
    }

    /// Whether a reduce has to wait for maps that run again.
    pub(super) fn misses_maps(&self, id: TaskId) -> bool {
        id.phase == PhaseKind::Reduce && self.lost.of_job(id.job).any(|lost| lost.phase == PhaseKind::Map)
    }

    /// A reduce could not end because the output of a map is missing. The map runs again, and so do all other
    /// maps of the job with missing or truncated output, so that the reduces are stopped only once. O(maps ·
    /// reduces of the job + bytes of the journal).
    pub(super) fn lose(&mut self, row: Option<RowId>, reduce: &Running, map: TaskId, message: &str) {
        let job = map.job;
        let JobPlan { reducers, shuffle, .. } = &self.work.session.jobs[job as usize];
        let is_gone = |id: &&TaskId| {
            let (place, sum) =
                (self.work.session.layout.map_output(job, id.task), self.lost.map_sums.get(id).copied());
            !index::is_there(&place, *reducers, shuffle.is_ranged(), sum)
        };
        let done = self.work.done.range(tasks_of(job, PhaseKind::Map));
        let mut gone: BTreeSet<TaskId> = done.filter(is_gone).copied().collect();
        gone.extend((!self.lost.tasks.contains_key(&map)).then_some(map));
        if let Err(problem) = self.refuse_too_often(&gone, message) {
            return match row {
                Some(row) => self.fail(row, reduce, &problem),
                None => self.cannot_run_again(reduce, &problem),
            };
        }
        if let Err(error) = self.work.session.journal.lost(&gone) {
            return self.lose_journal(&error);
        }
        self.stop_reduces(job);
        self.record_failed(reduce, message);
        (self.on_event)(self.now, &RunEvent::AttemptStopped { task: reduce.id, attempt: None });
        self.lose_tasks(&gone, message);
        if let Some(row) = row {
            self.starve(row, reduce);
        }
    }

    /// Parts of a job that is complete with the part of `id` may have been damaged since they were written:
    /// their tasks run again. That of `id` itself is no loss but a failure. O(parts, and bytes of those that
    /// are read).
    pub(super) fn lose_damaged_parts(&mut self, id: TaskId) -> Result<(), Problem> {
        let mut damaged = self.work.session.publisher().damaged(id.job);
        let own = damaged.remove(&id);
        if let Some((_, message)) = damaged.first_key_value() {
            let (message, tasks) = (message.clone(), damaged.keys().copied().collect());
            self.refuse_too_often(&tasks, &message)?;
            if let Err(error) = self.work.session.journal.lost(&tasks) {
                self.lose_journal(&error);
                return Err(Problem::of(error.to_string()));
            }
            self.lose_tasks(&tasks, &message);
        }
        own.map_or(Ok(()), |message| Err(Problem::of(message)))
    }

    /// Reduces that are done and have read the output of a map that was lost, where the map has given other
    /// output now: by map, one of each job.
    pub(super) fn stale_reduces(&self, done: &[Finished]) -> Vec<(TaskId, BTreeSet<TaskId>)> {
        let mut stale: Vec<(TaskId, BTreeSet<TaskId>)> = Vec::new();
        for Finished { running: Running { id, .. }, outcome, .. } in done {
            let sums = self.lost.map_sums.get(id).zip(outcome.output.as_ref());
            let is_other = !self.is_final(*id) && sums.is_some_and(|(then, now)| *then != now.sum);
            if is_other && stale.iter().all(|(map, _)| map.job != id.job) {
                let reduces = self.work.done.range(tasks_of(id.job, PhaseKind::Reduce));
                stale.push((*id, reduces.copied().collect()));
            }
        }
        stale
    }

    /// Notes what maps have given that were just recorded.
    pub(super) fn note_maps(&mut self, done: &[Finished]) {
        for Finished { running: Running { id, .. }, outcome, .. } in done {
            if let Some(digest) = outcome.output.as_ref().filter(|_| !self.is_final(*id)) {
                self.lost.map_sums.insert(*id, digest.sum);
            }
        }
    }

    /// Reduces of a job do not count any more, which the journal has: a map has given other output than they
    /// have read.
    pub(super) fn lose_stale(&mut self, map: TaskId, reduces: &BTreeSet<TaskId>) {
        let task = map.task;
        let message = format!(
            "map {task} was rerun after its output was lost, and its output differs: the mapper is not deterministic"
        );
        self.lose_tasks(reduces, &message);
    }

    /// Tasks of one phase that were done have to run again; the journal has that already.
    fn lose_tasks(&mut self, tasks: &BTreeSet<TaskId>, message: &str) {
        for &id in tasks {
            self.work.done.remove(&id);
            let times = self.lost.times.entry(id).or_default();
            *times = times.saturating_add(1);
            self.lost.tasks.insert(id, None);
            self.open.parts[id.job as usize] += u32::from(self.is_final(id));
            // If it stays, moving the next output there fails with a message.
            let _ = slackline_task::base::files::remove(
                &self.work.session.layout.committed(&self.work.session.jobs[id.job as usize], id),
            );
        }
        if !tasks.is_empty() {
            let tasks: Vec<TaskId> = tasks.iter().copied().collect();
            (self.on_event)(self.now, &RunEvent::OutputLost { tasks, reason: message.to_owned() });
        }
    }

    /// Refuses to run tasks again one of which has lost its output as often as it may fail.
    fn refuse_too_often(&self, tasks: &BTreeSet<TaskId>, message: &str) -> Result<(), Problem> {
        for id in tasks {
            let times = self.lost.times.get(id).copied().unwrap_or(0);
            if times >= self.attempts_of(id.job) {
                let (phase, task) = (id.phase.name(), id.task);
                let message = format!(
                    "{message}; the output of {phase} {task} was lost {times} times before; check the disk that it was on"
                );
                return Err(Problem { message, is_final: true });
            }
        }
        Ok(())
    }

    /// Stops the running reduces of a job; they start again when the maps are available.
    fn stop_reduces(&mut self, job: u32) {
        let is_one = |r: &Running| r.is_at_work() && r.id.job == job && r.id.phase == PhaseKind::Reduce;
        let rows: Vec<RowId> =
            self.attempts.running.iter().filter(|(_, r)| is_one(r)).map(|(&row, _)| row).collect();
        for row in rows {
            let Some(mut running) = self.attempts.running.remove(&row) else { continue };
            if let Some(second) = running.second.take() {
                self.drop_attempt(&second);
            }
            self.drop_attempt(&running);
            self.starve(row, &running);
        }
        let again = self.lost.attempts().filter(|r| is_one(r)).map(|r| r.number).collect::<Vec<_>>();
        for running in again.into_iter().filter_map(|number| self.lost.take(number)).collect::<Vec<_>>() {
            self.drop_attempt(&running);
        }
    }

    /// Another attempt of a reduce takes its slot and waits for maps.
    fn starve(&mut self, row: RowId, before: &Running) {
        let mut next = Running::new(self.number(), before.id, before.slot, self.now);
        next.stage = Stage::Starved;
        (self.on_event)(self.now, &RunEvent::AttemptStarted(next.document()));
        self.keep(row, next);
    }

    /// Starts attempts of lost tasks, where they are waited for and there is a slot.
    pub(super) fn run_again(&mut self) {
        let is_open = |(id, attempt): (&TaskId, &Option<u64>)| attempt.is_none().then_some(*id);
        let open: Vec<TaskId> = self.lost.tasks.iter().filter_map(is_open).collect();
        for id in open {
            let is_early = self.counts.not_before.get(&id).is_some_and(|&at| at > self.now);
            if is_early || !self.may_run_again(id) {
                continue;
            }
            let Some(slot) = self.slot_for(id).filter(|&slot| self.fits(id, slot)) else { continue };
            let mut running = Running::new(self.number(), id, slot, self.now);
            running.stage = Stage::AtWork;
            (self.on_event)(self.now, &RunEvent::AttemptStarted(running.document()));
            match self.launch(&running) {
                Ok(()) => {
                    self.lost.tasks.insert(id, Some(running.number));
                    self.lost.attempts.insert(running.number, running);
                }
                Err(error) => self.cannot_run_again(&running, &Problem::of_start(&error)),
            }
        }
    }

    /// Whether a lost task can run now. A failed flow has no rows, and so no reason to run it.
    fn may_run_again(&self, id: TaskId) -> bool {
        if !self.is_final(id) {
            return self.attempts.running.values().any(|r| r.waits_for_lost(id.job));
        }
        let maps = || self.work.done.range(tasks_of(id.job, PhaseKind::Map)).count();
        self.attempts.running.values().any(|r| r.id.job == id.job)
            && (id.phase == PhaseKind::Map
                || maps() == self.work.session.jobs[id.job as usize].maps() as usize)
    }

    /// The first slot for a task without a running attempt: that of an attempt which waits for it, or an idle
    /// one.
    fn slot_for(&self, id: TaskId) -> Option<u32> {
        let slot_kind = self.slot_kind_of(id);
        let waits = |r: &Running| r.waits_for_lost(id.job);
        let on = |r: &Running, slot: u32| r.slot == slot && self.slot_kind_of(r.id) == slot_kind;
        let others = self.fleet.foreign_slots();
        let is_taken = |slot: u32| {
            let by_row =
                |r: &Running| on(r, slot) && !waits(r) || r.second.as_deref().is_some_and(|r| on(r, slot));
            self.is_others(&others, slot_kind, slot)
                || self.attempts.running.values().any(by_row)
                || self.lost.attempts().any(|r| on(r, slot))
        };
        let mut slots = 0..self.machines.cluster.slot_numbers(slot_kind);
        slots.find(|&slot| !is_taken(slot) && !self.is_away(id, slot))
    }

    /// An attempt of a lost task yields to a task that the policy starts on its slot.
    pub(super) fn make_room_of_lost(&mut self, slot_kind: SlotKind, slot: u32) {
        let on = |r: &Running| r.slot == slot && self.slot_kind_of(r.id) == slot_kind;
        let number = self.lost.attempts().find(|r| on(r)).map(|r| r.number);
        if let Some(running) = number.and_then(|number| self.lost.take(number)) {
            self.drop_attempt(&running);
        }
    }

    /// An attempt of a lost task has ended.
    pub(super) fn end_of_lost(
        &mut self,
        running: Running,
        report: Result<Said, String>,
        done: &mut Vec<Finished>,
    ) {
        let problem =
            Problem::in_report(&report, &running, &self.work.session.jobs[running.id.job as usize].limits);
        match (report, problem) {
            (Ok(Said::Failed { lost: Some(directory), message, .. }), Some(_))
                if let Some(map) =
                    self.map_in(running.id, &directory).filter(|_| running.killed.is_none()) =>
            {
                self.lose(None, &running, map, &message);
            }
            (_, Some(problem)) => self.cannot_run_again(&running, &problem),
            (Ok(Said::Done(outcome)), None) => done.push(Finished { row: None, running, outcome }),
            (_, None) => {}
        }
    }

    /// An attempt of a lost task failed. The next attempt runs, or the flow has failed, which the driver
    /// learns from the rows of the job.
    pub(super) fn cannot_run_again(&mut self, running: &Running, problem: &Problem) {
        let is_final = self.count_failure(running.id, problem.is_final);
        self.give_up(running, &problem.message, false, is_final);
        if !is_final {
            return;
        }
        let TaskId { job, phase, task } = running.id;
        let message = format!("{} {task}, whose output was lost, cannot rerun", phase.name());
        let flow = self.work.session.jobs[job as usize].flow.clone();
        self.flow_failed(&flow);
        let rows = self.attempts.running.iter().filter(|(_, r)| r.id.job == job && r.stage != Stage::Gone);
        for row in rows.map(|(&row, _)| row).collect::<Vec<_>>() {
            let Some(mut other) = self.attempts.running.remove(&row) else { continue };
            if other.stage == Stage::Starved {
                self.attempts.rows.remove(&other.number);
                self.fail(row, &other, &Problem { message: message.clone(), is_final: true });
                continue;
            }
            if let Some(second) = other.second.take() {
                self.drop_attempt(&second);
            }
            self.drop_attempt(&other);
            self.due.push(Report::Failed { row, at: self.now, is_final: true });
        }
    }

    /// Whether the end of a task must be withheld from the driver: for the driver the job would be done, but
    /// other tasks of it are lost.
    pub(super) fn is_withheld(&self, id: TaskId) -> bool {
        let lost = self.lost.of_job(id.job).filter(|&id| self.is_final(id)).count();
        lost > 0 && self.is_final(id) && self.open.parts[id.job as usize] as usize == lost
    }

    /// A lost task has run again: attempts that waited for it alone resume.
    pub(super) fn ran_again(&mut self, id: TaskId) {
        self.lost.tasks.remove(&id);
        let is_starved = |r: &Running| r.stage == Stage::Starved && r.id.job == id.job;
        let rows = self.attempts.running.iter().filter(|(_, r)| is_starved(r) && !self.misses_maps(r.id));
        for row in rows.map(|(&row, _)| row).collect::<Vec<_>>() {
            let Some(mut running) = self.attempts.running.remove(&row) else { continue };
            // Its slot was that of a lost task until now.
            running.start = self.now;
            self.set_to_work(row, running);
        }
        self.release(id.job);
    }

    /// The driver learns of tasks that have finished, if no task of their job is lost any more.
    pub(super) fn release(&mut self, job: u32) {
        if self.lost.of_job(job).next().is_some() {
            return;
        }
        let is_one = |r: &Running| r.stage == Stage::Finished && r.id.job == job;
        let rows = self.attempts.running.iter().filter(|(_, r)| is_one(r));
        for row in rows.map(|(&row, _)| row).collect::<Vec<_>>() {
            self.attempts.running.remove(&row);
            self.due.push(Report::Finished { row, at: self.now });
        }
    }
}
