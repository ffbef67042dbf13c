//! The same judgement of rows that come one after the other and are not kept: memory follows the flows that are not
//! over.
//!
//! All that concerns one flow is checked when it is over, by the same checks as a whole schedule, on an instance of a
//! few such flows. Between flows there are the slots: each remembers until when it was taken, so that a row starts no
//! earlier than every row before it on its slots ended. Rows that come in the order of their ends and are feasible always pass; in
//! other orders some do not, and then [`crate::check`] decides on the whole.

use std::collections::BTreeMap;

use slackline_model::id::TiVec;
use slackline_model::schedule::{FlowRow, FlowStatus, NewRow, Schedule, TaskRow, TaskRows};
use slackline_model::{FlowId, Instance, Lane, PhaseId, SlotRange, Time};

use crate::ledger::{Ledger, fault};
use crate::metrics::{FlowFacts, facts};
use crate::order::Progress;
use crate::slots::DENSE_SLOTS;
use crate::summary::Summary;
use crate::violation::{First, Place, RowProblem, Subject, Table, Violation, flow_name};
use crate::{Report, check_each_flow, claims, coverage, guarantee, tolerance};

/// Rows of flows that are over after which those flows are judged: the instance made for them then costs nothing much.
const ROWS_AT_ONCE: usize = 1 << 12;

/// Judges a schedule of task rows as it comes.
#[derive(Debug)]
pub struct Stream<'a> {
    instance: &'a Instance,
    /// What a few flows are judged as, flow by flow and without claims of the whole.
    head: Schedule,
    /// Flows with rows that are not over.
    live: BTreeMap<FlowId, TaskRows>,
    /// Flows that are over, to be judged next.
    over: BTreeMap<FlowId, (FlowRow, TaskRows)>,
    rows_over: usize,
    taken: [Vec<Taken>; 3],
    /// What was found of the flows that were judged.
    facts: TiVec<FlowId, Option<FlowFacts>>,
    rows: usize,
}

/// Until when a slot was taken last, and by what.
#[derive(Clone, Copy, Debug)]
struct Taken {
    until: Time,
    phase: PhaseId,
    task: u32,
}

impl<'a> Stream<'a> {
    /// A schedule that begins; `head` says how it came about, and its rows and claims are not looked at.
    ///
    /// `None` for schedules that only [`crate::check`] can judge, because flows depend on each other by more than slots:
    /// those that promise minima which a phase has, those whose reduces take universal slots early, those under another
    /// objective than the instance's; and those on millions of slots.
    pub fn new(instance: &'a Instance, head: &Schedule) -> Option<Self> {
        let cluster = instance.cluster();
        let has_minima = || instance.phases().keys().any(|phase| guarantee::at_most(instance, phase) > 0);
        let is_bound = head.minima && has_minima()
            || head.slowstart < 1.0 && !cluster.is_typed()
            || head.objective != instance.objective()
            || cluster.lanes().iter().any(|&lane| cluster.slots(lane) > DENSE_SLOTS);
        if is_bound {
            return None;
        }
        let free = Taken { until: Time::ZERO, phase: PhaseId(0), task: 0 };
        let mut taken = [const { Vec::new() }; 3];
        for &lane in cluster.lanes() {
            taken[lane.index()] = vec![free; cluster.slots(lane) as usize];
        }
        let head =
            Schedule { flows: Vec::new(), tasks: TaskRows::new(), allocations: Vec::new(), ..head.clone() };
        let facts = vec![None; instance.flows().len()].into();
        let (live, over) = (BTreeMap::new(), BTreeMap::new());
        Some(Self { instance, head, live, over, rows_over: 0, taken, facts, rows: 0 })
    }

    /// A row of a flow that is not over.
    ///
    /// # Errors
    /// A row that means nothing; one on a slot that a row before it left later than this one starts.
    pub fn row(&mut self, row: NewRow, places: &[SlotRange]) -> Result<(), Violation> {
        let unsound = |row, problem| Violation::Row { table: Table::Tasks, row, problem };
        let index = self.rows;
        self.rows += 1;
        if self.instance.phases().get(row.phase).is_none() {
            return Err(unsound(index, RowProblem::UnknownPhase(row.phase.0)));
        }
        let flow = self.instance.flow_of(row.phase);
        if self.is_over(flow) {
            return Err(Violation::FlowTwice { flow: flow_name(self.instance, flow) });
        }
        let rows = self.live.entry(flow).or_default();
        let at = rows.push(row, places);
        if let Some(problem) = fault(self.instance, rows.row(at), places) {
            return Err(unsound(index, problem));
        }
        let row = *rows.row(at);
        self.take(&row, places)
    }

