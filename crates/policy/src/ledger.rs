//! The ledger of a run: the state, the log of all batches, the free slots, and the orders that follow from
//! reports under every policy (release early reduces, stop lost tasks).

mod ams;
mod failures;
mod sets;
mod speculation;

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::cluster::Group;
use slackline_model::quota::QuotaUse;
use slackline_model::schedule::{NewRow, Outcome};
use slackline_model::{
    Cluster, FlowId, Instance, JobId, MachineId, PhaseId, PhaseKind, SlotKind, SlotRange, Span, Time,
};

use crate::engine::{Batch, Capabilities, Engine, Faults, Order, Report, RowId, Running, Start};
use crate::event::Event;
use crate::ledger::sets::{MachineChanges, RowSets};
use crate::log::{FlowEnd, Log, RUNNING, Row, Sink};
use crate::pending::TaskRange;
use crate::slots::SlotSet;
use crate::speed_order::Fastest;
use crate::state::{Finished, State};
pub(crate) use ams::Ams;

/// The rules of a run, which hold under every policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The fraction of a job's maps after which its reduces may take slots.
    pub(crate) slowstart: f64,
    /// The number of failures of a task after which its flow fails.
    pub(crate) attempts_max: u16,
    /// Whether rows stay until their flow is finished, for an audit.
    pub(crate) audit: bool,
}

/// The complete memory of a run.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// The flows that have arrived and are not forgotten.
    pub(crate) instance: Instance,
    pub(crate) state: State,
    /// Rows that run, and those that ended and may still change.
    pub(crate) log: Log,
    /// How often running rows have changed otherwise than by starting or ending.
    pub(crate) row_changes: u64,
    pub(crate) free: [SlotSet; 2],
    /// The order in which slots are used.
    pub(crate) fastest: Fastest,
    pub(crate) now: Time,
    capabilities: Capabilities,
    rules: Rules,
    pub(crate) rows: RowSets,
    pub(crate) machines: MachineChanges,
    /// The number of failures of each task that failed.
    failures: BTreeMap<(PhaseId, u32), u16>,
    /// Future times at which a policy or the driver wants to be woken.
    wakes: BTreeSet<Time>,
    /// The ApplicationMasters of jobs, if they need them.
    pub(crate) ams: Option<Ams>,
    /// Machines on which slots became free; kept for placements.
    pub(crate) freed: Option<Vec<MachineId>>,
    pub(crate) quotas: QuotaUse,
    /// Scratch: the places of the batch being cut.
    piece: Vec<SlotRange>,
}

/// All slots of a kind, as a set of free slots.
fn all_slots(cluster: &Cluster, slot_kind: SlotKind) -> SlotSet {
    let n = cluster.slots(slot_kind);
    let mut free = SlotSet::empty(n);
    if n > 0 {
        free.insert(SlotRange { first: 0, len: n });
    }
    free
}

impl Ledger {
    /// The ledger of a new run on the cluster of `instance`, which has no flows yet.
    pub(crate) fn new(instance: Instance, rules: Rules, capabilities: Capabilities) -> Self {
        let cluster = instance.cluster();
        let mut free = [SlotSet::empty(0), SlotSet::empty(0)];
        for &slot_kind in cluster.slot_kinds() {
            free[slot_kind.index()] = all_slots(cluster, slot_kind);
        }
        let may_die = capabilities.faults != Faults::Never;
        Self {
            state: State::new(cluster, rules.slowstart)
                .with_lengths(capabilities.lengths)
                .with_submission(capabilities.ams.is_some()),
            ams: capabilities.ams.map(Ams::new),
            log: Log::new(),
            row_changes: 0,
            free,
            fastest: Fastest::default(),
            now: Time::ZERO,
            capabilities,
            rules,
            rows: RowSets::new(rules.slowstart < 1.0 || may_die),
            machines: MachineChanges::new(if may_die { cluster.n_machines() } else { 0 }),
            failures: BTreeMap::new(),
            wakes: BTreeSet::new(),
            freed: None,
            quotas: QuotaUse::default(),
            piece: Vec::new(),
            instance,
        }
    }

