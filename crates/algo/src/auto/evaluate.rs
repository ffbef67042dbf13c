//! The rollout: the completions of active flows if slots are assigned in an order and nothing else arrives.
//!
//! A list scheduler task by task, in whole microseconds, that equals the driver, the assignment layer and the
//! simulator under a policy of priorities. At each instant all batches that end then end, and the following
//! phases become ready. Then the free slots of each kind go to the first phase in the order that can use
//! them, as many as it can and wants, the fastest first. Equal tasks that start together are one batch, so
//! the cost depends on batches, not on tasks: O(log) each. Nothing is allocated after the first rollout of a
//! size.
//!
//! It covers kinds of slots, speeds, caps, tasks of unequal length if lengths are known, phases without
//! length, reduces that take slots early, running tasks, absent machines, slots reserved from long tasks,
//! flows that go first because of their waiting limit, and announced flows. It leaves out heartbeats,
//! locality, start-up costs, ApplicationMasters, minima, failures and unknown flows.

use std::ops::Range;

use slackline_model::{FlowId, PhaseId, Span, Time};
use slackline_policy::View;

use super::positions::Positions;
use super::snapshot::{Arrival, End, FlowNow, JobNow, PhaseNow, RolloutState, Snapshot, Wait, slot_kinds};
use super::template::Template;
use crate::machines::{Faster, ahead, claim, willing};

/// The order in which slots are assigned.
#[derive(Clone, Copy, Debug)]
pub enum Sequence<'a> {
    /// Flow by flow, by their numbers in [`Evaluator::flows`]; each flow's phases by their tails.
    Flows(&'a [u32]),
    /// All phases by their tails, across flows.
    Tails,
}

/// Looks ahead from the present state.
#[derive(Clone, Debug, Default)]
pub struct Evaluator {
    snapshot: Snapshot,
    /// The phases by their tails, and those of each flow one after the other.
    by_tail: Vec<u32>,
    by_flow: Vec<u32>,
    /// Where the phases of each flow start in `by_flow`.
    begins: Vec<u32>,
    now: RolloutState,
    /// The position of each phase in the order, and the phase at each position: first those of flows with a
    /// limit, by their limits, then all of them in the evaluated order.
    place: Vec<u32>,
    at: Vec<u32>,
    /// The position in front of each phase of a flow with a limit, and the number of such positions.
    front: Vec<u32>,
    behind: usize,
    /// Positions of ready phases that have tasks to start, by slot kind.
    ready: [Positions; 2],
    /// Batches that end at this instant.
    due: Vec<End>,
    /// Phases without length that became ready and are about to be done.
    passing: Vec<u32>,
    completions: Vec<Time>,
    /// The number of finished flows.
    n_done: u32,
    /// The remembered rollout ([`Evaluator::remember`]).
    memory: Memory,
    batches: u64,
    /// The total number of phases at the start of all rollouts so far.
    set_up: u64,
}

/// A rollout at some of its instants, and when slots were first offered to each flow: other rollouts are
/// equal up to then.
#[derive(Clone, Debug, Default)]
struct Memory {
    is_recording: bool,
    /// By flow; the greatest time for a flow that was offered none.
    offered: Vec<Time>,
    points: Vec<Point>,
    /// The number of points of this rollout.
    n_points: usize,
    /// The interval between kept rollout states, in instants.
    every: u32,
    /// The number of instants of the longest rollout.
    instants: u32,
}

/// The state of a rollout before the assignment of slots at an instant.
#[derive(Clone, Debug, Default)]
struct Point {
    time: Time,
    now: RolloutState,
    n_done: u32,
}

/// The approximate number of points that are kept of a rollout.
const POINTS: u32 = 16;

/// The approximate number of calls of `stop` in a rollout.
const CHECKS: u32 = 8;

impl Evaluator {
    /// Takes a snapshot of the present state. `by_tail` has the phases of all active flows, the longest tail
    /// first. O(phases + running batches).
    pub fn look(&mut self, view: &View<'_>, by_tail: impl IntoIterator<Item = PhaseId>) {
        let Self { snapshot, by_tail: tails, .. } = self;
        snapshot.take(view);
        tails.clear();
        let is_left = |phase: &u32| snapshot.start.phases[*phase as usize].left > 0;
        tails.extend(by_tail.into_iter().filter_map(|phase| snapshot.number(phase, view)).filter(is_left));
        self.lay_out();
    }

