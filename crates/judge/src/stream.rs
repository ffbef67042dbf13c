//! Judges a schedule whose rows come one by one and are not kept. Memory depends on the unfinished flows.
//!
//! Everything that concerns one flow is checked when it finishes, by the checks for a whole schedule, on an
//! instance of a few such flows. Slots are the connection between flows: each remembers until when it was
//! held, and a row must not start before the end of every earlier row on its slots. A feasible schedule whose
//! rows come in the order of their ends always passes. In other orders some feasible schedules fail, and then
//! [`crate::check`] decides on the whole.

use std::collections::BTreeMap;

use slackline_model::id::TiVec;
use slackline_model::schedule::{FlowResult, FlowRow, NewRow, Schedule, TaskRow, TaskRows};
use slackline_model::{FlowId, Instance, PhaseId, SlotKind, SlotRange, Time};

use crate::ledger::{Ledger, fault};
use crate::metrics::facts;
use crate::order::Progress;
use crate::segments::Timeline;
use crate::slots::DENSE_SLOTS;
use crate::summary::{self, Facts, FlowFacts};
use crate::violation::{First, Place, RowProblem, Subject, Table, Violation, flow_name};
use crate::{Report, check_each_flow, claims, coverage, guarantee, tolerance};

/// Rows of finished flows after which those flows are judged. With this number, the cost of making an
/// instance for them is negligible.
const ROWS_AT_ONCE: usize = 1 << 12;

/// Judges the task rows of a schedule one by one.
#[derive(Debug)]
pub struct Stream<'a> {
    instance: &'a Instance,
    passing: Passing,
    /// The facts of the judged flows.
    facts: TiVec<FlowId, Option<FlowFacts>>,
}

impl<'a> Stream<'a> {
    /// Starts a schedule. `head` has the settings; its rows and claims are ignored.
    ///
    /// `None` for schedules that only [`crate::check`] can judge, because flows depend on each other by more
    /// than slots. These schedules promise minima that some phase has, let reduces take generic slots early,
    /// have another objective than the instance, have a profile (ApplicationMasters share slots), have
    /// segments, or use millions of slots.
    pub fn new(instance: &'a Instance, head: &Schedule) -> Option<Self> {
        let has_minima = || instance.phases().keys().any(|phase| guarantee::at_most(instance, phase) > 0);
        if head.minima && has_minima() {
            return None;
        }
        let facts = vec![None; instance.flows().len()].into();
        Some(Self { instance, passing: Passing::new(instance, head)?, facts })
    }

    /// Adds a row of an unfinished flow.
    ///
    /// # Errors
    /// An invalid row; a row on a slot that an earlier row frees only after this row starts.
    pub fn row(&mut self, row: NewRow, places: &[SlotRange]) -> Result<(), Violation> {
        let Self { instance, passing, facts } = self;
        passing.row(instance, row, places, |flow| facts[flow].is_some())
    }

    /// Finishes a flow: all its rows have been added.
    ///
    /// # Errors
    /// Errors of flows that finished before; a second row of a flow.
    pub fn flow(&mut self, row: &FlowRow) -> Result<(), Violation> {
        let Self { instance, passing, facts } = self;
        if passing.flow(instance, row, |flow| facts[flow].is_some())? {
            self.judge_over()?;
        }
        Ok(())
    }

    fn judge_over(&mut self) -> Result<(), Violation> {
        for (row, fact) in self.passing.judge_over(self.instance)? {
            self.facts[row.flow] = Some(fact);
        }
        Ok(())
    }

