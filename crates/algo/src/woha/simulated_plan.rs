//! A flow rehearsed alone on some slots: Algorithm 1, corrected (docs/math/woha.md E1, E2; deviations D1–D5,
//! D12).
//!
//! List scheduling by job priority, in batches: equal tasks of a phase that start together are one
//! event. Free slots, ready phases by priority, running counts; nothing else.
//!
//! It is not the simulator, because it runs where a flow is submitted and sees nothing else, keeps the
//! corrections of Algorithm 1 in one place, and is repeated for every cap that is tried: batches of equal
//! tasks make it cheap, and a limit ends it early.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::{JobId, PhaseKind, Span};

use crate::woha::request::Request;

/// Map and reduce slots; if pooled, all slots in the first number and 0 in the second.
pub(super) type Slots = [u32; 2];

/// A phase: its tasks, the estimate of one, and most running tasks; `None` without tasks or without length.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    tasks: u32,
    span: u64,
    cap: u32,
    slot_kind: usize,
}

#[derive(Clone, Debug)]
struct Job {
    /// Jobs it comes after.
    waits: u32,
    /// Jobs that come after it.
    next: Vec<u32>,
    phases: [Phase; 2],
}

/// The shape of a flow, its jobs numbered by priority.
#[derive(Clone, Debug)]
pub(super) struct Workflow {
    jobs: Vec<Job>,
    /// Estimated slot-microseconds for each kind of slot.
    pub(super) work: [u128; 2],
    /// The slots of the whole cluster.
    pub(super) slots: Slots,
}

impl Workflow {
    /// The flow of a request with its jobs in `order`; `pooled` counts all slots as one kind.
    pub(super) fn new(request: &Request<'_>, order: &[JobId], pooled: bool) -> Self {
        let instance = request.instance;
        let map_reduce = instance.cluster().is_map_reduce();
        let mut slots = [0; 2];
        for &slot_kind in instance.cluster().slot_kinds() {
            let slot_kind_slots = instance.cluster().slots(slot_kind);
            slots[if pooled { 0 } else { slot_kind.index() }] += slot_kind_slots;
        }
        let slot_kind_of = |kind: PhaseKind| {
            if pooled || !map_reduce { 0 } else { instance.cluster().slot_kind_of(kind).index() }
        };
        let first = order.iter().map(|job| job.0).min().unwrap_or(0);
        let mut rank = vec![0; order.len()];
        for (r, job) in (0..).zip(order) {
            rank[(job.0 - first) as usize] = r;
        }
        let mut work = [0; 2];
        let mut shape = |job: &JobId| {
            let info = instance.job(*job);
            let phases = PhaseKind::ALL.map(|kind| {
                let Some(id) = info.phase(kind) else { return Phase::default() };
                let phase = instance.phase(id);
                // It starts no tasks and holds no slot.
                if phase.is_without_length() {
                    return Phase::default();
                }
                // A malleable phase that was not cut counts as one task.
                let tasks = phase.tasks().map_or(1, slackline_model::tasks::Tasks::count);
                let (span, slot_kind) = (request.span(id).0, slot_kind_of(kind));
                work[slot_kind] += u128::from(span) * u128::from(tasks);
                Phase { tasks, span, cap: phase.cap.min(tasks).max(1), slot_kind }
            });
            let next = info.before.iter().map(|next| rank[(next.0 - first) as usize]).collect();
            Job { waits: info.after.len() as u32, next, phases }
        };
        let jobs = order.iter().map(&mut shape).collect();
        Self { jobs, work, slots }
    }

    /// The largest cap that has an effect.
    pub(super) fn cap_max(&self) -> u32 {
        self.slots[0].max(self.slots[1]).max(1)
    }

    /// The slots under a cap, which holds for each kind.
    fn capped(&self, cap: u32) -> Slots {
        self.slots.map(|slots| slots.min(cap))
    }
}

/// Tables of a rehearsal, kept between rehearsals of one flow.
#[derive(Debug)]
pub(super) struct Rehearsal<'a> {
    workflow: &'a Workflow,
    left: Vec<[u32; 2]>,
    running: Vec<[u32; 2]>,
    waits: Vec<u32>,
    free: Slots,
    /// Ready phases with remaining tasks and room, by priority.
    ready: [BinaryHeap<Reverse<(u32, PhaseKind)>>; 2],
    /// Ends of batches: when, job, phase, tasks.
    events: BinaryHeap<Reverse<(u64, u32, PhaseKind, u32)>>,
    /// Complete jobs whose dependents are not updated yet.
    complete: Vec<u32>,
    /// How many tasks started when.
    starts: Vec<(u64, u64)>,
}

