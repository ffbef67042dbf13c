//! Searches for known and small workloads: tasks in an order, each placed where it ends first beside the
//! tasks that are already placed, also in a gap. So a slot may stay idle for a more valuable task that comes
//! soon, which list scheduling of flows never does.
//!
//! This is the serial scheme of project scheduling (Kolisch 1996). If all slots of a kind have one speed,
//! some order gives an optimal schedule for every metric (Sprecher, Kolisch, Drexl 1995). A search that
//! starts with the order of task starts in a schedule returns a schedule of at most its cost.

mod annealing;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::id::TiVec;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::schedule::TaskRows;
use slackline_model::{FlowId, Instance, JobId, PhaseId, Seed, Span, Time};

use crate::dmrs::list::Placed;
use crate::dmrs::rows;

/// The limit on tasks for a search by steps: placing them takes their number squared, many times.
pub const TASKS_MAX: u64 = 200;
/// The limit on tasks for a search within a time.
pub const TIMED_TASKS_MAX: u64 = 2_000;

/// A task to be placed.
#[derive(Clone, Copy, Debug)]
struct Task {
    phase: PhaseId,
    number: u32,
    span: Span,
}

/// The number of busy slots over time, for equal slots.
#[derive(Clone, Debug)]
struct Profile {
    slots: u32,
    /// The number of busy slots from each instant on; 0 before the first.
    taken: Vec<(Time, u32)>,
}

impl Profile {
    fn new(slots: u32) -> Self {
        Self { slots, taken: Vec::new() }
    }

    /// The first instant from `ready` on from which a slot is free for `length`. O(pieces).
    fn earliest(&self, ready: Time, length: Span) -> Time {
        let mut start = ready;
        let from = self.taken.partition_point(|&(at, _)| at <= ready).saturating_sub(1);
        for (k, &(at, taken)) in self.taken.iter().enumerate().skip(from) {
            // A task without length still needs a free slot at that moment.
            if at >= start + length.max(Span(1)) {
                break;
            }
            if taken >= self.slots {
                // In the last piece all slots are free.
                start = self.taken[k + 1].0;
            }
        }
        start
    }

    /// Takes a slot. O(pieces).
    fn take(&mut self, start: Time, end: Time) {
        if start == end {
            return;
        }
        let (from, to) = (self.split(start), self.split(end));
        self.taken[from..to].iter_mut().for_each(|(_, taken)| *taken += 1);
    }

    /// The piece that starts at an instant; creates it if necessary.
    fn split(&mut self, at: Time) -> usize {
        let k = self.taken.partition_point(|&(begin, _)| begin < at);
        if self.taken.get(k).is_none_or(|&(begin, _)| begin > at) {
            let taken = k.checked_sub(1).map_or(0, |before| self.taken[before].1);
            self.taken.insert(k, (at, taken));
        }
        k
    }
}

/// The slots of a kind that have one speed.
#[derive(Clone, Debug)]
struct Class {
    slot_kind: usize,
    speed: f64,
    numbers: Vec<u32>,
}

/// The place of a task: class, start, end.
type Place = (usize, Time, Time);

/// The cost of a schedule, and the sum of completions in microseconds, since maxima have plateaus.
type Cost = (f64, u64);

/// What is placed, and where.
#[derive(Clone, Debug)]
struct Layout<'a> {
    instance: &'a Instance,
    tasks: Vec<Task>,
    classes: Vec<Class>,
    /// The tasks of each phase.
    of_phase: TiVec<PhaseId, Vec<u32>>,
}

/// A search over one instance.
#[derive(Clone, Debug)]
pub struct Insertion<'a> {
    layout: Layout<'a>,
    placing: Placing,
    places: Vec<Place>,
}

