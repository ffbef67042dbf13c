//! Algorithm 1: list scheduling on machines of different speed with release times.
//!
//! The jobs come in the order of the list; of each the maps, then the reduces, the largest task first;
//! every task goes where it ends earliest. Each slot is one machine. Idle time before reduces and
//! releases follows without further steps, because a slot's time only ever moves on.
//!
//! Among slots of one speed the earliest end is wanted of the slot that is free last but in time: as good as
//! any for this task, and it wastes the least. So each speed class is kept in order, slots that are free at the
//! same time together. Equal tasks take such slots at once: O(log slots + classes) for each time, and O(1) for
//! each task. A list is placed as far as it is wanted
//! ([`List::go_on`]): what is placed later is placed as if it had been placed at once.
//!
//! **Deviations**: the paper leaves ties open; here equal ends go to the slower class, then to the slot
//! that idles least, then to the lower number. A phase with a cap below its tasks is held to it: each
//! of its tasks then also waits for the task `cap` places before it to end.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};

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
#[derive(Clone, Debug, Default)]
struct Class {
    speed: f64,
    /// t_l of the slots that nothing was placed on, which are most of them.
    untouched: Untouched,
    /// The same of the others, by t_l.
    placed: BTreeMap<Time, Numbers>,
}

/// Numbers of slots, which are put in order when they are read.
#[derive(Clone, Debug, Default)]
struct Numbers {
    slots: Vec<u32>,
    is_unsorted: bool,
}

impl Numbers {
    fn sorted(&mut self) -> &mut Vec<u32> {
        if std::mem::take(&mut self.is_unsorted) {
            self.slots.sort_unstable();
        }
        &mut self.slots
    }

    /// Appends slots that are in order.
    fn extend(&mut self, slots: impl Iterator<Item = u32>) {
        let before = self.slots.len();
        self.slots.extend(slots);
        self.is_unsorted |= before > 0 && self.slots.get(before) < self.slots.get(before - 1);
    }
}

/// Slots that are free at the same time: of all numbers of the class, those from `first` to `end` are left.
#[derive(Clone, Copy, Debug)]
struct FreeRun {
    time: Time,
    first: u32,
    end: u32,
}

/// Slots in the order in which they are free, from which some are taken: runs of slots that are free at the
/// same time, and for each run where to look on for the last run before it that has slots left (a forest with
/// path halving).
#[derive(Clone, Debug, Default)]
struct Untouched {
    /// By time and number.
    slots: Vec<u32>,
    runs: Vec<FreeRun>,
    /// By one more than the place of a run: itself, if the run has slots left; 0 for none.
    before: Vec<u32>,
    /// No run before this place has slots left.
    first: usize,
}

impl Untouched {
    /// Appends slots that are free at a time, in the order of their numbers; times never decrease.
    fn push(&mut self, time: Time, slots: &[u32]) {
        let first = self.slots.len() as u32;
        self.slots.extend_from_slice(slots);
        let end = self.slots.len() as u32;
        match self.runs.last_mut() {
            Some(run) if run.time == time && first < end => {
                run.end = end;
                if self.slots[first as usize - 1] > self.slots[first as usize] {
                    self.slots[run.first as usize..].sort_unstable();
                }
            }
            _ if first < end => {
                self.runs.push(FreeRun { time, first, end });
                self.before.push(self.runs.len() as u32);
            }
            _ => {}
        }
    }

    /// The place of the last run that has slots left and is free by `ready`.
    fn last(&mut self, ready: Time) -> Option<usize> {
        let mut at = self.runs.partition_point(|run| run.time <= ready);
        while at > 0 && self.before[at - 1] as usize != at {
            let next = self.before[at - 1] as usize;
            if next > 0 {
                self.before[at - 1] = self.before[next - 1];
            }
            at = self.before[at - 1] as usize;
        }
        at.checked_sub(1)
    }

    /// The place of the first run that has slots left.
    fn first(&mut self) -> Option<usize> {
        while self.runs.get(self.first).is_some_and(|run| run.first == run.end) {
            self.first += 1;
        }
        (self.first < self.runs.len()).then_some(self.first)
    }

    /// When a run is free, and its slots that are left.
    fn run(&self, place: usize) -> (Time, &[u32]) {
        let FreeRun { time, first, end } = self.runs[place];
        (time, &self.slots[first as usize..end as usize])
    }

    /// Takes slots at one end of a run.
    fn take(&mut self, place: usize, count: usize, side: Side, to: &mut Vec<u32>) {
        let run = &mut self.runs[place];
        let left = &self.slots[run.first as usize..run.end as usize];
        match side {
            Side::Last => {
                to.extend(left[left.len() - count..].iter().rev());
                run.end -= count as u32;
            }
            Side::First => {
                to.extend(&left[..count]);
                run.first += count as u32;
            }
        }
        if run.first == run.end {
            self.before[place] = place as u32;
        }
    }
}

/// From which end of a run slots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    First,
    Last,
}

/// Where a task would run on a class.
#[derive(Clone, Copy)]
struct Candidate {
    end: Time,
    start: Time,
    /// When its slot is free.
    free: Time,
    /// The place of its run among the untouched slots, if it is one of them.
    untouched: Option<usize>,
    side: Side,
    /// How many equal tasks may be placed there, one after another.
    count: u32,
}