    pub(crate) fn advance(&mut self, now: Time) {
        self.now = now;
        while self.wakes.first().is_some_and(|&at| at <= now) {
            self.wakes.pop_first();
        }
    }

    /// Requests a wake-up from the engine, now or later.
    pub(crate) fn wake_at(&mut self, at: Time, engine: &mut dyn Engine) {
        let at = at.max(self.now);
        self.wakes.insert(at);
        engine.wake_at(at);
    }

    /// Handles a report: the consequences become events for the policy and orders for the engine.
    pub(crate) fn absorb(&mut self, report: Report, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        match report {
            // A batch may end before the order to kill it reaches the engine.
            Report::Finished { row, .. } | Report::Failed { row, .. }
                if !self.log.get(row).is_some_and(Row::is_running) => {}
            Report::Began { row, startup } => {
                if let Some(row) = self.log.get_mut(row) {
                    row.task.startup = startup;
                    self.row_changes += u64::from(row.is_running());
                }
            }
            Report::Finished { row, at } => self.finished(row, at, engine, events),
            Report::Failed { row, at, is_final } => self.failed(row, at, is_final, engine, events),
            Report::JobFailed { row, all } => self.job_failed(row, all, engine, events),
            Report::Running(running) => self.runs_already(running, engine, events),
            Report::Speculative(second) => self.start_speculative(second, engine),
            Report::Arrived(arrival) => {
                let flow = self.instance.admit(*arrival);
                self.state.arrive(&self.instance, flow, self.now, events);
                self.submit(engine);
            }
            Report::Withdrawn(flow) if self.state.knows_flow(flow) => self.give_up(flow, engine, events),
            Report::Submitted(job) => self.submitted(job, events),
            Report::AmUp(job) => self.am_up(job, events),
            Report::AmGone(job) => self.am_gone(job, events),
            Report::Down(machine) => self.machine_down(machine, engine, events),
            Report::Up(machine) => self.machine_up(machine, events),
            Report::Joined(group) => self.machines_join(group, events),
            Report::Left(machine) => self.machine_left(machine, engine, events),
            Report::Ends { machine, at } => drop(self.machines.horizons.insert(machine, at)),
            Report::Woken => events.push(Event::Wake),
            // Nothing is left of a finished flow.
            Report::Withdrawn(_) | Report::Offer(_) | Report::GaveUp(_) => {}
        }
    }

    /// Frees the slots of a row. Returns the row and the machine of the first slot.
    fn free_places(&mut self, id: RowId) -> (NewRow, MachineId) {
        let row = &self.log[id];
        let slot_kind = self.instance.slot_kind_of(row.task.phase);
        for &range in row.places() {
            self.free[slot_kind.index()].insert(range);
        }
        let (machine, _) = self.instance.cluster().machine_of(slot_kind, row.places()[0].first);
        if let Some(freed) = &mut self.freed {
            freed.push(machine);
        }
        (row.task, machine)
    }

    /// Whether ended rows stay until their flow is finished.
    fn keeps_rows(&self) -> bool {
        self.rules.audit || self.capabilities.faults == Faults::TasksAndOutput
    }

    /// Ends a running row. It leaves with this instant, or with its flow.
    fn end_row(&mut self, id: RowId, at: Time, outcome: Outcome) {
        self.rows.went.remove(&id);
        let task = &mut self.log[id].task;
        (task.end, task.outcome) = (at, outcome);
        let (phase, count) = (task.phase, task.count);
        self.quotas.end(&self.instance, phase, count);
        self.forget_reduce(id, phase);
        if !self.keeps_rows() {
            self.rows.leaving.push(id);
        }
    }

