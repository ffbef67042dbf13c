//! What really happened, from the rows alone: when flows started and completed, how much they used.

use slackline_model::id::TiVec;
use slackline_model::schedule::{Outcome, Schedule};
use slackline_model::{FlowId, Instance, PhaseId};

use crate::ledger::Ledger;
use crate::order::{Progress, computes_from};
use crate::plan::Plan;
use crate::segments::Timeline;

/// Whether `allocations` say what a schedule does. Task rows decide if there are any. Without rows of either
/// kind nothing ran, which completes an instance without work, on machines of all speeds.
pub(crate) fn is_by_allocations(schedule: &Schedule) -> bool {
    schedule.tasks.is_empty() && !schedule.allocations.is_empty()
}

/// Recomputed facts; times in seconds.
pub(crate) struct Summary {
    /// When the first work of each flow started, if any did; of a complete flow that no row shows, its
    /// release.
    pub(crate) starts: TiVec<FlowId, Option<f64>>,
    /// When each flow was complete, if it ever was.
    pub(crate) completions: TiVec<FlowId, Option<f64>>,
    /// Slot-seconds that each flow used, waiting reduces not counted.
    pub(crate) busy: TiVec<FlowId, f64>,
    /// When the last row of each flow ended; 0 of one without rows.
    pub(crate) ends: TiVec<FlowId, f64>,
    /// Tasks of each flow that are done; 0 in allocations.
    pub(crate) tasks: TiVec<FlowId, u64>,
}

impl Summary {
    /// Summary of any schedule; rows that mean nothing are left out.
    pub(crate) fn new(instance: &Instance, schedule: &Schedule) -> Self {
        if is_by_allocations(schedule) {
            return Self::of_plan(&Plan::new(instance, &schedule.allocations));
        }
        let ledger = Ledger::new(instance, &schedule.tasks);
        let progress = Progress::new(&ledger, &Timeline::new(schedule));
        Self::of_tasks(&ledger, &progress)
    }

    /// Summary of task rows. O(rows).
    pub(crate) fn of_tasks(ledger: &Ledger<'_>, progress: &Progress) -> Self {
        let n = ledger.instance.flows().len();
        let (mut busy, mut tasks) = (TiVec::from(vec![0.0; n]), TiVec::from(vec![0; n]));
        let mut ends: TiVec<FlowId, f64> = vec![0.0; n].into();
        for &i in ledger.by_start() {
            let row = ledger.row(i);
            let flow = ledger.instance.flow_of(row.phase);
            ends[flow] = ends[flow].max(row.end.seconds());
            if let Some(from) = computes_from(ledger.instance, progress, row) {
                busy[flow] += row.end.since(from).seconds() * f64::from(row.count);
            }
            if row.outcome == Outcome::Done {
                tasks[flow] += u64::from(row.count);
            }
        }
        let start = |phase| ledger.of(phase).next().map(|row| row.start.seconds());
        let done = |phase: PhaseId| progress.done[phase].map(slackline_model::Time::seconds);
        let (starts, completions) = by_flow(ledger.instance, start, done);
        Self { starts, completions, busy, ends, tasks }
    }

    pub(crate) fn of_plan(plan: &Plan<'_>) -> Self {
        let (starts, completions) =
            by_flow(plan.instance, |phase| plan.starts[phase], |phase| plan.finishes[phase]);
        let tasks = TiVec::from(vec![0; plan.instance.flows().len()]);
        Self { starts, completions, busy: plan.busy(), ends: plan.ends(), tasks }
    }
}

type PerFlow = TiVec<FlowId, Option<f64>>;

/// First start and last finish of each flow's phases.
fn by_flow(
    instance: &Instance,
    start: impl Fn(PhaseId) -> Option<f64>,
    finish: impl Fn(PhaseId) -> Option<f64>,
) -> (PerFlow, PerFlow) {
    let phases = |flow: FlowId| instance.flow(flow).jobs().flat_map(|job| instance.job(job).phases());
    let completions = instance.flows().keys().map(|flow| {
        phases(flow).try_fold(instance.flow(flow).release.seconds(), |last, p| Some(last.max(finish(p)?)))
    });
    let completions: PerFlow = completions.collect();
    // Without rows all of a flow is done at once.
    let starts = instance.flows().keys().map(|flow| {
        let shown = phases(flow).filter_map(&start).reduce(f64::min);
        shown.or(completions[flow])
    });
    (starts.collect(), completions)
}
