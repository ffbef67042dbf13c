//! Checks the allocations of a plan: piecewise constant slots on machines of one speed.
//!
//! Overlapping rows of one phase add up. A phase is done when its last allocation ends and its work is
//! complete. A phase without work needs no row and is done when it could start.

use slackline_model::id::TiVec;
use slackline_model::schedule::Allocation;
use slackline_model::{FlowId, Instance, JobId, PhaseId, PhaseKind, SlotKind};

use crate::excess::{Hold, first_excess};
use crate::guarantee::{self, Ready};
use crate::tolerance;
use crate::violation::{First, ReduceEvent, RowProblem, Subject, Table, Violation, job_name};

/// The sums of the allocations of a plan. Times are seconds.
pub(crate) struct Plan<'a> {
    pub(crate) instance: &'a Instance,
    /// Valid rows, with their indices.
    pub(crate) rows: Vec<(u32, &'a Allocation)>,
    /// Slot-seconds of completed work of each phase.
    work: TiVec<PhaseId, f64>,
    /// First start of each phase's rows.
    pub(crate) starts: TiVec<PhaseId, Option<f64>>,
    /// When each phase is done; `None` for never.
    pub(crate) finishes: TiVec<PhaseId, Option<f64>>,
    /// When each phase may start; `None` for never.
    ready: TiVec<PhaseId, Option<f64>>,
}

/// The first invalid row, or mixed speeds.
pub(crate) fn check_rows(instance: &Instance, rows: &[Allocation]) -> Result<(), Violation> {
    let found = rows.iter().enumerate().find_map(|(i, row)| Some((i, fault(instance, row)?)));
    if let Some((row, problem)) = found {
        return Err(Violation::Row { table: Table::Allocations, row, problem });
    }
    if instance.cluster().uniform_speed().is_none() { Err(Violation::Speed) } else { Ok(()) }
}

/// Why a row is invalid, if it is.
fn fault(instance: &Instance, row: &Allocation) -> Option<RowProblem> {
    if instance.phases().get(row.phase).is_none() {
        return Some(RowProblem::UnknownPhase(row.phase.0));
    }
    if let Some(&time) = [row.start, row.end].iter().find(|time| !time.is_finite()) {
        return Some(RowProblem::NotFinite(time));
    }
    if row.end < row.start {
        return Some(RowProblem::Backwards { start: row.start, end: row.end });
    }
    (row.slots == 0).then_some(RowProblem::NoSlots)
}

impl<'a> Plan<'a> {
    /// Adds the rows up and leaves out invalid ones. On mixed speeds, work is counted at the speed of the
    /// first machines; [`check_rows`] refuses such plans.
    pub(crate) fn new(instance: &'a Instance, rows: &'a [Allocation]) -> Self {
        let n = instance.phases().len();
        let sound = rows.iter().enumerate().filter(|(_, row)| fault(instance, row).is_none());
        let mut plan = Self {
            instance,
            rows: sound.map(|(i, row)| (i as u32, row)).collect(),
            work: vec![0.0; n].into(),
            starts: vec![None; n].into(),
            finishes: vec![None; n].into(),
            ready: vec![None; n].into(),
        };
        let speed = instance.cluster().uniform_speed().unwrap_or(1.0);
        let mut ends: TiVec<PhaseId, Option<f64>> = vec![None; n].into();
        for (_, row) in &plan.rows {
            plan.work[row.phase] += f64::from(row.slots) * (row.end - row.start) * speed;
            plan.starts[row.phase] = Some(plan.starts[row.phase].map_or(row.start, |t| t.min(row.start)));
            ends[row.phase] = Some(ends[row.phase].map_or(row.end, |t: f64| t.max(row.end)));
        }
        for job in instance.topological() {
            let mut ready = plan.job_ready(job);
            for phase in instance.job(job).phases() {
                let expected = instance.phase(phase).work().slot_seconds();
                let complete = plan.work[phase] >= expected - tolerance::amount(expected);
                plan.ready[phase] = ready;
                plan.finishes[phase] = ends[phase].or(ready).filter(|_| complete);
                ready = ready.zip(plan.finishes[phase]).map(|(a, b)| a.max(b));
            }
        }
        plan
    }

    fn job_done(&self, job: JobId) -> Option<f64> {
        self.instance.job(job).phases().try_fold(0.0f64, |last, phase| Some(last.max(self.finishes[phase]?)))
    }

