//! Explains one phase from the time at which it was ready to its end, and finds the holders of the slots that
//! it wanted.

use std::collections::BTreeMap;
use std::ops::Add;

use slackline_model::schedule::Outcome;
use slackline_model::{JobId, PhaseId, SlotKind};

use super::Facts;
use crate::explain::slot_intervals::{SlotInterval, Spans};

/// The time of a phase, divided by the slots that it had. Seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// No slot, with tasks to start.
    pub none: f64,
    /// Some slots, but fewer than it could use.
    pub below: f64,
    /// As many slots as it may hold.
    pub cap: f64,
    /// No tasks to start: only its last tasks run.
    pub last: f64,
    /// The time that unlimited slots would have saved in `none` and `below`: the sum over that time of the
    /// missing share.
    pub lost: f64,
}

impl Waits {
    /// The total time.
    pub fn total(&self) -> f64 {
        self.none + self.below + self.cap + self.last
    }
}

impl Add for Waits {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            none: self.none + other.none,
            below: self.below + other.below,
            cap: self.cap + other.cap,
            last: self.last + other.last,
            lost: self.lost + other.lost,
        }
    }
}

/// The explanation of a phase. Times are in seconds since the start of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseStory {
    /// The phase.
    pub phase: PhaseId,
    /// The time at which all its predecessors finished; `None` if they never did.
    pub ready: Option<f64>,
    /// The phase whose end made it ready; `None` if it was ready at the release of its flow.
    pub gate: Option<PhaseId>,
    /// The first time at which it held a slot, if any.
    pub started: Option<f64>,
    /// The last time at which it held a slot, if any.
    pub ended: Option<f64>,
    /// Whether all of it is finished.
    pub done: bool,
    /// The waits from ready to its end.
    pub waits: Waits,
    /// The mean number of held slots from ready to its end; `None` if this time is zero.
    pub mean: Option<f64>,
    /// The maximum number of held slots.
    pub most: u32,
    /// The maximum number of slots that it may hold: its cap, or all slots of its kind.
    pub cap: u32,
    /// The slot-seconds that it held before it was ready: reduces that took slots early.
    pub early: f64,
    /// The holders of the slots while it wanted more.
    pub blocked: Blocked,
}

/// The jobs that held slots while a phase wanted more than it had.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocked {
    /// The length of this time, seconds.
    pub seconds: f64,
    /// The slot-seconds that were idle.
    pub idle: f64,
    /// The slot-seconds that ApplicationMasters held, including its own (under a profile).
    pub ams: f64,
    /// The slot-seconds that the phase held.
    pub own: f64,
    /// The slot-seconds of other jobs, in descending order; ties by id.
    pub others: Vec<Blocker>,
}

/// A job that held slots that another phase wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocker {
    /// The job.
    pub job: JobId,
    /// The slot-seconds that it held.
    pub slot_seconds: f64,
    /// The part of them that reduces held while they waited for maps.
    pub waiting: f64,
}

impl Blocked {
    /// All slot-seconds during this time.
    pub fn slot_seconds(&self) -> f64 {
        self.idle + self.ams + self.own + self.others.iter().map(|other| other.slot_seconds).sum::<f64>()
    }

    /// The sum over disjoint times.
    pub(super) fn sum<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut sum, mut others) = (Self::default(), BTreeMap::new());
        for part in parts {
            sum.seconds += part.seconds;
            sum.idle += part.idle;
            sum.ams += part.ams;
            sum.own += part.own;
            for other in &part.others {
                add(&mut others, *other);
            }
        }
        sum.others = sorted(others);
        sum
    }
}

fn add(others: &mut BTreeMap<JobId, Blocker>, other: Blocker) {
    let sum = others.entry(other.job).or_insert(Blocker { slot_seconds: 0.0, waiting: 0.0, ..other });
    sum.slot_seconds += other.slot_seconds;
    sum.waiting += other.waiting;
}

fn sorted(others: BTreeMap<JobId, Blocker>) -> Vec<Blocker> {
    let mut others: Vec<Blocker> = others.into_values().filter(|other| other.slot_seconds > 0.0).collect();
    others.sort_by(|a, b| b.slot_seconds.total_cmp(&a.slot_seconds).then(a.job.cmp(&b.job)));
    others
}

/// A change at an instant: the change of held slots, and the number of tasks that start.
type Change = (f64, i64, i64);