    /// Ended rows that cannot change any more leave. Call this at the end of an instant.
    pub(crate) fn drop_rows(&mut self, sink: &mut dyn Sink) {
        for id in self.rows.leaving.drain(..) {
            if let Some(row) = self.log.remove(id) {
                sink.row(id, &row.task, row.places(), &self.instance);
            }
        }
        if let Some(ams) = &mut self.ams {
            ams.take_over().iter().for_each(|row| sink.am(row, &self.instance));
        }
    }

    /// Forgets a flow that is finished or can never finish: its rows leave, and nothing of it is kept.
    pub(crate) fn retire_flow(&mut self, flow: FlowId, sink: &mut dyn Sink) {
        for &id in &self.rows.of_flow[flow] {
            if let Some(row) = self.log.remove(id) {
                sink.row(id, &row.task, row.places(), &self.instance);
            }
        }
        self.rows.of_flow.forget([flow]);
        let (started, completion) = (self.state.started(flow), self.state.completion(flow));
        sink.flow(&FlowEnd { flow, started, completion }, &self.instance);
        for phase in self.instance.flow(flow).phases() {
            if let Some(reduces) = &mut self.rows.reduces {
                reduces.forget([phase]);
            }
            self.rows.last_row.forget([phase]);
            while let Some((&task, _)) = self.failures.range((phase, 0)..=(phase, u32::MAX)).next() {
                self.failures.remove(&task);
            }
        }
        self.state.retire(&self.instance, flow);
        self.instance.retire(flow);
    }

    fn finished(&mut self, id: RowId, at: Time, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        let (row, machine) = self.free_places(id);
        let began = self.rows.went.get(&id).copied().unwrap_or(row.start).max(row.start + row.startup);
        self.end_row(id, at, Outcome::Done);
        self.end_twin(id, at, engine, events);
        let done = Event::TasksDone { phase: row.phase, count: row.count, machine, took: at.since(began) };
        events.push(done);
        let finished = Finished { phase: row.phase, count: row.count, at, now: self.now };
        let before = events.len();
        self.state.finish(&self.instance, finished, events);
        self.end_ams(&events[before..], engine);
        self.submit(engine);
        let info = self.instance.phase(row.phase);
        if info.kind == PhaseKind::Map && self.state.phase(row.phase).is_done() {
            self.release_reduces(info.job, engine);
        }
    }

    /// An attempt failed: its tasks run again, unless a task has failed too often or for good.
    fn failed(
        &mut self,
        id: RowId,
        at: Time,
        is_final: bool,
        engine: &mut dyn Engine,
        events: &mut Vec<Event>,
    ) {
        let (row, _) = self.free_places(id);
        self.end_row(id, at, Outcome::Failed);
        let other = self.end_twin(id, at, engine, events).unwrap_or_default();
        let tasks = TaskRange { first: row.first, count: row.count, attempt: row.attempt.max(other) };
        self.state.kill(&self.instance, row.phase, tasks, events);
        let mut worst = 0;
        for task in row.first..row.first + row.count {
            let failures = self.failures.entry((row.phase, task)).or_default();
            *failures += 1;
            worst = worst.max(*failures);
        }
        if is_final || worst >= self.rules.attempts_max {
            self.give_up(self.instance.flow_of(row.phase), engine, events);
        }
    }

    /// Stops every running task of a flow and starts no more of its tasks. O(rows of the log), which is small
    /// compared to the attempts so far.
    fn give_up(&mut self, flow: FlowId, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        let of_flow = |row: &Row| row.is_running() && self.instance.flow_of(row.task.phase) == flow;
        let running: Vec<RowId> =
            self.log.iter_enumerated().filter_map(|(id, row)| of_flow(row).then_some(id)).collect();
        for id in running {
            // A speculative attempt is stopped with the first attempt.
            if self.log[id].is_running() {
                self.free_places(id);
                self.kill(id, engine, events);
            }
        }
        self.kill_ams(flow, engine, events);
        self.state.give_up(&self.instance, flow, events);
    }