impl<'a> Rehearsal<'a> {
    pub(super) fn new(workflow: &'a Workflow) -> Self {
        Self {
            workflow,
            left: Vec::new(),
            running: Vec::new(),
            waits: Vec::new(),
            free: [0; 2],
            ready: [BinaryHeap::new(), BinaryHeap::new()],
            events: BinaryHeap::new(),
            complete: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Time at which the flow is done with `cap` slots of each kind, or `None` if that is after
    /// `limit`. O(E log J).
    pub(super) fn run(&mut self, cap: u32, limit: Span) -> Option<Span> {
        self.reset(cap);
        let mut now = 0;
        loop {
            if !self.start(now, limit.0) {
                return None;
            }
            let Some(&Reverse((at, ..))) = self.events.peek() else { return Some(Span(now)) };
            now = at;
            while let Some(&Reverse((at, job, kind, count))) = self.events.peek()
                && at == now
            {
                self.events.pop();
                self.finish(job, kind, count);
            }
        }
    }

    /// How many tasks started when in the last run, in the order of time.
    pub(super) fn starts(&self) -> &[(u64, u64)] {
        &self.starts
    }

    fn reset(&mut self, cap: u32) {
        let jobs = &self.workflow.jobs;
        self.left.clear();
        self.left.extend(jobs.iter().map(|job| job.phases.map(|phase| phase.tasks)));
        self.running.clear();
        self.running.resize(jobs.len(), [0; 2]);
        self.waits.clear();
        self.waits.extend(jobs.iter().map(|job| job.waits));
        self.free = self.workflow.capped(cap);
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.events.clear();
        self.starts.clear();
        for (j, job) in (0..).zip(jobs) {
            if job.waits == 0 {
                self.activate(j);
            }
        }
        self.settle();
    }

    /// Gives out slots while there are slots and phases; false if a task would end after the limit.
    fn start(&mut self, now: u64, limit: u64) -> bool {
        for slot_kind in 0..2 {
            while self.free[slot_kind] > 0
                && let Some(Reverse((j, kind))) = self.ready[slot_kind].pop()
            {
                let (job, at) = (j as usize, kind as usize);
                let phase = &self.workflow.jobs[job].phases[at];
                let (left, running) = (&mut self.left[job][at], &mut self.running[job][at]);
                let count = self.free[slot_kind].min(*left).min(phase.cap - *running);
                *left -= count;
                *running += count;
                self.free[slot_kind] -= count;
                let end = now.saturating_add(phase.span);
                if end > limit {
                    return false;
                }
                self.events.push(Reverse((end, j, kind, count)));
                match self.starts.last_mut() {
                    Some((at, tasks)) if *at == now => *tasks += u64::from(count),
                    _ => self.starts.push((now, u64::from(count))),
                }
                if *left > 0 && *running < phase.cap {
                    self.ready[slot_kind].push(Reverse((j, kind)));
                }
            }
        }
        true
    }

    /// Tasks of a phase end.
    fn finish(&mut self, j: u32, kind: PhaseKind, count: u32) {
        let (job, at) = (j as usize, kind as usize);
        let phase = &self.workflow.jobs[job].phases[at];
        let (left, running) = (self.left[job][at], &mut self.running[job][at]);
        let was_full = *running == phase.cap;
        *running -= count;
        self.free[phase.slot_kind] += count;
        if left > 0 && was_full {
            self.ready[phase.slot_kind].push(Reverse((j, kind)));
        } else if left == 0 && *running == 0 {
            match kind {
                PhaseKind::Map => self.reduce(j),
                PhaseKind::Reduce => self.complete.push(j),
            }
            self.settle();
        }
    }

    /// Starts a job whose predecessors are complete.
    fn activate(&mut self, j: u32) {
        let map = self.workflow.jobs[j as usize].phases[PhaseKind::Map as usize];
        if map.tasks > 0 {
            self.ready[map.slot_kind].push(Reverse((j, PhaseKind::Map)));
        } else {
            self.reduce(j);
        }
    }

    /// The maps of a job, if any, are done.
    fn reduce(&mut self, j: u32) {
        let reduce = self.workflow.jobs[j as usize].phases[PhaseKind::Reduce as usize];
        if reduce.tasks > 0 {
            self.ready[reduce.slot_kind].push(Reverse((j, PhaseKind::Reduce)));
        } else {
            self.complete.push(j);
        }
    }

    /// Tells the dependents of complete jobs.
    fn settle(&mut self) {
        while let Some(j) = self.complete.pop() {
            let workflow = self.workflow;
            for &next in &workflow.jobs[j as usize].next {
                self.waits[next as usize] -= 1;
                if self.waits[next as usize] == 0 {
                    self.activate(next);
                }
            }
        }
    }
}
