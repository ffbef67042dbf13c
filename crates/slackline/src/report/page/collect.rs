//! Collects the data for the page of a run from its rows.

use std::cmp::Reverse;

use slackline_model::id::TiVec;
use slackline_model::schedule::{AmRow, FlowResult, NewRow, TaskRows};
use slackline_model::{FlowId, Instance, PhaseId, Schedule, SlotKind, SlotRange};
use slackline_policy::Choice;

use super::BARS_MAX;
use super::columns::micros;
use super::explained::{self, Explained};
use super::series::Series;
use super::sums::Sums;
use crate::explain::Explainer;
use crate::simulate::{FinalRow, Simulated};

/// The number of flows with a separate curve of held slots. All other flows share one curve.
pub(super) const SHARES: usize = 11;

/// The maximum number of rows that are kept to explain flows: 10 MB.
const ROWS_MAX: usize = 1 << 18;

/// Receives the rows of one policy and keeps the data for the charts.
#[derive(Debug)]
pub struct Collector<'a> {
    instance: &'a Instance,
    kept: RowData,
    /// The number of slot ranges so far.
    bars: usize,
    ams: Vec<AmRow>,
    /// By phase: the time from its first to its last held slot, microseconds.
    extents: TiVec<PhaseId, Option<(u64, u64)>>,
    /// By slot kind: the held slots over time.
    held: Vec<Series>,
    /// The held slots over time of the flows with the most work, and of all others together.
    shares: Vec<Series>,
    /// By flow: the index of its curve in `shares`.
    share_of: TiVec<FlowId, u8>,
}

/// The data that explanations are made from.
#[derive(Debug)]
enum RowData {
    /// All rows, until there are too many.
    Rows(TaskRows),
    /// The sums of the held slots.
    Sums(Sums),
}

/// The data for the charts of a policy.
#[derive(Debug)]
pub struct Drawn {
    pub(super) rows: Option<TaskRows>,
    pub(super) bars: usize,
    pub(super) ams: Vec<AmRow>,
    pub(super) extents: TiVec<PhaseId, Option<(u64, u64)>>,
    pub(super) held: Vec<Series>,
    pub(super) shares: Vec<Series>,
    pub(super) largest: Vec<FlowId>,
    pub(super) flows: Vec<Times>,
    pub(super) choices: Vec<Choice>,
    pub(super) explained: Vec<Explained>,
    /// The length of a span, seconds, if rows were summed up.
    pub(super) spans: Option<f64>,
}

/// The start and the completion of a flow, microseconds, and its cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) start: Option<u64>,
    pub(super) completion: Option<u64>,
    pub(super) cost: Option<f64>,
}

/// The times of each flow in a validated schedule.
fn times(instance: &Instance, schedule: &Schedule) -> Vec<Times> {
    let mut times = vec![Times::default(); instance.flows().len()];
    for row in &schedule.flows {
        if let Some(of) = times.get_mut(usize::from(row.flow)) {
            let is_done = row.status == FlowResult::Done;
            *of = Times {
                start: row.start.map(micros),
                completion: row.completion.filter(|_| is_done).map(micros),
                cost: row.cost.filter(|_| is_done),
            };
        }
    }
    times
}

/// The flows with the most work, in descending order.
fn largest(instance: &Instance) -> Vec<FlowId> {
    let mut flows: Vec<FlowId> = instance.flows().keys().collect();
    let by_work = |&flow: &FlowId| (Reverse(instance.flow(flow).work), flow);
    if flows.len() > SHARES {
        flows.select_nth_unstable_by_key(SHARES, by_work);
        flows.truncate(SHARES);
    }
    flows.sort_by_key(by_work);
    flows
}

/// A schedule without its rows.
fn head(schedule: &Schedule) -> Schedule {
    Schedule {
        policy: schedule.policy.clone(),
        minima: schedule.minima,
        clock: schedule.clock,
        slowstart: schedule.slowstart,
        profile: schedule.profile.clone(),
        segments: schedule.segments.clone(),
        objective: schedule.objective,
        cost: schedule.cost,
        lower_bound: schedule.lower_bound,
        gap: schedule.gap,
        metrics: Vec::new(),
        flows: schedule.flows.clone(),
        tasks: TaskRows::new(),
        ams: Vec::new(),
        allocations: schedule.allocations.clone(),
    }
}

impl Drawn {
    /// The data for a validated schedule. `is_plan` says whether it is a plan that has not run.
    pub fn of_schedule(instance: &Instance, schedule: &Schedule, is_plan: bool) -> Self {
        let mut collector = Collector::new(instance);
        collector.take_schedule(schedule);
        collector.finish(schedule, &[], is_plan)
    }
}