    /// Ends the stream. `schedule` has the claims and a row for every flow, as they were added; its task rows
    /// are ignored.
    ///
    /// # Errors
    /// As [`crate::check`].
    pub fn finish(mut self, schedule: &Schedule) -> Result<Report, Violation> {
        self.judge_over()?;
        let flows = claims::flow_rows(self.instance, schedule)?;
        claims::check_whole(self.instance, schedule, &flows)?;
        let missing = |flow| Violation::FlowMissing { flow: flow_name(self.instance, flow) };
        let facts = self.facts.iter_enumerated().map(|(flow, fact)| fact.ok_or_else(|| missing(flow)));
        let facts: TiVec<FlowId, FlowFacts> = facts.collect::<Result<_, _>>()?;
        crate::report(self.instance, schedule, facts, self.passing.rows)
    }
}

/// The rows of flows that are not yet judged, and the slots. Ids are those of the instance that each call
/// gets.
#[derive(Debug)]
pub(crate) struct Passing {
    /// The settings under which a few flows are judged, without claims on the whole.
    head: Schedule,
    /// The rows of unfinished flows.
    live: slackline_model::Table<FlowId, TaskRows>,
    /// Finished flows, to be judged next.
    over: BTreeMap<FlowId, (FlowRow, TaskRows)>,
    rows_over: usize,
    taken: [Vec<LastUse>; 3],
    /// The number of rows so far.
    pub(crate) rows: usize,
}

/// Until when a slot was held last, and by which task.
#[derive(Clone, Copy, Debug)]
struct LastUse {
    until: Time,
    phase: PhaseId,
    task: u32,
}

impl Passing {
    /// Starts a schedule; `None` as for [`Stream::new`], except for minima.
    pub(crate) fn new(instance: &Instance, head: &Schedule) -> Option<Self> {
        let cluster = instance.cluster();
        let is_bound = head.slowstart < 1.0 && !cluster.is_map_reduce()
            || head.profile.is_some()
            || !head.segments.is_empty()
            || head.objective != instance.objective()
            || cluster.slot_kinds().iter().any(|&slot_kind| cluster.slots(slot_kind) > DENSE_SLOTS);
        if is_bound {
            return None;
        }
        let free = LastUse { until: Time::ZERO, phase: PhaseId(0), task: 0 };
        let mut taken = [const { Vec::new() }; 3];
        for &slot_kind in cluster.slot_kinds() {
            taken[slot_kind.index()] = vec![free; cluster.slots(slot_kind) as usize];
        }
        let head =
            Schedule { flows: Vec::new(), tasks: TaskRows::new(), allocations: Vec::new(), ..head.clone() };
        let (live, over) = (slackline_model::Table::new(), BTreeMap::new());
        Some(Self { head, live, over, rows_over: 0, taken, rows: 0 })
    }

    /// Adds a row of an unfinished flow; `is_judged` tells which flows were judged.
    pub(crate) fn row(
        &mut self,
        instance: &Instance,
        row: NewRow,
        places: &[SlotRange],
        is_judged: impl Fn(FlowId) -> bool,
    ) -> Result<(), Violation> {
        let unsound = |row, problem| Violation::Row { table: Table::Tasks, row, problem };
        let index = self.rows;
        self.rows += 1;
        if instance.phases().get(row.phase).is_none() {
            return Err(unsound(index, RowProblem::UnknownPhase(row.phase.0)));
        }
        let flow = instance.flow_of(row.phase);
        if !self.live.contains(flow) && (is_judged(flow) || self.over.contains_key(&flow)) {
            return Err(Violation::FlowTwice { flow: flow_name(instance, flow) });
        }
        let rows = self.live.get_or_insert_with(flow, TaskRows::new);
        let at = rows.push(row, places);
        if let Some(problem) = fault(instance, rows.row(at), places) {
            return Err(unsound(index, problem));
        }
        let row = *rows.row(at);
        self.take(instance, &row, places)
    }