    fn job_ready(&self, job: JobId) -> Option<f64> {
        let job = self.instance.job(job);
        let release = self.instance.flow(job.flow).release.seconds();
        job.after.iter().try_fold(release, |ready, &after| Some(ready.max(self.job_done(after)?)))
    }

    /// Checks that the completed work is exact; a failed flow may do less.
    pub(crate) fn check_work(&self, failed: impl Fn(FlowId) -> bool) -> Result<(), Violation> {
        for (id, phase) in self.instance.phases().iter_enumerated() {
            let (found, expected) = (self.work[id], phase.work().slot_seconds());
            let less_is_fine = failed(self.instance.flow_of(id)) && found < expected;
            if !less_is_fine && !tolerance::same_amount(found, expected) {
                return Err(Violation::Work { phase: Subject::phase(self.instance, id), found, expected });
            }
        }
        Ok(())
    }

    /// Offers the first breaches of capacity, caps and order.
    pub(crate) fn check_times(&self, first: &mut First) {
        for &slot_kind in self.instance.cluster().slot_kinds() {
            self.check_capacity(slot_kind, first);
        }
        self.check_caps(first);
        for &(_, row) in &self.rows {
            self.check_order(row, first);
        }
    }

    fn hold(&self, row: u32) -> &'a Allocation {
        let at = self.rows.binary_search_by_key(&row, |&(i, _)| i);
        self.rows[at.expect("invariant: holds are made of the rows")].1
    }

    fn check_capacity(&self, slot_kind: SlotKind, first: &mut First) {
        let slots = self.instance.cluster().slots(slot_kind);
        let rows = self.rows.iter().filter(|(_, row)| self.instance.slot_kind_of(row.phase) == slot_kind);
        if let Some(excess) =
            first_excess(rows.map(|(row, allocation)| hold_of(*row, allocation)).collect(), u64::from(slots))
        {
            let phase = self.hold(excess.row).phase;
            first.offer(excess.at, phase, || Violation::Capacity {
                at: excess.at,
                phase: Subject::phase(self.instance, phase),
                slot_kind,
                found: excess.held,
                slots,
            });
        }
    }

    fn check_caps(&self, first: &mut First) {
        let mut by_phase = self.rows.clone();
        by_phase.sort_by_key(|&(i, row)| (row.phase, i));
        for rows in by_phase.chunk_by(|a, b| a.1.phase == b.1.phase) {
            let id = rows[0].1.phase;
            let cap = self.instance.phase(id).cap;
            if let Some(excess) = first_excess(
                rows.iter().map(|(row, allocation)| hold_of(*row, allocation)).collect(),
                u64::from(cap),
            ) {
                first.offer(excess.at, id, || Violation::Cap {
                    at: excess.at,
                    phase: Subject::phase(self.instance, id),
                    found: excess.held,
                    cap,
                });
            }
        }
    }

    fn check_order(&self, row: &Allocation, first: &mut First) {
        let instance = self.instance;
        let phase = instance.phase(row.phase);
        let job = instance.job(phase.job);
        let (at, who) = (row.start, || Subject::phase(instance, row.phase));
        let release = instance.flow(job.flow).release.seconds();
        if tolerance::earlier(at, release) {
            first.offer(at, row.phase, || Violation::Release { at, who: who(), release });
        }
        let too_early = |done: Option<f64>| done.is_none_or(|done| tolerance::earlier(at, done));
        let mut after = job.after.iter().map(|&after| (after, self.job_done(after)));
        if let Some((after, done)) = after.find(|&(_, done)| too_early(done)) {
            let after = job_name(instance, after);
            first.offer(at, row.phase, || Violation::Precedence { at, who: who(), after, done });
        }
        let map = job.map.filter(|_| phase.kind == PhaseKind::Reduce);
        if let Some(map) = map
            && too_early(self.finishes[map])
        {
            first.offer(at, row.phase, || Violation::MapBeforeReduce {
                at,
                who: who(),
                event: ReduceEvent::Starts,
                needed: None,
                done: self.finishes[map],
            });
        }
    }

    /// Offers the first instant of each slot kind at which a ready and unfinished phase holds fewer slots
    /// than its minimum. O(rows of guaranteed phases · guaranteed phases that are ready).
    ///
    /// The number of tasks that a phase has left is its remaining work over its longest task, rounded up: no
    /// plan with whole tasks has fewer left. Work without tasks always keeps its full minimum. A phase of a
    /// failed flow has no guarantee.
    pub(crate) fn check_minima(&self, failed: impl Fn(FlowId) -> bool, first: &mut First) {
        for &slot_kind in self.instance.cluster().slot_kinds() {
            let mut active: Vec<Active> = Vec::new();
            for id in self.instance.phases().keys() {
                let guaranteed = self.instance.slot_kind_of(id) == slot_kind
                    && !failed(self.instance.flow_of(id))
                    && guarantee::at_most(self.instance, id) > 0;
                if let Some((ready, finish)) = self.ready[id].zip(self.finishes[id]).filter(|_| guaranteed) {
                    let work = self.instance.phase(id).work().slot_seconds();
                    active.push(Active { phase: id, ready, finish, held: 0, remaining: work });
                }
            }
            if !active.is_empty() {
                self.sweep_minima(slot_kind, active, first);
            }
        }
    }

    fn sweep_minima(&self, slot_kind: SlotKind, mut phases: Vec<Active>, first: &mut First) {
        let speed = self.instance.cluster().uniform_speed().unwrap_or(1.0);
        // (time, phase's position, slots more or less)
        let mut events: Vec<(f64, usize, i64)> =
            phases.iter().enumerate().map(|(at, p)| (p.ready, at, 0)).collect();
        for (_, row) in &self.rows {
            if let Ok(at) = phases.binary_search_by_key(&row.phase, |p| p.phase) {
                events.push((row.start, at, i64::from(row.slots)));
                events.push((row.end, at, -i64::from(row.slots)));
            }
        }
        events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Positions of the ready and unfinished phases, in order of id.
        let mut unfinished: Vec<usize> = Vec::new();
        let mut groups = events.chunk_by(|a, b| a.0 == b.0).peekable();
        while let Some(group) = groups.next() {
            let now = group[0].0;
            for &(_, at, slots) in group {
                phases[at].held += slots;
                if slots == 0 {
                    unfinished.insert(unfinished.partition_point(|&other| other < at), at);
                }
            }
            unfinished.retain(|&at| tolerance::earlier(now, phases[at].finish));
            let Some(next) = groups.peek().map(|group| group[0].0) else { return };
            // Between instants that are the same within the tolerance, no slot can be held.
            let lasts = next - now > tolerance::instant(next);
            if let Some((phase, violation)) =
                lasts.then(|| self.below(slot_kind, now, &phases, &unfinished)).flatten()
            {
                first.offer(now, phase, || violation);
                return;
            }
            for &at in &unfinished {
                phases[at].remaining -= phases[at].held as f64 * (next - now) * speed;
            }
        }
    }

    /// The lowest of the `unfinished` phases that holds fewer slots than its minimum.
    fn below(
        &self,
        slot_kind: SlotKind,
        now: f64,
        phases: &[Active],
        unfinished: &[usize],
    ) -> Option<(PhaseId, Violation)> {
        let ready: Vec<Ready> = unfinished
            .iter()
            .map(|&at| Ready { phase: phases[at].phase, left: self.tasks_left(&phases[at]) })
            .collect();
        let minima = guarantee::minima(self.instance, slot_kind, &ready);
        let (&at, minimum) =
            unfinished.iter().zip(minima).find(|&(&at, minimum)| phases[at].held < i64::from(minimum))?;
        let phase = phases[at].phase;
        let violation = Violation::Minimum {
            at: now,
            phase: Subject::phase(self.instance, phase),
            found: u64::try_from(phases[at].held).unwrap_or(0),
            minimum,
            taker: None,
        };
        Some((phase, violation))
    }

    fn tasks_left(&self, active: &Active) -> u32 {
        let phase = self.instance.phase(active.phase);
        let Some(tasks) = phase.tasks() else { return u32::MAX };
        let remaining = active.remaining - tolerance::amount(tasks.work().slot_seconds());
        if remaining <= 0.0 { 0 } else { (remaining / tasks.longest().seconds()).ceil() as u32 }
    }
}

/// A phase with a guarantee while time passes.
struct Active {
    phase: PhaseId,
    ready: f64,
    finish: f64,
    held: i64,
    /// Slot-seconds of unfinished work.
    remaining: f64,
}

fn hold_of(row: u32, allocation: &Allocation) -> Hold {
    Hold { start: allocation.start, end: allocation.end, slots: allocation.slots, row }
}
