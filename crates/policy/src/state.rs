//! The progress of every phase, job and flow: precedence, readiness, and the tasks that still have to start.
//!
//! The state follows from the reports of an engine alone and is the same for every engine. It applies the
//! rules of a workload (a job starts when all its predecessors are done, reduces start when enough maps are
//! done, a phase never holds more than its cap) and takes no decision.
//!
//! A phase without length is done when it becomes ready ([`State::is_instant`]). It is never among the ready
//! phases, none of its tasks starts, and policies receive only [`Event::PhaseDone`] for it.

mod dropped;
mod phase;

use std::collections::{BTreeSet, VecDeque};

use slackline_model::instance::Phase;
use slackline_model::{Cluster, FlowId, Instance, JobId, PhaseId, PhaseKind, SlotKind, Table, Time};

use crate::engine::Lengths;
use crate::event::Event;
use crate::pending::{Pending, TaskRange};

pub use phase::PhaseState;

/// Running tasks that finished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) phase: PhaseId,
    pub(crate) count: u32,
    /// When they ended.
    pub(crate) at: Time,
    /// When that was reported.
    pub(crate) now: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct JobState {
    /// The number of jobs that it still waits for.
    blocked_by: u32,
    done: bool,
    /// Whether no further task of it starts, because it failed or waits for a job that did.
    dropped: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlowState {
    failed: bool,
    /// Jobs that are neither done nor dropped.
    jobs_left: u32,
    /// When its first task started.
    started: Option<Time>,
    /// The latest end of its tasks so far.
    end: Time,
}

/// The phases and slots of one kind.
#[derive(Clone, Debug, Default)]
struct KindState {
    /// Ready phases with tasks left.
    ready: BTreeSet<PhaseId>,
    /// The number of phases that want slots.
    wanting: u32,
    /// Ready phases that may have a guarantee.
    guaranteed: BTreeSet<PhaseId>,
    /// Slots that reduces hold while they wait for maps.
    waiting: u32,
    /// The number of slots on machines that are up.
    alive: u32,
}

/// The progress of all active flows: those that have arrived and not finished or failed.
#[derive(Clone, Debug, Default)]
pub struct State {
    phases: Table<PhaseId, PhaseState>,
    jobs: Table<JobId, JobState>,
    flows: Table<FlowId, FlowState>,
    flows_left: usize,
    /// Flows with dropped jobs, which fail when nothing of them runs.
    failing: BTreeSet<FlowId>,
    /// Flows that finished or failed and were not taken yet.
    over: Vec<FlowId>,
    slowstart: f64,
    lengths: Lengths,
    /// Instant phases that became ready and are about to be done; empty between calls.
    passing: VecDeque<PhaseId>,
    /// By slot kind.
    kinds: [KindState; 2],
    /// Ready reduce phases whose maps are not all done.
    early: BTreeSet<PhaseId>,
    /// Phases that would be ready if the ApplicationMaster of their job were up.
    stopped: BTreeSet<PhaseId>,
    /// Whether jobs have to be submitted before their phases are ready.
    submits: bool,
    /// Jobs that are to be submitted now; empty between calls of the ledger.
    to_submit: Vec<JobId>,
    /// The ranks of early reduces at the last call of [`State::drain_touched`].
    bar: [(u32, u32); 2],
    tasks_done: u64,
    /// Whether some task reached the limit on attempt numbers.
    hopeless: bool,
    /// Phases whose numbers changed since [`State::drain_touched`].
    touched: Vec<PhaseId>,
}

impl State {
    /// The state before any arrival. Reduces may take slots when `slowstart` of their job's maps are done.
    ///
    /// # Panics
    /// If `slowstart` is not in `0..=1`.
    pub fn new(cluster: &Cluster, slowstart: f64) -> Self {
        assert!((0.0..=1.0).contains(&slowstart), "slow-start {slowstart} is not a fraction");
        let mut kinds = [KindState::default(), KindState::default()];
        for &slot_kind in cluster.slot_kinds() {
            kinds[slot_kind.index()].alive = cluster.slots(slot_kind);
        }
        Self { slowstart, kinds, ..Self::default() }
    }

    /// The same for an engine with this meaning of task durations.
    #[must_use]
    pub(crate) fn with_lengths(mut self, lengths: Lengths) -> Self {
        self.lengths = lengths;
        self
    }

    /// The same, with or without submission of jobs.
    #[must_use]
    pub(crate) fn with_submission(mut self, submits: bool) -> Self {
        self.submits = submits;
        self
    }

    /// Whether a phase is done as soon as it is ready and never holds a slot: it has no length, and the
    /// engine knows durations. A reduce phase of this kind is ready when all maps are done, regardless of
    /// slow-start.
    pub fn is_instant(&self, instance: &Instance, phase: PhaseId) -> bool {
        self.lengths == Lengths::Known && instance.phase(phase).is_without_length()
    }

    /// The progress of a phase.
    ///
    /// # Panics
    /// If its flow has not arrived, or finished or failed before this instant.
    #[inline]
    pub fn phase(&self, phase: PhaseId) -> &PhaseState {
        &self.phases[phase]
    }

    /// Whether a phase is known: its flow has arrived and did not finish or fail before this instant.
    #[inline]
    pub fn knows(&self, phase: PhaseId) -> bool {
        self.phases.contains(phase)
    }

    /// Whether a flow is known: it has arrived and did not finish or fail before this instant.
    #[inline]
    pub fn knows_flow(&self, flow: FlowId) -> bool {
        self.flows.contains(flow)
    }

    /// For each slot kind, whether a phase wants slots. Without one, free slots have no use.
    pub(crate) fn wants_slots(&self) -> [bool; 2] {
        self.kinds.each_ref().map(|kind| kind.wanting > 0)
    }

    /// Changes a phase, and counts whether it wants slots.
    fn change(&mut self, instance: &Instance, phase: PhaseId, change: impl FnOnce(&mut PhaseState)) {
        let state = &mut self.phases[phase];
        let before = state.wants_slots();
        change(state);
        let after = state.wants_slots();
        if before != after {
            let wanting = &mut self.kinds[instance.slot_kind_of(phase).index()].wanting;
            *wanting = if after { *wanting + 1 } else { *wanting - 1 };
        }
    }

    /// Ready phases that have tasks left (running ones included), in the order of their ids.
    pub fn ready(&self, slot_kind: SlotKind) -> impl Iterator<Item = PhaseId> + '_ {
        self.kinds[slot_kind.index()].ready.iter().copied()
    }

    /// How many ready phases have tasks left.
    pub fn n_ready(&self, slot_kind: SlotKind) -> usize {
        self.kinds[slot_kind.index()].ready.len()
    }

    /// The ready phases that may have a guarantee, of their own or of their pool: few of many.
    pub fn guaranteed(&self, slot_kind: SlotKind) -> impl Iterator<Item = PhaseId> + '_ {
        self.kinds[slot_kind.index()].guaranteed.iter().copied()
    }

    /// Whether a job is done.
    pub fn is_job_done(&self, job: JobId) -> bool {
        self.jobs[job].done
    }

    /// Whether a flow failed.
    pub fn has_failed(&self, flow: FlowId) -> bool {
        self.flows[flow].failed
    }

    /// When a flow completed, if it did.
    pub fn completion(&self, flow: FlowId) -> Option<Time> {
        let state = &self.flows[flow];
        let is_done = state.jobs_left == 0 && !state.failed && !self.failing.contains(&flow);
        is_done.then_some(state.end)
    }

    /// When the first task of a flow started, if one did.
    pub fn started(&self, flow: FlowId) -> Option<Time> {
        self.flows[flow].started
    }

    /// The number of flows that arrived and neither completed nor failed.
    pub fn flows_left(&self) -> usize {
        self.flows_left
    }

    /// Whether some task has had 65,536 attempts without success, so that a retry makes no sense.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.hopeless
    }

    /// Slots of `slot_kind` on machines that are up, except those that ApplicationMasters hold.
    pub fn alive(&self, slot_kind: SlotKind) -> u32 {
        self.kinds[slot_kind.index()].alive
    }

    /// Slots of `slot_kind` held by reduces that wait for maps.
    pub fn waiting(&self, slot_kind: SlotKind) -> u32 {
        self.kinds[slot_kind.index()].waiting
    }

    /// Task attempts that finished so far, lost ones included.
    pub fn tasks_done(&self) -> u64 {
        self.tasks_done
    }

    /// Whether tasks of `phase` wait for a slot, or for the ApplicationMaster of their job.
    pub(crate) fn waits_for_slots(&self, phase: PhaseId) -> bool {
        self.stopped.contains(&phase) || self.kinds.iter().any(|kind| kind.ready.contains(&phase))
    }

    /// Whether some ready phase is early ([`State::is_early`]).
    pub fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    /// Whether `phase` is a reduce phase whose maps are not all done.
    pub fn is_early(&self, instance: &Instance, phase: PhaseId) -> bool {
        self.waits_for_maps(instance, instance.phase(phase))
    }

    /// Whether `phase` is a reduce phase whose maps are not all done.
    fn waits_for_maps(&self, instance: &Instance, phase: &Phase) -> bool {
        phase.kind == PhaseKind::Reduce
            && instance.job(phase.job).map.is_some_and(|map| !self.phases[map].is_done())
    }

    /// The number of tasks of `phase` that could start now; see [`crate::View::runnable`].
    pub fn runnable(&self, instance: &Instance, phase: PhaseId) -> u32 {
        let state = &self.phases[phase];
        if !state.ready || state.unstarted == 0 {
            return 0;
        }
        let info = instance.phase(phase);
        let room = state.unstarted.min(info.cap.saturating_sub(state.running));
        if info.kind == PhaseKind::Map
            || instance.cluster().is_map_reduce()
            || !self.waits_for_maps(instance, info)
        {
            return room;
        }
        // One generic slot must stay free of waiting reduces, or their maps cannot run.
        let slot_kind = SlotKind::Any.index();
        room.min(self.kinds[slot_kind].alive.saturating_sub(1 + self.kinds[slot_kind].waiting))
    }

    /// Adds phases whose numbers changed since the last call, at least once each, to `to`. If the bar for
    /// early reduces changed, adds all ready ones.
    pub(crate) fn drain_touched(&mut self, to: &mut Vec<PhaseId>) {
        to.append(&mut self.touched);
        let bar = self.kinds.each_ref().map(|kind| (kind.waiting, kind.alive));
        if std::mem::replace(&mut self.bar, bar) != bar {
            to.extend(&self.early);
        }
    }

    pub(crate) fn clear_touched(&mut self) {
        self.touched.clear();
    }

    pub(crate) fn arrive(&mut self, instance: &Instance, flow: FlowId, now: Time, events: &mut Vec<Event>) {
        let info = instance.flow(flow);
        for phase in info.phases() {
            let tasks = instance.phase(phase).tasks().expect("invariant: flows are cut before they arrive");
            let total = tasks.count();
            let pending = Pending::all(total);
            let state = PhaseState { total, unstarted: total, pending, ..PhaseState::default() };
            self.phases.insert(phase, state);
        }
        for job in info.jobs() {
            let blocked_by = instance.job(job).after.len() as u32;
            self.jobs.insert(job, JobState { blocked_by, ..JobState::default() });
        }
        let jobs_left = info.jobs().len() as u32;
        self.flows.insert(flow, FlowState { jobs_left, ..FlowState::default() });
        self.flows_left += 1;
        events.push(Event::FlowArrived(flow));
        for job in instance.flow(flow).jobs() {
            if self.jobs[job].blocked_by == 0 {
                self.open_job(instance, job, now, events);
            }
        }
        self.pass_instants(instance, now, events);
    }

    /// Flows that finished or failed since the last call.
    pub(crate) fn take_over(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.over)
    }

    /// Forgets a flow that finished or failed.
    pub(crate) fn retire(&mut self, instance: &Instance, flow: FlowId) {
        for phase in instance.flow(flow).phases() {
            self.phases.remove(phase);
            self.stopped.remove(&phase);
        }
        for job in instance.flow(flow).jobs() {
            self.jobs.remove(job);
        }
        self.flows.remove(flow);
    }

    /// A job may start. It is submitted first if jobs are submitted and some of its tasks have to run.
    fn open_job(&mut self, instance: &Instance, job: JobId, now: Time, events: &mut Vec<Event>) {
        if self.submits && instance.job(job).phases().any(|phase| !self.is_instant(instance, phase)) {
            self.to_submit.push(job);
        } else {
            self.open_phases(instance, job, now, events);
        }
    }

    /// Jobs to be submitted.
    pub(crate) fn take_to_submit(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.to_submit)
    }

    /// A job was submitted: its phases are ready. A flow that failed meanwhile is not known any more.
    pub(crate) fn submitted(&mut self, instance: &Instance, job: JobId, now: Time, events: &mut Vec<Event>) {
        if self.jobs.contains(job) && !self.flows[instance.job(job).flow].failed {
            self.open_phases(instance, job, now, events);
            self.pass_instants(instance, now, events);
        }
    }

    /// A ready phase has to wait for the ApplicationMaster of its job.
    pub(crate) fn stop(&mut self, instance: &Instance, phase: PhaseId) {
        if self.phases[phase].ready {
            self.change(instance, phase, |state| state.ready = false);
            self.unlist(instance, phase);
            self.early.remove(&phase);
            self.stopped.insert(phase);
            self.touched.push(phase);
        }
    }

    /// A stopped phase is ready again, since its first readiness. The phases of a finished flow are never
    /// stopped.
    pub(crate) fn resume(&mut self, instance: &Instance, phase: PhaseId, now: Time, events: &mut Vec<Event>) {
        if self.stopped.remove(&phase) {
            let since = self.phases[phase].ready_since;
            self.set_ready(instance, phase, now, events);
            self.phases[phase].ready_since = since;
        }
    }

    fn open_phases(&mut self, instance: &Instance, job: JobId, now: Time, events: &mut Vec<Event>) {
        let info = instance.job(job);
        if let Some(map) = info.map {
            self.set_ready(instance, map, now, events);
        }
        self.open_reduce(instance, job, now, events);
    }

    /// Makes a job's reduce phase ready if enough maps are done.
    fn open_reduce(&mut self, instance: &Instance, job: JobId, now: Time, events: &mut Vec<Event>) {
        let info = instance.job(job);
        let Some(reduce) = info.reduce else { return };
        if self.phases[reduce].ready || self.phases[reduce].is_done() || self.jobs[job].dropped {
            return;
        }
        let needed = |map: PhaseId| {
            if self.is_instant(instance, reduce) { self.phases[map].total } else { self.maps_needed(map) }
        };
        if info.map.is_none_or(|map| self.phases[map].done >= needed(map)) {
            self.set_ready(instance, reduce, now, events);
        }
    }

    /// The number of maps of a phase that must be done before the reduces of its job may take slots.
    pub fn maps_needed(&self, map: PhaseId) -> u32 {
        let total = self.phases[map].total;
        if self.slowstart >= 1.0 {
            return total;
        }
        // Slightly lower, so that 0.07 of 100 is 7 although the product is above 7 in floating point.
        (self.slowstart * f64::from(total) * (1.0 - 1e-9)).ceil() as u32
    }

    fn set_ready(&mut self, instance: &Instance, phase: PhaseId, now: Time, events: &mut Vec<Event>) {
        if self.is_instant(instance, phase) {
            self.passing.push_back(phase);
            return;
        }
        self.change(instance, phase, |state| (state.ready, state.ready_since) = (true, now));
        self.list(instance, phase);
        if self.is_early(instance, phase) {
            self.early.insert(phase);
        }
        self.touched.push(phase);
        events.push(Event::PhaseReady(phase));
    }

    /// Adds a phase to the lists of ready phases.
    fn list(&mut self, instance: &Instance, phase: PhaseId) {
        let slot_kind = instance.slot_kind_of(phase).index();
        self.kinds[slot_kind].ready.insert(phase);
        let has_pool = instance.flow(instance.flow_of(phase)).pool.is_some();
        if has_pool || instance.phase(phase).min_slots > 0 {
            self.kinds[slot_kind].guaranteed.insert(phase);
        }
    }

    /// Removes a phase from the lists of ready phases.
    fn unlist(&mut self, instance: &Instance, phase: PhaseId) {
        let slot_kind = instance.slot_kind_of(phase).index();
        self.kinds[slot_kind].ready.remove(&phase);
        self.kinds[slot_kind].guaranteed.remove(&phase);
    }

    /// Takes up to `most` consecutive tasks to start, the lowest first; they then count as running.
    pub(crate) fn take(&mut self, instance: &Instance, phase: PhaseId, most: u32) -> TaskRange {
        let taken = self.next_pending(phase, most);
        self.take_exactly(instance, phase, taken);
        taken
    }

    /// The lowest tasks to start, up to `most` consecutive ones; there must be at least one.
    pub(crate) fn next_pending(&self, phase: PhaseId, most: u32) -> TaskRange {
        let first = self.phases[phase].pending.first();
        let first = first.expect("invariant: a runnable phase has tasks to start");
        TaskRange { count: first.count.min(most), ..first }
    }

    /// Up to `most` tasks from `task` on that still have to start and have the same attempt number.
    pub(crate) fn pending_at(&self, phase: PhaseId, task: u32, most: u32) -> Option<TaskRange> {
        self.phases[phase].pending.at(task, most)
    }

    /// The first pending tasks among the `count` from `first` on, with one attempt number.
    pub(crate) fn pending_within(&self, phase: PhaseId, first: u32, count: u32) -> Option<TaskRange> {
        self.phases[phase].pending.within(first, count)
    }

    /// Takes exactly these tasks to start; they must be pending, with one attempt number.
    pub(crate) fn take_exactly(&mut self, instance: &Instance, phase: PhaseId, take: TaskRange) {
        let info = instance.phase(phase);
        let early = self.waits_for_maps(instance, info);
        self.change(instance, phase, |state| {
            state.pending.take(take);
            state.unstarted -= take.count;
            state.running += take.count;
            state.waiting += if early { take.count } else { 0 };
        });
        if early {
            self.kinds[instance.cluster().slot_kind_of(info.kind).index()].waiting += take.count;
        }
        self.touched.push(phase);
    }

    /// Handles finished tasks. The consequences become events.
    pub(crate) fn finish(&mut self, instance: &Instance, finished: Finished, events: &mut Vec<Event>) {
        let Finished { phase, count, at, now } = finished;
        let info = instance.phase(phase);
        let job = info.job;
        let flow = &mut self.flows[info.flow];
        flow.end = flow.end.max(at);
        let early = self.waits_for_maps(instance, info);
        let state = &mut self.phases[phase];
        if early {
            // The reduce ended before the map output was lost, but its report arrives only now.
            state.waiting -= count;
            self.kinds[instance.slot_kind_of(phase).index()].waiting -= count;
        }
        state.running -= count;
        state.done += count;
        state.last_end = state.last_end.max(at);
        self.tasks_done += u64::from(count);
        self.touched.push(phase);
        let done = state.is_done();
        // Without early reduces, reduces wait for the last map.
        if info.kind == PhaseKind::Map && (done || self.slowstart < 1.0) {
            self.open_reduce(instance, job, now, events);
        }
        if done {
            self.finish_phase(instance, phase, now, events);
        }
        self.pass_instants(instance, now, events);
    }

    /// Instant phases that became ready are done, and so are the instant phases that follow them. A loop,
    /// because a chain of them may be as long as a flow.
    fn pass_instants(&mut self, instance: &Instance, now: Time, events: &mut Vec<Event>) {
        while let Some(phase) = self.passing.pop_front() {
            let at = self.followed(instance, phase);
            let info = instance.phase(phase);
            let flow = &mut self.flows[info.flow];
            flow.end = flow.end.max(at);
            let state = &mut self.phases[phase];
            (state.unstarted, state.done, state.last_end) = (0, state.total, at);
            state.pending.clear();
            self.touched.push(phase);
            if info.kind == PhaseKind::Map {
                self.open_reduce(instance, info.job, now, events);
            }
            self.finish_phase(instance, phase, now, events);
        }
    }

    /// When all predecessors of a phase had ended; the reports may have come later. O(predecessors).
    fn followed(&self, instance: &Instance, phase: PhaseId) -> Time {
        let info = instance.phase(phase);
        let job = instance.job(info.job);
        let maps = job.map.filter(|_| info.kind == PhaseKind::Reduce);
        let before = job.after.iter().flat_map(|&before| instance.job(before).phases()).chain(maps);
        before.map(|before| self.phases[before].last_end).fold(instance.flow(job.flow).release, Time::max)
    }

    fn finish_phase(&mut self, instance: &Instance, phase: PhaseId, now: Time, events: &mut Vec<Event>) {
        events.push(Event::PhaseDone(phase));
        self.phases[phase].ready = false;
        self.unlist(instance, phase);
        let job = instance.phase(phase).job;
        if let Some(reduce) = instance.job(job).reduce
            && reduce != phase
        {
            self.early.remove(&reduce);
            self.touched.push(reduce);
        }
        if !self.jobs[job].done && instance.job(job).phases().all(|p| self.phases[p].is_done()) {
            self.finish_job(instance, job, now, events);
        }
    }

    fn finish_job(&mut self, instance: &Instance, job: JobId, now: Time, events: &mut Vec<Event>) {
        self.jobs[job].done = true;
        events.push(Event::JobDone(job));
        if self.jobs[job].dropped {
            return;
        }
        let info = instance.job(job);
        for &next in &info.before {
            self.jobs[next].blocked_by -= 1;
            if self.jobs[next].blocked_by == 0 {
                self.open_job(instance, next, now, events);
            }
        }
        let flow = &mut self.flows[info.flow];
        flow.jobs_left -= 1;
        if flow.jobs_left == 0 && !self.failing.contains(&info.flow) {
            self.flows_left -= 1;
            self.over.push(info.flow);
            events.push(Event::FlowDone(info.flow));
        }
    }

    /// The waiting reduces of a phase compute from now on.
    pub(crate) fn release(&mut self, instance: &Instance, reduce: PhaseId) {
        let waiting = std::mem::take(&mut self.phases[reduce].waiting);
        self.kinds[instance.slot_kind_of(reduce).index()].waiting -= waiting;
    }

    /// The running reduces of a phase wait again, because map output was lost.
    pub(crate) fn hold(&mut self, instance: &Instance, reduce: PhaseId) {
        let state = &mut self.phases[reduce];
        let more = state.running - state.waiting;
        state.waiting += more;
        self.kinds[instance.slot_kind_of(reduce).index()].waiting += more;
    }

    /// Running tasks were killed and must run again.
    pub(crate) fn kill(
        &mut self,
        instance: &Instance,
        phase: PhaseId,
        tasks: TaskRange,
        events: &mut Vec<Event>,
    ) {
        let early = self.is_early(instance, phase);
        let state = &mut self.phases[phase];
        state.running -= tasks.count;
        if early {
            state.waiting -= tasks.count;
            self.kinds[instance.slot_kind_of(phase).index()].waiting -= tasks.count;
        }
        self.again(instance, phase, tasks, events);
    }

    /// The output of finished maps was lost; they must run again, and their reduces may have to stop.
    pub(crate) fn lose(
        &mut self,
        instance: &Instance,
        map: PhaseId,
        tasks: TaskRange,
        now: Time,
        events: &mut Vec<Event>,
    ) {
        let failed = self.flows[instance.flow_of(map)].failed;
        self.phases[map].done -= tasks.count;
        if !self.phases[map].ready && !failed {
            self.change(instance, map, |state| (state.ready, state.ready_since) = (true, now));
            self.list(instance, map);
            events.push(Event::PhaseReady(map));
        }
        self.again(instance, map, tasks, events);
        let Some(reduce) = instance.job(instance.phase(map).job).reduce else { return };
        if self.phases[map].done < self.maps_needed(map) && self.phases[reduce].ready {
            self.change(instance, reduce, |state| state.ready = false);
            self.unlist(instance, reduce);
            self.early.remove(&reduce);
        } else if self.phases[reduce].ready {
            self.early.insert(reduce);
        }
        self.touched.push(reduce);
    }

    fn again(&mut self, instance: &Instance, phase: PhaseId, tasks: TaskRange, events: &mut Vec<Event>) {
        let attempt = tasks.attempt.checked_add(1).unwrap_or_else(|| {
            self.hopeless = true;
            u16::MAX
        });
        self.change(instance, phase, |state| {
            state.unstarted += tasks.count;
            state.pending.insert(TaskRange { attempt, ..tasks });
        });
        self.touched.push(phase);
        events.push(Event::TasksLost { phase, count: tasks.count });
    }

    /// Records the start of a task of a flow.
    pub(crate) fn note_start(&mut self, flow: FlowId, at: Time) {
        let started = &mut self.flows[flow].started;
        *started = Some(started.map_or(at, |before| before.min(at)));
    }

    /// Slots of a slot kind went down or came up with their machine, or an ApplicationMaster took or left
    /// one.
    pub(crate) fn set_alive(&mut self, slot_kind: SlotKind, slots: u32) {
        self.kinds[slot_kind.index()].alive = slots;
    }
}

#[cfg(test)]
mod tests;