    /// Takes the slots of a row.
    fn take(&mut self, instance: &Instance, row: &TaskRow, places: &[SlotRange]) -> Result<(), Violation> {
        let slot_kind = instance.slot_kind_of(row.phase);
        let until = tolerance::shrunk(row.end);
        if until <= row.start {
            return Ok(());
        }
        let mut task = row.first;
        for place in places {
            let slots = &mut self.taken[slot_kind.index()][place.first as usize..place.end() as usize];
            for (slot, taken) in (place.first..).zip(slots) {
                if taken.until > row.start {
                    return Err(overlap(instance, row, slot_kind, slot, task, *taken));
                }
                *taken = LastUse { until, phase: row.phase, task };
                task += 1;
            }
        }
        Ok(())
    }

    /// Finishes a flow. Returns whether it is time to judge the finished flows.
    pub(crate) fn flow(
        &mut self,
        instance: &Instance,
        row: &FlowRow,
        is_judged: impl Fn(FlowId) -> bool,
    ) -> Result<bool, Violation> {
        if is_judged(row.flow) || self.over.contains_key(&row.flow) {
            return Err(Violation::FlowTwice { flow: flow_name(instance, row.flow) });
        }
        let rows = self.live.remove(row.flow).unwrap_or_default();
        self.rows_over += 1 + rows.len();
        self.over.insert(row.flow, (*row, rows));
        Ok(self.rows_over >= ROWS_AT_ONCE)
    }

    /// Judges the finished flows as a separate workload. Returns their rows and facts.
    pub(crate) fn judge_over(&mut self, instance: &Instance) -> Result<Vec<(FlowRow, FlowFacts)>, Violation> {
        let mut few = instance.without_flows();
        let mut schedule = self.head.clone();
        let mut came_from = Vec::with_capacity(self.over.len());
        for (id, (row, rows)) in std::mem::take(&mut self.over) {
            let flow = few.admit(instance.excerpt(id));
            schedule.flows.push(FlowRow { flow, ..row });
            let first = |instance: &Instance, flow| instance.flow(flow).phases().next().map_or(0, |id| id.0);
            let (from, to) = (first(instance, id), first(&few, flow));
            for row in rows.rows() {
                let phase = PhaseId(row.phase.0 - from + to);
                schedule.tasks.push(NewRow { phase, ..row.into() }, rows.places(row));
            }
            came_from.push(row);
        }
        self.rows_over = 0;
        let all = judge(&few, &schedule)?;
        Ok(came_from.into_iter().zip(facts(&schedule.flows, all)).collect())
    }

    /// Whether a flow is finished and not yet judged.
    pub(crate) fn is_over(&self, flow: FlowId) -> bool {
        self.over.contains_key(&flow)
    }
}

fn overlap(
    instance: &Instance,
    row: &TaskRow,
    slot_kind: SlotKind,
    slot: u32,
    task: u32,
    before: LastUse,
) -> Violation {
    let other = match instance.phases().get(before.phase) {
        Some(_) => Subject::task(instance, before.phase, before.task),
        // The names of a judged flow are forgotten.
        None => Subject {
            flow: "(over)".into(),
            job: "(unknown)".into(),
            kind: instance.phase(row.phase).kind,
            task: Some(before.task),
        },
    };
    Violation::SlotOverlap {
        at: row.start.seconds(),
        task: Subject::task(instance, row.phase, task),
        other: Box::new(other),
        place: Place::new(instance.cluster(), slot_kind, slot),
    }
}

/// Checks everything except the slots and the claims on the whole. The rows are valid: they were checked when
/// they were added.
fn judge(instance: &Instance, schedule: &Schedule) -> Result<Facts, Violation> {
    let flows = claims::flow_rows(instance, schedule)?;
    let ledger = Ledger::of_sound(instance, &schedule.tasks);
    coverage::check_tasks(&ledger, |flow| flows[flow.index()].status == FlowResult::Failed)?;
    let progress = Progress::new(&ledger, &Timeline::new(schedule));
    let mut first = First::default();
    check_each_flow(&ledger, &progress, schedule, &mut first);
    first.into_result()?;
    let facts = summary::of_tasks(&ledger, &progress, &schedule.policy);
    claims::check_flows(instance, &flows, &facts)?;
    Ok(facts)
}