    fn forget_reduce(&mut self, id: RowId, phase: PhaseId) {
        if let Some(reduces) = &mut self.rows.reduces
            && self.instance.phase(phase).kind == PhaseKind::Reduce
        {
            reduces[phase].retain(|&other| other != id);
        }
    }

    /// The last map is done: reduces that hold slots start to compute.
    fn release_reduces(&mut self, job: JobId, engine: &mut dyn Engine) {
        let Some(reduce) = self.instance.job(job).reduce else { return };
        let Some(since) = self.instance.job(job).map.map(|map| self.state.phase(map).last_end()) else {
            return;
        };
        self.state.release(&self.instance, reduce);
        for &row in self.rows.reduces.iter().flat_map(|r| &r[reduce]) {
            self.row_changes += 1;
            self.rows.went.insert(row, since.max(self.log[row].task.start));
            engine.order(Order::Go { row, since });
        }
    }

    /// Starts tasks that were taken, on exactly as many slots, cut into batches that the engine supports.
    ///
    /// If batches may comprise several machines, the engine gets them at the end of the instant
    /// ([`Ledger::start_opened`]): equal portions of a phase are then one batch.
    pub(crate) fn launch(
        &mut self,
        engine: &mut dyn Engine,
        phase: PhaseId,
        taken: TaskRange,
        slots: &[SlotRange],
    ) {
        let info = self.instance.phase(phase);
        let slot_kind = self.instance.cluster().slot_kind_of(info.kind);
        self.state.note_start(info.flow, self.now);
        let mut slots = slots.iter().copied();
        let mut rest = None;
        let (mut first, mut left) = (taken.first, taken.count);
        while left > 0 {
            let most =
                if self.capabilities.batch == Batch::Task { 1 } else { left.min(self.equal(phase, first)) };
            let count = self.cut_piece(slot_kind, most, &mut rest, &mut slots);
            let piece = TaskRange { first, count, attempt: taken.attempt };
            if !self.rows_grow() {
                let row = self.open_row(phase, piece, self.now);
                self.start_row(row, None, engine);
            } else if let Some(row) = self.growing(phase, piece) {
                self.quotas.start(&self.instance, phase, piece.count);
                self.log[row].extend(&self.piece);
            } else {
                let row = self.open_row(phase, piece, self.now);
                self.rows.last_row[phase] = Some(row);
                self.rows.opened.push(row);
            }
            first += count;
            left -= count;
        }
    }

    /// Whether rows grow during their instant: not under policies that place tasks on machines.
    fn rows_grow(&self) -> bool {
        let Capabilities { batch, faults, .. } = self.capabilities;
        batch == Batch::Speed && faults == Faults::Never && self.freed.is_none()
    }

    /// Whether all slots of a kind are equal for every phase without early reduces and hosts of inputs. Then
    /// any of them will do for a phase.
    pub(crate) fn are_alike(&self, slot_kind: SlotKind) -> bool {
        self.rows_grow()
            && self.ams.is_none()
            && self.machines.horizons.is_empty()
            && self.fastest.classes(slot_kind).len() <= 1
    }

    /// The opened row of a phase to which the tasks on the slots of `piece` may be added: they must follow
    /// its tasks, be equal to them, and have slots of the same speed.
    fn growing(&self, phase: PhaseId, tasks: TaskRange) -> Option<RowId> {
        let id = self.rows.last_row[phase]?;
        if id < *self.rows.opened.first()? {
            return None;
        }
        let row = &self.log[id];
        let NewRow { first, count, attempt, .. } = row.task;
        let slot_kind = self.instance.slot_kind_of(phase);
        let speed = |places: &[SlotRange]| self.instance.cluster().speed_of(slot_kind, places[0].first).0;
        let follows = first + count == tasks.first && attempt == tasks.attempt;
        (follows
            && count + tasks.count <= self.equal(phase, first)
            && speed(row.places()) == speed(&self.piece))
        .then_some(id)
    }

