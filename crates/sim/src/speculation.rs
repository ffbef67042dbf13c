//! Speculative attempts of tasks that take longer than others of their phase, as Hadoop's ApplicationMasters
//! request them.
//!
//! They are no scheduling decision: they take slots that the policy left idle. An ApplicationMaster checks at
//! intervals. An attempt is slow if it would end later than a new attempt with the mean duration of the ended
//! ones. Attempts progress evenly, so their end follows from their progress. The simulation uses ends when
//! they happen, not when a machine reports them.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::profile::Speculation;
use slackline_model::{Cluster, JobId, MachineId, PhaseId, SlotKind, Span, Time};
use slackline_policy::engine::RowId;

/// The state of an attempt in a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) row: RowId,
    /// The time from its start to its own code, and from there to its end, without the wait for maps.
    pub(crate) startup: Span,
    pub(crate) computes: Span,
    /// When it ends; `None` while it waits for maps.
    pub(crate) ends: Option<Time>,
}

impl Attempt {
    /// When it ended; `None` if it still runs.
    fn ended(&self, now: Time) -> Option<Time> {
        self.ends.filter(|&at| at <= now)
    }

    fn took(&self) -> Span {
        Span(self.startup.0 + self.computes.0)
    }
}

/// The task and the slot of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) job: JobId,
    pub(crate) phase: PhaseId,
    pub(crate) task: u32,
    pub(crate) slot_kind: SlotKind,
    pub(crate) slot: u32,
}

/// A running task.
#[derive(Clone, Debug)]
struct Task {
    first: Attempt,
    second: Option<Attempt>,
}

impl Task {
    fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// The attempt that ended first; `None` if both run.
    fn winner(&self, now: Time) -> Option<&Attempt> {
        self.attempts().filter(|attempt| attempt.ended(now).is_some()).min_by_key(|a| (a.ends, a.row))
    }
}

/// The state of a phase for its ApplicationMaster.
#[derive(Clone, Debug)]
struct Phase {
    total: u32,
    slot_kind: SlotKind,
    /// The number of its tasks whose end was reported, and their total duration in microseconds.
    ended: (u64, u64),
    running: BTreeMap<u32, Task>,
}

/// A job with an ApplicationMaster.
#[derive(Clone, Debug, Default)]
struct Job {
    /// The time of the first check; later checks follow once an interval.
    since: Time,
    /// The next check at which a slow task is possible.
    next: Option<Time>,
    phases: BTreeMap<PhaseId, Phase>,
}

/// Speculative attempts that a check requests: the row of the first attempt, and the slot.
pub(crate) type SpeculativeAttempts = Vec<(RowId, u32)>;

/// The ApplicationMasters that check for slow tasks, and the slots.
#[derive(Clone, Debug)]
pub(crate) struct Seconds {
    rules: Speculation,
    jobs: BTreeMap<JobId, Job>,
    /// Free slots of each slot kind, and the machine of each slot.
    free: [BTreeSet<u32>; 2],
    machines: [Vec<MachineId>; 2],
}

impl Seconds {
    pub(crate) fn new(rules: Speculation, cluster: &Cluster) -> Self {
        let (mut free, mut machines) = ([const { BTreeSet::new() }; 2], [const { Vec::new() }; 2]);
        for &slot_kind in cluster.slot_kinds() {
            free[slot_kind.index()] = (0..cluster.slots(slot_kind)).collect();
            machines[slot_kind.index()] =
                (0..cluster.slots(slot_kind)).map(|slot| cluster.machine_of(slot_kind, slot).0).collect();
        }
        Self { rules, jobs: BTreeMap::new(), free, machines }
    }

    /// A slot is taken.
    pub(crate) fn take(&mut self, slot_kind: SlotKind, slot: u32) {
        self.free[slot_kind.index()].remove(&slot);
    }

    /// A slot became free.
    pub(crate) fn leave(&mut self, slot_kind: SlotKind, slot: u32) {
        self.free[slot_kind.index()].insert(slot);
    }

    /// The ApplicationMaster of a job is up, and checks from now on.
    pub(crate) fn am_up(&mut self, job: JobId, now: Time) {
        self.jobs.entry(job).or_default().since = now;
    }

    /// A job is finished.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// An attempt starts; the phase has `total` tasks. Returns the time of the next check, unless it is known
    /// already.
    pub(crate) fn start(&mut self, spot: Spot, attempt: Attempt, total: u32, now: Time) -> Option<Time> {
        let Spot { job, phase, task, slot_kind, slot } = spot;
        self.take(slot_kind, slot);
        let phases = &mut self.jobs.entry(job).or_default().phases;
        let empty = || Phase { total, slot_kind, ended: (0, 0), running: BTreeMap::new() };
        let running = &mut phases.entry(phase).or_insert_with(empty).running;
        match running.get_mut(&task) {
            Some(first) => first.second = Some(attempt),
            None => drop(running.insert(task, Task { first: attempt, second: None })),
        }
        self.look_after(job, now)
    }