    /// Takes the slots of a row.
    fn take(&mut self, row: &TaskRow, places: &[SlotRange]) -> Result<(), Violation> {
        let lane = self.instance.lane_of(row.phase);
        let until = tolerance::shrunk(row.end);
        if until <= row.start {
            return Ok(());
        }
        for (task, slot) in (row.first..).zip(places.iter().flat_map(|place| place.first..place.end())) {
            let taken = &mut self.taken[lane.index()][slot as usize];
            if taken.until > row.start {
                let before = *taken;
                return Err(self.overlap(row, (lane, slot), task, before));
            }
            *taken = Taken { until, phase: row.phase, task };
        }
        Ok(())
    }

    fn overlap(&self, row: &TaskRow, (lane, slot): (Lane, u32), task: u32, before: Taken) -> Violation {
        Violation::SlotOverlap {
            at: row.start.seconds(),
            task: Subject::task(self.instance, row.phase, task),
            other: Box::new(Subject::task(self.instance, before.phase, before.task)),
            place: Place::new(self.instance.cluster(), lane, slot),
        }
    }

    fn is_over(&self, flow: FlowId) -> bool {
        self.facts[flow].is_some() || self.over.contains_key(&flow)
    }

    /// A flow that is over: all its rows have come.
    ///
    /// # Errors
    /// Whatever is wrong with flows that were over before; a second row of a flow.
    pub fn flow(&mut self, row: &FlowRow) -> Result<(), Violation> {
        if self.is_over(row.flow) {
            return Err(Violation::FlowTwice { flow: flow_name(self.instance, row.flow) });
        }
        let rows = self.live.remove(&row.flow).unwrap_or_default();
        self.rows_over += 1 + rows.len();
        self.over.insert(row.flow, (*row, rows));
        if self.rows_over >= ROWS_AT_ONCE { self.judge_over() } else { Ok(()) }
    }

    /// Judges the flows that are over as a workload of their own.
    fn judge_over(&mut self) -> Result<(), Violation> {
        let mut few = self.instance.without_flows();
        let mut schedule = self.head.clone();
        let mut came_from = Vec::with_capacity(self.over.len());
        for (id, (row, rows)) in std::mem::take(&mut self.over) {
            let flow = few.admit(self.instance.excerpt(id));
            schedule.flows.push(FlowRow { flow, ..row });
            let first = |instance: &Instance, flow| instance.flow(flow).phases().next().map_or(0, |id| id.0);
            let (from, to) = (first(self.instance, id), first(&few, flow));
            for row in rows.rows() {
                let phase = PhaseId(row.phase.0 - from + to);
                schedule.tasks.push(NewRow { phase, ..row.into() }, rows.places(row));
            }
            came_from.push(id);
        }
        self.rows_over = 0;
        let summary = judge(&few, &schedule)?;
        for (fact, id) in facts(&few, &schedule.flows, &summary).into_iter().zip(came_from) {
            self.facts[id] = Some(fact);
        }
        Ok(())
    }

    /// The end: `schedule` has the claims and a row for every flow, as they were told; its rows are not looked at.
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
        crate::report(self.instance, schedule, facts, self.rows)
    }
}

/// Checks everything but the slots and the claims of the whole, whose rows were sound when they came.
fn judge(instance: &Instance, schedule: &Schedule) -> Result<Summary, Violation> {
    let flows = claims::flow_rows(instance, schedule)?;
    let ledger = Ledger::new(instance, &schedule.tasks);
    coverage::check_tasks(&ledger, |flow| flows[flow.index()].status == FlowStatus::Failed)?;
    let progress = Progress::new(&ledger, schedule.slowstart);
    let mut first = First::default();
    check_each_flow(&ledger, &progress, schedule, &mut first);
    first.into_result()?;
    let summary = Summary::of_tasks(&ledger, &progress);
    claims::check_flows(instance, &flows, &summary)?;
    Ok(summary)
}