    /// Sends the opened rows to the engine.
    pub(crate) fn start_opened(&mut self, engine: &mut dyn Engine) {
        let mut opened = std::mem::take(&mut self.rows.opened);
        for row in opened.drain(..) {
            self.start_row(row, None, engine);
        }
        self.rows.opened = opened;
    }

    /// The number of equal tasks from `first` on.
    fn equal(&self, phase: PhaseId, first: u32) -> u32 {
        let tasks = self.instance.phase(phase).tasks();
        tasks.expect("invariant: flows are cut before they arrive").run_at(first).1
    }

    /// A task runs without an order. The ledger accepts it if it may run there, and refuses it otherwise.
    fn runs_already(&mut self, running: Running, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        let Running { name, phase, task, slot, since } = running;
        let place = SlotRange { first: slot, len: 1 };
        let may_run = |ledger: &Self| {
            let slot_kind = ledger.instance.slot_kind_of(phase);
            slot < ledger.instance.cluster().slot_numbers(slot_kind)
                && ledger.has_am(ledger.instance.phase(phase).job)
                && ledger.state.runnable(&ledger.instance, phase) > 0
                && ledger.state.phase(phase).is_pending(task)
                && ledger.free[slot_kind.index()].count_in(place) == 1
        };
        if !self.state.knows(phase) || !may_run(self) {
            engine.order(Order::Refuse(name));
            return;
        }
        let taken = self.state.pending_at(phase, task, 1).expect("invariant: the task is pending");
        self.state.take_exactly(&self.instance, phase, taken);
        self.free[self.instance.slot_kind_of(phase).index()].remove(place);
        self.state.note_start(self.instance.flow_of(phase), since);
        self.piece.clear();
        self.piece.push(place);
        let row = self.open_row(phase, taken, since);
        self.start_row(row, Some(name), engine);
        let (machine, _) = self.instance.cluster().machine_of(self.instance.slot_kind_of(phase), slot);
        events.push(Event::TaskRuns { phase, task, machine });
    }

    /// Moves up to `most` slots that one batch may comprise from the stream of ranges to `piece`.
    fn cut_piece(
        &mut self,
        slot_kind: SlotKind,
        most: u32,
        rest: &mut Option<SlotRange>,
        slots: &mut impl Iterator<Item = SlotRange>,
    ) -> u32 {
        self.piece.clear();
        let cluster = self.instance.cluster();
        let (mut count, mut like) = (0, None);
        while count < most {
            let Some(range) = rest.take().or_else(|| slots.next()) else { break };
            let (speed, speed_end) = cluster.speed_of(slot_kind, range.first);
            let one_machine =
                self.capabilities.batch == Batch::Machine || self.capabilities.faults != Faults::Never;
            let (key, end) = if one_machine {
                let (machine, _) = cluster.machine_of(slot_kind, range.first);
                let end = cluster.machine_slots(slot_kind, machine).map_or(range.end(), SlotRange::end);
                ((speed, Some(machine)), end)
            } else {
                ((speed, None), speed_end)
            };
            if *like.get_or_insert(key) != key {
                *rest = Some(range);
                break;
            }
            let len = range.len.min(end - range.first).min(most - count);
            self.piece.push(SlotRange { first: range.first, len });
            count += len;
            if len < range.len {
                *rest = Some(SlotRange { first: range.first + len, len: range.len - len });
            }
        }
        count
    }

