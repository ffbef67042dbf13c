//! Algorithm 1: list scheduling on machines of different speed with release times.
//!
//! The jobs come in the order of the list; of each the maps, then the reduces, the largest task first;
//! every task goes where it ends earliest. A slot is a machine of its own. Idle time before reduces and
//! releases follows without further steps, because a slot's time only ever moves on.
//!
//! Among slots of one speed the earliest end is wanted of the slot that is free last but in time: as good
//! as any for this task, and it wastes the least. So each speed class is one ordered set, and equal tasks
//! in a run share the look at the classes: O(log slots + classes) per task.
//!
//! **Deviations**: the paper leaves ties open; here equal ends go to the slower class, then to the slot
//! that idles least, then to the lower number. A phase with a cap below its tasks is held to it: each
//! of its tasks then also waits for the task `cap` places before it to end.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use slackline_model::{PhaseId, Span, Time};

/// Consecutive tasks of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First task.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Size: time at speed 1.
    pub span: Span,
}

/// Tasks of a phase to be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Which phase.
    pub id: PhaseId,
    /// Index of the lane that serves it.
    pub lane: usize,
    /// Most tasks at a time.
    pub cap: u32,
    /// When tasks of it that run already will end.
    pub running: Vec<Time>,
    /// Tasks to place.
    pub runs: Vec<Run>,
}

impl Phase {
    /// Sorts the runs, the largest tasks first; ties by number.
    pub fn sort(&mut self) {
        self.runs.sort_by_key(|run| (Reverse(run.span), run.first));
    }

    /// How many tasks there are to place.
    pub fn count(&self) -> u32 {
        self.runs.iter().map(|run| run.count).sum()
    }
}

/// A job on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// When its first phase may start.
    pub ready: Time,
    /// Its phases, in the order in which they run.
    pub phases: Vec<Phase>,
}

/// Where and when a task is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The phase.
    pub phase: PhaseId,
    /// The task.
    pub task: u32,
    /// Its size.
    pub span: Span,
    /// The slot, of the lane that serves the phase.
    pub slot: u32,
    /// When it could have started had a slot been free.
    pub ready: Time,
    /// From.
    pub start: Time,
    /// To.
    pub end: Time,
}

/// A slot that takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Its number in its lane.
    pub number: u32,
    /// Its speed.
    pub speed: f64,
    /// When it is free.
    pub free: Time,
}

/// Slots of one speed.
#[derive(Clone, Debug)]
struct Class {
    speed: f64,
    /// t_l and number of each slot.
    free: BTreeSet<Free>,
}

/// When a slot is free, and its number, in one word, so that it is compared in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Free(u128);

impl Free {
    fn new(time: Time, slot: u32) -> Self {
        Self(u128::from(time.0) << 32 | u128::from(slot))
    }

    fn time(self) -> Time {
        Time((self.0 >> 32) as u64)
    }

    fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// Where a task would run on a class.
#[derive(Clone, Copy)]
struct Candidate {
    end: Time,
    start: Time,
    free: Free,
}

impl Class {
    fn candidate(&self, ready: Time, span: Span) -> Option<Candidate> {
        let in_time = self.free.range(..=Free::new(ready, u32::MAX)).next_back();
        let &free = in_time.or_else(|| self.free.first())?;
        let start = free.time().max(ready);
        Some(Candidate { end: start + span.at_speed_nearest(self.speed), start, free })
    }
}

/// t_l of every slot, by lane and speed.
#[derive(Clone, Debug)]
pub struct List {
    /// The slowest class first, so that the first of equal ends is the slowest.
    lanes: [Vec<Class>; 2],
}

impl List {
    /// A list for these slots, by lane.
    pub fn new(slots: [Vec<Slot>; 2]) -> Self {
        let lane = |slots: Vec<Slot>| {
            let mut classes: Vec<(f64, Vec<Free>)> = Vec::new();
            for slot in slots {
                let at =
                    classes.binary_search_by(|class| class.0.total_cmp(&slot.speed)).unwrap_or_else(|at| {
                        classes.insert(at, (slot.speed, Vec::new()));
                        at
                    });
                classes[at].1.push(Free::new(slot.free, slot.number));
            }
            // All at once: several times faster than one by one.
            let class = |(speed, free): (f64, Vec<_>)| Class { speed, free: free.into_iter().collect() };
            classes.into_iter().map(class).collect()
        };
        Self { lanes: slots.map(lane) }
    }