impl Facts<'_> {
    /// The explanation of `phase`. O(log r + h log h) for h rows of the phase or during the time that it
    /// wanted more slots.
    pub(super) fn story(&self, phase: PhaseId) -> PhaseStory {
        let extent = self.extents[phase];
        let of = self.instance.phase(phase);
        let slot_kind = self.instance.slot_kind_of(phase);
        let mut story = PhaseStory {
            phase,
            ready: extent.ready,
            gate: self.gate(phase),
            started: extent.start,
            ended: extent.end,
            done: extent.done,
            waits: Waits::default(),
            mean: None,
            most: 0,
            cap: of.cap.min(self.instance.cluster().slots(slot_kind)),
            early: 0.0,
            blocked: Blocked::default(),
        };
        let wanting = self.divide(&mut story);
        story.blocked = self.blocked(phase, &wanting);
        story
    }

    /// Divides the time from ready to end by the slots that the phase had. Returns the times at which it
    /// wanted more slots.
    fn divide(&self, story: &mut PhaseStory) -> Spans {
        let mut changes = self.changes(story.phase);
        // If rows do not name their tasks, the phase has no tasks to start after its last start.
        changes.extend(self.last_starts.get(&story.phase).map(|&last| (last, 0, i64::MAX)));
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Plans are not cut into tasks, so the phase always has work to start until its end.
        let tasks = self.instance.phase(story.phase).tasks().map(|tasks| i64::from(tasks.count()));
        let mut pending = tasks.filter(|_| !self.is_plan).unwrap_or(i64::MAX);
        let until = self.extents[story.phase].until;
        let (ready, end) = (story.ready.unwrap_or(f64::INFINITY), until.unwrap_or(f64::NEG_INFINITY));
        let (mut held, mut at, mut area) = (0i64, f64::NEG_INFINITY, 0.0);
        let mut wanting = Spans::default();
        let last = std::iter::once((f64::INFINITY, 0, 0));
        for (time, slots, taken) in changes.into_iter().chain(last) {
            if time > at {
                story.most = story.most.max(u32::try_from(held).unwrap_or(0));
                let (from, to) = (at.max(ready), time.min(end));
                if held > 0 && at < ready {
                    story.early += held as f64 * (time.min(ready) - at).max(0.0);
                }
                if from < to {
                    area += held as f64 * (to - from);
                    let room = (i64::from(story.cap) - held).max(0);
                    let want = room.min(pending.max(0));
                    story.waits.count(held, want, room, to - from);
                    if want > 0 {
                        wanting.push(from, to);
                    }
                }
                at = time;
            }
            held += slots;
            pending = pending.saturating_sub(taken);
        }
        story.mean = (ready < end).then(|| area / (end - ready));
        wanting
    }

    fn changes(&self, phase: PhaseId) -> Vec<Change> {
        let mut changes = Vec::new();
        for row in self.held.of(phase) {
            let slots = i64::from(row.slots);
            let taken = if row.outcome.is_some() { slots } else { 0 };
            // Unfinished tasks return to the tasks to start.
            let back = if matches!(row.outcome, Some(Outcome::Done)) { 0 } else { taken };
            changes.push((row.start, slots, taken));
            changes.push((row.end, -slots, -back));
        }
        changes
    }

    /// The holders of the slots of the kind of `phase` in these spans.
    fn blocked(&self, phase: PhaseId, wanting: &Spans) -> Blocked {
        let slot_kind = self.instance.slot_kind_of(phase);
        let mut others = BTreeMap::new();
        let mut blocked = Blocked { seconds: wanting.measure(), ..Blocked::default() };
        let Some((from, to)) = wanting.extent().filter(|_| blocked.seconds > 0.0) else { return blocked };
        for row in self.held.during(from, to).filter(|row| self.instance.slot_kind_of(row.phase) == slot_kind)
        {
            let slots = f64::from(row.slots);
            let slot_seconds = slots * wanting.within(row.start, row.end);
            if row.phase == phase {
                blocked.own += slot_seconds;
            } else if slot_seconds > 0.0 {
                let waiting = slots * wanting.within(row.start, self.computes_from(row).min(row.end));
                add(&mut others, Blocker { job: self.instance.phase(row.phase).job, slot_seconds, waiting });
            }
        }
        blocked.others = sorted(others);
        let all = blocked.seconds * f64::from(self.instance.cluster().slots(slot_kind));
        let held: f64 = blocked.others.iter().map(|other| other.slot_seconds).sum();
        if slot_kind == SlotKind::Any {
            let during = self.ams.iter().filter(|held| held.0 < to && held.1 > from);
            blocked.ams = during.map(|held| wanting.within(held.0, held.1)).sum();
        }
        blocked.idle = all - blocked.own - blocked.ams - held;
        // Rounding errors of the sums are not idle slots.
        if blocked.idle < 1e-9 * all {
            blocked.idle = 0.0;
        }
        blocked
    }

    /// The time from which the slots of a row compute. Reduces that took their slots early wait for the maps.
    fn computes_from(&self, row: &SlotInterval) -> f64 {
        self.extents[row.phase].ready.unwrap_or(f64::INFINITY).max(row.start)
    }
}

impl Waits {
    /// Counts `seconds` with `held` slots, `want` more that it could use and `room` up to its cap.
    fn count(&mut self, held: i64, want: i64, room: i64, seconds: f64) {
        let kind = match (held, want, room) {
            (0, 1.., _) => &mut self.none,
            (_, 1.., _) => &mut self.below,
            (_, _, 1..) => &mut self.last,
            _ => &mut self.cap,
        };
        *kind += seconds;
        if want > 0 {
            self.lost += seconds * want as f64 / (held + want) as f64;
        }
    }
}