    /// Adds a row for tasks that were taken and run on the slots of `piece`.
    fn open_row(&mut self, phase: PhaseId, taken: TaskRange, start: Time) -> RowId {
        let TaskRange { first, count, attempt } = taken;
        let (startup, outcome) = (Span::ZERO, Outcome::Done);
        let new = NewRow { phase, first, count, start, end: RUNNING, startup, attempt, outcome };
        let row = self.log.push(Row::new(new, &self.piece));
        self.quotas.start(&self.instance, phase, count);
        let info = self.instance.phase(phase);
        if let Some(reduces) = &mut self.rows.reduces
            && info.kind == PhaseKind::Reduce
        {
            reduces[phase].push(row);
        }
        if self.keeps_rows() {
            self.rows.of_flow[info.flow].push(row);
        }
        if self.capabilities.faults != Faults::Never {
            let slot_kind = self.instance.slot_kind_of(phase);
            let (machine, _) = self.instance.cluster().machine_of(slot_kind, self.piece[0].first);
            let rows = &mut self.machines.on_machine[machine.index()];
            // Rows that left the log are dropped when the list is full, so that its length depends on the
            // live rows.
            if rows.len() == rows.capacity() {
                rows.retain(|&row| self.log.contains(row));
            }
            rows.push(row);
        }
        row
    }

    /// Orders the engine to start a row, or to take it over.
    fn start_row(&self, id: RowId, reported_as: Option<u64>, engine: &mut dyn Engine) {
        let row = &self.log[id];
        let NewRow { phase, first, count, attempt, start, .. } = row.task;
        let since = self.rows.went.get(&id).copied().unwrap_or(start);
        let held = self.state.is_early(&self.instance, phase);
        let places = row.places();
        let start = Start { row: id, since, reported_as, phase, first, count, attempt, places, held };
        engine.start(&start, &self.instance);
    }

    fn machine_up(&mut self, machine: MachineId, events: &mut Vec<Event>) {
        if self.machines.left.contains(&machine) || self.machines.down.remove(&machine).is_none() {
            return;
        }
        self.free_machine(machine);
        events.push(Event::MachineUp(machine));
    }

    /// All slots of a machine that was away are free.
    fn free_machine(&mut self, machine: MachineId) {
        for &slot_kind in self.instance.cluster().slot_kinds() {
            if let Some(range) = self.instance.cluster().machine_slots(slot_kind, machine) {
                self.free[slot_kind.index()].insert(range);
                self.state.set_alive(slot_kind, self.state.alive(slot_kind) + range.len);
            }
        }
        if let Some(freed) = &mut self.freed {
            freed.push(machine);
        }
    }

    fn machines_join(&mut self, group: Group, events: &mut Vec<Event>) {
        let machines = self.instance.cluster_mut().join(group);
        let cluster = self.instance.cluster();
        for &slot_kind in cluster.slot_kinds() {
            self.free[slot_kind.index()].grow(cluster.slot_numbers(slot_kind));
        }
        if self.capabilities.faults != Faults::Never {
            self.machines.on_machine.resize(cluster.n_machines() as usize, Vec::new());
        }
        for machine in machines.map(MachineId) {
            self.free_machine(machine);
            events.push(Event::MachineJoined(machine));
        }
    }

    fn machine_left(&mut self, machine: MachineId, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        if !self.machines.left.insert(machine) {
            return;
        }
        self.machine_down(machine, engine, events);
        self.instance.cluster_mut().leave(machine);
        events.push(Event::MachineLeft(machine));
    }

    fn machine_down(&mut self, machine: MachineId, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        assert!(self.capabilities.faults != Faults::Never, "a machine went although none ever does");
        assert!(self.ams.is_none(), "AMs on a machine that leaves are not supported");
        if self.machines.down.contains_key(&machine) {
            return;
        }
        self.machines.down.insert(machine, self.now);
        self.machines.horizons.remove(&machine);
        for &slot_kind in self.instance.cluster().slot_kinds() {
            if let Some(range) = self.instance.cluster().machine_slots(slot_kind, machine) {
                self.free[slot_kind.index()].remove(range);
                self.state.set_alive(slot_kind, self.state.alive(slot_kind) - range.len);
            }
        }
        events.push(Event::MachineDown(machine));
        for id in std::mem::take(&mut self.machines.on_machine[machine.index()]) {
            let Some(row) = self.log.get(id) else { continue };
            if row.is_running() {
                self.kill(id, engine, events);
            } else if row.task.outcome == Outcome::Done && self.loses_output(row) {
                self.lose(id, engine, events);
            }
        }
        self.unblock_maps(engine, events);
    }

