//! The books of a run: the state, the log of everything that ran, the free slots, and the orders
//! that follow from reports whatever the policy thinks (early reduces go, lost tasks are stopped).

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::id::TiVec;
use slackline_model::schedule::{NewRow, Outcome, TaskRow, TaskRows};
use slackline_model::{FlowId, Instance, Lane, MachineId, PhaseId, PhaseKind, SlotRange, Time};

use crate::engine::{Batch, Capabilities, Engine, Order, Report, RowId, Start};
use crate::event::Event;
use crate::slots::SlotSet;
use crate::state::{Finished, State, Taken};

/// The end of a row whose tasks still run.
pub(crate) const RUNNING: Time = Time(u64::MAX);

/// The rules of a run that no policy may bend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The fraction of a job's maps after which its reduces may take slots.
    pub(crate) slowstart: f64,
    /// How often a task may fail before its flow is abandoned.
    pub(crate) attempts_max: u16,
}

/// Everything a run has to remember.
pub(crate) struct Ledger<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) state: State,
    pub(crate) log: TaskRows,
    pub(crate) free: [SlotSet; 2],
    pub(crate) now: Time,
    capabilities: Capabilities,
    /// First start of each flow.
    pub(crate) started: TiVec<FlowId, Option<Time>>,
    /// Running rows of each reduce phase, kept only where reduces may have to wait.
    reduces: Option<TiVec<PhaseId, Vec<RowId>>>,
    /// When held rows last began to compute; only of rows that were held.
    went: BTreeMap<RowId, Time>,
    /// Rows on each machine, kept only if machines may die.
    on_machine: Vec<Vec<RowId>>,
    down: BTreeSet<MachineId>,
    /// How often each task failed that ever did.
    failures: BTreeMap<(PhaseId, u32), u16>,
    /// How often a task may fail.
    attempts_max: u16,
    /// Machines on which slots became free; kept for placements.
    pub(crate) freed: Option<BTreeSet<MachineId>>,
    /// Scratch: the places of the batch being cut.
    piece: Vec<SlotRange>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(instance: &'a Instance, rules: Rules, capabilities: Capabilities) -> Self {
        let cluster = instance.cluster();
        let mut free = [SlotSet::empty(0), SlotSet::empty(0)];
        for &lane in cluster.lanes() {
            let n = cluster.slots(lane);
            free[lane.index()] = SlotSet::empty(n);
            if n > 0 {
                free[lane.index()].insert(SlotRange { first: 0, len: n });
            }
        }
        let waits = rules.slowstart < 1.0 || capabilities.faults;
        Self {
            instance,
            state: State::new(instance, rules.slowstart).with_lengths(capabilities.lengths),
            log: TaskRows::new(),
            free,
            now: Time::ZERO,
            capabilities,
            started: vec![None; instance.flows().len()].into(),
            reduces: waits.then(|| vec![Vec::new(); instance.phases().len()].into()),
            went: BTreeMap::new(),
            on_machine: if capabilities.faults {
                vec![Vec::new(); cluster.n_machines() as usize]
            } else {
                Vec::new()
            },
            down: BTreeSet::new(),
            failures: BTreeMap::new(),
            attempts_max: rules.attempts_max,
            freed: None,
            piece: Vec::new(),
        }
    }

    /// Takes in a report; what follows becomes events for the policy and orders for the engine.
    pub(crate) fn absorb<E: Engine + ?Sized>(
        &mut self,
        report: Report,
        engine: &mut E,
        events: &mut Vec<Event>,
    ) {
        match report {
            // A batch that was killed may have ended before the engine heard of it.
            Report::Finished { row, .. } | Report::Failed { row, .. }
                if self.log.row(row.0 as usize).end != RUNNING => {}
            Report::Finished { row, at } => self.finished(row, at, engine, events),
            Report::Failed { row, at } => self.failed(row, at, engine, events),
            Report::Arrived(flow) => self.state.arrive(self.instance, flow, self.now, events),
            Report::Down(machine) => self.machine_down(machine, engine, events),
            Report::Up(machine) => self.machine_up(machine, events),
            Report::Woken => events.push(Event::Wake),
            Report::Offer(_) => {}
        }
    }

    /// Gives the slots of a row back, and returns the machine of the first of them.
    fn free_places(&mut self, row: &TaskRow) -> MachineId {
        let lane = self.instance.lane_of(row.phase);
        let places = self.log.places(row);
        for &range in places {
            self.free[lane.index()].insert(range);
        }
        let (machine, _) = self.instance.cluster().machine_of(lane, places[0].first);
        if let Some(freed) = &mut self.freed {
            freed.insert(machine);
        }
        machine
    }

    fn finished<E: Engine + ?Sized>(&mut self, id: RowId, at: Time, engine: &mut E, events: &mut Vec<Event>) {
        self.log.end(id.0 as usize, at, Outcome::Done);
        let row = *self.log.row(id.0 as usize);
        let machine = self.free_places(&row);
        self.forget_reduce(id, row.phase);
        let began = self.went.remove(&id).unwrap_or(row.start);
        let done = Event::TasksDone { phase: row.phase, count: row.count, machine, took: at.since(began) };
        events.push(done);
        let finished = Finished { phase: row.phase, count: row.count, at, now: self.now };
        self.state.finish(self.instance, finished, events);
        let info = self.instance.phase(row.phase);
        if info.kind == PhaseKind::Map && self.state.phase(row.phase).is_done() {
            self.release_reduces(info.job, engine);
        }
    }

    /// An attempt failed: its tasks run again, unless one has failed too often.
    fn failed<E: Engine + ?Sized>(&mut self, id: RowId, at: Time, engine: &mut E, events: &mut Vec<Event>) {
        self.log.end(id.0 as usize, at, Outcome::Failed);
        let row = *self.log.row(id.0 as usize);
        self.free_places(&row);
        self.forget_reduce(id, row.phase);
        self.went.remove(&id);
        let tasks = Taken { first: row.first, count: row.count, attempt: row.attempt };
        self.state.kill(self.instance, row.phase, tasks, events);
        let mut worst = 0;
        for task in row.first..row.first + row.count {
            let failures = self.failures.entry((row.phase, task)).or_default();
            *failures += 1;
            worst = worst.max(*failures);
        }
        if worst >= self.attempts_max {
            self.give_up(self.instance.flow_of(row.phase), engine, events);
        }
    }

    /// Stops whatever still runs of a flow and lets nothing more of it start. O(rows of the log), which is
    /// little beside the attempts that led here.
    fn give_up<E: Engine + ?Sized>(&mut self, flow: FlowId, engine: &mut E, events: &mut Vec<Event>) {
        for index in 0..self.log.len() {
            let row = *self.log.row(index);
            if row.end == RUNNING && self.instance.flow_of(row.phase) == flow {
                self.free_places(&row);
                self.kill(RowId(index as u32), row, engine, events);
            }
        }
        self.state.give_up(self.instance, flow, events);
    }

    fn forget_reduce(&mut self, id: RowId, phase: PhaseId) {
        if let Some(reduces) = &mut self.reduces
            && self.instance.phase(phase).kind == PhaseKind::Reduce
        {
            reduces[phase].retain(|&other| other != id);
        }
    }

    /// The last map is done: reduces that hold slots compute.
    fn release_reduces<E: Engine + ?Sized>(&mut self, job: slackline_model::JobId, engine: &mut E) {
        let Some(reduce) = self.instance.job(job).reduce else { return };
        let Some(since) = self.instance.job(job).map.map(|map| self.state.phase(map).last_end()) else {
            return;
        };
        self.state.release(self.instance, reduce);
        for &row in self.reduces.iter().flat_map(|r| &r[reduce]) {
            self.went.insert(row, since.max(self.log.row(row.0 as usize).start));
            engine.order(Order::Go { row, since });
        }
    }

    /// Starts tasks that were taken, on exactly as many slots, cut into batches the engine can take.
    pub(crate) fn launch<E: Engine + ?Sized>(
        &mut self,
        engine: &mut E,
        phase: PhaseId,
        taken: Taken,
        slots: &[SlotRange],
    ) {
        let instance = self.instance;
        let flow = instance.flow_of(phase);
        self.started[flow].get_or_insert(self.now);
        let tasks = instance.phase(phase).tasks().expect("invariant: instances are cut before they run");
        let mut slots = slots.iter().copied();
        let mut rest = None;
        let (mut first, mut left) = (taken.first, taken.count);
        while left > 0 {
            let (_, equal) = tasks.run_at(first);
            let most = if self.capabilities.batch == Batch::Task { 1 } else { left.min(equal) };
            let count = self.cut_piece(instance.lane_of(phase), most, &mut rest, &mut slots);
            self.start_row(engine, phase, Taken { first, count, attempt: taken.attempt });
            first += count;
            left -= count;
        }
    }

    /// Moves up to `most` slots that one batch may comprise from the stream of ranges to `piece`.
    fn cut_piece(
        &mut self,
        lane: Lane,
        most: u32,
        rest: &mut Option<SlotRange>,
        slots: &mut impl Iterator<Item = SlotRange>,
    ) -> u32 {
        self.piece.clear();
        let cluster = self.instance.cluster();
        let (mut count, mut like) = (0, None);
        while count < most {
            let Some(range) = rest.take().or_else(|| slots.next()) else { break };
            let (speed, speed_end) = cluster.speed_of(lane, range.first);
            let (key, end) = if self.capabilities.batch == Batch::Machine || self.capabilities.faults {
                let (machine, _) = cluster.machine_of(lane, range.first);
                let end = cluster.machine_slots(lane, machine).map_or(range.end(), SlotRange::end);
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

    fn start_row<E: Engine + ?Sized>(&mut self, engine: &mut E, phase: PhaseId, taken: Taken) {
        let Taken { first, count, attempt } = taken;
        let new =
            NewRow { phase, first, count, start: self.now, end: RUNNING, attempt, outcome: Outcome::Done };
        let row = RowId(self.log.push(new, &self.piece) as u32);
        let held = self.state.is_early(self.instance, phase);
        if let Some(reduces) = &mut self.reduces
            && self.instance.phase(phase).kind == PhaseKind::Reduce
        {
            reduces[phase].push(row);
        }
        if self.capabilities.faults {
            let lane = self.instance.lane_of(phase);
            let (machine, _) = self.instance.cluster().machine_of(lane, self.piece[0].first);
            self.on_machine[machine.index()].push(row);
        }
        engine.start(&Start { row, phase, first, count, attempt, places: &self.piece, held });
    }

    fn machine_up(&mut self, machine: MachineId, events: &mut Vec<Event>) {
        if !self.down.remove(&machine) {
            return;
        }
        for &lane in self.instance.cluster().lanes() {
            if let Some(range) = self.instance.cluster().machine_slots(lane, machine) {
                self.free[lane.index()].insert(range);
                self.state.set_alive(lane, self.state.alive(lane) + range.len);
            }
        }
        if let Some(freed) = &mut self.freed {
            freed.insert(machine);
        }
        events.push(Event::MachineUp(machine));
    }

    fn machine_down<E: Engine + ?Sized>(
        &mut self,
        machine: MachineId,
        engine: &mut E,
        events: &mut Vec<Event>,
    ) {
        if !self.down.insert(machine) {
            return;
        }
        for &lane in self.instance.cluster().lanes() {
            if let Some(range) = self.instance.cluster().machine_slots(lane, machine) {
                self.free[lane.index()].remove(range);
                self.state.set_alive(lane, self.state.alive(lane) - range.len);
            }
        }
        events.push(Event::MachineDown(machine));
        for id in std::mem::take(&mut self.on_machine[machine.index()]) {
            let row = *self.log.row(id.0 as usize);
            if row.end == RUNNING {
                self.kill(id, row, engine, events);
            } else if row.outcome == Outcome::Done && self.output_needed(&row) {
                self.lose(id, row, engine, events);
            }
        }
        self.unblock_maps(engine, events);
    }

    /// Map output stays on its machine until the reduces of the job have all finished.
    fn output_needed(&self, row: &TaskRow) -> bool {
        let info = self.instance.phase(row.phase);
        let reduce = self.instance.job(info.job).reduce;
        info.kind == PhaseKind::Map && reduce.is_some_and(|r| !self.state.phase(r).is_done())
    }

    /// Stops a running row; its slots are not freed (its machine is down, or the caller frees them).
    fn kill<E: Engine + ?Sized>(&mut self, id: RowId, row: TaskRow, engine: &mut E, events: &mut Vec<Event>) {
        self.log.end(id.0 as usize, self.now, Outcome::Killed);
        self.forget_reduce(id, row.phase);
        self.went.remove(&id);
        engine.order(Order::Kill(id));
        let tasks = Taken { first: row.first, count: row.count, attempt: row.attempt };
        self.state.kill(self.instance, row.phase, tasks, events);
    }

    fn lose<E: Engine + ?Sized>(&mut self, id: RowId, row: TaskRow, engine: &mut E, events: &mut Vec<Event>) {
        self.log.end(id.0 as usize, row.end, Outcome::Lost);
        let complete = self.state.phase(row.phase).is_done();
        let tasks = Taken { first: row.first, count: row.count, attempt: row.attempt };
        self.state.lose(self.instance, row.phase, tasks, self.now, events);
        let job = self.instance.phase(row.phase).job;
        if complete && let Some(reduce) = self.instance.job(job).reduce {
            self.state.hold(self.instance, reduce);
            for &row in self.reduces.iter().flat_map(|r| &r[reduce]) {
                engine.order(Order::Hold(row));
            }
        }
    }

    /// After a loss, waiting reduces may hold every universal slot the maps they wait for need:
    /// the youngest of them make room, as in Hadoop.
    fn unblock_maps<E: Engine + ?Sized>(&mut self, engine: &mut E, events: &mut Vec<Event>) {
        if self.instance.cluster().is_typed() {
            return;
        }
        while self.state.waiting(Lane::Any) > 0
            && self.state.waiting(Lane::Any) >= self.state.alive(Lane::Any)
        {
            let reduces = self.reduces.as_ref().expect("invariant: waiting reduces are tracked");
            let waiting = reduces.iter_enumerated().filter(|(p, _)| self.state.phase(*p).waiting() > 0);
            let Some(id) = waiting.flat_map(|(_, rows)| rows.iter().copied()).max() else { return };
            let row = *self.log.row(id.0 as usize);
            for &range in self.log.places(&row) {
                self.free[Lane::Any.index()].insert(range);
            }
            self.kill(id, row, engine, events);
        }
    }

    /// Stops what still runs when a run ends early.
    pub(crate) fn abandon(&mut self) {
        for index in 0..self.log.len() {
            if self.log.row(index).end == RUNNING {
                self.log.end(index, self.now, Outcome::Killed);
            }
        }
    }

    pub(crate) fn is_down(&self, machine: MachineId) -> bool {
        self.down.contains(&machine)
    }
}

#[cfg(test)]
mod tests;