impl<'a> Insertion<'a> {
    /// A search over an instance; `None` if it has more than `most` tasks, uncut work, or tasks without length
    /// beside others of their phase.
    pub fn new(instance: &'a Instance, most: u64) -> Option<Self> {
        if instance.n_tasks() > most {
            return None;
        }
        let (mut tasks, mut of_phase) = (Vec::new(), TiVec::new());
        for (phase, info) in instance.phases().iter_enumerated() {
            let mut own = Vec::new();
            for run in info.tasks()?.runs().iter().filter(|_| !info.is_without_length()) {
                // A task without length needs a slot for no time, which slot profiles cannot represent.
                if run.span == Span::ZERO {
                    return None;
                }
                for _ in 0..run.count {
                    let number = own.len() as u32;
                    own.push(tasks.len() as u32);
                    tasks.push(Task { phase, number, span: run.span });
                }
            }
            of_phase.push(own);
        }
        let places = vec![(0, Time::ZERO, Time::ZERO); tasks.len()];
        let layout = Layout { instance, tasks, classes: classes(instance), of_phase };
        Some(Self { placing: Placing::new(&layout), layout, places })
    }

    /// The rows of the cheapest schedule found in `tries` tries, starting with the order in which the tasks
    /// of `from` start. Calls `stop` before each try. O(tries · tasks²).
    pub fn run(&mut self, from: &TaskRows, tries: u64, seed: u64, stop: impl Fn() -> bool) -> TaskRows {
        let mut order = self.by_start(from);
        let mut rng: ChaCha8Rng = random::rng(Seed(seed), "insertion", 0);
        let mut least = self.place(&order);
        let mut next = Vec::new();
        for _ in 0..if order.len() > 1 { tries } else { 0 } {
            if stop() {
                break;
            }
            self.change(&order, &mut next, &mut rng);
            let cost = self.place(&next);
            // Equal cost is accepted: most moves change nothing.
            if cost <= least {
                least = cost;
                std::mem::swap(&mut order, &mut next);
            }
        }
        self.rows(&order)
    }

    /// The rows of the schedule that places the tasks in an order.
    fn rows(&mut self, order: &[u32]) -> TaskRows {
        self.place(order);
        rows(&self.placed())
    }

    /// The rows of a schedule that starts tasks of these phases and lengths in this order, or earlier.
    pub fn in_order(&mut self, starts: impl IntoIterator<Item = (PhaseId, Span)>) -> TaskRows {
        let Layout { tasks, of_phase, .. } = &self.layout;
        let mut is_taken = vec![false; tasks.len()];
        let mut order = Vec::with_capacity(tasks.len());
        for (phase, span) in starts {
            let is_next = |&&task: &&u32| !is_taken[task as usize] && tasks[task as usize].span == span;
            if let Some(&task) = of_phase[phase].iter().find(is_next) {
                is_taken[task as usize] = true;
                order.push(task);
            }
        }
        self.rows(&order)
    }

    /// All tasks by their start in some rows.
    fn by_start(&self, rows: &TaskRows) -> Vec<u32> {
        let mut starts = vec![Time(u64::MAX); self.layout.tasks.len()];
        for row in rows.rows() {
            let of_phase = &self.layout.of_phase[row.phase];
            for &task in &of_phase[row.first as usize..(row.first + row.count) as usize] {
                starts[task as usize] = row.start;
            }
        }
        let mut order: Vec<u32> = (0..self.layout.tasks.len() as u32).collect();
        order.sort_by_key(|&task| starts[task as usize]);
        order
    }

    /// Writes an order with a moved task, phase or flow to `next`; the moved tasks follow each other.
    fn change(&self, order: &[u32], next: &mut Vec<u32>, rng: &mut ChaCha8Rng) {
        let Layout { instance, tasks, .. } = &self.layout;
        let last = order.len() as u64 - 1;
        let chosen = order[random::integer(rng, 0, last) as usize];
        let phase = tasks[chosen as usize].phase;
        let flow = instance.flow_of(phase);
        let what = random::integer(rng, 0, 2);
        let goes = |&task: &u32| match what {
            0 => task == chosen,
            1 => tasks[task as usize].phase == phase,
            _ => instance.flow_of(tasks[task as usize].phase) == flow,
        };
        next.clear();
        next.extend(order.iter().copied().filter(|task| !goes(task)));
        let at = random::integer(rng, 0, next.len() as u64) as usize;
        let rest = next.len();
        next.extend(order.iter().copied().filter(goes));
        next[at..].rotate_left(rest - at);
    }