impl Class {
    fn candidate(&mut self, ready: Time, span: Span) -> Option<Candidate> {
        let untouched = self.untouched.last(ready);
        let placed = self.placed.range_mut(..=ready).next_back();
        let (side, untouched, placed) = if untouched.is_some() || placed.is_some() {
            (Side::Last, untouched, placed)
        } else {
            (Side::First, self.untouched.first(), self.placed.iter_mut().next())
        };
        let untouched = untouched.map(|place| (self.untouched.run(place), Some(place)));
        let placed = placed.map(|(&time, numbers)| ((time, numbers.sorted().as_slice()), None));
        let key = |&((time, slots), _): &((Time, &[u32]), Option<usize>)| match side {
            Side::First => (time, slots[0]),
            Side::Last => (time, slots[slots.len() - 1]),
        };
        let is_tie = untouched.zip(placed).is_some_and(|((a, _), (b, _))| a.0 == b.0);
        let both = untouched.into_iter().chain(placed);
        let ((free, slots), untouched) = match side {
            Side::First => both.min_by_key(key),
            Side::Last => both.max_by_key(key),
        }?;
        let start = free.max(ready);
        let end = start + span.at_speed_nearest(self.speed);
        // A task without length leaves its slot where it was.
        let count = if is_tie || end == start { 1 } else { slots.len() as u32 };
        Some(Candidate { end, start, free, untouched, side, count })
    }

    /// Slots are taken until the end of the tasks on them. Appends them in the order in which they are taken.
    fn take(&mut self, candidate: Candidate, count: u32, to: &mut Vec<u32>) {
        let Candidate { end, free, untouched, side, .. } = candidate;
        let (count, from) = (count as usize, to.len());
        if let Some(place) = untouched {
            self.untouched.take(place, count, side, to);
        } else if let Entry::Occupied(mut run) = self.placed.entry(free) {
            let slots = run.get_mut().sorted();
            match side {
                Side::First => to.extend(slots.drain(..count)),
                Side::Last => to.extend(slots.drain(slots.len() - count..).rev()),
            }
            if slots.is_empty() {
                run.remove();
            }
        }
        let numbers = self.placed.entry(end).or_default();
        match side {
            Side::First => numbers.extend(to[from..].iter().copied()),
            Side::Last => numbers.extend(to[from..].iter().rev().copied()),
        }
    }
}

/// t_l of every slot, by slot kind and speed.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The slowest class first, so that the first of equal ends is the slowest. Each has slots.
    slot_kinds: [Vec<Class>; 2],
    /// The slots of the tasks that are being placed.
    taken: Vec<u32>,
    /// Classes without slots, kept for their memory.
    unused: Vec<Class>,
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
        let mut list = Self::default();
        for (slot_kind, mut slots) in slots.into_iter().enumerate() {
            if !slots.is_sorted_by_key(|slot| (slot.free, slot.number)) {
                slots.sort_unstable_by_key(|slot| (slot.free, slot.number));
            }
            // Many slots are like the one before them.
            for alike in slots.chunk_by(|a, b| (a.free, a.speed) == (b.free, b.speed)) {
                let numbers: Vec<u32> = alike.iter().map(|slot| slot.number).collect();
                list.add(slot_kind, alike[0].speed, alike[0].free, &numbers);
            }
        }
        list
    }

    /// Removes all slots.
    pub(super) fn clear(&mut self) {
        for mut class in self.slot_kinds.iter_mut().flat_map(|classes| classes.drain(..)) {
            let Class { untouched, placed, .. } = &mut class;
            untouched.slots.clear();
            untouched.runs.clear();
            untouched.before.clear();
            untouched.first = 0;
            placed.clear();
            self.unused.push(class);
        }
    }

    /// Adds slots of a kind that are equally fast and free at the same time, in the order of their numbers.
    /// The times of a class never decrease.
    pub(super) fn add(&mut self, slot_kind: usize, speed: f64, free: Time, numbers: &[u32]) {
        let classes = &mut self.slot_kinds[slot_kind];
        let at = classes.binary_search_by(|class| class.speed.total_cmp(&speed)).unwrap_or_else(|at| {
            classes.insert(at, self.unused.pop().unwrap_or_default());
            classes[at].speed = speed;
            at
        });
        classes[at].untouched.push(free, numbers);
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
            let Self { slot_kinds, taken, .. } = self;
            let placing = PlacedRun { phase: phase.id, run: some, ready: progress.ready };
            let end = place_run(&mut slot_kinds[phase.slot_kind], placing, room, taken, report);
            progress.last = progress.last.max(end);
            progress.tasks += count;
            left -= u64::from(count);
            if progress.tasks == run.count {
                (progress.run, progress.tasks) = (progress.run + 1, 0);
            }
        }
    }
}

/// Equal tasks to place, and when their phase is ready.
struct PlacedRun {
    phase: PhaseId,
    run: Run,
    ready: Time,
}

/// Places equal tasks, each where it ends earliest (lines 6 and 13); returns the latest of their ends. Tasks
/// that end together on slots of one run are placed at once.
fn place_run(
    classes: &mut [Class],
    PlacedRun { phase, run, ready }: PlacedRun,
    room: &mut Room,
    taken: &mut Vec<u32>,
    report: &mut impl FnMut(Placed),
) -> Time {
    let (mut last, mut placed) = (Time::ZERO, 0);
    let mut from = room.next(ready);
    let mut candidates = look(classes, from, run.span);
    while placed < run.count {
        let (at, best) = earliest(&candidates);
        let count = if room.binds() { 1 } else { best.count.min(run.count - placed) };
        taken.clear();
        classes[at].take(best, count, taken);
        let Candidate { start, end, .. } = best;
        last = last.max(end);
        for &slot in &*taken {
            let task = run.first + placed;
            report(Placed { phase, task, span: run.span, slot, ready: from, start, end });
            placed += 1;
        }
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

    fn binds(&self) -> bool {
        self.ends.is_some()
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