    /// Starts from an empty cluster, with these flows at these times of arrival, in this order.
    pub(super) fn look_back<'a>(
        &mut self,
        view: &View<'_>,
        flows: impl Iterator<Item = (&'a Template, Time)>,
    ) {
        self.by_tail.clear();
        self.snapshot.take_empty(view);
        flows.for_each(|(template, at)| self.snapshot.add(template, at, &mut self.by_tail));
        self.snapshot.time = self.snapshot.arrivals.first().map_or(view.now, |first| first.at);
        self.lay_out();
    }

    /// Adds future flows with their times of arrival, in this order. They are numbered after the active
    /// flows.
    pub(super) fn announce<'a>(&mut self, flows: impl Iterator<Item = (&'a Template, Time)>) {
        flows.for_each(|(template, at)| self.snapshot.add(template, at, &mut self.by_tail));
        self.lay_out();
    }

    /// Keeps a share `rho` of each slot kind from tasks longer than `theta`.
    pub(super) fn reserve(&mut self, theta: Span, rho: f64) {
        self.snapshot.reserve(theta, rho);
    }

    /// The unstarted tasks of a flow take `factor` times as long.
    pub(super) fn stretch(&mut self, flow: usize, factor: f64) {
        self.snapshot.stretch(self.snapshot.phases_of(flow), factor);
    }

    /// Flows go first from these instants on, in this order; `limits` is sorted by instant.
    pub(super) fn limit(&mut self, limits: impl Iterator<Item = (Time, u32)>) {
        let Self { snapshot, at, front, behind, by_flow, begins, .. } = self;
        snapshot.limits.extend(limits);
        front.resize(snapshot.phases.len(), 0);
        for &(_, flow) in &snapshot.limits {
            for &phase in &by_flow[begins[flow as usize] as usize..begins[flow as usize + 1] as usize] {
                front[phase as usize] = at.len() as u32;
                at.push(phase);
            }
        }
        *behind = at.len();
    }

    /// Sorts the phases by flow, by counting.
    fn lay_out(&mut self) {
        let Self { snapshot, by_tail, by_flow, begins, at, front, behind, memory, .. } = self;
        (memory.n_points, memory.instants) = (0, 0);
        at.clear();
        front.clear();
        *behind = 0;
        let flow_of = |phase: u32| snapshot.jobs[snapshot.phases[phase as usize].job as usize].flow as usize;
        begins.clear();
        begins.resize(snapshot.n_flows() + 1, 0);
        for &phase in by_tail.iter() {
            begins[flow_of(phase) + 1] += 1;
        }
        (1..begins.len()).for_each(|flow| begins[flow] += begins[flow - 1]);
        by_flow.clear();
        by_flow.extend_from_slice(by_tail);
        by_flow.sort_by_key(|&phase| flow_of(phase));
    }

    /// The phases of a flow, as a range of `by_flow`.
    fn range_of(&self, flow: u32) -> Range<usize> {
        self.begins[flow as usize] as usize..self.begins[flow as usize + 1] as usize
    }

    /// The active flows; orders and completions use their numbers here.
    pub fn flows(&self) -> &[FlowId] {
        &self.snapshot.flows
    }

    /// The number of batches that all rollouts so far started.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// The work of all rollouts so far: one unit for each phase at its start and for each batch that it
    /// started. It is counted instead of timed, so that decisions limited by it are reproducible.
    pub(super) fn work(&self) -> u64 {
        self.set_up + self.batches
    }

    /// The active flows with their completions if slots are assigned in that order from now on, then the
    /// completions of announced flows. `None` if some flow would never complete, because no slot that could
    /// serve it is up. O(phases + batches · log batches).
    pub fn roll(&mut self, sequence: Sequence<'_>) -> Option<(&[FlowId], &[Time])> {
        self.roll_until(sequence, |_| false)
    }

    /// Like [`Self::roll`]; `None` also if `stop` returns true. It is called at intervals with the completion
    /// of each flow or, for an unfinished flow, the instant that the rollout has reached.
    pub(super) fn roll_until(
        &mut self,
        sequence: Sequence<'_>,
        stop: impl Fn(&[Time]) -> bool,
    ) -> Option<(&[FlowId], &[Time])> {
        self.run(sequence, None, stop)
    }

    /// Rolls out an order and remembers the states, for [`Evaluator::roll_near`].
    pub(super) fn remember(&mut self, order: &[u32]) {
        self.memory.every = self.memory.instants / POINTS + 1;
        self.memory.n_points = 0;
        self.memory.offered.clear();
        self.memory.offered.resize(self.snapshot.n_flows(), Time(u64::MAX));
        self.memory.is_recording = true;
        self.run(Sequence::Flows(order), None, |_| false);
        self.memory.is_recording = false;
    }

    /// Like [`Evaluator::roll_until`] with an order that differs from the remembered one only in these
    /// neighbouring flows. The states before slots are offered to one of them are equal.
    pub(super) fn roll_near(
        &mut self,
        order: &[u32],
        moved: &[u32],
        stop: impl Fn(&[Time]) -> bool,
    ) -> Option<(&[FlowId], &[Time])> {
        let Memory { offered, points, n_points, .. } = &self.memory;
        let first = moved.iter().map(|&flow| offered[flow as usize]).min().unwrap_or(Time::ZERO);
        let from = points[..*n_points].partition_point(|point| point.time <= first).checked_sub(1);
        self.run(Sequence::Flows(order), from, stop)
    }

    fn run(
        &mut self,
        sequence: Sequence<'_>,
        from: Option<usize>,
        stop: impl Fn(&[Time]) -> bool,
    ) -> Option<(&[FlowId], &[Time])> {
        let mut time = self.begin(sequence, from);
        let often = self.now.flows.len() as u32 / CHECKS + 1;
        let (mut next_check, mut instants) = (self.n_done + often, 0);
        loop {
            if self.memory.is_recording && instants % self.memory.every == 0 {
                self.keep_point(time);
            }
            instants += 1;
            for slot_kind in slot_kinds(self.snapshot.generic) {
                self.fill(slot_kind.index(), time);
            }
            let Some(next) = self.next_instant() else { break };
            time = next;
            // All of them first: tasks without length that start at this instant end after slots have been
            // assigned.
            let mut due = std::mem::take(&mut self.due);
            while self.now.ends.peek().is_some_and(|end| end.at == time) {
                due.extend(self.now.ends.pop());
            }
            due.drain(..).for_each(|end| self.finish(end));
            self.due = due;
            self.come(time);
            if self.n_done >= next_check {
                next_check = self.n_done + often;
                self.note_completions(time);
                if stop(&self.completions) {
                    return None;
                }
            }
        }
        self.memory.instants = self.memory.instants.max(instants);
        self.note_completions(time);
        let all_complete = self.now.flows.iter().all(|flow| flow.jobs_left == 0);
        all_complete.then_some((self.snapshot.live(), &self.completions))
    }

    fn keep_point(&mut self, time: Time) {
        let Self { memory, now, n_done, .. } = self;
        if memory.points.len() == memory.n_points {
            memory.points.push(Point::default());
        }
        let point = &mut memory.points[memory.n_points];
        memory.n_points += 1;
        (point.time, point.n_done) = (time, *n_done);
        point.now.copy(now);
    }

    fn note_completions(&mut self, now: Time) {
        let at = |flow: &FlowNow| if flow.jobs_left == 0 { flow.completion } else { now };
        self.completions.clear();
        self.completions.extend(self.now.flows.iter().map(at));
    }

    /// The next instant: tasks end, a flow arrives, or a flow reaches its waiting limit.
    fn next_instant(&mut self) -> Option<Time> {
        let Self { snapshot, now, .. } = self;
        let is_over = |&(_, flow): &(Time, u32)| now.flows[flow as usize].jobs_left == 0;
        while snapshot.limits.get(now.passed).is_some_and(is_over) {
            now.passed += 1;
        }
        let end = now.ends.peek().map(|end| end.at);
        let next = match (end, snapshot.arrivals.get(now.arrived)) {
            (Some(end), Some(arrival)) => end.min(arrival.at),
            (end, arrival) => end.or(arrival.map(|arrival| arrival.at))?,
        };
        Some(snapshot.limits.get(now.passed).map_or(next, |&(limit, _)| limit.min(next)))
    }

    /// Flows arrive, and flows that reached their waiting limit go first from now on.
    fn come(&mut self, time: Time) {
        while let Some(Arrival { at, opening }) = self.snapshot.arrivals.get(self.now.arrived)
            && *at <= time
        {
            self.now.arrived += 1;
            for at in opening.clone() {
                self.set_ready(self.snapshot.opening[at as usize]);
            }
        }
        while let Some(&(limit, flow)) = self.snapshot.limits.get(self.now.passed)
            && limit <= time
        {
            self.now.passed += 1;
            self.go_first(flow);
        }
    }

    /// A flow reached its waiting limit: its phases move to their positions in front.
    fn go_first(&mut self, flow: u32) {
        // The positions in front are in the order of limits.
        for &phase in &self.by_flow[self.range_of(flow)] {
            let slot_kind = usize::from(self.snapshot.phases[phase as usize].slot_kind);
            let (old, new) = (self.place[phase as usize], self.front[phase as usize]);
            self.place[phase as usize] = new;
            if self.ready[slot_kind].remove(old as usize) {
                self.ready[slot_kind].insert(new as usize);
            }
        }
    }

    /// Starts from the snapshot or, with `from`, from a remembered point. Returns the instant.
    fn begin(&mut self, sequence: Sequence<'_>, from: Option<usize>) -> Time {
        self.set_up += self.snapshot.phases.len() as u64;
        let Self { snapshot, now, place, at, ready, by_tail, by_flow, begins, behind, .. } = self;
        let point = from.map(|at| &self.memory.points[at]);
        now.copy(point.map_or(&snapshot.start, |point| &point.now));
        self.n_done = point.map_or(0, |point| point.n_done);
        at.truncate(*behind);
        match sequence {
            Sequence::Tails => at.extend_from_slice(by_tail),
            Sequence::Flows(order) => order.iter().for_each(|&flow| {
                let range = begins[flow as usize] as usize..begins[flow as usize + 1] as usize;
                at.extend_from_slice(&by_flow[range]);
            }),
        }
        place.resize(snapshot.phases.len(), 0);
        for ready in ready.iter_mut() {
            ready.clear(at.len());
        }
        for (k, &phase) in at.iter().enumerate().skip(*behind) {
            place[phase as usize] = k as u32;
            let PhaseNow { is_ready, unstarted, .. } = now.phases[phase as usize];
            if is_ready && unstarted > 0 {
                ready[usize::from(snapshot.phases[phase as usize].slot_kind)].insert(k);
            }
        }
        if let Some(time) = point.map(|point| point.time) {
            (0..self.now.passed).for_each(|at| self.go_first(self.snapshot.limits[at].1));
            return time;
        }
        let time = self.snapshot.time;
        self.come(time);
        time
    }

    /// Assigns the free slots of a kind.
    fn fill(&mut self, slot_kind: usize, time: Time) {
        let mut free: u32 = self.now.free[slot_kind].iter().sum();
        let is_mixed = self.snapshot.classes[slot_kind].len() > 1;
        let (mut from, mut claims) = (0, 0);
        while free > 0 {
            let Some(place) = self.ready[slot_kind].next(from) else { return };
            let phase = self.at[place];
            if self.memory.is_recording {
                let flow = self.snapshot.jobs[self.snapshot.phases[phase as usize].job as usize].flow;
                let offered = &mut self.memory.offered[flow as usize];
                *offered = time.min(*offered);
            }
            let room = self.room(phase, slot_kind);
            let mut count = room.min(free);
            while count > 0 {
                let n =
                    if is_mixed { count.min(self.willing(phase, slot_kind, time, claims)) } else { count };
                if n == 0 {
                    let unstarted = self.now.phases[phase as usize].unstarted;
                    claims += claim(unstarted, self.snapshot.phases[phase as usize].mean);
                    break;
                }
                self.launch(phase, n, time);
                (free, count) = (free - n, count - n);
            }
            // Barred reduces stay, since the bar may change; a phase at its cap comes back when a task ends.
            let PhaseNow { unstarted, running, .. } = self.now.phases[phase as usize];
            if unstarted == 0 || running >= self.snapshot.phases[phase as usize].cap {
                self.ready[slot_kind].remove(place);
            }
            from = place + 1;
        }
    }

    /// The number of tasks of a ready phase that may start.
    fn room(&self, phase: u32, slot_kind: usize) -> u32 {
        let PhaseNow { unstarted, running, .. } = self.now.phases[phase as usize];
        let fixed = &self.snapshot.phases[phase as usize];
        let mut room = unstarted.min(fixed.cap.saturating_sub(running));
        if fixed.is_long && !self.goes_first(phase) {
            room = room.min(self.snapshot.long_max[slot_kind].saturating_sub(self.now.long[slot_kind]));
        }
        if self.snapshot.generic && self.is_early(phase) {
            // One slot must stay free of waiting reduces, or their maps cannot run.
            return room.min(self.snapshot.alive[slot_kind].saturating_sub(1 + self.now.waiting[slot_kind]));
        }
        room
    }

    /// The number of tasks of a phase that should take the fastest free slots while its other tasks wait for
    /// faster slots; see [`crate::machines`].
    fn willing(&self, phase: u32, slot_kind: usize, time: Time, claims: u128) -> u32 {
        let (classes, free) = (&self.snapshot.classes[slot_kind], &self.now.free[slot_kind]);
        let Some(at) = free.iter().position(|&free| free > 0) else { return 0 };
        let (rest, free) = (self.now.phases[phase as usize].unstarted, free[at]);
        if at == 0 || self.is_early(phase) {
            return rest.min(free);
        }
        let mean = self.snapshot.phases[phase as usize].mean;
        let slow = mean.at_speed_nearest(classes[at].speed);
        let faster = |slots: u32, busy: Span, class: usize| {
            Faster { slots, busy, task: mean.at_speed_nearest(classes[class].speed) }.sooner(slow)
        };
        let capacity = classes[..at].iter().map(|class| f64::from(class.slots) * class.speed).sum::<f64>();
        let ahead = ahead(claims, capacity);
        let most: u64 = (0..at).map(|class| faster(classes[class].slots, ahead, class)).sum();
        if willing(rest, free, most) == free {
            return free;
        }
        let is_faster = |end: &End| {
            usize::from(self.snapshot.phases[end.phase as usize].slot_kind) == slot_kind
                && usize::from(end.class) < at
        };
        let busy = self.now.ends.iter().filter(|end| is_faster(end));
        let after = |end: &End| {
            let busy = Span(end.at.since(time).0.saturating_add(ahead.0));
            faster(end.count, busy, usize::from(end.class))
        };
        let sooner = busy.map(after).sum();
        willing(rest, free, sooner)
    }

    /// Whether the flow of a phase has reached its waiting limit.
    fn goes_first(&self, phase: u32) -> bool {
        (self.place[phase as usize] as usize) < self.behind
    }

    /// Whether a phase is a reduce phase whose maps are not all done.
    fn is_early(&self, phase: u32) -> bool {
        let maps = self.snapshot.phases[phase as usize].maps;
        maps.is_some_and(|maps| self.now.phases[maps as usize].left > 0)
    }

    fn launch(&mut self, phase: u32, count: u32, time: Time) {
        let early = self.is_early(phase);
        let Self { snapshot, now, .. } = self;
        let slot_kind = usize::from(snapshot.phases[phase as usize].slot_kind);
        let (mut left, mut class) = (count, 0);
        while left > 0 {
            let state = &mut now.phases[phase as usize];
            let (of_run, span) = snapshot.runs[state.run as usize];
            if state.used == of_run {
                (state.run, state.used) = (state.run + 1, 0);
                continue;
            }
            let free = &mut now.free[slot_kind][class];
            let n = left.min(of_run - state.used).min(*free);
            if n == 0 {
                class += 1;
                continue;
            }
            *free -= n;
            state.used += n;
            left -= n;
            self.batches += 1;
            if early {
                now.hold(phase, Wait { count: n, class: class as u16, span, next: None });
            } else {
                let at = time + span.at_speed_nearest(snapshot.classes[slot_kind][class].speed);
                now.ends.push(End { at, phase, count: n, class: class as u16 });
            }
        }
        let state = &mut now.phases[phase as usize];
        state.unstarted -= count;
        state.running += count;
        now.long[slot_kind] += if snapshot.phases[phase as usize].is_long { count } else { 0 };
        if early {
            now.waiting[slot_kind] += count;
        }
    }

    fn finish(&mut self, end: End) {
        let End { at, phase, count, class } = end;
        let fixed = &self.snapshot.phases[phase as usize];
        let slot_kind = usize::from(fixed.slot_kind);
        self.now.free[slot_kind][usize::from(class)] += count;
        self.now.long[slot_kind] -= if fixed.is_long { count } else { 0 };
        let state = &mut self.now.phases[phase as usize];
        state.running -= count;
        state.left -= count;
        if state.left == 0 {
            self.finish_phase(phase, at);
        } else {
            if state.unstarted > 0 {
                self.ready[slot_kind].insert(self.place[phase as usize] as usize);
            }
            if fixed.maps.is_none() && state.left <= fixed.opens_at {
                self.open_reduces(fixed.job);
            }
        }
        while let Some(phase) = self.passing.pop() {
            let state = &mut self.now.phases[phase as usize];
            (state.left, state.unstarted) = (0, 0);
            self.finish_phase(phase, at);
        }
    }

    fn finish_phase(&mut self, phase: u32, at: Time) {
        let fixed = &self.snapshot.phases[phase as usize];
        let job = fixed.job;
        self.now.phases[phase as usize].is_ready = false;
        if let Some(reduces) = self.snapshot.jobs[job as usize].reduce.filter(|&reduces| reduces != phase) {
            self.release(reduces, at);
            self.open_reduces(job);
        }
        let JobNow { phases_left, .. } = &mut self.now.jobs[job as usize];
        *phases_left -= 1;
        if *phases_left == 0 {
            self.finish_job(job, at);
        }
    }

    /// The last map is done: reduces that hold slots compute.
    fn release(&mut self, reduces: u32, at: Time) {
        let slot_kind = usize::from(self.snapshot.phases[reduces as usize].slot_kind);
        let mut next = self.now.phases[reduces as usize].waits.take();
        while let Some(wait) = next {
            let Wait { count, class, span, next: after } = self.now.waits[wait as usize];
            let took: Span =
                span.at_speed_nearest(self.snapshot.classes[slot_kind][usize::from(class)].speed);
            self.now.ends.push(End { at: at + took, phase: reduces, count, class });
            self.now.waiting[slot_kind] -= count;
            next = after;
        }
    }

    fn finish_job(&mut self, job: u32, at: Time) {
        let (flow, before) = {
            let job = &self.snapshot.jobs[job as usize];
            (job.flow as usize, job.before.clone())
        };
        for next in before {
            let next = self.snapshot.before[next as usize];
            let blocked_by = &mut self.now.jobs[next as usize].blocked_by;
            *blocked_by -= 1;
            if *blocked_by == 0 {
                if let Some(map) = self.snapshot.jobs[next as usize].map {
                    self.set_ready(map);
                }
                self.open_reduces(next);
            }
        }
        let flow = &mut self.now.flows[flow];
        flow.jobs_left -= 1;
        flow.completion = at;
        self.n_done += u32::from(flow.jobs_left == 0);
    }

    /// Makes the reduces of a job ready if they are not and enough maps are done.
    fn open_reduces(&mut self, job: u32) {
        let job = &self.snapshot.jobs[job as usize];
        let Some(reduces) = job.reduce else { return };
        let PhaseNow { is_ready, left, .. } = self.now.phases[reduces as usize];
        let opens = |map: u32| {
            let needs_all = self.snapshot.phases[reduces as usize].is_instant;
            let most = if needs_all { 0 } else { self.snapshot.phases[map as usize].opens_at };
            self.now.phases[map as usize].left <= most
        };
        if !is_ready && left > 0 && job.map.is_none_or(opens) {
            self.set_ready(reduces);
        }
    }

    fn set_ready(&mut self, phase: u32) {
        let fixed = &self.snapshot.phases[phase as usize];
        let state = &mut self.now.phases[phase as usize];
        state.is_ready = true;
        if fixed.is_instant {
            self.passing.push(phase);
        } else if state.unstarted > 0 {
            self.ready[usize::from(fixed.slot_kind)].insert(self.place[phase as usize] as usize);
        }
    }
}

#[cfg(test)]
mod tests;