    /// A reduce that waited for maps will end at `ends`. Returns the time of the next check, unless it is
    /// known already.
    pub(crate) fn go(&mut self, spot: Spot, ends: Time, now: Time) -> Option<Time> {
        let phase = self.jobs.get_mut(&spot.job)?.phases.get_mut(&spot.phase)?;
        phase.running.get_mut(&spot.task)?.first.ends = Some(ends);
        self.look_after(spot.job, now)
    }

    /// The attempts of a task, one of which ended: the attempt that ended first, and the other one.
    pub(crate) fn settle(&self, spot: Spot, now: Time) -> Option<(Attempt, Option<Attempt>)> {
        let task = self.jobs.get(&spot.job)?.phases.get(&spot.phase)?.running.get(&spot.task)?;
        let winner = task.winner(now)?;
        Some((*winner, task.attempts().find(|other| other.row != winner.row).copied()))
    }

    /// The end of a task was reported. Returns the time of the next check, unless it is known already.
    pub(crate) fn finish(&mut self, spot: Spot, took: Span, now: Time) -> Option<Time> {
        let phase = self.jobs.get_mut(&spot.job)?.phases.get_mut(&spot.phase)?;
        phase.running.remove(&spot.task);
        phase.ended = (phase.ended.0 + 1, phase.ended.1 + took.0);
        self.look_after(spot.job, now)
    }

    /// An event may change the result of a check. Returns the time of the next check, unless it is known
    /// already.
    fn look_after(&mut self, job: JobId, now: Time) -> Option<Time> {
        let every = self.rules.every.0;
        let job = self.jobs.get_mut(&job)?;
        if job.next.is_some() {
            return None;
        }
        let looked = now.0.saturating_sub(job.since.0).div_ceil(every);
        job.next = Some(Time(job.since.0 + looked * every));
        job.next
    }

    /// The ApplicationMaster of a job checks for slow tasks. Returns the speculative attempts that it
    /// requests, at most one per phase, and the time of its next check; `None` if only another event can
    /// change the result. `is_idle` tells where slots were left idle.
    pub(crate) fn look(
        &mut self,
        job: JobId,
        now: Time,
        is_idle: impl Fn(MachineId) -> bool,
    ) -> (SpeculativeAttempts, Option<Time>) {
        let Some(of) = self.jobs.get(&job).filter(|of| of.next == Some(now)) else {
            return (Vec::new(), None);
        };
        let (mut wanted, mut taken) = (Vec::new(), Vec::new());
        let mut is_slow = false;
        for phase in of.phases.values() {
            let seen = PhaseProgress::new(phase, now);
            is_slow |= seen.will_be_slow;
            let Some(row) = seen.slowest.filter(|_| seen.twins < seen.allowed(phase, &self.rules)) else {
                continue;
            };
            let slot_kind = phase.slot_kind.index();
            let is_left = |slot: &&u32| {
                is_idle(self.machines[slot_kind][**slot as usize]) && !taken.contains(&(slot_kind, **slot))
            };
            if let Some(&slot) = self.free[slot_kind].iter().find(is_left) {
                taken.push((slot_kind, slot));
                wanted.push((row, slot));
            }
        }
        let job = self.jobs.get_mut(&job).expect("invariant: the job was there");
        job.next = None;
        if !wanted.is_empty() {
            job.since = now + self.rules.pause;
            job.next = Some(job.since);
        } else if is_slow {
            job.next = Some(now + self.rules.every);
        }
        (wanted, job.next)
    }
}

/// The result of checking a phase.
struct PhaseProgress {
    /// Running tasks, and those of them with two attempts.
    running: u32,
    twins: u32,
    /// The slow attempt that ends last.
    slowest: Option<RowId>,
    /// Whether some attempt is slow, even if the ApplicationMaster cannot see this yet.
    will_be_slow: bool,
}

impl PhaseProgress {
    /// O(running tasks).
    fn new(phase: &Phase, now: Time) -> Self {
        let mut seen = Self { running: 0, twins: 0, slowest: None, will_be_slow: false };
        let (mut n, mut micros) = phase.ended;
        for task in phase.running.values() {
            if let Some(winner) = task.winner(now) {
                (n, micros) = (n + 1, micros + winner.took().0);
            } else {
                seen.running += 1;
                seen.twins += u32::from(task.second.is_some());
            }
        }
        if n == 0 {
            return seen;
        }
        let new_ends = now + Span(micros.div_ceil(n));
        let alone = phase.running.values().filter(|task| task.second.is_none()).map(|task| &task.first);
        let slow = alone.filter_map(|first| Some((first.ends.filter(|&at| at > new_ends)?, first)));
        let mut last = Time::ZERO;
        for (at, first) in slow {
            seen.will_be_slow = true;
            // Nothing is known of an attempt before its own code runs.
            let has_begun = at.since(now) <= first.computes;
            if has_begun && at > last {
                (last, seen.slowest) = (at, Some(first.row));
            }
        }
        seen
    }

    /// The number of tasks of the phase that may have two attempts.
    fn allowed(&self, phase: &Phase, rules: &Speculation) -> u32 {
        let share = |of: f64, tasks: u32| (of * f64::from(tasks)) as u32;
        rules.least.max(share(rules.of_total, phase.total)).max(share(rules.of_running, self.running))
    }
}