    /// Whether the failure of its machine loses the output of a finished row: map output is needed until all
    /// reduces of the job have finished.
    fn loses_output(&self, row: &Row) -> bool {
        let info = self.instance.phase(row.task.phase);
        let reduce = self.instance.job(info.job).reduce;
        self.capabilities.faults == Faults::TasksAndOutput
            && info.kind == PhaseKind::Map
            && reduce.is_some_and(|r| !self.state.phase(r).is_done())
    }

    /// Stops a running row; its slots are not freed (its machine is down, or the caller frees them).
    fn kill(&mut self, id: RowId, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        let row = self.log[id].task;
        self.end_row(id, self.now, Outcome::Killed);
        engine.order(Order::Kill(id));
        let other = self.end_twin(id, self.now, engine, events).unwrap_or_default();
        let tasks = TaskRange { first: row.first, count: row.count, attempt: row.attempt.max(other) };
        self.state.kill(&self.instance, row.phase, tasks, events);
    }

    fn lose(&mut self, id: RowId, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        let task = &mut self.log[id].task;
        task.outcome = Outcome::Lost;
        let row = *task;
        let complete = self.state.phase(row.phase).is_done();
        let tasks = TaskRange { first: row.first, count: row.count, attempt: row.attempt };
        self.state.lose(&self.instance, row.phase, tasks, self.now, events);
        let job = self.instance.phase(row.phase).job;
        if complete && let Some(reduce) = self.instance.job(job).reduce {
            self.state.hold(&self.instance, reduce);
            self.row_changes += 1;
            for &row in self.rows.reduces.iter().flat_map(|r| &r[reduce]) {
                engine.order(Order::Hold(row));
            }
        }
    }

    /// After a loss, waiting reduces may hold every generic slot that their maps need: the reduces that
    /// started last are stopped, as in Hadoop.
    fn unblock_maps(&mut self, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        if self.instance.cluster().is_map_reduce() {
            return;
        }
        while self.state.waiting(SlotKind::Any) > 0
            && self.state.waiting(SlotKind::Any) >= self.state.alive(SlotKind::Any)
        {
            let reduces = self.rows.reduces.as_ref().expect("invariant: waiting reduces are tracked");
            let waiting = reduces.iter_enumerated().filter(|(p, _)| self.state.phase(*p).waiting() > 0);
            let Some(id) = waiting.flat_map(|(_, rows)| rows.iter().copied()).max() else { return };
            for &range in self.log[id].places() {
                self.free[SlotKind::Any.index()].insert(range);
            }
            self.kill(id, engine, events);
        }
    }

    /// Another engine takes over the running tasks. Machines that fail there lose their output here.
    pub(crate) fn transfer(&mut self, engine: &mut dyn Engine) {
        let Capabilities { batch, offers, .. } = engine.capabilities();
        self.capabilities = Capabilities { batch, offers, ..self.capabilities };
        for (id, _) in self.log.iter_enumerated().filter(|(_, row)| row.is_running()) {
            self.start_row(id, None, engine);
        }
        self.hand_over_ams(engine);
        self.wakes.iter().for_each(|&at| engine.wake_at(at));
    }

    /// Stops what still runs when a run ends early.
    pub(crate) fn abandon(&mut self) {
        let running: Vec<RowId> =
            self.log.iter_enumerated().filter_map(|(id, row)| row.is_running().then_some(id)).collect();
        for id in running {
            self.end_row(id, self.now, Outcome::Killed);
        }
        if let Some(ams) = &mut self.ams {
            ams.abandon(self.now);
        }
    }

    pub(crate) fn is_down(&self, machine: MachineId) -> bool {
        self.machines.down.contains_key(&machine)
    }
}

#[cfg(test)]
mod tests;
