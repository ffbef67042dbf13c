//! The rollout: what becomes of the live flows if slots are given out in an order and nothing else arrives.
//!
//! A list scheduler task by task, in whole microseconds, that does what the driver, the assignment layer and the simulator
//! do under a policy of priorities: at each instant all batches that end there end, what follows becomes ready, and then
//! each lane's free slots go to the first phase in the order that can use them, as many as it can and wants, the fastest
//! first. Equal tasks that start together are one batch, so that its cost is that of batches and not of tasks: O(log) each.
//! Nothing is allocated after the first rollout of a size.
//!
//! It covers kinds of slots, speeds, caps, tasks of unlike length where they are known, phases without length, reduces that
//! take slots early, tasks that run already, and machines that are away. It leaves out heartbeats, locality, start-up costs,
//! masters of jobs, minima, failures and flows to come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::{FlowId, PhaseId, Span, Time};
use slackline_policy::View;

use crate::machines::{Faster, willing};

use super::positions::Positions;
use super::snapshot::{End, JobNow, Now, PhaseNow, Snapshot, Wait, lanes};

/// The order in which slots are given out.
#[derive(Clone, Copy, Debug)]
pub enum Sequence<'a> {
    /// Flow by flow, by their numbers in [`Evaluator::flows`]; each flow's phases by their tails.
    Flows(&'a [u32]),
    /// All phases by their tails, of whichever flow.
    Tails,
}

/// Looks ahead from what is there now.
#[derive(Clone, Debug, Default)]
pub struct Evaluator {
    snapshot: Snapshot,
    /// The phases by their tails, and those of each flow one after the other.
    by_tail: Vec<u32>,
    by_flow: Vec<u32>,
    /// Where in `by_flow` the phases of each flow begin.
    begins: Vec<u32>,
    now: Now,
    ends: BinaryHeap<Reverse<End>>,
    /// The place of each phase in the order, and the phase at each place.
    place: Vec<u32>,
    at: Vec<u32>,
    /// Places of ready phases that have tasks to start, by lane.
    ready: [Positions; 2],
    /// Batches that end at this instant.
    due: Vec<End>,
    /// Phases without length that became ready and are about to be done.
    passing: Vec<u32>,
    completions: Vec<Time>,
    batches: u64,
}

impl Evaluator {
    /// Looks at what is there now. `by_tail` has the phases of all live flows, the longest tail first.
    /// O(phases + batches that run).
    pub fn look(&mut self, view: &View<'_>, by_tail: impl IntoIterator<Item = PhaseId>) {
        self.snapshot.take(view);
        let Self { snapshot, by_tail: tails, by_flow, begins, .. } = self;
        tails.clear();
        let is_left = |phase: &u32| snapshot.start.phases[*phase as usize].left > 0;
        tails.extend(by_tail.into_iter().filter_map(|phase| snapshot.number(phase, view)).filter(is_left));
        let flow_of = |phase: u32| snapshot.jobs[snapshot.phases[phase as usize].job as usize].flow as usize;
        // Sorted by flow, as by counting: how many phases come before those of each flow.
        begins.clear();
        begins.resize(snapshot.flows.len() + 1, 0);
        for &phase in tails.iter() {
            begins[flow_of(phase) + 1] += 1;
        }
        (1..begins.len()).for_each(|flow| begins[flow] += begins[flow - 1]);
        by_flow.clear();
        by_flow.extend_from_slice(tails);
        by_flow.sort_by_key(|&phase| flow_of(phase));
    }

    /// The live flows; orders and completions are by their numbers here.
    pub fn flows(&self) -> &[FlowId] {
        &self.snapshot.flows
    }

    /// How many batches all rollouts so far started.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// The live flows and when each completes if slots are given out in that order from now on; `None` if some never would,
    /// as no slot that could serve them is up. O(phases + batches · log batches).
    pub fn roll(&mut self, sequence: Sequence<'_>) -> Option<(&[FlowId], &[Time])> {
        self.begin(sequence);
        let mut time = self.snapshot.time;
        loop {
            for lane in lanes(self.snapshot.universal) {
                self.fill(lane.index(), time);
            }
            let Some(&Reverse(End { at, .. })) = self.ends.peek() else { break };
            time = at;
            // All first: what begins at this instant and takes no time ends when slots have been given out.
            let mut due = std::mem::take(&mut self.due);
            while self.ends.peek().is_some_and(|&Reverse(end)| end.at == time) {
                due.extend(self.ends.pop().map(|Reverse(end)| end));
            }
            due.drain(..).for_each(|end| self.finish(end));
            self.due = due;
        }
        self.completions.clear();
        self.completions.extend(self.now.flows.iter().map(|flow| flow.completion));
        let all_complete = self.now.flows.iter().all(|flow| flow.jobs_left == 0);
        all_complete.then_some((&self.snapshot.flows, &self.completions))
    }