impl<'a> Collector<'a> {
    /// A collector without rows.
    pub fn new(instance: &'a Instance) -> Self {
        let mut share_of: TiVec<FlowId, u8> = vec![SHARES as u8; instance.flows().len()].into();
        for (flow, share) in largest(instance).into_iter().zip(0..) {
            share_of[flow] = share;
        }
        let slot_kinds = instance.cluster().slot_kinds().len();
        Self {
            instance,
            kept: RowData::Rows(TaskRows::new()),
            bars: 0,
            ams: Vec::new(),
            extents: vec![None; instance.phases().len()].into(),
            held: vec![Series::default(); slot_kinds],
            shares: vec![Series::default(); SHARES + 1],
            share_of,
        }
    }

    /// Adds a row. Amortized O(slot ranges).
    pub fn take(&mut self, left: FinalRow<'_>) {
        match left {
            FinalRow::Row(row, places) => self.row(row, places),
            FinalRow::Am(am) => {
                self.ams.push(*am);
                if am.slot.is_some() {
                    self.hold(SlotKind::Any, am.start.0, am.end.0, 1.0);
                }
            }
        }
    }

    /// Adds all rows of a schedule, or all its allocations.
    pub fn take_schedule(&mut self, schedule: &Schedule) {
        FinalRow::of_schedule(schedule, &mut |left| self.take(left));
        if schedule.tasks.is_empty() {
            for row in schedule.allocations.iter().filter(|row| row.slots > 0) {
                self.extend(row.phase, micros(row.start), micros(row.end), f64::from(row.slots));
            }
        }
    }

    fn row(&mut self, row: &NewRow, places: &[SlotRange]) {
        self.extend(row.phase, row.start.0, row.end.0, f64::from(row.count));
        self.bars += places.len();
        match &mut self.kept {
            RowData::Rows(rows) => {
                rows.push(*row, places);
                if rows.len() > ROWS_MAX {
                    let sums = Sums::of(self.instance, rows);
                    self.kept = RowData::Sums(sums);
                }
            }
            RowData::Sums(sums) => sums.add(row.phase, row.start.0, row.end.0, row.count),
        }
    }

    /// Records that a phase held slots from `start` to `end`, microseconds.
    fn extend(&mut self, phase: PhaseId, start: u64, end: u64, slots: f64) {
        let Some(extent) = self.extents.get_mut(phase) else { return };
        *extent = Some(extent.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        let flow = self.instance.flow_of(phase);
        self.shares[usize::from(self.share_of[flow])].add(start, end, slots);
        self.hold(self.instance.slot_kind_of(phase), start, end, slots);
    }

    fn hold(&mut self, slot_kind: SlotKind, start: u64, end: u64, slots: f64) {
        let slot_kinds = self.instance.cluster().slot_kinds();
        if let Some(k) = slot_kinds.iter().position(|&known| known == slot_kind) {
            self.held[k].add(start, end, slots);
        }
    }

    /// The data for a simulation whose rows were all added.
    pub fn finish_simulation(self, simulated: &Simulated) -> Drawn {
        self.finish(&simulated.schedule, &simulated.choices, false)
    }

    /// The data for a validated schedule whose rows were all added. `is_plan` says whether it is a plan that
    /// has not run.
    pub fn finish(self, schedule: &Schedule, choices: &[Choice], is_plan: bool) -> Drawn {
        let (rows, explained, spans) = match self.kept {
            RowData::Rows(rows) => {
                let whole = Schedule { tasks: rows, ams: self.ams.clone(), ..head(schedule) };
                let explained = explained::explained(&Explainer::new(self.instance, &whole), &whole, is_plan);
                (Some(whole.tasks), explained, None)
            }
            RowData::Sums(sums) => {
                let whole = Schedule { ams: self.ams.clone(), ..head(schedule) };
                let spans = sums.seconds();
                let explainer = Explainer::of_sums(self.instance, &whole, sums.into_held());
                (None, explained::explained(&explainer, &whole, is_plan), Some(spans))
            }
        };
        let is_few = self.bars <= BARS_MAX;
        Drawn {
            rows: rows.filter(|_| is_few),
            bars: self.bars,
            ams: self.ams,
            extents: self.extents,
            held: self.held,
            shares: self.shares,
            largest: largest(self.instance),
            flows: times(self.instance, schedule),
            choices: choices.to_vec(),
            explained,
            spans,
        }
    }
}

impl Drawn {
    /// Whether all its rows can be drawn.
    pub(super) fn is_few(&self) -> bool {
        self.bars <= BARS_MAX
    }

    /// The end of its last row, microseconds.
    pub(super) fn end(&self) -> u64 {
        let phases = self.extents.iter().flatten().map(|&(_, last)| last);
        let ams = self.ams.iter().map(|am| am.end.0);
        phases.chain(ams).max().unwrap_or(0)
    }
}
