//! Judges an endless stream: flows arrive, are judged when they finish, and are forgotten.
//!
//! The checks are those of [`crate::stream`], but the instance grows and shrinks. Memory depends on the
//! unfinished flows, plus one entry per slot and, for exact metrics, 40 bytes for each finished flow.

use slackline_model::instance::Arrival;
use slackline_model::schedule::{FlowResult, FlowRow, NewRow, Schedule};
use slackline_model::{Combine, FlowId, Instance, ReorderBuffer, SlotRange};

use crate::stream::Passing;
use crate::summary::FlowFacts;
use crate::totals::{Counted, Totals};
use crate::violation::{RowProblem, Table, Violation, flow_name};
use crate::{Report, claims, guarantee};

/// How many finished flows may wait for an earlier unfinished one, so that sums are taken in the order of
/// arrival and equal those of the whole schedule to the last digit. With more, the last digits may differ.
const OVERTAKING_MAX: usize = 1 << 16;

/// Why a schedule can only be judged as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotByStream {
    /// Promised minima depend on all active flows.
    #[error(
        "flow {flow} has guaranteed slots (`min_slots`), and this policy promises to keep them: a check needs the whole workload, not a stream"
    )]
    Minima {
        /// The flow.
        flow: Box<str>,
    },
}

/// Judges the task rows of a schedule one by one; flows arrive in between.
#[derive(Debug)]
pub struct OpenStream {
    instance: Instance,
    passing: Passing,
    minima: bool,
    counted: ReorderBuffer<Entry>,
    sums: Sums,
    live: usize,
    live_max: usize,
}

/// A judged flow.
#[derive(Clone, Copy, Debug)]
struct Entry {
    counted: Counted,
    tasks: u64,
    /// The cost from its rows.
    cost: Option<f64>,
    /// The cost that its own row claims.
    claimed: Option<f64>,
}

#[derive(Clone, Debug)]
struct Sums {
    combine: Combine,
    totals: Totals,
    cost: Option<f64>,
    claimed: Option<f64>,
    tasks: u64,
    failed: usize,
    /// Whether the row of the flow says that it failed.
    says_failed: bool,
}

impl Sums {
    fn add(&mut self, flow: &Entry) {
        self.totals.add(&flow.counted);
        self.tasks += flow.tasks;
        match flow.cost {
            Some(cost) => self.cost = self.combine.and(self.cost, cost),
            None => self.failed += 1,
        }
        if let Some(cost) = flow.claimed {
            self.claimed = self.combine.and(self.claimed, cost);
        }
    }
}

impl OpenStream {
    /// Starts a schedule. `empty` has the cluster, the pools and the objective, and `head` the settings; the
    /// rows and claims of `head` are ignored.
    ///
    /// `None` for schedules that only [`crate::check`] can judge: those whose reduces take generic slots
    /// early, those with another objective than the instance or with a profile, and those on millions of
    /// slots.
    pub fn new(empty: &Instance, head: &Schedule) -> Option<Self> {
        let combine = empty.objective().combine;
        let sums = Sums {
            combine,
            totals: Totals::default(),
            cost: None,
            claimed: None,
            tasks: 0,
            failed: 0,
            says_failed: false,
        };
        Some(Self {
            instance: empty.without_flows(),
            passing: Passing::new(empty, head)?,
            minima: head.minima,
            counted: ReorderBuffer::new(OVERTAKING_MAX),
            sums,
            live: 0,
            live_max: 0,
        })
    }

    /// Adds a flow, with the next id.
    ///
    /// # Errors
    /// A flow with minima that the schedule promises to keep.
    pub fn arrive(&mut self, arrival: Arrival) -> Result<FlowId, NotByStream> {
        let id = self.instance.admit(arrival);
        let flow = self.instance.flow(id);
        if self.minima && flow.phases().any(|phase| guarantee::at_most(&self.instance, phase) > 0) {
            return Err(NotByStream::Minima { flow: flow.id.as_str().into() });
        }
        self.live += 1;
        self.live_max = self.live_max.max(self.live);
        Ok(id)
    }

    /// The flows that have arrived and are not yet judged.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The largest number of active flows so far; memory depends on it.
    pub fn live_max(&self) -> usize {
        self.live_max
    }

    /// Flows that have arrived and not finished, by id.
    pub fn unfinished(&self) -> Vec<FlowId> {
        self.instance.flows().keys().filter(|&flow| !self.passing.is_over(flow)).collect()
    }

    /// Adds a row of an unfinished flow.
    ///
    /// # Errors
    /// As [`crate::Stream::row`].
    pub fn row(&mut self, row: NewRow, places: &[SlotRange]) -> Result<(), Violation> {
        self.passing.row(&self.instance, row, places, |_| false)
    }

    /// Finishes a flow: all its rows have been added.
    ///
    /// # Errors
    /// Errors of flows that finished before; a flow that never arrived or was judged already.
    pub fn flow(&mut self, row: &FlowRow) -> Result<(), Violation> {
        if self.instance.flows().get(row.flow).is_none() {
            let problem = RowProblem::UnknownFlow(row.flow.0);
            return Err(Violation::Row { table: Table::Flows, row: row.flow.index(), problem });
        }
        if self.passing.flow(&self.instance, row, |_| false)? {
            self.judge_over()?;
        }
        Ok(())
    }

    fn judge_over(&mut self) -> Result<(), Violation> {
        for (row, fact) in self.passing.judge_over(&self.instance)? {
            let entry = self.entry(&row, &fact);
            self.sums.says_failed |= row.status == FlowResult::Failed;
            let Self { counted, sums, .. } = self;
            counted.put(row.flow.index(), entry, |entry| sums.add(&entry));
            self.instance.retire(row.flow);
            self.live -= 1;
        }
        Ok(())
    }

    fn entry(&self, row: &FlowRow, fact: &FlowFacts) -> Entry {
        let flow = self.instance.flow(row.flow);
        let cost = fact.completion.map(|completion| flow.cost.eval(completion));
        Entry {
            counted: Counted::new(&self.instance, row.flow, fact),
            tasks: fact.tasks,
            cost,
            claimed: row.cost,
        }
    }

    /// Ends the stream. `schedule` has the claims on the whole; its rows and flows are ignored. The report
    /// has no facts of single flows.
    ///
    /// # Errors
    /// As [`crate::check`].
    pub fn finish(mut self, schedule: &Schedule) -> Result<Report, Violation> {
        self.judge_over()?;
        if let Some(flow) = self.instance.flows().keys().next() {
            return Err(Violation::FlowMissing { flow: flow_name(&self.instance, flow) });
        }
        let Self { instance, passing, mut counted, mut sums, .. } = self;
        counted.flush(|entry| sums.add(&entry));
        claims::check_total(schedule, sums.says_failed, sums.claimed.unwrap_or(0.0))?;
        let last = sums.totals.last();
        let metrics = sums.totals.metrics(instance.cluster(), last);
        claims::check_metrics(schedule, &metrics)?;
        Ok(Report {
            cost: sums.cost.unwrap_or(0.0),
            failed: sums.failed,
            rows: passing.rows,
            tasks: sums.tasks,
            metrics,
            flows: Vec::new().into(),
        })
    }
}