    fn begin(&mut self, sequence: Sequence<'_>) {
        let Self { snapshot, now, ends, place, at, ready, by_tail, by_flow, begins, .. } = self;
        now.copy(&snapshot.start);
        ends.clear();
        ends.extend(now.ends.iter().map(|&end| Reverse(end)));
        at.clear();
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
        for (k, &phase) in at.iter().enumerate() {
            place[phase as usize] = k as u32;
            let PhaseNow { is_ready, unstarted, .. } = now.phases[phase as usize];
            if is_ready && unstarted > 0 {
                ready[usize::from(snapshot.phases[phase as usize].lane)].insert(k);
            }
        }
    }

    /// Gives out the free slots of a lane.
    fn fill(&mut self, lane: usize, time: Time) {
        let mut free: u32 = self.now.free[lane].iter().sum();
        let is_mixed = self.snapshot.classes[lane].len() > 1;
        let mut from = 0;
        while free > 0 {
            let Some(place) = self.ready[lane].next(from) else { return };
            let phase = self.at[place];
            let room = self.room(phase, lane);
            let mut count = room.min(free);
            while count > 0 {
                let n = if is_mixed { count.min(self.willing(phase, lane, time)) } else { count };
                if n == 0 {
                    break;
                }
                self.launch(phase, n, time);
                (free, count) = (free - n, count - n);
            }
            // Barred reduces stay, as the bar may move; who is at its cap comes back when a task ends.
            let PhaseNow { unstarted, running, .. } = self.now.phases[phase as usize];
            if unstarted == 0 || running >= self.snapshot.phases[phase as usize].cap {
                self.ready[lane].remove(place);
            }
            from = place + 1;
        }
    }

    /// How many tasks of a ready phase may start.
    fn room(&self, phase: u32, lane: usize) -> u32 {
        let PhaseNow { unstarted, running, .. } = self.now.phases[phase as usize];
        let room = unstarted.min(self.snapshot.phases[phase as usize].cap.saturating_sub(running));
        if self.snapshot.universal && self.is_early(phase) {
            // One slot must stay free of waiting reduces, or the maps they wait for cannot run.
            return room.min(self.snapshot.alive[lane].saturating_sub(1 + self.now.waiting[lane]));
        }
        room
    }

    /// How many tasks of a phase want the fastest slots that are free, as [`crate::machines`] says.
    fn willing(&self, phase: u32, lane: usize, time: Time) -> u32 {
        let (classes, free) = (&self.snapshot.classes[lane], &self.now.free[lane]);
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
        let most: u64 = (0..at).map(|class| faster(classes[class].slots, Span::ZERO, class)).sum();
        if willing(rest, free, most) == free {
            return free;
        }
        let is_faster = |end: &End| {
            usize::from(self.snapshot.phases[end.phase as usize].lane) == lane && usize::from(end.class) < at
        };
        let busy = self.ends.iter().map(|&Reverse(end)| end).filter(is_faster);
        let sooner = busy.map(|end| faster(end.count, end.at.since(time), usize::from(end.class))).sum();
        willing(rest, free, sooner)
    }

    /// Whether it is a reduce phase whose maps are not all done.
    fn is_early(&self, phase: u32) -> bool {
        let maps = self.snapshot.phases[phase as usize].maps;
        maps.is_some_and(|maps| self.now.phases[maps as usize].left > 0)
    }

    fn launch(&mut self, phase: u32, count: u32, time: Time) {
        let early = self.is_early(phase);
        let Self { snapshot, now, ends, .. } = self;
        let lane = usize::from(snapshot.phases[phase as usize].lane);
        let (mut left, mut class) = (count, 0);
        while left > 0 {
            let state = &mut now.phases[phase as usize];
            let (of_run, span) = snapshot.runs[state.run as usize];
            if state.used == of_run {
                (state.run, state.used) = (state.run + 1, 0);
                continue;
            }
            let free = &mut now.free[lane][class];
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
                let at = time + span.at_speed_nearest(snapshot.classes[lane][class].speed);
                ends.push(Reverse(End { at, phase, count: n, class: class as u16 }));
            }
        }
        let state = &mut now.phases[phase as usize];
        state.unstarted -= count;
        state.running += count;
        if early {
            now.waiting[lane] += count;
        }
    }

    /// Tasks end.
    fn finish(&mut self, end: End) {
        let End { at, phase, count, class } = end;
        let fixed = &self.snapshot.phases[phase as usize];
        let lane = usize::from(fixed.lane);
        self.now.free[lane][usize::from(class)] += count;
        let state = &mut self.now.phases[phase as usize];
        state.running -= count;
        state.left -= count;
        if state.left == 0 {
            self.finish_phase(phase, at);
        } else {
            if state.unstarted > 0 {
                self.ready[lane].insert(self.place[phase as usize] as usize);
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
        let lane = usize::from(self.snapshot.phases[reduces as usize].lane);
        let mut next = self.now.phases[reduces as usize].waits.take();
        while let Some(wait) = next {
            let Wait { count, class, span, next: after } = self.now.waits[wait as usize];
            let took: Span = span.at_speed_nearest(self.snapshot.classes[lane][usize::from(class)].speed);
            self.ends.push(Reverse(End { at: at + took, phase: reduces, count, class }));
            self.now.waiting[lane] -= count;
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
            self.ready[usize::from(fixed.lane)].insert(self.place[phase as usize] as usize);
        }
    }
}