    /// Places a job and reports every task; returns when the job ends, or `None` if a lane it needs has
    /// no slots (tasks of that lane are left out).
    pub fn place(&mut self, job: &Job, report: &mut impl FnMut(Placed)) -> Option<Time> {
        let (mut ready, mut complete) = (job.ready, true);
        for phase in &job.phases {
            // T^M of line 10: the reduces are ready when the last map ends.
            let end = self.place_phase(phase, ready, report);
            complete &= end.is_some();
            ready = ready.max(end.unwrap_or(ready));
        }
        complete.then_some(ready)
    }

    fn place_phase(&mut self, phase: &Phase, ready: Time, report: &mut impl FnMut(Placed)) -> Option<Time> {
        let classes = &mut self.lanes[phase.lane];
        let mut last = phase.running.iter().copied().fold(ready, Time::max);
        if phase.runs.is_empty() {
            return Some(last);
        }
        if classes.is_empty() {
            return None;
        }
        let mut room = Room::new(phase);
        for run in &phase.runs {
            let mut from = room.next(ready);
            let mut candidates = look(classes, from, run.span);
            for task in run.first..run.first + run.count {
                // Lines 6 and 13.
                let (at, best) = earliest(&candidates);
                let Candidate { start, end, free } = best;
                let slot = free.slot();
                classes[at].free.remove(&free);
                classes[at].free.insert(Free::new(end, slot));
                last = last.max(end);
                report(Placed { phase: phase.id, task, span: run.span, slot, ready: from, start, end });
                room.took(best.end);
                let next = room.next(ready);
                if next == from {
                    if let Some(again) = classes[at].candidate(from, run.span) {
                        candidates[at] = again;
                    }
                } else {
                    from = next;
                    candidates = look(classes, from, run.span);
                }
            }
        }
        Some(last)
    }
}

/// The best slot of every class; no class is ever empty.
fn look(classes: &[Class], ready: Time, span: Span) -> Vec<Candidate> {
    classes.iter().filter_map(|class| class.candidate(ready, span)).collect()
}

fn earliest(candidates: &[Candidate]) -> (usize, Candidate) {
    let mut best = (0, candidates[0]);
    for (at, candidate) in candidates.iter().enumerate().skip(1) {
        if candidate.end < best.1.end {
            best = (at, *candidate);
        }
    }
    best
}

/// The room a cap leaves: at most `cap` tasks of the phase overlap.
struct Room {
    /// Ends of the last `cap` tasks; `None` if the cap cannot bind.
    ends: Option<BinaryHeap<Reverse<Time>>>,
    cap: usize,
}

impl Room {
    fn new(phase: &Phase) -> Self {
        let binds = u64::from(phase.cap) < u64::from(phase.count()) + phase.running.len() as u64;
        let ends = binds.then(|| phase.running.iter().copied().map(Reverse).collect());
        Self { ends, cap: phase.cap as usize }
    }

    /// When the next task may start.
    fn next(&self, ready: Time) -> Time {
        match &self.ends {
            Some(ends) if ends.len() >= self.cap => ends.peek().map_or(ready, |end| ready.max(end.0)),
            _ => ready,
        }
    }

    /// A task was placed that ends then; it takes the place of the one that ended first.
    fn took(&mut self, end: Time) {
        if let Some(ends) = &mut self.ends {
            if ends.len() >= self.cap {
                ends.pop();
            }
            ends.push(Reverse(end));
        }
    }
}