    /// Places all tasks, always the first in the order whose phase has a known ready time. Returns the cost.
    /// O(tasks²).
    fn place(&mut self, order: &[u32]) -> Cost {
        let Self { layout, placing, places } = self;
        placing.start(layout, order);
        while let Some(Reverse((_, task))) = placing.eligible.pop() {
            places[task as usize] = placing.place(layout, &layout.tasks[task as usize]);
        }
        (layout.instance.cost_of(placing.seconds()), placing.completions.iter().map(|at| at.0).sum())
    }

    /// The placed tasks with their slots. Never more slots are used than exist, so every task finds a free
    /// slot.
    fn placed(&self) -> Vec<Placed> {
        let Layout { tasks, classes, .. } = &self.layout;
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&task| (self.places[task].1, self.places[task].2, task));
        let mut free: Vec<Vec<Time>> =
            classes.iter().map(|class| vec![Time::ZERO; class.numbers.len()]).collect();
        let slot_of = |task: usize| {
            let (class, start, end) = self.places[task];
            let slot = free[class].iter().position(|&free| free <= start);
            let slot = slot.expect("invariant: no more tasks run at a time than there are slots");
            free[class][slot] = end;
            let Task { phase, number, span } = tasks[task];
            let slot = classes[class].numbers[slot];
            Placed { phase, task: number, span, slot, ready: start, start, end }
        };
        order.into_iter().map(slot_of).collect()
    }
}

/// The slots by kind and speed, the fastest of a kind first.
fn classes(instance: &Instance) -> Vec<Class> {
    let cluster = instance.cluster();
    let mut classes: Vec<Class> = Vec::new();
    for &slot_kind in cluster.slot_kinds() {
        let mut slot = 0;
        while slot < cluster.slots(slot_kind) {
            let (speed, next) = cluster.speed_of(slot_kind, slot);
            let slot_kind = slot_kind.index();
            match classes.iter_mut().find(|class| class.slot_kind == slot_kind && class.speed == speed) {
                Some(class) => class.numbers.extend(slot..next),
                None => classes.push(Class { slot_kind, speed, numbers: (slot..next).collect() }),
            }
            slot = next;
        }
    }
    classes.sort_by(|a, b| a.slot_kind.cmp(&b.slot_kind).then(b.speed.total_cmp(&a.speed)));
    classes
}

/// Tasks being placed in an order.
#[derive(Clone, Debug)]
struct Placing {
    /// The position of each task in the order.
    rank: Vec<u32>,
    profiles: Vec<Profile>,
    /// For phases whose cap is below their number of tasks.
    caps: TiVec<PhaseId, Option<Profile>>,
    /// When each phase is ready, as far as known; the numbers of phases and tasks to place before that is
    /// known and before the phase ends; and its end.
    ready: TiVec<PhaseId, Time>,
    left: TiVec<PhaseId, usize>,
    end: TiVec<PhaseId, Time>,
    /// The number of jobs to place before a job.
    blocked_by: TiVec<JobId, usize>,
    eligible: BinaryHeap<Reverse<(u32, u32)>>,
    completions: TiVec<FlowId, Time>,
    seconds: Vec<f64>,
}

impl Placing {
    fn new(Layout { instance, tasks, classes, of_phase }: &Layout<'_>) -> Self {
        let cap = |(phase, info): (PhaseId, &slackline_model::instance::Phase)| {
            ((info.cap as usize) < of_phase[phase].len()).then(|| Profile::new(info.cap))
        };
        let release = |phase: &slackline_model::instance::Phase| instance.flow(phase.flow).release;
        Self {
            rank: vec![0; tasks.len()],
            profiles: classes.iter().map(|class| Profile::new(class.numbers.len() as u32)).collect(),
            caps: instance.phases().iter_enumerated().map(cap).collect(),
            ready: instance.phases().iter().map(release).collect(),
            left: of_phase.iter().map(Vec::len).collect(),
            end: instance.phases().iter().map(release).collect(),
            blocked_by: instance.jobs().iter().map(|job| job.after.len()).collect(),
            eligible: BinaryHeap::new(),
            completions: instance.flows().iter().map(|flow| flow.release).collect(),
            seconds: Vec::new(),
        }
    }

