//! Algorithm 1: list scheduling on machines of different speed with release times.
//!
//! The jobs come in the order of the list; of each the maps, then the reduces, the largest task first;
//! every task goes where it ends earliest. Each slot is one machine. Idle time before reduces and
//! releases follows without further steps, because a slot's time only ever moves on.
//!
//! Among slots of one speed the earliest end is wanted of the slot that is free last but in time: as good as
//! any for this task, and it wastes the least. So each speed class is kept in order, and equal tasks in a run
//! share the look at the classes: O(log slots + classes) per task. A list is placed as far as it is wanted
//! ([`List::go_on`]): what is placed later is placed as if it had been placed at once.
//!
//! **Deviations**: the paper leaves ties open; here equal ends go to the slower class, then to the slot
//! that idles least, then to the lower number. A phase with a cap below its tasks is held to it: each
//! of its tasks then also waits for the task `cap` places before it to end.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use slackline_model::{PhaseId, Span, Time};

pub use crate::estimated::Run;

/// Tasks of a phase to be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    pub id: PhaseId,
    /// Index of the slot kind that serves it.
    pub slot_kind: usize,
    /// Most tasks at a time.
    pub cap: u32,
    /// When tasks of it that run already will end, and how many then.
    pub running: Vec<(Time, u32)>,
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
    pub phase: PhaseId,
    pub task: u32,
    pub span: Span,
    /// The slot, of the slot kind that serves the phase.
    pub slot: u32,
    /// When it could have started had a slot been free.
    pub ready: Time,
    pub start: Time,
    pub end: Time,
}

/// A slot that takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Its number in its slot kind.
    pub number: u32,
    pub speed: f64,
    /// When it is free.
    pub free: Time,
}

/// Slots of one speed.
#[derive(Clone, Debug)]
struct Class {
    speed: f64,
    /// t_l and number of slots that nothing was placed on, which are most of them.
    untouched: Untouched,
    /// The same of the others.
    placed: BTreeSet<Free>,
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

/// Slots in order, from which some are taken: a sorted list, and for each place where to look on for the last
/// slot before it that is left (a forest with path halving). To make one of a sorted list is many times
/// faster than an ordered set, and each new list needs one.
#[derive(Clone, Debug)]
struct Untouched {
    slots: Vec<Free>,
    /// By one more than the place: itself, if the slot there is left; 0 for none.
    before: Vec<u32>,
    /// No slot before this place is left.
    first: usize,
}

impl Untouched {
    fn new(mut slots: Vec<Free>) -> Self {
        if !slots.is_sorted() {
            slots.sort_unstable();
        }
        let before = (0..=slots.len() as u32).collect();
        Self { slots, before, first: 0 }
    }

    /// The place of the last slot that is left and not after `most`.
    fn last(&mut self, most: Free) -> Option<usize> {
        let mut at = self.slots.partition_point(|&free| free <= most);
        while self.before[at] as usize != at {
            self.before[at] = self.before[self.before[at] as usize];
            at = self.before[at] as usize;
        }
        at.checked_sub(1)
    }

    /// The place of the first slot that is left.
    fn first(&mut self) -> Option<usize> {
        while self.first < self.slots.len() && self.before[self.first + 1] as usize != self.first + 1 {
            self.first += 1;
        }
        (self.first < self.slots.len()).then_some(self.first)
    }

    fn take(&mut self, place: usize) {
        self.before[place + 1] = place as u32;
    }
}

/// Where a task would run on a class.
#[derive(Clone, Copy)]
struct Candidate {
    end: Time,
    start: Time,
    free: Free,
    /// Its place among the untouched slots, if it is one.
    untouched: Option<usize>,
}

impl Class {
    fn new(speed: f64, slots: Vec<Free>) -> Self {
        Self { speed, untouched: Untouched::new(slots), placed: BTreeSet::new() }
    }

    fn candidate(&mut self, ready: Time, span: Span) -> Option<Candidate> {
        let most = Free::new(ready, u32::MAX);
        let with_place = |untouched: &Untouched, at: usize| (untouched.slots[at], Some(at));
        let last = self.untouched.last(most).map(|at| with_place(&self.untouched, at));
        let in_time = last.max(self.placed.range(..=most).next_back().map(|&free| (free, None)));
        let (free, untouched) = in_time.or_else(|| {
            let first = self.untouched.first().map(|at| with_place(&self.untouched, at));
            first.into_iter().chain(self.placed.first().map(|&free| (free, None))).min()
        })?;
        let start = free.time().max(ready);
        Some(Candidate { end: start + span.at_speed_nearest(self.speed), start, free, untouched })
    }

    /// A slot is taken until the end of the task on it.
    fn take(&mut self, Candidate { end, free, untouched, .. }: Candidate) {
        match untouched {
            Some(place) => self.untouched.take(place),
            None => {
                self.placed.remove(&free);
            }
        }
        self.placed.insert(Free::new(end, free.slot()));
    }
}

/// t_l of every slot, by slot kind and speed.
#[derive(Clone, Debug)]
pub struct List {
    /// The slowest class first, so that the first of equal ends is the slowest.
    slot_kinds: [Vec<Class>; 2],
}

/// How far the placing of a job has got.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The phase, its run, and how many tasks of that are placed.
    phase: usize,
    run: usize,
    tasks: u32,
    /// When the phase is ready, and when the last of its tasks so far ends.
    ready: Time,
    last: Time,
    /// The rest of the cap of the phase, after a task of it was placed.
    room: Option<Room>,
    /// Whether all slot kinds that were needed have slots.
    complete: bool,
}

impl Progress {
    /// Nothing of a job is placed.
    pub fn new(job: &Job) -> Self {
        let (ready, last) = (job.ready, job.ready);
        Self { phase: 0, run: 0, tasks: 0, ready, last, room: None, complete: true }
    }

    /// Whether all of the job is placed.
    pub fn is_over(&self, job: &Job) -> bool {
        self.phase == job.phases.len()
    }

    /// The next phase is ready when the last task of this one ends: T^M of line 10.
    fn end_phase(&mut self) {
        self.ready = self.ready.max(self.last);
        (self.phase, self.run, self.tasks, self.room) = (self.phase + 1, 0, 0, None);
    }
}

impl List {
    /// A list for these slots, by slot kind. O(slots) if they come in the order in which they are free.
    pub fn new(slots: [Vec<Slot>; 2]) -> Self {
        let slot_kind = |slots: Vec<Slot>| {
            let mut classes: Vec<(f64, Vec<Free>)> = Vec::new();
            // Most slots are as fast as the one before them.
            for alike in slots.chunk_by(|a, b| a.speed == b.speed) {
                let speed = alike[0].speed;
                let at = classes.binary_search_by(|class| class.0.total_cmp(&speed)).unwrap_or_else(|at| {
                    classes.insert(at, (speed, Vec::new()));
                    at
                });
                classes[at].1.extend(alike.iter().map(|slot| Free::new(slot.free, slot.number)));
            }
            classes.into_iter().map(|(speed, free)| Class::new(speed, free)).collect()
        };
        Self { slot_kinds: slots.map(slot_kind) }
    }

    /// Places a job and reports every task; returns when the job ends, or `None` if a slot kind it needs has
    /// no slots (tasks of that slot kind are left out).
    pub fn place(&mut self, job: &Job, report: &mut impl FnMut(Placed)) -> Option<Time> {
        let mut progress = Progress::new(job);
        self.go_on(job, &mut progress, u64::MAX, report);
        progress.complete.then_some(progress.ready)
    }

    /// Places up to `most` further tasks of a job, as [`List::place`] does all of them.
    pub fn go_on(&mut self, job: &Job, progress: &mut Progress, most: u64, report: &mut impl FnMut(Placed)) {
        let mut left = most;
        while let Some(phase) = job.phases.get(progress.phase) {
            if progress.room.is_none() {
                progress.last = phase.running.iter().map(|&(end, _)| end).fold(progress.last, Time::max);
            }
            let room = progress.room.get_or_insert_with(|| Room::new(phase));
            let Some(run) = phase.runs.get(progress.run) else {
                progress.end_phase();
                continue;
            };
            if self.slot_kinds[phase.slot_kind].is_empty() {
                (progress.complete, progress.last) = (false, progress.ready);
                progress.end_phase();
                continue;
            }
            if left == 0 {
                return;
            }
            let count = u64::from(run.count - progress.tasks).min(left) as u32;
            let some = Run { first: run.first + progress.tasks, count, span: run.span };
            let end = place_run(
                &mut self.slot_kinds[phase.slot_kind],
                phase.id,
                some,
                progress.ready,
                room,
                report,
            );
            progress.last = progress.last.max(end);
            progress.tasks += count;
            left -= u64::from(count);
            if progress.tasks == run.count {
                (progress.run, progress.tasks) = (progress.run + 1, 0);
            }
        }
    }
}

/// Places equal tasks, each where it ends earliest (lines 6 and 13); returns the latest of their ends.
fn place_run(
    classes: &mut [Class],
    phase: PhaseId,
    run: Run,
    ready: Time,
    room: &mut Room,
    report: &mut impl FnMut(Placed),
) -> Time {
    let mut last = Time::ZERO;
    let mut from = room.next(ready);
    let mut candidates = look(classes, from, run.span);
    for task in run.first..run.first + run.count {
        let (at, best) = earliest(&candidates);
        classes[at].take(best);
        let Candidate { start, end, free, .. } = best;
        last = last.max(end);
        report(Placed { phase, task, span: run.span, slot: free.slot(), ready: from, start, end });
        room.took(end);
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
    last
}

/// The best slot of every class; no class is ever empty.
fn look(classes: &mut [Class], ready: Time, span: Span) -> Vec<Candidate> {
    classes.iter_mut().filter_map(|class| class.candidate(ready, span)).collect()
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
#[derive(Clone, Debug)]
struct Room {
    /// Ends of the last `cap` tasks; `None` if the cap cannot bind.
    ends: Option<BinaryHeap<Reverse<Time>>>,
    cap: usize,
}

impl Room {
    fn new(phase: &Phase) -> Self {
        let running: u64 = phase.running.iter().map(|&(_, count)| u64::from(count)).sum();
        let binds = u64::from(phase.cap) < u64::from(phase.count()) + running;
        let each = |&(end, count): &(Time, u32)| std::iter::repeat_n(Reverse(end), count as usize);
        let ends = binds.then(|| phase.running.iter().flat_map(each).collect());
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