    /// Nothing is placed yet.
    fn start(&mut self, layout: &Layout<'_>, order: &[u32]) {
        let Layout { instance, of_phase, .. } = layout;
        (0..).zip(order).for_each(|(at, &task)| self.rank[task as usize] = at);
        self.profiles
            .iter_mut()
            .chain(self.caps.iter_mut().flatten())
            .for_each(|profile| profile.taken.clear());
        for (phase, info) in instance.phases().iter_enumerated() {
            let release = instance.flow(info.flow).release;
            (self.ready[phase], self.end[phase]) = (release, release);
            self.left[phase] = of_phase[phase].len();
        }
        for (completion, flow) in self.completions.iter_mut().zip(instance.flows().iter()) {
            *completion = flow.release;
        }
        for (job, info) in instance.jobs().iter_enumerated() {
            self.blocked_by[job] = info.after.len();
        }
        for (job, info) in instance.jobs().iter_enumerated().filter(|(_, info)| info.after.is_empty()) {
            self.open(layout, first_of(job, instance), instance.flow(info.flow).release);
        }
    }

    /// The completions of flows in seconds.
    fn seconds(&mut self) -> &[f64] {
        self.seconds.clear();
        self.seconds.extend(self.completions.iter().map(|at| at.seconds()));
        &self.seconds
    }

    /// All predecessors of a phase are placed; the last one ends at `at`.
    fn open(&mut self, layout: &Layout<'_>, phase: PhaseId, at: Time) {
        self.ready[phase] = self.ready[phase].max(at);
        self.end[phase] = self.ready[phase];
        for &task in &layout.of_phase[phase] {
            self.eligible.push(Reverse((self.rank[task as usize], task)));
        }
        if self.left[phase] == 0 {
            self.close(layout, phase);
        }
    }

    /// Puts a task where it ends first, on the fastest of the slots with equal ends.
    fn place(&mut self, layout: &Layout<'_>, task: &Task) -> Place {
        let Task { phase, span, .. } = *task;
        let slot_kind = layout.instance.slot_kind_of(phase).index();
        let ends = |(class, info): (usize, &Class)| {
            let length = span.at_speed_nearest(info.speed);
            let start = self.earliest(class, phase, length);
            (start + length, class, start)
        };
        let of_slot_kind =
            layout.classes.iter().enumerate().filter(|(_, class)| class.slot_kind == slot_kind);
        let (end, class, start) = of_slot_kind
            .map(ends)
            .min()
            .expect("invariant: a workload is valid only if slots serve its phases");
        self.profiles[class].take(start, end);
        if let Some(cap) = &mut self.caps[phase] {
            cap.take(start, end);
        }
        self.end[phase] = self.end[phase].max(end);
        self.left[phase] -= 1;
        if self.left[phase] == 0 {
            self.close(layout, phase);
        }
        (class, start, end)
    }

    /// The first instant at which a slot of a class is free for `length` and the phase may hold one more.
    fn earliest(&self, class: usize, phase: PhaseId, length: Span) -> Time {
        let mut start = self.ready[phase];
        loop {
            let free = self.profiles[class].earliest(start, length);
            start = self.caps[phase].as_ref().map_or(free, |cap| cap.earliest(free, length));
            if start == free {
                return start;
            }
        }
    }

    /// All tasks of a phase are placed: its successors may be placed.
    fn close(&mut self, layout: &Layout<'_>, phase: PhaseId) {
        let instance = layout.instance;
        let (end, info) = (self.end[phase], instance.job(instance.phase(phase).job));
        let completion = &mut self.completions[info.flow];
        *completion = end.max(*completion);
        if let Some(reduce) = info.reduce.filter(|&reduce| reduce != phase) {
            self.open(layout, reduce, end);
            return;
        }
        for &next in &info.before {
            let first = first_of(next, instance);
            self.ready[first] = self.ready[first].max(end);
            self.blocked_by[next] -= 1;
            if self.blocked_by[next] == 0 {
                self.open(layout, first, end);
            }
        }
    }
}

/// The phase of a job that runs first.
fn first_of(job: JobId, instance: &Instance) -> PhaseId {
    instance.job(job).phases().next().expect("invariant: a job has a phase")
}

#[cfg(test)]
mod tests;
